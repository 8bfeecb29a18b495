/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * requirements_test.c -- what a leased fleet must do, each case by its name.
 *
 * The numbers R1 … R14 and "two tiers" are those of the requirements that gale was built
 * from; then come stores and hosts that misbehave, each with the counter that says so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "face/face.h"
#include "sim/world.h"

#define WINDOW GALE_SECONDS(1)

static struct world w; /* too large for a stack */

static struct world_plan plan_of(uint64_t limit, uint64_t batch, uint32_t nodes)
{
	return (struct world_plan){
		.seed = 1,
		.rule = gale_fixed_window(limit, WINDOW),
		.mode = GALE_LEASED,
		.lease = { .sizing = batch ? GALE_SIZE_FIXED : GALE_SIZE_LEARNED,
		           .batch = batch },
		.net = { .direct = true },
		.nodes = nodes,
		.seats = 1,
		.shards = 1,
		.keys = 2,
		.pending = 256,
	};
}

static uint64_t start_of_window(uint64_t window)
{
	return WORLD_START + window * WINDOW;
}

static void run_to(uint64_t window, uint64_t into_us)
{
	world_run(&w, start_of_window(window) + into_us);
}

static void world_ends(void)
{
	bool lawful = world_close(&w);

	if (!lawful)
		fail_msg("%s", w.fault);
}

/* Asks for one unit of key 0 so many times, by each node in its turn. */
static uint64_t ask_times(uint64_t times)
{
	uint64_t before = w.admissions;

	for (uint64_t i = 0; i < times; i++)
		world_ask(&w, (uint32_t)(i % w.plan.nodes), 0, 0, 1);
	return w.admissions - before;
}

static enum gale_verdict verdict_of(const struct call *call)
{
	return call->pending ? GALE_PENDING : call->answer.verdict;
}

static void told(const struct call *call, enum gale_verdict verdict, enum gale_why why)
{
	assert_int_equal(verdict_of(call), verdict);
	assert_string_equal(gale_why_text(call->answer.why), gale_why_text(why));
}

static uint64_t counted(const char *name)
{
	return world_metric(&w, 0, name);
}

/* Each of these nodes asks for a unit of key 0 every millisecond. */
static void steady_asks(uint64_t window, uint64_t from_ms, uint64_t to_ms,
                        uint32_t first_node)
{
	for (uint64_t ms = from_ms; ms < to_ms; ms++) {
		run_to(window, GALE_MILLIS(ms));
		for (uint32_t node = first_node; node < w.plan.nodes; node++)
			world_ask(&w, node, 0, 0, 1);
	}
}

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
		assert_int_equal(world_used(&w, 0, window), 100); /* P1 */
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
	assert_int_equal(world_used(&w, 0, 1), 100); /* O3 */
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
 * each. O7 */
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
	assert_true(w.leases <= 7); /* O1 */
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
	assert_int_equal(counted("refused_from_memory"), 499);
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
	assert_int_equal(w.net.requests, 1); /* O1 */
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

/* ---- Dead units ------------------------------------------------------------------ */

/* A grant of nothing opens the next window; what was there stays dead. */
static void units_of_a_window_stay_dead_in_the_next(void **state)
{
	struct world_plan plan = plan_of(3, 2, 2);

	(void)state;
	world_open(&w, &plan);
	run_to(0, WINDOW - 5000);
	world_ask(&w, 0, 0, 0, 1); /* one is left with node 0 */
	run_to(1, 1000);
	for (int i = 0; i < 3; i++)
		world_ask(&w, 1, 0, 0, 1);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(world_used(&w, 0, 1), 3); /* P1 */
	world_ends();
}

static void units_of_a_meter_stay_dead(void **state)
{
	struct world_plan plan = plan_of(1, 4, 1);

	(void)state;
	plan.rule = gale_gcra(1000, WINDOW, 4);
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(2), 2); /* two are left, for 4 ms */
	run_to(0, GALE_MILLIS(10));
	(void)ask_times(10);
	assert_in_range(w.admissions, 5, 6); /* P6 */
	world_ends();
}

/* What comes of a pacer's burst when the one who waited for it has lost patience is there
 * for a millisecond, and then for nobody. */
