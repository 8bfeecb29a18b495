/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole_test.c -- calls that several limits must admit: all of them, or nothing is used.
 *
 * Most of it runs on a clock that stands still unless the test moves it, and the host takes the
 * turns.  How much of a limit is used is what its store and this node say together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <gale/hold.h>

#include "face/seat.h"
#include "sim/random.h"
#include "tests/support/child.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define KEY "alice"
#define WITHIN GALE_SECONDS(30)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 10,
	                                    .period_us = GALE_MINUTES(1) },
	                          .mode = GALE_LEASED,
	                          .lease = { .sizing = GALE_SIZE_FIXED, .batch = 4 },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

static struct gale_limiter *lease(struct house *h, const char *name,
                                  struct gale_rule rule)
{
	struct gale_limiter_config config = { .name = name,
		                              .rule = rule,
		                              .mode = GALE_LEASED,
		                              .lease = plan.lease,
		                              .store = h->store };
	struct gale_limiter *limiter;

	must(gale_limiter_open(h->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_limiter *daily(struct house *h, uint64_t limit)
{
	return lease(h, "day", gale_fixed_window(limit, GALE_DAYS(1)));
}

static struct gale_part part_of(struct gale_limiter *limiter, uint64_t cost)
{
	return (struct gale_part){ limiter, KEY, strlen(KEY), cost };
}

/* How many more units of the key are allowed, one by one. */
static uint64_t left_of(struct gale_seat *seat, struct gale_limiter *limiter)
{
	uint64_t left = 0;

	while (gale_wait(seat, limiter, KEY, strlen(KEY), 1, WITHIN).verdict ==
	       GALE_ALLOW)
		left++;
	return left;
}

static void is_told(struct gale_answer answer, enum gale_verdict verdict,
                    enum gale_why why)
{
	assert_string_equal(gale_why_name(answer.why), gale_why_name(why));
	assert_int_equal(answer.verdict, verdict);
}

/* Two limits, of ten a minute and so many a day. */
struct scene {
	struct house house;
	struct gale_limiter *day;
	struct gale_part parts[2];
	struct gale_all all;
};

static void scene_open(struct scene *s, uint64_t per_day)
{
	house_open(&s->house, &plan);
	s->day = daily(&s->house, per_day);
	s->parts[0] = part_of(s->house.limiter, 1);
	s->parts[1] = part_of(s->day, 1);
	s->all = (struct gale_all){ .parts = s->parts, .count = 2 };
}

static void scene_close(struct scene *s)
{
	gale_limiter_close(s->day);
	assert_true(house_close(&s->house));
}

static struct gale_answer wait_all(struct scene *s)
{
	return gale_wait_all(s->house.seat, &s->all, WITHIN);
}

/* The completion of the one whole that is pending. */
static struct gale_completion completion_of(struct scene *s)
{
	struct gale_completion completion;

	while (gale_seat_completions(s->house.seat, &completion, 1) == 0)
		(void)gale_turn(s->house.runtime);
	return completion;
}

static struct gale_limiter_counts counts_of(struct gale_limiter *limiter)
{
	struct gale_limiter_counts counts;

	must(gale_limiter_stats(limiter, &counts) == GALE_ERR_OK);
	return counts;
}

/* ---- All or nothing -------------------------------------------------------------- */

static void a_call_that_the_day_refuses_uses_nothing_of_the_minute(void **state)
{
	struct scene s;
	struct gale_answer answer;

	(void)state;
	scene_open(&s, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
		assert_int_equal(s.all.binding, 1);
	}
	for (int i = 0; i < 20; i++) {
		answer = wait_all(&s);
		is_told(answer, GALE_DENY, GALE_WHY_SPENT);
		assert_int_equal(s.all.binding, 1);
		assert_int_equal(answer.limit, 3);
		assert_true(answer.retry_after_us > GALE_HOURS(1));
	}
	assert_int_equal(counts_of(s.day).denied, 20);
	assert_int_equal(counts_of(s.house.limiter).allowed, 3);
	assert_int_equal(counts_of(s.house.limiter).denied, 0);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 7);
	scene_close(&s);
}

/* WHOLE-1, KEPT-1.  Nothing is remembered of the day when the first of them comes. */
static void what_a_store_refuses_gives_back_what_another_has_lent(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 5);
	s.parts[0].cost = 6;
	s.parts[1].cost = 5;
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	s.parts[0].cost = 4;
	s.parts[1].cost = 1;
	assert_int_equal(wait_all(&s).verdict, GALE_DENY);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 4);
	scene_close(&s);
}

