/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * metrics_test.c -- the text for Prometheus, and the page that lists what is in it.
 *
 *     metrics_test docs/metrics.md
 *     metrics_test --rows             prints the rows that the page must have
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gale/guard.h>

#include "tests/support/house.h"
#include "tests/support/must.h"

#define ROOM 65536
#define ROW_ROOM 512

static const char *page_path;

static const struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                          .limit = 5,
	                                          .period_us = GALE_HOURS(1) } };

static void read_text(struct house *h, char text[ROOM])
{
	size_t length = gale_metrics_text(h->runtime, text, ROOM);

	must(length < ROOM);
	assert_int_equal(strlen(text), length);
}

static void ask_times(struct house *h, struct gale_limiter *limiter, int times)
{
	while (times-- > 0)
		(void)gale_wait(h->seat, limiter, "k", 1, 1, GALE_SECONDS(30));
}

/* One whole line of it. */
static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, length) == 0 && at[length] == '\n')
			return true;
		if (*at == '\0')
			return false;
	}
	return false;
}

static void expect_line(const char *text, const char *line)
{
	if (!has_line(text, line))
		fail_msg("there is no line\n%s\nin\n%s", line, text);
}

static unsigned lines_with(const char *text, const char *what)
{
	unsigned count = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		count++;
	return count;
}

/* ---- What it says ----------------------------------------------------------------- */

static void answers_are_told_by_limiter_verdict_and_reason(void **state)
{
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	ask_times(&h, h.limiter, 8);
	(void)gale_ask(h.seat, h.limiter, "k", 1, 0, NULL);
	(void)gale_ask(h.seat, h.limiter, "k", 1, 0, NULL);
	read_text(&h, text);
	expect_line(text, "# TYPE gale_asks_total counter");
	expect_line(
	    text,
	    "gale_asks_total{limiter=\"house\",verdict=\"allow\",why=\"rule\"} 5");
	expect_line(
	    text, "gale_asks_total{limiter=\"house\",verdict=\"deny\",why=\"rule\"} 3");
	expect_line(
	    text,
	    "gale_asks_total{limiter=\"house\",verdict=\"deny\",why=\"bad_ask\"} 2");
	expect_line(
	    text,
	    "gale_asks_total{limiter=\"house\",verdict=\"allow\",why=\"credit\"} 0");
	expect_line(text, "gale_asks_dropped_total{limiter=\"house\"} 0");
	assert_true(house_close(&h));
}

/* Else the text would have one line twice, which Prometheus refuses. */
static void limiters_of_one_name_are_one_line(void **state)
{
	static const char line[] =
	    "gale_asks_total{limiter=\"twins\",verdict=\"deny\",why=\"bad_ask\"}";
	struct gale_limiter *one, *two;
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	one = house_limiter(&h, "twins", plan.rule);
	two = house_limiter(&h, "twins", plan.rule);
	for (int i = 0; i < 3; i++)
		(void)gale_ask(h.seat, one, "k", 1, 0, NULL);
	(void)gale_ask(h.seat, two, "k", 1, 0, NULL);
	read_text(&h, text);
	assert_int_equal(lines_with(text, line), 1);
	assert_int_equal(strtoull(strstr(text, line) + sizeof(line), NULL, 10), 4);
	gale_limiter_close(one); /* what it has counted goes on */
	read_text(&h, text);
	assert_int_equal(strtoull(strstr(text, line) + sizeof(line), NULL, 10), 4);
	gale_limiter_close(two);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "twins"), 0);
	assert_true(house_close(&h));
}

static void names_are_escaped(void **state)
{
	static const struct {
		const char *name, *label;
	} rows[] = {
		{ "a\"b", "a\\\"b" },
		{ "a\\b", "a\\\\b" },
		{ "a\nb", "a\\nb" },
		{ "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xac",
		  "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xac" },
		{ "\xff!", "\\\\xff!" },
		{ "\xc3", "\\\\xc3" },                       /* cut */
		{ "\xc0\xaf", "\\\\xc0\\\\xaf" },            /* longer than need be */
		{ "\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80" }, /* half of a pair */
		{ "\xe0\x80\x80", "\\\\xe0\\\\x80\\\\x80" },
		{ "\xf4\x90\x80\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80" },
	};
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gale_limiter *limiter =
		    house_limiter(&h, rows[i].name, plan.rule);
		char line[200];

		snprintf(line, sizeof(line),
		         "gale_asks_dropped_total{limiter=\"%s\"} 0", rows[i].label);
		read_text(&h, text);
		expect_line(text, line);
		gale_limiter_close(limiter);
	}
	assert_true(house_close(&h));
}

