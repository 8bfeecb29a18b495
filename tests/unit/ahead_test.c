/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ahead_test.c -- units that bridge the turn of a window: what they admit, and until when.
 *
 * The store answers when the test says so, on a clock that stands still unless the test moves it.  A
 * window is ten seconds, so that credit is dead 5 ms before its end, and the next one has surely begun
 * 5 ms after it.  Before each test the key has spent the same in some windows, and the first ask of
 * another is answered.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/all.h>
#include <gale/hold.h>

#include "face/face.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define LIMIT 16000
#define WINDOW GALE_SECONDS(10)
#define USUAL 1600
#define WINDOWS 4 /* until it is known that they do not differ */
#define STEP GALE_MILLIS(10)
#define LATE GALE_MILLIS(9999)  /* credit is dead, and this window is not surely over */
#define NEXT GALE_MILLIS(10011) /* the next one has surely begun */
#define PAUSED GALE_MILLIS(60)  /* longer than any pause after that */

struct told_store {
	struct store store; /* first */
	struct store *inner;
	struct store_home *home;
	struct lend_request asked; /* what it points to is gone */
	struct lend_request back;
	unsigned count, backs;
	uint64_t lent; /* of the window that begins at tag_us */
	uint64_t tag_us;
};

struct scene {
	struct house house;
	struct told_store told;
	uint64_t start_us; /* of the window that is open */
	uint64_t ahead;    /* units that were lent in it of the next */
};

static struct scene s;

/* ---- The store ------------------------------------------------------------------- */

static void note(const struct store_client *client, const struct lend_request *requests,
                 size_t count)
{
	struct told_store *told = (struct told_store *)client->store;

	told->home = client->home;
	for (size_t i = 0; i < count; i++)
		if (requests[i].verb == LEND_BACK) {
			told->back = requests[i];
			told->backs++;
		} else {
			told->asked = requests[i];
			told->count++;
		}
}

static enum store_result run_inside(struct store *self, struct store_op *op,
                                    bool patient)
{
	struct told_store *told = (struct told_store *)self;

	return told->inner->ops->run(told->inner, op, patient);
}

static bool sweep_inside(struct store *self)
{
	struct told_store *told = (struct told_store *)self;

	return told->inner->ops->sweep(told->inner);
}

static void close_inside(struct store *self)
{
	struct told_store *told = (struct told_store *)self;

	told->inner->ops->close(told->inner);
}

static const struct store_ops told_ops = {
	.run = run_inside, .lend = note, .sweep = sweep_inside, .close = close_inside
};

static uint64_t now_us(void)
{
	return load_relaxed(&s.house.clock.now_us);
}

/* All that was asked for last, as a store with enough of it says. */
static struct lease_grant honest(void)
{
	const struct lease_ask *ask = &s.told.asked.ask;
	uint64_t since = now_us() % WINDOW;

	if (s.told.tag_us != now_us() - since)
		s.told.lent = 0;
	s.told.tag_us = now_us() - since;
	return (struct lease_grant){ .units = ask->want,
		                     .ahead = ask->ahead,
		                     .tag = slot_at(s.told.tag_us),
		                     .lasts_us = WINDOW - since,
		                     .left = LIMIT - s.told.lent - ask->want,
		                     .holders = 1,
		                     .had =
		                         ask->had_of == s.told.tag_us ? ask->had : 0 };
}

/* To the last request. */
static void answers(struct lease_grant grant)
{
	const struct lend_answer answer = { .number = s.told.asked.ask.number,
		                            .result = STORE_DONE,
		                            .life = 1,
		                            .grant = grant };

	s.told.lent += grant.units;
	s.told.home->on_answer(s.told.home, &answer);
}

/* ---- Asking ----------------------------------------------------------------------- */

static void pass(uint64_t us)
{
	test_clock_advance(&s.house.clock, us);
	while (gale_turn(s.house.runtime) > 0)
		continue;
}

/* So long after that window began. */
static void pass_to(uint64_t us)
{
	pass(s.start_us + us - now_us());
}

