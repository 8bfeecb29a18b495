/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory_faults_test.c -- every allocation and every call of the system fails once.
 *
 * One life of a runtime, from opening to closing, is lived again and again.  In the n-th
 * of them the n-th allocation fails, or all from the n-th on, until a life comes that
 * needed none of those.  Each time: what failed says so, or is answered by the policy;
 * nobody gets more than the limit; afterwards all works; nothing is missing at the end.
 *
 * The system's calls are replaced by those below, which the linker finds first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <dirent.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/tenants.h>

#include "runtime/lifeline.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define SHARDS 3
#define LIMIT 20 /* of the log, which grows with each admission */
#define KEYS 40
#define LONG_US GALE_SECONDS(30)

/* ---- The system, as it may be ---------------------------------------------------- */

static struct {
	int eventfd; /* so many succeed before one fails; -1: none fails */
	int thread;
	bool random;
	bool pieces; /* random bytes come in pieces, and interrupted */
	bool advice;
} faults = { -1, -1, false, false, false };

/* No stack of this size can be had, so no thread either. */
static void set_thread_stack(size_t bytes)
{
	pthread_attr_t attributes;

	must(pthread_attr_init(&attributes) == 0);
	must(pthread_attr_setstacksize(&attributes, bytes) == 0);
	must(pthread_setattr_default_np(&attributes) == 0);
	must(pthread_attr_destroy(&attributes) == 0);
}

int eventfd(unsigned count, int flags)
{
	if (faults.eventfd >= 0 && faults.eventfd-- == 0) {
		errno = EMFILE;
		return -1;
	}
	if (faults.thread >= 0 && faults.thread-- == 0)
		set_thread_stack((size_t)1 << 46); /* the next one is this shard's */
	return (int)syscall(SYS_eventfd2, count, flags);
}

ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
	static unsigned calls;

	if (faults.random || (faults.pieces && ++calls % 2)) {
		errno = faults.random ? ENOSYS : EINTR;
		return -1;
	}
	if (faults.pieces && bytes > 7)
		bytes = 7;
	return syscall(SYS_getrandom, out, bytes, flags);
}

static struct {
	unsigned calls;
	void *start; /* the pages that were last to be empty in a child */
	size_t bytes;
} advised;

