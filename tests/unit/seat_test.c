/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seat_test.c -- asks that cannot be answered at once, and how their answers come back.
 *
 * A holder keeps the key's stripe busy, so whatever is asked of the key meanwhile goes
 * to a shard, and waits there until the holder ends: nothing here depends on luck.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <unistd.h>

#include "face/face.h"
#include "face/lend.h"
#include "face/seat.h"
#include "shards/shard.h"
#include "sim/random.h"
#include "tests/support/crew.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define LONG_US GALE_SECONDS(30)

static int tags[4096];

static bool is_readable(struct gale_seat *seat)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static void sleep_until_readable(struct gale_seat *seat)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 30000), 1);
}

static enum gale_verdict ask(struct house *h, int *tag)
{
	return gale_ask(h->seat, h->limiter, "k", 1, 1, tag).verdict;
}

static struct gale_completion fetch(struct gale_seat *seat)
{
	struct gale_completion completion;

	while (gale_seat_completions(seat, &completion, 1) == 0)
		sleep_until_readable(seat);
	return completion;
}

static bool nothing_is_in_flight(void *seat)
{
	return asks_of_seat(seat) == 0;
}

static bool something_is_in_flight(void *seat)
{
	return asks_of_seat(seat) > 0;
}

static struct house_plan plan_of(uint64_t limit)
{
	return (struct house_plan){ .rule = gale_fixed_window(limit, GALE_HOURS(1)),
		                    .shards = 1 };
}

/* Lets the holder go when an ask of the seat has reached its shard. */
struct releaser {
	struct holder holder;
	struct gale_seat *seat;
	pthread_t thread;
};

static void *release(void *arg)
{
	struct releaser *releaser = arg;

	must(becomes_true(something_is_in_flight, releaser->seat));
	holder_end(&releaser->holder);
	return NULL;
}

static void hold_until_asked(struct releaser *releaser, struct house *h)
{
	releaser->seat = h->seat;
	holder_begin(&releaser->holder, h->limiter, "k");
	must(pthread_create(&releaser->thread, NULL, release, releaser) == 0);
}

static void was_asked(struct releaser *releaser)
{
	must(pthread_join(releaser->thread, NULL) == 0);
}

/* ---- Pending --------------------------------------------------------------------- */

static void an_ask_that_must_wait_is_pending_and_answered_later(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_completion completion;
	struct gale_answer answer;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	answer = gale_ask(h.seat, h.limiter, "k", 1, 1, &tags[7]);
	assert_int_equal(answer.verdict, GALE_PENDING);
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 0);
	holder_end(&holder);
	completion = fetch(h.seat);
	assert_ptr_equal(completion.tag, &tags[7]);
	assert_int_equal(completion.answer.verdict, GALE_ALLOW);
	assert_int_equal(completion.answer.why, GALE_WHY_RULE);
	assert_int_equal(completion.answer.limit, 2);
	assert_int_equal(completion.answer.remaining, 1);
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 0);
	assert_true(house_close(&h));
}

static void an_ask_of_another_key_need_not_wait(void **state)
{
	struct house_plan plan = plan_of(2);
	struct holder holder;
	struct house h;
	int pending = 0;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	for (char key = 'A'; key <= 'Z'; key++)
		pending += gale_ask(h.seat, h.limiter, &key, 1, 1, NULL).verdict ==
		           GALE_PENDING;
	assert_in_range(pending, 0, 20); /* those of the same stripe: one in 64 */
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_true(house_close(&h));
}

static void completions_come_in_order_with_their_tags(void **state)
{
	struct house_plan plan = plan_of(5);
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	holder_end(&holder);
	for (int i = 0; i < 100; i++) {
		struct gale_completion completion = fetch(h.seat);

		assert_ptr_equal(completion.tag, &tags[i]);
		assert_int_equal(completion.answer.verdict,
		                 i < 5 ? GALE_ALLOW : GALE_DENY);
		assert_int_equal(completion.answer.remaining, i < 5 ? 4 - i : 0);
	}
	assert_true(house_close(&h));
}

static void
the_descriptor_is_readable_while_completions_wait_and_only_then(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_completion completions[4];
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_false(is_readable(h.seat));
	for (int round = 0; round < 10; round++) {
		holder_begin(&holder, h.limiter, "k");
		for (int i = 0; i < 4; i++)
			assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
		assert_false(is_readable(h.seat));
		assert_int_equal(gale_seat_completions(h.seat, completions, 4), 0);
		holder_end(&holder);
		sleep_until_readable(h.seat);
		assert_true(becomes_true(nothing_is_in_flight, h.seat));

		assert_int_equal(gale_seat_completions(h.seat, completions, 0), 0);
		assert_true(is_readable(h.seat));
		assert_int_equal(gale_seat_completions(h.seat, completions, 1), 1);
		assert_true(is_readable(h.seat));
		assert_int_equal(gale_seat_completions(h.seat, completions, 4), 3);
		assert_ptr_equal(completions[2].tag, &tags[3]);
		assert_false(is_readable(h.seat));
	}
	assert_true(house_close(&h));
}

/* Looking for a free place, the ask finds a completion; it must leave a sign of it. */
static void asking_on_keeps_the_descriptor_readable(void **state)
{
	struct house_plan plan = plan_of(5);
	struct holder holder;
	struct house h;

	(void)state;
	plan.pending_max = 1;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(ask(&h, &tags[0]), GALE_PENDING);
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_true(is_readable(h.seat));

	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(gale_ask(h.seat, h.limiter, "k", 1, 1, NULL).why,
	                 GALE_WHY_BUSY);
	holder_end(&holder);
	assert_true(is_readable(h.seat));
	assert_ptr_equal(fetch(h.seat).tag, &tags[0]);
	assert_true(house_close(&h));
}

