/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * backend.c -- an HTTP backend that works on so many requests at a time, each for so long.
 *
 *	balancer_backend PORT PLACES MS
 *
 * Further requests wait for a place.  "/ms/N": from now on each takes N ms.  "/count": how
 * many other requests were answered.  "/most": how many were there at once, at most.  "/cut": a reply that ends in the middle.  "/status/N":
 * a reply with that status.  "/echo": the body that was sent, in chunks.  "/until-close": a
 * body that ends with the connection.  "/large": 8 MiB.  All else: "hello", and the head
 * that came with it is the body of "/head".
 *
 * Threads   One: a turn of poll for all connections.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sim/must.h"

#define LINES_MOST 1024
#define PLACES_MOST 1024
#define IN_MOST 1200000
#define LARGE (8u << 20)

struct line {
	int fd;
	size_t count;
	char *in;
	uint64_t due_ns; /* 0: it works on nothing */
	bool is_counted;
	size_t length; /* of the request that it works on */
};

static struct line lines[LINES_MOST];
static uint64_t free_ns[PLACES_MOST]; /* when a place is free */
static unsigned places;
static uint64_t work_ns;
static uint64_t answered;
static uint64_t present, most; /* requests: now, and at once at most */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void hang_up(struct line *line)
{
	present -= line->is_counted;
	close(line->fd);
	free(line->in);
	*line = (struct line){ .fd = -1 };
}

/* ---- Replies ---------------------------------------------------------------------- */

static void say(struct line *line, const char *text, size_t count)
{
	while (count > 0) {
		struct pollfd ready = { .fd = line->fd, .events = POLLOUT };
		ssize_t sent = send(line->fd, text, count, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN) {
			poll(&ready, 1, -1);
			continue;
		}
		if (sent < 0)
			return; /* nobody is there: the next read says so */
		text += sent;
		count -= (size_t)sent;
	}
}

static void reply(struct line *line, int status, const char *body, size_t length)
{
	char head[256];
	int count = snprintf(head, sizeof(head),
	                     "HTTP/1.1 %d Fine\r\nX-Backend: 1\r\n"
	                     "Content-Length: %zu\r\n\r\n",
	                     status, length);

	/* In one piece, if that is small: a backend that is killed has said all of it, or nothing. */
	if (length < sizeof(head) - (size_t)count) {
		memcpy(head + count, body, length);
		say(line, head, (size_t)count + length);
		return;
	}
	say(line, head, (size_t)count);
	say(line, body, length);
}

