/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * set_rule_test.c -- gale_limiter_set_rule on a runtime in use, in every mode (law L15).
 *
 * The runtime is the test's to turn, on clocks that stand still.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include <gale/gale.h>

#include "tests/support/customs.h"
#include "tests/support/house.h"

#define MODES 3
#define FOREVER_US GALE_SECONDS(1)

static const enum gale_mode modes[MODES] = { GALE_STRICT, GALE_CACHED_DENY,
	                                     GALE_LEASED };

static void open_house(struct house *h, enum gale_mode mode, struct gale_rule rule)
{
	struct house_plan plan = { .rule = rule, .mode = mode, .shards = 1 };

	plan.turns = true;
	plan.still = true;
	house_open(h, &plan);
}

static void take_turns(struct house *h)
{
	for (int i = 0; i < 64; i++)
		(void)gale_turn(h->runtime);
}

static void set_rule(struct house *h, struct gale_rule rule)
{
	assert_int_equal(gale_limiter_set_rule(h->limiter, &rule), GALE_ERR_OK);
	take_turns(h);
}

static uint64_t passes(struct house *h, uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++)
		passed +=
		    gale_wait(h->seat, h->limiter, "k", 1, 1, FOREVER_US).verdict ==
		    GALE_ALLOW;
	return passed;
}

/* A denial that is remembered by the smaller limit is dropped: nobody is locked out. */
static void a_raised_limit_adds_what_it_is_larger_by(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct house h;

		open_house(&h, modes[i], gale_fixed_window(10, GALE_HOURS(1)));
		assert_int_equal(passes(&h, 30), 10);
		set_rule(&h, gale_fixed_window(25, GALE_HOURS(1)));
		assert_int_equal(passes(&h, 30), 15);
		assert_int_equal(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL).limit,
		                 25);
		assert_true(house_close(&h));
	}
}

/* What is lent already may be spent; then there is nothing more. */
static void a_lowered_limit_gives_no_fresh_budget(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct house h;
		uint64_t more;

		open_house(&h, modes[i], gale_fixed_window(20, GALE_HOURS(1)));
		assert_int_equal(passes(&h, 12), 12);
		set_rule(&h, gale_fixed_window(10, GALE_HOURS(1)));
		more = passes(&h, 40);
		assert_true(more <= (modes[i] == GALE_LEASED ? 8 : 0));
		assert_int_equal(passes(&h, 40), 0);
		assert_true(house_close(&h));
	}
}

/* What is in hand goes back first, so that it counts as what it is: not spent. */
static void a_meter_keeps_its_units_at_another_rate(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct house h;

		open_house(&h, modes[i], gale_gcra(10, GALE_HOURS(1), 10));
		assert_int_equal(passes(&h, 4), 4);
		set_rule(&h, gale_gcra(100, GALE_HOURS(1), 100));
		assert_int_equal(passes(&h, 200), 96);
		assert_true(house_close(&h));
	}
}

static void a_window_of_another_period_keeps_what_was_used(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct house h;

		open_house(&h, modes[i], gale_fixed_window(10, GALE_HOURS(1)));
		assert_int_equal(passes(&h, 6), 6);
		set_rule(&h, gale_fixed_window(10, GALE_HOURS(2)));
		assert_int_equal(passes(&h, 30), 4);
		assert_true(house_close(&h));
	}
}

/* ---- Two limiters of one name ----------------------------------------------------- */

static uint64_t passes_by(struct house *h, struct gale_limiter *limiter, uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++) {
		struct gale_answer answer =
		    gale_wait(h->seat, limiter, "k", 1, 1, FOREVER_US);

		assert_int_equal(answer.why, GALE_WHY_RULE);
		passed += answer.verdict == GALE_ALLOW;
	}
	return passed;
}

