/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool_test.c -- a budget that nodes claim by quanta: both sides of it, and what is lost between.
 *
 * Shares by lot, against an oracle that hands out unit by unit.  Then a fleet of nodes with clocks
 * of their own and a store that forgets; questions and answers come late, twice and never.  What is
 * admitted is counted by the store's true windows, apart from pool and claims.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/rule.h>

#include "engine/claim.h"
#include "tests/support/length.h"

#define SECOND UINT64_C(1000000)
#define NEVER_US GALE_UNITS_MAX

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

/* ---- A store of one pool ------------------------------------------------------------ */

#define TENANTS 8
#define NODES 64 /* in all lives */

struct box {
	struct pool pool;
	struct pool_tenant tenants[TENANTS];
	struct pool_claim claims[TENANTS][NODES];
	uint64_t not_before_us;
};

static void drop_claims(struct box *box, const struct pool_ask *ask)
{
	memset(box->claims, 0, sizeof(box->claims));
	for (size_t i = 0; i < TENANTS; i++)
		if (box->tenants[i].weight &&
		    pool_keeps(&box->pool, ask, &box->tenants[i]))
			pool_forget(&box->pool, &box->tenants[i]);
		else
			box->tenants[i] = (struct pool_tenant){ 0 };
}

static struct pool_answer box_ask(struct box *box, size_t tenant, size_t node,
                                  const struct pool_ask *ask, uint64_t now_us)
{
	enum pool_result result;
	bool turned;

	assert_true(pool_ask_valid(ask));
	result = pool_begin(&box->pool, ask, now_us, &turned);
	if (result != POOL_ANSWERED)
		return pool_refusal(&box->pool, ask, result);
	if (turned)
		drop_claims(box, ask);
	return pool_step(&box->pool, box->tenants, TENANTS, tenant,
	                 &box->claims[tenant][node], ask, box->not_before_us);
}

/* The pool's sums are those of its parts, and the tenants'. */
static void check_box(const struct box *box)
{
	uint64_t used = 0, claims = 0;

	for (size_t i = 0; i < TENANTS; i++) {
		uint64_t of_tenant = 0;

		for (size_t j = 0; j < NODES; j++) {
			const struct pool_claim *claim = &box->claims[i][j];

			assert_true(claim->back <= claim->granted);
			of_tenant += claim->granted - claim->back;
			claims += claim->granted > 0;
		}
		assert_int_equal(of_tenant, box->tenants[i].used);
		used += of_tenant;
	}
	assert_int_equal(used, box->pool.used);
	assert_int_equal(claims, box->pool.claims);
}

static struct pool_ask terms_of(uint64_t limit, uint64_t weight)
{
	return (struct pool_ask){ .limit = limit,
		                  .period_us = SECOND,
		                  .release_us = SECOND / 8,
		                  .guarantee = 0,
		                  .cap = GALE_UNITS_MAX,
		                  .weight = weight };
}

static struct pool_ask wanting(struct pool_ask terms, const struct box *box,
                               uint64_t had, uint64_t more, uint64_t least)
{
	terms.present = 1;
	terms.window = box->pool.window;
	terms.had = had;
	terms.more = more;
	terms.least = least;
	return terms;
}

/* ---- By hand ------------------------------------------------------------------------ */

#define NOON (UINT64_C(1700000000) * SECOND)

static uint64_t ask_for(struct box *box, size_t tenant, size_t node, uint64_t weight,
                        uint64_t had, uint64_t more)
{
	struct pool_ask ask = wanting(terms_of(1000, weight), box, had, more, more);

	return box_ask(box, tenant, node, &ask, NOON).granted;
}

/* W-29: what a tenant gets never comes out of another's share.  POOL-2 */
static void who_is_present_finds_its_share(void **state)
{
	struct box box = { 0 };
	(void)state;

	assert_int_equal(ask_for(&box, 1, 0, 1, 0, 1), 1);
	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 100), 100);
	assert_int_equal(ask_for(&box, 0, 0, 1, 100, 800), 100);
	assert_int_equal(ask_for(&box, 0, 0, 1, 100, 400), 500);
	assert_int_equal(ask_for(&box, 1, 0, 1, 1, 499), 500);
	check_box(&box);
}

