/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * compile_test.c -- rules as configured: what is accepted, and what is refused by name.
 */
#include "tests/support/whys.h"
#include "tests/unit/vectors.h"

#include <string.h>

/* ---- Constructors ---------------------------------------------------------------- */

struct constructed {
	struct gale_rule got;
	struct gale_rule expected;
};

static void expect_parts(const struct gale_rule *a, const struct gale_rule *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->cadence, b->cadence);
	assert_int_equal(a->limit, b->limit);
	assert_int_equal(a->period_us, b->period_us);
	assert_int_equal(a->burst, b->burst);
	assert_int_equal(a->buckets, b->buckets);
	assert_int_equal(a->max_wait_us, b->max_wait_us);
	assert_int_equal(a->anchor_us, b->anchor_us);
	assert_int_equal(a->utc_offset_minutes, b->utc_offset_minutes);
	assert_int_equal(a->first_weekday, b->first_weekday);
}

static void each_constructor_fills_its_parts_and_no_others(void **state)
{
	struct constructed rows[] = {
		{ gale_fixed_window(5, 7),
		  { .kind = GALE_RULE_FIXED_WINDOW, .limit = 5, .period_us = 7 } },
		{ gale_sliding_window(5, 7, 3),
		  { .kind = GALE_RULE_SLIDING_WINDOW,
		    .limit = 5,
		    .period_us = 7,
		    .buckets = 3 } },
		{ gale_sliding_log(5, 7),
		  { .kind = GALE_RULE_SLIDING_LOG, .limit = 5, .period_us = 7 } },
		{ gale_gcra(5, 7, 3),
		  { .kind = GALE_RULE_GCRA, .limit = 5, .period_us = 7, .burst = 3 } },
		{ gale_token_bucket(/* capacity= */ 5, /* refill= */ 3, 7),
		  { .kind = GALE_RULE_TOKEN_BUCKET,
		    .limit = 3,
		    .period_us = 7,
		    .burst = 5 } },
		{ gale_leaky_bucket(5, 7, 9),
		  { .kind = GALE_RULE_PACER,
		    .limit = 5,
		    .period_us = 7,
		    .max_wait_us = 9 } },
		{ gale_quota_monthly(5, -60),
		  { .kind = GALE_RULE_QUOTA,
		    .cadence = GALE_MONTHLY,
		    .limit = 5,
		    .utc_offset_minutes = -60 } },
		{ gale_quota_weekly(5, 90, 6),
		  { .kind = GALE_RULE_QUOTA,
		    .cadence = GALE_WEEKLY,
		    .limit = 5,
		    .utc_offset_minutes = 90,
		    .first_weekday = 6 } },
		{ gale_quota_daily(5, 840),
		  { .kind = GALE_RULE_QUOTA,
		    .cadence = GALE_DAILY,
		    .limit = 5,
		    .utc_offset_minutes = 840 } },
		{ gale_quota_anchored(5, 7, 9),
		  { .kind = GALE_RULE_QUOTA,
		    .cadence = GALE_ANCHORED,
		    .limit = 5,
		    .period_us = 7,
		    .anchor_us = 9 } },
		{ gale_quota_rolling(5, 70),
		  { .kind = GALE_RULE_SLIDING_WINDOW,
		    .limit = 5,
		    .period_us = 70,
		    .buckets = 10 } },
		{ gale_token_budget(5, 7),
		  { .kind = GALE_RULE_TOKEN_BUDGET, .limit = 5, .period_us = 7 } },
		{ gale_pacer(5, 7, 3),
		  { .kind = GALE_RULE_PACER,
		    .limit = 5,
		    .period_us = 7,
		    .burst = 3,
		    .max_wait_us = GALE_SPAN_MAX_US } },
		{ gale_pacer_limit(5, 7, 3),
		  { .kind = GALE_RULE_PACER, .limit = 5, .period_us = 7, .burst = 3 } },
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		expect_parts(&rows[i].got, &rows[i].expected);
		assert_int_equal(rows[i].got.allowance_permille != 0,
		                 rows[i].got.kind == GALE_RULE_PACER);
		assert_int_equal(rule_compile(&rows[i].got, &rule), GALE_ERR_OK);
		expect_parts(&rule.is, &rows[i].got);
	}
}

static void a_pacer_earns_at_half_the_rate_and_a_limit_at_all_of_it(void **state)
{
	(void)state;
	assert_int_equal(gale_pacer(5, 7, 3).allowance_permille, 500);
	assert_int_equal(gale_pacer_limit(5, 7, 3).allowance_permille, 1000);
}

/* ---- What is refused, and what just is not --------------------------------------- */

struct compiled {
	enum gale_err err;
	struct gale_rule rule;
};

