/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.h -- what is asked of several limiters at once.
 *
 * Threads   The seat's own.
 */
#ifndef FACE_WHOLE_H
#define FACE_WHOLE_H

#include <gale/hold.h>

#include "face/seat.h"

/* Each part, and its answer so far. */
struct trial {
	struct gale_seat *seat;
	const struct gale_part *parts;
	size_t count;
	uint32_t unknown; /* parts that a shard must be asked about, a bit each */
	struct purse *purses[GALE_PARTS_MAX]; /* within a read, or with a pin */
	struct gale_answer answers[GALE_PARTS_MAX];
	struct kept_units kept[GALE_PARTS_MAX];
};

/* From credit and from memory; the purses are there.  True: a part is denied, and nothing is kept.
 * Kept units are pinned if the caller asks for it, or if a shard must be asked. */
bool whole_try(struct trial *trial, bool pinned, size_t *ret_binding);
/* Asks the shards of what is unknown, and waits; for 0 it asks nobody.  All answers are there then,
 * and what is kept is pinned. */
void whole_wait(struct trial *trial, uint64_t within_us);

/* Uses what the whole takes, or holds it. */
struct gale_answer whole_ask(struct gale_seat *seat, struct gale_all *all,
                             struct gale_hold *hold, void *tag);
struct gale_answer whole_ask_and_wait(struct gale_seat *seat, struct gale_all *all,
                                      struct gale_hold *hold, uint64_t within_us);

/* ---- In hold.c ------------------------------------------------------------------- */

/* A hold of so many parts begins; then each of them, whose pin it takes over. */
void hold_begin(struct gale_hold *hold, const struct gale_seat *seat, size_t count);
void hold_put(struct gale_hold *hold, size_t i, struct gale_limiter *limiter,
              struct kept_units *kept);

/* A part of a whole is ready, and is not ours any more.  True: so is the whole. */
bool whole_complete(struct gale_seat *seat, struct pending *part,
                    struct gale_completion *ret_completion);

/* ---- In ask.c -------------------------------------------------------------------- */

/* A pending for the part, in hand; NULL: none is free. */
struct pending *ask_part(struct gale_seat *seat, const struct gale_part *part);

/* In time that patience_now_ns tells. */
uint64_t ask_deadline(uint64_t within_us);
/* The same in that of a shard, which then stops waiting for the store, too. */
mono ask_due(struct gale_seat *seat, uint64_t within_us);

#endif
