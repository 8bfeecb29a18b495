/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * table_test.c -- what was added is found, whatever was removed around it, and while it grows.
 *
 * The model is a plain array: which items are in, under which hash.
 */
#include <sched.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/memory.h"
#include "shards/table.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"

#define FIRST 64 /* slots of a new table */
#define NUMBERS 400
#define STEPS 40000

/* Plain memory, so that TSan sees who may read it. */
struct item {
	alignas(TABLE_ALIGN) uint64_t hash;
	uint64_t twice;
	struct retired retired;
	bool in;
};

struct model {
	struct hashes hashes; /* first */
	uint64_t looked_up;   /* hashes, as to carry an item takes one */
	struct test_allocator allocator;
	struct table table;
	struct chance chance;
	struct item items[NUMBERS];
	uint64_t count;
};

static uint32_t low_half(const struct hashes *self, const void *item)
{
	((struct model *)self)->looked_up++;
	return (uint32_t)((const struct item *)item)->hash;
}

static void model_open(struct model *m, uint64_t seed)
{
	memset(m, 0, sizeof(*m));
	m->hashes.of = low_half;
	m->chance.state = seed;
	test_allocator_init(&m->allocator);
	assert_true(table_open(&m->table, &m->allocator.allocator));
}

static void model_close(struct model *m)
{
	table_close(&m->table, &m->allocator.allocator);
	assert_true(test_allocator_is_balanced(&m->allocator));
}

static uint64_t slot_count(struct table *table)
{
	return root_mask(load_relaxed(&table->root)) + 1;
}

static _Atomic uint64_t *slots_of(struct model *m)
{
	return root_slots(load_relaxed(&m->table.root));
}

static void free_slots(struct model *m, struct slots *old)
{
	if (old)
		memory_give_lines(&m->allocator.allocator, old, old->part.bytes);
}

static void add(struct model *m, uint32_t number, uint64_t hash)
{
	struct slots *old;

	assert_true(
	    table_make_room(&m->table, &m->allocator.allocator, &m->hashes, &old));
	free_slots(m, old);
	m->items[number].hash = hash;
	table_add(&m->table, hash, &m->items[number]);
	m->items[number].in = true;
	m->count++;
	/* TABLE-2 */
	assert_true(m->table.count <=
	            slot_count(&m->table) / 8 * (m->table.larger ? 5 : 4));
}

static void take_out(struct model *m, uint32_t number)
{
	table_remove(&m->table, &m->hashes, &m->items[number]);
	m->items[number].in = false;
	m->count--;
}

/* Does a slot keep the same of them? */
static bool are_alike(uint64_t a, uint64_t b)
{
	return ((a ^ b) & UINT8_MAX & ~UINT64_C(1)) == 0;
}

/* How often a seek for the hash comes upon the item; nothing else may be found that is
 * not there, or whose hash has another end. */
static unsigned finds(struct model *m, uint64_t hash, uint32_t number)
{
	struct seek seek = table_seek(&m->table, hash);
	const struct item *found;
	unsigned times = 0;

	while ((found = table_next(&seek))) {
		assert_true(found >= m->items && found < m->items + NUMBERS);
		assert_true(found->in); /* TABLE-3 */
		assert_true(are_alike(found->hash, hash));
		times += found == &m->items[number];
	}
	return times;
}

static void check(struct model *m)
{
	assert_int_equal(m->table.count, m->count);
	assert_true(table_valid(&m->table, &m->hashes)); /* TABLE-1, TABLE-2 */
	for (uint32_t number = 0; number < NUMBERS; number++)
		if (m->items[number].in) /* TABLE-1 */
			assert_int_equal(finds(m, m->items[number].hash, number), 1);
}

/* What a slot keeps of a hash, and where that is at home among the first slots. */
static uint64_t hash_of(uint64_t end, uint64_t home)
{
	return home * (UINT64_C(1) << HOME_BITS) / FIRST | end << 1;
}

/* Some hashes differ in one part only, some are the same, some have their homes at the
 * end of the slots, so that probing goes round. */
static uint64_t any_hash(struct chance *c)
{
	uint64_t end = chance_below(c, chance_one_in(c, 2) ? 3 : 128);
	uint64_t hash = chance_next(c) & UINT32_MAX & ~(uint64_t)UINT8_MAX;

	if (chance_one_in(c, 2))
		hash |= 0xe0000000; /* the last eighth of any table */
	return hash | hash_of(end, 0);
}

