/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fixed_window_test.c -- so many units in each window of the store's clock.
 */
#include "tests/unit/vectors.h"

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_five_a_second(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 1, 5, 4, MS(1000)),
		ALLOW(MS(1100), 1, 5, 3, MS(900)),
		ALLOW(MS(1200), 3, 5, 0, MS(800)),
		DENY(MS(1300), 1, 5, 0, MS(700), MS(700)),
		ALLOW(MS(2000), 1, 5, 4, MS(1000)),
		ALLOW(MS(2999), 4, 5, 0, MS(1)),
		ALLOW(MS(3000), 1, 5, 4, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(5, SEC(1)), rows);
}

static void golden_five_a_second_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(1000)),
		ALLOW(MS(100), 1, 5, 3, MS(900)),
		ALLOW(MS(200), 3, 5, 0, MS(800)),
		DENY(MS(300), 1, 5, 0, MS(700), MS(700)),
		ALLOW(MS(1000), 1, 5, 4, MS(1000)),
		ALLOW(MS(1999), 4, 5, 0, MS(1)),
		ALLOW(MS(2000), 1, 5, 4, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(5, SEC(1)), rows);
}

/* ---- Unit vectors ---------------------------------------------------------------- */

static void counts_down_then_waits_for_the_boundary(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 3, 2, MS(1000)),
		ALLOW(0, 1, 3, 1, MS(1000)),
		ALLOW(0, 1, 3, 0, MS(1000)),
		DENY(0, 1, 3, 0, MS(1000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(3, SEC(1)), rows);
}

static void the_boundary_itself_belongs_to_the_next_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 2, 1, MS(1000)),
		ALLOW(0, 1, 2, 0, MS(1000)),
		DENY(MS(999), 1, 2, 0, MS(1), MS(1)),
		ALLOW(MS(1000), 1, 2, 1, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(2, SEC(1)), rows);
}

static void windows_are_aligned_to_the_clock(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(2500), 1, 5, 4, MS(500)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(5, SEC(1)), rows);
}

static void a_denial_waits_for_the_rest_of_the_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, MS(1000)),
		DENY(MS(750), 1, 1, 0, MS(250), MS(250)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(1, SEC(1)), rows);
}

/* The edge that this rule is known for, and that the others do not have. */
static void twice_the_limit_passes_around_a_boundary(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(900), 1, 3, 2, MS(100)),
		ALLOW(MS(900), 1, 3, 1, MS(100)),
		ALLOW(MS(900), 1, 3, 0, MS(100)),
		DENY(MS(900), 1, 3, 0, MS(100), MS(100)),
		ALLOW(MS(1000), 1, 3, 2, MS(1000)),
		ALLOW(MS(1000), 1, 3, 1, MS(1000)),
		ALLOW(MS(1000), 1, 3, 0, MS(1000)),
		DENY(MS(1000), 1, 3, 0, MS(1000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(3, SEC(1)), rows);
}

/* WINDOW-1 */
static void a_cost_counts_in_full(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 3, 5, 2, MS(1000)),
		ALLOW(0, 2, 5, 0, MS(1000)),
		DENY(0, 1, 5, 0, MS(1000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(5, SEC(1)), rows);
}

/* The predecessor answers with the boundary as a retry, at which it denies again. */
static void a_cost_above_the_limit_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 4, 3, 3, MS(1000), GALE_NEVER),
		ALLOW(0, 2, 3, 1, MS(1000)),
		DENY(0, 4, 3, 1, MS(1000), GALE_NEVER),
		ALLOW(0, 1, 3, 0, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(3, SEC(1)), rows); /* RULE-5 */
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_fixed_window(2, SEC(1)));
	EXPECT_PEEK(&key, ALLOW(MS(250), 1, 2, 2, MS(750)));
	assert_int_equal(key_drain(&key, MS(300), 1), 1);
	EXPECT_PEEK(&key, ALLOW(MS(300), 1, 2, 1, MS(700)));
	assert_int_equal(key_drain(&key, MS(300), 1), 1);
	EXPECT_PEEK(&key, DENY(MS(300), 1, 2, 0, MS(700), MS(700)));
	EXPECT_PEEK(&key, ALLOW(MS(1000), 1, 2, 2, MS(1000)));
}

