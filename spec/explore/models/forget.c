/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * forget.c -- a server that loses what it has lent, or is replaced by one that knows
 * nothing of it, while nodes have it in hand.
 *
 * A window's units are counted by the window that they were lent from, as the server that
 * lent them called it.  A server that takes over may have a clock that is behind.
 *
 * Shipped   quarantine_until of stores/quarantine.c, lease_step, window.c.
 * Spec      spec/Forget.tla: the same states.
 */
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"
#include "stores/quarantine.h"

#define NODES 3
#define WINDOWS 4
#define TICK_US QUARANTINE_SKEW_US

enum { N, LIMIT, BATCH, TICKS, WINDOW_COUNT, FORGETS, BEHIND, AHEAD, QUIET, MOST };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 30, 4, "" },
	{ "batch", 1, 30, 2, "" },
	{ "ticks", 1, 6, 3, "in a window; a tick is the skew that is reckoned with" },
	{ "windows", 1, WINDOWS, 3, "" },
	{ "forgets", 0, 3, 1, "times that a server forgets" },
	{ "behind", 0, 3, 1,
	  "ticks that later servers' clocks may be behind the first's" },
	{ "ahead", 0, 1, 0, "ticks that it may be ahead: outside what is promised" },
	{ "quiet", 0, 1, 1, "guard at 0: who has forgotten lends nothing for a while" },
	{ "most", 1, 60, 60, "ticks that nobody waits longer than" },
	{ NULL, 0, 0, 0, NULL },
};

struct node {
	uint8_t credit;
	uint8_t window; /* that it was lent from */
	uint8_t rest;   /* ticks until it dies */
};

struct state {
	uint8_t now; /* ticks, by the server's clock */
	uint8_t used;
	uint8_t quiet; /* ticks that it lends nothing for */
	uint8_t forgets;
	uint8_t behind;   /* ticks, of the first server's clock */
	uint8_t by_clock; /* admitted while the server's clock was in this window */
	uint8_t admitted[WINDOWS]; /* by the window that the units were lent from */
	struct node nodes[NODES];
};

static struct rule rule;

static const char *open(const long *c)
{
	struct gale_rule config =
	    gale_fixed_window((uint64_t)c[LIMIT], (uint64_t)c[TICKS] * TICK_US);

	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	(void)c;
	step(walk, &state, CHANCE, "a server that knows that nothing was lent", 0, 0);
}

static long window_of(const long *c, const struct state *state)
{
	return state->now / c[TICKS];
}

static uint64_t instant(const long *c, long tick)
{
	return (uint64_t)(1000 * c[TICKS] + tick) * TICK_US;
}

/* The client asks for nothing, as long as the server is quiet. */
static void lend(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	uint64_t start = instant(c, window_of(c, state) * c[TICKS]);
	struct window_state words = words_of_window(&rule, start, state->used);
	struct ledger ledger = { 0 };
	struct lease_ask ask = {
		.node = 1, .number = 1, .want = (uint64_t)c[BATCH], .least = 1
	};
	struct lease_grant grant;

	if (state->quiet > 0 || node->credit > 0)
		return;
	grant = lease_step(&rule, (uint64_t *)&words, &ledger, instant(c, state->now),
	                   &ask);
	if (grant.units == 0)
		return;
	after.used += small(grant.units);
	*node = (struct node){ small(grant.units), (uint8_t)window_of(c, state),
		               small(grant.lasts_us / TICK_US) };
	step(walk, &after, FAIR, "node %d is lent %d", n, (int)grant.units);
}

static void spend(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	(void)c;
	if (node->credit == 0)
		return;
	after.admitted[node->window]++;
	after.by_clock++;
	if (--node->credit == 0)
		*node = (struct node){ 0 };
	step(walk, &after, CHANCE, "node %d admits", n, 0);
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (state->now + 1 == c[TICKS] * c[WINDOW_COUNT])
		return;
	after.now++;
	if (after.quiet > 0)
		after.quiet--;
	if (after.now % c[TICKS] == 0)
		after.used = after.by_clock = 0;
	for (int n = 0; n < c[N]; n++)
		if (after.nodes[n].credit > 0 && --after.nodes[n].rest == 0)
			after.nodes[n] = (struct node){ 0 };
	step(walk, &after, FAIR, "a tick", 0, 0);
}

static uint8_t quiet_for(const long *c, const struct state *state)
{
	uint64_t since = instant(c, state->now);
	uint64_t until = quarantine_until(&rule, since, (uint64_t)c[MOST] * TICK_US);

	return c[QUIET] ? small((until - since) / TICK_US) : 0;
}

static void forget(const long *c, const struct state *state, struct walk *walk)
{
	long last = c[TICKS] * c[WINDOW_COUNT];

	for (long off = state->behind - c[BEHIND]; off <= c[AHEAD]; off++) {
		struct state after = *state;
		long now = state->now + off;

		if (now < 0 || now >= last || state->forgets == c[FORGETS])
			continue;
		after.now = (uint8_t)now;
		if (off < 0)
			after.behind += (uint8_t)-off;
		if (window_of(c, &after) != window_of(c, state))
			after.by_clock = 0;
		after.used = 0;
		after.forgets++;
		after.quiet = quiet_for(c, &after);
		step(walk, &after, CHANCE,
		     "a server takes over that knows nothing, its clock %d off",
		     (int)off, 0);
	}
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		lend(c, state, n, walk);
		spend(c, state, n, walk);
	}
	tick(c, state, walk);
	forget(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

/* Where clocks agree, windows are also the server's own. */
static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	return c[BEHIND] == 0 && state->by_clock > c[LIMIT] ? "by-clock" : NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long most = 0;

	for (int i = 0; i < c[WINDOW_COUNT]; i++)
		most = larger_of(most, state->admitted[i]);
	return most;
}

/* It lends again some day. */
static bool is_open(const long *c, const void *at)
{
	const struct state *state = at;

	return state->quiet == 0 || state->now + 1 == c[TICKS] * c[WINDOW_COUNT];
}

static const struct goal goals[] = {
	{ "open", CERTAIN, is_open },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "tick %d of window %ld, used %d, quiet %d, admitted",
	        state->now % (int)c[TICKS], window_of(c, state), state->used,
	        state->quiet);
	for (int i = 0; i < c[WINDOW_COUNT]; i++)
		fprintf(out, " %d", state->admitted[i]);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, "; node %d: %d for %d", n, state->nodes[n].credit,
		        state->nodes[n].rest);
}

const struct model forget_model = {
	.name = "forget",
	.about = "a server that has forgotten what it lent",
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
