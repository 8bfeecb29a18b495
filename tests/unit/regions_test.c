/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * regions_test.c -- one budget over several regions: claims before a pool that is far away.
 *
 * A region is a node with a clock of its own and a slow link to the store.  It asks, looks and takes
 * as coordinator/fund_turn.c does, in virtual time.  What is taken is counted by the store's true
 * windows, apart from pool and claims.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <gale/rule.h>

#include "engine/claim.h"
#include "tests/support/length.h"

#define SECOND UINT64_C(1000000) /* a window */
#define NOON (UINT64_C(1700000000) * SECOND)
#define TICK_US (SECOND / 32)
#define STEP_US 100
#define REGIONS 5
#define TENANTS 32
#define WINDOWS 8

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

/* ---- The world ----------------------------------------------------------------------- */

/* A tenant in a region. */
struct desk {
	struct claim claim;
	struct pool_ask ask;
	struct pool_answer answer;
	uint64_t
	    arrives_us; /* the ask, and then the answer; 0: nothing is on its way */
	bool answered;
	uint64_t look_us;
	bool ahead;
	uint64_t demand; /* units in a thousand steps */
	uint64_t owed;   /* thousandths of a unit that it would take now */
	uint64_t calls, late, refused;
};

struct region {
	uint64_t way_us; /* to the store, or back */
	uint64_t ahead_us;
	int64_t drift_ppm;
	bool asks_late;             /* planted: it waits until nothing is left */
	uint64_t gone_us, back_us;  /* it is away, and comes back with nothing */
	uint64_t cut_us, joined_us; /* what it sends is lost, and it goes on */
	struct desk desks[TENANTS];
};

static struct world {
	uint64_t now_us;
	uint64_t limit;
	size_t tenants, regions;
	uint64_t weights[TENANTS];
	struct pool pool;
	struct pool_tenant at_pool[TENANTS];
	struct pool_claim claims[TENANTS][REGIONS];
	struct region region[REGIONS];
	uint64_t spent[WINDOWS + 1][TENANTS];
	uint64_t asks, quanta;
} w;

static mono clock_of(const struct region *region)
{
	int64_t us = (int64_t)(w.now_us - NOON);

	return (mono){ (region->ahead_us + (uint64_t)us) * 1000 +
		       (uint64_t)(us * region->drift_ppm / 1000) };
}

static void open_world(size_t regions, size_t tenants, uint64_t limit)
{
	memset(&w, 0, sizeof(w));
	w.now_us = NOON;
	w.limit = limit;
	w.tenants = tenants;
	w.regions = regions;
	for (size_t i = 0; i < tenants; i++)
		w.weights[i] = 1;
}

/* After its weights, ways and clocks are known. */
static void open_desks(void)
{
	for (size_t r = 0; r < w.regions; r++)
		for (size_t i = 0; i < w.tenants; i++) {
			const struct pool_ask terms = { .limit = w.limit,
				                        .period_us = SECOND,
				                        .release_us = SECOND / 4,
				                        .cap = GALE_UNITS_MAX,
				                        .weight = w.weights[i] };

			claim_init(&w.region[r].desks[i].claim, &terms, 500,
			           clock_of(&w.region[r]));
		}
}

static struct pool_answer pool_answers(size_t tenant, size_t region,
                                       const struct pool_ask *ask)
{
	bool turned;

	assert_true(pool_ask_valid(ask));
	assert_int_equal(pool_begin(&w.pool, ask, w.now_us, &turned), POOL_ANSWERED);
	if (turned) {
		memset(w.claims, 0, sizeof(w.claims));
		for (size_t i = 0; i < w.tenants; i++)
			pool_forget(&w.pool, &w.at_pool[i]);
	}
	return pool_step(&w.pool, w.at_pool, w.tenants, tenant,
	                 &w.claims[tenant][region], ask, 0);
}

/* ---- A region ------------------------------------------------------------------------ */

static void send(struct region *region, struct desk *desk, uint64_t wants)
{
	desk->ask = claim_ask(&desk->claim, true, wants, wants > 0, clock_of(region));
	desk->arrives_us = w.now_us + region->way_us;
	desk->answered = false;
	desk->ahead = false;
	w.asks++;
}

static void hear(struct region *region, struct desk *desk)
{
	uint64_t had =
	    desk->claim.window == desk->answer.window ? desk->claim.granted : 0;

	desk->arrives_us = 0;
	assert_int_not_equal(
	    claim_hear(&desk->claim, &desk->ask, &desk->answer, clock_of(region)),
	    CLAIM_WRONG);
	w.quanta += desk->claim.granted > had;
}

