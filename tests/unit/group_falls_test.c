/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * group_falls_test.c -- calls in flight while L falls, by hand and by lot (GROUP-14, GROUP-15).
 *
 * L is the least of the estimates that nodes report, or what they keep busy together and its roots.  Nodes
 * prove nothing, so no lease ends.  An answer comes at once, or is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/group.h"
#include "sim/random.h"
#include "tests/support/length.h"

#define LEASE UINT64_C(2000000)
#define NOW (1000 * LEASE)
#define NODES 16
#define SLOTS_MOST 40
#define STEPS 600

struct node {
	struct group_member member;
	struct group_grant grant; /* in force */
	uint64_t falls;           /* of L, before that grant */
	uint64_t seq;
	uint64_t weight;
	uint64_t estimate;
	uint64_t in_flight;
	bool is_slow; /* its calls take long */
};

struct crowd {
	struct group group;
	struct group_estimates estimates;
	struct group_settings settings;
	struct node nodes[NODES];
	size_t count;
	uint64_t now;
	uint64_t falls;
	struct chance chance;
};

static struct crowd crowd_of(enum group_law law, enum group_parts parts, size_t count,
                             uint64_t estimate)
{
	struct crowd crowd = { .settings = { .law = law,
		                             .parts = parts,
		                             .start = estimate,
		                             .floor = 1,
		                             .ceiling = SLOTS_MOST,
		                             .lease_us = LEASE,
		                             .rotate_us = 1000 * LEASE },
		               .count = count,
		               .now = NOW };

	for (size_t i = 0; i < count; i++)
		crowd.nodes[i] = (struct node){ .weight = 1, .estimate = estimate };
	return crowd;
}

static struct group_report report_of(struct crowd *crowd, size_t i)
{
	struct node *node = &crowd->nodes[i];

	return (struct group_report){
		.incarnation = 1 + i,
		.seq = ++node->seq,
		.generation = node->grant.generation,
		.held = node->grant.share,
		.in_flight = node->in_flight,
		.weight = node->weight,
		.demand = SLOTS_MOST,
		.estimate = node->estimate,
		.busy = node->estimate * GROUP_BUSY_ONE / crowd->count,
		.limited = 1,
	};
}

/* The share that it is granted. */
static uint64_t beat(struct crowd *crowd, size_t i, bool is_heard)
{
	struct node *node = &crowd->nodes[i];
	struct group_report report = report_of(crowd, i);
	uint64_t before = crowd->group.limit;
	struct group_grant grant;

	assert_int_equal(
	    group_begin(&crowd->group, &crowd->settings, &report, crowd->now, 0),
	    GROUP_GRANTED);
	grant = group_beat(&crowd->group, &crowd->estimates, &node->member, &report, 0);
	assert_int_equal(grant.result, GROUP_GRANTED);
	crowd->falls += grant.limit < before;
	if (is_heard) {
		node->grant = grant;
		node->falls = crowd->falls;
	}
	return grant.share;
}

static uint64_t in_flight_of(const struct crowd *crowd)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < crowd->count; i++)
		sum += crowd->nodes[i].in_flight;
	return sum;
}

static bool has_heard(const struct crowd *crowd, size_t i)
{
	return crowd->nodes[i].falls == crowd->falls;
}

/* GROUP-14 */
static bool enter(struct crowd *crowd, size_t i)
{
	struct node *node = &crowd->nodes[i];

	if (node->in_flight >= node->grant.share)
		return false;
	node->in_flight++;
	if (has_heard(crowd, i))
		assert_true(in_flight_of(crowd) <= crowd->group.limit);
	return true;
}

static void enter_all(struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->count; i++)
		while (enter(crowd, i))
			;
}

/* ---- By hand ---------------------------------------------------------------------- */

/* Ten each of 20, and L falls to 10: neither lets a call in before ten have ended, and then each has its
 * part. */
static void calls_that_outlast_the_fall(void **state)
{
	struct crowd crowd = crowd_of(GROUP_MIN, GROUP_EQUAL, 2, 20);
	struct node *a = &crowd.nodes[0], *b = &crowd.nodes[1];

	(void)state;
	for (int i = 0; i < 6; i++)
		beat(&crowd, (size_t)i % 2, true);
	enter_all(&crowd);
	assert_int_equal(in_flight_of(&crowd), 20);

	a->estimate = b->estimate = 10;
	assert_int_equal(beat(&crowd, 0, true), 0);
	a->in_flight = 0;
	assert_false(enter(&crowd, 0)); /* b has ten */
	assert_int_equal(beat(&crowd, 1, true), 0);
	assert_int_equal(beat(&crowd, 0, true), 0);
	b->in_flight = 7;
	assert_false(enter(&crowd, 1));
	assert_int_equal(beat(&crowd, 1, true), 5);
	assert_int_equal(beat(&crowd, 0, true), 3);
	enter_all(&crowd);
	assert_int_equal(in_flight_of(&crowd), 10);
	b->in_flight = 1;
	assert_int_equal(beat(&crowd, 1, true), 5);
	assert_int_equal(beat(&crowd, 0, true), 5);
	enter_all(&crowd);
	assert_int_equal(in_flight_of(&crowd), 10);
}

