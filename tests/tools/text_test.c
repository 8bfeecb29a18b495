/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* text_test.c -- numbers as people read them. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tools/text.h"

static struct text text;

static void counts_have_a_comma_at_each_thousand(void **state)
{
	(void)state;
	assert_string_equal(text_count(&text, 0), "0");
	assert_string_equal(text_count(&text, 999), "999");
	assert_string_equal(text_count(&text, 1000), "1,000");
	assert_string_equal(text_count(&text, 123456), "123,456");
	assert_string_equal(text_count(&text, 1234567), "1,234,567");
	assert_string_equal(text_count(&text, UINT64_MAX),
	                    "18,446,744,073,709,551,615");
}

static void durations_are_in_the_largest_unit_without_a_rest(void **state)
{
	(void)state;
	assert_string_equal(text_duration(&text, 0), "0us");
	assert_string_equal(text_duration(&text, 999), "999us");
	assert_string_equal(text_duration(&text, 1001), "1001us");
	assert_string_equal(text_duration(&text, 500000), "500ms");
	assert_string_equal(text_duration(&text, 90000000), "90s");
	assert_string_equal(text_duration(&text, 120000000), "2m");
	assert_string_equal(text_duration(&text, 86400000000), "24h");
}

static void no_part_of_nothing_is_0_percent(void **state)
{
	(void)state;
	assert_true(percent(0, 0) < 0.001);
	assert_true(percent(1, 4) > 24.999 && percent(1, 4) < 25.001);
}

static void a_url_is_shown_without_its_password(void **state)
{
	static const struct {
		const char *url, *shown;
	} rows[] = {
		{ "memory:fleet", "memory:fleet" },
		{ "redis://host:1/0", "redis://host:1/0" },
		{ "redis://me@host:1", "redis://me@host:1" },
		{ "redis://me:secret@host:1/0?prefix=a",
		  "redis://me:***@host:1/0?prefix=a" },
		{ "redis://:secret@host", "redis://:***@host" },
		{ "redis://me:a@b@host", "redis://me:***@host" },
		{ "redis:///folder/a:b@c", "redis:///folder/a:b@c" },
	};
	struct text_long shown;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(text_url(&shown, rows[i].url), rows[i].shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_have_a_comma_at_each_thousand),
		cmocka_unit_test(durations_are_in_the_largest_unit_without_a_rest),
		cmocka_unit_test(no_part_of_nothing_is_0_percent),
		cmocka_unit_test(a_url_is_shown_without_its_password),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
