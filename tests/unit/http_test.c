/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_test.c -- header lines and problems, against the draft's grammar and its laws.
 *
 *     http_test docs/http.md
 *
 * What is read back is read by a parser that accepts one way to write each value
 * (tests/support/structured.h).  The linker puts functions of ours before those that
 * allocate (--wrap, see meson.build).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/http.h>

#include "sim/random.h"
#include "tests/support/house.h"
#include "tests/support/length.h"
#include "tests/support/must.h"
#include "tests/support/structured.h"
#include "tests/support/whys.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define POLICIES_MOST 4
#define LINES_MOST 8
#define ROOM 2048
#define PAGE_ROOM 16384
#define REPLIES LONG_OR_BRIEF(300000, 30000)
#define INTEGER_MAX INT64_C(999999999999999)
#define NAME_64 "1234567890123456789012345678901234567890123456789012345678901234"
#define TYPES "https://iana.org/assignments/http-problem-types#"

static const char *page_path;

/* ---- Instrument: memory ----------------------------------------------------------- */

static uint64_t memory_calls;

#define WRAP(name, params, args)                                                       \
	void *__real_##name params;                                                    \
	void *__wrap_##name params;                                                    \
	void *__wrap_##name params                                                     \
	{                                                                              \
		memory_calls++;                                                        \
		return __real_##name args;                                             \
	}

WRAP(malloc, (size_t bytes), (bytes))
WRAP(calloc, (size_t count, size_t bytes), (count, bytes))
WRAP(realloc, (void *old, size_t bytes), (old, bytes))

/* ---- Reading a reply --------------------------------------------------------------- */

struct line {
	char name[32];
	char value[ROOM];
};

struct reply {
	struct line lines[LINES_MOST];
	size_t count;
};

/* "Name: value" and CRLF, again and again to the end. */
static void read_reply(const char *text, struct reply *reply)
{
	for (reply->count = 0; *text; reply->count++) {
		const char *colon = strstr(text, ": "), *end = strstr(text, "\r\n");
		struct line *line = &reply->lines[reply->count];

		assert_true(colon && end && colon < end && reply->count < LINES_MOST);
		snprintf(line->name, sizeof(line->name), "%.*s", (int)(colon - text),
		         text);
		snprintf(line->value, sizeof(line->value), "%.*s",
		         (int)(end - colon - 2), colon + 2);
		assert_null(strpbrk(line->value, "\r\n"));
		text = end + 2;
	}
}

/* NULL: there is none; one that is there twice fails. */
static const char *value_of(const struct reply *reply, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < reply->count; i++)
		if (strcmp(reply->lines[i].name, name) == 0) {
			assert_null(value);
			value = reply->lines[i].value;
		}
	return value;
}

static size_t items_of(const struct reply *reply, const char *name,
                       struct structured_item items[POLICIES_MOST])
{
	const char *value = value_of(reply, name);
	size_t count = 0;

	if (value && !structured_read(value, items, POLICIES_MOST, &count))
		fail_msg("%s is no list of strings: %s", name, value);
	return count;
}

static int64_t integer_of(const struct structured_item *item, const char *key)
{
	const struct structured_parameter *it = structured_parameter_of(item, key);

	assert_true(it && !it->is_text && it->number >= 0 && it->number <= INTEGER_MAX);
	return it->number;
}

/* One that stands alone, such as that of Retry-After; -1: there is no such line. */
static int64_t number_of(const struct reply *reply, const char *name)
{
	const char *value = value_of(reply, name);

	if (!value)
		return -1;
	assert_true(strlen(value) > 0 && strlen(value) <= 16);
	assert_int_equal(strspn(value, "0123456789"), strlen(value));
	assert_true(value[0] != '0' || value[1] == '\0');
	return strtoll(value, NULL, 10);
}

/* ---- The parser is strict ---------------------------------------------------------- */

