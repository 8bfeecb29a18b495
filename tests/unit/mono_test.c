/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * mono_test.c -- instants are never taken for later than they are, and are told as they are.
 *
 * What a store says lasts d microseconds is over, on a clock that may be wrong by p parts
 * in a million, at sent + d * 1000 * (1000000 - p) / 1000000 at the earliest.  That is
 * worked out here in 128 bits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/clock.h"
#include "engine/slot.h"
#include "sim/random.h"

#define MILLION 1000000

static mono at(uint64_t ns)
{
	return (mono){ ns };
}

/* Rounded by less than two nanoseconds, and to the earlier. */
static void check_until(uint64_t sent, uint64_t us, uint32_t ppm)
{
	mono then = mono_until(at(sent), (lasting){ us }, ppm);
	uint128 thousandths = (uint128)us * (MILLION - ppm); /* of a nanosecond */
	uint128 exact = (uint128)sent * 1000 + thousandths;

	assert_true((uint128)then.ns * 1000 <= exact); /* CLOCK-1 */
	assert_true(then.ns >= sent);
	if (then.ns != UINT64_MAX && us <= UINT64_MAX / MILLION)
		assert_true((uint128)(then.ns + 2) * 1000 > exact);
}

static void an_end_is_never_later_than_it_is(void **state)
{
	static const uint32_t ppms[] = { 0,   1,    3,      499,    500,
		                         999, 1000, 333333, 999999, MILLION };

	(void)state;
	for (size_t p = 0; p < sizeof(ppms) / sizeof(ppms[0]); p++) {
		for (uint64_t us = 0; us < 3000; us++)
			check_until(us % 7, us, ppms[p]);
		check_until(0, UINT64_MAX, ppms[p]);
		check_until(UINT64_MAX, UINT64_MAX, ppms[p]);
		check_until(UINT64_MAX - 5, 1, ppms[p]);
	}
}

static void an_end_is_never_later_than_it_is_at_random(void **state)
{
	struct chance chance = { 3 };

	(void)state;
	for (int i = 0; i < 200000; i++)
		check_until(chance_log(&chance, UINT64_MAX / 2),
		            chance_log(&chance, UINT64_MAX / 2),
		            (uint32_t)chance_below(&chance, MILLION + 1));
}

static void drift_is_taken_off(void **state)
{
	(void)state;
	assert_int_equal(mono_until(at(5), (lasting){ 1000 }, 0).ns, 1000005);
	assert_int_equal(mono_until(at(5), (lasting){ 1000 }, 500).ns, 999505);
	assert_int_equal(mono_until(at(0), (lasting){ MILLION }, 500).ns, 999500000);
	assert_int_equal(mono_until(at(0), (lasting){ 1 }, 1).ns, 999); /* CLOCK-1 */
	assert_int_equal(mono_until(at(9), (lasting){ 77 }, MILLION).ns, 9);
}

/* In a million units of true time: the least that a clock which is slow shows of what a fast one
 * shows, and the most that a fast one shows of what a slow one shows.  CLOCK-3 */
static void two_clocks_are_apart_by_both_drifts(void **state)
{
	struct chance chance = { 5 };

	(void)state;
	assert_int_equal(clock_apart_ppm(0), 0);
	assert_int_equal(clock_apart_ppm(500), 1001);
	for (int i = 0; i < 200000; i++) {
		uint64_t ppm = chance_below(&chance, 100001), apart;
		uint64_t slow = MILLION - ppm, fast = MILLION + ppm;

		apart = clock_apart_ppm((uint32_t)ppm);
		assert_true((MILLION - apart) * fast <= slow * MILLION);
		assert_true((MILLION + apart) * slow >= fast * MILLION);
		assert_true(apart == 0 ||
		            (MILLION + apart - 1) * slow < fast * MILLION);
	}
}

static void the_end_of_time_stays_the_end_of_time(void **state)
{
	(void)state;
	assert_int_equal(mono_after(at(UINT64_MAX), 0).ns, UINT64_MAX);
	assert_int_equal(mono_after(at(UINT64_MAX), 1).ns, UINT64_MAX);
	assert_int_equal(mono_after(at(1), UINT64_MAX).ns, UINT64_MAX);
	assert_int_equal(mono_after(at(1), UINT64_MAX - 1).ns, UINT64_MAX);
	assert_int_equal(mono_after(at(1), UINT64_MAX - 2).ns, UINT64_MAX - 1);
	assert_int_equal(mono_after(at(0), 0).ns, 0);
	assert_int_equal(mono_until(at(UINT64_MAX - 1), (lasting){ 5 }, 0).ns,
	                 UINT64_MAX);
}

static void instants_are_compared(void **state)
{
	(void)state;
	assert_true(mono_reached(at(5), at(5)));
	assert_true(mono_reached(at(6), at(5)));
	assert_false(mono_reached(at(4), at(5)));
	assert_int_equal(mono_earlier(at(4), at(5)).ns, 4);
	assert_int_equal(mono_earlier(at(5), at(4)).ns, 4);
	assert_int_equal(mono_later(at(4), at(5)).ns, 5);
	assert_int_equal(mono_later(at(5), at(4)).ns, 5);
}

static void check_us(uint64_t ns)
{
	uint64_t much = UINT64_C(1) << 55;

	assert_in_range(us_of_ns(ns), ns / 1000, ns / 1000 + (ns < much ? 0 : 1));
}

/* At each whole microsecond that is a power of two, around it, and at random. */
static void microseconds_are_whole_ones(void **state)
{
	struct chance chance = { 4 };

	(void)state;
	for (uint64_t us = 1; us <= UINT64_MAX / 1000; us *= 2) {
		check_us(us * 1000 - 1);
		check_us(us * 1000);
		check_us(us * 1000 + 999);
	}
	for (unsigned i = 0; i < 1000000; i++)
		check_us(chance_log(&chance, UINT64_MAX / 2));
	check_us(0);
	check_us((UINT64_C(1) << 55) - 1);
	check_us(UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_never_later_than_it_is),
		cmocka_unit_test(an_end_is_never_later_than_it_is_at_random),
		cmocka_unit_test(drift_is_taken_off),
		cmocka_unit_test(two_clocks_are_apart_by_both_drifts),
		cmocka_unit_test(the_end_of_time_stays_the_end_of_time),
		cmocka_unit_test(instants_are_compared),
		cmocka_unit_test(microseconds_are_whole_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
