/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sliding_log_test.c -- so many units in the trailing window, with a stamp for each
 * call.
 *
 * Costs are whole units: the predecessor's rounding of fractional costs (a cost of 1.5
 * counts as 2, of 0.5 as 1) has nothing to correspond to, and no row here.
 */
#include "tests/unit/vectors.h"

#include <stdlib.h>

#include "tests/support/length.h"

/* One unit at each of these instants, in milliseconds. */
static void log_open(struct key *key, uint64_t limit, const uint64_t *stamps_ms,
                     size_t count)
{
	key_open(key, gale_sliding_log(limit, SEC(1)));
	for (size_t i = 0; i < count; i++)
		assert_int_equal(key_drain(key, MS(stamps_ms[i]), 1), 1);
}

#define LOG_OPEN(key, limit, ...)                                                      \
	log_open(key, limit, (const uint64_t[]){ __VA_ARGS__ },                        \
	         COUNT(((const uint64_t[]){ __VA_ARGS__ })))

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_five_a_second(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1000), 1, 5, 4, MS(1000)),
		ALLOW(MS(1100), 1, 5, 3, MS(900)),
		ALLOW(MS(1200), 1, 5, 2, MS(800)),
		ALLOW(MS(1300), 1, 5, 1, MS(700)),
		ALLOW(MS(1400), 1, 5, 0, MS(600)),
		DENY(MS(1500), 1, 5, 0, MS(500), MS(500)),
		ALLOW(MS(2100), 1, 5, 1, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(5, SEC(1)), rows);
}

static void golden_five_a_second_from_zero(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(1000)),
		ALLOW(MS(100), 1, 5, 3, MS(900)),
		ALLOW(MS(200), 1, 5, 2, MS(800)),
		ALLOW(MS(300), 1, 5, 1, MS(700)),
		ALLOW(MS(400), 1, 5, 0, MS(600)),
		DENY(MS(500), 1, 5, 0, MS(500), MS(500)),
		ALLOW(MS(1100), 1, 5, 1, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(5, SEC(1)), rows);
}

/* ---- Unit vectors ---------------------------------------------------------------- */

static void counts_down_then_waits_for_the_oldest(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 3, 2, MS(1000)),
		ALLOW(MS(100), 1, 3, 1, MS(900)),
		ALLOW(MS(200), 1, 3, 0, MS(800)),
		DENY(MS(300), 1, 3, 0, MS(700), MS(700)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(3, SEC(1)), rows);
}

static void a_stamp_exactly_a_window_old_is_gone(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 2, 1, MS(1000)),
		ALLOW(MS(500), 1, 2, 0, MS(500)),
		DENY(MS(999), 1, 2, 0, MS(1), MS(1)),
		ALLOW(MS(1000), 1, 2, 0, MS(500)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(2, SEC(1)), rows);
}

/* Where a fixed window would let twice the limit through. */
static void a_boundary_does_not_open_the_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(950), 1, 5, 4, MS(1000)),
		ALLOW(MS(951), 1, 5, 3, MS(999)),
		ALLOW(MS(952), 1, 5, 2, MS(998)),
		ALLOW(MS(953), 1, 5, 1, MS(997)),
		ALLOW(MS(954), 1, 5, 0, MS(996)),
		DENY(MS(1000), 1, 5, 0, MS(950), MS(950)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(5, SEC(1)), rows);
}

static void a_denial_waits_for_as_many_stamps_as_it_needs(void **state)
{
	static const struct row rows[] = {
		DENY(MS(450), 1, 5, 0, MS(550), MS(550)),
		DENY(MS(450), 2, 5, 0, MS(550), MS(650)),
		DENY(MS(450), 3, 5, 0, MS(550), MS(750)),
		DENY(MS(450), 5, 5, 0, MS(550), MS(950)),
	};
	struct key key;

	(void)state;
	LOG_OPEN(&key, 5, 0, 100, 200, 300, 400);
	EXPECT_ROWS(&key, rows);
}

static void a_cost_is_that_many_units_of_one_stamp(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 2, 5, 3, MS(1000)),
		ALLOW(MS(100), 3, 5, 0, MS(900)),
		DENY(MS(200), 1, 5, 0, MS(800), MS(800)),
		DENY(MS(200), 3, 5, 0, MS(800), MS(900)),
		DENY(MS(999), 3, 5, 0, MS(1), MS(101)),
		ALLOW(MS(1000), 2, 5, 0, MS(100)),
		DENY(MS(1000), 1, 5, 0, MS(100), MS(100)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(5, SEC(1)), rows);
}

/* The predecessor answers with retries of 900, 1000 and 1000 ms; it denies after each.
 */
