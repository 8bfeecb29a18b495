/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* caller.c -- messages go out in batches; the backend always reads, so that sending is short. */
#define _GNU_SOURCE
#include "tools/caller.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PINGS 4 /* in the abort time */
#define PING_MOST_NS 100000000

bool caller_open(struct caller *caller, const struct backend *backend, uint32_t node,
                 uint64_t abort_us, struct caller_taker *taker)
{
	memset(caller, 0, sizeof(*caller));
	caller->node = node;
	caller->taker = taker;
	caller->ping_ns = abort_us > 0 ? 1000 * abort_us / PINGS : PING_MOST_NS;
	caller->sent_ns = caller->now_ns = backend_now_ns();
	caller->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (caller->fd >= 0 &&
	    connect(caller->fd, (const struct sockaddr *)&backend->address,
	            backend->address_bytes) == 0)
		return true;
	caller_close(caller);
	return false;
}

void caller_close(struct caller *caller)
{
	if (caller->fd >= 0)
		close(caller->fd);
	caller->fd = -1;
}

void caller_begin_turn(struct caller *caller)
{
	caller->now_ns = backend_now_ns();
}

/* ---- Sending --------------------------------------------------------------------- */

static void flush(struct caller *caller)
{
	const char *at = (const char *)caller->batch;
	size_t left = caller->count * sizeof(caller->batch[0]);

	while (left > 0 && !caller->is_over) {
		ssize_t sent = send(caller->fd, at, left, MSG_NOSIGNAL);

		if (sent < 0) {
			caller->is_over = errno != EINTR;
			continue;
		}
		at += sent;
		left -= (size_t)sent;
	}
	caller->count = 0;
}

static void say(struct caller *caller, enum backend_order order, uint64_t number,
                uint64_t takes_us)
{
	if (caller->count == CALLER_BATCH)
		flush(caller);
	caller->batch[caller->count++] =
	    (struct backend_message){ .order = order,
		                      .node = caller->node,
		                      .number = number,
		                      .takes_us = takes_us,
		                      .sent_ns = caller->now_ns };
	caller->sent_ns = caller->now_ns;
}

void caller_call(struct caller *caller, uint64_t number, uint64_t takes_us)
{
	say(caller, BACKEND_CALL, number, takes_us);
}

void caller_cancel(struct caller *caller)
{
	say(caller, BACKEND_CANCEL, 0, 0);
}

/* ---- Receiving ------------------------------------------------------------------- */

static void tell_replies(struct caller *caller)
{
	const size_t one = sizeof(struct backend_reply);
	size_t used = 0;

	for (; caller->filled - used >= one; used += one) {
		struct backend_reply reply;

		memcpy(&reply, caller->replies + used, one);
		caller->taker->ended(caller->taker, reply.number,
		                     (enum backend_end)reply.end);
	}
	caller->filled -= used;
	memmove(caller->replies, caller->replies + used, caller->filled);
}

static void receive(struct caller *caller)
{
	ssize_t count;

	do {
		count = recv(caller->fd, caller->replies + caller->filled,
		             sizeof(caller->replies) - caller->filled, MSG_DONTWAIT);
		if (count > 0)
			caller->filled += (size_t)count;
		tell_replies(caller);
	} while (count > 0 || (count < 0 && errno == EINTR));
	if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
		caller->is_over = true;
}

static void wait_for_reply(struct caller *caller, uint64_t until_ns)
{
	uint64_t ping_at_ns = caller->sent_ns + caller->ping_ns,
		 now_ns = backend_now_ns(), wait_ns = 0;
	struct pollfd reply = { .fd = caller->fd, .events = POLLIN };
	struct timespec wait;

	if (until_ns > ping_at_ns)
		until_ns = ping_at_ns;
	if (until_ns > now_ns)
		wait_ns = until_ns - now_ns;
	wait = (struct timespec){ (time_t)(wait_ns / 1000000000),
		                  (long)(wait_ns % 1000000000) };
	(void)ppoll(&reply, 1, &wait, NULL);
}

bool caller_turn(struct caller *caller, uint64_t until_ns)
{
	if (caller->count == 0 && caller->now_ns >= caller->sent_ns + caller->ping_ns)
		say(caller, BACKEND_PING, 0, 0);
	flush(caller);
	if (!caller->is_over)
		wait_for_reply(caller, until_ns);
	if (!caller->is_over)
		receive(caller);
	return !caller->is_over;
}
