/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * borrow_test.c -- what a node does about a key's units: vectors, and BORROW-1 to BORROW-6 by lot.
 *
 * A window is a second and has 32 looks, so that units are idle after four.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/borrow.h"
#include "sim/random.h"
#include "tests/support/length.h"

#define LOTS LONG_OR_BRIEF(200000, 20000)
#define LOOK_NS UINT64_C(31250000)
#define IDLE_LOOKS 4
#define WINDOW_US UINT64_C(1000000)

static const mono start = { UINT64_C(1) << 40 };

static const struct borrow_terms window = {
	.capacity = 100,
	.window_us = WINDOW_US,
	.look_ns = LOOK_NS,
	.batch = 10,
	.has_windows = true,
};

static struct borrow_terms carrying(void)
{
	struct borrow_terms terms = window;

	terms.carry_over = true;
	return terms;
}

static struct borrow fresh(void)
{
	return (struct borrow){ .seen = BORROW_UNSEEN };
}

/* ---- How much to ask for ----------------------------------------------------------- */

static void an_ask_brings_enough_for_somebody(void **state)
{
	static const struct {
		struct borrow_need need;
		uint64_t size, want, least;
	} asks[] = {
		{ { 0 }, 7, 7, 1 },
		{ { .waiting = 9, .least = 4 }, 20, 20, 4 },
		{ { .waiting = 9, .least = 4 }, 2, 4, 4 },
		{ { .waiting = 9, .least = 4, .common = 3, .held = 3 }, 20, 20, 1 },
		{ { .waiting = 9, .least = 4, .common = 6, .held = 6 }, 20, 20, 1 },
		/* Nobody waits, and six is what is refused. */
		{ { .denied = 6 }, 20, 20, 6 },
		{ { .denied = 6, .common = 4, .held = 4 }, 20, 20, 2 },
		{ { .denied = 6 }, 3, 6, 6 },
		{ { .waiting = 2, .least = 2, .denied = 6 }, 20, 20, 2 },
		/* A debt is paid by whatever comes. */
		{ { .waiting = 9, .least = 4, .denied = 6, .owed = 5 }, 20, 20, 1 },
		/* As much as a word holds. */
		{ { .held = CREDIT_UNITS_MAX - 5 }, 20, 5, 1 },
		{ { .held = CREDIT_UNITS_MAX }, 20, 1, 1 },
		{ { .held = CREDIT_UNITS_MAX + 9 }, 20, 1, 1 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		struct borrow_ask ask =
		    borrow_ask(&window, &asks[i].need, asks[i].size);

		assert_int_equal(ask.want, asks[i].want);
		assert_int_equal(ask.least, asks[i].least);
	}
}

/* L14: the bound of what carries over depends on it. */
static void what_carries_over_is_asked_for_by_the_batch(void **state)
{
	const struct borrow_terms terms = carrying();
	struct borrow_need need = { .waiting = 90, .least = 4 };
	(void)state;

	assert_int_equal(borrow_ask(&terms, &need, 90).want, terms.batch);
	need.least = 40;
	assert_int_equal(borrow_ask(&terms, &need, 90).want, 40);
}

/* BORROW-1 */
static void asks_by_lot(void **state)
{
	struct chance lot = { 1 };
	(void)state;

	for (int i = 0; i < LOTS; i++) {
		struct borrow_terms terms = chance_below(&lot, 4) ? window : carrying();
		struct borrow_need need = {
			.least = chance_below(&lot, 50),
			.denied = chance_below(&lot, 50),
			.owed = chance_below(&lot, 4) ? 0 : chance_below(&lot, 9),
			.common = chance_below(&lot, 60),
		};
		uint64_t room = chance_below(&lot, 200);
		struct borrow_ask ask;

		need.waiting = need.least + need.owed;
		need.held = CREDIT_UNITS_MAX - room;
		ask = borrow_ask(&terms, &need, chance_below(&lot, 300));
		assert_true(ask.least >= 1 && ask.want >= ask.least);
		if (need.least > 0 && need.owed == 0)
			assert_true(need.common + ask.least >= need.least);
		else if (need.owed == 0)
			assert_true(need.common + ask.least >= need.denied);
		if (ask.want > ask.least)
			assert_true(ask.want <= room &&
			            (!terms.carry_over || ask.want <= terms.batch));
	}
}

static void the_sizer_is_told_of_the_window_that_is_open(void **state)
{
	const struct borrow self = { .holders = 3 };
	struct borrow_need need = { .waiting = 12,
		                    .common = 5,
		                    .ends = mono_after(start, 250000000),
		                    .taken = 40,
		                    .refused = 7,
		                    .store_left = 9 };
	struct sizer_view view = borrow_view(&window, &self, &need, start);
	(void)state;

	assert_int_equal(view.capacity, 100);
	assert_int_equal(view.left_us, 250000);
	assert_int_equal(view.quiet_us, 0);
	assert_int_equal(view.taken, 40);
	assert_int_equal(view.demand, 35 + 12 + 7);
	assert_int_equal(view.pressing, 7);
	assert_int_equal(view.store_left, 9);
	assert_int_equal(view.holders, 3);

	/* It is over, for two microseconds. */
	view = borrow_view(&window, &self, &need, mono_after(need.ends, 2000));
	assert_int_equal(view.left_us, WINDOW_US);
	assert_int_equal(view.quiet_us, 2);
	assert_int_equal(view.taken, 0);
	assert_int_equal(view.demand, 12);
	assert_int_equal(view.store_left, GALE_NEVER);
	need.ends = (mono){ 0 };
	assert_int_equal(borrow_view(&window, &self, &need, start).quiet_us, 0);
}

/* ---- Units ahead ------------------------------------------------------------------- */

/* 1600 units a window are 1.6 in a millisecond.  A gap without trip, pause and drift is 15756 us: two
 * ticks, and the 64th of a window by which an actor may be late. */
static const struct borrow_gap gap = { .usual = 1600 };

/* BORROW-6 */
static void units_ahead_last_until_the_next_answer(void **state)
{
	static const struct {
		struct borrow_gap gap;
		uint64_t units; /* of the gap, their root, and the least */
	} gaps[] = {
		{ { .usual = 1600 }, 25 + 5 + 1 },
		{ { .usual = 3200 }, 50 + 7 + 1 },
		{ { .usual = 1600, .least = 5 }, 25 + 5 + 5 },
		{ { .usual = 1600, .trip_us = 1000 }, 30 + 5 + 1 }, /* three trips */
		{ { .usual = 1600, .pause_us = 3000 }, 30 + 5 + 1 },
		{ { .usual = 1600, .drift_ppm = 1000 }, 28 + 5 + 1 }, /* twice */
		/* A twentieth of the window is 80. */
		{ { .usual = 1600, .trip_us = 11415 }, 80 + 8 + 1 },
		{ { .usual = 1600, .trip_us = 1000000 }, 80 + 8 + 1 },
		{ { .usual = 1600, .drift_ppm = 100000 }, 80 + 8 + 1 },
		/* As much as a word holds. */
		{ { .usual = GALE_UNITS_MAX / 1000 }, CREDIT_UNITS_MAX },
	};
	struct borrow_terms odd = window;
	(void)state;

	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		assert_int_equal(borrow_ahead(&window, &gaps[i].gap), gaps[i].units);
	odd.window_us = 1500000; /* 23437 us for an actor, 131 for ticks */
	assert_int_equal(borrow_ahead(&odd, &gap), 25 + 5 + 1);
	/* A clock is wrong by 30000 us in the second, and by 15000 in the rest of the window. */
	assert_int_equal(borrow_ahead(&odd, &(struct borrow_gap){ .usual = 15000,
	                                                          .drift_ppm = 15000 }),
	                 685 + 26 + 1);
}

static void a_few_calls_are_not_bridged(void **state)
{
	struct borrow_terms meter = window;
	struct borrow_gap few = { .usual = 15 };
	(void)state;

	assert_int_equal(borrow_ahead(&window, &few), 0);
	few.usual = 16;
	assert_int_equal(borrow_ahead(&window, &few), 0 + 0 + 1);
	few = (struct borrow_gap){ .usual = 1600, .least = 100 };
	assert_int_equal(borrow_ahead(&window, &few), 25 + 5 + 100);
	few.least = 101;
	assert_int_equal(borrow_ahead(&window, &few), 0);
	assert_int_equal(borrow_ahead(&window, &(struct borrow_gap){ 0 }), 0);
	meter.has_windows = false;
	assert_int_equal(borrow_ahead(&meter, &gap), 0);
}

/* BORROW-6: the units of the longest gap that is bridged, and no more than those of a twentieth of the
 * window, and what chance may add. */
static void units_ahead_by_lot(void **state)
{
	struct chance lot = { 3 };
	(void)state;

	for (int i = 0; i < LOTS; i++) {
		struct borrow_gap any = {
			.usual = 16 + chance_below(&lot, 1000000),
			.trip_us = chance_below(&lot, 20000),
			.pause_us =
			    borrow_pause_us(WINDOW_US, chance_below(&lot, 256), 256),
			.drift_ppm = (uint32_t)chance_below(&lot, 1000),
		};
		uint64_t units = borrow_ahead(&window, &any);
		uint64_t gap_us = 3 * any.trip_us + any.pause_us + 2 * any.drift_ppm;
		uint64_t most = any.usual / 20;

		if (gap_us > WINDOW_US / 20)
			gap_us = WINDOW_US / 20;
		assert_true(units >= any.usual * gap_us / WINDOW_US);
		assert_true(units > 0);
		assert_true(units <= most + 1 ||
		            (units - most - 1) * (units - most - 1) <= most);
	}
}

/* A fleet does not ask all at once. */
static void each_lot_has_another_pause(void **state)
{
	(void)state;
	assert_int_equal(borrow_pause_us(WINDOW_US, 0, 256), WINDOW_US / 512);
	assert_int_equal(borrow_pause_us(WINDOW_US, 128, 256),
	                 WINDOW_US / 512 + WINDOW_US / 1024);
	for (uint64_t lot = 1; lot < 256; lot++) {
		assert_true(borrow_pause_us(WINDOW_US, lot, 256) >
		            borrow_pause_us(WINDOW_US, lot - 1, 256));
		assert_true(borrow_pause_us(WINDOW_US, lot, 256) < WINDOW_US / 256);
	}
}

static unsigned turned(struct borrow *self, struct borrow_turn turn)
{
	return borrow_turned(self, &turn);
}

static void a_window_that_has_begun_is_asked_for_when_somebody_spends(void **state)
{
	struct borrow self = { .seen = 50, .idle = 3 };
	(void)state;

	/* Units that were spent before it began say nothing of it. */
	assert_int_equal(turned(&self, (struct borrow_turn){ .left = 30 }),
	                 BORROW_WATCH);
	assert_int_equal(self.idle, 0);
	assert_int_equal(
	    turned(&self, (struct borrow_turn){ .left = 30, .again = true }),
	    BORROW_WATCH);
	assert_int_equal(
	    turned(&self, (struct borrow_turn){ .left = 29, .again = true }),
	    BORROW_WATCH | BORROW_ASK_AHEAD);
	assert_int_equal(
	    turned(&self, (struct borrow_turn){ .left = 29, .again = true }),
	    BORROW_WATCH);
	assert_int_equal(
	    turned(&self, (struct borrow_turn){ .left = 0, .again = true }), 0);
	assert_int_equal(turned(&self, (struct borrow_turn){ .left = 0 }), 0);
}

static void a_window_that_has_begun_is_not_asked_for_in_vain(void **state)
{
	struct borrow self = { .seen = 50 };
	(void)state;

	assert_int_equal(
	    turned(&self,
	           (struct borrow_turn){ .left = 40, .again = true, .asked = true }),
	    BORROW_WATCH);
	assert_int_equal(
	    turned(&self,
	           (struct borrow_turn){ .left = 30, .again = true, .down = true }),
	    BORROW_WATCH);
	assert_int_equal(
	    turned(&self, (struct borrow_turn){ .left = 20, .again = true }),
	    BORROW_WATCH | BORROW_ASK_AHEAD);
}

/* ---- What an answer means ---------------------------------------------------------- */

static struct lease_grant granted(uint64_t units, uint64_t left, uint64_t others)
{
	return (struct lease_grant){ .units = units,
		                     .left = left,
		                     .others = others,
		                     .holders = others + 1,
		                     .lasts_us = 300000,
		                     .retry_us = 400000 };
}

static struct borrow_answer answer_of(const struct lease_grant *grant)
{
	return (struct borrow_answer){ .grant = grant,
		                       .want = 10,
		                       .capacity = 100,
		                       .sent = start,
		                       .lives = true };
}

/* Others hope for what it has, and go on until it says that it has none.  BORROW-4 */
static void who_has_something_asks_again_to_say_so(void **state)
{
	struct lease_grant grant = granted(0, 0, 0);
	struct borrow_answer answer = answer_of(&grant);
	struct borrow self = { 0 };

	(void)state;
	answer.spent = true;
	grant.holders = 2;
	assert_int_equal(borrow_hear(&window, &self, &answer).what, BORROW_DENY);
	assert_int_equal(self.hopes, 0);
	answer.spent = false;
	assert_int_equal(borrow_hear(&window, &self, &answer).what,
	                 BORROW_DENY | BORROW_WATCH);
	assert_int_equal(self.hopes, 1);
	grant.holders = 1; /* there are none */
	assert_int_equal(borrow_hear(&window, &self, &answer).what, BORROW_DENY);
}

static void what_came_as_wanted_denies_nothing(void **state)
{
	struct lease_grant grant = granted(10, 3, 2);
	struct borrow_answer answer = answer_of(&grant);
	struct borrow self = { .hopes = 3, .wait = 2 };
	(void)state;

	assert_int_equal(borrow_hear(&window, &self, &answer).what, 0);
	assert_int_equal(self.hopes, 0);
	assert_int_equal(self.holders, 3);
	assert_int_equal(borrow_served(&window, &self, &answer, false).what, 0);
	assert_int_equal(borrow_served(&window, &self, &answer, true).what,
	                 BORROW_ASK_AGAIN); /* BORROW-5 */
}

/* BORROW-3, BORROW-4 */
static void a_denial_is_what_the_store_said(void **state)
{
	struct lease_grant none = granted(0, 2, 1), some = granted(4, 0, 0);
	struct borrow_answer answer = answer_of(&none);
	struct borrow self = fresh();
	struct borrow_orders orders = borrow_hear(&window, &self, &answer);
	(void)state;

	assert_int_equal(orders.what, BORROW_DENY | BORROW_WATCH);
	assert_int_equal(orders.until.ns, start.ns + 400000000);
	assert_int_equal(orders.beyond, 3);
	answer.grant = &some;
	orders = borrow_hear(&window, &self, &answer);
	assert_int_equal(orders.what, BORROW_DENY);
	assert_int_equal(orders.until.ns, start.ns + 300000000);
	assert_int_equal(orders.beyond, 1);
	assert_int_equal(self.hopes, 0); /* no other holds any */
	some.others = 1;
	orders = borrow_hear(&window, &self, &answer);
	assert_int_equal(orders.what, BORROW_DENY | BORROW_WATCH);
	none.retry_us = GALE_NEVER;
	answer.grant = &none;
	orders = borrow_hear(&window, &self, &answer);
	assert_int_equal(orders.until.ns, start.ns + 1000 * WINDOW_US);
}

/* BORROW-3 */
static void what_is_no_denial(void **state)
{
	struct lease_grant none = granted(0, 2, 1), some = granted(4, 0, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow_terms meter = window;
	struct borrow self = fresh();
	(void)state;

	answer.changed = true; /* L15 */
	assert_int_equal(borrow_hear(&window, &self, &answer).what, 0);
	answer = answer_of(&none);
	answer.waits = true; /* L12 */
	assert_int_equal(borrow_hear(&window, &self, &answer).what, 0);
	meter.has_windows = false;
	answer = answer_of(&some);
	assert_int_equal(borrow_hear(&meter, &self, &answer).what, 0);
	answer.lives = false;
	assert_int_equal(borrow_hear(&meter, &self, &answer).what, 0);
	answer = answer_of(&none);
	assert_int_equal(borrow_hear(&meter, &self, &answer).what,
	                 BORROW_DENY | BORROW_WATCH);
}

/* Units that carry over are never given back by anybody. */
static void who_carries_over_has_no_hope(void **state)
{
	const struct borrow_terms terms = carrying();
	struct lease_grant none = granted(0, 2, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow self = fresh();
	(void)state;

	assert_int_equal(borrow_hear(&terms, &self, &answer).what, BORROW_DENY);
	assert_int_equal(self.hopes, 0);
}

static void what_comes_dead_is_slept_over(void **state)
{
	struct lease_grant some = granted(4, 0, 1);
	struct borrow_answer answer = answer_of(&some);
	struct borrow self = fresh();
	struct borrow_orders orders;
	(void)state;

	answer.lives = false;
	orders = borrow_hear(&window, &self, &answer);
	assert_int_equal(orders.what, BORROW_SLEEP);
	assert_int_equal(orders.until.ns, start.ns + 300000000);
	assert_int_equal(borrow_resume(true).what, BORROW_ASK_AGAIN);
	assert_int_equal(borrow_resume(false).what, 0);
}

static void who_may_have_forgotten_keeps_all_out(void **state)
{
	struct lease_grant none = granted(0, 2, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow self = { .hopes = 2, .wait = 3 };
	struct borrow_orders orders;
	(void)state;

	answer.waits = true;
	orders = borrow_served(&window, &self, &answer, true);
	assert_int_equal(orders.what, BORROW_KEEP_OUT | BORROW_QUARANTINE);
	assert_int_equal(orders.until.ns, start.ns + 400000000);
	assert_int_equal(self.hopes, 0);
	answer.changed = true;
	assert_int_equal(borrow_served(&window, &self, &answer, true).what,
	                 BORROW_KEEP_OUT);
}

/* L15 */
static void what_was_for_more_goes_back(void **state)
{
	const struct borrow_terms terms = carrying();
	struct lease_grant some = granted(10, 0, 1);
	struct borrow_answer answer = answer_of(&some);
	struct borrow self = fresh();
	(void)state;

	answer.capacity = 101;
	assert_int_equal(borrow_served(&window, &self, &answer, true).what,
	                 BORROW_ASK_AGAIN | BORROW_GIVE_BACK);
	assert_int_equal(borrow_served(&terms, &self, &answer, false).what, 0);
}

/* ---- Looks ------------------------------------------------------------------------- */

static unsigned look(const struct borrow_terms *terms, struct borrow *self,
                     struct borrow_sight sight)
{
	sight.ends = mono_after(start, 900000000);
	return borrow_look(terms, self, &sight, start).what;
}

/* BORROW-2 */
static void idle_units_go_back_after_an_eighth(void **state)
{
	const struct borrow_terms terms = carrying();
	struct borrow self = fresh(), owing = fresh(), kept = fresh();
	(void)state;

	for (int i = 0; i < IDLE_LOOKS; i++)
		assert_int_equal(
		    look(&window, &self, (struct borrow_sight){ .left = 9 }),
		    BORROW_WATCH);
	assert_int_equal(look(&window, &self, (struct borrow_sight){ .left = 9 }),
	                 BORROW_GIVE_BACK);
	for (int i = 0; i < 3 * IDLE_LOOKS; i++) {
		struct borrow_sight sight = { .left = 9 };

		assert_int_equal(look(&terms, &kept, sight), BORROW_WATCH);
		sight.in_debt = true;
		assert_int_equal(look(&window, &owing, sight), BORROW_WATCH);
	}
}

/* Units come, and no call takes any: looks until they go back. */
static int looks_to_return(const struct borrow_terms *terms, struct borrow *self)
{
	borrow_get(self);
	for (int looks = 0; looks < 1000; looks++)
		if (look(terms, self, (struct borrow_sight){ .left = 9 }) ==
		    BORROW_GIVE_BACK)
			return looks;
	return 1000;
}

static const struct borrow_need lacks = { .waiting = 1,
	                                  .least = 1,
	                                  .ends = { UINT64_C(2) << 40 } };

static void lack(struct borrow *self, struct borrow_need need, uint64_t want, mono now)
{
	struct borrow_ask ask = { .want = want, .least = 1 };

	borrow_lack(&window, self, &need, &ask, now);
}

/* BORROW-7 */
static void what_went_back_in_vain_is_kept_for_longer(void **state)
{
	struct borrow self = fresh();
	(void)state;

	assert_int_equal(looks_to_return(&window, &self), IDLE_LOOKS);
	lack(&self, lacks, 8, start);
	assert_int_equal(looks_to_return(&window, &self), 4 * IDLE_LOOKS);
	/* It is idle for all that. */
	assert_false(self.is_patient);
	assert_int_equal(looks_to_return(&window, &self), IDLE_LOOKS);
}

/* BORROW-7: a node that has spent all asks, too; so does one for nobody in particular, or for a call that
 * was refused, or for many calls, and the next window is another. */
static void what_was_not_missed_is_not_kept_for_longer(void **state)
{
	struct borrow self = { .seen = 9, .idle = IDLE_LOOKS - 1 };
	struct borrow_need need = lacks;
	(void)state;

	lack(&self, need, 8, start);
	assert_false(self.is_patient);
	self.idle = IDLE_LOOKS;
	need.least = 0;
	lack(&self, need, 8, start);
	assert_false(self.is_patient);
	need = lacks;
	need.denied = 1;
	lack(&self, need, 8, start);
	assert_false(self.is_patient);
	need = lacks;
	lack(&self, need, 8, need.ends);
	assert_false(self.is_patient);
	lack(&self, need, 9, start);
	assert_false(self.is_patient);
	lack(&self, need, 8, start);
	assert_true(self.is_patient);
}

/* BORROW-7: others want what this node would keep. */
static void nobody_is_patient_where_there_is_too_little(void **state)
{
	struct lease_grant enough = granted(10, 3, 2), few = granted(4, 0, 2);
	struct borrow_answer answer = answer_of(&enough);
	struct borrow self = { .is_patient = true };
	(void)state;

	borrow_hear(&window, &self, &answer);
	assert_true(self.is_patient);
	answer.grant = &few;
	borrow_hear(&window, &self, &answer);
	assert_false(self.is_patient);
}

/* Looks are counted so far.  L6: units of a long window are back long before an hour is over. */
static void a_long_window_knows_no_longer_patience(void **state)
{
	struct borrow self = { .seen = BORROW_UNSEEN, .is_patient = true };
	struct borrow_terms day = window;
	(void)state;

	day.window_us = 86400 * WINDOW_US;
	assert_int_equal(looks_to_return(&day, &self), UINT8_MAX);
	assert_int_equal(looks_to_return(&day, &self), UINT8_MAX);
}

/* The store knows soon whose they are, also where a node is patient. */
static void units_ahead_are_claimed_after_an_eighth(void **state)
{
	struct borrow_sight sight = { .left = 9, .turned = true };
	struct borrow self = { .seen = 9, .is_patient = true };
	(void)state;

	for (int i = 1; i < IDLE_LOOKS; i++)
		assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_CLAIM);
}

static void what_is_spent_from_now_and_then_stays(void **state)
{
	struct borrow self = fresh();
	(void)state;

	for (uint64_t left = 99; left > 90; left--)
		for (int i = 0; i < IDLE_LOOKS; i++)
			assert_int_equal(
			    look(&window, &self, (struct borrow_sight){ .left = left }),
			    BORROW_WATCH);
	/* More than before is new, or came back. */
	borrow_get(&self);
	assert_int_equal(borrow_spent(&self, 5), 0);
	assert_int_equal(look(&window, &self, (struct borrow_sight){ .left = 99 }),
	                 BORROW_WATCH);
	assert_int_equal(borrow_spent(&self, 96), 3);
	assert_int_equal(borrow_spent(&self, 100), 0);
}

static void what_runs_out_is_asked_for_ahead(void **state)
{
	struct borrow self = { .seen = 30 };
	struct borrow_sight sight = { .left = 20 }, late = { .left = 19 };
	struct borrow_terms places = window;
	(void)state;

	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	self.seen = 30;
	sight.left = 19; /* less than two looks' worth of eleven */
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_ASK_AHEAD);
	self.seen = 30;
	sight.asked = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	self.seen = 30;
	sight.asked = false;
	sight.denied = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	self.seen = 30;
	sight.denied = false;
	places.has_places = true;
	assert_int_equal(look(&places, &self, sight), BORROW_WATCH);
	/* The window is over before that. */
	self.seen = 30;
	late.ends = mono_after(start, 2 * LOOK_NS);
	assert_int_equal(borrow_look(&window, &self, &late, start).what, BORROW_WATCH);
}

/* An ask that brings less than one more look spends spares none.  BORROW-8 */
static void an_ask_ahead_is_worth_a_look(void **state)
{
	struct borrow self = { .seen = 30 };
	struct borrow_sight sight = { .left = 19,
		                      .ends = mono_after(start, 900000000) };
	struct borrow_orders orders;

	(void)state;
	orders = borrow_look(&window, &self, &sight, start);
	assert_true(orders.what & BORROW_ASK_AHEAD);
	assert_int_equal(orders.worth, 11);
	self.seen = 30;
	sight.turned =
	    true; /* whatever it brings: the node says what it was lent ahead */
	orders = borrow_look(&window, &self, &sight, start);
	assert_true(orders.what & BORROW_ASK_AHEAD);
	assert_int_equal(orders.worth, 0);
}

/* Nothing goes back before the store knows whose it is: an ask comes first. */
static void units_ahead_that_are_idle_are_claimed(void **state)
{
	struct borrow_sight sight = { .left = 9, .turned = true };
	struct borrow self = fresh();
	(void)state;

	for (int i = 0; i < IDLE_LOOKS; i++)
		assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_CLAIM);
	sight.asked = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight.asked = false;
	sight.down = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight.down = false;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_CLAIM);
	sight.turned = false; /* an answer has come */
	assert_int_equal(look(&window, &self, sight), BORROW_GIVE_BACK);
}

