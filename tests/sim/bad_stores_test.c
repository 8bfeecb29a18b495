/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bad_stores_test.c -- stores that misbehave, each with the counter that says so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/sim/by_hand.h"

static void a_store_that_never_answers(void **state)
{
	struct world_plan plan = bad_plan();
	struct call *calls[5];

	(void)state;
	world_open(&w, &plan);
	w.nodes[0].port.mute = true;
	for (int i = 0; i < 5; i++)
		calls[i] = world_ask(&w, 0, 0, 0, 1);
	assert_true(gale_turn_after_us(w.nodes[0].runtime) <= GALE_MILLIS(21));
	run_to(0, GALE_MILLIS(21));
	for (int i = 0; i < 5; i++)
		told(calls[i], GALE_DENY, GALE_WHY_LATE); /* LESSOR-6, SIM-4 */
	assert_int_equal(counted("asks_without_answer"), 1);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN);
	w.nodes[0].port.mute = false;
	run_to(0, GALE_MILLIS(100));
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN); /* LESSOR-8 */
	calls[0] = world_ask(&w, 0, 0, 1, 1);
	run_to(0, GALE_MILLIS(110));
	told(calls[0], GALE_ALLOW, GALE_WHY_CREDIT);
	run_to(1, 0);
	calls[0] = world_ask(&w, 0, 0, 0, 1);
	run_to(1, GALE_MILLIS(10));
	told(calls[0], GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

/* Of five units that are on their way for so long, each way. */
static void ask_from_afar(uint64_t way_us)
{
	struct world_plan plan = bad_plan();
	struct call *call;

	plan.net.mean_us = way_us;
	world_open(&w, &plan);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(25));
	told(call, GALE_DENY, GALE_WHY_LATE);
	told(world_ask(&w, 0, 0, 0, 1), GALE_DENY, GALE_WHY_DOWN);
}

static void an_answer_after_the_deadline(void **state)
{
	(void)state;
	ask_from_afar(GALE_MILLIS(15));
	run_to(0, GALE_MILLIS(31));
	assert_int_equal(counted("units_lent"), 5);
	assert_int_equal(w.admissions, 0);
	for (int i = 0; i < 5; i++)
		told(world_ask(&w, 0, 0, 0, 1), GALE_ALLOW, GALE_WHY_CREDIT);
	world_ends();
}

static void an_answer_after_its_window(void **state)
{
	(void)state;
	ask_from_afar(GALE_MILLIS(600));
	run_to(1, GALE_MILLIS(210));
	assert_int_equal(counted("answers_late_or_twice"), 1); /* LESSOR-2 */
	assert_int_equal(counted("units_lent"), 0);
	assert_int_equal(w.admissions, 0);
	world_ends();
}

/* The lie, and what it is about. */
static void lie(struct world_plan plan,
                unsigned (*twist)(struct port *port, struct lend_answer *answer))
{
	world_open(&w, &plan);
	w.nodes[0].port.twist = twist;
}

static unsigned says_more(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 6;
	return 1;
}

static unsigned says_for_ever(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.lasts_us = UINT64_MAX; /* as -1 reads */
	return 1;
}

static unsigned says_longer_than_the_window(struct port *port,
                                            struct lend_answer *answer)
{
	(void)port;
	answer->grant.lasts_us = WINDOW + 1;
	return 1;
}

static unsigned says_twice(struct port *port, struct lend_answer *answer)
{
	(void)port;
	(void)answer;
	return 2;
}

static unsigned says_to_nobody(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->number += 1;
	return 1;
}

static void is_not_believed(unsigned (*twist)(struct port *port,
                                              struct lend_answer *answer))
{
	struct call *call;

	lie(bad_plan(), twist);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(10));
	told(call, GALE_DENY, GALE_WHY_WRONG);
	assert_int_equal(counted("answers_not_believed"), 1);
	assert_int_equal(counted("units_lent"), 0);
	world_ends();
}

static void answers_that_cannot_be_true(void **state)
{
	(void)state;
	is_not_believed(says_more); /* LESSOR-2 */
	is_not_believed(says_for_ever);
	is_not_believed(says_longer_than_the_window);
}

static unsigned says_the_past(struct port *port, struct lend_answer *answer)
{
	if (port->net->agenda->now_us > start_of_window(1))
		answer->grant.tag.us -= 2 * WINDOW;
	return 1;
}

static void a_window_from_the_past(void **state)
{
	struct call *call;

	(void)state;
	lie(bad_plan(), says_the_past);
	(void)ask_times(1);
	run_to(1, 10);
	assert_int_equal(w.admissions, 1);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(1, GALE_MILLIS(10));
	told(call, GALE_DENY, GALE_WHY_WRONG);
	assert_int_equal(counted("answers_not_believed"), 1);
	world_ends();
}

