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
 *   B6  In a cluster a generation is a bucket's, and asked for by who asks of the bucket.
 *       MOVED, ASK, TRYAGAIN and CLUSTERDOWN are said before a script is run: then nothing
 *       was done.                                                                  (B2)
 *   B7  A server that has told nothing for a second is asked for its generation again,
 *       in the write of the next batch.  (In a cluster that is the client's, C4.)  (L12)
 *
 *   B8  With durable=N nothing is told that not N replicas have confirmed; it counts as
 *       not granted, and is spent at the server.  Then one of them may take over and go
 *       on without a quarantine (greet.lua).                                      (L12)
 *
 * Threads   Its shard's actor.  A kind: any, while it is open.
 */
#ifndef STORES_REDIS_LINK_H
#define STORES_REDIS_LINK_H

#include <string.h>

#include "stores/names.h"
#include "stores/redis/wire.h"
#include "stores/server.h"
#include "stores/stream.h"
#include "stores/url.h"

/* What a URL says: where servers are, and who we are to them.  A kind. */
struct redis_site {
	struct server_kind is; /* first */
	struct gale_allocator *allocator;
	struct stream_address socket; /* without hosts */
	struct names names;           /* of hosts ... */
	bool has_names;               /* ... if they were found */
	uint64_t db;
	const char *service;           /* that the hosts, sentinels, know; NULL: none */
	const char *sentinel_password; /* "": none */
	bool is_cluster;               /* the hosts are some of its nodes */
	uint64_t durable; /* so many replicas must have it, or it was not granted */
	char prefix[REDIS_PREFIX_MAX + 1];
	struct url url;
};

/* redis://[user[:password]@]host[:port][,host[:port]...][/db][?prefix=...]
 * redis:///folder/socket[?db=...]
 * redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=...&prefix=...]
 *     the hosts are sentinels; sentinel_password=... is theirs
 * redis+cluster://[user[:password]@]host[:port][,...][?prefix=...]
 *     the hosts are some of the nodes: one that is up is enough
 * durable=N, of any of them: B8; N is 1 to 9, and the same for all who share a prefix
 *
 * Names are looked up here, which may take a while.  NULL, and then *ret_why is
 * GALE_ERR_URL, GALE_ERR_HOST or GALE_ERR_MEMORY. */
struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               enum gale_err *ret_why);

/* A wire to one node of a cluster, which is by buckets.  NULL without memory. */
struct wire *redis_link_to(struct redis_site *site, const struct stream_address *node,
                           int watch_fd);

static inline struct remote_bytes redis_word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* Says who we are, if there is a password.  False: no memory. */
bool redis_put_auth(struct redis_text *text, const struct url *url);

#endif