/* However long they last. */
static void units_ahead_that_are_spent_are_asked_for(void **state)
{
	struct borrow_sight sight = { .left = 99, .turned = true };
	struct borrow self = { .seen = 100, .idle = IDLE_LOOKS - 1 };
	(void)state;

	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_ASK_AHEAD);
	assert_int_equal(self.idle, 0);
	sight.left = 98;
	sight.asked = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight.left = 97;
	sight.asked = false;
	sight.down = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
}

static const struct borrow_sight refused = { .denied = true, .pressed = true };

/* So many looks until it asks again. */
static int looks_to_again(struct borrow *self, struct borrow_sight sight)
{
	for (int looks = 1; looks < 1000; looks++) {
		unsigned what = look(&window, self, sight);

		assert_true(what & BORROW_WATCH);
		if (what & BORROW_ASK_AGAIN)
			return looks;
	}
	return 1000;
}

/* BORROW-4 */
static void who_was_refused_is_asked_for_again(void **state)
{
	static const int looks[] = { 1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4 };
	struct lease_grant none = granted(0, 0, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow self = fresh();
	(void)state;

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		borrow_hear(&window, &self, &answer);
		assert_int_equal(looks_to_again(&self, refused), looks[i]);
	}
	none.holders = 2 * BORROW_HOPERS;
	borrow_hear(&window, &self, &answer);
	assert_int_equal(looks_to_again(&self, refused), 3 * IDLE_LOOKS);
	none.holders = 100000;
	borrow_hear(&window, &self, &answer);
	assert_int_equal(looks_to_again(&self, refused), 8 * IDLE_LOOKS);
}

