/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scenes.h -- what a ceiling has to live through, and how a law is held to the best fixed one.
 *
 * The oracle knows the best fixed limit of each phase, found by a scan with the same calls.
 * A law's goodput is what it had in all measured phases, in parts of what the oracle had.
 *
 * Threads   One.
 */
#ifndef SIM_SCENES_H
#define SIM_SCENES_H

#include "sim/fleet.h"
#include "sim/queue.h"

struct scene {
	const char *name;
	const char *about;
	/* lot: 0 is the scene as it is described; else its numbers are drawn. */
	void (*plan)(struct queue_plan *plan, uint64_t lot);
};

extern const struct scene scenes[];
extern const size_t scene_count;

const struct scene *scene_named(const char *name);

struct oracle_phase {
	double goodput;  /* calls a second */
	uint32_t limit;  /* the least one with 0.99 of it */
	double parts[2]; /* of it, of the classes of work */
	uint64_t p99_ns; /* with that limit */
};

struct oracle {
	struct oracle_phase phases[QUEUE_PHASES];
};

/* A scan of fixed limits over the plan. */
void oracle_scan(struct oracle *ret_oracle, struct queue *queue,
                 const struct queue_plan *plan);

struct score {
	double goodput;              /* in parts of the oracle's */
	double phases[QUEUE_PHASES]; /* the same, of each phase */
	double refused;              /* of what came */
	double p99_ratio; /* worst of the phases above 1 s, against the oracle's */
	uint64_t p99_ns;  /* of all calls */
	double
	    part; /* the lesser class, against what a half of the oracle's ceiling gets it */
	double limit_ratio; /* most of the last phase, against the oracle's */
};

void score_of(struct score *ret_score, const struct queue *queue,
              const struct oracle *oracle);

#endif
