/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tally_test.c -- the count that trusts nobody, on windows of 100 ms.
 *
 * admit(t) stands for an admission that a truthful store decided at instant t.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "tools/tally.h"

#define WINDOW UINT64_C(100000)
#define BEGIN (UINT64_C(17000000000) * WINDOW) /* the first instant of window 1 */
#define STOP (BEGIN + 10 * WINDOW)
#define LIMIT 3
#define RING 4

static struct tally tally;

static void open_at(uint64_t begin_us, uint32_t keys, uint32_t workers)
{
	struct tally_config config = { .keys = keys,
		                       .workers = workers,
		                       .ring = RING,
		                       .limit = LIMIT,
		                       .window_us = WINDOW,
		                       .begin_us = begin_us };

	assert_true(tally_open(&tally, &config));
}

static int open_it(void **state)
{
	(void)state;
	open_at(BEGIN, /* keys= */ 2, /* workers= */ 2);
	return 0;
}

static int close_it(void **state)
{
	(void)state;
	tally_close(&tally);
	return 0;
}

static uint64_t reset_at(uint64_t now_us)
{
	return WINDOW - now_us % WINDOW;
}

static void count(struct tally *to, uint32_t worker, uint32_t key, uint64_t before_us,
                  uint64_t after_us, uint64_t reset_us)
{
	tally_count(to, worker, key,
	            tally_place(WINDOW, before_us, after_us, reset_us));
}

static void admit_between(uint64_t before_us, uint64_t now_us, uint64_t after_us,
                          uint32_t key)
{
	count(&tally, 0, key, before_us, after_us, reset_at(now_us));
}

static void admit(uint64_t now_us, uint32_t key, int times)
{
	while (times-- > 0)
		admit_between(now_us - 3, now_us, now_us + 5, key);
}

static void finish(uint64_t stop_us)
{
	tally_pass(&tally, 0, TALLY_GONE);
	tally_pass(&tally, 1, TALLY_GONE);
	assert_true(tally_all_gone(&tally));
	tally_finish(&tally, stop_us);
}

/* The window of this number in what was kept; its admitted is 0 if it is not there. */
static struct tally_window window(uint64_t number)
{
	struct tally_window kept[TALLY_HISTORY], none = { .number = number };
	size_t count = tally_history(&tally, kept, TALLY_HISTORY);

	for (size_t i = 0; i < count; i++)
		if (kept[i].number == number)
			return kept[i];
	return none;
}

static bool near(double a, double b)
{
	return a - b < 1e-9 && b - a < 1e-9;
}

/* ---- Placing --------------------------------------------------------------------- */

static void expect_place(uint64_t before, uint64_t after, uint64_t reset,
                         uint64_t first, uint64_t last)
{
	struct tally_span span = tally_place(10, before, after, reset);

	assert_int_equal(span.first, first);
	assert_int_equal(span.last, last);
}

static void an_admission_belongs_to_the_one_end_that_fits(void **state)
{
	(void)state;
	expect_place(41, 43, 8, 5, 5);  /* decided at 42 */
	expect_place(42, 42, 8, 5, 5);  /* to the microsecond */
	expect_place(40, 40, 10, 5, 5); /* the first instant of a window */
	expect_place(49, 49, 1, 5, 5);  /* the last */
	expect_place(48, 52, 10, 6, 6); /* asked before the boundary, decided on it */
	expect_place(48, 52, 1, 5, 5);  /* decided just before it */
	expect_place(33, 51, 8, 5, 5);  /* wide, but only 42 fits */
}

static void a_lent_unit_belongs_where_its_instants_lie(void **state)
{
	struct tally_span span = tally_place_lent(10, 41, 43, 5);

	(void)state;
	assert_int_equal(span.first, 5);
	assert_int_equal(span.last, 5);
	span = tally_place_lent(10, 49, 50, 1); /* across a boundary: in either */
	assert_int_equal(span.first, 5);
	assert_int_equal(span.last, 6);
	span = tally_place_lent(10, 49, 50, 2); /* across, but it outlives the first */
	assert_int_equal(span.first, 6);
	assert_int_equal(span.last, 6);
	span = tally_place_lent(10, 39, 62, 8);
	assert_int_equal(span.first, 5);
	assert_int_equal(span.last, 7);
	span = tally_place_lent(10, 41, 41, 9); /* until its end, and no longer */
	assert_int_equal(span.last, 5);
	span = tally_place_lent(10, 41, 41, 10);
	assert_true(span.first > span.last);
}

