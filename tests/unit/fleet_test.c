/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_test.c -- guards of several runtimes share a ceiling: each is a node, by a clock that
 * the test moves.
 *
 * A beat each 100 ms, leases of 500 ms, of which a beat is for the proof that they are over, and
 * 100 ms to abort: the fence is 300 ms after the last beat.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gale/guard.h>

#include "face/face.h"
#include "face/guard.h"
#include "stores/store.h"

#define NODES_MOST 4
#define CALLS_MOST 64
#define GROUPS 3000
#define START_US UINT64_C(1700000000000000)
#define STEP_US GALE_MILLIS(5)

struct fleet_clock {
	struct gale_clock clock; /* first */
	uint64_t us;
	uint64_t
	    stop_us; /* how long who asks for the time next is stopped then: a store */
};

static uint64_t now_us(struct gale_clock *self)
{
	struct fleet_clock *clock = (struct fleet_clock *)self;
	uint64_t us = clock->us;

	clock->us += clock->stop_us;
	clock->stop_us = 0;
	return us;
}

static uint64_t boot_ns(struct gale_clock *self)
{
	return (((struct fleet_clock *)self)->us - START_US) * 1000 + 1;
}

struct hook {
	struct gale_on_fenced hook; /* first */
	int fenced;
	bool is_late; /* a call that has entered, as it then finds */
};

static void on_fenced(struct gale_on_fenced *self, struct gale_guard *guard)
{
	struct hook *hook = (struct hook *)self;

	hook->fenced++;
	hook->is_late = turnstile_fenced(&guard->guard.turnstile, (mono){ 1 });
}

struct lines {
	struct gale_log log; /* first */
	char last[256];
};

static void keep_line(struct gale_log *self, enum gale_level level, const char *source,
                      const char *line)
{
	struct lines *lines = (struct lines *)self;

	(void)level;
	(void)source;
	strncpy(lines->last, line, sizeof(lines->last) - 1);
}

static uint64_t bytes_taken; /* by all that is open */

static void *take_bytes(struct gale_allocator *self, size_t bytes)
{
	(void)self;
	bytes_taken += bytes;
	return malloc(bytes);
}

static void give_bytes(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	bytes_taken -= bytes;
	free(memory);
}

static struct gale_allocator counting = { .alloc = take_bytes, .free = give_bytes };

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_guard *guard;
	struct gale_seat *seat;
	struct gale_entry calls[CALLS_MOST];
	uint32_t in_flight;
	struct hook hook;
	struct lines lines;
};

struct world {
	struct fleet_clock clock;
	struct node nodes[NODES_MOST];
	int count;
	struct store *late; /* the first node's, if it answers late */
	const struct store_ops *ops_before;
};

static struct gale_guard_config plan(uint32_t ceiling)
{
	return (struct gale_guard_config){ .name = "backend",
		                           .law = GALE_FIXED,
		                           .ceiling = ceiling,
		                           .beat_us = GALE_MILLIS(100),
		                           .lease_us = GALE_MILLIS(500),
		                           .abort_us = GALE_MILLIS(100) };
}

static void open_node(struct world *world, int n, struct gale_guard_config config)
{
	struct node *node = &world->nodes[n];
	struct gale_store_config store = { .url = "memory:backends" };
	struct gale_config runtime = { .shards = 1,
		                       .turns = true,
		                       .allocator = &counting,
		                       .clock = &world->clock.clock,
		                       .log = &node->lines.log };

	memset(node, 0, sizeof(*node));
	node->hook.hook.fenced = on_fenced;
	node->lines.log.write = keep_line;
	config.on_fenced = &node->hook.hook;
	assert_int_equal(gale_runtime_open(&runtime, &node->runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(node->runtime, &store, &node->store),
	                 GALE_ERR_OK);
	config.store = node->store;
	assert_int_equal(gale_guard_open(node->runtime, &config, &node->guard),
	                 GALE_ERR_OK);
	assert_int_equal(gale_join(node->runtime, &node->seat), GALE_ERR_OK);
}

static void open_world(struct world *world, int count, struct gale_guard_config config)
{
	memset(world, 0, sizeof(*world));
	world->clock = (struct fleet_clock){ { now_us, boot_ns }, START_US, 0 };
	world->count = count;
	for (int n = 0; n < count; n++)
		open_node(world, n, config);
}

static void exit_one(struct node *node)
{
	if (node->in_flight > 0)
		gale_exit(node->seat, &node->calls[--node->in_flight], GALE_OK);
}

static void close_node(struct node *node)
{
	while (node->in_flight > 0)
		exit_one(node);
	gale_leave(node->seat);
	gale_guard_close(node->guard);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	memset(node, 0, sizeof(*node));
}

static void close_guard(struct node *node)
{
	gale_guard_close(node->guard);
	node->guard = NULL;
}

static void close_world(struct world *world)
{
	for (int n = 0; n < world->count; n++) {
		if (world->nodes[n].runtime)
			close_node(&world->nodes[n]);
		if (n == 0 && world->late)
			world->late->ops = world->ops_before;
	}
	world->late = NULL;
}

static int give_world(void **state)
{
	static struct world world;

	memset(&world, 0, sizeof(world));
	*state = &world;
	return 0;
}

/* After a test that has failed, too: what it left open is a member of the next one's groups. */
static int take_world(void **state)
{
	close_world(*state);
	return 0;
}

static enum gale_why try_one(struct node *node)
{
	struct gale_entry entry;

	gale_tick(node->seat);
	entry = gale_enter(node->seat, node->guard, 1, GALE_NORMAL);
	if (entry.verdict == GALE_ALLOW && node->in_flight < CALLS_MOST)
		node->calls[node->in_flight++] = entry;
	return entry.why;
}

static uint32_t fill(struct node *node)
{
	while (node->in_flight < CALLS_MOST && try_one(node) == GALE_WHY_SLOT)
		continue;
	return node->in_flight;
}

static struct gale_guard_counts counts_of(struct node *node)
{
	struct gale_guard_counts counts;

	assert_int_equal(gale_guard_stats(node->guard, &counts), GALE_ERR_OK);
	return counts;
}

static void turn(struct node *node)
{
	for (int i = 0; i < 8; i++)
		(void)gale_turn(node->runtime);
}

static uint32_t in_flight(const struct world *world)
{
	uint32_t sum = 0;

	for (int n = 0; n < world->count; n++)
		sum += world->nodes[n].in_flight;
	return sum;
}

/* All nodes but those of the mask live on. */
static void pass(struct world *world, uint64_t us, unsigned without)
{
	uint64_t until = world->clock.us + us;

	while (world->clock.us < until) {
		world->clock.us += STEP_US;
		for (int n = 0; n < world->count; n++)
			if (world->nodes[n].runtime && !(without >> n & 1))
				turn(&world->nodes[n]);
	}
}

/* Until it has just beaten. */
static void pass_to_beat(struct world *world, struct node *node)
{
	uint64_t beats = counts_of(node).beats;

	while (counts_of(node).beats == beats)
		pass(world, STEP_US, 0);
}

/* ------------------------------------------------------------------------------------ */

/* FLEET-1: nothing enters before the first grant. */
static void a_node_alone_has_all_of_the_ceiling(void **state)
{
	struct world *world = *state;

	open_world(world, 1, plan(10));
	assert_int_equal(try_one(&world->nodes[0]), GALE_WHY_CUT_OFF);
	pass(world, GALE_MILLIS(10), 0);
	assert_int_equal(fill(&world->nodes[0]), 10);
	assert_int_equal(try_one(&world->nodes[0]), GALE_WHY_CEILING);
	assert_int_equal(counts_of(&world->nodes[0]).fleet_limit, 10);
}

static void nodes_that_want_all_have_equal_parts(void **state)
{
	struct world *world = *state;

	open_world(world, 3, plan(12));
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 3; n++) {
			exit_one(&world->nodes[n]);
			(void)fill(&world->nodes[n]);
			assert_true(in_flight(world) <= 12);
		}
		pass(world, GALE_MILLIS(20), 0);
	}
	for (int n = 0; n < 3; n++) {
		assert_int_equal(counts_of(&world->nodes[n]).share, 4);
		assert_int_equal(world->nodes[n].in_flight, 4);
		assert_int_equal(counts_of(&world->nodes[n]).fleet_nodes, 3);
	}
	assert_int_equal(try_one(&world->nodes[0]), GALE_WHY_SHARE);
}

