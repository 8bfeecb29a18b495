/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ask.c -- one question: checked, put to the store, answered.
 *
 *     checks -> op -> the store, at once -> answer
 *                        '- busy -> a shard -> answer, or a completion later
 *
 * Threads   Everything runs on the seat's own thread.
 */
#include <string.h>

#include "face/answer.h"
#include "face/checks.h"
#include "face/lend.h"
#include "face/seat.h"
#include "face/tenants.h"
#include "face/whole.h"
#include "runtime/clock.h"

/* An op and the bytes of its key, on the asker's stack. */
struct question {
	struct store_op op;
	uint8_t key[STORE_KEY_MAX];
};

/* The key is the name's length, the name, and the user's key: no other pair gives the
 * same bytes.  Field by field, since zeroing the rest would cost as much again. */
static void put(struct question *question, const struct gale_limiter *limiter,
                enum store_verb verb, const void *key, size_t key_len, uint64_t cost)
{
	const struct lender *lender = &limiter->lender;
	uint8_t *bytes = question->key;

	bytes[0] = lender->name_len;
	memcpy(bytes + 1, lender->name, lender->name_len);
	memcpy(bytes + 1 + lender->name_len, key, key_len);
	question->op.verb = verb;
	question->op.key = bytes;
	question->op.key_len = (uint32_t)(1 + lender->name_len + key_len);
	question->op.rule = NULL; /* set by the code that runs it */
	question->op.changes = 0;
	question->op.cost = cost;
}

/* Before the store is asked; not needed where no denial is remembered. */
static mono asked_at(struct gale_seat *seat, const struct gale_limiter *limiter)
{
	return limiter->lender.lending == LENDING_DENIALS ? seat_now(seat)
	                                                  : (mono){ 0 };
}

/* At once, or not at all.  The rule in force stays while it is read. */
static enum store_result run_here(struct gale_seat *seat, struct gale_limiter *limiter,
                                  struct store_op *op)
{
	enum store_result result;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	op->changes = load_acquire(&limiter->lender.changes);   /* changes */
	op->rule = &load_acquire(&limiter->lender.terms)->rule; /* terms */
	result = store_run(limiter->store->inner, op, /* patient= */ false);
	reader_exit(&seat->reader);
	op->rule = NULL;
	return result;
}

/* Of a limiter that remembers denials: is it known already what a shard would say? */
static enum store_result known(struct gale_seat *seat, struct gale_limiter *limiter,
                               struct store_op *op)
{
	return limiter->lender.lending == LENDING_DENIALS
	           ? local_refusal(seat, limiter, op)
	           : STORE_DONE;
}

/* The store decides, here and now if it can. */
static struct gale_answer ask_store(struct gale_seat *seat,
                                    struct gale_limiter *limiter, struct store_op *op,
                                    void *tag)
{
	mono asked = asked_at(seat, limiter);
	enum store_result result = run_here(seat, limiter, op);
	enum store_result refusal =
	    result == STORE_BUSY ? known(seat, limiter, op) : STORE_DONE;

	if (refusal != STORE_DONE)
		return answer_of(limiter, op, refusal);
	if (result == STORE_BUSY &&
	    seat_send(seat, limiter, op, tag, /* due= */ (mono){ 0 }))
		return answer_pending(limiter);
	if (limiter->lender.lending == LENDING_DENIALS && result == STORE_DONE &&
	    op->answer.verdict == GALE_DENY)
		seat_note_denial(seat, limiter, op, asked);
	return answer_of(limiter, op, result);
}

/* The shard will know, unless it is known already that it cannot. */
static struct gale_answer ask_shard(struct gale_seat *seat,
                                    struct gale_limiter *limiter, struct store_op *op,
                                    void *tag)
{
	enum store_result refusal = local_refusal(seat, limiter, op);

	if (refusal != STORE_DONE)
		return answer_of(limiter, op, refusal);
	if (seat_send(seat, limiter, op, tag, /* due= */ (mono){ 0 }))
		return answer_pending(limiter);
	seat_count(seat, COUNT_CROWDED);
	return answer_of(limiter, op, STORE_BUSY);
}

static bool is_lent(const struct gale_limiter *limiter)
{
	return limiter->lender.lending == LENDING_UNITS ||
	       limiter->lender.lending == LENDING_PLACES;
}