static void a_reset_that_fits_no_end_is_a_disagreement(void **state)
{
	struct tally_span span = tally_place(10, 41, 43, 5);

	(void)state;
	assert_true(span.first > span.last);
	span = tally_place(10, 41, 60, 0);
	assert_true(span.first > span.last);
	span = tally_place(10, 41, 60, 11); /* longer than a window */
	assert_true(span.first > span.last);
	span = tally_place(10, 41, 60, UINT64_MAX);
	assert_true(span.first > span.last);
}

static void a_long_suspension_leaves_several_ends(void **state)
{
	(void)state;
	expect_place(42, 52, 8, 5, 6);
	expect_place(41, 75, 8, 5, 8);
}

/* ---- Counting -------------------------------------------------------------------- */

static void admissions_count_for_their_key_and_window(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, 2);
	admit(BEGIN + 20, 1, 1);
	admit(BEGIN + WINDOW + 10, 0, 3);
	finish(STOP);
	assert_int_equal(window(1).admitted, 3);
	assert_int_equal(window(1).most, 2);
	assert_int_equal(tally_total(&tally).admitted, 6);
	assert_int_equal(tally_total(&tally).admitted_max, 3);
}

static void a_full_window_is_no_overshoot(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT);
	admit(BEGIN + 10, 1, LIMIT);
	finish(STOP);
	assert_int_equal(tally_total(&tally).admitted_max, LIMIT);
	assert_int_equal(tally_total(&tally).overshoot, 0);
}

static void one_too_many_in_a_window_is_an_overshoot(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT);
	admit(BEGIN + WINDOW - 6, 0, 1);
	admit(BEGIN + WINDOW + 10, 0, 1);
	finish(STOP);
	assert_int_equal(tally_total(&tally).overshoot, 1);
	assert_int_equal(tally_total(&tally).admitted_max, LIMIT + 1);
}

static void the_worst_overshoot_is_told(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT + 2);
	admit(BEGIN + WINDOW + 10, 1, LIMIT + 7);
	admit(BEGIN + 2 * WINDOW + 10, 0, LIMIT + 1);
	finish(STOP);
	assert_int_equal(tally_total(&tally).overshoot, 7);
}

static void limits_full_on_both_sides_of_a_boundary_are_none(void **state)
{
	(void)state;
	for (int i = 0; i < LIMIT; i++) {
		/* Asked in one window, answered in the next; the store knows. */
		admit_between(BEGIN + WINDOW - 5, BEGIN + WINDOW - 1,
		              BEGIN + WINDOW + 5, 0);
		admit_between(BEGIN + WINDOW - 5, BEGIN + WINDOW, BEGIN + WINDOW + 5,
		              0);
	}
	finish(STOP);
	assert_int_equal(window(1).admitted, LIMIT);
	assert_int_equal(window(2).admitted, LIMIT);
	assert_int_equal(tally_total(&tally).overshoot, 0);
}

static void a_store_of_another_time_is_a_disagreement(void **state)
{
	(void)state;
	count(&tally, 0, 0, BEGIN + 10, BEGIN + 15, reset_at(BEGIN + 1000));
	count(&tally, 1, 0, BEGIN + 10, BEGIN + 15, 0);
	finish(STOP);
	assert_int_equal(tally_total(&tally).disagreements, 2);
	assert_int_equal(tally_total(&tally).admitted, 0);
}

static void an_admission_of_a_window_that_is_done_is_a_disagreement(void **state)
{
	(void)state;
	tally_pass(&tally, 0, BEGIN + 3 * WINDOW);
	tally_pass(&tally, 1, BEGIN + 3 * WINDOW);
	tally_fold(&tally, STOP);
	admit(BEGIN + WINDOW + 10, 0, 1); /* against what was passed */
	finish(STOP);
	assert_int_equal(tally_total(&tally).disagreements, 1);
}

