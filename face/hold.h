/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold.h -- what the library keeps of a part in a hold of the host's (struct gale_held).
 *
 * Threads   The seat's own; a hold is one thread's at a time.
 */
#ifndef FACE_HOLD_H
#define FACE_HOLD_H

#include <gale/hold.h>

#include "engine/hold.h"
#include "face/seat.h"

/* gale_held.of_gale */
enum { HELD_LIMITER, HELD_PURSE, HELD_WORD, HELD_PAST, HELD_VOIDS };

static inline struct gale_limiter *limiter_of(const struct gale_held *held)
{
	return (struct gale_limiter *)(uintptr_t)held->of_gale[HELD_LIMITER];
}

/* NULL: the limiter's on_outage has allowed it, and nothing is held. */
static inline struct purse *purse_of(const struct gale_held *held)
{
	return (struct purse *)(uintptr_t)held->of_gale[HELD_PURSE];
}

static inline uint64_t held_voids(const struct gale_held *held)
{
	return held->of_gale[HELD_VOIDS];
}

static inline struct kept_units kept_by(const struct gale_held *held)
{
	return (struct kept_units){ purse_of(held), held->of_gale[HELD_WORD],
		                    held_voids(held) };
}

static inline struct held held_by(const struct gale_held *held)
{
	return (struct held){ held->of_gale[HELD_WORD], held->of_gale[HELD_PAST] };
}

static inline void held_keep_voids(struct gale_held *held, uint64_t voids)
{
	held->of_gale[HELD_VOIDS] = voids;
}

static inline void held_keep(struct gale_held *held, const struct held *now)
{
	held->of_gale[HELD_WORD] = now->word;
	held->of_gale[HELD_PAST] = now->past;
	held->units = held_units(now);
}

/* A hold of so many parts begins ... */
static inline void hold_begin(struct gale_hold *hold, const struct gale_seat *seat,
                              size_t count)
{
	hold->count = count;
	hold->binding = 0;
	hold->of_gale = seat->handle.runtime->node;
}

/* ... and then each of them, whose pin it takes over. */
static inline void hold_put(struct gale_hold *hold, size_t i,
                            struct gale_limiter *limiter, struct kept_units kept)
{
	struct gale_held *held = &hold->parts[i];
	struct held now = { .word = kept.purse ? kept.word : 0 };

	held->of_gale[HELD_LIMITER] = (uintptr_t)limiter;
	held->of_gale[HELD_PURSE] = (uintptr_t)kept.purse;
	held_keep_voids(held, kept.voids);
	held_keep(held, &now);
}

#endif
