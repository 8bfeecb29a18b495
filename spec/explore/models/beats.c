/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * beats.c -- heartbeats of a group, each of which is answered at once.
 *
 * A beat is one step: the node reports, the store grants, the node applies.  There are two
 * rules: the predecessor's, which sees what all have in flight, for the counts that are
 * known of it; and ours, which knows what nodes have reported, and lets who leaves drain.
 *
 * Shipped   group_begin, group_beat, group_remove (ours).
 * Spec      spec/Beats.tla: the same states.
 */
#include "spec/explore/models/shelf.h"

enum { N, LIMIT, OURS, DEMAND, CAP, LEAVE, DRAIN, TURNS };

static const struct constant constants[] = {
	{ "nodes", 1, SHELF_NODES, 2, "" },
	{ "limit", 1, 20, 4, "" },
	{ "ours", 0, 1, 1, "0: the predecessor's rule" },
	{ "demand", 0, 1, 0, "L is parted by demand, not equally" },
	{ "cap", 0, 2, 2,
	  "guard at 1: what is in flight is reserved; at 0: shares are, too" },
	{ "leave", 0, 1, 1, "nodes leave" },
	{ "drain", 0, 1, 1,
	  "guard at 0: who leaves tells what it has in flight (C-2)" },
	{ "turns", 0, 1, 0, "what does not divide goes around" },
	{ NULL, 0, 0, 0, NULL },
};

struct node {
	uint8_t active;
	uint8_t leaves;
	uint8_t share; /* in force */
	uint8_t in_flight;
};

struct state {
	struct node nodes[SHELF_NODES];
	struct shelf shelf; /* ours */
};

static const char *open(const long *c)
{
	if (c[TURNS] && !c[OURS])
		return "turns are ours";
	return NULL;
}

static void begin(const long *c, struct walk *walk)
{
	for (int set = c[OURS] ? 0 : 1; set < (c[OURS] ? 1 : 1 << c[N]); set++) {
		struct state state = { 0 };

		state.shelf.limit = c[OURS] ? small((uint64_t)c[LIMIT]) : 0;
		for (int n = 0; n < c[N]; n++)
			state.nodes[n].active = set >> n & 1;
		step(walk, &state, CHANCE, "those of %d are there", set, 0);
	}
}

static int count_active(const long *c, const struct state *state)
{
	int count = 0;

	for (int n = 0; n < c[N]; n++)
		count += state->nodes[n].active;
	return count;
}

static void step_if_new(const struct state *state, const struct state *after,
                        enum step_kind kind, const char *says, int n, struct walk *walk)
{
	if (memcmp(state, after, sizeof(*state)) != 0)
		step(walk, after, kind, says, n, 0);
}

/* ---- The predecessor's rule ------------------------------------------------------ */

static long held(const long *c, const struct node *node)
{
	if (c[CAP] == 0)
		return 0;
	return c[CAP] == 1 ? node->share : larger_of(node->share, node->in_flight);
}

/* Those that use less than they have keep that and one more; the rest is divided. */
static long by_demand(const long *c, const struct state *state, int n)
{
	long satisfied = 0, hungry = 0, rank = 0, spare;

	if (state->nodes[n].in_flight < state->nodes[n].share)
		return state->nodes[n].in_flight + 1;
	for (int m = 0; m < c[N]; m++) {
		const struct node *node = &state->nodes[m];

		if (!node->active)
			continue;
		if (node->in_flight < node->share) {
			satisfied += node->in_flight + 1;
		} else {
			rank += m < n ? 1 : 0;
			hungry++;
		}
	}
	spare = larger_of(0, c[LIMIT] - satisfied);
	return larger_of(1, spare / hungry + (rank < spare % hungry ? 1 : 0));
}

static void reallocate(const long *c, const struct state *state, int n,
                       struct walk *walk)
{
	struct state after = *state;
	long active = count_active(c, state), left = c[LIMIT], target;

	for (int m = 0; m < c[N]; m++)
		if (m != n && state->nodes[m].active)
			left -= held(c, &state->nodes[m]);
	target = c[DEMAND] ? by_demand(c, state, n) : (c[LIMIT] + active - 1) / active;
	after.nodes[n].share = (uint8_t)larger_of(0, smaller_of(target, left));
	step_if_new(state, &after, FAIR, "node %d beats", n, walk);
}

static void next_of_theirs(const long *c, const struct state *state, int n,
                           struct walk *walk)
{
	struct state after = *state;
	const struct node *node = &state->nodes[n];

	if (!node->active) {
		after.nodes[n].active = 1;
		after.nodes[n].share = 0;
		step(walk, &after, CHANCE, "node %d joins", n, 0);
		return;
	}
	reallocate(c, state, n, walk);
	if (c[LEAVE] && count_active(c, state) > 1) {
		after.nodes[n] = (struct node){ 0 };
		step(walk, &after, CHANCE, "node %d leaves", n, 0);
	}
}

/* ---- Ours ------------------------------------------------------------------------ */

