/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trial.c -- one part after the other is asked from credit and from memory.
 *
 * Threads   As trial.h says.
 */
#include "face/trial.h"

#include "face/straight.h"

/* As the part was told. */
static void refuse(struct trial *trial, size_t i)
{
	const struct trial_part *part = &trial->parts[i];

	trial->binding = i;
	local_tell(&trial->answers[i], &part->limiter->lender, LOCAL_REFUSED,
	           part->told);
}

/* If it is refused, that is counted. */
static bool is_refused(const struct trial *trial, struct trial_part *part)
{
	struct cell *cell = local_cell(part->purse, trial->seat->number);
	mono now = trial->now;

	if (!local_is_short(part->purse, now, part->cost) ||
	    (cell && credit_covers(load_relaxed(&cell->credit), now, part->cost)))
		return false;
	return local_refuse(part->purse, now, part->cost, &part->told) == LOCAL_REFUSED;
}

/* Is a part known to be denied?  It is the binding one then. */
static bool is_denied(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct trial_part *part = &trial->parts[i];

		if (!part->purse || !is_refused(trial, part))
			continue;
		refuse(trial, i);
		return true;
	}
	return false;
}

/* The units that a part has taken, by which they can be given back. */
static struct kept_units kept(const struct trial *trial, size_t i)
{
	const struct trial_part *part = &trial->parts[i];

	return kept_of(part->purse, part->voids, part->cost, part->told, trial->now);
}

/* Another has been faster than this call, and that part is denied now. */
static void undo(struct trial *trial, size_t denied, bool holds)
{
	for (size_t i = 0; i < denied; i++)
		if (trial_has_taken(trial, i))
			straight_put_back(trial->seat, kept(trial, i), holds);
	refuse(trial, denied);
}

/* Without a pin nothing would bound a hold: a shard is asked. */
static enum local pin(struct trial *trial, size_t i)
{
	if (purse_pin(trial->parts[i].purse))
		return LOCAL_TAKEN;
	straight_put_back(trial->seat, kept(trial, i), false);
	return LOCAL_UNKNOWN;
}

static enum local take(struct trial *trial, size_t i, bool holds)
{
	struct trial_part *part = &trial->parts[i];
	enum local how;

	if (!part->purse)
		return LOCAL_UNKNOWN;
	part->voids = kept_voids(part->purse);
	how = local_try(&part->limiter->lender, part->purse, trial->seat->number,
	                trial->now, part->cost, &part->told);
	return holds && how == LOCAL_TAKEN ? pin(trial, i) : how;
}

bool trial_take(struct trial *trial, bool holds)
{
	trial->unknown = 0;
	if (is_denied(trial))
		return false;
	for (size_t i = 0; i < trial->count; i++) {
		enum local how = take(trial, i, holds);

		if (how == LOCAL_REFUSED) {
			undo(trial, i, holds);
			return false;
		}
		if (how != LOCAL_TAKEN)
			trial->unknown |= UINT32_C(1) << i;
	}
	return true;
}

void trial_keep(struct trial *trial, bool holds)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct trial_part *part = &trial->parts[i];

		part->kept.purse = NULL;
		if (trial_has_taken(trial, i) && (holds || purse_pin(part->purse)))
			part->kept = kept(trial, i);
	}
}

void trial_tell_taken(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++) {
		const struct trial_part *part = &trial->parts[i];

		if (trial_has_taken(trial, i))
			local_tell(&trial->answers[i], &part->limiter->lender,
			           LOCAL_TAKEN, part->told);
	}
}