/* A question that comes twice, or after a later one, grants nothing again. */
static void the_same_ask_grants_once(void **state)
{
	struct box box = { 0 };
	struct pool_ask first = terms_of(1000, 1), second;
	(void)state;

	first.present = 1;
	first.more = first.least = 10;
	assert_int_equal(box_ask(&box, 0, 0, &first, NOON).granted, 10);
	second = wanting(terms_of(1000, 1), &box, 10, 5, 5);
	assert_int_equal(box_ask(&box, 0, 0, &second, NOON).granted, 15);
	assert_int_equal(box_ask(&box, 0, 0, &second, NOON).granted, 15);
	assert_int_equal(box_ask(&box, 0, 0, &first, NOON).granted, 15);
	check_box(&box);
}

/* W-4: what is given back of a window goes into no other.  POOL-4 */
static void what_is_given_back_is_of_its_window(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask;
	(void)state;

	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 1000), 1000);
	ask = wanting(terms_of(1000, 1), &box, 1000, 0, 0);
	ask.back = 600;
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON).free, 600);
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON).free, 600);
	assert_int_equal(ask_for(&box, 0, 1, 1, 0, 600), 600);
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND).free, 1000);
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND).granted, 0);
	check_box(&box);
}

/* W-9, W-14: nobody's share is kept for who has stopped asking.  POOL-3 */
static void who_stops_asking_reserves_nothing(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask;
	(void)state;

	assert_int_equal(ask_for(&box, 1, 0, 1, 0, 1), 1);
	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 500), 500);
	ask = wanting(terms_of(1000, 1), &box, 500, 499, 499);
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND / 8 - 1).granted, 500);
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND / 8).granted, 999);
	check_box(&box);
}

/* One that was refused is there when the next window begins, though it was told to wait. */
static void who_was_refused_is_there_in_the_next_window(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask;
	(void)state;

	assert_int_equal(ask_for(&box, 1, 0, 3, 0, 750), 750);
	assert_int_equal(ask_for(&box, 1, 0, 3, 750, 250), 1000);
	assert_int_equal(ask_for(&box, 1, 0, 3, 1000, 1), 1000);
	ask = terms_of(1000, 1);
	ask.present = 1;
	ask.more = ask.least = 251;
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND).granted, 0);
	ask.more = ask.least = 250;
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON + SECOND).granted, 250);
}

/* A grant is an eighth of what is left, or what is needed. */
static void a_quantum_leaves_some_for_other_nodes(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask = terms_of(1000, 1);
	(void)state;

	ask.present = 1;
	ask.more = 1000;
	ask.least = 1;
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON).granted, 125);
	assert_int_equal(box_ask(&box, 0, 1, &ask, NOON).granted, 110);
	ask.least = 700;
	assert_int_equal(box_ask(&box, 0, 2, &ask, NOON).granted, 700);
	ask.least = 66;
	assert_int_equal(box_ask(&box, 0, 3, &ask, NOON).granted, 0);
}

static enum pool_result result_at(struct box *box, const struct pool_ask *ask,
                                  uint64_t now_us)
{
	return (enum pool_result)box_ask(box, 0, 0, ask, now_us).result;
}

/* Windows of two lengths would overlap, and what was granted in one would count in no other.  A tenant
 * that is absent for one node and present for another would lose its guarantee.  A node with other
 * settings has the pool when a whole window has passed without an ask with those of the pool; that one
 * of them comes first in a window is not enough.  POOL-6 */
static void other_settings_are_refused_for_a_window(void **state)
{
	const struct pool_ask mine = terms_of(1000, 1);
	struct pool_ask others[] = { mine, mine, mine, mine };
	(void)state;

	others[0].period_us = SECOND / 2;
	others[1].period_us = 2 * SECOND;
	others[2].release_us = SECOND / 50;
	others[3].protect_us = 1;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const struct pool_ask *other = &others[i];
		struct box box = { 0 };

		assert_int_equal(ask_for(&box, 0, 0, 1, 0, 1000), 1000);
		for (uint64_t at = NOON; at < NOON + 4 * SECOND; at += SECOND) {
			assert_int_equal(result_at(&box, other, at), POOL_DISAGREES);
			assert_int_equal(result_at(&box, &mine, at), POOL_ANSWERED);
			assert_int_equal(result_at(&box, other, at + SECOND - 1),
			                 POOL_DISAGREES);
		}
		assert_int_equal(result_at(&box, other, NOON + 4 * SECOND),
		                 POOL_DISAGREES);
		assert_int_equal(result_at(&box, other, NOON + 5 * SECOND - 1),
		                 POOL_DISAGREES);
		assert_int_equal(result_at(&box, other, NOON + 5 * SECOND),
		                 POOL_ANSWERED);
		assert_int_equal(result_at(&box, &mine, NOON + 5 * SECOND),
		                 POOL_DISAGREES);
		assert_int_equal(result_at(&box, other, NOON + 5 * SECOND),
		                 POOL_ANSWERED);
	}
}