int madvise(void *start, size_t bytes, int advice)
{
	if (advice == MADV_WIPEONFORK) {
		advised.calls++;
		advised.start = start;
		advised.bytes = bytes;
	}
	if (faults.advice && advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, start, bytes, advice);
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	must(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* ---- A life ---------------------------------------------------------------------- */

struct life {
	struct house house;
	struct gale_limiter *logs; /* of the same store: its keys' states grow */
	struct gale_limiter *queue;
	struct gale_guard *guard;
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	bool persists; /* what failed once fails on */
	enum gale_verdict policy;
	uint64_t logged; /* admissions of the one log */
};

/* Whether it worked; if not, for want of memory, and if that was the only time, then it
 * is to be tried again. */
static bool worked(struct life *life, enum gale_err err, bool *ret_again)
{
	*ret_again = false;
	if (err == GALE_ERR_OK)
		return true;
	assert_string_equal(gale_err_text(err), gale_err_text(GALE_ERR_MEMORY));
	assert_true(life->house.allocator.failed > 0);
	*ret_again = !life->persists;
	return false;
}

static bool open_runtime(struct life *life)
{
	struct house *h = &life->house;
	struct gale_config config = { .shards = SHARDS,
		                      .pending_max = 3,
		                      .allocator = &h->allocator.allocator,
		                      .clock = &h->clock.clock };
	bool again, done;

	do
		done = worked(life, gale_runtime_open(&config, &h->runtime), &again);
	while (again);
	return done;
}

static bool open_store(struct life *life, const char *url)
{
	struct gale_store_config config = { .url = url };
	bool again, done;

	do
		done = worked(
		    life,
		    gale_store_open(life->house.runtime, &config, &life->house.store),
		    &again);
	while (again);
	return done;
}

static bool open_limiter(struct life *life, struct gale_rule rule,
                         struct gale_limiter **ret_limiter)
{
	struct gale_limiter_config config = {
		.name = gale_rule_name(rule.kind),
		.rule = rule,
		.store = life->house.store,
		.on_outage = life->policy == GALE_ALLOW ? GALE_ON_OUTAGE_ALLOW
		                                        : GALE_ON_OUTAGE_DENY,
	};
	bool again, done;

	do
		done = worked(
		    life, gale_limiter_open(life->house.runtime, &config, ret_limiter),
		    &again);
	while (again);
	return done;
}

static bool join(struct life *life)
{
	bool again, done;

	do
		done = worked(life, gale_join(life->house.runtime, &life->house.seat),
		              &again);
	while (again);
	return done;
}

static bool open_guard(struct life *life)
{
	struct gale_guard_config config = { .name = "guard" };
	bool again, done;

	do
		done = worked(
		    life, gale_guard_open(life->house.runtime, &config, &life->guard),
		    &again);
	while (again);
	return done;
}

static bool open_budget(struct life *life)
{
	struct gale_budget_config config = { .limit = 10, .window_us = GALE_HOURS(1) };
	bool again, done;

	do
		done = worked(
		    life, gale_budget_open(life->house.runtime, &config, &life->budget),
		    &again);
	while (again);
	return done;
}

static bool open_tenant(struct life *life)
{
	struct gale_terms terms = { .weight = 1 };
	bool again, done;

	do
		done =
		    worked(life, gale_tenant_open(life->budget, &terms, &life->tenant),
		           &again);
	while (again);
	return done;
}

static bool open_all(struct life *life, const char *url)
{
	return open_runtime(life) && open_store(life, url) &&
	       open_limiter(life, gale_fixed_window(1, GALE_HOURS(1)),
	                    &life->house.limiter) &&
	       open_limiter(life, gale_sliding_log(LIMIT, GALE_HOURS(1)),
	                    &life->logs) &&
	       open_limiter(life,
	                    gale_leaky_bucket(10, GALE_SECONDS(1), GALE_SECONDS(1)),
	                    &life->queue) &&
	       open_guard(life) && open_budget(life) && open_tenant(life) && join(life);
}

/* Was it allowed by the rule?  If the rule could not say, the policy did. */
static bool admitted(struct life *life, struct gale_answer answer)
{
	if (answer.why == GALE_WHY_RULE)
		return answer.verdict == GALE_ALLOW;
	assert_string_equal(gale_why_text(answer.why), gale_why_text(GALE_WHY_MEMORY));
	assert_int_equal(answer.verdict, life->policy);
	assert_true(life->house.allocator.failed > 0);
	return false;
}

static bool ask(struct life *life, struct gale_limiter *limiter, const char *key)
{
	return admitted(life,
	                ask_settled(life->house.seat, limiter, key, strlen(key), 1));
}

/* New keys, more than the first table of some stripe holds. */
static void ask_new_keys(struct life *life)
{
	for (char key = 0; key < KEYS; key++) {
		unsigned passed = 0;

		for (int i = 0; i < 3; i++)
			passed += admitted(life, ask_settled(life->house.seat,
			                                     life->house.limiter, &key,
			                                     1, 1));
		assert_in_range(passed, life->persists ? 0 : 1, 1);
	}
}

static void grow_a_log(struct life *life)
{
	for (int i = 0; i < LIMIT / 2; i++) {
		life->logged += ask(life, life->logs, "log");
		test_clock_advance(&life->house.clock, 1);
	}
}

static void ask_while_it_is_busy(struct life *life)
{
	struct gale_completion completion;
	struct holder holder;
	int left = 3;

	holder_begin(&holder, life->logs, "log");
	for (int i = 0; i < left; i++)
		assert_int_equal(
		    gale_ask(life->house.seat, life->logs, "log", 3, 1, NULL).verdict,
		    GALE_PENDING);
	holder_end(&holder);
	while (left > 0)
		if (gale_seat_completions(life->house.seat, &completion, 1) == 1) {
			life->logged += admitted(life, completion.answer);
			left--;
		}
}

/* None of these needs memory. */
static void look_and_correct(struct life *life)
{
	struct gale_seat *seat = life->house.seat;
	struct gale_outlook forecast;
	struct gale_answer answer;

	assert_int_equal(gale_peek(seat, life->logs, "log", 3, LONG_US, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(answer.remaining, LIMIT - life->logged);
	assert_int_equal(
	    gale_forecast(seat, life->logs, "log", 3, 1, LONG_US, &forecast),
	    GALE_ERR_OK);
	assert_int_equal(forecast.spendable_now, LIMIT - life->logged);
	if (!ask(life, life->queue, "q"))
		return;
	answer = gale_wait(seat, life->queue, "q", 1, 1, LONG_US);
	assert_int_equal(answer.why, GALE_WHY_RULE);
	assert_int_equal(gale_cancel(seat, life->queue, "q", 1, 1, LONG_US, &answer),
	                 GALE_ERR_OK);
	assert_int_equal(gale_reset(seat, life->queue, "q", 1, LONG_US), GALE_ERR_OK);
}

/* Nor does a call at a guard, or a tenant's. */
static void enter_and_exit(struct life *life)
{
	struct gale_entry entry =
	    gale_enter(life->house.seat, life->guard, 1, GALE_NORMAL);

	assert_int_equal(entry.verdict, GALE_ALLOW);
	gale_exit(life->house.seat, &entry, GALE_OK);
	assert_int_equal(gale_tenant_ask(life->house.seat, life->tenant, 1).verdict,
	                 GALE_ALLOW);
}

/* With memory there again, everything works, and what failed was not spent. */
static void recover(struct life *life)
{
	life->house.allocator.fail_last = 0;
	for (int i = 0; i < 2 * LIMIT; i++)
		life->logged += ask(life, life->logs, "log");
	assert_int_equal(life->logged, LIMIT);
	assert_true(ask(life, life->house.limiter, "another"));
	assert_false(ask(life, life->house.limiter, "another"));
	for (int i = 0; i < 3 * KEYS; i++) {
		char key[2] = { (char)i, 'x' };

		assert_int_equal(
		    ask_settled(life->house.seat, life->house.limiter, key, 2, 1)
			.verdict,
		    GALE_ALLOW);
	}
}

static void close_all(struct life *life)
{
	gale_guard_close(life->guard);
	gale_tenant_close(life->tenant);
	gale_budget_close(life->budget);
	gale_limiter_close(life->logs);
	gale_limiter_close(life->queue);
	assert_true(house_close(&life->house));
}

/* Returns whether anything failed in it. */
static bool live(uint64_t first, bool persists, enum gale_verdict policy,
                 const char *url)
{
	struct life life = { .persists = persists, .policy = policy };
	struct test_allocator *allocator = &life.house.allocator;
	uint64_t failed;

	test_allocator_init(allocator);
	test_clock_init(&life.house.clock, HOUSE_NOW);
	allocator->fail_first = first;
	allocator->fail_last = persists ? UINT64_MAX : first;
	if (open_all(&life, url)) {
		grow_a_log(&life);
		ask_new_keys(&life);
		grow_a_log(&life);
		ask_while_it_is_busy(&life);
		look_and_correct(&life);
		enter_and_exit(&life);
		failed = allocator->failed;
		recover(&life);
	} else {
		failed = allocator->failed;
	}
	close_all(&life);
	return failed > 0;
}

static void lives_until_nothing_fails(bool persists, enum gale_verdict policy,
                                      const char *url)
{
	uint64_t first = 1;

	while (live(first, persists, policy, url))
		first++;
	/* The runtime, its shards, the store twice, three limiters, a seat three times,
	 * and keys in many stripes. */
	assert_in_range(first, 50, 1000);
}

static void each_allocation_may_fail_once(void **state)
{
	(void)state;
	lives_until_nothing_fails(false, GALE_DENY, "memory:");
	lives_until_nothing_fails(false, GALE_ALLOW, "memory:faults");
}

static void from_each_allocation_on_all_may_fail(void **state)
{
	(void)state;
	lives_until_nothing_fails(true, GALE_DENY, "memory:faults");
	lives_until_nothing_fails(true, GALE_ALLOW, "memory:");
}

/* ---- Failures of the system ------------------------------------------------------ */

static void all_is_well_again(unsigned descriptors)
{
	struct house_plan plan = { .rule = gale_fixed_window(1, GALE_HOURS(1)),
		                   .shards = SHARDS };
	struct house h;

	assert_int_equal(open_descriptors(), descriptors);
	house_open(&h, &plan);
	assert_int_equal(house_wait(&h, "k").verdict, GALE_ALLOW);
	assert_true(house_close(&h));
	assert_int_equal(open_descriptors(), descriptors);
}

static enum gale_err open_with(struct test_allocator *allocator,
                               struct gale_runtime **ret_runtime)
{
	struct gale_config config = { .shards = SHARDS,
		                      .allocator = &allocator->allocator };

	test_allocator_init(allocator);
	*ret_runtime = NULL;
	return gale_runtime_open(&config, ret_runtime);
}

static void each_descriptor_may_fail(void **state)
{
	unsigned descriptors = open_descriptors();
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_seat *seat = NULL;

	(void)state;
	for (int n = 0; n < SHARDS; n++) {
		faults.eventfd = n;
		assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_SYSTEM);
		assert_null(runtime);
		assert_int_equal(faults.eventfd, -1);
		assert_true(test_allocator_is_balanced(&allocator));
		all_is_well_again(descriptors);
	}
	assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_OK);
	faults.eventfd = 0;
	assert_int_equal(gale_join(runtime, &seat), GALE_ERR_SYSTEM);
	assert_null(seat);
	assert_int_equal(gale_join(runtime, &seat), GALE_ERR_OK);
	gale_leave(seat);
	gale_runtime_close(runtime);
	assert_true(test_allocator_is_balanced(&allocator));
	all_is_well_again(descriptors);
}

static void each_thread_may_fail(void **state)
{
	unsigned descriptors = open_descriptors();
	struct test_allocator allocator;
	struct gale_runtime *runtime;

	(void)state;
	for (int n = 0; n < SHARDS; n++) {
		faults.thread = n;
		assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_SYSTEM);
		assert_null(runtime);
		assert_int_equal(faults.thread, -1);
		assert_true(test_allocator_is_balanced(&allocator));
		set_thread_stack((size_t)1 << 20);
		all_is_well_again(descriptors);
	}
}

/* It is always the same page, one of the library's own: nothing is left behind. */
static void without_a_page_that_forks_empty_there_is_no_runtime(void **state)
{
	unsigned descriptors = open_descriptors();
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	void *page = NULL;

	(void)state;
	faults.advice = true;
	for (unsigned n = 1; n <= 3; n++) {
		assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_SYSTEM);
		assert_null(runtime);
		assert_true(test_allocator_is_balanced(&allocator));
		assert_int_equal(advised.calls, n);
		assert_true(n == 1 || advised.start == page);
		page = advised.start;
	}
	faults.advice = false;
	assert_int_equal((uintptr_t)page % LIFELINE_PAGE, 0);
	assert_int_equal(advised.bytes, LIFELINE_PAGE);
	all_is_well_again(descriptors);
	assert_int_equal(advised.calls, 4);
	assert_ptr_equal(advised.start, page);
}