/* BORROW-4: where each of many has as much as it would wait for, what goes back is worth a trip. */
static void nodes_that_share_much_ask_as_soon_as_a_few(void **state)
{
	struct lease_grant none = granted(0, 0, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow_terms large = window;
	struct borrow self = fresh();
	(void)state;

	none.holders = 255;
	large.capacity = answer.capacity = 256 * BORROW_WORTH;
	for (int i = 0; i < 4; i++)
		borrow_hear(&large, &self, &answer);
	assert_int_equal(looks_to_again(&self, refused), IDLE_LOOKS);
	large.capacity = answer.capacity = 128 * BORROW_WORTH - 1;
	borrow_hear(&large, &self, &answer);
	assert_int_equal(looks_to_again(&self, refused), 3 * IDLE_LOOKS);
	none.holders =
	    10000; /* most of these have one unit, and a window is the most to wait */
	large.capacity = answer.capacity = 10000;
	borrow_hear(&large, &self, &answer);
	assert_int_equal(looks_to_again(&self, refused), 8 * IDLE_LOOKS);
}

/* BORROW-4: those units are too few for the call. */
static void who_has_some_in_hand_is_asked_for_again(void **state)
{
	struct lease_grant some = granted(4, 0, 1);
	struct borrow_answer answer = answer_of(&some);
	struct borrow_sight sight = refused;
	struct borrow self = fresh();
	(void)state;

	borrow_get(&self);
	borrow_hear(&window, &self, &answer);
	sight.left = 4;
	assert_int_equal(looks_to_again(&self, sight), 1);
}

static void nobody_is_asked_for_in_vain(void **state)
{
	struct borrow_sight sight = refused;
	struct borrow self = { .hopes = 1, .wait = 1 };
	(void)state;

	sight.asked = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight = refused;
	sight.down = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight = refused;
	sight.pressed = false;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
	sight = refused;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH | BORROW_ASK_AGAIN);
	sight.denied = false; /* who asks next asks the store */
	assert_int_equal(look(&window, &self, sight), 0);
	assert_int_equal(self.hopes, 0);
	sight.in_debt = true;
	assert_int_equal(look(&window, &self, sight), BORROW_WATCH);
}

