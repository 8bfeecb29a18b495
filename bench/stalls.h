/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stalls.h -- in which windows did the machine stand still?
 *
 * On each of the first processors a thread sleeps for half a millisecond, over and over.  Where it is
 * woken too late, the windows from when it was due until then had a stall; a caller says of itself what
 * it slept.  A window is quiet if neither it nor the one before had a stall: what is lent ahead of a
 * window was asked for in the one before.
 *
 * Windows are those of a server on this machine: by the wall clock.
 *
 * Threads   One begins, notes and ends; a watch on each processor.
 */
#ifndef BENCH_STALLS_H
#define BENCH_STALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STALLS_WINDOWS 512

struct stalls {
	uint64_t window_us;
	uint64_t first; /* window */
	_Atomic bool stood[STALLS_WINDOWS];
	uint64_t asked[STALLS_WINDOWS], waited[STALLS_WINDOWS];
};

struct stalls_found {
	double waited;   /* of all calls */
	double in_quiet; /* of the calls in quiet windows */
	double
	    left_out; /* of the windows in which a call was made: those that are not quiet */
};

void stalls_begin(struct stalls *stalls, uint64_t window_us);
/* The caller has just been woken, and was due then, by the wall clock. */
void stalls_woke(struct stalls *stalls, uint64_t due_ns);
/* Calls that were just made, and those of them that wait. */
void stalls_note(struct stalls *stalls, uint64_t asked, uint64_t waited);
void stalls_end(struct stalls *stalls, struct stalls_found *ret_found);

uint64_t stalls_now_ns(void);

#endif
