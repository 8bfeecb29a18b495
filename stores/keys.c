/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys.c -- open addressing with the hash in the slot, and a binary heap.
 *
 * Half of the slots stay empty, so probes are short; removal moves later entries of the
 * same run back (no tombstones), so they stay short however many keys come and go.
 * The upper bits of a hash choose the stripe, the lower ones the slot.
 */
#include "stores/keys.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"

#define FIRST_CAPACITY 16

/* ---- Entries --------------------------------------------------------------------- */

static uint8_t *key_of(const struct entry *entry)
{
	return (uint8_t *)(entry->words + entry->room);
}

static size_t entry_bytes(uint64_t room, uint32_t key_len)
{
	return sizeof(struct entry) + room * sizeof(uint64_t) + key_len;
}

static bool entry_is(const struct entry *entry, const struct key_name *name)
{
	return entry->key_len == name->len &&
	       memcmp(key_of(entry), name->bytes, name->len) == 0;
}

static struct entry *entry_new(struct gale_allocator *allocator,
                               const struct key_name *name, uint64_t room,
                               uint64_t expires_us)
{
	struct entry *entry = memory_take(allocator, entry_bytes(room, name->len));

	if (!entry)
		return NULL;
	entry->hash = name->hash;
	entry->expires_us = expires_us;
	entry->room = (uint32_t)room;
	entry->key_len = (uint16_t)name->len;
	memcpy(key_of(entry), name->bytes, name->len);
	return entry;
}

static void entry_free(struct gale_allocator *allocator, struct entry *entry)
{
	memory_give(allocator, entry, entry_bytes(entry->room, entry->key_len));
}

/* ---- Heap ------------------------------------------------------------------------ */

static void put_at(struct keys *keys, uint64_t place, struct heap_place what)
{
	keys->heap[place] = what;
	what.entry->place = (uint32_t)place;
}

