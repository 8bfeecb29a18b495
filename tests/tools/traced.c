/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * traced.c -- a process of a host, which a tracer watches: it leases from a store in memory until
 * it is ended, and then says so in gale's log.
 *
 * Threads   One, beside gale's own.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include <gale/gale.h>

int main(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct gale_limiter_config config = { .name = "api", .mode = GALE_LEASED };
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_store *store;
	struct gale_seat *seat;

	config.rule = gale_fixed_window(1000, GALE_MILLIS(10));
	if (gale_runtime_open(NULL, &runtime) ||
	    gale_store_open(runtime, NULL, &store) || gale_join(runtime, &seat))
		return 1;
	config.store = store;
	if (gale_limiter_open(runtime, &config, &limiter))
		return 1;
	puts("it leases");
	(void)fflush(stdout);
	for (;;) { /* a window of 10 ms, and a lease in it at the least */
		(void)gale_wait(seat, limiter, "alice", 5, 1, GALE_SECONDS(5));
		(void)nanosleep(&pause, NULL);
	}
}
