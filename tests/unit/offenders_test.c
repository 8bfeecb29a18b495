/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* offenders_test.c -- the table of keys that are refused most, against counts of all keys. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "engine/offenders.h"

#define KEYS 200
#define NOTES 4000
#define STREAMS 40

static uint64_t lot;

static uint64_t draw(uint64_t below)
{
	lot = lot * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (lot >> 33) % below;
}

/* What was noted of each key in truth. */
struct truth {
	struct offenders table;
	uint64_t counts[KEYS];
};

static void note(struct truth *truth, uint64_t key, uint64_t weight)
{
	truth->counts[key] += weight;
	offenders_note(&truth->table, key + 1, &key, sizeof(key), weight);
}

static const struct offender *row_of(const struct offenders *table, uint64_t key)
{
	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (table->rows[i].count > 0 && table->rows[i].hash == key + 1)
			return &table->rows[i];
	return NULL;
}

static void expect_row(const struct truth *truth, uint64_t key)
{
	const struct offender *row = row_of(&truth->table, key);
	uint64_t least_sure = truth->table.noted / OFFENDERS_ROWS;

	if (!row) {
		assert_true(truth->counts[key] <= least_sure); /* OFFENDERS-2 */
		return;
	}
	assert_true(truth->counts[key] <= row->count); /* OFFENDERS-1 */
	assert_true(truth->counts[key] >= row->count - row->over);
	assert_true(row->over <= least_sure);
	assert_int_equal(row->key_len, sizeof(key));
	assert_memory_equal(row->key, &key, sizeof(key));
}

/* Few keys have most of it in one stream, and all have as much in another. */
static uint64_t draw_key(unsigned stream)
{
	uint64_t most = stream % 4 == 0 ? KEYS : 1 + draw(1 + draw(KEYS));

	return draw(most);
}

static void no_key_that_is_refused_often_is_missed(void **state)
{
	(void)state;
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		struct truth truth = { 0 };

		lot = stream;
		for (unsigned i = 0; i < NOTES; i++) {
			note(&truth, draw_key(stream), draw(8) ? 1 : OFFENDERS_LOT);
			assert_true(offenders_valid(&truth.table));
			if (i % 100 == 0)
				for (uint64_t key = 0; key < KEYS; key++)
					expect_row(&truth, key);
		}
		for (uint64_t key = 0; key < KEYS; key++)
			expect_row(&truth, key);
	}
}

static void has_each_key_once(const struct offenders *table)
{
	for (size_t i = 0; i < OFFENDERS_ROWS; i++)
		if (table->rows[i].count > 0)
			assert_ptr_equal(row_of(table, table->rows[i].hash - 1),
			                 &table->rows[i]);
}

/* OFFENDERS-4: of the same notes in several tables, of which some are short and some empty. */
static void what_was_noted_in_several_tables_adds_up(void **state)
{
	(void)state;
	for (unsigned stream = 0; stream < 4 * STREAMS; stream++) {
		struct truth sum = { 0 };
		unsigned parts = 2 + stream % 5, notes = stream % 3 ? NOTES : 50;

		lot = stream;
		for (unsigned part = 0; part < parts; part++) {
			struct truth of_one = { 0 };

			for (unsigned i = 0; part != 1 && i < notes; i++)
				note(&of_one, (draw_key(stream) + part) % KEYS, 1);
			offenders_add(&sum.table, &of_one.table);
			for (uint64_t key = 0; key < KEYS; key++)
				sum.counts[key] += of_one.counts[key];
			has_each_key_once(&sum.table);
			for (uint64_t key = 0; key < KEYS; key++)
				expect_row(&sum, key);
		}
	}
}

static void as_many_keys_as_rows_are_counted_exactly(void **state)
{
	struct truth truth = { 0 };

	(void)state;
	for (unsigned i = 0; i < NOTES; i++)
		note(&truth, i * i % OFFENDERS_ROWS, 1 + i % 3);
	for (uint64_t key = 0; key < OFFENDERS_ROWS; key++) {
		const struct offender *row = row_of(&truth.table, key);

		assert_int_equal(row ? row->count : 0, truth.counts[key]);
		assert_int_equal(row ? row->over : 0, 0);
	}
}

static void the_largest_count_is_the_first(void **state)
{
	struct truth truth = { 0 };

	(void)state;
	lot = 1;
	for (unsigned i = 0; i < NOTES; i++)
		note(&truth, draw_key(1), 1);
	offenders_rank(&truth.table);
	assert_true(offenders_valid(&truth.table));
	for (size_t i = 1; i < OFFENDERS_ROWS; i++)
		assert_true(truth.table.rows[i - 1].count >= truth.table.rows[i].count);
	for (uint64_t key = 0; key < KEYS; key++)
		expect_row(&truth, key);
}

static void a_long_key_is_cut_and_is_a_key_of_its_own(void **state)
{
	struct offenders table = { 0 };
	char key[256];

	(void)state;
	memset(key, 'k', sizeof(key));
	offenders_note(&table, 1, key, 256, 2);
	offenders_note(&table, 2, key, 255, 1);
	assert_int_equal(table.rows[0].key_len, 256);
	assert_int_equal(table.rows[1].key_len, 255);
	assert_int_equal(table.rows[0].count, 2);
	assert_memory_equal(table.rows[0].key, key, OFFENDERS_KEY);
}

/* OFFENDERS-3: of each k-th refusal, from whichever on, the same part is noted.  So two keys
 * that are refused in turn, or a hundred, have rows alike. */
static void who_asks_in_turn_hides_nothing(void **state)
{
	(void)state;
	for (uint64_t k = 1; k <= 100; k++)
		for (uint64_t first = 0; first < k; first++) {
			const uint64_t refusals = 64 * OFFENDERS_LOT;
			uint64_t noted = 0;

			for (uint64_t i = 0; i < refusals; i++)
				noted +=
				    offenders_weight(OFFENDERS_EACH + first + i * k);
			assert_in_range(noted, refusals / 2, refusals * 2);
		}
}

static void the_first_are_noted_one_by_one(void **state)
{
	uint64_t noted = 0, most = 0;

	(void)state;
	for (uint64_t others = 0; others < OFFENDERS_EACH; others++)
		assert_int_equal(offenders_weight(others), 1);
	for (uint64_t others = 0; others < 1000000; others++) {
		noted += offenders_weight(others);
		if (noted > others && noted - others > most)
			most = noted - others;
	}
	assert_in_range(noted, 1000000 - 200, 1000000 + 200);
	assert_in_range(most, 1,
	                200); /* at no time is much more noted than there was */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_key_that_is_refused_often_is_missed),
		cmocka_unit_test(what_was_noted_in_several_tables_adds_up),
		cmocka_unit_test(as_many_keys_as_rows_are_counted_exactly),
		cmocka_unit_test(the_largest_count_is_the_first),
		cmocka_unit_test(a_long_key_is_cut_and_is_a_key_of_its_own),
		cmocka_unit_test(who_asks_in_turn_hides_nothing),
		cmocka_unit_test(the_first_are_noted_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
