/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * compile.c -- checks what was configured, and works out ahead what every step needs.
 *
 * A part that a kind does not use must be 0: a host that sets it expects something of it.
 * Nothing that passes here can overflow later (SLOT-2, RULE-3).
 */
#include "engine/rule.h"

#include <gale/strategy.h>

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return least <= value && value <= most;
}

/* Which parts a kind uses; the others must be 0. */
enum part {
	USES_PERIOD = 1,
	USES_BURST = 2,
	USES_BUCKETS = 4,
	USES_WAIT = 8,
	USES_CADENCE = 16,
	USES_STRATEGY = 32,
};

static unsigned parts_of(enum gale_rule_kind kind)
{
	switch (kind) {
	case GALE_RULE_FIXED_WINDOW:
	case GALE_RULE_TOKEN_BUDGET:
	case GALE_RULE_SLIDING_LOG:
		return USES_PERIOD;
	case GALE_RULE_SLIDING_WINDOW:
		return USES_PERIOD | USES_BUCKETS;
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return USES_PERIOD | USES_BURST;
	case GALE_RULE_PACER:
		return USES_PERIOD | USES_BURST | USES_WAIT;
	case GALE_RULE_QUOTA:
		return USES_CADENCE;
	case GALE_RULE_CUSTOM:
		return USES_PERIOD | USES_STRATEGY;
	case GALE_RULE_NONE:
		break;
	}
	return 0;
}

static enum gale_err check_limit(const struct gale_rule *is)
{
	uint64_t most =
	    is->kind == GALE_RULE_SLIDING_LOG ? GALE_LOG_LIMIT_MAX : GALE_UNITS_MAX;

	return within(is->limit, 1, most) ? GALE_ERR_OK : GALE_ERR_RULE_LIMIT;
}

static enum gale_err check_period(const struct gale_rule *is, unsigned parts)
{
	uint64_t most =
	    is->kind == GALE_RULE_PACER ? GALE_PACE_PERIOD_MAX_US : GALE_SPAN_MAX_US;

	if (!(parts & USES_PERIOD) && is->cadence != GALE_ANCHORED)
		return is->period_us == 0 ? GALE_ERR_OK : GALE_ERR_RULE_UNUSED;
	return within(is->period_us, 1, most) ? GALE_ERR_OK : GALE_ERR_RULE_PERIOD;
}

/* Does burst accrue within the longest span? */
static bool accrues(const struct gale_rule *is)
{
	uint128 slowness = is->kind == GALE_RULE_PACER ? 1000 : 1;
	uint128 speed = is->kind == GALE_RULE_PACER ? is->allowance_permille : 1;

	return (uint128)is->burst * is->period_us * slowness <=
	       (uint128)GALE_SPAN_MAX_US * is->limit * speed;
}

static enum gale_err check_burst(const struct gale_rule *is, unsigned parts)
{
	uint64_t least = is->kind == GALE_RULE_PACER ? 0 : 1;

	if (!(parts & USES_BURST))
		return is->burst == 0 ? GALE_ERR_OK : GALE_ERR_RULE_UNUSED;
	if (!within(is->burst, least, GALE_UNITS_MAX))
		return GALE_ERR_RULE_BURST;
	return accrues(is) ? GALE_ERR_OK : GALE_ERR_RULE_SPAN;
}

static enum gale_err check_buckets(const struct gale_rule *is, unsigned parts)
{
	uint64_t most =
	    is->period_us < GALE_BUCKETS_MAX ? is->period_us : GALE_BUCKETS_MAX;

	if (!(parts & USES_BUCKETS))
		return is->buckets == 0 ? GALE_ERR_OK : GALE_ERR_RULE_UNUSED;
	return within(is->buckets, 1, most) ? GALE_ERR_OK : GALE_ERR_RULE_BUCKETS;
}

static enum gale_err check_wait(const struct gale_rule *is, unsigned parts)
{
	if (!(parts & USES_WAIT))
		return is->max_wait_us == 0 && is->allowance_permille == 0
		           ? GALE_ERR_OK
		           : GALE_ERR_RULE_UNUSED;
	if (is->max_wait_us > GALE_SPAN_MAX_US)
		return GALE_ERR_RULE_WAIT;
	return within(is->allowance_permille, 1, 1000) ? GALE_ERR_OK
	                                               : GALE_ERR_RULE_ALLOWANCE;
}

