/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * growth_test.c -- how much an addition does because a table grows does not depend on how many keys
 * there are.
 *
 * The test counts the work that takes long, and does not time it: pages that are touched for the first time, blocks of
 * memory, and items that are carried to where they are at home among more slots, each of which takes
 * its hash.  A table that is cleared or carried as a whole touches thousands of pages at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "shards/lender.h"
#include "shards/purses.h"
#include "stores/keys.h"
#include "stores/memory.h"
#include "tests/support/fresh.h"
#include "tests/support/length.h"
#include "tests/support/must.h"

#define KEYS LONG_OR_BRIEF(10000000, 1000000)

struct work {
	uint64_t pages;
	uint64_t blocks;
	uint64_t hashes;
};

/* The most that one addition did. */
struct tally {
	struct fresh fresh;
	struct work before, most;
};

static uint64_t looked_up; /* hashes */

static void tally_open(struct tally *tally)
{
	memset(tally, 0, sizeof(*tally));
	looked_up = 0;
	fresh_open(&tally->fresh);
}

static struct work work_of(const struct tally *tally)
{
	return (struct work){ tally->fresh.touched, tally->fresh.blocks, looked_up };
}

static void tally_begin(struct tally *tally)
{
	tally->before = work_of(tally);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void tally_end(struct tally *tally)
{
	struct work now = work_of(tally), *most = &tally->most;

	most->pages = greater(most->pages, now.pages - tally->before.pages);
	most->blocks = greater(most->blocks, now.blocks - tally->before.blocks);
	most->hashes = greater(most->hashes, now.hashes - tally->before.hashes);
}

static void tally_close(struct tally *tally, const struct work *allowed)
{
	const struct work *most = &tally->most;

	printf("an addition at most: %lu pages, %lu blocks, %lu items carried\n",
	       (unsigned long)most->pages, (unsigned long)most->blocks,
	       (unsigned long)most->hashes);
	fresh_close(&tally->fresh);
	assert_in_range(most->pages, 1, allowed->pages);
	assert_in_range(most->blocks, 1, allowed->blocks);
	assert_in_range(most->hashes, 0, allowed->hashes);
}

static uint64_t mixed(uint64_t id)
{
	id = (id ^ id >> 31) * UINT64_C(0x9E3779B97F4A7C15);
	return (id ^ id >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

/* ---- A shard --------------------------------------------------------------------- */

static uint32_t counted_hash(const struct hashes *self, const void *item)
{
	(void)self;
	looked_up++;
	return ((const struct purse *)item)->hash;
}

static void evict(struct evictor *self, struct purse *purse)
{
	(void)self;
	(void)purse;
	must(false);
}

static void additions_to_a_shard(uint64_t keys, uint16_t key_len,
                                 const struct work *allowed)
{
	struct evictor evictor = { evict, evict };
	struct lender lender = { .lending = LENDING_UNITS };
	struct tally tally;
	struct purses set = { 0 };
	struct grace grace = { 0 };

	tally_open(&tally);
	grace_open(&grace);
	must(purses_open(&set, &tally.fresh.allocator, &grace, &evictor,
	                 (uint32_t)keys));
	set.own.hashes.of = counted_hash;
	for (uint64_t id = 0; id < keys; id++) {
		uint64_t key[PURSE_NEAR / sizeof(id)] = { id };
		struct purse_name name = { &lender, (const uint8_t *)key, key_len,
			                   mixed(id) };

		tally_begin(&tally);
		must(purses_add(&set, &name));
		purses_fade(&set);
		purses_turn(&set);
		tally_end(&tally);
	}
	purses_close(&set);
	grace_close(&grace);
	tally_close(&tally, allowed);
}

/* Of a new chunk: one each of what the actor knows, of purses, and of their rounds and dues.  Of slots:
 * the head of those that are new, and two of those that are cleared. */
static void an_addition_to_a_shard_does_a_part(void **state)
{
	static const struct work allowed = { 6, 2, TABLE_CARRIES };

	(void)state;
	additions_to_a_shard(KEYS, sizeof(uint64_t), &allowed);
}

/* Beside that, of the room for what is learned of long keys, a page of a block. */
static void so_does_that_of_a_long_key(void **state)
{
	static const struct work allowed = { 7, 3, TABLE_CARRIES };

	(void)state;
	additions_to_a_shard(KEYS / 8, PURSE_NEAR, &allowed);
}

/* ---- The embedded store ---------------------------------------------------------- */

/* Of a segment two pages; of the entry, of the heap, and of the half of the directory that is to come, one
 * each. */
static const struct work allowed_of_store = { 5, 4, 0 };

/* All in one stripe: the store has 64, and so many times the keys. */
static void an_addition_to_a_stripe_does_a_part(void **state)
{
	struct tally tally;
	struct keys keys = { 0 };

	(void)state;
	tally_open(&tally);
	for (uint64_t id = 0; id < KEYS; id++) {
		struct key_name name = { (const uint8_t *)&id, sizeof(id), mixed(id) };

		tally_begin(&tally);
		must(keys_add(&keys, &tally.fresh.allocator, &name, /* room= */ 2,
		              /* expires_us= */ id));
		tally_end(&tally);
	}
	keys_close(&keys, &tally.fresh.allocator);
	tally_close(&tally, &allowed_of_store);
}

static void an_answer_of_the_store_does_a_part(void **state)
{
	struct gale_rule config = gale_fixed_window(10, GALE_SPAN_MAX_US);
	struct tally tally;
	struct memory_config plan = { .name = "",
		                      .max_keys = KEYS,
		                      .allocator = &tally.fresh.allocator };
	struct store *store;
	struct rule rule;

	(void)state;
	tally_open(&tally);
	store = memory_open(&plan);
	must(store && rule_compile(&config, &rule) == GALE_ERR_OK);
	for (uint64_t id = 0; id < KEYS; id++) {
		struct store_op op = {
			.verb = STORE_STEP,
			.key = (const uint8_t *)&id,
			.key_len = sizeof(id),
			.rule = &rule,
			.cost = 1,
		};

		tally_begin(&tally);
		must(store_run(store, &op, /* patient= */ true) == STORE_DONE);
		tally_end(&tally);
	}
	store->ops->close(store);
	tally_close(&tally, &allowed_of_store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_addition_to_a_shard_does_a_part),
		cmocka_unit_test(so_does_that_of_a_long_key),
		cmocka_unit_test(an_addition_to_a_stripe_does_a_part),
		cmocka_unit_test(an_answer_of_the_store_does_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
