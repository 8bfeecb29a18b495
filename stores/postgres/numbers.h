/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * numbers.h -- numbers as the server's protocol has them, and what both ways of it know.
 *
 * Threads   Pure: any.
 */
#ifndef STORES_POSTGRES_NUMBERS_H
#define STORES_POSTGRES_NUMBERS_H

#include <endian.h>
#include <string.h>

#include "stores/remote.h"

#define INT4 23
#define INT8 20
#define TEXT 25
#define BYTEA 17
#define BYTEA_ARRAY 1001
#define INT8_ARRAY 1016

#define ARRAY_HEAD 20 /* dimensions, nulls, type, count, first index */
#define NUMBER 12     /* of an int8[]: its length and itself */

static inline uint8_t *put4(uint8_t *at, size_t number)
{
	uint32_t big = htobe32((uint32_t)number);

	memcpy(at, &big, sizeof(big));
	return at + sizeof(big);
}

static inline uint8_t *put8(uint8_t *at, uint64_t number)
{
	uint64_t big = htobe64(number);

	memcpy(at, &big, sizeof(big));
	return at + sizeof(big);
}

static inline uint32_t get4(const uint8_t *at)
{
	uint32_t big;

	memcpy(&big, at, sizeof(big));
	return be32toh(big);
}

static inline uint64_t get8(const uint8_t *at)
{
	uint64_t big;

	memcpy(&big, at, sizeof(big));
	return be64toh(big);
}

static inline bool is_meter(const struct rule *rule)
{
	return rule->is.kind == GALE_RULE_GCRA ||
	       rule->is.kind == GALE_RULE_TOKEN_BUCKET;
}

/* Of a value that can be stepped there, as many words as such a rule has. */
static inline uint64_t head_of(const struct rule *rule)
{
	uint64_t words = is_meter(rule) ? 4 : 2;

	return words << 32 | (uint64_t)rule->is.kind << 8 | 2;
}

/* Is a verb's not_before_us sent? */
static inline bool has_patience(enum remote_verb verb)
{
	return verb == REMOTE_STEP || verb == REMOTE_LEND || verb == REMOTE_SWAP;
}

#endif