static void a_cost_above_the_limit_can_never_pass(void **state)
{
	static const struct row some[] = {
		DENY(MS(200), 5, 3, 1, MS(800), GALE_NEVER),
	};
	static const struct row none[] = {
		DENY(MS(250), 5, 3, 3, MS(1000), GALE_NEVER),
	};
	static const struct row stale[] = {
		DENY(MS(2000), 5, 2, 2, MS(1000), GALE_NEVER),
	};
	struct key key;

	(void)state; /* RULE-5 */
	LOG_OPEN(&key, 3, 0, 100);
	EXPECT_ROWS(&key, some);
	EXPECT_FRESH(gale_sliding_log(3, SEC(1)), none);
	LOG_OPEN(&key, 2, 0);
	EXPECT_ROWS(&key, stale);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_does_not_see_what_has_left_the_window(void **state)
{
	struct key key;

	(void)state;
	LOG_OPEN(&key, 2, 0, 500);
	EXPECT_PEEK(&key, ALLOW(MS(1000), 1, 2, 1, MS(500)));
	EXPECT_PEEK(&key, DENY(MS(999), 1, 2, 0, MS(1), MS(1)));
	EXPECT_PEEK(&key, ALLOW(MS(1499), 1, 2, 1, MS(1)));
	EXPECT_PEEK(&key, ALLOW(MS(1500), 1, 2, 2, 0));
}

static void a_peek_at_a_full_log_waits_for_the_oldest(void **state)
{
	struct key key;

	(void)state;
	LOG_OPEN(&key, 3, 100, 200, 300);
	EXPECT_PEEK(&key, DENY(MS(400), 1, 3, 0, MS(700), MS(700)));
}

static void a_forecast_knows_the_oldest_and_the_newest(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_sliding_log(5, SEC(1)), 2);
	LOG_OPEN(&key, 5, 0, 500, 700);
	EXPECT_FORECAST(&key, MS(1000), 1, { 3, MS(500), MS(700) });
	EXPECT_FORECAST(&key, MS(1000), 2, { 1, MS(500), MS(700) });
	EXPECT_FORECAST(&key, MS(999), 1, { 2, MS(1), MS(701) });
	EXPECT_FORECAST(&key, MS(1700), 6, { 0, 0, 0 });
}

/* ---- The state ------------------------------------------------------------------- */

/* LOG-1 */
static void calls_of_one_instant_share_a_stamp(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_sliding_log(9, SEC(1)));
	assert_int_equal(rule_words(&key.rule, key.words), 1);
	assert_int_equal(key_drain(&key, MS(5), 4), 4);
	assert_int_equal(rule_words(&key.rule, key.words), 3);
	assert_int_equal(key_drain(&key, MS(6), 1), 1);
	assert_int_equal(rule_words(&key.rule, key.words), 5);
}

static void an_admission_drops_the_stamps_that_no_longer_count(void **state)
{
	struct key key;

	(void)state;
	LOG_OPEN(&key, 9, 0, 1, 2, 3, 900);
	assert_int_equal(rule_words(&key.rule, key.words), 11);
	assert_int_equal(key_drain(&key, MS(1002), 1), 1); /* keeps 3 and 900 */
	assert_int_equal(rule_words(&key.rule, key.words), 7);
}

static void a_denial_drops_nothing(void **state)
{
	struct key key;

	(void)state;
	LOG_OPEN(&key, 3, 0, 1, 2);
	assert_int_equal(key_step(&key, MS(1001), 3).verdict, GALE_DENY);
	assert_int_equal(rule_words(&key.rule, key.words), 7); /* RULE-1 */
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* LOG-2 */
static void an_older_clock_is_answered_at_the_newest_stamp(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(2000), 2, 5, 3, MS(1000)),
		ALLOW(MS(1500), 1, 5, 2, MS(1000)),
		ALLOW(0, 2, 5, 0, MS(1000)),
		DENY(0, 1, 5, 0, MS(1000), MS(1000)),
		DENY(MS(2999), 1, 5, 0, MS(1), MS(1)),
		ALLOW(MS(3000), 1, 5, 4, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(5, SEC(1)), rows);
}

/* The predecessor admits 11 of limit 10. */
static void alternating_clocks_admit_one_window(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_sliding_log(10, SEC(1)));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 10);
	key_open(&key, gale_sliding_log(10, SEC(1)));
	assert_int_equal(key_alternate(&key, MS(1001), MS(999), 200), 10);
}

static void skewed_clocks_get_at_most_two_windows(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	for (uint64_t skew = MS(100); skew <= MS(3000); skew += MS(100)) {
		key_open(&key, gale_sliding_log(10, SEC(1)));
		admitted = key_drain(&key, T0, 11);
		admitted += key_alternate(&key, T0 + skew, T0, 100);
		assert_int_equal(admitted, skew < MS(1000) ? 10 : 20);
	}
}

