/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gcra_test.c -- so many units per period, evenly, with at most a burst at once.
 */
#include "tests/unit/vectors.h"

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_burst_of_five_at_ten_a_second(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 1, 5, 4, MS(100)),
		ALLOW(MS(1000), 1, 5, 3, MS(200)),
		ALLOW(MS(1000), 1, 5, 2, MS(300)),
		ALLOW(MS(1000), 1, 5, 1, MS(400)),
		ALLOW(MS(1000), 1, 5, 0, MS(500)),
		DENY(MS(1000), 1, 5, 0, MS(500), MS(100)),
		ALLOW(MS(1100), 1, 5, 0, MS(500)),
		DENY(MS(1100), 1, 5, 0, MS(500), MS(100)),
		ALLOW(MS(2000), 1, 5, 4, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(10, SEC(1), 5), rows);
}

static void golden_burst_of_five_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(100)),
		ALLOW(0, 1, 5, 3, MS(200)),
		ALLOW(0, 1, 5, 2, MS(300)),
		ALLOW(0, 1, 5, 1, MS(400)),
		ALLOW(0, 1, 5, 0, MS(500)),
		DENY(0, 1, 5, 0, MS(500), MS(100)),
		ALLOW(MS(100), 1, 5, 0, MS(500)),
		DENY(MS(100), 1, 5, 0, MS(500), MS(100)),
		ALLOW(MS(1000), 1, 5, 4, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(10, SEC(1), 5), rows);
}

static void golden_costs_above_one(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 10, 50, 40, MS(100)),
		ALLOW(MS(1000), 25, 50, 15, MS(350)),
		DENY(MS(1000), 20, 50, 15, MS(350), MS(50)),
		ALLOW(MS(1000), 15, 50, 0, MS(500)),
		ALLOW(MS(1500), 5, 50, 45, MS(50)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(100, SEC(1), 50), rows);
}

static void golden_costs_above_one_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 10, 50, 40, MS(100)),        ALLOW(0, 25, 50, 15, MS(350)),
		DENY(0, 20, 50, 15, MS(350), MS(50)), ALLOW(0, 15, 50, 0, MS(500)),
		ALLOW(MS(500), 5, 50, 45, MS(50)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(100, SEC(1), 50), rows);
}

static void golden_at_a_large_epoch(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 10, 9, MS(1000)),
		ALLOW(T0, 1, 10, 8, MS(2000)),
		ALLOW(T0 + MS(500), 1, 10, 7, MS(2500)),
		ALLOW(T0 + MS(60000), 1, 10, 9, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(60, SEC(60), 10), rows);
}

/* ---- Unit vectors ---------------------------------------------------------------- */

static void a_unit_comes_back_after_its_interval_and_not_before(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 2, 1, MS(500)),
		ALLOW(0, 1, 2, 0, MS(1000)),
		DENY(0, 1, 2, 0, MS(1000), MS(500)),
		DENY(MS(499), 1, 2, 0, MS(501), MS(1)),
		ALLOW(MS(500), 1, 2, 0, MS(1000)),
		DENY(MS(500), 1, 2, 0, MS(1000), MS(500)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(2, SEC(1), 2), rows);
}

/* METER-1 */
static void the_burst_is_not_the_limit(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(600)),        ALLOW(0, 1, 5, 3, MS(1200)),
		ALLOW(0, 1, 5, 2, MS(1800)),       ALLOW(0, 1, 5, 1, MS(2400)),
		ALLOW(0, 1, 5, 0, MS(3000)),       DENY(0, 1, 5, 0, MS(3000), MS(600)),
		ALLOW(MS(600), 1, 5, 0, MS(3000)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(100, SEC(60), 5), rows);
}

static void a_cost_counts_in_full(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 4, 10, 6, MS(400)),
		ALLOW(0, 6, 10, 0, MS(1000)),
		DENY(0, 1, 10, 0, MS(1000), MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(10, SEC(1), 10), rows);
}

/* The predecessor answers with a finite retry, after which it denies again. */
static void a_cost_above_the_burst_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 6, 5, 5, 0, GALE_NEVER),
		ALLOW(0, 5, 5, 0, MS(500)),
		DENY(MS(100), 6, 5, 1, MS(400), GALE_NEVER),
		DENY(MS(100), 2, 5, 1, MS(400), MS(100)),
		DENY(MS(1000), 10, 5, 5, 0, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(10, SEC(1), 5), rows); /* RULE-5 */
}

