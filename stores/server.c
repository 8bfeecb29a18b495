/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* server.c -- a client for each home. */
#include "stores/server.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/clock.h"
#include "runtime/lock.h"
#include "runtime/memory.h"
#include "stores/quarantine.h"

/* A home's client. */
struct store_desk {
	struct list place; /* among those of the server, under its lock */
	struct client *client;
	_Atomic uint64_t counters[CLIENT_COUNTER_COUNT];
};

struct server {
	struct store store; /* first */
	struct server_config config;
	struct quarantine_notice notice;
	struct trouble trouble;
	struct lock lock;
	struct {
		struct list desks;
		uint64_t entered; /* so far */
		uint64_t
		    left[CLIENT_COUNTER_COUNT]; /* counted by those that have left */
	} locked;
};

static bool open_way(struct server_kind *kind, struct client_config *config)
{
	struct watch watch = config->home->watch;

	if (kind->map)
		config->map = kind->map(kind, watch);
	else
		config->wire = kind->wire(kind, watch);
	return config->map || config->wire;
}

static void close_way(struct client_config *config)
{
	if (config->map)
		config->map->ops->free(config->map);
	else
		config->wire->ops->free(config->wire);
}

static bool open_client(struct server *server, struct store_home *home,
                        struct store_desk *desk, uint64_t seed)
{
	struct client_config config = {
		.allocator = server->config.allocator,
		.home = home,
		.counters = desk->counters,
		.notice = &server->notice,
		.quarantine_us = server->config.quarantine_us,
		.lends_ahead = server->store.lends_ahead,
		.seed = seed,
		.trouble = server->config.say ? &server->trouble : NULL,
	};

	if (!open_way(server->config.kind, &config))
		return false;
	desk->client = client_open(&config);
	if (!desk->client)
		close_way(&config);
	return desk->client;
}

/* ---- Homes come and go ----------------------------------------------------------- */

/* Returns what no other gets: clients do not try again at the same instants. */
static uint64_t add_desk(struct server *server, struct store_desk *desk)
{
	uint64_t number;

	lock_take(&server->lock);
	list_append(&server->locked.desks, &desk->place);
	number = server->locked.entered++;
	lock_drop(&server->lock);
	return number;
}

/* Its counts stay. */
static void drop_desk(struct server *server, struct store_desk *desk)
{
	lock_take(&server->lock);
	list_remove(&desk->place);
	for (size_t i = 0; i < CLIENT_COUNTER_COUNT; i++)
		server->locked.left[i] += load_relaxed(&desk->counters[i]);
	lock_drop(&server->lock);
	memory_give(server->config.allocator, desk, sizeof(*desk));
}

static struct store_desk *server_enter(struct store *self, struct store_home *home)
{
	struct server *server = (struct server *)self;
	struct store_desk *desk = memory_take(server->config.allocator, sizeof(*desk));

	if (!desk)
		return NULL;
	if (open_client(server, home, desk,
	                server->config.seed + add_desk(server, desk)))
		return desk;
	drop_desk(server, desk);
	return NULL;
}

static void server_leave(const struct store_client *client)
{
	client_close(client->desk->client);
	drop_desk((struct server *)client->store, client->desk);
}

/* ---- Asking ---------------------------------------------------------------------- */

static enum store_result server_run(struct store *self, struct store_op *op,
                                    bool patient)
{
	(void)self;
	(void)op;
	(void)patient;
	return STORE_BUSY;
}

static void server_begin(const struct store_client *client, struct store_call *call)
{
	client_begin(client->desk->client, call, clock_now(client->home->clock));
}

static void server_lend(const struct store_client *client,
                        const struct lend_request *requests, size_t count)
{
	client_lend(client->desk->client, requests, count,
	            clock_now(client->home->clock));
}

static mono server_turn(const struct store_client *client, mono now)
{
	return client_turn(client->desk->client, now);
}

static bool server_is_idle(const struct store_client *client)
{
	return client_is_idle(client->desk->client);
}

/* Servers forget by themselves, or are swept by their clients. */
static bool server_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void sum_up(struct server *server, uint64_t sums[CLIENT_COUNTER_COUNT])
{
	lock_take(&server->lock);
	memcpy(sums, server->locked.left, sizeof(server->locked.left));
	for (struct list *at = server->locked.desks.next; at != &server->locked.desks;
	     at = at->next)
		for (size_t i = 0; i < CLIENT_COUNTER_COUNT; i++)
			sums[i] += load_relaxed(
			    &list_item(at, struct store_desk, place)->counters[i]);
	lock_drop(&server->lock);
}

static void server_stats(struct store *self, struct gale_counts *ret_stats)
{
	uint64_t sums[CLIENT_COUNTER_COUNT];

	sum_up((struct server *)self, sums);
	*ret_stats = (struct gale_counts){
		.steps = sums[CLIENT_STEPS],
		.changed = sums[CLIENT_CHANGED],
		.leases = sums[CLIENT_LEASES],
		.returns = sums[CLIENT_RETURNS],
		.round_trips = sums[CLIENT_ROUND_TRIPS],
		.connects = sums[CLIENT_CONNECTS],
		.failures = sums[CLIENT_FAILURES],
		.wrong = sums[CLIENT_WRONG],
		.broken = sums[CLIENT_BROKEN],
		.contended = sums[CLIENT_CONTENDED],
		.overloaded = sums[CLIENT_OVERLOADED],
		.quarantined = sums[CLIENT_QUARANTINED],
	};
}

static void server_close(struct store *self)
{
	struct server *server = (struct server *)self;

	lock_take(&server->lock);
	gale_assert(list_is_empty(&server->locked.desks)); /* all have left */
	lock_drop(&server->lock);
	lock_destroy(&server->lock);
	trouble_close(&server->trouble);
	server->config.kind->free(server->config.kind);
	memory_give(server->config.allocator, server, sizeof(*server));
}

static const struct store_ops server_ops = {
	.run = server_run,
	.lend = server_lend,
	.enter = server_enter,
	.begin = server_begin,
	.turn = server_turn,
	.is_idle = server_is_idle,
	.leave = server_leave,
	.sweep = server_sweep,
	.stats = server_stats,
	.close = server_close,
};

struct store *server_open(const struct server_config *config)
{
	struct server *server = memory_take(config->allocator, sizeof(*server));

	if (!server)
		return NULL;
	server->store.ops = &server_ops;
	server->config = *config;
	if (config->quarantine_us == 0)
		server->config.quarantine_us = QUARANTINE_DEFAULT_US;
	server->store.quarantine_us = server->config.quarantine_us;
	server->store.lends_ahead = config->kind->lends_ahead;
	server->trouble = (struct trouble){ .allocator = config->allocator,
		                            .say = config->say,
		                            .sayer = config->sayer };
	trouble_open(&server->trouble);
	lock_init(&server->lock);
	lock_take(&server->lock);
	list_init(&server->locked.desks);
	lock_drop(&server->lock);
	return &server->store;
}
