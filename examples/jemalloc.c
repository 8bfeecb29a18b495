/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * jemalloc.c -- gale's memory comes from an arena of its own, and is counted.
 *
 * gale frees with the size that it took.  So sdallocx need not look it up, and what gale
 * holds is counted here without a word before each block.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <gale/gale.h>
#include <jemalloc/jemalloc.h>

struct arena {
	struct gale_allocator allocator; /* first: it is what gale gets */
	int flags;
	atomic_size_t held; /* bytes */
};

static void *take(struct gale_allocator *self, size_t bytes)
{
	struct arena *arena = (struct arena *)self;
	void *memory = mallocx(bytes, arena->flags);

	if (memory)
		atomic_fetch_add(&arena->held, bytes);
	return memory;
}

static void give(struct gale_allocator *self, void *memory, size_t bytes)
{
	struct arena *arena = (struct arena *)self;

	atomic_fetch_sub(&arena->held, bytes);
	sdallocx(memory, bytes, arena->flags);
}

int main(void)
{
	static struct arena arena = { .allocator = { take, give } };
	struct gale_config config = { .allocator = &arena.allocator };
	struct gale_limiter_config api = {
		.name = "api",
		.rule = gale_fixed_window(100, GALE_SECONDS(1)),
	};
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	unsigned number;
	size_t size = sizeof(number);

	if (mallctl("arenas.create", &number, &size, NULL, 0))
		return 1;
	/* Without a cache of the thread's: what is freed is in the arena at once. */
	arena.flags = MALLOCX_ARENA(number) | MALLOCX_TCACHE_NONE;

	if (gale_runtime_open(&config, &runtime) ||
	    gale_store_open(runtime, NULL, &api.store) ||
	    gale_limiter_open(runtime, &api, &limiter) || gale_join(runtime, &seat))
		return 1;
	for (int user = 0; user < 10000; user++)
		gale_wait(seat, limiter, &user, sizeof(user), 1, GALE_MILLIS(100));
	printf("with 10000 users: %zu bytes\n", atomic_load(&arena.held));

	gale_leave(seat);
	gale_limiter_close(limiter);
	gale_store_close(api.store);
	gale_runtime_close(runtime);
	printf("at the end: %zu bytes\n", atomic_load(&arena.held));
	return 0;
}
