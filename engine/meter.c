/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * meter.c -- units that accrue evenly, up to a burst.
 *
 * A bucket of burst units that gains limit units per period is full at the instant
 * tat, and was short of full by (tat - now)/T units before, where T = period/limit.
 * Taking cost units moves tat by cost * T.  So one exact instant is the whole state,
 * of a GCRA and of a token bucket alike:
 *
 *          now                 tat          now + full
 *     ------|-------------------|---------------|------->
 *            \__ taken * T ____/ \__ left * T _/
 *
 * A token bucket also remembers when it was last taken from, and goes on from there
 * when the clock steps back; GCRA then waits, since its tat has not come nearer.
 *
 * A rule with another burst reads the same state: more than its burst may be short of full
 * then.  For one with another rate the units that are short are worked out anew.
 *
 * Invariants  METER-1  After an allowed step, tat <= now + full: never more than burst.
 *             METER-2  tat never decreases, nor does last_us. (RULE-2)
 */
#include "engine/meter.h"

#include "engine/check.h"

static uint64_t now_of(const struct rule *rule, const struct meter_state *state,
                       uint64_t now)
{
	if (rule->is.kind == GALE_RULE_TOKEN_BUCKET && now < state->last_us)
		return state->last_us; /* METER-2 */
	return now;
}

/* How many units are left when tat is so far ahead of now. */
static uint64_t left(const struct rule *rule, struct gale_slot ahead)
{
	struct gale_slot room;

	if (slot_before(rule->full, ahead))
		return 0;
	room = slot_since(ahead, rule->full, rule->is.limit);
	return wide_div((uint128)room.us * rule->is.limit + room.part,
	                rule->is.period_us);
}

static struct gale_answer answer(const struct rule *rule, struct gale_slot ahead,
                                 uint64_t retry_us)
{
	return (struct gale_answer){
		.verdict = retry_us == 0 ? GALE_ALLOW : GALE_DENY,
		.limit = rule->is.burst,
		.remaining = left(rule, ahead),
		.reset_after_us = slot_ceil(ahead),
		.retry_after_us = retry_us,
	};
}

/* How long until cost units are there, with tat so far ahead; 0 when they are. */
static uint64_t wait_for(const struct rule *rule, struct gale_slot ahead, uint64_t cost)
{
	struct gale_slot after;

	if (cost > rule->is.burst)
		return GALE_NEVER; /* RULE-5 */
	after = slot_add(ahead, rule_span(rule, cost), rule->is.limit);
	return slot_ceil(slot_until(rule->full, after, rule->is.limit));
}

struct gale_answer meter_step(const struct rule *rule, struct meter_state *state,
                              uint64_t now, uint64_t cost)
{
	uint64_t at = now_of(rule, state, now);
	struct gale_slot ahead = slot_until(slot_at(at), state->tat, rule->is.limit);
	uint64_t wait = wait_for(rule, ahead, cost);

	if (wait > 0)
		return answer(rule, ahead, wait);
	ahead = slot_add(ahead, rule_span(rule, cost), rule->is.limit); /* METER-1 */
	state->tat = slot_add(slot_at(at), ahead, rule->is.limit);
	if (rule->is.kind == GALE_RULE_TOKEN_BUCKET)
		state->last_us = at;
	state->period_us = rule->is.period_us;
	return answer(rule, ahead, /* retry_us= */ 0);
}

struct gale_answer meter_peek(const struct rule *rule, const struct meter_state *state,
                              uint64_t now)
{
	uint64_t at = now_of(rule, state, now);
	struct gale_slot ahead = slot_until(slot_at(at), state->tat, rule->is.limit);

	return answer(rule, ahead, wait_for(rule, ahead, 1));
}

struct gale_outlook meter_forecast(const struct rule *rule,
                                   const struct meter_state *state, uint64_t now,
                                   uint64_t cost)
{
	uint64_t at = now_of(rule, state, now);
	struct gale_slot ahead = slot_until(slot_at(at), state->tat, rule->is.limit);
	uint64_t have = left(rule, ahead);
	uint64_t full = slot_ceil(ahead);

	return (struct gale_outlook){
		.spendable_now = have / cost,
		.next_after_us = full == 0 ? 0 : wait_for(rule, ahead, have + 1),
		.full_after_us = full,
	};
}

uint64_t meter_expires(const struct rule *rule, const struct meter_state *state)
{
	(void)rule;
	return slot_ceil(state->tat);
}

/* An instant, and then the longest span. */
static bool is_ahead_at_most_a_span(uint64_t from_us, struct gale_slot tat)
{
	return slot_ceil(tat) <= from_us + GALE_SPAN_MAX_US;
}

bool meter_valid(const struct rule *rule, const struct meter_state *state)
{
	if (state->tat.part >= rule->is.limit ||
	    !is_ahead_at_most_a_span(INSTANT_MAX_US, state->tat))
		return false;
	if (state->period_us != rule->is.period_us &&
	    (state->period_us | state->tat.us | state->tat.part | state->last_us) != 0)
		return false;
	if (rule->is.kind == GALE_RULE_GCRA)
		return state->last_us == 0;
	return state->last_us <= INSTANT_MAX_US &&
	       is_ahead_at_most_a_span(state->last_us, state->tat);
}

/* ---- Another rate ---------------------------------------------------------------- */

static struct gale_slot no_more_than_a_span(struct gale_slot ahead)
{
	return ahead.us < GALE_SPAN_MAX_US ? ahead : slot_at(GALE_SPAN_MAX_US);
}

/* How long so many units take here, and rest/former of one more; rounded up. */
static struct gale_slot span_of(const struct rule *rule, uint64_t units, uint128 rest,
                                uint64_t former)
{
	uint128 parts = (rest * rule->is.period_us + former - 1) / former;

	parts += (uint128)units * rule->is.period_us;
	if (parts / rule->is.limit >= GALE_SPAN_MAX_US)
		return slot_at(GALE_SPAN_MAX_US);
	return (struct gale_slot){ wide_div(parts, rule->is.limit),
		                   (uint64_t)(parts % rule->is.limit) };
}

/* As far ahead of that instant, in this rule's parts. */
static void put_ahead(const struct rule *rule, struct meter_state *state, uint64_t at,
                      struct gale_slot ahead)
{
	state->tat = slot_add(slot_at(at), ahead, rule->is.limit);
	state->period_us = rule->is.period_us;
	if (rule->is.kind == GALE_RULE_TOKEN_BUCKET)
		state->last_us = at;
}

bool meter_convert(const struct rule *rule, struct meter_state *state, uint64_t limit,
                   uint64_t now)
{
	uint64_t at = now_of(rule, state, now), period = state->period_us;
	struct gale_slot ahead;
	uint128 parts, units;

	if (limit < 1 || limit > GALE_UNITS_MAX || period < 1 ||
	    period > GALE_SPAN_MAX_US || state->tat.part >= limit ||
	    state->last_us > INSTANT_MAX_US)
		return false;
	ahead = no_more_than_a_span(slot_until(slot_at(at), state->tat, limit));
	parts = (uint128)ahead.us * limit + ahead.part;
	units = parts / period;
	if (units > GALE_UNITS_MAX)
		units = GALE_UNITS_MAX;
	ahead = span_of(rule, (uint64_t)units, parts % period, period);
	put_ahead(rule, state, at, ahead);
	return true;
}

void meter_drain(const struct rule *rule, struct meter_state *state, uint64_t now)
{
	put_ahead(rule, state, now_of(rule, state, now), rule->full);
}
