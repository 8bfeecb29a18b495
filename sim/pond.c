/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pond.c -- a step after the other: answers that come, faults that befall nodes, asks.
 */
#include "sim/pond.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/must.h"

#define START_S UINT64_C(1700000000)
#define RELEASE                                                                        \
	8 /* of a window: a tenant is absent that has not asked so long; at the pool twice */
#define LOOKS 16    /* in that time: eight in that of the pool */
#define PATIENCE 10 /* delays until an answer is given up */
#define SLOW_ONE_IN 20
#define SLOW 8
#define CALLS 2 /* that may take: so long a node is cut off  (FUND-8) */
#define TRIES 3 /* of a stake that leaves */

static uint64_t window_of(const struct pond *pond)
{
	uint64_t first = START_S * 1000000 / pond->plan->window_us + 1;

	return pond->now_us / pond->plan->window_us - first;
}

static void fail(struct pond *pond, const char *what)
{
	if (!pond->fault[0])
		snprintf(pond->fault, sizeof(pond->fault), "window %" PRIu64 ": %s",
		         window_of(pond), what);
}

static struct pool_ask terms_of(const struct pond_plan *plan, uint32_t tenant)
{
	return (struct pool_ask){ .limit = plan->limit,
		                  .period_us = plan->window_us,
		                  .release_us = 2 * (plan->window_us / RELEASE),
		                  .cap = plan->limit,
		                  .weight = plan->tenants[tenant].weight };
}

/* ---- The store ----------------------------------------------------------------------- */

static void drop_claims(struct pond *pond, const struct pool_ask *ask)
{
	memset(pond->claims, 0, sizeof(pond->claims));
	for (uint32_t i = 0; i < pond->plan->tenant_count; i++) {
		struct pool_tenant *tenant = &pond->tenants[i];

		if (tenant->weight > 0 && pool_keeps(&pond->pool, ask, tenant))
			pool_forget(&pond->pool, tenant);
		else
			*tenant = (struct pool_tenant){ 0 };
	}
}

/* POND-2, of what an ask has changed. */
static void check_sums(struct pond *pond)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < pond->plan->tenant_count; i++)
		used += pond->tenants[i].used;
	if (used != pond->pool.used)
		fail(pond, "the pool's tenants have not what it has");
	if (used > pond->plan->limit)
		fail(pond, "the pool has granted more than the limit");
}

static struct pool_answer serve(struct pond *pond, const struct pond_flight *flight)
{
	const struct pool_ask *ask = &flight->ask;
	struct pool_claim *claim =
	    &pond->claims[flight->tenant][flight->life % POND_LIVES];
	struct pool_answer answer;
	enum pool_result result;
	uint64_t granted;
	bool turned;

	must(pool_ask_valid(ask));
	result = pool_begin(&pond->pool, ask, pond->now_us, &turned);
	if (result != POOL_ANSWERED)
		return pool_refusal(&pond->pool, ask, result);
	if (turned)
		drop_claims(pond, ask);
	granted = claim->granted;
	answer = pool_step(&pond->pool, pond->tenants, pond->plan->tenant_count,
	                   flight->tenant, claim, ask, pond->not_before_us);
	pond->quanta += claim->granted > granted;
	check_sums(pond);
	return answer;
}

/* Units that it granted in this window may be out until it turns. */
static void forget(struct pond *pond)
{
	uint64_t window_us = pond->plan->window_us;

	pond->forgets++;
	pond->pool = (struct pool){ 0 };
	memset(pond->tenants, 0, sizeof(pond->tenants));
	memset(pond->claims, 0, sizeof(pond->claims));
	pond->not_before_us = pond->now_us - pond->now_us % window_us + window_us;
}

/* ---- The network ---------------------------------------------------------------------- */

static bool happens(struct pond *pond, uint32_t percent)
{
	return percent > 0 && chance_below(&pond->chance, 100) < percent;
}

static uint64_t delay(struct pond *pond)
{
	uint64_t mean_us = pond->plan->delay_us;
	uint64_t us = chance_between(&pond->chance, mean_us / 2, mean_us + mean_us / 2);

	return chance_one_in(&pond->chance, SLOW_ONE_IN) ? SLOW * us : us;
}

static uint32_t regions_of(const struct pond_plan *plan)
{
	uint32_t regions = plan->regions > 0 ? plan->regions : 1;

	return regions < plan->nodes ? regions : plan->nodes;
}

