/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * runtime.c -- opens the house, sweeps it, closes it.
 *
 * Ordering
 *
 *   closing   A poster counts itself in, passes a full fence and looks at closed; the
 *             closer sets closed, passes a full fence and waits until no poster is counted
 *             in.  Either the poster sees that the runtime is closed, or the closer
 *             waits until the ask is in its mailbox and lets the shard answer it.
 *             The closer's waiting  ->  the poster's leaving: see posted.
 *   posted    A poster subtracts itself with release  ->  the closer loads with acquire
 *             What was posted is in the mailbox before the shards are told to stop.
 *   turned    A thread that ends a turn swaps turning with release  ->  the next that begins
 *             one swaps it with acquire: the shards' own words go from one to the other.
 *   dropped   As in face.h, for the runtime itself.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine/check.h"
#include "engine/lease.h"
#include "face/guard.h"
#include "face/seat.h"
#include "face/sized.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "runtime/random.h"

#define SHARDS_MAX 256
#define PENDING_DEFAULT 256
#define NODE_KEYS_DEFAULT 65536
#define NODE_KEYS_MOST (UINT32_C(1) << 28)
#define BOOT_NS_MOST (UINT64_C(1) << 59) /* 18 years; as many again can come */
#define PENDING_MOST 65536
#define POLL_US_MOST 10000
#define SWEEP_PERIOD_NS 1000000000

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

const char *gale_version(void)
{
	return TEXT_OF(GALE_VERSION_MAJOR) "." TEXT_OF(GALE_VERSION_MINOR) "." TEXT_OF(
	    GALE_VERSION_PATCH);
}

/* ---- Sweeping -------------------------------------------------------------------- */

/* The open stores one after the other.  The runtime's lock is not held while one is
 * swept: its stripes may make the sweeper wait, and others would wait with it.  Nor is the
 * store, which would then outlive its last user: unlist waits for the sweeper instead. */
static struct gale_store *first_store(struct gale_runtime *runtime)
{
	struct gale_store *first;

	lock_take(&runtime->lock);
	first = runtime->locked.sweeping = runtime->locked.stores;
	runtime->locked.next_swept = first ? first->next : NULL;
	lock_drop(&runtime->lock);
	return first;
}

static struct gale_store *next_store(struct gale_runtime *runtime)
{
	struct gale_store *next;

	lock_take(&runtime->lock);
	next = runtime->locked.sweeping = runtime->locked.next_swept;
	runtime->locked.next_swept = next ? next->next : NULL;
	lock_drop(&runtime->lock);
	return next;
}

/* Gives back the memory of keys that are no longer asked for; asks do not depend on it. */
static uint64_t sweep(struct shard_chore *self)
{
	struct gale_runtime *runtime =
	    (struct gale_runtime *)((char *)self -
	                            offsetof(struct gale_runtime, sweeper));
	struct gale_store *store = first_store(runtime);
	bool done = true, any = store != NULL;

	for (; store; store = next_store(runtime))
		done &= store->inner->ops->sweep(store->inner);
	if (!any)
		return UINT64_MAX;
	return done ? SWEEP_PERIOD_NS : 0;
}

/* ---- Opening --------------------------------------------------------------------- */

/* Credit keeps 44 bits of an instant: nanoseconds since 1970 are too many.  */
static bool boot_ns_is_good(struct gale_clock *clock)
{
	return !clock->boot_ns || clock->boot_ns(clock) < BOOT_NS_MOST;
}

