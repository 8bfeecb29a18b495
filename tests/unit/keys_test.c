/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys_test.c -- a stripe's keys against a list of the same, which is only slow.
 *
 * Every move is made on both.  After each, keys_valid holds (KEYS-1, SEGMENTS-2), what is found is
 * what the list has, and what expires is what the list lets go (KEYS-2).
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "stores/keys.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/must.h"

#define NAMES 300 /* that a run knows */
#define FIRST_FULL (SEGMENT_FIRST / 8 * 5)
#define FULL (SEGMENT_SLOTS / 8 * 5)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the list has of a name. */
struct known {
	struct entry *entry; /* NULL: not there */
	uint64_t expires_us;
	uint64_t latest_us; /* that expires_us ever was */
	uint64_t room;
	uint64_t mark; /* in its words */
};

struct model {
	struct test_allocator allocator;
	struct chance chance;
	struct keys keys;
	uint64_t now_us;
	unsigned names;
	uint64_t (*hash)(unsigned name);
	struct known list[NAMES];
};

/* ---- Hashes, as a test may choose them ------------------------------------------- */

static uint64_t spread(unsigned name)
{
	struct chance c = { name };

	return chance_next(&c);
}

/* One home for all: a single run of slots, in the middle of the table. */
static uint64_t one_home(unsigned name)
{
	return (uint64_t)name << 32 | 5;
}

/* One home for all, at the very end: the run goes round. */
static uint64_t last_home(unsigned name)
{
	return (uint64_t)name << 32 | UINT32_MAX;
}

/* A few homes on both sides of the end, so that runs join and part again. */
static uint64_t homes_around_the_end(unsigned name)
{
	return ((uint64_t)name << 32) + UINT64_MAX - 3 + name % 8;
}

/* Not even the whole hash tells the names apart. */
static uint64_t same_hash(unsigned name)
{
	(void)name;
	return UINT64_C(0xfedcba987654321f);
}

/* ---- Moves ----------------------------------------------------------------------- */

static struct key_name name_of(const struct model *m, unsigned name, uint8_t bytes[4])
{
	unsigned stem = name / 3;

	memset(bytes, 0, 4);
	memcpy(bytes, &stem, 2);
	/* Of three, each is the beginning of the next. */
	return (struct key_name){ bytes, 2 + name % 3, m->hash(name) };
}

static struct entry *find(const struct model *m, unsigned name)
{
	uint8_t bytes[4];
	struct key_name key = name_of(m, name, bytes);

	return keys_find(&m->keys, &key);
}

static void add(struct model *m, unsigned name)
{
	struct known *known = &m->list[name];
	uint8_t bytes[4];
	struct key_name key = name_of(m, name, bytes);

	known->room = chance_between(&m->chance, 1, 6);
	known->expires_us = m->now_us + chance_below(&m->chance, 1000);
	known->latest_us = known->expires_us;
	known->mark = chance_next(&m->chance);
	known->entry = keys_add(&m->keys, &m->allocator.allocator, &key, known->room,
	                        known->expires_us);
	must(known->entry);
	for (uint64_t i = 0; i < known->room; i++)
		must(known->entry->words[i] == 0);
	known->entry->words[known->room - 1] = known->mark;
	known->entry->fingerprint = known->mark ^ 1;
	known->entry->kind = (uint16_t)name;
}

static void grow(struct model *m, struct known *known)
{
	uint64_t room = known->room + chance_between(&m->chance, 1, 20);
	struct entry *larger =
	    keys_grow(&m->keys, &m->allocator.allocator, known->entry, room);

	must(larger);
	must(larger->words[known->room - 1] == known->mark);
	for (uint64_t i = known->room; i < room; i++)
		must(larger->words[i] == 0);
	larger->words[room - 1] = known->mark;
	known->entry = larger;
	known->room = room;
}

static void drop(struct model *m, struct known *known)
{
	keys_drop(&m->keys, &m->allocator.allocator, known->entry);
	known->entry = NULL;
}

/* As a step does: the heap is not told. */
static void move_on(struct model *m, struct known *known)
{
	known->expires_us += chance_below(&m->chance, 500);
	known->entry->expires_us = known->expires_us;
	if (known->latest_us < known->expires_us)
		known->latest_us = known->expires_us;
}

