/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turns_test.c -- a runtime without threads does what its host has time for.
 *
 * Most of it runs on one thread, on a clock that stands still: what happens then happens
 * because of a turn, and whatever would have to wait for real time never comes.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "engine/check.h"
#include "face/face.h"
#include "runtime/clock.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define LONG_US GALE_SECONDS(30)
#define AT_ONCE_NS UINT64_C(10000000000) /* on a machine with much else to do */
#define MANY 700                         /* more than one turn of a shard takes */

static int tags[MANY];

static struct house_plan plan_of(uint64_t limit)
{
	return (struct house_plan){ .rule = gale_fixed_window(limit, GALE_HOURS(1)),
		                    .shards = 1,
		                    .turns = true,
		                    .still = true };
}

static void turn_until_idle(struct house *h)
{
	while (gale_turn(h->runtime) > 0)
		continue;
}

/* What it had to do since it was opened is done. */
static void open_idle(struct house *h, const struct house_plan *plan)
{
	house_open(h, plan);
	turn_until_idle(h);
}

static bool is_readable(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

static bool turn_is_asked_for(struct house *h)
{
	return is_readable(gale_turn_fd(h->runtime));
}

static enum gale_verdict ask(struct house *h, int *tag)
{
	return gale_ask(h->seat, h->limiter, "k", 1, 1, tag).verdict;
}

/* Asks that reached the shard while the store was busy; it is not any more. */
static void send(struct house *h, int count)
{
	struct holder holder;

	holder_begin(&holder, h->limiter, "k");
	for (int i = 0; i < count; i++)
		must(ask(h, &tags[i]) == GALE_PENDING);
	holder_end(&holder);
}

static int completed(struct house *h)
{
	static struct gale_completion completions[MANY];

	return (int)gale_seat_completions(h->seat, completions, MANY);
}

/* ---- One thread ------------------------------------------------------------------ */

static void an_ask_waits_for_the_turn(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_completion completions[4];
	struct house h;

	(void)state;
	open_idle(&h, &plan);
	assert_false(turn_is_asked_for(&h));
	send(&h, 3);
	assert_true(turn_is_asked_for(&h));
	assert_int_equal(completed(&h), 0);
	assert_false(is_readable(gale_seat_fd(h.seat)));

	assert_in_range(gale_turn(h.runtime), 3, 4);
	assert_false(turn_is_asked_for(&h));
	assert_true(is_readable(gale_seat_fd(h.seat)));
	assert_int_equal(gale_seat_completions(h.seat, completions, 4), 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(completions[i].tag, &tags[i]);
		assert_int_equal(completions[i].answer.why, GALE_WHY_RULE);
		assert_int_equal(completions[i].answer.verdict,
		                 i < 2 ? GALE_ALLOW : GALE_DENY);
	}
	assert_int_equal(gale_turn(h.runtime), 0);
	assert_true(house_close(&h));
}

static int entries_of(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = 0;

	must(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void there_are_no_threads_and_no_descriptors_left_over(void **state)
{
	struct house_plan plan = plan_of(2);
	int threads = entries_of("/proc/self/task");
	int descriptors = entries_of("/proc/self/fd");
	struct house h;

	(void)state;
	plan.shards = 5;
	open_idle(&h, &plan);
	assert_int_equal(entries_of("/proc/self/task"), threads);
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&h));
	assert_int_equal(entries_of("/proc/self/fd"), descriptors);
}

/* A turn is bounded; that there is more to do must be seen by a host that waits for the
 * descriptor or for the time, as the header tells it to. */
static void what_a_turn_leaves_is_asked_for(void **state)
{
	struct house_plan plan = plan_of(MANY);
	struct house h;
	int done = 0;

	(void)state;
	plan.pending_max = MANY;
	open_idle(&h, &plan);
	send(&h, MANY);
	while (turn_is_asked_for(&h) || gale_turn_after_us(h.runtime) == 0) {
		(void)gale_turn(h.runtime);
		done += completed(&h);
	}
	assert_int_equal(done, MANY);
	assert_true(house_close(&h));
}

/* All of its time is the host's: on a clock that stands still nothing becomes due. */
static void the_next_turn_is_due_by_the_hosts_clock(void **state)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	struct house_plan plan = plan_of(2);
	uint64_t after_us;
	struct house h;

	(void)state;
	open_idle(&h, &plan);
	assert_int_equal(house_ask(&h, "k").verdict, GALE_ALLOW);
	after_us = gale_turn_after_us(h.runtime);
	assert_in_range(after_us, 1, GALE_SECONDS(2));
	nanosleep(&nap, NULL);
	assert_int_equal(gale_turn_after_us(h.runtime), after_us);
	test_clock_advance(&h.clock, after_us - 1);
	assert_int_equal(gale_turn_after_us(h.runtime), 1);
	test_clock_advance(&h.clock, 1);
	assert_int_equal(gale_turn_after_us(h.runtime), 0);

	/* And the sweeper, which that was, finds that the key's window is over. */
	test_clock_advance(&h.clock, GALE_HOURS(2));
	turn_until_idle(&h);
	assert_int_equal(house_stats(&h).keys, 0);
	assert_in_range(gale_turn_after_us(h.runtime), 1, GALE_NEVER);
	assert_true(house_close(&h));
}

