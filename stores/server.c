/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* server.c -- a client for each shard. */
#include "stores/server.h"

#include "engine/check.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "stores/quarantine.h"

struct desk {
	struct client *client; /* NULL: its shard has not asked yet */
	_Atomic uint64_t counters[CLIENT_COUNTER_COUNT];
};

struct server {
	struct store store; /* first */
	struct server_config config;
	struct quarantine_notice notice;
	struct trouble trouble;
	struct desk desks[]; /* by the shard's number */
};

static size_t bytes_of(uint32_t shards)
{
	return sizeof(struct server) + shards * sizeof(struct desk);
}

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

static struct client *client_new(struct server *server, struct store_home *home)
{
	struct desk *desk = &server->desks[home->number];
	struct client_config config = {
		.allocator = server->config.allocator,
		.home = home,
		.counters = desk->counters,
		.notice = &server->notice,
		.quarantine_us = server->config.quarantine_us,
		.seed = server->config.seed + home->number,
		.trouble = server->config.say ? &server->trouble : NULL,
	};

	if (!open_way(server->config.kind, &config))
		return NULL;
	desk->client = client_open(&config);
	if (!desk->client)
		close_way(&config);
	return desk->client;
}

static struct client *client_of(struct server *server, struct store_home *home)
{
	struct client *client = server->desks[home->number].client;

	return client ? client : client_new(server, home);
}

static enum store_result server_run(struct store *self, struct store_op *op,
                                    bool patient)
{
	(void)self;
	(void)op;
	(void)patient;
	return STORE_BUSY;
}

static void server_begin(struct store *self, struct store_home *home,
                         struct store_call *call)
{
	struct client *client = client_of((struct server *)self, home);

	if (client)
		client_begin(client, call, clock_now(home->clock));
	else
		home->on_done(home, call, STORE_NO_MEMORY);
}

static void server_lend(struct store *self, struct store_home *home,
                        const struct lend_request *requests, size_t count)
{
	struct client *client = client_of((struct server *)self, home);

	if (client) {
		client_lend(client, requests, count, clock_now(home->clock));
		return;
	}
	for (size_t i = 0; i < count; i++)
		home->on_answer(home,
		                &(struct lend_answer){ .number = requests[i].ask.number,
		                                       .result = STORE_NO_MEMORY });
}

static mono server_turn(struct store *self, struct store_home *home, mono now)
{
	struct server *server = (struct server *)self;
	struct client *client = server->desks[home->number].client;

	return client ? client_turn(client, now) : (mono){ UINT64_MAX };
}

static bool server_is_idle(struct store *self, struct store_home *home)
{
	struct server *server = (struct server *)self;
	struct client *client = server->desks[home->number].client;

	return !client || client_is_idle(client);
}

static void server_leave(struct store *self, struct store_home *home)
{
	struct server *server = (struct server *)self;
	struct desk *desk = &server->desks[home->number];

	if (desk->client)
		client_close(desk->client);
	desk->client = NULL;
}

/* Servers forget by themselves, or are swept by their clients. */
static bool server_sweep(struct store *self)
{
	(void)self;
	return true;
}

static uint64_t sum_of(const struct server *server, enum client_counter counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < server->config.shards; i++)
		sum += load_relaxed(&server->desks[i].counters[counter]);
	return sum;
}

static void server_stats(struct store *self, struct gale_counts *ret_stats)
{
	const struct server *server = (struct server *)self;

	*ret_stats = (struct gale_counts){
		.steps = sum_of(server, CLIENT_STEPS),
		.changed = sum_of(server, CLIENT_CHANGED),
		.leases = sum_of(server, CLIENT_LEASES),
		.returns = sum_of(server, CLIENT_RETURNS),
		.round_trips = sum_of(server, CLIENT_ROUND_TRIPS),
		.connects = sum_of(server, CLIENT_CONNECTS),
		.failures = sum_of(server, CLIENT_FAILURES),
		.wrong = sum_of(server, CLIENT_WRONG),
		.broken = sum_of(server, CLIENT_BROKEN),
		.contended = sum_of(server, CLIENT_CONTENDED),
		.quarantined = sum_of(server, CLIENT_QUARANTINED),
	};
}

static void server_close(struct store *self)
{
	struct server *server = (struct server *)self;

	for (uint32_t i = 0; i < server->config.shards; i++)
		gale_assert(!server->desks[i].client); /* all have left */
	trouble_close(&server->trouble);
	server->config.kind->free(server->config.kind);
	memory_give(server->config.allocator, server, bytes_of(server->config.shards));
}

static const struct store_ops server_ops = {
	.run = server_run,
	.lend = server_lend,
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
	struct server *server =
	    memory_take(config->allocator, bytes_of(config->shards));

	if (!server)
		return NULL;
	server->store.ops = &server_ops;
	server->config = *config;
	if (config->quarantine_us == 0)
		server->config.quarantine_us = QUARANTINE_DEFAULT_US;
	server->store.quarantine_us = server->config.quarantine_us;
	server->trouble = (struct trouble){ .allocator = config->allocator,
		                            .say = config->say,
		                            .sayer = config->sayer };
	trouble_open(&server->trouble);
	return &server->store;
}
