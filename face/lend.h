/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lend.h -- asks that this node answers by itself, on the seat's own thread.
 *
 * Up to ask_further nothing blocks, allocates, locks or enters the kernel.
 *
 * Threads   All of it: the seat's own.
 */
#ifndef FACE_LEND_H
#define FACE_LEND_H

#include "face/seat.h"

/* Which shard a key belongs to, and where in its table: keyed with a secret, so that
 * no way is known to choose keys that meet. */
uint64_t local_hash(const struct lender *lender, const void *key, size_t key_len);

/* From credit, from places or from memory; false if none says anything. */
bool local_ask(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
               size_t key_len, uint64_t cost, struct gale_answer *ret_answer);

/* The same from a purse that is pinned; false of a pacer's, whose block a pin does not keep. */
bool local_ask_pinned(struct gale_seat *seat, struct gale_limiter *limiter,
                      struct purse *purse, uint64_t cost,
                      struct gale_answer *ret_answer);

/* An ask with all that may become of it. */
struct gale_answer ask_at_length(struct gale_seat *seat, struct gale_limiter *limiter,
                                 const void *key, size_t key_len, uint64_t cost,
                                 void *tag);

/* Is it known that nothing can be had from the store now?  It has failed to answer lately, or
 * is in quarantine, and then op->answer says for how long; STORE_DONE: it may be asked. */
enum store_result local_refusal(struct gale_seat *seat, struct gale_limiter *limiter,
                                struct store_op *op);

/* ---- In ask.c -------------------------------------------------------------------- */

/* An ask that neither credit nor memory could answer. */
struct gale_answer ask_further(struct gale_seat *seat, struct gale_limiter *limiter,
                               const void *key, size_t key_len, uint64_t cost,
                               void *tag);

#endif
