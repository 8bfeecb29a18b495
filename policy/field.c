/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* field.c -- the tables, and how a value is read. */
#define _GNU_SOURCE
#include "policy/field.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static_assert(sizeof(enum gale_mode) == sizeof(uint32_t) &&
                  sizeof(enum form) == sizeof(uint32_t),
              "an enum is written as a uint32_t");

/* ---- Words, in the order of their enums ------------------------------------------ */

static const char *const modes[] = { "strict", "cached_deny", "leased", NULL };
static const char *const sizings[] = { "learned", "fixed", "eoq", "hedge", NULL };
static const char *const on_outages[] = { "deny", "allow", "share", NULL };
static const char *const on_other_rules[] = { "refuse", "restart", NULL };
static const char *const laws[] = { "knee", "fixed", "aimd", "gradient", NULL };
static const char *const on_cut_offs[] = { "deny", "own", NULL };
static const char *const ways_to_part[] = { "by_demand", "by_weight", NULL };
static const char *const of_estimates[] = { "median", "least", NULL };
static const char *const lendings[] = { "lent", "parted", NULL };
static const char *const weekdays[] = { "sunday",   "monday", "tuesday",  "wednesday",
	                                "thursday", "friday", "saturday", NULL };
static const char *const booleans[] = { "false", "true", NULL };

static const char *const leased[] = { "leased", NULL };
static const char *const fixed[] = { "fixed", NULL };
static const char *const by_cost[] = { "eoq", "hedge", NULL };
static const char *const by_share[] = { "share", NULL };

/* ---- Rules ----------------------------------------------------------------------- */

#define PART_LIMIT 0x001u
#define PART_UNITS 0x002u /* limit, without a time */
#define PART_CAPACITY 0x004u
#define PART_REFILL 0x008u
#define PART_RATE 0x010u
#define PART_BUDGET 0x020u
#define PART_BURST 0x040u
#define PART_BUCKETS 0x080u
#define PART_MAX_WAIT 0x100u
#define PART_OFFSET 0x200u
#define PART_WEEKDAY 0x400u
#define PART_ANCHOR 0x800u
#define PART_ALLOWANCE 0x1000u

static const struct form_parts {
	const char *name;
	unsigned must;
	unsigned may;
} forms[FORM_COUNT] = {
	[FORM_FIXED_WINDOW] = { "fixed_window", PART_LIMIT, 0 },
	[FORM_SLIDING_WINDOW] = { "sliding_window", PART_LIMIT, PART_BUCKETS },
	[FORM_SLIDING_LOG] = { "sliding_log", PART_LIMIT, 0 },
	[FORM_GCRA] = { "gcra", PART_LIMIT | PART_BURST, 0 },
	[FORM_TOKEN_BUCKET] = { "token_bucket", PART_CAPACITY | PART_REFILL, 0 },
	[FORM_LEAKY_BUCKET] = { "leaky_bucket", PART_RATE | PART_MAX_WAIT, 0 },
	[FORM_QUOTA_MONTHLY] = { "quota_monthly", PART_UNITS, PART_OFFSET },
	[FORM_QUOTA_WEEKLY] = { "quota_weekly", PART_UNITS,
	                        PART_OFFSET | PART_WEEKDAY },
	[FORM_QUOTA_DAILY] = { "quota_daily", PART_UNITS, PART_OFFSET },
	[FORM_QUOTA_ANCHORED] = { "quota_anchored", PART_LIMIT | PART_ANCHOR, 0 },
	[FORM_QUOTA_ROLLING] = { "quota_rolling", PART_LIMIT, 0 },
	[FORM_TOKEN_BUDGET] = { "token_budget", PART_BUDGET, 0 },
	[FORM_PACER] = { "pacer", PART_RATE | PART_BURST,
	                 PART_MAX_WAIT | PART_ALLOWANCE },
	[FORM_PACER_LIMIT] = { "pacer_limit", PART_RATE | PART_BURST, PART_ALLOWANCE },
};

unsigned form_must(enum form form)
{
	return forms[form].must;
}

unsigned form_may(enum form form)
{
	return forms[form].may;
}

const char *form_name(enum form form)
{
	return forms[form].name;
}

/* ---- Tables ---------------------------------------------------------------------- */

#define STORE(field) .at = offsetof(struct entry, is.store.field)
#define LIMITER(field) .at = offsetof(struct entry, is.limiter.config.field)
#define RULE(field) .at = offsetof(struct entry, is.limiter.parts.field)
#define GUARD(field) .at = offsetof(struct entry, is.guard.config.field)
#define BUDGET(field) .at = offsetof(struct entry, is.budget.config.field)
#define TENANT(field) .at = offsetof(struct entry, is.tenant.field)

