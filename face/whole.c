/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.c -- one call that several limiters must admit: each keeps its units for the call until all
 * have them.
 *
 *     guard -> checks -> credit of each part -> all of them: ALLOW
 *                                           '-> one denies from memory: give back, DENY
 *                                           '-> some lack credit: a shard each -> all there?
 *
 * While shards are asked, the whole is a chain of pendings, one of each part, and the first knows
 * how many have not come yet.  Parts that have their units already stand in the chain, too, so that
 * a seat that dies gives back what it had.
 *
 * A whole that is held goes the same way, but what is kept goes to the hold (hold.c).
 *
 * Threads   The seat's own.
 */
#include "face/whole.h"

#include "face/answer.h"
#include "face/checks.h"
#include "face/hold.h"
#include "face/lend.h"
#include "face/straight.h"

/* ---- Checks ---------------------------------------------------------------------- */

static enum gale_why why_wrong(const struct trial *trial, size_t i, bool is_cut)
{
	const struct gale_part *part = &trial->named[i];
	uint64_t cost =
	    is_cut && part->cost > GALE_UNITS_MAX ? GALE_UNITS_MAX : part->cost;
	enum gale_why why =
	    check_ask(trial->seat, part->limiter, part->key, part->key_len, cost);

	if (why != GALE_WHY_RULE)
		return why;
	if (part->limiter->lender.lending != LENDING_UNITS)
		return GALE_WHY_BAD_ASK;
	if (is_cut)
		return GALE_WHY_RULE;
	if (part->cost > load_relaxed(&part->limiter->lender.capacity))
		return GALE_WHY_TOO_MUCH;
	return part->cost > CREDIT_UNITS_MAX ? GALE_WHY_BAD_ASK : GALE_WHY_RULE;
}

/* Must it not be asked for?  A hold is cut to the units that can be had at all. */
static bool is_wrong(struct trial *trial, size_t i, struct gale_hold *hold)
{
	const struct gale_part *named = &trial->named[i];

	trial->binding = i;
	trial->parts[i].cost = named->cost;
	if (why_wrong(trial, i, /* is_cut= */ hold != NULL) != GALE_WHY_RULE)
		return true;
	if (!hold)
		return false;
	trial->parts[i].cost =
	    hold_cut(named->cost, load_relaxed(&named->limiter->lender.capacity));
	hold->cut |= trial->parts[i].cost < named->cost;
	return false;
}

static ALWAYS_INLINE bool is_whole(const struct gale_all *all)
{
	return all && all->parts && all->count - 1 < GALE_PARTS_MAX;
}

/* ---- Finding --------------------------------------------------------------------- */

/* False: a part is wrong. */
static bool find_all(struct trial *trial, struct gale_hold *hold)
{
	for (size_t i = 0; i < trial->count; i++) {
		const struct gale_part *named = &trial->named[i];
		struct trial_part *part = &trial->parts[i];

		if (is_wrong(trial, i, hold))
			return false;
		part->limiter = named->limiter;
		part->purse = straight_find_longer(trial->seat, named);
		if (part->purse)
			purse_use(part->purse);
	}
	return true;
}

/* The outcome of a try from credit and from memory. */
enum tried {
	TRIED_ALL,    /* all is taken, and pinned */
	TRIED_SOME,   /* shards must be asked about others; what is taken is pinned */
	TRIED_DENIED, /* by a part; nothing is taken */
	TRIED_WRONG,  /* a part must not be asked for */
};

static enum tried try_all(struct trial *trial, bool holds)
{
	if (!trial_take(trial, holds))
		return TRIED_DENIED;
	trial_keep(trial, holds);
	return trial->unknown == 0 ? TRIED_ALL : TRIED_SOME;
}

static enum tried find_and_try(struct trial *trial, struct gale_hold *hold)
{
	struct gale_seat *seat = trial->seat;
	enum tried tried = TRIED_WRONG;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	if (find_all(trial, hold))
		tried = try_all(trial, /* holds= */ hold != NULL);
	reader_exit(&seat->reader);
	return tried;
}

