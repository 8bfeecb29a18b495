/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * timers.h -- which of many instants comes first.
 *
 * A pairing heap: the links are in what is timed, so adding a timer cannot fail.
 *
 *     each timer:  due;  its first child, and its next sibling.  No child is due before it
 *
 * Threads   Their owner.
 */
#ifndef COORDINATOR_TIMERS_H
#define COORDINATOR_TIMERS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/clock.h"

struct timer {
	mono due;
	struct timer *child;
	struct timer *sibling;
	struct timer *before; /* the sibling before it, or its parent */
};

/* All zero: there are none. */
struct timers {
	struct timer *first;
};

void timers_add(struct timers *timers, struct timer *timer, mono due);
/* It is among them. */
void timers_remove(struct timers *timers, struct timer *timer);
/* The first one, if it is due; it is then no longer among them.  NULL: none is. */
struct timer *timers_take(struct timers *timers, mono now);

/* When the first is due; the end of time: there are none. */
static inline mono timers_next(const struct timers *timers)
{
	return timers->first ? timers->first->due : (mono){ UINT64_MAX };
}

#endif
