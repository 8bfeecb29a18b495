/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_claims_test.c -- claim.lua against stores/pools.c, on fleets by lot.
 *
 * A real server runs the script as it is embedded, but for the line that reads the clock: the
 * time is the nonce, and the test's.  After each claim both must have answered the same, and
 * keep the same words of the pool, its tenants, and the claim.  The server refuses each key
 * that a call does not name.
 *
 *     redis_claims_test [--seed N] [--steps N]     prints the seed of what fails
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/arguments.h"
#include "tests/support/claims.h"
#include "tests/support/must.h"
#include "tests/support/redis_named.h"

#define STEPS_MOST 1500         /* of one fleet */
#define NOW (UINT64_C(1) << 51) /* the year 2041: no real clock expires a pool */
#define TOGETHER 4              /* claims of one call, at most */

extern const struct redis_script redis_claims_script;

static struct redis_talk talk, user;

#define expect(c, x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			fail(c, #x, __LINE__);                                         \
	} while (0)

_Noreturn static void fail(const struct claims *c, const char *what, int line)
{
	printf("FAILED: redis_claims_test.c:%d: %s\nreplay: --seed %" PRIu64
	       " --steps %" PRIu64 "\n",
	       line, what, c->seed, c->step);
	exit(1);
}

static redisReply *call(struct claims *c, const struct remote_job *jobs, size_t count,
                        struct remote_told *told)
{
	static const uint8_t buckets[TOGETHER];
	struct redis_call call = {
		.script = &redis_claims_script,
		.prefix = "test:",
		.generation = { (const uint8_t *)"one", 3 },
		.nonce = c->now_us,
		.sure_until_us = GALE_UNITS_MAX,
		.jobs = jobs,
		.buckets = buckets,
		.count = count,
	};
	struct redis_said said;
	redisReply *reply;

	expect(c, redis_put_call(&user.text, &call));
	reply = redis_named_call(&user);
	if (reply->type == REDIS_REPLY_ERROR)
		printf("%s\n", reply->str);
	redis_read_reply(reply, c->now_us, jobs, count, told, &said);
	expect(c, said.word == REDIS_TOLD);
	return reply;
}

/* ---- What is there --------------------------------------------------------------- */

static struct remote_bytes text(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static redisReply *all_of(const struct claims *c, const char *kind)
{
	const struct remote_bytes name = { c->pool->name.bytes, c->pool->name.len };
	uint8_t key[REDIS_KEY_MAX];
	struct remote_bytes words[2] = {
		text("HGETALL"), { key, redis_group_key(key, "test:", 0, kind, name) }
	};

	must(redis_put_words(&talk.text, words, 2));
	redis_talk_send(&talk);
	return redis_talk_hear(&talk);
}

/* NULL: it is not there. */
static const redisReply *field(const redisReply *pairs, const void *head,
                               size_t head_count, const uint8_t *name, size_t count)
{
	uint8_t bytes[sizeof(double) + STORE_TENANT_MAX];

	memcpy(bytes, head, head_count);
	if (count > 0)
		memcpy(bytes + head_count, name, count);
	for (size_t i = 0; i + 1 < pairs->elements; i += 2)
		if (pairs->element[i]->len == head_count + count &&
		    memcmp(pairs->element[i]->str, bytes, head_count + count) == 0)
			return pairs->element[i + 1];
	return NULL;
}

static void expect_words(const struct claims *c, const redisReply *reply,
                         const void *words, size_t count)
{
	expect(c, !reply == !words);
	if (!reply)
		return;
	expect(c, reply->len == count * sizeof(double));
	for (size_t i = 0; i < count; i++) {
		uint64_t word;
		double theirs;

		memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
		memcpy(&theirs, reply->str + i * sizeof(theirs), sizeof(theirs));
		if ((double)word != theirs)
			printf("word %zu is %.0f, not %" PRIu64 "\n", i, theirs, word);
		expect(c, (double)word == theirs);
	}
}

static void expect_same_kept(const struct claims *c)
{
	redisReply *pool = all_of(c, REDIS_POOL), *claims = all_of(c, REDIS_CLAIMS);
	double node = (double)c->claim.node;
	size_t tenants = 0;

	expect_words(c, field(pool, "p", 1, NULL, 0), claims_pool(c), POOL_WORDS);
	for (size_t i = 0; i < c->pool->tenants; i++) {
		const struct pool_tenant *tenant = claims_tenant(c, i);

		expect_words(
		    c, field(pool, "t", 1, c->tenants[i].bytes, c->tenants[i].len),
		    tenant, POOL_TENANT_WORDS);
		tenants += tenant != NULL;
	}
	expect(c, pool->elements == 2 * (1 + tenants));
	expect_words(
	    c, field(claims, &node, sizeof(node), c->claim.tenant, c->claim.tenant_len),
	    claims_claim(c), POOL_CLAIM_WORDS);
	expect(c, claims->elements == 2 * claims_pool(c)->claims);
	redis_reply_free(pool);
	redis_reply_free(claims);
}

static void expect_same_answer(struct claims *c, const struct remote_told *told)
{
	struct store_claim heard = c->claim;
	uint64_t theirs[POOL_ANSWER_WORDS], ours[POOL_ANSWER_WORDS];

	expect(c, remote_explain_claim(told, &heard) == STORE_DONE);
	memcpy(theirs, &heard.answer, sizeof(theirs));
	memcpy(ours, &c->claim.answer, sizeof(ours));
	for (size_t i = 0; i < POOL_ANSWER_WORDS; i++) {
		if (theirs[i] != ours[i])
			printf("word %zu of the answer is %" PRIu64 ", not %" PRIu64
			       "\n",
			       i, theirs[i], ours[i]);
		expect(c, theirs[i] == ours[i]);
	}
}

/* ---- Fleets ---------------------------------------------------------------------- */

/* Once, or the same several times in one call. */
static void claim(struct claims *c)
{
	size_t count =
	    chance_one_in(&c->chance, 10) ? chance_between(&c->chance, 2, TOGETHER) : 1;
	struct remote_told told[TOGETHER];
	struct remote_job jobs[TOGETHER];
	redisReply *reply;

	claims_draw(c);
	for (size_t i = 0; i < count; i++)
		jobs[i] = (struct remote_job){
			.verb = REMOTE_CLAIM,
			.key = { c->pool->name.bytes, c->pool->name.len },
			.claim = &c->claim,
			.not_before_us = c->not_before_us,
		};
	reply = call(c, jobs, count, told);
	for (size_t i = 0; i < count; i++) {
		claims_serve(c);
		expect_same_answer(c, &told[i]);
	}
	expect_same_kept(c);
	claims_hear(c);
	redis_reply_free(reply);
}

static void run_fleet(uint64_t seed, uint64_t steps, struct claims_tally *tally)
{
	static struct claims c;

	redis_talk_do(&talk, "FLUSHALL");
	redis_talk_do(&talk, "SET test:{b00}generation one");
	claims_open(&c, seed, NOW, tally);
	while (c.step < steps)
		claim(&c);
	claims_close(&c);
}

/* As a double, it is no number. */
#define NO_NUMBER "\xff\xff\xff\xff\xff\xff\xff\xff"
#define NO_NUMBERS NO_NUMBER NO_NUMBER NO_NUMBER NO_NUMBER NO_NUMBER NO_NUMBER

/* What is no pool is left as it is. */
static void what_is_no_pool_is_garbled(void)
{
	const char *const wrong[] = { "SET test:{b00}pool:g x",
		                      "HSET test:{b00}pool:g p x",
		                      "HSET test:{b00}pool:g p " NO_NUMBERS };
	static struct claims_tally tally;
	static struct claims c;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct remote_told told;
		struct remote_job job;

		redis_talk_do(&talk, "FLUSHALL");
		redis_talk_do(&talk, "SET test:{b00}generation one");
		redis_talk_do(&talk, wrong[i]);
		claims_open(&c, 1, NOW, &tally);
		do
			claims_draw(&c);
		while (c.pool != &c.pools[0]);
		job = (struct remote_job){ .verb = REMOTE_CLAIM,
			                   .key = { c.pool->name.bytes,
			                            c.pool->name.len },
			                   .claim = &c.claim };
		redis_reply_free(call(&c, &job, 1, &told));
		expect(&c, told.code == REMOTE_GARBLED);
		claims_close(&c);
	}
}

