/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_weather_test.c -- a fleet on a real PostgreSQL, and what can befall the two.
 *
 *     nodes: strict, cached-deny and leased limiters  --proxy or pgbouncer-->  server
 *
 * Two nodes are asked as fast as two processors allow, in windows of WINDOW; meanwhile
 * something happens to the server, or on the way to it.  Whatever that is:
 *
 *   - no window of the store has more than the limit of admissions, as counted here: an
 *     admission lies between two readings of the clock                        (L1, L12)
 *   - who asks is answered in time                                                (L11)
 *   - when all is well again, so are the limiters, and nobody has restarted them
 *   - nothing is left behind
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/atomic.h"
#include "stores/postgres/wire.h"
#include "tests/support/crew.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/pool.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/weather.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
#define WITHIN GALE_MILLIS(150)
#define MARGIN GALE_SECONDS(1) /* two processors, and a server that wants them, too */
#define RECOVERY GALE_SECONDS(10)
#define CROWD 200

static struct scene {
	struct postgres_server *server;
	char folder[64]; /* of its socket */
	bool has_proxy;
	bool has_pool;
	struct proxy proxy;
	struct pooler pool;
	char url[256];
	struct weather weather;
} s;

/* ---- The server ------------------------------------------------------------------ */

static void say_nothing(void *arg, const char *notice)
{
	(void)arg, (void)notice;
}

static PGconn *talk(void)
{
	PGconn *conn = PQconnectdb(postgres_server_address(s.server));

	must(PQstatus(conn) == CONNECTION_OK);
	PQsetNoticeProcessor(conn, say_nothing, NULL);
	return conn;
}

static void tell(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		print_error("%.100s: %s", sql, PQerrorMessage(conn));
	must(PQresultStatus(result) != PGRES_FATAL_ERROR);
	PQclear(result);
}

static void do_there(const char *sql)
{
	PGconn *conn = talk();

	tell(conn, sql);
	PQfinish(conn);
}

static pid_t number_there(const char *sql)
{
	PGconn *conn = talk();
	PGresult *result = PQexec(conn, sql);
	pid_t number;

	must(PQntuples(result) == 1);
	number = (pid_t)atoi(PQgetvalue(result, 0, 0));
	PQclear(result);
	PQfinish(conn);
	return number;
}

/* All of its processes that serve gale. */
static void signal_all(const pid_t *pids, size_t count, int number)
{
	for (size_t i = 0; i < count; i++)
		(void)kill(pids[i], number); /* one may have ended */
}

/* ---- The fleet ------------------------------------------------------------------- */

static void open_server(void)
{
	char *host;
	PGconn *conn;

	memset(&s, 0, sizeof(s));
	s.server = postgres_server_start();
	conn = talk();
	host = PQhost(conn);
	must(strlen(host) < sizeof(s.folder));
	strcpy(s.folder, host);
	PQfinish(conn);
}

static void begin_behind_a_proxy(void)
{
	char socket[96];

	open_server();
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.5432", s.folder);
	proxy_open(&s.proxy, socket);
	s.has_proxy = true;
	snprintf(s.url, sizeof(s.url), "postgres://gale@127.0.0.1:%u/postgres",
	         s.proxy.port);
}

static void begin_behind_a_pool(void)
{
	open_server();
	pool_start(&s.pool, s.folder);
	s.has_pool = true;
	snprintf(s.url, sizeof(s.url), "postgres:///postgres?host=%s&port=%d&user=gale",
	         s.folder, POOL_PORT);
}

