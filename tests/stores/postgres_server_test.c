/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_server_test.c -- what must hold of the schema beside the values: what is told of
 * each job, and who may install what.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "tests/support/must.h"
#include "tests/support/postgres_scene.h"

#define INSTALLERS 8

/* ---- Values ---------------------------------------------------------------------- */

static void a_batch_answers_each_job(void **state)
{
	struct remote_job jobs[REMOTE_BATCH_MOST];
	char keys[REMOTE_BATCH_MOST][16];

	(void)state;
	for (size_t i = 0; i < REMOTE_BATCH_MOST; i++) {
		snprintf(keys[i], sizeof(keys[i]), "batch%zu", 63 - i);
		jobs[i] = step_of(keys[i], i + 1);
	}
	for (int round = 0; round < 2; round++)
		assert_int_equal(
		    postgres_line_call(&line, jobs, REMOTE_BATCH_MOST, told),
		    POSTGRES_TOLD);
	for (size_t i = 0; i < REMOTE_BATCH_MOST; i++)
		assert_int_equal(used_of(keys[i]),
		                 2 * (i + 1) <= LIMIT ? 2 * (i + 1) : i + 1);
}

static void jobs_on_a_key_follow_each_other(void **state)
{
	struct remote_job jobs[] = {
		step_of("twice", 70), step_of("other", 1),  step_of("twice", 7),
		read_of("twice"),     step_of("twice", 1),  read_of("other"),
		step_of("third", 1),  step_of("other", 50),
	};
	struct store_op op = { .verb = STORE_STEP };
	size_t count = sizeof(jobs) / sizeof(jobs[0]);

	(void)state;
	assert_int_equal(postgres_line_call(&line, jobs, count, told), POSTGRES_TOLD);
	assert_int_equal(told[0].before.count, 0);
	assert_true(told[2].before.count > 0);
	assert_int_equal(remote_explain_step(&jobs[2], &told[2], &op), STORE_DONE);
	assert_int_equal(op.answer.verdict, GALE_ALLOW);
	assert_int_equal(remote_explain_step(&jobs[4], &told[4], &op), STORE_DONE);
	assert_int_equal(op.answer.verdict, GALE_DENY);
	assert_int_equal(used_of("twice"), 77);
	assert_int_equal(used_of("other"), 51);
}

static void what_is_dropped_is_as_new(void **state)
{
	struct remote_job step = step_of("dropped", 5), drop = step;
	struct remote_job both[] = { drop, step }, none[] = { drop, drop };

	(void)state;
	both[0].verb = none[0].verb = drop.verb = REMOTE_DROP;
	none[1].verb = REMOTE_SWAP; /* of nothing for nothing */
	assert_int_equal(code_of(&drop), REMOTE_DONE);
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&drop), REMOTE_DONE);
	assert_int_equal(used_of("dropped"), 0);
	assert_int_equal(postgres_line_call(&line, both, 2, told), POSTGRES_TOLD);
	assert_int_equal(postgres_line_call(&line, both, 2, told), POSTGRES_TOLD);
	assert_int_equal(used_of("dropped"), 5);
	assert_int_equal(postgres_line_call(&line, none, 2, told), POSTGRES_TOLD);
	assert_int_equal(told[1].code, REMOTE_DONE);
	assert_int_equal(used_of("dropped"), 0);
}

static void other_parameters_are_refused(void **state)
{
	struct rule other = compiled(gale_token_budget(10, GALE_HOURS(1)));
	struct remote_job job = step_of("changed", 3);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	job.rule = &other;
	assert_int_equal(code_of(&job), REMOTE_CHANGED);
	assert_int_equal(used_of("changed"), 3);
	postgres_line_do(&line, "UPDATE gale.keys SET expires_us = gale.now_us() - 1"
	                        " WHERE key = 'changed'");
	assert_int_equal(code_of(&job), REMOTE_DONE); /* it has expired */
	assert_int_equal(told[0].before.count, 0);
}

