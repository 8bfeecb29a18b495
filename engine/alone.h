/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * alone.h -- what a node may admit for a tenant while the store of its budget cannot be asked.
 *
 * So many units in each window of the node's own.  Such a window begins with the first units that
 * are taken from it, and lasts as long as one of the store's, or somewhat longer: the node does not
 * know when the store's begin.
 *
 * Invariants
 *
 *   ALONE-1  In a window of the node's own at most .units are taken, the largest of them that was
 *            in force, also when the store can be asked in between.
 *   ALONE-2  In a window of the store fewer than 2 * .units are taken, of the largest: of the node's
 *            own one window at most begins in it, as none of these is shorter, even if the node's
 *            clock is as fast as it may be; and one that began before has lost a unit then.  So a
 *            fleet admits at most the limit, and 2 * .units - 1 for each tenant at each node that
 *            is cut off.
 *
 * Threads   Pure: one at a time for each.
 */
#ifndef ENGINE_ALONE_H
#define ENGINE_ALONE_H

#include "engine/clock.h"

struct alone {
	uint64_t units;     /* of a window; 0: it admits nothing */
	uint64_t window_ns; /* of the node's own */
	mono end;           /* of the last that began */
	uint64_t taken;     /* in it */
};

void alone_init(struct alone *alone, uint64_t units, uint64_t period_us,
                uint32_t drift_ppm);
/* True: they are taken. */
bool alone_take(struct alone *alone, uint64_t units, mono now);
uint64_t alone_left(const struct alone *alone, mono now);

#endif