/* What the hour has used is known for as long as it lasts, whoever looks or is denied. */
static void a_shorter_window_in_which_nothing_passes_ends_no_longer_one(void **state)
{
	const struct gale_rule hour = gale_fixed_window(10, GALE_HOURS(1));
	const struct gale_rule minute = gale_fixed_window(3, GALE_MINUTES(1));

	(void)state;
	for (int looks = 0; looks < 2; looks++) {
		struct gale_limiter *other;
		struct gale_answer peeked;
		struct house h;

		open_house(&h, GALE_STRICT, hour);
		other = house_limiter(&h, "house", minute);
		assert_int_equal(passes_by(&h, h.limiter, 20), 10);
		if (looks) {
			assert_int_equal(
			    gale_peek(h.seat, other, "k", 1, FOREVER_US, &peeked),
			    GALE_ERR_OK);
			assert_int_equal(peeked.remaining, 0);
		} else {
			assert_int_equal(passes_by(&h, other, 3), 0);
		}
		test_clock_advance(&h.clock, GALE_MINUTES(1));
		assert_int_equal(passes_by(&h, h.limiter, 20), 0);
		gale_limiter_close(other);
		assert_true(house_close(&h));
	}
}

/* The same with another kind, which begins anew: a look begins nothing. */
static void a_look_by_another_kind_begins_nothing_anew(void **state)
{
	struct gale_limiter_config config = { .name = "house",
		                              .rule = gale_gcra(1, GALE_HOURS(1), 5),
		                              .on_other_rule =
		                                  GALE_ON_OTHER_RULE_RESTART };
	struct gale_limiter *other;
	struct gale_answer answer;
	struct house h;

	(void)state;
	open_house(&h, GALE_STRICT, gale_fixed_window(10, GALE_HOURS(1)));
	config.store = h.store;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &other), GALE_ERR_OK);
	assert_int_equal(passes_by(&h, h.limiter, 20), 10);
	assert_int_equal(gale_peek(h.seat, other, "k", 1, FOREVER_US, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.remaining, 5);
	assert_int_equal(gale_wait(h.seat, other, "k", 1, 6, FOREVER_US).verdict,
	                 GALE_DENY);
	assert_int_equal(passes_by(&h, h.limiter, 1), 0);
	answer = gale_wait(h.seat, other, "k", 1, 5, FOREVER_US);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(answer.why, GALE_WHY_RESTARTED);
	assert_int_equal(house_stats(&h).keys, 1);
	gale_limiter_close(other);
	assert_true(house_close(&h));
}

/* Asked under both in turn, for an hour: neither more than the faster allows, nor less than
 * the slower. */
static void sliding_windows_of_two_lengths_share_a_key(void **state)
{
	struct gale_limiter *other;
	uint64_t passed = 0;
	struct house h;

	(void)state;
	open_house(&h, GALE_STRICT, gale_sliding_window(20, GALE_SECONDS(60), 6));
	other =
	    house_limiter(&h, "house", gale_sliding_window(20, GALE_SECONDS(90), 6));
	for (int i = 0; i < 7200; i++) {
		passed += passes_by(&h, i % 2 ? other : h.limiter, 1);
		test_clock_advance(&h.clock, GALE_MILLIS(500));
	}
	assert_in_range(passed, 40 * 20, 60 * 20);
	gale_limiter_close(other);
	assert_true(house_close(&h));
}

/* What the store has not counted since another's window ended is in the books here: that is no
 * outage, and no second budget. */
static void a_node_that_has_had_its_limit_is_denied_by_its_books(void **state)
{
	struct gale_limiter_config config = { .name = "house",
		                              .rule = gale_fixed_window(
						  30, GALE_SECONDS(10)),
		                              .mode = GALE_LEASED };
	struct gale_limiter *other;
	struct gale_answer denied;
	struct house h;

	(void)state;
	open_house(&h, GALE_LEASED, gale_fixed_window(10, GALE_MINUTES(1)));
	config.store = h.store;
	assert_int_equal(gale_limiter_open(h.runtime, &config, &other), GALE_ERR_OK);
	assert_int_equal(passes(&h, 10), 10);
	test_clock_advance(&h.clock, GALE_SECONDS(15));
	assert_int_equal(gale_wait(h.seat, other, "k", 1, 1, FOREVER_US).verdict,
	                 GALE_ALLOW);
	test_clock_advance(&h.clock, GALE_SECONDS(10));
	assert_int_equal(gale_wait(h.seat, other, "k", 1, 1, FOREVER_US).verdict,
	                 GALE_ALLOW);
	denied = gale_wait(h.seat, h.limiter, "k", 1, 1, FOREVER_US);
	assert_int_equal(denied.verdict, GALE_DENY);
	assert_int_equal(denied.why, GALE_WHY_SPENT);
	assert_in_range(denied.retry_after_us, GALE_SECONDS(35), GALE_SECONDS(36));
	assert_int_equal(passes(&h, 20), 0);
	assert_int_equal(house_metric(&h, "answers_not_believed"), 1);
	test_clock_advance(&h.clock, GALE_SECONDS(36));
	assert_int_equal(passes(&h, 20), 10);
	gale_limiter_close(other);
	assert_true(house_close(&h));
}