/* As a cancel does; the entry may then be dropped late. */
static void move_back(struct model *m, struct known *known)
{
	known->expires_us -= chance_below(&m->chance, known->expires_us + 1);
	known->entry->expires_us = known->expires_us;
}

static uint64_t let_go(struct model *m)
{
	uint64_t gone = 0;

	for (unsigned name = 0; name < m->names; name++) {
		struct known *known = &m->list[name];

		if (!known->entry || find(m, name))
			continue;
		must(known->expires_us <= m->now_us); /* never too early: L8 */
		known->entry = NULL;
		gone++;
	}
	return gone;
}

static void expire(struct model *m, uint64_t looks, uint64_t drops)
{
	uint64_t before = m->keys.count;
	uint64_t dropped =
	    keys_expire(&m->keys, &m->allocator.allocator, m->now_us, looks, drops);

	assert_in_range(dropped, 0, looks < drops ? looks : drops);
	assert_int_equal(m->keys.count, before - dropped);
	assert_int_equal(let_go(m), dropped);
	if (looks < UINT64_MAX || dropped == drops)
		return;
	assert_true(keys_next_due(&m->keys) > m->now_us);
	for (unsigned name = 0; name < m->names; name++)
		if (m->list[name].entry)
			/* The heap may know of any expiry that it ever had. */
			assert_true(m->list[name].latest_us > m->now_us);
}

static void move(struct model *m)
{
	unsigned name = (unsigned)chance_below(&m->chance, m->names);
	struct known *known = &m->list[name];
	uint64_t what = chance_below(&m->chance, 16);

	if (what == 0)
		m->now_us += chance_below(&m->chance, 300);
	else if (what == 1)
		expire(m, chance_between(&m->chance, 1, 4),
		       chance_between(&m->chance, 1, 4));
	else if (what == 2)
		expire(m, UINT64_MAX, chance_between(&m->chance, 1, NAMES));
	else if (!known->entry)
		add(m, name);
	else if (what < 6)
		drop(m, known);
	else if (what < 10)
		grow(m, known);
	else if (what < 15)
		move_on(m, known);
	else
		move_back(m, known);
}

static void check(const struct model *m)
{
	uint64_t count = 0;
	uint64_t due = UINT64_MAX;

	assert_true(keys_valid(&m->keys));
	for (unsigned name = 0; name < m->names; name++) {
		const struct known *known = &m->list[name];
		struct entry *entry = find(m, name);

		if (entry != known->entry)
			fail_msg("name %u is not what it was", name);
		if (!entry)
			continue;
		count++;
		assert_int_equal(entry->words[known->room - 1], known->mark);
		assert_int_equal(entry->fingerprint, known->mark ^ 1);
		assert_int_equal(entry->kind, name);
		assert_int_equal(entry->expires_us, known->expires_us);
		if (heap_at(&m->keys, entry->place)->due_us < due)
			due = heap_at(&m->keys, entry->place)->due_us;
	}
	assert_int_equal(m->keys.count, count);
	assert_int_equal(keys_next_due(&m->keys), due);
}

static void run_model(uint64_t seed, unsigned names, uint64_t (*hash)(unsigned name),
                      int moves)
{
	struct model m = { .chance = { seed }, .names = names, .hash = hash };

	test_allocator_init(&m.allocator);
	for (int i = 0; i < moves; i++) {
		move(&m);
		check(&m);
	}
	keys_close(&m.keys, &m.allocator.allocator);
	assert_true(test_allocator_is_balanced(&m.allocator));
}

/* ---- Tests ----------------------------------------------------------------------- */

static void random_moves_end_where_the_list_ends(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_model(seed, (unsigned)(1 + seed * seed % NAMES), spread, 1500);
}

static void keys_of_one_home_do_not_get_in_each_others_way(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		run_model(seed, (unsigned)(2 + 4 * seed), one_home, 1500);
}

static void runs_that_go_round_the_end_of_the_table_stay_whole(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		run_model(seed, (unsigned)(2 + 4 * seed), last_home, 1500);
		run_model(seed, (unsigned)(2 + 4 * seed), homes_around_the_end, 1500);
	}
}

static void names_of_one_hash_are_told_apart(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		run_model(seed, (unsigned)(2 + 4 * seed), same_hash, 1500);
}

