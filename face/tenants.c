/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenants.c -- budgets and tenants open and close; tenants ask.
 *
 * Threads   gale_tenant_ask: the seat's own.  The rest: any.
 */
#include "face/tenants.h"

#include "engine/credit.h"
#include "face/checks.h"
#include "face/seat.h"
#include "face/sized.h"
#include "runtime/memory.h"

#define TENANTS_DEFAULT 1024
#define RELEASE_PART 8  /* of a window */
#define AHEAD_PART 8    /* of a share, in a purse at most */
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
	if (budget->locked.tenants)
		memory_give(allocator, budget->locked.tenants,
		            budget->room * sizeof(*budget->locked.tenants));
	if (budget->locked.handles)
		memory_give(allocator, budget->locked.handles,
		            budget->room * sizeof(struct gale_tenant *));
	lock_destroy(&budget->lock);
}

static uint64_t release_of(const struct gale_budget_config *config)
{
	return config->release_us ? config->release_us
	                          : config->window_us / RELEASE_PART;
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
	return config->lending > GALE_PARTED ? GALE_ERR_LENDING : GALE_ERR_OK;
}

static uint64_t utc_ns(struct gale_runtime *runtime)
{
	struct gale_clock *clock =
	    runtime->clock ? runtime->clock : &runtime->boot.clock;

	return clock->now_us(clock) * 1000;
}

static uint64_t utc_us(const struct gale_budget *budget, mono now)
{
	return (now.ns + budget->epoch_ns) / 1000;
}

static void set_up(struct gale_budget *budget, const struct gale_budget_config *config)
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
	budget->epoch_ns = utc_ns(runtime) - clock_now(runtime->node_clock).ns;
	escrow_init(&budget->locked.escrow, &set, budget->locked.tenants, budget->room);
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
	lock_init(&budget->lock);
	budget->room = config->max_tenants ? config->max_tenants : most;
	budget->locked.tenants = memory_take(
	    runtime->allocator, budget->room * sizeof(*budget->locked.tenants));
	budget->locked.handles = memory_take(
	    runtime->allocator, budget->room * sizeof(struct gale_tenant *));
	if (!budget->locked.tenants || !budget->locked.handles) {
		handle_close(&budget->handle);
		return GALE_ERR_MEMORY;
	}
	set_up(budget, config);
	if (config->store)
		err = shared_open(budget, config);
	if (err == GALE_ERR_OK)
		*ret_budget = budget;
	else
		handle_close(&budget->handle);
	return err;
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

/* ---- Purses ------------------------------------------------------------------------ */

/* What is in the purse goes back.  Units of a window that is over are nobody's. */
static void empty_purse(struct gale_budget *budget, struct gale_tenant *tenant)
    ON(budget->lock)
{
	uint64_t units = credit_units(swap_relaxed(&tenant->till.purse, 0));

	if (tenant->locked.window == budget->locked.escrow.window) {
		escrow_give(&budget->locked.escrow, tenant->locked.number, units,
		            tenant->locked.window);
		tenant->locked.allowed -= units;
	}
	tenant->locked.seen = 0;
}

static uint64_t ahead_of(struct gale_budget *budget, const struct gale_tenant *tenant,
                         uint64_t share) ON(budget->lock)
{
	uint64_t most = share / AHEAD_PART;

	if (budget->locked.escrow.set.parted)
		return 0;
	return escrow_ask_ahead(&budget->locked.escrow, tenant->locked.number,
	                        most < CREDIT_UNITS_MAX ? most : CREDIT_UNITS_MAX);
}

/* Units ahead that are more than a share is now go back.  TENANT-2 */
static void take_back(struct gale_budget *budget, struct gale_tenant *tenant)
    ON(budget->lock)
{
	struct escrow *escrow = &budget->locked.escrow;
	uint32_t number = tenant->locked.number;
	uint64_t share = escrow_share(escrow, number),
		 used = escrow_used(escrow, number);
	uint64_t word = load_relaxed(&tenant->till.purse), units;

	if (used <= share || tenant->locked.window != escrow->window)
		return;
	do {
		units = credit_units(word);
		if (units > used - share)
			units = used - share;
	} while (!swap_if_relaxed(&tenant->till.purse, &word, word - units));
	escrow_give(escrow, number, units, escrow->window);
	tenant->locked.allowed -= units;
	tenant->locked.seen -= units;
}

