/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_test.c -- tenants ask for units of a budget, by one thread and by several.
 *
 * Most of it runs on a clock that stands still unless the test moves it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <gale/tenants.h>

#include "face/tenants.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

static struct gale_budget *open_budget(struct house *h, uint64_t limit)
{
	struct gale_budget_config config = { .limit = limit,
		                             .window_us = WINDOW_US,
		                             .name = "crowd" };
	struct gale_budget *budget;

	must(gale_budget_open(h->runtime, &config, &budget) == GALE_ERR_OK);
	return budget;
}

static struct gale_tenant *open_tenant(struct gale_budget *budget, uint64_t guarantee,
                                       uint32_t weight)
{
	struct gale_terms terms = { .guarantee = guarantee, .weight = weight };
	struct gale_tenant *tenant;

	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	return tenant;
}

/* How many of so many asks for one unit are allowed. */
static uint64_t flood(struct house *h, struct gale_tenant *tenant, uint64_t asks)
{
	uint64_t allowed = 0;

	while (asks-- > 0)
		allowed += gale_tenant_ask(h->seat, tenant, 1).verdict == GALE_ALLOW;
	return allowed;
}

static struct gale_tenant_counts counts_of(struct gale_tenant *tenant)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(tenant, &counts) == GALE_ERR_OK);
	return counts;
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

static void close_all(struct house *h, struct gale_budget *budget,
                      struct gale_tenant *a, struct gale_tenant *b)
{
	gale_tenant_close(a);
	gale_tenant_close(b);
	gale_budget_close(budget);
	assert_true(house_close(h));
}

static void four_to_one(void **state)
{
	struct gale_tenant *high, *low;
	struct gale_budget *budget;
	struct house h;
	uint64_t got[2] = { 1, 1 };

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 1000);
	high = open_tenant(budget, 0, 4);
	low = open_tenant(budget, 0, 1);
	is_told(gale_tenant_ask(h.seat, low, 1), GALE_ALLOW, GALE_WHY_OWN);
	is_told(gale_tenant_ask(h.seat, high, 1), GALE_ALLOW, GALE_WHY_OWN);
	for (int i = 0; i < 1000; i++) {
		got[0] += flood(&h, high, 1);
		got[1] += flood(&h, low, 1);
	}
	assert_int_equal(got[0], 800);
	assert_int_equal(got[1], 200);
	is_told(gale_tenant_ask(h.seat, low, 2), GALE_DENY, GALE_WHY_OTHERS);
	test_clock_advance(&h.clock, GALE_MILLIS(32)); /* that was remembered */
	is_told(gale_tenant_ask(h.seat, low, 2), GALE_DENY, GALE_WHY_SPENT);
	is_told(gale_tenant_ask(h.seat, low, 3), GALE_DENY, GALE_WHY_SPENT);
	is_told(gale_tenant_ask(h.seat, low, 1001), GALE_DENY, GALE_WHY_TOO_MUCH);
	test_clock_advance(&h.clock, WINDOW_US);
	assert_int_equal(flood(&h, low, 2000), 1000);
	close_all(&h, budget, high, low);
}

static void an_answer_says_what_a_tenant_has(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_answer answer;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 160);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1), 1);
	answer = gale_tenant_ask(h.seat, a, 1);
	assert_int_equal(answer.limit, 80);
	assert_int_equal(answer.remaining, 79);
	assert_int_equal(counts_of(a).ahead, 10);
	answer = gale_tenant_ask(h.seat, a, 1);
	assert_int_equal(answer.limit, 80);
	assert_int_equal(answer.remaining, 78);
	assert_in_range(answer.reset_after_us, 1, WINDOW_US);
	assert_int_equal(counts_of(a).used, 2);
	assert_int_equal(counts_of(a).allowed, 2);
	assert_int_equal(counts_of(a).ahead, 9);
	assert_int_equal(flood(&h, a, 100), 78);
	answer = gale_tenant_ask(h.seat, a, 1);
	is_told(answer, GALE_DENY, GALE_WHY_OTHERS);
	assert_true(answer.retry_after_us > 0 && answer.retry_after_us <= WINDOW_US);
	assert_int_equal(counts_of(a).used, 80);
	assert_int_equal(counts_of(a).denied, 1); /* 22 more were remembered */
	close_all(&h, budget, a, b);
}