static void keys_of_all_shards_are_served(void **state)
{
	struct house_plan plan = plan_of(3);
	struct house h;
	int pending = 0;

	(void)state;
	plan.shards = 4;
	plan.mode = GALE_LEASED;
	open_idle(&h, &plan);
	for (char key = 'A'; key <= 'Z'; key++)
		pending += gale_ask(h.seat, h.limiter, &key, 1, 1, NULL).verdict ==
		           GALE_PENDING;
	assert_int_equal(pending, 26);
	turn_until_idle(&h);
	assert_int_equal(completed(&h), 26);
	assert_false(turn_is_asked_for(&h));
	assert_true(house_close(&h));
}

/* ---- Waiting --------------------------------------------------------------------- */

static void who_waits_takes_the_turns(void **state)
{
	struct house_plan plan = plan_of(3);
	struct house h;

	(void)state;
	plan.mode = GALE_LEASED;
	for (int round = 0; round < 2; round++) {
		plan.still = round == 0;
		house_open(&h, &plan);
		for (int i = 0; i < 4; i++)
			assert_int_equal(house_wait(&h, "k").verdict,
			                 i < 3 ? GALE_ALLOW : GALE_DENY);
		assert_true(house_close(&h));
	}
}

/* A store that has been asked, and says nothing. */
struct silent_store {
	struct store store;
	struct store *inner;
};

static void silent_lend(const struct store_client *client,
                        const struct lend_request *requests, size_t count)
{
	(void)client;
	(void)requests;
	(void)count;
}

static bool silent_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void silent_close(struct store *self)
{
	struct silent_store *silent = (struct silent_store *)self;

	silent->inner->ops->close(silent->inner);
}

static const struct store_ops silent_ops = { .lend = silent_lend,
	                                     .sweep = silent_sweep,
	                                     .close = silent_close };

static void open_silent(struct house *h, struct silent_store *silent, bool still)
{
	struct house_plan plan = plan_of(3);

	plan.mode = GALE_LEASED;
	plan.still = still;
	plan.lease.patience_us = LONG_US;
	open_idle(h, &plan);
	*silent = (struct silent_store){ { .ops = &silent_ops }, h->store->inner };
	h->store->inner = &silent->store;
	h->limiter->lender.store = &silent->store;
}

static void on_a_clock_that_stands_still_nobody_waits(void **state)
{
	uint64_t before = patience_now_ns();
	struct silent_store silent;
	struct house h;

	(void)state;
	open_silent(&h, &silent, /* still= */ true);
	for (int i = 0; i < 10; i++)
		assert_int_equal(house_wait(&h, "k").why, GALE_WHY_LATE);
	assert_in_range(patience_now_ns() - before, 0, AT_ONCE_NS);
	assert_true(house_close(&h));
}

