/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * idle.c -- units that lie idle with one node, and calls that are refused at another.
 *
 * Within a window: a call takes from its node's units, or the node asks the store, or it is
 * refused from memory and comes again and again.  Each node looks at what it holds once in a
 * while.  From then on it gives back, asks ahead or asks again, as the shipped step says.
 *
 *     store --lease--> node 0: idle --look, look--> back to the store
 *                      node 1: refused --look, look, ...--> asks again --lease--> served
 *
 * Asks and returns are answered at once: that they may be lost is for once.c.  A denial lasts
 * until the window turns.  A hold of the first node keeps units, which are used or come back.
 *
 * Shipped   borrow_ask, borrow_lack, borrow_hear, borrow_served, borrow_look; lease_step and
 *           lease_give_back, with the ledger.
 */
#include "engine/borrow.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define WINDOW_US 16000000
#define LOOK_NS                                                                        \
	UINT64_C(1000000000) /* 16 in a window: after two, what is idle goes back */
#define UNSEEN 255

enum { N, LIMIT, BATCH, COST, HOLDS, BACK, AGAIN, ENOUGH, KEPT };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 20, 4, "" },
	{ "batch", 1, 20, 3, "" },
	{ "cost", 1, 8, 2, "of a call; others cost 1" },
	{ "holds", 0, 8, 0, "units that a hold of the first node keeps; 0: none" },
	{ "back", 0, 1, 1, "guard at 0: what is idle goes back" },
	{ "again", 0, 1, 1, "guard at 0: a node that was denied asks again" },
	{ "enough", 0, 1, 1,
	  "guard at 0: then for as much as was refused, or nothing" },
	{ "kept", 0, 1, 1, "guard at 0: what a hold keeps may come back" },
	{ NULL, 0, 0, 0, NULL },
};

struct node {
	uint8_t credit;
	uint8_t kept;   /* by a hold that runs */
	uint8_t denial; /* the least cost that is refused, or 0 */
	uint8_t wants;  /* what the call costs that was refused; 0: none was */
	uint8_t watched;
	uint8_t seen;
	uint8_t wait;
	uint8_t idle;
	uint8_t hopes;
	uint8_t holders;
	uint8_t is_patient;
	/* At the store. */
	uint8_t granted;
	uint8_t out;
};

struct state {
	uint8_t used;
	struct node nodes[NODES];
};

static struct rule rule;
static struct borrow_terms terms;
static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	struct gale_rule config = gale_fixed_window((uint64_t)c[LIMIT], WINDOW_US);

	if (c[COST] > c[LIMIT])
		return "cost is above the limit: nothing would ever be admitted";
	terms = (struct borrow_terms){
		.capacity = (uint64_t)c[LIMIT],
		.window_us = WINDOW_US,
		.look_ns = LOOK_NS,
		.has_windows = true,
	};
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	for (int n = 0; n < c[N]; n++)
		state.nodes[n].seen = UNSEEN;
	step(walk, &state, CHANCE, "nobody asks", 0, 0);
}

/* ---- The store ------------------------------------------------------------------- */

static uint64_t start_us(void)
{
	return 1000 * (uint64_t)WINDOW_US;
}

/* Numbers only rise: the next is always 2. */
static struct ledger ledger_of(const struct state *state)
{
	struct ledger ledger = { 0 };
	size_t count = 0;

	for (unsigned n = 0; n < NODES; n++)
		if (state->nodes[n].out + state->nodes[n].granted > 0)
			ledger.rows[count++] = (struct lease_row){
				.node = n + 1,
				.number = 1,
				.granted = state->nodes[n].granted,
				.out = state->nodes[n].out,
				.tag = slot_at(start_us()),
			};
	return ledger;
}

static void keep_ledger(struct state *state, const struct window_state *words,
                        const struct ledger *ledger)
{
	state->used = words->start_us == start_us() ? small(words->used) : 0;
	for (unsigned n = 0; n < NODES; n++)
		state->nodes[n].granted = state->nodes[n].out = 0;
	for (size_t i = 0; i < ledger_rows(ledger); i++) {
		struct node *node = &state->nodes[ledger->rows[i].node - 1];

		node->granted = small(ledger->rows[i].granted);
		node->out = small(ledger->rows[i].out);
	}
}

static bool may_get_back(const long *c, const struct node *node)
{
	return node->kept > 0 && c[KEPT];
}

static struct lease_grant lend(struct state *state, int n, struct borrow_ask ask,
                               bool spent)
{
	struct window_state words = words_of_window(&rule, start_us(), state->used);
	struct ledger ledger = ledger_of(state);
	struct lease_ask lease = { .node = (unsigned)n + 1,
		                   .number = 2,
		                   .want = ask.want,
		                   .least = ask.least,
		                   .spent = spent };
	struct lease_grant grant =
	    lease_step(&rule, (uint64_t *)&words, &ledger, start_us(), &lease);

	keep_ledger(state, &words, &ledger);
	return grant;
}

