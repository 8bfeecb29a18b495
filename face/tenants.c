/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.c -- budgets and tenants open and close; tenants ask.
 *
 * Threads   gale_tenant_ask: the seat's own.  The rest: any.
 */
#include "face/tenants.h"

#include <string.h>

#include "engine/credit.h"
#include "face/checks.h"
#include "face/seat.h"
#include "face/sized.h"
#include "runtime/memory.h"

#define TENANTS_DEFAULT 1024
#define RELEASE_PART 8  /* of a window */
#define FIRST_BELOW 8   /* so many tenants a tenant has room for, and then more */
#define REMEMBER_PART 4 /* of release_us */
#define REMEMBER_MOST_US GALE_MILLIS(100)
#define WINDOW_LEAST_US GALE_MILLIS(1)

static_assert(GALE_TENANTS_MAX == ESCROW_TENANTS_MAX &&
                  GALE_TENANT_WEIGHT_MAX == FAIR_WEIGHT_MAX,
              "so it is said");

/* ---- Budgets ----------------------------------------------------------------------- */

static void budget_die(struct handle *self)
{
	struct gale_budget *budget = (struct gale_budget *)self;
	struct gale_allocator *allocator = self->runtime->allocator;

	if (is_shared(budget)) {
		fund_free(&budget->fund);
		handle_drop(&budget->store->handle);
	}
	family_close(&budget->locked.family, allocator);
	memory_give(allocator, budget->alones, budget->room * sizeof(*budget->alones));
}

static uint64_t release_of(const struct gale_budget_config *config)
{
	return config->release_us ? config->release_us
	                          : config->window_us / RELEASE_PART;
}

/* A name of a budget, or of a tenant; NULL: it has none. */
static bool name_is_good(const char *name)
{
	size_t count = name ? strlen(name) : 1;

	return count >= 1 && count <= GALE_NAME_MAX;
}

static void copy_name(char ret_name[GALE_NAME_MAX + 1], const char *name)
{
	if (name)
		memcpy(ret_name, name, strlen(name));
}

static enum gale_err check_budget(const struct gale_budget_config *config)
{
	if (config->limit < 1 || config->limit > GALE_UNITS_MAX)
		return GALE_ERR_BUDGET_LIMIT;
	if (config->window_us < WINDOW_LEAST_US || config->window_us > GALE_SPAN_MAX_US)
		return GALE_ERR_BUDGET_WINDOW;
	if (config->protect_us > config->window_us)
		return GALE_ERR_PROTECT;
	if (config->max_tenants > GALE_TENANTS_MAX)
		return GALE_ERR_TENANTS;
	if (config->lending > GALE_PARTED)
		return GALE_ERR_LENDING;
	return name_is_good(config->name) ? GALE_ERR_OK : GALE_ERR_NAME;
}

static uint64_t utc_ns(struct gale_runtime *runtime)
{
	struct gale_clock *clock =
	    runtime->clock ? runtime->clock : &runtime->boot.clock;

	return clock->now_us(clock) * 1000;
}

static bool set_up(struct gale_budget *budget, const struct gale_budget_config *config)
{
	struct gale_runtime *runtime = budget->handle.runtime;
	struct escrow_settings set = { .limit = config->limit,
		                       .period_us = config->window_us,
		                       .release_us = release_of(config),
		                       .protect_us = config->protect_us,
		                       .parted = config->lending == GALE_PARTED };
	uint64_t remember_us = set.release_us / REMEMBER_PART;

	if (remember_us > REMEMBER_MOST_US)
		remember_us = REMEMBER_MOST_US;
	budget->remember_ns = remember_us * 1000;
	budget->window_us = config->window_us;
	budget->epoch_ns = utc_ns(runtime) - clock_now(runtime->node_clock).ns;
	return family_open(&budget->locked.family, &set, runtime->allocator,
	                   budget->room);
}

