/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * meter.c -- units of a meter, lent to nodes that spend them when they like.
 *
 * For every interval t: what was lent in it, and not given back or lost, is at most
 * burst + t/T.  So what is admitted in it is at most that, and what was out before it.
 *
 * The state keeps only the worst interval that ends now: over is what was lent in it less
 * what accrued, in parts: one unit is period parts, and in a tick limit of them accrue.
 *
 * Shipped   borrow_ask; lease_step and lease_give_back with the ledger, meter.c, rule_expires.
 * Spec      spec/IntervalLease.tla: the same states.
 */
#include <string.h>

#include "engine/meter.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define NODES 3
#define HERE_US (UINT64_C(1) << 40)

enum { N, LIMIT, PERIOD, BURST, BATCH, COST, BUCKET, ONCE, KEEP };

static const struct constant constants[] = {
	{ "nodes", 1, NODES, 2, "" },
	{ "limit", 1, 8, 1, "units accrue in a period" },
	{ "period", 1, 12, 2, "ticks" },
	{ "burst", 1, 12, 3, "" },
	{ "batch", 1, 12, 2, "" },
	{ "cost", 1, 4, 1, "the least that is asked for" },
	{ "bucket", 0, 1, 0, "a token bucket, not a gcra" },
	{ "once", 0, 1, 1, "guard at 0: the store takes units back once" },
	{ "keep", 0, 1, 1, "guard at 0: a key is not forgotten before it is full" },
	{ NULL, 0, 0, 0, NULL },
};

struct node {
	uint8_t coming; /* lent, on the way */
	uint8_t credit;
	uint8_t out; /* of its last grant, if that could still be given back; else 0 */
	uint8_t tag; /* parts from now */
};

struct state {
	uint8_t ahead; /* parts until the meter is full: tat */
	uint8_t over;
	struct node nodes[NODES];
};

static struct rule rule;

static const char *open(const long *c)
{
	struct gale_rule config =
	    c[BUCKET] ? gale_token_bucket((uint64_t)c[BURST], (uint64_t)c[LIMIT],
	                                  (uint64_t)c[PERIOD])
		      : gale_gcra((uint64_t)c[LIMIT], (uint64_t)c[PERIOD],
	                          (uint64_t)c[BURST]);

	return rule_compile(&config, &rule) == GALE_ERR_OK ? NULL : "no such rule";
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	(void)c;
	step(walk, &state, CHANCE, "the meter is full", 0, 0);
}

/* ---- Words ----------------------------------------------------------------------- */

static struct gale_slot slot_of(const long *c, unsigned parts)
{
	return (struct gale_slot){ HERE_US + parts / (unsigned long)c[LIMIT],
		                   parts % (unsigned long)c[LIMIT] };
}

/* What is past is past, however long. */
static uint8_t parts_of(const long *c, struct gale_slot slot)
{
	if (slot.us < HERE_US)
		return 0;
	return small((slot.us - HERE_US) * (uint64_t)c[LIMIT] + slot.part);
}

static struct ledger ledger_of(const long *c, const struct state *state)
{
	struct ledger ledger = { 0 };
	size_t count = 0;

	for (int n = 0; n < c[N]; n++)
		if (state->nodes[n].out > 0)
			ledger.rows[count++] = (struct lease_row){
				.node = (uint64_t)n + 1,
				.number = 1,
				.granted = state->nodes[n].out,
				.out = state->nodes[n].out,
				.tag = slot_of(c, state->nodes[n].tag),
			};
	return ledger;
}

static void keep(const long *c, struct state *state, const struct meter_state *words,
                 const struct ledger *ledger)
{
	state->ahead = parts_of(c, words->tat);
	for (int n = 0; n < c[N]; n++)
		state->nodes[n].out = state->nodes[n].tag = 0;
	for (size_t i = 0; i < ledger_rows(ledger); i++) {
		const struct lease_row *row = &ledger->rows[i];
		struct node *node = &state->nodes[row->node - 1];

		if (row->granted == 0 || parts_of(c, row->tag) == 0)
			continue;
		node->out = small(row->out);
		node->tag = parts_of(c, row->tag);
	}
}

/* ---- Steps ----------------------------------------------------------------------- */

static void lend(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct meter_state words = { .tat = slot_of(c, state->ahead) };
	struct ledger ledger = ledger_of(c, state);
	struct borrow_ask said = ask_for_call((uint64_t)c[COST], 0, c[BATCH]);
	struct lease_ask ask = { .node = (uint64_t)n + 1,
		                 .number = 2,
		                 .want = said.want,
		                 .least = said.least };
	struct lease_grant grant =
	    lease_step(&rule, (uint64_t *)&words, &ledger, HERE_US, &ask);

	if (grant.units == 0)
		return;
	keep(c, &after, &words, &ledger);
	after.nodes[n].coming = small(grant.units);
	after.over += small(grant.units * (uint64_t)c[PERIOD]);
	step(walk, &after, CHANCE, "node %d is lent %d", n, (int)grant.units);
}

