/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * script.h -- what a world is asked, and what befalls it meanwhile.
 *
 * Asks are numbered.  The draws for one follow from the seed and its number alone, so
 * that some can be left out and the others stay as they were.
 *
 * Threads   One.
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include <stdio.h>

#include "sim/world.h"

#define SCRIPT_ASKS_MOST 1000000 /* that can be chosen from */
#define SCRIPT_COSTS_MOST 8

/* Each is as likely as its weight among all. */
struct cost {
	uint64_t units;
	uint64_t weight;
};

struct script {
	struct world_plan plan;
	uint64_t asks;
	uint64_t begins_us; /* when the first is made at the earliest; 0: at once */
	uint64_t ends_us; /* when there are no more, however few there were; 0: never */
	uint64_t gap_us;  /* mean time between two asks ... */
	uint64_t gap_ns;  /* ... and what is below a microsecond of it */
	uint64_t cost_most; /* from 1; if there are no costs */
	struct cost costs[SCRIPT_COSTS_MOST];
	size_t cost_count;
	uint64_t stays; /* asks in a row that are of one node and key; 0: each of any */
	uint32_t crash_each; /* asks; 0: never */
	uint32_t pause_each;
	uint32_t cut_each;
	uint32_t fail_each;    /* the store does; with plan.fails */
	uint32_t copy_each;    /* its replica is given all that was written */
	bool bursts;           /* many at the same instant */
	bool edges;            /* many close to where windows turn */
	bool calm;             /* steady demand, each node in its turn */
	bool even;             /* all keys are asked about as often */
	uint64_t calm_windows; /* of demand */
	/* From that ask on, each such number of asks later, one node after the other has
	 * plan.next; with returns plan.rule again, in the same order. */
	uint64_t change_from;
	uint64_t change_each; /* 0: never */
	bool returns;
	bool fades; /* the first node's demand ends early in each window */
};

/* Which asks are made. */
struct choice {
	bool some; /* those only; else all */
	bool at[SCRIPT_ASKS_MOST];
};

/* Plays it on a world that is open, until nothing of it can be pending; returns how many
 * asks it came to, those that were not chosen included. */
uint64_t script_play(const struct script *script, const struct choice *choice,
                     struct world *world);

/* Digits, no sign; and "3-7", or "3" alone.  *text is moved over them.  False if there are
 * none, if they are too many, or if the last is below the first. */
bool number_read(const char **text, uint64_t *ret_number);
bool range_read(const char **text, uint64_t *ret_first, uint64_t *ret_last);

/* "3,17-20": those, and no others.  False if it is not such a list. */
bool choice_read(struct choice *choice, const char *text);
/* The same, of so many asks. */
void choice_print(const struct choice *choice, uint64_t asks, FILE *out);
void choice_set(struct choice *choice, uint64_t from, uint64_t count, bool chosen);

#endif
