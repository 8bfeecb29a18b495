/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * block.h -- places in a pacer's queue, booked for this node in one round trip.
 *
 *      first                                       first + count * T
 *        |----|----|----|----|----|----|----|----|----|
 *          taken, or past      next ->
 *
 * The store has booked the whole run, so no other node of the fleet has these places, and
 * they are exactly T apart.  Any thread takes the next one that has not passed yet.
 *
 * Invariants
 *
 *   BLOCK-1  A place is handed out once, and not after it has passed. (law P)
 *   BLOCK-2  What is left when the block is closed is handed out no more: it can be
 *            given back.
 *
 * Threads   block_take: any, within a grace period.  The rest: the shard's actor.
 *
 * Ordering
 *
 *   next is relaxed: it hands out numbers, and publishes nothing.
 */
#ifndef SHARDS_BLOCK_H
#define SHARDS_BLOCK_H

#include <stdalign.h>
#include <stdbool.h>

#include "engine/clock.h"
#include "engine/rule.h"
#include "runtime/atomic.h"
#include "shards/part.h"

struct block {
	struct part part;      /* first */
	struct rule rule;      /* that they were booked under */
	mono first;            /* on this node's clock ... */
	struct gale_slot slot; /* ... and on the store's */
	uint64_t count;
	uint64_t left; /* what else the store would have booked */
	alignas(CACHE_LINE) _Atomic uint64_t next; /* the first that is free */
};

/* cost places in a row, from the first on that has not passed and leaves not later than
 * latest; false if there are not so many.  The answer is as the store would have given
 * it. */
bool block_take(struct block *block, mono now, uint64_t cost,
                struct gale_answer *ret_answer);

/* How many are left; and none from here on. */
uint64_t block_left(const struct block *block, mono now);
uint64_t block_close(struct block *block, mono now);

#endif
