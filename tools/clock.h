/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.h -- the fleet's own time.
 *
 * One clock for the nodes, their store and the tally: microseconds since 1970, which
 * go on as CLOCK_BOOTTIME does, whatever anybody sets the system's clock to.  It never
 * steps back, also not between threads.
 *
 * Threads   Both may be read by any thread.
 */
#ifndef TOOLS_CLOCK_H
#define TOOLS_CLOCK_H

#include <stdint.h>

#include <gale/gale.h>

struct fleet_clock {
	struct gale_clock gale; /* first: what the runtimes are given */
	uint64_t epoch_us;      /* the boot, in microseconds since 1970 */
};

void fleet_clock_init(struct fleet_clock *clock);
uint64_t fleet_clock_us(const struct fleet_clock *clock);

/* For measuring how long something takes; of no beginning in particular. */
uint64_t stopwatch_ns(void);

#endif
