/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* fund_test.c -- the stakes of a shared budget: what they ask, take and give back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/support/fund_scene.h"

/* FUND-3: totals can be told again, and are until the pool has heard. */
static void a_return_that_is_lost_is_made_again(void **state)
{
	mono lost;

	(void)state;
	have(0, 7);
	wait_for_call();
	assert_int_equal(asked_of(scene.sent)->back, 7);
	lose();
	turn();
	assert_null(scene.sent); /* not at once, but long before it is reminded */
	lost = scene.now;
	wait_for_call();
	assert_false(mono_reached(scene.now, mono_after(lost, REMIND_NS / 4)));
	assert_int_equal(asked_of(scene.sent)->back, 7);
	answer(1, 8, DAY_US / 2);
	assert_false(claim_owes(&scene.stakes[0].locked.claim, scene.now));
}

/* FUND-6: a node that denies from memory tells the store all the same what it was granted. */
static void a_store_is_reminded_though_nothing_lacks(void **state)
{
	(void)state;
	have(0, 0);
	for (int i = 0; i < 3; i++) {
		scene.now = mono_after(scene.now, REMIND_NS);
		turn();
		assert_non_null(scene.sent);
		assert_int_equal(asked_of(scene.sent)->had, 1);
		assert_int_equal(asked_of(scene.sent)->more, 0);
		answer(1, 1, DAY_US / 2);
		scene.now = mono_after(scene.now, REMIND_NS - 1);
		turn();
		if (i > 0) /* what was spent first is told sooner */
			assert_null(scene.sent);
		else if (scene.sent)
			answer(1, 1, DAY_US / 2);
	}
}

/* FUND-4: who spends so slowly that it lacks nothing is heard of all the same. */
static void who_spends_slowly_is_present(void **state)
{
	mono heard;

	(void)state;
	have(0, 8);
	heard = scene.now;
	do {
		scene.now = mono_after(scene.now, scene.fund.tick_ns);
		assert_int_equal(ask_now(0, 1), FUND_ALLOWED);
		turn();
	} while (!scene.sent);
	assert_int_equal(asked_of(scene.sent)->present, 1);
	assert_int_equal(asked_of(scene.sent)->more, 0);
	assert_true(scene.now.ns - heard.ns <= RELEASE_US * 1000 * 5 / 8);
}

/* A closed budget admits nothing, whatever arrives, and gives it back. */
static void what_comes_after_the_end_is_not_spent(void **state)
{
	struct asked asked;
	struct stake_counts counts;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	fund_close(&scene.fund);
	assert_true(asked.done && asked.op.answer.why == GALE_WHY_CLOSED);
	answer(1, 100, DAY_US / 2);
	assert_int_equal(in_till(0), 0);
	stake_counts(&scene.stakes[0], scene.now, &counts);
	assert_int_equal(in_till(0), 0);
	turn();
	assert_int_equal(asked_of(scene.sent)->back, 100);
	lose();
	turn(); /* it is told again, as it may not have been heard */
	assert_int_equal(asked_of(scene.sent)->back, 100);
	answer(1, 100, DAY_US / 2);
	turn();
	assert_int_equal(scene.dropped, STAKES);
}

/* FUND-5, L13: more than the limit is not believed, and costs the others nothing. */
static void a_false_answer_spoils_no_other(void **state)
{
	struct asked asked;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
		turn();
		answer(UINT64_C(1) << 50, LIMIT + 1, DAY_US / 2);
		assert_true(asked.done && asked.wait.result == STORE_WRONG);
	}
	have(1, 9);
	have(0, 9);
}

/* Together the stakes of a node have no more than the limit. */
static void a_node_has_no_more_than_the_limit(void **state)
{
	struct asked asked;

	(void)state;
	have(0, LIMIT - 101);
	assert_int_equal(ask(1, 10, &asked), FUND_WAITS);
	turn();
	answer(1, 101, DAY_US / 2);
	assert_true(asked.done && asked.wait.result == STORE_WRONG);
	have(1, 99);
}

