/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * window.c -- leases of a window over a slow network, and clocks that drift.
 *
 * A node sends, the store lends, the answer comes, each when it likes; it may be lost.
 * Every node's clock runs by itself: in a tick of the store it goes on by QUARTERS, or by
 * drift quarters less or more, as it likes from tick to tick.
 *
 *     store     |----tick----|----tick----|            a window is so many of them
 *     a node    |---quarters---|--quarters--|
 *
 * Shipped   lease_step and window.c at the store; borrow_ask, mono_until, credit.h, and
 *           purse_put and purse_take of shards/purse.c at the node.
 * Spec      spec/WindowLease.tla: the same states, but for back and wall.
 */
#include "shards/purse.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 4
#define QUARTERS 4
#define QUARTER_NS (1000 * CREDIT_TICK_NS)
#define TICK_US (QUARTERS * QUARTER_NS / 1000)

enum { N, LIMIT, BATCH, COST, TICKS, DRIFT, MARGIN, SENT, SPEND, WALL, BACK, ORDER };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 60, 2, "" },
	{ "batch", 1, 60, 1, "" },
	{ "cost", 1, 8, 1, "of every call" },
	{ "ticks", 1, 8, 3, "of the store in a window" },
	{ "drift", 0, 2, 1, "quarters of a tick that clocks gain or lose in one" },
	{ "margin", 0, 2, 1, "guard at 0: the drift that nodes reckon with (B-2)" },
	{ "sent", 0, 1, 1,
	  "guard at 0: a lease lasts from when the answer came (W-2)" },
	{ "spend", 0, 1, 1,
	  "guard at 0: who waits takes from what comes, dead or not (W-2)" },
	{ "wall", 0, 1, 0, "guard off: windows end by nodes' wall clocks (W-1)" },
	{ "back", 0, 2, 0, "times that the store's clock steps back by a tick" },
	{ "order", 0, 1, 1, "guard at 0: windows are compared for equality (W-3)" },
	{ NULL, 0, 0, 0, NULL },
};

enum under_way { NOTHING, ASKED, ANSWERED };

struct node {
	uint8_t under_way;
	uint8_t age;    /* quarters since it was sent, by the node */
	uint8_t units;  /* of the answer */
	uint8_t lasts;  /* ticks, as the answer says */
	uint8_t credit; /* in hand */
	uint8_t rest;   /* quarters until it dies, by the node; 0: it is dead */
	int8_t wall;    /* ticks that its wall clock is wrong by */
};

struct state {
	int8_t phase; /* of the store's window, in ticks; -1: its clock stepped back */
	uint8_t used;
	uint8_t admitted; /* in the store's window */
	uint8_t backs;
	struct node nodes[NODES];
};

static struct rule rule;

static uint64_t window_us(const long *c)
{
	return (uint64_t)c[TICKS] * TICK_US;
}

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], window_us(c));

	if (c[COST] > c[LIMIT])
		return "cost is above the limit: nothing would ever be admitted";
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };
	int most = c[WALL] ? 1 : 0;

	for (int a = -most; a <= most; a++)
		for (int b = -most; b <= most; b++) {
			state.nodes[0].wall = (int8_t)a;
			state.nodes[1 % NODES].wall = (int8_t)b;
			step(walk, &state, CHANCE, "wall clocks are wrong by %d, %d", a,
			     b);
		}
}

/* ---- The store ------------------------------------------------------------------- */

static uint64_t instant(const long *c, int phase)
{
	return (uint64_t)((int64_t)(1000 * window_us(c)) + phase * (int64_t)TICK_US);
}

static struct lease_grant lend(const long *c, struct state *state)
{
	struct window_state words = words_of_window(&rule, instant(c, 0), state->used);
	struct ledger ledger = { 0 };
	struct borrow_ask said = ask_for_call((uint64_t)c[COST], 0, c[BATCH]);
	struct lease_ask ask = {
		.node = 1, .number = 1, .want = said.want, .least = said.least
	};
	struct lease_grant grant;

	if (state->phase < 0 && state->used == 0)
		words.start_us = instant(c, 0); /* it had turned, and keeps that */
	grant = lease_step(&rule, (uint64_t *)&words, &ledger, instant(c, state->phase),
	                   &ask);
	state->used = small((uint64_t)(state->used + grant.units));
	return grant;
}

/* The predecessor's: an older instant is another window, and so is the next. */
static void forget_by_equality(const long *c, struct state *state)
{
	if (!c[ORDER])
		state->used = 0;
}

static void serve(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct lease_grant grant;

	if (after.phase < 0)
		forget_by_equality(c, &after);
	grant = lend(c, &after);
	node->under_way = grant.units > 0 ? ANSWERED : NOTHING;
	node->units = small(grant.units);
	node->lasts = grant.units > 0 ? small(grant.lasts_us / TICK_US) : 0;
	if (grant.units == 0)
		node->age = 0;
	step(walk, &after, FAIR, "the store lends %d %d", n, (int)grant.units);
}

/* ---- A node ---------------------------------------------------------------------- */

/* What is dead stays in the word, until something is put there. */
static void keep(struct node *node, const struct purse *purse)
{
	uint64_t dies = credit_dies(purse->credit).ns;

	node->credit = small(credit_units(purse->credit));
	node->rest = dies > HERE_NS ? small((dies - HERE_NS) / QUARTER_NS) : 0;
	if (node->credit == 0)
		node->rest = 0;
}

static void purse_of(const struct node *node, struct purse *ret_purse)
{
	mono dies = { HERE_NS + node->rest * QUARTER_NS };

	*ret_purse = (struct purse){ .credit = credit_until(dies, node->credit) };
}

