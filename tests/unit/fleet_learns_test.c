/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_learns_test.c -- guards of three nodes learn the ceiling of one backend, with default
 * terms and as they are shipped, by a clock that the test moves.  (H6)
 *
 *     calls by lot -> node -> guard -> queue (first come, first served) -> servers
 *
 * In each millisecond a server ends its call with a chance of 1 in the mean that work takes, so
 * all of them are busy with any limit above their number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <gale/guard.h>

#include "face/guard.h"
#include "sim/random.h"
#include "tests/support/clock.h"
#include "tests/support/must.h"

#define NODES 3
#define SERVERS 48
#define MEAN_MS 10
#define OFFERED                                                                        \
	20 /* calls a millisecond, less than that: twice what all servers can do */
#define CALLS_MOST 1000
#define OBJECTIVE_MEANS 10 /* a call that takes longer is of no use */
#define SETTLE_MS 30000
#define MEASURE_MS 60000
#define LEASE_MS 2500 /* the default */
#define START_US UINT64_C(1700000000000000)

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_guard *guard;
	struct gale_seat *seat;
};

struct call {
	struct gale_entry entry;
	uint32_t node;
	uint64_t came_ms;
};

struct world {
	struct test_clock clock;
	struct node nodes[NODES];
	struct chance chance;
	struct call calls[CALLS_MOST]; /* a ring: those that wait */
	uint64_t first, last;
	struct call served[SERVERS];
	bool busy[SERVERS];
	uint32_t servers; /* that work */
	uint32_t mean_ms;
	uint32_t in_flight;
	uint64_t ms;
	uint64_t good;                  /* ended soon enough */
	uint64_t most, most_before;     /* L, in this lease and in the last */
	uint64_t probe_ms, together_ms; /* a node probed; all did */
};

