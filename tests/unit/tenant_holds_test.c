/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_holds_test.c -- holds of tenants' shares in a budget of one process.
 *
 * The clock stands still unless the test moves it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include <gale/tenants.h>

#include "runtime/atomic.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)
#define REMEMBERED_US GALE_MILLIS(32) /* a denial, at most */
#define WITHIN GALE_SECONDS(10)
#define LIMIT 100
#define ROOM 3 /* tenants */

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

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

static uint64_t used_by(struct gale_tenant *tenant)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(tenant, &counts) == GALE_ERR_OK);
	return counts.used;
}

/* How many units are allowed, one by one. */
static uint64_t left_of(struct gale_seat *seat, struct gale_tenant *tenant)
{
	uint64_t left = 0;

	while (gale_tenant_wait(seat, tenant, 1, WITHIN).verdict == GALE_ALLOW)
		left++;
	return left;
}

struct scene {
	struct house house;
	struct gale_budget *budget;
	struct gale_tenant *a, *b; /* half of the limit each, while both ask */
};
static struct scene s;

static int open_scene(void **state)
{
	struct gale_budget_config config = { .limit = LIMIT,
		                             .window_us = WINDOW_US,
		                             .max_tenants = ROOM };
	struct gale_terms terms = { .weight = 1 };

	(void)state;
	house_open(&s.house, &plan);
	must(gale_budget_open(s.house.runtime, &config, &s.budget) == GALE_ERR_OK);
	must(gale_tenant_open(s.budget, &terms, &s.a) == GALE_ERR_OK);
	must(gale_tenant_open(s.budget, &terms, &s.b) == GALE_ERR_OK);
	return 0;
}

/* Nothing is left behind.  Handles that a test has closed are NULL. */
static int close_scene(void **state)
{
	(void)state;
	gale_tenant_close(s.a);
	gale_tenant_close(s.b);
	gale_budget_close(s.budget);
	return house_close(&s.house) ? 0 : -1;
}

static struct gale_answer hold(struct gale_tenant *tenant, uint64_t at_most,
                               struct gale_tenant_held *ret_hold)
{
	return gale_tenant_hold(s.house.seat, tenant, at_most, ret_hold, WITHIN);
}

static struct gale_answer grow(struct gale_tenant_held *held, uint64_t more)
{
	return gale_tenant_grow(s.house.seat, held, more, WITHIN);
}

static void commit(struct gale_tenant_held *held, uint64_t cost)
{
	met(gale_tenant_commit(s.house.seat, held, cost), GALE_ERR_OK);
}

/* Both have a share from now on. */
static void be_present(void)
{
	struct gale_tenant_held first, second;

	is_told(hold(s.a, 1, &first), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.b, 1, &second), GALE_ALLOW, GALE_WHY_OWN);
	commit(&first, 0);
	commit(&second, 0);
}

/* LiteLLM 18730: calls that run together would use 663 of a budget of 100. */
static void calls_that_run_together_do_not_pass_the_limit_together(void **state)
{
	static const uint64_t costs[] = { 51, 221, 170, 221 };
	struct gale_tenant_held holds[4];
	uint64_t used = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		refused += hold(s.a, 60, &holds[i]).verdict == GALE_DENY;
	assert_int_equal(refused, 3);
	for (int i = 0; i < 4; i++) {
		if (holds[i].units == 0)
			continue;
		used += costs[i] < 60 ? costs[i] : 60; /* its stream is stopped */
		commit(&holds[i], used);
	}
	assert_int_equal(used_by(s.a), used);
	assert_int_equal(used + left_of(s.house.seat, s.a), LIMIT);
}

