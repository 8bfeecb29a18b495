/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * choice_test.c -- which backend examples/balancer calls, when it ejects one, and how often it calls again.
 *
 * One thread of the balancer, without sockets, on a clock of the test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "examples/balancer/balancer.h"
#include "sim/random.h"

#define SECOND (1000 * MILLISECOND)
#define FIRST_INSTANT (5 * SECOND)
#define LOT_STEPS 200000
#define LOT_BACKENDS 3

static struct balancer balancer;
static struct thread thread;
static unsigned closed; /* pools of idle connections */

void calls_close(struct thread *of, uint32_t backend)
{
	(void)of;
	(void)backend;
	closed++;
}

static void open_backends(const uint32_t *weights, uint32_t count)
{
	memset(&balancer, 0, sizeof(balancer));
	memset(&thread, 0, sizeof(thread));
	thread.balancer = &balancer;
	thread.loop.now_ns = FIRST_INSTANT;
	balancer.backend_count = count;
	for (uint32_t i = 0; i < count; i++)
		balancer.backends[i].weight = weights[i];
	budget_begin(&thread);
	closed = 0;
}

static void open_two(void)
{
	open_backends((uint32_t[]){ 1, 1 }, 2);
}

static void fail_at(uint32_t backend)
{
	choice_fails(&thread, backend, choice_begins(&thread, backend));
}

static void work_at(uint32_t backend)
{
	choice_works(&thread, backend, choice_begins(&thread, backend));
}

static bool is_out(uint32_t backend)
{
	return thread.standings[backend].is_ejected;
}

/* ---- Weights ---------------------------------------------------------------------- */

/* Of each round the heaviest has its calls apart from each other. */
static void turns_go_by_weight(void **state)
{
	static const int expected[] = { 0, 0, 1, 0, 2, 0, 0 };

	(void)state;
	open_backends((uint32_t[]){ 5, 1, 1 }, 3);
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
			assert_int_equal(choice_next(&thread, 0), expected[i]);
	}
}

static void few_in_flight_for_the_weight_are_before_turns(void **state)
{
	(void)state;
	open_backends((uint32_t[]){ 3, 1 }, 2);
	for (int i = 0; i < 40; i++)
		(void)choice_begins(&thread, (uint32_t)choice_next(&thread, 0));
	assert_int_equal(thread.standings[0].in_flight, 30);
	assert_int_equal(thread.standings[1].in_flight, 10);
}

static void what_was_tried_is_not_called_again(void **state)
{
	(void)state;
	open_backends((uint32_t[]){ 1, 1, 1 }, 3);
	assert_int_equal(choice_next(&thread, 5), 1);
	assert_int_equal(choice_next(&thread, 7), -1);
	assert_true(choice_is_there(&thread, 5));
	assert_false(choice_is_there(&thread, 7));
}

/* ---- Ejection --------------------------------------------------------------------- */

static void three_failures_in_a_row_eject(void **state)
{
	(void)state;
	open_two();
	for (int i = 0; i < 5; i++) {
		fail_at(0);
		fail_at(0);
		work_at(0);
	}
	assert_false(is_out(0));
	fail_at(0);
	fail_at(0);
	assert_int_equal(closed, 0);
	fail_at(0);
	assert_true(is_out(0));
	assert_int_equal(closed, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(choice_next(&thread, 0), 1);
	for (int i = 0; i < 3; i++)
		fail_at(1);
	assert_int_equal(choice_next(&thread, 0), -1);
}

/* One second, two, four, eight, and eight again; at the end of each one request is let through. */
static void each_time_is_twice_as_long_up_to_eight_seconds(void **state)
{
	static const uint64_t seconds[] = { 1, 2, 4, 8, 8, 8 };
	bool is_probe;

	(void)state;
	open_backends((uint32_t[]){ 1 }, 1);
	for (int i = 0; i < 3; i++)
		fail_at(0);
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		thread.loop.now_ns += seconds[i] * SECOND - 1;
		assert_int_equal(choice_next(&thread, 0), -1);
		thread.loop.now_ns++;
		assert_int_equal(choice_next(&thread, 0), 0);
		is_probe = choice_begins(&thread, 0);
		assert_true(is_probe);
		assert_int_equal(choice_next(&thread, 0), -1);
		choice_fails(&thread, 0, is_probe);
		assert_true(is_out(0));
	}
	thread.loop.now_ns += 8 * SECOND;
	work_at(0);
	assert_false(is_out(0));
	for (int i = 0; i < 3; i++)
		fail_at(0);
	thread.loop.now_ns += SECOND;
	assert_int_equal(choice_next(&thread, 0), 0);
}

/* Its client has left. */
static void after_a_probe_that_says_nothing_the_next_request_is_one(void **state)
{
	bool is_probe;

	(void)state;
	open_backends((uint32_t[]){ 1 }, 1);
	for (int i = 0; i < 3; i++)
		fail_at(0);
	thread.loop.now_ns += SECOND;
	is_probe = choice_begins(&thread, 0);
	choice_says_nothing(&thread, 0, is_probe);
	assert_true(is_out(0));
	assert_int_equal(choice_next(&thread, 0), 0);
	assert_true(choice_begins(&thread, 0));
}

