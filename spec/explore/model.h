/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * model.h -- what a small world must tell, so that all of it can be explored.
 *
 * A model has constants (numbers with names), states (so many bytes, nothing else), and
 * steps.  It says what must hold in each state, and what must stay possible.  The rest
 * (finding all states, counting, the way to a bad one) is the explorer's.
 *
 *     begin -> state --next--> states --next--> ...      broken? found? in each
 *
 * A new model is one file with one struct model, and a line in models/all.c.
 *
 * Threads   A model's functions: any, at once.  They keep nothing between calls; what
 *           open works out is constant afterwards.
 */
#ifndef SPEC_EXPLORE_MODEL_H
#define SPEC_EXPLORE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONSTANTS_MOST 32
#define STATE_BYTES_MOST 256

struct constant {
	const char *name; /* NULL: the last was before */
	long least;
	long most;
	long usual;
	const char *says;
};

/* How a step came about. */
enum step_kind {
	CHANCE, /* it may be taken, or never: demand, faults */
	FAIR,   /* it is taken some day, if it stays possible */
};

/* Who is told of a state's successors. */
struct walk {
	void (*take)(struct walk *self, const void *state, enum step_kind kind,
	             const char *says, int a, int b);
};

/* says is a text for printf with at most two %d. */
static inline void step(struct walk *walk, const void *state, enum step_kind kind,
                        const char *says, int a, int b)
{
	walk->take(walk, state, kind, says, a, b);
}

/* What must stay possible, or must come. */
enum goal_kind {
	REACHABLE, /* from each state one that is good can be reached */
	CERTAIN,   /* if only fair steps are taken, in whatever order, one is reached */
};

struct goal {
	const char *name; /* NULL: the last was before */
	enum goal_kind kind;
	bool (*good)(const long *c, const void *state);
};

struct model {
	const char *name;
	const char *about;
	const struct constant *constants;
	const struct goal *goals; /* NULL: none */
	size_t size;              /* of a state, in bytes */

	/* NULL, or why these constants make no sense together.  Called before the rest,
	 * once for each run. */
	const char *(*open)(const long *c);
	void (*begin)(const long *c, struct walk *walk);
	void (*next)(const long *c, const void *state, struct walk *walk);
	/* NULL, or what does not hold. */
	const char *(*broken)(const long *c, const void *state);
	/* What found must never exceed, and what it is in a state. */
	long (*bound)(const long *c);
	long (*found)(const long *c, const void *state);
	void (*print)(const long *c, const void *state, FILE *out);
};

extern const struct model *const models[]; /* NULL: the last was before */

#endif
