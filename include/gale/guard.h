/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.h -- how many calls may be in flight at once?
 *
 *	gale_guard_open(runtime, &config, &guard);                     once per backend
 *	entry = gale_enter(seat, guard, 1, GALE_NORMAL);               per call
 *	if (entry.verdict == GALE_ALLOW) {
 *		ok = call_the_backend();
 *		gale_exit(seat, &entry, ok ? GALE_OK : GALE_DROPPED);
 *	}
 *
 * A slot is the right to have one call in flight.  A guard hands out at most as many slots
 * as its ceiling.  A call that finds no free slot is refused at once, and entry.why says
 * for which reason.
 *
 * Guards of one name on one store are a fleet: they share one ceiling.  Each node has a
 * part of that ceiling, its share.  A node that has no share is cut off.
 * docs/concurrency.md explains guards.
 *
 * Threads   The rules of gale.h for seats and handles hold here.  The thread that calls
 *           gale_exit need not be the one that called gale_enter; each passes its own
 *           seat.  Two threads must not use one entry at the same time.  While you close a
 *           guard, do not call gale_enter, except in a thread with a call of this guard
 *           in flight.
 * Blocking  gale_enter and gale_exit never wait.
 * Entries   Each entry with the verdict GALE_ALLOW needs one gale_exit.  The call keeps
 *           its slots until then: no deadline frees them.  gale_exit clears the entry, so
 *           a second gale_exit changes nothing.  Do not copy an entry: if both copies
 *           exit, the slots of another call are given back.
 * Time      gale_enter and gale_exit measure how long a call takes, with the clock or, on
 *           a seat that ticks, with its last gale_tick.  So tick often.
 */
#ifndef GALE_GUARD_H
#define GALE_GUARD_H

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_SLOTS_MAX 1000000 /* of a ceiling */

/* The class of a call.  Sheddable calls are refused first. */
enum gale_class {
	GALE_NORMAL,
	GALE_SHEDDABLE, /* may fill only a part of the ceiling: sheddable_permille */
};

/* How a call has ended. */
enum gale_outcome {
	GALE_OK,
	GALE_DROPPED, /* the call timed out, or the backend lacked the capacity for it */
	GALE_IGNORED, /* the result does not depend on the backend: a caller's mistake */
};

struct gale_guard;

/* How the ceiling is found.  All laws except GALE_FIXED estimate how many calls the
 * backend can bear. */
enum gale_law {
	GALE_KNEE,     /* somewhat more calls than the backend serves without a queue */
	GALE_FIXED,    /* the number in .ceiling, which must be given */
	GALE_AIMD,     /* rises one by one, and falls when calls are late or dropped */
	GALE_GRADIENT, /* falls when calls take longer than the shortest call so far */
};

/* How a node decides while it is cut off.  A node is cut off until it gets its first
 * share, and after its share has ended. */
enum gale_on_cut_off {
	GALE_ON_CUT_OFF_DENY,
	GALE_ON_CUT_OFF_OWN, /* by its own law; the fleet's ceiling may then be exceeded */
};

/* How a fleet's ceiling is divided among its nodes. */
enum gale_parts {
	GALE_BY_DEMAND, /* a node that uses less leaves the rest to others */
	GALE_BY_WEIGHT, /* by weight alone, however much each node uses */
};

/* How the estimates of the nodes become one ceiling. */
enum gale_of_estimates {
	GALE_MEDIAN, /* the median; of two middle estimates the lower one */
	GALE_LEAST,  /* the lowest estimate */
};

/* A hook, as in gale.h.  It must outlive the runtime: a closed guard may still call it. */
struct gale_on_fenced {
	/* This node has lost its share.  All its calls in flight must end within
	 * abort_us. */
	void (*fenced)(struct gale_on_fenced *self, struct gale_guard *guard);
};

/* May grow. */
struct gale_guard_config {
	const char *name; /* guards of one runtime have different names */
	enum gale_law law;
	/* The first ceiling.  0: 20, raised to floor or lowered to ceiling; for
	 * GALE_FIXED: ceiling. */
	uint32_t start;
	uint32_t floor;   /* the lowest ceiling that a law may choose; 0: 1 */
	uint32_t ceiling; /* the highest one, up to GALE_SLOTS_MAX; 0: 1000 */
	/* A probe lowers the ceiling for a moment, to measure the backend, but never below
	 * this many slots.  0: 1.  In a fleet a node's part of it may be 0. */
	uint32_t probe;
	/* The part of the ceiling that sheddable calls may fill, in thousandths.  0: 900. */
	uint32_t sheddable_permille;
	/* The largest part of the ceiling in force that one call of several slots may take, in
	 * thousandths.  0: 500.  This does not limit calls of one slot, nor calls that take no
	 * more than this part of start. */
	uint32_t slots_most_permille;
	/* The guard admits and counts the calls that it would refuse.  Their entries have
	 * the verdict GALE_ALLOW, and why is the reason to refuse them.  In a fleet such
	 * calls come on top of the ceiling. */
	bool observe;
	/* A call that takes longer is overdue: it is counted and logged, and nothing else
	 * happens to it.  0: a minute. */
	uint64_t overdue_us;