/* ---- Strays ---------------------------------------------------------------------- */

/* Somewhere in window 1 or 2. */
static void admit_stray(uint32_t key)
{
	admit_between(BEGIN + 50, BEGIN + 60, BEGIN + WINDOW + 70, key);
}

static void a_stray_goes_where_there_is_room(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT);
	admit(BEGIN + WINDOW + 10, 0, LIMIT - 1);
	admit_stray(0);
	finish(STOP);
	assert_int_equal(window(1).admitted, LIMIT);
	assert_int_equal(window(2).admitted, LIMIT);
	assert_int_equal(tally_total(&tally).overshoot, 0);
	assert_int_equal(tally_total(&tally).disagreements, 0);
}

static void a_stray_without_room_anywhere_is_an_overshoot(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT);
	admit(BEGIN + WINDOW + 10, 0, LIMIT);
	admit(BEGIN + 2 * WINDOW + 10, 0, LIMIT - 1); /* too late for it */
	admit_stray(0);
	finish(STOP);
	assert_int_equal(tally_total(&tally).overshoot, 1);
	assert_int_equal(tally_total(&tally).admitted, 3 * LIMIT);
}

static void the_stray_that_can_wait_least_goes_first(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT - 1);
	admit(BEGIN + WINDOW + 10, 0, LIMIT);
	/* Of windows 1 to 3, there first; it has to leave the place to the next. */
	admit_between(BEGIN + 50, BEGIN + 60, BEGIN + 2 * WINDOW + 70, 0);
	admit_stray(0);
	finish(STOP);
	assert_int_equal(tally_total(&tally).overshoot, 0);
	assert_int_equal(window(3).admitted, 1);
}

static void many_strays_are_all_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		admit_stray(1);
	finish(STOP);
	assert_int_equal(tally_total(&tally).admitted, 1000);
	assert_int_equal(tally_total(&tally).overshoot, 1000 - 2 * LIMIT);
}

/* ---- Folding --------------------------------------------------------------------- */

static void a_window_waits_for_every_worker(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, 1);
	tally_pass(&tally, 0, BEGIN + 2 * WINDOW);
	tally_fold(&tally, STOP);
	assert_int_equal(tally_total(&tally).windows, 0);
	tally_pass(&tally, 1, BEGIN + 90);
	tally_fold(&tally, STOP);
	assert_int_equal(tally_total(&tally).windows, 0);
	tally_pass(&tally, 1, BEGIN + WINDOW + WINDOW / 2);
	tally_fold(&tally, STOP);
	assert_int_equal(tally_total(&tally).windows, 1);
	assert_int_equal(tally_total(&tally).admitted, 1);
}

static void a_window_waits_for_the_grace_time(void **state)
{
	(void)state;
	tally_pass(&tally, 0, BEGIN + WINDOW + 999);
	tally_pass(&tally, 1, BEGIN + WINDOW + 999);
	tally_fold(&tally, STOP);
	assert_int_equal(tally_total(&tally).windows, 0);
	tally_pass(&tally, 0, BEGIN + WINDOW + 1000);
	tally_pass(&tally, 1, BEGIN + WINDOW + 1000);
	tally_fold(&tally, STOP);
	assert_int_equal(tally_total(&tally).windows, 1);
}

static void counters_are_used_again_and_start_at_0(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3 * RING; i++) {
		admit(BEGIN + i * WINDOW + 10, 0, LIMIT);
		tally_pass(&tally, 0, BEGIN + (i + 2) * WINDOW);
		tally_pass(&tally, 1, BEGIN + (i + 2) * WINDOW);
		tally_fold(&tally, STOP);
	}
	finish(BEGIN + 3 * RING * WINDOW);
	assert_int_equal(tally_total(&tally).admitted_max, LIMIT);
	assert_int_equal(tally_total(&tally).admitted, 3 * RING * LIMIT);
}

