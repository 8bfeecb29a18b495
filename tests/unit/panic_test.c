/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * panic_test.c -- a broken contract ends the process, and admits nothing on the way.
 *
 * Each case runs in a child of its own.  It returns when it survived what it should
 * not have.
 */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gale/all.h>
#include <gale/tenants.h>

#include "engine/check.h"
#include "runtime/mailbox.h"
#include "runtime/panic.h"
#include "tests/support/child.h"
#include "tests/support/house.h"
#include "tests/support/must.h"

#define SURVIVED 77

static struct house house;

static struct house *open_house(void)
{
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .on_outage = GALE_ON_OUTAGE_ALLOW,
		                   .shards = 1 };

	house_open(&house, &plan);
	return &house;
}

/* ---- Broken contracts ------------------------------------------------------------ */

static int close_runtime_twice(void *arg)
{
	struct house *h = open_house();

	(void)arg;
	gale_runtime_close(h->runtime);
	gale_runtime_close(h->runtime);
	return SURVIVED;
}

static int close_store_twice(void *arg)
{
	struct house *h = open_house();

	(void)arg;
	gale_store_close(h->store); /* the limiter holds it */
	gale_store_close(h->store);
	return SURVIVED;
}

static int close_limiter_twice(void *arg)
{
	struct house *h = open_house();

	(void)arg;
	gale_limiter_close(h->limiter); /* it is dead now */
	gale_limiter_close(h->limiter);
	return SURVIVED;
}

static int leave_twice(void *arg)
{
	struct house *h = open_house();

	(void)arg;
	gale_leave(h->seat);
	gale_leave(h->seat);
	return SURVIVED;
}

static int mailbox_of_three(void *arg)
{
	struct mail_slot slots[3];
	struct mailbox box;

	(void)arg;
	mailbox_init(&box, slots, 3);
	return SURVIVED;
}

static int mailbox_of_one(void *arg)
{
	struct mail_slot slots[1];
	struct mailbox box;

	(void)arg;
	mailbox_init(&box, slots, 1);
	return SURVIVED;
}

static void closing_twice_is_a_broken_contract(void **state)
{
	(void)state;
	assert_int_equal(child_run(close_runtime_twice, NULL), -SIGABRT);
	assert_int_equal(child_run(close_store_twice, NULL), -SIGABRT);
	assert_int_equal(child_run(close_limiter_twice, NULL), -SIGABRT);
	assert_int_equal(child_run(leave_twice, NULL), -SIGABRT);
}

static void a_mailbox_has_two_slots_or_a_power_of_them(void **state)
{
	(void)state;
	assert_int_equal(child_run(mailbox_of_three, NULL), -SIGABRT);
	assert_int_equal(child_run(mailbox_of_one, NULL), -SIGABRT);
}

/* ---- A seat is for its own thread ------------------------------------------------ */

#ifdef GALE_DEBUG

static void *ask_elsewhere(void *arg)
{
	return house_ask(arg, "k").verdict == GALE_ALLOW ? arg : NULL;
}

static void *wait_elsewhere(void *arg)
{
	return house_wait(arg, "k").verdict == GALE_ALLOW ? arg : NULL;
}

static void *peek_elsewhere(void *arg)
{
	struct house *h = arg;
	struct gale_answer answer;

	(void)gale_peek(h->seat, h->limiter, "k", 1, 0, &answer);
	return arg;
}

static void *fetch_elsewhere(void *arg)
{
	struct house *h = arg;
	struct gale_completion completion;

	(void)gale_seat_completions(h->seat, &completion, 1);
	return arg;
}

static void *leave_elsewhere(void *arg)
{
	struct house *h = arg;

	gale_leave(h->seat);
	return arg;
}

struct elsewhere {
	void *(*work)(void *house);
};

static int on_another_thread(void *arg)
{
	struct elsewhere *elsewhere = arg;
	pthread_t thread;

	must(pthread_create(&thread, NULL, elsewhere->work, open_house()) == 0);
	must(pthread_join(thread, NULL) == 0);
	return SURVIVED;
}

