/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shrink.c -- greedy: what still fails is kept.
 *
 * It ends when nothing more can be left out, or after so many runs or asks in all, as a
 * user waits for it.
 */
#include "sim/shrink.h"

#include <string.h>

#define RUNS_MOST 3000
#define SPENT_MOST 5000000

uint64_t shrink_get(const void *plan, const struct shrink_field *field)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)plan + field->at, field->size);
	return value;
}

void shrink_set(void *plan, const struct shrink_field *field, uint64_t value)
{
	memcpy((char *)plan + field->at, &value, field->size);
}

static bool still_fails(struct shrink *it)
{
	uint64_t asks;
	bool fails;

	if (it->runs >= RUNS_MOST || it->spent >= SPENT_MOST)
		return false;
	fails = it->fails(it, &asks);
	it->runs++;
	it->spent += asks;
	if (fails)
		it->asks = asks;
	return fails;
}

/* ---- Numbers --------------------------------------------------------------------- */

static bool simplify_field(struct shrink *it, const struct shrink_field *field,
                           uint64_t value)
{
	uint64_t was = shrink_get(it->plan, field);

	if (value >= was || value < field->least)
		return false;
	shrink_set(it->plan, field, value);
	if (still_fails(it))
		return true;
	shrink_set(it->plan, field, was);
	return false;
}

static bool simplify(struct shrink *it)
{
	bool simpler = false;

	for (size_t i = 0; i < it->field_count; i++) {
		const struct shrink_field *field = &it->fields[i];
		bool done = simplify_field(it, field, field->least);

		simpler |= done;
		while (!done &&
		       simplify_field(it, field, shrink_get(it->plan, field) / 2))
			simpler = true;
	}
	return simpler;
}

/* ---- Asks ------------------------------------------------------------------------ */

static bool any_chosen(const struct shrink *it, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count && i < it->asks; i++)
		if (it->choice.at[i])
			return true;
	return false;
}

/* Leaves out so many in a row, wherever that can be done. */
static bool leave_out(struct shrink *it, uint64_t count)
{
	static struct choice before;
	bool fewer = false;

	for (uint64_t i = 0; i < it->asks; i += count) {
		if (!any_chosen(it, i, count))
			continue;
		before = it->choice;
		choice_set(&it->choice, i, count, false);
		if (still_fails(it))
			fewer = true;
		else
			it->choice = before;
	}
	return fewer;
}

void shrink(struct shrink *it)
{
	bool smaller = still_fails(it) && it->asks < SCRIPT_ASKS_MOST;

	while (smaller && simplify(it))
		;
	if (!smaller)
		return;
	it->choice.some = true;
	choice_set(&it->choice, 0, it->asks, true);
	while (smaller) {
		smaller = false;
		for (uint64_t count = it->asks / 2 + 1; count > 0; count /= 2)
			smaller |= leave_out(it, count);
		smaller |= simplify(it);
	}
}
