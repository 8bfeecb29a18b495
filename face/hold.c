/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hold.c -- units are held until it is known what the call has cost.
 *
 *     whole.c --held--> grow --> settle: back into the purses that they are from, or a debt there
 *
 * A hold has a pin on each purse, which its limiter lives as long as.  The host keeps the words
 * (struct gale_held); what they mean is engine/hold.h.
 *
 * Threads   The seat's own; a hold is one thread's at a time.
 */
#include "face/hold.h"

#include "face/answer.h"
#include "face/checks.h"
#include "face/straight.h"
#include "face/whole.h"

static struct gale_answer no_hold(struct gale_seat *seat)
{
	return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
}

struct gale_answer gale_hold_all(struct gale_seat *seat, struct gale_all *all,
                                 struct gale_hold *ret_hold, void *tag)
{
	return whole_hold(seat, all, ret_hold, tag, NULL);
}

struct gale_answer gale_hold_wait(struct gale_seat *seat, struct gale_all *all,
                                  struct gale_hold *ret_hold, uint64_t within_us)
{
	return whole_hold(seat, all, ret_hold, NULL, &within_us);
}

/* ---- Growing --------------------------------------------------------------------- */

static ALWAYS_INLINE bool is_held(const struct gale_seat *seat,
                                  const struct gale_hold *hold)
{
	return hold && hold->count >= 1 && hold->count <= GALE_PARTS_MAX &&
	       hold->of_gale == seat->handle.runtime->node;
}

/* The parts that grow, and where they stand in the hold; names only for shards. */
struct growth {
	struct trial trial;
	size_t which[GALE_PARTS_MAX];
	struct gale_part named[GALE_PARTS_MAX];
	uint8_t keys[GALE_PARTS_MAX][GALE_KEY_MAX];
};

static enum gale_why check_growth(const struct growth *growth,
                                  const struct gale_held *held, uint64_t more)
{
	struct held rest = held_by(held);
	enum gale_why why = check_handles(growth->trial.seat, limiter_of(held));

	if (why != GALE_WHY_RULE)
		return why; /* its purse may be gone */
	if (!credit_lives(rest.word, seat_look(growth->trial.seat)) ||
	    kept_is_before(held_voids(held), kept_voids(purse_of(held))))
		hold_lose(&rest); /* it grows in another word: HOLD-2 */
	return hold_may_grow(&rest, more) ? GALE_WHY_RULE : GALE_WHY_TOO_MUCH;
}

/* By name, where a shard is asked. */
static void add_part(struct growth *growth, const struct gale_hold *hold, size_t i,
                     uint64_t more)
{
	size_t at = growth->trial.count++;
	struct trial_part *part = &growth->trial.parts[at];

	growth->which[at] = i;
	part->limiter = limiter_of(&hold->parts[i]);
	part->cost = more;
	part->purse = purse_of(&hold->parts[i]);
	purse_copy_key(part->purse, growth->keys[at]);
	growth->named[at] = (struct gale_part){ .limiter = part->limiter,
		                                .key = growth->keys[at],
		                                .key_len = part->purse->key_len };
}

/* GALE_WHY_RULE: all of them may grow. */
static enum gale_why add_parts(struct growth *growth, struct gale_hold *hold,
                               const uint64_t *more)
{
	for (size_t i = 0; i < hold->count; i++) {
		enum gale_why why;

		if (more[i] == 0 || !purse_of(&hold->parts[i]))
			continue;
		hold->binding = i;
		why = check_growth(growth, &hold->parts[i], more[i]);
		if (why != GALE_WHY_RULE)
			return why;
		add_part(growth, hold, i, more[i]);
	}
	return GALE_WHY_RULE;
}

/* By units of a later window, or after the purse was made void. */
static __attribute__((noinline)) void grow_anew(struct gale_seat *seat,
                                                struct gale_held *held, uint64_t taken,
                                                uint64_t voids)
{
	struct held grown = held_by(held);

	if (kept_is_before(held_voids(held), voids)) /* HOLD-2 */
		hold_lose(&grown);
	hold_grow(&grown, taken, seat_look(seat));
	held_keep(held, &grown);
	held_keep_voids(held, voids);
}

/* Voids are of the purse, before these units were taken. */
static ALWAYS_INLINE void grow_part(struct gale_seat *seat, struct gale_held *held,
                                    uint64_t taken, uint64_t voids)
{
	struct held grown = held_by(held);

	if (!LIKELY(credit_is_like(grown.word, taken)) ||
	    !LIKELY(voids == held_voids(held))) {
		grow_anew(seat, held, taken, voids);
		return;
	}
	grown.word = credit_more(grown.word, credit_units(taken));
	held_keep(held, &grown);
}

