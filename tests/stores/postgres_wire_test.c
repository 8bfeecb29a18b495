/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_wire_test.c -- what is believed of a result, and what is not.
 *
 * Results are made here, as libpq lets one; there is no server.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "runtime/memory.h"
#include "stores/postgres/wire.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/must.h"

#define NONCE UINT64_C(0xfedcba9876543210)
#define T0 GALE_DAYS(20000)
#define COLUMNS 2
#define CODED(job, code) ((uint64_t)(job) + ((uint64_t)(code) << 7))
#define WORDS_MOST 36

static struct rule window, quota;
static struct remote_job jobs[3];
static struct postgres_batch batch;
static struct postgres_order order;
static struct postgres_room room;
static struct remote_told told[3];
static char generation[REMOTE_GENERATION_BYTES + 1];

static struct rule compiled(struct gale_rule config)
{
	struct rule rule;

	must(rule_compile(&config, &rule) == GALE_ERR_OK);
	return rule;
}

static int start(void **state)
{
	static const struct remote_bytes key = { (const uint8_t *)"key", 3 };

	(void)state;
	room.allocator = memory_default();
	window = compiled(gale_fixed_window(10, GALE_SECONDS(1)));
	quota = compiled(gale_quota_daily(10, 0));
	jobs[0] = (struct remote_job){
		.verb = REMOTE_STEP, .key = key, .rule = &window, .cost = 1
	};
	jobs[1] =
	    (struct remote_job){ .verb = REMOTE_READ, .key = key, .rule = &quota };
	jobs[2] =
	    (struct remote_job){ .verb = REMOTE_DROP, .key = key, .rule = &window };
	order = (struct postgres_order){ 0 };
	batch = (struct postgres_batch){ .jobs = jobs,
		                         .count = 3,
		                         .generation = "ours",
		                         .nonce = NONCE,
		                         .order = &order,
		                         .now_us = T0 };
	return 0;
}

static int stop(void **state)
{
	(void)state;
	postgres_room_close(&room);
	return 0;
}

/* ---- Results --------------------------------------------------------------------- */

static PGresult *empty_result(int format, Oid first_type)
{
	static const Oid types[COLUMNS] = { 20, 1016 };
	PGresAttDesc columns[COLUMNS];
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	memset(columns, 0, sizeof(columns));
	for (int i = 0; i < COLUMNS; i++) {
		columns[i].name = (char *)(uintptr_t) "column";
		columns[i].format = format;
		columns[i].typid = i == 0 ? first_type : types[i];
	}
	must(PQsetResultAttrs(result, COLUMNS, columns));
	return result;
}

static void set(PGresult *result, int row, int column, const void *bytes, int length)
{
	must(PQsetvalue(result, row, column, (char *)(uintptr_t)bytes, length));
}

static void set_number(PGresult *result, int row, int column, uint64_t number,
                       int bytes)
{
	uint8_t big[8];

	for (int i = bytes - 1; i >= 0; i--, number >>= 8)
		big[i] = (uint8_t)number;
	set(result, row, column, big, bytes);
}

static uint8_t *put(uint8_t *at, uint64_t number, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--, number >>= 8)
		at[i] = (uint8_t)number;
	return at + bytes;
}

static int make_array(uint8_t *out, const uint64_t *numbers, uint64_t count)
{
	uint8_t *at = put(put(put(put(put(out, 1, 4), 0, 4), 20, 4), count, 4), 1, 4);

	for (uint64_t i = 0; i < count; i++)
		at = put(put(at, 8, 4), numbers[i], 8);
	return (int)(at - out);
}

static void set_words(PGresult *result, int row, const uint64_t *numbers,
                      uint64_t count)
{
	uint8_t array[20 + 12 * WORDS_MOST];

	must(count <= WORDS_MOST);
	set(result, row, 1, array, make_array(array, numbers, count));
}

static void set_row(PGresult *result, int row, uint64_t job, uint64_t code)
{
	set_number(result, row, 0, CODED(job, code), 8);
	set(result, row, 1, NULL, -1);
}

