/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * many_test.c -- many asks at once are answered as they would be one by one.
 *
 * Two houses of the same plan are asked the same: one by gale_ask_many, the other by gale_ask.
 * The host takes the turns, and time moves by hand, alike in both.  There is one shard, as keys
 * are spread over several by a secret of each house.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "face/lend.h"
#include "shards/local.h"
#include "sim/random.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/same.h"

#define KEYS 400 /* so many that some look like others to the table */
#define KEY_LONGEST 60
#define MOST 50 /* questions of a call: more than are fetched at a time */
#define CALLS LONG_OR_BRIEF(600, 200)
#define LIMIT 20
#define CELLS 4

static struct house by_many, by_one;
static struct chance chance;

/* Of some keys. */
static enum heat {
	COOL,
	HOT,    /* they have cells */
	FOUGHT, /* and threads have fought over what all share */
} heat;

/* ---- Questions ------------------------------------------------------------------- */

static struct gale_question questions[MOST];
static uint8_t keys[MOST][KEY_LONGEST];

/* Of 1 byte and more, most of 9 to 16. */
static size_t len_of(uint64_t which)
{
	static const size_t lens[] = { 1, 2, 3, 5, 8, 17, 24, 33, KEY_LONGEST };

	return which % 4 ? 9 + which % 8 : lens[which / 4 % 9];
}

static void put_key(unsigned i, uint64_t which)
{
	size_t len = len_of(which);

	memset(keys[i], 'k', len);
	keys[i][0] = (uint8_t)which;
	if (len > 1)
		keys[i][len - 1] = (uint8_t)(which >> 8);
	questions[i] = (struct gale_question){ keys[i], len, 1, &keys[i] };
}

/* What nobody may ask, in between. */
static void spoil(struct gale_question *question)
{
	static const size_t bad_lens[] = { 0, GALE_KEY_MAX + 1, UINT16_MAX + 1 + 12 };
	static const uint64_t bad_costs[] = { 0, LIMIT + 1, UINT64_MAX };

	switch (chance_below(&chance, 3)) {
	case 0:
		question->key = NULL;
		break;
	case 1:
		question->key_len = bad_lens[chance_below(&chance, 3)];
		break;
	default:
		question->cost = bad_costs[chance_below(&chance, 3)];
	}
}

/* The same key twice only where all are cool: of what a cell lacks and the others have a later
 * ask may take first.  Single units where many take from elsewhere than one does: what a cell
 * has and what the others have is not taken together. */
static size_t think_of_some(void)
{
	size_t count = chance_between(&chance, 1, MOST);
	uint64_t first = chance_below(&chance, KEYS);

	for (unsigned i = 0; i < count; i++) {
		put_key(i, heat == COOL ? chance_below(&chance, KEYS)
		                        : (first + i) % KEYS);
		if (heat != HOT)
			questions[i].cost = chance_between(&chance, 1, 7);
		if (chance_one_in(&chance, 20))
			spoil(&questions[i]);
	}
	return count;
}

/* ---- Answers --------------------------------------------------------------------- */

/* What is left where it was taken from is not told of the same place. */
static void same(const struct gale_answer *a, const struct gale_answer *b)
{
	struct gale_answer of_b = *b;

	if (heat == HOT && a->verdict != GALE_DENY)
		of_b.remaining = a->remaining;
	same_answer(a, &of_b);
}

static void ask_both(size_t count)
{
	struct gale_answer answers[MOST];

	gale_ask_many(by_many.seat, by_many.limiter, questions, count, answers);
	for (size_t i = 0; i < count; i++) {
		const struct gale_question *it = &questions[i];
		struct gale_answer answer =
		    gale_ask(by_one.seat, by_one.limiter, it->key, it->key_len,
		             it->cost, it->tag);

		same(&answers[i], &answer);
	}
}

static size_t hear(struct house *house, struct gale_completion *ret_completions)
{
	while (gale_turn(house->runtime) > 0)
		continue;
	return gale_seat_completions(house->seat, ret_completions, MOST);
}