static enum gale_err check_config(const struct gale_config *config)
{
	if (config->shards > SHARDS_MAX)
		return GALE_ERR_SHARDS;
	if (config->pending_max > PENDING_MOST)
		return GALE_ERR_PENDING;
	if (config->max_keys > NODE_KEYS_MOST)
		return GALE_ERR_NODE_KEYS;
	if (config->poll_us > POLL_US_MOST)
		return GALE_ERR_POLL;
	if (config->allocator &&
	    (!config->allocator->alloc || !config->allocator->free))
		return GALE_ERR_ALLOCATOR;
	if (config->log && !config->log->write)
		return GALE_ERR_LOG;
	if (config->clock &&
	    (!config->clock->now_us || !boot_ns_is_good(config->clock)))
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

/* A cell for each seat that may run at once, and as many again. */
static uint32_t cells_for(uint32_t processor_count)
{
	uint32_t cells = 2 * processor_count + 2;

	return cells < CELLS_MOST ? cells : CELLS_MOST;
}

static void apply_config(struct gale_runtime *runtime, const struct gale_config *config)
{
	runtime->log = config->log;
	runtime->clock = config->clock;
	runtime->poll_ns = (uint64_t)config->poll_us * 1000;
	runtime->turns = config->turns;
	runtime->turn_fd = -1;
	boot_clock_init(&runtime->boot);
	runtime->node_clock = config->clock && config->clock->boot_ns
	                          ? config->clock
	                          : &runtime->boot.clock;
	runtime->counts =
	    runtime->node_clock == &runtime->boot.clock && counter_is_good();
	runtime->max_keys = config->max_keys ? config->max_keys : NODE_KEYS_DEFAULT;
	runtime->shard_count = config->shards ? config->shards : processors();
	runtime->cell_count = cells_for(processors());
	runtime->pending_max =
	    config->pending_max ? config->pending_max : PENDING_DEFAULT;
	runtime->sweeper.run = sweep;
	lock_init(&runtime->lock);
	list_init(&runtime->locked.budgets);
	list_init(&runtime->locked.held);
	list_init(&runtime->locked.seats);
	atomic_init(&runtime->refs, 1);
}

static struct lessor_config lessor_config_of(struct gale_runtime *runtime,
                                             uint32_t number)
{
	return (struct lessor_config){
		.allocator = runtime->allocator,
		.clock = runtime->node_clock,
		.grace = &runtime->grace,
		.node = runtime->node,
		.shard = number,
		.max_purses = (runtime->max_keys + runtime->shard_count - 1) /
		              runtime->shard_count,
		.seats = runtime->cell_count,
	};
}

/* Each may wait for its stores: those that have threads, all at once. */
static void close_shards(struct gale_runtime *runtime, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		shard_tell_to_close(&runtime->shards[i]);
	while (count > 0)
		shard_close(&runtime->shards[--count]);
}

static void free_shards(struct gale_runtime *runtime, uint32_t count)
{
	while (count > 0)
		shard_free(&runtime->shards[--count]);
	memory_give_lines(runtime->allocator, runtime->roots,
	                  runtime->shard_count * sizeof(struct root));
	memory_give_lines(runtime->allocator, runtime->shards,
	                  runtime->shard_count * sizeof(struct shard));
}

static enum gale_err open_shards(struct gale_runtime *runtime)
{
	size_t bytes = runtime->shard_count * sizeof(struct shard);

	runtime->shards = memory_take_lines(runtime->allocator, bytes);
	runtime->roots = memory_take_lines(runtime->allocator,
	                                   runtime->shard_count * sizeof(struct root));
	if (!runtime->shards || !runtime->roots) {
		free_shards(runtime, 0);
		return GALE_ERR_MEMORY;
	}
	for (uint32_t i = 0; i < runtime->shard_count; i++) {
		struct shard_chore *chore = i == 0 ? &runtime->sweeper : NULL;
		struct lessor_config config = lessor_config_of(runtime, i);
		enum gale_err err = shard_open(&runtime->shards[i], &config, chore,
		                               !runtime->turns, runtime->poll_ns);

		if (err == GALE_ERR_OK) {
			table_mirror(&runtime->shards[i].lessor.purses.table,
			             &runtime->roots[i].table);
			continue;
		}
		close_shards(runtime, i);
		free_shards(runtime, i);
		return err;
	}
	return GALE_ERR_OK;
}

bool runtime_watch(const struct gale_runtime *runtime, int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return runtime->turn_fd < 0 ||
	       epoll_ctl(runtime->turn_fd, EPOLL_CTL_ADD, fd, &readable) == 0;
}

/* One descriptor that is readable when one of the actors' is. */
static bool open_turn_fd(struct gale_runtime *runtime)
{
	runtime->turn_fd = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t i = 0; runtime->turn_fd >= 0 && i < runtime->shard_count; i++)
		if (!runtime_watch(runtime, runtime->shards[i].actor.watch_fd)) {
			close(runtime->turn_fd);
			runtime->turn_fd = -1;
		}
	return runtime->turn_fd >= 0;
}

static void free_runtime(struct gale_runtime *runtime)
{
	memory_give(runtime->allocator, runtime->locked.limiters,
	            runtime->locked.limiter_room * sizeof(*runtime->locked.limiters));
	lock_destroy(&runtime->lock);
	memory_give_lines(runtime->allocator, runtime, sizeof(*runtime));
}

static enum gale_err open_lifeline(struct gale_runtime *runtime)
{
	switch (lifeline_open(&runtime->lifeline)) {
	case LIFELINE_OPEN:
		return GALE_ERR_OK;
	case LIFELINE_NONE_LEFT:
		return GALE_ERR_RUNTIMES;
	case LIFELINE_REFUSED:
		break;
	}
	return GALE_ERR_SYSTEM;
}

static enum gale_err open_parts(struct gale_runtime *runtime)
{
	enum gale_err err;

	if (!random_fill(&runtime->seed, sizeof(runtime->seed)) ||
	    !random_fill(&runtime->node, sizeof(runtime->node)))
		return GALE_ERR_SYSTEM;
	err = open_lifeline(runtime);
	if (err != GALE_ERR_OK)
		return err;
	runtime->node = runtime->node % LEASE_NODE_MAX + 1;
	grace_open(&runtime->grace);
	err = open_shards(runtime);
	if (err == GALE_ERR_OK && (!runtime->turns || open_turn_fd(runtime)))
		return GALE_ERR_OK;
	if (err == GALE_ERR_OK) {
		close_shards(runtime, runtime->shard_count);
		free_shards(runtime, runtime->shard_count);
		err = GALE_ERR_SYSTEM;
	}
	grace_close(&runtime->grace);
	lifeline_close(&runtime->lifeline);
	return err;
}

