/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * change_test.c -- a limit is changed while keys live under it (law L15).
 *
 * What was spent stays spent, nobody gets a fresh budget, and nobody is locked out.  RULE-6
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "engine/codec.h"
#include "engine/rule.h"
#include "sim/random.h"

#define WORDS_MOST 512
#define T0 (GALE_DAYS(20000) + GALE_HOURS(10))
#define SEC(n) GALE_SECONDS(n)

/* A value as a store keeps it, and the rule that has written it last. */
struct shared {
	uint8_t bytes[STATE_HEAD_BYTES + 8 * WORDS_MOST];
	size_t count;
};

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	assert_int_equal(rule_compile(&config, &rule), GALE_ERR_OK);
	return rule;
}

/* As every store does it: read, or converted, stepped, and written back if it was allowed. */
static struct gale_answer step(struct shared *shared, const struct rule *rule,
                               uint64_t now, uint64_t cost)
{
	uint64_t words[WORDS_MOST] = { 0 };
	enum state_err err = STATE_OK;
	struct gale_answer answer;

	if (shared->count > 0)
		err =
		    state_decode(rule, shared->bytes, shared->count, words, WORDS_MOST);
	if (err == STATE_CHANGED)
		err = state_convert(rule, shared->bytes, shared->count, now, words,
		                    WORDS_MOST);
	assert_int_equal(err, STATE_OK);
	answer = rule_step(rule, words, now, cost);
	if (answer.verdict == GALE_ALLOW)
		shared->count = state_encode(rule, words, shared->bytes);
	return answer;
}

static uint64_t spend(struct shared *shared, const struct rule *rule, uint64_t now,
                      uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++)
		passed += step(shared, rule, now, 1).verdict == GALE_ALLOW;
	return passed;
}

/* ---- Another limit --------------------------------------------------------------- */

static struct gale_rule with_limit(enum gale_rule_kind kind, uint64_t limit)
{
	switch (kind) {
	case GALE_RULE_FIXED_WINDOW:
		return gale_fixed_window(limit, GALE_HOURS(1));
	case GALE_RULE_SLIDING_WINDOW:
		return gale_sliding_window(limit, GALE_HOURS(1), 10);
	case GALE_RULE_SLIDING_LOG:
		return gale_sliding_log(limit, GALE_HOURS(1));
	case GALE_RULE_QUOTA:
		return gale_quota_monthly(limit, 60);
	case GALE_RULE_TOKEN_BUDGET:
		return gale_token_budget(limit, GALE_HOURS(1));
	case GALE_RULE_GCRA: /* burst is what a key may have at once */
		return gale_gcra(1, GALE_HOURS(1), limit);
	case GALE_RULE_TOKEN_BUCKET:
		return gale_token_bucket(limit, 1, GALE_HOURS(1));
	default:
		return gale_pacer_limit(1, GALE_HOURS(1), limit - 1);
	}
}

static const enum gale_rule_kind kinds[] = {
	GALE_RULE_FIXED_WINDOW, GALE_RULE_SLIDING_WINDOW, GALE_RULE_SLIDING_LOG,
	GALE_RULE_QUOTA,        GALE_RULE_TOKEN_BUDGET,   GALE_RULE_GCRA,
	GALE_RULE_TOKEN_BUCKET, GALE_RULE_PACER,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void what_was_spent_stays_spent_under_a_larger_limit(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		struct rule small = compiled(with_limit(kinds[i], 10));
		struct rule large = compiled(with_limit(kinds[i], 25));
		struct shared shared = { .count = 0 };

		assert_int_equal(spend(&shared, &small, T0, 30), 10);
		assert_int_equal(spend(&shared, &large, T0, 40), 15);
		assert_int_equal(spend(&shared, &small, T0, 5), 0);
	}
}

