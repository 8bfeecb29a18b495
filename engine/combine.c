/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * combine.c -- several answers as one.
 *
 * Invariants  COMBINE-1  Combining is a meet: idempotent, commutative, associative, and
 *                        an answer with everything at its best changes nothing.
 */
#include <gale/rule.h>

#include <stdbool.h>

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Does a decide rather than b? */
static bool binds(const struct gale_answer *a, const struct gale_answer *b)
{
	if (a->verdict != b->verdict)
		return a->verdict < b->verdict;
	if (a->retry_after_us != b->retry_after_us)
		return a->retry_after_us > b->retry_after_us;
	if (a->delay_ns != b->delay_ns)
		return a->delay_ns > b->delay_ns;
	return a->remaining < b->remaining;
}

static void meet(struct gale_answer *sum, const struct gale_answer *with)
{
	if (with->verdict < sum->verdict ||
	    (with->verdict == sum->verdict && with->why > sum->why))
		sum->why = with->why;
	if (with->verdict < sum->verdict)
		sum->verdict = with->verdict;
	sum->limit = lesser(sum->limit, with->limit);
	sum->remaining = lesser(sum->remaining, with->remaining);
	sum->reset_after_us = greater(sum->reset_after_us, with->reset_after_us);
	sum->retry_after_us = greater(sum->retry_after_us, with->retry_after_us);
	sum->delay_ns = greater(sum->delay_ns, with->delay_ns);
}

struct gale_answer gale_combine(const struct gale_answer *answers, size_t count,
                                size_t *ret_binding)
{
	struct gale_answer sum = {
		.verdict = GALE_ALLOW,
		.limit = GALE_UNITS_MAX,
		.remaining = GALE_UNITS_MAX,
	};
	size_t binding = 0;

	for (size_t i = 0; i < count; i++) {
		meet(&sum, &answers[i]);
		if (binds(&answers[i], &answers[binding]))
			binding = i;
	}
	if (ret_binding)
		*ret_binding = binding;
	return sum;
}
