/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pacing.c -- places in a pacer's queue, booked in a row for a node that hands them out.
 *
 * A node asks, the store books, the answer comes; each takes its time, together at most
 * late ticks.  The first place is as long from the answer as it was from the booking, so
 * calls leave later than their places, never earlier.
 *
 *     store   |--delay--|[place][place][place]
 *     node         on its way ..|--delay--|[place][place][place]
 *
 * Time is counted in parts: a place lasts period of them, and a tick limit.  over is what
 * left in the worst interval that ends now, less what the rate allows in it.
 *
 * Shipped   lease_step, lease_give_back and with them pacer.c; block_take, block_left and
 *           block_close of shards/block.c.
 * Spec      spec/LeasedPacing.tla: the same states where nothing is given back.
 */
#include <string.h>

#include "engine/pacer.h"
#include "shards/block.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define GAPS 4
#define HORIZON 16 /* ticks ahead that a call can leave */
#define HERE_US (UINT64_C(1) << 40)

enum { N, LIMIT, PERIOD, BURST, WAIT, BATCH, LATE, BACK, ANSWER, CLOSE };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 5, 1, "places in a period: 1, 2, 4 or 5" },
	{ "period", 1, 10, 2, "ticks" },
	{ "burst", 0, 4, 0, "calls that may go at once" },
	{ "wait", 0, 8, 4, "ticks that a call waits at most" },
	{ "batch", 1, 4, 2, "places booked in a row" },
	{ "late", 0, 4, 1, "ticks that an answer takes at most" },
	{ "back", 0, 1, 1, "places that are not used go back" },
	{ "answer", 0, 1, 1,
	  "guard at 0: delays count from the answer, not the asking" },
	{ "close", 0, 1, 1, "guard at 0: places that go back are handed out no more" },
	{ NULL, 0, 0, 0, NULL },
};

enum under_way { NOTHING, ASKED, BOOKED };

/* Times are parts from now; those of the past are negative. */
struct node {
	uint8_t under_way;
	uint8_t age;   /* ticks since it was asked */
	uint8_t units; /* on the way */
	uint8_t delay; /* of the first, from the booking */
	int8_t
	    slot; /* where the store has the first; that of the block, once it is there */
	uint8_t at_once;
	int8_t first; /* of the block, as the node has it */
	uint8_t count;
	uint8_t next;
};

struct gap {
	uint8_t from;
	uint8_t to;
};

struct state {
	uint8_t water; /* burst in use, in parts */
	uint8_t free;  /* the end of the last place */
	uint8_t over;
	uint8_t early; /* somebody left before his place */
	uint8_t leaving[HORIZON];
	struct gap gaps[GAPS];
	struct node nodes[NODES];
};

static struct rule rule;

static const char *open(const long *c)
{
	struct gale_rule config = gale_leaky_bucket(
	    (uint64_t)c[LIMIT], (uint64_t)c[PERIOD], (uint64_t)c[WAIT]);

	config.burst = (uint64_t)c[BURST];
	if (c[LIMIT] == 3)
		return "limit: a third of a tick is no whole number of nanoseconds";
	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	(void)c;
	step(walk, &state, CHANCE, "nothing is booked", 0, 0);
}

/* ---- Words ----------------------------------------------------------------------- */

static struct gale_slot slot_of(const long *c, long parts)
{
	uint64_t all = HERE_US * (uint64_t)c[LIMIT] + (uint64_t)parts;

	return (struct gale_slot){ all / (uint64_t)c[LIMIT], all % (uint64_t)c[LIMIT] };
}

static long parts_of(const long *c, struct gale_slot slot)
{
	return (long)(slot.us - HERE_US) * c[LIMIT] + (long)slot.part;
}

static struct pacer_state words_of(const long *c, const struct state *state)
{
	struct pacer_state words = {
		.water = state->water / (uint64_t)c[PERIOD],
		.water_part = state->water % (uint64_t)c[PERIOD] * 1000,
		.free = slot_of(c, state->free),
	};

	for (int i = 0; i < GAPS; i++)
		if (state->gaps[i].to > 0)
			words.gaps[i] =
			    (struct pacer_gap){ slot_of(c, state->gaps[i].from),
				                slot_of(c, state->gaps[i].to) };
	return words;
}

/* Gaps in their order, those that are past left out: they are all alike to the pacer. */
static void keep_gap(const long *c, struct state *state, const struct pacer_gap *gap)
{
	long from = parts_of(c, gap->from), to = parts_of(c, gap->to);
	int at = 0;

	if (gap->to.us == 0 || from < 0)
		return;
	while (state->gaps[at].to > 0 && state->gaps[at].from < from)
		at++;
	memmove(&state->gaps[at + 1], &state->gaps[at],
	        (size_t)(GAPS - 1 - at) * sizeof(state->gaps[0]));
	state->gaps[at] = (struct gap){ small((uint64_t)from), small((uint64_t)to) };
}