/* ---- What becomes of the whole --------------------------------------------------- */

/* False: there is no slot. */
static bool enter(struct gale_seat *seat, struct gale_all *all)
{
	all->entry = gale_enter(seat, all->guard, all->slots, all->of_class);
	if (all->entry.verdict == GALE_ALLOW)
		return true;
	all->binding = GALE_BINDING_GUARD;
	return false;
}

static struct gale_answer no_slot(const struct gale_entry *entry)
{
	return (struct gale_answer){ .verdict = GALE_DENY,
		                     .why = entry->why,
		                     .limit = entry->limit };
}

static void leave(struct gale_seat *seat, struct gale_all *all)
{
	if (all->guard)
		gale_exit(seat, &all->entry, GALE_IGNORED);
}

/* Tells what is wrong with the part, and has its limiter count that. */
static __attribute__((noinline)) struct gale_answer
refuse_wrong(struct trial *trial, struct gale_all *all, bool is_cut)
{
	enum gale_why why = why_wrong(trial, trial->binding, is_cut);
	struct gale_answer answer =
	    answer_refused(trial->seat, trial->named[trial->binding].limiter, why);

	all->binding = trial->binding;
	if (why == GALE_WHY_TOO_MUCH)
		answer.retry_after_us = GALE_NEVER;
	return answer;
}

static struct gale_answer deny(struct gale_seat *seat, struct gale_all *all,
                               const struct gale_part *part, size_t binding,
                               const struct gale_answer *answer)
{
	all->binding = binding;
	answer_counted(seat, part->limiter, part->key, part->key_len, answer);
	leave(seat, all);
	return *answer;
}

static struct gale_answer deny_trial(struct gale_all *all, struct trial *trial)
{
	size_t binding = trial->binding;

	return deny(trial->seat, all, &trial->named[binding], binding,
	            &trial->answers[binding]);
}

/* All answers are there, and what is kept is pinned. */
static struct gale_answer settle(struct gale_seat *seat, struct gale_all *all,
                                 struct gale_hold *hold, const struct gale_part *parts,
                                 const struct gale_answer *answers,
                                 struct kept_units *const *kept, size_t count)
{
	size_t binding;
	struct gale_answer answer = whole_of(answers, count, &binding);

	if (answer.verdict != GALE_ALLOW) {
		for (size_t i = 0; i < count; i++)
			seat_give_back(seat, parts[i].limiter, kept[i]);
		return deny(seat, all, &parts[binding], binding, &answer);
	}
	if (hold)
		hold_begin(hold, seat, count);
	for (size_t i = 0; i < count; i++) {
		if (hold) {
			hold_put(hold, i, parts[i].limiter, *kept[i]);
			kept[i]->purse = NULL;
		}
		seat_let_go(kept[i]);
		answer_counted(seat, parts[i].limiter, parts[i].key, parts[i].key_len,
		               &answers[i]);
	}
	all->binding = binding;
	return answer;
}

static struct gale_answer settle_trial(struct gale_all *all, struct gale_hold *hold,
                                       struct trial *trial)
{
	struct kept_units *kept[GALE_PARTS_MAX];

	for (size_t i = 0; i < trial->count; i++)
		kept[i] = &trial->parts[i].kept;
	return settle(trial->seat, all, hold, trial->named, trial->answers, kept,
	              trial->count);
}

/* ---- Without waiting ------------------------------------------------------------- */

static void append_part(struct pending **first, struct pending *part)
{
	struct pending **at = first;

	while (*at)
		at = &(*at)->next_part;
	*at = part;
	part->next_part = NULL;
	part->whole = *first; /* its own, if it is the first */
}

static void decide(struct pending *part, const struct gale_answer *answer)
{
	part->ask.op.answer = *answer;
	part->is_decided = true;
}

