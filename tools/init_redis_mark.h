/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * init_redis_mark.h -- marks an empty Redis server as new.
 *
 * A server without a generation may have been emptied: the nodes that find it so wait until
 * what it may have granted is over.  Only an operator knows that nothing was.  The mark is the
 * server's first generation, with no past (stores/redis/greet.lua).
 *
 * It is not set where there is a generation, or a key of gale's: then something was granted.
 *
 * Threads   One; it waits for the server.
 */
#ifndef TOOLS_INIT_REDIS_MARK_H
#define TOOLS_INIT_REDIS_MARK_H

#include <stdio.h>

#include "tools/redis_visit.h"

/* Says to out what it did, or why it could not: a server that is not marked is good, too. */

/* Of a server that is not one of many: one generation is all it has. */
void redis_mark(redisContext *conn, const struct redis_url *url, FILE *out);

/* Of a node of a cluster, the buckets in its slots from first to last. */
void redis_mark_range(redisContext *conn, const struct redis_url *url, long long first,
                      long long last, FILE *out);

#endif
