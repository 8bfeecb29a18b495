/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * growth.c -- how long is the longest turn while a table grows?
 *
 * New keys are added from an empty table on, 16 at a time: a turn of a shard with 16 misses.
 * Turns are timed by the thread's own processor time, faults on fresh memory included, so
 * that other threads do not count.  Five processes do the same, and of each turn the shortest of its times
 * counts: what makes one longer at times is the machine.  Those of a table that stands are the others
 * of the same run, in which nothing is cleared, carried or given back.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/memory.h"
#include "shards/hash.h"
#include "shards/lender.h"
#include "shards/purses.h"
#include "stores/memory.h"
#include "stores/stripe.h"

#define RUNS 5
#define A_TURN 16

static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Turns in several processes -------------------------------------------------- */

struct turn {
	uint64_t ns; /* the shortest so far; 0: none */
	bool grows;
};

static void keep_shortest(struct turn *turn, uint64_t since_ns)
{
	uint64_t ns = processor_ns() - since_ns;

	if (turn->ns == 0 || ns < turn->ns)
		turn->ns = ns;
}

typedef void turns_fn(uint64_t count, struct turn *turns);

static void run_all(turns_fn *run, uint64_t count, struct turn *turns)
{
	for (int i = 0; i < RUNS; i++) {
		pid_t pid = fork();
		int status;

		bench_expect(pid >= 0, "a process");
		if (pid == 0) {
			run(count, turns);
			_exit(0);
		}
		bench_expect(waitpid(pid, &status, 0) == pid && status == 0,
		             "a run of all turns");
	}
}

/* In us, of those that grow and of those that do not. */
static void longest_of(turns_fn *run, uint64_t count, double *ret_us)
{
	uint64_t most = count / A_TURN + 1;
	struct turn *turns = mmap(NULL, most * sizeof(*turns), PROT_READ | PROT_WRITE,
	                          MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	bench_expect(turns != MAP_FAILED, "memory of turns");
	run_all(run, count, turns);
	ret_us[0] = ret_us[1] = 0;
	for (uint64_t i = 0; i < most; i++) {
		double us = (double)turns[i].ns / 1000;

		if (us > ret_us[!turns[i].grows])
			ret_us[!turns[i].grows] = us;
	}
	munmap(turns, most * sizeof(*turns));
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

static void turns_of_shard(uint64_t count, struct turn *turns)
{
	struct evictor evictor = { evict, evict };
	struct lender lender = { .lending = LENDING_UNITS };
	struct purses set = { 0 };
	struct grace grace = { 0 };

	grace_open(&grace);
	bench_expect(purses_open(&set, memory_default(), &grace, &evictor,
	                         (uint32_t)count + A_TURN),
	             "a shard's purses");
	for (uint64_t id = 0; id < count; id += A_TURN, turns++) {
		uint64_t since = processor_ns();
		bool stood = stands(&set);

		for (uint64_t i = id; i < id + A_TURN; i++)
			add_purse(&set, &lender, i);
		purses_fade(&set);
		purses_turn(&set);
		keep_shortest(turns, since);
		turns->grows = !stood || !stands(&set);
	}
	purses_close(&set);
	grace_close(&grace);
}

static void longest_of_shard(void *arg, double *ret_us)
{
	longest_of(turns_of_shard, keys_in(*(uint64_t *)arg), ret_us);
}

/* ---- The embedded store ---------------------------------------------------------- */

/* Its keys lie alike in each process. */
static void turns_of_store(uint64_t count, struct turn *turns)
{
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
	memset(((struct memory_store *)store)->secret, 0x5a, XXH3_SECRET_SIZE_MIN);
	for (uint64_t id = 0; id < count; id += A_TURN, turns++) {
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
		keep_shortest(turns, since);
	}
	store->ops->close(store);
}

static void longest_of_store(void *arg, double *ret_us)
{
	double us[2];

	longest_of(turns_of_store, keys_in(*(uint64_t *)arg), us);
	ret_us[0] = us[1];
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
	});
	bench_add_figures(&(struct bench_figures){
	    .names = store,
	    .count = 1,
	    .unit = "us",
	    .measure = longest_of_store,
	    .arg = count,
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
