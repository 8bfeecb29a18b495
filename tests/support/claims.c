/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* claims.c -- draws what is likely to matter: few units, many tenants, ends of windows. */
#include "tests/support/claims.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/memory.h"
#include "tests/support/must.h"

/* ---- Names ----------------------------------------------------------------------- */

static void name(struct claims_name *name, const char *bytes, size_t len)
{
	memcpy(name->bytes, bytes, len);
	name->len = (uint32_t)len;
}

static void name_tenants(struct claims *c)
{
	static const struct {
		const char *bytes;
		size_t len;
	} odd[] = {
		{ "a", 1 },  { "a\0", 2 },      { "a b", 3 }, { "p", 1 },
		{ "}{", 2 }, { "\n", 1 },       { "\\x", 2 }, { "'\"$1", 4 },
		{ "tp", 2 }, { "\xff\xfe", 2 },
	};
	size_t count = sizeof(odd) / sizeof(odd[0]);
	char made_up[16];

	for (size_t i = 0; i < CLAIMS_TENANTS; i++)
		if (i < count)
			name(&c->tenants[i], odd[i].bytes, odd[i].len);
		else
			name(&c->tenants[i], made_up,
			     (size_t)sprintf(made_up, "tenant-%zu", i));
	memset(c->tenants[count].bytes, 0x80, STORE_TENANT_MAX);
	c->tenants[count].len = STORE_TENANT_MAX;
}

/* ---- Pools ----------------------------------------------------------------------- */

static void draw_pool(struct claims *c, struct claims_pool *pool)
{
	struct chance *chance = &c->chance;
	uint64_t period_us = chance_one_in(chance, 3)
	                         ? chance_size(chance, POOL_TIME_MAX_US)
	                         : chance_between(chance, 1000, 3000000);

	pool->terms = (struct pool_ask){
		.limit = chance_one_in(chance, 3) ? chance_size(chance, GALE_UNITS_MAX)
		                                  : chance_between(chance, 1, 2000),
		.period_us = period_us,
		.release_us = chance_one_in(chance, 5)
		                  ? GALE_UNITS_MAX
		                  : chance_between(chance, 1, period_us),
		.protect_us =
		    chance_one_in(chance, 3) ? chance_below(chance, period_us + 1) : 0,
	};
}

void claims_open(struct claims *c, uint64_t seed, uint64_t now_us,
                 struct claims_tally *tally)
{
	static const char *const names[CLAIMS_POOLS] = { "g", "g:h {\n}", "pool:g" };

	memset(c, 0, sizeof(*c));
	c->chance = (struct chance){ seed };
	c->seed = seed;
	c->now_us = now_us;
	c->tally = tally;
	c->pattern = pools_open(memory_default(), UINT64_MAX);
	must(c->pattern);
	name_tenants(c);
	for (size_t i = 0; i < CLAIMS_POOLS; i++) {
		name(&c->pools[i].name, names[i], strlen(names[i]));
		draw_pool(c, &c->pools[i]);
		c->pools[i].tenants = chance_between(&c->chance, 1, 12);
	}
	if (seed % 4 == 3) { /* they all stay */
		c->pools[0].tenants = CLAIMS_TENANTS;
		c->pools[0].terms.release_us = GALE_UNITS_MAX;
	}
}

static bool is_crowded(const struct claims *c)
{
	return c->pools[0].tenants == CLAIMS_TENANTS;
}

void claims_close(struct claims *c)
{
	pools_close(c->pattern);
}

/* ---- An ask ---------------------------------------------------------------------- */

