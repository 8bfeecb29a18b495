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
 * ticks is answered that it is late.  The errand goes on for late more: what comes then is for
 * those who ask next.  Waiters differ: the first costs 1, the second 2, ...
 *
 * Shipped   borrow_ask, borrow_hear, borrow_served; lease_step and window.c; purse_put,
 *           purse_take, purse_deny and purse_refuses of shards/purse.c.  The actor that carries
 *           the orders out is here, in short.
 * Spec      spec/Waiters.tla: the same states.
 */
#include "shards/purse.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define WAITERS 3
#define TICK_US 1000000
#define TICK_NS (UINT64_C(1000) * TICK_US)

enum { K, LIMIT, BATCH, TICKS, PATIENCE, LATE, LOSS, AGAIN, OVERDUE, DOWN };

static const struct constant constants[] = {
	{ "waiters", 1, WAITERS, 2, "that may wait at a time; the i-th costs i" },
	{ "limit", 1, 30, 4, "" },
	{ "batch", 1, 30, 2, "" },
	{ "ticks", 1, 6, 2, "in a window" },
	{ "patience", 0, 4, 2, "ticks; guard at 0: nobody is impatient" },
	{ "late", 0, 4, 0, "ticks that an errand outlives patience" },
	{ "loss", 0, 1, 1, "messages may be lost" },
	{ "again", 0, 1, 1, "guard at 0: what is left of an errand goes again" },
	{ "overdue", 0, 1, 1, "guard at 0: an errand is given up some day" },
	{ "down", 0, 1, 1,
	  "guard at 0: nobody waits for an errand that is overdue (LESSOR-8)" },
	{ NULL, 0, 0, 0, NULL },
};

enum errand { NONE, WANTING, FLYING, SERVED, LOST };

struct state {
	uint8_t phase; /* ticks of the window */
	uint8_t used;
	uint8_t credit;
	uint8_t denial; /* the least cost that is refused, or 0 */
	uint8_t errand;
	uint8_t want;           /* that it asks for ... */
	uint8_t least;          /* ... or so much of it */
	uint8_t age;            /* ticks that it flies */
	uint8_t units;          /* of the answer ... */
	uint8_t left;           /* ... and what was left at the store */
	uint8_t stale;          /* its window is over */
	uint8_t waits[WAITERS]; /* ticks until it is impatient, and one; 0: nobody */
};

static struct rule rule;
static struct borrow_terms terms;
static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	struct gale_rule config =
	    gale_fixed_window((uint64_t)c[LIMIT], (uint64_t)c[TICKS] * TICK_US);

	if (c[LIMIT] < c[K])
		return "limit: somebody costs more than that";
	if (c[LATE] > 0 && c[PATIENCE] == 0)
		return "late: nobody is impatient";
	terms = (struct borrow_terms){
		.capacity = (uint64_t)c[LIMIT],
		.window_us = (uint64_t)c[TICKS] * TICK_US,
		.look_ns = TICK_NS,
		.has_windows = true,
	};
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
	state->credit =
	    credit_lives(purse->credit, now) ? small(credit_units(purse->credit)) : 0;
	state->denial = credit_lives(purse->denial, now)
	                    ? small(credit_units(purse->denial) + 1)
	                    : 0;
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

static bool is_overdue(const long *c, const struct state *state)
{
	return c[LATE] > 0 && state->errand >= FLYING && state->age >= c[PATIENCE];
}

static void ask(const long *c, const struct state *state, int waiter, struct walk *walk)
{
	struct state after = *state;

	if (state->waits[waiter] > 0)
		return;
	if (!settles(c, &after, waiter) && !(c[DOWN] && is_overdue(c, state))) {
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

static struct borrow_need need_of(const struct state *state)
{
	struct borrow_need need = { .denied = state->denial,
		                    .common = state->credit,
		                    .held = state->credit };

	for (uint64_t i = 0; i < WAITERS; i++)
		if (state->waits[i] > 0) {
			need.waiting += i + 1;
			need.least = need.least > 0 ? need.least : i + 1;
		}
	return need;
}

static void send(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct borrow_need need = need_of(state);
	struct borrow_ask said = borrow_ask(&terms, &need, (uint64_t)c[BATCH]);

	after.errand = FLYING;
	after.want = small(said.want);
	after.least = small(said.least);
	step(walk, &after, FAIR, "the errand is sent", 0, 0);
}

static void serve(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	uint64_t start = 1000 * (uint64_t)c[TICKS] * TICK_US;
	struct window_state words = words_of_window(&rule, start, state->used);
	struct ledger ledger = { 0 };
	struct lease_ask lease = {
		.node = 1, .number = 1, .want = state->want, .least = state->least
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

static void rest(const long *c, struct state *state, const struct borrow_orders *orders)
{
	bool again = (orders->what & BORROW_ASK_AGAIN) && c[AGAIN];

	state->errand = again ? WANTING : NONE;
	state->want = state->least = state->age = 0;
	state->units = state->left = state->stale = 0;
}

/* How it ends depends on instants, which are window.c's: here an answer takes no time. */
static struct lease_grant grant_of(const long *c, const struct state *state)
{
	uint64_t lasts_us =
	    state->stale ? 0 : (end_of_window(c, state).ns - now.ns) / 1000;

	return (struct lease_grant){ .units = state->units,
		                     .left = state->left,
		                     .lasts_us = lasts_us,
		                     .retry_us = lasts_us };
}

static void serve_waiters(const long *c, struct state *state)
{
	for (int i = 0; i < c[K]; i++)
		if (state->waits[i] > 0 && settles(c, state, i))
			state->waits[i] = 0;
}

static void reply(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct lease_grant grant = grant_of(c, state);
	struct borrow_answer answer = { .grant = &grant,
		                        .want = state->want,
		                        .capacity = terms.capacity,
		                        .sent = now };
	struct borrow borrow = { .seen = BORROW_UNSEEN };
	struct borrow_orders orders;
	struct purse purse;

	purse_of(c, state, &purse);
	if (grant.units > 0)
		purse_put(&purse, mono_after(now, grant.lasts_us * 1000), grant.units,
		          now);
	answer.lives = credit_lives(purse.credit, now);
	orders = borrow_hear(&terms, &borrow, &answer);
	if (orders.what & BORROW_DENY)
		purse_deny(&purse, orders.until,
		           orders.beyond + credit_units(purse.credit));
	keep(&after, &purse);
	if (orders.what & BORROW_SLEEP) {
		orders = borrow_resume(anybody_waits(&after)); /* it has turned */
	} else {
		serve_waiters(c, &after);
		orders = borrow_served(&terms, &borrow, &answer, anybody_waits(&after));
	}
	rest(c, &after, &orders);
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

/* shards/turn.c: who waits is told when patience ends, and not when all is over. */
static void give_up_overdue(const long *c, struct state *state)
{
	struct borrow_orders orders;

	if (state->errand < FLYING || ++state->age < c[PATIENCE])
		return;
	if (!c[OVERDUE]) {
		state->age = (uint8_t)c[PATIENCE];
		return;
	}
	for (int i = 0; i < c[K] && state->age == c[PATIENCE]; i++)
		state->waits[i] = 0;
	if (state->age < c[PATIENCE] + c[LATE])
		return;
	orders = borrow_resume(false);
	rest(c, state, &orders);
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
		send(c, state, walk);
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
