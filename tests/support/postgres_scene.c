/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* postgres_scene.c -- see postgres_scene.h. */
#include "tests/support/postgres_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#include "tests/support/must.h"

struct postgres_server *server;
struct line line;
struct rule hourly;
struct remote_told told[REMOTE_BATCH_MOST];

struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

struct remote_bytes bytes_of(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

struct remote_job step_of(const char *key, uint64_t cost)
{
	return (struct remote_job){
		.verb = REMOTE_STEP, .key = bytes_of(key), .rule = &hourly, .cost = cost
	};
}

struct remote_job lend_of(const char *key, uint64_t node, uint64_t number,
                          uint64_t want)
{
	return (struct remote_job){
		.verb = REMOTE_LEND,
		.key = bytes_of(key),
		.rule = &hourly,
		.ask = { .node = node, .number = number, .want = want, .least = 1 },
	};
}

struct remote_job first_of(const char *key, uint64_t node, uint64_t number,
                           uint64_t want)
{
	struct remote_job job = lend_of(key, node, number, want);

	job.is_first = true;
	return job;
}

struct remote_job read_of(const char *key)
{
	return (struct remote_job){ .verb = REMOTE_READ,
		                    .key = bytes_of(key),
		                    .rule = &hourly };
}

enum remote_code code_of(const struct remote_job *job)
{
	assert_int_equal(postgres_line_call(&line, job, 1, told), POSTGRES_TOLD);
	return told[0].code;
}

struct gale_answer answer_of(const struct remote_job *job)
{
	struct store_op op = { .verb = STORE_STEP };

	assert_int_equal(postgres_line_call(&line, job, 1, told), POSTGRES_TOLD);
	assert_int_equal(remote_explain_step(job, &told[0], &op), STORE_DONE);
	return op.answer;
}

uint64_t used_under(const struct rule *rule, const char *key)
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
uint64_t used_of(const char *key)
{
	return used_under(&hourly, key);
}

int scene_start(void **state)
{
	(void)state;
	server = postgres_server_start();
	hourly = compiled(gale_quota_anchored(LIMIT, GALE_SPAN_MAX_US, 0));
	postgres_line_open(&line, postgres_server_address(server));
	postgres_line_install(&line);
	line.now_us = postgres_line_number(&line, "SELECT gale.now_us()");
	return 0;
}

int scene_stop(void **state)
{
	(void)state;
	postgres_line_close(&line);
	postgres_server_stop(server);
	return 0;
}

/* The generation, as anybody is told who asks for another one. */
const char *generation(void)
{
	struct remote_job job = read_of("any");

	line.generation[0] = 0;
	postgres_line_say(&line, &job, 1);
	assert_int_equal(postgres_line_hear(&line, &job, 1, told),
	                 POSTGRES_OTHER_GENERATION);
	return line.generation;
}