/* Units of the day's windows that were granted in windows of a second would not count in the day. */
static void a_long_window_begins_after_the_short_ones(void **state)
{
	const uint64_t day_us = 86400 * SECOND,
		       midnight = NOON - NOON % day_us + day_us;
	const struct pool_ask mine = terms_of(1000, 1);
	struct pool_ask ask = mine;
	struct box box = { 0 };
	struct pool_answer answer;
	(void)state;

	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 1), 1);
	ask.period_us = day_us;
	answer = box_ask(&box, 0, 1, &ask, NOON + 10 * SECOND);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, midnight - NOON - 10 * SECOND);
	answer = box_ask(&box, 0, 1, &ask, midnight - 1);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, 1);
	assert_int_equal(result_at(&box, &ask, midnight), POOL_ANSWERED);
	/* One of three seconds begins at NOON + 1, and the next one at NOON + 4. */
	box = (struct box){ 0 };
	ask.period_us = 3 * SECOND;
	assert_int_equal((NOON + SECOND) % ask.period_us, 0);
	assert_int_equal(result_at(&box, &mine, NOON + SECOND), POOL_ANSWERED);
	answer = box_ask(&box, 0, 1, &ask, NOON + 3 * SECOND);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, SECOND);
	assert_int_equal(result_at(&box, &ask, NOON + 4 * SECOND), POOL_ANSWERED);
}

/* A refused node asks once in each of its own windows, as the pool may have been deleted.  It is told
 * what the pool has. */
static void who_is_refused_asks_again_in_its_next_window(void **state)
{
	struct pool_ask ask = terms_of(1000, 1), other = ask;
	struct box box = { 0 };
	struct pool_answer answer;
	(void)state;

	ask.period_us = 86400 * SECOND;
	ask.release_us = NEVER_US;
	ask.protect_us = 7;
	assert_int_equal(result_at(&box, &ask, NOON), POOL_ANSWERED);
	answer = box_ask(&box, 0, 1, &other, NOON + 1);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, SECOND - 1);
	assert_int_equal(answer.period_us, 86400 * SECOND);
	assert_int_equal(answer.release_us, NEVER_US);
	assert_int_equal(answer.protect_us, 7);
	answer =
	    box_ask(&box, 0, 1, &other, box.pool.window + 86400 * SECOND + SECOND / 2);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, SECOND);
	other.period_us = 7 * SECOND;
	answer = box_ask(&box, 0, 1, &other, box.pool.window + 2 * 86400 * SECOND - 1);
	assert_int_equal(answer.result, POOL_DISAGREES);
	assert_int_equal(answer.retry_us, 1);
	box = (struct box){ 0 };
	assert_int_equal(result_at(&box, &other, NOON + 2), POOL_ANSWERED);
}

/* A node for which a silent tenant is absent sooner would lend its guarantee.  POOL-6, T2 */
static void another_release_takes_no_guarantee(void **state)
{
	struct pool_ask gold = terms_of(1000, 1), silver = gold;
	struct box box = { 0 };
	(void)state;

	gold.present = silver.present = 1;
	gold.release_us = NEVER_US;
	gold.guarantee = 500;
	gold.more = gold.least = 1;
	assert_int_equal(box_ask(&box, 0, 0, &gold, NOON).granted, 1);
	silver.release_us = SECOND / 50;
	silver.more = silver.least = 900;
	assert_int_equal(box_ask(&box, 1, 1, &silver, NOON + SECOND / 2).result,
	                 POOL_DISAGREES);
	gold = wanting(gold, &box, 1, 499, 499);
	assert_int_equal(box_ask(&box, 0, 0, &gold, NOON + SECOND / 2).granted, 500);
}

/* While nodes have other limits a window admits at most the largest; each is told of the other. */
static void limits_may_differ_and_it_is_told(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask = terms_of(500, 1);
	(void)state;

	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 800), 800);
	ask.more = ask.least = 1;
	assert_int_equal(box_ask(&box, 0, 1, &ask, NOON).limit, 1000);
	assert_int_equal(box_ask(&box, 0, 1, &ask, NOON).granted, 0);
	assert_int_equal(ask_for(&box, 0, 0, 1, 800, 200), 1000);
}

