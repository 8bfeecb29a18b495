/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * segments.c -- open addressing with the hash in the slot.
 *
 * Three eighths of the slots stay empty, so probes are short; removal moves later entries of
 * the same run back (no tombstones), so they stay short however many keys come and go.  The
 * upper bits of a hash choose the stripe, those from DIRECTORY_SHIFT on the segment, and the
 * lowest the slot.
 */
#include "stores/segments.h"

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/keys.h"

#define DIRECTORY_SHIFT 32

/* ---- The directory --------------------------------------------------------------- */

static uint64_t entries_of(uint32_t depth)
{
	return UINT64_C(1) << depth;
}

static uint64_t index_of(uint64_t hash, uint32_t depth)
{
	return hash >> DIRECTORY_SHIFT & (entries_of(depth) - 1);
}

static struct segment *segment_of(const struct segments *table, uint64_t hash)
{
	return *segments_at(table, index_of(hash, table->depth));
}

static size_t block_bytes(unsigned block)
{
	return ((size_t)DIRECTORY_FIRST << (block > 0 ? block - 1 : 0)) *
	       sizeof(struct segment *);
}

/* The half to come, if the directory is so deep, is one block or a part of the first. */
static bool have_half_to_come(struct segments *table, struct gale_allocator *allocator)
{
	unsigned block =
	    table->depth < DIRECTORY_LOG2 ? 0 : table->depth - DIRECTORY_LOG2 + 1;

	if (!table->directory[block])
		table->directory[block] =
		    memory_take_raw(allocator, block_bytes(block));
	return table->directory[block] != NULL;
}

/* Wherever the lowest bits are those of the hash, as many as the segment is deep. */
static void enlist(struct segments *table, uint64_t hash, struct segment *segment)
{
	uint64_t at = index_of(hash, segment->depth);

	for (; at < entries_of(table->depth) + table->ahead;
	     at += entries_of(segment->depth))
		*segments_at(table, at) = segment; /* SEGMENTS-1 */
}

static void write_ahead(struct segments *table, uint64_t most)
{
	uint64_t first_half = entries_of(table->depth);

	for (; most > 0 && table->ahead < first_half; most--, table->ahead++)
		*segments_at(table, first_half + table->ahead) =
		    *segments_at(table, table->ahead);
}

static bool deepen(struct segments *table, struct gale_allocator *allocator)
{
	if (!have_half_to_come(table, allocator))
		return false;
	write_ahead(table, UINT64_MAX); /* most often there is nothing left */
	table->depth++;
	table->ahead = 0;
	return true;
}

/* Without memory it is tried again by the next. */
static void grow_ahead(struct segments *table, struct gale_allocator *allocator)
{
	if (table->depth < SEGMENT_DEPTH_MOST && have_half_to_come(table, allocator))
		write_ahead(table, DIRECTORY_AHEAD);
}

/* ---- A segment ------------------------------------------------------------------- */

static size_t segment_bytes(uint32_t slots)
{
	return sizeof(struct segment) + slots * sizeof(struct table_slot);
}

static struct segment *segment_new(struct gale_allocator *allocator, uint32_t slots,
                                   uint32_t depth)
{
	struct segment *segment = memory_take(allocator, segment_bytes(slots));

	if (segment) {
		segment->mask = slots - 1;
		segment->depth = depth;
	}
	return segment;
}

static void segment_free(struct gale_allocator *allocator, struct segment *segment)
{
	memory_give(allocator, segment, segment_bytes(segment->mask + 1));
}

/* The slot of the entry, or the empty one at which the search for it ends. */
static struct table_slot *slot_of(struct segment *segment, uint64_t hash,
                                  const struct entry *entry)
{
	uint64_t at = hash & segment->mask;

	while (segment->at[at].entry && segment->at[at].entry != entry)
		at = (at + 1) & segment->mask;
	return &segment->at[at];
}

static void put(struct segment *segment, uint64_t hash, struct entry *entry)
{
	*slot_of(segment, hash, entry) = (struct table_slot){ hash, entry };
	segment->count++;
}

/* May an entry whose home is there move back to the hole?  Not if its home lies
 * between the two, going round. */
static bool may_move(uint64_t home, uint64_t hole, uint64_t at, uint64_t mask)
{
	return ((at - home) & mask) >= ((at - hole) & mask);
}

static void take_out(struct segment *segment, uint64_t hole)
{
	uint64_t mask = segment->mask;

	for (uint64_t at = (hole + 1) & mask; segment->at[at].entry;
	     at = (at + 1) & mask) {
		if (!may_move(segment->at[at].hash & mask, hole, at, mask))
			continue;
		segment->at[hole] = segment->at[at];
		hole = at;
	}
	segment->at[hole] = (struct table_slot){ 0 }; /* SEGMENTS-2 */
	segment->count--;
}

/* ---- Growing --------------------------------------------------------------------- */

static bool begin(struct segments *table, struct gale_allocator *allocator)
{
	struct segment *first = segment_new(allocator, SEGMENT_FIRST, /* depth= */ 0);

	if (!first)
		return false;
	if (!have_half_to_come(table, allocator)) {
		segment_free(allocator, first);
		return false;
	}
	*segments_at(table, 0) = first;
	return true;
}

