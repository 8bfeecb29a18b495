/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turns.h -- calls that take turns, many times over: all of them meet the same machine.
 *
 * Each is made a few times in a row; what the others left behind is the first ones' to bear, a
 * quarter, and they do not count.  Figures are medians of single calls, so that a few that
 * somebody else held up do not count either.
 *
 * Threads   One.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#define TURNS_CALLS_MOST 16

struct turns {
	void (*make)(struct turns *self, unsigned call);
	unsigned first, calls; /* what is given to make: that number, and so many */
	unsigned in_a_row;     /* that count; a multiple of 4 */
};

/* The median of each, in us: of the first in ret_us[0]. */
void turns_time(struct turns *turns, double *ret_us);

#endif