static void sift_up(struct keys *keys, uint64_t place, struct heap_place what)
{
	while (place > 0 && what.due_us < keys->heap[(place - 1) / 2].due_us) {
		put_at(keys, place, keys->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put_at(keys, place, what);
}

static uint64_t earlier_child(const struct keys *keys, uint64_t place, uint64_t count)
{
	uint64_t left = 2 * place + 1, right = left + 1;

	if (right < count && keys->heap[right].due_us < keys->heap[left].due_us)
		return right;
	return left;
}

static void sift_down(struct keys *keys, uint64_t place, struct heap_place what,
                      uint64_t count)
{
	for (;;) {
		uint64_t child = earlier_child(keys, place, count);

		if (child >= count || what.due_us <= keys->heap[child].due_us)
			break;
		put_at(keys, place, keys->heap[child]);
		place = child;
	}
	put_at(keys, place, what);
}

static void heap_remove(struct keys *keys, uint64_t place)
{
	uint64_t last = keys->count - 1;
	struct heap_place moved = keys->heap[last];

	if (place == last)
		return;
	if (place > 0 && moved.due_us < keys->heap[(place - 1) / 2].due_us)
		sift_up(keys, place, moved);
	else
		sift_down(keys, place, moved, last);
}

/* ---- Table ----------------------------------------------------------------------- */

static uint64_t mask_of(const struct keys *keys)
{
	return 2 * keys->capacity - 1; /* half of the slots stay empty */
}

/* The slot of the entry, or the empty slot at which the search for it ends. */
static struct table_slot *slot_for(const struct keys *keys, const struct key_name *name)
{
	uint64_t at = name->hash & mask_of(keys);

	for (;; at = (at + 1) & mask_of(keys)) {
		struct table_slot *slot = &keys->slots[at];

		if (!slot->entry)
			return slot;
		if (slot->hash == name->hash && entry_is(slot->entry, name))
			return slot;
	}
}

static void slot_put(struct keys *keys, struct entry *entry)
{
	uint64_t at = entry->hash & mask_of(keys);

	while (keys->slots[at].entry)
		at = (at + 1) & mask_of(keys);
	keys->slots[at] = (struct table_slot){ entry->hash, entry };
}

static uint64_t slot_of(const struct keys *keys, const struct entry *entry)
{
	uint64_t at = entry->hash & mask_of(keys);

	while (keys->slots[at].entry != entry)
		at = (at + 1) & mask_of(keys);
	return at;
}

/* May an entry whose home is there move back to the hole?  Not if its home lies
 * between the two, going round. */
static bool may_move(uint64_t home, uint64_t hole, uint64_t at, uint64_t mask)
{
	return ((at - home) & mask) >= ((at - hole) & mask);
}

static void slot_remove(struct keys *keys, uint64_t hole)
{
	uint64_t mask = mask_of(keys);

	for (uint64_t at = (hole + 1) & mask; keys->slots[at].entry;
	     at = (at + 1) & mask) {
		if (!may_move(keys->slots[at].hash & mask, hole, at, mask))
			continue;
		keys->slots[hole] = keys->slots[at];
		hole = at;
	}
	keys->slots[hole] = (struct table_slot){ 0 }; /* KEYS-3 */
}

static size_t table_bytes(uint64_t capacity)
{
	return 2 * capacity * sizeof(struct table_slot);
}

static size_t heap_bytes(uint64_t capacity)
{
	return capacity * sizeof(struct heap_place);
}

static void give_arrays(const struct keys *keys, struct gale_allocator *allocator)
{
	memory_give(allocator, keys->slots, table_bytes(keys->capacity));
	memory_give(allocator, keys->heap, heap_bytes(keys->capacity));
}

static bool take_arrays(struct keys *keys, struct gale_allocator *allocator,
                        uint64_t capacity)
{
	keys->capacity = capacity;
	keys->slots = memory_take(allocator, table_bytes(capacity));
	keys->heap = memory_take(allocator, heap_bytes(capacity));
	if (keys->slots && keys->heap)
		return true;
	give_arrays(keys, allocator);
	return false;
}

static bool make_room(struct keys *keys, struct gale_allocator *allocator)
{
	struct keys larger = { .count = keys->count };
	uint64_t capacity = keys->capacity > 0 ? 2 * keys->capacity : FIRST_CAPACITY;

	if (keys->count < keys->capacity)
		return true;
	if (!take_arrays(&larger, allocator, capacity))
		return false;
	for (uint64_t i = 0; i < keys->count; i++) {
		larger.heap[i] = keys->heap[i];
		slot_put(&larger, keys->heap[i].entry);
	}
	give_arrays(keys, allocator);
	*keys = larger;
	return true;
}

/* ---- Both ------------------------------------------------------------------------ */

struct entry *keys_find(const struct keys *keys, const struct key_name *name)
{
	if (keys->capacity == 0)
		return NULL;
	return slot_for(keys, name)->entry;
}

struct entry *keys_add(struct keys *keys, struct gale_allocator *allocator,
                       const struct key_name *name, uint64_t room, uint64_t expires_us)
{
	struct entry *entry = NULL;

	if (make_room(keys, allocator))
		entry = entry_new(allocator, name, room, expires_us);
	if (!entry)
		return NULL;
	slot_put(keys, entry);
	sift_up(keys, keys->count, (struct heap_place){ expires_us, entry });
	keys->count++; /* KEYS-1 */
	return entry;
}

struct entry *keys_grow(struct keys *keys, struct gale_allocator *allocator,
                        struct entry *entry, uint64_t room)
{
	struct key_name name = { key_of(entry), entry->key_len, entry->hash };
	struct entry *larger = entry_new(allocator, &name, room, entry->expires_us);

	if (!larger)
		return NULL;
	larger->fingerprint = entry->fingerprint;
	larger->word_count = entry->word_count;
	larger->kind = entry->kind;
	larger->rows = entry->rows;
	larger->place = entry->place;
	memcpy(larger->words, entry->words, entry->room * sizeof(uint64_t));
	keys->heap[entry->place].entry = larger;
	keys->slots[slot_of(keys, entry)].entry = larger; /* KEYS-1 */
	entry_free(allocator, entry);
	return larger;
}

void keys_drop(struct keys *keys, struct gale_allocator *allocator, struct entry *entry)
{
	slot_remove(keys, slot_of(keys, entry));
	heap_remove(keys, entry->place);
	keys->count--; /* KEYS-1 */
	entry_free(allocator, entry);
}

uint64_t keys_expire(struct keys *keys, struct gale_allocator *allocator,
                     uint64_t now_us, uint64_t looks, uint64_t drops)
{
	uint64_t dropped = 0;

	while (looks-- > 0 && dropped < drops && keys_next_due(keys) <= now_us) {
		struct entry *entry = keys->heap[0].entry;

		if (entry->expires_us <= now_us) {
			keys_drop(keys, allocator, entry);
			dropped++;
		} else { /* it was moved on since; KEYS-2 */
			sift_down(keys, 0,
			          (struct heap_place){ entry->expires_us, entry },
			          keys->count);
		}
	}
	return dropped;
}

uint64_t keys_next_due(const struct keys *keys)
{
	return keys->count > 0 ? keys->heap[0].due_us : UINT64_MAX;
}

void keys_close(struct keys *keys, struct gale_allocator *allocator)
{
	for (uint64_t i = 0; i < keys->count; i++)
		entry_free(allocator, keys->heap[i].entry);
	if (keys->capacity > 0)
		give_arrays(keys, allocator);
	*keys = (struct keys){ 0 };
}

static bool place_valid(const struct keys *keys, uint64_t i)
{
	const struct heap_place *place = &keys->heap[i];
	struct key_name name = { key_of(place->entry), place->entry->key_len,
		                 place->entry->hash };

	if (place->entry->place != i)
		return false;
	if (i > 0 && keys->heap[(i - 1) / 2].due_us > place->due_us)
		return false;
	return keys_find(keys, &name) == place->entry; /* KEYS-1, KEYS-3 */
}

bool keys_valid(const struct keys *keys)
{
	uint64_t filled = 0;

	for (uint64_t i = 0; i < keys->count; i++)
		if (!place_valid(keys, i))
			return false;
	for (uint64_t at = 0; keys->capacity > 0 && at <= mask_of(keys); at++)
		filled += keys->slots[at].entry != NULL;
	return filled == keys->count; /* KEYS-1 */
}
