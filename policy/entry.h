/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * entry.h -- one thing that a policy defines: what it is called, and its settings.
 *
 * Invariants
 *
 *   ENTRY-1  An entry points to nothing of its tree but by node, which is good as long as the
 *            tree is.  All else is its own, so it outlives the text that it comes from.
 */
#ifndef POLICY_ENTRY_H
#define POLICY_ENTRY_H

#include <stdint.h>

#include <gale/gale.h>
#include <gale/guard.h>
#include <gale/tenants.h>

#include "policy/human.h"
#include "policy/tree.h"

#define NAME_ROOM (GALE_NAME_MAX + 1)

/* In the order in which they are opened: what comes later may use what comes before. */
enum kind {
	KIND_STORE,
	KIND_LIMITER,
	KIND_GUARD,
	KIND_BUDGET,
	KIND_TENANT,
	KIND_COUNT,
};

/* Rules by the names of their constructors. */
enum form {
	FORM_NONE,
	FORM_FIXED_WINDOW,
	FORM_SLIDING_WINDOW,
	FORM_SLIDING_LOG,
	FORM_GCRA,
	FORM_TOKEN_BUCKET,
	FORM_LEAKY_BUCKET,
	FORM_QUOTA_MONTHLY,
	FORM_QUOTA_WEEKLY,
	FORM_QUOTA_DAILY,
	FORM_QUOTA_ANCHORED,
	FORM_QUOTA_ROLLING,
	FORM_TOKEN_BUDGET,
	FORM_PACER,
	FORM_PACER_LIMIT,
	FORM_COUNT,
};

/* What a rule is made of; each form uses some. */
struct parts {
	struct rate rate;
	uint64_t burst;
	uint64_t buckets;
	uint64_t max_wait_us; /* GALE_NEVER: not given */
	uint64_t anchor_us;
	uint32_t allowance_permille; /* 0: not given */
	int32_t utc_offset_minutes;
	uint32_t first_weekday;
};

struct store_settings {
	char *url; /* from malloc */
	uint64_t max_keys;
	uint64_t quarantine_us;
};

/* In a config, names, stores and rules are set when it is used. */
struct limiter_settings {
	char name[NAME_ROOM]; /* "": its own */
	enum form form;
	struct parts parts;
	struct gale_limiter_config config;
};

struct guard_settings {
	char node[NAME_ROOM]; /* "": gale makes one up */
	struct gale_guard_config config;
};

struct budget_settings {
	struct rate limit;
	struct gale_budget_config config;
};

struct entry {
	enum kind kind;
	char name[NAME_ROOM];
	char owner[NAME_ROOM];  /* a tenant's budget; "" of all others */
	char store[NAME_ROOM];  /* of a limiter, a guard or a budget; "": it has none */
	char parent[NAME_ROOM]; /* of a tenant; "": it has none */
	size_t depth;           /* tenants above it */
	const struct node *node;
	void *handle; /* NULL: it is not open */
	bool listed;  /* the policy in force defines it */
	union {
		struct store_settings store;
		struct limiter_settings limiter;
		struct guard_settings guard;
		struct budget_settings budget;
		struct gale_terms tenant;
	} is;
};

/* Everything about one thing, from the mapping behind its name. */
bool entry_read(struct entry *entry, struct why *why);

/* May what is open as *old become *entry?  If not, the field that has changed is named. */
bool entry_may_follow(const struct entry *entry, const struct entry *old,
                      struct why *why);

/* Says that gale refuses the entry, at the field that is to blame, if that is known. */
bool entry_refused(const struct entry *entry, struct why *why, enum gale_err err);

struct gale_rule entry_rule(const struct entry *limiter);

/* "limiters", ... */
const char *kind_section(enum kind kind);

#endif
