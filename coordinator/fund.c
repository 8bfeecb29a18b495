/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fund.c -- asks of a shared budget, and what the coordinator does with those that wait.
 *
 * Threads   As fund.h says.  What is done to a stake's .locked is done under its fund's lock.
 */
#include "coordinator/fund.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/coordinator.h"
#include "runtime/clock.h"

#define NEVER ((mono){ UINT64_MAX })
#define ENTER_AGAIN_NS UINT64_C(100000000)
#define TICKS 8 /* looks at idle units in each release_us */
#define TICK_LEAST_NS UINT64_C(1000000)
#define EARLY_MOST 2 /* in turn; then it is told to those that wait */
#define TRIES 3      /* of a stake that leaves */
#define KEEP 4       /* times what was spent since the last look, of what is in hand */

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct stake *stake_at(struct list *place)
{
	return list_item(place, struct stake, locked.place);
}

/* ---- Till and claim ---------------------------------------------------------------- */

/* What is in the till is in hand again; units of a window that is over, for nothing. */
static void gather(struct stake *stake)
{
	claim_untake(&stake->locked.claim,
	             credit_units(swap_relaxed(&stake->till->purse, 0))); /* FUND-1 */
}

static bool is_closed(const struct stake *stake)
{
	return stake->locked.leaves || stake->fund->locked.closed ||
	       stake->fund->locked.ended;
}

/* FUND-1.  That of a stake that is closed stays empty. */
static void fill(struct stake *stake, mono now)
{
	struct claim *claim = &stake->locked.claim;
	uint64_t units =
	    is_closed(stake) ? 0 : lesser(claim_in_hand(claim, now), CREDIT_UNITS_MAX);
	const struct pool_answer *told = &stake->locked.told;

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

/* It was refused, until then. */
static struct gale_answer deny(struct stake *stake, uint64_t cost, mono now, mono until)
{
	struct gale_answer answer = answer_of(stake, GALE_DENY, stake->locked.why, now);

	answer.retry_after_us = (until.ns - now.ns + 999) / 1000;
	till_remember(stake->till, stake->locked.why, cost, most_of(stake), until);
	stake->locked.counts.denied++;
	return answer;
}

static struct gale_answer allow(struct stake *stake, uint64_t cost, mono now)
{
	claim_take(&stake->locked.claim, cost);
	return answer_of(stake, GALE_ALLOW, GALE_WHY_OWN, now);
}

/* With too few units in hand: it was refused, or it waits. */
static enum fund_said lack(struct stake *stake, uint64_t cost, mono now,
                           struct fund_wait *wait, struct gale_answer *ret_answer)
{
	mono until;

	if (cost > most_of(stake)) {
		*ret_answer = answer_of(stake, GALE_DENY, GALE_WHY_TOO_MUCH, now);
		ret_answer->retry_after_us = GALE_NEVER;
		return FUND_DENIED;
	}
	if (claim_refuses(&stake->locked.claim,
	                  cost - claim_in_hand(&stake->locked.claim, now), now,
	                  &until)) {
		*ret_answer = deny(stake, cost, now, until);
		return FUND_DENIED;
	}
	if (wait)
		list_append(&stake->locked.waits, &wait->place);
	else if (cost > stake->locked.ordered)
		stake->locked.ordered = cost;
	return FUND_WAITS;
}

enum fund_said fund_ask(struct stake *stake, uint64_t cost, mono now,
                        struct fund_wait *wait, struct gale_answer *ret_answer)
{
	struct fund *fund = stake->fund;
	enum fund_said said = FUND_ALLOWED;
	bool wakes = false;

	lock_take(&fund->lock);
	if (is_closed(stake)) {
		*ret_answer = (struct gale_answer){ .verdict = GALE_DENY,
			                            .why = GALE_WHY_CLOSED };
		lock_drop(&fund->lock);
		return FUND_DENIED;
	}
	gather(stake);
	if (claim_in_hand(&stake->locked.claim, now) >= cost) {
		*ret_answer = allow(stake, cost, now);
		store_relaxed(&stake->till->denied, 0);
	} else {
		said = lack(stake, cost, now, wait, ret_answer);
		wakes = said == FUND_WAITS && !stake->locked.claim.with_store;
	}
	fill(stake, now);
	lock_drop(&fund->lock);
	if (wakes)
		coordinator_wake(fund->coordinator);
	return said;
}

/* ---- What is done for those that wait ----------------------------------------------- */

static void finish(struct fund_wait *wait, enum store_result result, struct list *done)
{
	wait->result = result;
	list_remove(&wait->place);
	list_append(done, &wait->place);
}

/* Without a lock: what is done may free the stake. */
static void tell_all(struct list *done)
{
	struct list *place;

	while ((place = list_first(done))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		list_remove(place);
		wait->done(wait);
	}
}

static void fail_all(struct stake *stake, enum store_result result, uint64_t retry_us,
                     struct list *done)
{
	struct list *place;

	while ((place = list_first(&stake->locked.waits))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		wait->op->answer.retry_after_us = retry_us;
		finish(wait, result, done);
	}
}

static void close_all(struct stake *stake, struct list *done)
{
	struct list *place;

	while ((place = list_first(&stake->locked.waits))) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);

		wait->op->answer = (struct gale_answer){ .verdict = GALE_DENY,
			                                 .why = GALE_WHY_CLOSED };
		finish(wait, STORE_DONE, done);
	}
}

