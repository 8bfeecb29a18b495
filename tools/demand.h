/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * demand.h -- which calls a worker of a fleet makes, and when, if the fleet asks for a part of
 * its limits and not as fast as it is answered.
 *
 * Time is divided into slots, two in each window: so a slot begins when a window does, or in
 * its middle.  In each slot the fleet makes the same number of calls, evenly in time, and all
 * keys have the same part of them.  The workers of the nodes that ask share these calls.  All
 * nodes ask in each slot; or, when the demand moves, one half of them, which is drawn anew for
 * each slot.  A call that a worker has not made when its slot ends is made no more.
 *
 *     calls of a slot      0 .................................. calls - 1
 *     of its workers       |  first, count  |  first, count  | ...
 *
 * Threads   Pure: any.  Processes with the same demand come to the same calls.
 */
#ifndef TOOLS_DEMAND_H
#define TOOLS_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

struct demand {
	uint64_t
	    percent; /* of the limits, in a window; 0: as fast as there are answers */
	bool moves;
	uint32_t nodes;   /* of the fleet */
	uint32_t threads; /* of each node */
	uint32_t keys;
	uint64_t limit; /* of each key */
	uint64_t window_us;
};

/* A worker's part of a slot. */
struct demand_part {
	uint64_t slot;
	uint64_t first; /* its first call, among those of the slot */
	uint64_t count;
	uint64_t due;     /* of count: by now */
	uint64_t next_us; /* when there is one more due, or the next slot begins */
};

/* place: the worker's in the fleet, by nodes, from 0. */
struct demand_part demand_at(const struct demand *demand, uint32_t place,
                             uint64_t now_us);

/* Which key the call of that number, among those of the slot, is about. */
uint32_t demand_key(const struct demand *demand, uint64_t slot, uint64_t number);

#endif
