/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * weather.h -- nodes on a real server that are asked all the time, whatever befalls them.
 *
 * Each node has a strict, a cached-deny and a leased limiter of one rule, and each limiter
 * some askers: threads with a seat, which ask for the keys in turn.  Each admission lies
 * between two readings of the clock, and is counted in the window of the store that this
 * allows (tools/tally.h).
 *
 *     weather_let_ask .. the test does its worst, weather_recovers .. weather_end
 *
 * At the end no window of a key may have had more than the limit, every ask must have been
 * answered once, and nothing may be left behind.  How long that took is in the struct.
 *
 * Threads   One, the test's; it may look at what is atomic meanwhile.
 */
#ifndef TESTS_SUPPORT_WEATHER_H
#define TESTS_SUPPORT_WEATHER_H

#include <pthread.h>

#include <gale/gale.h>

#include "sim/allocator.h"
#include "tests/support/canary.h"
#include "tests/support/length.h"
#include "tests/support/whys.h"
#include "tools/tally.h"

#define WEATHER_NODES 2
#define WEATHER_KEYS_MOST 12
#define WEATHER_ASKERS_MOST 18

/* Askers who sleep 0.5 ms leave a processor no time for another test. */
#define WEATHER_NAP_US LONG_OR_BRIEF(500, 15000)

enum how {
	STRICT,
	CACHED_DENY,
	LEASED,
	HOW_COUNT,
};

extern const char *const how_names[HOW_COUNT]; /* and the limiters' */
extern const enum gale_mode how_modes[HOW_COUNT];

struct weather_plan {
	const char *urls[WEATHER_NODES];
	uint64_t quarantine_us; /* of the stores; 0: the default */
	uint32_t shards;
	uint64_t window_us;
	uint64_t limit; /* of a window */
	uint32_t keys;
	uint32_t askers;      /* of each limiter of a node */
	uint32_t pollers;     /* so many of them fetch their answers, and do not wait */
	uint64_t within_us;   /* of those who wait */
	uint64_t patience_us; /* of the limiters; 0: the default */
	uint64_t nap_us;      /* after a denial of the last key */
};

struct weather_node {
	struct test_allocator allocator;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[HOW_COUNT];
};

struct weather;

/* One thread with a seat of its own. */
struct asker {
	struct weather *weather;
	pthread_t thread;
	struct gale_runtime *runtime;
	struct gale_limiter *limiter;
	struct tally *tally;
	uint32_t number; /* in its tally */
	enum how how;
	bool polls;
	_Atomic uint64_t asks;
	_Atomic uint64_t answers;
	_Atomic uint64_t longest_us;
	_Atomic uint64_t admitted_us[WEATHER_KEYS_MOST]; /* the latest */
	_Atomic uint64_t whys[WHYS];
};

struct weather {
	struct weather_plan plan;
	struct weather_node nodes[WEATHER_NODES];
	struct tally tallies[HOW_COUNT];
	uint32_t asker_count;
	struct asker askers[WEATHER_ASKERS_MOST];
	struct canaries canaries;
	_Atomic bool stopping;

	/* True after weather_end. */
	uint64_t late_us;             /* of the machine itself, at most */
	uint64_t longest_us;          /* that anybody waited */
	uint64_t closing_us;          /* of all nodes */
	double undershoot[HOW_COUNT]; /* of whole windows, in limits */
};

void weather_let_ask(struct weather *weather, const struct weather_plan *plan);
void weather_end(struct weather *weather);

/* Waits until all keys of all limiters were admitted again; false if they are not within
 * so long. */
bool weather_recovers(struct weather *weather, uint64_t within_us);

/* After weather_end: nobody waited for longer than that, but for what the machine is late:
 * who asks sleeps for its shard, and that for the server. */
void weather_was_in_time(const struct weather *weather, uint64_t within_us);

#endif
