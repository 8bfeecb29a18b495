/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * holds_test.c -- costs that are known only when a call has ended.
 *
 * Most of it runs on a clock that stands still unless the test moves it, and the host takes the
 * turns.  The cases that users of gateways have met are those of their reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <gale/hold.h>

#include "face/lend.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define KEY "alice"
#define WITHIN GALE_SECONDS(30)
#define A_MINUTE (GALE_MINUTES(1) + GALE_MILLIS(1)) /* a denial is over then, too */

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 100,
	                                    .period_us = GALE_MINUTES(1) },
	                          .mode = GALE_LEASED,
	                          .lease = { .sizing = GALE_SIZE_FIXED, .batch = 4 },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

static struct gale_limiter *lease(struct house *h, const char *name, uint64_t limit,
                                  uint64_t window_us)
{
	struct gale_limiter_config config = { .name = name,
		                              .rule =
		                                  gale_fixed_window(limit, window_us),
		                              .mode = GALE_LEASED,
		                              .lease = plan.lease,
		                              .store = h->store };
	struct gale_limiter *limiter;

	must(gale_limiter_open(h->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_part part_of(struct gale_limiter *limiter, uint64_t cost)
{
	return (struct gale_part){ limiter, KEY, strlen(KEY), cost };
}

/* How many more units of the key are allowed, one by one. */
static uint64_t left_of(struct gale_seat *seat, struct gale_limiter *limiter)
{
	uint64_t left = 0;

	while (gale_wait(seat, limiter, KEY, strlen(KEY), 1, WITHIN).verdict ==
	       GALE_ALLOW)
		left++;
	return left;
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

/* A hold of one part, of the house's own limiter. */
static struct gale_answer hold(struct house *h, struct gale_hold *ret_hold,
                               uint64_t cost)
{
	struct gale_part part = part_of(h->limiter, cost);
	struct gale_all all = { .parts = &part, .count = 1 };

	return gale_hold_wait(h->seat, &all, ret_hold, WITHIN);
}

static enum gale_err commit(struct house *h, struct gale_hold *hold, uint64_t cost)
{
	return gale_hold_commit(h->seat, hold, &cost);
}

static struct gale_answer grow(struct house *h, struct gale_hold *hold, uint64_t more,
                               uint64_t within_us)
{
	return gale_hold_grow(h->seat, hold, &more, within_us);
}

/* ---- Reports from the field ------------------------------------------------------ */

/* LiteLLM 18730: calls that run together would use 663 of a budget of 100. */
static void calls_that_run_together_do_not_pass_the_limit_together(void **state)
{
	static const uint64_t costs[] = { 51, 221, 170, 221 };
	struct gale_hold holds[4];
	uint64_t used = 0, refused = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 4; i++)
		refused += hold(&h, &holds[i], 60).verdict == GALE_DENY;
	assert_int_equal(refused, 3);
	for (int i = 0; i < 4; i++) {
		uint64_t cost =
		    costs[i] < 60 ? costs[i] : 60; /* its stream is stopped */

		if (holds[i].count == 0)
			continue;
		assert_int_equal(commit(&h, &holds[i], cost), GALE_ERR_OK);
		used += cost;
	}
	assert_int_equal(used + left_of(h.seat, h.limiter), 100);
	assert_true(house_close(&h));
}

/* LiteLLM 29191: a first request holds 1,024 of a limit of 100. */
static void a_bound_above_the_limit_is_cut_to_it_and_says_so(void **state)
{
	static const uint64_t above[] = { 1024, GALE_UNITS_MAX, GALE_UNITS_MAX + 1,
		                          UINT64_MAX };
	struct gale_hold first, second;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		is_told(hold(&h, &first, above[i]), GALE_ALLOW, GALE_WHY_CREDIT);
		assert_true(first.cut);
		assert_int_equal(first.parts[0].units, 100);
		assert_int_equal(commit(&h, &first, above[i] == UINT64_MAX ? 40 : 0),
		                 GALE_ERR_OK);
	}
	is_told(hold(&h, &second, 60), GALE_ALLOW, GALE_WHY_CREDIT);
	assert_false(second.cut);
	assert_int_equal(gale_hold_cancel(h.seat, &second), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 60);
	assert_true(house_close(&h));
}

/* RFC 0021: a response comes after the window's end, and its capacity was given out again. */
static void a_commit_after_its_window_changes_no_later_one(void **state)
{
	struct gale_hold less, more;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &less, 50).verdict, GALE_ALLOW);
	assert_int_equal(hold(&h, &more, 50).verdict, GALE_ALLOW);
	assert_int_equal(left_of(h.seat, h.limiter), 0);
	test_clock_advance(&h.clock, A_MINUTE);
	assert_int_equal(house_wait(&h, KEY).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &less, 10), GALE_ERR_OK);
	assert_int_equal(commit(&h, &more, 90), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 99);
	assert_true(house_close(&h));
}

/* A seat that ticked before its window's end, and another that the next window has lent to. */
static struct gale_seat *leave_behind(struct house *h, struct gale_hold *ret_hold)
{
	struct gale_seat *ahead;

