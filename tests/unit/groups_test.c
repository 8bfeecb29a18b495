/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* groups_test.c -- groups in memory: their books, their bounds, and what is swept. */
#include "stores/groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/allocator.h"
#include "stores/memory.h"
#include "tests/support/beats.h"
#include "tests/support/clock.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define NOW GALE_DAYS(20000)
#define LEASE GALE_SECONDS(2)

struct scene {
	struct test_allocator allocator;
	struct groups *groups;
	uint64_t now;  /* by the node's clock, in microseconds */
	uint64_t set;  /* so far is the store's ahead */
	uint64_t over; /* is reported */
	struct store_beat beat;
	struct group_nudge nudge;
	char node[32];
};

static struct scene s;

static void open_scene(uint64_t most)
{
	s = (struct scene){ .now = NOW };
	test_allocator_init(&s.allocator);
	s.groups = groups_open(&s.allocator.allocator, most);
	assert_non_null(s.groups);
}

static void close_scene(void)
{
	assert_true(groups_valid(s.groups));
	groups_close(s.groups);
	assert_true(test_allocator_is_balanced(&s.allocator));
}

static enum store_result serve(const char *group)
{
	return groups_beat(s.groups, (const uint8_t *)group, (uint32_t)strlen(group),
	                   &s.beat, s.now + s.set, (mono){ s.now * 1000 },
	                   /* forgot_us= */ 0, &s.nudge);
}

static const struct group *found(const char *group)
{
	return groups_find(s.groups, (const uint8_t *)group, (uint32_t)strlen(group));
}

static enum store_result beat_for(const char *group, unsigned node, uint64_t lease_us)
{
	s.beat = (struct store_beat){
		.node = (const uint8_t *)s.node,
		.node_len = (uint32_t)snprintf(s.node, sizeof(s.node), "node %u", node),
		.settings = { .law = GROUP_MEDIAN,
		              .start = 1,
		              .floor = 1,
		              .ceiling = 100,
		              .lease_us = lease_us,
		              .rotate_us = 1 },
		.report = { .incarnation = 1,
		            .seq = ++s.now,
		            .weight = 1,
		            .demand = 1,
		            .estimate = 100,
		            .life = found(group) ? found(group)->life : 0,
		            .over = s.over },
	};
	return serve(group);
}

static enum store_result beat(const char *group, unsigned node)
{
	return beat_for(group, node, LEASE);
}

static void beat_many(const char *kind, unsigned count, uint64_t lease_us)
{
	char name[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%u", kind, i);
		assert_int_equal(beat_for(name, 0, lease_us), STORE_DONE);
	}
}

/* ---- Tests ----------------------------------------------------------------------- */

/* GROUPS-1 */
static void its_books_are_right_whatever_fleets_do(void **state)
{
	static struct beats b;
	struct beats_tally tally = { 0 };

	(void)state;
	for (uint64_t seed = 1; seed <= LONG_OR_BRIEF(60, 12); seed++) {
		beats_open(&b, seed, NOW, &tally);
		while (b.step < 1500) {
			beats_draw(&b);
			beats_serve(&b);
			beats_hear(&b);
			assert_true(groups_valid(b.pattern));
		}
		beats_close(&b);
	}
	assert_true(beats_tell_something(&tally));
}

static void a_large_group_is_kept_in_order(void **state)
{
	enum { MANY = 3000 };

	(void)state;
	open_scene(UINT64_MAX);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(beat("g", i), STORE_DONE);
	for (unsigned i = 0; i < MANY; i += 2)
		assert_int_equal(beat("g", (i * 7919) % MANY), STORE_DONE);
	assert_int_equal(found("g")->members, MANY);
	assert_true(groups_valid(s.groups));
	s.over = found("g")->beats;
	for (unsigned i = 0; i < MANY / 4 + 1; i++)
		assert_int_equal(beat("g", MANY), STORE_DONE);
	assert_int_equal(found("g")->members, 1);
	close_scene();
}