static void what_is_not_needed_goes_back(void **state)
{
	struct gale_tenant_held first, second;

	(void)state;
	be_present();
	is_told(hold(s.a, 50, &first), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(first.units, 50);
	assert_false(first.cut);
	is_told(hold(s.a, 40, &second), GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(second.units, 0);
	commit(&first, 10);
	is_told(hold(s.a, 40, &second), GALE_ALLOW, GALE_WHY_OWN);
	commit(&second, 0);
	assert_int_equal(used_by(s.a), 10);
	assert_int_equal(left_of(s.house.seat, s.a), 40);
	assert_int_equal(left_of(s.house.seat, s.b), 50);
}

/* LiteLLM 29191: a first request holds 1,024 of a limit of 100. */
static void a_bound_above_the_limit_is_cut_to_it_and_says_so(void **state)
{
	static const uint64_t above[] = { 1024, GALE_UNITS_MAX, GALE_UNITS_MAX + 1,
		                          UINT64_MAX };
	struct gale_terms terms = { .weight = 1, .cap = 30 };
	struct gale_tenant_held held;

	(void)state;
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		is_told(hold(s.a, above[i], &held), GALE_ALLOW, GALE_WHY_OWN);
		assert_true(held.cut);
		assert_int_equal(held.units, LIMIT);
		commit(&held, above[i] == UINT64_MAX ? 40 : 0);
	}
	assert_int_equal(used_by(s.a), 40);
	must(gale_tenant_set_terms(s.b, &terms) == GALE_ERR_OK);
	is_told(hold(s.b, 31, &held), GALE_ALLOW, GALE_WHY_OWN);
	assert_true(held.cut);
	assert_int_equal(held.units, 30);
	commit(&held, 30);
	is_told(hold(s.b, 31, &held), GALE_DENY, GALE_WHY_OTHERS);
	assert_true(held.cut);
	assert_int_equal(held.units, 0);
}

static void a_hold_that_may_not_grow_stays_as_it_was(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	be_present();
	is_told(hold(s.a, 10, &held), GALE_ALLOW, GALE_WHY_OWN);
	for (uint64_t units = 20; units <= 50; units += 10) {
		is_told(grow(&held, 10), GALE_ALLOW, GALE_WHY_OWN);
		assert_int_equal(held.units, units);
	}
	is_told(grow(&held, 10), GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(held.units, 50);
	commit(&held, 45);
	assert_int_equal(used_by(s.a), 45);
	assert_int_equal(left_of(s.house.seat, s.b), 50);
}

static void a_hold_is_settled_once(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 20);
	met(gale_tenant_commit(s.house.seat, &held, 0), GALE_ERR_HOLD);
	met(gale_tenant_commit(s.house.seat, &held, 50), GALE_ERR_HOLD);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(used_by(s.a), 20);
}

/* Nothing is lost by a mistake. */
static void what_is_no_hold_is_refused(void **state)
{
	struct gale_tenant_held held, none = { 0 }, foreign;

	(void)state;
	is_told(hold(s.a, 0, &held), GALE_DENY, GALE_WHY_BAD_ASK);
	met(gale_tenant_commit(s.house.seat, &held, 0), GALE_ERR_HOLD);
	is_told(hold(NULL, 1, &held), GALE_DENY, GALE_WHY_BAD_ASK);
	is_told(hold(s.a, 1, NULL), GALE_DENY, GALE_WHY_BAD_ASK);
	is_told(gale_tenant_hold(NULL, s.a, 1, &held, 0), GALE_DENY, GALE_WHY_BAD_ASK);
	met(gale_tenant_commit(s.house.seat, NULL, 0), GALE_ERR_HOLD);
	met(gale_tenant_commit(s.house.seat, &none, 0), GALE_ERR_HOLD);
	memset(&foreign, 0x55, sizeof(foreign));
	met(gale_tenant_commit(s.house.seat, &foreign, 0), GALE_ERR_HOLD);
	is_told(grow(&foreign, 1), GALE_DENY, GALE_WHY_BAD_ASK);

	is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(grow(&held, 0), GALE_DENY, GALE_WHY_BAD_ASK);
	is_told(grow(&held, GALE_UNITS_MAX), GALE_DENY, GALE_WHY_TOO_MUCH);
	met(gale_tenant_commit(NULL, &held, 0), GALE_ERR_SEAT);
	met(gale_tenant_commit(s.house.seat, &held, GALE_UNITS_MAX + 1), GALE_ERR_COST);
	assert_int_equal(held.units, 50);
	commit(&held, 1);
	assert_int_equal(used_by(s.a), 1);
}

/* ---- Windows ------------------------------------------------------------------------- */

static void a_commit_after_its_window_changes_no_later_one(void **state)
{
	static const uint64_t costs[] = { 0, 10, 50, 80 };

	(void)state;
	for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
		struct gale_tenant_held held;

		is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
		test_clock_advance(&s.house.clock, WINDOW_US);
		be_present();
		assert_int_equal(used_by(s.a), 0);
		commit(&held, costs[i]);
		assert_int_equal(used_by(s.a), 0);
		assert_int_equal(left_of(s.house.seat, s.a), LIMIT / 2);
		assert_int_equal(left_of(s.house.seat, s.b), LIMIT / 2);
		test_clock_advance(&s.house.clock, WINDOW_US);
	}
}

