/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.h -- what is asked of several limiters at once.
 *
 * Threads   The seat's own.
 */
#ifndef FACE_WHOLE_H
#define FACE_WHOLE_H

#include "face/trial.h"

/* Asks the shards of what is unknown, and waits; for 0 it asks none.  All answers are there then,
 * and what is kept is pinned. */
void whole_wait(struct trial *trial, uint64_t within_us);

/* Holds what the whole takes.  within_us NULL: what a shard must be asked comes later, with the tag;
 * else it is waited for. */
struct gale_answer whole_hold(struct gale_seat *seat, struct gale_all *all,
                              struct gale_hold *hold, void *tag,
                              const uint64_t *within_us);

/* A part of a whole is ready, and is not ours any more.  True: so is the whole. */
bool whole_complete(struct gale_seat *seat, struct pending *part,
                    struct gale_completion *ret_completion);

/* The part that was asked for, of a pending one. */
static inline struct gale_part whole_part(const struct pending *pending)
{
	const struct store_op *op = &pending->ask.op;
	uint32_t skip = 1u + pending->limiter->lender.name_len;

	return (struct gale_part){ .limiter = pending->limiter,
		                   .key = op->key + skip,
		                   .key_len = op->key_len - skip };
}

/* ---- In ask.c -------------------------------------------------------------------- */

/* A pending for the part at that cost, in hand; NULL: none is free. */
struct pending *ask_part(struct gale_seat *seat, const struct gale_part *part,
                         uint64_t cost);

/* In time that patience_now_ns tells. */
uint64_t ask_deadline(uint64_t within_us);
/* The same in that of a shard, which then stops waiting for the store, too. */
mono ask_due(struct gale_seat *seat, uint64_t within_us);

#endif
