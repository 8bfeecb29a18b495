/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * token_budget_test.c -- debits after the fact: pass while anything is left.
 */
#include "tests/unit/vectors.h"

/* ---- The golden suites ----------------------------------------------------------- */

static void golden_one_token_at_a_time(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 5, 4, MS(60000)), ALLOW(0, 1, 5, 3, MS(60000)),
		ALLOW(0, 1, 5, 2, MS(60000)), ALLOW(0, 1, 5, 1, MS(60000)),
		ALLOW(0, 1, 5, 0, MS(60000)), DENY(0, 1, 5, 0, MS(60000), MS(60000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(5, SEC(60)), rows);
}

static void golden_the_crossing_debit_counts_in_full(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 80, 100, 20, MS(60000)),
		ALLOW(0, 50, 100, 0, MS(60000)), /* overshoots by 30 */
		DENY(0, 1, 100, 0, MS(60000), MS(60000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(100, SEC(60)), rows);
}

/* ---- Its own edges --------------------------------------------------------------- */

static void a_spent_budget_passes_nothing_until_the_window_turns(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(1200), 9, 10, 1, MS(800)),
		ALLOW(MS(1300), 9, 10, 0, MS(700)),
		DENY(MS(1400), 1, 10, 0, MS(600), MS(600)),
		DENY(MS(1999), 1, 10, 0, MS(1), MS(1)),
		ALLOW(MS(2000), 10, 10, 0, MS(1000)),
		DENY(MS(2000), 1, 10, 0, MS(1000), MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(10, SEC(1)), rows);
}

/* The one rule without an impossible cost: RULE-5 never applies. */
static void no_debit_is_too_large(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX, 1, 0, MS(1000)),
		DENY(MS(1), GALE_UNITS_MAX, 1, 0, MS(999), MS(999)),
		ALLOW(MS(1000), 2, 1, 0, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(1, SEC(1)), rows);
}

/* WINDOW-1 */
static void the_overshoot_is_less_than_the_last_debit(void **state)
{
	struct key key;
	uint64_t used = 0, debit = 1;

	(void)state;
	key_open(&key, gale_token_budget(1000, SEC(60)));
	while (key_step(&key, 0, debit).verdict == GALE_ALLOW) {
		used += debit;
		assert_true(used < 1000 + debit);
		debit = debit * 7 % 97;
	}
	assert_true(used >= 1000);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_token_budget(5, SEC(1)));
	EXPECT_PEEK(&key, ALLOW(MS(100), 1, 5, 5, MS(900)));
	assert_int_equal(key_step(&key, MS(100), 4).verdict, GALE_ALLOW);
	EXPECT_PEEK(&key, ALLOW(MS(200), 1, 5, 1, MS(800)));
	assert_int_equal(key_step(&key, MS(200), 4).verdict, GALE_ALLOW);
	EXPECT_PEEK(&key, DENY(MS(200), 1, 5, 0, MS(800), MS(800)));
	EXPECT_PEEK(&key, ALLOW(MS(1000), 1, 5, 5, MS(1000)));
}

/* The last call may cross, so what is spendable is rounded up. */
static void a_forecast_counts_the_crossing_debit(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_token_budget(5, SEC(1)), 3);
	key_open(&key, gale_token_budget(5, SEC(1)));
	assert_int_equal(key_step(&key, MS(250), 3).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MS(250), 1, { 2, MS(750), MS(750) });
	EXPECT_FORECAST(&key, MS(250), 2, { 1, MS(750), MS(750) });
	EXPECT_FORECAST(&key, MS(250), 3, { 1, MS(750), MS(750) });
	EXPECT_FORECAST(&key, MS(1000), 3, { 2, 0, 0 });
	assert_int_equal(key_step(&key, MS(300), 9).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MS(300), 1, { 0, MS(700), MS(700) });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* WINDOW-2 */
static void an_older_clock_is_answered_in_the_stored_window(void **state)
{
	static const struct row rows[] = {
		ALLOW(MS(2000), 4, 5, 1, MS(1000)),
		ALLOW(MS(1500), 4, 5, 0, MS(1000)),
		DENY(0, 1, 5, 0, MS(1000), MS(1000)),
		DENY(MS(2999), 1, 5, 0, MS(1), MS(1)),
		ALLOW(MS(3000), 1, 5, 4, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(5, SEC(1)), rows);
}

static void alternating_clocks_get_at_most_two_windows(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, gale_token_budget(10, SEC(1)));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 1 + 10);

	key_open(&key, gale_token_budget(10, SEC(1)));
	admitted = key_drain(&key, MS(999), 100);
	admitted += key_alternate(&key, MS(1001), MS(999), 200);
	assert_int_equal(admitted, 20);
}

/* ---- Extremes -------------------------------------------------------------------- */

static void what_is_used_stops_below_two_to_the_53(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, GALE_UNITS_MAX, GALE_UNITS_MAX - 1, GALE_SPAN_MAX_US),
		ALLOW(0, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US),
	};
	static const struct row crossing[] = {
		ALLOW(0, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US),
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US - 1, 1, GALE_UNITS_MAX, 0, 1, 1),
		ALLOW(GALE_SPAN_MAX_US, 1, GALE_UNITS_MAX, GALE_UNITS_MAX - 1,
		      GALE_SPAN_MAX_US),
	};
	struct key key;

	(void)state;
	EXPECT_FRESH(gale_token_budget(GALE_UNITS_MAX, GALE_SPAN_MAX_US), rows);
	key_open(&key, gale_token_budget(GALE_UNITS_MAX, GALE_SPAN_MAX_US));
	EXPECT_ROWS(&key, crossing);
}

static void the_smallest_window_is_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 1),
		DENY(0, 1, 1, 0, 1, 1),
		ALLOW(1, GALE_UNITS_MAX, 1, 0, 1),
		DENY(1, 1, 1, 0, 1, 1),
		ALLOW(INSTANT_MAX_US, 1, 1, 0, 1),
		DENY(INSTANT_MAX_US + 1, 1, 1, 0, 1, 1),
	};

	(void)state;
	EXPECT_FRESH(gale_token_budget(1, 1), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_one_token_at_a_time),
		cmocka_unit_test(golden_the_crossing_debit_counts_in_full),
		cmocka_unit_test(a_spent_budget_passes_nothing_until_the_window_turns),
		cmocka_unit_test(no_debit_is_too_large),
		cmocka_unit_test(the_overshoot_is_less_than_the_last_debit),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_counts_the_crossing_debit),
		cmocka_unit_test(an_older_clock_is_answered_in_the_stored_window),
		cmocka_unit_test(alternating_clocks_get_at_most_two_windows),
		cmocka_unit_test(what_is_used_stops_below_two_to_the_53),
		cmocka_unit_test(the_smallest_window_is_a_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