static struct gale_answer refuse_growth(struct growth *growth, struct gale_hold *hold,
                                        size_t binding,
                                        const struct gale_answer *answer)
{
	const struct gale_part *named = &growth->named[binding];

	hold->binding = growth->which[binding];
	answer_counted(growth->trial.seat, named->limiter, named->key, named->key_len,
	               answer);
	return *answer;
}

/* A store that was not asked is no outage: on_outage does not decide. */
static void deny_unasked(struct trial *trial)
{
	for (uint32_t left = trial->unknown; left; left &= left - 1)
		trial->answers[__builtin_ctz(left)].verdict = GALE_DENY;
}

static void grow_by_kept(struct growth *growth, struct gale_hold *hold, size_t i)
{
	struct trial *trial = &growth->trial;
	struct kept_units *kept = &trial->parts[i].kept;

	answer_counted(trial->seat, trial->parts[i].limiter, trial->named[i].key,
	               trial->named[i].key_len, &trial->answers[i]);
	if (!kept->purse)
		return; /* on_outage */
	grow_part(trial->seat, &hold->parts[growth->which[i]], kept->word, kept->voids);
	seat_let_go(kept);
}

/* Where credit is short, the shards are asked. */
static struct gale_answer grow_by_trial(struct growth *growth, struct gale_hold *hold,
                                        uint64_t within_us)
{
	struct trial *trial = &growth->trial;
	struct gale_answer answer;
	size_t binding;

	if (!trial_take(trial, /* holds= */ false))
		return refuse_growth(growth, hold, trial->binding,
		                     &trial->answers[trial->binding]);
	trial_keep(trial, /* holds= */ false);
	whole_wait(trial, within_us);
	if (within_us == 0)
		deny_unasked(trial);
	answer = whole_of(trial->answers, trial->count, &binding);
	if (answer.verdict != GALE_ALLOW) {
		for (size_t i = 0; i < trial->count; i++)
			seat_give_back(trial->seat, trial->parts[i].limiter,
			               &trial->parts[i].kept);
		return refuse_growth(growth, hold, binding, &answer);
	}
	for (size_t i = 0; i < trial->count; i++)
		grow_by_kept(growth, hold, i);
	hold->binding = growth->which[binding];
	return answer;
}

static struct gale_answer nothing_to_grow(void)
{
	return (struct gale_answer){ .verdict = GALE_ALLOW, .why = GALE_WHY_CREDIT };
}

static __attribute__((noinline)) struct gale_answer grow_longer(struct gale_seat *seat,
                                                                struct gale_hold *hold,
                                                                const uint64_t *more,
                                                                uint64_t within_us)
{
	struct growth growth; /* its keys are not cleared */
	struct trial *trial = &growth.trial;
	enum gale_why why;

	if (!seat || !more || !is_held(seat, hold))
		return no_hold(seat);
	trial->seat = seat;
	trial->named = growth.named;
	trial->count = 0;
	why = add_parts(&growth, hold, more);
	if (why != GALE_WHY_RULE)
		return answer_refused(seat, limiter_of(&hold->parts[hold->binding]),
		                      why);
	if (trial->count == 0)
		return nothing_to_grow();
	trial->now = seat_now(seat);
	return grow_by_trial(&growth, hold, within_us);
}

/* A limiter that is closed is quick about nothing.  False: it does not grow straight, if at all. */
static ALWAYS_INLINE bool grows_straight(const struct gale_held *held, uint64_t more,
                                         struct straight_part *part, bool is_only)
{
	struct held now = held_by(held);

	part->limiter = limiter_of(held);
	part->cost = more;
	part->purse = purse_of(held);
	if (!LIKELY(part->purse != NULL))
		return false;
	part->voids = kept_voids(part->purse); /* before it takes */
	return LIKELY(cost_is_quick(&part->limiter->lender, more)) &&
	       LIKELY(hold_may_grow(&now, more)) &&
	       (is_only || LIKELY(load_relaxed(&part->purse->denial) == 0));
}

static ALWAYS_INLINE bool
grow_straight(struct gale_seat *seat, const struct gale_hold *hold,
              const uint64_t *more, struct straight_part *parts, size_t count, mono now)
{
	for (size_t i = 0; i < count; i++)
		if (!LIKELY(grows_straight(&hold->parts[i], more[i], &parts[i],
		                           /* is_only= */ count == 1)))
			return false;
	return straight_take(seat, parts, count, now, /* holds= */ false);
}

