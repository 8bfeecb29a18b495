/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * vectors.c -- runs tables through rule_step, and distrusts every step.
 */
#include "tests/unit/vectors.h"

#include <inttypes.h>
#include <string.h>

#define WORD_END (UINT64_C(1) << 53)

static void rule_open(struct rule *ret_rule, struct gale_rule config)
{
	enum gale_err err = rule_compile(&config, ret_rule);

	if (err != GALE_ERR_OK)
		fail_msg("rule refused: %s", gale_err_text(err));
}

void key_open(struct key *key, struct gale_rule config)
{
	memset(key, 0, sizeof(*key));
	rule_open(&key->rule, config);
	assert_int_equal(rule_expires(&key->rule, key->words), 0);
	assert_true(rule_words(&key->rule, key->words) <= KEY_WORDS);
	assert_true(
	    rule_valid(&key->rule, key->words, rule_words(&key->rule, key->words)));
}

void key_turn(struct key *key, struct gale_rule config)
{
	struct rule rule;

	rule_open(&rule, config);
	assert_int_equal(rule.is.kind, key->rule.is.kind);
	assert_int_equal(rule.is.limit, key->rule.is.limit);
	assert_int_equal(rule.is.period_us, key->rule.is.period_us);
	assert_int_equal(rule.is.burst, key->rule.is.burst);
	key->rule = rule;
}

static bool answers_equal(const struct gale_answer *a, const struct gale_answer *b)
{
	return a->verdict == b->verdict && a->why == b->why && a->limit == b->limit &&
	       a->remaining == b->remaining && a->reset_after_us == b->reset_after_us &&
	       a->retry_after_us == b->retry_after_us && a->delay_ns == b->delay_ns &&
	       a->slot.us == b->slot.us && a->slot.part == b->slot.part;
}

/* ---- What is true of every answer ------------------------------------------------ */

static void check_answer(const struct gale_answer *answer)
{
	bool allowed = answer->verdict == GALE_ALLOW;

	assert_true(allowed || answer->verdict == GALE_DENY);
	assert_int_equal(answer->why, GALE_WHY_RULE);
	assert_true(answer->limit < WORD_END);
	assert_true(answer->remaining <= answer->limit);
	assert_true(answer->reset_after_us < WORD_END);
	assert_true(allowed == (answer->retry_after_us == 0));
	assert_true(answer->retry_after_us < WORD_END ||
	            answer->retry_after_us == GALE_NEVER);
	assert_true(answer->delay_ns <= GALE_SPAN_MAX_US * 1000); /* RULE-3 */
	assert_true(allowed || answer->delay_ns == 0);
}

/* A booked place lies exactly delay after now; of that, delay_ns is the ceiling. */
static void check_slot(const struct key *key, uint64_t now_us,
                       const struct gale_answer *answer)
{
	uint64_t den = key->rule.is.limit;
	uint64_t part_ns;

	if (answer->slot.us == 0 && answer->slot.part == 0) {
		assert_int_equal(answer->delay_ns, 0);
		return;
	}
	assert_int_equal(key->rule.is.kind, GALE_RULE_PACER);
	assert_int_equal(answer->verdict, GALE_ALLOW);
	assert_true(answer->slot.part < den); /* SLOT-1 */
	if (now_us > INSTANT_MAX_US)
		now_us = INSTANT_MAX_US;
	assert_true(answer->slot.us >= now_us);
	part_ns = (answer->slot.part * 1000 + den - 1) / den;
	assert_int_equal(answer->delay_ns, (answer->slot.us - now_us) * 1000 + part_ns);
}

static void check_words(const struct key *key)
{
	size_t count = rule_words(&key->rule, key->words);

	for (size_t i = 0; i < count; i++)
		assert_true(key->words[i] < WORD_END); /* RULE-3, SLOT-2 */
	assert_true(rule_valid(&key->rule, key->words, count));
}

static void check_denied_unchanged(const struct key *before, const struct key *key)
{
	assert_memory_equal(before->words, key->words, sizeof(key->words)); /* RULE-1 */
}