/* What the rows that follow belong to. */
static void set_head(PGresult *result, int row, uint64_t now)
{
	const uint64_t words[] = { NONCE, now };

	set_row(result, row, 0, 0);
	set_words(result, row, words, 2);
}

static const uint64_t thousands[WORDS_MOST] = { 1000, 1001, 1002, 1003, 1004 };

/* One that can be believed, its rows in another order than the jobs. */
static PGresult *good_result(void)
{
	PGresult *result = empty_result(1, 20);

	set_head(result, 0, T0);
	set_row(result, 1, 2, REMOTE_DONE);
	set_row(result, 2, 3, REMOTE_DONE);
	set_row(result, 3, 1, REMOTE_DONE);
	set_words(result, 3, thousands, 2);
	return result;
}

static enum postgres_result judge(PGresult *result)
{
	enum postgres_result means =
	    postgres_told(result, &batch, &room, told, generation);

	PQclear(result);
	return means;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void little(uint8_t *out, uint64_t number)
{
	for (int i = 0; i < 8; i++, number >>= 8)
		out[i] = (uint8_t)number;
}

/* What a job has stepped is of its rule: only what was read is told with its head. */
static void a_result_is_put_in_the_order_of_the_jobs(void **state)
{
	uint8_t bytes[4 * 8] = { 2, GALE_RULE_FIXED_WINDOW, 0, 0, 2, 0, 0, 0 };
	PGresult *result = good_result();

	(void)state;
	little(bytes + 8, window.fingerprint);
	little(bytes + 16, 1000);
	little(bytes + 24, 1001);
	set_words(result, 1, thousands, 3);
	assert_int_equal(judge(result), POSTGRES_TOLD);
	assert_int_equal(told[0].now_us, T0);
	assert_int_equal(told[0].before.count, sizeof(bytes));
	assert_memory_equal(told[0].before.bytes, bytes, sizeof(bytes));
	assert_int_equal(told[1].before.count, 3 * 8);
	assert_memory_equal(told[1].before.bytes, bytes + 16, 2 * 8);
	assert_int_equal(told[2].before.count, 0);
}

/* POSTGRES-5 */
static void what_cannot_be_meant_is_not_believed(void **state)
{
	static const struct {
		int row, column, bytes;
		uint64_t number;
	} faults[] = {
		{ 0, 0, 8, 1 }, /* no time is told */
		{ 1, 0, 8, 1 }, /* a job twice, and one never */
		{ 1, 0, 8, 0 }, /* none of the jobs */
		{ 1, 0, 8, 4 },
		{ 1, 0, 8, CODED(0, REMOTE_WAITS) },
		{ 1, 0, 8, UINT64_MAX },
		{ 1, 0, 4, 2 },
		{ 1, 0, 8, 1024 + 2 },                  /* nothing was lent */
		{ 3, 0, 8, CODED(1, REMOTE_MOVED) },    /* not of a step */
		{ 3, 0, 8, CODED(1, REMOTE_CALENDAR) }, /* not of a fixed window */
		{ 1, 0, 8, CODED(2, REMOTE_WAITS) },    /* not of a read */
		{ 2, 0, 8, CODED(3, REMOTE_CHANGED) },  /* not of a drop */
		{ 3, 0, 8, CODED(1, REMOTE_LENT) },     /* not of a step */
		{ 3, 0, 8, CODED(1, REMOTE_LENT + 1) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		PGresult *result = good_result();

		set_number(result, faults[i].row, faults[i].column, faults[i].number,
		           faults[i].bytes);
		assert_int_equal(judge(result), POSTGRES_WRONG);
	}
}

/* POSTGRES-5 */
static void another_calls_rows_are_not_believed(void **state)
{
	static const uint64_t heads[][2] = {
		{ NONCE + 1, T0 },
		{ NONCE, 0 },
		{ NONCE, INSTANT_MAX_US + 1 },
	};
	PGresult *result = good_result();

	(void)state;
	set_words(result, 0, heads[0], 1);
	assert_int_equal(judge(result), POSTGRES_WRONG);
	result = good_result();
	set(result, 0, 1, NULL, -1);
	assert_int_equal(judge(result), POSTGRES_WRONG);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		result = good_result();
		set_words(result, 0, heads[i], 2);
		assert_int_equal(judge(result), POSTGRES_WRONG);
	}
}

static void other_columns_or_rows_are_not_believed(void **state)
{
	PGresult *result = empty_result(1, 20);

	(void)state;
	assert_int_equal(judge(result), POSTGRES_WRONG); /* no rows */
	result = empty_result(1, 23);
	assert_int_equal(judge(result), POSTGRES_WRONG); /* another type */
	result = empty_result(0, 20);
	assert_int_equal(judge(result), POSTGRES_WRONG); /* text */
	assert_int_equal(judge(PQmakeEmptyPGresult(NULL, PGRES_COMMAND_OK)),
	                 POSTGRES_WRONG);
	assert_int_equal(judge(PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR)),
	                 POSTGRES_LOST);
	assert_int_equal(judge(NULL), POSTGRES_NO_MEMORY);
}

