/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * claims.h -- nodes by lot that claim of pools, for what must do as stores/pools.c does.
 *
 * Nodes ask, give back, repeat themselves, ask for windows that are over, say what is not so, and
 * change terms; limits and windows' lengths differ between them; the clock stands, runs, jumps and
 * goes back; the store may have forgotten.  One pool has more tenants than it can.  Names are of any
 * bytes.
 *
 *     claims_open -> { claims_draw -> the store under test, claims_serve -> claims_hear }
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_CLAIMS_H
#define TESTS_SUPPORT_CLAIMS_H

#include "sim/random.h"
#include "stores/pools.h"

#define CLAIMS_POOLS 3
#define CLAIMS_TENANTS 300
#define CLAIMS_NODES 4

struct claims_name {
	uint8_t bytes[STORE_TENANT_MAX];
	uint32_t len;
};

struct claims_pool {
	struct claims_name name;
	struct pool_ask terms; /* up to protect_us */
	uint64_t tenants;
	struct {
		uint64_t window, granted, back;
	} told[CLAIMS_TENANTS][CLAIMS_NODES];
};

/* How often each came: all must. */
struct claims_tally {
	uint64_t asks;
	uint64_t
	    results[POOL_WRONG]; /* of these but POOL_WRONG, which no server is asked */
	uint64_t granted;
	uint64_t refused;
	uint64_t given_back;
	uint64_t turns;
	uint64_t backward;
	uint64_t taken_over; /* pools, by who has other settings */
};

struct claims {
	struct chance chance;
	uint64_t seed;
	uint64_t step;
	uint64_t now_us;
	uint64_t not_before_us;
	bool has_waited;   /* for so long that a window may have passed */
	uint64_t newcomer; /* of the pool that has too many: one after the other */
	struct pools *pattern;
	struct claims_name tenants[CLAIMS_TENANTS]; /* the same names in all pools */
	struct claims_pool pools[CLAIMS_POOLS];
	struct claims_tally *tally;

	/* The ask that was drawn. */
	struct claims_pool *pool;
	size_t tenant;
	size_t node;
	struct store_claim claim;
};

void claims_open(struct claims *claims, uint64_t seed, uint64_t now_us,
                 struct claims_tally *tally);
void claims_close(struct claims *claims);

/* The next ask, and when it comes. */
void claims_draw(struct claims *claims);
/* What the pattern makes of it: claims->claim.answer. */
void claims_serve(struct claims *claims);
/* The node hears it, or does not. */
void claims_hear(struct claims *claims);

/* Of the pattern, as it is now.  NULL: there is none. */
const struct pool *claims_pool(const struct claims *claims);
const struct pool_tenant *claims_tenant(const struct claims *claims, size_t tenant);
const struct pool_claim *claims_claim(const struct claims *claims);

/* All that must happen has. */
bool claims_tell_something(const struct claims_tally *tally);
void claims_print(const struct claims_tally *tally);

#endif
