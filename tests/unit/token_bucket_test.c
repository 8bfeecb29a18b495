/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * token_bucket_test.c -- a bucket that fills steadily and can be emptied at once.
 */
#include "tests/unit/vectors.h"

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_ten_filled_at_five_a_second(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 4, 10, 6, MS(800)),
		ALLOW(MS(1000), 6, 10, 0, MS(2000)),
		DENY(MS(1000), 1, 10, 0, MS(2000), MS(200)),
		ALLOW(MS(1200), 1, 10, 0, MS(2000)),
		DENY(MS(2000), 5, 10, 4, MS(1200), MS(200)),
		ALLOW(MS(11000), 10, 10, 0, MS(2000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(10, 5, SEC(1)), rows);
}

static void golden_ten_filled_at_five_a_second_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 4, 10, 6, MS(800)),
		ALLOW(0, 6, 10, 0, MS(2000)),
		DENY(0, 1, 10, 0, MS(2000), MS(200)),
		ALLOW(MS(200), 1, 10, 0, MS(2000)),
		DENY(MS(1000), 5, 10, 4, MS(1200), MS(200)),
		ALLOW(MS(10000), 10, 10, 0, MS(2000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(10, 5, SEC(1)), rows);
}

/* ---- Unit vectors ---------------------------------------------------------------- */

static void a_token_comes_after_its_time_and_not_before(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(100)),
		ALLOW(0, 1, 5, 3, MS(200)),
		ALLOW(0, 1, 5, 2, MS(300)),
		ALLOW(0, 1, 5, 1, MS(400)),
		ALLOW(0, 1, 5, 0, MS(500)),
		DENY(0, 1, 5, 0, MS(500), MS(100)),
		DENY(MS(99), 1, 5, 0, MS(401), MS(1)),
		ALLOW(MS(100), 1, 5, 0, MS(500)),
		DENY(MS(100), 1, 5, 0, MS(500), MS(100)),
		ALLOW(MS(1000000), 1, 5, 4, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(5, 10, SEC(1)), rows);
}

static void a_denial_says_the_same_twice(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 2, 1, MS(1000)),
		ALLOW(0, 1, 2, 0, MS(2000)),
		DENY(0, 1, 2, 0, MS(2000), MS(1000)),
		DENY(0, 1, 2, 0, MS(2000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(2, 1, SEC(1)), rows);
}

static void a_cost_counts_in_full(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 4, 10, 6, MS(40)),
		ALLOW(0, 6, 10, 0, MS(100)),
		DENY(0, 1, 10, 0, MS(100), MS(10)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(10, 100, SEC(1)), rows);
}

/* The predecessor answers with a retry of 2 s, after which it denies again. */
static void a_cost_above_the_capacity_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 5, 3, 3, 0, GALE_NEVER),
		ALLOW(0, 2, 3, 1, MS(2000)),
		DENY(MS(500), 4, 3, 1, MS(1500), GALE_NEVER),
		DENY(MS(500), 2, 3, 1, MS(1500), MS(500)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(3, 1, SEC(1)), rows); /* RULE-5 */
}

/* 2.5 tokens of capacity at 1.5 a second, counted in halves. */
static void fractions_are_counted_in_smaller_units(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 5, 5, 0, 1666667),
		DENY(MS(333), 1, 5, 0, 1333667, 334),
		ALLOW(MS(334), 1, 5, 0, MS(1666)),
		ALLOW(MS(1000), 2, 5, 0, 1666667),
		DENY(MS(1000), 1, 5, 0, 1666667, 333334),
		ALLOW(MS(2000), 3, 5, 0, 1666667),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(5, 3, SEC(1)), rows);
}

static void the_rate_is_exact_over_a_long_run(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_token_bucket(20, 7, SEC(3)));
	admitted = key_drain(&key, T0, 21);
	for (uint64_t second = 1; second <= 3000; second++)
		admitted += key_drain(&key, T0 + SEC(second), 4);
	assert_int_equal(admitted, 20 + 7 * 1000);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_token_bucket(3, 10, SEC(1)));
	EXPECT_PEEK(&key, ALLOW(MS(50), 1, 3, 3, 0));
	assert_int_equal(key_step(&key, MS(50), 3).verdict, GALE_ALLOW);
	EXPECT_PEEK(&key, DENY(MS(70), 1, 3, 0, MS(280), MS(80)));
	EXPECT_PEEK(&key, ALLOW(MS(150), 1, 3, 1, MS(200)));
	EXPECT_PEEK(&key, DENY(0, 1, 3, 0, MS(300), MS(100)));
}

static void a_forecast_of_a_drained_bucket_knows_each_token(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_token_bucket(5, 1, SEC(1)), 2);
	key_open(&key, gale_token_bucket(5, 1, SEC(1)));
	assert_int_equal(key_step(&key, MS(3000), 5).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MS(3000), 1, { 0, MS(1000), MS(5000) });
	EXPECT_FORECAST(&key, MS(4250), 1, { 1, MS(750), MS(3750) });
	EXPECT_FORECAST(&key, MS(7999), 2, { 2, MS(1), MS(1) });
	EXPECT_FORECAST(&key, MS(8000), 5, { 1, 0, 0 });
	EXPECT_FORECAST(&key, 0, 1, { 0, MS(1000), MS(5000) });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* The predecessor's test stops after the second row, with 3 left as here; but there the
 * bucket's clock has gone back to 0 and it fills again, so the last row would
 * pass (METER-2). */
