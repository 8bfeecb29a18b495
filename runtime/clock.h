/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.h -- where time comes from.
 *
 * Three kinds of time, and nothing converts between them.  A store's time is in
 * microseconds since 1970 and decides.  A node's instants (mono) are nanoseconds of
 * CLOCK_BOOTTIME: they say how long what a store has lent is good for.  Waiting is
 * measured on CLOCK_MONOTONIC and decides nothing.
 *
 * Threads   Any, at once.
 */
#ifndef RUNTIME_CLOCK_H
#define RUNTIME_CLOCK_H

#include <stdint.h>

#include <gale/gale.h>

#include "engine/clock.h"

/*
 * UTC as it was when opened, going on with CLOCK_BOOTTIME: it counts while the machine
 * sleeps, and does not follow when the wall clock is set.  A window can
 * therefore not be reopened or cut short by an administrator or by NTP.
 */
struct boot_clock {
	struct gale_clock clock;
	uint64_t epoch_ns; /* what to add to CLOCK_BOOTTIME, modulo 2^64 */
};
void boot_clock_init(struct boot_clock *boot);

/* This node's instant; the clock has a boot_ns. */
static inline mono clock_now(struct gale_clock *clock)
{
	return (mono){ clock->boot_ns(clock) };
}

/* CLOCK_BOOTTIME. */
uint64_t boottime_ns(void);

/* For deadlines of waits only: nanoseconds from some point in the past. */
uint64_t patience_now_ns(void);

#endif
