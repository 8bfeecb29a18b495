/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pacer_test.c -- calls spread evenly, after a burst that is earned back when idle.
 *
 * The predecessor leaks for the time since the last call, whether or not anything was
 * queued; here only idle time leaks (PACER-3).  Where its answer differs, the row says so.
 * Where a vector gives only the delay, the other columns are worked out by hand.
 */
#include "tests/unit/vectors.h"

/* Ten a second, which accepts waits up to 9.9 s: its limit is burst + 100. */
static struct gale_rule pace(uint64_t burst)
{
	struct gale_rule rule = gale_pacer(10, SEC(1), burst);

	rule.max_wait_us = MS(9900);
	return rule;
}

static struct gale_rule limit(uint64_t burst)
{
	return gale_pacer_limit(10, SEC(1), burst);
}

/* ---- Pacing: vectors ------------------------------------------------------------- */

static void an_idle_pacer_lets_a_call_through(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 100, 99, MS(100)),
		ALLOW(T0 + MS(1234), 1, 100, 99, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(pace(0), rows);
}

static void each_call_waits_for_the_one_before(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 100, 99, MS(100)),
		DELAY(T0 + MS(10), 1, 100, 98, MS(190), NS_OF_MS(90)),
		DELAY(T0 + MS(20), 1, 100, 97, MS(280), NS_OF_MS(180)),
		DELAY(T0 + MS(30), 1, 100, 96, MS(370), NS_OF_MS(270)),
		ALLOW(T0 + MS(1264), 1, 100, 99, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(pace(0), rows);
}

static void simultaneous_calls_are_spread(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 100, 99, MS(100)),
		DELAY(T0, 1, 100, 98, MS(200), NS_OF_MS(100)),
		DELAY(T0, 1, 100, 97, MS(300), NS_OF_MS(200)),
	};

	(void)state;
	EXPECT_FRESH(pace(0), rows);
}

static void a_burst_of_two_and_one_place_go_at_once(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 102, 101, MS(200)),
		ALLOW(T0, 1, 102, 100, MS(400)),
		ALLOW(T0, 1, 102, 99, MS(500)),
		DELAY(T0 + MS(10), 1, 102, 98, MS(590), NS_OF_MS(90)),
		DELAY(T0 + MS(20), 1, 102, 97, MS(680), NS_OF_MS(180)),
		ALLOW(T0 + MS(1254), 1, 102, 101, MS(200)),
		ALLOW(T0 + MS(1254), 1, 102, 100, MS(400)),
		ALLOW(T0 + MS(1254), 1, 102, 99, MS(500)),
	};

	(void)state;
	EXPECT_FRESH(pace(2), rows);
}

static void a_cost_books_that_many_places(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 5, 100, 95, MS(500)),
		DELAY(T0, 2, 100, 93, MS(700), NS_OF_MS(500)),
		DELAY(T0, 1, 100, 92, MS(800), NS_OF_MS(700)),
		ALLOW(T0 + MS(800), 3, 100, 97, MS(300)),
	};

	(void)state;
	EXPECT_FRESH(pace(0), rows);
}

/* The delays are the predecessor's, though its bucket holds 1.5 and 0 before the fifth
 * and the sixth call, and this one 3 and 0: only 200 ms of the 500 were idle. */
static void costs_fill_the_burst_and_then_book(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 2, 104, 102, MS(400)),
		ALLOW(T0, 2, 104, 100, MS(800)),
		ALLOW(T0, 2, 104, 98, MS(1000)), /* books 200 ms */
		DELAY(T0, 1, 104, 97, MS(1100), NS_OF_MS(200)),
		ALLOW(T0 + MS(500), 2, 104, 98, MS(1000)),
		ALLOW(T0 + MS(1500), 4, 104, 100, MS(800)),
		ALLOW(T0 + MS(1500), 1, 104, 99, MS(900)),
	};

	(void)state;
	EXPECT_FRESH(pace(4), rows);
}

static void a_cost_above_the_burst_goes_at_once_when_idle(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 10, 104, 90, MS(1800)),
		DELAY(T0, 1, 104, 89, MS(1900), NS_OF_MS(1000)),
	};

	(void)state;
	EXPECT_FRESH(pace(4), rows);
}

static void at_full_allowance_idle_time_earns_at_the_rate(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 103, 102, MS(100)),
		ALLOW(T0, 1, 103, 101, MS(200)),
		ALLOW(T0, 1, 103, 100, MS(300)),
		ALLOW(T0, 1, 103, 99, MS(400)),
		ALLOW(T0 + MS(100), 1, 103, 99, MS(400)),
		ALLOW(T0 + MS(200), 1, 103, 99, MS(400)),
		ALLOW(T0 + MS(500), 1, 103, 101, MS(200)),
		ALLOW(T0 + MS(500), 1, 103, 100, MS(300)),
		ALLOW(T0 + MS(500), 1, 103, 99, MS(400)),
	};
	struct gale_rule rule = pace(3);

	(void)state;
	rule.allowance_permille = 1000;
	EXPECT_FRESH(rule, rows);
}

static void at_half_allowance_idle_time_earns_at_half_the_rate(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 103, 102, MS(200)),
		ALLOW(T0, 1, 103, 101, MS(400)),
		ALLOW(T0, 1, 103, 100, MS(600)),
		ALLOW(T0, 1, 103, 99, MS(700)),
		ALLOW(T0 + MS(100), 1, 103, 99, MS(700)),
		ALLOW(T0 + MS(200), 1, 103, 99, MS(700)),
		ALLOW(T0 + MS(500), 1, 103, 100, MS(600)),
		ALLOW(T0 + MS(500), 1, 103, 99, MS(700)),
		DELAY(T0 + MS(500), 1, 103, 98, MS(800), NS_OF_MS(100)),
	};

	(void)state;
	EXPECT_FRESH(pace(3), rows);
}

