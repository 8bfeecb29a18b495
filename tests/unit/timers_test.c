/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * timers_test.c -- what is due first is taken first, whatever was added and removed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "coordinator/timers.h"

#define COUNT 500

static uint64_t seed = 1;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void they_are_taken_in_order(void **state)
{
	static struct timer all[COUNT];
	struct timers timers = { 0 };
	struct timer *timer;
	uint64_t last = 0;
	int taken = 0;

	(void)state;
	assert_int_equal(timers_next(&timers).ns, UINT64_MAX);
	for (int i = 0; i < COUNT; i++)
		timers_add(&timers, &all[i], (mono){ draw() % 300 });
	while ((timer = timers_take(&timers, (mono){ 299 }))) {
		assert_true(timer->due.ns >= last);
		last = timer->due.ns;
		taken++;
	}
	assert_int_equal(taken, COUNT);
	assert_null(timers.first);
}

static void none_is_taken_before_it_is_due(void **state)
{
	struct timer early, late;
	struct timers timers = { 0 };

	(void)state;
	timers_add(&timers, &late, (mono){ 20 });
	timers_add(&timers, &early, (mono){ 10 });
	assert_int_equal(timers_next(&timers).ns, 10);
	assert_null(timers_take(&timers, (mono){ 9 }));
	assert_ptr_equal(timers_take(&timers, (mono){ 10 }), &early);
	assert_null(timers_take(&timers, (mono){ 19 }));
	assert_ptr_equal(timers_take(&timers, (mono){ 20 }), &late);
	assert_null(timers_take(&timers, (mono){ UINT64_MAX }));
}

/* Against a plain list: each step, the least of both is the same. */
static void any_may_be_removed(void **state)
{
	static struct timer all[COUNT];
	static bool in[COUNT];
	struct timers timers = { 0 };

	(void)state;
	for (int step = 0; step < 20000; step++) {
		uint64_t i = draw() % COUNT, least = UINT64_MAX;

		if (in[i])
			timers_remove(&timers, &all[i]);
		else
			timers_add(&timers, &all[i], (mono){ draw() % 1000 });
		in[i] = !in[i];
		if (step % 7 == 0) {
			struct timer *first =
			    timers_take(&timers, (mono){ draw() % 1000 });

			if (first)
				in[first - all] = false;
		}
		for (int k = 0; k < COUNT; k++)
			if (in[k] && all[k].due.ns < least)
				least = all[k].due.ns;
		assert_int_equal(timers_next(&timers).ns, least);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_taken_in_order),
		cmocka_unit_test(none_is_taken_before_it_is_due),
		cmocka_unit_test(any_may_be_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