static void step(struct model *m, uint64_t crowd)
{
	uint32_t number = (uint32_t)chance_below(&m->chance, NUMBERS);

	if (m->items[number].in)
		take_out(m, number);
	else if (m->count < crowd)
		add(m, number, any_hash(&m->chance));
}

static void whatever_comes_and_goes_the_rest_is_found(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct model m;

		model_open(&m, seed);
		for (uint64_t i = 0; i < STEPS; i++) {
			step(&m, seed % 2 ? NUMBERS : FIRST / 4 * 3);
			if (i % 97 == 0)
				check(&m);
			else
				assert_true(i % 11 || table_valid(&m.table, &m.hashes));
		}
		check(&m);
		model_close(&m);
	}
}

static void probing_goes_round_the_end(void **state)
{
	struct model m;

	(void)state;
	model_open(&m, 1);
	for (uint32_t i = 0; i < 6; i++)
		add(&m, i, hash_of(i, FIRST - 2));
	add(&m, 6, hash_of(0, FIRST - 1)); /* the same home, which has four slots */
	add(&m, 7, hash_of(0, 1));         /* where those have been pushed to */
	check(&m);
	take_out(&m, 0); /* all move up, across the end */
	check(&m);
	take_out(&m, 6);
	check(&m);
	for (uint32_t i = 1; i < 6; i++)
		take_out(&m, i);
	check(&m);
	assert_int_equal(finds(&m, hash_of(0, 1), 7), 1);
	assert_ptr_equal(slot_item(load_relaxed(&slots_of(&m)[0])), &m.items[7]);
	model_close(&m);
}

/* Who looks at the last home need not go round, however large the table is. */
static void the_last_home_is_whole(void **state)
{
	struct model m;

	(void)state;
	model_open(&m, 1);
	for (uint32_t i = 0; i < NUMBERS; i++) {
		uintptr_t root;
		const _Atomic uint64_t *last;
		const struct slots *slots;

		add(&m, i, any_hash(&m.chance));
		root = load_relaxed(&m.table.root);
		last = &root_slots(root)[root_home(root, UINT32_MAX)];
		slots = (const void *)((const char *)root_slots(root) -
		                       offsetof(struct slots, at));
		assert_ptr_equal(last + TABLE_NEAR - 1, &slots->at[root_mask(root)]);
		assert_ptr_equal(last + TABLE_NEAR,
		                 (const char *)slots + slots->part.bytes);
	}
	model_close(&m);
}

/* As few as one slot, as where a seat that has left looks, and as many as there can be. */
static void homes_are_told_of_tables_of_any_size(void **state)
{
	(void)state;
	assert_int_equal(slot_of(0, NULL), SLOT_OF_NOTHING);
	for (unsigned log2 = 0; log2 <= HOME_BITS; log2++) {
		uintptr_t root = HOME_BITS - log2;

		assert_int_equal(root_mask(root), (UINT64_C(1) << log2) - 1);
		assert_int_equal(root_home(root, 0), 0);
		assert_int_equal(root_home(root, UINT64_MAX),
		                 root_mask(root) & ~UINT64_C(3));
	}
}

/* ---- Growing --------------------------------------------------------------------- */

static bool grows(const struct model *m)
{
	return m->table.larger != NULL;
}

static void fill(struct model *m, uint32_t count, uint64_t (*hash)(struct chance *c))
{
	while (m->count < count)
		add(m, (uint32_t)m->count, hash(&m->chance));
}

static void it_begins_to_grow_when_half_are_in_use(void **state)
{
	struct model m;
	struct slots *old;

	(void)state;
	model_open(&m, 2);
	fill(&m, FIRST / 2, any_hash);
	assert_false(grows(&m)); /* TABLE-2 */
	m.allocator.fail_first = m.allocator.fail_last = m.allocator.calls + 1;
	assert_false(
	    table_make_room(&m.table, &m.allocator.allocator, &m.hashes, &old));
	assert_false(grows(&m));
	check(&m); /* without memory nothing has changed */
	add(&m, NUMBERS - 1, any_hash(&m.chance));
	assert_true(grows(&m));
	assert_int_equal(slot_count(&m.table), FIRST);
	check(&m);
	model_close(&m); /* with both */
}

/* The additions that growing from so many slots takes. */
static uint64_t growth_of(uint64_t slots)
{
	return 2 * slots / TABLE_CLEARS + slots / TABLE_CARRIES;
}

