/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sliding_window_test.c -- so many units in the trailing window, counted in buckets.
 *
 * A retry is exact to the microsecond here; the predecessor rounds up to a millisecond.
 */
#include "tests/unit/vectors.h"

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_ten_a_second_in_ten_buckets(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 6, 10, 4, MS(1100)),
		ALLOW(MS(1500), 4, 10, 0, MS(1100)),
		DENY(MS(1500), 1, 10, 0, MS(1100), MS(100)),
		DENY(MS(2000), 5, 10, 0, MS(1100), 83334), /* 84 ms, rounded */
		ALLOW(MS(2500), 5, 10, 1, MS(1100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

static void golden_ten_a_second_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 6, 10, 4, MS(1100)),
		ALLOW(MS(500), 4, 10, 0, MS(1100)),
		DENY(MS(500), 1, 10, 0, MS(1100), MS(100)),
		DENY(MS(1000), 5, 10, 0, MS(1100), 83334), /* 84 ms, rounded */
		ALLOW(MS(1500), 5, 10, 1, MS(1100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

/* ---- Unit vectors ---------------------------------------------------------------- */

/* SLIDING-1 */
static void ten_at_once_then_the_next_bucket_is_asked(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 10, 9, MS(1100)),         ALLOW(0, 1, 10, 8, MS(1100)),
		ALLOW(0, 1, 10, 7, MS(1100)),         ALLOW(0, 1, 10, 6, MS(1100)),
		ALLOW(0, 1, 10, 5, MS(1100)),         ALLOW(0, 1, 10, 4, MS(1100)),
		ALLOW(0, 1, 10, 3, MS(1100)),         ALLOW(0, 1, 10, 2, MS(1100)),
		ALLOW(0, 1, 10, 1, MS(1100)),         ALLOW(0, 1, 10, 0, MS(1100)),
		DENY(0, 1, 10, 0, MS(1100), MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

/* Where a fixed window would let twice the limit through. */
static void a_boundary_does_not_open_the_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(900), 1, 10, 9, MS(1100)),
		ALLOW(MS(901), 1, 10, 8, MS(1099)),
		ALLOW(MS(902), 1, 10, 7, MS(1098)),
		ALLOW(MS(903), 1, 10, 6, MS(1097)),
		ALLOW(MS(904), 1, 10, 5, MS(1096)),
		ALLOW(MS(905), 1, 10, 4, MS(1095)),
		ALLOW(MS(906), 1, 10, 3, MS(1094)),
		ALLOW(MS(907), 1, 10, 2, MS(1093)),
		ALLOW(MS(908), 1, 10, 1, MS(1092)),
		ALLOW(MS(909), 1, 10, 0, MS(1091)),
		DENY(MS(1000), 1, 10, 0, MS(1100), MS(100)),
		ALLOW(MS(2000), 1, 10, 9, MS(1100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

/* README: a unit comes back up to a bucket early, so 19 pass within 991 ms. */
static void a_bucket_that_leaves_counts_in_part(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(999), 10, 10, 0, MS(1001)),
		DENY(MS(1899), 1, 10, 0, MS(1001), MS(1)),
		ALLOW(MS(1990), 9, 10, 0, MS(1010)),
		DENY(MS(1990), 1, 10, 0, MS(1010), MS(10)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

static void one_bucket_fades_over_the_next_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 10, 10, 0, MS(2000)),
		DENY(MS(1000), 1, 10, 0, MS(2000), MS(100)),
		ALLOW(MS(1500), 1, 10, 4, MS(1500)),
		ALLOW(MS(1500), 1, 10, 3, MS(1500)),
		ALLOW(MS(1500), 1, 10, 2, MS(1500)),
		ALLOW(MS(1500), 1, 10, 1, MS(1500)),
		ALLOW(MS(1500), 1, 10, 0, MS(1500)),
		DENY(MS(1500), 1, 10, 0, MS(1500), MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 1), rows);
}

static void a_cost_counts_in_full(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 7, 10, 3, MS(1100)),
		DENY(0, 4, 10, 3, MS(1100), MS(100)),
		ALLOW(0, 3, 10, 0, MS(1100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

/* 42 in the previous minute and 18 in this one, 15 s into it: 18 + 42 * 3/4 = 49.5. */
static void the_estimate_is_not_rounded_before_it_decides(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 42, 50, 8, MS(120000)),
		ALLOW(MS(75000), 18, 50, 0, MS(105000)),
		DENY(MS(75000), 1, 50, 0, MS(105000),
		     714286), /* 0.5 too much: 715 ms, rounded */
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(50, SEC(60), 1), rows);
}

/* The same with all numbers doubled, where the half unit that is left can be asked for.
 */
static void half_a_unit_is_a_unit_of_twice_the_limit(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 84, 100, 16, MS(120000)),
		ALLOW(MS(75000), 36, 100, 1, MS(105000)),
		DENY(MS(75000), 2, 100, 1, MS(105000), 714286),
		ALLOW(MS(75000), 1, 100, 0, MS(105000)),
		DENY(MS(75000), 1, 100, 0, MS(105000), 714286),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(100, SEC(60), 1), rows);
}

/* A bucket of a third of a second is no whole number of microseconds. */
static void three_buckets_in_a_second_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000000), 20, 20, 0, 1333334),
		DENY(MS(1000050), 1, 20, 0, 1283334, 283334), /* 284 ms, rounded */
		DENY(MS(1001000), 1, 20, 0, 1333334, 16667),  /* 17 ms, rounded */
		ALLOW(MS(1001100), 1, 20, 5, 1233334),
		ALLOW(MS(1001400), 1, 20, 18, 1266667),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(20, SEC(1), 3), rows);
}

