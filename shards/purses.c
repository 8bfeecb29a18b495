/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purses.c -- adding, evicting, letting go.
 *
 * Threads   The shard's actor; purses_open and purses_close, while no other thread is there.
 */
#include "shards/ahead.h"
#include "shards/purses.h"

#include <sched.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "shards/lender.h"

#define READER_CHANCES 8
#define SPLIT_LEAST 16 /* purses that may have cells, however few there are */
#define BARREN_STEPS 64
#define EVICT_BATCH 32 /* at a time, so that they share a grace period */
#define FADES_LEAST                                                                    \
	(2 * FADE_PAGES *                                                              \
	 MEMORY_PAGE) /* a part as large is given back a piece at a time */
#define FADE_PAGES 8

static uint32_t hash_of(const struct hashes *self, const void *item)
{
	(void)self;
	return ((const struct purse *)item)->hash;
}

/* ---- Opening and closing --------------------------------------------------------- */

static uint32_t chunks_in(uint32_t purses)
{
	return (purses + CHUNK_PURSES - 1) / CHUNK_PURSES;
}

static size_t chunks_bytes(const struct purses *set)
{
	return chunks_in(set->own.max) * sizeof(struct chunk *);
}

static size_t ghosts_bytes(void)
{
	return GHOSTS * sizeof(struct ghost);
}

bool purses_open(struct purses *set, struct gale_allocator *allocator,
                 struct grace *grace, struct evictor *evictor, uint32_t max)
{
	gale_assert(max > 0);
	set->own.hashes.of = hash_of;
	set->own.allocator = allocator;
	set->own.grace = grace;
	set->own.evictor = evictor;
	set->own.max = max;
	set->own.free = NUMBER_LAST;
	set->chunks = memory_take(allocator, chunks_bytes(set));
	set->own.ghosts = memory_take(allocator, ghosts_bytes());
	if (table_open(&set->table, allocator) && set->chunks && set->own.ghosts)
		return true;
	purses_close(set);
	return false;
}

static void free_key(struct purses *set, struct purse *purse)
{
	if (purse->key_len > PURSE_NEAR)
		memory_give(set->own.allocator, purse->key.far, purse->key_len);
	purse->key_len = 0;
}

static void free_part(void *self, struct retired *retired)
{
	struct purses *set = self;
	struct part *part = (struct part *)retired;

	memory_give_lines(set->own.allocator, part, part->bytes);
}

static void fade_part(void *self, struct retired *retired)
{
	struct purses *set = self;
	struct part *part = (struct part *)retired;

	if (part->bytes < FADES_LEAST) {
		free_part(set, retired);
		return;
	}
	retired->next = set->own.fading ? &set->own.fading->retired : NULL;
	set->own.fading = part;
	set->own.faded = sizeof(*part);
}

static void free_fading(struct purses *set)
{
	struct part *part = set->own.fading;

	set->own.fading = (struct part *)part->retired.next;
	set->own.faded = sizeof(*part);
	free_part(set, &part->retired);
}

/* Cells or a block: whichever it is, it begins with the same head. */
static void free_parts(struct purses *set, struct purse *purse)
{
	struct cells *cells = load_relaxed(&purse->cells);

	free_key(set, purse);
	if (cells)
		free_part(set, &cells->part.retired);
	store_relaxed(&purse->cells, NULL);
	store_relaxed(&purse->split, 0);
}

static struct purse *purse_of(struct retired *retired)
{
	return (struct purse *)((char *)retired - offsetof(struct purse, retired));
}

static bool is_split(const struct purse *purse)
{
	return load_relaxed(&purse->split);
}

/* Nobody looks at it any more. */
static void free_number(void *self, struct retired *retired)
{
	struct purses *set = self;
	struct purse *purse = purse_of(retired);

	set->own.evictor->gone(set->own.evictor, purse);
	set->own.split -= is_split(purse);
	free_parts(set, purse);
	purse->lender = NULL;
	purses_own(set, purse)->next = set->own.free;
	set->own.free = purse->number; /* EVICT-1 */
}