static void on_a_clock_that_runs_a_wait_takes_its_time(void **state)
{
	uint64_t before = patience_now_ns();
	struct silent_store silent;
	struct gale_answer answer;
	struct house h;

	(void)state;
	open_silent(&h, &silent, /* still= */ false);
	answer = gale_wait(h.seat, h.limiter, "k", 1, 1, 50000);
	assert_int_equal(answer.why, GALE_WHY_LATE);
	assert_in_range(patience_now_ns() - before, 50000000, AT_ONCE_NS);

	/* Closing would wait for the store as long as its patience. */
	h.limiter->lender.patience_ns = 1;
	assert_true(house_close(&h));
}

/* ---- Closing --------------------------------------------------------------------- */

static void closing_answers_what_is_pending_first(void **state)
{
	struct house_plan plan = plan_of(MANY - 1);
	struct gale_runtime *runtime;
	struct house h;

	(void)state;
	plan.pending_max = MANY;
	open_idle(&h, &plan);
	send(&h, MANY);
	runtime = h.runtime;
	gale_runtime_close(h.runtime);
	h.runtime = NULL;
	assert_int_equal(gale_turn(runtime), 0); /* the seat keeps it */
	assert_int_equal(gale_turn_fd(runtime), -1);
	assert_int_equal(gale_turn_after_us(runtime), GALE_NEVER);
	assert_true(is_readable(gale_seat_fd(h.seat)));
	assert_int_equal(completed(&h), MANY);
	assert_int_equal(house_ask(&h, "k").why, GALE_WHY_CLOSED);
	assert_true(house_close(&h));
}

/* One who waits may come to its turn when the shards are gone, and what was a shard's
 * descriptor is somebody else's. */
static void a_turn_after_the_close_touches_nothing_closed(void **state)
{
	struct house_plan plan = plan_of(2);
	struct gale_runtime *runtime;
	int was_a_shards, pipes[2];
	struct shard_turned turned = { .done = 1 };
	struct house h;

	(void)state;
	open_idle(&h, &plan);
	runtime = h.runtime;
	was_a_shards = runtime->shards[0].actor.wake.fd;
	gale_runtime_close(h.runtime);
	h.runtime = NULL;
	must(pipe(pipes) == 0 && dup2(pipes[0], was_a_shards) == was_a_shards);
	must(write(pipes[1], "12345678", 8) == 8);
	assert_true(runtime_turn(runtime, &turned));
	assert_int_equal(turned.done, 0);
	assert_true(is_readable(was_a_shards));
	if (pipes[0] != was_a_shards)
		close(pipes[0]);
	close(was_a_shards);
	close(pipes[1]);
	assert_true(house_close(&h));
}

static void leaving_with_asks_pending_leaves_nothing(void **state)
{
	struct house_plan plan = plan_of(9);
	struct house h;

	(void)state;
	for (int turned = 0; turned < 2; turned++) {
		open_idle(&h, &plan);
		send(&h, 5);
		gale_leave(h.seat);
		h.seat = NULL;
		if (turned)
			turn_until_idle(&h);
		assert_true(house_close(&h));
	}
}

/* ---- Who may not turn ------------------------------------------------------------ */

static void there_is_nothing_to_turn(struct gale_runtime *runtime)
{
	assert_int_equal(gale_turn(runtime), 0);
	assert_int_equal(gale_turn_fd(runtime), -1);
	assert_int_equal(gale_turn_after_us(runtime), GALE_NEVER);
}

static void a_runtime_with_threads_is_not_turned(void **state)
{
	struct house_plan plan = plan_of(9);
	struct house h;

	(void)state;
	there_is_nothing_to_turn(NULL);
	plan.turns = false;
	house_open(&h, &plan);
	there_is_nothing_to_turn(h.runtime);
	assert_true(house_close(&h));
}

static int turn_in_a_child(void *arg)
{
	struct house *h = arg;

	if (gale_turn(h->runtime) != 0 || gale_turn_fd(h->runtime) != -1 ||
	    gale_turn_after_us(h->runtime) != GALE_NEVER)
		return 1;
	return house_wait(h, "k").why == GALE_WHY_FORKED ? 0 : 2;
}