	must(gale_join(h->runtime, &ahead) == GALE_ERR_OK);
	gale_tick(h->seat);
	assert_int_equal(hold(h, ret_hold, 60).verdict, GALE_ALLOW);
	test_clock_advance(&h->clock, A_MINUTE);
	assert_int_equal(
	    gale_wait(ahead, h->limiter, KEY, strlen(KEY), 1, WITHIN).verdict,
	    GALE_ALLOW);
	return ahead;
}

static void a_seat_that_is_behind_gives_nothing_to_a_later_window(void **state)
{
	struct gale_seat *ahead;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	ahead = leave_behind(&h, &held);
	assert_int_equal(commit(&h, &held, 10), GALE_ERR_OK);
	assert_int_equal(left_of(ahead, h.limiter), 99);
	gale_leave(ahead);
	assert_true(house_close(&h));
}

/* HOLD-2: what goes back of the later window is what the hold grew by there. */
static void a_hold_may_grow_by_a_seat_that_is_behind(void **state)
{
	struct gale_seat *ahead;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	ahead = leave_behind(&h, &held);
	assert_int_equal(grow(&h, &held, 2, 0).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 0), GALE_ERR_OK);
	assert_int_equal(left_of(ahead, h.limiter), 99);
	gale_leave(ahead);
	assert_true(house_close(&h));
}

/* However long the call takes, what it holds is not given to others of its window. */
static void a_hold_does_not_expire_under_a_call_that_runs(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 80).verdict, GALE_ALLOW);
	for (int i = 0; i < 50;
	     i++) { /* idle credit goes back, and what is held stays */
		test_clock_advance(&h.clock, GALE_SECONDS(1));
		while (gale_turn(h.runtime) > 0)
			continue;
	}
	assert_int_equal(left_of(h.seat, h.limiter), 20);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 50);
	assert_true(house_close(&h));
}

/* A stream that breaks has cost what it has sent. */
static void a_stream_that_breaks_gives_back_the_rest(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 80).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 3), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 97);
	assert_true(house_close(&h));
}

/* praxis 790: retries of a commit. */
static void a_hold_is_settled_once(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 80).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_HOLD);
	assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_HOLD);
	is_told(grow(&h, &held, 1, 0), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(left_of(h.seat, h.limiter), 70);
	assert_true(house_close(&h));
}

/* User, model and team; the model counts its output alone. */
static void a_hold_is_of_all_limits_or_of_none(void **state)
{
	struct gale_limiter *model, *team;
	struct gale_part parts[3];
	struct gale_all all = { .parts = parts, .count = 3 };
	const uint64_t costs[] = { 25, 20, 25 };
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	model = lease(&h, "model", 60, GALE_MINUTES(1));
	team = lease(&h, "team", 70, GALE_DAYS(1));
	parts[0] = part_of(h.limiter, 50);
	parts[1] = part_of(model, 40);
	parts[2] = part_of(team, 50);
	is_told(gale_hold_wait(h.seat, &all, &held, WITHIN), GALE_ALLOW,
	        GALE_WHY_CREDIT);
	assert_int_equal(held.count, 3);
	assert_int_equal(
	    gale_hold_wait(h.seat, &all, &(struct gale_hold){ 0 }, WITHIN).verdict,
	    GALE_DENY);
	assert_int_equal(all.binding, 1);
	assert_int_equal(gale_hold_commit(h.seat, &held, costs), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 75);
	assert_int_equal(left_of(h.seat, model), 40);
	assert_int_equal(left_of(h.seat, team), 45);
	gale_limiter_close(model);
	gale_limiter_close(team);
	assert_true(house_close(&h));
}

/* ---- Growing --------------------------------------------------------------------- */

static void a_hold_grows_from_credit_without_a_store(void **state)
{
	struct house_plan batches = plan;
	struct gale_hold held;
	uint64_t leases;
	struct house h;

	(void)state;
	batches.lease.batch = 50;
	house_open(&h, &batches);
	assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
	leases = house_stats(&h).leases;
	for (int i = 0; i < 4; i++)
		is_told(grow(&h, &held, 10, 0), GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(house_stats(&h).leases, leases);
	assert_int_equal(held.parts[0].units, 50);
	is_told(grow(&h, &held, 10, 0), GALE_DENY, GALE_WHY_LATE);
	is_told(grow(&h, &held, 50, WITHIN), GALE_ALLOW, GALE_WHY_CREDIT);
	is_told(grow(&h, &held, 1, WITHIN), GALE_DENY, GALE_WHY_SPENT);
	is_told(grow(&h, &held, 1, 0), GALE_DENY, GALE_WHY_SPENT); /* stop the stream */
	assert_int_equal(held.parts[0].units, 100);
	assert_int_equal(commit(&h, &held, 70), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 30);
	assert_true(house_close(&h));
}

/* Without a time to wait no store is asked: that is no outage. */
static void a_hold_whose_outages_are_allowed_does_not_grow_without_credit(void **state)
{
	struct gale_hold held;
	struct house h;
	struct gale_limiter_config config = { .name = "open",
		                              .rule = plan.rule,
		                              .mode = GALE_LEASED,
		                              .lease = plan.lease,
		                              .on_outage = GALE_ON_OUTAGE_ALLOW };
	struct gale_limiter *limiter;
	struct gale_part part;
	struct gale_all all = { .parts = &part, .count = 1 };

	(void)state;
	house_open(&h, &plan);
	config.store = h.store;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &limiter), GALE_ERR_OK);
	part = part_of(limiter, 4);
	assert_int_equal(gale_hold_wait(h.seat, &all, &held, WITHIN).verdict,
	                 GALE_ALLOW);
	is_told(grow(&h, &held, 50, 0), GALE_DENY, GALE_WHY_LATE);
	assert_int_equal(held.parts[0].units, 4);
	assert_int_equal(commit(&h, &held, 4), GALE_ERR_OK);
	gale_limiter_close(limiter);
	assert_true(house_close(&h));
}

