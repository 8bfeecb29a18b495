/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url_test.c -- addresses of servers, and what is none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "stores/url.h"

static void every_part_is_found(void **state)
{
	struct url url;

	(void)state;
	assert_true(url_parse("redis://me:p%40ss:w%2Ford@[::1]:7000,b,10.0.0.1:7002/3?"
	                      "prefix=a%26b&durable=1",
	                      &url));
	assert_string_equal(url.scheme, "redis");
	assert_string_equal(url.user, "me");
	assert_string_equal(url.password, "p@ss:w/ord");
	assert_int_equal(url.host_count, 3);
	assert_string_equal(url.hosts[0].name, "::1");
	assert_int_equal(url.hosts[0].port, 7000);
	assert_string_equal(url.hosts[1].name, "b");
	assert_int_equal(url.hosts[1].port, 0);
	assert_string_equal(url.hosts[2].name, "10.0.0.1");
	assert_int_equal(url.hosts[2].port, 7002);
	assert_string_equal(url.path, "/3");
	assert_string_equal(url_option(&url, "prefix"), "a&b");
	assert_string_equal(url_option(&url, "durable"), "1");
	assert_null(url_option(&url, "dur"));
}

static void what_is_not_there_is_empty(void **state)
{
	struct url url;

	(void)state;
	assert_true(url_parse("redis://localhost", &url));
	assert_string_equal(url.user, "");
	assert_string_equal(url.password, "");
	assert_string_equal(url.path, "");
	assert_int_equal(url.option_count, 0);
	assert_false(url_parse("postgres://%00user@h/db", &url));
	assert_true(url_parse("redis://:secret@h:1", &url));
	assert_string_equal(url.user, "");
	assert_string_equal(url.password, "secret");
	assert_true(url_parse("redis:///run/redis.sock?db=2", &url));
	assert_int_equal(url.host_count, 0);
	assert_string_equal(url.path, "/run/redis.sock");
	assert_string_equal(url_option(&url, "db"), "2");
	assert_true(url_parse("redis://a@b@host", &url)); /* the last @ counts */
	assert_string_equal(url.user, "a@b");
	assert_string_equal(url.hosts[0].name, "host");
}

static void what_is_none_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"redis",
		"redis:",
		"redis:/h",
		"://h",
		"redis://h:",
		"redis://h:0",
		"redis://h:65536",
		"redis://h:12x",
		"redis://[::1",
		"redis://[::1]x",
		"redis://:80",
		"redis://h,",
		"redis://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
		"redis://u%4@h",
		"redis://u%zz@h",
		"redis://h/%",
		"redis://h?x",
		"redis://h?a=1&b=2&c=3&d=4&e=5&f=6&g=7&h=8&i=9",
	};
	struct url url;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(url_parse(texts[i], &url));
}

static void the_longest_and_one_more(void **state)
{
	char text[URL_MOST + 2];
	struct url url;

	(void)state;
	memset(text, 'h', sizeof(text));
	memcpy(text, "redis://", 8);
	text[URL_MOST] = '\0';
	assert_true(url_parse(text, &url));
	assert_int_equal(strlen(url.hosts[0].name), URL_MOST - 8);
	text[URL_MOST - 1] = '/'; /* a path takes the last byte there is */
	assert_true(url_parse(text, &url));
	assert_string_equal(url.path, "/");
	text[URL_MOST - 1] = 'h';
	text[URL_MOST] = 'h';
	text[URL_MOST + 1] = '\0';
	assert_false(url_parse(text, &url));
}

static void numbers_are_whole_and_bounded(void **state)
{
	uint64_t number = 7;

	(void)state;
	assert_true(url_number("0", 0, &number));
	assert_int_equal(number, 0);
	assert_true(url_number("15", 15, &number));
	assert_false(url_number("16", 15, &number));
	assert_false(url_number("", 15, &number));
	assert_false(url_number("-1", 15, &number));
	assert_false(url_number("9999999999999999999", UINT64_MAX, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_is_found),
		cmocka_unit_test(what_is_not_there_is_empty),
		cmocka_unit_test(what_is_none_is_refused),
		cmocka_unit_test(the_longest_and_one_more),
		cmocka_unit_test(numbers_are_whole_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