static void the_parser_takes_what_the_grammar_has_and_nothing_else(void **state)
{
	static const struct {
		const char *value;
		size_t count; /* 0: it is refused */
	} rows[] = {
		{ "\"a\"", 1 },
		{ "\"\"", 1 },
		{ "\"a\";q=1", 1 },
		{ "\"a\\\"\\\\b\";q=0;w=-5;qu=\"x\"", 1 },
		{ "\"a\";q=999999999999999, \"b\"", 2 },
		{ "\"a\";q=1000000000000000", 0 },
		{ "", 0 },
		{ "a", 0 },
		{ "a;q=1", 0 },
		{ "\"a", 0 },
		{ "\"a\\x\"", 0 },
		{ "\"a\n\"", 0 },
		{ "\"\xc3\xa9\"", 0 },
		{ "\"a\x7f\"", 0 },
		{ "\"a\",\"b\"", 0 },
		{ "\"a\" ,\"b\"", 0 },
		{ "\"a\", ", 0 },
		{ "\"a\",", 0 },
		{ " \"a\"", 0 },
		{ "\"a\" ", 0 },
		{ "\"a\"; q=1", 0 },
		{ "\"a\";", 0 },
		{ "\"a\";q", 0 },
		{ "\"a\";q=", 0 },
		{ "\"a\";Q=1", 0 },
		{ "\"a\";1q=1", 0 },
		{ "\"a\";q=01", 0 },
		{ "\"a\";q=-0", 0 },
		{ "\"a\";q=+1", 0 },
		{ "\"a\";q=1.0", 0 },
		{ "\"a\";q=0.5", 0 },
		{ "\"a\";q=1;q=1", 0 },
		{ "\"a\";q=x", 0 },
	};
	struct structured_item items[POLICIES_MOST];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t count;
		bool is = structured_read(rows[i].value, items, POLICIES_MOST, &count);

		if (is != (rows[i].count > 0) || (is && count != rows[i].count))
			fail_msg("wrong about %s", rows[i].value);
	}
	assert_true(
	    structured_read(rows[3].value, items, POLICIES_MOST, &(size_t){ 0 }));
	assert_string_equal(items[0].text, "a\"\\b");
	assert_int_equal(structured_parameter_of(&items[0], "w")->number, -5);
	assert_string_equal(structured_parameter_of(&items[0], "qu")->text, "x");
}

/* ---- One policy -------------------------------------------------------------------- */

#define ALLOWED(by, of, left, reset)                                                   \
	{                                                                              \
		.verdict = GALE_ALLOW, .why = (by), .limit = (of),                     \
		.remaining = (left), .reset_after_us = (reset)                         \
	}
#define DENIED(by, of, left, reset, retry)                                             \
	{                                                                              \
		.verdict = GALE_DENY, .why = (by), .limit = (of), .remaining = (left), \
		.reset_after_us = (reset), .retry_after_us = (retry)                   \
	}

static const char *headers(const struct gale_http_policy *policies, size_t count,
                           const struct gale_http_options *options)
{
	static char text[ROOM];
	size_t length;

	assert_int_equal(
	    gale_http_headers(policies, count, options, text, sizeof(text), &length),
	    GALE_ERR_OK);
	assert_int_equal(length, strlen(text));
	return text;
}

static const char *problem(const struct gale_http_policy *policies, size_t count)
{
	static char text[ROOM];
	size_t length;

	assert_int_equal(
	    gale_http_problem(policies, count, text, sizeof(text), &length),
	    GALE_ERR_OK);
	assert_int_equal(length, strlen(text));
	return text;
}

