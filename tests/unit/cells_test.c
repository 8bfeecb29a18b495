/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * cells_test.c -- hot keys under the whole library: what is forgotten, what is at hand,
 * what it costs the host to take back what lies in cells, and how much memory they may take.
 *
 * Cells are put in by hand; so the host takes the turns, and time stands still.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "face/lend.h"
#include "shards/local.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define LIMIT 1000
#define KEYS 64
#define CELLS 4
#define ROOM (8 * KEYS) /* keys: enough that as many may have cells */
#define PATIENCE GALE_SECONDS(30)

/* ---- Instruments ----------------------------------------------------------------- */

static _Atomic uint64_t barriers; /* that every thread had to pass */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long with[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		with[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_membarrier &&
	    (int)with[0] == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		add_relaxed(&barriers, 1);
	return __real_syscall(number, with[0], with[1], with[2], with[3], with[4],
	                      with[5]);
}

/* ---- The scene ------------------------------------------------------------------- */

static struct house house;

/* Long enough to be at hand. */
static const char *key_of(unsigned i)
{
	static char text[24];

	(void)snprintf(text, sizeof(text), "number %u", i);
	return text;
}

static struct purse *purse_of(unsigned i)
{
	const char *key = key_of(i);
	struct purse_name name = {
		.lender = &house.limiter->lender,
		.key = (const uint8_t *)key,
		.key_len = (uint16_t)strlen(key),
		.hash = local_hash(&house.limiter->lender, key, strlen(key)),
	};

	return purses_find(&house.runtime->shards[0].lessor.purses, &name);
}

static struct cell *cell_of(unsigned i)
{
	return local_cell(purse_of(i), house.seat->number);
}

/* The key's whole limit is with this node, and a slice of it in the seat's cell. */
static void make_hot(unsigned i)
{
	struct purses *set = &house.runtime->shards[0].lessor.purses;

	assert_int_equal(house_wait(&house, key_of(i)).verdict, GALE_ALLOW);
	assert_true(purses_give_cells(set, purse_of(i), CELLS));
	assert_int_equal(house_wait(&house, key_of(i)).verdict, GALE_ALLOW);
	assert_true(credit_units(load_relaxed(&cell_of(i)->credit)) > 0);
}

static void open_hot(unsigned keys, unsigned room)
{
	house_open(&house, &(struct house_plan){
			       .rule = gale_fixed_window(LIMIT, GALE_HOURS(1)),
			       .mode = GALE_LEASED,
			       .lease = { .sizing = GALE_SIZE_FIXED,
	                                  .batch = LIMIT,
	                                  .patience_us = PATIENCE },
			       .shards = 1,
			       .node_keys = room,
			       .turns = true,
			       .still = true,
			   });
	for (unsigned i = 0; i < keys; i++)
		make_hot(i);
	store_relaxed(&barriers, 0);
}

/* ---- What is forgotten ----------------------------------------------------------- */

/* The seat was about to add this to its cell when the actor took what was there. */
static void is_late(struct cell *cell)
{
	store_relaxed(&cell->mine_if_not, load_relaxed(&cell->credit));
	store_relaxed(&cell->state, CELL_TAKEN);
}

static uint64_t can_be_had(unsigned i)
{
	uint64_t count = 0;

	while (house_wait(&house, key_of(i)).verdict == GALE_ALLOW)
		count++;
	return count;
}

/* L1: the store counts from nothing again. */
static void a_reset_leaves_nothing_with_a_seat(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		const char *key = key_of(0);

		open_hot(1, ROOM);
		if (late)
			is_late(cell_of(0));
		assert_int_equal(
		    gale_reset(house.seat, house.limiter, key, strlen(key), PATIENCE),
		    GALE_ERR_OK);
		assert_int_equal(can_be_had(0), LIMIT);
		assert_true(house_close(&house));
	}
}

/* L1: the window may be over at the store. */
static void a_fence_leaves_nothing_with_a_seat(void **state)
{
	struct lessor *lessor;
	uint64_t word;

	(void)state;
	open_hot(1, ROOM);
	lessor = &house.runtime->shards[0].lessor;
	is_late(cell_of(0));
	lessor_unlist_lent(lessor, purse_of(0));
	lessor_drop_lent(lessor, link_of(lessor, &house.limiter->lender));
	assert_int_equal(purse_left(purse_of(0), seat_now(house.seat)), 0);
	assert_false(purse_take(purse_of(0), house.seat->number, seat_now(house.seat),
	                        1, &word));
	assert_true(house_close(&house));
}

