/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_test.c -- a budget for tenants whose demands nobody knows.
 *
 * By hand, and by lot: tenants come, pause, ask at any cost, are removed, and change.  What
 * they get is counted apart from the escrow, and their shares are worked out from nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "engine/escrow.h"
#include "tests/support/length.h"

#define ROOM 12
#define PERIOD_US 1000000
#define RELEASE_US 100000

static uint64_t lot(uint64_t *seed, uint64_t below)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % below;
}

/* ---- A world ----------------------------------------------------------------------- */

struct world {
	struct escrow escrow;
	struct escrow_tenant tenants[ROOM];
	uint64_t now_us;
};

static void open_world(struct world *world, uint64_t limit)
{
	struct escrow_settings set = { .limit = limit,
		                       .period_us = PERIOD_US,
		                       .release_us = RELEASE_US };

	world->now_us = UINT64_C(1700000000) * 1000000;
	escrow_init(&world->escrow, &set, world->tenants, ROOM);
}

static uint32_t add_with(struct world *world, struct escrow_terms terms)
{
	uint32_t number;

	assert_int_equal(escrow_add(&world->escrow, &terms, &number), FAIR_GOOD);
	return number;
}

static uint32_t add(struct world *world, uint32_t weight)
{
	return add_with(
	    world, (struct escrow_terms){ .cap = GALE_UNITS_MAX, .weight = weight });
}

static struct escrow_answer ask(struct world *world, uint32_t number, uint64_t cost)
{
	escrow_pass(&world->escrow, world->now_us);
	return escrow_ask(&world->escrow, number, cost, world->now_us);
}

/* How many of so many asks for one unit are admitted. */
static uint64_t flood(struct world *world, uint32_t number, uint64_t asks)
{
	uint64_t admitted = 0;

	while (asks-- > 0)
		admitted += ask(world, number, 1).admitted;
	return admitted;
}

static void assert_says(struct escrow_answer answer, bool admitted, uint64_t share,
                        uint64_t remaining)
{
	assert_int_equal(answer.admitted, admitted);
	assert_int_equal(answer.share, share);
	assert_int_equal(answer.remaining, remaining);
}

/* ---- Vectors ----------------------------------------------------------------------- */

static void one_tenant_has_all(void **state)
{
	struct world world;
	struct escrow_answer answer;
	uint32_t a;

	(void)state;
	open_world(&world, 10);
	a = add(&world, 1);
	assert_int_equal(flood(&world, a, 12), 10);
	world.now_us += PERIOD_US / 4;
	answer = ask(&world, a, 1);
	assert_int_equal(answer.reset_us, PERIOD_US - PERIOD_US / 4);
	assert_int_equal(answer.retry_us, answer.reset_us);
	open_world(&world, 100);
	a = add(&world, 1);
	assert_says(ask(&world, a, 5), true, 100, 95);
}

static void two_equal_tenants_have_a_half_each(void **state)
{
	struct world world;
	uint32_t tenants[2];
	uint64_t admitted[2] = { 1, 1 };

	(void)state;
	open_world(&world, 10);
	for (int i = 0; i < 2; i++)
		tenants[i] = add(&world, 1);
	for (int i = 0; i < 2; i++)
		assert_true(ask(&world, tenants[i], 1).admitted);
	for (int i = 0; i < 18; i++)
		admitted[i % 2] += ask(&world, tenants[i % 2], 1).admitted;
	assert_int_equal(admitted[0], 5);
	assert_int_equal(admitted[1], 5);
}

static void four_to_one_is_kept_step_by_step(void **state)
{
	struct world world;
	uint32_t high, low;

	(void)state;
	open_world(&world, 10);
	high = add(&world, 4);
	low = add(&world, 1);
	assert_says(ask(&world, high, 1), true, 10, 9);
	assert_says(ask(&world, low, 1), true, 2, 1);
	assert_says(ask(&world, high, 1), true, 8, 6);
	assert_says(ask(&world, low, 1), true, 2, 0);
	for (uint64_t left = 6; left-- > 0;) {
		assert_says(ask(&world, high, 1), true, 8, left);
		assert_says(ask(&world, low, 1), false, 2, 0);
	}
	assert_says(ask(&world, high, 1), false, 8, 0);
}

static void a_tenant_alone_need_not_wait_for_another(void **state)
{
	struct world world;
	uint32_t high, low;

	(void)state;
	open_world(&world, 10);
	high = add(&world, 4);
	low = add(&world, 1);
	assert_int_equal(flood(&world, low, 20), 10);
	world.now_us += PERIOD_US;
	assert_int_equal(flood(&world, high, 1), 1);
	assert_int_equal(flood(&world, low, 21), 2);
}

static void an_answer_says_what_is_left_of_the_share(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	a = add(&world, 1);
	b = add(&world, 1);
	assert_says(ask(&world, a, 2), true, 10, 8);
	assert_says(ask(&world, b, 1), true, 5, 4);
}

