/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_script_test.c -- step.lua at a real server, and what goes wrong there.
 *
 * That it changes values as the engine does is shown by redis_timelines.  Here it meets
 * real time, values that are not its own, and servers that have forgotten or refuse.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stores/remote.h"
#include "sim/random.h"
#include "tests/support/must.h"
#include "tests/support/port.h"
#include "tests/support/redis_server.h"

#define HOUR GALE_HOURS(1)
#define PREFIX "test:"
#define GENERATION "first"
#define VALUE_MOST 2048

/* One server for all tests; each begins with an empty one. */
static struct redis_server server;
static struct redis_talk talk;

struct scene {
	struct rule rule;
	struct remote_job jobs[REMOTE_BATCH_MOST];
	uint8_t buckets[REMOTE_BATCH_MOST];
	struct remote_told told[REMOTE_BATCH_MOST];
	struct redis_said said;
	redisReply *reply; /* where told points to */
	const struct redis_script *script;
	const char *generation;
	uint64_t nonce;
};

static struct remote_bytes bytes_of(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static void load_script(const struct redis_script *script)
{
	assert_true(redis_put_script(&talk.text, script));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
}

static void scene_open(struct scene *s, struct gale_rule config)
{
	*s = (struct scene){ .script = &redis_step_script, .generation = GENERATION };
	assert_int_equal(rule_compile(&config, &s->rule), GALE_ERR_OK);
	redis_talk_do(&talk, "FLUSHALL");
	redis_talk_do(&talk, "SET " PREFIX "{b00}generation " GENERATION);
	load_script(&redis_step_script);
}

static void scene_close(struct scene *s)
{
	redis_reply_free(s->reply);
}

static void say(struct scene *s, struct redis_talk *with, size_t count)
{
	const struct redis_call call = {
		.script = s->script,
		.prefix = PREFIX,
		.generation = bytes_of(s->generation),
		.nonce = ++s->nonce,
		.sure_until_us = GALE_UNITS_MAX,
		.now_us = GALE_SECONDS(1700000000),
		.jobs = s->jobs,
		.buckets = s->buckets,
		.count = count,
	};

	assert_true(redis_put_call(&with->text, &call));
}

static enum redis_word hear(struct scene *s, struct redis_talk *with, size_t count)
{
	redis_reply_free(s->reply);
	s->reply = redis_talk_hear(with);
	redis_read_reply(s->reply, s->nonce, s->jobs, count, s->told, &s->said);
	return s->said.word;
}

static enum redis_word call_with(struct scene *s, struct redis_talk *with, size_t count)
{
	say(s, with, count);
	redis_talk_send(with);
	return hear(s, with, count);
}

static enum redis_word call(struct scene *s, size_t count)
{
	return call_with(s, &talk, count);
}

static struct remote_job *job(struct scene *s, size_t i, enum remote_verb verb,
                              const char *key)
{
	s->jobs[i] = (struct remote_job){
		.verb = verb,
		.rule = &s->rule,
		.key = bytes_of(key),
		.cost = 1,
		.ask = { .node = 1, .number = 1, .want = 5, .least = 1 },
		.units = 1,
	};
	return &s->jobs[i];
}

/* One step of cost 1. */
static struct gale_answer step(struct scene *s, const char *key)
{
	struct store_op op = { .verb = STORE_STEP };

	job(s, 0, REMOTE_STEP, key);
	assert_int_equal(call(s, 1), REDIS_TOLD);
	assert_int_equal(remote_explain_step(&s->jobs[0], &s->told[0], &op),
	                 STORE_DONE);
	return op.answer;
}

static void set_value(const char *key, const uint8_t *bytes, size_t count)
{
	uint8_t name[REDIS_KEY_MAX];
	const struct remote_bytes words[3] = {
		bytes_of("SET"),
		{ name, redis_key(name, PREFIX, 0, bytes_of(key)) },
		{ bytes, count },
	};

	assert_true(redis_put_words(&talk.text, words, 3));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
}

/* Freed by the caller. */
static redisReply *value_of(const char *key)
{
	uint8_t name[REDIS_KEY_MAX];
	const struct remote_bytes words[2] = {
		bytes_of("GET"),
		{ name, redis_key(name, PREFIX, 0, bytes_of(key)) },
	};

	assert_true(redis_put_words(&talk.text, words, 2));
	redis_talk_send(&talk);
	return redis_talk_hear(&talk);
}

static bool is_value(const char *key, const uint8_t *bytes, size_t count)
{
	redisReply *value = value_of(key);
	bool is = value->type == REDIS_REPLY_STRING && value->len == count &&
	          memcmp(value->str, bytes, count) == 0;

	redis_reply_free(value);
	return is;
}

/* ---- Time ------------------------------------------------------------------------ */

static uint64_t servers_time(void)
{
	redisReply *reply = redis_talk_say(&talk, "TIME");
	uint64_t now = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
	               strtoull(reply->element[1]->str, NULL, 10);

	redis_reply_free(reply);
	return now;
}

static void a_step_is_made_at_the_servers_time(void **state)
{
	uint64_t before = servers_time(), after;
	struct scene s;

	(void)state;
	scene_open(&s, gale_token_bucket(3, 3, HOUR));
	for (uint64_t left = 3; left > 0; left--)
		assert_int_equal(step(&s, "k").remaining, left - 1);
	assert_int_equal(step(&s, "k").verdict, GALE_DENY);
	after = servers_time();
	assert_in_range(s.told[0].now_us, before, after);
	scene_close(&s);
}

static void a_value_lives_as_long_as_it_counts(void **state)
{
	struct scene s;
	redisReply *expires;
	uint64_t end_us;

	(void)state;
	scene_open(&s, gale_fixed_window(3, GALE_MILLIS(300)));
	step(&s, "k");
	end_us =
	    s.told[0].now_us - s.told[0].now_us % GALE_MILLIS(300) + GALE_MILLIS(300);
	step(&s, "k");
	expires = redis_talk_say(&talk, "PEXPIRETIME " PREFIX "{b00}:k");
	assert_int_equal(expires->type, REDIS_REPLY_INTEGER);
	if (expires->integer > 0) { /* the window may have turned, or be over */
		uint64_t expires_us = (uint64_t)expires->integer * 1000;

		assert_in_range(expires_us, end_us + GALE_SECONDS(4),
		                end_us + GALE_SECONDS(4) + GALE_MILLIS(300) + 1000);
	}
	redis_reply_free(expires);
	scene_close(&s);
}

static bool is_gone(void *arg)
{
	redisReply *value = value_of(arg);
	bool gone = value->type == REDIS_REPLY_NIL;

	redis_reply_free(value);
	return gone;
}

static void an_expired_value_is_gone(void **state)
{
	static char key[] = "k";
	struct scene s;

	(void)state;
	scene_open(&s, gale_gcra(1, GALE_MILLIS(20), 1));
	assert_int_equal(step(&s, key).verdict, GALE_ALLOW);
	assert_true(becomes_true(is_gone, key));
	assert_int_equal(step(&s, key).verdict, GALE_ALLOW);
	scene_close(&s);
}

/* The time beside the generation: step.lua writes it below zero, version 0.1 above. */
static void keep_time(const char *generation, int64_t latest_us)
{
	char value[32];
	double latest = (double)latest_us;
	struct remote_bytes words[3] = { bytes_of("SET"),
		                         bytes_of(PREFIX "{b00}generation"),
		                         { (const uint8_t *)value, 0 } };

	words[2].count = (size_t)snprintf(value, sizeof(value), "%s", generation);
	memcpy(value + words[2].count, &latest, sizeof(latest));
	words[2].count += sizeof(latest);
	assert_true(redis_put_words(&talk.text, words, 3));
	redis_talk_send(&talk);
	redis_reply_free(redis_talk_hear(&talk));
}

static int64_t kept_time(void)
{
	redisReply *value = redis_talk_say(&talk, "GET " PREFIX "{b00}generation");
	double latest;

	assert_int_equal(value->type, REDIS_REPLY_STRING);
	assert_int_equal(value->len, strlen(GENERATION) + sizeof(latest));
	memcpy(&latest, value->str + strlen(GENERATION), sizeof(latest));
	redis_reply_free(value);
	assert_true(latest < 0);
	return -(int64_t)latest;
}

static void ends_the_generation(struct scene *s)
{
	redisReply *generation;

	assert_int_equal(call(s, 1), REDIS_GENERATION);
	assert_int_equal(s->said.generation_count, 0);
	generation = redis_talk_say(&talk, "GET " PREFIX "{b00}generation");
	assert_int_equal(generation->type, REDIS_REPLY_NIL);
	redis_reply_free(generation);
}

/* L9: what has expired while it was ahead would be as new. */
static void a_clock_that_was_set_back_ends_the_generation(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(1, GALE_HOURS(1)));
	for (int sign = -1; sign <= 1; sign += 2) {
		keep_time(GENERATION,
		          sign * (int64_t)(servers_time() + GALE_SECONDS(2)));
		job(&s, 0, REMOTE_STEP, "k");
		ends_the_generation(&s);
		assert_true(is_gone((void *)(uintptr_t) "k"));
	}
	scene_close(&s);
}

