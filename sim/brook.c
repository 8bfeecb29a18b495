/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* brook.c -- a step after the other: what streams send, which calls begin, what is counted. */
#include "sim/brook.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/lot.h"
#include "sim/must.h"

#define START_US GALE_DAYS(19675) /* in 2023: windows that divide a day begin */
#define BOOT_NS (GALE_HOURS(10) * 1000)
#define WITHIN GALE_HOURS(1) /* of patience, which passes in no time: lot.h */
#define KEY "alice"
#define WITHIN_POOL                                                                    \
	GALE_SECONDS(10) /* between two windows it is not asked: so many turns */
#define RELEASE                                                                        \
	8 /* of a window: who has not called for so long is absent  (gale_budget_config) */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void fail(struct brook *brook, const char *what, uint32_t limit)
{
	if (!brook->fault[0])
		snprintf(brook->fault, sizeof(brook->fault),
		         "%" PRIu64 " s, limit %u: %s",
		         (brook->now_us - START_US) / 1000000, limit + 1, what);
}

/* ---- Windows ------------------------------------------------------------------------- */

static uint64_t number_at(const struct brook_plan *plan, uint32_t limit, uint64_t at_us)
{
	uint64_t window_us = plan->limits[limit].window_us;

	return at_us / window_us - START_US / window_us;
}

static uint64_t now_in(const struct brook *brook, uint32_t limit)
{
	return number_at(brook->plan, limit, brook->now_us);
}

static struct brook_window *window_now(struct brook *brook, uint32_t limit)
{
	return &brook->windows[limit][now_in(brook, limit)];
}

static uint64_t end_us(const struct brook_plan *plan)
{
	uint64_t window_us = plan->limits[0].window_us;

	return START_US + plan->windows * window_us - window_us / 2;
}

uint64_t brook_windows(const struct brook_plan *plan, uint32_t limit)
{
	return number_at(plan, limit, end_us(plan)) + 1;
}

/* Each event is counted twice: in its window, and for the next sample. */
#define HAPPENS(brook, what)                                                           \
	((brook)->events[now_in(brook, 0)].what++, (brook)->recent.what++)

/* The units that its calls may have cost beyond the limit, with or without a tenant that has paid. */
static uint64_t excess_of(const struct brook *brook, const struct brook_window *window)
{
	const struct brook_plan *plan = brook->plan;

	return plan->nodes > 1 && plan->tenant_count == 0 ? window->excess
	                                                  : window->since;
}

static struct brook_debt *debt_of(struct brook *brook, uint32_t node, uint32_t tenant,
                                  uint32_t limit)
{
	struct brook_debt *debt = &brook->nodes[node].debts[limit][tenant];
	uint64_t now = now_in(brook, limit);

	if (debt->window != now)
		*debt = (struct brook_debt){ .window = now };
	return debt;
}

/* BROOK-1: units were just taken from it. */
static void check_taken(struct brook *brook, uint32_t node, uint32_t tenant,
                        uint32_t limit)
{
	struct brook_window *window = window_now(brook, limit);
	struct brook_debt *debt = debt_of(brook, node, tenant, limit);

	window->since -= debt->units;
	debt->units = 0;
	if (window->committed + window->held >
	    brook->plan->limits[limit].units + excess_of(brook, window))
		fail(brook, "more is committed and held than the limit", limit);
}

/* A call has ended, and cost so much more than it held of that window. */
static void exceed(struct brook *brook, const struct brook_call *call, uint32_t limit,
                   uint64_t units)
{
	struct brook_window *window = &brook->windows[limit][call->window[limit]];

	window->excess += units;
	window->since += units;
	if (call->window[limit] == now_in(brook, limit))
		debt_of(brook, call->node, call->tenant, limit)->units += units;
}

/* ---- Tenants ------------------------------------------------------------------------- */

static struct brook_tenant *tenant_now(struct brook *brook, uint32_t number)
{
	struct brook_tenant *tenant = &brook->tenants[number];
	uint64_t now = now_in(brook, 0);

	if (tenant->window != now)
		tenant->used = 0;
	tenant->window = now;
	return tenant;
}

