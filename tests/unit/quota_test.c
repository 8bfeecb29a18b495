/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * quota_test.c -- so many units per calendar period, and the calendar itself.
 */
#include "tests/unit/vectors.h"

#include "engine/calendar.h"

#define MAY_28_NOON MS(1779969600000) /* 2026-05-28 12:00, a Thursday */
#define MAY_28 MS(1779926400000)
#define MAY_29 MS(1780012800000)
#define JUN_1 MS(1780272000000)
#define JUL_1 MS(1782864000000)
#define IST_MINUTES 330
#define IST MS(19800000)

static void expect_period(struct gale_rule quota, uint64_t now_us, uint64_t start_us,
                          uint64_t end_us)
{
	struct period period = quota_period(&quota, now_us);

	assert_int_equal(period.start_us, start_us);
	assert_int_equal(period.end_us, end_us);
}

/* ---- The calendar ---------------------------------------------------------------- */

static void the_first_of_1970_is_day_0(void **state)
{
	(void)state;
	assert_int_equal(days_from_civil(1970, 1, 1), 0);
	assert_int_equal(days_from_civil(1969, 12, 31), -1);
	assert_int_equal(days_from_civil(2000, 2, 29), 11016);
	assert_int_equal(days_from_civil(2026, 5, 28), 20601);
}

static void days_and_dates_are_each_others_inverse(void **state)
{
	unsigned month, day;
	int64_t year;

	(void)state;
	for (int64_t days = -200000; days <= 200000; days += 7) {
		civil_from_days(days, &year, &month, &day);
		assert_in_range(month, 1, 12);
		assert_in_range(day, 1, 31);
		assert_int_equal(days_from_civil(year, month, day), days);
	}
}

static bool leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Counted day by day, by the rule that everyone knows. */
static void each_day_follows_the_one_before(void **state)
{
	static const unsigned lengths[] = { 31, 28, 31, 30, 31, 30,
		                            31, 31, 30, 31, 30, 31 };
	unsigned month = 1, day = 1, got_month, got_day;
	int64_t year = 1600, got_year;

	(void)state;
	for (int64_t days = -135140; days < 11323; days++) {
		civil_from_days(days, &got_year, &got_month, &got_day);
		assert_int_equal(got_year, year);
		assert_int_equal(got_month, month);
		assert_int_equal(got_day, day);
		if (day++ < lengths[month - 1] + (month == 2 && leap(year)))
			continue;
		day = 1;
		month = month % 12 + 1;
		year += month == 1;
	}
	assert_int_equal(year, 2001);
}

/* ---- Periods --------------------------------------------------------------------- */

static void months_have_their_own_lengths(void **state)
{
	struct gale_rule monthly = gale_quota_monthly(1, 0);

	(void)state;
	expect_period(monthly, MAY_28_NOON, MS(1777593600000), JUN_1);
	expect_period(monthly, JUN_1 - 1, MS(1777593600000), JUN_1);
	expect_period(monthly, JUN_1, JUN_1, JUL_1);
	/* February 2024 has 29 days, that of 2023 has 28; December 2025 ends a year. */
	expect_period(monthly, MS(1706745600000), MS(1706745600000), MS(1709251200000));
	expect_period(monthly, MS(1675209600000), MS(1675209600000), MS(1677628800000));
	expect_period(monthly, MS(1764547200000), MS(1764547200000), MS(1767225600000));
}

static void a_day_goes_from_midnight_to_midnight(void **state)
{
	(void)state;
	expect_period(gale_quota_daily(1, 0), MAY_28_NOON, MAY_28, MAY_29);
	expect_period(gale_quota_daily(1, 0), MAY_29 - 1, MAY_28, MAY_29);
	expect_period(gale_quota_daily(1, 0), MAY_29, MAY_29, MAY_29 + GALE_DAYS(1));
}

static void a_week_starts_on_the_day_that_was_asked_for(void **state)
{
	(void)state;
	expect_period(gale_quota_weekly(1, 0, 1), MAY_28_NOON, MS(1779667200000),
	              JUN_1);
	expect_period(gale_quota_weekly(1, 0, 0), MAY_28_NOON, MS(1779580800000),
	              MS(1780185600000));
	expect_period(gale_quota_weekly(1, 0, 4), MAY_28_NOON, MAY_28,
	              MAY_28 + GALE_DAYS(7));
	expect_period(gale_quota_weekly(1, 0, 5), MAY_28_NOON, MAY_29 - GALE_DAYS(7),
	              MAY_29);
}

