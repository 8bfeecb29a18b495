/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.h -- the host's allocator, or malloc; or the kernel, for large blocks.
 *
 * To give a large block back takes the kernel long: up to 2 us a page.  Code that may not take
 * long gives malloc's pages back beforehand, some at a time (memory_thin).
 *
 * Threads   Any, at once; so must be the host's functions.
 * Limits    NULL is an answer: every caller undoes what it began and says so.
 */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

#include <stddef.h>

#include <gale/gale.h>

/* Blocks of so many bytes are not malloc's. */
#define MEMORY_LARGE ((size_t)4 << 20)

/* The allocator to use where the host gave none. */
struct gale_allocator *memory_default(void);

/* Zeroed, aligned as malloc does; given back with the same size. */
void *memory_take(struct gale_allocator *allocator, size_t bytes);
void memory_give(struct gale_allocator *allocator, void *memory, size_t bytes);

/* Not zeroed: for callers that write before they read, or clear it in parts. */
void *memory_take_raw(struct gale_allocator *allocator, size_t bytes);

/* The same, from the start of a pair of cache lines, as processors fetch two at a time:
 * for what several threads write. */
#define MEMORY_LINES 128

void *memory_take_lines(struct gale_allocator *allocator, size_t bytes);
void memory_give_lines(struct gale_allocator *allocator, void *memory, size_t bytes);

void *memory_take_lines_raw(struct gale_allocator *allocator, size_t bytes);

#define MEMORY_PAGE ((size_t)4096)

/* Of a block that is about to be given back, the next so many pages from there on go back to the
 * kernel, if they are the block's alone; what was in them is lost.  Returns how far it has come:
 * bytes, when nothing is left to do.  Only of malloc's: a host's allocator may keep its pages
 * for a reason. */
size_t memory_thin(struct gale_allocator *allocator, void *memory, size_t bytes,
                   size_t from, size_t pages);

#endif
