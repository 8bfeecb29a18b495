/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * requirements_servers_test.c -- requirements by their numbers, on a real Redis and a real
 * PostgreSQL.
 *
 * The numbers are those of tests/sim/requirements_test.c; these are the ones that are about
 * what a store does.  The servers' clock stands where a test puts it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/both_servers.h"
#include "tests/support/fake_time.h"
#include "tests/support/must.h"

#define FIRST_NOON_US (UINT64_C(1893456000000000) + GALE_HOURS(12)) /* in 2030 */
#define WITHIN GALE_SECONDS(10)
#define NODES 4
#define ENOUGH 500 /* asks of each node until all is surely denied */
#define HANDFUL 4
#define ASKERS 12
#define FLIPS 150
#define RESETS 50

struct node {
	struct gale_clock clock; /* first */
	_Atomic int64_t ahead_us;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
};

static struct fake_time server_time;
static uint64_t noon_us =
    FIRST_NOON_US; /* of another day for each test: time goes on */
static struct both_servers both;
static struct node nodes[NODES];
static unsigned limiters; /* so far: each has a name of its own, but for shared ones */
static char latest_name[16];

static void nap_us(long us)
{
	const struct timespec moment = { .tv_nsec = us * 1000 };

	nanosleep(&moment, NULL);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static uint64_t now_us(struct gale_clock *self)
{
	const struct node *node = (struct node *)self;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 +
	                  load_relaxed(&node->ahead_us));
}

static uint64_t boot_ns(struct gale_clock *self)
{
	const struct node *node = (struct node *)self;

	return (uint64_t)((int64_t)patience_now_ns() +
	                  1000 * load_relaxed(&node->ahead_us));
}

static void open_nodes(int which, int count)
{
	struct gale_store_config store = { .url = both.urls[which],
		                           .quarantine_us = 1 };

	for (int i = 0; i < count; i++) {
		struct node *node = &nodes[i];
		struct gale_config config = { .shards = 1, .clock = &node->clock };

		memset(node, 0, sizeof(*node));
		node->clock = (struct gale_clock){ now_us, boot_ns };
		must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
		must(gale_store_open(node->runtime, &store, &node->store) ==
		     GALE_ERR_OK);
		must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
	}
}

static void close_nodes(int count)
{
	for (int i = 0; i < count; i++) {
		gale_leave(nodes[i].seat);
		gale_store_close(nodes[i].store);
		gale_runtime_close(nodes[i].runtime);
	}
}

