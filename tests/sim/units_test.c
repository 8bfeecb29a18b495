/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * units_test.c -- where a fleet's units are: what is dead stays dead, what is late is
 * nobody's, what lies in cells is found, and what comes back is admitted.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <gale/hold.h>

#include "face/face.h"
#include "tests/sim/by_hand.h"

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
	assert_int_equal(world_used(&w, 0, 1), 3); /* SIM-1 */
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
	assert_in_range(w.admissions, 5, 6); /* SIM-6 */
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
	assert_int_equal(verdict_of(third), GALE_PENDING); /* SIM-6 */
	world_run(&w, start_of_window(1));
	world_ends();
}

/* Units that would be dead on arrival are not asked for again and again. */
static void the_end_of_a_window_is_no_storm(void **state)
{
	struct world_plan plan = plan_of(1000, 1, 1);
	struct call *calls[8];

	(void)state;
	world_open(&w, &plan);
	for (uint64_t i = 0; i < 8; i++) {
		run_to(0, WINDOW - 64 + 9 * i);
		calls[i] = world_ask(&w, 0, 0, 0, 1);
	}
	assert_true(w.net.requests <= 8);
	assert_true(counted("leases_dead_on_arrival") > 0);
	run_to(1, 1000);
	for (uint64_t i = 0; i < 8; i++)
		told(calls[i], GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(ask_times(5), 5);
	world_ends();
}

/* It has calls in each window but the last, and is lent units ahead when that ends. */
static void an_answer_that_is_dead_serves_by_what_it_brings_ahead(void **state)
{
	struct world_plan plan = plan_of(10000, 0, 1);

	(void)state;
	world_open(&w, &plan);
	for (uint64_t window = 0; window < 4; window++)
		steady_asks(window, 1, 999, 0);
	run_to(6, WINDOW - 10);
	told(world_ask(&w, 0, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(counted("leases_dead_on_arrival"), 1);
	run_to(7, 1000);
	world_ends();
}

/* What a store that is far away lends before its window ends comes too late: whoever waits is
 * allowed in the next window, and denied in none. */
static void who_asks_a_far_store_when_a_window_ends_is_allowed(void **state)
{
	for (uint64_t before_ms = 0; before_ms <= 60; before_ms += 3) {
		struct world_plan plan = plan_of(5, 0, 1);
		struct call *call;

		(void)state;
		plan.net =
		    (struct net_terms){ .mean_us = GALE_MILLIS(20), .exact = true };
		plan.lease.patience_us = GALE_MILLIS(200);
		world_open(&w, &plan);
		run_to(0, WINDOW - GALE_MILLIS(before_ms));
		call = world_ask(&w, 0, 0, 0, 1);
		run_to(1, GALE_MILLIS(200));
		told(call, GALE_ALLOW, GALE_WHY_CREDIT);
		assert_true(w.net.requests <= 3);
		world_ends();
	}
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
	assert_int_equal(ask_times(50), 38); /* PURSE-1 */
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
	assert_int_equal(world_used(&w, 0, 1), 10); /* SIM-1, LEASE-3 */
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
	assert_int_equal(world_used(&w, 0, 1), 10); /* SIM-1, LEASE-3 */
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
	assert_int_equal(world_used(&w, 0, 0), 100); /* LEASE-2 */
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

/* Nodes whose rows are in the value and nodes whose rows are apart give back alike, and who was
 * denied finds all of it. L16 */
static void a_crowd_gives_back(void **state)
{
	struct world_plan plan = plan_of(60, 5, 13);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(13), 12); /* the last is denied */
	steady_asks(0, 2, 999, 12);
	for (uint32_t node = 0; node < 12; node++)
		assert_int_equal(world_metric(&w, node, "units_given_back"), 4);
	assert_int_equal(world_used(&w, 0, 0), 60);
	world_ends();
}

/* An eighth of a day is three hours: what lies idle is back long before that. */
static void what_is_idle_for_an_hour_of_a_day_is_back(void **state)
{
	struct world_plan plan = plan_of(100, 100, 2);

	(void)state;
	plan.rule = gale_quota_anchored(100, GALE_DAYS(1), WORLD_START);
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	told(world_ask(&w, 1, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(counted("units_given_back"), 0);
	world_run(&w, WORLD_START + GALE_HOURS(1));
	assert_int_equal(counted("units_given_back"), 99);
	told(world_ask(&w, 1, 0, 0, 99), GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

static struct gale_hold hold_of_first(uint64_t bound)
{
	struct gale_part part = { w.nodes[0].limiter, "a", 1, bound };
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold hold;
	struct gale_answer answer = gale_hold_wait(w.nodes[0].seats[0], &all, &hold, 0);

	assert_int_equal(answer.verdict, GALE_ALLOW);
	return hold;
}

static void use_nothing(struct gale_hold *hold)
{
	const uint64_t nothing = 0;

	assert_int_equal(gale_hold_commit(w.nodes[0].seats[0], hold, &nothing),
	                 GALE_ERR_OK);
	world_turns(&w, 0);
}

/* Node 1 was denied when the first node had nothing in hand, but for what a hold keeps.  LEASE-9 */
static void what_a_hold_keeps_is_found_when_it_comes_back(void **state)
{
	struct world_plan plan = plan_of(100, 100, 2);
	struct gale_hold hold;

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 10);
	hold = hold_of_first(90);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	told(world_ask(&w, 1, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	use_nothing(&hold);
	steady_asks(0, 2, 999, 1);
	assert_int_equal(world_used(&w, 0, 0), 100);
	(void)world_close(&w); /* it counts no holds */
}

/* The first node gave back what no hold kept, and another node has that. */
static void what_a_hold_keeps_is_found_after_the_rest_went_back(void **state)
{
	struct world_plan plan = plan_of(100, 100, 2);
	struct gale_hold hold;

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1);
	hold = hold_of_first(90);
	run_to(0, GALE_MILLIS(300));
	assert_int_equal(counted("units_given_back"), 9);
	assert_int_equal(verdict_of(world_ask(&w, 1, 0, 0, 9)), GALE_ALLOW);
	told(world_ask(&w, 1, 0, 0, 1), GALE_DENY, GALE_WHY_SPENT);
	use_nothing(&hold);
	steady_asks(0, 301, 999, 1);
	assert_int_equal(world_used(&w, 0, 0), 100);
	(void)world_close(&w); /* it counts no holds */
}

#define STEADY 64
#define STEADY_WINDOWS 6

/* At four fifths of the limit, which is 10,000, by turns. */
static void steady_window(uint64_t window)
{
	for (uint64_t call = 0; call < 8000; call++) {
		run_to(window, call * 125);
		world_ask(&w, (uint32_t)(call % STEADY), 0, 0, 1);
	}
}

/* More than the limit in the first tenth of the window, and half of it after that. */
static void window_of_a_newcomer(uint64_t window)
{
	for (uint64_t call = 0; call < 12000; call++) {
		run_to(window, call * 100 / 12);
		world_ask(&w, STEADY, 0, 0, 1);
	}
	for (uint64_t call = 0; call < 5000; call++) {
		run_to(window, GALE_MILLIS(100) + call * 180);
		world_ask(&w, STEADY, 0, 0, 1);
	}
}

/* A fleet falls silent as a window ends.  Of the next its nodes were lent units ahead, which they have
 * not said yet when another node is denied.  LEASE-9 */
static void what_was_lent_ahead_of_idle_nodes_is_found(void **state)
{
	struct world_plan plan = plan_of(10000, 0, STEADY + 1);

	(void)state;
	plan.net = (struct net_terms){ .mean_us = 500 };
	plan.pending = 4096;
	world_open(&w, &plan);
	for (uint64_t window = 0; window < STEADY_WINDOWS; window++)
		steady_window(window);
	window_of_a_newcomer(STEADY_WINDOWS);
	run_to(STEADY_WINDOWS, WINDOW - 1);
	assert_in_range(world_used(&w, 0, STEADY_WINDOWS), 9900, 10000);
	run_to(STEADY_WINDOWS + 1, WINDOW / 2);
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

/* The last unit was lent to a node, and spent there; a dear call that was refused after that finds
 * what another node gives back.  BORROW-4 */
static void a_dear_call_finds_what_comes_back(void **state)
{
	struct world_plan plan = plan_of(4, 3, 2);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	assert_int_equal(ask_times(2), 2); /* two with node 0, none with the other */
	told(world_ask(&w, 1, 0, 0, 2), GALE_DENY, GALE_WHY_SPENT);
	run_to(0, GALE_MILLIS(500));
	told(world_ask(&w, 1, 0, 0, 2), GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

/* Who asks again for a call that was refused leaves to others what is too little for it.
 * BORROW-1 */
static void who_asks_again_takes_enough_or_nothing(void **state)
{
	struct world_plan plan = plan_of(4, 3, 2);

	(void)state;
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 2);
	told(world_ask(&w, 1, 0, 0, 2), GALE_DENY, GALE_WHY_SPENT); /* of one */
	told(world_ask(&w, 1, 0, 0, 2), GALE_DENY, GALE_WHY_SPENT);
	run_to(0, GALE_MILLIS(130));
	assert_true(world_metric(&w, 1, "denials_asked_about_again") > 0);
	assert_int_equal(world_metric(&w, 1, "units_lent"), 0);
	run_to(0, GALE_MILLIS(500));
	told(world_ask(&w, 1, 0, 0, 2), GALE_ALLOW, GALE_WHY_CREDIT);
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

/* ---- Units of a rule that has changed -------------------------------------------- */

/* If the first node kept them, they would die there, and the rate now makes good for one in a
 * second. */
static void units_of_another_rate_go_back(void **state)
{
	struct world_plan plan = plan_of(1, 100, 2);

	(void)state;
	plan.rule = gale_gcra(1000, WINDOW, 100);
	plan.next = gale_gcra(1, WINDOW, 100);
	world_open(&w, &plan);
	run_to(0, 1000);
	world_ask(&w, 0, 0, 0, 1); /* 99 are left, for 101 ms */
	world_change(&w, 0, true);
	world_change(&w, 1, true);
	world_ask(&w, 1, 0, 0, 1);
	run_to(0, GALE_MILLIS(200));
	told(world_ask(&w, 1, 0, 0, 98), GALE_ALLOW, GALE_WHY_CREDIT); /* L15 */
	world_ends();
}

/* They were lent under a burst of a thousand, of which the node's books are not over. */
static void what_was_lent_of_a_larger_burst_makes_no_store_a_liar(void **state)
{
	struct world_plan plan = plan_of(1, 1000, 1);

	(void)state;
	plan.rule = gale_gcra(1000, WINDOW, 1000);
	plan.next = gale_gcra(1000, WINDOW, 100);
	world_open(&w, &plan);
	run_to(0, 1000);
	told(world_ask(&w, 0, 0, 0, 1000), GALE_ALLOW, GALE_WHY_CREDIT);
	world_change(&w, 0, true);
	run_to(0, GALE_MILLIS(960)); /* a unit is there since 901 ms */
	told(world_ask(&w, 0, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT); /* L15 */
	assert_int_equal(counted("answers_not_believed"), 0);
	world_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_of_a_window_stay_dead_in_the_next),
		cmocka_unit_test(units_of_a_meter_stay_dead),
		cmocka_unit_test(units_of_a_burst_stay_dead),
		cmocka_unit_test(the_end_of_a_window_is_no_storm),
		cmocka_unit_test(an_answer_that_is_dead_serves_by_what_it_brings_ahead),
		cmocka_unit_test(who_asks_a_far_store_when_a_window_ends_is_allowed),
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
		cmocka_unit_test(a_crowd_gives_back),
		cmocka_unit_test(what_is_idle_for_an_hour_of_a_day_is_back),
		cmocka_unit_test(what_was_lent_ahead_of_idle_nodes_is_found),
		cmocka_unit_test(what_a_hold_keeps_is_found_when_it_comes_back),
		cmocka_unit_test(what_a_hold_keeps_is_found_after_the_rest_went_back),
		cmocka_unit_test(a_node_forgets_its_denial_of_what_it_gives_back),
		cmocka_unit_test(a_dear_call_finds_what_comes_back),
		cmocka_unit_test(who_asks_again_takes_enough_or_nothing),
		cmocka_unit_test(a_fleet_that_wants_more_gets_all_of_it),
		cmocka_unit_test(a_fleet_that_is_short_strands_hardly_anything),
		cmocka_unit_test(units_of_another_rate_go_back),
		cmocka_unit_test(what_was_lent_of_a_larger_burst_makes_no_store_a_liar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