static void headers_say_what_the_answer_says(void **state)
{
	static const struct {
		struct gale_answer answer;
		const char *name;
		uint64_t window_us;
		enum gale_http_unit unit;
		const char *text;
	} rows[] = {
		{ ALLOWED(GALE_WHY_CREDIT, 100, 99, 1000001), "api", 60999999, 0,
		  "RateLimit-Policy: \"api\";q=100;w=60\r\n"
		  "RateLimit: \"api\";r=99;t=2\r\n" },
		{ ALLOWED(GALE_WHY_RULE, GALE_UNITS_MAX, GALE_UNITS_MAX, 0), "a\"\\", 0,
		  0,
		  "RateLimit-Policy: \"a\\\"\\\\\";q=999999999999999\r\n"
		  "RateLimit: \"a\\\"\\\\\";r=999999999999999;t=0\r\n" },
		{ ALLOWED(GALE_WHY_RULE, 5, 9, 0), "a", 999999, 0,
		  "RateLimit-Policy: \"a\";q=5\r\nRateLimit: \"a\";r=5;t=0\r\n" },
		{ ALLOWED(GALE_WHY_DOWN, 5, 0, 0), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\n" },
		{ ALLOWED(GALE_WHY_RULE, 5, 4, 1), "a", 1000000,
		  GALE_HTTP_CONTENT_BYTES,
		  "RateLimit-Policy: \"a\";q=5;qu=\"content-bytes\";w=1\r\n"
		  "RateLimit: \"a\";r=4;t=1\r\n" },
		{ DENIED(GALE_WHY_SPENT, 5, 0, 2000001, 2000001), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\nRateLimit: \"a\";r=0;t=3\r\n"
		  "Retry-After: 3\r\n" },
		/* A bucket is full again later than it has enough for the call. */
		{ DENIED(GALE_WHY_RULE, 5, 1, 9000000, 2000001), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\nRateLimit: \"a\";r=1;t=3\r\n"
		  "Retry-After: 3\r\n" },
		{ DENIED(GALE_WHY_TOO_MUCH, 5, 0, 0, GALE_NEVER), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\n" },
		{ DENIED(GALE_WHY_DOWN, 5, 0, 0, 0), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\n" },
		{ DENIED(GALE_WHY_QUARANTINE, 5, 0, 0, 30000000), "a", 0, 0,
		  "RateLimit-Policy: \"a\";q=5\r\nRetry-After: 30\r\n" },
		{ DENIED(GALE_WHY_BAD_ASK, 0, 0, 0, 0), "a", 0, 0, "" },
		/* A guard's. */
		{ DENIED(GALE_WHY_CEILING, 20, 0, 0, 0), "db", 0,
		  GALE_HTTP_CONCURRENT_REQUESTS,
		  "RateLimit-Policy: \"db\";q=20;qu=\"concurrent-requests\"\r\n" },
		{ { .verdict = GALE_PENDING, .why = GALE_WHY_ASKED, .limit = 5 },
		  "a",
		  0,
		  0,
		  "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct gale_http_policy policy = { .name = rows[i].name,
			                           .answer = &rows[i].answer,
			                           .window_us = rows[i].window_us,
			                           .unit = rows[i].unit };

		assert_string_equal(headers(&policy, 1, NULL), rows[i].text);
	}
	assert_string_equal(headers(NULL, 0, NULL), "");
}

static void names_are_quoted_or_refused(void **state)
{
	struct gale_answer answer = ALLOWED(GALE_WHY_RULE, 5, 4, 0);
	struct structured_item items[POLICIES_MOST];
	struct reply reply;
	char name[] = "a?b", buf[ROOM];
	struct gale_http_policy policy = { .name = name, .answer = &answer };
	static const char *const wrong[] = { "", NULL, NAME_64 "5" };
	size_t length;

	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		enum gale_err err;

		name[1] = (char)byte;
		strcpy(buf, "?");
		err = gale_http_headers(&policy, 1, NULL, buf, sizeof(buf), &length);
		if (byte < 0x20 || byte > 0x7e) {
			assert_int_equal(err, GALE_ERR_POLICY_NAME);
			assert_string_equal(buf, "");
			continue;
		}
		assert_int_equal(err, GALE_ERR_OK);
		read_reply(buf, &reply);
		assert_int_equal(items_of(&reply, "RateLimit-Policy", items), 1);
		assert_string_equal(items[0].text, name);
		assert_int_equal(items_of(&reply, "RateLimit", items), 1);
		assert_string_equal(items[0].text, name);
	}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		policy.name = wrong[i];
		assert_int_equal(
		    gale_http_headers(&policy, 1, NULL, buf, sizeof(buf), &length),
		    GALE_ERR_POLICY_NAME);
	}
	policy.name = NAME_64;
	read_reply(headers(&policy, 1, NULL), &reply);
	assert_int_equal(items_of(&reply, "RateLimit", items), 1);
	assert_string_equal(items[0].text, NAME_64);
}

/* ---- Options ----------------------------------------------------------------------- */

static void options_change_what_they_say(void **state)
{
	struct gale_answer denied = DENIED(GALE_WHY_RULE, 1000, 900, 5000000, 5000000);
	struct gale_answer outage = DENIED(GALE_WHY_DOWN, 1000, 0, 0, 0);
	struct gale_http_policy policy = { .name = "a", .answer = &denied };
	struct gale_http_options options = { .legacy = true };

	(void)state;
	assert_string_equal(headers(&policy, 1, &options),
	                    "RateLimit-Policy: \"a\";q=1000\r\n"
	                    "RateLimit: \"a\";r=900;t=5\r\nRetry-After: 5\r\n"
	                    "X-RateLimit-Limit: 1000\r\n"
	                    "X-RateLimit-Remaining: 900\r\nX-RateLimit-Reset: 5\r\n");
	options.legacy_utc_s = 1800000000;
	options.later_us = 1500000;
	options.remaining_per_second = 100;
	assert_string_equal(headers(&policy, 1, &options),
	                    "RateLimit-Policy: \"a\";q=1000\r\n"
	                    "RateLimit: \"a\";r=700;t=7\r\nRetry-After: 7\r\n"
	                    "X-RateLimit-Limit: 1000\r\n"
	                    "X-RateLimit-Remaining: 700\r\n"
	                    "X-RateLimit-Reset: 1800000007\r\n");
	policy.answer = &outage;
	assert_string_equal(headers(&policy, 1, &options),
	                    "RateLimit-Policy: \"a\";q=1000\r\n"
	                    "X-RateLimit-Limit: 1000\r\n");
	assert_string_equal(headers(NULL, 0, &options), "");
}

/* ---- Several policies -------------------------------------------------------------- */

/* The second denies for longer, so it is told of where there is one place only. */
static void several_policies_are_one_list(void **state)
{
	struct gale_answer answers[] = {
		ALLOWED(GALE_WHY_CREDIT, 10, 3, 1000000),
		DENIED(GALE_WHY_SPENT, 1000, 0, 9000000, 9000000),
		DENIED(GALE_WHY_RULE, 20, 0, 4000000, 4000000),
		{ .verdict = GALE_PENDING, .why = GALE_WHY_ASKED, .limit = 7 },
	};
	struct gale_http_policy policies[] = {
		{ .name = "burst",
		  .answer = &answers[0],
		  .window_us = GALE_SECONDS(1) },
		{ .name = "day", .answer = &answers[1], .window_us = GALE_DAYS(1) },
		{ .name = "minute", .answer = &answers[2] },
		{ .name = "later", .answer = &answers[3] },
	};
	struct gale_http_options options = { .legacy = true };

	(void)state;
	assert_string_equal(headers(policies, COUNT(policies), &options),
	                    "RateLimit-Policy: \"burst\";q=10;w=1, "
	                    "\"day\";q=1000;w=86400, \"minute\";q=20\r\n"
	                    "RateLimit: \"burst\";r=3;t=1, \"day\";r=0;t=9, "
	                    "\"minute\";r=0;t=4\r\n"
	                    "Retry-After: 9\r\nX-RateLimit-Limit: 1000\r\n"
	                    "X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 9\r\n");
	assert_string_equal(
	    problem(policies, COUNT(policies)),
	    "{\"type\":\"" TYPES "quota-exceeded\",\"title\":\"Request cannot be "
	    "satisfied as assigned quota has been exceeded\",\"status\":429,"
	    "\"violated-policies\":[\"day\",\"minute\"]}");
}

/* ---- Problems ---------------------------------------------------------------------- */

static void a_problem_is_of_the_type_that_fits(void **state)
{
	struct gale_answer answer = DENIED(GALE_WHY_RULE, 5, 0, 1, 1);
	struct gale_http_policy policy = { .name = "\"a\\", .answer = &answer };

	(void)state;
	for (int why = 0; why < WHYS; why++) {
		bool is_by_rule = why == GALE_WHY_RULE || why == GALE_WHY_SPENT ||
		                  why == GALE_WHY_TOO_MUCH;
		bool is_capacity =
		    gale_why_is_outage((enum gale_why)why) || why >= GALE_WHY_CEILING;
		const char *body;

		answer.why = (enum gale_why)why;
		body = problem(&policy, 1);
		if (is_by_rule)
			assert_non_null(strstr(body, TYPES "quota-exceeded\","));
		else if (is_capacity)
			assert_string_equal(
			    body,
			    "{\"type\":\"" TYPES "temporary-reduced-capacity\","
			    "\"title\":\"Request cannot be satisfied due to temporary "
			    "server capacity constraints\",\"status\":503,"
			    "\"violated-policies\":[\"\\\"a\\\\\"]}");
		else
			assert_string_equal(
			    body, "{\"type\":\"about:blank\",\"title\":\"Service "
				  "Unavailable\",\"status\":503}");
		assert_int_equal(gale_http_status(&answer), is_by_rule ? 429 : 503);
	}
	answer.verdict = GALE_ALLOW;
	assert_string_equal(problem(&policy, 1), "");
	answer.verdict = GALE_PENDING;
	assert_string_equal(problem(&policy, 1), "");
	assert_string_equal(problem(NULL, 0), "");
}

/* ---- Room -------------------------------------------------------------------------- */

static struct gale_answer longest(void)
{
	return (struct gale_answer){ .verdict = GALE_DENY,
		                     .why = GALE_WHY_RULE,
		                     .limit = UINT64_MAX,
		                     .remaining = UINT64_MAX,
		                     .reset_after_us = UINT64_MAX,
		                     .retry_after_us = UINT64_MAX - 1 };
}

#define SLASHES_16 "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"

/* The longest text of count policies fits into the room of count, and of count only. */
static void the_room_always_suffices(void **state)
{
	static const char name[] = SLASHES_16 SLASHES_16 SLASHES_16 SLASHES_16;
	struct gale_http_options options = { true, UINT64_MAX, UINT64_MAX, 0, { 0 } };
	struct gale_http_policy policies[16];
	struct gale_answer answer = longest();
	char buf[GALE_HTTP_HEADERS_ROOM(16)];

	(void)state;
	assert_int_equal(strlen(name), GALE_HTTP_NAME_MAX);
	for (size_t count = 1; count <= 16; count++) {
		size_t length;

		policies[count - 1] =
		    (struct gale_http_policy){ .name = name,
			                       .answer = &answer,
			                       .window_us = UINT64_MAX,
			                       .unit = GALE_HTTP_CONCURRENT_REQUESTS };
		answer.why = GALE_WHY_RULE;
		assert_int_equal(gale_http_headers(policies, count, &options, buf,
		                                   GALE_HTTP_HEADERS_ROOM(count),
		                                   &length),
		                 GALE_ERR_OK);
		assert_true(length > count * 350);
		answer.why = GALE_WHY_DOWN; /* its title is longer */
		assert_int_equal(gale_http_problem(policies, count, buf,
		                                   GALE_HTTP_PROBLEM_ROOM(count),
		                                   &length),
		                 GALE_ERR_OK);
		assert_true(length > count * 130);
	}
}

typedef enum gale_err write_fn(char *buf, size_t room, size_t *ret_length);

static enum gale_err write_headers(char *buf, size_t room, size_t *ret_length)
{
	struct gale_answer answer = longest();
	struct gale_http_policy policy = { .name = "a\"b", .answer = &answer };
	struct gale_http_options options = { .legacy = true };

	return gale_http_headers(&policy, 1, &options, buf, room, ret_length);
}

static enum gale_err write_problem(char *buf, size_t room, size_t *ret_length)
{
	struct gale_answer answer = longest();
	struct gale_http_policy policy = { .name = "a\"b", .answer = &answer };

	return gale_http_problem(&policy, 1, buf, room, ret_length);
}

static void a_text_that_does_not_fit_leaves_nothing(void **state)
{
	static write_fn *const writes[] = { write_headers, write_problem };

	(void)state;
	for (size_t i = 0; i < COUNT(writes); i++) {
		char buf[ROOM];
		size_t whole, length = 77;

		assert_int_equal(writes[i](buf, sizeof(buf), &whole), GALE_ERR_OK);
		assert_int_equal(writes[i](NULL, 0, &length), GALE_ERR_ROOM);
		for (size_t room = 1; room <= whole; room++) {
			memset(buf, 'x', sizeof(buf));
			assert_int_equal(writes[i](buf, room, &length), GALE_ERR_ROOM);
			assert_int_equal(buf[0], '\0');
			assert_int_equal(buf[room], 'x');
		}
		assert_int_equal(length, 77);
		memset(buf, 'x', sizeof(buf));
		assert_int_equal(writes[i](buf, whole + 1, &length), GALE_ERR_OK);
		assert_int_equal(length, whole);
		assert_int_equal(strlen(buf), whole);
		assert_int_equal(buf[whole + 1], 'x');
	}
}

static void nothing_is_allocated(void **state)
{
	void *(*volatile make)(size_t bytes) = malloc; /* else it is optimised away */
	uint64_t before = memory_calls;
	char buf[ROOM];
	size_t length;

	(void)state;
	free(make(1));
	assert_true(memory_calls > before); /* it would be seen */
	before = memory_calls;
	must(write_headers(buf, sizeof(buf), &length) == GALE_ERR_OK);
	must(write_problem(buf, sizeof(buf), &length) == GALE_ERR_OK);
	must(write_headers(buf, 1, &length) == GALE_ERR_ROOM);
	assert_int_equal(memory_calls, before);
}

/* ---- Any answers ------------------------------------------------------------------- */

/* Mostly what is likely, and now and then what is at a bound. */
static uint64_t any_number(struct chance *chance)
{
	static const uint64_t bounds[] = {
		0, 1, 999999, 1000000, GALE_UNITS_MAX, UINT64_MAX - 1, UINT64_MAX
	};

	if (chance_below(chance, 4) == 0)
		return bounds[chance_below(chance, COUNT(bounds))];
	return chance_below(chance, UINT64_C(1) << chance_below(chance, 50));
}

static struct gale_answer any_answer(struct chance *chance)
{
	return (struct gale_answer){
		.verdict = (enum gale_verdict)chance_below(chance, 3),
		.why = (enum gale_why)chance_below(chance, WHYS),
		.limit = any_number(chance),
		.remaining = any_number(chance),
		.reset_after_us = any_number(chance),
		.retry_after_us = any_number(chance),
	};
}

static void any_name(struct chance *chance, char name[GALE_HTTP_NAME_MAX + 1])
{
	size_t length = chance_between(chance, 1, GALE_HTTP_NAME_MAX);

	for (size_t i = 0; i < length; i++)
		name[i] = (char)chance_between(chance, ' ', '~');
	name[length] = '\0';
}

/* The draft of q: a MUST, not negative; of w: not 0; of qu: one of the registry. */
static void expect_policy_item(const struct structured_item *item,
                               const struct gale_http_policy *policy)
{
	static const char *const units[] = { NULL, "content-bytes",
		                             "concurrent-requests" };
	const struct structured_parameter *unit = structured_parameter_of(item, "qu");

	assert_string_equal(item->text, policy->name);
	assert_true((uint64_t)integer_of(item, "q") <= policy->answer->limit);
	assert_true((unit != NULL) == (policy->unit != GALE_HTTP_REQUESTS));
	if (unit) {
		assert_true(unit->is_text);
		assert_string_equal(unit->text, units[policy->unit]);
	}
	if (structured_parameter_of(item, "w"))
		assert_int_equal(integer_of(item, "w"), policy->window_us / 1000000);
	assert_int_equal(structured_parameter_of(item, "w") != NULL,
	                 policy->window_us >= 1000000);
}

/* The t of a denial that a wait can help is not after Retry-After. */
static void expect_limit_item(const struct structured_item *item,
                              const struct gale_http_policy *policy,
                              int64_t retry_after, int64_t q)
{
	assert_string_equal(item->text, policy->name);
	assert_int_equal(item->parameter_count, 2);
	assert_true(integer_of(item, "r") <= q);
	assert_true((uint64_t)integer_of(item, "r") <= policy->answer->remaining);
	assert_true(integer_of(item, "t") >= 0);
	if (policy->answer->verdict == GALE_DENY &&
	    policy->answer->retry_after_us > 0 && retry_after >= 0)
		assert_true(integer_of(item, "t") <= retry_after);
}

static const struct gale_http_policy *
policy_named(const struct gale_http_policy *policies, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(policies[i].name, name) == 0)
			return &policies[i];
	fail_msg("there is no policy %s", name);
	return NULL;
}