static void what_does_not_grow_in_all_parts_grows_in_none(void **state)
{
	const uint64_t more[] = { 20, 20 }, one[] = { 20, 0 };
	struct gale_part parts[2];
	struct gale_all all = { .parts = parts, .count = 2 };
	struct gale_limiter *day;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	day = lease(&h, "day", 30, GALE_DAYS(1));
	parts[0] = part_of(h.limiter, 20);
	parts[1] = part_of(day, 20);
	assert_int_equal(gale_hold_wait(h.seat, &all, &held, WITHIN).verdict,
	                 GALE_ALLOW);
	assert_int_equal(gale_hold_grow(h.seat, &held, more, WITHIN).verdict,
	                 GALE_DENY);
	assert_int_equal(held.binding, 1);
	assert_int_equal(held.parts[0].units + held.parts[1].units, 40);
	assert_int_equal(gale_hold_grow(h.seat, &held, one, WITHIN).verdict,
	                 GALE_ALLOW);
	assert_int_equal(held.parts[0].units, 40);
	assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_int_equal(left_of(h.seat, day), 30);
	gale_limiter_close(day);
	assert_true(house_close(&h));
}

static bool is_pinned(const struct house *h, struct gale_limiter *limiter)
{
	struct purse_name name = { .lender = &limiter->lender,
		                   .key = (const uint8_t *)KEY,
		                   .key_len = strlen(KEY),
		                   .hash =
		                       local_hash(&limiter->lender, KEY, strlen(KEY)) };
	struct purse *purse =
	    purses_find(&runtime_shard(h->runtime, name.hash)->lessor.purses, &name);

	assert_non_null(purse);
	return purse_is_held(purse);
}

/* The day lacks credit when the minute has taken already, which so goes back, and is taken again. */
static void what_falls_short_at_first_leaves_neither_units_nor_pins(void **state)
{
	struct gale_part parts[2];
	struct gale_all all = { .parts = parts, .count = 2 };
	struct gale_limiter *day;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	day = lease(&h, "day", 30, GALE_DAYS(1));
	gale_tick(h.seat); /* so it goes the straight way first */
	for (uint64_t cost = 20; cost <= 30; cost += 10) {
		parts[0] = part_of(h.limiter, 80 - cost);
		parts[1] = part_of(day, cost);
		assert_int_equal(gale_hold_wait(h.seat, &all, &held, WITHIN).verdict,
		                 GALE_ALLOW);
		assert_true(is_pinned(&h, h.limiter) && is_pinned(&h, day));
		assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_OK);
		assert_false(is_pinned(&h, h.limiter) || is_pinned(&h, day));
	}
	assert_int_equal(gale_hold_wait(h.seat, &all, &held, WITHIN).verdict,
	                 GALE_ALLOW);
	assert_int_equal(
	    gale_hold_grow(h.seat, &held, (const uint64_t[]){ 5, 1 }, 0).verdict,
	    GALE_DENY);
	assert_int_equal(held.binding, 1);
	assert_int_equal(
	    gale_hold_grow(h.seat, &held, (const uint64_t[]){ 5, 0 }, 0).verdict,
	    GALE_ALLOW);
	assert_int_equal(held.parts[0].units, 55);
	assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_int_equal(left_of(h.seat, day), 30);
	gale_limiter_close(day);
	assert_true(house_close(&h));
}

/* HOLD-2: what is of the window before is spent, and what it grew by goes back. */
static void a_hold_may_grow_in_the_next_window(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 60).verdict, GALE_ALLOW);
	test_clock_advance(&h.clock, A_MINUTE);
	assert_int_equal(grow(&h, &held, 50, WITHIN).verdict, GALE_ALLOW);
	assert_int_equal(held.parts[0].units, 110);
	assert_int_equal(commit(&h, &held, 80), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 80);
	assert_true(house_close(&h));
}

/* Units of a window are in one word: those of the window before are in none, nor are those of before a
 * reset. */
