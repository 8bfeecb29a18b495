/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lifeline.h -- does this process still own what it opened?
 *
 * A word on a page that the kernel empties in a child made by fork().  The child has
 * its parent's memory but none of its threads, and what it admitted would be admitted
 * twice; it reads 0 here and is refused.
 *
 * Threads   lifeline_holds: any.
 */
#ifndef RUNTIME_LIFELINE_H
#define RUNTIME_LIFELINE_H

#include <stdbool.h>

struct lifeline {
	volatile int *word;
};

bool lifeline_open(struct lifeline *line);
void lifeline_close(struct lifeline *line);

static inline bool lifeline_holds(const struct lifeline *line)
{
	return *line->word != 0;
}

#endif
