/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.c -- blocks that are zeroed, and blocks that start on a cache line.
 *
 * The host's allocator promises the alignment of malloc.  A block that must start on a
 * line is over-allocated by one, and the byte before it says how far it was moved.
 *
 * Where the host gave none, a large block comes from the kernel, as most mallocs have it from there,
 * too.  jemalloc makes an arena of its own for its first block of 8 MB: that touches thirty pages in
 * one turn of a shard.
 *
 * Threads   Any, at once: nothing is kept.
 */
#define _GNU_SOURCE
#include "runtime/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/atomic.h"

static void *large_alloc(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED ? memory : NULL;
}

static void *default_alloc(struct gale_allocator *self, size_t bytes)
{
	(void)self;
	return bytes < MEMORY_LARGE ? malloc(bytes) : large_alloc(bytes);
}

static void default_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	(void)self;
	if (bytes < MEMORY_LARGE)
		free(memory);
	else
		(void)munmap(memory, bytes); /* of what was mapped it cannot fail */
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

void *memory_take_raw(struct gale_allocator *allocator, size_t bytes)
{
	return allocator->alloc(allocator, bytes);
}

void memory_give(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	if (memory)
		allocator->free(allocator, memory, bytes);
}

void *memory_take_lines_raw(struct gale_allocator *allocator, size_t bytes)
{
	uint8_t *raw = allocator->alloc(allocator, bytes + MEMORY_LINES);
	uint8_t *aligned;

	if (!raw)
		return NULL;
	aligned = raw + MEMORY_LINES - (uintptr_t)raw % MEMORY_LINES;
	aligned[-1] = (uint8_t)(aligned - raw);
	return aligned;
}

void *memory_take_lines(struct gale_allocator *allocator, size_t bytes)
{
	void *memory = memory_take_lines_raw(allocator, bytes);

	return memory ? memset(memory, 0, bytes) : NULL;
}

void memory_give_lines(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	uint8_t *aligned = memory;

	if (memory)
		memory_give(allocator, aligned - aligned[-1], bytes + MEMORY_LINES);
}

size_t memory_thin(struct gale_allocator *allocator, void *memory, size_t bytes,
                   size_t from, size_t pages)
{
	uintptr_t at = (uintptr_t)memory + from;
	uintptr_t first = (at + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
	uintptr_t end = ((uintptr_t)memory + bytes) / MEMORY_PAGE * MEMORY_PAGE;
	size_t most = pages * MEMORY_PAGE;

	if (allocator != memory_default() || first >= end)
		return bytes;
	if (most > end - first)
		most = end - first;
	/* Refused, it is given back as a whole. */
	if (madvise((void *)first, most, MADV_DONTNEED) != 0)
		return bytes;
	return first + most - (uintptr_t)memory;
}