/* WHOLE-2 */
static void the_first_part_that_refuses_is_told(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	assert_int_equal(left_of(s.house.seat, s.day), 3);
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(s.all.binding, 0);
	assert_int_equal(counts_of(s.day).denied, 1); /* of left_of */
	scene_close(&s);
}

static void credit_of_all_parts_needs_no_store(void **state)
{
	struct scene s;
	struct gale_answer answer;
	uint64_t leases;

	(void)state;
	scene_open(&s, 9);
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	leases = house_stats(&s.house).leases;
	answer = gale_ask_all(s.house.seat, &s.all, NULL);
	is_told(answer, GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(answer.remaining, 7);
	assert_int_equal(answer.limit, 9);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(house_stats(&s.house).leases, leases);
	scene_close(&s);
}

/* Both parts are of one key and limiter: they add up. */
static void a_key_may_be_asked_for_twice(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	s.parts[1] = s.parts[0];
	for (int i = 0; i < 5; i++)
		assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	assert_int_equal(wait_all(&s).verdict, GALE_DENY);
	scene_close(&s);
}

/* ---- Pending --------------------------------------------------------------------- */

static void parts_are_asked_for_at_once_and_answered_as_one(void **state)
{
	struct scene s;
	struct gale_completion completion;
	int tag;

	(void)state;
	scene_open(&s, 3);
	is_told(gale_ask_all(s.house.seat, &s.all, &tag), GALE_PENDING, GALE_WHY_ASKED);
	completion = completion_of(&s);
	assert_ptr_equal(completion.tag, &tag);
	is_told(completion.answer, GALE_ALLOW, GALE_WHY_CREDIT);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(gale_seat_completions(s.house.seat, &completion, 1), 0);
	assert_int_equal(asks_of_seat(s.house.seat), 0);
	scene_close(&s);
}

/* The minute's units are kept while the day's store is asked, and it refuses. */
static void what_is_kept_meanwhile_goes_back(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	s.parts[1].cost = 3;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(completion_of(&s).answer.verdict, GALE_DENY);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	assert_int_equal(left_of(s.house.seat, s.day), 2);
	scene_close(&s);
}

/* Units of one minute are not there in the next. */
static void units_go_back_into_their_own_window(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(left_of(s.house.seat, s.day), 3);
	test_clock_advance(&s.house.clock, GALE_DAYS(1));
	s.parts[0].cost = 10;
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	test_clock_advance(&s.house.clock, GALE_MINUTES(1));
	/* Ten are taken of the second minute; the third begins before the day answers. */
	s.parts[1].cost = 3;
	assert_int_equal(
	    gale_wait(s.house.seat, s.house.limiter, KEY, strlen(KEY), 1, WITHIN)
		.verdict,
	    GALE_ALLOW);
	s.parts[0].cost = 3;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	test_clock_advance(&s.house.clock, GALE_MINUTES(1));
	assert_int_equal(completion_of(&s).answer.verdict, GALE_DENY);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	scene_close(&s);
}

/* KEPT-2.  Units from before a reset are worth nothing after it: the limit begins anew, once. */
static void nothing_goes_back_over_a_reset(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	s.parts[0].cost = 3;
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	assert_int_equal(house_wait(&s.house, KEY).verdict, GALE_ALLOW);
	s.parts[1].cost = 3;
	s.parts[0].cost = 2;
	assert_int_equal(house_wait(&s.house, KEY).verdict, GALE_ALLOW);
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(
	    gale_reset(s.house.seat, s.house.limiter, KEY, strlen(KEY), WITHIN),
	    GALE_ERR_OK);
	assert_int_equal(completion_of(&s).answer.verdict, GALE_DENY);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	scene_close(&s);
}

static void a_seat_that_leaves_gives_back_what_its_calls_kept(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	s.parts[1].cost = 2;
	assert_int_equal(house_wait(&s.house, "bob").verdict, GALE_ALLOW);
	s.parts[1].key = "bob";
	s.parts[1].key_len = 3;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	gale_leave(s.house.seat);
	assert_int_equal(gale_join(s.house.runtime, &s.house.seat), GALE_ERR_OK);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	assert_int_equal(gale_wait(s.house.seat, s.day, "bob", 3, 3, WITHIN).verdict,
	                 GALE_ALLOW);
	scene_close(&s);
}

/* The part that had credit is fetched; the other is with its shard. */
static void so_does_one_that_has_fetched_a_part(void **state)
{
	struct gale_completion done;
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	s.parts[1].key = "bob";
	s.parts[1].key_len = 3;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(gale_seat_completions(s.house.seat, &done, 1), 0);
	gale_leave(s.house.seat);
	assert_int_equal(gale_join(s.house.runtime, &s.house.seat), GALE_ERR_OK);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	scene_close(&s); /* nothing holds its limiters */
}

static void who_waits_no_longer_keeps_nothing(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	is_told(gale_wait_all(s.house.seat, &s.all, 0), GALE_DENY, GALE_WHY_LATE);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	assert_int_equal(left_of(s.house.seat, s.day), 3);
	scene_close(&s);
}

/* ---- Failures -------------------------------------------------------------------- */

static struct gale_limiter *lease_far(struct house *h, enum gale_on_outage on_outage,
                                      struct gale_store **ret_store)
{
	struct gale_store_config nobody_is_there = { .url = "redis://127.0.0.1:1" };
	struct gale_limiter_config config = { .name = "far",
		                              .rule = plan.rule,
		                              .mode = GALE_LEASED,
		                              .on_outage = on_outage };
	struct gale_limiter *limiter;

	must(gale_store_open(h->runtime, &nobody_is_there, ret_store) == GALE_ERR_OK);
	config.store = *ret_store;
	must(gale_limiter_open(h->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

/* What the part whose store is there has left, of ten, after such a call. */
static uint64_t left_after_outage(enum gale_on_outage on_outage,
                                  enum gale_verdict expected)
{
	struct house_plan moving = plan;
	struct gale_answer answer;
	struct gale_limiter *far;
	struct gale_store *store;
	struct scene s;
	uint64_t left;

	moving.still = false;
	house_open(&s.house, &moving);
	far = lease_far(&s.house, on_outage, &store);
	s.parts[0] = part_of(s.house.limiter, 1);
	s.parts[1] = part_of(far, 1);
	s.all = (struct gale_all){ .parts = s.parts, .count = 2 };
	answer = wait_all(&s);
	assert_int_equal(answer.verdict, expected);
	if (expected == GALE_DENY) {
		assert_int_equal(s.all.binding, 1);
		assert_true(gale_why_is_outage(answer.why));
	}
	left = left_of(s.house.seat, s.house.limiter);
	gale_limiter_close(far);
	gale_store_close(store);
	assert_true(house_close(&s.house));
	return left;
}

static void the_on_outage_of_a_part_decides_while_its_store_is_down(void **state)
{
	(void)state;
	assert_int_equal(left_after_outage(GALE_ON_OUTAGE_DENY, GALE_DENY), 10);
	assert_int_equal(left_after_outage(GALE_ON_OUTAGE_ALLOW, GALE_ALLOW), 9);
}

/* Any of several limits: one after the other, until one allows.  What refuses, or cannot be asked, uses
 * nothing. */
static void any_of_several_uses_one_of_them(void **state)
{
	struct house_plan moving = plan;
	struct gale_limiter *limiters[3];
	struct gale_answer answer = { .verdict = GALE_DENY };
	struct gale_store *store;
	struct scene s;
	size_t tried = 0;

	(void)state;
	moving.still = false;
	house_open(&s.house, &moving);
	s.day = daily(&s.house, 3);
	limiters[0] = s.day;
	limiters[1] = lease_far(&s.house, GALE_ON_OUTAGE_DENY, &store);
	limiters[2] = s.house.limiter;
	assert_int_equal(
	    gale_wait(s.house.seat, s.day, KEY, strlen(KEY), 2, WITHIN).verdict,
	    GALE_ALLOW);
	while (answer.verdict != GALE_ALLOW && tried < 3)
		answer = gale_wait(s.house.seat, limiters[tried++], KEY, strlen(KEY), 2,
		                   WITHIN);
	assert_int_equal(tried, 3);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(counts_of(limiters[1]).allowed, 0);
	assert_int_equal(left_of(s.house.seat, s.day), 1);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 8);
	gale_limiter_close(limiters[1]);
	gale_store_close(store);
	scene_close(&s);
}

/* One group of limits or another: a group that fails in its second half gives back its first. */
static void any_of_several_groups_uses_one_of_them(void **state)
{
	struct gale_limiter *other, *other_day;
	struct gale_part others[2];
	struct gale_all second;
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	other = lease(&s.house, "other", gale_fixed_window(10, GALE_MINUTES(1)));
	other_day = lease(&s.house, "other day", gale_fixed_window(5, GALE_DAYS(1)));
	others[0] = part_of(other, 2);
	others[1] = part_of(other_day, 2);
	second = (struct gale_all){ .parts = others, .count = 2 };
	s.parts[0].cost = s.parts[1].cost = 2;
	for (int i = 0; i < 10; i++)
		if (wait_all(&s).verdict != GALE_ALLOW)
			(void)gale_wait_all(s.house.seat, &second, WITHIN);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10 - 2);
	assert_int_equal(left_of(s.house.seat, s.day), 3 - 2);
	assert_int_equal(left_of(s.house.seat, other), 10 - 2 * 2);
	assert_int_equal(left_of(s.house.seat, other_day), 5 - 2 * 2);
	gale_limiter_close(other);
	gale_limiter_close(other_day);
	scene_close(&s);
}

static void has_no_room_for_the_day(const struct house_plan *narrow, enum gale_why why)
{
	struct scene s;

	house_open(&s.house, narrow);
	s.day = daily(&s.house, 3);
	s.parts[0] = part_of(s.house.limiter, 1);
	s.parts[1] = part_of(s.day, 1);
	s.all = (struct gale_all){ .parts = s.parts, .count = 2 };
	assert_int_equal(house_wait(&s.house, KEY).verdict, GALE_ALLOW);
	is_told(wait_all(&s), GALE_DENY, why);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	scene_close(&s);
}

static void a_part_whose_key_has_no_room_denies_the_whole(void **state)
{
	struct house_plan narrow_store = plan, narrow_node = plan;

	(void)state;
	narrow_store.max_keys = 1;
	has_no_room_for_the_day(&narrow_store, GALE_WHY_FULL);
	narrow_node.node_keys = 1;
	has_no_room_for_the_day(&narrow_node, GALE_WHY_CROWDED);
}

static void a_runtime_that_is_closed_answers_what_is_pending(void **state)
{
	struct gale_completion done;
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, &s).verdict, GALE_PENDING);
	gale_runtime_close(s.house.runtime);
	s.house.runtime = NULL;
	assert_int_equal(gale_seat_completions(s.house.seat, &done, 1), 1);
	assert_ptr_equal(done.tag, &s);
	assert_int_equal(done.answer.verdict, GALE_ALLOW);
	is_told(gale_ask_all(s.house.seat, &s.all, NULL), GALE_DENY, GALE_WHY_CLOSED);
	scene_close(&s);
}

