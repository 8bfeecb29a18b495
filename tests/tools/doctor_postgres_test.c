/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_postgres_test.c -- gale doctor, on real PostgreSQL servers: each line that it can print.
 *
 * What another system or an older server would say, functions say that stand before the
 * system's own in a role's search_path.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stores/postgres/schema.h"
#include "tests/support/doctored.h"
#include "tests/support/must.h"
#include "tests/support/pool.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"
#include "tools/init.h"

static struct postgres_server *postgres;
static struct line line;

static int init(const char *url)
{
	const char *const words[] = { "init", url, NULL };

	return command_run(init_run, words);
}

static const char *url_at(const char *port, const char *user)
{
	static char url[256];

	snprintf(url, sizeof(url), "postgres:///postgres?host=%s&port=%s&user=%s",
	         PQhost(line.conn), port, user);
	return url;
}

static const char *url_of(const char *user)
{
	return url_at(PQport(line.conn), user);
}

static int start(void **state)
{
	(void)state;
	postgres = postgres_server_start();
	postgres_line_open(&line, postgres_server_address(postgres));
	must(init(url_of("gale")) == INIT_DONE);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	postgres_line_close(&line);
	postgres_server_stop(postgres);
	command_forget();
	return 0;
}

/* A role to which a function says something else. */
static void deceive(const char *role, const char *function, const char *type,
                    const char *says)
{
	char sql[512];

	snprintf(
	    sql, sizeof(sql),
	    "CREATE ROLE %s LOGIN; CREATE SCHEMA %s; GRANT USAGE ON SCHEMA %s TO %s;"
	    " GRANT USAGE ON SCHEMA gale TO %s;"
	    " CREATE FUNCTION %s.%s RETURNS %s LANGUAGE sql AS $$ SELECT %s $$;"
	    " ALTER ROLE %s SET search_path = %s, pg_catalog",
	    role, role, role, role, role, role, function, type, says, role, role);
	postgres_line_do(&line, sql);
}

/* The tests' servers sync nothing: this role is told that they do. */
static void a_server_that_is_well_is_called_so(void **state)
{
	(void)state;
	assert_found(url_of("gale"),
	             "WARN  durability: fsync is off: a crash may forget");
	deceive("synced", "current_setting(name text)", "text",
	        "CASE name WHEN 'fsync' THEN 'on' ELSE "
	        "pg_catalog.current_setting(name) END");
	assert_int_equal(doctor(url_of("synced")), DOCTOR_WELL);
	assert_says(command_out, "OK    connection: /");
	assert_says(command_out, ", database postgres, as synced\n");
	assert_says(command_out, "OK    server: PostgreSQL 1");
	assert_says(command_out, "OK    role: primary");
	assert_says(command_out, "OK    pool: none");
	assert_says(command_out, "OK    schema: version ");
	assert_says(command_out, "OK    rights: synced may call all that nodes call");
	assert_says(command_out, "OK    durability: a crash forgets nothing");
	assert_says(command_out, "OK    standbys: none");
	assert_says(command_out, "OK    clock: within a second of this host's");
	assert_says(command_out, "9 well, 0 to warn of, 0 failed");
	assert_string_equal(command_err, "");
}

/* ---- What it is ------------------------------------------------------------------ */

static void who_only_speaks_as_postgres_is_refused_by_name(void **state)
{
	static const char *const rows[][3] = {
		{ "cockroach", "'CockroachDB CCL v26.2.0 (x86_64-pc-linux-gnu)'",
		  "CockroachDB" },
		{ "yuga", "'PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu'",
		  "YugabyteDB" },
		{ "redshift", "'PostgreSQL 8.0.2 on i686, Redshift 1.0.77467'",
		  "Amazon Redshift" },
		{ "greenplum", "'PostgreSQL 12.12 (Greenplum Database 7.0.0)'",
		  "Greenplum" },
		{ "materialize", "'PostgreSQL 9.5 on x86_64 (Materialize v26)'",
		  "Materialize" },
	};
	char said[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		deceive(rows[i][0], "version()", "text", rows[i][1]);
		snprintf(said, sizeof(said),
		         "FAIL  server: the server is %s, whose locks", rows[i][2]);
		assert_found(url_of(rows[i][0]), said);
		assert_null(strstr(command_out, "role: "));
		assert_int_equal(init(url_of(rows[i][0])), INIT_FAILED);
		assert_says(command_err, said + strlen("FAIL  server: "));
	}
}

