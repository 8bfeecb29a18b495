/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turns.h -- calls that take turns, many times over: all of them meet the same machine.
 *
 * Each is made a few times in a row.  The first quarter bears what the others left behind, and
 * does not count.  Figures are medians of single calls, so that a few that another thread held
 * up do not count either.
 *
 * Threads   One.
 */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#define TURNS_CALLS_MOST 20

struct turns {
	void (*make)(struct turns *self, unsigned call);
	unsigned first, calls; /* what is given to make: that number, and so many */
	unsigned in_a_row;     /* that count; a multiple of 4 */
	/* Before each, and no part of it; NULL: there is nothing to do. */
	void (*ready)(struct turns *self, unsigned call);
};

/* The median of each, in us: of the first in ret_us[0]. */
void turns_time(struct turns *turns, double *ret_us);

/* What is said of a call: how long a part of it takes, or that as a multiple of a part of
 * another. */
struct turns_figure {
	const char *name;
	unsigned call;
	bool is_ratio;
	unsigned floor; /* the other */
	double bar;     /* the most that it may be; 0: none */
};

/* All calls of a question, from 0. */
struct turns_table {
	const struct turns_figure *figures;
	size_t count;
	const unsigned *parts; /* of each call */
	const char *unit;      /* of a time, ... */
	double units_a_us;     /* ... and how many are 1 us */
	unsigned processes;    /* as in bench.h */
	/* Each call, in us. */
	void (*measure)(const struct turns_table *self, double *ret_us);
};

/* It stays where it is. */
void turns_add(const struct turns_table *table);

#endif
