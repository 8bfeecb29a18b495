/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purse_test.c -- units are in one place at a time, whoever takes them.
 */
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/memory.h"
#include "shards/lender.h"
#include "shards/purse.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define TICK CREDIT_TICK_NS

static struct lender units_lender = { .lending = LENDING_UNITS };
static struct lender places_lender = { .capacity = 7, .lending = LENDING_PLACES };

static mono at(uint64_t ns)
{
	return (mono){ ns };
}

static const mono start = { 0 };
static struct grace grace;
static const mono far = { 1000 * CREDIT_TICK_NS };

static void purse_init(struct purse *purse, struct lender *lender)
{
	memset(purse, 0, sizeof(*purse));
	purse->lender = lender;
}

static size_t cells_bytes(uint32_t count)
{
	return sizeof(struct cells) + count * sizeof(struct cell);
}

static struct cells *give_cells(struct purse *purse, uint32_t count)
{
	struct cells *cells = memory_take_lines(memory_default(), cells_bytes(count));

	must(cells);
	cells->count = count;
	purse_give(purse, cells);
	purse_split(purse);
	return cells;
}

static void free_cells(struct purse *purse)
{
	struct cells *cells = load_relaxed(&purse->cells);

	memory_give_lines(memory_default(), cells, cells_bytes(cells->count));
	store_relaxed(&purse->split, 0);
}

static uint64_t units_of(_Atomic uint64_t *word)
{
	return credit_units(load_relaxed(word));
}

/* ---- One word -------------------------------------------------------------------- */

static void what_was_put_in_is_taken_until_it_is_gone(void **state)
{
	struct purse purse;
	uint64_t word = 77;

	(void)state;
	purse_init(&purse, &units_lender);
	assert_false(purse_take(&purse, 0, start, 1, &word));
	purse_put(&purse, far, 10, start);
	assert_true(purse_take(&purse, 0, start, 4, &word));
	assert_int_equal(credit_units(word), 6);
	assert_int_equal(credit_dies(word).ns, far.ns);
	assert_false(purse_take(&purse, 0, start, 7, &word));
	assert_true(purse_take(&purse, 0, start, 6, &word));
	assert_int_equal(credit_units(word), 0);
	assert_false(purse_take(&purse, 0, start, 1, &word)); /* CREDIT-1 */
}

static void what_is_dead_is_not_taken(void **state)
{
	struct purse purse;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_put(&purse, at(3 * TICK + 5), 10, start);
	assert_true(purse_take(&purse, 0, at(3 * TICK - 1), 1, &word));
	assert_false(purse_take(&purse, 0, at(3 * TICK), 1, &word)); /* CREDIT-2 */
	assert_int_equal(purse_left(&purse, at(3 * TICK - 1)), 9);
	assert_int_equal(purse_left(&purse, at(3 * TICK)), 0);
	assert_int_equal(purse_empty(&purse, &grace, at(3 * TICK)), 0);
	assert_int_equal(load_relaxed(&purse.credit), 0);
}

static void more_of_a_window_is_added(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_put(&purse, at(5 * TICK), 10, start);
	purse_put(&purse, at(7 * TICK), 1, start); /* the later of two early ends */
	assert_int_equal(load_relaxed(&purse.credit), credit_until(at(7 * TICK), 11));
	purse_put(&purse, at(6 * TICK), 1, start);
	assert_int_equal(load_relaxed(&purse.credit), credit_until(at(7 * TICK), 12));
	purse_put(&purse, at(9 * TICK), CREDIT_UNITS_MAX, start);
	assert_int_equal(load_relaxed(&purse.credit),
	                 credit_until(at(9 * TICK), CREDIT_UNITS_MAX)); /* CREDIT-1 */
}

static void what_is_dead_stays_dead_when_more_comes(void **state)
{
	struct purse purse;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_put(&purse, at(5 * TICK), 10, start);
	purse_put(&purse, at(8 * TICK), 3, at(5 * TICK));
	assert_int_equal(load_relaxed(&purse.credit),
	                 credit_until(at(8 * TICK), 3)); /* CREDIT-1, PURSE-1 */
	assert_true(purse_take(&purse, 0, start, 3, &word));
	purse_put(&purse, at(6 * TICK), 2, start); /* nothing left to join */
	assert_int_equal(load_relaxed(&purse.credit), credit_until(at(6 * TICK), 2));
}