static bool enlarge(struct segments *table, struct gale_allocator *allocator,
                    uint64_t hash)
{
	struct segment *old = segment_of(table, hash);
	struct segment *larger =
	    segment_new(allocator, 2 * (old->mask + 1), old->depth);

	if (!larger)
		return false;
	for (uint64_t i = 0; i <= old->mask; i++)
		if (old->at[i].entry)
			put(larger, old->at[i].hash, old->at[i].entry);
	enlist(table, hash, larger);
	segment_free(allocator, old);
	return true;
}

/* Those whose hash has one more bit set go to the other.  An entry that moves back as one is
 * taken out comes to a slot that is still to be looked at. */
static void part(struct segment *segment, struct segment *other)
{
	uint64_t bit = UINT64_C(1) << (DIRECTORY_SHIFT + segment->depth);

	for (uint64_t i = 0; i <= segment->mask; i++)
		while (segment->at[i].entry && (segment->at[i].hash & bit)) {
			put(other, segment->at[i].hash, segment->at[i].entry);
			take_out(segment, i);
		}
}

static bool split(struct segments *table, struct gale_allocator *allocator,
                  uint64_t hash)
{
	struct segment *segment = segment_of(table, hash);
	uint64_t bit = UINT64_C(1) << (DIRECTORY_SHIFT + segment->depth);
	struct segment *other =
	    segment_new(allocator, segment->mask + 1, segment->depth + 1);

	if (!other)
		return false;
	if (segment->depth == table->depth && !deepen(table, allocator)) {
		segment_free(allocator, other);
		return false;
	}
	part(segment, other);
	segment->depth++;
	enlist(table, hash | bit, other);
	grow_ahead(table, allocator);
	return true;
}

static bool grow(struct segments *table, struct gale_allocator *allocator,
                 uint64_t hash)
{
	if (segment_of(table, hash)->mask + 1 < SEGMENT_SLOTS)
		return enlarge(table, allocator, hash);
	return split(table, allocator, hash);
}

static bool has_room(const struct segment *segment)
{
	return segment->count < (segment->mask + 1) / 8 * 5;
}

bool segments_make_room(struct segments *table, struct gale_allocator *allocator,
                        uint64_t hash)
{
	struct segment *segment;

	if (!table->directory[0] && !begin(table, allocator))
		return false;
	while (segment = segment_of(table, hash), !has_room(segment)) {
		if (segment->depth == SEGMENT_DEPTH_MOST)
			return segment->count < segment->mask; /* SEGMENTS-2 */
		if (!grow(table, allocator, hash))
			return false;
	}
	return true;
}

/* ---- What it holds --------------------------------------------------------------- */

struct entry *segments_find(const struct segments *table, const struct key_name *name)
{
	const struct segment *segment;

	if (!table->directory[0])
		return NULL;
	segment = segment_of(table, name->hash);
	for (uint64_t at = name->hash;; at++) {
		const struct table_slot *slot = &segment->at[at & segment->mask];

		if (!slot->entry)
			return NULL; /* SEGMENTS-2 */
		if (slot->hash == name->hash && entry_is(slot->entry, name))
			return slot->entry;
	}
}

void segments_add(struct segments *table, struct entry *entry)
{
	put(segment_of(table, entry->hash), entry->hash, entry);
}

void segments_replace(struct segments *table, const struct entry *entry,
                      struct entry *other)
{
	slot_of(segment_of(table, entry->hash), entry->hash, entry)->entry = other;
}

void segments_remove(struct segments *table, const struct entry *entry)
{
	struct segment *segment = segment_of(table, entry->hash);

	take_out(segment,
	         (uint64_t)(slot_of(segment, entry->hash, entry) - segment->at));
}

/* From the end, so that the first place where it is comes last. */
void segments_close(struct segments *table, struct gale_allocator *allocator)
{
	if (!table->directory[0])
		return;
	for (uint64_t i = entries_of(table->depth); i-- > 0;)
		if (i < entries_of((*segments_at(table, i))->depth))
			segment_free(allocator, *segments_at(table, i));
	for (unsigned block = 0; block < DIRECTORY_BLOCKS; block++)
		memory_give(allocator, table->directory[block], block_bytes(block));
	*table = (struct segments){ 0 };
}

/* ---- Checking -------------------------------------------------------------------- */

static bool segment_valid(const struct segments *table, uint64_t index)
{
	struct segment *segment = *segments_at(table, index);
	uint64_t filled = 0;

	for (uint64_t i = 0; i <= segment->mask; i++) {
		const struct table_slot *slot = &segment->at[i];

		if (!slot->entry)
			continue;
		filled++;
		if (index_of(slot->hash ^ index << DIRECTORY_SHIFT, segment->depth) !=
		    0)
			return false; /* SEGMENTS-1 */
		if (slot->hash != slot->entry->hash ||
		    slot_of(segment, slot->hash, slot->entry) != slot)
			return false; /* SEGMENTS-2 */
	}
	return filled == segment->count && filled <= segment->mask;
}

bool segments_valid(const struct segments *table, uint64_t count)
{
	uint64_t written = entries_of(table->depth) + table->ahead, sum = 0;

	for (uint64_t i = 0; table->directory[0] && i < written; i++) {
		const struct segment *segment = *segments_at(table, i);
		uint64_t first = i & (entries_of(segment->depth) - 1);

		if (segment->depth > table->depth ||
		    *segments_at(table, first) != segment)
			return false; /* SEGMENTS-1 */
		if (i != first)
			continue;
		if (!segment_valid(table, i))
			return false;
		sum += segment->count;
	}
	return sum == count;
}
