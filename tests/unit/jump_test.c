/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * jump_test.c -- clocks that only run are never said to have jumped; those that are set,
 * lie or stand still are.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "shards/jump.h"
#include "sim/random.h"

#define PPM 500
#define NOON UINT64_C(1893499200000000)
#define MS UINT64_C(1000)
#define SECOND (1000 * MS)
#define DAY (86400 * SECOND)

/* Two clocks, and what is known of one. */
struct scene {
	struct jump jump;
	uint64_t store_us;
	uint64_t node_us;
};

static struct scene scene_at(uint64_t store_us)
{
	return (struct scene){ .store_us = store_us, .node_us = 5 * SECOND };
}

static void both_run(struct scene *s, uint64_t us)
{
	s->store_us += us;
	s->node_us += us;
}

static mono node_time(uint64_t us)
{
	return (mono){ us * 1000 };
}

/* An answer that takes no time. */
static bool jumped(struct scene *s)
{
	mono now = node_time(s->node_us);

	return jump_note(&s->jump, s->store_us, now, now, PPM);
}

static void the_first_answer_may_show_anything(void **state)
{
	struct scene s = scene_at(0);

	(void)state;
	assert_false(jumped(&s));
	s = scene_at(UINT64_C(1) << 52);
	assert_false(jumped(&s));
}

static void a_jump_forward_is_seen_once(void **state)
{
	struct scene s = scene_at(NOON);

	(void)state;
	assert_false(jumped(&s));
	both_run(&s, DAY);
	assert_false(jumped(&s));
	s.store_us += 2 * 86400 * PPM + DAY / 100; /* more than drift explains */
	assert_true(jumped(&s));
	assert_false(jumped(&s)); /* it begins anew */
	both_run(&s, SECOND);
	assert_false(jumped(&s));
}

static void a_node_that_stood_still_sees_a_jump(void **state)
{
	struct scene s = scene_at(NOON);

	(void)state;
	assert_false(jumped(&s));
	s.store_us += 2 * SECOND;
	assert_true(jumped(&s));
}

static void a_second_is_tolerated_and_no_more(void **state)
{
	struct scene s = scene_at(NOON);

	(void)state;
	assert_false(jumped(&s));
	s.store_us += SECOND;
	assert_false(jumped(&s)); /* JUMP-2 */
	s.store_us += 2;
	assert_true(jumped(&s));
}

/* A second's worth of tenths. */
static void small_steps_do_not_add_up(void **state)
{
	struct scene s = scene_at(NOON);
	int steps = 0;

	(void)state;
	assert_false(jumped(&s));
	do {
		both_run(&s, MS);
		s.store_us += SECOND / 10;
		steps++;
	} while (!jumped(&s));
	assert_in_range(steps, 10, 11); /* JUMP-2 */
}

/* A microsecond too far with each answer. */
static void many_answers_do_not_add_up(void **state)
{
	struct scene s = scene_at(NOON);
	int answers = 0;

	(void)state;
	assert_false(jumped(&s));
	do {
		s.node_us += 1;
		s.store_us += 2;
		answers++;
	} while (!jumped(&s));
	assert_in_range(answers, SECOND, SECOND + SECOND / 50);
}

static void a_step_that_was_tolerated_is_forgiven_in_time(void **state)
{
	struct scene s = scene_at(NOON);

	(void)state;
	assert_false(jumped(&s));
	for (int i = 0; i < 5; i++) {
		s.store_us += SECOND - MS;
		for (int minutes = 0; minutes < 20; minutes++) {
			both_run(&s, 60 * SECOND);
			assert_false(jumped(&s));
		}
	}
}

/* One is slow, and the other fast. */
static void drift_is_no_jump(int64_t store_ppm, int64_t node_ppm)
{
	struct scene s = scene_at(NOON);
	struct chance chance = { 7 };
	uint64_t true_us = 0;

	while (true_us < 30 * DAY) {
		true_us += chance_log(&chance, 3600 * SECOND);
		s.store_us =
		    NOON + true_us + (uint64_t)((int64_t)true_us / 1000000 * store_ppm);
		s.node_us = 5 * SECOND + true_us +
		            (uint64_t)((int64_t)true_us / 1000000 * node_ppm);
		assert_false(jumped(&s)); /* JUMP-1 */
	}
}

static void drift_for_a_month_is_no_jump(void **state)
{
	(void)state;
	drift_is_no_jump(PPM, -PPM);
	drift_is_no_jump(-PPM, PPM);
	drift_is_no_jump(PPM, PPM);
	drift_is_no_jump(0, 0);
}

/* Each answer was asked for up to a minute ago, and read anywhere between. */
static void delays_and_disorder_are_no_jumps(void **state)
{
	struct chance chance = { 11 };
	struct scene s = scene_at(NOON);

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		uint64_t ago = chance_log(&chance, 60 * SECOND);
		uint64_t read_ago = chance_below(&chance, ago + 1);

		both_run(&s, 60 * SECOND * (i == 0) + chance_log(&chance, SECOND) - 1);
		assert_false(jump_note(&s.jump, s.store_us - read_ago, /* JUMP-1 */
		                       node_time(s.node_us - ago), node_time(s.node_us),
		                       PPM));
	}
	s.store_us += SECOND + 60 * SECOND;
	assert_true(jumped(&s)); /* and a jump is seen all the same */
}

static void a_clock_that_is_set_back_and_forward_again(void **state)
{
	struct scene s = scene_at(NOON);

	(void)state;
	assert_false(jumped(&s));
	s.store_us -= DAY;
	assert_false(jumped(&s));
	both_run(&s, SECOND);
	assert_false(jumped(&s));
	s.store_us += DAY;
	assert_true(jumped(&s));
	assert_false(jumped(&s));
}

static void a_pause_is_a_window_within_bounds(void **state)
{
	(void)state;
	assert_int_equal(jump_pause_ns(1000), SECOND * 1000);
	assert_int_equal(jump_pause_ns(SECOND), SECOND * 1000);
	assert_int_equal(jump_pause_ns(7 * SECOND), 7 * SECOND * 1000);
	assert_int_equal(jump_pause_ns(60 * SECOND), 60 * SECOND * 1000);
	assert_int_equal(jump_pause_ns(DAY), 60 * SECOND * 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_answer_may_show_anything),
		cmocka_unit_test(a_jump_forward_is_seen_once),
		cmocka_unit_test(a_node_that_stood_still_sees_a_jump),
		cmocka_unit_test(a_second_is_tolerated_and_no_more),
		cmocka_unit_test(small_steps_do_not_add_up),
		cmocka_unit_test(many_answers_do_not_add_up),
		cmocka_unit_test(a_step_that_was_tolerated_is_forgiven_in_time),
		cmocka_unit_test(drift_for_a_month_is_no_jump),
		cmocka_unit_test(delays_and_disorder_are_no_jumps),
		cmocka_unit_test(a_clock_that_is_set_back_and_forward_again),
		cmocka_unit_test(a_pause_is_a_window_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