struct forked {
	struct scene *scene;
	struct gale_hold *hold;
};

static int asks_in_child(void *arg)
{
	const struct forked *forked = arg;
	struct gale_seat *seat = forked->scene->house.seat;
	const uint64_t costs[] = { 1, 1 };
	struct gale_hold other;

	if (gale_ask_all(seat, &forked->scene->all, NULL).why != GALE_WHY_FORKED)
		return 1;
	if (gale_hold_all(seat, &forked->scene->all, &other, NULL).why !=
	    GALE_WHY_FORKED)
		return 2;
	return gale_hold_commit(seat, forked->hold, costs) == GALE_ERR_FORKED ? 0 : 3;
}

static void a_child_uses_and_settles_nothing(void **state)
{
	struct gale_hold hold;
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	assert_int_equal(gale_hold_wait(s.house.seat, &s.all, &hold, WITHIN).verdict,
	                 GALE_ALLOW);
	assert_int_equal(child_run(asks_in_child, &(struct forked){ &s, &hold }), 0);
	assert_int_equal(gale_hold_cancel(s.house.seat, &hold), GALE_ERR_OK);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	scene_close(&s);
}

/* ---- Guards ---------------------------------------------------------------------- */

static struct gale_guard *open_guard(struct house *h, uint32_t slots)
{
	struct gale_guard_config config = { .name = "calls",
		                            .law = GALE_FIXED,
		                            .ceiling = slots };
	struct gale_guard *guard;