/* W-14: what others have used up is gone for the window; the next one is shared. */
static void who_comes_late_gets_what_is_left(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	a = add(&world, 1);
	b = add(&world, 1);
	assert_int_equal(flood(&world, a, 8), 8);
	assert_int_equal(flood(&world, b, 9), 2);
	world.now_us += PERIOD_US - world.now_us % PERIOD_US;
	assert_int_equal(flood(&world, b, 1), 1);
	assert_int_equal(flood(&world, a, 9), 5);
	assert_int_equal(flood(&world, b, 9), 4);
}

/* W-8, R-8: a tenant that is removed leaves what it has used.  ESCROW-1 */
static void r8_a_thousand_tenants_in_room_for_two(void **state)
{
	struct escrow_settings set = { .limit = 10,
		                       .period_us = PERIOD_US,
		                       .release_us = RELEASE_US };
	struct escrow_terms terms = { .cap = 10, .weight = 1 };
	struct escrow_tenant tenants[2];
	struct escrow escrow;
	uint32_t numbers[1000];
	uint64_t admitted = 0;

	(void)state;
	escrow_init(&escrow, &set, tenants, 2);
	for (int i = 0; i < 1000; i++) {
		if (i >= 2)
			escrow_remove(&escrow, numbers[i - 2]);
		assert_int_equal(escrow_add(&escrow, &terms, &numbers[i]), FAIR_GOOD);
		admitted += escrow_ask(&escrow, numbers[i], 1, 0).admitted;
		assert_true(escrow_valid(&escrow));
	}
	assert_int_equal(admitted, 10);
	assert_int_equal(escrow_add(&escrow, &terms, &numbers[0]), FAIR_FULL);
}

/* W-9, R-9.  ESCROW-3 */
static void r9_who_has_asked_once_and_pauses(void **state)
{
	struct world world;
	uint64_t got;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10000);
	a = add(&world, 1);
	b = add(&world, 1);
	assert_true(ask(&world, b, 1).admitted);
	got = flood(&world, a, 10000);
	assert_int_equal(got, 5000);
	world.now_us += RELEASE_US - 1;
	assert_int_equal(ask(&world, a, 1).retry_us, 1);
	assert_int_equal(flood(&world, b, 0), 0);
	world.now_us += 1;
	assert_int_equal(got + flood(&world, a, 10000), 9999);
}

/* W-29, R-15.  ESCROW-2 */
static void r15_nobody_borrows_with_a_share_of_its_own(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 1000);
	a = add(&world, 1);
	b = add(&world, 1);
	assert_true(ask(&world, b, 1).admitted);
	assert_true(ask(&world, a, 100).admitted);
	assert_false(ask(&world, a, 800).admitted);
	assert_false(ask(&world, a, 401).admitted);
	assert_true(ask(&world, a, 400).admitted);
	assert_int_equal(flood(&world, b, 1000), 499);
	assert_int_equal(flood(&world, a, 1000), 0);
}

/* ---- Guarantees and caps ----------------------------------------------------------- */

static void guarantees_come_first_and_caps_last(void **state)
{
	struct world world;
	uint32_t a, b, c;

	(void)state;
	open_world(&world, 100);
	a = add_with(&world, (struct escrow_terms){ 40, 100, 1 });
	b = add_with(&world, (struct escrow_terms){ 0, 100, 1 });
	c = add_with(&world, (struct escrow_terms){ 0, 10, 4 });
	for (uint32_t i = 0; i < 3; i++)
		assert_true(ask(&world, i, 1).admitted);
	assert_int_equal(escrow_share(&world.escrow, a), 65);
	assert_int_equal(escrow_share(&world.escrow, b), 25);
	assert_int_equal(escrow_share(&world.escrow, c), 10);
	assert_int_equal(flood(&world, b, 100) + 1, 25);
	assert_int_equal(flood(&world, c, 100) + 1, 10);
	assert_int_equal(flood(&world, a, 100) + 1, 65);
}

/* Who asks within its guarantee at least each release_us is admitted, each time, whatever others
 * have had lent.  ESCROW-2 */
static void a_guarantee_is_there_whenever_it_is_asked_for(void **state)
{
	struct world world;
	uint32_t sleeper, others[3];
	uint64_t got = 0;

	(void)state;
	open_world(&world, 100);
	sleeper = add_with(&world, (struct escrow_terms){ 20, 100, 1 });
	for (int i = 0; i < 3; i++)
		others[i] = add(&world, 1000);
	for (int turn = 0; turn < 20; turn++) {
		assert_true(ask(&world, sleeper, 1).admitted);
		for (int i = 0; i < 3; i++)
			got += flood(&world, others[(i + turn) % 3], 40);
		world.now_us += RELEASE_US / 4;
	}
	assert_int_equal(got, 80);
}

