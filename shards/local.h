/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * local.h -- what this node can answer by itself.
 *
 * Seats ask here first, and the actor serves those who wait by the same words.  Nothing
 * here blocks, allocates, locks or enters the kernel.
 *
 * Threads   Any, within a grace period or with a pin on the purse.
 */
#ifndef SHARDS_LOCAL_H
#define SHARDS_LOCAL_H

#include "shards/lender.h"
#include "shards/purse.h"

static inline uint64_t us_between(mono now, mono then)
{
	return then.ns > now.ns ? (then.ns - now.ns) / 1000 : 0;
}

static inline struct gale_answer local_allow(const struct lender *lender, uint64_t word,
                                             mono now)
{
	return (struct gale_answer){
		.verdict = GALE_ALLOW,
		.why = GALE_WHY_CREDIT,
		.limit = lender->rule.capacity,
		.remaining = credit_units(word),
		.reset_after_us = us_between(now, credit_dies(word)),
	};
}

static inline struct gale_answer
local_deny(const struct lender *lender, const struct purse *purse, mono now, mono until)
{
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_SPENT,
		.limit = lender->rule.capacity,
		.remaining = credit_units(load_relaxed(&purse->credit)),
		.reset_after_us = us_between(now, until),
		.retry_after_us = us_between(now, until),
	};
}

/* From credit, from places, or from memory; false if the store must be asked. */
static inline bool local_answer(const struct lender *lender, struct purse *purse,
                                uint32_t seat, mono now, uint64_t cost,
                                struct gale_answer *ret_answer)
{
	uint64_t word;
	mono until;

	if (lender->lending == LENDING_UNITS &&
	    purse_take(purse, seat, now, cost, &word)) {
		*ret_answer = local_allow(lender, word, now);
		return true;
	}
	if (lender->lending == LENDING_PLACES &&
	    purse_place(purse, now, cost, ret_answer))
		return true;
	if (!purse_refuses(purse, now, cost, &until))
		return false;
	*ret_answer = local_deny(lender, purse, now, until);
	return true;
}

#endif
