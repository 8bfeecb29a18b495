/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.c -- the answers of parts become the answer of the whole.
 *
 * Threads   Pure: any.
 */
#include "engine/whole.h"

#include <stdbool.h>

/* The smaller verdict decides; of denials the first; of allows the one with the least left. */
static bool binds(const struct gale_answer *a, const struct gale_answer *b)
{
	if (a->verdict != b->verdict)
		return a->verdict < b->verdict;
	return a->verdict == GALE_ALLOW && a->remaining < b->remaining;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct gale_answer whole_of(const struct gale_answer *parts, size_t count,
                            size_t *ret_binding)
{
	const struct gale_answer *binding = &parts[0];
	uint64_t reset = binding->reset_after_us, retry = binding->retry_after_us;
	uint64_t delay = binding->delay_ns;

	for (const struct gale_answer *part = parts + 1; part < parts + count; part++) {
		if (binds(part, binding)) /* WHOLE-2 */
			binding = part;
		reset = greater(reset, part->reset_after_us);
		retry = greater(retry, part->retry_after_us);
		delay = greater(delay, part->delay_ns);
	}
	*ret_binding = (size_t)(binding - parts);
	return (struct gale_answer){
		.verdict = binding->verdict,
		.why = binding->why,
		.limit = binding->limit,
		.remaining = binding->remaining,
		.reset_after_us = reset,
		.retry_after_us = retry,
		.delay_ns = delay,
	};
}
