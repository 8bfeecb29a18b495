/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * vectors.h -- tables of calls, and what each must be told.
 *
 * A table is one key's life under one rule: its rows run from top to bottom through
 * rule_step, and the state goes from each row to the next.  Rows that fail are all
 * printed, with the name of the test and the number of the row, before it fails.
 *
 * Each step, of a table or not, is also held against what is true of every rule:
 *
 *   RULE-1: A denial leaves the words as they were.
 *   RULE-2: (in the tests of each rule)
 *   RULE-3: Words and answers stay below 2^53; what remains is never above the limit.
 *   RULE-4: From rule_expires on the words answer like a fresh key; just before, not.
 *   RULE-5: (in the tests of each rule)
 *
 * and rule_peek and rule_forecast, asked just before, must have foretold it.
 */
#ifndef TESTS_UNIT_VECTORS_H
#define TESTS_UNIT_VECTORS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <gale/rule.h>

#include "engine/rule.h"

#define MS(n) GALE_MILLIS(n)
#define SEC(n) GALE_SECONDS(n)
#define NS_OF_MS(n) (UINT64_C(1000000) * (n))
#define T0 SEC(1700000000) /* an instant with many digits, 2023-11-14 */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One call.  Times are microseconds, but for delay_ns. */
struct row {
	uint64_t now_us;
	uint64_t cost;
	enum gale_verdict verdict;
	uint64_t limit;
	uint64_t remaining;
	uint64_t reset_after_us;
	uint64_t retry_after_us;
	uint64_t delay_ns;
};

#define ALLOW(now, units, cap, left, reset)                                            \
	{                                                                              \
		.now_us = (now), .cost = (units), .verdict = GALE_ALLOW,               \
		.limit = (cap), .remaining = (left), .reset_after_us = (reset)         \
	}
#define DELAY(now, units, cap, left, reset, delay)                                     \
	{                                                                              \
		.now_us = (now), .cost = (units), .verdict = GALE_ALLOW,               \
		.limit = (cap), .remaining = (left), .reset_after_us = (reset),        \
		.delay_ns = (delay)                                                    \
	}
#define DENY(now, units, cap, left, reset, retry)                                      \
	{                                                                              \
		.now_us = (now), .cost = (units), .verdict = GALE_DENY,                \
		.limit = (cap), .remaining = (left), .reset_after_us = (reset),        \
		.retry_after_us = (retry)                                              \
	}

/* The state of one key, with its rule. */
#define KEY_WORDS 512
struct key {
	struct rule rule;
	uint64_t words[KEY_WORDS];
};

/* A key never seen. */
void key_open(struct key *key, struct gale_rule config);

/* The same words under another rule, which must give them the same meaning. */
void key_turn(struct key *key, struct gale_rule config);

/* rule_step, rule_peek and rule_cancel, held against the invariants above. */
struct gale_answer key_step(struct key *key, uint64_t now_us, uint64_t cost);
struct gale_answer key_peek(const struct key *key, uint64_t now_us);
bool key_cancel(struct key *key, uint64_t now_us, uint64_t cost, struct gale_slot slot);

/* How many of calls units pass, asked one by one at a, b, a, b, ... */
uint64_t key_alternate(struct key *key, uint64_t a_us, uint64_t b_us, uint64_t calls);

/* How many of calls units pass at this instant, asked one by one. */
uint64_t key_drain(struct key *key, uint64_t now_us, uint64_t calls);

void expect_rows(const char *suite, struct key *key, const struct row *rows,
                 size_t count);
void expect_fresh_rows(const char *suite, struct gale_rule config,
                       const struct row *rows, size_t count);
void expect_peek(const char *suite, const struct key *key, struct row expected);
void expect_forecast(const char *suite, const struct key *key, uint64_t now_us,
                     uint64_t cost, struct gale_outlook expected);

#define EXPECT_ROWS(key, rows) expect_rows(__func__, key, rows, COUNT(rows))
#define EXPECT_FRESH(config, rows)                                                     \
	expect_fresh_rows(__func__, config, rows, COUNT(rows))
#define EXPECT_PEEK(key, ...) expect_peek(__func__, key, (struct row)__VA_ARGS__)
#define EXPECT_FORECAST(key, now, cost, ...)                                           \
	expect_forecast(__func__, key, now, cost, (struct gale_outlook)__VA_ARGS__)

/* Of limit 5: fresh, five are spendable, or two of cost 2 (rounded up: twos); spent,
 * none is, and there is a time to wait for. */
void expect_forecast_of_five(const char *suite, struct gale_rule config, uint64_t twos);

#endif