static void a_hold_as_large_as_can_be_grows_in_the_next_window(void **state)
{
	struct gale_limiter *large;
	struct gale_part part;
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold held;
	struct house h;

	(void)state;
	for (int resets = 0; resets < 2; resets++) {
		house_open(&h, &plan);
		large = lease(&h, "large", 2000000, GALE_MINUTES(1));
		part = part_of(large, 2000000);
		is_told(gale_hold_wait(h.seat, &all, &held, WITHIN), GALE_ALLOW,
		        GALE_WHY_CREDIT);
		assert_int_equal(held.parts[0].units, CREDIT_UNITS_MAX);
		is_told(grow(&h, &held, 1, WITHIN), GALE_DENY, GALE_WHY_TOO_MUCH);
		if (resets)
			assert_int_equal(
			    gale_reset(h.seat, large, KEY, strlen(KEY), WITHIN),
			    GALE_ERR_OK);
		else
			test_clock_advance(&h.clock, A_MINUTE);
		is_told(grow(&h, &held, 1, WITHIN), GALE_ALLOW, GALE_WHY_CREDIT);
		assert_int_equal(held.parts[0].units, CREDIT_UNITS_MAX + 1);
		assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_OK);
		gale_limiter_close(large);
		assert_true(house_close(&h));
	}
}

/* ---- Costs beyond what was held -------------------------------------------------- */

static void turn(struct house *h)
{
	while (gale_turn(h->runtime) > 0)
		continue;
}

static void what_a_call_cost_beyond_is_paid_by_credit_in_hand(void **state)
{
	struct house_plan batches = plan;
	struct gale_hold held;
	struct house h;

	(void)state;
	batches.lease.batch = 100;
	house_open(&h, &batches);
	assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 35), GALE_ERR_OK);
	is_told(gale_ask(h.seat, h.limiter, KEY, strlen(KEY), 66, NULL), GALE_PENDING,
	        GALE_WHY_ASKED);
	turn(&h);
	assert_int_equal(
	    gale_seat_completions(h.seat, &(struct gale_completion){ 0 }, 1), 1);
	assert_int_equal(left_of(h.seat, h.limiter), 65);
	assert_true(house_close(&h));
}

static void and_by_what_the_store_has(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 50).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 80), GALE_ERR_OK);
	turn(&h); /* the shard draws it, for nobody in particular */
	assert_int_equal(left_of(h.seat, h.limiter), 20);
	assert_true(house_close(&h));
}

/* The store has thirty, and a larger cost was denied. */
static void and_by_the_stores_last_units(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 70).verdict, GALE_ALLOW);
	assert_int_equal(
	    gale_wait(h.seat, h.limiter, KEY, strlen(KEY), 31, WITHIN).verdict,
	    GALE_DENY);
	assert_int_equal(commit(&h, &held, 95), GALE_ERR_OK);
	turn(&h);
	assert_int_equal(left_of(h.seat, h.limiter), 5);
	assert_true(house_close(&h));
}

/* HOLD-3, KEPT-3: 80 + 10 + 10. */
static void and_by_what_other_holds_give_back(void **state)
{
	struct gale_hold a, b;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &a, 50).verdict, GALE_ALLOW);
	assert_int_equal(hold(&h, &b, 50).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &a, 80), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 0);
	assert_int_equal(commit(&h, &b, 10), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 10);
	assert_true(house_close(&h));
}

static void a_debt_is_not_of_the_next_window(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 100).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 180), GALE_ERR_OK);
	turn(&h);
	assert_int_equal(left_of(h.seat, h.limiter), 0);
	test_clock_advance(&h.clock, A_MINUTE);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_true(house_close(&h));
}

/* Its purse is not evicted meanwhile. */
static void a_node_that_knows_few_keys_remembers_those_that_are_held(void **state)
{
	struct house_plan few = plan;
	struct gale_hold held;
	struct house h;
	char key[] = "k0";

	(void)state;
	few.node_keys = 2;
	house_open(&h, &few);
	assert_int_equal(hold(&h, &held, 90).verdict, GALE_ALLOW);
	for (; key[1] < '9'; key[1]++)
		assert_int_equal(house_wait(&h, key).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 70);
	assert_true(house_close(&h));
}

/* ---- Limits that change, and keys that are reset, under a hold ------------------------ */

/* L15: what was lent under the limit before may be used, and what goes back is not there twice. */
static void a_limit_is_lowered_under_a_hold(void **state)
{
	const struct gale_rule half = gale_fixed_window(50, GALE_MINUTES(1));
	struct gale_hold held, other;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 80).verdict, GALE_ALLOW);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &half), GALE_ERR_OK);
	assert_int_equal(hold(&h, &other, 1).verdict, GALE_DENY);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 50);
	test_clock_advance(&h.clock, A_MINUTE);
	assert_int_equal(hold(&h, &held, 1024).verdict, GALE_ALLOW);
	assert_true(held.cut);
	assert_int_equal(held.parts[0].units, 50);
	assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 50);
	assert_true(house_close(&h));
}

static void reset_key(struct house *h)
{
	assert_int_equal(gale_reset(h->seat, h->limiter, KEY, strlen(KEY), WITHIN),
	                 GALE_ERR_OK);
}

/* KEPT-2: neither what was held before the reset nor what it cost is of the limit that has begun anew. */
static void a_key_is_reset_under_a_hold(void **state)
{
	struct gale_hold less, more;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &less, 40).verdict, GALE_ALLOW);
	assert_int_equal(hold(&h, &more, 40).verdict, GALE_ALLOW);
	reset_key(&h);
	assert_int_equal(house_wait(&h, KEY).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &less, 10), GALE_ERR_OK);
	assert_int_equal(commit(&h, &more, 90), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 99);
	assert_true(house_close(&h));
}