struct gale_answer ask_further(struct gale_seat *seat, struct gale_limiter *limiter,
                               const void *key, size_t key_len, uint64_t cost,
                               void *tag)
{
	struct question question;

	put(&question, limiter, STORE_STEP, key, key_len, cost);
	if (!is_lent(limiter))
		return ask_store(seat, limiter, &question.op, tag);
	seat_count(seat, COUNT_MISSED);
	return ask_shard(seat, limiter, &question.op, tag);
}

struct pending *ask_part(struct gale_seat *seat, const struct gale_part *part,
                         uint64_t cost)
{
	struct question question;

	put(&question, part->limiter, STORE_STEP, part->key, part->key_len, cost);
	return seat_part(seat, part->limiter, &question.op);
}

/* ---- Waiting --------------------------------------------------------------------- */

static mono after_us(mono now, uint64_t within_us)
{
	return mono_after(now, within_us > UINT64_MAX / 1000 ? UINT64_MAX
	                                                     : within_us * 1000);
}

uint64_t ask_deadline(uint64_t within_us)
{
	return after_us((mono){ patience_now_ns() }, within_us).ns;
}

mono ask_due(struct gale_seat *seat, uint64_t within_us)
{
	return after_us(seat_look(seat), within_us);
}

/* Lets a shard do it, and waits for that. */
static enum store_result settle_by_shard(struct gale_seat *seat,
                                         struct gale_limiter *limiter,
                                         struct store_op *op, uint64_t within_us)
{
	struct pending *pending;

	if (within_us == 0)
		return STORE_LATE; /* not begun, rather than begun and abandoned */
	pending =
	    seat_send(seat, limiter, op, /* tag= */ NULL, ask_due(seat, within_us));
	if (!pending)
		return STORE_BUSY;
	return seat_await(seat, pending, op, NULL, ask_deadline(within_us));
}

/* Runs the op at once, or waits for a shard to do it. */
static enum store_result settle(struct gale_seat *seat, struct gale_limiter *limiter,
                                struct store_op *op, uint64_t within_us)
{
	enum store_result result = run_here(seat, limiter, op);

	return result == STORE_BUSY ? settle_by_shard(seat, limiter, op, within_us)
	                            : result;
}

/* A reset concerns what the shard holds, too. */
static enum store_result settle_reset(struct gale_seat *seat,
                                      struct gale_limiter *limiter, struct store_op *op,
                                      uint64_t within_us)
{
	return limiter->lender.lending == LENDING_NOT
	           ? settle(seat, limiter, op, within_us)
	           : settle_by_shard(seat, limiter, op, within_us);
}

static enum store_result settle_lent(struct gale_seat *seat,
                                     struct gale_limiter *limiter, struct store_op *op,
                                     uint64_t within_us)
{
	enum store_result result;

	seat_count(seat, COUNT_MISSED);
	result = local_refusal(seat, limiter, op);
	if (result != STORE_DONE)
		return result;
	result = settle_by_shard(seat, limiter, op, within_us);
	if (result == STORE_BUSY)
		seat_count(seat, COUNT_CROWDED);
	return result;
}

static enum store_result settle_unless_known(struct gale_seat *seat,
                                             struct gale_limiter *limiter,
                                             struct store_op *op, uint64_t within_us)
{
	enum store_result result = run_here(seat, limiter, op);

	if (result != STORE_BUSY)
		return result;
	result = known(seat, limiter, op);
	return result == STORE_DONE ? settle_by_shard(seat, limiter, op, within_us)
	                            : result;
}

static enum store_result settle_step(struct gale_seat *seat,
                                     struct gale_limiter *limiter, struct store_op *op,
                                     uint64_t within_us)
{
	mono asked = asked_at(seat, limiter);
	enum store_result result;

	if (is_lent(limiter))
		return settle_lent(seat, limiter, op, within_us);
	result = settle_unless_known(seat, limiter, op, within_us);
	if (limiter->lender.lending == LENDING_DENIALS && result == STORE_DONE &&
	    op->answer.verdict == GALE_DENY)
		seat_note_denial(seat, limiter, op, asked);
	return result;
}

struct gale_answer gale_wait(struct gale_seat *seat, struct gale_limiter *limiter,
                             const void *key, size_t key_len, uint64_t cost,
                             uint64_t within_us)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	struct gale_answer answer;
	struct question question;

	if (why != GALE_WHY_RULE)
		return answer_refused(seat, limiter, why);
	if (!local_ask(seat, limiter, key, key_len, cost, &answer)) {
		put(&question, limiter, STORE_STEP, key, key_len, cost);
		answer = answer_of(limiter, &question.op,
		                   settle_step(seat, limiter, &question.op, within_us));
	}
	answer_counted(seat, limiter, key, key_len, &answer);
	return answer;
}

