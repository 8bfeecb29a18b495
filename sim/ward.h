/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ward.h -- a fleet of nodes whose guards share ceilings, in virtual time, and the backend
 * that counts what they have in flight there.
 *
 * Each node is a real runtime in turns mode with a clock of its own (dial.h).  It beats at a
 * station that can forget and whose clock can be set (station.h), through the client that is
 * shipped (virtual_wire.h), or by parcels of which none waits for another (courier.h).
 *
 *     node: gale_enter ... gale_exit     a call is at the backend from the one to the other,
 *        '--beats--> station             or until it is aborted
 *
 * The station's nudges come to all nodes that run: late, lost or twice, as the network has it.
 *
 * The host keeps the promise of guard.h.  The backend ends what a node has there when the node
 * has been silent for .silence_us; and when the host sees that a share is over, its calls end
 * .react_us later.  Both together are at most the abort time, as a node may be stopped just
 * before its fence, and go on just before it has been silent for too long.
 *
 * Invariants, checked at each entry, exit and beat; the first that does not hold is the fault
 *
 *   SIM-9  At each instant the calls of a group that are at the backend have at most as many
 *           slots as its limit.  Of a limit that is learned: as the limit in the last two to four
 *           leases.  Of settings that disagree: as that, or what was reserved at the store.  Not
 *           counted are calls of a guard that only observes, and of a node that is cut off and
 *           goes on alone, or did so in the last three leases.  (H1)
 *   SIM-10  A call is let in only while the lease of its node's last report that was served
 *           lasts for the abort time, or longer, by true time.  (H5)
 *   SIM-11  What a guard has in flight is what has entered and not exited, as long as it takes.
 *           (H8)
 *   SIM-12  Of a node, one generation of an epoch has one share, and a later grant a later
 *           generation.  (H3)
 *   SIM-13  When all is well again, every node that the group takes has a share, and together
 *           they fill the limit, but for the share of one that observes.  Slots of a node that
 *           dies are others' within its lease, a tenth of it, and two messages; where nodes have
 *           different weights, parts may then come to a few slots less, for a turn.  (H1)
 *   SIM-14  A guard that is closed and whose calls have ended is no member any more, also when
 *           its runtime was closed.  (H2)
 *   SIM-15  When a limit has fallen, a node whose share was granted since then lets a call in only
 *           if no more are at the backend than the limit, with this call.  Not counted is what
 *           SIM-9 does not count.  (H1)
 *
 * Threads   One.
 */
#ifndef SIM_WARD_H
#define SIM_WARD_H

#include <gale/guard.h>

#include "sim/courier.h"
#include "sim/dial.h"
#include "sim/virtual_wire.h"

#define WARD_NODES 8
#define WARD_SEATS 4
#define WARD_GROUPS 3

/* An instant in 2023. */
#define WARD_START (GALE_HOURS(472222) + GALE_MINUTES(1))

struct ward_plan {
	uint64_t seed;
	struct net_terms net;
	uint32_t nodes;
	uint32_t groups;
	uint32_t seats; /* of a node */
	uint64_t beat_us;
	uint64_t lease_us;
	uint64_t abort_us;
	uint32_t drift_ppm; /* as nodes are told */
	uint32_t rate_ppm;  /* clocks run at most so fast or slow */
	uint64_t offset_us; /* and are at most so wrong */
	uint32_t law;       /* of the first group; the others have fixed limits */
	uint32_t ceiling;
	uint32_t parts;
	uint32_t of_estimates;
	uint32_t weight_most; /* 1 to so much, by lot */
	bool parcels;         /* beats travel one by one */
	bool named;           /* a node has the same name in each life */
	bool twins;           /* the first two nodes have one name */
	bool disagrees; /* the last node has another ceiling for the first group */
	bool observes;  /* the last node only observes */
	bool alone;     /* the first node goes on alone when it is cut off */
	bool ticks;     /* seats are told the time before each call */
};

/* A guard in one life of a node. */
struct ward_guard {
	struct gale_on_fenced hook; /* first */
	struct ward_guard *next;    /* of all that there were */
	struct ward_node *node;
	struct gale_guard *handle;
	uint64_t life;
	uint64_t incarnation;
	uint32_t group;
	bool closed;
	bool dead; /* with its node: nothing is behind the handle */
	bool observes;
	bool goes_on;
	bool is_cut;       /* as the host knows */
	uint64_t alone_us; /* when it last went on alone; 0: never */
	uint64_t open;     /* slots of calls that have not exited */
	uint64_t
	    lease_ends_us; /* at the store, by true time; 0: it was never granted any */
	struct group_grant granted;
	uint64_t
	    granted_falls; /* SIM-15: .falls of the group then; UINT64_MAX: it says nothing */
};

struct ward_call {
	struct event event; /* first: it has ended by itself */
	struct list place;
	struct ward_guard *guard;
	struct gale_entry entry;
	uint64_t entered_us;
	uint32_t slots;
	bool is_exempt;     /* SIM-9 does not count it */
	bool is_at_backend; /* it has not ended there */
	bool is_open;       /* it has not exited */
};

