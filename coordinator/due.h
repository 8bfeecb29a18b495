/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * due.h -- when the coordinator's next turn is due, and whether a thread wants one now.
 *
 * Invariants
 *
 *   DUE-1  A turn that a thread wants is taken after that: what an earlier turn has found to be
 *          the next instant does not overwrite the wish.
 *
 * Threads   due_now, due_reached, due_at: any.  The rest: the coordinator's.
 *
 * Ordering  The word is relaxed: what there is to do is found under locks.
 */
#ifndef COORDINATOR_DUE_H
#define COORDINATOR_DUE_H

#include "engine/clock.h"
#include "runtime/atomic.h"

#define DUE_NEVER UINT64_MAX

typedef _Atomic uint64_t due_word; /* an instant; 0: now, as a thread wants it */

static inline void due_now(due_word *due)
{
	store_relaxed(due, 0);
}

static inline mono due_at(const due_word *due)
{
	return (mono){ load_relaxed(due) };
}

static inline bool due_reached(const due_word *due, mono now)
{
	return mono_reached(now, due_at(due));
}

/* The turn begins.  True: a thread wants it. */
static inline bool due_take(due_word *due)
{
	return swap_relaxed(due, DUE_NEVER) == 0;
}

/* The turn ends.  DUE-1 */
static inline void due_set(due_word *due, mono at)
{
	uint64_t word = load_relaxed(due);

	while (word != 0 && !swap_if_relaxed(due, &word, at.ns))
		continue;
}

#endif