/* ---- What is not forgotten ------------------------------------------------------- */

/* A unit is with the seat, and nothing else is to be had. */
static void open_with_one_unit(struct gale_key **ret_key)
{
	const char *key = key_of(0);
	struct purse *purse;
	struct cell *cell;
	uint64_t lives;

	open_hot(1, ROOM);
	purse = purse_of(0);
	cell = cell_of(0);
	lives = load_relaxed(&cell->credit) & ~CREDIT_UNITS_MAX;
	assert_int_equal(
	    gale_key_open(house.seat, house.limiter, key, strlen(key), ret_key),
	    GALE_ERR_OK);
	assert_int_equal(gale_ask_key(*ret_key, 1, NULL).verdict, GALE_ALLOW);
	store_relaxed(&purse->credit, 0); /* so that the key finds the cell */
	assert_int_equal(gale_ask_key(*ret_key, 1, NULL).verdict, GALE_ALLOW);
	store_relaxed(&cell->credit, lives | 1);
	is_late(cell);
	purse_deny(purse, credit_dies(lives), 1);
	gale_tick(house.seat);
}

static enum gale_verdict ask_in_a_way(int way, struct gale_key *held)
{
	const char *key = key_of(0);
	struct gale_question question = { key, strlen(key), 1, NULL };
	struct gale_answer answer;

	if (way == 0)
		return gale_ask(house.seat, house.limiter, key, strlen(key), 1, NULL)
		    .verdict;
	if (way == 1)
		return gale_ask_key(held, 1, NULL).verdict;
	gale_ask_many(house.seat, house.limiter, &question, 1, &answer);
	return answer.verdict;
}

/* A key that never runs out of credit has no other reason to go the long way. */
static void a_held_key_finds_its_cell(void **state)
{
	const char *name = key_of(0);
	struct gale_key *key;
	uint64_t shared;

	(void)state;
	open_hot(0, ROOM);
	assert_int_equal(house_wait(&house, name).verdict, GALE_ALLOW);
	assert_int_equal(
	    gale_key_open(house.seat, house.limiter, name, strlen(name), &key),
	    GALE_ERR_OK);
	gale_tick(house.seat);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gale_ask_key(key, 1, NULL).verdict, GALE_ALLOW);
	assert_true(purses_give_cells(&house.runtime->shards[0].lessor.purses,
	                              purse_of(0), CELLS));
	for (int i = 0; i < 2; i++)
		assert_int_equal(gale_ask_key(key, 1, NULL).verdict, GALE_ALLOW);
	shared = load_relaxed(&purse_of(0)->credit);
	for (int i = 0; i < 10; i++)
		assert_int_equal(gale_ask_key(key, 1, NULL).verdict, GALE_ALLOW);
	assert_int_equal(load_relaxed(&purse_of(0)->credit), shared);
	gale_key_close(key);
	assert_true(house_close(&house));
}

/* As if it had refused before it had cells; so it is not put there. */
static void put_at_hand_to_refuse(void)
{
	const char *key = key_of(0);
	struct purse_name name = { &house.limiter->lender, (const uint8_t *)key,
		                   (uint16_t)strlen(key), 0 };

	pocket_put(&house.seat->pocket, grace_forgotten(&house.runtime->grace), &name,
	           purse_of(0), NULL);
}

/* L5: a denial that is remembered does not keep a seat from what is its own. */
static void a_seat_is_not_denied_what_it_was_about_to_take(void **state)
{
	struct gale_key *held;

	(void)state;
	for (int way = 0; way < 6; way++) {
		open_with_one_unit(&held);
		if (way >= 3)
			put_at_hand_to_refuse();
		assert_int_equal(ask_in_a_way(way % 3, held), GALE_ALLOW);
		assert_int_equal(ask_in_a_way(way % 3, held), GALE_DENY);
		gale_key_close(held);
		assert_true(house_close(&house));
	}
}

/* The key has credit, which all share, and is held; with cells, its own is empty. */
static void open_with_credit(bool hot, struct gale_key **ret_key)
{
	const char *key = key_of(0);

	open_hot(hot ? 1 : 0, ROOM);
	if (!hot)
		assert_int_equal(house_wait(&house, key).verdict, GALE_ALLOW);
	assert_int_equal(
	    gale_key_open(house.seat, house.limiter, key, strlen(key), ret_key),
	    GALE_ERR_OK);
	gale_tick(house.seat);
	for (int i = 0; i < 2; i++)
		assert_int_equal(gale_ask_key(*ret_key, 1, NULL).verdict, GALE_ALLOW);
	if (hot)
		store_relaxed(&cell_of(0)->credit, 0);
	assert_true(credit_units(load_relaxed(&purse_of(0)->credit)) > 0);
}

