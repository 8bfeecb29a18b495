/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bytes.c -- how much memory does a key take, in the embedded store and in the node?
 *
 * What the process grows by, in resident memory, when 1,000,000 keys of 16 bytes are
 * taken in, over their number: entries, tables, heap and what malloc adds.
 *
 * A leased key is known to the node and to its store, and here both are in one process.
 * So other nodes, which know few keys at a time, lease every key first: what the process
 * grows by when one more does, and remembers them all, is that node's.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/keys.h"
#include "runtime/atomic.h"
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

/* ---- A leased key, in the node --------------------------------------------------- */

#define NODE_KEYS (1 << 20)
#define SMALL_NODE_KEYS 4096
#define UNDER_WAY 64

static void must(enum gale_err err)
{
	bench_expect(err == GALE_ERR_OK, gale_err_text(err));
}

/* Malloc, with what it has out, its own words included. */
struct counting {
	struct gale_allocator allocator; /* first */
	_Atomic uint64_t bytes;
};

static uint64_t bytes_of(void *memory)
{
	return memory ? malloc_usable_size(memory) + sizeof(size_t) : 0;
}

static void *counting_alloc(struct gale_allocator *self, size_t bytes)
{
	struct counting *counting = (struct counting *)self;
	void *memory = malloc(bytes);

	add_relaxed(&counting->bytes, bytes_of(memory));
	return memory;
}

static void counting_free(struct gale_allocator *self, void *memory, size_t bytes)
{
	struct counting *counting = (struct counting *)self;

	(void)bytes;
	sub_relaxed(&counting->bytes, bytes_of(memory));
	free(memory);
}

static struct counting counting = { { counting_alloc, counting_free }, 0 };

/* A runtime with one limiter, and who asks. */
struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

static struct node open_node(uint32_t max_keys, struct gale_allocator *allocator)
{
	struct gale_config config = { .max_keys = max_keys, .allocator = allocator };
	struct gale_store_config store = { .url = "memory:bytes",
		                           .max_keys = 2 * COUNT };
	struct gale_limiter_config limiter = {
		.name = "bytes",
		.rule = gale_fixed_window(1000, GALE_SPAN_MAX_US),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED, .batch = 10 },
	};
	struct node node;

	must(gale_runtime_open(&config, &node.runtime));
	must(gale_store_open(node.runtime, &store, &node.store));
	limiter.store = node.store;
	must(gale_limiter_open(node.runtime, &limiter, &node.limiter));
	must(gale_join(node.runtime, &node.seat));
	return node;
}

/* One that the small node had no room for, as it was just making some, is asked for
 * again. */
static void settle(struct node *node, const struct gale_completion *done)
{
	struct key key = key_of((uintptr_t)done->tag);
	struct gale_answer answer = done->answer;

	while (answer.verdict != GALE_ALLOW)
		answer = gale_wait(node->seat, node->limiter, &key, sizeof(key), 1,
		                   GALE_SECONDS(10));
}

static uint64_t answers_of(struct node *node)
{
	struct pollfd ready = { .fd = gale_seat_fd(node->seat), .events = POLLIN };
	struct gale_completion done[UNDER_WAY];
	uint64_t count;

	bench_expect(poll(&ready, 1, 10000) == 1, "answers");
	count = gale_seat_completions(node->seat, done, UNDER_WAY);
	for (uint64_t i = 0; i < count; i++)
		settle(node, &done[i]);
	return count;
}

static void lease_all(struct node *node, uint64_t count)
{
	uint64_t pending = 0;

	for (uint64_t id = 0; id < count; id++) {
		struct key key = key_of(id);
		struct gale_answer answer =
		    gale_ask(node->seat, node->limiter, &key, sizeof(key), 1,
		             (void *)(uintptr_t)id);

		bench_expect(answer.verdict == GALE_PENDING, "a new key");
		pending++;
		while (pending == UNDER_WAY || (pending > 0 && id + 1 == count))
			pending -= answers_of(node);
	}
}

/* Of the node and the store. */
static double bytes_together(void *arg)
{
	uint64_t count = keys_in(COUNT);
	double before = resident_bytes();
	struct node node = open_node(NODE_KEYS, NULL);

	(void)arg;
	lease_all(&node, count);
	return (resident_bytes() - before) / (double)count;
}

/* The store remembers each node that has leased a key, and doubles its room for them: it
 * has room for four when three have been there. */
static double bytes_of_node(void *arg)
{
	uint64_t count = keys_in(COUNT), others;
	struct node node;
	double before;

	(void)arg;
	for (int i = 0; i < 3; i++) {
		node = open_node(SMALL_NODE_KEYS, &counting.allocator);
		lease_all(&node, count);
	}
	malloc_trim(0); /* nothing that was freed is used again */
	others = load_relaxed(&counting.bytes);
	before = resident_bytes();
	node = open_node(NODE_KEYS, NULL);
	lease_all(&node, count);
	bench_expect(load_relaxed(&counting.bytes) < others + count,
	             "a store that does not grow meanwhile");
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
	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a leased key, in the node",
	    .unit = "bytes",
	    .measure = bytes_of_node,
	    .bar = BAR,
	});
	bench_add_figure(&(struct bench_figure){
	    .name = "bytes/a leased key, in the node and its embedded store",
	    .unit = "bytes",
	    .measure = bytes_together,
	});
}
