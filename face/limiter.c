/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* limiter.c -- a rule with a name, on a store. */
#define _GNU_SOURCE
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "face/face.h"
#include "face/sized.h"
#include "runtime/memory.h"
#include "stores/memory.h"

#define PATIENCE_DEFAULT_US GALE_MILLIS(100)
#define PATIENCE_MOST_US GALE_HOURS(1)
#define DRIFT_DEFAULT_PPM 500
#define ORDER_COST_DEFAULT 20 /* a round trip is worth so many units left unused */
#define DRIFT_MOST_PPM 100000
#define WINDOW_LEAST_US                                                                \
	1000 /* shorter ones are over before a lease is worth anything */
#define LOOK_LEAST_NS 1000000 /* how often credit is looked at: eight times a window */
#define LOOK_MOST_NS 1000000000
#define PLACES_PERIOD_US GALE_MILLIS(100) /* in which a pacer's demand is counted */

static size_t links_bytes(const struct gale_runtime *runtime)
{
	return runtime->shard_count * sizeof(struct link);
}

static void limiter_die(struct handle *self)
{
	struct gale_limiter *limiter = (struct gale_limiter *)self;

	memory_give_lines(self->runtime->allocator, limiter->lender.links,
	                  links_bytes(self->runtime));
	score_close(limiter);
	lender_free_terms(&limiter->lender, self->runtime->allocator);
	if (limiter->share_store)
		limiter->share_store->ops->close(limiter->share_store);
	handle_drop(&limiter->store->handle);
}

/* ---- Checking -------------------------------------------------------------------- */

static enum gale_err check_config(const struct gale_runtime *runtime,
                                  const struct gale_limiter_config *config)
{
	size_t name_len = config->name ? strnlen(config->name, GALE_NAME_MAX + 1) : 0;

	if (name_len < 1 || name_len > GALE_NAME_MAX)
		return GALE_ERR_NAME;
	if (config->mode > GALE_LEASED)
		return GALE_ERR_MODE;
	if (config->on_outage > GALE_ON_OUTAGE_SHARE)
		return GALE_ERR_OUTAGE;
	if (config->on_other_rule > GALE_ON_OTHER_RULE_RESTART)
		return GALE_ERR_OTHER_RULE;
	if (config->reserved != 0)
		return GALE_ERR_SIZE;
	if (config->lease.patience_us > PATIENCE_MOST_US)
		return GALE_ERR_PATIENCE;
	if (!config->store || !handle_is_open(&config->store->handle, runtime))
		return GALE_ERR_STORE;
	return GALE_ERR_OK;
}

static bool has_windows(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_FIXED_WINDOW ||
	       rule->is.kind == GALE_RULE_QUOTA;
}

/* A host that was compiled with a newer gale.h may have set what we do not know. */
static bool reserve_is_zero(const struct gale_leasing *lease)
{
	uint64_t any = 0;

	for (size_t i = 0; i < sizeof(lease->reserved) / sizeof(lease->reserved[0]);
	     i++)
		any |= lease->reserved[i];
	return any == 0;
}

static bool can_lease(const struct rule *rule)
{
	return lease_possible(rule) &&
	       !(has_windows(rule) && rule_window_us(rule) < WINDOW_LEAST_US);
}

static enum gale_err check_leasing(const struct gale_leasing *lease,
                                   const struct rule *rule, const struct sizing *sizing)
{
	if (!can_lease(rule))
		return GALE_ERR_CANNOT_LEASE;
	if (lease->sizing > GALE_SIZE_HEDGE || !sizing_valid(sizing) ||
	    (lease->sizing == GALE_SIZE_HEDGE &&
	     (!lease->predictor || !lease->predictor->demand)))
		return GALE_ERR_SIZING;
	if (!reserve_is_zero(lease))
		return GALE_ERR_SIZE;
	if (lease->drift_ppm > DRIFT_MOST_PPM)
		return GALE_ERR_DRIFT;
	if (lease->carry_over &&
	    (!has_windows(rule) || lease->sizing != GALE_SIZE_FIXED))
		return GALE_ERR_CARRY_OVER;
	return GALE_ERR_OK;
}

