/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kept.h -- units that were taken for a call, and may go back into their own window.
 *
 *     take ---> kept ---> spent: nothing more is to be done
 *                 '-----> given back, all or a part: into the purse that they are from
 *
 * The word that units were taken from says until when they live.  As long as they do, their
 * window is the one that the purse is of, and the next ask may have them.  After that they
 * are worth nothing, and nothing is put back.
 *
 * Invariants
 *
 *   KEPT-1  What goes back was taken, goes back once, and does not live longer than the longest
 *           of its window's units in the purse. (L1, L2)
 *   KEPT-2  Nothing goes back into a purse that was made void since. (JUMP-3)
 *   KEPT-3  While a purse has a debt, what comes into it pays that first: a thread that adds to the
 *           debt and one that puts units in each look at what the other has done. (HOLD-3)
 *   KEPT-4  Another rule ends no debt.  What a call has cost beyond is owed under the rule that is in
 *           force when the call ends, for one period of it at most. (L15)
 *
 * Threads   Any: within a grace period, or with a pin on the purse.
 *
 * Ordering
 *
 *   owed      one thread adds to the debt, fences, then loads credit  ->  another puts units
 *             in: it swaps credit, fences, then loads the debt
 *             One of both sees what the other did.
 */
#ifndef SHARDS_KEPT_H
#define SHARDS_KEPT_H

#include "engine/check.h"
#include "engine/hold.h"
#include "shards/local.h"
#include "shards/purses.h"

struct kept_units {
	struct purse *purse; /* NULL: nothing is kept */
	uint64_t word;       /* as engine/credit.h: units, and until when they live */
	uint64_t voids;      /* of the purse's dues, before they were taken */
};

/* Asked whenever units are about to go back: later than what was seen of the purse. */
struct kept_clock {
	mono (*now)(struct kept_clock *self);
};

static ALWAYS_INLINE uint64_t kept_voids(const struct purse *purse)
{
	return load_acquire(purse_dues(purse)) / DUES_VOID; /* wiped */
}

/* Cost was taken, and told was told of it: so many units, and until when they live. */
static ALWAYS_INLINE uint64_t kept_word(uint64_t cost, struct told told, mono now)
{
	return credit_that_dies((mono){ now.ns + told.left_ns }, cost);
}

/* The same of a purse that had so many voids before. */
static ALWAYS_INLINE struct kept_units
kept_of(struct purse *purse, uint64_t voids, uint64_t cost, struct told told, mono now)
{
	return (struct kept_units){ purse, kept_word(cost, told, now), voids };
}

/* ---- In kept.c ------------------------------------------------------------------- */

/* So many units more are used than were kept: a debt of their window.  There is room for it. */
void kept_owe(struct kept_units kept, uint64_t over, struct kept_clock *clock);
/* The limiter has another rule: the debt lasts one period of it at most. */
void kept_shorten_debt(struct purse *purse, mono now);
/* Pays from what all share in the purse. */
void kept_pay(struct purse *purse, struct kept_clock *clock);
/* How many of these units of the purse's window are left when its debt is paid. */
uint64_t kept_pay_first(struct purse *purse, uint64_t word, struct kept_clock *clock);
/* So many units that were lent go into the purse, by its actor: a debt has them first.  KEPT-3 */
void kept_lend(struct purse *purse, mono ends, uint64_t units, struct kept_clock *clock,
               mono now);
/* Units that the purse owes. */
uint64_t kept_debt(const struct purse *purse, mono now);

/* The word with units put into it that are not like it; 0: they do not live.  The clock is looked at
 * after the word was loaded: what lives then is of one window with it.          KEPT-1 */
uint64_t kept_joined(uint64_t word, uint64_t put, struct kept_clock *clock);
/* There is more than what the denial reckoned with, as long as what was put lives. */
void kept_forget_denial(struct purse *purse, uint64_t put, struct kept_clock *clock);

/* ---- Going back ------------------------------------------------------------------ */

