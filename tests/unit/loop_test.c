/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * loop_test.c -- a seat in a loop of libuv (LOOP_UV), libev (LOOP_EV) or libevent.
 *
 * It is compiled once for each, since libev has functions of libevent's names.  Each scene
 * runs in a runtime with threads and in one that takes its turns in the loop.  A loop that
 * misses an answer, or the time of a turn, runs until the test is ended.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#if defined(LOOP_UV)
#include <gale/uv.h>
#elif defined(LOOP_EV)
#include <gale/ev.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_answers_come_each_once),
		cmocka_unit_test(what_only_the_time_brings_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