static void leases_under_other_parameters_are_refused(void **state)
{
	struct rule other =
	    compiled(gale_quota_anchored(LIMIT + 1, GALE_SPAN_MAX_US - 1, 0));
	struct remote_job job = lend_of("lent", 1, 1, 2);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_LENT);
	job.ask.number = 2;
	job.rule = &other;
	assert_int_equal(code_of(&job), REMOTE_CHANGED);
	assert_int_equal(used_of("lent"), 2);
}

static void garbage_is_called_that_and_left_alone(void **state)
{
	static const char *const faults[] = {
		"head = head + 1",
		"head = head + 65536",
		"head = head + 4294967296",
		"words = '{}'",
		"words = '{0}'",
		"words = words || 7::bigint",
		"words = '{0,NULL}'",
		"words = '{{0,1}}'",
		"words = '[0:1]={0,1}'",
		"words = '{0,-1}'",
		"words = '{0,9007199254740992}'",
		"words = words || array_fill(1::bigint, '{54}')",
	};
	struct remote_job jobs[] = { step_of("garbage", 3), step_of("good", 1) };

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct remote_job drop = jobs[0], look = read_of("garbage");
		char sql[256], was[256];

		assert_int_equal(postgres_line_call(&line, jobs, 2, told),
		                 POSTGRES_TOLD);
		snprintf(sql, sizeof(sql),
		         "UPDATE gale.keys SET %s WHERE key = 'garbage'", faults[i]);
		postgres_line_do(&line, sql);
		strcpy(was, postgres_line_text(&line,
		                               "SELECT row(head, words) FROM gale.keys"
		                               " WHERE key = 'garbage'"));
		assert_int_equal(postgres_line_call(&line, jobs, 2, told),
		                 POSTGRES_TOLD);
		assert_int_equal(told[0].code, REMOTE_GARBLED);
		assert_int_equal(told[1].code, REMOTE_DONE);
		assert_string_equal(
		    was, postgres_line_text(&line, "SELECT row(head, words) FROM"
		                                   " gale.keys WHERE"
		                                   " key = 'garbage'"));
		assert_int_equal(postgres_line_call(&line, &look, 1, told),
		                 POSTGRES_TOLD);
		drop.verb = REMOTE_DROP;
		assert_int_equal(code_of(&drop), REMOTE_DONE);
	}
}

/* A quota's start that none of its windows has may be another anchor's: it is read then, and
 * judged by who reads it. */
static void a_start_of_no_window_is_left_to_who_reads_it(void **state)
{
	struct remote_job step = step_of("start", 3), look = read_of("start");

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	postgres_line_do(&line, "UPDATE gale.keys SET words = '{1125899906842625,1}'"
	                        " WHERE key = 'start'");
	assert_int_equal(code_of(&step), REMOTE_CHANGED);
	assert_int_equal(code_of(&look), REMOTE_DONE);
	assert_int_equal(told[0].before.count, 32);
}