/* In turn, whoever asks again within its guarantee after others have borrowed is allowed.  T2 */
static void a_guarantee_is_there_whenever_it_is_asked_for(void **state)
{
	struct gale_tenant *sleeper, *greedy;
	struct gale_budget *budget;
	struct house h;
	uint64_t got = 0;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 1000);
	sleeper = open_tenant(budget, 100, 1);
	greedy = open_tenant(budget, 0, 1000);
	for (int i = 0; i < 100; i++) {
		if (i % 10 == 0)
			is_told(gale_tenant_ask(h.seat, sleeper, 10), GALE_ALLOW,
			        GALE_WHY_OWN);
		got += flood(&h, greedy, 100);
		test_clock_advance(&h.clock, WINDOW_US / 100);
	}
	assert_in_range(got, 898, 900);
	close_all(&h, budget, sleeper, greedy);
}

/* W-9.  What lay in its purse is the others', too.  T3 */
static void who_has_stopped_asking_reserves_nothing(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;
	uint64_t got;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 10000);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1), 1);
	got = flood(&h, a, 20000);
	assert_int_equal(got, 5000);
	test_clock_advance(&h.clock, WINDOW_US / 8);
	got += flood(&h, a, 20000);
	assert_int_equal(got, 9999);
	assert_int_equal(counts_of(b).share, 0);
	assert_int_equal(counts_of(b).ahead, 0);
	close_all(&h, budget, a, b);
}

/* Who lives from its purse is present, though the escrow hears nothing of it.  TENANT-3 */
static void who_spends_from_its_purse_is_present(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 10000);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1), 1);
	for (int i = 0; i < 6; i++) {
		(void)flood(&h, a, 10000);
		assert_int_equal(counts_of(a).used, 5000);
		test_clock_advance(&h.clock, WINDOW_US / 9);
		assert_int_equal(flood(&h, b, 1), 1);
	}
	assert_true(counts_of(b).ahead > 0);
	close_all(&h, budget, a, b);
}

/* Its calls are too dear for what is left of its share, and most denials are remembered.
 * TENANT-4 */
static void who_is_refused_goes_on_being_present(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1), 1);
	for (int i = 0; i < 80; i++) {
		(void)flood(&h, a, 100);
		assert_int_equal(gale_tenant_ask(h.seat, b, 60).verdict, GALE_DENY);
		assert_int_equal(counts_of(a).used, 50);
		test_clock_advance(&h.clock, WINDOW_US / 100);
	}
	assert_in_range(counts_of(b).denied, 10, 40);
	assert_int_equal(flood(&h, b, 100), 49);
	close_all(&h, budget, a, b);
}

static void who_has_used_its_share_gets_what_another_leaves(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1), 1);
	assert_int_equal(flood(&h, a, 1), 1);
	assert_int_equal(flood(&h, b, 100), 49);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(flood(&h, b, 10), 0);
		test_clock_advance(&h.clock, WINDOW_US / 100);
	}
	for (int i = 0; i < 12; i++) {
		(void)flood(&h, b, 10);
		test_clock_advance(&h.clock, WINDOW_US / 100);
	}
	assert_int_equal(counts_of(b).share, 99); /* a is absent: all that it left */
	assert_int_equal(counts_of(b).used, 99);
	assert_in_range(counts_of(b).denied, 1, 60);
	close_all(&h, budget, a, b);
}

/* Units of a purse die with their window.  TENANT-1 */
static void no_purse_reaches_into_the_next_window(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 800);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	for (int i = 0; i < 20; i++) {
		uint64_t got = flood(&h, a, 1) + flood(&h, b, 1);

		assert_true(counts_of(b).ahead > 0);
		got += flood(&h, a, 1000) + flood(&h, b, (uint64_t)i * 10);
		assert_true(got <= 800);
		test_clock_advance(&h.clock, WINDOW_US);
		assert_int_equal(counts_of(a).used, 0);
		assert_int_equal(counts_of(a).ahead, 0);
	}
	close_all(&h, budget, a, b);
}

/* What a purse holds is of the share: others have not less for it.  TENANT-2 */
static void a_purse_takes_nothing_from_others(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 1000);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, b, 1) + flood(&h, a, 1), 2);
	assert_true(counts_of(a).ahead > 0);
	assert_int_equal(flood(&h, b, 1000), 499);
	assert_int_equal(flood(&h, a, 1000), 499);
	close_all(&h, budget, a, b);
}

