/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.h -- the fleet's own time.
 *
 * One clock for all processes, the embedded store and the tally: microseconds since
 * 1970, which go on as CLOCK_BOOTTIME does, whatever the system's clock is set to.
 * It never steps back, also not between threads.
 *
 * It is CLOCK_REALTIME, by which a server on this machine turns its windows, as long as
 * that one is not set: adjtime and NTP make both run faster or slower together, and a
 * step tears them apart, which fleet_clock_apart_us shows.
 *
 * Threads   fleet_clock_init, fleet_clock_set before others know of it; the rest may be
 *           read by any thread.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stdint.h>

#include <gale/gale.h>

/* An instant on this clock and the same one on CLOCK_REALTIME, each in whole
 * microseconds, are at most this far apart when the clock is not set. */
#define FLEET_CLOCK_SLACK_US 20

struct fleet_clock {
	struct gale_clock gale; /* first: what the runtimes are given */
	uint64_t epoch_ns;      /* the boot, in nanoseconds since 1970 */
};

void fleet_clock_init(struct fleet_clock *clock);
/* As it was told by another process of this machine. */
void fleet_clock_set(struct fleet_clock *clock, uint64_t epoch_ns);
uint64_t fleet_clock_us(const struct fleet_clock *clock);

/* How far CLOCK_REALTIME is from it: 0 if that is within the slack. */
uint64_t fleet_clock_apart_us(const struct fleet_clock *clock);

/* For measuring how long something takes; of no beginning in particular. */
uint64_t stopwatch_ns(void);

#endif