static void the_latest_time_is_kept_to_the_second(void **state)
{
	uint64_t then = servers_time(), now;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(9, GALE_HOURS(1)));
	keep_time(GENERATION, -(int64_t)then);
	assert_int_equal(step(&s, "k").verdict, GALE_ALLOW);
	now = s.told[0].now_us;
	assert_int_equal(kept_time(), now < then + GALE_SECONDS(1) ? then : now);
	for (int sign = -1; sign <= 1; sign += 2) {
		keep_time(GENERATION, sign * (int64_t)(then - GALE_SECONDS(2)));
		assert_int_equal(step(&s, "k").verdict, GALE_ALLOW);
		assert_int_equal(kept_time(), s.told[0].now_us);
	}
	scene_close(&s);
}

/* ---- Keys ------------------------------------------------------------------------ */

#define MANY_NODES 9 /* two more than a value has room for */

/* One that may touch the keys of its calls, and no others. */
static void user_open(struct redis_talk *user)
{
	redis_talk_do(&talk, "ACL SETUSER named on nopass +@all");
	redis_talk_open(user, &server);
	redis_talk_do(user, "AUTH named any");
}

static void user_close(struct redis_talk *user)
{
	redis_talk_close(user);
	redis_talk_do(&talk, "ACL DELUSER named");
}

/* What the user is about to say names so many keys: those are the ones. */
static void let_touch(const struct redis_talk *user)
{
	struct redis_intake intake;
	char allow[512] = "ACL SETUSER named resetkeys";
	redisReply *command;
	size_t keys;

	assert_true(redis_intake_open(&intake, VALUE_MOST));
	assert_true(redis_intake_feed(&intake, user->text.bytes, user->text.count));
	assert_true(redis_intake_take(&intake, &command));
	assert_non_null(command);
	keys = strtoul(command->element[2]->str, NULL, 10);
	for (size_t i = 0; i < keys; i++) {
		strcat(allow, " ~");
		strcat(allow, command->element[3 + i]->str);
	}
	redis_reply_free(command);
	redis_intake_close(&intake);
	redis_talk_do(&talk, allow);
}

static void touches_what_it_names(struct scene *s, struct redis_talk *user)
{
	say(s, user, 1);
	let_touch(user);
	redis_talk_send(user);
	assert_int_equal(hear(s, user, 1), REDIS_TOLD);
}

static void there_are_keys(long long count)
{
	redisReply *keys = redis_talk_say(&talk, "DBSIZE");

	assert_int_equal(keys->integer, count);
	redis_reply_free(keys);
}

