/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kept.c -- units go back where they are from.
 *
 * Threads   Any, within a grace period or with a pin on the purse.
 */
#include "shards/kept.h"

#include "engine/check.h"

/* There is more than what the denial reckoned with, as long as what was put lives. */
static __attribute__((noinline)) void forget_denial(struct purse *purse, uint64_t put,
                                                    struct kept_clock *clock)
{
	uint64_t denial = load_relaxed(&purse->denial);

	if (!denial_is_quarantine(credit_units(denial)) &&
	    credit_lives(put, clock->now(clock)))
		(void)swap_if_relaxed(&purse->denial, &denial, 0);
}

/* Units that were taken while the purse was made void may be of before.  KEPT-2 */
static bool is_void(const struct kept_units *kept)
{
	return kept->voids % 2 == 1 || kept_voids(kept->purse) != kept->voids;
}

static uint64_t debt_of(const struct purse *purse)
{
	const _Atomic uint64_t *debt = purse_debt(purse);

	return debt ? load_relaxed(debt) : 0;
}

static bool owes(const struct purse *purse)
{
	return credit_units(debt_of(purse)) > 0;
}

/* As below, the clock is looked at after the word that is swapped. */
uint64_t kept_pay_first(struct purse *purse, uint64_t word, struct kept_clock *clock)
{
	_Atomic uint64_t *debt = purse_debt(purse);
	uint64_t owed = debt ? load_relaxed(debt) : 0, paid;

	while (credit_units(owed) > 0) {
		paid = debt_paid_by(owed, word, clock->now(clock));
		if (paid == 0)
			break;
		if (swap_if_relaxed(debt, &owed, owed - paid)) {
			word -= paid;
			owed -= paid;
		}
	}
	return credit_units(word);
}

/* The word with the units that go back.  The clock is looked at after the word was loaded: what
 * lives then is of one window with it.  False: the units do not.               KEPT-1 */
static __attribute__((noinline)) bool
joined(uint64_t word, uint64_t put, struct kept_clock *clock, uint64_t *ret_word)
{
	mono now = clock->now(clock);

	*ret_word = credit_with(word, put, now);
	return credit_lives(put, now);
}

/* What is like the word lives and dies with it, whatever time it is.  If the word is another by the
 * time of the swap, the swap fails.                                            KEPT-1 */
static inline bool put_back(const struct kept_units *kept, uint64_t units,
                            struct kept_clock *clock)
{
	struct purse *purse = kept->purse;
	uint64_t word = load_acquire(&purse->credit); /* voided */
	uint64_t put = (kept->word & ~CREDIT_UNITS_MAX) | units;
	uint64_t with = credit_more(word, units);

	if (!LIKELY(credit_is_like(word, put)) && !joined(word, put, clock, &with))
		return true;
	if (is_void(kept)) /* KEPT-2 */
		return true;
	if (!swap_if_relaxed(&purse->credit, &word, with))
		return false;
	if (!LIKELY(load_relaxed(&purse->denial) == 0))
		forget_denial(purse, put, clock);
	return true;
}

/* How many units are left then. */
static __attribute__((noinline)) uint64_t
pay_first(const struct kept_units *kept, uint64_t units, struct kept_clock *clock)
{
	uint64_t word = (kept->word & ~CREDIT_UNITS_MAX) | units;

	return is_void(kept) /* KEPT-2 */
	           ? 0
	           : kept_pay_first(kept->purse, word, clock);
}

static inline void put(const struct kept_units *kept, uint64_t units,
                       struct kept_clock *clock)
{
	if (!LIKELY(!owes(kept->purse)))
		units = pay_first(kept, units, clock); /* KEPT-3 */
	while (units > 0 && !put_back(kept, units, clock))
		continue;
}

/* From what all share into one hand, and from there. */
void kept_pay(struct purse *purse, struct kept_clock *clock)
{
	for (;;) {
		uint64_t debt = debt_of(purse);
		struct kept_units hand = { purse, 0, kept_voids(purse) };
		uint64_t word = load_relaxed(&purse->credit);
		uint64_t units = debt_paid_by(debt, word, clock->now(clock));

		if (units == 0)
			return;
		if (!swap_if_relaxed(&purse->credit, &word, word - units))
			continue;
		hand.word = (word & ~CREDIT_UNITS_MAX) | units;
		put(&hand, units, clock);
	}
}

void kept_pay_after_put(struct purse *purse, struct kept_clock *clock)
{
	fence_full(); /* owed */
	if (!LIKELY(!owes(purse)))
		kept_pay(purse, clock);
}

void kept_give_back(struct kept_units *kept, uint64_t units, struct kept_clock *clock)
{
	gale_assert(units <= credit_units(kept->word));
	if (units == 0)
		return;
	put(kept, units, clock);
	kept->word -= units;
	kept_pay_after_put(kept->purse, clock); /* KEPT-3 */
}

static bool add_debt(const struct kept_units *kept, uint64_t over,
                     struct kept_clock *clock)
{
	_Atomic uint64_t *debt = purse_debt(kept->purse);
	uint64_t owed = load_relaxed(debt);
	uint64_t more = (kept->word & ~CREDIT_UNITS_MAX) | over;
	mono now = clock->now(clock);

	return !credit_lives(more, now) || is_void(kept) ||
	       swap_if_relaxed(debt, &owed, debt_with(owed, more, now));
}

void kept_owe(const struct kept_units *kept, uint64_t over, struct kept_clock *clock)
{
	gale_assert(over <= CREDIT_UNITS_MAX);
	while (!add_debt(kept, over, clock))
		continue;
	fence_full(); /* owed */
	kept_pay(kept->purse, clock);
}

uint64_t kept_debt(const struct purse *purse, mono now)
{
	uint64_t debt = debt_of(purse);

	return credit_lives(debt, now) ? credit_units(debt) : 0;
}