static uint32_t region_of(const struct pond_plan *plan, uint32_t node)
{
	return node % regions_of(plan);
}

/* One way of it. */
static uint64_t link_us(const struct pond_plan *plan, uint32_t node)
{
	return region_of(plan, node) > 0 ? plan->link_us / 2 : 0;
}

static void fly(struct pond *pond, const struct pond_flight *flight)
{
	struct pond_flight *free = &pond->flights[pond->flying];

	if (happens(pond, pond->plan->lost_percent) || pond->flying == POND_FLIGHTS ||
	    pond->now_us < pond->nodes[flight->node].away_until_us) {
		pond->lost++;
		return;
	}
	*free = *flight;
	free->due_us = pond->now_us + delay(pond) + link_us(pond->plan, flight->node);
	pond->flying++;
}

static void post(struct pond *pond, const struct pond_flight *flight)
{
	fly(pond, flight);
	if (!happens(pond, pond->plan->doubled_percent))
		return;
	pond->doubled++;
	fly(pond, flight);
}

/* ---- A node --------------------------------------------------------------------------- */

static mono clock_of(const struct pond *pond, const struct pond_node *node)
{
	uint64_t us = pond->now_us - START_S * 1000000;

	return (mono){ (node->ahead_us + us) * 1000 +
		       (uint64_t)((int64_t)us * node->rate_ppm / 1000) };
}

static void open_stake(struct pond *pond, struct pond_node *node, uint32_t tenant)
{
	const struct pond_plan *plan = pond->plan;
	struct pond_stake *stake = &node->stakes[tenant];
	struct pool_ask terms = terms_of(plan, tenant);

	*stake = (struct pond_stake){ .life = pond->lives[tenant]++ };
	claim_init(&stake->claim, &terms, plan->drift_ppm, clock_of(pond, node));
	alone_init(&stake->alone, plan->alone, plan->window_us, plan->drift_ppm);
}

static void begin(struct pond *pond, struct pond_node *node)
{
	const struct pond_plan *plan = pond->plan;
	int64_t rate = (int64_t)chance_below(&pond->chance, 2 * plan->rate_ppm + 1);

	*node = (struct pond_node){ .ahead_us = 1000000 +
		                                chance_below(&pond->chance, 1000000000),
		                    .rate_ppm = rate - (int64_t)plan->rate_ppm };
	for (uint32_t i = 0; i < plan->tenant_count; i++)
		open_stake(pond, node, i);
}

/* An answer takes two steps at least. */
static uint64_t patience_us(const struct pond_plan *plan)
{
	return PATIENCE * plan->delay_us + 2 * plan->link_us +
	       4 * (plan->window_us / plan->steps);
}

static void send_of(struct pond *pond, uint32_t number, uint32_t tenant,
                    struct pond_stake *stake, bool present, uint64_t wants,
                    uint64_t least)
{
	const struct pond_node *node = &pond->nodes[number];
	struct pond_flight flight = { .node = number,
		                      .tenant = tenant,
		                      .life = stake->life,
		                      .number = ++stake->number };

	flight.ask = stake->sent =
	    claim_ask(&stake->claim, present, wants, least, clock_of(pond, node));
	stake->sent_us = pond->now_us;
	stake->gives_up_us = pond->now_us + patience_us(pond->plan);
	stake->ordered = 0;
	pond->asks++;
	post(pond, &flight);
}

static void send(struct pond *pond, uint32_t number, uint32_t tenant, bool present,
                 uint64_t wants, uint64_t least)
{
	send_of(pond, number, tenant, &pond->nodes[number].stakes[tenant], present,
	        wants, least);
}

/* It ends within two windows, and may cost nothing. */
static void hold(struct pond *pond, struct pond_stake *stake, uint64_t units)
{
	const struct pond_plan *plan = pond->plan;
	struct pond_hold *free = stake->holds;

	while (free < stake->holds + POND_HOLDS && free->units > 0)
		free++;
	if (free == stake->holds + POND_HOLDS)
		return;
	pond->holds++;
	*free = (struct pond_hold){
		.units = units,
		.cost = chance_between(&pond->chance, 0, units + plan->excess),
		.ends_us = pond->now_us +
		           chance_below(&pond->chance, chance_one_in(&pond->chance, 4)
		                                           ? 2 * plan->window_us
		                                           : plan->window_us / 8),
		.window = stake->claim.window,
		.spent_in = window_of(pond),
	};
	if (stake->hold_ends_us == 0 || free->ends_us < stake->hold_ends_us)
		stake->hold_ends_us = free->ends_us;
}

