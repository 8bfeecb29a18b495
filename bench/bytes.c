/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bytes.c -- how much memory does a key take in the embedded store?
 *
 * What the process grows by, in resident memory, when a store takes in 1,000,000 keys
 * of 16 bytes, over their number: entries, table, heap and what malloc adds.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/memory.h"
#include "stores/memory.h"

#define COUNT 1000000
#define BAR (160 + sizeof(struct key))

static double resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long all = 0, resident = 0;

	bench_expect(statm && fscanf(statm, "%ld %ld", &all, &resident) == 2, "statm");
	fclose(statm);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void add(struct store *store, const struct rule *rule, uint64_t id)
{
	struct key key = key_of(id);
	struct store_op op = {
		.verb = STORE_STEP,
		.key = (const uint8_t *)&key,
		.key_len = sizeof(key),
		.rule = rule,
		.cost = 1,
	};

	bench_expect(store_run(store, &op, /* patient= */ true) == STORE_DONE &&
	                 op.answer.verdict == GALE_ALLOW,
	             "a new key");
}

static double bytes_per_key(void *arg)
{
	struct gale_rule (*rule_of)(void) = *(struct gale_rule(**)(void))arg;
	struct gale_rule config = rule_of();
	struct memory_config store_config = {
		.name = "",
		.max_keys = COUNT,
		.allocator = memory_default(),
	};
	struct store *store = memory_open(&store_config);
	uint64_t count = keys_in(COUNT);
	double before = resident_bytes();
	struct rule rule;

	bench_expect(store != NULL, "opening a store");
	bench_expect(rule_compile(&config, &rule) == GALE_ERR_OK, "a rule");
	for (uint64_t id = 0; id < count; id++)
		add(store, &rule, id);
	return (resident_bytes() - before) / (double)count;
}

/* ---- The rows -------------------------------------------------------------------- */

/* All are of a kind that keeps its keys for as long as we measure. */
static struct gale_rule fixed_window(void)
{
	return gale_fixed_window(10, GALE_SPAN_MAX_US);
}
static struct gale_rule gcra(void)
{
	return gale_gcra(10, GALE_DAYS(10), 10);
}
static struct gale_rule sliding_window(void)
{
	return gale_sliding_window(10, GALE_DAYS(10), 10);
}
static struct gale_rule sliding_log(void)
{
	return gale_sliding_log(10, GALE_DAYS(10));
}

void ask_bytes(void)
{
	static struct gale_rule (*rules[])(void) = { fixed_window, gcra, sliding_window,
		                                     sliding_log };

	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a key, fixed window",
	    .unit = "bytes",
	    .measure = bytes_per_key,
	    .arg = &rules[0],
	    .bar = BAR,
	});
	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a key, gcra",
	    .unit = "bytes",
	    .measure = bytes_per_key,
	    .arg = &rules[1],
	    .bar = BAR,
	});
	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a key, sliding window, 10 buckets",
	    .unit = "bytes",
	    .measure = bytes_per_key,
	    .arg = &rules[2],
	});
	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a key, sliding log, 1 stamp",
	    .unit = "bytes",
	    .measure = bytes_per_key,
	    .arg = &rules[3],
	});
}