static void a_jump_of_the_clock_is_many_empty_windows(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, 1);
	tally_pass(&tally, 0, BEGIN + 100 * WINDOW);
	tally_pass(&tally, 1, BEGIN + 100 * WINDOW);
	tally_fold(&tally, BEGIN + 101 * WINDOW);
	admit(BEGIN + 100 * WINDOW + 10, 0, 1);
	finish(BEGIN + 101 * WINDOW);
	assert_int_equal(tally_total(&tally).windows, 101);
	assert_int_equal(tally_total(&tally).admitted, 2);
}

/* ---- Whole windows and undershoot ------------------------------------------------ */

static void undershoot_is_what_whole_windows_left(void **state)
{
	(void)state;
	/* Window 1: 3 + 0 of 6; window 2: 3 + 3 of 6. */
	admit(BEGIN + 10, 0, LIMIT);
	admit(BEGIN + WINDOW + 10, 0, LIMIT);
	admit(BEGIN + WINDOW + 10, 1, LIMIT);
	finish(BEGIN + 2 * WINDOW);
	assert_int_equal(tally_total(&tally).windows, 2);
	assert_true(near(tally_total(&tally).undershoot_mean, 0.25));
	assert_true(near(window(1).undershoot, 0.5));
	assert_true(near(window(2).undershoot, 0));
}

static void an_overshoot_does_not_hide_an_undershoot(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, 2 * LIMIT);
	finish(BEGIN + WINDOW);
	assert_true(near(tally_total(&tally).undershoot_mean, 0.5));
}

static void windows_cut_by_the_ends_of_the_run_are_not_whole(void **state)
{
	(void)state;
	open_at(BEGIN + 1, 2, 2);
	admit(BEGIN + 10, 0, 1);
	admit(BEGIN + WINDOW + 10, 0, LIMIT);
	admit(BEGIN + WINDOW + 10, 1, LIMIT);
	admit(BEGIN + 2 * WINDOW + 10, 0, 1);
	finish(BEGIN + 3 * WINDOW - 1);
	assert_false(window(1).whole);
	assert_true(window(2).whole);
	assert_false(window(3).whole);
	assert_int_equal(tally_total(&tally).windows, 1);
	assert_true(near(tally_total(&tally).undershoot_mean, 0));
	assert_true(near(window(1).undershoot, 0));
}

static void an_overshoot_in_a_window_that_is_not_whole_counts(void **state)
{
	(void)state;
	admit(BEGIN + 10, 0, LIMIT + 1);
	finish(BEGIN + 50);
	assert_int_equal(tally_total(&tally).windows, 0);
	assert_int_equal(tally_total(&tally).overshoot, 1);
}

/* ---- Looking --------------------------------------------------------------------- */

static void the_current_window_can_be_looked_at(void **state)
{
	struct tally_window now;

	(void)state;
	admit(BEGIN + WINDOW + 10, 0, 2);
	admit(BEGIN + WINDOW + 10, 1, 1);
	now = tally_look(&tally, BEGIN + WINDOW + 20);
	assert_int_equal(now.number, 2);
	assert_int_equal(now.admitted, 3);
	assert_int_equal(now.most, 2);
	now = tally_look(&tally, BEGIN + 500 * WINDOW); /* far beyond the ring */
	assert_int_equal(now.admitted, 0);
	finish(STOP);
}

/* ---- What was asked for ---------------------------------------------------------- */

/* Window i, from 1, is asked for so many units, and admits so many. */
static void live(uint64_t i, uint64_t asked, int admitted)
{
	uint64_t begin_us = BEGIN + (i - 1) * WINDOW;

	tally_pass(&tally, 0, begin_us);
	tally_pass(&tally, 1, begin_us);
	tally_fold(&tally, STOP);
	if (asked > 0)
		tally_count_asked(&tally, 0, tally_number(&tally, begin_us), asked);
	admit(begin_us + 10, /* key= */ 0, admitted < LIMIT ? admitted : LIMIT);
	admit(begin_us + 10, /* key= */ 1, admitted - LIMIT);
}

