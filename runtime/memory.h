/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.h -- the host's allocator, or malloc.
 *
 * Threads   Any, at once; so must be the host's functions.
 * Limits    NULL is an answer: every caller undoes what it began and says so.
 */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stddef.h>

#include <gale/gale.h>

/* The allocator to use where the host gave none. */
struct gale_allocator *memory_default(void);

/* Zeroed, aligned as malloc does; given back with the same size. */
void *memory_take(struct gale_allocator *allocator, size_t bytes);
void memory_give(struct gale_allocator *allocator, void *memory, size_t bytes);

/* The same, from the start of a pair of cache lines, as processors fetch two at a time:
 * for what several threads write. */
#define MEMORY_LINES 128

void *memory_take_lines(struct gale_allocator *allocator, size_t bytes);
void memory_give_lines(struct gale_allocator *allocator, void *memory, size_t bytes);

#endif
