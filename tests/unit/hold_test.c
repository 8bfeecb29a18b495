/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold_test.c -- holds of one window and of several: by hand, and by lot against the laws.
 *
 * By lot: a limit of one window after another, two nodes that lease from it, and calls that ask,
 * hold, grow, commit and cancel there.  After each step all units of the window are somewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/hold.h"
#include "engine/whole.h"
#include "sim/random.h"
#include "tests/support/length.h"

#define TICK CREDIT_TICK_NS
#define GAMES LONG_OR_BRIEF(20000, 4000)

static mono at(uint64_t ticks)
{
	return (mono){ ticks * TICK };
}

static uint64_t word(uint64_t ticks, uint64_t units)
{
	return credit_until(at(ticks), units);
}

/* ---- By hand --------------------------------------------------------------------- */

static void the_rest_goes_back_and_what_is_over_is_owed(void **state)
{
	struct held held = { .word = word(10, 50) };
	struct hold_end end = hold_settle(&held, 20, at(9));

	(void)state;
	assert_int_equal(end.back, 30);
	assert_int_equal(end.over, 0);
	end = hold_settle(&held, 80, at(9));
	assert_int_equal(end.back, 0);
	assert_int_equal(end.over, 30);
	end = hold_settle(&held, 50, at(9));
	assert_int_equal(end.back + end.over, 0);
	end = hold_settle(&held, 0, at(9));
	assert_int_equal(end.back, 50);
}

/* HOLD-2 */
static void a_window_that_is_over_is_left_alone(void **state)
{
	struct held held = { .word = word(10, 50) };

	(void)state;
	assert_int_equal(hold_settle(&held, 20, at(10)).back, 0);
	assert_int_equal(hold_settle(&held, 80, at(10)).over, 0);
}

/* HOLD-2: ten are of the window before, and are not given to the next. */
static void a_hold_that_outlives_its_window_gives_back_of_the_last(void **state)
{
	struct held held = { .word = word(10, 10) };

	(void)state;
	hold_grow(&held, word(20, 5), at(12));
	assert_int_equal(held_units(&held), 15);
	assert_int_equal(hold_settle(&held, 12, at(13)).back, 3);
	assert_int_equal(hold_settle(&held, 1, at(13)).back, 5);
	assert_int_equal(hold_settle(&held, 18, at(13)).over, 3);
	hold_grow(&held, word(21, 5), at(13));
	assert_int_equal(hold_settle(&held, 0, at(13)).back, 10);
	assert_int_equal(hold_settle(&held, 0, at(20)).back,
	                 10); /* the later of the two */
}

/* What dies in one tick: whatever time it is, it comes to the same. */
static void what_dies_together_grows_without_a_clock(void **state)
{
	struct held in_time = { .word = word(10, 10) };
	struct held any_time = in_time, too_late = in_time;

	(void)state;
	assert_true(credit_is_like(in_time.word, word(10, 5)));
	assert_false(credit_is_like(in_time.word, word(11, 5)));
	hold_grow(&in_time, word(10, 5), at(8));
	hold_grow(&any_time, word(10, 5), at(0));
	hold_grow(&too_late, word(10, 5), at(12));
	assert_int_equal(credit_more(word(10, 10), 5), any_time.word);
	assert_int_equal(credit_more(in_time.word, CREDIT_UNITS_MAX),
	                 word(10, CREDIT_UNITS_MAX));
	assert_int_equal(hold_settle(&in_time, 0, at(9)).back, 15);
	assert_int_equal(hold_settle(&any_time, 0, at(9)).back, 15);
	assert_int_equal(held_units(&any_time), held_units(&too_late));
	assert_int_equal(hold_settle(&any_time, 0, at(12)).back, 0);
	assert_int_equal(hold_settle(&too_late, 0, at(12)).back, 0);
}

/* HOLD-2: the key was reset, and the window is the same. */
static void what_was_made_void_goes_back_no_more(void **state)
{
	struct held held = { .word = word(10, 10) };

	(void)state;
	hold_lose(&held);
	assert_int_equal(held_units(&held), 10);
	assert_int_equal(hold_settle(&held, 0, at(9)).back, 0);
	hold_grow(&held, word(10, 20), at(8));
	assert_int_equal(held_units(&held), 30);
	assert_int_equal(hold_settle(&held, 5, at(9)).back, 20);
	assert_int_equal(hold_settle(&held, 60, at(9)).over, 30);
}

static void a_bound_above_the_limit_is_cut_to_it(void **state)
{
	(void)state;
	assert_int_equal(hold_cut(1024, 100), 100);
	assert_int_equal(hold_cut(100, 1024), 100);
	assert_int_equal(hold_cut(UINT64_C(1) << 40, UINT64_C(1) << 41),
	                 CREDIT_UNITS_MAX);
}

