/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys.h -- the keys of one stripe: found by name, dropped by time.
 *
 * A table from names to entries (segments.h), and a heap of the same entries by when they
 * expire.  An entry's place in the heap may be too early, never too late: a step moves an
 * expiry on, and the heap learns it only when the entry comes to the top.
 *
 * Both grow beside the work.  The heap stands in blocks, of which each has twice as many places
 * as the one before; nothing in it moves because it grows.
 *
 * Invariants
 *
 *   KEYS-1  Table and heap hold the same entries, each once.
 *   KEYS-2  A heap place is not later than its entry's expiry, unless the expiry was
 *           moved back by a cancel; then the entry is dropped late, which changes no
 *           decision.
 *
 * Threads   None of its own: the stripe's lock is held around every call.
 * Limits    Memory does not shrink; a stripe that was once full stays as large until it is
 *           closed.
 */
#ifndef STORES_KEYS_H
#define STORES_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "engine/rule.h"
#include "stores/segments.h"

struct entry {
	uint64_t hash;
	uint64_t expires_us;
	uint64_t fingerprint; /* of the rule that has written the words */
	uint32_t place;       /* in the heap */
	uint32_t room;        /* for words */
	uint16_t key_len;
	uint16_t word_count; /* of a fresh state of the rule; only a log's grows */
	uint16_t kind;       /* of the rule */
	uint16_t
	    rows; /* of the ledger, after the rule's words; strict keys have none */
	uint64_t words[]; /* room of them, and then the key */
};

struct heap_place {
	uint64_t due_us;
	struct entry *entry;
};

#define HEAP_LOG2 4
#define HEAP_FIRST (1 << HEAP_LOG2) /* places in the first block */
#define HEAP_BLOCKS 28              /* together for 2^32 keys */

struct keys {
	struct segments table;
	struct heap_place *heap[HEAP_BLOCKS]; /* NULL: not needed yet */
	uint64_t count;
};

static inline struct heap_place *heap_at(const struct keys *keys, uint64_t place)
{
	uint64_t at = place + HEAP_FIRST;
	unsigned log2 = 63 - (unsigned)__builtin_clzll(at);

	return &keys->heap[log2 - HEAP_LOG2][at ^ UINT64_C(1) << log2];
}

struct key_name {
	const uint8_t *bytes;
	uint32_t len;
	uint64_t hash;
};

bool entry_is(const struct entry *entry, const struct key_name *name);

struct entry *keys_find(const struct keys *keys, const struct key_name *name);

/* A new entry with room for so many words, all zero; NULL without memory. */
struct entry *keys_add(struct keys *keys, struct gale_allocator *allocator,
                       const struct key_name *name, uint64_t room, uint64_t expires_us);

/* The same entry with more room, at a new address; NULL without memory, and then the
 * entry is as it was. */
struct entry *keys_grow(struct keys *keys, struct gale_allocator *allocator,
                        struct entry *entry, uint64_t room);

void keys_drop(struct keys *keys, struct gale_allocator *allocator,
               struct entry *entry);

/* Looks at so many entries that may have expired, and drops so many that have; returns
 * how many it dropped. */
uint64_t keys_expire(struct keys *keys, struct gale_allocator *allocator,
                     uint64_t now_us, uint64_t looks, uint64_t drops);

/* When the first may expire; UINT64_MAX when there is none. */
uint64_t keys_next_due(const struct keys *keys);

void keys_close(struct keys *keys, struct gale_allocator *allocator);
bool keys_valid(const struct keys *keys);

#endif