static void units_of_a_burst_stay_dead(void **state)
{
	struct world_plan plan = plan_of(1, 0, 1);
	struct call *first, *second, *third;

	(void)state;
	plan.rule = gale_pacer(1, WINDOW, 10);
	plan.net = (struct net_terms){ .mean_us = GALE_MILLIS(45), .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	first = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(61));
	second = world_ask(&w, 0, 0, 0, 1); /* until 161 ms */
	run_to(0, GALE_MILLIS(90));
	w.net.terms.mean_us = GALE_MILLIS(37);
	run_to(0, GALE_MILLIS(164)); /* asked for at 91 ms, it has not come yet */
	told(first, GALE_ALLOW, GALE_WHY_CREDIT);
	told(second, GALE_DENY, GALE_WHY_LATE);
	run_to(0, GALE_MILLIS(166) + 200);
	assert_int_equal(counted("units_lent"), 2);
	third = world_ask(&w, 0, 0, 0, 1);
	assert_int_equal(verdict_of(third), GALE_PENDING); /* P6 */
	world_run(&w, start_of_window(1));
	world_ends();
}

/* Units that would be dead on arrival are not asked for again and again. */
static void the_end_of_a_window_is_no_storm(void **state)
{
	struct world_plan plan = plan_of(1000, 1, 1);

	(void)state;
	world_open(&w, &plan);
	for (uint64_t i = 0; i < 8; i++) {
		run_to(0, WINDOW - 64 + 9 * i);
		world_ask(&w, 0, 0, 0, 1);
	}
	assert_true(w.net.requests <= 8);
	assert_true(counted("leases_dead_on_arrival") > 0);
	run_to(1, 1000);
	assert_int_equal(ask_times(5), 5);
	world_ends();
}

/* Two units lie in the cell of a seat that asks no more; the other gets them. */
static void units_in_cells_are_found_at_the_end(void **state)
{
	struct world_plan plan = plan_of(40, 40, 1);

	(void)state;
	plan.seats = 2;
	plan.hot = true;
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(130)); /* it is looked at, and split */
	assert_int_equal(counted("keys_split_over_seats"), 1);
	world_ask(&w, 0, 1, 0, 1);
	assert_int_equal(ask_times(50), 38); /* Y1 */
	assert_true(w.net.requests <= 3);
	world_ends();
}

/* Within an eighth of a window, after which it is looked at; asked by one seat. */
static void open_and_spend(uint64_t batch, uint64_t units)
{
	struct world_plan plan = plan_of(1000000, batch, 1);

	world_open(&w, &plan);
	run_to(0, 1000);
	(void)ask_times(1);
	run_to(0, GALE_MILLIS(130));
	for (uint64_t spent = 0; spent < units; spent += 500) {
		run_to(0, GALE_MILLIS(130) + spent / 2);
		world_ask(&w, 0, 0, 0, 500);
	}
}

static uint64_t splits_after(uint64_t batch, uint64_t units)
{
	uint64_t splits;

	open_and_spend(batch, units);
	run_to(0, GALE_MILLIS(260));
	splits = counted("keys_split_over_seats");
	world_ends();
	return splits;
}

/* A unit in each microsecond makes a key hot, whether a lease outlasts the looks or not. */
static void a_key_that_is_spent_fast_is_split(void **state)
{
	(void)state;
	assert_int_equal(splits_after(1000000, 135000), 1);
	assert_int_equal(splits_after(1000000, 115000), 0);
	assert_int_equal(splits_after(30000, 200000), 1);
	assert_int_equal(splits_after(30000, 115000), 0);
}

static struct purse *only_purse(void)
{
	for (uint32_t i = 0; i < w.nodes[0].runtime->shard_count; i++) {
		struct purses *set = &w.nodes[0].runtime->shards[i].lessor.purses;

		if (set->own.made > 0)
			return purses_at(set, 0);
	}
	return NULL;
}

/* So many signs, and then a look. */
static bool is_fought_after(unsigned signs, uint64_t cost, uint64_t until_ms)
{
	world_ask(&w, 0, 0, 0, cost); /* or it is given back */
	store_relaxed(&only_purse()->contended, (uint8_t)signs);
	run_to(0, GALE_MILLIS(until_ms));
	assert_int_equal(load_relaxed(&only_purse()->contended), 0);
	return load_relaxed(&only_purse()->fought);
}