/* The terms of a tenant are those of the last ask; who asks is told of those before. */
static void terms_may_differ_and_it_is_told(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask = terms_of(1000, 3);
	struct pool_answer answer;
	(void)state;

	ask.guarantee = 10;
	answer = box_ask(&box, 0, 0, &ask, NOON);
	assert_int_equal(answer.weight, 0);
	ask.guarantee = 20;
	ask.cap = 500;
	ask.weight = 4;
	answer = box_ask(&box, 0, 1, &ask, NOON);
	assert_int_equal(answer.weight, 3);
	assert_int_equal(answer.guarantee, 10);
	assert_true(answer.cap > 500);
	answer = box_ask(&box, 0, 0, &ask, NOON);
	assert_int_equal(answer.weight, 4);
	assert_int_equal(answer.cap, 500);
}

/* Guarantees that each node has checked for its own tenants may be too much together: the limit is then divided by
 * weight, up to each guarantee, and whoever asks is told the sum.  T1 */
static void guarantees_above_the_limit_are_told(void **state)
{
	static const uint64_t guarantees[] = { 600, 600, 0 }, weights[] = { 1, 3, 9 },
			      shares[] = { 400, 600, 0 };
	struct pool_answer answer;
	struct box box = { 0 };
	uint64_t used = 0;
	(void)state;

	for (size_t i = 0; i < 6; i++) {
		struct pool_ask ask = terms_of(1000, weights[i % 3]);

		ask.guarantee = guarantees[i % 3];
		ask.present = 1;
		ask.window = box.pool.window;
		answer = box_ask(&box, i % 3, 0, &ask, NOON);
		assert_int_equal(answer.guarantees, i == 0 ? 600 : 1200);
		if (i < 3)
			continue;
		assert_int_equal(answer.share, shares[i % 3]);
		ask.more = ask.least = answer.share;
		used += box_ask(&box, i % 3, 0, &ask, NOON).granted;
	}
	assert_int_equal(used, 1000);
	for (size_t i = 0; i < 2; i++) { /* who is absent needs none */
		struct pool_ask ask = terms_of(1000, 3);

		ask.guarantee = i == 0 ? 600 : GALE_UNITS_MAX;
		ask.present = 1;
		answer = box_ask(&box, 1, 0, &ask, NOON + SECOND / 8);
		assert_int_equal(answer.guarantees, ask.guarantee);
	}
	answer = box_ask(&box, 2, 0,
	                 &(struct pool_ask){ .limit = 1000,
	                                     .period_us = SECOND,
	                                     .release_us = SECOND / 8,
	                                     .guarantee = 900,
	                                     .cap = 900,
	                                     .weight = 1 },
	                 NOON + SECOND / 8);
	assert_int_equal(answer.guarantees, GALE_UNITS_MAX);
}

/* A store that has forgotten grants nothing, and counts on from what nodes say.  POOL-5 */
static void a_store_that_forgot_is_quiet(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask;
	struct pool_answer answer;
	(void)state;

	assert_int_equal(ask_for(&box, 0, 0, 1, 0, 700), 700);
	ask = wanting(terms_of(1000, 1), &box, 700, 200, 1);
	box = (struct box){ .not_before_us = NOON + SECOND / 2 };
	answer = box_ask(&box, 0, 0, &ask, NOON);
	assert_int_equal(answer.result, POOL_QUIET);
	assert_int_equal(answer.retry_us, SECOND / 2);
	assert_int_equal(answer.granted, 700);
	assert_int_equal(ask_for(&box, 0, 1, 1, 0, 1), 0);
	ask = wanting(terms_of(1000, 1), &box, 0, 301, 301);
	assert_int_equal(box_ask(&box, 0, 1, &ask, NOON + SECOND / 2).granted, 0);
	ask.more = ask.least = 300;
	assert_int_equal(box_ask(&box, 0, 1, &ask, NOON + SECOND / 2).granted, 300);
	check_box(&box);
}

/* ---- Shares ------------------------------------------------------------------------- */

struct drip {
	uint64_t base, top, used, weight, units;
};

static uint64_t height(const struct drip *drip)
{
	uint64_t at = drip->base + drip->units;

	return at > drip->used ? at : drip->used;
}

static bool is_full(const struct drip *drip)
{
	return drip->base + drip->units >= drip->top;
}

