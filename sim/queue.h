/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * queue.h -- a backend in virtual time, and the guards in front of it.
 *
 *     Poisson arrivals -> node -> guard -> queue (first come, first served) -> servers
 *                                   |                                            |
 *                                   +- refused                     ended: OK or dropped
 *
 * Phases say how many calls come, how long work takes and how the backend fails.  Arrivals
 * and service follow from the seed, apart from the guards: another law meets the same calls.
 *
 * Threads   One.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "sim/laws.h"
#include "sim/random.h"

#define QUEUE_PHASES 8
#define QUEUE_NODES 32
#define QUEUE_FLIGHT 65536 /* calls at the backend at once, at most */
#define QUEUE_OCTAVES 44
#define QUEUE_PARTS 32 /* of an octave of latency */
#define QUEUE_TICKS 4096

enum queue_service {
	SERVICE_CONSTANT,
	SERVICE_EXPONENTIAL,
	SERVICE_BIMODAL, /* 1/5 of the mean, and for one in ten 82/10 of it */
};

enum queue_mode {
	MODE_WORKS,
	MODE_HANGS, /* each call is given up after the timeout */
	MODE_FAILS, /* each call fails after 1 ms */
};

struct queue_phase {
	uint64_t begins_ns;
	double arrivals;      /* a second */
	uint64_t mean_ns;     /* of service, at the beginning of the phase */
	uint64_t mean_end_ns; /* at its end; 0: the same */
	enum queue_mode mode;
	uint32_t servers; /* 0: the plan's */
};

struct queue_plan {
	uint64_t seed;
	uint32_t servers;
	uint32_t contention; /* in flight above which service slows down; 0: never */
	enum queue_service service;
	struct queue_phase phases[QUEUE_PHASES];
	uint32_t phase_count;
	uint64_t ends_ns;
	uint64_t slo_ns;
	uint64_t timeout_ns;
	uint64_t tick_ns; /* of the series */
	uint32_t nodes;
	uint32_t costs
	    [2]; /* of the calls of even and odd nodes, if not 0: parts of the mean */
	uint64_t
	    turns_ns; /* demand comes to even, then to odd nodes, so long; 0: to all */
	const struct law *law;
	struct estimate_settings settings;
	const struct queue_fleet *fleet; /* NULL: each node is alone */
};

/* What hands out shares; sim/fleet.h. */
struct queue;
struct queue_fleet {
	void (*open)(struct queue *queue);
	/* Called at instants that it asks for by setting queue->fleet_at_ns. */
	void (*turn)(struct queue *queue, uint64_t now_ns);
	/* A node has refused a call. */
	void (*refused)(struct queue *queue, uint32_t node, uint64_t now_ns);
	/* So many are in flight now. */
	void (*admitted)(struct queue *queue, uint32_t in_flight);
};

/* Calls that arrived in a phase. */
struct queue_count {
	uint64_t offered;
	uint64_t refused;
	uint64_t ok;
	uint64_t good;       /* ended OK within the objective */
	uint64_t good_of[2]; /* by even and odd nodes */
	uint64_t offered_of[2];
	uint32_t limit_most; /* of the sum of ceilings */
	uint32_t limit_least;
	uint32_t flight_most;
	uint32_t latency[QUEUE_OCTAVES * QUEUE_PARTS];
};

struct queue_tick {
	uint32_t good; /* by when they ended */
	uint32_t limit;
	uint32_t flight;
	uint32_t latency_us; /* mean */
};

struct queue_node {
	union guard guard;
	uint32_t share;
	uint32_t in_flight;
	uint64_t refused;
};

struct queue {
	const struct queue_plan *plan;
	struct queue_node nodes[QUEUE_NODES];
	struct queue_count counts[QUEUE_PHASES];
	struct queue_tick ticks[QUEUE_TICKS];
	uint32_t tick_count;
	uint64_t fleet_at_ns;
	void *fleet_state;
	struct chance chance; /* of the guards and of the fleet */
};

/* Plays the plan to its end. */
void queue_play(struct queue *queue, const struct queue_plan *plan, void *fleet_state);

/* Nanoseconds that so many thousandths of the OK calls of a phase did not exceed. */
uint64_t queue_latency(const struct queue_count *count, uint32_t thousandths);

#endif
