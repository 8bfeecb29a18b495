/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* entry.c -- a mapping becomes settings, field by field. */
#define _GNU_SOURCE
#include "policy/entry.h"

#include <stdio.h>
#include <string.h>

#include "policy/field.h"

#define LIST_ROOM 300
#define BUCKETS_USUAL 10

/* The fields that a mapping may have: of a table, those that suit the limiter's rule. */
struct menu {
	const struct fields *fields;
	enum form form; /* FORM_NONE: it is no limiter's */
};

const char *kind_section(enum kind kind)
{
	static const char *const sections[KIND_COUNT] = {
		[KIND_STORE] = "stores",   [KIND_LIMITER] = "limiters",
		[KIND_GUARD] = "guards",   [KIND_BUDGET] = "budgets",
		[KIND_TENANT] = "tenants",
	};

	return sections[kind];
}

/* ---- Finding fields -------------------------------------------------------------- */

static bool is_on(const struct menu *menu, const struct field *field)
{
	return field->part == 0 ||
	       (field->part & (form_must(menu->form) | form_may(menu->form))) != 0;
}

static bool is_must(const struct menu *menu, const struct field *field)
{
	return field->must || (field->part & form_must(menu->form)) != 0;
}

/* NULL: the mapping may not have it. */
static const struct field *find_field(const struct menu *menu, const char *name)
{
	for (size_t i = 0; i < menu->fields->count; i++) {
		const struct field *field = &menu->fields->fields[i];

		if (strcmp(field->name, name) == 0 && is_on(menu, field))
			return field;
	}
	return NULL;
}

static void list_fields(const struct menu *menu, char *list)
{
	size_t length = 0;

	for (size_t i = 0; i < menu->fields->count && length < LIST_ROOM; i++)
		if (is_on(menu, &menu->fields->fields[i]))
			length += (size_t)snprintf(list + length, LIST_ROOM - length,
			                           "%s%s", length > 0 ? ", " : "",
			                           menu->fields->fields[i].name);
}

static bool say_unknown(const struct menu *menu, const struct node *node,
                        struct why *why)
{
	char list[LIST_ROOM];

	list_fields(menu, list);
	if (menu->form == FORM_NONE)
		return node_say(node, why, GALE_ERR_POLICY_TEXT,
		                "is not known: there are %s", list);
	return node_say(node, why, GALE_ERR_POLICY_TEXT,
	                "is not known: a limiter with the rule %s has %s",
	                form_name(menu->form), list);
}

/* ---- Reading --------------------------------------------------------------------- */

static bool is_one_of(const char *const *words, const char *word)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

static bool check_needs(const struct node *map, const struct field *field,
                        const struct node *node, struct why *why)
{
	const char *const *one_of = field->needs_one_of;
	const struct node *other = field->needs ? node_find(map, field->needs) : NULL;

	if (!field->needs)
		return true;
	if (!one_of)
		return other ||
		       node_say(node, why, GALE_ERR_POLICY_TEXT,
		                "is of no use without a %s: add that, or remove this",
		                field->needs);
	if (other && other->value && is_one_of(one_of, other->value))
		return true;
	return node_say(node, why, GALE_ERR_POLICY_TEXT,
	                "is of no use without %s: %s%s%s: add that, or remove this",
	                field->needs, one_of[0], one_of[1] ? " or " : "",
	                one_of[1] ? one_of[1] : "");
}

static bool read_map(const struct menu *menu, const struct node *map,
                     struct entry *entry, struct why *why);

static bool read_field(const struct menu *menu, const struct node *map,
                       const struct node *node, struct entry *entry, struct why *why)
{
	static const struct menu lease = { &fields_of_lease, FORM_NONE };
	const struct field *field = find_field(menu, node->name);

	if (!field)
		return say_unknown(menu, node, why);
	if (!check_needs(map, field, node, why))
		return false;
	if (field->written == AS_LEASE)
		return read_map(&lease, node, entry, why);
	return field->written == AS_TENANTS || field_read(field, node, entry, why);
}

static bool check_must(const struct menu *menu, const struct node *map, struct why *why)
{
	for (size_t i = 0; i < menu->fields->count; i++) {
		const struct field *field = &menu->fields->fields[i];

		if (is_must(menu, field) && !node_find(map, field->name))
			return node_say(map, why, GALE_ERR_POLICY_TEXT,
			                "%s is missing: add it", field->name);
	}
	return true;
}

static bool read_map(const struct menu *menu, const struct node *map,
                     struct entry *entry, struct why *why)
{
	if (map->value)
		return node_say(
		    map, why, GALE_ERR_POLICY_TEXT,
		    "is the value %s: write its fields below it, further to the right",
		    why_quote(map->value).is);
	for (const struct node *node = map->first; node; node = node->next)
		if (!read_field(menu, map, node, entry, why))
			return false;
	return check_must(menu, map, why);
}