/* What came to nothing is told of before what came of it, at another time. */
static void the_later_of_two_answers_counts(void **state)
{
	PGresult *result = good_result();

	(void)state;
	set_head(result, 4, T0 + 5);
	set_row(result, 5, 1, REMOTE_GARBLED);
	assert_int_equal(judge(result), POSTGRES_TOLD);
	assert_int_equal(told[0].now_us, T0 + 5);
	assert_int_equal(told[0].code, REMOTE_GARBLED);
	assert_int_equal(told[0].before.count, 0);
	assert_int_equal(told[1].now_us, T0);
}

/* ---- Lends ----------------------------------------------------------------------- */

static struct remote_job lend_of(const char *key, uint64_t number)
{
	return (struct remote_job){
		.verb = REMOTE_LEND,
		.key = { (const uint8_t *)key, strlen(key) },
		.rule = &window,
		.ask = { .node = 9, .number = number, .want = 5, .least = 1 },
	};
}

static struct remote_job first_of(const char *key, uint64_t number)
{
	struct remote_job job = lend_of(key, number);

	job.is_first = true;
	return job;
}

/* Job 1 of a result is the one whose key comes first. */
static PGresult *lends_result(uint64_t used, uint64_t start)
{
	const uint64_t head[] = { NONCE, T0, start };
	PGresult *result = empty_result(1, 20);

	set_row(result, 0, 0, 0);
	set_words(result, 0, head, start > 0 ? 3 : 2);
	set_row(result, 1, 1, REMOTE_LENT);
	set_number(result, 1, 0, (used << 10) + CODED(1, REMOTE_LENT), 8);
	set_row(result, 2, 2, REMOTE_LENT);
	set(result, 2, 0, NULL, -1); /* it was only made ready */
	set_row(result, 3, 2, REMOTE_DONE);
	return result;
}

static void hear_lends(struct remote_job lends[2], PGresult *result)
{
	struct postgres_batch two = batch;
	struct postgres_call call;

	two.jobs = lends;
	two.count = 2;
	assert_true(postgres_ask(&two, &room, &call));
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_TOLD);
	PQclear(result);
}

static void lends_are_told_as_they_were_left(void **state)
{
	struct remote_job lends[] = { lend_of("b", 11), lend_of("a", 12) };
	struct lend_answer answer;

	(void)state;
	hear_lends(lends, lends_result(7, T0));
	remote_explain_lend(&lends[1], &told[1], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 5);
	assert_int_equal(answer.grant.left, 3);
	assert_int_equal(told[0].before.count, 0);

	hear_lends(lends, lends_result(7, 0)); /* of which window? */
	assert_int_equal(told[1].code, REMOTE_GARBLED);
	hear_lends(lends, lends_result(GALE_UNITS_MAX + 1, T0));
	assert_int_equal(told[1].code, REMOTE_GARBLED);
}