static void no_answer_without_a_place_to_put_it(void **state)
{
	struct house_plan plan = plan_of(5);
	struct gale_completion completion;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(ask(&h, &tags[0]), GALE_PENDING);
	holder_end(&holder);
	sleep_until_readable(h.seat);
	assert_int_equal(gale_seat_completions(h.seat, NULL, 1), 0);
	assert_int_equal(gale_seat_completions(NULL, &completion, 1), 0);
	assert_int_equal(gale_seat_fd(NULL), -1);
	assert_true(is_readable(h.seat));
	assert_ptr_equal(fetch(h.seat).tag, &tags[0]);
	assert_true(house_close(&h));
}

/* ---- Too many -------------------------------------------------------------------- */

static void asks_beyond_pending_max(uint32_t pending_max, enum gale_on_outage policy)
{
	struct house_plan plan = plan_of(3);
	struct holder holder;
	struct house h;

	plan.pending_max = pending_max;
	plan.on_outage = policy;
	house_open(&h, &plan);
	for (int round = 0; round < 3; round++) {
		holder_begin(&holder, h.limiter, "k");
		for (uint32_t i = 0; i < pending_max; i++)
			assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
		for (int i = 0; i < 3; i++) {
			struct gale_answer answer =
			    gale_ask(h.seat, h.limiter, "k", 1, 1, NULL);

			assert_int_equal(answer.why, GALE_WHY_BUSY);
			assert_int_equal(answer.verdict, policy == GALE_ON_OUTAGE_ALLOW
			                                     ? GALE_ALLOW
			                                     : GALE_DENY);
			assert_int_equal(answer.limit, 3);
			assert_int_equal(answer.remaining, 0);
			assert_int_equal(answer.retry_after_us, 0);
		}
		holder_end(&holder);
		for (uint32_t i = 0; i < pending_max; i++)
			assert_ptr_equal(fetch(h.seat).tag, &tags[i]);
	}
	assert_true(house_close(&h));
}

static void more_asks_than_may_be_pending_are_answered_by_the_policy(void **state)
{
	static const uint32_t most[] = { 1, 2, 3, 256 };

	(void)state;
	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		asks_beyond_pending_max(most[i], GALE_ON_OUTAGE_DENY);
		asks_beyond_pending_max(most[i], GALE_ON_OUTAGE_ALLOW);
	}
}

/* A shard's mailbox is as bounded as a seat; what it did take, it answers. */
static void a_shard_with_its_hands_full_refuses_and_answers_the_rest(void **state)
{
	struct house_plan plan = plan_of(5);
	struct holder holder;
	struct house h;
	unsigned pending = 0;

	(void)state;
	plan.pending_max = 4096;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	while (ask(&h, &tags[pending]) == GALE_PENDING)
		pending++;
	assert_in_range(pending, SHARD_MAILS, SHARD_MAILS + 1);
	holder_end(&holder);
	for (unsigned i = 0; i < pending; i++)
		assert_ptr_equal(fetch(h.seat).tag, &tags[i]);
	assert_true(house_close(&h));
}

/* ---- Waiting --------------------------------------------------------------------- */

static void a_wait_returns_with_the_answer(void **state)
{
	struct house_plan plan = plan_of(2);
	struct releaser releaser;
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 3; i++) {
		hold_until_asked(&releaser, &h);
		answer = gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US);
		was_asked(&releaser);
		assert_int_equal(answer.verdict, i < 2 ? GALE_ALLOW : GALE_DENY);
		assert_int_equal(answer.why, GALE_WHY_RULE);
		assert_int_equal(answer.remaining, i < 2 ? 1 - i : 0);
		assert_false(is_readable(h.seat));
	}
	hold_until_asked(&releaser, &h);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 1, UINT64_MAX);
	was_asked(&releaser);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(house_close(&h));
}

static void a_wait_leaves_the_completions_of_asks_alone(void **state)
{
	struct house_plan plan = plan_of(9);
	struct releaser releaser;
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&releaser.holder, h.limiter, "k");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	releaser.seat = h.seat;
	must(pthread_create(&releaser.thread, NULL, release, &releaser) == 0);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US);
	was_asked(&releaser);
	assert_int_equal(answer.verdict, GALE_ALLOW);
	assert_int_equal(answer.why, GALE_WHY_RULE);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_true(is_readable(h.seat));
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(fetch(h.seat).tag, &tags[i]);
	assert_false(is_readable(h.seat));
	assert_true(house_close(&h));
}

static void late_by(struct house *h, uint64_t within_us, enum gale_on_outage policy)
{
	struct gale_answer answer =
	    gale_wait(h->seat, h->limiter, "k", 1, 1, within_us);

	assert_int_equal(answer.why, GALE_WHY_LATE);
	assert_int_equal(answer.verdict,
	                 policy == GALE_ON_OUTAGE_ALLOW ? GALE_ALLOW : GALE_DENY);
	assert_int_equal(answer.limit, 9);
}

