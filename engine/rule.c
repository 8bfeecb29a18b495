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
#include <string.h>

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
static_assert(WORDS_OF(struct meter_state) == 4, "no padding");
static_assert(WORDS_OF(struct pacer_state) == 5 + 4 * PACER_GAPS, "no padding");
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
	if (rule->is.kind == GALE_RULE_SLIDING_LOG && words[0] > GALE_LOG_LIMIT_MAX)
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
		return log_valid((const struct log_state *)words);
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

/* ---- What another rule has left -------------------------------------------------- */

/* A fresh one has none. */
static bool is_period(const struct rule *rule, uint64_t period_us)
{
	return period_us == rule->is.period_us || period_us == 0;
}

static bool starts_here(const struct rule *rule, const uint64_t *words)
{
	const struct window_state none = { 0 };

	return words[0] > INSTANT_MAX_US || words[0] == 0 ||
	       window_start(rule, &none, words[0]) == words[0];
}

bool rule_reads(const struct rule *rule, const struct rule_former *former)
{
	if (former->kind != rule->is.kind || former->is_first ||
	    former->fingerprint != rule->fingerprint)
		return false;
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		return former->count == rule->words;
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
	case GALE_RULE_PACER:
		return former->count != rule->words ||
		       is_period(rule, former->words[rule->words - 1]);
	case GALE_RULE_QUOTA:
		return former->count != rule->words ||
		       rule->is.cadence != GALE_ANCHORED ||
		       starts_here(rule, former->words);
	default:
		return true;
	}
}

/* The last word of these is the period, which the first layout did not have. */
static size_t former_words(const struct rule *rule, const struct rule_former *former)
{
	switch (rule->is.kind) {
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
	case GALE_RULE_PACER:
		return rule->words - former->is_first;
	case GALE_RULE_SLIDING_LOG:
		return former->count >= 1 && former->words[0] <= GALE_LOG_LIMIT_MAX
		           ? LOG_WORDS(former->words[0])
		           : 0;
	case GALE_RULE_SLIDING_WINDOW:
		return former->count; /* its buckets may be others */
	default:
		return rule->words;
	}
}

static bool are_words(const struct rule *rule, const struct rule_former *former)
{
	if (former->count != former_words(rule, former))
		return false;
	for (size_t i = 0; i < former->count; i++)
		if (former->words[i] > GALE_UNITS_MAX)
			return false;
	return true;
}

/* The first layout's, under the very same parameters. */
static bool is_same(const struct rule *rule, const struct rule_former *former)
{
	return former->is_first &&
	       former->fingerprint == rule_first_fingerprint(&rule->is);
}

static bool window_from(const struct rule *rule, const struct rule_former *former,
                        uint64_t now, uint64_t *words)
{
	struct window_state *state = (struct window_state *)words;

	if (state->start_us > INSTANT_MAX_US)
		return false;
	window_convert(rule, state, former->fingerprint, former->is_first, now);
	return true;
}

static bool meter_from(const struct rule *rule, const struct rule_former *former,
                       uint64_t now, uint64_t *words)
{
	struct meter_state *state = (struct meter_state *)words;

	if (is_same(rule, former))
		state->period_us = rule->is.period_us;
	else if (former->is_first)
		meter_drain(rule, state, now);
	else
		return meter_convert(rule, state, former->fingerprint, now);
	return true;
}

static bool pacer_from(const struct rule *rule, const struct rule_former *former,
                       uint64_t *words)
{
	struct pacer_state *state = (struct pacer_state *)words;

	if (is_same(rule, former))
		state->period_us = rule->is.period_us;
	else if (former->is_first)
		pacer_exhaust(rule, state);
	else
		return pacer_convert(rule, state, former->fingerprint);
	return true;
}

static bool sliding_from(const struct rule *rule, const struct rule_former *former,
                         uint64_t now, uint64_t *words)
{
	const struct sliding_state *was = (const struct sliding_state *)former->words;
	struct sliding_state *state = (struct sliding_state *)words;
	uint64_t buckets = former->count - WORDS_OF(struct sliding_state) - 1;
	uint64_t period = former->fingerprint;

	if (former->count < 3 || buckets > GALE_BUCKETS_MAX)
		return false;
	if (is_same(rule, former)) {
		memcpy(words, former->words, former->count * sizeof(uint64_t));
	} else if (former->is_first) {
		sliding_lump(rule, state, was, buckets, now);
	} else {
		if (period < buckets || period > GALE_SPAN_MAX_US ||
		    was->tick > (uint128)INSTANT_MAX_US * buckets / period)
			return false;
		sliding_convert(rule, state, was, buckets, period, now);
	}
	return true;
}

/* Its entries are what they were, in the first layout too; they may be there already. */
static enum rule_conversion log_from(const struct rule_former *former, uint64_t *words)
{
	memmove(words, former->words, former->count * sizeof(uint64_t));
	return log_valid((const struct log_state *)words) ? RULE_CONVERTED
	                                                  : RULE_INVALID;
}

enum rule_conversion rule_convert(const struct rule *rule,
                                  const struct rule_former *former, uint64_t now_us,
                                  uint64_t *words)
{
	uint64_t now = clamp(now_us);
	bool converted = true;

	if (former->kind != rule->is.kind || former->kind == GALE_RULE_CUSTOM)
		return RULE_OTHER;
	if (!are_words(rule, former))
		return RULE_INVALID;
	if (rule->is.kind == GALE_RULE_SLIDING_LOG)
		return log_from(former, words);
	memset(words, 0, rule->words * sizeof(uint64_t));
	if (rule->is.kind != GALE_RULE_SLIDING_WINDOW)
		memcpy(words, former->words, former->count * sizeof(uint64_t));
	switch (rule->is.kind) {
	case GALE_RULE_SLIDING_WINDOW:
		converted = sliding_from(rule, former, now, words);
		break;
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		converted = meter_from(rule, former, now, words);
		break;
	case GALE_RULE_PACER:
		converted = pacer_from(rule, former, words);
		break;
	default:
		converted = window_from(rule, former, now, words);
	}
	return converted && rule_valid(rule, words, rule_words(rule, words))
	           ? RULE_CONVERTED
	           : RULE_INVALID;
}
