/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * metrics_budgets.c -- what the text for Prometheus says of budgets and tenants.
 *
 * A budget without a name has no lines, and of a name at most so many tenants have: a host may
 * have a million.  Those that have are the first that were opened with a name.
 *
 * Threads   Any, under the runtime's lock, and for each budget under the budget's.
 */
#include <inttypes.h>
#include <string.h>

#include <gale/tenants.h>

#include "face/tenants.h"
#include "face/text.h"

#define TENANTS_TOLD 32

/* The fields of budget_counts that are one number. */
#define BUDGET_COUNTERS(X)                                                             \
	X(limit, "gale_budget_limit", "gauge", "Units of each window.")                \
	X(guarantees, "gale_budget_guarantees", "gauge",                               \
	  "Guarantees of its tenants together; with a store, of those that are "       \
	  "present in any process.")                                                   \
	X(used, "gale_budget_used", "gauge",                                           \
	  "Units of this window that tenants of this process have used, or hold in "   \
	  "their purses.")                                                             \
	X(tenants, "gale_budget_tenants", "gauge", "Tenants that are open.")           \
	X(present, "gale_budget_tenants_present", "gauge",                             \
	  "Tenants without a parent that have a share of this window.")                \
	X(units, "gale_budget_units_total", "counter",                                 \
	  "Units that tenants have used.")                                             \
	X(lent, "gale_budget_lent_total", "counter",                                   \
	  "Asks that were allowed with units beyond their tenant's share.")            \
	X(alone, "gale_budget_alone_units_total", "counter",                           \
	  "Units that were used while the store could not be asked.")                  \
	X(claims, "gale_budget_claims_total", "counter", "Questions to the store.")    \
	X(grants, "gale_budget_grants_total", "counter",                               \
	  "Questions to the store that brought units.")                                \
	X(failures, "gale_budget_failures_total", "counter",                           \
	  "Questions to the store without an answer, or with one that cannot be "      \
	  "true.")

#define DENIED "gale_budget_denied_total"

/* The fields of gale_tenant_counts. */
#define TENANT_COUNTERS(X)                                                             \
	X(share, "gale_tenant_share", "gauge",                                         \
	  "Units of this window that are its own.")                                    \
	X(used, "gale_tenant_used", "gauge",                                           \
	  "Units of this window that it has used in this process; of a parent also "   \
	  "what its tenants hold, and what is kept for their guarantees.")             \
	X(owed, "gale_tenant_owed", "gauge",                                           \
	  "Units that will be added to its share of later windows.")                   \
	X(allowed, "gale_tenant_units_total", "counter", "Units that it has used.")    \
	X(lent, "gale_tenant_lent_total", "counter",                                   \
	  "Asks that were allowed with units beyond its share.")                       \
	X(alone, "gale_tenant_alone_units_total", "counter",                           \
	  "Units that it has used while the store could not be asked.")                \
	X(denied, "gale_tenant_denied_total", "counter",                               \
	  "Asks that were denied, but for denials from memory.")

/* ---- Budgets ---------------------------------------------------------------------- */

static struct gale_budget *budget_at(const struct gale_runtime *runtime,
                                     const struct list *at) ON(runtime->lock)
{
	return at == &runtime->locked.budgets
	           ? NULL
	           : list_item(at, struct gale_budget, place);
}

/* NULL: it was the last of its name.  (TENANT-6) */
static struct gale_budget *next_of_name(const struct gale_runtime *runtime,
                                        const struct gale_budget *budget)
    ON(runtime->lock)
{
	struct gale_budget *next = budget_at(runtime, budget->place.next);

	return next && strcmp(next->name, budget->name) == 0 ? next : NULL;
}

/* That has a name, from there on.  NULL: there is none. */
static struct gale_budget *first_of_name(const struct gale_runtime *runtime,
                                         const struct list *at) ON(runtime->lock)
{
	struct gale_budget *budget = budget_at(runtime, at);

	while (budget && !budget->name[0])
		budget = budget_at(runtime, budget->place.next);
	return budget;
}

static struct gale_budget *next_name(const struct gale_runtime *runtime,
                                     struct gale_budget *budget) ON(runtime->lock)
{
	struct gale_budget *next;

	while ((next = next_of_name(runtime, budget)))
		budget = next;
	return first_of_name(runtime, budget->place.next);
}

#define EACH_NAME(runtime, budget)                                                     \
	for (budget = first_of_name(runtime, runtime->locked.budgets.next); budget;    \
	     budget = next_name(runtime, budget))

