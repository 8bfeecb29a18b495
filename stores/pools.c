/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pools.c -- a table of pools; of each a row of tenants, and a table of claims.
 *
 * Pools are chains from slots.  Claims are in a table with open addresses, which is emptied when
 * a window turns; tenants are in a row, as the engine reads all of them.  Hashes are keyed, so that
 * names that collide cannot be chosen.
 */
#include "stores/pools.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"
#include "runtime/list.h"
#include "runtime/memory.h"
#include "runtime/random.h"

#define SLOTS 1024 /* of pools */
#define FIRST_TENANTS 8
#define FIRST_CLAIMS 16
#define LOOKS 64 /* at pools, by a sweep, or by an ask that needs room */

struct tenant_name {
	uint32_t len;
	uint8_t bytes[STORE_TENANT_MAX];
};

/* granted is 0: the place is free. */
struct kept_claim {
	uint64_t node;
	uint64_t
	    tenant; /* its number in the row: they are counted anew when claims are */
	struct pool_claim is;
};

struct kept_pool {
	struct pool is;
	struct kept_pool *next; /* in its slot */
	struct list place;      /* among all */
	mono over;              /* when it may be dropped */
	struct pool_tenant *tenants;
	struct tenant_name *names; /* of theirs */
	uint32_t count;
	uint32_t room;
	struct kept_claim *claims;
	uint32_t claims_room; /* a power of two, at least twice the claims */
	uint64_t hash;
	uint32_t name_len;
	uint8_t name[];
};

struct pools {
	struct gale_allocator *allocator;
	uint64_t most; /* POOLS-3 */
	uint64_t count;
	uint8_t secret[XXH3_SECRET_SIZE_MIN];
	struct list all;
	struct list *hand; /* in it: where the next looks begin */
	uint64_t in_vain;  /* looks of sweeps since one was over */
	struct kept_pool *slots[SLOTS];
};

/* ---- Pools ----------------------------------------------------------------------- */

static uint64_t hash_of(const struct pools *pools, const void *bytes, size_t count)
{
	return XXH3_64bits_withSecret(bytes, count, pools->secret,
	                              sizeof(pools->secret));
}

static struct kept_pool *find(const struct pools *pools, const uint8_t *name,
                              uint32_t name_len)
{
	uint64_t hash = hash_of(pools, name, name_len);
	struct kept_pool *at = pools->slots[hash % SLOTS];

	while (at && (at->hash != hash || at->name_len != name_len ||
	              memcmp(at->name, name, name_len) != 0))
		at = at->next;
	return at;
}

static struct kept_pool *add(struct pools *pools, const uint8_t *name,
                             uint32_t name_len)
{
	struct kept_pool *pool =
	    memory_take(pools->allocator, sizeof(*pool) + name_len);
	struct kept_pool **slot;

	if (!pool)
		return NULL;
	pool->hash = hash_of(pools, name, name_len);
	pool->name_len = name_len;
	memcpy(pool->name, name, name_len);
	slot = &pools->slots[pool->hash % SLOTS];
	pool->next = *slot;
	*slot = pool;
	list_append(&pools->all, &pool->place);
	pools->count++;
	return pool;
}

static void free_tenants(const struct pools *pools, struct kept_pool *pool)
{
	memory_give(pools->allocator, pool->tenants,
	            pool->room * sizeof(*pool->tenants));
	memory_give(pools->allocator, pool->names, pool->room * sizeof(*pool->names));
}

static void drop(struct pools *pools, struct kept_pool *pool)
{
	struct kept_pool **at = &pools->slots[pool->hash % SLOTS];

	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	list_remove(&pool->place);
	pools->count -= 1 + pool->count;
	free_tenants(pools, pool);
	memory_give(pools->allocator, pool->claims,
	            pool->claims_room * sizeof(*pool->claims));
	memory_give(pools->allocator, pool, sizeof(*pool) + pool->name_len);
}

/* Those that are over, but this one, of those that the hand comes to.  It goes round: one that lasts
 * long hides none that is behind it. */
static uint64_t drop_some(struct pools *pools, const struct kept_pool *but, mono at)
{
	uint64_t dropped = 0;

	for (unsigned i = 0; i < LOOKS; i++) {
		struct list *place = pools->hand;
		struct kept_pool *pool;

		pools->hand = place->next;
		if (place == &pools->all)
			continue;
		pool = list_item(place, struct kept_pool, place);
		if (pool == but || !mono_reached(at, pool->over)) /* POOLS-2 */
			continue;
		drop(pools, pool);
		dropped++;
	}
	return dropped;
}

/* Nothing is over when the hand has gone round in vain. */
bool pools_sweep(struct pools *pools, mono at)
{
	pools->in_vain = drop_some(pools, NULL, at) > 0 ? 0 : pools->in_vain + LOOKS;
	if (pools->in_vain <= pools->count)
		return false;
	pools->in_vain = 0;
	return true;
}

