/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * counters_test.c -- every counter has a name of its own, and counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "shards/counters.h"

static const char *const names[] = {
#define X(id, name, help) name,
	SEAT_COUNTERS(X) SHARD_COUNTERS(X)
#undef X
};

#define COUNT (sizeof(names) / sizeof(names[0]))

static void each_has_a_name_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(COUNT, SEAT_COUNTER_COUNT + SHARD_COUNTER_COUNT);
	for (size_t i = 0; i < COUNT; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
}

/* As others spell their metrics. */
static void names_are_words_with_underscores(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		size_t len = strlen(names[i]);

		assert_int_equal(strspn(names[i], "abcdefghijklmnopqrstuvwxyz_"), len);
		assert_true(len > 0 && names[i][0] != '_' && names[i][len - 1] != '_');
	}
}

static void what_is_counted_adds_up(void **state)
{
	_Atomic uint64_t counter = 0;

	(void)state;
	count_add(&counter, 1);
	count_add(&counter, 41);
	count_add(&counter, 0);
	assert_int_equal(load_relaxed(&counter), 42);
	count_add(&counter, UINT64_MAX); /* wraps, as a counter may */
	assert_int_equal(load_relaxed(&counter), 41);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_a_name_of_its_own),
		cmocka_unit_test(names_are_words_with_underscores),
		cmocka_unit_test(what_is_counted_adds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