static bool is_calendar(const struct gale_rule *is)
{
	return is->cadence == GALE_MONTHLY || is->cadence == GALE_WEEKLY ||
	       is->cadence == GALE_DAILY;
}

static enum gale_err check_cadence(const struct gale_rule *is, unsigned parts)
{
	if (!(parts & USES_CADENCE))
		return is->cadence == GALE_CADENCE_NONE ? GALE_ERR_OK
		                                        : GALE_ERR_RULE_CADENCE;
	return is_calendar(is) || is->cadence == GALE_ANCHORED ? GALE_ERR_OK
	                                                       : GALE_ERR_RULE_CADENCE;
}

static enum gale_err check_calendar(const struct gale_rule *is)
{
	if (is->cadence != GALE_ANCHORED && is->anchor_us != 0)
		return GALE_ERR_RULE_UNUSED;
	if (!is_calendar(is) && is->utc_offset_minutes != 0)
		return GALE_ERR_RULE_UNUSED;
	if (is->cadence != GALE_WEEKLY && is->first_weekday != 0)
		return GALE_ERR_RULE_UNUSED;
	if (is->anchor_us > INSTANT_MAX_US)
		return GALE_ERR_RULE_ANCHOR;
	if (is->utc_offset_minutes < -840 || is->utc_offset_minutes > 840)
		return GALE_ERR_RULE_OFFSET;
	return is->first_weekday <= 6 ? GALE_ERR_OK : GALE_ERR_RULE_WEEKDAY;
}

static size_t name_length(const struct gale_strategy *strategy)
{
	size_t length = 0;

	while (length <= GALE_STRATEGY_NAME_MAX && strategy->name[length] != '\0')
		length++;
	return length;
}

static bool is_complete(const struct gale_strategy *strategy)
{
	if (!strategy || !strategy->step || !strategy->name ||
	    !within(strategy->words, 1, GALE_STRATEGY_WORDS_MAX) ||
	    !within(name_length(strategy), 1, GALE_STRATEGY_NAME_MAX))
		return false;
	for (size_t i = 0; i < GALE_STRATEGY_PARAMETERS; i++)
		if (strategy->parameters[i] > GALE_UNITS_MAX)
			return false;
	return true;
}

static enum gale_err check_strategy(const struct gale_rule *is, unsigned parts)
{
	if (!(parts & USES_STRATEGY))
		return is->strategy == NULL ? GALE_ERR_OK : GALE_ERR_RULE_UNUSED;
	return is_complete(is->strategy) ? GALE_ERR_OK : GALE_ERR_RULE_STRATEGY;
}

/* A host that was compiled with a newer gale.h may have set what we do not know. */
static enum gale_err check_reserve(const struct gale_rule *is)
{
	uint64_t any = 0;

	for (size_t i = 0; i < sizeof(is->reserved) / sizeof(is->reserved[0]); i++)
		any |= is->reserved[i];
	return any == 0 ? GALE_ERR_OK : GALE_ERR_SIZE;
}

static enum gale_err check(const struct gale_rule *is)
{
	unsigned parts = parts_of(is->kind);
	enum gale_err err = parts != 0 ? GALE_ERR_OK : GALE_ERR_RULE_KIND;

	if (err == GALE_ERR_OK)
		err = check_limit(is);
	if (err == GALE_ERR_OK)
		err = check_cadence(is, parts);
	if (err == GALE_ERR_OK)
		err = check_period(is, parts);
	if (err == GALE_ERR_OK)
		err = check_buckets(is, parts);
	if (err == GALE_ERR_OK)
		err = check_wait(is, parts);
	if (err == GALE_ERR_OK)
		err = check_burst(is, parts);
	if (err == GALE_ERR_OK)
		err = check_calendar(is);
	if (err == GALE_ERR_OK)
		err = check_strategy(is, parts);
	if (err == GALE_ERR_OK)
		err = check_reserve(is);
	return err;
}

/* The queue that leaves within the longest wait, in 1/period units. */
static uint128 queue_of(const struct gale_rule *is)
{
	return (uint128)is->max_wait_us * is->limit;
}

static uint64_t capacity_of(const struct gale_rule *is)
{
	uint128 most;

	switch (is->kind) {
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
		return is->burst;
	case GALE_RULE_PACER:
		most = queue_of(is) / is->period_us + 1 + is->burst;
		return most < GALE_UNITS_MAX ? (uint64_t)most : GALE_UNITS_MAX;
	default:
		return is->limit;
	}
}

