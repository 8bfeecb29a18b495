/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * combine_test.c -- several answers as one: the worst of each part, in any order.
 */
#include "tests/support/whys.h"
#include "tests/unit/vectors.h"

#define ROUNDS 20000

static struct gale_answer both(struct gale_answer a, struct gale_answer b)
{
	struct gale_answer pair[] = { a, b };

	return gale_combine(pair, 2, NULL);
}

/* Slots are left out: places are given back one by one, so a combination has none. */
static void expect_same(struct gale_answer a, struct gale_answer b)
{
	assert_int_equal(a.verdict, b.verdict);
	assert_int_equal(a.why, b.why);
	assert_int_equal(a.limit, b.limit);
	assert_int_equal(a.remaining, b.remaining);
	assert_int_equal(a.reset_after_us, b.reset_after_us);
	assert_int_equal(a.retry_after_us, b.retry_after_us);
	assert_int_equal(a.delay_ns, b.delay_ns);
}

/* ---- Random answers -------------------------------------------------------------- */

static uint64_t seed;

/* xorshift64*; the same numbers in each run. */
static uint64_t random_below(uint64_t end)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * UINT64_C(2685821657736338717) >> 11) % end;
}

/* Mostly small numbers, so that equals are frequent; sometimes the largest. */
static uint64_t random_number(void)
{
	return random_below(8) == 0 ? GALE_UNITS_MAX - random_below(2)
	                            : random_below(4);
}

static struct gale_answer random_answer(void)
{
	struct gale_answer answer = {
		.verdict = (enum gale_verdict)random_below(3),
		.why = (enum gale_why)random_below(WHYS),
		.limit = random_number(),
		.remaining = random_number(),
		.reset_after_us = random_number(),
		.slot = { random_number(), random_number() },
	};

	if (answer.verdict == GALE_DENY)
		answer.retry_after_us =
		    random_below(8) == 0 ? GALE_NEVER : 1 + random_number();
	else
		answer.delay_ns = random_number();
	return answer;
}

/* ---- The laws (COMBINE-1) -------------------------------------------------------- */

static void nothing_at_all_is_allowed_with_everything_at_its_best(void **state)
{
	size_t binding = 99;
	struct gale_answer none = gale_combine(NULL, 0, &binding);

	(void)state;
	assert_int_equal(none.verdict, GALE_ALLOW);
	assert_int_equal(none.limit, GALE_UNITS_MAX);
	assert_int_equal(none.remaining, GALE_UNITS_MAX);
	assert_int_equal(none.reset_after_us, 0);
	assert_int_equal(none.retry_after_us, 0);
	assert_int_equal(none.delay_ns, 0);
	assert_int_equal(binding, 0);
}

static void nothing_added_changes_nothing(void **state)
{
	struct gale_answer none = gale_combine(NULL, 0, NULL);

	(void)state;
	seed = 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct gale_answer a = random_answer();

		expect_same(both(none, a), a);
		expect_same(both(a, none), a);
	}
}

static void one_answer_is_its_own_combination(void **state)
{
	(void)state;
	seed = 2;
	for (int i = 0; i < ROUNDS; i++) {
		struct gale_answer a = random_answer();

		expect_same(gale_combine(&a, 1, NULL), a);
		expect_same(both(a, a), a);
	}
}

static void order_does_not_matter(void **state)
{
	(void)state;
	seed = 3;
	for (int i = 0; i < ROUNDS; i++) {
		struct gale_answer a = random_answer(), b = random_answer();

		expect_same(both(a, b), both(b, a));
	}
}

static void grouping_does_not_matter(void **state)
{
	(void)state;
	seed = 4;
	for (int i = 0; i < ROUNDS; i++) {
		struct gale_answer abc[] = { random_answer(), random_answer(),
			                     random_answer() };
		struct gale_answer all = gale_combine(abc, 3, NULL);

		expect_same(both(both(abc[0], abc[1]), abc[2]), all);
		expect_same(both(abc[0], both(abc[1], abc[2])), all);
	}
}