/* In hand: its units are there already, or it is known that nothing comes of it, or a shard is to
 * be asked.  NULL: none is free. */
static struct pending *part_of(struct trial *trial, size_t i)
{
	struct gale_seat *seat = trial->seat;
	struct pending *part = ask_part(seat, &trial->named[i], trial->parts[i].cost);
	enum store_result refusal;
	struct gale_answer answer;

	if (!part)
		return NULL;
	if (trial_has_taken(trial, i)) {
		part->ask.kept = trial->parts[i].kept;
		decide(part, &trial->answers[i]);
		return part;
	}
	seat_count(seat, COUNT_MISSED);
	refusal = local_refusal(seat, part->limiter, &part->ask.op);
	if (refusal == STORE_DONE)
		return part;
	answer = answer_of(part->limiter, &part->ask.op, refusal);
	decide(part, &answer);
	return part;
}

/* The seat has a pending for each. */
static struct pending *chain_of(struct trial *trial)
{
	struct pending *first = NULL;

	for (size_t i = 0; i < trial->count; i++)
		append_part(&first, part_of(trial, i));
	first->waits_for = (uint32_t)trial->count;
	return first;
}

/* From here on parts come back: at once those that are decided. */
static void send_all(struct gale_seat *seat, struct pending *first)
{
	struct pending *part, *next;

	for (part = first; part; part = next) {
		next = part->next_part;
		if (part->is_decided || !seat_post(seat, part)) {
			if (!part->is_decided)
				part->ask.result = STORE_BUSY;
			seat_ready(seat, part);
		}
	}
	seat_raise_if_ready(seat);
}

/* No shard was asked. */
static void undecided(struct trial *trial, size_t i, enum store_result result)
{
	const struct store_op none = { .verb = STORE_PEEK };

	trial->answers[i] = answer_of(trial->parts[i].limiter, &none, result);
}

/* Each part takes a pending of the seat. */
static struct gale_answer ask_shards(struct gale_all *all, struct gale_hold *hold,
                                     struct trial *trial, void *tag)
{
	size_t which = (size_t)__builtin_ctz(trial->unknown);
	struct gale_limiter *limiter = trial->parts[which].limiter;
	struct pending *first;

	trial_tell_taken(trial);
	if (!seat_has_free(trial->seat, trial->count)) {
		seat_count(trial->seat, COUNT_CROWDED);
		for (uint32_t left = trial->unknown; left; left &= left - 1)
			undecided(trial, (size_t)__builtin_ctz(left), STORE_BUSY);
		return settle_trial(all, hold, trial);
	}
	first = chain_of(trial);
	first->all = all;
	first->hold = hold;
	first->tag = tag;
	send_all(trial->seat, first);
	return answer_pending(limiter);
}

static struct gale_answer answer_to(struct pending *part)
{
	return part->is_decided
	           ? part->ask.op.answer
	           : answer_of(part->limiter, &part->ask.op, part->ask.result);
}

bool whole_complete(struct gale_seat *seat, struct pending *part,
                    struct gale_completion *ret_completion)
{
	struct pending *first = part->whole, *at, *next;
	struct gale_answer answers[GALE_PARTS_MAX];
	struct gale_part parts[GALE_PARTS_MAX];
	struct kept_units *kept[GALE_PARTS_MAX];
	size_t count = 0;

	if (--first->waits_for > 0)
		return false;
	for (at = first; at; at = at->next_part, count++) {
		answers[count] = answer_to(at);
		parts[count] = whole_part(at);
		kept[count] = &at->ask.kept;
	}
	ret_completion->tag = first->tag;
	ret_completion->answer =
	    settle(seat, first->all, first->hold, parts, answers, kept, count);
	for (at = first; at; at = next) {
		next = at->next_part;
		seat_recycle(seat, at);
	}
	return true;
}

/* ---- Waiting --------------------------------------------------------------------- */