/* What its words mean under another limit, only the strategy knows: on_other_rule decides, and the
 * answer says so. */
static void a_rule_of_ones_own_counts_anew_or_not_at_all(void **state)
{
	struct gale_limiter_config config = { .name = "own",
		                              .rule = custom_window(3, GALE_HOURS(1)) };
	const struct gale_rule larger = custom_window(5, GALE_HOURS(1));

	(void)state;
	for (int restarts = 0; restarts < 2; restarts++) {
		enum gale_why why = restarts ? GALE_WHY_RESTARTED : GALE_WHY_CHANGED;
		struct gale_limiter *own;
		struct house h;

		open_house(&h, GALE_STRICT, gale_fixed_window(1, GALE_HOURS(1)));
		config.store = h.store;
		config.on_other_rule =
		    restarts ? GALE_ON_OTHER_RULE_RESTART : GALE_ON_OTHER_RULE_REFUSE;
		assert_int_equal(gale_limiter_open(h.runtime, &config, &own),
		                 GALE_ERR_OK);
		assert_int_equal(passes_by(&h, own, 2), 2);
		assert_int_equal(gale_limiter_set_rule(own, &larger), GALE_ERR_OK);
		assert_int_equal(gale_wait(h.seat, own, "k", 1, 1, FOREVER_US).why,
		                 why);
		assert_int_equal(
		    gale_wait(h.seat, own, "new", 3, 1, FOREVER_US).remaining, 4);
		test_clock_advance(&h.clock, GALE_HOURS(1));
		assert_int_equal(passes_by(&h, own, 10), 5);
		gale_limiter_close(own);
		assert_true(house_close(&h));
	}
}

/* A share of this node alone is for outages: it is checked against the new limit, too. */
static void a_limit_below_the_share_is_refused(void **state)
{
	struct house_plan plan = { .rule = gale_fixed_window(10, GALE_HOURS(1)),
		                   .on_outage = GALE_ON_OUTAGE_SHARE,
		                   .outage_share = 5,
		                   .shards = 1,
		                   .turns = true,
		                   .still = true };
	const struct gale_rule below = gale_fixed_window(4, GALE_HOURS(1));
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &below), GALE_ERR_OUTAGE);
	assert_int_equal(passes(&h, 20), 10);
	set_rule(&h, gale_fixed_window(5, GALE_HOURS(1)));
	assert_int_equal(passes(&h, 20), 0);
	assert_true(house_close(&h));
}

/* ---- Units that carry over -------------------------------------------------------- */

/* No store takes them back: if they went, each change would cost a batch. */
static void units_that_carry_over_stay_in_hand(void **state)
{
	struct house_plan plan = {
		.rule = gale_fixed_window(100, GALE_HOURS(1)),
		.mode = GALE_LEASED,
		.shards = 1,
		.turns = true,
		.still = true,
		.lease = { .sizing = GALE_SIZE_FIXED, .batch = 10, .carry_over = true },
	};
	uint64_t passed = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (uint64_t i = 1; i <= 20; i++) {
		passed += passes(&h, 1);
		set_rule(&h, gale_fixed_window(100 - i, GALE_HOURS(1)));
	}
	for (uint64_t i = 1; i <= 20; i++) {
		passed += passes(&h, 1);
		set_rule(&h, gale_fixed_window(80, GALE_HOURS(1 + i % 2)));
	}
	passed += passes(&h, 200);
	assert_int_equal(passed, 80);
	assert_true(house_close(&h));
}

/* ---- A month, in which two nodes are changed -------------------------------------- */

#define MAY_FIRST_US UINT64_C(1903824000000000) /* of 2030 */
#define MAY_DAYS 31