/* Two keys, of three units each. */
static void served_is_what_is_admitted_of_what_is_owed(void **state)
{
	struct tally_totals totals;

	(void)state;
	for (uint64_t i = 1; i <= TALLY_LEARNING; i++)
		live(i, /* asked= */ 6, /* admitted= */ 0); /* none of these counts */
	live(TALLY_LEARNING + 1, 4, 4);
	live(TALLY_LEARNING + 2, 9, 5); /* six are owed */
	live(TALLY_LEARNING + 3, 0, 2); /* of the next, whose calls were made before */
	live(TALLY_LEARNING + 4, 2, 3);
	finish(STOP);
	totals = tally_total(&tally);
	assert_int_equal(totals.asked_windows, 3);
	assert_int_equal(totals.asked, 15);
	assert_int_equal(totals.owed, 12);
	assert_int_equal(totals.served, 11);
	assert_true(near(totals.served_worst, 5.0 / 6));
	assert_true(near(tally_served(&totals), 11.0 / 12));
	assert_int_equal(window(TALLY_LEARNING + 2).asked, 9);
}

static void a_window_that_is_cut_owes_nothing(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= TALLY_LEARNING + 1; i++)
		live(i, 6, 0);
	finish(BEGIN + (TALLY_LEARNING + 1) * WINDOW - 1);
	assert_int_equal(tally_total(&tally).asked_windows, 0);
	assert_true(near(tally_served(&tally.totals), 0));
}

static void the_current_window_tells_what_it_was_asked_for(void **state)
{
	(void)state;
	live(1, 5, 0);
	assert_int_equal(tally_look(&tally, BEGIN).asked, 5);
	finish(STOP);
}

static void the_history_keeps_the_newest_oldest_first(void **state)
{
	struct tally_window kept[TALLY_HISTORY];

	(void)state;
	tally_pass(&tally, 0, BEGIN + 50 * WINDOW + 1000);
	tally_pass(&tally, 1, BEGIN + 50 * WINDOW + 1000);
	tally_fold(&tally, BEGIN + 50 * WINDOW);
	assert_int_equal(tally_history(&tally, kept, TALLY_HISTORY), TALLY_HISTORY);
	assert_int_equal(kept[0].number, 50 - TALLY_HISTORY + 1);
	assert_int_equal(kept[TALLY_HISTORY - 1].number, 50);
	assert_int_equal(tally_history(&tally, kept, 2), 2);
	assert_int_equal(kept[0].number, 49);
	assert_int_equal(kept[1].number, 50);
}

static void a_ring_is_long_for_few_keys_and_bounded_for_many(void **state)
{
	(void)state;
	assert_true(tally_ring(1) >= 1000);
	assert_true(tally_ring(TALLY_KEYS_MAX) >= RING);
	assert_true((uint64_t)tally_ring(TALLY_KEYS_MAX) * TALLY_KEYS_MAX <= 16000000);
}

/* ---- Threads --------------------------------------------------------------------- */

enum { WORKERS = 4, STEPS = 20000, STEP_US = 97 };

/* Each has a time of its own, so that they are windows apart; no count may get lost
 * all the same, and whoever is ahead waits. */
static void *work(void *number)
{
	uint32_t worker = (uint32_t)(uintptr_t)number;
	uint64_t now_us = BEGIN;

	for (int i = 0; i < STEPS; i++) {
		tally_pass(&tally, worker, now_us);
		count(&tally, worker, (uint32_t)i % 2, now_us, now_us,
		      reset_at(now_us));
		now_us += STEP_US;
	}
	tally_pass(&tally, worker, TALLY_GONE);
	return NULL;
}

static void no_count_is_lost_while_windows_are_folded(void **state)
{
	uint64_t stop_us = BEGIN + (uint64_t)STEPS * STEP_US;
	pthread_t threads[WORKERS];

	(void)state;
	open_at(BEGIN, 2, WORKERS);
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	while (!tally_all_gone(&tally))
		tally_fold(&tally, stop_us);
	tally_finish(&tally, stop_us);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(tally_total(&tally).admitted, WORKERS * STEPS);
	assert_int_equal(tally_total(&tally).disagreements, 0);
	assert_int_equal(tally_total(&tally).windows, STEPS * STEP_US / WINDOW);
}