static bool is_within(uint64_t from_us, uint64_t to_us)
{
	return w.now_us >= from_us && w.now_us < to_us;
}

static void carry(size_t number, size_t tenant)
{
	struct region *region = &w.region[number];
	struct desk *desk = &region->desks[tenant];

	if (desk->arrives_us == 0 || w.now_us < desk->arrives_us)
		return;
	if (desk->answered) {
		hear(region, desk);
		return;
	}
	if (is_within(region->cut_us, region->joined_us)) {
		desk->arrives_us = 0;
		claim_lost(&desk->claim);
		return;
	}
	desk->answer = pool_answers(tenant, number, &desk->ask);
	desk->answered = true;
	desk->arrives_us = w.now_us + region->way_us;
}

static void look(struct region *region, struct desk *desk, mono now)
{
	struct claim_look look;

	if (w.now_us < desk->look_us || claim_in_hand(&desk->claim, now) == 0)
		return;
	look = claim_look(&desk->claim, now, TICK_US * 1000);
	desk->look_us = w.now_us + TICK_US;
	claim_give(&desk->claim, look.gives);
	desk->ahead = look.asks && !region->asks_late;
	if (look.gives > 0)
		send(region, desk, 0);
}

static void take(struct desk *desk, size_t tenant, mono now)
{
	uint64_t units = lesser(desk->owed / 1000, claim_in_hand(&desk->claim, now));

	claim_take(&desk->claim, units);
	desk->owed -= units * 1000;
	w.spent[(w.now_us - NOON) / SECOND][tenant] += units;
}

/* What finds nothing is refused, and does not come again. */
static void live(size_t number, size_t tenant)
{
	struct region *region = &w.region[number];
	struct desk *desk = &region->desks[tenant];
	mono now = clock_of(region), when;
	uint64_t lacks;

	carry(number, tenant);
	if (desk->arrives_us == 0)
		look(region, desk, now);
	desk->owed += desk->demand;
	desk->calls += desk->owed / 1000;
	take(desk, tenant, now);
	lacks = desk->owed / 1000;
	desk->owed %= 1000;
	if (lacks > 0 && claim_refuses(&desk->claim, 1, now, &when))
		desk->refused += lacks;
	else
		desk->late += lacks;
	if (desk->arrives_us == 0 && (lacks > 0 || desk->ahead) &&
	    claim_may_ask(&desk->claim, 1, now, &when))
		send(region, desk, 1);
}

/* Its nodes are others than before.  What those had claimed stays used. */
static void come_back(size_t number, size_t tenant)
{
	struct desk *desk = &w.region[number].desks[tenant];
	struct pool_ask terms = desk->claim.terms;

	*desk = (struct desk){ .demand = desk->demand };
	claim_init(&desk->claim, &terms, 500, clock_of(&w.region[number]));
	w.claims[tenant][number] = (struct pool_claim){ 0 };
}

static void run(uint64_t until_us)
{
	for (; w.now_us < until_us; w.now_us += STEP_US)
		for (size_t r = 0; r < w.regions; r++)
			for (size_t i = 0; i < w.tenants; i++) {
				if (w.region[r].desks[i].demand == 0)
					continue;
				if (is_within(w.region[r].gone_us, w.region[r].back_us))
					come_back(r, i);
				else
					live(r, i);
			}
}

static uint64_t spent_in(size_t window)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w.tenants; i++)
		sum += w.spent[window][i];
	return sum;
}

/* ---- Ahead of need --------------------------------------------------------------------- */

/* One steady caller, with half of what it may have; the way to the store and back is a twentieth of a
 * window.  Calls that come late, from the first quantum of each window to where its units die. */
static uint64_t late_calls(bool asks_late)
{
	struct desk *desk = &w.region[0].desks[0];
	uint64_t late = 0;

	open_world(1, 1, 4000);
	w.region[0].way_us = SECOND / 40;
	w.region[0].asks_late = asks_late;
	open_desks();
	desk->demand = 200; /* 2000 in a window */
	run(NOON + SECOND);
	w.asks = w.quanta = 0;
	for (uint64_t i = 1; i < WINDOWS; i++) {
		run(NOON + i * SECOND + SECOND / 10);
		desk->late = 0;
		run(NOON + (i + 1) * SECOND - w.region[0].way_us - TICK_US);
		late += desk->late;
		run(NOON + (i + 1) * SECOND);
	}
	print_message("%s: %llu late, %llu quanta by %llu round trips\n",
	              asks_late ? "when nothing is left" : "ahead",
	              (unsigned long long)late, (unsigned long long)w.quanta,
	              (unsigned long long)w.asks);
	return late;
}

