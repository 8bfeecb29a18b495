/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * later.h -- what must stay possible, or must come, in a space that was explored.
 *
 * REACHABLE   from each state a good one can be reached, by any steps
 * CERTAIN     from each state, if only fair steps are taken from then on, a good one is
 *             reached, whichever of them are taken first: no way goes around in a circle,
 *             or ends, before
 *
 * Both go backwards from the good states.  A state of CERTAIN is good when all its fair
 * steps lead to good ones, and there is one.
 *
 * Threads   One.
 */
#ifndef SPEC_EXPLORE_LATER_H
#define SPEC_EXPLORE_LATER_H

#include "spec/explore/search.h"

enum later {
	LATER_HOLDS,
	LATER_FAILS,
	LATER_NO_MEMORY,
};

/* *ret_bad: a state with the shortest way, from which it fails. */
enum later later_check(const struct search *search, const struct goal *goal,
                       uint64_t bytes_most, uint32_t *ret_bad);

#endif
