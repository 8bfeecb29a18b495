/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trilemma_test.c -- what no fleet can have at once, and where ours stands.
 *
 *     trilemma_test            checks the bound, and some fleets
 *     trilemma_test --table    measures fleets of up to 512 nodes; spec/trilemma.md
 *
 * N nodes that do not speak within a window may each admit up to a_i, whatever the others
 * meet.  If all of the demand comes to all of them, they admit too much by
 * D = sum a_i - L; if it comes to node i alone, U_i = L - a_i goes unused.  So
 *
 *     D + sum U_i = sum a_i - L + N L - sum a_i = (N - 1) L
 *
 * where no a_i is above L, and with U the largest U_i: D + N U >= (N - 1) L, which is
 * reached where all a_i are the same.  Only round trips in the window get around it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/world.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

/* ---- The bound ------------------------------------------------------------------- */

#define NODES_MOST 5

static uint64_t divisions, tight, even;

static void check_division(const uint64_t *shares, uint64_t nodes, uint64_t limit)
{
	uint64_t sum = 0, unused = 0, over;

	for (uint64_t i = 0; i < nodes; i++) {
		sum += shares[i];
		if (limit - shares[i] > unused)
			unused = limit - shares[i];
	}
	over = sum > limit ? sum - limit : 0;
	must(over + nodes * unused >= (nodes - 1) * limit);
	tight += over + nodes * unused == (nodes - 1) * limit;
	divisions++;
}

/* Every way to give each node between nothing and all. */
static void try_divisions(uint64_t *shares, uint64_t at, uint64_t nodes, uint64_t limit)
{
	if (at == nodes) {
		check_division(shares, nodes, limit);
		return;
	}
	for (shares[at] = 0; shares[at] <= limit; shares[at]++)
		try_divisions(shares, at + 1, nodes, limit);
}

/* It is reached: by the same share for each, from an even split to all for all; and, as there
 * are no more that do, by nothing else. */
static void check_tightness(uint64_t nodes, uint64_t limit)
{
	for (uint64_t share = (limit + nodes - 1) / nodes; share <= limit; share++) {
		uint64_t over = nodes * share - limit;

		must(over + nodes * (limit - share) == (nodes - 1) * limit);
		even++;
	}
}

static void check_bound(void)
{
	uint64_t shares[NODES_MOST];

	for (uint64_t nodes = 1; nodes <= NODES_MOST; nodes++)
		for (uint64_t limit = 1; limit <= 12; limit++) {
			try_divisions(shares, 0, nodes, limit);
			check_tightness(nodes, limit);
		}
	must(tight == even);
	printf("%" PRIu64 " divisions, %" PRIu64 " of them tight\n", divisions, tight);
}

/* ---- Fleets ---------------------------------------------------------------------- */

#define LIMIT 1000
#define BATCH 20
#define WINDOW GALE_SECONDS(1)
#define WARM                                                                           \
	40 /* windows, in which sizes are learned, and the cold start is forgotten */
#define MEASURED LONG_OR_BRIEF(64, 5) /* a key is taken for tight for 32 windows */
#define ROUND_TRIPS_MOST 1908         /* of a window: the predecessor's at 512 nodes */

enum way { STRICT, SPLIT, CARRIED, COUPLED, DEFAULT, WAYS };
static const char *const names[] = { "strict", "static split", "carry-over, batch 20",
	                             "coupled, batch 20", "gale's default" };

/* Who asks: all of them in turn, one that is drawn for each ask, or always the same. */
enum turns { IN_TURN, BY_LOT, ALONE };

struct load {
	uint32_t nodes;
	uint32_t tenths; /* of the limit, asked for in each window */
	enum turns turns;
};

/* Of the windows that were measured. */
struct place {
	uint64_t over;  /* the most that was admitted beyond the limit */
	uint64_t under; /* the most that was left, though it was wanted */
	double used;    /* of what could have been admitted, on average */
	double trips;   /* on average: requests to the store, returns included */
};

static struct world world;

static struct world_plan plan_of(enum way way, uint32_t nodes)
{
	struct world_plan plan = {
		.seed = 1,
		.rule = gale_fixed_window(LIMIT, WINDOW),
		.mode = GALE_LEASED,
		.net = { .mean_us = GALE_MILLIS(5) },
		.nodes = nodes,
		.seats = 1,
		.shards = 1,
		.keys = 1,
		.pending = 256,
		.offset_us = GALE_HOURS(1),
		.rate_ppm = 400,
	};

	if (way == STRICT)
		plan.strict = nodes;
	if (way == CARRIED || way == COUPLED)
		plan.lease =
		    (struct gale_leasing){ .sizing = GALE_SIZE_FIXED, .batch = BATCH };
	plan.lease.carry_over = way == CARRIED;
	return plan;
}

static uint64_t demand_of(const struct load *load)
{
	return (uint64_t)load->tenths * LIMIT / 10;
}

static uint64_t possible(const struct load *load)
{
	return demand_of(load) < LIMIT ? demand_of(load) : LIMIT;
}

static uint32_t next_node(const struct load *load, struct chance *lot, uint64_t ask)
{
	if (load->turns == ALONE)
		return 0;
	return (uint32_t)(load->turns == BY_LOT ? chance_below(lot, load->nodes)
	                                        : ask * 7919 % load->nodes);
}

static uint64_t trips_now(void)
{
	return world.net.requests + world.net.runs;
}

