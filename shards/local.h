/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * local.h -- what this node can answer by itself.
 *
 * Seats ask here first, and the actor serves calls that wait by the same words.  Nothing
 * here blocks, allocates, locks or enters the kernel.
 *
 * Threads   Any, within a grace period or with a pin on the purse; of a cell, its seat.
 */
#ifndef SHARDS_LOCAL_H
#define SHARDS_LOCAL_H

#include <string.h>

#include "engine/slot.h"
#include "runtime/hot.h"
#include "shards/lender.h"
#include "shards/purse.h"

/* What there is to tell of a word that lives. */
struct told {
	uint64_t units;   /* that remain; of a denial, the most that may be had */
	uint64_t left_ns; /* until the word dies */
};

static ALWAYS_INLINE struct told told_of(uint64_t word, uint64_t units, mono now)
{
	return (struct told){ units, credit_dies(word).ns - now.ns };
}

/* A meter may have refilled since, and a limit may have been lowered. */
static ALWAYS_INLINE uint64_t told_within(uint64_t limit, struct told told)
{
	return told.units < limit ? told.units : limit;
}

/*
 * The answer, as a literal: it goes straight to where it is told.  One that is made
 * elsewhere and copied costs as much as the rest of an ask.
 */
#define LOCAL_ALLOW(limit_now, told)                                                   \
	((struct gale_answer){                                                         \
	    .verdict = GALE_ALLOW,                                                     \
	    .why = GALE_WHY_CREDIT,                                                    \
	    .limit = (limit_now),                                                      \
	    .remaining = told_within(limit_now, told),                                 \
	    .reset_after_us = us_of_ns((told).left_ns),                                \
	})

/* A struct of its own is cleared by itself, and not with all that is told besides; and of a
 * vector, without a load. */
typedef uint64_t two_words __attribute__((vector_size(16)));

static ALWAYS_INLINE struct gale_slot local_no_slot(void)
{
	const two_words none = { 0, 0 };
	struct gale_slot slot;

	static_assert(sizeof(slot) == sizeof(none), "as large");
	memcpy(&slot, &none, sizeof(slot));
	return slot;
}

#define LOCAL_DENY(limit_now, told)                                                    \
	((struct gale_answer){                                                         \
	    .verdict = GALE_DENY,                                                      \
	    .why = GALE_WHY_SPENT,                                                     \
	    .limit = (limit_now),                                                      \
	    .remaining = (told).units,                                                 \
	    .reset_after_us = us_of_ns((told).left_ns),                                \
	    .retry_after_us = us_of_ns((told).left_ns),                                \
	    .delay_ns = 0,                                                             \
	    .slot = local_no_slot(),                                                   \
	})

/* What there is to tell of a store that grants nothing until then. */
static inline struct gale_answer local_quarantine(const struct lender *lender,
                                                  mono until, mono now)
{
	uint64_t left_us = until.ns > now.ns ? us_of_ns(until.ns - now.ns) : 0;

	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_QUARANTINE,
		.limit = load_relaxed(&lender->capacity),
		.reset_after_us = left_us,
		.retry_after_us = left_us,
	};
}

enum local {
	LOCAL_UNKNOWN,   /* the store must be asked */
	LOCAL_ELSEWHERE, /* not where it was looked for: no purse, too little, or not
	                    to be taken there */
	LOCAL_TAKEN,     /* from credit, of which that is left */
	LOCAL_REFUSED,   /* from memory, by a denial */
};

static ALWAYS_INLINE void local_tell(struct gale_answer *ret_answer,
                                     const struct lender *lender, enum local how,
                                     struct told told)
{
	uint64_t limit = load_relaxed(&lender->capacity);

	if (LIKELY(how == LOCAL_TAKEN))
		*ret_answer = LOCAL_ALLOW(limit, told);
	else
		*ret_answer = LOCAL_DENY(limit, told);
}

/* From memory. */
static ALWAYS_INLINE enum local local_refuse(struct purse *purse, mono now,
                                             uint64_t cost, struct told *ret_told)
{
	uint64_t word;

	if (!LIKELY(purse_refuses(purse, now, cost, &word)))
		return LOCAL_UNKNOWN;
	*ret_told = told_of(word, credit_units(word), now);
	return LOCAL_REFUSED;
}

/* From credit or from memory, whatever the cost: there are some above all units of a word. */
static inline enum local local_try(const struct lender *lender, struct purse *purse,
                                   uint32_t seat, mono now, uint64_t cost,
                                   struct told *ret_told)
{
	enum local how;
	uint64_t word;

	if (lender->lending == LENDING_UNITS &&
	    purse_take(purse, seat, now, cost, &word)) {
		*ret_told = told_of(word, purse_remaining(purse, seat, now, word), now);
		return LOCAL_TAKEN;
	}
	how = local_refuse(purse, now, cost, ret_told);
	return how == LOCAL_REFUSED && denial_is_quarantine(ret_told->units)
	           ? LOCAL_UNKNOWN
	           : how;
}

