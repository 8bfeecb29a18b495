/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_test.c -- gale store init, on real servers: what it does, what it says, and how it
 * exits.
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

#include <gale/gale.h>

#include "tests/support/command.h"
#include "tests/support/must.h"
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_server.h"
#include "tools/init.h"

static struct postgres_server *postgres;
static struct line line;
static struct redis_server redis;
static const char *const has_password[] = { "--requirepass", "secret", NULL };

static int init(const char *url, const char *role)
{
	const char *const words[] = { "init", url, role ? "--for" : NULL, role, NULL };

	return command_run(init_run, words);
}

/* As this user, to that database. */
static const char *url_of(const char *user, const char *database)
{
	static char url[256];

	snprintf(url, sizeof(url), "postgres:///%s?host=%s&port=%s&user=%s", database,
	         PQhost(line.conn), PQport(line.conn), user);
	return url;
}

static int start(void **state)
{
	(void)state;
	postgres = postgres_server_start();
	postgres_line_open(&line, postgres_server_address(postgres));
	redis_server_start(&redis, has_password);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redis_server_kill(&redis);
	redis_server_stop(&redis);
	postgres_line_close(&line);
	postgres_server_stop(postgres);
	command_forget();
	return 0;
}

/* What a node is told that has not asked there before, about a key of an hour's window. */
static struct gale_answer first_answer(const char *url, const char *key)
{
	struct gale_store_config store = { .url = url };
	struct gale_limiter_config config = { .name = "first",
		                              .rule =
		                                  gale_fixed_window(9, GALE_HOURS(1)),
		                              .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	struct gale_answer answer;