static void take_back_all(struct gale_budget *budget) ON(budget->lock)
{
	for (uint32_t i = 0; i < budget->room; i++)
		if (budget->locked.handles[i])
			take_back(budget, budget->locked.handles[i]);
}

/* Of a purse that is empty.  TENANT-1, TENANT-2 */
static uint64_t fill_purse(struct gale_budget *budget, struct gale_tenant *tenant,
                           const struct escrow_answer *answer, mono now)
    ON(budget->lock)
{
	uint64_t units = ahead_of(budget, tenant, answer->share);
	mono end = mono_after(now, (answer->reset_us - 1) * 1000);

	tenant->locked.window = budget->locked.escrow.window;
	tenant->locked.seen = units;
	tenant->locked.allowed += units;
	store_relaxed(&tenant->till.purse, credit_until(end, units));
	return units;
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
	lock_take(&budget->lock);
	fault = escrow_set_limit(&budget->locked.escrow, limit);
	if (!is_shared(budget))
		take_back_all(budget);
	else if (fault == FAIR_GOOD)
		shared_set_limit(budget, limit); /* in the same order as escrow's */
	lock_drop(&budget->lock);
	return error_of_fault(fault);
}

/* ---- Tenants ----------------------------------------------------------------------- */

static void tenant_die(struct handle *self)
{
	struct gale_tenant *tenant = (struct gale_tenant *)self;

	handle_drop(&tenant->budget->handle);
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

static enum gale_err add_tenant(struct gale_budget *budget,
                                const struct escrow_terms *terms,
                                struct gale_tenant *tenant)
{
	enum fair_fault fault;

	lock_take(&budget->lock);
	fault = escrow_add(&budget->locked.escrow, terms, &tenant->locked.number);
	if (fault == FAIR_GOOD)
		budget->locked.handles[tenant->locked.number] = tenant;
	lock_drop(&budget->lock);
	return error_of_fault(fault);
}

static void remove_tenant(struct gale_budget *budget, struct gale_tenant *tenant)
{
	lock_take(&budget->lock);
	if (!is_shared(budget))
		empty_purse(budget, tenant);
	store_relaxed(&tenant->till.denied, 0);
	escrow_remove(&budget->locked.escrow, tenant->locked.number);
	budget->locked.handles[tenant->locked.number] = NULL;
	lock_drop(&budget->lock);
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
	tenant = handle_new(budget->handle.runtime, sizeof(*tenant), tenant_die);
	if (!tenant)
		return GALE_ERR_MEMORY;
	tenant->budget = budget;
	handle_hold(&budget->handle);
	err = add_tenant(budget, &inner, tenant);
	if (err == GALE_ERR_OK && is_shared(budget)) {
		err = shared_open_tenant(tenant, &known, &inner);
		if (err != GALE_ERR_OK)
			remove_tenant(budget, tenant);
	}
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

	lock_take(&budget->lock);
	if (!is_shared(budget))
		empty_purse(budget, tenant);
	fault = escrow_change(&budget->locked.escrow, tenant->locked.number, terms);
	store_relaxed(&tenant->till.denied, 0);
	if (!is_shared(budget))
		take_back_all(budget);
	lock_drop(&budget->lock);
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
	handle_close(&tenant->handle);
}

static void empty_purses(struct gale_budget *budget)
{
	lock_take(&budget->lock);
	for (uint32_t i = 0; i < budget->room; i++)
		if (budget->locked.handles[i]) {
			empty_purse(budget, budget->locked.handles[i]);
			store_relaxed(&budget->locked.handles[i]->till.denied, 0);
		}
	lock_drop(&budget->lock);
}

/* Nothing is taken from a purse any more; tenants are closed one by one. */
void gale_budget_close(struct gale_budget *budget)
{
	if (!budget || !lifeline_holds(&budget->handle.runtime->lifeline))
		return;
	if (is_open(&budget->handle) && is_shared(budget))
		shared_close(budget);
	else if (is_open(&budget->handle))
		empty_purses(budget);
	handle_close(&budget->handle);
}

/* ---- Asking ------------------------------------------------------------------------ */

#define DENIED(reason) ((struct gale_answer){ .verdict = GALE_DENY, .why = (reason) })

/* TENANT-3 */
static void let_go(struct gale_budget *budget, struct gale_tenant *tenant)
    ON(budget->lock)
{
	uint64_t units = credit_units(load_relaxed(&tenant->till.purse));

	if (units < tenant->locked.seen) {
		tenant->locked.seen = units;
		escrow_saw(&budget->locked.escrow, tenant->locked.number);
		return;
	}
	empty_purse(budget, tenant);
	escrow_leave(&budget->locked.escrow, tenant->locked.number);
}

static void go_on(struct gale_budget *budget, uint64_t now_us) ON(budget->lock)
{
	struct escrow *escrow = &budget->locked.escrow;
	uint32_t number;

	while ((number = escrow_due(escrow, now_us)) != ESCROW_NOBODY)
		let_go(budget, budget->locked.handles[number]);
}

static enum gale_why why_of(const struct gale_budget *budget,
                            const struct escrow_answer *answer, uint64_t cost)
    ON(budget->lock)
{
	const struct escrow *escrow = &budget->locked.escrow;

	if (answer->admitted)
		return answer->lent ? GALE_WHY_LENT : GALE_WHY_OWN;
	if (answer->retry_us == GALE_NEVER)
		return GALE_WHY_TOO_MUCH;
	return escrow->used + cost > escrow->set.limit ? GALE_WHY_SPENT
	                                               : GALE_WHY_OTHERS;
}

/* TENANT-4 */
static void remember(struct gale_budget *budget, struct gale_tenant *tenant,
                     enum gale_why why, uint64_t retry_us, uint64_t cost, mono now)
    ON(budget->lock)
{
	uint64_t ns = budget->remember_ns;

	if (retry_us < ns / 1000)
		ns = retry_us * 1000;
	till_remember(&tenant->till, why, cost,
	              escrow_most(&budget->locked.escrow, tenant->locked.number),
	              mono_after(now, ns));
}

static void note(struct gale_tenant *tenant, const struct escrow_answer *answer,
                 uint64_t cost)
{
	if (answer->admitted)
		tenant->locked.allowed += cost;
	else
		tenant->locked.denied++;
	tenant->locked.lent += answer->lent;
	store_relaxed(&tenant->till.share, answer->share);
}

/* Who comes may lower the shares of others below what they have ahead; not if the level was
 * not looked for. */
static struct escrow_answer ask_escrow(struct gale_budget *budget,
                                       const struct gale_tenant *tenant, uint64_t cost,
                                       uint64_t now_us) ON(budget->lock)
{
	struct escrow *escrow = &budget->locked.escrow;
	uint32_t number = tenant->locked.number;
	bool comes = escrow->tenants[number].list != ESCROW_PRESENT;
	uint64_t walked = escrow->walked;
	struct escrow_answer answer = escrow_ask(escrow, number, cost, now_us);

	if (!comes || escrow->walked == walked)
		return answer;
	take_back_all(budget);
	return answer.admitted ? answer : escrow_ask(escrow, number, cost, now_us);
}

static struct gale_answer ask_locked(struct gale_budget *budget,
                                     struct gale_tenant *tenant, uint64_t cost,
                                     mono now) ON(budget->lock)
{
	uint64_t now_us = utc_us(budget, now), ahead = 0;
	struct escrow_answer answer;
	enum gale_why why;

	go_on(budget, now_us);
	empty_purse(budget, tenant);
	answer = ask_escrow(budget, tenant, cost, now_us);
	why = why_of(budget, &answer, cost);
	note(tenant, &answer, cost);
	if (answer.admitted)
		store_relaxed(&tenant->till.denied, 0);
	else if (why != GALE_WHY_TOO_MUCH)
		remember(budget, tenant, why, answer.retry_us, cost, now);
	if (why != GALE_WHY_TOO_MUCH)
		ahead = fill_purse(budget, tenant, &answer, now);
	store_relaxed(&tenant->till.left, answer.remaining - ahead);
	return (struct gale_answer){
		.verdict = answer.admitted ? GALE_ALLOW : GALE_DENY,
		.why = why,
		.limit = answer.share,
		.remaining = answer.remaining,
		.reset_after_us = answer.reset_us,
		.retry_after_us = answer.retry_us,
	};
}

static enum gale_why check_tenant_ask(const struct gale_seat *seat,
                                      const struct gale_tenant *tenant, uint64_t cost)
{
	enum gale_why why;

	if (!seat || !tenant || tenant->handle.runtime != seat->handle.runtime ||
	    !cost_is_good(cost))
		return GALE_WHY_BAD_ASK;
	if (!handle_is_open(&seat->handle, seat->handle.runtime))
		return GALE_WHY_CLOSED;
	why = runtime_refuses(seat->handle.runtime);
	if (why == GALE_WHY_RULE &&
	    (!is_open(&tenant->handle) || !is_open(&tenant->budget->handle)))
		return GALE_WHY_CLOSED;
	return why;
}

static uint64_t until_us(mono now, uint64_t word)
{
	return us_of_ns(credit_dies(word).ns - now.ns);
}

static __attribute__((noinline)) struct gale_answer
denied_again(struct gale_tenant *tenant, mono now)
{
	uint64_t word = load_relaxed(&tenant->till.denied);

	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = (enum gale_why)load_relaxed(&tenant->till.denied_why),
		.limit = load_relaxed(&tenant->till.share),
		.remaining = load_relaxed(&tenant->till.left),
		.retry_after_us = credit_lives(word, now) ? until_us(now, word) : 0,
	};
}