/* From the first of the name on. */
#define EACH_OF_NAME(runtime, budget, first)                                           \
	for (struct gale_budget *budget = (first); budget;                             \
	     budget = next_of_name(runtime, budget))

static struct budget_counts counts_of_name(const struct gale_runtime *runtime,
                                           struct gale_budget *first) ON(runtime->lock)
{
	struct budget_counts sum = { 0 };

	EACH_OF_NAME(runtime, budget, first)
	{
		latch_take(&budget->lock);
		budget_add_counts(budget, &sum);
		latch_drop(&budget->lock);
	}
	return sum;
}

static void say_denied(struct text *text, const char *budget,
                       const struct budget_counts *counts)
{
	for (unsigned why = 0; why < GALE_WHY_ROOM; why++) {
		if (counts->denied_by[why] == 0)
			continue;
		text_series(text, DENIED, "budget", budget);
		text_say(text, "\",why=\"%s\"} %" PRIu64 "\n",
		         gale_why_name((enum gale_why)why), counts->denied_by[why]);
	}
}

static void say_budgets(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
	struct gale_budget *budget;

#define X(field, metric, type, help)                                                   \
	text_family(text, metric, type, help);                                         \
	EACH_NAME(runtime, budget)                                                     \
	{                                                                              \
		text_value(text, metric, "budget", budget->name,                       \
		           counts_of_name(runtime, budget).field);                     \
	}
	BUDGET_COUNTERS(X)
#undef X
	text_family(text, DENIED, "counter",
	            "Asks that were denied, but for denials from memory.");
	EACH_NAME(runtime, budget)
	{
		struct budget_counts counts = counts_of_name(runtime, budget);

		say_denied(text, budget->name, &counts);
	}
}

/* ---- Tenants ---------------------------------------------------------------------- */

struct roster {
	size_t count;
	struct row {
		char name[GALE_NAME_MAX + 1];
		struct gale_tenant_counts counts;
	} rows[TENANTS_TOLD];
};

/* NULL: as many others are told. */
static struct row *find(struct roster *roster, const char *name)
{
	struct row *found;

	for (size_t i = 0; i < roster->count; i++)
		if (strcmp(roster->rows[i].name, name) == 0)
			return &roster->rows[i];
	if (roster->count == TENANTS_TOLD)
		return NULL;
	found = &roster->rows[roster->count++];
	memcpy(found->name, name, strlen(name) + 1);
	return found;
}

static void add_counts(struct gale_tenant_counts *sum,
                       const struct gale_tenant_counts *counts)
{
#define X(field, metric, type, help) sum->field += counts->field;
	TENANT_COUNTERS(X)
#undef X
}

static void add_tenants(struct roster *roster, struct gale_budget *budget)
    ON(budget->lock)
{
	struct list *named = &budget->locked.named;

	for (struct list *at = named->next; at != named; at = at->next) {
		struct gale_tenant *tenant =
		    list_item(at, struct gale_tenant, locked.named);
		struct row *row = find(roster, tenant->name);
		struct gale_tenant_counts counts;

		if (!row)
			return;
		tenant_counts(tenant, &counts);
		add_counts(&row->counts, &counts);
	}
}

static struct roster tenants_of_name(const struct gale_runtime *runtime,
                                     struct gale_budget *first) ON(runtime->lock)
{
	struct roster roster = { 0 };

	EACH_OF_NAME(runtime, budget, first)
	{
		latch_take(&budget->lock);
		add_tenants(&roster, budget);
		latch_drop(&budget->lock);
	}
	return roster;
}

static void say_tenants(struct text *text, const struct gale_runtime *runtime)
    ON(runtime->lock)
{
	struct gale_budget *budget;

#define X(field, metric, type, help)                                                   \
	text_family(text, metric, type, help);                                         \
	EACH_NAME(runtime, budget)                                                     \
	{                                                                              \
		struct roster roster = tenants_of_name(runtime, budget);               \
		for (size_t i = 0; i < roster.count; i++) {                            \
			text_series(text, metric, "budget", budget->name);             \
			text_say(text, "\",tenant=\"");                                \
			text_label(text, roster.rows[i].name);                         \
			text_say(text, "\"} %" PRIu64 "\n",                            \
			         roster.rows[i].counts.field);                         \
		}                                                                      \
	}
	TENANT_COUNTERS(X)
#undef X
}

void budgets_say(struct text *text, const struct gale_runtime *runtime)
{
	say_budgets(text, runtime);
	say_tenants(text, runtime);
}