/* In the order in which they came; one that costs less may pass. */
static void serve(struct stake *stake, mono now, struct list *done)
{
	struct list *place, *next;
	mono until;

	for (place = stake->locked.waits.next; place != &stake->locked.waits;
	     place = next) {
		struct fund_wait *wait = list_item(place, struct fund_wait, place);
		uint64_t cost = wait->op->cost;
		uint64_t units = claim_in_hand(&stake->locked.claim, now);

		next = place->next;
		if (units >= cost)
			wait->op->answer = allow(stake, cost, now);
		else if (claim_refuses(&stake->locked.claim, cost - units, now, &until))
			wait->op->answer = deny(stake, cost, now, until);
		else
			continue;
		finish(wait, STORE_DONE, done);
	}
}

/* ---- Looking ------------------------------------------------------------------------ */

static void tell_from(struct stake *stake, mono when)
{
	stake->locked.tells = true;
	stake->locked.tell_at = when;
}

static void give(struct fund *fund, struct stake *stake, uint64_t units, mono now)
    ON(fund->lock)
{
	claim_give(&stake->locked.claim, units);
	if (stake->locked.claim.window == fund->locked.window)
		fund->locked.granted -= units;
	tell_from(stake, now);
}

/* FUND-3, FUND-4.  What was granted just now has not been needed yet. */
static void look(struct fund *fund, struct stake *stake, mono now) ON(fund->lock)
{
	struct claim *claim = &stake->locked.claim;
	uint64_t release_ns = claim->terms.release_us * 1000, units, moved;

	gather(stake);
	units = claim_in_hand(claim, now);
	moved = claim->taken < stake->locked.seen ? claim->taken
	                                          : claim->taken - stake->locked.seen;
	stake->locked.seen = claim->taken;
	stake->locked.tick = mono_after(now, stake->fund->tick_ns);
	if (mono_reached(now, mono_after(claim->since, stake->fund->tick_ns)) &&
	    units > 2 * KEEP * moved)
		give(fund, stake, units - KEEP * moved, now);
	stake->locked.present = moved > 0;
	if (moved > 0 && now.ns - claim->sent.ns >= release_ns / 4)
		tell_from(stake, now);
	fill(stake, now);
}

/* What those that wait cost, and the least of that, beyond what is in hand. */
static uint64_t wanted(struct stake *stake, mono now, uint64_t *ret_least)
{
	uint64_t wants = stake->locked.ordered, least = stake->locked.ordered, units;
	struct list *place;

	for (place = stake->locked.waits.next; place != &stake->locked.waits;
	     place = place->next) {
		uint64_t cost = list_item(place, struct fund_wait, place)->op->cost;

		wants = lesser(wants + cost, GALE_UNITS_MAX);
		if (least == 0 || cost < least)
			least = cost;
	}
	units = claim_in_hand(&stake->locked.claim, now) +
	        credit_units(load_relaxed(&stake->till->purse));
	if (mono_reached(now, stake->locked.claim.end))
		units = 0;
	*ret_least = least > 0 && least <= units ? 1 : minus(least, units);
	return wants > 0 && wants <= units ? 1 : minus(wants, units);
}