struct calendar {
	struct gale_clock clock; /* first */
	uint64_t us;
};

static uint64_t calendar_us(struct gale_clock *self)
{
	return ((struct calendar *)self)->us;
}

static uint64_t calendar_boot_ns(struct gale_clock *self)
{
	return (((struct calendar *)self)->us - MAY_FIRST_US) * 1000 + 1;
}

struct member {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static void member_open(struct member *m, struct calendar *calendar,
                        enum gale_mode mode, uint64_t limit)
{
	struct gale_config config = { .shards = 1,
		                      .turns = true,
		                      .clock = &calendar->clock };
	struct gale_store_config store = { .url = "memory:months" };
	struct gale_limiter_config limiter = { .name = "plan",
		                               .rule = gale_quota_monthly(limit, 0),
		                               .mode = mode };

	assert_int_equal(gale_runtime_open(&config, &m->runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(m->runtime, &store, &m->store), GALE_ERR_OK);
	limiter.store = m->store;
	assert_int_equal(gale_limiter_open(m->runtime, &limiter, &m->limiter),
	                 GALE_ERR_OK);
	assert_int_equal(gale_join(m->runtime, &m->seat), GALE_ERR_OK);
}

static void member_close(struct member *m)
{
	gale_leave(m->seat);
	gale_limiter_close(m->limiter);
	gale_store_close(m->store);
	gale_runtime_close(m->runtime);
}

static void member_turns(struct member *m)
{
	for (int i = 0; i < 64; i++)
		(void)gale_turn(m->runtime);
}

static void member_set(struct member *m, uint64_t limit)
{
	struct gale_rule rule = gale_quota_monthly(limit, 0);

	assert_int_equal(gale_limiter_set_rule(m->limiter, &rule), GALE_ERR_OK);
	member_turns(m);
}

static uint64_t member_passes(struct member *m, uint64_t tries)
{
	uint64_t passed = 0;

	for (uint64_t i = 0; i < tries; i++) {
		struct gale_answer answer =
		    gale_wait(m->seat, m->limiter, "k", 1, 1, FOREVER_US);

		assert_int_not_equal(answer.why, GALE_WHY_CHANGED);
		passed += answer.verdict == GALE_ALLOW;
	}
	member_turns(m);
	return passed;
}

/* So many tries on each day from the first to the last. */
static uint64_t days_pass(struct member *m, struct calendar *calendar, int first,
                          int last, uint64_t tries)
{
	uint64_t passed = 0;

	for (int day = first; day <= last; day++) {
		calendar->us = MAY_FIRST_US + GALE_DAYS(day - 1) + GALE_HOURS(9);
		passed += member_passes(&m[0], tries) + member_passes(&m[1], tries);
	}
	return passed;
}

static void a_months_quota_is_changed_in_its_middle(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct calendar calendar = {
			{ .now_us = calendar_us, .boot_ns = calendar_boot_ns },
			MAY_FIRST_US,
		};
		struct member m[2];
		uint64_t passed;

		member_open(&m[0], &calendar, modes[i], 1000);
		member_open(&m[1], &calendar, modes[i], 1000);
		passed = days_pass(m, &calendar, 1, 14, 20);
		assert_int_equal(passed, 560);

		member_set(&m[0], 700);
		passed += days_pass(m, &calendar, 15, 15, 20);
		assert_true(passed <= 600);
		member_set(&m[1], 700);
		passed += days_pass(m, &calendar, 16, 22, 40);
		assert_int_equal(passed, 700);

		member_set(&m[0], 900);
		member_set(&m[1], 900);
		passed += days_pass(m, &calendar, 23, MAY_DAYS, 40);
		assert_int_equal(passed, 900);

		passed = days_pass(m, &calendar, MAY_DAYS + 1, MAY_DAYS + 2, 600);
		assert_int_equal(passed, 900);
		member_close(&m[0]);
		member_close(&m[1]);
	}
}

/* Each is freed when nobody can be reading it. */
static void many_changes_keep_no_memory(void **state)
{
	struct house h;

	(void)state;
	open_house(&h, GALE_LEASED, gale_fixed_window(10, GALE_HOURS(1)));
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t before = h.allocator.blocks;
		struct gale_rule rule = gale_fixed_window(10 + i % 5, GALE_HOURS(1));

		assert_int_equal(gale_limiter_set_rule(h.limiter, &rule), GALE_ERR_OK);
		if (i > 10)
			assert_true(h.allocator.blocks <= before + 1);
	}
	assert_true(passes(&h, 30) <= 14);
	assert_true(house_close(&h));
}

