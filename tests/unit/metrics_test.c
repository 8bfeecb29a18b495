/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * metrics_test.c -- the text for Prometheus, and the page that lists what is in it.
 *
 *     metrics_test docs/metrics.md
 *     metrics_test --rows             prints the rows that the page must have
 *     metrics_test --text             prints a text with all there can be, for promtool
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
#include <gale/tenants.h>

#include "tests/support/house.h"
#include "tests/support/must.h"

#define ROOM 65536
#define ROW_ROOM 512

static const char *page_path;

static const struct house_plan plan = { .rule = { .kind = GALE_RULE_FIXED_WINDOW,
	                                          .limit = 5,
	                                          .period_us = GALE_HOURS(1) } };

/* Keeps what it takes, and takes so many parts. */
struct kept {
	struct gale_sink sink;
	char *text;
	size_t length;
	unsigned parts;
	unsigned most;
};

static bool keep(struct gale_sink *sink, const char *text, size_t bytes)
{
	struct kept *kept = (struct kept *)sink;

	must(bytes > 0 && kept->length + bytes < ROOM);
	memcpy(kept->text + kept->length, text, bytes);
	kept->length += bytes;
	return ++kept->parts < kept->most;
}

static struct kept kept_in(char text[ROOM])
{
	return (struct kept){ .sink = { keep }, .text = text, .most = ~0u };
}

static void read_text(struct house *h, char text[ROOM])
{
	struct kept kept = kept_in(text);

	must(gale_metrics_write(h->runtime, &kept.sink) == GALE_ERR_OK);
	text[kept.length] = '\0';
	must(strlen(text) == kept.length);
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

static void answers_are_told_by_limiter_result_and_reason(void **state)
{
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	ask_times(&h, h.limiter, 8);
	(void)gale_ask(h.seat, h.limiter, "k", 1, 0, NULL);
	(void)gale_ask(h.seat, h.limiter, "k", 1, 0, NULL);
	read_text(&h, text);
	expect_line(text, "# TYPE gale_requests_total counter");
	expect_line(
	    text,
	    "gale_requests_total{limiter=\"house\",result=\"allowed\",why=\"rule\"} 5");
	expect_line(
	    text,
	    "gale_requests_total{limiter=\"house\",result=\"denied\",why=\"rule\"} 3");
	expect_line(text, "gale_requests_total{limiter=\"house\",result=\"denied\",why="
	                  "\"bad_ask\"} 2");
	expect_line(text, "gale_requests_total{limiter=\"house\",result=\"allowed\","
	                  "why=\"credit\"} 0");
	expect_line(text, "gale_requests_dropped_total{limiter=\"house\"} 0");
	assert_true(house_close(&h));
}

/* Else the text would have one line twice, which Prometheus refuses. */
static void limiters_of_one_name_are_one_line(void **state)
{
	static const char line[] =
	    "gale_requests_total{limiter=\"twins\",result=\"denied\",why=\"bad_ask\"}";
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
		         "gale_requests_dropped_total{limiter=\"%s\"} 0",
		         rows[i].label);
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

static struct gale_budget *open_budget(struct house *h, const char *name)
{
	struct gale_budget_config config = { .limit = 100,
		                             .window_us = GALE_HOURS(1),
		                             .name = name };
	struct gale_budget *budget;

	must(gale_budget_open(h->runtime, &config, &budget) == GALE_ERR_OK);
	return budget;
}

static struct gale_tenant *open_tenant(struct gale_budget *budget, const char *name)
{
	struct gale_terms terms = { .weight = 1, .name = name };
	struct gale_tenant *tenant;

	must(gale_tenant_open(budget, &terms, &tenant) == GALE_ERR_OK);
	return tenant;
}

/* An eighth of the share is in the purse; the second ask refills it. */
static void each_budget_is_told_of(void **state)
{
	const struct gale_terms guaranteed = { .weight = 1, .guarantee = 30 };
	struct gale_tenant *big, *nameless;
	struct gale_budget *budget, *secret;
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, "gpu \"1\"");
	secret = open_budget(&h, NULL);
	big = open_tenant(budget, "big");
	nameless = open_tenant(budget, NULL);
	must(gale_tenant_ask(h.seat, big, 60).verdict == GALE_ALLOW);
	must(gale_tenant_ask(h.seat, big, 50).why == GALE_WHY_SPENT);
	read_text(&h, text);
	expect_line(text, "gale_budget_limit{budget=\"gpu \\\"1\\\"\"} 100");
	expect_line(text, "gale_budget_used{budget=\"gpu \\\"1\\\"\"} 72");
	expect_line(text, "gale_budget_units_total{budget=\"gpu \\\"1\\\"\"} 60");
	expect_line(text, "gale_budget_tenants{budget=\"gpu \\\"1\\\"\"} 2");
	expect_line(text, "gale_budget_tenants_present{budget=\"gpu \\\"1\\\"\"} 1");
	expect_line(text, "gale_budget_denied_total{budget=\"gpu \\\"1\\\"\",why="
	                  "\"spent\"} 1");
	expect_line(text,
	            "gale_tenant_share{budget=\"gpu \\\"1\\\"\",tenant=\"big\"} 100");
	expect_line(text,
	            "gale_tenant_used{budget=\"gpu \\\"1\\\"\",tenant=\"big\"} 60");
	expect_line(text, "gale_tenant_units_total{budget=\"gpu \\\"1\\\"\",tenant="
	                  "\"big\"} 60");
	expect_line(text, "gale_tenant_denied_total{budget=\"gpu \\\"1\\\"\",tenant="
	                  "\"big\"} 1");
	assert_int_equal(lines_with(text, "gale_budget_limit{"), 1);
	assert_int_equal(lines_with(text, "gale_tenant_share{"), 1);
	must(gale_tenant_set_terms(nameless, &guaranteed) == GALE_ERR_OK);
	read_text(&h, text);
	expect_line(text, "gale_budget_guarantees{budget=\"gpu \\\"1\\\"\"} 30");
	gale_tenant_close(big);
	gale_tenant_close(nameless);
	gale_budget_close(secret);
	read_text(&h, text); /* what it has used counts on */
	expect_line(text, "gale_budget_units_total{budget=\"gpu \\\"1\\\"\"} 60");
	gale_budget_close(budget);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "{budget="), 0);
	assert_true(house_close(&h));
}