static void let_ask(void)
{
	const struct weather_plan plan = {
		.urls = { s.url, s.url },
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

/* All limiters admit again, if they do not wait for something else. */
static void recovers(void)
{
	assert_true(weather_recovers(&s.weather, RECOVERY));
}

static void close_server(void)
{
	if (s.has_proxy)
		proxy_close(&s.proxy);
	if (s.has_pool)
		pool_stop(&s.pool);
	postgres_server_stop(s.server);
}

static void end(void)
{
	weather_end(&s.weather);
	weather_was_in_time(&s.weather, WITHIN + MARGIN);
	close_server();
}

/* ---- On the way ------------------------------------------------------------------ */

static void what_happens_on_the_way(void **state)
{
	(void)state;
	begin_behind_a_proxy();
	let_ask();
	recovers();
	for (uint64_t bytes = 1; bytes < 4000; bytes = bytes * 3 + 1) {
		proxy_cut_after(&s.proxy, bytes);
		nap(GALE_MILLIS(60));
	}
	proxy_cut_after(&s.proxy, 0);
	recovers();
	proxy_be_silent(&s.proxy, true);
	nap(2 * WINDOW);
	proxy_be_silent(&s.proxy, false);
	recovers();
	proxy_swallow(&s.proxy, true);
	nap(WINDOW);
	proxy_swallow(&s.proxy, false);
	proxy_cut(&s.proxy);
	recovers();
	proxy_delay(&s.proxy, TO_NODE, WINDOW + WINDOW / 2);
	nap(3 * WINDOW);
	proxy_delay(&s.proxy, TO_NODE, 0);
	recovers();
	end();
}

/* ---- At the server --------------------------------------------------------------- */

static size_t find_processes(pid_t *pids, size_t most)
{
	PGconn *conn = talk();
	PGresult *result = PQexec(
	    conn, "SELECT pid FROM pg_stat_activity"
		  " WHERE application_name = 'gale' AND pid <> pg_backend_pid()");
	size_t count = (size_t)PQntuples(result);

	must(count > 0 && count <= most);
	for (size_t i = 0; i < count; i++)
		pids[i] = (pid_t)atoi(PQgetvalue(result, (int)i, 0));
	PQclear(result);
	PQfinish(conn);
	return count;
}

/* Who serves it stops in the middle of whatever it does, and goes on after its window. */
static void processes_that_stop_and_go_on(void **state)
{
	pid_t pids[64];
	size_t count;

	(void)state;
	begin_behind_a_proxy();
	let_ask();
	recovers();
	count = find_processes(pids, 64);
	signal_all(pids, count, SIGSTOP);
	nap(WINDOW + WINDOW / 3);
	signal_all(pids, count, SIGCONT);
	recovers();
	end();
}

static void a_server_that_crashes_under_load(void **state)
{
	(void)state;
	begin_behind_a_proxy();
	let_ask();
	recovers();
	postgres_server_restart(s.server, /* crashes= */ true);
	recovers();
	postgres_server_crash_process(
	    s.server,
	    number_there(
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'gale'"
		" LIMIT 1"));
	recovers();
	do_there(POSTGRES_SET_FAST);
	recovers();
	postgres_server_restart(s.server, /* crashes= */ true); /* and is empty */
	recovers();
	end();
}

/* Somebody else holds every row, then the whole table, for longer than anybody waits. */
static void locks_that_others_hold(void)
{
	PGconn *other = talk();

	tell(other, "BEGIN; SELECT FROM gale.keys FOR UPDATE");
	nap(WINDOW + WINDOW / 2);
	tell(other, "ROLLBACK");
	recovers();
	tell(other, "BEGIN; LOCK TABLE gale.keys");
	nap(WINDOW + WINDOW / 2);
	tell(other, "ROLLBACK");
	PQfinish(other);
	recovers();
}

/* For sessions to come: those that there are, are ended. */
static void tell_all(PGconn *conn, const char *sql)
{
	tell(conn, sql);
	tell(conn, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	           " WHERE application_name = 'gale'");
}

static void what_a_server_may_be_told(void)
{
	PGconn *conn = talk();

	tell_all(conn, "ALTER DATABASE postgres SET statement_timeout = '1ms'");
	nap(WINDOW + WINDOW / 2);
	tell_all(conn, "ALTER DATABASE postgres RESET statement_timeout");
	recovers();
	tell_all(conn,
	         "ALTER DATABASE postgres SET default_transaction_read_only = on");
	nap(WINDOW + WINDOW / 2);
	tell_all(conn, "ALTER DATABASE postgres RESET default_transaction_read_only");
	recovers();
	PQfinish(conn);
}

/* One transaction, under the lock of those who install (schema.sql): PostgreSQL refuses to replace a
 * function that another is just replacing. */
static void set_version(const char *version)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SELECT pg_advisory_xact_lock(7453010360832745061);"
	         "CREATE OR REPLACE FUNCTION gale.version() RETURNS int LANGUAGE sql"
	         " IMMUTABLE AS 'SELECT %s'",
	         version);
	do_there(sql);
}