/* Servers that know a script's keys beforehand run it: nothing else is written or looked at. */
static void a_call_touches_the_keys_that_it_names(void **state)
{
	struct redis_talk user;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(9, GALE_HOURS(1)));
	user_open(&user);
	keep_time(GENERATION, -1);
	job(&s, 0, REMOTE_STEP, "k");
	touches_what_it_names(&s, &user);
	assert_int_equal(kept_time(), s.told[0].now_us);
	user_close(&user);
	there_are_keys(2);
	scene_close(&s);
}

/* The rows of those that come last are apart. */
static void so_does_a_call_of_many_nodes(void **state)
{
	struct lend_answer answer = { 0 };
	struct redis_talk user;
	struct scene s;

	(void)state;
	scene_open(&s, gale_quota_anchored(100, GALE_SPAN_MAX_US, 0));
	user_open(&user);
	for (uint64_t node = 1; node <= MANY_NODES; node++) {
		job(&s, 0, REMOTE_LEND, "k")->ask.node = node;
		touches_what_it_names(&s, &user);
		remote_explain_lend(&s.jobs[0], &s.told[0], &answer);
		assert_int_equal(answer.grant.units, 5);
	}
	there_are_keys(3);
	job(&s, 0, REMOTE_BACK, "k")->ask =
	    (struct lease_ask){ .node = MANY_NODES, .number = 2 };
	s.jobs[0].tag = answer.grant.tag;
	touches_what_it_names(&s, &user);
	remote_explain_lend(&s.jobs[0], &s.told[0], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	user_close(&user);
	scene_close(&s);
}

static void so_do_a_beat_and_a_claim(void **state)
{
	const struct store_beat beat = {
		.node = (const uint8_t *)"n",
		.node_len = 1,
		.settings = { .law = GROUP_MEDIAN,
		              .parts = GROUP_EQUAL,
		              .start = 1,
		              .floor = 1,
		              .ceiling = 100,
		              .lease_us = GALE_SECONDS(30) },
		.report = { .incarnation = 1, .seq = 1, .weight = 1, .estimate = 10 },
	};
	const struct store_claim claim = {
		.tenant = (const uint8_t *)"t",
		.tenant_len = 1,
		.node = 1,
		.ask = { .limit = 9,
		         .period_us = GALE_HOURS(1),
		         .cap = GALE_UNITS_MAX,
		         .weight = 1,
		         .present = 1,
		         .more = 1,
		         .least = 1 },
	};
	struct redis_talk user;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(9, GALE_HOURS(1)));
	user_open(&user);
	s.script = &redis_beat_script;
	load_script(s.script);
	s.jobs[0] = (struct remote_job){ .verb = REMOTE_BEAT,
		                         .key = bytes_of("g"),
		                         .beat = &beat };
	touches_what_it_names(&s, &user);
	s.script = &redis_claim_script;
	load_script(s.script);
	s.jobs[0] = (struct remote_job){ .verb = REMOTE_CLAIM,
		                         .key = bytes_of("p"),
		                         .claim = &claim };
	touches_what_it_names(&s, &user);
	there_are_keys(6); /* of a group three, of a pool two */
	user_close(&user);
	scene_close(&s);
}

/* ---- Batches --------------------------------------------------------------------- */

static void a_call_does_sixty_four_jobs(void **state)
{
	char keys[REMOTE_BATCH_MOST][8];
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	for (size_t i = 0; i < REMOTE_BATCH_MOST; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
		s.buckets[i] = (uint8_t)(4 * i);
		job(&s, i, REMOTE_STEP, keys[i]);
	}
	assert_int_equal(call(&s, REMOTE_BATCH_MOST), REDIS_TOLD);
	assert_int_equal(call(&s, REMOTE_BATCH_MOST), REDIS_TOLD);
	for (size_t i = 0; i < REMOTE_BATCH_MOST; i++) {
		struct store_op op;

		assert_int_equal(remote_explain_step(&s.jobs[i], &s.told[i], &op),
		                 STORE_DONE);
		assert_int_equal(op.answer.remaining, 1);
	}
	scene_close(&s);
}

static void a_key_may_come_twice_in_a_call(void **state)
{
	struct scene s;
	struct store_op op;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	for (size_t i = 0; i < 5; i++)
		job(&s, i, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 5), REDIS_TOLD);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(remote_explain_step(&s.jobs[i], &s.told[i], &op),
		                 STORE_DONE);
		assert_int_equal(op.answer.verdict, i < 3 ? GALE_ALLOW : GALE_DENY);
	}
	scene_close(&s);
}

/* Bytes that mean something to protocols and shells, or that only differ late. */
static void keys_are_any_bytes(void **state)
{
	static const struct remote_bytes keys[] = {
		{ (const uint8_t *)"a", 1 },
		{ (const uint8_t *)"a\0", 2 },
		{ (const uint8_t *)"a\0b", 3 },
		{ (const uint8_t *)"\r\n$1\r\n", 6 },
		{ (const uint8_t *)"{b01}:a", 7 },
		{ (const uint8_t *)"}", 1 },
		{ (const uint8_t *)"%s%n", 4 },
		{ (const uint8_t *)"\xff\xfe", 2 },
		{ (const uint8_t *)"generation", 10 },
		{ (const uint8_t *)"", 0 },
	};
	const size_t count = sizeof(keys) / sizeof(keys[0]);
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	for (size_t i = 0; i < count; i++)
		job(&s, i, REMOTE_STEP, "")->key = keys[i];
	assert_int_equal(call(&s, count), REDIS_TOLD);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(s.told[i].code, REMOTE_DONE);
		assert_int_equal(s.told[i].before.count, 0); /* nobody else's */
	}
	scene_close(&s);
}

/* ---- Values that are not the rule's ---------------------------------------------- */

static const enum remote_verb readers[] = { REMOTE_STEP, REMOTE_LEND, REMOTE_BACK,
	                                    REMOTE_READ, REMOTE_SWAP };