static void keep(const long *c, struct state *state, const struct pacer_state *words)
{
	long free = parts_of(c, words->free);

	state->water =
	    small(words->water * (uint64_t)c[PERIOD] + words->water_part / 1000);
	state->free = free > 0 ? small((uint64_t)free) : 0;
	memset(state->gaps, 0, sizeof(state->gaps));
	for (int i = 0; i < GAPS; i++)
		keep_gap(c, state, &words->gaps[i]);
}

/* The row of a node that has a block. */
static struct ledger ledger_of(const long *c, const struct state *state, int n)
{
	const struct node *node = &state->nodes[n];
	struct lease_row row = { .node = (uint64_t)n + 1,
		                 .number = 1,
		                 .granted = node->count,
		                 .out = node->count,
		                 .tag = slot_of(c, node->slot) };

	if (node->count == 0)
		return (struct ledger){ 0 };
	return (struct ledger){ .rows = { row } };
}

static uint64_t ns_of(const long *c, long parts)
{
	return (uint64_t)((int64_t)HERE_NS + parts * 1000 / c[LIMIT]);
}

static struct block block_of(const long *c, const struct node *node)
{
	return (struct block){ .rule = rule,
		               .first = { ns_of(c, node->first) },
		               .slot = slot_of(c, node->slot),
		               .count = node->count,
		               .next = node->next };
}

/* ---- Leaving --------------------------------------------------------------------- */

static void leave_now(const long *c, struct state *state, unsigned calls)
{
	state->over += small(calls * (uint64_t)c[PERIOD]);
}

static void leave_in(const long *c, struct state *state, uint64_t delay_ns)
{
	uint64_t ticks = (delay_ns + 999) / 1000;

	gale_assert(ticks <= HORIZON);
	if (ticks == 0)
		leave_now(c, state, 1);
	else
		state->leaving[ticks - 1]++;
}

/* ---- Steps ----------------------------------------------------------------------- */

static void send(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n].under_way = ASKED;
	step(walk, &after, CHANCE, "node %d asks", n, 0);
}

static void forget_answer(struct node *node)
{
	node->under_way = NOTHING;
	node->age = node->units = node->delay = node->at_once = 0;
	if (node->count == 0)
		node->slot = 0;
}

static void book(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct pacer_state words = words_of(c, state);
	struct ledger ledger = { 0 };
	struct lease_ask ask = { .node = (uint64_t)n + 1,
		                 .number = 2,
		                 .want = (uint64_t)c[BATCH],
		                 .least = 1 };
	struct lease_grant grant =
	    lease_step(&rule, (uint64_t *)&words, &ledger, HERE_US, &ask);

	keep(c, &after, &words);
	node->under_way = BOOKED;
	node->units = small(grant.units);
	node->delay = small(grant.delay_ns * (uint64_t)c[LIMIT] / 1000);
	node->at_once = grant.units > 0 && grant.tag.us == 0;
	if (grant.units > 0 && !node->at_once)
		node->slot = (int8_t)parts_of(c, grant.tag);
	if (grant.units == 0)
		forget_answer(node);
	step(walk, &after, FAIR, "the store books for node %d: %d", n,
	     (int)grant.units);
}

static void arrive(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	if (node->at_once) {
		leave_now(c, &after, node->units);
	} else {
		node->count = node->units;
		node->next = 0;
		node->first =
		    (int8_t)(node->delay - (c[ANSWER] ? 0 : node->age * c[LIMIT]));
	}
	forget_answer(node);
	step(walk, &after, FAIR, "node %d has the answer", n, 0);
}

static void lose(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	forget_answer(&after.nodes[n]);
	step(walk, &after, CHANCE, "the answer for node %d is lost", n, 0);
}

static void forget_block(struct node *node)
{
	node->slot = node->first = 0;
	node->count = node->next = 0;
}

static void take(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct block block = block_of(c, node);
	struct gale_answer answer;

	if (!block_take(&block, (mono){ HERE_NS }, 1, &answer) ||
	    answer.verdict != GALE_ALLOW)
		return;
	node->next = small(block.next);
	leave_in(c, &after, answer.delay_ns);
	after.early |= (long)(answer.delay_ns * (uint64_t)c[LIMIT] / 1000) <
	               parts_of(c, answer.slot);
	if (node->next == node->count)
		forget_block(node);
	step(walk, &after, CHANCE, "node %d hands out a place, %d parts from now", n,
	     (int)(answer.delay_ns * (uint64_t)c[LIMIT] / 1000));
}

