/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * window.c -- a count of what was used since the window began.
 *
 * Fixed windows, quotas and token budgets differ in two places only: where a window
 * begins (period_of), and what may still pass (wait_for).
 *
 * Invariants  WINDOW-1  used <= the largest limit that the key was asked under; a token
 *                       budget's may exceed it by its last debit. (L15)
 *             WINDOW-2  start_us never decreases: an instant before it is taken as it.
 *                       (RULE-2)
 */
#include "engine/window.h"

#include "engine/calendar.h"
#include "engine/check.h"

static struct period period_of(const struct rule *rule, uint64_t now)
{
	uint64_t start;

	if (rule->is.kind == GALE_RULE_QUOTA)
		return quota_period(&rule->is, now);
	start = now - now % rule->is.period_us;
	return (struct period){ .start_us = start,
		                .end_us = start + rule->is.period_us };
}

/* The key as it is at this instant. */
struct view {
	uint64_t start_us;
	uint64_t wait_us; /* until the window turns */
	uint64_t used;
};

static struct view view_at(const struct rule *rule, const struct window_state *state,
                           uint64_t now)
{
	struct period period = period_of(rule, now);

	if (period.start_us < state->start_us) { /* WINDOW-2 */
		now = state->start_us;
		period = period_of(rule, now);
	}
	return (struct view){
		.start_us = period.start_us,
		.wait_us = period.end_us - now,
		.used = period.start_us == state->start_us ? state->used : 0,
	};
}

static uint64_t left(const struct rule *rule, uint64_t used)
{
	return used < rule->is.limit ? rule->is.limit - used : 0;
}

static bool is_budget(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_TOKEN_BUDGET;
}

/* A budget's debit of any size passes while something is left. */
static bool possible(const struct rule *rule, uint64_t cost)
{
	return is_budget(rule) || cost <= rule->is.limit;
}

static struct gale_answer answer(const struct rule *rule, const struct view *view,
                                 uint64_t retry_us)
{
	return (struct gale_answer){
		.verdict = retry_us == 0 ? GALE_ALLOW : GALE_DENY,
		.limit = rule->is.limit,
		.remaining = left(rule, view->used),
		.reset_after_us = view->wait_us,
		.retry_after_us = retry_us,
	};
}

/* 0 if the cost fits; else until the window turns, or for ever. */
static uint64_t wait_for(const struct rule *rule, const struct view *view,
                         uint64_t cost)
{
	uint64_t rest = left(rule, view->used);

	if (is_budget(rule) ? rest > 0 : cost <= rest)
		return 0;
	return possible(rule, cost) ? view->wait_us : GALE_NEVER; /* RULE-5 */
}

static uint64_t used_after(uint64_t used, uint64_t cost)
{
	uint64_t sum = used + cost;

	return sum < GALE_UNITS_MAX ? sum : GALE_UNITS_MAX; /* RULE-3 */
}

struct gale_answer window_step(const struct rule *rule, struct window_state *state,
                               uint64_t now, uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	uint64_t wait = wait_for(rule, &view, cost);

	if (wait > 0)
		return answer(rule, &view, wait);
	view.used = used_after(view.used, cost); /* WINDOW-1 */
	*state = (struct window_state){ view.start_us, view.used };
	return answer(rule, &view, /* retry_us= */ 0);
}

struct gale_answer window_peek(const struct rule *rule,
                               const struct window_state *state, uint64_t now)
{
	struct view view = view_at(rule, state, now);

	return answer(rule, &view, wait_for(rule, &view, 1));
}

struct gale_outlook window_forecast(const struct rule *rule,
                                    const struct window_state *state, uint64_t now,
                                    uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	uint64_t rest = left(rule, view.used);
	uint64_t wait = view.used > 0 ? view.wait_us : 0;

	return (struct gale_outlook){
		.spendable_now = rest / cost + (is_budget(rule) && rest % cost != 0),
		.next_after_us = wait,
		.full_after_us = wait,
	};
}

uint64_t window_start(const struct rule *rule, const struct window_state *state,
                      uint64_t now)
{
	return view_at(rule, state, now).start_us;
}

/* Where a window of the other rule ends that starts so.  Of the first layout only the start is
 * known: one of ours, or one that goes on. */
static uint64_t former_end(const struct rule *rule, uint64_t fingerprint, bool is_first,
                           uint64_t start, uint64_t now)
{
	struct gale_rule quota;

	if (is_first && period_of(rule, start).start_us == start)
		return period_of(rule, start).end_us;
	if (is_first)
		return now + 1;
	return rule_calendar_of(fingerprint, &quota)
	           ? quota_period(&quota, start).end_us
	           : start + fingerprint;
}

/* Units that were used of a window that reaches into ours may have been used in ours: they count.
 * Those used before it, in our window, are not known any more. */
void window_convert(const struct rule *rule, struct window_state *state,
                    uint64_t fingerprint, bool is_first, uint64_t now)
{
	uint64_t at = now > state->start_us ? now : state->start_us; /* WINDOW-2 */
	uint64_t start = period_of(rule, at).start_us;

	if (former_end(rule, fingerprint, is_first, state->start_us, at) <= start)
		state->used = 0;
	state->start_us = start;
}

uint64_t window_expires(const struct rule *rule, const struct window_state *state)
{
	if (state->used == 0)
		return state->start_us; /* all was given back, or it is fresh */
	return period_of(rule, state->start_us).end_us;
}

bool window_valid(const struct rule *rule, const struct window_state *state)
{
	if (state->start_us > INSTANT_MAX_US)
		return false;
	if (period_of(rule, state->start_us).start_us != state->start_us)
		return state->used == 0 && state->start_us == 0;
	return state->used <=
	       GALE_UNITS_MAX; /* WINDOW-1: its limit may have been any */
}