/* Which fields a limiter has depends on its rule. */
static bool read_form(struct entry *entry, struct why *why)
{
	const struct menu menu = { &fields_of[KIND_LIMITER], FORM_NONE };
	const struct node *node = node_find(entry->node, "rule");

	if (!node) /* read_map has words for a value without fields */
		return entry->node->value ||
		       node_say(entry->node, why, GALE_ERR_POLICY_TEXT,
		                "rule is missing: add it, as in rule: fixed_window");
	return field_read(find_field(&menu, "rule"), node, entry, why);
}

static void preset(struct entry *entry)
{
	if (entry->kind == KIND_LIMITER) {
		entry->is.limiter.parts.max_wait_us = GALE_NEVER;
		entry->is.limiter.parts.buckets = BUCKETS_USUAL;
	}
	if (entry->kind == KIND_TENANT)
		entry->is.tenant.weight = 1;
}

bool entry_read(struct entry *entry, struct why *why)
{
	struct menu menu = { &fields_of[entry->kind], FORM_NONE };

	preset(entry);
	if (entry->kind == KIND_LIMITER) {
		if (!read_form(entry, why))
			return false;
		menu.form = entry->is.limiter.form;
	}
	return read_map(&menu, entry->node, entry, why);
}

/* ---- Rules ----------------------------------------------------------------------- */

static struct gale_rule make_rule(enum form form, const struct parts *parts)
{
	const struct rate *rate = &parts->rate;

	switch (form) {
	case FORM_FIXED_WINDOW:
		return gale_fixed_window(rate->units, rate->per_us);
	case FORM_SLIDING_WINDOW:
		return gale_sliding_window(rate->units, rate->per_us, parts->buckets);
	case FORM_SLIDING_LOG:
		return gale_sliding_log(rate->units, rate->per_us);
	case FORM_GCRA:
		return gale_gcra(rate->units, rate->per_us, parts->burst);
	case FORM_TOKEN_BUCKET:
		return gale_token_bucket(parts->burst, rate->units, rate->per_us);
	case FORM_LEAKY_BUCKET:
		return gale_leaky_bucket(rate->units, rate->per_us, parts->max_wait_us);
	case FORM_QUOTA_MONTHLY:
		return gale_quota_monthly(rate->units, parts->utc_offset_minutes);
	case FORM_QUOTA_WEEKLY:
		return gale_quota_weekly(rate->units, parts->utc_offset_minutes,
		                         parts->first_weekday);
	case FORM_QUOTA_DAILY:
		return gale_quota_daily(rate->units, parts->utc_offset_minutes);
	case FORM_QUOTA_ANCHORED:
		return gale_quota_anchored(rate->units, rate->per_us, parts->anchor_us);
	case FORM_QUOTA_ROLLING:
		return gale_quota_rolling(rate->units, rate->per_us);
	case FORM_TOKEN_BUDGET:
		return gale_token_budget(rate->units, rate->per_us);
	case FORM_PACER:
		return gale_pacer(rate->units, rate->per_us, parts->burst);
	case FORM_PACER_LIMIT:
		return gale_pacer_limit(rate->units, rate->per_us, parts->burst);
	case FORM_NONE:
	case FORM_COUNT:
		break;
	}
	return (struct gale_rule){ 0 };
}

struct gale_rule entry_rule(const struct entry *limiter)
{
	const struct parts *parts = &limiter->is.limiter.parts;
	struct gale_rule rule = make_rule(limiter->is.limiter.form, parts);

	if (parts->allowance_permille)
		rule.allowance_permille = parts->allowance_permille;
	if (parts->max_wait_us != GALE_NEVER)
		rule.max_wait_us = parts->max_wait_us;
	return rule;
}

/* ---- Changing -------------------------------------------------------------------- */

static bool may_change(const struct field *field, const struct entry *entry,
                       const struct entry *old)
{
	if (field->changes == UNITS_CHANGE)
		return entry->is.budget.limit.per_us == old->is.budget.limit.per_us;
	return field->changes == CHANGES || field_same(field, entry, old);
}