static void a_child_takes_no_turn_of_its_parents(void **state)
{
	struct house_plan plan = plan_of(9);
	struct house h;

	(void)state;
	open_idle(&h, &plan);
	send(&h, 3);
	assert_int_equal(child_run(turn_in_a_child, &h), 0);
	assert_true(turn_is_asked_for(&h));
	turn_until_idle(&h);
	assert_int_equal(completed(&h), 3);
	assert_true(house_close(&h));
}

/* As with threads, what is under way when an invariant breaks is answered, and denied. */
static pthread_t panicking;

static void stay(const char *what)
{
	(void)what;
	for (;;)
		pause();
}

static void *panic_here(void *arg)
{
	(void)arg;
	gale_panic("here", 1, "a test");
}

static bool is_fenced(void *arg)
{
	struct house *h = arg;

	return house_wait(h, "k").why == GALE_WHY_FENCED;
}

static int turn_after_a_panic(void *arg)
{
	struct house_plan plan = plan_of(9);
	struct gale_completion completion;
	struct house h;

	(void)arg;
	gale_on_panic(stay);
	open_idle(&h, &plan);
	send(&h, 1);
	must(pthread_create(&panicking, NULL, panic_here, NULL) == 0);
	must(becomes_true(is_fenced, &h));
	if (!turn_is_asked_for(&h))
		return 1;
	(void)gale_turn(h.runtime);
	if (gale_seat_completions(h.seat, &completion, 1) != 1)
		return 2;
	return completion.answer.why == GALE_WHY_FENCED ? 0 : 3;
}

static void after_a_panic_turns_answer_what_is_pending(void **state)
{
	(void)state;
	assert_int_equal(child_run(turn_after_a_panic, NULL), 0);
}

/* ---- Several threads ------------------------------------------------------------- */

#define WAITERS 4
#define WAITS 200

struct waiter {
	struct house *house;
	pthread_t thread;
	_Atomic bool is_late;
	int allowed;
};

static void *wait_often(void *arg)
{
	struct waiter *waiter = arg;
	struct house *h = waiter->house;
	struct gale_seat *seat;

	must(gale_join(h->runtime, &seat) == GALE_ERR_OK);
	for (int i = 0; i < WAITS; i++) {
		char key = (char)i;
		struct gale_answer answer =
		    gale_wait(seat, h->limiter, &key, 1, 1, LONG_US);

		waiter->allowed += answer.verdict == GALE_ALLOW;
		if (answer.why == GALE_WHY_LATE)
			store_relaxed(&waiter->is_late, true);
	}
	gale_leave(seat);
	return NULL;
}

static void threads_wait_at_once(bool still)
{
	struct waiter waiters[WAITERS] = { 0 };
	struct house_plan plan = plan_of(WAITERS - 1);
	struct house h;
	int allowed = 0;

	plan.still = still;
	plan.mode = GALE_LEASED;
	plan.lease = (struct gale_leasing){ .sizing = GALE_SIZE_FIXED,
		                            .batch = 1,
		                            .patience_us = LONG_US };
	open_idle(&h, &plan);
	for (int i = 0; i < WAITERS; i++) {
		waiters[i].house = &h;
		must(pthread_create(&waiters[i].thread, NULL, wait_often,
		                    &waiters[i]) == 0);
	}
	for (int i = 0; i < WAITERS; i++) {
		must(pthread_join(waiters[i].thread, NULL) == 0);
		assert_false(waiters[i].is_late);
		allowed += waiters[i].allowed;
	}
	assert_int_equal(allowed, WAITS * (WAITERS - 1));
	assert_true(house_close(&h));
}

static void threads_that_wait_share_the_turns(void **state)
{
	(void)state;
	threads_wait_at_once(true);
	threads_wait_at_once(false);
}

/* ---- While another turns --------------------------------------------------------- */

/* A thread that is within a turn, of a shard that runs an ask on a store that is held. */
struct turner {
	struct house house;
	struct holder holder;
	pthread_t thread;
	_Atomic bool has_ended;
};

