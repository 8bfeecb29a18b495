/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sliding.c -- S buckets that count in full, and an oldest one that counts in part.
 *
 *      tick-S     tick-S+1   ...              tick
 *     |   old   |         full counts        |  now   |
 *         ^-- the part of it still inside the window --^
 *
 * A bucket lasts period/S microseconds, which need not be whole.  So sums are kept in
 * "shares": one unit is period shares, and a unit of the oldest bucket is as many
 * shares as the bucket still has 1/S microseconds to go.  Everything is then an
 * integer, and the comparison with the limit is exact.
 *
 * Invariants  SLIDING-1  The counts of buckets tick - S + 1 to tick add up to at most
 *                        the largest limit that the key was asked under. (L15)
 *             SLIDING-2  tick never decreases; an instant before it is taken as its
 *                        start. (RULE-2)
 */
#include "engine/sliding.h"

#include "engine/check.h"

/* The key as it is at this instant. */
struct view {
	uint64_t tick;
	uint64_t rest; /* of this bucket's time, in 1/S microseconds: 1 to period */
	uint64_t old;  /* units in the bucket that is leaving */
	uint128 used;  /* shares in the window */
};

static uint64_t tick_of(const struct rule *rule, uint64_t now)
{
	return now * rule->is.buckets / rule->is.period_us;
}

/* Units of the bucket that is leaving; one that was never turned to has none. */
static uint64_t old_units(const struct rule *rule, const struct sliding_state *state,
                          uint64_t tick)
{
	uint64_t buckets = rule->is.buckets;

	if (tick < buckets || tick - buckets > state->tick)
		return 0;
	return state->counts[(tick - buckets) % (buckets + 1)];
}

/* Units of the buckets tick - S + 1 to tick.  Walks the ring back from its newest. */
static uint64_t units_in_full(const struct rule *rule,
                              const struct sliding_state *state, uint64_t tick)
{
	uint64_t last_slot = rule->is.buckets;
	uint64_t slot = state->tick % (last_slot + 1);
	uint64_t units = 0;

	for (uint64_t lag = tick - state->tick; lag < rule->is.buckets; lag++) {
		units += state->counts[slot];
		slot = slot > 0 ? slot - 1 : last_slot;
	}
	return units;
}

static uint64_t round_up(uint128 n, uint64_t d)
{
	return wide_div(n + d - 1, d);
}

static struct view view_at(const struct rule *rule, const struct sliding_state *state,
                           uint64_t now)
{
	uint64_t period = rule->is.period_us, buckets = rule->is.buckets;
	struct view view = { .tick = tick_of(rule, now) };

	if (view.tick < state->tick) { /* SLIDING-2 */
		view.tick = state->tick;
		now = round_up((uint128)view.tick * period, buckets);
	}
	view.rest = (view.tick + 1) * period - now * buckets;
	view.old = old_units(rule, state, view.tick);
	view.used = (uint128)units_in_full(rule, state, view.tick) * period +
	            (uint128)view.old * view.rest;
	return view;
}

static uint128 all_shares(const struct rule *rule)
{
	return (uint128)rule->is.limit * rule->is.period_us;
}

/* Whole units that are free.  None may be: the start of a bucket weighs the oldest one
 * more than the instants after it did, and a clock may step back to it. */
static uint64_t free_units(const struct rule *rule, const struct view *view)
{
	if (view->used >= all_shares(rule))
		return 0;
	return wide_div(all_shares(rule) - view->used, rule->is.period_us);
}

static uint64_t turn_after(const struct rule *rule, const struct view *view)
{
	return round_up(view->rest, rule->is.buckets);
}

/*
 * 0 if the cost fits.  Else until the oldest bucket has given back enough, or until the
 * next bucket begins: nothing can change in the asker's favour before.
 */
static uint64_t wait_for(const struct rule *rule, const struct view *view,
                         uint64_t cost)
{
	uint128 want = view->used + (uint128)cost * rule->is.period_us;
	uint128 leaving = (uint128)view->old * view->rest;
	uint128 excess;

	if (cost > rule->is.limit)
		return GALE_NEVER; /* RULE-5 */
	if (want <= all_shares(rule))
		return 0;
	excess = want - all_shares(rule);
	if (excess > leaving)
		return turn_after(rule, view);
	return round_up(excess, view->old * rule->is.buckets);
}

static struct gale_answer answer(const struct rule *rule, const struct view *view,
                                 uint64_t retry_us)
{
	return (struct gale_answer){
		.verdict = retry_us == 0 ? GALE_ALLOW : GALE_DENY,
		.limit = rule->is.limit,
		.remaining = free_units(rule, view),
		.reset_after_us = turn_after(rule, view) + rule->is.period_us,
		.retry_after_us = retry_us,
	};
}

