/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.c -- blocks that are zeroed, and blocks that start on a cache line.
 *
 * The host's allocator promises the alignment of malloc.  A block that must start on a
 * line is over-allocated by one, and the byte before it says how far it was moved.
 *
 * Threads   Any, at once: nothing is kept.
 */
#include "runtime/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/atomic.h"

static void *default_alloc(struct gale_allocator *self, size_t bytes)
{
	(void)self;
	return malloc(bytes);
}

static void default_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	(void)bytes;
	free(memory);
}

struct gale_allocator *memory_default(void)
{
	static struct gale_allocator allocator = { default_alloc, default_free };

	return &allocator;
}

void *memory_take(struct gale_allocator *allocator, size_t bytes)
{
	void *memory = allocator->alloc(allocator, bytes);

	return memory ? memset(memory, 0, bytes) : NULL;
}

void memory_give(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	if (memory)
		allocator->free(allocator, memory, bytes);
}

void *memory_take_lines(struct gale_allocator *allocator, size_t bytes)
{
	uint8_t *raw = memory_take(allocator, bytes + MEMORY_LINES);
	uint8_t *aligned;

	if (!raw)
		return NULL;
	aligned = raw + MEMORY_LINES - (uintptr_t)raw % MEMORY_LINES;
	aligned[-1] = (uint8_t)(aligned - raw);
	return aligned;
}

void memory_give_lines(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	uint8_t *aligned = memory;

	if (memory)
		memory_give(allocator, aligned - aligned[-1], bytes + MEMORY_LINES);
}
