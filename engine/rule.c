/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rule.c -- sends each call to its strategy.
 *
 * The words of a state are the members of the strategy's struct, in order; all of
 * these are uint64_t, so the cast between the two is the identity.
 */
#include "engine/rule.h"

#include <assert.h>

#include <gale/strategy.h>

#include "engine/check.h"
#include "engine/custom.h"
#include "engine/log.h"
#include "engine/meter.h"
#include "engine/pacer.h"
#include "engine/sliding.h"
#include "engine/window.h"

#define WORDS_OF(type) (sizeof(type) / sizeof(uint64_t))
#define LOG_WORDS(entries) (1 + (entries)*WORDS_OF(struct log_entry))

static_assert(WORDS_OF(struct window_state) == 2, "no padding");
static_assert(WORDS_OF(struct meter_state) == 3, "no padding");
static_assert(WORDS_OF(struct pacer_state) == 4 + 4 * PACER_GAPS, "no padding");
static_assert(WORDS_OF(struct log_state) == 1, "no padding");
static_assert(WORDS_OF(struct sliding_state) == 1, "no padding");
static_assert(WORDS_OF(struct custom_state) == 2, "no padding");

/* ---- Words ----------------------------------------------------------------------- */

uint64_t rule_fresh_words(const struct gale_rule *is)
{
	switch (is->kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return WORDS_OF(struct sliding_state) + is->buckets + 1;
	case GALE_RULE_SLIDING_LOG:
		return LOG_WORDS(0);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return WORDS_OF(struct meter_state);
	case GALE_RULE_PACER:
		return WORDS_OF(struct pacer_state);
	case GALE_RULE_CUSTOM:
		return WORDS_OF(struct custom_state) + is->strategy->words;
	default:
		return WORDS_OF(struct window_state);
	}
}

static uint64_t cadence_us(const struct gale_rule *is)
{
	switch (is->cadence) {
	case GALE_MONTHLY:
		return GALE_DAYS(31);
	case GALE_WEEKLY:
		return GALE_DAYS(7);
	case GALE_DAILY:
		return GALE_DAYS(1);
	default:
		return is->period_us;
	}
}

uint64_t rule_window_us(const struct rule *rule)
{
	switch (rule->is.kind) {
	case GALE_RULE_QUOTA:
		return cadence_us(&rule->is);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
	case GALE_RULE_PACER:
		return slot_ceil(rule_span(rule, rule->is.burst + 1));
	default:
		return rule->is.period_us;
	}
}

size_t rule_words(const struct rule *rule, const uint64_t *words)
{
	if (rule->is.kind == GALE_RULE_SLIDING_LOG)
		return LOG_WORDS(words[0]);
	return rule->words;
}

size_t rule_words_after_step(const struct rule *rule, const uint64_t *words)
{
	if (rule->is.kind == GALE_RULE_SLIDING_LOG && words[0] < rule->is.limit)
		return LOG_WORDS(words[0] + 1);
	return rule_words(rule, words);
}

/* ---- Steps ----------------------------------------------------------------------- */

static uint64_t clamp(uint64_t now_us)
{
	return now_us < INSTANT_MAX_US ? now_us : INSTANT_MAX_US;
}

struct gale_answer rule_step(const struct rule *rule, uint64_t *words, uint64_t now_us,
                             uint64_t cost)
{
	uint64_t now = clamp(now_us);

	gale_assert(cost >= 1 && cost <= GALE_UNITS_MAX);
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return sliding_step(rule, (struct sliding_state *)words, now, cost);
	case GALE_RULE_SLIDING_LOG:
		return log_step(rule, (struct log_state *)words, now, cost);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return meter_step(rule, (struct meter_state *)words, now, cost);
	case GALE_RULE_PACER:
		return pacer_step(rule, (struct pacer_state *)words, now, cost);
	case GALE_RULE_CUSTOM:
		return custom_step(rule, (struct custom_state *)words, now, cost);
	default:
		return window_step(rule, (struct window_state *)words, now, cost);
	}
}

