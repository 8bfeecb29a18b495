/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stake.c -- asks of a shared budget: from what is in hand, or in a queue.
 *
 * Threads   As stake.h says.
 */
#include "coordinator/stake.h"

#include <string.h>

#include "coordinator/coordinator.h"

#define CALLS 2 /* in turn: one that is admitted alone makes the next  (FUND-8) */

/* ---- Till and claim ---------------------------------------------------------------- */

void stake_gather(struct stake *stake)
{
	claim_untake(&stake->locked.claim,
	             credit_units(swap_relaxed(&stake->till->purse, 0))); /* FUND-1 */
}

bool stake_is_closed(const struct stake *stake)
{
	return stake->locked.leaves || stake->fund->locked.closed ||
	       stake->fund->locked.ended;
}

bool stake_awaits_holds(const struct stake *stake, mono now)
{
	return stake->locked.holds > 0 && !stake->fund->locked.ended &&
	       !mono_reached(now, stake->locked.claim.end);
}

void stake_fill(struct stake *stake, mono now)
{
	struct claim *claim = &stake->locked.claim;
	const struct pool_answer *told = &stake->locked.told;
	uint64_t units = 0;

	claim_pay(claim, now); /* CLAIM-8 */
	if (!stake_is_closed(stake))
		units = lesser(claim_in_hand(claim, now), CREDIT_UNITS_MAX);
	claim_take(claim, units);
	store_relaxed(&stake->till->purse, credit_until(claim->end, units));
	store_relaxed(&stake->till->share, told->share);
	store_relaxed(&stake->till->left,
	              lesser(minus(told->share, told->used), told->free));
}

static struct gale_answer answer_of(const struct stake *stake,
                                    enum gale_verdict verdict, enum gale_why why,
                                    mono now)
{
	const struct pool_answer *told = &stake->locked.told;
	const struct claim *claim = &stake->locked.claim;

	return (struct gale_answer){
		.verdict = verdict,
		.why = why,
		.limit = told->share,
		.remaining = lesser(minus(told->share, told->used), told->free) +
		             claim_in_hand(claim, now),
		.reset_after_us =
		    mono_reached(now, claim->end) ? 0 : (claim->end.ns - now.ns) / 1000,
	};
}

static uint64_t most_of(const struct stake *stake)
{
	return lesser(stake->locked.claim.terms.cap, stake->locked.claim.terms.limit);
}

void stake_count_denied(struct stake *stake, enum gale_why why)
{
	stake->locked.counts.denied++;
	stake->fund->locked.counts.denied_by[why]++;
}

/* It was refused, until then. */
static struct gale_answer deny(struct stake *stake, uint64_t cost, mono now, mono until)
{
	struct gale_answer answer = answer_of(stake, GALE_DENY, stake->locked.why, now);

	answer.retry_after_us = (until.ns - now.ns + 999) / 1000;
	till_remember(stake->till, stake->locked.why, cost, most_of(stake), until);
	stake_count_denied(stake, stake->locked.why);
	return answer;
}

/* held: filled, if it is a hold; or NULL */
static struct gale_answer allow(struct stake *stake, uint64_t cost,
                                struct fund_held *held, mono now)
{
	claim_take(&stake->locked.claim, cost);
	if (held) {
		*held = (struct fund_held){ .units = cost,
			                    .window = stake->locked.claim.window };
		stake->locked.holds++;
	}
	return answer_of(stake, GALE_ALLOW, GALE_WHY_OWN, now);
}

/* Nothing bounds what is used alone by windows of another length than the store's.  (ALONE-2) */
static bool is_cut_off(const struct fund *fund, mono now)
{
	return fund->locked.cut_off != GALE_WHY_RULE && !fund->locked.disagrees &&
	       !mono_reached(
		   now, mono_after(fund->locked.failed, CALLS * fund->patience_ns));
}

static bool is_of(const struct fund_alone *at, const struct stake *stake)
{
	return at->name_len == stake->name_len &&
	       memcmp(at->name, stake->name, stake->name_len) == 0;
}

/* Where the name has none: one whose window is over.  NULL: as many others have one.  FUND-9 */
static struct fund_alone *find_alone(const struct stake *stake, mono now)
{
	struct fund_alone *alones = stake->fund->locked.alones, *over = NULL;

	for (uint32_t i = 0; i < stake->fund->alone_count; i++) {
		if (is_of(&alones[i], stake))
			return &alones[i];
		if (!over && mono_reached(now, alones[i].alone.end))
			over = &alones[i];
	}
	return over;
}

