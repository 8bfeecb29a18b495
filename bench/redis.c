/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis.c -- what does an ask of a Redis server cost, over what the server itself takes?
 *
 * On the server's own socket; links.c has the same from further away.  How many leases a second
 * calls of 64 get is measured with one call at a time, and with UNDER_WAY_MOST under way, as a
 * shard sends the next without waiting for the last.  Calls take turns
 * (turns.h): one at a time they are mostly two processes going to sleep and being woken, and
 * what that takes changes from one second to the next.
 *
 * Threads   One.
 */
#include <stdio.h>

#include "bench/redis_bare.h"
#include "bench/servers.h"
#include "bench/turns.h"
#include "runtime/memory.h"
#include "stores/redis/kind.h"
#include "tests/support/redis_server.h"

#define MANY_KEYS 1000000
#define IN_A_ROW 20
#define POLL_NS 100000
#define AHEAD_BATCHES 64

enum call {
	PING,
	LEAST,
	LEASE,
	LEASE_POLLED,
	STEP,
	LEASES,
	LEASES_OF_MANY,
	LEASES_AHEAD, /* AHEAD_BATCHES of TOGETHER */
	LEASES_OF_MANY_AHEAD,
	STEPS,
	LEAST_PIPELINED,
	CALLS,
};

/* A server, and its askers. */
struct place {
	struct turns turns; /* first */
	struct redis_server server;
	struct redis_bare bare;
	struct asker few, many;
};

static void least_pipelined(struct redis_bare *bare)
{
	for (int i = 0; i < TOGETHER; i++)
		redisAppendCommand(bare->context, "EVALSHA %s 1 bare%d 1000",
		                   bare->sha1, i);
	for (int i = 0; i < TOGETHER; i++) {
		void *reply = NULL;

		redisGetReply(bare->context, &reply);
		redis_bare_expect(reply, REDIS_REPLY_INTEGER);
	}
}

static void make(struct turns *turns, unsigned call)
{
	struct place *place = (struct place *)turns;

	switch ((enum call)call) {
	case PING:
		redis_bare_ping(&place->bare);
		break;
	case LEAST:
		redis_bare_least(&place->bare);
		break;
	case LEASE:
		asker_lend(&place->few, 1);
		break;
	case LEASE_POLLED:
		place->few.poller.poll_ns = POLL_NS;
		asker_lend(&place->few, 1);
		place->few.poller.poll_ns = 0;
		break;
	case STEP:
		asker_step(&place->few, 1);
		break;
	case LEASES:
		asker_lend(&place->few, TOGETHER);
		break;
	case LEASES_OF_MANY:
		asker_lend(&place->many, TOGETHER);
		break;
	case LEASES_AHEAD:
		asker_lend_ahead(&place->few, AHEAD_BATCHES, UNDER_WAY_MOST);
		break;
	case LEASES_OF_MANY_AHEAD:
		asker_lend_ahead(&place->many, AHEAD_BATCHES, UNDER_WAY_MOST);
		break;
	case STEPS:
		asker_step(&place->few, TOGETHER);
		break;
	default:
		least_pipelined(&place->bare);
		break;
	}
}

/* ---- There ----------------------------------------------------------------------- */

static void open_asker(const struct place *place, struct asker *asker,
                       const char *prefix, uint64_t keys)
{
	char url[160];
	struct url_fault fault;

	snprintf(url, sizeof(url), "redis://%s?prefix=%s:", place->server.socket,
	         prefix);
	asker_open(asker, redis_kind(memory_default(), url, &fault), keys);
}

/* All keys are there: those that are new are another question. */
static void place_open(struct place *place)
{
	uint64_t many_keys = bench_is_smoke() ? 1000 : MANY_KEYS;

	redis_server_start(&place->server, NULL);
	redis_bare_open(&place->bare, redisConnectUnix(place->server.socket));
	open_asker(place, &place->few, "few", TOGETHER);
	open_asker(place, &place->many, "many", many_keys);
	for (uint64_t i = 0; i < many_keys; i += TOGETHER)
		asker_lend(&place->many, TOGETHER);
}

/* ---- Figures --------------------------------------------------------------------- */

static const unsigned parts[CALLS] = {
	[PING] = 1,
	[LEAST] = 1,
	[LEASE] = 1,
	[LEASE_POLLED] = 1,
	[STEP] = 1,
	[LEASES] = TOGETHER,
	[LEASES_OF_MANY] = TOGETHER,
	[LEASES_AHEAD] = AHEAD_BATCHES * TOGETHER,
	[LEASES_OF_MANY_AHEAD] = AHEAD_BATCHES * TOGETHER,
	[STEPS] = TOGETHER,
	[LEAST_PIPELINED] = TOGETHER,
};

static const struct turns_figure figures[] = {
	{ "redis/PING, bare", PING, false, 0, 0 },
	{ "redis/least script, bare", LEAST, false, 0, 0 },
	{ "redis/least script, bare, 64 deep, each", LEAST_PIPELINED, false, 0, 0 },
	{ "redis/a lease at a time", LEASE, false, 0, 0 },
	{ "redis/a lease at a time, polled for", LEASE_POLLED, false, 0, 0 },
	{ "redis/a step at a time", STEP, false, 0, 0 },
	{ "redis/64 leases at a time, each", LEASES, false, 0, 0 },
	{ "redis/64 leases at a time of 1,000,000 keys, each", LEASES_OF_MANY, false, 0,
	  0 },
	{ "redis/64 leases at a time, eight calls under way, each", LEASES_AHEAD, false,
	  0, 0 },
	{ "redis/64 steps at a time, each", STEPS, false, 0, 0 },
	{ "redis/least script to PING", LEAST, true, PING, 0 },
	{ "redis/lease to PING", LEASE, true, PING, 1.15 },
	{ "redis/lease to PING, polled for", LEASE_POLLED, true, PING, 1.15 },
	{ "redis/lease to least script", LEASE, true, LEAST, 0 },
	{ "redis/step to PING", STEP, true, PING, 0 },
	{ "redis/64 leases to least script, 64 deep", LEASES, true, LEAST_PIPELINED,
	  1.25 },
	{ "redis/64 steps to least script, 64 deep", STEPS, true, LEAST_PIPELINED,
	  1.25 },
	{ "redis/one of 64 to one at a time", LEASES, true, LEASE, 1 / 25.0 },
	{ "redis/one of 64 to one at a time, 1,000,000 keys", LEASES_OF_MANY, true,
	  LEASE, 1 / 13.0 },
	{ "redis/one of 64, eight calls under way, to one at a time", LEASES_AHEAD,
	  true, LEASE, 1 / 25.0 },
	{ "redis/one of 64, eight calls under way, to PING", LEASES_AHEAD, true, PING,
	  0 },
	{ "redis/one of 64, eight calls under way, to one at a time, 1,000,000 keys",
	  LEASES_OF_MANY_AHEAD, true, LEASE, 1 / 13.0 },
};

static void measure(const struct turns_table *self, double *ret_us)
{
	static struct place place = { .turns = { make, 0, CALLS, IN_A_ROW, NULL } };

	(void)self;
	place_open(&place);
	turns_time(&place.turns, ret_us);
	redis_server_stop(&place.server);
}

void ask_redis(void)
{
	static const struct turns_table table = {
		.figures = figures,
		.count = sizeof(figures) / sizeof(figures[0]),
		.parts = parts,
		.unit = "us",
		.units_a_us = 1,
		.measure = measure,
	};

	turns_add(&table);
}