/* Behind the first of its name, or at the end.  (TENANT-6) */
static struct list *place_of(struct gale_runtime *runtime, const char *name)
    ON(runtime->lock)
{
	struct list *all = &runtime->locked.budgets, *at = all->next;

	while (at != all &&
	       strcmp(list_item(at, struct gale_budget, place)->name, name) != 0)
		at = at->next;
	return at == all ? all : at->next;
}

static void list_budget(struct gale_runtime *runtime, struct gale_budget *budget)
{
	lock_take(&runtime->lock);
	list_append(place_of(runtime, budget->name), &budget->place);
	lock_drop(&runtime->lock);
}

static void unlist_budget(struct gale_runtime *runtime, struct gale_budget *budget)
{
	lock_take(&runtime->lock);
	list_remove(&budget->place);
	lock_drop(&runtime->lock);
}

static enum gale_err open_budget(struct gale_runtime *runtime,
                                 const struct gale_budget_config *config,
                                 struct gale_budget **ret_budget)
{
	struct gale_budget *budget = handle_new(runtime, sizeof(*budget), budget_die);
	uint32_t most = config->store ? POOL_TENANTS_MAX : TENANTS_DEFAULT;
	enum gale_err err = GALE_ERR_OK;

	if (!budget)
		return GALE_ERR_MEMORY;
	list_init(&budget->locked.named);
	copy_name(budget->name, config->name);
	budget->room = config->max_tenants ? config->max_tenants : most;
	if (!set_up(budget, config))
		err = GALE_ERR_MEMORY;
	else if (config->store)
		err = shared_open(budget, config);
	if (err != GALE_ERR_OK) {
		handle_close(&budget->handle);
		return err;
	}
	list_budget(runtime, budget);
	*ret_budget = budget;
	return GALE_ERR_OK;
}

enum gale_err gale_budget_open_sized(struct gale_runtime *runtime,
                                     const struct gale_budget_config *config,
                                     size_t config_bytes,
                                     struct gale_budget **ret_budget)
{
	enum gale_err err = runtime_error(runtime);
	struct gale_budget_config known;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_budget)
		return GALE_ERR_RET;
	if (!config)
		return GALE_ERR_CONFIG;
	if (!sized_read(&known, sizeof(known), config, config_bytes))
		return GALE_ERR_SIZE;
	err = check_budget(&known);
	if (err == GALE_ERR_OK && known.store)
		err = shared_check(runtime, &known);
	return err == GALE_ERR_OK ? open_budget(runtime, &known, ret_budget) : err;
}

static enum gale_err error_of_fault(enum fair_fault fault)
{
	switch (fault) {
	case FAIR_WEIGHT:
		return GALE_ERR_TENANT_WEIGHT;
	case FAIR_CAP:
		return GALE_ERR_CAP;
	case FAIR_GUARANTEE:
		return GALE_ERR_GUARANTEE;
	case FAIR_FULL:
		return GALE_ERR_TENANTS_FULL;
	default:
		return GALE_ERR_OK;
	}
}

static bool is_open(const struct handle *handle)
{
	return !load_relaxed(&handle->closed);
}

/* A child of fork() may have a copy of a lock that is held. */
static enum gale_err handle_error(const struct handle *handle, enum gale_err otherwise)
{
	return handle && is_open(handle) ? runtime_error(handle->runtime) : otherwise;
}

enum gale_err gale_budget_set_limit(struct gale_budget *budget, uint64_t limit)
{
	enum gale_err err =
	    handle_error(budget ? &budget->handle : NULL, GALE_ERR_BUDGET);
	enum fair_fault fault;

	if (err != GALE_ERR_OK)
		return err;
	if (limit < 1 || limit > GALE_UNITS_MAX)
		return GALE_ERR_BUDGET_LIMIT;
	latch_take(&budget->lock);
	fault = escrow_set_limit(&budget->locked.family.escrow, limit);
	if (!is_shared(budget))
		escrowed_take_back_all(&budget->locked.family);
	else if (fault == FAIR_GOOD)
		shared_set_limit(budget, limit); /* in the same order as escrow's */
	latch_drop(&budget->lock);
	return error_of_fault(fault);
}

