/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * site.h -- what a URL says of Redis: where servers are, and who we are to them.
 *
 *     kind.c -> cluster.c -> link.c -> site.c
 *
 * Threads   redis_site_open, redis_site_close: one, before and after all others.  The rest:
 *           any; names look after themselves.
 */
#ifndef STORES_REDIS_SITE_H
#define STORES_REDIS_SITE_H

#include <string.h>

#include "stores/names.h"
#include "stores/redis/wire.h"
#include "stores/server.h"
#include "stores/stream.h"
#include "stores/url.h"

/* What a URL says: where servers are, and who we are to them. */
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

/* Names are looked up here, which may take a while.  NULL, and then *ret_why is
 * GALE_ERR_URL, GALE_ERR_HOST, GALE_ERR_CLUSTER_DB or GALE_ERR_MEMORY. */
struct redis_site *redis_site_open(struct gale_allocator *allocator, const char *url,
                                   enum gale_err *ret_why);
void redis_site_close(struct redis_site *site);

static inline struct remote_bytes redis_word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* Does it say who we are?  A user may have no password. */
bool redis_has_auth(const struct url *url);
/* Says that, if it does.  False: no memory. */
bool redis_put_auth(struct redis_text *text, const struct url *url);

#endif
