/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_report_test.c -- what gale fleet --guard says of what it has seen.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tools/guard_report.h"

#define NODES 2

static struct guarded nodes[NODES];

static const struct guard_flags flags = { .processes = 1,
	                                  .nodes = NODES,
	                                  .limit = 10,
	                                  .places = 4,
	                                  .takes_us = 1000,
	                                  .run_us = 1000000 };

static struct guard_view view_of(uint64_t worst)
{
	struct guard_view view = { .flags = &flags,
		                   .elapsed_s = 2,
		                   .calls_per_s = 100,
		                   .nodes = NODES,
		                   .each = nodes,
		                   .backend = { .recent_worst = 9 } };

	view.backend.all.worst = worst;
	memset(nodes, 0, sizeof(nodes));
	nodes[0].limit = 7;
	nodes[1].limit = 3;
	nodes[0].asked = 60;
	nodes[0].entered = nodes[0].done = 40;
	nodes[0].round_trips_us = 40 * 3000;
	nodes[0].refused_by[GALE_WHY_SHARE] = 20;
	nodes[1].asked = 31;
	nodes[1].entered = 30;
	nodes[1].done = 28;
	nodes[1].aborted = 2;
	nodes[1].round_trips_us = 28 * 3000;
	nodes[1].refused_by[GALE_WHY_CLOSED] = 1;
	guard_view_sum(&view);
	return view;
}

/* What it prints; until the next call. */
static const char *printed(void (*print)(const struct guard_view *view, FILE *out),
                           const struct guard_view *view)
{
	static char text[4096];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	print(view, out);
	fclose(out);
	return text;
}

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void nodes_are_added_up(void **state)
{
	struct guard_view view = view_of(10);

	(void)state;
	assert_int_equal(view.sums.asked, 91);
	assert_int_equal(view.sums.entered, 70);
	assert_int_equal(view.sums.done, 68);
	assert_int_equal(view.sums.aborted, 2);
	assert_int_equal(view.sums.refused, 21);
	assert_int_equal(view.sums.refused_by[GALE_WHY_SHARE], 20);
}

static void the_limit_itself_is_held(void **state)
{
	struct guard_view view = view_of(10);

	(void)state;
	assert_int_equal(guard_overshoot(&view), 0);
	assert_says(printed(guard_report_table, &view), "held: at most 10 calls");
	assert_says(printed(guard_report_json, &view),
	            "\"overshoot\": 0, \"verdict\": \"held\"}");
}

static void one_call_more_is_an_overshoot(void **state)
{
	struct guard_view view = view_of(11);

	(void)state;
	assert_int_equal(guard_overshoot(&view), 1);
	assert_says(printed(guard_report_table, &view), "overshot: at most 11 calls");
	assert_says(printed(guard_report_json, &view),
	            "\"in_flight_worst\": 11, \"overshoot\": 1, \"verdict\": "
	            "\"overshot\"}");
}

static void print_line(const struct guard_view *view, FILE *out)
{
	struct guard_view before = { .elapsed_s = 1 };

	guard_report_line(view, &before, out);
}

static void a_line_has_rates_limits_and_reasons(void **state)
{
	struct guard_view view = view_of(10);
	const char *line = printed(print_line, &view);

	(void)state;
	assert_says(line, "  2.0 s      100      68      3.0          0      9  ");
	assert_says(line, "7+3 = 10; share 20, other 1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_added_up),
		cmocka_unit_test(the_limit_itself_is_held),
		cmocka_unit_test(one_call_more_is_an_overshoot),
		cmocka_unit_test(a_line_has_rates_limits_and_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