/* ---- Limiting: vectors ----------------------------------------------------------- */

/* The predecessor's delays of refused calls are retries here. */
static void a_limit_refuses_what_a_pacer_would_delay(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 1, 0, MS(100)),
		DENY(T0 + MS(10), 1, 1, 0, MS(90), MS(90)),
		DENY(T0 + MS(10), 1, 1, 0, MS(90), MS(90)),
		DENY(T0 + MS(20), 1, 1, 0, MS(80), MS(80)),
		DENY(T0 + MS(99), 1, 1, 0, MS(1), MS(1)),
		ALLOW(T0 + MS(101), 1, 1, 0, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(limit(0), rows);
}

static void a_limit_without_burst_passes_one_per_interval(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 1, 0, MS(100)),
		ALLOW(T0 + MS(100), 1, 1, 0, MS(100)),
		DENY(T0 + MS(100), 1, 1, 0, MS(100), MS(100)),
		DENY(T0 + MS(100), 1, 1, 0, MS(100), MS(100)),
		ALLOW(T0 + MS(200), 1, 1, 0, MS(100)),
	};

	(void)state;
	EXPECT_FRESH(limit(0), rows);
}

static void a_limit_and_a_pacer_share_their_state(void **state)
{
	static const struct row limited[] = {
		ALLOW(T0, 1, 3, 2, MS(100)),
		ALLOW(T0, 1, 3, 1, MS(200)),
		ALLOW(T0, 1, 3, 0, MS(300)),
		DENY(T0, 1, 3, 0, MS(300), MS(100)),
	};
	static const struct row paced[] = {
		DELAY(T0 + MS(10), 1, 102, 98, MS(590), NS_OF_MS(90)),
		ALLOW(T0 + MS(1244), 1, 102, 101, MS(200)),
	};
	struct key key;

	(void)state;
	key_open(&key, limit(2));
	EXPECT_ROWS(&key, limited);
	key_turn(&key, pace(2));
	EXPECT_ROWS(&key, paced);
}

/* At 1001 ms the predecessor lets the call through: it leaked ten units while its queue
 * was full, so that the burst came on top of the rate. */
static void queued_time_earns_no_burst(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 10, 5, 0, MS(1400)),
		DENY(T0, 1, 5, 0, MS(1400), MS(1000)),
		ALLOW(T0 + MS(1000), 1, 5, 0, MS(500)),
		DENY(T0 + MS(1001), 1, 5, 0, MS(499),
		     MS(99)), /* the predecessor: allowed */
		ALLOW(T0 + MS(1100), 1, 5, 0, MS(500)),
	};

	(void)state;
	EXPECT_FRESH(limit(4), rows);
}

/* ---- Totals: PACER-1, PACER-2 and PACER-3 together ------------------------------- */

/* How many of calls units get a place before the end. */
static uint64_t places_before(struct key *key, uint64_t now_us, uint64_t calls,
                              uint64_t end_us)
{
	uint64_t places = 0;

	for (uint64_t i = 0; i < calls; i++) {
		struct gale_answer answer = key_step(key, now_us, 1);

		places += answer.verdict == GALE_ALLOW &&
		          now_us * 1000 + answer.delay_ns < end_us * 1000;
	}
	return places;
}

/* The predecessor books 900: 15 a second at a rate of 10. */
static void pacing_books_the_rate_and_one_burst(void **state)
{
	struct key key;
	uint64_t places = 0;

	(void)state;
	key_open(&key, gale_pacer(10, SEC(1), 4));
	for (uint64_t now = 0; now < SEC(60); now += MS(800))
		places += places_before(&key, now, 12, SEC(60));
	assert_int_equal(places, 4 + 10 * 60);
}

static void limiting_admits_the_rate_and_one_burst(void **state)
{
	struct key key;
	uint64_t admitted = 0;

	(void)state;
	key_open(&key, limit(10));
	for (uint64_t now = 0; now < SEC(60); now += MS(10))
		admitted += key_drain(&key, now, 2);
	assert_int_equal(admitted, 10 + 10 * 60);
}

/* Ten calls and one of cost ten, each second.  The predecessor admits all: 1200. */
static void limiting_admits_no_burst_while_a_large_call_is_paid_off(void **state)
{
	struct key key;
	uint64_t admitted = 0;

	(void)state;
	key_open(&key, limit(10));
	for (uint64_t now = 0; now < SEC(60); now += SEC(1)) {
		admitted += key_drain(&key, now, 10);
		if (key_step(&key, now, 10).verdict == GALE_ALLOW)
			admitted += 10;
	}
	assert_true(admitted <= 10 + 10 * 60 + 1);
	assert_int_equal(admitted,
	                 20 + 1 + 10 * 58); /* the large call, once, is paid off */
}

static void limiting_twelve_calls_each_800_ms_keeps_the_rate(void **state)
{
	struct key key;
	uint64_t admitted = 0;

	(void)state;
	key_open(&key, limit(10));
	for (uint64_t now = 0; now < SEC(60); now += MS(800))
		admitted += key_drain(&key, now, 12);
	assert_true(admitted <= 10 + 10 * 60 + 1);
	assert_int_equal(admitted, 603);
}

/* ---- Exact rates ----------------------------------------------------------------- */

/* PACER-1: call number i waits i / rate: to the nanosecond in the delay, exactly in the
 * slot. */