static struct gale_answer allowed_of(struct gale_tenant *tenant, mono now,
                                     uint64_t word)
{
	return (struct gale_answer){
		.verdict = GALE_ALLOW,
		.why = GALE_WHY_OWN,
		.limit = load_relaxed(&tenant->till.share),
		.remaining = load_relaxed(&tenant->till.left) + credit_units(word),
		.reset_after_us = until_us(now, word),
	};
}

bool tenant_ask_here(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost,
                     struct gale_answer *ret_answer)
{
	enum gale_why why = check_tenant_ask(seat, tenant, cost);
	uint64_t word;
	mono now;

	if (why != GALE_WHY_RULE) {
		*ret_answer = DENIED(why);
		return true;
	}
	now = seat_now(seat);
	if (till_take(&tenant->till, now, cost, &word))
		*ret_answer = allowed_of(tenant, now, word);
	else if (till_denies(&tenant->till, now, cost))
		*ret_answer = denied_again(tenant, now);
	else
		return false;
	return true;
}

/* The same ways, for who has looked at the clock, and then the escrow or the fund. */
static __attribute__((noinline)) struct gale_answer
ask_tenant_at_length(struct gale_seat *seat, struct gale_tenant *tenant, uint64_t cost)
{
	struct gale_answer answer;

	if (tenant_ask_here(seat, tenant, cost, &answer))
		return answer;
	if (is_shared(tenant->budget))
		return shared_ask(seat, tenant, cost);
	lock_take(&tenant->budget->lock);
	answer = ask_locked(tenant->budget, tenant, cost, seat_now(seat));
	lock_drop(&tenant->budget->lock);
	return answer;
}