/* NULL: its answer is known.  The op is copied before a shard has it, since the outage policy may
 * ask again; its key stays in the pending. */
static struct pending *send_awaited(struct trial *trial, size_t i, mono due,
                                    struct store_op *ret_op)
{
	struct pending *part = part_of(trial, i);

	if (!part) {
		undecided(trial, i, STORE_BUSY);
		return NULL;
	}
	part->awaited = true;
	part->ask.due = due;
	*ret_op = part->ask.op;
	if (!part->is_decided && seat_post(trial->seat, part))
		return part;
	trial->answers[i] = part->is_decided
	                        ? part->ask.op.answer
	                        : answer_of(part->limiter, &part->ask.op, STORE_BUSY);
	seat_recycle(trial->seat, part);
	return NULL;
}

void whole_wait(struct trial *trial, uint64_t within_us)
{
	struct pending *pendings[GALE_PARTS_MAX] = { NULL };
	struct store_op ops[GALE_PARTS_MAX];
	uint64_t deadline_ns = ask_deadline(within_us);
	mono due = ask_due(trial->seat, within_us);

	trial_tell_taken(trial);
	/* All shards are asked before one is waited for. */
	for (uint32_t left = trial->unknown; left; left &= left - 1) {
		size_t i = (size_t)__builtin_ctz(left);

		if (within_us > 0)
			pendings[i] = send_awaited(trial, i, due, &ops[i]);
		else
			undecided(trial, i, STORE_LATE);
	}
	for (size_t i = 0; i < trial->count; i++) {
		enum store_result result;

		if (!pendings[i])
			continue;
		result = seat_await(trial->seat, pendings[i], &ops[i],
		                    &trial->parts[i].kept, deadline_ns);
		trial->answers[i] = answer_of(trial->parts[i].limiter, &ops[i], result);
	}
}

/* ---- Asking ---------------------------------------------------------------------- */

static struct gale_answer try_longer(struct gale_all *all, struct gale_hold *hold,
                                     struct trial *trial, void *tag,
                                     const uint64_t *within_us)
{
	enum tried tried = find_and_try(trial, hold);

	if (tried == TRIED_DENIED)
		return deny_trial(all, trial);
	if (tried == TRIED_WRONG) {
		leave(trial->seat, all);
		return refuse_wrong(trial, all, /* is_cut= */ hold != NULL);
	}
	if (tried == TRIED_SOME && !within_us)
		return ask_shards(all, hold, trial, tag);
	if (tried == TRIED_SOME)
		whole_wait(trial, *within_us);
	else
		trial_tell_taken(trial);
	return settle_trial(all, hold, trial);
}

/* False: nothing is taken. */
static ALWAYS_INLINE bool take_straight(struct gale_seat *seat,
                                        const struct gale_all *all,
                                        struct straight_part *parts, size_t count,
                                        mono now, bool holds)
{
	bool taken;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	taken = LIKELY(straight_find(seat, all->parts, parts, count)) &&
	        LIKELY(straight_take(seat, parts, count, now, holds));
	reader_exit(&seat->reader);
	return taken;
}

/* The hold takes over the pins. */
static ALWAYS_INLINE struct gale_answer
allow_straight(const struct gale_seat *seat, struct gale_all *all,
               struct gale_hold *hold, const struct straight_part *parts, size_t count,
               mono now)
{
	if (hold) {
		hold->cut = false;
		hold_begin(hold, seat, count);
		for (size_t i = 0; i < count; i++)
			hold_put(hold, i, parts[i].limiter,
			         straight_kept(&parts[i], now));
	}
	return straight_tell_all(seat, parts, count, &all->binding);
}

