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
static_assert(CACHE_LINE % (TABLE_NEAR * sizeof(uint64_t)) == 0 &&
                  SLOTS_FIRST % TABLE_NEAR == 0,
              "a home is on one line, and no home is cut off at the end");

static struct slots *slots_new(struct gale_allocator *allocator, uint64_t count)
{
	size_t bytes = sizeof(struct slots) + count * sizeof(uint64_t);
	struct slots *slots = memory_take_lines(allocator, bytes);

	if (!slots)
		return NULL;
	slots->part.bytes = bytes;
	slots->mask = count - 1;
	return slots;
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
	struct slots *slots = slots_of(table);

	memory_give_lines(allocator, slots, slots ? slots->part.bytes : 0);
}

static uint64_t home_of(const struct slots *slots, const struct hashes *hashes,
                        const void *item)
{
	return root_home(root_of(slots), hashes->of(hashes, item));
}

static void place(struct slots *slots, uint64_t home, uint64_t slot)
{
	uint64_t at = home;

	while (load_relaxed(&slots->at[at]) != 0)
		at = (at + 1) & slots->mask;
	store_release(&slots->at[at], slot); /* placed */
}

static void copy(const struct slots *from, struct slots *to,
                 const struct hashes *hashes)
{
	for (uint64_t i = 0; i <= from->mask; i++) {
		uint64_t slot = load_relaxed(&from->at[i]);

		if (slot != 0)
			place(to, home_of(to, hashes, slot_item(slot)), slot);
	}
}

bool table_make_room(struct table *table, struct gale_allocator *allocator,
                     const struct hashes *hashes, struct slots **ret_old)
{
	struct slots *old = slots_of(table), *larger;
	uint64_t count = old->mask + 1;

	*ret_old = NULL;
	if (table->count < count / 2) /* TABLE-2 */
		return true;
	larger = slots_new(allocator, 2 * count);
	if (!larger)
		return false;
	copy(old, larger, hashes);
	store_release(&table->root, root_of(larger)); /* grown */
	if (table->mirror)
		store_release(table->mirror, root_of(larger)); /* grown */
	*ret_old = old;
	return true;
}

void table_add(struct table *table, uint64_t hash, void *item)
{
	struct slots *slots = slots_of(table);

	gale_assert(table->count < slots->mask);
	gale_assert(slot_item(slot_of(hash, item)) == item);
	place(slots, root_home(root_of(slots), hash), slot_of(hash, item));
	table->count++;
}

static uint64_t find(const struct slots *slots, uint64_t home, const void *item)
{
	uint64_t at = home;

	while (slot_item(load_relaxed(&slots->at[at])) != item) {
		gale_assert(load_relaxed(&slots->at[at]) != 0);
		at = (at + 1) & slots->mask;
	}
	return at;
}

/* Those behind the hole move up where that brings them no nearer than their home: each
 * is copied before it is overwritten, so readers see it twice rather than not at all. */
void table_remove(struct table *table, const struct hashes *hashes, const void *item)
{
	struct slots *slots = slots_of(table);
	uint64_t mask = slots->mask;
	uint64_t hole = find(slots, home_of(slots, hashes, item), item);
	uint64_t at = hole;

	for (;;) {
		uint64_t slot;

		at = (at + 1) & mask;
		slot = load_relaxed(&slots->at[at]);
		if (slot == 0)
			break;
		if (((at - home_of(slots, hashes, slot_item(slot))) & mask) <
		    ((at - hole) & mask))
			continue;
		store_release(&slots->at[hole], slot); /* placed */
		hole = at;
	}
	store_relaxed(&slots->at[hole], 0); /* what is empty publishes nothing */
	table->count--;
}

bool table_valid(struct table *table, const struct hashes *hashes)
{
	struct slots *slots = slots_of(table);
	uint64_t count = 0;

	for (uint64_t i = 0; i <= slots->mask; i++) {
		uint64_t slot = load_relaxed(&slots->at[i]);

		if (slot == 0)
			continue;
		count++;
		for (uint64_t at = home_of(slots, hashes, slot_item(slot)); at != i;
		     at = (at + 1) & slots->mask)
			if (load_relaxed(&slots->at[at]) == 0)
				return false; /* TABLE-1 */
	}
	return count == table->count && count <= slots->mask;
}