/* It has units of both; only those of the second go back. */
static void a_hold_that_outlives_its_window_grows_in_the_next(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(s.a, 30, &held), GALE_ALLOW, GALE_WHY_OWN);
	test_clock_advance(&s.house.clock, WINDOW_US);
	is_told(grow(&held, 20), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 50);
	assert_int_equal(used_by(s.a), 20);
	commit(&held, 10);
	assert_int_equal(used_by(s.a), 0);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT);
}

static void a_hold_does_not_expire_under_a_call_that_runs(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
	for (int i = 0; i < 20; i++) { /* a tenant that does not ask is absent */
		test_clock_advance(&s.house.clock, WINDOW_US / 25);
		assert_int_equal(used_by(s.a), 50);
		is_told(gale_tenant_ask(s.house.seat, s.b, 1), GALE_ALLOW,
		        GALE_WHY_OWN);
	}
	is_told(gale_tenant_ask(s.house.seat, s.b, 31), GALE_DENY, GALE_WHY_SPENT);
	commit(&held, 20);
	test_clock_advance(&s.house.clock, REMEMBERED_US);
	assert_int_equal(left_of(s.house.seat, s.b), 60);
}

/* ---- Costs above the hold ------------------------------------------------------------ */

static void what_a_call_costs_beyond_its_hold_is_owed(void **state)
{
	struct gale_tenant_held held, other;

	(void)state;
	be_present();
	is_told(hold(s.a, 10, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 30); /* there is room in its share */
	assert_int_equal(used_by(s.a), 30);
	is_told(hold(s.a, 10, &other), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 5, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 25); /* and now for five of twenty */
	assert_int_equal(used_by(s.a), 50);
	is_told(hold(s.a, 1, &held), GALE_DENY, GALE_WHY_OTHERS);
	commit(&other, 2); /* another hold's rest pays eight */
	is_told(hold(s.a, 1, &held), GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(used_by(s.a), 50);
	assert_int_equal(left_of(s.house.seat, s.b), 50);
	test_clock_advance(&s.house.clock, WINDOW_US); /* and is over */
	be_present();
	assert_int_equal(left_of(s.house.seat, s.a), 50);
}

static void a_debt_is_paid_from_what_others_leave(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	be_present();
	is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 70);
	assert_int_equal(used_by(s.a), 50);
	test_clock_advance(&s.house.clock, WINDOW_US / 8); /* all are absent by then */
	is_told(hold(s.a, 31, &held), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(used_by(s.a), 70);
	assert_int_equal(left_of(s.house.seat, s.a), 30);
}

/* ---- Straight from the purse ------------------------------------------------------------ */

/* Units in the purse of a, and so many are used. */
static void fill_purse(uint64_t used)
{
	struct gale_tenant_counts counts;

	is_told(gale_tenant_ask(s.house.seat, s.a, used), GALE_ALLOW, GALE_WHY_OWN);
	must(gale_tenant_stats(s.a, &counts) == GALE_ERR_OK);
	must(counts.ahead >= 10);
}

static uint64_t ahead_of(struct gale_tenant *tenant)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(tenant, &counts) == GALE_ERR_OK);
	return counts.ahead;
}

