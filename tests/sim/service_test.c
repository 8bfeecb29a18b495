/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * service_test.c -- how much of what a fleet asks for it is served, wherever that is asked.
 *
 *     service_test            checks what must hold
 *     service_test --table    prints more of it
 *
 * The fleet asks for 80 or 150 percent of a limit, in calls that come evenly each millisecond.
 * Which of its nodes ask is the demand:
 *
 *     even      all of them, alike
 *     zipf      all of them, the n-th for a part of 1/n
 *     edge      one half of them in a window, the other half in the next
 *     straggle  the same, and each node of the idle half asks once, a tenth into the window
 *     middle    one half of them, which changes in the middle of each window
 *     lot       those that a coin says, in each window
 *
 * Served is what was admitted, of what was asked for, or of the limit if that was less.  Trips are
 * asks for units and returns of them, of a node that asks more than once in a window, and of one
 * that asks once or not at all.  A fleet learns for some windows, which are not counted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/world.h"
#include "tests/support/must.h"

#define LIMIT 10000
#define WINDOW GALE_SECONDS(1)
#define TICK GALE_MILLIS(1)
#define TICKS (WINDOW / TICK)
#define LEARNING 8 /* windows: as many as a sizer remembers */
#define MEASURED 30
#define NODES_MOST 64

enum shape { EVEN, ZIPF, EDGE, STRAGGLE, MIDDLE, LOT, SHAPES };

static const char *const shape_names[SHAPES] = { "even",     "zipf",   "edge",
	                                         "straggle", "middle", "lot" };

struct fleet {
	enum shape shape;
	uint32_t nodes;
	uint64_t percent; /* of the limit, asked for */
	struct chance lot;
	bool on[NODES_MOST];        /* LOT: asks in this window */
	double due[NODES_MOST];     /* calls that are not made yet: a part of one */
	uint64_t asked;             /* in this window ... */
	uint64_t calls[NODES_MOST]; /* ... by each */
	uint64_t trips[NODES_MOST]; /* up to now */
};

enum { IDLE, ACTIVE, KINDS };

/* Of the windows that are counted. */
struct trips {
	uint64_t made[KINDS];
	uint64_t nodes[KINDS]; /* of each window */
};

struct service {
	double mean;         /* of the windows that are counted */
	double worst;        /* of them */
	double trips[KINDS]; /* of a window and node */
};

static struct world world;

static bool is_in_half(const struct fleet *fleet, uint32_t node, uint64_t half)
{
	return fleet->nodes == 1 || (node < fleet->nodes / 2) == (half % 2 == 0);
}

static double weight(const struct fleet *fleet, uint32_t node, uint64_t window,
                     uint64_t tick)
{
	switch (fleet->shape) {
	case ZIPF:
		return 1.0 / (node + 1);
	case EDGE:
	case STRAGGLE:
		return is_in_half(fleet, node, window);
	case MIDDLE:
		return is_in_half(fleet, node, window + (tick >= TICKS / 2));
	case LOT:
		return fleet->on[node];
	default:
		return 1;
	}
}

static void draw(struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->nodes; i++)
		fleet->on[i] = chance_one_in(&fleet->lot, 2);
	fleet->on[chance_below(&fleet->lot, fleet->nodes)] = true;
}

static void ask(struct fleet *fleet, uint32_t node)
{
	(void)world_ask(&world, node, 0, 0, 1);
	fleet->asked++;
	fleet->calls[node]++;
}

static void ask_in_tick(struct fleet *fleet, uint64_t window, uint64_t tick)
{
	double calls = (double)LIMIT * (double)fleet->percent / 100 / TICKS, sum = 0;

	for (uint32_t i = 0; i < fleet->nodes; i++)
		sum += weight(fleet, i, window, tick);
	for (uint32_t i = 0; i < fleet->nodes; i++) {
		double part = weight(fleet, i, window, tick);

		if (fleet->shape == STRAGGLE && part == 0 && tick == TICKS / 10)
			ask(fleet, i);
		fleet->due[i] += calls * part / sum;
		for (; fleet->due[i] >= 1; fleet->due[i]--)
			ask(fleet, i);
	}
}

static double live_window(struct fleet *fleet, uint64_t window)
{
	uint64_t start = WORLD_START + window * WINDOW;

	fleet->asked = 0;
	memset(fleet->calls, 0, sizeof(fleet->calls));
	draw(fleet);
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		world_run(&world, start + tick * TICK);
		ask_in_tick(fleet, window, tick);
	}
	world_run(&world, start + WINDOW - 1);
	return (double)world_used(&world, 0, window) /
	       (double)(fleet->asked < LIMIT ? fleet->asked : LIMIT);
}

static uint64_t trips_of(uint32_t node)
{
	return world_metric(&world, node, "leases_asked") +
	       world_metric(&world, node, "leases_given_back");
}

static void count_trips(struct fleet *fleet, bool is_learning, struct trips *trips)
{
	for (uint32_t i = 0; i < fleet->nodes; i++) {
		uint64_t before = fleet->trips[i];
		int kind = fleet->calls[i] > 1 ? ACTIVE : IDLE;

		fleet->trips[i] = trips_of(i);
		if (is_learning)
			continue;
		trips->made[kind] += fleet->trips[i] - before;
		trips->nodes[kind]++;
	}
}