struct gale_answer rule_peek(const struct rule *rule, const uint64_t *words,
                             uint64_t now_us)
{
	uint64_t now = clamp(now_us);

	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return sliding_peek(rule, (const struct sliding_state *)words, now);
	case GALE_RULE_SLIDING_LOG:
		return log_peek(rule, (const struct log_state *)words, now);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return meter_peek(rule, (const struct meter_state *)words, now);
	case GALE_RULE_PACER:
		return pacer_peek(rule, (const struct pacer_state *)words, now);
	case GALE_RULE_CUSTOM:
		return custom_peek(rule, (const struct custom_state *)words, now);
	default:
		return window_peek(rule, (const struct window_state *)words, now);
	}
}

struct gale_outlook rule_forecast(const struct rule *rule, const uint64_t *words,
                                  uint64_t now_us, uint64_t cost)
{
	uint64_t now = clamp(now_us);

	gale_assert(cost >= 1 && cost <= GALE_UNITS_MAX);
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return sliding_forecast(rule, (const struct sliding_state *)words, now,
		                        cost);
	case GALE_RULE_SLIDING_LOG:
		return log_forecast(rule, (const struct log_state *)words, now, cost);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return meter_forecast(rule, (const struct meter_state *)words, now,
		                      cost);
	case GALE_RULE_PACER:
		return pacer_forecast(rule, (const struct pacer_state *)words, now,
		                      cost);
	case GALE_RULE_CUSTOM:
		return custom_forecast(rule, (const struct custom_state *)words, now,
		                       cost);
	default:
		return window_forecast(rule, (const struct window_state *)words, now,
		                       cost);
	}
}

bool rule_cancel(const struct rule *rule, uint64_t *words, uint64_t now_us,
                 uint64_t cost, struct gale_slot slot)
{
	gale_assert(cost >= 1 && cost <= GALE_UNITS_MAX);
	if (rule->is.kind != GALE_RULE_PACER)
		return false;
	return pacer_cancel(rule, (struct pacer_state *)words, clamp(now_us), cost,
	                    slot);
}

uint64_t rule_expires(const struct rule *rule, const uint64_t *words)
{
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return sliding_expires(rule, (const struct sliding_state *)words);
	case GALE_RULE_SLIDING_LOG:
		return log_expires(rule, (const struct log_state *)words);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return meter_expires(rule, (const struct meter_state *)words);
	case GALE_RULE_PACER:
		return pacer_expires(rule, (const struct pacer_state *)words);
	case GALE_RULE_CUSTOM:
		return custom_expires(rule, (const struct custom_state *)words);
	default:
		return window_expires(rule, (const struct window_state *)words);
	}
}

/* ---- Validity -------------------------------------------------------------------- */

static bool words_fit(const struct rule *rule, const uint64_t *words, size_t count)
{
	if (count < rule->words)
		return false;
	if (rule->is.kind == GALE_RULE_SLIDING_LOG && words[0] > rule->is.limit)
		return false;
	if (count != rule_words(rule, words))
		return false;
	for (size_t i = 0; i < count; i++)
		if (words[i] > GALE_UNITS_MAX) /* RULE-3 */
			return false;
	return true;
}

bool rule_valid(const struct rule *rule, const uint64_t *words, size_t count)
{
	if (!words_fit(rule, words, count))
		return false;
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return sliding_valid(rule, (const struct sliding_state *)words);
	case GALE_RULE_SLIDING_LOG:
		return log_valid(rule, (const struct log_state *)words);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return meter_valid(rule, (const struct meter_state *)words);
	case GALE_RULE_PACER:
		return pacer_valid(rule, (const struct pacer_state *)words);
	case GALE_RULE_CUSTOM:
		return custom_valid(rule, (const struct custom_state *)words);
	default:
		return window_valid(rule, (const struct window_state *)words);
	}
}
