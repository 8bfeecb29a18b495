/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shared_holds_test.c -- holds of a tenant's share in a budget that two runtimes share.
 *
 * Each runtime is a node with a clock of its own, which stands still unless the test moves it.  The
 * store is one of the process, and keeps the first one's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "face/tenants.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)
#define WITHIN GALE_SECONDS(10)
#define NODES 2
#define LIMIT 1000

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .url = "memory:shared",
	                          .turns = true,
	                          .still = true };

static struct node {
	struct house house;
	struct gale_budget *budget;
	struct gale_tenant *tenant; /* of one name in both */
	struct gale_tenant *other;  /* NULL: the test needs none */
} nodes[NODES];

#define GUARANTEE 300
#define RELEASE_US (WINDOW_US / 4) /* a tenant is absent then at the latest */
#define LOOK_US (RELEASE_US / 8)   /* at units that may lie idle */

static void open_node(struct node *node)
{
	struct gale_budget_config config = { .limit = LIMIT,
		                             .window_us = WINDOW_US,
		                             .name = "api" };
	struct gale_terms terms = { .weight = 1, .name = "gold" };

	house_open(&node->house, &plan);
	config.store = node->house.store;
	must(gale_budget_open(node->house.runtime, &config, &node->budget) ==
	     GALE_ERR_OK);
	must(gale_tenant_open(node->budget, &terms, &node->tenant) == GALE_ERR_OK);
}

static int open_nodes(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++)
		open_node(&nodes[i]);
	return 0;
}

/* The store lasts as long as the first one's memory.  Handles that a test has closed are NULL. */
static int close_nodes(void **state)
{
	bool well = true;

	(void)state;
	for (int i = NODES; i-- > 0;) {
		gale_tenant_close(nodes[i].tenant);
		gale_tenant_close(nodes[i].other);
		nodes[i].other = NULL;
		gale_budget_close(nodes[i].budget);
		well = house_close(&nodes[i].house) && well;
	}
	return well ? 0 : -1;
}

static void pass(uint64_t us)
{
	for (int i = 0; i < NODES; i++)
		test_clock_advance(&nodes[i].house.clock, us);
	for (int i = 0; i < NODES; i++)
		(void)gale_turn(nodes[i].house.runtime);
}

/* A window ends, for sure: clocks may run fast or slow. */
static void pass_window(void)
{
	pass(WINDOW_US + WINDOW_US / 200);
}

/* So long that units in hand that no ask takes go back to the pool. */
static void be_idle(void)
{
	for (int i = 0; i < 20; i++)
		pass(WINDOW_US / 64);
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

static void met(enum gale_err err, enum gale_err expected)
{
	assert_string_equal(gale_err_text(err), gale_err_text(expected));
}

static struct gale_answer hold(int node, uint64_t at_most,
                               struct gale_tenant_held *ret_hold)
{
	return gale_tenant_hold(nodes[node].house.seat, nodes[node].tenant, at_most,
	                        ret_hold, WITHIN);
}

static struct gale_answer grow(int node, struct gale_tenant_held *held, uint64_t more)
{
	return gale_tenant_grow(nodes[node].house.seat, held, more, WITHIN);
}

static void commit(int node, struct gale_tenant_held *held, uint64_t cost)
{
	met(gale_tenant_commit(nodes[node].house.seat, held, cost), GALE_ERR_OK);
}

/* How many units are allowed, one by one. */
static uint64_t left_of(int node)
{
	uint64_t left = 0;

	while (gale_tenant_wait(nodes[node].house.seat, nodes[node].tenant, 1, WITHIN)
	           .verdict == GALE_ALLOW)
		left++;
	return left;
}

static struct gale_tenant_counts counts_of(int node)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(nodes[node].tenant, &counts) == GALE_ERR_OK);
	return counts;
}