/* Peek and forecast look at the words as they were before the step. */
static void check_foretold(const struct key *before, uint64_t now_us, uint64_t cost,
                           const struct gale_answer *answer)
{
	struct gale_answer peek = key_peek(before, now_us);
	struct gale_outlook forecast =
	    rule_forecast(&before->rule, before->words, now_us, cost);
	bool pacer = before->rule.is.kind == GALE_RULE_PACER;
	bool log = before->rule.is.kind == GALE_RULE_SLIDING_LOG;
	bool allowed = answer->verdict == GALE_ALLOW;

	assert_int_equal(peek.limit, answer->limit);
	if (cost == 1) {
		assert_int_equal(peek.verdict, answer->verdict);
		assert_int_equal(peek.retry_after_us, answer->retry_after_us);
	}
	if (!pacer) /* which bounds the wait, not the cost, and whose gaps are extra */
		assert_int_equal(forecast.spendable_now != 0, allowed);
	if (!allowed)
		assert_int_equal(peek.remaining, answer->remaining);
	if (!allowed && !(log && peek.reset_after_us == 0)) /* its denial says P */
		assert_int_equal(peek.reset_after_us, answer->reset_after_us);
}

/* RULE-4, on both sides of the instant. */
static void check_expiry(const struct key *key)
{
	uint64_t expires = rule_expires(&key->rule, key->words);
	static struct key fresh;
	struct gale_answer then, new;

	if (expires >= INSTANT_MAX_US)
		return; /* later instants are taken as this one: it never comes */
	memset(&fresh, 0, sizeof(fresh));
	fresh.rule = key->rule;
	for (uint64_t late = 0; late <= 1; late++) {
		then = key_peek(key, expires + late);
		new = key_peek(&fresh, expires + late);
		assert_true(answers_equal(&then, &new));
	}
	then = key_peek(key, expires - 1);
	new = key_peek(&fresh, expires - 1);
	assert_false(answers_equal(&then, &new));
}

struct gale_answer key_peek(const struct key *key, uint64_t now_us)
{
	static struct key before;
	struct gale_answer answer;

	before = *key;
	answer = rule_peek(&key->rule, key->words, now_us);
	assert_memory_equal(&before, key, sizeof(*key));
	check_answer(&answer);
	assert_true(answer.slot.us == 0 && answer.slot.part == 0);
	return answer;
}

struct gale_answer key_step(struct key *key, uint64_t now_us, uint64_t cost)
{
	static struct key before;
	struct gale_answer answer;

	before = *key;
	assert_true(rule_words_after_step(&key->rule, key->words) <= KEY_WORDS);
	answer = rule_step(&key->rule, key->words, now_us, cost);
	check_answer(&answer);
	check_slot(key, now_us, &answer);
	check_words(key);
	check_foretold(&before, now_us, cost, &answer);
	if (answer.verdict == GALE_DENY)
		check_denied_unchanged(&before, key);
	else
		check_expiry(key);
	return answer;
}

bool key_cancel(struct key *key, uint64_t now_us, uint64_t cost, struct gale_slot slot)
{
	bool cancelled = rule_cancel(&key->rule, key->words, now_us, cost, slot);

	check_words(key);
	return cancelled;
}

uint64_t key_alternate(struct key *key, uint64_t a_us, uint64_t b_us, uint64_t calls)
{
	uint64_t admitted = 0;

	for (uint64_t i = 0; i < calls; i++)
		admitted += key_drain(key, i % 2 == 0 ? a_us : b_us, 1);
	return admitted;
}

uint64_t key_drain(struct key *key, uint64_t now_us, uint64_t calls)
{
	uint64_t admitted = 0;

	for (uint64_t i = 0; i < calls; i++)
		admitted += key_step(key, now_us, 1).verdict == GALE_ALLOW;
	return admitted;
}

/* ---- Tables ---------------------------------------------------------------------- */

