/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * doctor_redis.h -- what gale doctor looks at in each Redis server, part by part.
 *
 * Threads   One; it waits for the server.
 */
#ifndef TOOLS_DOCTOR_REDIS_H
#define TOOLS_DOCTOR_REDIS_H

#include "tools/doctor.h"
#include "tools/redis_visit.h"

/* May the user do what nodes do, and does the server take writes?  Nothing is written: each
 * command is one that does nothing, or is refused for its arguments after its rights were
 * looked at.  The last one leaves the connection of no other use. */
void doctor_redis_rights(struct doctor *doctor, redisContext *conn,
                         const struct redis_url *url);

/* Has it forgotten something lately?  Of a server that is not one of many. */
void doctor_redis_state(struct doctor *doctor, redisContext *conn,
                        const struct redis_url *url, const char *info);

/* The name that the server has for the URL's user. */
const char *doctor_redis_user(const struct redis_url *url);

/* Microseconds since 1970; 0: it does not say. */
uint64_t doctor_redis_time(redisContext *conn);

#endif
