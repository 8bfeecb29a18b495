/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* moment.c -- CLOCK_REALTIME in microseconds. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/moment.h"

#include <time.h>

uint64_t wall_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void nap(uint64_t us)
{
	const struct timespec time = { .tv_sec = (time_t)(us / 1000000),
		                       .tv_nsec = (long)(us % 1000000) * 1000 };

	nanosleep(&time, NULL);
}