static void take_back(const long *c, struct state *state, int n)
{
	struct window_state words = words_of_window(&rule, start_us(), state->used);
	struct ledger ledger = ledger_of(state);
	struct node *node = &state->nodes[n];
	struct gale_slot tag = { .us = start_us(),
		                 .part = may_get_back(c, node) ? LEASE_KEEPS : 0 };
	bool back = lease_give_back(&rule, (uint64_t *)&words, &ledger, start_us(),
	                            (unsigned)n + 1, 2, tag, node->credit);

	gale_assert(back);
	keep_ledger(state, &words, &ledger);
	node->credit = node->denial = 0;
}

/* ---- A node ---------------------------------------------------------------------- */

static struct borrow borrow_of(const struct node *node)
{
	return (struct borrow){
		.seen = node->seen == UNSEEN ? BORROW_UNSEEN : node->seen,
		.wait = node->wait,
		.idle = node->idle,
		.hopes = node->hopes,
		.holders = node->holders,
		.is_patient = node->is_patient,
	};
}

static void keep_borrow(struct node *node, const struct borrow *borrow)
{
	node->seen = borrow->seen == BORROW_UNSEEN ? UNSEEN : small(borrow->seen);
	node->wait = borrow->hopes > 0 ? small(borrow->wait) : 0;
	node->idle = borrow->idle;
	node->hopes = borrow->hopes;
	node->holders = (uint8_t)borrow->holders;
	node->is_patient = borrow->is_patient;
}

/* True if it is admitted, or refused: a call of this cost has its answer. */
static bool settles(struct node *node, uint8_t cost, bool *ret_refused)
{
	*ret_refused = node->credit < cost && node->denial > 0 && cost >= node->denial;
	if (node->credit < cost)
		return *ret_refused;
	node->credit -= cost;
	return true;
}

static void deny(struct node *node, const struct borrow_orders *orders)
{
	node->denial = small(orders->beyond + node->credit);
	if (orders->what & BORROW_WATCH)
		node->watched = 1;
}

/* An errand, there and back; cost 0: for nobody in particular.  True if it is to go again. */
static bool errand(const long *c, struct state *state, int n, uint8_t cost,
                   bool *ret_refused)
{
	struct node *node = &state->nodes[n];
	struct borrow_need need = {
		.waiting = cost,
		.least = cost,
		.denied = c[ENOUGH] ? node->denial : 0,
		.common = node->credit,
		.held = node->credit,
		.ends = mono_after(now, 1000ULL * WINDOW_US),
	};
	struct borrow borrow = borrow_of(node);
	struct borrow_ask ask = borrow_ask(&terms, &need, (uint64_t)c[BATCH]);
	bool spent = node->credit == 0 && !may_get_back(c, node);
	struct lease_grant grant = lend(state, n, ask, spent);
	struct borrow_answer answer = { .grant = &grant,
		                        .want = ask.want,
		                        .capacity = terms.capacity,
		                        .sent = now,
		                        .spent = spent,
		                        .lives = true };
	struct borrow_orders orders;

	borrow_lack(&terms, &borrow, &need, &ask, now);
	node->credit += small(grant.units);
	if (grant.units > 0) {
		borrow_get(&borrow);
		node->watched = 1;
	}
	orders = borrow_hear(&terms, &borrow, &answer);
	if (orders.what & BORROW_DENY)
		deny(node, &orders);
	if (cost > 0 && settles(node, cost, ret_refused))
		cost = 0;
	orders = borrow_served(&terms, &borrow, &answer, cost > 0);
	keep_borrow(node, &borrow);
	return orders.what & BORROW_ASK_AGAIN;
}

static void call(const long *c, struct state *state, int n, uint8_t cost)
{
	bool refused;

	if (!settles(&state->nodes[n], cost, &refused))
		while (errand(c, state, n, cost, &refused))
			continue;
	if (refused && state->nodes[n].wants == 0)
		state->nodes[n].wants = cost;
}

/* The call that was refused comes again. */
static void call_again(const long *c, struct state *state, int n)
{
	uint8_t cost = state->nodes[n].wants;

	state->nodes[n].wants = 0;
	if (cost > 0)
		call(c, state, n, cost);
}

