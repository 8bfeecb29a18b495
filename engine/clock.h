/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.h -- instants of this node, and durations told by a store.
 *
 * Two types, so that the compiler keeps them apart.  A node never compares its clock
 * with a store's: it adds a duration to an instant of its own, the one at which it sent
 * the question, and takes off what its clock may be wrong by meanwhile.
 *
 * Invariants
 *
 *   CLOCK-1  mono_until is never later than the instant at which the store's duration
 *            ends, if this clock gains or loses at most drift_ppm on the store's. (L2)
 *   CLOCK-2  mono_surely_over is never earlier than that.
 *   CLOCK-3  Of two clocks that each run at most drift_ppm fast or slow, neither gains or
 *            loses more than clock_apart_ppm on the other. (L1)
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_CLOCK_H
#define ENGINE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Nanoseconds of this node's clock, which never goes back. */
typedef struct {
	uint64_t ns;
} mono;

/* Microseconds, as a store counts them. */
typedef struct {
	uint64_t us;
} lasting;

static inline bool mono_reached(mono now, mono then)
{
	return now.ns >= then.ns;
}

static inline mono mono_earlier(mono a, mono b)
{
	return a.ns < b.ns ? a : b;
}

static inline mono mono_later(mono a, mono b)
{
	return a.ns > b.ns ? a : b;
}

/* The end of time stays the end of time. */
static inline mono mono_after(mono start, uint64_t ns)
{
	return (mono){ ns < UINT64_MAX - start.ns ? start.ns + ns : UINT64_MAX };
}

/* This clock may be slow, and that one fast: twice the drift, and a little more. CLOCK-3 */
static inline uint32_t clock_apart_ppm(uint32_t drift_ppm)
{
	uint64_t slow = 1000000 - drift_ppm;

	return (uint32_t)((UINT64_C(2000000) * drift_ppm + slow - 1) / slow);
}

/* When what still lasted so long, after it was asked about, is over at the earliest. */
static inline mono mono_until(mono sent, lasting duration, uint32_t drift_ppm)
{
	uint64_t most_us = UINT64_MAX / 1000000;
	uint64_t us = duration.us < most_us ? duration.us : most_us;

	/* CLOCK-1 */
	return mono_after(sent, us / 1000 * (1000000 - drift_ppm) +
	                            us % 1000 * (1000000 - drift_ppm) / 1000);
}

/* When what lasted so long, as was heard then, is over at the latest. */
static inline mono mono_surely_over(mono heard, lasting duration, uint32_t drift_ppm)
{
	uint64_t most_us = UINT64_MAX / 2000;
	uint64_t us = duration.us < most_us ? duration.us : most_us;

	/* CLOCK-2 */
	return mono_after(heard, us * 1000 + (us / 1000 + 1) * drift_ppm);
}

#endif