/* In steps: the actor looks at its purses as often as it wants. */
static void walk(uint64_t us)
{
	for (uint64_t gone = 0; gone < us; gone += STEP)
		pass(STEP);
}

static struct gale_answer ask_of(const char *key, uint64_t cost)
{
	struct gale_completion done;

	done.answer =
	    gale_ask(s.house.seat, s.house.limiter, key, strlen(key), cost, NULL);
	pass(0);
	if (done.answer.verdict == GALE_PENDING)
		(void)gale_seat_completions(s.house.seat, &done, 1);
	return done.answer;
}

static struct gale_answer ask_for(uint64_t cost)
{
	return ask_of("k", cost);
}

static struct gale_answer ask(void)
{
	return ask_for(1);
}

/* The call that waits gets its answer. */
static struct gale_answer completed(void)
{
	struct gale_completion done;

	pass(0);
	assert_int_equal(gale_seat_completions(s.house.seat, &done, 1), 1);
	return done.answer;
}

static void is_allowed(void)
{
	struct gale_answer answer = ask();

	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_string_equal(gale_why_text(answer.why), gale_why_text(GALE_WHY_CREDIT));
}

static void waits(void)
{
	assert_int_equal(ask().verdict, GALE_PENDING);
}

static void spend(uint64_t units, uint64_t cost)
{
	for (uint64_t spent = 0; spent < units; spent += cost)
		if (ask_for(cost).verdict == GALE_PENDING) {
			struct lease_grant grant = honest();

			grant.ahead = 0;
			answers(grant);
			must(completed().verdict == GALE_ALLOW);
		}
}

static uint64_t counted(const char *name)
{
	return house_metric(&s.house, name);
}

/* ---- The scene ------------------------------------------------------------------- */

static struct house_plan plan_of(struct gale_rule rule)
{
	return (struct house_plan){ .rule = rule,
		                    .mode = GALE_LEASED,
		                    .shards = 1,
		                    .turns = true,
		                    .still = true };
}

static void open_house(const struct house_plan *plan, bool lends_ahead)
{
	memset(&s, 0, sizeof(s));
	house_open(&s.house, plan);
	s.told.store.ops = &told_ops;
	s.told.store.lends_ahead = lends_ahead;
	s.told.inner = s.house.store->inner;
	house_put_inside(&s.house, &s.told.store);
	s.house.limiter->lender.store = &s.told.store;
}

/* Some windows, and the first call of another: it waits. */
static void live(uint64_t usual, uint64_t cost)
{
	for (int i = 0; i < WINDOWS; i++) {
		spend(usual, cost);
		pass(WINDOW);
	}
	s.start_us = now_us();
	must(ask_for(cost).verdict == GALE_PENDING);
}

static void open_waiting(void)
{
	const struct house_plan plan = plan_of(gale_fixed_window(LIMIT, WINDOW));

	open_house(&plan, true);
	live(USUAL, 1);
}

static void open_scene(void)
{
	open_waiting();
	s.ahead = s.told.asked.ask.ahead;
	must(s.ahead > 0);
	answers(honest());
	must(completed().verdict == GALE_ALLOW);
}

static void close_scene(void)
{
	assert_true(house_close(&s.house));
}

/* ---- While the window turns ------------------------------------------------------- */

static void a_call_while_the_window_turns_is_allowed(void **state)
{
	unsigned asked;

	(void)state;
	open_scene();
	asked = s.told.count;
	pass_to(LATE);
	for (uint64_t i = 0; i < s.ahead; i++)
		is_allowed();
	assert_int_equal(s.told.count, asked);
	waits(); /* there are no more */
	close_scene();
}

/* There is a window that it is of, for sure. */
static void units_ahead_are_not_for_a_window_that_is_open(void **state)
{
	(void)state;
	open_scene();
	pass_to(GALE_SECONDS(9));
	while (ask().verdict == GALE_ALLOW)
		continue;
	assert_int_equal(s.told.asked.ask.had, s.ahead); /* the store knows of which */
	assert_int_equal(s.told.asked.ask.ahead, 0);
	pass_to(LATE);
	is_allowed();
	close_scene();
}