/* Of the name that was last made up. */
static struct gale_limiter *same_limiter(int node, struct gale_rule rule,
                                         enum gale_mode mode)
{
	struct gale_limiter_config config = {
		.name = latest_name,
		.rule = rule,
		.mode = mode,
		.store = nodes[node].store,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = 10,
		           .patience_us = WITHIN },
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(nodes[node].runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_limiter *new_limiter(int node, struct gale_rule rule,
                                        enum gale_mode mode)
{
	snprintf(latest_name, sizeof(latest_name), "r%u", limiters++);
	return same_limiter(node, rule, mode);
}

static struct gale_answer ask(int node, struct gale_limiter *limiter, uint64_t cost)
{
	return gale_wait(nodes[node].seat, limiter, "k", 1, cost, WITHIN);
}

static uint64_t admits(int node, struct gale_limiter *limiter, unsigned asks)
{
	uint64_t admitted = 0;

	while (asks-- > 0)
		admitted += ask(node, limiter, 1).verdict == GALE_ALLOW;
	return admitted;
}

static void on_both(void (*run)(int which))
{
	for (int which = 0; which < BOTH; which++) {
		noon_us += GALE_DAYS(1);
		fake_time_set(&server_time, noon_us);
		run(which);
	}
}

/* ---- R-3 ------------------------------------------------------------------------- */

static uint64_t admits_while_the_clock_swings(struct gale_rule rule, uint64_t by_us)
{
	struct gale_limiter *limiter = new_limiter(0, rule, GALE_STRICT);
	uint64_t admitted;

	fake_time_set(&server_time, noon_us - by_us);
	admitted = admits(0, limiter, 12);
	for (unsigned i = 0; i < 200; i++) {
		fake_time_set(&server_time, i % 2 ? noon_us + by_us : noon_us - by_us);
		admitted += admits(0, limiter, 1);
	}
	gale_limiter_close(limiter);
	return admitted;
}

static void r3_swings(int which)
{
	open_nodes(which, 1);
	assert_int_equal(
	    admits_while_the_clock_swings(gale_fixed_window(10, GALE_SECONDS(1)), 1000),
	    20);
	/* Eight tenths of a second have passed, once. */
	assert_int_equal(
	    admits_while_the_clock_swings(gale_token_bucket(10, 5, GALE_SECONDS(1)),
	                                  GALE_MILLIS(400)),
	    14);
	close_nodes(1);
}

/* A clock that swings around a boundary opens two windows and not a hundred; a bucket gains
 * what the time is worth that has passed. */
static void r3_a_clock_that_alternates_opens_no_window_again(void **state)
{
	(void)state;
	on_both(r3_swings);
}

/* ---- R-4 ------------------------------------------------------------------------- */

/* Nodes are 50 ms early or late, which moves on with each window. */
static void r4_windows(int which)
{
	const int64_t off_us[NODES] = { -50000, 50000, -25000, 25000 };
	struct gale_limiter *pool[NODES];

	open_nodes(which, NODES);
	for (int i = 0; i < NODES; i++) {
		store_relaxed(&nodes[i].ahead_us, off_us[i]);
		if (i == 0)
			pool[i] = new_limiter(i, gale_fixed_window(100, GALE_HOURS(1)),
			                      GALE_LEASED);
		else
			pool[i] = same_limiter(i, gale_fixed_window(100, GALE_HOURS(1)),
			                       GALE_LEASED);
	}
	for (unsigned window = 0; window < 5; window++) {
		uint64_t admitted = 0;

		fake_time_set(&server_time, noon_us + window * GALE_HOURS(1));
		for (int i = 0; i < NODES * 30; i++)
			admitted += admits(i % NODES, pool[i % NODES], 1);
		for (int i = 0; i < NODES; i++)
			admitted += admits(i, pool[i], 50);
		assert_int_equal(admitted, 100);
		for (int i = 0; i < NODES; i++)
			add_relaxed(&nodes[i].ahead_us, (int64_t)GALE_HOURS(1));
	}
	for (int i = 0; i < NODES; i++)
		gale_limiter_close(pool[i]);
	close_nodes(NODES);
}

static void r4_nodes_whose_clocks_differ_share_a_pool(void **state)
{
	(void)state;
	on_both(r4_windows);
}

/* ---- R-11 ------------------------------------------------------------------------ */

struct crowd {
	struct gale_limiter *limiter;
	_Atomic bool stopping;
	_Atomic uint64_t admitted;
};

static struct crowd crowd;

static void *asker_main(void *arg)
{
	struct gale_seat *seat;

	(void)arg;
	must(gale_join(nodes[0].runtime, &seat) == GALE_ERR_OK);
	while (!load_relaxed(&crowd.stopping)) {
		struct gale_answer answer =
		    gale_wait(seat, crowd.limiter, "k", 1, 1, WITHIN);

		add_relaxed(&crowd.admitted, answer.verdict == GALE_ALLOW);
	}
	gale_leave(seat);
	return NULL;
}

/* The boundary is crossed many times, and for good once in a while. */
static uint64_t flip(unsigned i)
{
	uint64_t boundary = noon_us + i / 10 * GALE_HOURS(1);

	return i % 2 ? boundary - 1000 : boundary + 1000;
}

static void assert_only_forward(int which, uint64_t before[2])
{
	uint64_t now[2];

	if (!both_servers_look(&both, which, latest_name, "k", now))
		return;
	assert_true(now[0] >= before[0]);
	assert_true(now[0] > before[0] || now[1] >= before[1]);
	memcpy(before, now, sizeof(now));
}

static void r11_straddle(int which)
{
	uint64_t before[2] = { 0 };
	pthread_t askers[ASKERS];

	open_nodes(which, 1);
	crowd =
	    (struct crowd){ .limiter = new_limiter(
				0, gale_fixed_window(40, GALE_HOURS(1)), GALE_STRICT) };
	for (int i = 0; i < ASKERS; i++)
		must(pthread_create(&askers[i], NULL, asker_main, NULL) == 0);
	for (unsigned i = 0; i < FLIPS; i++) {
		fake_time_set(&server_time, flip(i));
		nap_us(2000);
		assert_only_forward(which, before);
	}
	store_relaxed(&crowd.stopping, true);
	for (int i = 0; i < ASKERS; i++)
		must(pthread_join(askers[i], NULL) == 0);
	/* Eleven to noon, and one window for each ten flips. */
	assert_in_range(crowd.admitted, 41, 40 * (1 + FLIPS / 10));
	gale_limiter_close(crowd.limiter);
	close_nodes(1);
}

/* Whoever waited for a lock while the window turned counts in the new one. */
static void r11_counts_never_decrease_within_a_window(void **state)
{
	(void)state;
	on_both(r11_straddle);
}

/* ---- R-12 ------------------------------------------------------------------------ */

static void r12_costs(int which)
{
	open_nodes(which, 1);
	for (int mode = 0; mode < 3; mode++) {
		struct gale_limiter *limiter = new_limiter(
		    0, gale_fixed_window(10, GALE_HOURS(1)), (enum gale_mode)mode);
		struct gale_answer answer = ask(0, limiter, 100);

		assert_int_equal(answer.verdict, GALE_DENY);
		assert_true(answer.retry_after_us == GALE_NEVER);
		assert_int_equal(admits(0, limiter, 11), 10);
		gale_limiter_close(limiter);
	}
	close_nodes(1);
}

static void r12_a_cost_above_the_limit_hinders_nobody(void **state)
{
	(void)state;
	on_both(r12_costs);
}

/* ---- R-14 ------------------------------------------------------------------------ */

static uint64_t round_trips(void)
{
	struct gale_counts counts;

	must(gale_store_stats(nodes[0].store, &counts) == GALE_ERR_OK);
	return counts.round_trips;
}

static void r14_checks(int which)
{
	const enum gale_mode modes[] = { GALE_CACHED_DENY, GALE_LEASED };

	open_nodes(which, 1);
	for (int i = 0; i < 2; i++) {
		struct gale_limiter *limiter =
		    new_limiter(0, gale_fixed_window(10, GALE_HOURS(1)), modes[i]);
		uint64_t before;

		assert_int_equal(admits(0, limiter, 10), 10);
		before = round_trips();
		assert_int_equal(admits(0, limiter, ENOUGH), 0);
		assert_in_range(round_trips() - before, 0, HANDFUL);
		gale_limiter_close(limiter);
	}
	close_nodes(1);
}

static void r14_who_is_exhausted_costs_the_store_nothing(void **state)
{
	(void)state;
	on_both(r14_checks);
}

/* The denial of an ask that is under way when the key is reset is of before. */
static void reset_checks(int which)
{
	struct gale_seat *seat;

	open_nodes(which, 1);
	seat = nodes[0].seat;
	for (int i = 0; i < RESETS; i++) {
		struct gale_limiter *limiter = new_limiter(
		    0, gale_fixed_window(10, GALE_HOURS(1)), GALE_CACHED_DENY);

		assert_int_equal(admits(0, limiter, 10), 10);
		(void)gale_ask(seat, limiter, "k", 1, 7, NULL);
		assert_int_equal(gale_reset(seat, limiter, "k", 1, WITHIN),
		                 GALE_ERR_OK);
		assert_int_equal(gale_wait(seat, limiter, "k", 1, 7, WITHIN).verdict,
		                 GALE_ALLOW);
		gale_limiter_close(limiter);
	}
	close_nodes(1);
}

static void a_reset_forgets_denials_that_are_on_their_way(void **state)
{
	(void)state;
	on_both(reset_checks);
}

/* ---- Servers --------------------------------------------------------------------- */

static int start_servers(void **state)
{
	(void)state;
	fake_time_begin(&server_time, FIRST_NOON_US - GALE_DAYS(1));
	both_servers_start(&both);
	fake_time_end();
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	both_servers_stop(&both);
	fake_time_close(&server_time);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r3_a_clock_that_alternates_opens_no_window_again),
		cmocka_unit_test(r4_nodes_whose_clocks_differ_share_a_pool),
		cmocka_unit_test(r11_counts_never_decrease_within_a_window),
		cmocka_unit_test(r12_a_cost_above_the_limit_hinders_nobody),
		cmocka_unit_test(r14_who_is_exhausted_costs_the_store_nothing),
		cmocka_unit_test(a_reset_forgets_denials_that_are_on_their_way),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