/* A tenant or a budget that is closed has an empty purse, and remembers nothing. */
struct gale_answer gale_tenant_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                                   uint64_t cost)
{
	uint64_t word;
	mono now;

	if (!LIKELY(seat && tenant) ||
	    !LIKELY(tenant->handle.runtime == seat->handle.runtime) ||
	    !LIKELY(lifeline_passes(&seat->lifeline)) ||
	    !LIKELY(cost - 1 < CREDIT_UNITS_MAX) || !LIKELY(seat_tells(seat, &now)))
		return ask_tenant_at_length(seat, tenant, cost);
	seat_check_thread(seat);
	if (LIKELY(till_take(&tenant->till, now, cost, &word)))
		return allowed_of(tenant, now, word);
	if (till_denies(&tenant->till, now, cost))
		return denied_again(tenant, now);
	return ask_tenant_at_length(seat, tenant, cost);
}

static void count(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts)
{
	struct gale_budget *budget = tenant->budget;
	struct escrow *escrow = &budget->locked.escrow;
	uint64_t ahead;

	lock_take(&budget->lock);
	go_on(budget, utc_us(budget, clock_now(tenant->handle.runtime->node_clock)));
	ahead = tenant->locked.window == escrow->window
	            ? credit_units(load_relaxed(&tenant->till.purse))
	            : 0;
	*ret_counts = (struct gale_tenant_counts){
		.share = escrow_share(escrow, tenant->locked.number),
		.used = escrow_used(escrow, tenant->locked.number) - ahead,
		.ahead = ahead,
		.owed = escrow->tenants[tenant->locked.number].owed,
		.allowed = tenant->locked.allowed - ahead,
		.lent = tenant->locked.lent,
		.denied = tenant->locked.denied,
	};
	lock_drop(&budget->lock);
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
	if (is_shared(tenant->budget))
		shared_stats(tenant, &counts);
	else
		count(tenant, &counts);
	return sized_write(ret_stats, stats_bytes, &counts, sizeof(counts))
	           ? GALE_ERR_OK
	           : GALE_ERR_SIZE;
}
