/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_standby_test.c -- a PostgreSQL fails, its standby is promoted, and limiters
 * follow.
 *
 *     nodes  --TCP-->  primary  --a proxy: what was written-->  standby
 *
 * Nodes know both hosts.  Which of them can write they find out by asking, and go on with
 * that one without a restart.  A standby that is promoted has nothing of what is unlogged, and
 * so another generation: nothing is granted that may still be out, also if it had not heard
 * of it.                                                                           (L12)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "stores/postgres/wire.h"
#include "tests/support/lines.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/node.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/weather.h"

#define WINDOW GALE_MILLIS(300)
#define WITHIN GALE_MILLIS(150)
#define MARGIN GALE_SECONDS(1) /* two processors, and two servers that want them, too */
#define RECOVERY GALE_SECONDS(20)
#define LIMIT 40
#define DAILY 1000
#define PATIENCE_NS UINT64_C(60000000000)
#define GENERATION_ROOM 64

static struct scene {
	struct postgres_server *primary;
	struct postgres_server *standby;
	struct proxy proxy; /* between them */
	uint16_t standby_port;
	char urls[WEATHER_NODES][128];
	struct weather weather;
	struct node node;
	struct lines lines;
} s;

/* ---- Two servers ----------------------------------------------------------------- */

static void open_proxy(uint16_t port)
{
	char folder[64], socket[96];

	must(sscanf(postgres_server_address(s.primary), "host=%63s", folder) == 1);
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.%u", folder, port);
	proxy_open(&s.proxy, socket);
}

/* Of each node another is the first. */
static void put_urls(uint16_t first, uint16_t second)
{
	snprintf(s.urls[0], sizeof(s.urls[0]),
	         "postgres://gale@127.0.0.1:%u,127.0.0.1:%u/postgres", first, second);
	snprintf(s.urls[1], sizeof(s.urls[1]),
	         "postgres://gale@127.0.0.1:%u,127.0.0.1:%u/postgres", second, first);
}

static int open_servers(void **state)
{
	uint16_t primary;

	(void)state;
	memset(&s, 0, sizeof(s));
	lines_open(&s.lines);
	s.primary = postgres_server_start();
	primary = postgres_server_listen(s.primary);
	open_proxy(primary);
	s.standby = postgres_server_follow(s.proxy.port, &s.standby_port);
	put_urls(primary, s.standby_port);
	return 0;
}

static int close_servers(void **state)
{
	(void)state;
	postgres_server_stop(s.standby);
	postgres_server_stop(s.primary);
	proxy_close(&s.proxy);
	return 0;
}

/* What is written from now on, the standby does not hear of. */
static void leave_behind(void)
{
	proxy_be_silent(&s.proxy, true);
}

static void fail_over(void)
{
	postgres_server_kill(s.primary);
	postgres_server_promote(s.standby);
}

static void read_generation(const struct postgres_server *server,
                            char ret_generation[GENERATION_ROOM])
{
	postgres_server_ask(server, "SELECT generation FROM gale.birth", ret_generation,
	                    GENERATION_ROOM);
	must(strlen(ret_generation) == REMOTE_GENERATION_BYTES);
}

/* ---- A fleet --------------------------------------------------------------------- */

static void let_ask(void)
{
	const struct weather_plan plan = {
		.urls = { s.urls[0], s.urls[1] },
		.shards = 1,
		.window_us = WINDOW,
		.limit = LIMIT,
		.keys = 1,
		.askers = 2,
		.within_us = WITHIN,
		.nap_us = WEATHER_NAP_US,
	};

	weather_let_ask(&s.weather, &plan);
}

static void recovers(void)
{
	assert_true(weather_recovers(&s.weather, RECOVERY));
}

static void end(void)
{
	weather_end(&s.weather);
	weather_was_in_time(&s.weather, WITHIN + MARGIN);
}

static void is_followed(bool lags)
{
	char before[GENERATION_ROOM], after[GENERATION_ROOM];

	let_ask();
	recovers();
	read_generation(s.primary, before);
	if (lags) {
		leave_behind();
		nap(3 * WINDOW);
	}
	fail_over();
	recovers();
	read_generation(s.standby, after);
	assert_string_not_equal(before, after);
	end();
}

static void who_is_promoted_is_followed(void **state)
{
	(void)state;
	is_followed(/* lags= */ false);
}

static void who_is_promoted_and_lagged_is_followed(void **state)
{
	(void)state;
	is_followed(/* lags= */ true);
}

/* ---- One node -------------------------------------------------------------------- */

