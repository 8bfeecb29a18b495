/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleets.c -- how long is a store busy with a lease of a hot key, and how does that grow with the
 * fleet?
 *
 * Nodes ask about one key, in turn, each time for some units of the same window; all of them have
 * been lent to before.  At Redis and PostgreSQL as busy.h has it; the embedded store by the clock.
 *
 * Threads   One.
 */
#include "bench/busy.h"
#include "bench/servers.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "stores/memory.h"

#define SIZES 5
#define NODES_MOST 10000
#define LEASES 4000 /* that are timed, of a fleet */
#define LEASES_SMOKE 40
#define WINDOW 20 /* leases of which Redis tells the mean */
#define PROCESSES 3

static struct asker asker; /* at the server that is measured */

static size_t leases_timed(void)
{
	return bench_is_smoke() ? LEASES_SMOKE : LEASES;
}

static uint64_t nodes_of(size_t size)
{
	static const uint64_t nodes[SIZES] = { 1, 2, 8, 1000, NODES_MOST },
			      nodes_smoke[SIZES] = { 1, 2, 8, 20, 100 };

	return (bench_is_smoke() ? nodes_smoke : nodes)[size];
}

static void lend_once(void *arg)
{
	(void)arg;
	asker_lend(&asker, 1);
}

/* Another key for each fleet. */
static void meet(size_t size)
{
	asker.keys = 1;
	asker.first = size + 1;
	asker.nodes = nodes_of(size);
	for (uint64_t node = 0; node < 2 * asker.nodes; node++)
		asker_lend(&asker, 1);
}

static void measure_redis(void *arg, double *ret_us)
{
	static double us[LEASES / WINDOW];
	size_t windows = leases_timed() / WINDOW;

	(void)arg;
	asker_open(&asker, busy_redis_start(), 1);
	for (size_t size = 0; size < SIZES; size++) {
		meet(size);
		for (size_t at = 0; at < windows; at++)
			us[at] = busy_redis_us(lend_once, NULL, WINDOW);
		ret_us[size] = busy_median(us, windows);
	}
	busy_redis_stop();
}

static void measure_postgres(void *arg, double *ret_us)
{
	size_t count = leases_timed();

	(void)arg;
	asker_open(&asker, busy_postgres_start(), 1);
	for (size_t size = 0; size < SIZES; size++) {
		uint64_t began;

		meet(size);
		began = busy_postgres_ns();
		for (size_t i = 0; i < count; i++)
			asker_lend(&asker, 1);
		ret_us[size] =
		    (double)(busy_postgres_ns() - began) / 1000 / (double)count;
	}
	busy_postgres_stop();
}

static void measure_memory(void *arg, double *ret_us)
{
	struct memory_config config = { .allocator = memory_default(),
		                        .name = "",
		                        .max_keys = NODES_MOST };
	size_t count = 100 * leases_timed();

	(void)arg;
	asker_open_embedded(&asker, memory_open(&config), 1);
	for (size_t size = 0; size < SIZES; size++) {
		uint64_t began;

		meet(size);
		began = patience_now_ns();
		for (size_t i = 0; i < count; i++)
			asker_lend(&asker, 1);
		ret_us[size] =
		    (double)(patience_now_ns() - began) / 1000 / (double)count;
	}
	asker.store->ops->close(asker.store);
}

#define NAMES(store)                                                                   \
	{                                                                              \
		"fleets/" store ", 1 node", "fleets/" store ", 2 nodes",               \
		    "fleets/" store ", 8 nodes", "fleets/" store ", 1,000 nodes",      \
		    "fleets/" store ", 10,000 nodes"                                   \
	}

static void add(void (*measure)(void *arg, double *ret_us),
                const char *const names[SIZES])
{
	bench_add_figures(&(struct bench_figures){ .names = names,
	                                           .count = SIZES,
	                                           .unit = "us",
	                                           .measure = measure,
	                                           .processes = PROCESSES });
}

void ask_fleets(void)
{
	static const char *const at_memory[] = NAMES("memory");
	static const char *const at_redis[] = NAMES("Redis");
	static const char *const at_postgres[] = NAMES("PostgreSQL");

	add(measure_memory, at_memory);
	add(measure_redis, at_redis);
	add(measure_postgres, at_postgres);
}