/* ---- Handing over ---------------------------------------------------------------- */

/* Another tally, in which the first is the worker of this number. */
struct funnel {
	struct tally_taker taker; /* first */
	struct tally *into;
	uint32_t worker;
	uint64_t takes;
	uint64_t passed_us;
};

static void take(struct tally_taker *self, uint32_t key, struct tally_span span,
                 uint64_t units)
{
	struct funnel *funnel = (struct funnel *)self;

	funnel->takes++;
	assert_true(span.last * WINDOW > funnel->passed_us);
	assert_true(span.first * WINDOW > funnel->passed_us); /* TALLY-1 */
	tally_count_units(funnel->into, funnel->worker, key, span, units);
}

static void ask(struct tally_taker *self, uint64_t number, uint64_t units)
{
	struct funnel *funnel = (struct funnel *)self;

	assert_true(number * WINDOW > funnel->passed_us);
	tally_count_asked(funnel->into, funnel->worker, number, units);
}

static void pass(struct tally_taker *self, uint64_t now_us)
{
	struct funnel *funnel = (struct funnel *)self;

	assert_true(now_us > funnel->passed_us);
	funnel->passed_us = now_us;
	tally_pass(funnel->into, funnel->worker, now_us);
}

/* Two parts of one worker each; the whole is tally. */
static struct tally parts[2];
static struct funnel funnels[2];

static int open_parts(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct tally_config config = { .keys = 2,
			                       .workers = 1,
			                       .ring = RING,
			                       .limit = LIMIT,
			                       .window_us = WINDOW,
			                       .begin_us = BEGIN,
			                       .taker = &funnels[i].taker };

		funnels[i] = (struct funnel){ .taker = { take, ask, pass },
			                      &tally,
			                      .worker = i };
		assert_true(tally_open(&parts[i], &config));
	}
	return open_it(state);
}

static int close_parts(void **state)
{
	for (int i = 0; i < 2; i++)
		tally_close(&parts[i]);
	return close_it(state);
}

static void finish_parts(void)
{
	for (int i = 0; i < 2; i++) {
		tally_pass(&parts[i], 0, TALLY_GONE);
		tally_finish(&parts[i], STOP);
	}
	finish(STOP);
}

static void the_whole_is_the_sum_of_its_parts(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		for (int times = 0; times < 2; times++)
			count(&parts[i], 0, 1, BEGIN + 3, BEGIN + 4,
			      reset_at(BEGIN + 4));
	finish_parts();
	assert_int_equal(funnels[0].takes, 1); /* both units at once */
	assert_int_equal(window(1).admitted, 4);
	assert_int_equal(tally_total(&tally).overshoot, 4 - LIMIT);
	assert_int_equal(tally_total(&tally).disagreements, 0);
}

/* Only the whole knows that window 1 is full. */
static void a_stray_of_a_part_is_placed_in_the_whole(void **state)
{
	uint64_t boundary = BEGIN + WINDOW;

	(void)state;
	for (int times = 0; times < LIMIT; times++)
		count(&parts[1], 0, 0, BEGIN + 3, BEGIN + 4, reset_at(BEGIN + 4));
	tally_count(&parts[0], 0, 0,
	            tally_place_lent(WINDOW, boundary - 5, boundary + 5, 1));
	finish_parts();
	assert_int_equal(window(1).admitted, LIMIT);
	assert_int_equal(window(2).admitted, 1);
	assert_int_equal(tally_total(&tally).overshoot, 0);
}

static void what_parts_were_asked_for_is_added_up(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		tally_count_asked(&parts[i], 0, tally_number(&parts[i], BEGIN), 2);
	finish_parts();
	assert_int_equal(window(1).asked, 4);
	assert_int_equal(tally_total(&tally).disagreements, 0);
}

