/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * report_test.c -- the verdict, the exit status, and what is printed.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/report.h"

/* A run that went well. */
static struct report good(void)
{
	return (struct report){
		.flags = { .processes = 1,
		           .nodes = 4,
		           .threads = 2,
		           .keys = 2,
		           .limit = 10,
		           .window_us = 500000,
		           .mode_name = "strict",
		           .store = "memory:fleet" },
		.seconds = 2,
		.counts = { [SEEN_ALLOWED] = 40,
		            [SEEN_DENIED] = 160,
		            [SEEN_STORE_CALLS] = 200,
		            [SEEN_LEASES] = 300 },
		.p50_ns = 100,
		.p99_ns = 1000,
		.tally = { .admitted = 40, .admitted_max = 10, .windows = 2 },
		.windows = { { .number = 1, .admitted = 20, .most = 10, .whole = true },
		             { .number = 2, .admitted = 20, .most = 10 } },
		.window_count = 2,
	};
}

typedef void print_fn(const struct report *report, FILE *out);

/* What it prints, until the next call. */
static const char *printed(print_fn *print, const struct report *report)
{
	static char text[8192];
	FILE *out = fmemopen(text, sizeof(text), "w");

	assert_non_null(out);
	print(report, out);
	fclose(out);
	return text;
}

static void expect(print_fn *print, const struct report *report, const char *words)
{
	const char *text = printed(print, report);

	if (!strstr(text, words))
		fail_msg("\"%s\" is not in: %s", words, text);
}

/* ---- The verdict ----------------------------------------------------------------- */

static void a_run_within_its_limits_held(void **state)
{
	struct report report = good();

	(void)state;
	assert_int_equal(report_verdict(&report), VERDICT_HELD);
	assert_int_equal(report_status(&report), 0);
	expect(report_json, &report, "\"verdict\": \"held\"");
	expect(report_table, &report, "HELD");
}

static void a_window_above_its_limit_exits_with_1(void **state)
{
	struct report report = good();

	(void)state;
	report.tally.admitted_max = 11;
	report.tally.overshoot = 1;
	assert_int_equal(report_verdict(&report), VERDICT_OVERSHOT);
	assert_int_equal(report_status(&report), 1);
	expect(report_json, &report, "\"overshoot\": 1,");
	expect(report_json, &report, "\"verdict\": \"overshot\"");
	expect(report_table, &report, "OVERSHOT: a key got 11");
}

/* The same, from the count itself. */
static void a_planted_overshoot_exits_with_1(void **state)
{
	struct tally_config config = { .keys = 1,
		                       .workers = 1,
		                       .ring = 4,
		                       .limit = 10,
		                       .window_us = 500000,
		                       .begin_us = 1000000 };
	struct report report = good();
	struct tally tally;

	(void)state;
	assert_true(tally_open(&tally, &config));
	for (int i = 0; i < 11; i++)
		tally_count(&tally, 0, 0,
		            tally_place(500000, 1000000, 1000000, 500000));
	tally_pass(&tally, 0, TALLY_GONE);
	tally_finish(&tally, 2000000);
	report.tally = tally_total(&tally);
	tally_close(&tally);
	report.counts[SEEN_ALLOWED] = 11;
	assert_int_equal(report_verdict(&report), VERDICT_OVERSHOT);
	assert_int_equal(report_status(&report), 1);
}

static void clocks_that_disagree_prove_nothing(void **state)
{
	struct report report = good();

	(void)state;
	report.tally.disagreements = 3;
	report.tally.admitted = 37;
	assert_int_equal(report_verdict(&report), VERDICT_UNPROVEN);
	assert_int_equal(report_status(&report), 1);
	expect(report_json, &report, "\"clock_disagreements\": 3,");
	expect(report_json, &report, "\"verdict\": \"unproven\"");
	expect(report_table, &report, "UNPROVEN: 3 admissions");
}

static void a_count_that_got_lost_proves_nothing(void **state)
{
	struct report report = good();

	(void)state;
	report.counts[SEEN_ALLOWED]++;
	assert_int_equal(report_verdict(&report), VERDICT_UNPROVEN);
	assert_int_equal(report_status(&report), 1);
}

static void a_clock_that_was_set_proves_nothing(void **state)
{
	struct report report = good();

	(void)state;
	report.clock_step_us = 1500;
	assert_int_equal(report_verdict(&report), VERDICT_UNPROVEN);
	assert_int_equal(report_status(&report), 1);
	expect(report_json, &report, "\"clock_step_us\": 1500,");
	expect(report_table, &report, "UNPROVEN: the system's clock was set by 1,500");
}

