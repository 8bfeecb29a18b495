/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * station.h -- a server that can forget.
 *
 * What it does with a job is server.c's.  A replica is given what was written now and
 * then; when it takes over, what has been written since is lost, and the server has
 * another generation.
 *
 * Threads   One.
 */
#ifndef SIM_STATION_H
#define SIM_STATION_H

#include "runtime/clock.h"
#include "sim/server.h"

#define STATION_KEYS 32

struct station_entry {
	uint8_t key[STORE_KEY_MAX];
	size_t key_len;
	struct kept kept;
	struct kept replica;
};

struct station {
	struct gale_clock *clock;
	uint64_t generation;
	uint64_t since_us; /* of its generation; 0: it has forgotten nothing */
	struct station_entry *entries;
	size_t count;
};

void station_open(struct station *station, struct gale_clock *clock);
void station_close(struct station *station);

/* What was told points into *before. */
struct remote_told station_serve(struct station *station, const struct remote_job *job,
                                 struct kept *before);

/* What a replica has by now: all. */
void station_replicate(struct station *station);
/* The replica takes over: what has been written since is lost. */
void station_fail_over(struct station *station);

#endif
