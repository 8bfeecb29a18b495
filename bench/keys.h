/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * keys.h -- which keys a row asks for: 16 bytes each, in an order nobody can foresee.
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

/* Picks ids below count, each as likely as the others. */
struct picker {
	uint64_t state;
	uint64_t count;
};

static inline struct picker picker_of(const struct bench *b, uint64_t count)
{
	return (struct picker){ 1 + (uint64_t)bench_thread(b), count };
}

static inline uint64_t pick(struct picker *picker)
{
	picker->state = picker->state * UINT64_C(6364136223846793005) + 1;
	return ((picker->state >> 32) * picker->count) >> 32;
}

/* How many keys "1,000,000 keys" are in this run. */
static inline uint64_t keys_in(uint64_t count)
{
	return bench_is_smoke() && count > 1000 ? 1000 : count;
}

#endif
