/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * estimate.h -- how many calls a backend can work on at once, learned from its answers.
 *
 * A guard counts what happens in a window of time and hands the counts over when the window
 * ends.  The estimate answers with a limit.  A single answer is a window too, with ok 1.
 *
 *     a call ends      ->  the guard counts it; estimate_due says whether the window ends now
 *     a window ends    ->  estimate_learn, with the ceiling that was in force
 *     a call arrives   ->  estimate_ceiling says how many may be in flight now
 *
 *     law        limit                                                     after
 *     KNEE       what the backend works on without a queue, and some more;
 *                less when the upper part of the limit buys no throughput   BBR; Protego
 *     FIXED      start
 *     AIMD       one more a window; a tenth less when answers are late      TCP Reno
 *     GRADIENT   the limit times (best round trip / round trip), plus its
 *                root                                                      Netflix, Envoy
 *
 * A probe is a short time at a lower limit.  KNEE measures by it whether the upper part of
 * the limit buys throughput, or what a round trip takes without a queue; GRADIENT, what the
 * best round trip is.  A guard alone probes at instants of its own.  In a fleet the nodes must
 * probe together, or the queue at the backend stays as it is: then estimate_probe_at says when.
 *
 * Invariants
 *
 *   ESTIMATE-1  The limit is within floor and ceiling; what admits is at most the limit, and at
 *               least 1, but for a probe of a fleet, which may leave a small share nothing.
 *   ESTIMATE-2  The limit grows only after a window in which the ceiling in force was in the
 *               way: half of it or more was in flight, and for KNEE a call was refused.  A
 *               guard that is idle or hardly used keeps its limit.  ESTIMATE-7 is the exception.
 *   ESTIMATE-3  Drops may lower the limit in any window; they are never a round trip.
 *   ESTIMATE-4  A probe ends at an instant, whatever is answered until then.
 *   ESTIMATE-5  Utilisation is measured against the ceiling in force, not against the limit: in
 *               a fleet the share is the smaller one.
 *   ESTIMATE-6  A node of a fleet that has had no answer has no say in what the ceiling of AIMD
 *               and GRADIENT is, and begins with the fleet's: a node that joins lowers nothing.
 *   ESTIMATE-7  A window in which nothing was in flight, and a call wanted more slots than all of
 *               the ceiling in force, raises the limit to what that call wants, within the
 *               ceiling.  Else no window would ever have an answer to learn from.  Where other
 *               calls enter, the law learns from these, and nothing is raised.
 *
 * Threads   Pure: any, on different states.
 */
#ifndef ENGINE_ESTIMATE_H
#define ENGINE_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

enum estimate_law {
	ESTIMATE_KNEE, /* unless there is a reason */
	ESTIMATE_FIXED,
	ESTIMATE_AIMD,
	ESTIMATE_GRADIENT,
};

#define ESTIMATE_START_DEFAULT 20
#define ESTIMATE_FLOOR_DEFAULT 1
#define ESTIMATE_CEILING_DEFAULT 1000
#define ESTIMATE_PROBE_DEFAULT 1
#define ESTIMATE_MOST 1048575 /* slots; products of it stay below 2^64 */

/* All zero is KNEE with its defaults. */
struct estimate_settings {
	enum estimate_law law;
	uint32_t start;   /* 0: START_DEFAULT, or what floor and ceiling leave of it */
	uint32_t floor;   /* 0: FLOOR_DEFAULT */
	uint32_t ceiling; /* 0: CEILING_DEFAULT, or start or floor if they are more */
	uint32_t probe; /* slots that a probe leaves open at least; 0: PROBE_DEFAULT */
};

enum estimate_error {
	ESTIMATE_VALID,
	ESTIMATE_BAD_LAW,
	ESTIMATE_BAD_CEILING, /* above ESTIMATE_MOST */
	ESTIMATE_BAD_FLOOR,   /* above the ceiling */
	ESTIMATE_BAD_START,   /* below the floor, or above the ceiling */
	ESTIMATE_BAD_PROBE,   /* above the ceiling */
};