static void hear_both(void)
{
	static struct gale_completion of_many[MOST], of_one[MOST];
	size_t count = hear(&by_many, of_many);

	assert_int_equal(hear(&by_one, of_one), count);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(of_many[i].tag, of_one[i].tag);
		same(&of_many[i].answer, &of_one[i].answer);
	}
}

/* ---- Both houses ----------------------------------------------------------------- */

static void open_both(enum gale_mode mode, struct gale_rule rule)
{
	struct house_plan plan = {
		.rule = rule, .mode = mode, .shards = 1, .turns = true, .still = true
	};

	if (mode == GALE_LEASED)
		plan.lease =
		    (struct gale_leasing){ .sizing = GALE_SIZE_FIXED, .batch = 8 };
	chance = (struct chance){ 1 };
	house_open(&by_many, &plan);
	house_open(&by_one, &plan);
}

static void open_leased(void)
{
	open_both(GALE_LEASED, gale_fixed_window(LIMIT, GALE_SECONDS(10)));
}

static struct purse *purse_in(struct house *house, const struct gale_question *question)
{
	struct purse_name name = { &house->limiter->lender, question->key,
		                   (uint16_t)question->key_len, 0 };

	name.hash = local_hash(name.lender, name.key, name.key_len);
	return purses_find(&house->runtime->shards[0].lessor.purses, &name);
}

static void make_hot(struct house *house, const struct gale_question *question)
{
	struct purse *purse = purse_in(house, question);

	if (!purse)
		return;
	if (!load_relaxed(&purse->split))
		(void)purses_give_cells(&house->runtime->shards[0].lessor.purses, purse,
		                        CELLS);
	store_relaxed(&purse->fought, heat == FOUGHT);
}

/* Some keys have cells from now on, the same in both. */
static void make_some_hot(void)
{
	for (uint64_t which = 0; which < KEYS; which += 3) {
		put_key(0, which);
		make_hot(&by_many, &questions[0]);
		make_hot(&by_one, &questions[0]);
	}
}

