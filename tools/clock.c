/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* clock.c -- CLOCK_BOOTTIME, set to UTC once. */
#define _GNU_SOURCE
#include "tools/clock.h"

#include <time.h>

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

void fleet_clock_init(struct fleet_clock *clock)
{
	clock->gale.now_us = now_us;
	clock->epoch_us = (read_ns(CLOCK_REALTIME) - read_ns(CLOCK_BOOTTIME)) / 1000;
}

uint64_t fleet_clock_us(const struct fleet_clock *clock)
{
	return read_ns(CLOCK_BOOTTIME) / 1000 + clock->epoch_us;
}

uint64_t stopwatch_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}
