/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* store.c -- picks a store by its URL, and keeps it on the runtime's list. */
#include <sched.h>
#include <string.h>

#include "engine/check.h"
#include "face/face.h"
#include "stores/memory.h"

#define MAX_KEYS_DEFAULT 1000000
#define MAX_KEYS_MOST (UINT64_C(1) << 31)
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

static enum gale_err check_url(const char *url)
{
	size_t scheme = strlen(MEMORY_SCHEME);

	if (!url || strncmp(url, MEMORY_SCHEME, scheme) != 0)
		return GALE_ERR_URL;
	return strlen(url + scheme) <= GALE_NAME_MAX ? GALE_ERR_OK
	                                             : GALE_ERR_STORE_NAME;
}

static enum gale_err open_memory(struct gale_runtime *runtime, const char *url,
                                 uint64_t max_keys, struct gale_store *store)
{
	struct memory_config config = {
		.name = url + strlen(MEMORY_SCHEME),
		.max_keys = max_keys ? max_keys : MAX_KEYS_DEFAULT,
		.allocator = runtime->allocator,
		.clock = runtime->clock,
	};

	store->inner = memory_open(&config);
	return store->inner ? GALE_ERR_OK : GALE_ERR_MEMORY;
}

static enum gale_err open_checked(struct gale_runtime *runtime, const char *url,
                                  uint64_t max_keys, struct gale_store **ret_store)
{
	struct gale_store *store = handle_new(runtime, sizeof(*store), store_die);
	enum gale_err err;

	if (!store)
		return GALE_ERR_MEMORY;
	err = open_memory(runtime, url, max_keys, store);
	if (err != GALE_ERR_OK) {
		handle_close(&store->handle);
		return err;
	}
	list(runtime, store);
	*ret_store = store;
	return GALE_ERR_OK;
}

enum gale_err gale_store_open(struct gale_runtime *runtime,
                              const struct gale_store_config *config,
                              struct gale_store **ret_store)
{
	static const struct gale_store_config defaults;
	enum gale_err err = runtime_error(runtime);
	const char *url;

	if (err != GALE_ERR_OK)
		return err;
	if (!ret_store)
		return GALE_ERR_RET;
	if (!config)
		config = &defaults;
	url = config->url ? config->url : MEMORY_SCHEME;
	err = check_url(url);
	if (err != GALE_ERR_OK)
		return err;
	if (config->max_keys > MAX_KEYS_MOST)
		return GALE_ERR_STORE_KEYS;
	return open_checked(runtime, url, config->max_keys, ret_store);
}

void gale_store_close(struct gale_store *store)
{
	if (store && lifeline_holds(&store->handle.runtime->lifeline))
		handle_close(&store->handle);
}

enum gale_err gale_store_stats(struct gale_store *store, struct gale_counts *ret_stats)
{
	if (!store || !handle_is_open(&store->handle, store->handle.runtime))
		return GALE_ERR_STORE;
	if (!ret_stats)
		return GALE_ERR_RET;
	if (!lifeline_holds(&store->handle.runtime->lifeline))
		return GALE_ERR_FORKED;
	store->inner->ops->stats(store->inner, ret_stats);
	return GALE_ERR_OK;
}
