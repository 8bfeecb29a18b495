/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * history.c -- acknowledged hand-off, as the predecessor's model has it: with all grants.
 *
 * A node's grants are kept in a row.  It may apply any that is later than what it has, in
 * whatever order they come.  It reports which one it has applied and what it has in flight.
 * What may still come in force is reserved: the largest since the one that it reported.
 *
 *     4   6   3            granted
 *     ^ack    ^applied     max(4, 6, 3) is reserved, and what was reported in flight
 *
 * The counts are known from elsewhere: a check of the explorer, and what engine/group.h
 * keeps in one number, .high, told at length.
 *
 * Shipped   nothing.
 * Spec      spec/Handoff.tla: the same states.
 */
#include <string.h>

#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define GRANTS 3

enum { N, LIMIT, GRANTED, TRIM, UNACKED, FLIGHT, TORN };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 20, 4, "" },
	{ "grants", 1, GRANTS, 3, "to a node" },
	{ "trim", 0, 1, 0, "grants that nobody looks at any more are dropped" },
	{ "unacked", 0, 1, 1,
	  "guard at 0: the latest grant and the one that is applied are reserved" },
	{ "flight", 0, 1, 1, "guard at 0: what is in flight is reserved" },
	{ "torn", 0, 1, 0, "guard off: in a report the two are of different times" },
	{ NULL, 0, 0, 0, NULL },
};

struct node {
	uint8_t active;
	uint8_t count;
	uint8_t granted[GRANTS];
	uint8_t applied; /* 1 and up; 0: none */
	uint8_t ack;     /* as reported */
	uint8_t in_flight;
	uint8_t reported;
};

struct state {
	struct node nodes[NODES];
};

static const char *open(const long *c)
{
	return c[TRIM] && c[GRANTED] < 2 ? "a trimmed row has room for two" : NULL;
}

static void begin(const long *c, struct walk *walk)
{
	for (int set = 1; set < 1 << c[N]; set++) {
		struct state state = { 0 };

		for (int n = 0; n < c[N]; n++)
			state.nodes[n].active = set >> n & 1;
		step(walk, &state, CHANCE, "those of %d are there", set, 0);
	}
}

static long in_force(const struct node *node)
{
	return node->applied == 0 ? 0 : node->granted[node->applied - 1];
}

static long committed(const struct node *node)
{
	return node->count == 0 ? 0 : node->granted[node->count - 1];
}

static long reserve(const long *c, const struct node *node)
{
	long most = committed(node);

	if (c[UNACKED])
		for (int i = (int)larger_of(1, node->ack); i <= node->count; i++)
			most = larger_of(most, node->granted[i - 1]);
	else if (node->ack > 0)
		most = larger_of(most, node->granted[node->ack - 1]);
	return c[FLIGHT] ? larger_of(most, node->reported) : most;
}

/* What is before the one that was reported counts no more. */
static void trim(const long *c, struct node *node)
{
	int dead = node->ack - 1;

	if (!c[TRIM] || dead <= 0)
		return;
	memmove(node->granted, node->granted + dead, (size_t)(node->count - dead));
	memset(node->granted + node->count - dead, 0, (size_t)dead);
	node->count = (uint8_t)(node->count - dead);
	node->applied = (uint8_t)(node->applied - dead);
	node->ack = 1;
}

static void grant(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	long active = 0, left = c[LIMIT];

	for (int m = 0; m < c[N]; m++)
		if (state->nodes[m].active) {
			active++;
			left -= m == n ? 0 : reserve(c, &state->nodes[m]);
		}
	left = smaller_of(left, (c[LIMIT] + active - 1) / active);
	node->granted[node->count++] = (uint8_t)larger_of(0, left);
	step(walk, &after, CHANCE, "node %d is granted %d", n, (int)larger_of(0, left));
}

static void report(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	node->ack = node->applied;
	if (c[TORN]) {
		trim(c, node);
		step(walk, &after, CHANCE, "node %d reports its grant", n, 0);
		after = *state;
	}
	node->reported = node->in_flight;
	if (!c[TORN])
		trim(c, node);
	step(walk, &after, CHANCE, "node %d reports", n, 0);
}

static void next_of_node(const long *c, const struct state *state, int n,
                         struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	if (node->count < c[GRANTED])
		grant(c, state, n, walk);
	for (int i = node->applied + 1; i <= state->nodes[n].count; i++) {
		after = *state;
		node->applied = (uint8_t)i;
		step(walk, &after, CHANCE, "grant %d reaches node %d", i, n);
	}
	report(c, state, n, walk);
	after = *state;
	if (node->in_flight < in_force(node)) {
		node->in_flight++;
		step(walk, &after, CHANCE, "node %d admits", n, 0);
	}
}

static int count_active(const long *c, const struct state *state)
{
	int count = 0;

	for (int n = 0; n < c[N]; n++)
		count += state->nodes[n].active;
	return count;
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		struct state after = *state;

		if (!state->nodes[n].active) {
			after.nodes[n].active = 1;
			step(walk, &after, CHANCE, "node %d joins", n, 0);
			continue;
		}
		next_of_node(c, state, n, walk);
		if (state->nodes[n].in_flight > 0) {
			after.nodes[n].in_flight--;
			step(walk, &after, CHANCE, "a call of node %d ends", n, 0);
			after = *state;
		}
		if (count_active(c, state) > 1) {
			after.nodes[n] = (struct node){ 0 };
			step(walk, &after, CHANCE, "node %d leaves", n, 0);
		}
	}
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long sum = 0;

	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		sum += committed(node);
		if (node->ack > node->applied || node->applied > node->count)
			return "order";
	}
	return sum > c[LIMIT] ? "committed" : NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long in_flight = 0;

	for (int n = 0; n < c[N]; n++)
		in_flight += state->nodes[n].in_flight;
	return in_flight;
}

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		fprintf(out, "%snode %d%s:", n > 0 ? "; " : "", n,
		        node->active ? "" : " away");
		for (int i = 0; i < node->count; i++)
			fprintf(out, " %d%s%s", node->granted[i],
			        i + 1 == node->ack ? "a" : "",
			        i + 1 == node->applied ? "*" : "");
		fprintf(out, ", %d in flight (%d)", node->in_flight, node->reported);
	}
}

const struct model history_model = {
	.name = "history",
	.about = "acknowledged hand-off, as the predecessor's model has it",
	.constants = constants,
	.size = sizeof(struct state),
	.open = open,
	.begin = begin,
	.next = next,
	.broken = broken,
	.bound = bound,
	.found = found,
	.print = print,
};
