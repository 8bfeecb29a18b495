/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_crowd_test.c -- a budget before tenants that are many, ask for too much, or know late.
 *
 * By lot, each from a seed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/escrow.h"
#include "tests/support/length.h"

#define ROOM 8
#define ROUNDS 16 /* of a window */
#define PERIOD_US 1000000
#define RELEASE_US PERIOD_US
#define SEEDS LONG_OR_BRIEF(2000, 300)

static uint64_t lot(uint64_t *seed, uint64_t below)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- A crowd ------------------------------------------------------------------------- */

struct crowd {
	struct escrow escrow;
	struct escrow_tenant tenants[ROOM];
	uint32_t count;
	uint64_t weight[ROOM], weights;
	uint64_t used[ROOM], running[ROOM]; /* of the window; running: a bound */
	uint64_t now_us;
};

static void open_crowd(struct crowd *crowd, uint64_t limit, uint64_t *seed)
{
	struct escrow_settings set = { .limit = limit,
		                       .period_us = PERIOD_US,
		                       .release_us = RELEASE_US };

	*crowd = (struct crowd){ .count = 2 + (uint32_t)lot(seed, ROOM - 1),
		                 .now_us = UINT64_C(1700000000) * PERIOD_US };
	escrow_init(&crowd->escrow, &set, crowd->tenants, ROOM);
	for (uint32_t i = 0; i < crowd->count; i++) {
		struct escrow_terms terms = { .cap = GALE_UNITS_MAX,
			                      .weight = 1 + (uint32_t)lot(seed, 9) };
		uint32_t number;

		assert_int_equal(escrow_add(&crowd->escrow, &terms, &number),
		                 FAIR_GOOD);
		crowd->weight[i] = terms.weight;
		crowd->weights += terms.weight;
	}
}

static bool ask(struct crowd *crowd, uint32_t number, uint64_t cost)
{
	escrow_pass(&crowd->escrow, crowd->now_us);
	return escrow_ask(&crowd->escrow, number, cost, crowd->now_us).admitted;
}

/* Of all of the limit, rounded down. */
static uint64_t part_of(const struct crowd *crowd, uint32_t number)
{
	return crowd->escrow.set.limit * crowd->weight[number] / crowd->weights;
}

/* ---- Costs that are known afterwards ------------------------------------------------- */

/* A call asks for its bound, and gives the rest back when it ends; one runs of each tenant. */
static void end_call(struct crowd *crowd, uint32_t n, uint64_t *seed)
{
	uint64_t cost = 1 + lot(seed, crowd->running[n]);

	escrow_give(&crowd->escrow, n, crowd->running[n] - cost, crowd->escrow.window);
	crowd->used[n] += cost;
	crowd->running[n] = 0;
}

static bool begin_call(struct crowd *crowd, uint32_t n, uint64_t bound)
{
	if (ask(crowd, n, bound))
		crowd->running[n] = bound;
	return crowd->running[n] > 0;
}

/* Calls that end go on until a call of the dearest bound is refused to each from first on. */
static void use_up(struct crowd *crowd, uint32_t first, uint64_t dearest,
                   uint64_t *seed)
{
	bool any;

	do {
		any = false;
		for (uint32_t n = 0; n < crowd->count; n++) {
			if (crowd->running[n] > 0)
				end_call(crowd, n, seed);
			if (n >= first)
				any |= begin_call(crowd, n, dearest);
		}
	} while (any);
}

static void assert_fair(const struct crowd *crowd, uint64_t dearest, uint64_t seed)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		for (uint32_t j = 0; j < crowd->count; j++) {
			uint64_t wi = crowd->weight[i], wj = crowd->weight[j];

			if (crowd->used[i] * wj >
			    crowd->used[j] * wi + dearest * (wi + wj))
				fail_msg(
				    "seed %lu: %lu for %lu, %lu for %lu",
				    (unsigned long)seed, (unsigned long)crowd->used[i],
				    (unsigned long)wi, (unsigned long)crowd->used[j],
				    (unsigned long)wj);
		}
}

