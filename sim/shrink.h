/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * shrink.h -- a plan that fails, made smaller as long as it fails.
 *
 * Its numbers become smaller, and asks are left out.  What a plan is and when it fails,
 * the caller knows.
 *
 * Threads   One.
 */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "sim/script.h"

/* A number of a plan; and how simple it can be. */
struct shrink_field {
	const char *name;
	size_t at; /* in the plan */
	size_t size;
	uint64_t least;
	uint64_t most; /* it is never made larger: for its readers */
};

struct shrink {
	void *plan;
	const struct shrink_field *fields;
	size_t field_count;
	/* Plays plan and choice, and says to how many asks it came. */
	bool (*fails)(struct shrink *self, uint64_t *ret_asks);
	struct choice choice;
	uint64_t asks; /* of the last run that failed; all that are chosen are below */
	uint64_t runs;
	uint64_t spent; /* asks of all of them */
};

/* The plan fails, with all asks.  Leaves the smallest that was found, and its choice. */
void shrink(struct shrink *it);

uint64_t shrink_get(const void *plan, const struct shrink_field *field);
void shrink_set(void *plan, const struct shrink_field *field, uint64_t value);

#endif
