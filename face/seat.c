/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seat.c -- one thread's place at the runtime, and its asks.
 *
 * An ask runs on the asker's own thread if the store can do it at once.  If not, it is
 * copied into one of the seat's pendings and goes to a shard:
 *
 *            send              answered (shard)       collect
 *     free --------> with the --------------> done -----------> ready ---> the user
 *       ^             shard                  mailbox    |         (in order)
 *       '------- abandoned, or awaited and taken -------'
 *
 * Invariants
 *
 *   Q1  A pending is in exactly one of: the free list, a shard's hands, the done
 *       mailbox, the ready list, the hands of the one who awaits it.
 *   Q2  The done mailbox has a slot for each pending, so posting to it cannot fail.
 *   Q3  The seat lives until its thread has left and no shard holds an ask of it.
 *
 * Threads   Everything but answered runs on the seat's own thread.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "engine/check.h"
#include "face/face.h"
#include "runtime/clock.h"
#include "runtime/memory.h"

struct pending {
	struct ask ask; /* first: a done ask is found by its address */
	struct pending *next;
	struct gale_limiter *limiter;
	void *tag;
	bool awaited;   /* by a call that will take it itself */
	bool answered;  /* awaited, and now there */
	bool abandoned; /* nobody wants it any more */
};

struct pending_list {
	struct pending *first;
	struct pending *last;
};

struct gale_seat {
	struct handle handle;
	struct ask_home home;
	struct wake wake;
	struct mailbox done;
	pthread_t owner;
	struct pending *free;
	struct pending_list ready;
	struct mail_slot *done_slots;
	uint32_t done_count;
	struct pending *pendings;
};

/* ---- Joining and leaving --------------------------------------------------------- */

static struct gale_seat *seat_of_home(struct ask_home *home)
{
	return (struct gale_seat *)((char *)home - offsetof(struct gale_seat, home));
}

/* On the shard's thread. */
static void answered(struct ask_home *home, struct ask *ask)
{
	struct gale_seat *seat = seat_of_home(home);

	gale_assert(mailbox_post(&seat->done, ask)); /* Q2 */
	wake_raise(&seat->wake);
	handle_drop(&seat->handle); /* Q3 */
}

static void recycle(struct gale_seat *seat, struct pending *pending)
{
	handle_drop(&pending->limiter->handle);
	pending->limiter = NULL;
	pending->next = seat->free;
	seat->free = pending; /* Q1 */
}

static void append(struct pending_list *list, struct pending *pending)
{
	pending->next = NULL;
	if (list->first)
		list->last->next = pending;
	else
		list->first = pending;
	list->last = pending;
}

static struct pending *take_first(struct pending_list *list)
{
	struct pending *first = list->first;

	if (first)
		list->first = first->next;
	return first;
}

/* Sorts what the shards have answered: to whom it belongs now. */
static void collect(struct gale_seat *seat)
{
	struct pending *pending;

	wake_clear(&seat->wake);
	while ((pending = mailbox_take(&seat->done))) {
		if (pending->abandoned)
			recycle(seat, pending);
		else if (pending->awaited)
			pending->answered = true;
		else
			append(&seat->ready, pending);
	}
}

static size_t pendings_bytes(const struct gale_runtime *runtime)
{
	return runtime->pending_max * sizeof(struct pending);
}

static size_t done_bytes(const struct gale_seat *seat)
{
	return seat->done_count * sizeof(struct mail_slot);
}

static void seat_free_parts(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	memory_give(runtime->allocator, seat->pendings, pendings_bytes(runtime));
	memory_give(runtime->allocator, seat->done_slots, done_bytes(seat));
}

/* By the last one who holds it: its own thread, or a shard with its last ask. */
static void seat_die(struct handle *self)
{
	struct gale_seat *seat = (struct gale_seat *)self;
	struct pending *pending;

	if (seat->wake.fd >= 0) {
		collect(seat);
		wake_close(&seat->wake);
	}
	while ((pending = take_first(&seat->ready)))
		recycle(seat, pending);
	seat_free_parts(seat);
}

