/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_bare.h -- the floors of what is asked of a Redis server.
 *
 * They are hiredis as it comes, waiting for each reply: a PING, and a script that does as
 * little as a lease can (the clock, a counter, an expiry).
 *
 * Threads   One at a time.
 */
#ifndef BENCH_REDIS_BARE_H
#define BENCH_REDIS_BARE_H

#include <hiredis/hiredis.h>

#include "bench/bench.h"

struct redis_bare {
	redisContext *context;
	char sha1[41]; /* of the script: EVALSHA sha1 1 KEY 1000 */
};

/* With a connection; the server then knows the script. */
void redis_bare_open(struct redis_bare *bare, redisContext *context);

/* It must be of that type. */
void redis_bare_expect(redisReply *reply, int type);

/* There and back. */
void redis_bare_ping(struct redis_bare *bare);
void redis_bare_least(struct redis_bare *bare);

#endif