/* Of what others have left, in proportion to the guarantees. */
static void guarantees_that_come_late_shrink_alike(void **state)
{
	struct world world;
	uint32_t a, b, c;

	(void)state;
	open_world(&world, 100);
	a = add(&world, 1);
	b = add_with(&world, (struct escrow_terms){ 60, 100, 1 });
	c = add_with(&world, (struct escrow_terms){ 20, 100, 1 });
	assert_int_equal(flood(&world, a, 60), 60);
	(void)ask(&world, b, 100);
	(void)ask(&world, c, 100);
	assert_int_equal(escrow_share(&world.escrow, b), 30);
	assert_int_equal(escrow_share(&world.escrow, c), 10);
	assert_int_equal(flood(&world, a, 10), 0);
	assert_int_equal(flood(&world, b, 100), 30);
	assert_int_equal(flood(&world, c, 100), 10);
}

/* W-14: with protection even who has never asked finds its share. */
static void who_comes_late_is_protected_early_in_a_window(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	world.escrow.set.protect_us = PERIOD_US / 2;
	a = add(&world, 1);
	b = add(&world, 1);
	assert_int_equal(flood(&world, a, 20), 5);
	world.now_us += PERIOD_US / 2 - 1;
	assert_int_equal(flood(&world, a, 20), 0);
	assert_true(ask(&world, b, 1).admitted);
	world.now_us += 1;
	assert_int_equal(flood(&world, a, 20), 0); /* b has asked */
	world.now_us += RELEASE_US;
	assert_int_equal(flood(&world, a, 20), 4);
}

static void a_parted_budget_is_not_lent(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	world.escrow.set.parted = true;
	a = add(&world, 3);
	b = add(&world, 1);
	assert_true(ask(&world, b, 1).admitted);
	assert_int_equal(flood(&world, a, 20), 7);
	assert_int_equal(flood(&world, b, 20), 1);
}

/* ---- Large costs ------------------------------------------------------------------- */

/* Windows in which everybody asks, in rounds that are shorter than release_us. */
#define ROUNDS 16

static void next_round(struct world *world)
{
	world->now_us += PERIOD_US / ROUNDS;
}

/* With a share of 5 a cost of 8 never fits; what is owed is saved up.  ESCROW-4 */
static void what_a_large_cost_leaves_is_owed(void **state)
{
	struct world world;
	uint64_t large = 0, small = 0;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	a = add(&world, 1);
	b = add(&world, 1);
	for (int round = 0; round < 100 * ROUNDS; round++) {
		small += ask(&world, b, 1).admitted;
		large += ask(&world, a, 8).admitted ? 8 : 0;
		next_round(&world);
	}
	assert_in_range(large, 392, 500);
	assert_in_range(small, 300, 500);
}

/* Who comes late, or comes back, is owed nothing for the time when it was not there. */
static void who_was_not_there_is_owed_nothing(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 10);
	a = add(&world, 1);
	b = add(&world, 1);
	for (int window = 0; window < 4; window++) {
		for (int round = 0; round < ROUNDS - 1; round++, next_round(&world))
			(void)ask(&world, a, 1);
		assert_false(ask(&world, b, 8).admitted);
		next_round(&world);
		(void)ask(&world, a, 1);
		assert_int_equal(world.tenants[b].owed, 0);
	}
}