/* Which of two gets its next unit first?  0: at one level. */
static int sooner(const struct drip *a, const struct drip *b)
{
	uint64_t left = (a->units + 1) * b->weight, right = (b->units + 1) * a->weight;

	return left < right ? -1 : left > right;
}

static uint64_t total(const struct drip *drips, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += height(&drips[i]);
	return sum;
}

/* The next unit of each whose turn it is at the lowest level; false: nobody wants any. */
static bool drip_once(struct drip *drips, size_t count)
{
	struct drip first = { 0 };
	bool any = false;

	for (size_t i = 0; i < count; i++)
		if (!is_full(&drips[i]) && (!any || sooner(&drips[i], &first) < 0)) {
			first = drips[i];
			any = true;
		}
	for (size_t i = 0; any && i < count; i++)
		drips[i].units += !is_full(&drips[i]) && sooner(&drips[i], &first) == 0;
	return any;
}

static void drip_all(struct drip *drips, size_t count, uint64_t rest)
{
	struct drip before[TENANTS];

	if (total(drips, count) > rest)
		for (size_t i = 0; i < count; i++) {
			drips[i].top = drips[i].base;
			drips[i].base = 0;
		}
	do {
		memcpy(before, drips, sizeof(before));
		if (!drip_once(drips, count))
			break;
	} while (total(drips, count) <= rest);
	if (total(drips, count) > rest)
		memcpy(drips, before, sizeof(before));
}

/* Tenants by lot, some of them absent, some with more than their share. */
static void fill_box(struct box *box, struct drip *drips, uint64_t *seed,
                     uint64_t limit, uint64_t *ret_rest)
{
	uint64_t guaranteed = lot(seed, limit), free = limit;

	*ret_rest = limit;
	for (size_t i = 0; i < TENANTS; i++) {
		struct pool_tenant *tenant = &box->tenants[i];
		bool absent = i > 0 && lot(seed, 4) == 0;

		tenant->weight = 1 + lot(seed, 10);
		tenant->guarantee = lot(seed, 2) ? 0 : lot(seed, guaranteed + 1);
		guaranteed -= tenant->guarantee;
		tenant->cap = lot(seed, 3) ? GALE_UNITS_MAX
		                           : tenant->guarantee + 1 + lot(seed, limit);
		tenant->used =
		    lot(seed, 2) ? 0 : lot(seed, lesser(free, tenant->cap) + 1);
		tenant->asked_us = absent ? 0 : NOON;
		free -= tenant->used;
		box->pool.used += tenant->used;
		if (absent)
			*ret_rest -= tenant->used;
		drips[i] = (struct drip){ .weight = tenant->weight };
		if (!absent)
			drips[i] = (struct drip){ tenant->guarantee,
				                  lesser(tenant->cap, limit),
				                  tenant->used, tenant->weight, 0 };
	}
}

static void one_instance(uint64_t seed)
{
	uint64_t limit = 1 + lot(&seed, 400), rest;
	struct box box = { .pool = {
			       .period_us = SECOND, .window = NOON, .now_us = NOON } };
	struct drip drips[TENANTS];
	struct pool_ask ask = terms_of(limit, 1);
	struct pool_answer answer;
	struct pool_claim claim = { 0 };

	fill_box(&box, drips, &seed, limit, &rest);
	ask.guarantee = box.tenants[0].guarantee;
	ask.cap = box.tenants[0].cap;
	ask.weight = box.tenants[0].weight;
	ask.present = 1;
	drip_all(drips, TENANTS, rest);
	answer = pool_step(&box.pool, box.tenants, TENANTS, 0, &claim, &ask, 0);
	if (answer.share != height(&drips[0]))
		fail_msg("seed %llu: a share of %llu, not of %llu",
		         (unsigned long long)seed, (unsigned long long)answer.share,
		         (unsigned long long)height(&drips[0]));
}

static void a_share_is_what_drips_come_to(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20000; seed++)
		one_instance(seed << 20);
}

/* Any numbers that may be asked with. */
static void large_numbers_are_exact(void **state)
{
	struct box box = { 0 };
	struct pool_ask ask = terms_of(GALE_UNITS_MAX, POOL_WEIGHT_MAX);
	(void)state;

	ask.present = 1;
	ask.more = ask.least = 1;
	assert_int_equal(box_ask(&box, 0, 0, &ask, NOON).share, GALE_UNITS_MAX);
	ask.weight = 1;
	assert_int_equal(box_ask(&box, 1, 0, &ask, NOON).share,
	                 GALE_UNITS_MAX / (POOL_WEIGHT_MAX + 1));
}

