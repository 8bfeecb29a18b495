/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purses_test.c -- purses come, are found, are evicted, and come again.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/memory.h"
#include "shards/lender.h"
#include "shards/purses.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/crew.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define HELD LONG_OR_BRIEF(2048, 1024) /* purses of a large one */
#define MOST 40                        /* purses of the small sets */
#define KEY_ROOM 80

static struct lender units_lender = { .lending = LENDING_UNITS };
static struct lender other_lender = { .lending = LENDING_UNITS };
static struct lender places_lender = { .lending = LENDING_PLACES };

struct world {
	struct evictor evictor; /* first */
	struct test_allocator allocator;
	struct grace grace;
	struct purses purses;
	struct reader reader;
	uint64_t evicted;
	uint64_t units; /* that the evictor took out */
	uint64_t gone;
	const struct purse *last_evicted;
};

static const mono start = { 0 };
static const mono far = { 1000 * CREDIT_TICK_NS };

static void evict(struct evictor *self, struct purse *purse)
{
	struct world *world = (struct world *)self;

	assert_true(purse_is_dead(purse) && !purse_is_held(purse)); /* PURSE-3 */
	/* EVICT-3: it still counts as in the table */
	assert_true(world->purses.table.count > 0);
	world->units += purse_empty(purse, &world->grace, start);
	world->evicted++;
	world->last_evicted = purse;
}

static void gone(struct evictor *self, struct purse *purse)
{
	struct world *world = (struct world *)self;

	assert_non_null(purse->lender);
	world->gone++;
}

static void world_init(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->evictor = (struct evictor){ evict, gone };
	test_allocator_init(&world->allocator);
	grace_open(&world->grace);
	grace_join(&world->grace, &world->reader);
}

static bool world_open(struct world *world, uint32_t most)
{
	return purses_open(&world->purses, &world->allocator.allocator, &world->grace,
	                   &world->evictor, most);
}

static void world_close(struct world *world)
{
	purses_close(&world->purses);
	grace_leave(&world->grace, &world->reader);
	grace_close(&world->grace);
	assert_true(test_allocator_is_balanced(&world->allocator));
}

/* ---- Names ----------------------------------------------------------------------- */

struct named {
	struct purse_name name;
	char key[KEY_ROOM];
};

/* Hashes that share their places, and a number that tells them apart. */
static void name_it(struct named *named, struct lender *lender, unsigned which,
                    uint16_t key_len)
{
	memset(named->key, 'k', sizeof(named->key));
	(void)snprintf(named->key, sizeof(named->key), "%u", which);
	named->name = (struct purse_name){
		.lender = lender,
		.key = (const uint8_t *)named->key,
		.key_len = key_len,
		.hash = (uint64_t)(which % 5) << 32 | which * UINT64_C(7919),
	};
}

/* Every third key is far. */
static struct named *name_of(unsigned which)
{
	static struct named named;

	name_it(&named, &units_lender, which, which % 3 ? 8 : 60);
	return &named;
}

static struct purse *add(struct world *world, unsigned which)
{
	struct named *named = name_of(which);
	struct purse *purse;

	assert_null(purses_find(&world->purses, &named->name));
	purse = purses_add(&world->purses, &named->name);
	if (purse)
		assert_ptr_equal(purses_find(&world->purses, &named->name), purse);
	assert_true(purses_valid(&world->purses)); /* EVICT-1, EVICT-2 */
	return purse;
}

static void add_plainly(struct world *world, unsigned which)
{
	struct purse_name name = name_of(which)->name;

	name.hash = which * UINT64_C(0x9E3779B97F4A7C15) >> 16;
	assert_non_null(purses_add(&world->purses, &name));
	purses_turn(&world->purses);
}

static struct purse *find(struct world *world, unsigned which)
{
	return purses_find(&world->purses, &name_of(which)->name);
}

static void fill(struct world *world, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_non_null(add(world, i));
}

static void use_all(struct world *world, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		purse_use(find(world, i));
}

/* ---- Finding --------------------------------------------------------------------- */