static void expect_reply(const struct gale_http_policy *policies, size_t count,
                         const struct gale_http_options *options)
{
	struct structured_item policy_items[POLICIES_MOST], limit_items[POLICIES_MOST];
	struct reply reply;
	size_t told, limits;
	int64_t retry_after;

	read_reply(headers(policies, count, options), &reply);
	told = items_of(&reply, "RateLimit-Policy", policy_items);
	limits = items_of(&reply, "RateLimit", limit_items);
	retry_after = number_of(&reply, "Retry-After");
	assert_true(limits <= told);
	for (size_t i = 0; i < told; i++)
		expect_policy_item(&policy_items[i],
		                   policy_named(policies, count, policy_items[i].text));
	for (size_t i = 0, at = 0; i < limits; i++, at++) {
		while (strcmp(policy_items[at].text, limit_items[i].text) != 0)
			assert_true(++at < told); /* in the same order */
		expect_limit_item(&limit_items[i],
		                  policy_named(policies, count, limit_items[i].text),
		                  retry_after, integer_of(&policy_items[at], "q"));
	}
	assert_true(number_of(&reply, "X-RateLimit-Remaining") <=
	            number_of(&reply, "X-RateLimit-Limit"));
	assert_true(options->legacy || number_of(&reply, "X-RateLimit-Limit") < 0);
}

