/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pond_sim.c -- shared budgets drawn by lot, each from its seed (seeds.h).
 *
 *     pond_sim --seeds 0-999           as many fleets
 *     pond_sim --seeds 7-7             one
 *
 * sim/pond.h says what must hold in each (T1).  A fleet without faults has, besides, what is ideal:
 * each tenant its share (T2), and the others the share of one that pauses (T3).  Tenants may be evicted
 * in it, and nodes may crash: a window in which one has is not judged so (POND-4).
 */
#include <inttypes.h>
#include <stdio.h>

#include "sim/pond.h"
#include "sim/script.h"
#include "tests/sim/seeds.h"

#define CALM_LIMIT 2000
#define BAR 95 /* percent of what is ideal */

struct fleet_plan {
	struct pond_plan pond; /* first */
	uint32_t calm;
};

/* ---- Drawing ------------------------------------------------------------------------- */

static void draw_tenants(struct chance *c, struct pond_plan *plan)
{
	plan->tenant_count = (uint32_t)chance_between(c, 1, 6);
	for (uint32_t i = 0; i < plan->tenant_count; i++) {
		plan->tenants[i].weight = chance_log(c, 64);
		plan->tenants[i].demand =
		    plan->limit * chance_between(c, 1, 12) / 4 + 1;
	}
	plan->pauses = POND_NOBODY;
	if (chance_one_in(c, 3))
		return;
	plan->pauses = (uint32_t)chance_below(c, plan->tenant_count);
	plan->pause_first = 2;
	plan->pause_last = plan->windows - 2;
}

static void draw_faults(struct chance *c, struct pond_plan *plan)
{
	uint64_t run_us = plan->windows * plan->window_us;
	const uint64_t delays[] = { 0, 1000, 10000, 50000, 200000 };

	plan->delay_us = delays[chance_below(c, 5)];
	plan->cost_most = chance_one_in(c, 2) ? 1 : (uint32_t)chance_between(c, 2, 9);
	plan->lost_percent = chance_one_in(c, 2) ? 10 : 0;
	plan->doubled_percent = chance_one_in(c, 2) ? 20 : 0;
	plan->crash_us = chance_one_in(c, 2) ? run_us / 2 : 0;
	plan->forget_us = chance_one_in(c, 2) ? run_us / 2 : 0;
	plan->evict_us = chance_one_in(c, 2) ? run_us / 8 : 0;
	plan->drift_ppm = chance_one_in(c, 4) ? 10000 : 500;
	plan->rate_ppm = plan->drift_ppm * 9 / 10;
	if (chance_one_in(c, 2))
		return;
	plan->alone = chance_log(c, 64);
	plan->away_us = run_us / 2;
}

/* Calls whose costs are known afterwards. */
static void draw_holds(struct chance *c, struct pond_plan *plan)
{
	plan->holds = true;
	plan->excess = chance_one_in(c, 2) ? 0 : chance_log(c, 16);
}

/* Other regions are far away, and each tenant asks most in one of them. */
static void draw_regions(struct chance *c, struct pond_plan *plan)
{
	plan->regions = (uint32_t)chance_between(c, 1, plan->nodes);
	plan->link_us = chance_log(c, plan->window_us / 20);
	plan->home_percent = (uint32_t)chance_below(c, 101);
}

/* All want more than there is, at nodes that are near, or a hundredth of a window away. */
static void be_calm(struct chance *c, struct pond_plan *plan)
{
	plan->limit = CALM_LIMIT * plan->nodes;
	plan->cost_most = 1;
	plan->delay_us = 500;
	if (plan->link_us > plan->window_us / 100)
		plan->link_us = plan->window_us / 100;
	plan->lost_percent = plan->doubled_percent = plan->rate_ppm = 0;
	plan->forget_us = plan->away_us = 0;
	plan->crash_us *= 2;
	for (uint32_t i = 0; i < plan->tenant_count; i++) {
		plan->tenants[i].weight = chance_between(c, 1, 4);
		plan->tenants[i].demand = 2 * plan->limit;
	}
}

static void draw(const struct seeds *seeds, uint64_t seed, void *ret_plan)
{
	struct fleet_plan *fleet = ret_plan;
	struct pond_plan *plan = &fleet->pond;
	struct chance c = { seed };

	(void)seeds;
	*fleet = (struct fleet_plan){ .pond.seed = seed };
	plan->nodes = (uint32_t)chance_between(&c, 1, 6);
	plan->limit = chance_log(&c, 3000);
	plan->window_us = chance_one_in(&c, 2) ? 1000000 : 60000000;
	plan->windows = 8;
	plan->steps = 250;
	draw_tenants(&c, plan);
	draw_faults(&c, plan);
	if (chance_one_in(&c, 2))
		draw_regions(&c, plan);
	fleet->calm = chance_one_in(&c, 8);
	if (fleet->calm)
		be_calm(&c, plan);
	else if (chance_one_in(&c, 2))
		draw_holds(&c, plan);
}

/* ---- One fleet ----------------------------------------------------------------------- */

static struct {
	uint64_t fleets, calm, spent, limits, asks, quanta, lost, doubled, crashes,
	    forgets, aways, alone, holds, evictions;
} tally;

