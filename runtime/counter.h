/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * counter.h -- what time it is, by the processor's own counter.
 *
 * To read CLOCK_BOOTTIME takes longer than all the rest of an ask.  So a thread looks at
 * it once in a millisecond, and in between the counter says how far it has come since.
 * How fast the counter runs is measured from one look to the next, and never taken for
 * granted.
 *
 * Invariants
 *
 *   COUNTER-1  What is read is never behind CLOCK_BOOTTIME, and at most
 *              COUNTER_AHEAD_NS before it, if that clock keeps its rate to 500 ppm from
 *              one look to the next.  So units that are lent never live longer than
 *              they should. (L2)
 *   COUNTER-2  Nothing is read of a counter that has gone back, or further than a
 *              millisecond, since the last look: a thread that slept, or was moved to
 *              another machine, looks again.
 *
 * Threads   A counter is one thread's.  counter_is_good: any.
 */
#ifndef RUNTIME_COUNTER_H
#define RUNTIME_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/clock.h"
#include "runtime/hot.h"

#define COUNTER_GOOD_NS UINT64_C(1000000) /* after a look */
#define COUNTER_AHEAD_NS 3000

/* All zero: nothing is known yet. */
struct counter {
	uint64_t ticks; /* at the last look */
	uint64_t ns;    /* the clock's, just after it; 0: none */
	uint64_t good;  /* ticks after it that can be told; 0: none */
	uint64_t rate;  /* 2^-32 ns a tick, a little too many */
};

/* The clock, before and after the counter was read. */
struct counter_look {
	uint64_t before_ns;
	uint64_t ticks;
	uint64_t after_ns;
};

/* Learns from a look. */
void counter_learn(struct counter *counter, const struct counter_look *look);

/* The instant so many ticks after the last look. */
static ALWAYS_INLINE mono counter_at(const struct counter *counter, uint64_t since)
{
	return (mono){ counter->ns + (since * counter->rate >> 32) };
}

#ifdef __x86_64__

static ALWAYS_INLINE uint64_t counter_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

#else

static ALWAYS_INLINE uint64_t counter_ticks(void)
{
	return 0;
}

#endif

/* Ticks since the last look; false: it must be looked. */
static ALWAYS_INLINE bool counter_runs(const struct counter *counter, uint64_t ticks,
                                       uint64_t *ret_since)
{
	*ret_since = ticks - counter->ticks;
	return *ret_since < counter->good; /* COUNTER-2 */
}

/* Does the kernel itself keep time by this counter, on all processors alike? */
bool counter_is_good(void);

/* Looks at CLOCK_BOOTTIME, and says what it is. */
mono counter_look(struct counter *counter);

#endif
