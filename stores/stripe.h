/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stripe.h -- the embedded store's stripes of keys, each under a lock of its own.
 *
 *     memory.c   what is asked of a key, of a group, of the store
 *     loans.c    what is lent of a key
 *     stripe.c   room: keys are added, grow, expire
 *
 * Invariants
 *
 *   MEMORY-1  A stripe's now never decreases: now = max(clock, newest), read under its
 *             lock.
 *   MEMORY-2  used is the number of entries in all stripes, and at most max_keys.
 *   MEMORY-3  A new key is added only after the rule allowed it, and it is allowed only
 *             if it could be added: what was spent is remembered or was not spent.
 *   MEMORY-4  A store of a name is in the registry from its first opener to its last
 *             closer, in the process that opened it.
 *   MEMORY-5  A lease is stepped on a copy, and kept only if there is room for its row; but
 *             one apart is lost if there is none. LEASE-5
 *   MEMORY-6  rows_used is the number of rows apart in all stripes, and at most eight times
 *             max_keys.
 *
 * Ordering
 *
 *   used, rows_used, earliest, swept and the counters are relaxed: they publish nothing.  used
 *   and rows_used are the only words that stripes share, and hand out permissions one by one.
 *   earliest is a hint, read to skip stripes with nothing to expire; it is written under the
 *   lock, and a stale value costs one look or one sweep later.
 *
 * Threads   Any, with the stripe's lock where a function says so.
 */
#ifndef STORES_STRIPE_H
#define STORES_STRIPE_H

#include <stdalign.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "runtime/lock.h"
#include "stores/ears.h"
#include "stores/groups.h"
#include "stores/pools.h"
#include "stores/keys.h"
#include "stores/store.h"

#define STRIPE_BITS 6
#define STRIPES (1 << STRIPE_BITS)

struct stripe {
	/* MEMORY-1; beside the lock, as every run writes it */
	alignas(CACHE_LINE) struct lock lock;
	struct {
		uint64_t newest_us;
		uint64_t steps;
		struct keys keys;
		struct keys rows; /* apart, each by its node and its key */
		uint64_t full;
		uint64_t no_memory;
		uint64_t changed;
		uint64_t broken;
		uint64_t expired;
		uint64_t leases;
		uint64_t returns;
	} locked; /* under the lock; every function that touches it says so */
	_Atomic uint64_t earliest_us; /* next_due, as a hint */
};

struct memory_store {
	struct store store;

	/* Since it was opened. */
	struct gale_allocator *allocator;
	struct gale_clock *clock;
	struct boot_clock boot;
	uint64_t max_keys;
	uint8_t secret[XXH3_SECRET_SIZE_MIN];
	char name[GALE_NAME_MAX + 1];

	/* Under the registry's lock. */
	struct memory_store *next;
	uint64_t openers;

	struct {
		alignas(CACHE_LINE) struct lock lock;
		struct {
			struct groups *groups; /* NULL: none has beaten yet */
			struct pools *pools;   /* NULL: none was claimed yet */
		} locked;
	} beats;

	struct ears ears;
	_Atomic uint64_t used;      /* MEMORY-2 */
	_Atomic uint64_t rows_used; /* MEMORY-6 */
	_Atomic uint64_t swept;     /* stripes so far: where the next sweep goes on */
	struct stripe stripes[STRIPES];
};

/* A run on a key, under the stripe's lock. */
struct key_run {
	struct memory_store *memory;
	struct stripe *stripe;
	const struct rule *rule;
	struct store_op *op; /* NULL: it lends */
	struct key_name name;
	uint64_t now;
	uint64_t
	    *converted; /* what the entry's words mean under this rule; NULL: that */
	struct entry *over; /* of another kind: it goes when the key begins anew */
	bool restarted;     /* there is such a one */
};

static inline uint64_t memory_hash(const struct memory_store *memory,
                                   const uint8_t *bytes, size_t len)
{
	return XXH3_64bits_withSecret(bytes, len, memory->secret,
	                              sizeof(memory->secret));
}

/* The store's time, read under the lock: runs on a key are in the order of their nows.
 * MEMORY-1, STORE-2 */
uint64_t stripe_read_clock(struct memory_store *memory, struct stripe *stripe)
    ON(stripe->lock);
/* When the next of its keys and rows expires. */
uint64_t stripe_next_due(const struct stripe *stripe) ON(stripe->lock);
/* Looks at so many keys and so many rows, and drops so many of each at most. */
void stripe_expire(struct memory_store *memory, struct stripe *stripe, uint64_t looks,
                   uint64_t drops) ON(stripe->lock);

/* One more of so many places, if there is one. */
bool take_place(_Atomic uint64_t *places, uint64_t most);

void run_drop(const struct key_run *run, struct entry *entry) ON(run->stripe->lock);
void run_drop_expired(const struct key_run *run, struct entry *entry)
    ON(run->stripe->lock);
/* NULL: there is no memory, and the entry is as it was. */
struct entry *run_grow(const struct key_run *run, struct entry *entry, size_t room)
    ON(run->stripe->lock);
/* Remembers what a fresh key has just spent, with room for so many rows. MEMORY-3 */
enum store_result run_add(const struct key_run *run, const uint64_t *words, size_t rows,
                          struct entry **ret_entry) ON(run->stripe->lock);

/* The key's window begins with what was lent ahead of it, before any step. */
void run_turn(const struct key_run *run, struct entry *entry) ON(run->stripe->lock);
/* When the entry, which is of the run's rule, can be forgotten. */
uint64_t run_expires(const struct key_run *run, const struct entry *entry)
    ON(run->stripe->lock);
/* Of a fixed window: how many units of the next one are lent. */
uint64_t entry_ahead(const struct entry *entry);

/* Serves a request to lend. */
enum store_result run_lend(const struct key_run *run, struct entry *entry,
                           const struct lend_request *request,
                           struct lease_grant *ret_grant) ON(run->stripe->lock);

#endif
