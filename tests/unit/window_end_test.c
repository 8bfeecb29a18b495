/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * window_end_test.c -- who asks when a window is as good as over is allowed in the next.
 *
 * What is left of the window is less than a tick of the credit's: the units that are lent of it are
 * dead on arrival.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "face/face.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LONG_US GALE_SECONDS(30)
#define OFFSETS 200 /* microseconds before the end of a window */
#define LIMIT 5
#define WINDOW GALE_MILLIS(10) /* of most tests */

/* On a clock that stands still, with turns that the test takes. */
static struct house_plan plan_of(uint64_t window_us)
{
	return (struct house_plan){ .rule = gale_fixed_window(LIMIT, window_us),
		                    .mode = GALE_LEASED,
		                    .shards = 1,
		                    .turns = true,
		                    .still = true,
		                    .lease = { .patience_us = LONG_US } };
}

/* ---- In virtual time ------------------------------------------------------------- */

static void turn_until_idle(struct house *h)
{
	while (gale_turn(h->runtime) > 0)
		continue;
}

/* Goes to so long before the next end of a window. */
static void go_before_end(struct house *h, uint64_t window_us, uint64_t offset_us)
{
	uint64_t into_us = h->clock.now_us % window_us;

	test_clock_advance(&h->clock, 2 * window_us - into_us - offset_us);
	turn_until_idle(h);
}

static void open_before_end(struct house *h, const struct house_plan *plan,
                            uint64_t offset_us)
{
	house_open(h, plan);
	go_before_end(h, WINDOW, offset_us);
}

/* The answer, and how long it took. */
static uint64_t ask(struct house *h, const char *key, struct gale_answer *ret_answer)
{
	uint64_t began = h->clock.now_us;
	struct gale_completion done;

	done.answer = gale_ask(h->seat, h->limiter, key, strlen(key), 1, NULL);
	while (done.answer.verdict == GALE_PENDING) {
		turn_until_idle(h);
		if (gale_seat_completions(h->seat, &done, 1) == 0)
			test_clock_advance(&h->clock, 1);
	}
	*ret_answer = done.answer;
	return h->clock.now_us - began;
}

static void fresh_keys_at_each_offset(uint64_t window_us)
{
	struct house_plan plan = plan_of(window_us);
	uint64_t later = 0;
	struct house h;

	house_open(&h, &plan);
	for (uint64_t offset = 0; offset < OFFSETS; offset++) {
		struct gale_answer answer;
		uint64_t took_us;
		char key[32];

		must(snprintf(key, sizeof(key), "%d us before", (int)offset) > 0);
		go_before_end(&h, window_us, offset);
		took_us = ask(&h, key, &answer);
		assert_string_equal(gale_why_text(answer.why),
		                    gale_why_text(GALE_WHY_CREDIT));
		assert_int_equal(answer.verdict, GALE_ALLOW);
		assert_true(took_us == 0 || took_us == offset);
		later += took_us > 0;
	}
	assert_in_range(later, 1, 66); /* a tick */
	assert_int_equal(house_metric(&h, "leases_dead_on_arrival"), later);
	assert_int_equal(house_metric(&h, "leases_asked"), OFFSETS + later);
	assert_true(house_close(&h));
}

static void a_fresh_key_is_allowed_at_the_end_of_a_window(void **state)
{
	static const uint64_t windows[] = { GALE_MILLIS(1), GALE_MILLIS(10),
		                            GALE_MILLIS(100), GALE_SECONDS(1) };

	(void)state;
	for (size_t i = 0; i < COUNT(windows); i++)
		fresh_keys_at_each_offset(windows[i]);
}