static void another_type_is_left_alone(void **state)
{
	struct scene s;
	redisReply *length;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "RPUSH " PREFIX "{b00}:k one two");
	for (size_t i = 0; i < 5; i++)
		job(&s, i, readers[i], "k");
	assert_int_equal(call(&s, 5), REDIS_TOLD);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(s.told[i].code, REMOTE_GARBLED);
	job(&s, 0, REMOTE_LEND, "another")->ask.want = 3;
	job(&s, 1, REMOTE_LEND, "k")->ask.want = 3; /* follows it */
	assert_int_equal(call(&s, 2), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_LENT);
	assert_int_equal(s.told[1].code, REMOTE_GARBLED);
	job(&s, 0, REMOTE_LEND, "k")->ask.want = 3;
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_GARBLED);
	length = redis_talk_say(&talk, "LLEN " PREFIX "{b00}:k");
	assert_int_equal(length->integer, 2);
	redis_reply_free(length);
	job(&s, 0, REMOTE_DROP, "k"); /* whatever it is */
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_int_equal(step(&s, "k").verdict, GALE_ALLOW);
	scene_close(&s);
}

static void other_parameters_are_refused(void **state)
{
	const struct gale_rule rules[] = { gale_fixed_window(3, HOUR / 2),
		                           gale_gcra(3, HOUR, 3),
		                           gale_token_budget(3, HOUR) };
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	step(&s, "k");
	for (size_t i = 0; i < 3; i++) {
		struct rule own = s.rule;

		assert_int_equal(rule_compile(&rules[i], &s.rule), GALE_ERR_OK);
		job(&s, 0, REMOTE_STEP, "k");
		assert_int_equal(call(&s, 1), REDIS_TOLD);
		assert_int_equal(s.told[0].code, REMOTE_CHANGED);
		s.rule = own;
	}
	assert_int_equal(step(&s, "k").remaining, 1);
	scene_close(&s);
}

/* Of those that follow another, too, whose values are read together. */
static void lends_by_other_parameters_are_refused(void **state)
{
	const struct gale_rule other = gale_fixed_window(1000, HOUR * 2);
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(100, HOUR));
	job(&s, 0, REMOTE_LEND, "k");
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_int_equal(rule_compile(&other, &s.rule), GALE_ERR_OK);
	job(&s, 0, REMOTE_LEND, "another");
	job(&s, 1, REMOTE_LEND, "k");
	s.jobs[1].ask.number = 2;
	assert_int_equal(call(&s, 2), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_LENT);
	assert_int_equal(s.told[1].code, REMOTE_CHANGED);
	scene_close(&s);
}

/* Of a length that a value may have: of windows with rows, as they are folded. */
static size_t some_length(struct chance *c, const struct rule *rule, size_t count)
{
	if (chance_one_in(c, 4))
		return chance_size(c, VALUE_MOST);
	if (value_can_fold(rule) && !chance_one_in(c, 4))
		return 72 + 32 * chance_below(c, 9);
	return count + 48 * chance_below(c, 10);
}

static double some_number(struct chance *c)
{
	const double numbers[] = { 0,         1,        2,
		                   3,         -1,       0.5,
		                   1e300,     5e-324,   9007199254740992,
		                   1.0 / 0.0, 0.0 / 0.0 };

	return numbers[chance_below(c, sizeof(numbers) / sizeof(numbers[0]))];
}

static void put_words(uint8_t *out, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < 8 * count; i++)
		out[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
}

static size_t some_garbage(struct chance *c, const struct rule *rule, uint8_t *out)
{
	const uint64_t from = servers_time() / HOUR * HOUR,
		       begins[] = { from, from, 1 };
	uint64_t words[VALUE_WORDS_MOST] = { 0 };
	size_t count = some_length(c, rule, state_encode(rule, words, out));
	bool doubles = chance_one_in(c, 2);

	for (size_t i = STATE_HEAD_BYTES; i < count; i++)
		out[i] = chance_one_in(c, 3) && !doubles ? (uint8_t)chance_next(c) : 0;
	for (size_t i = 40; i + 8 <= count && doubles; i += 8) {
		double number = some_number(c);

		memcpy(out + i, &number, sizeof(number));
	}
	if (value_can_fold(rule) && count >= 72 && chance_one_in(c, 2))
		put_words(out + STATE_HEAD_BYTES, begins, 3); /* as it is folded */
	for (size_t i = chance_below(c, 4); i > 1; i--)
		out[chance_below(c, count)] = (uint8_t)chance_next(c);
	return count;
}

/* Whatever stands there, the script answers, and what it refuses stays as it is. */
static void garbage_is_an_answer(void **state)
{
	const struct gale_rule rules[] = { gale_fixed_window(3, HOUR),
		                           gale_quota_monthly(GALE_UNITS_MAX, 0),
		                           gale_gcra(3, HOUR, 3),
		                           gale_token_bucket(9, 7, HOUR) };
	struct chance c = { 1 };
	struct scene s;
	uint64_t refused = 0;

	(void)state;
	for (size_t n = 0; n < 2000; n++) {
		uint8_t bytes[VALUE_MOST] = { 0 };
		size_t count;

		if (n % 500 == 0)
			scene_open(&s, rules[n / 500]);
		count = some_garbage(&c, &s.rule, bytes);
		set_value("k", bytes, count);
		job(&s, 0, readers[n % 3], "k");
		if (n % 2 == 0) { /* or it is a lend that follows another */
			s.jobs[0].key = bytes_of("another");
			job(&s, 1, readers[n % 3], "k");
		}
		s.jobs[n % 2 == 0].ask.want = chance_between(&c, 1, 5);
		assert_int_equal(call(&s, n % 2 == 0 ? 2 : 1), REDIS_TOLD);
		if (s.told[n % 2 == 0].code != REMOTE_DONE) {
			refused++;
			assert_true(is_value("k", bytes, count));
		}
		if (n % 500 == 499)
			scene_close(&s);
	}
	assert_in_range(refused, 1000, 2000);
}

