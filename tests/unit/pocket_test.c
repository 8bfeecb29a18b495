/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pocket_test.c -- what a seat has at hand is what it put there, until it is forgotten.
 *
 * What the library does with it is asked in cells_test.c, and what happens while a
 * purse is being evicted in tests/interleave.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "shards/lender.h"
#include "shards/pocket.h"
#include "sim/allocator.h"

#define MOST 1000 /* purses */
#define CELLS 2
#define KEY_ROOM 48

static struct lender lender = { .lending = LENDING_UNITS };
static struct lender other_lender = { .lending = LENDING_UNITS };

static struct world {
	struct evictor evictor; /* first */
	struct test_allocator allocator;
	struct grace grace;
	struct purses set;
	struct pocket pocket;
	uint8_t keys[MOST][KEY_ROOM];
} world;

static void evict(struct evictor *self, struct purse *purse)
{
	(void)self;
	(void)purse_empty(purse, &world.grace, (mono){ 0 });
}

static void gone(struct evictor *self, struct purse *purse)
{
	(void)self;
	(void)purse;
}

static int open_world(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.evictor = (struct evictor){ evict, gone };
	test_allocator_init(&world.allocator);
	grace_open(&world.grace);
	pocket_empty(&world.pocket, POCKET_NOTHING);
	return !purses_open(&world.set, &world.allocator.allocator, &world.grace,
	                    &world.evictor, MOST);
}

static int close_world(void **state)
{
	(void)state;
	purses_close(&world.set);
	grace_close(&world.grace);
	return !test_allocator_is_balanced(&world.allocator);
}

/* ---- Names ----------------------------------------------------------------------- */

static struct purse_name name_of(uint32_t which, size_t len)
{
	uint8_t *key = world.keys[which];

	memset(key, 'k', sizeof(world.keys[which]));
	memcpy(key + len - sizeof(which), &which, sizeof(which));
	return (struct purse_name){ &lender, key, (uint16_t)len,
		                    which * UINT64_C(0x9E3779B97F4A7C15) };
}

static struct purse *add(const struct purse_name *name)
{
	struct purse *purse = purses_add(&world.set, name);

	assert_non_null(purse);
	return purse;
}

static struct purse *add_hot(const struct purse_name *name)
{
	struct purse *purse = add(name);

	assert_true(purses_give_cells(&world.set, purse, CELLS));
	return purse;
}

static uint64_t forgotten(void)
{
	return grace_forgotten(&world.grace);
}

static void put(const struct purse_name *name, struct purse *purse)
{
	struct cells *cells = purse_cells(purse);

	pocket_put(&world.pocket, forgotten(), name, purse, cells ? cells->at : NULL);
}

static struct purse *at_hand(const struct purse_name *name)
{
	const struct pocket_place *place = NULL;

	if (pocket_is_good(&world.pocket, forgotten()))
		place = pocket_find(&world.pocket, name);
	return place ? place->purse : NULL;
}

/* ---- Finding --------------------------------------------------------------------- */

static void an_empty_pocket_has_nothing(void **state)
{
	struct purse_name name = name_of(0, 9);

	(void)state;
	assert_false(pocket_is_good(&world.pocket, forgotten()));
	assert_null(pocket_find(&world.pocket, &name));
}

static void keys_of_a_word_and_more_may_be_in_it(void **state)
{
	(void)state;
	for (size_t len = 1; len < 64; len++)
		assert_int_equal(pocket_may_have(len), len >= 8);
}

/* A name that differs in one byte only, and may be at another place. */
static void is_not_at_hand_with_another_byte(struct purse_name name, size_t at)
{
	uint8_t key[KEY_ROOM];

	memcpy(key, name.key, name.key_len);
	key[at] ^= 0x40;
	name.key = key;
	assert_null(at_hand(&name));
}

static void what_was_put_is_at_hand_by_its_name(void **state)
{
	(void)state;
	for (uint32_t len = POCKET_KEY_LEAST; len < KEY_ROOM; len++) {
		struct purse_name name = name_of(len, len), other = name;
		struct purse *purse = add_hot(&name);

		assert_null(at_hand(&name));
		put(&name, purse);
		assert_ptr_equal(at_hand(&name), purse);
		assert_ptr_equal(pocket_find(&world.pocket, &name)->cell,
		                 load_relaxed(&purse->cells)->at);
		for (size_t at = 0; at < len; at++)
			is_not_at_hand_with_another_byte(name, at);
		other.lender = &other_lender;
		assert_null(at_hand(&other));
	}
}

/* The words of all are the same, and so is the place: only how long they are differs, or what is
 * between their words. */
static void names_at_one_place_are_told_apart(void **state)
{
	static uint8_t same[] = "kkkkkkkkkkkkkkkkkkkk", other[] = "kkkkkkkk1kkkkkkkk";
	struct purse_name names[] = {
		{ &lender, same, 16, 1 },
		{ &lender, same, 9, 2 },
		{ &lender, same, 17, 3 },
		{ &lender, other, 17, 4 },
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct purse *purse = add_hot(&names[i]);

		put(&names[i], purse);
		for (int j = 0; j < 4; j++)
			assert_ptr_equal(at_hand(&names[j]), i == j ? purse : NULL);
	}
}

/* Ten thousand names of one kind are spread over all places. */
static void names_are_spread(void **state)
{
	unsigned met[POCKET_PLACES] = { 0 };
	uint8_t key[] = "user:00000000000";
	struct purse_name name = { &lender, key, 16, 0 };

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		for (unsigned rest = i, at = 15; rest > 0; rest /= 10, at--)
			key[at] = (uint8_t)('0' + rest % 10);
		met[pocket_index(&name)]++;
	}
	for (unsigned i = 0; i < POCKET_PLACES; i++)
		assert_in_range(met[i], 10000 / POCKET_PLACES / 2,
		                10000 / POCKET_PLACES * 2);
}