static const struct field of_store[] = {
	{ "url", AS_URL, .must = true, STORE(url) },
	{ "max_keys", AS_COUNT, .preset_is_0 = true, STORE(max_keys) },
	{ "quarantine", AS_DURATION, .preset_is_0 = true, STORE(quarantine_us) },
};

static const struct field of_limiter[] = {
	{ "rule", AS_RULE, .must = true,
	  .at = offsetof(struct entry, is.limiter.form) },
	{ "limit", AS_RATE, CHANGES, RULE(rate), .part = PART_LIMIT },
	{ "limit", AS_UNITS, CHANGES, RULE(rate), .part = PART_UNITS },
	{ "capacity", AS_COUNT, CHANGES, RULE(burst), .part = PART_CAPACITY },
	{ "refill", AS_RATE, CHANGES, RULE(rate), .part = PART_REFILL },
	{ "rate", AS_RATE, CHANGES, RULE(rate), .part = PART_RATE },
	{ "budget", AS_RATE, CHANGES, RULE(rate), .part = PART_BUDGET },
	{ "burst", AS_COUNT, CHANGES, RULE(burst), .part = PART_BURST },
	{ "buckets", AS_COUNT, STAYS, RULE(buckets), .part = PART_BUCKETS },
	{ "max_wait", AS_DURATION, CHANGES, RULE(max_wait_us), .part = PART_MAX_WAIT },
	{ "utc_offset", AS_OFFSET, STAYS, RULE(utc_offset_minutes),
	  .part = PART_OFFSET },
	{ "first_weekday", AS_WORD, STAYS, RULE(first_weekday), .words = weekdays,
	  .part = PART_WEEKDAY },
	{ "anchor", AS_INSTANT, STAYS, RULE(anchor_us), .part = PART_ANCHOR },
	{ "allowance", AS_PERMILLE, CHANGES, .preset_is_0 = true,
	  RULE(allowance_permille), .part = PART_ALLOWANCE },
	{ "store", AS_NAME, .must = true, .at = offsetof(struct entry, store) },
	{ "name", AS_NAME, .at = offsetof(struct entry, is.limiter.name) },
	{ "mode", AS_WORD, LIMITER(mode), .words = modes },
	{ "on_outage", AS_WORD, LIMITER(on_outage), .words = on_outages },
	{ "outage_share", AS_COUNT, LIMITER(outage_share), .needs = "on_outage",
	  .needs_one_of = by_share },
	{ "on_other_rule", AS_WORD, LIMITER(on_other_rule), .words = on_other_rules },
	{ "lease", AS_LEASE, .needs = "mode", .needs_one_of = leased },
};

static const struct field of_lease[] = {
	{ "sizing", AS_WORD, LIMITER(lease.sizing), .words = sizings },
	{ "batch", AS_COUNT, LIMITER(lease.batch), .needs = "sizing",
	  .needs_one_of = fixed },
	{ "order_cost", AS_DECIMAL, LIMITER(lease.order_cost), .needs = "sizing",
	  .needs_one_of = by_cost },
	{ "strand_penalty", AS_DECIMAL, LIMITER(lease.strand_penalty),
	  .needs = "sizing", .needs_one_of = by_cost },
	{ "max_size", AS_COUNT, .preset_is_0 = true, LIMITER(lease.max_size) },
	{ "patience", AS_DURATION, .preset_is_0 = true, LIMITER(lease.patience_us) },
	{ "drift", AS_PPM, .preset_is_0 = true, LIMITER(lease.drift_ppm) },
	{ "carry_over", AS_BOOL, LIMITER(lease.carry_over), .needs = "sizing",
	  .needs_one_of = fixed },
};

