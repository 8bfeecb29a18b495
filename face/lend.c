/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lend.c -- the hot path: hash, find, take.
 *
 *     key -> hash -> shard -> table -> purse -> credit: ALLOW
 *        '--- at hand (pocket.h) -------^    '- denial: DENY
 *                                            '- neither: the shard is asked
 *
 * gale_prefetch goes the same way, as far as where the purse is.
 */
#include "face/lend.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "face/answer.h"
#include "face/checks.h"
#include "shards/local.h"

static ALWAYS_INLINE uint64_t hash_of(const struct lender *lender, const void *key,
                                      size_t key_len)
{
	return XXH3_64bits_withSeed(key, key_len, lender->seed);
}

__attribute__((noinline)) uint64_t local_hash(const struct lender *lender,
                                              const void *key, size_t key_len)
{
	return hash_of(lender, key, key_len);
}

static ALWAYS_INLINE const table_root *root_of(const struct gale_seat *seat,
                                               uint64_t hash)
{
	return &seat->roots[shard_number(hash, seat->shard_count)].table;
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

/* What was found in this node, in registers: an answer is made of it once, where it is
 * returned. */
struct found {
	enum local how;
	struct told told;
};

static ALWAYS_INLINE bool is_decided(const struct found *found)
{
	return found->how == LOCAL_TAKEN || found->how == LOCAL_REFUSED;
}

static ALWAYS_INLINE struct found try_purse(const struct wish *wish,
                                            struct purse *purse)
{
	struct found found = { .how = LOCAL_UNKNOWN };

	found.how = local_try(&wish->limiter->lender, purse, wish->seat->number,
	                      wish->now, wish->cost, &found.told);
	if (found.how != LOCAL_UNKNOWN)
		seat_count(wish->seat,
		           found.how == LOCAL_TAKEN ? COUNT_ALLOWED : COUNT_REFUSED);
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

static inline struct gale_answer answer_from(const struct lender *lender,
                                             const struct found *found)
{
	if (found->how == LOCAL_TAKEN)
		return LOCAL_ALLOW(lender, found->told);
	return LOCAL_DENY(lender, found->told);
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
	if (placed)
		seat_count(seat, ret_answer->verdict == GALE_ALLOW ? COUNT_ALLOWED
		                                                   : COUNT_REFUSED);
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

static ALWAYS_INLINE bool cost_is_quick(const struct gale_limiter *limiter,
                                        uint64_t cost)
{
	return cost - 1 < load_relaxed(&limiter->lender.quick_most);
}

/* An ask with all that may become of it. */
static __attribute__((noinline)) struct gale_answer
ask_at_length(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
              size_t key_len, uint64_t cost, void *tag)
{
	enum gale_why why = check_ask(seat, limiter, key, key_len, cost);
	struct gale_answer answer;

	if (why != GALE_WHY_RULE)
		return answer_refused(why);
	if (cost_is_quick(limiter, cost)) {
		struct wish wish = wish_of(seat, limiter, key, key_len, cost);
		struct found found = find_and_try(&wish);

		if (found.how != LOCAL_UNKNOWN)
			return answer_from(&limiter->lender, &found);
	} else if (local_ask(seat, limiter, key, key_len, cost, &answer)) {
		return answer;
	}
	return ask_further(seat, limiter, key, key_len, cost, tag);
}

/* ---- The quick way --------------------------------------------------------------- */

/*
 * Most asks are of a seat that knows what time it is, about a purse that it has at hand or
 * that is near where its hash says, and answered from one word that nobody else wants at
 * this instant.  A purse that is further off is looked for by ask_longer, and everything
 * else is left to ask_at_length; each begins anew.
 */
static ALWAYS_INLINE bool may_be_quick(const struct gale_seat *seat,
                                       const struct gale_limiter *limiter,
                                       uint64_t cost)
{
	/* A limiter that is closed is not quick, and a seat that has left tells no time. */
	return LIKELY(cost_is_quick(limiter, cost)) &&
	       LIKELY(lifeline_passes(&seat->handle.runtime->lifeline));
}

/* Asked once: the compiler makes two ends of it, where each is counted at its own place. */
static ALWAYS_INLINE struct gale_answer quick_answer(struct gale_seat *seat,
                                                     const struct lender *lender,
                                                     const struct found *found)
{
	if (found->how == LOCAL_TAKEN)
		seat_count(seat, COUNT_ALLOWED);
	else
		seat_count(seat, COUNT_REFUSED);
	return answer_from(lender, found);
}

static ALWAYS_INLINE struct found take_quickly(mono now, struct purse *purse,
                                               struct cell *cell, uint64_t cost)
{
	struct found found = { .how = LOCAL_UNKNOWN };

	found.how = local_try_word(purse, cell, now, cost, &found.told);
	return found;
}

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

/* It has no cells (X1): has it too little, which all share? */
static ALWAYS_INLINE bool still_refuses(struct purse *purse, mono now, uint64_t cost,
                                        struct told *ret_told)
{
	return LIKELY(credit_units(load_relaxed(&purse->credit)) < cost) &&
	       LIKELY(local_refuse(purse, now, cost, ret_told) == LOCAL_REFUSED);
}

/* What was put there without a cell is there to refuse: when it does not, it is looked up. */
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
	    !LIKELY(may_be_quick(seat, limiter, cost)) ||
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

static __attribute__((noinline)) struct gale_answer
ask_longer(struct gale_seat *seat, struct gale_limiter *limiter, const void *key,
           size_t key_len, uint64_t cost, void *tag)
{
	struct found found = ask_quickly(seat, limiter, key, key_len, cost, root_find);

	if (LIKELY(is_decided(&found)))
		return quick_answer(seat, &limiter->lender, &found);
	return ask_at_length(seat, limiter, key, key_len, cost, tag);
}

/* Apart from the others: the hash and the comparison of a key of 9 to 16 bytes are two words
 * each, and what is near its home is found without a loop; flat, so that nothing is called. */
__attribute__((flatten)) struct gale_answer gale_ask(struct gale_seat *seat,
                                                     struct gale_limiter *limiter,
                                                     const void *key, size_t key_len,
                                                     uint64_t cost, void *tag)
{
	if (LIKELY(key_len >= 9 && key_len <= 16)) {
		struct found found =
		    ask_quickly(seat, limiter, key, key_len, cost, root_find_near);

		if (LIKELY(is_decided(&found)))
			return quick_answer(seat, &limiter->lender, &found);
		if (found.how == LOCAL_UNKNOWN)
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
	    !lifeline_passes(&seat->handle.runtime->lifeline) ||
	    !key_is_good(key, key_len))
		return;
	seat_check_thread(seat);
	hash = local_hash(&limiter->lender, key, key_len);
	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	purse_prefetch(root_likely(root_of(seat, hash), hash));
	reader_exit(&seat->reader);
}

/* ---- Many ------------------------------------------------------------------------ */

#define FLOCK 16 /* asks whose memory is fetched at the same time */

/* They, in one read and at one instant. */
struct flock {
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	const struct gale_question *questions;
	size_t count;
	mono now;
	struct fetched {
		const _Atomic uint64_t *home; /* NULL: its key is none */
		uint64_t hash;
		struct purse *likely; /* to be its purse; NULL: there is none */
	} fetched[FLOCK];
};

static ALWAYS_INLINE uint64_t hash_in_line(const struct lender *lender, const void *key,
                                           size_t key_len)
{
	if (LIKELY(key_len >= 9 && key_len <= 16))
		return hash_of(lender, key, key_len);
	return local_hash(lender, key, key_len);
}

static ALWAYS_INLINE void fetch_homes(struct flock *flock)
{
	for (size_t i = 0; i < flock->count; i++) {
		const struct gale_question *question = &flock->questions[i];
		struct fetched *it = &flock->fetched[i];

		if (!LIKELY(key_is_good(question->key, question->key_len))) {
			it->home = NULL;
			it->likely = NULL;
			continue;
		}
		it->hash = hash_in_line(&flock->limiter->lender, question->key,
		                        question->key_len);
		it->home = home_at(root_of(flock->seat, it->hash), it->hash);
		__builtin_prefetch((const void *)it->home);
	}
}

/* Seldom. */
static __attribute__((noinline)) struct purse *
likely_elsewhere(const struct gale_seat *seat, uint64_t hash)
{
	return root_likely(root_of(seat, hash), hash);
}

static ALWAYS_INLINE void fetch_purses(struct flock *flock)
{
	for (size_t i = 0; i < flock->count; i++) {
		struct fetched *it = &flock->fetched[i];

		if (!LIKELY(it->home != NULL))
			continue;
		it->likely = home_likely(it->home, it->hash);
		if (!LIKELY(it->likely != NULL))
			it->likely = likely_elsewhere(flock->seat, it->hash);
		purse_prefetch(it->likely);
	}
}

static ALWAYS_INLINE struct purse_name name_in(struct lender *lender,
                                               const struct gale_question *question)
{
	return (struct purse_name){ .lender = lender,
		                    .key = question->key,
		                    .key_len = (uint16_t)question->key_len };
}

/* Seldom, too, but for keys of other lengths.  Nothing of the flock is pointed to, so that it
 * may be in registers. */
static __attribute__((noinline)) struct purse *
find_at_length(const struct gale_seat *seat, struct lender *lender,
               const struct gale_question *question, uint64_t hash,
               struct purse *likely)
{
	struct purse_name name = name_in(lender, question);

	if (purse_is(likely, &name))
		return likely;
	name.hash = hash;
	return root_find(root_of(seat, hash), &name);
}

static ALWAYS_INLINE struct purse *find_fetched(const struct flock *flock, size_t i)
{
	const struct gale_question *question = &flock->questions[i];
	const struct fetched *it = &flock->fetched[i];
	struct lender *lender = &flock->limiter->lender;
	struct purse_name name = name_in(lender, question);

	if (!LIKELY(it->likely != NULL))
		return NULL;
	if (LIKELY(question->key_len >= 9 && question->key_len <= 16) &&
	    LIKELY(purse_is(it->likely, &name)))
		return it->likely;
	return find_at_length(flock->seat, lender, question, it->hash, it->likely);
}

static ALWAYS_INLINE struct found take_fetched(const struct flock *flock, size_t i)
{
	struct found found = { .how = LOCAL_UNKNOWN };
	uint64_t cost = flock->questions[i].cost;
	struct purse *purse = find_fetched(flock, i);

	if (!LIKELY(purse != NULL) || !LIKELY(cost_is_quick(flock->limiter, cost)))
		return found;
	purse_use(purse);
	return take_quickly(flock->now, purse, local_cell(purse, flock->seat->number),
	                    cost);
}

/* Answers what can be answered from one word each.  What is left is returned, a bit each. */
static ALWAYS_INLINE uint32_t take_all(const struct flock *flock,
                                       struct gale_answer *ret_answers)
{
	uint64_t taken = 0, refused = 0;
	uint32_t left = 0;

	for (size_t i = 0; i < flock->count; i++) {
		struct found found = take_fetched(flock, i);

		if (!LIKELY(is_decided(&found))) {
			left |= UINT32_C(1) << i;
			continue;
		}
		if (LIKELY(found.how == LOCAL_TAKEN))
			taken++;
		else
			refused++;
		local_tell(&ret_answers[i], &flock->limiter->lender, found.how,
		           found.told);
	}
	count_add(&flock->seat->counters[COUNT_ALLOWED], taken);
	count_add(&flock->seat->counters[COUNT_REFUSED], refused);
	return left;
}

/* Each memory access of one overlaps with those of the others: first where their slots are,
 * then where their purses are.  Flat, so that nothing is called in between. */
static __attribute__((flatten, noinline)) uint32_t
ask_flock(struct gale_seat *seat, struct gale_limiter *limiter,
          const struct gale_question *questions, size_t count,
          struct gale_answer *ret_answers)
{
	const struct grace *grace = &seat->handle.runtime->grace;
	uint32_t left = (UINT32_C(1) << count) - 1;
	struct flock flock; /* not cleared, which would take as long as two asks */

	flock.seat = seat;
	flock.limiter = limiter;
	flock.questions = questions;
	flock.count = count;
	if (!lifeline_passes(&seat->handle.runtime->lifeline) ||
	    !seat_tells(seat, &flock.now))
		return left;
	reader_enter(grace, &seat->reader);
	fetch_homes(&flock);
	fetch_purses(&flock);
	left = take_all(&flock, ret_answers);
	reader_exit(&seat->reader);
	return left;
}

/* Those that are left, one by one, in their order. */
static void ask_left(struct gale_seat *seat, struct gale_limiter *limiter,
                     const struct gale_question *questions, uint32_t left,
                     struct gale_answer *ret_answers)
{
	for (; left > 0; left &= left - 1) {
		size_t i = (size_t)__builtin_ctz(left);
		const struct gale_question *it = &questions[i];

		ret_answers[i] = ask_at_length(seat, limiter, it->key, it->key_len,
		                               it->cost, it->tag);
	}
}

void gale_ask_many(struct gale_seat *seat, struct gale_limiter *limiter,
                   const struct gale_question *questions, size_t count,
                   struct gale_answer *ret_answers)
{
	enum gale_why why = check_handles(seat, limiter);

	if (!questions || !ret_answers)
		return;
	for (size_t i = 0; i < count && why != GALE_WHY_RULE; i++)
		ret_answers[i] = answer_refused(why);
	for (size_t i = 0; i < count && why == GALE_WHY_RULE; i += FLOCK) {
		size_t some = count - i < FLOCK ? count - i : FLOCK;
		uint32_t left =
		    ask_flock(seat, limiter, questions + i, some, ret_answers + i);

		ask_left(seat, limiter, questions + i, left, ret_answers + i);
	}
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
	struct wish wish;
	struct found found;

	if (!key || !cost_is_good(cost))
		return answer_refused(GALE_WHY_BAD_ASK);
	if (load_relaxed(&key->handle.closed))
		return answer_refused(GALE_WHY_CLOSED);
	if (!key->purse || check_handles(key->seat, key->limiter) != GALE_WHY_RULE ||
	    key->limiter->lender.lending == LENDING_PLACES ||
	    is_too_much(&key->limiter->lender, cost))
		return ask_by_name(key, cost, tag);
	key->cell = local_cell(key->purse, key->seat->number);
	wish = (struct wish){ .seat = key->seat,
		              .limiter = key->limiter,
		              .cost = cost,
		              .now = seat_now(key->seat) };
	found = try_purse(&wish, key->purse);
	if (found.how == LOCAL_UNKNOWN)
		return ask_by_name(key, cost, tag);
	return answer_from(&key->limiter->lender, &found);
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