/* Two handles of one store are one store; two stores of one label are one line. */
static void each_store_is_counted_once(void **state)
{
	static const char *const urls[] = { "memory:shared", "memory:shared",
		                            "memory:" };
	struct gale_store_config config = { 0 };
	struct gale_store *stores[3], *house_store;
	static char text[ROOM];
	struct gale_limiter *limiter;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (size_t i = 0; i < 3; i++) {
		config.url = urls[i];
		must(gale_store_open(h.runtime, &config, &stores[i]) == GALE_ERR_OK);
	}
	house_store = h.store;
	for (size_t i = 0; i < 3; i++) {
		h.store = stores[i];
		limiter = house_limiter(&h, "l", plan.rule);
		ask_times(&h, limiter, 2);
		gale_limiter_close(limiter);
	}
	h.store = house_store;
	ask_times(&h, h.limiter, 3);
	read_text(&h, text);
	expect_line(text, "gale_store_steps_total{store=\"memory:shared\"} 4");
	expect_line(text, "gale_store_steps_total{store=\"memory:\"} 5");
	assert_int_equal(lines_with(text, "gale_store_steps_total{"), 2);
	for (size_t i = 0; i < 3; i++)
		gale_store_close(stores[i]);
	assert_true(house_close(&h));
}

static void each_guard_is_told_of(void **state)
{
	struct gale_guard_config config = { .name = "db \"1\"",
		                            .law = GALE_FIXED,
		                            .ceiling = 1 };
	static char text[ROOM];
	struct gale_guard *guard;
	struct gale_entry entry;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_guard_open(h.runtime, &config, &guard) == GALE_ERR_OK);
	entry = gale_enter(h.seat, guard, 1, GALE_NORMAL);
	(void)gale_enter(h.seat, guard, 1, GALE_NORMAL);
	read_text(&h, text);
	expect_line(text, "gale_guard_limit{guard=\"db \\\"1\\\"\"} 1");
	expect_line(text, "gale_guard_in_flight{guard=\"db \\\"1\\\"\"} 1");
	expect_line(text, "gale_guard_entered_total{guard=\"db \\\"1\\\"\"} 1");
	expect_line(
	    text, "gale_guard_refused_total{guard=\"db \\\"1\\\"\",why=\"ceiling\"} 1");
	gale_exit(h.seat, &entry, GALE_OK);
	gale_guard_close(guard);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "{guard="), 0);
	assert_true(house_close(&h));
}

static void no_secret_is_in_it(void **state)
{
#ifdef GALE_REDIS
	struct gale_store_config config = {
		.url = "redis://user:secret@127.0.0.1:1/3?prefix=a"
	};
	static char text[ROOM];
	struct gale_store *store;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	must(gale_store_open(h.runtime, &config, &store) == GALE_ERR_OK);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "secret"), 0);
	assert_int_equal(lines_with(text, "user"), 0);
	assert_true(lines_with(text, "gale_store_steps_total{store=\"redis://") == 1);
	gale_store_close(store);
	assert_true(house_close(&h));
#else
	(void)state;
#endif
}

/* ---- Its form --------------------------------------------------------------------- */

static void it_is_cut_as_by_snprintf(void **state)
{
	static char text[ROOM], part[ROOM];
	struct house h;
	size_t length;

	(void)state;
	house_open(&h, &plan);
	length = gale_metrics_text(h.runtime, NULL, 0);
	read_text(&h, text);
	assert_int_equal(strlen(text), length);
	for (size_t room = 1; room <= length + 1; room += room < 300 ? 1 : 97) {
		memset(part, 'x', sizeof(part));
		assert_int_equal(gale_metrics_text(h.runtime, part, room), length);
		assert_int_equal(strlen(part), room - 1);
		assert_memory_equal(part, text, room - 1);
		assert_int_equal(part[room], 'x');
	}
	assert_int_equal(gale_metrics_text(NULL, part, 5), 0);
	assert_string_equal(part, "");
	assert_true(house_close(&h));
}

static bool is_name(const char *at, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!islower((unsigned char)at[i]) && at[i] != '_')
			return false;
	return length > 5 && strncmp(at, "gale_", 5) == 0;
}

static bool ends(const char *at, size_t length, const char *with)
{
	size_t end = strlen(with);

	return length > end && strncmp(at + length - end, with, end) == 0;
}

/* "# HELP name help", "# TYPE name type", and then lines of that name alone; a counter's
 * ends in _total. */
