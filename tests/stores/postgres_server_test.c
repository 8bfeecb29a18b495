/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_server_test.c -- what must hold of the schema beside the values: who waits for
 * whom, what a server forgets and says so, who may install what.
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
#include "tests/support/postgres_line.h"
#include "tests/support/postgres_server.h"

#define CROWD 200
#define INSTALLERS 8
#define LIMIT 77

static struct postgres_server *server;
static struct line line;
static struct rule hourly; /* LIMIT in an hour */
static struct remote_told told[REMOTE_BATCH_MOST];

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

static struct remote_bytes bytes_of(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static struct remote_job step_of(const char *key, uint64_t cost)
{
	return (struct remote_job){
		.verb = REMOTE_STEP, .key = bytes_of(key), .rule = &hourly, .cost = cost
	};
}

static struct remote_job lend_of(const char *key, uint64_t node, uint64_t number,
                                 uint64_t want)
{
	return (struct remote_job){
		.verb = REMOTE_LEND,
		.key = bytes_of(key),
		.rule = &hourly,
		.ask = { .node = node, .number = number, .want = want, .least = 1 },
	};
}

static struct remote_job first_of(const char *key, uint64_t node, uint64_t number,
                                  uint64_t want)
{
	struct remote_job job = lend_of(key, node, number, want);

	job.is_first = true;
	return job;
}

static struct remote_job read_of(const char *key)
{
	return (struct remote_job){ .verb = REMOTE_READ,
		                    .key = bytes_of(key),
		                    .rule = &hourly };
}

static enum remote_code code_of(const struct remote_job *job)
{
	assert_int_equal(postgres_line_call(&line, job, 1, told), POSTGRES_TOLD);
	return told[0].code;
}

static struct gale_answer answer_of(const struct remote_job *job)
{
	struct store_op op = { .verb = STORE_STEP };

	assert_int_equal(postgres_line_call(&line, job, 1, told), POSTGRES_TOLD);
	assert_int_equal(remote_explain_step(job, &told[0], &op), STORE_DONE);
	return op.answer;
}

static uint64_t used_under(const struct rule *rule, const char *key)
{
	struct remote_job job = read_of(key);
	uint64_t words[2];
	struct value value = { .words = words, .room = 2 };

	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(
	    value_decode(rule, told[0].before.bytes, told[0].before.count, &value),
	    STATE_OK);
	return words[1];
}

/* How much of the hour is used. */
static uint64_t used_of(const char *key)
{
	return used_under(&hourly, key);
}

static int start(void **state)
{
	(void)state;
	server = postgres_server_start();
	hourly = compiled(gale_quota_anchored(LIMIT, GALE_SPAN_MAX_US, 0));
	postgres_line_open(&line, postgres_server_address(server));
	postgres_line_install(&line);
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
	return 0;
}

static int stop(void **state)
{
	(void)state;
	postgres_line_close(&line);
	postgres_server_stop(server);
	return 0;
}

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
	struct rule other = compiled(gale_fixed_window(10, GALE_HOURS(1)));
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
	    compiled(gale_quota_anchored(LIMIT + 1, GALE_SPAN_MAX_US, 0));
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
		"words = '{0,78}'",
		"words = '{1125899906842625,1}'",
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

/* ---- Many at once ---------------------------------------------------------------- */

/* Who timed out has changed nothing, and asks again. */
static void hear_patiently(struct line *own, const struct remote_job *jobs,
                           size_t count, struct remote_told *own_told)
{
	enum postgres_result means = postgres_line_hear(own, jobs, count, own_told);

	while (means == POSTGRES_TIMED_OUT || means == POSTGRES_OTHER_GENERATION)
		means = postgres_line_call(own, jobs, count, own_told);
	assert_int_equal(means, POSTGRES_TOLD);
}

static void a_crowd_is_admitted_up_to_the_limit(void **state)
{
	static struct line crowd[CROWD];
	struct remote_job job = step_of("crowd", 1);
	uint64_t admitted = 0;

	(void)state;
	for (size_t i = 0; i < CROWD; i++) {
		postgres_line_open(&crowd[i], postgres_server_address(server));
		crowd[i].now_us = line.now_us;
		strcpy(crowd[i].generation, line.generation);
	}
	for (size_t i = 0; i < CROWD; i++)
		postgres_line_say(&crowd[i], &job, 1);
	for (size_t i = 0; i < CROWD; i++) {
		struct store_op op = { .verb = STORE_STEP };

		hear_patiently(&crowd[i], &job, 1, told);
		assert_int_equal(remote_explain_step(&job, told, &op), STORE_DONE);
		admitted += op.answer.verdict == GALE_ALLOW;
		postgres_line_close(&crowd[i]);
	}
	assert_int_equal(admitted, LIMIT);
	assert_int_equal(used_of("crowd"), LIMIT);
}

/* New keys each other round, so that nobody finds a row to wait at.  A server finds out a circle
 * before anybody's patience is at an end, and then says another thing. */
static void nobody_waits_in_a_circle(void **state)
{
	static char keys[32][24];
	struct remote_job up[32], down[32];
	struct line other;

	(void)state;
	postgres_line_open(&other, postgres_server_address(server));
	other.now_us = line.now_us;
	strcpy(other.generation, line.generation);
	postgres_line_do(&line, "SET deadlock_timeout = '5ms'");
	postgres_line_do(&other, "SET deadlock_timeout = '5ms'");
	for (int round = 0; round < 200; round++) {
		for (size_t i = 0; i < 32; i++) {
			snprintf(keys[i], sizeof(keys[i]), "circle%d.%zu", round / 2,
			         i);
			up[i] = down[31 - i] = lend_of(keys[i], 1, 1, 1);
			down[31 - i].ask.node = 2;
			up[i].is_first = round % 4 < 2;
			down[31 - i].is_first = round % 8 < 4;
		}
		postgres_line_say(&line, up, 32);
		postgres_line_say(&other, down, 32);
		hear_patiently(&line, up, 32, told);
		hear_patiently(&other, down, 32, told);
	}
	postgres_line_do(&line, "RESET deadlock_timeout");
	assert_int_equal(used_of("circle0.0"), 2);
	postgres_line_close(&other);
}

#define MIXERS 12
#define MIXED_KEYS 16
#define MIXED_LIMIT 1000 /* reached halfway */

static char mixed_keys[MIXED_KEYS][16];

/* A lend of each key, some of them twice or with a step, so that the short way and the
 * long one meet at the same rows, in different orders. */
static size_t make_mixed(struct remote_job *jobs, const struct rule *rule, size_t who,
                         uint64_t round)
{
	size_t count = 0;

	for (size_t i = 0; i < MIXED_KEYS; i++) {
		size_t key = (i * 7 + who) % MIXED_KEYS;

		jobs[count] = lend_of(mixed_keys[key], who + 1, round, 1 + key % 3);
		jobs[count].is_first = round <= 2 || round % 8 == who % 8;
		jobs[count++].rule = rule;
	}
	if (who % 3 == 0) {
		jobs[count] = step_of(mixed_keys[round % MIXED_KEYS], 1);
		jobs[count++].rule = rule;
	}
	return count;
}

static uint64_t units_told(const struct remote_job *job, const struct remote_told *own)
{
	struct store_op op = { .verb = STORE_STEP };
	struct lend_answer answer;

	if (job->verb == REMOTE_LEND) {
		remote_explain_lend(job, own, &answer);
		assert_int_equal(answer.result, STORE_DONE);
		return answer.grant.units;
	}
	assert_int_equal(remote_explain_step(job, own, &op), STORE_DONE);
	return op.answer.verdict == GALE_ALLOW ? job->cost : 0;
}

/* What was told to have been taken is what is gone, to the unit; and nobody ever waits in
 * a circle, which a server finds out before anybody's patience is at an end. */
static void short_and_long_ways_meet(void **state)
{
	struct rule rule =
	    compiled(gale_quota_anchored(MIXED_LIMIT, GALE_SPAN_MAX_US, 0));
	static struct remote_job jobs[MIXERS][MIXED_KEYS + 1];
	static struct line mixers[MIXERS];
	uint64_t taken = 0, used = 0;
	size_t counts[MIXERS];

	(void)state;
	postgres_line_do(&line, "ALTER DATABASE postgres SET deadlock_timeout = '5ms'");
	for (size_t i = 0; i < MIXED_KEYS; i++)
		snprintf(mixed_keys[i], sizeof(mixed_keys[i]), "mixed%zu", i);
	for (size_t i = 0; i < MIXERS; i++) {
		postgres_line_open(&mixers[i], postgres_server_address(server));
		mixers[i].now_us = line.now_us;
		strcpy(mixers[i].generation, line.generation);
	}
	for (uint64_t round = 1; round <= 60; round++) {
		for (size_t i = 0; i < MIXERS; i++) {
			counts[i] = make_mixed(jobs[i], &rule, i, round);
			postgres_line_say(&mixers[i], jobs[i], counts[i]);
		}
		for (size_t i = 0; i < MIXERS; i++) {
			enum postgres_result means =
			    postgres_line_hear(&mixers[i], jobs[i], counts[i], told);

			assert_true(means == POSTGRES_TOLD ||
			            means == POSTGRES_TIMED_OUT);
			for (size_t j = 0; means == POSTGRES_TOLD && j < counts[i]; j++)
				taken += units_told(&jobs[i][j], &told[j]);
		}
	}
	for (size_t i = 0; i < MIXED_KEYS; i++)
		used += used_under(&rule, mixed_keys[i]);
	for (size_t i = 0; i < MIXERS; i++)
		postgres_line_close(&mixers[i]);
	assert_int_equal(taken, used);
	assert_true(taken > 0);
	postgres_line_do(&line, "ALTER DATABASE postgres RESET deadlock_timeout");
}

static void nap(void)
{
	const struct timespec moment = { .tv_nsec = 30000000 };

	nanosleep(&moment, NULL);
}

/* ---- Keys that are new ----------------------------------------------------------- */

static void is_granted(const struct remote_job *jobs, size_t count)
{
	struct lend_answer answer;

	assert_int_equal(postgres_line_call(&line, jobs, count, told), POSTGRES_TOLD);
	for (size_t i = 0; i < count; i++) {
		remote_explain_lend(&jobs[i], &told[i], &answer);
		assert_int_equal(answer.result, STORE_DONE);
		assert_int_equal(answer.grant.units, jobs[i].ask.want);
	}
}

static void what_is_put_in_is_as_if_it_had_been_looked_for(void **state)
{
	struct remote_job lends[] = { first_of("first b", 1, 1, 3),
		                      first_of("first a", 1, 2, LIMIT) };
	struct remote_job again = lend_of("first b", 1, 1, 3);
	struct remote_job more = lend_of("first b", 2, 3, 4);

	(void)state;
	is_granted(lends, 2);
	assert_true(line.order.were_first);
	assert_int_equal(used_of("first a"), LIMIT);
	is_granted(&again, 1); /* the same request is not granted twice */
	assert_int_equal(used_of("first b"), 3);
	is_granted(&more, 1);
	assert_int_equal(used_of("first b"), 7);
}

/* One that is there already, of this window or of one that is over, sends all another way; and
 * nothing is left of what was put in. */
static void what_is_not_new_is_looked_for(void **state)
{
	struct remote_job known = lend_of("known", 1, 1, 3);
	struct remote_job lends[] = { first_of("known", 1, 2, 4),
		                      first_of("a new one", 1, 3, 5) };

	(void)state;
	is_granted(&known, 1);
	is_granted(lends, 2);
	assert_true(line.order.is_first && !line.order.were_first);
	assert_int_equal(used_of("known"), 7);
	assert_int_equal(used_of("a new one"), 5);
	postgres_line_do(&line, "UPDATE gale.keys SET expires_us = 1, start_us = 0"
	                        " WHERE key = 'known'");
	lends[0].ask.number = 4;
	lends[1].ask.number = 5;
	is_granted(lends, 2);
	assert_false(line.order.were_first);
	assert_int_equal(used_of("known"), 4);
	assert_int_equal(used_of("a new one"), 10);
}

/* Q1: who has put in a key that is new, and then waits for one that is not, lets go of both: it may
 * be held by one that waits for the first.  That one hardly waits here. */
static void who_guesses_wrong_lets_go(void **state)
{
	struct remote_job old = lend_of("let go, z", 1, 1, 1);
	struct remote_job mine[] = { lend_of("let go, z", 1, 2, 2),
		                     lend_of("let go, a", 1, 3, 3) };
	struct remote_job theirs[] = { first_of("let go, a", 2, 4, 4),
		                       first_of("let go, z", 2, 5, 5) };
	struct line other;

	(void)state;
	postgres_line_open(&other, postgres_server_address(server));
	other.now_us = line.now_us;
	strcpy(other.generation, line.generation);
	is_granted(&old, 1);
	postgres_line_do(&line, "ALTER FUNCTION gale.lend SET lock_timeout = '1ms'");
	postgres_line_do(&line, "BEGIN");
	is_granted(&mine[0], 1);
	postgres_line_say(&other, theirs, 2);
	nap();
	is_granted(&mine[1], 1);
	postgres_line_do(&line, "COMMIT");
	hear_patiently(&other, theirs, 2, told);
	postgres_line_install(&line);
	assert_true(other.order.is_first && !other.order.were_first);
	assert_int_equal(used_of("let go, a"), 7);
	assert_int_equal(used_of("let go, z"), 8);
	postgres_line_close(&other);
}

/* Whoever puts in what another one is putting in waits for that one, and gets the rest. */
static void who_puts_in_last_gets_the_rest(void **state)
{
	struct remote_job mine = first_of("at once", 1, 1, LIMIT);
	struct remote_job theirs = first_of("at once", 2, 2, LIMIT);
	struct lend_answer answer;
	struct line other;

	(void)state;
	postgres_line_open(&other, postgres_server_address(server));
	other.now_us = line.now_us;
	strcpy(other.generation, line.generation);
	postgres_line_do(&line, "BEGIN");
	is_granted(&mine, 1);
	postgres_line_say(&other, &theirs, 1);
	nap();
	postgres_line_do(&line, "COMMIT");
	assert_int_equal(postgres_line_hear(&other, &theirs, 1, told), POSTGRES_TOLD);
	remote_explain_lend(&theirs, &told[0], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 0);
	assert_int_equal(used_of("at once"), LIMIT);
	postgres_line_close(&other);
}

static void who_waits_too_long_is_told(void **state)
{
	struct remote_job job = step_of("held", 1);
	struct line other;

	(void)state;
	postgres_line_open(&other, postgres_server_address(server));
	other.now_us = line.now_us;
	strcpy(other.generation, line.generation);
	postgres_line_do(&other, "BEGIN");
	assert_int_equal(postgres_line_call(&other, &job, 1, told), POSTGRES_TOLD);
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_TIMED_OUT);
	job = read_of("held");
	assert_int_equal(postgres_line_call(&line, &job, 1, told),
	                 POSTGRES_TOLD); /* needs no lock */
	postgres_line_do(&other, "ROLLBACK");
	postgres_line_close(&other);
	assert_int_equal(used_of("held"), 0);
}

