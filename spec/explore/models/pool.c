/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool.c -- one budget at a store, and nodes that claim units of it for their tenants.
 *
 * Asks and answers come late, in another order, and never; asks also twice.  A node may crash
 * and begin anew, and the store may forget.  Clocks run as in window.c: in a tick of the store
 * a node's goes on by QUARTERS, or by drift quarters less or more.
 *
 *     node: claim_ask --ask--> store: pool_step --answer--> node: claim_hear, claim_take
 *
 * A node asks for what one call costs, or for nothing.
 *
 * A call may hold what is in hand, and use some of it: the rest goes back when it ends, if its window
 * still lasts.  Where the node crashes the rest is not given back, and is free in the next window.
 *
 * Shipped   pool_begin, pool_keeps, pool_forget, pool_step; claim_ask, claim_hear, claim_lost,
 *           claim_in_hand, claim_take, claim_untake, claim_give.
 */
#include "spec/explore/models/pool_store.h"

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "tenants", 1, TENANTS, 2, "node n asks for tenant n modulo so many" },
	{ "limit", 1, 15, 2, "" },
	{ "cost", 1, 8, 1, "of the dearest call" },
	{ "ticks", 1, 6, 2, "of the store in a window" },
	{ "release", 1, 6, 1, "ticks until a tenant that has stopped is absent" },
	{ "gives", 0, 4, 1, "units that a node gives back in a window at most" },
	{ "drift", 0, 2, 0, "quarters of a tick that clocks gain or lose in one" },
	{ "mail", 1, 2, 1, "messages of a node that are under way at once" },
	{ "twice", 0, 1, 0, "asks may come more than once" },
	{ "crashes", 0, LIVES - 1, 0, "of each node" },
	{ "forgets", 0, 2, 0, "times that the store forgets" },
	{ "holds", 0, 1, 0, "calls may hold what is in hand" },
	{ "margin", 0, 1, 1, "guard at 0: the drift is taken off (CLAIM-1)" },
	{ "quiet", 0, 60, 60,
	  "guard at 0: who has forgotten grants nothing for so many ticks, or until "
	  "the "
	  "window turns (POOL-5)" },
	{ "store", 0, 1, 1,
	  "guard at 0: the store compares what was granted with what the node had" },
	{ "total", 0, 1, 1, "guard at 0: an answer tells the total (CLAIM-3)" },
	{ "back", 0, 1, 1, "guard at 0: what goes back is told as a total (POOL-4)" },
	{ "window", 0, 1, 1,
	  "guard at 0: totals of another window change nothing (POOL-4)" },
	{ "turn", 0, 1, 1,
	  "guard at 0: what is in hand is dropped with its window (CLAIM-2)" },
	{ "end", 0, 1, 1,
	  "guard at 0: units end when the window may turn, not when it must have "
	  "(CLAIM-1)" },
	{ "one", 0, 1, 1, "guard at 0: only the latest ask has an answer (CLAIM-3)" },
	{ "fresh", 0, 1, 1, "guard at 0: who begins anew has another name" },
	{ "others", 0, 1, 1, "guard at 0: shares of others are kept (POOL-2)" },
	{ "leave", 0, 1, 1, "guard at 0: who has stopped becomes absent (POOL-3)" },
	{ "past", 0, 1, 1,
	  "guard at 0: what a call does not need goes back into its own window alone" },
	{ "once", 0, 1, 1, "guard at 0: a hold is settled once" },
	{ NULL, 0, 0, 0, NULL },
};

static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	if (c[N] * c[MAIL_EACH] > MAIL)
		return "there is no room for so many messages";
	if (c[TWICE] && c[MAIL_EACH] < 2)
		return "an ask that comes twice leaves no room for its answer";
	return c[COST] > c[LIMIT] ? "cost is above the limit" : NULL;
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	for (int i = 0; i < TENANTS; i++)
		state.tenants[i].age = oldest(c);
	for (int n = 0; n < NODES; n++)
		state.nodes[n].window = OTHER;
	step(walk, &state, CHANCE, "nobody has asked", 0, 0);
}

/* ---- A node -------------------------------------------------------------------------- */

static struct claim claim_of(const long *c, const struct node *node)
{
	return (struct claim){
		.terms = terms_of(c),
		.drift_ppm = (uint32_t)(c[MARGIN] * c[DRIFT]) * 1000000 / QUARTERS,
		.with_store = node->waits,
		.window = window_us(c, node->window),
		.end = in_quarters(node->end),
		.turns = in_quarters(node->end),
		.most = (uint64_t)c[LIMIT],
		.granted = node->granted,
		.back = node->back,
		.taken = node->taken,
		.sent = { HERE_NS - node->sent * QUARTER_NS },
		.retry = now,
	};
}