	must(gale_guard_open(h->runtime, &config, &guard) == GALE_ERR_OK);
	return guard;
}

static uint64_t in_flight(struct gale_guard *guard)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(guard, &counts) == GALE_ERR_OK);
	return counts.in_flight - counts.kept;
}

static void concurrency_comes_first_and_a_refusal_frees_it(void **state)
{
	struct scene s;
	struct gale_entry entry;
	struct gale_guard *guard;

	(void)state;
	scene_open(&s, 2);
	guard = open_guard(&s.house, 1);
	s.all.guard = guard;
	s.all.slots = 1;
	assert_int_equal(wait_all(&s).verdict, GALE_ALLOW);
	entry = s.all.entry;
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_CEILING);
	assert_true(s.all.binding == GALE_BINDING_GUARD);
	gale_exit(s.house.seat, &entry, GALE_OK);
	assert_int_equal(left_of(s.house.seat, s.day), 1);
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_SPENT);
	assert_int_equal(s.all.binding, 1);
	assert_int_equal(in_flight(guard), 0);
	assert_int_equal(s.all.entry.slots, 0);
	s.parts[1].cost = 3; /* above the limit: the guard is left again */
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_TOO_MUCH);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	gale_guard_close(guard);
	scene_close(&s);
}

static void a_pending_call_has_its_slot(void **state)
{
	struct scene s;
	struct gale_guard *guard;

	(void)state;
	scene_open(&s, 2);
	guard = open_guard(&s.house, 1);
	s.all.guard = guard;
	s.all.slots = 1;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(in_flight(guard), 1);
	assert_int_equal(completion_of(&s).answer.verdict, GALE_ALLOW);
	gale_exit(s.house.seat, &s.all.entry, GALE_OK);
	s.parts[1].cost = 2;
	assert_int_equal(gale_ask_all(s.house.seat, &s.all, NULL).verdict,
	                 GALE_PENDING);
	assert_int_equal(completion_of(&s).answer.verdict, GALE_DENY);
	assert_int_equal(in_flight(guard), 0);
	gale_guard_close(guard);
	scene_close(&s);
}