static void a_seat_on_the_wrong_thread_is_noticed(void **state)
{
	struct elsewhere works[] = { { ask_elsewhere },
		                     { wait_elsewhere },
		                     { peek_elsewhere },
		                     { fetch_elsewhere },
		                     { leave_elsewhere } };

	(void)state;
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		assert_int_equal(child_run(on_another_thread, &works[i]), -SIGABRT);
}

#endif

/* ---- Fence, tell, abort ---------------------------------------------------------- */

static int reports[2]; /* a pipe from the hook to the parent */

static void report(const char *what)
{
	char line[256];

	/* Whoever hears of it finds the runtime fenced already. */
	must(panic_fenced());
	must(house_ask(&house, "k").why == GALE_WHY_FENCED);
	memset(line, 0, sizeof(line));
	strncpy(line, what, sizeof(line) - 1);
	must(write(reports[1], line, sizeof(line)) == sizeof(line));
}

static int panic_with_hook(void *arg)
{
	struct house *h = open_house();

	(void)arg;
	gale_on_panic(report);
	must(house_ask(h, "k").verdict == GALE_ALLOW);
	must(!panic_fenced());
	gale_panic("some/file.c", 42, "head <= tail");
	return SURVIVED;
}

static void the_hook_is_told_once_and_fenced_and_then_it_ends(void **state)
{
	char line[256];

	(void)state;
	must(pipe(reports) == 0);
	assert_int_equal(child_run(panic_with_hook, NULL), -SIGABRT);
	close(reports[1]);
	assert_int_equal(read(reports[0], line, sizeof(line)), sizeof(line));
	assert_string_equal(line, "some/file.c:42: broken: head <= tail");
	assert_int_equal(read(reports[0], line, sizeof(line)), 0); /* once */
	close(reports[0]);
}

static int panic_without_hook(void *arg)
{
	(void)arg;
	gale_on_panic(report);
	gale_on_panic(NULL);
	gale_panic("some/file.c", 42, "no hook");
	return SURVIVED;
}

static void without_a_hook_it_just_ends(void **state)
{
	(void)state;
	assert_int_equal(child_run(panic_without_hook, NULL), -SIGABRT);
}

static jmp_buf back;
static int told;

static void jump_back(const char *what)
{
	(void)what;
	told++;
	longjmp(back, 1);
}

static bool is_fenced_for_good(struct house *h)
{
	for (int i = 0; i < 100; i++) {
		struct gale_answer answer = house_ask(h, i % 2 ? "k" : "other");

		if (answer.verdict != GALE_DENY || answer.why != GALE_WHY_FENCED)
			return false;
		test_clock_advance(&h->clock, GALE_HOURS(1));
	}
	return true;
}

static int panic_and_live_on(void *arg)
{
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .on_outage = GALE_ON_OUTAGE_ALLOW };
	static struct house other; /* outlives this: its shards run on */
	struct gale_runtime *fresh;

	(void)arg;
	(void)open_house();
	house_open(&other, &plan);
	gale_on_panic(jump_back);
	if (setjmp(back) == 0)
		gale_panic("some/file.c", 1, "a test");
	if (told != 1)
		return 1;
	/* Every runtime of the library is fenced, and one that is opened now. */
	if (!is_fenced_for_good(&house) || !is_fenced_for_good(&other))
		return 2;
	if (gale_runtime_open(NULL, &fresh) == GALE_ERR_OK) {
		struct gale_seat *seat;

		if (gale_join(fresh, &seat) != GALE_ERR_FENCED)
			return 3;
	}
	return 0;
}

static void a_hook_that_does_not_return_leaves_everything_denied(void **state)
{
	(void)state;
	assert_int_equal(child_run(panic_and_live_on, NULL), 0);
}

static enum gale_why why_of_all(struct house *h)
{
	struct gale_part part = { h->limiter, "k", 1, 1 };
	struct gale_all all = { .parts = &part, .count = 1 };

	return gale_wait_all(h->seat, &all, GALE_SECONDS(30)).why;
}