/* At the end: its lender may be gone by now, and needs not be told. */
static void close_number(void *self, struct retired *retired)
{
	free_parts(self, purse_of(retired));
}

static void free_rooms(struct gale_allocator *allocator, struct chunk *chunk)
{
	struct debts *debts = load_relaxed(&chunk->debts);
	struct aheads *aheads = load_relaxed(&chunk->aheads);

	if (aheads)
		memory_give_lines(allocator, aheads, sizeof(*aheads));
	memory_give(allocator, debts, debts ? sizeof(*debts) : 0);
	memory_give(allocator, chunk->sizers, sizeof(*chunk->sizers));
}

static void free_chunks(struct purses *set)
{
	uint32_t count = chunks_in(set->own.made), together;

	for (uint32_t i = 0; i < count; i++)
		free_rooms(set->own.allocator, set->chunks[i]);
	for (uint32_t i = 0; i < count; i += together) {
		together = set->chunks[i]->together;
		memory_give_lines(set->own.allocator, set->chunks[i],
		                  together * sizeof(struct chunk));
	}
}

void purses_close(struct purses *set)
{
	struct gale_allocator *allocator = set->own.allocator;

	limbo_close(&set->own.gone, close_number, set);
	limbo_close(&set->own.parts, free_part, set);
	while (set->own.fading)
		free_fading(set);
	for (uint32_t i = 0; i < set->own.made; i++)
		free_parts(set, purses_at(set, i));
	free_chunks(set);
	table_close(&set->table, allocator);
	memory_give(allocator, set->chunks, set->chunks ? chunks_bytes(set) : 0);
	memory_give(allocator, set->own.ghosts, set->own.ghosts ? ghosts_bytes() : 0);
}

/* ---- What was learned ------------------------------------------------------------ */

static struct ghost *ghost_of(struct purses *set, uint32_t hash)
{
	return &set->own.ghosts[hash % GHOSTS];
}

static void remember(struct purses *set, struct purse *purse)
{
	*ghost_of(set, purse->hash) =
	    (struct ghost){ purse->hash, purse->lender->sizing.kind,
		            *purse_sizer(purse) };
}

static void recall(struct purses *set, struct purse *purse)
{
	const struct ghost *ghost = ghost_of(set, purse->hash);

	if (ghost->hash == purse->hash && ghost->kind == purse->lender->sizing.kind)
		*purse_sizer(purse) = ghost->sizer;
}

/* ---- Evicting -------------------------------------------------------------------- */

static bool kill(const struct purses *set, struct purse *purse)
{
	return purses_own(set, purse)->errand == ERRAND_NONE && purse_kill(purse);
}

static void put_away(struct purses *set, struct purse *purse)
{
	set->own.evictor->evict(set->own.evictor, purse); /* EVICT-3 */
	remember(set, purse);
	table_remove(&set->table, &set->own.hashes, purse);
	limbo_add(&set->own.gone, &purse->retired); /* EVICT-1 */
}

bool purses_evict(struct purses *set, struct purse *purse)
{
	if (!kill(set, purse))
		return false;
	put_away(set, purse);
	if (purse_is_at_hand(purse))
		grace_forget(set->own.grace); /* POCKET-1 */
	return true;
}

/* Unused since the hand last passed; the hand says so as it goes. */
static bool is_idle(struct purse *purse)
{
	if (purse_is_held(purse) || purse_is_dead(purse))
		return false;
	if (!load_relaxed(&purse->used))
		return true;
	store_relaxed(&purse->used, false);
	return false;
}

/* Twice around at most: the second time, whatever is not in use has lost its mark.  Where that
 * found nothing, as all are held, it goes on from there by a few at a time. */
static uint32_t kill_some(struct purses *set, struct purse **ret_dead)
{
	uint32_t steps = set->own.barren ? BARREN_STEPS : 2 * set->own.made, dead = 0;
	uint32_t most =
	    set->own.made / 8 < EVICT_BATCH ? set->own.made / 8 + 1 : EVICT_BATCH;

	while (steps-- > 0 && dead < most) {
		struct purse *purse = purses_at(set, set->own.hand);

		set->own.hand = (set->own.hand + 1) % set->own.made;
		if (purse->lender && is_idle(purse) && kill(set, purse))
			ret_dead[dead++] = purse;
	}
	set->own.barren = dead == 0;
	return dead;
}