/* As it may be, or not quite: windows from before and from ahead, nothing used, all of it. */
static size_t some_window(struct chance *c, const struct scene *s, uint64_t from,
                          uint8_t *ret_bytes)
{
	uint8_t out[VALUE_MOST];
	const uint64_t starts[] = { from, from, from, from - HOUR, from + HOUR };
	const uint64_t used[] = { 0, 1, 7, 98, 99, 100 };
	uint64_t state[VALUE_WORDS_MOST] = { starts[chance_below(c, 5)],
		                             used[chance_below(c, 6)] };
	size_t rows = chance_below(c, 3);
	size_t count = state_encode(&s->rule, state, out);

	for (size_t i = 0; i < rows; i++, count += 48) {
		const uint64_t row[] = { i == 0 ? chance_between(c, 1, 2) : 3,
			                 chance_below(c, 3),
			                 1,
			                 1,
			                 chance_one_in(c, 3)
			                     ? starts[chance_below(c, 5)]
			                     : state[0],
			                 0 };

		put_words(out + count, row, 6);
	}
	count = value_fold(&s->rule, out, count, ret_bytes);
	if (chance_one_in(c, 16))
		ret_bytes[chance_below(c, count)]++;
	return count + chance_one_in(c, 16);
}

/* Of the window that is now, one unit of which is out with node 1. */
static size_t folded_window(const struct scene *s, uint8_t *out)
{
	uint64_t words[VALUE_WORDS_MOST] = { servers_time() / HOUR * HOUR, 1 };
	const uint64_t row[] = { 1, 1, 1, 1, words[0], 0 };
	uint8_t plain[VALUE_MOST];
	size_t count = state_encode(&s->rule, words, plain);

	put_words(plain + count, row, 6);
	return value_fold(&s->rule, plain, count + 48, out);
}

static void expect_garbled(struct scene *s, const uint8_t *bytes, size_t count)
{
	set_value("k", bytes, count);
	for (size_t i = 0; i < 3; i++) {
		job(s, 0, readers[i], "k")->ask.number = 2;
		s->jobs[0].ask.want = 1;
		assert_int_equal(call(s, 1), REDIS_TOLD);
		assert_int_equal(s->told[0].code, REMOTE_GARBLED);
		assert_true(is_value("k", bytes, count));
	}
}

/* Folded, used is a double: one that no limit has room for is nobody's. */
static void what_is_used_must_be_a_number(void **state)
{
	const double bad[] = { -1, 9007199254740992, 0.0 / 0.0 };
	uint8_t bytes[VALUE_MOST];
	struct scene s;
	size_t count;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	count = folded_window(&s, bytes);
	for (size_t i = 0; i < 3; i++) {
		memcpy(bytes + 48, &bad[i], sizeof(bad[0]));
		expect_garbled(&s, bytes, count);
	}
	scene_close(&s);
}

static void a_window_starts_at_an_instant(void **state)
{
	const uint64_t after_all = INSTANT_MAX_US + 2;
	uint8_t bytes[VALUE_MOST];
	struct scene s;
	size_t count;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	count = folded_window(&s, bytes);
	put_words(bytes + STATE_HEAD_BYTES, &after_all, 1);
	expect_garbled(&s, bytes, count);
	scene_close(&s);
}

static int64_t expiry_of(const char *key)
{
	char command[64];
	redisReply *reply;
	int64_t expiry;

	snprintf(command, sizeof(command), "PEXPIRETIME " PREFIX "{b00}:%s", key);
	reply = redis_talk_say(&talk, command);
	expiry = reply->integer;
	redis_reply_free(reply);
	return expiry;
}

static void lend_of(struct scene *s, size_t i, const char *key)
{
	job(s, i, REMOTE_LEND, key);
	s->jobs[i].ask =
	    (struct lease_ask){ .node = 1, .number = 2, .want = 2, .least = 1 };
}

static void expect_same_grants(const struct remote_told *a, const struct remote_told *b,
                               const struct remote_job *job)
{
	struct lend_answer first, second;

	assert_int_equal(a->code == REMOTE_LENT ? REMOTE_DONE : a->code,
	                 b->code == REMOTE_LENT ? REMOTE_DONE : b->code);
	remote_explain_lend(job, a, &first);
	remote_explain_lend(job, b, &second);
	assert_int_equal(first.result, second.result);
	assert_int_equal(first.grant.units, second.grant.units);
	assert_int_equal(first.grant.tag.us, second.grant.tag.us);
	assert_int_equal(first.grant.left, second.grant.left);
	assert_int_equal(first.grant.holders, second.grant.holders);
	assert_int_equal(first.grant.others, second.grant.others);
	assert_int_equal(first.grant.retry_us == 0, second.grant.retry_us == 0);
}

/* What came of a lend. */
struct came {
	struct remote_told told;
	redisReply *value; /* that is there now */
	int64_t expiry;
};

static void came_of(struct scene *s, size_t i, const char *key, const uint8_t *bytes,
                    size_t count, struct came *ret_came)
{
	ret_came->told = s->told[i];
	if (ret_came->told.code == REMOTE_DONE) {
		assert_int_equal(ret_came->told.before.count, count);
		assert_memory_equal(ret_came->told.before.bytes, bytes, count);
	}
	if (ret_came->told.code !=
	    REMOTE_LENT) /* the reply is freed before it is looked at */
		ret_came->told.before = (struct remote_bytes){
			bytes, ret_came->told.code == REMOTE_DONE ? count : 0
		};
	ret_came->value = value_of(key);
	ret_came->expiry = expiry_of(key);
	assert_int_equal(ret_came->value->type, REDIS_REPLY_STRING);
}

/* What the engine says of the value as it was, if it is one. */
static void expect_as_engine(const struct remote_told *told,
                             const struct remote_job *job, const uint8_t *bytes,
                             size_t count)
{
	const struct remote_told before = { .now_us = told->now_us,
		                            .before = { bytes, count } };
	struct lend_answer answer;

	remote_explain_lend(job, &before, &answer);
	if (answer.result == STORE_DONE)
		expect_same_grants(told, &before, job);
}

