/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* claim_test.c -- what a node makes of an answer of the pool, by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <gale/rule.h>

#include "engine/claim.h"

#define SECOND UINT64_C(1000000)

static const struct pool_ask terms = { .limit = 1000,
	                               .period_us = 10 * SECOND,
	                               .release_us = 2 * SECOND,
	                               .cap = GALE_UNITS_MAX,
	                               .weight = 1 };
static const mono start = { 1000000000 };

static mono after(uint64_t us)
{
	return mono_after(start, us * 1000);
}

/* It has asked for 10 units, and got none of so many that are free. */
static struct claim refused(uint64_t free, uint64_t retry_us)
{
	const struct pool_answer answer = { .result = POOL_ANSWERED,
		                            .window = 1,
		                            .left_us = 5 * SECOND,
		                            .share = 500,
		                            .free = free,
		                            .retry_us = retry_us };
	struct claim claim;
	struct pool_ask ask;

	claim_init(&claim, &terms, 0, start);
	ask = claim_ask(&claim, true, 10, 10, start);
	assert_int_equal(claim_hear(&claim, &ask, &answer, start), CLAIM_HEARD);
	return claim;
}

static bool asks_at(const struct claim *claim, uint64_t us)
{
	mono when;

	return claim_may_ask(claim, 10, after(us), &when);
}

/* The pool knows when another tenant is absent, if that does not ask again. */
static void a_refusal_lasts_no_longer_than_the_pool_says(void **state)
{
	struct claim claim = refused(/* free= */ 100, SECOND / 10);

	(void)state;
	assert_false(asks_at(&claim, SECOND / 10));
	assert_true(asks_at(&claim, SECOND / 10 + 1));
}

/* Nor is it kept for so long that its own tenant would be absent. */
static void who_is_refused_asks_again_before_it_is_absent(void **state)
{
	struct claim claim = refused(/* free= */ 100, 5 * SECOND);

	(void)state;
	assert_false(asks_at(&claim, SECOND * 7 / 8));
	assert_true(asks_at(&claim, SECOND * 7 / 8 + 1));
}

/* Nothing is free: that another is absent helps nobody. */
static void what_is_used_up_is_asked_for_near_the_end(void **state)
{
	struct claim claim = refused(/* free= */ 0, SECOND / 10);

	(void)state;
	assert_false(asks_at(&claim, 4 * SECOND));
	assert_true(asks_at(&claim, 5 * SECOND * 7 / 8 + 1));
}

/* The last units of a share, while others have some left.  CLAIM-7 */
static void who_gets_the_last_units_knows_that_they_were(void **state)
{
	struct pool_answer answer = { .result = POOL_ANSWERED,
		                      .window = 1,
		                      .granted = 10,
		                      .left_us = 5 * SECOND,
		                      .share = 400,
		                      .used = 399,
		                      .free = 100,
		                      .retry_us = 5 * SECOND };
	struct claim claim;
	struct pool_ask ask;

	(void)state;
	claim_init(&claim, &terms, 0, start);
	ask = claim_ask(&claim, true, 10, 10, start);
	assert_int_equal(claim_hear(&claim, &ask, &answer, start), CLAIM_HEARD);
	assert_true(asks_at(&claim, 1));
	answer.granted = 11;
	answer.used = 400;
	ask = claim_ask(&claim, true, 1, 1, start);
	assert_int_equal(claim_hear(&claim, &ask, &answer, start), CLAIM_HEARD);
	assert_false(asks_at(&claim, 1));
	assert_true(asks_at(&claim, SECOND * 7 / 8 + 1));
	assert_int_equal(claim_in_hand(&claim, start), 11);
}

/* What was taken and comes back was not spent: the look does not count it.  CLAIM-5 */
static void what_comes_back_was_not_moved(void **state)
{
	const struct pool_answer answer = { .result = POOL_ANSWERED,
		                            .window = 1,
		                            .granted = 100,
		                            .left_us = 5 * SECOND,
		                            .share = 500,
		                            .free = 100 };
	struct claim claim;
	struct pool_ask ask;

	(void)state;
	claim_init(&claim, &terms, 0, start);
	ask = claim_ask(&claim, true, 100, 100, start);
	assert_int_equal(claim_hear(&claim, &ask, &answer, start), CLAIM_HEARD);
	claim_take(&claim, 60);
	assert_int_equal(claim_look(&claim, after(SECOND), SECOND * 1000).moved, 60);
	claim_untake(&claim, 20);
	assert_int_equal(claim_look(&claim, after(2 * SECOND), SECOND * 1000).moved, 0);
	claim_take(&claim, 5);
	assert_int_equal(claim_look(&claim, after(3 * SECOND), SECOND * 1000).moved, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_lasts_no_longer_than_the_pool_says),
		cmocka_unit_test(who_is_refused_asks_again_before_it_is_absent),
		cmocka_unit_test(what_is_used_up_is_asked_for_near_the_end),
		cmocka_unit_test(who_gets_the_last_units_knows_that_they_were),
		cmocka_unit_test(what_comes_back_was_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
