/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold.h -- a cost that is known only when the call has ended: units are held for it before.
 *
 *     credit --take--> held --settle--> committed     what the call has really cost
 *                       ^ '-----------> back          held and not needed: credit again
 *                 grow -'  '----------> over          the cost beyond what was held: a debt
 *
 * A debt is paid by units of its window, before any call may have them: by credit in hand, by what
 * other holds give back, and by what the store still lends.
 *
 * Both are words of engine/credit.h: so many units, until the window may be over.
 *
 * Invariants
 *
 *   HOLD-1  Of a window, what is committed, held, in hand and with the store comes to the limit
 *           and the debt, at each step.
 *   HOLD-2  Units go back only while their window is open, and into that window.  A hold that
 *           has grown in a later window has units of both; those of the window before are spent.
 *           So are those of before, where it has grown after its key was reset.
 *   HOLD-3  While there is a debt, nothing is in hand: no call is admitted before it is paid.  So a
 *           window commits at most the limit, and what the holds that ran when the debt began
 *           cost beyond what they held.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_HOLD_H
#define ENGINE_HOLD_H

#include "engine/credit.h"

struct held {
	uint64_t word; /* of the window that it took from last */
	uint64_t past; /* units of windows before that: they are spent, or lost */
};

/* The end of a hold. */
struct hold_end {
	uint64_t back; /* units that go back, of held.word */
	uint64_t
	    over; /* units that are to be paid, until held.word dies; 0 if it has */
};

static inline uint64_t held_units(const struct held *held)
{
	return held->past + credit_units(held->word);
}

static inline uint64_t hold_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* So much of a cost can be held at all. */
static inline uint64_t hold_cut(uint64_t cost, uint64_t limit)
{
	return hold_smaller(cost, hold_smaller(limit, CREDIT_UNITS_MAX));
}

/* May it grow by so many units at any time?  Those of one window are in one word. */
static inline bool hold_may_grow(const struct held *held, uint64_t units)
{
	return units <= CREDIT_UNITS_MAX - credit_units(held->word);
}

/* Its units are spent: their window is over, or the key was reset. */
static inline void hold_lose(struct held *held)
{
	held->past += credit_units(held->word);
	held->word &= ~CREDIT_UNITS_MAX;
}

/* Units that have just been taken come on top; at any time, if they are like those that are held. */
static inline void hold_grow(struct held *held, uint64_t taken, mono now)
{
	if (!credit_lives(held->word, now))
		hold_lose(held); /* HOLD-2 */
	held->word = credit_with(held->word, taken, now);
}

static inline struct hold_end hold_settle(const struct held *held, uint64_t cost,
                                          mono now)
{
	uint64_t units = held_units(held);

	if (!credit_lives(held->word, now))
		return (struct hold_end){ 0 }; /* HOLD-2 */
	if (cost > units)
		return (struct hold_end){ .over = cost - units }; /* HOLD-3 */
	return (struct hold_end){ .back = hold_smaller(units - cost,
		                                       credit_units(held->word)) };
}

/* A debt with so many more units that are to be paid. */
static inline uint64_t debt_with(uint64_t debt, uint64_t over, mono now)
{
	return credit_with(debt, over, now);
}

/* How many of these units pay for it. */
static inline uint64_t debt_paid_by(uint64_t debt, uint64_t word, mono now)
{
	return hold_smaller(credit_living(debt, now), credit_living(word, now));
}

#endif