/* ---- A fleet ------------------------------------------------------------------------ */

#define FLEET 4
#define WINDOWS 12
#define CALLS 12
#define FLIGHTS 64

/* A question on its way, and its answer. */
struct flight {
	size_t life, node, tenant;
	uint64_t due_us;
	uint64_t number;
	struct pool_ask ask;
	struct pool_answer answer;
	enum { NOTHING, ASKING, ANSWERING } is;
};

struct node {
	size_t life;
	uint64_t ahead_us;
	int drift_ppm;
	struct claim claims[TENANTS];
	struct pool_ask sent[TENANTS];
	uint64_t numbers[TENANTS];
	uint64_t gives_up_us[TENANTS];
	uint64_t waits[TENANTS];
};

struct world {
	uint64_t seed;
	uint64_t now_us;
	uint64_t limit;
	bool faulty;
	size_t tenants;
	size_t lives;
	uint64_t asks, quanta;
	struct box box;
	struct node nodes[FLEET];
	struct flight flights[FLIGHTS];
	uint64_t spent[WINDOWS + 8];
	uint64_t by_tenant[TENANTS];
};

static mono clock_of(const struct world *world, const struct node *node)
{
	uint64_t us = world->now_us - NOON;

	return (mono){ (node->ahead_us + us) * 1000 +
		       (uint64_t)((int64_t)us * node->drift_ppm / 1000) };
}

static void start(struct world *world, struct node *node)
{
	*node = (struct node){ .life = world->lives++ % NODES,
		               .ahead_us = lot(&world->seed, 1000 * SECOND),
		               .drift_ppm = (int)lot(&world->seed, 1001) - 500 };
	for (size_t i = 0; i < world->tenants; i++) {
		struct pool_ask terms = terms_of(world->limit, 1 + i);

		terms.release_us = SECOND / 4;
		claim_init(&node->claims[i], &terms, 500, clock_of(world, node));
	}
}

static void fly(struct world *world, const struct flight *flight, uint64_t most_us)
{
	for (size_t i = 0; i < FLIGHTS; i++) {
		if (world->flights[i].is != NOTHING)
			continue;
		world->flights[i] = *flight;
		world->flights[i].due_us =
		    world->now_us + 100 + lot(&world->seed, most_us);
		return;
	}
}

static uint64_t delay(struct world *world)
{
	return world->faulty && lot(&world->seed, 20) == 0 ? 2 * SECOND : 2000;
}

static void send(struct world *world, size_t number, size_t tenant, bool present,
                 uint64_t wants, uint64_t least)
{
	struct node *node = &world->nodes[number];
	struct flight flight = { .life = node->life,
		                 .node = number,
		                 .tenant = tenant,
		                 .number = ++node->numbers[tenant],
		                 .is = ASKING };

	flight.ask = node->sent[tenant] = claim_ask(
	    &node->claims[tenant], present, wants, least, clock_of(world, node));
	node->gives_up_us[tenant] = world->now_us + 100000;
	world->asks++;
	if (!world->faulty || lot(&world->seed, 10) > 0)
		fly(world, &flight, delay(world));
	if (world->faulty && lot(&world->seed, 10) == 0)
		fly(world, &flight, delay(world));
}

static void land(struct world *world, struct flight *flight)
{
	struct node *node = &world->nodes[flight->node];
	struct claim *claim = &node->claims[flight->tenant];
	struct flight back = *flight;
	uint64_t had = claim->granted, window = claim->window;

	flight->is = NOTHING;
	if (back.is == ASKING) {
		back.is = ANSWERING;
		back.answer = box_ask(&world->box, back.tenant, back.life, &back.ask,
		                      world->now_us);
		if (!world->faulty || lot(&world->seed, 10) > 0)
			fly(world, &back, delay(world));
		return;
	}
	if (node->life != back.life || node->numbers[back.tenant] != back.number ||
	    !claim->with_store)
		return;
	assert_int_not_equal(
	    claim_hear(claim, &back.ask, &back.answer, clock_of(world, node)),
	    CLAIM_WRONG);
	world->quanta +=
	    claim->window != window ? claim->granted > 0 : claim->granted > had;
}

