/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * latch_test.c -- one thread at a time has a latch, and those that wait for it get it.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <time.h>
#include <cmocka.h>

#include "runtime/latch.h"
#include "tests/support/crew.h"

#define CREW 3
#define TURNS 3000
#define SLEEPS                                                                         \
	100 /* one in so many sleeps with the latch, so that the others do, too */

struct scene {
	struct latch latch;
	uint64_t count; /* under the latch, and no atomic */
};

static void add_some(void *arg, unsigned who)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	struct scene *s = arg;

	(void)who;
	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t count;

		latch_take(&s->latch);
		count = s->count;
		if (i % SLEEPS == 0)
			(void)nanosleep(&nap, NULL);
		s->count = count + 1;
		latch_drop(&s->latch);
	}
}

static void one_at_a_time_has_it(void **state)
{
	struct scene s = { 0 };

	(void)state;
	crew_run(CREW, add_some, &s);
	assert_int_equal(s.count, CREW * TURNS);
	assert_true(latch_try(&s.latch));
}

static void who_tries_does_not_wait(void **state)
{
	struct scene s = { 0 };

	(void)state;
	latch_take(&s.latch);
	assert_false(latch_try(&s.latch));
	latch_drop(&s.latch);
	assert_true(latch_try(&s.latch));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time_has_it),
		cmocka_unit_test(who_tries_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