static void reply_in_chunks(struct line *line, const char *body, size_t length)
{
	static const char head[] =
	    "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n";
	char size[32];

	say(line, head, strlen(head));
	for (size_t at = 0; at < length; at += 1000) {
		size_t part = length - at < 1000 ? length - at : 1000;

		say(line, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", part));
		say(line, body + at, part);
		say(line, "\r\n", 2);
	}
	say(line, "0\r\n\r\n", 5);
}

static void reply_large(struct line *line)
{
	char *body = malloc(LARGE);

	must(body);
	memset(body, 'x', LARGE);
	reply(line, 200, body, LARGE);
	free(body);
}

/* Replies that end with the connection. */
static bool reply_last(struct line *line, const char *target)
{
	static const char cut[] =
	    "HTTP/1.1 200 Fine\r\nContent-Length: 100\r\n\r\nhalf";
	static const char open[] = "HTTP/1.1 200 Fine\r\n\r\nto the end";

	if (strncmp(target, "/cut", 4) == 0)
		say(line, cut, strlen(cut));
	else if (strncmp(target, "/until-close", 12) == 0)
		say(line, open, strlen(open));
	else
		return false;
	hang_up(line);
	return true;
}

/* False: the connection has ended. */
static bool answer(struct line *line)
{
	const char *target = strchr(line->in, ' ') + 1;
	const char *body = (char *)memmem(line->in, line->count, "\r\n\r\n", 4) + 4;
	size_t length = line->length - (size_t)(body - line->in);
	char text[32];

	if (strncmp(target, "/count", 6) == 0 || strncmp(target, "/most", 5) == 0) {
		uint64_t value = target[1] == 'c' ? answered : most;

		reply(line, 200, text,
		      (size_t)snprintf(text, sizeof(text), "%llu",
		                       (unsigned long long)value));
		return true;
	}
	answered++;
	if (reply_last(line, target))
		return false;
	if (strncmp(target, "/ms/", 4) == 0) {
		work_ns = strtoull(target + 4, NULL, 10) * 1000000;
		answered--;
		reply(line, 200, "", 0);
	} else if (strncmp(target, "/status/", 8) == 0)
		reply(line, atoi(target + 8), "", 0);
	else if (strncmp(target, "/echo", 5) == 0)
		reply_in_chunks(line, body, length);
	else if (strncmp(target, "/large", 6) == 0)
		reply_large(line);
	else if (strncmp(target, "/head", 5) == 0)
		reply(line, 200, line->in, (size_t)(body - line->in));
	else
		reply(line, 200, "hello\n", strncmp(line->in, "HEAD", 4) == 0 ? 0 : 6);
	return true;
}

/* ---- Requests --------------------------------------------------------------------- */

static bool is_free(const char *in)
{
	return strncmp(in, "GET /ms/", 8) == 0 || strncmp(in, "GET /count", 10) == 0 ||
	       strncmp(in, "GET /most", 9) == 0;
}

/* The request gets the place that is free first. */
static void begin(struct line *line, uint64_t now)
{
	const char *end, *length;
	unsigned best = 0;

	line->in[line->count] = '\0';
	end = strstr(line->in, "\r\n\r\n");
	if (line->due_ns || !end)
		return;
	length = strcasestr(line->in, "\r\nContent-Length:");
	line->length = (size_t)(end + 4 - line->in);
	if (length && length < end)
		line->length += strtoul(length + 17, NULL, 10);
	if (line->count < line->length)
		return;
	line->due_ns = now;
	if (is_free(line->in))
		return;
	line->is_counted = true;
	present++;
	most = present > most ? present : most;
	for (unsigned i = 1; i < places; i++) {
		if (free_ns[i] < free_ns[best])
			best = i;
	}
	line->due_ns = (free_ns[best] > now ? free_ns[best] : now) + work_ns;
	free_ns[best] = line->due_ns;
}

static void hear(struct line *line, uint64_t now)
{
	ssize_t count =
	    recv(line->fd, line->in + line->count, IN_MOST - 1 - line->count, 0);

	if (count < 0 && errno == EAGAIN)
		return;
	if (count <= 0) {
		hang_up(line);
		return;
	}
	line->count += (size_t)count;
	begin(line, now);
}

static void finish(struct line *line, uint64_t now)
{
	if (!answer(line))
		return;
	memmove(line->in, line->in + line->length, line->count - line->length);
	line->count -= line->length;
	line->due_ns = 0;
	present -= line->is_counted;
	line->is_counted = false;
	begin(line, now);
}

static void take(int listener)
{
	const int on = 1;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < LINES_MOST; i++) {
		if (lines[i].fd >= 0)
			continue;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		lines[i] = (struct line){ .fd = fd, .in = malloc(IN_MOST) };
		must(lines[i].in);
		return;
	}
	if (fd >= 0)
		close(fd);
}

static int listen_at(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	must(bind(fd, (struct sockaddr *)&address, length) == 0);
	must(listen(fd, SOMAXCONN) == 0);
	must(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	printf("listening on port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

/* Until something happens, or the next reply is due. */
static void wait_for(struct pollfd *ready)
{
	uint64_t now = now_ns(), first = UINT64_MAX;
	struct timespec wait;

	for (unsigned i = 0; i < LINES_MOST; i++) {
		ready[i].fd = lines[i].fd;
		ready[i].events = lines[i].due_ns ? 0 : POLLIN;
		if (lines[i].fd >= 0 && lines[i].due_ns && lines[i].due_ns < first)
			first = lines[i].due_ns;
	}
	first = first > now ? first - now : 0;
	wait.tv_sec = (time_t)(first / 1000000000);
	wait.tv_nsec = (long)(first % 1000000000);
	ppoll(ready, LINES_MOST + 1, &wait, NULL);
}

int main(int argc, char **argv)
{
	static struct pollfd ready[LINES_MOST + 1];
	int listener;

	must(argc == 4);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	places = (unsigned)atoi(argv[2]);
	work_ns = strtoull(argv[3], NULL, 10) * 1000000;
	must(places > 0 && places <= PLACES_MOST);
	for (unsigned i = 0; i < LINES_MOST; i++)
		lines[i].fd = ready[i].fd = -1;
	listener = listen_at((uint16_t)atoi(argv[1]));
	ready[LINES_MOST] = (struct pollfd){ .fd = listener, .events = POLLIN };
	for (;;) {
		uint64_t now;

		wait_for(ready);
		now = now_ns();
		for (unsigned i = 0; i < LINES_MOST; i++) {
			if (lines[i].fd >= 0 && lines[i].due_ns &&
			    lines[i].due_ns <= now)
				finish(&lines[i], now);
			else if (ready[i].fd >= 0 && ready[i].revents)
				hear(&lines[i], now);
		}
		if (ready[LINES_MOST].revents)
			take(listener);
	}
}
