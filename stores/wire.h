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
 *   WIRE-1  What was sent is replied to at most once, in the order it was sent; after
 *           WIRE_BROKEN or hang_up, never.
 *   WIRE-2  WIRE_AGAIN, WIRE_NOT_NOW, WIRE_MOVED and WIRE_ASK say that nothing of the
 *           batch was done.
 *
 * Buckets.  A server may be one of many that share the keys by buckets.  Each bucket has a
 * generation of its own then, and the wire does not ask for it: a batch without jobs does,
 * and is replied to with it.
 *
 * Pulses.  A server that was asked nothing for a while may have gone without a word,
 * or forgotten: a batch without jobs finds that out, too.
 *
 * Threads   All of it: one at a time, the shard's actor.
 */
#ifndef STORES_WIRE_H
#define STORES_WIRE_H

#include <stdbool.h>

#include "engine/clock.h"
#include "runtime/wake.h"
#include "stores/remote.h"

#define WIRE_TEXT 256         /* of what is wrong, at most */
#define WIRE_WHERE 64         /* of where a server is: STREAM_NAME */
#define WIRE_PATIENCE_MS 1000 /* for a batch to be told; no call waits longer */

struct wire;

/* Jobs that go in one call. */
struct remote_batch {
	uint64_t nonce;                /* comes back with the reply */
	const struct remote_job *jobs; /* where they are until it is replied to */
	size_t count;
	uint64_t guess_us; /* about what time it is at the server; 0: not known */
	uint64_t
	    told_us; /* when it last told on this connection, by its clock; 0: never */

	/* Of a wire by buckets. */
	uint8_t bucket; /* of all its keys */
	bool asking;    /* the bucket is on its way there, and another node said so */
	struct remote_bytes generation; /* of the bucket */
};

/* Where another server is. */
struct wire_place {
	const char *host; /* "": where the server is that says so */
	uint16_t port;
};

enum wire_reply_kind {
	WIRE_TOLD, /* one for each job */
	WIRE_AGAIN, /* nothing was done: the generation is another, or the script unknown */
	WIRE_NOT_NOW, /* nothing was done: it may be in a moment */
	WIRE_MOVED,   /* nothing was done: the bucket is in another place */
	WIRE_ASK,     /* nothing was done: some of the bucket is in another place */
	WIRE_LATER,   /* the server cannot now: nothing was done, or nothing that may be
	             * counted on */
	WIRE_WRONG,   /* it cannot be believed; what was done is not known */
};

struct wire_reply {
	uint64_t nonce;
	enum wire_reply_kind kind;
	const struct remote_told *told; /* until on_reply returns; so for the others */
	size_t count;
	struct wire_place place;        /* WIRE_MOVED, WIRE_ASK */
	struct remote_bytes generation; /* WIRE_TOLD of a batch without jobs ... */
	uint64_t since_us;              /* ... and when it began */
};

struct wire_home {
	void (*on_reply)(struct wire_home *self, const struct wire_reply *reply);
	/* Of a group that has beaten on this wire, or of another.  NULL: it hears none. */
	void (*on_nudge)(struct wire_home *self, const struct store_nudge *nudge);
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
	/* When it is ready, after a send: writes what can be, and reads nothing.  NULL: a
	 * turn does. */
	enum wire_state (*flush)(struct wire *self);
	void (*hang_up)(struct wire *self);
	void (*free)(struct wire *self); /* hangs up, too */
};

struct wire {
	const struct wire_ops *ops;
	struct wire_home *home;
	struct watch watch; /* its descriptor is to be in there, if there is one */
	bool by_buckets;    /* see above */
	bool has_pulses;    /* the same */
	bool hears;         /* its home wants nudges.  STORE-10 */

	/* While it opens, or a batch is under way: when it wants to be turned though nothing
	 * is heard; 0: it does not. */
	mono due;

	/* True while it is ready. */
	uint64_t since_us;    /* when the server's generation began, by its clock */
	char text[WIRE_TEXT]; /* why it broke, or what the host should know */

	const char
	    *waits_for; /* while it opens: what has not come yet; NULL: not known */
	char
	    where[WIRE_WHERE]; /* which of many servers it leads to; "": there is one */
};

#endif
