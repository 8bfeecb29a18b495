/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * space.c -- a table that only grows, and shelves in memory that is taken as it is used.
 *
 * Who finds a free word puts the state on its shelf and swaps the word in; who loses the
 * swap looks at the winner's state, and goes on.  The place on the shelf is used again.
 */
#define _GNU_SOURCE
#include "spec/explore/space.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/check.h"

#define SLOTS_FIRST (UINT64_C(1) << 16)
#define ADDED_AT_ONCE 16384 /* at most, by a thread, between two looks at the room */

static uint64_t slots_bytes(uint64_t slot_count)
{
	return slot_count * sizeof(uint64_t);
}

static void *take_pages(uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool open_shelf(struct space *space, struct shelf *shelf)
{
	uint64_t room = space->bytes_most / (space->size + sizeof(uint32_t));

	if (room > UINT32_MAX / THREADS_MOST - 1)
		room = UINT32_MAX / THREADS_MOST - 1;
	shelf->room = (uint32_t)room;
	shelf->states = take_pages(room * space->size + 1);
	shelf->parents = take_pages(room * sizeof(uint32_t) + 1);
	return shelf->states && shelf->parents;
}

bool space_open(struct space *space, size_t size, uint32_t threads, uint64_t bytes_most)
{
	bool ok = bytes_most >= slots_bytes(SLOTS_FIRST);

	*space = (struct space){
		.size = size,
		.threads = threads,
		.bytes_most = bytes_most,
		.slot_count = SLOTS_FIRST,
	};
	if (ok)
		space->slots = take_pages(slots_bytes(SLOTS_FIRST));
	for (uint32_t i = 0; ok && i < threads; i++)
		ok = open_shelf(space, &space->shelves[i]);
	ok &= space->slots != NULL;
	if (!ok)
		space_close(space);
	return ok;
}

void space_close(struct space *space)
{
	for (uint32_t i = 0; i < space->threads; i++) {
		struct shelf *shelf = &space->shelves[i];

		if (shelf->states)
			munmap(shelf->states, (uint64_t)shelf->room * space->size + 1);
		if (shelf->parents)
			munmap(shelf->parents,
			       (uint64_t)shelf->room * sizeof(uint32_t) + 1);
	}
	if (space->slots)
		munmap((void *)space->slots, slots_bytes(space->slot_count));
	*space = (struct space){ 0 };
}

/* ---- What is there --------------------------------------------------------------- */

uint64_t space_count(const struct space *space)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < space->threads; i++)
		count += atomic_load_explicit(&space->shelves[i].count,
		                              memory_order_relaxed);
	return count;
}

uint64_t space_bytes(const struct space *space)
{
	return slots_bytes(space->slot_count) +
	       space_count(space) * (space->size + sizeof(uint32_t));
}

static const uint8_t *state_at(const struct space *space, uint32_t state)
{
	const struct shelf *shelf = &space->shelves[state % space->threads];

	return shelf->states + (uint64_t)(state / space->threads) * space->size;
}

const void *space_state(const struct space *space, uint32_t state)
{
	return state_at(space, state);
}

uint32_t space_parent(const struct space *space, uint32_t state)
{
	return space->shelves[state % space->threads].parents[state / space->threads];
}

uint32_t space_depth(const struct space *space, uint32_t state)
{
	uint32_t depth = 0;

	for (; space_parent(space, state) != state; depth++)
		state = space_parent(space, state);
	return depth;
}

/* ---- Adding ---------------------------------------------------------------------- */

uint64_t space_hash(const struct space *space, const void *state)
{
	return XXH3_64bits(state, space->size);
}

static uint64_t tag_of(uint64_t hash)
{
	return hash >> 32 << 32;
}

static uint32_t state_of(uint64_t word)
{
	return (uint32_t)word - 1;
}

void space_near(const struct space *space, uint64_t hash)
{
	__builtin_prefetch((const void *)&space->slots[hash & (space->slot_count - 1)]);
}

