/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * service_test.c -- how much of what a fleet asks for it is served, wherever that is asked.
 *
 *     service_test            checks what must hold
 *     service_test --table    prints more of it
 *     service_test --all [N]  prints each demand, window and cost, of fleets of 1 to 512 nodes, or of N
 *
 * The fleet asks for 80 or 150 percent of a limit, in calls that come evenly in each thousandth of
 * a window, each for one unit, or by lot for up to a hundred.  Which of its nodes ask is the demand:
 *
 *     even      all of them, alike
 *     zipf      all of them, the n-th for a part of 1/n
 *     edge      one half of them in a window, the other half in the next
 *     straggle  the same, and each node of the idle half asks once, a tenth into the window
 *     middle    one half of them, which changes in the middle of each window
 *     lot       those that a coin says, in each window
 *
 * A fleet that is frail loses a node in the middle of each third window, drawn by lot, with all that
 * lies with it; the others get its calls until it is there again, in the middle of the next.
 *
 * Served is what was admitted, of what was asked for, or of the limit if that was less.  Trips are
 * asks for units and returns of them, in a window, of a node that is active: it asks more than once; of
 * one that is not: it asks once, or has asked in the window before, of which a call may still wait as
 * the window turns; and of one that is idle: it asks in neither.  A call waits if credit or a denial
 * does not answer it at once.  A
 * fleet learns for some windows, which are not counted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define CALLS 10000 /* of the mean cost: the limit */
#define TICKS 1000  /* of a window */
#define LEARNING 8  /* windows: as many as a sizer remembers */
#define TABLED 30
#define NODES_MOST WORLD_NODES

enum shape { EVEN, ZIPF, EDGE, STRAGGLE, MIDDLE, LOT, SHAPES };

static const char *const shape_names[SHAPES] = { "even",     "zipf",   "edge",
	                                         "straggle", "middle", "lot" };

struct demand {
	enum shape shape;
	uint32_t nodes;
	uint64_t percent;   /* of the limit, asked for */
	uint64_t window_us; /* 0: a second */
	uint64_t cost_most; /* of a call, from 1 on; 0: 1 */
	uint64_t lot;       /* seed of what is drawn; 0: 1 */
	uint64_t trip_us;   /* of a message, on average; 0: half a millisecond */
	bool is_frail;
};

struct fleet {
	struct demand demand;
	uint64_t limit;
	struct chance lot;
	uint32_t gone;              /* NODES_MOST: all are there */
	bool on[NODES_MOST];        /* LOT: asks in this window */
	double due[NODES_MOST];     /* calls that are not made yet: a part of one */
	uint64_t asked;             /* units in this window ... */
	uint64_t calls[NODES_MOST]; /* ... and calls, by each */
	uint64_t calls_before[NODES_MOST];
	uint64_t waited;            /* calls of this window */
	uint64_t trips[NODES_MOST]; /* up to now */
};

enum { ACTIVE, SELDOM, IDLE, KINDS };

/* Of the windows that are counted. */
struct trips {
	uint64_t made[KINDS];
	uint64_t nodes[KINDS]; /* of each window */
};

struct service {
	double mean;           /* of the windows that are counted */
	double worst;          /* of them */
	double trips[KINDS];   /* of a window and node */
	uint64_t nodes[KINDS]; /* of each window */
	double waited;         /* of all calls */
};

static struct world world;
static uint64_t measured = LONG_OR_BRIEF(100, 30); /* windows */

static bool is_in_half(const struct fleet *fleet, uint32_t node, uint64_t half)
{
	uint32_t nodes = fleet->demand.nodes;

	return nodes == 1 || (node < nodes / 2) == (half % 2 == 0);
}