static void hear(struct claims *c, const struct remote_job *job)
{
	struct remote_told told;
	redisReply *reply = call(c, job, 1, &told);

	expect(c, remote_explain_claim(&told, &c->claim) == STORE_DONE);
	redis_reply_free(reply);
}

/* A pool of before POOL-6 has six words: the settings of the ask that comes first are its own. */
static void a_pool_of_before_is_taken_on(void)
{
	const struct remote_bytes pool = text("test:{b00}pool:g"), p = text("p");
	static struct claims_tally tally;
	static struct claims c;
	struct remote_job job;
	redisReply *reply;

	redis_talk_do(&talk, "FLUSHALL");
	redis_talk_do(&talk, "SET test:{b00}generation one");
	claims_open(&c, 1, NOW, &tally);
	do
		claims_draw(&c);
	while (c.pool != &c.pools[0]);
	c.claim.ask.had = c.claim.ask.back = 0;
	c.claim.ask.more = c.claim.ask.least = 1;
	job = (struct remote_job){ .verb = REMOTE_CLAIM,
		                   .key = { c.pool->name.bytes, c.pool->name.len },
		                   .claim = &c.claim };
	hear(&c, &job);
	must(redis_put_words(&talk.text,
	                     (struct remote_bytes[]){ text("HGET"), pool, p }, 3));
	redis_talk_send(&talk);
	reply = redis_talk_hear(&talk);
	expect(&c, reply->len == POOL_WORDS * sizeof(double));
	must(redis_put_words(
	    &talk.text,
	    (struct remote_bytes[]){
		text("HSET"), pool, p, { (const uint8_t *)reply->str, 48 } },
	    4));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
	redis_reply_free(reply);
	for (int i = 0; i < 2; i++) {
		c.claim.ask.release_us = 12345;
		hear(&c, &job);
		expect(&c, c.claim.answer.result == POOL_ANSWERED);
		expect(&c, c.claim.answer.granted == 1 && c.claim.answer.used == 1);
		expect(&c, c.claim.answer.release_us == 12345);
	}
	c.claim.ask.release_us++;
	hear(&c, &job);
	expect(&c, c.claim.answer.result == POOL_DISAGREES);
	claims_close(&c);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, steps = 10000;
	struct claims_tally tally = { 0 };
	struct redis_server server;
	const struct argument arguments[] = {
		{ "--seed", &seed },
		{ "--steps", &steps },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	redis_server_start(&server, NULL);
	redis_talk_open(&talk, &server);
	redis_named_open(&user, &server);
	talk.intake.parts_most = 8 * CLAIMS_TENANTS; /* all of a pool */
	must(redis_put_script(&talk.text, &redis_claims_script));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
	what_is_no_pool_is_garbled();
	a_pool_of_before_is_taken_on();
	while (tally.asks < steps)
		run_fleet(seed++, steps < STEPS_MOST ? steps : STEPS_MOST, &tally);
	redis_talk_close(&user);
	redis_talk_close(&talk);
	redis_server_stop(&server);
	claims_print(&tally);
	if (steps < 10000 || claims_tell_something(&tally))
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}