static void expect_same_came(const struct came *came, const struct came *other,
                             const struct remote_job *job, const uint8_t *bytes,
                             size_t count)
{
	uint64_t apart_us = other->told.now_us - came->told.now_us;

	expect_same_grants(&came->told, &other->told, job);
	expect_as_engine(&came->told, job, bytes, count);
	assert_int_equal(came->value->len, other->value->len);
	assert_memory_equal(came->value->str, other->value->str, other->value->len);
	assert_in_range(came->expiry - other->expiry, 0, apart_us / 1000 + 1);
}

/* As one that follows another, alone, and behind a job that is no lend: the last goes the
 * long way, as is seen of new keys, of which that tells no number.  What is told as a number
 * the engine grants, too, of the value as it was.  Whatever stands there. */
static void a_lend_is_the_same_whichever_way_it_goes(void **state)
{
	static const char *const keys[] = { "follows", "alone", "behind" };
	struct chance c = { 1 };
	uint64_t as_number = 0;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(100, HOUR));
	step(&s, "another");
	for (size_t n = 0; n < 3000; n++) {
		uint64_t from = s.told[0].now_us - s.told[0].now_us % HOUR;
		uint8_t bytes[VALUE_MOST] = { 0 };
		size_t count = n % 16 == 0 ? 0 : some_window(&c, &s, from, bytes);
		struct came came[3];

		redis_talk_do(&talk, "DEL " PREFIX "{b00}:another " PREFIX
		                     "{b00}:follows " PREFIX "{b00}:alone " PREFIX
		                     "{b00}:behind");
		for (size_t i = 0; i < 3 && count > 0; i++)
			set_value(keys[i], bytes, count);
		for (size_t i = 0; i < 3; i++) {
			job(&s, 0, REMOTE_READ, "another");
			if (i == 0)
				lend_of(&s, 0, "another");
			lend_of(&s, i != 1, keys[i]);
			assert_int_equal(call(&s, i == 1 ? 1 : 2), REDIS_TOLD);
			came_of(&s, i != 1, keys[i], bytes, count, &came[i]);
		}
		assert_int_equal(came[0].told.code, came[1].told.code);
		if (count == 0) { /* that it does go that way */
			assert_int_equal(came[1].told.code, REMOTE_LENT);
			assert_int_equal(came[2].told.code, REMOTE_DONE);
		}
		as_number += came[0].told.code == REMOTE_LENT;
		expect_same_came(&came[0], &came[2], &s.jobs[1], bytes, count);
		expect_same_came(&came[1], &came[2], &s.jobs[1], bytes, count);
		for (size_t i = 0; i < 3; i++)
			redis_reply_free(came[i].value);
	}
	assert_in_range(as_number, 20, 2900);
	scene_close(&s);
}

#define JOBS 12
#define DECADE GALE_DAYS(3650)

/* Of one key and the next the rule is mostly another; some are asked twice by one number, and
 * some before their instant. */
static void some_job(struct scene *s, struct chance *c, size_t i, const char *key,
                     const struct rule *rule)
{
	static const enum remote_verb verbs[] = {
		REMOTE_LEND, REMOTE_LEND, REMOTE_LEND, REMOTE_LEND, REMOTE_LEND,
		REMOTE_BACK, REMOTE_STEP, REMOTE_READ, REMOTE_DROP
	};
	uint64_t now = servers_time();

	job(s, i, verbs[chance_below(c, 9)], key);
	s->jobs[i].rule = rule;
	s->jobs[i].cost = chance_between(c, 1, 3);
	s->jobs[i].ask =
	    (struct lease_ask){ .node = chance_one_in(c, 5) ? 2 : 1,
		                .number = s->nonce * JOBS + i + !chance_one_in(c, 6),
		                .want = chance_between(c, 1, 8),
		                .least = 1,
		                .spent = chance_below(c, 2) };
	s->jobs[i].tag.us = now - now % DECADE;
	s->jobs[i].not_before_us = chance_one_in(c, 8) ? now + HOUR : 0;
}

static void expect_same_told(const struct remote_told *a, const struct remote_told *b,
                             const struct remote_job *job)
{
	if (job->verb == REMOTE_LEND) {
		expect_same_grants(a, b, job);
		return;
	}
	assert_int_equal(a->code, b->code);
	assert_int_equal(a->before.count, b->before.count);
	if (a->before.count > 0)
		assert_memory_equal(a->before.bytes, b->before.bytes, a->before.count);
}

static void expect_same_value(const char *key, const char *other)
{
	redisReply *value = value_of(key), *its = value_of(other);

	assert_int_equal(value->type, its->type);
	assert_int_equal(value->len, its->len);
	if (value->type == REDIS_REPLY_STRING)
		assert_memory_equal(value->str, its->str, its->len);
	redis_reply_free(value);
	redis_reply_free(its);
}

/* Whatever of it goes the quick way: jobs of one key are done in their order. */
static void a_call_does_what_its_jobs_do_one_by_one(void **state)
{
	static const char *const keys[] = { "a", "b", "c", "d" };
	static const char *const others[] = { "A", "B", "C", "D" };
	const struct gale_rule other = gale_fixed_window(30, DECADE);
	const struct rule *rules[2];
	struct chance c = { 1 };
	struct scene s, one;

	(void)state;
	scene_open(&s, gale_fixed_window(60, DECADE));
	scene_open(&one, other);
	rules[0] = &s.rule;
	rules[1] = &one.rule;
	for (size_t n = 0; n < 2000; n++) {
		size_t which[JOBS], count = chance_between(&c, 1, JOBS);

		for (size_t i = 0; i < count; i++) {
			which[i] = chance_below(&c, 4);
			some_job(&s, &c, i, keys[which[i]],
			         rules[chance_one_in(&c, 8) ^ (which[i] % 2)]);
		}
		assert_int_equal(call(&s, count), REDIS_TOLD);
		for (size_t i = 0; i < count; i++) {
			one.jobs[0] = s.jobs[i];
			one.jobs[0].key = bytes_of(others[which[i]]);
			assert_int_equal(call(&one, 1), REDIS_TOLD);
			expect_same_told(&s.told[i], &one.told[0], &s.jobs[i]);
		}
		for (size_t i = 0; i < 4; i++)
			expect_same_value(keys[i], others[i]);
	}
	scene_close(&s);
	scene_close(&one);
}