static void a_server_that_is_too_old_is_found(void **state)
{
	(void)state;
	deceive("old", "current_setting(name text)", "text", "'130014'");
	assert_found(url_of("old"),
	             "FAIL  server: PostgreSQL 13 is too old: gale needs "
	             "PostgreSQL 14 or newer");
}

static void a_clock_that_is_wrong_is_found(void **state)
{
	(void)state;
	deceive("late", "clock_timestamp()", "timestamptz",
	        "pg_catalog.clock_timestamp() - interval '1 hour'");
	assert_found(url_of("late"), "WARN  clock: 3");
	assert_says(command_out, " ms behind this host's");
	deceive("early", "clock_timestamp()", "timestamptz",
	        "pg_catalog.clock_timestamp() + interval '1 hour'");
	assert_found(url_of("early"), "WARN  clock: 3");
	assert_says(command_out, " ms ahead of this host's");
}

static void who_cannot_be_reached_is_said(void **state)
{
	(void)state;
	assert_found("postgres://127.0.0.1:1/db", "FAIL  connection: cannot connect: ");
	assert_found(url_of("stranger"), "role \"stranger\" does not exist: start the "
	                                 "server, or mend the host, the role");
}

/* What is asked may be refused: here by a function of the role's own that fails. */
static void a_server_that_cannot_be_asked_is_said(void **state)
{
	(void)state;
	deceive("broken", "pg_backend_pid()", "int", "1 / 0");
	assert_found(url_of("broken"),
	             "FAIL  pool: the server cannot be asked: division "
	             "by zero: look into its log");
}

static void who_may_only_read_is_found(void **state)
{
	(void)state;
	postgres_line_do(
	    &line, "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA gale TO reader;"
		   " ALTER ROLE reader SET default_transaction_read_only = on");
	assert_found(url_of("reader"),
	             "FAIL  role: transactions of this role are read-only: ALTER ROLE "
	             "reader SET default_transaction_read_only = off");
}

static void a_pool_is_found(void **state)
{
	struct pooler pool;
	char port[8];

	(void)state;
	pool_start(&pool, PQhost(line.conn));
	snprintf(port, sizeof(port), "%d", POOL_PORT);
	assert_found(url_at(port, "gale"), "WARN  pool: sessions are a pool's");
	pool_stop(&pool);
}

/* ---- Schema and rights ----------------------------------------------------------- */

static void who_may_not_use_the_schema_is_told_how(void **state)
{
	(void)state;
	postgres_line_do(&line, "CREATE ROLE least LOGIN");
	assert_found(url_of("least"),
	             "FAIL  rights: least may not use the schema: gale "
	             "store init URL --for least");
	postgres_line_do(&line, "GRANT USAGE ON SCHEMA gale TO least");
	assert_found(url_of("least"), "OK    rights: least may call all");
	postgres_line_do(&line,
	                 "REVOKE EXECUTE ON FUNCTION gale.beat, gale.run FROM PUBLIC");
	assert_found(
	    url_of("least"),
	    "FAIL  rights: least may not call gale.beat, gale.run: GRANT EXECUTE "
	    "ON FUNCTION gale.beat, gale.run TO least");
	postgres_line_do(&line,
	                 "GRANT EXECUTE ON FUNCTION gale.beat, gale.run TO PUBLIC");
	postgres_line_do(&line, "REVOKE EXECUTE ON FUNCTION gale.version FROM PUBLIC");
	assert_found(url_of("least"), "FAIL  schema: the schema gale cannot be used: "
	                              "permission denied for function version");
	postgres_line_do(&line, "GRANT EXECUTE ON FUNCTION gale.version TO PUBLIC");
}