static void what_was_added_is_found_and_nothing_else(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, 1000));
	fill(&world, 600); /* several chunks, and the table grows */
	for (unsigned i = 0; i < 600; i++) {
		const struct purse *purse = find(&world, i);

		assert_non_null(purse);
		assert_ptr_equal(purses_at(&world.purses, purse->number), purse);
		assert_true(purse_is(purse, &name_of(i)->name)); /* PURSE-2 */
	}
	assert_null(find(&world, 600));
	purses_turn(&world.purses);
	world_close(&world);
}

/* Alike but for one thing each. */
static void names_are_told_apart(void **state)
{
	struct named named[4];
	struct purse *purses[4];
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	name_it(&named[0], &units_lender, 5, 8);
	name_it(&named[1], &other_lender, 5, 8);
	name_it(&named[2], &units_lender, 5, 9);
	name_it(&named[3], &units_lender, 6, 8);
	named[3].name.hash = named[0].name.hash;
	for (int i = 0; i < 4; i++)
		purses[i] = purses_add(&world.purses, &named[i].name);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(purses_find(&world.purses, &named[i].name), purses[i]);
	purse_prefetch(root_likely(&world.purses.table.root, named[0].name.hash));
	purse_prefetch(root_likely(&world.purses.table.root, ~named[0].name.hash));
	world_close(&world);
}

/* Words in line: each byte of each length counts. */
static void keys_are_told_apart_by_each_byte(void **state)
{
	uint8_t a[KEY_ROOM], b[KEY_ROOM];

	(void)state;
	memset(a, 'k', sizeof(a));
	for (size_t len = 1; len <= KEY_ROOM; len++) {
		memcpy(b, a, sizeof(b));
		b[len % KEY_ROOM] ^= len < KEY_ROOM ? 1 : 0; /* behind the end */
		assert_true(bytes_equal(a, b, len));
		for (size_t at = 0; at < len; at++) {
			memcpy(b, a, sizeof(b));
			b[at] ^= 0x80;
			assert_false(bytes_equal(a, b, len));
		}
	}
}

/* Whichever of its bytes another key differs in, and whatever was learned of it. */
static void is_told_from_others(struct purse *purse, struct named *named)
{
	memset(purse_sizer(purse), 0xa5, sizeof(union sizer));
	assert_true(purse_is(purse, &named->name));
	for (uint16_t i = 0; i < named->name.key_len; i++) {
		named->key[i] ^= 1;
		assert_false(purse_is(purse, &named->name));
		named->key[i] ^= 1;
	}
}

static void keys_of_any_length_are_kept(void **state)
{
	static const uint16_t lengths[] = {
		1,          PURSE_HEAD,     PURSE_HEAD + 1, PURSE_NEAR - 1,
		PURSE_NEAR, PURSE_NEAR + 1, KEY_ROOM
	};
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct named named, copy;
		uint64_t blocks = world.allocator.blocks;
		struct purse *purse;

		name_it(&named, &units_lender, i, lengths[i]);
		purse = purses_add(&world.purses, &named.name);
		assert_int_equal(purse->key_len, lengths[i]);
		/* The first takes a chunk, and the first that is long room for sizers. */
		assert_int_equal(world.allocator.blocks - blocks,
		                 (i == 0) + (lengths[i] == PURSE_HEAD + 1) +
		                     (lengths[i] > PURSE_NEAR));
		is_told_from_others(purse, &named);
		purse_copy_key(purse, (uint8_t *)copy.key);
		assert_memory_equal(copy.key, named.key, lengths[i]);
		memset(named.key, 0, sizeof(named.key)); /* it is a copy. PURSE-2 */
		named.name.key = (const uint8_t *)copy.key;
		assert_true(purse_is(purse, &named.name));
	}
	world_close(&world);
}

/* ---- Evicting -------------------------------------------------------------------- */

static void there_are_never_more_than_may_be(void **state)
{
	struct world world;
	uint64_t bytes;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	assert_int_equal(world.evicted, 0);
	bytes = world.allocator.most;
	for (unsigned i = MOST; i < 20 * MOST; i++)
		assert_non_null(add(&world, i));
	assert_int_equal(world.purses.own.made, MOST); /* EVICT-2 */
	assert_true(world.evicted > 18 * MOST);
	assert_true(world.allocator.most < bytes + 2 * KEY_ROOM * MOST); /* EVICT-2 */
	assert_int_equal(world.gone, world.evicted);
	world_close(&world);
}

