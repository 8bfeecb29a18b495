/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * clock.c -- two clocks of the kernel, read without entering it.
 *
 * Threads   Any, at once: nothing is kept.
 */
#define _GNU_SOURCE
#include "runtime/clock.h"

#include <time.h>

#include "engine/check.h"

static uint64_t read_ns(clockid_t id)
{
	struct timespec now;

	gale_assert(clock_gettime(id, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t boot_clock_now(struct gale_clock *self)
{
	struct boot_clock *boot = (struct boot_clock *)self;

	return (read_ns(CLOCK_BOOTTIME) + boot->epoch_ns) / 1000;
}

static uint64_t boot_clock_ns(struct gale_clock *self)
{
	(void)self;
	return boottime_ns();
}

void boot_clock_init(struct boot_clock *boot)
{
	boot->clock.now_us = boot_clock_now;
	boot->clock.boot_ns = boot_clock_ns;
	/* A machine may have been up for longer than since 1970: the sum is right again. */
	boot->epoch_ns = read_ns(CLOCK_REALTIME) - read_ns(CLOCK_BOOTTIME);
}

uint64_t boottime_ns(void)
{
	return read_ns(CLOCK_BOOTTIME);
}

uint64_t patience_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}