static void whatever_is_answered_is_in_the_grammar(void **state)
{
	struct chance chance = { .state = 7 };
	char names[POLICIES_MOST][GALE_HTTP_NAME_MAX + 1];
	struct gale_answer answers[POLICIES_MOST];
	struct gale_http_policy policies[POLICIES_MOST];

	(void)state;
	for (int reply = 0; reply < REPLIES; reply++) {
		size_t count = chance_between(&chance, 1, POLICIES_MOST);
		struct gale_http_options options = {
			.legacy = chance_below(&chance, 2) == 0,
			.legacy_utc_s = any_number(&chance),
			.later_us = any_number(&chance),
			.remaining_per_second = any_number(&chance),
		};

		for (size_t i = 0; i < count; i++) {
			answers[i] = any_answer(&chance);
			any_name(&chance, names[i]);
			names[i][0] = (char)('a' + i); /* each another */
			policies[i] = (struct gale_http_policy){
				.name = names[i],
				.answer = &answers[i],
				.window_us = any_number(&chance),
				.unit = (enum gale_http_unit)chance_below(&chance, 3),
			};
		}
		expect_reply(policies, count, &options);
	}
}

/* ---- The page ---------------------------------------------------------------------- */

static void read_page(char page[PAGE_ROOM])
{
	FILE *file = fopen(page_path, "r");
	size_t length;

	must(file);
	length = fread(page, 1, PAGE_ROOM - 1, file);
	must(length < PAGE_ROOM - 1);
	page[length] = '\0';
	fclose(file);
}

