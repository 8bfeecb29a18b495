/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * flags_test.c -- what gale fleet accepts, and how it says no.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "tools/flags.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARGS_MAX 12

/* Splits words at blanks; "" is no argument at all. */
static enum flags_result parse(const char *words, struct fleet_flags *ret_flags,
                               struct flags_error *ret_error)
{
	char copy[256], *argv[ARGS_MAX], *word;
	int argc = 0;
	enum flags_result result;

	assert_true(strlen(words) < sizeof(copy));
	strcpy(copy, words);
	for (word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = word;
	}
	result = flags_parse(argc, argv, ret_flags, ret_error);
	if (result == FLAGS_RUN) {
		ret_flags->store = NULL; /* it pointed into copy */
		ret_flags->argv = NULL;
	}
	return result;
}

static struct fleet_flags good(const char *words)
{
	struct fleet_flags flags = { 0 };
	struct flags_error error = { "" };

	if (parse(words, &flags, &error) != FLAGS_RUN)
		fail_msg("%s: %s", words, error.text);
	return flags;
}

/* Refused with one line that begins with the flag and says these words. */
static void expect_bad(const char *words, const char *flag, const char *says)
{
	struct fleet_flags flags = { .nodes = 77 };
	struct flags_error error = { "" };

	if (parse(words, &flags, &error) != FLAGS_BAD)
		fail_msg("%s is accepted", words);
	if (strncmp(error.text, flag, strlen(flag)) != 0 || !strstr(error.text, says))
		fail_msg("%s: says \"%s\", not \"%s ... %s\"", words, error.text, flag,
		         says);
	assert_null(strpbrk(error.text, "\n\r\033"));
	assert_int_equal(flags.nodes, 77); /* untouched */
}

/* ---- Values ---------------------------------------------------------------------- */

static void a_number_is_whole_and_takes_k_and_M(void **state)
{
	static const struct {
		const char *text;
		uint64_t number;
	} rows[] = {
		{ "0", 0 },
		{ "007", 7 },
		{ "10k", 10000 },
		{ "2M", 2000000 },
		{ "18446744073709551615", UINT64_MAX },
		{ "18446744073709551k", UINT64_C(18446744073709551000) },
	};
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(flags_number(rows[i].text, &number));
		assert_int_equal(number, rows[i].number);
	}
}

static void what_is_no_number_or_too_large_is_refused(void **state)
{
	static const char *rows[] = {
		"",
		"k",
		"-1",
		"+1",
		" 1",
		"1 ",
		"1.5k",
		"1K",
		"1m",
		"1kk",
		"0x10",
		"1e3",
		"18446744073709551616",
		"99999999999999999999999999",
		"18446744073709552k",
		"18446744073710M",
	};
	uint64_t number = 5;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (flags_number(rows[i], &number))
			fail_msg("\"%s\" is accepted", rows[i]);
	assert_int_equal(number, 5);
}

static void a_duration_has_a_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t us;
	} rows[] = {
		{ "7us", 7 },        { "250ms", 250000 },  { "1s", 1000000 },
		{ "2m", 120000000 }, { "1h", 3600000000 }, { "0s", 0 },
	};
	uint64_t us;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(flags_duration(rows[i].text, 0, &us));
		assert_int_equal(us, rows[i].us);
	}
}

static void a_bare_duration_counts_only_where_a_unit_is_understood(void **state)
{
	uint64_t us = 0;

	(void)state;
	assert_false(flags_duration("3", 0, &us));
	assert_true(flags_duration("0", 0, &us));
	assert_int_equal(us, 0);
	assert_true(flags_duration("3", 1000000, &us));
	assert_int_equal(us, 3000000);
}

static void a_duration_that_overflows_or_is_none_is_refused(void **state)
{
	static const char *rows[] = {
		"",
		"s",
		"1 s",
		"-1s",
		"1.5s",
		"1S",
		"1d",
		"1sm",
		"18446744073709552ms",
		"5124095577h",
	};
	uint64_t us;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (flags_duration(rows[i], 1000000, &us))
			fail_msg("\"%s\" is accepted", rows[i]);
}

/* ---- Flags ----------------------------------------------------------------------- */

static void without_flags_everything_has_a_preset(void **state)
{
	struct flags_error error;
	struct fleet_flags flags;

	(void)state;
	assert_int_equal(flags_parse(0, NULL, &flags, &error), FLAGS_RUN);
	assert_int_equal(flags.processes, 1);
	assert_int_equal(flags.nodes, 4);
	assert_int_equal(flags.threads, 2);
	assert_int_equal(flags.keys, 100);
	assert_int_equal(flags.limit, 5000);
	assert_int_equal(flags.window_us, 500000);
	assert_int_equal(flags.run_us, 5000000);
	assert_int_equal(flags.mode, GALE_LEASED);
	assert_string_equal(flags.mode_name, "leased");
	assert_string_equal(flags.store, "memory:fleet");
	assert_false(flags.json);
}

