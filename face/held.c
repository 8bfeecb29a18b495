/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * held.c -- held keys: asked about without a hash and without a lookup.
 *
 * A key's purse is pinned from the first ask on that finds it, and is not evicted until the
 * key is closed.  The seat's cell of it is looked for the long way, which an ask goes that has
 * none yet and would take from what all share of a purse that is split; a pacer's purse has a
 * block in the place of cells, and is never split.
 *
 * Threads   The seat's own.
 */
#include <string.h>

#include "face/answer.h"
#include "face/lend.h"
#include "face/quick.h"

struct gale_key {
	struct handle handle;
	struct gale_limiter *limiter;
	uint64_t hash;

	/* Each ask reads these. */
	alignas(CACHE_LINE) struct gale_seat *seat;
	struct lender *quick; /* the limiter's while there is a purse, or &nobody */
	struct purse *purse;  /* pinned; NULL until there is one */
	struct cell *cell;   /* of this seat; NULL: it had none, when last looked for */
	struct score *score; /* of this seat and the limiter */

	size_t key_len;
	uint8_t key[GALE_KEY_MAX];
};

static_assert(!IS_WET(struct gale_key, seat) && !IS_WET(struct gale_key, quick) &&
                  !IS_WET(struct gale_key, purse) && !IS_WET(struct gale_key, cell) &&
                  !IS_WET(struct gale_key, score),
              "see hot.h");

/* Nothing that is asked of it is quick: so an ask need not look whether there is a purse. */
static struct lender nobody;

static void key_die(struct handle *self)
{
	struct gale_key *key = (struct gale_key *)self;

	if (key->purse)
		purse_unpin_key(key->purse);
	key->purse = NULL;
	key->quick = &nobody;
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
	held->quick = &nobody;
	held->score = seat_score(seat, &limiter->lender);
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
	if (purse && purse_pin_key(purse)) {
		key->purse = purse;
		key->quick = &key->limiter->lender;
	}
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

	if (!key)
		return answer_refused(NULL, NULL, GALE_WHY_BAD_ASK);
	if (load_relaxed(&key->handle.closed))
		return answer_refused(NULL, NULL, GALE_WHY_CLOSED);
	if (!cost_is_good(cost))
		return answer_refused(key->seat, key->limiter, GALE_WHY_BAD_ASK);
	if (!key->purse || check_handles(key->seat, key->limiter) != GALE_WHY_RULE)
		return ask_by_name(key, cost, tag);
	key->cell = local_cell(key->purse, key->seat->number); /* a pacer has none */
	if (!local_ask_pinned(key->seat, key->limiter, key->purse, cost, &answer))
		return ask_by_name(key, cost, tag);
	answer_counted(key->seat, key->limiter, key->key, key->key_len, &answer);
	return answer;
}

/* The purse may have got cells since the last ask. */
static ALWAYS_INLINE bool has_new_cell(const struct gale_key *key)
{
	return !LIKELY(!purse_is_split(key->purse)) &&
	       local_cell(key->purse, key->seat->number);
}

/*
 * The same answers as local_try_word.  Two ways are a straight line each: from a cell, which any
 * key has that is allowed often, and from memory.  A denial is believed without a look for a
 * new cell: what lay in cells was reckoned with when it was made (purse_common), but for what
 * this seat was about to take by name as the actor took its cell.  That waits for its next ask
 * by name.
 *
 * A word of the key is read again where it is needed next: a register that is kept for it
 * has to be saved and restored by each ask, and an ask takes as long as it has loads and
 * stores.
 */
static ALWAYS_INLINE enum local try_held(struct gale_key *key, mono now, uint64_t cost,
                                         struct told *ret_told)
{
	if (key->cell) {
		enum local how =
		    local_try_cell(key->purse, key->cell, now, cost, ret_told);

		if (LIKELY(how != LOCAL_ELSEWHERE))
			return how;
	}
	if (LIKELY(local_is_short(key->purse, now, cost)))
		return local_refuse(key->purse, now, cost, ret_told);
	if (key->cell || has_new_cell(key))
		return LOCAL_UNKNOWN; /* a slice can be had */
	return local_try_shared(key->purse, now, cost, ret_told);
}

/* As quick_answer in named.c, but the score is at hand. */
static ALWAYS_INLINE struct gale_answer held_answer(const struct gale_key *key,
                                                    const struct found *found)
{
	if (found->how == LOCAL_TAKEN)
		score_add(key->score, GALE_ALLOW, GALE_WHY_CREDIT, 1);
	else
		score_add(key->score, GALE_DENY, GALE_WHY_SPENT, 1);
	return answer_from(key->quick, found);
}

/* A key that is open has a limiter of its seat's runtime. */
struct gale_answer gale_ask_key(struct gale_key *key, uint64_t cost, void *tag)
{
	mono now;

	if (LIKELY(key != NULL) && may_be_quick(key->seat, key->quick, cost) &&
	    LIKELY(seat_tells(key->seat, &now))) {
		struct found found = { .how = LOCAL_UNKNOWN };

		seat_check_thread(key->seat);
		found.how = try_held(key, now, cost, &found.told);
		if (LIKELY(found.how == LOCAL_TAKEN) ||
		    (found.how == LOCAL_REFUSED &&
		     LIKELY(!offence_is_noted(key->score))))
			return held_answer(key, &found);
	}
	return ask_key_at_length(key, cost, tag);
}
