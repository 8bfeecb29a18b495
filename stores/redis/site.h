/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * site.h -- what a URL says of Redis: where servers are, and the user to log in as.
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
#include "stores/redis/url.h"
#include "stores/redis/wire.h"
#include "stores/server.h"
#include "stores/stream.h"
#include "stores/tls.h"

/* A site is read from a URL: the servers' addresses, and the user to log in as. */
struct redis_site {
	struct server_kind is; /* first */
	struct gale_allocator *allocator;
	struct stream_address socket; /* without hosts */
	struct names names;           /* of hosts, if there are any */
	struct redis_url url;
	struct tls tls; /* if the URL is secure */
};

/* For the streams to its servers; NULL: they are plain. */
static inline const struct tls *redis_tls(const struct redis_site *site)
{
	return site->url.is_secure ? &site->tls : NULL;
}

/* Names are looked up here, which may take a while; those that are not found are looked up
 * again.  NULL: *ret_fault says why; GALE_ERR_MEMORY has no text. */
struct redis_site *redis_site_open(struct gale_allocator *allocator, const char *url,
                                   struct url_fault *ret_fault);
void redis_site_close(struct redis_site *site);

static inline struct remote_bytes redis_word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* Does it name a user, or a password?  A user may have no password. */
bool redis_has_auth(const struct url *url);
/* Says that, if it does.  False: no memory. */
bool redis_put_auth(struct redis_text *text, const struct url *url);
/* CLIENT SETNAME gale:PID, to be seen in CLIENT LIST.  False: no memory. */
bool redis_put_name(struct redis_text *text);

#endif