static void is_left_after(struct house *h, struct gale_tenant *tenant, uint64_t cost,
                          uint64_t remaining, uint64_t ahead)
{
	struct gale_answer answer = gale_tenant_ask(h->seat, tenant, cost);

	is_told(answer, GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(answer.remaining, remaining);
	assert_int_equal(counts_of(tenant).ahead, ahead);
}

/* A purse of a share of 800 units has 100.  TENANT-10 */
static void an_ask_above_purses_leaves_the_purse_alone(void **state)
{
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 800);
	tenant = open_tenant(budget, 0, 1);
	is_left_after(&h, tenant, 1, 799, 100);
	assert_int_equal(flood(&h, tenant, 40), 40);
	is_left_after(&h, tenant, 200, 559, 60);
	is_left_after(&h, tenant, 100, 459, 100); /* a purse has room for that */
	assert_int_equal(flood(&h, tenant, 100), 100);
	is_left_after(&h, tenant, 200, 159, 100); /* it was empty */
	is_left_after(&h, tenant, 120, 39, 39);   /* it has some of these units */
	is_told(gale_tenant_ask(h.seat, tenant, 120), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(flood(&h, tenant, 100), 39);
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

/* The tenant is present all the time, and all but one of these steps turn the window.  TENANT-1 */
static void an_ask_above_purses_leaves_none_of_the_window_before(void **state)
{
	struct gale_budget_config config = { .limit = 800,
		                             .window_us = WINDOW_US,
		                             .release_us = WINDOW_US };
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	tenant = open_tenant(budget, 0, 1);
	for (int i = 0; i < 5; i++) {
		is_told(gale_tenant_ask(h.seat, tenant, 200), GALE_ALLOW, GALE_WHY_OWN);
		assert_int_equal(counts_of(tenant).ahead, 100);
		test_clock_advance(&h.clock, GALE_MILLIS(900));
	}
	gale_tenant_close(tenant);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

/* W-8: who is closed leaves what it has used, and what it has not. */
static void a_tenant_that_is_closed_leaves_what_it_has_used(void **state)
{
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct house h;
	uint64_t got = 0;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	for (int i = 0; i < 1000; i++) {
		tenant = open_tenant(budget, 0, 1);
		got += flood(&h, tenant, 1);
		gale_tenant_close(tenant);
	}
	assert_int_equal(got, 100);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

#define CROWD LONG_OR_BRIEF(1000000, 20000)
#define ROOM 8

/* Names by the million in room for eight: no more memory, and the limit holds in each window.  T1 */
static void tenants_by_the_million_come_and_go(void **state)
{
	struct gale_budget_config config = { .limit = 100,
		                             .window_us = WINDOW_US,
		                             .max_tenants = ROOM };
	struct gale_terms terms = { .weight = 1, .name = "n" };
	struct gale_tenant *tenants[ROOM], *one_more;
	uint64_t got = 0, before = 0;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	for (uint32_t i = 0; i < CROWD; i++) {
		if (i >= ROOM)
			gale_tenant_close(tenants[i % ROOM]);
		must(gale_tenant_open(budget, &terms, &tenants[i % ROOM]) ==
		     GALE_ERR_OK);
		got += flood(&h, tenants[i % ROOM], 1);
		if (i == CROWD / 16)
			before = h.allocator.most;
		if (i % (CROWD / 4) == 0) {
			assert_true(got <= config.limit);
			got = 0;
			test_clock_advance(&h.clock, WINDOW_US);
		}
	}
	assert_int_equal(h.allocator.most, before);
	assert_int_equal(gale_tenant_open(budget, &terms, &one_more),
	                 GALE_ERR_TENANTS_FULL);
	for (int i = 0; i < ROOM; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

#define PRESENT LONG_OR_BRIEF(1 << 17, 1 << 12)

/* All present at once, far more than there are units: memory by the tenant, and the limit holds.  T1 */
static void a_crowd_is_present_at_once(void **state)
{
	struct gale_budget_config config = { .limit = 100,
		                             .window_us = WINDOW_US,
		                             .release_us = GALE_NEVER,
		                             .max_tenants = PRESENT };
	struct gale_tenant **tenants = calloc(PRESENT, sizeof(struct gale_tenant *));
	struct gale_budget *budget;
	struct house h;

	(void)state;
	must(tenants);
	house_open(&h, &plan);
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	for (uint32_t i = 0; i < PRESENT; i++)
		tenants[i] = open_tenant(budget, 0, 1);
	for (int window = 0; window < 3; window++) {
		uint64_t got = 0;

		for (uint32_t i = 0; i < PRESENT; i++)
			got += flood(&h, tenants[i], 2);
		assert_int_equal(got, config.limit);
		test_clock_advance(&h.clock, WINDOW_US);
	}
	assert_in_range(h.allocator.most / PRESENT, 1, 2048);
	for (uint32_t i = 0; i < PRESENT; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	free(tenants);
	assert_true(house_close(&h));
}

/* 28 at most were counted: of an ask for each that is present, and of all asks for each ask. */
#define LOOKS_MAX 30

/* One has used nearly all, and others have purses of what was left when they came.  So shares fall
 * below what purses have, but seldom.  Looks at tenants are counted, not time. */
static void who_comes_to_a_used_share_looks_at_few_tenants(void **state)
{
	(void)state;
	for (uint32_t count = 10; count <= 1000; count *= 10) {
		struct gale_budget_config config = { .limit = 1000000000,
			                             .window_us = WINDOW_US,
			                             .max_tenants = count };
		struct gale_tenant *tenants[1000];
		const struct escrow *escrow;
		struct gale_budget *budget;
		struct house h;

		house_open(&h, &plan);
		must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
		escrow = &budget->locked.family.escrow;
		for (uint32_t i = 0; i < count; i++)
			tenants[i] = open_tenant(budget, 0, 1);
		is_told(gale_tenant_ask(h.seat, tenants[0], 900000000), GALE_ALLOW,
		        GALE_WHY_OWN);
		for (uint32_t i = 1; i < count; i++) {
			uint64_t walked = escrow->walked;

			is_told(gale_tenant_ask(h.seat, tenants[i], 1), GALE_ALLOW,
			        GALE_WHY_OWN);
			assert_in_range(escrow->walked - walked, 0, LOOKS_MAX * i);
		}
		assert_in_range(escrow->falls, 1, count);
		assert_in_range(escrow->walked, count, LOOKS_MAX * count);
		for (uint32_t i = 0; i < count; i++)
			gale_tenant_close(tenants[i]);
		gale_budget_close(budget);
		assert_true(house_close(&h));
	}
}

static void terms_change_under_load(void **state)
{
	struct gale_terms terms = { .guarantee = 500, .cap = 600, .weight = 1 };
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 1000);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 9);
	assert_int_equal(flood(&h, a, 1) + flood(&h, b, 1), 2);
	assert_int_equal(flood(&h, a, 1000), 99);
	assert_int_equal(gale_tenant_set_terms(a, &terms), GALE_ERR_OK);
	assert_int_equal(flood(&h, a, 1000), 450);
	assert_int_equal(gale_budget_set_limit(budget, 2000), GALE_ERR_OK);
	test_clock_advance(&h.clock, GALE_MILLIS(32)); /* as long as it is remembered */
	assert_int_equal(flood(&h, a, 1000), 50);      /* to the cap */
	assert_int_equal(flood(&h, b, 2000), 1399);
	close_all(&h, budget, a, b);
}

static void what_is_closed_is_refused(void **state)
{
	struct gale_tenant *a, *b;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, a, 2) + flood(&h, b, 2), 4);
	gale_tenant_close(a);
	is_told(gale_tenant_ask(h.seat, a, 1), GALE_DENY, GALE_WHY_CLOSED);
	gale_budget_close(budget);
	is_told(gale_tenant_ask(h.seat, b, 1), GALE_DENY, GALE_WHY_CLOSED);
	gale_tenant_close(b);
	assert_true(house_close(&h));
}

struct forked {
	struct house *h;
	struct gale_tenant *tenant;
};

static int asks_in_child(void *arg)
{
	const struct forked *forked = arg;
	struct gale_answer answer = gale_tenant_ask(forked->h->seat, forked->tenant, 1);

	return answer.verdict == GALE_DENY && answer.why == GALE_WHY_FORKED ? 0 : 1;
}

/* Also what is in the purse, which the child has a copy of. */
static void a_child_is_refused_and_uses_nothing(void **state)
{
	struct gale_budget *budget;
	struct gale_tenant *a, *b;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, a, 2), 2);
	assert_true(counts_of(a).ahead > 0);
	assert_int_equal(child_run(asks_in_child, &(struct forked){ &h, a }), 0);
	assert_int_equal(flood(&h, a, 200), 98);
	close_all(&h, budget, a, b);
}

static void a_runtime_that_is_closed_refuses_its_tenants(void **state)
{
	struct gale_budget *budget;
	struct gale_tenant *a, *b;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 100);
	a = open_tenant(budget, 0, 1);
	b = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, a, 2), 2);
	gale_runtime_close(h.runtime);
	h.runtime = NULL;
	is_told(gale_tenant_ask(h.seat, a, 1), GALE_DENY, GALE_WHY_CLOSED);
	close_all(&h, budget, a, b);
}