static void a_wait_that_is_late(enum gale_on_outage policy)
{
	struct house_plan plan = plan_of(9);
	struct gale_completion completion;
	struct holder holder;
	struct house h;

	plan.on_outage = policy;
	plan.pending_max = 3;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	late_by(&h, 0, policy); /* not even begun, so nothing is on its way */
	late_by(&h, 1, policy);
	late_by(&h, 10, policy);
	late_by(&h, 2000, policy);
	/* All three are still on their way, and nobody waits for them. */
	assert_int_equal(gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US).why,
	                 GALE_WHY_BUSY);
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 0);
	assert_false(is_readable(h.seat));

	/* They were spent, as nobody could know; and their places are free again. */
	assert_int_equal(house_ask(&h, "k").remaining, 5);
	holder_begin(&holder, h.limiter, "k");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	holder_end(&holder);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(fetch(h.seat).tag, &tags[i]);
	assert_true(house_close(&h));
}

static void a_wait_that_is_late_says_so_and_the_seat_goes_on(void **state)
{
	(void)state;
	a_wait_that_is_late(GALE_ON_OUTAGE_DENY);
	a_wait_that_is_late(GALE_ON_OUTAGE_ALLOW);
}

static void a_wait_of_no_time_is_not_begun(void **state)
{
	struct house_plan plan = plan_of(9);
	struct gale_answer answer = { .slot = { 5, 0 } };
	struct gale_outlook outlook;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	late_by(&h, 0, GALE_ON_OUTAGE_DENY);
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, 0, &answer),
	                 GALE_ERR_LATE);
	assert_int_equal(gale_forecast(h.seat, h.limiter, "k", 1, 1, 0, &outlook),
	                 GALE_ERR_LATE);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, 0), GALE_ERR_LATE);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, 0, &answer),
	                 GALE_ERR_LATE);
	assert_int_equal(asks_of_seat(h.seat), 0);
	holder_end(&holder);
	assert_int_equal(house_ask(&h, "k").remaining, 8); /* nothing was spent */
	assert_true(house_close(&h));
}

/* Places of abandoned waits come back also when nobody fetches completions. */
static void an_ask_finds_the_place_of_an_abandoned_wait(void **state)
{
	struct house_plan plan = plan_of(9);
	struct holder holder;
	struct house h;

	(void)state;
	plan.pending_max = 1;
	house_open(&h, &plan);
	for (int round = 0; round < 20; round++) {
		holder_begin(&holder, h.limiter, "k");
		late_by(&h, 1, GALE_ON_OUTAGE_DENY);
		holder_end(&holder);
		assert_true(becomes_true(nothing_is_in_flight, h.seat));
	}
	assert_true(house_close(&h));
}

/* An ask that finds an abandoned wait of a limiter that nobody else has any more. */
struct finder {
	struct house house;
	struct holder holder;
	_Atomic bool found;
};

static void *abandon_and_find(void *arg)
{
	struct finder *finder = arg;
	struct house *h = &finder->house;
	struct gale_limiter *gone = house_limiter(h, "gone", gale_gcra(1, 1, 1));
	struct gale_seat *seat;
	struct holder holder;

	must(gale_join(h->runtime, &seat) == GALE_ERR_OK);
	holder_begin(&holder, gone, "k");
	must(gale_wait(seat, gone, "k", 1, 1, 1).why == GALE_WHY_LATE);
	gale_limiter_close(gone);
	holder_end(&holder);
	must(becomes_true(nothing_is_in_flight, seat));

	/* Now the sweeper waits for the stripe, with all that it holds. */
	holder_begin(&finder->holder, h->limiter, "k");
	runtime_wake_sweeper(h->runtime);
	for (int i = 0; i < 10000; i++)
		sched_yield();
	must(gale_ask(seat, h->limiter, "k", 1, 1, NULL).verdict == GALE_PENDING);
	store_relaxed(&finder->found, true);
	must(becomes_true(nothing_is_in_flight, seat));
	gale_leave(seat);
	return NULL;
}

static bool has_found(void *arg)
{
	struct finder *finder = arg;

	return load_relaxed(&finder->found);
}

/* gale.h: gale_ask never waits for a store, a lock or another thread. */
static void an_ask_does_not_wait_for_the_sweeper(void **state)
{
	struct house_plan plan = plan_of(9);
	struct finder finder = { .found = false };
	pthread_t thread;
	bool found;

	(void)state;
	plan.pending_max = 1;
	house_open(&finder.house, &plan);
	must(pthread_create(&thread, NULL, abandon_and_find, &finder) == 0);
	found = becomes_true(has_found, &finder);
	holder_end(&finder.holder);
	must(pthread_join(thread, NULL) == 0);
	assert_true(found);
	assert_true(house_close(&finder.house));
}

/* gale.h: a name is forgotten when its last user has closed it, though the sweeper may
 * just be in the store. */
