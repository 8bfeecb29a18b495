/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.c -- one call that several limiters must admit: each keeps its units for the call until all
 * have them.
 *
 *     checks -> guard -> credit of each part -> all of them: ALLOW
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

#include "engine/hold.h"
#include "engine/whole.h"
#include "face/answer.h"
#include "face/checks.h"
#include "face/lend.h"
#include "face/quick.h"
#include "shards/kept.h"

/* ---- Checks ---------------------------------------------------------------------- */

static enum gale_why check_part(const struct gale_seat *seat,
                                const struct gale_part *part)
{
	enum gale_why why =
	    check_ask(seat, part->limiter, part->key, part->key_len, part->cost);

	if (why != GALE_WHY_RULE)
		return why;
	if (part->limiter->lender.lending != LENDING_UNITS)
		return GALE_WHY_BAD_ASK;
	return GALE_WHY_RULE;
}

static enum gale_why check_cost(const struct gale_part *part)
{
	if (part->cost > load_relaxed(&part->limiter->lender.capacity))
		return GALE_WHY_TOO_MUCH;
	return part->cost > CREDIT_UNITS_MAX ? GALE_WHY_BAD_ASK : GALE_WHY_RULE;
}

/* Nothing is wrong with a part that an ask would be quick about, nor with its cost. */
static ALWAYS_INLINE bool is_plain(const struct gale_seat *seat,
                                   const struct gale_part *part)
{
	const struct gale_limiter *limiter = part->limiter;

	return LIKELY(limiter != NULL) &&
	       LIKELY(limiter->handle.runtime == seat->handle.runtime) &&
	       LIKELY(limiter->lender.lending == LENDING_UNITS) &&
	       may_be_quick(seat, &limiter->lender, part->cost) &&
	       LIKELY(key_is_good(part->key, part->key_len));
}

/* The first that is wrong is told, and counted by its limiter. */
static bool check_parts(struct gale_seat *seat, struct gale_all *all, bool is_cut,
                        struct gale_answer *ret_answer)
{
	bool is_here = seat && seat_is_in(seat);

	for (size_t i = 0; i < all->count; i++) {
		const struct gale_part *part = &all->parts[i];
		enum gale_why why;

		if (LIKELY(is_here) && is_plain(seat, part))
			continue;
		why = check_part(seat, part);
		if (why == GALE_WHY_RULE && !is_cut)
			why = check_cost(part);
		if (why == GALE_WHY_RULE)
			continue;
		all->binding = i;
		*ret_answer = answer_refused(seat, part->limiter, why);
		if (why == GALE_WHY_TOO_MUCH)
			ret_answer->retry_after_us = GALE_NEVER;
		return false;
	}
	return true;
}

static bool is_whole(const struct gale_all *all)
{
	return all && all->parts && all->count >= 1 && all->count <= GALE_PARTS_MAX;
}

static struct gale_answer no_whole(struct gale_seat *seat)
{
	return answer_refused(seat, NULL, GALE_WHY_BAD_ASK);
}

/* ---- From credit and from memory ------------------------------------------------- */

static ALWAYS_INLINE struct purse *find_purse(struct gale_seat *seat,
                                              const struct gale_part *part)
{
	struct lender *lender = &part->limiter->lender;
	struct purse_name name = {
		.lender = lender,
		.key = part->key,
		.key_len = (uint16_t)part->key_len,
		.hash = hash_of(lender, part->key, part->key_len),
	};

	return root_find(root_of(seat, name.hash), &name);
}

/* One that is counted is a denial for this part; nothing is taken. */
static ALWAYS_INLINE struct found refuse_part(struct trial *trial, struct purse *purse,
                                              uint64_t cost, mono now)
{
	struct cell *cell = local_cell(purse, trial->seat->number);
	struct found found = { .how = LOCAL_UNKNOWN };

	if (LIKELY(!local_is_short(purse, now, cost)) ||
	    (cell && credit_covers(load_relaxed(&cell->credit), now, cost)))
		return found;
	found.how = local_refuse(purse, now, cost, &found.told);
	return found;
}

static ALWAYS_INLINE void take_part(struct trial *trial, size_t i, mono now)
{
	const struct gale_part *part = &trial->parts[i];
	struct purse *purse = trial->purses[i];
	const struct lender *lender = &part->limiter->lender;
	uint64_t voids = kept_voids(purse);
	struct cell *cell = local_cell(purse, trial->seat->number);
	struct found found = take_quickly(now, purse, cell, part->cost);

	if (!LIKELY(is_decided(&found)))
		found.how = local_try(lender, purse, trial->seat->number, now,
		                      part->cost, &found.told);
	if (LIKELY(found.how == LOCAL_TAKEN))
		trial->kept[i] = kept_of(purse, voids, part->cost, found.told, now);
	else if (found.how != LOCAL_REFUSED)
		return;
	trial->answers[i] = answer_from(lender, &found);
	trial->unknown &= ~(UINT32_C(1) << i);
}

