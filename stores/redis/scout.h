/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scout.h -- asks sentinels which server is the primary, again and again.
 *
 *     connect -> SENTINEL GET-MASTER-ADDR-BY-NAME -> known -> asks again after a while
 *        ^                                             |
 *        '--------- the next sentinel <--- no answer --'
 *
 * A primary that was replaced may go on answering nodes that do not know.  While
 * anything is asked of it, a scout asks twice a second whether it still is the one; when
 * no sentinel answers, it is taken to be.
 *
 * Threads   Its link's.
 */
#ifndef STORES_REDIS_SCOUT_H
#define STORES_REDIS_SCOUT_H

#include "engine/clock.h"
#include "stores/names.h"
#include "stores/redis/reply.h"
#include "stores/redis/wire.h"

#define SCOUT_PAUSE_NS UINT64_C(500000000)

struct scout_config {
	struct gale_allocator *allocator;
	const struct names_found *sentinels; /* at least one; others when it likes */
	const char *service;
	const char *password; /* of the sentinels; "": none */
	struct watch watch;
	const struct tls *tls; /* NULL: it asks in plain */
};

struct scout {
	struct scout_config config;
	struct stream stream;
	struct redis_text out;
	struct redis_intake intake;
	size_t next;  /* sentinel to be asked */
	size_t tries; /* sentinels that did not answer, in a row */
	bool asking;  /* an answer is awaited */
	bool greeted;
	mono due; /* to ask again, or to give this sentinel up */
	struct stream_address primary;
	uint64_t answers; /* so far */
	uint64_t changes; /* of the primary */
	char why[192];    /* there is no answer; "": there is, or none was heard */
};

void scout_open(struct scout *scout, const struct scout_config *config);
void scout_close(struct scout *scout);

/* Keeps what it knows.  A scout that is not turned must not stay connected: what a
 * sentinel says then would wake the shard for ever. */
void scout_hang_up(struct scout *scout);
/* Asks anew, at the next turn. */
void scout_hurry(struct scout *scout);
/* Asks and hears. */
void scout_turn(struct scout *scout, mono now);
/* When it wants to be turned again. */
mono scout_due(const struct scout *scout, mono now);

#endif