/* The terms of the last ask hold. */
static struct alone *alone_of(const struct stake *stake, mono now)
{
	const struct fund *fund = stake->fund;
	struct fund_alone *at = find_alone(stake, now);

	if (!at)
		return NULL;
	if (!is_of(at, stake)) {
		alone_init(&at->alone, 0, fund->locked.terms.period_us,
		           fund->drift_ppm);
		at->name_len = stake->name_len;
		memcpy(at->name, stake->name, stake->name_len);
	}
	at->alone.units = lesser(stake->locked.alone, most_of(stake));
	return &at->alone;
}

/* FUND-8 */
static bool allow_alone(struct stake *stake, uint64_t cost, struct fund_held *held,
                        mono now, struct gale_answer *ret_answer)
{
	enum gale_why why = stake->fund->locked.cut_off;
	struct alone *alone;

	if (stake->locked.alone == 0 || !is_cut_off(stake->fund, now))
		return false;
	alone = alone_of(stake, now);
	if (!alone || !alone_take(alone, cost, now))
		return false;
	stake->locked.counts.alone += cost;
	if (held)
		*held = (struct fund_held){ .units = cost, .alone = true };
	*ret_answer =
	    (struct gale_answer){ .verdict = GALE_ALLOW,
		                  .why = why,
		                  .limit = alone->units,
		                  .remaining = alone_left(alone, now),
		                  .reset_after_us = (alone->end.ns - now.ns) / 1000 };
	return true;
}

static void begin_to_wait(struct stake *stake, struct fund_wait *wait,
                          struct fund_held *held)
{
	wait->held = held;
	list_append(&stake->locked.waits, &wait->place);
	wait->waits = true;
}

/* Of a cost and the debt, what is not in hand.  CLAIM-8 */
static uint64_t beyond_hand(const struct stake *stake, uint64_t cost, mono now)
{
	const struct claim *claim = &stake->locked.claim;

	return minus(claim_debt(claim, now) + cost, claim_in_hand(claim, now));
}

/* With too few units in hand: it was refused, or it waits. */
static enum fund_said lack(struct stake *stake, uint64_t cost, mono now,
                           struct fund_wait *wait, struct fund_held *held,
                           struct gale_answer *ret_answer)
{
	mono until;
	bool alone;

	if (cost > most_of(stake)) {
		*ret_answer = answer_of(stake, GALE_DENY, GALE_WHY_TOO_MUCH, now);
		ret_answer->retry_after_us = GALE_NEVER;
		stake_count_denied(stake, GALE_WHY_TOO_MUCH);
		return FUND_DENIED;
	}
	if (claim_refuses(&stake->locked.claim, beyond_hand(stake, cost, now), now,
	                  &until)) {
		*ret_answer = deny(stake, cost, now, until);
		return FUND_DENIED;
	}
	alone = allow_alone(stake, cost, held, now, ret_answer);
	if (!wait && !alone)
		stake_count_denied(stake, GALE_WHY_LATE);
	if (wait && !alone)
		begin_to_wait(stake, wait, held);
	else if (cost > stake->locked.ordered)
		stake->locked.ordered = cost; /* the store is asked all the same */
	return alone ? FUND_ALLOWED : FUND_WAITS;
}

enum fund_said fund_ask(struct stake *stake, uint64_t cost, mono now,
                        struct fund_wait *wait, struct fund_held *ret_held,
                        struct gale_answer *ret_answer)
{
	struct fund *fund = stake->fund;
	enum fund_said said = FUND_ALLOWED;
	bool wakes = false;

	lock_take(&fund->lock);
	if (stake_is_closed(stake)) {
		*ret_answer = (struct gale_answer){ .verdict = GALE_DENY,
			                            .why = GALE_WHY_CLOSED };
		lock_drop(&fund->lock);
		return FUND_DENIED;
	}
	stake_gather(stake);
	if (beyond_hand(stake, cost, now) == 0) {
		*ret_answer = allow(stake, cost, ret_held, now);
		store_relaxed(&stake->till->denied, 0);
	} else {
		said = lack(stake, cost, now, wait, ret_held, ret_answer);
		wakes = said != FUND_DENIED && !stake->locked.claim.with_store;
	}
	stake_fill(stake, now);
	lock_drop(&fund->lock);
	if (wakes)
		coordinator_wake(fund->coordinator);
	return said;
}

uint64_t fund_most(struct stake *stake)
{
	struct fund *fund = stake->fund;
	uint64_t most;

	lock_take(&fund->lock);
	most = most_of(stake);
	lock_drop(&fund->lock);
	return most;
}

