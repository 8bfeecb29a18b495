/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * search.h -- every state that can be reached, breadth first.
 *
 * All threads work on one level, and begin the next together: a state is met by one of
 * the shortest ways, and how many there are does not depend on the threads.  When one is
 * broken, the level is finished, and that was it.
 *
 * Threads   One calls; search_run has some of its own while it runs.
 */
#ifndef SPEC_EXPLORE_SEARCH_H
#define SPEC_EXPLORE_SEARCH_H

#include "spec/explore/model.h"
#include "spec/explore/space.h"

struct search {
	const struct model *model;
	const long *c;
	struct space space;

	/* What came out. */
	uint64_t steps;  /* that were looked at; most lead where others led */
	uint32_t levels; /* with new states, but for the first */
	long found;      /* the largest */
	uint32_t bad;    /* a state that is broken, or STATE_NONE */
	const char *why; /* NULL, or what does not hold there */
	bool out_of_memory;
	double seconds;
	double worked; /* the same, of all processors together */
};

/* False: not enough memory to begin with. */
bool search_open(struct search *search, const struct model *model, const long *c,
                 uint32_t threads, uint64_t bytes_most);
void search_run(struct search *search);
void search_close(struct search *search);

/* The numbered steps to a state. */
void search_print_way(const struct search *search, uint32_t state, FILE *out);

#endif