/* Else a host with a million would have a text of gigabytes. */
static void no_more_than_32_tenants_have_lines(void **state)
{
	enum { TENANTS = 40, TOLD = 32 };
	struct gale_tenant *tenants[TENANTS];
	struct gale_budget *budget;
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	budget = open_budget(&h, "b");
	for (int i = 0; i < TENANTS; i++) {
		char name[8];

		snprintf(name, sizeof(name), "t%d", i);
		tenants[i] = open_tenant(budget, name);
	}
	read_text(&h, text);
	assert_int_equal(lines_with(text, "gale_tenant_share{"), TOLD);
	assert_int_equal(
	    lines_with(text, "gale_tenant_share{budget=\"b\",tenant=\"t31"), 1);
	gale_tenant_close(tenants[0]);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "gale_tenant_share{"), TOLD);
	assert_int_equal(
	    lines_with(text, "gale_tenant_share{budget=\"b\",tenant=\"t32"), 1);
	for (int i = 1; i < TENANTS; i++)
		gale_tenant_close(tenants[i]);
	gale_budget_close(budget);
	assert_true(house_close(&h));
}

/* Else the text would have one line twice, which Prometheus refuses. */
static void budgets_of_one_name_are_one_line(void **state)
{
	struct gale_budget *budgets[2], *between;
	struct gale_tenant *tenants[2];
	static char text[ROOM];
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < 2; i++) {
		budgets[i] = open_budget(&h, "twins");
		if (i == 0)
			between = open_budget(&h, "between");
		tenants[i] = open_tenant(budgets[i], "a");
		must(gale_tenant_ask(h.seat, tenants[i], 60).verdict == GALE_ALLOW);
	}
	must(gale_budget_set_limit(budgets[1], 70) == GALE_ERR_OK);
	read_text(&h, text);
	assert_int_equal(lines_with(text, "gale_budget_limit{"), 2);
	assert_int_equal(lines_with(text, "gale_tenant_share{"), 1);
	expect_line(text, "gale_budget_limit{budget=\"twins\"} 100");
	expect_line(text, "gale_budget_units_total{budget=\"twins\"} 120");
	expect_line(text, "gale_tenant_used{budget=\"twins\",tenant=\"a\"} 120");
	for (int i = 0; i < 2; i++) {
		gale_tenant_close(tenants[i]);
		gale_budget_close(budgets[i]);
	}
	gale_budget_close(between);
	assert_true(house_close(&h));
}