static void close_both(uint64_t least_from_here)
{
	static const char *const names[] = { "allowed_from_credit",
		                             "refused_from_memory", "missed" };
	uint64_t from_here =
	    house_metric(&by_many, names[0]) + house_metric(&by_many, names[1]);

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(house_metric(&by_many, names[i]),
		                 house_metric(&by_one, names[i]));
	assert_true(from_here >= least_from_here);
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

static void pass(uint64_t us)
{
	test_clock_advance(&by_many.clock, us);
	test_clock_advance(&by_one.clock, us);
}

/* A seat that has ticked is at that instant until it ticks again. */
static void tick_both(bool ticks)
{
	if (!ticks)
		return;
	gale_tick(by_many.seat);
	gale_tick(by_one.seat);
}

static void answers_are_the_same(bool ticks, uint64_t least_from_here)
{
	for (unsigned i = 0; i < CALLS; i++) {
		/* Whether it is fought over the actor says anew at each look. */
		if (heat == FOUGHT || (heat == HOT && i % 16 == 15))
			make_some_hot();
		tick_both(ticks);
		ask_both(think_of_some());
		hear_both();
		pass(chance_below(&chance, GALE_SECONDS(1) / 4));
	}
	close_both(least_from_here);
}

static void many_are_answered_as_one_by_one(void **state)
{
	(void)state;
	for (int ticks = 0; ticks < 2; ticks++) {
		open_leased();
		answers_are_the_same(ticks, CALLS * MOST / 8);
		open_both(GALE_LEASED, gale_gcra(LIMIT, GALE_SECONDS(10), LIMIT));
		answers_are_the_same(ticks, CALLS * MOST / 8);
		open_both(GALE_LEASED, gale_pacer(LIMIT, GALE_SECONDS(10), 4));
		answers_are_the_same(ticks, CALLS);
		open_both(GALE_CACHED_DENY, gale_fixed_window(LIMIT, GALE_SECONDS(10)));
		answers_are_the_same(ticks, CALLS);
		open_both(GALE_STRICT, gale_fixed_window(LIMIT, GALE_SECONDS(10)));
		answers_are_the_same(ticks, 0);
	}
}

static void hot_keys_are_answered_as_one_by_one(void **state)
{
	(void)state;
	for (int ticks = 0; ticks < 2; ticks++)
		for (heat = HOT; heat <= FOUGHT; heat++) {
			open_leased();
			answers_are_the_same(ticks, CALLS * MOST / 8);
		}
	heat = COOL;
}

/* ---- At the edges ---------------------------------------------------------------- */

static void nothing_is_asked_of_nobody(void **state)
{
	struct gale_answer answer = { .verdict = GALE_PENDING };

	(void)state;
	open_leased();
	put_key(0, 0);
	gale_ask_many(by_many.seat, by_many.limiter, NULL, 1, &answer);
	gale_ask_many(by_many.seat, by_many.limiter, questions, 1, NULL);
	gale_ask_many(by_many.seat, by_many.limiter, questions, 0, &answer);
	assert_int_equal(answer.verdict, GALE_PENDING);
	gale_ask_many(NULL, by_many.limiter, questions, 1, &answer);
	assert_int_equal(answer.why, GALE_WHY_BAD_ASK);
	gale_ask_many(by_many.seat, by_one.limiter, questions, 1, &answer);
	assert_int_equal(answer.why, GALE_WHY_BAD_ASK);
	close_both(0);
}

/* All of them, though the credit is still there. */
static void a_limiter_that_is_closed_answers_none(void **state)
{
	struct gale_answer answers[MOST];

	(void)state;
	open_leased();
	for (unsigned i = 0; i < MOST; i++)
		put_key(i, i);
	ask_both(MOST);
	hear_both();
	gale_limiter_close(by_many.limiter);
	gale_ask_many(by_many.seat, by_many.limiter, questions, MOST, answers);
	by_many.limiter = NULL;
	for (unsigned i = 0; i < MOST; i++)
		assert_int_equal(answers[i].why, GALE_WHY_CLOSED);
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

static void ask_for_credit(size_t count)
{
	for (unsigned i = 0; i < count; i++)
		put_key(i, i);
	ask_both(count);
	hear_both();
}

/* So that the hand passes by (purses.h). */
static void what_is_asked_about_is_in_use(void **state)
{
	struct gale_answer answer;
	struct purse *purse;

	(void)state;
	open_leased();
	ask_for_credit(1);
	purse = purse_in(&by_many, &questions[0]);
	assert_non_null(purse);
	store_relaxed(&purse->used, false);
	gale_ask_many(by_many.seat, by_many.limiter, questions, 1, &answer);
	assert_int_equal(answer.why, GALE_WHY_CREDIT);
	assert_true(load_relaxed(&purse->used));
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

/* Sixteen at a time are one read and one instant, also of a seat that does not tick. */
static void the_clock_is_read_once_for_sixteen(void **state)
{
	struct gale_answer answers[MOST];
	uint64_t reads;

	(void)state;
	open_leased();
	ask_for_credit(40);
	reads = load_relaxed(&by_many.clock.boot_reads);
	gale_ask_many(by_many.seat, by_many.limiter, questions, 40, answers);
	assert_int_equal(load_relaxed(&by_many.clock.boot_reads), reads + 3);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(answers[i].why, GALE_WHY_CREDIT);
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

/* ---- Where a hot key is taken from ----------------------------------------------- */

static uint64_t units_in(_Atomic uint64_t *credit)
{
	return credit_units(load_relaxed(credit));
}

/* A key with cells: 3 units are in the seat's, and 4 in what all share. */
static struct purse *open_with_units_in_both(bool fought)
{
	struct purse *purse;
	uint64_t word;

	open_leased();
	ask_for_credit(1);
	purse = purse_in(&by_many, &questions[0]);
	assert_true(
	    purses_give_cells(&by_many.runtime->shards[0].lessor.purses, purse, CELLS));
	store_relaxed(&purse->fought, fought);
	word = load_relaxed(&purse->credit);
	assert_int_equal(credit_units(word), 7);
	store_relaxed(&local_cell(purse, by_many.seat->number)->credit, word - 4);
	store_relaxed(&purse->credit, word - 3);
	return purse;
}

/* So many units, each by a question of its own; the store is not asked for any. */
static void take_from_here(size_t count)
{
	struct gale_answer answers[MOST];
	uint64_t missed = house_metric(&by_many, "missed");

	for (unsigned i = 0; i < count; i++)
		put_key(i, 0);
	gale_ask_many(by_many.seat, by_many.limiter, questions, count, answers);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(answers[i].why, GALE_WHY_CREDIT);
	assert_int_equal(house_metric(&by_many, "missed"), missed);
}

static void a_hot_key_is_taken_from_what_all_share_before_the_cell(void **state)
{
	struct purse *purse = open_with_units_in_both(/* fought= */ false);
	struct cell *cell = local_cell(purse, by_many.seat->number);

	(void)state;
	take_from_here(4);
	assert_int_equal(units_in(&purse->credit), 0);
	assert_int_equal(units_in(&cell->credit), 3);
	/* L5: what is here goes before what is remembered. */
	purse_deny(purse, (mono){ UINT64_MAX / 2 }, 1);
	take_from_here(3);
	assert_int_equal(units_in(&cell->credit), 0);
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

static struct gale_answer many_answers_one(void)
{
	struct gale_answer answer;

	gale_ask_many(by_many.seat, by_many.limiter, questions, 1, &answer);
	return answer;
}

/* It takes from what all share, fought over or not. */
static void a_seat_without_a_cell_is_answered_too(void **state)
{
	(void)state;
	for (int fought = 0; fought < 2; fought++) {
		struct purse *purse = open_with_units_in_both(fought);
		uint32_t number = by_many.seat->number;

		by_many.seat->number = CELLS_MOST;
		take_from_here(4);
		assert_int_equal(units_in(&purse->credit), 0);
		purse_deny(purse, (mono){ UINT64_MAX / 2 }, 1);
		assert_int_equal(many_answers_one().why, GALE_WHY_SPENT);
		purse_forget_denial(purse);
		assert_int_equal(many_answers_one().verdict, GALE_PENDING);
		by_many.seat->number = number;
		assert_true(house_close(&by_many));
		assert_true(house_close(&by_one));
	}
}

static void what_is_fought_over_is_taken_from_the_cell(void **state)
{
	struct purse *purse = open_with_units_in_both(/* fought= */ true);
	struct cell *cell = local_cell(purse, by_many.seat->number);

	(void)state;
	take_from_here(3);
	assert_int_equal(units_in(&purse->credit), 4);
	assert_int_equal(units_in(&cell->credit), 0);
	take_from_here(4);
	assert_int_equal(units_in(&purse->credit) + units_in(&cell->credit), 0);
	assert_true(house_close(&by_many));
	assert_true(house_close(&by_one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_are_answered_as_one_by_one),
		cmocka_unit_test(hot_keys_are_answered_as_one_by_one),
		cmocka_unit_test(nothing_is_asked_of_nobody),
		cmocka_unit_test(a_limiter_that_is_closed_answers_none),
		cmocka_unit_test(what_is_asked_about_is_in_use),
		cmocka_unit_test(the_clock_is_read_once_for_sixteen),
		cmocka_unit_test(
		    a_hot_key_is_taken_from_what_all_share_before_the_cell),
		cmocka_unit_test(what_is_fought_over_is_taken_from_the_cell),
		cmocka_unit_test(a_seat_without_a_cell_is_answered_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
