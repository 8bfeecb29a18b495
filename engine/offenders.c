/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offenders.c -- finds a key's row, or gives it the one with the least count; adds tables up.
 *
 * A count less its table's least count is one of a Misra-Gries summary with OFFENDERS_ROWS - 1
 * counters.  So a sum of tables is as exact as one table (Agarwal et al., Mergeable Summaries, 2012).
 *
 * Threads   Pure: any.
 */
#include "engine/offenders.h"

#include <string.h>

/* The key's, or the one with the least count: an empty one, if there is any. */
static struct offender *row_for(struct offenders *offenders, uint64_t hash)
{
	struct offender *least = offenders->rows;

	for (size_t i = 0; i < OFFENDERS_ROWS; i++) {
		struct offender *row = &offenders->rows[i];

		if (row->hash == hash)
			return row;
		if (row->count < least->count)
			least = row;
	}
	return least;
}

/* Another key had it, or none. */
static void take_over(struct offender *row, uint64_t hash, const void *key,
                      size_t key_len)
{
	row->over = row->count; /* OFFENDERS-1 */
	row->hash = hash;
	row->key_len = (uint16_t)key_len;
	memcpy(row->key, key, key_len < OFFENDERS_KEY ? key_len : OFFENDERS_KEY);
}

void offenders_note(struct offenders *offenders, uint64_t hash, const void *key,
                    size_t key_len, uint64_t weight)
{
	struct offender *row = row_for(offenders, hash);

	if (row->count == 0 || row->hash != hash)
		take_over(row, hash, key, key_len);
	row->count += weight;
	offenders->noted += weight;
}

/* As few rows as these are sorted by insertion. */
static void rank(struct offender *rows, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct offender row = rows[i];
		size_t at = i;

		for (; at > 0 && rows[at - 1].count < row.count; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
}

void offenders_rank(struct offenders *offenders)
{
	rank(offenders->rows, OFFENDERS_ROWS);
}

/* ---- Sums ------------------------------------------------------------------------- */

static const struct offender *row_of(const struct offenders *offenders, uint64_t hash)
{
	const struct offender *rows = offenders->rows;

	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (rows[i].count > 0 && rows[i].hash == hash)
			return &rows[i];
	return NULL;
}

/* How often a key without a row was noted at most.  OFFENDERS-2 */
static uint64_t least_of(const struct offenders *offenders)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (offenders->rows[i].count < least)
			least = offenders->rows[i].count;
	return least;
}

/* With what the other table has noted of the key, or may have.  OFFENDERS-1 */
static struct offender with(struct offender row, const struct offenders *other)
{
	const struct offender *its = row_of(other, row.hash);

	row.count += its ? its->count : least_of(other);
	row.over += its ? its->over : least_of(other);
	return row;
}

void offenders_add(struct offenders *sum, const struct offenders *more)
{
	struct offender rows[2 * OFFENDERS_ROWS] = { { 0 } };
	size_t count = 0;

	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (sum->rows[i].count > 0)
			rows[count++] = with(sum->rows[i], more);
	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (more->rows[i].count > 0 && !row_of(sum, more->rows[i].hash))
			rows[count++] = with(more->rows[i], sum);
	rank(rows, count);
	memcpy(sum->rows, rows, sizeof(sum->rows)); /* OFFENDERS-4 */
	sum->noted += more->noted;
}

bool offenders_valid(const struct offenders *offenders)
{
	uint64_t sum = 0, least = UINT64_MAX, over = 0;

	for (size_t i = 0; i < OFFENDERS_ROWS; i++) {
		const struct offender *row = &offenders->rows[i];

		sum += row->count;
		if (row->count < least)
			least = row->count;
		if (row->over > over)
			over = row->over;
	}
	return sum == offenders->noted && over <= least;
}
