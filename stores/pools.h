/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pools.h -- the pools of the embedded store: budgets that nodes claim by quanta.
 *
 * engine/pool.h decides; here are kept its words, of each pool, its tenants and its claims.  It is
 * also the pattern that servers are compared with.
 *
 * Invariants
 *
 *   POOLS-1  A claim is among those of its pool's window, and no claim of another is.
 *   POOLS-2  A pool is kept until two of its windows have passed since it was last asked, and a
 *            tenant for as long as pool_keeps says.  Claims are kept as long as they count.
 *   POOLS-3  There are at most so many pools and tenants together as it was opened for.
 *
 * Threads   One at a time: a lock of the caller's is held around every call.
 */
#ifndef STORES_POOLS_H
#define STORES_POOLS_H

#include "engine/clock.h"
#include "stores/store.h"

struct pools;

/* NULL without memory. */
struct pools *pools_open(struct gale_allocator *allocator, uint64_t most);
void pools_close(struct pools *pools);

/* One ask, at now_us by the store's clock and at `at` by the node's; claim->answer says what came
 * of it if it is STORE_DONE.  STORE_FULL and STORE_NO_MEMORY: nothing was granted. */
enum store_result pools_claim(struct pools *pools, const uint8_t *name,
                              uint32_t name_len, struct store_claim *claim,
                              uint64_t now_us, mono at, uint64_t not_before_us);

/* Drops what is over, some of it at a time; false when there may be more. */
bool pools_sweep(struct pools *pools, mono at);

/* ---- To look at ------------------------------------------------------------------ */

/* NULL: there is none.  True until the next ask. */
const struct pool *pools_find(const struct pools *pools, const uint8_t *name,
                              uint32_t name_len);
const struct pool_tenant *pools_tenant(const struct pools *pools, const uint8_t *name,
                                       uint32_t name_len, const uint8_t *tenant,
                                       uint32_t tenant_len);
const struct pool_claim *pools_claimed(const struct pools *pools, const uint8_t *name,
                                       uint32_t name_len, const uint8_t *tenant,
                                       uint32_t tenant_len, uint64_t node);
/* The sums of all pools. */
bool pools_valid(const struct pools *pools);

#endif
