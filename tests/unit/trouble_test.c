/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* trouble_test.c -- what is said of a server that fails, and how often. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "sim/allocator.h"
#include "stores/trouble.h"

#define SECOND UINT64_C(1000000000)

struct diary {
	struct test_allocator allocator;
	struct trouble trouble;
	mono now;
	unsigned count;
	char line[256]; /* the latest */
};

static void write_line(void *self, enum gale_level level, const char *text)
{
	struct diary *diary = self;

	diary->count++;
	snprintf(diary->line, sizeof(diary->line), "%s %s", gale_level_name(level),
	         text);
}

static void open_diary(struct diary *diary)
{
	memset(diary, 0, sizeof(*diary));
	test_allocator_init(&diary->allocator);
	diary->now.ns = 1000 * SECOND;
	diary->trouble.allocator = &diary->allocator.allocator;
	diary->trouble.say = write_line;
	diary->trouble.sayer = diary;
	trouble_open(&diary->trouble);
}

static void close_diary(struct diary *diary)
{
	trouble_close(&diary->trouble);
	assert_true(test_allocator_is_balanced(&diary->allocator));
}

static void say(struct diary *diary, const char *where, enum gale_level level,
                const char *text)
{
	trouble_say(&diary->trouble, where, level, text, diary->now);
}

static void fail_all(struct diary *diary, const char *text)
{
	say(diary, "", GALE_LEVEL_ERROR, text);
}

static void said(struct diary *diary, unsigned count, const char *line)
{
	assert_int_equal(diary->count, count);
	assert_string_equal(diary->line, line);
}

static void pass(struct diary *diary, uint64_t ns)
{
	diary->now.ns += ns;
}

/* Eight shards try a server ten times a second. */
static void a_text_is_said_once_a_minute_while_its_trouble_goes_on(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	for (int i = 0; i < 59 * 80; i++, pass(&d, SECOND / 80))
		fail_all(&d, "cannot connect");
	said(&d, 1, "error cannot connect");
	pass(&d, SECOND);
	fail_all(&d, "cannot connect");
	said(&d, 2, "error cannot connect");
	fail_all(&d, "it is loading");
	said(&d, 3, "error it is loading");
	close_diary(&d);
}

static void a_server_is_well_again_after_so_long(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	trouble_over(&d.trouble, "", d.now);
	assert_int_equal(d.count, 0); /* it never was not */
	fail_all(&d, "cannot connect");
	pass(&d, 12 * SECOND + SECOND / 2);
	fail_all(&d, "it is loading");
	pass(&d, 2 * SECOND);
	trouble_over(&d.trouble, "", d.now);
	said(&d, 3, "info it is well again, after 14.5 s");
	trouble_over(&d.trouble, "", d.now); /* of another shard */
	assert_int_equal(d.count, 3);
	close_diary(&d);
}

/* Also by the clock of a shard that is a little behind. */
static void no_time_is_less_than_none(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	fail_all(&d, "cannot connect");
	trouble_over(&d.trouble, "", (mono){ d.now.ns - 1 });
	said(&d, 2, "info it is well again, after 0.0 s");
	close_diary(&d);
}

/* One that fails and is well again many times a second is said once in ten, with its end. */
static void a_server_that_flaps_is_no_flood(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	for (int i = 0; i < 1000; i++, pass(&d, SECOND / 100)) {
		fail_all(&d, "a call failed");
		trouble_over(&d.trouble, "", d.now);
	}
	assert_int_equal(d.count, 2);
	fail_all(&d, "a call failed");
	said(&d, 3, "error a call failed");
	trouble_over(&d.trouble, "", d.now);
	assert_int_equal(d.count, 4);
	close_diary(&d);
}

static void each_of_many_servers_has_its_own_trouble(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	say(&d, "10.0.0.1:7000", GALE_LEVEL_ERROR, "cannot connect");
	said(&d, 1, "error 10.0.0.1:7000: cannot connect");
	pass(&d, SECOND);
	say(&d, "10.0.0.2:7000", GALE_LEVEL_ERROR, "cannot connect");
	said(&d, 2, "error 10.0.0.2:7000: cannot connect");
	pass(&d, SECOND);
	trouble_over(&d.trouble, "10.0.0.1:7000", d.now);
	said(&d, 3, "info 10.0.0.1:7000: it is well again, after 2.0 s");
	trouble_over(&d.trouble, "10.0.0.3:7000", d.now);
	assert_int_equal(d.count, 3);
	close_diary(&d);
}

static void only_errors_are_trouble(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	say(&d, "", GALE_LEVEL_WARNING, "no append-only file");
	say(&d, "", GALE_LEVEL_WARNING, "no append-only file");
	said(&d, 1, "warning no append-only file");
	say(&d, "", GALE_LEVEL_INFO, "the connection is over");
	trouble_over(&d.trouble, "", d.now);
	said(&d, 2, "info the connection is over");
	say(&d, "", GALE_LEVEL_ERROR, "");
	trouble_over(&d.trouble, "", d.now);
	assert_int_equal(d.count, 2);
	close_diary(&d);
}

/* More texts than are remembered: the oldest makes way. */
static void the_oldest_text_is_forgotten_first(void **state)
{
	struct diary d;
	char text[16];

	(void)state;
	open_diary(&d);
	for (int i = 0; i <= TROUBLE_TEXTS; i++, pass(&d, 1)) {
		snprintf(text, sizeof(text), "text %d", i);
		fail_all(&d, text);
	}
	assert_int_equal(d.count, TROUBLE_TEXTS + 1);
	fail_all(&d, "text 1");
	assert_int_equal(d.count, TROUBLE_TEXTS + 1);
	fail_all(&d, "text 0");
	said(&d, TROUBLE_TEXTS + 2, "error text 0");
	close_diary(&d);
}

static void without_memory_it_is_said_each_time(void **state)
{
	struct diary d;

	(void)state;
	open_diary(&d);
	d.allocator.fail_first = 1;
	d.allocator.fail_last = UINT64_MAX;
	fail_all(&d, "cannot connect");
	fail_all(&d, "cannot connect");
	trouble_over(&d.trouble, "", d.now);
	said(&d, 2, "error cannot connect");
	trouble_say(NULL, "", GALE_LEVEL_ERROR, "nobody listens", d.now);
	trouble_over(NULL, "", d.now);
	close_diary(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_text_is_said_once_a_minute_while_its_trouble_goes_on),
		cmocka_unit_test(a_server_is_well_again_after_so_long),
		cmocka_unit_test(no_time_is_less_than_none),
		cmocka_unit_test(a_server_that_flaps_is_no_flood),
		cmocka_unit_test(each_of_many_servers_has_its_own_trouble),
		cmocka_unit_test(only_errors_are_trouble),
		cmocka_unit_test(the_oldest_text_is_forgotten_first),
		cmocka_unit_test(without_memory_it_is_said_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
