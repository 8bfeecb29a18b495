/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* label_test.c -- what a store is called, without what is secret. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "stores/label.h"

static void a_label_says_where_and_not_who(void **state)
{
	static const char *const rows[][2] = {
		{ "memory:", "memory:" },
		{ "memory:a://b@c?d", "memory:a://b@c?d" },
		{ "redis://h:7000/3", "redis://h:7000/3" },
		{ "redis://me:secret@h:7000/3", "redis://h:7000/3" },
		{ "redis://:s%2Fecret@h", "redis://h" },
		{ "redis://:se:cr@et@[::1]:7000", "redis://[::1]:7000" },
		{ "redis:///run/redis@home.sock?db=2", "redis:///run/redis@home.sock" },
		{ "redis://me:secret@h/1?durable=1&prefix=a%26b&db=2",
		  "redis://h/1?prefix=a%26b" },
		{ "redis://h?prefix=a", "redis://h?prefix=a" },
		{ "redis://h?suffix=prefix=a", "redis://h" },
		{ "redis+sentinel://:secret@h,i/name?sentinel_password=secret",
		  "redis+sentinel://h,i/name" },
		{ "redis+cluster://u:secret@h:1,i:2?prefix=p",
		  "redis+cluster://h:1,i:2?prefix=p" },
		{ "postgres://u:secret@h,i:5433/db?password=secret&prefix=secret",
		  "postgres://h,i:5433/db" },
		{ "postgresql://u:se?cret@h/db", "postgresql://h/db" },
		{ "postgres:///db?host=/run&password=secret", "postgres:///db" },
		{ "redis://h:1,[::1]:2,i/3?sentinel_password=s@ecret",
		  "redis://h:1,[::1]:2,i/3" },
		/* A password in which / and ? are not encoded. */
		{ "redis://me:secret/word@h/1", "redis://" },
		{ "redis://me:1/secret@h", "redis://" },
		{ "redis://:/secret@h", "redis://" },
		{ "redis://me:a@secret/word@h", "redis://" },
		{ "redis://me:1?secret/word@h", "redis://" },
		{ "redis://me:secret?a=b/c@h", "redis://" },
		{ "redis://me:a?prefix=secret@h", "redis://h" },
		{ "postgres://me:1/secret@h/db", "postgres://" },
		{ "me:secret@h:6379", "" },
		{ "", "" },
	};
	char label[LABEL_ROOM];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		label_of_url(rows[i][0], label);
		assert_string_equal(label, rows[i][1]);
		assert_null(strstr(label, "secret"));
	}
}

static void a_long_one_is_cut(void **state)
{
	char url[1024] = "redis://:secret@", label[LABEL_ROOM];

	(void)state;
	memset(url + strlen(url), 'h', 900);
	label_of_url(url, label);
	assert_int_equal(strlen(label), LABEL_ROOM - 1);
	assert_memory_equal(label, "redis://hhh", 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_says_where_and_not_who),
		cmocka_unit_test(a_long_one_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