/* It is in hand here at once, and without a trip. */
static void what_is_not_needed_goes_back_into_what_is_in_hand(void **state)
{
	struct gale_tenant_held held;
	uint64_t trips;

	(void)state;
	is_told(hold(0, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 600);
	assert_int_equal(counts_of(0).used, 600);
	trips = counts_of(0).trips;
	commit(0, &held, 100);
	assert_int_equal(counts_of(0).used, 100);
	assert_true(counts_of(0).ahead >= 500);
	is_told(gale_tenant_ask(nodes[0].house.seat, nodes[0].tenant, 500), GALE_ALLOW,
	        GALE_WHY_OWN);
	assert_int_equal(counts_of(0).trips, trips);
	assert_int_equal(left_of(1), LIMIT - 600);
}

/* With them in hand, what was refused can be had from the pool. */
static void what_goes_back_ends_a_denial(void **state)
{
	struct gale_tenant_held held, other;

	(void)state;
	is_told(hold(0, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(0, 500, &other), GALE_DENY, GALE_WHY_OTHERS);
	commit(0, &held, 300);
	is_told(hold(0, 500, &other), GALE_ALLOW, GALE_WHY_OWN);
	commit(0, &other, 500);
}

/* As an ask: what is in hand counts, and not what was refused before. */
static void what_is_in_hand_is_held_whatever_was_refused(void **state)
{
	mono later =
	    mono_after(clock_now(nodes[0].house.runtime->node_clock), WINDOW_US * 1000);
	struct till *till = &nodes[0].tenant->till;
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 100, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(0, &held, 0);
	till_remember(till, GALE_WHY_SPENT, /* cost= */ 50, LIMIT, later);
	is_told(hold(0, 200, &held), GALE_DENY, GALE_WHY_SPENT);
	is_told(hold(0, 100, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(0, &held, 0);
}

/* And then, if no ask takes it here, it is the other node's. */
static void what_lies_idle_goes_back_to_the_pool(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, LIMIT, &held), GALE_ALLOW, GALE_WHY_OWN);
	be_idle();
	assert_int_equal(counts_of(0).used, LIMIT);
	commit(0, &held, 1);
	be_idle();
	assert_int_equal(counts_of(0).ahead, 0);
	assert_int_equal(left_of(1), LIMIT - 1);
}

static void open_other(int node, uint64_t guarantee)
{
	struct gale_terms terms = { .weight = 1,
		                    .name = "silver",
		                    .guarantee = guarantee };

	must(gale_tenant_open(nodes[node].budget, &terms, &nodes[node].other) ==
	     GALE_ERR_OK);
}

static struct gale_answer other_asks(int node)
{
	return gale_tenant_wait(nodes[node].house.seat, nodes[node].other, 1, WITHIN);
}

/* How long it asks, again and again, until it is allowed. */
static uint64_t until_other_is_allowed(int node)
{
	uint64_t us = 0;

	while (other_asks(node).verdict != GALE_ALLOW) {
		assert_true(us < WINDOW_US);
		pass(WINDOW_US / 100);
		us += WINDOW_US / 100;
	}
	return us;
}

/* A call held all that there is, and needed nothing: a tenant that was refused is not shut out until the
 * window ends, in neither process.  CLAIM-9, T2 */
static void what_goes_back_is_found_by_others_in_time(void **state)
{
	static const uint64_t guarantees[] = { 0, GUARANTEE };

	(void)state;
	for (int i = 0; i < 2 * NODES; i++) {
		struct gale_tenant_held held;
		int node = i % NODES;

		open_other(node, guarantees[i / NODES]);
		is_told(hold(0, LIMIT, &held), GALE_ALLOW, GALE_WHY_OWN);
		is_told(other_asks(node), GALE_DENY, GALE_WHY_SPENT);
		commit(0, &held, 0);
		assert_true(until_other_is_allowed(node) <=
		            (node == 0 ? 3 * LOOK_US : RELEASE_US + LOOK_US));
		gale_tenant_close(nodes[node].other);
		nodes[node].other = NULL;
		pass_window();
		pass_window(); /* it is absent */
	}
}

/* However late that is, what comes back is kept for the guarantee of a tenant that asks.  T2 */
static void what_goes_back_late_is_kept_for_a_guarantee(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	open_other(1, GUARANTEE);
	is_told(hold(0, LIMIT, &held), GALE_ALLOW, GALE_WHY_OWN);
	for (int i = 0; i < 60; i++) {
		is_told(other_asks(1), GALE_DENY, GALE_WHY_SPENT);
		pass(WINDOW_US / 100);
	}
	commit(0, &held, 0);
	for (int i = 0; i < 3; i++)
		pass(LOOK_US);
	assert_int_equal(counts_of(0).ahead, 0);
	is_told(hold(0, LIMIT - GUARANTEE + 1, &held), GALE_DENY, GALE_WHY_OTHERS);
	assert_true(until_other_is_allowed(1) <= RELEASE_US);
}

/* Each hold is one for the coordinator, however often it has grown. */
static void a_hold_that_grows_is_one_hold(void **state)
{
	struct stake *stake = &nodes[0].tenant->stake;
	struct gale_tenant_held held;
	uint64_t holds;

	(void)state;
	is_told(hold(0, 10, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(grow(0, &held, 10), GALE_ALLOW, GALE_WHY_OWN);
	pass_window();
	is_told(grow(0, &held, 10), GALE_ALLOW, GALE_WHY_OWN);
	for (uint64_t left = 2; left-- > 0;) {
		lock_take(&stake->fund->lock);
		holds = stake->locked.holds;
		lock_drop(&stake->fund->lock);
		assert_int_equal(holds, left);
		if (left > 0)
			commit(0, &held, 5);
	}
}

static void holds_of_two_nodes_do_not_pass_the_limit_together(void **state)
{
	struct gale_tenant_held holds[NODES][4];
	uint64_t held = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int node = 0; node < NODES; node++) {
			(void)hold(node, 300, &holds[node][i]);
			held += holds[node][i].units;
		}
	assert_int_equal(held, 900);
	for (int i = 0; i < 4; i++)
		for (int node = 0; node < NODES; node++)
			if (holds[node][i].units > 0)
				commit(node, &holds[node][i], 300);
	assert_true(left_of(0) + left_of(1) <= LIMIT - 900);
}

static void a_bound_above_the_limit_is_cut_to_it_and_says_so(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 5 * LIMIT, &held), GALE_ALLOW, GALE_WHY_OWN);
	assert_true(held.cut);
	assert_int_equal(held.units, LIMIT);
	commit(0, &held, 10);
	assert_int_equal(counts_of(0).used, 10);
}

static void a_hold_is_settled_once(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 0, &held), GALE_DENY, GALE_WHY_BAD_ASK);
	met(gale_tenant_commit(nodes[0].house.seat, &held, 0), GALE_ERR_HOLD);
	is_told(hold(0, 500, &held), GALE_ALLOW, GALE_WHY_OWN);
	met(gale_tenant_commit(nodes[1].house.seat, &held, 0), GALE_ERR_HOLD);
	commit(0, &held, 200);
	met(gale_tenant_commit(nodes[0].house.seat, &held, 0), GALE_ERR_HOLD);
	is_told(grow(0, &held, 1), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(counts_of(0).used, 200);
}

