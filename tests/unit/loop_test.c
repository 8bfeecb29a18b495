/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * loop_test.c -- a seat in a loop of libuv (LOOP_UV), libev (LOOP_EV), io_uring (LOOP_URING) or
 * libevent.
 *
 * It is compiled once for each, since libev has functions of libevent's names.  Each scene
 * runs in a runtime with threads and in one that takes its turns in the loop.  A loop that
 * misses an answer, or the time of a turn, runs until the test is ended.
 *
 * A kernel that refuses io_uring to this process fails the test, which then says so.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(LOOP_UV)
#include <gale/uv.h>
#elif defined(LOOP_EV)
#include <gale/ev.h>
#elif defined(LOOP_URING)
#include <gale/uring.h>
#else
#include <gale/event.h>
#endif

#include "tests/support/must.h"

#define CALLS 100 /* more than are taken at once */

static unsigned to_come;
static bool seen[CALLS];
static enum gale_why last_why;

/* True: it was the last. */
static bool take(void *tag, const struct gale_answer *answer)
{
	bool *it = tag;

	must(it >= seen && it < seen + CALLS && !*it && to_come > 0);
	must(answer->verdict != GALE_PENDING);
	*it = true;
	last_why = answer->why;
	return --to_come == 0;
}

#if defined(LOOP_UV)

/* ---- libuv ------------------------------------------------------------------------ */

static uv_loop_t loop_of_uv;
static struct gale_uv uv;
static bool uv_has_closed;

static void uv_answer(struct gale_uv *self, void *tag, const struct gale_answer *answer)
{
	if (take(tag, answer))
		uv_stop(self->later.loop);
}

static void uv_closed(struct gale_uv *self)
{
	must(self == &uv && self->handles == 0);
	uv_has_closed = true;
}

static void loop_begin(void)
{
	must(uv_loop_init(&loop_of_uv) == 0);
}

static void loop_open(struct gale_runtime *runtime, struct gale_seat *seat)
{
	must(gale_uv_open(&uv, &loop_of_uv, runtime, seat, uv_answer) == 0);
}

static void loop_run(void)
{
	(void)uv_run(&loop_of_uv, UV_RUN_DEFAULT);
}

/* The loop ends by itself: nothing is left in it. */
static void loop_close(void)
{
	uv_has_closed = false;
	gale_uv_close(&uv, uv_closed);
	must(!uv_has_closed && uv_run(&loop_of_uv, UV_RUN_DEFAULT) == 0 &&
	     uv_has_closed);
}

static void loop_end(void)
{
	must(uv_loop_close(&loop_of_uv) == 0);
}

#elif defined(LOOP_EV)

/* ---- libev ------------------------------------------------------------------------ */

static struct ev_loop *loop_of_ev;
static struct gale_ev ev;

static void ev_answer(struct gale_ev *self, void *tag, const struct gale_answer *answer)
{
	if (take(tag, answer))
		ev_break(self->loop, EVBREAK_ALL);
}

static void loop_begin(void)
{
	loop_of_ev = ev_loop_new(0);
	must(loop_of_ev != NULL);
}

static void loop_open(struct gale_runtime *runtime, struct gale_seat *seat)
{
	gale_ev_open(&ev, loop_of_ev, runtime, seat, ev_answer);
}

static void loop_run(void)
{
	(void)ev_run(loop_of_ev, 0);
}

static void loop_close(void)
{
	gale_ev_close(&ev);
	must(!ev_run(loop_of_ev, 0));
}

static void loop_end(void)
{
	ev_loop_destroy(loop_of_ev);
}

#elif defined(LOOP_URING)

/* ---- io_uring --------------------------------------------------------------------- */

/* How the ring of the next loop_begin is. */
static unsigned ring_entries = 8;
static unsigned crowd;          /* requests of the host in each turn of the loop */
static bool knows_no_repeating; /* like a kernel before 5.13 */
static bool refuses_polls;
static bool has_time; /* at first no turn is due for years */