static void put_ask(struct stake *stake, bool present, uint64_t wants, uint64_t least,
                    mono now)
{
	gather(stake);
	stake->claim_op.ask =
	    claim_ask(&stake->locked.claim, present, wants, least, now);
	fill(stake, now);
	stake->locked.tells = false;
	stake->locked.ordered = 0;
	stake->locked.counts.trips++;
	stake->call.due = mono_after(now, stake->fund->patience_ns);
}

/* True: it is to be sent. */
static bool leave(struct fund *fund, struct stake *stake, mono now) ON(fund->lock)
{
	uint64_t units;

	gather(stake);
	units = claim_in_hand(&stake->locked.claim, now);
	if (units > 0)
		give(fund, stake, units, now);
	if (!claim_owes(&stake->locked.claim, now) || stake->locked.tries == TRIES ||
	    !stake->fund->post->entered)
		return false;
	stake->locked.tries++;
	put_ask(stake, /* present= */ false, 0, 0, now);
	return true;
}

/* When the pool hears of it next, though it lacks nothing; NEVER: not in this window. */
static mono tells_at(const struct stake *stake, mono now)
{
	const struct claim *claim = &stake->locked.claim;
	mono at = NEVER;

	if (mono_reached(now, claim->end))
		return NEVER;
	if (claim->granted > 0)
		at = mono_after(claim->sent, stake->fund->remind_ns); /* FUND-6 */
	return stake->locked.tells ? mono_earlier(at, stake->locked.tell_at) : at;
}

/* True: an ask of it is to be sent. */
static bool turn_stake(struct fund *fund, struct stake *stake, mono now) ON(fund->lock)
{
	struct claim *claim = &stake->locked.claim;
	uint64_t wants, least;
	mono when;

	if (claim->with_store)
		return false;
	if (stake->locked.leaves)
		return leave(fund, stake, now);
	if (mono_reached(now, stake->locked.tick))
		look(fund, stake, now);
	if (!stake->fund->post->entered)
		return false;
	wants = wanted(stake, now, &least);
	if (wants > 0 && !claim_may_ask(claim, least, now, &when))
		wants = least = 0;
	if (wants == 0 && !mono_reached(now, tells_at(stake, now)))
		return false;
	put_ask(stake, wants > 0 || stake->locked.present, wants, least, now);
	return true;
}

/* Something is in hand, and may lie idle. */
static bool has_units(const struct stake *stake, mono now)
{
	if (mono_reached(now, stake->locked.claim.end))
		return false;
	return credit_units(load_relaxed(&stake->till->purse)) > 0 ||
	       claim_in_hand(&stake->locked.claim, now) > 0;
}

static mono stake_due(struct stake *stake, mono now)
{
	uint64_t least;
	mono due = NEVER, when;

	if (stake->locked.claim.with_store)
		return NEVER;
	if (stake->locked.leaves)
		return now;
	due = tells_at(stake, now);
	if (has_units(stake, now))
		due = mono_earlier(due, stake->locked.tick);
	if (wanted(stake, now, &least) == 0)
		return due;
	if (!stake->fund->post->entered)
		return mono_earlier(due, mono_after(now, ENTER_AGAIN_NS));
	(void)claim_may_ask(&stake->locked.claim, least, now, &when);
	return mono_earlier(due, when);
}

/* ---- Turns --------------------------------------------------------------------------- */

/* Those that are to be sent, and those that have left. */
static uint64_t turn_stakes(struct fund *fund, mono now, struct stake **ret_send,
                            struct stake **ret_gone)
{
	struct list *place, *next;
	uint64_t turned = 0;

	*ret_send = *ret_gone = NULL;
	lock_take(&fund->lock);
	for (place = fund->locked.stakes.next; place != &fund->locked.stakes;
	     place = next) {
		struct stake *stake = stake_at(place);

		next = place->next;
		if (turn_stake(fund, stake, now)) {
			stake->next = *ret_send;
			*ret_send = stake;
			turned++;
		} else if (stake->locked.leaves && !stake->locked.claim.with_store) {
			list_remove(place);
			stake->next = *ret_gone;
			*ret_gone = stake;
			turned++;
		}
	}
	lock_drop(&fund->lock);
	return turned;
}

static void send(struct stake *stake)
{
	const struct store_client *client = &stake->fund->post->client;

	if (client->desk) {
		client->store->ops->begin(client, &stake->call);
		return;
	}
	stake->call.result = store_run(client->store, &stake->op, /* patient= */ true);
	fund_hear(&stake->call, clock_now(client->home->clock));
}

