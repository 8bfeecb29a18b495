/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * block_test.c -- each place once, none that has passed, none too early.
 *
 * Place p is p * period / limit after the first; here that is compared by multiplying,
 * in 128 bits, so that nothing is rounded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "shards/block.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"

#define FIRST UINT64_C(5000000123)
#define SLOT_US UINT64_C(1700000000000000)

static mono at(uint64_t ns)
{
	return (mono){ ns };
}

static struct rule rule_of(uint64_t limit, uint64_t period_us, uint64_t max_wait_us)
{
	return (struct rule){ .is = { .limit = limit,
		                      .period_us = period_us,
		                      .max_wait_us = max_wait_us },
		              .capacity = 42 };
}

static struct block block_of(const struct rule *rule, uint64_t count)
{
	struct block block;

	memset(&block, 0, sizeof(block));
	block.rule = *rule;
	block.first = at(FIRST);
	block.slot = slot_at(SLOT_US);
	block.count = count;
	return block;
}

/* When the place may go, in parts of which limit make a nanosecond. */
static uint128 exact_place(const struct rule *rule, uint64_t place)
{
	return (uint128)FIRST * rule->is.limit +
	       (uint128)place * rule->is.period_us * 1000;
}

/* The place that was given, as the slot says. */
static uint64_t place_of(const struct rule *rule, const struct gale_slot *slot)
{
	uint128 parts = (uint128)(slot->us - SLOT_US) * rule->is.limit + slot->part;

	assert_true(parts % rule->is.period_us == 0);
	return (uint64_t)(parts / rule->is.period_us);
}

static void check_admitted(const struct rule *rule, uint64_t place, mono now,
                           const struct gale_answer *answer)
{
	uint128 goes = (uint128)(now.ns + answer->delay_ns) * rule->is.limit;
	uint128 exact = exact_place(rule, place);

	assert_int_equal(answer->verdict, GALE_ALLOW);
	assert_int_equal(answer->why, GALE_WHY_CREDIT);
	assert_int_equal(answer->limit, 42);
	assert_int_equal(place_of(rule, &answer->slot), place);
	assert_true(answer->slot.part < rule->is.limit);
	assert_true(goes >= exact);                 /* BLOCK-1: never early */
	assert_true(goes < exact + rule->is.limit); /* nor late by a nanosecond */
	/* BLOCK-1: not passed */
	assert_true(exact >= (uint128)now.ns * rule->is.limit);
	assert_int_equal(answer->reset_after_us, answer->delay_ns / 1000);
}

static void places_are_as_far_apart_as_the_rule_says(void **state)
{
	static const uint64_t rates[][2] = { { 3, 1000000 }, { 7, 1000000 },
		                             { 1, 10 },      { 999983, 1000000 },
		                             { 1, 1000000 }, { 64, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct rule rule = rule_of(rates[i][0], rates[i][1], 1u << 30);
		struct block block = block_of(&rule, 100);
		struct gale_answer answer;

		for (uint64_t place = 0; place < 100; place++) {
			assert_true(block_take(&block, at(FIRST - 99), 1, &answer));
			check_admitted(&rule, place, at(FIRST - 99), &answer);
			assert_int_equal(answer.remaining, 99 - place);
		}
		assert_false(block_take(&block, at(0), 1, &answer)); /* BLOCK-1 */
	}
}

static void three_a_second_are_a_third_apart(void **state)
{
	static const uint64_t delays[] = { 0, 333333334, 666666667, 1000000000 };
	struct rule rule = rule_of(3, 1000000, 2000000);
	struct block block = block_of(&rule, 4);
	struct gale_answer answer;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_true(block_take(&block, at(FIRST), 1, &answer));
		assert_int_equal(answer.delay_ns, delays[i]);
	}
	block = block_of(&rule, 4);
	assert_true(block_take(&block, at(FIRST + 333333333), 1, &answer));
	assert_int_equal(place_of(&rule, &answer.slot), 1); /* not quite passed */
	assert_int_equal(answer.delay_ns, 1);
	block = block_of(&rule, 4);
	assert_true(block_take(&block, at(FIRST + 333333334), 1, &answer));
	assert_int_equal(place_of(&rule, &answer.slot), 2); /* BLOCK-1 */
}

static void several_places_are_in_a_row(void **state)
{
	struct rule rule = rule_of(1, 10, 1000);
	struct block block = block_of(&rule, 10);
	struct gale_answer answer;

	(void)state;
	assert_true(block_take(&block, at(FIRST), 4, &answer));
	check_admitted(&rule, 0, at(FIRST), &answer);
	assert_int_equal(answer.remaining, 6);
	assert_false(block_take(&block, at(FIRST), 7, &answer));
	assert_false(block_take(&block, at(FIRST), UINT64_MAX, &answer));
	assert_true(block_take(&block, at(FIRST), 6, &answer));
	check_admitted(&rule, 4, at(FIRST), &answer);
	assert_int_equal(block_left(&block, at(FIRST)), 0);
}

static void who_would_wait_too_long_is_refused(void **state)
{
	struct rule rule = rule_of(1, 10, 25);
	struct block block = block_of(&rule, 10);
	struct gale_answer answer;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(block_take(&block, at(FIRST), 1, &answer));
	assert_int_equal(answer.delay_ns, 20000);
	assert_true(block_take(&block, at(FIRST), 1, &answer));
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.why, GALE_WHY_SPENT);
	assert_int_equal(answer.retry_after_us, 5);
	assert_int_equal(answer.slot.us, 0);
	assert_int_equal(block_left(&block, at(FIRST)), 7); /* none was taken */
	assert_true(block_take(&block, at(FIRST + 4999), 1, &answer));
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_int_equal(answer.retry_after_us, 1); /* rounded up */
	assert_true(block_take(&block, at(FIRST + 5000), 1, &answer));
	assert_int_equal(answer.delay_ns, 25000);
}