/* Ten whose share is 1 and whose asks cost 8: one after the other.  ESCROW-4 */
static void nobody_waits_for_ever_for_what_is_owed(void **state)
{
	struct world world;
	uint64_t got[10] = { 0 };

	(void)state;
	open_world(&world, 10);
	for (int i = 0; i < 10; i++)
		(void)add(&world, 1);
	for (int round = 0; round < 200 * ROUNDS; round++) {
		for (uint32_t i = 0; i < 10; i++)
			got[i] += ask(&world, i, 8).admitted;
		next_round(&world);
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(got[i], 10, 25);
}

/* ---- From nothing ------------------------------------------------------------------- */

/* A level, as a fraction. */
struct fraction {
	uint128 n, d;
};

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct vessel {
	uint64_t base, slope, used, cap;
};

/* d times what it has at the level. */
static uint128 held_at(const struct vessel *vessel, struct fraction at)
{
	uint128 has = vessel->base * at.d + vessel->slope * at.n;

	if (has > vessel->cap * at.d)
		has = vessel->cap * at.d;
	return has > vessel->used * at.d ? has : vessel->used * at.d;
}

static bool is_below(struct fraction at, const struct vessel *all, int count,
                     uint64_t water)
{
	uint128 sum = 0;

	for (int i = 0; i < count; i++)
		sum += held_at(&all[i], at);
	return sum <= water * at.d;
}

/* At d: where its line begins to rise, and where it ends. */
static bool rises_from(const struct vessel *vessel, struct fraction at)
{
	uint128 has = vessel->base * at.d + vessel->slope * at.n;

	return vessel->slope > 0 && has >= vessel->used * at.d &&
	       has < vessel->cap * at.d;
}

/* The highest of the levels at which a vessel begins or ends to rise, and that the water
 * reaches. */
static struct fraction highest_bend(const struct vessel *all, int count, uint64_t water)
{
	struct fraction best = { 0, 1 };

	for (int i = 0; i < 2 * count; i++) {
		const struct vessel *vessel = &all[i / 2];
		uint64_t to = i % 2 ? vessel->cap : vessel->used;
		struct fraction at = { to > vessel->base ? to - vessel->base : 0,
			               vessel->slope };

		if (vessel->slope > 0 && at.n * best.d > best.n * at.d &&
		    is_below(at, all, count, water))
			best = at;
	}
	return best;
}

/* False: none rises any more. */
static bool find_water(const struct vessel *all, int count, uint64_t water,
                       struct fraction *ret_level)
{
	struct fraction bend = highest_bend(all, count, water);
	uint64_t fixed = 0, slopes = 0;

	for (int i = 0; i < count; i++) {
		if (rises_from(&all[i], bend)) {
			fixed += all[i].base;
			slopes += all[i].slope;
		} else {
			fixed += (uint64_t)(held_at(&all[i], bend) / bend.d);
		}
	}
	*ret_level = (struct fraction){ water > fixed ? water - fixed : 0, slopes };
	return slopes > 0;
}

static int present_of(const struct escrow *escrow, uint32_t *ret_numbers)
{
	int count = 0;

	for (uint32_t i = 0; i < ROOM; i++)
		if (escrow->tenants[i].list == ESCROW_PRESENT)
			ret_numbers[count++] = i;
	return count;
}

static void fill_vessels(const struct escrow *escrow, const uint32_t *numbers,
                         int count, struct vessel *ret_all)
{
	uint64_t sum = escrow->absent;
	bool is_short;

	for (int i = 0; i < count; i++) {
		const struct escrow_tenant *tenant = &escrow->tenants[numbers[i]];

		sum += most(tenant->used, tenant->terms.guarantee + tenant->repaid);
	}
	is_short = sum > escrow->set.limit;
	for (int i = 0; i < count; i++) {
		const struct escrow_tenant *tenant = &escrow->tenants[numbers[i]];
		uint64_t base = tenant->terms.guarantee + tenant->repaid;

		ret_all[i] = (struct vessel){
			.base = is_short ? 0 : base,
			.slope = is_short ? base : tenant->terms.weight,
			.used = tenant->used,
			.cap = most(tenant->terms.cap, tenant->used),
		};
	}
}

/* Each share is what it comes to when it is worked out from nothing. */
static void check_shares(struct world *world, uint64_t seed)
{
	struct escrow *escrow = &world->escrow;
	struct vessel all[ROOM];
	uint32_t numbers[ROOM];
	int count = present_of(escrow, numbers);
	struct fraction level;
	uint64_t water;

	if (count == 0)
		return;
	escrow->settled = false;
	(void)escrow_share(escrow, numbers[0]);
	fill_vessels(escrow, numbers, count, all);
	water =
	    escrow->set.limit > escrow->absent ? escrow->set.limit - escrow->absent : 0;
	if (!find_water(all, count, water, &level))
		return;
	for (int i = 0; i < count; i++) {
		uint128 share = all[i].base + all[i].slope * level.n / level.d;
		uint64_t cap = escrow->tenants[numbers[i]].terms.cap;

		/* Over it, its share may be any that is less. */
		if (most(all[i].used, escrow_share(escrow, numbers[i])) !=
		    most(all[i].used, (uint64_t)(share < cap ? share : cap)))
			fail_msg("seed %lu: a share of %lu, not %lu",
			         (unsigned long)seed,
			         (unsigned long)escrow_share(escrow, numbers[i]),
			         (unsigned long)share);
	}
}

/* ---- By lot ------------------------------------------------------------------------- */

/* What was admitted, counted apart from the escrow. */
struct books {
	uint64_t window;
	uint64_t limit; /* the largest in force in the window */
	uint64_t used;  /* by all */
	uint64_t by[ROOM];
};

static void turn_page(struct books *books, const struct world *world)
{
	uint64_t window = world->now_us - world->now_us % PERIOD_US;

	if (window > books->window)
		*books = (struct books){ .window = window,
			                 .limit = world->escrow.set.limit };
	books->limit = most(books->limit, world->escrow.set.limit);
}

static struct escrow_terms draw_terms(const struct escrow *escrow, uint64_t others,
                                      uint64_t *seed)
{
	uint64_t limit = escrow->set.limit, left = limit - others;
	struct escrow_terms terms = { .weight = 1 + (uint32_t)lot(seed, 9),
		                      .cap = GALE_UNITS_MAX };

	if (lot(seed, 20) == 0)
		terms.weight = 1 + (uint32_t)lot(seed, FAIR_WEIGHT_MAX);
	if (lot(seed, 3) == 0)
		terms.guarantee = lot(seed, 1 + left / 2);
	if (lot(seed, 3) == 0)
		terms.cap = most(1, terms.guarantee) + lot(seed, limit);
	if (terms.cap > GALE_UNITS_MAX)
		terms.cap = GALE_UNITS_MAX;
	return terms;
}

static void add_by_lot(struct world *world, struct books *books, uint64_t *seed)
{
	struct escrow *escrow = &world->escrow;
	struct escrow_terms terms = draw_terms(escrow, escrow->guaranteed, seed);
	uint32_t number;

	if (escrow_add(escrow, &terms, &number) == FAIR_GOOD)
		books->by[number] = 0;
}

static uint64_t limit_by_lot(uint64_t was, uint64_t *seed)
{
	uint64_t limit = 1 + lot(seed, 2 * was);

	return limit < GALE_UNITS_MAX ? limit : GALE_UNITS_MAX;
}

/* Others than asks: someone is removed, or changed; the limit is. */
static void change_by_lot(struct world *world, struct books *books, uint64_t *seed)
{
	struct escrow *escrow = &world->escrow;
	uint32_t number = (uint32_t)lot(seed, ROOM);
	struct escrow_tenant *tenant = &escrow->tenants[number];
	struct escrow_terms terms;

	if (tenant->list == ESCROW_FREE || lot(seed, 4) == 0) {
		add_by_lot(world, books, seed);
	} else if (lot(seed, 4) == 0) {
		escrow_remove(escrow, number);
	} else if (lot(seed, 4) == 0) {
		(void)escrow_set_limit(escrow, limit_by_lot(escrow->set.limit, seed));
	} else {
		terms = draw_terms(escrow, escrow->guaranteed - tenant->terms.guarantee,
		                   seed);
		assert_int_equal(escrow_change(escrow, number, &terms), FAIR_GOOD);
	}
}

/* Shares that are reserved, and what was used: not more than there is.  ESCROW-2 */
static void check_reserve(struct world *world, const struct books *books)
{
	struct escrow *escrow = &world->escrow;
	uint32_t numbers[ROOM];
	int count = present_of(escrow, numbers);
	uint64_t sum = books->used;

	for (int i = 0; i < count; i++) {
		uint64_t share = escrow_share(escrow, numbers[i]);
		uint64_t used = books->by[numbers[i]];

		assert_int_equal(escrow_used(escrow, numbers[i]), used);
		sum += share > used ? share - used : 0;
	}
	assert_true(sum <= most(escrow->set.limit, books->used));
}

/* Units of a debt that were paid since the books were written.  ESCROW-1 */
static void book_paid(const struct world *world, struct books *books, uint32_t number,
                      uint64_t admitted)
{
	uint64_t paid =
	    escrow_used(&world->escrow, number) - books->by[number] - admitted;

	books->used += paid;
	books->by[number] += paid;
	assert_true(books->used <= books->limit);
}

static void ask_by_lot(struct world *world, struct books *books, uint64_t *seed)
{
	struct escrow *escrow = &world->escrow;
	uint32_t number = (uint32_t)lot(seed, ROOM);
	uint64_t cost = 1 + lot(seed, lot(seed, 4) == 0 ? escrow->set.limit : 4);
	struct escrow_answer answer;
	uint64_t used;

	if (escrow->tenants[number].list == ESCROW_FREE)
		return;
	answer = ask(world, number, cost);
	book_paid(world, books, number, answer.admitted ? cost : 0);
	used = books->by[number];
	if (escrow->tenants[number].debt > 0) { /* ESCROW-5 */
		assert_false(answer.admitted);
		assert_int_equal(answer.remaining, 0);
		check_reserve(world, books);
		return;
	}
	if (books->used + cost <= escrow->set.limit && used + cost <= answer.share)
		assert_true(answer.admitted);
	if (!answer.admitted)
		return;
	assert_true(used <= answer.share);
	assert_int_equal(answer.lent, used + cost > answer.share);
	books->used += cost;
	books->by[number] += cost;
	assert_true(books->used <= books->limit); /* ESCROW-1 */
	check_reserve(world, books);
}

static void give_by_lot(struct world *world, struct books *books, uint64_t *seed)
{
	uint32_t number = (uint32_t)lot(seed, ROOM);
	uint64_t units = lot(seed, 1 + books->by[number]);

	escrow_give(&world->escrow, number, units, world->escrow.window - PERIOD_US);
	escrow_give(&world->escrow, number, units, world->escrow.window);
	if (world->escrow.tenants[number].list == ESCROW_FREE ||
	    world->escrow.window != books->window)
		return;
	books->used -= units;
	books->by[number] -= units;
}

static void debit_by_lot(struct world *world, struct books *books, uint64_t *seed)
{
	struct escrow *escrow = &world->escrow;
	uint32_t number = (uint32_t)lot(seed, ROOM);
	uint64_t units = 1 + lot(seed, 40);

	if (escrow->tenants[number].list == ESCROW_FREE)
		return;
	escrow_debit(escrow, number, units, escrow->window - PERIOD_US);
	assert_int_equal(escrow_used(escrow, number), books->by[number]);
	escrow_debit(escrow, number, units, escrow->window);
	book_paid(world, books, number, 0);
	check_reserve(world, books);
}

static void play(uint64_t number)
{
	uint64_t seed = number;
	struct world world;
	struct books books = { 0 };

	open_world(&world, lot(&seed, 10) == 0
	                       ? GALE_UNITS_MAX - lot(&seed, 1000)
	                       : 1 + lot(&seed, lot(&seed, 2) ? 60 : 5000));
	if (lot(&seed, 3) == 0)
		world.escrow.set.protect_us = lot(&seed, PERIOD_US);
	for (int i = 0; i < 1 + (int)lot(&seed, ROOM); i++)
		add_by_lot(&world, &books, &seed);
	for (int i = 0; i < 100; i++) {
		if (lot(&seed, 3) == 0)
			world.now_us +=
			    lot(&seed, lot(&seed, 9) ? 20000 : 2 * PERIOD_US);
		escrow_pass(&world.escrow, world.now_us);
		turn_page(&books, &world);
		if (lot(&seed, 12) == 0)
			change_by_lot(&world, &books, &seed);
		else if (lot(&seed, 20) == 0)
			give_by_lot(&world, &books, &seed);
		else if (lot(&seed, 20) == 0)
			debit_by_lot(&world, &books, &seed);
		else
			ask_by_lot(&world, &books, &seed);
		turn_page(&books, &world);
		assert_true(escrow_valid(&world.escrow));
		if (lot(&seed, 4) == 0)
			check_shares(&world, number);
	}
}

/* ESCROW-1, ESCROW-2, and the level itself. */
static void what_is_drawn_by_lot_keeps_the_laws(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < LONG_OR_BRIEF(20000, 2000); seed++)
		play(seed);
}