static void nothing_stays_in_the_session(void **state)
{
	struct remote_job job = step_of("session", 1);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(postgres_line_number(&line, "SELECT count(*) FROM pg_locks"
	                                             " WHERE locktype = 'advisory'"),
	                 0);
	assert_int_equal(
	    postgres_line_number(&line, "SELECT count(*) FROM pg_prepared_statements"),
	    0);
	assert_string_equal(postgres_line_text(&line, "SHOW lock_timeout"), "0");
	assert_string_equal(postgres_line_text(&line, "SHOW enable_seqscan"), "on");
}

static void a_hot_key_stays_on_few_pages(void **state)
{
	struct rule fast = compiled(gale_gcra(1000000, GALE_SECONDS(1), 1000));
	struct remote_job job = step_of("hot", 1);

	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	job.rule = &fast;
	for (int i = 0; i < 3000; i++)
		assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_true(postgres_line_number(
			&line, "SELECT pg_relation_size('gale.keys')") <= 8 * 8192);
}

/* ---- What a server forgets ------------------------------------------------------- */

static void open_again(void)
{
	postgres_line_close(&line);
	postgres_line_open(&line, postgres_server_address(server));
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
}

/* The generation, as anybody is told who asks for another one. */
static const char *generation(void)
{
	struct remote_job job = read_of("any");

	line.generation[0] = 0;
	postgres_line_say(&line, &job, 1);
	assert_int_equal(postgres_line_hear(&line, &job, 1, told),
	                 POSTGRES_OTHER_GENERATION);
	return line.generation;
}

