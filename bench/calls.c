/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * calls.c -- what does a call cost at a Redis server, its leases and all?
 *
 * Through gale.h, on the server's own socket, by the clock on the wall: all calls of a run over
 * the time from the first to the last answer.  Of one hot key, as fast as they are answered, with
 * leases of 1,000 and of learned sizes; and of keys that are new, each of which needs a lease,
 * many under way or one: by way of the shard's thread, or where the thread that waits drives
 * the shard itself.  Some with a node that polls before it sleeps.
 *
 * Threads   One asks; the shard's.
 */
#include <poll.h>
#include <stdio.h>

#include <gale/gale.h>

#include "bench/bench.h"
#include "bench/crowd.h"
#include "bench/keys.h"
#include "runtime/clock.h"
#include "tests/support/redis_server.h"

#define HOT_CALLS 20000000
#define BATCH 1000
#define NEW_KEYS 1000000
#define NEW_ALONE 20000
#define UNDER_WAY 64
#define WARM 100000
#define SMOKE_PART 1000
#define WITHIN GALE_SECONDS(10)
#define POLL_US 100

struct node {
	struct redis_server server;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_seat *seat;
	uint64_t pending;
};

/* ---- There ----------------------------------------------------------------------- */

static void open_node(struct node *node, uint32_t poll_us, bool turns)
{
	struct gale_store_config store = { .quarantine_us = 1 };
	struct gale_config config = { .shards = 1,
		                      .max_keys = 2 * NEW_KEYS,
		                      .poll_us = poll_us,
		                      .turns = turns };
	char url[160];

	redis_server_start(&node->server, NULL);
	snprintf(url, sizeof(url), "redis://%s", node->server.socket);
	store.url = url;
	crowd_must(gale_runtime_open(&config, &node->runtime));
	crowd_must(gale_store_open(node->runtime, &store, &node->store));
	crowd_must(gale_join(node->runtime, &node->seat));
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
	redis_server_stop(&node->server);
}

/* batch: 0: sizes are learned. */
static struct gale_limiter *open_limiter(struct node *node, uint64_t batch)
{
	struct gale_limiter_config config = {
		.name = "calls",
		.rule = gale_fixed_window(UINT64_C(1) << 50, GALE_HOURS(1)),
		.mode = GALE_LEASED,
		.store = node->store,
		.lease = { .sizing = batch ? GALE_SIZE_FIXED : (enum gale_sizing)0,
		           .batch = batch,
		           .patience_us = WITHIN },
	};
	struct gale_limiter *limiter;

	crowd_must(gale_limiter_open(node->runtime, &config, &limiter));
	return limiter;
}

/* A server that has just been started grants nothing of that second. */
static void wait_for_first(struct node *node, struct gale_limiter *limiter)
{
	struct key key = key_of(UINT64_C(1) << 40);

	for (int i = 0; i < 500; i++) {
		if (gale_wait(node->seat, limiter, &key, sizeof(key), 1, WITHIN)
		        .verdict == GALE_ALLOW)
			return;
		poll(NULL, 0, 10);
	}
	bench_fail("a first lease");
}

/* ---- Calls ----------------------------------------------------------------------- */

/* As fast as they are answered, with fewer than under_way of them waiting. */
static void call(struct node *node, struct gale_limiter *limiter, uint64_t first,
                 uint64_t count, bool one_key, uint64_t under_way)
{
	for (uint64_t i = 0; i < count; i++) {
		struct key key = key_of(one_key ? first : first + i);
		struct gale_answer answer =
		    gale_ask(node->seat, limiter, &key, sizeof(key), 1, NULL);

		bench_expect(answer.verdict != GALE_DENY, "an answer");
		node->pending += answer.verdict == GALE_PENDING;
		if (i % 1024 == 0)
			gale_tick(node->seat);
		while (node->pending >= under_way)
			node->pending -= crowd_hear(node->seat);
	}
	while (node->pending > 0)
		node->pending -= crowd_hear(node->seat);
}

static uint64_t many(uint64_t count)
{
	return bench_is_smoke() ? count / SMOKE_PART : count;
}

static double ns_of_call(struct node *node, struct gale_limiter *limiter,
                         uint64_t first, uint64_t count, bool one_key,
                         uint64_t under_way)
{
	uint64_t began = patience_now_ns();

	call(node, limiter, first, count, one_key, under_way);
	return (double)(patience_now_ns() - began) / (double)count;
}

static double hot(struct node *node, struct gale_limiter *limiter)
{
	call(node, limiter, 0, many(WARM), /* one_key= */ true, 1);
	return ns_of_call(node, limiter, 0, many(HOT_CALLS), /* one_key= */ true, 1);
}

static double new_ones(struct node *node, struct gale_limiter *limiter)
{
	return ns_of_call(node, limiter, 0, many(NEW_KEYS), /* one_key= */ false,
	                  UNDER_WAY);
}

static double new_ones_alone(struct node *node, struct gale_limiter *limiter)
{
	uint64_t began = patience_now_ns(), count = many(NEW_ALONE);

	for (uint64_t i = 0; i < count; i++) {
		struct key key = key_of(i);

		bench_expect(
		    gale_wait(node->seat, limiter, &key, sizeof(key), 1, WITHIN)
			    .verdict == GALE_ALLOW,
		    "a lease");
	}
	return (double)(patience_now_ns() - began) / (double)count;
}

/* ---- Rows ------------------------------------------------------------------------ */

struct row {
	const char *name;
	double (*ask)(struct node *, struct gale_limiter *);
	uint64_t batch;
	uint32_t poll_us;
	bool turns;
};

static const struct row rows[] = {
	{ "calls/Redis, one hot key, leases of 1,000", hot, BATCH, 0, false },
	{ "calls/Redis, one hot key, leases of 1,000, polls", hot, BATCH, POLL_US,
	  false },
	{ "calls/Redis, one hot key, learned sizes", hot, 0, 0, false },
	{ "calls/Redis, 1,000,000 keys, each new, 64 under way", new_ones, BATCH, 0,
	  false },
	{ "calls/Redis, 20,000 keys, each new, one at a time", new_ones_alone, BATCH, 0,
	  false },
	{ "calls/Redis, 20,000 keys, each new, one at a time, in turns", new_ones_alone,
	  BATCH, 0, true },
	{ "calls/Redis, 20,000 keys, each new, one at a time, polls", new_ones_alone,
	  BATCH, POLL_US, false },
	{ "calls/Redis, 20,000 keys, each new, one at a time, in turns, polls",
	  new_ones_alone, BATCH, POLL_US, true },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* With a node and a server of its own. */
static double ns_of(const struct row *row)
{
	struct gale_limiter *limiter;
	struct node node = { 0 };
	double ns;

	open_node(&node, row->poll_us, row->turns);
	limiter = open_limiter(&node, row->batch);
	wait_for_first(&node, limiter);
	ns = row->ask(&node, limiter);
	gale_limiter_close(limiter);
	close_node(&node);
	return ns;
}

static void measure(void *arg, double *ret_values)
{
	(void)arg;
	for (size_t i = 0; i < ROWS; i++)
		ret_values[i] = ns_of(&rows[i]);
}

void ask_calls(void)
{
	static const char *names[ROWS];

	for (size_t i = 0; i < ROWS; i++)
		names[i] = rows[i].name;
	bench_add_figures(&(struct bench_figures){ .names = names,
	                                           .count = ROWS,
	                                           .unit = "ns",
	                                           .measure = measure,
	                                           .processes = 3 });
}