/* The predecessor answers with a finite retry, after which it denies again. */
static void a_cost_above_the_limit_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 4, 3, 3, MS(1100), GALE_NEVER),
		ALLOW(MS(50), 2, 3, 1, MS(1050)),
		DENY(MS(50), 4, 3, 1, MS(1050), GALE_NEVER),
		DENY(MS(1050), 4, 3, 2, MS(1050), GALE_NEVER),
		ALLOW(MS(50), 1, 3, 0, MS(1050)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(3, SEC(1), 10), rows); /* RULE-5 */
}

static void a_rolling_quota_is_a_sliding_window_of_ten_buckets(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 6, 10, 4, MS(1100)),
		ALLOW(MS(1500), 4, 10, 0, MS(1100)),
		DENY(MS(1500), 1, 10, 0, MS(1100), MS(100)),
		DENY(MS(2000), 5, 10, 0, MS(1100), 83334),
		ALLOW(MS(2500), 5, 10, 1, MS(1100)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_rolling(10, SEC(1)), rows);
}

/* When the oldest bucket cannot give enough, the end of this one is when to look. */
static void a_retry_beyond_the_oldest_bucket_is_the_next_bucket(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 2, 10, 8, MS(1100)),
		ALLOW(MS(150), 8, 10, 0, MS(1050)),
		DENY(MS(1020), 2, 10, 0, MS(1080), MS(80)),
		DENY(MS(1020), 1, 10, 0, MS(1080), MS(30)),
		DENY(MS(1020), 3, 10, 0, MS(1080), MS(80)),
		DENY(MS(1080), 2, 10, 1, MS(1020), MS(20)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 10), rows);
}