/* POOLS-3 */
static bool has_place(struct pools *pools, const struct kept_pool *but, uint64_t needed,
                      mono at)
{
	return pools->count + needed <= pools->most ||
	       (drop_some(pools, but, at) > 0 && pools->count + needed <= pools->most);
}

/* ---- Tenants --------------------------------------------------------------------- */

static uint32_t find_tenant(const struct kept_pool *pool, const uint8_t *tenant,
                            uint32_t tenant_len)
{
	uint32_t i = 0;

	while (i < pool->count &&
	       (pool->names[i].len != tenant_len ||
	        memcmp(pool->names[i].bytes, tenant, tenant_len) != 0))
		i++;
	return i;
}

/* For one more.  False without memory, and then all is as it was. */
static bool have_tenant_room(const struct pools *pools, struct kept_pool *pool)
{
	uint32_t room = pool->room > 0 ? 2 * pool->room : FIRST_TENANTS;
	struct pool_tenant *tenants;
	struct tenant_name *names;

	if (pool->count < pool->room)
		return true;
	tenants = memory_take(pools->allocator, room * sizeof(*tenants));
	names = memory_take(pools->allocator, room * sizeof(*names));
	if (!tenants || !names) {
		memory_give(pools->allocator, tenants, room * sizeof(*tenants));
		memory_give(pools->allocator, names, room * sizeof(*names));
		return false;
	}
	if (pool->room > 0) {
		memcpy(tenants, pool->tenants, pool->count * sizeof(*tenants));
		memcpy(names, pool->names, pool->count * sizeof(*names));
	}
	free_tenants(pools, pool);
	pool->tenants = tenants;
	pool->names = names;
	pool->room = room;
	return true;
}

/* There is room. */
static void add_tenant(struct pools *pools, struct kept_pool *pool,
                       const struct store_claim *claim)
{
	struct tenant_name *name = &pool->names[pool->count];

	pool->tenants[pool->count++] = (struct pool_tenant){ 0 };
	name->len = claim->tenant_len;
	memcpy(name->bytes, claim->tenant, claim->tenant_len);
	pools->count++;
}

/* A window has begun. */
static void turn(struct pools *pools, struct kept_pool *pool,
                 const struct pool_ask *ask)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pool->count; i++) {
		if (!pool_keeps(&pool->is, ask, &pool->tenants[i]))
			continue;
		pool_forget(&pool->is, &pool->tenants[i]);
		pool->tenants[kept] = pool->tenants[i];
		pool->names[kept++] = pool->names[i];
	}
	pools->count -= pool->count - kept;
	pool->count = kept;
	if (pool->claims_room > 0)
		memset(pool->claims, 0, pool->claims_room * sizeof(*pool->claims));
}

/* ---- Claims ---------------------------------------------------------------------- */

/* Where the claim is, or would be.  There is a free place. */
static struct kept_claim *place_of(const struct pools *pools,
                                   const struct kept_pool *pool, uint64_t node,
                                   uint64_t tenant)
{
	uint64_t words[2] = { node, tenant };
	uint64_t at = hash_of(pools, words, sizeof(words));
	struct kept_claim *claim = &pool->claims[at & (pool->claims_room - 1)];

	while (claim->is.granted > 0 &&
	       (claim->node != node || claim->tenant != tenant))
		claim = &pool->claims[++at & (pool->claims_room - 1)];
	return claim;
}

/* For one more.  False without memory, and then all is as it was. */
static bool have_claim_room(const struct pools *pools, struct kept_pool *pool)
{
	uint32_t was = pool->claims_room, room = was > 0 ? 2 * was : FIRST_CLAIMS;
	struct kept_claim *old = pool->claims, *claims;

	if (2 * (pool->is.claims + 1) <= was)
		return true;
	claims = memory_take(pools->allocator, room * sizeof(*claims));
	if (!claims)
		return false;
	pool->claims = claims;
	pool->claims_room = room;
	for (uint32_t i = 0; i < was; i++)
		if (old[i].is.granted > 0)
			*place_of(pools, pool, old[i].node, old[i].tenant) = old[i];
	memory_give(pools->allocator, old, was * sizeof(*old));
	return true;
}

static void ask_pool(struct pools *pools, struct kept_pool *pool,
                     struct store_claim *claim, uint32_t tenant, uint64_t not_before_us)
{
	struct kept_claim *place = place_of(pools, pool, claim->node, tenant);
	struct pool_claim is = place->is;

	claim->answer = pool_step(&pool->is, pool->tenants, pool->count, tenant, &is,
	                          &claim->ask, not_before_us);
	if (is.granted > 0)
		*place = (struct kept_claim){ claim->node, tenant, is }; /* POOLS-1 */
}