/* Asks come evenly; returns how often the store was asked in the windows that count. */
static uint64_t ask_steadily(const struct load *load)
{
	uint64_t demand = demand_of(load), trips = 0;
	struct chance lot = { 1 };

	for (uint64_t i = 0; i < (WARM + MEASURED) * demand && !world.fault[0]; i++) {
		if (i == WARM * demand)
			trips = trips_now();
		world_run(&world, WORLD_START + i * WINDOW / demand);
		world_ask(&world, next_node(load, &lot, i), 0, 0, 1);
	}
	trips = trips_now() - trips;
	world_run(&world, WORLD_START + (WARM + MEASURED) * WINDOW + WINDOW / 2);
	return trips;
}

static void add_window(struct place *place, const struct load *load, uint64_t used)
{
	uint64_t most = possible(load);

	if (used > LIMIT + place->over)
		place->over = used - LIMIT;
	if (used + place->under < most)
		place->under = most - used;
	place->used += (double)used / (double)(MEASURED * most);
}

static struct place measure(enum way way, const struct load *load)
{
	struct world_plan plan = plan_of(way, load->nodes);
	struct place place = { 0 };

	world_open(&world, &plan);
	place.trips = (double)ask_steadily(load) / MEASURED;
	for (size_t i = WARM; i < WARM + MEASURED; i++)
		add_window(&place, load, world_used(&world, 0, i));
	if (!world_close(&world)) {
		printf("%s\n", world.fault);
		must(false);
	}
	return place;
}

/* Of what each node has alone, nothing is asked of anybody. */
static struct place split(const struct load *load)
{
	uint64_t share = LIMIT / load->nodes;
	uint64_t used = load->turns == ALONE ? share : share * load->nodes;

	return (struct place){ .under = LIMIT - used, .used = (double)used / LIMIT };
}

/* ---- The tables ------------------------------------------------------------------ */

static void print_row(enum way way, uint32_t nodes)
{
	struct load all = { nodes, 40, BY_LOT }, one = { nodes, 40, ALONE };
	struct place many = way == SPLIT ? split(&all) : measure(way, &all);
	struct place alone = way == SPLIT ? split(&one) : measure(way, &one);

	printf("| %u | %s | %" PRIu64 " | %" PRIu64 " | %.3f | %.0f | %" PRIu64
	       " | %.3f | %.0f |\n",
	       nodes, names[way], many.over > alone.over ? many.over : alone.over,
	       many.under, many.used, many.trips, alone.under, alone.used, alone.trips);
	(void)fflush(stdout);
}

static void print_ways(void)
{
	static const uint32_t sizes[] = { 2, 8, 32, 128, 256, 512 };

	printf("| N | way | over | all ask: unused | used | round trips | "
	       "one asks: unused | used | round trips |\n"
	       "|--:|---|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (enum way way = STRICT; way < WAYS; way++)
			print_row(way, sizes[i]);
}

static void print_used(enum way way, uint32_t nodes, uint32_t tenths, enum turns turns)
{
	struct load load = { nodes, tenths, turns };
	struct place place = measure(way, &load);

	printf(" %.3f | %.0f |", place.used, place.trips);
	(void)fflush(stdout);
	must(place.over == 0);
}

static void print_demands(void)
{
	static const uint32_t tenths[] = { 5, 8, 10, 20, 40, 200 };
	static const uint32_t sizes[] = { 32, 128, 512 };

	printf(
	    "\n| N | demand, times L | batch 20 | round trips | default | round trips "
	    "| default, in turn | round trips |\n"
	    "|--:|--:|--:|--:|--:|--:|--:|--:|\n");
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++)
		for (size_t i = 0; i < sizeof(tenths) / sizeof(tenths[0]); i++) {
			printf("| %u | %.1f |", sizes[n], (double)tenths[i] / 10);
			print_used(COUPLED, sizes[n], tenths[i], BY_LOT);
			print_used(DEFAULT, sizes[n], tenths[i], BY_LOT);
			print_used(DEFAULT, sizes[n], tenths[i], IN_TURN);
			printf("\n");
		}
}

/* ---- What must hold -------------------------------------------------------------- */

static struct place check_fleet(enum way way, const struct load *load)
{
	struct place place = measure(way, load);

	printf("%s, %u nodes, %.1f times the limit, %s: %" PRIu64
	       " over, %.3f used, %.0f round trips\n",
	       names[way], load->nodes, (double)load->tenths / 10,
	       load->turns == BY_LOT ? "by lot" : "in turn", place.over, place.used,
	       place.trips);
	must(place.over == 0);
	return place;
}

static void check_default(uint32_t nodes, uint32_t tenths, enum turns turns)
{
	struct load load = { nodes, tenths, turns };
	struct place place = check_fleet(DEFAULT, &load);

	must(place.used >= 0.95);
	must(place.trips <= ROUND_TRIPS_MOST);
}

/* Where there is enough for all, two round trips are enough for each. */
static void check_steady(void)
{
	struct load load = { 8, 8, IN_TURN };

	must(check_fleet(DEFAULT, &load).trips <= 2 * load.nodes);
}

/* That much can be missed: where a batch is more than a node has demand for. */
static void check_batch(void)
{
	struct load load = { 512, 40, BY_LOT };

	must(check_fleet(COUPLED, &load).used < 0.5);
}

static void check_fleets(void)
{
	check_default(8, 40, BY_LOT);
	check_default(64, 40, BY_LOT);
	check_default(512, 10, BY_LOT);
	if (LONG_OR_BRIEF(true, false)) {
		check_default(512, 40, IN_TURN);
		check_default(512, 10, IN_TURN);
		check_default(512, 20, BY_LOT);
		check_default(512, 40, BY_LOT);
	}
	check_steady();
	check_batch();
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--table") == 0) {
		print_ways();
		print_demands();
		return 0;
	}
	if (argc != 1) {
		fprintf(stderr, "usage: %s [--table]\n", argv[0]);
		return 2;
	}
	check_bound();
	check_fleets();
	return 0;
}