/* Of a window that is over nothing counts but units that still last, and an ask that waits for
 * its answer. */
static void tidy(struct node *node)
{
	if (node->window == 0 || node->end > 0 || node->waits)
		return;
	node->window = OTHER;
	node->granted = node->back = node->taken = 0;
}

static void keep_claim(const long *c, struct node *node, const struct claim *claim)
{
	node->waits = claim->with_store;
	node->sent =
	    claim->with_store ? small((HERE_NS - claim->sent.ns) / QUARTER_NS) : 0;
	node->window = window_age(c, claim->window);
	node->granted = small(claim->granted);
	node->back = small(claim->back);
	node->taken = small(claim->taken);
	node->end = quarters_until(claim->end);
	tidy(node);
}

/* For a call that costs so much; 0: the node only says what it has. */
static struct letter write_ask(const long *c, struct state *state, int n, int cost)
{
	struct node *node = &state->nodes[n];
	struct claim claim = claim_of(c, node);
	struct pool_ask ask;

	outdate(c, state, n);
	ask = claim_ask(&claim, cost > 0, (uint64_t)cost, (uint64_t)cost, now);
	keep_claim(c, node, &claim);
	return (struct letter){ .kind = ASK,
		                .node = (uint8_t)n,
		                .life = node->life,
		                .latest = 1,
		                .window = node->window,
		                .had = small(ask.had),
		                .more = small((uint64_t)cost),
		                .back = small(ask.back),
		                .present = cost > 0 };
}

/* What a node without its guards makes of an answer. */
static void mishear(const long *c, const struct claim *before, struct claim *claim)
{
	bool same = claim->window == before->window;

	if (!c[TOTAL] && same)
		claim->granted += before->granted;
	if (!c[TURN] && !same)
		claim->granted += before->granted - before->back - before->taken;
	if (!c[END])
		claim->end = claim->turns;
}

static void hear(const long *c, struct state *state, int n, uint64_t window,
                 const struct letter *letter)
{
	struct node *node = &state->nodes[n];
	struct claim claim = claim_of(c, node), before = claim;
	struct pool_ask ask = claim.terms;
	struct pool_answer answer = {
		.result = letter->quiet ? POOL_QUIET : POOL_ANSWERED,
		.window = window,
		.granted = letter->granted,
		.left_us = letter->left * TICK_US,
		.retry_us = letter->left * TICK_US,
		.free = (uint64_t)c[LIMIT],
		.limit = (uint64_t)c[LIMIT],
	};
	enum claim_news news;

	ask.window = claim.window;
	ask.had = claim.granted;
	ask.back = claim.back;
	news = claim_hear(&claim, &ask, &answer, now);
	state->wrong |= news == CLAIM_WRONG;
	if (news == CLAIM_HEARD || news == CLAIM_EARLY)
		mishear(c, &before, &claim);
	keep_claim(c, node, &claim);
}

static uint64_t in_hand(const long *c, const struct node *node)
{
	struct claim claim = claim_of(c, node);

	return claim_in_hand(&claim, now);
}

/* ---- Steps --------------------------------------------------------------------------- */

static bool may_ask(const long *c, const struct state *state, int n)
{
	return !state->nodes[n].waits && letters_of(state, n) < c[MAIL_EACH];
}

/* For a call that costs so much. */
static void ask(const long *c, const struct state *state, int n, int cost,
                struct walk *walk)
{
	struct state after = *state;
	struct letter letter;

	if (!may_ask(c, state, n))
		return;
	letter = write_ask(c, &after, n, cost);
	post(c, &after, &letter);
	step(walk, &after, CHANCE, "node %d asks for %d", n, cost);
}

/* The store may have forgotten it. */
static void remind(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct letter letter;

	if (c[FORGETS] == 0 || !may_ask(c, state, n) || state->nodes[n].granted == 0)
		return;
	letter = write_ask(c, &after, n, /* cost= */ 0);
	post(c, &after, &letter);
	step(walk, &after, CHANCE, "node %d says that it has %d", n, letter.had);
}

static void give_up(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct claim claim = claim_of(c, &state->nodes[n]);

	if (!state->nodes[n].waits)
		return;
	claim_lost(&claim);
	keep_claim(c, &after.nodes[n], &claim);
	outdate(c, &after, n);
	step(walk, &after, CHANCE, "node %d gives up", n, 0);
}

static void spend(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct claim claim = claim_of(c, &state->nodes[n]);

	if (claim_in_hand(&claim, now) == 0)
		return;
	claim_take(&claim, 1);
	keep_claim(c, &after.nodes[n], &claim);
	after.admitted++;
	step(walk, &after, CHANCE, "node %d admits", n, 0);
}

