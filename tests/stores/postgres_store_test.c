/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_store_test.c -- limiters on a real PostgreSQL, through gale.h: it is set up by
 * whoever comes first, and what befalls it befalls no caller for long.
 */
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
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gale/gale.h>

#include "runtime/clock.h"
#include "stores/postgres/wire.h"
#include "tests/support/crew.h"
#include "tests/support/late.h"
#include "tests/support/late_name.h"
#include "tests/support/lines.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/windows.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
#define PATIENCE_NS UINT64_C(60000000000)
#define WITHIN GALE_MILLIS(200)

struct scene {
	struct postgres_server *server;
	char url[256];
	struct lines lines;
	uint64_t quarantine_us;
	uint64_t patience_us; /* of limiters; 0: the default */
	uint32_t shards;      /* 0: as many as there are by default */
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct windows windows;
};

static struct scene s;

/* What libpq is told is host=... port=... and so on: options of a URL, too. */
static int open_server(void **state)
{
	char *at;

	(void)state;
	memset(&s, 0, sizeof(s));
	lines_open(&s.lines);
	s.server = postgres_server_start();
	snprintf(s.url, sizeof(s.url), "postgres:///?%s",
	         postgres_server_address(s.server));
	for (at = s.url; *at != '\0'; at++)
		if (*at == ' ')
			*at = '&';
	return 0;
}

static int close_server(void **state)
{
	(void)state;
	postgres_server_stop(s.server);
	return 0;
}