/* Looks to wait are no units that were spent, and what comes back, or is owed, ends no hope. */
static void units_and_hope_are_apart(void **state)
{
	struct lease_grant none = granted(0, 0, 1);
	struct borrow_answer answer = answer_of(&none);
	struct borrow_sight sight = refused;
	struct borrow self = { .hopes = 2 };
	(void)state;

	borrow_hear(&window, &self, &answer);
	assert_int_equal(borrow_spent(&self, 0), 0);
	assert_int_equal(look(&window, &self, refused), BORROW_WATCH);
	assert_int_equal(borrow_spent(&self, 0), 0);
	borrow_get(&self);
	sight.in_debt = true;
	assert_int_equal(looks_to_again(&self, sight), 3);
}

/* BORROW-2, BORROW-4: whatever was seen before, within so many looks. */
static void looks_by_lot(void **state)
{
	struct chance lot = { 2 };
	(void)state;

	for (int i = 0; i < LOTS; i++) {
		struct lease_grant grant = granted(chance_below(&lot, 3), 0, 1);
		struct borrow_answer answer = answer_of(&grant);
		struct borrow self = {
			.seen = (uint32_t)chance_below(&lot, 2000),
			.idle = (uint8_t)chance_below(&lot, IDLE_LOOKS),
			.hopes = (uint8_t)chance_below(&lot, 9),
		};
		struct borrow_sight sight = refused;
		int most = IDLE_LOOKS, looks = 0;
		unsigned what;

		grant.holders = 1 + chance_below(&lot, 300);
		sight.left = chance_below(&lot, 1000);
		borrow_hear(&window, &self, &answer);
		most += (int)(self.holders / BORROW_HOPERS) * IDLE_LOOKS;
		if (sight.left > 0)
			most = IDLE_LOOKS + 1;
		do
			what = look(&window, &self, sight);
		while (++looks <= most &&
		       !(what & (BORROW_ASK_AGAIN | BORROW_GIVE_BACK)));
		assert_true(looks <= most);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ask_brings_enough_for_somebody),
		cmocka_unit_test(what_carries_over_is_asked_for_by_the_batch),
		cmocka_unit_test(asks_by_lot),
		cmocka_unit_test(the_sizer_is_told_of_the_window_that_is_open),
		cmocka_unit_test(units_ahead_last_until_the_next_answer),
		cmocka_unit_test(a_few_calls_are_not_bridged),
		cmocka_unit_test(units_ahead_by_lot),
		cmocka_unit_test(each_lot_has_another_pause),
		cmocka_unit_test(
		    a_window_that_has_begun_is_asked_for_when_somebody_spends),
		cmocka_unit_test(a_window_that_has_begun_is_not_asked_for_in_vain),
		cmocka_unit_test(who_has_something_asks_again_to_say_so),
		cmocka_unit_test(what_came_as_wanted_denies_nothing),
		cmocka_unit_test(a_denial_is_what_the_store_said),
		cmocka_unit_test(what_is_no_denial),
		cmocka_unit_test(who_carries_over_has_no_hope),
		cmocka_unit_test(what_comes_dead_is_slept_over),
		cmocka_unit_test(who_may_have_forgotten_keeps_all_out),
		cmocka_unit_test(what_was_for_more_goes_back),
		cmocka_unit_test(idle_units_go_back_after_an_eighth),
		cmocka_unit_test(what_went_back_in_vain_is_kept_for_longer),
		cmocka_unit_test(what_was_not_missed_is_not_kept_for_longer),
		cmocka_unit_test(nobody_is_patient_where_there_is_too_little),
		cmocka_unit_test(a_long_window_knows_no_longer_patience),
		cmocka_unit_test(units_ahead_are_claimed_after_an_eighth),
		cmocka_unit_test(what_is_spent_from_now_and_then_stays),
		cmocka_unit_test(what_runs_out_is_asked_for_ahead),
		cmocka_unit_test(an_ask_ahead_is_worth_a_look),
		cmocka_unit_test(units_ahead_that_are_idle_are_claimed),
		cmocka_unit_test(units_ahead_that_are_spent_are_asked_for),
		cmocka_unit_test(who_was_refused_is_asked_for_again),
		cmocka_unit_test(nodes_that_share_much_ask_as_soon_as_a_few),
		cmocka_unit_test(who_has_some_in_hand_is_asked_for_again),
		cmocka_unit_test(nobody_is_asked_for_in_vain),
		cmocka_unit_test(units_and_hope_are_apart),
		cmocka_unit_test(looks_by_lot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