/* What lies in their cells is wanted of all at once: they share a fence, and are forgotten
 * together. */
static void evict_some(struct purses *set)
{
	struct purse *dead[EVICT_BATCH];
	uint32_t count = kill_some(set, dead);
	bool any = false, any_at_hand = false;

	for (uint32_t i = 0; i < count; i++)
		any |= purse_want(dead[i], (mono){ 0 });
	if (any)
		grace_pass(set->own.grace); /* entered */
	for (uint32_t i = 0; i < count; i++) {
		put_away(set, dead[i]);
		any_at_hand |= purse_is_at_hand(dead[i]);
	}
	if (any_at_hand)
		grace_forget(set->own.grace); /* POCKET-1 */
}

bool purses_turn(struct purses *set)
{
	limbo_turn(&set->own.gone, set->own.grace, free_number, set);
	limbo_turn(&set->own.parts, set->own.grace, fade_part, set);
	return !limbo_is_empty(&set->own.gone) || !limbo_is_empty(&set->own.parts);
}

void purses_fade(struct purses *set)
{
	struct part *part = set->own.fading;

	if (!part)
		return;
	if (set->own.faded < part->bytes)
		set->own.faded = memory_thin(set->own.allocator, part, part->bytes,
		                             set->own.faded, FADE_PAGES);
	else
		free_fading(set);
}

/* ---- Adding ---------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* EVICT-2 */
static bool take_chunks(struct purses *set)
{
	uint32_t have = chunks_in(set->own.made);
	uint32_t together = smaller(1 + have / CHUNKS_PART, CHUNKS_TOGETHER);

	together = smaller(together, chunks_in(set->own.max) - have);
	set->own.spare =
	    memory_take_lines_raw(set->own.allocator, together * sizeof(struct chunk));
	if (!set->own.spare)
		return false;
	set->own.spare->together = together;
	set->own.spares = together;
	return true;
}

/* The parts of its purses are cleared as each is made: all of it together is a dozen pages, whose
 * first touch takes the kernel long. */
static bool make_chunk(struct purses *set)
{
	struct chunk *chunk;

	if (set->own.spares == 0 && !take_chunks(set))
		return false;
	chunk = set->own.spare++;
	set->own.spares--;
	atomic_init(&chunk->debts, NULL);
	atomic_init(&chunk->aheads, NULL);
	chunk->sizers = NULL;
	set->chunks[set->own.made / CHUNK_PURSES] = chunk;
	return true;
}

static void clear_number(struct chunk *chunk, uint32_t at)
{
	memset(&chunk->own[at], 0, sizeof(chunk->own[at]));
	memset(&chunk->purses[at], 0, sizeof(chunk->purses[at]));
	memset(&chunk->rounds[at], 0, sizeof(chunk->rounds[at]));
	memset(&chunk->dues[at], 0, sizeof(chunk->dues[at]));
}

static bool make_number(struct purses *set)
{
	uint32_t number = set->own.made, at = number % CHUNK_PURSES;

	if (number >= set->own.max)
		return false; /* EVICT-2 */
	if (at == 0 && !make_chunk(set))
		return false;
	clear_number(set->chunks[number / CHUNK_PURSES], at);
	purses_at(set, number)->number = number;
	purses_own(set, purses_at(set, number))->next = set->own.free;
	set->own.free = number;
	set->own.made++;
	return true;
}

/* A reader that is inside is so for nanoseconds, unless it was suspended there: then it
 * gets a few chances to go on. */
static bool wait_for_number(struct purses *set)
{
	for (int i = 0; i < READER_CHANCES; i++) {
		purses_turn(set);
		if (set->own.free != NUMBER_LAST)
			return true;
		sched_yield();
	}
	return false;
}

