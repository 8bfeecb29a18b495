/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lifeline.h -- does this process still own what it opened, and may it use it?
 *
 * A word on a page that the kernel empties in a child made by fork().  The child has
 * its parent's memory but none of its threads, and what it admitted would be admitted
 * twice; it reads 0 here and is refused.
 *
 * The word holds a token of its own, so that what a child opens later, in the same
 * place, is not taken for what its parent had.  A thread that closes it, or finds an invariant
 * broken, changes the word: one comparison tells an ask that all is well.
 *
 *     token        all is well: lifeline_passes
 *     token + 1    closed, or fenced with all others: it holds, and does not pass
 *     0            this is a child
 *
 * Threads   lifeline_open, lifeline_holds, lifeline_passes, lifeline_fence_all: any.
 *           lifeline_stop, lifeline_close: its opener.  lifeline_cover: any, each
 *           before it writes to the pages for the first time.
 * Limits    At most LIFELINES_MOST at a time.
 *
 * Ordering
 *
 *   The words are relaxed: an ask that does not see a change yet is one that came before.
 */
#ifndef RUNTIME_LIFELINE_H
#define RUNTIME_LIFELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>

#include "runtime/atomic.h"

#define LIFELINES_MOST GALE_RUNTIMES_MAX

enum lifeline_opened {
	LIFELINE_OPEN,
	LIFELINE_NONE_LEFT, /* LIFELINES_MOST are open */
	LIFELINE_REFUSED,   /* this kernel does not empty pages in a child */
};

struct lifeline {
	_Atomic uint64_t *word;
	uint64_t token; /* even */
};

/*
 * Makes whole pages of the library's own variables read as zero in a child, and in what
 * that forks in turn.  The kernel does so in one step; it changes nothing here, and
 * nothing at all the next time.
 *
 * The pages are aligned to LIFELINE_PAGE, and lie where no file is behind them, as what
 * begins as zero does: the kernel empties no others.  False if it does not.
 */
#if defined(__x86_64__) || defined(__i386__)
#define LIFELINE_PAGE 4096
#else
#define LIFELINE_PAGE 65536 /* the largest that kernels are built with */
#endif
bool lifeline_cover(void *pages, size_t bytes);

enum lifeline_opened lifeline_open(struct lifeline *line);
/* It holds, and does not pass any more. */
void lifeline_stop(struct lifeline *line);
void lifeline_close(struct lifeline *line);

/* None of them passes any more. */
void lifeline_fence_all(void);

static inline bool lifeline_holds(const struct lifeline *line)
{
	return (load_relaxed(line->word) | 1) == (line->token | 1);
}

static inline bool lifeline_passes(const struct lifeline *line)
{
	return load_relaxed(line->word) == line->token;
}

#endif
