/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * segments.h -- from names to entries: a table in segments, each of which splits by itself.
 *
 * A directory finds a hash's segment, by as many bits of its upper half as it is deep.  A
 * segment has slots with open addressing; its lower bits are where a hash is at home in them.
 * One that is five eighths full is made twice as large, and when it has SEGMENT_SLOTS it is
 * split in two, by one bit more of the hash.  So an addition moves no more than one segment
 * has (several for hashes that are alike), however many keys there are.
 *
 *     directory   00  01  10  11          two bits deep
 *                  |   |   |   |
 *     segments     A   B   A   C          A is one bit deep, and splits before the directory grows
 *
 * The directory, a pointer for each segment, grows beside that.  It stands in blocks, of which each
 * has as many places as all before it, so that nothing moves.  When it gets one bit deeper, its second
 * half is what the first is: each split writes a few places of it ahead, so that it most often
 * is complete by then.
 *
 *     directory   00  01  10  11 | 000 001 ...        the first places of the half to come
 *                  A   B   A   C |  A   B
 *
 * Invariants
 *
 *   SEGMENTS-1  A segment that is n bits deep is in the directory wherever the lowest n bits
 *               are those that all its hashes have, and nowhere else.  So it is in those places
 *               of the half to come that are written.
 *   SEGMENTS-2  Probing from an entry's home slot to its slot meets no empty slot, and a segment
 *               has an empty one.
 *
 * Threads   None of its own: the stripe's lock is held around every call.
 * Limits    Memory does not shrink.  DEPTH_MOST bits: then segments fill up, and when one is
 *           full there is no room.  Hashes of which most are alike may need the half to come before it
 *           is complete: then one addition writes the rest.
 */
#ifndef STORES_SEGMENTS_H
#define STORES_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#define SEGMENT_SLOTS 256
#define SEGMENT_FIRST 32 /* of the first; no others are smaller than SEGMENT_SLOTS */
#define SEGMENT_DEPTH_MOST 26

struct entry;
struct key_name;

struct table_slot {
	uint64_t hash;
	struct entry *entry; /* NULL: empty */
};

struct segment {
	uint32_t mask; /* of its slots */
	uint32_t count;
	uint32_t depth;
	struct table_slot at[];
};

#define DIRECTORY_LOG2 2
#define DIRECTORY_FIRST (1 << DIRECTORY_LOG2) /* places in the first block */
#define DIRECTORY_BLOCKS (SEGMENT_DEPTH_MOST - DIRECTORY_LOG2 + 1)
#define DIRECTORY_AHEAD 8 /* places of the half to come, by a split */

struct segments {
	/* NULL: it is not needed yet; the first: nothing was ever added. */
	struct segment **directory[DIRECTORY_BLOCKS];
	uint32_t depth;
	uint32_t ahead; /* places of the half to come that are written */
};

/* Its block is there. */
static inline struct segment **segments_at(const struct segments *table, uint64_t index)
{
	unsigned log2;

	if (index < DIRECTORY_FIRST)
		return &table->directory[0][index];
	log2 = 63 - (unsigned)__builtin_clzll(index);
	return &table
	            ->directory[log2 - DIRECTORY_LOG2 + 1][index ^ UINT64_C(1) << log2];
}

/* NULL: there is none. */
struct entry *segments_find(const struct segments *table, const struct key_name *name);

/* Room for one more of that hash.  False without memory, and then nothing has changed for
 * lookups. */
bool segments_make_room(struct segments *table, struct gale_allocator *allocator,
                        uint64_t hash);

/* There is room for it. */
void segments_add(struct segments *table, struct entry *entry);
/* It is there; the other stands in its place from now on. */
void segments_replace(struct segments *table, const struct entry *entry,
                      struct entry *other);
void segments_remove(struct segments *table, const struct entry *entry);

void segments_close(struct segments *table, struct gale_allocator *allocator);

/* SEGMENTS-1, SEGMENTS-2, and so many entries. */
bool segments_valid(const struct segments *table, uint64_t count);

#endif
