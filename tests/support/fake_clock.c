/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fake_clock.c -- loaded into a server before its libraries (LD_PRELOAD), this is its time
 * of day: a word of memory that it shares with the test.
 *
 * PostgreSQL asks what time it is in signal handlers, too.  So nothing here waits for
 * anything, as libfaketime does: that opens a file, and now and then a server waited for
 * itself, for good.  Before the word is found, as while a malloc begins, time is real; and
 * other clocks always are.
 *
 * Threads   Any, and signal handlers.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MILLION 1000000
#define SEEN __attribute__((visibility("default")))

static _Atomic uint64_t *now_us;

__attribute__((constructor)) static void find_word(void)
{
	const char *path = getenv("GALE_FAKE_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *word = mmap(NULL, sizeof(*now_us), PROT_READ, MAP_SHARED, fd, 0);

	if (word == MAP_FAILED)
		abort();
	close(fd);
	now_us = word;
}

static long real(clockid_t clock, struct timespec *ret_time)
{
	return syscall(SYS_clock_gettime, clock, ret_time);
}

SEEN int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t now;

	if (!now_us || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return (int)real(clock, ret_time);
	now = atomic_load_explicit(now_us, memory_order_relaxed);
	ret_time->tv_sec = (time_t)(now / MILLION);
	ret_time->tv_nsec = (long)(now % MILLION * 1000);
	return 0;
}

SEEN int gettimeofday(struct timeval *restrict ret_time, void *restrict zone)
{
	struct timespec now = { 0 };

	(void)zone;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	ret_time->tv_sec = now.tv_sec;
	ret_time->tv_usec = now.tv_nsec / 1000;
	return 0;
}

SEEN time_t time(time_t *ret_time)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (ret_time)
		*ret_time = now.tv_sec;
	return now.tv_sec;
}
