/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * face.h -- the objects behind the handles of gale.h.
 *
 *     gale_runtime  <--  gale_store  <--  gale_limiter  <--  pending ask
 *           ^------------------------------- gale_seat  <-------'
 *
 * An arrow is a counted reference: what is pointed to lives on until the last one is
 * dropped, in whatever order the host closes its handles.
 *
 * Invariants
 *
 *   FACE-1  A handle's refs count its opener, until it closes, and everything that
 *           points to it.  At 0 it dies, once.
 *   FACE-2  A dead handle's memory stays for a while (the graveyard), so that a use
 *           after close meets its closed word and is refused, not followed.  The
 *           graveyard is bounded, and emptied with the runtime: this is a courtesy, not
 *           a promise.
 *   FACE-3  The runtime dies last, and never on one of its own threads: its opener's
 *           reference is dropped only after they have been joined.
 *
 * Ordering
 *
 *   dropped   handle_drop subtracts with release  ->  the last drop acquires
 *             The thread that makes a handle die sees all that its users did to it.
 */
#ifndef FACE_FACE_H
#define FACE_FACE_H

#include <stdalign.h>

#include <gale/gale.h>

#include "coordinator/fleet.h"
#include "engine/offenders.h"
#include "engine/rule.h"
#include "face/score.h"
#include "runtime/atomic.h"
#include "runtime/lifeline.h"
#include "runtime/lock.h"
#include "runtime/panic.h"
#include "runtime/clock.h"
#include "runtime/grace.h"
#include "runtime/latch.h"
#include "shards/shard.h"
#include "stores/label.h"
#include "stores/store.h"

#define CELLS_MOST 64 /* seats that have cells of hot keys: as many as bits in a word */

struct handle {
	struct gale_runtime *runtime;
	struct handle *next_dead;
	size_t bytes;
	void (*die)(struct handle *self); /* lets go of all but its own memory */
	_Atomic uint64_t refs;            /* FACE-1 */
	_Atomic bool closed;
};

struct gale_store {
	struct handle handle;
	struct store *inner;
	struct post post; /* of guards that share their ceilings by it */
	char label[LABEL_ROOM];
	struct gale_store *next; /* in the runtime's list, under its lock */
};

struct gale_limiter {
	struct handle handle;
	alignas(WET_ALIGN) struct lender
	    lender; /* its rule, its name, and how the shards lend for it */
	struct gale_store *store;
	enum gale_on_outage on_outage;
	uint64_t outage_share;     /* on_outage SHARE: so much ... */
	struct store *share_store; /* ... on a store of this limiter's own; or NULL */
	bool leases;
	bool restarts;         /* keys that live under rules of another kind */
	_Atomic unsigned said; /* results already logged, a bit each */

	struct latch latch;
	struct offenders offenders; /* under the latch: keys that its rule refuses */

	/* Under the runtime's lock. */
	struct {
		uint32_t number;
		struct list same; /* the limiters of its name, if it is listed */
		struct score_sum counted;   /* by seats that have died */
		struct score_sum inherited; /* from limiters of its name that have */
	} locked;
};

/* Where the asks of a shard's keys begin: on a line of its own, hardly ever written. */
struct root {
	alignas(CACHE_LINE) table_root table;
};

struct gale_runtime {
	/* Since it was opened. */
	struct lifeline lifeline; /* quick asks have it from the seat */
	struct root *roots; /* of the shards' tables, by the shard's number; an ask
	                     * has them from the seat */
	uint32_t shard_count;
	uint32_t pending_max;
	struct gale_allocator *allocator;
	struct gale_log *log;          /* may be NULL */
	struct gale_clock *clock;      /* of its stores; may be NULL */
	struct gale_clock *node_clock; /* of leases and deadlines */
	bool counts;        /* seats may tell its time by the processor's counter */
	struct grace grace; /* its epoch is read by every ask, too */
	struct boot_clock boot;
	uint64_t seed; /* of the hashes that spread keys over shards */
	uint64_t node; /* its number at the stores: no other has it, then or later */
	uint32_t max_keys;
	uint64_t poll_ns; /* before a shard's thread, or a call that waits, sleeps */
	bool turns;       /* the host's: no threads */
	int turn_fd;      /* readable when a shard has mail; -1 with threads */
	_Atomic bool turning; /* a thread is at it */
	struct shard *shards;
	struct shard_chore sweeper; /* run by the first shard */
	uint32_t cell_count; /* seats with a cell, of each hot key and of each guard */
	_Atomic(struct guardhouse *) guardhouse; /* NULL: no guard was ever opened */
	_Atomic uint64_t held_closes; /* of tenants, under holds: tenant_hold.c */

	_Atomic uint64_t refs; /* FACE-1 */
	_Atomic bool closed;
	_Atomic uint32_t posters; /* threads that are about to touch a shard */

	struct lock lock;
	struct {
		struct gale_store *next_swept; /* of those, if one is being swept */
		struct gale_store *sweeping;   /* it does not die meanwhile */
		struct gale_store *stores;     /* those that are open */
		struct list budgets;           /* those that are open */
		struct list held;  /* tenants that were closed under holds */
		struct list seats; /* those that have not died */
		uint64_t numbers;  /* that they have, a bit each */
		uint64_t counted[SEAT_COUNTER_COUNT]; /* by those that have */
		struct gale_limiter **limiters;       /* by number; NULL: it has none */
		uint32_t limiter_room;
		uint32_t limiter_end;       /* no number from here on was ever given */
		uint32_t limiter_least;     /* all numbers below are taken */
		uint32_t chunk_count;       /* of scores, that each seat has */
		struct score_sum gone;      /* of limiters whose name is gone */
		struct handle *oldest_dead; /* the graveyard, in order of death */
		struct handle *newest_dead;
		unsigned dead_count;
	} locked;
};

