/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_timed.h -- what a server says of the time that its asks take, while it runs.
 *
 * Threads   The server's alone writes; http.c reads while that one has nothing to do.
 */
#ifndef BENCH_HTTP_TIMED_H
#define BENCH_HTTP_TIMED_H

#include <stdint.h>
#include <time.h>

#define TIMED_FD 3                   /* shared memory: one struct timed */
#define INSIDE_OFF "GALE_INSIDE_OFF" /* http_inside.c is not to ask, if that is there */

/* Calls, and what they took in stamps.  One during which another thread had the processor
 * is not timed. */
struct timed_calls {
	uint64_t count;
	uint64_t timed;
	uint64_t took;
};

struct timed {
	struct timed_calls asks;
	struct timed_calls prefetches; /* for asks */
	struct timed_calls ticks;
	struct timed_calls takes; /* of completions */
	uint64_t pending;         /* asks that were */
};

/* What is before it is done, and what comes after has not begun: a time between two of
 * them is never too short. */
static inline uint64_t stamp(void)
{
#ifdef __x86_64__
	uint64_t now;

	__builtin_ia32_lfence();
	now = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return now;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

#endif