/* ---- Swaps ----------------------------------------------------------------------- */

static void a_swap_needs_what_it_was(void **state)
{
	static const uint8_t old[] = "old\0\r\n", new[] = "new";
	struct scene s;

	(void)state;
	scene_open(&s, gale_sliding_log(3, HOUR));
	set_value("k", old, sizeof(old));
	for (size_t i = 0; i < 3; i++) {
		job(&s, i, REMOTE_SWAP, "k");
		s.jobs[i].becomes = (struct remote_bytes){ new, sizeof(new) };
		s.jobs[i].expires_us = servers_time() + HOUR;
	}
	s.jobs[0].was = (struct remote_bytes){ old, sizeof(old) - 1 };
	s.jobs[2].was = (struct remote_bytes){ old, sizeof(old) };
	assert_int_equal(call(&s, 3), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_MOVED);
	assert_int_equal(s.told[1].code, REMOTE_MOVED); /* not a new key */
	assert_int_equal(s.told[2].code, REMOTE_DONE);
	assert_true(is_value("k", new, sizeof(new)));
	s.jobs[0].was = s.jobs[0].becomes;
	s.jobs[0].becomes = (struct remote_bytes){ 0 };
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_true(is_gone("k"));
	scene_close(&s);
}

static void a_value_that_is_too_long_is_not_read(void **state)
{
	static uint8_t bytes[VALUE_MOST];
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	set_value("k", bytes, sizeof(bytes));
	job(&s, 0, REMOTE_READ, "k");
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_GARBLED);
	scene_close(&s);
}

/* ---- Servers that forget or refuse ----------------------------------------------- */

static void another_generation_changes_nothing(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "SET " PREFIX "{b00}generation second");
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_GENERATION);
	assert_int_equal(s.said.generation_count, 6);
	assert_memory_equal(s.said.generation, "second", 6);
	redis_talk_do(&talk, "DEL " PREFIX "{b00}generation");
	assert_int_equal(call(&s, 1), REDIS_GENERATION);
	assert_int_equal(s.said.generation_count, 0);
	assert_true(is_gone("k"));
	s.generation = ""; /* of a server that never had one */
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	scene_close(&s);
}

static void before_its_instant_what_takes_waits(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	job(&s, 0, REMOTE_STEP, "k")->not_before_us = servers_time() + HOUR;
	job(&s, 1, REMOTE_LEND, "k")->not_before_us = servers_time() + HOUR;
	job(&s, 2, REMOTE_SWAP, "k")->not_before_us = servers_time() + HOUR;
	job(&s, 3, REMOTE_READ, "k")->not_before_us = servers_time() + HOUR;
	job(&s, 4, REMOTE_BACK, "k")->not_before_us = servers_time() + HOUR;
	assert_int_equal(call(&s, 5), REDIS_TOLD);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(s.told[i].code, REMOTE_WAITS);
	assert_int_equal(s.told[3].code, REMOTE_DONE);
	assert_int_equal(s.told[4].code, REMOTE_DONE);
	assert_true(is_gone("k"));
	scene_close(&s);
}

/* The estimate is of 2023; the month that it is now is not among those sent. */
static void a_month_that_was_not_sent_is_said(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_quota_monthly(3, 60));
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_TOLD);
	assert_int_equal(s.told[0].code, REMOTE_CALENDAR);
	assert_true(is_gone("k"));
	scene_close(&s);
}

static void a_script_that_was_forgotten_is_loaded_again(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "SCRIPT FLUSH");
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_NOSCRIPT);
	load_script(&redis_step_script);
	assert_int_equal(step(&s, "k").remaining, 2);
	scene_close(&s);
}

static void a_full_server_says_so(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "CONFIG SET maxmemory 1");
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_FULL);
	redis_talk_do(&talk, "CONFIG SET maxmemory 0");
	assert_true(is_gone("k"));
	scene_close(&s);
}

static void a_replica_says_so(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "REPLICAOF 127.0.0.1 1");
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_READONLY);
	redis_talk_do(&talk, "REPLICAOF NO ONE");
	scene_close(&s);
}

static void a_replica_without_a_master_is_asked_later(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "CONFIG SET replica-serve-stale-data no");
	redis_talk_do(&talk, "REPLICAOF 127.0.0.1 1");
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call(&s, 1), REDIS_LATER);
	redis_talk_do(&talk, "REPLICAOF NO ONE");
	redis_talk_do(&talk, "CONFIG SET replica-serve-stale-data yes");
	scene_close(&s);
}

static void a_stranger_is_not_let_in(void **state)
{
	struct redis_talk stranger;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "CONFIG SET requirepass secret");
	redis_talk_open(&stranger, &server);
	job(&s, 0, REMOTE_STEP, "k");
	assert_int_equal(call_with(&s, &stranger, 1), REDIS_NOT_LET);
	redis_talk_close(&stranger);
	redis_talk_do(&talk, "ACL SETUSER default nopass");
	scene_close(&s);
}

