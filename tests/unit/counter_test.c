/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* counter_test.c -- by the counter it is never earlier than by the clock.
 * COUNTER-1, COUNTER-2 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/clock.h"
#include "runtime/counter.h"

#define MS UINT64_C(1000000)

/* A machine: its clock, and a counter that runs beside it. */
struct machine {
	double ns;    /* of the clock */
	double ticks; /* of the counter */
	double speed; /* ticks a nanosecond */
	struct counter counter;
	uint64_t lot;
};

static uint64_t draw(struct machine *machine, uint64_t below)
{
	machine->lot = machine->lot * UINT64_C(6364136223846793005) + 1;
	return (machine->lot >> 33) % below;
}

static void pass(struct machine *machine, uint64_t ns)
{
	machine->ns += (double)ns;
	machine->ticks += (double)ns * machine->speed;
}

static void look(struct machine *machine, uint64_t slow_ns)
{
	struct counter_look look = { .before_ns = (uint64_t)machine->ns };

	pass(machine, slow_ns);
	look.ticks = (uint64_t)machine->ticks;
	pass(machine, slow_ns);
	look.after_ns = (uint64_t)machine->ns;
	counter_learn(&machine->counter, &look);
}

static bool tells(const struct machine *machine, mono *ret_now)
{
	uint64_t since;

	if (!counter_runs(&machine->counter, (uint64_t)machine->ticks, &since))
		return false;
	*ret_now = counter_at(&machine->counter, since);
	return true;
}

/* COUNTER-1; it counts how often the counter told. */
static uint64_t check(const struct machine *machine)
{
	mono now;

	if (!tells(machine, &now))
		return 0;
	assert_true(now.ns + 1 >= (uint64_t)machine->ns); /* a tick is a part of one */
	assert_true(now.ns <= (uint64_t)machine->ns + COUNTER_AHEAD_NS);
	return 1;
}

static void ask(struct machine *machine)
{
	mono now;

	if (!tells(machine, &now))
		look(machine, draw(machine, 100));
}

static struct machine at(double speed)
{
	return (struct machine){ .ns = 5e12, .ticks = 1e15, .speed = speed, .lot = 1 };
}

static void warm_up(struct machine *machine)
{
	for (int i = 0; i < 4000; i++) {
		pass(machine, 10000);
		ask(machine);
	}
}

static void it_tells_nothing_before_it_has_learnt(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	assert_false(tells(&machine, &now));
	look(&machine, 20);
	assert_false(tells(&machine, &now));
	pass(&machine, MS / 2);
	look(&machine, 20);
	assert_false(tells(&machine, &now));
	pass(&machine, MS / 2);
	look(&machine, 20);
	assert_true(tells(&machine, &now));
}

/* Asks at all distances, clocks slewed by up to 500 ppm from one look to the next. */
static void it_is_never_behind(void **state)
{
	static const double speeds[] = { 0.6, 1.0, 2.3, 3.7, 5.2 };
	uint64_t told = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		struct machine machine = at(speeds[i]);

		for (int step = 0; step < 400000; step++) {
			uint64_t most = step % 1000 == 0 ? 40 * MS : 20000;

			if (step % 100 == 0)
				machine.speed =
				    speeds[i] *
				    (1 + ((double)draw(&machine, 501) - 250) * 1e-6);
			pass(&machine, 1 + draw(&machine, most));
			told += check(&machine);
			ask(&machine);
			told += check(&machine);
		}
	}
	assert_true(told > 1000000);
}

static void after_a_millisecond_it_must_look(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	warm_up(&machine);
	pass(&machine, MS);
	look(&machine, 20);
	pass(&machine, MS - MS / 500);
	assert_true(tells(&machine, &now));
	pass(&machine, MS / 500);
	assert_false(tells(&machine, &now));
}

/* The clock went on meanwhile; the counter began anew. */
static void a_counter_that_was_set_back_tells_nothing(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	warm_up(&machine);
	machine.ns += 3600e9;
	machine.ticks = 1e6;
	assert_false(tells(&machine, &now));
	look(&machine, 20);
	assert_false(tells(&machine, &now)); /* nor at once */
	warm_up(&machine);
	assert_true(tells(&machine, &now));
	check(&machine);
}

static void a_machine_that_slept_tells_nothing_before_it_has_learnt(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	warm_up(&machine);
	pass(&machine, 2 * MS);
	machine.ns += 3600e9; /* the counter stood still */
	assert_false(tells(&machine, &now));
	look(&machine, 20);
	assert_false(tells(&machine, &now));
	pass(&machine, MS / 2);
	look(&machine, 20);
	assert_false(tells(&machine, &now));
}

/* On another machine, a counter may be slower. */
static void another_rate_is_learnt_anew(void **state)
{
	struct machine machine = at(2.3);
	uint64_t told = 0;

	(void)state;
	warm_up(&machine);
	pass(&machine, 3000 * MS);
	machine.speed = 1.9;
	for (int i = 0; i < 10000; i++) {
		pass(&machine, 10000);
		ask(&machine);
		told += check(&machine);
	}
	assert_true(told > 5000);
}

static void a_rate_that_changed_meanwhile_is_not_trusted(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	warm_up(&machine);
	machine.speed = 1.9;
	pass(&machine, 40 * MS);
	look(&machine, 20);
	assert_false(tells(&machine, &now));
}

/* Somebody else had the processor between the clock and the counter. */
static void a_look_that_was_disturbed_is_not_trusted(void **state)
{
	struct machine machine = at(2.3);
	mono now;

	(void)state;
	warm_up(&machine);
	pass(&machine, MS);
	look(&machine, 5000);
	assert_false(tells(&machine, &now));
	look(&machine, 20);
	assert_true(tells(&machine, &now));
	check(&machine);
}

static void a_counter_too_slow_or_too_fast_is_not_used(void **state)
{
	static const double speeds[] = { 0, 0.001, 0.4, 9, 1000 };
	mono now;

	(void)state;
	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++) {
		struct machine machine = at(speeds[i]);

		warm_up(&machine);
		assert_false(tells(&machine, &now));
	}
}

/* This machine's own, if its kernel keeps time by it. */
static void it_agrees_with_the_clock(void **state)
{
	struct counter counter = { 0 };
	uint64_t start = boottime_ns(), told = 0, since;
	mono now;

	(void)state;
	while (boottime_ns() - start < 100 * MS) {
		uint64_t before = boottime_ns();
		bool is_told = counter_runs(&counter, counter_ticks(), &since);
		uint64_t after = boottime_ns();

		if (!is_told) {
			now = counter_look(&counter);
			assert_in_range(now.ns, after, boottime_ns());
			continue;
		}
		told++;
		now = counter_at(&counter, since);
		assert_in_range(now.ns, before, after + COUNTER_AHEAD_NS);
	}
	print_message("told %llu times\n", (unsigned long long)told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_tells_nothing_before_it_has_learnt),
		cmocka_unit_test(it_is_never_behind),
		cmocka_unit_test(after_a_millisecond_it_must_look),
		cmocka_unit_test(a_counter_that_was_set_back_tells_nothing),
		cmocka_unit_test(
		    a_machine_that_slept_tells_nothing_before_it_has_learnt),
		cmocka_unit_test(another_rate_is_learnt_anew),
		cmocka_unit_test(a_rate_that_changed_meanwhile_is_not_trusted),
		cmocka_unit_test(a_look_that_was_disturbed_is_not_trusted),
		cmocka_unit_test(a_counter_too_slow_or_too_fast_is_not_used),
		cmocka_unit_test(it_agrees_with_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