static void the_unused_go_first(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	use_all(&world, MOST);
	store_relaxed(&find(&world, 17)->used, false);
	store_relaxed(&find(&world, 23)->used, false);
	assert_non_null(add(&world, MOST));
	assert_null(find(&world, 17));
	assert_null(find(&world, 23));
	world_close(&world);
}

/* Used again since the hand passed: it stays.  Others of the same age do not. */
static void what_is_used_again_stays(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	for (unsigned i = MOST; i < 10 * MOST; i++) {
		purse_use(find(&world, 3));
		assert_non_null(add(&world, i));
		assert_non_null(find(&world, 3));
	}
	assert_null(find(&world, 4));
	world_close(&world);
}

static void who_is_held_or_out_on_an_errand_stays(void **state)
{
	struct world world;
	struct purse *pinned, *out;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	pinned = find(&world, 5);
	out = find(&world, 6);
	assert_true(purse_pin(pinned));
	purses_own(&world.purses, out)->errand = 77;
	assert_false(purses_evict(&world.purses, pinned)); /* PURSE-3 */
	assert_false(purses_evict(&world.purses, out));    /* LESSOR-7 */
	assert_int_equal(load_relaxed(&out->pins), 0);
	for (unsigned i = MOST; i < 5 * MOST; i++)
		assert_non_null(add(&world, i));
	assert_ptr_equal(find(&world, 5), pinned);
	assert_ptr_equal(find(&world, 6), out); /* LESSOR-7 */
	purse_unpin(pinned);
	assert_true(purses_evict(&world.purses, pinned));
	assert_false(purses_evict(&world.purses, pinned)); /* EVICT-1 */
	assert_false(purse_pin(pinned));                   /* PURSE-3 */
	world_close(&world);
}

static void when_all_are_held_there_is_no_room(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	for (unsigned i = 0; i < MOST; i++)
		assert_true(purse_pin(find(&world, i)));
	assert_null(add(&world, MOST)); /* EVICT-2 */
	purse_unpin(find(&world, 9));
	assert_non_null(add(&world, MOST));
	assert_null(find(&world, 9));
	world_close(&world);
}

/* LESSOR-6: whoever asks about keys that are not there does not keep the actor from its work. */
static void when_all_are_held_nobody_looks_at_all_of_them_again(void **state)
{
	struct world world;
	unsigned adds = 1;
	uint32_t hand;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, HELD));
	fill(&world, HELD);
	for (unsigned i = 0; i < HELD; i++)
		assert_true(purse_pin(find(&world, i)));
	assert_null(add(&world, HELD));
	hand = world.purses.own.hand;
	assert_null(add(&world, HELD));
	assert_in_range((world.purses.own.hand + HELD - hand) % HELD, 1, HELD / 16);
	purse_unpin(find(&world, 9));
	while (!add(&world, HELD))
		adds++;
	assert_in_range(adds, 1, 64);
	assert_null(find(&world, 9));
	world_close(&world);
}

static uint32_t split_all(struct world *world, uint32_t keys, uint32_t seats)
{
	uint32_t split = 0;

	for (unsigned i = 0; i < keys; i++)
		split += purses_give_cells(&world->purses, find(world, i), seats);
	return split;
}

/* Whoever makes all keys hot does not get all the memory. */
static void cells_take_no_more_memory_than_purses(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, 64));
	fill(&world, 64);
	assert_int_equal(split_all(&world, 64, 62), 16); /* EVICT-2 */
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 64; i++)
			assert_true(purses_evict(&world.purses, find(&world, i)));
		(void)purses_turn(&world.purses);
		(void)purses_turn(&world.purses);
		fill(&world, 64);
		/* 64 purses of 128 bytes, and 2 cells and a head of as much each */
		assert_int_equal(split_all(&world, 64, 2), 21);
	}
	world_close(&world);
}