static void expect_even_places(uint64_t rate)
{
	struct key key;

	key_open(&key, gale_pacer(rate, SEC(1), 0));
	for (uint64_t i = 0; i < 1000; i++) {
		struct gale_answer answer = key_step(&key, T0, 1);

		assert_int_equal(answer.delay_ns, (i * 1000000000 + rate - 1) / rate);
		assert_int_equal(answer.slot.us, T0 + i * 1000000 / rate);
		assert_int_equal(answer.slot.part, i * 1000000 % rate);
	}
}

/* The predecessor keeps 14 digits: 3000 becomes 3333, 7000 to 19,000 become 10,000, and
 * from 20,000 on everything goes at once. */
static void a_thousand_calls_at_once_are_spread_exactly(void **state)
{
	static const uint64_t rates[] = { 3000,  7000,  9999,    15000,
		                          19000, 20000, 1000000, 1000000000 };

	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++)
		expect_even_places(rates[i]);
}

/* ---- Waits ----------------------------------------------------------------------- */

static void a_wait_beyond_the_longest_is_refused_at_once(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 1, 3, 2, MS(100)),
		DELAY(T0, 1, 3, 1, MS(200), NS_OF_MS(100)),
		DELAY(T0, 1, 3, 0, MS(300), NS_OF_MS(200)),
		DENY(T0, 1, 3, 0, MS(300), MS(50)),
		DENY(T0, 5, 3, 0, MS(300), MS(50)),
		DENY(T0 + MS(49), 1, 3, 0, MS(251), MS(1)),
		DELAY(T0 + MS(50), 1, 3, 0, MS(350), NS_OF_MS(250)),
	};
	struct gale_rule rule = pace(0);

	(void)state;
	rule.max_wait_us = MS(250);
	EXPECT_FRESH(rule, rows);
}

/* Units of burst that are left do not let a larger cost through. */
static void a_cost_above_what_is_left_of_the_burst_waits(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 5, 5, 0, MS(900)),
		ALLOW(T0 + MS(500), 1, 5, 0, MS(500)),
		ALLOW(T0 + MS(700), 3, 5, 0, MS(700)),
		DENY(T0 + MS(700), 4, 5, 0, MS(700), MS(300)),
		DENY(T0 + MS(700), 1, 5, 0, MS(700), MS(300)),
	};

	(void)state;
	EXPECT_FRESH(limit(4), rows);
}

/* Rounded to milliseconds, as the predecessor does, a delay ends up to 0.5 ms early. */
static void a_delay_is_never_too_short(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 4, 3, 334),          DELAY(0, 1, 4, 2, 667, 333334),
		DELAY(0, 1, 4, 1, 1000, 666667), DELAY(0, 1, 4, 0, 1334, NS_OF_MS(1)),
		DENY(1, 1, 4, 0, 1333, 333),
	};
	struct gale_rule rule = gale_pacer(3000, SEC(1), 0);

	(void)state;
	rule.max_wait_us = 1000;
	EXPECT_FRESH(rule, rows);
}

/* RULE-1; the predecessor's refusals prolong the life of the key. */
static void a_refusal_changes_neither_the_state_nor_its_expiry(void **state)
{
	struct key key;
	uint64_t expires;

	(void)state;
	key_open(&key, limit(2));
	assert_int_equal(key_drain(&key, T0, 4), 3);
	expires = rule_expires(&key.rule, key.words);
	assert_int_equal(expires, T0 + MS(100) + MS(200));
	for (uint64_t late = 0; late < MS(100); late += MS(1))
		assert_int_equal(key_drain(&key, T0 + late, 3), 0);
	assert_int_equal(rule_expires(&key.rule, key.words), expires);
}

/* More than 2^50 us of work: no cost is refused for good before that. */
static void a_cost_beyond_the_longest_span_can_never_pass(void **state)
{
	static const struct row rows[] = {
		DENY(0, 129, 4, 4, 0, GALE_NEVER),
		ALLOW(0, 3, 4, 1, 26388279066624),
		DENY(0, 129, 4, 1, 26388279066624, GALE_NEVER),
		ALLOW(0, 128, 4, 0, 1152288185909248),
		DENY(1, 1, 4, 0, 1152288185909247, GALE_SPAN_MAX_US - 1),
		DENY(1, 129, 4, 0, 1152288185909247, GALE_NEVER),
	};

	(void)state;
	/* RULE-5 */
	EXPECT_FRESH(gale_pacer_limit(1, GALE_PACE_PERIOD_MAX_US, 3), rows);
}

/* ---- Peek and forecast ----------------------------------------------------------- */

static void a_peek_tells_the_wait_and_books_nothing(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, pace(2));
	EXPECT_PEEK(&key, ALLOW(T0, 1, 102, 102, 0));
	assert_int_equal(key_drain(&key, T0, 4), 4);
	EXPECT_PEEK(&key, DELAY(T0, 1, 102, 98, MS(600), NS_OF_MS(200)));
	EXPECT_PEEK(&key, DELAY(T0 + MS(150), 1, 102, 99, MS(450), NS_OF_MS(50)));
	EXPECT_PEEK(&key, ALLOW(T0 + MS(300), 1, 102, 100, MS(300)));
	EXPECT_PEEK(&key, ALLOW(T0 + MS(600), 1, 102, 102, 0));
	key_turn(&key, limit(2));
	EXPECT_PEEK(&key, DENY(T0 + MS(150), 1, 3, 0, MS(250), MS(50)));
	EXPECT_PEEK(&key, ALLOW(T0 + MS(200), 1, 3, 1, MS(200)));
	EXPECT_PEEK(&key, ALLOW(T0 + MS(350), 1, 3, 2, MS(50)));
}

