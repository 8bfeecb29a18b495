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
 * as its ceiling says.  A call that finds none is refused at once, and its entry says what
 * limited it.
 *
 * Threads   As gale.h says of seats and handles.  An entry may be exited by any thread,
 *           with the seat of that thread.  Different threads must not use one entry at the
 *           same time.
 * Blocking  gale_enter and gale_exit wait for nothing.
 * Entries   Every entry with the verdict GALE_ALLOW needs one gale_exit.  No deadline frees
 *           its slots before.  gale_exit clears the entry, so a second exit changes nothing,
 *           and is counted.  Do not copy an entry: a copy that is exited, too, gives back
 *           slots that another call has.
 * Time      A round trip is measured by the clock of the seats, at gale_enter and gale_exit.
 *           With gale_tick it is as exact as the ticks are close.
 */
#ifndef GALE_GUARD_H
#define GALE_GUARD_H

#include <gale/gale.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_SLOTS_MAX 1000000 /* of a ceiling */

/* Who is refused first. */
enum gale_class {
	GALE_NORMAL,
	GALE_SHEDDABLE, /* sees a part of the ceiling only */
};

/* How a call has ended. */
enum gale_outcome {
	GALE_OK,
	GALE_DROPPED, /* it timed out, or the backend refused it for want of capacity */
	GALE_IGNORED, /* says nothing of the backend, such as a mistake of the caller */
};

struct gale_guard;

/* How the ceiling is found. */
enum gale_law {
	GALE_KNEE, /* learned: as many calls as the backend works on without a queue, and
	              some more */
	GALE_FIXED,    /* ceiling, which must be given */
	GALE_AIMD,     /* learned: one more at a time; less when answers are late */
	GALE_GRADIENT, /* learned: less as round trips get longer than the shortest */
};

/* What a node admits that has lost touch with its fleet. */
enum gale_on_cut_off {
	GALE_ON_CUT_OFF_DENY,
	GALE_ON_CUT_OFF_OWN, /* what it has learned by itself: the fleet's bound is lost */
};

/* How a fleet's ceiling is parted among its nodes. */
enum gale_parts {
	GALE_BY_DEMAND, /* a node that uses less leaves the rest to others */
	GALE_BY_WEIGHT, /* whatever they use */
};

/* What the fleet's ceiling is, where each node has an estimate of it. */
enum gale_of_estimates {
	GALE_MEDIAN, /* the lower one */
	GALE_LEAST,
};

/* A hook of the host, which must outlive the guard. */
struct gale_on_fenced {
	/* This node's share is not its own any more: whatever is in flight must end within
	 * abort_us.  It is called on a thread of gale, and must not call gale. */
	void (*fenced)(struct gale_on_fenced *self, struct gale_guard *guard);
};

/* May grow. */
struct gale_guard_config {
	const char *name; /* guards of one runtime have different names */
	enum gale_law law;
	uint32_t start;              /* slots that it begins with; 0: 20 */
	uint32_t floor;              /* slots at least; 0: 1 */
	uint32_t ceiling;            /* slots at most, up to GALE_SLOTS_MAX; 0: 1000 */
	uint32_t probe;              /* slots that a probe leaves open at least; 0: 1 */
	uint32_t sheddable_permille; /* of the ceiling, for sheddable calls; 0: 900 */
	uint32_t slots_most_permille; /* of the ceiling, for one call, which may always
	                                 have one slot; 0: 500 */
	/* Refuses nothing, and counts what it would have refused.  The verdict is then
	 * GALE_ALLOW, and why is what would have refused the call. */
	bool observe;
	/* A call that takes longer is counted and logged, and no more; 0: a minute. */
	uint64_t overdue_us;

	/* One ceiling for all nodes that share the backend.  NULL: this node alone. */
	struct gale_store *store;
	const char *node;   /* this node's name in the fleet; NULL: one is made up */
	uint32_t weight;    /* of its share against other nodes'; 0: 1 */
	uint32_t drift_ppm; /* how wrong the speed of a clock may be; 0: 500 */
	uint64_t beat_us;   /* from one report to the store to the next; 0: 500 ms */
	uint64_t lease_us;  /* how long a share is good without one; 0: 4 beats */
	/* What a node has at the backend ends within abort_us when the node is stopped or
	 * dead, or loses its share.  The bound of the fleet needs that; 0: one beat. */
	uint64_t abort_us;
	enum gale_on_cut_off on_cut_off;
	enum gale_parts parts;               /* of the fleet's ceiling */
	enum gale_of_estimates of_estimates; /* GALE_AIMD, GALE_GRADIENT */
	uint32_t reserved;                   /* 0 */
	struct gale_on_fenced *on_fenced;    /* NULL: nobody is told */
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
/* Waits for no call.  Entries of calls in flight stay good, and are exited as always. */
GALE_API void gale_guard_close(struct gale_guard *guard);

/* One call; to be cleared by gale_exit. */
struct gale_entry {
	enum gale_verdict verdict; /* GALE_ALLOW or GALE_DENY */
	enum gale_why why;         /* GALE_WHY_SLOT, or what limited it */
	uint32_t slots;            /* that it has */
	uint32_t limit;            /* the ceiling in force */
	uint64_t started_ns;
	struct gale_guard *guard;
};

/* May a call with so many slots begin?  Most calls take one. */
GALE_API struct gale_entry gale_enter(struct gale_seat *seat, struct gale_guard *guard,
                                      uint32_t slots, enum gale_class of_class);

/* The call has ended.  Does nothing for an entry that was refused. */
GALE_API void gale_exit(struct gale_seat *seat, struct gale_entry *entry,
                        enum gale_outcome outcome);

/* May grow. */
struct gale_guard_counts {
	uint64_t limit;     /* the ceiling in force, in slots */
	uint64_t estimate;  /* what the backend can bear, as far as it was learned */
	uint64_t in_flight; /* slots that are taken, those that are kept included */
	uint64_t kept;      /* free slots that seats keep for their next calls */
	uint64_t entered;   /* calls */
	uint64_t ok;        /* slots of calls that ended so */
	uint64_t dropped;
	uint64_t ignored;
	uint64_t
	    refused; /* calls: the sum of refused_by; if it observes, counted only */
	uint64_t overdue; /* calls that ended, and had taken longer than overdue_us */
	uint64_t overdue_now; /* slots or more that such calls have now */
	/* Exits of entries that were none: copies of entries that had been exited. */
	uint64_t exits_without_entry;
	uint64_t refused_by[GALE_WHY_ROOM]; /* by the entry's why */
	/* Of a fleet, as this node was told last; 0 without a store. */
	uint64_t share;           /* of the fleet's ceiling */
	uint64_t fleet_limit;     /* the fleet's ceiling */
	uint64_t fleet_nodes;     /* that live */
	uint64_t fleet_in_flight; /* slots, as they have reported */
	/* 1: this node has no share now.  It is told by this node's clock, also while gale's
	 * own thread gets no processor and on_fenced is late. */
	uint64_t cut_off;
	uint64_t beats; /* that were answered */
	uint64_t beats_lost;
	uint64_t fences; /* how often it was cut off */
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
