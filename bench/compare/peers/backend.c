/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * backend.c -- an HTTP server that takes a time for each request, and counts how many it has.
 *
 *	backend HOLD_MS CEILING
 *
 * Prints its port.  For each line that it reads it prints
 *
 *	served=N peak=N mean=X above=PERCENT
 *
 * of the time since the last one: the most requests in flight, their mean, and for what part of
 * the time there were more than CEILING.  It ends with its input.
 *
 * Threads   One.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/compare/peers/driver.h"

#define CONNECTIONS_MOST 4096
#define REPLY "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

struct connection {
	bool is_held;
	size_t count;
	char text[4096];
};

/* All take the same time, so the first that came is the first that goes. */
static struct connection *connections[CONNECTIONS_MOST]; /* by descriptor */
static struct {
	int fd;
	uint64_t due_ns;
} held[CONNECTIONS_MOST];
static uint64_t first, last;

static uint64_t hold_ns, ceiling;
static uint64_t served, peak, weighted_ns, above_ns, since_ns, changed_ns;

/* ---- Counting -------------------------------------------------------------------- */

static void count_until(uint64_t now)
{
	uint64_t took = now - changed_ns;

	weighted_ns += (last - first) * took;
	above_ns += last - first > ceiling ? took : 0;
	changed_ns = now;
}

static void say(void)
{
	uint64_t now = driver_now_ns();
	double all;

	count_until(now);
	all = (double)(now - since_ns);
	printf("served=%llu peak=%llu mean=%.2f above=%.2f\n",
	       (unsigned long long)served, (unsigned long long)peak,
	       (double)weighted_ns / all, 100 * (double)above_ns / all);
	fflush(stdout);
	served = weighted_ns = above_ns = 0;
	peak = last - first;
	since_ns = now;
}

/* ---- Requests -------------------------------------------------------------------- */

static void end(int fd)
{
	/* A request that is held keeps its descriptor until it is due. */
	if (connections[fd]->is_held) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	free(connections[fd]);
	connections[fd] = NULL;
	close(fd);
}

static void take(int fd)
{
	struct connection *connection = connections[fd];
	ssize_t more;

	if (!connection || connection->is_held)
		return; /* it says more when it is answered */
	more = recv(fd, connection->text + connection->count,
	            sizeof(connection->text) - connection->count, 0);
	if (more <= 0) {
		end(fd);
		return;
	}
	connection->count += (size_t)more;
	if (!memmem(connection->text, connection->count, "\r\n\r\n", 4))
		return;
	connection->count = 0;
	connection->is_held = true;
	count_until(driver_now_ns());
	held[last % CONNECTIONS_MOST].fd = fd;
	held[last % CONNECTIONS_MOST].due_ns = changed_ns + hold_ns;
	last++;
	peak = last - first > peak ? last - first : peak;
}

static void answer_due(void)
{
	while (first < last &&
	       held[first % CONNECTIONS_MOST].due_ns <= driver_now_ns()) {
		int fd = held[first % CONNECTIONS_MOST].fd;

		count_until(driver_now_ns());
		first++;
		served++;
		connections[fd]->is_held = false;
		/* A client that has gone is found when its descriptor is read. */
		(void)!send(fd, REPLY, sizeof(REPLY) - 1, MSG_NOSIGNAL);
	}
}

static void welcome(int epoll, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	driver_must(fd >= 0 && fd < CONNECTIONS_MOST, "a connection");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connections[fd] = calloc(1, sizeof(struct connection));
	driver_must(connections[fd] && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0,
	            "a connection");
}

static int wait_ms(void)
{
	uint64_t now = driver_now_ns(), due = held[first % CONNECTIONS_MOST].due_ns;

	if (first == last)
		return -1;
	return due <= now ? 0 : (int)((due - now) / 1000000) + 1;
}

static void serve(int epoll, int listener)
{
	struct epoll_event events[64];
	char line[64];

	for (;;) {
		int count = epoll_wait(epoll, events, 64, wait_ms());

		answer_due();
		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;

			if (fd == listener)
				welcome(epoll, listener);
			else if (fd != STDIN_FILENO)
				take(fd);
			else if (read(STDIN_FILENO, line, sizeof(line)) > 0)
				say();
			else
				return;
		}
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	driver_must(argc == 3, "HOLD_MS CEILING");
	hold_ns = strtoull(argv[1], NULL, 10) * 1000000;
	ceiling = strtoull(argv[2], NULL, 10);
	driver_must(listener >= 0 && epoll >= 0 &&
	                bind(listener, (struct sockaddr *)&address, size) == 0 &&
	                listen(listener, 512) == 0 &&
	                getsockname(listener, (struct sockaddr *)&address, &size) == 0,
	            "a port");
	event.data.fd = listener;
	driver_must(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll");
	event.data.fd = STDIN_FILENO;
	driver_must(epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0,
	            "epoll");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	since_ns = changed_ns = driver_now_ns();
	serve(epoll, listener);
	return 0;
}