	/* NULL: no fleet, and all fields below must be 0. */
	struct gale_store *store;
	const char *node;   /* this node's name in the fleet; NULL: gale makes one up */
	uint32_t weight;    /* nodes that lack slots get them by weight; 0: 1 */
	uint32_t drift_ppm; /* how much too fast or slow a clock may run; 0: 500 */
	/* The time between two reports to the store; some reports come sooner.  0:
	 * 500 ms.  All nodes of a fleet have the same. */
	uint64_t beat_us;
	/* How long a share is kept for a node after its last report.  The node itself stops
	 * using it earlier, by beat_us and abort_us.  0: 5 times beat_us.  The nodes measure
	 * this time by their own clocks, and not by the store's. */
	uint64_t lease_us;
	/* You promise: when this node stops, dies or loses its share, its calls at the
	 * backend end within abort_us.  If they do not, the fleet's ceiling may be
	 * exceeded.  0: beat_us. */
	uint64_t abort_us;
	enum gale_on_cut_off on_cut_off;
	enum gale_parts parts;               /* of the fleet's ceiling */
	enum gale_of_estimates of_estimates; /* for laws AIMD and GRADIENT */
	uint32_t reserved;                   /* 0 */
	struct gale_on_fenced *on_fenced;    /* NULL: no hook */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};

GALE_API enum gale_err gale_guard_open_sized(struct gale_runtime *runtime,
                                             const struct gale_guard_config *config,
                                             size_t config_bytes,
                                             struct gale_guard **ret_guard);
static inline enum gale_err gale_guard_open(struct gale_runtime *runtime,
                                            const struct gale_guard_config *config,
                                            struct gale_guard **ret_guard)
{
	return gale_guard_open_sized(runtime, config, sizeof(*config), ret_guard);
}
/* Does not wait for calls in flight.  Each of them still needs its gale_exit. */
GALE_API void gale_guard_close(struct gale_guard *guard);

/* One call.  gale_exit clears it. */
struct gale_entry {
	enum gale_verdict verdict; /* GALE_ALLOW or GALE_DENY */
	enum gale_why why;         /* GALE_WHY_SLOT, or what limited the call */
	uint32_t slots;            /* slots that the call has */
	uint32_t limit;            /* the ceiling now */
	uint64_t started_ns;
	struct gale_guard *guard;
};

/* Asks whether a call may begin that takes this many slots.  Most calls take one. */
GALE_API struct gale_entry gale_enter(struct gale_seat *seat, struct gale_guard *guard,
                                      uint32_t slots, enum gale_class of_class);

/* Tells the guard that the call has ended.  Does nothing for a call that was refused. */
GALE_API void gale_exit(struct gale_seat *seat, struct gale_entry *entry,
                        enum gale_outcome outcome);

/* May grow. */
struct gale_guard_counts {
	uint64_t limit;     /* the ceiling now, in slots */
	uint64_t estimate;  /* slots that the backend can bear, as estimated */
	uint64_t in_flight; /* slots of calls in flight, plus kept */
	uint64_t kept;      /* free slots that seats keep for their next calls */
	uint64_t entered;   /* calls that were admitted */
	uint64_t ok;        /* slots of calls that ended with GALE_OK */
	uint64_t dropped;   /* the same for GALE_DROPPED */
	uint64_t ignored;   /* the same for GALE_IGNORED */
	/* Calls that were refused: the sum of refused_by.  With observe these calls were
	 * admitted, and are also counted in entered. */
	uint64_t refused;
	uint64_t overdue; /* calls that have ended, but took longer than overdue_us */
	/* Slots of overdue calls in flight.  The true number may be higher. */
	uint64_t overdue_now;
	/* How often gale_exit would have given back more slots than were taken, such as
	 * with a copied entry. */
	uint64_t exits_without_entry;
	uint64_t refused_by[GALE_WHY_ROOM]; /* by the entry's why */
	/* The fleet, as far as this node knows; all 0 without a store. */
	uint64_t share;           /* slots of this node's share */
	uint64_t fleet_limit;     /* the fleet's ceiling */
	uint64_t fleet_nodes;     /* nodes that share the ceiling */
	uint64_t fleet_in_flight; /* slots that the nodes have reported as taken */
	uint64_t cut_off;         /* 1 while this node has no share */
	uint64_t beats;           /* reports to the store that were answered */
	uint64_t beats_lost;      /* reports that were not answered */
	uint64_t fences;          /* times that this node lost its share */
	/* New fields go here, eight bytes each, and into tests/unit/abi_test.c. */
};
GALE_API enum gale_err gale_guard_stats_sized(struct gale_guard *guard,
                                              struct gale_guard_counts *ret_stats,
                                              size_t stats_bytes);
static inline enum gale_err gale_guard_stats(struct gale_guard *guard,
                                             struct gale_guard_counts *ret_stats)
{
	return gale_guard_stats_sized(guard, ret_stats, sizeof(*ret_stats));
}

#ifdef __cplusplus
}
#endif
#endif