/* Empties the buckets between the newest and tick, which nothing was counted in. */
static void turn_to(const struct rule *rule, struct sliding_state *state, uint64_t tick)
{
	uint64_t slots = rule->is.buckets + 1;
	uint64_t fresh = tick - state->tick < slots ? tick - state->tick : slots;

	for (uint64_t back = 0; back < fresh; back++)
		state->counts[(tick - back) % slots] = 0;
	state->tick = tick; /* SLIDING-2 */
}

struct gale_answer sliding_step(const struct rule *rule, struct sliding_state *state,
                                uint64_t now, uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	uint64_t wait = wait_for(rule, &view, cost);

	if (wait > 0)
		return answer(rule, &view, wait);
	turn_to(rule, state, view.tick);
	state->counts[view.tick % (rule->is.buckets + 1)] += cost; /* SLIDING-1 */
	view.used += (uint128)cost * rule->is.period_us;
	return answer(rule, &view, /* retry_us= */ 0);
}

struct gale_answer sliding_peek(const struct rule *rule,
                                const struct sliding_state *state, uint64_t now)
{
	struct view view = view_at(rule, state, now);

	return answer(rule, &view, wait_for(rule, &view, 1));
}

struct gale_outlook sliding_forecast(const struct rule *rule,
                                     const struct sliding_state *state, uint64_t now,
                                     uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	struct gale_answer at_once = answer(rule, &view, /* retry_us= */ 0);
	bool fresh = view.used == 0;

	return (struct gale_outlook){
		.spendable_now = at_once.remaining / cost,
		.next_after_us = fresh ? 0 : turn_after(rule, &view),
		.full_after_us = fresh ? 0 : at_once.reset_after_us,
	};
}

uint64_t sliding_expires(const struct rule *rule, const struct sliding_state *state)
{
	uint64_t period = rule->is.period_us, buckets = rule->is.buckets;

	if (state->counts[state->tick % (buckets + 1)] == 0)
		return 0; /* a fresh key: every allowed step counts in its bucket */
	return round_up((uint128)(state->tick + 1) * period, buckets) + period;
}

/* SLIDING-1 is not looked at: its limit may have been any. */
bool sliding_valid(const struct rule *rule, const struct sliding_state *state)
{
	if (state->tick > tick_of(rule, INSTANT_MAX_US))
		return false;
	for (uint64_t slot = 0; slot <= rule->is.buckets; slot++)
		if (state->counts[slot] > GALE_UNITS_MAX)
			return false;
	return true;
}

/* ---- Another period, or other buckets -------------------------------------------- */

static void add_at(const struct rule *rule, struct sliding_state *state, uint64_t at,
                   uint64_t units)
{
	uint64_t tick = tick_of(rule, at), lag = state->tick - tick;
	uint64_t *count = &state->counts[tick % (rule->is.buckets + 1)];

	if (lag > rule->is.buckets)
		return; /* it has left */
	*count = units < GALE_UNITS_MAX - *count ? *count + units : GALE_UNITS_MAX;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The last instant of a bucket. */
static uint64_t end_of(uint64_t tick, uint64_t period, uint64_t buckets)
{
	return round_up((uint128)(tick + 1) * period, buckets) - 1;
}

/* Calls that a bucket counts may have come at its last instant.  The newest stays the newest:
 * it is not empty, and the key expires with it. */
void sliding_convert(const struct rule *rule, struct sliding_state *state,
                     const struct sliding_state *former, uint64_t buckets,
                     uint64_t period, uint64_t now)
{
	uint64_t start = round_up((uint128)former->tick * period, buckets);
	uint64_t at = now > start ? now : start; /* SLIDING-2 */

	state->tick = tick_of(rule, earlier(end_of(former->tick, period, buckets), at));
	for (uint64_t lag = 0; lag <= buckets && lag <= former->tick; lag++) {
		uint64_t tick = former->tick - lag;

		add_at(rule, state, earlier(end_of(tick, period, buckets), at),
		       former->counts[tick % (buckets + 1)]);
	}
}

void sliding_lump(const struct rule *rule, struct sliding_state *state,
                  const struct sliding_state *former, uint64_t buckets, uint64_t now)
{
	state->tick = tick_of(rule, now);
	for (uint64_t slot = 0; slot <= buckets; slot++)
		add_at(rule, state, now, former->counts[slot]);
}