static void a_forecast_knows_the_boundary(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_fixed_window(5, SEC(1)), 2);
	key_open(&key, gale_fixed_window(5, SEC(1)));
	assert_int_equal(key_step(&key, MS(300), 2).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MS(300), 1, { 3, MS(700), MS(700) });
	EXPECT_FORECAST(&key, MS(300), 2, { 1, MS(700), MS(700) });
	EXPECT_FORECAST(&key, MS(999), 4, { 0, MS(1), MS(1) });
	EXPECT_FORECAST(&key, MS(1000), 1, { 5, 0, 0 });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* WINDOW-2 */
static void an_older_clock_is_answered_in_the_stored_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(2000), 1, 5, 4, MS(1000)),
		ALLOW(MS(1500), 1, 5, 3, MS(1000)),
		ALLOW(0, 3, 5, 0, MS(1000)),
		DENY(MS(1999), 1, 5, 0, MS(1000), MS(1000)),
		DENY(MS(2999), 1, 5, 0, MS(1), MS(1)),
		ALLOW(MS(3000), 1, 5, 4, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(5, SEC(1)), rows);
}

/* The predecessor compares windows by equality and admits 200 of 200. */
static void alternating_clocks_open_no_window_twice(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_fixed_window(10, SEC(1)));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 1 + 10);
}

static void alternating_clocks_get_at_most_two_windows(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_fixed_window(10, SEC(1)));
	admitted = key_drain(&key, MS(999), 100);
	admitted += key_alternate(&key, MS(1001), MS(999), 200);
	assert_int_equal(admitted, 20);
}

/* ---- Extremes -------------------------------------------------------------------- */

static void the_smallest_window_is_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 1),
		DENY(0, 1, 1, 0, 1, 1),
		ALLOW(1, 1, 1, 0, 1),
		DENY(1, 1, 1, 0, 1, 1),
		DENY(1, GALE_UNITS_MAX, 1, 0, 1, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(1, 1), rows);
}

static void the_largest_window_and_limit_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US),
		DENY(0, 2, GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
		ALLOW(1, 1, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US - 1),
		DENY(GALE_SPAN_MAX_US - 1, 1, GALE_UNITS_MAX, 0, 1, 1),
		ALLOW(GALE_SPAN_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 0,
		      GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US, 1, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US,
		     GALE_SPAN_MAX_US),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(GALE_UNITS_MAX, GALE_SPAN_MAX_US), rows);
}

static void an_instant_beyond_the_last_is_the_last(void **state)
{
	static const struct row rows[] = {
		ALLOW(INSTANT_MAX_US - 1, 1, 2, 1, 1),
		ALLOW(INSTANT_MAX_US, 1, 2, 1, GALE_SPAN_MAX_US),
		ALLOW(INSTANT_MAX_US + 1, 1, 2, 0, GALE_SPAN_MAX_US),
		DENY(UINT64_MAX, 1, 2, 0, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
	};

	(void)state;
	EXPECT_FRESH(gale_fixed_window(2, GALE_SPAN_MAX_US), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_five_a_second),
		cmocka_unit_test(golden_five_a_second_from_zero),
		cmocka_unit_test(counts_down_then_waits_for_the_boundary),
		cmocka_unit_test(the_boundary_itself_belongs_to_the_next_window),
		cmocka_unit_test(windows_are_aligned_to_the_clock),
		cmocka_unit_test(a_denial_waits_for_the_rest_of_the_window),
		cmocka_unit_test(twice_the_limit_passes_around_a_boundary),
		cmocka_unit_test(a_cost_counts_in_full),
		cmocka_unit_test(a_cost_above_the_limit_can_never_pass),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_knows_the_boundary),
		cmocka_unit_test(an_older_clock_is_answered_in_the_stored_window),
		cmocka_unit_test(alternating_clocks_open_no_window_twice),
		cmocka_unit_test(alternating_clocks_get_at_most_two_windows),
		cmocka_unit_test(the_smallest_window_is_a_microsecond),
		cmocka_unit_test(the_largest_window_and_limit_are_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