/* One that is free, or can be made, or whose readers are gone. */
static bool have_number(struct purses *set)
{
	if (set->own.free != NUMBER_LAST || make_number(set))
		return true;
	if (limbo_is_empty(&set->own.gone) && set->own.made > 0)
		evict_some(set);
	return !limbo_is_empty(&set->own.gone) && wait_for_number(set);
}

static bool make_room(struct purses *set)
{
	struct slots *old;

	if (!table_make_room(&set->table, set->own.allocator, &set->own.hashes, &old))
		return false;
	if (old)
		limbo_add(&set->own.parts, &old->part.retired);
	return true;
}

static void put_near(struct purse *purse, const struct purse_name *name)
{
	size_t head = name->key_len < PURSE_HEAD ? name->key_len : PURSE_HEAD;

	memcpy(purse->head, name->key, head);
	memcpy(purse->key.tail, name->key + head, name->key_len - head);
}

static bool put_far(struct purses *set, struct purse *purse,
                    const struct purse_name *name)
{
	purse->key.far = memory_take(set->own.allocator, name->key_len);
	if (purse->key.far)
		memcpy(purse->key.far, name->key, name->key_len);
	return purse->key.far != NULL;
}

/* For what is learned of it.  Not cleared: a purse's part is, as it gets its key. */
static bool make_room_for_sizers(struct purses *set, struct chunk *chunk)
{
	if (!chunk->sizers)
		chunk->sizers =
		    memory_take_raw(set->own.allocator, sizeof(*chunk->sizers));
	return chunk->sizers != NULL;
}

static bool put_key(struct purses *set, struct purse *purse,
                    const struct purse_name *name)
{
	if (name->key_len > PURSE_HEAD &&
	    !make_room_for_sizers(set, purse_chunk(purse)))
		return false;
	if (name->key_len <= PURSE_NEAR)
		put_near(purse, name);
	else if (!put_far(set, purse, name))
		return false;
	purse->key_len = name->key_len;
	return true;
}

static void forget_debt(const struct purse *purse)
{
	_Atomic uint64_t *debt = purse_debt(purse);

	if (debt)
		store_relaxed(debt, 0);
}

/* As new, but for its number and its key. */
static void wipe(struct purses *set, struct purse *purse)
{
	store_relaxed(&purse->credit, 0);
	store_relaxed(&purse->denial, 0);
	store_relaxed(&purse->rest, 0);
	store_relaxed(&purse->refused, 0);
	store_relaxed(&purse->contended, 0);
	store_relaxed(&purse->fought, false);
	store_relaxed(&purse->pins, 0);
	store_relaxed(&purse->used, false);
	purse->holders = purse->hopes = 0;
	purse->tag_us = purse->tag_part = 0;
	purse->ends = (mono){ 0 };
	purse->taken = 0;
	purse_mark(purse, DUES_LOOKED_AT | DUES_OWES, false);
	forget_debt(purse);
	*purses_round(set, purse) = (struct purse_round){ 0 };
	*purses_own(set, purse) = (struct purse_own){ .next = NUMBER_UNLISTED };
	*purse_sizer(purse) = (union sizer){ 0 };
}

struct purse *purses_add(struct purses *set, const struct purse_name *name)
{
	struct purse *purse;
	uint32_t next;

	if (!have_number(set) || !make_room(set))
		return NULL;
	purse = purses_at(set, set->own.free);
	next = purses_own(set, purse)->next;
	if (!put_key(set, purse, name))
		return NULL;
	set->own.free = next;
	wipe(set, purse);
	purse->lender = name->lender;
	purse->hash = (uint32_t)name->hash;
	recall(set, purse);
	table_add(&set->table, name->hash, purse); /* PURSE-2, EVICT-1 */
	return purse;
}

/* EVICT-2 */
static bool may_split(const struct purses *set, size_t bytes)
{
	uint64_t most = (uint64_t)set->own.max * sizeof(struct purse) / bytes;

	return set->own.split < SPLIT_LEAST || set->own.split < most;
}