/* ---- Denial ---------------------------------------------------------------------- */

static void a_denial_is_remembered_until_it_is_over(void **state)
{
	struct purse purse;
	uint64_t denial = 0;

	(void)state;
	for (uint64_t off = 1; off <= TICK; off += TICK / 5) {
		purse_init(&purse, &units_lender);
		assert_false(purse_refuses(&purse, start, 5, &denial));
		purse_deny(&purse, at(2 * TICK + off), 3);
		assert_true(purse_refuses(&purse, start, 3, &denial));
		assert_int_equal(credit_dies(denial).ns,
		                 3 * TICK); /* rounded up: not before */
		assert_true(purse_refuses(&purse, at(2 * TICK + off - 1), 4, &denial));
		assert_false(purse_refuses(&purse, at(3 * TICK), 4, &denial));
		assert_true(purse_is_spent(&purse, at(3 * TICK - 1)));
		assert_false(purse_is_spent(&purse, at(3 * TICK)));
	}
	assert_int_equal(load_relaxed(&purse.refused), 7);
}

/* Not for ever: the line is shared, and the count would come round. */
static void refusals_are_counted_as_far_as_a_lease_goes(void **state)
{
	struct purse purse;
	uint64_t denial = 0;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_deny(&purse, far, 3);
	store_relaxed(&purse.refused, CREDIT_UNITS_MAX - 5);
	for (uint32_t counted = 4; counted <= 8; counted += 4) {
		assert_true(purse_refuses(&purse, start, 4, &denial));
		assert_int_equal(load_relaxed(&purse.refused),
		                 CREDIT_UNITS_MAX - 5 + counted);
	}
	assert_true(purse_refuses(&purse, start, 4, &denial));
	assert_int_equal(load_relaxed(&purse.refused), CREDIT_UNITS_MAX + 3);
}

static void a_denial_ends_at_once_where_a_tick_ends(void **state)
{
	struct purse purse;
	uint64_t denial = 0;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_deny(&purse, at(2 * TICK), 3);
	assert_true(purse_refuses(&purse, at(2 * TICK - 1), 3, &denial));
	assert_int_equal(credit_dies(denial).ns, 2 * TICK);
	assert_false(purse_refuses(&purse, at(2 * TICK), 3, &denial));
}

static void a_smaller_cost_is_not_refused(void **state)
{
	struct purse purse;
	uint64_t denial = 0;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_deny(&purse, far, 3);
	assert_false(purse_refuses(&purse, start, 2, &denial));
	assert_int_equal(load_relaxed(&purse.refused), 0);
	purse_deny(&purse, far, CREDIT_UNITS_MAX);
	assert_false(purse_refuses(&purse, start, CREDIT_UNITS_MAX - 1, &denial));
	assert_true(purse_refuses(&purse, start, CREDIT_UNITS_MAX, &denial));
	purse_deny(&purse, far, CREDIT_UNITS_MAX + 1); /* too much to remember */
	assert_false(purse_refuses(&purse, start, 5, &denial));
	purse_put(&purse, far, 1, start); /* there is something again */
	assert_false(purse_refuses(&purse, start, CREDIT_UNITS_MAX, &denial));
}

/* ---- Cells ----------------------------------------------------------------------- */

static void a_seat_takes_a_slice_and_then_from_there(void **state)
{
	struct purse purse;
	struct cells *cells;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	cells = give_cells(&purse, 4);
	purse_put(&purse, far, 800, start);
	assert_true(purse_take(&purse, 1, start, 1, &word));
	assert_int_equal(credit_units(word), 99); /* half of an even part, less one */
	assert_int_equal(credit_dies(word).ns, far.ns);
	assert_int_equal(units_of(&purse.credit), 700); /* PURSE-1 */
	assert_int_equal(units_of(&cells->at[1].credit), 99);
	assert_int_equal(credit_dies(load_relaxed(&cells->at[1].credit)).ns, far.ns);
	assert_true(purse_take(&purse, 1, start, 99, &word));
	assert_int_equal(units_of(&purse.credit), 700);
	assert_true(purse_take(&purse, 4, start, 1, &word)); /* has no cell */
	assert_int_equal(units_of(&purse.credit), 699);
	assert_true(purse_take(&purse, NO_SEAT, start, 1, &word));
	assert_int_equal(purse_left(&purse, start), 698); /* PURSE-1 */
	free_cells(&purse);
}

