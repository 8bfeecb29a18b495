/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * holds.c -- calls that hold units of one or two limits until it is known what they have cost.
 *
 * A node leases units from each limit's store; a call takes them of all limits, or of none, at
 * once or one limit after the other; it grows, and is committed with less or more than it holds.
 * The node may die, and another begins in its place.  A window turns for both limits at once.
 * Messages are for once.c: what is lent and given back is so at once.
 *
 *     store --lend--> in hand --hold, grow--> held --settle--> committed, back in hand, or owed
 *
 * Shipped   hold_cut, hold_may_grow, hold_grow, hold_settle, debt_with, debt_paid_by of hold.c;
 *           whole_of; credit.h.
 * Spec      spec/Holds.tla: the same states.
 */
#include "engine/hold.h"

#include <string.h>

#include "engine/whole.h"
#include "spec/explore/model.h"
#include "spec/explore/models/glue.h"

#define PARTS 2
#define CALLS 2
#define WINDOW_NS (UINT64_C(1) << 30)

enum {
	PART_COUNT,
	CALL_COUNT,
	LIMIT,
	COST,
	OVER,
	APART,
	DEATHS,
	WHOLE,
	WINDOW,
	PAST,
	DEBT,
	FIRST,
	ONCE,
	DEAD,
	BOOKS
};

static const struct constant constants[] = {
	{ "parts", 1, PARTS, 2, "limits that each call needs" },
	{ "calls", 1, CALLS, 2, "that run at once" },
	{ "limit", 1, 15, 2, "" },
	{ "cost", 1, 16, 2, "of the dearest hold" },
	{ "over", 0, 4, 1, "units that a call may cost beyond what it holds" },
	{ "apart", 0, 1, 0, "parts are taken one after the other, and kept meanwhile" },
	{ "deaths", 0, 2, 0, "of the node" },
	{ "whole", 0, 1, 1,
	  "guard at 0: what a refused call has taken goes back (WHOLE-1)" },
	{ "window", 0, 1, 1,
	  "guard at 0: what was held goes back into its own window (HOLD-2)" },
	{ "past", 0, 1, 1,
	  "guard at 0: who grows in a later window keeps none of the one before "
	  "(HOLD-2)" },
	{ "debt", 0, 1, 1, "guard at 0: what a call cost beyond is owed (HOLD-3)" },
	{ "first", 0, 1, 1, "guard at 0: a debt is paid before anybody is served" },
	{ "once", 0, 1, 1, "guard at 0: a hold is settled once" },
	{ "dead", 0, 1, 1, "guard at 0: what a dead node held stays used" },
	{ "books", 0, 1, 1,
	  "at 0 only the law is judged, and not where each unit is (HOLD-1)" },
	{ NULL, 0, 0, 0, NULL },
};

/* All of this window. */
struct limit {
	uint8_t store;
	uint8_t credit;
	uint8_t debt;
	uint8_t committed;
	uint8_t
	    excess;   /* of it: what holds cost beyond, since a debt began that lasts */
	uint8_t lost; /* with a node that died: in hand, and owed */
	uint8_t gone;
};

struct part {
	uint8_t units;
	uint8_t past;
	uint8_t old; /* the units are of a window that is over */
};

enum { IDLE, GATHERS, RUNS };

struct call {
	uint8_t is;
	struct part parts[PARTS];
};

struct state {
	uint8_t deaths;
	struct limit limits[PARTS];
	struct call calls[CALLS];
};

static const mono now = { HERE_NS };

static const char *open(const long *c)
{
	return c[OVER] > c[LIMIT] ? "a debt that no window could pay" : NULL;
}

static void begin(const long *c, struct walk *walk)
{
	struct state state = { 0 };

	for (int p = 0; p < c[PART_COUNT]; p++)
		state.limits[p].store = small((uint64_t)c[LIMIT]);
	step(walk, &state, CHANCE, "nobody has asked", 0, 0);
}

/* ---- Words --------------------------------------------------------------------------- */

static uint64_t word(uint64_t units)
{
	return credit_until(mono_after(now, WINDOW_NS), units);
}

