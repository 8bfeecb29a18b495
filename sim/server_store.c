/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* server_store.c -- each request is a job, served and explained at once. */
#include "sim/server_store.h"

#include <string.h>

#include "stores/quarantine.h"
#include "stores/remote.h"
#include "sim/must.h"
#include "sim/room.h"
#include "sim/server.h"

#define KEYS_MOST 32
#define LONGEST GALE_HOURS(1) /* of a quarantine */

struct entry {
	uint8_t key[STORE_KEY_MAX];
	size_t key_len;
	struct kept kept;
	struct kept replica;
};

struct server_store {
	struct store store; /* first */
	struct gale_clock *clock;
	uint64_t since_us; /* of its generation; 0: it has forgotten nothing */
	uint8_t life;
	struct entry *entries;
	size_t count;
};

static struct entry *entry_of(struct server_store *server, const uint8_t *key,
                              size_t key_len)
{
	struct entry *entry;

	for (size_t i = 0; i < server->count; i++) {
		entry = &server->entries[i];
		if (entry->key_len == key_len && memcmp(entry->key, key, key_len) == 0)
			return entry;
	}
	must(server->count < KEYS_MOST);
	entry = &server->entries[server->count++];
	memcpy(entry->key, key, key_len);
	entry->key_len = key_len;
	entry->kept.count = entry->replica.count = 0;
	return entry;
}

/* What was told points into *before. */
static struct remote_told serve(struct server_store *server, struct remote_job *job,
                                const uint8_t *key, size_t key_len, struct kept *before)
{
	struct entry *entry = entry_of(server, key, key_len);

	job->not_before_us = quarantine_until(job->rule, server->since_us, LONGEST);
	*before = entry->kept;
	return server_serve(job, server->clock->now_us(server->clock), before,
	                    &entry->kept);
}

static void lend_one(struct server_store *server, struct store_home *home,
                     const struct lend_request *request)
{
	static struct kept before; /* too large for a stack */
	struct remote_job job = { .verb =
		                      request->verb == LEND ? REMOTE_LEND : REMOTE_BACK,
		                  .rule = request->rule,
		                  .ask = request->ask,
		                  .tag = request->tag,
		                  .units = request->units };
	struct remote_told told;
	struct lend_answer answer;

	must(request->verb != LEND_STATUS && remote_can_lend(request->rule));
	told = serve(server, &job, request->key, request->key_len, &before);
	remote_explain_lend(&job, &told, &answer);
	answer.life = server->life;
	answer.waits = told.code == REMOTE_WAITS;
	home->on_answer(home, &answer);
}

static void server_lend(struct store *self, struct store_home *home,
                        const struct lend_request *requests, size_t count)
{
	for (size_t i = 0; i < count; i++)
		lend_one((struct server_store *)self, home, &requests[i]);
}

static enum store_result server_run(struct store *self, struct store_op *op,
                                    bool patient)
{
	static struct kept before;
	struct remote_job job = { .verb = REMOTE_STEP,
		                  .rule = op->rule,
		                  .cost = op->cost };
	struct remote_told told;

	(void)patient;
	must(op->verb == STORE_STEP && remote_can_step(op->rule));
	told = serve((struct server_store *)self, &job, op->key, op->key_len, &before);
	return remote_explain_step(&job, &told, op);
}

static bool server_sweep(struct store *self)
{
	(void)self;
	return true;
}

static void server_close(struct store *self)
{
	struct server_store *server = (struct server_store *)self;

	free(server->entries);
	free(server);
}

static const struct store_ops server_ops = {
	.run = server_run,
	.lend = server_lend,
	.sweep = server_sweep,
	.close = server_close,
};

struct store *server_store_open(struct gale_clock *clock)
{
	struct server_store *server = room_new(sizeof(*server));

	server->entries = room_for(NULL, KEYS_MOST * sizeof(*server->entries));
	server->store.ops = &server_ops;
	server->clock = clock;
	server->life = 1;
	return &server->store;
}

static void copy(struct kept *to, const struct kept *from)
{
	to->count = from->count;
	to->expires_us = from->expires_us;
	memcpy(to->bytes, from->bytes, from->count);
}

void server_store_replicate(struct store *self)
{
	struct server_store *server = (struct server_store *)self;

	for (size_t i = 0; i < server->count; i++)
		copy(&server->entries[i].replica, &server->entries[i].kept);
}

void server_store_fail_over(struct store *self)
{
	struct server_store *server = (struct server_store *)self;

	for (size_t i = 0; i < server->count; i++)
		copy(&server->entries[i].kept, &server->entries[i].replica);
	server->since_us = server->clock->now_us(server->clock);
	server->life = (uint8_t)(server->life % UINT8_MAX + 1);
}
