/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * remaining_test.c -- what a leased answer says to remain, against what can be left.
 *
 * The runtime is the test's to turn, on clocks that stand still unless they are moved.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>

#include "engine/credit.h"
#include "engine/rest.h"
#include "face/face.h"
#include "face/lend.h"
#include "tests/support/house.h"

#define LIMIT 1000
#define SECOND_NS UINT64_C(1000000000)

static void open_house(struct house *h, struct gale_rule rule, uint64_t batch)
{
	struct house_plan plan = { .rule = rule, .mode = GALE_LEASED, .shards = 1 };

	if (batch > 0)
		plan.lease =
		    (struct gale_leasing){ .sizing = GALE_SIZE_FIXED, .batch = batch };
	plan.turns = true;
	plan.still = true;
	house_open(h, &plan);
}

static struct gale_answer ask(struct house *h, struct gale_limiter *limiter)
{
	return gale_wait(h->seat, limiter, "k", 1, 1, GALE_SECONDS(1));
}

static uint64_t remaining(struct house *h)
{
	struct gale_answer answer = ask(h, h->limiter);

	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_true(answer.remaining <= answer.limit);
	return answer.remaining;
}

static void take_turns(struct house *h)
{
	for (int i = 0; i < 64; i++)
		(void)gale_turn(h->runtime);
}

/* ---- The word -------------------------------------------------------------------- */

static void a_word_keeps_what_was_left_rounded_down(void **state)
{
	static const uint64_t limits[] = { 1,        100,      16777215,
		                           16777216, 25165821, GALE_UNITS_MAX };
	mono now = { 5 * SECOND_NS };

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		uint64_t grain = rest_grain(limits[i]);

		for (uint64_t left = 0; left <= limits[i]; left += limits[i] / 7 + 1) {
			uint64_t told = rest_units(rest_since(now, left, grain), grain);

			assert_true(told <= left);
			assert_true(left - told <= limits[i] >> 23);
		}
	}
}

/* REST-1: by any two instants, near and far. */
static void credit_of_the_window_before_does_not_go_with_it(void **state)
{
	(void)state;
	for (uint64_t ns = 1; ns < 100 * SECOND_NS; ns = ns * 3 + 1) {
		uint64_t rest = rest_since((mono){ ns }, 16777215, 1);
		mono soon = { ns + 2 * REST_TICK_NS };

		assert_false(rest_goes_with(rest, credit_until((mono){ ns }, 1)));
		assert_false(
		    rest_goes_with(rest, credit_until((mono){ ns }, CREDIT_UNITS_MAX)));
		assert_true(rest_goes_with(rest, credit_until(soon, 0)));
	}
}

/* ---- One node -------------------------------------------------------------------- */

static void one_node_counts_down_by_one(void **state)
{
	static const uint64_t batches[] = { 0, 1, 7, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++) {
		struct house h;

		open_house(&h, gale_fixed_window(100, GALE_HOURS(1)), batches[i]);
		for (uint64_t left = 100; left > 0; left--)
			assert_int_equal(remaining(&h), left - 1);
		assert_int_equal(ask(&h, h.limiter).remaining, 0);
		assert_true(house_close(&h));
	}
}

static void give_cells(struct house *h)
{
	struct purse_name name = {
		.lender = &h->limiter->lender,
		.key = (const uint8_t *)"k",
		.key_len = 1,
		.hash = local_hash(&h->limiter->lender, "k", 1),
	};
	struct purses *set = &runtime_shard(h->runtime, name.hash)->lessor.purses;

	assert_true(purses_give_cells(set, purses_find(set, &name), 2));
}

/* By name, from a held key: whatever way an ask goes. */
static void cells_do_not_show(void **state)
{
	struct gale_key *key;
	struct house h;

	(void)state;
	open_house(&h, gale_fixed_window(LIMIT, GALE_HOURS(1)), 100);
	assert_int_equal(remaining(&h), LIMIT - 1);
	give_cells(&h);
	assert_int_equal(gale_key_open(h.seat, h.limiter, "k", 1, &key), GALE_ERR_OK);
	for (uint64_t left = LIMIT - 1; left > 0; left--) {
		struct gale_answer answer = { .verdict = GALE_PENDING };

		gale_tick(h.seat);
		if (left % 3 == 0 && left % 100 > 10) /* it is in hand */
			answer = gale_ask_key(key, 1, NULL);
		else
			answer = ask(&h, h.limiter);
		assert_int_equal(answer.verdict, GALE_ALLOW);
		assert_int_equal(answer.remaining, left - 1);
	}
	gale_key_close(key);
	assert_true(house_close(&h));
}

static void a_window_that_turns_begins_anew(void **state)
{
	struct house h;

	(void)state;
	open_house(&h, gale_fixed_window(100, GALE_SECONDS(10)), 7);
	for (int window = 0; window < 5; window++) {
		for (uint64_t left = 100; left > 60; left--)
			assert_int_equal(remaining(&h), left - 1);
		test_clock_advance(&h.clock, GALE_SECONDS(10));
		take_turns(&h);
	}
	assert_true(house_close(&h));
}