static void *close_and_open_again(void *arg)
{
	struct finder *finder = arg;
	struct house *h = &finder->house;
	struct gale_store_config config = { .url = "memory:swept" };
	struct gale_seat *seat;
	struct gale_answer answer;

	gale_limiter_close(h->limiter);
	gale_store_close(h->store);
	must(gale_store_open(h->runtime, &config, &h->store) == GALE_ERR_OK);
	h->limiter = house_limiter(h, "house", gale_fixed_window(9, GALE_HOURS(1)));
	must(gale_join(h->runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, h->limiter, "k", 1, 1, LONG_US);
	store_relaxed(&finder->found, answer.remaining != 8);
	gale_leave(seat);
	return NULL;
}

/* In the place of a store: its sweep takes as long as the test wants. */
struct slow_sweep {
	struct store store;
	struct store *inner;
	_Atomic bool is_inside, may_end, is_closed_inside;
};

static bool slow_sweep(struct store *self)
{
	struct slow_sweep *slow = (struct slow_sweep *)self;

	store_relaxed(&slow->is_inside, true);
	while (!load_relaxed(&slow->may_end))
		sched_yield();
	store_relaxed(&slow->is_inside, false);
	return true;
}

static void slow_close(struct store *self)
{
	struct slow_sweep *slow = (struct slow_sweep *)self;

	store_relaxed(&slow->is_closed_inside, load_relaxed(&slow->is_inside));
	slow->inner->ops->close(slow->inner);
}

static bool is_being_swept(void *arg)
{
	struct slow_sweep *slow = arg;

	return load_relaxed(&slow->is_inside);
}

static void *close_store(void *store)
{
	gale_store_close(store);
	return NULL;
}

static void a_store_is_not_closed_while_it_is_swept(void **state)
{
	static const struct store_ops ops = { .sweep = slow_sweep,
		                              .close = slow_close };
	struct house_plan plan = plan_of(9);
	struct slow_sweep slow = { .store = { .ops = &ops } };
	pthread_t thread;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	gale_limiter_close(h.limiter);
	h.limiter = NULL;
	slow.inner = h.store->inner;
	house_put_inside(&h, &slow.store);
	runtime_wake_sweeper(h.runtime);
	assert_true(becomes_true(is_being_swept, &slow));
	must(pthread_create(&thread, NULL, close_store, h.store) == 0);
	for (int i = 0; i < 10000; i++)
		sched_yield();
	store_relaxed(&slow.may_end, true);
	must(pthread_join(thread, NULL) == 0);
	assert_false(load_relaxed(&slow.is_closed_inside));
	h.store = NULL;
	assert_true(house_close(&h));
}

static void a_name_is_forgotten_though_it_is_being_swept(void **state)
{
	struct house_plan plan = plan_of(9);
	struct finder finder = { .found = false };
	pthread_t thread;

	(void)state;
	plan.url = "memory:swept";
	house_open(&finder.house, &plan);
	(void)house_wait(&finder.house, "k");
	holder_begin(&finder.holder, finder.house.limiter, "k");
	runtime_wake_sweeper(finder.house.runtime);
	for (int i = 0; i < 10000; i++)
		sched_yield();
	must(pthread_create(&thread, NULL, close_and_open_again, &finder) == 0);
	for (int i = 0; i < 10000; i++)
		sched_yield();
	holder_end(&finder.holder);
	must(pthread_join(thread, NULL) == 0);
	assert_false(finder.found);
	assert_true(house_close(&finder.house));
}

/* ---- Looking, while it must wait ------------------------------------------------- */

static void looks_and_corrections_wait_for_the_store(void **state)
{
	struct house_plan plan = { .rule = gale_leaky_bucket(10, GALE_SECONDS(1),
		                                             GALE_SECONDS(1)),
		                   .shards = 1 };
	struct gale_outlook forecast;
	struct releaser releaser;
	struct gale_answer booked, peeked;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	(void)house_ask(&h, "k");
	hold_until_asked(&releaser, &h);
	booked = gale_wait(h.seat, h.limiter, "k", 1, 1, LONG_US);
	was_asked(&releaser);
	assert_int_equal(booked.delay_ns, 100000000);

	hold_until_asked(&releaser, &h);
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &peeked),
	                 GALE_ERR_OK);
	was_asked(&releaser);
	assert_int_equal(peeked.delay_ns, 200000000);

	hold_until_asked(&releaser, &h);
	assert_int_equal(
	    gale_forecast(h.seat, h.limiter, "k", 1, 3, LONG_US, &forecast),
	    GALE_ERR_OK);
	was_asked(&releaser);
	assert_int_equal(forecast.spendable_now, 9 / 3);
	assert_int_equal(forecast.full_after_us, GALE_MILLIS(200));

	hold_until_asked(&releaser, &h);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &booked),
	                 GALE_ERR_OK);
	was_asked(&releaser);
	assert_int_equal(booked.slot.us, 0);
	assert_int_equal(house_ask(&h, "k").delay_ns, 100000000);

	hold_until_asked(&releaser, &h);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, LONG_US), GALE_ERR_OK);
	was_asked(&releaser);
	assert_int_equal(house_ask(&h, "k").delay_ns, 0);
	assert_true(house_close(&h));
}

static void looks_and_corrections_are_late_or_too_many(void **state)
{
	struct house_plan plan = plan_of(9);
	struct gale_answer answer = { .slot = { 5, 0 } };
	struct gale_outlook forecast;
	struct holder holder;
	struct house h;

	(void)state;
	plan.pending_max = 4;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, 1, &answer),
	                 GALE_ERR_LATE);
	assert_int_equal(gale_forecast(h.seat, h.limiter, "k", 1, 1, 10, &forecast),
	                 GALE_ERR_LATE);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, 1), GALE_ERR_LATE);
	assert_int_equal(answer.slot.us, 5);
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, 1, &answer),
	                 GALE_ERR_LATE);
	assert_int_equal(answer.slot.us, 0); /* it may have been given back */

	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &answer),
	                 GALE_ERR_BUSY);
	assert_int_equal(
	    gale_forecast(h.seat, h.limiter, "k", 1, 1, LONG_US, &forecast),
	    GALE_ERR_BUSY);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, LONG_US), GALE_ERR_BUSY);
	answer.slot.us = 5;
	assert_int_equal(gale_cancel(h.seat, h.limiter, "k", 1, 1, LONG_US, &answer),
	                 GALE_ERR_BUSY);
	assert_int_equal(answer.slot.us, 5); /* it was not tried */
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_int_equal(gale_peek(h.seat, h.limiter, "k", 1, LONG_US, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.remaining, 9);
	assert_true(house_close(&h));
}

