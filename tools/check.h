/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * check.h -- gale store check: does a store keep the laws, whatever stands behind it?
 *
 * A script of random steps of all rules runs on the store and on the embedded one, through
 * gale.h: each answer must be the same.  The rules are so slow that the time a run takes
 * changes no verdict and no count; waits may differ by as long as that.  Then a crowd: two
 * hundred threads at once, each with a seat, at a limit of fifty, for each rule.
 *
 * The keys have names of this run's own, and are reset at its end.
 *
 * Threads   One; it makes the crowd, and waits for it.
 */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include <stdint.h>
#include <stdio.h>

#include "tools/sentence.h"

#define CHECK_STEPS 10000
#define CHECK_STEPS_MOST 100000000

struct check_flags {
	const char *url;
	uint64_t seed;
	uint64_t steps;
};

enum check_status {
	CHECK_KEPT = 0,
	CHECK_BROKEN = 1,  /* an answer differs, or there is none */
	CHECK_BAD_USE = 2, /* a word or the URL is wrong */
	CHECK_UNTOLD = 3,  /* an answer was late: what it did is not known */
};

/* argv as after "gale store check". */
int check_run(int argc, char **argv, FILE *out, FILE *err);

enum check_status check_store(const struct check_flags *flags, FILE *out,
                              struct sentence *ret_why);

#endif
