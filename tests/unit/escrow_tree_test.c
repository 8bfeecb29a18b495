/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_tree_test.c -- escrows below each other: three levels, by hand and by lot.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/escrow_tree.h"
#include "tests/support/length.h"

#define ORGS 3
#define USERS 4
#define PERIOD_US 1000000
#define RELEASE_US 100000

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

struct world {
	struct escrow root, orgs[ORGS];
	struct escrow_tenant root_tenants[ORGS], org_tenants[ORGS][USERS];
	uint64_t now_us;
};

static struct escrow_terms plain(uint32_t weight)
{
	return (struct escrow_terms){ .cap = GALE_UNITS_MAX, .weight = weight };
}

static enum fair_fault add(struct escrow *escrow, struct escrow_terms terms)
{
	uint32_t number;

	return escrow_add(escrow, &terms, &number);
}

static void open_world(struct world *world, uint64_t limit,
                       const struct escrow_terms *orgs)
{
	struct escrow_settings set = { .limit = limit,
		                       .period_us = PERIOD_US,
		                       .release_us = RELEASE_US };

	world->now_us = UINT64_C(1700000000) * 1000000;
	escrow_init(&world->root, &set, world->root_tenants, ORGS);
	for (uint32_t i = 0; i < ORGS; i++) {
		assert_int_equal(add(&world->root, orgs[i]), FAIR_GOOD);
		escrow_init(&world->orgs[i], &set, world->org_tenants[i], USERS);
		assert_true(escrow_hang(&world->orgs[i], &world->root, i));
	}
}

static void orgs_have_users(struct world *world, const uint32_t *counts)
{
	for (uint32_t i = 0; i < ORGS; i++)
		for (uint32_t j = 0; j < counts[i]; j++)
			assert_int_equal(add(&world->orgs[i], plain(1)), FAIR_GOOD);
}

static bool ask(struct world *world, uint32_t org, uint32_t user, uint64_t cost)
{
	escrow_tree_pass(&world->orgs[org], world->now_us);
	return escrow_ask(&world->orgs[org], user, cost, world->now_us).admitted;
}

static void check(const struct world *world)
{
	assert_true(escrow_valid(&world->root));
	for (uint32_t i = 0; i < ORGS; i++) {
		const struct escrow *org = &world->orgs[i];

		assert_true(escrow_valid(org)); /* TREE-1 */
		if (org->window == world->root.window)
			assert_true(org->used <= org->set.limit);
	}
}

/* ---- By hand ------------------------------------------------------------------------ */

/* Organisations by weight, and users of each by weight; who asks alone has all. */
static void each_level_is_parted_by_weight(void **state)
{
	const struct escrow_terms orgs[ORGS] = { plain(3), plain(1), plain(1) };
	uint64_t got[3] = { 0 };
	struct world world;

	(void)state;
	open_world(&world, 800, orgs);
	assert_int_equal(add(&world.orgs[0], plain(1)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], plain(2)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[1], plain(7)), FAIR_GOOD);
	for (int i = 0; i < 1000; i++) {
		got[0] += ask(&world, 0, 0, 1);
		got[1] += ask(&world, 0, 1, 1);
		got[2] += ask(&world, 1, 0, 1);
	}
	check(&world);
	assert_int_equal(got[0], 200);
	assert_int_equal(got[1], 400);
	assert_int_equal(got[2], 200);
	world.now_us += PERIOD_US;
	for (int i = 0; i < 1000; i++)
		got[0] += ask(&world, 0, 0, 1);
	assert_int_equal(got[0], 1000);
}

/* Each ask pays what is left of the least share on the way up; the node keeps some more, for a
 * guarantee.  ESCROW-5 */
