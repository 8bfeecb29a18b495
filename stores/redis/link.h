/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * link.h -- a connection to a Redis server.
 *
 *     connect -> AUTH, SELECT, INFO -> SCRIPT LOAD, greet.lua -> ready: EVALSHA ...
 *                                                       ^                   |
 *                                                       '- another generation, or no
 *                                                          script: greets again
 *
 * Invariants
 *
 *   REDIS-1  What is awaited is what was sent, in its order.  A reply to nothing, or of
 *            another nonce, ends the connection.
 *   REDIS-2  A batch that is refused as a whole (NOSCRIPT, another generation) has done
 *            nothing; after any other error that is not known, and it is not sent again.
 *            (L13)
 *   REDIS-3  Nothing is asked of a replica, nor for long of a primary that was
 *            replaced.
 *   REDIS-4  In a cluster a generation is a bucket's, and asked for by each node that asks
 *            of the bucket. MOVED, ASK, TRYAGAIN and CLUSTERDOWN are said before a script
 *            is run: then nothing was done. (WIRE-2)
 *   REDIS-5  A server that has told nothing for 20 ms, by its own clock, compares its
 *            tenure with the generation's before it does anything: it may have followed
 *            another meanwhile, and have the other's copy of the generation. (L12)
 *   REDIS-6  With durable=N nothing is told that not N replicas have confirmed; it
 *            counts as not granted, and is spent at the server.  Then one of them may
 *            take over and go on without a quarantine (greet.lua). (L12)
 *
 * Threads   Its shard's actor.
 */
#ifndef STORES_REDIS_LINK_H
#define STORES_REDIS_LINK_H

#include "stores/redis/site.h"

/* A wire to the server, or to the one that its sentinels name.  NULL without memory. */
struct wire *redis_link(struct redis_site *site, struct watch watch);

/* A wire to one node of a cluster, which is by buckets.  NULL without memory. */
struct wire *redis_link_to(struct redis_site *site, const struct stream_address *node,
                           struct watch watch);

#endif
