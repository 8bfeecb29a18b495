/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis.c -- what does an ask of a Redis server cost, over what the server itself takes?
 *
 * On the server's own socket; links.c has the same from further away.
 */
#include <stdio.h>

#include "bench/redis_bare.h"
#include "bench/servers.h"
#include "runtime/memory.h"
#include "stores/redis/kind.h"
#include "tests/support/redis_server.h"

#define MANY_KEYS 1000000

static struct redis_server server;
static struct redis_bare bare;
static struct asker few, many;

static void start(void)
{
	if (bare.context)
		return;
	redis_server_start(&server, NULL);
	redis_bare_open(&bare, redisConnectUnix(server.socket));
}

static void prepare_bare(void *arg)
{
	(void)arg;
	start();
}

static void prepare(void *arg)
{
	struct asker *asker = arg;
	char url[160];
	enum gale_err err;

	start();
	if (asker->store)
		return;
	snprintf(url, sizeof(url), "redis://%s?prefix=%s:", server.socket,
	         asker == &few ? "few" : "many");
	asker_open(asker, redis_kind(memory_default(), url, &err),
	           asker == &few ? TOGETHER : (bench_is_smoke() ? 1000 : MANY_KEYS));
}

static void run_ping(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			redis_bare_ping(&bare);
}

static void run_least(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0)
			redis_bare_least(&bare);
}

static void run_least_pipelined(struct bench *b)
{
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		for (uint64_t done = 0; done < n; done += TOGETHER) {
			for (int i = 0; i < TOGETHER; i++)
				redisAppendCommand(bare.context,
				                   "EVALSHA %s 1 bare%d 1000",
				                   bare.sha1, i);
			for (int i = 0; i < TOGETHER; i++) {
				void *reply = NULL;

				redisGetReply(bare.context, &reply);
				redis_bare_expect(reply, REDIS_REPLY_INTEGER);
			}
		}
}

static void row(const char *name, void (*run)(struct bench *), struct asker *asker,
                const char *floor, double bar)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = asker ? prepare : prepare_bare,
	                               .arg = asker,
	                               .waits = true,
	                               .floor = floor,
	                               .bar = bar });
}

void ask_redis(void)
{
	row("redis/PING, bare", run_ping, NULL, NULL, 0);
	row("redis/least script, bare", run_least, NULL, "redis/PING, bare", 0);
	row("redis/least script, bare, 64 deep", run_least_pipelined, NULL,
	    "redis/PING, bare", 0);
	row("redis/a lease at a time", run_lend_one, &few, "redis/PING, bare", 1.15);
	row("redis/a step at a time", run_step_one, &few, "redis/PING, bare", 0);
	row("redis/64 steps at a time", run_step_many, &few,
	    "redis/least script, bare, 64 deep", 1.25);
	row("redis/64 leases at a time", run_lend_many, &few,
	    "redis/least script, bare, 64 deep", 1.25);
	row("redis/64 leases at a time, a call", run_lend_many, &few,
	    "redis/a lease at a time", 1 / 25.0);
	row("redis/64 leases at a time, 1,000,000 keys", run_lend_many, &many,
	    "redis/a lease at a time", 1 / 13.0);
}