	config.lease.patience_us = GALE_SECONDS(10);
	must(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK);
	must(gale_store_open(runtime, &store, &config.store) == GALE_ERR_OK);
	must(gale_limiter_open(runtime, &config, &limiter) == GALE_ERR_OK);
	must(gale_join(runtime, &seat) == GALE_ERR_OK);
	answer = gale_wait(seat, limiter, key, strlen(key), 1, GALE_SECONDS(10));
	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(config.store);
	gale_runtime_close(runtime);
	return answer;
}

/* ---- PostgreSQL ------------------------------------------------------------------ */

static void a_schema_is_installed_once(void **state)
{
	(void)state;
	postgres_line_do(&line, "DROP SCHEMA IF EXISTS gale CASCADE");
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_says(command_out, "PostgreSQL ");
	assert_says(command_out, "has been installed");
	assert_says(command_out, "fsync is off");
	assert_string_equal(command_err, "");
	assert_int_equal(postgres_line_number(&line, "SELECT gale.version()"),
	                 postgres_schema_version);
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_says(command_out, "is there");
	postgres_line_do(&line, POSTGRES_SET_FAST);
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_says(command_out, "the table is unlogged");
	postgres_line_do(&line, POSTGRES_SET_DURABLE);
}

/* A schema that a node installs may take the place of one that was lost. */
static void who_uses_a_schema_that_init_has_made_need_not_wait(void **state)
{
	(void)state;
	postgres_line_do(&line, "DROP SCHEMA IF EXISTS gale CASCADE");
	assert_int_equal(first_answer(url_of("gale", "postgres"), "k").why,
	                 GALE_WHY_QUARANTINE);
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_null(strstr(command_out, "marked as new"));
	postgres_line_do(&line, "DROP SCHEMA gale CASCADE");
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_says(command_out,
	            "it is marked as new: the first ask is granted at once");
	assert_int_equal(first_answer(url_of("gale", "postgres"), "k").verdict,
	                 GALE_ALLOW);
	postgres_line_do(&line, "TRUNCATE gale.keys");
	assert_int_equal(first_answer(url_of("gale", "postgres"), "k").why,
	                 GALE_WHY_QUARANTINE);
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

static void an_older_schema_is_replaced_a_newer_one_is_not(void **state)
{
	(void)state;
	set_version("0");
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	assert_says(command_out, "from version 0 to");
	set_version("1000");
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_FAILED);
	assert_says(command_err, "has version 1000");
	assert_int_equal(postgres_line_number(&line, "SELECT gale.version()"), 1000);
	postgres_line_do(&line, "DROP SCHEMA gale CASCADE");
}

/* Who may not install is told so; who may lets the other use it. */
static void another_role_may_be_let_in(void **state)
{
	char *own;

	(void)state;
	postgres_line_do(&line, "CREATE ROLE \"run time\" LOGIN");
	own = strdup(url_of("run%20time", "postgres"));
	must(own);
	assert_int_equal(init(own, NULL), INIT_FAILED);
	assert_says(command_err, "cannot install the schema gale: permission denied");
	assert_int_equal(init(url_of("gale", "postgres"), "nobody"), INIT_FAILED);
	assert_says(command_err, "role \"nobody\" does not exist");
	assert_int_equal(init(own, NULL), INIT_FAILED);
	assert_says(command_err, "permission denied for schema gale");
	assert_int_equal(init(url_of("gale", "postgres"), "run time"), INIT_DONE);
	assert_says(command_out, "run time may use it");
	assert_int_equal(init(own, NULL), INIT_DONE);
	assert_says(command_out, "is there");
	free(own);
}

/* docs/stores.md: a node's role has these rights, and no others. */
static void a_nodes_role_needs_no_more_than_is_written_down(void **state)
{
	(void)state;
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_DONE);
	postgres_line_do(&line, "REVOKE ALL ON DATABASE postgres FROM PUBLIC");
	postgres_line_do(&line, "REVOKE ALL ON SCHEMA public FROM PUBLIC");
	postgres_line_do(&line, "CREATE ROLE least LOGIN");
	assert_int_not_equal(first_answer(url_of("least", "postgres"), "k").verdict,
	                     GALE_ALLOW);
	postgres_line_do(&line, "GRANT CONNECT ON DATABASE postgres TO least");
	assert_int_not_equal(first_answer(url_of("least", "postgres"), "k").verdict,
	                     GALE_ALLOW);
	assert_int_equal(init(url_of("gale", "postgres"), "least"), INIT_DONE);
	assert_int_equal(first_answer(url_of("least", "postgres"), "k").verdict,
	                 GALE_ALLOW);
	assert_int_equal(postgres_line_number(&line,
	                                      "SELECT count(*) FROM pg_class AS c,"
	                                      " aclexplode(c.relacl) AS a"
	                                      " WHERE a.grantee = 'least'::regrole"),
	                 0);
	postgres_line_do(&line, "GRANT CONNECT, TEMP ON DATABASE postgres TO PUBLIC");
	postgres_line_do(&line, "GRANT USAGE ON SCHEMA public TO PUBLIC");
}

static void what_cannot_be_used_is_said(void **state)
{
	(void)state;
	assert_int_equal(init(url_of("gale", "nowhere"), NULL), INIT_FAILED);
	assert_says(command_err, "database \"nowhere\" does not exist");
	assert_int_equal(init(url_of("stranger", "postgres"), NULL), INIT_FAILED);
	assert_says(command_err, "role \"stranger\" does not exist");
	assert_int_equal(init("postgres://host.invalid/db", NULL), INIT_FAILED);
	assert_says(command_err, "host.invalid");
	assert_int_equal(init("postgres://127.0.0.1:1/db", NULL), INIT_FAILED);
	assert_says(command_err, "cannot connect");
	postgres_line_do(&line,
	                 "ALTER ROLE gale SET default_transaction_read_only = on");
	assert_int_equal(init(url_of("gale", "postgres"), NULL), INIT_FAILED);
	assert_says(command_err, "read-only");
	postgres_line_do(&line, "ALTER ROLE gale RESET default_transaction_read_only");
}

/* ---- Redis ----------------------------------------------------------------------- */

static const char *redis_url(const char *password)
{
	static char url[256];

	snprintf(url, sizeof(url), "redis://%s%s%s%s", password[0] ? ":" : "", password,
	         password[0] ? "@" : "", redis.socket);
	return url;
}

/* On a connection that has signed in. */
static void tell_redis(const char *command)
{
	struct redis_talk talk;

	redis_talk_open(&talk, &redis);
	redis_talk_do(&talk, "AUTH secret");
	redis_talk_do(&talk, command);
	redis_talk_close(&talk);
}