static void each_flag_sets_its_own(void **state)
{
	(void)state;
	assert_int_equal(good("--nodes 3").nodes, 3);
	assert_int_equal(good("--threads 5").threads, 5);
	assert_int_equal(good("--keys 10k").keys, 10000);
	assert_int_equal(good("--limit 2M").limit, 2000000);
	assert_int_equal(good("--window 1m").window_us, 60000000);
	assert_int_equal(good("--seconds 3").run_us, 3000000);
	assert_int_equal(good("--seconds 250ms").run_us, 250000);
	assert_int_equal(good("--mode strict").mode, GALE_STRICT);
	assert_int_equal(good("--mode cached-deny").mode, GALE_CACHED_DENY);
	assert_int_equal(good("--mode leased").mode, GALE_LEASED);
	assert_true(good("--json").json);
	assert_int_equal(good("--demand 80%").demand_percent, 80);
	assert_int_equal(good("--demand 80% --moving").moving, 1);
}

static void a_demand_is_a_part_of_the_limits(void **state)
{
	static const char *rows[] = { "80", "%",     "80%%", "%80",
		                      "0%", "1001%", "1.5%", "12345678901%" };
	char words[64];

	(void)state;
	assert_int_equal(good("").demand_percent, 0);
	assert_int_equal(good("").moving, 0);
	good("--demand 1%");
	good("--demand 1000%");
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(words, sizeof(words), "--demand %s", rows[i]);
		expect_bad(words, "--demand", "from 1 to 1000, and %");
	}
	expect_bad("--moving", "--moving", "none is given");
	expect_bad("--demand 80% --window 1s --seconds 7", "--seconds",
	           "at least 8 windows");
	good("--demand 80% --window 1s --seconds 8");
	expect_bad("--demand 80% --limit 9007199254740991", "--demand", "too many");
}

static void a_value_may_follow_an_equals_sign(void **state)
{
	struct fleet_flags flags = good("--nodes=3 --json --window=1s");

	(void)state;
	assert_int_equal(flags.nodes, 3);
	assert_int_equal(flags.window_us, 1000000);
	assert_true(flags.json);
}

static void the_last_of_equal_flags_counts(void **state)
{
	(void)state;
	assert_int_equal(good("--nodes 3 --nodes 7").nodes, 7);
}

static void the_store_is_one_that_all_nodes_share(void **state)
{
	char url[] = "memory:it", *argv[] = { "--store", url };
	struct fleet_flags flags;
	struct flags_error error;

	(void)state;
	assert_int_equal(flags_parse(2, argv, &flags, &error), FLAGS_RUN);
	assert_string_equal(flags.store, "memory:it");
	expect_bad("--store memory:", "--store", "memory:NAME");
	expect_bad("--store ://", "--store", "redis://HOST");
	expect_bad("--store redis:", "--store", "redis://HOST");
	expect_bad("--store memory", "--store", "memory:NAME");
}

static void many_processes_need_a_server(void **state)
{
	(void)state;
	expect_bad("--processes 2", "--processes", "each would have its own");
	expect_bad("--processes 2 --store memory:it", "--processes", "memory:");
	assert_true(good("--processes 2 --store redis://localhost").server);
	assert_int_equal(good("--processes 64 --store a://b --nodes 1").processes, 64);
	assert_false(good("--processes 1 --store memory:it").server);
}

static void a_store_name_has_at_most_64_bytes(void **state)
{
	char url[] =
	    "--store memory:"
	    "0123456789012345678901234567890123456789012345678901234567890123x";

	(void)state;
	expect_bad(url, "--store", "64 bytes");
	url[strlen(url) - 1] = '\0';
	good(url);
}

static void values_end_at_their_bounds(void **state)
{
	static const struct {
		const char *flag;
		const char *least, *most, *below, *above;
	} rows[] = {
		{ "--nodes", "1", "64", "0", "65" },
		{ "--threads", "1", "256", "0", "257" },
		{ "--keys", "1", "1M", "0", "1000001" },
		{ "--limit", "1", "9007199254740991", "0", "9007199254740992" },
		{ "--window", "10ms", "24h", "9999us", "86400001ms" },
		{ "--seconds", "100ms", "24h", "99ms", "86401" },
	};
	char words[64];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(words, sizeof(words), "%s %s", rows[i].flag, rows[i].least);
		good(words);
		snprintf(words, sizeof(words), "--threads 1 %s %s", rows[i].flag,
		         rows[i].most);
		good(words);
		snprintf(words, sizeof(words), "%s %s", rows[i].flag, rows[i].below);
		expect_bad(words, rows[i].flag, rows[i].below);
		snprintf(words, sizeof(words), "%s %s", rows[i].flag, rows[i].above);
		expect_bad(words, rows[i].flag, rows[i].above);
	}
}