static void *take_a_turn(void *arg)
{
	struct turner *turner = arg;

	(void)gale_turn(turner->house.runtime);
	store_relaxed(&turner->has_ended, true);
	return NULL;
}

/* Only a turn takes the mail, and the descriptor is cleared before. */
static bool is_turning(void *arg)
{
	struct turner *turner = arg;

	return !turn_is_asked_for(&turner->house);
}

static void turner_begin(struct turner *turner)
{
	struct house_plan plan = plan_of(9);

	turner->has_ended = false;
	open_idle(&turner->house, &plan);
	holder_begin(&turner->holder, turner->house.limiter, "k");
	must(ask(&turner->house, &tags[0]) == GALE_PENDING);
	must(pthread_create(&turner->thread, NULL, take_a_turn, turner) == 0);
	must(becomes_true(is_turning, turner));
}

static void let_the_others_run(void)
{
	for (int i = 0; i < 20000; i++)
		sched_yield();
}

struct second {
	struct turner *turner;
	pthread_t thread;
	struct gale_answer answer;
	_Atomic bool has_ended;
};

static void *wait_meanwhile(void *arg)
{
	struct second *second = arg;
	struct house *h = &second->turner->house;
	struct gale_seat *seat;

	must(gale_join(h->runtime, &seat) == GALE_ERR_OK);
	second->answer = gale_wait(seat, h->limiter, "k", 1, 1, LONG_US);
	gale_leave(seat);
	return NULL;
}

/* It is not late because another thread is at it, whatever the clock. */
static void a_wait_goes_on_while_another_thread_turns(void **state)
{
	struct turner turner;
	struct second second = { .turner = &turner };

	(void)state;
	turner_begin(&turner);
	must(pthread_create(&second.thread, NULL, wait_meanwhile, &second) == 0);
	let_the_others_run();
	holder_end(&turner.holder);
	must(pthread_join(second.thread, NULL) == 0);
	must(pthread_join(turner.thread, NULL) == 0);
	assert_int_equal(second.answer.verdict, GALE_ALLOW);
	assert_int_equal(second.answer.why, GALE_WHY_RULE);
	assert_int_equal(completed(&turner.house), 1);
	assert_true(house_close(&turner.house));
}

static void *close_meanwhile(void *arg)
{
	struct second *second = arg;

	gale_runtime_close(second->turner->house.runtime);
	store_relaxed(&second->has_ended, true);
	return NULL;
}

/* Two that take the turns of one shard would take its mail twice. */
static void closing_waits_for_the_turn_of_another_thread(void **state)
{
	struct turner turner;
	struct second second = { .turner = &turner };

	(void)state;
	turner_begin(&turner);
	must(pthread_create(&second.thread, NULL, close_meanwhile, &second) == 0);
	let_the_others_run();
	assert_false(load_relaxed(&second.has_ended));
	assert_false(load_relaxed(&turner.has_ended));
	holder_end(&turner.holder);
	must(pthread_join(second.thread, NULL) == 0);
	must(pthread_join(turner.thread, NULL) == 0);
	assert_int_equal(completed(&turner.house), 1);
	turner.house.runtime = NULL;
	assert_true(house_close(&turner.house));
}

/* ---- What carries over ----------------------------------------------------------- */

static uint64_t given_back(bool carry_over)
{
	struct house house;
	uint64_t returns;

	house_open(&house, &(struct house_plan){
			       .rule = gale_fixed_window(100, GALE_HOURS(1)),
			       .mode = GALE_LEASED,
			       .lease = { .sizing = GALE_SIZE_FIXED,
	                                  .batch = 10,
	                                  .carry_over = carry_over },
			       .shards = 1,
			       .turns = true,
			       .still = true,
			   });
	assert_int_equal(house_wait(&house, "k").verdict, GALE_ALLOW);
	gale_limiter_close(house.limiter);
	house.limiter = NULL;
	for (int i = 0; i < 8; i++)
		(void)gale_turn(house.runtime);
	returns =
	    load_relaxed(&house.runtime->shards[0].lessor.counters[COUNT_RETURNS]);
	assert_true(house_close(&house));
	return returns;
}

