/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * histogram_test.c -- quantiles of what was added, against sorting.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tools/histogram.h"

static struct histogram histogram;

static int clear(void **state)
{
	(void)state;
	memset(&histogram, 0, sizeof(histogram));
	return 0;
}

static void an_empty_one_says_0(void **state)
{
	(void)state;
	assert_int_equal(histogram_quantile(&histogram, 500), 0);
	assert_int_equal(histogram_quantile(&histogram, 1000), 0);
}

static void small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t value = 0; value < 64; value++) {
		clear(NULL);
		histogram_add(&histogram, value);
		assert_int_equal(histogram_quantile(&histogram, 500), value);
	}
}

static void any_value_comes_back_within_3_percent(void **state)
{
	(void)state;
	for (uint64_t value = 64; value < HISTOGRAM_MOST; value += value / 7 + 1) {
		uint64_t said;

		clear(NULL);
		histogram_add(&histogram, value);
		said = histogram_quantile(&histogram, 500);
		assert_in_range(said, value - value / 32, value + value / 32);
	}
}

static void values_next_to_a_power_of_two_keep_their_order(void **state)
{
	(void)state;
	for (unsigned shift = 6; shift < HISTOGRAM_BITS; shift++) {
		uint64_t power = UINT64_C(1) << shift;
		uint64_t below, above;

		clear(NULL);
		histogram_add(&histogram, power - 1);
		below = histogram_quantile(&histogram, 500);
		clear(NULL);
		histogram_add(&histogram, power);
		above = histogram_quantile(&histogram, 500);
		assert_true(below < power && above >= power);
	}
}

static void what_is_too_large_counts_as_the_most(void **state)
{
	(void)state;
	histogram_add(&histogram, UINT64_MAX);
	histogram_add(&histogram, HISTOGRAM_MOST + 1);
	assert_in_range(histogram_quantile(&histogram, 500),
	                HISTOGRAM_MOST - HISTOGRAM_MOST / 32, HISTOGRAM_MOST);
}

static void a_quantile_is_what_so_many_do_not_exceed(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= 50; value++)
		histogram_add(&histogram, value);
	assert_int_equal(histogram_quantile(&histogram, 20), 1);
	assert_int_equal(histogram_quantile(&histogram, 500), 25);
	assert_int_equal(histogram_quantile(&histogram, 501), 26);
	assert_int_equal(histogram_quantile(&histogram, 980), 49);
	assert_int_equal(histogram_quantile(&histogram, 1000), 50);
}

static void one_outlier_in_a_hundred_is_beyond_p99(void **state)
{
	(void)state;
	for (int i = 0; i < 99; i++)
		histogram_add(&histogram, 10);
	histogram_add(&histogram, 1000000);
	assert_int_equal(histogram_quantile(&histogram, 990), 10);
	assert_true(histogram_quantile(&histogram, 991) > 900000);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static void quantiles_agree_with_sorting(void **state)
{
	enum { MANY = 10000 };
	static uint64_t values[MANY];
	uint64_t x = 88172645463325252;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		values[i] = x >> (24 + x % 40); /* of all sizes */
		histogram_add(&histogram, values[i]);
	}
	qsort(values, MANY, sizeof(values[0]), by_size);
	for (unsigned permille = 1; permille <= 1000; permille++) {
		uint64_t exact = values[permille * MANY / 1000 - 1];

		assert_in_range(histogram_quantile(&histogram, permille),
		                exact - exact / 32, exact + exact / 32);
	}
}

static void merging_is_as_if_one_had_seen_all(void **state)
{
	static struct histogram other, both;

	(void)state;
	for (uint64_t value = 0; value < 3000; value++) {
		histogram_add(value % 3 ? &histogram : &other, value);
		histogram_add(&both, value);
	}
	histogram_merge(&histogram, &other);
	assert_memory_equal(&histogram, &both, sizeof(both));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_empty_one_says_0, clear),
		cmocka_unit_test_setup(small_values_are_exact, clear),
		cmocka_unit_test_setup(any_value_comes_back_within_3_percent, clear),
		cmocka_unit_test_setup(values_next_to_a_power_of_two_keep_their_order,
		                       clear),
		cmocka_unit_test_setup(what_is_too_large_counts_as_the_most, clear),
		cmocka_unit_test_setup(a_quantile_is_what_so_many_do_not_exceed, clear),
		cmocka_unit_test_setup(one_outlier_in_a_hundred_is_beyond_p99, clear),
		cmocka_unit_test_setup(quantiles_agree_with_sorting, clear),
		cmocka_unit_test_setup(merging_is_as_if_one_had_seen_all, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