/* A level that was lowered is one that is found anew, unless more than a share was lent. */
static void a_level_is_lowered_as_if_it_were_found(void **state)
{
	uint64_t seed = 1, lowered = 0;
	struct world world;

	(void)state;
	for (int i = 0; i < LONG_OR_BRIEF(20000, 2000); i++) {
		uint64_t shares[ROOM], count;
		bool lent = false;

		open_world(&world, 100 + lot(&seed, 1000));
		count = 2 + lot(&seed, ROOM - 2);
		for (uint64_t j = 0; j < count; j++) {
			struct escrow_terms terms =
			    draw_terms(&world.escrow, world.escrow.guaranteed, &seed);

			lent |= ask(&world, add_with(&world, terms), 1 + lot(&seed, 10))
			            .lent;
		}
		lowered += world.escrow.settled && !lent;
		for (uint32_t j = 0; j < count; j++)
			shares[j] = escrow_share(&world.escrow, j);
		world.escrow.settled = false;
		for (uint32_t j = 0; j < count && !lent; j++)
			assert_int_equal(shares[j], escrow_share(&world.escrow, j));
	}
	assert_true(lowered > LONG_OR_BRIEF(10000, 1000));
}

/* ---- Costs above what was admitted --------------------------------------------------- */

/* Of two with half of 100 each.  ESCROW-5 */
static void what_was_used_beyond_is_paid_first(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 100);
	a = add_with(&world, (struct escrow_terms){ .cap = 100, .weight = 1 });
	b = add_with(&world, (struct escrow_terms){ .cap = 100, .weight = 1 });
	assert_true(ask(&world, a, 20).admitted && ask(&world, b, 1).admitted);
	escrow_debit(&world.escrow, a, 40, world.escrow.window);
	assert_int_equal(escrow_used(&world.escrow, a), 50);
	assert_int_equal(world.escrow.tenants[a].debt, 10);
	escrow_give(&world.escrow, a, 4, world.escrow.window);
	assert_false(ask(&world, a, 1).admitted);
	assert_int_equal(escrow_used(&world.escrow, a), 50);
	assert_true(ask(&world, b, 49).admitted);
	world.now_us += PERIOD_US;
	assert_true(ask(&world, a, 50).admitted);
}