/* ---- Tenants ----------------------------------------------------------------------- */

static void tenant_die(struct handle *self)
{
	struct gale_tenant *tenant = (struct gale_tenant *)self;
	struct gale_allocator *allocator = self->runtime->allocator;

	if (tenant->locked.below) {
		family_close(tenant->locked.below, allocator);
		memory_give(allocator, tenant->locked.below,
		            sizeof(*tenant->locked.below));
	}
	if (tenant->parent)
		handle_drop(&tenant->parent->handle);
	handle_drop(&tenant->budget->handle);
}

/* The counts of its holds lie behind it; those of the first seats where asks write: hot.h. */
static struct gale_tenant *new_tenant(struct gale_runtime *runtime)
{
	size_t before = sizeof(struct gale_tenant) + WET_ALIGN / 4;
	size_t counts = (runtime->cell_count + 1) * sizeof(_Atomic uint64_t);
	struct gale_tenant *tenant = handle_new(runtime, before + counts, tenant_die);

	if (tenant)
		tenant->holds = (_Atomic uint64_t *)((char *)tenant + before);
	return tenant;
}

static bool read_terms(struct gale_terms *ret_known, const struct gale_terms *terms,
                       size_t bytes, struct escrow_terms *ret_terms)
{
	if (!sized_read(ret_known, sizeof(*ret_known), terms, bytes) ||
	    ret_known->reserved != 0)
		return false;
	*ret_terms = (struct escrow_terms){
		.guarantee = ret_known->guarantee,
		.cap = ret_known->cap ? ret_known->cap : GALE_UNITS_MAX,
		.weight = ret_known->weight,
	};
	return true;
}

/* The parent's first tenant.  TENANT-5 */
static enum gale_err found_below(struct gale_tenant *parent)
{
	struct gale_allocator *allocator = parent->handle.runtime->allocator;
	const struct family *above = parent->locked.family;
	struct family *below = memory_take(allocator, sizeof(*below));

	if (!below)
		return GALE_ERR_MEMORY;
	if (!family_open(below, &above->escrow.set, allocator, FIRST_BELOW)) {
		memory_give(allocator, below, sizeof(*below));
		return GALE_ERR_MEMORY;
	}
	escrowed_empty(parent);
	if (escrow_hang(&below->escrow, &parent->locked.family->escrow,
	                parent->locked.number)) {
		parent->locked.below = below;
		return GALE_ERR_OK;
	}
	family_close(below, allocator);
	memory_give(allocator, below, sizeof(*below));
	return GALE_ERR_DEPTH;
}

/* At the store they would be one tenant, with the guarantee of one. */
static bool has_name(struct gale_budget *budget, const char *name) ON(budget->lock)
{
	const struct list *named = &budget->locked.named;

	for (const struct list *at = named->next; at != named; at = at->next)
		if (strcmp(list_item(at, const struct gale_tenant, locked.named)->name,
		           name) == 0)
			return true;
	return false;
}

/* *ret_family: that a tenant of the parent's is in. */
static enum gale_err family_of(struct gale_budget *budget, struct gale_tenant *parent,
                               struct family **ret_family) ON(budget->lock)
{
	enum gale_err err = GALE_ERR_OK;

	if (budget->locked.open == budget->room)
		return GALE_ERR_TENANTS_FULL;
	if (parent && !tenant_is_open(parent))
		return GALE_ERR_PARENT;
	if (parent && !parent->locked.below)
		err = found_below(parent);
	if (err == GALE_ERR_OK)
		*ret_family = parent ? parent->locked.below : &budget->locked.family;
	return err;
}

/* Asks of those below are denied from now on: they are below one that is closed.  TENANT-5 */
static void cut_off(struct gale_tenant *tenant)
{
	struct family *below = tenant->locked.below;

	escrowed_empty_all(below);
	escrow_unhang(&below->escrow);
}

