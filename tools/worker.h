/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * worker.h -- one thread of one node, which asks as fast as it is answered, or as often as its part
 * of a demand says.
 *
 * Threads   worker_start, worker_join ... the thread that owns the fleet
 *           the counters ............... written by the worker, read by any
 */
#ifndef TOOLS_WORKER_H
#define TOOLS_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "tools/clock.h"
#include "tools/demand.h"
#include "tools/gate.h"
#include "tools/seen.h"
#include "tools/tally.h"

/* What all workers share. */
struct load {
	const struct fleet_clock *clock;
	struct tally *tally; /* opened before the gate is */
	struct gate gate;
	struct demand demand;
	uint32_t keys;
	uint64_t stopwatch_cost_ns; /* of reading it twice */
	_Atomic uint64_t stop_us;   /* may be moved forward, to stop early */
};

struct worker {
	/* Set before it is started. */
	struct load *load;
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	uint32_t number; /* in this process, from 0 */
	uint32_t place;  /* in the fleet, from 0, by nodes */

	/* Its own; err is the owner's to read once it waits at the gate. */
	pthread_t thread;
	struct gale_seat *seat;
	enum gale_err err;
	uint64_t random;
	uint64_t turns;
	uint64_t slot; /* of the demand, and ... */
	uint64_t made; /* ... how many of its calls in that */

	/* What it has seen so far. */
	_Atomic uint64_t allowed;
	_Atomic uint64_t denied;
	_Atomic uint64_t refused; /* of denied: those that the rule did not decide */
	_Atomic uint32_t refused_why; /* the last one's; an enum gale_why */
	_Atomic bool stuck;           /* an answer did not come; it asks no more */
	struct histogram latency_ns;
};

/* False if there can be no more threads. */
bool worker_start(struct worker *worker);
void worker_join(struct worker *worker);

/* Adds what it has seen. */
void worker_look(const struct worker *worker, struct seen *seen);

#endif
