/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* sized_fleet.c -- one world at a time; sized_fleet.h. */
#include <stdio.h>

#include "sim/world.h"
#include "tests/support/must.h"
#include "tests/support/sized_fleet.h"

#define WINDOW GALE_SECONDS(1)

struct prophet {
	struct gale_predictor predictor; /* first */
	uint64_t demand;
};

static struct world world;

static uint64_t foretell(struct gale_predictor *self, const void *key, size_t key_len)
{
	(void)key;
	(void)key_len;
	return ((struct prophet *)self)->demand;
}

static struct world_plan plan_of(const struct sized_way *way, struct prophet *prophet)
{
	struct world_plan plan = {
		.seed = 1,
		.rule = gale_fixed_window(SIZED_LIMIT, WINDOW),
		.mode = GALE_LEASED,
		.lease = way->lease,
		.net = { .mean_us = GALE_MILLIS(5) },
		.nodes = SIZED_NODES,
		.seats = 1,
		.shards = 1,
		.keys = 1,
		.pending = 256,
		.offset_us = GALE_HOURS(1),
		.rate_ppm = 400,
	};

	if (way->predicted_percent > 0)
		plan.lease.predictor = &prophet->predictor;
	return plan;
}

static uint64_t trips_now(void)
{
	return world.net.requests + world.net.runs;
}

/* So many windows from the first on. */
static void ask_steadily(uint64_t first, uint64_t windows, uint64_t demand,
                         struct chance *lot)
{
	for (uint64_t i = 0; i < windows * demand; i++) {
		world_run(&world, WORLD_START + first * WINDOW + i * WINDOW / demand);
		world_ask(&world, (uint32_t)chance_below(lot, SIZED_NODES), 0, 0, 1);
	}
}

static struct sized_cost cost_of(uint64_t first, uint64_t demand, uint64_t trips)
{
	uint64_t most = demand < SIZED_LIMIT ? demand : SIZED_LIMIT;
	struct sized_cost cost = { .worst = 1,
		                   .trips = (double)trips / SIZED_MEASURED };

	for (uint64_t i = first; i < first + SIZED_MEASURED; i++) {
		double used = (double)world_used(&world, 0, i) / (double)most;

		cost.used += used / SIZED_MEASURED;
		if (used < cost.worst)
			cost.worst = used;
	}
	return cost;
}

void sized_fleet_measure(const struct sized_way *way, uint64_t demand_percent,
                         uint64_t late, struct sized_cost *ret_early,
                         struct sized_cost *ret_late)
{
	uint64_t demand = demand_percent * SIZED_LIMIT / 100;
	struct prophet prophet = {
		{ foretell }, demand * way->predicted_percent / 100 / SIZED_NODES
	};
	struct world_plan plan = plan_of(way, &prophet);
	struct chance lot = { 1 };
	const uint64_t between = SIZED_EARLY + SIZED_MEASURED;
	uint64_t trips, last;

	world_open(&world, &plan);
	ask_steadily(0, SIZED_EARLY, demand, &lot);
	trips = trips_now();
	ask_steadily(SIZED_EARLY, SIZED_MEASURED, demand, &lot);
	trips = trips_now() - trips;
	ask_steadily(between, late - between, demand, &lot);
	last = trips_now();
	ask_steadily(late, SIZED_MEASURED, demand, &lot);
	last = trips_now() - last;
	world_run(&world, WORLD_START + (late + SIZED_MEASURED) * WINDOW + WINDOW / 2);
	*ret_early = cost_of(SIZED_EARLY, demand, trips);
	*ret_late = cost_of(late, demand, last);
	if (!world_close(&world)) {
		printf("%s: %s\n", way->name, world.fault);
		must(false);
	}
}
