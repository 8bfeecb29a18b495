/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rest.h -- what a store had left when it spoke last, and when that was, in one word.
 *
 *     63              24 23             0
 *     |  the tick since  |  units / grain  |
 *
 * A node adds it to the units that it has in hand: that is what it tells of a limit's remaining
 * units.  The grain is a limiter's for good: 1 if its first limit is below 2^24, and else so
 * large that what is rounded away is less than 1/2^23 of that limit.
 *
 * A tick is 16 of those that credit dies at (engine/credit.h), and is rounded up.  So the word
 * is a number that credit is compared with: whatever died before the store spoke is smaller.
 *
 * Invariants
 *
 *   REST-1  What goes with credit is not of a later window: the store speaks of the next
 *           window only when all credit of the one before is dead, and its word is then larger
 *           than each word of that credit, however late a reader compares them.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_REST_H
#define ENGINE_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/clock.h"

#define REST_SINCE_SHIFT 24
#define REST_TICK_BITS 20 /* nanoseconds in a tick: 1.05 ms */
#define REST_TICK_NS (UINT64_C(1) << REST_TICK_BITS)
#define REST_LAST_TICK ((UINT64_C(1) << (64 - REST_SINCE_SHIFT)) - 1)
#define REST_FIGURE_MAX ((UINT64_C(1) << REST_SINCE_SHIFT) - 1)

static inline uint64_t rest_grain(uint64_t limit)
{
	return limit > REST_FIGURE_MAX ? limit / (REST_FIGURE_MAX / 2) : 1;
}

/* Rounded down.  More than a word can say is as much as it can. */
static inline uint64_t rest_since(mono now, uint64_t units, uint64_t grain)
{
	uint64_t tick = (now.ns >> REST_TICK_BITS) + 1; /* REST-1 */
	uint64_t figure = units / grain;

	if (tick > REST_LAST_TICK)
		tick = REST_LAST_TICK;
	if (figure > REST_FIGURE_MAX)
		figure = REST_FIGURE_MAX;
	return tick << REST_SINCE_SHIFT | figure;
}

static inline uint64_t rest_units(uint64_t rest, uint64_t grain)
{
	return (rest & REST_FIGURE_MAX) * grain;
}

/* Is it of the window that the credit is of, or of one before?  Of credit that dies within two
 * ticks it may say no. */
static inline bool rest_goes_with(uint64_t rest, uint64_t credit)
{
	return credit >= rest; /* REST-1 */
}

/* The same, with units more, or less, as far as there are some. */
static inline uint64_t rest_moved(uint64_t units, uint64_t former, uint64_t limit)
{
	if (limit >= former)
		return units + (limit - former);
	return units > former - limit ? units - (former - limit) : 0;
}

#endif
