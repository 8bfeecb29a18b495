/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * brook_sim.c -- calls behind several limits or of tenants, and streams that hold units, drawn by lot, each
 * from its seed (seeds.h).
 *
 *     brook_sim --seeds 0-999          as many fleets
 *     brook_sim --seeds 7-7            one
 *
 * sim/brook.h says what must hold in each: the law of holds, that a call that one limit refuses uses
 * nothing of the others, and what a tenant's share is worth.
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/brook.h"
#include "sim/script.h"
#include "tests/sim/seeds.h"

/* ---- Drawing ------------------------------------------------------------------------- */

/* Each later one is of a longer window, and some are the tightest. */
static void draw_limits(struct chance *c, struct brook_plan *plan)
{
	uint64_t window_us = GALE_SECONDS(60), units = 1 + chance_log(c, 5000);

	plan->limit_count = (uint32_t)chance_between(c, 1, BROOK_LIMITS);
	for (uint32_t i = 0; i < plan->limit_count; i++) {
		plan->limits[i] = (struct brook_limit){ units, window_us };
		if (chance_one_in(c, 2))
			window_us *= chance_between(c, 2, 5);
		units += chance_below(c, 4 * units);
	}
}

static uint64_t least_units(const struct brook_plan *plan)
{
	uint64_t least = plan->limits[0].units;

	for (uint32_t i = 1; i < plan->limit_count; i++)
		if (plan->limits[i].units < least)
			least = plan->limits[i].units;
	return least;
}

static void draw_streams(struct chance *c, struct brook_plan *plan)
{
	plan->held = chance_log(c, least_units(plan));
	plan->grows = chance_between(c, 1, plan->held);
	plan->sends = 1 + plan->cost_most / chance_between(c, 1, 4);
	plan->break_percent = chance_one_in(c, 2) ? 20 : 0;
	plan->late = chance_one_in(c, 2) ? chance_log(c, 100) : 0;
	plan->ahead = chance_one_in(c, 3) ? chance_log(c, plan->held) : 0;
}

/* One budget, in the place of the limits.  Tenants call often enough to be present, but for one. */
static void draw_tenants(struct chance *c, struct brook_plan *plan)
{
	uint64_t often = 60;

	plan->limit_count = 1;
	plan->tenant_count = (uint32_t)chance_between(c, 1, BROOK_TENANTS);
	for (uint32_t i = 0; i < plan->tenant_count; i++)
		plan->weights[i] = (uint32_t)chance_between(c, 1, 9);
	if (plan->calls < often * plan->tenant_count)
		plan->calls = often * plan->tenant_count;
	if (plan->late > 0) /* beside a budget that may be small */
		plan->late = chance_log(c, plan->limits[0].units);
	plan->pauses = BROOK_NOBODY;
	if (chance_one_in(c, 2))
		return;
	plan->pauses = (uint32_t)chance_below(c, plan->tenant_count);
	plan->pause_us = plan->limits[0].window_us / 8 * chance_between(c, 2, 20);
}

static void draw(const struct seeds *seeds, uint64_t seed, void *ret_plan)
{
	struct brook_plan *plan = ret_plan;
	struct chance c = { seed };

	(void)seeds;
	*plan = (struct brook_plan){ .seed = seed, .windows = 8 };
	plan->nodes = chance_one_in(&c, 2) ? 1 : (uint32_t)chance_between(&c, 2, 4);
	draw_limits(&c, plan);
	plan->cost_most = chance_log(&c, plan->limits[0].units);
	plan->calls = 1 + 3 * plan->limits[0].units / plan->cost_most;
	if (plan->calls > 300)
		plan->calls = 300;
	plan->holds = !chance_one_in(&c, 3);
	if (plan->holds)
		draw_streams(&c, plan);
	if (chance_one_in(&c, 3))
		draw_tenants(&c, plan);
}

/* ---- One fleet ----------------------------------------------------------------------- */

