/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hash_test.c -- short keys of these looks lie as numbers do that are drawn by lot: in their
 * homes, over shards and in each, and by what a slot has of a hash.
 *
 * Keys as programs have them, most of them counters, each under many secrets: on average, and
 * under the worst of those.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "face/face.h"
#include "shards/hash.h"
#include "shards/table.h"
#include "sim/random.h"

#define SOME 10000
#define MANY 200000
#define SHARDS_MOST 64

struct key {
	uint8_t bytes[HASH_MOST];
	uint8_t len;
};

/* ---- What keys look like --------------------------------------------------------- */

static struct key of_words(uint64_t first, uint64_t last)
{
	struct key key = { .len = 16 };

	memcpy(key.bytes, &first, 8);
	memcpy(key.bytes + 8, &last, 8);
	return key;
}

static struct key of_text(const char *text)
{
	struct key key = { .len = (uint8_t)strlen(text) };

	memcpy(key.bytes, text, key.len);
	return key;
}

static struct key counted_first(uint64_t i)
{
	return of_words(i, 0);
}

static struct key counted_last(uint64_t i)
{
	return of_words(0, i);
}

static struct key counted_first_upwards(uint64_t i)
{
	return of_words(__builtin_bswap64(i), 0);
}

static struct key counted_last_upwards(uint64_t i)
{
	return of_words(0, __builtin_bswap64(i));
}

static struct key counted_in_both(uint64_t i)
{
	return of_words(i % 100, i / 100);
}

static struct key address_twice(uint64_t i)
{
	return of_words(UINT64_C(0x7f0000000000) + i * 64,
	                UINT64_C(0x7f0000000000) + i * 64);
}

static struct key page(uint64_t i)
{
	return of_words(0, i * 4096);
}

static struct key far_up(uint64_t i)
{
	return of_words(0, i << 40);
}

static struct key eight_bytes(uint64_t i)
{
	struct key key = of_words(i, 0);

	key.len = 8;
	return key;
}

static struct key nine_digits(uint64_t i)
{
	char text[32];

	snprintf(text, sizeof(text), "%09" PRIu64, i);
	return of_text(text);
}

static struct key user(uint64_t i)
{
	char text[32];

	snprintf(text, sizeof(text), "user:%08" PRIu64, i);
	return of_text(text);
}

static struct key hexadecimal(uint64_t i)
{
	char text[32];

	snprintf(text, sizeof(text), "%016" PRIx64, i * 257);
	return of_text(text);
}

static struct key address(uint64_t i)
{
	char text[48];

	snprintf(text, sizeof(text), "10.%" PRIu64 ".%" PRIu64 ".%" PRIu64,
	         100 + i / 10000, 100 + i / 100 % 100, 100 + i % 100);
	return of_text(text);
}

/* Of other lengths, too. */
static struct key path(uint64_t i)
{
	char text[48];

	snprintf(text, sizeof(text), "tenant/%" PRIu64 "/%" PRIu64, i / 90,
	         10 + i % 90);
	return of_text(text);
}

typedef struct key key_fn(uint64_t i);

static key_fn *const looks[] = {
	counted_first,
	counted_last,
	counted_first_upwards,
	counted_last_upwards,
	counted_in_both,
	address_twice,
	page,
	far_up,
	eight_bytes,
	nine_digits,
	user,
	hexadecimal,
	address,
	path,
};

#define LOOKS (sizeof(looks) / sizeof(looks[0]))

/* ---- How they lie ---------------------------------------------------------------- */

enum measure {
	FAR,         /* part that has no place at home */
	FAR_OF_4,    /* the same in tables of four shards, each by itself ... */
	FAR_OF_64,   /* ... and of 64 */
	ALIKE,       /* part that meets others at home by what slots have of it */
	UNEVEN_OF_3, /* between shards: chi squared, over its degrees of freedom */
	UNEVEN_OF_64,
	MEASURES,
};