static double weight(const struct fleet *fleet, uint32_t node, uint64_t window,
                     uint64_t tick)
{
	if (node == fleet->gone)
		return 0;
	switch (fleet->demand.shape) {
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
	uint32_t nodes = fleet->demand.nodes;

	for (uint32_t i = 0; i < nodes; i++)
		fleet->on[i] = chance_one_in(&fleet->lot, 2);
	fleet->on[chance_below(&fleet->lot, nodes)] = true;
}

static void ask(struct fleet *fleet, uint32_t node)
{
	uint64_t most = fleet->demand.cost_most;
	uint64_t cost = most > 0 ? chance_between(&fleet->lot, 1, most) : 1;
	const struct call *call = world_ask(&world, node, 0, 0, cost);

	fleet->asked += cost;
	fleet->calls[node]++;
	fleet->waited += call->pending;
}

static void ask_in_tick(struct fleet *fleet, uint64_t window, uint64_t tick)
{
	double calls = (double)CALLS * (double)fleet->demand.percent / 100 / TICKS;
	double sum = 0;

	for (uint32_t i = 0; i < fleet->demand.nodes; i++)
		sum += weight(fleet, i, window, tick);
	for (uint32_t i = 0; i < fleet->demand.nodes && sum > 0; i++) {
		double part = weight(fleet, i, window, tick);

		if (fleet->demand.shape == STRAGGLE && part == 0 &&
		    tick == TICKS / 10 && i != fleet->gone)
			ask(fleet, i);
		fleet->due[i] += calls * part / sum;
		for (; fleet->due[i] >= 1; fleet->due[i]--)
			ask(fleet, i);
	}
}

/* In the middle of a window. */
static void come_or_go(struct fleet *fleet, uint64_t window)
{
	if (!fleet->demand.is_frail)
		return;
	if (fleet->gone < NODES_MOST) {
		world_start(&world, fleet->gone);
		fleet->trips[fleet->gone] = 0;
		fleet->gone = NODES_MOST;
	} else if (window % 3 == 0) {
		fleet->gone = (uint32_t)chance_below(&fleet->lot, fleet->demand.nodes);
		world_crash(&world, fleet->gone);
	}
}

static double live_window(struct fleet *fleet, uint64_t window)
{
	uint64_t window_us = fleet->demand.window_us;
	uint64_t start = WORLD_START + window * window_us;

	fleet->asked = fleet->waited = 0;
	memcpy(fleet->calls_before, fleet->calls, sizeof(fleet->calls));
	memset(fleet->calls, 0, sizeof(fleet->calls));
	draw(fleet);
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		world_run(&world, start + tick * window_us / TICKS);
		if (tick == TICKS / 2)
			come_or_go(fleet, window);
		ask_in_tick(fleet, window, tick);
	}
	world_run(&world, start + window_us - 1);
	return (double)world_used(&world, 0, window) /
	       (double)(fleet->asked < fleet->limit ? fleet->asked : fleet->limit);
}

static uint64_t trips_of(uint32_t node)
{
	return world_metric(&world, node, "leases_asked") +
	       world_metric(&world, node, "leases_given_back");
}

static int kind_of(const struct fleet *fleet, uint32_t node)
{
	if (fleet->calls[node] > 1)
		return ACTIVE;
	return fleet->calls[node] + fleet->calls_before[node] > 0 ? SELDOM : IDLE;
}

static void count_trips(struct fleet *fleet, bool is_learning, struct trips *trips)
{
	for (uint32_t i = 0; i < fleet->demand.nodes; i++) {
		uint64_t before = fleet->trips[i];
		int kind = kind_of(fleet, i);

		if (i == fleet->gone)
			continue;
		fleet->trips[i] = trips_of(i);
		if (is_learning)
			continue;
		trips->made[kind] += fleet->trips[i] - before;
		trips->nodes[kind]++;
	}
}

static uint64_t calls_of(const struct fleet *fleet)
{
	uint64_t calls = 0;

	for (uint32_t i = 0; i < fleet->demand.nodes; i++)
		calls += fleet->calls[i];
	return calls;
}

static void open_fleet(struct fleet *fleet)
{
	struct demand *demand = &fleet->demand;
	struct world_plan plan = {
		.seed = 1,
		.mode = GALE_LEASED,
		.net = { .mean_us = demand->trip_us > 0 ? demand->trip_us : 500 },
		.nodes = demand->nodes,
		.seats = 1,
		.shards = 1,
		.keys = 1,
		.pending = 4096,
		.offset_us = GALE_HOURS(1),
		.rate_ppm = 400,
	};

	if (demand->window_us == 0)
		demand->window_us = GALE_SECONDS(1);
	fleet->limit = CALLS * (demand->cost_most > 0 ? 1 + demand->cost_most : 2) / 2;
	plan.rule = gale_fixed_window(fleet->limit, demand->window_us);
	world_open(&world, &plan);
	for (uint32_t i = 0; i < demand->nodes; i++)
		fleet->due[i] = (double)i / demand->nodes;
}

