/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * credit.h -- how much may be spent, and until when, in one word.
 *
 *     63                    20 19            0
 *     |  the tick it dies at  |     units    |
 *
 * Both are checked and changed in one atomic step, so there is no instant at which
 * units of one window could be spent in another: a word is a promise of its own, and
 * means the same to each reader, however late.
 *
 * A tick is 65.5 us of the node's own clock.  Rounding is always towards less: credit
 * dies at the start of the tick in which it would have died.
 *
 * Invariants
 *
 *   CREDIT-1  What is taken from a word was in it, and the taker's clock had not
 *             reached its tick: the sum of what is taken is at most what was put in.
 *             (law L1)
 *   CREDIT-2  A word is dead for every instant at or after the one it was made with.
 *             (law L2)
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_CREDIT_H
#define ENGINE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/clock.h"

#define CREDIT_UNIT_BITS 20
#define CREDIT_UNITS_MAX ((UINT64_C(1) << CREDIT_UNIT_BITS) - 1)
#define CREDIT_TICK_BITS 16 /* nanoseconds in a tick */
#define CREDIT_TICK_NS (UINT64_C(1) << CREDIT_TICK_BITS)
#define CREDIT_LAST_TICK ((UINT64_C(1) << (64 - CREDIT_UNIT_BITS)) - 1)

/* Units that live until then; they are dead at once if then has no whole tick left. */
static inline uint64_t credit_until(mono then, uint64_t units)
{
	uint64_t tick = then.ns >> CREDIT_TICK_BITS; /* CREDIT-2 */

	if (tick > CREDIT_LAST_TICK)
		tick = CREDIT_LAST_TICK;
	return tick << CREDIT_UNIT_BITS | units;
}

static inline uint64_t credit_units(uint64_t word)
{
	return word & CREDIT_UNITS_MAX;
}

/* The instant from which it is dead. */
static inline mono credit_dies(uint64_t word)
{
	return (mono){ (word >> CREDIT_UNIT_BITS) << CREDIT_TICK_BITS };
}

/* Units that die at an instant at which a word does. */
static inline uint64_t credit_that_dies(mono dies, uint64_t units)
{
	return dies.ns >> CREDIT_TICK_BITS << CREDIT_UNIT_BITS | units;
}

static inline bool credit_lives(uint64_t word, mono now)
{
	return credit_dies(word).ns > now.ns;
}

/* So many units of it live. */
static inline uint64_t credit_living(uint64_t word, mono now)
{
	return credit_lives(word, now) ? credit_units(word) : 0;
}

/* The word after another, whose units live now, is put into it.  Living units in it are of the same
 * window as those that come: of two early bounds on its end, the later.  Dead ones may be of the
 * window before, and must not come to life.                              CREDIT-1 */
static inline uint64_t credit_with(uint64_t word, uint64_t put, mono now)
{
	uint64_t later = word > put ? word : put;
	uint64_t units = credit_units(word) + credit_units(put);

	if (!credit_lives(word, now) || credit_units(word) == 0)
		return put;
	return (later & ~CREDIT_UNITS_MAX) |
	       (units < CREDIT_UNITS_MAX ? units : CREDIT_UNITS_MAX);
}

/* Do both die in the same tick?  Then their units live and die together, whatever time it is. */
static inline bool credit_is_like(uint64_t word, uint64_t other)
{
	return (word ^ other) >> CREDIT_UNIT_BITS == 0;
}

/* The same where those units are like it. */
static inline uint64_t credit_more(uint64_t word, uint64_t units)
{
	uint64_t room = CREDIT_UNITS_MAX - credit_units(word);

	return word + (units < room ? units : room);
}

/* May cost units be taken from it now?  If so, word - cost is what it becomes. */
static inline bool credit_covers(uint64_t word, mono now, uint64_t cost)
{
	return credit_units(word) >= cost && credit_lives(word, now); /* CREDIT-1 */
}

#endif