static bool row_matches(const struct row *row, const struct gale_answer *answer)
{
	return row->verdict == answer->verdict && row->limit == answer->limit &&
	       row->remaining == answer->remaining &&
	       row->reset_after_us == answer->reset_after_us &&
	       row->retry_after_us == answer->retry_after_us &&
	       row->delay_ns == answer->delay_ns;
}

static void print_outcome(const char *what, enum gale_verdict verdict, uint64_t limit,
                          uint64_t remaining, uint64_t reset, uint64_t retry,
                          uint64_t delay)
{
	print_error("  %s %s, limit %" PRIu64 ", remaining %" PRIu64 ", reset %" PRIu64
	            ", retry %" PRIu64 ", delay_ns %" PRIu64 "\n",
	            what, verdict == GALE_ALLOW ? "ALLOW" : "DENY ", limit, remaining,
	            reset, retry, delay);
}

/* True if the answer is the row's; else says on the way what differs. */
static bool row_holds(const char *suite, size_t number, const struct row *row,
                      const struct gale_answer *answer)
{
	if (row_matches(row, answer))
		return true;
	print_error("%s: row %zu (now %" PRIu64 ", cost %" PRIu64 ")\n", suite, number,
	            row->now_us, row->cost);
	print_outcome("expected", row->verdict, row->limit, row->remaining,
	              row->reset_after_us, row->retry_after_us, row->delay_ns);
	print_outcome("got     ", answer->verdict, answer->limit, answer->remaining,
	              answer->reset_after_us, answer->retry_after_us, answer->delay_ns);
	return false;
}

void expect_rows(const char *suite, struct key *key, const struct row *rows,
                 size_t count)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		struct gale_answer answer = key_step(key, rows[i].now_us, rows[i].cost);

		wrong += !row_holds(suite, i + 1, &rows[i], &answer);
	}
	if (wrong != 0)
		fail_msg("%s: %zu of %zu rows differ", suite, wrong, count);
}

void expect_fresh_rows(const char *suite, struct gale_rule config,
                       const struct row *rows, size_t count)
{
	struct key key;

	key_open(&key, config);
	expect_rows(suite, &key, rows, count);
}

void expect_peek(const char *suite, const struct key *key, struct row expected)
{
	struct gale_answer answer = key_peek(key, expected.now_us);

	assert_int_equal(expected.cost, 1);
	if (!row_holds(suite, 0, &expected, &answer))
		fail_msg("%s: the peek differs", suite);
}

void expect_forecast(const char *suite, const struct key *key, uint64_t now_us,
                     uint64_t cost, struct gale_outlook expected)
{
	struct gale_outlook got = rule_forecast(&key->rule, key->words, now_us, cost);

	if (got.spendable_now == expected.spendable_now &&
	    got.next_after_us == expected.next_after_us &&
	    got.full_after_us == expected.full_after_us)
		return;
	fail_msg("%s: forecast at %" PRIu64 " for %" PRIu64 ": spendable %" PRIu64
	         " next %" PRIu64 " full %" PRIu64 ", expected %" PRIu64 " %" PRIu64
	         " %" PRIu64,
	         suite, now_us, cost, got.spendable_now, got.next_after_us,
	         got.full_after_us, expected.spendable_now, expected.next_after_us,
	         expected.full_after_us);
}

void expect_forecast_of_five(const char *suite, struct gale_rule config, uint64_t twos)
{
	struct gale_outlook spent;
	struct key key;

	key_open(&key, config);
	expect_forecast(suite, &key, T0, 1, (struct gale_outlook){ 5, 0, 0 });
	expect_forecast(suite, &key, T0, 2, (struct gale_outlook){ twos, 0, 0 });
	assert_int_equal(key_drain(&key, T0, 6), 5);
	spent = rule_forecast(&key.rule, key.words, T0, 1);
	assert_int_equal(spent.spendable_now, 0);
	assert_true(spent.next_after_us > 0);
	assert_true(spent.full_after_us >= spent.next_after_us);
}