static void arrive(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n].credit += after.nodes[n].coming;
	after.nodes[n].coming = 0;
	step(walk, &after, FAIR, "node %d has its units", n, 0);
}

static void spend(const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;

	after.nodes[n].credit--;
	step(walk, &after, CHANCE, "node %d admits", n, 0);
}

/* So many are out no more, and nobody will spend them. */
static void take_off(const long *c, struct state *state, unsigned units)
{
	unsigned parts = units * (unsigned)c[PERIOD];

	state->over = state->over > parts ? (uint8_t)(state->over - parts) : 0;
}

static void lose(const long *c, const struct state *state, int n, struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];

	take_off(c, &after, (unsigned)node->coming + node->credit);
	node->coming = node->credit = 0;
	step(walk, &after, CHANCE, "what node %d has, and what it is to have, is lost",
	     n, 0);
}

static bool undo(const long *c, struct state *state, int n, unsigned units)
{
	struct meter_state words = { .tat = slot_of(c, state->ahead) };
	struct ledger ledger = ledger_of(c, state);
	struct gale_slot tag = slot_of(c, state->nodes[n].tag);
	bool done = lease_give_back(&rule, (uint64_t *)&words, &ledger, HERE_US,
	                            (uint64_t)n + 1, 2, tag, units);

	keep(c, state, &words, &ledger);
	return done;
}

static void give_back(const long *c, const struct state *state, int n,
                      struct walk *walk)
{
	struct state after = *state;
	struct node *node = &after.nodes[n];
	unsigned units = node->credit, out = node->out;

	node->credit = 0;
	if (undo(c, &after, n, units) && !c[ONCE]) {
		node->out = (uint8_t)out; /* as if it had not been here */
		node->tag = after.ahead;
		(void)undo(c, &after, n, units);
	}
	take_off(c, &after, units);
	step(walk, &after, CHANCE, "node %d gives back %d", n, (int)units);
}

static uint8_t less(uint8_t parts, long by)
{
	return parts > by ? (uint8_t)(parts - by) : 0;
}

static void tick(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	after.ahead = less(after.ahead, c[LIMIT]);
	after.over = less(after.over, c[LIMIT]);
	for (int n = 0; n < c[N]; n++) {
		struct node *node = &after.nodes[n];

		node->tag = less(node->tag, c[LIMIT]);
		if (node->tag == 0)
			node->out = 0;
	}
	step(walk, &after, FAIR, "a tick", 0, 0);
}

static void forget(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;
	struct meter_state words = { .tat = slot_of(c, state->ahead) };

	if (c[KEEP] && rule_expires(&rule, (const uint64_t *)&words) > HERE_US)
		return;
	keep(c, &after, &(struct meter_state){ 0 }, &(struct ledger){ 0 });
	step(walk, &after, CHANCE, "the store forgets the key", 0, 0);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int n = 0; n < c[N]; n++) {
		const struct node *node = &state->nodes[n];

		if (node->coming > 0)
			arrive(state, n, walk);
		else if (node->credit < c[BATCH])
			lend(c, state, n, walk);
		if (node->credit > 0)
			spend(state, n, walk);
		if (node->credit > 0 && node->coming == 0)
			give_back(c, state, n, walk);
		if (node->credit + node->coming > 0)
			lose(c, state, n, walk);
	}
	tick(c, state, walk);
	forget(c, state, walk);
}

/* ---- What must hold -------------------------------------------------------------- */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	return state->ahead > c[BURST] * c[PERIOD] ? "full" : NULL;
}

static long bound(const long *c)
{
	return c[BURST] * c[PERIOD];
}

static long found(const long *c, const void *at)
{
	(void)c;
	return ((const struct state *)at)->over;
}

static bool is_full(const long *c, const void *at)
{
	const struct state *state = at;

	(void)c;
	return state->ahead == 0;
}

static const struct goal goals[] = {
	{ "full", REACHABLE, is_full },
	{ NULL, CERTAIN, NULL },
};

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	fprintf(out, "full in %d parts, lent over the rate %d parts", state->ahead,
	        state->over);
	for (int n = 0; n < c[N]; n++)
		fprintf(out, "; node %d: has %d, %d to come", n, state->nodes[n].credit,
		        state->nodes[n].coming);
}

const struct model meter_model = {
	.name = "meter",
	.about = "units of a gcra or a token bucket, lent",
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
