/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * backend_test.c -- a backend counts what is in flight, and ends what silent callers have there.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/caller.h"

#define HOUR_US UINT64_C(3600000000)
#define MANY 10000
#define PATIENCE_NS UINT64_C(60000000000)

struct ear {
	struct caller_taker taker; /* first */
	uint64_t done;
	uint64_t aborted;
	uint64_t last; /* the number that ended last */
	bool in_order;
};

static void hear_end(struct caller_taker *self, uint64_t number, enum backend_end end)
{
	struct ear *ear = (struct ear *)self;

	ear->done += end == BACKEND_DONE;
	ear->aborted += end == BACKEND_ABORTED;
	ear->in_order = ear->in_order && number == ear->last + 1;
	ear->last = number;
}

static const struct ear new_ear = { .taker = { hear_end }, .in_order = true };

static struct backend start(struct backend_terms terms)
{
	struct sentence why;
	struct backend backend;

	assert_true(backend_start(&backend, &terms, &why));
	return backend;
}

static struct backend_counts look(struct backend *backend)
{
	struct backend_counts counts;

	assert_true(backend_look(backend, &counts));
	return counts;
}

static struct caller open_caller(const struct backend *backend, uint32_t node,
                                 uint64_t abort_us, struct ear *ear)
{
	struct caller caller;

	assert_true(caller_open(&caller, backend, node, abort_us, &ear->taker));
	return caller;
}

static void call(struct caller *caller, uint64_t count, uint64_t takes_us)
{
	caller_begin_turn(caller);
	for (uint64_t i = 1; i <= count; i++)
		caller_call(caller, i, takes_us);
}

/* Until all have ended, or, if count is 0, for a moment. */
static void turn_until(struct caller *caller, struct ear *ear, uint64_t count)
{
	uint64_t deadline_ns = backend_now_ns() + PATIENCE_NS;

	do {
		caller_begin_turn(caller);
		assert_true(caller_turn(caller, caller->now_ns + 1000000));
		assert_true(backend_now_ns() < deadline_ns);
	} while (ear->done + ear->aborted < count);
}

static void await_begun(struct caller *caller, struct ear *ear, struct backend *backend,
                        uint64_t count)
{
	while (look(backend).all.begun < count)
		turn_until(caller, ear, 0);
}

static void the_first_call_is_the_first_to_end(void **state)
{
	struct backend backend =
	    start((struct backend_terms){ .places = 1, .takes_us = 1000 });
	struct ear ear = new_ear;
	struct caller caller = open_caller(&backend, 7, 0, &ear);
	uint64_t began_ns = backend_now_ns();
	struct backend_counts counts;

	(void)state;
	call(&caller, 30, 0);
	turn_until(&caller, &ear, 30);
	assert_true(backend_now_ns() - began_ns >= 30 * 1000000);
	assert_true(ear.in_order);
	counts = look(&backend);
	assert_int_equal(counts.all.in_flight, 0);
	assert_int_equal(counts.all.done, 30);
	assert_in_range(counts.all.worst, 1, 30);
	assert_int_equal(counts.of[7].worst, counts.all.worst);
	assert_int_equal(counts.of[7].done, 30);
	assert_int_equal(counts.of[6].begun, 0);
	caller_close(&caller);
	backend_end(&backend);
}

static void a_stopped_backend_holds_ten_thousand_calls(void **state)
{
	struct backend_terms terms = { .places = 64, .takes_us = 1, .stopped = 1 };
	struct backend backend = start(terms);
	struct ear ears[2] = { new_ear, new_ear };
	struct caller callers[2];
	struct backend_counts counts;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		callers[i] = open_caller(&backend, i, 0, &ears[i]);
		call(&callers[i], MANY, 0);
		await_begun(&callers[i], &ears[i], &backend, (i + 1) * MANY);
	}
	counts = look(&backend);
	assert_int_equal(counts.all.in_flight, 2 * MANY);
	assert_int_equal(counts.all.worst, 2 * MANY);
	assert_int_equal(counts.of[1].in_flight, MANY);
	assert_int_equal(ears[0].done + ears[1].done, 0);

	terms.stopped = 0;
	assert_true(backend_set(&backend, &terms));
	for (int i = 0; i < 2; i++)
		turn_until(&callers[i], &ears[i], MANY);
	assert_int_equal(ears[0].done + ears[1].done, 2 * MANY);
	assert_int_equal(look(&backend).all.in_flight, 0);
	assert_int_equal(look(&backend).recent_worst, 0);
	assert_int_equal(look(&backend).all.worst, 2 * MANY);
	for (int i = 0; i < 2; i++)
		caller_close(&callers[i]);
	backend_end(&backend);
}