/* However fast it is spent: only as long as threads fight over it. */
static void a_split_key_is_fought_over_while_signs_say_so(void **state)
{
	(void)state;
	open_and_spend(1000000, 300000);
	assert_int_equal(counted("keys_split_over_seats"), 1);
	assert_false(is_fought_after(0, 200000, 420));
	assert_false(is_fought_after(CONTENDED - 1, 1, 550));
	assert_true(is_fought_after(CONTENDED, 1, 680));
	assert_true(is_fought_after(STILL_CONTENDED, 1, 810));
	assert_int_equal(counted("split_keys_fought_over"), 1);
	assert_false(is_fought_after(STILL_CONTENDED - 1, 1, 940));
	world_ends();
}

/* A key of two seats that has cells; then, in the next window, units of which the second
 * seat has some in its cell. */
static void open_split(struct world_plan plan)
{
	plan.seats = 2;
	plan.hot = true;
	world_open(&w, &plan);
	run_to(0, 1000);
	(void)ask_times(1);
	run_to(0, GALE_MILLIS(300)); /* it is looked at, and split */
	assert_int_equal(counted("keys_split_over_seats"), 1);
	run_to(1, 1000);
	world_ask(&w, 0, 1, 0, 1);
	run_to(1, GALE_MILLIS(4));
	world_ask(&w, 0, 1, 0, 1); /* the first by its cell */
}

/* The store is asked for what is missing when all is brought together, and then that is
 * together. */
