/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_holds_lot_test.c -- tenants whose calls' costs are known afterwards, by lot and by threads.
 *
 * Each seed is a budget.  Threads hold a bound for a call, let it grow, and commit what it has cost,
 * which is random; each has a call of each tenant running at most.  In the first window all tenants ask
 * all the time, and nothing runs at its end.  In the later ones the first tenant pauses by lot, and calls
 * outlive their windows.  In every second seed a call may cost more than it held.  The clock stands still
 * but between the rounds of a window.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/tenants.h>

#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_SECONDS(1)
#define ROUNDS 16 /* of a window; a pause of two makes a tenant absent */
#define WINDOWS 4
#define TENANTS 4
#define THREADS 3
#define MAIN THREADS /* the thread of the test; it has one call at a time */
#define CALLERS (THREADS + 1)
#define CALLS 150 /* that a thread begins, lets grow or ends in a round */
#define EXCESS 6  /* a call costs so much more than it held, at most */
#define SEEDS LONG_OR_BRIEF(400, 20)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

struct call {
	struct gale_tenant_held held; /* no units: it does not run */
	int window;                   /* that it began in */
};

/* The units that a thread has committed; that thread alone writes it. */
struct books {
	uint64_t committed[WINDOWS][TENANTS];
	uint64_t excess[WINDOWS]; /* of it: what was not held */
};

static struct scene {
	struct house house;
	struct gale_budget *budget;
	struct gale_tenant *tenants[TENANTS];
	struct gale_seat *seats[CALLERS];
	uint64_t limit, weights[TENANTS], sum;
	uint64_t dearest; /* what a call may hold */
	bool exceeds;     /* calls cost more than they hold */
	int window;
	bool pauses; /* in this round, the first tenant */
	struct chance chance[CALLERS];
	struct call calls[CALLERS][TENANTS];
	struct books books[CALLERS];
} s;

static void open_scene(uint64_t seed)
{
	struct gale_budget_config config = { .window_us = WINDOW_US };
	struct chance c = { seed };

	memset(&s, 0, sizeof(s));
	s.limit = config.limit = chance_between(&c, 500, 3000);
	s.dearest = chance_between(&c, 1, 30);
	s.exceeds = seed % 2;
	house_open(&s.house, &plan);
	must(gale_budget_open(s.house.runtime, &config, &s.budget) == GALE_ERR_OK);
	for (size_t i = 0; i < TENANTS; i++) {
		struct gale_terms terms = { .weight =
			                        (uint32_t)chance_between(&c, 1, 9) };

		s.weights[i] = terms.weight;
		s.sum += terms.weight;
		must(gale_tenant_open(s.budget, &terms, &s.tenants[i]) == GALE_ERR_OK);
	}
	for (size_t i = 0; i < CALLERS; i++)
		s.chance[i].state = chance_next(&c);
	s.seats[MAIN] = s.house.seat;
}

static void close_scene(void)
{
	for (size_t i = 0; i < TENANTS; i++)
		gale_tenant_close(s.tenants[i]);
	gale_budget_close(s.budget);
	assert_true(house_close(&s.house));
}

/* ---- Calls --------------------------------------------------------------------------- */

static bool begin_call(unsigned who, size_t tenant, uint64_t bound)
{
	struct call *call = &s.calls[who][tenant];

	call->window = s.window;
	return gale_tenant_hold(s.seats[who], s.tenants[tenant], bound, &call->held, 0)
	           .verdict == GALE_ALLOW;
}

/* It holds the dearest bound at most.  One that has outlived its window does not grow: it would have
 * units of two. */
static void grow_call(unsigned who, size_t tenant)
{
	struct call *call = &s.calls[who][tenant];

	if (call->window == s.window && call->held.units < s.dearest)
		(void)gale_tenant_grow(
		    s.seats[who], &call->held,
		    chance_between(&s.chance[who], 1, s.dearest - call->held.units), 0);
}

static void end_call(unsigned who, size_t tenant)
{
	struct call *call = &s.calls[who][tenant];
	struct books *books = &s.books[who];
	uint64_t held = call->held.units, cost;

	cost = chance_between(&s.chance[who], 0, held + (s.exceeds ? EXCESS : 0));
	must(gale_tenant_commit(s.seats[who], &call->held, cost) == GALE_ERR_OK);
	must(gale_tenant_commit(s.seats[who], &call->held, cost) == GALE_ERR_HOLD);
	books->committed[call->window][tenant] += cost;
	books->excess[call->window] += cost > held ? cost - held : 0;
}

static void do_something(unsigned who)
{
	struct chance *c = &s.chance[who];
	size_t tenant = chance_below(c, TENANTS);

	if (s.calls[who][tenant].held.units == 0) {
		if (tenant > 0 || !s.pauses)
			(void)begin_call(who, tenant, chance_between(c, 1, s.dearest));
	} else if (chance_one_in(c, 3)) {
		grow_call(who, tenant);
	} else if (chance_one_in(c, 2)) {
		end_call(who, tenant);
	}
}