/* Words that no steps lead to. */
static void garbage_of_other_kinds_is_called_that(void **state)
{
	static const struct {
		struct gale_rule rule;
		const char *words;
	} faults[] = {
		{ { .kind = GALE_RULE_GCRA, .limit = 10, .burst = 5 }, "{5,10,0}" },
		{ { .kind = GALE_RULE_TOKEN_BUCKET, .limit = 10, .burst = 5 },
		  "{4503603627370496,0,0}" },
		{ { .kind = GALE_RULE_FIXED_WINDOW, .limit = 10 }, "{1,1}" },
		{ { .kind = GALE_RULE_FIXED_WINDOW, .limit = 10 }, "{0,1,2}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct gale_rule config = faults[i].rule;
		struct remote_job job = step_of("kinds", 1), drop = job;
		struct rule rule;
		char sql[256];

		config.period_us = GALE_HOURS(1);
		rule = compiled(config);
		job.rule = &rule;
		assert_int_equal(code_of(&job), REMOTE_DONE);
		snprintf(sql, sizeof(sql),
		         "UPDATE gale.keys SET words = '%s' WHERE key = 'kinds'",
		         faults[i].words);
		postgres_line_do(&line, sql);
		assert_int_equal(code_of(&job), REMOTE_GARBLED);
		drop.verb = REMOTE_DROP;
		assert_int_equal(code_of(&drop), REMOTE_DONE);
	}
}

static void a_long_log_comes_back_as_it_was(void **state)
{
	struct rule log = compiled(gale_sliding_log(GALE_LOG_LIMIT_MAX, GALE_HOURS(1)));
	size_t words = 1 + 2 * GALE_LOG_LIMIT_MAX, count = state_bytes(words);
	uint8_t *bytes = calloc(1, count);
	struct remote_job job = { .verb = REMOTE_SWAP,
		                  .key = bytes_of("log"),
		                  .rule = &log,
		                  .becomes = { bytes, count },
		                  .expires_us = INSTANT_MAX_US };

	(void)state;
	must(bytes);
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(i % 8 < 6 ? i * 7 : 0);
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(code_of(&job), REMOTE_MOVED);
	job.verb = REMOTE_READ;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(told[0].before.count, count);
	assert_memory_equal(told[0].before.bytes, bytes, count);
	free(bytes);
}

static void a_denial_says_when(void **state)
{
	struct remote_job job = step_of("denied", LIMIT);
	struct gale_answer answer;

	(void)state;
	assert_int_equal(answer_of(&job).verdict, GALE_ALLOW);
	answer = answer_of(&job);
	assert_int_equal(answer.verdict, GALE_DENY);
	assert_true(answer.retry_after_us > 0 &&
	            answer.retry_after_us <= GALE_SPAN_MAX_US);
}

/* ---- Installing ------------------------------------------------------------------ */

static void set_version(const char *version)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "CREATE OR REPLACE FUNCTION gale.version() RETURNS int LANGUAGE sql"
	         " IMMUTABLE AS 'SELECT %s'",
	         version);
	postgres_line_do(&line, sql);
}

#define SALT "SELECT encode(gale.salt(), 'hex')"

static void versions_are_told_apart(void **state)
{
	struct remote_job job = step_of("version", 3);
	char salt[2 * 16 + 1];

	(void)state;
	snprintf(salt, sizeof(salt), "%s", postgres_line_text(&line, SALT));
	assert_int_equal(strlen(salt), sizeof(salt) - 1);
	assert_int_equal(postgres_line_number(&line, "SELECT gale.version()"),
	                 postgres_schema_version);
	assert_int_equal(code_of(&job), REMOTE_DONE);

	set_version("0");
	postgres_line_do(&line,
	                 "CREATE FUNCTION gale.run(was_here_before int) RETURNS int"
	                 " LANGUAGE sql AS 'SELECT 1'; DROP INDEX gale.keys_by_hash");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_OLDER);
	postgres_line_install(&line);
	assert_int_equal(postgres_line_number(
			     &line, "SELECT count(*) FROM pg_proc WHERE proname = 'run'"
				    " AND pronamespace = 'gale'::regnamespace"),
	                 1);
	assert_int_equal(
	    postgres_line_number(
		&line, "SELECT count(*) FROM pg_class WHERE relname = 'keys_by_hash'"),
	    1);
	assert_string_equal(postgres_line_text(&line, SALT), salt);
	assert_int_equal(code_of(&job), REMOTE_DONE);

	set_version("1000");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_NEWER);
	assert_int_equal(postgres_line_try(&line, postgres_schema), POSTGRES_NEWER);
	assert_int_equal(postgres_line_number(&line, "SELECT gale.version()"), 1000);
	set_version("0");
	postgres_line_install(&line);
	assert_int_equal(used_of("version"), 6); /* all the while */
}

/* As it was in the first version, in what matters: its rows are others, and so nothing of
 * them is kept, and everybody is told that it has been forgotten. */
