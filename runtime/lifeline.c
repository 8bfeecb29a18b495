/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lifeline.c -- private pages, wiped on fork. */
#define _GNU_SOURCE
#include "runtime/lifeline.h"

#include <stddef.h>
#include <sys/mman.h>

#define PAGE 4096

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

bool lifeline_open(struct lifeline *line)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	if (!wipe_on_fork(page, PAGE)) {
		munmap(page, PAGE);
		return false;
	}
	line->word = page;
	*line->word = 1;
	return true;
}

void lifeline_close(struct lifeline *line)
{
	munmap((void *)line->word, PAGE);
}