static void credit_leaves_before_the_purse_does(void **state)
{
	struct world world;
	struct purse *purse;
	uint64_t word;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	purse = find(&world, 2);
	purses_give_cells(&world.purses, purse, 2);
	purse_put(purse, far, 100, start);
	assert_true(purse_take(purse, 1, start, 1, &word));
	assert_true(purses_evict(&world.purses, purse));
	assert_int_equal(world.units, 99); /* EVICT-3, PURSE-1: the cells' too */
	assert_false(purse_take(purse, 1, start, 1, &word));
	assert_ptr_equal(world.last_evicted, purse);
	assert_null(find(&world, 2));
	world_close(&world);
}

/* ---- Limbo ----------------------------------------------------------------------- */

static void what_a_reader_may_see_is_not_used_again(void **state)
{
	struct world world;
	struct purse *seen;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	reader_enter(&world.grace, &world.reader);
	seen = find(&world, 0);
	/* Some are evicted, and none is free yet. TABLE-3 */
	assert_null(add(&world, MOST));
	assert_true(world.evicted > 0);
	assert_int_equal(world.gone, 0);
	assert_true(purses_turn(&world.purses));
	assert_true(purse_is(seen, &name_of(0)->name)); /* PURSE-2 */
	assert_null(add(&world, MOST));
	reader_exit(&world.reader);
	assert_non_null(add(&world, MOST));
	assert_int_equal(world.gone, world.evicted); /* EVICT-1 */
	assert_false(purses_turn(&world.purses));
	world_close(&world);
}

/* The lenders are gone by then. */
static void closing_does_not_call_the_evictor(void **state)
{
	struct world world;
	uint64_t evicted;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	reader_enter(&world.grace, &world.reader);
	assert_true(purses_evict(&world.purses, find(&world, 0)));
	assert_true(purses_evict(&world.purses, find(&world, 3)));
	assert_true(purses_turn(&world.purses));
	reader_exit(&world.reader);
	evicted = world.evicted;
	world_close(&world);
	assert_int_equal(world.evicted, evicted);
	assert_int_equal(world.gone, 0);
}

static void a_new_purse_is_as_new(void **state)
{
	struct world world;
	struct purse *old, *purse;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, 1));
	old = add(&world, 1);
	purse_put(old, far, 9, start);
	purse_deny(old, far, 1);
	purses_give_cells(&world.purses, old, 2);
	old->taken = 5;
	old->holders = old->hopes = 7;
	store_relaxed(&old->contended, 3);
	store_relaxed(&old->fought, true);
	store_relaxed(&old->refused, 3);
	purse = add(&world, 2);
	assert_ptr_equal(purse, old);
	assert_int_equal(load_relaxed(&purse->credit), 0);
	assert_int_equal(load_relaxed(&purse->denial), 0);
	assert_int_equal(load_relaxed(&purse->contended), 0);
	assert_int_equal(load_relaxed(&purse->refused), 0);
	assert_int_equal(load_relaxed(&purse->pins), 0);
	assert_false(load_relaxed(&purse->split));
	assert_false(load_relaxed(&purse->fought));
	assert_int_equal(purse->taken + purse->holders + purse->hopes, 0);
	assert_int_equal(purses_own(&world.purses, purse)->next, NUMBER_UNLISTED);
	assert_int_equal(purses_own(&world.purses, purse)->errand, ERRAND_NONE);
	world_close(&world);
}

/* ---- Ghosts ---------------------------------------------------------------------- */

/* By one purse, whose keys are short and long in turn. */
static void is_learned_and_recalled(unsigned which, unsigned other)
{
	struct world world;
	struct purse *purse;

	world_init(&world);
	assert_true(world_open(&world, 1));
	purse = add(&world, which);
	purse_sizer(purse)->learned.windows = 12;
	purse = add(&world, other);
	assert_int_equal(purse_sizer(purse)->learned.windows, 0);
	purse = add(&world, which);
	assert_int_equal(purse_sizer(purse)->learned.windows, 12);
	purse = add(&world, which + GHOSTS); /* of the same place, and another hash */
	assert_int_equal(purse_sizer(purse)->learned.windows, 0);
	purse = add(&world, which); /* now its ghost is that one's */
	assert_int_equal(purse_sizer(purse)->learned.windows, 0);
	world_close(&world);
}

static void what_was_learned_is_recalled(void **state)
{
	(void)state;
	assert_int_not_equal(name_of(1)->name.key_len, name_of(3)->name.key_len);
	is_learned_and_recalled(1, 2);
	is_learned_and_recalled(1, 3);
	is_learned_and_recalled(3, 1);
	is_learned_and_recalled(3, 6);
}

