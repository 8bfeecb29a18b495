/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* pools_test.c -- how much room the pools of the embedded store take, and when they make some. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "sim/allocator.h"
#include "stores/pools.h"
#include "tests/support/must.h"

#define DAY_US UINT64_C(86400000000)
#define MILLI_US UINT64_C(1000)
#define FIRST_US (DAY_US * 365)

static struct scene {
	struct test_allocator allocator;
	struct pools *pools;
	uint64_t now_us;
	struct pool_answer answer;
} s;

static void open_scene(uint64_t most)
{
	memset(&s, 0, sizeof(s));
	test_allocator_init(&s.allocator);
	s.now_us = FIRST_US;
	s.pools = pools_open(&s.allocator.allocator, most);
	must(s.pools);
}

static void close_scene(void)
{
	assert_true(pools_valid(s.pools));
	pools_close(s.pools);
	assert_true(test_allocator_is_balanced(&s.allocator));
}

static mono now(void)
{
	return (mono){ s.now_us * 1000 };
}

static enum store_result claim(const char *name, uint64_t node, uint64_t period_us)
{
	struct store_claim claim = { .tenant = (const uint8_t *)"t",
		                     .tenant_len = 1,
		                     .node = node,
		                     .ask = { .limit = 1000000,
		                              .period_us = period_us,
		                              .release_us = period_us,
		                              .cap = 1000000,
		                              .weight = 1,
		                              .present = 1,
		                              .more = 1,
		                              .least = 1 } };
	enum store_result result =
	    pools_claim(s.pools, (const uint8_t *)name, (uint32_t)strlen(name), &claim,
	                s.now_us, now(), /* not_before_us= */ 0);

	s.answer = claim.answer;
	return result;
}

static void claim_many(const char *kind, int count, uint64_t period_us)
{
	char name[16];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s%d", kind, i);
		assert_int_equal(claim(name, 1, period_us), STORE_DONE);
	}
}

static bool is_kept(const char *name)
{
	return pools_find(s.pools, (const uint8_t *)name, (uint32_t)strlen(name));
}

#define LONG 200 /* more than three sweeps look at */
#define SHORT 20

/* Pools that last a day are in front of those that last a moment. */
static void one_that_lasts_hides_none_that_is_over(void **state)
{
	(void)state;
	open_scene(2 * (LONG + SHORT));
	claim_many("long", LONG, DAY_US);
	claim_many("short", SHORT, MILLI_US);
	assert_int_equal(claim("new", 1, DAY_US), STORE_FULL);
	s.now_us += 10 * MILLI_US;
	while (!pools_sweep(s.pools, now()))
		continue; /* it does not rest before all are gone */
	assert_false(is_kept("short0"));
	assert_false(is_kept("short19"));
	assert_true(is_kept("long0") && is_kept("long199"));
	assert_int_equal(claim("new", 1, DAY_US), STORE_DONE);
	close_scene();
}

/* The same where nobody sweeps: who needs room goes on where others have stopped looking. */
static void an_ask_that_needs_room_finds_it(void **state)
{
	unsigned refused = 0;

	(void)state;
	open_scene(2 * (LONG + SHORT));
	claim_many("long", LONG, DAY_US);
	claim_many("short", SHORT, MILLI_US);
	s.now_us += 10 * MILLI_US;
	while (claim("new", 1, DAY_US) == STORE_FULL)
		assert_true(++refused < 5);
	assert_int_equal(s.answer.granted, 1);
	close_scene();
}

/* One that is asked again and again is never over.  POOLS-2 */
static void what_is_asked_is_kept(void **state)
{
	(void)state;
	open_scene(8);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(claim("short", 1, MILLI_US), STORE_DONE);
		s.now_us += 2 * MILLI_US - 1;
		(void)pools_sweep(s.pools, now());
		assert_true(is_kept("short"));
	}
	s.now_us += 1;
	assert_false(pools_sweep(s.pools, now()));
	assert_false(is_kept("short"));
	assert_true(pools_sweep(s.pools, now()));
	close_scene();
}

/* One claim more is refused, and says so; those that there are go on, and so does the next window. */
static void claims_have_a_bound(void **state)
{
	(void)state;
	open_scene(8);
	for (uint64_t node = 1; node <= POOL_CLAIMS_MAX; node++) {
		assert_int_equal(claim("b", node, DAY_US), STORE_DONE);
		assert_int_equal(s.answer.result, POOL_ANSWERED);
		assert_int_equal(s.answer.granted, 1);
	}
	assert_int_equal(claim("b", POOL_CLAIMS_MAX + 1, DAY_US), STORE_DONE);
	assert_int_equal(s.answer.result, POOL_FULL);
	assert_int_equal(s.answer.retry_us, DAY_US);
	assert_int_equal(s.answer.granted, 0);
	assert_int_equal(claim("b", 1, DAY_US), STORE_DONE);
	assert_int_equal(s.answer.result, POOL_ANSWERED);
	s.now_us += DAY_US;
	assert_int_equal(claim("b", POOL_CLAIMS_MAX + 1, DAY_US), STORE_DONE);
	assert_int_equal(s.answer.granted, 1);
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_lasts_hides_none_that_is_over),
		cmocka_unit_test(an_ask_that_needs_room_finds_it),
		cmocka_unit_test(what_is_asked_is_kept),
		cmocka_unit_test(claims_have_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