/* L5: nor does it keep anybody from what all share. */
static void what_is_here_is_not_denied(void **state)
{
	struct gale_key *held;

	(void)state;
	for (int way = 0; way < 6; way++) {
		open_with_credit(way >= 3, &held);
		purse_deny(purse_of(0), credit_dies(load_relaxed(&purse_of(0)->credit)),
		           1);
		assert_int_equal(ask_in_a_way(way % 3, held), GALE_ALLOW);
		gale_key_close(held);
		assert_true(house_close(&house));
	}
}

/* Another seat was late, and does not ask again: nobody else can have what is its own. */
static void another_seat_was_late(void)
{
	struct purse *purse = purse_of(0);
	struct cell *cell = &load_relaxed(&purse->cells)->at[CELLS - 1];
	uint64_t word = load_relaxed(&purse->credit);

	assert_true(house.seat->number != CELLS - 1);
	store_relaxed(&purse->credit, word - 1);
	store_relaxed(&cell->credit, (word & ~CREDIT_UNITS_MAX) | 1);
	is_late(cell);
}

static unsigned take_all(void)
{
	unsigned count = 0;

	while (
	    gale_ask(house.seat, house.limiter, key_of(0), strlen(key_of(0)), 1, NULL)
		.verdict == GALE_ALLOW)
		count++;
	return count;
}

/* L7: the store says that there is no more; who asks is told so, and does not ask it again. */
static void what_another_seat_may_have_is_not_waited_for(void **state)
{
	struct gale_completion done;
	struct gale_answer answer;

	(void)state;
	open_hot(1, ROOM);
	another_seat_was_late();
	assert_int_equal(take_all(), LIMIT - 3); /* two were taken before */
	for (int i = 0; i < 4; i++)
		(void)gale_turn(house.runtime);
	assert_int_equal(gale_seat_completions(house.seat, &done, 1), 1);
	assert_int_equal(done.answer.verdict, GALE_DENY);
	assert_int_equal(done.answer.why, GALE_WHY_SPENT);
	answer =
	    gale_ask(house.seat, house.limiter, key_of(0), strlen(key_of(0)), 1, NULL);
	assert_int_equal(answer.why, GALE_WHY_SPENT);
	assert_int_equal(purse_left(purse_of(0), seat_now(house.seat)), 1);
	assert_true(house_close(&house));
}

/* ---- What is at hand ------------------------------------------------------------- */

/* Of 8, 16, 24, 32 and 40 bytes in turns, and differing at its end: those of 16 have a way of
 * their own, and those of 40 lie apart from their purses. */
static const char *long_key_of(unsigned i)
{
	static char text[41];

	(void)snprintf(text, sizeof(text), "%0*u", (int)(8 + i % 5 * 8), i + 1);
	return text;
}

static struct purse_name name_of(const char *key)
{
	return (struct purse_name){
		.lender = &house.limiter->lender,
		.key = (const uint8_t *)key,
		.key_len = (uint16_t)strlen(key),
		.hash = local_hash(&house.limiter->lender, key, strlen(key)),
	};
}

static struct pocket_place *at_hand(const char *key)
{
	struct purse_name name = name_of(key);
	struct pocket *pocket = &house.seat->pocket;

	if (!pocket_may_have(name.key_len) ||
	    !pocket_is_good(pocket, grace_forgotten(&house.runtime->grace)))
		return NULL;
	return pocket_find(pocket, &name);
}

static enum gale_verdict ask(const char *key)
{
	return gale_ask(house.seat, house.limiter, key, strlen(key), 1, NULL).verdict;
}

static struct purse *make_hot_by_name(const char *key)
{
	struct purses *set = &house.runtime->shards[0].lessor.purses;
	struct purse_name name = name_of(key);
	struct purse *purse;

	assert_int_equal(house_wait(&house, key).verdict, GALE_ALLOW);
	purse = purses_find(set, &name);
	assert_true(purses_give_cells(set, purse, CELLS));
	assert_int_equal(house_wait(&house, key).verdict, GALE_ALLOW);
	return purse;
}

