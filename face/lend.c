/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lend.c -- what this node answers by itself, at length: whatever kind of limiter it is, and
 * whatever else may become of the ask.
 *
 * Most asks do not come here: named.c, many.c and held.c answer them a quick way (quick.h).
 *
 * Threads   The seat's own.
 */
#include "face/lend.h"

#include "face/answer.h"
#include "face/quick.h"
#include "shards/ahead.h"

__attribute__((noinline)) uint64_t local_hash(const struct lender *lender,
                                              const void *key, size_t key_len)
{
	return hash_of(lender, key, key_len);
}

/* A cost above the limit never passes, whatever is in hand.                     (L7) */
static bool is_too_much(const struct lender *lender, uint64_t cost)
{
	return lender->lending == LENDING_UNITS &&
	       cost > load_relaxed(&lender->capacity);
}

static struct gale_answer deny_for_ever(const struct lender *lender)
{
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_TOO_MUCH,
		.limit = load_relaxed(&lender->capacity),
		.retry_after_us = GALE_NEVER,
	};
}

static ALWAYS_INLINE struct purse_name name_of(struct lender *lender, const void *key,
                                               size_t key_len)
{
	return (struct purse_name){
		.lender = lender,
		.key = key,
		.key_len = (uint16_t)key_len,
		.hash = hash_of(lender, key, key_len),
	};
}

/* What one ask is about. */
struct wish {
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct purse_name name;
	uint64_t cost;
	mono now;
};

static inline struct wish wish_of(struct gale_seat *seat, struct gale_limiter *limiter,
                                  const void *key, size_t key_len, uint64_t cost)
{
	return (struct wish){
		.seat = seat,
		.limiter = limiter,
		.name = name_of(&limiter->lender, key, key_len),
		.cost = cost,
		.now = seat_now(seat),
	};
}

static ALWAYS_INLINE struct found try_purse(const struct wish *wish,
                                            struct purse *purse)
{
	const struct lender *lender = &wish->limiter->lender;
	struct found found = { .how = LOCAL_UNKNOWN };

	found.how = local_try(lender, purse, wish->seat->number, wish->now, wish->cost,
	                      &found.told);
	if (found.how == LOCAL_UNKNOWN &&
	    ahead_take(lender, purse, wish->now, wish->cost, &found.told))
		found.how = LOCAL_TAKEN;
	if (found.how == LOCAL_UNKNOWN &&
	    ahead_has_joined(purse, wish->now, wish->cost))
		found.how = local_try(lender, purse, wish->seat->number, wish->now,
		                      wish->cost, &found.told);
	return found;
}

/* From credit or from memory, within a grace period. */
static ALWAYS_INLINE struct found find_and_try(const struct wish *wish)
{
	struct gale_seat *seat = wish->seat;
	struct found found = { .how = LOCAL_UNKNOWN };
	struct purse *purse;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse = root_find(root_of(seat, wish->name.hash), &wish->name);
	if (LIKELY(purse != NULL)) {
		purse_use(purse);
		found = try_purse(wish, purse);
	}
	reader_exit(&seat->reader);
	return found;
}

/* A pacer's: from the burst, or a place of the block. */
static bool find_place(const struct wish *wish, struct gale_answer *ret_answer)
{
	struct gale_seat *seat = wish->seat;
	struct purse *purse;
	bool placed;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse = root_find(root_of(seat, wish->name.hash), &wish->name);
	placed = purse && purse_place(purse, wish->now, wish->cost, ret_answer);
	if (placed)
		purse_use(purse);
	reader_exit(&seat->reader);
	return placed;
}

bool local_ask(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
               size_t key_len, uint64_t cost, struct gale_answer *ret_answer)
{
	struct lender *lender = &limiter->lender;
	struct found found;
	struct wish wish;

	if (lender->lending == LENDING_NOT)
		return false;
	if (is_too_much(lender, cost)) {
		*ret_answer = deny_for_ever(lender);
		return true;
	}
	wish = wish_of(seat, limiter, key, key_len, cost);
	if (lender->lending == LENDING_PLACES && find_place(&wish, ret_answer))
		return true;
	found = find_and_try(&wish);
	if (found.how != LOCAL_UNKNOWN)
		*ret_answer = answer_from(lender, &found);
	return found.how != LOCAL_UNKNOWN;
}

bool local_ask_pinned(struct gale_seat *seat, struct gale_limiter *limiter,
                      struct purse *purse, uint64_t cost,
                      struct gale_answer *ret_answer)
{
	const struct lender *lender = &limiter->lender;
	struct found found;

	if (lender->lending == LENDING_PLACES || is_too_much(lender, cost))
		return false;
	found = try_purse(
	    &(struct wish){
		.seat = seat, .limiter = limiter, .cost = cost, .now = seat_now(seat) },
	    purse);
	if (found.how != LOCAL_UNKNOWN)
		*ret_answer = answer_from(lender, &found);
	return found.how != LOCAL_UNKNOWN;
}

/* It may be asked. */
static struct gale_answer ask_checked(struct gale_seat *seat,
                                      struct gale_limiter *limiter, const void *key,
                                      size_t key_len, uint64_t cost, void *tag)
{
	struct gale_answer answer;

	if (cost_is_quick(&limiter->lender, cost)) {
		struct wish wish = wish_of(seat, limiter, key, key_len, cost);
		struct found found = find_and_try(&wish);

		if (found.how != LOCAL_UNKNOWN)
			return answer_from(&limiter->lender, &found);
	} else if (local_ask(seat, limiter, key, key_len, cost, &answer)) {
		return answer;
	}
	return ask_further(seat, limiter, key, key_len, cost, tag);
}

struct gale_answer ask_at_length(struct gale_seat *seat, struct gale_limiter *limiter,
                                 const void *key, size_t key_len, uint64_t cost,
                                 void *tag)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	struct gale_answer answer;

	if (why != GALE_WHY_RULE)
		return answer_refused(seat, limiter, why);
	answer = ask_checked(seat, limiter, key, key_len, cost, tag);
	if (answer.verdict != GALE_PENDING)
		answer_counted(seat, limiter, key, key_len, &answer);
	return answer;
}

/* Has the store failed to answer the shard of this key lately? */
static bool is_down(const struct gale_seat *seat, const struct purse_name *name,
                    mono now)
{
	struct shard *shard = runtime_shard(seat->handle.runtime, name->hash);
	struct link *link = &name->lender->links[shard->lessor.config.shard];

	return now.ns < load_relaxed(&link->shared.down_until_ns);
}

static bool is_quarantined(struct gale_seat *seat, const struct purse_name *name,
                           mono now, mono *ret_until)
{
	struct purse *purse;
	bool is;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse = root_find(root_of(seat, name->hash), name);
	is = purse && purse_is_quarantined(purse, now, ret_until);
	if (is)
		purse_use(purse);
	reader_exit(&seat->reader);
	return is;
}

enum store_result local_refusal(struct gale_seat *seat, struct gale_limiter *limiter,
                                struct store_op *op)
{
	struct lender *lender = &limiter->lender;
	uint32_t skip = 1u + lender->name_len;
	struct purse_name name = name_of(lender, op->key + skip, op->key_len - skip);
	mono now = seat_now(seat), until;

	if (is_down(seat, &name, now)) {
		seat_count(seat, COUNT_TURNED_AWAY);
		return STORE_DOWN;
	}
	if (!is_quarantined(seat, &name, now, &until))
		return STORE_DONE;
	seat_count(seat, COUNT_KEPT_OUT);
	op->answer = local_quarantine(lender, until, now);
	return STORE_QUARANTINE;
}
