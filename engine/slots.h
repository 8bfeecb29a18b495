/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * slots.h -- how many calls are in flight, and how many may be, in one word.
 *
 *     63          48 47   44 43              22 21               0
 *     | generation  |  by   |      most        |    in flight     |
 *
 * A slot is the right to have one call in flight.  most is the ceiling in force, the least of
 * several; by says which of them it is, so a refusal knows its reason from the same word.
 * generation numbers the shares that a fleet gives this node: a reader of the word has what
 * a report needs, and all of it at one instant.
 *
 *     the coordinator   slots_applied: generation, by, most          in flight stays
 *     any call          slots_taken, slots_given: in flight          the rest stays
 *
 * Invariants
 *
 *   SLOTS-1  What is taken fits: after it in flight is at most most.  Only a smaller most
 *            leaves more in flight than that.
 *   SLOTS-2  In flight is what was taken and not given: a give of more than is in flight is
 *            refused, and changes nothing.
 *   SLOTS-3  A class sees a part of most, but at least one slot if there is any; so does a
 *            call that takes more than one.
 *   SLOTS-4  A word that is closed admits nothing any more, whatever is applied to it.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_SLOTS_H
#define ENGINE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#define SLOTS_BITS 22
#define SLOTS_MOST ((UINT32_C(1) << SLOTS_BITS) - 1)
#define SLOTS_BY_SHIFT (2 * SLOTS_BITS)
#define SLOTS_GENERATION_SHIFT (SLOTS_BY_SHIFT + 4)

/* Which ceiling is in force. */
enum slots_by {
	SLOTS_BY_CEILING,  /* the guard's own, that it was opened with */
	SLOTS_BY_SHARE,    /* this node's part of the fleet's ceiling */
	SLOTS_BY_ESTIMATE, /* what was learned of the backend */
	SLOTS_BY_PROBE,    /* a short time at less, to measure the backend */
	SLOTS_BY_FENCE,    /* this node has no share of its fleet's ceiling */
	SLOTS_BY_CLOSE,    /* the guard is closed */
};

static inline uint32_t slots_in_flight(uint64_t word)
{
	return (uint32_t)word & SLOTS_MOST;
}

/* The ceiling in force. */
static inline uint32_t slots_most(uint64_t word)
{
	return (uint32_t)(word >> SLOTS_BITS) & SLOTS_MOST;
}

static inline enum slots_by slots_by(uint64_t word)
{
	return (enum slots_by)(word >> SLOTS_BY_SHIFT & 15);
}

static inline uint16_t slots_generation(uint64_t word)
{
	return (uint16_t)(word >> SLOTS_GENERATION_SHIFT);
}

static inline bool slots_closed(uint64_t word)
{
	return slots_by(word) == SLOTS_BY_CLOSE;
}

/* ---- Calls ------------------------------------------------------------------------ */

/* So many thousandths, as slots_part takes them. */
static inline uint64_t slots_fraction(uint32_t permille)
{
	return ((uint64_t)permille * (UINT64_C(1) << 32) + 999) / 1000;
}

/* That part of most, rounded down: exactly, as most is so small.  SLOTS-3 */
static inline uint32_t slots_part(uint32_t most, uint64_t fraction)
{
	uint32_t part = (uint32_t)(most * fraction >> 32);

	if (__builtin_expect(part > 0, 1))
		return part;
	return most > 0;
}

/* Do so many more fit under this part of the ceiling? */
static inline bool slots_fit(uint64_t word, uint32_t part, uint32_t count)
{
	return (uint64_t)slots_in_flight(word) + count <= part; /* SLOTS-1 */
}

/* count more are in flight: the caller knows that they fit. */
static inline uint64_t slots_taken(uint64_t word, uint32_t count)
{
	return word + count;
}

/* Are so many in flight?  SLOTS-2 */
static inline bool slots_can_give(uint64_t word, uint32_t count)
{
	return slots_in_flight(word) >= count;
}

static inline uint64_t slots_given(uint64_t word, uint32_t count)
{
	return word - count;
}

/* ---- The coordinator -------------------------------------------------------------- */

struct slots_ceiling {
	uint32_t most; /* at most SLOTS_MOST */
	enum slots_by by;
};

/* The ceilings that a guard has: the least of them is in force.  A share that is not given
 * out by a fleet is SLOTS_MOST. */
struct slots_ceilings {
	uint32_t ceiling, share, estimate;
	uint32_t probe; /* SLOTS_MOST: none runs */
	bool fenced;
};

/* Of two that are equal the one is told that a guard cannot change by itself. */
static inline struct slots_ceiling slots_least(const struct slots_ceilings *all)
{
	struct slots_ceiling least = { all->ceiling, SLOTS_BY_CEILING };

	if (all->fenced)
		return (struct slots_ceiling){ 0, SLOTS_BY_FENCE };
	if (all->share < least.most)
		least = (struct slots_ceiling){ all->share, SLOTS_BY_SHARE };
	if (all->estimate < least.most)
		least = (struct slots_ceiling){ all->estimate, SLOTS_BY_ESTIMATE };
	if (all->probe < least.most)
		least = (struct slots_ceiling){ all->probe, SLOTS_BY_PROBE };
	return least;
}

static inline uint64_t slots_applied(uint64_t word, uint16_t generation,
                                     struct slots_ceiling ceiling)
{
	if (slots_closed(word)) /* SLOTS-4 */
		return word;
	return slots_in_flight(word) | (uint64_t)ceiling.most << SLOTS_BITS |
	       (uint64_t)ceiling.by << SLOTS_BY_SHIFT |
	       (uint64_t)generation << SLOTS_GENERATION_SHIFT;
}

#endif