static void take_out(struct gale_budget *budget, struct gale_tenant *tenant)
    ON(budget->lock)
{
	struct family *family = tenant->locked.family;

	if (tenant->locked.below)
		cut_off(tenant);
	if (!is_shared(budget))
		escrowed_empty(tenant);
	store_relaxed(&tenant->till.denied, 0);
	escrow_remove(&family->escrow, tenant->locked.number);
	family->handles[tenant->locked.number] = NULL;
	budget->locked.open--;
	if (tenant->name[0])
		list_remove(&tenant->locked.named);
}

static void remove_tenant(struct gale_budget *budget, struct gale_tenant *tenant)
{
	latch_take(&budget->lock);
	take_out(budget, tenant);
	latch_drop(&budget->lock);
}

static enum gale_err add_tenant(struct gale_budget *budget,
                                const struct escrow_terms *terms, uint64_t alone,
                                struct gale_tenant *tenant)
{
	enum fair_fault fault = FAIR_GOOD;
	struct family *family;
	enum gale_err err;

	latch_take(&budget->lock);
	if (is_shared(budget) && has_name(budget, tenant->name))
		err = GALE_ERR_TENANT_NAME;
	else
		err = family_of(budget, tenant->parent, &family);
	if (err == GALE_ERR_OK)
		fault = family_add(family, terms, budget->handle.runtime->allocator,
		                   budget->room, &tenant->locked.number);
	if (err == GALE_ERR_OK && fault == FAIR_GOOD) {
		tenant->locked.family = family;
		family->handles[tenant->locked.number] = tenant;
		budget->locked.open++;
		if (tenant->name[0])
			list_append(&budget->locked.named, &tenant->locked.named);
		if (is_shared(budget))
			err = shared_open_tenant(tenant, terms, alone);
		if (err != GALE_ERR_OK)
			take_out(budget, tenant);
	}
	latch_drop(&budget->lock);
	return err == GALE_ERR_OK ? error_of_fault(fault) : err;
}

static enum gale_err check_alone(struct gale_budget *budget,
                                 const struct escrow_terms *terms, uint64_t alone)
{
	uint64_t limit;

	latch_take(&budget->lock);
	limit = budget->locked.family.escrow.set.limit;
	latch_drop(&budget->lock);
	if (alone == 0 || (is_shared(budget) && alone <= limit && alone <= terms->cap))
		return GALE_ERR_OK;
	return GALE_ERR_ALONE_UNITS;
}

static enum gale_err check_parent(const struct gale_budget *budget,
                                  const struct gale_tenant *parent)
{
	if (is_shared(budget))
		return GALE_ERR_PARENT_STORE;
	return parent->budget == budget && is_open(&parent->handle) ? GALE_ERR_OK
	                                                            : GALE_ERR_PARENT;
}

enum gale_err gale_tenant_open_sized(struct gale_budget *budget,
                                     const struct gale_terms *terms, size_t terms_bytes,
                                     struct gale_tenant **ret_tenant)
{
	struct gale_tenant *tenant;
	struct escrow_terms inner;
	struct gale_terms known;
	enum gale_err err;

	err = handle_error(budget ? &budget->handle : NULL, GALE_ERR_BUDGET);
	if (err != GALE_ERR_OK)
		return err;
	if (!ret_tenant)
		return GALE_ERR_RET;
	if (!terms)
		return GALE_ERR_CONFIG;
	if (!read_terms(&known, terms, terms_bytes, &inner))
		return GALE_ERR_SIZE;
	err = check_alone(budget, &inner, known.alone);
	if (err == GALE_ERR_OK && !name_is_good(known.name))
		err = GALE_ERR_NAME;
	if (err == GALE_ERR_OK && known.parent)
		err = check_parent(budget, known.parent);
	if (err != GALE_ERR_OK)
		return err;
	tenant = new_tenant(budget->handle.runtime);
	if (!tenant)
		return GALE_ERR_MEMORY;
	tenant->budget = budget;
	copy_name(tenant->name, known.name);
	tenant->parent = known.parent;
	handle_hold(&budget->handle);
	if (tenant->parent)
		handle_hold(&tenant->parent->handle);
	err = add_tenant(budget, &inner, known.alone, tenant);
	if (err == GALE_ERR_OK)
		*ret_tenant = tenant;
	else
		handle_close(&tenant->handle);
	return err;
}