static struct held held_of(const long *c, const struct part *part)
{
	bool dead = part->old && c[WINDOW];

	return (struct held){ .word = dead ? credit_until(now, part->units)
		                           : word(part->units),
		              .past = part->past };
}

static void keep_held(struct part *part, const struct held *held)
{
	part->units = small(credit_units(held->word));
	part->past = small(held->past);
	part->old = !credit_lives(held->word, now);
}

/* ---- A node -------------------------------------------------------------------------- */

static void settle_debt(struct limit *limit)
{
	if (limit->debt == 0 && limit->gone == 0)
		limit->excess = 0;
}

/* Units come into the node's hands. */
static void put(const long *c, struct limit *limit, uint64_t units)
{
	uint64_t paid =
	    c[FIRST] ? debt_paid_by(word(limit->debt), word(units), now) : 0;

	limit->debt -= small(paid);
	if (units > paid)
		limit->credit = small(credit_units(
		    credit_with(word(limit->credit), word(units - paid), now)));
	settle_debt(limit);
}

static bool take(struct limit *limit, uint64_t units)
{
	if (!credit_covers(word(limit->credit), now, units))
		return false;
	limit->credit -= small(units);
	return true;
}

static void owe(const long *c, struct limit *limit, uint64_t over)
{
	uint64_t paid;

	if (over == 0)
		return;
	limit->committed += small(over);
	if (c[DEBT]) {
		limit->excess += small(over);
		limit->debt =
		    small(credit_units(debt_with(word(limit->debt), word(over), now)));
	}
	paid = debt_paid_by(word(limit->debt), word(limit->credit), now);
	limit->debt -= small(paid);
	limit->credit -= small(paid);
	settle_debt(limit);
}

static void settle_part(const long *c, struct limit *limit, const struct part *part,
                        uint64_t cost)
{
	struct held held = held_of(c, part);
	struct hold_end end = hold_settle(&held, cost, now);

	if (!part->old)
		limit->committed += small(part->units - end.back);
	owe(c, limit, end.over);
	if (end.back > 0)
		put(c, limit, end.back);
}

/* ---- Steps --------------------------------------------------------------------------- */

static void lease(const long *c, const struct state *state, int p, int units,
                  struct walk *walk)
{
	struct state after = *state;

	if (state->limits[p].store < units)
		return;
	after.limits[p].store -= small((uint64_t)units);
	put(c, &after.limits[p], (uint64_t)units);
	step(walk, &after, CHANCE, "limit %d lends %d", p, units);
}

static void give_back(const struct state *state, int p, struct walk *walk)
{
	struct state after = *state;

	if (state->limits[p].credit == 0)
		return;
	after.limits[p].store += state->limits[p].credit;
	after.limits[p].credit = 0;
	step(walk, &after, CHANCE, "what is idle goes back to limit %d", p, 0);
}

static void spend(const struct state *state, int p, struct walk *walk)
{
	struct state after = *state;

	if (!take(&after.limits[p], 1))
		return;
	after.limits[p].committed++;
	step(walk, &after, CHANCE, "a call without a hold spends of limit %d", p, 0);
}

/* All of it, or nothing. */
static void hold(const long *c, const struct state *state, int i, const int *costs,
                 struct walk *walk)
{
	struct gale_answer answers[PARTS] = { 0 };
	struct state after = *state;
	uint64_t kept[PARTS] = { 0 };
	size_t binding;

	for (int p = 0; p < c[PART_COUNT]; p++) {
		uint64_t units = hold_cut((uint64_t)costs[p], (uint64_t)c[LIMIT]);

		if (take(&after.limits[p], units))
			kept[p] = units;
		answers[p].verdict = kept[p] > 0 ? GALE_ALLOW : GALE_DENY;
	}
	if (whole_of(answers, (size_t)c[PART_COUNT], &binding).verdict == GALE_ALLOW) {
		after.calls[i].is = RUNS;
		for (int p = 0; p < c[PART_COUNT]; p++)
			after.calls[i].parts[p] =
			    (struct part){ .units = small(kept[p]) };
	} else {
		for (int p = 0; p < c[PART_COUNT] && c[WHOLE]; p++)
			if (kept[p] > 0)
				put(c, &after.limits[p], kept[p]);
	}
	step(walk, &after, CHANCE, "a call asks for %d and %d", costs[0], costs[1]);
}

