/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * latch.c -- waiting for a latch.
 *
 * Threads   Any.
 */
#define _POSIX_C_SOURCE 200809L
#include "runtime/latch.h"

#include <time.h>

#include "runtime/pause.h"

#define LOOKS 64 /* a step under a latch takes far less than this many pauses */

/* Only a latch that looks open is tried: a swap takes its word from the holder's cache. */
UNCHECKED void latch_wait(struct latch *latch)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	for (int looks = 1;; looks++) {
		if (!load_relaxed(&latch->taken) && latch_try(latch))
			return;
		if (looks % LOOKS == 0)
			(void)nanosleep(&nap, NULL);
		else
			pause_briefly();
	}
}
