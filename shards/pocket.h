/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pocket.h -- the purses that a seat has at hand.
 *
 * A key that is hot is asked for again and again, and to hash it and to look it up takes
 * longer than to take from its cell.  So a seat remembers the purses that it has cells in,
 * and one that refuses it time after time, each at a place that follows from the words of
 * its key:
 *
 *     key, lender -> place -> purse: of that name?  -> cell
 *
 * Two keys that meet at one place are at hand in turns, and a key that is not at hand is
 * looked up.  So the place needs no secret: who chooses keys that meet makes them no
 * slower than keys that are not hot.
 *
 * Invariant
 *
 *   X1  All that is in a pocket was found when no more had been forgotten than it knows of,
 *       and its purse was told (PURSE_AT_HAND).  As long as that is all, each purse in
 *       it is in the table, or was when the present read began.
 *
 * Threads   Its seat's, within a grace period.
 */
#ifndef SHARDS_POCKET_H
#define SHARDS_POCKET_H

#include <assert.h>
#include <stdint.h>

#include "runtime/hot.h"
#include "shards/purses.h"

#define POCKET_BITS 6
#define POCKET_PLACES (1 << POCKET_BITS)
#define POCKET_KEY_LEAST 8 /* bytes: of which the first word and the last are taken */
#define POCKET_TIMES 8     /* in a row that a purse refuses, before it is at hand */

#define POCKET_NOTHING UINT64_MAX /* is in it: no place needs to be looked at */

struct pocket_place {
	struct purse *purse; /* NULL: nothing is here */
	struct cell *cell;   /* of the seat, or NULL */
};

struct pocket {
	struct pocket_place places[POCKET_PLACES];
	uint64_t known; /* so much had been forgotten when all of it was found; or
	                   POCKET_NOTHING */
	uint64_t unused[3];
	const struct purse *refuses; /* the last that did and was not at hand; it may be
	                                another key's by now */
	uint64_t times;              /* in a row */
};
static_assert(IS_WET(struct pocket, refuses) && IS_WET(struct pocket, times) &&
                  !IS_WET(struct pocket, known),
              "see hot.h");

static ALWAYS_INLINE bool pocket_may_have(size_t key_len)
{
	return key_len >= POCKET_KEY_LEAST;
}

static ALWAYS_INLINE uint64_t pocket_index(const struct purse_name *name)
{
	uint64_t sum = eight_at(name->key) + eight_at(name->key + name->key_len - 8) +
	               (uintptr_t)name->lender;

	return sum * UINT64_C(0x9E3779B97F4A7C15) >> (64 - POCKET_BITS);
}

/* X1.  So often had readers to forget something, when this read began to look. */
static ALWAYS_INLINE bool pocket_is_good(const struct pocket *pocket,
                                         uint64_t forgotten)
{
	return pocket->known == forgotten;
}

/* The purse of that name, and the cell; none if it is not at hand.  The pocket is good. */
static ALWAYS_INLINE struct pocket_place pocket_find(const struct pocket *pocket,
                                                     const struct purse_name *name)
{
	struct pocket_place place = pocket->places[pocket_index(name)];

	if (place.purse && LIKELY(purse_is(place.purse, name)))
		return place;
	return (struct pocket_place){ 0 };
}

/* It has refused; does it so time after time? */
static ALWAYS_INLINE bool pocket_wants(struct pocket *pocket, const struct purse *purse)
{
	if (pocket->refuses == purse)
		return ++pocket->times >= POCKET_TIMES;
	pocket->refuses = purse;
	pocket->times = 0;
	return false;
}

/* From now on nothing is at hand. */
void pocket_empty(struct pocket *pocket, uint64_t known);

/* What was found after so much had been forgotten.                                X1 */
void pocket_put(struct pocket *pocket, uint64_t forgotten,
                const struct purse_name *name, struct purse *purse, struct cell *cell);

#endif
