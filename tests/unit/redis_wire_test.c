/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_wire_test.c -- what is said to a server, and which of its replies are believed.
 *
 * No server here: bytes in, bytes out.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "stores/redis/cluster.h"
#include "stores/redis/reply.h"
#include "stores/redis/url.h"
#include "stores/redis/wire.h"
#include "sim/allocator.h"

#define HOUR GALE_HOURS(1)
#define STRING_MOST 512

static struct remote_bytes bytes_of(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	assert_int_equal(rule_compile(&config, &rule), GALE_ERR_OK);
	return rule;
}

/* ---- Keys ------------------------------------------------------------------------ */

static void a_prefix_has_no_braces(void **state)
{
	(void)state;
	assert_true(redis_prefix_valid(""));
	assert_true(redis_prefix_valid("gale:"));
	assert_false(redis_prefix_valid("a{b"));
	assert_false(redis_prefix_valid("a}b"));
	assert_false(redis_prefix_valid("a prefix that is by far too long for this, "
	                                "as nobody needs one with more letters"));
}

static void a_keys_bytes_stand_behind_its_tag(void **state)
{
	uint8_t key[REDIS_KEY_MAX];
	size_t count;

	(void)state;
	count = redis_key(key, "gale:", 0xa5, bytes_of("{x}:y"));
	assert_int_equal(count, 16);
	assert_memory_equal(key, "gale:{ba5}:{x}:y", count);
	count = redis_key(key, "", 0, bytes_of(""));
	assert_memory_equal(key, "{b00}:", count);
	count = redis_generation_key(key, "gale:", 7);
	assert_int_equal(count, 20);
	assert_memory_equal(key, "gale:{b07}generation", count);
}

/* For ever: nodes of all versions share one cluster. */
static void a_key_has_a_bucket_and_a_bucket_a_slot(void **state)
{
	static const struct {
		const char *key;
		uint16_t crc;
	} keys[] = {
		{ "", 0 },
		{ "123456789", 0x31c3 },
		{ "b00", 0xc6cd },
	};
	static const uint16_t slots[] = { 1741, 5868, 9871 };
	bool taken[REDIS_SLOTS] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const struct remote_bytes key = bytes_of(keys[i].key);

		assert_int_equal(redis_crc16(key.bytes, key.count), keys[i].crc);
		assert_int_equal(redis_bucket(key.bytes, key.count),
		                 keys[i].crc & 0xff);
	}
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		assert_int_equal(redis_slot((uint8_t)i), slots[i]);
	for (unsigned i = 0; i < MAP_BUCKETS; i++) {
		assert_false(taken[redis_slot((uint8_t)i)]);
		taken[redis_slot((uint8_t)i)] = true;
	}
}

static void the_longest_key_fits(void **state)
{
	uint8_t key[REDIS_KEY_MAX], raw[STORE_KEY_MAX] = { 0 };
	char prefix[REDIS_PREFIX_MAX + 1];

	(void)state;
	memset(prefix, 'p', REDIS_PREFIX_MAX);
	prefix[REDIS_PREFIX_MAX] = '\0';
	assert_int_equal(redis_group_key(key, prefix, 255, REDIS_ESTIMATES,
	                                 (struct remote_bytes){ raw, sizeof(raw) }),
	                 REDIS_KEY_MAX);
	assert_int_equal(
	    redis_key(key, prefix, 255, (struct remote_bytes){ raw, sizeof(raw) }),
	    REDIS_KEY_MAX - strlen(REDIS_ESTIMATES));
}

/* ---- Commands -------------------------------------------------------------------- */

static void words_are_sent_with_their_lengths(void **state)
{
	struct test_allocator allocator;
	struct redis_text text = { .allocator = &allocator.allocator };
	const struct remote_bytes words[] = {
		bytes_of("GET"),
		{ (const uint8_t *)"a\0\r\n", 4 },
	};
	static const char said[] = "*2\r\n$3\r\nGET\r\n$4\r\na\0\r\n\r\n";

	(void)state;
	test_allocator_init(&allocator);
	assert_true(redis_put_words(&text, words, 2));
	assert_int_equal(text.count, sizeof(said) - 1);
	assert_memory_equal(text.bytes, said, text.count);
	redis_text_cut(&text, 4);
	assert_memory_equal(text.bytes, said + 4, text.count);
	redis_text_cut(&text, text.count);
	assert_int_equal(text.count, 0);
	redis_text_free(&text);
	assert_true(test_allocator_is_balanced(&allocator));
}

