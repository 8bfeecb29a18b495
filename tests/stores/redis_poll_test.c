/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_poll_test.c -- a node that polls is awake when its server answers.
 *
 * It has a suite of its own, beside which nothing runs: where others keep the processors, or are given them
 * when a thread gives way, the node rests (runtime/wake.c).
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/node.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/sleeps.h"

#define WITHIN GALE_SECONDS(5)
#define ASKS_IN_A_ROW 3
#define LONG_NS                                                                        \
	UINT64_C(60000000000) /* anything may make a thread sleep, now and then */

static struct redis_server server;
static struct proxy proxy; /* takes so long that who does not poll sleeps meanwhile */

static int start(void **state)
{
	(void)state;
	redis_server_start(&server, NULL);
	proxy_open(&proxy, server.socket);
	proxy_delay(&proxy, TO_NODE, GALE_MILLIS(2));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	proxy_close(&proxy);
	redis_server_stop(&server);
	return 0;
}

static void open_node(struct node *node, uint32_t poll_us, bool turns)
{
	char url[64];
	struct node_plan plan = {
		.url = url,
		.quarantine_us = 1,
		.shards = 1,
		.poll_us = poll_us,
		.turns = turns,
		.limiter = { .name = "polls",
		             .rule = gale_fixed_window(GALE_UNITS_MAX, GALE_DAYS(365)),
		             .lease.patience_us = WITHIN },
	};

	snprintf(url, sizeof(url), "redis://127.0.0.1:%u", proxy.port);
	node_open(node, &plan);
	while (node_wait(node, "k", WITHIN).verdict != GALE_ALLOW)
		nap(10000); /* the server has just been started */
}

/* This thread and, unless it turns itself, the shard's have slept so often. */
static uint64_t sleeps_of_node(bool turns)
{
	uint64_t own = sleeps_of((pid_t)syscall(SYS_gettid));

	return turns ? own : own + sleeps_of(thread_called("gale-shard-0"));
}

static uint64_t sleeps_in_a_row(struct node *node, bool turns)
{
	uint64_t before = sleeps_of_node(turns);

	for (unsigned i = 0; i < ASKS_IN_A_ROW; i++)
		assert_int_equal(node_wait(node, "k", WITHIN).verdict, GALE_ALLOW);
	return sleeps_of_node(turns) - before;
}

static void check(bool turns)
{
	uint64_t deadline_ns = patience_now_ns() + LONG_NS;
	struct node node;

	open_node(&node, GALE_MILLIS(10), turns);
	while (sleeps_in_a_row(&node, turns) > 0)
		assert_true(patience_now_ns() < deadline_ns);
	node_close(&node);

	open_node(&node, 0, turns);
	assert_in_range(sleeps_in_a_row(&node, turns), ASKS_IN_A_ROW, UINT64_MAX);
	node_close(&node);
}

static void no_thread_of_it_sleeps(void **state)
{
	(void)state;
	check(/* turns= */ false);
}

static void nor_does_who_turns_it(void **state)
{
	(void)state;
	check(/* turns= */ true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_of_it_sleeps),
		cmocka_unit_test(nor_does_who_turns_it),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
