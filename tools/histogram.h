/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * histogram.h -- how often each duration was seen, to within 3 %.
 *
 * Each power of two is cut into 32 equal buckets; what is below 64 is exact.
 *
 * Threads   histogram_add, _put ... one thread; the histogram is its own
 *           the others ........... any thread, also while that one adds: they see some
 *                                  recent state
 * Limits    Values from HISTOGRAM_MOST on are counted as HISTOGRAM_MOST.
 */
#ifndef TOOLS_HISTOGRAM_H
#define TOOLS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_PARTS 32 /* of a power of two */
#define HISTOGRAM_BITS 40  /* about 18 minutes, in nanoseconds */
#define HISTOGRAM_BUCKETS ((HISTOGRAM_BITS - 4) * HISTOGRAM_PARTS)
#define HISTOGRAM_MOST ((UINT64_C(1) << HISTOGRAM_BITS) - 1)

struct histogram {
	_Atomic uint64_t counts[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);

/* How often a value of this bucket was seen. */
uint64_t histogram_get(const struct histogram *histogram, unsigned bucket);
void histogram_put(struct histogram *histogram, unsigned bucket, uint64_t count);

/* Adds what from has seen to into, which is the caller's own. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The value that so many of a thousand do not exceed, as the middle of its bucket;
 * 0 when nothing was seen.
 */
uint64_t histogram_quantile(const struct histogram *histogram, uint64_t permille);

#endif
