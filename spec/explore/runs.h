/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * runs.h -- a list of runs, and what must come out of each.
 *
 *     # name        model    constants                 what must come out
 *     couple-3      leasing  nodes=3 limit=6 batch=3 : holds states=27 found=6 quick
 *     couple-carry  leasing  nodes=3 limit=6 carry=1 : refuted by=bound
 *
 * states, found and by may be left out.  quick: also in the short form.  live: what must
 * come later is checked, too.  tlc=NAME: spec/cfg/NAME.cfg has as many states; that is for
 * who compares.
 *
 * Threads   One.
 */
#ifndef SPEC_EXPLORE_RUNS_H
#define SPEC_EXPLORE_RUNS_H

#include "spec/explore/model.h"

#define RUN_NAME_MOST 40

struct run {
	char name[RUN_NAME_MOST];
	char constants[160]; /* as written */
	const struct model *model;
	long c[CONSTANTS_MOST];
	uint32_t given; /* which of them are, in bits */
	bool holds;
	bool quick;
	bool live;
	long states;            /* -1: whatever it is */
	long found;             /* the same */
	char by[RUN_NAME_MOST]; /* "": whatever it is */
};

/* NULL, or a sentence; *ret_line is where, or 0.  The runs are to be freed. */
const char *runs_read(const char *path, struct run **ret_runs, size_t *ret_count,
                      unsigned *ret_line);
/* The same of one run: name, model and constants, without what must come out. */
const char *run_read(const char *text, struct run *ret_run);

#endif