static void a_table_of_another_shape_is_a_loss(void **state)
{
	struct remote_job job = step_of("shape", 3);
	char before[sizeof(line.generation)];

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	strcpy(before, line.generation);
	postgres_line_do(
	    &line,
	    "DROP TABLE gale.keys, gale.birth CASCADE;"
	    "CREATE TABLE gale.keys (expires_us bigint NOT NULL, head bigint NOT NULL,"
	    " fingerprint bigint NOT NULL, start_us bigint DEFAULT 0, used bigint,"
	    " node bigint NOT NULL DEFAULT 0, number bigint, granted bigint, \"out\""
	    " bigint, stamp bigint DEFAULT 0, key bytea PRIMARY KEY, words bigint[]);"
	    "CREATE UNLOGGED TABLE gale.birth (one boolean PRIMARY KEY, mark bigint);"
	    "INSERT INTO gale.birth VALUES (true, 1);"
	    "INSERT INTO gale.keys (expires_us, head, fingerprint, key)"
	    " VALUES (0, 1, 1, 'old')");
	set_version("1");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_OLDER);
	postgres_line_install(&line);
	assert_int_equal(postgres_line_number(&line, "SELECT count(*) FROM gale.keys"),
	                 0);
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_string_not_equal(line.generation, before);
	assert_int_equal(used_of("shape"), 3);
}

/* So early a version that it has neither what a later one has, nor what is new. */
static void a_table_that_lacks_columns_is_a_loss(void **state)
{
	struct remote_job job = step_of("lacks", 3);

	(void)state;
	postgres_line_do(&line,
	                 "DROP TABLE gale.keys, gale.birth CASCADE;"
	                 "CREATE TABLE gale.keys (expires_us bigint, head bigint,"
	                 " fingerprint bigint, key bytea PRIMARY KEY, words bigint[]);"
	                 "CREATE UNLOGGED TABLE gale.birth (one boolean PRIMARY KEY)");
	set_version("1");
	postgres_line_install(&line);
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(used_of("lacks"), 3);
}

/* Up to version 11 members had the time until which they were members.  Who has a share of such a
 * group keeps it, as after any loss, since the generation is another one. */
static void a_group_of_another_shape_is_a_loss(void **state)
{
	struct remote_job job = step_of("group", 3);
	char before[sizeof(line.generation)];

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	strcpy(before, line.generation);
	postgres_line_do(
	    &line,
	    "ALTER TABLE gale.groups DROP life, DROP beats, DROP over, DROP quiet,"
	    " ADD quiet_us bigint NOT NULL DEFAULT 0;"
	    "ALTER TABLE gale.members DROP beat, ADD until_us bigint NOT NULL;"
	    "CREATE INDEX members_by_lease ON gale.members (group_name, until_us, "
	    "node)");
	set_version("11");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_OLDER);
	postgres_line_install(&line);
	assert_int_equal(postgres_line_number(
			     &line, "SELECT count(*) FROM pg_attribute"
				    " WHERE attrelid IN ('gale.groups'::regclass,"
				    " 'gale.members'::regclass) AND NOT attisdropped"
				    " AND attname IN ('life', 'beats', 'over',"
				    " 'quiet', 'beat')"),
	                 5);
	assert_int_equal(
	    postgres_line_number(&line, "SELECT count(*) FROM pg_class WHERE relname IN"
	                                " ('members_by_lease', 'members_by_beat')"),
	    1);
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_string_not_equal(line.generation, before);
	assert_int_equal(used_of("group"), 6);
}

/* Of an earlier index only the name is the same. */
static void an_index_without_a_salt_is_made_anew(void **state)
{
	(void)state;
	postgres_line_do(&line,
	                 "DROP INDEX gale.keys_by_hash;"
	                 " CREATE INDEX keys_by_hash ON gale.keys USING hash (key)");
	set_version("4");
	postgres_line_install(&line);
	assert_non_null(
	    strstr(postgres_line_text(&line, "SELECT pg_get_indexdef("
	                                     "'gale.keys_by_hash'::regclass)"),
	           "salt"));
}