/* Windows end before their answers come: asks do not wait for ever. */
static void windows_that_are_too_short_are_told(void **state)
{
	struct asked asked;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	answer(1, 10, 0);
	assert_false(asked.done);
	wait_for_call();
	answer(2, 10, 0);
	assert_true(asked.done && asked.wait.result == STORE_LATE);
	assert_string_equal(scene.said, "windows end before the store's answers come: "
	                                "window_us is too short for it");
}

/* FUND-7: nobody waits, and more is asked for all the same; but not for what is idle. */
static void more_is_asked_for_before_it_is_gone(void **state)
{
	struct asked asked;

	(void)state;
	have(0, 100);
	assert_int_equal(ask(0, 60, &asked), FUND_ALLOWED);
	wait_for_call();
	assert_true(asked_of(scene.sent)->more > 0);
	assert_int_equal(asked_of(scene.sent)->back, 0);
	answer(1, 161, DAY_US / 2);
	assert_int_equal(in_till(0), 100);
	wait_for_call();
	assert_int_equal(asked_of(scene.sent)->more, 0);
	assert_int_equal(asked_of(scene.sent)->back, 100);
}

/* FUND-8: so many units in each window's time, from the first call that fails on; and none when the
 * store has answered again, though it refuses. */
static void a_stake_that_is_cut_off_has_some_units_alone(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked, late;
	struct stake_counts counts;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 4, &asked), FUND_WAITS);
	turn();
	lose();
	answers(&asked, GALE_ALLOW, GALE_WHY_LATE);
	assert_string_equal(
	    scene.said, "the store cannot be asked: tenants get the units that they "
			"may use alone");
	assert_int_equal(ask(1, 1, &late), FUND_WAITS); /* its terms have none */
	assert_int_equal(ask(0, 6, &asked), FUND_ALLOWED);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	assert_non_null(scene.sent); /* the store is asked on and on */
	lose();
	scene.now = mono_after(scene.now, DAY_US * 1001);
	assert_int_equal(ask(0, 9, &late), FUND_WAITS);
	turn();
	lose();
	answers(&late, GALE_ALLOW, GALE_WHY_LATE);
	stake_counts(&scene.stakes[0], scene.now, &counts);
	assert_int_equal(counts.alone, 19);
	assert_int_equal(counts.spent, 19);
}

/* The stake finds the store away, for one unit more. */
static void be_cut_off(int stake)
{
	struct asked asked;

	assert_int_equal(ask(stake, 1, &asked), FUND_WAITS);
	turn();
	lose();
	answers(&asked, GALE_ALLOW, GALE_WHY_LATE);
}

/* FUND-9: one that is closed and opened again, or is open twice, has no more units. */
static void a_name_has_its_units_alone_once(void **state)
{
	(void)state;
	stake_close(&scene.stakes[0]);
	turn();
	open_stake(0, "big", /* alone= */ 10);
	be_cut_off(0);
	assert_int_equal(ask_now(0, 5), FUND_ALLOWED);
	open_stake(EXTRA, "big", /* alone= */ 10);
	assert_int_equal(ask_now(EXTRA, 5), FUND_WAITS);
	assert_int_equal(ask_now(EXTRA, 4), FUND_ALLOWED);
	stake_close(&scene.stakes[0]);
	stake_close(&scene.stakes[EXTRA]);
	turn();
	assert_int_equal(scene.dropped, 3);
	open_stake(0, "big", /* alone= */ 10);
	assert_int_equal(ask_now(0, 1), FUND_WAITS);
	scene.now = mono_after(scene.now, DAY_US * 1001);
	be_cut_off(0);
	assert_int_equal(ask_now(0, 9), FUND_ALLOWED);
}

/* FUND-9: a name that comes when all others have used some has none, until the first window is over. */
static void names_that_come_and_go_have_no_more_than_there_is_room_for(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };

	(void)state;
	for (int i = 0; i < STAKES; i++)
		stake_set_terms(&scene.stakes[i], &terms, /* alone= */ 10);
	be_cut_off(0);
	assert_int_equal(ask_now(1, 1), FUND_ALLOWED);
	turn(); /* that call gets no answer at all */
	open_stake(EXTRA, "late", /* alone= */ 10);
	assert_int_equal(ask_now(EXTRA, 1), FUND_WAITS);
	turn();
	lose();
	scene.now = mono_after(scene.now, DAY_US * 1001);
	be_cut_off(EXTRA);
}

