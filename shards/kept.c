/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kept.c -- units go back where they are from.
 *
 * Threads   Any, within a grace period or with a pin on the purse.
 */
#include "shards/kept.h"

#include "engine/check.h"

/* There is more than what the denial reckoned with. */
static void forget_denial(struct purse *purse)
{
	uint64_t denial = load_relaxed(&purse->denial);

	if (denial != 0 && !denial_is_quarantine(credit_units(denial)))
		(void)swap_if_relaxed(&purse->denial, &denial, 0);
}

/* The clock is looked at after the word: what lives then is of one window with the word, and
 * if that is another by the time of the swap, the swap fails.                  KEPT-1 */
static bool put_back(struct kept_units *kept, uint64_t units, struct kept_clock *clock)
{
	struct purse *purse = kept->purse;
	uint64_t word = load_acquire(&purse->credit); /* voided */
	uint64_t put = (kept->word & ~CREDIT_UNITS_MAX) | units;
	mono now = clock->now(clock);

	if (!credit_lives(put, now) || kept_voids(purse) != kept->voids) /* KEPT-2 */
		return true;
	if (!swap_if_relaxed(&purse->credit, &word, credit_with(word, put, now)))
		return false;
	forget_denial(purse);
	return true;
}

void kept_give_back(struct kept_units *kept, uint64_t units, struct kept_clock *clock)
{
	gale_assert(units <= credit_units(kept->word));
	if (units == 0)
		return;
	while (!put_back(kept, units, clock))
		continue;
	kept->word -= units;
}