static void a_reset_ends_a_debt(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 100).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 180), GALE_ERR_OK);
	turn(&h);
	reset_key(&h);
	turn(&h);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_true(house_close(&h));
}

/* HOLD-2, KEPT-2: units of after the reset are of the limit that has begun anew, in the same window ... */
static void a_hold_grows_after_a_reset(void **state)
{
	struct gale_hold less, more;
	struct house h;

	(void)state;
	for (int straight = 0; straight < 2; straight++) {
		house_open(&h, &plan);
		assert_int_equal(hold(&h, &less, 10).verdict, GALE_ALLOW);
		assert_int_equal(hold(&h, &more, 10).verdict, GALE_ALLOW);
		reset_key(&h);
		if (straight) { /* credit is there */
			assert_int_equal(hold(&h, &less, 50).verdict, GALE_ALLOW);
			assert_int_equal(gale_hold_cancel(h.seat, &less), GALE_ERR_OK);
		}
		assert_int_equal(grow(&h, &more, 20, WITHIN).verdict, GALE_ALLOW);
		assert_int_equal(more.parts[0].units, 30);
		assert_int_equal(commit(&h, &more, 5), GALE_ERR_OK);
		assert_int_equal(left_of(h.seat, h.limiter), 100);
		assert_true(house_close(&h));
	}
}

/* ... and in the next, and so is what the call cost beyond. */
static void what_it_cost_beyond_is_debited_where_it_grew(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	for (int windows = 0; windows < 2; windows++) {
		house_open(&h, &plan);
		assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
		reset_key(&h);
		if (windows > 0)
			test_clock_advance(&h.clock, A_MINUTE);
		assert_int_equal(grow(&h, &held, 20, WITHIN).verdict, GALE_ALLOW);
		assert_int_equal(commit(&h, &held, 60), GALE_ERR_OK);
		turn(&h);
		assert_int_equal(left_of(h.seat, h.limiter), 50);
		assert_true(house_close(&h));
	}
}

static const struct gale_rule per_minute = { .kind = GALE_RULE_FIXED_WINDOW,
	                                     .limit = 100,
	                                     .period_us = GALE_MINUTES(1) };
static const struct gale_rule per_hour = { .kind = GALE_RULE_FIXED_WINDOW,
	                                   .limit = 100,
	                                   .period_us = GALE_HOURS(1) };

/* The house's limiter is of the first rule, and then, under a hold of so many units, of the second. */
static void change_under(struct house *h, struct gale_hold *ret_hold, uint64_t units,
                         const struct gale_rule *from, const struct gale_rule *to)
{
	struct house_plan first = plan;

	first.rule = *from;
	house_open(h, &first);
	assert_int_equal(hold(h, ret_hold, units).verdict, GALE_ALLOW);
	assert_int_equal(gale_limiter_set_rule(h->limiter, to), GALE_ERR_OK);
	turn(h);
}

/* KEPT-4, L15: what was held stays used under the new rule, and what it cost beyond is owed there. */
static void a_period_is_changed_under_a_hold(void **state)
{
	static const struct gale_rule bucket = { .kind = GALE_RULE_TOKEN_BUCKET,
		                                 .limit = 100,
		                                 .burst = 100,
		                                 .period_us = GALE_MINUTES(1) };
	static const struct gale_rule slower = { .kind = GALE_RULE_TOKEN_BUCKET,
		                                 .limit = 100,
		                                 .burst = 100,
		                                 .period_us = GALE_HOURS(1) };
	static const struct gale_rule *const pairs[][2] = {
		{ &per_minute, &per_hour },
		{ &per_hour, &per_minute },
		{ &bucket, &slower },
		{ &slower, &bucket },
	};
	static const uint64_t costs[] = { 0, 60, 90 }, left[] = { 40, 40, 10 };
	struct gale_hold held;
	struct house h;

	(void)state;
	for (int pair = 0; pair < 4; pair++)
		for (int i = 0; i < 3; i++) {
			change_under(&h, &held, 60, pairs[pair][0], pairs[pair][1]);
			assert_int_equal(commit(&h, &held, costs[i]), GALE_ERR_OK);
			turn(&h);
			assert_int_equal(left_of(h.seat, h.limiter), left[i]);
			assert_true(house_close(&h));
		}
}

/* By each of the changes, whose number is told from that of a reset. */
static void a_period_is_changed_and_changed_again_under_a_hold(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	for (int resets = 0; resets < 2; resets++) {
		change_under(&h, &held, 60, &per_minute, &per_hour);
		if (resets)
			reset_key(&h);
		assert_int_equal(gale_limiter_set_rule(h.limiter, &per_minute),
		                 GALE_ERR_OK);
		turn(&h);
		assert_int_equal(commit(&h, &held, 90), GALE_ERR_OK);
		turn(&h);
		assert_int_equal(left_of(h.seat, h.limiter), resets ? 100 : 10);
		assert_true(house_close(&h));
	}
}