/* GROUPS-3 */
static void a_group_that_is_over_makes_room_and_one_that_lives_does_not(void **state)
{
	(void)state;
	open_scene(4);
	assert_int_equal(beat("g", 1), STORE_DONE);
	assert_int_equal(beat("h", 1), STORE_DONE);
	assert_int_equal(beat("g", 2), STORE_FULL);
	assert_int_equal(beat("i", 1), STORE_FULL);
	s.now += LEASE / 2;
	assert_int_equal(beat("h", 1), STORE_DONE);
	s.now += LEASE / 2;
	assert_int_equal(beat("i", 1), STORE_DONE); /* g is over */
	assert_null(found("g"));
	assert_int_equal(found("h")->members, 1);
	assert_int_equal(beat("i", 2), STORE_FULL);
	assert_null(groups_member(s.groups, (const uint8_t *)"i", 1,
	                          (const uint8_t *)s.node, s.beat.node_len));
	close_scene();
}

/* GROUPS-2: the store's clock is set forward by a day, and back by another. */
static void where_the_clock_is_set_a_full_table_drops_no_group_that_lives(void **state)
{
	(void)state;
	open_scene(2);
	assert_int_equal(beat("g", 1), STORE_DONE);
	s.set = GALE_DAYS(1);
	assert_int_equal(beat("h", 1), STORE_FULL);
	assert_int_equal(beat("g", 1), STORE_DONE);
	s.set = -GALE_DAYS(1);
	s.now += LEASE - 2; /* each beat comes a microsecond after the one before */
	assert_int_equal(beat("h", 1), STORE_FULL);
	assert_int_equal(beat("h", 1), STORE_DONE);
	assert_null(found("g"));
	close_scene();
}

/* GROUPS-2 */
static void a_group_is_swept_a_day_after_its_last_lease(void **state)
{
	mono end;

	(void)state;
	open_scene(UINT64_MAX);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(beat("g", i), STORE_DONE);
	end.ns = (s.now + LEASE + GROUPS_KEPT_US) * 1000;
	assert_true(groups_sweep(s.groups, (mono){ end.ns - 1 }));
	assert_int_equal(found("g")->members, 600);
	assert_false(groups_sweep(s.groups, end));
	assert_true(groups_valid(s.groups));
	while (!groups_sweep(s.groups, end))
		continue;
	assert_null(found("g"));
	close_scene();
}

#define LONG 200 /* more than three sweeps look at */
#define SHORT 20

/* Groups with a lease of a day are in front of those with a short one. */
static void a_group_with_a_long_lease_hides_none_that_is_over(void **state)
{
	(void)state;
	open_scene(UINT64_MAX);
	beat_many("long", LONG, GALE_DAYS(1));
	beat_many("short", SHORT, LEASE);
	s.now += LEASE + GROUPS_KEPT_US;
	while (!groups_sweep(s.groups, (mono){ s.now * 1000 }))
		continue; /* it does not rest before all are gone */
	assert_null(found("short0"));
	assert_null(found("short19"));
	assert_true(found("long0") && found("long199"));
	close_scene();
}

/* GROUPS-3: it may be refused at first, and not for good. */
static void a_beat_that_needs_room_finds_it(void **state)
{
	unsigned refused = 0;

	(void)state;
	open_scene(2 * (LONG + SHORT));
	beat_many("long", LONG, GALE_DAYS(1));
	beat_many("short", SHORT, LEASE);
	s.now += LEASE;
	while (beat("new", 0) == STORE_FULL)
		assert_true(++refused < 20);
	assert_non_null(found("new"));
	close_scene();
}

/* What was learned outlives all nodes for a while, unless they come with other settings. */
static void nodes_that_come_back_find_what_was_learned(void **state)
{
	(void)state;
	open_scene(UINT64_MAX);
	assert_int_equal(beat("g", 1), STORE_DONE);
	assert_int_equal(s.beat.grant.limit, 100);
	s.over = s.beat.grant.beat;
	assert_int_equal(beat("g", 2), STORE_DONE);
	assert_int_equal(s.beat.grant.members, 1);
	assert_int_equal(s.beat.grant.limit, 100);
	close_scene();
}

/* A lone node under its own name: nobody else can prove that its lease is over. */
static void a_node_that_starts_again_with_other_settings_has_a_share(void **state)
{
	(void)state;
	open_scene(UINT64_MAX);
	assert_int_equal(beat("g", 1), STORE_DONE);
	for (int i = 0; i < 2; i++) {
		s.beat.report.over = i == 0 ? 0 : s.beat.grant.beat;
		s.beat.report.life = s.beat.grant.life;
		s.beat.report.incarnation = 2;
		s.beat.report.seq = 1 + (uint64_t)i;
		s.beat.settings.ceiling = 50;
		assert_int_equal(serve("g"), STORE_DONE);
		assert_int_equal(s.beat.grant.result,
		                 i == 0 ? GROUP_DISAGREES : GROUP_GRANTED);
	}
	assert_int_equal(s.beat.grant.share, 50);
	assert_int_equal(found("g")->members, 1);
	close_scene();
}

