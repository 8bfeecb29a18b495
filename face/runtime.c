/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * runtime.c -- opens the house, sweeps it, closes it.
 *
 * Ordering
 *
 *   closing   A poster counts itself in, passes a full fence and looks at closed; the
 *             closer sets closed, passes a full fence and waits until nobody is counted
 *             in.  Either the poster sees that the runtime is closed, or the closer
 *             waits until the ask is in its mailbox and lets the shard answer it.
 *             The closer's waiting  ->  the poster's leaving: see posted.
 *   posted    A poster subtracts itself with release  ->  the closer loads with acquire
 *             What was posted is in the mailbox before the shards are told to stop.
 *   dropped   As in face.h, for the runtime itself.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"
#include "face/face.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "runtime/panic.h"
#include "runtime/random.h"

#define SHARDS_MAX 256
#define PENDING_DEFAULT 256
#define PENDING_MOST 65536
#define SWEEP_PERIOD_NS 1000000000

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

const char *gale_version(void)
{
	return TEXT_OF(GALE_VERSION_MAJOR) "." TEXT_OF(GALE_VERSION_MINOR) "." TEXT_OF(
	    GALE_VERSION_PATCH);
}

/* ---- Sweeping -------------------------------------------------------------------- */

static bool sweep_stores(struct gale_runtime *runtime) ON(runtime->lock)
{
	bool done = true;

	for (struct gale_store *at = runtime->locked.stores; at; at = at->next)
		done &= at->inner->ops->sweep(at->inner);
	return done;
}

/* Gives memory back that nobody asks for any more; asks do not depend on it. */
static uint64_t sweep(struct shard_chore *self)
{
	struct gale_runtime *runtime =
	    (struct gale_runtime *)((char *)self -
	                            offsetof(struct gale_runtime, sweeper));
	bool done, any;

	lock_take(&runtime->lock);
	any = runtime->locked.stores != NULL;
	done = sweep_stores(runtime);
	lock_drop(&runtime->lock);
	if (!any)
		return UINT64_MAX;
	return patience_now_ns() + (done ? SWEEP_PERIOD_NS : 0);
}

/* ---- Opening --------------------------------------------------------------------- */

static enum gale_err check_config(const struct gale_config *config)
{
	if (config->shards > SHARDS_MAX)
		return GALE_ERR_SHARDS;
	if (config->pending_max > PENDING_MOST)
		return GALE_ERR_PENDING;
	if (config->allocator &&
	    (!config->allocator->alloc || !config->allocator->free))
		return GALE_ERR_ALLOCATOR;
	if (config->log && !config->log->write)
		return GALE_ERR_LOG;
	if (config->clock && !config->clock->now_us)
		return GALE_ERR_CLOCK;
	return GALE_ERR_OK;
}

static uint32_t processors(void)
{
	cpu_set_t ours;
	int count = 1;

	if (sched_getaffinity(0, sizeof(ours), &ours) == 0)
		count = CPU_COUNT(&ours);
	return count < SHARDS_MAX ? (uint32_t)count : SHARDS_MAX;
}

static void apply_config(struct gale_runtime *runtime, const struct gale_config *config)
{
	runtime->log = config->log;
	runtime->clock = config->clock;
	runtime->shard_count = config->shards ? config->shards : processors();
	runtime->pending_max =
	    config->pending_max ? config->pending_max : PENDING_DEFAULT;
	runtime->sweeper.run = sweep;
	lock_init(&runtime->lock);
	atomic_init(&runtime->refs, 1);
}

static void close_shards(struct gale_runtime *runtime, uint32_t count)
{
	while (count > 0)
		shard_close(&runtime->shards[--count]);
}

static enum gale_err open_shards(struct gale_runtime *runtime)
{
	size_t bytes = runtime->shard_count * sizeof(struct shard);

	runtime->shards = memory_take_lines(runtime->allocator, bytes);
	if (!runtime->shards)
		return GALE_ERR_MEMORY;
	for (uint32_t i = 0; i < runtime->shard_count; i++) {
		struct shard_chore *chore = i == 0 ? &runtime->sweeper : NULL;

		if (shard_open(&runtime->shards[i], i, chore))
			continue;
		close_shards(runtime, i);
		memory_give_lines(runtime->allocator, runtime->shards, bytes);
		return GALE_ERR_SYSTEM;
	}
	return GALE_ERR_OK;
}

static void free_runtime(struct gale_runtime *runtime)
{
	lock_destroy(&runtime->lock);
	memory_give_lines(runtime->allocator, runtime, sizeof(*runtime));
}

static enum gale_err open_parts(struct gale_runtime *runtime)
{
	enum gale_err err;