/* Where others may create, they could make what looks like the system's own. */
static void nobody_elses_names_are_used_to_install(void **state)
{
	(void)state;
	postgres_line_do(
	    &line, "CREATE SCHEMA trap;"
		   "CREATE FUNCTION trap.springs(oid, regnamespace) RETURNS boolean"
		   " LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught'; END $$;"
		   "CREATE FUNCTION trap.springs(oid, regclass) RETURNS boolean"
		   " LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught'; END $$;"
		   "CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = regnamespace,"
		   " FUNCTION = trap.springs);"
		   "CREATE OPERATOR trap.= (LEFTARG = oid, RIGHTARG = regclass,"
		   " FUNCTION = trap.springs);"
		   "SET search_path = trap");
	postgres_line_install(&line);
	postgres_line_do(&line, POSTGRES_SET_DURABLE);
	assert_string_equal(postgres_line_text(&line, "SHOW search_path"), "trap");
	postgres_line_do(&line, "RESET search_path; DROP SCHEMA trap CASCADE");
}

static void what_is_somebody_elses_is_left_alone(void **state)
{
	struct remote_job job = step_of("owner", 3);

	(void)state;
	postgres_line_do(&line,
	                 "CREATE ROLE another; ALTER SCHEMA gale OWNER TO another");
	assert_int_equal(postgres_line_try(&line, postgres_schema), POSTGRES_REFUSED);
	postgres_line_do(&line,
	                 "ALTER SCHEMA gale OWNER TO CURRENT_USER; DROP ROLE another");
	postgres_line_install(&line);
	assert_int_equal(code_of(&job), REMOTE_DONE);
}

static void all_who_install_at_once_succeed(void **state)
{
	struct remote_job job = step_of("install", 3);
	struct line crowd[INSTALLERS];

	(void)state;
	postgres_line_do(&line, "DROP SCHEMA gale CASCADE");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_MISSING);
	for (size_t i = 0; i < INSTALLERS; i++)
		postgres_line_open(&crowd[i], postgres_server_address(server));
	for (size_t i = 0; i < INSTALLERS; i++)
		must(PQsendQuery(crowd[i].conn, postgres_schema));
	for (size_t i = 0; i < INSTALLERS; i++) {
		PGresult *result;

		while ((result = PQgetResult(crowd[i].conn)) != NULL) {
			assert_true(PQresultStatus(result) == PGRES_COMMAND_OK ||
			            PQresultStatus(result) == PGRES_TUPLES_OK);
			PQclear(result);
		}
		assert_int_equal(postgres_line_call(&crowd[i], &job, 1, told),
		                 POSTGRES_TOLD);
		postgres_line_close(&crowd[i]);
	}
	assert_int_equal(used_of("install"), 3 * INSTALLERS);
}

int main(int count, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_answers_each_job),
		cmocka_unit_test(jobs_on_a_key_follow_each_other),
		cmocka_unit_test(what_is_dropped_is_as_new),
		cmocka_unit_test(a_denial_says_when),
		cmocka_unit_test(other_parameters_are_refused),
		cmocka_unit_test(leases_under_other_parameters_are_refused),
		cmocka_unit_test(garbage_is_called_that_and_left_alone),
		cmocka_unit_test(a_start_of_no_window_is_left_to_who_reads_it),
		cmocka_unit_test(garbage_of_other_kinds_is_called_that),
		cmocka_unit_test(a_long_log_comes_back_as_it_was),
		cmocka_unit_test(versions_are_told_apart),
		cmocka_unit_test(a_table_of_another_shape_is_a_loss),
		cmocka_unit_test(a_group_of_another_shape_is_a_loss),
		cmocka_unit_test(a_table_that_lacks_columns_is_a_loss),
		cmocka_unit_test(an_index_without_a_salt_is_made_anew),
		cmocka_unit_test(nobody_elses_names_are_used_to_install),
		cmocka_unit_test(what_is_somebody_elses_is_left_alone),
		cmocka_unit_test(all_who_install_at_once_succeed),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, scene_start, scene_stop);
}