static int panic_with_guard_and_tenant(void *arg)
{
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .mode = GALE_LEASED };
	struct gale_guard_config calls = { .name = "calls" };
	struct gale_budget_config units = { .limit = 9, .window_us = GALE_HOURS(1) };
	struct gale_terms terms = { .weight = 1 };
	struct gale_guard *guard;
	struct gale_budget *budget;
	struct gale_tenant *tenant;

	(void)arg;
	house_open(&house, &plan);
	must(gale_guard_open(house.runtime, &calls, &guard) == GALE_ERR_OK &&
	     gale_budget_open(house.runtime, &units, &budget) == GALE_ERR_OK &&
	     gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	must(why_of_all(&house) == GALE_WHY_CREDIT);
	gale_on_panic(jump_back);
	if (setjmp(back) == 0)
		gale_panic("some/file.c", 1, "a test");
	if (gale_enter(house.seat, guard, 1, GALE_NORMAL).why != GALE_WHY_FENCED)
		return 1;
	if (gale_tenant_ask(house.seat, tenant, 1).why != GALE_WHY_FENCED)
		return 2;
	return why_of_all(&house) == GALE_WHY_FENCED ? 0 : 3;
}

static void guards_and_tenants_and_wholes_are_fenced_too(void **state)
{
	(void)state;
	assert_int_equal(child_run(panic_with_guard_and_tenant, NULL), 0);
}

static int how_it_ended;

static void have_a_child_that_panics(const char *what)
{
	pid_t pid = fork();

	(void)what;
	if (pid == 0) {
		gale_on_panic(NULL);
		alarm(30); /* if it waits for somebody to tell */
		gale_panic("some/file.c", 2, "in a child");
	}
	must(waitpid(pid, &how_it_ended, 0) == pid);
	longjmp(back, 1);
}

/* Nobody in it is telling the host. */
static int panic_and_again_in_a_child(void *arg)
{
	(void)arg;
	gale_on_panic(have_a_child_that_panics);
	if (setjmp(back) == 0)
		gale_panic("some/file.c", 1, "a test");
	return WIFSIGNALED(how_it_ended) && WTERMSIG(how_it_ended) == SIGABRT ? 0 : 1;
}

static void a_child_of_who_panicked_can_panic(void **state)
{
	(void)state;
	assert_int_equal(child_run(panic_and_again_in_a_child, NULL), 0);
}

static void wait_for_ever(const char *what)
{
	(void)what;
	must(write(reports[1], "x", 1) == 1);
	for (;;)
		pause();
}

static void *panic_here(void *arg)
{
	gale_panic("some/file.c", 1, "on a thread of the host");
	return arg;
}

/* An ask that was under way when it broke is denied too. */
static int panic_while_others_ask(void *arg)
{
	struct house *h = open_house();
	struct gale_completion completion;
	struct holder holder;
	pthread_t thread;
	char byte;

	(void)arg;
	gale_on_panic(wait_for_ever);
	holder_begin(&holder, h->limiter, "k");
	if (gale_ask(h->seat, h->limiter, "k", 1, 1, NULL).verdict != GALE_PENDING)
		return 1;
	must(pthread_create(&thread, NULL, panic_here, NULL) == 0);
	must(read(reports[0], &byte, 1) == 1);
	holder_end(&holder);
	while (gale_seat_completions(h->seat, &completion, 1) == 0)
		continue;
	if (completion.answer.verdict != GALE_DENY ||
	    completion.answer.why != GALE_WHY_FENCED)
		return 2;
	return is_fenced_for_good(h) ? 0 : 3;
}

static void an_ask_that_was_pending_when_it_broke_is_denied(void **state)
{
	(void)state;
	must(pipe(reports) == 0);
	assert_int_equal(child_run(panic_while_others_ask, NULL), 0);
	close(reports[0]);
	close(reports[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closing_twice_is_a_broken_contract),
		cmocka_unit_test(a_mailbox_has_two_slots_or_a_power_of_them),
#ifdef GALE_DEBUG
		cmocka_unit_test(a_seat_on_the_wrong_thread_is_noticed),
#endif
		cmocka_unit_test(the_hook_is_told_once_and_fenced_and_then_it_ends),
		cmocka_unit_test(without_a_hook_it_just_ends),
		cmocka_unit_test(a_hook_that_does_not_return_leaves_everything_denied),
		cmocka_unit_test(guards_and_tenants_and_wholes_are_fenced_too),
		cmocka_unit_test(an_ask_that_was_pending_when_it_broke_is_denied),
		cmocka_unit_test(a_child_of_who_panicked_can_panic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