static void who_owes_units_gets_none_of_what_is_kept(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 100, 100, 1 }, plain(1), plain(1) };
	struct world world;

	(void)state;
	open_world(&world, 1000, orgs);
	assert_int_equal(
	    add(&world.orgs[0], (struct escrow_terms){ 60, GALE_UNITS_MAX, 1 }),
	    FAIR_GOOD);
	assert_true(ask(&world, 0, 0, 1));
	escrow_debit(&world.orgs[0], 0, 90, world.orgs[0].window);
	assert_false(ask(&world, 0, 0, 1));
	assert_true(ask(&world, 0, 0, 9));
	assert_false(ask(&world, 0, 0, 1));
	assert_int_equal(escrow_used(&world.root, 0), 100);
	check(&world);
}

/* The same of a user below a node that owes: what is left of the share, beside what is kept, is not the
 * user's.  TREE-6 */
static void a_user_below_a_node_that_owes_gets_none_of_the_rest(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 100, 100, 1 }, plain(1), plain(1) };
	struct escrow_tenant user;
	struct world world;
	struct escrow team;

	(void)state;
	open_world(&world, 1000, orgs);
	assert_int_equal(
	    add(&world.orgs[0], (struct escrow_terms){ 60, GALE_UNITS_MAX, 1 }),
	    FAIR_GOOD);
	escrow_init(&team, &world.root.set, &user, 1);
	assert_true(escrow_hang(&team, &world.orgs[0], 0));
	assert_int_equal(add(&team, plain(1)), FAIR_GOOD);
	assert_true(escrow_ask(&team, 0, 1, world.now_us).admitted);
	escrow_debit(&world.orgs[0], 0, 90, world.orgs[0].window);
	assert_false(escrow_ask(&team, 0, 1, world.now_us).admitted);
	assert_true(escrow_ask(&team, 0, 9, world.now_us).admitted);
	assert_false(escrow_ask(&team, 0, 1, world.now_us).admitted);
	assert_int_equal(escrow_used(&world.root, 0), 100);
	assert_true(escrow_valid(&team));
	check(&world);
}

/* TREE-3: a guarantee deep in the tree is there, though its organisation has used its share. */
static void a_guarantee_below_is_there_whenever_it_is_asked_for(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 50, 1000, 1 }, plain(1), plain(8) };
	struct world world;

	(void)state;
	open_world(&world, 1000, orgs);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 50, 1000, 1 }),
	                 FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], plain(100)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[1], plain(1)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[2], plain(1)), FAIR_GOOD);
	for (int i = 0; i < 50; i++) {
		assert_true(ask(&world, 0, 0, 1));
		for (int j = 0; j < 100; j++) {
			(void)ask(&world, 0, 1, 1);
			(void)ask(&world, 1, 0, 1);
			if (i > 10) /* a heavy one comes late */
				(void)ask(&world, 2, 0, 1);
		}
		world.now_us += PERIOD_US / 60;
	}
	check(&world);
	assert_int_equal(world.root.used, 1000);
}

/* However little its node has got so far: TREE-3. */
static void an_ask_within_its_share_is_admitted_at_once(void **state)
{
	const struct escrow_terms orgs[ORGS] = { plain(1), plain(1), plain(1) };
	struct world world;

	(void)state;
	open_world(&world, 1000, orgs);
	assert_int_equal(add(&world.orgs[0], plain(1)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], plain(9)), FAIR_GOOD);
	assert_true(ask(&world, 0, 0, 1) && ask(&world, 0, 1, 1));
	assert_true(ask(&world, 0, 0, 90));
	assert_false(ask(&world, 0, 0, 20));
	assert_true(ask(&world, 0, 1, 890));
	check(&world);
}

