/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seeds.h -- plans drawn by lot, each from its seed, one after the other.
 *
 *     PROGRAM --seeds 0-999                                  as many plans
 *     PROGRAM --lot 10000                                    other ones in each run, and which
 *     PROGRAM --seeds 7-7 --verbose                          one, and everything that happens
 *     PROGRAM --seeds 7-7 --set nodes=2 --only 3,17-20       one, made smaller
 *
 * A plan that fails is made smaller as long as it fails: what was drawn for it is replaced by
 * something simpler (--set), and asks, with what befalls their nodes then, are left out (--only
 * says which are left).  The command that replays the rest is printed, also when the program is
 * interrupted, or aborts.
 *
 * Threads   One.
 */
#ifndef TESTS_SIM_SEEDS_H
#define TESTS_SIM_SEEDS_H

#include "sim/shrink.h"

#define SEEDS_LOT_MOST 1000000
#define SEEDS_SETS_MOST 32
#define SEEDS_FLAGS_MOST 4

struct seeds {
	const struct shrink_field *fields;
	size_t field_count;
	size_t plan_bytes;
	const char
	    *flags[SEEDS_FLAGS_MOST]; /* of the program's own, such as "--changes" */
	bool given[SEEDS_FLAGS_MOST]; /* which of these were */

	/* What the seed's plan is. */
	void (*draw)(const struct seeds *self, uint64_t seed, void *ret_plan);
	/* It is not to be played, as the flags say; NULL: each is. */
	bool (*skips)(const struct seeds *self, const void *plan);
	/* Plays it; returns what is wrong, or "".  first: it is the first time. */
	const char *(*play)(const struct seeds *self, const void *plan,
	                    const struct choice *choice, bool verbose, bool first,
	                    uint64_t *ret_asks);
	void (*describe)(const void *plan);
	/* Can it be made smaller?  NULL: each can. */
	bool (*shrinks)(const void *plan);

	uint64_t first, last;
	bool verbose;
	struct {
		const struct shrink_field *field;
		uint64_t value;
	} sets[SEEDS_SETS_MOST];
	size_t set_count;
	struct choice choice;
	const char *program;
	void *plan, *drawn; /* plan_bytes each */
};

/* Reads the arguments; false: they are wrong, and that was said. */
bool seeds_read(struct seeds *seeds, int argc, char **argv);

/* Plays them all, or until ten have failed; returns how many have. */
uint64_t seeds_play(struct seeds *seeds);

#endif
