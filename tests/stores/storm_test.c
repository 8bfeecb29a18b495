/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * storm_test.c -- all that can befall a real server and the way to it, in any order, before
 * the last has been got over.
 *
 *     storm_test [redis*|postgres* [SEED [SECONDS]]]
 *
 * As in the weather tests: no window of the store has more than the limit, every ask is
 * answered once, and when it is calm all limiters admit again, without a restart.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "sim/random.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"
#include "tests/support/postgres_server.h"
#include "tests/support/proxy.h"
#include "tests/support/redis_server.h"
#include "tests/support/weather.h"

#define WINDOW GALE_MILLIS(300)
#define BETWEEN_CALMS 12
#define RECOVERY GALE_SECONDS(20)

static struct redis_server redis;
static struct postgres_server *postgres;
static struct proxy proxy;
static struct weather weather;
static struct chance chance;
static uint64_t seed = 1, seconds = 8;

static uint64_t below(uint64_t most)
{
	return chance_below(&chance, most);
}

/* ---- On the way ------------------------------------------------------------------ */

static void cut(void)
{
	proxy_cut(&proxy);
}

static void cut_an_answer(void)
{
	proxy_cut_after(&proxy, below(2500));
}

static void delay(void)
{
	proxy_delay(&proxy, below(2) ? TO_NODE : TO_SERVER, below(450000));
}

static void swallow(void)
{
	proxy_swallow(&proxy, true);
}

static void calm(void)
{
	proxy_delay(&proxy, TO_NODE, 0);
	proxy_delay(&proxy, TO_SERVER, 0);
	proxy_swallow(&proxy, false);
	proxy_cut(&proxy);
}

/* ---- At a Redis server ----------------------------------------------------------- */

/* An error is an answer, too. */
static void say(const char *command)
{
	struct redis_talk talk;

	redis_talk_open(&talk, &redis);
	redis_reply_free(redis_talk_say(&talk, command));
	redis_talk_close(&talk);
}

static void forget_scripts(void)
{
	say("SCRIPT FLUSH");
}

static void kill_clients(void)
{
	say("CLIENT KILL TYPE normal");
}

static void flush(void)
{
	say(below(2) ? "FLUSHALL" : "FLUSHDB");
}

static void lose_generation(void)
{
	say("DEL gale:{b00}generation");
	if (below(2))
		say("SET gale:{b00}generation garbage");
}

static void list_for_generation(void)
{
	say("DEL gale:{b00}generation");
	say("LPUSH gale:{b00}generation x");
	nap(below(50000));
	say("DEL gale:{b00}generation");
}

static void stand_still(void)
{
	redis_server_pause(&redis);
	nap(below(400000));
	redis_server_go_on(&redis);
}

static void restart_redis(void)
{
	redis_server_restart(&redis);
}

static void have_no_room(void)
{
	say("CONFIG SET maxmemory 1");
	nap(below(50000));
	say("CONFIG SET maxmemory 0");
}

static void be_a_replica(void)
{
	say("REPLICAOF 127.0.0.1 1");
	nap(below(100000));
	say("REPLICAOF NO ONE");
}

static void (*const redis_acts[])(void) = {
	cut,          cut_an_answer,   delay,
	swallow,      forget_scripts,  kill_clients,
	flush,        lose_generation, list_for_generation,
	stand_still,  restart_redis,   have_no_room,
	be_a_replica,
};

/* ---- At a PostgreSQL server ------------------------------------------------------ */

static void say_nothing(void *arg, const char *notice)
{
	(void)arg;
	(void)notice;
}

/* What cannot be done now need not be. */
static void tell(const char *sql, uint64_t for_us)
{
	PGconn *conn = PQconnectdb(postgres_server_address(postgres));

	PQsetNoticeProcessor(conn, say_nothing, NULL);
	PQclear(PQexec(conn, "SET statement_timeout = '3s'; SET lock_timeout = '2s'"));
	PQclear(PQexec(conn, sql));
	nap(for_us);
	PQfinish(conn);
}

static void end_processes(void)
{
	tell("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
	     " WHERE application_name = 'gale'",
	     0);
}

static void cancel(void)
{
	tell("SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
	     " WHERE application_name = 'gale'",
	     0);
}

static void truncate_keys(void)
{
	tell("TRUNCATE gale.keys", 0);
}

