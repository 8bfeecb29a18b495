/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guarded.h -- a node whose calls to a backend pass a guard.
 *
 *     orders ->  node: gale_enter -> call the backend -> it has ended -> gale_exit  -> seen
 *
 * The node calls so many times a second, whatever comes of it.  Its orders and what it has seen
 * are one struct, in memory that it may share with the process which forked it.
 *
 * It keeps the promise that the fleet's bound needs: what it has at the backend ends within the
 * abort time when it has lost its share or is stopped.  For that it cancels its calls when it is
 * fenced; the backend does the rest (backend.h).
 *
 * Threads   guarded_run: the node's own thread, one for each node.
 *           The orders are the owner's to write, at any time; what is seen is the node's.
 */
#ifndef TOOLS_GUARDED_H
#define TOOLS_GUARDED_H

#include <stdatomic.h>

#include <gale/guard.h>

#include "tools/backend.h"

#define GUARDED_CALLS 4096 /* that one node may have in flight */

struct guarded_plan {
	const struct backend *backend;
	uint32_t node;             /* its number at the backend */
	const char *name;          /* in its fleet; NULL: one is made up */
	const char *store;         /* a URL; NULL: its guard is of this node alone */
	uint64_t backend_abort_us; /* as the backend was told */
	struct gale_log *log;      /* NULL: what is said tells why it cannot start */
	uint32_t sheddable_every;  /* of so many calls one is sheddable; 0: none is */
	struct gale_guard_config guard; /* its store, node and on_fenced are set here */
};

struct guarded {
	/* Orders. */
	_Atomic uint64_t calls_per_s;
	_Atomic uint64_t takes_us; /* of a call; 0: as the backend's terms say */
	_Atomic bool ends;

	/* What it has seen. */
	_Atomic bool is_ready;
	_Atomic bool has_ended;
	_Atomic uint64_t limit;       /* the guard's, in force */
	_Atomic uint64_t fleet_limit; /* as the store told it; 0: there is none */
	_Atomic uint64_t in_flight;   /* calls, as this node counts them */
	_Atomic uint64_t asked;
	_Atomic uint64_t entered;
	_Atomic uint64_t done;
	_Atomic uint64_t aborted;
	_Atomic uint64_t round_trips_us; /* the sum, of those that were done */
	_Atomic uint64_t cuts;           /* of the connection */
	_Atomic uint64_t fences;         /* times that gale told it of one */
	_Atomic uint64_t refused_by[GALE_WHY_ROOM];
	struct sentence why; /* set if guarded_run fails, before has_ended */
};

/* Until it is told to end, and all of its calls have ended.  False: why is set. */
bool guarded_run(struct guarded *guarded, const struct guarded_plan *plan);

#endif
