/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* site.c -- finds the addresses of a URL's hosts. */
#include "stores/redis/site.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/memory.h"

bool redis_has_auth(const struct url *url)
{
	return url->user[0] != '\0' || url->password[0] != '\0';
}

bool redis_put_auth(struct redis_text *text, const struct url *url)
{
	struct remote_bytes words[3] = { redis_word("AUTH"), redis_word(url->user),
		                         redis_word(url->password) };

	if (!redis_has_auth(url))
		return true;
	if (url->user[0] == '\0')
		words[1] = words[2];
	return redis_put_words(text, words, url->user[0] == '\0' ? 2 : 3);
}

bool redis_put_name(struct redis_text *text)
{
	char name[24];
	struct remote_bytes words[3] = { redis_word("CLIENT"), redis_word("SETNAME") };

	snprintf(name, sizeof(name), "gale:%ld", (long)getpid());
	words[2] = redis_word(name);
	return redis_put_words(text, words, 3);
}

static void find_addresses(struct redis_site *site, struct url_fault *warning)
{
	const struct url *url = &site->url.is;

	if (url->host_count == 0)
		gale_assert(stream_unix(url->path, &site->socket));
	else
		names_open(&site->names, url,
		           site->url.service ? REDIS_SENTINEL_PORT : REDIS_PORT,
		           stream_resolve, warning);
}

static bool read_url(struct redis_site *site, const char *url,
                     struct url_fault *ret_fault)
{
	return redis_url_parse(url, &site->url, ret_fault) &&
	       (!site->url.is_secure ||
	        tls_open(&site->tls, &site->url.tls, ret_fault));
}

struct redis_site *redis_site_open(struct gale_allocator *allocator, const char *url,
                                   struct url_fault *ret_fault)
{
	struct redis_site *site = memory_take(allocator, sizeof(*site));

	*ret_fault = (struct url_fault){ .err = GALE_ERR_MEMORY };
	if (!site)
		return NULL;
	site->allocator = allocator;
	if (!read_url(site, url, ret_fault)) {
		memory_give(allocator, site, sizeof(*site));
		return NULL;
	}
	*ret_fault = (struct url_fault){ .err = GALE_ERR_OK };
	find_addresses(site, ret_fault);
	return site;
}

void redis_site_close(struct redis_site *site)
{
	if (site->url.is.host_count > 0)
		names_close(&site->names);
	if (site->url.is_secure)
		tls_close(&site->tls);
	memory_give(site->allocator, site, sizeof(*site));
}