static void rewrite_table(void)
{
	static const char *const how[] = { "VACUUM FULL gale.keys",
		                           "VACUUM FREEZE gale.keys",
		                           "REINDEX TABLE gale.keys" };

	tell(how[below(3)], 0);
}

static void lock_rows(void)
{
	tell("BEGIN; SELECT FROM gale.keys FOR UPDATE", below(400000));
}

static void restart_postgres(void)
{
	postgres_server_restart(postgres, /* crashes= */ below(2));
}

static void isolate(void)
{
	static const char *const levels[] = { "read committed", "repeatable read",
		                              "serializable" };
	char sql[128];

	snprintf(sql, sizeof(sql),
	         "ALTER DATABASE postgres SET default_transaction_isolation = '%s'",
	         levels[below(3)]);
	tell(sql, 0);
	end_processes();
}

static void sweep(void)
{
	for (int i = 0; i < 20; i++)
		tell("SELECT gale.sweep(1000, 0)", 0);
}

static void drop_schema(void)
{
	tell("DROP SCHEMA gale CASCADE", 0);
}

static void be_older(void)
{
	tell("CREATE OR REPLACE FUNCTION gale.version() RETURNS int LANGUAGE sql"
	     " IMMUTABLE AS 'SELECT 0'",
	     0);
}

static void set_durable(void)
{
	tell(below(2) ? "SELECT gale.set_durable(true)"
	              : "SELECT gale.set_durable(false)",
	     0);
}

static void touch_rows(void)
{
	tell("UPDATE gale.keys SET words = words", 0);
}

static void lose_birth(void)
{
	tell("DELETE FROM gale.birth", 0);
}

static void (*const postgres_acts[])(void) = {
	cut,           cut_an_answer, delay,     swallow,     end_processes,
	cancel,        truncate_keys, lock_rows, sweep,       restart_postgres,
	rewrite_table, drop_schema,   be_older,  set_durable, touch_rows,
	isolate,       lose_birth,
};

/* ---- Storms ---------------------------------------------------------------------- */

static void begin(const char *socket, const char *form)
{
	static char url[96];
	struct weather_plan plan = {
		.urls = { url, url },
		.shards = 2,
		.window_us = WINDOW,
		.limit = 40,
		.keys = 2,
		.askers = 3,
		.pollers = 1,
		.within_us = GALE_MILLIS(150),
		.nap_us = WEATHER_NAP_US,
	};

	proxy_open(&proxy, socket);
	snprintf(url, sizeof(url), form, proxy.port);
	weather_let_ask(&weather, &plan);
	assert_true(weather_recovers(&weather, RECOVERY));
}

static void rage(void (*const *acts)(void), size_t count)
{
	uint64_t end_ns = patience_now_ns() + seconds * 1000000000;

	chance.state = seed;
	for (int i = 1; patience_now_ns() < end_ns; i++) {
		acts[below(count)]();
		nap(below(below(4) ? 60000 : 500000));
		if (i % BETWEEN_CALMS == 0) {
			calm();
			assert_true(weather_recovers(&weather, RECOVERY));
		}
	}
	calm();
	assert_true(weather_recovers(&weather, RECOVERY));
	weather_end(&weather);
	proxy_close(&proxy);
}

static void redis_in_a_storm(void **state)
{
	(void)state;
	redis_server_start(&redis, NULL);
	begin(redis.socket, "redis://127.0.0.1:%u");
	rage(redis_acts, sizeof(redis_acts) / sizeof(redis_acts[0]));
	redis_server_stop(&redis);
}

static void postgres_in_a_storm(void **state)
{
	char socket[96];
	PGconn *conn;

	(void)state;
	postgres = postgres_server_start();
	conn = PQconnectdb(postgres_server_address(postgres));
	snprintf(socket, sizeof(socket), "%.64s/.s.PGSQL.5432", PQhost(conn));
	PQfinish(conn);
	begin(socket, "postgres://gale@127.0.0.1:%u/postgres");
	rage(postgres_acts, sizeof(postgres_acts) / sizeof(postgres_acts[0]));
	postgres_server_stop(postgres);
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redis_in_a_storm),
		cmocka_unit_test(postgres_in_a_storm),
	};

	seed = count > 2 ? strtoull(args[2], NULL, 10) : seed;
	seconds = count > 3 ? strtoull(args[3], NULL, 10) : seconds;
	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