/* It calls.  Half of the time after which it is absent: a denial that is remembered is no ask. */
static void be_present(struct brook *brook, uint32_t number)
{
	struct brook_tenant *tenant = tenant_now(brook, number);
	uint64_t most_us = brook->plan->limits[0].window_us / RELEASE / 2;

	if (tenant->asked_us == 0 || brook->now_us - tenant->asked_us > most_us)
		tenant->present_us = brook->now_us;
	tenant->asked_us = brook->now_us;
}

/* It has called, and goes on, since before this window began. */
static bool is_present(const struct brook *brook, uint32_t number)
{
	const struct brook_tenant *tenant = &brook->tenants[number];
	uint64_t window_us = brook->plan->limits[0].window_us;

	return tenant->asked_us > 0 &&
	       brook->now_us - tenant->asked_us <= window_us / RELEASE / 2 &&
	       tenant->present_us < brook->now_us / window_us * window_us;
}

static bool others_are_present(const struct brook *brook, uint32_t number)
{
	for (uint32_t i = 0; i < brook->plan->tenant_count; i++)
		if (i != number && !is_present(brook, i))
			return false;
	return true;
}

/* While all are present. */
static uint64_t share_of(const struct brook_plan *plan, uint32_t number)
{
	uint64_t weights = 0;

	for (uint32_t i = 0; i < plan->tenant_count; i++)
		weights += plan->weights[i];
	return plan->limits[0].units * plan->weights[number] / weights;
}

static uint64_t dearest(const struct brook_plan *plan)
{
	return plan->holds ? larger(plan->held, plan->grows) : plan->cost_most;
}

/* The units that its calls have cost in this window beyond their holds, and no node has paid. */
static uint64_t owed_by(struct brook *brook, uint32_t number)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < brook->plan->nodes; i++)
		units += debt_of(brook, i, number, 0)->units;
	return units;
}

/* BROOK-4 */
static void check_share(struct brook *brook, uint32_t number)
{
	const struct brook_plan *plan = brook->plan;
	uint64_t used = tenant_now(brook, number)->used - owed_by(brook, number);

	if (others_are_present(brook, number) &&
	    used > share_of(plan, number) + dearest(plan) + plan->tenant_count)
		fail(brook, "a tenant has more than its share, which others want", 0);
}

/* BROOK-5 */
static void check_refused(struct brook *brook, uint32_t number, uint64_t cost)
{
	const struct brook_plan *plan = brook->plan;
	uint64_t used = tenant_now(brook, number)->used + cost;

	if (plan->nodes == 1 && is_present(brook, number) &&
	    others_are_present(brook, number) &&
	    used + (plan->tenant_count - 1) * dearest(plan) <= share_of(plan, number))
		fail(brook, "a tenant is refused what is less than its share", 0);
}

/* ---- Calls --------------------------------------------------------------------------- */

static void name_parts(const struct brook *brook, const struct brook_node *node,
                       uint64_t cost, struct gale_part *ret_parts)
{
	for (uint32_t i = 0; i < brook->plan->limit_count; i++)
		ret_parts[i] = (struct gale_part){ .limiter = node->limiters[i],
			                           .key = KEY,
			                           .key_len = strlen(KEY),
			                           .cost = cost };
}

static void be_told(struct brook *brook, const struct gale_answer *answer,
                    const struct gale_all *all)
{
	if (answer->verdict == GALE_ALLOW)
		HAPPENS(brook, admitted);
	else
		HAPPENS(brook, refused[all->binding]);
}

static void call_at_once(struct brook *brook, uint32_t number)
{
	uint64_t cost = chance_between(&brook->chance, 1, brook->plan->cost_most);
	const struct brook_node *node = &brook->nodes[number];
	struct gale_part parts[BROOK_LIMITS];
	struct gale_all all = { .parts = parts, .count = brook->plan->limit_count };
	struct gale_answer answer;

	name_parts(brook, node, cost, parts);
	answer = gale_wait_all(node->seat, &all, WITHIN);
	be_told(brook, &answer, &all);
	for (uint32_t i = 0; i < all.count && answer.verdict == GALE_ALLOW; i++) {
		window_now(brook, i)->committed += cost;
		check_taken(brook, number, 0, i);
	}
}