static void wants(struct cell *cell)
{
	store_relaxed(&cell->state, CELL_WANTED);
}

static void takes(struct cell *cell, uint64_t found)
{
	store_relaxed(&cell->was, found);
	store_release(&cell->state, CELL_TAKEN); /* settled */
}

/* The actor wants the cell between two steps of its seat, and finds what the seat has stored
 * by then, or does not. */
static void a_seat_that_was_too_late_has_taken_nothing(bool found)
{
	struct purse purse;
	struct cell *cell;
	uint64_t had, word;

	purse_init(&purse, &units_lender);
	cell = give_cells(&purse, 2)->at;
	had = credit_until(far, 10);
	store_relaxed(&cell->credit, had);
	store_relaxed(&purse.credit, credit_until(far, 7));
	wants(cell);
	assert_false(cell_spend(cell, had - 3, 3));
	/* Until it is known, the seat takes from what all share. */
	assert_true(purse_take(&purse, 0, start, 2, &word));
	assert_int_equal(units_of(&purse.credit), 5);
	takes(cell, found ? load_relaxed(&cell->credit) : had);
	assert_int_equal(purse_left(&purse, start), found ? 5 + 3 : 5); /* PURSE-1 */
	assert_true(purse_take(&purse, 0, start, 3, &word));
	assert_int_equal(units_of(&purse.credit), found ? 5 : 2);
	assert_int_equal(load_relaxed(&cell->state), CELL_OPEN);
	assert_int_equal(purse_left(&purse, start), found ? 5 : 2);
	free_cells(&purse);
}

static void what_a_seat_was_about_to_take_is_not_lost(void **state)
{
	(void)state;
	a_seat_that_was_too_late_has_taken_nothing(true);
	a_seat_that_was_too_late_has_taken_nothing(false);
}

static void what_cells_held_is_taken_once(void **state)
{
	struct purse purse;
	struct cell *cell;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	cell = give_cells(&purse, 2)->at;
	store_relaxed(&cell[0].credit, credit_until(far, 10));
	store_relaxed(&cell[1].credit, credit_until(at(TICK), 20));
	purse_gather(&purse, &grace, at(TICK)); /* one is dead by then */
	assert_int_equal(units_of(&purse.credit), 10);
	purse_gather(&purse, &grace, at(TICK));
	assert_int_equal(purse_empty(&purse, &grace, at(TICK)), 10);
	assert_false(purse_take(&purse, 0, at(TICK), 1, &word)); /* PURSE-1 */
	free_cells(&purse);
}

static void a_slice_is_neither_too_large_nor_too_small(void **state)
{
	struct purse purse;
	struct cells *cells;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	cells = give_cells(&purse, 2);
	purse_put(&purse, far, 100000, start);
	assert_true(purse_take(&purse, 0, start, 1, &word));
	assert_int_equal(units_of(&cells->at[0].credit), 8191);
	assert_true(purse_take(&purse, 1, start, 10000, &word)); /* larger than one */
	assert_int_equal(units_of(&cells->at[1].credit), 0);
	assert_int_equal(credit_units(word), 0);
	assert_int_equal(purse_left(&purse, start), 89999);
	store_relaxed(&purse.credit, credit_until(far, 3)); /* cells keep theirs */
	assert_true(purse_take(&purse, 1, start, 3, &word));
	assert_false(purse_take(&purse, 1, start, 1, &word)); /* CREDIT-1 */
	assert_int_equal(purse_empty(&purse, &grace, start), 8191);
	assert_int_equal(purse_empty(&purse, &grace, start), 0); /* PURSE-1 */
	free_cells(&purse);
}