static void spend(struct world *world, struct node *node, size_t tenant, uint64_t cost)
{
	claim_take(&node->claims[tenant], cost);
	world->spent[(world->now_us - NOON) / SECOND] += cost;
	world->by_tenant[tenant] += cost;
}

/* A tenant asks at a node: from what is in hand, or the store. */
static void call(struct world *world, size_t number, size_t tenant, uint64_t cost)
{
	struct node *node = &world->nodes[number];
	struct claim *claim = &node->claims[tenant];
	mono now = clock_of(world, node), when;

	if (claim->with_store && world->now_us >= node->gives_up_us[tenant])
		claim_lost(claim);
	if (claim_in_hand(claim, now) >= cost)
		spend(world, node, tenant, cost);
	else if (!claim->with_store && claim_may_ask(claim, cost, now, &when))
		send(world, number, tenant, true, cost, cost);
}

static void give_back(struct world *world, size_t number, size_t tenant)
{
	struct node *node = &world->nodes[number];
	struct claim *claim = &node->claims[tenant];
	uint64_t units = claim_in_hand(claim, clock_of(world, node));

	if (units == 0 || claim->with_store)
		return;
	claim_give(claim, 1 + lot(&world->seed, units));
	send(world, number, tenant, lot(&world->seed, 2), 0, 0);
}

static void step(struct world *world)
{
	world->now_us += 20 + lot(&world->seed, 200);
	for (size_t i = 0; i < FLIGHTS; i++)
		if (world->flights[i].is != NOTHING &&
		    world->now_us >= world->flights[i].due_us)
			land(world, &world->flights[i]);
}

static void open_world(struct world *world, uint64_t seed, uint64_t limit,
                       size_t tenants, bool faulty)
{
	*world = (struct world){ .seed = seed,
		                 .now_us = NOON,
		                 .limit = limit,
		                 .tenants = tenants,
		                 .faulty = faulty };
	for (size_t i = 0; i < FLEET; i++)
		start(world, &world->nodes[i]);
}

/* The store forgets: what it granted in this window may be out until it turns. */
static void forget(struct world *world)
{
	world->box = (struct box){ .not_before_us = world->now_us -
		                                    world->now_us % SECOND + SECOND };
}

static void misfortune(struct world *world)
{
	uint64_t what = lot(&world->seed, 4000);

	if (what == 0)
		forget(world);
	else if (what < 4)
		start(world, &world->nodes[lot(&world->seed, FLEET)]);
	else if (what < 12)
		world->now_us += lot(&world->seed, SECOND / 2); /* all stand still */
	else if (what < 100)
		give_back(world, lot(&world->seed, FLEET),
		          lot(&world->seed, world->tenants));
}

/* T1, W-4, W-10: whatever is lost, late, doubled, dead or forgotten.  POOL-1, CLAIM-1, CLAIM-2,
 * CLAIM-3, CLAIM-4 */
static void no_window_admits_more_than_the_limit(void **state)
{
	struct world *world = malloc(sizeof(*world));
	uint64_t spent = 0, limits = 0;
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(300, 30); seed++) {
		uint64_t drawn = seed, limit = 1 + lot(&drawn, 2000);

		open_world(world, drawn, limit, 1 + lot(&drawn, TENANTS), true);
		while (world->now_us < NOON + (WINDOWS - 2) * SECOND &&
		       world->lives < NODES - 1) {
			step(world);
			misfortune(world);
			check_box(&world->box);
			call(world, lot(&world->seed, FLEET),
			     lot(&world->seed, world->tenants),
			     1 + lot(&world->seed, 5) * lot(&world->seed, 3));
		}
		for (size_t i = 0; i < WINDOWS; i++) {
			assert_true(world->spent[i] <= world->limit);
			spent += world->spent[i];
			limits += world->limit;
		}
	}
	free(world);
	print_message("%llu of %llu units\n", (unsigned long long)spent,
	              (unsigned long long)limits);
	assert_true(spent * 4 > limits);
}

/* Totals only rise; granted, but for what was given back, is what the limit bounds.  CLAIM-2 */
static void who_gives_back_may_claim_again_and_again(void **state)
{
	struct world *world = malloc(sizeof(*world));
	struct node *node = &world->nodes[0];
	uint64_t granted = 0;
	(void)state;

	open_world(world, 1, 1000, 1, false);
	for (int i = 0; i < 40; i++) {
		struct claim *claim = &node->claims[0];
		uint64_t units;

		claim->size = 0; /* a demand that was forgotten */
		send(world, 0, 0, true, 100, 1);
		while (claim->with_store)
			step(world);
		units = claim_in_hand(claim, clock_of(world, node));
		assert_true(units > 0);
		granted += units;
		claim_give(claim, units);
		send(world, 0, 0, true, 0, 0);
		while (claim->with_store)
			step(world);
	}
	assert_true(granted > 3 * world->limit); /* in less than three windows */
	assert_true(world->now_us < NOON + SECOND);
	free(world);
}

