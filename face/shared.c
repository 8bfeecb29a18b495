/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shared.c -- budgets that several processes share over a store.
 *
 * The coordinator of the runtime claims units for them (coordinator/fund.h).  A budget is held by
 * the coordinator until it is closed and its tenants have left, and a tenant until what it had is
 * given back.
 *
 * Threads   Asks: the seat's own.  The rest: any; what the coordinator drops, on its thread.
 */
#include <string.h>

#include "face/answer.h"
#include "face/guard.h"
#include "face/seat.h"
#include "face/tenants.h"
#include "face/whole.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "runtime/random.h"

#define DRIFT_PPM 500
#define PATIENCE_US 100000
#define PATIENCE_MOST_US GALE_HOURS(1)
#define REMIND_LEAST_NS UINT64_C(1000000000)
#define REMIND_MOST_NS UINT64_C(20000000000)

/* ---- Opening and closing ------------------------------------------------------------ */

static struct gale_budget *budget_of(struct fund *fund)
{
	return (struct gale_budget *)((char *)fund -
	                              offsetof(struct gale_budget, fund));
}

static void drop(struct fund *self)
{
	handle_drop(&budget_of(self)->handle);
}

static void drop_stake(struct stake *self)
{
	struct gale_tenant *tenant =
	    (struct gale_tenant *)((char *)self - offsetof(struct gale_tenant, stake));

	handle_drop(&tenant->handle);
}

static void say(struct fund *self, enum gale_level level, const char *line)
{
	struct gale_budget *budget = budget_of(self);

	runtime_say(budget->handle.runtime, level, "budget ", budget->name, line);
}

static const struct fund_ops fund_ops = { drop, drop_stake, say };

enum gale_err shared_check(const struct gale_runtime *runtime,
                           const struct gale_budget_config *config)
{
	if (!handle_is_open(&config->store->handle, runtime))
		return GALE_ERR_STORE;
	if (!config->name)
		return GALE_ERR_NAME;
	if (config->max_tenants > POOL_TENANTS_MAX)
		return GALE_ERR_TENANTS;
	if (config->patience_us > PATIENCE_MOST_US)
		return GALE_ERR_PATIENCE;
	return config->lending == GALE_LENT ? GALE_ERR_OK : GALE_ERR_LENDING;
}

/* What a word of the pool has room for. */
static uint64_t below_never(uint64_t us)
{
	return us < GALE_UNITS_MAX ? us : GALE_UNITS_MAX;
}

/* An ask that is answered here need not be told at once, nor one that is denied.  So the pool
 * waits twice as long before a tenant is absent. */
static uint64_t pool_release(uint64_t us)
{
	return below_never(us < GALE_UNITS_MAX / 2 ? 2 * us : us);
}

/* Often enough that a store that has forgotten hears of it while it grants nothing. */
static uint64_t remind_ns(const struct gale_store *store)
{
	uint64_t quarantine_us = store->inner->quarantine_us;
	uint64_t half_ns = quarantine_us * 1000 / 2;

	if (half_ns > REMIND_MOST_NS || quarantine_us == 0)
		return REMIND_MOST_NS;
	return half_ns < REMIND_LEAST_NS ? REMIND_LEAST_NS : half_ns;
}

enum gale_err shared_open(struct gale_budget *budget,
                          const struct gale_budget_config *config)
{
	struct gale_runtime *runtime = budget->handle.runtime;
	const struct escrow_settings *set = &budget->locked.family.escrow.set;
	struct coordinator *coordinator;
	struct fund_config fund = {
		.ops = &fund_ops,
		.post = &config->store->post,
		.name = budget->name,
		.terms = { .limit = config->limit,
		           .period_us = config->window_us,
		           .release_us = pool_release(set->release_us),
		           .protect_us = config->protect_us },
		.drift_ppm = clock_apart_ppm(DRIFT_PPM),
		.patience_ns =
		    1000 * (config->patience_us ? config->patience_us : PATIENCE_US),
		.remind_ns = remind_ns(config->store),
		.alone_count = budget->room,
	};
	enum gale_err err = guardhouse_found(runtime, &coordinator);

	if (err != GALE_ERR_OK)
		return err;
	budget->alones =
	    memory_take(runtime->allocator, budget->room * sizeof(*budget->alones));
	if (!budget->alones)
		return GALE_ERR_MEMORY;
	fund.alones = budget->alones;
	fund.coordinator = coordinator;
	fund_init(&budget->fund, &fund);
	budget->store = config->store; /* from here on it is freed with the budget */
	handle_hold(&budget->store->handle);
	handle_hold(&budget->handle);
	if (coordinator_add_fund(coordinator, &budget->fund))
		return GALE_ERR_OK;
	handle_drop(&budget->handle);
	return GALE_ERR_RUNTIME;
}

