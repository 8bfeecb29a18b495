/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * straight.h -- the straight way of a call that several limiters decide: each part takes its units
 * from one word, or nothing is taken.
 *
 *     limiters, keys --find--> purses --take each--> all of them: add up
 *                                               '--> else: put back, and trial.h begins anew
 *
 * Nearly all calls go this way.  All of it is in line.  Where the number of parts is a constant, 1 or
 * 2, what a part has taken is in registers: so the first part is not in a loop with the others.  A
 * denial, credit that is short, and a swap that another thread wins are left to trial.h.
 *
 * Threads   The seat's own: within a grace period, or with a pin on each purse.
 */
#ifndef FACE_STRAIGHT_H
#define FACE_STRAIGHT_H

#include <gale/hold.h>

#include "engine/whole.h"
#include "face/quick.h"
#include "face/seat.h"
#include "shards/kept.h"

/* A part, and what it has taken. */
struct straight_part {
	struct gale_limiter *limiter;
	uint64_t cost;
	struct purse *purse;
	uint64_t voids;   /* of the purse, before anything was taken that may go back */
	struct told told; /* of what was taken */
};

/* The units that a part has taken, by which they can be given back. */
static ALWAYS_INLINE struct kept_units straight_kept(const struct straight_part *part,
                                                     mono now)
{
	return kept_of(part->purse, part->voids, part->cost, part->told, now);
}

/* The same, and until when they live, as one word. */
static ALWAYS_INLINE uint64_t straight_word(const struct straight_part *part, mono now)
{
	return kept_word(part->cost, part->told, now);
}

/* ---- In straight.c --------------------------------------------------------------- */

/* A long key, or one that is not near where its hash says; NULL: it has no purse. */
struct purse *straight_find_longer(const struct gale_seat *seat,
                                   const struct gale_part *part);
/* All of them go back; and the pin, if there is one. */
void straight_put_back(struct gale_seat *seat, struct kept_units kept, bool pinned);

/* ---- Finding --------------------------------------------------------------------- */

/* A part that gale_ask would be quick about. */
static ALWAYS_INLINE bool straight_is_plain(const struct gale_seat *seat,
                                            const struct gale_part *part)
{
	const struct gale_limiter *limiter = part->limiter;

	return LIKELY(limiter != NULL) &&
	       LIKELY(limiter->handle.runtime == seat->handle.runtime) &&
	       LIKELY(limiter->lender.lending == LENDING_UNITS) &&
	       LIKELY(cost_is_quick(&limiter->lender, part->cost)) &&
	       LIKELY(key_is_good(part->key, part->key_len));
}

static ALWAYS_INLINE struct purse *straight_find_purse(const struct gale_seat *seat,
                                                       const struct gale_part *part)
{
	struct purse_name name = { .lender = &part->limiter->lender,
		                   .key = part->key,
		                   .key_len = (uint16_t)part->key_len };
	struct purse *purse = NULL;

	if (LIKELY(hash_is_short(part->key_len))) {
		name.hash = hash_short(&name.lender->secret, name.key, part->key_len);
		purse = root_find_near(root_of(seat, name.hash), &name);
	}
	return LIKELY(purse != NULL) ? purse : straight_find_longer(seat, part);
}

/* False: it is not plain, or has no purse; or, as a part that is denied spares the others, something
 * is known to be denied there. */
static ALWAYS_INLINE bool straight_find_next(const struct gale_seat *seat,
                                             const struct gale_part *named,
                                             struct straight_part *part, bool is_only)
{
	if (!straight_is_plain(seat, named))
		return false;
	part->limiter = named->limiter;
	part->cost = named->cost;
	part->purse = straight_find_purse(seat, named);
	if (!LIKELY(part->purse != NULL) ||
	    !(is_only || LIKELY(load_relaxed(&part->purse->denial) == 0)))
		return false;
	purse_use(part->purse);
	return true;
}

