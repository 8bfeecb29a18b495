/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ward_script.h -- the asks of a ward's nodes, and the faults that befall them meanwhile.
 *
 *     steps: faults and calls -> peace: all is well again -> a node dies -> all are closed
 *
 * Steps are numbered.  The draws for one follow from the seed and its number alone, so
 * that some can be left out and the others stay as they were.
 *
 * A store forgets at most once in two leases.  Its clock is set at any time, but never by a day
 * at once: engine/group.h says what that does.
 *
 * Threads   One.
 */
#ifndef SIM_WARD_SCRIPT_H
#define SIM_WARD_SCRIPT_H

#include "sim/script.h"
#include "sim/ward.h"

struct ward_script {
	struct ward_plan plan;
	uint64_t steps;
	uint64_t gap_us;     /* mean time between two */
	uint32_t calls_most; /* of a step */
	uint32_t slots_most; /* of a call */
	uint32_t long_each;  /* calls: one that takes up to four leases; 0: never */
	uint32_t sheds;      /* some calls are sheddable */
	/* One in so many steps; 0: never. */
	uint32_t crash_each;
	uint32_t shut_each;
	uint32_t stop_each;
	uint32_t hold_each;
	uint32_t cut_each;
	uint32_t reopen_each;
	uint32_t copy_each;
	uint32_t fail_each;
	uint32_t flush_each;
	uint32_t back_each;
	uint32_t forward_each;
	uint32_t forge_each; /* a nudge that no beat gave rise to */
};

/* Plays it on a ward that is open, and closes all nodes; returns how many steps it came to. */
uint64_t ward_script_play(const struct ward_script *script, const struct choice *choice,
                          struct ward *ward);

#endif