static mono fund_due(struct fund *fund, mono now)
{
	mono due = NEVER;

	lock_take(&fund->lock);
	for (struct list *place = fund->locked.stakes.next;
	     place != &fund->locked.stakes; place = place->next)
		due = mono_earlier(due, stake_due(stake_at(place), now));
	lock_drop(&fund->lock);
	return due;
}

uint64_t fund_turn(struct fund *fund, mono now)
{
	struct stake *send_first, *gone, *next;
	uint64_t turned = turn_stakes(fund, now, &send_first, &gone);

	for (; send_first; send_first = next) {
		next = send_first->next;
		send(send_first);
	}
	for (; gone; gone = next) {
		next = gone->next;
		fund->ops->drop_stake(gone);
	}
	fund->due = fund_due(fund, now);
	return turned;
}

/* ---- What is answered ---------------------------------------------------------------- */

static uint64_t more_of(const struct stake *stake, const struct pool_answer *answer)
{
	const struct claim *claim = &stake->locked.claim;

	return minus(answer->granted,
	             claim->window == answer->window ? claim->granted : 0);
}

/* FUND-5: what this node would have of the window, with that. */
static bool is_within_limit(struct fund *fund, struct stake *stake,
                            const struct pool_answer *answer) ON(fund->lock)
{
	uint64_t more = more_of(stake, answer), most = fund->locked.terms.limit,
		 granted = 0;

	if (answer->window < fund->locked.window)
		return more == 0 || answer->window == stake->locked.claim.window;
	if (answer->window == fund->locked.window) {
		most = fund->locked.most;
		granted = fund->locked.granted;
	}
	if (most < stake->claim_op.ask.limit)
		most = stake->claim_op.ask.limit;
	return more <= most && granted <= most - more;
}

/* It is believed. */
static void add_granted(struct fund *fund, uint64_t window, uint64_t more)
    ON(fund->lock)
{
	if (window > fund->locked.window) {
		fund->locked.window = window;
		fund->locked.granted = 0;
		fund->locked.most = fund->locked.terms.limit;
	}
	if (window == fund->locked.window)
		fund->locked.granted += more;
}

static enum store_result result_of(uint64_t result)
{
	switch (result) {
	case POOL_QUIET:
		return STORE_QUARANTINE;
	case POOL_FULL:
		return STORE_FULL;
	case POOL_DISAGREES:
		return STORE_CHANGED;
	default:
		return STORE_WRONG;
	}
}

static enum gale_why why_of(uint64_t result)
{
	switch (result) {
	case POOL_QUIET:
		return GALE_WHY_QUARANTINE;
	case POOL_FULL:
		return GALE_WHY_FULL;
	case POOL_DISAGREES:
		return GALE_WHY_CHANGED;
	default:
		return GALE_WHY_WRONG;
	}
}

/* Where windows are shorter than the way to the store and back, no answer is ever in time. */
static void come_too_early(struct fund *fund, struct stake *stake, struct list *done)
{
	if (++stake->locked.early < EARLY_MOST)
		return;
	fail_all(stake, STORE_LATE, 0, done);
	if (fund->is_early_said)
		return;
	fund->is_early_said = true;
	fund->ops->say(fund, GALE_LEVEL_ERROR,
	               "windows end before the store's answers come: window_us is too "
	               "short for it");
}

static void take_answer(struct fund *fund, struct stake *stake, mono now,
                        struct list *done) ON(fund->lock)
{
	const struct pool_answer *answer = &stake->claim_op.answer;
	struct claim *claim = &stake->locked.claim;
	uint64_t window = claim->window, had = claim->granted, taken = claim->taken;
	uint64_t more = more_of(stake, answer);
	enum claim_news news = CLAIM_WRONG;

