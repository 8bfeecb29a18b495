/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * policy.c -- opens what a plan says, changes it, closes it.
 *
 * A new plan is tried first on a runtime of its own, with stores in memory: so gale itself says
 * what is wrong with it, and of what can then still fail little is left but a lack of memory.
 *
 * Threads   The plan in force is read and replaced under the lock.  Only a thread that holds turn
 *           changes it, so such a thread may also read it without the lock.
 *
 * Invariants
 *
 *   POLICY-1  In the plan in force each entry is open.
 *   POLICY-2  A reload that fails leaves the plan in force, and all that is open, as they were.
 *   POLICY-3  A handle is closed with the policy, and not before.
 */
#define _GNU_SOURCE
#include <gale/policy.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "policy/plan.h"
#include "policy/source.h"

#define SOURCE_OF_TEXT "policy" /* as the file of a sentence */

struct gale_policy {
	struct gale_runtime *runtime;
	char *path; /* NULL: it was a text */
	struct gale_predictor *predictor;
	struct gale_on_fenced *on_fenced;
	pthread_mutex_t turn;
	pthread_mutex_t lock;
	struct plan plan; /* in force, and what has gone */
};

/* Where entries are opened. */
struct site {
	struct gale_runtime *runtime;
	struct plan *plan; /* all of them */
	struct gale_predictor *predictor;
	struct gale_on_fenced *on_fenced;
	bool is_trial; /* stores are in memory, whatever their URLs */
};

/* ---- Opening entries ------------------------------------------------------------- */

/* PLAN-2 */
static struct gale_store *store_of(const struct site *site, const struct entry *entry)
{
	return entry->store[0]
	           ? plan_find(site->plan, KIND_STORE, "", entry->store)->handle
	           : NULL;
}

static enum gale_err open_store(const struct site *site, struct entry *entry)
{
	struct gale_store_config config = {
		.url = site->is_trial ? NULL : entry->is.store.url,
		.max_keys = entry->is.store.max_keys,
		.quarantine_us = entry->is.store.quarantine_us,
	};
	struct gale_store *store = NULL;
	enum gale_err err = gale_store_open(site->runtime, &config, &store);

	entry->handle = store;
	return err;
}

static enum gale_err open_limiter(const struct site *site, struct entry *entry)
{
	struct gale_limiter_config config = entry->is.limiter.config;
	struct gale_limiter *limiter = NULL;
	enum gale_err err;

	config.name = entry->is.limiter.name[0] ? entry->is.limiter.name : entry->name;
	config.rule = entry_rule(entry);
	config.store = store_of(site, entry);
	if (config.lease.sizing == GALE_SIZE_HEDGE)
		config.lease.predictor = site->predictor;
	err = gale_limiter_open(site->runtime, &config, &limiter);
	entry->handle = limiter;
	return err;
}

static enum gale_err open_guard(const struct site *site, struct entry *entry)
{
	struct gale_guard_config config = entry->is.guard.config;
	struct gale_guard *guard = NULL;
	enum gale_err err;

	config.name = entry->name;
	config.store = store_of(site, entry);
	config.node = entry->is.guard.node[0] ? entry->is.guard.node : NULL;
	config.on_fenced = config.store ? site->on_fenced : NULL;
	err = gale_guard_open(site->runtime, &config, &guard);
	entry->handle = guard;
	return err;
}

static enum gale_err open_budget(const struct site *site, struct entry *entry)
{
	struct gale_budget_config config = entry->is.budget.config;
	struct gale_budget *budget = NULL;
	enum gale_err err;

	config.limit = entry->is.budget.limit.units;
	config.window_us = entry->is.budget.limit.per_us;
	config.name = entry->name;
	config.store = store_of(site, entry);
	err = gale_budget_open(site->runtime, &config, &budget);
	entry->handle = budget;
	return err;
}

/* It is open before those below it.  PLAN-3 */
static struct gale_tenant *parent_of(const struct site *site, const struct entry *entry)
{
	return entry->parent[0]
	           ? plan_find(site->plan, KIND_TENANT, entry->owner, entry->parent)
	                 ->handle
	           : NULL;
}

/* Without its guarantee and what it may use alone, for which others, or the limit, may have to make
 * room first. */
static enum gale_err open_tenant(const struct site *site, struct entry *entry)
{
	struct entry *budget = plan_find(site->plan, KIND_BUDGET, "", entry->owner);
	struct gale_terms terms = entry->is.tenant;
	struct gale_tenant *tenant = NULL;
	enum gale_err err;