static void set_version(const char *version)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "CREATE OR REPLACE FUNCTION gale.version() RETURNS int LANGUAGE sql"
	         " IMMUTABLE AS 'SELECT %s'",
	         version);
	postgres_line_do(&line, sql);
}

static void a_schema_of_another_version_is_found(void **state)
{
	(void)state;
	set_version("1");
	assert_found(url_of("gale"), "WARN  schema: version 1 is older than this gale");
	assert_found(url_of("least"),
	             "FAIL  schema: version 1 is older than this gale");
	set_version("1000");
	assert_found(url_of("gale"),
	             "FAIL  schema: version 1000 is newer than this gale");
	postgres_line_do(&line, "DROP SCHEMA gale CASCADE");
	assert_found(url_of("gale"),
	             "WARN  schema: it is not installed: the first node "
	             "installs it");
	assert_found(
	    url_of("least"),
	    "FAIL  schema: it is not installed, and least may not do that: gale "
	    "store init URL --for least");
	must(init(url_of("gale")) == INIT_DONE);
}

/* ---- What it keeps --------------------------------------------------------------- */

static void what_a_crash_forgets_is_found(void **state)
{
	(void)state;
	postgres_line_do(&line, POSTGRES_SET_FAST);
	assert_found(url_of("gale"),
	             "WARN  durability: the table is unlogged: a crash");
	postgres_line_do(&line, POSTGRES_SET_DURABLE);
	postgres_line_do(&line, "GRANT USAGE ON SCHEMA gale TO synced;"
	                        " ALTER ROLE synced SET synchronous_commit = off");
	assert_found(url_of("synced"), "WARN  durability: synchronous_commit is off");
}

static bool is_found(void *arg)
{
	doctor(url_of("gale"));
	return strstr(command_out, arg) != NULL;
}

/* A setting of the whole server, from now on. */
static void set(const char *sql)
{
	postgres_line_do(&line, sql);
	postgres_line_do(&line, "SELECT pg_reload_conf()");
}

/* The text is there after a while: settings and standbys take one. */
static void assert_comes(const char *text)
{
	if (!becomes_true(is_found, (void *)(uintptr_t)text))
		assert_says(command_out, text);
}

static void standbys_are_found(void **state)
{
	struct postgres_server *standby;
	char place[128];
	uint16_t port;

	(void)state;
	set("ALTER SYSTEM SET synchronous_standby_names = '*'");
	assert_comes("FAIL  standbys: none is connected, and commits wait for one");
	set("ALTER SYSTEM RESET synchronous_standby_names");
	assert_comes("OK    standbys: none: while");
	postgres_line_close(&line);
	standby = postgres_server_follow(postgres_server_listen(postgres), &port);
	postgres_line_open(&line, postgres_server_address(postgres));
	assert_comes("WARN  standbys: 1, which may be behind");
	snprintf(place, sizeof(place), "postgres://gale@127.0.0.1:%d/postgres", port);
	assert_found(place, "FAIL  role: it is a standby, which nodes do not use");
	set("ALTER SYSTEM SET synchronous_standby_names = '*'");
	assert_comes("OK    standbys: 1, and commits wait for those");
	set("ALTER SYSTEM RESET synchronous_standby_names");
	postgres_server_stop(standby);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_is_well_is_called_so),
		cmocka_unit_test(who_only_speaks_as_postgres_is_refused_by_name),
		cmocka_unit_test(a_server_that_is_too_old_is_found),
		cmocka_unit_test(a_clock_that_is_wrong_is_found),
		cmocka_unit_test(who_cannot_be_reached_is_said),
		cmocka_unit_test(a_server_that_cannot_be_asked_is_said),
		cmocka_unit_test(who_may_only_read_is_found),
		cmocka_unit_test(a_pool_is_found),
		cmocka_unit_test(who_may_not_use_the_schema_is_told_how),
		cmocka_unit_test(a_schema_of_another_version_is_found),
		cmocka_unit_test(what_a_crash_forgets_is_found),
		cmocka_unit_test(standbys_are_found),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