static void owe(struct pond *pond, struct pond_stake *stake, uint64_t units)
{
	if (stake->unpaid_in != window_of(pond))
		stake->unpaid = 0;
	stake->unpaid_in = window_of(pond);
	stake->unpaid += units;
}

static void settle(struct pond *pond, uint32_t tenant, struct pond_stake *stake,
                   const struct pond_hold *held)
{
	uint64_t window = held->spent_in;
	uint64_t back = held->cost < held->units ? held->units - held->cost : 0;
	uint64_t over = held->cost > held->units ? held->cost - held->units : 0;

	pond->spent[window] += over - back;
	pond->used[window][tenant] += over - back;
	pond->unpaid[window] += over;
	if (stake->claim.window != held->window)
		return;
	stake->tries = 0;
	claim_untake(&stake->claim, back);
	stake->claim.debt += over;
	if (window == window_of(pond))
		owe(pond, stake, over);
}

static void settle_all(struct pond *pond, uint32_t tenant, struct pond_stake *stake)
{
	uint64_t first_us = 0;

	for (struct pond_hold *held = stake->holds; held < stake->holds + POND_HOLDS;
	     held++) {
		if (held->units > 0 && pond->now_us >= held->ends_us) {
			settle(pond, tenant, stake, held);
			held->units = 0;
		}
		if (held->units > 0 && (first_us == 0 || held->ends_us < first_us))
			first_us = held->ends_us;
	}
	stake->hold_ends_us = first_us;
}

/* CLAIM-8: it has units for a call, so it has paid. */
static void be_paid(struct pond *pond, struct pond_stake *stake)
{
	if (stake->unpaid_in == window_of(pond))
		pond->unpaid[stake->unpaid_in] -= stake->unpaid;
	stake->unpaid = 0;
}

static bool spend(struct pond *pond, const struct pond_node *node, uint32_t tenant,
                  uint64_t cost)
{
	struct pond_stake *stake = &pond->nodes[node - pond->nodes].stakes[tenant];
	struct claim *claim = &stake->claim;
	uint64_t window = window_of(pond);

	claim_pay(claim, clock_of(pond, node));
	if (claim_in_hand(claim, clock_of(pond, node)) < cost)
		return false;
	be_paid(pond, stake);
	claim_take(claim, cost);
	if (pond->plan->holds && chance_one_in(&pond->chance, 2))
		hold(pond, stake, cost);
	pond->used[window][tenant] += cost;
	pond->in_region[window][region_of(pond->plan, (uint32_t)(node - pond->nodes))]
		       [tenant] += cost;
	pond->spent[window] += cost;
	if (pond->spent[window] > pond->plan->limit + pond->unpaid[window])
		fail(pond, "more was spent than the limit"); /* POND-1 */
	return true;
}

static bool is_cut_off(const struct pond *pond, const struct pond_node *node)
{
	return node->cut_off &&
	       pond->now_us < node->failed_us + CALLS * patience_us(pond->plan);
}

/* POND-3 */
static bool spend_alone(struct pond *pond, const struct pond_node *node,
                        uint32_t tenant, uint64_t cost)
{
	struct pond_stake *stake = &pond->nodes[node - pond->nodes].stakes[tenant];

	if (!is_cut_off(pond, node) ||
	    !alone_take(&stake->alone, cost, clock_of(pond, node)))
		return false;
	if (stake->alone_window != window_of(pond))
		stake->alone_used = 0;
	stake->alone_window = window_of(pond);
	stake->alone_used += cost;
	pond->alone += cost;
	if (stake->alone_used >= 2 * pond->plan->alone)
		fail(pond, "more was used alone than twice what may be");
	return true;
}

/* A call has got no answer; it says nothing if another was answered since it was sent.  (FUND-8) */
static void miss(struct pond *pond, struct pond_node *node, uint32_t tenant)
{
	struct pond_stake *stake = &node->stakes[tenant];

	claim_lost(&stake->claim);
	if (stake->sent_us >= node->answered_us) {
		node->cut_off = true;
		node->failed_us = pond->now_us;
	}
	for (uint32_t i = 0; i < stake->waiting; i++)
		(void)spend_alone(pond, node, tenant, stake->waits[i]);
	stake->waiting = 0;
}

