/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * log.c -- the instants of admissions, for as long as they count.
 *
 * An entry counts while it is younger than the window.  Admissions of the same
 * microsecond share an entry, so there are never more entries than limit.
 *
 * Invariants  LOG-1  Entries ascend strictly in time.  Those that count add up to at
 *                    most the largest limit that the key was asked under. (L15)
 *             LOG-2  An instant before the newest entry is taken as its instant.
 *                    (RULE-2)
 */
#include "engine/log.h"

#include <string.h>

#include "engine/check.h"

/* The key as it is at this instant. */
struct view {
	uint64_t now;
	uint64_t first; /* of the entries that count */
	uint64_t used;  /* units in them */
};

static struct view view_at(const struct rule *rule, const struct log_state *state,
                           uint64_t now)
{
	struct view view = { .now = now };

	if (state->count > 0 && now < state->entries[state->count - 1].at_us)
		view.now = state->entries[state->count - 1].at_us; /* LOG-2 */
	view.first = state->count;
	while (view.first > 0) {
		const struct log_entry *entry = &state->entries[view.first - 1];

		if (entry->at_us + rule->is.period_us <= view.now)
			break;
		view.used += entry->units;
		view.first--;
	}
	return view;
}

/* How long until an entry no longer counts. */
static uint64_t wait_out(const struct rule *rule, uint64_t now, uint64_t at_us)
{
	return at_us + rule->is.period_us - now;
}

/* 0 if the cost fits; else until the entry leaves whose units make room for it. */
static uint64_t wait_for(const struct rule *rule, const struct log_state *state,
                         const struct view *view, uint64_t cost)
{
	uint64_t i = view->first, leaving = 0;

	if (cost > rule->is.limit)
		return GALE_NEVER; /* RULE-5 */
	if (view->used + cost <= rule->is.limit)
		return 0;
	for (;; i++) {
		leaving += state->entries[i].units;
		if (view->used - leaving + cost <= rule->is.limit)
			return wait_out(rule, view->now, state->entries[i].at_us);
	}
}

static uint64_t left(const struct rule *rule, const struct view *view)
{
	return view->used < rule->is.limit ? rule->is.limit - view->used : 0;
}

static struct gale_answer answer(const struct rule *rule, const struct log_state *state,
                                 const struct view *view, uint64_t retry_us)
{
	uint64_t oldest =
	    view->first < state->count ? state->entries[view->first].at_us : view->now;

	return (struct gale_answer){
		.verdict = retry_us == 0 ? GALE_ALLOW : GALE_DENY,
		.limit = rule->is.limit,
		.remaining = left(rule, view),
		.reset_after_us = wait_out(rule, view->now, oldest),
		.retry_after_us = retry_us,
	};
}

static void append(struct log_state *state, uint64_t now, uint64_t cost)
{
	if (state->count > 0 && state->entries[state->count - 1].at_us == now)
		state->entries[state->count - 1].units += cost;
	else
		state->entries[state->count++] = (struct log_entry){ now, cost };
}

/* Drops the entries that no longer count; the newest cost then joins the rest. */
static void record(struct log_state *state, struct view *view, uint64_t cost)
{
	state->count -= view->first;
	memmove(state->entries, state->entries + view->first,
	        state->count * sizeof(state->entries[0]));
	view->first = 0;
	append(state, view->now, cost);
	view->used += cost; /* LOG-1 */
}

struct gale_answer log_step(const struct rule *rule, struct log_state *state,
                            uint64_t now, uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	uint64_t wait = wait_for(rule, state, &view, cost);

	if (wait == 0)
		record(state, &view, cost);
	return answer(rule, state, &view, wait);
}

struct gale_answer log_peek(const struct rule *rule, const struct log_state *state,
                            uint64_t now)
{
	struct view view = view_at(rule, state, now);
	struct gale_answer peeked =
	    answer(rule, state, &view, wait_for(rule, state, &view, 1));

	if (view.first == state->count)
		peeked.reset_after_us = 0; /* nothing to wait for */
	return peeked;
}

struct gale_outlook log_forecast(const struct rule *rule, const struct log_state *state,
                                 uint64_t now, uint64_t cost)
{
	struct view view = view_at(rule, state, now);
	struct gale_outlook forecast = {
		.spendable_now = left(rule, &view) / cost,
	};

	if (view.first == state->count)
		return forecast;
	forecast.next_after_us =
	    wait_out(rule, view.now, state->entries[view.first].at_us);
	forecast.full_after_us =
	    wait_out(rule, view.now, state->entries[state->count - 1].at_us);
	return forecast;
}

uint64_t log_expires(const struct rule *rule, const struct log_state *state)
{
	if (state->count == 0)
		return 0;
	return state->entries[state->count - 1].at_us + rule->is.period_us;
}

static bool entry_valid(const struct log_state *state, uint64_t i)
{
	const struct log_entry *entry = &state->entries[i];

	if (entry->at_us > INSTANT_MAX_US)
		return false;
	if (entry->units < 1 || entry->units > GALE_LOG_LIMIT_MAX)
		return false;
	return i == 0 || entry[-1].at_us < entry->at_us;
}

bool log_valid(const struct log_state *state)
{
	for (uint64_t i = 0; i < state->count; i++)
		if (!entry_valid(state, i)) /* LOG-1 */
			return false;
	return true;
}
