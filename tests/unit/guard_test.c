/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_test.c -- calls enter and exit a guard, and it counts them.
 *
 * Most of it runs in turns, on a clock that stands still unless the test moves it.
 */
#define _DEFAULT_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "face/guard.h"
#include "face/seat.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define WINDOW_US GALE_MILLIS(20)

static struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                    .limit = 5,
	                                    .period_us = GALE_HOURS(1) },
	                          .shards = 1,
	                          .turns = true,
	                          .still = true };

static void turn_until_idle(struct house *h)
{
	while (gale_turn(h->runtime) > 0)
		continue;
}

/* So much later, the coordinator has looked. */
static void pass(struct house *h, uint64_t us)
{
	test_clock_advance(&h->clock, us);
	turn_until_idle(h);
}

static struct gale_guard *open_guard(struct house *h,
                                     const struct gale_guard_config *config)
{
	struct gale_guard *guard;

	must(gale_guard_open(h->runtime, config, &guard) == GALE_ERR_OK);
	return guard;
}

static struct gale_guard *open_fixed(struct house *h, uint32_t ceiling)
{
	struct gale_guard_config config = { .name = "fixed",
		                            .law = GALE_FIXED,
		                            .ceiling = ceiling };

	return open_guard(h, &config);
}

static struct gale_guard_counts counts_of(struct gale_guard *guard)
{
	struct gale_guard_counts counts;

	must(gale_guard_stats(guard, &counts) == GALE_ERR_OK);
	return counts;
}

static struct gale_entry enter(struct house *h, struct gale_guard *guard)
{
	return gale_enter(h->seat, guard, 1, GALE_NORMAL);
}

static void is_refused(struct gale_entry entry, enum gale_why why)
{
	assert_int_equal(entry.verdict, GALE_DENY);
	assert_string_equal(gale_why_name(entry.why), gale_why_name(why));
	assert_int_equal(entry.slots, 0);
}

static void is_in(struct gale_entry entry, uint32_t limit)
{
	assert_int_equal(entry.verdict, GALE_ALLOW);
	assert_string_equal(gale_why_name(entry.why), gale_why_name(GALE_WHY_SLOT));
	assert_int_equal(entry.limit, limit);
}

/* ---- Slots ------------------------------------------------------------------------ */