/* 18:40 on 31 January is already February in India. */
static void an_offset_moves_the_boundaries(void **state)
{
	uint64_t jan_31 = MS(1706726400000), feb_1 = MS(1706731200000);

	(void)state;
	expect_period(gale_quota_monthly(1, 0), jan_31, MS(1704067200000),
	              MS(1706745600000));
	expect_period(gale_quota_monthly(1, IST_MINUTES), jan_31,
	              MS(1706745600000) - IST, MS(1709251200000) - IST);
	expect_period(gale_quota_daily(1, IST_MINUTES), feb_1, MS(1706745600000) - IST,
	              MS(1706832000000) - IST);
	expect_period(gale_quota_weekly(1, IST_MINUTES, 1), feb_1,
	              MS(1706486400000) - IST, MS(1707091200000) - IST);
}

static void the_widest_offsets_are_fourteen_hours(void **state)
{
	(void)state;
	expect_period(gale_quota_daily(1, 840), MAY_28_NOON, MAY_29 - GALE_HOURS(14),
	              MAY_29 + GALE_HOURS(10));
	expect_period(gale_quota_daily(1, -840), MAY_28_NOON, MAY_28 - GALE_HOURS(10),
	              MAY_28 + GALE_HOURS(14));
}

static void anchored_periods_follow_each_other_from_the_anchor(void **state)
{
	(void)state;
	expect_period(gale_quota_anchored(1, SEC(1), 0), MS(2500), MS(2000), MS(3000));
	expect_period(gale_quota_anchored(1, SEC(1), MS(500)), MS(600), MS(500),
	              MS(1500));
	expect_period(gale_quota_anchored(1, SEC(1), MS(500)), MS(1500), MS(1500),
	              MS(2500));
	expect_period(gale_quota_anchored(1, MS(7), MS(12345)), MS(11), MS(11), MS(18));
}

static void a_start_before_1970_is_taken_as_0(void **state)
{
	(void)state;
	expect_period(gale_quota_anchored(1, SEC(1), MS(500)), MS(100), 0, MS(500));
	expect_period(gale_quota_daily(1, -60), 0, 0, GALE_HOURS(1));
	expect_period(gale_quota_daily(1, 60), 0, 0, GALE_HOURS(23));
	expect_period(gale_quota_weekly(1, 0, 1), 0, 0, GALE_DAYS(4));
	expect_period(gale_quota_weekly(1, 0, 4), 0, 0, GALE_DAYS(7));
	expect_period(gale_quota_monthly(1, -840), GALE_HOURS(13), 0, GALE_HOURS(14));
}

static void the_calendar_reaches_to_the_last_instant(void **state)
{
	(void)state;
	/* 2^52 us is 2112-09-17 23:53:47.370496, a Saturday. */
	expect_period(gale_quota_monthly(1, 0), INSTANT_MAX_US, MS(4502131200000),
	              MS(4504723200000));
	expect_period(gale_quota_daily(1, 0), INSTANT_MAX_US, MS(4503513600000),
	              MS(4503600000000));
	expect_period(gale_quota_weekly(1, 840, 6), INSTANT_MAX_US, MS(4503463200000),
	              MS(4504068000000));
	expect_period(gale_quota_anchored(1, GALE_SPAN_MAX_US, INSTANT_MAX_US),
	              INSTANT_MAX_US, INSTANT_MAX_US,
	              INSTANT_MAX_US + GALE_SPAN_MAX_US);
}

/* Periods touch, and each instant lies in its own: CALENDAR-1, CALENDAR-2. */
static void each_period_ends_where_the_next_begins(void **state)
{
	struct gale_rule quotas[] = {
		gale_quota_monthly(1, -840),
		gale_quota_monthly(1, 330),
		gale_quota_weekly(1, 60, 6),
		gale_quota_daily(1, 840),
		gale_quota_anchored(1, GALE_DAYS(11), INSTANT_MAX_US),
	};
	struct period period, next;

	(void)state;
	for (size_t i = 0; i < COUNT(quotas); i++) {
		period = quota_period(&quotas[i], 0);
		assert_int_equal(period.start_us, 0);
		while (period.end_us <= INSTANT_MAX_US) {
			next = quota_period(&quotas[i], period.end_us);
			assert_int_equal(next.start_us, period.end_us);
			assert_true(next.end_us > next.start_us);
			expect_period(quotas[i], next.start_us + 1, next.start_us,
			              next.end_us);
			period = quota_period(&quotas[i], period.end_us);
		}
	}
}

/* ---- Counting -------------------------------------------------------------------- */