static void expect_family(char **line)
{
	char *name = *line + strlen("# HELP "), *help = strchr(name, ' ');
	size_t length = (size_t)(help - name);
	char type[ROW_ROOM];

	must(strncmp(*line, "# HELP ", 7) == 0);
	assert_true(is_name(name, length));
	assert_true(strlen(help) > 10);
	*line = strtok(NULL, "\n");
	snprintf(type, sizeof(type), "# TYPE %.*s %s", (int)length, name,
	         ends(name, length, "_total") ? "counter" : "gauge");
	assert_string_equal(*line, type);
	while ((*line = strtok(NULL, "\n")) && (*line)[0] != '#') {
		char *value = strrchr(*line, ' ');

		assert_true(strncmp(*line, name, length) == 0);
		assert_true((*line)[length] == ' ' || (*line)[length] == '{');
		assert_true(strspn(value + 1, "0123456789") == strlen(value + 1));
	}
}

static void each_name_has_its_help_and_type_before_it(void **state)
{
	static char text[ROOM];
	unsigned families = 0;
	struct house h;
	char *line;

	(void)state;
	house_open(&h, &plan);
	ask_times(&h, h.limiter, 3);
	read_text(&h, text);
	assert_int_equal(text[strlen(text) - 1], '\n');
	for (line = strtok(text, "\n"); line; families++)
		expect_family(&line);
	assert_true(families > 40);
	assert_true(house_close(&h));
}

/* ---- The page --------------------------------------------------------------------- */

/* A row of the page's table for a family, which begins here; returns where the next does. */
static const char *write_row(const char *family, char row[ROW_ROOM])
{
	char name[ROW_ROOM], help[ROW_ROOM], type[ROW_ROOM], line[ROW_ROOM];
	const char *labels = "", *next = strstr(family + 1, "# HELP ");

	must(sscanf(family, "# HELP %s %[^\n]\n# TYPE %*s %s\n%[^\n]", name, help, type,
	            line) == 4);
	if (strstr(line, "{limiter="))
		labels = strstr(line, "verdict=") ? "limiter, verdict, why" : "limiter";
	else if (strstr(line, "{store="))
		labels = "store";
	else if (strstr(line, "{guard="))
		labels = strstr(line, "why=") ? "guard, why" : "guard";
	must(snprintf(row, ROW_ROOM, "| `%s` | %s | %s | %s |", name, type, labels,
	              help) < ROW_ROOM);
	return next;
}

static void read_page(char page[ROOM])
{
	FILE *file = fopen(page_path, "r");
	size_t length;

	must(file);
	length = fread(page, 1, ROOM - 1, file);
	must(length < ROOM - 1);
	page[length] = '\0';
	fclose(file);
}

/* One that has refused something, so that each family has a line. */
static struct gale_guard *open_guard(struct house *h)
{
	struct gale_guard_config config = { .name = "g" };
	struct gale_guard *guard;

	must(gale_guard_open(h->runtime, &config, &guard) == GALE_ERR_OK);
	must(gale_enter(h->seat, guard, 1000, GALE_NORMAL).why == GALE_WHY_WIDE);
	return guard;
}

static void the_page_lists_all_of_them(void **state)
{
	static char text[ROOM], page[ROOM];
	unsigned families = 0;
	char row[ROW_ROOM];
	struct gale_guard *guard;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	guard = open_guard(&h);
	read_text(&h, text);
	read_page(page);
	for (const char *at = text; at; families++) {
		at = write_row(at, row);
		expect_line(page, row);
	}
	assert_int_equal(lines_with(page, "` | counter | ") +
	                     lines_with(page, "` | gauge | "),
	                 families);
	gale_guard_close(guard);
	assert_true(house_close(&h));
}

static int print_rows(void)
{
	static char text[ROOM];
	char row[ROW_ROOM];
	struct gale_guard *guard;
	struct house h;

	house_open(&h, &plan);
	guard = open_guard(&h);
	(void)gale_metrics_text(h.runtime, text, ROOM);
	for (const char *at = text; at;) {
		at = write_row(at, row);
		puts(row);
	}
	gale_guard_close(guard);
	return house_close(&h) ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_told_by_limiter_verdict_and_reason),
		cmocka_unit_test(limiters_of_one_name_are_one_line),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(each_store_is_counted_once),
		cmocka_unit_test(each_guard_is_told_of),
		cmocka_unit_test(no_secret_is_in_it),
		cmocka_unit_test(it_is_cut_as_by_snprintf),
		cmocka_unit_test(each_name_has_its_help_and_type_before_it),
		cmocka_unit_test(the_page_lists_all_of_them),
	};

	page_path = argc > 1 ? argv[1] : "docs/metrics.md";
	if (strcmp(page_path, "--rows") == 0)
		return print_rows();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
