/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * whole.h -- one call that several limits decide: all or nothing.
 *
 *     each part:  ALLOW, its units are kept  |  DENY  |  PENDING
 *     the whole:  DENY if one part denies, else PENDING if one part waits, else ALLOW
 *
 * A whole that is denied gives back what its parts have kept.  Nothing that a part keeps counts
 * as used until the whole is allowed.
 *
 * Invariants
 *
 *   WHOLE-1  The whole is allowed only if every part is.
 *   WHOLE-2  The binding part of a denial is the first one that denies: limits are asked in the
 *            order of the parts.  Of an allow it is the part with the least left.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_WHOLE_H
#define ENGINE_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

#include <gale/rule.h>

/* The sum of its parts' answers so far.  Times to wait are those of the part where they are longest; the
 * rest is the binding part's. */
struct whole {
	size_t binding;
	enum gale_verdict verdict;
	enum gale_why why;
	uint64_t limit, remaining;
	uint64_t reset_after_us, retry_after_us, delay_ns;
};

/* Before its first part, which binds it. */
static inline struct whole whole_begin(void)
{
	return (struct whole){ .verdict = GALE_ALLOW,
		               .why = GALE_WHY_CREDIT,
		               .remaining = UINT64_MAX };
}

/* The smaller verdict decides; of denials the first; of allows the one with the least left. */
static inline bool whole_yields(const struct whole *whole,
                                const struct gale_answer *part)
{
	if (part->verdict != whole->verdict)
		return part->verdict < whole->verdict;
	return part->verdict == GALE_ALLOW && part->remaining < whole->remaining;
}

static inline uint64_t whole_longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The next part, of that number, has said this. */
static inline void whole_add(struct whole *whole, size_t number,
                             const struct gale_answer *part)
{
	if (whole_yields(whole, part)) { /* WHOLE-2 */
		whole->binding = number;
		whole->verdict = part->verdict;
		whole->why = part->why;
		whole->limit = part->limit;
		whole->remaining = part->remaining;
	}
	whole->reset_after_us =
	    whole_longer(whole->reset_after_us, part->reset_after_us);
	whole->retry_after_us =
	    whole_longer(whole->retry_after_us, part->retry_after_us);
	whole->delay_ns = whole_longer(whole->delay_ns, part->delay_ns);
}

static inline struct gale_answer whole_answer(const struct whole *whole)
{
	return (struct gale_answer){
		.verdict = whole->verdict,
		.why = whole->why,
		.limit = whole->limit,
		.remaining = whole->remaining,
		.reset_after_us = whole->reset_after_us,
		.retry_after_us = whole->retry_after_us,
		.delay_ns = whole->delay_ns,
	};
}

/* The answer to the whole, from the answers of its parts, of which there is at least one. */
struct gale_answer whole_of(const struct gale_answer *parts, size_t count,
                            size_t *ret_binding);

#endif
