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

/* BROOK-1: units were just taken from it. */
static void check_taken(struct brook *brook, uint32_t limit)
{
	struct brook_window *window = window_now(brook, limit);
	uint64_t excess = brook->plan->nodes > 1 ? window->excess : 0;

	window->since = 0;
	if (window->committed + window->held >
	    brook->plan->limits[limit].units + excess)
		fail(brook, "more is committed and held than the limit", limit);
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

static void call_at_once(struct brook *brook, const struct brook_node *node)
{
	uint64_t cost = chance_between(&brook->chance, 1, brook->plan->cost_most);
	struct gale_part parts[BROOK_LIMITS];
	struct gale_all all = { .parts = parts, .count = brook->plan->limit_count };
	struct gale_answer answer;

	name_parts(brook, node, cost, parts);
	answer = gale_wait_all(node->seat, &all, WITHIN);
	be_told(brook, &answer, &all);
	for (uint32_t i = 0; i < all.count && answer.verdict == GALE_ALLOW; i++) {
		window_now(brook, i)->committed += cost;
		check_taken(brook, i);
	}
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
		check_taken(brook, i);
	}
	call->held += units;
}

/* It has cost what it has sent. */
static void commit(struct brook *brook, struct brook_call *call)
{
	struct gale_seat *seat = brook->nodes[call->node].seat;
	uint64_t costs[BROOK_LIMITS];

	for (uint32_t i = 0; i < brook->plan->limit_count; i++) {
		struct brook_window *window = &brook->windows[i][call->window[i]];
		uint64_t past = call->held - call->units[i];
		uint64_t cost = call->sent > past ? call->sent - past : 0;

		costs[i] = call->sent;
		window->held -= call->units[i];
		window->committed += cost;
		if (cost > call->units[i]) {
			window->excess += cost - call->units[i];
			window->since += cost - call->units[i];
		}
	}
	if (call->window[0] != now_in(brook, 0))
		HAPPENS(brook, late);
	must(gale_hold_commit(seat, &call->hold, costs) == GALE_ERR_OK);
	if (gale_hold_cancel(seat, &call->hold) != GALE_ERR_HOLD)
		fail(brook, "a hold is settled twice", 0);
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

static void open_stream(struct brook *brook, uint32_t number)
{
	const struct brook_node *node = &brook->nodes[number];
	struct brook_call *call = free_call(brook);
	struct gale_part parts[BROOK_LIMITS];
	struct gale_all all = { .parts = parts, .count = brook->plan->limit_count };
	struct gale_answer answer;

	*call = (struct brook_call){ .node = number };
	draw(brook, call);
	name_parts(brook, node, brook->plan->held, parts);
	answer = gale_hold_wait(node->seat, &all, &call->hold, WITHIN);
	be_told(brook, &answer, &all);
	if (answer.verdict != GALE_ALLOW)
		return;
	must(!call->hold.cut);
	call->runs = true;
	for (uint32_t i = 0; i < all.count; i++)
		call->window[i] = now_in(brook, i);
	take(brook, call, brook->plan->held);
}

/* False: it may not, and is stopped. */
static bool grow(struct brook *brook, struct brook_call *call)
{
	uint64_t more[BROOK_LIMITS];
	struct gale_answer answer;

	for (uint32_t i = 0; i < BROOK_LIMITS; i++)
		more[i] = brook->plan->grows;
	answer =
	    gale_hold_grow(brook->nodes[call->node].seat, &call->hold, more, WITHIN);
	if (answer.verdict != GALE_ALLOW)
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

static void begin_calls(struct brook *brook)
{
	double each = (double)brook->plan->calls / BROOK_STEPS;

	brook->due += (double)chance_below(&brook->chance, 2001) / 1000 * each;
	for (; brook->due >= 1; brook->due--) {
		uint32_t node =
		    (uint32_t)chance_below(&brook->chance, brook->plan->nodes);

		if (brook->plan->holds)
			open_stream(brook, node);
		else
			call_at_once(brook, &brook->nodes[node]);
	}
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

/* BROOK-3 */
static void check_left(struct brook *brook, uint32_t limit)
{
	const struct brook_window *window = window_now(brook, limit);
	uint64_t units = brook->plan->limits[limit].units;
	uint64_t all = window->committed + brook->left[limit];
	uint64_t excess = brook->plan->nodes > 1 ? window->excess : 0;

	if (all < units)
		fail(brook, "units are gone that no call has cost", limit);
	if (all > units + excess && brook->left[limit] > 0)
		fail(brook, "there is more than the limit", limit);
}

/* BROOK-2 */
static void check_committed(struct brook *brook, uint32_t limit)
{
	for (uint64_t i = 0; i < brook_windows(brook->plan, limit); i++) {
		const struct brook_window *window = &brook->windows[limit][i];
		uint64_t excess =
		    brook->plan->nodes > 1 ? window->excess : window->since;

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
		brook->left[i] = drain(brook, i);
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

static void open_node(struct brook *brook, struct brook_node *node)
{
	struct gale_store_config store = { .url = "memory:brook" };
	struct gale_config config = { .shards = 1,
		                      .turns = true,
		                      .clock = &brook->clock };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	open_limiters(brook, node);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

static void close_node(const struct brook *brook, struct brook_node *node)
{
	gale_leave(node->seat);
	for (uint32_t i = 0; i < brook->plan->limit_count; i++)
		gale_limiter_close(node->limiters[i]);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void check_plan(const struct brook_plan *plan)
{
	must(plan->nodes <= BROOK_NODES && plan->limit_count <= BROOK_LIMITS &&
	     plan->windows <= BROOK_WINDOWS);
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
