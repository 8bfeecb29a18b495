/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stand_ins.c -- what the code under test has from the kernel, the C library, and the
 * rooms below it.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/stand_ins.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <sys/types.h>

#include "engine/check.h"
#include "runtime/clock.h"
#include "runtime/lock.h"
#include "runtime/memory.h"
#include "tests/interleave/model.h"

bool kernel_has_barriers = true;
uint64_t *kernel_event;

/* ---- Memory and locks ------------------------------------------------------------ */

void *memory_take(struct gale_allocator *allocator, size_t bytes)
{
	(void)allocator;
	return model_take(bytes);
}

void *memory_take_raw(struct gale_allocator *allocator, size_t bytes)
{
	return memory_take(allocator, bytes);
}

void memory_give(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	(void)allocator;
	(void)bytes;
	model_give(memory);
}

void *memory_take_lines(struct gale_allocator *allocator, size_t bytes)
{
	return memory_take(allocator, bytes);
}

void *memory_take_lines_raw(struct gale_allocator *allocator, size_t bytes)
{
	return memory_take(allocator, bytes);
}

size_t memory_thin(struct gale_allocator *allocator, void *memory, size_t bytes,
                   size_t from, size_t pages)
{
	(void)allocator;
	(void)memory;
	(void)from;
	(void)pages;
	return bytes;
}

void memory_give_lines(struct gale_allocator *allocator, void *memory, size_t bytes)
{
	memory_give(allocator, memory, bytes);
}

void lock_init(struct lock *lock)
{
	(void)lock;
}

void lock_destroy(struct lock *lock)
{
	(void)lock;
}

UNCHECKED void lock_take(struct lock *lock)
{
	model_lock(lock);
}

UNCHECKED void lock_drop(struct lock *lock)
{
	model_unlock(lock);
}

/* Of shadow_latch/runtime/latch.h. */
void latch_take(const void *latch);
void latch_drop(const void *latch);

void latch_take(const void *latch)
{
	model_lock(latch);
}

void latch_drop(const void *latch)
{
	model_unlock(latch);
}

_Noreturn void gale_panic(const char *file, int line, const char *what)
{
	model_fail(file, line, what);
}

/* ---- The kernel ------------------------------------------------------------------ */

/* membarrier is the only one that is called so. */
long model_syscall(long number, ...)
{
	va_list arguments;
	int command;

	va_start(arguments, number);
	command = va_arg(arguments, int);
	va_end(arguments);
	if (kernel_has_barriers && command == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		model_barrier();
	return kernel_has_barriers ? 0 : -1;
}

int model_yield(void)
{
	return 0;
}

int model_eventfd(unsigned count, int flags)
{
	(void)count;
	(void)flags;
	kernel_event = model_take(sizeof(*kernel_event));
	return 0;
}

int model_close(int fd)
{
	return fd;
}

/* An event orders nothing but itself. */
ssize_t model_write(int fd, const void *from, size_t size)
{
	(void)fd;
	(void)from;
	(void)model_change(kernel_event, sizeof(*kernel_event), CHANGE_ADD, 1, RELAXED,
	                   "eventfd", 0);
	return (ssize_t)size;
}

ssize_t model_read(int fd, void *to, size_t size)
{
	uint64_t count = model_change(kernel_event, sizeof(*kernel_event), CHANGE_SWAP,
	                              0, RELAXED, "eventfd", 0);

	(void)fd;
	if (count == 0) {
		errno = EAGAIN;
		return -1;
	}
	*(uint64_t *)to = count;
	return (ssize_t)size;
}

uint64_t patience_now_ns(void)
{
	return 0;
}