static void an_overshoot_weighs_more_than_a_disagreement(void **state)
{
	struct report report = good();

	(void)state;
	report.tally.disagreements = 1;
	report.tally.overshoot = 1;
	assert_int_equal(report_verdict(&report), VERDICT_OVERSHOT);
}

/* ---- A demand -------------------------------------------------------------------- */

static struct report with_demand(uint64_t served, double worst)
{
	struct report report = good();

	report.flags.demand_percent = 80;
	report.flags.moving = 1;
	report.flags.limit = 375; /* of two keys */
	report.tally.windows = TALLY_LEARNING + 2;
	report.tally.asked_windows = 2;
	report.tally.asked = 1200;
	report.tally.owed = 1000;
	report.tally.served = served;
	report.tally.served_worst = worst;
	return report;
}

static void a_demand_that_is_served_exits_with_0(void **state)
{
	struct report report = with_demand(990, 0.95);

	(void)state;
	assert_int_equal(report_verdict(&report), VERDICT_HELD);
	assert_int_equal(report_status(&report), 0);
	expect(report_table, &report,
	       "  asked                  1,200  80.0 % of the limits in 2 windows; "
	       "wanted: 80 %, moving");
	expect(
	    report_table, &report,
	    "  served                   990  99.00 % of what was owed; worst window: "
	    "95.00 %");
	expect(report_json, &report,
	       "\"demand_percent\": 80, \"moving\": 1, \"asked_windows\": 2, "
	       "\"asked\": 1200, \"owed\": 1000, \"served\": 990, "
	       "\"served_mean\": 0.990000, \"served_worst\": 0.950000, ");
}

static void a_demand_below_its_bar_exits_with_1(void **state)
{
	struct report in_mean = with_demand(989, 0.98);
	struct report in_a_window = with_demand(1000, 0.949);

	(void)state;
	assert_int_equal(report_verdict(&in_mean), VERDICT_SHORT);
	assert_int_equal(report_status(&in_mean), 1);
	assert_int_equal(report_verdict(&in_a_window), VERDICT_SHORT);
	assert_int_equal(report_status(&in_a_window), 1);
	expect(report_json, &in_mean, "\"verdict\": \"short\"");
	expect(report_table, &in_mean,
	       "SHORT: 98.90 % of what was owed were served, 98.00 % in the worst "
	       "window; the bar is 99 % and 95 %");
}

static void a_demand_of_which_no_window_counts_is_unproven(void **state)
{
	struct report report = with_demand(0, 0);

	(void)state;
	report.tally.asked_windows = 0;
	assert_int_equal(report_verdict(&report), VERDICT_UNPROVEN);
	assert_int_equal(report_status(&report), 1);
	expect(report_table, &report, "UNPROVEN: the run ended before a window");
}

/* A machine that is too slow to ask shows nothing, however well it serves what it asked for. */
static void a_demand_that_is_not_made_is_unproven(void **state)
{
	struct report least = with_demand(990, 0.95), less = least, rarely = least;

	(void)state;
	least.tally.asked = 1080; /* nine tenths of 80 % of 1,500 */
	assert_int_equal(report_verdict(&least), VERDICT_HELD);
	less.tally.asked = 1079;
	assert_int_equal(report_verdict(&less), VERDICT_UNPROVEN);
	assert_int_equal(report_status(&less), 1);
	expect(report_table, &less,
	       "UNPROVEN: 71.9 % of the limits were asked for, and 80 % were wanted. "
	       "Set a lower --limit or fewer --nodes");
	rarely.tally.windows++; /* in which no call was made */
	assert_int_equal(report_verdict(&rarely), VERDICT_UNPROVEN);
}

static void who_has_no_demand_has_no_bar(void **state)
{
	struct report report = with_demand(0, 0);

	(void)state;
	report.flags.demand_percent = 0;
	assert_int_equal(report_status(&report), 0);
	assert_null(strstr(printed(report_json, &report), "served"));
	assert_null(strstr(printed(report_table, &report), "served"));
}

/* ---- What is printed ------------------------------------------------------------- */