/* It lives from what it has got, and asks nothing of those above: TREE-4. */
static void a_node_is_present_while_something_below_it_asks(void **state)
{
	const struct escrow_terms orgs[ORGS] = { plain(1), plain(1), plain(1) };
	struct world world;
	uint64_t got = 0;

	(void)state;
	open_world(&world, 1000, orgs);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(add(&world.orgs[i], plain(1)), FAIR_GOOD);
	for (int i = 0; i < 10; i++, world.now_us += RELEASE_US / 10) {
		got += ask(&world, 1, 0, 1);
		world.now_us += 8 * RELEASE_US / 10;
		for (int j = 0; j < 1000; j++)
			(void)ask(&world, 0, 0, 1);
	}
	for (int j = 0; j < 1000; j++)
		got += ask(&world, 1, 0, 1);
	assert_int_equal(got, 500);
	check(&world);
}

/* TREE-4 */
static void a_node_that_falls_silent_gives_back(void **state)
{
	const struct escrow_terms orgs[ORGS] = { plain(1), plain(1), plain(1) };
	struct world world;
	uint64_t got = 0;

	(void)state;
	open_world(&world, 1000, orgs);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(add(&world.orgs[i], plain(1)), FAIR_GOOD);
	assert_true(ask(&world, 1, 0, 1));
	for (int i = 0; i < 2000; i++)
		got += ask(&world, 0, 0, 1);
	assert_in_range(got, 1, 500 + 1000 / 8);
	world.now_us += RELEASE_US;
	for (int i = 0; i < 2000; i++)
		got += ask(&world, 0, 0, 1);
	assert_int_equal(got, 999);
	check(&world);
}

static void guarantees_below_are_within_the_nodes(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 50, 100, 1 }, plain(1), plain(1) };
	struct escrow_terms less = { 29, 100, 1 };
	struct world world;

	(void)state;
	open_world(&world, 100, orgs);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 51, 60, 1 }),
	                 FAIR_GUARANTEE);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 30, 60, 1 }),
	                 FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 21, 60, 1 }),
	                 FAIR_GUARANTEE);
	assert_int_equal(add(&world.orgs[1], (struct escrow_terms){ 1, 60, 1 }),
	                 FAIR_GUARANTEE);
	assert_int_equal(escrow_change(&world.root, 0, &less), FAIR_GUARANTEE);
}

static void a_tree_is_not_too_deep(void **state)
{
	struct escrow escrows[ESCROW_DEPTH_MAX + 1];
	struct escrow_tenant tenants[ESCROW_DEPTH_MAX + 1];
	struct escrow_settings set = { .limit = 9,
		                       .period_us = PERIOD_US,
		                       .release_us = RELEASE_US };
	uint64_t got = 0;

	(void)state;
	for (int i = 0; i <= ESCROW_DEPTH_MAX; i++) {
		escrow_init(&escrows[i], &set, &tenants[i], 1);
		if (i > 0)
			assert_int_equal(escrow_hang(&escrows[i], &escrows[i - 1], 0),
			                 i < ESCROW_DEPTH_MAX);
		assert_int_equal(add(&escrows[i], plain(1)), FAIR_GOOD);
	}
	for (int i = 0; i < 20; i++)
		got += escrow_ask(&escrows[ESCROW_DEPTH_MAX - 1], 0, 1, 0).admitted;
	assert_int_equal(got, 9);
}

/* ---- By lot ------------------------------------------------------------------------- */

static void draw(struct world *world, uint64_t *seed)
{
	struct escrow_terms orgs[ORGS];
	uint64_t limit = 50 + lot(seed, 2000);

	for (int i = 0; i < ORGS; i++) {
		orgs[i] = plain(1 + (uint32_t)lot(seed, 9));
		orgs[i].guarantee = lot(seed, 2) ? lot(seed, limit / 4) : 0;
		if (lot(seed, 4) == 0)
			orgs[i].cap = 1 + orgs[i].guarantee + lot(seed, limit);
	}
	open_world(world, limit, orgs);
	for (int i = 0; i < ORGS; i++)
		for (int j = 0; j < USERS; j++) {
			struct escrow_terms terms = plain(1 + (uint32_t)lot(seed, 9));

			if (lot(seed, 3) == 0)
				terms.guarantee = lot(seed, 1 + orgs[i].guarantee / 4);
			assert_int_equal(add(&world->orgs[i], terms), FAIR_GOOD);
		}
}

