/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* must.c -- waiting with an end to it. */
#define _POSIX_C_SOURCE 200809L
#include "tests/support/must.h"

#include <time.h>

#include "runtime/clock.h"

#define PATIENCE_NS UINT64_C(30000000000)

/* Between two looks: soon at first, then seldom, as many of them ask a server. */
#define NAP_LEAST_NS 200000
#define NAP_MOST_NS 5000000

bool becomes_true(bool (*holds)(void *arg), void *arg)
{
	struct timespec nap = { .tv_nsec = NAP_LEAST_NS };
	uint64_t deadline = patience_now_ns() + PATIENCE_NS;

	while (!holds(arg)) {
		if (patience_now_ns() > deadline)
			return false;
		nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec * 3 / 2 < NAP_MOST_NS ? nap.tv_nsec * 3 / 2
		                                                : NAP_MOST_NS;
	}
	return true;
}