static void look(const long *c, struct state *state, int n)
{
	struct node *node = &state->nodes[n];
	struct borrow borrow = borrow_of(node);
	struct borrow_sight sight = { .left = node->credit,
		                      .ends = mono_after(now, 1000ULL * WINDOW_US),
		                      .denied = node->denial > 0,
		                      .pressed = node->wants > 0 };
	struct borrow_orders orders;
	bool refused;

	if (!node->watched)
		return;
	orders = borrow_look(&terms, &borrow, &sight, now);
	keep_borrow(node, &borrow);
	node->watched = (orders.what & BORROW_WATCH) != 0;
	if ((orders.what & BORROW_GIVE_BACK) && c[BACK])
		take_back(c, state, n);
	if ((orders.what & BORROW_ASK_AHEAD) ||
	    ((orders.what & BORROW_ASK_AGAIN) && c[AGAIN]))
		(void)errand(c, state, n, 0, &refused);
}

/* ---- Steps ----------------------------------------------------------------------- */

static void calls(const long *c, const struct state *state, int n, struct walk *walk)
{
	for (long cost = 1; cost <= c[COST]; cost += larger_of(c[COST] - 1, 1)) {
		struct state after = *state;

		call(c, &after, n, (uint8_t)cost);
		step(walk, &after, CHANCE, "a call of cost %d at node %d", (int)cost,
		     n);
	}
}

/* All nodes look once, from one of them on; after each look, its call comes again. */
static void looks(const long *c, const struct state *state, int first,
                  struct walk *walk)
{
	struct state after = *state;

	for (int i = 0; i < c[N]; i++) {
		int n = (first + i) % (int)c[N];

		look(c, &after, n);
		call_again(c, &after, n);
	}
	step(walk, &after, FAIR, "all look, from node %d on", first, 0);
}

static void look_alone(const long *c, const struct state *state, int n,
                       struct walk *walk)
{
	struct state after = *state;

	look(c, &after, n);
	step(walk, &after, CHANCE, "node %d looks", n, 0);
}

/* Of what the first node has in hand. */
static void hold(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[0];

	if (c[HOLDS] == 0 || node->kept > 0 || node->credit < c[HOLDS])
		return;
	node->kept = (uint8_t)c[HOLDS];
	node->credit -= node->kept;
	step(walk, &after, CHANCE, "a hold takes %d", node->kept, 0);
}

/* All of it is used, or nothing: then it is in hand again. */
static void settle(const struct state *state, bool used, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[0];

	if (node->kept == 0)
		return;
	if (!used) {
		node->credit += node->kept;
		node->denial = 0;
		if (!node->watched)
			node->seen = UNSEEN;
		node->watched = 1;
	}
	node->kept = 0;
	step(walk, &after, CHANCE,
	     used ? "what is held is used" : "what is held comes back", 0, 0);
}

static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.used = 0;
	for (int n = 0; n < c[N]; n++) {
		struct node *node = &after.nodes[n];

		node->credit = node->kept = node->denial = node->wants = 0;
		node->granted = node->out = 0;
	}
	step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		calls(c, state, n, walk);
		looks(c, state, n, walk);
		look_alone(c, state, n, walk);
	}
	hold(c, state, walk);
	settle(state, /* used= */ true, walk);
	settle(state, /* used= */ false, walk);
	turn(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static long in_hand(const long *c, const struct state *state)
{
	long sum = 0;

	for (int n = 0; n < c[N]; n++)
		sum += state->nodes[n].credit;
	return sum;
}

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long out = 0;

	for (int n = 0; n < c[N]; n++) {
		out += state->nodes[n].out;
		if (state->nodes[n].credit + state->nodes[n].kept > state->nodes[n].out)
			return "ledger";
	}
	return out == state->used ? NULL : "conserved";
}

static long bound(const long *c)
{
	return c[LIMIT];
}

/* What was admitted, and what is in hand. */
static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->used;
}

/* Who was refused was served since, unless so much is not left with all together. */
static bool is_served(const long *c, const void *at)
{
	const struct state *state = at;
	long left = c[LIMIT] - state->used + in_hand(c, state);

	for (int n = 0; n < c[N]; n++)
		if (state->nodes[n].wants > 0 && state->nodes[n].wants <= left)
			return false;
	return true;
}

static const struct goal goals[] = {
	{ "served", CERTAIN, is_served },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "used %d", state->used);
	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		fprintf(out,
		        "; node %d has %d and keeps %d, denied from %d, wants %d, idle "
		        "%d, %s",
		        n, node->credit, node->kept, node->denial, node->wants,
		        node->idle, node->watched ? "watched" : "not watched");
		fprintf(out, ", seen %d, asks again in %d (%d)", node->seen, node->wait,
		        node->hopes);
	}
}

const struct model idle_model = {
	.name = "idle",
	.about = "idle units with one node, and calls that are refused at another",
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
