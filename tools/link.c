/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * link.c -- pairs of sockets, and what is on its way between them.
 */
#define _GNU_SOURCE
#include "tools/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SCHEME "redis://"
#define PAIRS_MOST 128
#define READ_MOST 16384
#define NAP_MS 1 /* while something is on its way */

/* Bytes that came together. */
struct parcel {
	struct parcel *next;
	uint64_t due_us;
	size_t sent, count;
	char bytes[];
};

/* One way of a connection. */
struct way {
	int from, to;
	struct parcel *first, **last;
};

struct pair {
	bool open;
	struct way ways[2];
};

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- Where it leads -------------------------------------------------------------------- */

bool link_can_carry(const char *url)
{
	return strncmp(url, SCHEME, strlen(SCHEME)) == 0 && strlen(url) < LINK_URL_MOST;
}

/* A path ends at options; a host ends at a database, too.  The user is named before an @. */
static void read_url(struct link *link, const char *url, uint16_t port)
{
	const char *at = url + strlen(SCHEME), *host, *colon;
	size_t count = strcspn(at, at[0] == '/' ? "?" : "/?");
	const char *who = memchr(at, '@', count);

	host = who && at[0] != '/' ? who + 1 : at;
	snprintf(link->url, sizeof(link->url), SCHEME "%.*s127.0.0.1:%u%s",
	         (int)(host - at), at, port, at + count);
	count -= (size_t)(host - at);
	colon = host[0] == '/' ? NULL : memrchr(host, ':', count);
	snprintf(link->port, sizeof(link->port), "%.*s",
	         colon ? (int)(host + count - colon - 1) : 4,
	         colon ? colon + 1 : "6379");
	snprintf(link->host, sizeof(link->host), "%.*s",
	         (int)(colon ? (size_t)(colon - host) : count), host);
}

static int connect_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t count = strlen(path);
	int fd = count < sizeof(address.sun_path)
	             ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
	             : -1;

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, path, count);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int connect_host(const struct link *link)
{
	const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int fd = -1;

	if (getaddrinfo(link->host, link->port, &wanted, &found) != 0)
		return -1;
	for (struct addrinfo *each = found; each && fd < 0; each = each->ai_next) {
		fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, each->ai_addr, each->ai_addrlen) != 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd;
}

/* ---- Pairs ----------------------------------------------------------------------------- */

static void way_open(struct way *way, int from, int to)
{
	const int on = 1;

	*way = (struct way){ .from = from, .to = to };
	way->last = &way->first;
	(void)fcntl(from, F_SETFL, O_NONBLOCK);
	(void)setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void drop_first(struct way *way)
{
	struct parcel *first = way->first;

	way->first = first->next;
	if (!way->first)
		way->last = &way->first;
	free(first);
}

static void pair_close(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		while (pair->ways[i].first)
			drop_first(&pair->ways[i]);
		close(pair->ways[i].from);
	}
	pair->open = false;
}

static void take_connection(const struct link *link, struct pair *pairs)
{
	int node = accept4(link->listener, NULL, NULL, SOCK_CLOEXEC), server = -1;
	struct pair *pair = pairs;

	if (node < 0)
		return;
	while (pair < pairs + PAIRS_MOST && pair->open)
		pair++;
	if (pair < pairs + PAIRS_MOST)
		server = link->host[0] == '/' ? connect_socket(link->host)
		                              : connect_host(link);
	if (server < 0) {
		close(node);
		return;
	}
	pair->open = true;
	way_open(&pair->ways[0], node, server);
	way_open(&pair->ways[1], server, node);
}

static bool is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* False: the connection is over. */
static bool take_in(struct way *way, uint64_t way_us)
{
	char bytes[READ_MOST];
	ssize_t count = recv(way->from, bytes, sizeof(bytes), 0);
	struct parcel *parcel;

	if (count <= 0)
		return count < 0 && is_for_later();
	parcel = malloc(sizeof(*parcel) + (size_t)count);
	if (!parcel)
		return false;
	*parcel =
	    (struct parcel){ .due_us = now_us() + way_us, .count = (size_t)count };
	memcpy(parcel->bytes, bytes, (size_t)count);
	*way->last = parcel;
	way->last = &parcel->next;
	return true;
}

static bool give_out(struct way *way)
{
	struct parcel *first;
	ssize_t sent;

	while ((first = way->first) && first->due_us <= now_us()) {
		sent = send(way->to, first->bytes + first->sent,
		            first->count - first->sent, MSG_NOSIGNAL);
		if (sent < 0)
			return is_for_later();
		first->sent += (size_t)sent;
		if (first->sent == first->count)
			drop_first(way);
	}
	return true;
}

/* ---- The thread ------------------------------------------------------------------------ */

static void carry(const struct link *link, struct pair *pair)
{
	for (int i = 0; i < 2 && pair->open; i++)
		if (!take_in(&pair->ways[i], link->way_us) || !give_out(&pair->ways[i]))
			pair_close(pair);
}

/* Until something comes, or may be due. */
static void wait_for_some(const struct link *link, const struct pair *pairs,
                          struct pollfd *polls)
{
	nfds_t count = 2;
	bool under_way = false;

	polls[0] = (struct pollfd){ .fd = link->wake, .events = POLLIN };
	polls[1] = (struct pollfd){ .fd = link->listener, .events = POLLIN };
	for (int i = 0; i < PAIRS_MOST; i++)
		for (int j = 0; j < 2 && pairs[i].open; j++) {
			polls[count++] = (struct pollfd){ .fd = pairs[i].ways[j].from,
				                          .events = POLLIN };
			under_way |= pairs[i].ways[j].first != NULL;
		}
	(void)poll(polls, count, under_way ? NAP_MS : -1);
}

static void *link_main(void *arg)
{
	struct pair pairs[PAIRS_MOST] = { 0 };
	struct pollfd polls[2 + 2 * PAIRS_MOST];
	const struct link *link = arg;

	do {
		wait_for_some(link, pairs, polls);
		if (polls[1].revents)
			take_connection(link, pairs);
		for (int i = 0; i < PAIRS_MOST; i++)
			carry(link, &pairs[i]);
	} while (!polls[0].revents);
	for (int i = 0; i < PAIRS_MOST; i++)
		if (pairs[i].open)
			pair_close(&pairs[i]);
	return NULL;
}

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t count = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(fd, PAIRS_MOST) == 0 &&
	    getsockname(fd, (struct sockaddr *)&address, &count) == 0) {
		*ret_port = ntohs(address.sin_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

bool link_open(struct link *link, const char *url, uint64_t round_trip_us,
               struct sentence *why)
{
	uint16_t port = 0;

	*link = (struct link){ .way_us = round_trip_us / 2, .wake = -1 };
	link->listener = listen_somewhere(&port);
	if (link->listener >= 0)
		link->wake = eventfd(0, EFD_CLOEXEC);
	if (link->wake >= 0) {
		read_url(link, url, port);
		if (pthread_create(&link->thread, NULL, link_main, link) == 0)
			return true;
		close(link->wake);
	}
	if (link->listener >= 0)
		close(link->listener);
	return sentence_say(why, "--regions: this system gives no more sockets or "
	                         "threads");
}

void link_close(struct link *link)
{
	(void)eventfd_write(link->wake, 1);
	pthread_join(link->thread, NULL);
	close(link->wake);
	close(link->listener);
}
