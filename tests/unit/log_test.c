/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* log_test.c -- what the host's log is told, and by whom: a server that is not there. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "tests/support/house.h"
#include "tests/support/lines.h"

#define NOBODY "127.0.0.1:1" /* listens there */

static void ask(void *arg)
{
	(void)house_wait(arg, "secret key");
}

static void a_line_says_how_bad_it_is_and_whose(void **state)
{
	struct lines lines;
	struct house_plan plan = { .rule = gale_fixed_window(5, GALE_HOURS(1)),
		                   .shards = 1,
		                   .mode = GALE_LEASED,
		                   .url = "redis://me:secret@" NOBODY "/3?prefix=p",
		                   .log = &lines.log };
	struct house h;

	(void)state;
	lines_open(&lines);
	house_open(&h, &plan);
	assert_true(lines_will_have_asking(
	    &lines, "error: store redis://" NOBODY "/3?prefix=p: cannot connect: ", ask,
	    &h));
	assert_true(lines_will_have_asking(&lines, "error: limiter house: ", ask, &h));
	assert_false(lines_have(&lines, "secret"));
	assert_true(house_close(&h));
}

static void levels_have_names(void **state)
{
	(void)state;
	assert_string_equal(gale_level_name(GALE_LEVEL_INFO), "info");
	assert_string_equal(gale_level_name(GALE_LEVEL_WARNING), "warning");
	assert_string_equal(gale_level_name(GALE_LEVEL_ERROR), "error");
	assert_string_equal(gale_level_name((enum gale_level)3), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_says_how_bad_it_is_and_whose),
		cmocka_unit_test(levels_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