static void an_error_says_what_is_allowed(void **state)
{
	(void)state;
	expect_bad("--nodes x", "--nodes", "from 1 to 64");
	expect_bad("--threads -1", "--threads", "from 1 to 256");
	expect_bad("--keys 1.5", "--keys", "from 1 to 1M");
	expect_bad("--limit 99999999999999999999", "--limit",
	           "from 1 to 9007199254740991");
	expect_bad("--window 1", "--window", "its unit");
	expect_bad("--seconds 0", "--seconds", "100ms to 24h");
	expect_bad("--mode lent", "--mode", "strict");
}

static void an_unknown_flag_is_told_which_there_are(void **state)
{
	static const char *names[] = { "--processes", "--nodes",  "--threads",
		                       "--keys",      "--limit",  "--window",
		                       "--mode",      "--store",  "--seconds",
		                       "--demand",    "--moving", "--json",
		                       "--help" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		expect_bad("--colour=red", "--colour:", names[i]);
	expect_bad("fast", "fast:", "--nodes");
	expect_bad("--node 3", "--node:", "--nodes");
	expect_bad("--nodes 3 --", "--:", "--nodes");
}

static void a_missing_or_surplus_value_is_named(void **state)
{
	(void)state;
	expect_bad("--nodes", "--nodes", "needs a value");
	expect_bad("--json --store", "--store", "needs a value");
	expect_bad("--json=1", "--json", "takes no value");
	expect_bad("--nodes=", "--nodes", "from 1 to 64");
}

static void more_threads_than_there_may_be_in_all_contradict(void **state)
{
	(void)state;
	good("--nodes 64 --threads 16");
	expect_bad("--nodes 64 --threads 17", "--threads", "at most 1024");
	good("--store a://b --processes 64 --nodes 16 --threads 1");
	expect_bad("--store a://b --processes 64 --nodes 9", "--threads",
	           "at most 1024");
	good("--store a://b --nodes 1 --processes 4 --keys 1M");
	expect_bad("--store a://b --nodes 1 --processes 5 --keys 1M", "--keys",
	           "at most 4000000");
}

static void an_error_stays_one_short_line(void **state)
{
	char text[2048], *argv[] = { "--nodes", text };
	struct flags_error error;
	struct fleet_flags flags;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	text[3] = '\n';
	text[4] = '\033';
	text[5] = (char)0xff;
	assert_int_equal(flags_parse(2, argv, &flags, &error), FLAGS_BAD);
	assert_non_null(strstr(error.text, "xxx???xxx"));
	assert_non_null(strstr(error.text, "..."));
	assert_int_equal(flags_parse(1, argv + 1, &flags, &error), FLAGS_BAD);
	assert_non_null(strstr(error.text, "--help"));
}

static void help_is_told_wherever_it_is_asked_for(void **state)
{
	struct fleet_flags flags;
	struct flags_error error;

	(void)state;
	assert_int_equal(parse("--help", &flags, &error), FLAGS_HELP);
	assert_int_equal(parse("--nodes 3 -h", &flags, &error), FLAGS_HELP);
	assert_int_equal(parse("--nodes --help", &flags, &error), FLAGS_HELP);
	assert_int_equal(parse("--help --nodes", &flags, &error), FLAGS_HELP);
	assert_int_equal(parse("--nodes none --help", &flags, &error), FLAGS_HELP);
	assert_int_equal(parse("--colour=red -h", &flags, &error), FLAGS_HELP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_whole_and_takes_k_and_M),
		cmocka_unit_test(what_is_no_number_or_too_large_is_refused),
		cmocka_unit_test(a_duration_has_a_unit),
		cmocka_unit_test(
		    a_bare_duration_counts_only_where_a_unit_is_understood),
		cmocka_unit_test(a_duration_that_overflows_or_is_none_is_refused),
		cmocka_unit_test(without_flags_everything_has_a_preset),
		cmocka_unit_test(each_flag_sets_its_own),
		cmocka_unit_test(a_demand_is_a_part_of_the_limits),
		cmocka_unit_test(a_value_may_follow_an_equals_sign),
		cmocka_unit_test(the_last_of_equal_flags_counts),
		cmocka_unit_test(the_store_is_one_that_all_nodes_share),
		cmocka_unit_test(many_processes_need_a_server),
		cmocka_unit_test(a_store_name_has_at_most_64_bytes),
		cmocka_unit_test(values_end_at_their_bounds),
		cmocka_unit_test(an_error_says_what_is_allowed),
		cmocka_unit_test(an_unknown_flag_is_told_which_there_are),
		cmocka_unit_test(a_missing_or_surplus_value_is_named),
		cmocka_unit_test(more_threads_than_there_may_be_in_all_contradict),
		cmocka_unit_test(an_error_stays_one_short_line),
		cmocka_unit_test(help_is_told_wherever_it_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