/* L is 34, and falls to 29 and to 25.  Each node gives its own part, whichever beats first, and none gets
 * anything back.  GROUP-15 */
static void each_node_gives_its_own_part(void **state)
{
	static const enum group_parts parts[] = { GROUP_BY_DEMAND, GROUP_EQUAL };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct crowd crowd = crowd_of(GROUP_SUM, parts[i], 2, 16);
		struct node *a = &crowd.nodes[0], *b = &crowd.nodes[1];

		for (int j = 0; j < 6; j++)
			beat(&crowd, (size_t)j % 2, true);
		enter_all(&crowd);
		assert_int_equal(a->in_flight, 17);
		assert_int_equal(b->in_flight, 17);

		a->estimate = b->estimate = 6;
		crowd.now += LEASE;
		assert_in_range(beat(&crowd, 0, true), 14, 15);
		assert_int_equal(beat(&crowd, 0, true), a->grant.share);
		assert_int_equal(a->grant.limit, 34);
		assert_int_equal(beat(&crowd, 1, true), 29 - a->grant.share);
		a->in_flight = b->in_flight = 0;
		enter_all(&crowd);
		assert_int_equal(in_flight_of(&crowd), 29);
		assert_int_equal(beat(&crowd, 0, true) + beat(&crowd, 1, true), 29);

		crowd.now += LEASE / 4;
		assert_in_range(beat(&crowd, 1, true), 12, 13);
		assert_int_equal(b->grant.limit, 29);
		assert_int_equal(beat(&crowd, 0, true), 25 - b->grant.share);
	}
}

/* The calls of a go on for longer than L takes to fall: b lets none in above L. */
static void calls_that_outlast_a_fall_of_the_sum(void **state)
{
	struct crowd crowd = crowd_of(GROUP_SUM, GROUP_BY_DEMAND, 2, 16);
	struct node *a = &crowd.nodes[0], *b = &crowd.nodes[1];

	(void)state;
	for (int i = 0; i < 6; i++)
		beat(&crowd, (size_t)i % 2, true);
	while (enter(&crowd, 0))
		;
	a->estimate = b->estimate = 6;
	crowd.now += LEASE;
	for (uint64_t limit = 34; limit > 17; limit = crowd.group.limit) {
		beat(&crowd, 0, true);
		beat(&crowd, 1, true);
		assert_true(b->grant.share <= limit - 17);
		while (enter(&crowd, 1))
			;
		assert_true(in_flight_of(&crowd) <= crowd.group.limit);
		b->in_flight = 0;
		crowd.now += LEASE / 4;
	}
	assert_int_equal(beat(&crowd, 1, true), 0);
}

/* ---- By lot ----------------------------------------------------------------------- */

static struct crowd draw_crowd(uint64_t seed)
{
	struct chance chance = { seed };
	enum group_law law = chance_one_in(&chance, 2) ? GROUP_MIN : GROUP_SUM;
	enum group_parts parts =
	    chance_one_in(&chance, 2) ? GROUP_EQUAL : GROUP_BY_DEMAND;
	size_t count = chance_between(&chance, 2, NODES);
	struct crowd crowd =
	    crowd_of(law, parts, count, chance_between(&chance, 2, SLOTS_MOST));

	for (size_t i = 0; i < crowd.count; i++) {
		crowd.nodes[i].weight = chance_between(&chance, 1, 3);
		crowd.nodes[i].is_slow = chance_one_in(&chance, 2);
	}
	crowd.chance = chance;
	return crowd;
}

static void step_by_lot(struct crowd *crowd)
{
	size_t i = chance_below(&crowd->chance, crowd->count);
	struct node *node = &crowd->nodes[i];

	if (chance_one_in(&crowd->chance, 3)) {
		if (chance_one_in(&crowd->chance, 10))
			node->estimate = chance_between(&crowd->chance, 1, SLOTS_MOST);
		crowd->now += chance_below(&crowd->chance, LEASE / 8);
		beat(crowd, i, !chance_one_in(&crowd->chance, 8));
	} else if (!chance_one_in(&crowd->chance, 3)) {
		enter(crowd, i);
	} else if (node->in_flight > 0 &&
	           chance_one_in(&crowd->chance, node->is_slow ? 40 : 1)) {
		node->in_flight--;
	}
}

static bool is_above(const struct crowd *crowd)
{
	for (size_t i = 0; i < crowd->count; i++)
		if (!has_heard(crowd, i))
			return false;
	return in_flight_of(crowd) > crowd->group.limit;
}

/* enter looks whether it is so. */
static void who_has_heard_of_the_fall_lets_nothing_in_above_it(void **state)
{
	uint64_t above = 0;

	(void)state;
	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(20000, 2000); seed++) {
		struct crowd crowd = draw_crowd(seed);

		for (int i = 0; i < STEPS; i++) {
			step_by_lot(&crowd);
			above += is_above(&crowd);
		}
	}
	assert_true(above > 1000); /* or nothing was shown */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_outlast_the_fall),
		cmocka_unit_test(each_node_gives_its_own_part),
		cmocka_unit_test(calls_that_outlast_a_fall_of_the_sum),
		cmocka_unit_test(who_has_heard_of_the_fall_lets_nothing_in_above_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
