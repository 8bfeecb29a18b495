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

static enum gale_err check_leasing(const struct gale_leasing *lease,
                                   const struct rule *rule, const struct sizing *sizing)
{
	if (!lease_possible(rule) ||
	    (has_windows(rule) && rule_window_us(rule) < WINDOW_LEAST_US))
		return GALE_ERR_CANNOT_LEASE;
	if (lease->sizing > GALE_SIZE_HEDGE || !sizing_valid(sizing) ||
	    (lease->sizing == GALE_SIZE_HEDGE &&
	     (!lease->predictor || !lease->predictor->demand)))
		return GALE_ERR_SIZING;
	if (!reserve_is_zero(lease))
		return GALE_ERR_SIZE;
	if (lease->patience_us > PATIENCE_MOST_US)
		return GALE_ERR_PATIENCE;
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

/* A unit that is lent may be spent by any cost that can ever pass. */
static uint64_t quick_most_of(const struct lender *lender)
{
	if (lender->lending == LENDING_UNITS)
		return lender->rule.capacity;
	return lender->lending == LENDING_DENIALS ? GALE_UNITS_MAX : 0;
}

static void set_terms(struct lender *lender, const struct gale_limiter_config *config)
{
	const struct gale_leasing *lease = &config->lease;
	uint64_t patience =
	    lease->patience_us ? lease->patience_us : PATIENCE_DEFAULT_US;

	lender->lending = lending_of(config->mode, &lender->rule);
	store_relaxed(&lender->quick_most, quick_most_of(lender));
	lender->carry_over = lease->carry_over;
	lender->sizing = sizing_of(lease);
	lender->predictor = lease->sizing == GALE_SIZE_HEDGE ? lease->predictor : NULL;
	lender->window_us = window_of(&lender->rule);
	lender->patience_ns = patience * 1000;
	lender->look_ns = look_of(lender->window_us);
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
static enum gale_err compile_share(const struct gale_limiter_config *config,
                                   struct rule *ret_rule)
{
	struct gale_rule rule = config->rule;

	if (config->on_outage != GALE_ON_OUTAGE_SHARE)
		return GALE_ERR_OK;
	if (config->outage_share < 1 || config->outage_share > rule.limit)
		return GALE_ERR_OUTAGE;
	rule.limit = config->outage_share;
	if (rule.burst > rule.limit)
		rule.burst = rule.limit;
	return rule_compile(&rule, ret_rule) == GALE_ERR_OK ? GALE_ERR_OK
	                                                    : GALE_ERR_OUTAGE;
}

static bool open_share(struct gale_limiter *limiter, const struct rule *share_rule)
{
	struct gale_runtime *runtime = limiter->handle.runtime;
	struct memory_config config = { .name = "",
		                        .max_keys = runtime->max_keys,
		                        .allocator = runtime->allocator,
		                        .clock = runtime->clock };

	if (limiter->on_outage != GALE_ON_OUTAGE_SHARE)
		return true;
	limiter->share_rule = *share_rule;
	limiter->share_store = memory_open(&config);
	return limiter->share_store != NULL;
}

static enum gale_err open_checked(struct gale_runtime *runtime,
                                  const struct gale_limiter_config *config,
                                  const struct rule *rule,
                                  const struct rule *share_rule,
                                  struct gale_limiter **ret_limiter)
{
	struct gale_limiter *limiter =
	    handle_new(runtime, sizeof(*limiter), limiter_die);

	if (!limiter)
		return GALE_ERR_MEMORY;
	limiter->store = config->store;
	handle_hold(&config->store->handle);
	limiter->on_outage = config->on_outage;
	limiter->lender.rule = *rule;
	limiter->lender.store = config->store->inner;
	limiter->lender.hold = lender_hold;
	limiter->lender.drop = lender_drop;
	limiter->lender.secret = secret_of(runtime, config->name);
	set_terms(&limiter->lender, config);
	if (!make_links(limiter) || !open_share(limiter, share_rule)) {
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
	struct rule rule, share_rule;

	if (err != GALE_ERR_OK)
		return err;
	err = rule_compile(&config->rule, &rule);
	if (err != GALE_ERR_OK)
		return err;
	sizing = sizing_of(&config->lease);
	if (config->mode == GALE_LEASED)
		err = check_leasing(&config->lease, &rule, &sizing);
	if (err == GALE_ERR_OK)
		err = compile_share(config, &share_rule);
	if (err != GALE_ERR_OK)
		return err;
	return open_checked(runtime, config, &rule, &share_rule, ret_limiter);
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
	store_relaxed(&limiter->lender.closed, true);
	store_relaxed(&limiter->lender.quick_most, 0);
	runtime_hold(runtime);
	handle_close(&limiter->handle);
	runtime_wake_shards(runtime); /* to give back what they hold for it */
	runtime_drop(runtime);
}