void space_nearer(const struct space *space, uint64_t hash)
{
	uint64_t word = atomic_load_explicit(
	    &space->slots[hash & (space->slot_count - 1)], memory_order_relaxed);

	if (word != 0 && tag_of(word) == tag_of(hash))
		__builtin_prefetch(state_at(space, state_of(word)));
}

static bool is_at(const struct space *space, uint64_t word, const void *state,
                  uint64_t hash)
{
	return tag_of(word) == tag_of(hash) &&
	       memcmp(state_at(space, state_of(word)), state, space->size) == 0;
}

/* The word of the state, or 0 where it would be put. */
static _Atomic uint64_t *look_up(const struct space *space, const void *state,
                                 uint64_t hash, uint64_t *ret_word)
{
	uint64_t mask = space->slot_count - 1;
	uint64_t at = hash & mask;

	for (;; at = (at + 1) & mask) {
		*ret_word = atomic_load_explicit(&space->slots[at],
		                                 memory_order_acquire); /* shelved */
		if (*ret_word == 0 || is_at(space, *ret_word, state, hash))
			return &space->slots[at];
	}
}

enum added space_add(struct space *space, uint32_t thread, const void *state,
                     uint64_t hash, uint32_t parent)
{
	struct shelf *shelf = &space->shelves[thread];
	uint32_t place = atomic_load_explicit(&shelf->count, memory_order_relaxed);
	uint32_t number = place * space->threads + thread;
	_Atomic uint64_t *slot;
	uint64_t word;

	do {
		slot = look_up(space, state, hash, &word);
		if (word != 0)
			return ADDED_OLD; /* SPACE-1 */
		if (place == shelf->room)
			return ADDED_NOT; /* SPACE-3 */
		/* SPACE-2 */
		memcpy(shelf->states + (uint64_t)place * space->size, state,
		       space->size);
		shelf->parents[place] = parent == STATE_NONE ? number : parent;
	} while (!atomic_compare_exchange_strong_explicit(
	    slot, &word, tag_of(hash) | (number + 1),
	    memory_order_release, /* shelved */
	    memory_order_relaxed));
	atomic_store_explicit(&shelf->count, place + 1, memory_order_relaxed);
	return ADDED_NEW;
}

uint32_t space_find(const struct space *space, const void *state)
{
	uint64_t word;

	(void)look_up(space, state, space_hash(space, state), &word);
	return word == 0 ? STATE_NONE : state_of(word);
}

/* ---- Growing --------------------------------------------------------------------- */

bool space_is_crowded(const struct space *space)
{
	uint64_t soon = (uint64_t)space->threads * ADDED_AT_ONCE;

	return (space_count(space) + soon) * 8 > space->slot_count * 5;
}

bool space_is_full(const struct space *space)
{
	return space_bytes(space) > space->bytes_most;
}

static void put_again(struct space *space, uint32_t state)
{
	uint64_t hash = space_hash(space, state_at(space, state));
	uint64_t mask = space->slot_count - 1;
	uint64_t at = hash & mask;

	while (atomic_load_explicit(&space->slots[at], memory_order_relaxed) != 0)
		at = (at + 1) & mask;
	atomic_store_explicit(&space->slots[at], tag_of(hash) | (state + 1),
	                      memory_order_relaxed);
}

bool space_grow(struct space *space)
{
	uint64_t more = space->slot_count * 4;
	_Atomic uint64_t *slots;

	if (space_bytes(space) + slots_bytes(more) > space->bytes_most)
		return false; /* SPACE-3: the old one is still there, while the new one is filled */
	slots = take_pages(slots_bytes(more));
	if (!slots)
		return false;
	munmap((void *)space->slots, slots_bytes(space->slot_count));
	space->slots = slots;
	space->slot_count = more;
	for (uint32_t thread = 0; thread < space->threads; thread++)
		for (uint32_t i = 0; i < space->shelves[thread].count; i++)
			put_again(space, i * space->threads + thread);
	return true;
}