static struct io_uring ring;
static struct gale_uring *uring; /* NULL: it has closed */
static bool has_stopped;
static unsigned polls;  /* requests of it for the seat's descriptor */
static unsigned to_see; /* the host's requests whose cqe has not come */
static char of_host;    /* the user_data of these */

static void uring_answer(struct gale_uring *self, void *tag,
                         const struct gale_answer *answer)
{
	must(self == uring && !self->is_closing);
	has_stopped = take(tag, answer);
}

static void uring_closed(struct gale_uring *self)
{
	must(self == uring);
	uring = NULL;
	free(self);
}

static void loop_begin(void)
{
	int err = io_uring_queue_init(ring_entries, &ring, 0);

	if (err) {
		fprintf(stderr,
		        "This machine refuses io_uring (%s), so gale/uring.h cannot be "
		        "tested: the kernel has none, the sysctl "
		        "kernel.io_uring_disabled is set, or a filter of system calls "
		        "forbids it.\n",
		        strerror(-err));
		exit(1);
	}
	polls = to_see = 0;
}

static void loop_open(struct gale_runtime *runtime, struct gale_seat *seat)
{
	uring = malloc(sizeof(*uring));
	must(uring != NULL);
	gale_uring_open(uring, &ring, runtime, seat, uring_answer);
	if (!has_time)
		return;
	uring->turn_due_ns = INT64_MAX;
	must(gale_uring_prepare(uring) == 0 && io_uring_submit(&ring) > 0 &&
	     uring->is_out[GALE_URING_LATER_]);
}

static void host_asks(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe) {
		must(io_uring_submit(&ring) > 0);
		sqe = io_uring_get_sqe(&ring);
	}
	must(sqe != NULL);
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, &of_host);
	to_see++;
}

/* Every kernel refuses a poll that has a buf_index, as an older one refuses to repeat it. */
static void look_at_polls(void)
{
	for (unsigned at = ring.sq.sqe_head; at != ring.sq.sqe_tail; at++) {
		struct io_uring_sqe *sqe = &ring.sq.sqes[at & *ring.sq.kring_mask];

		if (sqe->opcode != IORING_OP_POLL_ADD ||
		    sqe->user_data != (uintptr_t)&uring->is_out[GALE_URING_ANSWERS_])
			continue;
		polls++;
		if (refuses_polls ||
		    (knows_no_repeating && sqe->len & IORING_POLL_ADD_MULTI))
			sqe->buf_index = 1;
	}
}

static void take_cqes(void)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned count = 0;

	io_uring_for_each_cqe(&ring, head, cqe)
	{
		count++;
		if (uring && gale_uring_take(uring, cqe))
			continue;
		must(cqe->user_data == (uintptr_t)&of_host && to_see > 0);
		to_see--;
	}
	io_uring_cq_advance(&ring, count);
}

static void turn_loop(void)
{
	for (unsigned call = 0; call < crowd; call++)
		host_asks();
	must(gale_uring_prepare(uring) == 0);
	look_at_polls();
	must(io_uring_submit_and_wait(&ring, 1) >= 0);
	take_cqes();
}

static void loop_run(void)
{
	has_stopped = false;
	while (!has_stopped)
		turn_loop();
}

/* What the ring still has is the host's. */
static void drain(void)
{
	while (uring)
		turn_loop();
	host_asks();
	while (to_see > 0) {
		must(io_uring_submit_and_wait(&ring, 1) >= 0);
		take_cqes();
	}
}

static void loop_close(void)
{
	gale_uring_close(uring, uring_closed);
	drain();
}

static void loop_end(void)
{
	io_uring_queue_exit(&ring);
}

#else

/* ---- libevent --------------------------------------------------------------------- */

static struct event_base *base;
static struct gale_event event;

static void event_answer(struct gale_event *self, void *tag,
                         const struct gale_answer *answer)
{
	if (take(tag, answer))
		(void)event_base_loopbreak(event_get_base(&self->answers));
}

static void loop_begin(void)
{
	base = event_base_new();
	must(base != NULL);
}

static void loop_open(struct gale_runtime *runtime, struct gale_seat *seat)
{
	must(gale_event_open(&event, base, runtime, seat, event_answer) == 0);
}

