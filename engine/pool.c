/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool.c -- the shares of tenants that are present, and what one of them is granted.
 *
 * At a level a tenant is filled up to max(used, min(top, base + weight * level)), rounded down.
 * The level is whole units for a weight of one, and parts of a unit; the largest is looked for at
 * which all together are not above the rest of the limit.  One part more fills a tenant by one unit
 * at most, so what then is left is less than a unit for each.
 *
 * There is one such level, so a server may look for it in another way.  All numbers are below
 * 2^53: doubles are exact, and so is a comparison with a product that is above.
 */
#include "engine/pool.h"

#include <assert.h>

#include <gale/rule.h>

#include "engine/check.h"
#include "engine/slot.h"

#define WORD_MAX GALE_UNITS_MAX

static_assert(sizeof(struct pool) == POOL_WORDS * sizeof(uint64_t) &&
                  sizeof(struct pool_tenant) == POOL_TENANT_WORDS * sizeof(uint64_t) &&
                  sizeof(struct pool_claim) == POOL_CLAIM_WORDS * sizeof(uint64_t) &&
                  sizeof(struct pool_ask) == POOL_ASK_WORDS * sizeof(uint64_t) &&
                  sizeof(struct pool_answer) == POOL_ANSWER_WORDS * sizeof(uint64_t),
              "words alone");

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

bool pool_ask_valid(const struct pool_ask *a)
{
	return a->limit >= 1 && a->limit <= WORD_MAX && a->period_us >= 1 &&
	       a->period_us <= POOL_TIME_MAX_US && a->release_us <= WORD_MAX &&
	       a->protect_us <= a->period_us && a->guarantee <= a->cap && a->cap >= 1 &&
	       a->cap <= WORD_MAX && a->weight >= 1 && a->weight <= POOL_WEIGHT_MAX &&
	       a->present <= 1 && a->window <= WORD_MAX && a->had <= WORD_MAX &&
	       a->more <= WORD_MAX - a->had && a->least <= a->more && a->back <= a->had;
}

/* ---- Windows ---------------------------------------------------------------------- */

/* A tenant must not be absent for one node while it is present for another: its guarantee would be
 * lent meanwhile. */
static bool agrees(const struct pool *pool, const struct pool_ask *ask)
{
	return pool->period_us == ask->period_us &&
	       pool->release_us == ask->release_us &&
	       pool->protect_us == ask->protect_us;
}

/* Units that are granted in a window of one length must not count in one of another length: so
 * these may not overlap. */
static bool overlaps(const struct pool *pool, uint64_t start)
{
	return start < pool->window + pool->period_us;
}

/* Until a whole window has passed without an ask with the pool's settings: each of those opens the
 * window that it comes in. */
static uint64_t left_to(const struct pool *pool)
{
	return minus(pool->window + 2 * pool->period_us, pool->now_us);
}

static uint64_t start_of(const struct pool *pool, const struct pool_ask *ask)
{
	return pool->now_us - pool->now_us % ask->period_us;
}

enum pool_result pool_begin(struct pool *pool, const struct pool_ask *ask,
                            uint64_t now_us, bool *ret_turned)
{
	uint64_t start;

	*ret_turned = false;
	pool->now_us = greater(pool->now_us, now_us);
	start = start_of(pool, ask);
	if (!agrees(pool, ask) && (overlaps(pool, start) || left_to(pool) > 0))
		return POOL_DISAGREES; /* POOL-6 */
	if (agrees(pool, ask) && start == pool->window)
		return POOL_ANSWERED;
	*ret_turned = true;
	pool->period_us = ask->period_us;
	pool->release_us = ask->release_us;
	pool->protect_us = ask->protect_us;
	pool->window = start;
	pool->used = pool->claims = 0;
	return POOL_ANSWERED;
}

static uint64_t left_of(const struct pool *pool)
{
	return minus(pool->window + pool->period_us, pool->now_us);
}

/* At most a window of its own: the pool may be deleted meanwhile. */
static uint64_t disagrees_for(const struct pool *pool, const struct pool_ask *ask)
{
	uint64_t start = start_of(pool, ask);

	if (overlaps(pool, start))
		return start + ask->period_us - pool->now_us;
	return lesser(left_to(pool), ask->period_us);
}

struct pool_answer pool_refusal(const struct pool *pool, const struct pool_ask *ask,
                                enum pool_result result)
{
	bool disagrees = result == POOL_DISAGREES;

