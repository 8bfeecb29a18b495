/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leaky_bucket_test.c -- units leave one after the other, and a call is told its wait.
 *
 * Waits are exact to the nanosecond here; the predecessor rounds up to a millisecond.
 */
#include "tests/unit/vectors.h"

static void calls_leave_one_after_the_other(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 11, 10, MS(100)),
		DELAY(0, 1, 11, 9, MS(200), NS_OF_MS(100)),
		DELAY(0, 1, 11, 8, MS(300), NS_OF_MS(200)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(10, SEC(1), SEC(1)), rows);
}

static void a_wait_beyond_the_longest_is_refused_at_once(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 2, 1, MS(100)),
		DELAY(0, 1, 2, 0, MS(200), NS_OF_MS(100)),
		DENY(0, 1, 2, 0, MS(200), MS(50)),
		DENY(MS(49), 1, 2, 0, MS(151), MS(1)),
		DELAY(MS(50), 1, 2, 0, MS(250), NS_OF_MS(150)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(10, SEC(1), MS(150)), rows);
}

static void the_bucket_leaks_while_nobody_calls(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 11, 10, MS(100)),
		DELAY(0, 1, 11, 9, MS(200), NS_OF_MS(100)),
		ALLOW(MS(200), 1, 11, 10, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(10, SEC(1), SEC(1)), rows);
}

/* Only the wait before a call is bounded: its own cost may reach beyond it. */
static void a_cost_holds_up_the_next_call(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 3, 11, 8, MS(300)),
		DELAY(0, 1, 11, 7, MS(400), NS_OF_MS(300)),
		DELAY(0, 100, 11, 0, MS(10400), NS_OF_MS(400)),
		DENY(0, 1, 11, 0, MS(10400), MS(9400)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(10, SEC(1), SEC(1)), rows);
}

static void without_patience_one_passes_at_a_time(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, MS(1000)),
		DENY(0, 1, 1, 0, MS(1000), MS(1000)),
		DENY(MS(999), 1, 1, 0, MS(1), MS(1)),
		ALLOW(MS(1000), 1, 1, 0, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(1, SEC(1), 0), rows);
}

/* The predecessor says 0, 334, 667 and 1000 ms, and refuses with 334 ms. */
static void a_third_of_a_second_is_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 4, 3, 333334),
		DELAY(0, 1, 4, 2, 666667, 333333334),
		DELAY(0, 1, 4, 1, MS(1000), 666666667),
		DELAY(0, 1, 4, 0, 1333334, NS_OF_MS(1000)),
		DENY(0, 1, 4, 0, 1333334, 333334),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(3, SEC(1), SEC(1)), rows);
}

/* Half a call a second is one in two seconds. */
static void fractional_rates_are_counted_in_longer_periods(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 3, 2, MS(2000)),
		DELAY(0, 1, 3, 1, MS(4000), NS_OF_MS(2000)),
		DELAY(0, 1, 3, 0, MS(6000), NS_OF_MS(4000)),
		DENY(0, 1, 3, 0, MS(6000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(1, SEC(2), SEC(5)), rows);
}

/* More than 2^50 us of work is not a call; it holds for an idle bucket too. */
static void a_cost_beyond_the_longest_span_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 129, 1, 1, 0, GALE_NEVER),
		DENY(0, GALE_UNITS_MAX, 1, 1, 0, GALE_NEVER),
		ALLOW(0, 128, 1, 0, GALE_SPAN_MAX_US),
		DENY(0, 129, 1, 0, GALE_SPAN_MAX_US, GALE_NEVER),
		DENY(1, 1, 1, 0, GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US - 1),
	};

	(void)state;
	/* RULE-5 */
	EXPECT_FRESH(gale_leaky_bucket(1, GALE_PACE_PERIOD_MAX_US, 0), rows);
}

static void a_peek_tells_the_wait_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_leaky_bucket(10, SEC(1), MS(150)));
	EXPECT_PEEK(&key, ALLOW(0, 1, 2, 2, 0));
	assert_int_equal(key_drain(&key, 0, 1), 1);
	EXPECT_PEEK(&key, DELAY(MS(10), 1, 2, 1, MS(90), NS_OF_MS(90)));
	assert_int_equal(key_drain(&key, MS(10), 1), 1);
	EXPECT_PEEK(&key, DENY(MS(20), 1, 2, 0, MS(180), MS(30)));
	EXPECT_PEEK(&key, ALLOW(MS(200), 1, 2, 2, 0));
}