/* ---- Terms ----------------------------------------------------------------------- */

static struct sizing sizing_of(const struct gale_leasing *lease)
{
	static const enum sizing_kind kinds[] = {
		[GALE_SIZE_LEARNED] = SIZING_LEARNED,
		[GALE_SIZE_FIXED] = SIZING_FIXED,
		[GALE_SIZE_EOQ] = SIZING_EOQ,
		[GALE_SIZE_HEDGE] = SIZING_HEDGE,
	};

	bool untold = lease->order_cost == 0 && lease->strand_penalty == 0;

	return (struct sizing){
		.kind = lease->sizing <= GALE_SIZE_HEDGE ? kinds[lease->sizing]
		                                         : SIZING_LEARNED,
		.batch = lease->batch,
		.order_cost = untold ? ORDER_COST_DEFAULT : lease->order_cost,
		.strand_penalty = untold ? 1 : lease->strand_penalty,
		.max_size = lease->max_size,
	};
}

static enum lending lending_of(enum gale_mode mode, const struct rule *rule)
{
	if (mode == GALE_STRICT)
		return LENDING_NOT;
	if (mode == GALE_CACHED_DENY)
		return LENDING_DENIALS;
	return rule->is.kind == GALE_RULE_PACER ? LENDING_PLACES : LENDING_UNITS;
}

static uint64_t window_of(const struct rule *rule)
{
	uint64_t window = rule_window_us(rule);

	if (rule->is.kind == GALE_RULE_PACER && window < PLACES_PERIOD_US)
		return PLACES_PERIOD_US;
	return window;
}

static uint64_t look_of(uint64_t window_us)
{
	uint64_t look_us = window_us / 8;

	if (look_us > LOOK_MOST_NS / 1000)
		return LOOK_MOST_NS;
	return look_us < LOOK_LEAST_NS / 1000 ? LOOK_LEAST_NS : look_us * 1000;
}

static bool is_meter(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_GCRA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUCKET;
}

/* What never changes while it is open. */
static void set_up(struct lender *lender, const struct gale_limiter_config *config,
                   const struct rule *rule)
{
	const struct gale_leasing *lease = &config->lease;
	uint64_t patience =
	    lease->patience_us ? lease->patience_us : PATIENCE_DEFAULT_US;

	lender->lending = lending_of(config->mode, rule);
	lender->is_meter = is_meter(rule);
	lender->rest_grain = rest_grain(rule->capacity);
	lender->carry_over = lease->carry_over;
	lender->sizing = sizing_of(lease);
	lender->predictor = lease->sizing == GALE_SIZE_HEDGE ? lease->predictor : NULL;
	lender->patience_ns = patience * 1000;
	lender->drift_ppm = lease->drift_ppm ? lease->drift_ppm : DRIFT_DEFAULT_PPM;
	lender->name_len = (uint8_t)strlen(config->name);
	memcpy(lender->name, config->name, lender->name_len);
}

static struct gale_limiter *limiter_of(struct lender *lender)
{
	return (struct gale_limiter *)((char *)lender -
	                               offsetof(struct gale_limiter, lender));
}

static void lender_hold(struct lender *lender)
{
	handle_hold(&limiter_of(lender)->handle);
}

static void lender_drop(struct lender *lender)
{
	handle_drop(&limiter_of(lender)->handle);
}

/* ---- Opening and closing --------------------------------------------------------- */

/* Limiters of one name share their keys in the store, so they must meet in one shard:
 * it numbers the requests for a key.                                    (LEASE-2) */
static struct hash_secret secret_of(const struct gale_runtime *runtime,
                                    const char *name)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(name, strlen(name), runtime->seed);

	return (struct hash_secret){ hash.low64, hash.high64 };
}

static bool make_links(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime = limiter->handle.runtime;
	struct lender *lender = &limiter->lender;

	lender->link_count = runtime->shard_count;
	lender->links = memory_take_lines(runtime->allocator, links_bytes(runtime));
	return lender->links != NULL;
}

