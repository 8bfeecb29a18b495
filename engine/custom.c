/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * custom.c -- a strategy of the user's, and what is believed of it.
 *
 *     state -> its words, copied -> strategy->step -> ruling -> within bounds? -> state
 *
 * This keeps a rule's promises for it: time that does not run backward, words that
 * are forgotten when it said so and not by chance, denials that change nothing, numbers
 * that stay small.  The strategy says what may pass.
 *
 * Invariants
 *
 *   CUSTOM-1  step sees an instant that is not before that of the last call allowed.
 *             (RULE-2)
 *   CUSTOM-2  From expires_us on it sees words that are all zero, whether a store has
 *             dropped them or not. (RULE-4)
 *   CUSTOM-3  It works on a copy, that is kept if it allowed the call. (RULE-1)
 *   CUSTOM-4  An answer out of bounds is none, and changes nothing. (L10, RULE-3)
 */
#include "engine/custom.h"

#include <string.h>

#include <gale/strategy.h>

/* One call of the user's step. */
struct trial {
	uint64_t now;
	uint64_t words[GALE_STRATEGY_WORDS_MAX];
	struct gale_ruling ruling;
};

static bool are_words(const struct rule *rule, const uint64_t *words)
{
	for (uint64_t i = 0; i < rule->is.strategy->words; i++)
		if (words[i] > GALE_UNITS_MAX)
			return false;
	return true;
}

static bool is_ruling(const struct rule *rule, const struct trial *trial)
{
	const struct gale_ruling *ruling = &trial->ruling;

	if (ruling->remaining > rule->is.limit ||
	    ruling->reset_after_us > rule->is.period_us)
		return false;
	if (ruling->verdict == GALE_ALLOW)
		return ruling->retry_after_us == 0 && are_words(rule, trial->words);
	return ruling->verdict == GALE_DENY &&
	       (ruling->retry_after_us <= GALE_SPAN_MAX_US ||
	        ruling->retry_after_us == GALE_NEVER);
}

/* False: it cannot be believed. CUSTOM-4 */
static bool try(const struct rule *rule, const struct custom_state *state, uint64_t now,
                uint64_t cost, struct trial *ret_trial)
{
	const struct gale_strategy *strategy = rule->is.strategy;

	*ret_trial =
	    (struct trial){ .now = now > state->last_us ? now : state->last_us };
	if (ret_trial->now < state->expires_us) /* CUSTOM-2 */
		memcpy(ret_trial->words, state->words,
		       strategy->words * sizeof(uint64_t));
	ret_trial->ruling =
	    strategy->step(strategy, &rule->is, ret_trial->words, ret_trial->now, cost);
	return is_ruling(rule, ret_trial);
}

static struct gale_answer broken(const struct rule *rule)
{
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_BROKEN,
		.limit = rule->is.limit,
	};
}

static struct gale_answer answer(const struct rule *rule,
                                 const struct gale_ruling *ruling)
{
	return (struct gale_answer){
		.verdict = ruling->verdict,
		.limit = rule->is.limit,
		.remaining = ruling->remaining,
		.reset_after_us = ruling->reset_after_us,
		.retry_after_us = ruling->retry_after_us,
	};
}

static void keep(const struct rule *rule, struct custom_state *state,
                 const struct trial *trial)
{
	state->last_us = trial->now; /* CUSTOM-1 */
	state->expires_us = trial->now + trial->ruling.reset_after_us;
	memcpy(state->words, trial->words, rule->is.strategy->words * sizeof(uint64_t));
}

struct gale_answer custom_step(const struct rule *rule, struct custom_state *state,
                               uint64_t now, uint64_t cost)
{
	struct trial trial;

	if (!try(rule, state, now, cost, &trial))
		return broken(rule);
	if (trial.ruling.verdict == GALE_ALLOW) /* CUSTOM-3 */
		keep(rule, state, &trial);
	return answer(rule, &trial.ruling);
}

/* A look: the answer that a call would get, but with what there is before it. */
struct gale_answer custom_peek(const struct rule *rule,
                               const struct custom_state *state, uint64_t now)
{
	struct trial look, call;
	struct gale_answer peek;

	if (!try(rule, state, now, /* cost= */ 0, &look) ||
	    !try(rule, state, now, /* cost= */ 1, &call))
		return broken(rule);
	peek = answer(rule, &call.ruling);
	peek.remaining = look.ruling.remaining;
	peek.reset_after_us = look.ruling.reset_after_us;
	return peek;
}

/* More is there when one more than there is would pass. */
struct gale_outlook custom_forecast(const struct rule *rule,
                                    const struct custom_state *state, uint64_t now,
                                    uint64_t cost)
{
	const struct gale_outlook none = { .spendable_now = OUTLOOK_BROKEN };
	struct gale_outlook outlook = { 0 };
	struct trial look, more;

	if (!try(rule, state, now, /* cost= */ 0, &look))
		return none;
	outlook.spendable_now = look.ruling.remaining / cost;
	if (look.ruling.remaining == rule->is.limit)
		return outlook;
	if (!try(rule, state, now, look.ruling.remaining + 1, &more))
		return none;
	outlook.next_after_us = more.ruling.retry_after_us;
	outlook.full_after_us = look.ruling.reset_after_us;
	return outlook;
}

uint64_t custom_expires(const struct rule *rule, const struct custom_state *state)
{
	(void)rule;
	return state->expires_us;
}

bool custom_valid(const struct rule *rule, const struct custom_state *state)
{
	uint64_t lasts_us = state->expires_us - state->last_us; /* or very long */

	return state->last_us <= INSTANT_MAX_US && lasts_us <= rule->is.period_us;
}