static void units_of_who_was_removed_come_back(void **state)
{
	struct escrow_terms terms = { .cap = 100, .weight = 1 };
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 100);
	a = add_with(&world, terms);
	assert_true(ask(&world, a, 60).admitted);
	escrow_remove(&world.escrow, a);
	b = add_with(&world, terms);
	assert_false(ask(&world, b, 41).admitted);
	escrow_give_removed(&world.escrow, 50, world.escrow.window - PERIOD_US);
	assert_false(ask(&world, b, 41).admitted);
	escrow_give_removed(&world.escrow, 50, world.escrow.window);
	assert_true(escrow_valid(&world.escrow));
	assert_true(ask(&world, b, 90).admitted);
	escrow_give_removed(&world.escrow, 11, world.escrow.window); /* never held */
	assert_int_equal(world.escrow.used, 100);
}

/* ---- What a fleet of tenants gets ---------------------------------------------------- */

/* Some ask all the time, some pause: at its end the window is used to the last unit.  T3 */
static void a_window_is_used_up_though_tenants_pause(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < LONG_OR_BRIEF(1000, 200); number++) {
		uint64_t seed = number, count, busy, got = 0;
		struct world world;

		open_world(&world, 100 + lot(&seed, 400));
		count = 2 + lot(&seed, ROOM - 2);
		busy = 1 + lot(&seed, count - 1);
		for (uint64_t i = 0; i < count; i++)
			(void)add(&world, 1 + (uint32_t)lot(&seed, 9));
		for (int round = 0; round < ROUNDS; round++, next_round(&world))
			for (uint32_t i = 0; i < count; i++)
				if (i < busy || round < ROUNDS / 2)
					got += flood(&world, i,
					             i < busy ? 600 : lot(&seed, 3));
		assert_int_equal(got, world.escrow.set.limit);
	}
}