static void what_one_node_leaves_is_another_ones(void **state)
{
	struct world *world = *state;

	open_world(world, 2, plan(12));
	for (int i = 0; i < 100; i++) {
		exit_one(&world->nodes[0]);
		(void)fill(&world->nodes[0]);
		pass(world, GALE_MILLIS(20), 0);
	}
	assert_int_equal(world->nodes[0].in_flight, 11);
	assert_int_equal(fill(&world->nodes[1]), 1);
}

/* H8: calls that take longer than the lease keep their slots. */
static void a_long_call_keeps_its_slot_while_its_node_beats(void **state)
{
	struct world *world = *state;

	open_world(world, 2, plan(4));
	pass(world, GALE_MILLIS(10), 2);
	assert_int_equal(fill(&world->nodes[0]), 4);
	for (int i = 0; i < 200; i++) {
		pass(world, GALE_MILLIS(20), 0);
		(void)fill(&world->nodes[1]);
		assert_true(in_flight(world) <= 4);
	}
	assert_int_equal(world->nodes[0].in_flight, 4);
	assert_int_equal(world->nodes[1].in_flight, 0);
	exit_one(&world->nodes[0]);
	exit_one(&world->nodes[0]);
	for (int i = 0; i < 40; i++) {
		pass(world, GALE_MILLIS(20), 0);
		(void)fill(&world->nodes[1]);
	}
	assert_int_equal(world->nodes[1].in_flight, 2);
}

/* FLEET-2 (law H5): with and without a turn of its coordinator. */
static void a_node_that_cannot_beat_fences_itself(void **state)
{
	struct world *world = *state;
	struct node *node = &world->nodes[0];

	open_world(world, 2, plan(6));
	pass(world, GALE_MILLIS(500), 0);
	pass_to_beat(world, node);
	assert_true(fill(node) > 0);
	exit_one(node);
	pass(world, GALE_MILLIS(250), 1);
	assert_int_equal(try_one(node), GALE_WHY_SLOT);
	exit_one(node);
	pass(world, GALE_MILLIS(50), 1); /* no turn, but the seats' clocks go on */
	assert_int_equal(try_one(node), GALE_WHY_CUT_OFF);
	assert_int_equal(counts_of(node).cut_off, 1);
	assert_int_equal(node->hook.fenced, 0);
}

/* A refusal reads no clock: while gale has no turn, it says what was so before the fence. */
static void a_refusal_is_late_with_its_reason_where_gale_has_no_turn(void **state)
{
	struct world *world = *state;
	struct node *node = &world->nodes[0];

	open_world(world, 2, plan(6));
	pass(world, GALE_MILLIS(500), 0);
	pass_to_beat(world, node);
	assert_true(fill(node) > 0);
	pass(world, GALE_MILLIS(350), 1);
	assert_int_equal(try_one(node), GALE_WHY_SHARE);
	assert_int_equal(counts_of(node).cut_off, 1);
	assert_int_equal(node->hook.fenced, 0);
	exit_one(node); /* a call that could begin does read it */
	assert_int_equal(try_one(node), GALE_WHY_CUT_OFF);
	turn(node);
	assert_int_equal(node->hook.fenced, 1);
}