/* The actor's words of a purse that are read when units go back: worked out once. */
struct kept_books {
	const struct chunk *chunk;
	const _Atomic uint32_t *dues;
};

static ALWAYS_INLINE struct kept_books kept_books(const struct purse *purse)
{
	return (struct kept_books){ purse_chunk(purse), purse_dues(purse) };
}

static ALWAYS_INLINE bool kept_is_seen(struct kept_books books)
{
	return LIKELY(load_relaxed(books.dues) & DUES_LOOKED_AT);
}

/* Units that were taken while the purse was made void, when voids are odd, may be of before: the
 * even number that they are compared as has gone by then.  KEPT-2 */
static ALWAYS_INLINE bool kept_is_void(struct kept_units kept, struct kept_books books)
{
	uint64_t voids = load_acquire(books.dues) / DUES_VOID; /* wiped */

	return voids != (kept.voids & ~UINT64_C(1));
}

/* The voids before two takes: was the purse made void between them?  KEPT-2 */
static inline bool kept_is_before(uint64_t voids, uint64_t later)
{
	return (voids & ~UINT64_C(1)) != (later & ~UINT64_C(1));
}

static ALWAYS_INLINE bool kept_owes(const struct purse *purse, struct kept_books books)
{
	return chunk_may_owe(books.chunk) &&
	       credit_units(load_relaxed(purse_debt(purse))) > 0;
}

/* After something was swapped into what all share: pays what was owed meanwhile.  True: not all of
 * it. */
static ALWAYS_INLINE bool kept_pay_after_put(struct purse *purse,
                                             struct kept_books books,
                                             struct kept_clock *clock)
{
	fence_swapped_full(); /* owed, joined */
	if (LIKELY(!kept_owes(purse, books)))
		return false;
	kept_pay(purse, clock);
	return kept_owes(purse, books);
}

/* Units that have the word's end live and die with it, whatever time it is.  If the word is another by
 * the time of the swap, the swap fails.  False: the caller tries again.         KEPT-1 */
static ALWAYS_INLINE bool kept_put_back(struct kept_units kept, uint64_t put,
                                        struct kept_books books,
                                        struct kept_clock *clock)
{
	struct purse *purse = kept.purse;
	uint64_t word = load_acquire(&purse->credit); /* voided */
	uint64_t with = credit_more(word, credit_units(put));

	if (!LIKELY(credit_is_like(word, put))) {
		with = kept_joined(word, put, clock);
		if (with == 0)
			return true;
	}
	if (!LIKELY(!kept_is_void(kept, books))) /* KEPT-2 */
		return true;
	if (!LIKELY(swap_if_relaxed(&purse->credit, &word, with)))
		return false;
	if (!LIKELY(load_relaxed(&purse->denial) == 0))
		kept_forget_denial(purse, put, clock);
	return true;
}

/* At least one. */
static ALWAYS_INLINE void kept_put(struct kept_units kept, uint64_t units,
                                   struct kept_books books, struct kept_clock *clock)
{
	uint64_t put = (kept.word & ~CREDIT_UNITS_MAX) | units;

	if (!LIKELY(!kept_owes(kept.purse, books)) && !kept_is_void(kept, books)) {
		put -= units - kept_pay_first(kept.purse, put, clock); /* KEPT-3 */
		if (credit_units(put) == 0)
			return;
	}
	while (!LIKELY(kept_put_back(kept, put, books, clock)))
		continue;
}

/* So many of the units that are kept go back, if they are worth something; kept has the rest.  True:
 * the purse owes something all the same. */
static ALWAYS_INLINE bool kept_give_back(struct kept_units *kept, uint64_t units,
                                         struct kept_books books,
                                         struct kept_clock *clock)
{
	gale_assert(units <= credit_units(kept->word));
	if (units == 0)
		return false;
	kept_put(*kept, units, books, clock);
	kept->word -= units;
	return kept_pay_after_put(kept->purse, books, clock); /* KEPT-3 */
}

#endif
