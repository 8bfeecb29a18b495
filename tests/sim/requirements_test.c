/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * requirements_test.c -- what a leased fleet must do, each case by its name.
 *
 * spec/laws.md has the text of.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/sim/by_hand.h"

/* ---- Requirements ---------------------------------------------------------------- */

static void r1_clocks_that_differ_do_not_matter(void **state)
{
	struct world_plan plan = plan_of(100, 10, 8);

	(void)state;
	plan.offset_us = GALE_MILLIS(50);
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 5; window++) {
		uint64_t leases = w.leases;

		run_to(window, GALE_MILLIS(1));
		(void)ask_times(400);
		run_to(window, GALE_MILLIS(900));
		(void)ask_times(400);
		assert_int_equal(world_used(&w, 0, window), 100); /* SIM-1 */
		assert_true(w.leases - leases <= 100 / 10 + 8);
	}
	world_ends();
}

static void r2_a_reply_after_the_boundary_does_not_count_twice(void **state)
{
	struct world_plan plan = plan_of(100, 100, 1);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = GALE_MILLIS(1), .exact = true };
	plan.lease.patience_us = WINDOW / 2;
	world_open(&w, &plan);
	run_to(0, WINDOW - GALE_MILLIS(10));
	for (int i = 0; i < 100; i++)
		world_ask(&w, 0, 0, 0, 1);
	w.net.terms.mean_us = GALE_MILLIS(50); /* the reply is slow */
	run_to(1, GALE_MILLIS(45));
	assert_int_equal(w.leases, 1);
	assert_int_equal(w.admissions, 0);
	w.net.terms.mean_us = GALE_MILLIS(1);
	run_to(1, GALE_MILLIS(100));
	(void)ask_times(100);
	run_to(1, GALE_MILLIS(900));
	assert_int_equal(world_used(&w, 0, 0), 0);
	assert_int_equal(world_used(&w, 0, 1), 100); /* LESSOR-3 */
	assert_int_equal(counted("leases_dead_on_arrival"), 1);
	world_ends();
}