static uint32_t power_of_two_from(uint32_t least)
{
	uint32_t power = 2;

	while (power < least)
		power *= 2;
	return power;
}

static enum gale_err seat_make_parts(struct gale_seat *seat)
{
	struct gale_runtime *runtime = seat->handle.runtime;

	seat->home.answered = answered;
	seat->owner = pthread_self();
	seat->done_count = power_of_two_from(runtime->pending_max);
	seat->wake.fd = -1;
	seat->pendings = memory_take(runtime->allocator, pendings_bytes(runtime));
	seat->done_slots = memory_take(runtime->allocator, done_bytes(seat));
	if (!seat->pendings || !seat->done_slots)
		return GALE_ERR_MEMORY;
	mailbox_init(&seat->done, seat->done_slots, seat->done_count);
	for (uint32_t i = 0; i < runtime->pending_max; i++) {
		seat->pendings[i].next = seat->free;
		seat->free = &seat->pendings[i];
	}
	return wake_open(&seat->wake) ? GALE_ERR_OK : GALE_ERR_SYSTEM;
}

enum gale_err gale_join(struct gale_runtime *runtime, struct gale_seat **ret_seat)
{
	enum gale_err err = runtime_error(runtime);
	struct gale_seat *seat;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_seat)
		return GALE_ERR_RET;
	seat = handle_new(runtime, sizeof(*seat), seat_die);
	if (!seat)
		return GALE_ERR_MEMORY;
	err = seat_make_parts(seat);
	if (err == GALE_ERR_OK)
		*ret_seat = seat;
	else
		handle_close(&seat->handle);
	return err;
}

static void check_thread(const struct gale_seat *seat)
{
	gale_audit(pthread_equal(seat->owner, pthread_self()));
	(void)seat;
}

void gale_leave(struct gale_seat *seat)
{
	if (!seat || !lifeline_holds(&seat->handle.runtime->lifeline))
		return;
	check_thread(seat);
	handle_close(&seat->handle);
}

/* ---- Answers --------------------------------------------------------------------- */

static struct gale_answer refused(enum gale_why why)
{
	return (struct gale_answer){ .verdict = GALE_DENY, .why = why };
}

static enum gale_why why_of(enum store_result result)
{
	switch (result) {
	case STORE_BUSY:
		return GALE_WHY_BUSY;
	case STORE_LATE:
		return GALE_WHY_LATE;
	case STORE_FULL:
		return GALE_WHY_FULL;
	case STORE_NO_MEMORY:
		return GALE_WHY_MEMORY;
	case STORE_CHANGED:
		return GALE_WHY_CHANGED;
	case STORE_DONE:
	case STORE_NOT_BOOKED:
		break;
	}
	return GALE_WHY_RULE;
}

static enum gale_err err_of(enum store_result result)
{
	switch (result) {
	case STORE_DONE:
		return GALE_ERR_OK;
	case STORE_BUSY:
		return GALE_ERR_BUSY;
	case STORE_LATE:
		return GALE_ERR_LATE;
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
	runtime_say(limiter->handle.runtime, "limiter \"%.*s\": %s", limiter->name_len,
	            limiter->name, gale_why_text(why_of(result)));
}

/* The policy's answer, where the rule could not give one. */
static struct gale_answer outage(struct gale_limiter *limiter, enum store_result result)
{
	bool allow = limiter->on_outage == GALE_ON_OUTAGE_ALLOW;