/* A part, however many there are. */
static void an_addition_does_a_part(void **state)
{
	struct model m;
	uint64_t slots = FIRST, cleared = 0, carried = 0, parts = 0;

	(void)state;
	model_open(&m, 3);
	for (uint32_t i = 0; i < NUMBERS; i++) {
		uint64_t calls = m.allocator.calls;
		bool grew = grows(&m);

		if (!grew)
			cleared = carried = parts = 0;
		m.looked_up = 0;
		add(&m, i, any_hash(&m.chance));
		assert_true(m.looked_up <= TABLE_CARRIES);
		assert_int_equal(m.allocator.calls - calls, grows(&m) && !grew);
		parts += grows(&m) || grew;
		if (grows(&m)) {
			assert_true(m.table.cleared - cleared <= TABLE_CLEARS);
			assert_true(m.table.carried - carried <= TABLE_CARRIES);
			cleared = m.table.cleared;
			carried = m.table.carried;
		} else if (grew) {
			assert_int_equal(parts, growth_of(slots));
			assert_int_equal(slot_count(&m.table), 2 * slots);
			assert_true(m.count <= slots / 8 * 5); /* TABLE-2 */
			slots *= 2;
		}
		assert_true(table_valid(&m.table, &m.hashes)); /* TABLE-4 */
	}
	assert_int_equal(slots, 16 * FIRST);
	model_close(&m);
}

/* Runs of slots that go round the end. */
static uint64_t last_hash(struct chance *c)
{
	return (uint64_t)UINT32_MAX - chance_below(c, UINT64_C(1) << 29);
}

static void some_come_and_go(struct model *m, uint32_t first, int times)
{
	for (int i = 0; i < times; i++) {
		take_out(m, first + (uint32_t)chance_below(&m->chance, FIRST / 4));
		assert_true(table_valid(&m->table, &m->hashes)); /* TABLE-4 */
		for (uint32_t n = first; n < first + FIRST / 4; n++)
			if (!m->items[n].in)
				add(m, n, any_hash(&m->chance));
	}
}

static void grow_with_a_change_at(uint64_t seed, uint64_t slots, uint64_t at,
                                  uint64_t (*hash)(struct chance *c))
{
	struct model m;
	uint32_t half = (uint32_t)slots / 2, first;

	model_open(&m, seed);
	fill(&m, half + (uint32_t)at, hash);
	assert_true(at == 0 || grows(&m));
	first = (uint32_t)chance_below(&m.chance, half - FIRST / 4 - 3);
	for (int i = 0; i < 3; i++) /* what is removed is not missed afterwards */
		take_out(&m, first + FIRST / 4 + (uint32_t)i);
	assert_true(table_valid(&m.table, &m.hashes)); /* TABLE-4 */
	some_come_and_go(&m, first, 2);
	check(&m);
	for (uint32_t n = NUMBERS - 1; slot_count(&m.table) == slots; n--)
		add(&m, n, hash(&m.chance));
	assert_false(grows(&m));
	check(&m);
	model_close(&m);
}

/* Before each of the parts, of tables of three sizes. */
static void what_comes_and_goes_while_it_grows_is_found_or_not(void **state)
{
	(void)state;
	for (uint64_t slots = FIRST; slots <= 4 * FIRST; slots *= 2)
		for (uint64_t at = 0; at < growth_of(slots); at++)
			for (uint64_t seed = 1; seed <= 6; seed++)
				grow_with_a_change_at(seed, slots, at,
				                      seed % 2 ? any_hash : last_hash);
}

/* Readers look where all are, and see nothing of the other slots before they are filled. */
static void readers_look_at_the_old_slots_until_the_last_is_carried(void **state)
{
	struct model m;
	table_root mirror;
	uintptr_t root;

	(void)state;
	model_open(&m, 5);
	table_mirror(&m.table, &mirror);
	fill(&m, FIRST / 2, any_hash);
	root = load_relaxed(&m.table.root);
	for (uint64_t i = 1; i < growth_of(FIRST); i++) {
		add(&m, (uint32_t)m.count, any_hash(&m.chance));
		assert_int_equal(load_relaxed(&m.table.root), root);
		assert_int_equal(load_relaxed(&mirror), root);
		check(&m);
	}
	add(&m, (uint32_t)m.count, any_hash(&m.chance));
	assert_int_not_equal(load_relaxed(&m.table.root), root);
	assert_int_equal(load_relaxed(&mirror), load_relaxed(&m.table.root));
	check(&m);
	model_close(&m);
}