static const struct field of_guard[] = {
	{ "law", AS_WORD, GUARD(law), .words = laws },
	{ "start", AS_COUNT32, .preset_is_0 = true, GUARD(start) },
	{ "floor", AS_COUNT32, .preset_is_0 = true, GUARD(floor) },
	{ "ceiling", AS_COUNT32, .preset_is_0 = true, GUARD(ceiling) },
	{ "probe", AS_COUNT32, .preset_is_0 = true, GUARD(probe) },
	{ "sheddable", AS_PERMILLE, .preset_is_0 = true, GUARD(sheddable_permille) },
	{ "slots_most", AS_PERMILLE, .preset_is_0 = true, GUARD(slots_most_permille) },
	{ "observe", AS_BOOL, GUARD(observe) },
	{ "overdue", AS_DURATION, .preset_is_0 = true, GUARD(overdue_us) },
	{ "store", AS_NAME, .at = offsetof(struct entry, store) },
	{ "node", AS_NAME, .at = offsetof(struct entry, is.guard.node),
	  .needs = "store" },
	{ "weight", AS_COUNT32, .preset_is_0 = true, GUARD(weight), .needs = "store" },
	{ "drift", AS_PPM, .preset_is_0 = true, GUARD(drift_ppm), .needs = "store" },
	{ "beat", AS_DURATION, .preset_is_0 = true, GUARD(beat_us), .needs = "store" },
	{ "lease", AS_DURATION, .preset_is_0 = true, GUARD(lease_us),
	  .needs = "store" },
	{ "abort", AS_DURATION, .preset_is_0 = true, GUARD(abort_us),
	  .needs = "store" },
	{ "on_cut_off", AS_WORD, GUARD(on_cut_off), .words = on_cut_offs,
	  .needs = "store" },
	{ "parts", AS_WORD, GUARD(parts), .words = ways_to_part, .needs = "store" },
	{ "of_estimates", AS_WORD, GUARD(of_estimates), .words = of_estimates,
	  .needs = "store" },
};

static const struct field of_budget[] = {
	{ "store", AS_NAME, .at = offsetof(struct entry, store) },
	{ "limit", AS_RATE, UNITS_CHANGE, .must = true,
	  .at = offsetof(struct entry, is.budget.limit) },
	{ "release", AS_SPAN, .preset_is_0 = true, BUDGET(release_us) },
	{ "protect", AS_DURATION, BUDGET(protect_us) },
	{ "max_tenants", AS_COUNT32, .preset_is_0 = true, BUDGET(max_tenants) },
	{ "lending", AS_WORD, BUDGET(lending), .words = lendings },
	{ "patience", AS_DURATION, .preset_is_0 = true, BUDGET(patience_us),
	  .needs = "store" },
	{ "tenants", .written = AS_TENANTS },
};

static const struct field of_tenant[] = {
	{ "weight", AS_COUNT32, CHANGES, TENANT(weight) },
	{ "guarantee", AS_COUNT, CHANGES, TENANT(guarantee) },
	{ "cap", AS_COUNT, CHANGES, .preset_is_0 = true, TENANT(cap) },
	{ "alone", AS_COUNT, CHANGES, TENANT(alone) },
	{ "parent", AS_NAME, .at = offsetof(struct entry, parent) },
};

const struct fields fields_of[KIND_COUNT] = {
	[KIND_STORE] = { of_store, COUNT_OF(of_store) },
	[KIND_LIMITER] = { of_limiter, COUNT_OF(of_limiter) },
	[KIND_GUARD] = { of_guard, COUNT_OF(of_guard) },
	[KIND_BUDGET] = { of_budget, COUNT_OF(of_budget) },
	[KIND_TENANT] = { of_tenant, COUNT_OF(of_tenant) },
};

const struct fields fields_of_lease = { of_lease, COUNT_OF(of_lease) };

/* ---- Values ---------------------------------------------------------------------- */

static bool say(const struct node *node, struct why *why, const char *what)
{
	return node_say(node, why, GALE_ERR_POLICY_TEXT, "%s %s",
	                why_quote(node->value).is, what);
}

static bool read_word(const char *const *words, const struct node *node,
                      uint32_t *ret_place, struct why *why)
{
	char list[128];
	size_t length = 0;

	for (uint32_t i = 0; words[i]; i++) {
		if (strcmp(words[i], node->value) == 0) {
			*ret_place = i;
			return true;
		}
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
		                           i == 0         ? ""
		                           : words[i + 1] ? ", "
		                                          : " or ",
		                           words[i]);
	}
	return node_say(node, why, GALE_ERR_POLICY_TEXT, "%s is not known: write %s",
	                why_quote(node->value).is, list);
}

static bool read_form(const struct node *node, enum form *ret_form, struct why *why)
{
	char list[256];
	size_t length = 0;

	for (enum form form = FORM_NONE + 1; form < FORM_COUNT; form++) {
		if (strcmp(forms[form].name, node->value) == 0) {
			*ret_form = form;
			return true;
		}
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
		                           length > 0 ? ", " : "", forms[form].name);
	}
	return node_say(node, why, GALE_ERR_POLICY_TEXT,
	                "%s is no rule: write one of %s", why_quote(node->value).is,
	                list);
}

