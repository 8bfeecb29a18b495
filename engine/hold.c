/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold.c -- what is held, what goes back, what is owed.
 *
 * Threads   Pure: any.
 */
#include "engine/hold.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t living(uint64_t word, mono now)
{
	return credit_lives(word, now) ? credit_units(word) : 0;
}

uint64_t hold_cut(uint64_t cost, uint64_t limit)
{
	return smaller(cost, smaller(limit, CREDIT_UNITS_MAX));
}

bool hold_may_grow(const struct held *held, uint64_t units)
{
	return units <= CREDIT_UNITS_MAX - credit_units(held->word);
}

void hold_grow(struct held *held, uint64_t taken, mono now)
{
	if (!credit_lives(held->word, now)) /* HOLD-2 */
		held->past += credit_units(held->word);
	held->word = credit_with(held->word, taken, now);
}

struct hold_end hold_settle(const struct held *held, uint64_t cost, mono now)
{
	uint64_t units = held_units(held);

	if (!credit_lives(held->word, now))
		return (struct hold_end){ 0 }; /* HOLD-2 */
	if (cost > units)
		return (struct hold_end){ .over = cost - units }; /* HOLD-3 */
	return (struct hold_end){ .back =
		                      smaller(units - cost, credit_units(held->word)) };
}

uint64_t debt_with(uint64_t debt, uint64_t over, mono now)
{
	return credit_with(debt, over, now);
}

uint64_t debt_paid_by(uint64_t debt, uint64_t word, mono now)
{
	return smaller(living(debt, now), living(word, now));
}
