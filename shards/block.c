/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * block.c -- which place is next.
 *
 * Threads   next: any, within a grace period.  The shard's actor makes, closes and frees a
 *           block; else it is constant.
 */
#include "shards/block.h"

/* How long after the first a place is: rounded up, so that no call leaves early. */
static uint64_t offset_ns(const struct block *block, uint64_t place)
{
	const struct gale_rule *is = &block->rule.is;
	uint128 parts = (uint128)place * is->period_us * 1000;

	return wide_div(parts + is->limit - 1, is->limit);
}

/* The first place that has not passed. */
static uint64_t first_from(const struct block *block, mono now)
{
	const struct gale_rule *is = &block->rule.is;
	uint128 place;

	if (now.ns <= block->first.ns)
		return 0;
	place = (uint128)(now.ns - block->first.ns) * is->limit;
	place = (place + is->period_us * (uint128)1000 - 1) /
	        (is->period_us * (uint128)1000);
	return place < block->count ? (uint64_t)place : block->count;
}

static uint64_t delay_ns(const struct block *block, uint64_t place, mono now)
{
	uint64_t at = block->first.ns + offset_ns(block, place);

	return at > now.ns ? at - now.ns : 0;
}

static struct gale_answer denied(const struct block *block, uint64_t too_long_ns)
{
	return (struct gale_answer){
		.verdict = GALE_DENY,
		.why = GALE_WHY_SPENT,
		.limit = block->rule.capacity,
		.retry_after_us = (too_long_ns + 999) / 1000,
	};
}

static struct gale_answer placed(const struct block *block, uint64_t place,
                                 uint64_t cost, uint64_t delay)
{
	const struct rule *rule = &block->rule;

	return (struct gale_answer){
		.verdict = GALE_ALLOW,
		.why = GALE_WHY_CREDIT,
		.limit = rule->capacity,
		.remaining = block->count - place - cost + block->left,
		.reset_after_us = delay / 1000,
		.delay_ns = delay,
		.slot = slot_add(block->slot,
		                 slot_span(place, rule->is.period_us, rule->is.limit),
		                 rule->is.limit),
	};
}

bool block_take(struct block *block, mono now, uint64_t cost,
                struct gale_answer *ret_answer)
{
	uint64_t patience_ns = block->rule.is.max_wait_us * 1000;
	uint64_t earliest = first_from(block, now);
	uint64_t next = load_relaxed(&block->next), place, delay;

	do {
		place = next > earliest ? next : earliest; /* BLOCK-1 */
		if (place >= block->count || cost > block->count - place)
			return false;
		delay = delay_ns(block, place, now);
		if (delay > patience_ns) {
			*ret_answer = denied(block, delay - patience_ns);
			return true;
		}
	} while (!swap_if_relaxed(&block->next, &next, place + cost));
	*ret_answer = placed(block, place, cost, delay);
	return true;
}

static uint64_t left_from(const struct block *block, uint64_t next, mono now)
{
	uint64_t earliest = first_from(block, now);
	uint64_t place = next > earliest ? next : earliest;

	return place < block->count ? block->count - place : 0;
}

uint64_t block_left(const struct block *block, mono now)
{
	return left_from(block, load_relaxed(&block->next), now);
}

uint64_t block_close(struct block *block, mono now)
{
	uint64_t next = swap_relaxed(&block->next, block->count); /* BLOCK-2 */

	return left_from(block, next, now);
}
