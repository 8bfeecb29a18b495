/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fund_turn.c -- what the coordinator does about a shared budget: it looks, asks the pool, and hears.
 *
 * Threads   The coordinator's.
 */
#include <inttypes.h>
#include <stdio.h>

#include "coordinator/stake.h"
#include "runtime/clock.h"

#define ENTER_AGAIN_NS UINT64_C(100000000)
#define EARLY_MOST 2 /* in turn; then it is told to those that wait */
#define TRIES 3      /* of a stake that leaves */

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

/* FUND-3, FUND-4, FUND-7. */
static void look(struct fund *fund, struct stake *stake, mono now) ON(fund->lock)
{
	struct claim *claim = &stake->locked.claim;
	uint64_t release_ns = claim->terms.release_us * 1000;
	struct claim_look seen;

	stake_gather(stake);
	seen = claim_look(claim, now, fund->tick_ns);
	stake->locked.tick = mono_after(now, fund->tick_ns);
	if (seen.gives > 0)
		give(fund, stake, seen.gives, now);
	stake->locked.ahead = seen.asks;
	stake->locked.present = seen.moved > 0;
	if (seen.moved > 0 && now.ns - claim->sent.ns >= release_ns / 2)
		tell_from(stake, now);
	stake_fill(stake, now);
}

static uint64_t in_hand(const struct stake *stake, mono now)
{
	if (mono_reached(now, stake->locked.claim.end))
		return 0;
	return claim_in_hand(&stake->locked.claim, now) +
	       credit_units(load_relaxed(&stake->till->purse));
}

/* The cost of the calls that wait, and the least of that, beyond what is in hand.  1: no call
 * waits, or all is in hand, and more is of use.  A cost that no call waits for is forgotten when
 * it is in hand. */
static uint64_t wanted(struct stake *stake, mono now, uint64_t *ret_least)
{
	uint64_t units = in_hand(stake, now), wants, least;
	bool over = mono_reached(now, stake->locked.claim.end);
	uint64_t debt = claim_debt(&stake->locked.claim, now);
	struct list *place;

	if (stake->locked.ordered <= units && list_is_empty(&stake->locked.waits))
		stake->locked.ordered = 0;
	wants = least = stake->locked.ordered;
	if (wants == 0 && list_is_empty(&stake->locked.waits)) {
		*ret_least = stake->locked.ahead && !over; /* FUND-7 */
		return *ret_least;
	}
	for (place = stake->locked.waits.next; place != &stake->locked.waits;
	     place = place->next) {
		uint64_t cost = list_item(place, struct fund_wait, place)->op->cost;

		wants = lesser(wants + cost, GALE_UNITS_MAX);
		if (least == 0 || cost < least)
			least = cost;
	}
	wants = lesser(wants + debt, GALE_UNITS_MAX);
	least = lesser(least + debt, GALE_UNITS_MAX);
	*ret_least = least > 0 && least <= units ? 1 : minus(least, units);
	return wants > 0 && wants <= units ? 1 : minus(wants, units);
}

static void put_ask(struct stake *stake, bool present, uint64_t wants, uint64_t least,
                    mono now)
{
	stake_gather(stake);
	stake->claim_op.ask =
	    claim_ask(&stake->locked.claim, present, wants, least, now);
	stake_fill(stake, now);
	stake->locked.tells = false;
	stake->locked.ahead = false;
	stake->locked.ordered = 0;
	stake->locked.counts.trips++;
	stake->call.due = mono_after(now, stake->fund->patience_ns);
}

/* True: it is to be sent. */
static bool leave(struct fund *fund, struct stake *stake, mono now) ON(fund->lock)
{
	uint64_t units;

	stake_gather(stake);
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
	if (wants > 0 && !claim_may_ask(claim, least, now, &when)) {
		wants = least = 0;
		stake->locked.ahead = false; /* by then it may have stopped */
	}
	if (wants == 0 && !mono_reached(now, tells_at(stake, now)))
		return false;
	put_ask(stake, wants > 0 || stake->locked.present, wants, least, now);
	return true;
}