static void a_part_hands_over_what_all_have_passed_and_no_more(void **state)
{
	(void)state;
	count(&parts[0], 0, 0, BEGIN + 3, BEGIN + 4, reset_at(BEGIN + 4));
	tally_pass(&parts[0], 0, BEGIN + WINDOW + 999);
	tally_fold(&parts[0], STOP);
	assert_int_equal(funnels[0].takes, 0);
	tally_pass(&parts[0], 0, BEGIN + WINDOW + 1000);
	tally_fold(&parts[0], STOP);
	assert_int_equal(funnels[0].takes, 1);
	assert_int_equal(funnels[0].passed_us, BEGIN + WINDOW + 1000);
	finish_parts();
	assert_int_equal(funnels[0].takes, 1);
}

/* With a server, a unit that was decided within the slack of the run's begin may be of
 * the window before. */
static void the_slack_reaches_behind_the_begin(void **state)
{
	struct tally_config config = { .keys = 1,
		                       .workers = 1,
		                       .ring = RING,
		                       .limit = LIMIT,
		                       .window_us = WINDOW,
		                       .begin_us = BEGIN + 5,
		                       .slack_us = 20 };

	(void)state;
	assert_true(tally_open(&tally, &config));
	tally_count(&tally, 0, 0,
	            tally_place_lent(WINDOW, BEGIN + 6 - 20, BEGIN + 7 + 20, 1));
	tally_pass(&tally, 0, TALLY_GONE);
	tally_finish(&tally, STOP);
	assert_int_equal(tally_total(&tally).admitted, 1);
	assert_int_equal(tally_total(&tally).disagreements, 0);
}

#define PARTS_TEST(name) cmocka_unit_test_setup_teardown(name, open_parts, close_parts)
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_admission_belongs_to_the_one_end_that_fits),
		cmocka_unit_test(a_lent_unit_belongs_where_its_instants_lie),
		cmocka_unit_test(a_reset_that_fits_no_end_is_a_disagreement),
		cmocka_unit_test(a_long_suspension_leaves_several_ends),
		TEST(admissions_count_for_their_key_and_window),
		TEST(a_full_window_is_no_overshoot),
		TEST(one_too_many_in_a_window_is_an_overshoot),
		TEST(the_worst_overshoot_is_told),
		TEST(limits_full_on_both_sides_of_a_boundary_are_none),
		TEST(a_store_of_another_time_is_a_disagreement),
		TEST(an_admission_of_a_window_that_is_done_is_a_disagreement),
		TEST(a_stray_goes_where_there_is_room),
		TEST(a_stray_without_room_anywhere_is_an_overshoot),
		TEST(the_stray_that_can_wait_least_goes_first),
		TEST(many_strays_are_all_kept),
		TEST(a_window_waits_for_every_worker),
		TEST(a_window_waits_for_the_grace_time),
		TEST(counters_are_used_again_and_start_at_0),
		TEST(a_jump_of_the_clock_is_many_empty_windows),
		TEST(undershoot_is_what_whole_windows_left),
		TEST(an_overshoot_does_not_hide_an_undershoot),
		cmocka_unit_test_teardown(
		    windows_cut_by_the_ends_of_the_run_are_not_whole, close_it),
		TEST(an_overshoot_in_a_window_that_is_not_whole_counts),
		TEST(the_current_window_can_be_looked_at),
		TEST(served_is_what_is_admitted_of_what_is_owed),
		TEST(a_window_that_is_cut_owes_nothing),
		TEST(the_current_window_tells_what_it_was_asked_for),
		TEST(the_history_keeps_the_newest_oldest_first),
		cmocka_unit_test(a_ring_is_long_for_few_keys_and_bounded_for_many),
		cmocka_unit_test_teardown(no_count_is_lost_while_windows_are_folded,
		                          close_it),
		PARTS_TEST(the_whole_is_the_sum_of_its_parts),
		PARTS_TEST(a_stray_of_a_part_is_placed_in_the_whole),
		PARTS_TEST(what_parts_were_asked_for_is_added_up),
		PARTS_TEST(a_part_hands_over_what_all_have_passed_and_no_more),
		cmocka_unit_test_teardown(the_slack_reaches_behind_the_begin, close_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
