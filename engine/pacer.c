/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pacer.c -- a calendar of places, T = period/limit apart, and a bucket of burst.
 *
 * A call that fits the bucket goes at once.  One that does not takes the next place:
 *
 *        now            free
 *     ----|---[##][  ][##]|------------>
 *               ^    ^    ^
 *          booked  given  the next place
 *                  back
 *
 * The bucket leaks only while nothing is booked, so that burst is earned by idle time
 * and not by time that was already sold as places.  Places are exact multiples of T:
 * a rate that is no whole number of microseconds apart is still kept to the last call.
 *
 * Invariants  PACER-1  Places never overlap, so no more than limit units per period
 *                      leave once burst is used.
 *             PACER-2  0 <= water <= the largest burst that the key was asked under.
 *                      (L15)
 *             PACER-3  Each instant leaks at most once: only from free on, and free
 *                      becomes now when it has leaked. (RULE-2)
 *             PACER-4  Gaps are places that were booked and given back: they do not
 *                      overlap, and end at free or before.
 */
#include "engine/pacer.h"

#include <string.h>

#include "engine/check.h"

/* A place starts within the longest wait, and lasts as long at most. */
#define FREE_MAX_US (INSTANT_MAX_US + 2 * GALE_SPAN_MAX_US)

/* The key as it is at this instant. */
struct view {
	uint64_t now;
	uint64_t water;
	uint64_t water_part;
	struct gale_slot free;
};

static uint64_t water_den(const struct rule *rule)
{
	return rule->is.period_us * 1000;
}

static uint128 in_parts(const struct rule *rule, uint64_t water, uint64_t part)
{
	return (uint128)water * water_den(rule) + part;
}

/* The water that leaks from free until now, in parts. */
static uint128 leaked(const struct rule *rule, struct gale_slot free, uint64_t now)
{
	uint128 idle = (uint128)(now - free.us) * rule->is.limit - free.part;

	return idle * rule->is.allowance_permille;
}

static void leak(const struct rule *rule, struct view *view)
{
	uint128 water = in_parts(rule, view->water, view->water_part);
	uint128 lost = leaked(rule, view->free, view->now);
	uint128 rest = lost < water ? water - lost : 0; /* PACER-2 */

	view->water = wide_div(rest, water_den(rule));
	view->water_part = (uint64_t)(rest - (uint128)view->water * water_den(rule));
	view->free = slot_at(view->now); /* PACER-3 */
}

static struct view view_at(const struct rule *rule, const struct pacer_state *state,
                           uint64_t now)
{
	struct view view = {
		.now = now,
		.water = state->water,
		.water_part = state->water_part,
		.free = state->free,
	};

	if (!slot_before(slot_at(now), state->free))
		leak(rule, &view);
	return view;
}

/* Units of burst that could still go at once. */
static uint64_t dry(const struct rule *rule, const struct view *view)
{
	uint64_t wet = view->water + (view->water_part > 0);

	return wet < rule->is.burst ? rule->is.burst - wet : 0;
}

static uint64_t at_most_units(uint128 units)
{
	return units < GALE_UNITS_MAX ? (uint64_t)units : GALE_UNITS_MAX;
}

/* Unit calls that the queue would take when its next place is so far ahead: those that
 * leave within the longest wait, less those that are there, and one at its end. */
static uint64_t room(const struct rule *rule, struct gale_slot ahead)
{
	uint64_t period = rule->is.period_us;
	uint128 booked = (uint128)ahead.us * rule->is.limit + ahead.part;
	uint128 units = wide_quotient(booked, period);
	uint64_t rest = (uint64_t)(booked - units * period);

	if (slot_before(slot_at(rule->is.max_wait_us), ahead))
		return 0;
	return at_most_units(rule->queue - units - (rest > rule->queue_rest) + 1);
}

/* How long from now until nothing is booked and the bucket is empty. */
static uint64_t drained_after(const struct rule *rule, const struct view *view)
{
	uint64_t rate = rule->is.limit * rule->is.allowance_permille;
	struct gale_slot ahead =
	    slot_until(slot_at(view->now), view->free, rule->is.limit);
	uint128 booked = ((uint128)ahead.us * rule->is.limit + ahead.part) *
	                 rule->is.allowance_permille;

	booked += in_parts(rule, view->water, view->water_part);
	return wide_div(booked + rate - 1, rate);
}

static struct gale_answer answer(const struct rule *rule, const struct view *view)
{
	struct gale_slot ahead =
	    slot_until(slot_at(view->now), view->free, rule->is.limit);

	return (struct gale_answer){
		.verdict = GALE_ALLOW,
		.limit = rule->capacity,
		.remaining =
		    at_most_units((uint128)dry(rule, view) + room(rule, ahead)),
		.reset_after_us = drained_after(rule, view),
	};
}

static struct gale_answer denial(const struct rule *rule, const struct view *view,
                                 uint64_t retry_us)
{
	struct gale_answer denied = answer(rule, view);

	denied.verdict = GALE_DENY;
	denied.retry_after_us = retry_us;
	return denied;
}

static uint64_t nanoseconds(struct gale_slot wait, uint64_t den)
{
	uint128 part = (uint128)wait.part * 1000 + den - 1;

	return wait.us * 1000 + wide_div(part, den); /* up: never early */
}

static bool possible(const struct rule *rule, uint64_t cost)
{
	return (uint128)cost * rule->is.period_us <=
	       (uint128)GALE_SPAN_MAX_US * rule->is.limit;
}

static bool gap_is_empty(const struct pacer_gap *gap)
{
	return slot_equal(gap->from, gap->to);
}

static bool gap_fits(const struct pacer_gap *gap, struct gale_slot span, uint64_t now,
                     uint64_t den)
{
	if (gap_is_empty(gap) || slot_before(gap->from, slot_at(now)))
		return false;
	return !slot_before(gap->to, slot_add(gap->from, span, den));
}

/* The earliest gap that the span fits in; PACER_GAPS when there is none. */
static int gap_for(const struct rule *rule, const struct pacer_state *state,
                   struct gale_slot span, uint64_t now)
{
	int best = PACER_GAPS;

	for (int i = 0; i < PACER_GAPS; i++)
		if (gap_fits(&state->gaps[i], span, now, rule->is.limit) &&
		    (best == PACER_GAPS ||
		     slot_before(state->gaps[i].from, state->gaps[best].from)))
			best = i;
	return best;
}

static struct gale_slot place_at(const struct pacer_state *state,
                                 const struct view *view, int gap)
{
	return gap < PACER_GAPS ? state->gaps[gap].from : view->free;
}

static void clear_if_empty(struct pacer_gap *gap)
{
	if (gap_is_empty(gap))
		*gap = (struct pacer_gap){ 0 };
}

/* The place is taken from the gap it lies in, or else from the end of the queue. PACER-1 */
static void take(const struct rule *rule, struct pacer_state *state, struct view *view,
                 int gap, struct gale_slot span)
{
	if (gap < PACER_GAPS) {
		struct pacer_gap *found = &state->gaps[gap];

		found->from = slot_add(found->from, span, rule->is.limit);
		clear_if_empty(found); /* PACER-4 */
	} else {
		view->free = slot_add(view->free, span, rule->is.limit);
	}
	if (view->water < rule->is.burst) {
		view->water = rule->is.burst; /* PACER-2 */
		view->water_part = 0;
	}
}

static void keep(const struct rule *rule, struct pacer_state *state,
                 const struct view *view)
{
	state->period_us = rule->is.period_us;
	state->water = view->water;
	state->water_part = view->water_part;
	state->free = view->free;
}

/* Takes a place in the queue, if the wait for it is bearable. */
static struct gale_answer book(const struct rule *rule, struct pacer_state *state,
                               struct view *view, uint64_t cost)
{
	uint64_t den = rule->is.limit;
	struct gale_slot span = rule_span(rule, cost);
	int gap = gap_for(rule, state, span, view->now);
	struct gale_slot place = place_at(state, view, gap);
	struct gale_slot wait = slot_until(slot_at(view->now), place, den);
	struct gale_slot patience = slot_at(rule->is.max_wait_us);
	struct gale_answer booked;

	if (slot_before(patience, wait))
		return denial(rule, view, slot_ceil(slot_since(patience, wait, den)));
	take(rule, state, view, gap, span);
	keep(rule, state, view);
	booked = answer(rule, view);
	booked.delay_ns = nanoseconds(wait, den);
	booked.slot = place;
	return booked;
}

struct gale_answer pacer_step(const struct rule *rule, struct pacer_state *state,
                              uint64_t now, uint64_t cost)
{
	struct view view = view_at(rule, state, now);

	if (!possible(rule, cost))
		return denial(rule, &view, GALE_NEVER); /* RULE-5 */
	if (cost > dry(rule, &view))
		return book(rule, state, &view, cost);
	view.water += cost; /* PACER-2 */
	keep(rule, state, &view);
	return answer(rule, &view);
}

struct gale_answer pacer_peek(const struct rule *rule, const struct pacer_state *state,
                              uint64_t now)
{
	struct view view = view_at(rule, state, now);
	struct pacer_state scratch = *state;
	struct gale_answer taken = pacer_step(rule, &scratch, now, 1);
	struct gale_answer peeked = answer(rule, &view);

	peeked.verdict = taken.verdict;
	peeked.retry_after_us = taken.retry_after_us;
	peeked.delay_ns = taken.delay_ns;
	return peeked;
}

uint64_t pacer_dry(const struct rule *rule, const struct pacer_state *state,
                   uint64_t now)
{
	struct view view = view_at(rule, state, now);

	return dry(rule, &view);
}

/* How long, from idle, until one more whole unit of burst has leaked. */
static uint64_t next_unit_after(const struct rule *rule, const struct view *view)
{
	uint64_t rate = rule->is.limit * rule->is.allowance_permille;
	uint128 part = view->water_part > 0 ? view->water_part : water_den(rule);

	if (view->water == 0 && view->water_part == 0)
		return 0;
	return wide_div(part + rate - 1, rate);
}

/* How many calls of this cost the queue would take when its next place is so far ahead. */
static uint64_t calls_queued(const struct rule *rule, struct gale_slot ahead,
                             uint64_t cost)
{
	struct gale_slot patience = slot_at(rule->is.max_wait_us);
	struct gale_slot rest;
	uint128 each = (uint128)cost * rule->is.period_us;

	if (slot_before(patience, ahead))
		return 0;
	rest = slot_since(ahead, patience, rule->is.limit);
	return at_most_units(((uint128)rest.us * rule->is.limit + rest.part) / each +
	                     1);
}

struct gale_outlook pacer_forecast(const struct rule *rule,
                                   const struct pacer_state *state, uint64_t now,
                                   uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	struct gale_slot ahead = slot_until(slot_at(now), view.free, rule->is.limit);
	bool queued = slot_before(slot_at(now), view.free);
	uint128 calls = 0;

	if (possible(rule, cost))
		calls = (uint128)(dry(rule, &view) / cost) +
		        calls_queued(rule, ahead, cost);
	return (struct gale_outlook){
		.spendable_now = at_most_units(calls),
		.next_after_us =
		    queued ? slot_ceil(ahead) : next_unit_after(rule, &view),
		.full_after_us = drained_after(rule, &view),
	};
}

/* ---- Giving places back ---------------------------------------------------------- */

static bool overlaps_a_gap(const struct pacer_state *state,
                           const struct pacer_gap *place)
{
	for (int i = 0; i < PACER_GAPS; i++)
		if (slot_before(state->gaps[i].from, place->to) &&
		    slot_before(place->from, state->gaps[i].to))
			return true;
	return false;
}

static void forget_past_gaps(struct pacer_state *state, uint64_t now)
{
	for (int i = 0; i < PACER_GAPS; i++)
		if (!slot_before(slot_at(now), state->gaps[i].to))
			state->gaps[i] = (struct pacer_gap){ 0 };
}

/* The queue ends where it ended before; gaps that are now at its end are its end. */
static void give_back_last(struct pacer_state *state, struct gale_slot from,
                           uint64_t now)
{
	int i = 0;

	state->free = from;
	while (i < PACER_GAPS) {
		struct pacer_gap *gap = &state->gaps[i++];

		if (gap_is_empty(gap) || !slot_equal(gap->to, state->free) ||
		    slot_before(gap->from, slot_at(now)))
			continue;
		state->free = gap->from;
		*gap = (struct pacer_gap){ 0 };
		i = 0; /* another may end here */
	}
}

static struct gale_slot length(const struct pacer_gap *gap, uint64_t den)
{
	return slot_since(gap->from, gap->to, den);
}

/* Is a the one to lose of the two?  The shorter, and of equals the later. */
static bool worse(const struct pacer_gap *a, const struct pacer_gap *b, uint64_t den)
{
	struct gale_slot a_length = length(a, den), b_length = length(b, den);

	if (!slot_equal(a_length, b_length))
		return slot_before(a_length, b_length);
	return slot_before(b->from, a->from);
}

/* Empty gaps are the shortest, so the new one takes their place first. */
static void give_back_inner(struct pacer_state *state, const struct pacer_gap *place,
                            uint64_t den)
{
	struct pacer_gap *worst = &state->gaps[0];

	for (int i = 1; i < PACER_GAPS; i++)
		if (worse(&state->gaps[i], worst, den))
			worst = &state->gaps[i];
	if (worse(worst, place, den))
		*worst = *place; /* PACER-4 */
}

bool pacer_cancel(const struct rule *rule, struct pacer_state *state, uint64_t now,
                  uint64_t cost, struct gale_slot slot)
{
	struct pacer_gap place = { .from = slot };

	if (slot.part >= rule->is.limit || slot.us > FREE_MAX_US ||
	    !possible(rule, cost) || slot_before(slot, slot_at(now)))
		return false;
	place.to = slot_add(slot, rule_span(rule, cost), rule->is.limit);
	if (slot_before(state->free, place.to) || overlaps_a_gap(state, &place))
		return false;
	forget_past_gaps(state, now);
	if (slot_equal(place.to, state->free))
		give_back_last(state, slot, now);
	else
		give_back_inner(state, &place, rule->is.limit);
	return true;
}

/* ---- Keeping --------------------------------------------------------------------- */

uint64_t pacer_expires(const struct rule *rule, const struct pacer_state *state)
{
	struct view view = { .water = state->water,
		             .water_part = state->water_part,
		             .free = state->free };

	return drained_after(rule, &view); /* from the instant 0 */
}

static bool is_fresh(const struct pacer_state *state)
{
	static const struct pacer_state fresh;

	return memcmp(state, &fresh, sizeof(fresh)) == 0;
}

static bool gap_valid(const struct rule *rule, const struct pacer_state *state, int i)
{
	const struct pacer_gap *gap = &state->gaps[i];

	if (gap->from.part >= rule->is.limit || gap->to.part >= rule->is.limit)
		return false;
	if (gap_is_empty(gap))
		return gap->from.us == 0 && gap->from.part == 0;
	for (int j = 0; j < i; j++)
		if (slot_before(state->gaps[j].from, gap->to) &&
		    slot_before(gap->from, state->gaps[j].to))
			return false;
	return slot_before(gap->from, gap->to) && !slot_before(state->free, gap->to);
}

bool pacer_valid(const struct rule *rule, const struct pacer_state *state)
{
	if (state->water > GALE_UNITS_MAX || state->water_part >= water_den(rule))
		return false;
	if (state->period_us != rule->is.period_us && !is_fresh(state))
		return false;
	if (state->free.part >= rule->is.limit || state->free.us > FREE_MAX_US)
		return false;
	for (int i = 0; i < PACER_GAPS; i++)
		if (!gap_valid(rule, state, i)) /* PACER-4 */
			return false;
	return true;
}

/* ---- Another rate ---------------------------------------------------------------- */

static void forget_gaps(struct pacer_state *state)
{
	memset(state->gaps, 0, sizeof(state->gaps));
}

static struct gale_slot end_of_queue(const struct pacer_state *state)
{
	uint64_t us = slot_ceil(state->free);

	return slot_at(us < FREE_MAX_US ? us : FREE_MAX_US);
}

/* Rounded up: a queue that ends later, and more burst in use. */
bool pacer_convert(const struct rule *rule, struct pacer_state *state, uint64_t limit)
{
	uint64_t former = state->period_us * 1000;
	uint128 part;

	if (limit < 1 || limit > GALE_UNITS_MAX || state->period_us < 1 ||
	    state->period_us > GALE_PACE_PERIOD_MAX_US || state->free.part >= limit ||
	    state->free.us > FREE_MAX_US || state->water > GALE_UNITS_MAX ||
	    state->water_part >= former)
		return false;
	state->free = end_of_queue(state);
	part = ((uint128)state->water_part * water_den(rule) + former - 1) / former;
	if (part == water_den(rule)) {
		state->water += state->water < GALE_UNITS_MAX;
		part = 0;
	}
	state->water_part = (uint64_t)part;
	state->period_us = rule->is.period_us;
	forget_gaps(state);
	return true;
}

void pacer_exhaust(const struct rule *rule, struct pacer_state *state)
{
	state->free = end_of_queue(state);
	if (state->water < rule->is.burst)
		state->water = rule->is.burst;
	state->water_part = 0;
	state->period_us = rule->is.period_us;
	forget_gaps(state);
}
