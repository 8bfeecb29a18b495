/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * counter.c -- how fast a counter runs, found by looking at a clock beside it.
 *
 * Threads   A counter is one thread's; counter_is_good: any.
 */
#define _GNU_SOURCE
#include "runtime/counter.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/clock.h"

#define LOOK_MOST_NS 250                /* one that took longer was disturbed */
#define APART_LEAST_NS UINT64_C(900000) /* looks tell a rate that is off by 278 ppm */
#define APART_MOST_NS UINT64_C(1000000000)
#define SPEEDUP 1024                   /* what a rate is too fast by: 977 ppm */
#define RATE_MOST (UINT64_C(1) << 33)  /* a counter of half a gigahertz, and faster */
#define RATE_LEAST (UINT64_C(1) << 29) /* ... up to eight */

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Is it what it was, but for what clocks are slewed by? */
static bool agrees(const struct counter *counter, uint64_t rate)
{
	return counter->rate == 0 ||
	       apart(counter->rate, rate) <= counter->rate / SPEEDUP;
}

/* Since the last look; 0: it cannot be told. */
static uint64_t measure(const struct counter *counter, const struct counter_look *look)
{
	uint64_t ns = look->after_ns - counter->ns;
	uint64_t ticks = look->ticks - counter->ticks, rate;

	if (ns > APART_MOST_NS || ticks == 0)
		return 0;
	rate = (ns << 32) / ticks;
	rate += rate / SPEEDUP;
	return rate >= RATE_LEAST && rate <= RATE_MOST && agrees(counter, rate) ? rate
	                                                                        : 0;
}

void counter_learn(struct counter *counter, const struct counter_look *look)
{
	counter->good = 0;
	if (look->after_ns - look->before_ns > LOOK_MOST_NS ||
	    look->after_ns - counter->ns < APART_LEAST_NS)
		return; /* the next one may tell more */
	counter->rate = measure(counter, look);
	counter->ticks = look->ticks;
	counter->ns = look->after_ns; /* COUNTER-1: what it was a little later */
	if (counter->rate > 0)
		counter->good = (COUNTER_GOOD_NS << 32) / counter->rate; /* COUNTER-2 */
}

#ifdef __x86_64__

/* The kernel watches its clock source, and leaves a counter that runs astray. */
bool counter_is_good(void)
{
	static const char path[] =
	    "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char name[8] = "";
	ssize_t count;

	if (fd < 0)
		return false;
	count = read(fd, name, sizeof(name) - 1);
	close(fd);
	return count > 0 && strcmp(name, "tsc\n") == 0;
}

#else

bool counter_is_good(void)
{
	return false;
}

#endif

mono counter_look(struct counter *counter)
{
	struct counter_look look;

	look.before_ns = boottime_ns();
	look.ticks = counter_ticks();
	look.after_ns = boottime_ns();
	counter_learn(counter, &look);
	return (mono){ look.after_ns };
}