static void a_hold_grows_by_waiting_or_not(void **state)
{
	struct gale_tenant_held held;
	struct gale_seat *seat = nodes[0].house.seat;

	(void)state;
	is_told(gale_tenant_hold(seat, nodes[0].tenant, 10, &held, 0), GALE_DENY,
	        GALE_WHY_LATE);
	pass(1); /* the store has been asked all the same */
	is_told(gale_tenant_hold(seat, nodes[0].tenant, 10, &held, 0), GALE_ALLOW,
	        GALE_WHY_OWN);
	is_told(gale_tenant_grow(seat, &held, 200, 0), GALE_DENY, GALE_WHY_LATE);
	assert_int_equal(held.units, 10);
	is_told(grow(0, &held, 200), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 210);
	is_told(grow(0, &held, LIMIT), GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(held.units, 210);
	commit(0, &held, 15);
	assert_int_equal(counts_of(0).used, 15);
}

/* ---- Windows ------------------------------------------------------------------------- */

static void what_is_not_needed_is_lost_when_the_window_ends(void **state)
{
	static const uint64_t costs[] = { 0, 10, 600, 800 };

	(void)state;
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		struct gale_tenant_held held, next;

		is_told(hold(0, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
		pass_window();
		is_told(hold(0, 1, &next), GALE_ALLOW, GALE_WHY_OWN);
		commit(0, &held, costs[i]);
		assert_int_equal(counts_of(0).used, 1);
		commit(0, &next, 1);
		assert_int_equal(left_of(0), LIMIT - 1);
		pass_window();
	}
}

/* This node does not know yet that there is another window. */
static void a_commit_before_the_next_answer_changes_nothing(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
	pass_window();
	commit(0, &held, 10);
	is_told(gale_tenant_ask(nodes[0].house.seat, nodes[0].tenant, 1), GALE_DENY,
	        GALE_WHY_LATE);
	assert_int_equal(left_of(0) + left_of(1), LIMIT);
}

static void a_hold_that_outlives_its_window_grows_in_the_next(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 300, &held), GALE_ALLOW, GALE_WHY_OWN);
	pass_window();
	is_told(grow(0, &held, 200), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 500);
	assert_int_equal(counts_of(0).used, 200);
	commit(0, &held, 100);
	assert_int_equal(counts_of(0).used, 0);
	assert_int_equal(left_of(0), LIMIT);
}