	return (struct pool_answer){ .result = result,
		                     .window = pool->window,
		                     .left_us = left_of(pool),
		                     .retry_us = disagrees ? disagrees_for(pool, ask)
		                                           : left_of(pool),
		                     .limit = pool->limit,
		                     .period_us = pool->period_us,
		                     .release_us = pool->release_us,
		                     .protect_us = pool->protect_us };
}

/* Until when it is present, if it does not ask again. */
static uint64_t leaves_us(const struct pool *pool, const struct pool_ask *ask,
                          const struct pool_tenant *tenant)
{
	uint64_t asked = lesser(tenant->asked_us + ask->release_us, WORD_MAX);

	return greater(asked, pool->window + ask->protect_us);
}

static bool is_present(const struct pool *pool, const struct pool_ask *ask,
                       const struct pool_tenant *tenant)
{
	return leaves_us(pool, ask, tenant) > pool->now_us; /* POOL-3 */
}

bool pool_keeps(const struct pool *pool, const struct pool_ask *ask,
                const struct pool_tenant *tenant)
{
	return pool->now_us - tenant->asked_us <
	       greater(ask->release_us, 2 * ask->period_us);
}

void pool_forget(const struct pool *pool, struct pool_tenant *tenant)
{
	if (tenant->refused)
		tenant->asked_us = pool->window;
	tenant->used = tenant->refused = 0;
}

/* ---- Shares ----------------------------------------------------------------------- */

/* A tenant that is present, beside the others. */
struct vessel {
	uint64_t used;
	uint64_t base;
	uint64_t top;
	uint64_t weight;
};

struct shares {
	struct vessel vessels[POOL_TENANTS_MAX];
	size_t count;
	size_t self;
	uint64_t rest; /* of the limit: what the absent have not used */
	uint64_t guarantees;
};

/* Whole units for a weight of one, and parts of a unit. */
struct level {
	uint64_t whole;
	uint64_t parts;
};

#define PARTS UINT64_C(1048576)
static_assert(POOL_WEIGHT_MAX <= PARTS, "a part more is a unit more at most");

static uint64_t filled(const struct vessel *vessel, struct level level)
{
	uint128 above = (uint128)vessel->weight * level.whole +
	                vessel->weight * level.parts / PARTS;
	uint64_t room = vessel->top - vessel->base;

	return greater(vessel->used,
	               vessel->base + (above < room ? (uint64_t)above : room));
}

static uint64_t all_filled(const struct shares *shares, struct level level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < shares->count; i++)
		sum += filled(&shares->vessels[i], level);
	return sum;
}

/* The tenants that are present.  One that has used what others' guarantees would need has taken it:
 * then the guarantees are filled by weight as far as it goes. */
static void look(struct shares *shares, const struct pool *pool,
                 const struct pool_tenant *tenants, size_t count, size_t self,
                 const struct pool_ask *ask)
{
	uint64_t present = 0;

	shares->count = shares->self = 0;
	shares->guarantees = 0;
	for (size_t i = 0; i < count; i++) {
		const struct pool_tenant *tenant = &tenants[i];

		if (!is_present(pool, ask, tenant) && i != self)
			continue;
		if (i == self)
			shares->self = shares->count;
		present += tenant->used;
		shares->guarantees =
		    lesser(shares->guarantees + tenant->guarantee, WORD_MAX);
		shares->vessels[shares->count++] =
		    (struct vessel){ .used = tenant->used,
			             .base = lesser(tenant->guarantee, ask->limit),
			             .top = lesser(tenant->cap, ask->limit),
			             .weight = tenant->weight };
	}
	shares->rest = minus(ask->limit, minus(pool->used, present));
	if (all_filled(shares, (struct level){ 0 }) <= shares->rest)
		return;
	for (size_t i = 0; i < shares->count; i++) {
		shares->vessels[i].top = shares->vessels[i].base;
		shares->vessels[i].base = 0;
	}
}

/* The largest below high of one of its two numbers, the other as it is. */
static void raise(const struct shares *shares, struct level *level, uint64_t *number,
                  uint64_t high)
{
	uint64_t low = 0;

	while (high - low > 1) {
		*number = low + (high - low) / 2;
		if (all_filled(shares, *level) <= shares->rest)
			low = *number;
		else
			high = *number;
	}
	*number = low;
}

static struct level find_level(const struct shares *shares)
{
	struct level level = { 0 };

	raise(shares, &level, &level.whole, shares->rest + 1);
	raise(shares, &level, &level.parts, PARTS);
	return level;
}

struct part {
	uint64_t share;
	uint64_t rounded; /* 1: a part of a unit is beyond it */
	uint64_t others;  /* max(share, used) of all others together */
};