static enum fair_fault change_tenant(struct gale_budget *budget,
                                     struct gale_tenant *tenant,
                                     const struct escrow_terms *terms)
{
	enum fair_fault fault;

	latch_take(&budget->lock);
	if (!is_shared(budget))
		escrowed_empty(tenant);
	fault =
	    escrow_change(&tenant->locked.family->escrow, tenant->locked.number, terms);
	store_relaxed(&tenant->till.denied, 0);
	if (!is_shared(budget))
		escrowed_take_back_all(&budget->locked.family);
	latch_drop(&budget->lock);
	return fault;
}

enum gale_err gale_tenant_set_terms_sized(struct gale_tenant *tenant,
                                          const struct gale_terms *terms,
                                          size_t terms_bytes)
{
	struct escrow_terms inner;
	struct gale_terms known;
	enum gale_err err =
	    handle_error(tenant ? &tenant->handle : NULL, GALE_ERR_TENANT);
	enum fair_fault fault;

	if (err != GALE_ERR_OK)
		return err;
	if (!terms)
		return GALE_ERR_CONFIG;
	if (!read_terms(&known, terms, terms_bytes, &inner))
		return GALE_ERR_SIZE;
	if (known.parent && known.parent != tenant->parent)
		return GALE_ERR_PARENT;
	err = check_alone(tenant->budget, &inner, known.alone);
	if (err != GALE_ERR_OK)
		return err;
	fault = change_tenant(tenant->budget, tenant, &inner);
	if (is_shared(tenant->budget) && fault == FAIR_GOOD)
		shared_set_terms(tenant, &inner, known.alone);
	return error_of_fault(fault);
}

void gale_tenant_close(struct gale_tenant *tenant)
{
	if (!tenant || !lifeline_holds(&tenant->handle.runtime->lifeline))
		return;
	/* One that is closed already may be gone; handle_close tells of that. */
	if (is_open(&tenant->handle)) {
		remove_tenant(tenant->budget, tenant);
		if (is_shared(tenant->budget))
			shared_close_tenant(tenant);
	}
	handle_hold(&tenant->handle);
	handle_close(&tenant->handle);
	tenant_keep_while_held(tenant);
	handle_drop(&tenant->handle);
}

/* Nothing is taken from a purse any more; tenants are closed one by one. */
void gale_budget_close(struct gale_budget *budget)
{
	if (!budget || !lifeline_holds(&budget->handle.runtime->lifeline))
		return;
	if (is_open(&budget->handle))
		unlist_budget(budget->handle.runtime, budget);
	if (is_open(&budget->handle) && is_shared(budget))
		shared_close(budget);
	else if (is_open(&budget->handle)) {
		latch_take(&budget->lock);
		budget->locked.closed = true;
		escrowed_empty_all(&budget->locked.family);
		latch_drop(&budget->lock);
	}
	handle_close(&budget->handle);
}

/* ---- Asking ------------------------------------------------------------------------ */

#define DENIED(reason) ((struct gale_answer){ .verdict = GALE_DENY, .why = (reason) })

enum gale_why tenant_check(const struct gale_seat *seat,
                           const struct gale_tenant *tenant, uint64_t cost)
{
	enum gale_why why;

	if (!seat || !tenant || tenant->handle.runtime != seat->handle.runtime ||
	    !cost_is_good(cost))
		return GALE_WHY_BAD_ASK;
	if (!handle_is_open(&seat->handle, seat->handle.runtime))
		return GALE_WHY_CLOSED;
	why = runtime_refuses(seat->handle.runtime);
	return why == GALE_WHY_RULE && !tenant_is_open(tenant) ? GALE_WHY_CLOSED : why;
}