static void is_told_of_another(const struct remote_job *job)
{
	postgres_line_say(&line, job, 1);
	assert_int_equal(postgres_line_hear(&line, job, 1, told),
	                 POSTGRES_OTHER_GENERATION);
	assert_int_equal(strlen(line.generation), REMOTE_GENERATION_BYTES);
}

/* Lends of a row that is there, and of one that is not, go ways of their own. */
static void another_generation_changes_nothing(void **state)
{
	struct remote_job step = step_of("generation", 3);
	struct remote_job lend = lend_of("generation", 1, 1, 2);
	struct remote_job new = lend_of("no generation", 1, 1, 2);
	struct remote_job first = first_of("no generation", 1, 1, 2);

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	strcpy(line.generation, "another");
	is_told_of_another(&step);
	assert_int_equal(used_of("generation"), 3);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	strcpy(line.generation, "another");
	is_told_of_another(&lend);
	assert_int_equal(used_of("generation"), 5);
	strcpy(line.generation, "another");
	is_told_of_another(&new);
	strcpy(line.generation, "another");
	is_told_of_another(&first);
	assert_int_equal(used_of("no generation"), 0);
}

/* A pool keeps its clients' connections meanwhile. */
static void a_generation_from_before_the_server_was_started_is_none(void **state)
{
	struct remote_job step = step_of("started", 1);
	struct remote_job lend = lend_of("started", 1, 1, 2);
	struct remote_job first = first_of("started, new", 1, 2, 2);

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&lend);
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&first);
	postgres_line_do(&line,
	                 "UPDATE gale.birth SET born = born - interval '1 second'");
	is_told_of_another(&step);
	assert_int_equal(used_of("started"), 3);
	assert_int_equal(used_of("started, new"), 0);
}

