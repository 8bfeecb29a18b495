/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * score.h -- how many asks of each limiter got which answer, counted by each seat.
 *
 *     a limiter's number -> which chunk of the seat's, and where in it -> a score
 *
 * A seat has a score for each limiter of its runtime.  They are made when a limiter is
 * opened and when a seat joins, so an ask finds its own without a look whether there is
 * one.  Chunks of them are made, each twice as large as the one before, and never move.
 *
 * Invariants
 *
 *   SCORE-1  A seat that is listed has a score for each limiter that is listed.
 *   SCORE-2  All of a number's scores are 0 while no limiter has the number.  A seat's
 *            counts are added to its limiters when it dies, and a limiter's counts go
 *            to another of its name when it dies, or else to the runtime.
 *   SCORE-3  An ask is counted once, by the thread of its seat, as it is told the
 *            answer.
 *
 * Threads   A score is added to by its seat's thread and read by any, so its words are
 *           relaxed.  Lists, numbers and sums are under the runtime's lock.  The pointer
 *           to a chunk is written before the limiter that is counted there is given to
 *           the host.
 */
#ifndef FACE_SCORE_H
#define FACE_SCORE_H

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>

#include <gale/rule.h>

#include "runtime/atomic.h"
#include "runtime/hot.h"

#define SCORE_WHYS GALE_WHY_SLOT /* from there on they are of guards */

/* Nearly all that is ever counted is allowed from credit or denied from memory. */
struct score {
	alignas(WET_ALIGN) uint64_t unused;
	_Atomic uint64_t counts[SCORE_WHYS][2]; /* by the reason; denied, allowed */
};
static_assert(IS_WET(struct score, counts[GALE_WHY_CREDIT][1]) &&
                  IS_WET(struct score, counts[GALE_WHY_SPENT][0]),
              "see hot.h");

/* The same of several seats, or of limiters. */
struct score_sum {
	uint64_t counts[SCORE_WHYS][2];
	uint64_t dropped; /* asks whose seat left before their answer was told */
};

/* A seat's chunks.  Every ask reads one of these, so none is where it is wet (hot.h). */
#define SCORE_SLOTS 24
#define SCORE_DRY 12 /* slots before those that are wet */
#define SCORE_WET 4
#define SCORE_SLOT_MASK 31u /* a score is much longer than that: the rest says where */
struct scores {
	alignas(CACHE_LINE) struct score *chunks[SCORE_SLOTS];
};
static_assert(SCORE_SLOTS <= SCORE_SLOT_MASK + 1 &&
                  sizeof(struct score) % (SCORE_SLOT_MASK + 1) == 0,
              "both fit in a word");

static ALWAYS_INLINE struct score *score_at(const struct scores *scores, uint32_t place)
{
	char *chunk = (char *)scores->chunks[place & SCORE_SLOT_MASK];

	return (struct score *)(chunk + (place & ~SCORE_SLOT_MASK));
}

static ALWAYS_INLINE void score_add(struct score *score, enum gale_verdict verdict,
                                    enum gale_why why, uint64_t count)
{
	_Atomic uint64_t *it = &score->counts[why][verdict == GALE_ALLOW];

	store_relaxed(it, load_relaxed(it) + count);
}

#endif