/* The units of the window that ends were its last. */
static void so_is_who_would_have_had_the_last_unit(void **state)
{
	struct house_plan plan = plan_of(WINDOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 1;
	open_before_end(&h, &plan, GALE_MILLIS(5));
	for (int i = 0; i < LIMIT - 1; i++) {
		(void)ask(&h, "k", &answer);
		assert_int_equal(answer.verdict, GALE_ALLOW);
	}
	test_clock_advance(&h.clock, GALE_MILLIS(5) - 10);
	assert_int_equal(ask(&h, "k", &answer), 10);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(house_metric(&h, "leases_dead_on_arrival"), 1);
	assert_true(house_close(&h));
}

static void who_is_denied_by_the_rule_is_denied_at_the_end_too(void **state)
{
	struct house_plan plan = plan_of(WINDOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	open_before_end(&h, &plan, GALE_MILLIS(5));
	(void)ask(&h, "k", &answer);
	for (int i = 0; i < LIMIT; i++)
		(void)ask(&h, "k", &answer);
	assert_int_equal(answer.why, GALE_WHY_SPENT);
	test_clock_advance(&h.clock, GALE_MILLIS(5) - 10);
	assert_int_equal(ask(&h, "k", &answer), 0);
	assert_int_equal(answer.why, GALE_WHY_SPENT);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(house_close(&h));
}

/* Whose patience ends before the window does is told that, and not that it was spent. */
static void who_has_no_patience_is_told_that_it_is_late(void **state)
{
	struct house_plan plan = plan_of(WINDOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.lease.patience_us = 7;
	open_before_end(&h, &plan, 20);
	assert_int_equal(ask(&h, "k", &answer), 7);
	assert_int_equal(answer.why, GALE_WHY_LATE);
	assert_true(house_close(&h));
}

/* What nobody waits for any longer is not asked for again. */
static void nobody_asks_for_who_is_gone(void **state)
{
	struct house_plan plan = plan_of(WINDOW);
	struct gale_answer answer;
	struct house h;

	(void)state;
	plan.lease.patience_us = 7;
	open_before_end(&h, &plan, 20);
	(void)ask(&h, "k", &answer);
	test_clock_advance(&h.clock, GALE_MILLIS(1));
	turn_until_idle(&h);
	assert_int_equal(house_metric(&h, "leases_asked"), 1);
	assert_int_equal(ask(&h, "k", &answer), 0);
	assert_int_equal(answer.why, GALE_WHY_CREDIT);
	assert_true(house_close(&h));
}

/* A runtime that is closed meanwhile answers them. */
static void who_waits_for_the_next_window_is_answered_when_it_closes(void **state)
{
	struct house_plan plan = plan_of(WINDOW);
	struct house h;

	(void)state;
	open_before_end(&h, &plan, 20);
	must(gale_ask(h.seat, h.limiter, "k", 1, 1, &h).verdict == GALE_PENDING);
	turn_until_idle(&h);
	gale_runtime_close(h.runtime);
	assert_int_equal(asks_of_seat(h.seat), 0);
	h.runtime = NULL;
	assert_true(house_close(&h));
}

/* ---- By the machine's clock ------------------------------------------------------ */

/* A window of a millisecond ends with each fourth or so of these. */
static void who_has_time_to_wait_is_allowed(void **state)
{
	struct house_plan plan = plan_of(GALE_MILLIS(1));
	struct gale_config config = { .shards = 1 };
	struct gale_limiter_config limiter = { .name = "house",
		                               .rule = plan.rule,
		                               .mode = plan.mode,
		                               .lease = plan.lease };
	struct house h = { 0 };

	(void)state;
	must(gale_runtime_open(&config, &h.runtime) == GALE_ERR_OK);
	must(gale_store_open(h.runtime, NULL, &h.store) == GALE_ERR_OK);
	limiter.store = h.store;
	must(gale_limiter_open(h.runtime, &limiter, &h.limiter) == GALE_ERR_OK);
	must(gale_join(h.runtime, &h.seat) == GALE_ERR_OK);
	for (int i = 0; i < 4000; i++) {
		struct gale_answer answer =
		    gale_wait(h.seat, h.limiter, &i, sizeof(i), 1, LONG_US);

		assert_string_equal(gale_why_text(answer.why),
		                    gale_why_text(GALE_WHY_CREDIT));
		assert_int_equal(answer.verdict, GALE_ALLOW);
	}
	gale_leave(h.seat);
	gale_limiter_close(h.limiter);
	gale_store_close(h.store);
	gale_runtime_close(h.runtime);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_key_is_allowed_at_the_end_of_a_window),
		cmocka_unit_test(so_is_who_would_have_had_the_last_unit),
		cmocka_unit_test(who_is_denied_by_the_rule_is_denied_at_the_end_too),
		cmocka_unit_test(who_has_no_patience_is_told_that_it_is_late),
		cmocka_unit_test(nobody_asks_for_who_is_gone),
		cmocka_unit_test(
		    who_waits_for_the_next_window_is_answered_when_it_closes),
		cmocka_unit_test(who_has_time_to_wait_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
