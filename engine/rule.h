/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * rule.h -- every strategy behind one set of pure functions.
 *
 * A rule is compiled once from what the user configured.  The state of a key under it
 * is an array of words, each below 2^53; all zero is the state of a key never seen.
 * Each function reads only its arguments, and rule_step and rule_cancel change only
 * the words they are given: no clock, no memory, no thread.
 *
 *                     now, cost
 *                         |
 *       words  ---->  rule_step  ---->  answer
 *         ^               |
 *         '---- changed --'   (only when allowed)
 *
 * Invariants
 *
 *   RULE-1  A denial changes nothing.
 *   RULE-2  Time never runs backward for a key: now = max(now, what the words
 *           remember). Windows move only forward, compared with <=, never by equality.
 *           (L9)
 *   RULE-3  Every word is below 2^53, and so is every number in an answer, but
 *           GALE_NEVER and delay_ns, which is at most 1000 times a wait of 2^50. (L10)
 *   RULE-4  From rule_expires on, the words answer like all zero words: forgetting them
 *           then, and not before, changes no decision.  (Beyond INSTANT_MAX_US, where
 *           time stands still, nothing expires.) (L8)
 *   RULE-5  A cost that can never pass is denied with GALE_NEVER. (L7)
 *   RULE-6  Words that steps under one limit and burst have led to are words under every
 *        other: what was spent stays spent.  Words under another rate or period are
 *        converted, and never to the asker's favour. (L15)
 *
 * Threads   All functions may run anywhere, at once, on different words.
 * Limits    now beyond INSTANT_MAX_US is taken as INSTANT_MAX_US.
 *           A cost of 0 or above GALE_UNITS_MAX is for the caller to refuse.
 */
#ifndef ENGINE_RULE_H
#define ENGINE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/errors.h>
#include <gale/rule.h>

#include "engine/slot.h"

/* A rule, checked, with what can be worked out ahead. */
struct rule {
	struct gale_rule is;   /* as configured */
	struct gale_slot unit; /* period / limit: one unit's time */
	struct gale_slot full; /* burst units' time */
	uint64_t capacity;     /* what a fresh key allows at once: an answer's limit */
	uint64_t
	    fingerprint;     /* how the words are to be read, besides by their number */
	uint128 queue;       /* pacer: whole units that leave within max_wait ... */
	uint64_t queue_rest; /* ... and the rest, in 1/period units */
	uint64_t words;      /* of a fresh state; only a log's state grows */
	bool restarts; /* a key that lives under a rule of another kind begins anew */
};

/* The time of so many units. */
static inline struct gale_slot rule_span(const struct rule *rule, uint64_t cost)
{
	if (cost == 1)
		return rule->unit; /* by far the usual cost, and no division */
	return slot_span(cost, rule->is.period_us, rule->is.limit);
}

enum gale_err rule_compile(const struct gale_rule *config, struct rule *ret_rule);

/* How long a window of the rule can be, and how long a meter's units are counted. */
uint64_t rule_window_us(const struct rule *rule);

/* How many words a fresh state of such a rule has. */
uint64_t rule_fresh_words(const struct gale_rule *config);

/* How many words this state has, and how many it may have after one more step. */
size_t rule_words(const struct rule *rule, const uint64_t *words);
size_t rule_words_after_step(const struct rule *rule, const uint64_t *words);

/* words has room for rule_words_after_step.  An answer of a strategy of the user's may be
 * GALE_WHY_BROKEN, and an outlook OUTLOOK_BROKEN: that is none, and nothing has changed. */
struct gale_answer rule_step(const struct rule *rule, uint64_t *words, uint64_t now_us,
                             uint64_t cost);
/* What rule_step would answer to a cost of 1, but with what remains before it. */
struct gale_answer rule_peek(const struct rule *rule, const uint64_t *words,
                             uint64_t now_us);
struct gale_outlook rule_forecast(const struct rule *rule, const uint64_t *words,
                                  uint64_t now_us, uint64_t cost);
#define OUTLOOK_BROKEN GALE_NEVER /* so many are spendable */

/* Gives a pacer's booked slot back; false if it is past or was never booked. */
bool rule_cancel(const struct rule *rule, uint64_t *words, uint64_t now_us,
                 uint64_t cost, struct gale_slot slot);

/* The words of a key as another rule has left them. */
struct rule_former {
	enum gale_rule_kind kind;
	uint64_t fingerprint;
	bool is_first; /* of the first layout of values, in which it was another one */
	const uint64_t *words;
	size_t count;
};

/* Are these words read as they are?  Those of another kind, rate, period or calendar are not. */
bool rule_reads(const struct rule *rule, const struct rule_former *former);

enum rule_conversion {
	RULE_CONVERTED,
	RULE_OTHER,   /* of another kind, or a strategy's: they mean nothing here */
	RULE_INVALID, /* they are no such words */
};

/*
 * Reads the former words under this rule (RULE-6).  words has room for rule->words, and
 * for a log as long as the former one.  State that is not known counts against the asker: a
 * meter of the first layout whose parameters were others is empty.
 */
enum rule_conversion rule_convert(const struct rule *rule,
                                  const struct rule_former *former, uint64_t now_us,
                                  uint64_t *words);

/* The fingerprint that the first layout had, of all parameters. */
uint64_t rule_first_fingerprint(const struct gale_rule *is);
/* The calendar of a quota's fingerprint; false if it has none. */
bool rule_calendar_of(uint64_t fingerprint, struct gale_rule *ret_quota);

/* The instant from which the words may be forgotten (RULE-4). */
uint64_t rule_expires(const struct rule *rule, const uint64_t *words);

/* Could these words have come from steps of this rule?  Checks RULE-3 and what each
 * strategy promises of its state; count is how many words there are to look at. */
bool rule_valid(const struct rule *rule, const uint64_t *words, size_t count);

#endif