/* T1 with what runs; and T4: |a/v - b/w| <= q/v + q/w, so at most 2 q over the least weight. */
static void what_is_known_afterwards_is_fair(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < SEEDS; number++) {
		uint64_t seed = number, dearest = 1 + lot(&seed, 30), sum = 0;
		struct crowd crowd;

		open_crowd(&crowd, 400 + lot(&seed, 600), &seed);
		for (uint32_t n = 0; n < crowd.count; n++)
			(void)begin_call(&crowd, n, 1);
		for (int i = 0; i < 60 * ROUNDS; i++) {
			uint32_t n = (uint32_t)lot(&seed, crowd.count);

			if (crowd.running[n] > 0)
				end_call(&crowd, n, &seed);
			else
				(void)begin_call(&crowd, n, 1 + lot(&seed, dearest));
			assert_true(crowd.escrow.used <= crowd.escrow.set.limit);
		}
		use_up(&crowd, 0, dearest, &seed);
		for (uint32_t n = 0; n < crowd.count; n++)
			sum += crowd.used[n];
		assert_int_equal(sum, crowd.escrow.used);
		assert_fair(&crowd, dearest, number);
	}
}

/* ---- Who pauses ------------------------------------------------------------------------ */

#define WINDOWS 6

/* Rounds of a window in which the first tenant does not ask. */
struct pause {
	uint32_t from, to;
};

static void draw_pauses(struct pause *ret_pauses, uint64_t *seed)
{
	for (int i = 0; i < WINDOWS; i++) {
		uint32_t from = (uint32_t)lot(seed, ROUNDS + 1);

		ret_pauses[i] =
		    (struct pause){ from, from + (uint32_t)lot(seed, ROUNDS) };
	}
}

/* All others want all there is, at costs that are known afterwards. */
static void run_window(struct crowd *crowd, const struct pause *pause, uint64_t dearest,
                       uint64_t *seed)
{
	memset(crowd->used, 0, sizeof(crowd->used));
	for (uint32_t round = 0; round < ROUNDS; round++) {
		bool asks = round < pause->from || round >= pause->to;

		for (uint64_t i = 0; i < 40 * crowd->count; i++) {
			uint32_t n = (uint32_t)lot(seed, crowd->count);

			if (crowd->running[n] > 0)
				end_call(crowd, n, seed);
			else if (n > 0 || asks)
				(void)begin_call(crowd, n, 1 + lot(seed, dearest));
			assert_true(crowd->escrow.used <= crowd->escrow.set.limit);
		}
		if (round == ROUNDS - 1)
			use_up(crowd, asks ? 0 : 1, dearest, seed);
		crowd->now_us += PERIOD_US / ROUNDS;
	}
}

/* Of what it has missed nothing is made up for: in no window it has more than its part, but for a call that
 * exceeds it and one that was owed.  T4 */
static void who_comes_back_gains_nothing_by_its_pause(void **state)
{
	uint64_t got = 0, parts = 0;

	(void)state;
	for (uint64_t number = 0; number < SEEDS; number++) {
		uint64_t seed = number, dearest = 1 + lot(&seed, 30), most;
		struct pause pauses[WINDOWS];
		struct crowd crowd;

		open_crowd(&crowd, 400 + lot(&seed, 600), &seed);
		crowd.escrow.set.release_us = PERIOD_US * (1 + lot(&seed, 8)) / 8;
		draw_pauses(pauses, &seed);
		for (uint32_t n = 0; n < crowd.count; n++)
			(void)begin_call(&crowd, n, 1); /* all are present */
		most = part_of(&crowd, 0) + 2 * dearest;
		for (int i = 0; i < WINDOWS; i++) {
			run_window(&crowd, &pauses[i], dearest, &seed);
			got += crowd.used[0];
			parts += part_of(&crowd, 0);
			if (crowd.used[0] > most)
				fail_msg("seed %lu, window %d: %lu, more than %lu",
				         (unsigned long)number, i,
				         (unsigned long)crowd.used[0],
				         (unsigned long)most);
		}
	}
	print_message("has %lu %% of its parts\n", (unsigned long)(got * 100 / parts));
}

/* ---- Who asks for more than it needs --------------------------------------------------- */

/* All through a window, as much as each needs until then; greedy asks for all there is. */
static void run(struct crowd *crowd, const uint64_t *needs, uint32_t greedy)
{
	for (uint32_t n = 0; n < crowd->count; n++)
		crowd->used[n] += ask(crowd, n, 1); /* all are present */
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (uint32_t n = 0; n < crowd->count; n++) {
			uint64_t until = needs[n] * round / ROUNDS;

			if (n == greedy)
				until = crowd->escrow.set.limit;
			while (crowd->used[n] < until && ask(crowd, n, 1))
				crowd->used[n]++;
		}
		crowd->now_us += PERIOD_US / ROUNDS - 1;
	}
}