/* L12: whoever puts an older copy back, or has one take the place of what there is, makes the
 * server forget. */
static void a_generation_that_was_put_back_is_none(void **state)
{
	struct remote_job step = step_of("put back", 1);
	struct remote_job lend = lend_of("put back", 1, 1, 2);
	struct remote_job first = first_of("put back, new", 1, 1, 2);
	const char *copy =
	    "CREATE UNLOGGED TABLE public.copy (LIKE gale.birth INCLUDING ALL);"
	    " INSERT INTO public.copy SELECT * FROM gale.birth;"
	    " DROP TABLE gale.birth; ALTER TABLE public.copy RENAME TO birth;"
	    " ALTER TABLE public.birth SET SCHEMA gale";

	(void)state;
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 2;
	postgres_line_do(&line,
	                 "CREATE TABLE public.saved AS SELECT * FROM gale.birth");
	postgres_line_do(&line, "TRUNCATE gale.keys;"
	                        " INSERT INTO gale.birth SELECT * FROM public.saved");
	is_told_of_another(&step);
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	lend.ask.number = 3;
	postgres_line_do(&line, copy);
	is_told_of_another(&lend);
	postgres_line_do(&line, copy);
	is_told_of_another(&first);
	assert_int_equal(used_of("put back, new"), 0);
	assert_int_equal(code_of(&step), REMOTE_DONE);
	assert_int_equal(used_of("put back"), 4);
	postgres_line_do(&line, "DROP TABLE public.saved");
}