static struct service serve(struct demand demand)
{
	static struct fleet fleet;
	struct service service = { .worst = 1 };
	struct trips trips = { 0 };
	uint64_t calls = 0, waited = 0;

	fleet = (struct fleet){ .demand = demand,
		                .lot = { demand.lot > 0 ? demand.lot : 1 },
		                .gone = NODES_MOST };
	open_fleet(&fleet);
	for (uint64_t window = 0; window < LEARNING + measured; window++) {
		double served = live_window(&fleet, window);

		count_trips(&fleet, window < LEARNING, &trips);
		if (window < LEARNING)
			continue;
		calls += calls_of(&fleet);
		waited += fleet.waited;
		service.mean += served / (double)measured;
		if (service.worst > served)
			service.worst = served;
	}
	service.waited = (double)waited / (double)calls;
	memcpy(service.nodes, trips.nodes, sizeof(service.nodes));
	for (int kind = 0; kind < KINDS; kind++)
		service.trips[kind] =
		    trips.nodes[kind] > 0
			? (double)trips.made[kind] / (double)trips.nodes[kind]
			: 0;
	world_run(&world, WORLD_START + (2 * (LEARNING + measured) + 1) *
	                                    fleet.demand.window_us / 2);
	if (!world_close(&world)) {
		fprintf(stderr, "%s, %" PRIu32 " nodes: %s\n",
		        shape_names[demand.shape], demand.nodes, world.fault);
		must(false);
	}
	return service;
}

static void print_row(struct demand demand)
{
	printf("| %" PRIu32 " |", demand.nodes);
	for (int shape = 0; shape < SHAPES; shape++) {
		struct service of;

		demand.shape = (enum shape)shape;
		of = serve(demand);
		printf(" %.3f, %.2f; %.1f, %.1f, %.1f; %.3f |", of.mean, of.worst,
		       of.trips[ACTIVE], of.trips[SELDOM], of.trips[IDLE],
		       100 * of.waited);
		(void)fflush(stdout);
	}
	printf("\n");
}