	terms.guarantee = terms.alone = 0;
	terms.name = entry->name;
	terms.parent = parent_of(site, entry);
	err = gale_tenant_open(budget->handle, &terms, &tenant);
	entry->handle = tenant;
	return err;
}

static enum gale_err open_entry(const struct site *site, struct entry *entry)
{
	switch (entry->kind) {
	case KIND_STORE:
		return open_store(site, entry);
	case KIND_LIMITER:
		return open_limiter(site, entry);
	case KIND_GUARD:
		return open_guard(site, entry);
	case KIND_BUDGET:
		return open_budget(site, entry);
	case KIND_TENANT:
		return open_tenant(site, entry);
	case KIND_COUNT:
		break;
	}
	return GALE_ERR_CONFIG;
}

static void close_entry(const struct entry *entry)
{
	switch (entry->kind) {
	case KIND_STORE:
		gale_store_close(entry->handle);
		break;
	case KIND_LIMITER:
		gale_limiter_close(entry->handle);
		break;
	case KIND_GUARD:
		gale_guard_close(entry->handle);
		break;
	case KIND_BUDGET:
		gale_budget_close(entry->handle);
		break;
	case KIND_TENANT:
		gale_tenant_close(entry->handle);
		break;
	case KIND_COUNT:
		break;
	}
}

/* Users before what they use. */
static void close_all(const struct plan *plan)
{
	for (size_t i = plan->count; i > 0; i--)
		close_entry(&plan->entries[i - 1]);
}

/* ---- Merging --------------------------------------------------------------------- */

static struct entry *twin(const struct plan *plan, const struct entry *entry)
{
	return plan_find(plan, entry->kind, entry->owner, entry->name);
}

/* All of the new plan, with the handles that there are; then what has gone.  URLs stay the
 * two plans'. */
static bool merge(const struct plan *old, const struct plan *new, struct why *why,
                  struct plan *ret_merged)
{
	struct plan merged = { .entries = calloc(old->count + new->count + 1,
		                                 sizeof(*merged.entries)) };

	if (!merged.entries)
		return why_no_memory(why);
	for (size_t i = 0; i < new->count; i++) {
		const struct entry *before = twin(old, &new->entries[i]);
		struct entry *entry = &merged.entries[merged.count++];

		*entry = new->entries[i];
		entry->handle = before ? before->handle : NULL;
		if (before && !entry_may_follow(entry, before, why)) {
			free(merged.entries);
			return false;
		}
	}
	for (size_t i = 0; i < old->count; i++) {
		struct entry *entry = &merged.entries[merged.count];

		if (twin(new, &old->entries[i]))
			continue;
		*entry = old->entries[i];
		entry->listed = false;
		if (entry->kind == KIND_TENANT)
			entry->is.tenant.guarantee = entry->is.tenant.alone = 0;
		merged.count++;
	}
	plan_sort(&merged);
	*ret_merged = merged;
	return true;
}

/* ---- Changes --------------------------------------------------------------------- */

/* From one setting to another; it can be made either way. */
struct change {
	const struct entry *entry;
	const struct entry *before; /* NULL: it is a tenant that is new */
	struct gale_terms terms[2]; /* of a tenant: before and after this change */
};

struct changes {
	struct change *list;
	size_t count;
};

static enum gale_err set_rule(const struct entry *entry, const struct entry *to)
{
	struct gale_rule rule = entry_rule(to);

	return gale_limiter_set_rule(entry->handle, &rule);
}

static enum gale_err make_change(const struct change *change, bool is_back)
{
	const struct entry *entry = change->entry;
	const struct entry *to = is_back ? change->before : entry;

	switch (entry->kind) {
	case KIND_LIMITER:
		return set_rule(entry, to);
	case KIND_BUDGET:
		return gale_budget_set_limit(entry->handle, to->is.budget.limit.units);
	case KIND_TENANT:
		return gale_tenant_set_terms(entry->handle,
		                             &change->terms[is_back ? 0 : 1]);
	default:
		return GALE_ERR_OK;
	}
}

static bool same_rule(const struct entry *one, const struct entry *other)
{
	const struct parts *a = &one->is.limiter.parts, *b = &other->is.limiter.parts;

	return a->rate.units == b->rate.units && a->rate.per_us == b->rate.per_us &&
	       a->burst == b->burst && a->max_wait_us == b->max_wait_us &&
	       a->allowance_permille == b->allowance_permille;
}

