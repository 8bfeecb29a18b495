/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * alone_test.c -- what a node admits by itself, counted by windows of which it knows nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/alone.h"
#include "tests/support/length.h"

#define SECOND_NS UINT64_C(1000000000)
#define PERIOD_US UINT64_C(1000000)
/* More than a clock may be wrong by: so windows of the two clocks pass each other often. */
#define DRIFT_PPM 50000

static uint64_t lot(uint64_t *seed, uint64_t below)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

static void a_window_of_its_own_begins_with_what_is_taken(void **state)
{
	struct alone alone;
	mono now = { 5 };
	(void)state;

	alone_init(&alone, 10, PERIOD_US, 0);
	assert_false(alone_take(&alone, 11, now));
	assert_true(alone_take(&alone, 6, now));
	assert_false(alone_take(&alone, 5, now));
	assert_true(alone_take(&alone, 4, now));
	assert_int_equal(alone_left(&alone, (mono){ SECOND_NS }), 0);
	assert_int_equal(alone_left(&alone, (mono){ SECOND_NS + 6 }), 10);
	alone_init(&alone, 0, PERIOD_US, 0);
	assert_false(alone_take(&alone, 1, now));
}

/* ALONE-1: fewer units from now on, and those that were taken stay taken. */
static void fewer_units_are_fewer_at_once(void **state)
{
	struct alone alone;
	(void)state;

	alone_init(&alone, 10, PERIOD_US, 0);
	assert_true(alone_take(&alone, 6, (mono){ 0 }));
	alone.units = 5;
	assert_int_equal(alone_left(&alone, (mono){ 1 }), 0);
	alone.units = 8;
	assert_int_equal(alone_left(&alone, (mono){ 1 }), 2);
}

/* To where a window of the node's own is about to end, or has just ended, or some time on. */
static uint64_t next_ask(uint64_t *seed, const struct alone *alone, uint64_t now)
{
	uint64_t when = now + 1 + lot(seed, SECOND_NS / 5);

	if (alone->end.ns > now && lot(seed, 3) == 0)
		when = alone->end.ns - 1 - lot(seed, SECOND_NS / 1000);
	if (lot(seed, 4) == 0)
		when = alone->end.ns;
	return when > now ? when : now + 1;
}

/* A node that is cut off, from one seed: the most that it admits in a window of the store, whose
 * clock is slower than the node's, or faster. */
static uint64_t most_in_a_window(uint64_t seed, uint64_t units)
{
	double pace = 1 + ((double)lot(&seed, 2001) - 1000) / 1000 * DRIFT_PPM / 1e6;
	uint64_t phase = lot(&seed, SECOND_NS), window = 0, spent = 0, most = 0;
	uint64_t now = SECOND_NS;
	struct alone alone;

	alone_init(&alone, units, PERIOD_US, DRIFT_PPM);
	for (int i = 0; i < 1000; i++) {
		uint64_t at_store = (uint64_t)((double)now * pace) + phase;
		uint64_t left = alone_left(&alone, (mono){ now });
		uint64_t cost = lot(&seed, 2) ? left : lot(&seed, units);

		if (at_store / SECOND_NS != window)
			spent = 0;
		window = at_store / SECOND_NS;
		if (cost > 0 && alone_take(&alone, cost, (mono){ now }))
			spent += cost;
		most = spent > most ? spent : most;
		now = next_ask(&seed, &alone, now);
	}
	return most;
}

/* ALONE-2 */
static void a_window_of_the_store_admits_less_than_twice_as_much(void **state)
{
	uint64_t fullest = 0;
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(10000, 1000); seed++) {
		uint64_t drawn = seed, units = 1 + lot(&drawn, 100);
		uint64_t most = most_in_a_window(drawn, units);

		if (most >= 2 * units)
			fail_msg("seed %llu: %llu of %llu", (unsigned long long)seed,
			         (unsigned long long)most,
			         (unsigned long long)(2 * units - 1));
		fullest += most == 2 * units - 1;
	}
	assert_true(fullest > 0); /* it is no less, either */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_of_its_own_begins_with_what_is_taken),
		cmocka_unit_test(fewer_units_are_fewer_at_once),
		cmocka_unit_test(a_window_of_the_store_admits_less_than_twice_as_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