	if (answer->result != POOL_ANSWERED || is_within_limit(fund, stake, answer))
		news = claim_hear(claim, &stake->claim_op.ask, answer, now);
	else
		claim_lost(claim);
	if (news == CLAIM_WRONG) {
		fail_all(stake, STORE_WRONG, 0, done);
		return;
	}
	if (news == CLAIM_QUIET || news == CLAIM_REFUSED) {
		stake->locked.why = why_of(answer->result);
		fail_all(stake, result_of(answer->result), answer->retry_us, done);
		return;
	}
	add_granted(fund, answer->window, more);
	stake->locked.told = *answer;
	stake->locked.why = answer->free == 0 ? GALE_WHY_SPENT : GALE_WHY_OTHERS;
	stake->locked.counts.quanta +=
	    claim->granted > (claim->window == window ? had : 0);
	if (claim->window != window) {
		stake->locked.counts.spent += taken;
		stake->locked.seen = 0;
	}
	if (news == CLAIM_EARLY) {
		come_too_early(fund, stake, done);
		return;
	}
	stake->locked.early = 0;
	serve(stake, now, done);
}

static void say_result(struct fund *fund, uint64_t result)
{
	if (result == fund->said)
		return;
	fund->said = result;
	if (result == POOL_DISAGREES)
		fund->ops->say(fund, GALE_LEVEL_ERROR,
		               "other nodes have windows of another length: all need "
		               "the same window_us");
	else if (result == POOL_FULL)
		fund->ops->say(fund, GALE_LEVEL_ERROR,
		               "the store has as many tenants of it, or nodes, as it "
		               "can");
	else if (result == POOL_WRONG)
		fund->ops->say(fund, GALE_LEVEL_ERROR,
		               "the store does not understand this node's asks");
}

static void say_limit(struct fund *fund, uint64_t mine, uint64_t other)
{
	char line[96];

	if (other == 0 || other == mine || other == fund->other_limit)
		return;
	fund->other_limit = other;
	snprintf(line, sizeof(line),
	         "another node has the limit %" PRIu64 ", and this one %" PRIu64, other,
	         mine);
	fund->ops->say(fund, GALE_LEVEL_INFO, line);
}

void fund_hear(struct store_call *call, mono now)
{
	struct stake *stake = stake_of_call(call);
	struct fund *fund = stake->fund;
	struct pool_answer answer = stake->claim_op.answer;
	uint64_t limit = stake->claim_op.ask.limit;
	struct list done;

	list_init(&done);
	lock_take(&fund->lock);
	gather(stake);
	if (call->result == STORE_DONE) {
		take_answer(fund, stake, now, &done);
	} else {
		claim_lost(&stake->locked.claim);
		fail_all(stake, call->result, 0, &done);
		if (claim_owes(&stake->locked.claim, now)) /* FUND-3 */
			tell_from(stake, mono_after(now, fund->tick_ns));
	}
	fill(stake, now);
	lock_drop(&fund->lock);
	if (call->result == STORE_DONE) {
		say_result(fund, answer.result);
		say_limit(fund, limit, answer.limit);
	}
	tell_all(&done);
	fund->due = mono_earlier(fund->due, now);
}

/* ---- Opening and closing -------------------------------------------------------------- */

void fund_init(struct fund *fund, const struct fund_config *config)
{
	uint64_t release_us = lesser(config->terms.release_us, config->terms.period_us);

	fund->ops = config->ops;
	fund->coordinator = config->coordinator;
	fund->post = config->post;
	fund->drift_ppm = config->drift_ppm;
	fund->patience_ns = config->patience_ns;
	fund->remind_ns = config->remind_ns;
	fund->tick_ns = release_us * 1000 / TICKS;
	if (fund->tick_ns < TICK_LEAST_NS)
		fund->tick_ns = TICK_LEAST_NS;
	fund->name_len = (uint32_t)strlen(config->name);
	memcpy(fund->name, config->name, fund->name_len);
	fund->said = POOL_ANSWERED;
	fund->is_early_said = false;
	fund->due = NEVER;
	lock_init(&fund->lock);
	lock_take(&fund->lock);
	list_init(&fund->locked.stakes);
	fund->locked.terms = config->terms;
	lock_drop(&fund->lock);
}

void fund_free(struct fund *fund)
{
	lock_destroy(&fund->lock);
}

static void set_terms(struct stake *stake, const struct pool_ask *tenant)
{
	struct pool_ask terms = stake->fund->locked.terms;

	terms.guarantee = tenant->guarantee;
	terms.cap = tenant->cap;
	terms.weight = tenant->weight;
	stake->locked.claim.terms = terms;
	stake->locked.claim.refused = 0;
	store_relaxed(&stake->till->denied, 0);
}