/* Denials are on their way to a shard, which does not turn; there is a place left for what
 * this thread wants to know now. */
static void a_denial_to_be_remembered_leaves_room(void **state)
{
	struct house_plan plan = plan_of(1);

	(void)state;
	plan.mode = GALE_CACHED_DENY;
	plan.turns = true;
	for (plan.pending_max = 1; plan.pending_max <= 5; plan.pending_max++) {
		struct house h;

		house_open(&h, &plan);
		for (int i = 0; i < 4; i++)
			for (const char *key = "abcdef"; *key; key++)
				(void)ask_settled(h.seat, h.limiter, key, 1, 1);
		assert_true(asks_of_seat(h.seat) <= plan.pending_max / 2);
		assert_int_equal(gale_reset(h.seat, h.limiter, "a", 1, LONG_US),
		                 GALE_ERR_OK);
		assert_true(house_close(&h));
	}
}

/* The seat is told of a denial that the store, asked at that instant, has said. */
static void hear_denial(struct house *h, mono asked)
{
	const struct lender *lender = &h->limiter->lender;
	uint8_t key[STORE_KEY_MAX] = { lender->name_len };
	struct store_op op = { .verb = STORE_STEP,
		               .key = key,
		               .key_len = 2 + lender->name_len,
		               .cost = 1,
		               .answer = { .verdict = GALE_DENY,
		                           .retry_after_us = GALE_HOURS(1) } };

	memcpy(key + 1, lender->name, lender->name_len);
	key[1 + lender->name_len] = 'k';
	seat_note_denial(h->seat, h->limiter, &op, asked);
	(void)gale_turn(h->runtime);
}

/* The store said it before it was told to forget the key, and the shard hears it afterwards. */
static void a_denial_from_before_a_reset_is_not_remembered(void **state)
{
	struct house_plan plan = plan_of(1000);
	struct house h;
	mono before;

	(void)state;
	plan.mode = GALE_CACHED_DENY;
	plan.turns = true;
	house_open(&h, &plan);
	before = seat_now(h.seat);
	assert_int_equal(gale_reset(h.seat, h.limiter, "k", 1, LONG_US), GALE_ERR_OK);
	hear_denial(&h, before);
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	hear_denial(&h, mono_after(seat_now(h.seat), 1000000));
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_SPENT);
	assert_true(house_close(&h));
}

/* ---- Leaving and closing --------------------------------------------------------- */

static bool nothing_remains(void *arg)
{
	struct house *h = arg;
	struct gale_answer answer;

	must(gale_peek(h->seat, h->limiter, "k", 1, LONG_US, &answer) == GALE_ERR_OK);
	return answer.remaining == 0;
}

static void leaving_with_asks_pending_loses_nothing_but_the_answers(void **state)
{
	struct house_plan plan = plan_of(9);
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (uint64_t round = 0; round < 3; round++) {
		holder_begin(&holder, h.limiter, "k");
		assert_int_equal(ask(&h, &tags[0]), GALE_PENDING);
		assert_int_equal(ask(&h, &tags[1]), GALE_PENDING);
		assert_int_equal(gale_wait(h.seat, h.limiter, "k", 1, 1, 1).why,
		                 GALE_WHY_LATE);
		gale_leave(h.seat);
		holder_end(&holder);
		assert_int_equal(gale_join(h.runtime, &h.seat), GALE_ERR_OK);
	}
	/* Three rounds of three took nine, as soon as the shard gets to them. */
	assert_true(becomes_true(nothing_remains, &h));
	assert_true(house_close(&h));
}

static void leaving_with_completions_unfetched_leaks_nothing(void **state)
{
	struct house_plan plan = plan_of(9);
	struct gale_completion completion;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 1);
	assert_true(house_close(&h)); /* four are ready */

	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_true(house_close(&h)); /* all five are still in the mailbox */
}

static void *close_runtime(void *runtime)
{
	gale_runtime_close(runtime);
	return NULL;
}

static bool is_closed(void *arg)
{
	struct house *h = arg;

	return load_relaxed(&h->runtime->closed);
}

static void closing_the_runtime_answers_what_is_pending_first(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_completion completions[8];
	struct holder holder;
	struct house h;
	pthread_t closer;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(&h, &tags[i]), GALE_PENDING);
	must(pthread_create(&closer, NULL, close_runtime, h.runtime) == 0);
	assert_true(becomes_true(is_closed, &h));
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(gale_seat_completions(h.seat, completions, 8), 0);
	holder_end(&holder);
	must(pthread_join(closer, NULL) == 0);

	assert_true(is_readable(h.seat));
	assert_int_equal(gale_seat_completions(h.seat, completions, 8), 5);
	for (int i = 0; i < 5; i++) {
		assert_ptr_equal(completions[i].tag, &tags[i]);
		assert_int_equal(completions[i].answer.why, GALE_WHY_RULE);
		assert_int_equal(completions[i].answer.verdict,
		                 i < 3 ? GALE_ALLOW : GALE_DENY);
	}
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_DENY);
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_CLOSED);
	h.runtime = NULL;
	assert_true(house_close(&h));
}

/* An ask that a test posts itself, as a seat would. */
struct own_ask {
	struct ask_home home;
	struct ask ask;
	_Atomic bool answered;
};

static void own_answered(struct ask_home *home, struct ask *ask)
{
	struct own_ask *own = (struct own_ask *)home; /* its first member */

	must(ask->result == STORE_DONE);
	store_relaxed(&own->answered, true);
}

