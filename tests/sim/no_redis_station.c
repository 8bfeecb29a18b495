/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* no_redis_station.c -- of a build without Redis: it cannot be started. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/redis_station.h"

struct station *redis_station_start(void)
{
	fprintf(stderr, "--redis: this was built without Redis\n");
	exit(2);
}

uint64_t redis_station_stop(void)
{
	return 0;
}