static void nothing_passes_under_a_smaller_limit_that_is_spent(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		struct rule small = compiled(with_limit(kinds[i], 10));
		struct rule large = compiled(with_limit(kinds[i], 25));
		struct shared shared = { .count = 0 };
		struct gale_answer denied;

		assert_int_equal(spend(&shared, &large, T0, 20), 20);
		assert_int_equal(spend(&shared, &large, T0, 20), 5);
		denied = step(&shared, &small, T0, 1);
		assert_int_equal(denied.verdict, GALE_DENY);
		assert_int_equal(denied.remaining, 0);
		/* Not for ever. */
		assert_true(denied.retry_after_us > 0 &&
		            denied.retry_after_us < GALE_SPAN_MAX_US);
		assert_int_equal(
		    step(&shared, &small, T0 + denied.retry_after_us, 1).verdict,
		    kinds[i] == GALE_RULE_SLIDING_WINDOW ? GALE_DENY : GALE_ALLOW);
	}
}

/* Nodes with old and new limits side by side, in any order: never more than the largest. */
static void several_limits_in_force_admit_the_largest(void **state)
{
	struct chance c = { 1 };

	(void)state;
	for (int round = 0; round < 2000; round++) {
		enum gale_rule_kind kind = kinds[chance_below(&c, KINDS)];
		struct shared shared = { .count = 0 };
		uint64_t largest = 0, passed = 0;

		for (int i = 0; i < 60; i++) {
			uint64_t limit = chance_between(&c, 1, 20);
			struct rule rule = compiled(with_limit(kind, limit));
			struct gale_answer answer = step(&shared, &rule, T0, 1);

			largest = limit > largest ? limit : largest;
			passed += answer.verdict == GALE_ALLOW;
			assert_true(passed <= largest);
			if (answer.verdict == GALE_DENY)
				assert_true(passed >= limit); /* not locked out */
		}
	}
}

/* ---- Another rate, or another period --------------------------------------------- */

/* 4 of 10 units an hour are spent: at 100 an hour that is 4 units still. */
static void a_meter_with_another_rate_keeps_its_units(void **state)
{
	(void)state;
	for (int bucket = 0; bucket < 2; bucket++) {
		struct rule slow =
		    compiled(bucket ? gale_token_bucket(10, 10, GALE_HOURS(1))
		                    : gale_gcra(10, GALE_HOURS(1), 10));
		struct rule fast =
		    compiled(bucket ? gale_token_bucket(100, 100, GALE_HOURS(1))
		                    : gale_gcra(100, GALE_HOURS(1), 100));
		struct shared shared = { .count = 0 };

		assert_int_equal(spend(&shared, &slow, T0, 4), 4);
		assert_int_equal(spend(&shared, &fast, T0, 200), 96);
		assert_int_equal(spend(&shared, &slow, T0, 1), 0);
		/* 100 units are short: 91 must accrue at 10 an hour. */
		assert_int_equal(step(&shared, &slow, T0, 1).retry_after_us,
		                 GALE_HOURS(1) * 91 / 10);
	}
}

/* Alternating between two rates must neither give units away nor eat them. */
static void conversions_there_and_back_lose_less_than_a_unit(void **state)
{
	struct chance c = { 2 };

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct rule rules[2];
		struct shared shared = { .count = 0 };
		uint64_t passed = 0, burst = chance_between(&c, 5, 50);

		for (int i = 0; i < 2; i++)
			rules[i] = compiled(gale_gcra(chance_between(&c, 1, 1000),
			                              SEC(chance_between(&c, 60, 4000)),
			                              burst));
		for (uint64_t i = 0; i < 4 * burst; i++)
			passed +=
			    step(&shared, &rules[i % 2], T0, 1).verdict == GALE_ALLOW;
		assert_true(passed <= burst && passed + 1 >= burst);
	}
}

static void a_pacer_with_another_rate_queues_behind_what_was_booked(void **state)
{
	struct rule slow = compiled(gale_pacer(1, SEC(10), 0));
	struct rule fast = compiled(gale_pacer(10, SEC(10), 0));
	struct shared shared = { .count = 0 };

	(void)state;
	assert_int_equal(step(&shared, &slow, T0, 1).delay_ns, 0);
	assert_int_equal(step(&shared, &slow, T0, 1).delay_ns, 10000000000);
	assert_int_equal(step(&shared, &fast, T0, 1).delay_ns, 20000000000);
	assert_int_equal(step(&shared, &fast, T0, 1).delay_ns, 21000000000);
}