/* A cell of a units, dead at its tick, and a slice of another word. */
static uint64_t cell_after(uint64_t cell_tick, uint64_t credit_tick, mono now)
{
	struct purse purse;
	struct cells *cells;
	uint64_t word, result;

	purse_init(&purse, &units_lender);
	cells = give_cells(&purse, 1);
	store_relaxed(&cells->at[0].credit, credit_until(at(cell_tick * TICK), 4));
	purse_put(&purse, at(credit_tick * TICK), 40, start);
	assert_true(purse_take(&purse, 0, now, 5, &word)); /* 20, of which 15 stay */
	assert_int_equal(credit_units(word), 15);
	assert_int_equal(units_of(&purse.credit), 20);
	result = load_relaxed(&cells->at[0].credit);
	free_cells(&purse);
	return result;
}

static void joined_words_live_as_long_as_the_shorter(void **state)
{
	(void)state;
	assert_int_equal(cell_after(10, 20, start), credit_until(at(10 * TICK), 19));
	assert_int_equal(cell_after(20, 10, start), credit_until(at(10 * TICK), 19));
	/* What is dead is not joined. CREDIT-2 */
	assert_int_equal(cell_after(10, 20, at(10 * TICK)),
	                 credit_until(at(20 * TICK), 15));
}

/* Who has no cell there has lost nothing. */
static void who_has_no_cell_does_not_fight_for_that(void **state)
{
	struct purse purse;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	give_cells(&purse, 2);
	purse_put(&purse, far, 10, start);
	assert_true(purse_take(&purse, NO_SEAT, start, 1, &word));
	assert_true(purse_take(&purse, 5, start, 1, &word));
	assert_int_equal(load_relaxed(&purse.contended), 0);
	free_cells(&purse);
}

/* A whole slice. */
static void use_up_a_slice(struct purse *purse, uint32_t seat)
{
	uint64_t word;

	assert_true(purse_take(purse, seat, start, 1, &word));
	if (credit_units(word) > 0)
		assert_true(purse_take(purse, seat, start, credit_units(word), &word));
}

static void slices_of_others_are_noted(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	give_cells(&purse, 2);
	purse_put(&purse, far, 1000, start);
	for (int i = 0; i < 3; i++)
		use_up_a_slice(&purse, 0);
	assert_int_equal(load_relaxed(&purse.contended), 0);
	use_up_a_slice(&purse, 1); /* its first */
	assert_int_equal(load_relaxed(&purse.contended), 0);
	use_up_a_slice(&purse, 0);
	assert_int_equal(load_relaxed(&purse.contended), 1);
	use_up_a_slice(&purse, 1);
	assert_int_equal(load_relaxed(&purse.contended), 2);
	free_cells(&purse);
}

/* As after a refill: what came is not what others took. */
static void what_is_put_in_hides_what_others_take(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	give_cells(&purse, 2);
	purse_put(&purse, at(50 * TICK), 1000, start);
	use_up_a_slice(&purse, 0);
	purse_put(&purse, at(50 * TICK), 500, start);
	use_up_a_slice(&purse, 0);
	assert_int_equal(load_relaxed(&purse.contended), 0);
	purse_void(&purse);
	purse_put(&purse, far, 10, start); /* of another window */
	use_up_a_slice(&purse, 0);
	purse_void(&purse);
	purse_put(&purse, at(50 * TICK), 10, start);
	use_up_a_slice(&purse, 0);
	assert_int_equal(load_relaxed(&purse.contended), 0);
	free_cells(&purse);
}

static void lost_swaps_are_noted_where_there_are_no_cells(void **state)
{
	struct purse purse;
	uint64_t word;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_put(&purse, far, 10, start);
	assert_true(purse_take(&purse, 0, start, 1, &word));
	assert_int_equal(load_relaxed(&purse.contended), 0);
	assert_true(purse_take_shared(&purse, 0, start, 1, &word));
	assert_int_equal(load_relaxed(&purse.contended), 1);
	store_relaxed(&purse.contended, UINT8_MAX);
	assert_true(purse_take_shared(&purse, 0, start, 1, &word));
	assert_int_equal(load_relaxed(&purse.contended), UINT8_MAX);
}

/* ---- Pins ------------------------------------------------------------------------ */

