/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * table.c -- adding, removing, growing.
 *
 * Threads   The writer; table_open, table_mirror and table_close, while it is alone.
 */
#include "shards/table.h"

#include <assert.h>

#include "engine/check.h"
#include "runtime/memory.h"

#define SLOTS_FIRST 64

static_assert(CACHE_LINE >= 1 << ROOT_BITS, "the root's low bits are free");
static_assert(SLOTS_FIRST % TABLE_CARRIES == 0 && SLOTS_FIRST % TABLE_CLEARS == 0,
              "parts of growing are whole");
static_assert(CACHE_LINE % (TABLE_NEAR * sizeof(uint64_t)) == 0 &&
                  SLOTS_FIRST % TABLE_NEAR == 0,
              "a home is on one line, and no home is cut off at the end");

/* Not cleared. */
static struct slots *slots_new(struct gale_allocator *allocator, uint64_t count)
{
	size_t bytes = sizeof(struct slots) + count * sizeof(uint64_t);
	struct slots *slots = memory_take_lines_raw(allocator, bytes);

	if (!slots)
		return NULL;
	slots->part.bytes = bytes;
	slots->mask = count - 1;
	return slots;
}

static void slots_free(struct gale_allocator *allocator, struct slots *slots)
{
	memory_give_lines(allocator, slots, slots ? slots->part.bytes : 0);
}

static void clear(struct slots *slots, uint64_t from, uint64_t count)
{
	for (uint64_t i = from; i < from + count; i++)
		atomic_init(&slots->at[i], 0);
}

static struct slots *slots_of(struct table *table)
{
	uintptr_t root = load_relaxed(&table->root);

	if (root == 0)
		return NULL; /* it could not be opened */
	return (struct slots *)((char *)root_slots(root) - offsetof(struct slots, at));
}

static uintptr_t root_of(const struct slots *slots)
{
	uintptr_t address = (uintptr_t)slots->at;

	gale_assert(address % CACHE_LINE == 0 && slots->mask <= UINT32_MAX);
	return address | (uintptr_t)(HOME_BITS - __builtin_popcountll(slots->mask));
}

bool table_open(struct table *table, struct gale_allocator *allocator)
{
	struct slots *slots = slots_new(allocator, SLOTS_FIRST);

	table->count = 0;
	table->larger = NULL;
	if (slots)
		clear(slots, 0, SLOTS_FIRST);
	atomic_init(&table->root, slots ? root_of(slots) : 0);
	return slots != NULL;
}

void table_mirror(struct table *table, table_root *mirror)
{
	table->mirror = mirror;
	atomic_init(mirror, load_relaxed(&table->root));
}

void table_close(struct table *table, struct gale_allocator *allocator)
{
	slots_free(allocator, slots_of(table));
	slots_free(allocator, table->larger);
}

static uint64_t home_of(const struct slots *slots, const struct hashes *hashes,
                        const void *item)
{
	return root_home(root_of(slots), hashes->of(hashes, item));
}

/* Where the item is, or the empty slot at which the search for it ends. */
static uint64_t slot_for(const struct slots *slots, uint64_t home, const void *item)
{
	uint64_t at = home;

	for (;; at = (at + 1) & slots->mask) {
		uint64_t slot = load_relaxed(&slots->at[at]);

		if (slot == 0 || slot_item(slot) == item)
			return at; /* TABLE-2 */
	}
}

/* Where it is already, nothing changes. */
static void place(struct slots *slots, uint64_t hash, uint64_t slot)
{
	uint64_t home = root_home(root_of(slots), hash);

	store_release(&slots->at[slot_for(slots, home, slot_item(slot))],
	              slot); /* placed */
}

/* ---- Growing --------------------------------------------------------------------- */

/* The slots that take what is added now, and lose what is removed, beside those where readers
 * look; NULL: none. TABLE-4 */
static struct slots *filling(const struct table *table)
{
	return table->larger && table->cleared > table->larger->mask ? table->larger
	                                                             : NULL;
}

static void carry(struct slots *to, const struct hashes *hashes, uint64_t slot)
{
	place(to, hashes->of(hashes, slot_item(slot)), slot);
}

/* Its hash is in the last line of an item that is no longer than two. */
static void fetch_some(const struct slots *from, uint64_t first)
{
	for (uint64_t i = first; i < first + TABLE_CARRIES; i++) {
		uint64_t slot = load_relaxed(&from->at[i & from->mask]);

		/* A number, as the item of an empty slot is NULL. */
		__builtin_prefetch((const void *)((uintptr_t)slot_item(slot) +
		                                  TABLE_ALIGN - CACHE_LINE));
	}
}

static void carry_some(struct table *table, const struct hashes *hashes)
{
	const struct slots *from = slots_of(table);
	uint64_t end = table->carried + TABLE_CARRIES;

	fetch_some(from, end);
	for (; table->carried < end; table->carried++) {
		uint64_t slot = load_relaxed(&from->at[table->carried]);

		if (slot != 0)
			carry(table->larger, hashes, slot);
	}
}