static struct gale_rule with_wait(struct gale_rule rule, uint64_t max_wait_us)
{
	rule.max_wait_us = max_wait_us;
	return rule;
}

static struct gale_rule with_allowance(struct gale_rule rule, uint32_t permille)
{
	rule.allowance_permille = permille;
	return rule;
}

static struct gale_rule with_kind(struct gale_rule rule, int kind)
{
	rule.kind = (enum gale_rule_kind)kind;
	return rule;
}

static struct gale_rule with_cadence(struct gale_rule rule, int cadence)
{
	rule.cadence = (enum gale_cadence)cadence;
	return rule;
}

#define UNITS_END (GALE_UNITS_MAX + 1)
#define SPAN_END (GALE_SPAN_MAX_US + 1)
#define PACE_END (GALE_PACE_PERIOD_MAX_US + 1)

static void expect_compiled(const struct compiled *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rule rule, before;
		enum gale_err err;

		memset(&rule, 0x5a, sizeof(rule));
		before = rule;
		err = rule_compile(&rows[i].rule, &rule);
		if (err != rows[i].err)
			fail_msg("row %zu: expected \"%s\", got \"%s\"", i + 1,
			         gale_err_text(rows[i].err), gale_err_text(err));
		if (err != GALE_ERR_OK)
			assert_memory_equal(&rule, &before, sizeof(rule));
	}
}

#define EXPECT_COMPILED(rows) expect_compiled(rows, COUNT(rows))

