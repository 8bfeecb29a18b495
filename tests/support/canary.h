/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * canary.h -- how late the machine itself is, while something that must be in time runs.
 *
 * A thread on each processor, as one may stand still while the others run: whoever shares
 * the machine takes them one by one.  Each sleeps for a millisecond, again and again.
 *
 * Threads   One, the test's.
 */
#ifndef TESTS_SUPPORT_CANARY_H
#define TESTS_SUPPORT_CANARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CANARIES_MOST 16 /* a machine with more processors is watched on so many */

struct canary {
	pthread_t thread;
	size_t processor;
	uint64_t late_us; /* at most; its thread's until that was joined */
	_Atomic bool *stopping;
};

struct canaries {
	struct canary of[CANARIES_MOST];
	int count;
	_Atomic bool stopping;
};

void canaries_start(struct canaries *canaries);

/* By how much anything that slept was late, at most. */
uint64_t canaries_stop(struct canaries *canaries);

#endif