static void open_node(struct world *world, struct node *node)
{
	struct gale_config runtime = { .shards = 1,
		                       .turns = true,
		                       .clock = &world->clock.clock };
	struct gale_store_config store = { .url = "memory:backend" };
	struct gale_guard_config config = { .name = "backend", .start = 4 };

	must(gale_runtime_open(&runtime, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	config.store = node->store;
	must(gale_guard_open(node->runtime, &config, &node->guard) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void open_world(struct world *world)
{
	memset(world, 0, sizeof(*world));
	test_clock_init(&world->clock, START_US);
	test_clock_is_the_nodes(&world->clock);
	world->servers = SERVERS;
	world->mean_ms = MEAN_MS;
	for (uint32_t i = 0; i < NODES; i++)
		open_node(world, &world->nodes[i]);
}

static void end(struct world *world, struct call *call)
{
	gale_exit(world->nodes[call->node].seat, &call->entry, GALE_OK);
	world->in_flight--;
	if (world->ms - call->came_ms <= OBJECTIVE_MEANS * world->mean_ms)
		world->good++;
}

static int give_world(void **state)
{
	static struct world world;

	open_world(&world);
	*state = &world;
	return 0;
}

/* After a test that has failed, too: its nodes are members of the next one's group. */
static int close_world(void **state)
{
	struct world *world = *state;

	for (uint32_t i = 0; i < SERVERS; i++)
		if (world->busy[i])
			end(world, &world->served[i]);
	while (world->first < world->last)
		end(world, &world->calls[world->first++ % CALLS_MOST]);
	for (uint32_t i = 0; i < NODES; i++) {
		struct node *node = &world->nodes[i];

		gale_leave(node->seat);
		gale_guard_close(node->guard);
		gale_store_close(node->store);
		gale_runtime_close(node->runtime);
	}
	return 0;
}

/* ---- The backend ------------------------------------------------------------------ */

/* A server that works no more ends what it has. */
static void serve(struct world *world)
{
	for (uint32_t i = 0; i < SERVERS; i++) {
		if (world->busy[i] && chance_one_in(&world->chance, world->mean_ms)) {
			end(world, &world->served[i]);
			world->busy[i] = false;
		}
		if (world->busy[i] || i >= world->servers ||
		    world->first == world->last)
			continue;
		world->served[i] = world->calls[world->first++ % CALLS_MOST];
		world->busy[i] = true;
	}
}

/* ---- The fleet -------------------------------------------------------------------- */

/* As the store told its members: one of them made it what it is. */
static uint64_t limit_of(const struct world *world)
{
	uint64_t limit = 0;

	for (uint32_t i = 0; i < NODES; i++) {
		struct gale_guard_counts counts;

		must(gale_guard_stats(world->nodes[i].guard, &counts) == GALE_ERR_OK);
		if (limit < counts.fleet_limit)
			limit = counts.fleet_limit;
	}
	return limit;
}

static void note_limit(struct world *world)
{
	uint64_t limit = limit_of(world);

	if (world->ms % LEASE_MS == 0) {
		world->most_before = world->most;
		world->most = 0;
	}
	if (world->most < limit)
		world->most = limit;
}

/* H1: at most what L was in the last two leases. */
static void check_flight(const struct world *world)
{
	uint64_t most =
	    world->most > world->most_before ? world->most : world->most_before;

	assert_true(world->in_flight <= most);
}

static void note_probes(struct world *world)
{
	uint32_t probe = 0;

	for (uint32_t i = 0; i < NODES; i++)
		if (world->nodes[i].guard->guard.estimate.phase != ESTIMATE_STEADY)
			probe++;
	world->probe_ms += probe > 0;
	world->together_ms += probe == NODES;
}

static void offer(struct world *world)
{
	uint32_t node = (uint32_t)chance_below(&world->chance, NODES);
	struct gale_entry entry = gale_enter(world->nodes[node].seat,
	                                     world->nodes[node].guard, 1, GALE_NORMAL);

	if (entry.verdict != GALE_ALLOW)
		return;
	assert_true(world->last - world->first < CALLS_MOST);
	world->calls[world->last++ % CALLS_MOST] =
	    (struct call){ entry, node, world->ms };
	world->in_flight++;
	check_flight(world);
}

static void pass(struct world *world, uint64_t ms)
{
	for (uint64_t until = world->ms + ms; world->ms < until; world->ms++) {
		uint64_t calls = chance_below(&world->chance, OFFERED);

		test_clock_advance(&world->clock, GALE_MILLIS(1));
		serve(world);
		for (uint32_t i = 0; i < NODES; i++)
			(void)gale_turn(world->nodes[i].runtime);
		note_limit(world);
		note_probes(world);
		while (calls-- > 0)
			offer(world);
	}
}

/* ------------------------------------------------------------------------------------ */

struct seen {
	uint64_t permille; /* of what the servers can do */
	uint64_t limit;
	uint64_t probe_ms, together_ms;
};

static struct seen see(struct world *world, uint32_t servers, uint32_t mean_ms)
{
	struct seen seen;

	world->servers = servers;
	world->mean_ms = mean_ms;
	pass(world, SETTLE_MS);
	world->good = world->probe_ms = world->together_ms = 0;
	pass(world, MEASURE_MS);
	seen = (struct seen){
		.permille = world->good * 1000 * mean_ms / (servers * MEASURE_MS),
		.limit = limit_of(world),
		.probe_ms = world->probe_ms,
		.together_ms = world->together_ms,
	};
	print_message(
	    "%u servers, %u ms: %u / 1000, limit %u, probes %u ms, together %u\n",
	    servers, mean_ms, (unsigned)seen.permille, (unsigned)seen.limit,
	    (unsigned)seen.probe_ms, (unsigned)seen.together_ms);
	return seen;
}

/* Where one node probes alone, the queue of the others stays. */
static void is_learned(struct seen seen, uint32_t servers)
{
	assert_true(seen.permille >= 950);
	assert_true(seen.limit >= servers);
	assert_true(seen.limit <= 3 * servers);
	assert_true(seen.probe_ms > 0);
	assert_true(2 * seen.together_ms >= seen.probe_ms);
}

/* From 4 slots up, down when half of the servers is gone, and up again. */
static void a_ceiling_follows_the_servers(void **state)
{
	struct world *world = *state;
	struct seen all, half, again;

	all = see(world, SERVERS, MEAN_MS);
	half = see(world, SERVERS / 2, MEAN_MS);
	again = see(world, SERVERS, MEAN_MS);
	is_learned(all, SERVERS);
	is_learned(half, SERVERS / 2);
	is_learned(again, SERVERS);
	assert_true(4 * half.limit <= 3 * all.limit);
	assert_true(3 * again.limit >= 4 * half.limit);
}

/* As many slots are wanted as before.  That needs probes: a fleet that takes the longer round trip
 * for a queue has less and less in flight. */
static void work_that_takes_longer_is_no_queue(void **state)
{
	struct world *world = *state;

	is_learned(see(world, SERVERS, MEAN_MS), SERVERS);
	is_learned(see(world, SERVERS, 3 * MEAN_MS), SERVERS);
	is_learned(see(world, SERVERS, MEAN_MS), SERVERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, give_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ceiling_follows_the_servers),
		TEST(work_that_takes_longer_is_no_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
