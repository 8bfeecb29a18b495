/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* counter.c -- how fast a counter runs, found by looking at a clock beside it. */
#define _GNU_SOURCE
#include "runtime/counter.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/clock.h"

#define LOOK_MOST_NS 1000                /* one that took longer was disturbed */
#define RATE_LEAST_NS UINT64_C(16000000) /* two looks are wrong by 2000 of these */
#define RATE_MOST_NS UINT64_C(1000000000)
#define SPEEDUP 1024 /* the rate is too fast by one in so many: 977 ppm */
#define RATE_MOST (UINT64_C(1) << 33)  /* a counter of half a gigahertz, and faster */
#define RATE_LEAST (UINT64_C(1) << 29) /* ... up to eight */

static void forget(struct counter *counter)
{
	*counter = (struct counter){ 0 };
}

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

static void measure(struct counter *counter)
{
	uint64_t ns = counter->ns - counter->from_ns;
	uint64_t ticks = counter->ticks - counter->from_ticks;
	uint64_t rate = ticks > 0 ? (ns << 32) / ticks : 0;

	rate += rate / SPEEDUP;
	if (rate < RATE_LEAST || rate > RATE_MOST || !agrees(counter, rate)) {
		forget(counter);
		return;
	}
	counter->rate = rate;
	counter->good = (COUNTER_GOOD_NS << 32) / rate; /* K2 */
	counter->from_ticks = counter->ticks;
	counter->from_ns = counter->ns;
}

void counter_learn(struct counter *counter, const struct counter_look *look)
{
	uint64_t ns = look->after_ns - counter->from_ns;

	if (look->after_ns - look->before_ns > LOOK_MOST_NS) {
		counter->good = 0; /* until the next one: the rate is still known */
		return;
	}
	if (ns > RATE_MOST_NS)
		forget(counter);
	counter->ticks = look->ticks;
	counter->ns = look->after_ns; /* K1: what it was a little later */
	if (counter->from_ns == 0) {
		counter->from_ticks = look->ticks;
		counter->from_ns = look->after_ns;
	} else if (ns >= RATE_LEAST_NS) {
		measure(counter);
	} else if (counter->rate > 0) {
		counter->good = (COUNTER_GOOD_NS << 32) / counter->rate;
	}
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
