/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * beats.h -- beats, and what a server says of them, out of a fuzzer's bytes.
 *
 * Threads   Pure.
 */
#ifndef TESTS_FUZZ_BEATS_H
#define TESTS_FUZZ_BEATS_H

#include <string.h>

#include "engine/check.h"
#include "stores/store.h"
#include "tests/fuzz/bytes.h"

static inline struct store_beat fuzzed_beat(struct bytes *bytes)
{
	uint64_t held = take_number(bytes, 1);

	return (struct store_beat){
		.node = (const uint8_t *)"node",
		.node_len = 1 + (uint32_t)take_number(bytes, 1) % 4,
		.settings = { .law = take_number(bytes, 1) % (GROUP_MIN + 1),
		              .start = 1,
		              .floor = 1,
		              .ceiling = 1 + held,
		              .lease_us = 1000000,
		              .rotate_us = 1000000 },
		.report = { .incarnation = 1 + take_number(bytes, 1),
		            .seq = 1 + take_number(bytes, 1),
		            .held = held,
		            .in_flight = held,
		            .weight = 1 },
	};
}

/* Of a grant: small numbers, mostly, so that it may be one. */
static inline void fuzzed_words(struct bytes *bytes, uint64_t words[GROUP_GRANT_WORDS])
{
	for (int i = 0; i < GROUP_GRANT_WORDS; i++) {
		uint64_t kind = take_number(bytes, 1);

		words[i] = kind < 240 ? kind % 8 : take_number(bytes, 8);
	}
}

/* What comes to a node is a grant that can be. */
static inline void fuzzed_grant(const struct group_grant *grant)
{
	uint64_t words[GROUP_GRANT_WORDS];

	memcpy(words, grant, sizeof(words));
	gale_assert(grant->result < GROUP_WRONG && grant->share <= GROUP_SLOTS_MAX &&
	            grant->members <= GROUP_MEMBERS_MAX);
	for (int i = 0; i < GROUP_GRANT_WORDS; i++)
		gale_assert(words[i] < UINT64_C(1) << 53);
}

#endif
