/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool.h -- one budget for the tenants of a whole fleet: the store's side.
 *
 * A pool has so many units in each window of the store's clock.  Nodes claim them on behalf of
 * tenants, a quantum at a time, and spend them by themselves:
 *
 *     ask (terms, window, had, more, least, back)   ->  pool_step
 *     answer (window, granted, how long it lasts)   <-
 *
 *     pool      the window, and what was granted in it
 *     tenant    what it may have: guarantee, weight, cap; what its nodes have been granted
 *     claim     of one node for one tenant, in this window: granted, given back
 *
 * Numbers of a claim are totals of the window, which only rise.  So an ask that comes late, twice
 * or never, and an answer that is lost, change nothing but which nodes learn of a grant, and when.
 *
 * Each tenant that asks has a share, as in escrow.h: its guarantee, and then by weight up to its
 * cap, where the sum of max(share, used) over the present and of what was used by the absent is
 * the limit.  A tenant is one of those that divide the limit: a customer, or a region with the
 * weights of its own tenants together.  Nothing here depends on what it is.
 *
 * A store calls for one ask, in one atomic step and in this order:
 *
 *     pool_begin(pool, ask, now, &turned)
 *     if turned: all claims are dropped; each tenant that pool_keeps is zeroed by pool_forget,
 *                and the others are dropped
 *     pool_step(pool, tenants, count, self, claim, ask, not_before), unless pool_begin refused.
 *                A tenant or a claim that is not there is all zero; at most POOL_TENANTS_MAX
 *
 * Invariants
 *
 *   POOL-1  In a window the sum of what claims were granted and have not given back is at most
 *           the largest limit that was asked with.  (T1, L15)
 *   POOL-2  A tenant is granted units up to its share, and a part of a unit beyond:
 *           used <= limit - the sum over others of max(share, used).  (T2)
 *   POOL-3  Nothing is reserved for a tenant of which no node has said for release_us that it
 *           asks.  One that was refused in a window asks when the next one begins.  (T3)
 *   POOL-4  A claim is of one window, and so is what is given back: totals of another window
 *           change nothing.  (L6)
 *   POOL-5  Before not_before, where the store may have forgotten, nothing is granted.  A node
 *           that says what it had is believed.  (L12)
 *   POOL-6  All asks of a window have one period, release and protection: the pool's.  An ask with
 *           others is refused, until a whole window has passed without an ask with the pool's, and
 *           the window of the ask begins after the last one of the pool.  (T2)
 *
 * A step costs O(tenants that are present), some five times each.
 *
 * Threads   Pure: any, on different pools.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_TENANTS_MAX 256
#define POOL_CLAIMS_MAX 65536   /* in a window */
#define POOL_PART 8             /* a grant is this part of what is left, or least */
#define POOL_WEIGHT_MAX 1048576 /* 2^20 */
#define POOL_TIME_MAX_US (UINT64_C(1) << 50)

/* Words below 2^53; all zero when new. */
struct pool {
	uint64_t period_us; /* of its windows */
	uint64_t now_us;    /* never goes back */
	uint64_t window;    /* its beginning */
	uint64_t used;      /* in it: granted, and not given back */
	uint64_t limit;     /* that was asked with last */
	uint64_t claims;    /* that were granted something */
	/* As its asks have them, like period_us. */
	uint64_t release_us;
	uint64_t protect_us;
};
#define POOL_WORDS 8

struct pool_tenant {
	uint64_t guarantee;
	uint64_t cap;
	uint64_t weight;
	uint64_t asked_us; /* when a node said last that it asks */
	uint64_t used;     /* by all its nodes, in this window */
	uint64_t refused;  /* 1: in this window a node got less than it needed */
};
#define POOL_TENANT_WORDS 6

struct pool_claim {
	uint64_t granted;
	uint64_t back;
};
#define POOL_CLAIM_WORDS 2

struct pool_ask {
	uint64_t limit;
	uint64_t period_us;
	uint64_t release_us; /* a tenant that has not asked for so long is absent */
	uint64_t protect_us; /* all are present for so long after a window has begun */
	uint64_t guarantee;  /* of the tenant, as the next two */
	uint64_t cap;
	uint64_t weight;
	uint64_t present; /* 1: calls ask for it there; 0: it only gives back */
	uint64_t window;  /* that had and back are of; what follows: in any window */
	uint64_t had;     /* the node was told that it was granted so much in all */
	uint64_t more;    /* what it wants beyond */
	uint64_t least;   /* of that; with less it could do nothing */
	uint64_t back;    /* what it has given back in all */
};
#define POOL_ASK_WORDS 13

enum pool_result {
	POOL_ANSWERED, /* .granted says how much there is */
	POOL_QUIET, /* the store may have forgotten, and grants nothing for .retry_us */
	POOL_DISAGREES, /* other nodes have another period, release or protection */
	POOL_FULL,      /* it has as many tenants, or claims, as it can */
	POOL_WRONG,     /* the ask is not one */
};

struct pool_answer {
	uint64_t result;
	uint64_t window;
	uint64_t granted;  /* to this node for the tenant in the window, in all */
	uint64_t left_us;  /* until the window turns */
	uint64_t share;    /* of the tenant, as things are */
	uint64_t used;     /* by the tenant, at all nodes */
	uint64_t free;     /* of the limit: units that were not granted */
	uint64_t retry_us; /* until asking again may help */
	/* That the last ask before this one had; 0: there was none. */
	uint64_t limit;
	uint64_t guarantee; /* of the tenant, as the next two; its weight 0: none */
	uint64_t cap;
	uint64_t weight;
	/* Of all tenants that are present, as they are now.  Above the limit: not all can be kept. */
	uint64_t guarantees;
	/* Of the pool: what an ask needs to have. */
	uint64_t period_us;
	uint64_t release_us;
	uint64_t protect_us;
};
#define POOL_ANSWER_WORDS 16

bool pool_ask_valid(const struct pool_ask *ask);

/* POOL_ANSWERED: go on.  *ret_turned: a window has begun, and nothing of another counts. */
enum pool_result pool_begin(struct pool *pool, const struct pool_ask *ask,
                            uint64_t now_us, bool *ret_turned);
/* The answer to a node that pool_begin has refused, or for which there is no room. */
struct pool_answer pool_refusal(const struct pool *pool, const struct pool_ask *ask,
                                enum pool_result result);

/* When a window has turned: does it still count, though it has not asked in this one? */
bool pool_keeps(const struct pool *pool, const struct pool_ask *ask,
                const struct pool_tenant *tenant);
void pool_forget(const struct pool *pool, struct pool_tenant *tenant);

/* self: which of the tenants asks.  not_before_us: see POOL-5; 0: it has not forgotten. */
struct pool_answer pool_step(struct pool *pool, struct pool_tenant *tenants,
                             size_t count, size_t self, struct pool_claim *claim,
                             const struct pool_ask *ask, uint64_t not_before_us);

#endif