static void add(const struct fleet_plan *fleet, const struct pond *pond)
{
	tally.fleets++;
	tally.calm += fleet->calm;
	for (uint32_t i = 0; i < fleet->pond.windows; i++)
		tally.spent += pond->spent[i];
	tally.limits += fleet->pond.windows * fleet->pond.limit;
	tally.asks += pond->asks;
	tally.quanta += pond->quanta;
	tally.lost += pond->lost;
	tally.doubled += pond->doubled;
	tally.crashes += pond->crashes;
	tally.forgets += pond->forgets;
	tally.aways += pond->aways;
	tally.alone += pond->alone;
	tally.holds += pond->holds;
	tally.evictions += pond->evictions;
}

/* Of the first window of a pause its beginning is still reserved, and in the first of a run nodes
 * learn.  What a node had that crashed is lost until the window ends. */
static void check_ideal(struct pond *pond)
{
	const struct pond_plan *plan = pond->plan;

	for (uint32_t w = 1; w < plan->windows && !pond->fault[0]; w++)
		for (uint32_t i = 0; i < plan->tenant_count; i++) {
			double ideal = pond_ideal(plan, w, i);

			if (w == plan->pause_first || pond->crashed[w] ||
			    (double)pond->used[w][i] * 100 >= ideal * BAR)
				continue;
			snprintf(pond->fault, sizeof(pond->fault),
			         "window %u: tenant %u got %" PRIu64 " of %.0f", w, i,
			         pond->used[w][i], ideal);
		}
}

static const char *play(const struct seeds *seeds, const void *plan,
                        const struct choice *choice, bool verbose, bool first,
                        uint64_t *ret_asks)
{
	static struct pond pond;
	const struct fleet_plan *fleet = plan;

	(void)seeds;
	(void)choice;
	(void)verbose;
	pond_play(&pond, &fleet->pond);
	if (fleet->calm)
		check_ideal(&pond);
	if (first)
		add(fleet, &pond);
	*ret_asks = 0;
	return pond.fault;
}

static void describe(const void *plan)
{
	const struct pond_plan *it = &((const struct fleet_plan *)plan)->pond;

	printf("%u nodes in %u regions, link %" PRIu64
	       " us, %u %% at home; %u tenants, limit %" PRIu64 ", window %" PRIu64
	       " us, costs to %u; delay %" PRIu64
	       " us, lost %u %%, doubled %u %%, crash %" PRIu64 " us, forget %" PRIu64
	       " us, evict %" PRIu64 " us, rate %u of %u ppm; away %" PRIu64
	       " us, %" PRIu64 " alone; %s, %" PRIu64 " beyond\n",
	       it->nodes, it->regions, it->link_us, it->home_percent, it->tenant_count,
	       it->limit, it->window_us, it->cost_most, it->delay_us, it->lost_percent,
	       it->doubled_percent, it->crash_us, it->forget_us, it->evict_us,
	       it->rate_ppm, it->drift_ppm, it->away_us, it->alone,
	       it->holds ? "holds" : "no holds", it->excess);
}

static const struct shrink_field fields[] = {
#define FIELD(name, member, least, most)                                               \
	{                                                                              \
		name, offsetof(struct fleet_plan, pond.member),                        \
		    sizeof(((struct fleet_plan *)0)->pond.member), least, most         \
	}
	FIELD("windows", windows, 4, POND_WINDOWS),
	FIELD("regions", regions, 0, POND_REGIONS),
	FIELD("nodes", nodes, 1, POND_NODES),
	FIELD("tenants", tenant_count, 1, POND_TENANTS),
	FIELD("limit", limit, 1, 1000000),
	FIELD("cost", cost_most, 1, 1000),
	FIELD("lost", lost_percent, 0, 100),
	FIELD("doubled", doubled_percent, 0, 100),
	FIELD("crash_us", crash_us, 0, UINT32_MAX),
	FIELD("forget_us", forget_us, 0, UINT32_MAX),
	FIELD("evict_us", evict_us, 0, UINT32_MAX),
	FIELD("away_us", away_us, 0, UINT32_MAX),
	FIELD("alone", alone, 0, 1000000),
	FIELD("holds", holds, 0, 1),
	FIELD("excess", excess, 0, 1000),
	FIELD("rate_ppm", rate_ppm, 0, 100000),
	FIELD("delay_us", delay_us, 0, UINT32_MAX),
};

int main(int argc, char **argv)
{
	static struct seeds seeds = {
		.fields = fields,
		.field_count = sizeof(fields) / sizeof(fields[0]),
		.plan_bytes = sizeof(struct fleet_plan),
		.draw = draw,
		.play = play,
		.describe = describe,
		.last = 999,
	};
	uint64_t failed;

	if (!seeds_read(&seeds, argc, argv))
		return 2;
	failed = seeds_play(&seeds);
	printf("%" PRIu64 " fleets, %" PRIu64 " without faults; %" PRIu64 " of %" PRIu64
	       " units, %" PRIu64 " quanta by %" PRIu64 " asks\n%" PRIu64
	       " messages lost, %" PRIu64 " doubled, %" PRIu64 " crashes, %" PRIu64
	       " times forgotten, %" PRIu64 " times cut off, %" PRIu64
	       " units alone, %" PRIu64 " holds, %" PRIu64 " evictions\n",
	       tally.fleets, tally.calm, tally.spent, tally.limits, tally.quanta,
	       tally.asks, tally.lost, tally.doubled, tally.crashes, tally.forgets,
	       tally.aways, tally.alone, tally.holds, tally.evictions);
	return failed > 0 || tally.spent * 4 < tally.limits;
}
