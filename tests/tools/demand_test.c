/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * demand_test.c -- the calls of a fleet with a demand: none is missing, none is made twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "tools/demand.h"

#define WINDOW UINT64_C(1000000)
#define START (UINT64_C(1700000000) * WINDOW)
#define KEYS 7
#define LIMIT 1000
#define CALLS (LIMIT * KEYS * 8 / 10 / 2) /* of 80 %, in half a window */

static struct demand demand_of(uint32_t nodes, bool moves)
{
	return (struct demand){ .percent = 80,
		                .moves = moves,
		                .nodes = nodes,
		                .threads = 2,
		                .keys = KEYS,
		                .limit = LIMIT,
		                .window_us = WINDOW };
}

/* The last instant of a slot: all of its calls are due by then. */
static uint64_t end_of(uint64_t slot)
{
	return START + (slot + 1) * WINDOW / 2 - 1;
}

/* Which calls of the slot are made, how often, and by how many nodes. */
static uint32_t make(const struct demand *demand, uint64_t slot, uint8_t made[CALLS])
{
	uint32_t nodes = 0;

	memset(made, 0, CALLS);
	for (uint32_t place = 0; place < demand->nodes * demand->threads; place++) {
		struct demand_part part = demand_at(demand, place, end_of(slot));

		assert_int_equal(part.due, part.count);
		assert_int_equal(part.next_us, end_of(slot) + 1);
		assert_true(part.first + part.count <= CALLS);
		for (uint64_t i = 0; i < part.count; i++)
			made[part.first + i]++;
		nodes += part.count > 0 && place % demand->threads == 0;
	}
	return nodes;
}

static void each_call_of_a_slot_is_made_by_one_worker(void **state)
{
	static const uint32_t fleets[] = { 1, 2, 3, 64 };
	static uint8_t made[CALLS], once[CALLS];

	(void)state;
	memset(once, 1, CALLS);
	for (size_t i = 0; i < sizeof(fleets) / sizeof(fleets[0]); i++)
		for (int moves = 0; moves < 2; moves++)
			for (uint64_t slot = 0; slot < 20; slot++) {
				struct demand demand = demand_of(fleets[i], moves);
				uint32_t nodes = make(&demand, slot, made);

				assert_memory_equal(made, once, CALLS);
				assert_int_equal(nodes, moves ? (fleets[i] + 1) / 2
				                              : fleets[i]);
			}
}

static void all_keys_are_asked_for_alike(void **state)
{
	struct demand demand = demand_of(64, true);
	uint64_t asked[KEYS] = { 0 };

	(void)state;
	for (uint64_t number = 0; number < CALLS; number++)
		asked[demand_key(&demand, 5, number)]++;
	for (uint32_t key = 0; key < KEYS; key++)
		assert_int_equal(asked[key], CALLS / KEYS);
}

static uint64_t bit_of(const struct demand *demand, uint32_t node, uint64_t slot)
{
	return demand_at(demand, node * demand->threads, end_of(slot)).count > 0;
}

/* Also in the middle of a window. */
static void another_half_asks_in_most_slots(void **state)
{
	struct demand demand = demand_of(64, true);
	uint64_t before = 0, changes = 0, ever = 0;

	(void)state;
	for (uint64_t slot = 0; slot < 200; slot++) {
		uint64_t half = 0;

		for (uint32_t node = 0; node < 64; node++)
			half |= bit_of(&demand, node, slot) << node;
		changes += half != before;
		before = half;
		ever |= half;
	}
	assert_true(changes > 180);
	assert_true(ever == UINT64_MAX);
}

static void calls_are_due_evenly_in_a_slot(void **state)
{
	struct demand demand = demand_of(3, false);
	uint64_t begin_us = START, due[3] = { 0 };

	(void)state;
	for (uint32_t place = 0; place < 6; place++)
		for (uint64_t i = 0; i < 3; i++)
			due[i] +=
			    demand_at(&demand, place, begin_us + i * WINDOW / 8).due;
	assert_true(due[0] <= 6);
	assert_in_range(due[1], CALLS / 4 - 6, CALLS / 4 + 6);
	assert_in_range(due[2], CALLS / 2 - 6, CALLS / 2 + 6);
}

/* Who sleeps until then has a call to make, and had none before. */
static void the_next_instant_is_that_of_a_call(void **state)
{
	struct demand demand = demand_of(5, true);

	(void)state;
	for (uint32_t place = 0; place < 10; place++) {
		uint64_t now_us = START;

		while (now_us < START + WINDOW) {
			struct demand_part part = demand_at(&demand, place, now_us);
			struct demand_part before =
			    demand_at(&demand, place, part.next_us - 2);
			struct demand_part next =
			    demand_at(&demand, place, part.next_us);

			assert_true(part.next_us > now_us);
			if (next.slot == part.slot)
				assert_true(next.due > part.due);
			if (part.next_us - 2 > now_us)
				assert_int_equal(before.due, part.due);
			now_us = part.next_us;
		}
	}
}

/* A window of an odd length has slots that differ by one. */
static void slots_end_with_their_windows(void **state)
{
	struct demand demand = demand_of(2, false);

	(void)state;
	demand.window_us = 10001;
	for (uint64_t window = 1000000; window < 1000100; window++) {
		uint64_t begin_us = window * demand.window_us;

		assert_int_equal(demand_at(&demand, 0, begin_us - 1).slot,
		                 2 * window - 1);
		assert_int_equal(demand_at(&demand, 0, begin_us).slot, 2 * window);
		assert_int_equal(demand_at(&demand, 0, begin_us + 5000).slot,
		                 2 * window + 1);
	}
}

static void a_small_demand_has_workers_without_a_call(void **state)
{
	struct demand demand = demand_of(64, false);
	uint64_t calls = 0;

	(void)state;
	demand.limit = 10;
	demand.keys = 1;
	for (uint32_t place = 0; place < 128; place++)
		calls += demand_at(&demand, place, end_of(0)).due;
	assert_int_equal(calls, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_of_a_slot_is_made_by_one_worker),
		cmocka_unit_test(all_keys_are_asked_for_alike),
		cmocka_unit_test(another_half_asks_in_most_slots),
		cmocka_unit_test(calls_are_due_evenly_in_a_slot),
		cmocka_unit_test(the_next_instant_is_that_of_a_call),
		cmocka_unit_test(slots_end_with_their_windows),
		cmocka_unit_test(a_small_demand_has_workers_without_a_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