/* CLAIM-5: who spends steadily below its share waits for a slow link once in a window. */
static void who_goes_on_spending_asks_ahead(void **state)
{
	(void)state;

	assert_true(late_calls(true) > 1000);
	assert_true(late_calls(false) <= 14); /* one in a thousand */
	assert_true(w.asks * 10 <= w.quanta * 11);
	assert_true(w.asks <= (WINDOWS - 1) * 8);
}

/* CLAIM-5: where nobody spends, all goes back; where somebody does, nothing that is wanted again. */
static void what_is_idle_goes_back_and_what_is_used_stays(void **state)
{
	const uint64_t tick_ns = TICK_US * 1000;
	struct claim claim, before;
	mono now = { SECOND * 1000 };
	uint64_t seed = 1;
	(void)state;

	for (int i = 0; i < LONG_OR_BRIEF(200000, 20000); i++) {
		struct claim_look look;
		uint64_t units, moved = lot(&seed, 3) * lot(&seed, 1000);

		claim = (struct claim){ .terms = { .period_us = SECOND },
			                .window = 1,
			                .end = mono_after(now, SECOND * 500),
			                .turns = mono_after(now, SECOND * 500),
			                .looked = { now.ns - tick_ns },
			                .retry = now,
			                .trip_ns = lot(&seed, SECOND * 1000 / 8) };
		claim.taken = moved;
		claim.granted = moved + lot(&seed, 20000);
		before = claim;
		look = claim_look(&claim, now, tick_ns);
		units = claim.granted - claim.taken;
		assert_int_equal(look.moved, moved);
		assert_true(look.gives <= units && !(look.gives > 0 && look.asks));
		if (moved == 0)
			assert_int_equal(look.gives, units);
		if (look.gives == 0)
			continue;
		claim = before; /* the next look at what is left, as fast as before */
		claim.granted -= look.gives;
		look = claim_look(&claim, now, tick_ns);
		assert_false(look.asks || look.gives > 0);
	}
}

/* ---- Federation ------------------------------------------------------------------------ */

/* Each tenant in one region or in several, with some of its demand in each; what it wants of a window
 * is half as much again as the limit, at least. */
static void draw_homes(uint64_t *seed)
{
	for (size_t i = 0; i < w.tenants; i++) {
		uint64_t rate = w.limit * 3 / 2 * 1000 / (SECOND / STEP_US) + 1;
		size_t home = lot(seed, w.regions);

		w.region[home].desks[i].demand = rate;
		for (size_t r = 0; r < w.regions; r++)
			if (r != home && lot(seed, 2))
				w.region[r].desks[i].demand =
				    rate / (1 + lot(seed, 20));
	}
}

static void draw_weights(uint64_t *seed)
{
	for (size_t i = 0; i < w.tenants; i++)
		w.weights[i] = 1 + lot(seed, 8);
}

static void draw_links(uint64_t *seed, uint64_t most_us)
{
	for (size_t r = 0; r < w.regions; r++) {
		w.region[r].way_us = lot(seed, most_us);
		w.region[r].ahead_us = SECOND + lot(seed, SECOND / 10);
		w.region[r].drift_ppm = (int64_t)lot(seed, 1001) - 500;
	}
}

static void check_totals(uint64_t seed)
{
	uint64_t weights = 0, all = 0;

	for (size_t i = 0; i < w.tenants; i++)
		weights += w.weights[i];
	for (size_t i = 0; i < w.tenants; i++) {
		double ideal = (double)w.limit * (WINDOWS - 2) * (double)w.weights[i] /
		               (double)weights;
		uint64_t got = 0;

		for (size_t window = 2; window < WINDOWS; window++)
			got += w.spent[window][i];
		all += got;
		if ((double)got < ideal * 0.999 || (double)got > ideal * 1.001)
			fail_msg("seed %llu: tenant %zu of %zu in %zu regions: %llu of "
			         "%.0f",
			         (unsigned long long)seed, i, w.tenants, w.regions,
			         (unsigned long long)got, ideal);
	}
	assert_true(all * 1000 >= w.limit * (WINDOWS - 2) * 999);
}

/* T1, T2: a pool that is up to a hundredth of a window away divides as one that is near: by weight,
 * whatever the regions. */
