/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trial.h -- what several limiters let a call take from credit: all of it, or nothing.
 *
 *     purses, costs -> is one known to deny? -> take each -> all of them
 *                                                        |-> one denies: put back
 *                                                        '-> some lack credit: pin the others
 *
 * This is the long way of a call: every case that the straight way (straight.h) leaves out.
 *
 * Threads   The seat's own: within a grace period, or with a pin on each purse.
 */
#ifndef FACE_TRIAL_H
#define FACE_TRIAL_H

#include <gale/hold.h>

#include "face/quick.h"
#include "face/seat.h"
#include "shards/kept.h"

/* A part, and what it has taken. */
struct trial_part {
	struct gale_limiter *limiter;
	uint64_t cost;
	struct purse *purse; /* NULL: there is none */
	uint64_t voids;      /* of the purse, before anything was taken */
	struct told told;    /* of what was taken, or of what denies */
	struct kept_units
	    kept; /* what was taken, pinned; no purse: nothing can go back */
};

struct trial {
	struct gale_seat *seat;
	const struct gale_part *named; /* limiters and keys, for a shard */
	mono now;
	size_t count;
	size_t binding;   /* the part that denies */
	uint32_t unknown; /* parts that a shard must be asked about, a bit each */
	struct trial_part parts[GALE_PARTS_MAX];
	struct gale_answer answers[GALE_PARTS_MAX]; /* of the binding part; of each,
	                                               when shards were asked */
};

static inline bool trial_has_taken(const struct trial *trial, size_t i)
{
	return !(trial->unknown & UINT32_C(1) << i);
}

/* From credit and from memory; the seat, the time, limiters, costs and purses are there.  A part that
 * is known to be denied spares the others: none of them is taken.  For a hold what is taken is
 * pinned.  False: a part is denied, and nothing is taken. */
bool trial_take(struct trial *trial, bool holds);
/* A shard must be asked about others: what has been taken is kept, and pinned, as it is already for
 * a hold.  A purse that is about to be evicted cannot be: then what was taken stays taken. */
void trial_keep(struct trial *trial, bool holds);
/* The answers of those that have taken. */
void trial_tell_taken(struct trial *trial);

#endif
