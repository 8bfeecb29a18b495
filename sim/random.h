/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * random.h -- chance that can be replayed: everything follows from a seed.
 *
 * The generator is splitmix64 (Steele, Lea and Flood).
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};

static inline uint64_t chance_next(struct chance *c)
{
	uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 … count - 1.  The bias is below count / 2^64: no test can see it. */
static inline uint64_t chance_below(struct chance *c, uint64_t count)
{
	__extension__ typedef unsigned __int128 product;

	return (uint64_t)(((product)chance_next(c) * count) >> 64);
}

/* first … last, both included. */
static inline uint64_t chance_between(struct chance *c, uint64_t first, uint64_t last)
{
	return first + chance_below(c, last - first + 1);
}

static inline bool chance_one_in(struct chance *c, uint64_t count)
{
	return chance_below(c, count) == 0;
}

/* 1 … max, every number of binary digits being as likely as any other. */
static inline uint64_t chance_log(struct chance *c, uint64_t max)
{
	uint64_t digits = 64 - (uint64_t)__builtin_clzll(max);
	uint64_t top = UINT64_C(1) << chance_below(c, digits);

	return chance_between(c, top, top - 1 < max - top ? top + (top - 1) : max);
}

/* 1 … max: often the ends, round or small, sometimes anything. */
static inline uint64_t chance_size(struct chance *c, uint64_t max)
{
	uint64_t size;

	switch (chance_below(c, 8)) {
	case 0:
		size = 1;
		break;
	case 1:
	case 2:
		size = chance_between(c, 2, 12);
		break;
	case 3:
		size = chance_between(c, 1, 1000);
		break;
	case 4:
		size = max - chance_below(c, 3);
		break;
	case 5: /* a power of two, or next to one */
		size = (UINT64_C(1) << chance_below(c, 54)) + chance_below(c, 3) - 1;
		break;
	default:
		return chance_log(c, max);
	}
	return size >= 1 && size <= max ? size : chance_between(c, 1, max);
}

#endif