/* A third of a second is 333,333 1/3 us: three of them are a second again. */
static void an_interval_that_is_no_whole_number_loses_nothing(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 333334),       DENY(333333, 1, 1, 0, 1, 1),
		ALLOW(333334, 1, 1, 0, 333334),  DENY(666667, 1, 1, 0, 1, 1),
		ALLOW(666668, 1, 1, 0, 333334),  DENY(1000001, 1, 1, 0, 1, 1),
		ALLOW(1000002, 1, 1, 0, 333334),
	};
	static const struct row burst[] = {
		ALLOW(0, 1, 3, 2, 333334),        ALLOW(0, 1, 3, 1, 666667),
		ALLOW(0, 1, 3, 0, 1000000),       DENY(0, 1, 3, 0, 1000000, 333334),
		DENY(333333, 1, 3, 0, 666667, 1), ALLOW(333334, 1, 3, 0, 1000000),
		ALLOW(1000000, 2, 3, 0, 1000000),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(3, SEC(1), 1), rows);
	EXPECT_FRESH(gale_gcra(3, SEC(1), 3), burst);
}

/* 7 per 3 s for 1000 rounds: with rounded intervals the total would drift. */
static void the_rate_is_exact_over_a_long_run(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_gcra(7, SEC(3), 7));
	admitted = key_drain(&key, T0, 8);
	for (uint64_t second = 1; second <= 3000; second++)
		admitted += key_drain(&key, T0 + SEC(second), 4);
	assert_int_equal(admitted, 7 + 7 * 1000);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_gcra(10, SEC(1), 3));
	EXPECT_PEEK(&key, ALLOW(MS(50), 1, 3, 3, 0));
	assert_int_equal(key_step(&key, MS(50), 2).verdict, GALE_ALLOW);
	EXPECT_PEEK(&key, ALLOW(MS(50), 1, 3, 1, MS(200)));
	assert_int_equal(key_drain(&key, MS(60), 1), 1);
	EXPECT_PEEK(&key, DENY(MS(70), 1, 3, 0, MS(280), MS(80)));
	EXPECT_PEEK(&key, ALLOW(MS(150), 1, 3, 1, MS(200)));
	EXPECT_PEEK(&key, ALLOW(MS(350), 1, 3, 3, 0));
}

static void a_forecast_knows_the_next_unit(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_gcra(5, SEC(1), 5), 2);
	key_open(&key, gale_gcra(10, SEC(1), 5));
	assert_int_equal(key_step(&key, 0, 3).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, 0, 1, { 2, MS(100), MS(300) });
	EXPECT_FORECAST(&key, 0, 2, { 1, MS(100), MS(300) });
	EXPECT_FORECAST(&key, MS(30), 2, { 1, MS(70), MS(270) });
	EXPECT_FORECAST(&key, MS(100), 2, { 1, MS(100), MS(200) });
	EXPECT_FORECAST(&key, MS(299), 6, { 0, MS(1), MS(1) });
	EXPECT_FORECAST(&key, MS(300), 5, { 1, 0, 0 });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* METER-2 */
static void a_clock_that_steps_back_waits_until_it_has_caught_up(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(10000), 1, 5, 4, MS(200)),
		ALLOW(MS(10000), 1, 5, 3, MS(400)),
		DENY(0, 1, 5, 0, MS(10400), MS(9600)),
		ALLOW(MS(20000), 1, 5, 4, MS(200)),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(5, SEC(1), 5), rows);
}

/* The predecessor admits 11 of burst 10. */
static void alternating_clocks_admit_one_burst(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_gcra(10, SEC(1), 10));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 10);
	key_open(&key, gale_gcra(10, SEC(1), 10));
	assert_int_equal(key_alternate(&key, MS(1001), MS(999), 200), 10);
}

/* 4 s apart, at one unit a second. */
static void skewed_clocks_get_the_skew_once(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_gcra(1, SEC(1), 10));
	admitted = key_drain(&key, T0 - SEC(2), 20);
	admitted += key_alternate(&key, T0 + SEC(2), T0 - SEC(2), 200);
	assert_int_equal(admitted, 10 + 4);
}

/* ---- Extremes -------------------------------------------------------------------- */

static void the_smallest_interval_is_far_below_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, GALE_UNITS_MAX, GALE_UNITS_MAX - 1, 1),
		ALLOW(0, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 0, 1),
		DENY(0, 1, GALE_UNITS_MAX, 0, 1, 1),
		ALLOW(1, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 1),
		DENY(1, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 1, 1),
		DENY(1, 1, GALE_UNITS_MAX, 0, 1, 1),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(GALE_UNITS_MAX, 1, GALE_UNITS_MAX), rows);
}