static void add_change(struct changes *changes, const struct entry *entry,
                       const struct entry *before)
{
	changes->list[changes->count++] =
	    (struct change){ .entry = entry, .before = before };
}

static void add_terms(struct changes *changes, const struct entry *entry,
                      struct gale_terms from, struct gale_terms to)
{
	if (from.guarantee == to.guarantee && from.cap == to.cap &&
	    from.weight == to.weight && from.alone == to.alone)
		return;
	changes->list[changes->count++] =
	    (struct change){ .entry = entry, .terms = { from, to } };
}

/* Its terms, with a guarantee and units alone that are no more than they were. */
static struct gale_terms lower_terms(const struct entry *tenant,
                                     const struct entry *before)
{
	struct gale_terms lower = tenant->is.tenant, was = { 0 };

	if (before)
		was = before->is.tenant;
	if (lower.guarantee > was.guarantee)
		lower.guarantee = was.guarantee;
	if (lower.alone > was.alone)
		lower.alone = was.alone;
	return lower;
}

static void list_changes(const struct plan *old, const struct plan *merged,
                         enum kind kind, struct changes *changes)
{
	for (size_t i = 0; i < merged->count; i++) {
		const struct entry *entry = &merged->entries[i];
		const struct entry *before = twin(old, entry);

		if (entry->kind != kind || !before)
			continue;
		if (kind == KIND_LIMITER && !same_rule(entry, before))
			add_change(changes, entry, before);
		if (kind == KIND_BUDGET &&
		    entry->is.budget.limit.units != before->is.budget.limit.units)
			add_change(changes, entry, before);
	}
}

static size_t deepest(const struct plan *plan)
{
	size_t depth = 0;

	for (size_t i = 0; i < plan->count; i++)
		if (plan->entries[i].depth > depth)
			depth = plan->entries[i].depth;
	return depth;
}

static void list_terms(const struct plan *old, const struct plan *merged, size_t depth,
                       bool rising, struct changes *changes)
{
	for (size_t i = 0; i < merged->count; i++) {
		const struct entry *entry = &merged->entries[i];
		const struct entry *before = twin(old, entry);
		struct gale_terms lower;

		if (entry->kind != KIND_TENANT || entry->depth != depth)
			continue;
		lower = lower_terms(entry, before);
		if (rising)
			add_terms(changes, entry, lower, entry->is.tenant);
		else if (before)
			add_terms(changes, entry, before->is.tenant, lower);
	}
}

/* A guarantee that falls before the limits of budgets, and before that of the parent; one that
 * rises after them: so guarantees are never above what they are parts of.  Units alone as well. */
static void list_all(const struct plan *old, const struct plan *merged,
                     struct changes *changes)
{
	size_t depth, most = deepest(merged);

	for (depth = most + 1; depth > 0; depth--)
		list_terms(old, merged, depth - 1, /* rising= */ false, changes);
	list_changes(old, merged, KIND_BUDGET, changes);
	for (depth = 0; depth <= most; depth++)
		list_terms(old, merged, depth, /* rising= */ true, changes);
	list_changes(old, merged, KIND_LIMITER, changes);
}

/* All of them, or none. */
static enum gale_err make_changes(const struct changes *changes,
                                  const struct entry **ret_at)
{
	enum gale_err err = GALE_ERR_OK;
	size_t made = 0;

	while (made < changes->count && err == GALE_ERR_OK) {
		err = make_change(&changes->list[made], false);
		made += err == GALE_ERR_OK;
	}
	if (err == GALE_ERR_OK)
		return err;
	*ret_at = changes->list[made].entry;
	while (made > 0)
		(void)make_change(&changes->list[--made], true);
	return err;
}

/* ---- Putting a plan in force ----------------------------------------------------- */

static bool say_refused(const struct entry *entry, struct why *why, enum gale_err err)
{
	if (entry->node)
		return entry_refused(entry, why, err);
	return why_say(why, err, 0, entry->name, "%s", gale_err_text(err));
}

static bool is_new(const struct plan *old, const struct entry *entry)
{
	return twin(old, entry) == NULL;
}

static void close_new(const struct plan *old, const struct plan *merged)
{
	for (size_t i = merged->count; i > 0; i--)
		if (is_new(old, &merged->entries[i - 1]))
			close_entry(&merged->entries[i - 1]);
}

static bool open_at_depth(const struct site *site, const struct plan *old, size_t depth,
                          struct why *why)
{
	for (size_t i = 0; i < site->plan->count; i++) {
		struct entry *entry = &site->plan->entries[i];
		enum gale_err err = GALE_ERR_OK;

		if (entry->depth == depth && is_new(old, entry))
			err = open_entry(site, entry);
		if (err != GALE_ERR_OK)
			return say_refused(entry, why, err);
	}
	return true;
}