/* L2, AHEAD-1 */
static void units_ahead_live_until_the_next_window_may_be_over(void **state)
{
	(void)state;
	open_scene();
	pass_to(2 * WINDOW - GALE_MILLIS(21));
	is_allowed();
	pass_to(2 * WINDOW -
	        GALE_MILLIS(20)); /* this clock is slow, and the store's fast */
	waits();
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	close_scene();
}

/* ---- The next window -------------------------------------------------------------- */

/* Somebody spends: it is asked for once, after the pause. */
static void the_next_window_is_asked_for(void **state)
{
	unsigned asked;

	(void)state;
	open_scene();
	asked = s.told.count;
	pass_to(LATE);
	is_allowed();
	pass_to(NEXT);
	is_allowed();
	assert_int_equal(s.told.count, asked);
	for (int i = 0; i < 6; i++) {
		pass(PAUSED / 6);
		is_allowed();
	}
	assert_int_equal(s.told.count, asked + 1);
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	assert_int_equal(s.told.asked.ask.had_of, s.start_us + WINDOW);
	assert_true(s.told.asked.ask.ahead > 0);
	assert_true(s.told.asked.ask.want > 1);
	walk(GALE_MILLIS(30));
	assert_int_equal(s.told.count, asked + 1);
	close_scene();
}

static void the_next_window_is_asked_for_after_a_while_of_calls(void **state)
{
	unsigned asked;

	(void)state;
	open_scene();
	asked = s.told.count;
	pass_to(NEXT);
	walk(GALE_MILLIS(700)); /* it is looked at as others are by now */
	assert_int_equal(s.told.count, asked);
	for (int i = 0; i < 30; i++) {
		is_allowed();
		pass(5 * STEP);
	}
	assert_int_equal(s.told.count, asked + 1);
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	close_scene();
}

/* The units that are left join those of the answer. */
static void what_is_left_joins_the_next_window(void **state)
{
	uint64_t units, spent = 0;
	struct lease_grant grant;

	(void)state;
	open_scene();
	pass_to(LATE);
	is_allowed();
	pass_to(NEXT + GALE_SECONDS(1));
	while (s.told.asked.ask.had == 0) {
		is_allowed();
		spent++;
		pass(PAUSED);
	}
	grant = honest();
	grant.ahead = 0;
	units = grant.units;
	answers(grant);
	while (ask().verdict == GALE_ALLOW)
		spent++;
	assert_int_equal(spent + 1, units + s.ahead);
	close_scene();
}

/* What a store allows that lends and lends. */
static bool liar_allows(uint64_t cost)
{
	struct gale_answer answer = ask_for(cost);

	if (answer.verdict == GALE_PENDING) {
		struct lease_grant grant = honest();

		grant.left = LIMIT;
		grant.ahead = 0;
		answers(grant);
		answer = completed();
	}
	return answer.verdict == GALE_ALLOW;
}

/* How many more are spent of its window. */
static uint64_t spent_by_a_liar(void)
{
	uint64_t spent = 0;

	while (spent < 2 * LIMIT && liar_allows(1))
		spent++;
	return spent;
}

/* L13: whatever the store says, what was lent ahead is in the window's books from their beginning. */
static void a_liar_is_held_to_the_rest_of_the_books(void **state)
{
	(void)state;
	open_scene();
	pass_to(LATE);
	is_allowed();
	pass_to(NEXT);
	assert_int_equal(spent_by_a_liar() + 1, LIMIT);
	assert_true(counted("answers_not_believed") > 0);
	close_scene();
}

/* L13: and in those of the window in which it was lent, until its part of that went back. */
static void a_liar_is_held_to_the_books_of_the_window_before(void **state)
{
	(void)state;
	open_scene();
	for (int i = 1; i < 100; i++)
		is_allowed();
	walk(GALE_SECONDS(4));
	must(s.told.backs == 1);
	assert_int_equal(spent_by_a_liar() + 100, LIMIT);
	close_scene();
}