static void no_keys_are_valid_and_never_due(void **state)
{
	struct keys keys = { 0 };
	struct test_allocator allocator;
	struct key_name name = { (const uint8_t *)"k", 1, 0 };

	(void)state;
	test_allocator_init(&allocator);
	assert_true(keys_valid(&keys));
	assert_null(keys_find(&keys, &name));
	assert_true(keys_next_due(&keys) == UINT64_MAX);
	assert_int_equal(keys_expire(&keys, &allocator.allocator, UINT64_MAX - 1, 9, 9),
	                 0);
	keys_close(&keys, &allocator.allocator);
	assert_int_equal(allocator.calls, 0);
}

static void a_key_that_was_moved_on_is_dropped_then_and_not_before(void **state)
{
	struct test_allocator allocator;
	struct gale_allocator *host = &allocator.allocator;
	struct keys keys = { 0 };
	struct key_name name = { (const uint8_t *)"k", 1, 77 };
	struct entry *entry;

	(void)state;
	test_allocator_init(&allocator);
	entry = keys_add(&keys, host, &name, 2, 100);
	entry->expires_us = 200;
	assert_int_equal(keys_expire(&keys, host, 150, 10, 10), 0);
	assert_int_equal(keys_next_due(&keys), 200); /* the heap has learned it */
	assert_int_equal(keys_expire(&keys, host, 199, 10, 10), 0);
	assert_int_equal(keys_expire(&keys, host, 200, 10, 10), 1);
	assert_int_equal(keys.count, 0);
	keys_close(&keys, host);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* Without memory nothing is half done: the table neither lost nor gained anything. */
static void a_failed_allocation_leaves_everything_as_it_was(void **state)
{
	/* As many as a table has room for, before it begins, becomes larger, and splits; and what
	 * it then takes for one more. */
	static const struct {
		unsigned names, calls;
	} rows[] = {
		{ 0,
		  4 }, /* a segment, a block of the directory and one of the heap, the entry */
		{ 16, 2 },         /* a block, the entry */
		{ FIRST_FULL, 2 }, /* a segment, the entry */
		{ FULL, 2 },       /* the same */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		for (uint64_t fail = 1; fail <= rows[i].calls + 1; fail++) {
			unsigned names = rows[i].names;
			struct model m = { .chance = { fail },
				           .names = names + 1,
				           .hash = spread };
			uint8_t bytes[4];
			struct key_name last;

			test_allocator_init(&m.allocator);
			for (unsigned name = 0; name < names; name++)
				add(&m, name);
			last = name_of(&m, names, bytes);
			m.allocator.fail_first = m.allocator.calls + fail;
			m.allocator.fail_last = m.allocator.fail_first;
			m.list[names].entry = keys_add(&m.keys, &m.allocator.allocator,
			                               &last, 1, m.now_us);
			assert_true((m.list[names].entry != NULL) ==
			            (fail > rows[i].calls));
			assert_true(keys_valid(&m.keys));
			for (unsigned name = 0; name < names; name++)
				assert_ptr_equal(find(&m, name), m.list[name].entry);

			m.allocator.fail_first = m.allocator.fail_last =
			    m.allocator.calls + 1;
			if (names > 0) {
				assert_null(keys_grow(&m.keys, &m.allocator.allocator,
				                      m.list[3].entry, 50));
				assert_ptr_equal(find(&m, 3), m.list[3].entry);
			}
			assert_true(keys_valid(&m.keys));
			keys_close(&m.keys, &m.allocator.allocator);
			assert_true(test_allocator_is_balanced(&m.allocator));
		}
}

/* ---- Growing --------------------------------------------------------------------- */

#define MANY 20000

static struct segment *segment_at(const struct keys *keys, uint64_t index)
{
	return *segments_at(&keys->table, index);
}

static uint64_t segments_in(const struct keys *keys)
{
	uint64_t count = 0;

	for (uint64_t i = 0;
	     keys->table.directory[0] && i < UINT64_C(1) << keys->table.depth; i++)
		count += i < UINT64_C(1) << segment_at(keys, i)->depth;
	return count;
}

/* Places of the directory. */
static uint64_t written_in(const struct keys *keys)
{
	return (UINT64_C(1) << keys->table.depth) + keys->table.ahead;
}

static struct entry *add_number(struct keys *keys, struct gale_allocator *host,
                                uint64_t number, uint64_t hash)
{
	struct key_name name = { (const uint8_t *)&number, sizeof(number), hash };

	return keys_add(keys, host, &name, 1, number * 7919 % MANY);
}

/* However many there are: of what is there, it moves at most what one segment has, and it writes a few
 * places of the directory. */
static void an_addition_splits_one_segment_at_most(void **state)
{
	struct test_allocator allocator;
	struct keys keys = { 0 };
	uint64_t segments = 0, written = 1;

	(void)state;
	test_allocator_init(&allocator);
	for (unsigned i = 0; i < MANY; i++) {
		uint64_t calls = allocator.calls;

		must(add_number(&keys, &allocator.allocator, i, spread(i)));
		assert_in_range(segments_in(&keys) - segments, 0, 1);
		/* It, blocks of the directory and of the heap, and the entry. */
		assert_in_range(allocator.calls - calls, 1, 4);
		assert_in_range(written_in(&keys) - written, 0, 2 * DIRECTORY_AHEAD);
		written = written_in(&keys);
		segments = segments_in(&keys);
		assert_true(i % 97 || keys_valid(&keys));
	}
	for (uint64_t i = 0; i < UINT64_C(1) << keys.table.depth; i++)
		assert_true(segment_at(&keys, i)->count <= FULL);
	assert_in_range(segments, MANY / FULL, 3 * MANY / FULL);
	assert_true(keys_valid(&keys));
	/* They go in the order in which they are due, and what is left is as it was. */
	for (uint64_t now = 0; now < MANY; now += 61) {
		(void)keys_expire(&keys, &allocator.allocator, now, MANY, MANY);
		assert_int_equal(keys.count, MANY - 1 - now);
	}
	assert_true(keys_valid(&keys));
	keys_close(&keys, &allocator.allocator);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* A key that is refused costs nothing that is there.  A split does without the half of the directory that
 * is to come, until it needs it, and then writes all of it. */
static void what_memory_was_refused_for_is_had_later(void **state)
{
	struct test_allocator allocator;
	struct keys keys = { 0 };

	(void)state;
	test_allocator_init(&allocator);
	allocator.fail_last = UINT64_MAX;
	for (unsigned i = 0; i < 3000; i++) {
		struct entry *entry = NULL;

		for (uint64_t allowed = 0; !entry; allowed++) {
			must(allowed <= 4);
			allocator.fail_first = allocator.calls + allowed + 1;
			entry = add_number(&keys, &allocator.allocator, i, spread(i));
			assert_int_equal(keys.count, i + (entry != NULL));
			assert_true(i % 29 || keys_valid(&keys));
		}
		must(keys.table.ahead == 0 || keys.table.depth < DIRECTORY_LOG2);
	}
	must(keys.table.depth > DIRECTORY_LOG2 + 1);
	assert_true(keys_valid(&keys));
	keys_close(&keys, &allocator.allocator);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* Those that are alike in more and more bits, so that segments of all depths stand side by
 * side. */
static uint64_t ever_more_alike(unsigned name)
{
	return spread(name) << (32 + name % 6) | (uint8_t)name;
}

static void segments_of_different_depths_stand_side_by_side(void **state)
{
	struct test_allocator allocator;
	struct keys keys = { 0 };
	struct entry *entries[4000];
	uint32_t least = UINT32_MAX;

	(void)state;
	test_allocator_init(&allocator);
	for (unsigned i = 0; i < COUNT(entries); i++) {
		entries[i] =
		    add_number(&keys, &allocator.allocator, i, ever_more_alike(i));
		must(entries[i]);
		assert_true(i % 13 || keys_valid(&keys)); /* SEGMENTS-1 */
	}
	for (uint64_t i = 0; i < UINT64_C(1) << keys.table.depth; i++)
		if (segment_at(&keys, i)->depth < least)
			least = segment_at(&keys, i)->depth;
	assert_true(keys.table.depth > least + 2);
	for (unsigned i = 0; i < COUNT(entries); i += 2) {
		keys_drop(&keys, &allocator.allocator, entries[i]);
		assert_true(i % 26 || keys_valid(&keys));
	}
	keys_close(&keys, &allocator.allocator);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* No bit tells them apart: a segment fills up, and then there is no room. */
static void hashes_that_are_the_same_end_in_no_room(void **state)
{
	struct test_allocator allocator;
	struct segments table = { 0 };
	struct segment *full;
	uint64_t hash = spread(1);

	(void)state;
	test_allocator_init(&allocator);
	must(segments_make_room(&table, &allocator.allocator, hash));
	full = *segments_at(&table, 0);
	for (; full->count < full->mask; full->count++)
		full->depth = SEGMENT_DEPTH_MOST;
	assert_false(segments_make_room(&table, &allocator.allocator, hash));
	full->count--;
	assert_true(segments_make_room(&table, &allocator.allocator, hash));
	full->depth = full->count = 0;
	segments_close(&table, &allocator.allocator);
	assert_true(test_allocator_is_balanced(&allocator));
}

/* ---- The checker is checked ------------------------------------------------------ */

static void swap_places(struct keys *keys)
{
	struct heap_place first = *heap_at(keys, 0);

	*heap_at(keys, 0) = *heap_at(keys, keys->count - 1);
	*heap_at(keys, keys->count - 1) = first;
	heap_at(keys, 0)->entry->place = 0;
	first.entry->place = (uint32_t)(keys->count - 1);
}

static void misplace(struct keys *keys)
{
	heap_at(keys, 2)->entry->place = 3;
}

static struct table_slot *some_slot(struct keys *keys, bool filled)
{
	struct table_slot *slot = segment_at(keys, 0)->at;

	while ((slot->entry != NULL) != filled)
		slot++;
	return slot;
}

static void lose_slot(struct keys *keys)
{
	*some_slot(keys, true) = (struct table_slot){ 0 };
}

static void double_slot(struct keys *keys)
{
	*some_slot(keys, false) = *some_slot(keys, true);
}

static void break_run(struct keys *keys)
{
	struct table_slot *from = some_slot(keys, true);
	struct table_slot *to = &segment_at(keys, 0)->at[SEGMENT_FIRST - 1];

	while (to->entry)
		to--;
	*to = *from;
	*from = (struct table_slot){ 0 };
}

static void miscount(struct keys *keys)
{
	keys->count--;
}

static void miscount_segment(struct keys *keys)
{
	segment_at(keys, 0)->count--;
}

static void pretend_depth(struct keys *keys)
{
	segment_at(keys, 0)->depth = 1;
}

static void keys_valid_sees_each_broken_invariant(void **state)
{
	static void (*const faults[])(struct keys * keys) = {
		swap_places, misplace, lose_slot,        double_slot,
		break_run,   miscount, miscount_segment, pretend_depth
	};

	(void)state;
	for (size_t i = 0; i < COUNT(faults); i++) {
		struct model m = { .chance = { 9 }, .names = 10, .hash = one_home };
		struct keys sane;
		union {
			struct segment is;
			char bytes[sizeof(struct segment) +
			           SEGMENT_FIRST * sizeof(struct table_slot)];
		} first;
		struct heap_place heap[HEAP_FIRST];

		test_allocator_init(&m.allocator);
		for (unsigned name = 0; name < 10; name++)
			add(&m, name);
		sane = m.keys;
		must(sane.table.depth == 0);
		memcpy(&first, segment_at(&sane, 0), sizeof(first));
		memcpy(heap, sane.heap[0], sizeof(heap));

		assert_true(keys_valid(&m.keys));
		faults[i](&m.keys);
		assert_false(keys_valid(&m.keys));

		m.keys = sane;
		memcpy(segment_at(&sane, 0), &first, sizeof(first));
		memcpy(sane.heap[0], heap, sizeof(heap));
		keys_close(&m.keys, &m.allocator.allocator);
		assert_true(test_allocator_is_balanced(&m.allocator));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_moves_end_where_the_list_ends),
		cmocka_unit_test(keys_of_one_home_do_not_get_in_each_others_way),
		cmocka_unit_test(runs_that_go_round_the_end_of_the_table_stay_whole),
		cmocka_unit_test(names_of_one_hash_are_told_apart),
		cmocka_unit_test(no_keys_are_valid_and_never_due),
		cmocka_unit_test(
		    a_key_that_was_moved_on_is_dropped_then_and_not_before),
		cmocka_unit_test(a_failed_allocation_leaves_everything_as_it_was),
		cmocka_unit_test(an_addition_splits_one_segment_at_most),
		cmocka_unit_test(what_memory_was_refused_for_is_had_later),
		cmocka_unit_test(segments_of_different_depths_stand_side_by_side),
		cmocka_unit_test(hashes_that_are_the_same_end_in_no_room),
		cmocka_unit_test(keys_valid_sees_each_broken_invariant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
