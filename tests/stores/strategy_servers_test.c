/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * strategy_servers_test.c -- a user's own strategies on a real Redis and PostgreSQL.
 *
 * The servers' clock stands where a test puts it, so that what is asked one after the
 * other is asked at the same instant, and each field of an answer can be compared.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "sim/random.h"
#include "tests/support/both_servers.h"
#include "tests/support/clock.h"
#include "tests/support/customs.h"
#include "tests/support/fake_time.h"
#include "tests/support/late.h"
#include "tests/support/length.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/same.h"

#define FIRST_NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* in 2030 */
#define WITHIN GALE_SECONDS(30)
#define STEPS LONG_OR_BRIEF(10000, 3000)
#define PAIRS 2
#define MOMENT_US 15625 /* a 64th of a second */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
};

static struct fake_time server_time;
static struct both_servers both;
static uint64_t noon_us = FIRST_NOON_US; /* of another day for each test */

static void open_node(struct node *node, const char *url, struct gale_clock *clock)
{
	struct gale_config config = { .shards = 1, .max_keys = 64, .clock = clock };
	struct gale_store_config store = { .url = url, .quarantine_us = 1 };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static struct gale_limiter *limiter_at(const struct node *node, const char *name,
                                       struct gale_rule rule, enum gale_mode mode)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = rule,
		.mode = mode,
		.store = node->store,
		.lease = { .patience_us = WITHIN },
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(node->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_answer ask(const struct node *node, struct gale_limiter *limiter,
                              uint64_t cost)
{
	return gale_wait(node->seat, limiter, "k", 1, cost, WITHIN);
}

static struct gale_counts counts(const struct node *node)
{
	struct gale_counts counts;

	must(gale_store_stats(node->store, &counts) == GALE_ERR_OK);
	return counts;
}

static void on_both(void (*run)(int which))
{
	for (int which = 0; which < BOTH; which++) {
		noon_us += GALE_DAYS(1);
		fake_time_set(&server_time, noon_us);
		run(which);
	}
}

/* ---- The same as the built-in ---------------------------------------------------- */

/* Of each rule: the built-in one and the own one on a server, and the own one here. */
struct trio {
	struct node there;
	struct node here;
	struct test_clock clock;
	struct gale_limiter *built_in[PAIRS];
	struct gale_limiter *own[PAIRS];
	struct gale_limiter *embedded[PAIRS];
	struct chance chance;
	uint64_t now;
};

static void open_trio(struct trio *t, int which)
{
	const struct gale_rule built_in[PAIRS] = {
		gale_fixed_window(5, GALE_SECONDS(2)),
		gale_gcra(CUSTOM_RATE, CUSTOM_PERIOD_US, 6),
	};
	const struct gale_rule own[PAIRS] = { custom_window(5, GALE_SECONDS(2)),
		                              custom_gcra(6) };
	char name[16];

	*t = (struct trio){ .chance = { 7 }, .now = noon_us };
	test_clock_init(&t->clock, t->now);
	open_node(&t->there, both.urls[which], NULL);
	open_node(&t->here, "memory:", &t->clock.clock);
	for (int i = 0; i < PAIRS; i++) {
		snprintf(name, sizeof(name), "built-in%d", i);
		t->built_in[i] = limiter_at(&t->there, name, built_in[i], GALE_STRICT);
		snprintf(name, sizeof(name), "own%d", i);
		t->own[i] = limiter_at(&t->there, name, own[i], GALE_STRICT);
		t->embedded[i] = limiter_at(&t->here, name, own[i], GALE_STRICT);
	}
}

static void close_trio(struct trio *t)
{
	for (int i = 0; i < PAIRS; i++) {
		gale_limiter_close(t->built_in[i]);
		gale_limiter_close(t->own[i]);
		gale_limiter_close(t->embedded[i]);
	}
	close_node(&t->there);
	close_node(&t->here);
}

static void same_by_rule(const struct gale_answer *a, const struct gale_answer *b)
{
	assert_int_equal(b->why, GALE_WHY_RULE);
	same_answer(a, b);
}

/* Where one of the three is asked. */
struct place {
	const struct node *node;
	struct gale_limiter *limiter;
};

#define PLACES 3

/* A server that was not given the processor for a second is given up on: that is no answer,
 * and the step is made again on keys that are new.  All else has to be the same. */
static bool was_answered(enum gale_err err)
{
	assert_true(err == GALE_ERR_OK || err == GALE_ERR_LATE);
	return err == GALE_ERR_OK;
}

static bool look_at_all(const struct place *places, const char *key, uint64_t cost)
{
	struct gale_answer peeks[PLACES];
	struct gale_outlook outlooks[PLACES];

	for (int i = 0; i < PLACES; i++) {
		const struct place *at = &places[i];

		if (!was_answered(gale_peek(at->node->seat, at->limiter, key, 1, WITHIN,
		                            &peeks[i])) ||
		    !was_answered(gale_forecast(at->node->seat, at->limiter, key, 1,
		                                cost, WITHIN, &outlooks[i])))
			return false;
		same_by_rule(&peeks[i], &peeks[0]);
		assert_memory_equal(&outlooks[i], &outlooks[0], sizeof(outlooks[0]));
	}
	return true;
}

static bool reset_all(const struct place *places, const char *key)
{
	for (int i = 0; i < PLACES; i++)
		if (!was_answered(gale_reset(places[i].node->seat, places[i].limiter,
		                             key, 1, WITHIN)))
			return false;
	return true;
}

static bool ask_all(const struct place *places, const char *key, uint64_t cost)
{
	struct gale_answer answers[PLACES];

	for (int i = 0; i < PLACES; i++) {
		answers[i] = gale_wait(places[i].node->seat, places[i].limiter, key, 1,
		                       cost, WITHIN);
		if (is_late(answers[i]))
			return false;
		same_by_rule(&answers[i], &answers[0]);
	}
	return true;
}

static bool act_at_all(const struct place *places, uint64_t verb, const char *key,
                       uint64_t cost)
{
	switch (verb) {
	case 0:
		return look_at_all(places, key, cost);
	case 1:
		return reset_all(places, key);
	default:
		return ask_all(places, key, cost);
	}
}

static void step_all(struct trio *t)
{
	static const char *const keys[] = { "a", "b", "c" };
	const char *key = keys[chance_below(&t->chance, 3)];
	uint64_t cost = chance_between(&t->chance, 1, 7);
	uint64_t pair = chance_below(&t->chance, PAIRS);
	uint64_t verb = chance_below(&t->chance, 16);
	const struct place places[PLACES] = {
		{ &t->there, t->built_in[pair] },
		{ &t->there, t->own[pair] },
		{ &t->here, t->embedded[pair] },
	};

	t->now += MOMENT_US * chance_size(&t->chance, 64);
	test_clock_set(&t->clock, t->now);
	fake_time_set(&server_time, t->now);
	while (!act_at_all(places, verb, key, cost))
		while (!reset_all(places, key))
			nap(20000);
}

static void compare(int which)
{
	static struct trio t;

	open_trio(&t, which);
	for (int i = 0; i < STEPS; i++)
		step_all(&t);
	close_trio(&t);
}

static void many_steps_are_the_same(void **state)
{
	(void)state;
	on_both(compare);
}

/* ---- Time ------------------------------------------------------------------------ */

/* Where the machine stands still, a server is taken for dead: a call that it was not asked about is
 * made again. */
static struct gale_answer ask_until_heard(const struct node *node,
                                          struct gale_limiter *limiter)
{
	struct gale_answer answer = ask(node, limiter, 1);

	while (answer.why == GALE_WHY_DOWN)
		answer = ask(node, limiter, 1);
	return answer;
}

static void step_back(int which)
{
	struct gale_limiter *limiter;
	struct gale_answer answer;
	uint64_t admitted = 0;
	struct node node;

	open_node(&node, both.urls[which], NULL);
	limiter =
	    limiter_at(&node, "back", custom_window(3, GALE_SECONDS(2)), GALE_STRICT);
	for (int i = 0; i < 40; i++) {
		fake_time_set(&server_time,
		              i % 2 ? noon_us : noon_us - GALE_MILLIS(400));
		answer = ask_until_heard(&node, limiter);
		assert_int_equal(answer.why, GALE_WHY_RULE);
		admitted += answer.verdict == GALE_ALLOW;
	}
	/* One before noon, three after, and no window opens again. */
	assert_int_equal(admitted, 4);
	gale_limiter_close(limiter);
	close_node(&node);
}

static void a_clock_that_steps_back_opens_no_window_again(void **state)
{
	(void)state;
	on_both(step_back);
}

/* ---- What is written ------------------------------------------------------------- */

/* The words that the server has of it, of which the first is when it was last allowed. */
static void check_looks(int which)
{
	struct gale_limiter *limiter;
	struct gale_outlook outlook;
	struct gale_answer answer;
	uint64_t words[2];
	struct node node;

	open_node(&node, both.urls[which], NULL);
	limiter =
	    limiter_at(&node, "look", custom_window(1, GALE_HOURS(1)), GALE_STRICT);
	must(gale_peek(node.seat, limiter, "k", 1, WITHIN, &answer) == GALE_ERR_OK);
	must(gale_forecast(node.seat, limiter, "k", 1, 1, WITHIN, &outlook) ==
	     GALE_ERR_OK);
	assert_false(both_servers_look(&both, which, "look", "k", words));
	assert_int_equal(ask(&node, limiter, 1).verdict, GALE_ALLOW);
	fake_time_set(&server_time, noon_us + 1000);
	must(gale_peek(node.seat, limiter, "k", 1, WITHIN, &answer) == GALE_ERR_OK);
	assert_int_equal(answer.remaining, 0);
	assert_int_equal(ask(&node, limiter, 1).verdict, GALE_DENY);
	assert_true(both_servers_look(&both, which, "look", "k", words));
	assert_int_equal(words[0], noon_us);
	assert_int_equal(words[1], noon_us + GALE_HOURS(1));
	gale_limiter_close(limiter);
	close_node(&node);
}

static void looks_and_denials_write_nothing(void **state)
{
	(void)state;
	on_both(check_looks);
}

static void check_parameters(int which)
{
	struct gale_limiter *one, *other;
	struct node node;

	open_node(&node, both.urls[which], NULL);
	one = limiter_at(&node, "changed", custom_gcra(3), GALE_STRICT);
	other = limiter_at(&node, "changed", custom_gcra(4), GALE_STRICT);
	assert_int_equal(ask(&node, one, 1).verdict, GALE_ALLOW);
	assert_int_equal(ask(&node, other, 1).why, GALE_WHY_CHANGED);
	assert_int_equal(counts(&node).changed, 1);
	must(gale_reset(node.seat, other, "k", 1, WITHIN) == GALE_ERR_OK);
	assert_int_equal(ask(&node, other, 1).why, GALE_WHY_RULE);
	gale_limiter_close(one);
	gale_limiter_close(other);
	close_node(&node);
}

static void words_of_other_parameters_are_not_read(void **state)
{
	(void)state;
	on_both(check_parameters);
}

static void check_faults(int which)
{
	uint64_t words[2];
	struct node node;

	open_node(&node, both.urls[which], NULL);
	for (int fault = FAULT_NONE + 1; fault < FAULTS; fault++) {
		struct gale_limiter *limiter = limiter_at(
		    &node, "broken", custom_broken((enum fault)fault), GALE_STRICT);
		struct gale_answer answer = ask(&node, limiter, 1), peek;

		assert_int_equal(answer.why, GALE_WHY_BROKEN);
		assert_int_equal(answer.verdict, GALE_DENY);
		assert_int_equal(gale_peek(node.seat, limiter, "k", 1, WITHIN, &peek),
		                 GALE_ERR_BROKEN);
		assert_int_equal(counts(&node).broken, 2 * (uint64_t)fault);
		gale_limiter_close(limiter);
	}
	assert_int_equal(counts(&node).steps, 0);
	assert_false(both_servers_look(&both, which, "broken", "k", words));
	close_node(&node);
}

static void a_ruling_that_cannot_be_is_not_written(void **state)
{
	(void)state;
	on_both(check_faults);
}

/* ---- What it costs --------------------------------------------------------------- */

static uint64_t trips_of(const struct node *node, struct gale_limiter *limiter,
                         enum gale_verdict verdict)
{
	uint64_t before = counts(node).round_trips;

	assert_int_equal(ask(node, limiter, 1).verdict, verdict);
	return counts(node).round_trips - before;
}

static void check_trips(int which)
{
	struct gale_limiter *limiter, *cached;
	struct node node;

	open_node(&node, both.urls[which], NULL);
	limiter =
	    limiter_at(&node, "trips", custom_window(2, GALE_HOURS(1)), GALE_STRICT);
	cached = limiter_at(&node, "trips", custom_window(2, GALE_HOURS(1)),
	                    GALE_CACHED_DENY);
	assert_int_equal(trips_of(&node, limiter, GALE_ALLOW), 2);
	assert_int_equal(trips_of(&node, limiter, GALE_ALLOW), 2);
	assert_int_equal(trips_of(&node, limiter, GALE_DENY), 1);
	assert_int_equal(trips_of(&node, cached, GALE_DENY), 1);
	while (ask(&node, cached, 1).why != GALE_WHY_SPENT)
		continue; /* it is about to be remembered */
	assert_int_equal(trips_of(&node, cached, GALE_DENY), 0);
	gale_limiter_close(limiter);
	gale_limiter_close(cached);
	close_node(&node);
}

static void an_allow_takes_two_round_trips_and_a_denial_one(void **state)
{
	(void)state;
	on_both(check_trips);
}

/* ---- Servers --------------------------------------------------------------------- */

static int start_servers(void **state)
{
	(void)state;
	fake_time_begin(&server_time, FIRST_NOON_US - GALE_DAYS(1));
	both_servers_start(&both);
	fake_time_end();
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	fake_time_close(&server_time);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_steps_are_the_same),
		cmocka_unit_test(a_clock_that_steps_back_opens_no_window_again),
		cmocka_unit_test(looks_and_denials_write_nothing),
		cmocka_unit_test(words_of_other_parameters_are_not_read),
		cmocka_unit_test(a_ruling_that_cannot_be_is_not_written),
		cmocka_unit_test(an_allow_takes_two_round_trips_and_a_denial_one),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
