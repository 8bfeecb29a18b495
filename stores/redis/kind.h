/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kind.h -- a Redis, of whichever kind its URL names, as a server that shards have wires to.
 *
 * Threads   redis_kind: any.  What it makes: as server.h says.
 */
#ifndef STORES_REDIS_KIND_H
#define STORES_REDIS_KIND_H

#include "stores/server.h"

/* redis://[user[:password]@]host[:port][,host[:port]...][/db][?prefix=...]
 * redis:///folder/socket[?db=...]
 * redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=...&prefix=...]
 *     the hosts are sentinels; sentinel_password=... is theirs
 * redis+cluster://[user[:password]@]host[:port][,...][?prefix=...]
 *     the hosts are some of the nodes: one that is up is enough
 * durable=N, of any of them: REDIS-6 of link.h; N is 1 to 9, and the same for all who share a
 *     prefix
 *
 * Names are looked up here, which may take a while.  NULL, and then *ret_why is
 * GALE_ERR_URL, GALE_ERR_HOST, GALE_ERR_CLUSTER_DB or GALE_ERR_MEMORY. */
struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               enum gale_err *ret_why);

#endif