/* ---- Bad asks -------------------------------------------------------------------- */

static void what_cannot_be_asked_is_refused(void **state)
{
	struct gale_limiter *strict;
	struct scene s;

	(void)state;
	scene_open(&s, 3);
	strict = house_limiter(&s.house, "strict", gale_gcra(5, GALE_SECONDS(1), 5));
	is_told(gale_wait_all(s.house.seat, NULL, WITHIN), GALE_DENY, GALE_WHY_BAD_ASK);
	is_told(gale_wait_all(NULL, &s.all, WITHIN), GALE_DENY, GALE_WHY_BAD_ASK);
	s.all.count = 0;
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_BAD_ASK);
	s.all.count = GALE_PARTS_MAX + 1;
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_BAD_ASK);
	s.all.count = 2;
	s.parts[1].cost = 0;
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_BAD_ASK);
	s.parts[1].cost = 4;
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_TOO_MUCH);
	assert_int_equal(s.all.binding, 1);
	s.parts[1] = part_of(strict, 1);
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_BAD_ASK);
	s.parts[1] = part_of(NULL, 1);
	is_told(wait_all(&s), GALE_DENY, GALE_WHY_BAD_ASK);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 10);
	gale_limiter_close(strict);
	scene_close(&s);
}

static void hands_that_are_full_take_nothing(void **state)
{
	struct gale_all first, second;
	struct scene s;

	(void)state;
	plan.pending_max = 3;
	scene_open(&s, 3);
	first = second = s.all;
	assert_int_equal(gale_ask_all(s.house.seat, &first, NULL).verdict,
	                 GALE_PENDING);
	is_told(gale_ask_all(s.house.seat, &second, NULL), GALE_DENY, GALE_WHY_BUSY);
	assert_int_equal(completion_of(&s).answer.verdict, GALE_ALLOW);
	assert_int_equal(left_of(s.house.seat, s.house.limiter), 9);
	assert_int_equal(left_of(s.house.seat, s.day), 2);
	scene_close(&s);
	plan.pending_max = 0;
}

