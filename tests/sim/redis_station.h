/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_station.h -- a station whose jobs a real Redis does, by the scripts that are shipped.
 *
 *     job --redis_put_call--> EVALSHA step.lua --redis_read_reply--> told
 *
 * Its clock is set to the station's before anything is said to it, and stands still
 * until then (fake_time.h): so what it says follows from the world's seed.  A replica is
 * its next database; when that takes over, greet.lua makes it another generation.
 *
 * Threads   One.
 */
#ifndef TESTS_SIM_REDIS_STATION_H
#define TESTS_SIM_REDIS_STATION_H

#include "sim/station.h"
#include "tests/support/fake_time.h"
#include "tests/support/redis_server.h"

struct redis_station {
	struct station station; /* first */
	struct fake_time time;
	struct redis_server server;
	struct redis_talk talk;
	uint64_t now_us; /* that the server's clock was set to */
	uint64_t nonce;
	uint64_t jobs; /* that it did, in all worlds */
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
};

/* Before a world is open; it serves one after the other. */
void redis_station_start(struct redis_station *station);
void redis_station_stop(struct redis_station *station);

#endif
