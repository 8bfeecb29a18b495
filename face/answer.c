/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* answer.c -- results become answers, reasons and errors. */
#include "face/answer.h"

/* Of a limiter that is open. */
static struct gale_answer plain(const struct gale_limiter *limiter,
                                enum gale_verdict verdict, enum gale_why why)
{
	return (struct gale_answer){
		.verdict = verdict,
		.why = why,
		.limit = load_relaxed(&limiter->lender.capacity),
	};
}

/* A seat that has left counts nothing any more, and a limiter that is closed may be gone. */
static void count_refused(struct gale_seat *seat, const struct gale_limiter *open,
                          const struct gale_answer *answer)
{
	if (!handle_is_open(&seat->handle, seat->handle.runtime))
		return;
	if (open)
		score_add(seat_score(seat, &open->lender), answer->verdict, answer->why,
		          1);
	else
		seat_count(seat, COUNT_ASTRAY);
}

struct gale_answer answer_refused(struct gale_seat *seat,
                                  const struct gale_limiter *limiter, enum gale_why why)
{
	struct gale_answer answer = { .verdict = GALE_DENY, .why = why };
	bool is_open =
	    seat && limiter && handle_is_open(&limiter->handle, seat->handle.runtime);

	if (is_open)
		answer = plain(limiter, GALE_DENY, why);
	if (seat)
		count_refused(seat, is_open ? limiter : NULL, &answer);
	return answer;
}

struct gale_answer answer_pending(const struct gale_limiter *limiter)
{
	return plain(limiter, GALE_PENDING, GALE_WHY_ASKED);
}

enum gale_err error_of(enum store_result result)
{
	switch (result) {
	case STORE_DONE:
		return GALE_ERR_OK;
	case STORE_BUSY:
		return GALE_ERR_BUSY;
	case STORE_LATE:
	case STORE_DOWN:
	case STORE_WRONG:
	case STORE_CROWDED:
	case STORE_QUARANTINE:
		return GALE_ERR_LATE;
	case STORE_BROKEN:
		return GALE_ERR_BROKEN;
	case STORE_FULL:
		return GALE_ERR_STORE_FULL;
	case STORE_NO_MEMORY:
		return GALE_ERR_MEMORY;
	case STORE_CHANGED:
		return GALE_ERR_STORE_CHANGED;
	case STORE_NOT_BOOKED:
		return GALE_ERR_NOT_BOOKED;
	}
	return GALE_ERR_STORE;
}

/* Once for each limiter and cause, so that a flood of asks is not a flood of lines. */
static void say_once(struct gale_limiter *limiter, enum store_result result)
{
	unsigned bit = 1u << result;

	if (load_relaxed(&limiter->said) & bit)
		return;
	if (or_relaxed(&limiter->said, bit) & bit)
		return;
	limiter_say(limiter, GALE_LEVEL_ERROR, gale_why_text(store_why(result)));
}

/* By the same rule for less, on a store that no other node sees.  Where another thread is at the
 * key for longer than a step takes, the answer is no, without waiting. */
static bool ask_share(struct gale_limiter *limiter, const struct store_op *op,
                      struct gale_answer *ret_answer)
{
	struct store_op own = { .verb = STORE_STEP,
		                .key = op->key,
		                .key_len = op->key_len,
		                .cost = op->cost };
	struct terms terms;

	if (!limiter->share_store || op->verb != STORE_STEP)
		return false;
	terms = lender_terms(&limiter->lender);
	own.rule = &terms.share;
	if (store_run(limiter->share_store, &own, /* patient= */ false) != STORE_DONE)
		return false;
	*ret_answer = own.answer;
	ret_answer->slot = (struct gale_slot){ 0 }; /* no other store knows the place */
	return true;
}

/* Where the rule could not decide: the policy's answer to an outage, and no to a mistake. */
static struct gale_answer undecided(struct gale_limiter *limiter,
                                    const struct store_op *op, enum store_result result)
{
	enum gale_why why = store_why(result);
	bool is_outage = gale_why_is_outage(why);
	bool allow = is_outage && limiter->on_outage == GALE_ON_OUTAGE_ALLOW;
	struct gale_answer share, answer;

	say_once(limiter, result);
	if (is_outage && ask_share(limiter, op, &share)) {
		share.why = why;
		return share;
	}
	answer = plain(limiter, allow ? GALE_ALLOW : GALE_DENY, why);
	if (!allow && result == STORE_QUARANTINE) {
		answer.retry_after_us = op->answer.retry_after_us;
		answer.reset_after_us = op->answer.reset_after_us;
	}
	return answer;
}

struct gale_answer answer_of(struct gale_limiter *limiter, const struct store_op *op,
                             enum store_result result)
{
	enum gale_why why = runtime_refuses(limiter->handle.runtime);

	if (why == GALE_WHY_FENCED || (why == GALE_WHY_CLOSED && result == STORE_BUSY))
		return plain(limiter, GALE_DENY, why); /* it came meanwhile */
	return result == STORE_DONE ? op->answer : undecided(limiter, op, result);
}

enum gale_err error_of_refusal(enum gale_why why)
{
	switch (why) {
	case GALE_WHY_RULE:
		return GALE_ERR_OK;
	case GALE_WHY_FORKED:
		return GALE_ERR_FORKED;
	case GALE_WHY_FENCED:
		return GALE_ERR_FENCED;
	case GALE_WHY_CLOSED:
		return GALE_ERR_RUNTIME;
	default:
		return GALE_ERR_LIMITER;
	}
}