/* A window that reaches into the new one counts there; one that is over does not. */
static void a_window_with_another_period_counts_what_reaches_into_it(void **state)
{
	struct rule hour = compiled(gale_fixed_window(10, GALE_HOURS(1)));
	struct rule minute = compiled(gale_fixed_window(10, GALE_MINUTES(1)));
	struct shared shared = { .count = 0 };

	(void)state;
	assert_int_equal(spend(&shared, &hour, T0 + SEC(5), 7), 7);
	assert_int_equal(spend(&shared, &minute, T0 + SEC(150), 20), 3);
	assert_int_equal(spend(&shared, &minute, T0 + SEC(180), 20), 10);
	assert_int_equal(spend(&shared, &hour, T0 + SEC(200), 20), 0);
	assert_int_equal(spend(&shared, &hour, T0 + GALE_HOURS(1), 20), 10);
}

/* The count of the longer window is lost when the shorter one ends: more than the largest limit may
 * pass, but no more than under each of the two alone. */
static void two_periods_in_use_admit_at_most_the_sum(void **state)
{
	struct chance c = { 4 };
	uint64_t beyond = 0;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		uint64_t now = T0, passed = 0, by[2] = { 0 };
		struct shared shared = { .count = 0 }, alone[2] = { 0 };
		struct rule rules[2];

		for (int i = 0; i < 2; i++) {
			rules[i] = compiled(
			    gale_fixed_window(chance_between(&c, 1, 20),
			                      SEC(chance_between(&c, 60, 4000))));
		}
		for (int i = 0; i < 200; i++) {
			passed += spend(&shared, &rules[chance_below(&c, 2)], now, 1);
			for (int j = 0; j < 2; j++)
				by[j] += spend(&alone[j], &rules[j], now, 1);
			assert_true(passed <= by[0] + by[1]);
			now += SEC(chance_below(&c, 20));
		}
		beyond += passed > by[0] && passed > by[1];
	}
	assert_true(beyond > 0);
}

static void a_quota_with_another_anchor_keeps_what_is_used(void **state)
{
	struct rule noon = compiled(gale_quota_anchored(10, GALE_DAYS(1), 0));
	struct rule later =
	    compiled(gale_quota_anchored(10, GALE_DAYS(1), GALE_HOURS(11)));
	struct rule month = compiled(gale_quota_monthly(30, 0));
	struct shared shared = { .count = 0 };

	(void)state;
	assert_int_equal(spend(&shared, &noon, T0, 6), 6);
	assert_int_equal(spend(&shared, &later, T0, 10), 4);
	assert_int_equal(spend(&shared, &month, T0, 40), 20);
	assert_int_equal(spend(&shared, &noon, T0 + GALE_HOURS(1), 40), 0);
}

static void a_sliding_window_with_other_buckets_keeps_what_counts(void **state)
{
	struct rule ten = compiled(gale_sliding_window(20, SEC(100), 10));
	struct rule four = compiled(gale_sliding_window(20, SEC(80), 4));
	struct shared shared = { .count = 0 };

	(void)state;
	assert_int_equal(spend(&shared, &ten, T0, 8), 8);
	assert_int_equal(spend(&shared, &ten, T0 + SEC(50), 5), 5);
	assert_int_equal(spend(&shared, &four, T0 + SEC(55), 30), 7);
	assert_int_equal(spend(&shared, &four, T0 + SEC(300), 30), 20);
}