static void what_is_pinned_is_not_killed_and_the_dead_are_not_pinned(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	assert_true(purse_pin(&purse));
	assert_true(purse_pin(&purse));
	assert_false(purse_kill(&purse)); /* PURSE-3 */
	purse_unpin(&purse);
	assert_false(purse_kill(&purse));
	purse_unpin(&purse);
	assert_true(purse_kill(&purse));
	assert_false(purse_pin(&purse)); /* PURSE-3 */
	assert_false(purse_kill(&purse));
	assert_int_equal(load_relaxed(&purse.pins), PURSE_DEAD);
}

static void use_is_told_to_the_hand(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	purse_use(&purse);
	purse_use(&purse);
	assert_true(load_relaxed(&purse.used));
}

/* ---- Pacers ---------------------------------------------------------------------- */

static void burst_goes_before_places(void **state)
{
	struct rule rule = { .is = {
				 .limit = 1, .period_us = 10, .max_wait_us = 1000 } };
	struct block block = { .rule = rule, .count = 2, .slot = { .us = 100 } };
	struct purse purse;
	struct gale_answer answer;

	(void)state;
	purse_init(&purse, &places_lender);
	assert_false(purse_place(&purse, start, 1, &answer));
	assert_null(purse_put_block(&purse, &block));
	purse_put(&purse, far, 1, start);
	assert_int_equal(purse_left(&purse, start), 3);
	assert_true(purse_place(&purse, start, 1, &answer));
	assert_int_equal(answer.slot.us, 0);
	assert_int_equal(answer.why, GALE_WHY_CREDIT);
	assert_int_equal(answer.limit, places_lender.capacity);
	assert_true(purse_place(&purse, start, 1, &answer));
	assert_int_equal(answer.slot.us, 100);
	assert_true(purse_place(&purse, start, 1, &answer));
	assert_int_equal(answer.slot.us, 110);
	assert_false(purse_place(&purse, start, 1, &answer)); /* BLOCK-1 */
	/* A block is not cells */
	assert_int_equal(purse_empty(&purse, &grace, start), 0);
	assert_ptr_equal(purse_put_block(&purse, NULL), &block);
	assert_false(purse_place(&purse, start, 1, &answer));
}

/* ---- Threads --------------------------------------------------------------------- */

#define TAKERS 4
#define ROUNDS LONG_OR_BRIEF(3000, 1000)
#define PUT 500

struct scene {
	struct purse purse;
	struct chance chance;
	_Atomic uint64_t now; /* ticks */
	_Atomic uint64_t taken;
	_Atomic uint64_t by_tick[ROUNDS + 2];
	_Atomic bool over;
	uint64_t put;
	uint64_t emptied;
	bool windows; /* time goes on, and each put is of another window */
	bool celled;
};

static void take_on(struct scene *s, unsigned who)
{
	struct chance chance = { who };

	while (!load_relaxed(&s->over)) {
		uint64_t cost =
		    chance_one_in(&chance, 8) ? chance_between(&chance, 1, 300) : 1;
		mono now = { load_relaxed(&s->now) * TICK };
		uint64_t word, tick;

		if (!purse_take(&s->purse, who, now, cost, &word)) {
			sched_yield();
			continue;
		}
		tick = credit_dies(word).ns / TICK;
		must(tick > now.ns / TICK); /* CREDIT-2 */
		add_relaxed(&s->taken, cost);
		if (s->windows)
			add_relaxed(&s->by_tick[tick], cost);
	}
}

static void actor_turn(struct scene *s, uint64_t round)
{
	mono now = { load_relaxed(&s->now) * TICK };
	uint64_t units = chance_below(&s->chance, PUT);

	if (s->celled && round == ROUNDS / 3)
		give_cells(&s->purse, TAKERS);
	if (s->windows) {
		store_relaxed(&s->now, round);
		purse_put(&s->purse, at((round + 1) * TICK), PUT, at(round * TICK));
		s->put += PUT;
		return;
	}
	purse_put(&s->purse, at(UINT64_MAX), units, start);
	s->put += units;
	if (chance_one_in(&s->chance, 4))
		s->emptied += purse_empty(&s->purse, &grace, now);
}

