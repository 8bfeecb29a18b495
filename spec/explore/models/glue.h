/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * glue.h -- what models share: the shipped functions, called at an instant of a small world.
 *
 * A state keeps what matters and nothing more: instants as how long ago, or how long from
 * now.  To make a step, the words that the shipped functions work on are made of it, at an
 * instant that is always the same, and what they have become is put back.
 *
 * Threads   Pure: any.
 */
#ifndef SPEC_EXPLORE_MODELS_GLUE_H
#define SPEC_EXPLORE_MODELS_GLUE_H

#include "engine/borrow.h"
#include "engine/check.h"
#include "engine/lease.h"
#include "engine/window.h"

#define HERE_NS (UINT64_C(1) << 44) /* now, on a node's clock: far from 0 */

/* A window's words as they lie in a store: the window before, if nothing was used since. */
static inline struct window_state words_of_window(const struct rule *rule,
                                                  uint64_t start_us, uint64_t used)
{
	if (used == 0)
		return (struct window_state){ start_us - rule->is.period_us,
			                      rule->is.limit };
	return (struct window_state){ start_us, used };
}

/* What a node with so much in hand asks for, for a call of that cost: a batch, or more. */
static inline struct borrow_ask ask_for_call(uint64_t cost, uint64_t in_hand,
                                             long batch)
{
	const struct borrow_terms terms = { .has_windows = true };
	struct borrow_need need = {
		.waiting = cost, .least = cost, .common = in_hand, .held = in_hand
	};

	return borrow_ask(&terms, &need, (uint64_t)batch);
}

static inline uint8_t small(uint64_t number)
{
	gale_assert(number <= UINT8_MAX);
	return (uint8_t)number;
}

static inline long smaller_of(long a, long b)
{
	return a < b ? a : b;
}

static inline long larger_of(long a, long b)
{
	return a > b ? a : b;
}

#endif
