/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * growth.c -- how long is the longest turn while a table grows?
 *
 * New keys are added from an empty table on, 16 at a time: a turn of a shard with 16 misses.
 * Turns are timed by the thread's own processor time, faults on fresh memory included, so
 * that other threads do not count.  Those of a table that stands are the others of the same
 * run, in which nothing is cleared, carried or given back.
 */
#include <stdint.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/memory.h"
#include "shards/hash.h"
#include "shards/lender.h"
#include "shards/purses.h"
#include "stores/memory.h"

#define A_TURN 16

static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void keep_longest(double *longest_us, uint64_t since_ns)
{
	double us = (double)(processor_ns() - since_ns) / 1000;

	if (us > *longest_us)
		*longest_us = us;
}

/* ---- A shard --------------------------------------------------------------------- */

static void evict(struct evictor *self, struct purse *purse)
{
	(void)self;
	(void)purse;
	bench_expect(false, "room for all");
}

static void add_purse(struct purses *set, struct lender *lender, uint64_t id)
{
	struct key key = key_of(id);
	struct hash_secret secret = { UINT64_C(0x9E3779B97F4A7C15),
		                      UINT64_C(0xC2B2AE3D27D4EB4F) };
	struct purse_name name = {
		.lender = lender,
		.key = (const uint8_t *)&key,
		.key_len = sizeof(key),
		.hash = hash_short(&secret, &key, sizeof(key)),
	};

	bench_expect(purses_add(set, &name) != NULL, "a purse");
}

static bool stands(const struct purses *set)
{
	return !set->table.larger && !set->own.fading;
}

/* One that grows, and then one that stands. */
static void longest_of_shard(void *arg, double *ret_us)
{
	uint64_t count = keys_in(*(uint64_t *)arg);
	struct evictor evictor = { evict, evict };
	struct lender lender = { .lending = LENDING_UNITS };
	struct purses set = { 0 };
	struct grace grace = { 0 };

	grace_open(&grace);
	bench_expect(purses_open(&set, memory_default(), &grace, &evictor,
	                         (uint32_t)count + A_TURN),
	             "a shard's purses");
	ret_us[0] = ret_us[1] = 0;
	for (uint64_t id = 0; id < count; id += A_TURN) {
		uint64_t since = processor_ns();
		bool stood = stands(&set);

		for (uint64_t i = id; i < id + A_TURN; i++)
			add_purse(&set, &lender, i);
		purses_turn(&set);
		purses_fade(&set);
		keep_longest(&ret_us[stood && stands(&set)], since);
	}
	purses_close(&set);
	grace_close(&grace);
}

/* ---- The embedded store ---------------------------------------------------------- */

static void longest_of_store(void *arg, double *ret_us)
{
	uint64_t count = keys_in(*(uint64_t *)arg);
	struct gale_rule config = gale_fixed_window(10, GALE_SPAN_MAX_US);
	struct memory_config store_config = {
		.name = "",
		.max_keys = count + A_TURN,
		.allocator = memory_default(),
	};
	struct store *store = memory_open(&store_config);
	struct rule rule;

	bench_expect(store != NULL, "opening a store");
	bench_expect(rule_compile(&config, &rule) == GALE_ERR_OK, "a rule");
	ret_us[0] = 0;
	for (uint64_t id = 0; id < count; id += A_TURN) {
		uint64_t since = processor_ns();

		for (uint64_t i = id; i < id + A_TURN; i++) {
			struct key key = key_of(i);
			struct store_op op = {
				.verb = STORE_STEP,
				.key = (const uint8_t *)&key,
				.key_len = sizeof(key),
				.rule = &rule,
				.cost = 1,
			};

			bench_expect(store_run(store, &op, /* patient= */ true) ==
			                 STORE_DONE,
			             "a new key");
		}
		keep_longest(&ret_us[0], since);
	}
	store->ops->close(store);
}

/* ---- The rows -------------------------------------------------------------------- */

static void add_rows(uint64_t *count, const char *const *shard,
                     const char *const *store)
{
	bench_add_figures(&(struct bench_figures){
	    .names = shard,
	    .count = 2,
	    .unit = "us",
	    .measure = longest_of_shard,
	    .arg = count,
	    .processes = 3,
	});
	bench_add_figures(&(struct bench_figures){
	    .names = store,
	    .count = 1,
	    .unit = "us",
	    .measure = longest_of_store,
	    .arg = count,
	    .processes = 3,
	});
}

void ask_growth(void)
{
	static uint64_t counts[] = { 1000000, 10000000 };
	static const char *const shard[][2] = {
		{ "growth/1,000,000 keys, a shard's longest turn while it grows",
		  "growth/1,000,000 keys, a shard's longest turn while it stands" },
		{ "growth/10,000,000 keys, a shard's longest turn while it grows",
		  "growth/10,000,000 keys, a shard's longest turn while it stands" },
	};
	static const char *const store[][1] = {
		{ "growth/1,000,000 keys, the embedded store's longest 16 new keys" },
		{ "growth/10,000,000 keys, the embedded store's longest 16 new keys" },
	};

	add_rows(&counts[0], shard[0], store[0]);
	add_rows(&counts[1], shard[1], store[1]);
}
