/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * till.h -- what asks of a tenant are answered from without a lock: units, or a denial.
 *
 *     purse     units that count as used, until their window ends
 *     denied    the cost that was, and until when it need not be asked about again
 *
 * Invariants
 *
 *   TILL-1  Units are taken in one step with the look at the clock, and only before their window
 *           ends.  (T1)
 *
 * Threads   Any may take.  The rest is written under the lock of the tenant's budget.
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
	_Atomic uint64_t denied_why;
	_Atomic uint64_t purse; /* engine/credit.h */
	_Atomic uint64_t most;  /* that may ever be asked for at once */
};

/* TILL-1 */
static ALWAYS_INLINE bool till_take(struct till *till, mono now, uint64_t cost,
                                    uint64_t *ret_word)
{
	uint64_t word = load_relaxed(&till->purse);

	while (LIKELY(credit_covers(word, now, cost)))
		if (LIKELY(swap_if_relaxed(&till->purse, &word, word - cost))) {
			*ret_word = word - cost;
			return true;
		}
	return false;
}

static ALWAYS_INLINE bool till_denies(const struct till *till, mono now, uint64_t cost)
{
	uint64_t denied = load_relaxed(&till->denied);

	return credit_lives(denied, now) && cost >= credit_units(denied) &&
	       cost <= load_relaxed(&till->most);
}

/* A cost that no word has room for is not remembered. */
static inline void till_remember(struct till *till, enum gale_why why, uint64_t cost,
                                 uint64_t most, mono until)
{
	if (cost > CREDIT_UNITS_MAX)
		return;
	store_relaxed(&till->most, most);
	store_relaxed(&till->denied_why, (uint64_t)why);
	store_relaxed(&till->denied, credit_until(until, cost));
}

#endif