static void a_redis_that_forgets_nothing_is_good(void **state)
{
	(void)state;
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "standalone, primary, 0 replicas");
	assert_says(command_out, "no key is evicted");
	assert_says(command_out, "persistence: none");
	assert_says(command_out, "bound: ");
	tell_redis("CONFIG SET appendonly yes");
	tell_redis("CONFIG SET maxmemory 100mb");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "append-only");
	assert_says(command_out, "then noeviction");
	tell_redis("CONFIG SET appendonly no");
}

static void a_redis_that_evicts_is_not(void **state)
{
	(void)state;
	tell_redis("CONFIG SET maxmemory 100mb");
	tell_redis("CONFIG SET maxmemory-policy allkeys-lru");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_FAILED);
	assert_says(command_err, "maxmemory-policy is allkeys-lru");
	tell_redis("CONFIG SET maxmemory-policy noeviction");
}

static void a_redis_that_is_a_replica_is_not(void **state)
{
	(void)state;
	tell_redis("REPLICAOF 127.0.0.1 1");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_FAILED);
	assert_says(command_err, "it is a replica");
	tell_redis("REPLICAOF NO ONE");
}

static void a_redis_that_does_not_let_us_in_is_not(void **state)
{
	(void)state;
	assert_int_equal(init(redis_url("wrong"), NULL), INIT_FAILED);
	assert_says(command_err, "WRONGPASS");
	assert_int_equal(init(redis_url(""), NULL), INIT_FAILED);
	assert_says(command_err, "NOAUTH");
	assert_int_equal(init("redis://127.0.0.1:1", NULL), INIT_FAILED);
	assert_says(command_err, "cannot connect to 127.0.0.1");
	assert_int_equal(init("redis+sentinel://127.0.0.1:1/mine", NULL), INIT_FAILED);
	assert_says(command_err, "cannot connect to 127.0.0.1");
}

/* As the library would not be let in, either. */
static void a_database_or_replicas_that_are_not_there_are_missed(void **state)
{
	char url[300];

	(void)state;
	snprintf(url, sizeof(url), "%s?db=99", redis_url("secret"));
	assert_int_equal(init(url, NULL), INIT_FAILED);
	assert_says(command_err, "DB index is out of range");
	snprintf(url, sizeof(url), "%s?db=9", redis_url("secret"));
	assert_int_equal(init(url, NULL), INIT_DONE);
	snprintf(url, sizeof(url), "%s?durable=1", redis_url("secret"));
	assert_int_equal(init(url, NULL), INIT_FAILED);
	assert_says(command_err, "fewer replicas than durable= says");
}

/* Who uses a server that is not marked waits, and who is first to use one that is does not. */
static void an_empty_redis_is_marked_as_new(void **state)
{
	(void)state;
	tell_redis("FLUSHALL");
	assert_int_equal(first_answer(redis_url("secret"), "k").why,
	                 GALE_WHY_QUARANTINE);
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: it has begun already");
	assert_int_equal(first_answer(redis_url("secret"), "k").why,
	                 GALE_WHY_QUARANTINE);

	tell_redis("FLUSHALL");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out,
	            "it is marked as new: the first ask is granted at once");
	assert_int_equal(first_answer(redis_url("secret"), "k").verdict, GALE_ALLOW);
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: it has begun already");
	assert_int_equal(first_answer(redis_url("secret"), "l").verdict, GALE_ALLOW);

	tell_redis("FLUSHALL"); /* nobody has said that this one is new */
	assert_int_equal(first_answer(redis_url("secret"), "k").why,
	                 GALE_WHY_QUARANTINE);
}

/* A process that is started again has forgotten, whatever a disk has kept of the mark. */
static void a_mark_does_not_outlast_its_process(void **state)
{
	(void)state;
	tell_redis("FLUSHALL");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "it is marked as new");
	tell_redis("SAVE");
	redis_server_restart(&redis);
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: it has begun already");
	assert_int_equal(first_answer(redis_url("secret"), "k").why,
	                 GALE_WHY_QUARANTINE);
}