static void r5_two_keys_where_there_is_room_for_one(void **state)
{
	struct world_plan plan = plan_of(10, 1, 1);

	(void)state;
	plan.node_keys = 1;
	world_open(&w, &plan);
	run_to(0, 1000);
	for (uint32_t key = 0; key < 2; key++)
		told(world_ask(&w, 0, 0, key, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	for (uint32_t key = 0; key < 2; key++)
		told(world_ask(&w, 0, 0, key, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	assert_true(w.leases <= 4);
	assert_true(counted("keys_evicted") >= 3);
	world_ends();
}

/* While one is asked about, the other waits for its place: both are served, by a lease
 * each. LESSOR-7 */
static void r5_two_keys_at_once(void **state)
{
	struct world_plan plan = plan_of(10, 1, 1);
	struct call *first, *second;

	(void)state;
	plan.node_keys = 1;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	first = world_ask(&w, 0, 0, 0, 1);
	second = world_ask(&w, 0, 0, 1, 1);
	run_to(0, 20000);
	told(first, GALE_ALLOW, GALE_WHY_CREDIT);
	told(second, GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(counted("asks_without_room_for_key"), 0);
	assert_int_equal(w.leases, 2);
	world_ends();
}

/* What is lent for a key that is asked about while another wants its place is that key's:
 * its place is kept until the answer is there. */
static void r5_what_comes_for_a_key_is_not_the_next_keys(void **state)
{
	struct world_plan plan = plan_of(10, 5, 1);

	(void)state;
	plan.node_keys = 1;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	world_ask(&w, 0, 0, 1, 1);
	run_to(0, 20000);
	for (int i = 0; i < 8; i++) {
		world_ask(&w, 0, 0, 1, 1);
		run_to(0, 30000 + 10000 * (uint64_t)i);
	}
	assert_int_equal(w.leases, 3); /* of key 1, two */
	world_ends();
}

/* Nobody waits for ever: the place is kept by an ask that the store does not answer. */
static void a_place_that_does_not_come_is_waited_for_with_patience(void **state)
{
	struct world_plan plan = plan_of(10, 1, 1);
	struct call *second;

	(void)state;
	plan.node_keys = 1;
	plan.net = (struct net_terms){ .mean_us = 3 * GALE_SECONDS(1), .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	run_to(0, 51000);
	second = world_ask(&w, 0, 0, 1, 1);
	run_to(0, 51000 + 2 * GALE_SECONDS(1));
	assert_int_equal(verdict_of(second), GALE_DENY);
	world_ends();
}

/* So many asks, evenly over each of the windows, and so many served at least. */
static void serves_each_window(struct world_plan plan, uint64_t demand,
                               uint64_t windows, uint64_t least)
{
	world_open(&w, &plan);
	for (uint64_t i = 0; i < demand * windows; i++) {
		world_run(&w, WORLD_START + (2 * i + 1) * WINDOW / (2 * demand));
		world_ask(&w, (uint32_t)(i % plan.nodes), 0, 0, 1);
	}
	for (size_t i = 0; i < windows; i++)
		assert_in_range(world_used(&w, 0, i), least, plan.rule.limit);
	world_ends();
}

static void r6_demand_of_the_limit_is_served(void **state)
{
	struct world_plan plan = plan_of(100, 0, 1);

	(void)state;
	serves_each_window(plan, 100, 40, 95);
	plan.nodes = 2;
	serves_each_window(plan, 100, 40, 90); /* 91 while it learns */
	plan.nodes = 1;
	plan.lease = (struct gale_leasing){ .sizing = GALE_SIZE_EOQ,
		                            .order_cost = 200,
		                            .strand_penalty = 1 };
	serves_each_window(plan, 100, 40, 95);
}

static void r7_no_tail_is_stranded_by_the_batch(void **state)
{
	static const uint64_t cases[][2] = {
		{ 10, 4 }, { 100, 30 }, { 100, 64 }, { 10, 11 }
	};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct world_plan plan = plan_of(cases[i][0], cases[i][1], 1);

		world_open(&w, &plan);
		run_to(0, 1000);
		assert_int_equal(ask_times(200), plan.rule.limit);
		world_ends();
	}
}

static void r10_a_hundred_at_once(void **state)
{
	struct world_plan plan = plan_of(100, 16, 1);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	for (int i = 0; i < 120; i++)
		world_ask_only(&w, 0, 0, 0, 1, 10);
	run_to(0, GALE_MILLIS(900));
	assert_int_equal(w.admissions, 100);
	assert_true(w.leases <= 7); /* LESSOR-1 */
	world_ends();
}

static void a_dear_call_blocks_no_cheap_one(enum gale_mode mode)
{
	struct world_plan plan = plan_of(10, 0, 1);
	struct call *call;

	plan.mode = mode;
	world_open(&w, &plan);
	run_to(0, 1000);
	call = world_ask(&w, 0, 0, 0, 100);
	assert_int_equal(verdict_of(call), GALE_DENY);
	assert_int_equal(call->answer.retry_after_us, GALE_NEVER);
	assert_int_equal(verdict_of(world_ask(&w, 0, 0, 0, 3)), GALE_ALLOW);
	assert_int_equal(verdict_of(world_ask(&w, 0, 0, 0, 10)), GALE_DENY);
	assert_int_equal(verdict_of(world_ask(&w, 0, 0, 0, 1)), GALE_ALLOW);
	assert_int_equal(verdict_of(world_ask(&w, 0, 0, 0, 6)), GALE_ALLOW);
	assert_int_equal(verdict_of(world_ask(&w, 0, 0, 0, 1)), GALE_DENY);
	world_ends();
}

static void r12_a_cost_above_the_limit(void **state)
{
	(void)state;
	a_dear_call_blocks_no_cheap_one(GALE_LEASED);
	a_dear_call_blocks_no_cheap_one(GALE_CACHED_DENY);
	a_dear_call_blocks_no_cheap_one(GALE_STRICT);
}

static void r14_a_key_that_is_exhausted_costs_the_store_nothing(void **state)
{
	struct world_plan plan = plan_of(20, 7, 1);
	uint64_t requests;

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(20), 20);
	requests = w.net.requests;
	for (uint64_t i = 0; i < 500; i++) {
		run_to(0, GALE_MILLIS(2 + i));
		assert_int_equal(ask_times(1), 0);
	}
	assert_true(w.net.requests - requests <= 2);
	assert_int_equal(counted("refused_from_memory"), 500);
	run_to(1, 1000);
	assert_int_equal(ask_times(30), 20);
	world_ends();
}

/* ---- Two tiers ------------------------------------------------------------------- */

static void a_lease_is_shared_by_many_calls(void **state)
{
	struct world_plan plan = plan_of(100, 10, 1);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(10), 10);
	assert_int_equal(w.net.requests, 1);
	assert_int_equal(ask_times(1), 1);
	assert_int_equal(w.net.requests, 2);
	world_ends();
}

static void cold_misses_at_once_send_one_request(void **state)
{
	struct world_plan plan = plan_of(100, 10, 1);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 500, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	for (int i = 0; i < 3; i++)
		world_ask(&w, 0, 0, 0, 1);
	run_to(0, 3000);
	assert_int_equal(w.admissions, 3);
	assert_int_equal(w.net.requests, 1); /* LESSOR-1 */
	assert_int_equal(ask_times(7), 7);
	assert_int_equal(w.net.requests, 1);
	world_ask(&w, 0, 0, 0, 1);
	assert_int_equal(w.net.requests, 2);
	run_to(0, 9000);
	assert_int_equal(w.admissions, 11);
	world_ends();
}

/* What many keys want at the same time goes in one call. */
static void many_keys_are_asked_about_in_one_call(void **state)
{
	struct world_plan plan = plan_of(10, 5, 1);

	(void)state;
	plan.keys = 20;
	world_open(&w, &plan);
	run_to(0, 1000);
	for (uint32_t key = 0; key < 20; key++)
		world_ask_only(&w, 0, 0, key, 1, GALE_MILLIS(1));
	run_to(0, GALE_MILLIS(10));
	assert_int_equal(w.admissions, 20);
	assert_int_equal(counted("leases_asked"), 20);
	assert_int_equal(counted("lease_batches"), 1);
	world_ends();
}

/* Of steady calls only those wait that come before the first lease, though the way to the
 * store is long: what will be needed is asked for ahead. */
static void steady_calls_do_not_wait_for_the_next_lease(void **state)
{
	struct world_plan plan = plan_of(100000, 400, 1);
	uint64_t waited = 0;

	(void)state;
	plan.net = (struct net_terms){ .mean_us = GALE_MILLIS(20), .exact = true };
	world_open(&w, &plan);
	for (uint64_t ms = 1; ms < 900; ms++) {
		run_to(0, GALE_MILLIS(ms));
		waited += world_ask(&w, 0, 0, 0, 1)->pending && ms > 100;
	}
	assert_int_equal(waited, 0);
	assert_true(counted("refills_ahead") >= 2);
	world_ends();
}

static void seven_at_a_time(void **state)
{
	struct world_plan plan = plan_of(100, 7, 1);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(20), 20);
	assert_int_equal(w.leases, 3);
	world_ends();
}

/* One call by each of four nodes in a window, then a thousand in the next. */
static uint64_t next_window_of_four(bool carry_over)
{
	struct world_plan plan = plan_of(100, 10, 4);
	uint64_t served;

	plan.lease.carry_over = carry_over;
	world_open(&w, &plan);
	run_to(0, WINDOW - 5000);
	assert_int_equal(ask_times(4), 4);
	run_to(1, 1000);
	served = ask_times(1000);
	world_ends();
	return served;
}

static void windows_are_coupled_unless_carried_over(void **state)
{
	(void)state;
	assert_int_equal(next_window_of_four(false), 100);
	assert_int_equal(next_window_of_four(true), 100 + 4 * 9);
}

/* However many wait: what a node can carry over is a batch less one.               (L14) */
static void what_may_carry_over_comes_by_the_batch(void **state)
{
	struct world_plan plan = plan_of(100, 10, 1);

	(void)state;
	plan.lease.carry_over = true;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	for (int i = 0; i < 25; i++)
		world_ask_only(&w, 0, 0, 0, 1, GALE_MILLIS(1));
	run_to(0, GALE_MILLIS(100));
	assert_int_equal(w.admissions, 25);
	assert_int_equal(w.leases, 3);
	assert_int_equal(counted("units_lent"), 30);
	world_ends();
}

static uint64_t requests_after_a_boundary(bool carry_over)
{
	struct world_plan plan = plan_of(100, 4, 1);
	uint64_t requests;

	plan.lease.carry_over = carry_over;
	world_open(&w, &plan);
	run_to(0, WINDOW - 5000);
	assert_int_equal(ask_times(1), 1);
	requests = w.net.requests;
	run_to(1, 1000);
	assert_int_equal(ask_times(1), 1);
	requests = w.net.requests - requests;
	world_ends();
	return requests;
}

static void a_window_is_leased_anew(void **state)
{
	(void)state;
	assert_int_equal(requests_after_a_boundary(false), 1);
	assert_int_equal(requests_after_a_boundary(true), 0);
}

static void four_nodes_with_changing_demand_are_safe(void **state)
{
	struct world_plan plan = plan_of(100, 0, 4);

	(void)state;
	plan.lease = (struct gale_leasing){ .sizing = GALE_SIZE_EOQ,
		                            .order_cost = 30,
		                            .strand_penalty = 1,
		                            .max_size = 50 };
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 25; window++) {
		run_to(window, 1000);
		for (uint32_t node = 0; node < 4; node++)
			for (uint64_t i = 5 + (7 * node + 13 * window) % 60; i > 0; i--)
				world_ask(&w, node, 0, 0, 1);
		assert_true(world_used(&w, 0, window) <= 100);
	}
	world_ends();
}

static void a_denial_is_remembered(void **state)
{
	struct world_plan plan = plan_of(1, 0, 1);
	uint64_t runs;

	(void)state;
	plan.mode = GALE_CACHED_DENY;
	plan.rule = gale_gcra(1, GALE_SECONDS(10), 1);
	world_open(&w, &plan);
	assert_int_equal(ask_times(1), 1);
	assert_int_equal(ask_times(1), 0);
	runs = w.net.runs;
	assert_int_equal(ask_times(50), 0);
	assert_int_equal(w.net.runs, runs);
	world_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r1_clocks_that_differ_do_not_matter),
		cmocka_unit_test(r2_a_reply_after_the_boundary_does_not_count_twice),
		cmocka_unit_test(r5_two_keys_where_there_is_room_for_one),
		cmocka_unit_test(r5_two_keys_at_once),
		cmocka_unit_test(r5_what_comes_for_a_key_is_not_the_next_keys),
		cmocka_unit_test(
		    a_place_that_does_not_come_is_waited_for_with_patience),
		cmocka_unit_test(r6_demand_of_the_limit_is_served),
		cmocka_unit_test(r7_no_tail_is_stranded_by_the_batch),
		cmocka_unit_test(r10_a_hundred_at_once),
		cmocka_unit_test(r12_a_cost_above_the_limit),
		cmocka_unit_test(r14_a_key_that_is_exhausted_costs_the_store_nothing),
		cmocka_unit_test(a_lease_is_shared_by_many_calls),
		cmocka_unit_test(cold_misses_at_once_send_one_request),
		cmocka_unit_test(many_keys_are_asked_about_in_one_call),
		cmocka_unit_test(steady_calls_do_not_wait_for_the_next_lease),
		cmocka_unit_test(seven_at_a_time),
		cmocka_unit_test(windows_are_coupled_unless_carried_over),
		cmocka_unit_test(what_may_carry_over_comes_by_the_batch),
		cmocka_unit_test(a_window_is_leased_anew),
		cmocka_unit_test(four_nodes_with_changing_demand_are_safe),
		cmocka_unit_test(a_denial_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
