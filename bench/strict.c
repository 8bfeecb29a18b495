/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * strict.c -- what does a strict call cost at a Redis server, against a limit by hand?
 *
 * By hand is a script that counts and expires, by hiredis, which waits for each reply. Both are
 * over TCP on this machine, of keys that are there. A strict call is gale_wait through a whole
 * runtime with one shard: as it comes, with a node that polls before it sleeps, and where the
 * thread that waits drives the shard itself. Then 64 calls under way at once, each way.
 *
 * The calls take turns (turns.h).
 *
 * Threads   One asks; a shard's for each node that has threads.
 */
#include <stdio.h>
#include <time.h>

#include <gale/gale.h>

#include "bench/crowd.h"
#include "bench/keys.h"
#include "bench/redis_bare.h"
#include "bench/turns.h"
#include "tests/support/port.h"
#include "tests/support/redis_server.h"

#define BY_HAND                                                                        \
	"local n = redis.call('INCR', KEYS[1]) "                                       \
	"if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end "                  \
	"return n <= tonumber(ARGV[1]) and 1 or 0"
#define IN_A_ROW 20
#define KEYS 1000
#define TOGETHER 64
#define POLL_US 100
#define WITHIN GALE_SECONDS(10)
#define TRIES 500

enum call {
	SCRIPT,
	WAIT,
	WAIT_POLLED,
	WAIT_IN_TURNS,
	WAIT_IN_TURNS_POLLED,
	SCRIPTS, /* TOGETHER */
	ASKS,
	ASKS_POLLED,
	CALLS,
};

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

struct place {
	struct turns turns; /* first */
	struct redis_server server;
	char url[64];
	redisContext *context;
	char sha1[41];
	struct node sleeps, polls, turned, turned_polls;
	uint64_t next; /* key */
};

/* ---- By hand --------------------------------------------------------------------- */

static void send_script(struct place *place)
{
	struct key key = key_of(place->next++ % KEYS);

	redisAppendCommand(place->context, "EVALSHA %s 1 hand:%b 1000000000 86400000",
	                   place->sha1, &key, sizeof(key));
}

static void hear_script(struct place *place)
{
	void *reply = NULL;

	redisGetReply(place->context, &reply);
	redis_bare_expect(reply, REDIS_REPLY_INTEGER);
}

static void scripts(struct place *place, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		send_script(place);
	for (unsigned i = 0; i < count; i++)
		hear_script(place);
}

static void load_script(struct place *place)
{
	redisReply *reply = redisCommand(place->context, "SCRIPT LOAD %s", BY_HAND);

	bench_expect(reply && reply->type == REDIS_REPLY_STRING && reply->len == 40,
	             "a script");
	snprintf(place->sha1, sizeof(place->sha1), "%s", reply->str);
	freeReplyObject(reply);
}

/* ---- By gale --------------------------------------------------------------------- */

static struct gale_answer wait_for_one(struct place *place, struct node *node)
{
	struct key key = key_of(place->next++ % KEYS);

	return gale_wait(node->seat, node->limiter, &key, sizeof(key), 1, WITHIN);
}

static void wait_once(struct place *place, struct node *node)
{
	bench_expect(wait_for_one(place, node).verdict == GALE_ALLOW, "an answer");
}

static void ask_together(struct place *place, struct node *node)
{
	uint64_t pending = 0;

	for (unsigned i = 0; i < TOGETHER; i++) {
		struct key key = key_of(place->next++ % KEYS);

		pending +=
		    gale_ask(node->seat, node->limiter, &key, sizeof(key), 1, NULL)
			.verdict == GALE_PENDING;
	}
	bench_expect(pending == TOGETHER, "asks that are pending");
	while (pending > 0)
		pending -= crowd_hear(node->seat);
}

static void make(struct turns *turns, unsigned call)
{
	struct place *place = (struct place *)turns;

	switch ((enum call)call) {
	case SCRIPT:
		scripts(place, 1);
		break;
	case WAIT:
		wait_once(place, &place->sleeps);
		break;
	case WAIT_POLLED:
		wait_once(place, &place->polls);
		break;
	case WAIT_IN_TURNS:
		wait_once(place, &place->turned);
		break;
	case WAIT_IN_TURNS_POLLED:
		wait_once(place, &place->turned_polls);
		break;
	case SCRIPTS:
		scripts(place, TOGETHER);
		break;
	case ASKS:
		ask_together(place, &place->sleeps);
		break;
	default:
		ask_together(place, &place->polls);
		break;
	}
}

/* ---- There ----------------------------------------------------------------------- */

/* A server that has just been started grants nothing until a second has passed; then each
 * key is asked for once. */