/* The units of the parts come to the hold, which has its pins already. */
static ALWAYS_INLINE struct gale_answer allow_growth(struct gale_seat *seat,
                                                     struct gale_hold *hold,
                                                     const struct straight_part *parts,
                                                     size_t count, mono now)
{
	for (size_t i = 0; i < count; i++)
		grow_part(seat, &hold->parts[i], straight_word(&parts[i], now),
		          parts[i].voids);
	return straight_tell_all(seat, parts, count, &hold->binding);
}

static ALWAYS_INLINE struct gale_answer grow_parts(struct gale_seat *seat,
                                                   struct gale_hold *hold,
                                                   const uint64_t *more, size_t count,
                                                   mono now, uint64_t within_us)
{
	struct straight_part parts[GALE_PARTS_MAX];

	if (!LIKELY(grow_straight(seat, hold, more, parts, count, now)))
		return grow_longer(seat, hold, more, within_us);
	return allow_growth(seat, hold, parts, count, now);
}

static __attribute__((noinline)) struct gale_answer
grow_several(struct gale_seat *seat, struct gale_hold *hold, const uint64_t *more,
             mono now, uint64_t within_us)
{
	return grow_parts(seat, hold, more, hold->count, now, within_us);
}

struct gale_answer gale_hold_grow(struct gale_seat *seat, struct gale_hold *hold,
                                  const uint64_t *more, uint64_t within_us)
{
	mono now;

	if (!LIKELY(more != NULL) || !LIKELY(seat_may(seat, &now)) ||
	    !LIKELY(is_held(seat, hold)))
		return grow_longer(seat, hold, more, within_us);
	seat_check_thread(seat);
	if (hold->count > 1)
		return grow_several(seat, hold, more, now, within_us);
	return grow_parts(seat, hold, more, 1, now, within_us);
}

/* ---- Settling -------------------------------------------------------------------- */

static enum gale_err no_seat(const struct gale_seat *seat)
{
	return seat && !lifeline_holds(&seat->handle.runtime->lifeline)
	           ? GALE_ERR_FORKED
	           : GALE_ERR_SEAT;
}

/* A debt is one word, which needs room. */
static __attribute__((noinline)) enum gale_err
check_excess(const struct gale_seat *seat, const struct gale_held *held, uint64_t cost)
{
	if (cost - held->units > CREDIT_UNITS_MAX)
		return GALE_ERR_COST;
	return !purse_of(held) || purses_make_room_for_debt(
				      purse_of(held), seat->handle.runtime->allocator)
	           ? GALE_ERR_OK
	           : GALE_ERR_MEMORY;
}

static enum gale_err check_costs(const struct gale_seat *seat,
                                 const struct gale_hold *hold, const uint64_t *costs)
{
	for (size_t i = 0; i < hold->count; i++) {
		enum gale_err err = GALE_ERR_OK;

		if (costs[i] > hold->parts[i].units)
			err = check_excess(seat, &hold->parts[i], costs[i]);
		if (err != GALE_ERR_OK)
			return err;
	}
	return GALE_ERR_OK;
}

/* GALE_ERR_LIMITER: nothing can be debited to it.  Now may be early: the code that puts something
 * back, or debits it, looks at the clock. */
static __attribute__((noinline)) enum gale_err
settle_longer(struct gale_seat *seat, struct gale_held *held, uint64_t cost, mono now)
{
	struct gale_limiter *limiter = limiter_of(held);
	struct kept_units kept = kept_by(held);
	struct kept_books books;
	struct held what = held_by(held);
	struct hold_end end = hold_settle(&what, cost, now);
	bool open, owes;

	if (!kept.purse) /* nothing keeps the limiter either */
		return GALE_ERR_OK;
	books = kept_books(kept.purse);
	open = handle_is_open(&limiter->handle, seat->handle.runtime);
	owes = seat_put_back(seat, &kept, end.back);
	if (end.over > 0 && open) {
		seat_owe(seat, kept, end.over);
		owes = kept_owes(kept.purse, books);
	}
	if (open && end.back + end.over > 0)
		seat_hand_on(seat, limiter, kept.purse, books, owes);
	else
		purse_unpin(kept.purse);
	return open ? GALE_ERR_OK : GALE_ERR_LIMITER;
}

