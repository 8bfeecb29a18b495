/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor.h -- gale doctor: looks at a store, and says line by line what is well and what is not.
 *
 *     OK    role: primary
 *     WARN  persistence: none: ...
 *     FAIL  eviction: maxmemory-policy is allkeys-lru: ...
 *
 * A line that is not OK says what follows from it, and what to do.  Nothing on the server is
 * changed: no key is written, and the schema is left as it is.
 *
 * Threads   One; it waits for the server.
 */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include <stdint.h>
#include <stdio.h>

#include "tools/sentence.h"

/* How the command exits. */
enum doctor_status {
	DOCTOR_WELL = 0,
	DOCTOR_WARNED = 1,  /* nothing worse than a WARN */
	DOCTOR_BAD_USE = 2, /* a word or the URL is wrong */
	DOCTOR_FAILED = 3,  /* a FAIL: nodes cannot use it, or it breaks limits */
};

enum doctor_finding {
	DOCTOR_OK,
	DOCTOR_WARN,
	DOCTOR_FAIL,
	DOCTOR_FINDINGS,
};

struct doctor {
	FILE *out;
	const char *where; /* which of a cluster's servers; "": there is one */
	unsigned counts[DOCTOR_FINDINGS];
};

/* One line. */
__attribute__((format(printf, 4, 5))) void doctor_say(struct doctor *doctor,
                                                      enum doctor_finding finding,
                                                      const char *what,
                                                      const char *format, ...);

/* Common to all servers: a clock that is ahead of this host's by so much, as seen through a
 * round trip of that length. */
void doctor_judge_clock(struct doctor *doctor, int64_t ahead_us, uint64_t trip_us);
uint64_t doctor_wall_us(void);

/* The URL is one that the library would open. */
void doctor_redis(struct doctor *doctor, const char *url);
void doctor_postgres(struct doctor *doctor, const char *url);

/* argv as after "gale doctor". */
int doctor_run(int argc, char **argv, FILE *out, FILE *err);

#endif