static void the_object_is_one_line_that_has_every_field(void **state)
{
	static const char *fields[] = {
		"\"mode\": \"strict\"",
		"\"store\": \"memory:fleet\"",
		"\"processes\": 1,",
		"\"nodes\": 4,",
		"\"threads\": 2,",
		"\"keys\": 2,",
		"\"limit\": 10,",
		"\"window_us\": 500000,",
		"\"seconds\": 2.0",
		"\"decisions\": 200,",
		"\"allowed\": 40,",
		"\"denied\": 160,",
		"\"ns_per_decision_p50\": 100,",
		"\"ns_per_decision_p99\": 1000,",
		"\"decisions_per_second\": 100,",
		"\"store_calls\": 200,",
		"\"store_calls_per_million\": 1000000.000,",
		"\"leases\": 300,",
		"\"leases_per_store_call\": 1.500,",
		"\"connects\": 0,",
		"\"failures\": 0,",
		"\"wrong\": 0,",
		"\"windows\": 2,",
		"\"admitted_max\": 10,",
		"\"overshoot\": 0,",
		"\"undershoot_mean\": 0.0",
	};
	struct report report = good();
	const char *text = printed(report_json, &report);

	(void)state;
	assert_int_equal(text[0], '{');
	assert_string_equal(strchr(text, '\n') - 1, "}\n");
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		expect(report_json, &report, fields[i]);
}

static void any_name_of_a_store_is_valid_in_the_object(void **state)
{
	struct report report = good();

	(void)state;
	report.flags.store = "memory:a\"b\\c\nd\xff";
	expect(report_json, &report,
	       "\"store\": \"memory:a\\u0022b\\u005cc\\u000ad\\u00ff\"");
}

static void a_password_is_not_printed(void **state)
{
	struct report report = good();

	(void)state;
	report.flags.store = "redis://me:secret@localhost/0";
	expect(report_json, &report, "\"store\": \"redis://me:***@localhost/0\"");
}

static void the_table_tells_of_a_servers_connections(void **state)
{
	struct report report = good();

	(void)state;
	report.flags.server = true;
	report.counts[SEEN_CONNECTS] = 8;
	report.counts[SEEN_FAILURES] = 1;
	expect(report_table, &report, " 8  failures: 1;");
}

static void the_table_says_why_answers_were_refused(void **state)
{
	struct report report = good();

	(void)state;
	report.counts[SEEN_REFUSED] = 7;
	report.counts[SEEN_REFUSED_WHY] = GALE_WHY_FULL;
	expect(report_table, &report, gale_why_text(GALE_WHY_FULL));
}

static void the_table_has_a_line_for_each_window(void **state)
{
	struct report report = good();

	(void)state;
	expect(report_table, &report, "\n       1 ");
	expect(report_table, &report, "\n       2 part ");
}

/* What of each window was left, and how far it was overdrawn. */
static void the_table_tells_undershoot_and_overshoot_of_each_window(void **state)
{
	struct report report = good();

	(void)state;
	report.windows[0].undershoot = 0.25;
	report.windows[1].undershoot = 0.5; /* but it is a part */
	expect(report_table, &report,
	       " 1                    20    25.000 %          0             10\n");
	expect(report_table, &report,
	       " 2 part               20           -          0             10\n");
	report.windows[1].most = 13;
	report.tally.admitted_max = 13;
	report.tally.overshoot = 3;
	expect(report_table, &report,
	       " 2 part               20           -          3             13\n");
	expect(report_table, &report, "3             13  limit 10\n");
}

static void a_run_without_a_whole_window_says_so(void **state)
{
	struct report report = good();

	(void)state;
	report.tally.windows = 0;
	expect(report_table, &report, "no window lay inside the run");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_within_its_limits_held),
		cmocka_unit_test(a_window_above_its_limit_exits_with_1),
		cmocka_unit_test(a_planted_overshoot_exits_with_1),
		cmocka_unit_test(clocks_that_disagree_prove_nothing),
		cmocka_unit_test(a_count_that_got_lost_proves_nothing),
		cmocka_unit_test(a_clock_that_was_set_proves_nothing),
		cmocka_unit_test(an_overshoot_weighs_more_than_a_disagreement),
		cmocka_unit_test(a_demand_that_is_served_exits_with_0),
		cmocka_unit_test(a_demand_below_its_bar_exits_with_1),
		cmocka_unit_test(a_demand_of_which_no_window_counts_is_unproven),
		cmocka_unit_test(a_demand_that_is_not_made_is_unproven),
		cmocka_unit_test(who_has_no_demand_has_no_bar),
		cmocka_unit_test(the_object_is_one_line_that_has_every_field),
		cmocka_unit_test(any_name_of_a_store_is_valid_in_the_object),
		cmocka_unit_test(a_password_is_not_printed),
		cmocka_unit_test(the_table_tells_of_a_servers_connections),
		cmocka_unit_test(the_table_says_why_answers_were_refused),
		cmocka_unit_test(the_table_has_a_line_for_each_window),
		cmocka_unit_test(
		    the_table_tells_undershoot_and_overshoot_of_each_window),
		cmocka_unit_test(a_run_without_a_whole_window_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
