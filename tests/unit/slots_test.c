/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * slots_test.c -- the word of a guard: what fits, what is given back, what is in force.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/slots.h"

static uint64_t word_of(uint32_t most, uint32_t in_flight)
{
	return slots_taken(
	    slots_applied(0, 7, (struct slots_ceiling){ most, SLOTS_BY_SHARE }),
	    in_flight);
}

static void each_part_has_its_bits(void **state)
{
	uint64_t word =
	    slots_applied(slots_taken(0, SLOTS_MOST), UINT16_MAX,
	                  (struct slots_ceiling){ SLOTS_MOST, SLOTS_BY_PROBE });

	(void)state;
	assert_int_equal(slots_in_flight(word), SLOTS_MOST);
	assert_int_equal(slots_most(word), SLOTS_MOST);
	assert_int_equal(slots_by(word), SLOTS_BY_PROBE);
	assert_int_equal(slots_generation(word), UINT16_MAX);
	word = word_of(5, 3);
	assert_int_equal(slots_in_flight(word), 3);
	assert_int_equal(slots_most(word), 5);
	assert_int_equal(slots_by(word), SLOTS_BY_SHARE);
	assert_int_equal(slots_generation(word), 7);
}

/* SLOTS-1 */
static void what_fits_is_what_is_left(void **state)
{
	(void)state;
	assert_true(slots_fit(word_of(5, 3), 5, 2));
	assert_false(slots_fit(word_of(5, 3), 5, 3));
	assert_false(slots_fit(word_of(5, 3), 3, 1));
	assert_false(slots_fit(word_of(0, 0), 0, 1));
	assert_true(slots_fit(word_of(SLOTS_MOST, 0), SLOTS_MOST, SLOTS_MOST));
	assert_false(slots_fit(word_of(SLOTS_MOST, 1), SLOTS_MOST, SLOTS_MOST));
	assert_false(slots_fit(word_of(SLOTS_MOST, 1), SLOTS_MOST, UINT32_MAX));
}

/* SLOTS-2 */
static void no_more_is_given_than_is_in_flight(void **state)
{
	(void)state;
	assert_true(slots_can_give(word_of(5, 3), 3));
	assert_false(slots_can_give(word_of(5, 3), 4));
	assert_false(slots_can_give(word_of(5, 0), 1));
	assert_int_equal(slots_given(word_of(5, 3), 3), word_of(5, 0));
}

static uint32_t part(uint32_t most, uint32_t permille)
{
	return slots_part(most, slots_fraction(permille));
}

static void a_part_is_exact(void **state)
{
	(void)state;
	for (uint32_t most = 1; most <= SLOTS_MOST; most += most < 3000 ? 1 : 997)
		for (uint32_t permille = 1; permille <= 1000; permille += 3) {
			uint32_t exact = (uint32_t)((uint64_t)most * permille / 1000);

			if (part(most, permille) != (exact > 0 ? exact : 1))
				fail_msg("%u of %u", permille, most);
		}
}

/* SLOTS-3 */
static void a_part_is_at_least_one_slot(void **state)
{
	(void)state;
	assert_int_equal(part(100, 900), 90);
	assert_int_equal(part(99, 900), 89);
	assert_int_equal(part(10, 1000), 10);
	assert_int_equal(part(1, 900), 1);
	assert_int_equal(part(1, 1), 1);
	assert_int_equal(part(0, 900), 0);
	assert_int_equal(part(SLOTS_MOST, 1000), SLOTS_MOST);
}

static void a_smaller_ceiling_leaves_what_is_in_flight(void **state)
{
	uint64_t word = slots_applied(word_of(9, 8), 8,
	                              (struct slots_ceiling){ 2, SLOTS_BY_ESTIMATE });

	(void)state;
	assert_int_equal(slots_in_flight(word), 8);
	assert_int_equal(slots_most(word), 2);
	assert_int_equal(slots_generation(word), 8);
	assert_false(slots_fit(word, slots_most(word), 1));
	assert_true(slots_fit(slots_given(word, 7), slots_most(word), 1));
}

/* SLOTS-4 */
static void what_is_closed_stays_closed(void **state)
{
	uint64_t word = slots_applied(word_of(9, 8), 7,
	                              (struct slots_ceiling){ 0, SLOTS_BY_CLOSE });

	(void)state;
	assert_true(slots_closed(word));
	assert_int_equal(
	    slots_applied(word, 9, (struct slots_ceiling){ 5, SLOTS_BY_SHARE }), word);
	assert_int_equal(slots_in_flight(word), 8);
}

static void the_least_ceiling_is_in_force_and_says_which_it_is(void **state)
{
	const struct {
		struct slots_ceilings all;
		uint32_t most;
		enum slots_by by;
	} rows[] = {
		{ { 9, 20, 20, 20, false }, 9, SLOTS_BY_CEILING },
		{ { 9, 8, 20, 20, false }, 8, SLOTS_BY_SHARE },
		{ { 9, 8, 7, 20, false }, 7, SLOTS_BY_ESTIMATE },
		{ { 9, 8, 7, 6, false }, 6, SLOTS_BY_PROBE },
		{ { 9, 8, 7, 6, true }, 0, SLOTS_BY_FENCE },
		{ { 9, 9, 9, 9, false }, 9, SLOTS_BY_CEILING },
		{ { 9, 8, 8, 8, false }, 8, SLOTS_BY_SHARE },
		{ { 9, 9, 8, 8, false }, 8, SLOTS_BY_ESTIMATE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slots_ceiling least = slots_least(&rows[i].all);

		assert_int_equal(least.most, rows[i].most);
		assert_int_equal(least.by, rows[i].by);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_has_its_bits),
		cmocka_unit_test(what_fits_is_what_is_left),
		cmocka_unit_test(no_more_is_given_than_is_in_flight),
		cmocka_unit_test(a_part_is_exact),
		cmocka_unit_test(a_part_is_at_least_one_slot),
		cmocka_unit_test(a_smaller_ceiling_leaves_what_is_in_flight),
		cmocka_unit_test(what_is_closed_stays_closed),
		cmocka_unit_test(the_least_ceiling_is_in_force_and_says_which_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
