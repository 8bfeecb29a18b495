/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* site.c -- URLs of Redis servers. */
#include "stores/redis/site.h"

#include <string.h>

#include "runtime/memory.h"

#define PORT_DEFAULT 6379
#define SENTINEL_PORT_DEFAULT 26379
#define SENTINEL_SCHEME "redis+sentinel"
#define CLUSTER_SCHEME "redis+cluster"
#define DB_MOST 1000000
#define DURABLE_MOST 9

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

static bool find_addresses(struct redis_site *site)
{
	const struct url *url = &site->url;
	uint16_t port = site->service ? SENTINEL_PORT_DEFAULT : PORT_DEFAULT;

	if (url->host_count == 0)
		return stream_unix(url->path, &site->socket);
	site->has_names = names_open(&site->names, url, port, stream_resolve);
	return site->has_names;
}

static bool is_known(const char *option)
{
	return strcmp(option, "db") == 0 || strcmp(option, "prefix") == 0 ||
	       strcmp(option, "sentinel_password") == 0 ||
	       strcmp(option, "durable") == 0;
}

/* The path is the number of a database, the name of a service, or a socket's. */
static bool read_path(struct redis_site *site, const char **ret_db)
{
	const struct url *url = &site->url;
	const char *name = url->path[0] == '/' ? url->path + 1 : "";

	if (strcmp(url->scheme, SENTINEL_SCHEME) == 0) {
		site->service = name;
		return url->host_count > 0 && name[0] != '\0';
	}
	site->is_cluster = strcmp(url->scheme, CLUSTER_SCHEME) == 0;
	if (site->is_cluster ? url->host_count == 0 : url->host_count > 1)
		return false; /* one that is not the other has other keys */
	if (url->host_count == 0)
		return name[0] != '\0';
	if (name[0] != '\0' && *ret_db)
		return false; /* said twice */
	if (name[0] != '\0')
		*ret_db = name;
	return true;
}

static bool read_durable(struct redis_site *site)
{
	const char *durable = url_option(&site->url, "durable");

	return !durable ||
	       (url_number(durable, DURABLE_MOST, &site->durable) && site->durable > 0);
}

static bool read_options(struct redis_site *site)
{
	const struct url *url = &site->url;
	const char *prefix = url_option(url, "prefix");
	const char *db = url_option(url, "db");

	for (size_t i = 0; i < url->option_count; i++)
		if (!is_known(url->options[i].name))
			return false;
	if (!prefix)
		prefix = "gale:";
	site->sentinel_password = url_option(url, "sentinel_password");
	if (!site->sentinel_password)
		site->sentinel_password = "";
	if (!read_path(site, &db) || !read_durable(site) ||
	    !redis_prefix_valid(prefix) || (db && !url_number(db, DB_MOST, &site->db)))
		return false;
	strcpy(site->prefix, prefix);
	return true;
}

static enum gale_err read_url(struct redis_site *site, const char *url)
{
	if (!url_parse(url, &site->url) || !read_options(site))
		return GALE_ERR_URL;
	if (site->is_cluster && site->db != 0)
		return GALE_ERR_CLUSTER_DB;
	return find_addresses(site) ? GALE_ERR_OK : GALE_ERR_HOST;
}

struct redis_site *redis_site_open(struct gale_allocator *allocator, const char *url,
                                   enum gale_err *ret_why)
{
	struct redis_site *site = memory_take(allocator, sizeof(*site));

	*ret_why = GALE_ERR_MEMORY;
	if (!site)
		return NULL;
	site->allocator = allocator;
	*ret_why = read_url(site, url);
	if (*ret_why == GALE_ERR_OK)
		return site;
	memory_give(allocator, site, sizeof(*site));
	return NULL;
}

void redis_site_close(struct redis_site *site)
{
	if (site->has_names)
		names_close(&site->names);
	memory_give(site->allocator, site, sizeof(*site));
}
