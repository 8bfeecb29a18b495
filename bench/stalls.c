/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
#define _GNU_SOURCE
#include "bench/stalls.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"

#define WATCHES 4
#define SLEEP_NS 500000
#define STALL_NS 2000000 /* what is later than that */

static struct watch {
	pthread_t thread;
	struct stalls *stalls;
	int processor;
} watches[WATCHES];
static int watching;
static _Atomic bool all_end;

uint64_t stalls_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static size_t window_of(const struct stalls *stalls, uint64_t ns)
{
	uint64_t at = ns / 1000 / stalls->window_us - stalls->first;

	return at < STALLS_WINDOWS ? at : STALLS_WINDOWS - 1;
}

void stalls_woke(struct stalls *stalls, uint64_t due_ns)
{
	uint64_t now_ns = stalls_now_ns();

	if (now_ns < due_ns + STALL_NS)
		return;
	for (size_t i = window_of(stalls, due_ns); i <= window_of(stalls, now_ns); i++)
		stalls->stood[i] = true;
}

static void *watch(void *arg)
{
	const struct timespec sleep = { .tv_nsec = SLEEP_NS };
	struct watch *self = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)self->processor, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	while (!all_end) {
		uint64_t due_ns = stalls_now_ns() + SLEEP_NS;

		nanosleep(&sleep, NULL);
		stalls_woke(self->stalls, due_ns);
	}
	return NULL;
}

void stalls_begin(struct stalls *stalls, uint64_t window_us)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	memset(stalls, 0, sizeof(*stalls));
	stalls->window_us = window_us;
	stalls->first = stalls_now_ns() / 1000 / window_us;
	all_end = false;
	watching = (int)(processors < WATCHES ? processors : WATCHES);
	for (int i = 0; i < watching; i++) {
		watches[i].stalls = stalls;
		watches[i].processor = i;
		bench_expect(
		    pthread_create(&watches[i].thread, NULL, watch, &watches[i]) == 0,
		    "a watch");
	}
}

void stalls_note(struct stalls *stalls, uint64_t asked, uint64_t waited)
{
	size_t at = window_of(stalls, stalls_now_ns());

	stalls->asked[at] += asked;
	stalls->waited[at] += waited;
}

static double part_of(uint64_t part, uint64_t all)
{
	return all > 0 ? (double)part / (double)all : 0;
}

void stalls_end(struct stalls *stalls, struct stalls_found *ret_found)
{
	uint64_t asked[2] = { 0 }, waited[2] = { 0 }, windows[2] = { 0 };

	all_end = true;
	for (int i = 0; i < watching; i++)
		pthread_join(watches[i].thread, NULL);
	for (size_t i = 0; i < STALLS_WINDOWS; i++) {
		bool quiet = !stalls->stood[i] && (i == 0 || !stalls->stood[i - 1]);

		asked[quiet] += stalls->asked[i];
		waited[quiet] += stalls->waited[i];
		windows[quiet] += stalls->asked[i] > 0;
	}
	ret_found->waited = part_of(waited[0] + waited[1], asked[0] + asked[1]);
	ret_found->in_quiet = part_of(waited[1], asked[1]);
	ret_found->left_out = part_of(windows[0], windows[0] + windows[1]);
}
