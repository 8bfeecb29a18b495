/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * held.c -- held keys: asked about without a hash and without a lookup.
 *
 * A key's purse is pinned from the first ask on that finds it; it is not evicted until the key is
 * closed.  The seat's cell of it is looked for the long way only; a pacer's purse has a block in
 * the place of cells, and is never split.
 *
 * Threads   The seat's own.
 */
#include <string.h>

#include "face/answer.h"
#include "face/lend.h"
#include "face/quick.h"

struct gale_key {
	struct handle handle;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct purse *purse; /* pinned; NULL until there is one */
	struct cell *cell;   /* of this seat, as of the last long way; NULL: none */
	uint64_t hash;
	size_t key_len;
	uint8_t key[GALE_KEY_MAX];
};

static void key_die(struct handle *self)
{
	struct gale_key *key = (struct gale_key *)self;

	if (key->purse)
		purse_unpin(key->purse);
	key->purse = NULL;
	if (load_relaxed(&key->limiter->lender.closed))
		runtime_wake_shards(self->runtime); /* nothing keeps it now */
	handle_drop(&key->limiter->handle);
	handle_drop(&key->seat->handle);
}

static enum gale_err check_key(const struct gale_seat *seat,
                               const struct gale_limiter *limiter, const void *key,
                               size_t key_len, struct gale_key **ret_key)
{
	if (!seat || !handle_is_open(&seat->handle, seat->handle.runtime))
		return GALE_ERR_SEAT;
	if (!limiter || !handle_is_open(&limiter->handle, seat->handle.runtime))
		return GALE_ERR_LIMITER;
	if (!key || key_len < 1 || key_len > GALE_KEY_MAX)
		return GALE_ERR_KEY;
	if (!ret_key)
		return GALE_ERR_RET;
	return error_of_refusal(runtime_refuses(seat->handle.runtime));
}

enum gale_err gale_key_open(struct gale_seat *seat, struct gale_limiter *limiter,
                            const void *key, size_t key_len, struct gale_key **ret_key)
{
	enum gale_err err = check_key(seat, limiter, key, key_len, ret_key);
	struct gale_key *held;

	if (err != GALE_ERR_OK)
		return err;
	held = handle_new(seat->handle.runtime, sizeof(*held), key_die);
	if (!held)
		return GALE_ERR_MEMORY;
	handle_hold(&seat->handle);
	handle_hold(&limiter->handle);
	held->seat = seat;
	held->limiter = limiter;
	held->hash = local_hash(&limiter->lender, key, key_len);
	held->key_len = key_len;
	memcpy(held->key, key, key_len);
	*ret_key = held;
	return GALE_ERR_OK;
}

void gale_key_close(struct gale_key *key)
{
	if (key && lifeline_holds(&key->handle.runtime->lifeline))
		handle_close(&key->handle);
}

/* Holds the purse from the first ask on that finds it. */
static void pin(struct gale_key *key)
{
	struct gale_seat *seat = key->seat;
	struct purse_name name = { .lender = &key->limiter->lender,
		                   .key = key->key,
		                   .key_len = (uint16_t)key->key_len,
		                   .hash = key->hash };
	struct purse *purse;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse = root_find(root_of(seat, key->hash), &name);
	if (purse && purse_pin(purse))
		key->purse = purse;
	reader_exit(&seat->reader);
}

static struct gale_answer ask_by_name(struct gale_key *key, uint64_t cost, void *tag)
{
	if (!key->purse && runtime_refuses(key->handle.runtime) == GALE_WHY_RULE)
		pin(key);
	return ask_at_length(key->seat, key->limiter, key->key, key->key_len, cost,
	                     tag);
}

/* The pinned purse says so; its cells are pinned with it, a pacer's block is not. */
static __attribute__((noinline)) struct gale_answer
ask_key_at_length(struct gale_key *key, uint64_t cost, void *tag)
{
	struct gale_answer answer;

	if (!key || !cost_is_good(cost))
		return answer_refused(GALE_WHY_BAD_ASK);
	if (load_relaxed(&key->handle.closed))
		return answer_refused(GALE_WHY_CLOSED);
	if (!key->purse || check_handles(key->seat, key->limiter) != GALE_WHY_RULE)
		return ask_by_name(key, cost, tag);
	key->cell = local_cell(key->purse, key->seat->number); /* a pacer has none */
	if (!local_ask_pinned(key->seat, key->limiter, key->purse, cost, &answer))
		return ask_by_name(key, cost, tag);
	return answer;
}

/* A key that is closed has no purse, and one that is open has a limiter of its seat's runtime. */
static ALWAYS_INLINE bool key_is_quick(const struct gale_key *key, uint64_t cost)
{
	return LIKELY(key != NULL) && LIKELY(key->purse != NULL) &&
	       may_be_quick(key->seat, key->limiter, cost);
}

struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost, void *tag)
{
	mono now;

	if (LIKELY(key_is_quick(key, cost)) && LIKELY(seat_tells(key->seat, &now))) {
		struct gale_seat *seat = key->seat;
		struct found found = take_quickly(now, key->purse, key->cell, cost);

		seat_check_thread(seat);
		if (LIKELY(found.how != LOCAL_UNKNOWN))
			return quick_answer(seat, &key->limiter->lender, &found);
	}
	return ask_key_at_length(key, cost, tag);
}