static void what_was_learned_is_of_each_key_alone(void **state)
{
	struct world world;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, MOST);
	for (unsigned i = 0; i < MOST; i++)
		purse_sizer(find(&world, i))->learned.middle = i;
	for (unsigned i = 0; i < MOST; i++)
		assert_true(purse_sizer(find(&world, i))->learned.middle == i);
	world_close(&world);
}

/* ---- Bytes of a key -------------------------------------------------------------- */

#define MANY (1 << 17)  /* half of a table's slots: a key takes 16 bytes of these */
#define BYTES_SHORT 166 /* of a key of at most PURSE_HEAD bytes */
#define BYTES_NEAR 182  /* of one of at most PURSE_NEAR bytes */
#define BLOCKS (MANY / 2000)

/* When all that the table has outgrown is given back. */
static void takes_at_most(uint16_t key_len, uint64_t bytes, uint64_t blocks)
{
	struct world world;
	double each;

	world_init(&world);
	assert_true(world_open(&world, MANY));
	for (unsigned i = 0; i < MANY; i++) {
		struct named named;

		name_it(&named, &units_lender, i, key_len);
		named.name.hash = i * UINT64_C(0x9E3779B97F4A7C15) >> 16;
		assert_non_null(purses_add(&world.purses, &named.name));
		purses_turn(&world.purses);
		purses_fade(&world.purses);
	}
	while (purses_turn(&world.purses) || purses_fades(&world.purses))
		purses_fade(&world.purses);
	each = (double)world.allocator.bytes / MANY;
	printf("a key of %u bytes takes %.1f bytes, all of them %lu blocks\n", key_len,
	       each, (unsigned long)world.allocator.blocks);
	assert_true(each <= (double)bytes);
	assert_in_range(world.allocator.blocks, 1, blocks);
	world_close(&world);
}

/* Blocks are few, as malloc's part of a large one is up to two pages. */
static void a_key_takes_so_many_bytes(void **state)
{
	(void)state;
	takes_at_most(8, BYTES_SHORT, BLOCKS);
	takes_at_most(PURSE_HEAD, BYTES_SHORT, BLOCKS);
	takes_at_most(PURSE_NEAR, BYTES_NEAR, BLOCKS + MANY / CHUNK_PURSES);
}

/* Chunks are taken together, but no more than there may be purses for.  EVICT-2 */
static void no_chunk_is_taken_in_vain(void **state)
{
	(void)state;
	for (uint32_t most = 1; most <= 30 * CHUNK_PURSES; most += 777) {
		struct world world;

		world_init(&world);
		assert_true(world_open(&world, most));
		for (unsigned i = 0; i < most; i++)
			add_plainly(&world, i);
		assert_int_equal(world.purses.own.spares, 0);
		assert_true(purses_valid(&world.purses));
		world_close(&world);
	}
}

/* ---- Blocks ---------------------------------------------------------------------- */

static void blocks_wait_for_readers_too(void **state)
{
	struct rule rule = { .is = { .limit = 1, .period_us = 10 } };
	struct block block = { .rule = rule, .count = 4, .slot = { .us = 9 } };
	struct named named;
	struct world world;
	struct purse *purse;
	const struct block *seen;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	name_it(&named, &places_lender, 1, 8);
	purse = purses_add(&world.purses, &named.name);
	purses_take_block(&world.purses, purse); /* has none */
	assert_true(purses_give_block(&world.purses, purse, &block));
	reader_enter(&world.grace, &world.reader);
	seen = load_acquire(&purse->block);
	assert_int_equal(block_left(seen, start), 4);
	assert_true(purses_give_block(&world.purses, purse, &block));
	purses_take_block(&world.purses, purse);
	assert_null(load_relaxed(&purse->block));
	assert_true(purses_turn(&world.purses));
	assert_int_equal(seen->slot.us, 9);
	reader_exit(&world.reader);
	assert_false(purses_turn(&world.purses));
	assert_true(purses_give_block(&world.purses, purse, &block));
	world_close(&world); /* with a block in its place */
}