/* What is kept goes back. */
static void cancel(const long *c, struct state *state, int i)
{
	for (int p = 0; p < c[PART_COUNT] && c[WHOLE]; p++)
		settle_part(c, &state->limits[p], &state->calls[i].parts[p],
		            /* cost= */ 0);
	state->calls[i] = (struct call){ 0 };
}

static bool has_all(const long *c, const struct call *call)
{
	for (int p = 0; p < c[PART_COUNT]; p++)
		if (call->parts[p].units == 0)
			return false;
	return true;
}

/* Of one limit, while the others may turn the call away. */
static void reserve(const long *c, const struct state *state, int i, int p, int cost,
                    struct walk *walk)
{
	uint64_t units = hold_cut((uint64_t)cost, (uint64_t)c[LIMIT]);
	struct state after = *state;
	struct call *call = &after.calls[i];

	if (call->parts[p].units > 0)
		return;
	if (take(&after.limits[p], units)) {
		call->parts[p].units = small(units);
		call->is = has_all(c, call) ? RUNS : GATHERS;
	} else {
		cancel(c, &after, i);
	}
	step(walk, &after, CHANCE, "a call asks limit %d for %d", p, cost);
}

static void give_up(const long *c, const struct state *state, int i, struct walk *walk)
{
	struct state after = *state;

	cancel(c, &after, i);
	step(walk, &after, CHANCE, "call %d has waited for too long", i, 0);
}

/* A hold outlives one window, in this world. */
static void grow(const long *c, const struct state *state, int i, int p,
                 struct walk *walk)
{
	struct state after = *state;
	struct part *part = &after.calls[i].parts[p];
	struct held held = held_of(c, part);

	if ((part->old && part->past > 0) || !hold_may_grow(&held, 1) ||
	    !take(&after.limits[p], 1))
		return;
	if (part->old && !c[PAST])
		held.word =
		    word(credit_units(held.word)); /* as if it were of this one */
	hold_grow(&held, word(1), now);
	keep_held(part, &held);
	step(walk, &after, CHANCE, "call %d grows in limit %d", i, p);
}

static void settle(const long *c, const struct state *state, int i, const int *costs,
                   struct walk *walk)
{
	struct state after = *state;

	for (int p = 0; p < c[PART_COUNT]; p++)
		settle_part(c, &after.limits[p], &state->calls[i].parts[p],
		            (uint64_t)costs[p]);
	if (c[ONCE])
		after.calls[i] = (struct call){ 0 };
	step(walk, &after, CHANCE, "a call has cost %d and %d", costs[0], costs[1]);
}

/* What is in hand, and owed, dies with its window. */
static void turn(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	for (int p = 0; p < c[PART_COUNT]; p++)
		after.limits[p] = (struct limit){ .store = small((uint64_t)c[LIMIT]) };
	for (int i = 0; i < c[CALL_COUNT]; i++)
		for (int p = 0; p < c[PART_COUNT]; p++)
			after.calls[i].parts[p].old =
			    state->calls[i].parts[p].units > 0;
	step(walk, &after, CHANCE, "the window turns", 0, 0);
}

static long held_in(const long *c, const struct state *state, int p)
{
	long sum = 0;

	for (int i = 0; i < c[CALL_COUNT]; i++)
		if (!state->calls[i].parts[p].old)
			sum += state->calls[i].parts[p].units;
	return sum;
}

/* The death, and the end of its lease, in one step.  Nothing tells what its calls have cost: all that they
 * held may be committed. */
static void die(const long *c, const struct state *state, struct walk *walk)
{
	struct state after = *state;

	if (state->deaths == c[DEATHS])
		return;
	after.deaths++;
	memset(after.calls, 0, sizeof(after.calls));
	for (int p = 0; p < c[PART_COUNT]; p++) {
		struct limit *limit = &after.limits[p];
		uint8_t held = small((uint64_t)held_in(c, state, p));

		limit->committed += held;
		if (!c[DEAD])
			limit->store += held;
		limit->lost += limit->credit;
		limit->gone += limit->debt;
		limit->credit = limit->debt = 0;
	}
	step(walk, &after, CHANCE, "the node dies", 0, 0);
}

