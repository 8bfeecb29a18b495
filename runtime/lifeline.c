/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lifeline.c -- private pages, wiped on fork.
 *
 * Nothing here is under a lock, and nothing is done once for all: a child that is made
 * meanwhile would wait for a thread that only its parent has.  Each thread that opens asks
 * the kernel itself, before it writes to the page.  So at whatever instant a child is made,
 * a page that is not all zero is one that it gets empty.
 *
 * Threads   Words: any; a word is given out and given back by a swap and a store.  Any
 *           thread may take an empty word.
 */
#define _GNU_SOURCE
#include "runtime/lifeline.h"

#include <stdalign.h>
#include <stddef.h>
#include <sys/mman.h>

bool lifeline_cover(void *pages, size_t bytes)
{
	return madvise(pages, bytes, MADV_WIPEONFORK) == 0;
}

/* ---- Words ----------------------------------------------------------------------- */

static union {
	alignas(LIFELINE_PAGE) uint8_t pages[LIFELINE_PAGE];
	_Atomic uint64_t words[LIFELINES_MOST];
} lines;

static _Atomic uint64_t last_token; /* a child goes on from its parent's */

static bool take_word(_Atomic uint64_t *word, uint64_t token)
{
	uint64_t free = 0;

	while (free == 0)
		if (swap_if_relaxed(word, &free, token))
			return true;
	return false;
}

enum lifeline_opened lifeline_open(struct lifeline *line)
{
	if (!lifeline_cover(lines.pages, sizeof(lines.pages)))
		return LIFELINE_REFUSED;
	line->token = add_relaxed(&last_token, 2) + 2;
	for (int i = 0; i < LIFELINES_MOST; i++)
		if (take_word(&lines.words[i], line->token)) {
			line->word = &lines.words[i];
			return LIFELINE_OPEN;
		}
	return LIFELINE_NONE_LEFT;
}

void lifeline_stop(struct lifeline *line)
{
	store_relaxed(line->word, line->token | 1);
}

void lifeline_close(struct lifeline *line)
{
	store_relaxed(line->word, 0);
}

void lifeline_fence_all(void)
{
	for (int i = 0; i < LIFELINES_MOST; i++)
		if (load_relaxed(&lines.words[i]) != 0)
			or_relaxed(&lines.words[i], 1);
}