/* Calls for which there is nothing are denied. */
static void serve_waits(struct pond *pond, const struct pond_node *node,
                        uint32_t tenant)
{
	struct pond_stake *stake = &pond->nodes[node - pond->nodes].stakes[tenant];

	for (uint32_t i = 0; i < stake->waiting; i++)
		(void)spend(pond, node, tenant, stake->waits[i]);
	stake->waiting = 0;
}

/* NULL: it is of a node's life before, or has left. */
static struct pond_stake *stake_of(struct pond_node *node,
                                   const struct pond_flight *flight)
{
	struct pond_stake *stake = &node->stakes[flight->tenant];
	struct pond_stake *leaver = &node->leavers[flight->tenant];

	if (stake->life == flight->life)
		return stake;
	return leaver->leaves && leaver->life == flight->life ? leaver : NULL;
}

/* CLAIM-9 */
static void learn_of_units(const struct pond *pond, struct pond_node *node,
                           const struct pool_answer *answer)
{
	for (uint32_t i = 0; i < pond->plan->tenant_count; i++)
		(void)claim_learn_of_units(&node->stakes[i].claim, answer->window);
}

static void hear(struct pond *pond, const struct pond_flight *flight)
{
	struct pond_node *node = &pond->nodes[flight->node];
	struct pond_stake *stake = stake_of(node, flight);
	enum claim_news news;

	if (!stake || stake->number != flight->number || !stake->claim.with_store)
		return;
	node->cut_off = false;
	node->answered_us = pond->now_us;
	news = claim_hear(&stake->claim, &flight->ask, &flight->answer,
	                  clock_of(pond, node));
	if (news == CLAIM_WRONG)
		fail(pond, "an answer was not believed"); /* POND-2 */
	if (flight->answer.result == POOL_ANSWERED && flight->answer.free > 0)
		learn_of_units(pond, node, &flight->answer);
	if (news != CLAIM_EARLY && !stake->leaves)
		serve_waits(pond, node, flight->tenant);
}

static void call(struct pond *pond, const struct pond_node *node, uint32_t tenant,
                 uint64_t cost)
{
	struct pond_stake *stake = &pond->nodes[node - pond->nodes].stakes[tenant];
	mono when;

	if (stake->waiting == 0 && spend(pond, node, tenant, cost))
		return;
	if (claim_refuses(&stake->claim, cost, clock_of(pond, node), &when))
		return;
	if (spend_alone(pond, node, tenant, cost))
		stake->ordered = cost;
	else if (stake->waiting < POND_WAITS)
		stake->waits[stake->waiting++] = cost;
}

static bool is_paused(const struct pond_plan *plan, uint64_t window, uint32_t tenant)
{
	return tenant == plan->pauses && window >= plan->pause_first &&
	       window <= plan->pause_last;
}

/* Units that a tenant asks for at a node in one step.  Its own region is the first for the first
 * tenant, and so on in turn. */
static double demand_at(const struct pond_plan *plan, uint32_t node, uint32_t tenant)
{
	double all = (double)plan->tenants[tenant].demand / plan->steps;
	uint32_t regions = regions_of(plan), home = tenant % regions;
	uint32_t nodes_there = (plan->nodes - home + regions - 1) / regions;
	double at_home = all * plan->home_percent / 100;

	if (region_of(plan, node) != home)
		return (all - at_home) / plan->nodes;
	return (all - at_home) / plan->nodes + at_home / nodes_there;
}

static void call_all(struct pond *pond, const struct pond_node *node, uint32_t tenant)
{
	const struct pond_plan *plan = pond->plan;
	struct pond_stake *stake = &pond->nodes[node - pond->nodes].stakes[tenant];

	if (is_paused(plan, window_of(pond), tenant))
		return;
	stake->due += demand_at(plan, (uint32_t)(node - pond->nodes), tenant);
	while (stake->due >= 1) {
		uint64_t cost = chance_between(&pond->chance, 1, plan->cost_most);

		stake->due -= (double)cost;
		call(pond, node, tenant, cost);
	}
}