static void a_forecast_knows_the_queue_and_then_the_burst(void **state)
{
	struct key key;

	(void)state;
	/* Two pairs from the burst, and a third that is due at once. */
	expect_forecast_of_five(__func__, limit(4), 3);
	key_open(&key, limit(3));
	EXPECT_FORECAST(&key, T0, 2, { 2, 0, 0 });
	assert_int_equal(key_drain(&key, T0, 4), 4);
	EXPECT_FORECAST(&key, T0, 1, { 0, MS(100), MS(400) });
	EXPECT_FORECAST(&key, T0 + MS(100), 1, { 1, MS(100), MS(300) });
	EXPECT_FORECAST(&key, T0 + MS(150), 1, { 1, MS(50), MS(250) });
	EXPECT_FORECAST(&key, T0 + MS(230), 1, { 2, MS(70), MS(170) });
	/* More than the burst, but the place at once is free: it books the time it takes. */
	EXPECT_FORECAST(&key, T0 + MS(399), 4, { 1, MS(1), MS(1) });
	EXPECT_FORECAST(&key, T0 + MS(400), 4, { 1, 0, 0 });
	key_turn(&key, pace(3));
	EXPECT_FORECAST(&key, T0 + MS(150), 1, { 100, MS(150), MS(550) });
	EXPECT_FORECAST(&key, T0 + MS(350), 7, { 15, MS(150), MS(350) });
}

/* ---- Time that runs backward (RULE-2; the predecessor's W-3) --------------------- */

/* Steps see the store's clock, so that no two callers differ; if that one steps back,
 * a call waits for the place that it would have had anyway. */
static void a_clock_that_steps_back_waits_longer(void **state)
{
	static const struct row behind[] = {
		ALLOW(T0, 1, 100, 99, MS(100)),
		DELAY(T0, 1, 100, 98, MS(200), NS_OF_MS(100)),
		DELAY(T0 - MS(500), 1, 100, 92, MS(800), NS_OF_MS(700)),
	};
	static const struct row ahead[] = {
		ALLOW(T0 + MS(2000), 1, 100, 99, MS(100)),
		DELAY(T0, 1, 100, 78, MS(2200), NS_OF_MS(2100)),
		DELAY(T0 + MS(2000), 1, 100, 97, MS(300), NS_OF_MS(200)),
	};

	(void)state;
	EXPECT_FRESH(pace(0), behind);
	EXPECT_FRESH(pace(0), ahead);
}

/* PACER-3 */
static void an_instant_leaks_only_once(void **state)
{
	static const struct row rows[] = {
		ALLOW(T0, 4, 104, 100, MS(800)),
		ALLOW(T0 + MS(400), 1, 104, 101, MS(600)),
		ALLOW(T0, 1, 104, 96, MS(1200)),
		ALLOW(T0 + MS(400), 1, 104, 99, MS(900)),
		DELAY(T0 + MS(200), 1, 104, 96, MS(1200), NS_OF_MS(300)),
		DELAY(T0 + MS(400), 1, 104, 97, MS(1100), NS_OF_MS(200)),
		DELAY(T0 + MS(600), 1, 104, 98, MS(1000), NS_OF_MS(100)),
	};

	(void)state;
	EXPECT_FRESH(pace(4), rows);
}

/* 21 at first, and again 2.5 s later; with the caller's clock, as in the predecessor,
 * both are the same instant, and going back and forth brings nothing more. */
static void alternating_clocks_earn_the_skew_once(void **state)
{
	struct key key;
	uint64_t admitted;

	(void)state;
	key_open(&key, limit(20));
	admitted = key_drain(&key, T0, 50);
	assert_int_equal(admitted, 21);
	admitted += key_alternate(&key, T0 + MS(2500), T0, 200);
	assert_int_equal(admitted, 42);
	assert_true(admitted <= 20 + 10 * 5 / 2 + 1);
}

static void alternating_clocks_around_a_second_admit_one_burst(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, limit(9));
	assert_int_equal(key_alternate(&key, MS(999), MS(1001), 200), 10);
	key_open(&key, limit(9));
	assert_int_equal(key_alternate(&key, MS(1001), MS(999), 200), 10);
}

/* ---- Giving places back ---------------------------------------------------------- */

/* Asks for cost at T0 + now, and must get the place at T0 + place. */
static struct gale_slot expect_place(struct key *key, uint64_t now_ms, uint64_t cost,
                                     uint64_t place_ms)
{
	struct gale_answer answer = key_step(key, T0 + MS(now_ms), cost);

	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(answer.slot.us, T0 + MS(place_ms));
	assert_int_equal(answer.slot.part, 0);
	assert_int_equal(answer.delay_ns, NS_OF_MS(place_ms - now_ms));
	return answer.slot;
}

/* As if place were a slot that an answer named. */
static bool cancel_at(struct key *key, uint64_t now_ms, uint64_t cost,
                      uint64_t place_ms)
{
	return key_cancel(key, T0 + MS(now_ms), cost, slot_at(T0 + MS(place_ms)));
}

/* count calls of cost 1 at T0. */
static void key_book(struct key *key, uint64_t count)
{
	key_open(key, pace(0));
	for (uint64_t i = 0; i < count; i++)
		expect_place(key, 0, 1, 100 * i);
}

static void the_last_place_given_back_is_the_next_to_go(void **state)
{
	struct gale_slot slot;
	struct key key;

	(void)state;
	key_book(&key, 4);
	slot = expect_place(&key, 0, 1, 400);
	assert_true(key_cancel(&key, T0, 1, slot));
	expect_place(&key, 0, 1, 400);
	assert_true(cancel_at(&key, 0, 1, 400));
	assert_true(cancel_at(&key, 0, 1, 300));
	assert_true(cancel_at(&key, 0, 2, 100));
	expect_place(&key, 0, 3, 100);
	expect_place(&key, 0, 1, 400);
}