static void loop_run(void)
{
	must(event_base_dispatch(base) == 0);
}

static void loop_close(void)
{
	gale_event_close(&event);
	must(event_base_dispatch(base) == 1); /* no events are left */
}

static void loop_end(void)
{
	event_base_free(base);
}

#endif

/* ---- Scenes ----------------------------------------------------------------------- */

struct host {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static void open_host(struct host *host, bool turns, const char *url)
{
	struct gale_config config = { .turns = turns };
	struct gale_store_config store = { .url = url };
	struct gale_limiter_config limiter = { .name = "l",
		                               .rule = gale_fixed_window(1000000,
		                                                         GALE_DAYS(1)),
		                               .mode = GALE_LEASED,
		                               .on_outage = GALE_ON_OUTAGE_ALLOW };

	must(gale_runtime_open(&config, &host->runtime) == GALE_ERR_OK);
	must(gale_store_open(host->runtime, &store, &host->store) == GALE_ERR_OK);
	must(gale_join(host->runtime, &host->seat) == GALE_ERR_OK);
	limiter.store = host->store;
	must(gale_limiter_open(host->runtime, &limiter, &host->limiter) == GALE_ERR_OK);
}

static void close_host(struct host *host)
{
	gale_leave(host->seat);
	gale_limiter_close(host->limiter);
	gale_store_close(host->store);
	gale_runtime_close(host->runtime);
}

/* Of a key that nobody has asked about, so that each is pending. */
static void ask(struct host *host, unsigned round, unsigned calls)
{
	for (unsigned i = 0; i < calls; i++) {
		unsigned key[2] = { round, i };

		seen[i] = false;
		must(gale_ask(host->seat, host->limiter, key, sizeof(key), 1, &seen[i])
		         .verdict == GALE_PENDING);
	}
	to_come = calls;
}

/* Also after it was closed and opened again. */
static void all_answers_come_each_once(void **state)
{
	(void)state;
	for (int turns = 0; turns < 2; turns++) {
		struct host host;

		open_host(&host, turns == 1, NULL);
		loop_begin();
		for (unsigned round = 0; round < 3; round++) {
			loop_open(host.runtime, host.seat);
			ask(&host, round, CALLS);
			loop_run();
			assert_int_equal(to_come, 0);
			for (size_t call = 0; call < CALLS; call++)
				assert_true(seen[call]);
			assert_int_equal(last_why, GALE_WHY_CREDIT);
			loop_close();
		}
		loop_end();
		close_host(&host);
	}
}

/* It accepts, as far as the kernel does, and never says a word. */
static int open_silent_server(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, (struct sockaddr *)&address, length) == 0 &&
	     listen(fd, 16) == 0 &&
	     getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* Nothing happens on any descriptor: only the time ends the patience. */
static void what_only_the_time_brings_comes(void **state)
{
#ifdef GALE_REDIS
	(void)state;
	for (int turns = 0; turns < 2; turns++) {
		struct host host;
		char url[64];
		uint16_t port;
		int server = open_silent_server(&port);

		snprintf(url, sizeof(url), "redis://127.0.0.1:%u", port);
		open_host(&host, turns == 1, url);
		loop_begin();
		loop_open(host.runtime, host.seat);
		ask(&host, 0, 1);
		loop_run();
		assert_int_equal(last_why, GALE_WHY_LATE);
		loop_close();
		loop_end();
		close_host(&host);
		close(server);
	}
#else
	(void)state;
	(void)open_silent_server;
#endif
}

#if defined(LOOP_URING)

/* ---- Scenes of io_uring alone ------------------------------------------------------ */

/* A queue of two, and the host fills it in each turn. */
static void a_full_queue_is_submitted(void **state)
{
	ring_entries = 2;
	crowd = 6;
	all_answers_come_each_once(state);
	what_only_the_time_brings_comes(state);
	ring_entries = 8;
	crowd = 0;
}

/* The loop sleeps until another time already. */
static void a_turn_that_is_due_sooner_comes_in_time(void **state)
{
	has_time = true;
	what_only_the_time_brings_comes(state);
	has_time = false;
}

static void one_poll_tells_of_all_answers(void **state)
{
	struct host host;

	(void)state;
	open_host(&host, false, NULL);
	loop_begin();
	loop_open(host.runtime, host.seat);
	for (unsigned round = 0; round < 3; round++) {
		ask(&host, round, 1);
		loop_run();
	}
	assert_int_equal(polls, 1);
	loop_close();
	loop_end();
	close_host(&host);
}

static void a_kernel_whose_polls_do_not_repeat(void **state)
{
	knows_no_repeating = true;
	all_answers_come_each_once(state);
	assert_true(polls > 3);
	knows_no_repeating = false;
}

/* As a host may, by its descriptor or with all else in the ring. */
static void a_poll_that_was_cancelled_is_made_again(void **state)
{
	struct host host;
	struct io_uring_sqe *sqe;

	(void)state;
	open_host(&host, false, NULL);
	loop_begin();
	loop_open(host.runtime, host.seat);
	ask(&host, 0, 1);
	loop_run();
	sqe = io_uring_get_sqe(&ring);
	must(sqe != NULL);
	io_uring_prep_cancel(sqe, &uring->is_out[GALE_URING_ANSWERS_], 0);
	io_uring_sqe_set_data(sqe, &of_host);
	for (to_see = 1; to_see > 0;)
		turn_loop();
	ask(&host, 1, 1);
	loop_run();
	assert_int_equal(to_come, 0);
	assert_int_equal(polls, 2);
	loop_close();
	loop_end();
	close_host(&host);
}

/* Answers are under way, and the seat's descriptor is closed, before the last cqe comes. */
static void a_seat_may_leave_before_the_last_cqe(void **state)
{
	(void)state;
	for (int turns = 0; turns < 2; turns++) {
		struct host host;

		open_host(&host, turns == 1, NULL);
		loop_begin();
		loop_open(host.runtime, host.seat);
		ask(&host, 0, CALLS);
		must(gale_uring_prepare(uring) == 0 && io_uring_submit(&ring) > 0);
		gale_uring_close(uring, uring_closed);
		assert_non_null(uring);
		close_host(&host);
		drain();
		assert_int_equal(to_come, CALLS);
		loop_end();
	}
}

static void nothing_is_to_come_where_nothing_was_made(void **state)
{
	struct host host;

	(void)state;
	open_host(&host, true, NULL);
	loop_begin();
	loop_open(host.runtime, host.seat);
	gale_uring_close(uring, uring_closed);
	assert_null(uring);
	loop_end();
	close_host(&host);
}

/* First as a poll that repeats, then as one that does not; and each time that it is made. */
static void what_the_kernel_refuses_is_told(void **state)
{
	struct host host;

	(void)state;
	refuses_polls = true;
	open_host(&host, false, NULL);
	loop_begin();
	loop_open(host.runtime, host.seat);
	turn_loop();
	for (unsigned again = 0; again < 2; again++) {
		turn_loop();
		assert_int_equal(gale_uring_prepare(uring), -EINVAL);
	}
	refuses_polls = false;
	ask(&host, 0, 1);
	loop_run();
	assert_int_equal(to_come, 0);
	loop_close();
	loop_end();
	close_host(&host);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_answers_come_each_once),
		cmocka_unit_test(what_only_the_time_brings_comes),
#if defined(LOOP_URING)
		cmocka_unit_test(a_full_queue_is_submitted),
		cmocka_unit_test(a_turn_that_is_due_sooner_comes_in_time),
		cmocka_unit_test(one_poll_tells_of_all_answers),
		cmocka_unit_test(a_kernel_whose_polls_do_not_repeat),
		cmocka_unit_test(a_poll_that_was_cancelled_is_made_again),
		cmocka_unit_test(a_seat_may_leave_before_the_last_cqe),
		cmocka_unit_test(nothing_is_to_come_where_nothing_was_made),
		cmocka_unit_test(what_the_kernel_refuses_is_told),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
