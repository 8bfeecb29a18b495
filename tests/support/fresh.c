/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fresh.c -- counts the pages that are touched for the first time.
 *
 * Threads   One.
 */
#define _GNU_SOURCE
#include "tests/support/fresh.h"

#include <signal.h>
#include <stdalign.h>
#include <sys/mman.h>

#include "runtime/memory.h"
#include "tests/support/must.h"

static struct fresh *opened; /* a handler has no argument of its own */
static struct sigaction before;

static void *take(struct gale_allocator *self, size_t bytes)
{
	struct fresh *fresh = (struct fresh *)self;
	size_t room = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) *
	              alignof(max_align_t);

	must(room <= FRESH_MOST - fresh->used);
	fresh->used += room;
	fresh->blocks++;
	return fresh->memory + fresh->used - room;
}

static void give(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	(void)memory;
	(void)bytes;
}

static void on_touch(int signal, siginfo_t *info, void *context)
{
	uint64_t at = (uint64_t)((uintptr_t)info->si_addr - (uintptr_t)opened->memory);
	uint64_t page = at / MEMORY_PAGE * MEMORY_PAGE;

	(void)context;
	if (at >= opened->used ||
	    mprotect(opened->memory + page, MEMORY_PAGE, PROT_READ | PROT_WRITE) != 0)
		(void)sigaction(signal, &before, NULL); /* a fault of the program's */
	else
		opened->touched++;
}

void fresh_open(struct fresh *fresh)
{
	struct sigaction action = { .sa_sigaction = on_touch, .sa_flags = SA_SIGINFO };

	must(!opened);
	*fresh = (struct fresh){ .allocator = { take, give } };
	fresh->memory = mmap(NULL, FRESH_MOST, PROT_NONE,
	                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	must(fresh->memory != MAP_FAILED);
	opened = fresh;
	must(sigaction(SIGSEGV, &action, &before) == 0);
}

void fresh_close(struct fresh *fresh)
{
	must(sigaction(SIGSEGV, &before, NULL) == 0);
	must(munmap(fresh->memory, FRESH_MOST) == 0);
	opened = NULL;
}