static struct {
	uint64_t fleets, streams, budgets, admitted, refused, broken, stopped, late,
	    full;
} tally;

static void add(const struct brook_plan *plan, const struct brook *brook)
{
	tally.fleets++;
	tally.streams += plan->holds;
	tally.budgets += plan->tenant_count > 0;
	for (uint64_t w = 0; w < brook_windows(plan, 0); w++) {
		const struct brook_events *events = &brook->events[w];

		tally.admitted += events->admitted;
		tally.broken += events->broken;
		tally.stopped += events->stopped;
		tally.late += events->late;
		for (uint32_t i = 0; i < plan->limit_count; i++)
			tally.refused += events->refused[i];
		tally.full += brook->windows[0][w].committed >= plan->limits[0].units;
	}
}

static const char *play(const struct seeds *seeds, const void *plan,
                        const struct choice *choice, bool verbose, bool first,
                        uint64_t *ret_asks)
{
	static struct brook brook;

	(void)seeds;
	(void)choice;
	(void)verbose;
	brook_play(&brook, plan);
	if (first)
		add(plan, &brook);
	*ret_asks = 0;
	return brook.fault;
}

static void describe(const void *plan)
{
	const struct brook_plan *it = plan;

	printf("%u nodes, %" PRIu64 " calls in a window, costs to %" PRIu64 "; limits",
	       it->nodes, it->calls, it->cost_most);
	for (uint32_t i = 0; i < it->limit_count; i++)
		printf(" %" PRIu64 "/%" PRIu64 "s", it->limits[i].units,
		       it->limits[i].window_us / 1000000);
	if (it->tenant_count > 0)
		printf("; %u tenants", it->tenant_count);
	if (it->tenant_count > 0 && it->pauses != BROOK_NOBODY)
		printf(", of which %u pauses for %" PRIu64 " s", it->pauses,
		       it->pause_us / 1000000);
	if (it->holds)
		printf("; streams hold %" PRIu64 ", grow by %" PRIu64 " with %" PRIu64
		       " left, send %" PRIu64 ", break %u %%, late %" PRIu64,
		       it->held, it->grows, it->ahead, it->sends, it->break_percent,
		       it->late);
	printf("\n");
}

static const struct shrink_field fields[] = {
#define FIELD(name, member, least, most)                                               \
	{                                                                              \
		name, offsetof(struct brook_plan, member),                             \
		    sizeof(((struct brook_plan *)0)->member), least, most              \
	}
	FIELD("windows", windows, 2, BROOK_WINDOWS),
	FIELD("nodes", nodes, 1, BROOK_NODES),
	FIELD("limits", limit_count, 1, BROOK_LIMITS),
	FIELD("tenants", tenant_count, 0, BROOK_TENANTS),
	FIELD("calls", calls, 1, 1000),
	FIELD("late", late, 0, 1000),
	FIELD("ahead", ahead, 0, 1000),
	FIELD("break", break_percent, 0, 100),
};

int main(int argc, char **argv)
{
	static struct seeds seeds = {
		.fields = fields,
		.field_count = sizeof(fields) / sizeof(fields[0]),
		.plan_bytes = sizeof(struct brook_plan),
		.draw = draw,
		.play = play,
		.describe = describe,
		.last = 999,
	};
	uint64_t failed;

	if (!seeds_read(&seeds, argc, argv))
		return 2;
	failed = seeds_play(&seeds);
	printf("%" PRIu64 " fleets, %" PRIu64 " with streams, %" PRIu64
	       " of tenants; %" PRIu64 " calls admitted, %" PRIu64 " refused; %" PRIu64
	       " streams broken, %" PRIu64 " stopped, %" PRIu64 " late; %" PRIu64
	       " windows full\n",
	       tally.fleets, tally.streams, tally.budgets, tally.admitted,
	       tally.refused, tally.broken, tally.stopped, tally.late, tally.full);
	return failed > 0 || tally.full < tally.fleets;
}