static void what_is_left_is_closed_and_given_back_once(void **state)
{
	struct rule rule = rule_of(1, 10, 1000);
	struct block block = block_of(&rule, 10);
	struct gale_answer answer;

	(void)state;
	assert_int_equal(block_left(&block, at(0)), 10);
	assert_true(block_take(&block, at(FIRST), 1, &answer));
	assert_int_equal(block_left(&block, at(FIRST)), 9);
	assert_int_equal(block_left(&block, at(FIRST + 30000)), 7); /* 1, 2 passed */
	assert_int_equal(block_left(&block, at(FIRST + 30001)), 6);
	assert_int_equal(block_left(&block, at(FIRST + 90001)), 0);
	assert_int_equal(block_left(&block, at(UINT64_MAX)), 0);
	assert_int_equal(block_close(&block, at(FIRST + 30000)), 7); /* BLOCK-2 */
	assert_int_equal(block_close(&block, at(FIRST)), 0);
	assert_false(block_take(&block, at(FIRST), 1, &answer)); /* BLOCK-2 */
	assert_int_equal(block_left(&block, at(FIRST)), 0);
}

/* ---- Beside a model -------------------------------------------------------------- */

static uint64_t first_not_passed(const struct rule *rule, uint64_t count, mono now)
{
	uint64_t place = 0;

	while (place < count &&
	       exact_place(rule, place) < (uint128)now.ns * rule->is.limit)
		place++;
	return place;
}

static void step(struct chance *chance, struct block *block, uint64_t *next, mono now)
{
	const struct rule *rule = &block->rule;
	uint64_t cost = chance_between(chance, 1, 3), first;
	struct gale_answer answer;
	bool taken = block_take(block, now, cost, &answer);

	first = first_not_passed(rule, block->count, now);
	if (first < *next)
		first = *next;
	assert_int_equal(taken, first + cost <= block->count);
	if (taken && answer.verdict == GALE_ALLOW) {
		check_admitted(rule, first, now, &answer);
		assert_true(answer.delay_ns <= rule->is.max_wait_us * 1000);
		*next = first + cost; /* BLOCK-1 */
	} else if (taken) {
		assert_true(exact_place(rule, first) >
		            (uint128)(now.ns + rule->is.max_wait_us * 1000 - 1) *
		                rule->is.limit);
	}
	if (*next > first)
		first = *next;
	assert_int_equal(block_left(block, now), block->count - first);
}

static void whatever_happens_places_follow_the_model(void **state)
{
	struct chance chance = { 9 };

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct rule rule = rule_of(chance_between(&chance, 1, 50),
		                           chance_between(&chance, 1, 1000),
		                           chance_between(&chance, 1, 2000));
		struct block block = block_of(&rule, chance_between(&chance, 1, 60));
		uint64_t span_ns = rule.is.period_us * 1000 / rule.is.limit + 1;
		uint64_t next = 0;
		mono now = { FIRST - chance_below(&chance, 2 * span_ns) };

		for (int j = 0; j < 40; j++) {
			step(&chance, &block, &next, now);
			now.ns += chance_below(&chance, 2 * span_ns);
		}
	}
}

/* ---- Threads --------------------------------------------------------------------- */

#define TAKERS 3
#define COUNT 60000

struct scene {
	struct rule rule;
	struct block block;
	_Atomic uint8_t given[COUNT];
	_Atomic uint64_t places;
	uint64_t back;
};

static void take_all(struct scene *s, unsigned who)
{
	struct gale_answer answer;
	uint64_t cost = 1 + who % 2, parts;

	while (block_take(&s->block, at(FIRST), cost, &answer)) {
		parts =
		    (answer.slot.us - SLOT_US) * s->rule.is.limit + answer.slot.part;
		for (uint64_t i = 0; i < cost; i++) /* BLOCK-1 */
			must(add_relaxed(&s->given[parts / s->rule.is.period_us + i],
			                 1) == 0);
		add_relaxed(&s->places, cost);
	}
}

static void scene_main(void *arg, unsigned who)
{
	struct scene *s = arg;

	if (who < TAKERS) {
		take_all(s, who);
		return;
	}
	while (load_relaxed(&s->places) < COUNT / 2)
		continue;
	s->back = block_close(&s->block, at(FIRST));
}

static void threads_get_different_places_and_the_rest_comes_back(void **state)
{
	static struct scene s;

	(void)state;
	memset(&s, 0, sizeof(s));
	s.rule = rule_of(3, 1000, UINT64_C(1) << 40);
	s.block = block_of(&s.rule, COUNT);
	crew_run(TAKERS + 1, scene_main, &s);
	/* BLOCK-1, BLOCK-2: when no time passes, none is missing and none is too many; the last one
	 * may be too few for who wants two. */
	assert_int_equal(load_relaxed(&s.places) + s.back, COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_as_far_apart_as_the_rule_says),
		cmocka_unit_test(three_a_second_are_a_third_apart),
		cmocka_unit_test(several_places_are_in_a_row),
		cmocka_unit_test(who_would_wait_too_long_is_refused),
		cmocka_unit_test(what_is_left_is_closed_and_given_back_once),
		cmocka_unit_test(whatever_happens_places_follow_the_model),
		cmocka_unit_test(threads_get_different_places_and_the_rest_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