static void what_may_forget_is_another_generation(void **state)
{
	char was[REMOTE_GENERATION_BYTES + 1];
	int pid;

	(void)state;
	strcpy(was, generation());
	open_again();
	assert_string_equal(was, generation());

	postgres_line_do(&line, "TRUNCATE gale.keys");
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	pid = (int)postgres_line_number(&line, "SELECT pg_backend_pid()");
	postgres_server_crash_process(server, pid);
	open_again();
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_string_not_equal(was, generation());
	strcpy(was, generation());
	postgres_server_restart(server, /* crashes= */ false);
	open_again();
	assert_string_not_equal(was, generation());
}

/* A server may crash more than once within a second. */
static void no_two_generations_are_the_same(void **state)
{
	static char names[300][REMOTE_GENERATION_BYTES + 1];

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		postgres_line_do(&line, "DELETE FROM gale.birth");
		strcpy(names[i], generation());
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	}
}

/* The job is sent while a key is used up, and the table emptied. */
static void wait_for_an_emptying(const char *isolation, struct remote_job job)
{
	struct remote_job all = step_of("emptied", LIMIT);
	enum postgres_result means;
	struct line other;
	char sql[96];

	snprintf(sql, sizeof(sql), "SET default_transaction_isolation = '%s'",
	         isolation);
	postgres_line_do(&line, sql);
	assert_int_equal(answer_of(&all).verdict, GALE_ALLOW);
	assert_int_equal(answer_of(&all).verdict, GALE_DENY);
	postgres_line_open(&other, postgres_server_address(server));
	postgres_line_do(&other, "BEGIN; TRUNCATE gale.keys");
	postgres_line_say(&line, &job, 1);
	nap();
	postgres_line_do(&other, "COMMIT");
	postgres_line_close(&other);
	means = postgres_line_hear(&line, &job, 1, told);
	while (means == POSTGRES_DEADLOCK || means == POSTGRES_TIMED_OUT) {
		postgres_line_say(&line, &job, 1);
		means = postgres_line_hear(&line, &job, 1, told);
	}
	assert_int_equal(means, POSTGRES_OTHER_GENERATION);
	postgres_line_do(&line, "RESET default_transaction_isolation");
}

/* Who waits for it to be committed, too; and who has seen what was before. */
static void an_emptying_is_told_of(void **state)
{
	(void)state;
	static const char *const isolations[] = { "read committed", "repeatable read",
		                                  "serializable" };

	for (int i = 0; i < 3; i++) {
		wait_for_an_emptying(isolations[i], step_of("emptied", LIMIT));
		wait_for_an_emptying(isolations[i], lend_of("emptied", 1, 1, LIMIT));
		wait_for_an_emptying(isolations[i], first_of("emptied", 1, 1, LIMIT));
	}
}

static void without_a_generation_nothing_is_done(void **state)
{
	struct remote_job job = step_of("unmarked", 1);

	(void)state;
	postgres_line_do(&line,
	                 "CREATE FUNCTION public.vanish() RETURNS trigger LANGUAGE"
	                 " plpgsql AS 'BEGIN RETURN NULL; END';"
	                 "CREATE TRIGGER vanishes BEFORE INSERT ON gale.birth"
	                 " FOR EACH ROW EXECUTE FUNCTION public.vanish();"
	                 "DELETE FROM gale.birth");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_DEADLOCK);
	postgres_line_do(&line, "DROP FUNCTION public.vanish() CASCADE");
	assert_int_equal(code_of(&job), REMOTE_DONE);
}

/* ---- Its clock ------------------------------------------------------------------- */

#define NOON_US UINT64_C(1893499200000000) /* in 2030 */

static void set_clock(struct line *own, uint64_t now_us)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "SET gale.test_now = %" PRIu64, now_us);
	postgres_line_do(own, sql);
	own->now_us = now_us;
}