/* L13: one answer brings no more than the books have left beside units ahead. */
static void a_liar_gives_no_call_all_beside_what_is_lent_ahead(void **state)
{
	uint64_t spent;

	(void)state;
	open_scene();
	spent = liar_allows(LIMIT - 1) ? LIMIT - 1 : 0;
	assert_int_equal(1 + spent + spent_by_a_liar(), LIMIT);
	close_scene();
	open_scene();
	pass_to(NEXT);
	spent = liar_allows(LIMIT) ? LIMIT : 0;
	assert_int_equal(spent + spent_by_a_liar(), LIMIT);
	close_scene();
}

/* ---- What is believed ------------------------------------------------------------- */

static void more_than_was_asked_for_is_not_believed(void **state)
{
	struct lease_grant grant;

	(void)state;
	open_waiting();
	grant = honest();
	grant.ahead++;
	answers(grant);
	assert_int_equal(completed().why, GALE_WHY_WRONG);
	assert_int_equal(counted("answers_not_believed"), 1);
	pass_to(LATE);
	waits();
	close_scene();
}

static void nothing_is_lent_ahead_by_a_store_that_lends_nothing(void **state)
{
	struct lease_grant grant;

	(void)state;
	open_waiting();
	grant = honest();
	grant.units = 0;
	grant.retry_us = grant.lasts_us;
	answers(grant);
	(void)completed();
	assert_int_equal(counted("answers_not_believed"), 1);
	close_scene();
}

/* AHEAD-3: calls of 900 units ask for more than a sixteenth of the limit. */
static void no_more_than_a_sixteenth_is_believed(void **state)
{
	const struct house_plan plan = plan_of(gale_fixed_window(LIMIT, WINDOW));
	struct lease_grant grant;

	(void)state;
	open_house(&plan, true);
	live(14400, 900);
	must(s.told.asked.ask.ahead > LIMIT / LEASE_AHEAD_PARTS);
	grant = honest();
	grant.units = 900; /* too few, so that units ahead are spent, too */
	answers(grant);
	must(completed().verdict == GALE_ALLOW);
	for (int i = 0; i < LIMIT / LEASE_AHEAD_PARTS; i++)
		is_allowed();
	waits();
	close_scene();
}

/* ---- Idle units ------------------------------------------------------------------- */

/* No call spends: after an eighth one unit is asked for, so that all can go back. */
static void what_is_idle_in_the_next_window_goes_back(void **state)
{
	unsigned asked, backs;
	struct lease_grant grant;

	(void)state;
	open_scene();
	pass_to(LATE);
	asked = s.told.count;
	backs = s.told.backs;
	walk(GALE_MILLIS(1250));
	assert_int_equal(s.told.count, asked);
	walk(GALE_MILLIS(1250));
	assert_int_equal(s.told.count, asked + 1);
	assert_int_equal(s.told.backs, backs);
	assert_int_equal(s.told.asked.ask.want, 1);
	assert_int_equal(s.told.asked.ask.ahead, 0);
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	assert_int_equal(s.told.asked.ask.had_of, s.start_us + WINDOW);
	grant = honest();
	answers(grant);
	walk(GALE_MILLIS(2500));
	assert_int_equal(s.told.backs, backs + 1);
	assert_int_equal(s.told.back.units, s.ahead + 1);
	assert_int_equal(s.told.back.tag.us, s.start_us + WINDOW);
	assert_int_equal(s.told.count, asked + 1);
	close_scene();
}

/* The store refuses a return of more than it knows to be out with the node: the rest goes back. */
static void only_what_the_store_knows_of_goes_back(void **state)
{
	struct lease_grant grant;
	unsigned backs;

	(void)state;
	open_scene();
	pass_to(LATE);
	backs = s.told.backs;
	walk(GALE_MILLIS(2500));
	must(s.told.asked.ask.had == s.ahead);
	grant = honest();
	grant.had = 0;
	answers(grant);
	walk(GALE_MILLIS(2500));
	assert_int_equal(s.told.backs, backs + 1);
	assert_int_equal(s.told.back.units, 1);
	close_scene();
}