/* Over the secrets; and how much worse than by lot it may be. */
struct lie {
	double mean[MEASURES], worst[MEASURES];
};

static const struct {
	const char *name;
	double mean, worst;
} may_be[MEASURES] = {
	[FAR] = { "far", 1.03, 1.25 },
	[FAR_OF_4] = { "far, of 4 shards", 1.03, 1.25 },
	[FAR_OF_64] = { "far, of 64 shards", 1.03, 1.5 },
	[ALIKE] = { "alike", 1.03, 1.25 },
	[UNEVEN_OF_3] = { "uneven between 3 shards", 1.5, 2 },
	[UNEVEN_OF_64] = { "uneven between 64 shards", 1.1, 1.5 },
};

/* How many slots there are for so many keys, as a power of two: fewer than shards have, so that
 * there is more to see. */
static unsigned slots_log(size_t keys)
{
	unsigned log = 6;

	while (((size_t)3 << log) / 4 < keys)
		log++;
	return log;
}

/* In a table with so many slots, wherever they are. */
static uint64_t home_of(uint64_t hash, unsigned log)
{
	return root_home(HOME_BITS - log, hash) / TABLE_NEAR;
}

static double far(const uint64_t *hashes, size_t count, uint32_t shards)
{
	static uint8_t at_home[1 << 19];
	unsigned log = slots_log(count / shards);
	size_t homes = ((size_t)1 << log) / TABLE_NEAR, others = 0;

	memset(at_home, 0, shards * homes);
	for (size_t i = 0; i < count; i++) {
		uint64_t home =
		    shard_number(hashes[i], shards) * homes + home_of(hashes[i], log);

		if (at_home[home] == TABLE_NEAR)
			others++;
		else
			at_home[home]++;
	}
	return (double)others / (double)count;
}

static double alike(const uint64_t *hashes, size_t count)
{
	static uint64_t seen[1 << 17][(1 << TAG_BITS) / 64];
	unsigned log = slots_log(count);
	size_t others = 0;

	memset(seen, 0, sizeof(seen[0]) * ((size_t)1 << log) / TABLE_NEAR);
	for (size_t i = 0; i < count; i++) {
		uint8_t tag = tag_of(hashes[i]);
		uint64_t *word = &seen[home_of(hashes[i], log)][tag / 64];
		uint64_t bit = UINT64_C(1) << tag % 64;

		others += (*word & bit) != 0;
		*word |= bit;
	}
	return (double)others / (double)count;
}

static double uneven(const uint64_t *hashes, size_t count, uint32_t shards)
{
	unsigned of_shard[SHARDS_MOST] = { 0 };
	double fair = (double)count / shards, sum = 0;

	for (size_t i = 0; i < count; i++)
		of_shard[shard_number(hashes[i], shards)]++;
	for (uint32_t i = 0; i < shards; i++)
		sum += (of_shard[i] - fair) * (of_shard[i] - fair) / fair;
	return sum / (shards - 1);
}

static void note(struct lie *lie, const uint64_t *hashes, size_t count,
                 unsigned secrets)
{
	double it[MEASURES] = {
		[FAR] = far(hashes, count, 1),
		[FAR_OF_4] = far(hashes, count, 4),
		[FAR_OF_64] = far(hashes, count, 64),
		[ALIKE] = alike(hashes, count),
		[UNEVEN_OF_3] = uneven(hashes, count, 3),
		[UNEVEN_OF_64] = uneven(hashes, count, SHARDS_MOST),
	};

	for (int i = 0; i < MEASURES; i++) {
		lie->mean[i] += it[i] / secrets;
		lie->worst[i] = it[i] > lie->worst[i] ? it[i] : lie->worst[i];
	}
}

static uint64_t hashes[MANY];

static struct lie lie_by_lot(size_t count, unsigned times)
{
	struct chance chance = { 1 };
	struct lie lie = { 0 };

