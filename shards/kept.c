/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kept.c -- units go back where they are from.
 *
 * Threads   Any, within a grace period or with a pin on the purse.
 */
#include "shards/kept.h"

#include "engine/check.h"

void kept_forget_denial(struct purse *purse, uint64_t put, struct kept_clock *clock)
{
	uint64_t denial = load_relaxed(&purse->denial);

	if (!denial_is_quarantine(credit_units(denial)) &&
	    credit_lives(put, clock->now(clock)))
		(void)swap_if_relaxed(&purse->denial, &denial, 0);
}

uint64_t kept_joined(uint64_t word, uint64_t put, struct kept_clock *clock)
{
	mono now = clock->now(clock);

	return credit_lives(put, now) ? credit_with(word, put, now) : 0;
}

/* As above, the clock is looked at after the word that is swapped. */
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

static uint64_t debt_of(const struct purse *purse)
{
	const _Atomic uint64_t *debt = purse_debt(purse);

	return debt ? load_relaxed(debt) : 0;
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
		kept_put(hand, units, kept_books(purse), clock);
	}
}

/* Was the purse made void by other rules only, if at all, since the units were taken?  What an end
 * of it was made for is read after kept_is_void has read it, too. */
static bool is_of_key(struct kept_units kept)
{
	uint32_t dues = load_relaxed(purse_dues(kept.purse));
	uint32_t since = dues / DUES_VOID - ((uint32_t)kept.voids & ~1u) + 1;

	since &= UINT32_MAX / DUES_VOID;
	return since / 2 <= (dues & DUES_CHANGES) / DUES_CHANGE; /* KEPT-4 */
}

/* A debt that lasts one period of the rule that is in force at most. */
static uint64_t shortened(const struct purse *purse, uint64_t debt, mono now)
{
	uint64_t period_ns = lender_terms(purse->lender).window_us * 1000;
	uint64_t most = credit_until(mono_after(now, period_ns), credit_units(debt));

	return debt < most ? debt : most;
}

void kept_shorten_debt(struct purse *purse, mono now)
{
	_Atomic uint64_t *debt = purse_debt(purse);
	uint64_t owed = debt ? load_relaxed(debt) : 0;

	while (credit_units(owed) > 0 &&
	       !swap_if_relaxed(debt, &owed, shortened(purse, owed, now)))
		continue;
}

static bool add_debt(struct kept_units kept, uint64_t over, struct kept_clock *clock)
{
	_Atomic uint64_t *debt = purse_debt(kept.purse);
	uint64_t owed = load_relaxed(debt);
	uint64_t more = (kept.word & ~CREDIT_UNITS_MAX) | over;
	mono now = clock->now(clock);

	if (!credit_lives(more, now) || !is_of_key(kept))
		return true;
	if (kept_is_void(kept, kept_books(kept.purse)))
		more = shortened(kept.purse, more, now);
	return swap_if_relaxed(debt, &owed, debt_with(owed, more, now));
}

void kept_owe(struct kept_units kept, uint64_t over, struct kept_clock *clock)
{
	gale_assert(over <= CREDIT_UNITS_MAX);
	while (!add_debt(kept, over, clock))
		continue;
	fence_swapped_full(); /* owed */
	kept_pay(kept.purse, clock);
}

void kept_lend(struct purse *purse, mono ends, uint64_t units, struct kept_clock *clock,
               mono now)
{
	units = kept_pay_first(purse, credit_until(ends, units), clock); /* lent */
	purse_put(purse, ends, units, now);
	(void)kept_pay_after_put(purse, kept_books(purse), clock); /* KEPT-3 */
}

uint64_t kept_debt(const struct purse *purse, mono now)
{
	uint64_t debt = debt_of(purse);

	return credit_lives(debt, now) ? credit_units(debt) : 0;
}