static void be_told_of(struct brook *brook, const struct gale_answer *answer,
                       uint32_t tenant, uint64_t cost)
{
	if (answer->verdict == GALE_ALLOW) {
		HAPPENS(brook, admitted);
		return;
	}
	HAPPENS(brook, refused[0]);
	check_refused(brook, tenant, cost);
}

static void call_of_tenant(struct brook *brook, uint32_t number, uint32_t tenant)
{
	uint64_t cost = chance_between(&brook->chance, 1, brook->plan->cost_most);
	const struct brook_node *node = &brook->nodes[number];
	struct gale_answer answer;

	be_present(brook, tenant);
	answer = gale_tenant_wait(node->seat, node->tenants[tenant], cost, WITHIN_POOL);
	be_told_of(brook, &answer, tenant, cost);
	if (answer.verdict != GALE_ALLOW)
		return;
	window_now(brook, 0)->committed += cost;
	tenant_now(brook, tenant)->used += cost;
	check_taken(brook, number, tenant, 0);
	check_share(brook, tenant);
}

/* ---- Streams ------------------------------------------------------------------------- */

/* It has so many more, of the windows that are open.  Units of other windows are spent. */
static void take(struct brook *brook, struct brook_call *call, uint64_t units)
{
	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		uint64_t now = now_in(brook, i);
		struct brook_window *before = &brook->windows[i][call->window[i]];

		if (call->window[i] != now) {
			before->held -= call->units[i];
			before->committed += call->units[i];
			call->units[i] = 0;
		}
		call->window[i] = now;
		call->units[i] += units;
		window_now(brook, i)->held += units;
		check_taken(brook, call->node, call->tenant, i);
	}
	call->held += units;
	if (brook->plan->tenant_count == 0)
		return;
	tenant_now(brook, call->tenant)->used += units;
	check_share(brook, call->tenant);
}

static void settle(struct brook *brook, struct brook_call *call, const uint64_t *costs)
{
	struct gale_seat *seat = brook->nodes[call->node].seat;
	enum gale_err err, again;

	if (brook->plan->tenant_count > 0) {
		err = gale_tenant_commit(seat, &call->held_of, costs[0]);
		again = gale_tenant_commit(seat, &call->held_of, 0);
	} else {
		err = gale_hold_commit(seat, &call->hold, costs);
		again = gale_hold_cancel(seat, &call->hold);
	}
	must(err == GALE_ERR_OK);
	if (again != GALE_ERR_HOLD)
		fail(brook, "a hold is settled twice", 0);
}

/* It has cost what it has sent. */
static void commit(struct brook *brook, struct brook_call *call)
{
	uint64_t costs[BROOK_LIMITS];

	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		struct brook_window *window = &brook->windows[i][call->window[i]];
		uint64_t past = call->held - call->units[i];
		uint64_t cost = call->sent > past ? call->sent - past : 0;

		costs[i] = call->sent;
		window->held -= call->units[i];
		window->committed += cost;
		if (cost > call->units[i])
			exceed(brook, call, i, cost - call->units[i]);
		if (i == 0 && call->window[0] == now_in(brook, 0))
			tenant_now(brook, call->tenant)->used += cost - call->units[0];
	}
	if (call->window[0] != now_in(brook, 0))
		HAPPENS(brook, late);
	settle(brook, call, costs);
	call->runs = false;
}

static struct brook_call *free_call(struct brook *brook)
{
	size_t i = 0;

	while (i < BROOK_CALLS && brook->calls[i].runs)
		i++;
	must(i < BROOK_CALLS);
	return &brook->calls[i];
}

static void draw(struct brook *brook, struct brook_call *call)
{
	const struct brook_plan *plan = brook->plan;

	call->length = chance_between(&brook->chance, 1, plan->cost_most);
	call->breaks = chance_below(&brook->chance, 100) < plan->break_percent;
	if (call->breaks)
		call->length = chance_below(&brook->chance, call->length);
}