/* Is |a / of_a - b / of_b| at most q / of_a + q / of_b? */
static bool is_fair(uint64_t a, uint64_t of_a, uint64_t b, uint64_t of_b, uint64_t q)
{
	uint64_t x = a * of_b, y = b * of_a;

	return (x > y ? x - y : y - x) <= q * (of_a + of_b);
}

struct race {
	uint64_t count, dearest;
	uint64_t weight[ROOM], got[ROOM];
};

static void run_race(struct race *race, struct world *world, uint64_t *seed)
{
	for (int round = 0; round < ROUNDS; round++, next_round(world))
		for (uint64_t i = 0; i < 300; i++) {
			uint32_t n =
			    (uint32_t)(i < race->count ? i : lot(seed, race->count));
			uint64_t cost = 1 + lot(seed, race->dearest);

			if (ask(world, n, cost).admitted)
				race->got[n] += cost;
		}
}

static void race_by_lot(uint64_t number)
{
	uint64_t seed = number;
	struct race race = { .count = 2 + lot(&seed, 5), .dearest = 1 + lot(&seed, 9) };
	struct world world;

	open_world(&world, 500 + lot(&seed, 500));
	for (uint64_t i = 0; i < race.count; i++) {
		race.weight[i] = 1 + lot(&seed, 9);
		(void)escrow_ask(&world.escrow, add(&world, (uint32_t)race.weight[i]),
		                 1, 0);
	}
	world.escrow.now_us = 0;
	run_race(&race, &world, &seed);
	for (uint64_t i = 0; i < race.count; i++)
		for (uint64_t j = 0; j < i; j++)
			if (!is_fair(race.got[i], race.weight[i], race.got[j],
			             race.weight[j], race.dearest))
				fail_msg("seed %lu: %lu for %lu, %lu for %lu",
				         (unsigned long)number,
				         (unsigned long)race.got[i],
				         (unsigned long)race.weight[i],
				         (unsigned long)race.got[j],
				         (unsigned long)race.weight[j]);
}

/* Costs and weights by lot, all backlogged.  ESCROW-4, T4 */
static void who_asks_all_the_time_gets_by_weight(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++)
		race_by_lot(seed);
}

/* A budget that is large for its costs: the least and the most for its weight. */
static void the_ratio_is_a_thousandth_at_most(void **state)
{
	struct race race = { .count = 6, .dearest = 1 };
	uint64_t seed = 1;
	struct world world;

	(void)state;
	open_world(&world, 100000);
	for (uint64_t i = 0; i < race.count; i++) {
		race.weight[i] = i + 1;
		assert_true(ask(&world, add(&world, (uint32_t)i + 1), 1).admitted);
		race.got[i] = 1;
	}
	for (int i = 0; i < 1000000; i++) {
		uint32_t n = (uint32_t)lot(&seed, race.count);

		race.got[n] += ask(&world, n, 1).admitted;
	}
	for (uint64_t i = 0; i < race.count; i++)
		for (uint64_t j = 0; j < race.count; j++)
			assert_true(race.got[i] * race.weight[j] * 1000 >=
			            race.got[j] * race.weight[i] * 999);
}

/* Tenants that are looked at, for each ask: levels are found seldom. */
static void an_ask_looks_at_few_tenants(void **state)
{
	(void)state;
	for (uint32_t room = 10; room <= 10000; room *= 10) {
		struct escrow_settings set = { .limit = 400 * (uint64_t)room,
			                       .period_us = PERIOD_US,
			                       .release_us = PERIOD_US };
		struct escrow_tenant *tenants = calloc(room, sizeof(*tenants));
		struct escrow_terms terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
		struct escrow escrow;
		uint64_t seed = room, asks = 1000 * (uint64_t)room;
		uint32_t number;

		assert_non_null(tenants);
		escrow_init(&escrow, &set, tenants, room);
		for (uint32_t i = 0; i < room; i++)
			assert_int_equal(escrow_add(&escrow, &terms, &number),
			                 FAIR_GOOD);
		for (uint64_t i = 0; i < asks; i++)
			(void)escrow_ask(&escrow,
			                 (uint32_t)(i < room ? i : lot(&seed, room)), 1,
			                 i * 2 * PERIOD_US / asks);
		assert_true(escrow.walked < asks);
		free(tenants);
	}
}

/* ---- Bad input ---------------------------------------------------------------------- */