static void a_table_without_memory_is_not_opened(void **state)
{
	struct test_allocator allocator;
	struct table table;

	(void)state;
	test_allocator_init(&allocator);
	allocator.fail_first = allocator.fail_last = 1;
	assert_false(table_open(&table, &allocator.allocator));
	table_close(&table, &allocator.allocator);
	assert_true(test_allocator_is_balanced(&allocator));
}

static void an_invalid_table_is_seen(void **state)
{
	struct model m;
	_Atomic uint64_t *slots;
	uint64_t slot;

	(void)state;
	model_open(&m, 3);
	add(&m, 0, hash_of(0, 4));
	add(&m, 1, hash_of(1, 4));
	slots = slots_of(&m);
	slot = load_relaxed(&slots[4]);
	store_relaxed(&slots[4], 0); /* the second is behind a hole */
	m.table.count = 1;
	assert_false(table_valid(&m.table, &m.hashes)); /* TABLE-1 */
	store_relaxed(&slots[4], slot);
	assert_false(table_valid(&m.table, &m.hashes)); /* the count is wrong */
	m.table.count = 2;
	assert_true(table_valid(&m.table, &m.hashes));
	fill(&m, FIRST / 2 + FIRST / 8 - 1, any_hash);
	assert_true(m.table.carried == FIRST - TABLE_CARRIES);
	slots = m.table.larger->at;
	while (load_relaxed(slots) == 0)
		slots++;
	slot = load_relaxed(slots);
	store_relaxed(slots, 0);
	assert_false(table_valid(&m.table, &m.hashes)); /* TABLE-4: it is lost */
	store_relaxed(slots, slot_of(0, &m.items[NUMBERS - 1]));
	assert_false(table_valid(&m.table, &m.hashes)); /* and another one made up */
	store_relaxed(slots, slot);
	assert_true(table_valid(&m.table, &m.hashes));
	model_close(&m);
}

/* ---- Readers beside the writer --------------------------------------------------- */

#define READERS 3
#define STAYING 16 /* numbers that are never removed */
#define CHURN 40000
#define POISON UINT64_C(0xeeeeeeeeeeeeeeee)

struct scene {
	struct model m;
	struct grace grace;
	struct limbo limbo;
	struct reader readers[READERS];
	bool waiting[NUMBERS]; /* removed, and readers may still look */
	_Atomic bool over;
	_Atomic uint64_t found;
	_Atomic uint64_t missed;
};

static void reusable(void *self, struct retired *retired)
{
	struct scene *s = self;
	struct item *item =
	    (struct item *)((char *)retired - offsetof(struct item, retired));

	s->waiting[item - s->m.items] = false;
	item->hash = item->twice = POISON;
}

static void free_old(void *self, struct retired *retired)
{
	free_slots(self, (struct slots *)retired);
}

static bool look_once(struct scene *s, uint64_t hash, uint32_t number)
{
	struct seek seek = table_seek(&s->m.table, hash);
	const struct item *found;
	bool there = false;

	while ((found = table_next(&seek))) {
		must(found->twice == 2 * found->hash); /* TABLE-3 */
		must(are_alike(found->hash, hash));
		there |= found == &s->m.items[number];
	}
	return there;
}

static uint64_t staying_hash(uint32_t number)
{
	return hash_of(number % 3, 60 + number % 4);
}

static void read_on(struct scene *s, unsigned who)
{
	struct chance chance = { who };

	while (!load_relaxed(&s->over)) {
		uint32_t number = (uint32_t)chance_below(&chance, STAYING);
		bool there;

		reader_enter(&s->grace, &s->readers[who]);
		there = look_once(s, staying_hash(number), number);
		(void)look_once(s, any_hash(&chance), number); /* most often nothing */
		reader_exit(&s->readers[who]);
		add_relaxed(there ? &s->found : &s->missed, 1);
		if (chance_one_in(&chance, 64))
			sched_yield();
	}
}

static void put_item(struct scene *s, uint32_t number, uint64_t hash)
{
	struct item *item = &s->m.items[number];
	struct slots *old;

	must(table_make_room(&s->m.table, &s->m.allocator.allocator, &s->m.hashes,
	                     &old));
	if (old)
		limbo_add(&s->limbo, &old->part.retired);
	item->hash = hash;
	item->twice = 2 * hash;
	table_add(&s->m.table, hash, item); /* placed */
	item->in = true;
}

static void churn(struct scene *s, struct limbo *gone)
{
	uint32_t number = (uint32_t)chance_between(&s->m.chance, STAYING, NUMBERS - 1);

	if (s->m.items[number].in) {
		take_out(&s->m, number);
		s->m.count++; /* counted by check() alone */
		s->waiting[number] = true;
		limbo_add(gone, &s->m.items[number].retired);
	} else if (!s->waiting[number]) {
		put_item(s, number, any_hash(&s->m.chance) | 0xc0000000);
	}
}