static bool hold(struct brook *brook, struct brook_call *call)
{
	const struct brook_node *node = &brook->nodes[call->node];
	struct gale_part parts[BROOK_LIMITS];
	struct gale_all all = { .parts = parts, .count = brook->plan->limit_count };
	struct gale_answer answer;

	name_parts(brook, node, brook->plan->held, parts);
	answer = gale_hold_wait(node->seat, &all, &call->hold, WITHIN);
	be_told(brook, &answer, &all);
	must(!call->hold.cut);
	return answer.verdict == GALE_ALLOW;
}

static bool hold_of_tenant(struct brook *brook, struct brook_call *call)
{
	const struct brook_node *node = &brook->nodes[call->node];
	uint64_t units = brook->plan->held;
	struct gale_answer answer;

	be_present(brook, call->tenant);
	answer = gale_tenant_hold(node->seat, node->tenants[call->tenant], units,
	                          &call->held_of, WITHIN_POOL);
	be_told_of(brook, &answer, call->tenant, units);
	must(!call->held_of.cut);
	return answer.verdict == GALE_ALLOW;
}

static void open_stream(struct brook *brook, uint32_t number, uint32_t tenant)
{
	struct brook_call *call = free_call(brook);

	*call = (struct brook_call){ .node = number, .tenant = tenant };
	draw(brook, call);
	call->runs = brook->plan->tenant_count > 0 ? hold_of_tenant(brook, call)
	                                           : hold(brook, call);
	if (!call->runs)
		return;
	for (uint32_t i = 0; i < brook->plan->limit_count; i++)
		call->window[i] = now_in(brook, i);
	take(brook, call, brook->plan->held);
}

static struct gale_answer ask_to_grow(struct brook *brook, struct brook_call *call)
{
	struct gale_seat *seat = brook->nodes[call->node].seat;
	uint64_t more[BROOK_LIMITS];
	struct gale_answer answer;

	for (uint32_t i = 0; i < BROOK_LIMITS; i++)
		more[i] = brook->plan->grows;
	if (brook->plan->tenant_count == 0)
		return gale_hold_grow(seat, &call->hold, more, WITHIN);
	be_present(brook, call->tenant);
	answer = gale_tenant_grow(seat, &call->held_of, more[0], WITHIN_POOL);
	if (answer.verdict != GALE_ALLOW)
		check_refused(brook, call->tenant, more[0]);
	return answer;
}

/* False: it may not, and is stopped. */
static bool grow(struct brook *brook, struct brook_call *call)
{
	if (ask_to_grow(brook, call).verdict != GALE_ALLOW)
		return false;
	take(brook, call, brook->plan->grows);
	return true;
}

static void stop(struct brook *brook, struct brook_call *call)
{
	HAPPENS(brook, stopped);
	call->sent += chance_between(&brook->chance, 0, brook->plan->late);
	commit(brook, call);
}

static void send(struct brook *brook, struct brook_call *call)
{
	call->due += (double)brook->plan->sends / BROOK_STEPS;
	for (; call->due >= 1 && call->sent < call->length; call->due--) {
		if (call->sent + brook->plan->ahead >= call->held &&
		    !grow(brook, call)) {
			stop(brook, call);
			return;
		}
		call->sent++;
	}
	if (call->sent < call->length)
		return;
	if (call->breaks)
		HAPPENS(brook, broken);
	commit(brook, call);
}

/* ---- A run --------------------------------------------------------------------------- */

static bool pauses(const struct brook *brook, uint32_t tenant)
{
	const struct brook_plan *plan = brook->plan;

	return plan->tenant_count > 0 && tenant == plan->pauses &&
	       (brook->now_us - START_US) / plan->pause_us % 2 == 1;
}

static void begin_call(struct brook *brook, uint32_t node)
{
	uint32_t tenants = brook->plan->tenant_count, tenant = 0;

	if (tenants > 0)
		tenant = (uint32_t)chance_below(&brook->chance, tenants);
	if (pauses(brook, tenant))
		return;
	if (brook->plan->holds)
		open_stream(brook, node, tenant);
	else if (tenants > 0)
		call_of_tenant(brook, node, tenant);
	else
		call_at_once(brook, node);
}