struct ward_node {
	struct dial dial; /* first */
	struct ward *ward;
	struct test_allocator allocator;
	struct port port;
	struct courier courier;
	struct gale_runtime *runtime; /* NULL: it is down */
	struct gale_store *store;
	struct gale_seat *seats[WARD_SEATS];
	struct ward_guard *guards[WARD_GROUPS];
	uint32_t number;
	uint32_t weight;
	bool is_closing; /* its runtime is being closed */
	bool is_stopped;
	uint64_t silence_us;
	uint64_t react_us;
	uint64_t due_us;    /* when it wants a turn; UINT64_MAX: never */
	uint64_t fence_us;  /* when its host looks whether it is cut off */
	uint64_t paused_us; /* nothing of it runs before */
	uint64_t held_us;   /* gale's thread does not, though its seats do */
	uint64_t stops;
};

/* A group as the backend and the store know it. */
struct ward_group {
	uint64_t in_flight; /* at the backend, but for what is exempt */
	uint64_t worst;
	uint64_t period; /* of two leases, that is now */
	uint64_t
	    most; /* SIM-9: the limit's, or what was reserved, in this period ... */
	uint64_t most_before; /* ... and in the one before */
	uint64_t limit;       /* SIM-15: after the last beat ... */
	uint64_t epoch;       /* ... of the store, too ... */
	uint64_t falls;       /* ... and how often it fell, or the store forgot */
};

struct ward {
	struct ward_plan plan;
	struct chance chance;
	struct agenda agenda;
	struct net net;
	struct engine_station station;
	struct office office;
	struct courier_parcels parcels;
	struct gale_clock clock_of_store;
	int64_t clock_shift_us; /* what it is set to, against true time */
	uint64_t clock_most_us; /* that it ever showed, when it was set last */
	struct ward_node nodes[WARD_NODES];
	struct ward_group groups[WARD_GROUPS];
	struct ward_guard *guards;
	struct list calls;
	uint64_t entries;
	uint64_t refusals;
	uint64_t aborts; /* calls */
	uint64_t fences;
	uint64_t beats;
	uint64_t nudges; /* messages to single nodes */
	uint64_t crashes, restarts, stops, holds, partitions, shuts, reopened,
	    fail_overs, flushes, settings;
	bool verbose;
	bool ended;      /* nothing happens any more */
	char fault[200]; /* the first; "" if there is none */
};

void ward_open(struct ward *ward, const struct ward_plan *plan, bool verbose);
/* Closes in order, and checks the rest; true if there is no fault. */
bool ward_close(struct ward *ward);

/* The first fault is kept. */
__attribute__((format(printf, 2, 3))) void ward_fault(struct ward *ward,
                                                      const char *format, ...);
__attribute__((format(printf, 2, 3))) void ward_trace(const struct ward *ward,
                                                      const char *format, ...);

/* Lets happen what happens until then. */
void ward_run(struct ward *ward, uint64_t until_us);

/* Does its host run? */
bool ward_is_up(const struct ward_node *node);

/* Asks for slots; a call that is let in ends by itself after so long.  False: it is refused, or
 * the node does not run. */
bool ward_enter(struct ward *ward, uint32_t node, uint32_t seat, uint32_t group,
                uint32_t slots, enum gale_class of_class, uint64_t takes_us);
/* All calls of all nodes end now. */
void ward_end_calls(struct ward *ward);
/* Of the node's guard. */
struct gale_guard_counts ward_counts(struct ward_guard *guard);

/* The node ends at once, and nothing leaves it any more; or its runtime is closed, while its
 * calls go on. */
void ward_crash(struct ward *ward, uint32_t node);
void ward_shut(struct ward *ward, uint32_t node);
/* A node that is down begins a new life. */
void ward_start(struct ward *ward, uint32_t node);
/* All of it stops until then; or gale's thread alone. */
void ward_stop(struct ward *ward, uint32_t node, uint64_t until_us);
void ward_hold(struct ward *ward, uint32_t node, uint64_t until_us);
/* Nothing passes between the node and the store until then. */
void ward_cut(struct ward *ward, uint32_t node, uint64_t until_us);
/* A guard is closed, and opened again; its calls go on. */
void ward_close_guard(struct ward *ward, uint32_t node, uint32_t group);
void ward_open_guard(struct ward *ward, uint32_t node, uint32_t group);
/* A replica is given all that was written by now; it takes over; one takes over that has
 * nothing. */
void ward_replicate(struct ward *ward);
void ward_fail_over(struct ward *ward);
void ward_flush(struct ward *ward);
/* The server's clock is set: back by so much, or to so long after the latest instant that it
 * ever showed. */
void ward_set_back(struct ward *ward, uint64_t by_us);
/* Is it before that instant? */
bool ward_is_set_back(struct ward *ward);
void ward_set_forward(struct ward *ward, uint64_t by_us);

/* The store nudges the members of that group, or another client says that it does. */
void ward_nudge(struct ward *ward, const struct store_nudge *nudge);

/* The name of a group. */
#define WARD_NAME_BYTES 8
uint32_t ward_name(uint32_t group, char ret_name[WARD_NAME_BYTES]);
/* At the store; NULL: there is none. */
const struct group *ward_kept(const struct ward *ward, uint32_t group);

#endif
