/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * bytes.h -- keys as words: they are short, and words in line beat a call.
 *
 * Threads   Pure: any.
 */
#ifndef SHARDS_BYTES_H
#define SHARDS_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/hot.h"

static inline uint64_t eight_at(const uint8_t *bytes)
{
	uint64_t eight;

	memcpy(&eight, bytes, sizeof(eight));
	return eight;
}

static inline uint32_t four_at(const uint8_t *bytes)
{
	uint32_t four;

	memcpy(&four, bytes, sizeof(four));
	return four;
}

/* The last words may overlap. */
static ALWAYS_INLINE bool bytes_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t at = 0;

	if (len < 4) /* the first, the last, and the one between */
		return a[0] == b[0] && a[len - 1] == b[len - 1] &&
		       a[len / 2] == b[len / 2];
	if (len < 8)
		return four_at(a) == four_at(b) &&
		       four_at(a + len - 4) == four_at(b + len - 4);
	if (LIKELY(len <= 16))
		return LIKELY(eight_at(a) == eight_at(b)) &&
		       eight_at(a + len - 8) == eight_at(b + len - 8);
	for (; at + 8 < len; at += 8)
		if (!LIKELY(eight_at(a + at) == eight_at(b + at)))
			return false;
	return eight_at(a + len - 8) == eight_at(b + len - 8);
}

#endif