/* A fence is an instant that the host's loop is woken for. */
static void the_host_is_told_of_the_fence(void **state)
{
	struct world *world = *state;
	struct node *node = &world->nodes[0];
	uint64_t before;

	open_world(world, 1, plan(6));
	pass(world, GALE_MILLIS(500), 0);
	pass_to_beat(world, node);
	before = counts_of(node).beats;
	world->clock.us += GALE_MILLIS(300);
	turn(node);
	assert_int_equal(node->hook.fenced, 1);
	assert_true(node->hook.is_late); /* FLEET-2 */
	assert_int_equal(counts_of(node).fences, 1);
	/* It was not dead: its next beat, in the same turns, was answered. */
	assert_true(counts_of(node).beats > before);
	assert_int_equal(counts_of(node).cut_off, 0);
	assert_int_equal(fill(node), 6);
}

static void slots_of_a_dead_node_come_back_after_its_lease(void **state)
{
	struct world *world = *state;
	uint64_t died, waited;

	open_world(world, 2, plan(8));
	for (int i = 0; i < 60; i++) {
		for (int n = 0; n < 2; n++) {
			exit_one(&world->nodes[n]);
			(void)fill(&world->nodes[n]);
		}
		pass(world, GALE_MILLIS(20), 0);
	}
	assert_int_equal(world->nodes[1].in_flight, 4);
	died =
	    world->clock
		.us; /* its calls end within abort_us, which is less than the lease */
	while (fill(&world->nodes[0]) < 8 && world->clock.us < died + GALE_SECONDS(5)) {
		pass(world, STEP_US, 2);
		assert_true(world->nodes[0].in_flight == 4 ||
		            world->clock.us - died > GALE_MILLIS(250));
	}
	waited = world->clock.us - died;
	/* The lease and a tenth; the last beat may have been just then. */
	assert_true(waited <= GALE_MILLIS(550) + STEP_US);
}

/* FLEET-3 (law H2) */
static void a_guard_that_is_closed_leaves_when_its_calls_have_ended(void **state)
{
	struct world *world = *state;
	struct node *leaver = &world->nodes[0];

	open_world(world, 2, plan(6));
	pass(world, GALE_MILLIS(10), 2);
	assert_int_equal(fill(leaver), 6);
	pass(world, GALE_MILLIS(100), 0);
	close_guard(leaver);
	for (int i = 0; i < 100; i++) {
		pass(world, GALE_MILLIS(20), 0);
		(void)fill(&world->nodes[1]);
		assert_true(in_flight(world) <= 6);
	}
	assert_int_equal(world->nodes[1].in_flight, 0);
	while (leaver->in_flight > 0)
		exit_one(leaver);
	for (int i = 0; i < 40; i++) {
		pass(world, GALE_MILLIS(20), 0);
		(void)fill(&world->nodes[1]);
	}
	assert_int_equal(world->nodes[1].in_flight, 6);
	assert_int_equal(counts_of(&world->nodes[1]).fleet_nodes, 1);
}

/* FLEET-5: a thread may be in gale_enter while its runtime is closed. */
static void a_guard_that_leaves_lets_nothing_in(void **state)
{
	enum gale_why before, after;
	struct world *world = *state;
	struct node *node = &world->nodes[0];
	bool left;

	open_world(world, 1, plan(6));
	pass(world, GALE_SECONDS(1), 0);
	before = try_one(node);
	left =
	    guard_leaves(&node->guard->guard, (mono){ boot_ns(&world->clock.clock) });
	after = try_one(node);
	assert_int_equal(before, GALE_WHY_SLOT);
	assert_false(left);
	assert_int_equal(after, GALE_WHY_SHARE);
}

/* At once, and not when it would have been looked at. */
static void a_guard_that_has_left_is_dropped(void **state)
{
	struct world *world = *state;
	struct node *node = &world->nodes[0];
	uint64_t before;

	open_world(world, 1, plan(6));
	pass(world, GALE_SECONDS(2), 0);
	before = bytes_taken;
	close_guard(node);
	turn(node);
	assert_true(before - bytes_taken >=
	            sizeof(struct turnstile_cell) + sizeof(struct fleet));
	close_world(world);
	assert_int_equal(bytes_taken, 0);
}

/* At once, and not when a lease is over. */
static void a_runtime_that_is_closed_leaves(void **state)
{
	struct world *world = *state;

	open_world(world, 2, plan(6));
	for (int i = 0; i < 30; i++) {
		(void)fill(&world->nodes[1]);
		pass(world, GALE_MILLIS(20), 0);
	}
	close_node(&world->nodes[0]);
	pass(world, GALE_MILLIS(220), 0);
	assert_int_equal(fill(&world->nodes[1]), 6);
	assert_int_equal(counts_of(&world->nodes[1]).fleet_nodes, 1);
}

static void the_second_node_of_a_name_is_refused_and_told(void **state)
{
	struct gale_guard_config config = plan(6);
	struct world *world = *state;

	config.node = "twin";
	open_world(world, 2, config);
	pass(world, GALE_SECONDS(2), 0);
	assert_int_equal(
	    counts_of(&world->nodes[0]).share + counts_of(&world->nodes[1]).share, 6);
	assert_int_equal(try_one(&world->nodes[counts_of(&world->nodes[0]).share > 0]),
	                 GALE_WHY_CUT_OFF);
	assert_non_null(
	    strstr(world->nodes[counts_of(&world->nodes[0]).share > 0].lines.last,
	           "give each node a name of its own"));
	/* The first one is gone: the second has the name. */
	close_node(&world->nodes[counts_of(&world->nodes[0]).share == 0]);
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(
	    counts_of(&world->nodes[world->nodes[0].runtime == NULL]).share, 6);
}