static void units_in_cells_help_those_who_wait(void **state)
{
	uint64_t requests;

	(void)state;
	open_split(plan_of(100, 40, 1));
	assert_int_equal(ask_times(35), 35); /* three are left, in the other's cell */
	requests = w.net.requests;
	told(world_ask(&w, 0, 0, 0, 42), GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(w.net.requests - requests, 1);
	world_ends();
}

/* While the store is asked, a seat moves some to its cell again; the store has no more. */
static void units_in_cells_help_when_there_is_no_more(void **state)
{
	struct world_plan plan = plan_of(100, 100, 1);
	struct call *dear;
	uint64_t requests;

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	open_split(plan); /* 87 for all, and 11 in the cell */
	told(world_ask(&w, 0, 0, 0, 70), GALE_ALLOW, GALE_WHY_CREDIT);
	requests = w.net.requests;
	dear = world_ask(&w, 0, 0, 0, 27); /* of 17 and 11 */
	told(world_ask(&w, 0, 1, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	run_to(1, GALE_MILLIS(9));
	told(dear, GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(w.net.requests - requests, 1);
	world_ends();
}

/* What was asked for in a window and came in the next is not given back as if it were
 * of that one. */
static void a_return_that_is_late_is_too_late(void **state)
{
	struct world_plan plan = plan_of(10, 5, 2);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	run_to(0, WINDOW - 5000);
	w.net.terms.mean_us = GALE_MILLIS(20);
	world_shut(&w, 0); /* gives four back, which arrive in the next window */
	w.net.terms.mean_us = 1000;
	world_start(&w, 0);
	run_to(1, GALE_MILLIS(10));
	for (int i = 0; i < 5; i++)
		world_ask(&w, 0, 0, 0, 1);
	run_to(1, GALE_MILLIS(40));
	for (int i = 0; i < 20; i++)
		world_ask(&w, 1, 0, 0, 1);
	run_to(1, GALE_MILLIS(90));
	assert_int_equal(world_used(&w, 0, 1), 10); /* P1, D3 */
	world_ends();
}

/* A node asks for more, and gives back what it has of the window; both arrive in the next,
 * the one as an ask and the other as nothing. */
static void a_return_from_the_window_before_takes_nothing_off(void **state)
{
	struct world_plan plan = plan_of(10, 5, 2);
	struct call *dear;

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	world_open(&w, &plan);
	run_to(0, WINDOW - GALE_MILLIS(262));
	world_ask(&w, 0, 0, 0, 1);
	run_to(0, WINDOW - GALE_MILLIS(15));
	w.net.terms.mean_us = GALE_MILLIS(20);
	dear = world_ask(&w, 0, 0, 0, 5);
	run_to(0, WINDOW - 1000);
	assert_int_equal(counted("units_given_back"), 4); /* as it idles */
	run_to(1, GALE_MILLIS(40));
	w.net.terms.mean_us = 1000;
	told(dear, GALE_ALLOW, GALE_WHY_CREDIT);
	for (uint64_t i = 0; i < 20; i++) {
		run_to(1, GALE_MILLIS(50 + 10 * i));
		world_ask(&w, 1, 0, 0, 1);
	}
	run_to(1, GALE_MILLIS(300));
	assert_int_equal(world_used(&w, 0, 1), 10); /* P1, D3 */
	world_ends();
}

/* Whatever comes twice is lent once: nothing is lost. */
static void a_request_that_comes_twice_is_served_once(void **state)
{
	struct world_plan plan = plan_of(100, 10, 1);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 1000,
		                       .exact = true,
		                       .doubled_percent = 100 };
	world_open(&w, &plan);
	steady_asks(0, 1, 900, 0);
	assert_true(w.net.doubled >= 10);
	assert_int_equal(world_used(&w, 0, 0), 100); /* D2 */
	world_ends();
}

/* ---- Units that come back -------------------------------------------------------- */

/* The first node has units, and its calls end.  What it gives back is found by those who
 * were denied before that, in time. */
static void what_comes_back_is_admitted(struct world_plan plan, uint64_t asks)
{
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 3; window++) {
		run_to(window, 1000);
		for (uint64_t i = 0; i < asks; i++)
			world_ask(&w, 0, 0, 0, 1);
		steady_asks(window, 2, 999, 1);
		assert_int_equal(world_used(&w, 0, window), plan.rule.limit);
	}
	assert_true(counted("units_given_back") > 0);
	world_ends();
}

static void units_that_come_back_are_found(void **state)
{
	struct world_plan plan = plan_of(100, 50, 2);

	(void)state;
	what_comes_back_is_admitted(plan, 1);
	plan.nodes = 4;
	what_comes_back_is_admitted(plan, 20);
	plan.seats = 2;
	plan.hot = true;
	what_comes_back_is_admitted(plan, 1);
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	plan.rate_ppm = 400;
	what_comes_back_is_admitted(plan, 1);
}

/* The store is asked again every eighth of the window, as long as there is hope. */
static void units_that_come_back_late_are_found(void **state)
{
	struct world_plan plan = plan_of(100, 50, 2);

	(void)state;
	world_open(&w, &plan);
	for (uint64_t ms = 1; ms < 999; ms++) {
		run_to(0, GALE_MILLIS(ms));
		if (ms % 100 == 1 && ms < 602)
			world_ask(&w, 0, 0, 0, 1); /* it gives back at 751 ms */
		if (ms >= 250)
			world_ask(&w, 1, 0, 0, 1);
		if (ms == 740)
			assert_int_equal(counted("units_given_back"), 0);
	}
	assert_int_equal(counted("units_given_back"), 43);
	assert_int_equal(world_used(&w, 0, 0), 100);
	world_ends();
}

/* The store has lent to more nodes than it keeps rows for: who is not on its ledger cannot
 * give back.  So those keep what they have, and who was denied does not ask again. */
static void a_crowd_keeps_what_it_has(void **state)
{
	struct world_plan plan = plan_of(60, 5, 13);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(13), 12); /* the last is denied */
	steady_asks(0, 2, 900, 12);
	for (uint32_t node = 8; node < 12; node++) {
		assert_int_equal(world_metric(&w, node, "leases_given_back"), 0);
		told(world_ask(&w, node, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	}
	assert_int_equal(world_metric(&w, 12, "leases_asked"), 1); /* L7 */
	world_ends();
}

/* A dear call was denied by a node that had some units; it gave them back, as others did,
 * and there is enough now. */
static void a_node_forgets_its_denial_of_what_it_gives_back(void **state)
{
	struct world_plan plan = plan_of(10, 5, 2);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 1, 0, 0, 1);
	assert_int_equal(ask_times(2), 2); /* four with node 0, three with the other */
	told(world_ask(&w, 0, 0, 0, 6), GALE_DENY, GALE_WHY_SPENT);
	run_to(0, GALE_MILLIS(500));
	told(world_ask(&w, 0, 0, 0, 6), GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

/* Everybody asks for more than there is, window after window: all of it is admitted, and
 * the store is asked a few times, not at each ask. */
static void a_fleet_that_wants_more_gets_all_of_it(void **state)
{
	struct world_plan plan = plan_of(100, 0, 4);
	uint64_t requests = 0;

	(void)state;
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 20; window++) {
		if (window == 10)
			requests = w.net.requests;
		steady_asks(window, 1, 999, 0);
		assert_int_equal(world_used(&w, 0, window), 100);
	}
	assert_true(w.net.requests - requests <= 10 * 4 * 3); /* three by each node */
	world_ends();
}

/* The same for a few who ask by lot, twice as much as there is: the first of a window does
 * not take itself for the only one. */
static void a_fleet_that_is_short_strands_hardly_anything(void **state)
{
	struct world_plan plan = plan_of(100, 0, 6);
	struct chance lot = { 1 };
	uint64_t used = 0;

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 2500 };
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 60; window++) {
		for (uint64_t i = 0; i < 200; i++) {
			run_to(window, i * WINDOW / 200);
			world_ask(&w, (uint32_t)chance_below(&lot, 6), 0, 0, 1);
		}
		run_to(window, WINDOW - 1);
		used += window < 10 ? 0 : world_used(&w, 0, window);
	}
	print_message("of 5000: %u\n", (unsigned)used);
	assert_true(used >= 4950);
	world_ends();
}

/* ---- Bad stores ------------------------------------------------------------------ */

static struct world_plan bad_plan(void)
{
	struct world_plan plan = plan_of(10, 5, 1);

	plan.bad = true;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	plan.lease.patience_us = GALE_MILLIS(20);
	return plan;
}

static void a_store_that_never_answers(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *calls[5];

	(void)state;
	world_open(&w, &plan);
	w.nodes[0].port.mute = true;
	for (int i = 0; i < 5; i++)
		calls[i] = world_ask(&w, 0, 0, 0, 1);
	assert_true(gale_turn_after_us(w.nodes[0].runtime) <= GALE_MILLIS(21));
	run_to(0, GALE_MILLIS(21));
	for (int i = 0; i < 5; i++)
		told(calls[i], GALE_DENY, GALE_WHY_LATE); /* O6, P4 */
	assert_int_equal(counted("asks_without_answer"), 1);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN);
	w.nodes[0].port.mute = false;
	run_to(0, GALE_MILLIS(100));
	calls[0] = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(110));
	told(calls[0], GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

static void an_answer_after_the_deadline(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *call;

	(void)state;
	plan.net.mean_us = GALE_MILLIS(15);
	world_open(&w, &plan);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(25));
	told(call, GALE_DENY, GALE_WHY_LATE);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN);
	run_to(0, GALE_MILLIS(40));
	assert_int_equal(counted("answers_late_or_twice"), 1); /* O2 */
	assert_int_equal(counted("units_lent"), 0);
	assert_int_equal(w.admissions, 0);
	world_ends();
}