static void grow_a_part(struct table *table, const struct hashes *hashes)
{
	if (filling(table)) {
		carry_some(table, hashes);
		return;
	}
	clear(table->larger, table->cleared, TABLE_CLEARS);
	table->cleared += TABLE_CLEARS;
}

static void begin_to_grow(struct table *table, struct slots *larger)
{
	table->larger = larger;
	table->cleared = table->carried = 0;
}

/* Returns those where readers have looked so far. */
static struct slots *end_growing(struct table *table)
{
	struct slots *old = slots_of(table);
	uintptr_t root = root_of(table->larger);

	store_release(&table->root, root); /* grown */
	if (table->mirror)
		store_release(table->mirror, root); /* grown */
	table->larger = NULL;
	return old;
}

bool table_make_room(struct table *table, struct gale_allocator *allocator,
                     const struct hashes *hashes, struct slots **ret_old)
{
	uint64_t count = slots_of(table)->mask + 1;
	struct slots *larger;

	*ret_old = NULL;
	if (!table->larger) {
		if (table->count < count / 2)
			return true;
		larger = slots_new(allocator, 2 * count);
		if (!larger)
			return false;
		begin_to_grow(table, larger);
	}
	grow_a_part(table, hashes);
	if (table->carried == count)
		*ret_old = end_growing(table);
	return true;
}

/* ---- Adding and removing --------------------------------------------------------- */

void table_add(struct table *table, uint64_t hash, void *item)
{
	struct slots *slots = slots_of(table), *larger = filling(table);

	gale_assert(table->count < (slots->mask + 1) / 8 * 5); /* TABLE-2 */
	gale_assert(slot_item(slot_of(hash, item)) == item);
	place(slots, hash, slot_of(hash, item));
	if (larger)
		place(larger, hash, slot_of(hash, item)); /* TABLE-4 */
	table->count++;
}

/* Those behind the hole move up where that brings them no nearer than their home: each
 * is copied before it is overwritten, so readers see it twice rather than not at all.
 * One that moves may come to where all is carried: so it is carried, too, if there is a larger
 * table. */
static void take_out(struct slots *slots, uint64_t hole, const struct hashes *hashes,
                     struct slots *larger)
{
	uint64_t mask = slots->mask;

	for (uint64_t at = (hole + 1) & mask;; at = (at + 1) & mask) {
		uint64_t slot = load_relaxed(&slots->at[at]);

		if (slot == 0)
			break;
		if (((at - home_of(slots, hashes, slot_item(slot))) & mask) <
		    ((at - hole) & mask))
			continue;
		if (larger)
			carry(larger, hashes, slot);   /* TABLE-4 */
		store_release(&slots->at[hole], slot); /* placed */
		hole = at;
	}
	store_relaxed(&slots->at[hole], 0); /* what is empty publishes nothing */
}

static bool find_in(const struct slots *slots, const struct hashes *hashes,
                    const void *item, uint64_t *ret_at)
{
	*ret_at = slot_for(slots, home_of(slots, hashes, item), item);
	return load_relaxed(&slots->at[*ret_at]) != 0;
}

void table_remove(struct table *table, const struct hashes *hashes, const void *item)
{
	struct slots *slots = slots_of(table), *larger = filling(table);
	uint64_t at;
	bool found = find_in(slots, hashes, item, &at);

	gale_assert(found);
	take_out(slots, at, hashes, larger);
	if (larger && find_in(larger, hashes, item, &at)) /* or it is not carried yet */
		take_out(larger, at, hashes, NULL);
	table->count--;
}

/* ---- Checking -------------------------------------------------------------------- */

/* How many items are in them; UINT64_MAX: one of them is not found. */
static uint64_t count_found(const struct slots *slots, const struct hashes *hashes)
{
	uint64_t count = 0, at;

	for (uint64_t i = 0; i <= slots->mask; i++) {
		uint64_t slot = load_relaxed(&slots->at[i]);

		if (slot == 0)
			continue;
		count++;
		(void)find_in(slots, hashes, slot_item(slot), &at);
		if (at != i)
			return UINT64_MAX; /* TABLE-1 */
	}
	return count;
}

static bool is_in(const struct slots *slots, const struct hashes *hashes, uint64_t slot)
{
	uint64_t at;

	return slot == 0 || find_in(slots, hashes, slot_item(slot), &at);
}

static bool filling_valid(struct table *table, const struct hashes *hashes)
{
	const struct slots *from = slots_of(table), *larger = filling(table);

	if (!larger)
		return true;
	if (count_found(larger, hashes) == UINT64_MAX)
		return false;
	for (uint64_t i = 0; i < table->carried; i++)
		if (!is_in(larger, hashes, load_relaxed(&from->at[i])))
			return false;
	for (uint64_t i = 0; i <= larger->mask; i++)
		if (!is_in(from, hashes, load_relaxed(&larger->at[i])))
			return false;
	return true; /* TABLE-4 */
}

bool table_valid(struct table *table, const struct hashes *hashes)
{
	const struct slots *slots = slots_of(table);
	uint64_t most = (slots->mask + 1) / 8 * (table->larger ? 5 : 4);

	return table->count <= most && /* TABLE-2 */
	       count_found(slots, hashes) == table->count &&
	       filling_valid(table, hashes);
}