/* H2: the new guard has the old one's name, and waits for its calls. */
static void a_guard_that_is_opened_again_waits_for_calls_of_before(void **state)
{
	struct gale_guard_config config = plan(6);
	struct world *world = *state;
	struct node *node = &world->nodes[0];
	struct gale_entry old;
	enum gale_why meanwhile, after;
	bool said;

	config.node = "me";
	open_world(world, 1, config);
	pass(world, GALE_SECONDS(1), 0);
	(void)try_one(node);
	old = node->calls[--node->in_flight];
	gale_guard_close(node->guard);
	config.store = node->store;
	assert_int_equal(gale_guard_open(node->runtime, &config, &node->guard),
	                 GALE_ERR_OK);
	pass(world, GALE_SECONDS(2), 0);
	meanwhile = try_one(node);
	said =
	    strstr(node->lines.last, "a guard of before with calls in flight") != NULL;
	gale_exit(node->seat, &old, GALE_OK);
	pass(world, GALE_SECONDS(1), 0);
	after = try_one(node);
	assert_int_equal(meanwhile, GALE_WHY_CUT_OFF);
	assert_true(said);
	assert_int_equal(after, GALE_WHY_SLOT);
}

/* FLEET-6 */
static void a_runtime_that_is_closed_under_calls_tells_its_host(void **state)
{
	struct world *world = *state;
	struct node *node = &world->nodes[0];

	open_world(world, 1, plan(6));
	pass(world, GALE_MILLIS(500), 0);
	assert_int_equal(fill(node), 6);
	gale_runtime_close(node->runtime);
	node->runtime = NULL;
	for (; node->in_flight > 0; node->in_flight--)
		gale_exit(node->seat, &node->calls[node->in_flight - 1], GALE_DROPPED);
	gale_leave(node->seat);
	gale_guard_close(node->guard);
	gale_store_close(node->store);
	assert_int_equal(node->hook.fenced, 1);
}

/* Calls of several slots, one after the other; how many of them entered. */
static int enter_wide(struct world *world, uint32_t slots, int calls)
{
	struct node *node = &world->nodes[0];
	int entered = 0;

	for (int i = 0; i < calls; i++) {
		struct gale_entry entry;

		gale_tick(node->seat);
		entry = gale_enter(node->seat, node->guard, slots, GALE_NORMAL);
		entered += entry.verdict == GALE_ALLOW;
		gale_exit(node->seat, &entry, GALE_OK);
		pass(world, GALE_MILLIS(20), 0);
	}
	return entered;
}

/* A node's even part of 6 is 2, and a call of 3 is no larger than a call may be.  The share
 * grows, as such a call counts as one that the share refused. */
static void a_wide_call_enters_where_the_fleet_is_idle(void **state)
{
	struct world *world = *state;
	int entered;

	open_world(world, 3, plan(6));
	pass(world, GALE_SECONDS(2), 0);
	entered = enter_wide(world, 3, 200);
	assert_in_range(entered, 190, 200);
}

/* Eight calls of four slots at a time, each so ended; how many entered. */
static int work_wide(struct world *world, int times, enum gale_outcome outcome)
{
	struct node *node = &world->nodes[0];
	int entered = 0;

	for (int i = 0; i < times; i++) {
		struct gale_entry entries[8];

		gale_tick(node->seat);
		for (int j = 0; j < 8; j++) {
			entries[j] =
			    gale_enter(node->seat, node->guard, 4, GALE_NORMAL);
			entered += entries[j].verdict == GALE_ALLOW;
		}
		world->clock.us += GALE_MILLIS(10);
		gale_tick(node->seat);
		for (int j = 0; j < 8; j++)
			gale_exit(node->seat, &entries[j], outcome);
		for (int n = 0; n < world->count; n++)
			turn(&world->nodes[n]);
	}
	return entered;
}

/* Drops lower the limit below what one call wants.  Then no call would ever be answered.
 * ESTIMATE-7 */
static void come_back(struct world *world, enum gale_law law, int nodes)
{
	struct gale_guard_config config = plan(0);
	uint64_t limit;
	int well, again;

	config.law = law;
	open_world(world, nodes, config);
	pass(world, GALE_SECONDS(1), 0);
	well = work_wide(world, 1000, GALE_OK);
	(void)work_wide(world, 3000, GALE_DROPPED);
	limit = counts_of(&world->nodes[0]).limit;
	again = work_wide(world, 3000, GALE_OK);
	assert_in_range(limit, 1, 8); /* half of it is no more than such a call */
	assert_in_range(again, 2 * well, UINT32_MAX);
	close_world(world);
}

static void wide_calls_come_back_after_an_incident(void **state)
{
	for (int nodes = 1; nodes <= 3; nodes += 2) {
		come_back(*state, GALE_KNEE, nodes);
		come_back(*state, GALE_AIMD, nodes);
		come_back(*state, GALE_GRADIENT, nodes);
	}
}

static void a_full_store_is_said_once(void **state)
{
	struct gale_store_config full = { .url = "memory:full", .max_keys = 2 };
	struct gale_guard_config config = plan(6);
	struct gale_guard *first, *second;
	struct gale_store *store;
	struct world *world = *state;
	struct node *node = &world->nodes[0];
	bool said, said_again;

	open_world(world, 1, plan(6));
	assert_int_equal(gale_store_open(node->runtime, &full, &store), GALE_ERR_OK);
	config.store = store;
	config.name = "first";
	assert_int_equal(gale_guard_open(node->runtime, &config, &first), GALE_ERR_OK);
	pass(world, GALE_SECONDS(1), 0);
	config.name = "second";
	assert_int_equal(gale_guard_open(node->runtime, &config, &second), GALE_ERR_OK);
	pass(world, GALE_SECONDS(1), 0);
	said = strstr(node->lines.last, "the store is full") != NULL;
	memset(node->lines.last, 0, sizeof(node->lines.last));
	pass(world, GALE_SECONDS(1), 0);
	said_again = node->lines.last[0] != 0;
	gale_guard_close(first);
	gale_guard_close(second);
	gale_store_close(store);
	assert_true(said);
	assert_false(said_again);
}