static void a_hold_grows_as_far_as_a_word_goes(void **state)
{
	struct held held = { .word = word(10, CREDIT_UNITS_MAX - 5) };

	(void)state;
	assert_true(hold_may_grow(&held, 5));
	assert_false(hold_may_grow(&held, 6));
}

static void a_debt_is_paid_by_its_own_window(void **state)
{
	uint64_t debt = debt_with(0, word(10, 30), at(5));

	(void)state;
	assert_int_equal(debt_paid_by(debt, word(10, 40), at(9)), 30);
	assert_int_equal(debt_paid_by(debt, word(10, 20), at(9)), 20);
	assert_int_equal(debt_paid_by(debt, word(20, 40), at(10)), 0);
	assert_int_equal(credit_units(debt_with(debt, word(10, 5), at(9))), 35);
	assert_int_equal(credit_units(debt_with(debt, word(20, 5), at(11))), 5);
}

/* WHOLE-1, WHOLE-2 */
static void one_denial_denies_the_whole(void **state)
{
	struct gale_answer parts[] = {
		{ .verdict = GALE_ALLOW, .limit = 10, .remaining = 3 },
		{ .verdict = GALE_ALLOW, .limit = 20, .remaining = 2 },
		{ .verdict = GALE_ALLOW, .limit = 30, .remaining = 9 },
	};
	struct gale_answer whole;
	size_t binding;

	(void)state;
	whole = whole_of(parts, 3, &binding);
	assert_int_equal(whole.verdict, GALE_ALLOW);
	assert_int_equal(binding, 1);
	assert_int_equal(whole.limit, 20);
	parts[2].verdict = GALE_PENDING;
	assert_int_equal(whole_of(parts, 3, &binding).verdict, GALE_PENDING);
	parts[1] = (struct gale_answer){ .why = GALE_WHY_SPENT, .retry_after_us = 5 };
	parts[2] = (struct gale_answer){ .why = GALE_WHY_RULE, .retry_after_us = 9 };
	whole = whole_of(parts, 3, &binding);
	assert_int_equal(whole.verdict, GALE_DENY);
	assert_int_equal(whole.why, GALE_WHY_SPENT);
	assert_int_equal(whole.retry_after_us, 9);
	assert_int_equal(binding, 1);
}

static void a_whole_waits_for_what_takes_longest(void **state)
{
	const struct gale_answer parts[] = {
		{ .verdict = GALE_ALLOW, .remaining = 3, .reset_after_us = 7 },
		{ .verdict = GALE_ALLOW, .remaining = 2, .delay_ns = 5 },
		{ .verdict = GALE_ALLOW, .remaining = 9, .reset_after_us = 8 },
	};
	struct gale_answer whole;
	size_t binding;

	(void)state;
	whole = whole_of(parts, 3, &binding);
	assert_int_equal(binding, 1);
	assert_int_equal(whole.remaining, 2);
	assert_int_equal(whole.reset_after_us, 8);
	assert_int_equal(whole.delay_ns, 5);
}

/* ---- By lot ---------------------------------------------------------------------- */

#define NODES 2
#define HOLDS 12
#define WINDOW 100 /* ticks */

struct call {
	struct held held;
	unsigned node;
	uint64_t window; /* it holds units of */
	bool runs;
};

struct game {
	struct chance chance;
	uint64_t limit, window; /* ends at this tick */
	uint64_t now;           /* a tick */
	uint64_t store;         /* units of the window that are not lent */
	uint64_t credit[NODES], debt[NODES];
	uint64_t
	    spent; /* of the window: asked for, and committed, but for what is owed */
	uint64_t
	    excess; /* of holds settled while a debt was owed, and of that which began it */
	struct call calls[HOLDS];
};

static uint64_t living(const struct game *game, uint64_t of)
{
	return credit_lives(of, at(game->now)) ? credit_units(of) : 0;
}

/* Units of the window come into a node's hands: what is owed comes first. */
static void put(struct game *game, unsigned node, uint64_t units)
{
	uint64_t put = word(game->window, units);
	uint64_t paid = debt_paid_by(game->debt[node], put, at(game->now));

	game->debt[node] -= paid;
	if (units > paid)
		game->credit[node] =
		    credit_with(game->credit[node], put - paid, at(game->now));
}

static uint64_t take(struct game *game, unsigned node, uint64_t cost)
{
	if (!credit_covers(game->credit[node], at(game->now), cost))
		return 0;
	game->credit[node] -= cost;
	return (game->credit[node] & ~CREDIT_UNITS_MAX) | cost;
}

static void lease(struct game *game, unsigned node)
{
	uint64_t want = chance_between(&game->chance, 1, game->limit);
	uint64_t units = want < game->store ? want : game->store;

	game->store -= units;
	if (units > 0)
		put(game, node, units);
}

static void give_back_idle(struct game *game, unsigned node)
{
	game->store += living(game, game->credit[node]);
	game->credit[node] = 0;
}

