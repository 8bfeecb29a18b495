/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys.c -- entries, and a binary heap of them in blocks.
 */
#include "stores/keys.h"

#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"

/* ---- Entries --------------------------------------------------------------------- */

static uint8_t *key_of(const struct entry *entry)
{
	return (uint8_t *)(entry->words + entry->room);
}

static size_t entry_bytes(uint64_t room, uint32_t key_len)
{
	return sizeof(struct entry) + room * sizeof(uint64_t) + key_len;
}

bool entry_is(const struct entry *entry, const struct key_name *name)
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

/* Of the first so many places. */
static uint64_t heap_room(unsigned blocks)
{
	return HEAP_FIRST * ((UINT64_C(1) << blocks) - 1);
}

static size_t block_bytes(unsigned block)
{
	return ((size_t)HEAP_FIRST << block) * sizeof(struct heap_place);
}

static bool heap_make_room(struct keys *keys, struct gale_allocator *allocator)
{
	unsigned block = 0;

	while (block < HEAP_BLOCKS && keys->count >= heap_room(block + 1))
		block++;
	if (block == HEAP_BLOCKS)
		return false;
	if (!keys->heap[block])
		keys->heap[block] = memory_take_raw(allocator, block_bytes(block));
	return keys->heap[block] != NULL;
}

static void put_at(struct keys *keys, uint64_t place, struct heap_place what)
{
	*heap_at(keys, place) = what;
	what.entry->place = (uint32_t)place;
}

static void sift_up(struct keys *keys, uint64_t place, struct heap_place what)
{
	while (place > 0 && what.due_us < heap_at(keys, (place - 1) / 2)->due_us) {
		put_at(keys, place, *heap_at(keys, (place - 1) / 2));
		place = (place - 1) / 2;
	}
	put_at(keys, place, what);
}

static uint64_t earlier_child(const struct keys *keys, uint64_t place, uint64_t count)
{
	uint64_t left = 2 * place + 1, right = left + 1;

	if (right < count && heap_at(keys, right)->due_us < heap_at(keys, left)->due_us)
		return right;
	return left;
}

static void sift_down(struct keys *keys, uint64_t place, struct heap_place what,
                      uint64_t count)
{
	for (;;) {
		uint64_t child = earlier_child(keys, place, count);

		if (child >= count || what.due_us <= heap_at(keys, child)->due_us)
			break;
		put_at(keys, place, *heap_at(keys, child));
		place = child;
	}
	put_at(keys, place, what);
}

static void heap_remove(struct keys *keys, uint64_t place)
{
	uint64_t last = keys->count - 1;
	struct heap_place moved = *heap_at(keys, last);

	if (place == last)
		return;
	if (place > 0 && moved.due_us < heap_at(keys, (place - 1) / 2)->due_us)
		sift_up(keys, place, moved);
	else
		sift_down(keys, place, moved, last);
}

/* ---- Both ------------------------------------------------------------------------ */

struct entry *keys_find(const struct keys *keys, const struct key_name *name)
{
	return segments_find(&keys->table, name);
}

struct entry *keys_add(struct keys *keys, struct gale_allocator *allocator,
                       const struct key_name *name, uint64_t room, uint64_t expires_us)
{
	struct entry *entry = NULL;

	if (segments_make_room(&keys->table, allocator, name->hash) &&
	    heap_make_room(keys, allocator))
		entry = entry_new(allocator, name, room, expires_us);
	if (!entry)
		return NULL;
	segments_add(&keys->table, entry);
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
	heap_at(keys, entry->place)->entry = larger;
	segments_replace(&keys->table, entry, larger); /* KEYS-1 */
	entry_free(allocator, entry);
	return larger;
}

void keys_drop(struct keys *keys, struct gale_allocator *allocator, struct entry *entry)
{
	segments_remove(&keys->table, entry);
	heap_remove(keys, entry->place);
	keys->count--; /* KEYS-1 */
	entry_free(allocator, entry);
}

uint64_t keys_expire(struct keys *keys, struct gale_allocator *allocator,
                     uint64_t now_us, uint64_t looks, uint64_t drops)
{
	uint64_t dropped = 0;

	while (looks-- > 0 && dropped < drops && keys_next_due(keys) <= now_us) {
		struct entry *entry = heap_at(keys, 0)->entry;

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
	return keys->count > 0 ? heap_at(keys, 0)->due_us : UINT64_MAX;
}

void keys_close(struct keys *keys, struct gale_allocator *allocator)
{
	for (uint64_t i = 0; i < keys->count; i++)
		entry_free(allocator, heap_at(keys, i)->entry);
	for (unsigned block = 0; block < HEAP_BLOCKS; block++)
		memory_give(allocator, keys->heap[block], block_bytes(block));
	segments_close(&keys->table, allocator);
	*keys = (struct keys){ 0 };
}

static bool place_valid(const struct keys *keys, uint64_t i)
{
	const struct heap_place *place = heap_at(keys, i);
	struct key_name name = { key_of(place->entry), place->entry->key_len,
		                 place->entry->hash };

	if (place->entry->place != i)
		return false;
	if (i > 0 && heap_at(keys, (i - 1) / 2)->due_us > place->due_us)
		return false;
	return keys_find(keys, &name) == place->entry; /* KEYS-1 */
}

bool keys_valid(const struct keys *keys)
{
	for (uint64_t i = 0; i < keys->count; i++)
		if (!place_valid(keys, i))
			return false;
	return segments_valid(&keys->table, keys->count); /* KEYS-1 */
}