static void an_answer_that_comes_twice(void **state)
{
	(void)state;
	lie(bad_plan(), says_twice);
	(void)ask_times(1);
	run_to(0, GALE_MILLIS(10));
	assert_int_equal(counted("answers_late_or_twice"), 1); /* LESSOR-2 */
	assert_int_equal(counted("units_lent"), 5);
	assert_int_equal(ask_times(4), 4);
	world_ends();
}

static void an_answer_to_nothing_that_was_asked(void **state)
{
	struct call *call;

	(void)state;
	lie(bad_plan(), says_to_nobody);
	call = world_ask(&w, 0, 0, 0, 1);
	run_to(0, GALE_MILLIS(30));
	told(call, GALE_DENY, GALE_WHY_LATE);
	assert_int_equal(counted("answers_late_or_twice"), 1);
	assert_int_equal(counted("units_lent"), 0);
	world_ends();
}

static uint64_t numbers[2]; /* of the last two requests, by the parity of their turn */

/* Each answer bears the number of the other key's request. */
static unsigned says_to_another(struct port *port, struct lend_answer *answer)
{
	uint64_t mine = answer->number;

	(void)port;
	answer->number = mine == numbers[0] ? numbers[1] : numbers[0];
	return 1;
}

static void note_number(struct net *net, const struct lend_request *request,
                        const struct lend_answer *answer, uint64_t before)
{
	(void)net;
	(void)answer;
	(void)before;
	numbers[request->key[request->key_len - 1] == 'a'] = request->ask.number;
}

static void an_answer_of_another_key(void **state)
{
	struct world_plan plan = bad_plan();

	(void)state;
	lie(plan, says_to_another);
	w.net.served = note_number;
	for (int i = 0; i < 40; i++) {
		world_ask(&w, 0, 0, 0, 1);
		world_ask(&w, 0, 0, 1, 1);
		run_to(0, GALE_MILLIS(5 * (i + 1)));
	}
	assert_true(world_used(&w, 0, 0) <= 10); /* LESSOR-4 */
	assert_true(world_used(&w, 1, 0) <= 10);
	world_ends();
}

/* A window is never over, and another never ends. */
static unsigned says_always_more(struct port *port, struct lend_answer *answer)
{
	answer->grant.units = 5;
	answer->grant.left = 1000;
	answer->grant.tag.us = port->net->agenda->now_us;
	answer->grant.lasts_us = WINDOW / 2;
	return 1;
}

static unsigned says_the_same_again(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 5;
	answer->grant.left = 1000;
	return 1;
}

static void is_held_to_the_limit(unsigned (*twist)(struct port *port,
                                                   struct lend_answer *answer))
{
	lie(bad_plan(), twist);
	for (int i = 0; i < 60; i++) {
		world_ask(&w, 0, 0, 0, 1);
		run_to(0, GALE_MILLIS(5 * (i + 1)));
	}
	assert_in_range(world_used(&w, 0, 0), 5, 10); /* LESSOR-4 */
	assert_true(counted("answers_not_believed") > 0);
	world_ends();
}

static void a_greedy_store(void **state)
{
	(void)state;
	is_held_to_the_limit(says_always_more);
	is_held_to_the_limit(says_the_same_again);
}

static uint64_t lies;

/* Each answer is about the next window, which is nearly over. */
static unsigned says_it_is_later(struct port *port, struct lend_answer *answer)
{
	(void)port;
	answer->grant.units = 10;
	answer->grant.left = 0;
	answer->grant.tag.us = start_of_window(++lies);
	answer->grant.lasts_us = GALE_MILLIS(4);
	return 1;
}

static void a_store_that_opens_a_window_with_each_answer(void **state)
{
	struct world_plan plan = plan_of(10, 10, 1);

	(void)state;
	plan.bad = true;
	plan.net = (struct net_terms){ .mean_us = 1000, .exact = true };
	lies = 0;
	lie(plan, says_it_is_later);
	for (uint64_t ms = 0; ms < 20000; ms++) {
		run_to(0, GALE_MILLIS(ms));
		world_ask(&w, 0, 0, 0, 1);
		assert_true(w.admissions <= 10 * (1 + ms / 1000)); /* JUMP-3 */
	}
	assert_true(w.admissions >= 19); /* it is asked again */
	assert_in_range(counted("answers_refused_as_a_clock_has_jumped"), 10, 20);
	world_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_that_never_answers),
		cmocka_unit_test(an_answer_after_the_deadline),
		cmocka_unit_test(an_answer_after_its_window),
		cmocka_unit_test(answers_that_cannot_be_true),
		cmocka_unit_test(a_window_from_the_past),
		cmocka_unit_test(an_answer_that_comes_twice),
		cmocka_unit_test(an_answer_to_nothing_that_was_asked),
		cmocka_unit_test(an_answer_of_another_key),
		cmocka_unit_test(a_greedy_store),
		cmocka_unit_test(a_store_that_opens_a_window_with_each_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