void shared_close(struct gale_budget *budget)
{
	fund_close(&budget->fund);
}

void shared_set_limit(struct gale_budget *budget, uint64_t limit)
{
	fund_set_limit(&budget->fund, limit);
}

static struct pool_ask pool_terms(const struct escrow_terms *terms)
{
	return (struct pool_ask){ .guarantee = terms->guarantee,
		                  .cap = terms->cap,
		                  .weight = terms->weight };
}

enum gale_err shared_open_tenant(struct gale_tenant *tenant,
                                 const struct escrow_terms *terms, uint64_t alone)
{
	struct stake_config config = { .fund = &tenant->budget->fund,
		                       .till = &tenant->till,
		                       .name = tenant->name,
		                       .terms = pool_terms(terms),
		                       .alone = alone };
	uint64_t lot;

	if (tenant->name[0] == '\0')
		return GALE_ERR_NAME;
	if (!random_fill(&lot, sizeof(lot)))
		return GALE_ERR_SYSTEM;
	config.node = lot % GALE_UNITS_MAX + 1;
	handle_hold(&tenant->handle);
	if (stake_open(&tenant->stake, &config,
	               clock_now(tenant->handle.runtime->node_clock)))
		return GALE_ERR_OK;
	handle_drop(&tenant->handle);
	return GALE_ERR_BUDGET;
}

void shared_close_tenant(struct gale_tenant *tenant)
{
	stake_close(&tenant->stake);
}

void shared_set_terms(struct gale_tenant *tenant, const struct escrow_terms *terms,
                      uint64_t alone)
{
	struct pool_ask known = pool_terms(terms);

	stake_set_terms(&tenant->stake, &known, alone);
}

void shared_stats(struct gale_tenant *tenant, struct gale_tenant_counts *ret_counts)
{
	struct stake_counts counts;

	stake_counts(&tenant->stake, clock_now(tenant->handle.runtime->node_clock),
	             &counts);
	*ret_counts = (struct gale_tenant_counts){
		.share = counts.share,
		.used = counts.used,
		.ahead = counts.in_hand,
		.allowed = counts.spent,
		.denied = counts.denied,
		.quanta = counts.quanta,
		.trips = counts.trips,
		.alone = counts.alone,
	};
}

void shared_add_counts(struct gale_budget *budget, struct budget_counts *sum)
{
	struct fund_counts counts;

	fund_counts(&budget->fund, clock_now(budget->handle.runtime->node_clock),
	            &counts);
	if (counts.guarantees > sum->guarantees)
		sum->guarantees = counts.guarantees;
	sum->used += counts.used;
	sum->present += counts.present;
	sum->units += counts.spent;
	sum->alone += counts.alone;
	sum->claims += counts.trips;
	sum->grants += counts.quanta;
	sum->failures += counts.failures;
	for (unsigned why = 0; why < GALE_WHY_ROOM; why++)
		sum->denied_by[why] += counts.denied_by[why];
}

/* ---- Asking -------------------------------------------------------------------------- */

/* ret_held: of a hold; or NULL */
static struct gale_answer ask_now(struct gale_seat *seat, struct gale_tenant *tenant,
                                  uint64_t cost, struct fund_held *ret_held)
{
	struct gale_answer answer;

	if (fund_ask(&tenant->stake, cost, seat_now(seat), NULL, ret_held, &answer) ==
	    FUND_WAITS)
		answer =
		    (struct gale_answer){ .verdict = GALE_DENY, .why = GALE_WHY_LATE };
	return answer;
}