/* A number too large for 32 bits is too large for every field of so many. */
static const char *read_count32(const char *text, uint32_t *ret_count)
{
	uint64_t count = 0;
	const char *wrong = human_count(text, &count);

	*ret_count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
	return wrong;
}

static const char *read_span(const char *text, uint64_t *ret_us)
{
	if (strcmp(text, "never") != 0)
		return human_duration(text, ret_us);
	*ret_us = GALE_NEVER;
	return NULL;
}

static const char *read_name(const char *text, char *ret_name)
{
	size_t length = strlen(text);

	if (length > GALE_NAME_MAX)
		return "is no name: it has more than 64 bytes";
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return "is no name: use printable ASCII";
	memcpy(ret_name, text, length + 1);
	return NULL;
}

/* The sentence of gale's begins with the name of a field, which is told already. */
static bool read_url(const struct node *node, char **ret_url, struct why *why)
{
	static const char field[] = "url: ";
	char wrong[192];
	size_t skipped;
	enum gale_err err = gale_url_check(node->value, wrong, sizeof(wrong));

	if (err != GALE_ERR_OK) {
		skipped = strncmp(wrong, field, strlen(field)) == 0 ? strlen(field) : 0;
		return node_say(node, why, err, "%s", wrong + skipped);
	}
	free(*ret_url);
	*ret_url = strdup(node->value);
	return *ret_url || why_no_memory(why);
}

/* NULL, or what is wrong. */
static const char *read_text(enum written written, const char *text, void *into)
{
	switch (written) {
	case AS_COUNT:
		return human_count(text, into);
	case AS_COUNT32:
		return read_count32(text, into);
	case AS_DURATION:
		return human_duration(text, into);
	case AS_SPAN:
		return read_span(text, into);
	case AS_RATE:
		return human_rate(text, into);
	case AS_UNITS:
		return human_count(text, &((struct rate *)into)->units);
	case AS_PERMILLE:
		return human_permille(text, into);
	case AS_PPM:
		return human_ppm(text, into);
	case AS_DECIMAL:
		return human_decimal(text, into);
	case AS_NAME:
		return read_name(text, into);
	case AS_OFFSET:
		return human_offset(text, into);
	case AS_INSTANT:
		return human_instant(text, into);
	default:
		return NULL; /* not from a text alone */
	}
}

static size_t size_of(enum written written)
{
	switch (written) {
	case AS_RATE:
	case AS_UNITS:
		return sizeof(struct rate);
	case AS_BOOL:
		return sizeof(bool);
	case AS_DECIMAL:
		return sizeof(double);
	case AS_NAME:
		return NAME_ROOM;
	case AS_COUNT:
	case AS_DURATION:
	case AS_SPAN:
	case AS_INSTANT:
		return sizeof(uint64_t);
	case AS_URL: /* compared as texts */
	case AS_LEASE:
	case AS_TENANTS:
		return 0;
	default:
		return sizeof(uint32_t);
	}
}

static bool is_0(enum written written, const void *value)
{
	static const char zero[NAME_ROOM];

	return memcmp(value, zero, size_of(written)) == 0;
}

bool field_read(const struct field *field, const struct node *node, struct entry *entry,
                struct why *why)
{
	void *into = (char *)entry + field->at;
	uint32_t place;
	const char *wrong;

	if (!node->value)
		return node_say(node, why, GALE_ERR_POLICY_TEXT,
		                "is a mapping: write one value");
	if (field->written == AS_URL)
		return read_url(node, into, why);
	if (field->written == AS_RULE)
		return read_form(node, into, why);
	if (field->words)
		return read_word(field->words, node, into, why);
	if (field->written == AS_BOOL) {
		if (!read_word(booleans, node, &place, why))
			return false;
		*(bool *)into = place == 1;
		return true;
	}
	wrong = read_text(field->written, node->value, into);
	if (wrong)
		return say(node, why, wrong);
	if (field->preset_is_0 && is_0(field->written, into))
		return say(node, why,
		           "is no value of it: for the default, remove the line");
	return true;
}

static bool same_text(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

bool field_same(const struct field *field, const struct entry *one,
                const struct entry *other)
{
	const void *a = (const char *)one + field->at;
	const void *b = (const char *)other + field->at;

	if (field->written == AS_URL)
		return same_text(*(char *const *)a, *(char *const *)b);
	if (field->written == AS_NAME)
		return strcmp(a, b) == 0;
	return memcmp(a, b, size_of(field->written)) == 0;
}