static void change(struct world *world, uint64_t *seed)
{
	uint32_t org = (uint32_t)lot(seed, ORGS), user = (uint32_t)lot(seed, USERS);
	struct escrow_terms terms = world->root_tenants[org].terms;
	uint64_t limit = world->root.set.limit;

	terms.weight = 1 + (uint32_t)lot(seed, 9);
	terms.guarantee = lot(seed, limit / 4);
	terms.cap = lot(seed, 2) ? terms.guarantee + 1 + lot(seed, limit) : terms.cap;
	if (lot(seed, 2))
		(void)escrow_change(&world->root, org, &terms);
	else
		(void)escrow_change(&world->orgs[org], user, &terms);
}

/* Of calls from before it had users, or of one below it. */
static void debit(struct world *world, uint64_t *seed)
{
	uint32_t org = (uint32_t)lot(seed, ORGS);
	uint64_t units = lot(seed, world->root.set.limit / 4);

	if (lot(seed, 2))
		escrow_debit(&world->root, org, units, world->root.window);
	else
		escrow_debit(&world->orgs[org], (uint32_t)lot(seed, USERS), units,
		             world->root.window);
}

/* TREE-1, TREE-2, TREE-6, though terms change; what is admitted is counted apart. */
static void what_is_drawn_by_lot_keeps_the_limit(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < LONG_OR_BRIEF(3000, 500); number++) {
		uint64_t seed = number, got = 0, window = 0;
		struct world world;

		draw(&world, &seed);
		for (int i = 0; i < 200; i++) {
			uint64_t cost = 1 + lot(&seed, lot(&seed, 4) ? 4 : 100);

			world.now_us += lot(&seed, lot(&seed, 9) ? 20000 : PERIOD_US);
			if (world.now_us / PERIOD_US != window)
				got = 0;
			window = world.now_us / PERIOD_US;
			if (lot(&seed, 20) == 0)
				change(&world, &seed);
			if (number % 2 && lot(&seed, 10) == 0)
				debit(&world, &seed);
			if (ask(&world, (uint32_t)lot(&seed, ORGS),
			        (uint32_t)lot(&seed, USERS), cost))
				got += cost;
			assert_true(got <= world.root.set.limit);
			check(&world);
		}
	}
}

/* Everybody asks all the time: what they get is what a budget whose demands are known is parted
 * into, up to some units for each level.  FAIR-1 */
static void who_asks_all_the_time_gets_its_part_of_the_tree(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < LONG_OR_BRIEF(200, 40); number++) {
		struct fair_node nodes[1 + ORGS + ORGS * USERS] = { 0 };
		uint64_t seed = number, got[ORGS][USERS] = { 0 };
		struct world world;

		draw(&world, &seed);
		nodes[0] = (struct fair_node){ .weight = 1,
			                       .guarantee = world.root.set.limit,
			                       .cap = world.root.set.limit };
		for (uint32_t i = 0; i < ORGS; i++) {
			struct escrow_terms *terms = &world.root_tenants[i].terms;

			nodes[1 + i] = (struct fair_node){
				0, terms->weight, terms->guarantee, terms->cap, 0, 0
			};
			for (uint32_t j = 0; j < USERS; j++) {
				terms = &world.org_tenants[i][j].terms;
				nodes[1 + ORGS + USERS * i + j] = (struct fair_node){
					1 + i,      terms->weight, terms->guarantee,
					terms->cap, 100000,        0
				};
			}
		}
		assert_int_equal(fair_check(nodes, 1 + ORGS + ORGS * USERS), FAIR_GOOD);
		fair_part(nodes, 1 + ORGS + ORGS * USERS, 0);
		world.now_us += PERIOD_US - RELEASE_US / 2;
		for (int round = -1; round < 3000; round++) {
			for (uint32_t i = 0; i < ORGS; i++)
				for (uint32_t j = 0; j < USERS; j++)
					got[i][j] += ask(&world, i, j, 1) && round >= 0;
			if (round < 0) /* all are present when the window turns */
				world.now_us += RELEASE_US / 2;
		}
		for (uint32_t i = 0; i < ORGS; i++)
			for (uint32_t j = 0; j < USERS; j++) {
				uint64_t part = nodes[1 + ORGS + USERS * i + j].part;

				if (got[i][j] > part + 3 || got[i][j] + 3 < part)
					fail_msg("seed %lu: %u of %u got %lu, not %lu",
					         (unsigned long)number, j, i,
					         (unsigned long)got[i][j],
					         (unsigned long)part);
			}
	}
}