/* On a busy machine all would be over before anybody takes anything. */
static void let_them_begin(struct scene *s)
{
	purse_put(&s->purse, at(s->windows ? TICK : UINT64_MAX), PUT, start);
	s->put += PUT;
	while (load_relaxed(&s->taken) == 0)
		sched_yield();
}

static void act_on(struct scene *s)
{
	let_them_begin(s);
	for (uint64_t round = 1; round < ROUNDS; round++) {
		actor_turn(s, round);
		if (round % 4 == 0)
			sched_yield();
	}
	store_relaxed(&s->over, true);
}

static void scene_main(void *arg, unsigned who)
{
	if (who == TAKERS)
		act_on(arg);
	else
		take_on(arg, who);
}

static struct scene *scene_run(bool windows, bool celled)
{
	static struct scene s;

	memset(&s, 0, sizeof(s));
	purse_init(&s.purse, &units_lender);
	s.chance.state = 5;
	s.windows = windows;
	s.celled = celled;
	crew_run(TAKERS + 1, scene_main, &s);
	return &s;
}

static void nothing_is_lost_and_nothing_doubled(void **state)
{
	(void)state;
	for (int celled = 0; celled < 2; celled++) {
		struct scene *s = scene_run(false, celled);
		uint64_t left = purse_left(&s->purse, start);

		assert_true(load_relaxed(&s->taken) > 0 && s->emptied > 0);
		/* PURSE-1 */
		assert_int_equal(s->put, load_relaxed(&s->taken) + s->emptied + left);
		if (celled)
			free_cells(&s->purse);
	}
}

static void no_window_gives_more_than_it_got(void **state)
{
	struct scene *s = scene_run(true, false);

	(void)state;
	for (uint64_t tick = 0; tick < ROUNDS + 2; tick++) /* CREDIT-1 */
		assert_true(load_relaxed(&s->by_tick[tick]) <= PUT);
	s = scene_run(true, true);
	assert_true(load_relaxed(&s->taken) <= s->put); /* PURSE-1 */
	free_cells(&s->purse);
}

/* ---- Seats that come and go, and an actor that does not rest ----------------------- */

#define AGES LONG_OR_BRIEF(1500, 500)
#define SEATS_HAD 3
#define IN_AN_AGE 700

/* In an age so many units are put in, and at its end all are void.  What is taken between
 * two looks that show the same age is of that age. */
struct ages {
	struct purse purse;
	_Atomic uint64_t age;
	_Atomic bool over;
	_Atomic uint64_t taken[AGES + 1];
	_Atomic uint64_t all;
	_Atomic bool seated[SEATS_HAD]; /* by number: has it been given out? */
};

static uint32_t sit(struct ages *s)
{
	for (uint32_t i = 0;; i = (i + 1) % SEATS_HAD) {
		bool free = false;

		if (swap_if_acquire(&s->seated[i], &free, true))
			return i;
		sched_yield();
	}
}

static void take_in_ages(struct ages *s, unsigned who)
{
	struct chance chance = { who };

	while (!load_relaxed(&s->over)) {
		uint32_t seat = sit(s);

		for (uint64_t i = chance_between(&chance, 1, 60); i > 0; i--) {
			uint64_t age = load_acquire(&s->age), word;
			uint64_t cost = chance_one_in(&chance, 8)
			                    ? chance_between(&chance, 1, 90)
			                    : 1;

			if (!purse_take(&s->purse, seat, start, cost, &word))
				continue;
			add_relaxed(&s->all, cost);
			fence_full();
			if (load_relaxed(&s->age) == age)
				add_relaxed(&s->taken[age], cost);
		}
		store_release(&s->seated[seat], false);
	}
}

static void turn_ages(struct ages *s)
{
	struct chance chance = { 9 };

	for (uint64_t age = 0; age < AGES; age++) {
		uint64_t left = IN_AN_AGE;

		while (left > 0) {
			uint64_t some = chance_between(&chance, 1, left);

			purse_put(&s->purse, far, some, start);
			left -= some;
			if (chance_one_in(&chance, 3))
				sched_yield();
			for (int i = 0; i < 3; i++)
				purse_gather(&s->purse, &grace, start);
		}
		while (load_relaxed(&s->all) == 0)
			sched_yield(); /* the takers have begun */
		purse_void(&s->purse);
		store_release(&s->age, age + 1);
	}
	store_relaxed(&s->over, true);
}

