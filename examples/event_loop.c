/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * event_loop.c -- a server that never blocks on its limiter.
 *
 *	event_loop [PORT]
 *
 * Each datagram is the name of a caller, which gets "yes", or "no" and how many
 * milliseconds to wait; five times a second for each name.  Most answers come at once.
 * One that does not is pending: it comes to the seat's completions with the tag that
 * was given, and the seat's descriptor wakes the loop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gale/gale.h>

struct server {
	int socket;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

/* A caller that waits for an answer: the tag of a pending ask. */
struct caller {
	struct sockaddr_in address;
};

/* ---- Answering ------------------------------------------------------------------- */

static void reply(const struct server *server, const struct caller *caller,
                  const struct gale_answer *answer)
{
	char text[64] = "yes\n";
	int length = 4;

	if (answer->verdict != GALE_ALLOW)
		length = snprintf(text, sizeof(text), "no %" PRIu64 "\n",
		                  answer->retry_after_us / 1000 + 1);
	/* A caller that gets no reply asks again. */
	(void)sendto(server->socket, text, (size_t)length, MSG_DONTWAIT,
	             (const struct sockaddr *)&caller->address,
	             sizeof(caller->address));
}

static void on_completions(struct server *server)
{
	struct gale_completion done[16];
	size_t count;

	do {
		count = gale_seat_completions(server->seat, done, 16);
		for (size_t i = 0; i < count; i++) {
			reply(server, done[i].tag, &done[i].answer);
			free(done[i].tag);
		}
	} while (count == 16);
}

/* ---- Asking ---------------------------------------------------------------------- */

static void on_ask(struct server *server, struct caller *caller, const char *name,
                   size_t length)
{
	struct gale_answer answer = gale_ask(server->seat, server->limiter, name,
	                                     length, /* cost= */ 1, /* tag= */ caller);

	if (answer.verdict == GALE_PENDING)
		return; /* on_completions replies, and frees the caller */
	reply(server, caller, &answer);
	free(caller);
}

/* One datagram: if there are more, epoll says so again, and others have their turn. */
static void on_datagram(struct server *server)
{
	char name[GALE_KEY_MAX];
	struct caller *caller = calloc(1, sizeof(*caller));
	socklen_t address_length = sizeof(caller->address);
	ssize_t length;

	if (!caller)
		return; /* it stays in the socket */
	length = recvfrom(server->socket, name, sizeof(name), MSG_DONTWAIT,
	                  (struct sockaddr *)&caller->address, &address_length);
	if (length > 0)
		on_ask(server, caller, name, (size_t)length);
	else
		free(caller);
}

static void loop(struct server *server, int epoll)
{
	struct epoll_event event;

	for (;;) {
		int count = epoll_wait(epoll, &event, 1, -1);

		if (count < 0 && errno != EINTR)
			return;
		if (count < 1)
			continue;
		if (event.data.fd == server->socket)
			on_datagram(server);
		else
			on_completions(server);
	}
}

/* ---- Setting up ------------------------------------------------------------------ */

static bool watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static enum gale_err open_limiter(struct server *server)
{
	struct gale_limiter_config config = {
		.name = "names",
		.rule = gale_gcra(5, GALE_SECONDS(1), /* burst= */ 5),
		.mode = GALE_STRICT,
		.on_outage = GALE_ON_OUTAGE_DENY,
	};
	struct gale_runtime *runtime;
	enum gale_err err = gale_runtime_open(NULL, &runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(runtime, NULL, &config.store);
	if (err == GALE_ERR_OK)
		err = gale_limiter_open(runtime, &config, &server->limiter);
	if (err == GALE_ERR_OK)
		err = gale_join(runtime, &server->seat);
	return err;
}

static int open_socket(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port = htons(port),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	perror("event_loop: socket");
	exit(1);
}

int main(int argc, char **argv)
{
	uint16_t port = argc > 1 ? (uint16_t)atoi(argv[1]) : 4000;
	struct server server = { .socket = open_socket(port) };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	enum gale_err err = open_limiter(&server);

	if (err != GALE_ERR_OK) {
		fprintf(stderr, "event_loop: %s\n", gale_err_text(err));
		return 1;
	}
	if (epoll < 0 || !watch(epoll, server.socket) ||
	    !watch(epoll, gale_seat_fd(server.seat))) {
		perror("event_loop: epoll");
		return 1;
	}
	printf("listening on 127.0.0.1, port %d\n", port);
	fflush(stdout);
	loop(&server, epoll); /* until it is killed */
	perror("event_loop: epoll_wait");
	return 1;
}