/* The lie, and what it is about. */
static void lie(struct world_plan plan,
                unsigned (*twist)(struct port *port, struct lend_answer *answer))
{
	world_open(&w, &plan);
	w.nodes[0].port.twist = twist;
}

static unsigned says_more(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 6;
	return 1;
}

static unsigned says_for_ever(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.lasts_us = UINT64_MAX; /* as -1 reads */
	return 1;
}

static unsigned says_longer_than_the_window(struct port *port,
                                            struct lend_answer *answer)
{
	(void)port;
	answer->grant.lasts_us = WINDOW + 1;
	return 1;
}

static unsigned says_twice(struct port *port, struct lend_answer *answer)
{
	(void)port;
	(void)answer;
	return 2;
}

static unsigned says_to_nobody(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->number += 1;
	return 1;
}

static void is_not_believed(unsigned (*twist)(struct port *port,
                                              struct lend_answer *answer))
{
	struct call *call;

	lie(bad_plan(), twist);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(10));
	told(call, GALE_DENY, GALE_WHY_WRONG);
	assert_int_equal(counted("answers_not_believed"), 1);
	assert_int_equal(counted("units_lent"), 0);
	world_ends();
}

static void answers_that_cannot_be_true(void **state)
{
	(void)state;
	is_not_believed(says_more); /* O2 */
	is_not_believed(says_for_ever);
	is_not_believed(says_longer_than_the_window);
}

static unsigned says_the_past(struct port *port, struct lend_answer *answer)
{
	if (port->net->agenda->now_us > start_of_window(1))
		answer->grant.tag.us -= 2 * WINDOW;
	return 1;
}