/* No more than step.lua's. */
static void a_user_needs_little(void **state)
{
	struct redis_talk user;
	struct lend_answer answer;
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	redis_talk_do(&talk, "ACL SETUSER least on nopass resetkeys ~" PREFIX "* -@all "
	                     "+evalsha +script|load +time +get +set +setrange +del");
	redis_talk_open(&user, &server);
	redis_talk_do(&user, "AUTH least any");
	job(&s, 0, REMOTE_STEP, "k");
	job(&s, 1, REMOTE_LEND, "k");
	job(&s, 2, REMOTE_STEP, "k");
	job(&s, 3, REMOTE_READ, "k");
	job(&s, 4, REMOTE_DROP, "k");
	assert_int_equal(call_with(&s, &user, 5), REDIS_TOLD);
	for (int i = 0; i < 3; i++) { /* with MGET it is the same, but faster */
		lend_of(&s, 0, "one");
		lend_of(&s, 1, "two");
		s.jobs[0].ask.number += (uint64_t)i;
		s.jobs[1].ask.number += (uint64_t)i;
		s.jobs[0].ask.want = s.jobs[1].ask.want = 1;
		assert_int_equal(call_with(&s, &user, 2), REDIS_TOLD);
		remote_explain_lend(&s.jobs[1], &s.told[1], &answer);
		assert_int_equal(answer.grant.units, 1);
		if (i == 1)
			redis_talk_do(&talk, "ACL SETUSER least +mget");
	}
	job(&s, 0, REMOTE_STEP, "new");
	redis_talk_do(&talk, "ACL SETUSER least -set");
	assert_int_equal(call_with(&s, &user, 1), REDIS_ERROR);
	/* Redis says the first, and Valkey the other. */
	assert_true(strstr(s.said.text, "can't run this command") ||
	            strstr(s.said.text, "no permissions to run the 'set' command"));
	redis_talk_do(&talk, "ACL SETUSER least -evalsha");
	assert_int_equal(call_with(&s, &user, 1), REDIS_NOT_LET);
	redis_talk_close(&user);
	redis_talk_do(&talk, "ACL DELUSER least");
	scene_close(&s);
}

static bool is_up(void *arg)
{
	redisReply *reply = redis_talk_say(arg, "CLUSTER INFO");
	bool up = strstr(reply->str, "cluster_state:ok");

	redis_reply_free(reply);
	return up;
}

/* A batch stays in one slot of a cluster if its keys are of one bucket. */
static void a_bucket_is_in_one_slot(void **state)
{
	char port[8]; /* or it is that of every such server on this machine */
	const char *const options[] = { "--cluster-enabled", "yes", "--cluster-port",
		                        port, NULL };
	struct redis_server node;
	struct redis_talk with;
	struct scene s;

	(void)state;
	snprintf(port, sizeof(port), "%u", free_port());
	scene_open(&s, gale_fixed_window(3, HOUR));
	s.generation = "";
	redis_server_start(&node, options);
	redis_talk_open(&with, &node);
	assert_true(redis_put_script(&with.text, &redis_step_script));
	redis_talk_send(&with);
	redis_reply_free(redis_talk_hear(&with));
	job(&s, 0, REMOTE_STEP, "{a}");
	job(&s, 1, REMOTE_STEP, "{b}");
	assert_int_equal(call_with(&s, &with, 2), REDIS_TRYAGAIN);
	redis_talk_do(&with, "CLUSTER ADDSLOTSRANGE 0 16383");
	assert_true(becomes_true(is_up, &with));
	assert_int_equal(call_with(&s, &with, 2), REDIS_TOLD);
	s.buckets[1] = 1;
	assert_int_equal(call_with(&s, &with, 2), REDIS_ERROR); /* CROSSSLOT */
	redis_talk_close(&with);
	redis_server_stop(&node);
	scene_close(&s);
}

static void an_answer_to_something_else_is_noticed(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, gale_fixed_window(3, HOUR));
	job(&s, 0, REMOTE_STEP, "k");
	say(&s, &talk, 1);
	redis_talk_send(&talk);
	s.reply = redis_talk_hear(&talk);
	redis_read_reply(s.reply, s.nonce + 1, s.jobs, 1, s.told, &s.said);
	assert_int_equal(s.said.word, REDIS_NOT_OURS);
	scene_close(&s);
}

static int start(void **state)
{
	(void)state;
	redis_server_start(&server, NULL);
	redis_talk_open(&talk, &server);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	redis_talk_close(&talk);
	redis_server_stop(&server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_made_at_the_servers_time),
		cmocka_unit_test(a_value_lives_as_long_as_it_counts),
		cmocka_unit_test(an_expired_value_is_gone),
		cmocka_unit_test(a_clock_that_was_set_back_ends_the_generation),
		cmocka_unit_test(the_latest_time_is_kept_to_the_second),
		cmocka_unit_test(a_call_touches_the_keys_that_it_names),
		cmocka_unit_test(so_does_a_call_of_many_nodes),
		cmocka_unit_test(so_do_a_beat_and_a_claim),
		cmocka_unit_test(a_call_does_sixty_four_jobs),
		cmocka_unit_test(a_key_may_come_twice_in_a_call),
		cmocka_unit_test(keys_are_any_bytes),
		cmocka_unit_test(another_type_is_left_alone),
		cmocka_unit_test(other_parameters_are_refused),
		cmocka_unit_test(lends_by_other_parameters_are_refused),
		cmocka_unit_test(garbage_is_an_answer),
		cmocka_unit_test(what_is_used_must_be_a_number),
		cmocka_unit_test(a_window_starts_at_an_instant),
		cmocka_unit_test(a_lend_is_the_same_whichever_way_it_goes),
		cmocka_unit_test(a_call_does_what_its_jobs_do_one_by_one),
		cmocka_unit_test(a_swap_needs_what_it_was),
		cmocka_unit_test(a_value_that_is_too_long_is_not_read),
		cmocka_unit_test(another_generation_changes_nothing),
		cmocka_unit_test(before_its_instant_what_takes_waits),
		cmocka_unit_test(a_month_that_was_not_sent_is_said),
		cmocka_unit_test(a_script_that_was_forgotten_is_loaded_again),
		cmocka_unit_test(a_full_server_says_so),
		cmocka_unit_test(a_replica_says_so),
		cmocka_unit_test(a_replica_without_a_master_is_asked_later),
		cmocka_unit_test(a_stranger_is_not_let_in),
		cmocka_unit_test(a_user_needs_little),
		cmocka_unit_test(a_bucket_is_in_one_slot),
		cmocka_unit_test(an_answer_to_something_else_is_noticed),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