	say_once(limiter, result);
	return (struct gale_answer){
		.verdict = allow ? GALE_ALLOW : GALE_DENY,
		.why = why_of(result),
		.limit = limiter->rule.capacity,
	};
}

static struct gale_answer answer_of(struct gale_limiter *limiter,
                                    const struct store_op *op, enum store_result result)
{
	return result == STORE_DONE ? op->answer : outage(limiter, result);
}

/* ---- Asking ---------------------------------------------------------------------- */

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
	check_thread(seat);
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

/* The name's length, the name, the key: no other pair gives the same bytes. */
static struct store_op op_of(const struct gale_limiter *limiter, enum store_verb verb,
                             const void *key, size_t key_len, uint64_t cost,
                             uint8_t *bytes)
{
	bytes[0] = limiter->name_len;
	memcpy(bytes + 1, limiter->name, limiter->name_len);
	memcpy(bytes + 1 + limiter->name_len, key, key_len);
	return (struct store_op){
		.verb = verb,
		.key = bytes,
		.key_len = (uint32_t)(1 + limiter->name_len + key_len),
		.rule = &limiter->rule,
		.cost = cost,
	};
}

static void fill(struct pending *pending, struct gale_seat *seat,
                 struct gale_limiter *limiter, const struct store_op *op)
{
	memcpy(pending->ask.key, op->key, op->key_len);
	pending->ask.op = *op;
	pending->ask.op.key = pending->ask.key;
	pending->ask.home = &seat->home;
	pending->ask.store = limiter->store->inner;
	pending->limiter = limiter;
	pending->awaited = pending->answered = pending->abandoned = false;
}

/* Hands the op to a shard; NULL if the seat or the shard has its hands full. */
static struct pending *send(struct gale_seat *seat, struct gale_limiter *limiter,
                            const struct store_op *op, void *tag, bool awaited)
{
	struct pending *pending;

	if (!seat->free)
		collect(seat); /* abandoned ones may have come back */
	pending = seat->free;
	if (!pending)
		return NULL;
	seat->free = pending->next;
	fill(pending, seat, limiter, op);
	pending->tag = tag;
	pending->awaited = awaited;
	handle_hold(&limiter->handle);
	handle_hold(&seat->handle); /* Q3 */
	if (runtime_post(seat->handle.runtime, &pending->ask))
		return pending;
	handle_drop(&seat->handle);
	recycle(seat, pending);
	return NULL;
}

struct gale_answer gale_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len, uint64_t cost, void *tag)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	uint8_t bytes[STORE_KEY_MAX];
	enum store_result result;
	struct store_op op;

	if (why != GALE_WHY_RULE)
		return refused(why);
	op = op_of(limiter, STORE_STEP, key, key_len, cost, bytes);
	result = store_run(limiter->store->inner, &op, /* patient= */ false);
	if (result == STORE_BUSY && send(seat, limiter, &op, tag, /* awaited= */ false))
		return (struct gale_answer){ .verdict = GALE_PENDING };
	return answer_of(limiter, &op, result);
}

/* ---- Waiting --------------------------------------------------------------------- */

static uint64_t deadline_after(uint64_t within_us)
{
	uint64_t now = patience_now_ns();

	if (within_us > (UINT64_MAX - now) / 1000)
		return UINT64_MAX;
	return now + within_us * 1000;
}

/* What came for others while we looked for our own is still to be fetched. */
static void raise_if_ready(struct gale_seat *seat)
{
	if (seat->ready.first)
		wake_raise(&seat->wake);
}

static enum store_result await(struct gale_seat *seat, struct pending *pending,
                               struct store_op *op, uint64_t deadline_ns)
{
	collect(seat);
	while (!pending->answered && patience_now_ns() < deadline_ns) {
		wake_wait(&seat->wake, deadline_ns);
		collect(seat);
	}
	raise_if_ready(seat);
	if (!pending->answered) {
		pending->abandoned = true;
		return STORE_LATE;
	}
	op->answer = pending->ask.op.answer;
	op->forecast = pending->ask.op.forecast;
	enum store_result result = pending->ask.result;
	recycle(seat, pending);
	return result;
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
	pending = send(seat, limiter, op, /* tag= */ NULL, /* awaited= */ true);
	if (!pending)
		return STORE_BUSY;
	return await(seat, pending, op, deadline_after(within_us));
}

struct gale_answer gale_wait(struct gale_seat *seat, struct gale_limiter *limiter,
                             const void *key, size_t key_len, uint64_t cost,
                             uint64_t within_us)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	uint8_t bytes[STORE_KEY_MAX];
	struct store_op op;

	if (why != GALE_WHY_RULE)
		return refused(why);
	op = op_of(limiter, STORE_STEP, key, key_len, cost, bytes);
	return answer_of(limiter, &op, settle(seat, limiter, &op, within_us));
}

