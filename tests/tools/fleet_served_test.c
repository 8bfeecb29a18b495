/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet_served_test.c -- fleets that ask a real Redis for 80 % of a limit are served: 0.99 of it,
 * and 0.95 in the worst window, as `gale fleet --demand` says.
 *
 *     fleet_served_test GALE
 *
 * What a machine serves that stands still is its own affair: the best of some attempts counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/support/redis_server.h"
#include "tests/support/length.h"

#define ATTEMPTS 4

static struct redis_server server;
static const char *gale;

static bool is_served(unsigned nodes, const char *moving)
{
	char command[512];
	int status;

	snprintf(command, sizeof(command),
	         "'%s' fleet --nodes %u --threads 1 --keys 1 --limit 10k --window 1s "
	         "--seconds %u --demand 80%% %s --store 'redis://%s' </dev/null",
	         gale, nodes, LONG_OR_BRIEF(20, 9), moving, server.socket);
	status = system(command);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void assert_served(unsigned nodes, const char *moving)
{
	unsigned attempt = 0;

	while (!is_served(nodes, moving) && ++attempt < ATTEMPTS)
		print_message("%u nodes %s: again\n", nodes, moving);
	assert_true(attempt < ATTEMPTS);
}

/* In brief the largest alone, whose demand moves. */
static void fleets_are_served_by_redis(void **state)
{
	static const unsigned sizes[] = { 64, 16, 8, 1 };

	(void)state;
	for (int i = 0; i < LONG_OR_BRIEF(4, 1); i++) {
		assert_served(sizes[i], "--moving");
		if (LONG_OR_BRIEF(true, false))
			assert_served(sizes[i], "");
	}
}

static int start_server(void **state)
{
	(void)state;
	redis_server_start(&server, NULL);
	redis_server_settle(&server, "gale:");
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	redis_server_stop(&server);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fleets_are_served_by_redis),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: fleet_served_test GALE\n");
		return 2;
	}
	gale = argv[1];
	return cmocka_run_group_tests(tests, start_server, stop_server);
}