/* ---- Forgetting ------------------------------------------------------------------ */

/* POCKET-1 */
static void a_hot_purse_that_is_evicted_is_forgotten(void **state)
{
	struct purse_name name = name_of(0, 16), other = name_of(1, 16);
	struct purse *purse = add_hot(&name), *stays = add_hot(&other);
	uint64_t before = forgotten();

	(void)state;
	put(&name, purse);
	put(&other, stays);
	assert_true(purses_evict(&world.set, purse));
	assert_true(forgotten() > before);
	assert_null(at_hand(&name));
	assert_null(at_hand(&other)); /* which is looked up once more */
	put(&other, stays);
	assert_ptr_equal(at_hand(&other), stays);
	assert_null(at_hand(&name));
}

/* It has no cells, but refuses. */
static void so_is_any_that_is_at_hand(void **state)
{
	struct purse_name name = name_of(0, 16);
	struct purse *purse = add(&name);

	(void)state;
	put(&name, purse);
	assert_ptr_equal(at_hand(&name), purse);
	assert_null(pocket_find(&world.pocket, &name)->cell);
	assert_true(purses_evict(&world.set, purse));
	assert_null(at_hand(&name));
}

/* POCKET-1: it would be asked for what all share, and has cells now. */
static void what_is_split_is_forgotten(void **state)
{
	struct purse_name name = name_of(0, 16);
	struct purse *purse = add(&name);

	(void)state;
	put(&name, purse);
	assert_ptr_equal(at_hand(&name), purse);
	assert_true(purses_give_cells(&world.set, purse, CELLS));
	assert_null(at_hand(&name));
	put(&name, purse);
	assert_ptr_equal(pocket_find(&world.pocket, &name)->cell,
	                 load_relaxed(&purse->cells)->at);
}

/* PURSE-3: whoever has it at hand would not be told. */
static void what_is_dead_is_not_put(void **state)
{
	struct purse_name name = name_of(0, 16), other = name_of(1, 16);
	struct purse *purse = add_hot(&name), *stays = add_hot(&other);

	(void)state;
	put(&other, stays);
	assert_true(purse_kill(purse));
	put(&name, purse);
	assert_null(at_hand(&name));
	assert_ptr_equal(at_hand(&other), stays);
	store_relaxed(&purse->pins, 0);
}

/* What no seat has at hand is no reason to forget, even if it is hot. */
static void what_else_happens_is_not(void **state)
{
	struct purse_name name = name_of(0, 16), other = name_of(1, 16);
	struct purse *purse = add_hot(&name), *hot = add_hot(&other);

	(void)state;
	put(&name, purse);
	assert_true(purses_evict(&world.set, hot));
	for (uint32_t i = 2; i < MOST; i++) { /* the table grows */
		other = name_of(i, 16);
		(void)add(&other);
	}
	while (purses_turn(&world.set))
		;
	assert_ptr_equal(at_hand(&name), purse);
}

/* ---- Refusing -------------------------------------------------------------------- */

static void what_refuses_time_after_time_is_wanted(void **state)
{
	struct purse_name name = name_of(0, 16), other = name_of(1, 16);
	struct purse *a = add(&name), *b = add(&other);

	(void)state;
	for (int i = 0; i < POCKET_TIMES; i++)
		assert_false(pocket_wants(&world.pocket, a));
	assert_true(pocket_wants(&world.pocket, a));
	assert_true(pocket_wants(&world.pocket, a));
	for (int i = 0; i < 3 * POCKET_TIMES; i++)
		assert_false(pocket_wants(&world.pocket, i % 2 ? a : b));
}

static void one_in_sixteen_is_drawn(void **state)
{
	unsigned drawn = 0, in_a_row = 0, longest = 0;

	(void)state;
	for (unsigned i = 0; i < 16000; i++) {
		bool is_drawn = pocket_draws(&world.pocket);

		drawn += is_drawn;
		in_a_row = is_drawn ? 0 : in_a_row + 1;
		longest = in_a_row > longest ? in_a_row : longest;
	}
	assert_in_range(drawn, 900, 1100);
	assert_in_range(longest, 50, 400);
}

/* The hand does it, too. */
static void a_hot_purse_that_makes_room_is_forgotten(void **state)
{
	struct purse_name name = name_of(0, 16), other;
	struct purse *purse = add_hot(&name);

	(void)state;
	put(&name, purse);
	for (uint32_t i = 1; i < MOST; i++) {
		other = name_of(i, 16);
		purse_use(add(&other));
	}
	name = name_of(0, 16);
	assert_ptr_equal(at_hand(&name), purse);
	other = (struct purse_name){ &other_lender, name.key, 16, 7 };
	(void)add(&other);
	assert_null(purses_find(&world.set, &name));
	assert_null(at_hand(&name));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_pocket_has_nothing),
		TEST(keys_of_a_word_and_more_may_be_in_it),
		TEST(what_was_put_is_at_hand_by_its_name),
		TEST(names_at_one_place_are_told_apart),
		TEST(names_are_spread),
		TEST(a_hot_purse_that_is_evicted_is_forgotten),
		TEST(so_is_any_that_is_at_hand),
		TEST(what_is_split_is_forgotten),
		TEST(what_is_dead_is_not_put),
		TEST(what_else_happens_is_not),
		TEST(what_refuses_time_after_time_is_wanted),
		TEST(one_in_sixteen_is_drawn),
		TEST(a_hot_purse_that_makes_room_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