static void a_beat_without_memory_changes_nothing(void **state)
{
	(void)state;
	open_scene(UINT64_MAX);
	assert_int_equal(beat("g", 0), STORE_DONE);
	for (unsigned node = 1; node < 40; node++) {
		struct group before = *found("g");

		s.allocator.fail_first = s.allocator.calls + 1;
		s.allocator.fail_last = UINT64_MAX;
		assert_int_equal(beat("g", node), STORE_NO_MEMORY);
		assert_int_equal(beat("h", node), STORE_NO_MEMORY);
		s.allocator.fail_first = s.allocator.fail_last = 0;
		before.now_us = found("g")->now_us;
		before.nudge = 0; /* it was the beat before's */
		assert_memory_equal(&before, found("g"), sizeof(before));
		assert_int_equal(beat("g", node), STORE_DONE);
	}
	close_scene();
}

static void what_is_no_report_is_said_so(void **state)
{
	(void)state;
	open_scene(UINT64_MAX);
	assert_int_equal(beat("g", 0), STORE_DONE);
	s.beat.report.weight = 0;
	assert_int_equal(serve("g"), STORE_DONE);
	assert_int_equal(s.beat.grant.result, GROUP_WRONG);
	s.beat.report.weight = 1;
	s.beat.settings.ceiling = 0;
	assert_int_equal(serve("n"), STORE_DONE);
	assert_int_equal(s.beat.grant.result, GROUP_WRONG);
	assert_null(found("n"));
	close_scene();
}

/* By its own clocks; another who has opened it by name is in the same group. */
static void the_embedded_store_keeps_groups(void **state)
{
	struct test_clock clock;
	struct memory_config config = { .name = "groups", .max_keys = 10 };
	struct store *stores[2];
	struct store_op op = { .verb = STORE_BEAT,
		               .key = (const uint8_t *)"g",
		               .key_len = 1 };

	(void)state;
	open_scene(UINT64_MAX);
	test_clock_init(&clock, NOW);
	test_clock_is_the_nodes(&clock);
	config.allocator = &s.allocator.allocator;
	config.clock = &clock.clock;
	for (int i = 0; i < 2; i++)
		stores[i] = memory_open(&config);
	for (unsigned node = 0; node < 4; node++) {
		assert_int_equal(beat("g", node), STORE_DONE);
		op.beat = &s.beat;
		assert_int_equal(store_run(stores[node % 2], &op, node < 2),
		                 STORE_DONE);
		assert_int_equal(s.beat.grant.members, node + 1);
	}
	assert_true(stores[0]->ops->sweep(stores[0]));
	test_clock_advance(&clock, LEASE + GROUPS_KEPT_US);
	assert_true(stores[0]->ops->sweep(stores[0]));
	s.beat.report.seq++;
	assert_int_equal(store_run(stores[1], &op, true), STORE_DONE);
	assert_int_equal(s.beat.grant.members, 1);
	for (int i = 0; i < 2; i++)
		stores[i]->ops->close(stores[i]);
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_books_are_right_whatever_fleets_do),
		cmocka_unit_test(a_large_group_is_kept_in_order),
		cmocka_unit_test(
		    a_group_that_is_over_makes_room_and_one_that_lives_does_not),
		cmocka_unit_test(
		    where_the_clock_is_set_a_full_table_drops_no_group_that_lives),
		cmocka_unit_test(a_group_is_swept_a_day_after_its_last_lease),
		cmocka_unit_test(a_group_with_a_long_lease_hides_none_that_is_over),
		cmocka_unit_test(a_beat_that_needs_room_finds_it),
		cmocka_unit_test(nodes_that_come_back_find_what_was_learned),
		cmocka_unit_test(
		    a_node_that_starts_again_with_other_settings_has_a_share),
		cmocka_unit_test(a_beat_without_memory_changes_nothing),
		cmocka_unit_test(what_is_no_report_is_said_so),
		cmocka_unit_test(the_embedded_store_keeps_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