/* Parents before those below them. */
static bool open_new(const struct site *site, const struct plan *old, struct why *why)
{
	for (size_t depth = 0; depth <= deepest(site->plan); depth++)
		if (!open_at_depth(site, old, depth, why))
			return false;
	return true;
}

static bool change_all(const struct site *site, const struct plan *old, struct why *why)
{
	struct changes changes = { 0 };
	const struct entry *at = NULL;
	enum gale_err err;

	changes.list = calloc(2 * site->plan->count + 1, sizeof(*changes.list));
	if (!changes.list)
		return why_no_memory(why);
	list_all(old, site->plan, &changes);
	err = make_changes(&changes, &at);
	free(changes.list);
	return err == GALE_ERR_OK || say_refused(at, why, err);
}

/* From the old plan, which is open at the site, to the new one.              (POLICY-2) */
static bool apply(struct site *site, const struct plan *old, const struct plan *new,
                  struct why *why, struct plan *ret_merged)
{
	struct plan merged;

	if (!merge(old, new, why, &merged))
		return false;
	site->plan = &merged;
	if (open_new(site, old, why) && change_all(site, old, why)) {
		*ret_merged = merged;
		return true;
	}
	close_new(old, &merged);
	free(merged.entries);
	return false;
}

/* The same on a runtime that is not in use. */
static bool try_out(const struct site *like, const struct plan *plan, struct why *why)
{
	struct gale_config config = {
		.shards = 1, .pending_max = 1, .max_keys = 1, .turns = true
	};
	struct site site = *like;
	struct plan none = { 0 }, merged;
	enum gale_err err = gale_runtime_open(&config, &site.runtime);
	bool good;

	if (err != GALE_ERR_OK)
		return why_say(why, err, 0, "", "%s", gale_err_text(err));
	site.is_trial = true;
	good = apply(&site, &none, plan, why, &merged);
	if (good) {
		close_all(&merged);
		free(merged.entries);
	}
	gale_runtime_close(site.runtime);
	return good;
}

/* Entries have moved to the merged plan, with the URLs of stores that are defined now. */
static void drop_moved(struct plan *old, struct plan *new, const struct plan *merged)
{
	for (size_t i = 0; i < old->count; i++)
		if (old->entries[i].kind == KIND_STORE &&
		    twin(merged, &old->entries[i])->listed)
			free(old->entries[i].is.store.url);
	free(old->entries);
	free(new->entries);
	tree_free(new->root);
}

static void forget_nodes(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		plan->entries[i].node = NULL; /* ENTRY-1 */
}

/* The turn is the caller's. */
static bool put_in_force(struct gale_policy *policy, struct plan *new, struct why *why)
{
	struct site site = { .runtime = policy->runtime,
		             .predictor = policy->predictor,
		             .on_fenced = policy->on_fenced };
	struct plan merged, old = policy->plan;

	if (!try_out(&site, new, why) || !apply(&site, &old, new, why, &merged)) {
		plan_free(new);
		return false;
	}
	forget_nodes(&merged);
	pthread_mutex_lock(&policy->lock);
	policy->plan = merged;
	pthread_mutex_unlock(&policy->lock);
	drop_moved(&old, new, &merged);
	return true;
}

/* ---- Sources --------------------------------------------------------------------- */

static struct why begin(char *ret_why, size_t room, const char *path)
{
	if (room > 0)
		ret_why[0] = '\0';
	return (struct why){ .text = ret_why,
		             .room = room,
		             .source = path ? path : SOURCE_OF_TEXT };
}

static bool read_plan(const char *path, const char *text, struct why *why,
                      struct plan *ret_plan)
{
	char *read = NULL;
	size_t bytes = text ? strlen(text) : 0;
	bool good;

	if (!text && !source_read(path, why, &read, &bytes))
		return false;
	good = plan_read(text ? text : read, bytes, why, ret_plan);
	free(read);
	return good;
}

static enum gale_err refuse(struct why *why, enum gale_err err)
{
	(void)why_say(why, err, 0, "", "%s", gale_err_text(err));
	return err;
}

static enum gale_err check_config(const struct gale_policy_config *config)
{
	if (!config)
		return GALE_ERR_CONFIG;
	for (size_t i = 0; i < sizeof(config->reserved) / sizeof(config->reserved[0]);
	     i++)
		if (config->reserved[i] != 0)
			return GALE_ERR_SIZE;
	return !config->path == !config->text ? GALE_ERR_POLICY_SOURCE : GALE_ERR_OK;
}

