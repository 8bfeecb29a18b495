/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url.c -- options first, then the path, whose meaning depends on the scheme. */
#include "stores/redis/url.h"

#include <string.h>
#include <sys/un.h>

#define SENTINEL_SCHEME "redis+sentinel"
#define CLUSTER_SCHEME "redis+cluster"
#define OPTIONS "db, prefix, durable, sentinel_password"
#define DB_MOST 1000000
#define DURABLE_MOST 9
#define SOCKET_MOST (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static bool refuse(struct url_fault *fault, const char *why)
{
	return url_say(fault, GALE_ERR_URL, "url: %s", why);
}

/* ---- Options --------------------------------------------------------------------- */

static bool is_known(const char *option)
{
	return strcmp(option, "db") == 0 || strcmp(option, "prefix") == 0 ||
	       strcmp(option, "sentinel_password") == 0 ||
	       strcmp(option, "durable") == 0;
}

static bool know_options(const struct url *url, struct url_fault *fault)
{
	for (size_t i = 0; i < url->option_count; i++)
		if (!is_known(url->options[i].name))
			return url_say(
			    fault, GALE_ERR_URL,
			    "url: option %s is not known; there are " OPTIONS,
			    url_shown(url->options[i].name));
	return true;
}

bool redis_prefix_valid(const char *prefix)
{
	size_t count = strlen(prefix);

	return count <= REDIS_PREFIX_MAX && !memchr(prefix, '{', count) &&
	       !memchr(prefix, '}', count);
}

static bool read_prefix(struct redis_url *url, struct url_fault *fault)
{
	const char *prefix = url_option(&url->is, "prefix");

	if (!prefix)
		prefix = "gale:";
	if (!redis_prefix_valid(prefix))
		return url_say(fault, GALE_ERR_URL,
		               "url: option prefix is longer than %d bytes, or has "
		               "{ or } in it",
		               REDIS_PREFIX_MAX);
	strcpy(url->prefix, prefix);
	return true;
}

static bool read_durable(struct redis_url *url, struct url_fault *fault)
{
	const char *durable = url_option(&url->is, "durable");

	if (durable &&
	    (!url_number(durable, DURABLE_MOST, &url->durable) || url->durable == 0))
		return url_say(fault, GALE_ERR_URL,
		               "url: option durable is not a number from 1 to %d",
		               DURABLE_MOST);
	return true;
}

/* ---- The path -------------------------------------------------------------------- */

static bool read_service(struct redis_url *url, const char *name,
                         struct url_fault *fault)
{
	if (url->is.host_count == 0)
		return refuse(fault,
		              SENTINEL_SCHEME ":// needs the host of a sentinel");
	if (name[0] == '\0')
		return refuse(fault, "behind the hosts of " SENTINEL_SCHEME ":// comes "
		                     "/ and the name by which sentinels know the "
		                     "service");
	url->service = name;
	return true;
}

static bool read_socket(const struct url *url, struct url_fault *fault)
{
	if (url->path[0] == '\0' || url->path[1] == '\0')
		return refuse(fault, "redis:// needs a host, or the path of a socket: "
		                     "redis:///run/redis.sock");
	if (strlen(url->path) > SOCKET_MOST)
		return url_say(fault, GALE_ERR_HOST,
		               "url: the path of a socket has at most %zu bytes",
		               SOCKET_MOST);
	return true;
}

/* Of one that is not the other, keys would be others. */
static bool count_hosts(const struct redis_url *url, struct url_fault *fault)
{
	if (url->is_cluster && url->is.host_count == 0)
		return refuse(fault, CLUSTER_SCHEME ":// needs a host");
	if (!url->is_cluster && url->is.host_count > 1)
		return refuse(fault, "redis:// takes one host; " SENTINEL_SCHEME
		                     ":// and " CLUSTER_SCHEME ":// take several");
	return url->is.host_count > 0 || read_socket(&url->is, fault);
}

static bool read_db(struct redis_url *url, const char *path, struct url_fault *fault)
{
	const char *db = url_option(&url->is, "db");

	if (path[0] != '\0' && db)
		return refuse(fault, "both the path and option db say which database");
	if (path[0] != '\0')
		db = path;
	if (db && !url_number(db, DB_MOST, &url->db))
		return url_say(fault, GALE_ERR_URL,
		               "url: the database is not a number from 0 to %d",
		               DB_MOST);
	if (url->is_cluster && url->db != 0)
		return url_say(fault, GALE_ERR_CLUSTER_DB, "%s",
		               gale_err_text(GALE_ERR_CLUSTER_DB));
	return true;
}

/* The path is the number of a database, the name of a service, or a socket's. */
static bool read_path(struct redis_url *url, struct url_fault *fault)
{
	const char *name = url->is.path[0] == '/' ? url->is.path + 1 : "";

	if (strcmp(url->is.scheme, SENTINEL_SCHEME) == 0)
		return read_service(url, name, fault) && read_db(url, "", fault);
	url->is_cluster = strcmp(url->is.scheme, CLUSTER_SCHEME) == 0;
	return count_hosts(url, fault) &&
	       read_db(url, url->is.host_count > 0 ? name : "", fault);
}

bool redis_url_parse(const char *text, struct redis_url *ret_url,
                     struct url_fault *ret_fault)
{
	*ret_url = (struct redis_url){ .sentinel_password = "" };
	if (!url_parse(text, &ret_url->is, ret_fault) ||
	    !know_options(&ret_url->is, ret_fault) ||
	    !read_prefix(ret_url, ret_fault) || !read_durable(ret_url, ret_fault) ||
	    !read_path(ret_url, ret_fault))
		return false;
	if (url_option(&ret_url->is, "sentinel_password"))
		ret_url->sentinel_password =
		    url_option(&ret_url->is, "sentinel_password");
	return true;
}