/* The others have what they need up to their parts, whatever one asks for: it gains at most what they
 * would leave, and an honest one has that, too, if it needs it.  T2 */
static void who_asks_for_too_much_takes_nothing_of_what_others_need(void **state)
{
	uint64_t gained = 0, most = 0, limits = 0;

	(void)state;
	for (uint64_t number = 0; number < SEEDS; number++) {
		uint64_t seed = number, limit = 500 + lot(&seed, 500), needs[ROOM];
		struct crowd honest, crowd;
		uint64_t gain;

		open_crowd(&honest, limit, &seed);
		for (uint32_t n = 0; n < honest.count; n++)
			needs[n] = 1 + lot(&seed, 2 * part_of(&honest, n) + 2);
		crowd = honest;
		crowd.escrow.tenants = crowd.tenants;
		honest.escrow.tenants = honest.tenants;
		run(&honest, needs, /* greedy= */ ROOM);
		run(&crowd, needs, /* greedy= */ 0);
		for (uint32_t n = 1; n < crowd.count; n++)
			assert_true(crowd.used[n] + 1 >=
			            lesser(needs[n], part_of(&crowd, n)));
		gain = crowd.used[0] - lesser(crowd.used[0], honest.used[0]);
		gained += gain;
		limits += limit;
		if (gain * 100 / limit > most)
			most = gain * 100 / limit;
	}
	print_message("gains %lu %% of the limit, %lu %% at most\n",
	              (unsigned long)(gained * 100 / limits), (unsigned long)most);
}

/* ---- Many ------------------------------------------------------------------------------ */

#define CROWD LONG_OR_BRIEF(ESCROW_TENANTS_MAX, 1 << 14)
#define FEW UINT64_C(10)

/* As many as there may be are present at once: no more memory, and the limit holds.  T1 */
static void tenants_by_the_million_share_ten_units(void **state)
{
	struct escrow_settings set = { .limit = FEW,
		                       .period_us = PERIOD_US,
		                       .release_us = 2 * PERIOD_US };
	struct escrow_tenant *tenants = calloc(CROWD, sizeof(*tenants));
	struct escrow_terms terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct escrow escrow;
	uint64_t walked;
	uint32_t number;

	(void)state;
	assert_non_null(tenants);
	escrow_init(&escrow, &set, tenants, CROWD);
	for (uint32_t i = 0; i < CROWD; i++)
		assert_int_equal(escrow_add(&escrow, &terms, &number), FAIR_GOOD);
	assert_int_equal(escrow_add(&escrow, &terms, &number), FAIR_FULL);
	for (uint64_t window = 0; window < 2; window++) {
		uint64_t got = 0;

		for (uint32_t i = 0; i < CROWD; i++)
			got += escrow_ask(&escrow, i, 1, window * PERIOD_US).admitted;
		assert_int_equal(got, FEW);
	}
	assert_int_equal(escrow_present(&escrow), CROWD);
	walked = escrow.walked;
	for (uint32_t i = 0; i < CROWD; i++)
		assert_false(escrow_ask(&escrow, i, 1, PERIOD_US).admitted);
	assert_int_equal(escrow.walked, walked); /* an ask looks at no other */
	assert_true(escrow_valid(&escrow));
	free(tenants);
}

/* A million names in room for a few: who goes leaves what it has used.  T1 */
static void a_million_tenants_come_and_go(void **state)
{
	struct escrow_terms terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	uint64_t seed = 1, got = 0;
	struct crowd crowd;

	(void)state;
	open_crowd(&crowd, FEW, &seed);
	for (uint32_t i = 0; i < LONG_OR_BRIEF(1000000, 50000); i++) {
		uint32_t number = i % crowd.count, other;

		escrow_remove(&crowd.escrow, number);
		assert_int_equal(escrow_add(&crowd.escrow, &terms, &other), FAIR_GOOD);
		got += ask(&crowd, other, 1);
	}
	assert_int_equal(got, FEW);
	assert_true(escrow_valid(&crowd.escrow));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_known_afterwards_is_fair),
		cmocka_unit_test(who_comes_back_gains_nothing_by_its_pause),
		cmocka_unit_test(
		    who_asks_for_too_much_takes_nothing_of_what_others_need),
		cmocka_unit_test(tenants_by_the_million_share_ten_units),
		cmocka_unit_test(a_million_tenants_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
