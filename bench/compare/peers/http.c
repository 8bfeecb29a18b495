/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http.c -- requests to an HTTP server, for those peers that are one.
 *
 * ADDRESS is a port of this machine.  A thread has `depth` connections that stay, with a
 * request under way on each, whose X-Api-Key is the key.  200 is allowed, 429 and 503 are
 * denied.  The server has been started with the limit of the work.
 *
 * Threads   Connections of its own each.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/compare/peers/driver.h"

#define DEPTH_MOST 256
#define REPLY_MOST 8192
#define KEYS_KNOWN 10000

struct line {
	int fd;
	uint64_t began;
	size_t count;
	char reply[REPLY_MOST + 1];
};

static struct line *caller;

/* ---- A request and its reply ----------------------------------------------------- */

static void line_connect(struct line *line)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_port =
		                           htons((uint16_t)atoi(driver_address)),
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int on = 1;

	line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	driver_must(line->fd >= 0 && connect(line->fd, (struct sockaddr *)&address,
	                                     sizeof(address)) == 0,
	            "the server");
	setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	line->count = 0;
}

static struct line *line_open(void)
{
	struct line *line = calloc(1, sizeof(*line));

	driver_must(line != NULL, "memory");
	line_connect(line);
	return line;
}

static void line_close(struct line *line)
{
	close(line->fd);
	free(line);
}

static void line_send(struct line *line, const char *key)
{
	char text[128];
	int count =
	    snprintf(text, sizeof(text),
	             "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: %.*s\r\n\r\n",
	             DRIVER_KEY_LEN, key);

	line->began = driver_now_ns();
	/* Where the server has closed, the reply says so. */
	(void)!send(line->fd, text, (size_t)count, MSG_NOSIGNAL);
}

static bool is_whole(const struct line *line, bool *ret_closes)
{
	const char *end = memmem(line->reply, line->count, "\r\n\r\n", 4);
	const char *length;
	size_t body;

	if (!end)
		return false;
	length = strcasestr(line->reply, "\r\ncontent-length:");
	body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
	length = strcasestr(line->reply, "\r\nconnection: close");
	*ret_closes = length && length < end;
	return line->count >= (size_t)(end - line->reply) + 4 + body;
}

/* Takes what has come; true: that was the rest of the reply, and what it says. */
static bool line_hear(struct line *line, enum driver_answer *ret_answer)
{
	ssize_t more =
	    recv(line->fd, line->reply + line->count, REPLY_MOST - line->count, 0);
	bool closes = false;
	int status;

	if (more <= 0) {
		close(line->fd);
		line_connect(line);
		*ret_answer = DRIVER_FAILED;
		return true;
	}
	line->count += (size_t)more;
	line->reply[line->count] = '\0';
	if (!is_whole(line, &closes))
		return false;
	status = atoi(line->reply + 9);
	*ret_answer = status == 200                    ? DRIVER_ALLOWED
	              : status == 429 || status == 503 ? DRIVER_DENIED
	                                               : DRIVER_FAILED;
	line->count = 0;
	if (closes) {
		close(line->fd);
		line_connect(line);
	}
	return true;
}

static enum driver_answer line_call(struct line *line, const char *key)
{
	enum driver_answer answer;

	line_send(line, key);
	while (!line_hear(line, &answer))
		continue;
	return answer;
}

/* ---- The works ------------------------------------------------------------------- */

static void watch(int epoll, struct line *line)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = line };

	driver_must(epoll_ctl(epoll, EPOLL_CTL_ADD, line->fd, &event) == 0 ||
	                errno == EEXIST,
	            "epoll");
}

static void run(struct driver_turn *turn)
{
	struct line *lines[DEPTH_MOST];
	struct epoll_event events[64];
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned depth = turn->work->depth, under_way = depth;

	driver_must(epoll >= 0 && depth <= DEPTH_MOST, "epoll");
	for (unsigned i = 0; i < depth; i++) {
		lines[i] = line_open();
		watch(epoll, lines[i]);
		line_send(lines[i], driver_next_key(turn));
	}
	while (under_way > 0) {
		int count = epoll_wait(epoll, events, 64, 20000);

		driver_must(count > 0, "a reply within 20 s");
		for (int i = 0; i < count; i++) {
			struct line *line = events[i].data.ptr;
			enum driver_answer answer;
			uint64_t now;

			if (!line_hear(line, &answer))
				continue;
			watch(epoll, line); /* where it is connected anew */
			now = driver_now_ns();
			turn->tally.answers[answer]++;
			driver_note(&turn->tally, now - line->began);
			if (now < turn->end_ns)
				line_send(line, driver_next_key(turn));
			else
				under_way--;
		}
	}
	for (unsigned i = 0; i < depth; i++)
		line_close(lines[i]);
	close(epoll);
}

static enum driver_answer call(const char *key)
{
	return line_call(caller, key);
}

/* Each key is known to the server, or used up; of a million, each is new. */
static const char *prepare(const struct driver_work *work,
                           const char (*keys)[DRIVER_KEY_LEN])
{
	int times = strcmp(work->name, "deny") == 0    ? 2
	            : strcmp(work->name, "allow") == 0 ? work->keys <= KEYS_KNOWN
	                                               : 0;

	driver_must(driver_address != NULL, "a port");
	if (!caller)
		caller = line_open();
	while (times-- > 0)
		for (uint64_t id = 0; id < work->keys; id++)
			line_call(caller, keys[id]);
	return NULL;
}

static void fill(struct driver_turn *turn)
{
	for (uint64_t id = 0; id < turn->work->keys; id++)
		turn->tally.answers[line_call(caller, turn->keys[id])]++;
}

/* ---- Through a proxy ------------------------------------------------------------- */

static void *worker_open(void)
{
	return line_open();
}

static bool enter(void *worker)
{
	return line_call(worker, "client-000000000") == DRIVER_ALLOWED;
}

static void exit_none(void *worker)
{
	(void)worker;
}

static void worker_close(void *worker)
{
	line_close(worker);
}

int main(int argc, char **argv)
{
	static const struct driver_peer peer = {
		.prepare = prepare,
		.run = run,
		.call = call,
		.fill = fill,
		.is_proxy = true,
		.worker_open = worker_open,
		.enter = enter,
		.exit = exit_none,
		.worker_close = worker_close,
	};

	return driver_main(argc, argv, &peer);
}