/* An abandoned booking of the predecessor is never returned. */
static void all_places_given_back_leave_the_pacer_as_it_was(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	for (uint64_t i = 5; i-- > 0;)
		assert_true(cancel_at(&key, 0, 1, 100 * i));
	assert_int_equal(rule_expires(&key.rule, key.words), T0);
	expect_place(&key, 0, 1, 0);
}

static void a_gap_goes_to_the_next_call_that_fits(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	assert_true(cancel_at(&key, 0, 1, 200));
	expect_place(&key, 0, 2, 500); /* too long for the gap */
	expect_place(&key, 0, 1, 200);
	expect_place(&key, 0, 1, 700); /* the gap is gone */
}

static void a_gap_is_used_from_its_front(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, pace(0));
	expect_place(&key, 0, 1, 0);
	expect_place(&key, 0, 4, 100);
	expect_place(&key, 0, 1, 500);
	assert_true(cancel_at(&key, 0, 4, 100));
	expect_place(&key, 0, 1, 100);
	expect_place(&key, 0, 2, 200);
	expect_place(&key, 0, 2, 600); /* only one is left of the gap */
	expect_place(&key, 0, 1, 400);
	expect_place(&key, 0, 1, 800);
}

static void the_earliest_gap_that_fits_is_taken(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 10);
	assert_true(cancel_at(&key, 0, 2, 600));
	assert_true(cancel_at(&key, 0, 1, 400));
	assert_true(cancel_at(&key, 0, 1, 200));
	expect_place(&key, 0, 2, 600);
	expect_place(&key, 0, 1, 200);
	expect_place(&key, 0, 1, 400);
	expect_place(&key, 0, 1, 1000);
}

static void a_gap_that_has_begun_is_not_used(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	assert_true(cancel_at(&key, 0, 2, 100));
	expect_place(&key, 101, 1, 500);
	expect_place(&key, 100, 1, 100); /* just not begun */
	expect_place(&key, 100, 1, 200);
}

/* What remains does not count gaps; but a call may have them. */
static void a_gap_is_a_bonus(void **state)
{
	static const struct row full[] = {
		DENY(T0, 1, 3, 0, MS(300), MS(50)),
	};
	static const struct row gap[] = {
		DENY(T0, 2, 3, 0, MS(300), MS(50)),
		DELAY(T0, 1, 3, 0, MS(300), NS_OF_MS(100)),
		DENY(T0, 1, 3, 0, MS(300), MS(50)),
	};
	struct gale_rule rule = pace(0);
	struct key key;

	(void)state;
	rule.max_wait_us = MS(250);
	key_open(&key, rule);
	assert_int_equal(key_drain(&key, T0, 3), 3);
	EXPECT_ROWS(&key, full);
	assert_true(cancel_at(&key, 0, 1, 100));
	EXPECT_PEEK(&key, DELAY(T0, 1, 3, 0, MS(300), NS_OF_MS(100)));
	EXPECT_ROWS(&key, gap);
}

static void a_place_is_given_back_once(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	assert_true(cancel_at(&key, 0, 1, 200));
	assert_false(cancel_at(&key, 0, 1, 200));
	assert_true(cancel_at(&key, 0, 1, 400));
	assert_false(cancel_at(&key, 0, 1, 400));
	expect_place(&key, 0, 1, 200);
	expect_place(&key, 0, 1, 400);
	expect_place(&key, 0, 1, 500);
}

/* PACER-4: else two calls could later have one place. */
static void what_overlaps_a_gap_is_refused(void **state)
{
	struct key key, before;

	(void)state;
	key_book(&key, 6);
	assert_true(cancel_at(&key, 0, 2, 200));
	before = key;
	assert_false(cancel_at(&key, 0, 1, 150));
	assert_false(cancel_at(&key, 0, 1, 250));
	assert_false(cancel_at(&key, 0, 1, 350));
	assert_false(cancel_at(&key, 0, 4, 100));
	assert_false(cancel_at(&key, 0, 5, 100)); /* up to the end */
	assert_memory_equal(&before, &key, sizeof(key));
	assert_true(cancel_at(&key, 0, 1, 100)); /* touches, and does not overlap */
	assert_true(cancel_at(&key, 0, 1, 400));
}

static void what_is_past_or_was_never_booked_is_refused(void **state)
{
	struct key key, before;

	(void)state;
	key_book(&key, 5);
	before = key;
	assert_false(cancel_at(&key, 101, 1, 100));
	assert_false(cancel_at(&key, 450, 1, 400));
	assert_false(cancel_at(&key, 0, 1, 500));
	assert_false(cancel_at(&key, 0, 2, 400));
	assert_false(cancel_at(&key, 0, GALE_UNITS_MAX, 100));
	assert_false(key_cancel(&key, T0, 1, slot_at(0)));
	assert_false(key_cancel(&key, T0, 1, slot_at(GALE_UNITS_MAX)));
	assert_false(key_cancel(&key, T0, 1, slot_at(UINT64_MAX)));
	assert_false(key_cancel(&key, T0, 1, (struct gale_slot){ T0 + MS(100), 10 }));
	assert_memory_equal(&before, &key, sizeof(key));
	assert_true(cancel_at(&key, 100, 1, 100)); /* just not past */
}

/* Cut to 64 bits, this cost would take as long as the place. */
static void a_cost_beyond_the_longest_span_was_never_booked(void **state)
{
	struct gale_answer answer;
	struct key key;

	(void)state;
	key_open(&key, gale_pacer(1, GALE_PACE_PERIOD_MAX_US, 0));
	assert_int_equal(key_drain(&key, T0, 1), 1);
	answer = key_step(&key, T0, 1);
	assert_false(key_cancel(&key, T0, (1 << 21) + 1, answer.slot));
	assert_true(key_cancel(&key, T0, 1, answer.slot));
}

