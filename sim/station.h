/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * station.h -- a server that can forget, whoever does its work.
 *
 * A job is done at the time that the station's clock shows.  A replica is given what was
 * written now and then; when it takes over, what has been written since is lost, and the
 * server has another generation.
 *
 *     virtual_wire.c --job--> station --> its ops: by the engine, as server.c does it, or
 *         by a real server, of whoever makes the world
 *
 * Threads   One.
 */
#ifndef SIM_STATION_H
#define SIM_STATION_H

#include "runtime/clock.h"
#include "sim/server.h"

#define STATION_KEYS 32

struct station;

struct station_ops {
	/* It has no keys yet. */
	void (*open)(struct station *self);
	void (*close)(struct station *self);
	/* What was told points into *before. */
	struct remote_told (*serve)(struct station *self, const struct remote_job *job,
	                            struct kept *before);
	/* What a replica has by now: all. */
	void (*replicate)(struct station *self);
	/* The replica's keys are the server's. */
	void (*fail_over)(struct station *self);
};

struct station {
	const struct station_ops *ops;
	/* Set by station_open, and then by fail-overs. */
	struct gale_clock *clock;
	uint64_t generation;
	uint64_t since_us; /* of its generation; 0: it has forgotten nothing */
};

void station_open(struct station *station, struct gale_clock *clock);
/* The replica takes over: what has been written since is lost. */
void station_fail_over(struct station *station);

/* The engine does the jobs, in this process. */
struct engine_station {
	struct station station; /* first */
	struct station_entry *entries;
	size_t count;
};

void engine_station_init(struct engine_station *station);

#endif