/* No more than the limit, whatever the terms say. */
static void alone_is_at_most_the_limit(void **state)
{
	const struct pool_ask terms = { .cap = LIMIT / 2, .weight = 1 };

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ UINT64_MAX);
	be_cut_off(0);
	assert_int_equal(ask_now(0, LIMIT / 2), FUND_WAITS);
	fund_set_limit(&scene.fund, LIMIT / 4);
	assert_int_equal(ask_now(0, LIMIT / 4), FUND_WAITS);
	assert_int_equal(ask_now(0, LIMIT / 4 - 1), FUND_ALLOWED);
	assert_int_equal(ask_now(0, 1), FUND_WAITS);
}

/* Its windows are none of the others'. */
static void who_disagrees_uses_nothing_alone(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	refuse(POOL_DISAGREES, GALE_SECONDS(1));
	scene.now = mono_after(scene.now, GALE_SECONDS(2) * 1000);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	lose();
	assert_true(asked.done && asked.wait.result == STORE_LATE);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	answer(1, 1, DAY_US / 2);
	be_cut_off(0);
}

/* FUND-5: the answer that was lost was to the larger limit; so are all others of its window. */
static void a_lost_answer_to_a_larger_limit_is_believed_later(void **state)
{
	struct asked asked;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	lose();
	fund_set_limit(&scene.fund, LIMIT / 2);
	have(0, LIMIT - 200);
	have(1, 100);
	assert_int_equal(ask(1, 110, &asked), FUND_WAITS);
	turn();
	answer(1, 201, DAY_US / 2);
	assert_true(asked.done && asked.wait.result == STORE_WRONG);
}

/* FUND-10: neither units of the store are taken for it, nor units alone. */
static void nothing_is_taken_for_an_ask_that_has_given_up(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked, other;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 1);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	assert_int_equal(ask(0, 1, &other), FUND_WAITS);
	turn();
	assert_true(fund_give_up(&scene.stakes[0], &asked.wait));
	lose();
	assert_false(asked.done);
	answers(&other, GALE_ALLOW, GALE_WHY_LATE);
	assert_int_equal(ask(0, 5, &asked), FUND_WAITS);
	turn();
	assert_true(fund_give_up(&scene.stakes[0], &asked.wait));
	answer(1, 5, DAY_US / 2);
	assert_false(asked.done);
	assert_int_equal(in_till(0), 5);
	assert_int_equal(ask(0, 6, &asked), FUND_WAITS);
	turn();
	answer(1, 6, DAY_US / 2);
	assert_false(fund_give_up(&scene.stakes[0], &asked.wait));
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
}

/* It was refused less than those that wait ask for, and by the time that it may ask again all have
 * given up. */
static void more_is_not_asked_for_when_nobody_wants_it_any_more(void **state)
{
	struct asked asked;

	(void)state;
	have(0, 60);
	assert_int_equal(ask(0, 100, &asked), FUND_WAITS);
	turn();
	answer(1, 61, DAY_US / 2);
	answers(&asked, GALE_DENY, GALE_WHY_OTHERS); /* 40 more */
	assert_int_equal(ask_now(0, 50), FUND_ALLOWED);
	assert_int_equal(ask(0, 45, &asked), FUND_WAITS);
	assert_int_equal(ask_now(0, 8), FUND_ALLOWED);
	scene.now = mono_after(scene.now, scene.fund.tick_ns);
	turn();
	assert_null(scene.sent);
	assert_true(fund_give_up(&scene.stakes[0], &asked.wait));
	turn();
	assert_null(scene.sent);
}

/* Each denial that is not from memory, once. */
static void denials_are_counted(void **state)
{
	struct stake_counts counts;
	struct asked asked;

	(void)state;
	assert_int_equal(ask_now(0, LIMIT + 1), FUND_DENIED);
	assert_int_equal(ask_now(0, 1), FUND_WAITS); /* it is told that it is late */
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	assert_true(fund_give_up(&scene.stakes[0], &asked.wait));
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	lose();
	assert_true(asked.done && asked.wait.result == STORE_LATE);
	stake_counts(&scene.stakes[0], scene.now, &counts);
	assert_int_equal(counts.denied, 4);
}

