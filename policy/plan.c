/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* plan.c -- sections, their names, and what these name. */
#define _GNU_SOURCE
#include "policy/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Order ----------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;
	int order = (one->kind > other->kind) - (one->kind < other->kind);

	if (order == 0)
		order = strcmp(one->owner, other->owner);
	return order != 0 ? order : strcmp(one->name, other->name);
}

void plan_sort(struct plan *plan)
{
	if (plan->count > 0)
		qsort(plan->entries, plan->count, sizeof(*plan->entries), compare);
}

struct entry *plan_find(const struct plan *plan, enum kind kind, const char *owner,
                        const char *name)
{
	struct entry like = { .kind = kind };

	if (plan->count == 0 || strlen(owner) > GALE_NAME_MAX ||
	    strlen(name) > GALE_NAME_MAX)
		return NULL;
	strcpy(like.owner, owner);
	strcpy(like.name, name);
	return bsearch(&like, plan->entries, plan->count, sizeof(*plan->entries),
	               compare);
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (plan->entries[i].kind == KIND_STORE)
			free(plan->entries[i].is.store.url);
	free(plan->entries);
	tree_free(plan->root);
	*plan = (struct plan){ 0 };
}

/* ---- Counting -------------------------------------------------------------------- */

static const struct node *section(const struct plan *plan, enum kind kind)
{
	return node_find(plan->root, kind_section(kind));
}

static size_t count_entries(const struct plan *plan)
{
	size_t count = 0;

	for (const struct node *part = plan->root->first; part; part = part->next)
		count += part->count;
	if (!section(plan, KIND_BUDGET))
		return count;
	for (const struct node *budget = section(plan, KIND_BUDGET)->first; budget;
	     budget = budget->next)
		if (node_find(budget, kind_section(KIND_TENANT)))
			count += node_find(budget, kind_section(KIND_TENANT))->count;
	return count;
}

/* ---- Reading --------------------------------------------------------------------- */

static bool check_name(const struct node *node, struct why *why)
{
	if (strlen(node->name) > GALE_NAME_MAX)
		return node_say(node, why, GALE_ERR_NAME,
		                "a name has at most %d bytes: choose a shorter one",
		                GALE_NAME_MAX);
	for (const char *at = node->name; *at; at++)
		if (*at < ' ' || *at > '~')
			return node_say(
			    node, why, GALE_ERR_NAME,
			    "a name is printable ASCII: choose another one");
	return true;
}

/* The names of a section, or the tenants of a budget. */
static bool read_section(struct plan *plan, const struct node *map, enum kind kind,
                         const char *owner, struct why *why)
{
	if (map->value)
		return node_say(
		    map, why, GALE_ERR_POLICY_TEXT,
		    "is the value %s: write names below it, further to the right",
		    why_quote(map->value).is);
	for (const struct node *node = map->first; node; node = node->next) {
		struct entry *entry = &plan->entries[plan->count];
		const struct node *tenants;

		if (!check_name(node, why))
			return false;
		*entry = (struct entry){ .kind = kind, .node = node, .listed = true };
		strcpy(entry->name, node->name);
		strcpy(entry->owner, owner);
		plan->count++;
		if (!entry_read(entry, why))
			return false;
		tenants = node_find(node, kind_section(KIND_TENANT));
		if (kind == KIND_BUDGET && tenants &&
		    !read_section(plan, tenants, KIND_TENANT, node->name, why))
			return false;
	}
	return true;
}

static bool check_sections(const struct plan *plan, struct why *why)
{
	const struct node *node = plan->root->first;

	if (!node)
		return why_say(why, GALE_ERR_POLICY_TEXT, 1, "",
		               "the policy defines nothing: write stores, limiters, "
		               "guards or budgets");
	for (; node; node = node->next) {
		enum kind kind = KIND_STORE;

		while (kind < KIND_TENANT &&
		       strcmp(node->name, kind_section(kind)) != 0)
			kind++;
		if (kind == KIND_TENANT)
			return node_say(node, why, GALE_ERR_POLICY_TEXT,
			                "is not known: there are stores, limiters, "
			                "guards, budgets");
	}
	return true;
}

/* PLAN-2 */
static bool check_stores(const struct plan *plan, struct why *why)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct entry *entry = &plan->entries[i];
		const struct node *node = node_find(entry->node, "store");

		if (entry->store[0] && !plan_find(plan, KIND_STORE, "", entry->store))
			return node_say(
			    node ? node : entry->node, why, GALE_ERR_POLICY_TEXT,
			    "%s is no store of this policy: define it under stores",
			    why_quote(entry->store).is);
	}
	return true;
}

static struct entry *parent_of(const struct plan *plan, const struct entry *tenant)
{
	return plan_find(plan, KIND_TENANT, tenant->owner, tenant->parent);
}

static bool say_parent(const struct entry *tenant, struct why *why, const char *what)
{
	return node_say(node_find(tenant->node, "parent"), why, GALE_ERR_POLICY_TEXT,
	                "%s %s", why_quote(tenant->parent).is, what);
}

/* One that is below a tenant that is above itself is not to blame.  PLAN-3 */
static bool find_depth(const struct plan *plan, struct entry *tenant, struct why *why)
{
	const struct entry *above = tenant;

	for (; above->parent[0] && tenant->depth < plan->count; tenant->depth++) {
		const struct entry *parent = parent_of(plan, above);

		if (!parent)
			return say_parent(above, why,
			                  "is no tenant of this budget: define it "
			                  "under tenants, too");
		if (parent == tenant)
			return say_parent(tenant, why,
			                  "is this tenant, or below it: no tenant can "
			                  "be above itself");
		above = parent;
	}
	return true;
}

static bool find_depths(struct plan *plan, struct why *why)
{
	for (size_t i = 0; i < plan->count; i++)
		if (!find_depth(plan, &plan->entries[i], why))
			return false;
	return true;
}

static bool read_sections(struct plan *plan, struct why *why)
{
	plan->entries = calloc(count_entries(plan) + 1, sizeof(*plan->entries));
	if (!plan->entries)
		return why_no_memory(why);
	for (enum kind kind = KIND_STORE; kind < KIND_TENANT; kind++)
		if (section(plan, kind) &&
		    !read_section(plan, section(plan, kind), kind, "", why))
			return false;
	plan_sort(plan);
	return check_stores(plan, why) && find_depths(plan, why);
}

bool plan_read(const char *text, size_t bytes, struct why *why, struct plan *ret_plan)
{
	*ret_plan = (struct plan){ 0 };
	if (tree_read(text, bytes, why, &ret_plan->root) &&
	    check_sections(ret_plan, why) && read_sections(ret_plan, why))
		return true;
	plan_free(ret_plan);
	return false;
}