/* The last in order of those that have the worse verdict. */
static enum gale_why why_of_both(struct gale_answer a, struct gale_answer b)
{
	if (a.verdict != b.verdict)
		return a.verdict < b.verdict ? a.why : b.why;
	return a.why > b.why ? a.why : b.why;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Said part by part, by a second reading of the header. */
static void each_part_is_the_worst_of_both(void **state)
{
	(void)state;
	seed = 5;
	for (int i = 0; i < ROUNDS; i++) {
		struct gale_answer a = random_answer(), b = random_answer();
		struct gale_answer sum = both(a, b);

		assert_int_equal(sum.verdict, least(a.verdict, b.verdict));
		assert_int_equal(sum.why, why_of_both(a, b));
		assert_int_equal(sum.limit, least(a.limit, b.limit));
		assert_int_equal(sum.remaining, least(a.remaining, b.remaining));
		assert_int_equal(sum.reset_after_us,
		                 most(a.reset_after_us, b.reset_after_us));
		assert_int_equal(sum.retry_after_us,
		                 most(a.retry_after_us, b.retry_after_us));
		assert_int_equal(sum.delay_ns, most(a.delay_ns, b.delay_ns));
		assert_int_equal(sum.slot.us, 0);
		assert_int_equal(sum.slot.part, 0);
	}
}

/* ---- What binds ------------------------------------------------------------------ */

struct binding_row {
	size_t count;
	struct gale_answer answers[4];
	size_t binding;
};

/* clang-format off */
#define DELAYED(ns) \
	{ .verdict = GALE_ALLOW, .limit = 9, .remaining = 9, .delay_ns = (ns) }
#define PASSED(left) { .verdict = GALE_ALLOW, .limit = 9, .remaining = (left) }
#define WAITING { .verdict = GALE_PENDING, .limit = 9, .remaining = 9 }
#define REFUSED(retry) { .verdict = GALE_DENY, .limit = 9, .retry_after_us = (retry) }

static const struct binding_row binding_rows[] = {
	{ 1, { PASSED(3) }, 0 },
	{ 3, { PASSED(3), PASSED(1), PASSED(2) }, 1 },
	{ 3, { PASSED(3), PASSED(1), PASSED(1) }, 1 },              /* the first of equals */
	{ 3, { DELAYED(100), DELAYED(300), DELAYED(200) }, 1 },
	{ 3, { DELAYED(300), DELAYED(100), DELAYED(300) }, 0 },
	{ 2, { PASSED(0), DELAYED(100) }, 1 },
	{ 3, { REFUSED(100), REFUSED(300), REFUSED(200) }, 1 },
	{ 3, { REFUSED(300), REFUSED(300), REFUSED(100) }, 0 },
	{ 3, { REFUSED(100), REFUSED(GALE_NEVER), REFUSED(1) }, 1 },
	{ 4, { PASSED(0), DELAYED(900), REFUSED(1), PASSED(0) }, 2 },
	{ 3, { PASSED(0), WAITING, REFUSED(1) }, 2 },
};
/* clang-format on */

static void the_answer_that_decides_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(binding_rows); i++) {
		const struct binding_row *row = &binding_rows[i];
		size_t binding = 99;

		gale_combine(row->answers, row->count, &binding);
		if (binding != row->binding)
			fail_msg("row %zu: expected %zu, got %zu", i + 1, row->binding,
			         binding);
	}
}

/* Three pacers with delays of 100, 300 and 200 ms. */
static void the_longest_delay_of_many_pacers_counts(void **state)
{
	static const uint64_t queued[] = { 1, 3, 2 };
	struct gale_answer answers[3];
	struct key key;
	size_t binding;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		key_open(&key, gale_pacer(10, SEC(1), 0));
		assert_int_equal(key_drain(&key, T0, queued[i]), queued[i]);
		answers[i] = key_step(&key, T0, 1);
	}
	assert_int_equal(gale_combine(answers, 3, &binding).delay_ns, NS_OF_MS(300));
	assert_int_equal(binding, 1);
}

static void a_refusal_of_one_rule_refuses_all(void **state)
{
	struct gale_answer answers[2], sum;
	struct key second, minute;

	(void)state;
	key_open(&second, gale_fixed_window(5, SEC(1)));
	key_open(&minute, gale_fixed_window(7, SEC(60)));
	assert_int_equal(key_drain(&minute, MS(1400), 7), 7);
	answers[0] = key_step(&second, MS(1400), 1);
	answers[1] = key_step(&minute, MS(1400), 1);
	sum = gale_combine(answers, 2, NULL);
	assert_int_equal(sum.verdict, GALE_DENY);
	assert_int_equal(sum.limit, 5);
	assert_int_equal(sum.remaining, 0);
	assert_int_equal(sum.reset_after_us, MS(58600));
	assert_int_equal(sum.retry_after_us, MS(58600));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_at_all_is_allowed_with_everything_at_its_best),
		cmocka_unit_test(nothing_added_changes_nothing),
		cmocka_unit_test(one_answer_is_its_own_combination),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(grouping_does_not_matter),
		cmocka_unit_test(each_part_is_the_worst_of_both),
		cmocka_unit_test(the_answer_that_decides_is_named),
		cmocka_unit_test(the_longest_delay_of_many_pacers_counts),
		cmocka_unit_test(a_refusal_of_one_rule_refuses_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