static void a_refusal_of_the_pool_is_no_outage(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	lose();
	answers(&asked, GALE_ALLOW, GALE_WHY_LATE);
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	answer(1, 0, DAY_US / 2);
	answers(&asked, GALE_DENY, GALE_WHY_OTHERS);
	assert_string_equal(scene.said, "the store can be asked again");
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
}

/* An hour after a call that failed, a store that answers is asked first.  FUND-8 */
static void a_call_that_failed_long_ago_is_no_outage(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	lose();
	scene.now = mono_after(scene.now, 2 * PATIENCE_NS - 1);
	assert_int_equal(ask(0, 1, &asked), FUND_ALLOWED);
	scene.now = mono_after(scene.now, 1);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	answer(1, 1, DAY_US / 2);
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
}

/* The call was sent before another one, which the store has answered.  FUND-8 */
static void a_call_that_was_sent_before_the_last_answer_is_no_outage(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct store_call *first;
	struct asked asked, other;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	first = scene.sent;
	scene.now = mono_after(scene.now, 1);
	assert_int_equal(ask(1, 1, &other), FUND_WAITS);
	turn();
	answer(1, 1, DAY_US / 2);
	scene.sent = first;
	lose();
	assert_true(asked.done && asked.wait.result == STORE_LATE);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
}

/* A call that is BUSY was not sent, and a store that answers nonsense can be asked. */
static void other_failures_are_no_outage(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 1);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	lose();
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	miss(STORE_BUSY);
	assert_true(asked.done && asked.wait.result == STORE_BUSY);
	assert_int_equal(ask(0, 1, &asked), FUND_ALLOWED);
	turn();
	miss(STORE_WRONG);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
}

/* CLAIM-6: what waits would wait for no call. */
static void a_refusal_by_a_result_outlives_its_terms(void **state)
{
	struct asked asked;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	refuse(POOL_QUIET, GALE_SECONDS(10));
	assert_true(asked.done && asked.wait.result == STORE_QUARANTINE);
	fund_set_limit(&scene.fund, 2 * LIMIT);
	assert_int_equal(ask(0, 10, &asked), FUND_DENIED);
	scene.now = mono_after(scene.now, GALE_SECONDS(11) * 1000);
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	answer(1, 10, DAY_US / 2);
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
}

/* L13: no store refuses for longer than times last. */
static void a_refusal_for_ever_is_not_believed(void **state)
{
	struct asked asked;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	refuse(POOL_FULL, UINT64_MAX);
	assert_true(asked.done && asked.wait.result == STORE_WRONG);
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	assert_non_null(scene.sent);
}

/* An ask that does not wait, during a call that brings what it needs, makes no other. */
static void who_does_not_wait_leaves_the_quantum_as_it_was(void **state)
{
	struct claim *claim = &scene.stakes[0].locked.claim;
	struct asked asked;

	(void)state;
	have(0, 0);
	assert_int_equal(ask(0, 8, &asked), FUND_WAITS);
	turn();
	answer(1, 9, DAY_US / 2);
	scene.now = mono_after(scene.now, 1000);
	assert_int_equal(ask(0, 1, &asked), FUND_WAITS);
	turn();
	assert_true(claim->size >= 8);
	assert_int_equal(ask_now(0, 5), FUND_WAITS);
	answer(1, 20, DAY_US / 2);
	assert_int_equal(in_till(0), 10);
	turn();
	assert_null(scene.sent);
}

/* Nothing of it has been taken, as it came this moment. */
static void a_grant_that_came_just_now_does_not_shrink_the_next(void **state)
{
	struct claim *claim = &scene.stakes[0].locked.claim;
	struct asked asked;
	uint64_t size;

	(void)state;
	have(0, 0);
	assert_int_equal(ask(0, 8, &asked), FUND_WAITS);
	turn();
	answer(1, 9, DAY_US / 2);
	scene.now = mono_after(scene.now, 1000);
	assert_int_equal(ask_now(0, 50), FUND_WAITS);
	turn();
	size = claim->size;
	assert_true(size > 1);
	assert_int_equal(ask_now(0, 50), FUND_WAITS);
	answer(1, 19, DAY_US / 2);
	turn();
	assert_non_null(scene.sent);
	assert_true(claim->size >= size);
}