static void with_half_of_the_places_it_takes_twice_as_long(void **state)
{
	struct backend_terms terms = { .places = 8, .takes_us = 5000 };
	struct backend backend = start(terms);
	struct ear ear = new_ear;
	struct caller caller = open_caller(&backend, 0, 0, &ear);
	uint64_t began_ns = backend_now_ns();

	(void)state;
	call(&caller, 80, 0);
	turn_until(&caller, &ear, 80);
	assert_true(backend_now_ns() - began_ns >= 10 * 5000000);

	terms.places = 4;
	assert_true(backend_set(&backend, &terms));
	began_ns = backend_now_ns();
	call(&caller, 80, 0);
	turn_until(&caller, &ear, 160);
	assert_true(backend_now_ns() - began_ns >= 20 * 5000000);
	caller_close(&caller);
	backend_end(&backend);
}

static void latency_bends_from_the_knee_on(void **state)
{
	const struct backend_terms bends = { .places = 16, .bends = 1 };
	const struct backend_terms steady = { .places = 16 };
	static const uint64_t at[][2] = {
		{ 1, 10000 },  { 16, 10000 }, { 17, 10039 },  { 20, 10625 },
		{ 24, 12500 }, { 32, 20000 }, { 64, 100000 }, { 160, 820000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_int_equal(backend_takes_us(&bends, 10000, at[i][0]), at[i][1]);
		assert_int_equal(backend_takes_us(&steady, 10000, at[i][0]), 10000);
	}
}

/* A call beside a hundred others takes 10,000 times as long as one that is nearly alone. */
static void calls_in_flight_slow_a_call_down(void **state)
{
	struct backend backend = start(
	    (struct backend_terms){ .places = 1, .takes_us = HOUR_US, .bends = 1 });
	struct ear ears[3] = { new_ear, new_ear, new_ear };
	struct caller crowd = open_caller(&backend, 0, 0, &ears[0]),
		      slow = open_caller(&backend, 1, 0, &ears[1]),
		      quick = open_caller(&backend, 2, 0, &ears[2]);

	(void)state;
	call(&crowd, 100, 0);
	await_begun(&crowd, &ears[0], &backend, 100);
	call(&slow, 1, 10000);
	await_begun(&slow, &ears[1], &backend, 101);
	caller_cancel(&crowd);
	turn_until(&crowd, &ears[0], 100);
	assert_int_equal(ears[0].aborted, 100);
	assert_int_equal(look(&backend).all.in_flight, 1);

	call(&quick, 1, 10000);
	turn_until(&quick, &ears[2], 1);
	assert_int_equal(ears[2].done, 1);
	assert_int_equal(look(&backend).of[1].in_flight, 1);
	caller_close(&crowd);
	caller_close(&slow);
	caller_close(&quick);
	backend_end(&backend);
}

static void a_cancelled_call_ends(void **state)
{
	struct backend backend =
	    start((struct backend_terms){ .places = 2, .takes_us = HOUR_US });
	struct ear ears[2] = { new_ear, new_ear };
	struct caller canceller = open_caller(&backend, 0, 0, &ears[0]),
		      other = open_caller(&backend, 0, 0, &ears[1]);

	(void)state;
	call(&other, 2, 0);
	await_begun(&other, &ears[1], &backend, 2);
	call(&canceller, 5, 0);
	await_begun(&canceller, &ears[0], &backend, 7);
	caller_cancel(&canceller);
	turn_until(&canceller, &ears[0], 5);
	assert_int_equal(ears[0].aborted, 5);
	assert_int_equal(ears[1].aborted, 0);
	assert_int_equal(look(&backend).all.in_flight, 2);
	assert_int_equal(look(&backend).all.aborted, 5);
	caller_close(&canceller);
	caller_close(&other);
	backend_end(&backend);
}

/* ---- Callers that die or stop ---------------------------------------------------- */

/* It calls, says so, and goes on until its connection is cut. */
static pid_t fork_caller(struct backend *backend, uint64_t abort_us, uint64_t count)
{
	struct ear ear = new_ear;
	struct caller caller;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0) {
		while (look(backend).all.begun < count)
			usleep(1000);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	backend_forget(backend);
	if (!caller_open(&caller, backend, 3, abort_us, &ear.taker))
		_exit(1);
	call(&caller, count, 0);
	while (caller_turn(&caller, backend_now_ns() + 1000000))
		caller_begin_turn(&caller);
	_exit(ear.done + ear.aborted == 0 ? 0 : 2);
}

static void await_in_flight(struct backend *backend, uint64_t count)
{
	uint64_t deadline_ns = backend_now_ns() + PATIENCE_NS;

	while (look(backend).all.in_flight != count) {
		assert_true(backend_now_ns() < deadline_ns);
		usleep(1000);
	}
}

static void what_a_dead_caller_has_ends_within_the_abort_time(void **state)
{
	struct backend_terms terms = { .places = 4, .takes_us = HOUR_US };
	struct backend backend = start(terms);
	pid_t pid = fork_caller(&backend, 0, 3);

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(look(&backend).all.in_flight, 3);
	assert_int_equal(look(&backend).cut, 0);

	terms.abort_us = 20000;
	assert_true(backend_set(&backend, &terms));
	await_in_flight(&backend, 0);
	assert_int_equal(look(&backend).of[3].aborted, 3);
	assert_int_equal(look(&backend).cut, 1);
	backend_end(&backend);
}

/* Where the machine gives the caller no processor for the abort time, it is cut before it is
 * stopped, which is as well. */
static void what_a_stopped_caller_has_ends_and_its_connection_is_cut(void **state)
{
	struct backend backend = start((struct backend_terms){
	    .places = 4, .takes_us = HOUR_US, .abort_us = 500000 });
	pid_t pid = fork_caller(&backend, 500000, 9);
	int status;

	(void)state;
	kill(pid, SIGSTOP);
	await_in_flight(&backend, 0);
	assert_int_equal(look(&backend).of[3].aborted, 9);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(look(&backend).all.begun, 9);
	backend_end(&backend);
}

static void a_call_that_was_decided_on_before_the_cut_never_begins(void **state)
{
	struct backend backend = start((struct backend_terms){
	    .places = 1, .takes_us = HOUR_US, .abort_us = 10000 });
	struct ear ear = new_ear;
	struct caller caller = open_caller(&backend, 0, 10000, &ear);

	(void)state;
	caller_begin_turn(&caller);
	while (look(&backend).cut == 0)
		usleep(1000);
	caller_call(&caller, 1, 0);
	assert_false(caller_turn(&caller, caller.now_ns));
	assert_int_equal(look(&backend).all.begun, 0);
	caller_close(&caller);
	backend_end(&backend);
}

static void it_ends_with_its_owner(void **state)
{
	int pipes[2], status;
	pid_t owner, orphan;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(pipes), 0);
	owner = fork();
	assert_true(owner >= 0);
	if (owner == 0) {
		struct backend backend = start((struct backend_terms){ .places = 1 });

		_exit(write(pipes[1], &backend.pid, sizeof(backend.pid)) !=
		      sizeof(backend.pid));
	}
	assert_int_equal(read(pipes[0], &orphan, sizeof(orphan)), sizeof(orphan));
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(orphan, &status, 0), orphan);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_call_is_the_first_to_end),
		cmocka_unit_test(a_stopped_backend_holds_ten_thousand_calls),
		cmocka_unit_test(with_half_of_the_places_it_takes_twice_as_long),
		cmocka_unit_test(latency_bends_from_the_knee_on),
		cmocka_unit_test(calls_in_flight_slow_a_call_down),
		cmocka_unit_test(a_cancelled_call_ends),
		cmocka_unit_test(what_a_dead_caller_has_ends_within_the_abort_time),
		cmocka_unit_test(
		    what_a_stopped_caller_has_ends_and_its_connection_is_cut),
		cmocka_unit_test(
		    a_call_that_was_decided_on_before_the_cut_never_begins),
		cmocka_unit_test(it_ends_with_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
