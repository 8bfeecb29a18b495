/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_forget_test.c -- a Redis forgets while nobody asks, and the next window is whole.
 *
 * A key that is used up is not asked of the server before its window turns.  All the same
 * the server is greeted as soon as it has forgotten: its quarantine counts from then, and
 * costs no more than the window that was open.                                     (L12)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "tests/support/next_window.h"
#include "tests/support/node.h"
#include "tests/support/redis_server.h"

#define LIMIT 300
#define WINDOW GALE_SECONDS(6)

static struct redis_server server;

static void is_restarted(void *arg)
{
	(void)arg;
	redis_server_restart(&server);
}

static void is_emptied(void *arg)
{
	(void)arg;
	redis_server_do(&server, "FLUSHALL");
}

static uint64_t since(void *arg)
{
	(void)arg;
	return next_window_since(&server, 0);
}

static unsigned next_window_after(void (*befall)(void *arg), enum gale_mode mode)
{
	char url[128];
	struct node node;
	unsigned count;

	redis_server_settle(&server, "gale:");
	snprintf(url, sizeof(url), "redis://%s", server.socket);
	node_open(&node, &(struct node_plan){
			     .url = url,
			     .limiter = { .name = "api",
	                                  .rule = gale_fixed_window(LIMIT, WINDOW),
	                                  .mode = mode },
			 });
	count = next_window_gives(&(struct next_window){ .node = &node,
	                                                 .limit = LIMIT,
	                                                 .length_us = WINDOW,
	                                                 .key = "k",
	                                                 .befall = befall,
	                                                 .since_us = since });
	node_close(&node);
	return count;
}

static void the_window_after_a_restart_is_whole_but_for_the_reserve(void **state)
{
	(void)state;
	assert_int_equal(next_window_after(is_restarted, GALE_LEASED),
	                 next_window_most(LIMIT));
}

/* No connection is lost by that. */
static void
the_window_after_a_server_was_emptied_is_whole_but_for_the_reserve(void **state)
{
	(void)state;
	assert_int_equal(next_window_after(is_emptied, GALE_CACHED_DENY),
	                 next_window_most(LIMIT));
}

static int start_server(void **state)
{
	(void)state;
	redis_server_start(&server, NULL);
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	redis_server_stop(&server);
	return 0;
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_window_after_a_restart_is_whole_but_for_the_reserve),
		cmocka_unit_test(
		    the_window_after_a_server_was_emptied_is_whole_but_for_the_reserve),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