/* ---- Extremes -------------------------------------------------------------------- */

static void the_smallest_window_is_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 1),
		DENY(0, 1, 1, 0, 1, 1),
		ALLOW(1, 1, 1, 0, 1),
		DENY(2, 2, 1, 1, 1, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(1, 1), rows);
}

static void the_largest_window_and_cost_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 65535, 65536, 1, GALE_SPAN_MAX_US),
		DENY(0, 2, 65536, 1, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
		ALLOW(1, 1, 65536, 0, GALE_SPAN_MAX_US - 1),
		DENY(1, 65536, 65536, 0, GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US - 1, 65535, 65536, 0, 1, 1),
		DENY(GALE_SPAN_MAX_US, 65536, 65536, 65535, 1, 1),
		ALLOW(GALE_SPAN_MAX_US, 65535, 65536, 0, 1),
		DENY(GALE_SPAN_MAX_US, GALE_UNITS_MAX, 65536, 0, 1, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(GALE_LOG_LIMIT_MAX, GALE_SPAN_MAX_US), rows);
}

static void an_instant_beyond_the_last_is_the_last(void **state)
{
	static const struct row rows[] = {
		ALLOW(INSTANT_MAX_US - 1, 1, 3, 2, GALE_SPAN_MAX_US),
		ALLOW(INSTANT_MAX_US, 1, 3, 1, GALE_SPAN_MAX_US - 1),
		ALLOW(INSTANT_MAX_US + 1, 1, 3, 0, GALE_SPAN_MAX_US - 1),
		DENY(UINT64_MAX, 1, 3, 0, GALE_SPAN_MAX_US - 1, GALE_SPAN_MAX_US - 1),
	};

	(void)state;
	EXPECT_FRESH(gale_sliding_log(3, GALE_SPAN_MAX_US), rows);
}

#define FULL LONG_OR_BRIEF(GALE_LOG_LIMIT_MAX, GALE_LOG_LIMIT_MAX / 4)

/* The one state that is too long for a struct key. */
static void a_full_log_holds_a_stamp_for_each_unit(void **state)
{
	struct gale_rule config = gale_sliding_log(FULL, SEC(1));
	uint64_t *words = calloc(3 + 2 * FULL, sizeof(*words));
	struct rule rule;
	size_t count;

	(void)state;
	assert_non_null(words);
	assert_int_equal(rule_compile(&config, &rule), GALE_ERR_OK);
	for (uint64_t now = 0; now < FULL; now++)
		assert_int_equal(rule_step(&rule, words, now, 1).verdict, GALE_ALLOW);
	count = rule_words(&rule, words);
	assert_int_equal(count, 1 + 2 * FULL);
	assert_true(rule_valid(&rule, words, count));
	assert_int_equal(rule_step(&rule, words, FULL, 1).retry_after_us,
	                 SEC(1) - FULL);
	assert_int_equal(rule_step(&rule, words, FULL, 9).retry_after_us,
	                 SEC(1) - FULL + 8);
	assert_int_equal(rule_step(&rule, words, SEC(1), 1).verdict, GALE_ALLOW);
	assert_int_equal(rule_words(&rule, words), count);
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_five_a_second),
		cmocka_unit_test(golden_five_a_second_from_zero),
		cmocka_unit_test(counts_down_then_waits_for_the_oldest),
		cmocka_unit_test(a_stamp_exactly_a_window_old_is_gone),
		cmocka_unit_test(a_boundary_does_not_open_the_window),
		cmocka_unit_test(a_denial_waits_for_as_many_stamps_as_it_needs),
		cmocka_unit_test(a_cost_is_that_many_units_of_one_stamp),
		cmocka_unit_test(a_cost_above_the_limit_can_never_pass),
		cmocka_unit_test(a_peek_does_not_see_what_has_left_the_window),
		cmocka_unit_test(a_peek_at_a_full_log_waits_for_the_oldest),
		cmocka_unit_test(a_forecast_knows_the_oldest_and_the_newest),
		cmocka_unit_test(calls_of_one_instant_share_a_stamp),
		cmocka_unit_test(an_admission_drops_the_stamps_that_no_longer_count),
		cmocka_unit_test(a_denial_drops_nothing),
		cmocka_unit_test(an_older_clock_is_answered_at_the_newest_stamp),
		cmocka_unit_test(alternating_clocks_admit_one_window),
		cmocka_unit_test(skewed_clocks_get_at_most_two_windows),
		cmocka_unit_test(the_smallest_window_is_a_microsecond),
		cmocka_unit_test(the_largest_window_and_cost_are_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
		cmocka_unit_test(a_full_log_holds_a_stamp_for_each_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