static void settings_that_disagree_are_refused_and_said(void **state)
{
	struct world *world = *state;

	open_world(world, 1, plan(6));
	pass(world, GALE_MILLIS(100), 0);
	world->count = 2;
	open_node(world, 1, plan(7));
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(try_one(&world->nodes[1]), GALE_WHY_CUT_OFF);
	assert_non_null(strstr(world->nodes[1].lines.last, "other settings"));
	assert_int_equal(counts_of(&world->nodes[0]).share, 6);
}

/* All that must be the same is named, of_estimates too. */
/* Their ceilings are found alike, from estimates. */
static void laws_that_estimate_are_told_apart(void **state)
{
	struct gale_guard_config config = plan(6);
	struct world *world = *state;
	enum gale_why why;
	bool said;

	config.law = GALE_AIMD;
	open_world(world, 1, config);
	pass(world, GALE_MILLIS(100), 0);
	world->count = 2;
	config.law = GALE_GRADIENT;
	open_node(world, 1, config);
	pass(world, GALE_SECONDS(1), 0);
	why = try_one(&world->nodes[1]);
	said = strstr(world->nodes[1].lines.last, "other settings") != NULL;
	assert_int_equal(why, GALE_WHY_CUT_OFF);
	assert_true(said);
}

static void what_must_be_the_same_is_named(void **state)
{
	struct gale_guard_config config = plan(6);
	struct world *world = *state;

	config.law = GALE_AIMD;
	open_world(world, 1, config);
	pass(world, GALE_MILLIS(100), 0);
	world->count = 2;
	config.of_estimates = GALE_LEAST;
	open_node(world, 1, config);
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(try_one(&world->nodes[1]), GALE_WHY_CUT_OFF);
	assert_non_null(strstr(world->nodes[1].lines.last,
	                       "law, start, floor, ceiling, beat, lease, parts and "
	                       "of_estimates"));
}

/* A store that answers in the turn after the asking, as servers do, and for which the node is
 * stopped before the answer comes. */
static struct {
	struct store_ops ops;
	struct store_call *call;
	struct fleet_clock *clock;
	uint64_t stop_us;
} late;

static struct store_desk *enter_late(struct store *self, struct store_home *home)
{
	(void)home;
	return (struct store_desk *)self;
}

static void begin_late(const struct store_client *client, struct store_call *call)
{
	(void)client;
	late.call = call;
}

static mono turn_late(const struct store_client *client, mono now)
{
	struct store_call *call = late.call;

	(void)now;
	late.call = NULL;
	if (!call)
		return (mono){ UINT64_MAX };
	late.clock->us += late.stop_us;
	late.stop_us = 0;
	store_finish(client->home, call,
	             store_run(client->store, call->op, /* patient= */ true));
	return (mono){ UINT64_MAX };
}

static bool is_idle_late(const struct store_client *client)
{
	(void)client;
	return !late.call;
}

static void leave_late(const struct store_client *client)
{
	(void)client;
}

/* What opens from now on. */
static void be_late(struct world *world)
{
	struct store *store = world->nodes[0].store->inner;

	world->late = store;
	world->ops_before = store->ops;
	late.ops = *store->ops;
	late.ops.enter = enter_late;
	late.ops.begin = begin_late;
	late.ops.turn = turn_late;
	late.ops.is_idle = is_idle_late;
	late.ops.leave = leave_late;
	late.call = NULL;
	late.clock = &world->clock;
	late.stop_us = 0;
	store->ops = &late.ops;
}

/* The other node has just died, and this one is stopped between its report and the answer. */
static void stop_in_a_beat(struct world *world, uint64_t *stop_us)
{
	struct node *node = &world->nodes[0];
	uint64_t sent;

	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(fill(node), 6);
	pass_to_beat(world, &world->nodes[1]);
	sent = world->clock.us += GALE_MILLIS(100);
	*stop_us = GALE_MILLIS(80);
	turn(node);
	assert_int_equal(world->clock.us, sent + GALE_MILLIS(80));
	while (fill(node) == 6)
		pass(world, STEP_US, 1U << 1);
	assert_true(world->clock.us >= sent + GALE_MILLIS(480));
	assert_int_equal(fill(node), 12);
}

static struct gale_guard_config even_plan(void)
{
	struct gale_guard_config even = plan(12);

	even.parts = GALE_BY_WEIGHT;
	return even;
}

/* MEMBER-8: a lease after the report was sent the dead one's is not over yet: others may have
 * reported while the node was stopped. */
static void a_lease_is_over_so_long_after_the_answer(void **state)
{
	struct world *world = *state;

	open_world(world, 2, even_plan());
	stop_in_a_beat(world, &world->clock.stop_us);
}

static void a_lease_is_over_so_long_after_a_servers_answer(void **state)
{
	struct world *world = *state;

	open_world(world, 2, even_plan());
	turn(&world->nodes[1]);
	be_late(world);
	stop_in_a_beat(world, &late.stop_us);
}