/* That of each session is its own. */
static void begin_with_clocks(struct line *other)
{
	postgres_line_do(&line,
	                 "TRUNCATE gale.keys;"
	                 "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint"
	                 " LANGUAGE sql VOLATILE AS"
	                 " $$SELECT current_setting('gale.test_now')::bigint$$");
	postgres_line_open(other, postgres_server_address(server));
	set_clock(other, NOON_US + GALE_HOURS(25));
	set_clock(&line, NOON_US);
}

static void end_with_clocks(struct line *other)
{
	postgres_line_close(other);
	postgres_line_install(&line);
	postgres_line_do(&line, "TRUNCATE gale.keys");
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
}

static enum postgres_result meaning_of(const struct remote_job *job)
{
	postgres_line_say(&line, job, 1);
	return postgres_line_hear(&line, job, 1, told);
}

static void use_up(struct remote_job *job)
{
	assert_int_equal(answer_of(job).verdict, GALE_ALLOW);
	assert_int_equal(answer_of(job).verdict, GALE_DENY);
}

static void a_clock_behind_what_was_swept_is_another_generation(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job job = step_of("idle", 3);
	char was[REMOTE_GENERATION_BYTES + 1];
	struct line other;

	(void)state;
	job.rule = &rule;
	begin_with_clocks(&other);
	use_up(&job);
	strcpy(was, line.generation);
	assert_int_equal(
	    postgres_line_number(&other, "SELECT dropped FROM gale.sweep(10)"), 1);

	set_clock(&line, NOON_US + GALE_HOURS(1)); /* it had expired */
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	set_clock(&line, NOON_US + GALE_HOURS(1) - 1);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	assert_string_not_equal(line.generation, was);
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD); /* once is enough */
	end_with_clocks(&other);
}

/* The same of a lend, of a row that is there and of one that was swept. */
static void a_lend_behind_what_was_swept_is_not_done(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct rule daily = compiled(gale_fixed_window(3, GALE_DAYS(1)));
	struct remote_job idle = step_of("idle", 3), there = lend_of("there", 1, 1, 1);
	struct remote_job swept = lend_of("idle", 1, 1, 1);
	struct line other;

	(void)state;
	idle.rule = swept.rule = &rule;
	there.rule = &daily;
	begin_with_clocks(&other);
	use_up(&idle);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(meaning_of(&there), POSTGRES_TOLD);
	assert_int_equal(
	    postgres_line_number(&other, "SELECT dropped FROM gale.sweep(1)"), 1);
	there.ask.number = 2;
	set_clock(&line, NOON_US + GALE_HOURS(1) - 1);
	is_told_of_another(&there);
	set_clock(&line, NOON_US - 1);
	is_told_of_another(&swept);
	end_with_clocks(&other);
}

static void a_clock_behind_a_generation_begins_another(void **state)
{
	struct remote_job job = read_of("any");
	struct line other;

	(void)state;
	begin_with_clocks(&other);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	set_clock(&line, NOON_US + 1);
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	set_clock(&line, NOON_US - 1);
	assert_int_equal(meaning_of(&job), POSTGRES_OTHER_GENERATION);
	line.generation[10] = 0;
	assert_int_equal(strtoull(line.generation, NULL, 16), NOON_US / 1000000 - 1);
	end_with_clocks(&other);
}

/* The clock shows the window's last microsecond first, and then the next one's first. */
static void a_window_that_turns_meanwhile_is_asked_about_again(void **state)
{
	struct rule rule = compiled(gale_fixed_window(9, GALE_HOURS(1)));
	struct remote_job job = lend_of("turns", 1, 1, 3);
	struct remote_job first = first_of("turns, too", 1, 3, 3);
	struct line other;
	char sql[320];

	(void)state;
	job.rule = first.rule = &rule;
	begin_with_clocks(&other);
	assert_int_equal(code_of(&job), REMOTE_LENT);
	snprintf(sql, sizeof(sql),
	         "CREATE SEQUENCE public.ticks;"
	         "CREATE OR REPLACE FUNCTION gale.now_us() RETURNS bigint"
	         " LANGUAGE sql VOLATILE AS $$SELECT %llu + nextval('public.ticks')$$",
	         (unsigned long long)(NOON_US + GALE_HOURS(1) - 2));
	postgres_line_do(&line, sql);
	job.ask.number = 2;
	assert_int_equal(meaning_of(&job), POSTGRES_DEADLOCK);
	assert_int_equal(meaning_of(&job), POSTGRES_TOLD);
	postgres_line_do(&line, "SELECT setval('public.ticks', 1, false)");
	assert_int_equal(meaning_of(&first), POSTGRES_DEADLOCK);
	assert_int_equal(meaning_of(&first), POSTGRES_TOLD);
	assert_true(line.order.were_first);
	end_with_clocks(&other);
	postgres_line_do(&line, "DROP SEQUENCE public.ticks");
}

