/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* store.c -- picks a store by its URL, and keeps it on the runtime's list. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "engine/check.h"
#include "face/face.h"
#include "face/sized.h"
#include "stores/memory.h"
#include "stores/part.h"
#include "stores/server.h"
#include "stores/url.h"

#define MAX_KEYS_DEFAULT 1000000
#define MAX_KEYS_MOST (UINT64_C(1) << 31)
#define QUARANTINE_MOST_US GALE_DAYS(1)
#define MEMORY_SCHEME "memory:"

/* Returns when it is not being swept: a name is forgotten when its last user has closed it,
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

static bool is_memory(const char *url)
{
	return begins(url, MEMORY_SCHEME);
}

static const char *memory_name(const char *url)
{
	return url + strlen(MEMORY_SCHEME);
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
		.quarantine_us = quarantine_us,
		.seed = runtime->node,
		.say = runtime->log ? say : NULL,
		.sayer = store,
	};

	store->inner = server_open(&config);
	if (!store->inner)
		kind->free(kind);
	return store->inner ? GALE_ERR_OK : GALE_ERR_MEMORY;
}

/* ---- URLs ------------------------------------------------------------------------- */

struct scheme {
	const char *begins;
	enum store_part_name part;
};

static const struct scheme schemes[] = {
	{ "redis://", PART_REDIS },           { "redis+sentinel://", PART_REDIS },
	{ "redis+cluster://", PART_REDIS },   { "rediss://", PART_REDIS },
	{ "rediss+sentinel://", PART_REDIS }, { "rediss+cluster://", PART_REDIS },
	{ "postgres://", PART_POSTGRES },     { "postgresql://", PART_POSTGRES },
};

static const struct scheme *scheme_of(const char *url)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (begins(url, schemes[i].begins))
			return &schemes[i];
	return NULL;
}

static void say_err(struct url_fault *fault, enum gale_err err)
{
	url_say(fault, err, "%s", gale_err_text(err));
}

/* What opens it; NULL: *ret_fault says why nothing does, or with GALE_ERR_OK, it is memory:. */
static const struct store_part *look_at_scheme(const char *url,
                                               struct url_fault *ret_fault)
{
	const struct scheme *scheme = scheme_of(url);

	*ret_fault = (struct url_fault){ .err = GALE_ERR_OK };
	if (is_memory(url) && strlen(memory_name(url)) > GALE_NAME_MAX)
		say_err(ret_fault, GALE_ERR_STORE_NAME);
	else if (!scheme && !is_memory(url))
		url_say(ret_fault, GALE_ERR_URL,
		        "url: it begins with none of memory:, redis://, "
		        "redis+sentinel://, redis+cluster:// (or rediss, for TLS), "
		        "postgres://");
	return scheme ? part_find(scheme->part, ret_fault) : NULL;
}

enum gale_err gale_url_check(const char *url, char *ret_why, size_t room)
{
	const struct store_part *part;
	struct url_fault fault;

	part = look_at_scheme(url ? url : MEMORY_SCHEME, &fault);
	if (part)
		(void)part->check(url, &fault);
	if (room > 0)
		snprintf(ret_why, room, "%s", fault.text);
	return fault.err;
}

/* ---- Opening --------------------------------------------------------------------- */

static enum gale_err open_by(struct gale_store *store, const struct store_part *part,
                             const struct gale_store_config *config,
                             struct url_fault *fault)
{
	struct server_kind *kind =
	    part->kind(store->handle.runtime->allocator, config->url, fault);

	return kind ? open_server(store, kind, config->quarantine_us) : fault->err;
}

/* An error has one text for all URLs: the log says what is wrong with this one. */
static enum gale_err open_url(struct gale_store *store,
                              const struct gale_store_config *config)
{
	const char *url = config->url ? config->url : MEMORY_SCHEME;
	const struct store_part *part;
	struct url_fault fault;
	enum gale_err err;

	label_of_url(url, store->label);
	part = look_at_scheme(url, &fault);
	err = fault.err;
	if (part)
		err = open_by(store, part, config, &fault);
	else if (err == GALE_ERR_OK)
		err = open_memory(store, memory_name(url), config->max_keys);
	if (fault.text[0] != '\0')
		store_say(store, GALE_LEVEL_ERROR, fault.text);
	return err;
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
	store->post.store = store->inner;
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
