/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * answer.h -- the meaning of a store's result for the caller.
 *
 * Threads   answer_refused, answer_counted: the seat's own.  The others: any, at once.
 */
#ifndef FACE_ANSWER_H
#define FACE_ANSWER_H

#include "face/offences.h"
#include "face/seat.h"

/* The seat tells it, as the last word to an ask about a limiter that is listed. SCORE-3 */
static inline void answer_counted(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len,
                                  const struct gale_answer *answer)
{
	struct score *score = seat_score(seat, &limiter->lender);

	if (answer->verdict == GALE_DENY)
		offence_note(limiter, score, answer->why, key, key_len);
	score_add(score, answer->verdict, answer->why, 1);
}

/* Denied before any store was asked, whatever the limiter's policy, and counted.  Either may be
 * NULL, closed, or of another runtime. */
struct gale_answer answer_refused(struct gale_seat *seat,
                                  const struct gale_limiter *limiter,
                                  enum gale_why why);

/* The answer is to come. */
struct gale_answer answer_pending(const struct gale_limiter *limiter);

/* The rule's answer, or the policy's where the rule could not give one. */
struct gale_answer answer_of(struct gale_limiter *limiter, const struct store_op *op,
                             enum store_result result);

/* The same as errors, for calls that look and correct. */
enum gale_err error_of_refusal(enum gale_why why);
enum gale_err error_of(enum store_result result);

#endif