static_assert(!IS_WET(struct gale_runtime, lifeline.word) &&
                  !IS_WET(struct gale_runtime, lifeline.token) &&
                  !IS_WET(struct gale_runtime, grace.epoch) &&
                  !IS_WET(struct gale_runtime, grace.fences) &&
                  !IS_WET(struct gale_runtime, grace.forgotten) &&
                  !IS_WET(struct gale_runtime, cell_count) &&
                  !IS_WET(struct gale_runtime, held_closes) &&
                  !IS_WET(struct gale_limiter, handle.runtime) &&
                  !IS_WET(struct gale_limiter, lender.quick_most) &&
                  !IS_WET(struct gale_limiter, lender.secret.first) &&
                  !IS_WET(struct gale_limiter, lender.secret.last) &&
                  !IS_WET(struct gale_limiter, lender.capacity),
              "see hot.h");

/* Memory for a handle that holds a reference to the runtime; NULL without memory. */
void *handle_new(struct gale_runtime *runtime, size_t bytes,
                 void (*die)(struct handle *self));
void handle_hold(struct handle *handle);
void handle_drop(struct handle *handle);
/* Marks it closed and drops the opener's reference; closing twice panics. */
void handle_close(struct handle *handle);
/* Is it a handle of this runtime, and open? */
static inline bool handle_is_open(const struct handle *handle,
                                  const struct gale_runtime *runtime)
{
	return handle->runtime == runtime && !load_relaxed(&handle->closed);
}

void runtime_hold(struct gale_runtime *runtime);
void runtime_drop(struct gale_runtime *runtime);

/* Why nothing may be asked of this runtime; GALE_WHY_RULE if it may. */
static inline enum gale_why runtime_refuses(const struct gale_runtime *runtime)
{
	if (!lifeline_holds(&runtime->lifeline))
		return GALE_WHY_FORKED;
	if (load_relaxed(&runtime->closed))
		return GALE_WHY_CLOSED;
	return panic_fenced() ? GALE_WHY_FENCED : GALE_WHY_RULE;
}

/* The same as an error, for setting up. */
enum gale_err runtime_error(const struct gale_runtime *runtime);

/* Hands the ask to the shard of its key; false if the runtime is closed or the shard
 * has its hands full, and then the ask is still the caller's. */
bool runtime_post(struct gale_runtime *runtime, struct ask *ask);

/* The shard of a key's hash, among so many. */
static inline uint64_t shard_number(uint64_t hash, uint32_t shard_count)
{
	return (hash >> 32) * shard_count >> 32;
}

static inline struct shard *runtime_shard(const struct gale_runtime *runtime,
                                          uint64_t hash)
{
	return &runtime->shards[shard_number(hash, runtime->shard_count)];
}

/* A turn of all shards, on this thread, and what came of it; nothing if the runtime is
 * closed.  False while another thread is at it. */
bool runtime_turn(struct gale_runtime *runtime, struct shard_turned *ret_turned);
/* How long until a turn is due, if nothing is posted. */
uint64_t runtime_turn_after_ns(const struct gale_runtime *runtime);

/* turn_fd is readable when this descriptor is, too; true if there is none. */
bool runtime_watch(const struct gale_runtime *runtime, int fd);

/* Lets the shards look around. */
void runtime_wake_shards(struct gale_runtime *runtime);

/* There is something to sweep now: the sweeper may sleep without a deadline. */
void runtime_wake_sweeper(struct gale_runtime *runtime);

/* ---- In score.c ------------------------------------------------------------------ */

/* Lists the limiter; false without memory. */
bool score_open(struct gale_limiter *limiter);
/* Strikes it off, if it is listed: it is dead. */
void score_close(struct gale_limiter *limiter);

/* Scores of all limiters; false without memory, and then some may have been made. */
bool score_join(struct gale_runtime *runtime, struct gale_seat *seat) ON(runtime->lock);
/* The seat's counts are kept. */
void score_leave(struct gale_runtime *runtime, struct gale_seat *seat)
    ON(runtime->lock);
/* Of a seat that is not listed. */
void score_free(struct gale_seat *seat);

/* The answer of an ask will not be told. */
void score_drop(struct gale_limiter *limiter);

/* Of this limiter. */
void score_read(const struct gale_runtime *runtime, const struct gale_limiter *limiter,
                struct score_sum *ret_sum) ON(runtime->lock);
/* Of all limiters of its name, and those that have died. */
void score_read_name(const struct gale_runtime *runtime,
                     const struct gale_limiter *limiter, struct score_sum *ret_sum)
    ON(runtime->lock);
/* The first limiter of each name, from this number on: it speaks for all of the name.  NULL: there
 * are no more. */
struct gale_limiter *score_next_name(const struct gale_runtime *runtime,
                                     uint32_t number) ON(runtime->lock);
/* Of all limiters, and those that have died. */
void score_read_all(const struct gale_runtime *runtime, struct score_sum *ret_sum)
    ON(runtime->lock);
uint64_t score_total(const struct score_sum *sum, enum gale_verdict verdict);

/* ---- In log.c -------------------------------------------------------------------- */

/* Say it to the host's log, if there is one. */
void runtime_say(const struct gale_runtime *runtime, enum gale_level level,
                 const char *kind, const char *name, const char *line);
void store_say(const struct gale_store *store, enum gale_level level, const char *line);
void limiter_say(const struct gale_limiter *limiter, enum gale_level level,
                 const char *line);

#endif
