/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * url.h -- URLs of Redis servers: what each part of one means.
 *
 *     redis://[user[:password]@]host[:port][/db][?prefix=...]
 *     redis:///folder/socket[?db=...]
 *     redis+sentinel://[user[:password]@]host[:port][,...]/service[?db=...&prefix=...]
 *         the hosts are sentinels; sentinel_password=... is theirs
 *     redis+cluster://[user[:password]@]host[:port][,...][?prefix=...]
 *         the hosts are some of the nodes: one that is up is enough
 *     rediss://, rediss+sentinel://, rediss+cluster:// are the same in TLS; ca=FILE, cert=FILE
 *         and key=FILE, and servername=NAME are as in stores/tls.h; sentinels and nodes are
 *         asked in TLS, too, and a socket is not
 *     durable=N, of any of them: REDIS-6 of link.h; N is 1 to 9, and the same for all nodes that
 *         share a prefix
 *
 * Threads   Pure: any.
 */
#ifndef STORES_REDIS_URL_H
#define STORES_REDIS_URL_H

#include "stores/tls.h"
#include "stores/url.h"

#define REDIS_PREFIX_MAX 64
#define REDIS_PORT 6379 /* of a host without one ... */
#define REDIS_SENTINEL_PORT 26379

struct redis_url {
	struct url is; /* first */
	uint64_t db;
	const char *service;           /* that the hosts, sentinels, know; NULL: none */
	const char *sentinel_password; /* "": none */
	bool is_cluster;               /* the hosts are some of its nodes */
	bool is_secure;                /* TLS, as tls says */
	struct tls_config tls;
	uint64_t durable; /* so many replicas must have it, or it was not granted */
	char prefix[REDIS_PREFIX_MAX + 1];
};

/* Without hosts the path is a socket's, and short enough.  False: *ret_fault is set, to
 * GALE_ERR_URL, GALE_ERR_HOST or GALE_ERR_CLUSTER_DB. */
bool redis_url_parse(const char *text, struct redis_url *ret_url,
                     struct url_fault *ret_fault);

bool redis_prefix_valid(const char *prefix);

#endif