static void the_largest_interval_is_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, GALE_SPAN_MAX_US),
		DENY(0, 1, 1, 0, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US - 1, 1, 1, 0, 1, 1),
		ALLOW(GALE_SPAN_MAX_US, 1, 1, 0, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US, 2, 1, 0, GALE_SPAN_MAX_US, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(1, GALE_SPAN_MAX_US, 1), rows);
}

/* cost * period has 103 bits. */
static void the_largest_burst_and_period_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US),
		DENY(0, 1, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US, 1),
		ALLOW(1, 1, GALE_UNITS_MAX, 6, GALE_SPAN_MAX_US),
		DENY(1, 8, GALE_UNITS_MAX, 6, GALE_SPAN_MAX_US, 1),
		ALLOW(7, 49, GALE_UNITS_MAX, 5, GALE_SPAN_MAX_US),
		ALLOW(GALE_SPAN_MAX_US, GALE_UNITS_MAX - 63, GALE_UNITS_MAX, 13,
		      GALE_SPAN_MAX_US - 1),
		DENY(GALE_SPAN_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 13,
		     GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US - 1),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(GALE_UNITS_MAX, GALE_SPAN_MAX_US, GALE_UNITS_MAX), rows);
}

/* 8191, 8193, 16383 and 16384 units of 2^50 us: products around 2^63 and 2^64. */
static void products_around_two_to_the_64_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 8191, 16385, 8194, 562846880497281),
		ALLOW(0, 8193, 16385, 1, 1125831191559937),
		DENY(0, 8193, 16385, 1, 1125831191559937, 562915595779969),
		ALLOW(GALE_SPAN_MAX_US, 16383, 16385, 2, 1125762476277249),
		DENY(GALE_SPAN_MAX_US, 16384, 16385, 2, 1125762476277249,
		     1125693760994561),
		ALLOW(2 * GALE_SPAN_MAX_US, 16384, 16385, 1, 1125831191559937),
		ALLOW(2 * GALE_SPAN_MAX_US, 1, 16385, 0, GALE_SPAN_MAX_US),
		DENY(2 * GALE_SPAN_MAX_US, 1, 16385, 0, GALE_SPAN_MAX_US, 68715282688),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(16385, GALE_SPAN_MAX_US, 16385), rows);
}

static void an_instant_beyond_the_last_is_the_last(void **state)
{
	static const struct row rows[] = {
		ALLOW(INSTANT_MAX_US - 1, 1, 2, 1, GALE_SPAN_MAX_US / 2),
		ALLOW(INSTANT_MAX_US, 1, 2, 0, GALE_SPAN_MAX_US - 1),
		DENY(INSTANT_MAX_US + 1, 1, 2, 0, GALE_SPAN_MAX_US - 1,
		     GALE_SPAN_MAX_US / 2 - 1),
		DENY(UINT64_MAX, 1, 2, 0, GALE_SPAN_MAX_US - 1,
		     GALE_SPAN_MAX_US / 2 - 1),
	};

	(void)state;
	EXPECT_FRESH(gale_gcra(2, GALE_SPAN_MAX_US, 2), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_burst_of_five_at_ten_a_second),
		cmocka_unit_test(golden_burst_of_five_from_zero),
		cmocka_unit_test(golden_costs_above_one),
		cmocka_unit_test(golden_costs_above_one_from_zero),
		cmocka_unit_test(golden_at_a_large_epoch),
		cmocka_unit_test(a_unit_comes_back_after_its_interval_and_not_before),
		cmocka_unit_test(the_burst_is_not_the_limit),
		cmocka_unit_test(a_cost_counts_in_full),
		cmocka_unit_test(a_cost_above_the_burst_can_never_pass),
		cmocka_unit_test(an_interval_that_is_no_whole_number_loses_nothing),
		cmocka_unit_test(the_rate_is_exact_over_a_long_run),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_knows_the_next_unit),
		cmocka_unit_test(a_clock_that_steps_back_waits_until_it_has_caught_up),
		cmocka_unit_test(alternating_clocks_admit_one_burst),
		cmocka_unit_test(skewed_clocks_get_the_skew_once),
		cmocka_unit_test(the_smallest_interval_is_far_below_a_microsecond),
		cmocka_unit_test(the_largest_interval_is_exact),
		cmocka_unit_test(the_largest_burst_and_period_are_exact),
		cmocka_unit_test(products_around_two_to_the_64_are_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