static enum gale_err open_checked(const struct gale_config *config,
                                  struct gale_runtime **ret_runtime)
{
	struct gale_allocator *allocator;
	struct gale_runtime *runtime;
	enum gale_err err;

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

enum gale_err gale_runtime_open_sized(const struct gale_config *config,
                                      size_t config_bytes,
                                      struct gale_runtime **ret_runtime)
{
	struct gale_config known = { 0 };
	enum gale_err err;

	if (!ret_runtime)
		return GALE_ERR_RET;
	if (config && !sized_read(&known, sizeof(known), config, config_bytes))
		return GALE_ERR_SIZE;
	err = check_config(&known);
	return err == GALE_ERR_OK ? open_checked(&known, ret_runtime) : err;
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
	if (sub_acq_rel(&runtime->refs, 1) > 1) /* dropped */
		return;
	free_graveyard(runtime);
	guardhouse_free(runtime);
	free_shards(runtime, runtime->shard_count);
	grace_close(&runtime->grace);
	lifeline_close(&runtime->lifeline);
	free_runtime(runtime);
}

static void wait_for_posters(struct gale_runtime *runtime)
{
	while (load_acquire(&runtime->posters) > 0) /* posted */
		sched_yield();
}

/* Waits for the turn of another thread; with threads there is none. */
static void begin_turns(struct gale_runtime *runtime)
{
	while (swap_acq_rel(&runtime->turning, true)) /* turned */
		sched_yield();
}

static void end_turns(struct gale_runtime *runtime)
{
	(void)swap_acq_rel(&runtime->turning, false); /* turned */
}

void gale_runtime_close(struct gale_runtime *runtime)
{
	bool was_closed;

	if (!runtime || !lifeline_holds(&runtime->lifeline))
		return;
	was_closed = swap_relaxed(&runtime->closed, true);
	gale_assert(!was_closed);
	lifeline_stop(&runtime->lifeline);
	fence_full(); /* closing */
	wait_for_posters(runtime);
	begin_turns(runtime);
	guardhouse_tell_to_close(runtime);
	close_shards(runtime, runtime->shard_count);
	guardhouse_close(runtime);
	end_turns(runtime);
	if (runtime->turn_fd >= 0)
		close(runtime->turn_fd);
	runtime_drop(runtime); /* FACE-3 */
}

/* ---- Turns ----------------------------------------------------------------------- */

static struct shard_turned turn_all(struct gale_runtime *runtime)
{
	struct shard_turned all = { 0 };

	role_begin(&actor_role);
	for (uint32_t i = 0; i < runtime->shard_count; i++) {
		struct shard_turned turned = shard_turn(&runtime->shards[i]);

		all.done += turned.done;
		all.held_up |= turned.held_up;
	}
	all.done += guardhouse_turn(runtime);
	role_end(&actor_role);
	return all;
}

bool runtime_turn(struct gale_runtime *runtime, struct shard_turned *ret_turned)
{
	*ret_turned = (struct shard_turned){ 0 };
	if (swap_acq_rel(&runtime->turning, true)) /* turned */
		return false;
	/* The thread that closes it takes the last turns, and then there are no shards. */
	if (!load_relaxed(&runtime->closed))
		*ret_turned = turn_all(runtime);
	end_turns(runtime);
	return true;
}

uint64_t runtime_turn_after_ns(const struct gale_runtime *runtime)
{
	uint64_t least = guardhouse_turn_after_ns(runtime);

	for (uint32_t i = 0; i < runtime->shard_count; i++) {
		uint64_t after = shard_turn_after_ns(&runtime->shards[i]);

		if (after < least)
			least = after;
	}
	return least;
}

/* A fenced one, too: what is pending is answered, and denied. */
static bool takes_turns(const struct gale_runtime *runtime)
{
	return runtime && runtime->turns && lifeline_holds(&runtime->lifeline) &&
	       !load_relaxed(&runtime->closed);
}

uint64_t gale_turn(struct gale_runtime *runtime)
{
	struct shard_turned turned;

	return takes_turns(runtime) && runtime_turn(runtime, &turned) ? turned.done : 0;
}

int gale_turn_fd(struct gale_runtime *runtime)
{
	return takes_turns(runtime) ? runtime->turn_fd : -1;
}

uint64_t gale_turn_after_us(struct gale_runtime *runtime)
{
	uint64_t after_ns =
	    takes_turns(runtime) ? runtime_turn_after_ns(runtime) : UINT64_MAX;

	return after_ns == UINT64_MAX ? GALE_NEVER : (after_ns + 999) / 1000;
}

/* ---- While it is open ------------------------------------------------------------ */

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
	struct shard *shard = runtime_shard(runtime, ask->hash);
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

void runtime_wake_shards(struct gale_runtime *runtime)
{
	if (enter(runtime))
		for (uint32_t i = 0; i < runtime->shard_count; i++)
			shard_wake(&runtime->shards[i]);
	leave(runtime);
}