/* Who has seen the runtime open, and has not posted yet, is waited for. */
static void closing_waits_for_those_who_are_about_to_post(void **state)
{
	struct house_plan plan = plan_of(3);
	struct own_ask own = { .home = { own_answered }, .ask.key = { 'k' } };
	struct house h;
	pthread_t closer;

	(void)state;
	house_open(&h, &plan);
	own.ask.home = &own.home;
	own.ask.lender = &h.limiter->lender;
	own.ask.op =
	    (struct store_op){ .verb = STORE_PEEK, .key = own.ask.key, .key_len = 1 };
	add_relaxed(&h.runtime->posters, 1);
	must(pthread_create(&closer, NULL, close_runtime, h.runtime) == 0);
	assert_true(becomes_true(is_closed, &h));
	for (int i = 0; i < 10000; i++)
		sched_yield(); /* it has all the time that it would need */
	assert_true(shard_post(&h.runtime->shards[0], &own.ask));
	sub_acq_rel(&h.runtime->posters, 1);
	must(pthread_join(closer, NULL) == 0);
	assert_true(own.answered);
	h.runtime = NULL;
	assert_true(house_close(&h));
}

static void closing_the_limiter_does_not_take_its_answers_away(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_completion completion;
	struct holder holder;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(ask(&h, &tags[3]), GALE_PENDING);
	gale_limiter_close(h.limiter);
	gale_store_close(h.store);
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	holder_end(&holder);
	completion = fetch(h.seat);
	assert_ptr_equal(completion.tag, &tags[3]);
	assert_int_equal(completion.answer.verdict, GALE_ALLOW);
	assert_int_equal(completion.answer.limit, 3);
	h.limiter = NULL;
	h.store = NULL;
	assert_true(house_close(&h));
}

/* face.h, FACE-2: a use after close is refused, not followed. */
static void a_seat_that_has_left_is_refused_everything(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_completion completion;
	struct gale_outlook forecast;
	struct gale_answer answer;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	gale_leave(h.seat);
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_equal(house_wait(&h, "k").why, GALE_WHY_CLOSED);
	assert_int_not_equal(gale_peek(h.seat, h.limiter, "k", 1, 0, &answer),
	                     GALE_ERR_OK);
	assert_int_not_equal(gale_forecast(h.seat, h.limiter, "k", 1, 1, 0, &forecast),
	                     GALE_ERR_OK);
	assert_int_not_equal(gale_reset(h.seat, h.limiter, "k", 1, 0), GALE_ERR_OK);
	assert_int_equal(gale_seat_completions(h.seat, &completion, 1), 0);
	assert_int_equal(gale_seat_fd(h.seat), -1);
	h.seat = NULL;
	assert_true(house_close(&h));
}

/* What the number of its descriptor now means is none of its business. */
static void a_seat_that_has_left_does_not_touch_the_descriptor_of_another(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_completion completion;
	struct holder holder;
	struct gale_seat *left;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	left = h.seat;
	gale_leave(left);
	assert_int_equal(gale_join(h.runtime, &h.seat), GALE_ERR_OK);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(ask(&h, &tags[0]), GALE_PENDING);
	holder_end(&holder);
	assert_true(becomes_true(nothing_is_in_flight, h.seat));
	assert_int_equal(gale_seat_completions(left, &completion, 1), 0);
	assert_true(is_readable(h.seat));
	assert_ptr_equal(fetch(h.seat).tag, &tags[0]);
	assert_true(house_close(&h));
}

static struct purse *purse_of(struct house *h, const char *key)
{
	struct lender *lender = &h->limiter->lender;
	struct purse_name name = { .lender = lender,
		                   .key = (const uint8_t *)key,
		                   .key_len = (uint16_t)strlen(key),
		                   .hash = local_hash(lender, key, strlen(key)) };

	return purses_find(&runtime_shard(h->runtime, name.hash)->lessor.purses, &name);
}

/* What it read there, nobody would keep for it.  It tells no time, so an ask does not look, and
 * a prefetch does. */
static void a_seat_that_has_left_finds_no_purse(void **state)
{
	struct house_plan plan = plan_of(3);
	struct gale_seat *left;
	struct purse *purse;
	struct house h;

	(void)state;
	plan.mode = GALE_LEASED;
	plan.turns = true; /* nobody else looks at the purse */
	house_open(&h, &plan);
	assert_int_equal(house_wait(&h, "key").verdict, GALE_ALLOW);
	purse = purse_of(&h, "key");
	assert_non_null(purse);
	store_relaxed(&purse->used, false);
	left = h.seat;
	h.seat = NULL;
	gale_leave(left);
	gale_prefetch(left, h.limiter, "key", 3);
	assert_int_equal(gale_ask(left, h.limiter, "key", 3, 1, NULL).why,
	                 GALE_WHY_CLOSED);
	assert_false(load_relaxed(&purse->used));
	assert_true(house_close(&h));
}

/* ---- Numbers --------------------------------------------------------------------- */

#define CROWD (2 * CELLS_MOST)
#define TIMES 4000

/* Who has which number, by one who looks at all. */
struct crowd {
	struct gale_runtime *runtime;
	struct gale_seat *seats[CROWD];
	struct chance chance;
};

static uint32_t lowest_free(const struct crowd *crowd)
{
	bool taken[CELLS_MOST + 1] = { false };
	uint32_t lowest = 0;

	for (int i = 0; i < CROWD; i++)
		if (crowd->seats[i])
			taken[crowd->seats[i]->number] = true;
	while (lowest < CELLS_MOST && taken[lowest])
		lowest++;
	return lowest;
}