/* A tiny piece of the oldest bucket is less than a microsecond away, and not "now". */
static void a_retry_is_at_least_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(7, 1000000, 1000000, 0, 2),
		DENY(7, 1, 1000000, 0, 2, 1),
		DENY(8, 1, 1000000, 0, 2, 1),
		ALLOW(9, 1, 1000000, 999999, 2),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(1000000, 1, 1), rows);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_sliding_window(10, SEC(1), 10));
	EXPECT_PEEK(&key, ALLOW(MS(130), 1, 10, 10, MS(1070)));
	assert_int_equal(key_step(&key, MS(130), 4).verdict, GALE_ALLOW);
	assert_int_equal(key_step(&key, MS(480), 6).verdict, GALE_ALLOW);
	EXPECT_PEEK(&key, DENY(MS(480), 1, 10, 0, MS(1020), MS(20)));
	EXPECT_PEEK(&key, DENY(MS(1110), 1, 10, 0, MS(1090), MS(15)));
	EXPECT_PEEK(&key, ALLOW(MS(1150), 1, 10, 2, MS(1050)));
	EXPECT_PEEK(&key, ALLOW(MS(1500), 1, 10, 10, MS(1100)));
}

static void a_forecast_knows_the_next_bucket(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_sliding_window(5, SEC(1), 10), 2);
	key_open(&key, gale_sliding_window(5, SEC(1), 10));
	assert_int_equal(key_step(&key, MS(330), 3).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MS(330), 1, { 2, MS(70), MS(1070) });
	EXPECT_FORECAST(&key, MS(330), 2, { 1, MS(70), MS(1070) });
	EXPECT_FORECAST(&key, MS(1350), 3, { 1, MS(50), MS(1050) });
	EXPECT_FORECAST(&key, MS(1399), 5, { 0, MS(1), MS(1001) });
	EXPECT_FORECAST(&key, MS(1400), 5, { 1, 0, 0 });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* SLIDING-2 */
static void an_older_clock_is_answered_in_the_stored_bucket(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1400), 6, 10, 4, 1266667), ALLOW(MS(1390), 1, 10, 3, 1276667),
		ALLOW(MS(1000), 2, 10, 1, 1333333), DENY(0, 2, 10, 1, 1333333, 333333),
		ALLOW(0, 1, 10, 0, 1333333),        ALLOW(MS(2400), 1, 10, 1, 1266667),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(10, SEC(1), 3), rows);
}

/* The predecessor admits 15, 400 of 400 (at 1100 and 2200 ms) and 20. */
static void skewed_clocks_get_at_most_two_windows(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	for (uint64_t skew = MS(100); skew <= MS(3000); skew += MS(100)) {
		key_open(&key, gale_sliding_window(10, SEC(1), 10));
		admitted = key_drain(&key, T0, 11);
		admitted += key_alternate(&key, T0 + skew, T0, 400);
		assert_int_equal(admitted, skew < MS(1100) ? 10 : 20);
	}
}

static void alternating_clocks_open_no_bucket_twice(void **state)
{
	struct key key;

	(void)state;
	for (uint64_t skew = MS(100); skew <= MS(3000); skew += MS(100)) {
		key_open(&key, gale_sliding_window(10, SEC(1), 10));
		assert_int_equal(key_alternate(&key, T0, T0 + skew, 400),
		                 skew < MS(1100) ? 10 : 11);
	}
}

/* ---- Extremes -------------------------------------------------------------------- */

static void the_smallest_window_is_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 2),
		DENY(0, 1, 1, 0, 2, 1),
		DENY(1, 1, 1, 0, 2, 1),
		ALLOW(2, 1, 1, 0, 2),
		DENY(2, 2, 1, 0, 2, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(1, 1, 1), rows);
}

static void a_bucket_may_be_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 127, 128, 1, 129),       ALLOW(1, 1, 128, 0, 129),
		DENY(127, 1, 128, 0, 129, 1),     DENY(128, 128, 128, 0, 129, 1),
		DENY(129, 128, 128, 127, 129, 1), ALLOW(129, 1, 128, 126, 129),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(128, 128, 128), rows);
}

