/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * offenders.c -- finds a key's row, or gives it the one with the least count.
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
void offenders_rank(struct offenders *offenders)
{
	struct offender *rows = offenders->rows;

	for (size_t i = 1; i < OFFENDERS_ROWS; i++) {
		struct offender row = rows[i];
		size_t at = i;

		for (; at > 0 && rows[at - 1].count < row.count; at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
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
