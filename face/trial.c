/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trial.c -- what is seldom needed when several limiters are asked from credit.
 *
 * Threads   As trial.h says.
 */
#include "face/trial.h"

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

bool trial_is_denied(struct trial *trial)
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

enum local trial_take_longer(const struct trial *trial, struct trial_part *part)
{
	return local_try(&part->limiter->lender, part->purse, trial->seat->number,
	                 trial->now, part->cost, &part->told);
}

void trial_put_back(struct trial *trial, size_t i)
{
	struct kept_units kept = trial_kept(trial, i);

	seat_put_back(trial->seat, &kept, credit_units(kept.word));
}

void trial_undo(struct trial *trial, size_t denied, bool holds)
{
	for (size_t i = 0; i < denied; i++) {
		if (!trial_has_taken(trial, i))
			continue;
		trial_put_back(trial, i);
		if (holds)
			purse_unpin(trial->parts[i].purse);
	}
	refuse(trial, denied);
}

void trial_keep(struct trial *trial, bool holds)
{
	for (size_t i = 0; i < trial->count; i++) {
		struct trial_part *part = &trial->parts[i];

		part->kept.purse = NULL;
		if (trial_has_taken(trial, i) && (holds || purse_pin(part->purse)))
			part->kept = trial_kept(trial, i);
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