static void as_many_are_in_as_there_are_slots(void **state)
{
	struct gale_entry entries[3], more;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 3);
	for (int i = 0; i < 3; i++) {
		entries[i] = enter(&h, guard);
		is_in(entries[i], 3);
	}
	is_refused(enter(&h, guard), GALE_WHY_CEILING);
	gale_exit(h.seat, &entries[1], GALE_OK);
	more = enter(&h, guard);
	is_in(more, 3);
	is_refused(enter(&h, guard), GALE_WHY_CEILING);
	gale_exit(h.seat, &entries[0], GALE_DROPPED);
	gale_exit(h.seat, &entries[2], GALE_IGNORED);
	gale_exit(h.seat, &more, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	assert_int_equal(counts_of(guard).entered, 4);
	assert_int_equal(counts_of(guard).ok, 2);
	assert_int_equal(counts_of(guard).dropped, 1);
	assert_int_equal(counts_of(guard).ignored, 1);
	assert_int_equal(counts_of(guard).refused, 2);
	assert_int_equal(counts_of(guard).refused_by[GALE_WHY_CEILING], 2);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void a_call_may_take_several_but_not_too_many(void **state)
{
	struct gale_guard_config config = { .name = "wide",
		                            .law = GALE_FIXED,
		                            .ceiling = 10,
		                            .slots_most_permille = 400 };
	struct gale_entry four, other, three;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_guard(&h, &config);
	is_refused(gale_enter(h.seat, guard, 5, GALE_NORMAL), GALE_WHY_WIDE);
	four = gale_enter(h.seat, guard, 4, GALE_NORMAL);
	other = gale_enter(h.seat, guard, 4, GALE_NORMAL);
	is_in(four, 10);
	is_in(other, 10);
	assert_int_equal(four.slots, 4);
	is_refused(gale_enter(h.seat, guard, 3, GALE_NORMAL), GALE_WHY_CEILING);
	assert_int_equal(counts_of(guard).in_flight, 8);
	gale_exit(h.seat, &four, GALE_OK);
	three = gale_enter(h.seat, guard, 3, GALE_NORMAL);
	is_in(three, 10);
	gale_exit(h.seat, &other, GALE_OK);
	gale_exit(h.seat, &three, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	assert_int_equal(counts_of(guard).entered, 3);
	assert_int_equal(counts_of(guard).ok, 11);
	gale_guard_close(guard);

	config.ceiling = 1;
	guard = open_guard(&h, &config);
	is_refused(gale_enter(h.seat, guard, 2, GALE_NORMAL), GALE_WHY_WIDE);
	four = enter(&h, guard);
	is_in(four, 1);
	gale_exit(h.seat, &four, GALE_OK);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void sheddable_calls_see_a_part(void **state)
{
	struct gale_entry entries[20];
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 20);
	for (int i = 0; i < 18; i++) {
		entries[i] = gale_enter(h.seat, guard, 1, GALE_SHEDDABLE);
		is_in(entries[i], 20);
	}
	is_refused(gale_enter(h.seat, guard, 1, GALE_SHEDDABLE), GALE_WHY_CLASS);
	for (int i = 18; i < 20; i++) {
		entries[i] = enter(&h, guard);
		is_in(entries[i], 20);
	}
	is_refused(gale_enter(h.seat, guard, 1, GALE_SHEDDABLE), GALE_WHY_CEILING);
	is_refused(enter(&h, guard), GALE_WHY_CEILING);
	for (int i = 0; i < 20; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	assert_int_equal(counts_of(guard).refused_by[GALE_WHY_CLASS], 1);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void who_observes_refuses_nothing(void **state)
{
	struct gale_guard_config config = {
		.name = "observed", .law = GALE_FIXED, .ceiling = 2, .observe = true
	};
	struct gale_entry entries[4];
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_guard(&h, &config);
	for (int i = 0; i < 4; i++) {
		entries[i] = enter(&h, guard);
		assert_int_equal(entries[i].verdict, GALE_ALLOW);
		assert_int_equal(entries[i].why,
		                 i < 2 ? GALE_WHY_SLOT : GALE_WHY_CEILING);
	}
	assert_int_equal(counts_of(guard).in_flight, 4);
	assert_int_equal(counts_of(guard).entered, 4);
	assert_int_equal(counts_of(guard).refused_by[GALE_WHY_CEILING], 2);
	for (int i = 0; i < 4; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* What lies behind the face: each ceiling that a coordinator can put in force. */
static void a_refusal_says_what_limited_it(void **state)
{
	static const struct {
		enum slots_by by;
		enum gale_why why;
	} rows[] = {
		{ SLOTS_BY_CEILING, GALE_WHY_CEILING },
		{ SLOTS_BY_SHARE, GALE_WHY_SHARE },
		{ SLOTS_BY_ESTIMATE, GALE_WHY_ESTIMATE },
		{ SLOTS_BY_PROBE, GALE_WHY_PROBE },
		{ SLOTS_BY_FENCE, GALE_WHY_CUT_OFF },
	};
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		turnstile_apply(&guard->guard.turnstile, 1,
		                (struct slots_ceiling){ 0, rows[i].by });
		is_refused(enter(&h, guard), rows[i].why);
		assert_int_equal(counts_of(guard).refused_by[rows[i].why], 1);
	}
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* ---- Exits ------------------------------------------------------------------------ */

static void a_second_exit_changes_nothing_and_is_counted(void **state)
{
	struct gale_entry entry, refused, empty = { 0 }, copy;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 1);
	copy = entry = enter(&h, guard);
	refused = enter(&h, guard);
	gale_exit(h.seat, &refused, GALE_OK);
	gale_exit(h.seat, &refused, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 1);
	assert_int_equal(house_metric(&h, "exits_without_entry"), 0);
	gale_exit(h.seat, &entry, GALE_OK);
	gale_exit(h.seat, &entry, GALE_OK);
	gale_exit(h.seat, &empty, GALE_OK);
	gale_exit(h.seat, NULL, GALE_OK);
	assert_int_equal(house_metric(&h, "exits_without_entry"), 3);
	assert_int_equal(counts_of(guard).in_flight, 0);
	assert_int_equal(counts_of(guard).ok, 1);
	gale_exit(h.seat, &copy, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	assert_int_equal(counts_of(guard).exits_without_entry, 1);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void any_seat_may_exit_and_a_bad_one_gives_back(void **state)
{
	struct gale_entry entries[5];
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h, elsewhere;

	(void)state;
	house_open(&h, &plan);
	house_open(&elsewhere, &plan);
	guard = open_fixed(&h, 5);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	for (int i = 0; i < 5; i++)
		entries[i] = gale_enter(other, guard, 1, GALE_NORMAL);
	gale_leave(other);
	assert_int_equal(counts_of(guard).in_flight, 5);
	gale_exit(h.seat, &entries[0], GALE_OK);
	gale_exit(elsewhere.seat, &entries[1], GALE_OK);
	gale_exit(NULL, &entries[2], GALE_OK);
	gale_exit(h.seat, &entries[3], (enum gale_outcome)3);
	gale_exit(other, &entries[4], GALE_OK); /* it has left */
	assert_int_equal(counts_of(guard).in_flight, 0);
	assert_int_equal(counts_of(guard).ok, 1);
	assert_int_equal(counts_of(guard).ignored, 4);
	gale_guard_close(guard);
	assert_true(house_close(&elsewhere));
	assert_true(house_close(&h));
}

/* HOUSE-2 */
static void entries_outlive_their_guard_and_its_runtime(void **state)
{
	struct gale_entry first, last;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 4);
	first = enter(&h, guard);
	last = enter(&h, guard);
	gale_guard_close(guard);
	is_refused(enter(&h, guard), GALE_WHY_CLOSED);
	turn_until_idle(&h);
	gale_exit(h.seat, &first, GALE_OK);
	gale_runtime_close(h.runtime);
	gale_limiter_close(h.limiter);
	gale_store_close(h.store);
	assert_false(test_allocator_is_balanced(&h.allocator));
	gale_exit(h.seat, &last, GALE_OK);
	gale_leave(h.seat);
	assert_true(test_allocator_is_balanced(&h.allocator));
}

struct closing {
	struct house *house;
	struct gale_guard *guard;
};

static void *close_guard(void *arg)
{
	gale_guard_close(arg);
	return NULL;
}

static bool refuses_as_closed(void *arg)
{
	struct closing *closing = arg;
	struct gale_entry entry = enter(closing->house, closing->guard);

	gale_exit(closing->house->seat, &entry, GALE_OK);
	return entry.why == GALE_WHY_CLOSED;
}

/* FLEET-5: the coordinator, which reports that the guard leaves, cannot be told while its lock
 * is held. */
static void a_guard_is_closed_before_the_coordinator_is_told(void **state)
{
	struct closing closing;
	struct lock *lock;
	struct house h;
	pthread_t closer;
	bool closed;

	(void)state;
	house_open(&h, &plan);
	closing = (struct closing){ &h, open_fixed(&h, 3) };
	assert_false(refuses_as_closed(&closing));
	lock = &load_relaxed(&h.runtime->guardhouse)->coordinator.lock;
	lock_take(lock);
	must(pthread_create(&closer, NULL, close_guard, closing.guard) == 0);
	closed = becomes_true(refuses_as_closed, &closing);
	lock_drop(lock);
	must(pthread_join(closer, NULL) == 0);
	assert_true(house_close(&h));
	assert_true(closed);
}

static void a_guard_may_be_closed_after_its_runtime(void **state)
{
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 4);
	gale_runtime_close(h.runtime);
	is_refused(enter(&h, guard), GALE_WHY_CLOSED);
	gale_limiter_close(h.limiter);
	gale_store_close(h.store);
	gale_leave(h.seat);
	gale_guard_close(guard);
	assert_true(test_allocator_is_balanced(&h.allocator));
}

static void a_bad_call_is_refused(void **state)
{
	struct gale_guard *guard, *other;
	struct gale_seat *left;
	struct house h, elsewhere;

	(void)state;
	house_open(&h, &plan);
	house_open(&elsewhere, &plan);
	guard = open_fixed(&h, 4);
	other = open_fixed(&elsewhere, 4);
	is_refused(gale_enter(NULL, guard, 1, GALE_NORMAL), GALE_WHY_BAD_ASK);
	is_refused(gale_enter(h.seat, NULL, 1, GALE_NORMAL), GALE_WHY_BAD_ASK);
	is_refused(gale_enter(h.seat, other, 1, GALE_NORMAL), GALE_WHY_BAD_ASK);
	is_refused(gale_enter(h.seat, guard, 0, GALE_NORMAL), GALE_WHY_BAD_ASK);
	is_refused(gale_enter(h.seat, guard, GALE_SLOTS_MAX + 1, GALE_NORMAL),
	           GALE_WHY_BAD_ASK);
	is_refused(gale_enter(h.seat, guard, 1, (enum gale_class)2), GALE_WHY_BAD_ASK);
	must(gale_join(h.runtime, &left) == GALE_ERR_OK);
	gale_leave(left);
	is_refused(gale_enter(left, guard, 1, GALE_NORMAL), GALE_WHY_CLOSED);
	assert_int_equal(counts_of(guard).refused, 0);
	gale_guard_close(guard);
	gale_guard_close(other);
	gale_guard_close(NULL);
	assert_true(house_close(&elsewhere));
	assert_true(house_close(&h));
}

struct forked {
	struct house *h;
	struct gale_guard *guard;
	struct gale_entry *entry;
};

/* Its parent has the slots. */
static int exits_in_child(void *arg)
{
	struct forked *forked = arg;

	if (enter(forked->h, forked->guard).why != GALE_WHY_FORKED)
		return 1;
	gale_exit(forked->h->seat, forked->entry, GALE_OK);
	return slots_in_flight(turnstile_word(&forked->guard->guard.turnstile)) == 1
	           ? 0
	           : 2;
}

static void a_child_neither_enters_nor_exits(void **state)
{
	struct gale_entry entry;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 4);
	entry = enter(&h, guard);
	assert_int_equal(
	    child_run(exits_in_child, &(struct forked){ &h, guard, &entry }), 0);
	gale_exit(h.seat, &entry, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* The child's runtime has the word of a lifeline that its parent's had. */
static int enters_its_own_by_a_seat_of_before(void *arg)
{
	static struct house own;
	struct forked *forked = arg;
	struct gale_entry entry;

	house_open(&own, &plan);
	forked->guard = open_fixed(&own, 4);
	must(forked->h->seat->lifeline.word == own.seat->lifeline.word);
	entry = gale_enter(forked->h->seat, forked->guard, 1, GALE_NORMAL);
	if (entry.verdict != GALE_DENY || entry.why != GALE_WHY_BAD_ASK)
		return 1;
	entry = enter(&own, forked->guard);
	gale_exit(forked->h->seat, &entry, GALE_OK);
	return counts_of(forked->guard).in_flight == 0 &&
	               counts_of(forked->guard).ignored == 1
	           ? 0
	           : 2;
}

static void a_seat_of_before_enters_no_guard_of_a_child(void **state)
{
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(
	    child_run(enters_its_own_by_a_seat_of_before, &(struct forked){ .h = &h }),
	    0);
	assert_true(house_close(&h));
}

static void an_entry_of_no_guard_ends_nothing(void **state)
{
	struct gale_entry forged = { .verdict = GALE_ALLOW, .slots = 1 };
	struct house h;

	(void)state;
	house_open(&h, &plan);
	gale_exit(h.seat, &forged, GALE_OK);
	assert_true(house_close(&h));
}

/* ---- Cells ------------------------------------------------------------------------ */

/* Two seats that both work get cells at the next look. */
static void both_work(struct house *h, struct gale_guard *guard,
                      struct gale_seat *other)
{
	struct gale_seat *seats[] = { h->seat, other };

	for (int i = 0; i < 2; i++) {
		struct gale_entry entry = gale_enter(seats[i], guard, 1, GALE_NORMAL);

		gale_exit(seats[i], &entry, GALE_OK);
	}
}

static void give_cells(struct house *h, struct gale_guard *guard,
                       struct gale_seat *other)
{
	both_work(h, guard, other);
	pass(h, WINDOW_US);
	both_work(h, guard, other);
	assert_int_equal(counts_of(guard).kept, 2);
}

static void seats_that_work_keep_slots(void **state)
{
	struct gale_entry entries[64];
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	give_cells(&h, guard, other);
	assert_int_equal(counts_of(guard).in_flight, 2);
	/* TURNSTILE-3: a quarter of them, for both. */
	for (int i = 0; i < 40; i++)
		entries[i] = enter(&h, guard);
	for (int i = 0; i < 40; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	assert_int_equal(counts_of(guard).kept, 8 + 1);
	assert_int_equal(counts_of(guard).in_flight, 8 + 1);
	/* Who finds none gets what the other keeps. */
	for (int i = 0; i < 64; i++) {
		entries[i] = gale_enter(other, guard, 1, GALE_NORMAL);
		is_in(entries[i], 64);
	}
	is_refused(gale_enter(other, guard, 1, GALE_NORMAL), GALE_WHY_CEILING);
	assert_int_equal(counts_of(guard).kept, 0);
	for (int i = 0; i < 64; i++)
		gale_exit(other, &entries[i], GALE_OK);
	gale_leave(other);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void a_seat_that_leaves_gives_back_what_it_keeps(void **state)
{
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	give_cells(&h, guard, other);
	gale_leave(other);
	assert_int_equal(counts_of(guard).kept, 1);
	assert_int_equal(counts_of(guard).in_flight, 1);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static void a_seat_that_stops_gives_back_what_it_keeps(void **state)
{
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	give_cells(&h, guard, other);
	pass(&h, WINDOW_US); /* both have worked before it */
	pass(&h, GALE_SECONDS(2));
	assert_int_equal(counts_of(guard).kept, 0);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_leave(other);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* TURNSTILE-2 */
static void after_a_fence_nothing_enters_from_a_cell(void **state)
{
	struct slots_ceiling none = { 0, SLOTS_BY_FENCE },
			     some = { 64, SLOTS_BY_SHARE };
	struct gale_entry entry;
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	give_cells(&h, guard, other);
	entry = enter(&h, guard);
	is_in(entry, 64);
	turnstile_apply(&guard->guard.turnstile, 1, none);
	assert_int_equal(counts_of(guard).kept, 0);
	is_refused(enter(&h, guard), GALE_WHY_CUT_OFF);
	is_refused(gale_enter(other, guard, 1, GALE_NORMAL), GALE_WHY_CUT_OFF);
	gale_exit(h.seat, &entry, GALE_OK); /* nor does it stay in the cell */
	assert_int_equal(counts_of(guard).in_flight, 0);
	turnstile_apply(&guard->guard.turnstile, 2, some);
	entry = enter(&h, guard);
	is_in(entry, 64);
	gale_exit(h.seat, &entry, GALE_OK);
	gale_leave(other);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* TURNSTILE-1: what is called back is free, and no seat enters above the share from its cell. */
static void a_share_that_shrinks_calls_back_what_seats_keep(void **state)
{
	struct gale_entry entries[40];
	struct gale_seat *other;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	must(gale_join(h.runtime, &other) == GALE_ERR_OK);
	give_cells(&h, guard, other);
	for (int i = 0; i < 40; i++)
		entries[i] = enter(&h, guard);
	for (int i = 5; i < 40; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	assert_int_equal(counts_of(guard).kept, 8 + 1);
	assert_int_equal(counts_of(guard).in_flight, 5 + 8 + 1);
	guard_put_share(&guard->guard, 2, 4, /* fenced= */ false);
	assert_int_equal(counts_of(guard).kept, 0);
	assert_int_equal(counts_of(guard).in_flight, 5);
	is_refused(enter(&h, guard), GALE_WHY_SHARE);
	is_refused(gale_enter(other, guard, 1, GALE_NORMAL), GALE_WHY_SHARE);
	gale_exit(h.seat, &entries[0], GALE_OK);
	gale_exit(h.seat, &entries[1], GALE_OK);
	entries[0] = gale_enter(other, guard, 1, GALE_NORMAL);
	is_in(entries[0], 4);
	is_refused(enter(&h, guard), GALE_WHY_SHARE);
	gale_exit(other, &entries[0], GALE_OK);
	for (int i = 2; i < 5; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	pass(&h, WINDOW_US); /* four slots are too few for cells */
	assert_int_equal(counts_of(guard).kept, 0);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_leave(other);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* As the coordinator of a fleet puts it in force; the least ceiling is told. */
static void a_share_is_in_force_at_once(void **state)
{
	struct gale_entry entries[3];
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 4);
	turn_until_idle(&h);
	for (int i = 0; i < 3; i++)
		entries[i] = enter(&h, guard);
	guard_put_share(&guard->guard, 7, 2, /* fenced= */ false);
	is_refused(enter(&h, guard), GALE_WHY_SHARE);
	assert_int_equal(slots_generation(turnstile_word(&guard->guard.turnstile)), 7);
	assert_int_equal(counts_of(guard).limit, 2);
	assert_int_equal(counts_of(guard).in_flight, 3);
	pass(&h, GALE_SECONDS(1));
	assert_int_equal(counts_of(guard).limit, 2);
	gale_exit(h.seat, &entries[0], GALE_OK);
	is_refused(enter(&h, guard), GALE_WHY_SHARE);
	gale_exit(h.seat, &entries[1], GALE_OK);
	entries[0] = enter(&h, guard);
	is_in(entries[0], 2);
	guard_put_share(&guard->guard, 7, 2, /* fenced= */ true);
	is_refused(enter(&h, guard), GALE_WHY_CUT_OFF);
	guard_put_share(&guard->guard, 8, 100, /* fenced= */ false);
	entries[1] = enter(&h, guard);
	is_in(entries[1], 4);
	for (int i = 0; i < 3; i++)
		gale_exit(h.seat, &entries[i], GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* More seats than cells. */
static void a_seat_without_a_cell_counts_with_the_others(void **state)
{
	struct gale_seat *seats[CELLS_MOST + 2];
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 64);
	for (int i = 0; i < CELLS_MOST + 2; i++) {
		struct gale_entry entry;

		must(gale_join(h.runtime, &seats[i]) == GALE_ERR_OK);
		entry = gale_enter(seats[i], guard, 1, GALE_NORMAL);
		is_in(entry, 64);
		gale_exit(seats[i], &entry, GALE_OK);
	}
	assert_int_equal(counts_of(guard).entered, CELLS_MOST + 2);
	assert_int_equal(counts_of(guard).ok, CELLS_MOST + 2);
	for (int i = 0; i < CELLS_MOST + 2; i++)
		gale_leave(seats[i]);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* ---- Learning --------------------------------------------------------------------- */

/* As a backend would that answers each call in 10 ms, however many there are: the estimate
 * rises from where it began. */
static void the_ceiling_is_learned(void **state)
{
	struct gale_guard_config config = { .name = "learned", .start = 4 };
	struct gale_entry entries[1001]; /* the ceiling, and one that is refused */
	struct gale_guard *guard;
	uint64_t rose = 0;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_guard(&h, &config);
	turn_until_idle(&h);
	assert_int_equal(counts_of(guard).limit, 4);
	for (int round = 0; round < 300; round++) {
		int count = 0;

		while ((entries[count] = enter(&h, guard)).verdict == GALE_ALLOW)
			count++;
		pass(&h, GALE_MILLIS(10));
		for (int i = 0; i < count; i++)
			gale_exit(h.seat, &entries[i], GALE_OK);
		if (counts_of(guard).limit > rose)
			rose = counts_of(guard).limit;
	}
	assert_true(rose > 8);
	assert_true(counts_of(guard).refused_by[GALE_WHY_ESTIMATE] > 0);
	assert_true(counts_of(guard).estimate <= 1000);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* ---- Overdue ---------------------------------------------------------------------- */

struct lines {
	struct gale_log log;
	char last[256];
	int count;
};

static void write_line(struct gale_log *self, enum gale_level level, const char *source,
                       const char *line)
{
	struct lines *lines = (struct lines *)self;

	snprintf(lines->last, sizeof(lines->last), "%s %s: %s", gale_level_name(level),
	         source, line);
	lines->count++;
}

/* GUARD-2 */
static void a_call_that_is_overdue_is_reported_and_keeps_its_slot(void **state)
{
	struct gale_guard_config config = { .name = "slow",
		                            .law = GALE_FIXED,
		                            .ceiling = 2,
		                            .overdue_us = GALE_SECONDS(1) };
	struct lines lines = { .log = { write_line } };
	struct house_plan logged = plan;
	struct gale_entry slow, quick;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	logged.log = &lines.log;
	house_open(&h, &logged);
	guard = open_guard(&h, &config);
	turn_until_idle(&h);
	slow = enter(&h, guard);
	quick = enter(&h, guard);
	pass(&h, GALE_SECONDS(1));
	gale_exit(h.seat, &quick, GALE_OK);
	pass(&h, GALE_SECONDS(1));
	assert_int_equal(counts_of(guard).overdue_now, 1);
	assert_int_equal(counts_of(guard).in_flight, 1);
	assert_string_equal(lines.last, "warning guard slow: 1 slots or more are taken "
	                                "by calls that are overdue");
	for (int i = 0; i < 10; i++)
		pass(&h, GALE_SECONDS(1));
	assert_int_equal(lines.count, 1);
	assert_int_equal(counts_of(guard).in_flight, 1);
	assert_int_equal(counts_of(guard).overdue, 0);
	gale_exit(h.seat, &slow, GALE_OK);
	assert_int_equal(counts_of(guard).overdue, 1);
	assert_int_equal(counts_of(guard).in_flight, 0);
	pass(&h, GALE_SECONDS(1));
	pass(&h, GALE_SECONDS(1));
	assert_int_equal(counts_of(guard).overdue_now, 0);
	assert_string_equal(lines.last, "info guard slow: no call is overdue any more");
	assert_int_equal(lines.count, 2);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* No call of it ends, so nothing is learned: neither refusals nor time free a slot or add one. */
static void a_backend_that_never_returns_keeps_its_slots(void **state)
{
	struct gale_guard_config config = { .name = "silent", .start = 8 };
	struct gale_entry entries[8], more;
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_guard(&h, &config);
	turn_until_idle(&h);
	for (int i = 0; i < 8; i++) {
		entries[i] = enter(&h, guard);
		is_in(entries[i], 8);
	}
	for (int i = 0; i < 600; i++) {
		assert_int_equal(enter(&h, guard).verdict, GALE_DENY);
		pass(&h, GALE_SECONDS(1));
		assert_true(counts_of(guard).estimate <= 8);
		assert_int_equal(counts_of(guard).in_flight, 8);
	}
	assert_int_equal(counts_of(guard).entered, 8);
	assert_int_equal(counts_of(guard).refused, 600);
	assert_int_equal(counts_of(guard).overdue_now, 8);
	for (int i = 0; i < 8; i++)
		gale_exit(h.seat, &entries[i], GALE_DROPPED);
	assert_int_equal(counts_of(guard).overdue, 8);
	assert_int_equal(counts_of(guard).in_flight, 0);
	more = enter(&h, guard);
	assert_int_equal(more.verdict, GALE_ALLOW);
	gale_exit(h.seat, &more, GALE_OK);
	assert_int_equal(counts_of(guard).in_flight, 0);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* By what seats were told last: a call that began later than now, and one that is overdue. */
static void seats_that_tick_time_their_calls(void **state)
{
	struct gale_seat *later;
	struct gale_entry entry;
	struct gale_guard *guard;
	struct tally_sum sum;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_fixed(&h, 4);
	must(gale_join(h.runtime, &later) == GALE_ERR_OK);
	gale_tick(h.seat);
	pass(&h, GALE_MINUTES(2));
	gale_tick(later);
	entry = gale_enter(later, guard, 1, GALE_NORMAL);
	gale_exit(h.seat, &entry, GALE_OK);
	entry = enter(&h, guard);
	gale_exit(later, &entry, GALE_OK);
	turnstile_sum(&guard->guard.turnstile, &sum);
	assert_int_equal(sum.busy_ns[TURNSTILE_OK], GALE_MINUTES(2) * 1000);
	assert_int_equal(sum.overdue, 1);
	gale_leave(later);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

/* ---- Many guards ------------------------------------------------------------------ */

#define OPEN_AT_ONCE 1000

/* With a thread that looks at them meanwhile; in flight is nothing at the end of each. */
static void a_million_guards_come_and_go(void **state)
{
	static struct gale_guard *guards[OPEN_AT_ONCE];
	struct house_plan threads = plan;
	int rounds = LONG_OR_BRIEF(1000, 20);
	struct house h;

	(void)state;
	threads.turns = threads.still = false;
	house_open(&h, &threads);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < OPEN_AT_ONCE; i++) {
			struct gale_guard_config config = { .name = "g" };
			struct gale_entry entry;
			char name[16];

			snprintf(name, sizeof(name), "guard %d", i);
			config.name = name;
			guards[i] = open_guard(&h, &config);
			entry = enter(&h, guards[i]);
			must(entry.verdict == GALE_ALLOW);
			gale_exit(h.seat, &entry, GALE_OK);
			must(counts_of(guards[i]).in_flight == 0);
		}
		for (int i = 0; i < OPEN_AT_ONCE; i++)
			gale_guard_close(guards[i]);
	}
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_are_in_as_there_are_slots),
		cmocka_unit_test(a_call_may_take_several_but_not_too_many),
		cmocka_unit_test(sheddable_calls_see_a_part),
		cmocka_unit_test(who_observes_refuses_nothing),
		cmocka_unit_test(a_refusal_says_what_limited_it),
		cmocka_unit_test(a_second_exit_changes_nothing_and_is_counted),
		cmocka_unit_test(any_seat_may_exit_and_a_bad_one_gives_back),
		cmocka_unit_test(entries_outlive_their_guard_and_its_runtime),
		cmocka_unit_test(a_guard_is_closed_before_the_coordinator_is_told),
		cmocka_unit_test(a_guard_may_be_closed_after_its_runtime),
		cmocka_unit_test(a_bad_call_is_refused),
		cmocka_unit_test(a_child_neither_enters_nor_exits),
		cmocka_unit_test(a_seat_of_before_enters_no_guard_of_a_child),
		cmocka_unit_test(an_entry_of_no_guard_ends_nothing),
		cmocka_unit_test(seats_that_work_keep_slots),
		cmocka_unit_test(a_seat_that_leaves_gives_back_what_it_keeps),
		cmocka_unit_test(a_seat_that_stops_gives_back_what_it_keeps),
		cmocka_unit_test(after_a_fence_nothing_enters_from_a_cell),
		cmocka_unit_test(a_share_that_shrinks_calls_back_what_seats_keep),
		cmocka_unit_test(a_share_is_in_force_at_once),
		cmocka_unit_test(a_seat_without_a_cell_counts_with_the_others),
		cmocka_unit_test(the_ceiling_is_learned),
		cmocka_unit_test(a_call_that_is_overdue_is_reported_and_keeps_its_slot),
		cmocka_unit_test(a_backend_that_never_returns_keeps_its_slots),
		cmocka_unit_test(seats_that_tick_time_their_calls),
		cmocka_unit_test(a_million_guards_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