static void a_window_from_the_past(void **state)
{
	struct call *call;

	(void)state;
	lie(bad_plan(), says_the_past);
	(void)ask_times(1);
	run_to(1, 10);
	assert_int_equal(w.admissions, 1);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(1, GALE_MILLIS(10));
	told(call, GALE_DENY, GALE_WHY_WRONG);
	assert_int_equal(counted("answers_not_believed"), 1);
	world_ends();
}

static void an_answer_that_comes_twice(void **state)
{
	(void)state;
	lie(bad_plan(), says_twice);
	(void)ask_times(1);
	run_to(0, GALE_MILLIS(10));
	assert_int_equal(counted("answers_late_or_twice"), 1); /* O2 */
	assert_int_equal(counted("units_lent"), 5);
	assert_int_equal(ask_times(4), 4);
	world_ends();
}

static void an_answer_to_nothing_that_was_asked(void **state)
{
	struct call *call;

	(void)state;
	lie(bad_plan(), says_to_nobody);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(30));
	told(call, GALE_DENY, GALE_WHY_LATE);
	assert_int_equal(counted("answers_late_or_twice"), 1);
	assert_int_equal(counted("units_lent"), 0);
	world_ends();
}

static uint64_t numbers[2]; /* of the last two requests, by the parity of their turn */

/* Each answer bears the number of the other key's request. */
static unsigned says_to_another(struct port *port, struct lend_answer *answer)
{
	uint64_t mine = answer->number;

	(void)port;
	answer->number = mine == numbers[0] ? numbers[1] : numbers[0];
	return 1;
}

static void note_number(struct net *net, const struct lend_request *request,
                        const struct lend_answer *answer, uint64_t before)
{
	(void)net;
	(void)answer;
	(void)before;
	numbers[request->key[request->key_len - 1] == 'a'] = request->ask.number;
}

static void an_answer_of_another_key(void **state)
{
	struct world_plan plan = bad_plan();

	(void)state;
	lie(plan, says_to_another);
	w.net.served = note_number;
	for (int i = 0; i < 40; i++) {
		world_ask(&w, 0, 0, 0, 1);
		world_ask(&w, 0, 0, 1, 1);
		run_to(0, GALE_MILLIS(5 * (i + 1)));
	}
	assert_true(world_used(&w, 0, 0) <= 10); /* O4 */
	assert_true(world_used(&w, 1, 0) <= 10);
	world_ends();
}

/* A window is never over, and another never ends. */
static unsigned says_always_more(struct port *port, struct lend_answer *answer)
{
	answer->grant.units = 5;
	answer->grant.left = 1000;
	answer->grant.tag.us = port->net->agenda->now_us;
	answer->grant.lasts_us = WINDOW / 2;
	return 1;
}

static unsigned says_the_same_again(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 5;
	answer->grant.left = 1000;
	return 1;
}

static void is_held_to_the_limit(unsigned (*twist)(struct port *port,
                                                   struct lend_answer *answer))
{
	lie(bad_plan(), twist);
	for (int i = 0; i < 60; i++) {
		world_ask(&w, 0, 0, 0, 1);
		run_to(0, GALE_MILLIS(5 * (i + 1)));
	}
	assert_in_range(world_used(&w, 0, 0), 5, 10); /* O4 */
	assert_true(counted("answers_not_believed") > 0);
	world_ends();
}

static void a_greedy_store(void **state)
{
	(void)state;
	is_held_to_the_limit(says_always_more);
	is_held_to_the_limit(says_the_same_again);
}

static uint64_t lies;

/* Each answer is about the next window, which is nearly over. */
static unsigned says_it_is_later(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 10;
	answer->grant.left = 0;
	answer->grant.tag.us = start_of_window(++lies);
	answer->grant.lasts_us = GALE_MILLIS(4);
	return 1;
}

static void a_store_that_opens_a_window_with_each_answer(void **state)
{
	struct world_plan plan = plan_of(10, 10, 1);

	(void)state;
	plan.bad = true;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	lies = 0;
	lie(plan, says_it_is_later);
	for (uint64_t ms = 0; ms < 20000; ms++) {
		run_to(0, GALE_MILLIS(ms));
		world_ask(&w, 0, 0, 0, 1);
		assert_true(w.admissions <= 10 * (1 + ms / 1000)); /* J3 */
	}
	assert_true(w.admissions >= 19); /* it is asked again */
	assert_in_range(counted("answers_refused_as_a_clock_has_jumped"), 10, 20);
	world_ends();
}

