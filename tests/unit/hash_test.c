/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hash_test.c -- short keys lie as if by lot, whatever they look like: in their homes, in the
 * shards, and by what a slot has of a hash.
 *
 * Keys as programs have them, most of which count, each under many secrets.  What is as good as
 * by lot is what numbers that are drawn by lot make of it, with room for the worst of many.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "shards/hash.h"
#include "shards/table.h"
#include "sim/random.h"

#define KEYS 10000
#define SECRETS 300
#define SLOTS_LOG 14 /* what a table of so many keys has */
#define HOMES ((1 << SLOTS_LOG) / TABLE_NEAR)
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

/* Of all keys. */
struct lie {
	double far; /* part that has no place at home */
	double
	    alike; /* part that meets its home's earlier ones by what slots have of it */
	double
	    uneven; /* between shards: chi squared, over its degrees of freedom ... */
	double uneven3; /* ... and between three */
};

/* In a table of so many slots, wherever they are. */
static uint64_t home_of(uint64_t hash)
{
	return root_home(HOME_BITS - SLOTS_LOG, hash) / TABLE_NEAR;
}

static double uneven_between(const uint64_t *hashes, uint32_t shards)
{
	unsigned count[SHARDS_MOST] = { 0 };
	double fair = (double)KEYS / shards, sum = 0;

	for (int i = 0; i < KEYS; i++)
		count[(hashes[i] >> 32) * shards >> 32]++;
	for (uint32_t i = 0; i < shards; i++)
		sum += (count[i] - fair) * (count[i] - fair) / fair;
	return sum / (shards - 1);
}

static struct lie lie_of(const uint64_t *hashes)
{
	static uint8_t at_home[HOMES], like[HOMES][1 << TAG_BITS];
	unsigned far = 0, alike = 0;

	memset(at_home, 0, sizeof(at_home));
	memset(like, 0, sizeof(like));
	for (int i = 0; i < KEYS; i++) {
		uint64_t home = home_of(hashes[i]);

		if (at_home[home] < UINT8_MAX && ++at_home[home] > TABLE_NEAR)
			far++;
		if (like[home][tag_of(hashes[i])])
			alike++;
		like[home][tag_of(hashes[i])] = 1;
	}
	return (struct lie){ (double)far / KEYS, (double)alike / KEYS,
		             uneven_between(hashes, SHARDS_MOST),
		             uneven_between(hashes, 3) };
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void note_worst(struct lie *worst, struct lie it)
{
	worst->far = larger(worst->far, it.far);
	worst->alike = larger(worst->alike, it.alike);
	worst->uneven = larger(worst->uneven, it.uneven);
	worst->uneven3 = larger(worst->uneven3, it.uneven3);
}

static struct lie worst_by_lot(void)
{
	static uint64_t hashes[KEYS];
	struct chance chance = { 1 };
	struct lie worst = { 0 };

	for (int i = 0; i < SECRETS; i++) {
		for (int j = 0; j < KEYS; j++)
			hashes[j] = chance_next(&chance);
		note_worst(&worst, lie_of(hashes));
	}
	return worst;
}

static struct lie worst_of(const struct key *keys)
{
	static uint64_t hashes[KEYS];
	struct chance chance = { 2 };
	struct lie worst = { 0 };

	for (int i = 0; i < SECRETS; i++) {
		uint64_t first = chance_next(&chance);
		struct hash_secret secret = { first, chance_next(&chance) };

		for (int j = 0; j < KEYS; j++)
			hashes[j] = hash_short(&secret, keys[j].bytes, keys[j].len);
		note_worst(&worst, lie_of(hashes));
	}
	return worst;
}

static void short_keys_lie_as_if_by_lot(void **state)
{
	static struct key keys[KEYS];
	struct lie lot = worst_by_lot();

	(void)state;
	for (size_t i = 0; i < LOOKS; i++) {
		struct lie worst;

		for (uint64_t j = 0; j < KEYS; j++) {
			keys[j] = looks[i](j);
			assert_true(hash_is_short(keys[j].len));
		}
		worst = worst_of(keys);
		if (worst.far > 1.25 * lot.far || worst.alike > 1.25 * lot.alike ||
		    worst.uneven > 1.5 * lot.uneven || worst.uneven3 > 2 * lot.uneven3)
			fail_msg(
			    "look %zu: far %.3f of %.3f, alike %.4f of %.4f, uneven "
			    "%.2f of %.2f, between three %.1f of %.1f",
			    i, worst.far, lot.far, worst.alike, lot.alike, worst.uneven,
			    lot.uneven, worst.uneven3, lot.uneven3);
	}
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
		cmocka_unit_test(short_keys_lie_as_if_by_lot),
		cmocka_unit_test(all_of_it_counts),
		cmocka_unit_test(nothing_else_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
