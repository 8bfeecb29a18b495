/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_timed.c -- examples/httpd with a watch held to what it asks of gale.
 *
 * The linker puts these functions before the library's (--wrap).  Of each time, what two
 * stamps take with nothing in between is taken off: measured before each call, in the
 * same place.
 *
 * Threads   The one that serves.
 */
#define _GNU_SOURCE
#include "bench/http_timed.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <gale/gale.h>

#define HELD_UP                                                                        \
	100000 /* stamps, tens of microseconds: no call takes that long by itself */

static struct timed *timed;

__attribute__((constructor)) static void find_memory(void)
{
	timed =
	    mmap(NULL, sizeof(*timed), PROT_READ | PROT_WRITE, MAP_SHARED, TIMED_FD, 0);
	if (timed != MAP_FAILED)
		return;
	perror("httpd_timed: it is started by gale_http");
	exit(2);
}

struct watch {
	uint64_t began;
	uint64_t nothing; /* what two stamps take */
};

static struct watch start(void)
{
	uint64_t first = stamp(), began = stamp();

	return (struct watch){ began, began - first };
}

static void stop(const struct watch *watch, struct timed_calls *calls)
{
	uint64_t took = stamp() - watch->began;

	calls->count++;
	if (took > HELD_UP)
		return;
	calls->timed++;
	calls->took += took > watch->nothing ? took - watch->nothing : 0;
}

struct gale_answer __real_gale_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   void *tag);
struct gale_answer __wrap_gale_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   void *tag);
void __real_gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                          const void *key, size_t key_len);
void __wrap_gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                          const void *key, size_t key_len);
void __real_gale_tick(struct gale_seat *seat);
void __wrap_gale_tick(struct gale_seat *seat);
size_t __real_gale_seat_completions(struct gale_seat *seat,
                                    struct gale_completion *ret_completions,
                                    size_t max);
size_t __wrap_gale_seat_completions(struct gale_seat *seat,
                                    struct gale_completion *ret_completions,
                                    size_t max);

struct gale_answer __wrap_gale_ask(struct gale_seat *seat, struct gale_limiter *limiter,
                                   const void *key, size_t key_len, uint64_t cost,
                                   void *tag)
{
	struct watch watch = start();
	struct gale_answer answer =
	    __real_gale_ask(seat, limiter, key, key_len, cost, tag);

	stop(&watch, &timed->asks);
	timed->pending += answer.verdict == GALE_PENDING;
	return answer;
}

void __wrap_gale_prefetch(struct gale_seat *seat, struct gale_limiter *limiter,
                          const void *key, size_t key_len)
{
	struct watch watch = start();

	__real_gale_prefetch(seat, limiter, key, key_len);
	stop(&watch, &timed->prefetches);
}

void __wrap_gale_tick(struct gale_seat *seat)
{
	struct watch watch = start();

	__real_gale_tick(seat);
	stop(&watch, &timed->ticks);
}

size_t __wrap_gale_seat_completions(struct gale_seat *seat,
                                    struct gale_completion *ret_completions, size_t max)
{
	struct watch watch = start();
	size_t count = __real_gale_seat_completions(seat, ret_completions, max);

	stop(&watch, &timed->takes);
	return count;
}