static void totals_are_those_of_one_pool(void **state)
{
	uint64_t asks = 0, quanta = 0;
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(60, 6); seed++) {
		uint64_t drawn = seed;

		open_world(2 + lot(&drawn, REGIONS - 1), 1 + lot(&drawn, TENANTS),
		           200000);
		draw_weights(&drawn);
		draw_homes(&drawn);
		draw_links(&drawn, SECOND / 200);
		open_desks();
		run(NOON + WINDOWS * SECOND);
		check_totals(seed);
		asks += w.asks;
		quanta += w.quanta;
		for (size_t window = 0; window < WINDOWS; window++)
			assert_true(spent_in(window) <= w.limit);
	}
	print_message("%llu quanta by %llu round trips\n", (unsigned long long)quanta,
	              (unsigned long long)asks);
	assert_true(asks * 4 <= quanta * 5);
}

/* Each part of a tenant in one region, with demand for more than all of the limit. */
static void draw_parts(uint64_t *seed)
{
	uint64_t rate = w.limit * 3 / 2 * 1000 / (SECOND / STEP_US) + 1;

	for (size_t i = 0; i < w.tenants; i++)
		w.region[lot(seed, w.regions)].desks[i].demand = rate;
}

/* Where the weights of a tenant's parts are given, and not learned, each part has a name of its own, and
 * gets by its weight, near or far. */
static void weights_that_are_given_to_regions_hold(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(60, 6); seed++) {
		uint64_t drawn = ~seed;

		open_world(2 + lot(&drawn, REGIONS - 1), 2 + lot(&drawn, TENANTS - 1),
		           200000);
		draw_weights(&drawn);
		draw_parts(&drawn);
		draw_links(&drawn, SECOND / 200);
		open_desks();
		run(NOON + WINDOWS * SECOND);
		check_totals(seed);
	}
}

/* T4, in each window: of what tenants got for their weights, the least over the most.  A unit is a
 * hundredth of the smallest share, so nothing but what cannot be divided is lost. */
static void check_ratios(uint64_t seed)
{
	for (size_t window = 2; window < WINDOWS; window++) {
		double least = (double)w.limit, most = 0;

		for (size_t i = 0; i < w.tenants; i++) {
			double part = (double)w.spent[window][i] / (double)w.weights[i];

			least = part < least ? part : least;
			most = part > most ? part : most;
		}
		if (least < 0.99 * most)
			fail_msg("seed %llu, window %zu: %.2f and %.2f for each weight",
			         (unsigned long long)seed, window, least, most);
	}
}

/* A window is a hundred round trips. */
static void the_ratio_of_processes_is_a_hundredth_at_most(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(100, 8); seed++) {
		uint64_t drawn = seed, least = UINT64_MAX, weights = 0;

		open_world(2 + lot(&drawn, REGIONS - 1), 2 + lot(&drawn, 7), 0);
		draw_weights(&drawn);
		for (size_t i = 0; i < w.tenants; i++) {
			weights += w.weights[i];
			least = lesser(least, w.weights[i]);
		}
		w.limit = (100 * weights + least - 1) / least;
		draw_homes(&drawn);
		draw_links(&drawn, SECOND / 200);
		open_desks();
		run(NOON + WINDOWS * SECOND);
		check_ratios(seed);
	}
}

/* The first region vanishes and returns, and the second is cut off and goes on; each for up to three
 * windows, from any instant. */
static void draw_troubles(uint64_t *seed)
{
	struct region *first = &w.region[0], *second = &w.region[1];

	first->gone_us = NOON + 2 * SECOND + lot(seed, SECOND);
	first->back_us = first->gone_us + lot(seed, 3 * SECOND);
	second->cut_us = NOON + 2 * SECOND + lot(seed, SECOND);
	second->joined_us = second->cut_us + lot(seed, 3 * SECOND);
}

/* Wherever a tenant asks it wants more than the limit; and one does in a region that stays. */
static void want_all(void)
{
	const uint64_t rate = w.limit * 2 * 1000 / (SECOND / STEP_US);

	w.region[w.regions - 1].desks[0].demand = rate;
	for (size_t r = 0; r < w.regions; r++)
		for (size_t i = 0; i < w.tenants; i++)
			if (w.region[r].desks[i].demand > 0)
				w.region[r].desks[i].demand = rate;
}

/* In whole windows the rest has what a region that is away does not ask for. */
static void check_others(uint64_t seed)
{
	for (size_t window = 3; window < WINDOWS; window++)
		if (spent_in(window) * 100 < w.limit * 99)
			fail_msg("seed %llu, window %zu: %llu of %llu",
			         (unsigned long long)seed, window,
			         (unsigned long long)spent_in(window),
			         (unsigned long long)w.limit);
}