/* A rule that was changed before the hold does not make a reset a change. */
static void a_key_is_reset_under_a_hold_of_a_changed_rule(void **state)
{
	struct gale_hold first, held;
	struct house h;

	(void)state;
	change_under(&h, &first, 10, &per_minute, &per_hour);
	assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
	reset_key(&h);
	assert_int_equal(commit(&h, &held, 90), GALE_ERR_OK);
	turn(&h);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_int_equal(commit(&h, &first, 90), GALE_ERR_OK);
	assert_true(house_close(&h));
}

/* What grows after the change goes back, as after a reset. */
static void a_hold_grows_under_another_period(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	change_under(&h, &held, 60, &per_minute, &per_hour);
	assert_int_equal(grow(&h, &held, 20, WITHIN).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 5), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 40);
	assert_true(house_close(&h));
}

/* KEPT-4: a debt that is there already, and one that comes after: neither outlasts a period. */
static void a_debt_outlasts_no_period_of_another_rule(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	for (int late = 0; late < 2; late++) {
		if (late) {
			change_under(&h, &held, 70, &per_hour, &per_minute);
			assert_int_equal(left_of(h.seat, h.limiter), 30);
			assert_int_equal(commit(&h, &held, 180), GALE_ERR_OK);
		} else {
			change_under(&h, &held, 70, &per_hour, &per_hour);
			assert_int_equal(commit(&h, &held, 180), GALE_ERR_OK);
			assert_int_equal(gale_limiter_set_rule(h.limiter, &per_minute),
			                 GALE_ERR_OK);
		}
		turn(&h);
		assert_int_equal(left_of(h.seat, h.limiter), 0);
		test_clock_advance(&h.clock, GALE_MINUTES(2));
		turn(&h);
		assert_int_equal(left_of(h.seat, h.limiter), 100);
		assert_true(house_close(&h));
	}
}

/* ---- Seats that come and go ---------------------------------------------------------- */

/* Any thread may settle a hold, with its own seat; the one that asked for it may have left. */
static void another_seat_settles_a_hold(void **state)
{
	struct gale_seat *first, *second;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	first = h.seat;
	must(gale_join(h.runtime, &second) == GALE_ERR_OK);
	assert_int_equal(hold(&h, &held, 50).verdict, GALE_ALLOW);
	gale_leave(first);
	h.seat = second;
	assert_int_equal(grow(&h, &held, 10, WITHIN).verdict, GALE_ALLOW);
	assert_int_equal(commit(&h, &held, 45), GALE_ERR_OK);
	assert_int_equal(commit(&h, &held, 45), GALE_ERR_HOLD);
	assert_int_equal(left_of(h.seat, h.limiter), 55);
	assert_true(house_close(&h));
}

/* Nobody fetches the answer of a seat that has left: what was to be held goes back. */
static void a_seat_leaves_before_its_hold_has_come(void **state)
{
	struct gale_part part;
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	part = part_of(h.limiter, 30);
	assert_int_equal(gale_hold_all(h.seat, &all, &held, NULL).verdict,
	                 GALE_PENDING);
	gale_leave(h.seat);
	must(gale_join(h.runtime, &h.seat) == GALE_ERR_OK);
	assert_int_equal(gale_hold_cancel(h.seat, &held), GALE_ERR_HOLD);
	assert_int_equal(left_of(h.seat, h.limiter), 100);
	assert_true(house_close(&h));
}

/* Others can have it: it does not stay with a node that nobody asks. */
static void what_goes_back_and_stays_idle_goes_to_the_store(void **state)
{
	struct gale_outlook outlook;
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 100).verdict, GALE_ALLOW);
	for (int i = 0; i < 20; i++) {
		test_clock_advance(&h.clock, GALE_SECONDS(1));
		turn(&h);
	}
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	for (int i = 0; i < 20; i++) {
		test_clock_advance(&h.clock, GALE_SECONDS(1));
		turn(&h);
	}
	assert_int_equal(
	    gale_forecast(h.seat, h.limiter, KEY, strlen(KEY), 1, WITHIN, &outlook),
	    GALE_ERR_OK);
	assert_int_equal(outlook.spendable_now, 70);
	assert_true(house_close(&h));
}

/* ---- Mistakes -------------------------------------------------------------------- */