/* Then it is a value, if it can be one. */
static void lends_are_told_with_the_rows_of_others(void **state)
{
	static const uint64_t other[] = { 7, 3, 2, 2, T0, 0 };
	struct remote_job lends[] = { lend_of("b", 11), lend_of("a", 12) };
	PGresult *result = lends_result(7, T0);
	struct lend_answer answer;

	(void)state;
	set_words(result, 1, other, 6);
	hear_lends(lends, result);
	remote_explain_lend(&lends[1], &told[1], &answer);
	assert_int_equal(answer.result, STORE_DONE);
	assert_int_equal(answer.grant.units, 5);
	assert_int_equal(answer.grant.others, 1);
	assert_int_equal(answer.grant.holders, 2);

	result = lends_result(11, T0); /* more than the limit */
	set_words(result, 1, other, 6);
	hear_lends(lends, result);
	assert_int_equal(told[1].code, REMOTE_GARBLED);
}

static PGresult *all_result(uint64_t start)
{
	PGresult *result = lends_result(0, start);
	PGresult *all = PQcopyResult(result, PG_COPYRES_ATTRS);

	PQclear(result);
	set_row(all, 0, 0, 0);
	set_words(all, 0, (const uint64_t[]){ NONCE, T0, start }, start > 0 ? 3 : 2);
	set_row(all, 1, 0, REMOTE_LENT);
	return all;
}

/* One row tells of all. */
static void first_lends_are_told_at_once(void **state)
{
	struct remote_job lends[] = { first_of("b", 11), first_of("a", 12) };
	struct lend_answer answer;

	(void)state;
	lends[1].ask.want = 3;
	batch.takes_first = true;
	hear_lends(lends, all_result(T0));
	assert_true(order.were_first);
	for (int i = 0; i < 2; i++) {
		remote_explain_lend(&lends[i], &told[i], &answer);
		assert_int_equal(told[i].now_us, T0);
		assert_int_equal(answer.result, STORE_DONE);
		assert_int_equal(answer.grant.units, lends[i].ask.want);
		assert_int_equal(answer.grant.left, 10 - lends[i].ask.want);
	}
	hear_lends(lends, lends_result(7, T0)); /* they went the other way */
	assert_false(order.were_first);
	batch.takes_first = false;
}

/* POSTGRES-5: nor is it where it was not asked for, or if the window is not told. */
static void that_all_were_lent_is_not_believed_of_others(void **state)
{
	struct remote_job lends[] = { first_of("b", 11), first_of("a", 12) };
	struct postgres_batch two = batch;
	struct postgres_call call;
	PGresult *result = all_result(T0);

	(void)state;
	two.jobs = lends;
	two.count = 2;
	assert_true(postgres_ask(&two, &room, &call));
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_WRONG);
	two.takes_first = true;
	assert_true(postgres_ask(&two, &room, &call));
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_TOLD);
	PQclear(result);
	result = all_result(0);
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_WRONG);
	set_row(result, 0, 0, REMOTE_LENT); /* before it says when */
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_WRONG);
	PQclear(result);
}

/* Nor before anything was asked. */
static void that_all_were_lent_is_no_greeting(void **state)
{
	struct postgres_batch greeting = { .generation = "" };
	PGresult *result = all_result(T0);

	(void)state;
	assert_int_equal(postgres_told(result, &greeting, &room, told, generation),
	                 POSTGRES_WRONG);
	set_row(result, 0, 0, REMOTE_LENT);
	assert_int_equal(postgres_told(result, &greeting, &room, told, generation),
	                 POSTGRES_WRONG);
	PQclear(result);
	greeting.nonce = NONCE;
	result = all_result(T0);
	assert_int_equal(postgres_told(result, &greeting, &room, told, generation),
	                 POSTGRES_WRONG);
	PQclear(result);
}