static struct shelf_world world_of(const long *c)
{
	return (struct shelf_world){
		.settings = shelf_settings(GROUP_FIXED,
		                           c[DEMAND] ? GROUP_BY_DEMAND : GROUP_EQUAL,
		                           c[LIMIT], 1),
		.generation = 2,
		.uncapped = c[CAP] == 0,
	};
}

static void beat(const long *c, const struct state *state, int n, bool limited,
                 enum step_kind kind, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct shelf_world world = world_of(c);
	bool hides = node->leaves ? !c[DRAIN] : c[CAP] < 2;
	struct group_grant grant;

	grant = shelf_beat(&world, &after.shelf, n,
	                   (struct group_report){
			       .incarnation = 1,
			       .seq = 2,
			       .generation = state->shelf.rows[n].generation,
			       .held = node->share,
			       .in_flight = hides ? 0 : node->in_flight,
			       .weight = 1,
			       .demand = node->in_flight,
			       .limited = limited,
			       .leaves = node->leaves,
			   });
	node->active = grant.result == GROUP_GRANTED;
	node->leaves &= node->active;
	node->share = node->leaves ? 0 : small(grant.share);
	/* Each beat is applied at once, so the next names the latest grant. */
	after.shelf.rows[n].seq = after.shelf.rows[n].generation = node->active;
	step_if_new(state, &after, kind, "node %d beats", n, walk);
}

static void next_of_ours(const long *c, const struct state *state, int n,
                         struct walk *walk)
{
	struct state after = *state;
	const struct node *node = &state->nodes[n];
	enum step_kind kind = node->active ? FAIR : CHANCE;

	/* A node refuses calls when it has as many as it may. */
	beat(c, state, n, false, kind, walk);
	if (c[DEMAND] && !node->leaves && node->in_flight >= node->share)
		beat(c, state, n, true, CHANCE, walk);
	if (c[LEAVE] && node->active && !node->leaves) {
		after.nodes[n].leaves = 1;
		after.nodes[n].share = 0;
		step(walk, &after, CHANCE, "node %d is to leave", n, 0);
	}
}

static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (!c[TURNS])
		return;
	after.shelf.turn = (uint8_t)((state->shelf.turn + 1) % 6);
	step(walk, &after, FAIR, "the turn goes on", 0, 0);
}

/* ---- Both ------------------------------------------------------------------------ */

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		struct state after = *state;

		if (c[OURS])
			next_of_ours(c, state, n, walk);
		else
			next_of_theirs(c, state, n, walk);
		if (state->nodes[n].active &&
		    state->nodes[n].in_flight < state->nodes[n].share) {
			after.nodes[n].in_flight++;
			step(walk, &after, CHANCE, "node %d admits", n, 0);
		}
		if (state->nodes[n].in_flight > 0) {
			after.nodes[n].in_flight = state->nodes[n].in_flight - 1;
			step(walk, &after, FAIR, "a call of node %d ends", n, 0);
		}
	}
	turn(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

/* What the store reserves for a node is at least what that may have in flight. */
static bool is_covered(const struct state *state, int n)
{
	const struct node *node = &state->nodes[n];

	return shelf_reserve(&state->shelf.rows[n]) >=
	       (uint64_t)larger_of(node->share, node->in_flight);
}

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long shares = 0;
	bool covered = true;

	for (int n = 0; n < c[N]; n++) {
		shares += state->nodes[n].active ? state->nodes[n].share : 0;
		covered &= is_covered(state, n);
	}
	if (c[CAP] == 2 && shares > c[LIMIT])
		return "shares";
	if (!c[OURS] || c[CAP] < 2 || !c[DRAIN])
		return NULL;
	if (state->shelf.unsound)
		return "sums";
	if (!covered)
		return "covered";
	return shelf_reserved(&state->shelf) > (uint64_t)c[LIMIT] ? "reserved" : NULL;
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

/* Each that is there has its part, but for what does not divide; who leaves has left. */
static bool is_parted(const long *c, const void *at)
{
	const struct state *state = at;
	long part = c[LIMIT] / larger_of(1, count_active(c, state));

	if (c[DEMAND])
		part = smaller_of(part, 1);
	for (int n = 0; n < c[N] && c[OURS] && !c[TURNS]; n++)
		if (state->nodes[n].leaves ||
		    (state->nodes[n].active && state->nodes[n].share < part))
			return false;
	return true;
}

/* The last of the nodes, which no rank favours, has a share if it is there. */
static bool is_served(const long *c, const void *at)
{
	const struct node *node = &((const struct state *)at)->nodes[c[N] - 1];

	return !node->active || node->share > 0;
}

static const struct goal goals[] = {
	{ "parted", CERTAIN, is_parted },
	{ "served", REACHABLE, is_served },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "turn %d", state->shelf.turn);
	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];
		const struct row *row = &state->shelf.rows[n];

		fprintf(out, "; node %d%s%s: share %d, %d in flight", n,
		        node->active ? "" : " away", node->leaves ? " leaves" : "",
		        node->share, node->in_flight);
		if (row->life > 0)
			fprintf(out, " (share %d, high %d, in flight %d)", row->share,
			        row->high, row->in_flight);
	}
}

const struct model beats_model = {
	.name = "beats",
	.about = "heartbeats that are answered at once: the predecessor's, and ours",
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