/* ---- What a table has outgrown --------------------------------------------------- */

#define LARGE 40000 /* purses: slots that they outgrow are given back in pieces */
#define PAGES_OF_A_PIECE 8 /* at a time */

/* What is given back to the kernel while the block is still ours. */
static struct {
	uintptr_t from, to; /* the block */
	uint64_t calls, pages;
	bool refuses;
} thinned;

int madvise(void *at, size_t bytes, int advice)
{
	if (advice != MADV_DONTNEED || (uintptr_t)at < thinned.from ||
	    (uintptr_t)at >= thinned.to)
		return (int)syscall(SYS_madvise, at, bytes, advice);
	must((uintptr_t)at + bytes <= thinned.to);
	must(bytes <= PAGES_OF_A_PIECE * MEMORY_PAGE);
	thinned.calls++;
	thinned.pages += bytes / MEMORY_PAGE;
	if (thinned.refuses)
		return -1;
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

/* Until slots that are large enough have been left behind; returns how large they are. */
static size_t outgrow(struct world *world, struct gale_allocator *allocator)
{
	world_init(world);
	assert_true(purses_open(&world->purses, allocator, &world->grace,
	                        &world->evictor, LARGE));
	for (unsigned i = 0; i < LARGE && !world->purses.own.fading; i++)
		add_plainly(world, i);
	assert_non_null(world->purses.own.fading);
	thinned.from = (uintptr_t)world->purses.own.fading;
	thinned.to = thinned.from + world->purses.own.fading->bytes;
	thinned.calls = thinned.pages = 0;
	return thinned.to - thinned.from;
}

static void what_a_table_has_outgrown_is_given_back_in_pieces(void **state)
{
	struct world world;
	uint64_t pages = outgrow(&world, memory_default()) / MEMORY_PAGE, turns = 0;

	(void)state;
	for (; purses_fades(&world.purses); turns++) {
		uint64_t calls = thinned.calls;

		purses_fade(&world.purses);
		assert_in_range(thinned.calls - calls, 0, 1); /* one piece a turn */
	}
	assert_in_range(thinned.pages, pages - 2, pages);
	assert_in_range(turns, pages / PAGES_OF_A_PIECE + 1,
	                pages / PAGES_OF_A_PIECE + 3);
	purses_fade(&world.purses);
	assert_in_range(thinned.calls, pages / PAGES_OF_A_PIECE, turns - 1);
	thinned.to = 0; /* it may be another's by now */
	world_close(&world);
}

static void fade_twice(struct world *world)
{
	purses_fade(&world->purses);
	purses_fade(&world->purses);
}

/* By an allocator of the host's, or a kernel that will not take pieces, and at the end. */
static void or_as_a_whole(void **state)
{
	struct world world;

	(void)state;
	outgrow(&world, &world.allocator.allocator);
	fade_twice(&world);
	assert_false(purses_fades(&world.purses));
	assert_int_equal(thinned.calls, 0);
	world_close(&world);

	thinned.refuses = true;
	outgrow(&world, memory_default());
	fade_twice(&world);
	assert_false(purses_fades(&world.purses));
	assert_int_equal(thinned.calls, 1);
	thinned.refuses = false;
	world_close(&world);

	outgrow(&world, memory_default());
	fade_twice(&world);
	assert_true(purses_fades(&world.purses));
	thinned.to = 0;
	world_close(&world); /* with what is left */
}

/* ---- Without memory -------------------------------------------------------------- */

/* All that takes memory; returns how often it was refused. */
static unsigned live(struct world *world)
{
	struct rule rule = { .is = { .limit = 1, .period_us = 10 } };
	struct block block = { .rule = rule, .count = 4 };
	struct named named;
	struct purse *purse;
	unsigned refused = 0;

	if (!world_open(world, 300))
		return 1;
	for (unsigned i = 0; i < 290; i++) { /* two chunks, and three sizes of table */
		purse = add(world, i);
		refused += !purse;
		if (purse && i % 40 == 1)
			purses_give_cells(&world->purses, purse, 2);
	}
	name_it(&named, &places_lender, 1, 8);
	purse = purses_add(&world->purses, &named.name);
	refused += !purse || !purses_give_block(&world->purses, purse, &block);
	assert_true(purses_valid(&world->purses)); /* EVICT-1, EVICT-2 */
	purses_turn(&world->purses);
	purses_close(&world->purses);
	return refused;
}

static void each_allocation_may_fail(void **state)
{
	uint64_t calls = 1;

	(void)state;
	for (uint64_t fails = 0; fails <= calls; fails += LONG_OR_BRIEF(1, 5)) {
		struct world world;
		unsigned refused;

		world_init(&world);
		world.allocator.fail_first = world.allocator.fail_last = fails;
		refused = live(&world);
		if (fails == 0) {
			assert_int_equal(refused, 0);
			calls = world.allocator.calls;
		}
		assert_true(refused <= 1); /* only what needed it */
		assert_true(test_allocator_is_balanced(&world.allocator));
		grace_leave(&world.grace, &world.reader);
		grace_close(&world.grace);
	}
	assert_true(calls > 100);
}

/* ---- Checking -------------------------------------------------------------------- */

static void an_invalid_set_is_seen(void **state)
{
	struct world world;
	struct purse *purse;

	(void)state;
	world_init(&world);
	assert_true(world_open(&world, MOST));
	fill(&world, 10);
	purse = find(&world, 4);
	purse->lender = NULL;
	assert_false(purses_valid(&world.purses)); /* EVICT-1 */
	purse->lender = &units_lender;
	purse->number++;
	assert_false(purses_valid(&world.purses));
	purse->number--;
	world.purses.own.max = 9;
	assert_false(purses_valid(&world.purses)); /* EVICT-2 */
	world.purses.own.max = MOST;
	assert_true(purses_valid(&world.purses));
	world_close(&world);
}

/* ---- Threads --------------------------------------------------------------------- */

#define READERS 3
#define KEYS 120
#define CHURN LONG_OR_BRIEF(6000, 2000)

struct scene {
	struct world world;
	struct named names[KEYS];
	struct reader readers[READERS];
	_Atomic uint64_t found;
	_Atomic uint64_t taken;
	_Atomic bool over;
	uint64_t put;
	uint64_t turn; /* of the actor */
};

/* What is found is what was sought, and has what was put into it. PURSE-2, TABLE-3 */
static void ask_once(struct scene *s, unsigned who, struct chance *chance)
{
	struct purse_name *name = &s->names[chance_below(chance, KEYS)].name;
	struct purse *purse;
	uint64_t word;

	reader_enter(&s->world.grace, &s->readers[who]);
	purse = purses_find(&s->world.purses, name);
	if (purse) {
		purse_use(purse);
		add_relaxed(&s->found, 1);
		must(purse->key_len == name->key_len); /* PURSE-2 */
		if (purse_take(purse, who, start, 1, &word))
			add_relaxed(&s->taken, 1);
	}
	reader_exit(&s->readers[who]);
}

static void ask_on(struct scene *s, unsigned who)
{
	struct chance chance = { who };

	while (!load_relaxed(&s->over)) {
		for (int i = 0; i < 20; i++)
			ask_once(s, who, &chance);
		sched_yield();
	}
}

static void act_once(struct scene *s, struct chance *chance)
{
	struct purses *set = &s->world.purses;
	struct purse_name *name = &s->names[chance_below(chance, KEYS)].name;
	struct purse *purse = purses_find(set, name);

	purse = purse ? purse : purses_add(set, name);
	if (purse && chance_one_in(chance, 2)) {
		purse_put(purse, far, 50, start);
		s->put += 50;
	}
	if (purse && chance_one_in(chance, 8) && !load_relaxed(&purse->split))
		purses_give_cells(set, purse, READERS);
	if (s->turn++ % 100 == 0)
		must(purses_valid(set)); /* EVICT-1, EVICT-2 */
	purses_turn(set);
}

static void act_on(struct scene *s)
{
	struct chance chance = { 77 };

	while (s->turn < CHURN || load_relaxed(&s->taken) < CHURN) {
		act_once(s, &chance);
		if (s->turn % 64 == 0)
			sched_yield();
	}
	store_relaxed(&s->over, true);
}

static void scene_main(void *arg, unsigned who)
{
	if (who == READERS)
		act_on(arg);
	else
		ask_on(arg, who);
}

static uint64_t left_in_all(struct purses *set)
{
	uint64_t left = 0;

	for (uint32_t i = 0; i < set->own.made; i++)
		if (purses_at(set, i)->lender)
			left += purse_left(purses_at(set, i), start);
	return left;
}

static void readers_find_what_they_seek_while_the_actor_evicts(void **state)
{
	static struct scene s;
	uint64_t back;

	(void)state;
	memset(&s, 0, sizeof(s));
	world_init(&s.world);
	assert_true(world_open(&s.world, MOST));
	for (unsigned i = 0; i < KEYS; i++)
		name_it(&s.names[i], &units_lender, i, i % 3 ? 8 : 60);
	for (unsigned i = 0; i < READERS; i++)
		grace_join(&s.world.grace, &s.readers[i]);
	crew_run(READERS + 1, scene_main, &s);
	back = s.world.units + left_in_all(&s.world.purses);
	assert_true(load_relaxed(&s.taken) + back <= s.put); /* PURSE-1, PURSE-3 */
	assert_true(load_relaxed(&s.found) > 0 && s.world.evicted > 0);
	for (unsigned i = 0; i < READERS; i++)
		grace_leave(&s.world.grace, &s.readers[i]);
	world_close(&s.world);
}

/* Whoever holds a purse reads its cells outside any grace period. */
static void hold_or_evict(void *arg, unsigned who)
{
	struct scene *s = arg;
	struct purse *purse = purses_at(&s->world.purses, 0);
	uint64_t word;

	if (who == 0) {
		must(purse_take(purse, 0, start, 1, &word));
		purse_unpin(purse);
		return;
	}
	while (!purses_evict(&s->world.purses, purse)) /* PURSE-3 */
		sched_yield();
	while (purses_turn(&s->world.purses))
		sched_yield();
}

static void what_is_held_is_read_before_it_is_freed(void **state)
{
	static struct scene s;

	(void)state;
	for (int i = 0; i < 20; i++) {
		struct purse *purse;

		memset(&s, 0, sizeof(s));
		world_init(&s.world);
		assert_true(world_open(&s.world, MOST));
		purse = add(&s.world, 0);
		purses_give_cells(&s.world.purses, purse, 1);
		purse_put(purse, far, 10, start);
		assert_true(purse_pin(purse));
		crew_run(2, hold_or_evict, &s);
		assert_int_equal(s.world.gone, 1);
		assert_int_equal(s.world.units, 9); /* PURSE-1 */
		world_close(&s.world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found_and_nothing_else),
		cmocka_unit_test(names_are_told_apart),
		cmocka_unit_test(keys_are_told_apart_by_each_byte),
		cmocka_unit_test(keys_of_any_length_are_kept),
		cmocka_unit_test(there_are_never_more_than_may_be),
		cmocka_unit_test(the_unused_go_first),
		cmocka_unit_test(what_is_used_again_stays),
		cmocka_unit_test(who_is_held_or_out_on_an_errand_stays),
		cmocka_unit_test(when_all_are_held_there_is_no_room),
		cmocka_unit_test(when_all_are_held_nobody_looks_at_all_of_them_again),
		cmocka_unit_test(cells_take_no_more_memory_than_purses),
		cmocka_unit_test(credit_leaves_before_the_purse_does),
		cmocka_unit_test(what_a_reader_may_see_is_not_used_again),
		cmocka_unit_test(closing_does_not_call_the_evictor),
		cmocka_unit_test(a_new_purse_is_as_new),
		cmocka_unit_test(what_was_learned_is_recalled),
		cmocka_unit_test(what_was_learned_is_of_each_key_alone),
		cmocka_unit_test(a_key_takes_so_many_bytes),
		cmocka_unit_test(no_chunk_is_taken_in_vain),
		cmocka_unit_test(blocks_wait_for_readers_too),
		cmocka_unit_test(what_a_table_has_outgrown_is_given_back_in_pieces),
		cmocka_unit_test(or_as_a_whole),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(an_invalid_set_is_seen),
		cmocka_unit_test(readers_find_what_they_seek_while_the_actor_evicts),
		cmocka_unit_test(what_is_held_is_read_before_it_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