/* A refusal was of the terms of its ask. */
static void what_was_refused_under_old_terms_is_asked_again(void **state)
{
	const struct pool_ask terms = { .limit = 100,
		                        .period_us = SECOND,
		                        .release_us = SECOND / 4,
		                        .cap = GALE_UNITS_MAX,
		                        .weight = 1 };
	const struct pool_answer answer = { .result = POOL_ANSWERED,
		                            .window = 1,
		                            .left_us = SECOND / 2 };
	const mono now = { 1000000 }, later = { 2000000 };
	struct claim claim;
	struct pool_ask ask;
	mono when;
	(void)state;

	claim_init(&claim, &terms, 0, now);
	ask = claim_ask(&claim, true, 10, 10, now);
	claim.terms.limit = 200;
	assert_int_equal(claim_hear(&claim, &ask, &answer, later), CLAIM_HEARD);
	assert_true(claim_may_ask(&claim, 10, later, &when));
	ask = claim_ask(&claim, true, 10, 10, later);
	assert_int_equal(claim_hear(&claim, &ask, &answer, later), CLAIM_HEARD);
	assert_false(claim_may_ask(&claim, 10, later, &when));
}

/* Tenants of weights 1 to 3 that want all they can get, each at all nodes.  A node that was refused
 * asks again before its tenant is absent; so with four nodes a quantum costs 1.2 round trips. */
static void who_asks_all_the_time_gets_by_weight(void **state)
{
	struct world *world = malloc(sizeof(*world));
	const uint64_t limit = 30000;
	uint64_t all = 0;
	(void)state;

	open_world(world, 7, limit, 3, false);
	while (world->now_us < NOON + (WINDOWS - 2) * SECOND) {
		step(world);
		for (int i = 0; i < CALLS; i++)
			call(world, lot(&world->seed, FLEET),
			     lot(&world->seed, world->tenants), 1);
	}
	for (size_t i = 0; i < 3; i++) {
		uint64_t ideal = limit * (WINDOWS - 2) * (1 + i) / 6;

		all += world->by_tenant[i];
		if (world->by_tenant[i] * 1000 < ideal * 995)
			fail_msg("tenant %zu: %llu of %llu", i,
			         (unsigned long long)world->by_tenant[i],
			         (unsigned long long)ideal);
	}
	assert_true(all * 1000 >= limit * (WINDOWS - 2) * 995);
	print_message("%llu quanta by %llu round trips\n",
	              (unsigned long long)world->quanta,
	              (unsigned long long)world->asks);
	assert_true(world->asks * 4 <= world->quanta * 5);
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_present_finds_its_share),
		cmocka_unit_test(the_same_ask_grants_once),
		cmocka_unit_test(what_is_given_back_is_of_its_window),
		cmocka_unit_test(who_stops_asking_reserves_nothing),
		cmocka_unit_test(who_was_refused_is_there_in_the_next_window),
		cmocka_unit_test(a_quantum_leaves_some_for_other_nodes),
		cmocka_unit_test(other_settings_are_refused_for_a_window),
		cmocka_unit_test(a_long_window_begins_after_the_short_ones),
		cmocka_unit_test(who_is_refused_asks_again_in_its_next_window),
		cmocka_unit_test(another_release_takes_no_guarantee),
		cmocka_unit_test(limits_may_differ_and_it_is_told),
		cmocka_unit_test(terms_may_differ_and_it_is_told),
		cmocka_unit_test(guarantees_above_the_limit_are_told),
		cmocka_unit_test(a_store_that_forgot_is_quiet),
		cmocka_unit_test(a_share_is_what_drips_come_to),
		cmocka_unit_test(large_numbers_are_exact),
		cmocka_unit_test(no_window_admits_more_than_the_limit),
		cmocka_unit_test(who_gives_back_may_claim_again_and_again),
		cmocka_unit_test(what_was_refused_under_old_terms_is_asked_again),
		cmocka_unit_test(who_asks_all_the_time_gets_by_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