/* A window that begins within a quarantine has no reserve for what was forgotten. (L12) */
static void none_are_lent_of_a_window_that_outlasts_a_quarantine(void **state)
{
	const struct house_plan plan = plan_of(gale_fixed_window(LIMIT, WINDOW));

	(void)state;
	open_house(&plan, true);
	s.told.store.quarantine_us = 2 * WINDOW - 1;
	live(USUAL, 1);
	assert_int_equal(s.told.asked.ask.ahead, 0);
	close_scene();
	open_house(&plan, true);
	s.told.store.quarantine_us = 2 * WINDOW;
	live(USUAL, 1);
	assert_true(s.told.asked.ask.ahead > 0);
	close_scene();
}

/* L6, L16, AHEAD-2: the part of this window goes back; that of the next waits for its answer. */
static void what_is_idle_in_its_own_window_is_set_aside(void **state)
{
	uint64_t units;

	(void)state;
	open_scene();
	units = s.told.lent - 1; /* but for the call that waited */
	walk(GALE_SECONDS(3));
	assert_int_equal(s.told.backs, 1);
	assert_int_equal(s.told.back.units, units + s.ahead);
	assert_int_equal(s.told.back.tag.us, s.start_us);
	pass_to(LATE);
	waits();
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	pass_to(NEXT);
	answers(honest());
	(void)completed();
	units = s.told.lent;
	s.ahead += s.told.asked.ask.ahead; /* of the window after that */
	walk(GALE_SECONDS(3));
	assert_int_equal(s.told.backs, 2);
	assert_int_equal(s.told.back.units, units - 1 + s.ahead);
	assert_int_equal(s.told.back.tag.us, s.start_us + WINDOW);
	close_scene();
}

/* No call comes. */
static void what_is_set_aside_goes_back_by_itself(void **state)
{
	(void)state;
	open_scene();
	walk(GALE_SECONDS(3));
	pass_to(LATE);
	walk(GALE_MILLIS(2500));
	assert_int_equal(s.told.asked.ask.want, 1);
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	answers(honest());
	walk(GALE_MILLIS(2500));
	assert_int_equal(s.told.backs, 2);
	assert_int_equal(s.told.back.units, s.ahead + 1);
	close_scene();
}

/* ---- Nothing is spent of them afterwards ------------------------------------------- */

static void a_reset_ends_them(void **state)
{
	(void)state;
	open_scene();
	must(gale_reset(s.house.seat, s.house.limiter, "k", 1, GALE_MILLIS(100)) ==
	     GALE_ERR_OK);
	pass_to(LATE);
	waits();
	assert_int_equal(s.told.asked.ask.had, 0);
	close_scene();
}

static void set_rule(struct gale_rule rule)
{
	must(gale_limiter_set_rule(s.house.limiter, &rule) == GALE_ERR_OK);
	pass(0);
}

static void a_smaller_limit_sets_them_aside(void **state)
{
	(void)state;
	open_scene();
	set_rule(gale_fixed_window(LIMIT / 2, WINDOW));
	assert_int_equal(s.told.backs, 1);
	pass_to(LATE);
	waits();
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	close_scene();
}

static void another_period_ends_them(void **state)
{
	(void)state;
	open_scene();
	set_rule(gale_fixed_window(LIMIT, 2 * WINDOW));
	pass_to(LATE);
	waits();
	assert_int_equal(s.told.asked.ask.had, 0);
	close_scene();
}

/* Units that were lent by another rule are not believed of this one. */
static void a_change_while_they_are_asked_for_ends_them(void **state)
{
	struct lease_grant grant;

	(void)state;
	open_waiting();
	grant = honest();
	set_rule(gale_fixed_window(LIMIT + 1, WINDOW));
	answers(grant);
	(void)completed();
	pass_to(LATE);
	waits();
	close_scene();
}