static void a_changed_limit_changes_what_remains(void **state)
{
	struct gale_rule lower = gale_fixed_window(200, GALE_HOURS(1));
	struct gale_rule higher = gale_fixed_window(5000, GALE_HOURS(1));
	struct house h;

	(void)state;
	open_house(&h, gale_fixed_window(LIMIT, GALE_HOURS(1)), 10);
	for (int i = 0; i < 95; i++)
		(void)remaining(&h);
	give_cells(&h);
	assert_int_equal(remaining(&h), LIMIT - 96);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &lower), GALE_ERR_OK);
	take_turns(&h);
	assert_int_equal(remaining(&h), 200 - 97);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &higher), GALE_ERR_OK);
	take_turns(&h);
	assert_int_equal(remaining(&h), 5000 - 98);
	assert_true(house_close(&h));
}

/* What is in hand may be spent; it is not said to be more than the limit. */
static void it_is_never_above_the_limit(void **state)
{
	struct gale_rule lower = gale_fixed_window(5, GALE_HOURS(1));
	struct house h;

	(void)state;
	open_house(&h, gale_fixed_window(LIMIT, GALE_HOURS(1)), 500);
	(void)remaining(&h);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &lower), GALE_ERR_OK);
	for (int i = 0; i < 100; i++)
		assert_int_equal(remaining(&h), 5);
	assert_true(house_close(&h));
}

/* What has accrued since the store spoke is not counted, nor more than a full bucket. */
static void a_meter_says_no_more_than_it_holds(void **state)
{
	struct house h;

	(void)state;
	open_house(&h, gale_gcra(100, GALE_SECONDS(1), 100), 10);
	for (uint64_t left = 100; left > 50; left--)
		assert_int_equal(remaining(&h), left - 1);
	for (int i = 0; i < 300; i++) {
		test_clock_advance(&h.clock, GALE_MILLIS(15));
		take_turns(&h);
		(void)remaining(&h);
	}
	assert_true(house_close(&h));
}

/* ---- Two of them ----------------------------------------------------------------- */

static struct gale_limiter *another(struct house *h)
{
	struct gale_limiter_config config = {
		.name = "house",
		.rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED, .batch = 60 },
		.store = h->store,
	};
	struct gale_limiter *limiter;

	assert_int_equal(gale_limiter_open(h->runtime, &config, &limiter), GALE_ERR_OK);
	return limiter;
}

/* Two limiters of one name are to a store what two nodes are: each has its own leases. */
static void the_error_is_what_the_other_was_lent_or_holds(void **state)
{
	uint64_t admitted[2] = { 0 }, total = 0;
	struct gale_limiter *both[2];
	struct gale_answer peek;
	unsigned lot = 1;
	struct house h;

	(void)state;
	open_house(&h, gale_fixed_window(LIMIT, GALE_HOURS(1)), 70);
	both[0] = h.limiter;
	both[1] = another(&h);
	while (total < LIMIT) {
		int who = (lot = lot * 1103515245 + 12345) >> 28 < 11;
		struct gale_answer answer = ask(&h, both[who]);
		uint64_t held;

		if (answer.verdict == GALE_DENY) { /* the other holds the rest */
			assert_int_equal(answer.remaining, 0);
			continue;
		}
		admitted[who]++;
		total++;
		assert_int_equal(
		    gale_peek(h.seat, h.limiter, "k", 1, GALE_SECONDS(1), &peek),
		    GALE_ERR_OK);
		held = LIMIT - peek.remaining - total; /* by both, unspent */
		assert_true(answer.remaining <= LIMIT - admitted[who]);
		assert_true(answer.remaining + held >= LIMIT - total);
		assert_true(gale_why_is_estimate(answer.why));
	}
	gale_limiter_close(both[1]);
	assert_true(house_close(&h));
}

static void what_the_store_decides_is_exact(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(3, GALE_HOURS(1)) };
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	answer = house_wait(&h, "k");
	assert_int_equal(answer.remaining, 2);
	assert_false(gale_why_is_estimate(answer.why));
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_keeps_what_was_left_rounded_down),
		cmocka_unit_test(credit_of_the_window_before_does_not_go_with_it),
		cmocka_unit_test(one_node_counts_down_by_one),
		cmocka_unit_test(cells_do_not_show),
		cmocka_unit_test(a_window_that_turns_begins_anew),
		cmocka_unit_test(a_changed_limit_changes_what_remains),
		cmocka_unit_test(it_is_never_above_the_limit),
		cmocka_unit_test(a_meter_says_no_more_than_it_holds),
		cmocka_unit_test(the_error_is_what_the_other_was_lent_or_holds),
		cmocka_unit_test(what_the_store_decides_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