bool purses_give_cells(struct purses *set, struct purse *purse, uint32_t count)
{
	size_t bytes = sizeof(struct cells) + count * sizeof(struct cell);
	struct cells *cells;

	gale_assert(!load_relaxed(&purse->split));
	if (!may_split(set, bytes))
		return false;
	cells = memory_take_lines(set->own.allocator, bytes);
	if (!cells)
		return false;
	cells->part.bytes = bytes;
	cells->count = count;
	purse_give(purse, cells);
	/* It may have been at hand without a cell. POCKET-1 */
	grace_forget(set->own.grace);
	purse_split(purse);
	set->own.split++;
	return true;
}

void purses_take_block(struct purses *set, struct purse *purse)
{
	struct block *old = purse_put_block(purse, NULL);

	if (old)
		limbo_add(&set->own.parts, &old->part.retired);
}

bool purses_give_block(struct purses *set, struct purse *purse,
                       const struct block *block)
{
	struct block *copy = memory_take_lines(set->own.allocator, sizeof(*copy));
	struct block *old;

	if (!copy)
		return false;
	copy->part.bytes = sizeof(*copy);
	copy->rule = block->rule;
	copy->first = block->first;
	copy->slot = block->slot;
	copy->count = block->count;
	copy->left = block->left;
	old = purse_put_block(purse, copy);
	if (old)
		limbo_add(&set->own.parts, &old->part.retired);
	return true;
}

bool purses_make_room_for_debt(const struct purse *purse,
                               struct gale_allocator *allocator)
{
	struct chunk *chunk = purse_chunk(purse);
	struct debts *none = NULL, *made;

	if (purse_debt(purse))
		return true;
	made = memory_take(allocator, sizeof(*made));
	if (!made)
		return false;
	while (!swap_if_release(&chunk->debts, &none, made)) /* roomed */
		if (none) {                                  /* by another thread */
			memory_give(allocator, made, sizeof(*made));
			return true;
		}
	return true;
}

struct ahead *purses_make_room_ahead(const struct purse *purse,
                                     struct gale_allocator *allocator)
{
	struct chunk *chunk = purse_chunk(purse);
	struct aheads *made;

	if (ahead_of(purse))
		return ahead_of(purse);
	made = memory_take_lines(allocator, sizeof(*made));
	if (made)
		store_release(&chunk->aheads, made); /* bridged */
	return ahead_of(purse);
}

/* Its credit, and its debt if that goes, become a word that they never were before: a thread that has
 * seen another, and not yet that it is void, does not swap it.  Voids are odd meanwhile. */
static void void_all(struct purse *purse, uint32_t word, _Atomic uint64_t *debt)
{
	uint64_t unique = (uint64_t)(word / DUES_VOID) << CREDIT_UNIT_BITS;

	store_relaxed(purse_dues(purse), word); /* odd */
	if (debt)
		store_relaxed(debt, unique);
	purse_void(purse);
	store_release(&purse->credit, unique);              /* voided */
	store_release(purse_dues(purse), word + DUES_VOID); /* wiped */
}

void purses_void(struct purse *purse)
{
	uint32_t word = load_relaxed(purse_dues(purse)) & ~DUES_CHANGES;

	void_all(purse, word + DUES_VOID, purse_debt(purse));
}

/* Units of before that still pay for the debt are counted as used under the new rule, too. */
void purses_void_by_change(struct purse *purse)
{
	uint32_t word = load_relaxed(purse_dues(purse));

	if ((word & DUES_CHANGES) != DUES_CHANGES)
		word += DUES_CHANGE;
	void_all(purse, word + DUES_VOID, NULL);
}

/* ---- Checking -------------------------------------------------------------------- */

bool purses_valid(struct purses *set)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < set->own.made; i++) {
		struct purse *purse = purses_at(set, i);

		if (purse->number != i)
			return false;
		found += purse->lender && !purse_is_dead(purse);
	}
	return found == set->table.count &&
	       set->own.made <= set->own.max && /* EVICT-1, EVICT-2 */
	       table_valid(&set->table, &set->own.hashes);
}
