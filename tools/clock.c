/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.c -- CLOCK_BOOTTIME, set to UTC once.
 *
 * Two clocks cannot be read at once: one is read between two readings of the other, of
 * several tries the one that took least.
 */
#define _GNU_SOURCE
#include "tools/clock.h"

#include <time.h>

#define TRIES 16

static uint64_t read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_us(struct gale_clock *self)
{
	return fleet_clock_us((const struct fleet_clock *)self);
}

struct epoch {
	uint64_t ns;
	uint64_t took_ns;
};

static struct epoch try_epoch(void)
{
	uint64_t before = read_ns(CLOCK_BOOTTIME);
	uint64_t real = read_ns(CLOCK_REALTIME);
	uint64_t took = read_ns(CLOCK_BOOTTIME) - before;

	return (struct epoch){ real - before - took / 2, took };
}

static struct epoch epoch_now(void)
{
	struct epoch best = try_epoch();

	for (int i = 1; i < TRIES; i++) {
		struct epoch epoch = try_epoch();

		if (epoch.took_ns < best.took_ns)
			best = epoch;
	}
	return best;
}

void fleet_clock_set(struct fleet_clock *clock, uint64_t epoch_ns)
{
	clock->gale.now_us = now_us;
	clock->epoch_ns = epoch_ns;
}

void fleet_clock_init(struct fleet_clock *clock)
{
	fleet_clock_set(clock, epoch_now().ns);
}

uint64_t fleet_clock_us(const struct fleet_clock *clock)
{
	return (read_ns(CLOCK_BOOTTIME) + clock->epoch_ns) / 1000;
}

uint64_t fleet_clock_apart_us(const struct fleet_clock *clock)
{
	struct epoch epoch = epoch_now();
	int64_t ahead_ns = (int64_t)(epoch.ns - clock->epoch_ns);
	uint64_t apart_ns = (uint64_t)(ahead_ns < 0 ? -ahead_ns : ahead_ns);

	/* A distance that may be the reading's own time does not count. */
	return apart_ns > epoch.took_ns + 1000 * (FLEET_CLOCK_SLACK_US - 5)
	           ? apart_ns / 1000
	           : 0;
}

uint64_t stopwatch_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}
