/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hooks.c -- what the compiler calls at each plain access.
 *
 * The code under test is compiled as for ThreadSanitizer and linked with this in its
 * place.  There is no hook for an atomic access that is not said in the words of atomic.h:
 * it does not link.
 *
 * Threads   See model.h.
 */
#include <string.h>

#include "tests/interleave/model.h"

/* Names that are the compiler's. */
#define HOOK(name, size, writes)                                                       \
	void name(void *at);                                                           \
	void name(void *at)                                                            \
	{                                                                              \
		model_touch(at, size, writes);                                         \
	}

HOOK(__tsan_read1, 1, false)
HOOK(__tsan_read2, 2, false)
HOOK(__tsan_read4, 4, false)
HOOK(__tsan_read8, 8, false)
HOOK(__tsan_read16, 16, false)
HOOK(__tsan_write1, 1, true)
HOOK(__tsan_write2, 2, true)
HOOK(__tsan_write4, 4, true)
HOOK(__tsan_write8, 8, true)
HOOK(__tsan_write16, 16, true)
HOOK(__tsan_unaligned_read2, 2, false)
HOOK(__tsan_unaligned_read4, 4, false)
HOOK(__tsan_unaligned_read8, 8, false)
HOOK(__tsan_unaligned_read16, 16, false)
HOOK(__tsan_unaligned_write2, 2, true)
HOOK(__tsan_unaligned_write4, 4, true)
HOOK(__tsan_unaligned_write8, 8, true)
HOOK(__tsan_unaligned_write16, 16, true)

void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size)
{
	model_touch(at, size, /* writes= */ false);
}

void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size)
{
	model_touch(at, size, /* writes= */ true);
}

/* gcc tells of copies that it makes itself, and clang of all. */
void *model_memcpy(void *to, const void *from, size_t size);
void *model_memcpy(void *to, const void *from, size_t size)
{
	model_touch(from, size, /* writes= */ false);
	model_touch(to, size, /* writes= */ true);
	return memcpy(to, from, size);
}

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	return model_memcpy(to, from, size);
}

void *__tsan_memset(void *at, int value, size_t size);
void *__tsan_memset(void *at, int value, size_t size)
{
	model_touch(at, size, /* writes= */ true);
	return memset(at, value, size);
}

/* Who calls whom is of no interest. */
void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from)
{
	(void)from;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}

void __tsan_init(void);
void __tsan_init(void)
{
}
