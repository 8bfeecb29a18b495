/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * strategy.h -- a rule of your own.
 *
 *	static const struct gale_strategy nightly = {
 *		.name = "nightly/1", .words = 2, .step = nightly_step };
 *
 *	config.rule = gale_custom(&nightly, 100, GALE_DAYS(1));
 *
 * A store keeps a few words (integers) for each key.  step gets the words and a call,
 * decides whether the call may pass, and changes the words.  The rule then works over
 * every store, in modes GALE_STRICT and GALE_CACHED_DENY; it cannot be leased.  A server
 * only keeps the words.  gale reads them, runs step in the node, and writes the new words
 * if no other call has changed them meanwhile.  That takes two round trips.  After 64
 * failed tries the answer is GALE_WHY_BUSY (counted in gale_counts.contended).
 *
 * Step      step must be pure: for the same arguments it returns the same ruling, on each
 *           node.  It must not block, allocate, throw, longjmp or call gale.
 * Threads   Your threads (in an ask) and gale's threads call step, several at once, and
 *           with locks held.  gale may call step several times for one ask.  To look at a
 *           key, gale calls step with cost 0.
 * Memory    The strategy and its name must not change until every runtime that uses them
 *           has been closed.
 * Limits    If a field of a ruling is outside the range that is given below, the call is
 *           denied (GALE_WHY_BROKEN), and no word changes.  gale checks nothing else:
 *           whether the limit is kept depends on step alone.
 */
#ifndef GALE_STRATEGY_H
#define GALE_STRATEGY_H

#include <gale/rule.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GALE_STRATEGY_WORDS_MAX 16
#define GALE_STRATEGY_PARAMETERS 8
#define GALE_STRATEGY_NAME_MAX 64

/* The decision of step about one call. */
struct gale_ruling {
	enum gale_verdict verdict; /* GALE_ALLOW, or GALE_DENY: then no word changes */
	uint64_t remaining; /* units that would be allowed now, after this call; at most
	                       rule->limit */
	uint64_t retry_after_us; /* of a denial: the time until the call may pass, at
	                            most GALE_SPAN_MAX_US; 0: not known; or GALE_NEVER */
	uint64_t reset_after_us; /* the time after which all words may be 0 again, so
	                            that the store may forget them; at most
	                            rule->period_us */
};

struct gale_strategy {
	/* If you change the meaning of the words, change the name, too.  gale does not read
	 * words that were written with another name, number of words, parameter, limit or
	 * period: the ask is GALE_WHY_CHANGED. */
	const char *name;
	uint64_t words; /* of a key: 1 to GALE_STRATEGY_WORDS_MAX, each below 2^53 */
	uint64_t parameters[GALE_STRATEGY_PARAMETERS]; /* yours, below 2^53 */

	/*
	 * The words of a new key are all 0.  now_us is the store's time; it is never
	 * before the time of the key's last call that was allowed.  cost is at least 1
	 * for a call.  With cost 0, step takes nothing, and only remaining and
	 * reset_after_us count.  If a cost can never pass, deny it with GALE_NEVER.  If
	 * you deny a cost, deny all higher costs, too, until retry_after_us has passed.
	 */
	struct gale_ruling (*step)(const struct gale_strategy *self,
	                           const struct gale_rule *rule, uint64_t *words,
	                           uint64_t now_us, uint64_t cost);
};

/* limit: how many calls of cost 1 an unused key allows.  period_us: the longest
 * reset_after_us. */
GALE_API struct gale_rule gale_custom(const struct gale_strategy *strategy,
                                      uint64_t limit, uint64_t period_us);

#ifdef __cplusplus
}
#endif
#endif