static void what_is_wrong_is_said_and_nothing_is_lost(void **state)
{
	const uint64_t too_much = 10 + (1 << 20);
	struct gale_hold held, none = { 0 };
	struct house h, other;

	(void)state;
	house_open(&h, &plan);
	house_open(&other, &plan);
	is_told(hold(&h, &held, 0), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(commit(&h, &held, 1), GALE_ERR_HOLD);
	assert_int_equal(commit(&h, &none, 1), GALE_ERR_HOLD);
	assert_int_equal(gale_hold_cancel(h.seat, NULL), GALE_ERR_HOLD);
	assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
	assert_int_equal(gale_hold_commit(h.seat, &held, NULL), GALE_ERR_COST);
	assert_int_equal(commit(&h, &held, too_much), GALE_ERR_COST);
	assert_int_equal(commit(&other, &held, 5), GALE_ERR_HOLD);
	assert_int_equal(gale_hold_cancel(NULL, &held), GALE_ERR_SEAT);
	is_told(grow(&h, &held, 1 << 20, 0), GALE_DENY, GALE_WHY_TOO_MUCH);
	is_told(gale_hold_grow(h.seat, &held, NULL, 0), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(commit(&h, &held, 4), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 96);
	assert_true(house_close(&other));
	assert_true(house_close(&h));
}

/* The units go back to the store, where another limiter of the name finds it. */
static void a_limiter_that_is_closed_first_gets_back_what_was_held(void **state)
{
	struct gale_limiter *again;
	struct gale_hold held;
	struct gale_all all;
	struct gale_part part;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	again = lease(&h, "short", 100, GALE_MINUTES(1));
	part = part_of(again, 80);
	all = (struct gale_all){ .parts = &part, .count = 1 };
	assert_int_equal(gale_hold_wait(h.seat, &all, &held, WITHIN).verdict,
	                 GALE_ALLOW);
	gale_limiter_close(again);
	turn(&h);
	is_told(grow(&h, &held, 1, 0), GALE_DENY, GALE_WHY_CLOSED);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_LIMITER);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_HOLD);
	for (int i = 0; i < 10; i++) {
		test_clock_advance(&h.clock, GALE_SECONDS(1));
		turn(&h);
	}
	again = lease(&h, "short", 100, GALE_MINUTES(1));
	assert_int_equal(left_of(h.seat, again), 70);
	gale_limiter_close(again);
	assert_true(house_close(&h));
}

static void a_runtime_that_is_closed_settles_nothing(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 80).verdict, GALE_ALLOW);
	gale_runtime_close(h.runtime);
	h.runtime = NULL;
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_RUNTIME);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_HOLD);
	assert_true(house_close(&h));
}

/* A hold that is pending is filled by its completion. */
static void a_debt_that_there_is_no_memory_for_is_refused(void **state)
{
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(hold(&h, &held, 10).verdict, GALE_ALLOW);
	h.allocator.fail_last = UINT64_MAX;
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_MEMORY);
	h.allocator.fail_last = 0;
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 70);
	assert_true(house_close(&h));
}

static void a_hold_may_be_asked_for_without_waiting(void **state)
{
	struct gale_completion completion;
	struct gale_part part;
	struct gale_all all = { .parts = &part, .count = 1 };
	struct gale_hold held;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	part = part_of(h.limiter, 30);
	assert_int_equal(gale_hold_all(h.seat, &all, &held, &h).verdict, GALE_PENDING);
	assert_int_equal(commit(&h, &held, 30), GALE_ERR_HOLD);
	while (gale_seat_completions(h.seat, &completion, 1) == 0)
		(void)gale_turn(h.runtime);
	assert_ptr_equal(completion.tag, &h);
	assert_int_equal(completion.answer.verdict, GALE_ALLOW);
	assert_int_equal(held.parts[0].units, 30);
	assert_int_equal(commit(&h, &held, 10), GALE_ERR_OK);
	assert_int_equal(left_of(h.seat, h.limiter), 90);
	assert_true(house_close(&h));
}

/* ---- Threads --------------------------------------------------------------------- */

#define THREADS 4
#define CALLS LONG_OR_BRIEF(6000, 1500)
#define LIMIT UINT64_C(200000)

struct crew {
	struct house house;
	struct gale_limiter *a, *b;
	uint64_t worst; /* thousandths of what was held that a call may cost */
	_Atomic uint64_t committed[2], excess[2];
};

static void settle(struct crew *crew, struct gale_seat *seat, struct gale_hold *held,
                   struct chance *chance)
{
	uint64_t costs[2];

	for (int i = 0; i < 2; i++) {
		uint64_t units = held->parts[i].units;

		costs[i] = chance_below(chance, units * crew->worst / 1000 + 1);
		crew->committed[i] += costs[i];
		crew->excess[i] += costs[i] > units ? costs[i] - units : 0;
	}
	must(gale_hold_commit(seat, held, costs) == GALE_ERR_OK);
}

static void run_calls(void *arg, unsigned who)
{
	struct crew *crew = arg;
	struct chance chance = { who + 1 };
	struct gale_seat *seat;

	must(gale_join(crew->house.runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < CALLS; i++) {
		struct gale_part parts[] = {
			part_of(crew->a, chance_between(&chance, 1, 100)),
			part_of(crew->b, chance_between(&chance, 1, 60)),
		};
		struct gale_all all = { .parts = parts, .count = 2 };
		const uint64_t more[] = { chance_below(&chance, 20), 1 };
		struct gale_hold held;

		if (gale_hold_wait(seat, &all, &held, WITHIN).verdict != GALE_ALLOW)
			continue;
		if (chance_below(&chance, 2))
			(void)gale_hold_grow(seat, &held, more, WITHIN);
		settle(crew, seat, &held, &chance);
	}
	gale_leave(seat);
}

static void run_crew(struct crew *crew)
{
	struct house_plan threads = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                      .shards = 2 };

	house_open(&crew->house, &threads);
	crew->a = lease(&crew->house, "a", LIMIT, GALE_DAYS(365));
	crew->b = lease(&crew->house, "b", LIMIT / 2, GALE_DAYS(365));
	crew_run(THREADS, run_calls, crew);
}