static void print_table(uint64_t window_us, uint64_t percent)
{
	static const uint32_t fleets[] = { 1, 7, 16, 30, 64 };

	printf("\nWindows of %" PRIu64 " ms, %" PRIu64
	       " %% of the limit is asked for: served in the mean, in the "
	       "worst window; round trips of a node that is active, is not, is idle; "
	       "percent of the calls that wait\n\n"
	       "| nodes |",
	       window_us / 1000, percent);
	for (int shape = 0; shape < SHAPES; shape++)
		printf(" %s |", shape_names[shape]);
	printf("\n|--:|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(fleets) / sizeof(*fleets); i++)
		print_row((struct demand){
		    .nodes = fleets[i], .percent = percent, .window_us = window_us });
}

/* ---- What must hold -------------------------------------------------------------- */

static struct service tell(struct demand demand)
{
	struct service of = serve(demand);

	printf("%s, %" PRIu32 " nodes, %" PRIu64 " %%%s, windows of %" PRIu64
	       " ms, costs up to %" PRIu64
	       ": %.3f, worst %.3f, %.1f round trips of the "
	       "active, %.1f of others, %.2f of the idle, %.3f %% wait\n",
	       shape_names[demand.shape], demand.nodes, demand.percent,
	       demand.is_frail ? ", frail" : "",
	       (demand.window_us > 0 ? demand.window_us : GALE_SECONDS(1)) / 1000,
	       demand.cost_most > 0 ? demand.cost_most : 1, of.mean, of.worst,
	       of.trips[ACTIVE], of.trips[SELDOM], of.trips[IDLE], 100 * of.waited);
	(void)fflush(stdout);
	return of;
}

/* A node that is not active makes a trip to ask, for itself or for a call that waits as the window
 * turns, and one to give back. */
static struct service expect_of(struct demand demand, double mean, double worst)
{
	struct service of = tell(demand);

	must(of.mean >= mean && of.worst >= worst);
	must(of.trips[SELDOM] <= 2 && of.trips[IDLE] <= 0.2);
	return of;
}

static struct service expect(enum shape shape, uint32_t nodes, uint64_t percent,
                             double mean, double worst)
{
	return expect_of(
	    (struct demand){ .shape = shape, .nodes = nodes, .percent = percent }, mean,
	    worst);
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

/* Where demand is steady an active node makes two trips at most.  A node that is steady in other windows gets to
 * its demand in log steps. */
static void check_trips(void)
{
	struct service even = expect(EVEN, 7, 80, 0.99, 0.95);
	struct service zipf = expect(ZIPF, 30, 80, 0.99, 0.95);
	struct service straggle = expect(STRAGGLE, 7, 80, 0.99, 0.95);

	must(even.trips[ACTIVE] <= 2 && zipf.trips[ACTIVE] <= 2);
	must(straggle.trips[ACTIVE] <= 16);
}

static void expect_few_trips(struct demand demand)
{
	must(expect_of(demand, 0.99, 0.95).trips[ACTIVE] <= 2);
}

static void expect_few_trips_of_all(uint32_t nodes)
{
	static const uint64_t windows[] = { GALE_SECONDS(1), GALE_MILLIS(100),
		                            GALE_MINUTES(1) };
	struct demand demand = { .nodes = nodes, .percent = 80 };

	for (size_t w = 0; w < sizeof(windows) / sizeof(*windows); w++) {
		demand.window_us = windows[w];
		for (demand.shape = EVEN; demand.shape <= ZIPF; demand.shape++) {
			demand.cost_most = 1;
			expect_few_trips(demand);
			demand.cost_most = 100;
			expect_few_trips(demand);
		}
	}
}

/* Most nodes of a large fleet have a few calls in a window: each of them finds what the one before left
 * (BORROW-7), none is preceded by an ask for a part of it (BORROW-8), and what the fleet leaves at the
 * end of a window is not taken for too little (SIZER-10). */
static void check_trips_of_few_calls(void)
{
	uint64_t counted = measured;

	measured = LONG_OR_BRIEF(30, 8);
	if (LONG_OR_BRIEF(false, true)) {
		expect_few_trips(
		    (struct demand){ .shape = ZIPF, .nodes = 512, .percent = 80 });
		expect_few_trips((struct demand){ .shape = EVEN,
		                                  .nodes = 512,
		                                  .percent = 80,
		                                  .window_us = GALE_MINUTES(1),
		                                  .cost_most = 100 });
	} else {
		expect_few_trips_of_all(64);
		expect_few_trips_of_all(128);
		expect_few_trips_of_all(512);
	}
	measured = counted;
}

/* While a window turns its calls are admitted by units that were lent ahead of it. */
static void check_that_no_steady_caller_waits(void)
{
	static const uint32_t fleets[] = { 1, 7, 16 };
	struct demand demand = { .shape = EVEN, .percent = 80 };

	for (size_t i = 0; i < sizeof(fleets) / sizeof(*fleets); i++) {
		demand.nodes = fleets[i];
		must(expect_of(demand, 0.99, 0.95).waited <= 0.0001);
	}
	demand.nodes = 1;
	demand.window_us = GALE_MILLIS(100);
	demand.trip_us = 50;
	must(expect_of(demand, 0.99, 0.95).waited <= 0.0001);
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

/* Nodes that ask in one window and not in the next know how much they need only to within several
 * times: what one is lent too much of, another lacks.  (SIZER-8) */
static void check_lots(void)
{
	for (uint64_t lot = 2; lot < LONG_OR_BRIEF(12, 4); lot++) {
		struct demand demand = {
			.shape = LOT, .nodes = 7, .percent = 80, .lot = lot
		};

		must(expect_of(demand, 0.99, 0.95).nodes[IDLE] > 0);
		demand.nodes = 12;
		must(expect_of(demand, 0.99, 0.95).nodes[IDLE] > 0);
	}
}

/* One that was alone in the window before may have company in this one.  (SIZER-9) */
static void check_lots_beyond_the_limit(void)
{
	for (uint64_t lot = 1; lot < LONG_OR_BRIEF(8, 3); lot++) {
		struct demand demand = {
			.shape = LOT, .nodes = 7, .percent = 150, .lot = lot
		};

		expect_of(demand, 0.99, 0.95);
		demand.nodes = 8;
		expect_of(demand, 0.99, 0.95);
	}
}

/* What the first half of a large fleet gives back the other half asks for.  (BORROW-4) */
static void check_large_fleets(void)
{
	struct demand demand = { .shape = MIDDLE, .nodes = 128, .percent = 150 };

	demand.window_us = GALE_MILLIS(100);
	expect_of(demand, 0.99, 0.95);
	demand.nodes = 512;
	expect_of(demand, 0.99, 0.95);
	if (LONG_OR_BRIEF(false, true))
		return;
	demand.window_us = 0;
	expect_of(demand, 0.99, 0.95);
	demand.cost_most = 100;
	expect_of(demand, 0.99, 0.95);
}

static void check_windows_and_costs(void)
{
	struct demand demand = { .shape = LOT, .nodes = 8, .percent = 80 };

	demand.window_us = GALE_MINUTES(1);
	expect_of(demand, 0.99, 0.95);
	demand.percent = 150;
	expect_of(demand, 0.99, 0.95);
	demand.percent = 80;
	demand.window_us = GALE_MILLIS(100);
	expect_of(demand, 0.99, 0.95);
	demand.window_us = 0;
	demand.cost_most = 100;
	expect_of(demand, 0.99, 0.95);
	demand.shape = MIDDLE;
	demand.percent = 150;
	expect_of(demand, 0.99, 0.95);
}

/* Units in the hand of a node are lost with it: a fleet that needs all of the limit lacks them. */
static void check_frail(void)
{
	struct demand demand = {
		.shape = EVEN, .nodes = 16, .percent = 80, .is_frail = true
	};

	expect_of(demand, 0.99, 0.95);
	demand.percent = 150;
	expect_of(demand, 0.99, 0.95);
	demand.shape = LOT;
	demand.percent = 80;
	expect_of(demand, 0.99, 0.95);
}

/* Not all of them have what the tests here want: decision 25 says which do not. */
static void print_fleet(uint32_t nodes, uint64_t window_us, uint64_t cost_most)
{
	for (int shape = 0; shape < SHAPES; shape++)
		for (uint64_t percent = 80; percent <= 150; percent += 70)
			tell((struct demand){ .shape = (enum shape)shape,
			                      .nodes = nodes,
			                      .percent = percent,
			                      .window_us = window_us,
			                      .cost_most = cost_most });
}

static void print_all(const uint32_t *fleets, size_t count)
{
	static const uint64_t windows[] = { GALE_SECONDS(1), GALE_MILLIS(100),
		                            GALE_MINUTES(1) };
	static const uint64_t costs[] = { 1, 100 };

	for (size_t i = 0; i < count; i++)
		for (size_t w = 0; w < sizeof(windows) / sizeof(*windows); w++)
			for (size_t c = 0; c < sizeof(costs) / sizeof(*costs); c++)
				print_fleet(fleets[i], windows[w], costs[c]);
}

static void print_all_or(const char *nodes)
{
	static const uint32_t fleets[] = { 1, 8, 12, 16, 30, 64, 128, 512 };
	uint32_t only = nodes ? (uint32_t)strtoul(nodes, NULL, 10) : 0;

	must(only <= NODES_MOST);
	if (only > 0)
		print_all(&only, 1);
	else
		print_all(fleets, sizeof(fleets) / sizeof(*fleets));
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--table") == 0) {
		measured = TABLED;
		print_table(GALE_SECONDS(1), 80);
		print_table(GALE_SECONDS(1), 150);
		print_table(GALE_MILLIS(100), 80);
		return 0;
	}
	if (argc >= 2 && strcmp(argv[1], "--all") == 0) {
		print_all_or(argv[2]);
		return 0;
	}
	must(argc == 1);
	check_what_one_call_holds();
	check_trips();
	check_trips_of_few_calls();
	check_that_no_steady_caller_waits();
	check_the_rest();
	check_lots();
	check_lots_beyond_the_limit();
	check_large_fleets();
	check_windows_and_costs();
	check_frail();
	return 0;
}
