/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* keys.c -- a crowd of keys, drawn. */
#include "bench/keys.h"

#include "sim/random.h"

#define COUNT_MOST UINT16_MAX
#define ONE (UINT64_C(1) << 40) /* what the first one weighs */

static uint64_t below[COUNT_MOST + 1]; /* what all before it weigh */

static void weigh(uint64_t count)
{
	bench_expect(count <= COUNT_MOST, "as many keys in a crowd");
	for (uint64_t id = 0; id < count; id++)
		below[id + 1] = below[id] + ONE / (id + 1);
}

/* Whose part of the whole it is. */
static uint16_t whose(uint64_t weight, uint64_t count)
{
	uint64_t first = 0, end = count;

	while (end - first > 1) {
		uint64_t middle = first + (end - first) / 2;

		if (below[middle] <= weight)
			first = middle;
		else
			end = middle;
	}
	return (uint16_t)first;
}

const uint16_t *keys_drawn(uint64_t count)
{
	static uint16_t drawn[KEYS_DRAWN];
	struct chance chance = { 1 };

	weigh(count);
	for (unsigned i = 0; i < KEYS_DRAWN; i++)
		drawn[i] = whose(chance_below(&chance, below[count]), count);
	return drawn;
}
