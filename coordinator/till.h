/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * till.h -- what asks of a tenant are answered from without a lock: units, or a denial.
 *
 *     purse     units that count as used, until their window ends
 *     back      units that holds have given back, and that still count as used
 *     denied    the cost that was, and until when it need not be asked about again
 *
 * Invariants
 *
 *   TILL-1  Units are taken in one step with the look at the clock, and only before their window
 *           ends.  (T1)
 *   TILL-2  Units go back only while back is open for their window, in one step with the look at it.
 *           So what is there when it is closed is all that has gone back, once, and a hold that comes
 *           later takes the lock.  (T1)
 *
 * Threads   Any may take and give back.  The rest is written under the lock of the tenant's budget.
 *
 * Ordering
 *
 *   reopened  back is opened with release, after a denial was remembered  ->  units go back by a swap
 *             with acquire: a thread that gives some back sees that denial, and ends it.
 */
#ifndef COORDINATOR_TILL_H
#define COORDINATOR_TILL_H

#include <stdalign.h>

#include <gale/gale.h>

#include "engine/credit.h"
#include "runtime/atomic.h"
#include "runtime/hot.h"

struct till {
	/* As of the last ask that took the lock. */
	_Atomic uint64_t share;
	_Atomic uint64_t left; /* of it, but for the purse */
	_Atomic uint64_t
	    denied; /* engine/credit.h: the cost that was, and until when */
	/* That may ever be asked for at once; and why it was denied, above TILL_WHY_SHIFT. */
	_Atomic uint64_t most;
	_Atomic uint64_t purse; /* engine/credit.h */
	_Atomic uint64_t back; /* the same, and dies with its window; 0: it is closed */
};

#define TILL_WHY_SHIFT 56

static inline uint64_t till_most(const struct till *till)
{
	return load_relaxed(&till->most) & ((UINT64_C(1) << TILL_WHY_SHIFT) - 1);
}

static inline enum gale_why till_why(const struct till *till)
{
	return (enum gale_why)(load_relaxed(&till->most) >> TILL_WHY_SHIFT);
}

/* TILL-1.  The word that an answer is made of is one that the swap gets, not one that it yields: so
 * a processor makes the answer while the swap is under way. */
static ALWAYS_INLINE bool till_take(struct till *till, mono now, uint64_t cost,
                                    uint64_t *ret_word)
{
	uint64_t word = load_relaxed(&till->purse);

	while (LIKELY(credit_covers(word, now, cost))) {
		*ret_word = word - cost;
		if (LIKELY(swap_if_relaxed(&till->purse, &word, *ret_word)))
			return true;
	}
	return false;
}

static ALWAYS_INLINE bool till_denies(const struct till *till, mono now, uint64_t cost)
{
	uint64_t denied = load_relaxed(&till->denied);

	return credit_lives(denied, now) && cost >= credit_units(denied) &&
	       cost <= till_most(till);
}

/* Units of a hold, whose window's word is known; more of them can be had now.  False: the budget's
 * lock is to be taken.  TILL-2 */
static ALWAYS_INLINE bool till_give_back(struct till *till, uint64_t window,
                                         uint64_t units)
{
	uint64_t word = load_relaxed(&till->back);

	while (LIKELY(credit_is_like(word, window)) &&
	       LIKELY(units <= CREDIT_UNITS_MAX - credit_units(word)))
		if (LIKELY(swap_if_acquire(&till->back, &word,
		                           word + units))) { /* reopened */
			if (load_relaxed(&till->denied) != 0)
				store_relaxed(&till->denied, 0);
			return true;
		}
	return false;
}

/* A cost that no word has room for is not remembered. */
static inline void till_remember(struct till *till, enum gale_why why, uint64_t cost,
                                 uint64_t most, mono until)
{
	if (cost > CREDIT_UNITS_MAX)
		return;
	store_relaxed(&till->most, most | (uint64_t)why << TILL_WHY_SHIFT);
	store_relaxed(&till->denied, credit_until(until, cost));
}

#endif
