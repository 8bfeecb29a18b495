/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.h -- what is asked of several limiters at once.
 *
 * Threads   The seat's own.
 */
#ifndef FACE_WHOLE_H
#define FACE_WHOLE_H

#include <gale/all.h>

#include "face/seat.h"

/* A part of a whole is ready, and is not ours any more.  True: so is the whole. */
bool whole_complete(struct gale_seat *seat, struct pending *part,
                    struct gale_completion *ret_completion);

/* ---- In ask.c -------------------------------------------------------------------- */

/* A pending for the part, in hand; NULL: none is free. */
struct pending *ask_part(struct gale_seat *seat, const struct gale_part *part);

/* In time that patience_now_ns tells. */
uint64_t ask_deadline(uint64_t within_us);

#endif
