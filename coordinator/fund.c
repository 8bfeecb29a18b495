/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fund.c -- shared budgets and their tenants open, change and close.
 *
 * Threads   As fund.h says.
 */
#include "coordinator/fund.h"

#include <string.h>

#include "coordinator/coordinator.h"
#include "coordinator/stake.h"

#define TICKS 8 /* looks at idle units in each release_us */
#define TICK_LEAST_NS UINT64_C(1000000)

void fund_init(struct fund *fund, const struct fund_config *config)
{
	uint64_t release_us = lesser(config->terms.release_us, config->terms.period_us);

	fund->ops = config->ops;
	fund->coordinator = config->coordinator;
	fund->post = config->post;
	fund->drift_ppm = config->drift_ppm;
	fund->patience_ns = config->patience_ns;
	fund->remind_ns = config->remind_ns;
	fund->alone_count = config->alone_count;
	fund->tick_ns = release_us * 1000 / TICKS;
	if (fund->tick_ns < TICK_LEAST_NS)
		fund->tick_ns = TICK_LEAST_NS;
	fund->name_len = (uint32_t)strlen(config->name);
	fund->name = (const uint8_t *)config->name;
	fund->said = POOL_ANSWERED;
	fund->guarantees_said = 0;
	fund->is_early_said = false;
	fund->is_alone_said = false;
	fund->due = NEVER;
	lock_init(&fund->lock);
	lock_take(&fund->lock);
	list_init(&fund->locked.stakes);
	fund->locked.terms = config->terms;
	fund->locked.cut_off = GALE_WHY_RULE;
	fund->locked.alones = config->alones;
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
	stake->name = (const uint8_t *)config->name;
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
	stake->locked.alone = config->alone;
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
	stake_close_all(stake, done);
}

/* Nothing is taken from its till any more: the next turn empties it, and gives all back. */
void stake_close(struct stake *stake)
{
	struct fund *fund = stake->fund;
	struct list done;

	list_init(&done);
	lock_take(&fund->lock);
	mark_leaving(stake, &done);
	stake_gather(stake);
	lock_drop(&fund->lock);
	fund_tell_all(&done);
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
		stake_gather(stake_at(place));
	}
	lock_drop(&fund->lock);
	fund_tell_all(&done);
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

void stake_set_terms(struct stake *stake, const struct pool_ask *terms, uint64_t alone)
{
	struct fund *fund = stake->fund;

	lock_take(&fund->lock);
	set_terms(stake, terms);
	stake->locked.alone = alone;
	stake->locked.tells = true;
	stake->locked.tell_at = (mono){ 0 };
	lock_drop(&fund->lock);
	coordinator_wake(fund->coordinator); /* FUND-11 */
}

/* ---- Counts ------------------------------------------------------------------------- */

/* With all that was not spent in hand. */
static struct stake_counts count(const struct stake *stake, mono now)
{
	const struct claim *claim = &stake->locked.claim;
	struct stake_counts counts = stake->locked.counts;
	bool lasts = !mono_reached(now, claim->end);

	counts.spent += claim->taken + counts.alone;
	counts.share = lasts ? stake->locked.told.share : 0;
	counts.used = lasts ? claim->taken : 0;
	counts.in_hand = claim_in_hand(claim, now);
	return counts;
}

void stake_counts(struct stake *stake, mono now, struct stake_counts *ret_counts)
{
	struct fund *fund = stake->fund;

	lock_take(&fund->lock);
	stake_gather(stake);
	*ret_counts = count(stake, now);
	stake_fill(stake, now);
	lock_drop(&fund->lock);
}

static void add_counts(struct fund_counts *sum, const struct stake_counts *counts)
{
	sum->spent += counts->spent;
	sum->alone += counts->alone;
	sum->quanta += counts->quanta;
	sum->trips += counts->trips;
}

void stake_strike_off(struct stake *stake)
{
	struct stake_counts counts;

	stake_gather(stake);
	counts = count(stake, stake->locked.claim.end);
	add_counts(&stake->fund->locked.counts, &counts);
	list_remove(&stake->locked.place);
}

void fund_counts(struct fund *fund, mono now, struct fund_counts *ret_counts)
{
	lock_take(&fund->lock);
	*ret_counts = fund->locked.counts;
	ret_counts->guarantees = fund->locked.guarantees;
	for (struct list *place = fund->locked.stakes.next;
	     place != &fund->locked.stakes; place = place->next) {
		struct stake *stake = stake_at(place);
		struct stake_counts counts;

		stake_gather(stake);
		counts = count(stake, now);
		stake_fill(stake, now);
		add_counts(ret_counts, &counts);
		ret_counts->used += counts.used;
		ret_counts->present += counts.share > 0;
	}
	lock_drop(&fund->lock);
}