/* The calls between two instants of this node's clock. */
struct estimate_window {
	uint64_t now_ns; /* its end */
	uint64_t length_ns;
	uint32_t ok;         /* calls that ended so */
	uint32_t dropped;    /* timed out, or refused by the backend: no round trip */
	uint32_t ignored;    /* say nothing */
	uint32_t refused;    /* by the guard */
	uint64_t rtt_sum_ns; /* of the OK calls */
	uint32_t in_flight_peak;
	/* The limit that lets in a call for which all of the ceiling in force is too small; 0:
	 * there was none. */
	uint32_t kept_out;
	uint64_t in_flight_time; /* slots in flight times ns, summed over the window */
};

enum estimate_probe {
	ESTIMATE_PROBE_NONE,
	ESTIMATE_PROBE_SLOPE, /* KNEE: does the upper part buy throughput? */
	ESTIMATE_PROBE_DRAIN, /* what is a round trip without a queue? */
};

enum estimate_phase {
	ESTIMATE_STEADY,
	ESTIMATE_DRAINING, /* at the lower limit; what was queued is still on its way */
	ESTIMATE_MEASURING, /* at the lower limit; windows say how it is there */
};

/* Counts of several windows. */
struct estimate_sum {
	uint64_t ok;
	uint64_t refused;
	uint64_t rtt_sum_ns;
	uint64_t length_ns;
	uint64_t flight_time; /* slots in flight times ns */
};

/* Of KNEE.  Rates are calls in 1000 s. */
struct estimate_knee {
	uint64_t rate;    /* delivered, smoothed; 0: unknown */
	uint64_t lately;  /* the same, over two beats */
	uint64_t knee_ns; /* round trip without a queue; 0: unknown */
	uint64_t cap;     /* slots times 256: what the slope test lets through */
	uint64_t forced;  /* slots times 256: the ceiling in force before this probe */
	uint64_t rtt_ns;  /* smoothed */
	uint64_t
	    pays; /* of what is reported as busy, in parts of 65536; a fleet's cap */
	uint64_t
	    full; /* of the ceiling in force what was in flight, smoothed; of 65536 */
	uint32_t in_force;             /* in the last window */
	struct estimate_sum high, low; /* of slope probes: before them, and during */
	struct estimate_sum before;    /* steady windows since the last probe */
	uint32_t probes;               /* so far */
	bool limited;                  /* a call was refused in the last window */
};

/* Of AIMD and GRADIENT: the best round trip lately. */
struct estimate_base {
	uint64_t mean_ns;  /* of the last answers */
	uint64_t answers;  /* that it stands on, as far as it matters */
	uint64_t now_ns;   /* the least of it in this period; 0: none yet */
	uint64_t last_ns;  /* in the one before */
	uint64_t turns_ns; /* when this period ends */
};

/* The fields are for the functions below; a guard reads what they return. */
struct estimate {
	struct estimate_settings set; /* with its defaults filled in */
	uint64_t limit;               /* slots times 256 */
	uint64_t rtt_ns; /* mean of the last window with answers; 0: none */
	enum estimate_phase phase;
	enum estimate_probe which; /* that is running, or comes next */
	uint64_t group_limit;      /* L of a fleet; 0: this node is all */
	bool aligned;              /* instants of probes come from outside */
	uint64_t round;       /* sixteenths of a slot that the probe lets through */
	uint64_t probe_at_ns; /* UINT64_MAX: none is planned */
	uint64_t
	    later_ns; /* the probe after that one, if it was told already; UINT64_MAX */
	enum estimate_probe later;
	uint64_t phase_ends_ns;     /* ESTIMATE-4 */
	struct estimate_sum during; /* windows of this probe */
	struct estimate_knee knee;
	struct estimate_base base;
};

/* What a fleet adds up over its nodes. */
struct estimate_report {
	uint64_t rate;    /* delivered calls in 1000 s */
	uint64_t knee_ns; /* 0: not measured yet */
	uint64_t busy; /* slots times 256 that are at work without a queue: rate times
	                  knee, and less where they do not pay or are always full */
	uint32_t cap;  /* slots of this node that the slope test lets through */
	bool limited;  /* something was refused in the last window */
};