/* Everybody with a guarantee asks, for no more than what is left of it if something is. */
static void claim_guarantees(struct world *world, uint64_t *seed, bool is_there)
{
	for (uint32_t i = 0; i < ORGS * USERS; i++) {
		struct escrow *org = &world->orgs[i / USERS];
		uint64_t guarantee = org->tenants[i % USERS].terms.guarantee, cost;
		uint64_t left = guarantee;

		if (guarantee == 0)
			continue;
		if (org->window == world->now_us - world->now_us % PERIOD_US)
			left -= lesser(left, escrow_used(org, i % USERS));
		cost = 1 + (left > 0 ? lot(seed, left) : 0);
		if (!ask(world, i / USERS, i % USERS, cost) && is_there && left > 0)
			fail_msg("user %u is refused %lu of %lu", i,
			         (unsigned long)cost, (unsigned long)guarantee);
	}
}

/* TREE-3: whoever asks often enough gets its guarantee, whatever others ask for, and when. */
static void a_guarantee_by_lot_is_there_whenever_it_is_asked_for(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < LONG_OR_BRIEF(3000, 300); number++) {
		uint64_t seed = number;
		struct world world;

		draw(&world, &seed);
		for (int i = 0; i < 400; i++) {
			uint32_t org = (uint32_t)lot(&seed, ORGS);
			uint32_t user = (uint32_t)lot(&seed, USERS);

			claim_guarantees(&world, &seed, /* is_there= */ i > 0);
			if (world.org_tenants[org][user].terms.guarantee == 0)
				for (int j = 0; j < 20; j++)
					(void)ask(&world, org, user,
					          1 + lot(&seed, 30));
			check(&world);
			world.now_us += lot(&seed, RELEASE_US * 9 / 10);
		}
	}
}

/* TREE-5: calls of 8 pass though the share is 5: of an organisation that has one user, and of a
 * user beside another one. */
static void what_a_large_cost_leaves_is_owed_at_each_level(void **state)
{
	const struct escrow_terms orgs[ORGS] = { plain(1), plain(1), plain(1) };
	uint64_t large[2] = { 0 }, small[2] = { 0 };
	struct world world;

	(void)state;
	open_world(&world, 15, orgs);
	orgs_have_users(&world, (const uint32_t[ORGS]){ 1, 2, 0 });
	assert_int_equal(
	    escrow_change(&world.root, 1, &(struct escrow_terms){ 0, 1000, 2 }),
	    FAIR_GOOD);
	for (int i = 0; i < 100 * 50; i++, world.now_us += PERIOD_US / 50) {
		small[0] += ask(&world, 1, 0, 1);
		large[0] += ask(&world, 0, 0, 8) ? 8 : 0;
	}
	assert_in_range(large[0], 392, 500);
	assert_in_range(small[0], 800, 1100);
	for (int i = 0; i < 100 * 50; i++, world.now_us += PERIOD_US / 50) {
		(void)ask(&world, 0, 0, 1);
		small[1] += ask(&world, 1, 0, 1);
		large[1] += ask(&world, 1, 1, 8) ? 8 : 0;
	}
	assert_in_range(large[1], 392, 500);
	assert_in_range(small[1], 300, 600);
}