/* The pool's window is the one of the store's clock. */
static enum store_result claim_on(struct pools *pools, struct kept_pool *pool,
                                  struct store_claim *claim, mono at,
                                  uint64_t not_before_us)
{
	uint32_t tenant = find_tenant(pool, claim->tenant, claim->tenant_len);

	if (tenant == pool->count) {
		if (tenant == POOL_TENANTS_MAX) {
			claim->answer = pool_refusal(&pool->is, &claim->ask, POOL_FULL);
			return STORE_DONE;
		}
		if (!has_place(pools, pool, 1, at))
			return STORE_FULL;
		if (!have_tenant_room(pools, pool))
			return STORE_NO_MEMORY;
		add_tenant(pools, pool, claim);
	}
	if (!have_claim_room(pools, pool))
		return STORE_NO_MEMORY;
	ask_pool(pools, pool, claim, tenant, not_before_us);
	return STORE_DONE;
}

enum store_result pools_claim(struct pools *pools, const uint8_t *name,
                              uint32_t name_len, struct store_claim *claim,
                              uint64_t now_us, mono at, uint64_t not_before_us)
{
	struct kept_pool *pool = find(pools, name, name_len);
	enum pool_result result;
	bool turned;

	gale_assert(claim->tenant_len >= 1 && claim->tenant_len <= STORE_TENANT_MAX);
	if (!pool_ask_valid(&claim->ask)) {
		claim->answer = (struct pool_answer){ .result = POOL_WRONG };
		return STORE_DONE;
	}
	if (!pool && !has_place(pools, NULL, 2, at))
		return STORE_FULL;
	if (!pool)
		pool = add(pools, name, name_len);
	if (!pool)
		return STORE_NO_MEMORY;
	result = pool_begin(&pool->is, &claim->ask, now_us, &turned);
	pool->over = mono_after(at, 2 * pool->is.period_us * 1000);
	if (result != POOL_ANSWERED) {
		claim->answer = pool_refusal(&pool->is, &claim->ask, result);
		return STORE_DONE;
	}
	if (turned)
		turn(pools, pool, &claim->ask);
	return claim_on(pools, pool, claim, at, not_before_us);
}

/* ---- To look at ------------------------------------------------------------------ */

const struct pool *pools_find(const struct pools *pools, const uint8_t *name,
                              uint32_t name_len)
{
	const struct kept_pool *pool = find(pools, name, name_len);

	return pool ? &pool->is : NULL;
}

const struct pool_tenant *pools_tenant(const struct pools *pools, const uint8_t *name,
                                       uint32_t name_len, const uint8_t *tenant,
                                       uint32_t tenant_len)
{
	const struct kept_pool *pool = find(pools, name, name_len);
	uint32_t i = pool ? find_tenant(pool, tenant, tenant_len) : 0;

	return pool && i < pool->count ? &pool->tenants[i] : NULL;
}

const struct pool_claim *pools_claimed(const struct pools *pools, const uint8_t *name,
                                       uint32_t name_len, const uint8_t *tenant,
                                       uint32_t tenant_len, uint64_t node)
{
	const struct kept_pool *pool = find(pools, name, name_len);
	uint32_t i = pool ? find_tenant(pool, tenant, tenant_len) : 0;
	const struct kept_claim *place;

	if (!pool || i == pool->count || pool->claims_room == 0)
		return NULL;
	place = place_of(pools, pool, node, i);
	return place->is.granted > 0 ? &place->is : NULL;
}

static bool pool_valid(const struct kept_pool *pool)
{
	uint64_t used = 0, claimed = 0, claims = 0;

	for (uint32_t i = 0; i < pool->count; i++)
		used += pool->tenants[i].used;
	for (uint32_t i = 0; i < pool->claims_room; i++) {
		claimed += pool->claims[i].is.granted - pool->claims[i].is.back;
		claims += pool->claims[i].is.granted > 0;
	}
	return used == pool->is.used && claimed == used && claims == pool->is.claims;
}

bool pools_valid(const struct pools *pools)
{
	uint64_t count = 0;

	for (const struct list *at = pools->all.next; at != &pools->all;
	     at = at->next) {
		const struct kept_pool *pool =
		    list_item(at, const struct kept_pool, place);

		if (!pool_valid(pool))
			return false;
		count += 1 + pool->count;
	}
	return count == pools->count;
}

/* ---- Opening and closing --------------------------------------------------------- */

struct pools *pools_open(struct gale_allocator *allocator, uint64_t most)
{
	struct pools *pools = memory_take(allocator, sizeof(*pools));

	if (!pools)
		return NULL;
	pools->allocator = allocator;
	pools->most = most;
	list_init(&pools->all);
	pools->hand = &pools->all;
	if (random_fill(pools->secret, sizeof(pools->secret)))
		return pools;
	pools_close(pools);
	return NULL;
}

void pools_close(struct pools *pools)
{
	struct list *at;

	if (!pools)
		return;
	while ((at = list_first(&pools->all)))
		drop(pools, list_item(at, struct kept_pool, place));
	memory_give(pools->allocator, pools, sizeof(*pools));
}
