/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * named.c -- the hot path: an ask by name.
 *
 *     key -> hash -> shard -> table -> purse -> credit: ALLOW
 *        '--- at hand (pocket.h) -------^    '- denial: DENY
 *                                            '- neither: the shard is asked
 *
 * Most are about a purse that the seat has at hand, or that is near where its hash says.  One
 * that is further off is looked for by ask_longer, and everything else is left to
 * ask_at_length; each begins anew.  gale_prefetch goes the same way, as far as where the purse
 * is.
 *
 * Threads   The seat's own.
 */
#include "face/lend.h"
#include "face/offences.h"
#include "face/quick.h"

typedef struct purse *find_fn(const table_root *root, const struct purse_name *name);

/* Seldom; and in registers, so that nothing else has to be kept where it can be pointed to. */
static __attribute__((noinline)) void
put_at_hand(struct gale_seat *seat, struct lender *lender, const void *key,
            size_t key_len, struct purse *purse, uint64_t forgotten)
{
	struct purse_name name = { .lender = lender,
		                   .key = key,
		                   .key_len = (uint16_t)key_len };

	pocket_put(&seat->pocket, forgotten, &name, purse,
	           local_cell(purse, seat->number));
}

static ALWAYS_INLINE bool should_be_at_hand(struct pocket *pocket,
                                            const struct purse *purse,
                                            const struct cell *cell,
                                            const struct found *found)
{
	if (!LIKELY(cell == NULL))
		return pocket_draws(pocket);
	return found->how == LOCAL_REFUSED && pocket_wants(pocket, purse);
}

/* By its hash, which is not in the name yet. */
static ALWAYS_INLINE struct found look_up(struct gale_seat *seat, mono now,
                                          struct purse_name name, uint64_t cost,
                                          uint64_t forgotten, find_fn *find)
{
	struct purse *purse;
	struct found found;
	struct cell *cell;

	name.hash = hash_of(name.lender, name.key, name.key_len);
	purse = find(root_of(seat, name.hash), &name);
	if (!LIKELY(purse != NULL))
		return (struct found){ .how = LOCAL_ELSEWHERE };
	purse_use(purse);
	cell = local_cell(purse, seat->number);
	found = take_quickly(now, purse, cell, cost);
	if (pocket_may_have(name.key_len) &&
	    should_be_at_hand(&seat->pocket, purse, cell, &found))
		put_at_hand(seat, name.lender, name.key, name.key_len, purse,
		            forgotten);
	return found;
}

/* It has no cells (POCKET-1): has it too little, which all share? */
static ALWAYS_INLINE bool still_refuses(struct purse *purse, mono now, uint64_t cost,
                                        struct told *ret_told)
{
	return LIKELY(local_is_short(purse, now, cost)) &&
	       LIKELY(local_refuse(purse, now, cost, ret_told) == LOCAL_REFUSED);
}

/* A purse that was put there without a cell is to refuse: when it does not, it is looked up. */
static ALWAYS_INLINE struct found take_at_hand(struct gale_seat *seat, mono now,
                                               const struct purse_name *name,
                                               uint64_t cost, uint64_t forgotten)
{
	struct found found = { .how = LOCAL_ELSEWHERE };
	struct pocket_place *place;

	if (!pocket_may_have(name->key_len) ||
	    !pocket_is_good(&seat->pocket, forgotten))
		return found;
	place = pocket_find(&seat->pocket, name);
	if (!LIKELY(place != NULL))
		return found;
	purse_use(place->purse);
	if (place->cell)
		return take_quickly(now, place->purse, place->cell, cost);
	if (LIKELY(still_refuses(place->purse, now, cost, &found.told)))
		found.how = LOCAL_REFUSED;
	else
		place->purse = NULL;
	return found;
}