/* All are, for all that is known; of one rule; and nobody wants more than its limit. */
static void only_first_lends_are_put_in(void **state)
{
	struct rule other = compiled(gale_fixed_window(11, GALE_SECONDS(1)));
	struct postgres_batch five = batch;
	struct remote_job lends[5];
	struct postgres_call call;

	(void)state;
	five.jobs = lends;
	five.count = 5;
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 5; j++)
			lends[j] =
			    first_of((const char *[]){ "a", "b", "c", "d", "e" }[j], 1);
		five.takes_first = i != 1;
		lends[4].is_first = i != 2;
		lends[4].ask.want = i == 3 ? 11 : 10;
		lends[4].rule = i == 4 ? &other : &window;
		assert_true(postgres_ask(&five, &room, &call));
		assert_true(order.is_short);
		assert_int_equal(order.is_first, i == 0);
		assert_int_equal(strstr(call.statement->text, "lend_first") != NULL,
		                 i == 0);
	}
}

/* Whatever keys have in common, and however long they are. */
static void lends_go_in_the_order_of_their_keys(void **state)
{
	static const char *const keys[] = { "gale:1234567890", "gale:123456789",
		                            "gale:",           "gale:12345678x",
		                            "gale:123456780",  "gale",
		                            "gale:\377",       "gale:1" };
	static const uint8_t sorted[] = { 5, 2, 7, 4, 1, 0, 3, 6 };
	struct remote_job lends[8];
	struct postgres_batch eight = batch;
	struct postgres_call call;

	(void)state;
	for (int i = 0; i < 8; i++)
		lends[i] = lend_of(keys[i], 1);
	eight.jobs = lends;
	eight.count = 8;
	assert_true(postgres_ask(&eight, &room, &call));
	assert_true(order.is_short);
	assert_memory_equal(order.jobs, sorted, sizeof(sorted));
	lends[7] = lends[0];
	assert_true(postgres_ask(&eight, &room, &call));
	assert_false(order.is_short);
}

/* The same key twice, another verb, little in common, or large numbers: it is the long way
 * then. */
static void only_simple_lends_go_the_short_way(void **state)
{
	struct rule brief = compiled(gale_fixed_window(10, 1000));
	struct remote_job lends[] = { lend_of("b", 1), lend_of("a", 2),
		                      lend_of("c", 3) };
	struct postgres_batch three = batch;
	struct postgres_call call;

	(void)state;
	three.jobs = lends;
	for (int i = 0; i < 7; i++) {
		lends[1] = lend_of(i == 1 ? "b" : "a", 2);
		lends[1].verb = i == 2 ? REMOTE_BACK : REMOTE_LEND;
		lends[1].rule = i == 3 ? &brief : &window;
		lends[1].ask.node = i == 4 ? 8 : 9;
		lends[1].ask.number += i == 5 ? 1 << 20 : 0;
		lends[1].ask.want <<= i == 6 ? 36 : 0;
		assert_true(postgres_ask(&three, &room, &call));
		assert_int_equal(strstr(call.statement->text, "gale.lend") != NULL,
		                 i == 0);
	}
}

static bool asks_gale_lend(const struct postgres_batch *asked)
{
	struct postgres_call call;

	assert_true(postgres_ask(asked, &room, &call));
	return strstr(call.statement->text, "gale.lend(") != NULL;
}

/* Beside simple ones, whatever it has to do with units ahead; but none of them is put in unseen
 * then.  What an ask wants has to be above the limit. */
