/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants_lot_test.c -- tenants whose terms change by lot while threads ask for them.
 *
 * Each seed is a budget.  In its first window threads ask at random costs, and another one changes
 * weights, guarantees and caps meanwhile.  In the next the terms stay as they are then, and what
 * they promise is there.  The clock stands still unless the test moves it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/tenants.h>

#include "runtime/atomic.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)
#define REMEMBERED_US GALE_MILLIS(32) /* a denial, at most */
#define TENANTS 5
#define ASKERS 3
#define COST_MOST 4
#define SEEDS LONG_OR_BRIEF(400, 20)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

static struct scene {
	struct house house;
	struct chance chance;
	struct gale_budget *budget;
	uint64_t limit;
	struct gale_tenant *tenants[TENANTS];
	struct gale_terms terms[TENANTS]; /* as they are now */
	size_t shy;                       /* is asked for by nobody; TENANTS: none is */
	bool weights_only;
	bool changes; /* while the others ask */
	uint64_t seeds[ASKERS + 1];
	uint64_t allowed[ASKERS][TENANTS]; /* units, in this window */
	_Atomic uint32_t asking;
} s;

static void draw_terms(struct chance *c, size_t i)
{
	struct gale_terms *terms = &s.terms[i];

	*terms = (struct gale_terms){ .weight = (uint32_t)chance_between(c, 1, 9) };
	if (s.weights_only)
		return;
	terms->guarantee = chance_below(c, s.limit / TENANTS);
	if (chance_one_in(c, 3))
		terms->cap = chance_between(c, terms->guarantee + 1, s.limit);
}

static void open_scene(uint64_t seed)
{
	struct gale_budget_config config = { .window_us = WINDOW_US };

	memset(&s, 0, sizeof(s));
	s.chance.state = seed;
	s.weights_only = seed % 2;
	s.limit = config.limit = chance_between(&s.chance, 500, 3000);
	house_open(&s.house, &plan);
	must(gale_budget_open(s.house.runtime, &config, &s.budget) == GALE_ERR_OK);
	for (size_t i = 0; i < TENANTS; i++) {
		draw_terms(&s.chance, i);
		must(gale_tenant_open(s.budget, &s.terms[i], &s.tenants[i]) ==
		     GALE_ERR_OK);
	}
}

static void close_scene(void)
{
	for (size_t i = 0; i < TENANTS; i++)
		gale_tenant_close(s.tenants[i]);
	gale_budget_close(s.budget);
	assert_true(house_close(&s.house));
}

/* Until the others have ended. */
static void change(struct chance *c)
{
	while (s.changes && load_acquire(&s.asking) > 0) {
		size_t i = chance_below(c, TENANTS);

		draw_terms(c, i);
		must(gale_tenant_set_terms(s.tenants[i], &s.terms[i]) == GALE_ERR_OK);
	}
}

/* Twice the limit for each tenant, or about that. */
static void ask(struct chance *c, uint64_t *allowed)
{
	struct gale_seat *seat;

	must(gale_join(s.house.runtime, &seat) == GALE_ERR_OK);
	for (uint64_t i = 0; i < TENANTS * s.limit / ASKERS; i++) {
		size_t which = chance_below(c, TENANTS);
		uint64_t cost = chance_between(c, 1, COST_MOST);

		if (which != s.shy &&
		    gale_tenant_ask(seat, s.tenants[which], cost).verdict == GALE_ALLOW)
			allowed[which] += cost;
	}
	gale_leave(seat);
}

static void work(void *arg, unsigned who)
{
	struct chance c = { s.seeds[who] };

	(void)arg;
	if (who == ASKERS) {
		change(&c);
		return;
	}
	ask(&c, s.allowed[who]);
	(void)sub_release(&s.asking, 1); /* ended */
}

static uint64_t used_by(size_t i)
{
	struct gale_tenant_counts counts;

	must(gale_tenant_stats(s.tenants[i], &counts) == GALE_ERR_OK);
	return counts.used;
}

/* Units of so many asks for one. */
static uint64_t flood(size_t i, uint64_t asks)
{
	uint64_t allowed = 0;

	for (; asks > 0; asks--)
		allowed += gale_tenant_ask(s.house.seat, s.tenants[i], 1).verdict ==
		           GALE_ALLOW;
	return allowed;
}

/* All tenants are present, and then threads ask for them.  T1 */
static void spend_window(void)
{
	uint64_t all = 0;

	test_clock_advance(&s.house.clock, WINDOW_US);
	memset(s.allowed, 0, sizeof(s.allowed));
	for (size_t i = 0; i < TENANTS; i++)
		s.allowed[0][i] = flood(i, 1);
	for (size_t i = 0; i <= ASKERS; i++)
		s.seeds[i] = chance_next(&s.chance);
	store_relaxed(&s.asking, ASKERS);
	crew_run(ASKERS + 1, work, NULL);
	for (size_t i = 0; i < TENANTS; i++) {
		uint64_t got = 0;

		for (size_t who = 0; who < ASKERS; who++)
			got += s.allowed[who][i];
		assert_int_equal(used_by(i), got);
		all += got;
	}
	assert_in_range(all, 1, s.limit);
}

/* T2: who asked once finds all of its guarantee, whatever the others have asked for since. */
static void check_guarantee(void)
{
	uint64_t due = s.terms[s.shy].guarantee;

	if (due > 1)
		assert_int_equal(flood(s.shy, due - 1), due - 1);
}

/* T4: each has by weight, within its dearest call; what the window before owes it is as much. */
static void check_weights(uint64_t seed)
{
	for (size_t i = 0; i < TENANTS; i++)
		for (size_t j = 0; j < TENANTS; j++) {
			double a = (double)used_by(i) / s.terms[i].weight;
			double b = (double)used_by(j) / s.terms[j].weight;
			double bound = (double)COST_MOST / s.terms[i].weight +
			               (double)COST_MOST / s.terms[j].weight;

			if (a - b > 2 * bound)
				fail_msg("seed %llu: %.1f and %.1f for each weight",
				         (unsigned long long)seed, a, b);
		}
}

/* T3: nothing is left, but by caps. */
static void check_use(void)
{
	uint64_t most = 0, all = 0;

	test_clock_advance(&s.house.clock, REMEMBERED_US);
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < TENANTS; i++)
			(void)flood(i, s.limit);
	for (size_t i = 0; i < TENANTS; i++) {
		most += s.terms[i].cap > 0 ? s.terms[i].cap : s.limit;
		all += used_by(i);
	}
	assert_int_equal(all, most < s.limit ? most : s.limit);
}

static void terms_by_lot_hold_while_threads_ask(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_scene(seed);
		for (int pair = 0; pair < 2; pair++) {
			s.shy = TENANTS;
			s.changes = true;
			spend_window();
			s.changes = false;
			if (!s.weights_only)
				s.shy = chance_below(&s.chance, TENANTS);
			spend_window();
			if (s.weights_only)
				check_weights(seed);
			else
				check_guarantee();
			check_use();
		}
		close_scene();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_by_lot_hold_while_threads_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
