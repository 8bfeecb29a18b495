/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pond.h -- nodes that share one budget among tenants, and the store that has it, in virtual time.
 *
 * The store steps engine/pool.h and a node engine/claim.h.  Asks and answers are late, lost and
 * doubled; nodes crash and begin anew, and are cut off from the store; the store forgets; clocks are
 * apart.  A node asks for what waits, and looks once in a tick at what it has, as coordinator/fund.h
 * has it; while it is cut off, its tenants have units alone (engine/alone.h).
 *
 *     calls -> stake: claim_take, or it waits -> ask ...delay... -> pool_step -> answer -> stake
 *
 * A call may hold what it has taken, and end later, at another cost: then units go back into their window,
 * or the stake owes what they fell short of, as coordinator/stake.h has it.
 *
 * A tenant may be evicted at a node: its stake leaves, and another one takes its place at once.  The one
 * that leaves gives back what it has, and waits for the calls that hold units of it.
 *
 * Nodes are dealt out among regions.  The store is in the first; the others reach it by a slow link.
 *
 * What is spent is counted in the store's true windows, apart from pool and claims.
 *
 * Invariants
 *
 *   POND-1  No window spends more than the limit, but for what is used alone, and for what calls have cost
 *           beyond their holds and their stake has not paid.  A stake that takes units has paid.  (T1)
 *   POND-2  The pool's sums are those of its claims, and every answer is believed.
 *   POND-3  In a window of the store a node uses less than twice its units alone, for each tenant:
 *           until it crashes, as another process begins then.  (ALONE-2)
 *   POND-4  What a stake has that leaves goes back, and what a node had that crashed is free in the
 *           next window: so tenants that want all have their shares in each window without a crash.
 *
 * Threads   One.
 */
#ifndef SIM_POND_H
#define SIM_POND_H

#include "engine/alone.h"
#include "engine/claim.h"
#include "sim/random.h"

#define POND_TENANTS 16
#define POND_NODES 64
#define POND_REGIONS 8
#define POND_LIVES 1024 /* of the stakes of a tenant, in two windows */
#define POND_WINDOWS 4096
#define POND_FLIGHTS 4096
#define POND_WAITS 32
#define POND_HOLDS 8 /* of a stake, at a time */
#define POND_NOBODY UINT32_MAX

struct pond_tenant {
	uint64_t weight;
	uint64_t demand; /* units that it asks for in a window, at all nodes */
};

struct pond_plan {
	uint64_t seed;
	uint32_t nodes;
	uint32_t regions; /* among which they are dealt out; 0 is 1 */
	uint64_t link_us; /* a round trip of the link of each region but the first */
	uint32_t home_percent; /* of its demand a tenant has in a region of its own; the
	                          rest is evenly at all nodes */
	uint32_t tenant_count;
	struct pond_tenant tenants[POND_TENANTS];
	uint32_t pauses;                  /* a tenant that does not ask ... */
	uint32_t pause_first, pause_last; /* ... in these windows; or POND_NOBODY */
	uint64_t limit;
	uint64_t window_us;
	uint32_t windows;
	uint32_t steps; /* of a window, in which something may happen */
	uint32_t cost_most;
	uint64_t
	    delay_us; /* of a message, mean; one in twenty takes eight times as long */
	uint32_t lost_percent;
	uint32_t doubled_percent;
	uint64_t crash_us;  /* a node crashes once in it, on average; 0: never */
	uint64_t forget_us; /* the same of the store */
	uint64_t evict_us;  /* each tenant of a node is evicted once in it; 0: never */
	uint64_t alone; /* units of each tenant at each node, while that is cut off */
	uint64_t
	    away_us; /* a node is cut off once in it, for up to two windows; 0: never */
	bool holds;  /* one call in two holds what it takes ... */
	uint64_t excess;    /* ... and costs so much more in the end, at most */
	uint32_t rate_ppm;  /* that clocks are fast or slow by, at most */
	uint32_t drift_ppm; /* that nodes reckon with */
};

/* A call that runs. */
struct pond_hold {
	uint64_t units; /* 0: none does */
	uint64_t cost;
	uint64_t ends_us;
	uint64_t window;   /* the claim's, that the units are of */
	uint64_t spent_in; /* the store's */
};

struct pond_stake {
	uint32_t life;
	struct claim claim;
	struct pond_hold holds[POND_HOLDS];
	uint64_t hold_ends_us; /* the first of them; 0: none runs */
	uint64_t
	    unpaid; /* what its calls have cost in a window beyond their holds ... */
	uint64_t unpaid_in;
	struct pool_ask sent;
	uint64_t number; /* of what was sent last ... */
	uint64_t sent_us;
	uint64_t gives_up_us;
	uint64_t look_us;
	bool ahead;       /* more is asked for before it is gone */
	uint64_t ordered; /* a cost that was admitted alone: the store is asked */
	bool leaves;      /* until it has given back what it has */
	uint32_t tries;   /* to tell the store, since a call ended last */
	struct alone alone;
	uint64_t alone_window; /* of the store's, in which it has used these alone */
	uint64_t alone_used;
	double due;                 /* units that callers have not asked for yet */
	uint64_t waits[POND_WAITS]; /* costs */
	uint32_t waiting;
};

struct pond_node {
	uint64_t ahead_us;
	int64_t rate_ppm;
	uint64_t away_until_us; /* nothing comes through until then */
	bool cut_off;           /* a call was not answered, at ... */
	uint64_t failed_us;
	uint64_t answered_us;
	struct pond_stake stakes[POND_TENANTS];
	struct pond_stake leavers[POND_TENANTS]; /* the stake before, while it leaves */
};

struct pond_flight {
	bool is_answer;
	uint32_t node, tenant, life;
	uint64_t due_us;
	uint64_t number;
	struct pool_ask ask;
	struct pool_answer answer;
};

struct pond {
	const struct pond_plan *plan;
	struct chance chance;
	uint64_t now_us;
	uint32_t lives[POND_TENANTS]; /* of its stakes */

	/* The store. */
	struct pool pool;
	struct pool_tenant tenants[POND_TENANTS];
	struct pool_claim claims[POND_TENANTS][POND_LIVES];
	uint64_t not_before_us;

	struct pond_node nodes[POND_NODES];
	struct pond_flight flights[POND_FLIGHTS];
	uint32_t flying;

	uint64_t used[POND_WINDOWS + 1][POND_TENANTS];
	uint64_t in_region[POND_WINDOWS + 1][POND_REGIONS][POND_TENANTS]; /* of used */
	uint64_t spent[POND_WINDOWS + 1];
	uint64_t unpaid[POND_WINDOWS + 1]; /* of it */
	bool crashed[POND_WINDOWS + 1];    /* a node has */
	uint64_t asks, quanta, lost, doubled, crashes, forgets, aways, holds, evictions;
	uint64_t alone;  /* units that were used so */
	char fault[128]; /* "": none; the first */
};

/* From its beginning to its end. */
void pond_play(struct pond *pond, const struct pond_plan *plan);

/* Units of a window that a tenant should have: its share by weight of those that ask in it, or its
 * demand, if that is less. */
double pond_ideal(const struct pond_plan *plan, uint32_t window, uint32_t tenant);

#endif