/* The names are on a page of their own. */
static void without_a_page_that_forks_empty_no_store_has_a_name(void **state)
{
	struct gale_store_config named = { .url = "memory:faults" };
	unsigned descriptors = open_descriptors();
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store = NULL;

	(void)state;
	assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_OK);
	faults.advice = true;
	assert_int_equal(gale_store_open(runtime, &named, &store), GALE_ERR_MEMORY);
	assert_null(store);
	faults.advice = false;
	assert_int_equal(gale_store_open(runtime, &named, &store), GALE_ERR_OK);
	gale_store_close(store);
	gale_runtime_close(runtime);
	assert_true(test_allocator_is_balanced(&allocator));
	all_is_well_again(descriptors);
}

/* There are so many words on the page, and one that fails gives its word back. */
static void a_runtime_that_cannot_start_leaves_its_place(void **state)
{
	unsigned descriptors = open_descriptors();
	struct test_allocator allocator;
	struct gale_runtime *runtime;

	(void)state;
	for (int n = 0; n <= LIFELINES_MOST; n++) {
		faults.eventfd = n % SHARDS;
		assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_SYSTEM);
		assert_int_equal(faults.eventfd, -1);
		assert_true(test_allocator_is_balanced(&allocator));
	}
	all_is_well_again(descriptors);
}