static void ages_main(void *arg, unsigned who)
{
	if (who == TAKERS)
		turn_ages(arg);
	else
		take_in_ages(arg, who);
}

/* L1: what the store may lend again is not spent. */
static void what_was_made_void_is_not_spent_by_any_seat(void **state)
{
	static struct ages s;

	(void)state;
	memset(&s, 0, sizeof(s));
	purse_init(&s.purse, &units_lender);
	give_cells(&s.purse, SEATS_HAD);
	crew_run(TAKERS + 1, ages_main, &s);
	assert_true(load_relaxed(&s.all) > 0);
	assert_true(load_relaxed(&s.all) <= (uint64_t)AGES * IN_AN_AGE);
	for (uint64_t age = 0; age <= AGES; age++)
		assert_true(load_relaxed(&s.taken[age]) <= IN_AN_AGE);
	free_cells(&s.purse);
}

/* ---- Windows that turn, while the actor does not rest ------------------------------- */

#define TURNS LONG_OR_BRIEF(1500, 300)
#define LASTS 3 /* ticks that a window does */
#define IN_A_WINDOW 600

/* Two leases a window, the second with an earlier bound on its end.  The clocks of seats may
 * be a tick behind.  What is taken counts if no window has turned since its clock was read. */
struct windows {
	struct purse purse;
	_Atomic uint64_t now; /* ticks */
	_Atomic bool over;
	_Atomic uint64_t taken[TURNS + 1];
	_Atomic uint64_t all;
	uint64_t given_back[TURNS + 1];
};

static void take_in_windows(struct windows *s, unsigned who)
{
	struct chance chance = { who };

	while (!load_relaxed(&s->over)) {
		uint64_t tick = load_acquire(&s->now), word;
		uint64_t cost =
		    chance_one_in(&chance, 8) ? chance_between(&chance, 1, 90) : 1;

		if (tick > 0 && chance_one_in(&chance, 4))
			tick--;
		if (!purse_take(&s->purse, who, at(tick * TICK), cost, &word))
			continue;
		must(credit_dies(word).ns > tick * TICK); /* CREDIT-2 */
		add_relaxed(&s->all, cost);
		fence_full();
		if (load_relaxed(&s->now) / LASTS == tick / LASTS)
			add_relaxed(&s->taken[tick / LASTS], cost);
	}
}

static void act_at(struct windows *s, struct chance *chance, uint64_t tick)
{
	mono now = at(tick * TICK);

	if (chance_one_in(chance, 2))
		sched_yield();
	for (uint64_t i = chance_below(chance, 4); i > 0; i--)
		purse_gather(&s->purse, &grace, now);
	if (chance_one_in(chance, 4)) /* L6: of this window, and no other */
		s->given_back[tick / LASTS] += purse_empty(&s->purse, &grace, now);
}

static void turn_windows(struct windows *s)
{
	struct chance chance = { 11 };

	for (uint64_t tick = 0; tick < TURNS * LASTS; tick++) {
		uint64_t left = LASTS - tick % LASTS;

		store_release(&s->now, tick);
		if (left > 1)
			purse_put(&s->purse, at((tick + (left > 2 ? 3 : 1)) * TICK),
			          IN_A_WINDOW / 2, at(tick * TICK));
		while (load_relaxed(&s->all) == 0)
			sched_yield(); /* the takers have begun */
		act_at(s, &chance, tick);
	}
	store_relaxed(&s->over, true);
}

static void windows_main(void *arg, unsigned who)
{
	if (who == TAKERS)
		turn_windows(arg);
	else
		take_in_windows(arg, who);
}

static void no_window_gives_more_by_cells(void **state)
{
	static struct windows s;

	(void)state;
	memset(&s, 0, sizeof(s));
	purse_init(&s.purse, &units_lender);
	give_cells(&s.purse, TAKERS - 1); /* one has none */
	crew_run(TAKERS + 1, windows_main, &s);
	assert_true(load_relaxed(&s.all) > 0);
	for (uint64_t i = 0; i <= TURNS; i++) /* L1 */
		assert_true(load_relaxed(&s.taken[i]) + s.given_back[i] <= IN_A_WINDOW);
	free_cells(&s.purse);
}

