/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * world.h -- a fleet of nodes on one store, in virtual time.
 *
 * Each node is a real runtime in turns mode with a clock of its own; the store is the
 * embedded one, or a server that can forget (station.h) behind the client that is shipped,
 * on the true clock.  Time moves only between events, so the instant of
 * an admission is exact, and is counted by a counter that knows nothing of leases.
 *
 * Invariants, checked at each admission; the first that does not hold is the fault
 *
 *   SIM-1  Windows: the sum of what is admitted of a key in a window of the store is at
 *          most the limit; with carry_over, what gale.h says. (L1)  Token budgets: less than
 *          the limit, and one call.
 *   SIM-2  Meters: in any time t at most burst + t/T, and what was lent and neither
 *          spent nor given back when it began.
 *   SIM-3  Pacers: no more leave in any time t than burst + t/T + 1, when t is made
 *          longer by the time that an answer was on its way; and none leaves before its
 *          place.
 *   SIM-4  An ask that is pending is answered by the time its patience ends, unless its
 *          node crashes, or pauses. (L11)
 *   SIM-5  What an answer says can be true, and what the counters say agrees with it.
 *   SIM-6  A node admits from credit no more than it was lent, and as long as that
 *          lives: a window's units until it is over at the store; a meter's for as long
 *          as it takes to fill with one more, and 1 ms, by the node's clock, from when
 *          they came; those of a pacer's burst for 1 ms.  Units that were dead when more
 *          came are gone.  (Not with carry_over, and not a pacer's places.)
 *   SIM-7  Sliding logs: in the trailing period at most the limit.  Sliding windows: the
 *          same, less the bucket that is counted in part.
 *   SIM-8  While nodes have different rules, or a request under another one is on its
 *          way, the largest limit, rate and burst in force take the place of the
 *          rule's; and from then on those of the one that all have. (L15)
 *
 * A call that a server decides is admitted when its step is made there, though no node may
 * hear of it; all others when their node answers.
 *
 * Threads   One.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <gale/gale.h>

#include "sim/dial.h"
#include "sim/net.h"
#include "sim/virtual_wire.h"
#include "sim/allocator.h"

#define WORLD_NODES 512
#define WORLD_SEATS 4
#define WORLD_KEYS 20

/* An instant in 2023 at which windows of 10 ms to 2 s begin. */
#define WORLD_START (GALE_HOURS(472222) + GALE_MINUTES(1))

__extension__ typedef __int128 wide;

/* The faults that end a world. */
enum world_end {
	ENDS_AT_FAULT, /* the first */
	ENDS_AT_OVER,  /* more is admitted than may be (SIM-1, SIM-2, SIM-3) */
	ENDS_NOT,      /* it goes on, to see how bad it gets */
};

struct world_plan {
	uint64_t seed;
	struct station *station; /* with fails, whose it is; NULL: the engine's */
	struct gale_rule rule;
	struct gale_rule next; /* of nodes that were changed; no kind: none is */
	enum gale_mode mode;
	struct gale_leasing lease;
	struct net_terms net;
	uint32_t nodes;
	uint32_t seats;     /* of a node */
	uint32_t shards;    /* of a node */
	uint32_t strict;    /* nodes that ask the store each time */
	uint32_t keys;      /* that are asked about */
	uint32_t node_keys; /* bound of a node; 0: the default */
	uint32_t pending;   /* asks of a seat; 0: 64 */
	uint32_t
	    rate_ppm; /* nodes' clocks gain or lose at most so much on the store's */
	uint64_t offset_us; /* and are at most so wrong */
	bool held;          /* some asks are by a held key */
	bool bad;           /* the store lies: what it says proves nothing */
	bool hot;           /* keys are split over seats */
	bool fails;         /* the store is a server that can forget */
	enum world_end ends;
};

struct call {
	uint64_t life; /* of its node, when it asked */
	uint64_t asked_us;
	uint64_t seen_us; /* when its node takes turns at the latest */
	uint64_t cost;
	uint32_t node;
	uint32_t key;
	bool pending;
	struct gale_answer answer; /* if it is not pending */
};

/* What a node may have in its purse, at most. */
struct pot {
	uint64_t units;
	uint64_t dies_us; /* the last of them, by true time */
	uint64_t number;  /* of the last answer that put some in; windows: 0 */
	uint64_t next;    /* units of the next window: they were lent ahead */
	uint64_t next_dies_us;
};

struct node {
	struct dial dial; /* first */
	struct world *world;
	struct test_allocator allocator;
	struct port port;
	struct gale_runtime *runtime; /* NULL: it is down */
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seats[WORLD_SEATS];
	struct gale_key *held[WORLD_SEATS][WORLD_KEYS];
	uint32_t number;
	uint64_t due_us;    /* when it wants a turn; UINT64_MAX: never */
	uint64_t paused_us; /* it takes none before */
	uint64_t pauses;
	bool strict;
	bool changed; /* its limiter has plan.next */
	/* In this life. */
	uint32_t pending;  /* asks */
	uint64_t allowed;  /* asks */
	uint64_t denied;   /* asks */
	uint64_t allows;   /* asks, from credit */
	uint64_t admitted; /* units, from credit */
	struct pot pots[WORLD_KEYS];
};

/* Of sliding rules. */
struct stamp {
	uint64_t at_us;
	uint64_t units;
};

/* What is known of a key, without gale.  A set of rules has bit 0 for plan.rule and
 * bit 1 for plan.next. */
struct key_law {
	unsigned last;           /* under which of them its state may be written */
	uint64_t in_force_us[2]; /* when each last was, before now */
	wide accrued;            /* meters: by the fastest rule in force ... */
	uint64_t accrued_us;     /* ... until then */
	wide alone;              /* least, since there was one rule alone */
	struct stamp *stamps;    /* sliding: what was admitted */
	size_t stamp_count;
	size_t stamp_room;
	uint64_t *used; /* of each window since the start */
	size_t windows;
	uint64_t window;   /* that something last happened in ... */
	uint64_t carried;  /* ... and what was lent and not spent when it began */
	uint64_t dearest;  /* budgets: the most that one call has cost ... */
	size_t dearest_in; /* ... in this window */
	uint64_t lent;     /* by the store, less what it took back */
	uint64_t admitted; /* since the start */
	wide least;        /* of lent - t/T, so far, in parts of a unit */
	uint64_t *leaves;  /* pacers: nanoseconds since the start, one for each unit */
	size_t leave_count;
	size_t leave_room;
};

struct world {
	struct world_plan plan;
	struct chance chance;
	struct agenda agenda;
	struct net net;
	struct station *station; /* with plan.fails */
	struct engine_station by_engine;
	struct office office;
	struct gale_clock clock_of_store;
	struct test_allocator allocator;
	struct node nodes[WORLD_NODES];
	struct key_law laws[WORLD_KEYS];
	uint32_t with[2]; /* how many nodes have plan.rule, and plan.next */
	struct call **calls;
	size_t call_count;
	size_t call_room;
	uint64_t lasts_most_us; /* the longest that units were lent for */
	uint64_t admissions;
	uint64_t denials;
	uint64_t leases;
	uint64_t ahead; /* units that were lent ahead */
	uint64_t crashes;
	uint64_t restarts;
	uint64_t pauses;
	uint64_t partitions;
	uint64_t fail_overs;
	uint64_t changes;
	uint64_t unanswered; /* by nodes that crashed */
	/* Units beyond what may be admitted (SIM-1, SIM-2, SIM-3) */
	uint64_t over_most;
	bool verbose;
	bool ended;      /* nothing happens any more */
	char fault[200]; /* the first; "" if there is none */
};

void world_open(struct world *world, const struct world_plan *plan);
/* Closes in order, and checks the rest; true if there is no fault. */
bool world_close(struct world *world);

/* Asks for cost units of a key; then the node takes its turns. */
struct call *world_ask(struct world *world, uint32_t node, uint32_t seat, uint32_t key,
                       uint64_t cost);
/* The same, but the turns are left to a later ask, or to that instant. */
struct call *world_ask_only(struct world *world, uint32_t node, uint32_t seat,
                            uint32_t key, uint64_t cost, uint64_t later_us);
/* Its seat has left before it was answered: it never is. */
void world_forget(struct world *world, struct call *call);
/* The node takes turns until there is nothing to do. */
void world_turns(struct world *world, uint32_t node);

/* Lets happen what happens until then. */
void world_run(struct world *world, uint64_t until_us);

/* The node ends at once, and nothing leaves it any more; or it closes in order. */
void world_crash(struct world *world, uint32_t node);
void world_shut(struct world *world, uint32_t node);
/* A node that is down begins a new life. */
void world_start(struct world *world, uint32_t node);
void world_pause(struct world *world, uint32_t node, uint64_t until_us);
/* Nothing passes between the node and the store until then. */
void world_cut(struct world *world, uint32_t node, uint64_t until_us);
/* From now on the node has plan.next, or plan.rule again; it must not pause. */
void world_change(struct world *world, uint32_t node, bool changed);
/* A replica is given all that was written by now; it takes over.  With plan.fails. */
void world_replicate(struct world *world);
void world_fail_over(struct world *world);

/* What was admitted of the key in a window, counted from the start. */
uint64_t world_used(const struct world *world, uint32_t key, size_t window);
/* One of gale_metrics, by its name. */
uint64_t world_metric(struct world *world, uint32_t node, const char *name);

#endif
