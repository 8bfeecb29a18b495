/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * table.h -- from a hash to a purse: one writer, any readers.
 *
 * Open addressing with linear probing.  A slot is one word, the address of the purse and a few
 * bits of the hash; so a reader sees both or neither, and a probe that finds what it seeks
 * seldom touches more than one cache line before it:
 *
 *     63                        8 7           1   0
 *     |  address / TABLE_ALIGN   | of the hash | 1 |      0: empty
 *
 * The bits of the hash are a byte, so that a processor compares them with one instruction.
 *
 * Where readers begin is one word, too: where the slots are and how many.  So a probe by
 * caches that are cold waits for one line less, the slots' head.
 *
 *     63                               6 5             0
 *     | address of the slots, in lines  | 32 less log 2  |
 *
 * The low half of a hash, moved down by that, says where it is at home, in one of four slots
 * side by side.  Which one, an ask decides without a jump: a jump that goes now here and now
 * there costs more than all that there is to compare.
 *
 * A table grows beside the work.  When half of the slots are in use, twice as many are taken;
 * from then on each addition does a part: it clears some of the new slots, or, once all are
 * clear, carries what is in a few of the old ones over.  Readers look at the old ones until the
 * last is carried, which hold everything, and never at both:
 *
 *     additions of N slots     N / 2 |  N / 16: clears  |  N / 16: carries  | then N / 2 more ...
 *     what readers look at     N slots ---------------------------------->  | 2 N slots
 *     what is added, removed   in them ----------------> | in both          |
 *
 * So what growing takes of a turn is in proportion to what the turn adds.
 *
 * Invariants
 *
 *   TABLE-1  For the writer, probing from an item's home to its slot meets no empty
 *            slot.
 *   TABLE-2  At most half of the slots are in use, while it grows five eighths; so every
 *            probe ends, and few are long.
 *   TABLE-3  A reader that finds a purse may read it until its grace period ends.
 *   TABLE-4  While it carries, the new slots hold what is in the old ones that it has carried,
 *            and what was added since it began to, each once; TABLE-1 holds for them.
 *
 * Threads   table_seek, table_next and what takes a root or a home: any, within a grace
 *           period.  The rest: the writer, one at a time.
 * Limits    A reader may miss a purse while another is removed or the table grows; it
 *           then asks the writer, which misses none.  It never finds one that was not there.
 *
 * Ordering
 *
 *   placed   table_add stores a slot with release  ->  a probe loads it with acquire
 *            The purse is complete.
 *   grown    the writer stores root with release  ->  table_seek and home_at load it
 *            with acquire
 *            The new slots hold all that the old ones do.
 */
#ifndef SHARDS_TABLE_H
#define SHARDS_TABLE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/hot.h"
#include "shards/part.h"

#define TABLE_ALIGN UINT64_C(128) /* of what is in a table */
#define TAG_BITS 8                /* of a slot, for what is of the hash */

struct slots {
	struct part part; /* first */
	uint64_t mask;    /* the writer's: readers have it from the root */
	alignas(CACHE_LINE) _Atomic uint64_t at[];
};

/* Where readers begin. */
typedef _Atomic uintptr_t table_root;

#define ROOT_BITS 6 /* of it, for how many slots there are */
#define HOME_BITS 32
#define TABLE_NEAR 4 /* slots that a home has, side by side on one line */

static ALWAYS_INLINE _Atomic uint64_t *root_slots(uintptr_t root)
{
	return (_Atomic uint64_t *)(root >> ROOT_BITS << ROOT_BITS);
}

static inline uint64_t root_mask(uintptr_t root)
{
	return (UINT64_C(1) << (HOME_BITS - (root & ((1 << ROOT_BITS) - 1)))) - 1;
}

/* Where a hash is at home: the first of TABLE_NEAR slots.  Its low half is enough. */
static ALWAYS_INLINE uint64_t root_home(uintptr_t root, uint64_t hash)
{
	return (uint64_t)(uint32_t)hash >> (root & ((1 << ROOT_BITS) - 1)) &
	       ~(uint64_t)(TABLE_NEAR - 1);
}

struct table {
	table_root root;
	table_root *mirror; /* the root again, where readers want it; NULL: nowhere */
	/* The writer's. */
	uint64_t count;
	struct slots *larger; /* NULL: it does not grow */
	uint64_t cleared;     /* of the larger's slots */
	uint64_t carried;     /* of those where readers look */
};

