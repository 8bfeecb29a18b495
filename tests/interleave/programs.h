/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * programs.h -- short programs of two or three threads.
 *
 * Threads   See model.h.
 */
#ifndef TESTS_INTERLEAVE_PROGRAMS_H
#define TESTS_INTERLEAVE_PROGRAMS_H

#include "tests/interleave/model.h"

/* Of the model itself: what must come out, and in how many runs. */
struct litmus {
	struct program program;
	uint64_t outcomes; /* bits; 0: a fault */
	uint64_t runs;     /* 0: does not matter */
};

extern const struct litmus litmus[];
extern const size_t litmus_count;

/* Of the hot path. */
extern const struct program programs[];
extern const size_t program_count;

#endif