static void three_a_month_then_the_first_of_june(void **state)
{
	static const struct row rows[] = {
		ALLOW(MAY_28_NOON, 1, 3, 2, MS(302400000)),
		ALLOW(MAY_28_NOON, 1, 3, 1, MS(302400000)),
		ALLOW(MAY_28_NOON, 1, 3, 0, MS(302400000)),
		DENY(MAY_28_NOON, 1, 3, 0, MS(302400000), MS(302400000)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_monthly(3, 0), rows);
}

static void midnight_of_the_first_opens_a_fresh_month(void **state)
{
	static const struct row rows[] = {
		ALLOW(JUN_1 - GALE_HOURS(1), 2, 2, 0, GALE_HOURS(1)),
		DENY(JUN_1 - GALE_HOURS(1), 1, 2, 0, GALE_HOURS(1), GALE_HOURS(1)),
		DENY(JUN_1 - 1, 1, 2, 0, 1, 1),
		ALLOW(JUN_1, 1, 2, 1, GALE_DAYS(30)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_monthly(2, 0), rows);
}

/* The predecessor answers with the boundary as a retry, at which it denies again. */
static void a_cost_above_the_limit_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(MAY_28_NOON, 4, 3, 3, MS(302400000), GALE_NEVER),
		ALLOW(MAY_28_NOON, 1, 3, 2, MS(302400000)),
		DENY(MAY_28_NOON, 4, 3, 2, MS(302400000), GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_monthly(3, 0), rows); /* RULE-5 */
}

static void an_anchored_quota_counts_by_its_anchor(void **state)
{
	static const struct row aligned[] = {
		ALLOW(MS(2500), 1, 5, 4, MS(500)),
	};
	static const struct row shifted[] = {
		ALLOW(MS(100), 1, 1, 0, MS(400)),
		DENY(MS(499), 1, 1, 0, MS(1), MS(1)),
		ALLOW(MS(600), 1, 1, 0, MS(900)),
		DENY(MS(1499), 1, 1, 0, MS(1), MS(1)),
		ALLOW(MS(1500), 1, 1, 0, MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_anchored(5, SEC(1), 0), aligned);
	EXPECT_FRESH(gale_quota_anchored(1, SEC(1), MS(500)), shifted);
}

static void a_local_day_ends_at_local_midnight(void **state)
{
	static const struct row rows[] = {
		ALLOW(MAY_29 - IST - 1, 1, 1, 0, 1),
		DENY(MAY_29 - IST - 1, 1, 1, 0, 1, 1),
		ALLOW(MAY_29 - IST, 1, 1, 0, GALE_DAYS(1)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_daily(1, IST_MINUTES), rows);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_what_remains_and_takes_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, gale_quota_daily(1, 0));
	EXPECT_PEEK(&key, ALLOW(MAY_28_NOON, 1, 1, 1, GALE_HOURS(12)));
	assert_int_equal(key_drain(&key, MAY_28_NOON, 1), 1);
	EXPECT_PEEK(&key, DENY(MAY_28_NOON, 1, 1, 0, GALE_HOURS(12), GALE_HOURS(12)));
	EXPECT_PEEK(&key, ALLOW(MAY_29, 1, 1, 1, GALE_DAYS(1)));
}

static void a_forecast_knows_the_end_of_the_period(void **state)
{
	struct key key;

	(void)state;
	expect_forecast_of_five(__func__, gale_quota_monthly(5, 0), 2);
	expect_forecast_of_five(__func__, gale_quota_weekly(5, 0, 1), 2);
	expect_forecast_of_five(__func__, gale_quota_daily(5, 0), 2);
	expect_forecast_of_five(__func__, gale_quota_anchored(5, SEC(7), MS(3)), 2);
	expect_forecast_of_five(__func__, gale_quota_rolling(5, SEC(7)), 2);
	key_open(&key, gale_quota_daily(5, 0));
	assert_int_equal(key_step(&key, MAY_28, 1).verdict, GALE_ALLOW);
	EXPECT_FORECAST(&key, MAY_28_NOON, 2, { 2, GALE_HOURS(12), GALE_HOURS(12) });
	EXPECT_FORECAST(&key, MAY_29, 2, { 2, 0, 0 });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* WINDOW-2 */
static void an_older_clock_is_answered_in_the_stored_period(void **state)
{
	static const struct row rows[] = {
		ALLOW(JUN_1, 1, 3, 2, GALE_DAYS(30)),
		ALLOW(MAY_28_NOON, 1, 3, 1, GALE_DAYS(30)),
		ALLOW(0, 1, 3, 0, GALE_DAYS(30)),
		DENY(JUN_1 - 1, 1, 3, 0, GALE_DAYS(30), GALE_DAYS(30)),
		DENY(JUL_1 - 1, 1, 3, 0, 1, 1),
		ALLOW(JUL_1, 1, 3, 2, GALE_DAYS(31)),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_monthly(3, 0), rows);
}

/* The predecessor compares periods by equality and admits all. */
static void alternating_clocks_get_at_most_two_periods(void **state)
{
	struct gale_rule quotas[] = {
		gale_quota_monthly(10, 0),
		gale_quota_weekly(10, 0, 1), /* 1 June is a Monday */
		gale_quota_daily(10, 0),
		gale_quota_anchored(10, SEC(9), JUN_1),
	};
	struct key key;
	uint64_t admitted;

	(void)state;
	for (size_t i = 0; i < COUNT(quotas); i++) {
		key_open(&key, quotas[i]);
		assert_int_equal(key_alternate(&key, JUN_1 - 1, JUN_1, 200), 1 + 10);
		key_open(&key, quotas[i]);
		admitted = key_drain(&key, JUN_1 - 1, 100);
		admitted += key_alternate(&key, JUN_1, JUN_1 - 1, 200);
		assert_int_equal(admitted, 20);
	}
}

/* ---- Extremes -------------------------------------------------------------------- */

static void the_largest_limits_are_exact(void **state)
{
	static const struct row anchored[] = {
		ALLOW(0, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US),
		DENY(0, 2, GALE_UNITS_MAX, 1, GALE_SPAN_MAX_US, GALE_SPAN_MAX_US),
		ALLOW(0, 1, GALE_UNITS_MAX, 0, GALE_SPAN_MAX_US),
		DENY(GALE_SPAN_MAX_US - 1, 1, GALE_UNITS_MAX, 0, 1, 1),
		ALLOW(GALE_SPAN_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 0,
		      GALE_SPAN_MAX_US),
		ALLOW(INSTANT_MAX_US - 1, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 1),
		ALLOW(INSTANT_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 0,
		      GALE_SPAN_MAX_US),
	};
	static const struct row daily[] = {
		ALLOW(INSTANT_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 372629504),
		DENY(INSTANT_MAX_US + 1, 1, GALE_UNITS_MAX, 0, 372629504, 372629504),
		DENY(UINT64_MAX, 1, GALE_UNITS_MAX, 0, 372629504, 372629504),
	};

	(void)state;
	EXPECT_FRESH(
	    gale_quota_anchored(GALE_UNITS_MAX, GALE_SPAN_MAX_US, INSTANT_MAX_US),
	    anchored);
	EXPECT_FRESH(gale_quota_daily(GALE_UNITS_MAX, 0), daily);
}

static void the_smallest_period_is_a_microsecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 1, 0, 1), DENY(0, 1, 1, 0, 1, 1), ALLOW(1, 1, 1, 0, 1),
		ALLOW(9, 1, 1, 0, 1), DENY(9, 1, 1, 0, 1, 1),
	};

	(void)state;
	EXPECT_FRESH(gale_quota_anchored(1, 1, 7), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_1970_is_day_0),
		cmocka_unit_test(days_and_dates_are_each_others_inverse),
		cmocka_unit_test(each_day_follows_the_one_before),
		cmocka_unit_test(months_have_their_own_lengths),
		cmocka_unit_test(a_day_goes_from_midnight_to_midnight),
		cmocka_unit_test(a_week_starts_on_the_day_that_was_asked_for),
		cmocka_unit_test(an_offset_moves_the_boundaries),
		cmocka_unit_test(the_widest_offsets_are_fourteen_hours),
		cmocka_unit_test(anchored_periods_follow_each_other_from_the_anchor),
		cmocka_unit_test(a_start_before_1970_is_taken_as_0),
		cmocka_unit_test(the_calendar_reaches_to_the_last_instant),
		cmocka_unit_test(each_period_ends_where_the_next_begins),
		cmocka_unit_test(three_a_month_then_the_first_of_june),
		cmocka_unit_test(midnight_of_the_first_opens_a_fresh_month),
		cmocka_unit_test(a_cost_above_the_limit_can_never_pass),
		cmocka_unit_test(an_anchored_quota_counts_by_its_anchor),
		cmocka_unit_test(a_local_day_ends_at_local_midnight),
		cmocka_unit_test(a_peek_tells_what_remains_and_takes_nothing),
		cmocka_unit_test(a_forecast_knows_the_end_of_the_period),
		cmocka_unit_test(an_older_clock_is_answered_in_the_stored_period),
		cmocka_unit_test(alternating_clocks_get_at_most_two_periods),
		cmocka_unit_test(the_largest_limits_are_exact),
		cmocka_unit_test(the_smallest_period_is_a_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