static void give_back_unpinned(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct kept_units *kept = &trial->kept[i];

		if (kept->purse)
			seat_put_back(trial->seat, kept, credit_units(kept->word));
		kept->purse = NULL;
	}
}

/* For longer than this read.  A purse that is about to be evicted cannot be pinned: then what was
 * taken stays taken, but for a hold, which nothing would bound without a purse.  It asks a shard. */
static void pin_all(struct trial *trial, bool holds)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct kept_units *kept = &trial->kept[i];

		if (!kept->purse || purse_pin(kept->purse))
			continue;
		if (holds) {
			seat_put_back(trial->seat, kept, credit_units(kept->word));
			trial->unknown |= UINT32_C(1) << i;
		}
		kept->purse = NULL;
	}
}

/* A part that is known to be denied spares the others; none of them is taken. */
static bool is_refused(struct trial *trial, mono now, size_t *ret_binding)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct found found;

		if (!trial->purses[i])
			continue;
		found = refuse_part(trial, trial->purses[i], trial->parts[i].cost, now);
		if (found.how != LOCAL_REFUSED)
			continue;
		trial->answers[i] =
		    answer_from(&trial->parts[i].limiter->lender, &found);
		*ret_binding = i;
		return true;
	}
	return false;
}

/* True: another has been faster than this call, and that part is denied now. */
static bool take_all(struct trial *trial, mono now, size_t *ret_binding)
{
	for (size_t i = 0; i < trial->count; i++) {
		if (trial->purses[i])
			take_part(trial, i, now);
		if (!(trial->unknown & UINT32_C(1) << i) &&
		    trial->answers[i].verdict == GALE_DENY) {
			*ret_binding = i;
			return true;
		}
	}
	return false;
}

bool whole_try(struct trial *trial, bool pinned, size_t *ret_binding)
{
	mono now = seat_now(trial->seat);
	bool denied;

	trial->unknown = (UINT32_C(1) << trial->count) - 1;
	for (size_t i = 0; i < trial->count; i++)
		trial->kept[i].purse = NULL;
	denied =
	    is_refused(trial, now, ret_binding) || take_all(trial, now, ret_binding);
	if (denied)
		give_back_unpinned(trial);
	else if (pinned || trial->unknown)
		pin_all(trial, /* holds= */ pinned);
	return denied;
}

/* The same, by name. */
static bool find_and_try(struct trial *trial, bool pinned, size_t *ret_binding)
{
	struct gale_seat *seat = trial->seat;
	bool denied;

	reader_enter(&seat->handle.runtime->grace, &seat->reader);
	for (size_t i = 0; i < trial->count; i++) {
		trial->purses[i] = find_purse(seat, &trial->parts[i]);
		if (LIKELY(trial->purses[i] != NULL))
			purse_use(trial->purses[i]);
	}
	denied = whole_try(trial, pinned, ret_binding);
	reader_exit(&seat->reader);
	return denied;
}

/* ---- What becomes of the whole --------------------------------------------------- */

static struct gale_answer deny(struct gale_seat *seat, struct gale_all *all,
                               const struct gale_limiter *limiter, size_t binding,
                               const struct gale_answer *answer)
{
	all->binding = binding;
	answer_counted(seat, limiter, answer);
	if (all->guard)
		gale_exit(seat, &all->entry, GALE_IGNORED);
	return *answer;
}

/* All answers are there, and what is kept is pinned. */
static struct gale_answer settle(struct gale_seat *seat, struct gale_all *all,
                                 struct gale_hold *hold,
                                 struct gale_limiter *const *limiters,
                                 const struct gale_answer *answers,
                                 struct kept_units *const *kept, size_t count)
{
	size_t binding;
	struct gale_answer answer = whole_of(answers, count, &binding);

	if (answer.verdict != GALE_ALLOW) {
		for (size_t i = 0; i < count; i++)
			seat_give_back(seat, limiters[i], kept[i]);
		return deny(seat, all, limiters[binding], binding, &answer);
	}
	if (hold)
		hold_begin(hold, seat, count);
	for (size_t i = 0; i < count; i++) {
		if (hold)
			hold_put(hold, i, limiters[i], kept[i]);
		seat_let_go(kept[i]);
		answer_counted(seat, limiters[i], &answers[i]);
	}
	all->binding = binding;
	return answer;
}

static struct gale_answer settle_trial(struct gale_all *all, struct gale_hold *hold,
                                       struct trial *trial)
{
	struct gale_limiter *limiters[GALE_PARTS_MAX];
	struct kept_units *kept[GALE_PARTS_MAX];

	for (size_t i = 0; i < trial->count; i++) {
		limiters[i] = trial->parts[i].limiter;
		kept[i] = &trial->kept[i];
	}
	return settle(trial->seat, all, hold, limiters, trial->answers, kept,
	              trial->count);
}

