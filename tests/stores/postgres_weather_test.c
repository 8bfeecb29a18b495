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
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "stores/postgres/wire.h"
#include "sim/allocator.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"
#include "tests/support/pool.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tools/tally.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
#define NODES 2
#define WITHIN GALE_MILLIS(150)
#define MARGIN GALE_SECONDS(1) /* two processors, and a server that wants them, too */
#define RECOVERY GALE_SECONDS(10)
#define ASKERS_EACH 2 /* for each limiter of a node */
#define CROWD 200

enum how {
	STRICT,
	CACHED_DENY,
	LEASED,
	HOW_COUNT,
};

#define ASKERS (NODES * HOW_COUNT * ASKERS_EACH)

static const enum gale_mode modes[] = { GALE_STRICT, GALE_CACHED_DENY, GALE_LEASED };
static const char *const names[] = { "strict", "cached", "leased" };

struct node {
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[HOW_COUNT];
};

/* One thread with a seat of its own. */
struct asker {
	pthread_t thread;
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct tally *tally;
	uint32_t number; /* in its tally */
	_Atomic uint64_t longest_us;
	_Atomic uint64_t admitted_us; /* the latest */
};

static struct weather {
	struct postgres_server *server;
	char folder[64]; /* of its socket */
	bool has_proxy;
	bool has_pool;
	struct proxy proxy;
	struct pool pool;
	char url[256];
	struct node nodes[NODES];
	struct tally tallies[HOW_COUNT];
	struct asker askers[ASKERS];
	_Atomic bool stopping;
} w;

static uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void nap(uint64_t us)
{
	const struct timespec time = { .tv_sec = (time_t)(us / 1000000),
		                       .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}

/* ---- The server ------------------------------------------------------------------ */

static void say_nothing(void *arg, const char *notice)
{
	(void)arg, (void)notice;
}

static PGconn *talk(void)
{
	PGconn *conn = PQconnectdb(postgres_server_address(w.server));

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

/* ---- Askers ---------------------------------------------------------------------- */

static struct tally_span place(const struct gale_answer *answer, uint64_t before_us,
                               uint64_t after_us)
{
	if (answer->why == GALE_WHY_CREDIT)
		return tally_place_lent(WINDOW, before_us, after_us,
		                        answer->reset_after_us);
	return tally_place(WINDOW, before_us, after_us, answer->reset_after_us);
}

static void note(struct asker *asker, const struct gale_answer *answer,
                 uint64_t before_us, uint64_t took_us)
{
	uint64_t after_us = wall_us();

	if (load_relaxed(&asker->longest_us) < took_us)
		store_relaxed(&asker->longest_us, took_us);
	if (answer->verdict != GALE_ALLOW)
		return;
	tally_count(asker->tally, asker->number, 0, place(answer, before_us, after_us));
	store_relaxed(&asker->admitted_us, after_us);
}

static void *asker_main(void *arg)
{
	struct asker *asker = arg;
	struct gale_seat *seat;

	must(gale_join(asker->runtime, &seat) == GALE_ERR_OK);
	while (!load_relaxed(&w.stopping)) {
		uint64_t before_us = wall_us(), began = patience_now_ns();
		struct gale_answer answer =
		    gale_wait(seat, asker->limiter, "k", 1, 1, WITHIN);

		note(asker, &answer, before_us, (patience_now_ns() - began) / 1000);
		if (answer.verdict == GALE_DENY)
			nap(500);
	}
	gale_leave(seat);
	return NULL;
}

/* ---- The fleet ------------------------------------------------------------------- */

static void node_open(struct node *node)
{
	struct gale_store_config store = { .url = w.url };
	struct gale_config config = { .shards = 1,
		                      .allocator = &node->allocator.allocator };

	test_allocator_init(&node->allocator);
	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	for (int how = 0; how < HOW_COUNT; how++) {
		struct gale_limiter_config limiter = {
			.name = names[how],
			.rule = gale_fixed_window(LIMIT, WINDOW),
			.mode = modes[how],
			.store = node->store,
		};

		must(gale_limiter_open(node->runtime, &limiter, &node->limiters[how]) ==
		     GALE_ERR_OK);
	}
}

static void node_close(struct node *node)
{
	for (int how = 0; how < HOW_COUNT; how++)
		gale_limiter_close(node->limiters[how]);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	assert_true(test_allocator_is_balanced(&node->allocator));
}

static void open_tallies(void)
{
	struct tally_config config = {
		.keys = 1,
		.workers = NODES * ASKERS_EACH,
		.ring = tally_ring(1),
		.limit = LIMIT,
		.window_us = WINDOW,
		.begin_us = wall_us(),
	};

	for (int how = 0; how < HOW_COUNT; how++)
		must(tally_open(&w.tallies[how], &config));
}

static enum how how_of(uint32_t asker)
{
	return asker / NODES % HOW_COUNT;
}

static void start_asker(uint32_t i)
{
	struct asker *asker = &w.askers[i];
	uint32_t node = i % NODES;

	asker->runtime = w.nodes[node].runtime;
	asker->limiter = w.nodes[node].limiters[how_of(i)];
	asker->tally = &w.tallies[how_of(i)];
	asker->number = i / NODES / HOW_COUNT * NODES + node;
	must(pthread_create(&asker->thread, NULL, asker_main, asker) == 0);
}

static void open_server(void)
{
	char *host;
	PGconn *conn;

	memset(&w, 0, sizeof(w));
	w.server = postgres_server_start(/* syncs= */ false);
	conn = talk();
	host = PQhost(conn);
	must(strlen(host) < sizeof(w.folder));
	strcpy(w.folder, host);
	PQfinish(conn);
}

static void begin_behind_a_proxy(void)
{
	char socket[96];

	open_server();
	snprintf(socket, sizeof(socket), "%s/.s.PGSQL.5432", w.folder);
	proxy_open(&w.proxy, socket);
	w.has_proxy = true;
	snprintf(w.url, sizeof(w.url), "postgres://gale@127.0.0.1:%u/postgres",
	         w.proxy.port);
}

static void begin_behind_a_pool(void)
{
	open_server();
	pool_start(&w.pool, w.folder);
	w.has_pool = true;
	snprintf(w.url, sizeof(w.url), "postgres:///postgres?host=%s&port=%d&user=gale",
	         w.folder, POOL_PORT);
}

static void let_ask(void)
{
	open_tallies();
	for (int i = 0; i < NODES; i++)
		node_open(&w.nodes[i]);
	for (uint32_t i = 0; i < ASKERS; i++)
		start_asker(i);
}

/* ---- What must be true ----------------------------------------------------------- */

static bool all_admit_after(uint64_t us)
{
	bool admit[HOW_COUNT] = { false };

	for (uint32_t i = 0; i < ASKERS; i++)
		admit[how_of(i)] |= load_relaxed(&w.askers[i].admitted_us) > us;
	return admit[STRICT] && admit[CACHED_DENY] && admit[LEASED];
}

/* All limiters admit again, if they do not wait for something else. */
static void recovers(void)
{
	uint64_t now = wall_us(), deadline = patience_now_ns() / 1000 + RECOVERY;

	while (!all_admit_after(now) && patience_now_ns() / 1000 < deadline)
		nap(1000);
	assert_true(all_admit_after(now));
}

static void check_tally(enum how how)
{
	struct tally_totals totals;

	tally_finish(&w.tallies[how], wall_us());
	totals = tally_total(&w.tallies[how]);
	tally_close(&w.tallies[how]);
	print_message("%s: %" PRIu64 " in %" PRIu64 " windows, at most %" PRIu64 "\n",
	              names[how], totals.admitted, totals.windows, totals.admitted_max);
	assert_in_range(totals.admitted_max, 1, LIMIT);
	assert_int_equal(totals.disagreements, 0);
}

static void close_server(void)
{
	if (w.has_proxy)
		proxy_close(&w.proxy);
	if (w.has_pool)
		pool_stop(&w.pool);
	postgres_server_stop(w.server);
}

static void end(void)
{
	store_relaxed(&w.stopping, true);
	for (uint32_t i = 0; i < ASKERS; i++)
		must(pthread_join(w.askers[i].thread, NULL) == 0);
	for (int i = 0; i < NODES; i++)
		node_close(&w.nodes[i]);
	for (int how = 0; how < HOW_COUNT; how++)
		check_tally((enum how)how);
	for (uint32_t i = 0; i < ASKERS; i++)
		assert_in_range(w.askers[i].longest_us, 0, WITHIN + MARGIN);
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
		proxy_cut_after(&w.proxy, bytes);
		nap(GALE_MILLIS(60));
	}
	proxy_cut_after(&w.proxy, 0);
	recovers();
	proxy_be_silent(&w.proxy, true);
	nap(2 * WINDOW);
	proxy_be_silent(&w.proxy, false);
	recovers();
	proxy_swallow(&w.proxy, true);
	nap(WINDOW);
	proxy_swallow(&w.proxy, false);
	proxy_cut(&w.proxy);
	recovers();
	proxy_delay(&w.proxy, TO_NODE, WINDOW + WINDOW / 2);
	nap(3 * WINDOW);
	proxy_delay(&w.proxy, TO_NODE, 0);
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
	postgres_server_restart(w.server, /* crashes= */ true);
	recovers();
	postgres_server_crash_process(
	    w.server,
	    number_there(
		"SELECT pid FROM pg_stat_activity WHERE application_name = 'gale'"
		" LIMIT 1"));
	recovers();
	do_there(POSTGRES_SET_FAST);
	recovers();
	postgres_server_restart(w.server, /* crashes= */ true); /* and is empty */
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

static void set_version(const char *version)
{
	char sql[192];

	snprintf(sql, sizeof(sql),
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
	pool_restart(&w.pool);
	recovers();
	postgres_server_restart(w.server, /* crashes= */ true);
	recovers();
	do_there("TRUNCATE gale.keys");
	recovers();
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
	struct gale_store_config store = { .url = w.url, .quarantine_us = 1 };

	(void)state;
	begin_behind_a_pool();
	must(gale_runtime_open(NULL, &crowd.runtime) == GALE_ERR_OK);
	must(gale_store_open(crowd.runtime, &store, &crowd.store) == GALE_ERR_OK);
	for (int how = 0; how < HOW_COUNT; how++) {
		struct gale_limiter_config config = {
			.name = names[how],
			.rule = gale_fixed_window(LIMIT, GALE_DAYS(3650)),
			.mode = modes[how],
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
