/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * want.h -- how many slots a node of a group wants, and whether it has too few.
 *
 * A node notes both at each beat, and reports them (engine/group.h: demand, limited).
 *
 *     in use    ____          ____          beats come as they like, and so do bursts of calls
 *              |    |________|    |____
 *     demand   ____.         ____.
 *              |    ''..____|    ''..__     up at once, down within WANT_BEATS
 *
 * Invariants  WANT-1  A node that comes to want slots says so at its next beat, and that it does
 *                     not want them any more within WANT_BEATS.  So its share moves to others
 *                     and back at most once in twice that time, however fast its calls come and
 *                     go: a hold time, where that is a lease of four beats.
 *
 * Threads   Pure: any, on different states.
 */
#ifndef ENGINE_WANT_H
#define ENGINE_WANT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/clock.h"

#define WANT_BEATS 2

/* All zero but .noted when new. */
struct want {
	uint64_t demand; /* slots times 256 */
	mono noted;
	mono until; /* until then it counts as limited */
};

/* At a beat.  limited: something was refused for want of share since the last one. */
void want_note(struct want *want, uint32_t in_use, bool limited, uint64_t beat_ns,
               mono now);

uint32_t want_demand(const struct want *want);
bool want_is_limited(const struct want *want);

#endif
