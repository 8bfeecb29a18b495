/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * house.h -- a runtime, a store, a limiter and a seat, opened as one.
 *
 * The allocator counts, and time stands still unless the test moves it.
 */
#ifndef TESTS_SUPPORT_HOUSE_H
#define TESTS_SUPPORT_HOUSE_H

#include <gale/gale.h>

#include "sim/allocator.h"
#include "tests/support/clock.h"

/* An instant in 2023, a minute into its hour. */
#define HOUSE_NOW (GALE_HOURS(472222) + GALE_MINUTES(1))

/* What is left 0 is the library's default. */
struct house_plan {
	struct gale_rule rule;
	uint32_t shards;
	uint32_t pending_max;
	enum gale_on_outage on_outage;
	enum gale_mode mode;
	struct gale_leasing lease;
	uint64_t outage_share;
	uint32_t node_keys;
	const char *url;
	uint64_t max_keys;
	struct gale_log *log;
	bool turns;
	bool still; /* the node's clock, too, moves only when the test moves it */
};

struct house {
	struct test_allocator allocator;
	struct test_clock clock;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

void house_open(struct house *house, const struct house_plan *plan);

/* Closes what is not NULL; false if memory is missing then. */
bool house_close(struct house *house);

struct store;

/* Another store in the place of what is in the house's, while no shard sweeps that. */
void house_put_inside(struct house *house, struct store *inner);

/* gale_ask, and its completion if it comes to that: where the sweeper may just be at the
 * key, nobody knows.  The seat must have no other ask pending. */
struct gale_answer ask_settled(struct gale_seat *seat, struct gale_limiter *limiter,
                               const void *key, size_t key_len, uint64_t cost);

/* The same, and gale_wait, of a key that is a string, for one unit. */
struct gale_answer house_ask(struct house *house, const char *key);
struct gale_answer house_wait(struct house *house, const char *key);

/* Another limiter of the house, on its store. */
struct gale_limiter *house_limiter(struct house *house, const char *name,
                                   struct gale_rule rule);

/* What the store says of itself. */
struct gale_counts house_stats(struct house *house);

/* A counter of the runtime, by its name. */
uint64_t house_metric(struct house *house, const char *name);

/* How many asks of the seat have been sent to a shard and not been answered. */
uint64_t asks_of_seat(struct gale_seat *seat);

#endif