/* When the node's units end, by what the answer says, or by its own idea of windows. */
static mono ends_of(const long *c, const struct state *state, const struct node *node)
{
	uint64_t sent = HERE_NS - (c[SENT] ? node->age * QUARTER_NS : 0);
	long into = (state->phase + node->wall + c[TICKS]) % c[TICKS];

	if (c[WALL])
		return (mono){ HERE_NS +
			       (uint64_t)(c[TICKS] - into) * QUARTERS * QUARTER_NS };
	return mono_until((mono){ sent }, (lasting){ node->lasts * TICK_US },
	                  (uint32_t)(c[MARGIN] * 1000000 / QUARTERS));
}

static void forget_answer(struct node *node)
{
	node->under_way = NOTHING;
	node->age = node->units = node->lasts = 0;
}

static void reply(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	mono ends = ends_of(c, state, node), now = { HERE_NS };
	struct purse purse;

	if (!c[SPEND] && node->units >= c[COST]) {
		node->units -= small((uint64_t)c[COST]);
		after.admitted += small((uint64_t)c[COST]);
	}
	purse_of(node, &purse);
	purse_put(&purse, ends, node->units, now);
	keep(node, &purse);
	forget_answer(node);
	step(walk, &after, FAIR, "node %d has the answer", n, 0);
}

static void spend(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct purse purse;
	uint64_t word;

	purse_of(&state->nodes[n], &purse);
	if (!purse_take(&purse, 0, (mono){ HERE_NS }, (uint64_t)c[COST], &word))
		return;
	keep(&after.nodes[n], &purse);
	after.admitted += small((uint64_t)c[COST]);
	step(walk, &after, CHANCE, "node %d admits", n, 0);
}

static void send(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n].under_way = ASKED;
	step(walk, &after, CHANCE, "node %d asks", n, 0);
}

static void lose(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	forget_answer(&after.nodes[n]);
	step(walk, &after, CHANCE, "node %d gives up", n, 0);
}

static void crash(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n] = (struct node){ .wall = state->nodes[n].wall };
	step(walk, &after, CHANCE, "node %d begins anew", n, 0);
}

static void next_of_node(const long *c, const struct state *state, int n,
                         struct walk *walk)
{
	const struct node *node = &state->nodes[n];

	if (node->under_way == NOTHING)
		send(state, n, walk);
	else
		lose(state, n, walk);
	if (node->under_way == ASKED)
		serve(c, state, n, walk);
	if (node->under_way == ANSWERED)
		reply(c, state, n, walk);
	if (node->credit >= c[COST])
		spend(c, state, n, walk);
	if (node->credit > 0)
		crash(state, n, walk);
}

/* ---- Time ------------------------------------------------------------------------ */

/* An answer that is older than any lease can last is dead, however much older. */
static void go_on(const long *c, struct node *node, int quarters)
{
	long oldest = c[TICKS] * QUARTERS;

	if (node->under_way != NOTHING)
		node->age = (uint8_t)smaller_of(node->age + quarters, oldest);
	node->rest = node->rest > quarters ? (uint8_t)(node->rest - quarters) : 0;
}

static void tick_store(const long *c, struct state *state)
{
	if (state->phase < 0)
		forget_by_equality(c, state);
	if (++state->phase < c[TICKS])
		return;
	state->phase = 0;
	state->used = state->admitted = 0;
}

/* Each node's clock goes by itself: the ways are counted through. */
static void tick(const long *c, const struct state *state, struct walk *walk)
{
	int ways = 1, pace = c[DRIFT] > 0 ? 3 : 1;

	for (int n = 0; n < c[N]; n++)
		ways *= pace;
	for (int way = 0; way < ways; way++) {
		struct state after = *state;
		int rest = way;

		tick_store(c, &after);
		for (int n = 0; n < c[N]; n++, rest /= pace)
			go_on(c, &after.nodes[n],
			      QUARTERS + (rest % pace - pace / 2) * (int)c[DRIFT]);
		step(walk, &after, CHANCE, "a tick; clocks go by %d", way, 0);
	}
}

static void step_back(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.phase--;
	after.backs++;
	if (state->backs < c[BACK] && state->phase >= 0)
		step(walk, &after, CHANCE, "the store's clock steps back", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++)
		next_of_node(c, state, n, walk);
	tick(c, state, walk);
	step_back(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	return state->used > c[LIMIT] ? "lent" : NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->admitted;
}

static bool is_answered(const long *c, const void *at)
{
	const struct state *state = at;
	bool answered = true;

	for (int n = 0; n < c[N]; n++)
		answered &= state->nodes[n].under_way == NOTHING;
	return answered;
}

static bool is_used_up(const long *c, const void *at)
{
	return ((const struct state *)at)->admitted > c[LIMIT] - c[COST];
}

static const struct goal goals[] = {
	{ "answered", CERTAIN, is_answered },
	{ "used-up", REACHABLE, is_used_up },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	static const char *const names[] = { "idle", "asked", "answered" };
	const struct state *state = at;

	fprintf(out, "tick %d used %d admitted %d", state->phase, state->used,
	        state->admitted);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, "; %s %d (%d for %d, age %d), has %d for %d",
		        names[state->nodes[n].under_way], n, state->nodes[n].units,
		        state->nodes[n].lasts, state->nodes[n].age,
		        state->nodes[n].credit, state->nodes[n].rest);
}

const struct model window_model = {
	.name = "window",
	.about =
	    "leases that die with the store's window, whatever clocks and network do",
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