static bool wants(const struct pond_stake *stake, mono now, uint64_t *ret_wants,
                  uint64_t *ret_least)
{
	uint64_t sum = stake->ordered, held = claim_in_hand(&stake->claim, now);
	uint64_t least = stake->ordered ? stake->ordered : UINT64_MAX;

	for (uint32_t i = 0; i < stake->waiting; i++) {
		sum += stake->waits[i];
		if (stake->waits[i] < least)
			least = stake->waits[i];
	}
	sum += claim_debt(&stake->claim, now);
	if (least < UINT64_MAX)
		least += claim_debt(&stake->claim, now);
	*ret_wants = sum > held ? sum - held : 0;
	*ret_least = least > held ? least - held : 0;
	return (stake->waiting > 0 || stake->ordered > 0) && *ret_least > 0;
}

static uint64_t tick_us(const struct pond_plan *plan)
{
	return plan->window_us / RELEASE / LOOKS;
}

/* Once in a tick; the pool hears of what goes back, and of a tenant that is served from what is in
 * hand. */
static void look(struct pond *pond, uint32_t number, uint32_t tenant)
{
	struct pond_node *node = &pond->nodes[number];
	struct pond_stake *stake = &node->stakes[tenant];
	mono now = clock_of(pond, node);
	uint64_t release_ns = stake->claim.terms.release_us * 1000;
	struct claim_look seen;
	bool is_due;

	stake->look_us = pond->now_us + tick_us(pond->plan);
	seen = claim_look(&stake->claim, now, tick_us(pond->plan) * 1000);
	if (seen.gives > 0)
		claim_give(&stake->claim, seen.gives);
	stake->ahead = seen.asks;
	is_due = seen.moved > 0 && now.ns - stake->claim.sent.ns >= release_ns / 4;
	if (!stake->ahead && (seen.gives > 0 || is_due))
		send(pond, number, tenant, seen.moved > 0, 0, 0);
}

static void ask_ahead(struct pond *pond, uint32_t number, uint32_t tenant)
{
	struct pond_node *node = &pond->nodes[number];
	struct claim *claim = &node->stakes[tenant].claim;
	mono now = clock_of(pond, node), when;

	node->stakes[tenant].ahead = false;
	if (!mono_reached(now, claim->end) && claim_may_ask(claim, 1, now, &when))
		send(pond, number, tenant, /* present= */ true, 1, 1);
}

/* ---- A stake that leaves ---------------------------------------------------------------- */

/* Units alone are the tenant's, whatever its stake.  FUND-9 */
static void evict(struct pond *pond, struct pond_node *node, uint32_t tenant)
{
	struct pond_stake *stake = &node->stakes[tenant];
	struct pond_stake *leaver = &node->leavers[tenant];

	if (leaver->leaves)
		return;
	pond->evictions++;
	*leaver = *stake;
	leaver->leaves = true;
	open_stake(pond, node, tenant);
	stake->alone = leaver->alone;
	stake->alone_window = leaver->alone_window;
	stake->alone_used = leaver->alone_used;
	stake->due = leaver->due;
}

/* What it has pays its debt, and the rest goes back.  FUND-12 */
static void give_all(struct pond *pond, const struct pond_node *node,
                     struct pond_stake *leaver)
{
	mono now = clock_of(pond, node);

	claim_pay(&leaver->claim, now);
	if (leaver->claim.debt == 0)
		be_paid(pond, leaver);
	claim_give(&leaver->claim, claim_in_hand(&leaver->claim, now));
}

static void turn_leaver(struct pond *pond, uint32_t number, uint32_t tenant)
{
	struct pond_node *node = &pond->nodes[number];
	struct pond_stake *leaver = &node->leavers[tenant];

	if (leaver->hold_ends_us > 0 && pond->now_us >= leaver->hold_ends_us)
		settle_all(pond, tenant, leaver);
	if (leaver->claim.with_store && pond->now_us >= leaver->gives_up_us)
		claim_lost(&leaver->claim);
	if (leaver->claim.with_store)
		return;
	give_all(pond, node, leaver);
	if (claim_owes(&leaver->claim, clock_of(pond, node)) && leaver->tries < TRIES) {
		leaver->tries++;
		send_of(pond, number, tenant, leaver, /* present= */ false, 0, 0);
	} else if (leaver->hold_ends_us == 0) {
		leaver->leaves = false;
	}
}