static void a_clock_that_steps_back_fills_nothing_twice(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(10000), 1, 5, 4, MS(100)),
		ALLOW(0, 1, 5, 3, MS(200)),
		ALLOW(MS(10000), 3, 5, 0, MS(500)),
		DENY(MS(10000), 1, 5, 0, MS(500), MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(5, 10, SEC(1)), rows);
}

/* A denial and a peek from an older clock, too, are answered at the latest admission.
 */
static void an_older_clock_is_answered_at_the_latest_admission(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(5000), 2, 2, 0, MS(2000)),
		DENY(MS(5000), 1, 2, 0, MS(2000), MS(1000)),
		DENY(MS(1000), 1, 2, 0, MS(2000), MS(1000)),
		DENY(MS(5500), 1, 2, 0, MS(1500), MS(500)),
		DENY(MS(4000), 1, 2, 0, MS(2000), MS(1000)),
		ALLOW(MS(6000), 1, 2, 0, MS(2000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(2, 1, SEC(1)), rows);
}

/* cap + elapsed * rate, for clocks 4 s apart; the predecessor admits 4000 of 4000. */
static void skewed_clocks_get_the_skew_once(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_token_bucket(10, 1, SEC(1)));
	admitted = key_drain(&key, T0 - SEC(2), 20);
	admitted += key_alternate(&key, T0 + SEC(2), T0 - SEC(2), 200);
	assert_int_equal(admitted, 10 + 4);
}

static void alternating_clocks_admit_one_bucket(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_token_bucket(10, 1, SEC(1)));
	assert_int_equal(key_alternate(&key, T0 - SEC(2), T0 + SEC(2), 200), 1 + 10);
	key_open(&key, gale_token_bucket(10, 10, SEC(1)));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 10);
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
	EXPECT_FRESH(gale_token_bucket(GALE_UNITS_MAX, GALE_UNITS_MAX, 1), rows);
}

/* A capacity of 2^50 at one token a microsecond takes the longest span to fill. */
static void the_largest_capacity_of_one_a_microsecond_is_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US, 0, GALE_SPAN_MAX_US),
		DENY(0, 1, GALE_SPAN_MAX_US, 0, GALE_SPAN_MAX_US, 1),
		ALLOW(1, 1, GALE_SPAN_MAX_US, 0, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US,
		     GALE_SPAN_MAX_US - 1, 1, 1),
		ALLOW(GALE_SPAN_MAX_US + 1, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US, 0,
		      GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US + 1, GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US, 0,
		     GALE_SPAN_MAX_US, GALE_SPAN_MAX_US - 1),
		DENY(2251799813685249, GALE_SPAN_MAX_US + 1, GALE_SPAN_MAX_US,
		     GALE_SPAN_MAX_US, 0, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(GALE_SPAN_MAX_US, 1, 1), rows);
}

static void the_largest_capacity_and_period_are_exact(void **state)
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
	EXPECT_FRESH(
	    gale_token_bucket(GALE_UNITS_MAX, GALE_UNITS_MAX, GALE_SPAN_MAX_US), rows);
}

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
	EXPECT_FRESH(gale_token_bucket(16385, 16385, GALE_SPAN_MAX_US), rows);
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
		DENY(0, 1, 2, 0, GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US / 2 - 1),
	};

	(void)state;
	EXPECT_FRESH(gale_token_bucket(2, 2, GALE_SPAN_MAX_US), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_ten_filled_at_five_a_second),
		cmocka_unit_test(golden_ten_filled_at_five_a_second_from_zero),
		cmocka_unit_test(a_token_comes_after_its_time_and_not_before),
		cmocka_unit_test(a_denial_says_the_same_twice),
		cmocka_unit_test(a_cost_counts_in_full),
		cmocka_unit_test(a_cost_above_the_capacity_can_never_pass),
		cmocka_unit_test(fractions_are_counted_in_smaller_units),
		cmocka_unit_test(the_rate_is_exact_over_a_long_run),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_of_a_drained_bucket_knows_each_token),
		cmocka_unit_test(a_clock_that_steps_back_fills_nothing_twice),
		cmocka_unit_test(an_older_clock_is_answered_at_the_latest_admission),
		cmocka_unit_test(skewed_clocks_get_the_skew_once),
		cmocka_unit_test(alternating_clocks_admit_one_bucket),
		cmocka_unit_test(the_smallest_interval_is_far_below_a_microsecond),
		cmocka_unit_test(the_largest_capacity_of_one_a_microsecond_is_exact),
		cmocka_unit_test(the_largest_capacity_and_period_are_exact),
		cmocka_unit_test(products_around_two_to_the_64_are_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