/* The sweep ends while somebody waits for it, whose clock is behind. */
static void sweep_meanwhile(const char *isolation, bool is_first)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job step = step_of("meanwhile", 3),
			  lend = lend_of("meanwhile", 7, 1, 3);
	enum postgres_result means;
	struct line other;
	char sql[96];

	step.rule = lend.rule = &rule;
	lend.is_first = is_first;
	begin_with_clocks(&other);
	snprintf(sql, sizeof(sql), "SET default_transaction_isolation = '%s'",
	         isolation);
	postgres_line_do(&line, sql);
	use_up(&step);
	assert_int_equal(code_of(&lend), REMOTE_DONE);
	postgres_line_do(&other, "BEGIN; DO 'BEGIN PERFORM gale.sweep(10); END'");
	postgres_line_say(&line, &lend, 1);
	nap();
	postgres_line_do(&other, "COMMIT");
	means = postgres_line_hear(&line, &lend, 1, told);
	while (means == POSTGRES_TIMED_OUT || means == POSTGRES_DEADLOCK)
		means = meaning_of(&lend);
	assert_int_equal(means, POSTGRES_OTHER_GENERATION);
	postgres_line_do(&line, "RESET default_transaction_isolation");
	end_with_clocks(&other);
}

static void what_is_swept_meanwhile_is_noticed(void **state)
{
	(void)state;
	for (int is_first = 0; is_first < 2; is_first++) {
		sweep_meanwhile("read committed", is_first);
		sweep_meanwhile("repeatable read", is_first);
	}
}

/* What was given back whole keeps the window that it was of. */
static void a_window_that_is_empty_again_does_not_go_back(void **state)
{
	struct rule rule = compiled(gale_fixed_window(3, GALE_HOURS(1)));
	struct remote_job step = step_of("empty", 3), lend = lend_of("empty", 7, 1, 3),
			  back = lend_of("empty", 7, 2, 0);
	struct line other;

	(void)state;
	step.rule = lend.rule = back.rule = &rule;
	begin_with_clocks(&other);
	use_up(&step);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(code_of(&lend), REMOTE_LENT);
	back.verb = REMOTE_BACK;
	back.tag = slot_at(NOON_US + GALE_HOURS(1));
	back.units = 3;
	assert_int_equal(code_of(&back), REMOTE_DONE);
	set_clock(&line, NOON_US);
	use_up(&step);
	set_clock(&line, NOON_US + GALE_HOURS(1));
	assert_int_equal(answer_of(&step).verdict, GALE_DENY);
	end_with_clocks(&other);
}

static void a_crash_forgets_what_is_not_durable(void **state)
{
	struct remote_job job = step_of("durable", 3);

	(void)state;
	assert_int_equal(code_of(&job), REMOTE_DONE);
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_int_equal(used_of("durable"), 3);
	postgres_line_do(&line, POSTGRES_SET_FAST);
	postgres_line_do(&line, POSTGRES_SET_FAST);
	assert_int_equal(used_of("durable"), 3);
	postgres_server_restart(server, /* crashes= */ true);
	open_again();
	assert_int_equal(used_of("durable"), 0);
	postgres_line_do(&line, POSTGRES_SET_DURABLE);
	assert_string_equal(postgres_line_text(&line,
	                                       "SELECT relpersistence FROM pg_class"
	                                       " WHERE oid = 'gale.keys'::regclass"),
	                    "p");
}

static void a_server_that_only_reads_says_so(void **state)
{
	struct remote_job job = step_of("read-only", 1);

	(void)state;
	postgres_line_do(&line, "SET default_transaction_read_only = on");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_READ_ONLY);
	postgres_line_do(&line, "RESET default_transaction_read_only");
	assert_int_equal(code_of(&job), REMOTE_DONE);
}

static void who_may_not_is_refused(void **state)
{
	struct remote_job job = step_of("stranger", 1);

	(void)state;
	postgres_line_do(&line, "CREATE ROLE stranger; SET ROLE stranger");
	assert_int_equal(postgres_line_call(&line, &job, 1, told), POSTGRES_REFUSED);
	postgres_line_do(&line, "RESET ROLE; GRANT USAGE ON SCHEMA gale TO stranger;"
	                        " SET ROLE stranger");
	assert_int_equal(code_of(&job), REMOTE_DONE);
	assert_int_equal(postgres_line_try(&line, "SELECT * FROM gale.keys"),
	                 POSTGRES_REFUSED);
	assert_int_equal(postgres_line_try(&line, "SELECT * FROM gale.sweep(1)"),
	                 POSTGRES_TOLD);
	assert_int_equal(postgres_line_try(&line, POSTGRES_SET_FAST), POSTGRES_REFUSED);
	postgres_line_do(&line, "RESET ROLE");
}