struct batch {
	struct rule rule;
	struct remote_job jobs[REMOTE_BATCH_MOST];
	uint8_t buckets[REMOTE_BATCH_MOST];
	struct redis_call call;
};

static void batch_of(struct batch *b, size_t count)
{
	*b = (struct batch){ .rule = compiled(gale_fixed_window(3, HOUR)) };
	for (size_t i = 0; i < count; i++)
		b->jobs[i] = (struct remote_job){ .verb = REMOTE_STEP,
			                          .rule = &b->rule,
			                          .key = bytes_of("k"),
			                          .cost = 1 };
	b->call = (struct redis_call){
		.script = &redis_step_script,
		.prefix = "gale:",
		.generation = bytes_of("g"),
		.nonce = GALE_UNITS_MAX,
		.sure_until_us = GALE_UNITS_MAX,
		.jobs = b->jobs,
		.buckets = b->buckets,
		.count = count,
	};
}

/* What was put is one command of so many words: read back by the parser. */
/* All keys that the script touches are named, and in the slot of the generation's. */
static void beats_are_one_command(void **state)
{
	static const struct store_beat beat = {
		.node = (const uint8_t *)"n {\n}",
		.node_len = 6,
		.report = { .seq = 3 },
	};
	static struct batch b;
	struct test_allocator allocator;
	struct redis_text text = { .allocator = &allocator.allocator };
	struct redis_intake intake;
	redisReply *command;

	(void)state;
	test_allocator_init(&allocator);
	batch_of(&b, REMOTE_BATCH_MOST);
	for (size_t i = 0; i < REMOTE_BATCH_MOST; i++)
		b.jobs[i] = (struct remote_job){ .verb = REMOTE_BEAT,
			                         .key = { (const uint8_t *)"g}:{", 4 },
			                         .beat = &beat };
	assert_true(redis_put_call(&text, &b.call));
	assert_true(redis_intake_open(&intake, STRING_MOST));
	intake.parts_left = intake.parts_most = 2 * REDIS_WORDS_MOST;
	assert_true(redis_intake_feed(&intake, text.bytes, text.count));
	assert_true(redis_intake_take(&intake, &command));
	assert_int_equal(command->elements, REDIS_WORDS_MOST); /* none is longer */
	assert_in_range(command->elements, 1, 3999);
	assert_string_equal(command->element[2]->str, "193");
	assert_string_equal(command->element[3]->str, "gale:{b00}generation");
	assert_string_equal(command->element[4]->str, "gale:{b00}group:g}:{");
	assert_string_equal(command->element[5]->str, "gale:{b00}leases:g}:{");
	assert_string_equal(command->element[6]->str, "gale:{b00}estimates:g}:{");
	assert_int_equal(command->element[199]->len, 24 * sizeof(double));
	assert_int_equal(command->element[200]->len, 6);
	redis_reply_free(command);
	redis_intake_close(&intake);
	redis_text_free(&text);
	assert_true(test_allocator_is_balanced(&allocator));
}

