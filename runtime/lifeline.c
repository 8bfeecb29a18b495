/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lifeline.c -- private pages, wiped on fork. */
#define _GNU_SOURCE
#include "runtime/lifeline.h"

#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <sys/mman.h>

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

static pthread_once_t lines_once = PTHREAD_ONCE_INIT;
static bool lines_there;
static _Atomic uint64_t last_token; /* a child goes on from its parent's */

static void make_lines(void)
{
	lines_there = lifeline_cover(lines.pages, sizeof(lines.pages));
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
	pthread_once(&lines_once, make_lines);
	line->token = add_relaxed(&last_token, 2) + 2;
	for (int i = 0; lines_there && i < LIFELINES_MOST; i++)
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
