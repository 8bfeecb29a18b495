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
#include "face/whole.h"

static struct gale_answer no_hold(struct gale_seat *seat)
{
	return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
}

struct gale_answer gale_hold_all(struct gale_seat *seat, struct gale_all *all,
                                 struct gale_hold *ret_hold, void *tag)
{
	return ret_hold ? whole_hold(seat, all, ret_hold, tag, NULL) : no_hold(seat);
}

struct gale_answer gale_hold_wait(struct gale_seat *seat, struct gale_all *all,
                                  struct gale_hold *ret_hold, uint64_t within_us)
{
	return ret_hold ? whole_hold(seat, all, ret_hold, NULL, &within_us)
	                : no_hold(seat);
}

/* ---- Growing --------------------------------------------------------------------- */

/* The parts that grow, and where they stand in the hold; names only for shards. */
struct growth {
	struct trial trial;
	bool seat_may;
	size_t which[GALE_PARTS_MAX];
	struct gale_part named[GALE_PARTS_MAX];
	uint8_t keys[GALE_PARTS_MAX][GALE_KEY_MAX];
};

static bool is_held(const struct gale_seat *seat, const struct gale_hold *hold)
{
	return hold && hold->count >= 1 && hold->count <= GALE_PARTS_MAX &&
	       hold->of_gale == seat->handle.runtime->node;
}

/* A limiter that is closed is quick about nothing. */
static enum gale_why check_growth(const struct growth *growth,
                                  const struct gale_held *held, uint64_t more)
{
	struct held now = held_by(held);
	enum gale_why why = GALE_WHY_RULE;

	if (!LIKELY(growth->seat_may) ||
	    !LIKELY(cost_is_quick(&limiter_of(held)->lender, more)))
		why = check_handles(growth->trial.seat, limiter_of(held));
	return why == GALE_WHY_RULE && !hold_may_grow(&now, more) ? GALE_WHY_TOO_MUCH
	                                                          : why;
}

