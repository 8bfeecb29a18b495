/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fresh.h -- an allocator that counts the pages of its memory that are touched for the first time.
 *
 * No memory is used twice, so that what is written of a new block at once is counted at once.  A page
 * that nothing has touched yet bears no access: a handler of SIGSEGV counts it, and lets the access
 * go on.
 *
 * Threads   One, and one such allocator at a time.  No sanitizer bears the handler.
 * Limits    FRESH_MOST bytes, of which touched ones alone take memory.
 */
#ifndef TESTS_SUPPORT_FRESH_H
#define TESTS_SUPPORT_FRESH_H

#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>

#define FRESH_MOST (UINT64_C(1) << 34)

struct fresh {
	struct gale_allocator allocator; /* first: it is what the library gets */
	uint8_t *memory;
	uint64_t used;    /* bytes of it that were given out, ever */
	uint64_t blocks;  /* given out, ever */
	uint64_t touched; /* pages */
};

void fresh_open(struct fresh *fresh);
void fresh_close(struct fresh *fresh);

#endif