/* Not even a gap that is over is forgotten. */
static void a_refusal_to_give_back_changes_nothing(void **state)
{
	struct key key, before;

	(void)state;
	key_book(&key, 6);
	assert_true(cancel_at(&key, 0, 1, 100));
	before = key;
	assert_false(cancel_at(&key, 250, 1, 200));
	assert_false(cancel_at(&key, 250, 9, 300));
	assert_memory_equal(&before, &key, sizeof(key));
}

static void a_call_that_booked_nothing_has_nothing_to_give_back(void **state)
{
	struct gale_answer answer;
	struct key key;

	(void)state;
	key_open(&key, pace(2));
	answer = key_step(&key, T0, 1);
	assert_int_equal(answer.slot.us, 0);
	assert_int_equal(answer.slot.part, 0);
	assert_false(key_cancel(&key, T0, 1, answer.slot));
}

static void the_end_goes_back_over_a_gap(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	assert_true(cancel_at(&key, 0, 2, 200));
	assert_true(cancel_at(&key, 0, 1, 400));
	assert_int_equal(rule_expires(&key.rule, key.words), T0 + MS(200));
	expect_place(&key, 0, 5, 200);
	expect_place(&key, 0, 1, 700);
}

static void the_end_goes_back_over_one_gap_after_the_other(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 6);
	assert_true(cancel_at(&key, 0, 1, 300));
	assert_true(cancel_at(&key, 0, 1, 400));
	assert_true(cancel_at(&key, 0, 1, 100));
	assert_true(cancel_at(&key, 0, 1, 200));
	assert_true(cancel_at(&key, 0, 1, 500));
	assert_int_equal(rule_expires(&key.rule, key.words), T0 + MS(100));
	expect_place(&key, 0, 9, 100);
	expect_place(&key, 0, 1, 1000);
}

/* Booking again in a time that has passed would be going back in time. */
static void the_end_does_not_go_back_over_a_gap_that_has_begun(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 5);
	assert_true(cancel_at(&key, 0, 2, 200));
	assert_true(cancel_at(&key, 201, 1, 400));
	expect_place(&key, 201, 1, 400);
	expect_place(&key, 201, 1, 500);
}

/* Costs 1, 2, 1, 2, ... at 0, 100, 300, 400, 600, 700, 900, 1000, 1200, 1300, 1500. */
static void key_book_ones_and_twos(struct key *key)
{
	key_open(key, pace(0));
	for (uint64_t i = 0; i < 5; i++) {
		expect_place(key, 0, 1, 300 * i);
		expect_place(key, 0, 2, 300 * i + 100);
	}
	expect_place(key, 0, 1, 1500);
}

static void of_five_gaps_the_shortest_is_lost(void **state)
{
	struct key key;

	(void)state;
	key_book_ones_and_twos(&key);
	assert_true(cancel_at(&key, 0, 2, 100));
	assert_true(cancel_at(&key, 0, 2, 400));
	assert_true(cancel_at(&key, 0, 1, 900));
	assert_true(cancel_at(&key, 0, 2, 1300));
	assert_true(cancel_at(&key, 0, 2, 700)); /* 900 is lost */
	expect_place(&key, 0, 2, 100);
	expect_place(&key, 0, 2, 400);
	expect_place(&key, 0, 1, 700);
	expect_place(&key, 0, 1, 800);
	expect_place(&key, 0, 2, 1300);
	expect_place(&key, 0, 1, 1600);
}

static void of_five_gaps_the_new_one_may_be_the_one_that_is_lost(void **state)
{
	struct key key;

	(void)state;
	key_book_ones_and_twos(&key);
	assert_true(cancel_at(&key, 0, 2, 100));
	assert_true(cancel_at(&key, 0, 2, 400));
	assert_true(cancel_at(&key, 0, 2, 700));
	assert_true(cancel_at(&key, 0, 2, 1000));
	assert_true(cancel_at(&key, 0, 1, 300)); /* lost */
	expect_place(&key, 0, 1, 100);
	expect_place(&key, 0, 1, 200);
	expect_place(&key, 0, 2, 400);
	expect_place(&key, 0, 2, 700);
	expect_place(&key, 0, 2, 1000);
	expect_place(&key, 0, 1, 1600);
}

static void of_five_equal_gaps_the_latest_is_lost(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 11);
	assert_true(cancel_at(&key, 0, 1, 900));
	for (uint64_t i = 1; i <= 7; i += 2)
		assert_true(cancel_at(&key, 0, 1, 100 * i));
	for (uint64_t i = 1; i <= 7; i += 2)
		expect_place(&key, 0, 1, 100 * i);
	expect_place(&key, 0, 1, 1100);
}

static void gaps_that_are_over_make_room_for_others(void **state)
{
	struct key key;

	(void)state;
	key_book(&key, 13);
	for (uint64_t i = 1; i <= 7; i += 2)
		assert_true(cancel_at(&key, 0, 1, 100 * i));
	assert_true(cancel_at(&key, 400, 1, 900)); /* 100 and 300 are over */
	assert_true(cancel_at(&key, 400, 1, 1100));
	for (uint64_t i = 5; i <= 11; i += 2)
		expect_place(&key, 400, 1, 100 * i);
	expect_place(&key, 400, 1, 1300);
}

