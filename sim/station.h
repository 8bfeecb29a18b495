/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * station.h -- a server that can forget, and of which any code may do the work.
 *
 * A job is done at the time that the station's clock shows.  A replica is given what was
 * written now and then; when it takes over, what has been written since is lost, and the
 * server has another generation.  A server whose clock is set back by more than a second has
 * another one, too, as at Redis (stores/redis/generation.lua), and keeps what it has.
 *
 *     virtual_wire.c --job--> station --> its ops: by the engine, as server.c does it, or
 *         by a real server, of the test that makes the world
 *
 * Threads   One.
 */
#ifndef SIM_STATION_H
#define SIM_STATION_H

#include "runtime/clock.h"
#include "sim/allocator.h"
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
	/* A replica has nothing.  NULL: the station is in no world that does that. */
	void (*empty)(struct station *self);
};

struct station {
	const struct station_ops *ops;
	/* Set by station_open, and then by fail-overs. */
	struct gale_clock *clock;
	uint64_t generation;
	uint64_t since_us;  /* of its generation; 0: it has forgotten nothing */
	uint64_t latest_us; /* that its clock has shown */
};

void station_open(struct station *station, struct gale_clock *clock);
/* Looks at its clock: before anything that depends on the generation. */
void station_look(struct station *station);
/* The replica takes over: what has been written since is lost. */
void station_fail_over(struct station *station);
/* The same, and the replica has nothing. */
void station_flush(struct station *station);

/* The engine does the jobs, in this process. */
struct engine_station {
	struct station station; /* first */
	struct station_entry *entries;
	size_t count;
	struct groups *groups;
	struct station_beat
	    *beats; /* all that made the groups what they are, and ... */
	size_t beat_count;
	size_t beat_room;
	size_t copied; /* ... those that the replica has seen */
	uint8_t grant[REMOTE_GRANT_BYTES];
	struct store_nudge nudge; /* by the latest beat; .is.whom is 0: there is none */
	struct test_allocator allocator; /* of the groups */
};

void engine_station_init(struct engine_station *station);

#endif