/* Nobody may forget it before: nothing was counted in the bucket of the conversion. */
static void a_converted_sliding_window_lasts_as_long_as_it_counts(void **state)
{
	struct rule ten = compiled(gale_sliding_window(20, SEC(100), 10));
	struct rule four = compiled(gale_sliding_window(20, SEC(80), 4));
	uint64_t words[WORDS_MOST] = { 0 }, later[WORDS_MOST] = { 0 };
	struct rule_former former = { .kind = GALE_RULE_SLIDING_WINDOW,
		                      .fingerprint = ten.fingerprint,
		                      .words = words,
		                      .count = ten.words };

	(void)state;
	assert_int_equal(rule_step(&ten, words, T0, 8).verdict, GALE_ALLOW);
	assert_int_equal(rule_convert(&four, &former, T0 + SEC(50), later),
	                 RULE_CONVERTED);
	assert_int_equal(rule_peek(&four, later, T0 + SEC(50)).remaining, 12);
	assert_true(rule_expires(&four, later) >= T0 + SEC(80));
}

/* ---- Whatever the parameters ----------------------------------------------------- */

/* As small or as large as they may be, or anything between. */
static uint64_t some(struct chance *c, uint64_t least, uint64_t most)
{
	uint64_t value = chance_log(c, most);

	if (chance_one_in(c, 4))
		return least;
	if (chance_one_in(c, 3))
		return most;
	return value < least ? least : value;
}

static struct gale_rule some_rule(struct chance *c, enum gale_rule_kind kind)
{
	struct gale_rule rule = { .kind = kind,
		                  .limit = some(c, 1, GALE_UNITS_MAX),
		                  .period_us = some(c, 1, GALE_SPAN_MAX_US) };

	switch (kind) {
	case GALE_RULE_SLIDING_WINDOW:
		rule.buckets = some(c, 1, GALE_BUCKETS_MAX);
		break;
	case GALE_RULE_SLIDING_LOG:
		rule.limit = some(c, 1, 20);
		break;
	case GALE_RULE_QUOTA:
		rule.cadence = GALE_ANCHORED;
		rule.anchor_us = some(c, 0, INSTANT_MAX_US);
		break;
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		rule.burst = some(c, 1, GALE_UNITS_MAX);
		break;
	case GALE_RULE_PACER:
		rule.period_us = some(c, 1, GALE_PACE_PERIOD_MAX_US);
		rule.burst = some(c, 0, GALE_UNITS_MAX);
		rule.max_wait_us = some(c, 0, GALE_SPAN_MAX_US);
		rule.allowance_permille = 1 + (uint32_t)chance_below(c, 1000);
		break;
	default:
		break;
	}
	return rule;
}

/* Words that steps have led to are converted, under whatever rule of the kind: a store that
 * could not would have to refuse what it has written itself. */
static void each_state_can_be_converted_to_each_rule(void **state)
{
	struct chance c = { 3 };
	uint64_t converted = 0;

	(void)state;
	for (int round = 0; round < 40000; round++) {
		enum gale_rule_kind kind = kinds[chance_below(&c, KINDS)];
		struct shared shared = { .count = 0 };
		uint64_t now = some(&c, 0, INSTANT_MAX_US);

		for (int i = 0; i < 12; i++) {
			struct gale_rule config = some_rule(&c, kind);
			struct rule rule;

			if (rule_compile(&config, &rule) != GALE_ERR_OK)
				continue;
			converted += shared.count > 0;
			(void)step(&shared, &rule, now, some(&c, 1, rule.capacity));
			if (chance_one_in(&c, 2) && now < INSTANT_MAX_US)
				now += chance_log(&c, INSTANT_MAX_US - now);
		}
	}
	assert_true(converted > 100000);
}

/* ---- Values of before ------------------------------------------------------------ */

/* As version 1 wrote it: another fingerprint, and no period. */
static void make_first(struct shared *shared, const struct gale_rule *config,
                       size_t drop)
{
	uint64_t mark = rule_first_fingerprint(config);

	shared->bytes[0] = 1;
	shared->bytes[4] = (uint8_t)(shared->bytes[4] - drop);
	for (size_t i = 0; i < 8; i++)
		shared->bytes[8 + i] = (uint8_t)(mark >> 8 * i);
	shared->count -= 8 * drop;
}

