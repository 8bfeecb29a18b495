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

struct gale_answer whole_of(const struct gale_answer *parts, size_t count,
                            size_t *ret_binding)
{
	struct gale_answer whole = gale_combine(parts, count, NULL);
	size_t binding = 0;

	for (size_t i = 1; i < count; i++)
		if (binds(&parts[i], &parts[binding])) /* WHOLE-2 */
			binding = i;
	whole.why = parts[binding].why;
	whole.limit = parts[binding].limit;
	whole.remaining = parts[binding].remaining;
	*ret_binding = binding;
	return whole;
}