/* ---- Threads ------------------------------------------------------------------------- */

#define THREADS 4
#define ASKS 30000
#define LIMIT 5000

struct crowd {
	struct gale_runtime *runtime;
	struct gale_tenant *tenants[THREADS];
};

struct asker {
	struct crowd *crowd;
	int number;
	uint64_t allowed[THREADS];
};

/* Each asks for its own tenant mostly, and for the next one now and then. */
static void *ask_and_ask(void *argument)
{
	struct asker *member = argument;
	struct gale_seat *seat;

	must(gale_join(member->crowd->runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < ASKS; i++) {
		int of = (member->number + (i % 8 == 0)) % THREADS;
		uint64_t cost = 1 + (uint64_t)i % 3;

		if (gale_tenant_ask(seat, member->crowd->tenants[of], cost).verdict ==
		    GALE_ALLOW)
			member->allowed[of] += cost;
	}
	gale_leave(seat);
	return NULL;
}

struct page {
	struct gale_sink sink;
	char text[65536];
	size_t length;
};

static bool hear(struct gale_sink *sink, const char *text, size_t bytes)
{
	struct page *page = (struct page *)sink;

	must(page->length + bytes < sizeof(page->text));
	memcpy(page->text + page->length, text, bytes);
	page->text[page->length += bytes] = '\0';
	return true;
}

/* Units that the metrics say all tenants have used. */
static uint64_t units_told(struct house *h)
{
	static const char line[] = "gale_budget_units_total{budget=\"crowd\"} ";
	static struct page page;
	const char *at;

	page = (struct page){ .sink = { hear } };
	must(gale_metrics_write(h->runtime, &page.sink) == GALE_ERR_OK);
	at = strstr(page.text, line);
	must(at);
	return strtoull(at + strlen(line), NULL, 10);
}

/* All is in one window, whose clock stands still: nothing is lost, doubled, or beyond the limit,
 * and each has by weight.  What metrics tell meanwhile never falls.  T1, T4 */
static void threads_get_what_there_is_and_no_more(void **state)
{
	struct asker members[THREADS] = { 0 };
	struct crowd crowd;
	struct gale_budget *budget;
	pthread_t threads[THREADS];
	uint64_t all = 0, told, last = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	crowd.runtime = h.runtime;
	budget = open_budget(&h, LIMIT);
	for (uint32_t i = 0; i < THREADS; i++) {
		crowd.tenants[i] = open_tenant(budget, 0, 1 + i);
		assert_int_equal(flood(&h, crowd.tenants[i], 1), 1);
	}
	for (int i = 0; i < THREADS; i++) {
		members[i] = (struct asker){ .crowd = &crowd, .number = i };
		must(pthread_create(&threads[i], NULL, ask_and_ask, &members[i]) == 0);
	}
	for (int i = 0; i < 20; i++, last = told) { /* while they ask */
		told = units_told(&h);
		assert_in_range(told, last, LIMIT);
	}
	for (int i = 0; i < THREADS; i++)
		must(pthread_join(threads[i], NULL) == 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		struct gale_tenant_counts counts = counts_of(crowd.tenants[i]);
		uint64_t got = 1;

		for (int j = 0; j < THREADS; j++)
			got += members[j].allowed[i];
		assert_int_equal(counts.used, got);
		assert_in_range(got, LIMIT / 10 * (1 + i) - 3,
		                LIMIT / 10 * (1 + i) + 3);
		all += got;
		gale_tenant_close(crowd.tenants[i]);
	}
	assert_in_range(all, LIMIT - 3, LIMIT);
	assert_int_equal(units_told(&h), all); /* of tenants that are closed */
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

#define MUCH 100003 /* no weight divides it */

/* Until each tenant is refused. */
static void *ask_for_all(void *argument)
{
	struct asker *member = argument;
	struct gale_seat *seat;
	bool any = true;

	must(gale_join(member->crowd->runtime, &seat) == GALE_ERR_OK);
	while (any) {
		any = false;
		for (int of = 0; of < THREADS; of++)
			for (int i = 0; i < 100; i++) {
				bool allowed =
				    gale_tenant_ask(seat, member->crowd->tenants[of], 1)
					.verdict == GALE_ALLOW;

				member->allowed[of] += allowed;
				any |= allowed;
			}
	}
	gale_leave(seat);
	return NULL;
}

/* In each window, of what tenants got for their weights, the least over the most: 0.999.  T4 */
static void the_ratio_of_threads_is_a_thousandth_at_most(void **state)
{
	struct gale_budget *budget;
	struct crowd crowd;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	crowd.runtime = h.runtime;
	budget = open_budget(&h, MUCH);
	for (uint32_t i = 0; i < THREADS; i++)
		crowd.tenants[i] = open_tenant(budget, 0, 1 + i);
	for (int window = 0; window < 3; window++) {
		struct asker members[THREADS] = { 0 };
		double least = MUCH, most = 0;
		pthread_t threads[THREADS];
		uint64_t all = THREADS;

		for (int i = 0; i < THREADS; i++) /* all are present */
			assert_int_equal(flood(&h, crowd.tenants[i], 1), 1);
		for (int i = 0; i < THREADS; i++) {
			members[i].crowd = &crowd;
			must(pthread_create(&threads[i], NULL, ask_for_all,
			                    &members[i]) == 0);
		}
		for (int i = 0; i < THREADS; i++)
			must(pthread_join(threads[i], NULL) == 0);
		for (int of = 0; of < THREADS; of++) {
			uint64_t got = 1;
			double part;

			for (int i = 0; i < THREADS; i++)
				got += members[i].allowed[of];
			part = (double)got / (1 + of);
			least = part < least ? part : least;
			most = part > most ? part : most;
			all += got - 1;
		}
		assert_int_equal(all, MUCH);
		assert_true(least >= 0.999 * most);
		test_clock_advance(&h.clock, WINDOW_US);
	}
	for (int i = 0; i < THREADS; i++)
		gale_tenant_close(crowd.tenants[i]);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

/* ---- Tenants of tenants -------------------------------------------------------------- */

static struct gale_tenant *open_below(struct gale_tenant *parent,
                                      struct gale_budget *budget, uint64_t guarantee,
                                      uint32_t weight)
{
	struct gale_terms terms = { .guarantee = guarantee,
		                    .weight = weight,
		                    .parent = parent };
	struct gale_tenant *tenant;

	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	return tenant;
}

/* An organisation of weight 3 with two users, and one of weight 1 with one. */
struct tree {
	struct house h;
	struct gale_budget *budget;
	struct gale_tenant *orgs[2], *users[3];
};

static void open_tree(struct tree *tree, uint64_t guarantee)
{
	house_open(&tree->h, &plan);
	tree->budget = open_budget(&tree->h, 800);
	tree->orgs[0] = open_tenant(tree->budget, guarantee, 3);
	tree->orgs[1] = open_tenant(tree->budget, 0, 1);
	tree->users[0] = open_below(tree->orgs[0], tree->budget, guarantee, 1);
	tree->users[1] = open_below(tree->orgs[0], tree->budget, 0, 2);
	tree->users[2] = open_below(tree->orgs[1], tree->budget, 0, 1);
}

static void close_tree(struct tree *tree)
{
	for (int i = 0; i < 3; i++)
		gale_tenant_close(tree->users[i]);
	gale_tenant_close(tree->orgs[0]);
	gale_tenant_close(tree->orgs[1]);
	gale_budget_close(tree->budget);
	assert_true(house_close(&tree->h));
}

static void each_level_is_parted_by_weight(void **state)
{
	uint64_t got[3] = { 0 };
	struct tree tree;

	(void)state;
	open_tree(&tree, 0);
	for (int i = 0; i < 3; i++)
		got[i] += flood(&tree.h, tree.users[i], 1);
	for (int i = 0; i < 1000; i++)
		for (int j = 0; j < 3; j++)
			got[j] += flood(&tree.h, tree.users[j], 1);
	assert_int_equal(got[0], 200);
	assert_int_equal(got[1], 400);
	assert_int_equal(got[2], 200);
	assert_int_equal(counts_of(tree.orgs[0]).share, 600);
	assert_int_equal(counts_of(tree.orgs[0]).used, 600);
	assert_int_equal(counts_of(tree.users[1]).share, 400);
	assert_int_equal(counts_of(tree.users[1]).allowed, 400);
	test_clock_advance(&tree.h.clock, WINDOW_US); /* who is alone has all */
	assert_int_equal(flood(&tree.h, tree.users[0], 2000), 800);
	close_tree(&tree);
}

/* Another tenant comes, and users find only with their next asks that their organisation has less: also
 * with one beside a purse.  TENANT-2, TENANT-10 */
static void an_ask_above_purses_finds_that_shares_have_fallen(void **state)
{
	struct gale_tenant *org, *users[2], *late;
	struct gale_budget *budget;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, 1600);
	org = open_tenant(budget, 0, 1);
	users[0] = open_below(org, budget, 0, 1);
	users[1] = open_below(org, budget, 0, 1);
	late = open_tenant(budget, 0, 1);
	assert_int_equal(flood(&h, users[0], 1) + flood(&h, users[1], 1), 2);
	is_left_after(&h, users[0], 250, 549, 200);
	assert_int_equal(flood(&h, late, 1), 1);
	is_told(gale_tenant_ask(h.seat, users[1], 150), GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(counts_of(users[0]).ahead, 0);
	for (int i = 0; i < 2; i++)
		gale_tenant_close(users[i]);
	gale_tenant_close(org);
	close_all(&h, budget, late, NULL);
}

/* Its own organisation has used its share, and then others come.  TREE-3 */
static void a_users_guarantee_is_there_whatever_others_ask_for(void **state)
{
	struct tree tree;

	(void)state;
	open_tree(&tree, 100);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(flood(&tree.h, tree.users[0], 1), 1);
		(void)flood(&tree.h, tree.users[1], 100);
		if (i > 10)
			(void)flood(&tree.h, tree.users[2], 100);
		test_clock_advance(&tree.h.clock, WINDOW_US / 110);
	}
	close_tree(&tree);
}

/* No ask of theirs takes the lock.  TREE-4 */
static void users_who_live_from_their_purses_keep_their_organisation(void **state)
{
	struct tree tree;

	(void)state;
	open_tree(&tree, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(flood(&tree.h, tree.users[i], 1), 1);
	for (int i = 0; i < 6; i++) {
		test_clock_advance(&tree.h.clock, WINDOW_US / 10);
		assert_int_equal(flood(&tree.h, tree.users[0], 1), 1);
		(void)flood(&tree.h, tree.users[2], 1000);
	}
	assert_int_equal(counts_of(tree.users[2]).used, 200);
	assert_true(counts_of(tree.orgs[0]).share > 0);
	close_tree(&tree);
}

/* TENANT-5 */
static void an_organisation_that_is_closed_takes_its_users_along(void **state)
{
	struct gale_terms all = { .guarantee = 800, .weight = 1 };
	struct tree tree;

	(void)state;
	open_tree(&tree, 100);
	assert_int_equal(flood(&tree.h, tree.users[0], 1), 1);
	is_told(gale_tenant_ask(tree.h.seat, tree.orgs[0], 1), GALE_DENY,
	        GALE_WHY_BAD_ASK);
	gale_tenant_close(tree.orgs[0]);
	is_told(gale_tenant_ask(tree.h.seat, tree.users[0], 1), GALE_DENY,
	        GALE_WHY_CLOSED);
	assert_int_equal(gale_tenant_set_terms(tree.orgs[1], &all), GALE_ERR_OK);
	assert_int_equal(flood(&tree.h, tree.users[2], 1000), 799);
	gale_tenant_close(tree.users[0]);
	tree.users[0] = open_tenant(tree.budget, 0, 1);
	tree.orgs[0] = open_tenant(tree.budget, 0, 1);
	close_tree(&tree);
}

static void a_parent_that_cannot_be_is_refused(void **state)
{
	struct gale_terms terms = { .guarantee = 60, .weight = 1 };
	struct gale_tenant *deepest, *tenant, *opened[15];
	struct gale_budget *other;
	struct tree tree;

	(void)state;
	open_tree(&tree, 100);
	other = open_budget(&tree.h, 800);
	terms.parent = tree.orgs[0]; /* its guarantee is its user's */
	assert_int_equal(gale_tenant_open(tree.budget, &terms, &tenant),
	                 GALE_ERR_GUARANTEE);
	assert_int_equal(gale_tenant_open(other, &terms, &tenant), GALE_ERR_PARENT);
	assert_int_equal(gale_tenant_set_terms(tree.users[2], &terms), GALE_ERR_PARENT);
	terms = (struct gale_terms){ .guarantee = 99, .weight = 1 };
	assert_int_equal(gale_tenant_set_terms(tree.orgs[0], &terms),
	                 GALE_ERR_GUARANTEE);
	deepest = tree.users[2];
	for (int i = 0; i < 14; i++)
		deepest = opened[i] = open_below(deepest, tree.budget, 0, 1);
	assert_int_equal(flood(&tree.h, deepest, 1000), 800);
	terms = (struct gale_terms){ .weight = 1, .parent = deepest };
	assert_int_equal(gale_tenant_open(tree.budget, &terms, &tenant),
	                 GALE_ERR_DEPTH);
	for (int i = 14; i-- > 0;)
		gale_tenant_close(opened[i]);
	gale_budget_close(other);
	close_tree(&tree);
}

/* More than there was room for at first; and from time to time one comes or goes. */
static void threads_share_a_tree(void **state)
{
	struct asker members[THREADS] = { 0 };
	struct gale_tenant *orgs[2], *others[20];
	struct gale_budget *budget;
	pthread_t threads[THREADS];
	struct crowd crowd;
	uint64_t all = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	crowd.runtime = h.runtime;
	budget = open_budget(&h, LIMIT);
	for (uint32_t i = 0; i < 2; i++)
		orgs[i] = open_tenant(budget, 0, 1 + 2 * i);
	for (uint32_t i = 0; i < THREADS; i++) {
		crowd.tenants[i] = open_below(orgs[i / 2], budget, 0, 1);
		assert_int_equal(flood(&h, crowd.tenants[i], 1), 1);
	}
	for (int i = 0; i < THREADS; i++) {
		members[i] = (struct asker){ .crowd = &crowd, .number = i };
		must(pthread_create(&threads[i], NULL, ask_and_ask, &members[i]) == 0);
	}
	for (int i = 0; i < 20; i++)
		others[i] = open_below(orgs[i % 2], budget, 0, 1);
	for (int i = 0; i < 20; i++)
		gale_tenant_close(others[i]);
	for (int i = 0; i < THREADS; i++)
		must(pthread_join(threads[i], NULL) == 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		uint64_t ideal = LIMIT / 8 * (i < 2 ? 1 : 3), got = 1;

		for (int j = 0; j < THREADS; j++)
			got += members[j].allowed[i];
		assert_int_equal(counts_of(crowd.tenants[i]).used, got);
		assert_int_equal(counts_of(crowd.tenants[i]).allowed, got);
		assert_in_range(got, ideal - 6, ideal + 6);
		all += got;
		gale_tenant_close(crowd.tenants[i]);
	}
	assert_in_range(all, LIMIT - 3 * THREADS, LIMIT);
	gale_tenant_close(orgs[0]);
	gale_tenant_close(orgs[1]);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_to_one),
		cmocka_unit_test(an_answer_says_what_a_tenant_has),
		cmocka_unit_test(a_guarantee_is_there_whenever_it_is_asked_for),
		cmocka_unit_test(who_has_stopped_asking_reserves_nothing),
		cmocka_unit_test(who_spends_from_its_purse_is_present),
		cmocka_unit_test(who_is_refused_goes_on_being_present),
		cmocka_unit_test(who_has_used_its_share_gets_what_another_leaves),
		cmocka_unit_test(no_purse_reaches_into_the_next_window),
		cmocka_unit_test(a_purse_takes_nothing_from_others),
		cmocka_unit_test(an_ask_above_purses_leaves_the_purse_alone),
		cmocka_unit_test(an_ask_above_purses_leaves_none_of_the_window_before),
		cmocka_unit_test(a_tenant_that_is_closed_leaves_what_it_has_used),
		cmocka_unit_test(tenants_by_the_million_come_and_go),
		cmocka_unit_test(a_crowd_is_present_at_once),
		cmocka_unit_test(who_comes_to_a_used_share_looks_at_few_tenants),
		cmocka_unit_test(terms_change_under_load),
		cmocka_unit_test(what_is_closed_is_refused),
		cmocka_unit_test(a_child_is_refused_and_uses_nothing),
		cmocka_unit_test(a_runtime_that_is_closed_refuses_its_tenants),
		cmocka_unit_test(threads_get_what_there_is_and_no_more),
		cmocka_unit_test(the_ratio_of_threads_is_a_thousandth_at_most),
		cmocka_unit_test(each_level_is_parted_by_weight),
		cmocka_unit_test(an_ask_above_purses_finds_that_shares_have_fallen),
		cmocka_unit_test(a_users_guarantee_is_there_whatever_others_ask_for),
		cmocka_unit_test(
		    users_who_live_from_their_purses_keep_their_organisation),
		cmocka_unit_test(an_organisation_that_is_closed_takes_its_users_along),
		cmocka_unit_test(a_parent_that_cannot_be_is_refused),
		cmocka_unit_test(threads_share_a_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