/* ---- Handles --------------------------------------------------------------------- */

static struct gale_policy *make(struct gale_runtime *runtime,
                                const struct gale_policy_config *config)
{
	struct gale_policy *policy = calloc(1, sizeof(*policy));

	if (!policy)
		return NULL;
	policy->runtime = runtime;
	policy->predictor = config->predictor;
	policy->on_fenced = config->on_fenced;
	policy->path = config->path ? strdup(config->path) : NULL;
	if (config->path && !policy->path) {
		free(policy);
		return NULL;
	}
	pthread_mutex_init(&policy->turn, NULL);
	pthread_mutex_init(&policy->lock, NULL);
	return policy;
}

enum gale_err gale_policy_check(const struct gale_policy_config *config, char *ret_why,
                                size_t room)
{
	struct why why = begin(ret_why, room, config ? config->path : NULL);
	enum gale_err err = check_config(config);
	struct site site = { 0 };
	struct plan plan;

	if (err != GALE_ERR_OK)
		return refuse(&why, err);
	site.predictor = config->predictor;
	site.on_fenced = config->on_fenced;
	if (read_plan(config->path, config->text, &why, &plan)) {
		(void)try_out(&site, &plan, &why);
		plan_free(&plan);
	}
	return why.err;
}

enum gale_err gale_policy_open(struct gale_runtime *runtime,
                               const struct gale_policy_config *config, char *ret_why,
                               size_t room, struct gale_policy **ret_policy)
{
	struct why why = begin(ret_why, room, config ? config->path : NULL);
	enum gale_err err = ret_policy ? check_config(config) : GALE_ERR_RET;
	struct gale_policy *policy;
	struct plan plan;

	if (err != GALE_ERR_OK)
		return refuse(&why, err);
	policy = make(runtime, config);
	if (!policy)
		return refuse(&why, GALE_ERR_MEMORY);
	if (read_plan(config->path, config->text, &why, &plan) &&
	    put_in_force(policy, &plan, &why))
		*ret_policy = policy;
	else
		gale_policy_close(policy);
	return why.err;
}

enum gale_err gale_policy_reload(struct gale_policy *policy, const char *text,
                                 char *ret_why, size_t room)
{
	struct why why = begin(ret_why, room, policy && !text ? policy->path : NULL);
	struct plan plan;

	if (!policy)
		return refuse(&why, GALE_ERR_NO_POLICY);
	if (!text && !policy->path)
		return refuse(&why, GALE_ERR_POLICY_SOURCE);
	pthread_mutex_lock(&policy->turn);
	if (read_plan(policy->path, text, &why, &plan))
		(void)put_in_force(policy, &plan, &why);
	pthread_mutex_unlock(&policy->turn);
	return why.err;
}

void gale_policy_close(struct gale_policy *policy)
{
	if (!policy)
		return;
	close_all(&policy->plan); /* POLICY-3 */
	plan_free(&policy->plan);
	pthread_mutex_destroy(&policy->lock);
	pthread_mutex_destroy(&policy->turn);
	free(policy->path);
	free(policy);
}

static void *find(struct gale_policy *policy, enum kind kind, const char *owner,
                  const char *name)
{
	const struct entry *entry;
	void *handle;

	if (!policy || !owner || !name)
		return NULL;
	pthread_mutex_lock(&policy->lock);
	entry = plan_find(&policy->plan, kind, owner, name);
	handle = entry && entry->listed ? entry->handle : NULL;
	pthread_mutex_unlock(&policy->lock);
	return handle;
}

struct gale_store *gale_policy_store(struct gale_policy *policy, const char *name)
{
	return find(policy, KIND_STORE, "", name);
}

struct gale_limiter *gale_policy_limiter(struct gale_policy *policy, const char *name)
{
	return find(policy, KIND_LIMITER, "", name);
}

struct gale_guard *gale_policy_guard(struct gale_policy *policy, const char *name)
{
	return find(policy, KIND_GUARD, "", name);
}

struct gale_budget *gale_policy_budget(struct gale_policy *policy, const char *name)
{
	return find(policy, KIND_BUDGET, "", name);
}

struct gale_tenant *gale_policy_tenant(struct gale_policy *policy, const char *budget,
                                       const char *name)
{
	return find(policy, KIND_TENANT, budget, name);
}
