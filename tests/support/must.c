/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* must.c -- waiting with an end to it. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/must.h"

#include <time.h>

#include "runtime/clock.h"

#define PATIENCE_NS UINT64_C(30000000000)

bool becomes_true(bool (*holds)(void *arg), void *arg)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (!holds(arg)) {
		if (patience_now_ns() > deadline)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}