/* L6: it may be of a window before. */
static void what_carries_over_is_not_given_back(void **state)
{
	(void)state;
	assert_int_equal(given_back(false), 1);
	assert_int_equal(given_back(true), 0);
}

/* ---- What is answered within a turn ------------------------------------------------ */

/* Four seconds are left of a window of eight. */
static void open_nearly_over(struct house *h)
{
	house_open(h, &(struct house_plan){
			  .rule = gale_fixed_window(1000, GALE_SECONDS(8)),
			  .mode = GALE_LEASED,
			  .lease = { .sizing = GALE_SIZE_FIXED,
	                             .batch = 100,
	                             .patience_us = LONG_US },
			  .shards = 1,
			  .turns = true,
			  .still = true,
		      });
	assert_int_equal(house_wait(h, "k").verdict, GALE_ALLOW);
	test_clock_advance(&h->clock, GALE_SECONDS(1));
	turn_until_idle(h); /* 99 are seen */
	test_clock_advance(&h->clock, GALE_MILLIS(2900));
}

/* At the store the next window has begun, and is used up. */
static void use_up_the_next(struct house *h)
{
	struct gale_limiter *strict =
	    house_limiter(h, "house", gale_fixed_window(1000, GALE_SECONDS(8)));

	test_clock_set(&h->clock, HOUSE_NOW + GALE_MILLIS(4100));
	assert_int_equal(gale_ask(h->seat, strict, "k", 1, 1000, NULL).verdict,
	                 GALE_ALLOW);
	gale_limiter_close(strict);
}

/* L6: the turn begins while the units live; while the store answers they die, and what it
 * says is of the next window, of which nothing is to be had, nor given back. */
static void what_died_within_a_turn_is_not_given_back(void **state)
{
	struct house house;
	struct lessor *lessor;

	(void)state;
	open_nearly_over(&house);
	use_up_the_next(&house);
	assert_int_equal(gale_ask(house.seat, house.limiter, "k", 1, 500, NULL).verdict,
	                 GALE_PENDING);
	house.clock.store_takes_ns = 200000000;
	(void)gale_turn(house.runtime);
	house.clock.store_takes_ns = 0;
	lessor = &house.runtime->shards[0].lessor;
	assert_int_equal(load_relaxed(&lessor->counters[COUNT_SPENT]), 1);
	assert_int_equal(load_relaxed(&lessor->counters[COUNT_RETURNS]), 0);
	assert_int_equal(completed(&house), 1);
	assert_true(house_close(&house));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ask_waits_for_the_turn),
		cmocka_unit_test(there_are_no_threads_and_no_descriptors_left_over),
		cmocka_unit_test(what_a_turn_leaves_is_asked_for),
		cmocka_unit_test(the_next_turn_is_due_by_the_hosts_clock),
		cmocka_unit_test(keys_of_all_shards_are_served),
		cmocka_unit_test(who_waits_takes_the_turns),
		cmocka_unit_test(on_a_clock_that_stands_still_nobody_waits),
		cmocka_unit_test(on_a_clock_that_runs_a_wait_takes_its_time),
		cmocka_unit_test(closing_answers_what_is_pending_first),
		cmocka_unit_test(a_turn_after_the_close_touches_nothing_closed),
		cmocka_unit_test(leaving_with_asks_pending_leaves_nothing),
		cmocka_unit_test(a_runtime_with_threads_is_not_turned),
		cmocka_unit_test(a_child_takes_no_turn_of_its_parents),
		cmocka_unit_test(after_a_panic_turns_answer_what_is_pending),
		cmocka_unit_test(threads_that_wait_share_the_turns),
		cmocka_unit_test(a_wait_goes_on_while_another_thread_turns),
		cmocka_unit_test(closing_waits_for_the_turn_of_another_thread),
		cmocka_unit_test(what_carries_over_is_not_given_back),
		cmocka_unit_test(what_died_within_a_turn_is_not_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