static void a_node_may_go_on_alone_where_it_is_told_to(void **state)
{
	struct gale_guard_config config = plan(6);
	struct world *world = *state;

	config.on_cut_off = GALE_ON_CUT_OFF_OWN;
	open_world(world, 1, config);
	assert_int_equal(try_one(&world->nodes[0]), GALE_WHY_SLOT);
	exit_one(&world->nodes[0]);
	pass(world, GALE_MILLIS(100), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(try_one(&world->nodes[0]), GALE_WHY_SLOT);
	world->clock.us += GALE_MILLIS(450);
	turn(&world->nodes[0]);
	assert_int_equal(fill(&world->nodes[0]), 6);
}

/* A node that goes on alone holds what it has in flight, and not all that it might have. */
static void
a_joiner_that_goes_on_alone_takes_no_slots_that_it_does_not_use(void **state)
{
	struct gale_guard_config config = plan(12);
	struct world *world = *state;

	config.on_cut_off = GALE_ON_CUT_OFF_OWN;
	open_world(world, 1, config);
	pass(world, GALE_MILLIS(100), 0);
	assert_int_equal(fill(&world->nodes[0]), 12);
	world->count = 2;
	open_node(world, 1, config);
	for (int i = 0; i < 100; i++) {
		exit_one(&world->nodes[0]);
		(void)fill(&world->nodes[0]);
		pass(world, STEP_US, 0);
		assert_true(counts_of(&world->nodes[0]).share >= 11);
	}
	assert_int_equal(counts_of(&world->nodes[1]).cut_off, 0);
}

/* FLEET-4 */
static void a_node_that_observes_takes_no_slots_above_its_share(void **state)
{
	struct gale_guard_config observing = plan(12);
	struct world *world = *state;
	struct node *observer = &world->nodes[0], *other = &world->nodes[1];

	observing.observe = true;
	open_world(world, 1, observing);
	pass(world, GALE_MILLIS(100), 0);
	while (observer->in_flight < 40)
		(void)try_one(observer);
	world->count = 2;
	open_node(world, 1, plan(12));
	for (int i = 0; i < 100; i++) {
		exit_one(observer);
		(void)try_one(observer);
		exit_one(other);
		(void)fill(other);
		pass(world, GALE_MILLIS(20), 0);
	}
	assert_int_equal(counts_of(observer).in_flight, 40);
	assert_int_equal(counts_of(observer).share, 6);
	assert_int_equal(counts_of(other).share, 6);
	assert_int_equal(other->in_flight, 6);
	assert_int_equal(counts_of(other).fleet_in_flight, 12);
}

static void groups_of_different_names_have_nothing_in_common(void **state)
{
	struct gale_guard_config other = plan(5);
	struct world *world = *state;

	open_world(world, 1, plan(6));
	world->count = 2;
	other.name = "other";
	open_node(world, 1, other);
	pass(world, GALE_MILLIS(200), 0);
	assert_int_equal(fill(&world->nodes[0]), 6);
	assert_int_equal(fill(&world->nodes[1]), 5);
}

static void weights_part_the_ceiling(void **state)
{
	struct gale_guard_config config = plan(12);
	struct world *world = *state;

	config.parts = GALE_BY_WEIGHT;
	open_world(world, 1, config);
	world->count = 2;
	config.weight = 3;
	open_node(world, 1, config);
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(fill(&world->nodes[0]), 3);
	assert_int_equal(fill(&world->nodes[1]), 9);
}

/* A step at a time it has all of its share at work, wants more, and ends what it has begun. */
static void work(struct world *world, struct node *node, uint64_t us)
{
	for (uint64_t i = 0; i < us / STEP_US; i++) {
		(void)fill(node);
		pass(world, STEP_US, 0);
		while (node->in_flight > 0)
			exit_one(node);
	}
}

/* It starts at 4, and the other one has learned more.  ESTIMATE-6 */
static void a_joiner_that_has_learned_nothing_lowers_no_ceiling(void **state)
{
	struct gale_guard_config config = plan(60);
	struct world *world = *state;
	uint64_t learned;

	config.law = GALE_AIMD;
	config.start = 4;
	open_world(world, 1, config);
	work(world, &world->nodes[0], GALE_SECONDS(5));
	learned = counts_of(&world->nodes[0]).fleet_limit;
	assert_true(learned >= 12);
	world->count = 2;
	open_node(world, 1, config);
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(counts_of(&world->nodes[1]).fleet_nodes, 2);
	assert_true(counts_of(&world->nodes[0]).fleet_limit >= learned);
	work(world, &world->nodes[1], GALE_SECONDS(1));
	assert_true(counts_of(&world->nodes[0]).fleet_limit >= learned);
}

/* ---- Nudges ----------------------------------------------------------------------- */

/* A beat takes 500 of what turns the tests make in a second: what happens sooner is for no beat
 * that was due. */
static struct gale_guard_config slow_plan(enum gale_parts parts)
{
	struct gale_guard_config config = plan(12);

	config.parts = parts;
	config.beat_us = GALE_SECONDS(50);
	config.lease_us = GALE_SECONDS(200);
	config.abort_us = GALE_SECONDS(10);
	return config;
}

/* All have rested from their early beats. */
static void open_slow(struct world *world, struct gale_guard_config config)
{
	open_world(world, 1, config);
	pass(world, GALE_SECONDS(20), 0);
	assert_int_equal(counts_of(&world->nodes[0]).share, 12);
	world->count = 2;
}

/* The joiner asks, the other one is granted less, and says that it has applied that, and the
 * joiner asks again: nobody waits. */
static void a_joiner_has_its_part_before_anybody_beats_by_itself(void **state)
{
	struct gale_guard_config config = slow_plan(GALE_BY_WEIGHT);
	struct world *world = *state;
	uint64_t before;

	open_slow(world, config);
	before = counts_of(&world->nodes[0]).beats;
	open_node(world, 1, config);
	pass(world, 4 * STEP_US, 0);
	assert_int_equal(counts_of(&world->nodes[0]).share, 6);
	assert_int_equal(counts_of(&world->nodes[1]).share, 6);
	assert_int_equal(counts_of(&world->nodes[0]).beats, before + 2);
	assert_in_range(counts_of(&world->nodes[1]).beats, 2, 4);
}

/* GROUP-13: the lower share is in force before it is reported. */
static void a_node_that_is_nudged_lowers_its_share_at_once(void **state)
{
	const struct group_nudge give = { GROUP_GIVE, 4, 1 };
	struct world *world = *state;
	struct node *node = &world->nodes[0];

	open_world(world, 1, plan(10));
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(fill(node), 10);
	assert_int_equal(try_one(node), GALE_WHY_CEILING);
	guard_nudged(&node->guard->guard, (mono){ boot_ns(&world->clock.clock) },
	             &give);
	assert_int_equal(counts_of(node).limit, 4);
	exit_one(node);
	assert_int_equal(try_one(node), GALE_WHY_SHARE);
	pass(world, STEP_US, 0); /* the store knows of no other node */
	assert_int_equal(counts_of(node).limit, 10);
}

/* By demand, too, once it has refused calls. */
static void a_joiner_that_needs_more_gets_it(void **state)
{
	struct gale_guard_config config = slow_plan(GALE_BY_DEMAND);
	struct world *world = *state;

	open_slow(world, config);
	assert_int_equal(fill(&world->nodes[0]), 12);
	open_node(world, 1, config);
	for (int i = 0; i < 400; i++) { /* 8 s of 50 */
		exit_one(&world->nodes[0]);
		(void)fill(&world->nodes[0]);
		(void)fill(&world->nodes[1]);
		assert_true(in_flight(world) <= 12);
		pass(world, GALE_MILLIS(20), 0);
	}
	assert_in_range(counts_of(&world->nodes[1]).share, 5, 7);
}

/* No exit says that the drain is over, and yet nobody waits for a beat. */
static void the_end_of_a_drain_is_reported(void **state)
{
	struct gale_guard_config config = slow_plan(GALE_BY_WEIGHT);
	struct world *world = *state;

	open_slow(world, config);
	assert_int_equal(fill(&world->nodes[0]), 12);
	open_node(world, 1, config);
	pass(world, GALE_SECONDS(6), 0);
	assert_int_equal(counts_of(&world->nodes[0]).share, 6);
	assert_int_equal(counts_of(&world->nodes[1]).share, 0);
	while (world->nodes[0].in_flight > 6)
		exit_one(&world->nodes[0]);
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(counts_of(&world->nodes[1]).share, 6);
}

static void where_nothing_changes_nobody_beats_early(void **state)
{
	struct world *world = *state;
	uint64_t before[3];

	open_world(world, 3, plan(12));
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 3; n++) {
			exit_one(&world->nodes[n]);
			(void)fill(&world->nodes[n]);
		}
		if (i == 50)
			for (int n = 0; n < 3; n++)
				before[n] = counts_of(&world->nodes[n]).beats;
		pass(world, GALE_MILLIS(20), 0);
	}
	for (int n = 0; n < 3; n++) /* in a second */
		assert_in_range(counts_of(&world->nodes[n]).beats - before[n], 8, 10);
}