static void what_was_on_its_way_says_nothing_new(void **state)
{
	bool are_probes = false;

	(void)state;
	open_two();
	for (int i = 0; i < 10; i++)
		are_probes |= choice_begins(&thread, 0);
	assert_false(are_probes);
	for (int i = 0; i < 3; i++)
		choice_fails(&thread, 0, false);
	thread.loop.now_ns += SECOND - 1;
	for (int i = 0; i < 6; i++)
		choice_fails(&thread, 0, false);
	choice_works(&thread, 0, false);
	assert_true(is_out(0));
	assert_int_equal(thread.standings[0].ejections, 1);
	assert_int_equal(thread.standings[0].in_flight, 0);
	assert_int_equal(choice_next(&thread, 2), -1);
	thread.loop.now_ns++;
	assert_int_equal(choice_next(&thread, 2), 0);
}

/* ---- The budget of retries -------------------------------------------------------- */

static unsigned spend_all(void)
{
	unsigned retries = 0;

	while (budget_spend(&thread))
		retries++;
	return retries;
}

static void fifty_retries_and_then_one_for_ten_requests(void **state)
{
	(void)state;
	open_two();
	assert_int_equal(spend_all(), 50);
	for (int i = 0; i < 9; i++)
		budget_earn(&thread);
	assert_int_equal(spend_all(), 0);
	budget_earn(&thread);
	assert_int_equal(spend_all(), 1);
	for (int i = 0; i < 100000; i++)
		budget_earn(&thread);
	assert_int_equal(spend_all(), 50);
	assert_int_equal(thread.retries, 101);
	assert_int_equal(thread.retries_denied, 4);
}

/* ---- By lot ----------------------------------------------------------------------- */

struct lot_call {
	uint32_t backend;
	bool is_probe;
};

struct lot {
	struct chance chance;
	struct lot_call calls[16];
	unsigned count;
	uint64_t out_since[LOT_BACKENDS];
	uint64_t requests, retries;
};

static void lot_end(struct lot *lot)
{
	unsigned which = (unsigned)chance_below(&lot->chance, lot->count);
	struct lot_call call = lot->calls[which];
	bool was_out = is_out(call.backend);
	uint64_t ejections = thread.standings[call.backend].ejections;

	lot->calls[which] = lot->calls[--lot->count];
	switch (chance_below(&lot->chance, 5)) {
	case 0:
		choice_works(&thread, call.backend, call.is_probe);
		break;
	case 1:
		choice_says_nothing(&thread, call.backend, call.is_probe);
		break;
	default:
		choice_fails(&thread, call.backend, call.is_probe);
		lot->retries += budget_spend(&thread);
	}
	/* Nothing but its probe decides about who is out. */
	assert_true(!was_out || is_out(call.backend) || call.is_probe);
	if (thread.standings[call.backend].ejections > ejections)
		lot->out_since[call.backend] = thread.loop.now_ns;
}

static void lot_begin(struct lot *lot)
{
	int next = choice_next(&thread, chance_below(&lot->chance, 8));
	struct lot_call *call = &lot->calls[lot->count];

	lot->requests++;
	budget_earn(&thread);
	if (next < 0)
		return;
	call->backend = (uint32_t)next;
	call->is_probe = choice_begins(&thread, call->backend);
	assert_int_equal(call->is_probe, is_out(call->backend));
	for (unsigned i = 0; call->is_probe && i < lot->count; i++)
		assert_false(lot->calls[i].is_probe &&
		             lot->calls[i].backend == call->backend);
	if (call->is_probe)
		assert_true(thread.loop.now_ns - lot->out_since[call->backend] >=
		            SECOND);
	lot->count++;
}

static void whatever_happens_who_is_out_has_one_call_at_a_time(void **state)
{
	struct lot lot = { .chance = { 7 } };

	(void)state;
	open_backends((uint32_t[LOT_BACKENDS]){ 3, 2, 1 }, LOT_BACKENDS);
	for (int i = 0; i < LOT_STEPS; i++) {
		thread.loop.now_ns += chance_below(&lot.chance, SECOND / 10);
		if (lot.count > 0 && chance_below(&lot.chance, 2))
			lot_end(&lot);
		else if (lot.count < sizeof(lot.calls) / sizeof(lot.calls[0]))
			lot_begin(&lot);
		assert_true(10 * lot.retries <= 500 + lot.requests);
	}
	for (uint32_t i = 0; i < LOT_BACKENDS; i++)
		assert_true(thread.standings[i].ejections > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_go_by_weight),
		cmocka_unit_test(few_in_flight_for_the_weight_are_before_turns),
		cmocka_unit_test(what_was_tried_is_not_called_again),
		cmocka_unit_test(three_failures_in_a_row_eject),
		cmocka_unit_test(each_time_is_twice_as_long_up_to_eight_seconds),
		cmocka_unit_test(
		    after_a_probe_that_says_nothing_the_next_request_is_one),
		cmocka_unit_test(what_was_on_its_way_says_nothing_new),
		cmocka_unit_test(fifty_retries_and_then_one_for_ten_requests),
		cmocka_unit_test(whatever_happens_who_is_out_has_one_call_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