/* L15: a refusal of a smaller limit is no refusal of a larger one. */
static void a_refusal_ends_with_its_terms(void **state)
{
	struct asked asked;

	(void)state;
	assert_int_equal(ask(0, 10, &asked), FUND_WAITS);
	turn();
	fund_set_limit(&scene.fund, 2 * LIMIT);
	answer(1, 0, DAY_US / 2);
	assert_false(asked.done);
	turn();
	assert_int_equal(asked_of(scene.sent)->limit, 2 * LIMIT);
	answer(1, 10, DAY_US / 2);
	assert_true(asked.done && asked.op.answer.verdict == GALE_ALLOW);
}

/* ---- Holds --------------------------------------------------------------------------- */

static void settle(const struct fund_held *held, uint64_t back, uint64_t over)
{
	fund_settle(&scene.stakes[0], held, back, over, scene.now);
}

/* One that waits is told what it has.  FUND-12 */
static void what_was_held_goes_back_into_its_window(void **state)
{
	struct fund_held held, next;
	struct asked asked;

	(void)state;
	assert_int_equal(hold(0, 10, &asked, &held), FUND_WAITS);
	turn();
	answer(1, 10, DAY_US / 2);
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(held.units, 10);
	assert_int_equal(held.window, 1);
	assert_int_equal(in_till(0), 0);
	settle(&held, 7, 0);
	assert_int_equal(in_till(0), 7);
	assert_int_equal(hold(0, 5, &asked, &held), FUND_ALLOWED);
	assert_int_equal(in_till(0), 2);
	scene.now = mono_after(scene.now, DAY_US * 1000);
	assert_int_equal(hold(0, 3, &asked, &next), FUND_WAITS);
	turn();
	answer(2, 3, DAY_US / 2);
	settle(&held, 4, 0); /* of the window before */
	assert_int_equal(in_till(0), 0);
	assert_int_equal(next.window, 2);
	settle(&next, 3, 0);
	assert_int_equal(in_till(0), 3);
}

/* CLAIM-8 */
static void what_is_owed_is_paid_before_an_ask_has_any(void **state)
{
	struct fund_held held;
	struct asked asked;

	(void)state;
	assert_int_equal(hold(0, 10, &asked, &held), FUND_WAITS);
	turn();
	answer(1, 12, DAY_US / 2);
	settle(&held, 0, 5); /* two are in hand */
	assert_int_equal(in_till(0), 0);
	assert_int_equal(ask(0, 4, &asked), FUND_WAITS);
	turn();
	assert_int_equal(asked_of(scene.sent)->least, 7);
	answer(1, 16, DAY_US / 2); /* one more than is owed */
	assert_false(asked.done);
	assert_int_equal(in_till(0), 1);
	turn();
	assert_int_equal(asked_of(scene.sent)->least, 3);
	answer(1, 19, DAY_US / 2);
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
	assert_int_equal(in_till(0), 0);
}

static void a_debt_ends_with_its_window(void **state)
{
	struct fund_held held;
	struct asked asked;

	(void)state;
	assert_int_equal(hold(0, 10, &asked, &held), FUND_WAITS);
	turn();
	answer(1, 10, DAY_US / 2);
	settle(&held, 0, 5);
	scene.now = mono_after(scene.now, DAY_US * 1000);
	assert_int_equal(ask(0, 4, &asked), FUND_WAITS);
	turn();
	assert_int_equal(asked_of(scene.sent)->least, 4);
	answer(2, 4, DAY_US / 2);
	answers(&asked, GALE_ALLOW, GALE_WHY_OWN);
}

static void a_hold_of_units_alone_gives_nothing_back(void **state)
{
	const struct pool_ask terms = { .cap = GALE_UNITS_MAX, .weight = 1 };
	struct fund_held held;
	struct asked asked;

	(void)state;
	stake_set_terms(&scene.stakes[0], &terms, /* alone= */ 10);
	assert_int_equal(hold(0, 8, &asked, &held), FUND_WAITS);
	turn();
	lose();
	answers(&asked, GALE_ALLOW, GALE_WHY_LATE);
	assert_true(held.alone);
	settle(&held, 8, 0);
	assert_int_equal(ask_now(0, 3), FUND_WAITS);
	assert_int_equal(ask_now(0, 2), FUND_ALLOWED);
	assert_int_equal(in_till(0), 0);
}