/* All beat by one client, and each has its share after one turn. */
static void thousands_of_groups_beat_at_one_store(void **state)
{
	static struct gale_guard *guards[GROUPS];
	struct gale_guard_config config = plan(3);
	struct gale_guard_counts counts;
	struct gale_entry entry;
	struct world *world = *state;
	char name[32];

	open_world(world, 1, plan(6));
	config.store = world->nodes[0].store;
	for (int i = 0; i < GROUPS; i++) {
		(void)snprintf(name, sizeof(name), "backend {%d}\n: %d", i, i);
		config.name = name;
		assert_int_equal(
		    gale_guard_open(world->nodes[0].runtime, &config, &guards[i]),
		    GALE_ERR_OK);
	}
	pass(world, GALE_SECONDS(1), 0);
	gale_tick(world->nodes[0].seat);
	for (int i = 0; i < GROUPS; i++) {
		entry = gale_enter(world->nodes[0].seat, guards[i], 1, GALE_NORMAL);
		assert_int_equal(entry.verdict, GALE_ALLOW);
		assert_int_equal(entry.limit, 3);
		gale_exit(world->nodes[0].seat, &entry, GALE_OK);
		assert_int_equal(gale_guard_stats(guards[i], &counts), GALE_ERR_OK);
		assert_int_equal(counts.in_flight, 0);
		gale_guard_close(guards[i]);
	}
	pass(world, GALE_SECONDS(1), 0);
	assert_int_equal(fill(&world->nodes[0]), 6);
}

/* ---- Anything at any time --------------------------------------------------------- */

#define LIMIT 10
#define STEPS 1500
#define NODES 4
#define SEEDS 6

/* A node whose coordinator is stalled now and then, and whose guards come and go. */
struct wild {
	uint64_t stalled_until_us, turned_us;
	uint64_t ends_us; /* when its calls are aborted; 0: they are not */
	struct gale_entry left[CALLS_MOST]; /* calls of guards that are closed */
	uint32_t left_count;
};

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void end_left(struct node *node, struct wild *wild)
{
	while (wild->left_count > 0)
		gale_exit(node->seat, &wild->left[--wild->left_count], GALE_DROPPED);
}

static void end_all(struct node *node, struct wild *wild)
{
	while (node->in_flight > 0)
		exit_one(node);
	end_left(node, wild);
}

static void reopen_guard(struct node *node, struct wild *wild)
{
	struct gale_guard_config config = plan(LIMIT);

	if (counts_of(node).cut_off)
		end_all(node, wild);
	end_left(node, wild);
	memcpy(wild->left, node->calls, sizeof(wild->left));
	wild->left_count = node->in_flight;
	node->in_flight = 0;
	gale_guard_close(node->guard);
	config.store = node->store;
	config.on_fenced = &node->hook.hook;
	assert_int_equal(gale_guard_open(node->runtime, &config, &node->guard),
	                 GALE_ERR_OK);
}

/* Closing waits for early beats, and for them time must pass: for the others it stalls. */
static void reopen_node(struct world *world, int n, struct wild *wild)
{
	end_all(&world->nodes[n], wild);
	world->clock.us += GALE_MILLIS(10);
	close_node(&world->nodes[n]);
	open_node(world, n, plan(LIMIT));
	*wild = (struct wild){ .turned_us = world->clock.us };
}