static void a_forecast_knows_when_the_bucket_is_empty(void **state)
{
	struct key key;

	(void)state;
	/* A queue bounds the wait before a call: pairs leave at 0, 200 and 400 ms. */
	expect_forecast_of_five(__func__, gale_leaky_bucket(10, SEC(1), MS(400)), 3);
	key_open(&key, gale_leaky_bucket(10, SEC(1), MS(400)));
	assert_int_equal(key_step(&key, 0, 3).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, 0, 1, { 2, MS(300), MS(300) });
	EXPECT_FORECAST(&key, MS(50), 1, { 2, MS(250), MS(250) });
	EXPECT_FORECAST(&key, MS(250), 2, { 2, MS(50), MS(50) });
	EXPECT_FORECAST(&key, MS(300), 2, { 3, 0, 0 });
}

static void it_is_a_pacer_without_burst(void **state)
{
	struct gale_rule pacer = gale_pacer(10, SEC(1), 0);
	struct gale_answer paced, leaked;
	struct key key, other;

	(void)state;
	pacer.max_wait_us = MS(450);
	key_open(&key, pacer);
	key_open(&other, gale_leaky_bucket(10, SEC(1), MS(450)));
	for (uint64_t i = 0; i < 40; i++) {
		paced = key_step(&key, MS(i * 60), 1 + i % 3);
		leaked = key_step(&other, MS(i * 60), 1 + i % 3);
		assert_memory_equal(&paced, &leaked, sizeof(paced));
	}
}

/* RULE-2: places are never booked twice, whatever the clock does. */
static void alternating_clocks_book_no_place_twice(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 31, 30, MS(100)),
		ALLOW(T0 + MS(2000), 1, 31, 30, MS(100)),
		DELAY(T0, 1, 31, 9, MS(2200), NS_OF_MS(2100)),
		DELAY(T0 + MS(2000), 1, 31, 28, MS(300), NS_OF_MS(200)),
		DELAY(T0, 1, 31, 7, MS(2400), NS_OF_MS(2300)),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(10, SEC(1), SEC(3)), rows);
}

static void the_smallest_interval_is_far_below_a_nanosecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 1),
		DENY(0, 1, 1, 0, 1, 1),
		ALLOW(1, GALE_UNITS_MAX, 1, 0, 1),
		DENY(1, 1, 1, 0, 1, 1),
		ALLOW(2, 1, 1, 0, 1),
	};
	static const struct row waits[] = {
		ALLOW(0, 1, GALE_UNITS_MAX, GALE_UNITS_MAX, 1),
		DELAY(0, 9007199, GALE_UNITS_MAX, GALE_UNITS_MAX, 1, 1),
		DELAY(0, 9007199, GALE_UNITS_MAX, GALE_UNITS_MAX, 1, 1),
		DELAY(0, GALE_UNITS_MAX, GALE_UNITS_MAX, GALE_UNITS_MAX, 2, 1),
		DELAY(0, GALE_UNITS_MAX, GALE_UNITS_MAX, GALE_UNITS_MAX, 3, 1001),
		ALLOW(INSTANT_MAX_US + 1, GALE_UNITS_MAX, GALE_UNITS_MAX,
		      GALE_UNITS_MAX, 1),
		DELAY(INSTANT_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, GALE_UNITS_MAX, 2,
		      1000),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(GALE_UNITS_MAX, 1, 0), rows);
	EXPECT_FRESH(gale_leaky_bucket(GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US), waits);
}

static void the_longest_wait_is_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 128, 129, 1, GALE_SPAN_MAX_US),
		DELAY(0, 128, 129, 0, 2 * GALE_SPAN_MAX_US,
		      1125899906842624000), /* waits just as long as may be */
		DENY(0, 1, 129, 0, 2 * GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US - 1, 1, 129, 0, GALE_SPAN_MAX_US + 1, 1),
		DELAY(GALE_SPAN_MAX_US, 1, 129, 0, 1134695999864832,
		      1125899906842624000),
	};

	(void)state;
	EXPECT_FRESH(gale_leaky_bucket(1, GALE_PACE_PERIOD_MAX_US, GALE_SPAN_MAX_US),
	             rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_leave_one_after_the_other),
		cmocka_unit_test(a_wait_beyond_the_longest_is_refused_at_once),
		cmocka_unit_test(the_bucket_leaks_while_nobody_calls),
		cmocka_unit_test(a_cost_holds_up_the_next_call),
		cmocka_unit_test(without_patience_one_passes_at_a_time),
		cmocka_unit_test(a_third_of_a_second_is_exact),
		cmocka_unit_test(fractional_rates_are_counted_in_longer_periods),
		cmocka_unit_test(a_cost_beyond_the_longest_span_can_never_pass),
		cmocka_unit_test(a_peek_tells_the_wait_and_takes_nothing),
		cmocka_unit_test(a_forecast_knows_when_the_bucket_is_empty),
		cmocka_unit_test(it_is_a_pacer_without_burst),
		cmocka_unit_test(alternating_clocks_book_no_place_twice),
		cmocka_unit_test(the_smallest_interval_is_far_below_a_nanosecond),
		cmocka_unit_test(the_longest_wait_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
