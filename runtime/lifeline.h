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
#include <stddef.h>

struct lifeline {
	volatile int *word;
};

/* Makes whole pages of the library's own variables read as zero in a child.  They must
 * be aligned to LIFELINE_PAGE, and are zero when this returns. */
#if defined(__x86_64__) || defined(__i386__)
#define LIFELINE_PAGE 4096
#else
#define LIFELINE_PAGE 65536 /* the largest that kernels are built with */
#endif
bool lifeline_cover(void *pages, size_t bytes);

bool lifeline_open(struct lifeline *line);
void lifeline_close(struct lifeline *line);

static inline bool lifeline_holds(const struct lifeline *line)
{
	return *line->word != 0;
}

#endif