static void write_on(struct scene *s)
{
	struct limbo gone = { 0 };

	while (load_relaxed(&s->found) < READERS * 100)
		sched_yield(); /* until all are at it: it grows soon */
	for (int i = 0; i < CHURN; i++) {
		churn(s, &gone);
		limbo_turn(&gone, &s->grace, reusable, s);
		limbo_turn(&s->limbo, &s->grace, free_old, &s->m);
		if (i % 512 == 0)
			must(table_valid(&s->m.table, &s->m.hashes));
		if (i % 512 == 0 || i < NUMBERS)
			sched_yield();
	}
	store_relaxed(&s->over, true);
	while (!limbo_is_empty(&gone) || !limbo_is_empty(&s->limbo)) {
		limbo_turn(&gone, &s->grace, reusable, s);
		limbo_turn(&s->limbo, &s->grace, free_old, &s->m);
		sched_yield();
	}
}

static void scene_main(void *arg, unsigned who)
{
	struct scene *s = arg;

	if (who == READERS)
		write_on(s);
	else
		read_on(s, who);
}

/* Once the writer is still, a reader that missed finds it. */
static void all_that_stay_are_found(struct scene *s)
{
	for (uint32_t number = 0; number < STAYING; number++)
		assert_true(look_once(s, staying_hash(number), number)); /* TABLE-1 */
}

static void readers_find_what_stays_and_nothing_that_is_not_there(void **state)
{
	static struct scene s;

	(void)state;
	model_open(&s.m, 5);
	grace_open(&s.grace);
	for (uint32_t i = 0; i < READERS; i++)
		grace_join(&s.grace, &s.readers[i]);
	for (uint32_t i = 0; i < STAYING; i++)
		put_item(&s, i, staying_hash(i));
	crew_run(READERS + 1, scene_main, &s);
	all_that_stay_are_found(&s);
	/* Missing is the exception. */
	assert_true(load_relaxed(&s.found) > 4 * load_relaxed(&s.missed));
	for (uint32_t i = 0; i < READERS; i++)
		grace_leave(&s.grace, &s.readers[i]);
	grace_close(&s.grace);
	model_close(&s.m);
}

#define GROWTHS 10 /* times three */

/* Who seeks what is not there finds it empty, and that was written before. */
static void seek_or_grow(void *arg, unsigned who)
{
	struct scene *s = arg;
	struct chance chance = { who };

	while (who < READERS && !load_relaxed(&s->over)) {
		reader_enter(&s->grace, &s->readers[who]);
		(void)look_once(s, chance_next(&chance), 0);
		reader_exit(&s->readers[who]);
		add_relaxed(&s->missed, 1);
	}
	if (who < READERS)
		return;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		while (load_relaxed(&s->missed) < i * 10)
			sched_yield(); /* they are always at it */
		put_item(s, i, hash_of(i % 3, i * 7919 % FIRST));
	}
	store_relaxed(&s->over, true);
}

static void a_table_that_has_grown_is_filled(void **state)
{
	static struct scene s;

	(void)state;
	for (uint64_t i = 0; i < GROWTHS; i++) {
		memset(&s, 0, sizeof(s));
		model_open(&s.m, i);
		grace_open(&s.grace);
		crew_run(READERS + 1, seek_or_grow, &s);
		assert_int_equal(slot_count(&s.m.table), 16 * FIRST);
		limbo_close(&s.limbo, free_old, &s.m);
		grace_close(&s.grace);
		model_close(&s.m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_comes_and_goes_the_rest_is_found),
		cmocka_unit_test(probing_goes_round_the_end),
		cmocka_unit_test(the_last_home_is_whole),
		cmocka_unit_test(homes_are_told_of_tables_of_any_size),
		cmocka_unit_test(it_begins_to_grow_when_half_are_in_use),
		cmocka_unit_test(an_addition_does_a_part),
		cmocka_unit_test(what_comes_and_goes_while_it_grows_is_found_or_not),
		cmocka_unit_test(
		    readers_look_at_the_old_slots_until_the_last_is_carried),
		cmocka_unit_test(a_table_without_memory_is_not_opened),
		cmocka_unit_test(an_invalid_table_is_seen),
		cmocka_unit_test(a_table_that_has_grown_is_filled),
		cmocka_unit_test(readers_find_what_stays_and_nothing_that_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
