/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lifeline.c -- private pages, wiped on fork.
 *
 * Threads   Words: any; a word is given out and given back by a swap and a store.
 *           lines_there: under the lock.  An empty word is anybody's to take.
 */
#define _GNU_SOURCE
#include "runtime/lifeline.h"

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <sys/mman.h>

#include "engine/check.h"

static bool wipe_on_fork(void *pages, size_t bytes)
{
	return madvise(pages, bytes, MADV_WIPEONFORK) == 0;
}

/* The kernel wipes anonymous memory only, so such pages take the place of the
 * library's; they go with it when it is unloaded. */
bool lifeline_cover(void *pages, size_t bytes)
{
	void *mapped = mmap(pages, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return mapped == pages && wipe_on_fork(pages, bytes);
}

/* ---- Words ----------------------------------------------------------------------- */

static union {
	alignas(LIFELINE_PAGE) uint8_t pages[LIFELINE_PAGE];
	_Atomic uint64_t words[LIFELINES_MOST];
} lines;

static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static bool lines_there;            /* under the lock */
static _Atomic uint64_t last_token; /* a child goes on from its parent's */

/* What failed once may be possible the next time. */
static bool make_lines(void)
{
	bool there;

	gale_assert(pthread_mutex_lock(&lines_lock) == 0);
	if (!lines_there)
		lines_there = lifeline_cover(lines.pages, sizeof(lines.pages));
	there = lines_there;
	gale_assert(pthread_mutex_unlock(&lines_lock) == 0);
	return there;
}

static bool take_word(_Atomic uint64_t *word, uint64_t token)
{
	uint64_t free = 0;

	while (free == 0)
		if (swap_if_relaxed(word, &free, token))
			return true;
	return false;
}

bool lifeline_open(struct lifeline *line)
{
	bool there = make_lines();

	line->token = add_relaxed(&last_token, 2) + 2;
	for (int i = 0; there && i < LIFELINES_MOST; i++)
		if (take_word(&lines.words[i], line->token)) {
			line->word = &lines.words[i];
			return true;
		}
	return false;
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