/* The seat's own cell, or NULL: it takes from the credit that all share. */
static ALWAYS_INLINE struct cell *local_cell(struct purse *purse, uint32_t seat)
{
	if (seat >= load_acquire(&purse->split)) /* celled */
		return NULL;
	return &load_relaxed(&purse->cells)->at[seat];
}

/* From a seat's own; LOCAL_ELSEWHERE: it has too little, or is dead.  Its rest dies when
 * the word did: that is known already.  Since what all share was looked at last, others may
 * have taken from it; if anything else has become of it, it is looked at again. */
static ALWAYS_INLINE enum local local_try_cell(struct purse *purse, struct cell *cell,
                                               mono now, uint64_t cost,
                                               struct told *ret_told)
{
	uint64_t word, shared;

	if (!LIKELY(load_relaxed(&cell->state) == CELL_OPEN))
		return LOCAL_UNKNOWN; /* something of its own may be in it */
	word = load_relaxed(&cell->credit);
	if (!LIKELY(credit_units(word) >= cost) || /* each: an allow jumps nowhere */
	    !LIKELY(credit_lives(word, now)))      /* CREDIT-1 */
		return LOCAL_ELSEWHERE;
	shared = load_relaxed(&purse->credit);
	if (!LIKELY(cell->beside - shared <= CREDIT_UNITS_MAX))
		return LOCAL_UNKNOWN;
	*ret_told =
	    told_of(word, credit_units(word - cost) + shared + cell->beyond, now);
	return LIKELY(cell_spend(cell, word - cost, cost)) ? LOCAL_TAKEN
	                                                   : LOCAL_UNKNOWN;
}

/* The store's rest, as far as it goes with a word that was loaded before. */
static ALWAYS_INLINE uint64_t local_rest(const struct purse *purse, uint64_t word)
{
	uint64_t rest = load_relaxed(&purse->rest);

	return LIKELY(rest_goes_with(rest, word)) /* REST-1 */
	           ? rest_units(rest, purse->lender->rest_grain)
	           : 0;
}

/* Has what all share too little in it? */
static ALWAYS_INLINE bool local_is_short(struct purse *purse, mono now, uint64_t cost)
{
	uint64_t word = load_relaxed(&purse->credit);

	return LIKELY(credit_units(word) < cost) || !credit_lives(word, now);
}

/* From what all share, if no other takes at this instant; LOCAL_ELSEWHERE: as above. */
static ALWAYS_INLINE enum local local_try_shared(struct purse *purse, mono now,
                                                 uint64_t cost, struct told *ret_told)
{
	uint64_t word = load_acquire(&purse->credit); /* spoken */

	if (!LIKELY(credit_units(word) >= cost) ||
	    !LIKELY(credit_lives(word, now))) /* CREDIT-1 */
		return LOCAL_ELSEWHERE;
	*ret_told =
	    told_of(word, credit_units(word - cost) + local_rest(purse, word), now);
	return LIKELY(swap_if_relaxed(&purse->credit, &word, word - cost))
	           ? LOCAL_TAKEN
	           : LOCAL_UNKNOWN;
}

/* From credit or from memory, if one word says it all; never LOCAL_ELSEWHERE. */
static ALWAYS_INLINE enum local local_try_word(struct purse *purse, struct cell *cell,
                                               mono now, uint64_t cost,
                                               struct told *ret_told)
{
	enum local how = cell ? local_try_cell(purse, cell, now, cost, ret_told)
	                      : local_try_shared(purse, now, cost, ret_told);

	if (LIKELY(how != LOCAL_ELSEWHERE))
		return how;
	if (cell && credit_covers(load_relaxed(&purse->credit), now, cost))
		return LOCAL_UNKNOWN; /* a slice can be had */
	return local_refuse(purse, now, cost, ret_told);
}

/* For asks about many keys: from what all share, unless threads fight over that, or, where
 * no seat has a cell, from memory; LOCAL_ELSEWHERE: it may be in a cell.  Where some keys have
 * cells and others have not, a processor does not foresee which is next. */
static ALWAYS_INLINE enum local local_try_unfought(struct purse *purse, mono now,
                                                   uint64_t cost, struct told *ret_told)
{
	enum local how;

	if (!LIKELY(!load_relaxed(&purse->fought)))
		return LOCAL_ELSEWHERE;
	how = local_try_shared(purse, now, cost, ret_told);
	if (LIKELY(how == LOCAL_TAKEN))
		return how;
	if (!purse_is_split(purse)) /* there is nothing else */
		return how == LOCAL_ELSEWHERE ? local_refuse(purse, now, cost, ret_told)
		                              : how;
	if (how == LOCAL_UNKNOWN) /* a swap was lost */
		purse_note_contention(purse);
	return how;
}

#endif
