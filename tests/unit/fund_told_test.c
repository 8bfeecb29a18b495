/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fund_told_test.c -- what a shared budget tells of itself: its counts, and its log. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/support/fund_scene.h"

static struct fund_counts counts_now(void)
{
	struct fund_counts counts;

	fund_counts(&scene.fund, scene.now, &counts);
	return counts;
}

/* Each denial that is not from memory, once, with its reason. */
static void denials_are_told_by_reason(void **state)
{
	struct fund_counts counts;
	struct asked asked;

	(void)state;
	assert_int_equal(ask_now(0, LIMIT + 1), FUND_DENIED);
	assert_int_equal(ask_now(1, 1), FUND_WAITS); /* it is told that it is late */
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	refuse(POOL_FULL, GALE_SECONDS(1));
	assert_true(asked.done);
	assert_int_equal(ask(0, 1, &asked), FUND_DENIED);
	assert_int_equal(ask(1, 1, &asked), FUND_WAITS);
	assert_true(fund_give_up(&scene.stakes[1], &asked.wait));
	counts = counts_now();
	assert_int_equal(counts.denied_by[GALE_WHY_TOO_MUCH], 1);
	assert_int_equal(counts.denied_by[GALE_WHY_LATE], 2);
	assert_int_equal(counts.denied_by[GALE_WHY_FULL], 2);
}

/* What a stake has used counts on when it is closed, and not twice. */
static void counts_outlive_their_stakes(void **state)
{
	struct fund_counts counts;

	(void)state;
	have(0, 9);
	have(1, 4);
	assert_int_equal(ask_now(0, 5), FUND_ALLOWED);
	counts = counts_now();
	assert_int_equal(counts.spent, 7);
	assert_int_equal(counts.used, 7);
	assert_int_equal(counts.present, 2);
	assert_int_equal(counts.trips, 2);
	assert_int_equal(counts.quanta, 2);
	assert_int_equal(in_till(0), 4);
	stake_close(&scene.stakes[0]);
	turn();
	answer(1, 10, DAY_US / 2);
	turn();
	assert_int_equal(scene.dropped, 1);
	counts = counts_now();
	assert_int_equal(counts.spent, 7);
	assert_int_equal(counts.used, 1);
	assert_int_equal(counts.present, 1);
	assert_int_equal(counts.trips, 3);
	scene.now = mono_after(scene.now, DAY_US * 1000);
	counts = counts_now();
	assert_int_equal(counts.spent, 7);
	assert_int_equal(counts.used, 0);
	assert_int_equal(counts.present, 0);
}

/* No answer, and one that cannot be. */
static void claims_that_fail_are_counted(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct fund_counts counts;
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 3, &asked), FUND_WAITS);
	turn();
	lose();
	answers(&asked, GALE_ALLOW, GALE_WHY_LATE);
	assert_int_equal(ask(1, 1, &asked), FUND_WAITS);
	turn();
	answer(1, LIMIT + 1, DAY_US / 2);
	assert_true(asked.done && asked.wait.result == STORE_WRONG);
	counts = counts_now();
	assert_int_equal(counts.failures, 2);
	assert_int_equal(counts.trips, 2);
	assert_int_equal(counts.quanta, 0);
	assert_int_equal(counts.alone, 3);
	assert_int_equal(counts.spent, 3);
	assert_int_equal(counts.denied_by[GALE_WHY_WRONG], 1);
}

/* The call that is with the store is answered, after another node has asked with that limit, and with
 * that weight. */
static void answer_after(uint64_t limit, uint64_t weight)
{
	struct store_call *call = scene.sent;

	call->op->claim->answer =
	    (struct pool_answer){ .window = 1,
		                  .granted = asked_of(call)->had + asked_of(call)->more,
		                  .left_us = DAY_US / 2,
		                  .share = LIMIT,
		                  .free = LIMIT / 2,
		                  .limit = limit,
		                  .cap = GALE_UNITS_MAX,
		                  .weight = weight };
	call->result = STORE_DONE;
	fund_hear(call, scene.now);
}

/* Nodes that have other limits ask in turn, as often as they like. */
static void another_limit_is_said_once(void **state)
{
	static const uint64_t limits[] = { LIMIT, LIMIT + 1, LIMIT, LIMIT + 2,
		                           LIMIT + 1 };
	struct asked asked;

	(void)state;
	for (int i = 0; i < 10; i++) {
		if (i == 5)
			fund_set_limit(&scene.fund, LIMIT + 3);
		assert_int_equal(ask(0, 1 + in_till(0), &asked), FUND_WAITS);
		turn();
		answer_after(limits[i % 5], /* weight= */ 0);
		assert_int_equal(scene.lines, i < 1 ? 0 : i < 5 ? 1 : 2);
	}
	assert_string_equal(scene.said,
	                    "another node has the limit 1000, and this one 1003");
}

/* Nor are other terms of a tenant; those that this node gave it before are no others. */
static void other_terms_are_said_once(void **state)
{
	static const uint64_t weights[] = { 0, 1, 5, 6, 1, 5, 1, 5, 2, 7 };
	static const unsigned lines[] = { 0, 0, 1, 1, 1, 1, 1, 2, 2, 2 };
	const struct pool_ask terms = { .cap = 900, .guarantee = 3, .weight = 2 };
	struct asked asked;

	(void)state;
	for (int i = 0; i < 10; i++) {
		if (i == 6)
			stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 0);
		assert_int_equal(ask(0, 1 + in_till(0), &asked), FUND_WAITS);
		turn();
		answer_after(LIMIT, weights[i]);
		assert_int_equal(scene.lines, lines[i]);
	}
	assert_string_equal(
	    scene.said, "tenant big: another node has weight 5, guarantee 0, no cap, "
			"and this one weight 2, guarantee 3, cap 900");
}

/* Tenants come and go; the sum of their guarantees is said when it is larger than it was said to be. */
static void guarantees_above_the_limit_are_said(void **state)
{
	static const uint64_t guarantees[] = { LIMIT,     LIMIT + 1, LIMIT + 1, 0,
		                               LIMIT + 1, LIMIT + 7, LIMIT };
	static const int lines[] = { 0, 1, 1, 1, 1, 2, 2 };
	struct asked asked;

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct store_call *call;

		assert_int_equal(ask(0, 1 + in_till(0), &asked), FUND_WAITS);
		turn();
		call = scene.sent;
		call->op->claim->answer = (struct pool_answer){
			.window = 1,
			.granted = asked_of(call)->had + asked_of(call)->more,
			.left_us = DAY_US / 2,
			.share = LIMIT,
			.free = LIMIT / 2,
			.guarantees = guarantees[i],
		};
		call->result = STORE_DONE;
		fund_hear(call, scene.now);
		assert_int_equal(scene.lines, lines[i]);
		assert_int_equal(counts_now().guarantees, guarantees[i]);
	}
	assert_string_equal(scene.said,
	                    "tenants of all nodes have guarantees of 1007 together, "
	                    "and the limit is 1000: not all can be kept");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(denials_are_told_by_reason),
		TEST(counts_outlive_their_stakes),
		TEST(claims_that_fail_are_counted),
		TEST(another_limit_is_said_once),
		TEST(other_terms_are_said_once),
		TEST(guarantees_above_the_limit_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