static void a_kind_is_one_of_those_named(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_KIND, { .kind = GALE_RULE_NONE } },
		{ GALE_ERR_RULE_KIND,
		  with_kind(gale_fixed_window(5, 7), GALE_RULE_NONE) },
		{ GALE_ERR_RULE_KIND,
		  with_kind(gale_fixed_window(5, 7), GALE_RULE_CUSTOM + 1) },
		{ GALE_ERR_RULE_KIND, with_kind(gale_fixed_window(5, 7), 1000) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_cadence_is_for_quotas_which_need_one(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_quota_daily(5, 0), GALE_CADENCE_NONE) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_quota_daily(5, 0), GALE_ANCHORED + 1) },
		{ GALE_ERR_RULE_CADENCE, with_cadence(gale_quota_daily(5, 0), 1000) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_fixed_window(5, 7), GALE_DAILY) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_sliding_window(5, 70, 10), GALE_ANCHORED) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_sliding_log(5, 7), GALE_DAILY) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_gcra(5, 7, 3), GALE_MONTHLY) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_token_bucket(5, 3, 7), GALE_DAILY) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_token_budget(5, 7), GALE_WEEKLY) },
		{ GALE_ERR_RULE_CADENCE,
		  with_cadence(gale_pacer(5, 7, 3), GALE_DAILY) },
		{ GALE_ERR_OK, with_cadence(gale_quota_daily(5, 0), GALE_MONTHLY) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_limit_is_at_least_one(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(0, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_sliding_window(0, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_sliding_log(0, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_gcra(0, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_token_bucket(5, 0, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_leaky_bucket(0, 7, 9) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_monthly(0, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_weekly(0, 0, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_daily(0, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_anchored(0, 7, 9) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_rolling(0, 70) },
		{ GALE_ERR_RULE_LIMIT, gale_token_budget(0, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_pacer(0, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_pacer_limit(0, 7, 3) },
		{ GALE_ERR_OK, gale_fixed_window(1, 7) },
		{ GALE_ERR_OK, gale_sliding_window(1, 7, 3) },
		{ GALE_ERR_OK, gale_sliding_log(1, 7) },
		{ GALE_ERR_OK, gale_gcra(1, 7, 3) },
		{ GALE_ERR_OK, gale_token_bucket(5, 1, 7) },
		{ GALE_ERR_OK, gale_leaky_bucket(1, 7, 9) },
		{ GALE_ERR_OK, gale_quota_monthly(1, 0) },
		{ GALE_ERR_OK, gale_quota_weekly(1, 0, 0) },
		{ GALE_ERR_OK, gale_quota_daily(1, 0) },
		{ GALE_ERR_OK, gale_quota_anchored(1, 7, 9) },
		{ GALE_ERR_OK, gale_quota_rolling(1, 70) },
		{ GALE_ERR_OK, gale_token_budget(1, 7) },
		{ GALE_ERR_OK, gale_pacer(1, 7, 3) },
		{ GALE_ERR_OK, gale_pacer_limit(1, 7, 3) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_limit_is_below_two_to_the_53(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(UNITS_END, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_sliding_window(UNITS_END, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_gcra(UNITS_END, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_token_bucket(5, UNITS_END, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_leaky_bucket(UNITS_END, 7, 9) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_monthly(UNITS_END, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_weekly(UNITS_END, 0, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_daily(UNITS_END, 0) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_anchored(UNITS_END, 7, 9) },
		{ GALE_ERR_RULE_LIMIT, gale_quota_rolling(UNITS_END, 70) },
		{ GALE_ERR_RULE_LIMIT, gale_token_budget(UNITS_END, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_pacer(UNITS_END, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_pacer_limit(UNITS_END, 7, 3) },
		{ GALE_ERR_OK, gale_fixed_window(GALE_UNITS_MAX, 7) },
		{ GALE_ERR_OK, gale_sliding_window(GALE_UNITS_MAX, 7, 3) },
		{ GALE_ERR_OK, gale_gcra(GALE_UNITS_MAX, 7, 3) },
		{ GALE_ERR_OK, gale_token_bucket(5, GALE_UNITS_MAX, 7) },
		{ GALE_ERR_OK, gale_leaky_bucket(GALE_UNITS_MAX, 7, 9) },
		{ GALE_ERR_OK, gale_quota_monthly(GALE_UNITS_MAX, 0) },
		{ GALE_ERR_OK, gale_quota_weekly(GALE_UNITS_MAX, 0, 0) },
		{ GALE_ERR_OK, gale_quota_daily(GALE_UNITS_MAX, 0) },
		{ GALE_ERR_OK, gale_quota_anchored(GALE_UNITS_MAX, 7, 9) },
		{ GALE_ERR_OK, gale_quota_rolling(GALE_UNITS_MAX, 70) },
		{ GALE_ERR_OK, gale_token_budget(GALE_UNITS_MAX, 7) },
		{ GALE_ERR_OK, gale_pacer(GALE_UNITS_MAX, 7, 3) },
		{ GALE_ERR_OK, gale_pacer_limit(GALE_UNITS_MAX, 7, 3) },
		{ GALE_ERR_RULE_LIMIT, gale_fixed_window(UINT64_MAX, 7) },
		{ GALE_ERR_RULE_LIMIT, gale_sliding_log(GALE_LOG_LIMIT_MAX + 1, 7) },
		{ GALE_ERR_OK, gale_sliding_log(GALE_LOG_LIMIT_MAX, 7) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_period_is_at_least_a_microsecond(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_PERIOD, gale_fixed_window(5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_sliding_window(5, 0, 1) },
		{ GALE_ERR_RULE_PERIOD, gale_sliding_log(5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_gcra(5, 0, 5) },
		{ GALE_ERR_RULE_PERIOD, gale_token_bucket(5, 5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_quota_anchored(5, 0, 9) },
		{ GALE_ERR_RULE_PERIOD, gale_token_budget(5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_quota_rolling(5, 0) },
		{ GALE_ERR_RULE_PERIOD, gale_pacer(5, 0, 3) },
		{ GALE_ERR_RULE_PERIOD, gale_pacer_limit(5, 0, 3) },
		{ GALE_ERR_RULE_PERIOD, gale_leaky_bucket(5, 0, 9) },
		{ GALE_ERR_OK, gale_fixed_window(5, 1) },
		{ GALE_ERR_OK, gale_sliding_window(5, 1, 1) },
		{ GALE_ERR_OK, gale_sliding_log(5, 1) },
		{ GALE_ERR_OK, gale_gcra(5, 1, 5) },
		{ GALE_ERR_OK, gale_token_bucket(5, 5, 1) },
		{ GALE_ERR_OK, gale_quota_anchored(5, 1, 9) },
		{ GALE_ERR_OK, gale_token_budget(5, 1) },
		{ GALE_ERR_OK, gale_pacer(5, 1, 3) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_period_is_at_most_the_longest_span(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_PERIOD, gale_fixed_window(5, SPAN_END) },
		{ GALE_ERR_RULE_PERIOD, gale_sliding_window(5, SPAN_END, 1) },
		{ GALE_ERR_RULE_PERIOD, gale_sliding_log(5, SPAN_END) },
		{ GALE_ERR_RULE_PERIOD, gale_gcra(5, SPAN_END, 5) },
		{ GALE_ERR_RULE_PERIOD, gale_token_bucket(5, 5, SPAN_END) },
		{ GALE_ERR_RULE_PERIOD, gale_quota_anchored(5, SPAN_END, 9) },
		{ GALE_ERR_RULE_PERIOD, gale_token_budget(5, SPAN_END) },
		{ GALE_ERR_OK, gale_fixed_window(5, GALE_SPAN_MAX_US) },
		{ GALE_ERR_OK, gale_sliding_window(5, GALE_SPAN_MAX_US, 1) },
		{ GALE_ERR_OK, gale_sliding_log(5, GALE_SPAN_MAX_US) },
		{ GALE_ERR_OK, gale_gcra(5, GALE_SPAN_MAX_US, 5) },
		{ GALE_ERR_OK, gale_token_bucket(5, 5, GALE_SPAN_MAX_US) },
		{ GALE_ERR_OK, gale_quota_anchored(5, GALE_SPAN_MAX_US, 9) },
		{ GALE_ERR_OK, gale_token_budget(5, GALE_SPAN_MAX_US) },
		{ GALE_ERR_RULE_PERIOD, gale_fixed_window(5, UINT64_MAX) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_period_of_a_pacer_is_shorter(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_PERIOD, gale_pacer(5, PACE_END, 3) },
		{ GALE_ERR_RULE_PERIOD, gale_pacer_limit(5, PACE_END, 3) },
		{ GALE_ERR_RULE_PERIOD, gale_leaky_bucket(5, PACE_END, 9) },
		{ GALE_ERR_OK, gale_pacer(5, GALE_PACE_PERIOD_MAX_US, 3) },
		{ GALE_ERR_OK, gale_pacer_limit(5, GALE_PACE_PERIOD_MAX_US, 3) },
		{ GALE_ERR_OK, gale_leaky_bucket(5, GALE_PACE_PERIOD_MAX_US, 9) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_burst_is_at_least_one_but_for_pacers(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_BURST, gale_gcra(5, 7, 0) },
		{ GALE_ERR_RULE_BURST, gale_token_bucket(0, 5, 7) },
		{ GALE_ERR_OK, gale_gcra(5, 7, 1) },
		{ GALE_ERR_OK, gale_token_bucket(1, 5, 7) },
		{ GALE_ERR_OK, gale_pacer(5, 7, 0) },
		{ GALE_ERR_OK, gale_pacer_limit(5, 7, 0) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_burst_is_below_two_to_the_53(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_BURST, gale_gcra(GALE_UNITS_MAX, 1, UNITS_END) },
		{ GALE_ERR_RULE_BURST,
		  gale_token_bucket(UNITS_END, GALE_UNITS_MAX, 1) },
		{ GALE_ERR_RULE_BURST, gale_pacer(GALE_UNITS_MAX, 1, UNITS_END) },
		{ GALE_ERR_RULE_BURST, gale_gcra(GALE_UNITS_MAX, 1, UINT64_MAX) },
		{ GALE_ERR_OK, gale_gcra(GALE_UNITS_MAX, 1, GALE_UNITS_MAX) },
		{ GALE_ERR_OK, gale_token_bucket(GALE_UNITS_MAX, GALE_UNITS_MAX, 1) },
		{ GALE_ERR_OK, gale_pacer(GALE_UNITS_MAX, 1, GALE_UNITS_MAX) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

/* 2^50 exactly is accepted; a pacer earns burst back at its allowance of the rate. */
static void a_burst_accrues_within_the_longest_span(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_SPAN, gale_gcra(1, GALE_SPAN_MAX_US, 2) },
		{ GALE_ERR_RULE_SPAN, gale_gcra(5, GALE_SPAN_MAX_US, 6) },
		{ GALE_ERR_RULE_SPAN, gale_gcra(1, 1, SPAN_END) },
		{ GALE_ERR_RULE_SPAN, gale_gcra(1, GALE_SPAN_MAX_US, GALE_UNITS_MAX) },
		{ GALE_ERR_OK, gale_gcra(1, GALE_SPAN_MAX_US, 1) },
		{ GALE_ERR_OK, gale_gcra(5, GALE_SPAN_MAX_US, 5) },
		{ GALE_ERR_OK, gale_gcra(1, 1, GALE_SPAN_MAX_US) },
		{ GALE_ERR_RULE_SPAN, gale_gcra(3, 3 * (UINT64_C(1) << 48), 5) },
		{ GALE_ERR_OK, gale_gcra(3, 3 * (UINT64_C(1) << 48), 4) },
		{ GALE_ERR_RULE_SPAN, gale_token_bucket(SPAN_END, 1, 1) },
		{ GALE_ERR_OK, gale_token_bucket(GALE_SPAN_MAX_US, 1, 1) },
		{ GALE_ERR_RULE_SPAN,
		  gale_pacer_limit(1, GALE_PACE_PERIOD_MAX_US, 129) },
		{ GALE_ERR_OK, gale_pacer_limit(1, GALE_PACE_PERIOD_MAX_US, 128) },
		{ GALE_ERR_RULE_SPAN, gale_pacer(1, GALE_PACE_PERIOD_MAX_US, 65) },
		{ GALE_ERR_OK, gale_pacer(1, GALE_PACE_PERIOD_MAX_US, 64) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void buckets_are_few_and_a_microsecond_or_longer(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, 1000, 0) },
		{ GALE_ERR_RULE_BUCKETS,
		  gale_sliding_window(5, 1000, GALE_BUCKETS_MAX + 1) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, 1000, UINT64_MAX) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, 7, 8) },
		{ GALE_ERR_RULE_BUCKETS, gale_sliding_window(5, 127, 128) },
		{ GALE_ERR_RULE_BUCKETS, gale_quota_rolling(5, 9) },
		{ GALE_ERR_OK, gale_sliding_window(5, 1000, 1) },
		{ GALE_ERR_OK, gale_sliding_window(5, 1000, GALE_BUCKETS_MAX) },
		{ GALE_ERR_OK, gale_sliding_window(5, 7, 7) },
		{ GALE_ERR_OK, gale_sliding_window(5, 128, 128) },
		{ GALE_ERR_OK, gale_quota_rolling(5, 10) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_wait_is_at_most_the_longest_span(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_WAIT, gale_leaky_bucket(5, 7, SPAN_END) },
		{ GALE_ERR_RULE_WAIT, with_wait(gale_pacer(5, 7, 3), SPAN_END) },
		{ GALE_ERR_RULE_WAIT, with_wait(gale_pacer(5, 7, 3), UINT64_MAX) },
		{ GALE_ERR_OK, gale_leaky_bucket(5, 7, GALE_SPAN_MAX_US) },
		{ GALE_ERR_OK, with_wait(gale_pacer(5, 7, 3), 0) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void an_anchor_is_an_instant(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_ANCHOR, gale_quota_anchored(5, 7, INSTANT_MAX_US + 1) },
		{ GALE_ERR_RULE_ANCHOR, gale_quota_anchored(5, 7, UINT64_MAX) },
		{ GALE_ERR_OK, gale_quota_anchored(5, 7, INSTANT_MAX_US) },
		{ GALE_ERR_OK, gale_quota_anchored(5, 7, 0) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void an_allowance_is_a_part_of_a_thousand(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_ALLOWANCE, with_allowance(gale_pacer(5, 7, 3), 0) },
		{ GALE_ERR_RULE_ALLOWANCE, with_allowance(gale_pacer(5, 7, 3), 1001) },
		{ GALE_ERR_RULE_ALLOWANCE,
		  with_allowance(gale_pacer(5, 7, 3), UINT32_MAX) },
		{ GALE_ERR_RULE_ALLOWANCE,
		  with_allowance(gale_pacer_limit(5, 7, 0), 0) },
		{ GALE_ERR_OK, with_allowance(gale_pacer(5, 7, 3), 1) },
		{ GALE_ERR_OK, with_allowance(gale_pacer(5, 7, 3), 1000) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void an_offset_is_at_most_fourteen_hours(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, 841) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_weekly(5, 841, 0) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_daily(5, 841) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, -841) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_weekly(5, -841, 0) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_daily(5, -841) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, 900) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, INT32_MAX) },
		{ GALE_ERR_RULE_OFFSET, gale_quota_monthly(5, INT32_MIN) },
		{ GALE_ERR_OK, gale_quota_monthly(5, 840) },
		{ GALE_ERR_OK, gale_quota_weekly(5, 840, 0) },
		{ GALE_ERR_OK, gale_quota_daily(5, 840) },
		{ GALE_ERR_OK, gale_quota_monthly(5, -840) },
		{ GALE_ERR_OK, gale_quota_weekly(5, -840, 0) },
		{ GALE_ERR_OK, gale_quota_daily(5, -840) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

static void a_weekday_is_one_of_seven(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_WEEKDAY, gale_quota_weekly(5, 0, 7) },
		{ GALE_ERR_RULE_WEEKDAY, gale_quota_weekly(5, 0, UINT32_MAX) },
		{ GALE_ERR_OK, gale_quota_weekly(5, 0, 0) },
		{ GALE_ERR_OK, gale_quota_weekly(5, 0, 6) },
	};

	(void)state;
	EXPECT_COMPILED(rows);
}

/* ---- Parts that a kind does not use ---------------------------------------------- */

enum part {
	PERIOD = 1 << 0,
	BURST = 1 << 1,
	BUCKETS = 1 << 2,
	WAIT = 1 << 3,
	ANCHOR = 1 << 4,
	ALLOWANCE = 1 << 5,
	OFFSET = 1 << 6,
	WEEKDAY = 1 << 7,
	PARTS_END = 1 << 8,
};

static void set_part(struct gale_rule *rule, unsigned part)
{
	switch (part) {
	case PERIOD:
		rule->period_us = 1;
		break;
	case BURST:
		rule->burst = 1;
		break;
	case BUCKETS:
		rule->buckets = 1;
		break;
	case WAIT:
		rule->max_wait_us = 1;
		break;
	case ANCHOR:
		rule->anchor_us = 1;
		break;
	case ALLOWANCE:
		rule->allowance_permille = 1;
		break;
	case OFFSET:
		rule->utc_offset_minutes = 1;
		break;
	case WEEKDAY:
		rule->first_weekday = 1;
		break;
	default:
		fail();
	}
}

struct used {
	struct gale_rule rule;
	unsigned parts;
};

static void what_a_kind_does_not_use_must_be_zero(void **state)
{
	struct used rows[] = {
		{ gale_fixed_window(5, 7), PERIOD },
		{ gale_sliding_window(5, 7, 3), PERIOD | BUCKETS },
		{ gale_sliding_log(5, 7), PERIOD },
		{ gale_gcra(5, 7, 3), PERIOD | BURST },
		{ gale_token_bucket(5, 3, 7), PERIOD | BURST },
		{ gale_leaky_bucket(5, 7, 9), PERIOD | BURST | WAIT | ALLOWANCE },
		{ gale_quota_monthly(5, 0), OFFSET },
		{ gale_quota_weekly(5, 0, 0), OFFSET | WEEKDAY },
		{ gale_quota_daily(5, 0), OFFSET },
		{ gale_quota_anchored(5, 7, 9), PERIOD | ANCHOR },
		{ gale_token_budget(5, 7), PERIOD },
		{ gale_pacer(5, 7, 3), PERIOD | BURST | WAIT | ALLOWANCE },
	};
	struct rule rule;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		for (unsigned part = 1; part < PARTS_END; part <<= 1) {
			struct gale_rule config = rows[i].rule;

			if (rows[i].parts & part)
				continue;
			set_part(&config, part);
			if (rule_compile(&config, &rule) != GALE_ERR_RULE_UNUSED)
				fail_msg("row %zu, part %#x", i + 1, part);
		}
}

static void a_negative_offset_is_not_zero_either(void **state)
{
	struct compiled rows[] = {
		{ GALE_ERR_RULE_UNUSED, gale_gcra(5, 7, 3) },
		{ GALE_ERR_RULE_UNUSED, gale_quota_anchored(5, 7, 9) },
	};

	(void)state;
	rows[0].rule.utc_offset_minutes = -1;
	rows[1].rule.utc_offset_minutes = -1;
	EXPECT_COMPILED(rows);
}

/* ---- What a compiled rule knows -------------------------------------------------- */

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	assert_int_equal(rule_compile(&config, &rule), GALE_ERR_OK);
	return rule;
}

static void the_capacity_is_what_a_fresh_key_allows(void **state)
{
	(void)state;
	assert_int_equal(compiled(gale_fixed_window(5, 7)).capacity, 5);
	assert_int_equal(compiled(gale_sliding_window(5, 7, 3)).capacity, 5);
	assert_int_equal(compiled(gale_sliding_log(5, 7)).capacity, 5);
	assert_int_equal(compiled(gale_gcra(5, 7, 3)).capacity, 3);
	assert_int_equal(compiled(gale_token_bucket(5, 3, 7)).capacity, 5);
	assert_int_equal(compiled(gale_quota_daily(5, 0)).capacity, 5);
	assert_int_equal(compiled(gale_token_budget(5, 7)).capacity, 5);
	assert_int_equal(compiled(gale_pacer_limit(5, 7, 3)).capacity, 4);
	/* Two whole units of 7/5 us within 3 us, and the one at 0. */
	assert_int_equal(compiled(gale_leaky_bucket(5, 7, 3)).capacity, 3);
	/* One unit takes exactly the longest wait. */
	assert_int_equal(compiled(gale_leaky_bucket(5, 35, 7)).capacity, 2);
}

static void the_capacity_stays_below_two_to_the_53(void **state)
{
	struct gale_rule all = gale_pacer(GALE_UNITS_MAX, 1, GALE_UNITS_MAX);

	(void)state;
	assert_int_equal(compiled(all).capacity, GALE_UNITS_MAX);
	assert_int_equal(
	    compiled(gale_pacer_limit(1, 1, GALE_SPAN_MAX_US - 1)).capacity,
	    GALE_SPAN_MAX_US);
}

static void the_times_of_units_are_exact(void **state)
{
	struct rule gcra = compiled(gale_gcra(3, SEC(1), 2));
	struct rule bucket = compiled(gale_token_bucket(7, 3, SEC(1)));

	(void)state;
	assert_int_equal(gcra.unit.us, 333333);
	assert_int_equal(gcra.unit.part, 1);
	assert_int_equal(gcra.full.us, 666666);
	assert_int_equal(gcra.full.part, 2);
	assert_int_equal(bucket.unit.us, 333333);
	assert_int_equal(bucket.unit.part, 1);
	assert_int_equal(bucket.full.us, 2333333);
	assert_int_equal(bucket.full.part, 1);
}

static void a_fresh_state_has_the_words_that_its_rule_needs(void **state)
{
	(void)state;
	assert_int_equal(compiled(gale_fixed_window(5, 7)).words, 2);
	assert_int_equal(compiled(gale_quota_daily(5, 0)).words, 2);
	assert_int_equal(compiled(gale_token_budget(5, 7)).words, 2);
	assert_int_equal(compiled(gale_sliding_window(5, 7, 3)).words, 5);
	assert_int_equal(compiled(gale_sliding_window(5, 700, 128)).words, 130);
	assert_int_equal(compiled(gale_sliding_log(5, 7)).words, 1);
	assert_int_equal(compiled(gale_gcra(5, 7, 3)).words, 4);
	assert_int_equal(compiled(gale_token_bucket(5, 3, 7)).words, 4);
}

static void only_a_log_grows_by_a_stamp_at_a_time(void **state)
{
	uint64_t log[5] = { 0 }, gcra[4] = { 0 };
	struct rule rule = compiled(gale_sliding_log(5, 7));
	struct rule other = compiled(gale_gcra(5, 7, 3));

	(void)state;
	assert_int_equal(rule_words(&rule, log), 1);
	assert_int_equal(rule_words_after_step(&rule, log), 3);
	assert_int_equal(rule_step(&rule, log, 1, 1).verdict, GALE_ALLOW);
	assert_int_equal(rule_words(&rule, log), 3);
	assert_int_equal(rule_words_after_step(&rule, log), 5);
	assert_int_equal(rule_words(&other, gcra), 4);
	assert_int_equal(rule_words_after_step(&other, gcra), 4);
}

static uint64_t fingerprint(struct gale_rule config)
{
	return compiled(config).fingerprint;
}

/* L15: a limit and a burst compare, and no word means anything else under another. */
static void a_fingerprint_is_of_what_gives_words_their_meaning(void **state)
{
	(void)state;
	assert_int_equal(fingerprint(gale_fixed_window(5, 7)),
	                 fingerprint(gale_fixed_window(6, 7)));
	assert_int_not_equal(fingerprint(gale_fixed_window(5, 7)),
	                     fingerprint(gale_fixed_window(5, 8)));
	assert_int_equal(fingerprint(gale_token_budget(5, 7)),
	                 fingerprint(gale_token_budget(6, 7)));
	assert_int_equal(fingerprint(gale_quota_weekly(5, 60, 1)),
	                 fingerprint(gale_quota_weekly(9, 60, 1)));
	assert_int_not_equal(fingerprint(gale_quota_weekly(5, 60, 1)),
	                     fingerprint(gale_quota_weekly(5, 60, 2)));
	assert_int_not_equal(fingerprint(gale_quota_weekly(5, 60, 1)),
	                     fingerprint(gale_quota_weekly(5, 61, 1)));
	assert_int_not_equal(fingerprint(gale_quota_daily(5, 0)),
	                     fingerprint(gale_quota_monthly(5, 0)));
	assert_int_equal(fingerprint(gale_gcra(5, 7, 3)),
	                 fingerprint(gale_gcra(5, 7, 4)));
	assert_int_not_equal(fingerprint(gale_gcra(5, 7, 3)),
	                     fingerprint(gale_gcra(6, 7, 3)));
	assert_int_equal(fingerprint(gale_pacer(5, 7, 3)),
	                 fingerprint(gale_pacer_limit(5, 7, 9)));
	assert_int_not_equal(fingerprint(gale_pacer(5, 7, 3)),
	                     fingerprint(gale_pacer(6, 7, 3)));
	assert_int_equal(fingerprint(gale_sliding_window(5, 14, 3)),
	                 fingerprint(gale_sliding_window(6, 14, 3)));
	assert_int_equal(fingerprint(gale_sliding_log(5, 7)),
	                 fingerprint(gale_sliding_log(6, 8)));
}

/* ---- Names and texts ------------------------------------------------------------- */

static void each_kind_has_its_name(void **state)
{
	(void)state;
	assert_string_equal(gale_rule_name(GALE_RULE_NONE), "none");
	assert_string_equal(gale_rule_name(GALE_RULE_FIXED_WINDOW), "fixed_window");
	assert_string_equal(gale_rule_name(GALE_RULE_SLIDING_WINDOW), "sliding_window");
	assert_string_equal(gale_rule_name(GALE_RULE_SLIDING_LOG), "sliding_log");
	assert_string_equal(gale_rule_name(GALE_RULE_GCRA), "gcra");
	assert_string_equal(gale_rule_name(GALE_RULE_TOKEN_BUCKET), "token_bucket");
	assert_string_equal(gale_rule_name(GALE_RULE_QUOTA), "quota");
	assert_string_equal(gale_rule_name(GALE_RULE_TOKEN_BUDGET), "token_budget");
	assert_string_equal(gale_rule_name(GALE_RULE_PACER), "pacer");
	assert_string_equal(gale_rule_name(GALE_RULE_CUSTOM), "custom");
	assert_string_equal(gale_rule_name((enum gale_rule_kind)(GALE_RULE_CUSTOM + 1)),
	                    "none");
	assert_string_equal(gale_rule_name((enum gale_rule_kind)1000), "none");
}

static void a_text_starts_with_the_part_that_is_wrong(void **state)
{
	static const struct {
		enum gale_err err;
		const char *part;
	} rows[] = {
		{ GALE_ERR_RULE_KIND, "rule.kind:" },
		{ GALE_ERR_RULE_CADENCE, "rule.cadence:" },
		{ GALE_ERR_RULE_LIMIT, "rule.limit:" },
		{ GALE_ERR_RULE_PERIOD, "rule.period_us:" },
		{ GALE_ERR_RULE_BURST, "rule.burst:" },
		{ GALE_ERR_RULE_SPAN, "rule.burst:" },
		{ GALE_ERR_RULE_BUCKETS, "rule.buckets:" },
		{ GALE_ERR_RULE_WAIT, "rule.max_wait_us:" },
		{ GALE_ERR_RULE_ANCHOR, "rule.anchor_us:" },
		{ GALE_ERR_RULE_ALLOWANCE, "rule.allowance_permille:" },
		{ GALE_ERR_RULE_OFFSET, "rule.utc_offset_minutes:" },
		{ GALE_ERR_RULE_WEEKDAY, "rule.first_weekday:" },
		{ GALE_ERR_RULE_UNUSED, "rule:" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_memory_equal(gale_err_text(rows[i].err), rows[i].part,
		                    strlen(rows[i].part));
	assert_string_equal(gale_err_text(GALE_ERR_OK), "no error");
	assert_string_equal(gale_err_text((enum gale_err)9999), "unknown error");
}

/* Texts are for people: each says something, and no two say the same. */
static void each_why_has_its_own_text(void **state)
{
	(void)state;
	for (int a = 0; a < WHYS; a++) {
		const char *text = gale_why_text((enum gale_why)a);

		assert_non_null(text);
		assert_true(strlen(text) > 3);
		for (int b = 0; b < a; b++)
			assert_string_not_equal(text, gale_why_text((enum gale_why)b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_constructor_fills_its_parts_and_no_others),
		cmocka_unit_test(
		    a_pacer_earns_at_half_the_rate_and_a_limit_at_all_of_it),
		cmocka_unit_test(a_kind_is_one_of_those_named),
		cmocka_unit_test(a_cadence_is_for_quotas_which_need_one),
		cmocka_unit_test(a_limit_is_at_least_one),
		cmocka_unit_test(a_limit_is_below_two_to_the_53),
		cmocka_unit_test(a_period_is_at_least_a_microsecond),
		cmocka_unit_test(a_period_is_at_most_the_longest_span),
		cmocka_unit_test(a_period_of_a_pacer_is_shorter),
		cmocka_unit_test(a_burst_is_at_least_one_but_for_pacers),
		cmocka_unit_test(a_burst_is_below_two_to_the_53),
		cmocka_unit_test(a_burst_accrues_within_the_longest_span),
		cmocka_unit_test(buckets_are_few_and_a_microsecond_or_longer),
		cmocka_unit_test(a_wait_is_at_most_the_longest_span),
		cmocka_unit_test(an_anchor_is_an_instant),
		cmocka_unit_test(an_allowance_is_a_part_of_a_thousand),
		cmocka_unit_test(an_offset_is_at_most_fourteen_hours),
		cmocka_unit_test(a_weekday_is_one_of_seven),
		cmocka_unit_test(what_a_kind_does_not_use_must_be_zero),
		cmocka_unit_test(a_negative_offset_is_not_zero_either),
		cmocka_unit_test(the_capacity_is_what_a_fresh_key_allows),
		cmocka_unit_test(the_capacity_stays_below_two_to_the_53),
		cmocka_unit_test(the_times_of_units_are_exact),
		cmocka_unit_test(a_fresh_state_has_the_words_that_its_rule_needs),
		cmocka_unit_test(only_a_log_grows_by_a_stamp_at_a_time),
		cmocka_unit_test(a_fingerprint_is_of_what_gives_words_their_meaning),
		cmocka_unit_test(each_kind_has_its_name),
		cmocka_unit_test(a_text_starts_with_the_part_that_is_wrong),
		cmocka_unit_test(each_why_has_its_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