struct gale_answer shared_ask(struct gale_seat *seat, struct gale_tenant *tenant,
                              uint64_t cost)
{
	return ask_now(seat, tenant, cost, NULL);
}

struct gale_answer shared_answer(const struct store_op *op, enum store_result result)
{
	if (result == STORE_DONE)
		return op->answer;
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = store_why(result),
		.retry_after_us = result == STORE_LATE ? 0 : op->answer.retry_after_us
	};
}

/* NULL: *ret_answer is the answer. */
static struct pending *send(struct gale_seat *seat, struct gale_tenant *tenant,
                            uint64_t cost, void *tag, bool awaited,
                            struct fund_held *ret_held, struct gale_answer *ret_answer)
{
	struct pending *pending = seat_wait_for(seat, tenant, cost, tag, awaited);

	if (!pending) {
		*ret_answer =
		    (struct gale_answer){ .verdict = GALE_DENY, .why = GALE_WHY_BUSY };
		return NULL;
	}
	if (fund_ask(&tenant->stake, cost, seat_now(seat), &pending->wait, ret_held,
	             ret_answer) == FUND_WAITS)
		return pending;
	seat_wait_no_more(seat, pending);
	return NULL;
}

struct gale_answer gale_tenant_send(struct gale_seat *seat, struct gale_tenant *tenant,
                                    uint64_t cost, void *tag)
{
	struct gale_answer answer;

	if (!seat || !tenant || !is_shared(tenant->budget))
		return gale_tenant_ask(seat, tenant, cost);
	if (tenant_ask_here(seat, tenant, cost, &answer) ||
	    !send(seat, tenant, cost, tag, /* awaited= */ false, NULL, &answer))
		return answer;
	return (struct gale_answer){ .verdict = GALE_PENDING, .why = GALE_WHY_ASKED };
}

/* *ret_held is written before the answer is, or never.  FUND-10 */
static struct gale_answer wait_for(struct gale_seat *seat, struct gale_tenant *tenant,
                                   uint64_t cost, uint64_t within_us,
                                   struct fund_held *ret_held)
{
	struct gale_answer answer;
	struct store_op op = { .cost = cost };
	enum store_result result;
	struct pending *pending =
	    send(seat, tenant, cost, NULL, /* awaited= */ true, ret_held, &answer);

	if (!pending)
		return answer;
	result = seat_await(seat, pending, &op, NULL, ask_deadline(within_us));
	return shared_answer(&op, result);
}

struct gale_answer gale_tenant_wait(struct gale_seat *seat, struct gale_tenant *tenant,
                                    uint64_t cost, uint64_t within_us)
{
	struct gale_answer answer;

	if (!seat || !tenant || !is_shared(tenant->budget) || within_us == 0)
		return gale_tenant_ask(seat, tenant, cost);
	if (tenant_ask_here(seat, tenant, cost, &answer))
		return answer;
	return wait_for(seat, tenant, cost, within_us, NULL);
}

/* ---- Holds --------------------------------------------------------------------------- */

uint64_t shared_most(struct gale_tenant *tenant)
{
	return fund_most(&tenant->stake);
}

struct gale_answer shared_hold(struct gale_seat *seat, struct gale_tenant *tenant,
                               uint64_t cost, uint64_t within_us,
                               struct tenant_units *ret_units)
{
	struct fund_held held;
	struct gale_answer answer = within_us > 0
	                                ? wait_for(seat, tenant, cost, within_us, &held)
	                                : ask_now(seat, tenant, cost, &held);

	if (answer.verdict == GALE_ALLOW)
		*ret_units = (struct tenant_units){ .units = held.units,
			                            .window = held.window,
			                            .alone = held.alone };
	return answer;
}

void shared_settle(struct gale_seat *seat, struct gale_tenant *tenant,
                   const struct tenant_units *units, uint64_t back, uint64_t over)
{
	struct fund_held held = { .units = units->units,
		                  .window = units->window,
		                  .alone = units->alone };

	fund_settle(&tenant->stake, &held, back, over, seat_look(seat));
}
