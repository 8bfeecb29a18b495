/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * brook.h -- calls that several limits must admit, and streams that hold units, in virtual time.
 *
 * Each node is a real runtime in turns mode; all are on one embedded store, and all clocks are right.
 * A call costs its units at once, or it is a stream: it holds some, sends units for a while, grows when
 * it has sent what it holds, or a while before, and commits what it has sent.  A stream may break; one
 * that may not grow is stopped, maybe some units late.
 *
 *     call -> gale_wait_all
 *     call -> gale_hold_wait -> sends -> gale_hold_grow -> sends ... -> gale_hold_commit
 *
 * Or the calls are those of tenants that share one budget (gale/tenants.h): of the first limit, which is the
 * budget's.  One node may have the budget alone; otherwise all nodes share it over the store.
 *
 *     call -> gale_tenant_wait
 *     call -> gale_tenant_hold -> sends -> gale_tenant_grow -> sends ... -> gale_tenant_commit
 *
 * Committed and held units are counted in the true windows of each limit, apart from the library.
 *
 * Invariants
 *
 *   BROOK-1  Where a call is admitted, or a hold grows, what is committed and held of the window comes
 *            to the limit at most; with several nodes, to the limit and the excess of its holds.  With
 *            tenants, to the limit and the excess that others have not paid: a tenant that is
 *            given units at a node has paid there what its calls cost beyond their holds.  (T1)
 *   BROOK-2  A window commits at most its limit, and the excess of the holds that ran when units were
 *            last taken from it, with tenants by the same one; with several nodes and no tenants, the
 *            excess of all its holds.
 *   BROOK-3  In the windows in which a run ends, what is committed and what nodes still get unit by
 *            unit come to the limit, unless more is committed: a refused call has used nothing.
 *            (Not less than the limit, but where nodes share a budget: they remember refusals, and the clock
 *            stands still.)
 *   BROOK-4  A tenant has no more of a window than its share and a call's cost, which it was owed, where
 *            all others have been present since before the window began.  So who comes back after a
 *            pause gains nothing by it.  (T4)
 *   BROOK-5  In a budget of one node in which all have been present for as long, a tenant is refused nothing
 *            while it and the call have less than its share, but for what others were owed.  (T2)
 *
 * Threads   One.
 */
#ifndef SIM_BROOK_H
#define SIM_BROOK_H

#include <gale/hold.h>
#include <gale/tenants.h>

#include "sim/random.h"

#define BROOK_LIMITS 4
#define BROOK_NODES 16
#define BROOK_TENANTS 6
#define BROOK_NOBODY UINT32_MAX
#define BROOK_CALLS 4096 /* streams that run at once */
#define BROOK_WINDOWS 1024
#define BROOK_STEPS 600  /* of a window of the first limit */
#define BROOK_SAMPLES 60 /* of such a window */

struct brook_limit {
	uint64_t units;
	uint64_t window_us; /* that of the first limit is the shortest */
};

struct brook_plan {
	uint64_t seed;
	uint32_t nodes;
	uint32_t limit_count;
	struct brook_limit limits[BROOK_LIMITS];
	uint32_t windows;   /* of the first limit; the run ends amid the last */
	uint64_t calls;     /* in such a window, on average */
	uint64_t cost_most; /* of a call; others cost less, down to 1 */
	bool holds;         /* calls are streams ... */
	uint64_t held;  /* ... that hold so much at first, of a limit at most, ... */
	uint64_t grows; /* ... grow by so much, ... */
	uint64_t ahead; /* ... when they hold no more than so much, ... */
	uint64_t sends; /* ... and send so much in a window of the first limit */
	uint32_t break_percent; /* of the streams */
	uint64_t late; /* units that are sent after a refusal to grow, at most */
	uint32_t
	    tenant_count; /* that share the budget, and make all calls; 0: there is none */
	uint32_t weights[BROOK_TENANTS];
	uint32_t pauses;   /* a tenant that does not call in every second part ... */
	uint64_t pause_us; /* ... of so long; or BROOK_NOBODY */
};

/* A window of a limit. */
struct brook_window {
	uint64_t committed;
	uint64_t held;   /* by streams that run */
	uint64_t excess; /* what holds have cost beyond what they held, ... */
	uint64_t since;  /* ... and so much of it since units were last taken */
};

/* The fates of calls in a window of the first limit, or since the last sample. */
struct brook_events {
	uint64_t admitted;
	uint64_t refused[BROOK_LIMITS]; /* by this limit first */
	uint64_t broken;
	uint64_t stopped; /* might not grow */
	uint64_t late;    /* committed after its window */
};

/* Of the first limit. */
struct brook_sample {
	uint64_t at_us; /* since the beginning */
	uint64_t committed, held;
	struct brook_events events;
};

/* A stream.  Units that it holds of windows before the last it has grown in count as committed there,
 * sent or not. */
struct brook_call {
	struct gale_hold hold;
	struct gale_tenant_held held_of; /* in its place: of the tenant */
	uint32_t node;
	uint32_t tenant;
	bool runs;
	bool breaks;
	uint64_t length;
	uint64_t sent;
	uint64_t held;
	double due;                    /* parts of a unit that are not sent yet */
	uint64_t window[BROOK_LIMITS]; /* the last that it holds units of ... */
	uint64_t units[BROOK_LIMITS];  /* ... and how many */
};

/* A debt: units that calls have cost beyond their holds, in a window, and that are not paid yet. */
struct brook_debt {
	uint64_t window;
	uint64_t units;
};

struct brook_node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[BROOK_LIMITS];
	struct gale_budget *budget;
	struct gale_tenant *tenants[BROOK_TENANTS];
	struct brook_debt debts[BROOK_LIMITS]
			       [BROOK_TENANTS]; /* without tenants, of the first */
	struct gale_seat *seat;
};

/* A tenant, at all nodes together. */
struct brook_tenant {
	uint64_t asked_us;   /* when it called last ... */
	uint64_t present_us; /* ... and since when it has gone on calling */
	uint64_t window;     /* in which it ... */
	uint64_t used;       /* ... has committed and holds so much */
};

struct brook {
	const struct brook_plan *plan;
	struct chance chance;
	struct gale_clock clock; /* of all nodes and the store */
	uint64_t now_us;
	struct brook_node nodes[BROOK_NODES];
	struct brook_call calls[BROOK_CALLS];
	struct brook_tenant tenants[BROOK_TENANTS];
	double due; /* calls that have not begun yet */

	struct brook_window windows[BROOK_LIMITS][BROOK_WINDOWS + 1];
	struct brook_events events[BROOK_WINDOWS + 1];
	/* Of each limit, committed and held when a window of the first ends. */
	uint64_t used[BROOK_WINDOWS + 1][BROOK_LIMITS];
	struct brook_events recent;
	struct brook_sample samples[BROOK_WINDOWS * BROOK_SAMPLES];
	size_t sample_count;
	uint64_t left[BROOK_LIMITS]; /* units that nodes got one by one at the end */
	char fault[128];             /* "": none; the first */
};

/* From its beginning to its end. */
void brook_play(struct brook *brook, const struct brook_plan *plan);

/* Windows of a limit in a run. */
uint64_t brook_windows(const struct brook_plan *plan, uint32_t limit);

#endif