static void units_ahead_go_the_short_way(void **state)
{
	struct rule most =
	    compiled(gale_fixed_window((UINT64_C(1) << 36) - 2, GALE_SECONDS(1)));
	struct rule wide =
	    compiled(gale_fixed_window((UINT64_C(1) << 36) - 1, GALE_SECONDS(1)));
	struct remote_job lends[] = { first_of("b", 1), first_of("a", 2),
		                      first_of("c", 3) };
	struct postgres_batch three = batch;

	(void)state;
	three.jobs = lends;
	three.takes_first = true;
	assert_false(asks_gale_lend(&three)); /* but gale.lend_first */
	assert_true(order.is_first);
	three.now_us = T0;
	for (int i = 0; i < 2;
	     i++) { /* a window that begins with something, and the next */
		lends[1].reserve_from_us = T0 - (uint64_t)i * GALE_SECONDS(1);
		assert_int_equal(asks_gale_lend(&three), i == 0);
	}
	lends[1].reserve_from_us = 0;
	lends[1].ask.ahead = 1;
	assert_true(asks_gale_lend(&three));
	assert_false(order.is_first);
	lends[1].ask.ahead = 0;
	lends[1].ask.had = 1;
	assert_true(asks_gale_lend(&three));
	for (int i = 0; i < 3; i++)
		lends[i].rule = &most;
	assert_true(asks_gale_lend(&three));
	for (int i = 0; i < 3; i++)
		lends[i].rule = &wide;
	assert_false(asks_gale_lend(&three));
	assert_false(order.is_short);
}

/* POSTGRES-5: how a window was left does not tell what of it was lent ahead. */
static void what_is_lent_ahead_is_told_by_a_value(void **state)
{
	struct remote_job lends[] = { lend_of("b", 11), lend_of("a", 12) };
	struct postgres_batch two = batch;
	PGresult *result = lends_result(7, T0);
	struct postgres_call call;

	(void)state;
	two.jobs = lends;
	two.count = 2;
	lends[1].ask.ahead = 1;
	assert_true(postgres_ask(&two, &room, &call));
	assert_int_equal(postgres_told(result, &two, &room, told, generation),
	                 POSTGRES_WRONG);
	PQclear(result);
	order = (struct postgres_order){ 0 };
}

/* Whatever an array's bytes are, nothing beyond them is read. */
static void what_is_no_array_of_words_is_garbled(void **state)
{
	struct chance chance = { 1 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		PGresult *result = good_result();
		uint8_t array[20 + 12 * 5];
		int length = make_array(array, thousands, chance_below(&chance, 6));
		enum postgres_result means;

		array[chance_below(&chance, (uint64_t)length)] =
		    (uint8_t)chance_next(&chance);
		if (chance_one_in(&chance, 2))
			length = (int)chance_below(&chance, (uint64_t)length + 1);
		set(result, 3, 1, array, length);
		means = judge(result);
		assert_int_equal(means, POSTGRES_TOLD);
		assert_true(told[0].code == REMOTE_DONE || told[0].before.count == 0);
		assert_true(told[0].before.count % 8 == 0);
	}
}

static void another_generation_is_told(void **state)
{
	uint64_t words[WORDS_MOST] = { NONCE, T0 };

	(void)state;
	for (uint64_t length = 0; length <= REMOTE_GENERATION_BYTES + 1; length++) {
		PGresult *result = empty_result(1, 20);
		bool fits = length > 0 && length <= REMOTE_GENERATION_BYTES;

		words[2 + length] = 'a';
		set_row(result, 0, 0, 1);
		set_words(result, 0, words, 2 + length);
		assert_int_equal(judge(result),
		                 fits ? POSTGRES_OTHER_GENERATION : POSTGRES_WRONG);
		if (fits)
			assert_int_equal(strlen(generation), length);
	}
}

static void letters_that_are_none_are_not_believed(void **state)
{
	static const uint64_t letters[] = { 0, 128, UINT64_MAX };

	(void)state;
	for (int i = 0; i < 3; i++) {
		const uint64_t words[] = { NONCE, T0, 'a', letters[i] };
		PGresult *result = empty_result(1, 20);

		set_row(result, 0, 0, 1);
		set_words(result, 0, words, 4);
		assert_int_equal(judge(result), POSTGRES_WRONG);
	}
}