static int dearest(const long *c, const struct part *part)
{
	return part->units + part->past + (int)c[OVER];
}

/* It begins, or ends. */
static void call(const long *c, const struct state *state, int i, struct walk *walk)
{
	const struct call *it = &state->calls[i];
	bool runs = it->is == RUNS, both = c[PART_COUNT] == PARTS;
	int first = runs ? 0 : 1, high[PARTS] = { (int)c[COST], (int)c[COST] };

	for (int p = 0; p < PARTS && runs; p++)
		high[p] = dearest(c, &it->parts[p]);
	for (int a = first; a <= high[0]; a++)
		for (int b = both ? first : 0; b <= (both ? high[1] : 0); b++) {
			const int costs[PARTS] = { a, b };

			if (runs)
				settle(c, state, i, costs, walk);
			else
				hold(c, state, i, costs, walk);
		}
}

static void gather(const long *c, const struct state *state, int i, struct walk *walk)
{
	for (int p = 0; p < c[PART_COUNT]; p++)
		for (int cost = 1; cost <= c[COST]; cost++)
			reserve(c, state, i, p, cost, walk);
	if (state->calls[i].is == GATHERS)
		give_up(c, state, i, walk);
}

static void next(const long *c, const void *at, struct walk *walk)
{
	const struct state *state = at;

	for (int p = 0; p < c[PART_COUNT]; p++) {
		for (int units = 1; units <= c[LIMIT]; units++)
			lease(c, state, p, units, walk);
		give_back(state, p, walk);
		spend(state, p, walk);
	}
	for (int i = 0; i < c[CALL_COUNT]; i++) {
		bool runs = state->calls[i].is == RUNS;

		if (c[APART] && !runs)
			gather(c, state, i, walk);
		else
			call(c, state, i, walk);
		for (int p = 0; p < c[PART_COUNT] && runs; p++)
			grow(c, state, i, p, walk);
	}
	turn(c, state, walk);
	die(c, state, walk);
}

/* ---- What must hold ------------------------------------------------------------------ */

static const char *broken(const long *c, const void *at)
{
	const struct state *state = at;

	for (int p = 0; p < c[PART_COUNT]; p++) {
		const struct limit *it = &state->limits[p];

		if (it->debt > 0 && it->credit > 0)
			return "owing"; /* HOLD-3 */
		if (c[BOOKS] && it->committed + held_in(c, state, p) + it->credit +
		                        it->store + it->lost !=
		                    c[LIMIT] + it->debt + it->gone)
			return "conserved"; /* HOLD-1 */
	}
	return NULL;
}

static long bound(const long *c)
{
	return c[LIMIT];
}

/* But for what holds cost beyond while there was a debt. */
static long found(const long *c, const void *at)
{
	const struct state *state = at;
	long most = 0;

	for (int p = 0; p < c[PART_COUNT]; p++)
		most = larger_of(most,
		                 state->limits[p].committed - state->limits[p].excess);
	return most;
}

static void print(const long *c, const void *at, FILE *out)
{
	const struct state *state = at;

	for (int p = 0; p < c[PART_COUNT]; p++)
		fprintf(out,
		        "%slimit %d has %d, in hand %d, committed %d, owed %d, beyond "
		        "%d",
		        p > 0 ? "; " : "", p, state->limits[p].store,
		        state->limits[p].credit, state->limits[p].committed,
		        state->limits[p].debt, state->limits[p].excess);
	for (int i = 0; i < c[CALL_COUNT]; i++)
		for (int p = 0; p < c[PART_COUNT] && state->calls[i].is != IDLE; p++)
			fprintf(out, "; call %d holds %d%s and %d of before", i,
			        state->calls[i].parts[p].units,
			        state->calls[i].parts[p].old ? " that are dead" : "",
			        state->calls[i].parts[p].past);
}

const struct model holds_model = {
	.name = "holds",
	.about = "calls that hold units of several limits until their cost is known",
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