static void open_node(const char *url, uint64_t quarantine_us)
{
	node_open(&s.node,
	          &(struct node_plan){
		      .url = url,
		      .quarantine_us = quarantine_us,
		      .shards = 1,
		      .log = &s.lines.log,
		      .limiter = { .name = "day",
	                           .rule = gale_fixed_window(DAILY, GALE_DAYS(3650)) },
		  });
}

static struct gale_answer ask(void)
{
	return node_wait(&s.node, "k", GALE_MILLIS(200));
}

/* All of so many, one after the other. */
static void is_admitted(unsigned times)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (times > 0) {
		times -= ask().verdict == GALE_ALLOW;
		assert_true(patience_now_ns() < deadline);
	}
}

/* Somebody is there, and grants nothing. */
static void assert_quarantine(void)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	unsigned denied = 0;

	while (denied < 200) {
		struct gale_answer answer = ask();

		assert_int_equal(answer.verdict, GALE_DENY);
		denied += answer.why == GALE_WHY_QUARANTINE;
		nap(2000);
		if (patience_now_ns() >= deadline) {
			lines_show(&s.lines);
			fail_msg("%u denials", denied);
		}
	}
}

static uint64_t number_at(const struct postgres_server *server, const char *sql)
{
	char number[32];

	postgres_server_ask(server, sql, number, sizeof(number));
	return strtoull(number, NULL, 10);
}

/* What was not told in time is spent. */
static uint64_t used_at(const struct postgres_server *server)
{
	return number_at(server, "SELECT coalesce(max(CASE node WHEN 0 THEN words[2]"
	                         " ELSE used END), 0) FROM gale.keys");
}

/* One is admitted, and it is as if the server had not forgotten anything since 1970; who
 * has forgotten then waits for ever.  what: done there before. */
static void begin_a_day(const char *what)
{
	open_node(s.urls[0], /* quarantine_us= */ 1);
	is_admitted(1);
	node_close(&s.node);
	if (what)
		(void)number_at(s.primary, what);
	(void)number_at(s.primary, "UPDATE gale.birth SET earliest = 0, generation ="
	                           " overlay(generation placing '0000000001' from 1)"
	                           " RETURNING 1");
	open_node(s.urls[0], GALE_DAYS(1));
}

static void what_a_standby_never_heard_of_is_not_granted_again(void **state)
{
	(void)state;
	begin_a_day(NULL);
	postgres_server_catch_up(s.standby, s.primary);
	leave_behind();
	is_admitted(DAILY / 2);
	fail_over();
	assert_in_range(used_at(s.standby), 1, DAILY / 2 - 1);
	assert_quarantine();
	node_close(&s.node);
}

/* It cannot know that it is all. */
static void what_a_standby_has_heard_of_is_not_granted_again(void **state)
{
	(void)state;
	begin_a_day(NULL);
	is_admitted(DAILY / 2);
	postgres_server_catch_up(s.standby, s.primary);
	fail_over();
	assert_in_range(used_at(s.standby), 1 + DAILY / 2, DAILY);
	assert_quarantine();
	node_close(&s.node);
}

static void what_is_not_logged_is_forgotten(void **state)
{
	(void)state;
	begin_a_day(POSTGRES_SET_FAST);
	is_admitted(DAILY / 2);
	assert_in_range(used_at(s.primary), 1 + DAILY / 2, DAILY);
	postgres_server_catch_up(s.standby, s.primary);
	fail_over();
	assert_int_equal(number_at(s.standby, "SELECT count(*) FROM gale.keys"), 0);
	assert_quarantine();
	node_close(&s.node);
}

static void ask_for_nothing(void *arg)
{
	(void)arg;
	assert_int_equal(ask().verdict, GALE_DENY);
}

/* Until it is promoted. */
static void a_standby_alone_is_an_outage(void **state)
{
	char url[128];

	(void)state;
	begin_a_day(NULL);
	node_close(&s.node);
	postgres_server_catch_up(s.standby, s.primary);
	snprintf(url, sizeof(url), "postgres://gale@127.0.0.1:%u/postgres",
	         s.standby_port);
	open_node(url, /* quarantine_us= */ 1);
	assert_true(lines_will_have_asking(&s.lines, ": it is read-only",
	                                   ask_for_nothing, NULL));
	assert_int_equal(node_stats(&s.node).connects, 0);
	assert_true(node_stats(&s.node).failures > 0);
	fail_over();
	is_admitted(1);
	node_close(&s.node);
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_servers, close_servers)
		TEST(who_is_promoted_is_followed),
		TEST(who_is_promoted_and_lagged_is_followed),
		TEST(what_a_standby_never_heard_of_is_not_granted_again),
		TEST(what_a_standby_has_heard_of_is_not_granted_again),
		TEST(what_is_not_logged_is_forgotten),
		TEST(a_standby_alone_is_an_outage),
#undef TEST
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