static void what_cannot_be_is_refused_and_changes_nothing(void **state)
{
	const struct gale_rule none = { 0 };
	const struct gale_rule brief = gale_fixed_window(10, 100);
	struct house h;

	(void)state;
	open_house(&h, GALE_LEASED, gale_fixed_window(10, GALE_HOURS(1)));
	assert_int_equal(gale_limiter_set_rule(h.limiter, &none), GALE_ERR_RULE_KIND);
	assert_int_equal(gale_limiter_set_rule(h.limiter, &brief),
	                 GALE_ERR_CANNOT_LEASE);
	h.allocator.fail_last = UINT64_MAX;
	assert_int_equal(
	    gale_limiter_set_rule(h.limiter,
	                          &(struct gale_rule){ brief.kind, .limit = 5,
	                                               .period_us = GALE_HOURS(1) }),
	    GALE_ERR_MEMORY);
	h.allocator.fail_last = 0;
	assert_int_equal(passes(&h, 30), 10);
	assert_true(house_close(&h));
}

static struct gale_limiter *open_plan(struct house *h, enum gale_mode mode,
                                      uint64_t limit)
{
	struct gale_limiter_config config = { .name = "calls",
		                              .rule = gale_fixed_window(limit,
		                                                        GALE_HOURS(1)),
		                              .store = h->store,
		                              .mode = mode };
	struct gale_limiter *plan;

	assert_int_equal(gale_limiter_open(h->runtime, &config, &plan), GALE_ERR_OK);
	return plan;
}

/* Of 30 calls of one customer. */
static uint64_t spends(struct house *h, struct gale_limiter *plan)
{
	uint64_t passed = 0;

	for (int i = 0; i < 30; i++)
		passed += gale_wait(h->seat, plan, "k", 1, 1, FOREVER_US).verdict ==
		          GALE_ALLOW;
	return passed;
}

/* A limiter for each plan: all have one name. */
static void a_customer_who_changes_plans_keeps_what_it_has_spent(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODES; i++) {
		struct gale_limiter *low, *high;
		struct house h;

		open_house(&h, modes[i], gale_fixed_window(1, GALE_HOURS(1)));
		low = open_plan(&h, modes[i], 10);
		high = open_plan(&h, modes[i], 25);
		assert_int_equal(spends(&h, low), 10);
		assert_int_equal(spends(&h, high), 15);
		assert_int_equal(spends(&h, low), 0);
		test_clock_advance(&h.clock, GALE_HOURS(1));
		assert_int_equal(spends(&h, high), 25);
		gale_limiter_close(low);
		gale_limiter_close(high);
		assert_true(house_close(&h));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_raised_limit_adds_what_it_is_larger_by),
		cmocka_unit_test(a_lowered_limit_gives_no_fresh_budget),
		cmocka_unit_test(a_meter_keeps_its_units_at_another_rate),
		cmocka_unit_test(a_window_of_another_period_keeps_what_was_used),
		cmocka_unit_test(
		    a_shorter_window_in_which_nothing_passes_ends_no_longer_one),
		cmocka_unit_test(a_look_by_another_kind_begins_nothing_anew),
		cmocka_unit_test(sliding_windows_of_two_lengths_share_a_key),
		cmocka_unit_test(a_node_that_has_had_its_limit_is_denied_by_its_books),
		cmocka_unit_test(a_rule_of_ones_own_counts_anew_or_not_at_all),
		cmocka_unit_test(a_limit_below_the_share_is_refused),
		cmocka_unit_test(units_that_carry_over_stay_in_hand),
		cmocka_unit_test(a_months_quota_is_changed_in_its_middle),
		cmocka_unit_test(many_changes_keep_no_memory),
		cmocka_unit_test(what_cannot_be_is_refused_and_changes_nothing),
		cmocka_unit_test(a_customer_who_changes_plans_keeps_what_it_has_spent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