#define SOON 300 /* asks: it is put at hand by lot, one time in sixteen */

static unsigned ask_until_at_hand(const char *key)
{
	unsigned asked = 0;

	while (!at_hand(key) && asked < SOON) {
		assert_int_equal(ask(key), GALE_ALLOW);
		asked++;
	}
	assert_non_null(at_hand(key));
	return asked;
}

/* Wherever it is in the table: some are far from their homes. */
static void a_hot_key_is_at_hand(void **state)
{
	(void)state;
	open_hot(0, ROOM);
	gale_tick(house.seat);
	for (unsigned i = 0; i < KEYS; i++) {
		const char *key = long_key_of(i);
		struct purse *purse = make_hot_by_name(key);
		uint64_t left = purse_left(purse, seat_now(house.seat));

		assert_null(at_hand(key));
		left -= ask_until_at_hand(key);
		assert_ptr_equal(at_hand(key)->purse, purse);
		assert_ptr_equal(at_hand(key)->cell,
		                 local_cell(purse, house.seat->number));
		assert_int_equal(ask(key), GALE_ALLOW);
		assert_int_equal(purse_left(purse, seat_now(house.seat)), left - 1);
	}
	assert_true(house_close(&house));
}

static void other_keys_are_not(void **state)
{
	(void)state;
	open_hot(0, ROOM);
	gale_tick(house.seat);
	(void)make_hot_by_name("1234567"); /* is too short */
	for (unsigned i = 0; i < SOON; i++)
		assert_int_equal(ask("1234567"), GALE_ALLOW);
	assert_int_equal(house_wait(&house, long_key_of(0)).verdict, GALE_ALLOW);
	for (unsigned i = 0; i < SOON; i++) /* it has no cells */
		assert_int_equal(ask(long_key_of(0)), GALE_ALLOW);
	assert_int_equal(house.seat->pocket.known, POCKET_NOTHING);
	assert_true(house_close(&house));
}

/* L1: what is at hand is spent to the last unit, and then it is denied. */
static void what_is_at_hand_is_not_spent_twice(void **state)
{
	uint64_t count = 2; /* by making it hot */

	(void)state;
	open_hot(0, ROOM);
	gale_tick(house.seat);
	(void)make_hot_by_name(long_key_of(0));
	while (ask(long_key_of(0)) == GALE_ALLOW)
		count++;
	assert_int_equal(count, LIMIT);
	assert_int_equal(house_wait(&house, long_key_of(0)).verdict, GALE_DENY);
	assert_int_equal(ask(long_key_of(0)), GALE_DENY);
	assert_non_null(at_hand(long_key_of(0)));
	assert_true(house_close(&house));
}

static void spend(const char *key)
{
	while (house_wait(&house, key).verdict == GALE_ALLOW)
		;
}

/* A key without cells that refuses time after time, and not one that does so now and then. */
static void a_key_that_keeps_refusing_is_at_hand(void **state)
{
	char key[41];

	(void)state;
	open_hot(0, ROOM);
	gale_tick(house.seat);
	memcpy(key, long_key_of(0), strlen(long_key_of(0)) + 1);
	spend(key);
	spend(long_key_of(1));
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(i % 2 ? key : long_key_of(1)), GALE_DENY);
	assert_null(at_hand(key));
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(key), GALE_DENY);
	assert_non_null(at_hand(key));
	assert_null(at_hand(long_key_of(1)));
	assert_true(house_close(&house));
}

/* L5, L7: it is at hand to refuse, and stands in nobody's way when there is something again,
 * in the purse or in a cell that it has by then. */
static void what_refused_and_is_lent_something_allows(void **state)
{
	struct purses *set;
	struct purse *purse;
	mono far;

	(void)state;
	open_hot(0, ROOM);
	set = &house.runtime->shards[0].lessor.purses;
	gale_tick(house.seat);
	spend(long_key_of(0));
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(long_key_of(0)), GALE_DENY);
	assert_non_null(at_hand(long_key_of(0)));
	purse = at_hand(long_key_of(0))->purse;
	far = mono_after(seat_now(house.seat), UINT64_C(1000000000000));
	purse_put(purse, far, SOON + 2, seat_now(house.seat));
	assert_int_equal(ask(long_key_of(0)), GALE_ALLOW);
	assert_null(at_hand(long_key_of(0)));
	assert_int_equal(ask(long_key_of(0)), GALE_ALLOW);
	assert_true(purses_give_cells(set, purse, CELLS));
	(void)ask_until_at_hand(long_key_of(0));
	assert_non_null(at_hand(long_key_of(0))->cell);
	while (ask(long_key_of(0)) == GALE_ALLOW)
		;
	assert_int_equal(purse_left(purse, seat_now(house.seat)), 0);
	assert_true(house_close(&house));
}