static void pin_and_kill(void *arg, unsigned who)
{
	struct purse *purse = arg;

	for (int i = 0; i < 20000; i++) {
		if (who == 0) {
			if (purse_kill(purse)) {
				must(!purse_pin(purse)); /* PURSE-3 */
				store_relaxed(&purse->pins, 0);
			}
		} else if (purse_pin(purse)) {
			must(load_relaxed(&purse->pins) < PURSE_DEAD); /* PURSE-3 */
			purse_unpin(purse);
		}
	}
}

/* PURSE-3: as with pins, but who has it at hand does not keep it from being killed. */
static void what_is_at_hand_can_be_killed(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	assert_false(purse_is_at_hand(&purse));
	assert_true(purse_be_at_hand(&purse));
	assert_true(purse_be_at_hand(&purse));
	assert_true(purse_is_at_hand(&purse));
	assert_false(purse_is_held(&purse));
	assert_true(purse_pin(&purse));
	assert_true(purse_is_held(&purse));
	assert_false(purse_kill(&purse));
	purse_unpin(&purse);
	assert_true(purse_is_at_hand(&purse));
	assert_true(purse_kill(&purse));
	assert_true(purse_is_dead(&purse));
	assert_true(purse_is_at_hand(&purse)); /* which is known for good */
	assert_false(purse_be_at_hand(&purse));
	assert_false(purse_pin(&purse));
	purse_init(&purse, &units_lender);
	assert_true(purse_kill(&purse));
	assert_false(purse_be_at_hand(&purse));
	assert_false(purse_is_at_hand(&purse));
}

static void nobody_kills_what_another_holds(void **state)
{
	struct purse purse;

	(void)state;
	purse_init(&purse, &units_lender);
	crew_run(3, pin_and_kill, &purse);
	assert_int_equal(load_relaxed(&purse.pins), 0);
}

static int open_grace(void **state)
{
	(void)state;
	grace_open(&grace);
	return 0;
}

static int close_grace(void **state)
{
	(void)state;
	grace_close(&grace);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_in_is_taken_until_it_is_gone),
		cmocka_unit_test(what_is_dead_is_not_taken),
		cmocka_unit_test(more_of_a_window_is_added),
		cmocka_unit_test(what_is_dead_stays_dead_when_more_comes),
		cmocka_unit_test(a_denial_is_remembered_until_it_is_over),
		cmocka_unit_test(refusals_are_counted_as_far_as_a_lease_goes),
		cmocka_unit_test(a_denial_ends_at_once_where_a_tick_ends),
		cmocka_unit_test(a_smaller_cost_is_not_refused),
		cmocka_unit_test(a_seat_takes_a_slice_and_then_from_there),
		cmocka_unit_test(what_a_seat_was_about_to_take_is_not_lost),
		cmocka_unit_test(what_cells_held_is_taken_once),
		cmocka_unit_test(a_slice_is_neither_too_large_nor_too_small),
		cmocka_unit_test(joined_words_live_as_long_as_the_shorter),
		cmocka_unit_test(who_has_no_cell_does_not_fight_for_that),
		cmocka_unit_test(slices_of_others_are_noted),
		cmocka_unit_test(what_is_put_in_hides_what_others_take),
		cmocka_unit_test(lost_swaps_are_noted_where_there_are_no_cells),
		cmocka_unit_test(
		    what_is_pinned_is_not_killed_and_the_dead_are_not_pinned),
		cmocka_unit_test(use_is_told_to_the_hand),
		cmocka_unit_test(burst_goes_before_places),
		cmocka_unit_test(nothing_is_lost_and_nothing_doubled),
		cmocka_unit_test(no_window_gives_more_than_it_got),
		cmocka_unit_test(no_window_gives_more_by_cells),
		cmocka_unit_test(what_was_made_void_is_not_spent_by_any_seat),
		cmocka_unit_test(what_is_at_hand_can_be_killed),
		cmocka_unit_test(nobody_kills_what_another_holds),
	};

	return cmocka_run_group_tests(tests, open_grace, close_grace);
}
