/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * crowd.h -- keys that are answered in this node, each with its lease or its denial.
 *
 * Leases are as large as they come, so that a million asks share a round trip.  Credit that
 * is not taken would go back after a while, and a row would then measure how it is fetched
 * again; limiters that lend carry over, so that it stays.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <gale/gale.h>

#include "bench/bench.h"

#define CROWD_MUCH (UINT64_C(1) << 50)
#define CROWD_LEASE 1000000
#define CROWD_PATIENCE GALE_SECONDS(10)

struct crowd {
	uint64_t count;
	uint64_t limit; /* of each; 1: all are denied from then on */
	enum gale_mode mode;

	/* Made by prepare. */
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
};

#define CROWD_LENT(keys)                                                               \
	{                                                                              \
		.count = keys, .limit = CROWD_MUCH, .mode = GALE_LEASED                \
	}
#define CROWD_SPENT(keys)                                                              \
	{                                                                              \
		.count = keys, .limit = 1, .mode = GALE_LEASED                         \
	}
#define CROWD_CACHED(keys)                                                             \
	{                                                                              \
		.count = keys, .limit = 1, .mode = GALE_CACHED_DENY                    \
	}

/* Without any keys yet. */
void crowd_open(struct crowd *crowd);
/* Each key has been asked for, and is answered in this node from now on.  Once. */
void crowd_prepare(struct crowd *crowd);

/* What an ask is answered, if it is answered in this node. */
enum gale_verdict crowd_usual(const struct crowd *crowd);

static inline void crowd_must(enum gale_err err)
{
	if (err != GALE_ERR_OK)
		bench_fail(gale_err_text(err));
}

/* Waits for something that is under way, and expects that it is allowed; returns how many are
 * answered. */
uint64_t crowd_hear(struct gale_seat *seat);

#endif
