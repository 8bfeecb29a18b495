/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * many.c -- many asks at once: the memory of sixteen is fetched at the same time.
 *
 *     keys -> where they are at home -> what is likely theirs -> is it?  Then take
 *
 * Each step is done for all of them before the next one, so that each memory access of one
 * overlaps with those of the others.  All is one read, as what is likely is remembered from
 * one step to the next (TABLE-3), and at one instant.  Nothing in it waits: what is not answered
 * from one word each is left, and asked for afterwards, at length.
 *
 * Threads   The seat's own.
 */
#include "face/answer.h"
#include "face/lend.h"
#include "face/quick.h"

#define FLOCK 16 /* asks whose memory is fetched at the same time */
static_assert(FLOCK < 32, "a bit each for those that are left");
static_assert(HASH_MOST <= PURSE_HEAD, "a purse has a short key in one place");

/* So many asks, and what was found of them. */
struct flock {
	struct gale_seat *seat;
	struct lender *lender;
	const struct gale_question *questions;
	size_t count;
	mono now;
	struct fetched {
		/* To be its purse; NULL: there is none.  TABLE-3 */
		const _Atomic uint64_t *home;
		uint64_t hash;
		struct purse *likely;
	} fetched[FLOCK];
};

/* Where a key is at home that is none, with a hash of 0: what is likely there is NULL. */
static const _Atomic uint64_t nowhere[TABLE_NEAR] = { SLOT_OF_NOTHING };

static ALWAYS_INLINE void fetch_homes(struct flock *flock)
{
	for (size_t i = 0; i < flock->count; i++) {
		const struct gale_question *question = &flock->questions[i];
		const void *key = question->key;
		size_t key_len = question->key_len;
		struct fetched *it = &flock->fetched[i];

		if (LIKELY(hash_is_short(key_len)) && LIKELY(key != NULL)) {
			it->hash = hash_short(&flock->lender->secret, key, key_len);
		} else if (key_is_good(key, key_len)) {
			it->hash = local_hash(flock->lender, key, key_len);
		} else {
			it->hash = 0;
			it->home = nowhere;
			continue;
		}
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
		uint64_t slot;

		slot = home_near(it->home, it->hash);
		it->likely = LIKELY(slot_is_of(slot, it->hash))
		                 ? slot_item(slot)
		                 : likely_elsewhere(flock->seat, it->hash);
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

/* For keys that are not short; for short ones, seldom.  Nothing of the flock is pointed to, so
 * that it may be in registers. */
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
	struct purse_name name = name_in(flock->lender, question);

	if (!LIKELY(it->likely != NULL))
		return NULL;
	if (LIKELY(hash_is_short(name.key_len)) &&
	    LIKELY(purse_is_of_short(it->likely, &name)))
		return it->likely;
	return find_at_length(flock->seat, flock->lender, question, it->hash,
	                      it->likely);
}

static ALWAYS_INLINE struct found take_fetched(const struct flock *flock, size_t i)
{
	struct found found = { .how = LOCAL_UNKNOWN };
	uint64_t cost = flock->questions[i].cost;
	struct purse *purse;

	if (!LIKELY(cost_is_quick(flock->lender, cost)))
		return found;
	purse = find_fetched(flock, i);
	if (!LIKELY(purse != NULL))
		return found;
	purse_use(purse);
	found.how = local_try_unfought(purse, flock->now, cost, &found.told);
	if (LIKELY(found.how != LOCAL_ELSEWHERE))
		return found;
	return take_quickly(flock->now, purse, local_cell(purse, flock->seat->number),
	                    cost);
}

/* Seldom; nothing of the flock is pointed to. */
static __attribute__((noinline)) void
count_refused(struct gale_seat *seat, struct gale_limiter *limiter,
              const struct gale_question *questions, size_t count, uint32_t left,
              const struct gale_answer *answers)
{
	for (size_t i = 0; i < count; i++)
		if (!(left & UINT32_C(1) << i) && answers[i].verdict == GALE_DENY)
			answer_counted(seat, limiter, questions[i].key,
			               questions[i].key_len, &answers[i]);
}

/* Answers asks that can be answered from one word each.  The rest is returned, a bit each. */
static ALWAYS_INLINE uint32_t take_all(const struct flock *flock,
                                       struct gale_limiter *limiter,
                                       struct gale_answer *ret_answers)
{
	struct score *score = seat_score(flock->seat, flock->lender);
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
		local_tell(&ret_answers[i], flock->lender, found.how, found.told);
	}
	score_add(score, GALE_ALLOW, GALE_WHY_CREDIT, taken);
	if (!LIKELY(refused == 0))
		count_refused(flock->seat, limiter, flock->questions, flock->count,
		              left, ret_answers);
	return left;
}

/* Flat, so that nothing is called for most keys. */
static __attribute__((flatten, noinline)) uint32_t
ask_flock(struct gale_seat *seat, struct gale_limiter *limiter,
          const struct gale_question *questions, size_t count, mono now,
          struct gale_answer *ret_answers)
{
	struct flock flock; /* not cleared, which would take as long as two asks */
	uint32_t left;

	flock.seat = seat;
	flock.lender = &limiter->lender;
	flock.questions = questions;
	flock.count = count;
	flock.now = now;
	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	fetch_homes(&flock);
	fetch_purses(&flock);
	left = take_all(&flock, limiter, ret_answers);
	reader_exit(&seat->reader);
	return left;
}

/* Nothing is known in this node of a limiter that does not lend. */
static uint32_t ask_if_known(struct gale_seat *seat, struct gale_limiter *limiter,
                             const struct gale_question *questions, size_t count,
                             struct gale_answer *ret_answers)
{
	if (limiter->lender.lending == LENDING_NOT || !lifeline_passes(&seat->lifeline))
		return (UINT32_C(1) << count) - 1;
	return ask_flock(seat, limiter, questions, count, seat_now(seat), ret_answers);
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
		ret_answers[i] = answer_refused(seat, limiter, why);
	for (size_t i = 0; i < count && why == GALE_WHY_RULE; i += FLOCK) {
		size_t some = count - i < FLOCK ? count - i : FLOCK;
		uint32_t left =
		    ask_if_known(seat, limiter, questions + i, some, ret_answers + i);

		ask_left(seat, limiter, questions + i, left, ret_answers + i);
	}
}