static uint64_t lesser_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void move_clock(struct claims *c)
{
	struct chance *chance = &c->chance;
	uint64_t period_us = c->pool->terms.period_us;

	c->has_waited = false;
	switch (chance_below(chance, 60)) {
	case 0:
		c->has_waited = true;
		c->now_us +=
		    chance_below(chance, lesser_of(period_us, GALE_DAYS(30)) * 3);
		break;
	case 1:
	case 2: /* to where a window ends */
		if (period_us < GALE_DAYS(30))
			c->now_us += period_us - c->now_us % period_us;
		break;
	case 3:
		c->now_us -= chance_below(chance, 1000000);
		c->tally->backward++;
		break;
	default:
		if (!chance_one_in(chance, 3))
			c->now_us += chance_below(
			    chance, lesser_of(period_us, GALE_DAYS(1)) / 32 + 2);
	}
	if (chance_one_in(chance, 300))
		c->not_before_us = c->now_us + chance_below(chance, period_us);
}

static void draw_other_settings(struct claims *c, struct pool_ask *ask)
{
	struct chance *chance = &c->chance;

	switch (chance_below(chance, 3)) {
	case 0:
		ask->period_us = chance_one_in(chance, 2)
		                     ? ask->period_us / 2 + 1
		                     : lesser_of(2 * ask->period_us, POOL_TIME_MAX_US);
		ask->protect_us = lesser_of(ask->protect_us, ask->period_us);
		break;
	case 1:
		ask->release_us = chance_below(chance, 2 * ask->period_us);
		break;
	default:
		ask->protect_us = chance_below(chance, ask->period_us + 1);
	}
}

static void draw_terms(struct claims *c, struct pool_ask *ask)
{
	struct chance *chance = &c->chance;

	*ask = c->pool->terms;
	if (chance_one_in(chance, 50))
		ask->limit = chance_between(
		    chance, 1,
		    2 * ask->limit < GALE_UNITS_MAX ? 2 * ask->limit : GALE_UNITS_MAX);
	if (chance_one_in(chance, c->has_waited ? 3 : 100))
		draw_other_settings(c, ask);
	ask->weight = chance_one_in(chance, 4) ? chance_size(chance, POOL_WEIGHT_MAX)
	                                       : 1 + c->tenant % 5;
	ask->guarantee =
	    chance_one_in(chance, 4) ? chance_below(chance, ask->limit) : 0;
	ask->cap = chance_one_in(chance, 6)
	               ? chance_between(chance, ask->guarantee + 1, GALE_UNITS_MAX)
	               : GALE_UNITS_MAX;
}

void claims_draw(struct claims *c)
{
	struct chance *chance = &c->chance;
	struct pool_ask *ask = &c->claim.ask;

	c->step++;
	c->pool = is_crowded(c) && !chance_one_in(chance, 4)
	              ? &c->pools[0]
	              : &c->pools[chance_below(chance, CLAIMS_POOLS)];
	c->tenant = chance_below(chance, c->pool->tenants);
	if (c->pool->tenants == CLAIMS_TENANTS && !chance_one_in(chance, 4))
		c->tenant = c->newcomer++ % CLAIMS_TENANTS; /* soon too many */
	c->node = chance_below(chance, CLAIMS_NODES);
	move_clock(c);
	draw_terms(c, ask);
	ask->present = !chance_one_in(chance, 8);
	ask->window = c->pool->told[c->tenant][c->node].window;
	ask->had = c->pool->told[c->tenant][c->node].granted;
	if (chance_one_in(chance, 40))
		ask->had = chance_below(chance, 2 * ask->limit < GALE_UNITS_MAX
		                                    ? 2 * ask->limit
		                                    : GALE_UNITS_MAX);
	ask->back = c->pool->told[c->tenant][c->node].back;
	if (chance_one_in(chance, 4) || ask->back > ask->had)
		ask->back = chance_below(chance, ask->had + 1);
	ask->more = chance_one_in(chance, 4) ? 0 : chance_size(chance, ask->limit);
	if (ask->more > GALE_UNITS_MAX - ask->had)
		ask->more = GALE_UNITS_MAX - ask->had;
	ask->least = chance_below(chance, ask->more + 1);
	c->claim.tenant = c->tenants[c->tenant].bytes;
	c->claim.tenant_len = c->tenants[c->tenant].len;
	c->claim.node = c->node == 0 ? GALE_UNITS_MAX : c->node;
	must(pool_ask_valid(ask));
}

