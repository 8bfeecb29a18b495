/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * allocations.c -- preloaded into a program: counts how often it allocates memory.
 *
 * GALE_TEST_ALLOCATIONS names a file of eight bytes, where another process can read the count
 * while the program runs.  Memory is glibc's.
 *
 * Threads   Any.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t line, size_t bytes);

static _Atomic uint64_t before; /* the file is mapped */
static _Atomic uint64_t *count = &before;

__attribute__((constructor)) static void map_count(void)
{
	const char *path = getenv("GALE_TEST_ALLOCATIONS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map =
	    mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	close(fd);
	count = map;
}

static void add(void)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

void *malloc(size_t bytes)
{
	add();
	return __libc_malloc(bytes);
}

void *calloc(size_t times, size_t bytes)
{
	add();
	return __libc_calloc(times, bytes);
}

void *realloc(void *old, size_t bytes)
{
	add();
	return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t line, size_t bytes)
{
	add();
	return __libc_memalign(line, bytes);
}

int posix_memalign(void **ret_memory, size_t line, size_t bytes)
{
	void *memory;

	add();
	memory = __libc_memalign(line, bytes);
	if (!memory)
		return ENOMEM;
	*ret_memory = memory;
	return 0;
}