static __attribute__((noinline)) struct gale_answer
denied_again(struct gale_tenant *tenant, mono now)
{
	uint64_t word = load_relaxed(&tenant->till.denied);

	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = till_why(&tenant->till),
		.limit = load_relaxed(&tenant->till.share),
		.remaining = load_relaxed(&tenant->till.left),
		.retry_after_us =
		    credit_lives(word, now) ? tenant_until_us(now, word) : 0,
	};
}

bool tenant_denies(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                   struct gale_answer *ret_answer)
{
	mono now = seat_now(seat);

	if (credit_covers(load_relaxed(&tenant->till.purse), now, cost) ||
	    !till_denies(&tenant->till, now, cost))
		return false;
	*ret_answer = denied_again(tenant, now);
	return true;
}

bool tenant_ask_here(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                     struct gale_answer *ret_answer)
{
	enum gale_why why = tenant_check(seat, tenant, cost);
	uint64_t word;
	mono now;

	if (why != GALE_WHY_RULE) {
		*ret_answer = DENIED(why);
		return true;
	}
	now = seat_now(seat);
	if (till_take(&tenant->till, now, cost, &word))
		*ret_answer = tenant_allowed(tenant, now, word);
	else if (till_denies(&tenant->till, now, cost))
		*ret_answer = denied_again(tenant, now);
	else
		return false;
	return true;
}

/* Neither purse nor memory could answer. */
static struct gale_answer ask_beyond(struct gale_seat *seat, struct gale_tenant *tenant,
                                     uint64_t cost)
{
	return is_shared(tenant->budget) ? shared_ask(seat, tenant, cost)
	                                 : escrowed_ask(seat, tenant, cost);
}

/* The same ways, for who has looked at the clock. */
static __attribute__((noinline)) struct gale_answer
ask_tenant_at_length(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost)
{
	struct gale_answer answer;

	if (tenant_ask_here(seat, tenant, cost, &answer))
		return answer;
	return ask_beyond(seat, tenant, cost);
}

/* A tenant or a budget that is closed has an empty purse, and remembers nothing. */
struct gale_answer gale_tenant_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                                   uint64_t cost)
{
	uint64_t word;
	mono now;

	if (!LIKELY(seat && tenant) ||
	    !LIKELY(tenant->handle.runtime == seat->handle.runtime) ||
	    !LIKELY(lifeline_passes(&seat->lifeline)) || !LIKELY(cost_is_good(cost)) ||
	    !LIKELY(seat_tells(seat, &now)))
		return ask_tenant_at_length(seat, tenant, cost);
	seat_check_thread(seat);
	if (LIKELY(till_take(&tenant->till, now, cost, &word)))
		return tenant_allowed(tenant, now, word);
	if (till_denies(&tenant->till, now, cost))
		return denied_again(tenant, now);
	return ask_beyond(seat, tenant, cost);
}

/* ---- Counts ------------------------------------------------------------------------ */

void tenant_counts(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts)
{
	if (is_shared(tenant->budget))
		shared_stats(tenant, ret_counts);
	else
		escrowed_stats(tenant, ret_counts);
}

void budget_add_counts(struct gale_budget *budget, struct budget_counts *sum)
{
	uint64_t limit = budget->locked.family.escrow.set.limit;

	if (limit > sum->limit)
		sum->limit = limit;
	sum->tenants += budget->locked.open;
	if (is_shared(budget))
		shared_add_counts(budget, sum);
	else
		escrowed_add_counts(budget, sum);
}

enum gale_err gale_tenant_stats_sized(struct gale_tenant *tenant,
                                      struct gale_tenant_counts *ret_stats,
                                      size_t stats_bytes)
{
	enum gale_err err =
	    handle_error(tenant ? &tenant->handle : NULL, GALE_ERR_TENANT);
	struct gale_tenant_counts counts;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_stats)
		return GALE_ERR_RET;
	latch_take(&tenant->budget->lock);
	tenant_counts(tenant, &counts);
	latch_drop(&tenant->budget->lock);
	return sized_write(ret_stats, stats_bytes, &counts, sizeof(counts))
	           ? GALE_ERR_OK
	           : GALE_ERR_SIZE;
}
