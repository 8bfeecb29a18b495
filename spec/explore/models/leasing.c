/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leasing.c -- a window's units, lent in batches; what is left dies with it, or carries
 * over.
 *
 * No clocks and no messages: an ask is answered at once, and windows turn for all at once.
 * It is the predecessor's model, with parts of a batch lent where no more is left.
 *
 * Shipped   borrow_ask; lease_step and with it window.c.
 * Spec      spec/Leasing.tla: the same states.
 */
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 8
#define WINDOW_US 1000000

enum { N, LIMIT, BATCH, COST, CARRY, WHOLE, LATE };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 60, 4, "" },
	{ "batch", 1, 60, 2, "" },
	{ "cost", 1, 8, 1, "of every call" },
	{ "carry", 0, 1, 0, "what is left of a window is kept in the next" },
	{ "whole", 0, 1, 0, "guard off: a batch is lent as a whole, or not (W-7)" },
	{ "late", 0, 1, 0, "who asked may have gone when the answer comes" },
	{ NULL, 0, 0, 0, NULL },
};

struct state {
	uint8_t left; /* at the store */
	uint8_t admitted;
	uint8_t credit[NODES];
};

static struct rule rule;

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], WINDOW_US);

	if (c[COST] > c[LIMIT])
		return "cost is above the limit: nothing would ever be admitted";
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { .left = small((uint64_t)c[LIMIT]) };

	step(walk, &state, CHANCE, "a window begins", 0, 0);
}

/* What the store lends of what is left. */
static uint64_t lent(const long *c, const struct state *state, uint64_t want,
                     uint64_t least)
{
	uint64_t start = 1000 * (uint64_t)WINDOW_US;
	struct window_state words =
	    words_of_window(&rule, start, (uint64_t)c[LIMIT] - state->left);
	struct ledger ledger = { 0 };
	struct lease_ask ask = { .node = 1, .number = 1, .want = want, .least = least };

	return lease_step(&rule, (uint64_t *)&words, &ledger, start, &ask).units;
}

static void lease(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct borrow_ask ask =
	    ask_for_call((uint64_t)c[COST], state->credit[n], c[BATCH]);
	uint64_t units = lent(c, state, ask.want, c[WHOLE] ? ask.want : ask.least);
	struct state after = *state;

	if (units == 0)
		return;
	after.left -= small(units);
	after.credit[n] += small(units);
	if (c[LATE])
		step(walk, &after, CHANCE, "node %d is lent %d, for nobody", n,
		     (int)units);
	after.credit[n] -= small((uint64_t)c[COST]);
	after.admitted += small((uint64_t)c[COST]);
	step(walk, &after, FAIR, "node %d is lent %d, and admits", n, (int)units);
}

static void serve(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.credit[n] -= small((uint64_t)c[COST]);
	after.admitted += small((uint64_t)c[COST]);
	step(walk, &after, FAIR, "node %d admits", n, 0);
}

static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.left = small((uint64_t)c[LIMIT]);
	after.admitted = 0;
	for (int n = 0; n < c[N] && !c[CARRY]; n++)
		after.credit[n] = 0;
	step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++)
		if (state->credit[n] >= c[COST])
			serve(c, state, n, walk);
		else
			lease(c, state, n, walk);
	turn(c, state, walk);
}

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++)
		if (state->credit[n] >
		    larger_of(c[BATCH], c[COST]) + (c[LATE] ? c[COST] - 1 : -1))
			return "credit";
	return NULL;
}

/* What a node may have in hand when a window turns: less than a batch, if calls take from
 * what comes; a batch and what was too little, if they have gone. */
static long bound(const long *c)
{
	long in_hand = c[LATE] ? c[BATCH] + c[COST] - 1 : c[BATCH] - 1;

	return c[LIMIT] + (c[CARRY] ? c[N] * in_hand : 0);
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->admitted;
}

/* Calls of the smallest cost get all of a window. */
static bool is_used_up(const long *c, const void *at)
{
	return ((const struct state *)at)->admitted >= c[LIMIT];
}

static const struct goal goals[] = {
	{ "used-up", CERTAIN, is_used_up },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "left %d, admitted %d, credit", state->left, state->admitted);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, " %d", state->credit[n]);
}

const struct model leasing_model = {
	.name = "leasing",
	.about = "units lent in batches; windows turn for all at once",
	.constants = constants,
	.goals = goals,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