static ALWAYS_INLINE struct found ask_quickly(struct gale_seat *seat,
                                              struct gale_limiter *limiter,
                                              const void *key, size_t key_len,
                                              uint64_t cost, find_fn *find)
{
	struct found found = { .how = LOCAL_UNKNOWN };
	const struct grace *grace;
	struct purse_name name;
	uint64_t forgotten;
	mono now;

	if (!LIKELY(seat != NULL) || !LIKELY(limiter != NULL) ||
	    !LIKELY(may_be_quick(seat, &limiter->lender, cost)) ||
	    !LIKELY(key_is_good(key, key_len)) || !LIKELY(seat_tells(seat, &now)))
		return found;
	seat_check_thread(seat);
	grace = &seat->handle.runtime->grace;
	name = (struct purse_name){ &limiter->lender, key, (uint16_t)key_len, 0 };
	reader_enter(grace, &seat->reader);
	forgotten = grace_forgotten(grace);
	found = take_at_hand(seat, now, &name, cost, forgotten);
	if (found.how == LOCAL_ELSEWHERE)
		found = look_up(seat, now, name, cost, forgotten, find);
	reader_exit(&seat->reader);
	return found;
}

/* Asked once: the compiler makes two ends of it, where each is counted at its own place. */
static ALWAYS_INLINE struct gale_answer quick_answer(const struct gale_seat *seat,
                                                     const struct lender *lender,
                                                     const struct found *found)
{
	if (found->how == LOCAL_TAKEN)
		score_add(seat_score(seat, lender), GALE_ALLOW, GALE_WHY_CREDIT, 1);
	else
		score_add(seat_score(seat, lender), GALE_DENY, GALE_WHY_SPENT, 1);
	return answer_from(lender, found);
}

/* A refusal that is to be noted is made once more, at length. */
static ALWAYS_INLINE bool is_told(const struct gale_seat *seat,
                                  const struct gale_limiter *limiter,
                                  const struct found *found)
{
	return LIKELY(found->how == LOCAL_TAKEN) ||
	       (found->how == LOCAL_REFUSED &&
	        LIKELY(!offence_is_noted(seat_score(seat, &limiter->lender))));
}

static __attribute__((noinline)) struct gale_answer
ask_longer(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
           size_t key_len, uint64_t cost, void *tag)
{
	struct found found = ask_quickly(seat, limiter, key, key_len, cost, root_find);

	if (LIKELY(is_told(seat, limiter, &found)))
		return quick_answer(seat, &limiter->lender, &found);
	return ask_at_length(seat, limiter, key, key_len, cost, tag);
}

/* Apart from the others: the hash and the comparison of a key of 8 to 16 bytes are two words
 * each, and what is near its home is found without a loop; flat, so that nothing is called. */
__attribute__((flatten)) struct gale_answer gale_ask(struct gale_seat *seat,
                                                     struct gale_limiter *limiter,
                                                     const void *key, size_t key_len,
                                                     uint64_t cost, void *tag)
{
	if (LIKELY(hash_is_short(key_len))) {
		struct found found =
		    ask_quickly(seat, limiter, key, key_len, cost, root_find_near);

		if (LIKELY(is_told(seat, limiter, &found)))
			return quick_answer(seat, &limiter->lender, &found);
		if (found.how != LOCAL_ELSEWHERE)
			return ask_at_length(seat, limiter, key, key_len, cost, tag);
	}
	return ask_longer(seat, limiter, key, key_len, cost, tag);
}

/* ---- Ahead ----------------------------------------------------------------------- */

/* The slot is waited for, as it says where the purse is; the purse is not. */
void gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                   const void *key, size_t key_len)
{
	uint64_t hash;

	if (!seat || !limiter || limiter->handle.runtime != seat->handle.runtime ||
	    limiter->lender.lending == LENDING_NOT ||
	    !lifeline_passes(&seat->lifeline) || !key_is_good(key, key_len))
		return;
	seat_check_thread(seat);
	hash = local_hash(&limiter->lender, key, key_len);
	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse_prefetch(root_likely(root_of(seat, hash), hash));
	reader_exit(&seat->reader);
}