/* From credit, all of it; a hold takes over the pins. */
static struct gale_answer allow(struct gale_all *all, struct gale_hold *hold,
                                struct trial *trial)
{
	if (hold)
		hold_begin(hold, trial->seat, trial->count);
	for (size_t i = 0; i < trial->count; i++) {
		struct gale_limiter *limiter = trial->parts[i].limiter;

		if (hold)
			hold_put(hold, i, limiter, &trial->kept[i]);
		score_add(seat_score(trial->seat, &limiter->lender), GALE_ALLOW,
		          GALE_WHY_CREDIT, 1);
	}
	return whole_of(trial->answers, trial->count, &all->binding);
}

/* False: there is no slot. */
static bool enter(struct gale_seat *seat, struct gale_all *all,
                  struct gale_answer *ret_answer)
{
	if (!all->guard)
		return true;
	all->entry = gale_enter(seat, all->guard, all->slots, all->of_class);
	if (all->entry.verdict == GALE_ALLOW)
		return true;
	all->binding = GALE_BINDING_GUARD;
	*ret_answer = (struct gale_answer){ .verdict = GALE_DENY,
		                            .why = all->entry.why,
		                            .limit = all->entry.limit };
	return false;
}

/* A hold is cut to the units that can be had at all. */
static void cut_all(const struct gale_all *all, struct gale_hold *hold,
                    struct gale_part *ret_parts)
{
	hold->cut = false;
	for (size_t i = 0; i < all->count; i++) {
		uint64_t limit = load_relaxed(&all->parts[i].limiter->lender.capacity);

		ret_parts[i] = all->parts[i];
		ret_parts[i].cost = hold_cut(ret_parts[i].cost, limit);
		hold->cut |= ret_parts[i].cost < all->parts[i].cost;
	}
}

/* Checked, entered, and tried: true if that has decided it. */
static bool ask_here(struct gale_seat *seat, struct gale_all *all,
                     struct gale_hold *hold, struct trial *trial, struct gale_part *cut,
                     struct gale_answer *ret_answer)
{
	size_t binding;

	if (!check_parts(seat, all, hold != NULL, ret_answer) ||
	    !enter(seat, all, ret_answer))
		return true;
	trial->seat = seat;
	trial->parts = all->parts;
	trial->count = all->count;
	if (hold) {
		cut_all(all, hold, cut);
		trial->parts = cut;
	}
	if (find_and_try(trial, /* pinned= */ hold != NULL, &binding)) {
		*ret_answer = deny(seat, all, all->parts[binding].limiter, binding,
		                   &trial->answers[binding]);
		return true;
	}
	if (trial->unknown)
		return false;
	*ret_answer = allow(all, hold, trial);
	return true;
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
	struct pending *part = ask_part(seat, &trial->parts[i]);
	enum store_result refusal;
	struct gale_answer answer;

	if (!part)
		return NULL;
	if (!(trial->unknown & UINT32_C(1) << i)) {
		part->ask.kept = trial->kept[i];
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

struct gale_answer whole_ask(struct gale_seat *seat, struct gale_all *all,
                             struct gale_hold *hold, void *tag)
{
	struct gale_part cut[GALE_PARTS_MAX];
	struct gale_answer answer;
	struct trial trial;

	if (!is_whole(all))
		return no_whole(seat);
	if (ask_here(seat, all, hold, &trial, cut, &answer))
		return answer;
	return ask_shards(all, hold, &trial, tag);
}

struct gale_answer gale_ask_all(struct gale_seat *seat, struct gale_all *all, void *tag)
{
	return whole_ask(seat, all, NULL, tag);
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
	struct gale_limiter *limiters[GALE_PARTS_MAX];
	struct kept_units *kept[GALE_PARTS_MAX];
	size_t count = 0;

	if (--first->waits_for > 0)
		return false;
	for (at = first; at; at = at->next_part, count++) {
		answers[count] = answer_to(at);
		limiters[count] = at->limiter;
		kept[count] = &at->ask.kept;
	}
	ret_completion->tag = first->tag;
	ret_completion->answer =
	    settle(seat, first->all, first->hold, limiters, answers, kept, count);
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
		result = seat_await(trial->seat, pendings[i], &ops[i], &trial->kept[i],
		                    deadline_ns);
		trial->answers[i] = answer_of(trial->parts[i].limiter, &ops[i], result);
	}
}

struct gale_answer whole_ask_and_wait(struct gale_seat *seat, struct gale_all *all,
                                      struct gale_hold *hold, uint64_t within_us)
{
	struct gale_part cut[GALE_PARTS_MAX];
	struct gale_answer answer;
	struct trial trial;

	if (!is_whole(all))
		return no_whole(seat);
	if (ask_here(seat, all, hold, &trial, cut, &answer))
		return answer;
	whole_wait(&trial, within_us);
	return settle_trial(all, hold, &trial);
}

struct gale_answer gale_wait_all(struct gale_seat *seat, struct gale_all *all,
                                 uint64_t within_us)
{
	return whole_ask_and_wait(seat, all, NULL, within_us);
}
