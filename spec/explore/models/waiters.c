/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * waiters.c -- asks of one key that wait for its errand, and what makes sure that each is
 * answered.
 *
 *     ask: taken or refused at once, or it waits --> the errand is sent --> the store lends
 *     --> those who wait take, or are refused; if some are left, the errand goes again
 *
 * Messages get lost; other nodes take from the same window; who has waited for patience
 * ticks is answered that it is late.  Waiters differ: the first costs 1, the second 2, ...
 *
 * Shipped   lease_step and window.c; purse_put, purse_take, purse_deny and purse_refuses
 *           of shards/purse.c.  What calls them here is shards/grant.c, errand.c and
 *           turn.c, in short.
 * Spec      spec/Waiters.tla: the same states.
 */
#include "shards/purse.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define WAITERS 3
#define TICK_US 1000000
#define TICK_NS (UINT64_C(1000) * TICK_US)

enum { K, LIMIT, BATCH, TICKS, PATIENCE, LOSS, AGAIN, OVERDUE };

static const struct constant constants[] = {
	{ "waiters", 1, WAITERS, 2, "that may wait at a time; the i-th costs i" },
	{ "limit", 1, 30, 4, "" },
	{ "batch", 1, 30, 2, "" },
	{ "ticks", 1, 6, 2, "in a window" },
	{ "patience", 0, 4, 2, "ticks; guard at 0: nobody is impatient" },
	{ "loss", 0, 1, 1, "messages may be lost" },
	{ "again", 0, 1, 1, "guard at 0: what is left of an errand goes again" },
	{ "overdue", 0, 1, 1, "guard at 0: an errand is given up some day" },
	{ NULL, 0, 0, 0, NULL },
};

enum errand { NONE, WANTING, FLYING, SERVED, LOST };

struct state {
	uint8_t phase; /* ticks of the window */
	uint8_t used;
	uint8_t credit;
	uint8_t denial; /* the least cost that is refused, or 0 */
	uint8_t errand;
	uint8_t least;          /* that it asks for */
	uint8_t age;            /* ticks that it flies */
	uint8_t units;          /* of the answer ... */
	uint8_t left;           /* ... and what was left at the store */
	uint8_t stale;          /* its window is over */
	uint8_t waits[WAITERS]; /* ticks until it is impatient, and one; 0: nobody */
};

static struct rule rule;
static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	struct gale_rule config =
	    gale_fixed_window((uint64_t)c[LIMIT], (uint64_t)c[TICKS] * TICK_US);

	if (c[LIMIT] < c[K])
		return "limit: somebody costs more than that";
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	(void)c;
	step(walk, &state, CHANCE, "nobody asks", 0, 0);
}

/* ---- The purse ------------------------------------------------------------------- */

static mono end_of_window(const long *c, const struct state *state)
{
	return mono_after(now, (uint64_t)(c[TICKS] - state->phase) * TICK_NS);
}

static void purse_of(const long *c, const struct state *state, struct purse *ret_purse)
{
	mono ends = end_of_window(c, state);

	*ret_purse = (struct purse){
		.credit = credit_until(ends, state->credit),
		.denial = state->denial > 0 ? credit_until(ends, state->denial - 1u) : 0
	};
}

static void keep(struct state *state, const struct purse *purse)
{
	state->credit = small(credit_units(purse->credit));
	state->denial = small(purse->denial ? credit_units(purse->denial) + 1 : 0);
}

/* shards/local.h: credit or memory settles it. */
static bool settles(const long *c, struct state *state, int waiter)
{
	uint64_t cost = (uint64_t)waiter + 1, word;
	struct purse purse;
	bool settled;

	purse_of(c, state, &purse);
	settled = purse_take(&purse, 0, now, cost, &word) ||
	          purse_refuses(&purse, now, cost, &word);
	keep(state, &purse);
	return settled;
}

/* ---- Steps ----------------------------------------------------------------------- */

static void ask(const long *c, const struct state *state, int waiter, struct walk *walk)
{
	struct state after = *state;

	if (state->waits[waiter] > 0)
		return;
	if (!settles(c, &after, waiter)) {
		after.waits[waiter] = (uint8_t)(c[PATIENCE] + 1);
		if (after.errand == NONE)
			after.errand = WANTING;
	}
	step(walk, &after, CHANCE, "a call of cost %d", waiter + 1, 0);
}

static bool anybody_waits(const struct state *state)
{
	return state->waits[0] + state->waits[1] + state->waits[2] > 0;
}

/* shards/errand.c, fill_ask. */
static uint8_t least_of(const struct state *state)
{
	uint8_t least = 1;

	if (!anybody_waits(state))
		return 1;
	while (state->waits[least - 1] == 0)
		least++;
	return least > state->credit ? (uint8_t)(least - state->credit) : 1;
}