/* A call with a guard, and a call of a seat that does not know the time, was not tried straight away. */
static __attribute__((noinline)) struct gale_answer
ask_longer(struct gale_seat *seat, struct gale_all *all, struct gale_hold *hold,
           void *tag, const uint64_t *within_us)
{
	struct straight_part parts[GALE_PARTS_MAX];
	struct trial trial;
	bool is_tried;

	if (hold) {
		hold->count = 0;
		hold->cut = false;
	}
	if (!is_whole(all))
		return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
	trial.seat = seat;
	trial.named = all->parts;
	trial.count = all->count;
	is_tried = !all->guard;
	if (!seat_may(seat, &trial.now)) {
		if (is_wrong(&trial, 0, hold))
			return refuse_wrong(&trial, all, /* is_cut= */ hold != NULL);
		trial.now = seat_now(seat);
		is_tried = false;
	}
	seat_check_thread(seat);
	if (all->guard && !enter(seat, all))
		return no_slot(&all->entry);
	if (!is_tried && take_straight(seat, all, parts, all->count, trial.now,
	                               /* holds= */ hold != NULL))
		return allow_straight(seat, all, hold, parts, all->count, trial.now);
	return try_longer(all, hold, &trial, tag, within_us);
}

static ALWAYS_INLINE struct gale_answer
ask_parts(struct gale_seat *seat, struct gale_all *all, struct gale_hold *hold,
          size_t count, mono now, void *tag, const uint64_t *within_us)
{
	struct straight_part parts[GALE_PARTS_MAX];

	if (!LIKELY(take_straight(seat, all, parts, count, now,
	                          /* holds= */ hold != NULL)))
		return ask_longer(seat, all, hold, tag, within_us);
	return allow_straight(seat, all, hold, parts, count, now);
}

/* May it be asked straight away? */
static ALWAYS_INLINE bool may_be_straight(const struct gale_seat *seat,
                                          const struct gale_all *all, mono *ret_now)
{
	return LIKELY(is_whole(all)) && LIKELY(seat_may(seat, ret_now)) &&
	       LIKELY(all->guard == NULL);
}

/* Once for each count that is usual; each apart from the others, as it needs the registers. */
static __attribute__((noinline)) struct gale_answer
hold_several(struct gale_seat *seat, struct gale_all *all, struct gale_hold *hold,
             void *tag, const uint64_t *within_us, mono now)
{
	if (all->count == 2)
		return ask_parts(seat, all, hold, 2, now, tag, within_us);
	return ask_parts(seat, all, hold, all->count, now, tag, within_us);
}

struct gale_answer whole_hold(struct gale_seat *seat, struct gale_all *all,
                              struct gale_hold *hold, void *tag,
                              const uint64_t *within_us)
{
	mono now;

	if (!LIKELY(hold != NULL))
		return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
	if (!may_be_straight(seat, all, &now))
		return ask_longer(seat, all, hold, tag, within_us);
	seat_check_thread(seat);
	if (all->count > 1)
		return hold_several(seat, all, hold, tag, within_us, now);
	return ask_parts(seat, all, hold, 1, now, tag, within_us);
}

static __attribute__((noinline)) struct gale_answer
use_several(struct gale_seat *seat, struct gale_all *all, void *tag,
            const uint64_t *within_us, mono now)
{
	return ask_parts(seat, all, NULL, all->count, now, tag, within_us);
}

static __attribute__((noinline)) struct gale_answer use_whole(struct gale_seat *seat,
                                                              struct gale_all *all,
                                                              void *tag,
                                                              const uint64_t *within_us)
{
	mono now;

	if (!may_be_straight(seat, all, &now))
		return ask_longer(seat, all, NULL, tag, within_us);
	seat_check_thread(seat);
	if (all->count != 2)
		return use_several(seat, all, tag, within_us, now);
	return ask_parts(seat, all, NULL, 2, now, tag, within_us);
}

struct gale_answer gale_ask_all(struct gale_seat *seat, struct gale_all *all, void *tag)
{
	return use_whole(seat, all, tag, NULL);
}

struct gale_answer gale_wait_all(struct gale_seat *seat, struct gale_all *all,
                                 uint64_t within_us)
{
	return use_whole(seat, all, NULL, &within_us);
}
