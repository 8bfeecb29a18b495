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
 *   B3  What is awaited is what was sent, in its order.  A reply to nothing, or of
 *       another nonce, ends the connection.
 *   B4  A batch that is refused as a whole (NOSCRIPT, another generation) has done
 *       nothing; after any other error nobody knows, and it is not sent again.     (L13)
 *   B5  Nothing is asked of a replica, nor for long of a primary that was replaced.
 *
 * Threads   Its shard's actor.  A kind: any, while it is open.
 */
#ifndef STORES_REDIS_LINK_H
#define STORES_REDIS_LINK_H

#include "stores/server.h"
#include "stores/url.h"

/* redis://[user[:password]@]host[:port][,host[:port]...][/db][?prefix=...]
 * redis:///folder/socket[?db=...]
 * redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=...&prefix=...]
 *     the hosts are sentinels; sentinel_password=... is theirs
 *
 * Names are looked up here, which may take a while.  NULL, and then *ret_why is
 * GALE_ERR_URL, GALE_ERR_HOST or GALE_ERR_MEMORY. */
struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               enum gale_err *ret_why);

#endif