static void a_batch_is_one_command(void **state)
{
	static struct batch b;
	struct test_allocator allocator;
	struct redis_text text = { .allocator = &allocator.allocator };
	struct redis_intake intake;
	redisReply *command;

	(void)state;
	test_allocator_init(&allocator);
	batch_of(&b, REMOTE_BATCH_MOST);
	assert_true(redis_put_call(&text, &b.call));
	assert_true(redis_intake_open(&intake, STRING_MOST));
	assert_true(redis_intake_feed(&intake, text.bytes, text.count));
	assert_true(redis_intake_take(&intake, &command));
	assert_non_null(command);
	assert_int_equal(command->elements, 7 + 2 * REMOTE_BATCH_MOST);
	assert_string_equal(command->element[0]->str, "EVALSHA");
	assert_string_equal(command->element[1]->str, redis_step_script.sha1);
	assert_string_equal(command->element[2]->str, "65");
	assert_string_equal(command->element[3]->str, "gale:{b00}generation");
	assert_string_equal(command->element[4]->str, "gale:{b00}:k");
	assert_string_equal(command->element[68]->str, "9007199254740991");
	assert_string_equal(command->element[69]->str, "g");
	assert_string_equal(command->element[70]->str, "9007199254740991");
	assert_int_equal(command->element[71]->str[0], 's');
	redis_reply_free(command);
	redis_intake_close(&intake);
	redis_text_free(&text);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* A batch, as the server reads it. */
static redisReply *command_of(struct batch *b)
{
	struct test_allocator allocator;
	struct redis_text text = { .allocator = &allocator.allocator };
	struct redis_intake intake;
	redisReply *command;

	test_allocator_init(&allocator);
	assert_true(redis_put_call(&text, &b->call));
	assert_true(redis_intake_open(&intake, STRING_MOST));
	assert_true(redis_intake_feed(&intake, text.bytes, text.count));
	assert_true(redis_intake_take(&intake, &command));
	assert_non_null(command);
	redis_intake_close(&intake);
	redis_text_free(&text);
	return command;
}

/* What the arguments of a batch's jobs begin with. */
static void letters_of(struct batch *b, char *out, size_t room)
{
	redisReply *command = command_of(b);
	size_t first = 6 + strtoul(command->element[2]->str, NULL, 10);
	size_t count = command->elements - first;

	assert_in_range(count, 1, room - 1);
	for (size_t i = 0; i < count; i++)
		out[i] = command->element[first + i]->str[0];
	out[count] = '\0';
	redis_reply_free(command);
}

static void lend(struct batch *b, size_t i, const char *key)
{
	b->jobs[i] = (struct remote_job){
		.verb = REMOTE_LEND,
		.rule = &b->rule,
		.key = bytes_of(key),
		.ask = { .node = 1, .number = 1, .want = 2, .least = 1 },
	};
}

/* Those that lend from a window or give back to one: behind the keys of all jobs. */
static void the_keys_of_rows_apart_are_named(void **state)
{
	struct rule meter = compiled(gale_gcra(4, HOUR, 4));
	struct batch *b = calloc(1, sizeof(*b));
	redisReply *command;

	(void)state;
	assert_non_null(b);
	batch_of(b, 4);
	lend(b, 0, "a");
	lend(b, 2, "b");
	b->jobs[2].rule = &meter;
	lend(b, 3, "c");
	b->jobs[3].verb = REMOTE_BACK;
	command = command_of(b);
	assert_string_equal(command->element[2]->str, "7");
	assert_string_equal(command->element[4]->str, "gale:{b00}:a");
	assert_string_equal(command->element[7]->str, "gale:{b00}:c");
	assert_string_equal(command->element[8]->str, "gale:{b00}rows:a");
	assert_string_equal(command->element[9]->str, "gale:{b00}rows:c");
	redis_reply_free(command);
	free(b);
}

/* The script reads the values of those that follow before it has done the others. */
static void lends_of_one_rule_and_keys_of_their_own_go_together(void **state)
{
	static const char *const keys[] = { "a", "b", "c", "dd", "ee", "ff" };
	struct batch *b = calloc(1, sizeof(*b));
	struct rule copy, other = compiled(gale_fixed_window(4, HOUR));
	char letters[8];

	(void)state;
	assert_non_null(b);
	batch_of(b, 6);
	for (size_t i = 0; i < 6; i++)
		lend(b, i, keys[i]);
	copy = b->rule;
	b->jobs[1].rule = &copy;
	letters_of(b, letters, sizeof(letters));
	assert_string_equal(letters, "lm");

	lend(b, 3, "a"); /* of a key that came before */
	letters_of(b, letters, sizeof(letters));
	assert_string_equal(letters, "lmlm");

	lend(b, 3, "dd");
	b->jobs[2].rule = &other;
	letters_of(b, letters, sizeof(letters));
	assert_string_equal(letters, "lmllm");

	lend(b, 2, "c");
	b->jobs[4].not_before_us = 1;
	letters_of(b, letters, sizeof(letters));
	assert_string_equal(letters, "lmll");

	lend(b, 4, "ee");
	b->jobs[0].verb = REMOTE_STEP;
	b->jobs[5].verb = REMOTE_BACK;
	letters_of(b, letters, sizeof(letters));
	assert_string_equal(letters, "slmg");
	free(b);
}

static void without_memory_the_text_is_as_it_was(void **state)
{
	static struct batch b;
	struct test_allocator allocator;
	struct redis_text text = { .allocator = &allocator.allocator };
	const struct remote_bytes word = bytes_of("PING");
	size_t count;

	(void)state;
	test_allocator_init(&allocator);
	batch_of(&b, REMOTE_BATCH_MOST);
	assert_true(redis_put_words(&text, &word, 1));
	count = text.count;
	allocator.fail_first = 2;
	allocator.fail_last = 2;
	assert_false(redis_put_call(&text, &b.call));
	assert_int_equal(text.count, count);
	assert_memory_equal(text.bytes, "*1\r\n$4\r\nPING\r\n", count);
	assert_true(redis_put_call(&text, &b.call));
	assert_true(text.count > count);
	redis_text_free(&text);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* ---- Bounds ---------------------------------------------------------------------- */

/* Fed a byte at a time: what is not broken by its end is not broken. */
static bool breaks(const char *bytes, size_t count)
{
	struct redis_intake intake;
	redisReply *reply;
	bool good = true;

	assert_true(redis_intake_open(&intake, STRING_MOST));
	for (size_t i = 0; good && i < count; i++) {
		good = redis_intake_feed(&intake, bytes + i, 1) &&
		       redis_intake_take(&intake, &reply);
		if (good)
			redis_reply_free(reply);
	}
	redis_intake_close(&intake);
	return !good;
}

static void what_is_too_much_breaks_the_intake(void **state)
{
	static const char *const rows[] = {
		"*2147483647\r\n",
		"*257\r\n",
		"*-2\r\n",
		"$-2\r\n",
		"HTTP/1.1 400 Bad Request\r\n",
		":12x\r\n",
		"*2\r\n*0\r\n*254\r\n",
		"*128\r\n*128\r\n", /* that many are to come, and take memory now */
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(breaks(rows[i], strlen(rows[i])));
	assert_false(breaks("*2\r\n*0\r\n*253\r\n", 14));
	assert_false(breaks("*127\r\n*128\r\n", 12));
	assert_false(breaks("*255\r\n", 6));
	assert_false(
	    breaks("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", 36));
}

static void long_strings_break_the_intake(void **state)
{
	static char bytes[2 * STRING_MOST];
	static const char *const heads[] = { "$9223372036854775807\r\n", "$513\r\n",
		                             "+", "-" };

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		memset(bytes, 'x', sizeof(bytes));
		memcpy(bytes, heads[i], strlen(heads[i]));
		assert_true(breaks(bytes, sizeof(bytes)));
	}
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, "$512\r\n", 6);
	memcpy(bytes + 6 + 512, "\r\n", 2);
	assert_false(breaks(bytes, 6 + 512 + 2));
}

/* ---- Replies --------------------------------------------------------------------- */

static struct redis_said say(const char *bytes, const struct remote_job *jobs,
                             size_t count)
{
	static struct remote_told told[REMOTE_BATCH_MOST];
	struct redis_intake intake;
	struct redis_said said;
	redisReply *reply;

	assert_true(redis_intake_open(&intake, STRING_MOST));
	assert_true(redis_intake_feed(&intake, bytes, strlen(bytes)));
	assert_true(redis_intake_take(&intake, &reply));
	assert_non_null(reply);
	redis_read_reply(reply, 7, jobs, count, told, &said);
	redis_reply_free(reply);
	redis_intake_close(&intake);
	return said;
}

static enum redis_word say_used(struct remote_job *job, enum remote_verb verb,
                                const char *used)
{
	char bytes[64];

	job->verb = verb;
	snprintf(bytes, sizeof(bytes), "*3\r\n$1\r\n7\r\n:5\r\n:%s\r\n", used);
	return say(bytes, job, 1).word;
}

/* One number below zero: all that was wanted, of a window of which so much is used by it. */
static void what_is_used_of_a_window_is_told_of_a_lend_alone(void **state)
{
	struct rule window = compiled(gale_fixed_window(3, HOUR));
	struct rule meter = compiled(gale_gcra(3, HOUR, 3));
	struct remote_job job = {
		.rule = &window,
		.key = bytes_of("k"),
		.ask = { .node = 1, .number = 1, .want = 2, .least = 1 },
	};

	(void)state;
	assert_int_equal(say_used(&job, REMOTE_LEND, "-1"), REDIS_STRANGE);
	assert_int_equal(say_used(&job, REMOTE_LEND, "-2"), REDIS_TOLD);
	assert_int_equal(say_used(&job, REMOTE_LEND, "-3"), REDIS_TOLD);
	assert_int_equal(say_used(&job, REMOTE_LEND, "-4"), REDIS_STRANGE);
	assert_int_equal(say_used(&job, REMOTE_LEND, "-9223372036854775808"),
	                 REDIS_STRANGE);
	assert_int_equal(say_used(&job, REMOTE_BACK, "-2"), REDIS_STRANGE);
	assert_int_equal(say_used(&job, REMOTE_READ, "-2"), REDIS_STRANGE);
	job.rule = &meter;
	assert_int_equal(say_used(&job, REMOTE_LEND, "-2"), REDIS_STRANGE);
}

static void only_what_the_script_says_is_believed(void **state)
{
	static const struct {
		const char *bytes;
		enum redis_word word;
	} rows[] = {
		{ "*3\r\n$1\r\n7\r\n:5\r\n$0\r\n\r\n", REDIS_TOLD },
		{ "*3\r\n$1\r\n7\r\n:5\r\n:4\r\n", REDIS_TOLD },
		{ "*3\r\n$1\r\n7\r\n:5\r\n:5\r\n", REDIS_TOLD },
		{ "*3\r\n$1\r\n8\r\n:5\r\n$0\r\n\r\n", REDIS_NOT_OURS },
		{ "*3\r\n:7\r\n:5\r\n$0\r\n\r\n", REDIS_NOT_OURS },
		{ "*2\r\n$1\r\n7\r\n$3\r\nabc\r\n", REDIS_GENERATION },
		{ "*2\r\n$1\r\n7\r\n$0\r\n\r\n", REDIS_GENERATION },
		{ "*2\r\n$1\r\n7\r\n:5\r\n", REDIS_STRANGE },
		{ "*2\r\n$1\r\n7\r\n$33\r\n123456789012345678901234567890123\r\n",
		  REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:0\r\n$0\r\n\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:-5\r\n$0\r\n\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:4503599627370497\r\n$0\r\n\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:5\r\n:0\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:5\r\n:1\r\n", REDIS_STRANGE }, /* of a step */
		{ "*3\r\n$1\r\n7\r\n:5\r\n:2\r\n", REDIS_STRANGE }, /* nor told to */
		{ "*3\r\n$1\r\n7\r\n:5\r\n:3\r\n", REDIS_STRANGE }, /* nor a quota */
		{ "*3\r\n$1\r\n7\r\n:5\r\n:6\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:5\r\n:-1\r\n", REDIS_STRANGE },
		{ "*3\r\n$1\r\n7\r\n:5\r\n$-1\r\n", REDIS_STRANGE },
		{ "*4\r\n$1\r\n7\r\n:5\r\n$0\r\n\r\n$0\r\n\r\n", REDIS_STRANGE },
		{ "*1\r\n$1\r\n7\r\n", REDIS_STRANGE },
		{ "*0\r\n", REDIS_STRANGE },
		{ "+OK\r\n", REDIS_STRANGE },
		{ ":7\r\n", REDIS_STRANGE },
		{ "$-1\r\n", REDIS_STRANGE },
	};
	static struct batch b;

	(void)state;
	batch_of(&b, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(say(rows[i].bytes, b.jobs, 1).word, rows[i].word);
}

/* A value that no steps lead to is longer than any that they do. */
static void values_longer_than_the_rules_are_not_believed(void **state)
{
	static struct batch b;
	char bytes[600];
	size_t most;

	(void)state;
	batch_of(&b, 1);
	most = remote_value_most(&b.rule);
	for (size_t more = 0; more < 2; more++) {
		int head = snprintf(bytes, sizeof(bytes),
		                    "*3\r\n$1\r\n7\r\n:5\r\n$%zu\r\n", most + more);

		memset(bytes + head, 'x', most + more);
		strcpy(bytes + (size_t)head + most + more, "\r\n");
		assert_int_equal(say(bytes, b.jobs, 1).word,
		                 more == 0 ? REDIS_TOLD : REDIS_STRANGE);
	}
	b.jobs[0].verb = REMOTE_SWAP;
	assert_int_equal(say("*3\r\n$1\r\n7\r\n:5\r\n$1\r\nx\r\n", b.jobs, 1).word,
	                 REDIS_STRANGE);
	assert_int_equal(say("*3\r\n$1\r\n7\r\n:5\r\n:1\r\n", b.jobs, 1).word,
	                 REDIS_TOLD);
}

static void errors_are_told_apart_by_their_first_word(void **state)
{
	static const struct {
		const char *bytes;
		enum redis_word word;
	} rows[] = {
		{ "-NOSCRIPT No matching script.\r\n", REDIS_NOSCRIPT },
		{ "-LOADING Redis is loading\r\n", REDIS_LATER },
		{ "-BUSY Redis is busy\r\n", REDIS_LATER },
		{ "-BUSYKEY Target key name already exists.\r\n", REDIS_ERROR },
		{ "-MASTERDOWN Link with MASTER is down\r\n", REDIS_LATER },
		{ "-CLUSTERDOWN The cluster is down\r\n", REDIS_TRYAGAIN },
		{ "-TRYAGAIN Multiple keys\r\n", REDIS_TRYAGAIN },
		{ "-NOREPLICAS Not enough good replicas\r\n", REDIS_LATER },
		{ "-READONLY You can't write\r\n", REDIS_READONLY },
		{ "-OOM command not allowed\r\n", REDIS_FULL },
		{ "-NOAUTH Authentication required.\r\n", REDIS_NOT_LET },
		{ "-WRONGPASS invalid username\r\n", REDIS_NOT_LET },
		{ "-NOPERM this user\r\n", REDIS_NOT_LET },
		{ "-ERR unknown command\r\n", REDIS_ERROR },
		{ "-\r\n", REDIS_ERROR },
	};
	static struct batch b;

	(void)state;
	batch_of(&b, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(say(rows[i].bytes, b.jobs, 1).word, rows[i].word);
	assert_string_equal(say("-ERR a\tb\x80\r\n", b.jobs, 1).text, "ERR a?b?");
}

static void another_address_is_read_with_care(void **state)
{
	static const struct {
		const char *bytes;
		const char *host; /* NULL: not believed */
		uint16_t slot;
		uint16_t port;
	} rows[] = {
		{ "-MOVED 3999 127.0.0.1:6381\r\n", "127.0.0.1", 3999, 6381 },
		{ "-MOVED 16383 2001:db8::1:65535\r\n", "2001:db8::1", 16383, 65535 },
		{ "-MOVED 0 :6379\r\n", "", 0, 6379 },
		{ "-MOVED 16384 a:1\r\n", NULL, 0, 0 },
		{ "-MOVED 99999999999999999999 a:1\r\n", NULL, 0, 0 },
		{ "-MOVED -1 a:1\r\n", NULL, 0, 0 },
		{ "-MOVED 1 a:0\r\n", NULL, 0, 0 },
		{ "-MOVED 1 a:65536\r\n", NULL, 0, 0 },
		{ "-MOVED 1 a:1x\r\n", NULL, 0, 0 },
		{ "-MOVED 1 a\r\n", NULL, 0, 0 },
		{ "-MOVED 1\r\n", NULL, 0, 0 },
		{ "-MOVED\r\n", NULL, 0, 0 },
		{ "-MOVED a:1\r\n", NULL, 0, 0 },
	};
	static struct batch b;

	(void)state;
	batch_of(&b, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct redis_said said = say(rows[i].bytes, b.jobs, 1);

		assert_int_equal(said.word, rows[i].host ? REDIS_MOVED : REDIS_STRANGE);
		if (!rows[i].host)
			continue;
		assert_string_equal(said.host, rows[i].host);
		assert_int_equal(said.slot, rows[i].slot);
		assert_int_equal(said.port, rows[i].port);
	}
	assert_int_equal(say("-ASK 1 a:1\r\n", b.jobs, 1).word, REDIS_ASK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefix_has_no_braces),
		cmocka_unit_test(a_keys_bytes_stand_behind_its_tag),
		cmocka_unit_test(a_key_has_a_bucket_and_a_bucket_a_slot),
		cmocka_unit_test(the_longest_key_fits),
		cmocka_unit_test(words_are_sent_with_their_lengths),
		cmocka_unit_test(a_batch_is_one_command),
		cmocka_unit_test(beats_are_one_command),
		cmocka_unit_test(the_keys_of_rows_apart_are_named),
		cmocka_unit_test(lends_of_one_rule_and_keys_of_their_own_go_together),
		cmocka_unit_test(without_memory_the_text_is_as_it_was),
		cmocka_unit_test(what_is_too_much_breaks_the_intake),
		cmocka_unit_test(long_strings_break_the_intake),
		cmocka_unit_test(only_what_the_script_says_is_believed),
		cmocka_unit_test(what_is_used_of_a_window_is_told_of_a_lend_alone),
		cmocka_unit_test(values_longer_than_the_rules_are_not_believed),
		cmocka_unit_test(errors_are_told_apart_by_their_first_word),
		cmocka_unit_test(another_address_is_read_with_care),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