static void without_random_numbers_there_is_no_store(void **state)
{
	unsigned descriptors = open_descriptors();
	struct gale_store_config named = { .url = "memory:random" };
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store = NULL;

	(void)state;
	assert_int_equal(open_with(&allocator, &runtime), GALE_ERR_OK);
	faults.random = true;
	assert_int_not_equal(gale_store_open(runtime, NULL, &store), GALE_ERR_OK);
	assert_int_not_equal(gale_store_open(runtime, &named, &store), GALE_ERR_OK);
	assert_null(store);
	faults.random = false;
	assert_int_equal(gale_store_open(runtime, &named, &store), GALE_ERR_OK);
	gale_store_close(store);
	gale_runtime_close(runtime);
	assert_true(test_allocator_is_balanced(&allocator));
	all_is_well_again(descriptors);
}

static void random_numbers_may_come_in_pieces(void **state)
{
	unsigned descriptors = open_descriptors();

	(void)state;
	faults.pieces = true;
	all_is_well_again(descriptors);
	faults.pieces = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_page_that_forks_empty_there_is_no_runtime),
		cmocka_unit_test(each_allocation_may_fail_once),
		cmocka_unit_test(from_each_allocation_on_all_may_fail),
		cmocka_unit_test(each_descriptor_may_fail),
		cmocka_unit_test(each_thread_may_fail),
		cmocka_unit_test(a_runtime_that_cannot_start_leaves_its_place),
		cmocka_unit_test(without_a_page_that_forks_empty_no_store_has_a_name),
		cmocka_unit_test(without_random_numbers_there_is_no_store),
		cmocka_unit_test(random_numbers_may_come_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