static void add_part(struct growth *growth, const struct gale_hold *hold, size_t i,
                     uint64_t more)
{
	size_t at = growth->trial.count++;
	struct trial_part *part = &growth->trial.parts[at];

	growth->which[at] = i;
	part->limiter = limiter_of(&hold->parts[i]);
	part->cost = more;
	part->purse = purse_of(&hold->parts[i]);
	growth->trial.denials |= load_relaxed(&part->purse->denial);
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

/* By name, where a shard is asked. */
static void name_parts(struct growth *growth)
{
	for (size_t i = 0; i < growth->trial.count; i++) {
		const struct trial_part *part = &growth->trial.parts[i];

		purse_copy_key(part->purse, growth->keys[i]);
		growth->named[i] =
		    (struct gale_part){ .limiter = part->limiter,
			                .key = growth->keys[i],
			                .key_len = part->purse->key_len };
	}
	growth->trial.named = growth->named;
}

static ALWAYS_INLINE void grow_part(struct gale_seat *seat, struct gale_held *held,
                                    uint64_t taken)
{
	struct held grown = held_by(held);

	if (LIKELY(credit_is_like(grown.word, taken)))
		grown.word = credit_more(grown.word, credit_units(taken));
	else
		hold_grow(&grown, taken, seat_look(seat));
	held_keep(held, &grown);
}

/* What the parts have taken comes to the hold, which has its pins already. */
static ALWAYS_INLINE struct gale_answer allow_growth(struct growth *growth,
                                                     struct gale_hold *hold)
{
	const struct trial *trial = &growth->trial;
	struct whole whole = whole_begin();

	for (size_t i = 0; i < trial->count; i++) {
		grow_part(trial->seat, &hold->parts[growth->which[i]],
		          trial_kept(trial, i).word);
		trial_add(trial, i, &whole);
	}
	hold->binding = growth->which[whole.binding];
	return whole_answer(&whole);
}

static __attribute__((noinline)) struct gale_answer
refuse_growth(struct growth *growth, struct gale_hold *hold, size_t binding,
              const struct gale_answer *answer)
{
	const struct trial_part *part = &growth->trial.parts[binding];

	hold->binding = growth->which[binding];
	purse_copy_key(part->purse, growth->keys[binding]);
	answer_counted(growth->trial.seat, part->limiter, growth->keys[binding],
	               part->purse->key_len, answer);
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
	grow_part(trial->seat, &hold->parts[growth->which[i]], kept->word);
	seat_let_go(kept);
}

/* Credit is short: the shards are asked. */
static struct gale_answer grow_by_shards(struct growth *growth, struct gale_hold *hold,
                                         uint64_t within_us)
{
	struct trial *trial = &growth->trial;
	struct gale_answer answer;
	size_t binding;

	trial_keep(trial, /* holds= */ false);
	name_parts(growth);
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

struct gale_answer gale_hold_grow(struct gale_seat *seat, struct gale_hold *hold,
                                  const uint64_t *more, uint64_t within_us)
{
	struct growth growth; /* its keys are not cleared */
	struct trial *trial = &growth.trial;
	enum gale_why why;

	if (!LIKELY(seat != NULL) || !LIKELY(more != NULL) ||
	    !LIKELY(is_held(seat, hold)))
		return no_hold(seat);
	trial->seat = seat;
	trial->count = 0;
	trial->denials = 0;
	growth.seat_may = seat_may(seat, &trial->now);
	why = add_parts(&growth, hold, more);
	if (why != GALE_WHY_RULE)
		return answer_refused(seat, limiter_of(&hold->parts[hold->binding]),
		                      why);
	if (trial->count == 0)
		return nothing_to_grow();
	if (!LIKELY(growth.seat_may))
		trial->now = seat_now(seat);
	if (!LIKELY(trial_take(trial, /* holds= */ false)))
		return refuse_growth(&growth, hold, trial->binding,
		                     &trial->answers[trial->binding]);
	if (!LIKELY(trial->unknown == 0))
		return grow_by_shards(&growth, hold, within_us);
	return allow_growth(&growth, hold);
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

		if (!LIKELY(costs[i] <= hold->parts[i].units))
			err = check_excess(seat, &hold->parts[i], costs[i]);
		if (err != GALE_ERR_OK)
			return err;
	}
	return GALE_ERR_OK;
}

/* GALE_ERR_LIMITER: nothing can be debited to it.  Now may be early: who puts something back, or
 * debits it, looks at the clock. */
static enum gale_err settle_part(struct gale_seat *seat, struct gale_held *held,
                                 uint64_t cost, mono now)
{
	struct gale_limiter *limiter = limiter_of(held);
	struct kept_units kept = kept_by(held);
	struct held what = held_by(held);
	struct hold_end end = hold_settle(&what, cost, now);
	bool open;

	if (!kept.purse) /* nothing keeps the limiter either */
		return GALE_ERR_OK;
	open = handle_is_open(&limiter->handle, seat->handle.runtime);
	seat_put_back(seat, &kept, end.back);
	if (end.over > 0 && open)
		seat_owe(seat, kept, end.over);
	if (open && end.back + end.over > 0)
		seat_hand_on(seat, limiter, kept);
	else
		purse_unpin(kept.purse);
	return open ? GALE_ERR_OK : GALE_ERR_LIMITER;
}

/* Once, whatever comes of it.  A runtime that is closed settles nothing. */
static __attribute__((noinline)) enum gale_err settle(struct gale_seat *seat,
                                                      struct gale_hold *hold,
                                                      const uint64_t *costs, mono now,
                                                      enum gale_err err)
{
	size_t count = hold->count;

	seat_check_thread(seat);
	seat_collect_notes(seat);
	hold->count = 0;
	if (!LIKELY(err != GALE_ERR_RUNTIME))
		return err;
	for (size_t i = 0; i < count; i++) {
		enum gale_err its = settle_part(seat, &hold->parts[i], costs[i], now);

		if (!LIKELY(its == GALE_ERR_OK))
			err = its;
	}
	return err;
}

enum gale_err gale_hold_commit(struct gale_seat *seat, struct gale_hold *hold,
                               const uint64_t *costs)
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
	return err == GALE_ERR_OK ? settle(seat, hold, costs, now, refusal) : err;
}

enum gale_err gale_hold_cancel(struct gale_seat *seat, struct gale_hold *hold)
{
	static const uint64_t nothing[GALE_PARTS_MAX];

	return gale_hold_commit(seat, hold, nothing);
}