static void end_crew(struct crew *crew)
{
	gale_limiter_close(crew->a);
	gale_limiter_close(crew->b);
	assert_true(house_close(&crew->house));
}

/* No unit is used twice, and none is lost. */
static void threads_commit_what_there_is(void **state)
{
	struct crew crew = { .worst = 1000 };

	(void)state;
	run_crew(&crew);
	assert_int_equal(crew.excess[0] + crew.excess[1], 0);
	assert_int_equal(crew.committed[0] + left_of(crew.house.seat, crew.a), LIMIT);
	assert_int_equal(crew.committed[1] + left_of(crew.house.seat, crew.b),
	                 LIMIT / 2);
	end_crew(&crew);
}

/* HOLD-1, HOLD-3: beyond the limit is only what was owed when there was nothing left. */
static void what_threads_commit_beyond_is_what_they_did_not_hold(void **state)
{
	struct crew crew = { .worst = 4000 };
	struct gale_limiter *limiters[2];

	(void)state;
	run_crew(&crew);
	limiters[0] = crew.a;
	limiters[1] = crew.b;
	for (int i = 0; i < 2; i++) {
		uint64_t limit = i == 0 ? LIMIT : LIMIT / 2;
		uint64_t left = left_of(crew.house.seat, limiters[i]);

		if (left > 0)
			assert_int_equal(crew.committed[i] + left, limit);
		assert_true(crew.committed[i] + left >= limit);
		/* Those that ran at once: each thread one, of at most three times its hold. */
		assert_true(crew.committed[i] <= limit + THREADS * 3 * 120);
	}
	end_crew(&crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    calls_that_run_together_do_not_pass_the_limit_together),
		cmocka_unit_test(a_bound_above_the_limit_is_cut_to_it_and_says_so),
		cmocka_unit_test(a_commit_after_its_window_changes_no_later_one),
		cmocka_unit_test(a_seat_that_is_behind_gives_nothing_to_a_later_window),
		cmocka_unit_test(a_hold_may_grow_by_a_seat_that_is_behind),
		cmocka_unit_test(a_hold_does_not_expire_under_a_call_that_runs),
		cmocka_unit_test(a_stream_that_breaks_gives_back_the_rest),
		cmocka_unit_test(a_hold_is_settled_once),
		cmocka_unit_test(a_hold_is_of_all_limits_or_of_none),
		cmocka_unit_test(a_hold_grows_from_credit_without_a_store),
		cmocka_unit_test(
		    a_hold_whose_outages_are_allowed_does_not_grow_without_credit),
		cmocka_unit_test(what_does_not_grow_in_all_parts_grows_in_none),
		cmocka_unit_test(
		    what_falls_short_at_first_leaves_neither_units_nor_pins),
		cmocka_unit_test(a_hold_may_grow_in_the_next_window),
		cmocka_unit_test(a_hold_as_large_as_can_be_grows_in_the_next_window),
		cmocka_unit_test(what_a_call_cost_beyond_is_paid_by_credit_in_hand),
		cmocka_unit_test(and_by_what_the_store_has),
		cmocka_unit_test(and_by_the_stores_last_units),
		cmocka_unit_test(and_by_what_other_holds_give_back),
		cmocka_unit_test(a_debt_is_not_of_the_next_window),
		cmocka_unit_test(
		    a_node_that_knows_few_keys_remembers_those_that_are_held),
		cmocka_unit_test(a_limit_is_lowered_under_a_hold),
		cmocka_unit_test(a_key_is_reset_under_a_hold),
		cmocka_unit_test(a_reset_ends_a_debt),
		cmocka_unit_test(a_hold_grows_after_a_reset),
		cmocka_unit_test(what_it_cost_beyond_is_debited_where_it_grew),
		cmocka_unit_test(a_period_is_changed_under_a_hold),
		cmocka_unit_test(a_period_is_changed_and_changed_again_under_a_hold),
		cmocka_unit_test(a_key_is_reset_under_a_hold_of_a_changed_rule),
		cmocka_unit_test(a_hold_grows_under_another_period),
		cmocka_unit_test(a_debt_outlasts_no_period_of_another_rule),
		cmocka_unit_test(another_seat_settles_a_hold),
		cmocka_unit_test(a_seat_leaves_before_its_hold_has_come),
		cmocka_unit_test(what_goes_back_and_stays_idle_goes_to_the_store),
		cmocka_unit_test(what_is_wrong_is_said_and_nothing_is_lost),
		cmocka_unit_test(
		    a_limiter_that_is_closed_first_gets_back_what_was_held),
		cmocka_unit_test(a_runtime_that_is_closed_settles_nothing),
		cmocka_unit_test(a_debt_that_there_is_no_memory_for_is_refused),
		cmocka_unit_test(a_hold_may_be_asked_for_without_waiting),
		cmocka_unit_test(threads_commit_what_there_is),
		cmocka_unit_test(what_threads_commit_beyond_is_what_they_did_not_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
