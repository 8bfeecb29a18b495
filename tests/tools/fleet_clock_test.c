/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_clock_test.c -- it is the system's clock, and says when it is not.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <time.h>

#include "tools/clock.h"

static uint64_t real_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void it_is_the_systems_clock_within_the_slack(void **state)
{
	struct fleet_clock clock;

	(void)state;
	fleet_clock_init(&clock);
	for (int i = 0; i < 100000; i++) {
		uint64_t before = real_us(), now = fleet_clock_us(&clock),
			 after = real_us();

		assert_true(before <= now + FLEET_CLOCK_SLACK_US);
		assert_true(now <= after + FLEET_CLOCK_SLACK_US);
	}
	assert_int_equal(fleet_clock_apart_us(&clock), 0);
}

static void another_process_has_the_same(void **state)
{
	struct fleet_clock clock, other;

	(void)state;
	fleet_clock_init(&clock);
	fleet_clock_set(&other, clock.epoch_ns);
	assert_true(fleet_clock_us(&other) >= fleet_clock_us(&clock) - 1000000);
	assert_ptr_equal(other.gale.now_us, clock.gale.now_us);
}

static void a_step_of_the_systems_clock_is_seen_either_way(void **state)
{
	struct fleet_clock clock;

	(void)state;
	fleet_clock_init(&clock);
	clock.epoch_ns += 300000;
	assert_in_range(fleet_clock_apart_us(&clock), 250, 350);
	clock.epoch_ns -= 600000;
	assert_in_range(fleet_clock_apart_us(&clock), 250, 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_systems_clock_within_the_slack),
		cmocka_unit_test(another_process_has_the_same),
		cmocka_unit_test(a_step_of_the_systems_clock_is_seen_either_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