/* The rule with a share of its units. */
static enum gale_err compile_share(enum gale_on_outage on_outage, uint64_t share,
                                   struct gale_rule rule, struct rule *ret_rule)
{
	if (on_outage != GALE_ON_OUTAGE_SHARE)
		return GALE_ERR_OK;
	if (share < 1 || share > rule.limit)
		return GALE_ERR_OUTAGE;
	rule.limit = share;
	if (rule.burst > rule.limit)
		rule.burst = rule.limit;
	return rule_compile(&rule, ret_rule) == GALE_ERR_OK ? GALE_ERR_OK
	                                                    : GALE_ERR_OUTAGE;
}

/* What follows from a rule, checked. */
static enum gale_err make_terms(const struct gale_rule *rule,
                                enum gale_on_outage on_outage, uint64_t share,
                                bool restarts, struct terms *ret_terms)
{
	enum gale_err err = rule_compile(rule, &ret_terms->rule);

	if (err == GALE_ERR_OK)
		err = compile_share(on_outage, share, *rule, &ret_terms->share);
	if (err != GALE_ERR_OK)
		return err;
	ret_terms->rule.restarts = restarts;
	ret_terms->share.restarts = true; /* of another kind it is another budget */
	ret_terms->window_us = window_of(&ret_terms->rule);
	ret_terms->look_ns = look_of(ret_terms->window_us);
	return GALE_ERR_OK;
}

/* A unit that is lent may be spent by any cost that can ever pass.  A cost of more than all units
 * of a word goes the long way, where it is known which words say no to it (purse.h). */
static uint32_t quick_most_of(const struct lender *lender, const struct rule *rule)
{
	bool is_quick =
	    lender->lending == LENDING_DENIALS ||
	    (lender->lending == LENDING_UNITS && rule->capacity > CREDIT_UNITS_MAX);

	if (is_quick)
		return CREDIT_UNITS_MAX;
	return lender->lending == LENDING_UNITS ? (uint32_t)rule->capacity : 0;
}

/* False: it is closed, and the terms are the caller's. */
static bool set_terms(struct gale_runtime *runtime, struct lender *lender,
                      struct terms *terms)
{
	struct terms *former;

	lock_take(&lender->lock);
	if (load_relaxed(&lender->closed)) {
		lock_drop(&lender->lock);
		return false;
	}
	former = load_relaxed(&lender->terms);
	store_release(&lender->terms, terms); /* terms */
	store_relaxed(&lender->capacity, terms->rule.capacity);
	store_relaxed(&lender->quick_most, quick_most_of(lender, &terms->rule));
	if (former) {
		(void)add_release(&lender->changes, 1); /* changes */
		lender_retire_terms(lender, &runtime->grace, runtime->allocator,
		                    former);
	}
	lock_drop(&lender->lock);
	return true;
}

/* False: no memory. */
static bool publish(struct gale_limiter *limiter, const struct terms *terms,
                    enum gale_err *ret_err)
{
	struct gale_runtime *runtime = limiter->handle.runtime;
	struct terms *copy = memory_take(runtime->allocator, sizeof(*copy));

	*ret_err = copy ? GALE_ERR_OK : GALE_ERR_MEMORY;
	if (!copy)
		return false;
	*copy = *terms;
	if (!set_terms(runtime, &limiter->lender, copy)) {
		memory_give(runtime->allocator, copy, sizeof(*copy));
		*ret_err = GALE_ERR_LIMITER;
	}
	return *ret_err == GALE_ERR_OK;
}

static bool open_share(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime = limiter->handle.runtime;
	struct memory_config config = { .name = "",
		                        .max_keys = runtime->max_keys,
		                        .allocator = runtime->allocator,
		                        .clock = runtime->clock };

	if (limiter->on_outage != GALE_ON_OUTAGE_SHARE)
		return true;
	limiter->share_store = memory_open(&config);
	return limiter->share_store != NULL;
}

static enum gale_err open_checked(struct gale_runtime *runtime,
                                  const struct gale_limiter_config *config,
                                  const struct terms *terms,
                                  struct gale_limiter **ret_limiter)
{
	struct gale_limiter *limiter =
	    handle_new(runtime, sizeof(*limiter), limiter_die);
	enum gale_err err;