static void join(struct crowd *crowd, uint64_t who)
{
	uint32_t number = lowest_free(crowd);

	assert_int_equal(gale_join(crowd->runtime, &crowd->seats[who]), GALE_ERR_OK);
	assert_int_equal(crowd->seats[who]->number, number);
}

static void leave(struct crowd *crowd, uint64_t who)
{
	gale_leave(crowd->seats[who]);
	crowd->seats[who] = NULL;
}

/* Half of them are there at a time: about as many as there are numbers. */
static void come_and_go(struct crowd *crowd)
{
	uint64_t who = chance_below(&crowd->chance, CROWD);

	if (crowd->seats[who])
		leave(crowd, who);
	else
		join(crowd, who);
}

static void crowd_open(struct crowd *crowd, uint64_t seed)
{
	struct gale_config config = { .shards = 1, .pending_max = 1, .turns = true };

	*crowd = (struct crowd){ .chance = { seed } };
	assert_int_equal(gale_runtime_open(&config, &crowd->runtime), GALE_ERR_OK);
}

static void crowd_close(struct crowd *crowd)
{
	for (int i = 0; i < CROWD; i++)
		gale_leave(crowd->seats[i]);
	gale_runtime_close(crowd->runtime);
}

/* SEAT-4: whoever comes has the lowest number that is free, in whatever order others left. */
static void a_seat_has_the_lowest_number_that_is_free(void **state)
{
	struct crowd crowd;

	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		crowd_open(&crowd, seed);
		for (int i = 0; i < TIMES; i++)
			come_and_go(&crowd);
		crowd_close(&crowd);
	}
}

/* Oldest first, and youngest first: all numbers are there again. */
static void all_numbers_come_back(void **state)
{
	struct crowd crowd;

	(void)state;
	crowd_open(&crowd, 0);
	for (int round = 0; round < 4; round++) {
		for (uint64_t i = 0; i < CROWD; i++)
			join(&crowd, i);
		assert_int_equal(crowd.seats[CROWD - 1]->number, CELLS_MOST);
		for (uint64_t i = 0; i < CROWD; i++)
			leave(&crowd, round % 2 ? i : CROWD - 1 - i);
	}
	crowd_close(&crowd);
}

static bool nobody_has_0(void *arg)
{
	struct gale_runtime *runtime = arg;
	bool free;

	lock_take(&runtime->lock);
	free = (runtime->locked.numbers & 1) == 0;
	lock_drop(&runtime->lock);
	return free;
}

/* SEAT-3, SEAT-4: until then it is listed, though its thread has left. */
static void a_number_is_free_when_the_last_ask_is_answered(void **state)
{
	struct house_plan plan = plan_of(3);
	struct holder holder;
	struct gale_seat *next;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	assert_int_equal(h.seat->number, 0);
	holder_begin(&holder, h.limiter, "k");
	assert_int_equal(ask(&h, &tags[0]), GALE_PENDING);
	gale_leave(h.seat);
	assert_int_equal(gale_join(h.runtime, &h.seat), GALE_ERR_OK);
	assert_int_equal(h.seat->number, 1);
	holder_end(&holder);
	assert_true(becomes_true(nobody_has_0, h.runtime));
	assert_int_equal(gale_join(h.runtime, &next), GALE_ERR_OK);
	assert_int_equal(next->number, 0);
	gale_leave(next);
	assert_true(house_close(&h));
}

/* However many there are: one whose neighbours are nowhere that could be read is not looked
 * at, but by those neighbours. */
static void who_joins_or_leaves_looks_at_no_other_seat(void **state)
{
	struct list *nowhere = (struct list *)(uintptr_t)WET_ALIGN;
	struct list seat, reader;
	struct crowd crowd;

	(void)state;
	crowd_open(&crowd, 0);
	for (uint64_t i = 0; i < 5; i++)
		join(&crowd, i);
	seat = crowd.seats[2]->place;
	reader = crowd.seats[2]->reader.place;
	crowd.seats[2]->place = (struct list){ nowhere, nowhere };
	crowd.seats[2]->reader.place = (struct list){ nowhere, nowhere };
	join(&crowd, 5);
	leave(&crowd, 0);
	leave(&crowd, 4);
	join(&crowd, 4);
	crowd.seats[2]->place = seat;
	crowd.seats[2]->reader.place = reader;
	crowd_close(&crowd);
}

struct hall {
	struct gale_runtime *runtime;
	_Atomic bool has_one[CELLS_MOST]; /* by number */
};

static void sit_down_and_leave(void *arg, unsigned who)
{
	struct hall *hall = arg;
	struct gale_seat *seat;

	(void)who;
	for (int i = 0; i < 500; i++) {
		must(gale_join(hall->runtime, &seat) == GALE_ERR_OK);
		must(seat->number < CELLS_MOST);
		must(!swap_relaxed(&hall->has_one[seat->number], true));
		store_relaxed(&hall->has_one[seat->number], false);
		gale_leave(seat);
	}
}

static void threads_at_once_have_numbers_of_their_own(void **state)
{
	struct gale_config config = { .shards = 1, .pending_max = 1, .turns = true };
	struct hall hall = { .has_one = { false } };

	(void)state;
	assert_int_equal(gale_runtime_open(&config, &hall.runtime), GALE_ERR_OK);
	crew_run(8, sit_down_and_leave, &hall);
	gale_runtime_close(hall.runtime);
}

/* ---- Ticks ----------------------------------------------------------------------- */

