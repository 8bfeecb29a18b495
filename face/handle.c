/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * handle.c -- lives of handles.
 *
 *     open --close--> closed --last reference--> dead --graveyard full--> freed
 */
#include "face/face.h"

#include "engine/check.h"
#include "runtime/memory.h"

#define GRAVES 64

void *handle_new(struct gale_runtime *runtime, size_t bytes,
                 void (*die)(struct handle *self))
{
	struct handle *handle = memory_take_lines(runtime->allocator, bytes);

	if (!handle)
		return NULL;
	handle->runtime = runtime;
	handle->bytes = bytes;
	handle->die = die;
	atomic_init(&handle->refs, 1);
	runtime_hold(runtime);
	return handle;
}

void handle_hold(struct handle *handle)
{
	add_relaxed(&handle->refs, 1);
}

static struct handle *dig_up(struct gale_runtime *runtime) ON(runtime->lock)
{
	struct handle *oldest = runtime->locked.oldest_dead;

	runtime->locked.oldest_dead = oldest->next_dead;
	runtime->locked.dead_count--;
	return oldest;
}

/* Takes the newly dead in, and returns the one that must make room, or NULL. FACE-2 */
static struct handle *bury(struct gale_runtime *runtime, struct handle *handle)
    ON(runtime->lock)
{
	if (runtime->locked.dead_count == 0)
		runtime->locked.oldest_dead = handle;
	else
		runtime->locked.newest_dead->next_dead = handle;
	runtime->locked.newest_dead = handle;
	return ++runtime->locked.dead_count > GRAVES ? dig_up(runtime) : NULL;
}

void handle_drop(struct handle *handle)
{
	struct gale_runtime *runtime = handle->runtime;
	struct handle *oldest;

	if (sub_acq_rel(&handle->refs, 1) > 1) /* dropped */
		return;
	handle->die(handle);
	lock_take(&runtime->lock);
	oldest = bury(runtime, handle);
	lock_drop(&runtime->lock);
	if (oldest)
		memory_give_lines(runtime->allocator, oldest, oldest->bytes);
	runtime_drop(runtime);
}

void handle_close(struct handle *handle)
{
	bool was_closed = swap_relaxed(&handle->closed, true);

	gale_assert(!was_closed);
	handle_drop(handle);
}