static mono stake_due(struct stake *stake, mono now)
{
	uint64_t least;
	mono due = NEVER, when;

	if (stake->locked.claim.with_store)
		return NEVER;
	if (stake->locked.leaves)
		return stake_awaits_holds(stake, now) ? stake->locked.claim.end : now;
	due = tells_at(stake, now);
	if (in_hand(stake, now) > 0) /* it may lie idle */
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
		} else if (stake->locked.leaves && !stake->locked.claim.with_store &&
		           !stake_awaits_holds(stake, now)) {
			stake_strike_off(stake);
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

/* The largest limit that may have been asked under for the answer's window; also by a call whose
 * answer was lost. */
static uint64_t most_in(struct fund *fund, const struct stake *stake, uint64_t window)
    ON(fund->lock)
{
	uint64_t most = greater(stake->locked.claim.most, stake->claim_op.ask.limit);

	return greater(most, window == fund->locked.window ? fund->locked.most
	                                                   : fund->locked.terms.limit);
}

/* FUND-5: what this node would have of the window, with that. */
static bool is_within_limit(struct fund *fund, struct stake *stake,
                            const struct pool_answer *answer, uint64_t most)
    ON(fund->lock)
{
	uint64_t more = more_of(stake, answer), granted = 0;

	if (answer->window < fund->locked.window)
		return more == 0 || answer->window == stake->locked.claim.window;
	if (answer->window == fund->locked.window)
		granted = fund->locked.granted;
	return more <= most && granted <= most - more;
}

/* It is believed. */
static void add_granted(struct fund *fund, uint64_t window, uint64_t more,
                        uint64_t most) ON(fund->lock)
{
	if (window < fund->locked.window)
		return;
	if (window > fund->locked.window)
		fund->locked.granted = 0;
	fund->locked.window = window;
	fund->locked.most = most;
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

/* Where windows are shorter than the way to the store and back, no answer is ever in time. */
static void come_too_early(struct fund *fund, struct stake *stake, struct list *done)
{
	if (++stake->locked.early < EARLY_MOST)
		return;
	stake_fail_all(stake, STORE_LATE, 0, done);
	if (fund->is_early_said)
		return;
	fund->is_early_said = true;
	fund->ops->say(fund, GALE_LEVEL_ERROR,
	               "windows end before the store's answers come: window_us is too "
	               "short for it");
}

/* A denial for want of units ends when units are left.  CLAIM-9 */
static void learn_of_units(struct fund *fund, const struct pool_answer *answer)
    ON(fund->lock)
{
	for (struct list *place = fund->locked.stakes.next;
	     place != &fund->locked.stakes; place = place->next) {
		struct stake *stake = stake_at(place);

		if (claim_learn_of_units(&stake->locked.claim, answer->window))
			store_relaxed(&stake->till->denied, 0);
	}
}

static void take_answer(struct fund *fund, struct stake *stake, mono now,
                        struct list *done) ON(fund->lock)
{
	const struct pool_answer *answer = &stake->claim_op.answer;
	struct claim *claim = &stake->locked.claim;
	uint64_t window = claim->window, had = claim->granted, taken = claim->taken;
	uint64_t more = more_of(stake, answer);
	uint64_t most = most_in(fund, stake, answer->window);
	enum claim_news news = CLAIM_WRONG;

	if (answer->result != POOL_ANSWERED ||
	    is_within_limit(fund, stake, answer, most))
		news = claim_hear(claim, &stake->claim_op.ask, answer, now);
	else
		claim_lost(claim);
	if (news == CLAIM_WRONG) {
		fund->locked.counts.failures++;
		stake_fail_all(stake, STORE_WRONG, 0, done);
		return;
	}
	if (news == CLAIM_QUIET || news == CLAIM_REFUSED) {
		stake->locked.why = store_why(result_of(answer->result));
		stake_fail_all(stake, result_of(answer->result), answer->retry_us,
		               done);
		return;
	}
	add_granted(fund, answer->window, more, most);
	if (answer->free > 0)
		learn_of_units(fund, answer);
	stake->locked.told = *answer;
	stake->locked.why = answer->free == 0 ? GALE_WHY_SPENT : GALE_WHY_OTHERS;
	stake->locked.counts.quanta +=
	    claim->granted > (claim->window == window ? had : 0);
	if (claim->window != window)
		stake->locked.counts.spent += taken;
	if (news == CLAIM_EARLY) {
		come_too_early(fund, stake, done);
		return;
	}
	stake->locked.early = 0;
	stake_serve(stake, now, done);
}

/* One is enough: where it is left out, release_us is a part of window_us. */
static const char *other_setting(const struct pool_ask *ask,
                                 const struct pool_answer *answer)
{
	if (ask->period_us != answer->period_us)
		return "window_us";
	if (ask->release_us != answer->release_us)
		return "release_us";
	return "protect_us";
}

static void say_disagrees(struct fund *fund, const struct pool_ask *ask,
                          const struct pool_answer *answer)
{
	char line[128];

	snprintf(line, sizeof(line),
	         "other nodes have another %s: all need the same window_us, release_us "
	         "and protect_us",
	         other_setting(ask, answer));
	fund->ops->say(fund, GALE_LEVEL_ERROR, line);
}

static void say_result(struct fund *fund, const struct pool_ask *ask,
                       const struct pool_answer *answer)
{
	uint64_t result = answer->result;

	if (result == fund->said)
		return;
	fund->said = result;
	if (result == POOL_DISAGREES)
		say_disagrees(fund, ask, answer);
	else if (result == POOL_FULL)
		fund->ops->say(
		    fund, GALE_LEVEL_ERROR,
		    "the store has 256 tenants of this budget, or 65,536 claims in "
		    "this window: other handles get no units until it ends");
	else if (result == POOL_WRONG)
		fund->ops->say(fund, GALE_LEVEL_ERROR,
		               "the store does not understand this node's asks");
}

/* Once for each limit of its own: others may have several, and ask in turn. */
static void say_limit(struct fund *fund, uint64_t mine, uint64_t other)
{
	char line[96];

	if (other == 0 || other == mine || mine == fund->limit_said)
		return;
	fund->limit_said = mine;
	snprintf(line, sizeof(line),
	         "another node has the limit %" PRIu64 ", and this one %" PRIu64, other,
	         mine);
	fund->ops->say(fund, GALE_LEVEL_INFO, line);
}

static struct stake_terms terms_of(const struct pool_ask *ask)
{
	return (struct stake_terms){ ask->guarantee, ask->cap, ask->weight };
}

static bool are_same(const struct stake_terms *a, const struct stake_terms *b)
{
	return a->guarantee == b->guarantee && a->cap == b->cap &&
	       a->weight == b->weight;
}

static void put_terms(char *ret_text, size_t size, const struct stake_terms *terms)
{
	char cap[32] = "no cap";

	if (terms->cap < GALE_UNITS_MAX)
		snprintf(cap, sizeof(cap), "cap %" PRIu64, terms->cap);
	snprintf(ret_text, size, "weight %" PRIu64 ", guarantee %" PRIu64 ", %s",
	         terms->weight, terms->guarantee, cap);
}

/* Once for the terms that this node gives the tenant.  Those that it gave it before are its own. */
static void say_terms(struct stake *stake, const struct pool_answer *answer)
{
	const struct stake_terms mine = terms_of(&stake->claim_op.ask);
	const struct stake_terms theirs = { answer->guarantee, answer->cap,
		                            answer->weight };
	char line[STORE_TENANT_MAX + 256], other[96], own[96];

	if (theirs.weight == 0 || are_same(&theirs, &mine) ||
	    are_same(&theirs, &stake->asked_with) || are_same(&mine, &stake->said))
		return;
	stake->said = mine;
	put_terms(other, sizeof(other), &theirs);
	put_terms(own, sizeof(own), &mine);
	snprintf(line, sizeof(line),
	         "tenant %.*s: another node has %s, and this one %s",
	         (int)stake->name_len, (const char *)stake->name, other, own);
	stake->fund->ops->say(stake->fund, GALE_LEVEL_INFO, line);
}

/* The guarantees of one node's tenants are within its limit; those of several nodes together may not
 * be.  Only a larger sum is said again, so that tenants that come and go do not fill the log. */
static void say_guarantees(struct fund *fund, uint64_t limit, uint64_t guarantees)
{
	char line[160];

	if (guarantees <= limit || guarantees <= fund->guarantees_said)
		return;
	fund->guarantees_said = guarantees;
	snprintf(line, sizeof(line),
	         "tenants of all nodes have guarantees of %" PRIu64
	         " together, and the limit is %" PRIu64 ": not all can be kept",
	         guarantees, limit);
	fund->ops->say(fund, GALE_LEVEL_WARNING, line);
}

static void say_cut_off(struct fund *fund, bool is_cut_off)
{
	if (is_cut_off == fund->is_alone_said)
		return;
	fund->is_alone_said = is_cut_off;
	if (is_cut_off)
		fund->ops->say(
		    fund, GALE_LEVEL_ERROR,
		    "the store cannot be asked: tenants get the units that they "
		    "may use alone");
	else
		fund->ops->say(fund, GALE_LEVEL_INFO, "the store can be asked again");
}

static bool is_outage(enum store_result result)
{
	return result == STORE_LATE || result == STORE_DOWN;
}

/* FUND-8.  Nothing is learned from a call that was sent before the store has answered another. */
static void learn_of_miss(struct fund *fund, const struct stake *stake,
                          enum store_result result, mono now) ON(fund->lock)
{
	bool is_late = result == STORE_LATE;

	if (result == STORE_WRONG)
		fund->locked.cut_off = GALE_WHY_RULE; /* it can be asked */
	if (!is_outage(result) ||
	    stake->locked.claim.sent.ns < fund->locked.answered.ns)
		return;
	fund->locked.cut_off = is_late ? GALE_WHY_LATE : GALE_WHY_DOWN;
	fund->locked.failed = now;
}

static void miss_answer(struct fund *fund, struct stake *stake,
                        enum store_result result, mono now, struct list *done)
    ON(fund->lock)
{
	claim_lost(&stake->locked.claim);
	fund->locked.counts.failures++;
	learn_of_miss(fund, stake, result, now);
	if (is_outage(result))
		stake_serve_alone(stake, now, done);
	stake_fail_all(stake, result, 0, done);
	if (claim_owes(&stake->locked.claim, now)) /* FUND-3 */
		tell_from(stake, mono_after(now, fund->tick_ns));
}

void fund_hear(struct store_call *call, mono now)
{
	struct stake *stake = stake_of_call(call);
	struct fund *fund = stake->fund;
	struct pool_answer answer = stake->claim_op.answer;
	uint64_t limit = stake->claim_op.ask.limit;
	bool is_alone;
	struct list done;

	list_init(&done);
	lock_take(&fund->lock);
	stake_gather(stake);
	if (call->result == STORE_DONE) {
		fund->locked.cut_off = GALE_WHY_RULE; /* FUND-8 */
		fund->locked.answered = now;
		fund->locked.disagrees = answer.result == POOL_DISAGREES;
		if (answer.result == POOL_ANSWERED)
			fund->locked.guarantees = answer.guarantees;
		take_answer(fund, stake, now, &done);
	} else {
		miss_answer(fund, stake, call->result, now, &done);
	}
	is_alone = fund->locked.cut_off != GALE_WHY_RULE &&
	           (stake->locked.alone > 0 || fund->is_alone_said);
	stake_fill(stake, now);
	lock_drop(&fund->lock);
	if (call->result == STORE_DONE) {
		say_result(fund, &stake->claim_op.ask, &answer);
		say_limit(fund, limit, answer.limit);
		say_terms(stake, &answer);
		say_guarantees(fund, limit, answer.guarantees);
	}
	stake->asked_with = terms_of(&stake->claim_op.ask);
	say_cut_off(fund, is_alone);
	fund_tell_all(&done);
	fund->due = mono_earlier(fund->due, now);
}