/* ---- Costs above the hold ------------------------------------------------------------ */

static void what_a_call_costs_beyond_its_hold_is_owed(void **state)
{
	struct gale_tenant_held held, other;

	(void)state;
	is_told(hold(0, 100, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(0, 100, &other), GALE_ALLOW, GALE_WHY_OWN);
	commit(0, &held, 500);
	is_told(hold(0, 400, &held), GALE_ALLOW, GALE_WHY_OWN); /* with 400 more */
	assert_int_equal(counts_of(0).used, LIMIT);
	commit(0, &held, 600);
	commit(0, &other, 10); /* another hold's rest pays 90 of 200 */
	is_told(hold(0, 1, &held), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(counts_of(0).used, LIMIT);
	assert_int_equal(left_of(1), 0);
	pass_window(); /* and is over */
	assert_int_equal(left_of(0), LIMIT);
}

/* ---- Closing ------------------------------------------------------------------------- */

/* Returned units reach the pool, also from the second hold on. */
static void a_tenant_is_closed_under_holds(void **state)
{
	struct gale_tenant_held holds[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		is_told(hold(0, 150, &holds[i]), GALE_ALLOW, GALE_WHY_OWN);
	gale_tenant_close(nodes[0].tenant);
	nodes[0].tenant = NULL;
	be_idle();
	is_told(grow(0, &holds[0], 1), GALE_DENY, GALE_WHY_CLOSED);
	for (int i = 0; i < 6; i++) {
		met(gale_tenant_commit(nodes[0].house.seat, &holds[i],
		                       i == 0 ? 170 : 20),
		    GALE_ERR_TENANT);
		pass(1);
	}
	met(gale_tenant_commit(nodes[0].house.seat, &holds[0], 20), GALE_ERR_HOLD);
	assert_int_equal(left_of(1), LIMIT - 150 - 5 * 20);
}

static void a_hold_is_settled_long_after_its_budget(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(0, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
	gale_tenant_close(nodes[0].tenant);
	gale_budget_close(nodes[0].budget);
	nodes[0].tenant = NULL;
	nodes[0].budget = NULL;
	pass_window();
	pass_window();
	met(gale_tenant_commit(nodes[0].house.seat, &held, 5), GALE_ERR_TENANT);
	assert_int_equal(left_of(1), LIMIT);
}

static void a_runtime_ends_under_a_hold(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(1, 600, &held), GALE_ALLOW, GALE_WHY_OWN);
	gale_runtime_close(nodes[1].house.runtime);
	nodes[1].house.runtime = NULL;
	met(gale_tenant_commit(nodes[1].house.seat, &held, 5), GALE_ERR_RUNTIME);
	met(gale_tenant_commit(nodes[1].house.seat, &held, 5), GALE_ERR_HOLD);
	assert_true(left_of(0) <= LIMIT - 600);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_nodes, close_nodes)
	const struct CMUnitTest tests[] = {
		CASE(what_is_not_needed_goes_back_into_what_is_in_hand),
		CASE(what_goes_back_ends_a_denial),
		CASE(what_is_in_hand_is_held_whatever_was_refused),
		CASE(what_lies_idle_goes_back_to_the_pool),
		CASE(what_goes_back_is_found_by_others_in_time),
		CASE(what_goes_back_late_is_kept_for_a_guarantee),
		CASE(a_hold_that_grows_is_one_hold),
		CASE(holds_of_two_nodes_do_not_pass_the_limit_together),
		CASE(a_bound_above_the_limit_is_cut_to_it_and_says_so),
		CASE(a_hold_is_settled_once),
		CASE(a_hold_grows_by_waiting_or_not),
		CASE(what_is_not_needed_is_lost_when_the_window_ends),
		CASE(a_commit_before_the_next_answer_changes_nothing),
		CASE(a_hold_that_outlives_its_window_grows_in_the_next),
		CASE(what_a_call_costs_beyond_its_hold_is_owed),
		CASE(a_tenant_is_closed_under_holds),
		CASE(a_hold_is_settled_long_after_its_budget),
		CASE(a_runtime_ends_under_a_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