/* Two asks by one claim. */
static void a_budget_with_a_store_tells_of_its_claims(void **state)
{
	struct house_plan at_once = plan;
	struct gale_budget_config config = { .limit = 100,
		                             .window_us = GALE_HOURS(1),
		                             .name = "api" };
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	static char text[ROOM];
	struct house h;

	(void)state;
	at_once.turns = at_once.still = true;
	house_open(&h, &at_once);
	config.store = h.store;
	must(gale_budget_open(h.runtime, &config, &budget) == GALE_ERR_OK);
	tenant = open_tenant(budget, "gold");
	must(gale_tenant_send(h.seat, tenant, 5, NULL).verdict == GALE_PENDING);
	must(gale_tenant_wait(h.seat, tenant, 6, GALE_SECONDS(30)).verdict ==
	     GALE_ALLOW);
	read_text(&h, text);
	expect_line(text, "gale_budget_claims_total{budget=\"api\"} 1");
	expect_line(text, "gale_budget_grants_total{budget=\"api\"} 1");
	expect_line(text, "gale_budget_failures_total{budget=\"api\"} 0");
	expect_line(text, "gale_budget_used{budget=\"api\"} 11");
	expect_line(text, "gale_budget_tenants_present{budget=\"api\"} 1");
	expect_line(text, "gale_tenant_units_total{budget=\"api\",tenant=\"gold\"} 11");
	gale_tenant_close(tenant);
	for (int i = 0; i < 8; i++)
		(void)gale_turn(h.runtime);
	read_text(&h, text); /* what it has used counts on */
	expect_line(text, "gale_budget_units_total{budget=\"api\"} 11");
	assert_int_equal(lines_with(text, "tenant="), 0);
	gale_budget_close(budget);
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

/* Of more limiters than fit into a part, so that parts end anywhere. */
static void it_comes_in_parts_until_the_sink_has_enough(void **state)
{
	enum { LIMITERS = 20 };
	static char text[ROOM], part[ROOM];
	struct gale_limiter *limiters[LIMITERS];
	struct kept kept = kept_in(text);
	unsigned parts;
	struct house h;

	(void)state;
	house_open(&h, &plan);
	for (int i = 0; i < LIMITERS; i++) {
		char name[GALE_NAME_MAX + 1];

		snprintf(name, sizeof(name), "%064d", i);
		memset(name, '\xff', 1 + (size_t)i % 60);
		limiters[i] = house_limiter(&h, name, plan.rule);
	}
	must(gale_metrics_write(h.runtime, &kept.sink) == GALE_ERR_OK);
	parts = kept.parts;
	assert_true(parts > 10);
	for (unsigned most = 1; most <= parts; most++) {
		struct kept some = kept_in(part);

		some.most = most;
		assert_int_equal(gale_metrics_write(h.runtime, &some.sink),
		                 GALE_ERR_SINK);
		assert_int_equal(some.parts, most);
		assert_memory_equal(part, text, some.length);
	}
	for (int i = 0; i < LIMITERS; i++)
		gale_limiter_close(limiters[i]);
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

/* name="value", where only \\\\, \\" and \\n are escaped; returns where it ends, or NULL. */
static const char *label_end(const char *at)
{
	if (!islower((unsigned char)*at))
		return NULL;
	while (islower((unsigned char)*at) || *at == '_')
		at++;
	if (*at++ != '=' || *at++ != '"')
		return NULL;
	for (; *at && *at != '"'; at++)
		if (*at == '\\' && !strchr("\\\"n", *++at))
			return NULL;
	return *at == '"' ? at + 1 : NULL;
}

/* A name, and labels in braces; returns where the space before the value is, or NULL. */
static const char *series_end(const char *at)
{
	while (islower((unsigned char)*at) || *at == '_')
		at++;
	if (*at == ' ')
		return at;
	do {
		if (*at != '{' && *at != ',')
			return NULL;
		at = label_end(at + 1);
	} while (at && *at != '}');
	return at && at[1] == ' ' ? at + 1 : NULL;
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

/* One that has refused something, so that each family has a line. */
static struct gale_guard *open_guard(struct house *h)
{
	struct gale_guard_config config = { .name = "g \"\\" };
	struct gale_guard *guard;

	must(gale_guard_open(h->runtime, &config, &guard) == GALE_ERR_OK);
	must(gale_enter(h->seat, guard, 1000, GALE_NORMAL).why == GALE_WHY_WIDE);
	return guard;
}

/* A runtime of which there is something to tell in each family. */
struct whole {
	struct house h;
	struct gale_guard *guard;
	struct gale_budget *budget;
	struct gale_tenant *tenant;
	struct gale_limiter *odd; /* of a name that needs all escapes */
};

static void open_whole(struct whole *w)
{
	house_open(&w->h, &plan);
	w->guard = open_guard(&w->h);
	w->budget = open_budget(&w->h, "b \"\\");
	w->tenant = open_tenant(w->budget, "t \"\\");
	must(gale_tenant_ask(w->h.seat, w->tenant, 101).why == GALE_WHY_TOO_MUCH);
	w->odd = house_limiter(&w->h, "a\"b\\c\nd\xff\xc3\xa9{},=", plan.rule);
	ask_times(&w->h, w->h.limiter, 8);
	ask_times(&w->h, w->odd, 1);
	(void)gale_ask(w->h.seat, w->h.limiter, "k", 1, 0, NULL);
}

static bool close_whole(struct whole *w)
{
	gale_limiter_close(w->odd);
	gale_tenant_close(w->tenant);
	gale_budget_close(w->budget);
	gale_guard_close(w->guard);
	return house_close(&w->h);
}

static void each_series_is_there_once_and_well_formed(void **state)
{
	static char text[ROOM];
	struct whole w;
	unsigned series = 0;

	(void)state;
	open_whole(&w);
	read_text(&w.h, text);
	for (const char *line = text, *next; *line; line = next) {
		const char *end = *line == '#' ? line : series_end(line);
		char copy[ROW_ROOM];

		next = strchr(line, '\n') + 1;
		if (*line == '#')
			continue;
		if (!end)
			fail_msg("no series: %.*s", (int)(next - line), line);
		snprintf(copy, sizeof(copy), "\n%.*s", (int)(end - line + 1), line);
		assert_int_equal(lines_with(text, copy), 1);
		series++;
	}
	assert_true(series > 70);
	assert_null(series_end("a{b=\"c\\d\"} 1"));
	assert_null(series_end("a{b=c} 1"));
	assert_null(series_end("a{b=\"c\",} 1"));
	assert_null(series_end("a{b=\"c\"}1"));
	assert_true(close_whole(&w));
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
		labels = strstr(line, "result=") ? "limiter, result, why" : "limiter";
	else if (strstr(line, "{store="))
		labels = "store";
	else if (strstr(line, "{guard="))
		labels = strstr(line, "why=") ? "guard, why" : "guard";
	else if (strstr(line, "{budget="))
		labels = strstr(line, "why=")      ? "budget, why"
		         : strstr(line, "tenant=") ? "budget, tenant"
		                                   : "budget";
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

static void the_page_lists_all_of_them(void **state)
{
	static char text[ROOM], page[ROOM];
	unsigned families = 0;
	char row[ROW_ROOM];
	struct whole w;

	(void)state;
	open_whole(&w);
	read_text(&w.h, text);
	read_page(page);
	for (const char *at = text; at; families++) {
		at = write_row(at, row);
		expect_line(page, row);
	}
	assert_int_equal(lines_with(page, "` | counter | ") +
	                     lines_with(page, "` | gauge | "),
	                 families);
	assert_true(close_whole(&w));
}

/* A query names a metric, and then says of which labels or of what time. */
static void the_page_asks_for_what_there_is(void **state)
{
	static char text[ROOM], page[ROOM];
	struct whole w;
	unsigned queries = 0;

	(void)state;
	open_whole(&w);
	read_text(&w.h, text);
	read_page(page);
	for (const char *at = strstr(page, "gale_"); at; at = strstr(at + 1, "gale_")) {
		size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
		char family[ROW_ROOM];

		if (at[length] != '{' && at[length] != '[')
			continue;
		snprintf(family, sizeof(family), "# TYPE %.*s ", (int)length, at);
		if (!strstr(text, family))
			fail_msg("there is no metric %.*s", (int)length, at);
		queries++;
	}
	assert_true(queries > 5);
	assert_true(close_whole(&w));
}

static int print_rows(void)
{
	static char text[ROOM];
	char row[ROW_ROOM];
	struct whole w;

	open_whole(&w);
	read_text(&w.h, text);
	for (const char *at = text; at;) {
		at = write_row(at, row);
		puts(row);
	}
	return close_whole(&w) ? 0 : 1;
}

static int print_text(void)
{
	static char text[ROOM];
	struct whole w;

	open_whole(&w);
	read_text(&w.h, text);
	fputs(text, stdout);
	return close_whole(&w) ? 0 : 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_told_by_limiter_result_and_reason),
		cmocka_unit_test(limiters_of_one_name_are_one_line),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(each_store_is_counted_once),
		cmocka_unit_test(each_guard_is_told_of),
		cmocka_unit_test(each_budget_is_told_of),
		cmocka_unit_test(no_more_than_32_tenants_have_lines),
		cmocka_unit_test(budgets_of_one_name_are_one_line),
		cmocka_unit_test(a_budget_with_a_store_tells_of_its_claims),
		cmocka_unit_test(no_secret_is_in_it),
		cmocka_unit_test(it_comes_in_parts_until_the_sink_has_enough),
		cmocka_unit_test(each_series_is_there_once_and_well_formed),
		cmocka_unit_test(each_name_has_its_help_and_type_before_it),
		cmocka_unit_test(the_page_lists_all_of_them),
		cmocka_unit_test(the_page_asks_for_what_there_is),
	};

	page_path = argc > 1 ? argv[1] : "docs/metrics.md";
	if (strcmp(page_path, "--rows") == 0)
		return print_rows();
	if (strcmp(page_path, "--text") == 0)
		return print_text();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