static void send(const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.errand = FLYING;
	after.least = least_of(state);
	step(walk, &after, FAIR, "the errand is sent", 0, 0);
}

static uint64_t want_of(const long *c, const struct state *state)
{
	return (uint64_t)larger_of(c[BATCH], state->least);
}

static void serve(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	uint64_t start = 1000 * (uint64_t)c[TICKS] * TICK_US;
	struct window_state words = words_of_window(&rule, start, state->used);
	struct ledger ledger = { 0 };
	struct lease_ask lease = {
		.node = 1, .number = 1, .want = want_of(c, state), .least = state->least
	};
	struct lease_grant grant =
	    lease_step(&rule, (uint64_t *)&words, &ledger,
	               start + (uint64_t)state->phase * TICK_US, &lease);

	after.errand = SERVED;
	after.units = small(grant.units);
	after.used += small(grant.units);
	after.left = small(grant.left);
	step(walk, &after, FAIR, "the store lends %d", (int)grant.units, 0);
}

/* Those who were not served: shards/grant.c, go_again_or_rest. */
static void rest(const long *c, struct state *state)
{
	state->errand = anybody_waits(state) && c[AGAIN] ? WANTING : NONE;
	state->least = state->age = state->units = state->left = state->stale = 0;
}

static void take_grant(const long *c, struct state *state)
{
	mono ends = end_of_window(c, state);
	struct purse purse;

	if (state->stale)
		return;
	purse_of(c, state, &purse);
	if (state->units > 0)
		purse_put(&purse, ends, state->units, now);
	if (state->units < want_of(c, state))
		purse_deny(&purse, ends, state->left + credit_units(purse.credit) + 1u);
	keep(state, &purse);
}

static void reply(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	take_grant(c, &after);
	for (int i = 0; i < c[K]; i++)
		if (after.waits[i] > 0 && settles(c, &after, i))
			after.waits[i] = 0;
	rest(c, &after);
	step(walk, &after, FAIR, "the answer comes", 0, 0);
}

static void lose(const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.errand = LOST;
	after.units = after.left = after.stale = 0;
	step(walk, &after, CHANCE, "a message is lost", 0, 0);
}

static void others(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.used++;
	if (state->used < c[LIMIT])
		step(walk, &after, CHANCE, "another node is lent 1", 0, 0);
}

/* shards/turn.c: who waits on an errand that is given up is told so. */
static void give_up_overdue(const long *c, struct state *state)
{
	if (state->errand < FLYING || ++state->age < c[PATIENCE])
		return;
	if (!c[OVERDUE]) {
		state->age = (uint8_t)c[PATIENCE];
		return;
	}
	for (int i = 0; i < c[K]; i++)
		state->waits[i] = 0;
	rest(c, state);
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.phase = (uint8_t)((state->phase + 1) % c[TICKS]);
	if (after.phase == 0) {
		after.used = after.credit = after.denial = 0;
		after.stale = after.errand == SERVED;
	}
	if (c[PATIENCE] > 0) {
		for (int i = 0; i < c[K]; i++)
			if (after.waits[i] > 0 && --after.waits[i] == 1)
				after.waits[i] = 0;
		give_up_overdue(c, &after);
	}
	step(walk, &after, c[PATIENCE] > 0 ? FAIR : CHANCE, "a tick", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int i = 0; i < c[K]; i++)
		ask(c, state, i, walk);
	if (state->errand == WANTING)
		send(state, walk);
	if (state->errand == FLYING)
		serve(c, state, walk);
	if (state->errand == SERVED)
		reply(c, state, walk);
	if (c[LOSS] && (state->errand == FLYING || state->errand == SERVED))
		lose(state, walk);
	others(c, state, walk);
	tick(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

/* Who waits is somebody's: an errand is under way for him. */
static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	if (anybody_waits(state) && state->errand == NONE)
		return "forgotten";
	return state->used > c[LIMIT] ? "lent" : NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->credit;
}

static bool is_answered(const long *c, const void *at)
{
	(void)c;
	return !anybody_waits(at);
}

static bool is_free(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->errand == NONE;
}

static const struct goal goals[] = {
	{ "answered", CERTAIN, is_answered },
	{ "free", REACHABLE, is_free },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	static const char *const names[] = { "none", "wanting", "flying", "served",
		                             "lost" };
	const struct state *state = at;

	fprintf(out, "tick %d, used %d, credit %d, denied from %d, errand %s, wait",
	        state->phase, state->used, state->credit, state->denial,
	        names[state->errand]);
	for (int i = 0; i < c[K]; i++)
		fprintf(out, " %d", state->waits[i]);
}

const struct model waiters_model = {
	.name = "waiters",
	.about = "asks that wait for an errand, and are answered",
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