static struct part part_of(const struct shares *shares)
{
	struct level level = find_level(shares),
		     next = { level.whole, level.parts + 1 };
	const struct vessel *self = &shares->vessels[shares->self];
	struct part part = { .share = filled(self, level) };

	part.others = all_filled(shares, level) - part.share;
	part.rounded = filled(self, next) > part.share;
	return part;
}

/* ---- One ask ---------------------------------------------------------------------- */

/* The units that the node has heard of and given back, of this window.  POOL-4, POOL-5 */
static void hear(struct pool *pool, struct pool_tenant *tenant,
                 struct pool_claim *claim, const struct pool_ask *ask)
{
	uint64_t units = lesser(minus(ask->had, claim->granted), WORD_MAX - pool->used);

	if (ask->window != pool->window)
		return;
	pool->claims += claim->granted == 0 && units > 0;
	claim->granted += units;
	tenant->used += units;
	pool->used += units;
	units = minus(lesser(ask->back, claim->granted), claim->back);
	units = lesser(units, tenant->used);
	claim->back += units;
	tenant->used -= units;
	pool->used -= units;
}

static uint64_t beyond(const struct pool *pool, const struct pool_claim *claim,
                       const struct pool_ask *ask, uint64_t wanted)
{
	uint64_t had = ask->window == pool->window ? ask->had : 0;

	return minus(had + wanted, claim->granted);
}

/* POOL-2 */
static uint64_t ceiling_of(const struct pool_ask *ask, const struct shares *shares,
                           const struct part *part)
{
	uint64_t most = lesser(part->share + part->rounded, ask->cap);

	return lesser(most, minus(shares->rest, part->others));
}

/* A part of what is left, so that other nodes of the tenant find some; all that is needed. */
static uint64_t quantum(uint64_t left, uint64_t wants, uint64_t needs)
{
	uint64_t most = (left + POOL_PART - 1) / POOL_PART;

	if (left < needs)
		return 0;
	return lesser(wants, greater(needs, most));
}

/* Until the window turns, or another tenant is absent. */
static uint64_t retry_of(const struct pool *pool, const struct pool_tenant *tenants,
                         size_t count, size_t self, const struct pool_ask *ask)
{
	uint64_t retry = left_of(pool);

	for (size_t i = 0; i < count; i++)
		if (i != self && is_present(pool, ask, &tenants[i]))
			retry = lesser(retry, leaves_us(pool, ask, &tenants[i]) -
			                          pool->now_us);
	return retry;
}

static void grant(struct pool *pool, struct pool_tenant *tenant,
                  struct pool_claim *claim, uint64_t units)
{
	pool->claims += claim->granted == 0 && units > 0;
	claim->granted += units;
	tenant->used += units;
	pool->used += units;
}

struct pool_answer pool_step(struct pool *pool, struct pool_tenant *tenants,
                             size_t count, size_t self, struct pool_claim *claim,
                             const struct pool_ask *ask, uint64_t not_before_us)
{
	struct pool_tenant *tenant = &tenants[self];
	struct pool_answer answer = pool_refusal(pool, ask, POOL_ANSWERED);
	uint64_t wants, needs, units, ceiling;
	struct shares shares;
	struct part part;

	gale_assert(count <= POOL_TENANTS_MAX);
	answer.guarantee = tenant->guarantee;
	answer.cap = tenant->cap;
	answer.weight = tenant->weight;
	tenant->guarantee = ask->guarantee;
	tenant->cap = ask->cap;
	tenant->weight = ask->weight;
	if (ask->present)
		tenant->asked_us = pool->now_us;
	pool->limit = ask->limit;
	hear(pool, tenant, claim, ask);
	wants = beyond(pool, claim, ask, ask->more);
	needs = beyond(pool, claim, ask, ask->least);
	look(&shares, pool, tenants, count, self, ask);
	part = part_of(&shares);
	ceiling = ceiling_of(ask, &shares, &part);
	units = quantum(minus(ceiling, tenant->used), wants, needs);
	if (not_before_us > pool->now_us) {
		answer.result = POOL_QUIET;
		answer.retry_us = not_before_us - pool->now_us;
	} else if (claim->granted == 0 && pool->claims >= POOL_CLAIMS_MAX) {
		answer.result = POOL_FULL;
	} else {
		grant(pool, tenant, claim, units);
		tenant->refused |= units < needs;
		answer.retry_us = retry_of(pool, tenants, count, self, ask);
	}
	answer.granted = claim->granted;
	answer.share = part.share;
	answer.guarantees = shares.guarantees;
	answer.used = tenant->used;
	answer.free = minus(ask->limit, pool->used);
	return answer;
}