/* It takes units of the purse alone, and all count. */
static void a_hold_within_the_purse_comes_from_it_and_goes_back(void **state)
{
	struct gale_tenant_held held, other;
	uint64_t ahead;

	(void)state;
	fill_purse(1);
	ahead = ahead_of(s.a);
	is_told(hold(s.a, 4, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 3, &other), GALE_ALLOW, GALE_WHY_OWN);
	is_told(grow(&held, 2), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 6);
	assert_false(held.cut);
	assert_int_equal(ahead_of(s.a), ahead - 9);
	assert_int_equal(used_by(s.a), 10);
	commit(&held, 1);
	met(gale_tenant_commit(s.house.seat, &held, 0), GALE_ERR_HOLD);
	commit(&other, 3);
	assert_int_equal(used_by(s.a), 5);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT - 5);
}

/* Nothing has looked at the purse since, when the second ends. */
static void a_hold_from_the_purse_gives_nothing_back_to_a_later_window(void **state)
{
	struct gale_tenant_held first, second, third;

	(void)state;
	fill_purse(1);
	is_told(hold(s.a, 5, &first), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 5, &second), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 2, &third), GALE_ALLOW, GALE_WHY_OWN);
	test_clock_advance(&s.house.clock, WINDOW_US);
	commit(&second, 0);
	fill_purse(20);
	commit(&third, 0);
	is_told(grow(&first, 1), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(first.units, 6);
	commit(&first, 0);
	assert_int_equal(used_by(s.a), 20);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT - 20);
}

/* Its share is less than it has used by then: what it gives back is the other's.  TENANT-8 */
static void who_comes_finds_what_a_hold_from_the_purse_gives_back(void **state)
{
	struct gale_tenant_held first, second;

	(void)state;
	fill_purse(80);
	is_told(hold(s.a, 5, &first), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 5, &second), GALE_ALLOW, GALE_WHY_OWN);
	commit(&first, 0);
	is_told(gale_tenant_ask(s.house.seat, s.b, 1), GALE_ALLOW, GALE_WHY_OWN);
	commit(&second, 0);
	assert_int_equal(left_of(s.house.seat, s.b), LIMIT - 80 - 1);
	assert_int_equal(used_by(s.a), 80);
}

/* TENANT-3 */
static void who_holds_from_its_purse_is_present(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	fill_purse(1);
	is_told(gale_tenant_ask(s.house.seat, s.b, 1), GALE_ALLOW, GALE_WHY_OWN);
	is_told(gale_tenant_ask(s.house.seat, s.a, 1), GALE_ALLOW, GALE_WHY_OWN);
	for (int i = 0; i < 6; i++) { /* three times as long as it may be silent */
		test_clock_advance(&s.house.clock, WINDOW_US / 16);
		is_told(hold(s.a, 1, &held), GALE_ALLOW, GALE_WHY_OWN);
		commit(&held, 0);
		is_told(gale_tenant_ask(s.house.seat, s.b, 1), GALE_ALLOW,
		        GALE_WHY_OWN);
	}
	assert_int_equal(left_of(s.house.seat, s.b), LIMIT / 2 - 7);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT / 2 - 2);
}

static void a_tenant_is_closed_under_a_hold_from_its_purse(void **state)
{
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant_held held, other;

	(void)state;
	fill_purse(1);
	is_told(hold(s.a, 5, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 5, &other), GALE_ALLOW, GALE_WHY_OWN);
	commit(&other, 1);
	gale_tenant_close(s.a);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_CLOSED);
	must(gale_tenant_open(s.budget, &terms, &s.a) == GALE_ERR_OK);
	met(gale_tenant_commit(s.house.seat, &held, 2), GALE_ERR_TENANT);
	assert_int_equal(left_of(s.house.seat, s.b), LIMIT - 1 - 1 - 2);
}

/* ---- Closing and changing ------------------------------------------------------------ */

static void a_tenant_is_closed_under_a_hold(void **state)
{
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant_held held, above;
	struct gale_tenant *other;

	(void)state;
	must(gale_tenant_open(s.budget, &terms, &other) == GALE_ERR_OK);
	is_told(hold(s.a, 60, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 10, &above), GALE_ALLOW, GALE_WHY_OWN);
	gale_tenant_close(s.a);
	must(gale_tenant_open(s.budget, &terms, &s.a) ==
	     GALE_ERR_OK); /* in its place */
	is_told(gale_tenant_ask(s.house.seat, s.a, 1), GALE_ALLOW, GALE_WHY_OWN);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_CLOSED);
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_TENANT);
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_HOLD);
	met(gale_tenant_commit(s.house.seat, &above, 50), GALE_ERR_TENANT);
	assert_int_equal(used_by(s.a), 1);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT - 5 - 10 - 1);
	gale_tenant_close(other);
}

