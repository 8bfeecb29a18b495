/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys.h -- which keys a row asks for: 16 bytes each, in an order that cannot be foreseen.
 *
 * Either each is as likely as the others, or they are as in a crowd (Zipf): the n-th is asked
 * for once for each n times that the first is.
 */
#ifndef BENCH_KEYS_H
#define BENCH_KEYS_H

#include <stdint.h>

#include "bench/bench.h"

struct key {
	uint64_t bytes[2];
};

static inline struct key key_of(uint64_t id)
{
	return (struct key){ { id * UINT64_C(0x9e3779b97f4a7c15), ~id } };
}

/* Picks ids below count. */
struct picker {
	uint64_t state;
	uint64_t count;
	const uint16_t *drawn; /* KEYS_DRAWN of them; for pick_in_crowd */
};

typedef uint64_t pick_fn(struct picker *picker);

static inline struct picker picker_of(const struct bench *b, uint64_t count)
{
	return (struct picker){ .state = 1 + (uint64_t)bench_thread(b),
		                .count = count };
}

/* Each is as likely as the others. */
static inline uint64_t pick(struct picker *picker)
{
	picker->state = picker->state * UINT64_C(6364136223846793005) + 1;
	return ((picker->state >> 32) * picker->count) >> 32;
}

#define KEYS_DRAWN 65536

/* Drawn below count beforehand, as to draw one takes longer than to ask; the same each time.
 * For rows of one thread. */
const uint16_t *keys_drawn(uint64_t count);

static inline struct picker picker_in_crowd(uint64_t count)
{
	return (struct picker){ .count = count, .drawn = keys_drawn(count) };
}

static inline uint64_t pick_in_crowd(struct picker *picker)
{
	return picker->drawn[picker->state++ % KEYS_DRAWN];
}

/* How many keys "1,000,000 keys" are in this run. */
static inline uint64_t keys_in(uint64_t count)
{
	return bench_is_smoke() && count > 1000 ? 1000 : count;
}

#endif
