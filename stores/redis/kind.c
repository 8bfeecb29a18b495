/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* kind.c -- one server, or a cluster of them. */
#include "stores/redis/kind.h"

#include "stores/redis/cluster.h"
#include "stores/redis/link.h"
#include "stores/part.h"

static struct wire *kind_wire(struct server_kind *self, struct watch watch)
{
	return redis_link((struct redis_site *)self, watch);
}

static struct map *kind_map(struct server_kind *self, struct watch watch)
{
	return redis_cluster_map((struct redis_site *)self, watch);
}

static void kind_free(struct server_kind *self)
{
	redis_site_close((struct redis_site *)self);
}

struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               struct url_fault *ret_fault)
{
	struct redis_site *site = redis_site_open(allocator, url, ret_fault);

	if (!site)
		return NULL;
	site->is.wire = kind_wire;
	site->is.map = site->url.is_cluster ? kind_map : NULL;
	site->is.free = kind_free;
	site->is.lends_ahead = true;
	return &site->is;
}

static bool check(const char *url, struct url_fault *ret_fault)
{
	struct redis_url ignored;

	return redis_url_parse(url, &ignored, ret_fault);
}

const struct store_part redis_part = { .check = check, .kind = redis_kind };