static void close_both(void)
{
	gale_tenant_close(s.a);
	gale_tenant_close(s.b);
	s.a = s.b = NULL;
}

/* A team of it is closed before it, after it, or not at all. */
enum closing { TEAM_FIRST, TEAM_LAST, TEAM_STAYS };

static void close_organisation(enum closing closing, uint64_t units)
{
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant_held held, above;
	struct gale_tenant *organisation, *team, *user;

	must(gale_tenant_open(s.budget, &terms, &organisation) == GALE_ERR_OK);
	terms.parent = organisation;
	must(gale_tenant_open(s.budget, &terms, &team) == GALE_ERR_OK);
	terms.parent = team;
	must(gale_tenant_open(s.budget, &terms, &user) == GALE_ERR_OK);
	is_told(hold(user, units, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(user, 10, &above), GALE_ALLOW, GALE_WHY_OWN);
	if (closing == TEAM_FIRST)
		gale_tenant_close(team);
	gale_tenant_close(organisation);
	if (closing == TEAM_LAST)
		gale_tenant_close(team);
	terms.parent = NULL;
	must(gale_tenant_open(s.budget, &terms, &s.a) == GALE_ERR_OK);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_CLOSED);
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_TENANT);
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_HOLD);
	met(gale_tenant_commit(s.house.seat, &above, 50), GALE_ERR_TENANT);
	assert_int_equal(left_of(s.house.seat, s.a), LIMIT - 5 - 10);
	if (closing == TEAM_STAYS)
		gale_tenant_close(team);
	gale_tenant_close(user);
	gale_tenant_close(s.a);
	s.a = NULL;
	test_clock_advance(&s.house.clock, WINDOW_US);
}

/* Other organisations can use the units that the hold gives back, in its window.  TENANT-7 */
static void an_organisation_is_closed_under_a_users_hold(void **state)
{
	(void)state;
	close_both();
	for (enum closing closing = TEAM_FIRST; closing <= TEAM_STAYS; closing++) {
		close_organisation(closing, 60); /* more than a purse */
		close_organisation(closing, 5);
	}
}

static void a_budget_is_closed_under_a_hold(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(s.a, 60, &held), GALE_ALLOW, GALE_WHY_OWN);
	gale_budget_close(s.budget);
	s.budget = NULL;
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_TENANT);
	met(gale_tenant_commit(s.house.seat, &held, 5), GALE_ERR_HOLD);
}

static struct gale_tenant *child_of(struct gale_tenant *parent)
{
	struct gale_terms terms = { .weight = 1, .parent = parent };
	struct gale_tenant *child;

	must(gale_tenant_open(s.budget, &terms, &child) == GALE_ERR_OK);
	return child;
}

/* Tenants below it can use the units that its hold gives back. */
static void a_tenant_with_a_hold_gets_tenants_of_its_own(void **state)
{
	struct gale_tenant_held held, above;
	struct gale_tenant *child;

	(void)state;
	is_told(hold(s.a, 50, &held), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 10, &above), GALE_ALLOW, GALE_WHY_OWN);
	child = child_of(s.a);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_BAD_ASK);
	commit(&held, 20);
	commit(&above, 30);
	assert_int_equal(used_by(s.a), 50);
	assert_int_equal(left_of(s.house.seat, child), 50);
	gale_tenant_close(child);
}

/* Its share pays it before its tenants get more: also with what they had in their purses. */
static void a_tenant_that_gets_tenants_owes_what_its_calls_cost(void **state)
{
	struct gale_tenant_held held;
	struct gale_tenant *child;

	(void)state;
	be_present();
	is_told(hold(s.a, 10, &held), GALE_ALLOW, GALE_WHY_OWN);
	child = child_of(s.a);
	is_told(gale_tenant_ask(s.house.seat, child, 1), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 30);
	assert_int_equal(used_by(s.a), 31);
	assert_int_equal(left_of(s.house.seat, child), 19);
	assert_int_equal(left_of(s.house.seat, s.b), 50);
	gale_tenant_close(child);
}