/* L8: its purse is another key's by then. */
static void a_key_that_was_evicted_is_not_at_hand(void **state)
{
	struct purse *purse;

	(void)state;
	open_hot(0, KEYS);
	gale_tick(house.seat);
	purse = make_hot_by_name(long_key_of(0));
	(void)ask_until_at_hand(long_key_of(0));
	assert_ptr_equal(at_hand(long_key_of(0))->purse, purse);
	for (unsigned i = 1; i < 3 * KEYS; i++)
		assert_int_equal(house_wait(&house, long_key_of(i)).verdict,
		                 GALE_ALLOW);
	assert_null(at_hand(long_key_of(0)));
	gale_tick(house.seat);
	assert_int_equal(ask(long_key_of(0)), GALE_PENDING);
	assert_true(house_close(&house));
}

/* ---- What it costs the host ------------------------------------------------------- */

/* One for all, and one for what waits until nobody can be reading it: of a limiter that
 * is closed, and of a runtime. */
static void all_that_closes_passes_one_fence(void **state)
{
	(void)state;
	open_hot(KEYS, ROOM);
	assert_true(house_close(&house));
	assert_true(load_relaxed(&barriers) <= 4);
	open_hot(KEYS, ROOM);
	gale_runtime_close(house.runtime);
	house.runtime = NULL;
	assert_true(load_relaxed(&barriers) <= 4);
	assert_true(house_close(&house));
}

/* Each wants more than its cell and what is shared have, and less than both. */
static void keys_that_are_asked_about_together_pass_one_fence(void **state)
{
	struct gale_completion done[KEYS];

	(void)state;
	open_hot(KEYS, ROOM);
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(gale_ask(house.seat, house.limiter, key_of(i),
		                          strlen(key_of(i)), LIMIT - 10, NULL)
		                     .verdict,
		                 GALE_PENDING);
	(void)gale_turn(house.runtime);
	assert_int_equal(gale_seat_completions(house.seat, done, KEYS), KEYS);
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(done[i].answer.verdict, GALE_ALLOW);
	assert_true(load_relaxed(&barriers) <= 2);
	assert_true(house_close(&house));
}

static void ask_of(unsigned from, unsigned end)
{
	for (unsigned i = from; i < end; i++)
		assert_int_equal(house_wait(&house, key_of(i)).verdict, GALE_ALLOW);
}

/* The first of those that have been there the longest are hot. */
static void keys_that_are_evicted_together_pass_one_fence(void **state)
{
	uint64_t evicted;

	(void)state;
	open_hot(9, KEYS);
	ask_of(9, KEYS);
	store_relaxed(&barriers, 0);
	ask_of(KEYS, KEYS + 8); /* as many as are evicted at a time, but for one */
	evicted =
	    load_relaxed(&house.runtime->shards[0].lessor.counters[COUNT_EVICTED]);
	assert_int_equal(evicted, 9);
	assert_true(load_relaxed(&barriers) <= 4);
	assert_true(house_close(&house));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_leaves_nothing_with_a_seat),
		cmocka_unit_test(a_fence_leaves_nothing_with_a_seat),
		cmocka_unit_test(a_held_key_finds_its_cell),
		cmocka_unit_test(a_seat_is_not_denied_what_it_was_about_to_take),
		cmocka_unit_test(what_is_here_is_not_denied),
		cmocka_unit_test(what_another_seat_may_have_is_not_waited_for),
		cmocka_unit_test(a_hot_key_is_at_hand),
		cmocka_unit_test(other_keys_are_not),
		cmocka_unit_test(what_is_at_hand_is_not_spent_twice),
		cmocka_unit_test(a_key_that_keeps_refusing_is_at_hand),
		cmocka_unit_test(what_refused_and_is_lent_something_allows),
		cmocka_unit_test(a_key_that_was_evicted_is_not_at_hand),
		cmocka_unit_test(all_that_closes_passes_one_fence),
		cmocka_unit_test(keys_that_are_asked_about_together_pass_one_fence),
		cmocka_unit_test(keys_that_are_evicted_together_pass_one_fence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
