/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * credit_test.c -- a word of credit at its edges, and all small words there are.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/credit.h"
#include "sim/random.h"

#define TICK CREDIT_TICK_NS

static mono at(uint64_t ns)
{
	return (mono){ ns };
}

static void the_word_holds_what_was_put_in(void **state)
{
	static const uint64_t units[] = {
		0, 1, 2, 1000, CREDIT_UNITS_MAX - 1, CREDIT_UNITS_MAX
	};

	(void)state;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		uint64_t word = credit_until(at(7 * TICK), units[i]);

		assert_int_equal(credit_units(word), units[i]);
		assert_int_equal(credit_dies(word).ns, 7 * TICK);
	}
	assert_int_equal(CREDIT_UNITS_MAX, 1048575);
	assert_int_equal(TICK, 65536);
}

static void it_dies_at_the_start_of_its_tick(void **state)
{
	(void)state;
	for (uint64_t off = 0; off < TICK; off += 4369) {
		uint64_t word = credit_until(at(9 * TICK + off), 3);

		assert_int_equal(credit_dies(word).ns, 9 * TICK); /* CREDIT-2 */
		assert_true(credit_lives(word, at(0)));
		assert_true(credit_lives(word, at(9 * TICK - 1)));
		assert_false(credit_lives(word, at(9 * TICK))); /* CREDIT-2 */
		assert_false(credit_lives(word, at(9 * TICK + off)));
		assert_false(credit_lives(word, at(UINT64_MAX)));
	}
}

static void what_has_no_whole_tick_left_is_dead_at_once(void **state)
{
	uint64_t word = credit_until(at(5 * TICK + 100), 3);

	(void)state;
	assert_false(credit_lives(word, at(5 * TICK + 1))); /* CREDIT-2 */
	assert_false(credit_lives(credit_until(at(0), 3), at(0)));
	assert_false(credit_lives(credit_until(at(TICK - 1), 3), at(0)));
	assert_true(credit_lives(credit_until(at(TICK), 3), at(0)));
	assert_false(credit_lives(0, at(0))); /* an empty word is dead always */
}

static void the_last_tick_is_the_last(void **state)
{
	uint64_t word = credit_until(at(UINT64_MAX), CREDIT_UNITS_MAX);
	uint64_t last_ns = CREDIT_LAST_TICK * TICK;

	(void)state;
	assert_int_equal(word >> CREDIT_UNIT_BITS, CREDIT_LAST_TICK);
	assert_int_equal(credit_units(word), CREDIT_UNITS_MAX);
	assert_true(credit_lives(word, at(last_ns - 1)));
	assert_false(credit_lives(word, at(last_ns)));
	assert_int_equal(credit_until(at(last_ns), 1), credit_until(at(UINT64_MAX), 1));
	assert_true(credit_until(at(last_ns - 1), 1) < credit_until(at(last_ns), 1));
}

/* The same in plain words: units, and the tick. */
static void check_word(uint64_t tick, uint64_t units, uint64_t now, uint64_t cost)
{
	uint64_t word = credit_until(at(tick * TICK), units);
	bool covers = units >= cost && now / TICK < tick;

	assert_true(credit_covers(word, at(now), cost) == covers); /* CREDIT-1 */
	if (!covers)
		return;
	assert_int_equal(credit_units(word - cost), units - cost); /* CREDIT-1 */
	assert_int_equal(credit_dies(word - cost).ns, tick * TICK);
}

static void every_small_word_covers_what_it_has(void **state)
{
	(void)state;
	for (uint64_t tick = 0; tick < 5; tick++)
		for (uint64_t units = 0; units < 8; units++)
			for (uint64_t cost = 1; cost < 10; cost++)
				for (uint64_t half = 0; half < 12; half++) {
					uint64_t now = half * TICK / 2;

					check_word(tick, units, now, cost);
					if (now > 0)
						check_word(tick, units, now - 1, cost);
				}
}

static void a_cost_beyond_the_word_is_never_covered(void **state)
{
	uint64_t word = credit_until(at(UINT64_MAX), CREDIT_UNITS_MAX);

	(void)state;
	assert_true(credit_covers(word, at(0), CREDIT_UNITS_MAX));
	assert_false(credit_covers(word, at(0), CREDIT_UNITS_MAX + 1)); /* CREDIT-1 */
	assert_false(credit_covers(word, at(0), UINT64_MAX));
}

static void whatever_is_taken_was_put_in(void **state)
{
	struct chance chance = { 1 };

	(void)state;
	for (int i = 0; i < 2000; i++) {
		uint64_t ends = chance_below(&chance, 50 * TICK), now = 0, sum = 0;
		uint64_t units = chance_below(&chance, 1000);
		uint64_t word = credit_until(at(ends), units);

		for (int step = 0; step < 40; step++) {
			uint64_t cost = chance_between(&chance, 1, 100);

			now += chance_below(&chance, 3 * TICK);
			if (!credit_covers(word, at(now), cost))
				continue;
			assert_true(now < ends); /* CREDIT-2 */
			word -= cost;
			sum += cost;
		}
		assert_true(sum <= units); /* CREDIT-1 */
		assert_int_equal(credit_units(word), units - sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_word_holds_what_was_put_in),
		cmocka_unit_test(it_dies_at_the_start_of_its_tick),
		cmocka_unit_test(what_has_no_whole_tick_left_is_dead_at_once),
		cmocka_unit_test(the_last_tick_is_the_last),
		cmocka_unit_test(every_small_word_covers_what_it_has),
		cmocka_unit_test(a_cost_beyond_the_word_is_never_covered),
		cmocka_unit_test(whatever_is_taken_was_put_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