static void a_debt_stays_with_a_tenant_that_gets_tenants(void **state)
{
	struct gale_tenant_held held;
	struct gale_tenant *child;

	(void)state;
	be_present();
	is_told(hold(s.a, 10, &held), GALE_ALLOW, GALE_WHY_OWN);
	commit(&held, 80);
	assert_int_equal(used_by(s.a), 50);
	child = child_of(s.a);
	is_told(gale_tenant_ask(s.house.seat, child, 1), GALE_DENY, GALE_WHY_OTHERS);
	assert_int_equal(used_by(s.a), 50);
	test_clock_advance(&s.house.clock, WINDOW_US / 8); /* b is absent by then */
	assert_int_equal(left_of(s.house.seat, child), 20);
	assert_int_equal(used_by(s.a), 100);
	test_clock_advance(&s.house.clock, WINDOW_US); /* and is over */
	is_told(gale_tenant_ask(s.house.seat, s.b, 1), GALE_ALLOW, GALE_WHY_OWN);
	is_told(gale_tenant_ask(s.house.seat, child, 1), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(left_of(s.house.seat, child), 49);
	gale_tenant_close(child);
}

static void the_limit_is_lowered_under_a_hold(void **state)
{
	struct gale_tenant_held held, second;

	(void)state;
	is_told(hold(s.a, 80, &held), GALE_ALLOW, GALE_WHY_OWN);
	met(gale_budget_set_limit(s.budget, 50), GALE_ERR_OK);
	is_told(grow(&held, 1), GALE_DENY, GALE_WHY_SPENT);
	is_told(hold(s.a, 80, &second), GALE_DENY, GALE_WHY_SPENT);
	assert_true(second.cut);
	commit(&held, 30);
	assert_int_equal(used_by(s.a), 30);
	assert_int_equal(left_of(s.house.seat, s.a), 20);
}

/* Neither units nor terms are lost by it. */
static void terms_out_of_range_change_nothing(void **state)
{
	static const uint32_t wrong[] = { 0, GALE_TENANT_WEIGHT_MAX + 1, UINT32_MAX };
	struct gale_terms terms = { .weight = 3 };
	struct gale_tenant *none = NULL;
	struct gale_tenant_held held;

	(void)state;
	met(gale_tenant_set_terms(s.a, &terms), GALE_ERR_OK);
	be_present();
	is_told(hold(s.a, 20, &held), GALE_ALLOW, GALE_WHY_OWN);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		terms.weight = wrong[i];
		met(gale_tenant_set_terms(s.a, &terms), GALE_ERR_TENANT_WEIGHT);
		met(gale_tenant_open(s.budget, &terms, &none), GALE_ERR_TENANT_WEIGHT);
		assert_null(none);
	}
	terms.weight = GALE_TENANT_WEIGHT_MAX;
	met(gale_tenant_open(s.budget, &terms, &none), GALE_ERR_OK); /* the last room */
	gale_tenant_close(none);
	assert_int_equal(used_by(s.a), 20);
	commit(&held, 5);
	assert_int_equal(left_of(s.house.seat, s.a), 75 - 5);
	assert_int_equal(left_of(s.house.seat, s.b), 25);
}

static void another_seat_settles_a_hold(void **state)
{
	struct gale_tenant_held held;
	struct gale_seat *seat;

	(void)state;
	must(gale_join(s.house.runtime, &seat) == GALE_ERR_OK);
	is_told(gale_tenant_hold(seat, s.a, 60, &held, 0), GALE_ALLOW, GALE_WHY_OWN);
	gale_leave(seat);
	commit(&held, 5);
	assert_int_equal(used_by(s.a), 5);
}

#define SEATS_MOST 65 /* the last has no cell on any machine: SEAT-4 */

