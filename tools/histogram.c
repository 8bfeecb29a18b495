/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * histogram.c -- counts in log-linear buckets.
 *
 * A value below 2 * PARTS is its own bucket.  A larger one is shifted right until it
 * is, and each shift moves it PARTS buckets up:
 *
 *	value   0 .. 63 | 64, 66 .. 126 | 128, 132 .. 252 | ...
 *	bucket  0 .. 63 | 64 ..      95 | 96 ..       127 | ...
 *
 * All accesses are relaxed: a count publishes nothing but itself.
 */
#include "tools/histogram.h"

#define EXACT (2 * HISTOGRAM_PARTS)

uint64_t histogram_get(const struct histogram *histogram, unsigned bucket)
{
	return atomic_load_explicit(&histogram->counts[bucket], memory_order_relaxed);
}

void histogram_put(struct histogram *histogram, unsigned bucket, uint64_t count)
{
	atomic_store_explicit(&histogram->counts[bucket], count, memory_order_relaxed);
}

/* One writer: no read-modify-write is needed. */
static void grow(struct histogram *histogram, unsigned bucket, uint64_t count)
{
	histogram_put(histogram, bucket, histogram_get(histogram, bucket) + count);
}

static unsigned bucket_of(uint64_t value)
{
	unsigned shift = 0;

	if (value > HISTOGRAM_MOST)
		value = HISTOGRAM_MOST;
	while (value >> shift >= EXACT)
		shift++;
	return shift * HISTOGRAM_PARTS + (unsigned)(value >> shift);
}

static uint64_t middle_of(unsigned bucket)
{
	unsigned shift = bucket < EXACT ? 0 : bucket / HISTOGRAM_PARTS - 1;
	uint64_t least = (uint64_t)(bucket - shift * HISTOGRAM_PARTS) << shift;

	return least + ((UINT64_C(1) << shift) - 1) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	grow(histogram, bucket_of(value), 1);
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		grow(into, i, histogram_get(from, i));
}

static uint64_t count_all(const struct histogram *histogram)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum += histogram_get(histogram, i);
	return sum;
}

uint64_t histogram_quantile(const struct histogram *histogram, uint64_t permille)
{
	uint64_t wanted = (count_all(histogram) * permille + 999) / 1000;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && wanted > 0; i++) {
		seen += histogram_get(histogram, i);
		if (seen >= wanted)
			return middle_of(i);
	}
	return 0;
}
