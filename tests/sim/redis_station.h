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

/* Before a world is open; it serves one after the other, and there is one of it.  A
 * program that cannot start the server ends. */
struct station *redis_station_start(void);
/* Returns how many jobs it did. */
uint64_t redis_station_stop(void);

#endif