/* Thirds of a second: a gap is exactly as long as what was booked. */
static void gaps_that_are_no_whole_number_are_exact(void **state)
{
	struct gale_slot slots[7];
	struct key key;

	(void)state;
	key_open(&key, gale_pacer(3, SEC(1), 0));
	for (size_t i = 0; i < COUNT(slots); i++)
		slots[i] = key_step(&key, T0, 1).slot;
	for (size_t i = 1; i <= 5; i += 2)
		assert_true(key_cancel(&key, T0, 1, slots[i]));
	for (size_t i = 1; i <= 5; i += 2)
		assert_true(slot_equal(key_step(&key, T0, 1).slot, slots[i]));
	assert_int_equal(key_step(&key, T0, 1).slot.us, T0 + 2333333);
	assert_true(key_cancel(&key, T0, 2, slots[1]));
	assert_true(slot_equal(key_step(&key, T0, 2).slot, slots[1]));
}

/* The burst that was spent stays spent: what comes back is the place. */
static void giving_a_place_back_gives_no_burst_back(void **state)
{
	struct key key;

	(void)state;
	key_open(&key, limit(2));
	assert_int_equal(key_drain(&key, T0, 3), 3);
	assert_int_equal(key_drain(&key, T0, 1), 0);
	assert_true(cancel_at(&key, 0, 1, 0));
	assert_int_equal(key_drain(&key, T0, 2), 1);
}

static void other_rules_have_nothing_to_give_back(void **state)
{
	struct gale_rule rules[] = {
		gale_fixed_window(5, SEC(1)),    gale_sliding_window(5, SEC(1), 10),
		gale_sliding_log(5, SEC(1)),     gale_gcra(5, SEC(1), 5),
		gale_token_bucket(5, 5, SEC(1)), gale_quota_daily(5, 0),
		gale_token_budget(5, SEC(1)),
	};
	struct key key, before;

	(void)state;
	for (size_t i = 0; i < COUNT(rules); i++) {
		key_open(&key, rules[i]);
		assert_int_equal(key_drain(&key, T0, 3), 3);
		before = key;
		assert_false(cancel_at(&key, 0, 1, 0));
		assert_false(cancel_at(&key, 0, 1, 200));
		assert_memory_equal(&before, &key, sizeof(key));
	}
}

/* ---- Extremes -------------------------------------------------------------------- */

static void a_pacer_waits_for_as_long_as_it_takes(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 11258999069, 11258999068, 100000),
		DELAY(0, 1, 11258999069, 11258999067, 200000, NS_OF_MS(100)),
		DENY(0, GALE_UNITS_MAX, 11258999069, 11258999067, 200000, GALE_NEVER),
	};

	(void)state;
	EXPECT_FRESH(gale_pacer(10, SEC(1), 0), rows);
}

static void the_smallest_interval_is_far_below_a_nanosecond(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 1, 1),
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 2),
		DENY(0, 1, GALE_UNITS_MAX, 0, 2, 1),
		ALLOW(1, 1, GALE_UNITS_MAX, 0, 2),
		ALLOW(2, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 2),
		DENY(2, GALE_UNITS_MAX - 1, GALE_UNITS_MAX, 0, 2, 1),
	};

	(void)state;
	EXPECT_FRESH(gale_pacer_limit(GALE_UNITS_MAX, 1, GALE_UNITS_MAX), rows);
}

/* Idle time times rate has 105 bits here, and the water's denominator has 53. */
static void the_largest_rate_burst_and_period_are_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 1, GALE_PACE_PERIOD_MAX_US),
		ALLOW(1, 1, GALE_UNITS_MAX, 1023, GALE_PACE_PERIOD_MAX_US),
		ALLOW(1, GALE_UNITS_MAX, GALE_UNITS_MAX, 0, 17592186044416),
		ALLOW(8796093022209, 1, GALE_UNITS_MAX, 0, 8796093022209),
		ALLOW(INSTANT_MAX_US, 9007199254740986, GALE_UNITS_MAX, 6,
		      GALE_PACE_PERIOD_MAX_US),
		ALLOW(INSTANT_MAX_US + 1, GALE_UNITS_MAX, GALE_UNITS_MAX, 0,
		      17592186044416),
	};
	static const struct row slow[] = {
		ALLOW(0, GALE_UNITS_MAX, GALE_UNITS_MAX, 1, 1099511627776000),
		ALLOW(1, 1, GALE_UNITS_MAX, 8, 1099511627776000),
		ALLOW(1099511627777, 1, GALE_UNITS_MAX, 9007199254748,
		      1098412116148224),
		ALLOW(1099511627777, 1025, GALE_UNITS_MAX, 9007199253723,
		      1098412116148349),
		ALLOW(1099511627778, GALE_UNITS_MAX, GALE_UNITS_MAX, 0,
		      1100611139403776),
		ALLOW(INSTANT_MAX_US, GALE_UNITS_MAX, GALE_UNITS_MAX, 1,
		      1099511627776000),
	};
	struct gale_rule rule =
	    gale_pacer(GALE_UNITS_MAX, UINT64_C(1) << 40, GALE_UNITS_MAX);

	(void)state;
	EXPECT_FRESH(
	    gale_pacer_limit(GALE_UNITS_MAX, GALE_PACE_PERIOD_MAX_US, GALE_UNITS_MAX),
	    rows);
	rule.max_wait_us = 0;
	rule.allowance_permille = 1;
	EXPECT_FRESH(rule, slow);
}

