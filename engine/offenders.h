/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offenders.h -- which keys are refused most, in a table of a fixed size.
 *
 *     refusals -> which of them are noted, and for how many -> the table
 *
 * The table is a Space-Saving summary (Metwally, Agrawal, El Abbadi, 2005): a key that has no
 * row gets the one with the least count, and starts from that count.  So a key that is
 * refused often is never missed, and what its count may be too high by is known.
 *
 * Invariants, where n is what was noted in all
 *
 *   OFFENDERS-1  What was noted of a key in the table is at most its count, and at least its
 *                count less its over.
 *   OFFENDERS-2  The counts' sum is n.  So the least count, which no over exceeds, is at most
 *                n / OFFENDERS_ROWS, and a key that has no row was noted at most so often.
 *   OFFENDERS-3  Of refusals that are counted together the first OFFENDERS_EACH are noted one
 *                by one, and then one of OFFENDERS_LOT, for as many.  Which ones follows from
 *                their number so that of each k-th refusal the same part is noted, whatever
 *                k is: a caller that asks for keys in turn hides none of them.
 *   OFFENDERS-4  In a sum of tables OFFENDERS-1 holds, n is the sum of theirs, and the least count is
 *                at most n / OFFENDERS_ROWS, which no over exceeds.  A key that has no row was
 *                noted at most as often as the least count.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_OFFENDERS_H
#define ENGINE_OFFENDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OFFENDERS_ROWS 16
#define OFFENDERS_EACH 64
#define OFFENDERS_LOT 64
#define OFFENDERS_KEY 46 /* bytes of a key: an address of IPv6 as a text is no longer */

/* A count of 0: nothing is there, nor in the rows behind. */
struct offender {
	uint64_t count;
	uint64_t over;
	uint64_t hash;    /* of the whole key: keys are told apart by it */
	uint16_t key_len; /* of the whole key */
	uint8_t key[OFFENDERS_KEY];
};

/* All zero: nothing was noted. */
struct offenders {
	uint64_t noted;
	struct offender rows[OFFENDERS_ROWS];
};

/* For how many a refusal is noted that comes after so many others; 0: it is not. */
static inline uint64_t offenders_weight(uint64_t others)
{
	uint32_t mixed =
	    (uint32_t)others * UINT32_C(0x9E3779B1); /* by the golden ratio */

	if (others < OFFENDERS_EACH)
		return 1;
	return mixed < UINT32_MAX / OFFENDERS_LOT + 1 ? OFFENDERS_LOT : 0;
}

void offenders_note(struct offenders *offenders, uint64_t hash, const void *key,
                    size_t key_len, uint64_t weight);

/* As if what was noted in more had been noted in sum, too (OFFENDERS-4).  A key has the same hash
 * in both. */
void offenders_add(struct offenders *sum, const struct offenders *more);

/* The largest count first. */
void offenders_rank(struct offenders *offenders);

/* OFFENDERS-2, as far as the table shows it; it may be no sum. */
bool offenders_valid(const struct offenders *offenders);

#endif