/* ---- Completions ----------------------------------------------------------------- */

int gale_seat_fd(struct gale_seat *seat)
{
	return seat ? seat->wake.fd : -1;
}

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
	size_t count = 0;

	if (!seat || !ret_completions ||
	    !lifeline_holds(&seat->handle.runtime->lifeline))
		return 0;
	check_thread(seat);
	collect(seat);
	while (count < max && seat->ready.first) {
		struct pending *pending = take_first(&seat->ready);

		ret_completions[count++] = completion_of(pending);
		recycle(seat, pending);
	}
	raise_if_ready(seat);
	return count;
}

/* ---- Looking and correcting ------------------------------------------------------ */

static enum gale_err err_of_why(enum gale_why why)
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

static enum gale_err check_look(const struct gale_seat *seat,
                                const struct gale_limiter *limiter, const void *key,
                                size_t key_len, uint64_t cost, const void *ret)
{
	if (!seat)
		return GALE_ERR_SEAT;
	if (!key_is_good(key, key_len))
		return GALE_ERR_KEY;
	if (!cost_is_good(cost))
		return GALE_ERR_COST;
	if (!ret)
		return GALE_ERR_RET;
	return err_of_why(check_handles(seat, limiter));
}

static enum gale_err look(struct gale_seat *seat, struct gale_limiter *limiter,
                          struct store_op *op, uint64_t within_us)
{
	return err_of(settle(seat, limiter, op, within_us));
}

enum gale_err gale_peek(struct gale_seat *seat, struct gale_limiter *limiter,
                        const void *key, size_t key_len, uint64_t within_us,
                        struct gale_answer *ret_answer)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, 1, ret_answer);
	uint8_t bytes[STORE_KEY_MAX];
	struct store_op op;

	if (err != GALE_ERR_OK)
		return err;
	op = op_of(limiter, STORE_PEEK, key, key_len, 1, bytes);
	err = look(seat, limiter, &op, within_us);
	if (err == GALE_ERR_OK)
		*ret_answer = op.answer;
	return err;
}

enum gale_err gale_forecast(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len, uint64_t cost,
                            uint64_t within_us, struct gale_forecast *ret_forecast)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, cost, ret_forecast);
	uint8_t bytes[STORE_KEY_MAX];
	struct store_op op;

	if (err != GALE_ERR_OK)
		return err;
	op = op_of(limiter, STORE_FORECAST, key, key_len, cost, bytes);
	err = look(seat, limiter, &op, within_us);
	if (err == GALE_ERR_OK)
		*ret_forecast = op.forecast;
	return err;
}

enum gale_err gale_reset(struct gale_seat *seat, struct gale_limiter *limiter,
                         const void *key, size_t key_len, uint64_t within_us)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, 1, seat);
	uint8_t bytes[STORE_KEY_MAX];
	struct store_op op;

	if (err != GALE_ERR_OK)
		return err;
	op = op_of(limiter, STORE_RESET, key, key_len, 1, bytes);
	return look(seat, limiter, &op, within_us);
}

enum gale_err gale_cancel(struct gale_seat *seat, struct gale_limiter *limiter,
                          const void *key, size_t key_len, uint64_t cost,
                          uint64_t within_us, struct gale_answer *answer)
{
	enum gale_err err = check_look(seat, limiter, key, key_len, cost, answer);
	uint8_t bytes[STORE_KEY_MAX];
	struct store_op op;

	if (err != GALE_ERR_OK)
		return err;
	if (answer->slot.us == 0 && answer->slot.part == 0)
		return GALE_ERR_NOT_BOOKED;
	op = op_of(limiter, STORE_CANCEL, key, key_len, cost, bytes);
	op.slot = answer->slot;
	answer->slot = (struct gale_slot){ 0 }; /* once, whatever comes of it */
	return look(seat, limiter, &op, within_us);
}