/* Line by line, without the carriage returns. */
static void expect_on_page(const char *page, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\r\n");
		char line[ROOM];

		snprintf(line, sizeof(line), "\n%.*s\n", (int)length, text);
		if (!strstr(page, line))
			fail_msg("%s lacks the line%s", page_path, line);
		text += length;
		text += strspn(text, "\r\n");
	}
}

static void the_page_shows_what_is_written(void **state)
{
	static char page[PAGE_ROOM];
	struct gale_answer minute = ALLOWED(GALE_WHY_CREDIT, 100, 40, 17000000);
	struct gale_answer day = DENIED(GALE_WHY_SPENT, 1000, 0, 40000000, 40000000);
	struct gale_answer down = DENIED(GALE_WHY_DOWN, 1000, 0, 0, 0);
	struct gale_answer full = DENIED(GALE_WHY_CEILING, 20, 0, 0, 0);
	struct gale_http_policy policies[] = {
		{ .name = "minute", .answer = &minute, .window_us = GALE_MINUTES(1) },
		{ .name = "day", .answer = &day, .window_us = GALE_DAYS(1) },
	};
	struct gale_http_policy guard = { .name = "database",
		                          .answer = &full,
		                          .unit = GALE_HTTP_CONCURRENT_REQUESTS };
	struct gale_http_options options = { .legacy = true };

	(void)state;
	read_page(page);
	expect_on_page(page, headers(policies, 2, &options));
	expect_on_page(page, problem(policies, 2));
	policies[1].answer = &down;
	expect_on_page(page, problem(policies, 2));
	expect_on_page(page, headers(&guard, 1, NULL));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    the_parser_takes_what_the_grammar_has_and_nothing_else),
		cmocka_unit_test(headers_say_what_the_answer_says),
		cmocka_unit_test(names_are_quoted_or_refused),
		cmocka_unit_test(options_change_what_they_say),
		cmocka_unit_test(several_policies_are_one_list),
		cmocka_unit_test(a_problem_is_of_the_type_that_fits),
		cmocka_unit_test(the_room_always_suffices),
		cmocka_unit_test(a_text_that_does_not_fit_leaves_nothing),
		cmocka_unit_test(nothing_is_allocated),
		cmocka_unit_test(whatever_is_answered_is_in_the_grammar),
		cmocka_unit_test(the_page_shows_what_is_written),
	};

	page_path = argc > 1 ? argv[1] : "docs/http.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
