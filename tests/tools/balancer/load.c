/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * load.c -- clients of HTTP servers, and what they got, a line for each slice of time.
 *
 *	balancer_load CLIENTS SLICE_MS PORT...
 *
 * There are CLIENTS at each port.  Each has a connection, and makes one GET after the other.  After a refusal (429 or
 * 503) it waits for PAUSE_MS.  A connection that ends with "Connection: close" is opened
 * again.  Ends when its input does; then clients make no further request, and those that
 * were made are waited for.
 *
 *	SERVER MS GOOD REFUSED FAILED LOST
 *
 * SERVER is 0 for the first port.  MS is how long the slice was.  GOOD are 200s, FAILED other statuses, LOST requests whose
 * connection ended before the reply was whole.  The last line is "left N": requests without
 * an answer.
 *
 * Threads   One.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sim/must.h"

#define SERVERS_MOST 4
#define CLIENTS_MOST 256 /* of all */
#define IN_MOST 65536
#define PAUSE_MS 5
#define PATIENCE_MS 30000

static const char request[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";

struct client {
	struct server *server;
	int fd; /* -1: its next request needs a connection */
	bool waits;
	uint64_t pause_ms; /* until then */
	size_t count;
	char in[IN_MOST];
};

struct server {
	struct sockaddr_in address;
	bool is_gone; /* nobody listens any more */
	uint64_t good, refused, failed, lost;
};

static struct client clients[CLIENTS_MOST];
static unsigned client_count;
static struct server servers[SERVERS_MOST];
static unsigned server_count;

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void hang_up(struct client *client)
{
	close(client->fd);
	client->fd = -1;
	client->count = 0;
	client->waits = false;
}

static void lose(struct client *client)
{
	client->server->lost += client->waits;
	hang_up(client);
	client->pause_ms = now_ms() + PAUSE_MS;
}

static void connect_to_server(struct client *client)
{
	const struct sockaddr_in *address = &client->server->address;
	const int on = 1;

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(client->fd >= 0);
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(client->fd, (const struct sockaddr *)address, sizeof(*address)) ==
	    0)
		return;
	hang_up(client);
	client->server->is_gone = true;
}

static void ask(struct client *client)
{
	ssize_t sent;

	if (client->fd < 0)
		connect_to_server(client);
	if (client->fd < 0)
		return;
	sent = send(client->fd, request, strlen(request), MSG_NOSIGNAL);
	client->waits = true;
	if (sent < 0)
		lose(client);
}

static void take_reply(struct client *client, const char *head_end)
{
	int status = atoi(client->in + 9);
	const char *close_line = strcasestr(client->in, "\r\nConnection: close");

	client->waits = false;
	client->count = 0;
	client->server->good += status == 200;
	client->server->refused += status == 429 || status == 503;
	client->server->failed += status != 200 && status != 429 && status != 503;
	if (status != 200)
		client->pause_ms = now_ms() + PAUSE_MS;
	if (close_line && close_line < head_end)
		hang_up(client);
}

static void hear(struct client *client)
{
	ssize_t count = recv(client->fd, client->in + client->count,
	                     IN_MOST - 1 - client->count, 0);
	const char *end, *length;

	if (count <= 0) {
		lose(client);
		return;
	}
	client->count += (size_t)count;
	client->in[client->count] = '\0';
	end = strstr(client->in, "\r\n\r\n");
	if (!end)
		return;
	length = strcasestr(client->in, "\r\nContent-Length:");
	must(length && length < end);
	if (client->count >=
	    (size_t)(end + 4 - client->in) + strtoul(length + 17, NULL, 10))
		take_reply(client, end);
}

static void say_slice(uint64_t ms)
{
	for (unsigned i = 0; i < server_count; i++) {
		struct server *server = &servers[i];

		printf("%u %llu %llu %llu %llu %llu\n", i, (unsigned long long)ms,
		       (unsigned long long)server->good,
		       (unsigned long long)server->refused,
		       (unsigned long long)server->failed,
		       (unsigned long long)server->lost);
		server->good = server->refused = server->failed = server->lost = 0;
	}
	fflush(stdout);
}

static bool are_gone(void)
{
	for (unsigned i = 0; i < server_count; i++) {
		if (!servers[i].is_gone)
			return false;
	}
	return true;
}

/* Lets those ask that may; returns how many wait for a reply. */
static unsigned ask_all(struct pollfd *ready, bool is_ending)
{
	unsigned waiting = 0;

	for (unsigned i = 0; i < client_count; i++) {
		struct client *client = &clients[i];

		if (!client->waits && !is_ending && !client->server->is_gone &&
		    client->pause_ms <= now_ms())
			ask(client);
		ready[i] = (struct pollfd){ .fd = client->fd, .events = POLLIN };
		waiting += client->waits;
	}
	return waiting;
}

static void hear_all(struct pollfd *ready)
{
	poll(ready, client_count + 1, 1);
	for (unsigned i = 0; i < client_count; i++) {
		if (ready[i].fd >= 0 && ready[i].revents)
			hear(&clients[i]);
	}
}

/* Returns how many had no answer at the end. */
static unsigned run(uint64_t slice_ms)
{
	struct pollfd ready[CLIENTS_MOST + 1];
	uint64_t begun = now_ms(), ended = begun;
	bool is_ending = false;
	unsigned waiting;

	for (;;) {
		waiting = ask_all(ready, is_ending);
		if (is_ending && (waiting == 0 || now_ms() > ended + PATIENCE_MS))
			break;
		ready[client_count] =
		    (struct pollfd){ .fd = is_ending ? -1 : 0, .events = POLLIN };
		hear_all(ready);
		if (!is_ending && (ready[client_count].revents || are_gone())) {
			is_ending = true;
			ended = now_ms();
		}
		if (now_ms() - begun >= slice_ms) {
			say_slice(now_ms() - begun);
			begun = now_ms();
		}
	}
	say_slice(now_ms() - begun);
	return waiting;
}

int main(int argc, char **argv)
{
	unsigned each;

	must(argc >= 4 && argc < 4 + SERVERS_MOST);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	server_count = (unsigned)argc - 3;
	each = (unsigned)atoi(argv[1]);
	client_count = each * server_count;
	must(client_count > 0 && client_count <= CLIENTS_MOST);
	for (unsigned i = 0; i < server_count; i++) {
		servers[i].address.sin_family = AF_INET;
		servers[i].address.sin_port = htons((uint16_t)atoi(argv[3 + i]));
		servers[i].address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	for (unsigned i = 0; i < client_count; i++) {
		clients[i].fd = -1;
		clients[i].server = &servers[i % server_count];
	}
	printf("left %u\n", run(strtoull(argv[2], NULL, 10)));
	return 0;
}
