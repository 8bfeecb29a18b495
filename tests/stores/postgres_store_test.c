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
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <gale/gale.h>

#include "runtime/clock.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/windows.h"

#define WINDOW GALE_MILLIS(300)
#define LIMIT 40
#define PATIENCE_NS UINT64_C(20000000000)
#define WITHIN GALE_MILLIS(200)
#define SAID 4096

struct scene {
	struct postgres_server *server;
	char url[256];
	struct gale_log log;
	char said[SAID]; /* by gale, to its host */
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct windows windows;
};

static struct scene s;

static void keep_line(struct gale_log *self, const char *line)
{
	size_t length = strlen(s.said);

	(void)self;
	snprintf(s.said + length, SAID - length, "%s\n", line);
}

/* What libpq is told is host=... port=... and so on: options of a URL, too. */
static int open_server(void **state)
{
	char *at;

	(void)state;
	memset(&s, 0, sizeof(s));
	s.log.write = keep_line;
	s.server = postgres_server_start(/* syncs= */ false);
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
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void open_house(enum gale_mode mode, const char *url)
{
	struct gale_config config = { .log = &s.log };
	struct gale_store_config store = { .url = url };

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
	const struct timespec moment = { .tv_nsec = 200000 };
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (times > 0) {
		times -= ask();
		nanosleep(&moment, NULL);
		assert_true(patience_now_ns() < deadline);
	}
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
	while (gale_wait(seat, limiter, "k", 1, 1, WITHIN).why != GALE_WHY_RULE)
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
	for (int i = 0; i < 20; i++)
		assert_false(ask());
	assert_non_null(strstr(s.said, "postgres: "));
	close_house();
}

static void what_cannot_be_reached_is_said(void **state)
{
	static const struct {
		const char *url;
		enum gale_err err;
	} rows[] = {
		{ "postgres://host.invalid/db", GALE_ERR_HOST },
		{ "postgres://h?nonsense=1", GALE_ERR_URL },
		{ "postgres://h:0/db", GALE_ERR_URL },
		{ "postgresql:/h", GALE_ERR_URL },
	};
	struct gale_store *store;

	(void)state;
	open_house(GALE_STRICT, "postgres://127.0.0.1:1/db");
	for (int i = 0; i < 5; i++)
		assert_false(ask());
	assert_non_null(strstr(s.said, "cannot connect"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gale_store_config config = { .url = rows[i].url };

		assert_int_equal(gale_store_open(s.runtime, &config, &store),
		                 rows[i].err);
	}
	close_house();
}

static void a_key_of_another_rule_is_left_alone(void **state)
{
	struct gale_limiter *other;

	(void)state;
	open_house(GALE_STRICT, s.url);
	ask_until_allowed(LIMIT / 2);
	other = open_limiter(s.runtime, s.store, LIMIT + 1, GALE_STRICT);
	while (gale_wait(s.seat, other, "k", 1, 1, WITHIN).why != GALE_WHY_CHANGED)
		ask_until_allowed(1); /* its window has turned, and it was as new */
	gale_limiter_close(other);
	close_house();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)
	const struct CMUnitTest tests[] = {
		TEST(whoever_comes_first_sets_it_up),
		TEST(many_may_come_first),
		TEST(a_server_that_crashes_is_asked_again),
		TEST(a_table_that_is_emptied_is_a_loss),
		TEST(a_newer_schema_is_left_alone),
		TEST(what_cannot_be_reached_is_said),
		TEST(a_key_of_another_rule_is_left_alone),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