static void begin_calls(struct brook *brook)
{
	double each = (double)brook->plan->calls / BROOK_STEPS;

	brook->due += (double)chance_below(&brook->chance, 2001) / 1000 * each;
	for (; brook->due >= 1; brook->due--)
		begin_call(brook,
		           (uint32_t)chance_below(&brook->chance, brook->plan->nodes));
}

static void turn_all(struct brook *brook)
{
	for (uint32_t i = 0; i < brook->plan->nodes; i++)
		while (gale_turn(brook->nodes[i].runtime) > 0)
			continue;
}

static void sample(struct brook *brook)
{
	const struct brook_window *window = window_now(brook, 0);

	brook->samples[brook->sample_count++] =
	    (struct brook_sample){ .at_us = brook->now_us - START_US,
		                   .committed = window->committed,
		                   .held = window->held,
		                   .events = brook->recent };
	brook->recent = (struct brook_events){ 0 };
}

static void note_used(struct brook *brook)
{
	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		const struct brook_window *window = window_now(brook, i);

		brook->used[now_in(brook, 0)][i] = window->committed + window->held;
	}
}

static void step(struct brook *brook)
{
	turn_all(brook);
	for (size_t i = 0; i < BROOK_CALLS; i++)
		if (brook->calls[i].runs)
			send(brook, &brook->calls[i]);
	begin_calls(brook);
	note_used(brook);
}

/* Units that nodes get one by one. */
static uint64_t drain(struct brook *brook, uint32_t limit)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < brook->plan->nodes; i++) {
		struct brook_node *node = &brook->nodes[i];

		while (gale_wait(node->seat, node->limiters[limit], KEY, strlen(KEY), 1,
		                 WITHIN)
		           .verdict == GALE_ALLOW)
			units++;
	}
	return units;
}

/* The same, for all tenants in turn, until none gets any more. */
static uint64_t drain_budget(struct brook *brook)
{
	uint64_t units = 0, before;

	do {
		before = units;
		for (uint32_t i = 0; i < brook->plan->nodes; i++)
			for (uint32_t t = 0; t < brook->plan->tenant_count; t++)
				units += gale_tenant_wait(brook->nodes[i].seat,
				                          brook->nodes[i].tenants[t], 1,
				                          WITHIN_POOL)
				             .verdict == GALE_ALLOW;
	} while (units > before);
	return units;
}

/* BROOK-3 */
static void check_left(struct brook *brook, uint32_t limit)
{
	const struct brook_window *window = window_now(brook, limit);
	uint64_t units = brook->plan->limits[limit].units;
	uint64_t all = window->committed + brook->left[limit];
	uint64_t excess = 0;

	if (brook->plan->nodes > 1 || brook->plan->tenant_count > 0)
		excess = excess_of(brook, window);
	if (all < units && (brook->plan->nodes == 1 || brook->plan->tenant_count == 0))
		fail(brook, "units are gone that no call has cost", limit);
	if (all > units + excess && brook->left[limit] > 0)
		fail(brook, "there is more than the limit", limit);
}

/* BROOK-2 */
static void check_committed(struct brook *brook, uint32_t limit)
{
	for (uint64_t i = 0; i < brook_windows(brook->plan, limit); i++) {
		const struct brook_window *window = &brook->windows[limit][i];
		uint64_t excess = excess_of(brook, window);

		must(window->held == 0);
		if (window->committed > brook->plan->limits[limit].units + excess)
			fail(brook, "a window has committed more than it may", limit);
	}
}

static void end(struct brook *brook)
{
	for (size_t i = 0; i < BROOK_CALLS; i++)
		if (brook->calls[i].runs)
			commit(brook, &brook->calls[i]);
	turn_all(brook);
	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		check_committed(brook, i);
		brook->left[i] = brook->plan->tenant_count > 0 ? drain_budget(brook)
		                                               : drain(brook, i);
		check_left(brook, i);
	}
}