static void work(void *arg, unsigned who)
{
	(void)arg;
	must(gale_join(s.house.runtime, &s.seats[who]) == GALE_ERR_OK);
	for (int i = 0; i < CALLS; i++)
		do_something(who);
	gale_leave(s.seats[who]);
}

static void end_all(void)
{
	for (unsigned who = 0; who < THREADS; who++) {
		s.seats[who] = s.house.seat;
		for (size_t i = 0; i < TENANTS; i++)
			if (s.calls[who][i].held.units > 0)
				end_call(who, i);
	}
}

/* One call after the other, until one of the dearest bound is refused to each. */
static void use_up(void)
{
	bool any;

	do {
		any = false;
		for (size_t i = s.pauses; i < TENANTS; i++) {
			if (!begin_call(MAIN, i, s.dearest))
				continue;
			end_call(MAIN, i);
			any = true;
		}
	} while (any);
}

/* Calls run on when the window ends, if it is not the first. */
static void spend_window(uint32_t from, uint32_t to)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		s.pauses = round >= from && round < to;
		crew_run(THREADS, work, NULL);
		if (round < ROUNDS - 1)
			test_clock_advance(&s.house.clock, WINDOW_US / ROUNDS);
	}
	if (s.window == 0)
		end_all();
	test_clock_advance(&s.house.clock,
	                   WINDOW_US / ROUNDS - 1); /* no denial is left */
	use_up();
}

/* ---- What they come to --------------------------------------------------------------- */

static uint64_t committed(int window, size_t tenant)
{
	uint64_t sum = 0;

	for (size_t who = 0; who < CALLERS; who++)
		sum += s.books[who].committed[window][tenant];
	return sum;
}

static uint64_t excess_of(int window)
{
	uint64_t sum = 0;

	for (size_t who = 0; who < CALLERS; who++)
		sum += s.books[who].excess[window];
	return sum;
}

/* Units of calls that run of a tenant at once, beyond those they hold. */
static uint64_t running_excess(void)
{
	return s.exceeds ? THREADS * EXCESS : 0;
}

/* T4, the running cost being q: |a/v - b/w| <= q/v + q/w, so at most 2 q over the least weight. */
static void check_fairness(uint64_t seed)
{
	uint64_t q = s.dearest + running_excess();

	for (size_t i = 0; i < TENANTS; i++)
		for (size_t j = 0; j < TENANTS; j++) {
			uint64_t a = committed(0, i), b = committed(0, j);
			uint64_t v = s.weights[i], w = s.weights[j];

			if (a * w > b * v + q * (v + w))
				fail_msg("seed %d: %d for %d, %d for %d, calls of %d",
				         (int)seed, (int)a, (int)v, (int)b, (int)w,
				         (int)q);
		}
}

/* Nothing of what it has missed is made up for: it has its part, but for a call that exceeds it and one
 * that was owed. */
static void check_pause(uint64_t seed, int window)
{
	uint64_t most =
	    s.limit * s.weights[0] / s.sum + 2 * s.dearest + running_excess();

	if (committed(window, 0) > most)
		fail_msg("seed %d, window %d: %d, more than %d", (int)seed, window,
		         (int)committed(window, 0), (int)most);
}

/* T1, of all that has ended: a call of a window is ended in the next. */
static void check_limit(uint64_t seed, int window)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < TENANTS; i++)
		sum += committed(window, i);
	if (sum == 0 || sum > s.limit + excess_of(window))
		fail_msg("seed %d, window %d: %d of %d, and %d that were not held",
		         (int)seed, window, (int)sum, (int)s.limit,
		         (int)excess_of(window));
}

/* As much is used as was committed, as far as it was held. */
static void check_counts(void)
{
	uint64_t used = 0, sum = 0;

	for (size_t i = 0; i < TENANTS; i++) {
		struct gale_tenant_counts counts;

		must(gale_tenant_stats(s.tenants[i], &counts) == GALE_ERR_OK);
		used += counts.used;
		sum += committed(0, i);
	}
	assert_in_range(used, sum - excess_of(0), s.limit);
	if (!s.exceeds)
		assert_int_equal(used, sum);
}

static void play(uint64_t seed)
{
	open_scene(seed);
	for (size_t i = 0; i < TENANTS; i++) { /* all are present */
		must(begin_call(MAIN, i, 1));
		end_call(MAIN, i);
	}
	spend_window(0, 0);
	check_counts();
	check_fairness(seed);
	for (s.window = 1; s.window < WINDOWS; s.window++) {
		uint32_t from = (uint32_t)chance_below(&s.chance[MAIN], ROUNDS + 1);
		uint32_t to = from + (uint32_t)chance_below(&s.chance[MAIN], ROUNDS);

		test_clock_advance(&s.house.clock, 1);
		spend_window(from, to);
	}
	s.window--;
	end_all();
	for (int window = 0; window < WINDOWS; window++) {
		check_limit(seed, window);
		check_pause(seed, window);
	}
	close_scene();
}

static void costs_that_are_known_afterwards_are_fair(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		play(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_that_are_known_afterwards_are_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