static void turn(struct pond *pond, uint32_t number, uint32_t tenant)
{
	struct pond_node *node = &pond->nodes[number];
	struct pond_stake *stake = &node->stakes[tenant];
	mono now = clock_of(pond, node), when;
	uint64_t more, least;

	if (stake->hold_ends_us > 0 && pond->now_us >= stake->hold_ends_us)
		settle_all(pond, tenant, stake);
	call_all(pond, node, tenant);
	if (stake->claim.with_store && pond->now_us >= stake->gives_up_us)
		miss(pond, node, tenant);
	if (stake->claim.with_store)
		return;
	if (stake->ordered <= claim_in_hand(&stake->claim, now))
		stake->ordered = 0;
	if (!wants(stake, now, &more, &least)) {
		serve_waits(pond, node, tenant);
		if (pond->now_us >= stake->look_us)
			look(pond, number, tenant);
		if (stake->ahead)
			ask_ahead(pond, number, tenant);
	} else if (claim_refuses(&stake->claim, least, now, &when)) {
		stake->waiting = 0;
		stake->ordered = 0;
	} else if (claim_may_ask(&stake->claim, least, now, &when)) {
		send(pond, number, tenant, /* present= */ true, more, least);
	}
}

/* ---- A run ---------------------------------------------------------------------------- */

static void land_all(struct pond *pond)
{
	for (uint32_t i = 0; i < pond->flying;) {
		struct pond_flight flight = pond->flights[i];

		if (flight.due_us > pond->now_us) {
			i++;
			continue;
		}
		pond->flights[i] = pond->flights[--pond->flying];
		if (flight.is_answer) {
			hear(pond, &flight);
			continue;
		}
		flight.answer = serve(pond, &flight);
		flight.is_answer = true;
		post(pond, &flight);
	}
}

static bool befalls(struct pond *pond, uint64_t each_us, uint64_t step_us)
{
	return each_us > 0 && chance_below(&pond->chance, each_us) < step_us;
}

static void step(struct pond *pond, uint64_t step_us)
{
	const struct pond_plan *plan = pond->plan;

	land_all(pond);
	if (befalls(pond, plan->forget_us, step_us))
		forget(pond);
	for (uint32_t n = 0; n < plan->nodes; n++) {
		if (befalls(pond, plan->crash_us, step_us)) {
			pond->crashes++;
			pond->crashed[window_of(pond)] = true;
			begin(pond, &pond->nodes[n]);
		}
		if (befalls(pond, plan->away_us, step_us)) {
			pond->aways++;
			pond->nodes[n].away_until_us =
			    pond->now_us +
			    chance_below(&pond->chance, 2 * plan->window_us);
		}
		for (uint32_t i = 0; i < plan->tenant_count; i++) {
			if (befalls(pond, plan->evict_us, step_us))
				evict(pond, &pond->nodes[n], i);
			if (pond->nodes[n].leavers[i].leaves)
				turn_leaver(pond, n, i);
			turn(pond, n, i);
		}
	}
}

void pond_play(struct pond *pond, const struct pond_plan *plan)
{
	uint64_t start =
	    START_S * 1000000 / plan->window_us * plan->window_us + plan->window_us;
	uint64_t step_us = plan->window_us / plan->steps;

	must(plan->nodes <= POND_NODES && plan->tenant_count <= POND_TENANTS &&
	     plan->regions <= POND_REGIONS && plan->windows <= POND_WINDOWS &&
	     step_us > 0);
	memset(pond, 0, sizeof(*pond));
	pond->plan = plan;
	pond->chance.state = plan->seed;
	pond->now_us = start;
	for (uint32_t n = 0; n < plan->nodes; n++)
		begin(pond, &pond->nodes[n]);
	for (; window_of(pond) < plan->windows; pond->now_us += step_us)
		step(pond, step_us);
}

double pond_ideal(const struct pond_plan *plan, uint32_t window, uint32_t tenant)
{
	double weights = 0, share, demand = (double)plan->tenants[tenant].demand;

	if (is_paused(plan, window, tenant))
		return 0;
	for (uint32_t i = 0; i < plan->tenant_count; i++)
		if (!is_paused(plan, window, i))
			weights += (double)plan->tenants[i].weight;
	share = (double)plan->limit * (double)plan->tenants[tenant].weight / weights;
	return demand < share ? demand : share;
}
