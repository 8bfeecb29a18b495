/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offences.h -- keys that a limiter's rule refuses, noted in the limiter's table.
 *
 * Most refusals are not noted (OFFENDERS-3): those cost a look at the seat's own count.  One
 * that finds the table in use, by another seat or by a reader, is not noted either.
 *
 * Threads   The seat's own.
 */
#ifndef FACE_OFFENCES_H
#define FACE_OFFENCES_H

#include "face/face.h"
#include "runtime/hot.h"

/* Of the refusals that this counts, in a limiter's score, so many were before. */
static ALWAYS_INLINE uint64_t offence_weight(const struct score *score,
                                             enum gale_why why)
{
	return offenders_weight(load_relaxed(&score->counts[why][0]));
}

/* Is the next refusal from memory to be noted? */
static ALWAYS_INLINE bool offence_is_noted(const struct score *score)
{
	return offence_weight(score, GALE_WHY_SPENT) > 0;
}

void offence_note_as(struct gale_limiter *limiter, const void *key, size_t key_len,
                     uint64_t weight);

/* A refusal that is about to be counted there. */
static inline void offence_note(struct gale_limiter *limiter, const struct score *score,
                                enum gale_why why, const void *key, size_t key_len)
{
	bool is_by_rule =
	    why == GALE_WHY_RULE || why == GALE_WHY_SPENT || why == GALE_WHY_TOO_MUCH;
	uint64_t weight = is_by_rule ? offence_weight(score, why) : 0;

	if (weight > 0)
		offence_note_as(limiter, key, key_len, weight);
}

#endif