	if (!random_fill(&runtime->seed, sizeof(runtime->seed)) ||
	    !lifeline_open(&runtime->lifeline))
		return GALE_ERR_SYSTEM;
	err = open_shards(runtime);
	if (err != GALE_ERR_OK)
		lifeline_close(&runtime->lifeline);
	return err;
}

enum gale_err gale_runtime_open(const struct gale_config *config,
                                struct gale_runtime **ret_runtime)
{
	static const struct gale_config defaults;
	struct gale_allocator *allocator;
	struct gale_runtime *runtime;
	enum gale_err err;

	if (!ret_runtime)
		return GALE_ERR_RET;
	if (!config)
		config = &defaults;
	err = check_config(config);
	if (err != GALE_ERR_OK)
		return err;
	allocator = config->allocator ? config->allocator : memory_default();
	runtime = memory_take_lines(allocator, sizeof(*runtime));
	if (!runtime)
		return GALE_ERR_MEMORY;
	runtime->allocator = allocator;
	apply_config(runtime, config);
	err = open_parts(runtime);
	if (err != GALE_ERR_OK)
		free_runtime(runtime);
	else
		*ret_runtime = runtime;
	return err;
}

/* ---- Closing --------------------------------------------------------------------- */

void runtime_hold(struct gale_runtime *runtime)
{
	add_relaxed(&runtime->refs, 1);
}

static void free_graveyard(struct gale_runtime *runtime)
{
	struct handle *dead;

	lock_take(&runtime->lock);
	dead = runtime->locked.oldest_dead;
	lock_drop(&runtime->lock);
	while (dead) {
		struct handle *next = dead->next_dead;

		memory_give_lines(runtime->allocator, dead, dead->bytes);
		dead = next;
	}
}

void runtime_drop(struct gale_runtime *runtime)
{
	size_t bytes = runtime->shard_count * sizeof(struct shard);

	if (sub_acq_rel(&runtime->refs, 1) > 1) /* dropped */
		return;
	free_graveyard(runtime);
	memory_give_lines(runtime->allocator, runtime->shards, bytes);
	lifeline_close(&runtime->lifeline);
	free_runtime(runtime);
}

static void wait_for_posters(struct gale_runtime *runtime)
{
	while (load_acquire(&runtime->posters) > 0) /* posted */
		sched_yield();
}

void gale_runtime_close(struct gale_runtime *runtime)
{
	bool was_closed;

	if (!runtime || !lifeline_holds(&runtime->lifeline))
		return;
	was_closed = swap_relaxed(&runtime->closed, true);
	gale_assert(!was_closed);
	fence_full(); /* closing */
	wait_for_posters(runtime);
	close_shards(runtime, runtime->shard_count);
	runtime_drop(runtime); /* F3 */
}

/* ---- While it is open ------------------------------------------------------------ */

enum gale_why runtime_refuses(const struct gale_runtime *runtime)
{
	if (!lifeline_holds(&runtime->lifeline))
		return GALE_WHY_FORKED;
	if (load_relaxed(&runtime->closed))
		return GALE_WHY_CLOSED;
	return panic_fenced() ? GALE_WHY_FENCED : GALE_WHY_RULE;
}

enum gale_err runtime_error(const struct gale_runtime *runtime)
{
	if (!runtime)
		return GALE_ERR_RUNTIME;
	switch (runtime_refuses(runtime)) {
	case GALE_WHY_FORKED:
		return GALE_ERR_FORKED;
	case GALE_WHY_CLOSED:
		return GALE_ERR_RUNTIME;
	case GALE_WHY_FENCED:
		return GALE_ERR_FENCED;
	default:
		return GALE_ERR_OK;
	}
}

/* While this holds, the shards are there. */
static bool enter(struct gale_runtime *runtime)
{
	add_relaxed(&runtime->posters, 1);
	fence_full(); /* closing */
	return !load_relaxed(&runtime->closed);
}

static void leave(struct gale_runtime *runtime)
{
	sub_acq_rel(&runtime->posters, 1); /* posted */
}

bool runtime_post(struct gale_runtime *runtime, struct ask *ask)
{
	uint64_t hash = XXH3_64bits_withSeed(ask->key, ask->op.key_len, runtime->seed);
	struct shard *shard = &runtime->shards[hash % runtime->shard_count];
	bool posted = enter(runtime) && shard_post(shard, ask);

	leave(runtime);
	return posted;
}

void runtime_wake_sweeper(struct gale_runtime *runtime)
{
	if (enter(runtime))
		shard_wake(&runtime->shards[0]);
	leave(runtime);
}

void runtime_say(struct gale_runtime *runtime, const char *format, ...)
{
	char line[256];
	va_list args;

	if (!runtime->log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	runtime->log->write(runtime->log, line);
}