static void warm_up(struct place *place, struct node *node)
{
	const struct timespec moment = { .tv_nsec = 10000000 };
	int tries = 0;

	while (wait_for_one(place, node).verdict != GALE_ALLOW && tries++ < TRIES)
		nanosleep(&moment, NULL);
	for (unsigned i = 0; i < KEYS; i++)
		wait_once(place, node);
}

static void open_node(struct place *place, struct node *node, uint32_t poll_us,
                      bool turns)
{
	struct gale_config config = { .shards = 1, .poll_us = poll_us, .turns = turns };
	struct gale_store_config store = { .url = place->url, .quarantine_us = 1 };
	struct gale_limiter_config limiter = {
		.name = "strict",
		.rule = gale_fixed_window(CROWD_MUCH, GALE_SPAN_MAX_US),
	};

	crowd_must(gale_runtime_open(&config, &node->runtime));
	crowd_must(gale_store_open(node->runtime, &store, &node->store));
	limiter.store = node->store;
	crowd_must(gale_limiter_open(node->runtime, &limiter, &node->limiter));
	crowd_must(gale_join(node->runtime, &node->seat));
	warm_up(place, node);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void start_server(struct place *place)
{
	char port[8];
	const char *const options[] = { "--bind", "127.0.0.1", "--port", port, NULL };
	int number = free_port();

	snprintf(port, sizeof(port), "%d", number);
	snprintf(place->url, sizeof(place->url), "redis://127.0.0.1:%d", number);
	redis_server_start(&place->server, options);
	place->context = redisConnect("127.0.0.1", number);
	bench_expect(place->context && place->context->err == 0, "a connection");
	load_script(place);
	for (unsigned i = 0; i < KEYS; i++)
		scripts(place, 1);
}

static void measure(const struct turns_table *self, double *ret_us)
{
	static struct place place = { .turns = { make, 0, CALLS, IN_A_ROW, NULL } };

	(void)self;
	start_server(&place);
	open_node(&place, &place.sleeps, 0, false);
	open_node(&place, &place.polls, POLL_US, false);
	open_node(&place, &place.turned, 0, true);
	open_node(&place, &place.turned_polls, POLL_US, true);
	turns_time(&place.turns, ret_us);
	close_node(&place.sleeps);
	close_node(&place.polls);
	close_node(&place.turned);
	close_node(&place.turned_polls);
	redisFree(place.context);
	redis_server_stop(&place.server);
}

/* ---- Figures --------------------------------------------------------------------- */

static const unsigned parts[CALLS] = {
	[SCRIPT] = 1,
	[WAIT] = 1,
	[WAIT_POLLED] = 1,
	[WAIT_IN_TURNS] = 1,
	[WAIT_IN_TURNS_POLLED] = 1,
	[SCRIPTS] = TOGETHER,
	[ASKS] = TOGETHER,
	[ASKS_POLLED] = TOGETHER,
};

static const struct turns_figure figures[] = {
	{ "strict/by hand", SCRIPT, false, 0, 0 },
	{ "strict/gale_wait", WAIT, false, 0, 0 },
	{ "strict/gale_wait, polls", WAIT_POLLED, false, 0, 0 },
	{ "strict/gale_wait, in turns", WAIT_IN_TURNS, false, 0, 0 },
	{ "strict/gale_wait, in turns, polls", WAIT_IN_TURNS_POLLED, false, 0, 0 },
	{ "strict/by hand, 64 deep, each", SCRIPTS, false, 0, 0 },
	{ "strict/64 asks, each", ASKS, false, 0, 0 },
	{ "strict/64 asks, polls, each", ASKS_POLLED, false, 0, 0 },
	{ "strict/gale_wait to by hand", WAIT, true, SCRIPT, 0 },
	{ "strict/gale_wait to by hand, polls", WAIT_POLLED, true, SCRIPT, 0 },
	{ "strict/gale_wait to by hand, in turns", WAIT_IN_TURNS, true, SCRIPT, 0 },
	{ "strict/gale_wait to by hand, in turns, polls", WAIT_IN_TURNS_POLLED, true,
	  SCRIPT, 0 },
	{ "strict/64 asks to 64 by hand", ASKS, true, SCRIPTS, 0 },
	{ "strict/64 asks to 64 by hand, polls", ASKS_POLLED, true, SCRIPTS, 0 },
	{ "strict/64 asks, each, to one by hand", ASKS, true, SCRIPT, 0 },
};

void ask_strict(void)
{
	static const struct turns_table table = {
		.figures = figures,
		.count = sizeof(figures) / sizeof(figures[0]),
		.parts = parts,
		.unit = "us",
		.units_a_us = 1,
		.processes = 3,
		.measure = measure,
	};

	turns_add(&table);
}
