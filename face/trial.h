/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trial.h -- what several limiters let a call take from credit: all of it, or nothing.
 *
 *     purses, costs -> is one known to deny? -> take each -> all: add up
 *                                                        |-> one denies: put back
 *                                                        '-> some lack credit: pin the others
 *
 * All of the straight way is in line, so that a call is one function; the rest is in trial.c.
 *
 * Threads   The seat's own: within a grace period, or with a pin on each purse.
 */
#ifndef FACE_TRIAL_H
#define FACE_TRIAL_H

#include <gale/hold.h>

#include "engine/whole.h"
#include "face/quick.h"
#include "face/seat.h"
#include "shards/kept.h"

/* A part, and what it has taken. */
struct trial_part {
	struct gale_limiter *limiter;
	uint64_t cost;
	struct purse *purse; /* NULL: there is none */
	uint64_t voids;      /* of the purse, before anything was taken */
	struct told told;    /* of what was taken, or of what denies */
	struct kept_units
	    kept; /* what was taken, pinned; no purse: nothing can go back */
};

struct trial {
	struct gale_seat *seat;
	const struct gale_part *named; /* limiters and keys, for a shard */
	mono now;
	size_t count;
	size_t binding;   /* the part that denies */
	uint64_t denials; /* of any of the purses */
	uint32_t unknown; /* parts that a shard must be asked about, a bit each */
	struct trial_part parts[GALE_PARTS_MAX];
	struct gale_answer answers[GALE_PARTS_MAX]; /* of the binding part; of each,
	                                               when shards were asked */
};

static inline bool trial_has_taken(const struct trial *trial, size_t i)
{
	return !(trial->unknown & UINT32_C(1) << i);
}

/* The units that a part has taken, by which they can be given back. */
static inline struct kept_units trial_kept(const struct trial *trial, size_t i)
{
	const struct trial_part *part = &trial->parts[i];

	return kept_of(part->purse, part->voids, part->cost, part->told, trial->now);
}

/* ---- In trial.c ------------------------------------------------------------------ */

/* Is a part known to be denied?  It is the binding one then, and nothing is taken. */
bool trial_is_denied(struct trial *trial);
/* No single word says it all. */
enum local trial_take_longer(const struct trial *trial, struct trial_part *part);
/* The units that a part has taken go back. */
void trial_put_back(struct trial *trial, size_t i);
/* Another has been faster than this call, and that part is denied now. */
void trial_undo(struct trial *trial, size_t denied, bool holds);
/* A shard must be asked about others: what has been taken is kept, and pinned, as it is already for
 * a hold.  A purse that is about to be evicted cannot be: then what was taken stays taken. */
void trial_keep(struct trial *trial, bool holds);
/* The answers of those that have taken. */
void trial_tell_taken(struct trial *trial);

/* ---- The straight way ------------------------------------------------------------ */

static ALWAYS_INLINE enum local trial_take_part(const struct trial *trial,
                                                struct trial_part *part, uint32_t seat,
                                                mono now)
{
	struct purse *purse = part->purse;
	enum local how;

	part->voids = kept_voids(purse);
	how = local_try_word(purse, local_cell(purse, seat), now, part->cost,
	                     &part->told);
	return LIKELY(how == LOCAL_TAKEN) || how == LOCAL_REFUSED
	           ? how
	           : trial_take_longer(trial, part);
}

/* Without a purse nothing would bound a hold: a shard is asked. */
static ALWAYS_INLINE enum local trial_hold_part(struct trial *trial, size_t i)
{
	if (LIKELY(purse_pin(trial->parts[i].purse)))
		return LOCAL_TAKEN;
	trial_put_back(trial, i);
	return LOCAL_UNKNOWN;
}

static ALWAYS_INLINE bool trial_take_each(struct trial *trial, bool holds)
{
	const uint32_t seat = trial->seat->number;
	const mono now = trial->now;

	for (size_t i = 0; i < trial->count; i++) {
		struct trial_part *part = &trial->parts[i];
		enum local how = LOCAL_UNKNOWN;

		if (LIKELY(part->purse != NULL))
			how = trial_take_part(trial, part, seat, now);
		if (holds && LIKELY(how == LOCAL_TAKEN))
			how = trial_hold_part(trial, i);
		if (LIKELY(how == LOCAL_TAKEN))
			continue;
		if (how == LOCAL_REFUSED) {
			trial_undo(trial, i, holds);
			return false;
		}
		trial->unknown |= UINT32_C(1) << i;
	}
	return true;
}

/* From credit and from memory; the seat, the time, limiters, costs, purses and denials are there.
 * A part that is known to be denied spares the others: none of them is taken.  For a hold what is
 * taken is pinned.  False: a part is denied, and nothing is taken. */
static ALWAYS_INLINE bool trial_take(struct trial *trial, bool holds)
{
	trial->unknown = 0;
	return !(!LIKELY(trial->denials == 0) && trial_is_denied(trial)) &&
	       trial_take_each(trial, holds);
}

/* All have taken, and the next one is counted. */
static ALWAYS_INLINE void trial_add(const struct trial *trial, size_t i,
                                    struct whole *whole)
{
	const struct trial_part *part = &trial->parts[i];
	const struct lender *lender = &part->limiter->lender;
	uint64_t limit = load_relaxed(&lender->capacity);
	struct gale_answer answer = LOCAL_ALLOW(limit, part->told);

	score_add(seat_score(trial->seat, lender), GALE_ALLOW, GALE_WHY_CREDIT, 1);
	whole_add(whole, i, &answer);
}

#endif