bool stake_open(struct stake *stake, const struct stake_config *config, mono now)
{
	struct fund *fund = config->fund;
	bool open;

	stake->fund = fund;
	stake->till = config->till;
	stake->name_len = (uint32_t)strlen(config->name);
	memcpy(stake->name, config->name, stake->name_len);
	stake->claim_op = (struct store_claim){ .tenant = stake->name,
		                                .tenant_len = stake->name_len,
		                                .node = config->node };
	stake->op = (struct store_op){ .verb = STORE_CLAIM,
		                       .key = fund->name,
		                       .key_len = fund->name_len,
		                       .claim = &stake->claim_op };
	stake->call.op = &stake->op;
	lock_take(&fund->lock);
	list_init(&stake->locked.waits);
	claim_init(&stake->locked.claim, &config->terms, fund->drift_ppm, now);
	set_terms(stake, &config->terms);
	stake->locked.tick = now;
	open = !fund->locked.closed && !fund->locked.ended;
	if (open)
		list_append(&fund->locked.stakes, &stake->locked.place);
	lock_drop(&fund->lock);
	return open;
}

static void mark_leaving(struct stake *stake, struct list *done)
{
	stake->locked.leaves = true;
	store_relaxed(&stake->till->denied, 0);
	close_all(stake, done);
}

/* Nothing is taken from its till any more: the next turn empties it, and gives all back. */
void stake_close(struct stake *stake)
{
	struct fund *fund = stake->fund;
	struct list done;

	list_init(&done);
	lock_take(&fund->lock);
	mark_leaving(stake, &done);
	gather(stake);
	lock_drop(&fund->lock);
	tell_all(&done);
	coordinator_wake(fund->coordinator);
}

static void close_stakes(struct fund *fund, bool ended)
{
	struct list done;

	list_init(&done);
	lock_take(&fund->lock);
	fund->locked.closed = true;
	fund->locked.ended |= ended;
	for (struct list *place = fund->locked.stakes.next;
	     place != &fund->locked.stakes; place = place->next) {
		mark_leaving(stake_at(place), &done);
		gather(stake_at(place));
	}
	lock_drop(&fund->lock);
	tell_all(&done);
}

void fund_close(struct fund *fund)
{
	close_stakes(fund, /* ended= */ false);
	coordinator_wake(fund->coordinator);
}

void fund_end(struct fund *fund)
{
	close_stakes(fund, /* ended= */ true);
	fund->due = (mono){ 0 };
}

void fund_drop_stakes(struct fund *fund)
{
	struct list *place;
	struct stake *stake;

	do {
		lock_take(&fund->lock);
		place = list_first(&fund->locked.stakes);
		stake = place ? stake_at(place) : NULL;
		if (place)
			list_remove(place);
		lock_drop(&fund->lock);
		if (stake)
			fund->ops->drop_stake(stake);
	} while (stake);
}

bool fund_is_over(struct fund *fund)
{
	bool over;

	lock_take(&fund->lock);
	over = fund->locked.closed && list_is_empty(&fund->locked.stakes);
	lock_drop(&fund->lock);
	return over;
}

void fund_set_limit(struct fund *fund, uint64_t limit)
{
	lock_take(&fund->lock);
	fund->locked.terms.limit = limit;
	if (limit > fund->locked.most)
		fund->locked.most = limit;
	for (struct list *place = fund->locked.stakes.next;
	     place != &fund->locked.stakes; place = place->next) {
		struct pool_ask tenant = stake_at(place)->locked.claim.terms;

		set_terms(stake_at(place), &tenant);
	}
	lock_drop(&fund->lock);
}

void stake_set_terms(struct stake *stake, const struct pool_ask *terms)
{
	struct fund *fund = stake->fund;

	lock_take(&fund->lock);
	set_terms(stake, terms);
	lock_drop(&fund->lock);
}

void stake_counts(struct stake *stake, mono now, struct stake_counts *ret_counts)
{
	struct claim *claim = &stake->locked.claim;
	struct fund *fund = stake->fund;
	bool lasts;

	lock_take(&fund->lock);
	gather(stake);
	lasts = !mono_reached(now, claim->end);
	*ret_counts = stake->locked.counts;
	ret_counts->spent += claim->taken;
	ret_counts->share = lasts ? stake->locked.told.share : 0;
	ret_counts->used = lasts ? claim->taken : 0;
	ret_counts->in_hand = claim_in_hand(claim, now);
	fill(stake, now);
	lock_drop(&fund->lock);
}
