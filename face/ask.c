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
#include "face/seat.h"
#include "runtime/clock.h"

/* May anything be asked with these handles?  GALE_WHY_RULE if so. */
static enum gale_why check_handles(const struct gale_seat *seat,
                                   const struct gale_limiter *limiter)
{
	const struct gale_runtime *runtime;

	if (!seat || !limiter || limiter->handle.runtime != seat->handle.runtime)
		return GALE_WHY_BAD_ASK;
	runtime = seat->handle.runtime;
	if (!handle_is_open(&seat->handle, runtime) ||
	    !handle_is_open(&limiter->handle, runtime))
		return GALE_WHY_CLOSED;
	seat_check_thread(seat);
	return runtime_refuses(runtime);
}

static bool key_is_good(const void *key, size_t key_len)
{
	return key && key_len >= 1 && key_len <= GALE_KEY_MAX;
}

static bool cost_is_good(uint64_t cost)
{
	return cost >= 1 && cost <= GALE_UNITS_MAX;
}

static enum gale_why check_ask(const struct gale_seat *seat,
                               const struct gale_limiter *limiter, const void *key,
                               size_t key_len, uint64_t cost)
{
	if (!key_is_good(key, key_len) || !cost_is_good(cost))
		return GALE_WHY_BAD_ASK;
	return check_handles(seat, limiter);
}

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
	uint8_t *bytes = question->key;

	bytes[0] = limiter->name_len;
	memcpy(bytes + 1, limiter->name, limiter->name_len);
	memcpy(bytes + 1 + limiter->name_len, key, key_len);
	question->op.verb = verb;
	question->op.key = bytes;
	question->op.key_len = (uint32_t)(1 + limiter->name_len + key_len);
	question->op.rule = &limiter->rule;
	question->op.cost = cost;
}

struct gale_answer gale_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len, uint64_t cost, void *tag)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	enum store_result result;
	struct question question;

	if (why != GALE_WHY_RULE)
		return answer_refused(why);
	put(&question, limiter, STORE_STEP, key, key_len, cost);
	result = store_run(limiter->store->inner, &question.op, /* patient= */ false);
	if (result == STORE_BUSY &&
	    seat_send(seat, limiter, &question.op, tag, /* awaited= */ false))
		return (struct gale_answer){ .verdict = GALE_PENDING };
	return answer_of(limiter, &question.op, result);
}

/* ---- Waiting --------------------------------------------------------------------- */

static uint64_t deadline_after(uint64_t within_us)
{
	uint64_t now = patience_now_ns();

	if (within_us > (UINT64_MAX - now) / 1000)
		return UINT64_MAX;
	return now + within_us * 1000;
}

/* Runs the op at once, or waits for a shard to do it. */
static enum store_result settle(struct gale_seat *seat, struct gale_limiter *limiter,
                                struct store_op *op, uint64_t within_us)
{
	enum store_result result =
	    store_run(limiter->store->inner, op, /* patient= */ false);
	struct pending *pending;

	if (result != STORE_BUSY)
		return result;
	if (within_us == 0)
		return STORE_LATE; /* not begun, rather than begun and abandoned */
	pending = seat_send(seat, limiter, op, /* tag= */ NULL, /* awaited= */ true);
	if (!pending)
		return STORE_BUSY;
	return seat_await(seat, pending, op, deadline_after(within_us));
}

struct gale_answer gale_wait(struct gale_seat *seat, struct gale_limiter *limiter,
                             const void *key, size_t key_len, uint64_t cost,
                             uint64_t within_us)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	struct question question;

	if (why != GALE_WHY_RULE)
		return answer_refused(why);
	put(&question, limiter, STORE_STEP, key, key_len, cost);
	return answer_of(limiter, &question.op,
	                 settle(seat, limiter, &question.op, within_us));
}

/* ---- Completions ----------------------------------------------------------------- */

static struct gale_completion completion_of(const struct pending *pending)
{
	return (struct gale_completion){
		.tag = pending->tag,
		.answer =
		    answer_of(pending->limiter, &pending->ask.op, pending->ask.result),
	};
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
	while (count < max && (pending = seat_take_ready(seat))) {
		ret_completions[count++] = completion_of(pending);
		seat_recycle(seat, pending);
	}
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
	return look(seat, limiter, &question.op, within_us);
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
