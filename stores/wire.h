/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.h -- a connection to a server, whatever it speaks.
 *
 * A wire knows a protocol and nothing of what is asked.  It connects, introduces itself
 * and learns the server's generation; then it carries batches there and what was told
 * back, in order.  It never blocks.
 *
 *     connect -> WIRE_OPENING -> WIRE_READY: send, on_reply -> WIRE_BROKEN: hang_up
 *
 * Invariants
 *
 *   B1  What was sent is replied to at most once, in the order it was sent; after
 *       WIRE_BROKEN or hang_up, never.
 *   B2  WIRE_AGAIN says that nothing of the batch was done.
 *
 * Threads   All of it: one at a time, the shard's actor.
 */
#ifndef STORES_WIRE_H
#define STORES_WIRE_H

#include <stdbool.h>

#include "engine/clock.h"
#include "stores/remote.h"

#define WIRE_TEXT 160 /* of what is wrong, at most */

struct wire;

/* Jobs that go in one call. */
struct remote_batch {
	uint64_t nonce;                /* comes back with the reply */
	const struct remote_job *jobs; /* where they are until it is replied to */
	size_t count;
	uint64_t guess_us; /* about what time it is at the server; 0: nobody knows */
};

enum wire_reply_kind {
	WIRE_TOLD, /* one for each job */
	WIRE_AGAIN, /* nothing was done: the generation is another, or the script unknown */
	WIRE_LATER, /* nothing was done: the server cannot now */
	WIRE_WRONG, /* it cannot be believed; what was done is not known */
};

struct wire_reply {
	uint64_t nonce;
	enum wire_reply_kind kind;
	const struct remote_told *told; /* until on_reply returns */
	size_t count;
};

struct wire_home {
	void (*on_reply)(struct wire_home *self, const struct wire_reply *reply);
};

enum wire_state {
	WIRE_OPENING,
	WIRE_READY,
	WIRE_BROKEN, /* said once; text says why */
};

struct wire_ops {
	/* Begins anew. */
	void (*connect)(struct wire *self, mono now);
	/* Reads and writes what can be, and hands in replies. */
	enum wire_state (*turn)(struct wire *self, mono now);
	/* When it is ready.  False: without memory, or there is too much under way. */
	bool (*send)(struct wire *self, const struct remote_batch *batch);
	void (*hang_up)(struct wire *self);
	void (*free)(struct wire *self); /* hangs up, too */
};

struct wire {
	const struct wire_ops *ops;
	struct wire_home *home;
	int watch_fd; /* an epoll that its descriptor is to be in; -1: none */

	/* True while it is ready. */
	uint64_t since_us;    /* when the server's generation began, by its clock */
	char text[WIRE_TEXT]; /* why it broke, or what the host should know */
};

#endif