/* Each of two seats settles what the other has held, also after its tenant was closed. */
static void seats_without_a_cell_hold_and_settle(void **state)
{
	struct gale_tenant_held first, second, third;
	struct gale_seat *seats[SEATS_MOST], *last;

	(void)state;
	for (int i = 0; i < SEATS_MOST; i++)
		must(gale_join(s.house.runtime, &seats[i]) == GALE_ERR_OK);
	last = seats[SEATS_MOST - 1];
	fill_purse(1);
	is_told(gale_tenant_hold(last, s.a, 2, &first, 0), GALE_ALLOW, GALE_WHY_OWN);
	is_told(gale_tenant_hold(last, s.a, 3, &second, 0), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 4, &third), GALE_ALLOW, GALE_WHY_OWN);
	commit(&first, 1);
	met(gale_tenant_commit(last, &third, 1), GALE_ERR_OK);
	gale_tenant_close(s.a);
	s.a = NULL;
	met(gale_tenant_commit(last, &second, 1), GALE_ERR_TENANT);
	for (int i = 0; i < SEATS_MOST; i++)
		gale_leave(seats[i]);
	assert_int_equal(left_of(s.house.seat, s.b), LIMIT - 1 - 3);
}

#define MANY 200 /* more than the graveyard has room for */

static void open_and_close_many(void)
{
	struct gale_terms terms = { .weight = 1 };
	struct gale_tenant *tenant;

	for (int i = 0; i < MANY; i++) {
		must(gale_tenant_open(s.budget, &terms, &tenant) == GALE_ERR_OK);
		gale_tenant_close(tenant);
	}
}

/* Its memory is taken as long as a call holds units of it, and no longer. */
static void a_closed_tenant_lives_as_long_as_its_holds(void **state)
{
	_Atomic uint64_t *blocks = &s.house.allocator.blocks;
	struct gale_tenant_held first, second;
	uint64_t without;

	(void)state;
	is_told(hold(s.a, 2, &first), GALE_ALLOW, GALE_WHY_OWN);
	is_told(hold(s.a, 2, &second), GALE_ALLOW, GALE_WHY_OWN);
	commit(&first, 1);
	gale_tenant_close(s.a);
	s.a = NULL;
	open_and_close_many();
	without = load_relaxed(blocks) - 1;
	met(gale_tenant_commit(s.house.seat, &second, 1), GALE_ERR_TENANT);
	open_and_close_many();
	assert_int_equal(load_relaxed(blocks), without);
	assert_int_equal(left_of(s.house.seat, s.b), LIMIT - 2);
}

#define RACES LONG_OR_BRIEF(2000, 200)
#define ENDERS 2   /* threads that end calls */
#define RUNNERS 64 /* tenants, with a call for each of those threads */

static struct {
	struct gale_budget *budget;
	struct gale_tenant *tenants[RUNNERS];
	struct gale_tenant_held holds[ENDERS][RUNNERS];
	pthread_barrier_t begins, ends; /* of a race */
} race;

static void end_calls(struct gale_seat *seat, unsigned who)
{
	pthread_barrier_wait(&race.begins);
	for (int i = 0; i < RUNNERS; i++)
		must(gale_tenant_commit(seat, &race.holds[who][i], 0) != GALE_ERR_HOLD);
	pthread_barrier_wait(&race.ends);
}

static void open_and_close(struct gale_seat *seat)
{
	struct gale_terms terms = { .weight = 1 };

	for (int i = 0; i < RUNNERS; i++) {
		must(gale_tenant_open(race.budget, &terms, &race.tenants[i]) ==
		     GALE_ERR_OK);
		must(gale_tenant_ask(seat, race.tenants[i], 1).verdict == GALE_ALLOW);
		for (int who = 0; who < ENDERS; who++)
			must(gale_tenant_hold(seat, race.tenants[i], 1,
			                      &race.holds[who][i], 0)
			         .verdict == GALE_ALLOW);
	}
	pthread_barrier_wait(&race.begins);
	for (int i = 0; i < RUNNERS; i++)
		gale_tenant_close(race.tenants[i]);
	pthread_barrier_wait(&race.ends);
}

