/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* allocator.c -- a head before each block remembers its size. */
#include "sim/allocator.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/atomic.h"

#define MARK UINT64_C(0x6d656d6f72792e2e)

/* As long as the strictest alignment, so that what follows is aligned as well. */
struct head {
	uint64_t bytes;
	uint64_t mark;
};

static void note_most(struct test_allocator *test, uint64_t bytes)
{
	uint64_t most = load_relaxed(&test->most);

	while (bytes > most && !swap_if_relaxed(&test->most, &most, bytes))
		continue;
}

static void *test_alloc(struct gale_allocator *self, size_t bytes)
{
	struct test_allocator *test = (struct test_allocator *)self;
	uint64_t call = add_relaxed(&test->calls, 1) + 1;
	struct head *head;

	if (call >= test->fail_first && call <= test->fail_last) {
		add_relaxed(&test->failed, 1);
		return NULL;
	}
	head = malloc(sizeof(*head) + bytes);
	if (!head)
		return NULL;
	*head = (struct head){ bytes, MARK };
	memset(head + 1, 0xa5, bytes);
	add_relaxed(&test->blocks, 1);
	note_most(test, add_relaxed(&test->bytes, bytes) + bytes);
	return head + 1;
}

static void test_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	struct test_allocator *test = (struct test_allocator *)self;
	struct head *head = (struct head *)memory - 1;

	if (head->mark != MARK || head->bytes != bytes)
		add_relaxed(&test->faults, 1);
	head->mark = 0;
	memset(memory, 0x5a, head->bytes);
	sub_relaxed(&test->blocks, 1);
	sub_relaxed(&test->bytes, head->bytes);
	free(head);
}

void test_allocator_init(struct test_allocator *test)
{
	memset(test, 0, sizeof(*test));
	test->allocator.alloc = test_alloc;
	test->allocator.free = test_free;
	test->fail_first = 1; /* to 0: none */
}

bool test_allocator_is_balanced(const struct test_allocator *test)
{
	return load_relaxed(&test->blocks) == 0 && load_relaxed(&test->bytes) == 0 &&
	       load_relaxed(&test->faults) == 0;
}