static void the_largest_interval_is_exact(void **state)
{
	static const struct row rows[] = {
		ALLOW(0, 1, 3, 2, GALE_PACE_PERIOD_MAX_US),
		ALLOW(0, 1, 3, 1, 17592186044416),
		ALLOW(0, 1, 3, 0, 26388279066624),
		DENY(GALE_PACE_PERIOD_MAX_US - 1, 1, 3, 0, 17592186044417, 1),
		ALLOW(GALE_PACE_PERIOD_MAX_US, 1, 3, 0, 26388279066624),
		ALLOW(21990232555520, 1, 3, 0, 26388279066624),
		ALLOW(INSTANT_MAX_US, 128, 3, 0, 1143492092887040),
		DENY(INSTANT_MAX_US, 1, 3, 0, 1143492092887040, GALE_SPAN_MAX_US),
	};

	(void)state;
	EXPECT_FRESH(gale_pacer_limit(1, GALE_PACE_PERIOD_MAX_US, 2), rows);
}

static void an_instant_beyond_the_last_is_the_last(void **state)
{
	static const struct row rows[] = {
		ALLOW(INSTANT_MAX_US - 1, 1, 2, 1, 1000000),
		ALLOW(INSTANT_MAX_US, 1, 2, 0, 2000000),
		DENY(INSTANT_MAX_US + 1, 1, 2, 0, 2000000, 1000000),
		DENY(UINT64_MAX, 1, 2, 0, 2000000, 1000000),
	};

	(void)state;
	EXPECT_FRESH(gale_pacer_limit(1, SEC(1), 1), rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_pacer_lets_a_call_through),
		cmocka_unit_test(each_call_waits_for_the_one_before),
		cmocka_unit_test(simultaneous_calls_are_spread),
		cmocka_unit_test(a_burst_of_two_and_one_place_go_at_once),
		cmocka_unit_test(a_cost_books_that_many_places),
		cmocka_unit_test(costs_fill_the_burst_and_then_book),
		cmocka_unit_test(a_cost_above_the_burst_goes_at_once_when_idle),
		cmocka_unit_test(at_full_allowance_idle_time_earns_at_the_rate),
		cmocka_unit_test(at_half_allowance_idle_time_earns_at_half_the_rate),
		cmocka_unit_test(a_limit_refuses_what_a_pacer_would_delay),
		cmocka_unit_test(a_limit_without_burst_passes_one_per_interval),
		cmocka_unit_test(a_limit_and_a_pacer_share_their_state),
		cmocka_unit_test(queued_time_earns_no_burst),
		cmocka_unit_test(pacing_books_the_rate_and_one_burst),
		cmocka_unit_test(limiting_admits_the_rate_and_one_burst),
		cmocka_unit_test(
		    limiting_admits_no_burst_while_a_large_call_is_paid_off),
		cmocka_unit_test(limiting_twelve_calls_each_800_ms_keeps_the_rate),
		cmocka_unit_test(a_thousand_calls_at_once_are_spread_exactly),
		cmocka_unit_test(a_wait_beyond_the_longest_is_refused_at_once),
		cmocka_unit_test(a_cost_above_what_is_left_of_the_burst_waits),
		cmocka_unit_test(a_delay_is_never_too_short),
		cmocka_unit_test(a_refusal_changes_neither_the_state_nor_its_expiry),
		cmocka_unit_test(a_cost_beyond_the_longest_span_can_never_pass),
		cmocka_unit_test(a_peek_tells_the_wait_and_books_nothing),
		cmocka_unit_test(a_forecast_knows_the_queue_and_then_the_burst),
		cmocka_unit_test(a_clock_that_steps_back_waits_longer),
		cmocka_unit_test(an_instant_leaks_only_once),
		cmocka_unit_test(alternating_clocks_earn_the_skew_once),
		cmocka_unit_test(alternating_clocks_around_a_second_admit_one_burst),
		cmocka_unit_test(the_last_place_given_back_is_the_next_to_go),
		cmocka_unit_test(all_places_given_back_leave_the_pacer_as_it_was),
		cmocka_unit_test(a_gap_goes_to_the_next_call_that_fits),
		cmocka_unit_test(a_gap_is_used_from_its_front),
		cmocka_unit_test(the_earliest_gap_that_fits_is_taken),
		cmocka_unit_test(a_gap_that_has_begun_is_not_used),
		cmocka_unit_test(a_gap_is_a_bonus),
		cmocka_unit_test(a_place_is_given_back_once),
		cmocka_unit_test(what_overlaps_a_gap_is_refused),
		cmocka_unit_test(what_is_past_or_was_never_booked_is_refused),
		cmocka_unit_test(a_cost_beyond_the_longest_span_was_never_booked),
		cmocka_unit_test(a_refusal_to_give_back_changes_nothing),
		cmocka_unit_test(a_call_that_booked_nothing_has_nothing_to_give_back),
		cmocka_unit_test(the_end_goes_back_over_a_gap),
		cmocka_unit_test(the_end_goes_back_over_one_gap_after_the_other),
		cmocka_unit_test(the_end_does_not_go_back_over_a_gap_that_has_begun),
		cmocka_unit_test(of_five_gaps_the_shortest_is_lost),
		cmocka_unit_test(of_five_gaps_the_new_one_may_be_the_one_that_is_lost),
		cmocka_unit_test(of_five_equal_gaps_the_latest_is_lost),
		cmocka_unit_test(gaps_that_are_over_make_room_for_others),
		cmocka_unit_test(gaps_that_are_no_whole_number_are_exact),
		cmocka_unit_test(giving_a_place_back_gives_no_burst_back),
		cmocka_unit_test(other_rules_have_nothing_to_give_back),
		cmocka_unit_test(a_pacer_waits_for_as_long_as_it_takes),
		cmocka_unit_test(the_smallest_interval_is_far_below_a_nanosecond),
		cmocka_unit_test(the_largest_rate_burst_and_period_are_exact),
		cmocka_unit_test(the_largest_interval_is_exact),
		cmocka_unit_test(an_instant_beyond_the_last_is_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
