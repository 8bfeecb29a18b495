/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lend.c -- the hot path: hash, find, take.
 *
 *     key -> hash -> shard -> table -> purse -> credit: ALLOW
 *                                            '- denial: DENY
 *                                            '- neither: the shard is asked
 */
#include "face/lend.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "face/answer.h"
#include "shards/local.h"

uint64_t local_hash(const struct lender *lender, const void *key, size_t key_len)
{
	return XXH3_64bits_withSeed(key, key_len, lender->seed);
}

static struct purses *purses_of(const struct gale_seat *seat, uint64_t hash)
{
	return &runtime_shard(seat->handle.runtime, hash)->lessor.purses;
}

static void count_answer(struct gale_seat *seat, const struct gale_answer *answer)
{
	seat_count(seat, answer->verdict == GALE_ALLOW ? COUNT_ALLOWED : COUNT_REFUSED);
}

/* A cost above the limit never passes, whatever is in hand.                     (L7) */
static bool is_too_much(const struct lender *lender, uint64_t cost)
{
	return lender->lending == LENDING_UNITS && cost > lender->rule.capacity;
}

static struct gale_answer deny_for_ever(const struct lender *lender)
{
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.limit = lender->rule.capacity,
		.retry_after_us = GALE_NEVER,
	};
}

static bool answer_from(struct gale_seat *seat, struct gale_limiter *limiter,
                        struct purse *purse, uint64_t cost,
                        struct gale_answer *ret_answer)
{
	if (!local_answer(&limiter->lender, purse, seat->number, seat_now(seat), cost,
	                  ret_answer))
		return false;
	purse_use(purse);
	count_answer(seat, ret_answer);
	return true;
}

bool local_ask_hashed(struct gale_seat *seat, struct gale_limiter *limiter,
                      const void *key, size_t key_len, uint64_t cost, uint64_t hash,
                      struct gale_answer *ret_answer)
{
	struct purse_name name = { .lender = &limiter->lender,
		                   .key = key,
		                   .key_len = (uint16_t)key_len,
		                   .hash = hash };
	struct purse *purse;
	bool answered;

	if (is_too_much(&limiter->lender, cost)) {
		*ret_answer = deny_for_ever(&limiter->lender);
		return true;
	}
	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse = purses_find(purses_of(seat, hash), &name);
	answered = purse && answer_from(seat, limiter, purse, cost, ret_answer);
	reader_exit(&seat->reader);
	return answered;
}

bool local_ask(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
               size_t key_len, uint64_t cost, struct gale_answer *ret_answer)
{
	return local_ask_hashed(seat, limiter, key, key_len, cost,
	                        local_hash(&limiter->lender, key, key_len), ret_answer);
}

void local_fetch(struct gale_seat *seat, struct gale_limiter *limiter,
                 const struct gale_question *questions, size_t count,
                 uint64_t *ret_hashes)
{
	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	for (size_t i = 0; i < count; i++) {
		const struct gale_question *question = &questions[i];

		ret_hashes[i] = 0;
		if (!question->key || question->key_len > GALE_KEY_MAX)
			continue;
		ret_hashes[i] =
		    local_hash(&limiter->lender, question->key, question->key_len);
		table_prefetch(&purses_of(seat, ret_hashes[i])->table, ret_hashes[i]);
	}
	for (size_t i = 0; i < count; i++)
		purses_prefetch(purses_of(seat, ret_hashes[i]), ret_hashes[i]);
	reader_exit(&seat->reader);
}

bool local_is_down(struct gale_seat *seat, const struct gale_limiter *limiter,
                   const struct store_op *op)
{
	const struct lender *lender = &limiter->lender;
	uint32_t skip = 1u + lender->name_len;
	uint64_t hash = local_hash(lender, op->key + skip, op->key_len - skip);
	struct shard *shard = runtime_shard(seat->handle.runtime, hash);
	struct link *link = &lender->links[shard->lessor.config.shard];

	return seat_now(seat).ns < load_relaxed(&link->shared.down_until_ns);
}

/* ---- Held keys ------------------------------------------------------------------- */

struct gale_key {
	struct handle handle;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct purse *purse; /* pinned; NULL until there is one */
	uint64_t hash;
	size_t key_len;
	uint8_t key[GALE_KEY_MAX];
};

static void key_die(struct handle *self)
{
	struct gale_key *key = (struct gale_key *)self;

	if (key->purse)
		purse_unpin(key->purse);
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
	purse = purses_find(purses_of(seat, key->hash), &name);
	if (purse && purse_pin(purse))
		key->purse = purse;
	reader_exit(&seat->reader);
}

static struct gale_answer ask_by_name(struct gale_key *key, uint64_t cost, void *tag)
{
	if (!key->purse)
		pin(key);
	return gale_ask(key->seat, key->limiter, key->key, key->key_len, cost, tag);
}

struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost, void *tag)
{
	struct gale_seat *seat;
	struct gale_answer answer;
	enum gale_why why;
	uint64_t word;
	mono now;

	if (!key || cost < 1 || cost > GALE_UNITS_MAX)
		return answer_refused(GALE_WHY_BAD_ASK);
	seat = key->seat;
	why = runtime_refuses(seat->handle.runtime);
	if (why != GALE_WHY_RULE || load_relaxed(&key->handle.closed))
		return answer_refused(why != GALE_WHY_RULE ? why : GALE_WHY_CLOSED);
	seat_check_thread(seat);
	if (!key->purse || key->limiter->lender.lending != LENDING_UNITS)
		return ask_by_name(key, cost, tag);
	now = seat_now(seat);
	if (!purse_take(key->purse, seat->number, now, cost, &word))
		return ask_by_name(key, cost, tag);
	seat_count(seat, COUNT_ALLOWED);
	answer = local_allow(&key->limiter->lender, word, now);
	return answer;
}