static bool may_all_change(const struct fields *fields, const struct node *map,
                           const struct entry *entry, const struct entry *old,
                           struct why *why)
{
	for (size_t i = 0; i < fields->count; i++) {
		const struct field *field = &fields->fields[i];
		const struct node *node = node_find(map, field->name);

		if (may_change(field, entry, old))
			continue;
		if (!node)
			return node_say(
			    map ? map : entry->node, why, GALE_ERR_POLICY_TEXT,
			    "%s cannot change while it is in use: add it as it was, or "
			    "give the changed %.*s another name",
			    field->name, (int)strlen(kind_section(entry->kind)) - 1,
			    kind_section(entry->kind));
		return node_say(node, why, GALE_ERR_POLICY_TEXT,
		                "cannot change while it is in use%s: write it as it "
		                "was, or give the changed %.*s another name",
		                field->changes == UNITS_CHANGE ? ", but for its units"
		                                               : "",
		                (int)strlen(kind_section(entry->kind)) - 1,
		                kind_section(entry->kind));
	}
	return true;
}

bool entry_may_follow(const struct entry *entry, const struct entry *old,
                      struct why *why)
{
	if (!may_all_change(&fields_of[entry->kind], entry->node, entry, old, why))
		return false;
	return entry->kind != KIND_LIMITER ||
	       may_all_change(&fields_of_lease, node_find(entry->node, "lease"), entry,
	                      old, why);
}

/* ---- Refusals -------------------------------------------------------------------- */

/* Which fields an error may mean. */
static const struct blame {
	enum gale_err err;
	const char *fields[5];
} blames[] = {
	{ GALE_ERR_STORE_KEYS, { "max_keys" } },
	{ GALE_ERR_QUARANTINE, { "quarantine" } },
	{ GALE_ERR_OUTAGE, { "outage_share", "on_outage" } },
	{ GALE_ERR_RULE_LIMIT, { "limit", "refill", "rate", "budget" } },
	{ GALE_ERR_RULE_PERIOD, { "limit", "refill", "rate", "budget" } },
	{ GALE_ERR_RULE_BURST, { "burst", "capacity" } },
	{ GALE_ERR_RULE_SPAN, { "burst", "capacity" } },
	{ GALE_ERR_RULE_BUCKETS, { "buckets", "limit" } },
	{ GALE_ERR_RULE_WAIT, { "max_wait" } },
	{ GALE_ERR_RULE_ANCHOR, { "anchor" } },
	{ GALE_ERR_RULE_ALLOWANCE, { "allowance" } },
	{ GALE_ERR_RULE_OFFSET, { "utc_offset" } },
	{ GALE_ERR_CANNOT_LEASE, { "mode" } },
	{ GALE_ERR_SIZING, { "batch", "max_size", "sizing" } },
	{ GALE_ERR_PATIENCE, { "patience" } },
	{ GALE_ERR_DRIFT, { "drift" } },
	{ GALE_ERR_CARRY_OVER, { "carry_over" } },
	{ GALE_ERR_CEILING, { "ceiling", "law" } },
	{ GALE_ERR_SHEDDABLE, { "sheddable" } },
	{ GALE_ERR_SLOTS_MOST, { "slots_most" } },
	{ GALE_ERR_OVERDUE, { "overdue" } },
	{ GALE_ERR_FLOOR, { "floor" } },
	{ GALE_ERR_START, { "start" } },
	{ GALE_ERR_PROBE, { "probe" } },
	{ GALE_ERR_WEIGHT, { "weight" } },
	{ GALE_ERR_BEAT, { "beat" } },
	{ GALE_ERR_LEASE, { "lease", "beat" } },
	{ GALE_ERR_ABORT, { "abort", "lease", "beat" } },
	{ GALE_ERR_BUDGET_LIMIT, { "limit" } },
	{ GALE_ERR_BUDGET_WINDOW, { "limit" } },
	{ GALE_ERR_PROTECT, { "protect" } },
	{ GALE_ERR_TENANTS, { "max_tenants" } },
	{ GALE_ERR_TENANT_WEIGHT, { "weight" } },
	{ GALE_ERR_CAP, { "cap" } },
	{ GALE_ERR_GUARANTEE, { "guarantee" } },
	{ GALE_ERR_ALONE_UNITS, { "alone" } },
	{ GALE_ERR_PARENT_STORE, { "parent" } },
	{ GALE_ERR_DEPTH, { "parent" } },
};

/* The node itself if nothing else is known. */
static const struct node *blamed(const struct node *map, enum gale_err err)
{
	const struct node *lease = node_find(map, "lease");

	for (size_t i = 0; i < sizeof(blames) / sizeof(blames[0]); i++) {
		if (blames[i].err != err)
			continue;
		for (const char *const *name = blames[i].fields; *name; name++) {
			const struct node *node = node_find(map, *name);

			if (!node)
				node = node_find(lease, *name);
			if (node)
				return node;
		}
	}
	return map;
}

bool entry_refused(const struct entry *entry, struct why *why, enum gale_err err)
{
	return node_say(blamed(entry->node, err), why, err, "%s", gale_err_text(err));
}
