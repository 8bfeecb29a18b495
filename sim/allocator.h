/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * allocator.h -- malloc that counts, checks what comes back, and fails when told to.
 *
 * Threads   Any, at once.  fail_first and fail_last are set while no thread allocates.
 */
#ifndef SIM_ALLOCATOR_H
#define SIM_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

struct test_allocator {
	struct gale_allocator allocator; /* first: it is what the library gets */
	_Atomic uint64_t calls;          /* of alloc, failed ones included */
	_Atomic uint64_t failed;
	_Atomic uint64_t blocks; /* given out, and not yet back */
	_Atomic uint64_t bytes;  /* of those */
	_Atomic uint64_t most;   /* bytes, at their highest */
	_Atomic uint64_t faults; /* came back with another size, or twice */
	uint64_t fail_first;     /* these calls fail, counted from 1; 0: none */
	uint64_t fail_last;
};

void test_allocator_init(struct test_allocator *test);

/* Is everything back, with the sizes that it was taken with? */
bool test_allocator_is_balanced(const struct test_allocator *test);

#endif