/* ---- Completions ----------------------------------------------------------------- */

static struct gale_completion completion_of(const struct pending *pending)
{
	const struct ask *ask = &pending->ask;

	return (struct gale_completion){
		.tag = pending->tag,
		.answer = pending->limiter
		              ? answer_of(pending->limiter, &ask->op, ask->result)
		              : shared_answer(&ask->op, ask->result),
	};
}

/* False: it is a part of a whole that is not complete yet. */
static bool complete(struct gale_seat *seat, struct pending *pending,
                     struct gale_completion *ret_completion)
{
	if (pending->whole)
		return whole_complete(seat, pending, ret_completion);
	*ret_completion = completion_of(pending);
	if (pending->limiter) {
		struct gale_part asked = whole_part(pending);

		answer_counted(seat, asked.limiter, asked.key, asked.key_len,
		               &ret_completion->answer);
	}
	seat_recycle(seat, pending);
	return true;
}

size_t gale_seat_completions(struct gale_seat *seat,
                             struct gale_completion *ret_completions, size_t max)
{
	struct pending *pending;
	size_t count = 0;

	if (!seat || !ret_completions || !seat_is_here(seat))
		return 0;
	seat_check_thread(seat);
	seat_collect(seat);
	while (count < max && (pending = seat_take_ready(seat)))
		count += complete(seat, pending, &ret_completions[count]);
	seat_raise_if_ready(seat);
	return count;
}

/* ---- Looking and correcting ------------------------------------------------------ */

static enum gale_err check_look(const struct gale_seat *seat,
                                const struct gale_limiter *limiter, const void *key,
                                size_t key_len, uint64_t cost, const void *ret)
{
	if (!seat || !handle_is_open(&seat->handle, seat->handle.runtime))
		return GALE_ERR_SEAT;
	if (!limiter || !handle_is_open(&limiter->handle, seat->handle.runtime))
		return GALE_ERR_LIMITER;
	if (!key_is_good(key, key_len))
		return GALE_ERR_KEY;
	if (!cost_is_good(cost))
		return GALE_ERR_COST;
	if (!ret)
		return GALE_ERR_RET;
	return error_of_refusal(check_handles(seat, limiter));
}

static enum gale_err look(struct gale_seat *seat, struct gale_limiter *limiter,
                          struct store_op *op, uint64_t within_us)
{
	return error_of(settle(seat, limiter, op, within_us));
}

enum gale_err gale_peek(struct gale_seat *seat, struct gale_limiter *limiter,
                        const void *key, size_t key_len, uint64_t within_us,
                        struct gale_answer *ret_answer)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, 1, ret_answer);
	struct question question;

	if (err != GALE_ERR_OK)
		return err;
	put(&question, limiter, STORE_PEEK, key, key_len, 1);
	err = look(seat, limiter, &question.op, within_us);
	if (err == GALE_ERR_OK)
		*ret_answer = question.op.answer;
	return err;
}

enum gale_err gale_forecast(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len, uint64_t cost,
                            uint64_t within_us, struct gale_outlook *ret_forecast)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, cost, ret_forecast);
	struct question question;

	if (err != GALE_ERR_OK)
		return err;
	put(&question, limiter, STORE_FORECAST, key, key_len, cost);
	err = look(seat, limiter, &question.op, within_us);
	if (err == GALE_ERR_OK)
		*ret_forecast = question.op.forecast;
	return err;
}

enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                         const void *key, size_t key_len, uint64_t within_us)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, 1, seat);
	struct question question;

	if (err != GALE_ERR_OK)
		return err;
	put(&question, limiter, STORE_RESET, key, key_len, 1);
	return error_of(settle_reset(seat, limiter, &question.op, within_us));
}

enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                          const void *key, size_t key_len, uint64_t cost,
                          uint64_t within_us, struct gale_answer *answer)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, cost, answer);
	struct question question;

	if (err != GALE_ERR_OK)
		return err;
	if (answer->slot.us == 0 && answer->slot.part == 0)
		return GALE_ERR_NOT_BOOKED;
	put(&question, limiter, STORE_CANCEL, key, key_len, cost);
	question.op.slot = answer->slot;
	answer->slot = (struct gale_slot){ 0 }; /* once, unless it was not even tried */
	err = look(seat, limiter, &question.op, within_us);
	if (err == GALE_ERR_BUSY)
		answer->slot = question.op.slot;
	return err;
}