static uint64_t some(struct game *game)
{
	return chance_between(&game->chance, 1, game->limit / 2 + 1);
}

static void ask(struct game *game, unsigned node)
{
	uint64_t taken = take(game, node, some(game));

	game->spent += credit_units(taken);
}

static void hold(struct game *game, struct call *call, unsigned node)
{
	uint64_t taken = take(game, node, hold_cut(some(game), game->limit));

	if (taken)
		*call = (struct call){ .held = { .word = taken },
			               .node = node,
			               .window = game->window,
			               .runs = true };
}

static void grow(struct game *game, struct call *call)
{
	uint64_t taken;

	taken = take(game, call->node, some(game));
	if (!taken)
		return;
	hold_grow(&call->held, taken, at(game->now));
	call->window = game->window;
}

/* Units that were held of the window count as spent, but for those that go back; a debt is spent when it is
 * paid. */
static void settle(struct game *game, struct call *call)
{
	uint64_t units = held_units(&call->held);
	uint64_t cost = chance_below(&game->chance, 2 * units + 2);
	struct hold_end end = hold_settle(&call->held, cost, at(game->now));
	unsigned node = call->node;
	uint64_t paid;

	call->runs = false;
	if (call->window != game->window) {
		assert_int_equal(end.back + end.over, 0); /* HOLD-2 */
		return;
	}
	assert_true(end.back <= credit_units(call->held.word));
	game->spent += credit_units(call->held.word) - end.back + end.over;
	if (end.over > 0) {
		game->excess += end.over;
		game->debt[node] = debt_with(
		    game->debt[node], word(game->window, end.over), at(game->now));
		paid =
		    debt_paid_by(game->debt[node], game->credit[node], at(game->now));
		game->debt[node] -= paid;
		game->credit[node] -= paid;
	}
	if (end.back > 0)
		put(game, node, end.back);
}

static uint64_t owed(const struct game *game)
{
	uint64_t sum = 0;

	for (unsigned node = 0; node < NODES; node++)
		sum += living(game, game->debt[node]);
	return sum;
}

static void the_laws_hold(struct game *game)
{
	uint64_t sum = game->store + game->spent;

	for (unsigned node = 0; node < NODES; node++) {
		sum += living(game, game->credit[node]);
		if (living(game, game->debt[node]) > 0) /* HOLD-3 */
			assert_int_equal(living(game, game->credit[node]), 0);
	}
	for (int i = 0; i < HOLDS; i++)
		if (game->calls[i].runs && game->calls[i].window == game->window)
			sum += credit_units(game->calls[i].held.word);
	assert_int_equal(sum, game->limit + owed(game)); /* HOLD-1 */
	if (owed(game) == 0)
		game->excess = 0;
	assert_true(game->spent <= game->limit + game->excess); /* HOLD-3 */
}

static void turn_window(struct game *game)
{
	game->window += WINDOW;
	game->store = game->limit;
	game->spent = game->excess = 0;
}

static void step(struct game *game)
{
	unsigned node = (unsigned)chance_below(&game->chance, NODES);
	struct call *call = &game->calls[chance_below(&game->chance, HOLDS)];

	switch (chance_below(&game->chance, 8)) {
	case 0:
		lease(game, node);
		break;
	case 1:
		if (owed(game) == 0)
			give_back_idle(game, node);
		break;
	case 2:
		ask(game, node);
		break;
	case 3:
		if (call->runs)
			grow(game, call);
		break;
	case 4:
		game->now += chance_below(&game->chance, WINDOW / 4);
		break;
	default:
		if (call->runs)
			settle(game, call);
		else
			hold(game, call, node);
	}
	while (game->now >= game->window)
		turn_window(game);
}

static void what_is_drawn_by_lot_keeps_the_laws(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < GAMES; seed++) {
		struct game game = { .chance = { seed } };

		game.limit = chance_between(&game.chance, 1, 1000);
		game.now = 1;
		turn_window(&game);
		for (int i = 0; i < 200; i++) {
			step(&game);
			the_laws_hold(&game);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rest_goes_back_and_what_is_over_is_owed),
		cmocka_unit_test(a_window_that_is_over_is_left_alone),
		cmocka_unit_test(
		    a_hold_that_outlives_its_window_gives_back_of_the_last),
		cmocka_unit_test(what_dies_together_grows_without_a_clock),
		cmocka_unit_test(what_was_made_void_goes_back_no_more),
		cmocka_unit_test(a_bound_above_the_limit_is_cut_to_it),
		cmocka_unit_test(a_hold_grows_as_far_as_a_word_goes),
		cmocka_unit_test(a_debt_is_paid_by_its_own_window),
		cmocka_unit_test(one_denial_denies_the_whole),
		cmocka_unit_test(a_whole_waits_for_what_takes_longest),
		cmocka_unit_test(what_is_drawn_by_lot_keeps_the_laws),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