static void errors_are_of_classes(void **state)
{
	static const struct {
		const char *sqlstate;
		enum postgres_result means;
	} errors[] = {
		{ "GL001", POSTGRES_OLDER },     { "GL002", POSTGRES_NEWER },
		{ "3F000", POSTGRES_MISSING },   { "42883", POSTGRES_MISSING },
		{ "42P01", POSTGRES_MISSING },   { "25006", POSTGRES_READ_ONLY },
		{ "55P03", POSTGRES_TIMED_OUT }, { "57014", POSTGRES_TIMED_OUT },
		{ "40P01", POSTGRES_DEADLOCK },  { "40001", POSTGRES_DEADLOCK },
		{ "53300", POSTGRES_LATER },     { "53200", POSTGRES_LATER },
		{ "57P01", POSTGRES_LATER },     { "57P03", POSTGRES_LATER },
		{ "40003", POSTGRES_LOST },      { "40000", POSTGRES_LOST },
		{ "08006", POSTGRES_LOST },      { "28P01", POSTGRES_REFUSED },
		{ "42501", POSTGRES_REFUSED },   { "XX000", POSTGRES_FAILED },
		{ "", POSTGRES_FAILED },         { NULL, POSTGRES_LOST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		assert_int_equal(postgres_error(errors[i].sqlstate), errors[i].means);
}

static void without_memory_there_is_no_call(void **state)
{
	struct test_allocator allocator;
	struct postgres_room poor = { 0 };
	struct postgres_call call;
	PGresult *result = good_result();

	(void)state;
	test_allocator_init(&allocator);
	poor.allocator = &allocator.allocator;
	allocator.fail_first = 1;
	allocator.fail_last = 2;
	assert_false(postgres_ask(&batch, &poor, &call));
	assert_int_equal(postgres_told(result, &batch, &poor, told, generation),
	                 POSTGRES_NO_MEMORY);
	PQclear(result);
	assert_true(postgres_ask(&batch, &poor, &call));
	postgres_room_close(&poor);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* POSTGRES-4 */
static void parameters_are_as_long_as_they_say(void **state)
{
	struct postgres_call call;
	size_t sum = 0;

	(void)state;
	assert_true(postgres_ask(&batch, &room, &call));
	assert_string_equal(call.values[2], "ours");
	assert_int_equal(call.lengths[2], 4);
	for (int i = 0; i < call.count; i++)
		sum += i == 2 ? 0 : (size_t)call.lengths[i];
	assert_true(sum <= room.size);
	assert_int_equal(call.lengths[3], 20 + 3 * (4 + 3));
	assert_int_equal(call.lengths[4], 20 + 12 * (3 + 13 + 4 + 4));
	assert_int_equal(call.lengths[5], 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_is_put_in_the_order_of_the_jobs),
		cmocka_unit_test(what_cannot_be_meant_is_not_believed),
		cmocka_unit_test(another_calls_rows_are_not_believed),
		cmocka_unit_test(other_columns_or_rows_are_not_believed),
		cmocka_unit_test(the_later_of_two_answers_counts),
		cmocka_unit_test(lends_are_told_as_they_were_left),
		cmocka_unit_test(lends_are_told_with_the_rows_of_others),
		cmocka_unit_test(first_lends_are_told_at_once),
		cmocka_unit_test(that_all_were_lent_is_not_believed_of_others),
		cmocka_unit_test(that_all_were_lent_is_no_greeting),
		cmocka_unit_test(only_first_lends_are_put_in),
		cmocka_unit_test(lends_go_in_the_order_of_their_keys),
		cmocka_unit_test(only_simple_lends_go_the_short_way),
		cmocka_unit_test(units_ahead_go_the_short_way),
		cmocka_unit_test(what_is_lent_ahead_is_told_by_a_value),
		cmocka_unit_test(what_is_no_array_of_words_is_garbled),
		cmocka_unit_test(another_generation_is_told),
		cmocka_unit_test(letters_that_are_none_are_not_believed),
		cmocka_unit_test(errors_are_of_classes),
		cmocka_unit_test(without_memory_there_is_no_call),
		cmocka_unit_test(parameters_are_as_long_as_they_say),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