/* Of a limiter that is open, at no more cost than was held. */
static ALWAYS_INLINE enum gale_err
settle_part(struct gale_seat *seat, struct gale_held *held, uint64_t cost, mono now)
{
	struct gale_limiter *limiter = limiter_of(held);
	struct kept_units kept = kept_by(held);
	struct held what = held_by(held);
	struct kept_books books;
	struct hold_end end;

	if (!LIKELY(kept.purse != NULL) ||
	    !LIKELY(!load_relaxed(&limiter->handle.closed)))
		return settle_longer(seat, held, cost, now);
	end = hold_settle(&what, cost, now);
	if (!LIKELY(end.over == 0))
		return settle_longer(seat, held, cost, now);
	if (end.back == 0) {
		purse_unpin(kept.purse);
		return GALE_ERR_OK;
	}
	books = kept_books(kept.purse);
	seat_hand_on(seat, limiter, kept.purse, books,
	             kept_give_back(&kept, end.back, books, &seat->clock));
	return GALE_ERR_OK;
}

/* Once, whatever comes of it. */
static ALWAYS_INLINE enum gale_err settle(struct gale_seat *seat,
                                          struct gale_hold *hold, size_t count,
                                          const uint64_t *costs, mono now)
{
	enum gale_err err = GALE_ERR_OK;

	seat_check_thread(seat);
	hold->count = 0;
	for (size_t i = 0; i < count; i++) {
		enum gale_err its = settle_part(seat, &hold->parts[i], costs[i], now);

		if (!LIKELY(its == GALE_ERR_OK))
			err = its;
	}
	return err;
}

/* A runtime that is closed settles nothing. */
static enum gale_err settle_all(struct gale_seat *seat, struct gale_hold *hold,
                                const uint64_t *costs, mono now, enum gale_err refusal)
{
	size_t count = refusal == GALE_ERR_RUNTIME ? 0 : hold->count;
	enum gale_err err;

	seat_collect_notes(seat);
	err = settle(seat, hold, count, costs, now);
	return err == GALE_ERR_OK ? refusal : err;
}

static __attribute__((noinline)) enum gale_err
commit_longer(struct gale_seat *seat, struct gale_hold *hold, const uint64_t *costs)
{
	enum gale_err refusal = GALE_ERR_OK, err;
	mono now;

	if (!costs)
		return GALE_ERR_COST;
	if (!seat_may(seat, &now)) {
		if (!seat || !seat_is_here(seat))
			return no_seat(seat);
		refusal = error_of_refusal(runtime_refuses(seat->handle.runtime));
		now = seat_now(seat);
	}
	if (!is_held(seat, hold))
		return GALE_ERR_HOLD;
	err = check_costs(seat, hold, costs);
	return err == GALE_ERR_OK ? settle_all(seat, hold, costs, now, refusal) : err;
}

/* Without a debt. */
static ALWAYS_INLINE bool are_within(const struct gale_hold *hold, size_t count,
                                     const uint64_t *costs)
{
	for (size_t i = 0; i < count; i++)
		if (!LIKELY(costs[i] <= hold->parts[i].units))
			return false;
	return true;
}

static ALWAYS_INLINE enum gale_err commit_parts(struct gale_seat *seat,
                                                struct gale_hold *hold, size_t count,
                                                const uint64_t *costs, mono now)
{
	if (!LIKELY(are_within(hold, count, costs)))
		return commit_longer(seat, hold, costs);
	return settle(seat, hold, count, costs, now);
}

static __attribute__((noinline)) enum gale_err commit_several(struct gale_seat *seat,
                                                              struct gale_hold *hold,
                                                              const uint64_t *costs,
                                                              mono now)
{
	return commit_parts(seat, hold, hold->count, costs, now);
}

enum gale_err gale_hold_commit(struct gale_seat *seat, struct gale_hold *hold,
                               const uint64_t *costs)
{
	mono now;

	if (!LIKELY(costs != NULL) || !LIKELY(seat_may(seat, &now)) ||
	    !LIKELY(is_held(seat, hold)) || !LIKELY(seat->notes == 0))
		return commit_longer(seat, hold, costs);
	if (hold->count > 1)
		return commit_several(seat, hold, costs, now);
	return commit_parts(seat, hold, 1, costs, now);
}

enum gale_err gale_hold_cancel(struct gale_seat *seat, struct gale_hold *hold)
{
	static const uint64_t nothing[GALE_PARTS_MAX];

	return gale_hold_commit(seat, hold, nothing);
}