/* old * weight has 103 bits here, and the bucket is no whole number. */
static void the_largest_window_and_limit_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 1134765260439811),
		DENY(0, 1, GALE_UNITS_MAX, 0, 1134765260439811, 8865353597187),
		DENY(GALE_SPAN_MAX_US, 1, GALE_UNITS_MAX, 0, 1134765260439811, 1),
		DENY(1128855024708352, GALE_UNITS_MAX, GALE_UNITS_MAX, 3002399751579647,
		     1131810142574083, 5910235731459),
		ALLOW(1128855024708352, 1801439850948198, GALE_UNITS_MAX,
		      1200959900631449, 1131810142574083),
		ALLOW(1134765260439810, 1, GALE_UNITS_MAX, 7205759403792776,
		      GALE_SPAN_MAX_US + 1),
		DENY(2251799813685247, GALE_UNITS_MAX, GALE_UNITS_MAX, 7205759403792792,
		     GALE_SPAN_MAX_US + 1, 1),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(GALE_UNITS_MAX, GALE_SPAN_MAX_US, 127), rows);
}

/* Costs around 2^13 in a window of 2^50 make products on both sides of 2^63 and 2^64.
 */
static void products_around_two_to_the_64_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 8191, 16385, 8194, 2 * GALE_SPAN_MAX_US),
		ALLOW(0, 8194, 16385, 0, 2 * GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US, 1, 16385, 0, 2 * GALE_SPAN_MAX_US, 68715282688),
		DENY(GALE_SPAN_MAX_US + 1, 1, 16385, 0, 2251799813685247, 68715282687),
		ALLOW(1688849860263936, 8192, 16385, 0, 1688849860263936),
		DENY(1688849860263936, 1, 16385, 0, 1688849860263936, 34357641344),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(16385, GALE_SPAN_MAX_US, 1), rows);
}

static void an_instant_beyond_the_last_is_the_last(void **state)
{
	static const struct row rows[] = {
		ALLOW(INSTANT_MAX_US - 1, 1, 2, 1, GALE_SPAN_MAX_US + 1),
		ALLOW(INSTANT_MAX_US, 1, 2, 0, 1134695999864832),
		DENY(INSTANT_MAX_US + 1, 1, 2, 0, 1134695999864832,
		     GALE_PACE_PERIOD_MAX_US),
		DENY(UINT64_MAX, 1, 2, 0, 1134695999864832, GALE_PACE_PERIOD_MAX_US),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_window(2, GALE_SPAN_MAX_US, 128), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_ten_a_second_in_ten_buckets),
		cmocka_unit_test(golden_ten_a_second_from_zero),
		cmocka_unit_test(ten_at_once_then_the_next_bucket_is_asked),
		cmocka_unit_test(a_boundary_does_not_open_the_window),
		cmocka_unit_test(a_bucket_that_leaves_counts_in_part),
		cmocka_unit_test(one_bucket_fades_over_the_next_window),
		cmocka_unit_test(a_cost_counts_in_full),
		cmocka_unit_test(the_estimate_is_not_rounded_before_it_decides),
		cmocka_unit_test(half_a_unit_is_a_unit_of_twice_the_limit),
		cmocka_unit_test(three_buckets_in_a_second_are_exact),
		cmocka_unit_test(a_cost_above_the_limit_can_never_pass),
		cmocka_unit_test(a_rolling_quota_is_a_sliding_window_of_ten_buckets),
		cmocka_unit_test(a_retry_beyond_the_oldest_bucket_is_the_next_bucket),
		cmocka_unit_test(a_retry_is_at_least_a_microsecond),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_knows_the_next_bucket),
		cmocka_unit_test(an_older_clock_is_answered_in_the_stored_bucket),
		cmocka_unit_test(skewed_clocks_get_at_most_two_windows),
		cmocka_unit_test(alternating_clocks_open_no_bucket_twice),
		cmocka_unit_test(the_smallest_window_is_a_microsecond),
		cmocka_unit_test(a_bucket_may_be_a_microsecond),
		cmocka_unit_test(the_largest_window_and_limit_are_exact),
		cmocka_unit_test(products_around_two_to_the_64_are_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
