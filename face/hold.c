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
#include "engine/hold.h"

#include "engine/whole.h"
#include "face/answer.h"
#include "face/checks.h"
#include "face/whole.h"

/* gale_held.of_gale */
enum { LIMITER, PURSE, WORD, PAST, VOIDS };

static struct gale_limiter *limiter_of(const struct gale_held *held)
{
	return (struct gale_limiter *)(uintptr_t)held->of_gale[LIMITER];
}

/* NULL: the limiter's on_outage has allowed it, and nothing is held. */
static struct purse *purse_of(const struct gale_held *held)
{
	return (struct purse *)(uintptr_t)held->of_gale[PURSE];
}

static struct kept_units kept_by(const struct gale_held *held)
{
	return (struct kept_units){ purse_of(held), held->of_gale[WORD],
		                    held->of_gale[VOIDS] };
}

static struct held held_by(const struct gale_held *held)
{
	return (struct held){ held->of_gale[WORD], held->of_gale[PAST] };
}

static void keep(struct gale_held *held, const struct held *now)
{
	held->of_gale[WORD] = now->word;
	held->of_gale[PAST] = now->past;
	held->units = held_units(now);
}

void hold_begin(struct gale_hold *hold, const struct gale_seat *seat, size_t count)
{
	hold->count = count;
	hold->binding = 0;
	hold->of_gale = seat->handle.runtime->node;
}

void hold_put(struct gale_hold *hold, size_t i, struct gale_limiter *limiter,
              struct kept_units *kept)
{
	struct gale_held *held = &hold->parts[i];
	struct held now = { .word = kept->purse ? kept->word : 0 };

	held->of_gale[LIMITER] = (uintptr_t)limiter;
	held->of_gale[PURSE] = (uintptr_t)kept->purse;
	held->of_gale[VOIDS] = kept->voids;
	keep(held, &now);
	kept->purse = NULL; /* the pin is ours */
}

static struct gale_answer no_hold(struct gale_seat *seat)
{
	return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
}

struct gale_answer gale_hold_all(struct gale_seat *seat, struct gale_all *all,
                                 struct gale_hold *ret_hold, void *tag)
{
	if (!ret_hold)
		return no_hold(seat);
	ret_hold->count = 0;
	return whole_ask(seat, all, ret_hold, tag);
}

struct gale_answer gale_hold_wait(struct gale_seat *seat, struct gale_all *all,
                                  struct gale_hold *ret_hold, uint64_t within_us)
{
	if (!ret_hold)
		return no_hold(seat);
	ret_hold->count = 0;
	return whole_ask_and_wait(seat, all, ret_hold, within_us);
}

/* ---- Growing --------------------------------------------------------------------- */

/* The parts that grow, and where they stand in the hold. */
struct growth {
	struct trial trial;
	struct gale_part parts[GALE_PARTS_MAX];
	size_t which[GALE_PARTS_MAX];
	uint8_t keys[GALE_PARTS_MAX][GALE_KEY_MAX];
};

static bool is_held(const struct gale_seat *seat, const struct gale_hold *hold)
{
	return hold && hold->count >= 1 && hold->count <= GALE_PARTS_MAX &&
	       hold->of_gale == seat->handle.runtime->node;
}

static enum gale_why check_growth(const struct gale_seat *seat,
                                  const struct gale_held *held, uint64_t more)
{
	struct held now = held_by(held);
	enum gale_why why = check_handles(seat, limiter_of(held));

	if (why != GALE_WHY_RULE)
		return why;
	return more > CREDIT_UNITS_MAX || !hold_may_grow(&now, more) ? GALE_WHY_TOO_MUCH
	                                                             : GALE_WHY_RULE;
}

static void add_part(struct growth *growth, const struct gale_hold *hold, size_t i,
                     uint64_t more)
{
	size_t at = growth->trial.count++;
	const struct gale_held *held = &hold->parts[i];

	growth->which[at] = i;
	growth->trial.purses[at] = purse_of(held);
	growth->parts[at] =
	    (struct gale_part){ .limiter = limiter_of(held), .cost = more };
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
		why = check_growth(growth->trial.seat, &hold->parts[i], more[i]);
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
		purse_copy_key(growth->trial.purses[i], growth->keys[i]);
		growth->parts[i].key = growth->keys[i];
		growth->parts[i].key_len = growth->trial.purses[i]->key_len;
	}
}

static void grow_part(struct gale_seat *seat, struct gale_held *held, uint64_t taken)
{
	struct held grown = held_by(held);
	mono now = { 0 };

	if (!hold_is_like(&grown, taken))
		now = seat_look(seat);
	hold_grow(&grown, taken, now);
	keep(held, &grown);
}

/* The units that were kept come to the hold, whose pins it had already. */
static void grow_parts(struct growth *growth, struct gale_hold *hold, bool pinned)
{
	for (size_t i = 0; i < growth->trial.count; i++) {
		struct gale_held *held = &hold->parts[growth->which[i]];
		struct kept_units *kept = &growth->trial.kept[i];

		answer_counted(growth->trial.seat, growth->parts[i].limiter,
		               &growth->trial.answers[i]);
		if (!kept->purse)
			continue; /* on_outage */
		grow_part(growth->trial.seat, held, kept->word);
		if (pinned)
			seat_let_go(kept);
	}
}