/* The same of all of them. */
static ALWAYS_INLINE bool straight_find(const struct gale_seat *seat,
                                        const struct gale_part *named,
                                        struct straight_part *parts, size_t count)
{
	if (!straight_find_next(seat, &named[0], &parts[0], /* is_only= */ count == 1))
		return false;
	for (size_t i = 1; i < count; i++)
		if (!straight_find_next(seat, &named[i], &parts[i],
		                        /* is_only= */ false))
			return false;
	return true;
}

/* ---- Taking ---------------------------------------------------------------------- */

static ALWAYS_INLINE bool straight_take_part(struct straight_part *part, uint32_t seat,
                                             mono now, bool may_go_back)
{
	struct purse *purse = part->purse;
	struct cell *cell;

	if (may_go_back)
		part->voids = kept_voids(purse);
	cell = local_cell(purse, seat);
	if (!LIKELY(cell == NULL))
		return local_try_cell(purse, cell, now, part->cost, &part->told) ==
		       LOCAL_TAKEN;
	return LIKELY(local_try_shared(purse, now, part->cost, &part->told) ==
	              LOCAL_TAKEN);
}

/* So many of the parts have taken. */
static ALWAYS_INLINE void straight_undo(struct gale_seat *seat,
                                        const struct straight_part *parts, size_t count,
                                        mono now, bool holds)
{
	for (size_t i = 0; i < count; i++)
		straight_put_back(seat, straight_kept(&parts[i], now), holds);
}

/* Units that are not held go back only where a later part takes nothing.  False: nothing is taken. */
static ALWAYS_INLINE bool straight_take_next(struct gale_seat *seat,
                                             struct straight_part *parts, size_t i,
                                             size_t count, mono now, bool holds)
{
	bool may_go_back = holds || i + 1 < count;

	if (!LIKELY(straight_take_part(&parts[i], seat->number, now, may_go_back))) {
		straight_undo(seat, parts, i, now, holds);
		return false;
	}
	if (holds && !LIKELY(purse_pin(parts[i].purse))) {
		straight_undo(seat, parts, i, now, holds);
		straight_put_back(seat, straight_kept(&parts[i], now), false);
		return false;
	}
	return true;
}

/* The purses of a hold are pinned.  False: nothing is taken. */
static ALWAYS_INLINE bool straight_take(struct gale_seat *seat,
                                        struct straight_part *parts, size_t count,
                                        mono now, bool holds)
{
	if (!straight_take_next(seat, parts, 0, count, now, holds))
		return false;
	for (size_t i = 1; i < count; i++)
		if (!straight_take_next(seat, parts, i, count, now, holds))
			return false;
	return true;
}

/* ---- Telling --------------------------------------------------------------------- */

/* It has taken, and is counted. */
static ALWAYS_INLINE struct gale_answer straight_tell(const struct gale_seat *seat,
                                                      const struct straight_part *part)
{
	const struct lender *lender = &part->limiter->lender;
	uint64_t limit = load_relaxed(&lender->capacity);

	score_add(seat_score(seat, lender), GALE_ALLOW, GALE_WHY_CREDIT, 1);
	return LOCAL_ALLOW(limit, part->told);
}

/* All of them have; one says all that there is to say. */
static ALWAYS_INLINE struct gale_answer
straight_tell_all(const struct gale_seat *seat, const struct straight_part *parts,
                  size_t count, size_t *ret_binding)
{
	struct whole whole = whole_begin();
	struct gale_answer answer;

	*ret_binding = 0;
	if (count == 1)
		return straight_tell(seat, &parts[0]);
	answer = straight_tell(seat, &parts[0]);
	whole_add(&whole, 0, &answer);
	for (size_t i = 1; i < count; i++) {
		answer = straight_tell(seat, &parts[i]);
		whole_add(&whole, i, &answer);
	}
	*ret_binding = whole.binding;
	return whole_answer(&whole);
}

#endif
