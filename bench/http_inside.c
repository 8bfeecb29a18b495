/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_inside.c -- asks inside a server that knows nothing of gale, such as nginx.
 *
 * Loaded before the server's libraries (LD_PRELOAD), it sees what the server receives and
 * finds each request's X-Api-Key, for which it prefetches; it asks when the server has read
 * the request and opens the page, or else when it writes, and ticks when the server's loop
 * has turned: as a module of that server would.  The limit is out of reach, what is leased
 * lasts, and what is answered changes nothing: this is for gale_http to measure, against a
 * server in which it is loaded, too, and finds the key, but is told not to ask.  The
 * server's one thread takes gale's turns, too: a second one would make each of its system
 * calls dearer.
 *
 * Threads   The one that serves.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <gale/gale.h>

#include "bench/http_timed.h"

#define CLIENTS (1 << 20)
#define LIMIT UINT64_C(1000000000000)
#define UNITS 1000000 /* of a key, at once */
#define TURN_EVERY 64 /* turns of the server's, when nothing is pending */
#define NAME "\r\nX-Api-Key: "
#define UNDECIDED_MOST 64
#define SEEN __attribute__((visibility("default")))

static struct gale_seat *seat;
static struct gale_runtime *runtime;
static struct gale_limiter *limiter;
static unsigned pending; /* asks, in need of being taken */
static bool is_off;      /* it looks for keys, and does not ask */

/* Keys of requests that were received and are not decided yet, where the server has them:
 * those of gale_http are all answered before the server gives that memory up. */
struct undecided {
	const char *key;
	size_t key_len;
};
static struct undecided undecided[UNDECIDED_MOST];
static unsigned first, last; /* they come and go; % UNDECIDED_MOST */

__attribute__((constructor)) static void look_around(void)
{
	is_off = getenv(INSIDE_OFF) != NULL;
}

static enum gale_err open_limits(void)
{
	struct gale_config config = { .shards = 1, .max_keys = CLIENTS, .turns = true };
	struct gale_store_config store = { .max_keys = CLIENTS };
	struct gale_limiter_config keys = {
		.name = "keys",
		.rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED, .batch = UNITS },
	};
	enum gale_err err = gale_runtime_open(&config, &runtime);

	if (err == GALE_ERR_OK)
		err = gale_store_open(runtime, &store, &keys.store);
	if (err == GALE_ERR_OK)
		err = gale_limiter_open(runtime, &keys, &limiter);
	if (err == GALE_ERR_OK)
		err = gale_join(runtime, &seat);
	return err;
}

/* With the first request: the server has become what it is going to be by then. */
static void begin(void)
{
	enum gale_err err = open_limits();

	if (err == GALE_ERR_OK)
		return;
	fprintf(stderr, "http_inside: %s\n", gale_err_text(err));
	exit(1);
}

static void take_turns(void)
{
	struct gale_completion done[64];
	size_t count;

	while (gale_turn(runtime) > 0)
		continue;
	do {
		count = gale_seat_completions(seat, done, 64);
		pending -= (unsigned)count;
	} while (count == 64);
}

static void decide(void)
{
	const struct undecided *it = &undecided[first % UNDECIDED_MOST];

	if (first == last)
		return;
	first++;
	pending += gale_ask(seat, limiter, it->key, it->key_len, 1, NULL).verdict ==
	           GALE_PENDING;
}

static void expect(const char *key, const char *end)
{
	const char *line_end = memchr(key, '\r', (size_t)(end - key));
	struct undecided it = { key, line_end ? (size_t)(line_end - key) : 0 };

	if (!line_end || is_off)
		return;
	if (!seat)
		begin();
	if (last - first == UNDECIDED_MOST)
		decide();
	undecided[last++ % UNDECIDED_MOST] = it;
	gale_prefetch(seat, limiter, it.key, it.key_len);
}

/* The library's own.  C has no cast for that. */
static void find(const char *name, void *ret_function)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort();
	memcpy(ret_function, &found, sizeof(found));
}

/* A request that comes in parts is missed; those of gale_http come whole. */
SEEN ssize_t recv(int fd, void *bytes, size_t most, int flags)
{
	static ssize_t (*receive)(int, void *, size_t, int);
	const char *at = bytes, *end;
	ssize_t count;

	if (!receive)
		find("recv", &receive);
	while (first != last)
		decide(); /* what is received may take the place of their keys */
	count = receive(fd, bytes, most, flags);
	end = at + (count > 0 ? count : 0);
	while ((at = memmem(at, (size_t)(end - at), NAME, strlen(NAME)))) {
		at += strlen(NAME);
		expect(at, end);
	}
	return count;
}

SEEN int open64(const char *path, int flags, ...)
{
	static int (*open)(const char *, int, ...);
	va_list more;
	mode_t mode;

	if (!open)
		find("open64", &open);
	decide();
	va_start(more, flags);
	mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE
	           ? va_arg(more, mode_t)
	           : 0;
	va_end(more);
	return open(path, flags, mode);
}

SEEN ssize_t writev(int fd, const struct iovec *parts, int count)
{
	static ssize_t (*write)(int, const struct iovec *, int);

	if (!write)
		find("writev", &write);
	decide();
	return write(fd, parts, count);
}

SEEN int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	static int (*wait)(int, struct epoll_event *, int, int);
	static unsigned turns;
	int count;

	if (!wait)
		find("epoll_wait", &wait);
	count = wait(fd, events, most, timeout_ms);
	if (seat)
		gale_tick(seat);
	if (seat && (pending > 0 || ++turns % TURN_EVERY == 0))
		take_turns();
	return count;
}