/* ---- Nodes --------------------------------------------------------------------------- */

static uint64_t now_us_of(struct gale_clock *self)
{
	return ((struct brook *)((char *)self - offsetof(struct brook, clock)))->now_us;
}

static uint64_t boot_ns_of(struct gale_clock *self)
{
	return BOOT_NS + (now_us_of(self) - START_US) * 1000;
}

static void open_limiters(struct brook *brook, struct brook_node *node)
{
	static const char *const names[BROOK_LIMITS] = { "1", "2", "3", "4" };

	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		const struct brook_limit *limit = &brook->plan->limits[i];
		struct gale_limiter_config config = {
			.name = names[i],
			.rule = gale_fixed_window(limit->units, limit->window_us),
			.mode = GALE_LEASED,
			.store = node->store,
			.lease = { .drift_ppm = 1 }
		};

		must(gale_limiter_open(node->runtime, &config, &node->limiters[i]) ==
		     GALE_ERR_OK);
	}
}

static void open_budget(const struct brook *brook, struct brook_node *node)
{
	static const char *const names[BROOK_TENANTS] = {
		"a", "b", "c", "d", "e", "f"
	};
	const struct brook_plan *plan = brook->plan;
	struct gale_budget_config config = { .limit = plan->limits[0].units,
		                             .window_us = plan->limits[0].window_us,
		                             .name = "budget" };

	if (plan->nodes > 1)
		config.store = node->store;
	must(gale_budget_open(node->runtime, &config, &node->budget) == GALE_ERR_OK);
	for (uint32_t i = 0; i < plan->tenant_count; i++) {
		struct gale_terms terms = { .weight = plan->weights[i],
			                    .name = names[i] };

		must(gale_tenant_open(node->budget, &terms, &node->tenants[i]) ==
		     GALE_ERR_OK);
	}
}

static void open_node(struct brook *brook, struct brook_node *node)
{
	struct gale_store_config store = { .url = "memory:brook" };
	struct gale_config config = { .shards = 1,
		                      .turns = true,
		                      .clock = &brook->clock };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	if (brook->plan->tenant_count > 0)
		open_budget(brook, node);
	else
		open_limiters(brook, node);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void close_node(const struct brook *brook, struct brook_node *node)
{
	gale_leave(node->seat);
	for (uint32_t i = 0; i < brook->plan->limit_count; i++)
		gale_limiter_close(node->limiters[i]);
	for (uint32_t i = 0; i < brook->plan->tenant_count; i++)
		gale_tenant_close(node->tenants[i]);
	gale_budget_close(node->budget);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void check_plan(const struct brook_plan *plan)
{
	must(plan->nodes <= BROOK_NODES && plan->limit_count <= BROOK_LIMITS &&
	     plan->windows <= BROOK_WINDOWS && plan->tenant_count <= BROOK_TENANTS &&
	     (plan->tenant_count == 0 || plan->limit_count == 1));
	for (uint32_t i = 0; i < plan->limit_count; i++)
		must(plan->held <= plan->limits[i].units &&
		     plan->limits[0].window_us <= plan->limits[i].window_us);
}

void brook_play(struct brook *brook, const struct brook_plan *plan)
{
	uint64_t step_us = plan->limits[0].window_us / BROOK_STEPS;

	check_plan(plan);
	memset(brook, 0, sizeof(*brook));
	brook->plan = plan;
	brook->chance.state = plan->seed;
	brook->now_us = START_US;
	brook->clock =
	    (struct gale_clock){ .now_us = now_us_of, .boot_ns = boot_ns_of };
	lot_begin(~plan->seed);
	for (uint32_t i = 0; i < plan->nodes; i++)
		open_node(brook, &brook->nodes[i]);
	for (uint64_t i = 0; brook->now_us < end_us(plan); i++) {
		step(brook);
		if (i % (BROOK_STEPS / BROOK_SAMPLES) == 0)
			sample(brook);
		brook->now_us += step_us;
	}
	end(brook);
	for (uint32_t i = 0; i < plan->nodes; i++)
		close_node(brook, &brook->nodes[i]);
	lot_end();
}