/* JUMP-3 */
static void a_clock_that_jumps_ends_them(void **state)
{
	struct lease_grant grant;

	(void)state;
	open_scene();
	while (ask().verdict == GALE_ALLOW)
		continue;
	grant = honest();
	grant.tag = slot_at(s.start_us + 1000 * WINDOW);
	answers(grant);
	(void)completed();
	assert_int_equal(counted("answers_refused_as_a_clock_has_jumped"), 1);
	pass_to(LATE);
	assert_int_not_equal(ask().verdict, GALE_ALLOW);
	close_scene();
}

static void closing_gives_them_back(void **state)
{
	uint64_t units;

	(void)state;
	open_scene();
	units = s.told.lent - 1;
	gale_limiter_close(s.house.limiter);
	s.house.limiter = NULL;
	walk(GALE_SECONDS(1));
	assert_int_equal(s.told.backs, 1);
	assert_int_equal(s.told.back.units, units + s.ahead);
	close_scene();
}

/* Other keys take its place. */
static void a_key_that_is_dropped_gives_them_back(void **state)
{
	struct house_plan plan = plan_of(gale_fixed_window(LIMIT, WINDOW));
	uint64_t units;
	char key[] = "a";

	(void)state;
	plan.node_keys = 8;
	open_house(&plan, true);
	live(USUAL, 1);
	s.ahead = s.told.asked.ask.ahead;
	answers(honest());
	(void)completed();
	units = s.told.lent - 1;
	for (; s.told.backs == 0 && key[0] <= 'z'; key[0]++) {
		must(key[0] != 'k');
		must(ask_of(key, 1).verdict == GALE_PENDING);
		answers(honest());
		(void)completed();
	}
	assert_int_equal(s.told.back.units, units + s.ahead);
	pass_to(LATE);
	for (key[0]--; key[0] >= 'a'; key[0]--) {
		assert_int_equal(ask_of(key, 1).verdict, GALE_PENDING);
		assert_int_equal(s.told.asked.ask.had, 0);
	}
	close_scene();
}

static void without_memory_all_goes_on_without_them(void **state)
{
	(void)state;
	open_waiting();
	s.house.allocator.fail_first = load_relaxed(&s.house.allocator.calls) + 1;
	s.house.allocator.fail_last = UINT64_MAX;
	answers(honest());
	s.house.allocator.fail_first = s.house.allocator.fail_last = 0;
	must(load_relaxed(&s.house.allocator.failed) > 0);
	assert_int_equal(completed().verdict, GALE_ALLOW);
	is_allowed();
	pass_to(LATE);
	waits();
	assert_int_equal(s.told.asked.ask.had, 0);
	assert_true(s.told.asked.ask.ahead > 0);
	close_scene();
}

/* ---- Who asks for none ------------------------------------------------------------ */

static void asks_for_none(const struct house_plan *plan, bool lends_ahead)
{
	open_house(plan, lends_ahead);
	for (int i = 0; i <= WINDOWS; i++) {
		for (uint64_t spent = 0; spent < USUAL; spent++)
			if (ask().verdict == GALE_PENDING) {
				struct lease_grant grant = honest();

				assert_int_equal(s.told.asked.ask.ahead, 0);
				if (plan->rule.kind == GALE_RULE_GCRA ||
				    plan->rule.kind == GALE_RULE_PACER)
					grant.tag = slot_at(0);
				answers(grant);
				(void)completed();
			}
		pass(WINDOW);
	}
	assert_true(s.told.count > 1);
	close_scene();
}

static void some_ask_for_none(void **state)
{
	struct house_plan plan = plan_of(gale_fixed_window(LIMIT, WINDOW));

	(void)state;
	asks_for_none(&plan, false);
	plan = plan_of(gale_quota_anchored(LIMIT, WINDOW, 0));
	asks_for_none(&plan, true);
	plan = plan_of(gale_fixed_window(LIMIT, WINDOW));
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 100;
	asks_for_none(&plan, true);
	plan.lease.carry_over = true;
	asks_for_none(&plan, true);
	plan = plan_of(gale_gcra(LIMIT, WINDOW, LIMIT));
	asks_for_none(&plan, true);
	plan = plan_of(gale_pacer(LIMIT, WINDOW, LIMIT));
	asks_for_none(&plan, true);
}

