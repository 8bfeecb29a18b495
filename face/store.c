/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* store.c -- picks a store by its URL, and keeps it on the runtime's list. */
#include <sched.h>
#include <string.h>

#include "engine/check.h"
#include "face/face.h"
#include "face/sized.h"
#include "stores/memory.h"
#include "stores/server.h"

#ifdef GALE_REDIS
#include "stores/redis/kind.h"
#endif
#ifdef GALE_POSTGRES
#include "stores/postgres/link.h"
#endif

#define MAX_KEYS_DEFAULT 1000000
#define MAX_KEYS_MOST (UINT64_C(1) << 31)
#define QUARANTINE_MOST_US GALE_DAYS(1)
#define MEMORY_SCHEME "memory:"

/* Returns when nobody sweeps it: a name is forgotten when its last user has closed it,
 * and not when the sweeper has come to its end. */
static void unlist(struct gale_runtime *runtime, struct gale_store *store)
{
	struct gale_store **at;

	lock_take(&runtime->lock);
	for (at = &runtime->locked.stores; *at; at = &(*at)->next)
		if (*at == store) {
			*at = store->next;
			break;
		}
	if (runtime->locked.next_swept == store)
		runtime->locked.next_swept = store->next;
	while (runtime->locked.sweeping == store) {
		lock_drop(&runtime->lock);
		sched_yield();
		lock_take(&runtime->lock);
	}
	lock_drop(&runtime->lock);
}

static void list(struct gale_runtime *runtime, struct gale_store *store)
{
	lock_take(&runtime->lock);
	store->next = runtime->locked.stores;
	runtime->locked.stores = store;
	lock_drop(&runtime->lock);
	runtime_wake_sweeper(runtime);
}

static void store_die(struct handle *self)
{
	struct gale_store *store = (struct gale_store *)self;

	unlist(self->runtime, store);
	if (store->inner)
		store->inner->ops->close(store->inner);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static enum gale_err open_memory(struct gale_store *store, const char *name,
                                 uint64_t max_keys)
{
	struct gale_runtime *runtime = store->handle.runtime;
	struct memory_config config = {
		.name = name,
		.max_keys = max_keys ? max_keys : MAX_KEYS_DEFAULT,
		.allocator = runtime->allocator,
		.clock = runtime->clock,
	};

	if (strlen(name) > GALE_NAME_MAX)
		return GALE_ERR_STORE_NAME;
	store->inner = memory_open(&config);
	return store->inner ? GALE_ERR_OK : GALE_ERR_MEMORY;
}

static void say(void *self, enum gale_level level, const char *text)
{
	store_say(self, level, text);
}

static enum gale_err open_server(struct gale_store *store, struct server_kind *kind,
                                 uint64_t quarantine_us)
{
	struct gale_runtime *runtime = store->handle.runtime;
	struct server_config config = {
		.allocator = runtime->allocator,
		.kind = kind,
		.shards = runtime->shard_count,
		.quarantine_us = quarantine_us,
		.seed = runtime->node,
		.say = say,
		.sayer = store,
	};

	store->inner = server_open(&config);
	if (!store->inner)
		kind->free(kind);
	return store->inner ? GALE_ERR_OK : GALE_ERR_MEMORY;
}

/* A server of some kind, and what opens it; NULL: not in this build. */
struct scheme {
	const char *begins;
	struct server_kind *(*kind)(struct gale_allocator *allocator, const char *url,
	                            enum gale_err *ret_why);
};

static const struct scheme schemes[] = {
#ifdef GALE_REDIS
	{ "redis://", redis_kind },
	{ "redis+sentinel://", redis_kind },
	{ "redis+cluster://", redis_kind },
#endif
#ifdef GALE_POSTGRES
	{ "postgres://", postgres_kind },
	{ "postgresql://", postgres_kind },
#endif
	{ "redis://", NULL },
	{ "postgres://", NULL },
	{ "postgresql://", NULL },
	{ "redis+sentinel://", NULL },
	{ "redis+cluster://", NULL },
};

static enum gale_err open_scheme(struct gale_store *store, const struct scheme *scheme,
                                 const struct gale_store_config *config)
{
	struct server_kind *kind;
	enum gale_err err;

	if (!scheme->kind)
		return GALE_ERR_NOT_BUILT;
	kind = scheme->kind(store->handle.runtime->allocator, config->url, &err);
	return kind ? open_server(store, kind, config->quarantine_us) : err;
}

static enum gale_err open_url(struct gale_store *store,
                              const struct gale_store_config *config)
{
	const char *url = config->url ? config->url : MEMORY_SCHEME;

	label_of_url(url, store->label);
	if (begins(url, MEMORY_SCHEME))
		return open_memory(store, url + strlen(MEMORY_SCHEME),
		                   config->max_keys);
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (begins(url, schemes[i].begins))
			return open_scheme(store, &schemes[i], config);
	return begins(url, "rediss://") ? GALE_ERR_TLS : GALE_ERR_URL;
}

static enum gale_err open_checked(struct gale_runtime *runtime,
                                  const struct gale_store_config *config,
                                  struct gale_store **ret_store)
{
	struct gale_store *store = handle_new(runtime, sizeof(*store), store_die);
	enum gale_err err;

	if (!store)
		return GALE_ERR_MEMORY;
	err = open_url(store, config);
	if (err != GALE_ERR_OK) {
		handle_close(&store->handle);
		return err;
	}
	list(runtime, store);
	*ret_store = store;
	return GALE_ERR_OK;
}

enum gale_err gale_store_open_sized(struct gale_runtime *runtime,
                                    const struct gale_store_config *config,
                                    size_t config_bytes, struct gale_store **ret_store)
{
	struct gale_store_config known = { 0 };
	enum gale_err err = runtime_error(runtime);

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_store)
		return GALE_ERR_RET;
	if (config && !sized_read(&known, sizeof(known), config, config_bytes))
		return GALE_ERR_SIZE;
	if (known.max_keys > MAX_KEYS_MOST)
		return GALE_ERR_STORE_KEYS;
	if (known.quarantine_us > QUARANTINE_MOST_US)
		return GALE_ERR_QUARANTINE;
	return open_checked(runtime, &known, ret_store);
}

void gale_store_close(struct gale_store *store)
{
	if (store && lifeline_holds(&store->handle.runtime->lifeline))
		handle_close(&store->handle);
}

enum gale_err gale_store_stats_sized(struct gale_store *store,
                                     struct gale_counts *ret_stats, size_t stats_bytes)
{
	struct gale_counts known = { 0 };

	if (!store || !handle_is_open(&store->handle, store->handle.runtime))
		return GALE_ERR_STORE;
	if (!ret_stats)
		return GALE_ERR_RET;
	if (!lifeline_holds(&store->handle.runtime->lifeline))
		return GALE_ERR_FORKED;
	store->inner->ops->stats(store->inner, &known);
	return sized_write(ret_stats, stats_bytes, &known, sizeof(known))
	           ? GALE_ERR_OK
	           : GALE_ERR_SIZE;
}