	if (!limiter)
		return GALE_ERR_MEMORY;
	lock_init(&limiter->lender.lock);
	limiter->store = config->store;
	handle_hold(&config->store->handle);
	limiter->on_outage = config->on_outage;
	limiter->outage_share = config->outage_share;
	limiter->leases = config->mode == GALE_LEASED;
	limiter->restarts = config->on_other_rule == GALE_ON_OTHER_RULE_RESTART;
	limiter->lender.store = config->store->inner;
	limiter->lender.hold = lender_hold;
	limiter->lender.drop = lender_drop;
	limiter->lender.secret = secret_of(runtime, config->name);
	set_up(&limiter->lender, config, &terms->rule);
	if (!make_links(limiter) || !open_share(limiter) || !score_open(limiter) ||
	    !publish(limiter, terms, &err)) {
		handle_close(&limiter->handle);
		return GALE_ERR_MEMORY;
	}
	*ret_limiter = limiter;
	return GALE_ERR_OK;
}

static enum gale_err open_known(struct gale_runtime *runtime,
                                const struct gale_limiter_config *config,
                                struct gale_limiter **ret_limiter)
{
	enum gale_err err = check_config(runtime, config);
	struct sizing sizing;
	struct terms terms = { 0 };

	if (err != GALE_ERR_OK)
		return err;
	err = make_terms(&config->rule, config->on_outage, config->outage_share,
	                 config->on_other_rule == GALE_ON_OTHER_RULE_RESTART, &terms);
	if (err != GALE_ERR_OK)
		return err;
	sizing = sizing_of(&config->lease);
	if (config->mode == GALE_LEASED)
		err = check_leasing(&config->lease, &terms.rule, &sizing);
	return err == GALE_ERR_OK ? open_checked(runtime, config, &terms, ret_limiter)
	                          : err;
}

enum gale_err gale_limiter_set_rule(struct gale_limiter *limiter,
                                    const struct gale_rule *rule)
{
	struct gale_runtime *runtime;
	struct terms terms = { 0 };
	enum gale_err err;

	if (!limiter || !handle_is_open(&limiter->handle, limiter->handle.runtime))
		return GALE_ERR_LIMITER;
	if (!rule)
		return GALE_ERR_CONFIG;
	runtime = limiter->handle.runtime;
	err = runtime_error(runtime);
	if (err == GALE_ERR_OK)
		err = make_terms(rule, limiter->on_outage, limiter->outage_share,
		                 limiter->restarts, &terms);
	if (err != GALE_ERR_OK)
		return err;
	if (rule->kind != lender_terms(&limiter->lender).rule.is.kind)
		return GALE_ERR_RULE_OTHER;
	if (limiter->leases && !can_lease(&terms.rule))
		return GALE_ERR_CANNOT_LEASE;
	if (publish(limiter, &terms, &err))
		runtime_wake_shards(runtime);
	return err;
}

enum gale_err gale_limiter_open_sized(struct gale_runtime *runtime,
                                      const struct gale_limiter_config *config,
                                      size_t config_bytes,
                                      struct gale_limiter **ret_limiter)
{
	enum gale_err err = runtime_error(runtime);
	struct gale_limiter_config known;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_limiter)
		return GALE_ERR_RET;
	if (!config)
		return GALE_ERR_CONFIG;
	if (!sized_read(&known, sizeof(known), config, config_bytes))
		return GALE_ERR_SIZE;
	return open_known(runtime, &known, ret_limiter);
}

void gale_limiter_close(struct gale_limiter *limiter)
{
	struct gale_runtime *runtime;

	if (!limiter || !lifeline_holds(&limiter->handle.runtime->lifeline))
		return;
	runtime = limiter->handle.runtime;
	/* One that is closed already may be gone; handle_close tells of that. */
	if (!load_relaxed(&limiter->handle.closed))
		lender_close(&limiter->lender);
	runtime_hold(runtime);
	handle_close(&limiter->handle);
	runtime_wake_shards(runtime); /* to give back what they hold for it */
	runtime_drop(runtime);
}
