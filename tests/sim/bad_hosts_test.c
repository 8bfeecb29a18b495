/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bad_hosts_test.c -- hosts that misbehave: seats that leave with asks pending, runtimes that
 * are closed under load, clocks that stood still, and more keys than may be known.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "tests/sim/by_hand.h"

static void a_seat_that_leaves_with_asks_pending(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *gone[20], *stays;

	(void)state;
	plan.seats = 2;
	world_open(&w, &plan);
	for (int i = 0; i < 20; i++)
		gone[i] = world_ask(&w, 0, 1, 0, 1);
	stays = world_ask(&w, 0, 0, 0, 1);
	gale_leave(w.nodes[0].seats[1]);
	for (int i = 0; i < 20; i++)
		world_forget(&w, gone[i]);
	assert_int_equal(gale_join(w.nodes[0].runtime, &w.nodes[0].seats[1]),
	                 GALE_ERR_OK);
	run_to(0, GALE_MILLIS(50));
	assert_int_equal(verdict_of(stays), GALE_DENY); /* all was taken before it */
	assert_int_equal(ask_times(1), 0);
	world_ends();
}

static void a_runtime_that_is_closed_under_load(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *calls[60];

	(void)state;
	plan.nodes = 2;
	world_open(&w, &plan);
	for (int i = 0; i < 60; i++)
		calls[i] = world_ask_only(&w, 0, 0, i % 2 ? 1 : 0, 1, 100);
	world_shut(&w, 0);
	for (int i = 0; i < 60; i++)
		assert_int_equal(verdict_of(calls[i]), GALE_DENY); /* LESSOR-6 */
	run_to(0, GALE_MILLIS(50));
	world_ends();
}

/* What the store had granted before it forgot the key is not for us: it grants as much
 * again. */
static void an_answer_from_before_a_reset(void **state)
{
	struct world_plan plan = bad_plan();

	(void)state;
	plan.nodes = 2;
	plan.lease.batch = 10;
	world_open(&w, &plan);
	for (int i = 0; i < 4; i++)
		world_ask(&w, 0, 0, 0, 1);
	run_to(0, 1500); /* it has been granted, and is on its way */
	assert_int_equal(w.net.requests, 1);
	assert_int_equal(gale_reset(w.nodes[0].seats[0], w.nodes[0].limiter, "a", 1,
	                            GALE_SECONDS(1)),
	                 GALE_ERR_LATE); /* it goes its way: nobody waits in a world */
	world_turns(&w, 0);
	for (uint64_t ms = 2; ms < 100; ms += 2) {
		run_to(0, GALE_MILLIS(ms));
		world_ask(&w, 0, 0, 0, 1);
		world_ask(&w, 1, 0, 0, 1);
	}
	assert_int_equal(w.admissions, 10);
	world_ends();
}

/* A machine that was suspended, and a clock that does not know. */
static void stand_still(uint64_t us)
{
	w.agenda.now_us += us;
	w.nodes[0].dial.boot_ns -= us * 1000;
}

static void a_clock_that_stood_still(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *call, *late;

	(void)state;
	world_open(&w, &plan);
	(void)ask_times(1);
	run_to(0, GALE_MILLIS(10));
	told(world_ask(&w, 0, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	stand_still(2 * WINDOW);
	call = world_ask(&w, 0, 0, 1, 1);
	run_to(2, GALE_MILLIS(11));
	late = world_ask(&w, 0, 0, 2, 1);
	run_to(2, GALE_MILLIS(20));
	told(call, GALE_DENY, GALE_WHY_DOWN);
	told(late, GALE_DENY, GALE_WHY_DOWN);
	assert_int_equal(counted("answers_refused_as_a_clock_has_jumped"), 2);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN); /* JUMP-3 */
	told(world_ask(&w, 0, 0, 1, 1), GALE_DENY, GALE_WHY_DOWN);
	run_to(3, GALE_MILLIS(20));
	for (uint32_t key = 0; key < 2; key++) {
		call = world_ask(&w, 0, 0, key, 1);
		run_to(3, GALE_MILLIS(30 + 10 * key));
		told(call, GALE_ALLOW, GALE_WHY_CREDIT);
	}
	assert_int_equal(world_used(&w, 0, 2), 0);
	assert_int_equal(counted("answers_refused_as_a_clock_has_jumped"), 2);
	world_ends();
}

/* What a node that closes has left goes to the others. */
static void what_is_left_at_the_end_goes_back(void **state)
{
	struct world_plan plan = plan_of(10, 10, 2);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	told(world_ask(&w, 0, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	world_shut(&w, 0);
	for (int i = 0; i < 9; i++)
		told(world_ask(&w, 1, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	told(world_ask(&w, 1, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	world_ends();
}

/* MANY_KEYS comes from the build: ten million, or fewer. */
#define KNOWN_KEYS (MANY_KEYS / 100)
#define WARM_KEYS (6 * KNOWN_KEYS / 64 * 64)

static uint64_t many_answers[GALE_ALLOW + 1];

static void let_time_pass(struct node *node)
{
	struct gale_completion some[64];
	size_t count;

	w.agenda.now_us += 10;
	while (gale_turn(node->runtime) > 0)
		continue;
	count = gale_seat_completions(node->seats[0], some, 64);
	for (size_t i = 0; i < count; i++)
		many_answers[some[i].answer.verdict]++;
	many_answers[GALE_PENDING] -= count;
}

static void ask_many_keys(uint64_t first, uint64_t last)
{
	struct node *node = &w.nodes[0];

	for (uint64_t key = first; key < last; key++) {
		struct gale_answer answer =
		    gale_ask(node->seats[0], node->limiter, &key, sizeof(key), 1, NULL);

		many_answers[answer.verdict]++;
		if (key % 64 == 63)
			let_time_pass(node);
	}
}

static void a_hundred_times_as_many_keys_as_may_be_known(void **state)
{
	struct world_plan plan = plan_of(5, 2, 1);
	uint64_t bytes;

	(void)state;
	memset(many_answers, 0, sizeof(many_answers));
	plan.node_keys = KNOWN_KEYS;
	plan.rule = gale_fixed_window(5, GALE_MILLIS(10));
	world_open(&w, &plan);
	w.net.served = NULL;
	ask_many_keys(0, WARM_KEYS);
	bytes = w.nodes[0].allocator.most;
	ask_many_keys(WARM_KEYS, MANY_KEYS);
	for (int i = 0; i < 10; i++) /* those of the end of a window are for the next */
		let_time_pass(&w.nodes[0]);
	assert_int_equal(many_answers[GALE_PENDING], 0);
	assert_int_equal(many_answers[GALE_ALLOW] + many_answers[GALE_DENY], MANY_KEYS);
	assert_true(many_answers[GALE_ALLOW] > MANY_KEYS * 9 / 10);
	assert_true(counted("keys_evicted") >= MANY_KEYS * 9 / 10 - KNOWN_KEYS);
	assert_true(w.nodes[0].allocator.most <= bytes); /* L8: flat */
	/* The world has not seen these asks, and holds the node's counters to what it has. */
	w.nodes[0].allowed = w.nodes[0].allows = many_answers[GALE_ALLOW];
	w.nodes[0].denied = many_answers[GALE_DENY];
	world_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_from_before_a_reset),
		cmocka_unit_test(a_clock_that_stood_still),
		cmocka_unit_test(a_seat_that_leaves_with_asks_pending),
		cmocka_unit_test(a_runtime_that_is_closed_under_load),
		cmocka_unit_test(what_is_left_at_the_end_goes_back),
		cmocka_unit_test(a_hundred_times_as_many_keys_as_may_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