	for (unsigned i = 0; i < times; i++) {
		for (size_t j = 0; j < count; j++)
			hashes[j] = chance_next(&chance);
		note(&lie, hashes, count, times);
	}
	return lie;
}

static struct lie lie_of(const struct key *keys, size_t count, unsigned secrets)
{
	struct chance chance = { 2 };
	struct lie lie = { 0 };

	for (unsigned i = 0; i < secrets; i++) {
		uint64_t first = chance_next(&chance);
		struct hash_secret secret = { first, chance_next(&chance) };

		for (size_t j = 0; j < count; j++)
			hashes[j] = hash_short(&secret, keys[j].bytes, keys[j].len);
		note(&lie, hashes, count, secrets);
	}
	return lie;
}

static void expect_as_by_lot(const struct lie *lie, const struct lie *lot, int measures,
                             size_t look)
{
	for (int i = 0; i < measures; i++)
		if (lie->mean[i] > may_be[i].mean * lot->mean[i] ||
		    lie->worst[i] > may_be[i].worst * lot->worst[i])
			fail_msg(
			    "look %zu, %s: %.4f, at worst %.4f; by lot %.4f and %.4f",
			    look, may_be[i].name, lie->mean[i], lie->worst[i],
			    lot->mean[i], lot->worst[i]);
}

static void expect_looks_as_by_lot(size_t count, unsigned secrets, int measures)
{
	static struct key keys[MANY];
	struct lie lot = lie_by_lot(count, secrets);

	for (size_t i = 0; i < LOOKS; i++) {
		struct lie lie;

		for (size_t j = 0; j < count; j++) {
			keys[j] = looks[i](j);
			assert_true(hash_is_short(keys[j].len));
		}
		lie = lie_of(keys, count, secrets);
		expect_as_by_lot(&lie, &lot, measures, i);
	}
}

static void short_keys_lie_as_by_lot(void **state)
{
	(void)state;
	expect_looks_as_by_lot(SOME, 200, MEASURES);
}

static void many_do_so_too(void **state)
{
	(void)state;
	expect_looks_as_by_lot(MANY, 4, /* measures= */ UNEVEN_OF_3);
}

/* ---- What it is of --------------------------------------------------------------- */

static uint64_t hash_of_key(struct hash_secret secret, struct key key)
{
	return hash_short(&secret, key.bytes, key.len);
}

/* Of each byte, of the length, and of both words of the secret. */
static void all_of_it_counts(void **state)
{
	struct hash_secret secret = { 12345, 67890 };

	(void)state;
	for (uint8_t len = HASH_LEAST; len <= HASH_MOST; len++) {
		struct key key = { .len = len };
		uint64_t hash = hash_of_key(secret, key);

		for (uint8_t i = 0; i < len; i++) {
			struct key other = key;

			other.bytes[i] = 1;
			assert_int_not_equal(hash_of_key(secret, other), hash);
		}
		if (len < HASH_MOST)
			assert_int_not_equal(
			    hash_of_key(secret, (struct key){ .len = len + 1 }), hash);
		assert_int_not_equal(
		    hash_of_key((struct hash_secret){ 12346, 67890 }, key), hash);
		assert_int_not_equal(
		    hash_of_key((struct hash_secret){ 12345, 67891 }, key), hash);
	}
}

/* It reads no byte that is not the key's. */
static void nothing_else_counts(void **state)
{
	struct hash_secret secret = { 12345, 67890 };
	struct key key = of_text("twelve bytes");
	uint64_t hash = hash_of_key(secret, key);

	(void)state;
	memset(key.bytes + key.len, 0xff, sizeof(key.bytes) - key.len);
	assert_int_equal(hash_of_key(secret, key), hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_keys_lie_as_by_lot),
		cmocka_unit_test(many_do_so_too),
		cmocka_unit_test(all_of_it_counts),
		cmocka_unit_test(nothing_else_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