static void give_back(const long *c, const struct state *state, int n,
                      struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	struct block block = block_of(c, node);
	struct pacer_state words = words_of(c, state);
	struct ledger ledger = ledger_of(c, state, n);
	uint64_t units = c[CLOSE] ? block_close(&block, (mono){ HERE_NS })
	                          : block_left(&block, (mono){ HERE_NS });

	if (units == 0 ||
	    !lease_give_back(&rule, (uint64_t *)&words, &ledger, HERE_US,
	                     (uint64_t)n + 1, 2, slot_of(c, node->slot), units))
		return;
	keep(c, &after, &words);
	if (block_left(&block, (mono){ HERE_NS }) == 0)
		forget_block(node);
	step(walk, &after, CHANCE, "node %d gives back %d places", n, (int)units);
}

static void crash(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	forget_block(&after.nodes[n]);
	step(walk, &after, CHANCE, "node %d begins anew", n, 0);
}

/* ---- Time ------------------------------------------------------------------------ */

static uint8_t less(uint8_t parts, long by)
{
	return parts > by ? (uint8_t)(parts - by) : 0;
}

static void go_on(const long *c, struct node *node)
{
	struct block block;

	if (node->under_way != NOTHING)
		node->age++;
	if (node->count > 0 || (node->under_way == BOOKED && !node->at_once))
		node->slot = (int8_t)(node->slot - c[LIMIT]);
	if (node->count == 0)
		return;
	node->first = (int8_t)(node->first - c[LIMIT]);
	block = block_of(c, node);
	if (block_left(&block, (mono){ HERE_NS }) == 0)
		forget_block(node); /* all have passed */
}

/* The bucket leaks as long as nothing is booked. */
static void tick_store(const long *c, struct state *state)
{
	long idle = c[LIMIT] - state->free;
	struct gap gaps[GAPS];

	state->water = less(state->water, idle > 0 ? idle : 0);
	state->free = less(state->free, c[LIMIT]);
	memcpy(gaps, state->gaps, sizeof(gaps));
	memset(state->gaps, 0, sizeof(state->gaps));
	for (int i = 0, at = 0; i < GAPS; i++)
		if (gaps[i].to > 0 && gaps[i].from >= c[LIMIT])
			state->gaps[at++] =
			    (struct gap){ (uint8_t)(gaps[i].from - c[LIMIT]),
				          (uint8_t)(gaps[i].to - c[LIMIT]) };
}

static bool may_tick(const long *c, const struct state *state)
{
	bool may = true;

	for (int n = 0; n < c[N]; n++)
		may &= state->nodes[n].under_way == NOTHING ||
		       state->nodes[n].age < c[LATE];
	return may;
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	unsigned calls = state->leaving[0];

	if (!may_tick(c, state))
		return;
	tick_store(c, &after);
	after.over = less(after.over, c[LIMIT]);
	memmove(after.leaving, after.leaving + 1, HORIZON - 1);
	after.leaving[HORIZON - 1] = 0;
	leave_now(c, &after, calls);
	for (int n = 0; n < c[N]; n++)
		go_on(c, &after.nodes[n]);
	step(walk, &after, FAIR, "a tick; %d leave", (int)calls, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		if (node->under_way == NOTHING && node->count == 0)
			send(state, n, walk);
		if (node->under_way != NOTHING)
			lose(state, n, walk);
		if (node->under_way == ASKED)
			book(c, state, n, walk);
		if (node->under_way == BOOKED)
			arrive(c, state, n, walk);
		if (node->count == 0)
			continue;
		take(c, state, n, walk);
		if (c[BACK])
			give_back(c, state, n, walk);
		crash(state, n, walk);
	}
	tick(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	(void)c;
	return state->early ? "early" : NULL;
}

/* Burst, one at the end of the interval, and those that answers made late; a place that is
 * between two ticks leaves at the second. */
static long bound(const long *c)
{
	long rounded = c[PERIOD] % c[LIMIT] != 0 ? c[LIMIT] - 1 : 0;

	return (c[BURST] + 1) * c[PERIOD] + c[LATE] * c[LIMIT] + rounded;
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->over;
}

static bool is_answered(const long *c, const void *at)
{
	const struct state *state = at;
	bool answered = true;

	for (int n = 0; n < c[N]; n++)
		answered &= state->nodes[n].under_way == NOTHING;
	return answered;
}

static const struct goal goals[] = {
	{ "answered", CERTAIN, is_answered },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "booked for %d parts, over %d", state->free, state->over);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, "; node %d: %d of %d places, from %d", n,
		        state->nodes[n].count - state->nodes[n].next,
		        state->nodes[n].count, state->nodes[n].first);
}

const struct model pacing_model = {
	.name = "pacing",
	.about = "places in a pacer's queue, booked ahead by nodes",
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
