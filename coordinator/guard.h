/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.h -- one guard: its turnstile, and what the coordinator does with them.
 *
 * Calls enter and exit by the turnstile alone.  Once in a while the coordinator looks at the
 * guard: it collects what was counted, learns from it, and puts the ceiling in force.
 *
 *     look: collect -> learn -> apply -> which cells may keep slots -> overdue calls -> when next
 *
 * Invariants
 *
 *   GUARD-1  Only the coordinator changes a word's generation, reason and ceiling, until the
 *            guard is closed.  (H4)
 *   GUARD-2  Nothing but an exit frees the slots of a call: a look reports calls that are
 *            overdue, and no more.  (H8)
 *
 * Threads   guard_init: its opener.  guard_look: the coordinator.  told: any reads it.
 *           The turnstile: as turnstile.h says.
 */
#ifndef COORDINATOR_GUARD_H
#define COORDINATOR_GUARD_H

#include <gale/gale.h>

#include "coordinator/fleet.h"
#include "coordinator/timers.h"
#include "coordinator/turnstile.h"
#include "engine/estimate.h"

struct guard;

/* The functions that the owner of a guard's memory provides. */
struct guard_ops {
	/* The coordinator has done with it. */
	void (*drop)(struct guard *self);
	/* It is closed, and the coordinator gave back the last slot, which a cell kept. */
	void (*empty)(struct guard *self);
	void (*say)(struct guard *self, enum gale_level level, const char *line);
	/* Its share is others' soon. */
	void (*fenced)(struct guard *self);
};

struct guard_config {
	const struct guard_ops *ops;
	struct turnstile_config turnstile;
	struct turnstile_cell *cells; /* cell_count and one more, all zero */
	struct fleet *fleet;          /* initialised; NULL: none */
	struct estimate_settings law; /* that are valid */
	uint64_t overdue_ns;
	uint64_t seed; /* of the instants of probes */
};

/* The slots in flight at the last look for overdue calls. */
struct overdue {
	mono since;      /* when it was looked */
	uint64_t in_use; /* slots that were in flight then ... */
	uint64_t ended;  /* ... and that had ended until then */
	bool said;       /* that some are overdue, and not that none are any more */
};

struct guard {
	struct turnstile turnstile;
	const struct guard_ops *ops;
	uint64_t overdue_ns; /* read by each exit */

	/* The coordinator's own. */
	struct timer timer;
	struct guard *next;         /* that has arrived; under the coordinator's lock */
	struct guard *next_leaving; /* the same, that goes */
	struct fleet *fleet;        /* NULL: this node alone */
	bool leaves;
	mono look_due;
	struct slots_ceilings ceilings;
	struct estimate estimate;
	uint64_t seed;
	uint16_t generation;
	uint64_t look_ns;       /* from one look to the next */
	struct tally_sum last;  /* what had been counted when it looked last ... */
	struct tally_sum begun; /* ... and when the window began */
	mono window;            /* its beginning */
	/* By each cell then, and when it was last seen to have risen. */
	uint64_t entered[TURNSTILE_CELLS_MOST];
	mono active[TURNSTILE_CELLS_MOST];
	struct overdue overdue;

	/* Any thread reads these. */
	struct {
		_Atomic uint32_t estimate;
		_Atomic uint64_t overdue; /* slots, at least */
	} told;
};

void guard_init(struct guard *guard, const struct guard_config *config, mono now);
/* Puts a fleet's grant to this node, or its fence, in force before it returns.  Without a
 * fleet the share is SLOTS_MOST.  By the coordinator. */
void guard_put_share(struct guard *guard, uint16_t generation, uint32_t share,
                     bool fenced);
/* When the next look is due. */
mono guard_look(struct guard *guard, mono now);

#endif
