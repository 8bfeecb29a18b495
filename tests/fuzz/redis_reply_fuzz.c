/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_reply_fuzz.c -- whatever a server says, it is told or refused, and what was told
 * can be explained.
 *
 * The bytes come as a connection gives them: in pieces.  Each whole reply is read as the
 * answer to one batch, with a job of each kind.
 */
#include <hiredis/hiredis.h>
#include <stdlib.h>

#include "engine/check.h"
#include "stores/redis/reply.h"
#include "tests/fuzz/beats.h"
#include "tests/fuzz/bytes.h"

#define STRING_MOST 4096
#define NONCE 7
#define JOBS 6

static struct rule rules[JOBS];
static struct remote_job jobs[JOBS];
static struct remote_told told[JOBS];
static uint64_t words[STRING_MOST];
static uint8_t encoded[16 * STRING_MOST];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const enum remote_verb verbs[JOBS] = { REMOTE_STEP, REMOTE_LEND,
		                                      REMOTE_BACK, REMOTE_READ,
		                                      REMOTE_SWAP, REMOTE_BEAT };
	const struct gale_rule configs[JOBS] = {
		gale_fixed_window(5, GALE_SECONDS(10)),
		gale_gcra(5, GALE_SECONDS(10), 7),
		gale_quota_daily(50, 60),
		gale_sliding_log(20, GALE_SECONDS(10)),
		gale_pacer(5, GALE_SECONDS(10), 3),
		gale_fixed_window(9, GALE_SECONDS(10)),
	};

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < JOBS; i++) {
		gale_assert(rule_compile(&configs[i], &rules[i]) == GALE_ERR_OK);
		jobs[i] = (struct remote_job){ .verb = verbs[i], .rule = &rules[i] };
		jobs[i].cost = jobs[i].units = 1;
		jobs[i].ask =
		    (struct lease_ask){ .node = 1, .number = 2, .want = 3, .least = 1 };
		jobs[i].not_before_us = i % 2 * GALE_SECONDS(100);
	}
	jobs[JOBS - 1].rule = NULL;
	return 0;
}

static void explain(const struct remote_job *job, const struct remote_told *said)
{
	struct remote_desk desk = { words, STRING_MOST, encoded };
	struct remote_job next = *job;
	enum store_result result;
	struct store_op op = { .verb = STORE_STEP, .cost = 1 };
	struct lend_answer answer;
	struct store_beat beat = { 0 };

	if (job->verb == REMOTE_BEAT) {
		if (remote_explain_beat(said, &beat) == STORE_DONE)
			fuzzed_grant(&beat.grant);
		return;
	}
	gale_assert(said->before.count <= remote_value_most(job->rule));
	if (job->verb == REMOTE_STEP)
		(void)remote_explain_step(job, said, &op);
	else if (job->verb == REMOTE_LEND || job->verb == REMOTE_BACK)
		remote_explain_lend(job, said, &answer);
	else if (job->verb == REMOTE_READ)
		(void)remote_prepare_swap(&next, said, &desk, &op, &result);
}

static void read_reply(const redisReply *reply)
{
	struct redis_said said;

	redis_read_reply(reply, NONCE, jobs, JOBS, told, &said);
	gale_assert(said.generation_count <= REMOTE_GENERATION_BYTES);
	if (said.word != REDIS_TOLD)
		return;
	for (size_t i = 0; i < JOBS; i++) {
		gale_assert(told[i].now_us >= 1 && told[i].now_us <= INSTANT_MAX_US);
		explain(&jobs[i], &told[i]);
	}
}

static bool take_all(struct redis_intake *intake)
{
	redisReply *reply;

	do {
		if (!redis_intake_take(intake, &reply))
			return false;
		if (reply)
			read_reply(reply);
		redis_reply_free(reply);
	} while (reply);
	return true;
}

/* The first byte says how long the pieces are. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	size_t piece = 1 + take_number(&bytes, 1) * 4;
	struct redis_intake intake;

	gale_assert(redis_intake_open(&intake, STRING_MOST));
	while (bytes.left > 0) {
		size_t count = piece < bytes.left ? piece : bytes.left;

		if (!redis_intake_feed(&intake, bytes.at, count) || !take_all(&intake))
			break;
		bytes.at += count;
		bytes.left -= count;
	}
	redis_intake_close(&intake);
	return 0;
}