static void hold(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct claim claim = claim_of(c, &state->nodes[n]);
	uint64_t units = claim_in_hand(&claim, now);

	if (!c[HOLDS] || units == 0 || state->nodes[n].held > 0)
		return;
	claim_take(&claim, units);
	keep_claim(c, &after.nodes[n], &claim);
	after.nodes[n].held = small(units);
	after.nodes[n].held_from = after.nodes[n].again = 0;
	after.admitted = (uint8_t)(after.admitted + units);
	step(walk, &after, CHANCE, "node %d holds %d", n, (int)units);
}

/* Of what it holds, so much was not used.  A window that is over here is OTHER, and has nothing. */
static void settle(const long *c, const struct state *state, int n, int back,
                   struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct claim claim = claim_of(c, node);
	bool lasts =
	    node->window != OTHER && (node->window == node->held_from || !c[PAST]);

	if (lasts)
		claim_untake(&claim, (uint64_t)smaller_of(back, node->taken));
	keep_claim(c, node, &claim);
	if (node->held_from == 0 && !node->again)
		after.admitted = (uint8_t)(after.admitted - back);
	node->held = (uint8_t)(c[ONCE] ? 0 : back);
	node->again = node->held > 0;
	step(walk, &after, CHANCE, "node %d ends a call, %d come back", n, back);
}

static void give(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct claim claim = claim_of(c, &state->nodes[n]);
	uint64_t units = claim_in_hand(&claim, now);
	struct letter letter;

	if (units == 0 || state->nodes[n].back + units > (uint64_t)c[GIVES] ||
	    !may_ask(c, state, n))
		return;
	claim_give(&claim, units);
	keep_claim(c, &after.nodes[n], &claim);
	letter = write_ask(c, &after, n, /* cost= */ 0);
	post(c, &after, &letter);
	step(walk, &after, CHANCE, "node %d gives %d back", n, (int)units);
}

static void crash(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	if (state->nodes[n].life == c[CRASHES])
		return;
	outdate(c, &after, n);
	after.nodes[n] = (struct node){ .life = (uint8_t)(state->nodes[n].life + 1),
		                        .window = OTHER };
	step(walk, &after, CHANCE, "node %d begins anew", n, 0);
}

static void deliver(const long *c, const struct state *state, int i, struct walk *walk)
{
	struct letter letter = state->mail[i];
	struct state after = *state;
	struct pool_answer answer;

	if (letter.kind == ANSWER && !state->nodes[letter.node].waits)
		return;
	if (letter.kind == ANSWER || !c[TWICE])
		lose(&after, i);
	if (letter.kind == ASK) {
		answer = serve(c, &after, &letter);
		reply(c, &after, &letter, &answer);
		step(walk, &after, CHANCE, "node %d is granted %d in all", letter.node,
		     (int)answer.granted);
		return;
	}
	hear(c, &after, letter.node, window_us(c, letter.window), &letter);
	outdate(c, &after, letter.node);
	step(walk, &after, CHANCE, "node %d hears that it has %d", letter.node,
	     letter.granted);
}

static void drop(const struct state *state, int i, struct walk *walk)
{
	struct state after = *state;

	lose(&after, i);
	step(walk, &after, CHANCE, "a message of node %d is lost", state->mail[i].node,
	     0);
}

/* No answer is late by two windows.  Asks are then of another window, whichever. */
static void age_windows(struct state *state)
{
	for (int n = 0; n < NODES; n++) {
		struct node *node = &state->nodes[n];

		node->window = node->window == 0 ? 1 : OTHER;
		if (node->held > 0)
			node->held_from = node->held_from == 0 ? 1 : OTHER;
		if (node->window == OTHER)
			node->granted = node->back = node->taken = node->end = 0;
		tidy(node);
	}
	for (int i = 0; i < MAIL; i++) {
		struct letter *letter = &state->mail[i];

		if (letter->window == 1 && letter->kind == ANSWER)
			*letter = (struct letter){ 0 };
		else if (letter->kind != NOTHING)
			letter->window = 1;
	}
	tidy_mail(state);
}

static void age_node(const long *c, struct node *node, int quarters)
{
	if (node->waits)
		node->sent =
		    (uint8_t)smaller_of(node->sent + quarters, QUARTERS * c[TICKS]);
	node->end = (uint8_t)larger_of(node->end - quarters, 0);
	tidy(node);
}