/* TREE-6: of 50 a node owes 30 from before it had users.  What it keeps for the guarantee of one comes
 * first, and the other one gets what is left then. */
static void what_a_node_owes_is_paid_before_those_below_get_more(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 10, 1000, 1 }, plain(1), plain(1) };
	struct world world;
	uint64_t window;

	(void)state;
	open_world(&world, 100, orgs);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 10, 1000, 1 }),
	                 FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], plain(1)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[1], plain(1)), FAIR_GOOD);
	assert_true(ask(&world, 1, 0, 1));
	assert_true(ask(&world, 0, 0, 1));
	assert_true(ask(&world, 0, 1, 1));
	window = world.root.window;
	escrow_debit(&world.root, 0, 30, window);
	check(&world);
	assert_int_equal(escrow_used(&world.root, 0), 1 + 10 + 30);
	escrow_debit(&world.root, 0, 30, window);
	check(&world);
	assert_int_equal(escrow_used(&world.root, 0), 55);
	for (int i = 1; i < 10; i++) {
		assert_false(ask(&world, 0, 1, 1));
		assert_true(ask(&world, 0, 0, 1));
	}
	assert_false(ask(&world, 0, 0, 1));
	check(&world);
	while (ask(&world, 1, 0, 1))
		continue;
	assert_int_equal(world.root.used, 100);
}

/* TREE-6, TREE-3: a node owes 45 when its share is used.  One below it comes when others have left 49: its
 * guarantee is kept first. */
static void who_comes_below_a_node_that_owes_has_its_guarantee(void **state)
{
	const struct escrow_terms orgs[ORGS] = { { 10, 1000, 1 }, plain(1), plain(1) };
	struct world world;

	(void)state;
	open_world(&world, 100, orgs);
	assert_int_equal(add(&world.orgs[0], (struct escrow_terms){ 10, 1000, 1 }),
	                 FAIR_GOOD);
	assert_int_equal(add(&world.orgs[0], plain(1)), FAIR_GOOD);
	assert_int_equal(add(&world.orgs[1], plain(1)), FAIR_GOOD);
	assert_true(ask(&world, 1, 0, 1));
	while (escrow_used(&world.root, 0) < 50)
		assert_true(ask(&world, 0, 1, 1));
	escrow_debit(&world.root, 0, 45, world.root.window);
	world.now_us += RELEASE_US;
	for (int i = 0; i < 10; i++)
		assert_true(ask(&world, 0, 0, 1));
	assert_false(ask(&world, 0, 0, 1));
	check(&world);
	assert_int_equal(world.root.used, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_level_is_parted_by_weight),
		cmocka_unit_test(who_owes_units_gets_none_of_what_is_kept),
		cmocka_unit_test(a_user_below_a_node_that_owes_gets_none_of_the_rest),
		cmocka_unit_test(a_guarantee_below_is_there_whenever_it_is_asked_for),
		cmocka_unit_test(an_ask_within_its_share_is_admitted_at_once),
		cmocka_unit_test(a_node_is_present_while_something_below_it_asks),
		cmocka_unit_test(a_node_that_falls_silent_gives_back),
		cmocka_unit_test(guarantees_below_are_within_the_nodes),
		cmocka_unit_test(a_tree_is_not_too_deep),
		cmocka_unit_test(what_is_drawn_by_lot_keeps_the_limit),
		cmocka_unit_test(who_asks_all_the_time_gets_its_part_of_the_tree),
		cmocka_unit_test(a_guarantee_by_lot_is_there_whenever_it_is_asked_for),
		cmocka_unit_test(what_a_large_cost_leaves_is_owed_at_each_level),
		cmocka_unit_test(what_a_node_owes_is_paid_before_those_below_get_more),
		cmocka_unit_test(who_comes_below_a_node_that_owes_has_its_guarantee),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
