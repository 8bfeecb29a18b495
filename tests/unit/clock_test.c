/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock_test.c -- a store's own time is UTC, and goes on with the machine's uptime; what it lasts
 * until is bounded on a node's clock from both sides.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "engine/clock.h"
#include "engine/slot.h"
#include "runtime/clock.h"
#include "sim/random.h"
#include "tests/support/length.h"

#define LOTS LONG_OR_BRIEF(200000, 20000)

static uint64_t read_us(clockid_t id)
{
	struct timespec now;

	assert_int_equal(clock_gettime(id, &now), 0);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t now_of(struct boot_clock *boot)
{
	return boot->clock.now_us(&boot->clock);
}

static void it_starts_at_utc(void **state)
{
	uint64_t before = read_us(CLOCK_REALTIME), after;
	struct boot_clock boot;
	uint64_t now;

	(void)state;
	boot_clock_init(&boot);
	now = now_of(&boot);
	after = read_us(CLOCK_REALTIME);
	assert_in_range(now, before - 1, after + 1);
}

static void it_goes_on_with_the_uptime(void **state)
{
	struct boot_clock boot;
	uint64_t first, last, passed = read_us(CLOCK_BOOTTIME);

	(void)state;
	boot_clock_init(&boot);
	first = now_of(&boot);
	while ((last = now_of(&boot)) < first + 2000)
		assert_true(last >= first);
	passed = read_us(CLOCK_BOOTTIME) - passed;
	assert_in_range(last - first, 2000, passed + 1);
}

/* Regression: on a machine that thinks it is 1970, uptime exceeds the wall clock by a
 * few nanoseconds, and the difference was taken as five hundred years. */
static void it_works_on_a_machine_that_was_up_before_1970(void **state)
{
	struct boot_clock boot;
	uint64_t uptime;

	(void)state;
	boot_clock_init(&boot);
	boot.epoch_ns = UINT64_MAX - 499; /* minus 500 */
	uptime = read_us(CLOCK_BOOTTIME);
	assert_in_range(now_of(&boot), uptime - 1, uptime + GALE_SECONDS(60));
}

/* CLOCK-1, CLOCK-2: a clock that is wrong by ppm shows between both when the duration ends. */
static void a_duration_ends_between_both_bounds(void **state)
{
	const mono start = { 5000 };
	struct chance lot = { 1 };

	(void)state;
	assert_int_equal(mono_until(start, (lasting){ 1000000 }, 500).ns,
	                 5000 + 999500000);
	assert_true(mono_surely_over(start, (lasting){ 1000000 }, 500).ns >=
	            5000 + 1000500000);
	assert_true(mono_surely_over(start, (lasting){ 1000000 }, 500).ns <=
	            5000 + 1000500000 + 500);
	for (int i = 0; i < LOTS; i++) {
		uint64_t us =
		    chance_below(&lot, GALE_SPAN_MAX_US >> chance_below(&lot, 40));
		uint32_t ppm = (uint32_t)chance_below(&lot, 100001);
		lasting lasts = { us };
		uint64_t early = mono_until(start, lasts, ppm).ns - start.ns;
		uint64_t late = mono_surely_over(start, lasts, ppm).ns - start.ns;

		/* us * 1000 * (1 -+ ppm / 1000000), in millionths of a nanosecond */
		assert_true((uint128)early * 1000 <= (uint128)us * (1000000 - ppm));
		assert_true((uint128)late * 1000 >= (uint128)us * (1000000 + ppm));
		assert_true((uint128)late * 1000 <=
		            (uint128)us * (1000000 + ppm) + 1000 * ppm);
	}
}

static void the_end_of_time_stays_the_end_of_time(void **state)
{
	const mono late = { UINT64_MAX - 1000 };

	(void)state;
	assert_int_equal(mono_surely_over(late, (lasting){ 1 }, 500).ns, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_starts_at_utc),
		cmocka_unit_test(it_goes_on_with_the_uptime),
		cmocka_unit_test(it_works_on_a_machine_that_was_up_before_1970),
		cmocka_unit_test(a_duration_ends_between_both_bounds),
		cmocka_unit_test(the_end_of_time_stays_the_end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