static void check_shares(uint64_t seed)
{
	uint64_t weights = 0;

	for (size_t i = 0; i < w.tenants; i++)
		weights += w.weights[i];
	for (size_t i = 0; i < w.tenants; i++) {
		uint64_t share = w.limit * w.weights[i] / weights;

		if (w.spent[WINDOWS - 1][i] * 100 < share * 99)
			fail_msg("seed %llu: tenant %zu has %llu of %llu",
			         (unsigned long long)seed, i,
			         (unsigned long long)w.spent[WINDOWS - 1][i],
			         (unsigned long long)share);
	}
}

/* T1 in each window; T3 while a region is away; T2 when it has returned. */
static void a_region_vanishes_and_returns(void **state)
{
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(100, 10); seed++) {
		uint64_t drawn = seed;

		open_world(2 + lot(&drawn, REGIONS - 1), 2 + lot(&drawn, 7), 20000);
		draw_weights(&drawn);
		draw_homes(&drawn);
		want_all();
		draw_links(&drawn, SECOND / 200);
		draw_troubles(&drawn);
		open_desks();
		run(NOON + WINDOWS * SECOND);
		for (size_t window = 0; window < WINDOWS; window++)
			assert_true(spent_in(window) <= w.limit);
		if (w.regions > 2)
			check_others(seed);
		check_shares(seed); /* all regions are back */
	}
}

/* What the tenant has at its node, when it has asked for so much in all, a quantum at a time. */
static uint64_t get(size_t tenant, uint64_t weight, uint64_t wants)
{
	struct pool_ask ask = { .limit = w.limit,
		                .period_us = SECOND,
		                .release_us = SECOND,
		                .cap = GALE_UNITS_MAX,
		                .weight = weight,
		                .present = 1 };
	struct pool_answer answer;

	do {
		bool known = w.pool.window == w.now_us - w.now_us % SECOND;

		ask.window = w.pool.window;
		ask.had = known ? w.claims[tenant][0].granted : 0;
		ask.more = wants > ask.had ? wants - ask.had : 0;
		ask.least = ask.more > 0;
		answer = pool_answers(tenant, 0, &ask);
	} while (answer.granted > ask.had && answer.granted < wants);
	return answer.granted;
}

/* The predecessor's, where the law is the same.  W-14: who comes when all is used finds nothing. */
static void vectors_of_a_pool_of_regions(void **state)
{
	enum { US, EU, AP };
	static const struct {
		size_t tenant;
		uint64_t weight, wants, gets;
	} asks[] = { { US, 3, 10, 10 }, { EU, 1, 40, 25 },  { US, 3, 80, 75 },
		     { AP, 2, 30, 0 },  { EU, 1, 5, 25 },   { US, 3, 200, 75 },
		     { AP, 2, 60, 0 },  { EU, 1, 100, 25 }, { US, 3, 100, 75 },
		     { AP, 2, 100, 0 } };
	(void)state;

	open_world(1, 3, 100);
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		assert_int_equal(get(asks[i].tenant, asks[i].weight, asks[i].wants),
		                 asks[i].gets);
	open_world(1, 1, 50);
	assert_int_equal(get(US, 1, 80), 50);
	w.now_us += SECOND;
	assert_int_equal(get(US, 1, 50), 50);
}

/* W-4: clocks that are 50 ms off, before a pool of 100. */
static void clocks_that_differ_admit_no_more(void **state)
{
	uint64_t all = 0;
	(void)state;

	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(200, 20); seed++) {
		uint64_t drawn = seed;

		open_world(2, 2, 100);
		w.region[0].ahead_us = SECOND;
		w.region[1].ahead_us = seed % 2 ? SECOND + 50000 : SECOND - 50000;
		w.region[0].way_us = lot(&drawn, 20000);
		w.region[1].way_us = lot(&drawn, 20000);
		for (size_t r = 0; r < 2; r++)
			for (size_t i = 0; i < 2; i++)
				w.region[r].desks[i].demand = 1 + lot(&drawn, 300);
		open_desks();
		run(NOON + WINDOWS * SECOND);
		for (size_t window = 0; window < WINDOWS; window++) {
			assert_true(spent_in(window) <= w.limit);
			all += spent_in(window);
		}
	}
	assert_true(all > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_goes_on_spending_asks_ahead),
		cmocka_unit_test(what_is_idle_goes_back_and_what_is_used_stays),
		cmocka_unit_test(totals_are_those_of_one_pool),
		cmocka_unit_test(weights_that_are_given_to_regions_hold),
		cmocka_unit_test(the_ratio_of_processes_is_a_hundredth_at_most),
		cmocka_unit_test(a_region_vanishes_and_returns),
		cmocka_unit_test(vectors_of_a_pool_of_regions),
		cmocka_unit_test(clocks_that_differ_admit_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
