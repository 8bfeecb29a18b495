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
 * Of keys that meet at one place one is at hand, and the others are looked up; now and then,
 * by lot, another takes the place.  So the place needs no secret: a caller that chooses keys
 * that meet makes them as slow as keys that are not hot.
 *
 * Invariant
 *
 *   POCKET-1  All that is in a pocket was found when no more had been forgotten than it
 *             knows of, and said of its purse that it is at hand (purse_be_at_hand).
 *             As long as that is all, each purse in it is in the table, or was when the
 *             present read began; and one that is there without a cell has none, as far
 *             as this seat has seen.
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
#define POCKET_LOTS 16

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
	uint64_t lot;
};
static_assert(IS_WET(struct pocket, refuses) && IS_WET(struct pocket, times) &&
                  IS_WET(struct pocket, lot) && !IS_WET(struct pocket, known),
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

/* POCKET-1.  Readers had to forget something so many times, when this read began to look. */
static ALWAYS_INLINE bool pocket_is_good(const struct pocket *pocket,
                                         uint64_t forgotten)
{
	return pocket->known == forgotten;
}

/* Where the purse of that name is; NULL if it is not at hand.  The pocket is good. */
static ALWAYS_INLINE struct pocket_place *pocket_find(struct pocket *pocket,
                                                      const struct purse_name *name)
{
	struct pocket_place *place = &pocket->places[pocket_index(name)];

	return place->purse && LIKELY(purse_is(place->purse, name)) ? place : NULL;
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

/* One time in POCKET_LOTS.  Where keys meet, to put a key at hand each time costs more than a
 * lookup. */
static ALWAYS_INLINE bool pocket_draws(struct pocket *pocket)
{
	pocket->lot = pocket->lot * UINT64_C(0x5851F42D4C957F2D) + 1;
	return pocket->lot <= UINT64_MAX / POCKET_LOTS;
}

/* From now on nothing is at hand. */
void pocket_empty(struct pocket *pocket, uint64_t known);

/* A purse that was found after so much had been forgotten; not without a cell if there are any, or
 * there will be.                                                         POCKET-1 */
void pocket_put(struct pocket *pocket, uint64_t forgotten,
                const struct purse_name *name, struct purse *purse, struct cell *cell);

#endif