/* One step of a finaliser whose every output bit depends on every input bit. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ (hash >> 29);
}

/* Its words mean what its name says; where its code is, other nodes do not know. */
static uint64_t mix_strategy(uint64_t hash, const struct gale_strategy *strategy)
{
	size_t length = name_length(strategy);

	hash = mix(hash, length);
	for (size_t i = 0; i < length; i++)
		hash = mix(hash, (uint8_t)strategy->name[i]);
	hash = mix(hash, strategy->words);
	for (size_t i = 0; i < GALE_STRATEGY_PARAMETERS; i++)
		hash = mix(hash, strategy->parameters[i]);
	return hash;
}

/* Of every parameter, as the first layout of values had it.  A pacer's patience is how it
 * is asked, not what its words mean. */
uint64_t rule_first_fingerprint(const struct gale_rule *is)
{
	uint64_t hash = mix(0, (uint64_t)is->kind);

	hash = mix(hash, (uint64_t)is->cadence);
	hash = mix(hash, is->limit);
	hash = mix(hash, is->period_us);
	hash = mix(hash, is->burst);
	hash = mix(hash, is->buckets);
	hash = mix(hash, is->allowance_permille);
	hash = mix(hash, is->anchor_us);
	hash = mix(hash, (uint64_t)(is->utc_offset_minutes + 840));
	hash = mix(hash, is->first_weekday);
	if (is->strategy)
		hash = mix_strategy(hash, is->strategy);
	return hash & GALE_UNITS_MAX; /* RULE-3 */
}

/* Above each period. */
#define CALENDAR (UINT64_C(1) << 52)

static uint64_t quota_fingerprint(const struct gale_rule *is)
{
	if (is->cadence == GALE_ANCHORED)
		return is->period_us;
	return CALENDAR | (uint64_t)is->cadence << 16 |
	       (uint64_t)(is->utc_offset_minutes + 840) << 4 | is->first_weekday;
}

bool rule_calendar_of(uint64_t fingerprint, struct gale_rule *ret_quota)
{
	uint64_t offset = fingerprint >> 4 & 0xfff;

	*ret_quota = (struct gale_rule){
		.kind = GALE_RULE_QUOTA,
		.cadence = (enum gale_cadence)(fingerprint >> 16 & 0xff),
		.utc_offset_minutes = (int32_t)offset - 840,
		.first_weekday = (uint32_t)(fingerprint & 0xf),
	};
	return fingerprint >= CALENDAR && is_calendar(ret_quota) && offset <= 1680 &&
	       ret_quota->first_weekday <= 6 &&
	       quota_fingerprint(ret_quota) == fingerprint;
}

/* A limit compares, and a burst: neither changes what a word means.              (L15) */
static uint64_t fingerprint_of(const struct gale_rule *is)
{
	switch (is->kind) {
	case GALE_RULE_QUOTA:
		return quota_fingerprint(is);
	case GALE_RULE_GCRA:
	case GALE_RULE_TOKEN_BUCKET:
	case GALE_RULE_PACER:
		return is->limit; /* the parts of slots; a word has the period */
	case GALE_RULE_SLIDING_LOG:
		return 0; /* entries mean the same under each */
	case GALE_RULE_CUSTOM:
		return rule_first_fingerprint(is);
	default:
		return is->period_us; /* a sliding window's buckets are its words */
	}
}

enum gale_err rule_compile(const struct gale_rule *config, struct rule *ret_rule)
{
	enum gale_err err = check(config);

	if (err != GALE_ERR_OK)
		return err;
	*ret_rule = (struct rule){
		.is = *config,
		.capacity = capacity_of(config),
		.fingerprint = fingerprint_of(config),
		.words = rule_fresh_words(config),
	};
	if (parts_of(config->kind) & USES_BURST) {
		ret_rule->unit = slot_span(1, config->period_us, config->limit);
		ret_rule->full =
		    slot_span(config->burst, config->period_us, config->limit);
	}
	if (parts_of(config->kind) & USES_WAIT) {
		ret_rule->queue = queue_of(config) / config->period_us;
		ret_rule->queue_rest = (uint64_t)(queue_of(config) % config->period_us);
	}
	return GALE_ERR_OK;
}