static void schemas_that_come_and_go(void)
{
	do_there("DROP SCHEMA gale CASCADE");
	recovers(); /* it is installed again */
	set_version("0");
	recovers();
	set_version("1000");
	nap(2 * WINDOW);
	set_version("0");
	recovers();
}

static void what_others_do_there(void **state)
{
	(void)state;
	begin_behind_a_proxy();
	let_ask();
	recovers();
	locks_that_others_hold();
	what_a_server_may_be_told();
	schemas_that_come_and_go();
	end();
}

/* ---- Behind a pool --------------------------------------------------------------- */

static void a_pool_that_comes_and_goes(void **state)
{
	(void)state;
	begin_behind_a_pool();
	let_ask();
	recovers();
	pool_restart(&s.pool);
	recovers();
	postgres_server_restart(s.server, /* crashes= */ true);
	recovers();
	do_there("TRUNCATE gale.keys");
	recovers();
	postgres_server_spy(s.server, /* forgets= */ false);
	recovers();
	assert_int_equal(number_there("SELECT max(names) FROM public.seen"), 0);
	end();
}

static struct crowd {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	_Atomic uint64_t admitted;
} crowd;

/* A server that was just set up grants nothing at first. */
static void wait_for_first(void)
{
	struct gale_seat *seat;

	must(gale_join(crowd.runtime, &seat) == GALE_ERR_OK);
	while (gale_wait(seat, crowd.limiter, "first", 5, 1, GALE_SECONDS(1)).verdict !=
	       GALE_ALLOW)
		nap(GALE_MILLIS(20));
	gale_leave(seat);
}

static void ask_once(void *arg, unsigned who)
{
	struct gale_seat *seat;
	struct gale_answer answer;

	(void)arg;
	(void)who;
	must(gale_join(crowd.runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, crowd.limiter, "k", 1, 1, GALE_SECONDS(20));
	if (answer.verdict == GALE_ALLOW)
		add_relaxed(&crowd.admitted, 1);
	gale_leave(seat);
}

/* Threads of as many seats, over sessions of which each statement may have another. */
static void a_crowd_behind_a_pool(void **state)
{
	struct gale_store_config store = { .url = s.url, .quarantine_us = 1 };

	(void)state;
	begin_behind_a_pool();
	must(gale_runtime_open(NULL, &crowd.runtime) == GALE_ERR_OK);
	must(gale_store_open(crowd.runtime, &store, &crowd.store) == GALE_ERR_OK);
	for (int how = 0; how < HOW_COUNT; how++) {
		struct gale_limiter_config config = {
			.name = how_names[how],
			.rule = gale_fixed_window(LIMIT, GALE_DAYS(3650)),
			.mode = how_modes[how],
			.store = crowd.store,
			.lease.patience_us = GALE_SECONDS(10),
		};

		store_relaxed(&crowd.admitted, 0);
		must(gale_limiter_open(crowd.runtime, &config, &crowd.limiter) ==
		     GALE_ERR_OK);
		wait_for_first();
		crew_run(CROWD, ask_once, NULL);
		gale_limiter_close(crowd.limiter);
		assert_int_equal(load_relaxed(&crowd.admitted), LIMIT);
	}
	gale_store_close(crowd.store);
	gale_runtime_close(crowd.runtime);
	close_server();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happens_on_the_way),
		cmocka_unit_test(processes_that_stop_and_go_on),
		cmocka_unit_test(a_server_that_crashes_under_load),
		cmocka_unit_test(what_others_do_there),
		cmocka_unit_test(a_pool_that_comes_and_goes),
		cmocka_unit_test(a_crowd_behind_a_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