static struct gale_answer refuse_growth(struct growth *growth, struct gale_hold *hold,
                                        size_t binding,
                                        const struct gale_answer *answer)
{
	hold->binding = growth->which[binding];
	answer_counted(growth->trial.seat, growth->parts[binding].limiter, answer);
	return *answer;
}

/* A store that was not asked is no outage: on_outage does not decide. */
static void deny_unasked(struct trial *trial)
{
	for (uint32_t left = trial->unknown; left; left &= left - 1)
		trial->answers[__builtin_ctz(left)].verdict = GALE_DENY;
}

/* Credit is short: the shards are asked. */
static struct gale_answer grow_by_shards(struct growth *growth, struct gale_hold *hold,
                                         uint64_t within_us)
{
	struct trial *trial = &growth->trial;
	struct gale_answer answer;
	size_t binding;

	name_parts(growth);
	whole_wait(trial, within_us);
	if (within_us == 0)
		deny_unasked(trial);
	answer = whole_of(trial->answers, trial->count, &binding);
	if (answer.verdict != GALE_ALLOW) {
		for (size_t i = 0; i < trial->count; i++)
			seat_give_back(trial->seat, growth->parts[i].limiter,
			               &trial->kept[i]);
		return refuse_growth(growth, hold, binding, &answer);
	}
	grow_parts(growth, hold, /* pinned= */ true);
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
	struct gale_answer answer;
	enum gale_why why;
	size_t binding;

	if (!seat || !more || !is_held(seat, hold))
		return no_hold(seat);
	growth.trial.seat = seat;
	growth.trial.parts = growth.parts;
	growth.trial.count = 0;
	why = add_parts(&growth, hold, more);
	if (why != GALE_WHY_RULE)
		return answer_refused(seat, limiter_of(&hold->parts[hold->binding]),
		                      why);
	if (growth.trial.count == 0)
		return nothing_to_grow();
	if (whole_try(&growth.trial, /* pinned= */ false, &binding))
		return refuse_growth(&growth, hold, binding,
		                     &growth.trial.answers[binding]);
	if (growth.trial.unknown)
		return grow_by_shards(&growth, hold, within_us);
	grow_parts(&growth, hold, /* pinned= */ false);
	answer = whole_of(growth.trial.answers, growth.trial.count, &binding);
	hold->binding = growth.which[binding];
	return answer;
}

/* ---- Settling -------------------------------------------------------------------- */

/* A debt is one word, which needs room. */
static enum gale_err check_cost(const struct gale_seat *seat,
                                const struct gale_held *held, uint64_t cost)
{
	if (cost <= held->units)
		return GALE_ERR_OK;
	if (cost - held->units > CREDIT_UNITS_MAX)
		return GALE_ERR_COST;
	return !purse_of(held) || purses_make_room_for_debt(
				      purse_of(held), seat->handle.runtime->allocator)
	           ? GALE_ERR_OK
	           : GALE_ERR_MEMORY;
}

static enum gale_err check_settle(const struct gale_seat *seat,
                                  const struct gale_hold *hold, const uint64_t *costs)
{
	if (!seat || !seat_is_here(seat))
		return seat && !lifeline_holds(&seat->handle.runtime->lifeline)
		           ? GALE_ERR_FORKED
		           : GALE_ERR_SEAT;
	if (!is_held(seat, hold))
		return GALE_ERR_HOLD;
	for (size_t i = 0; i < hold->count; i++) {
		enum gale_err err = check_cost(seat, &hold->parts[i], costs[i]);

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
		seat_owe(seat, &kept, end.over);
	if (open && end.back + end.over > 0)
		seat_hand_on(seat, limiter, &kept);
	seat_let_go(&kept);
	return open ? GALE_ERR_OK : GALE_ERR_LIMITER;
}

enum gale_err gale_hold_commit(struct gale_seat *seat, struct gale_hold *hold,
                               const uint64_t *costs)
{
	enum gale_err err = costs ? check_settle(seat, hold, costs) : GALE_ERR_COST;
	size_t count;
	mono now;

	if (err != GALE_ERR_OK)
		return err;
	seat_check_thread(seat);
	seat_collect_notes(seat);
	now = seat_now(seat);
	count = hold->count;
	hold->count = 0;
	err = error_of_refusal(runtime_refuses(seat->handle.runtime));
	for (size_t i = 0; i < count && err != GALE_ERR_RUNTIME; i++) {
		enum gale_err its = settle_part(seat, &hold->parts[i], costs[i], now);

		err = its != GALE_ERR_OK ? its : err;
	}
	return err;
}

enum gale_err gale_hold_cancel(struct gale_seat *seat, struct gale_hold *hold)
{
	static const uint64_t nothing[GALE_PARTS_MAX];

	return gale_hold_commit(seat, hold, nothing);
}