static size_t words_more_than_first(enum gale_rule_kind kind)
{
	return kind == GALE_RULE_GCRA || kind == GALE_RULE_TOKEN_BUCKET ||
	       kind == GALE_RULE_PACER;
}

static void values_of_the_first_layout_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < KINDS; i++) {
		struct rule same = compiled(with_limit(kinds[i], 10));
		struct rule other = compiled(with_limit(kinds[i], 12));
		struct shared shared = { .count = 0 }, twin;

		assert_int_equal(spend(&shared, &same, T0, 6), 6);
		make_first(&shared, &same.is, words_more_than_first(kinds[i]));
		twin = shared;
		assert_int_equal(spend(&shared, &same, T0, 20), 4);
		/* What a meter has spent is not known where its parameters were others. */
		assert_int_equal(spend(&twin, &other, T0, 20),
		                 words_more_than_first(kinds[i])
		                     ? (kinds[i] == GALE_RULE_PACER)
		                     : 6);
	}
}

/* The window of before is over: nobody is locked out of the next. */
static void a_window_of_the_first_layout_ends_when_it_ended(void **state)
{
	struct rule ten = compiled(gale_fixed_window(10, GALE_HOURS(1)));
	struct rule twelve = compiled(gale_fixed_window(12, GALE_HOURS(1)));
	struct shared shared = { .count = 0 };

	(void)state;
	assert_int_equal(spend(&shared, &ten, T0, 10), 10);
	make_first(&shared, &ten.is, 0);
	assert_int_equal(spend(&shared, &twelve, T0 + GALE_HOURS(1), 20), 12);
}

static void words_of_no_meter_are_refused(void **state)
{
	struct rule rule = compiled(gale_gcra(7, SEC(10), 7));
	uint64_t words[4] = { T0, 0, 0, SEC(10) }, out[WORDS_MOST];
	struct rule_former former = {
		.kind = GALE_RULE_GCRA, .fingerprint = 5, .words = words, .count = 4
	};

	(void)state;
	assert_int_equal(rule_convert(&rule, &former, T0, out), RULE_CONVERTED);
	words[1] = 5; /* no part of one */
	assert_int_equal(rule_convert(&rule, &former, T0, out), RULE_INVALID);
	words[1] = 0;
	words[3] = 0;
	assert_int_equal(rule_convert(&rule, &former, T0, out), RULE_INVALID);
	words[3] = SEC(10);
	former.fingerprint = 0;
	assert_int_equal(rule_convert(&rule, &former, T0, out), RULE_INVALID);
	former.fingerprint = 5;
	former.kind = GALE_RULE_TOKEN_BUCKET;
	assert_int_equal(rule_convert(&rule, &former, T0, out), RULE_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_spent_stays_spent_under_a_larger_limit),
		cmocka_unit_test(nothing_passes_under_a_smaller_limit_that_is_spent),
		cmocka_unit_test(several_limits_in_force_admit_the_largest),
		cmocka_unit_test(a_meter_with_another_rate_keeps_its_units),
		cmocka_unit_test(conversions_there_and_back_lose_less_than_a_unit),
		cmocka_unit_test(
		    a_pacer_with_another_rate_queues_behind_what_was_booked),
		cmocka_unit_test(
		    a_window_with_another_period_counts_what_reaches_into_it),
		cmocka_unit_test(two_periods_in_use_admit_at_most_the_sum),
		cmocka_unit_test(a_quota_with_another_anchor_keeps_what_is_used),
		cmocka_unit_test(a_sliding_window_with_other_buckets_keeps_what_counts),
		cmocka_unit_test(a_converted_sliding_window_lasts_as_long_as_it_counts),
		cmocka_unit_test(each_state_can_be_converted_to_each_rule),
		cmocka_unit_test(values_of_the_first_layout_are_read),
		cmocka_unit_test(a_window_of_the_first_layout_ends_when_it_ended),
		cmocka_unit_test(words_of_no_meter_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