/* From credit: what is left of its window says when it was made. */
static uint64_t left_us(struct house *h)
{
	struct gale_answer answer = gale_ask(h->seat, h->limiter, "k", 1, 1, NULL);

	assert_int_equal(answer.verdict, GALE_ALLOW);
	return answer.reset_after_us;
}

static void open_with_credit(struct house *h, bool still)
{
	struct house_plan plan = plan_of(1000);

	plan.mode = GALE_LEASED;
	plan.lease.sizing = GALE_SIZE_FIXED;
	plan.lease.batch = 1000;
	plan.turns = true;
	plan.still = still;
	house_open(h, &plan);
	assert_int_equal(house_wait(h, "k").verdict, GALE_ALLOW);
}

static void asks_between_two_ticks_are_made_at_one_instant(void **state)
{
	struct house h;
	uint64_t left;

	(void)state;
	open_with_credit(&h, /* still= */ true);
	left = left_us(&h);
	for (uint64_t turn = 0; turn < 3; turn++) {
		gale_tick(h.seat);
		for (uint64_t i = 0; i < 3; i++) {
			assert_int_equal(left_us(&h), left);
			test_clock_advance(&h.clock, GALE_SECONDS(1));
		}
		left -= 3 * GALE_SECONDS(1);
	}
	assert_true(house_close(&h));
}

/* By the processor's counter if it tells, or else by the clock; asks read neither then. */
static void a_tick_says_what_time_it_is_until_the_next(void **state)
{
	struct house h;

	(void)state;
	open_with_credit(&h, /* still= */ false);
	for (int runs = 0; runs < 2; runs++) {
		mono now = clock_now(h.runtime->node_clock);

		h.seat->counter = (struct counter){ .ticks = counter_ticks(),
			                            .ns = now.ns,
			                            .good = runs ? UINT64_MAX : 0,
			                            .rate = UINT64_C(1) << 32 };
		gale_tick(h.seat);
		assert_true(h.seat->ticked.ns >= now.ns);
		now = h.seat->ticked;
		left_us(&h);
		assert_int_equal(h.seat->ticked.ns, now.ns);
	}
	assert_true(house_close(&h));
}

static void who_has_never_ticked_reads_it_each_time(void **state)
{
	struct house h;
	uint64_t left;

	(void)state;
	open_with_credit(&h, /* still= */ true);
	left = left_us(&h);
	for (int i = 0; i < 3; i++) {
		test_clock_advance(&h.clock, GALE_SECONDS(1));
		left -= GALE_SECONDS(1);
		assert_int_equal(left_us(&h), left);
	}
	assert_true(house_close(&h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ask_that_must_wait_is_pending_and_answered_later),
		cmocka_unit_test(an_ask_of_another_key_need_not_wait),
		cmocka_unit_test(completions_come_in_order_with_their_tags),
		cmocka_unit_test(
		    the_descriptor_is_readable_while_completions_wait_and_only_then),
		cmocka_unit_test(asking_on_keeps_the_descriptor_readable),
		cmocka_unit_test(no_answer_without_a_place_to_put_it),
		cmocka_unit_test(
		    more_asks_than_may_be_pending_are_answered_by_the_policy),
		cmocka_unit_test(
		    a_shard_with_its_hands_full_refuses_and_answers_the_rest),
		cmocka_unit_test(a_wait_returns_with_the_answer),
		cmocka_unit_test(a_wait_leaves_the_completions_of_asks_alone),
		cmocka_unit_test(a_wait_that_is_late_says_so_and_the_seat_goes_on),
		cmocka_unit_test(a_wait_of_no_time_is_not_begun),
		cmocka_unit_test(an_ask_finds_the_place_of_an_abandoned_wait),
		cmocka_unit_test(an_ask_does_not_wait_for_the_sweeper),
		cmocka_unit_test(a_store_is_not_closed_while_it_is_swept),
		cmocka_unit_test(a_name_is_forgotten_though_it_is_being_swept),
		cmocka_unit_test(looks_and_corrections_wait_for_the_store),
		cmocka_unit_test(looks_and_corrections_are_late_or_too_many),
		cmocka_unit_test(a_denial_to_be_remembered_leaves_room),
		cmocka_unit_test(a_denial_from_before_a_reset_is_not_remembered),
		cmocka_unit_test(
		    leaving_with_asks_pending_loses_nothing_but_the_answers),
		cmocka_unit_test(leaving_with_completions_unfetched_leaks_nothing),
		cmocka_unit_test(closing_the_runtime_answers_what_is_pending_first),
		cmocka_unit_test(closing_waits_for_those_who_are_about_to_post),
		cmocka_unit_test(closing_the_limiter_does_not_take_its_answers_away),
		cmocka_unit_test(a_seat_that_has_left_is_refused_everything),
		cmocka_unit_test(a_seat_that_has_left_finds_no_purse),
		cmocka_unit_test(
		    a_seat_that_has_left_does_not_touch_the_descriptor_of_another),
		cmocka_unit_test(a_seat_has_the_lowest_number_that_is_free),
		cmocka_unit_test(all_numbers_come_back),
		cmocka_unit_test(who_joins_or_leaves_looks_at_no_other_seat),
		cmocka_unit_test(a_number_is_free_when_the_last_ask_is_answered),
		cmocka_unit_test(threads_at_once_have_numbers_of_their_own),
		cmocka_unit_test(asks_between_two_ticks_are_made_at_one_instant),
		cmocka_unit_test(a_tick_says_what_time_it_is_until_the_next),
		cmocka_unit_test(who_has_never_ticked_reads_it_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