static struct service serve(enum shape shape, uint32_t nodes, uint64_t percent)
{
	struct fleet fleet = {
		.shape = shape, .nodes = nodes, .percent = percent, .lot = { 1 }
	};
	struct world_plan plan = {
		.seed = 1,
		.rule = gale_fixed_window(LIMIT, WINDOW),
		.mode = GALE_LEASED,
		.net = { .mean_us = 500 },
		.nodes = nodes,
		.seats = 1,
		.shards = 1,
		.keys = 1,
		.pending = 4096,
		.offset_us = GALE_HOURS(1),
		.rate_ppm = 400,
	};
	struct service service = { .worst = 1 };
	struct trips trips = { 0 };

	world_open(&world, &plan);
	for (uint32_t i = 0; i < nodes; i++)
		fleet.due[i] = (double)i / nodes;
	for (uint64_t window = 0; window < LEARNING + MEASURED; window++) {
		double served = live_window(&fleet, window);

		count_trips(&fleet, window < LEARNING, &trips);
		if (window < LEARNING)
			continue;
		service.mean += served / MEASURED;
		if (service.worst > served)
			service.worst = served;
	}
	for (int kind = 0; kind < KINDS; kind++)
		service.trips[kind] =
		    trips.nodes[kind] > 0
			? (double)trips.made[kind] / (double)trips.nodes[kind]
			: 0;
	world_run(&world, WORLD_START + (LEARNING + MEASURED) * WINDOW + WINDOW / 2);
	if (!world_close(&world)) {
		fprintf(stderr, "%s, %" PRIu32 " nodes: %s\n", shape_names[shape],
		        nodes, world.fault);
		must(false);
	}
	return service;
}

static void print_row(uint32_t nodes, uint64_t percent)
{
	printf("| %" PRIu32 " |", nodes);
	for (int shape = 0; shape < SHAPES; shape++) {
		struct service of = serve((enum shape)shape, nodes, percent);

		printf(" %.3f, %.2f; %.1f, %.1f |", of.mean, of.worst, of.trips[ACTIVE],
		       of.trips[IDLE]);
		(void)fflush(stdout);
	}
	printf("\n");
}

static void print_table(uint64_t percent)
{
	static const uint32_t fleets[] = { 1, 7, 16, 30, 64 };

	printf("\n%" PRIu64 " %% of the limit is asked for: served in the mean, in the "
	       "worst window; round trips of an active node, of an idle one\n\n"
	       "| nodes |",
	       percent);
	for (int shape = 0; shape < SHAPES; shape++)
		printf(" %s |", shape_names[shape]);
	printf("\n|--:|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(fleets) / sizeof(*fleets); i++)
		print_row(fleets[i], percent);
}

/* ---- What must hold -------------------------------------------------------------- */

static struct service expect(enum shape shape, uint32_t nodes, uint64_t percent,
                             double mean, double worst)
{
	struct service of = serve(shape, nodes, percent);

	printf("%s, %" PRIu32 " nodes, %" PRIu64
	       " %%: %.3f, worst %.3f, %.1f round trips, %.1f of the idle\n",
	       shape_names[shape], nodes, percent, of.mean, of.worst, of.trips[ACTIVE],
	       of.trips[IDLE]);
	(void)fflush(stdout);
	must(of.mean >= mean && of.worst >= worst);
	return of;
}

/* A node that asks once in a window is not lent what a window usually needs. (L16) */
static void check_what_one_call_holds(void)
{
	expect(STRAGGLE, 16, 80, 0.99, 0.95);
	expect(STRAGGLE, 30, 80, 0.99, 0.95);
	expect(STRAGGLE, 64, 80, 0.99, 0.95);
	expect(STRAGGLE, 16, 150, 0.99, 0.95);
	expect(STRAGGLE, 30, 150, 0.99, 0.95);
}

/* Where demand is steady an active node makes two trips at most, and who asks once makes one to
 * ask and one to give back.  Who is steady in other windows gets to its demand in log steps. */
static void check_trips(void)
{
	struct service even = expect(EVEN, 7, 80, 0.99, 0.95);
	struct service zipf = expect(ZIPF, 30, 80, 0.99, 0.95);
	struct service straggle = expect(STRAGGLE, 7, 80, 0.99, 0.95);

	must(even.trips[ACTIVE] <= 2 && zipf.trips[ACTIVE] <= 2);
	must(straggle.trips[IDLE] <= 2 && straggle.trips[ACTIVE] <= 16);
}

static void check_the_rest(void)
{
	expect(EVEN, 16, 80, 0.99, 0.95);
	expect(EDGE, 16, 80, 0.99, 0.95);
	expect(MIDDLE, 16, 80, 0.99, 0.95);
	expect(LOT, 7, 80, 0.99, 0.95);
	expect(LOT, 30, 80, 0.99, 0.95);
	expect(EVEN, 16, 150, 0.99, 0.95);
	expect(EDGE, 16, 150, 0.99, 0.95);
	expect(MIDDLE, 16, 150, 0.99, 0.95);
	expect(MIDDLE, 64, 150, 0.99, 0.95);
	expect(LOT, 16, 150, 0.99, 0.95);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--table") == 0) {
		print_table(80);
		print_table(150);
		return 0;
	}
	must(argc == 1);
	check_what_one_call_holds();
	check_trips();
	check_the_rest();
	return 0;
}