static void settle(struct stake *stake, uint64_t back, uint64_t over)
{
	struct claim *claim = &stake->locked.claim;

	claim_untake(claim, back);
	stake->locked.counts.spent += back; /* a counter never falls */
	claim->debt = lesser(claim->debt + over, GALE_UNITS_MAX);
	if (back > 0)
		store_relaxed(&stake->till->denied, 0);
}

/* The coordinator looks in each tick at what is in hand, but for the first units.  FUND-3, FUND-12 */
void fund_settle(struct stake *stake, const struct fund_held *held, uint64_t back,
                 uint64_t over, mono now)
{
	struct fund *fund = stake->fund;
	const struct claim *claim = &stake->locked.claim;
	bool wakes;

	if (held->alone)
		return;
	lock_take(&fund->lock);
	stake->locked.holds--;
	stake->locked.tries = 0; /* of one that leaves */
	stake_gather(stake);
	wakes = stake->locked.leaves || (back > 0 && claim_in_hand(claim, now) == 0);
	if (claim->window == held->window)
		settle(stake, back, over);
	stake_fill(stake, now);
	lock_drop(&fund->lock);
	if (wakes)
		coordinator_wake(fund->coordinator);
}

/* ---- What is done for those that wait ----------------------------------------------- */

static void finish(struct fund_wait *wait, enum store_result result, struct list *done)
{
	wait->result = result;
	wait->waits = false; /* FUND-10 */
	list_remove(&wait->place);
	list_append(done, &wait->place);
}

bool fund_give_up(struct stake *stake, struct fund_wait *wait)
{
	struct fund *fund = stake->fund;
	bool waits;

	lock_take(&fund->lock);
	waits = wait->waits;
	if (waits) {
		list_remove(&wait->place);
		wait->waits = false;
		stake_count_denied(stake, GALE_WHY_LATE);
	}
	lock_drop(&fund->lock);
	return waits;
}

void fund_undo(struct stake *stake, const struct fund_wait *wait)
{
	struct fund *fund = stake->fund;

	bool wakes = false;

	lock_take(&fund->lock);
	if (stake->locked.claim.window == wait->window && wait->units > 0) {
		claim_untake(&stake->locked.claim, wait->units);
		stake->locked.counts.spent += wait->units; /* a counter never falls */
		store_relaxed(&stake->till->denied, 0);
		wakes = true;
	}
	lock_drop(&fund->lock);
	if (wakes)
		coordinator_wake(fund->coordinator); /* FUND-3 */
}

/* Without a lock: what is done may free the stake. */
void fund_tell_all(struct list *done)
{
	struct list *place;

	while ((place = list_first(done))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		list_remove(place);
		wait->done(wait);
	}
}

void stake_fail_all(struct stake *stake, enum store_result result, uint64_t retry_us,
                    struct list *done)
{
	struct list *place;

	while ((place = list_first(&stake->locked.waits))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		wait->op->answer.retry_after_us = retry_us;
		stake_count_denied(stake, store_why(result));
		finish(wait, result, done);
	}
}

void stake_close_all(struct stake *stake, struct list *done)
{
	struct list *place;

	while ((place = list_first(&stake->locked.waits))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		wait->op->answer = (struct gale_answer){ .verdict = GALE_DENY,
			                                 .why = GALE_WHY_CLOSED };
		finish(wait, STORE_DONE, done);
	}
}

void stake_serve_alone(struct stake *stake, mono now, struct list *done)
{
	struct list *place, *next;

	for (place = stake->locked.waits.next; place != &stake->locked.waits;
	     place = next) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		next = place->next;
		if (allow_alone(stake, wait->op->cost, wait->held, now,
		                &wait->op->answer))
			finish(wait, STORE_DONE, done);
	}
}

static void allow_wait(struct stake *stake, struct fund_wait *wait, mono now)
{
	wait->op->answer = allow(stake, wait->op->cost, wait->held, now);
	wait->units = wait->op->cost;
	wait->window = stake->locked.claim.window;
}

/* In the order in which they came; one that costs less may pass. */
void stake_serve(struct stake *stake, mono now, struct list *done)
{
	struct list *place, *next;
	mono until;

	for (place = stake->locked.waits.next; place != &stake->locked.waits;
	     place = next) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);
		uint64_t cost = wait->op->cost, lacks = beyond_hand(stake, cost, now);

		next = place->next;
		if (lacks == 0)
			allow_wait(stake, wait, now);
		else if (claim_refuses(&stake->locked.claim, lacks, now, &until))
			wait->op->answer = deny(stake, cost, now, until);
		else
			continue;
		finish(wait, STORE_DONE, done);
	}
}