/* fast: nodes whose clocks run fast, in bits. */
static void pass(const long *c, struct state *state, unsigned fast)
{
	for (int n = 0; n < c[N]; n++)
		age_node(c, &state->nodes[n],
		         QUARTERS + (int)((fast >> n & 1) ? c[DRIFT] : -c[DRIFT]));
	for (int i = 0; i < TENANTS; i++) {
		uint8_t *age = &state->tenants[i].age;

		if (c[LEAVE] || *age + 1 < c[RELEASE])
			*age = (uint8_t)smaller_of(*age + 1, oldest(c));
	}
	if (state->quiet > 0)
		state->quiet--;
	if (++state->phase < c[TICKS])
		return;
	state->phase = 0;
	age_windows(state);
	turn_store(c, state);
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	unsigned ways = c[DRIFT] > 0 ? 1U << c[N] : 1;

	for (unsigned fast = 0; fast < ways; fast++) {
		struct state after = *state;

		pass(c, &after, fast);
		step(walk, &after, CHANCE, "a tick, fast %d", (int)fast, 0);
	}
}

static void forget(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (state->forgets == c[FORGETS])
		return;
	after.forgets++;
	after.forgot = 1;
	after.used = 0;
	memset(after.rows, 0, sizeof(after.rows));
	for (int i = 0; i < TENANTS; i++)
		after.tenants[i] = (struct tenant){ .age = oldest(c) };
	after.quiet = (uint8_t)smaller_of(c[QUIET], c[TICKS] - state->phase);
	step(walk, &after, CHANCE, "the store forgets", 0, 0);
}

/* The rest is silent, and nothing is lost any more. */
static void ask_alone(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct claim claim = claim_of(c, &state->nodes[0]);

	claim_lost(&claim);
	keep_claim(c, &after.nodes[0], &claim);
	for (int i = 0; i < c[LIMIT]; i++) {
		struct letter letter = write_ask(c, &after, 0, 1), heard;
		struct pool_answer answer = serve(c, &after, &letter);

		heard = (struct letter){ .granted = small(answer.granted),
			                 .left = small(answer.left_us / TICK_US),
			                 .quiet = answer.result == POOL_QUIET };
		hear(c, &after, 0, window_us(c, 0), &heard);
		while (in_hand(c, &after.nodes[0]) > 0) {
			after.nodes[0].taken++;
			after.admitted++;
		}
	}
	if (after.admitted == state->admitted)
		pass(c, &after, 0);
	step(walk, &after, FAIR, "node 0 asks for all there is", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		for (int cost = 1; cost <= c[COST]; cost++)
			ask(c, state, n, cost, walk);
		remind(c, state, n, walk);
		give_up(c, state, n, walk);
		spend(c, state, n, walk);
		hold(c, state, n, walk);
		for (int back = 0; back <= state->nodes[n].held && c[HOLDS]; back++)
			if (state->nodes[n].held > 0)
				settle(c, state, n, back, walk);
		give(c, state, n, walk);
		crash(c, state, n, walk);
	}
	for (int i = 0; i < MAIL; i++)
		if (state->mail[i].kind != NOTHING) {
			deliver(c, state, i, walk);
			drop(state, i, walk);
		}
	tick(c, state, walk);
	forget(c, state, walk);
	ask_alone(c, state, walk);
}

/* ---- What must hold ------------------------------------------------------------------ */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;
	long rows = 0, tenants = 0;

	for (int i = 0; i < NAMES; i++)
		rows += state->rows[i].granted - state->rows[i].back;
	for (int i = 0; i < TENANTS; i++)
		tenants += state->tenants[i].used;
	if (rows != state->used || tenants != state->used)
		return "sums";
	if (state->used > c[LIMIT])
		return "granted"; /* POOL-1 */
	if (state->unasked)
		return "unasked";
	/* Where these guards are missing, a node's disbelief is all that is left, and not enough. */
	if (state->wrong && c[ONE] && c[BACK])
		return "believed";
	return state->robbed ? "robbed" : NULL;
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

static bool is_used_up(const long *c, const void *at)
{
	return ((const struct state *)at)->admitted == c[LIMIT];
}

static const struct goal goals[] = {
	{ "used-up", CERTAIN, is_used_up },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "tick %d, used %d, admitted %d, quiet %d", state->phase,
	        state->used, state->admitted, state->quiet);
	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		fprintf(
		    out,
		    "; node %d: window -%d, granted %d, back %d, taken %d, held %d of "
		    "-%d, for %d%s",
		    n, node->window, node->granted, node->back, node->taken, node->held,
		    node->held_from, node->end, node->waits ? ", waits" : "");
	}
	for (int i = 0; i < MAIL; i++)
		if (state->mail[i].kind != NOTHING)
			fprintf(out,
			        "; %s of %d%s: window -%d, had %d, more %d, back "
			        "%d, granted %d",
			        state->mail[i].kind == ASK ? "ask" : "answer",
			        state->mail[i].node,
			        state->mail[i].latest ? "" : ", late",
			        state->mail[i].window, state->mail[i].had,
			        state->mail[i].more, state->mail[i].back,
			        state->mail[i].granted);
}

const struct model pool_model = {
	.name = "pool",
	.about = "one budget at a store, and nodes that claim units of it",
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