/* Slots that one addition clears and carries while a table grows. */
#define TABLE_CLEARS 32
#define TABLE_CARRIES 16

/* A walk over what may belong to a hash. */
struct seek {
	const _Atomic uint64_t *slots;
	uint64_t mask;
	uint64_t hash;
	uint64_t next; /* where to look */
};

static ALWAYS_INLINE uint8_t tag_of(uint64_t hash)
{
	return (uint8_t)(hash | 1);
}

#define SLOT_OF_NOTHING UINT64_C(1) /* slot_of(0, NULL), which is never added */

static ALWAYS_INLINE uint64_t slot_of(uint64_t hash, const void *item)
{
	return (uintptr_t)item / TABLE_ALIGN << TAG_BITS | tag_of(hash);
}

/* May it be of an item with this hash?  An empty one never is. */
static ALWAYS_INLINE bool slot_is_of(uint64_t slot, uint64_t hash)
{
	return (uint8_t)slot == tag_of(hash);
}

static ALWAYS_INLINE void *slot_item(uint64_t slot)
{
	return (void *)(uintptr_t)((slot >> TAG_BITS) * TABLE_ALIGN);
}

static ALWAYS_INLINE struct seek root_seek(const table_root *root, uint64_t hash)
{
	uintptr_t word = load_acquire(root); /* grown */

	return (struct seek){ root_slots(word), root_mask(word), hash,
		              root_home(word, hash) };
}

static ALWAYS_INLINE struct seek table_seek(struct table *table, uint64_t hash)
{
	return root_seek(&table->root, hash);
}

/* The next that may be it, or NULL. */
static ALWAYS_INLINE void *table_next(struct seek *seek)
{
	for (;;) {
		uint64_t slot = load_acquire(&seek->slots[seek->next]); /* placed */

		if (slot == 0)
			return NULL; /* TABLE-1, TABLE-2 */
		seek->next = (seek->next + 1) & seek->mask;
		if (slot_is_of(slot, seek->hash))
			return slot_item(slot);
	}
}

static ALWAYS_INLINE uint64_t this_or(uint64_t slot, uint64_t other, uint64_t hash)
{
	slot = slot_is_of(slot, hash) ? slot : other;
	CHOSEN(slot);
	return slot;
}

/* The slots where a hash is at home. */
static ALWAYS_INLINE const _Atomic uint64_t *home_at(const table_root *root,
                                                     uint64_t hash)
{
	uintptr_t word = load_acquire(root); /* grown */

	return &root_slots(word)[root_home(word, hash)];
}

/* The first slot at home that may be it, or the last.  A purse that moves while others are
 * removed moves to a lower slot, and is there before it is gone from where it was: so lower
 * slots are read last. */
static ALWAYS_INLINE uint64_t home_near(const _Atomic uint64_t *home, uint64_t hash)
{
	uint64_t slot = load_acquire(&home[3]); /* placed */

	static_assert(TABLE_NEAR == 4, "those that are looked at");
	slot = this_or(load_acquire(&home[2]), slot, hash); /* placed */
	slot = this_or(load_acquire(&home[1]), slot, hash); /* placed */
	return this_or(load_acquire(&home[0]), slot, hash); /* placed */
}

/* False without memory. */
bool table_open(struct table *table, struct gale_allocator *allocator);
void table_close(struct table *table, struct gale_allocator *allocator);
/* From now on the root is there, too.  Before the table is shared. */
void table_mirror(struct table *table, table_root *mirror);

/* The low halves of the hashes of what is in the table. */
struct hashes {
	uint32_t (*of)(const struct hashes *self, const void *item);
};

/* Room for one more, and a part of growing.  When it has grown, *ret_old are slots that readers
 * may still use; NULL otherwise.  False without memory, and then nothing has changed. */
bool table_make_room(struct table *table, struct gale_allocator *allocator,
                     const struct hashes *hashes, struct slots **ret_old);

/* The table has room, and does not hold the item. */
void table_add(struct table *table, uint64_t hash, void *item);
/* The table holds the item. */
void table_remove(struct table *table, const struct hashes *hashes, const void *item);

bool table_valid(struct table *table, const struct hashes *hashes);

#endif