/* ---- Sweeping -------------------------------------------------------------------- */

static uint64_t keys(void)
{
	return postgres_line_number(&line, "SELECT count(*) FROM gale.keys");
}

static uint64_t sweep(const char *most)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT dropped FROM gale.sweep(%s)", most);
	return postgres_line_number(&line, sql);
}

static void what_has_expired_is_swept(void **state)
{
	struct line other;

	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	postgres_line_do(
	    &line, "INSERT INTO gale.keys (expires_us, head, fingerprint, key, words)"
		   " SELECT CASE WHEN n % 10 = 0 THEN"
		   " gale.now_us() + 1000000000 ELSE n END, 1, 1,"
		   " int4send(n), '{1}' FROM generate_series(1, 20000) n");
	assert_int_equal(sweep("100"), 100);
	postgres_line_open(&other, postgres_server_address(server));
	postgres_line_do(&other,
	                 "BEGIN; SELECT FROM gale.keys WHERE key = int4send(19999)"
	                 " FOR UPDATE");
	for (int i = 0; i < 100; i++)
		sweep("1000");
	assert_int_equal(keys(), 2001);
	postgres_line_do(&other, "COMMIT");
	postgres_line_close(&other);
	for (int i = 0; i < 100; i++)
		sweep("1000");
	assert_int_equal(keys(), 2000);
}

static void what_has_just_expired_is_kept_for_a_while(void **state)
{
	(void)state;
	postgres_line_do(&line, "TRUNCATE gale.keys");
	postgres_line_do(
	    &line,
	    "INSERT INTO gale.keys (expires_us, head, fingerprint, key, words) VALUES"
	    " (gale.now_us() - 1000000, 1, 1, 'young', '{1}')");
	assert_int_equal(sweep("10"), 0);
	assert_int_equal(sweep("10, 0"), 1);
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
	                 POSTGRES_SCHEMA_VERSION);
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
		cmocka_unit_test(garbage_of_other_kinds_is_called_that),
		cmocka_unit_test(a_long_log_comes_back_as_it_was),
		cmocka_unit_test(a_crowd_is_admitted_up_to_the_limit),
		cmocka_unit_test(nobody_waits_in_a_circle),
		cmocka_unit_test(short_and_long_ways_meet),
		cmocka_unit_test(what_is_put_in_is_as_if_it_had_been_looked_for),
		cmocka_unit_test(what_is_not_new_is_looked_for),
		cmocka_unit_test(who_guesses_wrong_lets_go),
		cmocka_unit_test(who_puts_in_last_gets_the_rest),
		cmocka_unit_test(who_waits_too_long_is_told),
		cmocka_unit_test(nothing_stays_in_the_session),
		cmocka_unit_test(a_hot_key_stays_on_few_pages),
		cmocka_unit_test(another_generation_changes_nothing),
		cmocka_unit_test(
		    a_generation_from_before_the_server_was_started_is_none),
		cmocka_unit_test(a_generation_that_was_put_back_is_none),
		cmocka_unit_test(what_may_forget_is_another_generation),
		cmocka_unit_test(no_two_generations_are_the_same),
		cmocka_unit_test(an_emptying_is_told_of),
		cmocka_unit_test(without_a_generation_nothing_is_done),
		cmocka_unit_test(a_clock_behind_what_was_swept_is_another_generation),
		cmocka_unit_test(a_lend_behind_what_was_swept_is_not_done),
		cmocka_unit_test(a_clock_behind_a_generation_begins_another),
		cmocka_unit_test(a_window_that_turns_meanwhile_is_asked_about_again),
		cmocka_unit_test(what_is_swept_meanwhile_is_noticed),
		cmocka_unit_test(a_window_that_is_empty_again_does_not_go_back),
		cmocka_unit_test(a_crash_forgets_what_is_not_durable),
		cmocka_unit_test(a_server_that_only_reads_says_so),
		cmocka_unit_test(who_may_not_is_refused),
		cmocka_unit_test(what_has_expired_is_swept),
		cmocka_unit_test(what_has_just_expired_is_kept_for_a_while),
		cmocka_unit_test(versions_are_told_apart),
		cmocka_unit_test(a_table_of_another_shape_is_a_loss),
		cmocka_unit_test(a_table_that_lacks_columns_is_a_loss),
		cmocka_unit_test(an_index_without_a_salt_is_made_anew),
		cmocka_unit_test(nobody_elses_names_are_used_to_install),
		cmocka_unit_test(what_is_somebody_elses_is_left_alone),
		cmocka_unit_test(all_who_install_at_once_succeed),
	};

	cmocka_set_test_filter(count > 1 ? args[1] : NULL);
	return cmocka_run_group_tests(tests, start, stop);
}