/* ---- Threads --------------------------------------------------------------------- */

#define THREADS 4
#define ASKS LONG_OR_BRIEF(20000, 4000)
#define PER_A 3000
#define PER_B 2000

struct crew {
	struct house house;
	struct gale_limiter *a, *b;
	_Atomic uint64_t allowed, alone;
};

/* Most ask for both; one asks for the first alone, now and then. */
static void ask_both(void *arg, unsigned who)
{
	struct crew *crew = arg;
	struct gale_part parts[] = { part_of(crew->a, 1), part_of(crew->b, 1) };
	struct gale_all all = { .parts = parts, .count = 2 };
	struct chance chance = { who + 1 };
	struct gale_seat *seat;

	must(gale_join(crew->house.runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < ASKS; i++) {
		if (chance_below(&chance, 8) == 0 && who == 0)
			crew->alone +=
			    gale_wait(seat, crew->a, KEY, strlen(KEY), 1, WITHIN)
				.verdict == GALE_ALLOW;
		else
			crew->allowed +=
			    gale_wait_all(seat, &all, WITHIN).verdict == GALE_ALLOW;
	}
	gale_leave(seat);
}

/* The second runs out, and what its refusals gave back of the first is all there. */
static void threads_use_of_both_alike(void **state)
{
	struct house_plan threads = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                      .shards = 2 };
	struct crew crew = { .allowed = 0 };

	(void)state;
	house_open(&crew.house, &threads);
	crew.a = lease(&crew.house, "a", gale_fixed_window(PER_A, GALE_DAYS(365)));
	crew.b = lease(&crew.house, "b", gale_fixed_window(PER_B, GALE_DAYS(365)));
	crew_run(THREADS, ask_both, &crew);
	assert_int_equal(crew.allowed + left_of(crew.house.seat, crew.b), PER_B);
	assert_int_equal(crew.allowed + crew.alone + left_of(crew.house.seat, crew.a),
	                 PER_A);
	gale_limiter_close(crew.a);
	gale_limiter_close(crew.b);
	assert_true(house_close(&crew.house));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_call_that_the_day_refuses_uses_nothing_of_the_minute),
		cmocka_unit_test(what_a_store_refuses_gives_back_what_another_has_lent),
		cmocka_unit_test(the_first_part_that_refuses_is_told),
		cmocka_unit_test(credit_of_all_parts_needs_no_store),
		cmocka_unit_test(a_key_may_be_asked_for_twice),
		cmocka_unit_test(parts_are_asked_for_at_once_and_answered_as_one),
		cmocka_unit_test(what_is_kept_meanwhile_goes_back),
		cmocka_unit_test(units_go_back_into_their_own_window),
		cmocka_unit_test(nothing_goes_back_over_a_reset),
		cmocka_unit_test(a_seat_that_leaves_gives_back_what_its_calls_kept),
		cmocka_unit_test(so_does_one_that_has_fetched_a_part),
		cmocka_unit_test(who_waits_no_longer_keeps_nothing),
		cmocka_unit_test(
		    the_on_outage_of_a_part_decides_while_its_store_is_down),
		cmocka_unit_test(any_of_several_uses_one_of_them),
		cmocka_unit_test(any_of_several_groups_uses_one_of_them),
		cmocka_unit_test(a_part_whose_key_has_no_room_denies_the_whole),
		cmocka_unit_test(a_runtime_that_is_closed_answers_what_is_pending),
		cmocka_unit_test(a_child_uses_and_settles_nothing),
		cmocka_unit_test(concurrency_comes_first_and_a_refusal_frees_it),
		cmocka_unit_test(a_pending_call_has_its_slot),
		cmocka_unit_test(what_cannot_be_asked_is_refused),
		cmocka_unit_test(hands_that_are_full_take_nothing),
		cmocka_unit_test(threads_use_of_both_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