/* Later asks have the settings of the one that was answered. */
static void take_over(struct claims *c, bool is_new)
{
	struct pool_ask *terms = &c->pool->terms;
	const struct pool_ask *ask = &c->claim.ask;

	if (c->claim.answer.result == POOL_DISAGREES ||
	    (ask->period_us == terms->period_us &&
	     ask->release_us == terms->release_us &&
	     ask->protect_us == terms->protect_us))
		return;
	terms->period_us = ask->period_us;
	terms->release_us = ask->release_us;
	terms->protect_us = ask->protect_us;
	c->tally->taken_over += !is_new;
}

void claims_serve(struct claims *c)
{
	const struct pool *before = claims_pool(c);
	uint64_t window = before ? before->window : 0;
	uint64_t used = before ? before->used : 0;
	const struct pool_answer *answer = &c->claim.answer;

	must(pools_claim(c->pattern, c->pool->name.bytes, c->pool->name.len, &c->claim,
	                 c->now_us, (mono){ 1 }, c->not_before_us) == STORE_DONE);
	must(pools_valid(c->pattern));
	take_over(c, window == 0);
	c->tally->asks++;
	c->tally->results[answer->result]++;
	c->tally->turns += claims_pool(c)->window != window;
	if (answer->result != POOL_ANSWERED || claims_pool(c)->window != window)
		return;
	c->tally->granted += claims_pool(c)->used > used;
	c->tally->given_back += claims_pool(c)->used < used;
	c->tally->refused += claims_tenant(c, c->tenant)->refused;
}

void claims_hear(struct claims *c)
{
	const struct pool_answer *answer = &c->claim.answer;

	if (chance_one_in(&c->chance, 5) || answer->result == POOL_DISAGREES ||
	    answer->result == POOL_FULL)
		return;
	if (c->pool->told[c->tenant][c->node].window != answer->window)
		c->pool->told[c->tenant][c->node].back = 0;
	else
		c->pool->told[c->tenant][c->node].back = c->claim.ask.back;
	c->pool->told[c->tenant][c->node].window = answer->window;
	c->pool->told[c->tenant][c->node].granted = answer->granted;
}

/* ---- To look at ------------------------------------------------------------------ */

const struct pool *claims_pool(const struct claims *c)
{
	return pools_find(c->pattern, c->pool->name.bytes, c->pool->name.len);
}

const struct pool_tenant *claims_tenant(const struct claims *c, size_t tenant)
{
	return pools_tenant(c->pattern, c->pool->name.bytes, c->pool->name.len,
	                    c->tenants[tenant].bytes, c->tenants[tenant].len);
}

const struct pool_claim *claims_claim(const struct claims *c)
{
	return pools_claimed(c->pattern, c->pool->name.bytes, c->pool->name.len,
	                     c->claim.tenant, c->claim.tenant_len, c->claim.node);
}

bool claims_tell_something(const struct claims_tally *t)
{
	for (size_t i = 0; i < POOL_WRONG; i++)
		if (t->results[i] == 0)
			return false;
	return t->granted > 0 && t->refused > 0 && t->given_back > 0 && t->turns > 0 &&
	       t->backward > 0 && t->taken_over > 0;
}

void claims_print(const struct claims_tally *t)
{
	printf("%" PRIu64 " asks: %" PRIu64 " answered, %" PRIu64 " quiet, %" PRIu64
	       " disagree, %" PRIu64 " full; %" PRIu64 " granted, %" PRIu64
	       " refused, %" PRIu64 " given back, %" PRIu64 " windows, %" PRIu64
	       " taken over\n",
	       t->asks, t->results[POOL_ANSWERED], t->results[POOL_QUIET],
	       t->results[POOL_DISAGREES], t->results[POOL_FULL], t->granted,
	       t->refused, t->given_back, t->turns, t->taken_over);
}
