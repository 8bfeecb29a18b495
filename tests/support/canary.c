/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * canary.c -- sleeps on each processor, and looks at the clock.
 *
 * Threads   Each canary's fields are its own from start to stop; stopping is everybody's.
 */
#define _GNU_SOURCE
#include "tests/support/canary.h"

#include <sched.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define NAP 1000

static void stay_on(size_t processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	must(sched_setaffinity(/* this thread */ 0, sizeof(set), &set) == 0);
}

static void *canary_main(void *arg)
{
	struct canary *canary = arg;

	stay_on(canary->processor);
	while (!load_relaxed(canary->stopping)) {
		uint64_t before_ns = patience_now_ns(), late_us;

		nap(NAP);
		late_us = (patience_now_ns() - before_ns) / 1000 - NAP;
		if (canary->late_us < late_us)
			canary->late_us = late_us;
	}
	return NULL;
}

static void start(struct canaries *canaries, size_t processor)
{
	struct canary *canary = &canaries->of[canaries->count++];

	*canary =
	    (struct canary){ .processor = processor, .stopping = &canaries->stopping };
	must(pthread_create(&canary->thread, NULL, canary_main, canary) == 0);
}

void canaries_start(struct canaries *canaries)
{
	cpu_set_t set;

	canaries->count = 0;
	store_relaxed(&canaries->stopping, false);
	must(sched_getaffinity(/* this thread */ 0, sizeof(set), &set) == 0);
	for (size_t i = 0; i < CPU_SETSIZE && canaries->count < CANARIES_MOST; i++)
		if (CPU_ISSET(i, &set))
			start(canaries, i);
}

uint64_t canaries_stop(struct canaries *canaries)
{
	uint64_t late_us = 0;

	store_relaxed(&canaries->stopping, true);
	for (int i = 0; i < canaries->count; i++) {
		must(pthread_join(canaries->of[i].thread, NULL) == 0);
		if (late_us < canaries->of[i].late_us)
			late_us = canaries->of[i].late_us;
	}
	return late_us;
}
