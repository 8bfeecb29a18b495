/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hash.h -- the hash of a short key, of eight to sixteen bytes.
 *
 * A short key is two words, which may overlap.  A secret of its own is added to each, they are
 * multiplied, and the halves of the product are folded.  Of counters, what comes of that lies
 * as regularly as they do; one more multiplication, and its upper half over its lower one,
 * scatters it.  Any other key goes through XXH3, which does more than it has to for these
 * (spec/decisions/0021).
 *
 * No way is known to choose keys that meet without the secret.
 *
 * Threads   Pure: any.
 */
#ifndef SHARDS_HASH_H
#define SHARDS_HASH_H

#include "engine/slot.h"
#include "shards/bytes.h"

#define HASH_LEAST 8
#define HASH_MOST 16

struct hash_secret {
	uint64_t first, last;
};

static ALWAYS_INLINE bool hash_is_short(size_t key_len)
{
	return key_len >= HASH_LEAST && key_len <= HASH_MOST;
}

static ALWAYS_INLINE uint64_t hash_short(const struct hash_secret *secret,
                                         const void *key, size_t key_len)
{
	uint64_t first = eight_at(key) + secret->first;
	uint64_t last = eight_at((const uint8_t *)key + key_len - 8) + secret->last;
	uint128 product = (uint128)first * last;
	uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);

	hash = (hash + key_len) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 32;
}

#endif
