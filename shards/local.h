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

/* Of a word that lives. */
static ALWAYS_INLINE uint64_t local_life_us(uint64_t word, mono now)
{
	return (credit_dies(word).ns - now.ns) / 1000;
}

/*
 * What is told, as a literal: it goes straight to where it is told.  An answer that is
 * made elsewhere and copied costs as much as the rest of an ask.
 */
#define LOCAL_ALLOW(lender, word, now)                                                 \
	((struct gale_answer){                                                         \
	    .verdict = GALE_ALLOW,                                                     \
	    .why = GALE_WHY_CREDIT,                                                    \
	    .limit = (lender)->rule.capacity,                                          \
	    .remaining = credit_units(word),                                           \
	    .reset_after_us = local_life_us(word, now),                                \
	})

/* The denial says what cannot be had: what remains is less. */
#define LOCAL_DENY(lender, word, now)                                                  \
	((struct gale_answer){                                                         \
	    .verdict = GALE_DENY,                                                      \
	    .why = GALE_WHY_SPENT,                                                     \
	    .limit = (lender)->rule.capacity,                                          \
	    .remaining = credit_units(word) - 1,                                       \
	    .reset_after_us = local_life_us(word, now),                                \
	    .retry_after_us = local_life_us(word, now),                                \
	})

enum local {
	LOCAL_UNKNOWN,   /* the store must be asked */
	LOCAL_ELSEWHERE, /* there is no purse where it was looked for */
	LOCAL_TAKEN,     /* from credit: the word is what it became */
	LOCAL_REFUSED,   /* from memory: the word is the denial */
};

static ALWAYS_INLINE void local_tell(struct gale_answer *ret_answer,
                                     const struct lender *lender, enum local how,
                                     uint64_t word, mono now)
{
	if (LIKELY(how == LOCAL_TAKEN))
		*ret_answer = LOCAL_ALLOW(lender, word, now);
	else
		*ret_answer = LOCAL_DENY(lender, word, now);
}

/* From credit or from memory. */
static inline enum local local_try(const struct lender *lender, struct purse *purse,
                                   uint32_t seat, mono now, uint64_t cost,
                                   uint64_t *ret_word)
{
	if (lender->lending == LENDING_UNITS &&
	    purse_take(purse, seat, now, cost, ret_word))
		return LOCAL_TAKEN;
	return purse_refuses(purse, now, cost, ret_word) ? LOCAL_REFUSED
	                                                 : LOCAL_UNKNOWN;
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
                                               uint64_t *ret_word)
{
	uint64_t word;

	if (cell && !LIKELY(load_relaxed(&cell->state) == CELL_OPEN))
		return LOCAL_UNKNOWN; /* something of its own may be in it */
	word = load_relaxed(cell ? &cell->credit : &purse->credit);
	if (LIKELY(credit_units(word) >= cost) && /* each: an allow jumps nowhere */
	    LIKELY(credit_lives(word, now))) {    /* U1 */
		*ret_word = word - cost;
		return LIKELY(local_spend(purse, cell, &word, cost)) ? LOCAL_TAKEN
		                                                     : LOCAL_UNKNOWN;
	}
	if (cell && credit_covers(load_relaxed(&purse->credit), now, cost))
		return LOCAL_UNKNOWN; /* a slice can be had */
	return purse_refuses(purse, now, cost, ret_word) ? LOCAL_REFUSED
	                                                 : LOCAL_UNKNOWN;
}

#endif