/* What is in flight at a node that is cut off ends within 100 ms; a guard that is closed does
 * not say that it is, so its calls end before it can be. */
static void abort_calls(struct world *world, int n, struct wild *wild)
{
	struct node *node = &world->nodes[n];
	uint64_t now = world->clock.us;

	if (wild->ends_us == 0 && counts_of(node).cut_off && node->in_flight > 0)
		wild->ends_us = now + GALE_MILLIS(50);
	if (wild->ends_us > 0 && now >= wild->ends_us) {
		end_all(node, wild);
		wild->ends_us = 0;
	}
	if (now - wild->turned_us >= GALE_MILLIS(150))
		end_left(node, wild);
}

static void step_node(struct world *world, int n, struct wild *wild, uint64_t *seed)
{
	struct node *node = &world->nodes[n];
	uint64_t now = world->clock.us, lot = draw(seed) % 1000;

	abort_calls(world, n, wild);
	if (lot < 8)
		wild->stalled_until_us = now + GALE_MILLIS(draw(seed) % 900);
	else if (lot < 14)
		reopen_guard(node, wild);
	else if (lot < 18)
		reopen_node(world, n, wild);
	else if (lot < 500)
		(void)fill(node);
	else if (lot < 800)
		exit_one(node);
	else if (lot < 900)
		end_all(node, wild);
	if (now >= wild->stalled_until_us) {
		(void)gale_turn(node->runtime);
		wild->turned_us = now;
	}
}

static uint32_t run_wild(struct world *world, uint64_t seed)
{
	struct wild wild[NODES] = { 0 };
	uint32_t worst = 0;

	for (int n = 0; n < NODES; n++)
		wild[n].turned_us = world->clock.us;
	for (int i = 0; i < STEPS; i++) {
		uint32_t sum = 0;

		world->clock.us += STEP_US;
		for (int n = 0; n < NODES; n++)
			step_node(world, n, &wild[n], &seed);
		for (int n = 0; n < NODES; n++)
			sum += world->nodes[n].in_flight + wild[n].left_count;
		worst = sum > worst ? sum : worst;
	}
	for (int n = 0; n < NODES; n++)
		end_all(&world->nodes[n], &wild[n]);
	return worst;
}

/* H1, and no slot is lost. */
static void whatever_nodes_do_the_ceiling_holds_and_slots_come_back(void **state)
{
	struct world *world = *state;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint32_t worst;

		open_world(world, NODES, plan(LIMIT));
		worst = run_wild(world, seed);
		if (worst != LIMIT)
			fail_msg("seed %d: %u in flight", (int)seed, worst);
		pass(world, GALE_SECONDS(2), 0);
		for (int n = 0; n < NODES; n++) {
			assert_int_equal(counts_of(&world->nodes[n]).fleet_nodes,
			                 NODES);
			assert_int_equal(counts_of(&world->nodes[n]).fleet_in_flight,
			                 0);
			assert_int_equal(counts_of(&world->nodes[n]).in_flight, 0);
			assert_int_equal(
			    counts_of(&world->nodes[n]).exits_without_entry, 0);
		}
		for (int n = 1; n < NODES; n++)
			close_node(&world->nodes[n]);
		pass(world, GALE_SECONDS(1), 0);
		assert_int_equal(fill(&world->nodes[0]), LIMIT);
		close_world(world);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, give_world, take_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_alone_has_all_of_the_ceiling),
		TEST(nodes_that_want_all_have_equal_parts),
		TEST(what_one_node_leaves_is_another_ones),
		TEST(a_long_call_keeps_its_slot_while_its_node_beats),
		TEST(a_node_that_cannot_beat_fences_itself),
		TEST(a_refusal_is_late_with_its_reason_where_gale_has_no_turn),
		TEST(the_host_is_told_of_the_fence),
		TEST(slots_of_a_dead_node_come_back_after_its_lease),
		TEST(a_guard_that_is_closed_leaves_when_its_calls_have_ended),
		TEST(a_guard_that_leaves_lets_nothing_in),
		TEST(a_guard_that_has_left_is_dropped),
		TEST(a_runtime_that_is_closed_leaves),
		TEST(the_second_node_of_a_name_is_refused_and_told),
		TEST(a_guard_that_is_opened_again_waits_for_calls_of_before),
		TEST(a_runtime_that_is_closed_under_calls_tells_its_host),
		TEST(a_wide_call_enters_where_the_fleet_is_idle),
		TEST(wide_calls_come_back_after_an_incident),
		TEST(a_full_store_is_said_once),
		TEST(settings_that_disagree_are_refused_and_said),
		TEST(laws_that_estimate_are_told_apart),
		TEST(what_must_be_the_same_is_named),
		TEST(a_lease_is_over_so_long_after_the_answer),
		TEST(a_lease_is_over_so_long_after_a_servers_answer),
		TEST(a_node_may_go_on_alone_where_it_is_told_to),
		TEST(a_joiner_that_goes_on_alone_takes_no_slots_that_it_does_not_use),
		TEST(a_node_that_observes_takes_no_slots_above_its_share),
		TEST(groups_of_different_names_have_nothing_in_common),
		TEST(weights_part_the_ceiling),
		TEST(a_joiner_that_has_learned_nothing_lowers_no_ceiling),
		TEST(a_joiner_has_its_part_before_anybody_beats_by_itself),
		TEST(a_node_that_is_nudged_lowers_its_share_at_once),
		TEST(a_joiner_that_needs_more_gets_it),
		TEST(the_end_of_a_drain_is_reported),
		TEST(where_nothing_changes_nobody_beats_early),
		TEST(thousands_of_groups_beat_at_one_store),
		TEST(whatever_nodes_do_the_ceiling_holds_and_slots_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