/* ---- What an answer tells ---------------------------------------------------------- */

static void an_answer_tells_of_the_window_that_ends_and_then_of_the_next(void **state)
{
	struct gale_answer answer;

	(void)state;
	open_scene();
	pass_to(LATE);
	answer = ask();
	assert_int_equal(answer.limit, LIMIT);
	assert_true(answer.remaining < LIMIT && answer.remaining >= LIMIT - s.ahead);
	assert_int_equal(answer.reset_after_us,
	                 1); /* at this instant, as far as is known */
	pass_to(NEXT);
	answer = ask();
	assert_int_equal(answer.remaining, LIMIT - 2);
	assert_in_range(answer.reset_after_us, WINDOW - GALE_MILLIS(32), WINDOW);
	pass_to(NEXT + GALE_MILLIS(1));
	for (uint64_t i = 3; i <= s.ahead; i++)
		assert_int_equal(ask().remaining, LIMIT - i);
	close_scene();
}

/* Held units may go back into their window: it must be known. */
static void holds_and_calls_of_several_limiters_take_none(void **state)
{
	struct gale_part parts[] = { { NULL, "k", 1, 1 } };
	struct gale_all all = { .parts = parts, .count = 1 };
	struct gale_hold hold;

	(void)state;
	open_scene();
	parts[0].limiter = s.house.limiter;
	pass_to(LATE);
	assert_int_equal(gale_hold_all(s.house.seat, &all, &hold, NULL).verdict,
	                 GALE_PENDING);
	pass(0);
	assert_int_equal(s.told.asked.ask.had, s.ahead);
	is_allowed();
	close_scene();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_while_the_window_turns_is_allowed),
		cmocka_unit_test(units_ahead_are_not_for_a_window_that_is_open),
		cmocka_unit_test(units_ahead_live_until_the_next_window_may_be_over),
		cmocka_unit_test(the_next_window_is_asked_for),
		cmocka_unit_test(the_next_window_is_asked_for_after_a_while_of_calls),
		cmocka_unit_test(what_is_left_joins_the_next_window),
		cmocka_unit_test(a_liar_is_held_to_the_rest_of_the_books),
		cmocka_unit_test(a_liar_is_held_to_the_books_of_the_window_before),
		cmocka_unit_test(a_liar_gives_no_call_all_beside_what_is_lent_ahead),
		cmocka_unit_test(more_than_was_asked_for_is_not_believed),
		cmocka_unit_test(nothing_is_lent_ahead_by_a_store_that_lends_nothing),
		cmocka_unit_test(no_more_than_a_sixteenth_is_believed),
		cmocka_unit_test(what_is_idle_in_the_next_window_goes_back),
		cmocka_unit_test(only_what_the_store_knows_of_goes_back),
		cmocka_unit_test(none_are_lent_of_a_window_that_outlasts_a_quarantine),
		cmocka_unit_test(what_is_idle_in_its_own_window_is_set_aside),
		cmocka_unit_test(what_is_set_aside_goes_back_by_itself),
		cmocka_unit_test(a_reset_ends_them),
		cmocka_unit_test(a_smaller_limit_sets_them_aside),
		cmocka_unit_test(another_period_ends_them),
		cmocka_unit_test(a_change_while_they_are_asked_for_ends_them),
		cmocka_unit_test(a_clock_that_jumps_ends_them),
		cmocka_unit_test(closing_gives_them_back),
		cmocka_unit_test(a_key_that_is_dropped_gives_them_back),
		cmocka_unit_test(without_memory_all_goes_on_without_them),
		cmocka_unit_test(some_ask_for_none),
		cmocka_unit_test(
		    an_answer_tells_of_the_window_that_ends_and_then_of_the_next),
		cmocka_unit_test(holds_and_calls_of_several_limiters_take_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