static struct gale_limiter *open_limiter(struct gale_runtime *runtime,
                                         struct gale_store *store, uint64_t limit,
                                         enum gale_mode mode)
{
	struct gale_limiter_config config = {
		.name = "api",
		.rule = gale_fixed_window(limit, WINDOW),
		.mode = mode,
		.store = store,
		.lease.patience_us = s.patience_us,
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void open_house(enum gale_mode mode, const char *url)
{
	struct gale_config config = { .log = &s.lines.log, .shards = s.shards };
	struct gale_store_config store = { .url = url,
		                           .quarantine_us = s.quarantine_us };

	s.windows = (struct windows){ .length_us = WINDOW };
	assert_int_equal(gale_runtime_open(&config, &s.runtime), GALE_ERR_OK);
	assert_int_equal(gale_store_open(s.runtime, &store, &s.store), GALE_ERR_OK);
	s.limiter = open_limiter(s.runtime, s.store, LIMIT, mode);
	assert_int_equal(gale_join(s.runtime, &s.seat), GALE_ERR_OK);
}

static void close_house(void)
{
	gale_leave(s.seat);
	gale_limiter_close(s.limiter);
	gale_store_close(s.store);
	gale_runtime_close(s.runtime);
}

static bool ask(void)
{
	bool admitted = windows_ask(&s.windows, s.seat, s.limiter, WITHIN);

	assert_in_range(s.windows.most, 0, LIMIT); /* L1, L12 */
	return admitted;
}

static void ask_until_allowed(unsigned times)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (times > 0) {
		times -= ask();
		nanosleep(&moment, NULL);
		assert_true(patience_now_ns() < deadline);
	}
}

static void ask_for_nothing(void *arg)
{
	(void)arg;
	assert_false(ask());
}

static void ask_again(void *arg)
{
	(void)arg;
	(void)ask();
}

static void do_there(const char *sql)
{
	PGconn *conn = PQconnectdb(postgres_server_address(s.server));
	PGresult *result = PQexec(conn, sql);

	must(PQresultStatus(result) != PGRES_FATAL_ERROR);
	PQclear(result);
	PQfinish(conn);
}

/* ---- Tests ----------------------------------------------------------------------- */

static void whoever_comes_first_sets_it_up(void **state)
{
	(void)state;
	open_house(GALE_LEASED, s.url);
	ask_until_allowed(2 * LIMIT);
	close_house();
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(2 * LIMIT);
	close_house();
}

static void come(void *arg, unsigned who)
{
	struct gale_store_config config = { .url = s.url };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_store *store;
	struct gale_seat *seat;
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	(void)arg;
	(void)who;
	must(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK);
	must(gale_store_open(runtime, &config, &store) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	limiter = open_limiter(runtime, store, LIMIT, GALE_STRICT);
	while (!is_of_server(gale_wait(seat, limiter, "k", 1, 1, WITHIN)))
		must(patience_now_ns() < deadline);
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(store);
	gale_runtime_close(runtime);
}

static void many_may_come_first(void **state)
{
	(void)state;
	crew_run(8, come, NULL);
}

static void a_server_that_crashes_is_asked_again(void **state)
{
	(void)state;
	for (int mode = GALE_STRICT; mode <= GALE_LEASED; mode++) {
		open_house((enum gale_mode)mode, s.url);
		ask_until_allowed(2 * LIMIT);
		postgres_server_restart(s.server, /* crashes= */ true);
		ask_until_allowed(2 * LIMIT); /* without a restart of ours */
		close_house();
	}
}

/* Until the window of that instant has turned, and a second, as it is known to. */
static void a_table_that_is_emptied_is_a_loss(void **state)
{
	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(LIMIT + 1); /* a window has just begun */
	do_there("TRUNCATE gale.keys");
	for (int i = 0; i < 3 * LIMIT; i++)
		(void)ask();
	assert_in_range(s.windows.most, 1, LIMIT);
	ask_until_allowed(2 * LIMIT);
	close_house();
}

static void a_newer_schema_is_left_alone(void **state)
{
	(void)state;
	do_there("CREATE SCHEMA gale; CREATE FUNCTION gale.version() RETURNS int "
	         "LANGUAGE sql AS 'SELECT 99'");
	open_house(GALE_STRICT, s.url);
	assert_true(lines_will_have_asking(&s.lines, "version 99, which is newer than",
	                                   ask_for_nothing, NULL));
	close_house();
}

static void what_cannot_be_reached_is_said(void **state)
{
	static const struct {
		const char *url;
		const char *line;
	} rows[] = {
		{ "postgres://h?nonsense=1", "URI query parameter: \"nonsense\"" },
		{ "postgres://h:0/db", "url: port 0 is not from 1" },
		{ "postgresql:/h", "url: it begins with none of" },
	};
	struct gale_store *store;

	(void)state;
	open_house(GALE_STRICT, "postgres://127.0.0.1:1/db");
	assert_true(
	    lines_will_have_asking(&s.lines, "cannot connect", ask_for_nothing, NULL));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gale_store_config config = { .url = rows[i].url };

		assert_int_equal(gale_store_open(s.runtime, &config, &store),
		                 GALE_ERR_URL);
		assert_true(lines_have(&s.lines, rows[i].line));
	}
	close_house();
}

static void a_name_that_is_known_later_is_found(void **state)
{
	char url[160];

	(void)state;
	snprintf(url, sizeof(url), "postgres://gale@" LATE_NAME ":%u/postgres",
	         postgres_server_listen(s.server));
	late_name_is_known(false);
	open_house(GALE_STRICT, url);
	assert_true(lines_have(&s.lines, "url: no address is known of " LATE_NAME));
	assert_true(lines_will_have_asking(&s.lines, "no address is known of its host",
	                                   ask_for_nothing, NULL));
	late_name_is_known(true);
	ask_until_allowed(2 * LIMIT);
	close_house();
}

static void refused(const char *options, const char *because)
{
	struct gale_counts counts;
	char url[384];

	snprintf(url, sizeof(url), "%s&%s", s.url, options);
	open_house(GALE_STRICT, url);
	if (!lines_will_have_asking(&s.lines, because, ask_for_nothing, NULL))
		fail_msg("%s: said: %s", options, s.lines.text[0]);
	must(gale_store_stats(s.store, &counts) == GALE_ERR_OK);
	assert_int_equal(counts.connects, 0);
	assert_true(counts.failures > 0);
	close_house();
}

/* Whoever is called guarded has to show a password, and nobody else. */
static void who_is_not_let_in_is_told(void **state)
{
	char url[384];

	(void)state;
	do_there(
	    "CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'open sesame';"
	    "DO $$BEGIN EXECUTE format('COPY (VALUES"
	    " (''local all guarded scram-sha-256''), (''local all all trust'')) TO %L',"
	    " current_setting('hba_file')); END$$;"
	    "SELECT pg_reload_conf()");
	refused("dbname=nowhere", "database \"nowhere\" does not exist");
	refused("user=nobody", "role \"nobody\" does not exist");
	refused("user=guarded", "no password supplied");
	refused("user=guarded&password=wrong", "password authentication failed");
	snprintf(url, sizeof(url), "%s&user=guarded&password=open%%20sesame", s.url);
	open_house(GALE_STRICT, url);
	ask_until_allowed(1);
	close_house();
}

static void a_key_of_another_rule_is_left_alone(void **state)
{
	struct gale_limiter_config other = {
		.name = "budget",
		.rule = gale_token_budget(LIMIT, GALE_HOURS(1)),
	};
	struct gale_limiter *budget, *window;
	enum gale_why why;

	(void)state;
	s.quarantine_us = 1;
	open_house(GALE_STRICT, s.url);
	other.store = s.store;
	must(gale_limiter_open(s.runtime, &other, &budget) == GALE_ERR_OK);
	other.rule = gale_gcra(LIMIT, GALE_HOURS(1), LIMIT);
	must(gale_limiter_open(s.runtime, &other, &window) == GALE_ERR_OK);
	while (gale_wait(s.seat, budget, "k", 1, 1, WITHIN).verdict != GALE_ALLOW)
		continue; /* it is only being connected to */
	do                /* a machine that stands still makes an answer late */
		why = gale_wait(s.seat, window, "k", 1, 1, WITHIN).why;
	while (gale_why_is_outage(why));
	assert_int_equal(why, GALE_WHY_CHANGED);
	gale_limiter_close(budget);
	gale_limiter_close(window);
	close_house();
}

static void nap(long ms)
{
	const struct timespec time = { .tv_sec = ms / 1000,
		                       .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- Commits --------------------------------------------------------------------- */

static uint64_t number_there(const char *sql)
{
	PGconn *conn = PQconnectdb(postgres_server_address(s.server));
	PGresult *result = PQexec(conn, sql);
	uint64_t number;

	must(PQntuples(result) == 1);
	number = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
	PQclear(result);
	PQfinish(conn);
	return number;
}

static struct gale_limiter *open_long_limiter(const char *name, enum gale_mode mode)
{
	struct gale_limiter_config config = {
		.name = name,
		.rule = gale_quota_anchored(1000000, GALE_SPAN_MAX_US, 0),
		.mode = mode,
		.store = s.store,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = 1,
		           .patience_us = GALE_SECONDS(3) },
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(s.runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

/* Each batch is done, and then some are not. */
static void commits_fail(enum gale_mode mode, const char *error)
{
	uint64_t deadline = patience_now_ns() + PATIENCE_NS, admitted = 0, used;
	struct gale_limiter *limiter;
	char sql[512];

	s.quarantine_us = 1;
	open_house(mode, s.url);
	ask_until_allowed(1);
	snprintf(sql, sizeof(sql),
	         "CREATE FUNCTION public.fails() RETURNS trigger LANGUAGE plpgsql AS"
	         " $$BEGIN IF random() < 0.3 THEN RAISE 'not now' USING ERRCODE = '%s';"
	         " END IF; RETURN NULL; END$$;"
	         "CREATE CONSTRAINT TRIGGER fails AFTER INSERT OR UPDATE ON gale.keys"
	         " DEFERRABLE INITIALLY DEFERRED"
	         " FOR EACH ROW EXECUTE FUNCTION public.fails()",
	         error);
	do_there(sql);
	limiter = open_long_limiter("commits", mode);
	while (admitted < 40) {
		bool is_allowed =
		    gale_wait(s.seat, limiter, "c", 1, 1, WITHIN).verdict == GALE_ALLOW;

		admitted += is_allowed;
		nap(is_allowed ? 0 : 5); /* it may be on its way back */
		must(patience_now_ns() < deadline);
	}
	gale_limiter_close(limiter);
	close_house();
	used =
	    number_there("SELECT coalesce(sum(CASE node WHEN 0 THEN words[2] ELSE used"
	                 " END), 0)::bigint FROM gale.keys"
	                 " WHERE key = '\\x07'::bytea || 'commitsc'");
	assert_in_range(admitted, 1, used); /* L1 */
	do_there("DROP FUNCTION public.fails() CASCADE; TRUNCATE gale.keys");
}

static void an_answer_counts_when_it_is_committed(void **state)
{
	static const char *const errors[] = { "40001", "23514" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		commits_fail(GALE_STRICT, errors[i]);
		commits_fail(GALE_LEASED, errors[i]);
	}
}

/* ---- Upkeep ---------------------------------------------------------------------- */

static bool is_swept(void *arg)
{
	(void)arg;
	(void)ask();
	return number_there("SELECT count(*) FROM gale.keys WHERE key = 'old'") == 0;
}

/* By whoever asks for anything. */
static void what_has_expired_is_swept_by_who_asks(void **state)
{
	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	close_house();
	do_there("INSERT INTO gale.keys (expires_us, head, fingerprint, key, words)"
	         " VALUES (gale.now_us() - 120000000, 1, 1, 'old', '{1}')");
	open_house(GALE_STRICT, s.url);
	assert_true(becomes_true(is_swept, NULL));
	close_house();
}

/* ---- Keys that are new ----------------------------------------------------------- */

#define NEW_KEYS 24
#define SESSIONS "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'gale'"
#define PUT_IN                                                                         \
	"SELECT coalesce(sum(calls), 0)::int8 FROM pg_stat_user_functions"             \
	" WHERE funcname = 'lend_first'"

static bool all_are_gone(void *arg)
{
	(void)arg;
	return number_there(SESSIONS) == 0;
}

#define WINDOW_NUMBER                                                                  \
	"SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000 / 300000)::int8"

/* The first window after a quarantine begins with what may have been lent ahead of it. */
static bool has_turned_twice(void *arg)
{
	return number_there(WINDOW_NUMBER) >= *(uint64_t *)arg + 2;
}

/* How often a node that has just begun guesses that a key is new: it asks for a few, one after
 * the other.  A session tells what it counted when it ends. */
static uint64_t guesses(void)
{
	uint64_t before = number_there(PUT_IN), began;
	char key[16];

	open_house(GALE_LEASED, s.url);
	ask_until_allowed(1);
	began = number_there(WINDOW_NUMBER);
	assert_true(becomes_true(has_turned_twice, &began));
	for (int i = 0; i < NEW_KEYS; i++) {
		int length = snprintf(key, sizeof(key), "new%d", i);

		assert_int_equal(gale_wait(s.seat, s.limiter, key, (size_t)length, 1,
		                           GALE_SECONDS(10))
		                     .verdict,
		                 GALE_ALLOW);
	}
	close_house();
	assert_true(becomes_true(all_are_gone, NULL));
	return number_there(PUT_IN) - before;
}

/* Who is wrong guesses less and less. */
static void keys_are_guessed_to_be_new_while_they_are(void **state)
{
	(void)state;
	s.shards = 1;
	s.patience_us = GALE_SECONDS(10);
	do_there("ALTER DATABASE postgres SET track_functions = 'pl'");
	open_house(GALE_STRICT, s.url); /* so that the functions are there */
	ask_until_allowed(1);
	close_house();
	assert_in_range(guesses(), NEW_KEYS, NEW_KEYS + 2);
	assert_in_range(guesses(), 2, 6);
	do_there("ALTER DATABASE postgres RESET track_functions");
}

/* ---- Units ahead ----------------------------------------------------------------- */

#define PLENTY 4000
#define LENT_AHEAD                                                                     \
	"SELECT count(*) FROM gale.keys WHERE 9007199254740990 = node OR"              \
	" 9007199254740990 = ANY (words)"

/* It asks about once in a millisecond, until the server keeps a row of what it has ahead. */
static void a_steady_caller_is_lent_units_ahead(void **state)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;
	struct gale_limiter *limiter;

	(void)state;
	open_house(GALE_LEASED, s.url);
	ask_until_allowed(1); /* so that the table is there */
	limiter = open_limiter(s.runtime, s.store, PLENTY, GALE_LEASED);
	do {
		for (int i = 0; i < 100; i++) {
			(void)gale_wait(s.seat, limiter, "steady", 6, 1, WITHIN);
			nanosleep(&moment, NULL);
		}
		assert_true(patience_now_ns() < deadline);
	} while (number_there(LENT_AHEAD) == 0);
	gale_limiter_close(limiter);
	close_house();
}

/* ---- Names ----------------------------------------------------------------------- */

#define MOST_NAMES "SELECT max(names) FROM public.seen"
#define PROCESSES "SELECT count(DISTINCT process) FROM public.seen"

static void statements_have_names_in_a_session_of_our_own(void **state)
{
	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	postgres_server_spy(s.server, /* forgets= */ false);
	ask_until_allowed(3);
	close_house();
	assert_int_equal(number_there(MOST_NAMES), POSTGRES_STATEMENTS);
}

/* Nothing was done, so it is asked again without. */
static void names_that_are_lost_are_done_without(void **state)
{
	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	postgres_server_spy(s.server, /* forgets= */ true);
	ask_until_allowed(5);
	close_house();
	assert_int_equal(number_there(MOST_NAMES), POSTGRES_STATEMENTS);
	assert_int_equal(number_there("SELECT min(names) FROM public.seen"), 0);
	assert_int_equal(number_there(PROCESSES), 1);
}

static bool nobody_works(void *arg)
{
	(void)arg;
	return number_there("SELECT count(*) FROM pg_stat_activity"
	                    " WHERE application_name = 'gale' AND state = 'active'") ==
	       0;
}

/* Nobody waits for them any more: not for those that connections begin with, either. */
static void statements_end_that_take_too_long(void **state)
{
	uint64_t end = patience_now_ns() + UINT64_C(5000000000);

	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	do_there("CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint LANGUAGE sql"
	         " VOLATILE AS $$ SELECT 1 FROM pg_sleep(3600) $$");
	while (patience_now_ns() < end) {
		assert_false(ask());
		nap(1000);
	}
	close_house();
	assert_true(becomes_true(nobody_works, NULL));
}

/* As one does that finds a table of millions of rows. */
static void an_installation_may_take_longer_than_an_answer(void **state)
{
	(void)state;
	do_there("DROP SCHEMA IF EXISTS gale CASCADE;"
	         "CREATE FUNCTION dawdle() RETURNS event_trigger LANGUAGE plpgsql"
	         " AS $$ BEGIN PERFORM pg_sleep(2.5); END $$;"
	         "CREATE EVENT TRIGGER dawdles ON ddl_command_end"
	         " WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION dawdle()");
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	close_house();
	do_there("DROP EVENT TRIGGER dawdles; DROP FUNCTION dawdle()");
}

/* ---- Descriptors ----------------------------------------------------------------- */

static uint64_t cpu_us(void)
{
	struct rusage usage;

	must(getrusage(RUSAGE_SELF, &usage) == 0);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* The child has a copy of the connection, which the server ends. */
static void a_child_does_not_make_its_parent_spin(void **state)
{
	uint64_t before;
	pid_t child;

	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(1);
	child = fork();
	must(child >= 0);
	if (child == 0) {
		nap(5000);
		_exit(0);
	}
	do_there("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	         " WHERE application_name = 'gale'");
	nap(300);
	before = cpu_us();
	nap(1000);
	assert_in_range(cpu_us() - before, 0, GALE_MILLIS(200));
	must(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	close_house();
}

/* libpq's second socket has the number of the first. */
static void the_second_host_is_found_when_the_first_refuses(void **state)
{
	struct gale_limiter *limiter;
	struct gale_answer answer = { .why = GALE_WHY_DOWN };
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "postgres://gale@127.0.0.1:1,127.0.0.1:%u/postgres",
	         postgres_server_listen(s.server));
	open_house(GALE_STRICT, url);
	limiter = open_long_limiter("second", GALE_STRICT);
	for (int i = 0; i < 5 && !is_of_server(answer); i++) {
		answer = gale_wait(s.seat, limiter, "k", 1, 1, GALE_SECONDS(3));
		nap(500);
	}
	assert_true(is_of_server(answer));
	gale_limiter_close(limiter);
	close_house();
}

/* It would all be kept, for as long as it goes on. */
static void says_too_much(const char *url)
{
	open_house(GALE_STRICT, url);
	ask_until_allowed(1);
	do_there("CREATE FUNCTION public.talk() RETURNS trigger LANGUAGE plpgsql AS"
	         " $$BEGIN FOR i IN 1..100 LOOP RAISE NOTICE '%', repeat('x', 8000);"
	         " END LOOP; RETURN NULL; END$$;"
	         "CREATE TRIGGER talks AFTER INSERT OR UPDATE ON gale.keys"
	         " FOR EACH ROW EXECUTE FUNCTION public.talk()");
	assert_true(lines_will_have_asking(&s.lines, "it says more than it was asked",
	                                   ask_again, NULL));
	do_there("DROP FUNCTION public.talk() CASCADE");
	ask_until_allowed(LIMIT);
	close_house();
}

static void a_server_that_says_too_much_is_left(void **state)
{
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "postgres://gale@127.0.0.1:%u/postgres",
	         postgres_server_listen(s.server));
	says_too_much(url);
}

/* The kernel does not count what such a socket has carried. */
static void a_server_at_a_socket_that_says_too_much_is_left(void **state)
{
	(void)state;
	says_too_much(s.url);
}

int main(int count, char **args)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)
	const struct CMUnitTest tests[] = {
		TEST(whoever_comes_first_sets_it_up),
		TEST(many_may_come_first),
		TEST(a_server_that_crashes_is_asked_again),
		TEST(a_table_that_is_emptied_is_a_loss),
		TEST(a_newer_schema_is_left_alone),
		TEST(what_cannot_be_reached_is_said),
		TEST(a_name_that_is_known_later_is_found),
		TEST(who_is_not_let_in_is_told),
		TEST(a_key_of_another_rule_is_left_alone),
		TEST(an_answer_counts_when_it_is_committed),
		TEST(what_has_expired_is_swept_by_who_asks),
		TEST(keys_are_guessed_to_be_new_while_they_are),
		TEST(a_steady_caller_is_lent_units_ahead),
		TEST(statements_have_names_in_a_session_of_our_own),
		TEST(names_that_are_lost_are_done_without),
		TEST(statements_end_that_take_too_long),
		TEST(an_installation_may_take_longer_than_an_answer),
		TEST(a_child_does_not_make_its_parent_spin),
		TEST(the_second_host_is_found_when_the_first_refuses),
		TEST(a_server_that_says_too_much_is_left),
		TEST(a_server_at_a_socket_that_says_too_much_is_left),
	};
#undef TEST

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