/* ---- Bad hosts ------------------------------------------------------------------- */

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
		gone[i]->pending = false; /* forgotten */
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
		assert_int_equal(verdict_of(calls[i]), GALE_DENY); /* O6 */
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
	w.nodes[0].boot_at_start -= us * 1000;
}

static void a_clock_that_stood_still(void **state)
{
	struct call *call, *late;

	(void)state;
	lie(bad_plan(), NULL);
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
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN); /* J3 */
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

/* MANY_KEYS comes from the build: ten million, or fewer under a sanitizer. */
#define KNOWN_KEYS (MANY_KEYS / 100)
#define WARM_KEYS (6 * KNOWN_KEYS / 64 * 64)

static uint64_t many_answers[GALE_ALLOW + 1];

static void ask_many_keys(uint64_t first, uint64_t last)
{
	struct gale_completion some[64];
	struct node *node = &w.nodes[0];
	size_t count;

	for (uint64_t key = first; key < last; key++) {
		struct gale_answer answer =
		    gale_ask(node->seats[0], node->limiter, &key, sizeof(key), 1, NULL);

		many_answers[answer.verdict]++;
		if (key % 64 != 63)
			continue;
		w.agenda.now_us += 10;
		while (gale_turn(node->runtime) > 0)
			continue;
		count = gale_seat_completions(node->seats[0], some, 64);
		for (size_t i = 0; i < count; i++)
			many_answers[some[i].answer.verdict]++;
		many_answers[GALE_PENDING] -= count;
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
	assert_int_equal(many_answers[GALE_PENDING], 0);
	assert_int_equal(many_answers[GALE_ALLOW] + many_answers[GALE_DENY], MANY_KEYS);
	assert_true(many_answers[GALE_ALLOW] > MANY_KEYS * 9 / 10);
	assert_true(counted("keys_evicted") >= MANY_KEYS * 9 / 10 - KNOWN_KEYS);
	assert_true(w.nodes[0].allocator.most <= bytes); /* L8: flat */
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
		cmocka_unit_test(units_of_a_window_stay_dead_in_the_next),
		cmocka_unit_test(units_of_a_meter_stay_dead),
		cmocka_unit_test(units_of_a_burst_stay_dead),
		cmocka_unit_test(the_end_of_a_window_is_no_storm),
		cmocka_unit_test(units_in_cells_are_found_at_the_end),
		cmocka_unit_test(a_key_that_is_spent_fast_is_split),
		cmocka_unit_test(a_split_key_is_fought_over_while_signs_say_so),
		cmocka_unit_test(units_in_cells_help_those_who_wait),
		cmocka_unit_test(units_in_cells_help_when_there_is_no_more),
		cmocka_unit_test(a_return_that_is_late_is_too_late),
		cmocka_unit_test(a_return_from_the_window_before_takes_nothing_off),
		cmocka_unit_test(a_request_that_comes_twice_is_served_once),
		cmocka_unit_test(units_that_come_back_are_found),
		cmocka_unit_test(units_that_come_back_late_are_found),
		cmocka_unit_test(a_crowd_keeps_what_it_has),
		cmocka_unit_test(a_node_forgets_its_denial_of_what_it_gives_back),
		cmocka_unit_test(a_fleet_that_wants_more_gets_all_of_it),
		cmocka_unit_test(a_fleet_that_is_short_strands_hardly_anything),
		cmocka_unit_test(a_store_that_never_answers),
		cmocka_unit_test(an_answer_after_the_deadline),
		cmocka_unit_test(answers_that_cannot_be_true),
		cmocka_unit_test(a_window_from_the_past),
		cmocka_unit_test(an_answer_that_comes_twice),
		cmocka_unit_test(an_answer_to_nothing_that_was_asked),
		cmocka_unit_test(an_answer_of_another_key),
		cmocka_unit_test(a_greedy_store),
		cmocka_unit_test(a_store_that_opens_a_window_with_each_answer),
		cmocka_unit_test(an_answer_from_before_a_reset),
		cmocka_unit_test(a_clock_that_stood_still),
		cmocka_unit_test(a_seat_that_leaves_with_asks_pending),
		cmocka_unit_test(a_runtime_that_is_closed_under_load),
		cmocka_unit_test(what_is_left_at_the_end_goes_back),
		cmocka_unit_test(a_hundred_times_as_many_keys_as_may_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
