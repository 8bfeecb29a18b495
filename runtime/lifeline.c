/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* lifeline.c -- one private page, wiped on fork. */
#define _GNU_SOURCE
#include "runtime/lifeline.h"

#include <stddef.h>
#include <sys/mman.h>

#define PAGE 4096

bool lifeline_open(struct lifeline *line)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	if (madvise(page, PAGE, MADV_WIPEONFORK) != 0) {
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