static void end_or_close(void *arg, unsigned who)
{
	struct gale_seat *seat;

	(void)arg;
	must(gale_join(s.house.runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < RACES; i++)
		if (who < ENDERS)
			end_calls(seat, who);
		else
			open_and_close(seat);
	gale_leave(seat);
}

/* Nothing is left behind: close_scene. */
static void calls_end_as_their_tenants_are_closed(void **state)
{
	struct gale_budget_config config = { .limit = GALE_UNITS_MAX,
		                             .window_us = WINDOW_US };

	(void)state;
	must(gale_budget_open(s.house.runtime, &config, &race.budget) == GALE_ERR_OK);
	must(pthread_barrier_init(&race.begins, NULL, ENDERS + 1) == 0);
	must(pthread_barrier_init(&race.ends, NULL, ENDERS + 1) == 0);
	crew_run(ENDERS + 1, end_or_close, NULL);
	must(pthread_barrier_destroy(&race.begins) == 0);
	must(pthread_barrier_destroy(&race.ends) == 0);
	gale_budget_close(race.budget);
}

static void a_runtime_that_is_closed_settles_nothing(void **state)
{
	struct gale_tenant_held held;
	struct gale_seat *seat = s.house.seat;

	(void)state;
	is_told(hold(s.a, 60, &held), GALE_ALLOW, GALE_WHY_OWN);
	gale_runtime_close(s.house.runtime);
	s.house.runtime = NULL;
	is_told(gale_tenant_grow(seat, &held, 1, 0), GALE_DENY, GALE_WHY_CLOSED);
	met(gale_tenant_commit(seat, &held, 5), GALE_ERR_RUNTIME);
	met(gale_tenant_commit(seat, &held, 5), GALE_ERR_HOLD);
}

static int use_in_child(void *arg)
{
	struct gale_tenant_held *held = arg;

	return hold(s.a, 1, &(struct gale_tenant_held){ 0 }).why == GALE_WHY_FORKED &&
	               grow(held, 1).why == GALE_WHY_FORKED &&
	               gale_tenant_commit(s.house.seat, held, 1) == GALE_ERR_FORKED
	           ? 0
	           : 1;
}

static void a_child_settles_nothing(void **state)
{
	struct gale_tenant_held held;

	(void)state;
	is_told(hold(s.a, 60, &held), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(child_run(use_in_child, &held), 0);
	commit(&held, 5);
	assert_int_equal(used_by(s.a), 5);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
	const struct CMUnitTest tests[] = {
		CASE(calls_that_run_together_do_not_pass_the_limit_together),
		CASE(what_is_not_needed_goes_back),
		CASE(a_bound_above_the_limit_is_cut_to_it_and_says_so),
		CASE(a_hold_that_may_not_grow_stays_as_it_was),
		CASE(a_hold_is_settled_once),
		CASE(what_is_no_hold_is_refused),
		CASE(a_commit_after_its_window_changes_no_later_one),
		CASE(a_hold_that_outlives_its_window_grows_in_the_next),
		CASE(a_hold_does_not_expire_under_a_call_that_runs),
		CASE(what_a_call_costs_beyond_its_hold_is_owed),
		CASE(a_debt_is_paid_from_what_others_leave),
		CASE(a_hold_within_the_purse_comes_from_it_and_goes_back),
		CASE(a_hold_from_the_purse_gives_nothing_back_to_a_later_window),
		CASE(who_comes_finds_what_a_hold_from_the_purse_gives_back),
		CASE(who_holds_from_its_purse_is_present),
		CASE(a_tenant_is_closed_under_a_hold_from_its_purse),
		CASE(a_tenant_is_closed_under_a_hold),
		CASE(an_organisation_is_closed_under_a_users_hold),
		CASE(a_budget_is_closed_under_a_hold),
		CASE(a_tenant_with_a_hold_gets_tenants_of_its_own),
		CASE(a_tenant_that_gets_tenants_owes_what_its_calls_cost),
		CASE(a_debt_stays_with_a_tenant_that_gets_tenants),
		CASE(the_limit_is_lowered_under_a_hold),
		CASE(terms_out_of_range_change_nothing),
		CASE(another_seat_settles_a_hold),
		CASE(seats_without_a_cell_hold_and_settle),
		CASE(a_closed_tenant_lives_as_long_as_its_holds),
		CASE(calls_end_as_their_tenants_are_closed),
		CASE(a_runtime_that_is_closed_settles_nothing),
		CASE(a_child_settles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
