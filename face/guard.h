/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.h -- the object behind a gale_guard, and where a runtime keeps its guards.
 *
 *     gale_guard:  its opener, the coordinator and the slots in use hold a reference each
 *
 * Invariants
 *
 *   HOUSE-1  A guard is listed from gale_guard_open until gale_guard_close; no two that are
 *            listed have one name.
 *   HOUSE-2  A guard lives until it is closed, the coordinator has dropped it, and its last
 *            slot is given back: an entry never points to one that is gone.
 *
 * Threads   The lists are under the runtime's lock.
 */
#ifndef FACE_GUARD_H
#define FACE_GUARD_H

#include <gale/guard.h>

#include "coordinator/coordinator.h"
#include "face/face.h"

#define GUARD_NAMES 256 /* lists, by the name's hash */

struct gale_guard {
	struct handle handle;
	alignas(CACHE_LINE) uint64_t token; /* of its runtime's lifeline */
	alignas(WET_ALIGN) struct guard guard;
	struct turnstile_cell *cells;
	struct fleet *fleet; /* NULL, and so the next two: this node alone */
	struct gale_store *store;
	struct gale_on_fenced *on_fenced;
	char name[GALE_NAME_MAX + 1];
	struct list place;     /* among all */
	struct list same_hash; /* among those whose names have one hash */
};

static_assert(!IS_WET(struct gale_guard, token) &&
                  !IS_WET(struct gale_guard, guard.overdue_ns),
              "see hot.h");

/* Made when the first guard is opened, or the first budget that is shared. */
struct guardhouse {
	struct coordinator coordinator;
	struct list guards;
	struct list names[GUARD_NAMES];
};

/* The seat leaves: what its cells keep goes back. */
void guards_leave(struct gale_runtime *runtime, uint32_t seat_number) ON(runtime->lock);

/* Those that are open, one after the other; NULL: no more. */
const struct gale_guard *guards_first(const struct gale_runtime *runtime)
    ON(runtime->lock);
const struct gale_guard *guards_next(const struct gale_runtime *runtime,
                                     const struct gale_guard *guard) ON(runtime->lock);

void guard_fill_counts(const struct gale_guard *guard,
                       struct gale_guard_counts *counts);

/* ---- Of the runtime --------------------------------------------------------------- */

/* There is one from then on, with this coordinator. */
enum gale_err guardhouse_found(struct gale_runtime *runtime,
                               struct coordinator **ret_coordinator);
/* It ends, if there is one; guardhouse_close waits for that. */
void guardhouse_tell_to_close(struct gale_runtime *runtime);
void guardhouse_close(struct gale_runtime *runtime);
void guardhouse_free(struct gale_runtime *runtime);

/* A turn, and how long until the next; 0 and UINT64_MAX: there is none. */
uint64_t guardhouse_turn(struct gale_runtime *runtime) ON(actor_role);
uint64_t guardhouse_turn_after_ns(const struct gale_runtime *runtime);

#endif
