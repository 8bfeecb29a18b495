/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * local.h -- what this node can answer by itself.
 *
 * Seats ask here first, and the actor serves those who wait by the same words.  Nothing
 * here blocks, allocates, locks or enters the kernel.
 *
 * Threads   Any, within a grace period or with a pin on the purse; of a cell, its seat.
 */
#ifndef SHARDS_LOCAL_H
#define SHARDS_LOCAL_H

#include "runtime/hot.h"
#include "shards/lender.h"
#include "shards/purse.h"

/* What there is to tell of a word that lives. */
struct told {
	uint64_t units;   /* that are left in it */
	uint64_t left_ns; /* until it dies */
};

static ALWAYS_INLINE struct told told_of(uint64_t word, mono now)
{
	return (struct told){ credit_units(word), credit_dies(word).ns - now.ns };
}

/*
 * The answer, as a literal: it goes straight to where it is told.  One that is made
 * elsewhere and copied costs as much as the rest of an ask.
 */
#define LOCAL_ALLOW(lender, told)                                                      \
	((struct gale_answer){                                                         \
	    .verdict = GALE_ALLOW,                                                     \
	    .why = GALE_WHY_CREDIT,                                                    \
	    .limit = (lender)->rule.capacity,                                          \
	    .remaining = (told).units,                                                 \
	    .reset_after_us = (told).left_ns / 1000,                                   \
	})

/* A struct of its own is cleared by itself, and not with all that is told besides. */
static const struct gale_slot local_no_slot;

/* The denial says what cannot be had: what remains is less. */
#define LOCAL_DENY(lender, told)                                                       \
	((struct gale_answer){                                                         \
	    .verdict = GALE_DENY,                                                      \
	    .why = GALE_WHY_SPENT,                                                     \
	    .limit = (lender)->rule.capacity,                                          \
	    .remaining = (told).units - 1,                                             \
	    .reset_after_us = (told).left_ns / 1000,                                   \
	    .retry_after_us = (told).left_ns / 1000,                                   \
	    .delay_ns = 0,                                                             \
	    .slot = local_no_slot,                                                     \
	})

enum local {
	LOCAL_UNKNOWN,   /* the store must be asked */
	LOCAL_ELSEWHERE, /* there is no purse where it was looked for */
	LOCAL_TAKEN,     /* from credit, of which that is left */
	LOCAL_REFUSED,   /* from memory, by a denial of so much */
};

static ALWAYS_INLINE void local_tell(struct gale_answer *ret_answer,
                                     const struct lender *lender, enum local how,
                                     struct told told)
{
	if (LIKELY(how == LOCAL_TAKEN))
		*ret_answer = LOCAL_ALLOW(lender, told);
	else
		*ret_answer = LOCAL_DENY(lender, told);
}

/* From memory. */
static ALWAYS_INLINE enum local local_refuse(struct purse *purse, mono now,
                                             uint64_t cost, struct told *ret_told)
{
	uint64_t word;

	if (!purse_refuses(purse, now, cost, &word))
		return LOCAL_UNKNOWN;
	*ret_told = told_of(word, now);
	return LOCAL_REFUSED;
}

/* From credit or from memory. */
static inline enum local local_try(const struct lender *lender, struct purse *purse,
                                   uint32_t seat, mono now, uint64_t cost,
                                   struct told *ret_told)
{
	uint64_t word;

	if (lender->lending != LENDING_UNITS ||
	    !purse_take(purse, seat, now, cost, &word))
		return local_refuse(purse, now, cost, ret_told);
	*ret_told = told_of(word, now);
	return LOCAL_TAKEN;
}

/* The seat's own cell, or NULL: it takes from the credit that all share. */
static ALWAYS_INLINE struct cell *local_cell(struct purse *purse, uint32_t seat)
{
	if (seat >= load_acquire(&purse->split)) /* celled */
		return NULL;
	return &load_relaxed(&purse->cells)->at[seat];
}

/* What was there is in *word, and covers the cost. */
static ALWAYS_INLINE bool local_spend(struct purse *purse, struct cell *cell,
                                      uint64_t *word, uint64_t cost)
{
	return cell ? cell_spend(cell, *word, cost)
	            : swap_if_relaxed(&purse->credit, word, *word - cost); /* U1 */
}

/* From credit or from memory, if one word says it all. */
static ALWAYS_INLINE enum local local_try_word(struct purse *purse, struct cell *cell,
                                               mono now, uint64_t cost,
                                               struct told *ret_told)
{
	uint64_t word;

	if (cell && !LIKELY(load_relaxed(&cell->state) == CELL_OPEN))
		return LOCAL_UNKNOWN; /* something of its own may be in it */
	word = load_relaxed(cell ? &cell->credit : &purse->credit);
	if (LIKELY(credit_units(word) >= cost) && /* each: an allow jumps nowhere */
	    LIKELY(credit_lives(word, now))) {    /* U1 */
		*ret_told = told_of(word, now);
		ret_told->units -= cost;
		return LIKELY(local_spend(purse, cell, &word, cost)) ? LOCAL_TAKEN
		                                                     : LOCAL_UNKNOWN;
	}
	if (cell && credit_covers(load_relaxed(&purse->credit), now, cost))
		return LOCAL_UNKNOWN; /* a slice can be had */
	return local_refuse(purse, now, cost, ret_told);
}

#endif
