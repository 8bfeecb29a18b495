/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * answer.h -- what a store's result means to the one who asked.
 *
 * Threads   Any, at once.
 */
#ifndef FACE_ANSWER_H
#define FACE_ANSWER_H

#include "face/face.h"

/* Denied before any store was asked, whatever the limiter's policy.  Either may be NULL, closed,
 * or of another runtime. */
struct gale_answer answer_refused(const struct gale_seat *seat,
                                  const struct gale_limiter *limiter,
                                  enum gale_why why);

/* The answer is to come. */
struct gale_answer answer_pending(const struct gale_limiter *limiter);

/* The rule's answer, or the policy's where the rule could not give one. */
struct gale_answer answer_of(struct gale_limiter *limiter, const struct store_op *op,
                             enum store_result result);

/* The same as errors, for those who look and correct. */
enum gale_err error_of_refusal(enum gale_why why);
enum gale_err error_of(enum store_result result);

#endif
