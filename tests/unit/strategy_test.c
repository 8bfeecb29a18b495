/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * strategy_test.c -- a user's own strategies on the embedded store, through gale.h.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/customs.h"
#include "tests/support/house.h"
#include "tests/support/same.h"

#define STEPS 10000
#define CROWD 200
#define FIFTY 50
#define WITHIN GALE_SECONDS(30)

/* ---- The same as the built-in ---------------------------------------------------- */

struct pair {
	struct house house; /* its limiter is the built-in one */
	struct gale_limiter *own;
	struct chance chance;
};

static void look_at_both(struct pair *pair, const char *key, uint64_t cost)
{
	struct gale_limiter *const limiters[] = { pair->house.limiter, pair->own };
	struct gale_answer peeks[2];
	struct gale_outlook outlooks[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    gale_peek(pair->house.seat, limiters[i], key, 1, WITHIN, &peeks[i]),
		    GALE_ERR_OK);
		assert_int_equal(gale_forecast(pair->house.seat, limiters[i], key, 1,
		                               cost, WITHIN, &outlooks[i]),
		                 GALE_ERR_OK);
	}
	same_answer(&peeks[0], &peeks[1]);
	assert_memory_equal(&outlooks[0], &outlooks[1], sizeof(outlooks[0]));
}

static void reset_both(struct pair *pair, const char *key)
{
	assert_int_equal(
	    gale_reset(pair->house.seat, pair->house.limiter, key, 1, WITHIN),
	    GALE_ERR_OK);
	assert_int_equal(gale_reset(pair->house.seat, pair->own, key, 1, WITHIN),
	                 GALE_ERR_OK);
}

static void ask_both(struct pair *pair, const char *key, uint64_t cost)
{
	struct gale_seat *seat = pair->house.seat;
	struct gale_answer built_in =
	    gale_wait(seat, pair->house.limiter, key, 1, cost, WITHIN);
	struct gale_answer own = gale_wait(seat, pair->own, key, 1, cost, WITHIN);

	same_answer(&built_in, &own);
}

static void step_both(struct pair *pair, uint64_t most)
{
	static const char *const keys[] = { "a", "b", "c" };
	const char *key = keys[chance_below(&pair->chance, 3)];
	uint64_t cost = chance_between(&pair->chance, 1, most);

	test_clock_advance(&pair->house.clock,
	                   chance_size(&pair->chance, GALE_SECONDS(1)));
	switch (chance_below(&pair->chance, 16)) {
	case 0:
		look_at_both(pair, key, cost);
		break;
	case 1:
		reset_both(pair, key);
		break;
	default:
		ask_both(pair, key, cost);
	}
}

static void run_beside(struct gale_rule built_in, struct gale_rule own, uint64_t seed)
{
	struct house_plan plan = { .rule = built_in };
	struct pair pair = { .chance = { seed } };

	house_open(&pair.house, &plan);
	pair.own = house_limiter(&pair.house, "own", own);
	for (int i = 0; i < STEPS; i++)
		step_both(&pair, own.limit + 1);
	gale_limiter_close(pair.own);
	assert_true(house_close(&pair.house));
}

static void ten_thousand_steps_of_both_are_the_same(void **state)
{
	(void)state;
	run_beside(gale_fixed_window(5, GALE_SECONDS(2)),
	           custom_window(5, GALE_SECONDS(2)), 5);
	run_beside(gale_gcra(CUSTOM_RATE, CUSTOM_PERIOD_US, 6), custom_gcra(6), 6);
}

/* ---- Modes ----------------------------------------------------------------------- */

static void it_is_not_leased(void **state)
{
	struct house_plan plan = { .rule = custom_window(5, GALE_HOURS(1)) };
	struct gale_limiter *limiter = NULL;
	struct gale_limiter_config config = { .name = "leased",
		                              .rule = plan.rule,
		                              .mode = GALE_LEASED };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	config.store = h.store;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &limiter),
	                 GALE_ERR_CANNOT_LEASE);
	assert_null(limiter);
	config.rule.strategy = NULL;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &limiter),
	                 GALE_ERR_RULE_STRATEGY);
	assert_true(house_close(&h));
}

/* What was denied is known here until its retry time, for its cost and above. */
static void its_denials_are_remembered(void **state)
{
	struct house_plan plan = { .rule = custom_window(3, GALE_HOURS(1)),
		                   .mode = GALE_CACHED_DENY,
		                   .still = true };
	struct gale_answer answer = { .why = GALE_WHY_RULE };
	uint64_t steps;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 3; i++)
		assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	while (answer.why != GALE_WHY_SPENT)
		answer = house_wait(&h, "k");
	steps = house_stats(&h).steps;
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_SPENT);
	assert_int_equal(house_stats(&h).steps, steps);
	test_clock_advance(&h.clock, GALE_HOURS(1));
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&h));
}

static void who_counts_otherwise_is_refused(void **state)
{
	struct house_plan plan = { .rule = custom_window(3, GALE_HOURS(1)) };
	struct gale_limiter *other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	other = house_limiter(&h, "house", custom_gcra(3));
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	assert_int_equal(gale_wait(h.seat, other, "k", 1, 1, WITHIN).why,
	                 GALE_WHY_CHANGED);
	assert_int_equal(house_stats(&h).changed, 1);
	gale_limiter_close(other);
	assert_true(house_close(&h));
}