/* Who was granted them may have had more. */
static void a_redis_with_keys_of_ours_is_not_marked_as_new(void **state)
{
	char url[300];

	(void)state;
	tell_redis("FLUSHALL");
	tell_redis("SET gale:{b00}:\7limiterk x");
	assert_int_equal(init(redis_url("secret"), NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: it has keys of gale's");
	assert_int_equal(first_answer(redis_url("secret"), "k").why,
	                 GALE_WHY_QUARANTINE);

	snprintf(url, sizeof(url), "%s?prefix=[g]*:", redis_url("secret"));
	tell_redis("SET g*:{b00}:\7limiterk others");
	assert_int_equal(init(url, NULL), INIT_DONE);
	assert_says(command_out, "it is marked as new");
	tell_redis("FLUSHALL");
	tell_redis("SET [g]*:{b00}:\7limiterk ours");
	assert_int_equal(init(url, NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: it has keys of gale's");
}

static void who_may_not_look_does_not_mark(void **state)
{
	char url[300];

	(void)state;
	tell_redis("FLUSHALL");
	tell_redis("ACL SETUSER blind on >baba ~* +@all -scan");
	snprintf(url, sizeof(url), "redis://blind:baba@%s", redis.socket);
	assert_int_equal(init(url, NULL), INIT_DONE);
	assert_says(command_out, "it is not marked as new: NOPERM");
	assert_int_equal(first_answer(url, "k").why, GALE_WHY_QUARANTINE);
	tell_redis("ACL DELUSER blind");
}

/* What docs/stores.md writes down. */
#define NODES_RIGHTS                                                                   \
	"~gale:* +eval +evalsha +script|load +info +time +get +set +setrange +del "    \
	"+mget +client|setname"

static size_t refusals_of_redis(void)
{
	struct redis_talk talk;
	redisReply *reply;
	size_t count;

	redis_talk_open(&talk, &redis);
	redis_talk_do(&talk, "AUTH secret");
	reply = redis_talk_say(&talk, "ACL LOG");
	count = reply->elements;
	redis_reply_free(reply);
	redis_talk_close(&talk);
	return count;
}

/* The server notes each command that it refuses. */
static void rights_that_are_written_down_suffice(void **state)
{
	char url[300];

	(void)state;
	tell_redis("FLUSHALL");
	tell_redis("ACL LOG RESET");
	tell_redis("ACL SETUSER least on >word " NODES_RIGHTS " +config|get +scan");
	snprintf(url, sizeof(url), "redis://least:word@%s", redis.socket);
	assert_int_equal(init(url, NULL), INIT_DONE);
	assert_says(command_out, "it is marked as new");
	tell_redis("ACL SETUSER least -config|get -scan");
	assert_int_equal(first_answer(url, "k").verdict, GALE_ALLOW);
	assert_int_equal(refusals_of_redis(), 0);
	assert_int_equal(init(url, NULL), INIT_DONE);
	assert_true(refusals_of_redis() > 0);
	tell_redis("ACL DELUSER least");
}

static const char *cluster_url(const struct redis_cluster *cluster, const char *scheme,
                               int node)
{
	static char url[64];

	snprintf(url, sizeof(url), "%s://127.0.0.1:%.7s", scheme, cluster->ports[node]);
	return url;
}

static void each_primary_of_a_cluster_is_looked_at(void **state)
{
	struct redis_cluster cluster;
	int owner;

	(void)state;
	assert_int_equal(init("redis+cluster://127.0.0.1:1", NULL), INIT_FAILED);
	assert_says(command_err, "cannot connect to 127.0.0.1");
	redis_cluster_start(&cluster);
	for (int node = 0; node < CLUSTER_SERVERS; node += CLUSTER_SERVERS - 1) {
		const char *url = cluster_url(&cluster, "redis+cluster", node);

		assert_int_equal(init(url, NULL), INIT_DONE);
		for (int i = 0; i < CLUSTER_PRIMARIES; i++)
			assert_says(command_out, cluster.ports[i]);
		assert_says(command_out, ", cluster, primary, 1 replicas");
		assert_says(command_out, "bound: ");
		assert_non_null(
		    strstr(command_out, node == 0 ? " buckets are marked as new, 0 "
		                                  : ": 0 of gale's buckets are"));
	}
	for (int i = 0; i < 16; i++) {
		const char key[2] = { (char)('a' + i), '\0' };

		assert_int_equal(
		    first_answer(cluster_url(&cluster, "redis+cluster", 1), key)
			.verdict,
		    GALE_ALLOW);
	}
	assert_int_equal(init(cluster_url(&cluster, "redis", 0), NULL), INIT_FAILED);
	assert_says(command_err,
	            "it is a node of a cluster, which redis+cluster:// asks");
	redis_server_do(&cluster.servers[2], "CONFIG SET maxmemory 100mb");
	redis_server_do(&cluster.servers[2], "CONFIG SET maxmemory-policy allkeys-lru");
	assert_int_equal(init(cluster_url(&cluster, "redis+cluster", 0), NULL),
	                 INIT_FAILED);
	assert_says(command_err, "maxmemory-policy is allkeys-lru");
	redis_server_do(&cluster.servers[2], "CONFIG SET maxmemory 0");
	owner = redis_cluster_owner(&cluster, 7);
	must(owner >= 0);
	redis_server_do(&cluster.servers[owner], "CLUSTER DELSLOTS 7");
	assert_int_equal(init(cluster_url(&cluster, "redis+cluster", owner), NULL),
	                 INIT_FAILED);
	assert_says(command_err, "1 of 16384 slots have no server");
	redis_cluster_stop(&cluster);
}

/* ---- Words ----------------------------------------------------------------------- */

static void words_that_are_wrong_are_refused(void **state)
{
	char init_word[] = "init", other[] = "other", help[] = "--help";
	char *const lines[] = { init_word, other, help };

	(void)state;
	assert_int_equal(init("memory:", NULL), INIT_DONE);
	assert_says(command_out, "nothing is needed");
	assert_int_equal(init("memory:", "role"), INIT_BAD_USE);
	assert_int_equal(init("mysql://host", NULL), INIT_BAD_USE);
	assert_says(command_err, "url: it begins with none of memory:");
	assert_int_equal(init("redis://host:port", NULL), INIT_BAD_USE);
	assert_says(command_err, "url: the port of a host is not a number");
	assert_int_equal(init("postgres://host:port", NULL), INIT_BAD_USE);
	assert_says(command_err, "url: the port of a host is not a number");
	for (int i = 0; i < 3; i++) {
		char *argv[] = { lines[i] };
		FILE *nowhere = fopen("/dev/null", "w");

		must(nowhere);
		assert_int_equal(init_run(1, argv, nowhere, nowhere),
		                 i == 2 ? INIT_DONE : INIT_BAD_USE);
		fclose(nowhere);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_schema_is_installed_once),
		cmocka_unit_test(who_uses_a_schema_that_init_has_made_need_not_wait),
		cmocka_unit_test(an_older_schema_is_replaced_a_newer_one_is_not),
		cmocka_unit_test(another_role_may_be_let_in),
		cmocka_unit_test(a_nodes_role_needs_no_more_than_is_written_down),
		cmocka_unit_test(what_cannot_be_used_is_said),
		cmocka_unit_test(a_redis_that_forgets_nothing_is_good),
		cmocka_unit_test(a_redis_that_evicts_is_not),
		cmocka_unit_test(a_redis_that_is_a_replica_is_not),
		cmocka_unit_test(a_redis_that_does_not_let_us_in_is_not),
		cmocka_unit_test(a_database_or_replicas_that_are_not_there_are_missed),
		cmocka_unit_test(an_empty_redis_is_marked_as_new),
		cmocka_unit_test(a_mark_does_not_outlast_its_process),
		cmocka_unit_test(a_redis_with_keys_of_ours_is_not_marked_as_new),
		cmocka_unit_test(who_may_not_look_does_not_mark),
		cmocka_unit_test(rights_that_are_written_down_suffice),
		cmocka_unit_test(each_primary_of_a_cluster_is_looked_at),
		cmocka_unit_test(words_that_are_wrong_are_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
