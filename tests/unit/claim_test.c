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

static const struct pool_answer spent = { .result = POOL_ANSWERED,
	                                  .window = 1,
	                                  .left_us = 5 * SECOND,
	                                  .share = 500,
	                                  .retry_us = SECOND / 10 };

/* It asks at once, if it may, and is told so; what it has to wait from then on. */
static uint64_t waits_for(struct claim *claim, const struct pool_answer *answer,
                          uint64_t wants, mono *now)
{
	struct pool_ask ask = claim_ask(claim, true, wants, wants, *now);
	mono asked = *now;

	assert_int_equal(claim_hear(claim, &ask, answer, *now), CLAIM_HEARD);
	if (claim_may_ask(claim, 10, *now, now))
		return 0;
	return (now->ns - asked.ns) / 1000;
}

/* Units that come back early are found, and by few asks; near the end all are.  CLAIM-9 */
static void what_is_used_up_is_asked_for_ever_more_seldom(void **state)
{
	static const uint64_t waits_us[] = { SECOND / 2, SECOND, 2 * SECOND,
		                             SECOND * 13 / 2 * 7 / 8 };
	struct pool_ask brief = terms;
	struct pool_answer answer = spent;
	struct claim claim;
	mono now = start;

	(void)state;
	brief.release_us = SECOND / 2;
	claim_init(&claim, &brief, 0, start);
	answer.left_us = 10 * SECOND;
	for (size_t i = 0; i < sizeof(waits_us) / sizeof(*waits_us); i++) {
		uint64_t wait_us = waits_for(&claim, &answer, 10, &now);

		assert_in_range(wait_us, waits_us[i] - 10, waits_us[i] + 10);
		answer.left_us -= wait_us;
	}
}

/* What comes back is kept for a tenant that is present: so that is asked for as before. */
static void who_lacks_its_guarantee_asks_while_it_is_present(void **state)
{
	struct pool_ask gold = terms;
	struct pool_answer answer = spent;
	struct claim claim;
	mono now = start;

	(void)state;
	gold.guarantee = answer.guarantees = 300;
	answer.used = 299;
	answer.left_us = 10 * SECOND;
	claim_init(&claim, &gold, 0, start);
	for (int i = 0; i < 4; i++)
		assert_int_equal(waits_for(&claim, &answer, 10, &now),
		                 SECOND * 7 / 8 + 1);
	answer.used = 300;
	assert_true(waits_for(&claim, &answer, 10, &now) > SECOND);
	answer.used = 0;
	answer.guarantees = terms.limit + 1; /* not all can be kept */
	assert_true(waits_for(&claim, &answer, 10, &now) > SECOND);
}

/* What it tells the pool meanwhile does not put that off. */
static void who_is_refused_is_not_put_off_by_what_it_tells(void **state)
{
	struct claim claim;
	mono now = start, later = after(SECOND);
	uint64_t waits;

	(void)state;
	claim_init(&claim, &terms, 0, start);
	waits = waits_for(&claim, &spent, 10, &now);
	assert_int_equal(waits_for(&claim, &spent, 0, &later), waits - SECOND);
	assert_true(mono_reached(later, now));
	assert_true(waits_for(&claim, &spent, 10, &now) > waits);
}

/* Another claim of the node hears that some are left, in this window.  CLAIM-9 */
static void what_is_left_is_asked_for_at_once(void **state)
{
	struct claim claim = refused(/* free= */ 0, SECOND / 10);
	struct claim other = refused(/* free= */ 100, SECOND / 10);

	(void)state;
	assert_false(claim_learn_of_units(&claim, 2));
	assert_false(asks_at(&claim, 1));
	assert_true(claim_learn_of_units(&claim, 1));
	assert_true(asks_at(&claim, 1));
	assert_false(claim_learn_of_units(&claim, 1));
	assert_false(claim_learn_of_units(&other, 1)); /* it is of its share */
	assert_false(asks_at(&other, 1));
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
		cmocka_unit_test(what_is_used_up_is_asked_for_ever_more_seldom),
		cmocka_unit_test(who_lacks_its_guarantee_asks_while_it_is_present),
		cmocka_unit_test(who_is_refused_is_not_put_off_by_what_it_tells),
		cmocka_unit_test(what_is_left_is_asked_for_at_once),
		cmocka_unit_test(who_gets_the_last_units_knows_that_they_were),
		cmocka_unit_test(what_comes_back_was_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
