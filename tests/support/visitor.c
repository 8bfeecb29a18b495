/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* visitor.c -- opens a node, asks, and takes it apart again. */
#include "tests/support/visitor.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/late.h"
#include "tests/support/must.h"

#define LOG 2000
#define SPENT_OF_LOG 1300

enum gale_err visitor_start(struct visitor *visitor, const char *url)
{
	const struct gale_store_config config = {
		.url = url, .quarantine_us = 1 /* it has just been started */
	};
	struct gale_config runtime = { .shards = 1,
		                       .allocator = &visitor->allocator.allocator,
		                       .log = &visitor->lines.log };

	memset(visitor, 0, sizeof(*visitor));
	lines_open(&visitor->lines);
	test_allocator_init(&visitor->allocator);
	must(gale_runtime_open(&runtime, &visitor->runtime) == GALE_ERR_OK);
	must(gale_join(visitor->runtime, &visitor->seat) == GALE_ERR_OK);
	return gale_store_open(visitor->runtime, &config, &visitor->store);
}

void visitor_open(struct visitor *visitor, const char *url, struct gale_rule rule,
                  enum gale_mode mode)
{
	static unsigned limiters; /* so far */
	char name[24];
	struct gale_limiter_config config = { .name = name,
		                              .rule = rule,
		                              .mode = mode,
		                              .lease.patience_us = VISITOR_PATIENCE };

	snprintf(name, sizeof(name), "limiter %u", limiters++);
	must(visitor_start(visitor, url) == GALE_ERR_OK);
	config.store = visitor->store;
	must(gale_limiter_open(visitor->runtime, &config, &visitor->limiter) ==
	     GALE_ERR_OK);
}

void visitor_end(struct visitor *visitor)
{
	gale_leave(visitor->seat);
	if (visitor->limiter)
		gale_limiter_close(visitor->limiter);
	if (visitor->store)
		gale_store_close(visitor->store);
	gale_runtime_close(visitor->runtime);
	assert_true(test_allocator_is_balanced(&visitor->allocator));
}

struct gale_answer visitor_ask(struct visitor *visitor, const char *key, uint64_t cost)
{
	return gale_wait(visitor->seat, visitor->limiter, key, strlen(key), cost,
	                 VISITOR_PATIENCE);
}

void visitor_becomes(struct visitor *visitor, bool (*holds)(void *visitor))
{
	if (becomes_true(holds, visitor))
		return;
	lines_show(&visitor->lines);
	fail_msg("it does not come to that");
}

static bool is_answered(void *arg)
{
	return !is_late(visitor_ask(arg, "k", 1));
}

void visitor_is_answered(struct visitor *visitor)
{
	visitor_becomes(visitor, is_answered);
}

static void ask_once(void *arg)
{
	(void)visitor_ask(arg, "k", 1);
}

static void open_hourly(struct visitor *visitor, const char *url)
{
	visitor_open(visitor, url, gale_fixed_window(9, GALE_HOURS(1)), GALE_STRICT);
}

void visitor_let_in(const char *url)
{
	struct visitor visitor;

	open_hourly(&visitor, url);
	visitor_is_answered(&visitor);
	visitor_end(&visitor);
}

static bool is_admitted(void *arg)
{
	return visitor_ask(arg, "k", 1).verdict == GALE_ALLOW;
}

void visitor_fills_a_log(const char *url)
{
	uint64_t remaining = LOG;
	struct visitor visitor;

	visitor_open(&visitor, url, gale_sliding_log(LOG, GALE_HOURS(1)), GALE_STRICT);
	visitor_becomes(&visitor, is_admitted);
	while (LOG - remaining < SPENT_OF_LOG) {
		struct gale_answer answer = visitor_ask(&visitor, "long", 1);

		if (is_late(answer))
			continue;
		assert_int_equal(answer.verdict, GALE_ALLOW);
		assert_true(answer.remaining < remaining);
		remaining = answer.remaining;
	}
	visitor_end(&visitor);
}

void visitor_refused(const char *url, const char *because)
{
	struct gale_counts counts;
	struct visitor visitor;

	open_hourly(&visitor, url);
	if (!lines_will_have_asking(&visitor.lines, because, ask_once, &visitor)) {
		lines_show(&visitor.lines);
		fail_msg("%s: %s", url, because);
	}
	must(gale_store_stats(visitor.store, &counts) == GALE_ERR_OK);
	assert_int_equal(counts.connects, 0);
	visitor_end(&visitor);
}

void visitor_cannot_open(const char *url, const char *because)
{
	struct visitor visitor;

	assert_int_equal(visitor_start(&visitor, url), GALE_ERR_TLS);
	if (!lines_have(&visitor.lines, because)) {
		lines_show(&visitor.lines);
		fail_msg("%s: %s", url, because);
	}
	visitor.store = NULL;
	visitor_end(&visitor);
}