enum estimate_error estimate_check(const struct estimate_settings *settings);

/* On an error *ret_estimate stays as it is. */
enum estimate_error estimate_init(struct estimate *ret_estimate,
                                  const struct estimate_settings *settings);

/* Has the window gone on for long enough?  Ask when a call ends and at estimate_next_ns. */
bool estimate_due(const struct estimate *estimate,
                  const struct estimate_window *so_far);

/* When a probe begins or ends, if nothing happens before; UINT64_MAX: never. */
uint64_t estimate_next_ns(const struct estimate *estimate);

/* in_force: the ceiling that admitted in the window but for a probe, min(share, limit).
 * random: 64 bits, for the instant of the next probe. */
void estimate_learn(struct estimate *estimate, const struct estimate_window *window,
                    uint32_t in_force, uint64_t random);

/* From now on probes begin when they are told to: a node of a fleet.  One that is still to
 * come, or runs, stays; the new one is the one after it.  NONE: no more probes. */
void estimate_probe_at(struct estimate *estimate, uint64_t when_ns,
                       enum estimate_probe which);

/* The same, of a probe that the store of a fleet has numbered; there is one each every_ns.  Of
 * probes that last too long for that, each second, fourth, ... takes place: nodes whose round
 * trips are alike choose alike. */
void estimate_probe_told(struct estimate *estimate, uint64_t number, uint64_t when_ns,
                         uint64_t every_ns);

/* Sets the ceiling of the whole fleet, as the node was told it last.  ESTIMATE-6 */
void estimate_group_limit(struct estimate *estimate, uint64_t limit);

/* Which probe of a fleet, or of a node, has that number. */
enum estimate_probe estimate_probe_of(uint64_t number);

/* From now on by its own instants again: a node that is alone. */
void estimate_probe_alone(struct estimate *estimate);

/* What was learned; a probe does not change it. */
uint32_t estimate_limit(const struct estimate *estimate);

/* The same as a node tells it to its fleet.  0: nothing was learned yet.  ESTIMATE-6 */
uint32_t estimate_told(const struct estimate *estimate);

/* The ceiling now: the share or the limit, or a part of that while a probe runs. */
uint32_t estimate_ceiling(const struct estimate *estimate, uint32_t share);

struct estimate_report estimate_report(const struct estimate *estimate);

/* ---- For the files of the laws, and for tests ------------------------------------- */

#define ESTIMATE_Q8 256

/* Within floor and ceiling. */
uint64_t estimate_clamp(const struct estimate *estimate, uint64_t limit_q8);
/* Calls in 1000 s; 0 for a window without length. */
uint64_t estimate_rate(uint64_t ok, uint64_t length_ns);
uint64_t estimate_root(uint64_t square);
/* Was half of the ceiling in force in flight or more, or a call refused? */
bool estimate_used(const struct estimate_window *window, uint32_t in_force);
/* How long a probe's two phases last. */
uint64_t estimate_drain_ns(const struct estimate *estimate);
uint64_t estimate_measure_ns(const struct estimate *estimate);

void estimate_add(struct estimate_sum *sum, const struct estimate_window *window);

void knee_init(struct estimate *estimate);
void knee_learn(struct estimate *estimate, const struct estimate_window *window,
                uint32_t in_force);
/* A probe is over: estimate->during says how it was. */
void knee_probed(struct estimate *estimate);
/* Sixteenths of the ceiling that a probe leaves open. */
uint32_t knee_probe_part(enum estimate_probe which);
uint64_t knee_busy(const struct estimate *estimate);
/* The part of the estimate that a node reports to its fleet. */
uint64_t knee_reported(const struct estimate *estimate);

void aimd_learn(struct estimate *estimate, const struct estimate_window *window,
                uint32_t in_force);
void gradient_learn(struct estimate *estimate, const struct estimate_window *window,
                    uint32_t in_force);
void gradient_probed(struct estimate *estimate, uint64_t now_ns);

#endif