/* The share is the same strategy with a smaller limit. */
static void a_share_is_kept_by_it(void **state)
{
	struct house_plan plan = { .rule = custom_window(10, GALE_HOURS(1)),
		                   .max_keys = 1,
		                   .on_outage = GALE_ON_OUTAGE_SHARE,
		                   .outage_share = 2 };
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	for (int i = 0; i < 4; i++) {
		answer = house_wait(&h, "l");
		assert_int_equal(answer.why, GALE_WHY_FULL);
		assert_int_equal(answer.verdict, i < 2 ? GALE_ALLOW : GALE_DENY);
		assert_int_equal(answer.limit, 2);
	}
	assert_true(house_close(&h));
}

/* ---- What is not believed -------------------------------------------------------- */

static void expect_refused(enum fault fault, enum gale_on_outage policy)
{
	struct house_plan plan = { .rule = custom_broken(fault),
		                   .on_outage = policy,
		                   .outage_share = 1 };
	struct gale_outlook outlook = { .spendable_now = 7 };
	struct gale_answer answer, peek = { .remaining = 7 };
	struct house h;

	house_open(&h, &plan);
	answer = house_wait(&h, "k");
	assert_int_equal(answer.why, GALE_WHY_BROKEN);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(house_stats(&h).broken, 1);
	assert_int_equal(house_stats(&h).steps, 0);
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, WITHIN, &peek),
	                 GALE_ERR_BROKEN);
	assert_int_equal(peek.remaining, 7);
	assert_int_equal(gale_forecast(h.seat, h.limiter, "k", 1, 1, WITHIN, &outlook),
	                 GALE_ERR_BROKEN);
	assert_int_equal(outlook.spendable_now, 7);
	assert_int_equal(house_stats(&h).broken, 3);
	assert_int_equal(house_stats(&h).keys, 0);
	assert_true(house_close(&h));
}

static void a_ruling_that_cannot_be_is_denied_whatever_the_policy(void **state)
{
	(void)state;
	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
		expect_refused((enum fault)fault, GALE_ON_OUTAGE_DENY);
		expect_refused((enum fault)fault, GALE_ON_OUTAGE_ALLOW);
		expect_refused((enum fault)fault, GALE_ON_OUTAGE_SHARE);
	}
}

/* One that is only sometimes wrong keeps what it had. */
static struct gale_ruling moody_step(const struct gale_strategy *self,
                                     const struct gale_rule *rule, uint64_t *words,
                                     uint64_t now_us, uint64_t cost)
{
	(void)self;
	(void)now_us;
	words[0] += cost;
	return (struct gale_ruling){ .verdict =
		                         cost == 3 ? (enum gale_verdict)3 : GALE_ALLOW,
		                     .remaining = rule->limit - words[0],
		                     .reset_after_us = rule->period_us };
}

static void a_key_outlives_a_ruling_that_cannot_be(void **state)
{
	static const struct gale_strategy moody = { .name = "moody",
		                                    .words = 1,
		                                    .step = moody_step };
	struct house_plan plan = { .rule = gale_custom(&moody, 9, GALE_HOURS(1)) };
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	(void)gale_wait(h.seat, h.limiter, "k", 1, 2, WITHIN);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 3, WITHIN);
	assert_int_equal(answer.why, GALE_WHY_BROKEN);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 4, WITHIN);
	assert_int_equal(answer.remaining, 3);
	assert_int_equal(house_stats(&h).steps, 2);
	assert_true(house_close(&h));
}

/* ---- Many at once ---------------------------------------------------------------- */

struct crowd {
	struct house house;
	_Atomic uint64_t allowed;
	_Atomic uint64_t others;
};

static void come(void *arg, unsigned who)
{
	struct crowd *crowd = arg;
	struct gale_answer answer = { .why = GALE_WHY_CLOSED };
	struct gale_seat *seat;

	(void)who;
	if (gale_join(crowd->house.runtime, &seat) == GALE_ERR_OK) {
		answer = gale_wait(seat, crowd->house.limiter, "k", 1, 1, WITHIN);
		gale_leave(seat);
	}
	add_relaxed(&crowd->allowed, answer.verdict == GALE_ALLOW);
	add_relaxed(&crowd->others, answer.why != GALE_WHY_RULE);
}

static void two_hundred_at_once_get_exactly_the_limit(void **state)
{
	const struct gale_rule rules[] = { custom_window(FIFTY, GALE_HOURS(1)),
		                           custom_gcra(FIFTY) };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct house_plan plan = { .rule = rules[i] };
		struct crowd crowd = { .allowed = 0 };

		house_open(&crowd.house, &plan);
		crew_run(CROWD, come, &crowd);
		assert_int_equal(load_relaxed(&crowd.allowed), FIFTY);
		assert_int_equal(load_relaxed(&crowd.others), 0);
		assert_true(house_close(&crowd.house));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_thousand_steps_of_both_are_the_same),
		cmocka_unit_test(it_is_not_leased),
		cmocka_unit_test(its_denials_are_remembered),
		cmocka_unit_test(who_counts_otherwise_is_refused),
		cmocka_unit_test(a_share_is_kept_by_it),
		cmocka_unit_test(a_ruling_that_cannot_be_is_denied_whatever_the_policy),
		cmocka_unit_test(a_key_outlives_a_ruling_that_cannot_be),
		cmocka_unit_test(two_hundred_at_once_get_exactly_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
