/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * overload_servers_test.c -- strict asks come faster than a real Redis and a real PostgreSQL can
 * be asked.
 *
 * The way to the server carries so many bytes a second, and what comes faster waits there, as it
 * does at a server that has too much to do.  What the server counts must be what callers were
 * allowed: an answer that comes when its caller is gone has used a unit for nothing.
 *
 * A machine that stands still for longer than callers wait makes late what is under way, by
 * nobody's fault.  So the best of some attempts counts.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <gale/gale.h>

#include "tests/support/both_servers.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/overload.h"
#include "tests/support/proxy.h"

#define EVER GALE_DAYS(3650)
#define MUCH UINT64_C(1000000000)
#define LASTS LONG_OR_BRIEF(GALE_SECONDS(6), GALE_SECONDS(2))
#define BYTE_NS 1000 /* 4,000 to 8,000 asks a second */
#define RATE 20000
#define LITTLE 4000 /* less than is served meanwhile */
#define ATTEMPTS 8
#define KEY "k"

static struct both_servers both;
static struct proxy proxies[BOTH];
static char urls[BOTH][64];

static void show(const char *limiter, const struct overload_tally *tally, uint64_t used)
{
	print_message("%s: %" PRIu64 " asked, %" PRIu64 " allowed, %" PRIu64
	              " used, %" PRIu64 " denied, %" PRIu64 " late, %" PRIu64
	              " busy, %" PRIu64 " down\n",
	              limiter, tally->asked, tally->allowed, used, tally->denied,
	              tally->late, tally->busy, tally->down);
}

/* Returns what the server counts. */
static uint64_t overload(int which, const char *limiter, uint64_t limit,
                         struct overload_tally *ret_tally)
{
	const struct overload overload = { .url = urls[which],
		                           .limiter = limiter,
		                           .key = KEY,
		                           .rule = gale_fixed_window(limit, EVER),
		                           .nodes = 2,
		                           .rate = RATE,
		                           .lasts_us = LASTS };
	uint64_t words[2];

	*ret_tally = overload_run(&overload);
	must(both_servers_look(&both, which, limiter, KEY, words));
	show(limiter, ret_tally, words[1]);
	assert_int_equal(ret_tally->odd, 0);
	assert_true(words[1] >= ret_tally->allowed);
	return words[1];
}

/* Of fifty units that are used at most one is lost. */
static bool is_little_lost(uint64_t allowed, uint64_t used)
{
	return used * 100 <= allowed * 102;
}

static void costs_no_units(int which)
{
	struct overload_tally tally;
	unsigned attempt = 0;
	char limiter[24];
	uint64_t used;

	do {
		snprintf(limiter, sizeof(limiter), "much%d.%u", which, attempt);
		used = overload(which, limiter, MUCH, &tally);
		assert_true(tally.asked > 3 * used / 2); /* it is one */
	} while (!is_little_lost(tally.allowed, used) && ++attempt < ATTEMPTS);
	assert_true(is_little_lost(tally.allowed, used));
}

static void leaves_the_limit_to_callers(int which)
{
	struct overload_tally tally;
	unsigned attempt = 0;
	char limiter[24];

	do {
		snprintf(limiter, sizeof(limiter), "little%d.%u", which, attempt);
		(void)overload(which, limiter, LITTLE, &tally);
		assert_true(tally.allowed <= LITTLE);
	} while (tally.allowed * 100 < LITTLE * 95 && ++attempt < ATTEMPTS);
	assert_true(tally.allowed * 100 >= LITTLE * 95);
}

static void an_overload_of_redis_costs_no_units(void **state)
{
	(void)state;
	costs_no_units(0);
}

static void an_overload_of_postgres_costs_no_units(void **state)
{
	(void)state;
	costs_no_units(1);
}

static void an_overload_of_redis_leaves_the_limit_to_callers(void **state)
{
	(void)state;
	leaves_the_limit_to_callers(0);
}

static void an_overload_of_postgres_leaves_the_limit_to_callers(void **state)
{
	(void)state;
	leaves_the_limit_to_callers(1);
}

static void find_socket(int which, char *ret_socket, size_t size)
{
	const char *address = postgres_server_address(both.postgres);
	const char *host = strstr(address, "host=");

	if (which == 0) {
		snprintf(ret_socket, size, "%s", both.redis.socket);
		return;
	}
	must(host);
	host += strlen("host=");
	snprintf(ret_socket, size, "%.*s/.s.PGSQL.5432", (int)strcspn(host, " "), host);
}

static int start_servers(void **state)
{
	static const char *const forms[] = { "redis://127.0.0.1:%u",
		                             "postgres://gale@127.0.0.1:%u/postgres" };
	char socket[96];

	(void)state;
	both_servers_start(&both);
	for (int which = 0; which < BOTH; which++) {
		find_socket(which, socket, sizeof(socket));
		proxy_open(&proxies[which], socket);
		proxy_slow(&proxies[which], TO_SERVER, BYTE_NS);
		snprintf(urls[which], sizeof(urls[which]), forms[which],
		         proxies[which].port);
	}
	return 0;
}

static int stop_servers(void **state)
{
	(void)state;
	for (int which = 0; which < BOTH; which++)
		proxy_close(&proxies[which]);
	both_servers_stop(&both);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_overload_of_redis_costs_no_units),
		cmocka_unit_test(an_overload_of_postgres_costs_no_units),
		cmocka_unit_test(an_overload_of_redis_leaves_the_limit_to_callers),
		cmocka_unit_test(an_overload_of_postgres_leaves_the_limit_to_callers),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