static void bad_terms_are_refused(void **state)
{
	struct world world;
	struct escrow_terms terms = { .guarantee = 60, .cap = 100, .weight = 1 };
	uint32_t number = 7;

	(void)state;
	open_world(&world, 100);
	assert_int_equal(add_with(&world, terms), 0);
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_GUARANTEE);
	terms.guarantee = 41;
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_GUARANTEE);
	terms.cap = 40;
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_CAP);
	terms = (struct escrow_terms){ .cap = 0, .weight = 1 };
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_CAP);
	terms = (struct escrow_terms){ .cap = 1, .weight = 0 };
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_WEIGHT);
	terms.weight = FAIR_WEIGHT_MAX + 1;
	assert_int_equal(escrow_add(&world.escrow, &terms, &number), FAIR_WEIGHT);
	assert_int_equal(escrow_change(&world.escrow, 0, &terms), FAIR_WEIGHT);
	assert_int_equal(number, 7);
	assert_int_equal(escrow_set_limit(&world.escrow, 59), FAIR_GUARANTEE);
	assert_int_equal(escrow_set_limit(&world.escrow, 60), FAIR_GOOD);
	assert_true(escrow_valid(&world.escrow));
}

static void a_cost_that_never_fits_is_told(void **state)
{
	struct world world;
	uint32_t a;

	(void)state;
	open_world(&world, 100);
	a = add_with(&world, (struct escrow_terms){ .cap = 50, .weight = 1 });
	assert_int_equal(ask(&world, a, 51).retry_us, GALE_NEVER);
	assert_true(ask(&world, a, 50).admitted);
	assert_int_not_equal(ask(&world, a, 1).retry_us, GALE_NEVER);
}

/* A limit that is lowered takes nothing back, and admits nothing until there is room. */
static void a_limit_below_what_was_used(void **state)
{
	struct world world;
	uint32_t a;

	(void)state;
	open_world(&world, 100);
	a = add(&world, 1);
	assert_int_equal(flood(&world, a, 80), 80);
	assert_int_equal(escrow_set_limit(&world.escrow, 50), FAIR_GOOD);
	assert_int_equal(flood(&world, a, 80), 0);
	assert_int_equal(escrow_ask_ahead(&world.escrow, a, 10), 0);
	world.now_us += PERIOD_US;
	assert_int_equal(flood(&world, a, 80), 50);
}

static void units_ahead_are_of_the_share(void **state)
{
	struct world world;
	uint32_t a, b;

	(void)state;
	open_world(&world, 100);
	a = add(&world, 1);
	b = add(&world, 1);
	assert_true(ask(&world, b, 1).admitted);
	assert_true(ask(&world, a, 1).admitted);
	assert_int_equal(escrow_ask_ahead(&world.escrow, a, 20), 20);
	assert_int_equal(escrow_ask_ahead(&world.escrow, a, 100), 29);
	assert_int_equal(flood(&world, b, 100), 49);
	escrow_give(&world.escrow, a, 20, world.escrow.window);
	assert_int_equal(flood(&world, b, 100), 0);
	assert_int_equal(flood(&world, a, 100), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_tenant_has_all),
		cmocka_unit_test(two_equal_tenants_have_a_half_each),
		cmocka_unit_test(four_to_one_is_kept_step_by_step),
		cmocka_unit_test(a_tenant_alone_need_not_wait_for_another),
		cmocka_unit_test(an_answer_says_what_is_left_of_the_share),
		cmocka_unit_test(who_comes_late_gets_what_is_left),
		cmocka_unit_test(r8_a_thousand_tenants_in_room_for_two),
		cmocka_unit_test(r9_who_has_asked_once_and_pauses),
		cmocka_unit_test(r15_nobody_borrows_with_a_share_of_its_own),
		cmocka_unit_test(guarantees_come_first_and_caps_last),
		cmocka_unit_test(a_guarantee_is_there_whenever_it_is_asked_for),
		cmocka_unit_test(guarantees_that_come_late_shrink_alike),
		cmocka_unit_test(who_comes_late_is_protected_early_in_a_window),
		cmocka_unit_test(a_parted_budget_is_not_lent),
		cmocka_unit_test(what_a_large_cost_leaves_is_owed),
		cmocka_unit_test(who_was_not_there_is_owed_nothing),
		cmocka_unit_test(nobody_waits_for_ever_for_what_is_owed),
		cmocka_unit_test(what_was_used_beyond_is_paid_first),
		cmocka_unit_test(units_of_who_was_removed_come_back),
		cmocka_unit_test(what_is_drawn_by_lot_keeps_the_laws),
		cmocka_unit_test(a_level_is_lowered_as_if_it_were_found),
		cmocka_unit_test(a_window_is_used_up_though_tenants_pause),
		cmocka_unit_test(who_asks_all_the_time_gets_by_weight),
		cmocka_unit_test(the_ratio_is_a_thousandth_at_most),
		cmocka_unit_test(an_ask_looks_at_few_tenants),
		cmocka_unit_test(bad_terms_are_refused),
		cmocka_unit_test(a_cost_that_never_fits_is_told),
		cmocka_unit_test(a_limit_below_what_was_used),
		cmocka_unit_test(units_ahead_are_of_the_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