/* FUND-12: until its holds are settled, or its window is over. */
static void a_stake_that_leaves_waits_for_its_holds(void **state)
{
	struct fund_held held[2];
	struct asked asked;

	(void)state;
	have(0, 30);
	for (int i = 0; i < 2; i++)
		assert_int_equal(hold(0, 10, &asked, &held[i]), FUND_ALLOWED);
	stake_close(&scene.stakes[0]);
	turn();
	assert_int_equal(asked_of(scene.sent)->back, 10);
	answer(1, 31, DAY_US / 2);
	turn();
	assert_null(scene.sent);
	assert_int_equal(scene.dropped, 0);
	settle(&held[0], 6, 0);
	turn();
	assert_int_equal(asked_of(scene.sent)->back, 16);
	answer(1, 31, DAY_US / 2);
	turn();
	assert_int_equal(scene.dropped, 0);
	wait_for_turn();
	assert_int_equal(scene.dropped, 1);
	settle(&held[1], 10, 0);
	turn();
	assert_null(scene.sent);
}

static void a_stake_that_leaves_goes_when_its_last_hold_is_settled(void **state)
{
	struct fund_held held;
	struct asked asked;

	(void)state;
	have(0, 10);
	assert_int_equal(hold(0, 10, &asked, &held), FUND_ALLOWED);
	stake_close(&scene.stakes[0]);
	turn();
	assert_int_equal(scene.dropped, 0);
	settle(&held, 0, 0);
	turn();
	assert_int_equal(scene.dropped, 1);
}

/* The runtime ends. */
static void a_fund_that_ends_waits_for_no_hold(void **state)
{
	struct fund_held held;
	struct asked asked;

	(void)state;
	have(0, 10);
	assert_int_equal(hold(0, 10, &asked, &held), FUND_ALLOWED);
	fund_end(&scene.fund);
	turn();
	assert_int_equal(scene.dropped, STAKES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_return_that_is_lost_is_made_again),
		TEST(a_store_is_reminded_though_nothing_lacks),
		TEST(who_spends_slowly_is_present),
		TEST(what_comes_after_the_end_is_not_spent),
		TEST(a_false_answer_spoils_no_other),
		TEST(a_node_has_no_more_than_the_limit),
		TEST(windows_that_are_too_short_are_told),
		TEST(more_is_asked_for_before_it_is_gone),
		TEST(a_stake_that_is_cut_off_has_some_units_alone),
		TEST(a_name_has_its_units_alone_once),
		TEST(names_that_come_and_go_have_no_more_than_there_is_room_for),
		TEST(alone_is_at_most_the_limit),
		TEST(who_disagrees_uses_nothing_alone),
		TEST(a_lost_answer_to_a_larger_limit_is_believed_later),
		TEST(nothing_is_taken_for_an_ask_that_has_given_up),
		TEST(more_is_not_asked_for_when_nobody_wants_it_any_more),
		TEST(denials_are_counted),
		TEST(a_refusal_of_the_pool_is_no_outage),
		TEST(a_call_that_failed_long_ago_is_no_outage),
		TEST(a_call_that_was_sent_before_the_last_answer_is_no_outage),
		TEST(other_failures_are_no_outage),
		TEST(a_refusal_ends_with_its_terms),
		TEST(a_refusal_by_a_result_outlives_its_terms),
		TEST(a_refusal_for_ever_is_not_believed),
		TEST(who_does_not_wait_leaves_the_quantum_as_it_was),
		TEST(a_grant_that_came_just_now_does_not_shrink_the_next),
		TEST(what_was_held_goes_back_into_its_window),
		TEST(what_is_owed_is_paid_before_an_ask_has_any),
		TEST(a_debt_ends_with_its_window),
		TEST(a_hold_of_units_alone_gives_nothing_back),
		TEST(a_stake_that_leaves_waits_for_its_holds),
		TEST(a_stake_that_leaves_goes_when_its_last_hold_is_settled),
		TEST(a_fund_that_ends_waits_for_no_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
