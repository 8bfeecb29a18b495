/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* url.c -- options first, then the path, whose meaning depends on the scheme. */
#include "stores/redis/url.h"

#include <string.h>
#include <sys/un.h>

#define OPTIONS "db, prefix, durable, sentinel_password"
#define TLS_OPTIONS "ca, cert, key, servername"
#define DB_MOST 1000000
#define DURABLE_MOST 9
#define SOCKET_MOST (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static bool refuse(struct url_fault *fault, const char *why)
{
	return url_say(fault, GALE_ERR_URL, "url: %s", why);
}

/* ---- The scheme ------------------------------------------------------------------ */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* redis or rediss, and what it leads to: "", "+sentinel", "+cluster". */
static bool is_scheme(const struct redis_url *url, const char *leads_to)
{
	return strcmp(url->is.scheme + strlen(url->is_secure ? "rediss" : "redis"),
	              leads_to) == 0;
}

/* ---- Options --------------------------------------------------------------------- */

static bool is_one_of(const char *option, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(option, names[i]) == 0)
			return true;
	return false;
}

static bool is_of_tls(const char *option)
{
	static const char *const names[] = { "ca", "cert", "key", "servername" };

	return is_one_of(option, names, sizeof(names) / sizeof(names[0]));
}

static bool is_known(const char *option)
{
	static const char *const names[] = { "db", "prefix", "sentinel_password",
		                             "durable" };

	return is_one_of(option, names, sizeof(names) / sizeof(names[0]));
}

static bool know_option(const struct redis_url *url, const char *option,
                        struct url_fault *fault)
{
	if (is_known(option) || (url->is_secure && is_of_tls(option)))
		return true;
	if (is_of_tls(option))
		return url_say(fault, GALE_ERR_URL,
		               "url: option %s is for TLS: rediss://, "
		               "rediss+sentinel://, rediss+cluster://",
		               option);
	return url_say(
	    fault, GALE_ERR_URL, "url: option %s is not known; there are " OPTIONS "%s",
	    url_shown(&url->is, option), url->is_secure ? ", " TLS_OPTIONS : "");
}

static bool know_options(const struct redis_url *url, struct url_fault *fault)
{
	for (size_t i = 0; i < url->is.option_count; i++)
		if (!know_option(url, url->is.options[i].name, fault))
			return false;
	return true;
}

/* NULL: it is not given. */
static bool read_given(const struct redis_url *url, const char *option,
                       const char **ret_value, struct url_fault *fault)
{
	*ret_value = url_option(&url->is, option);
	if (!*ret_value || **ret_value != '\0')
		return true;
	return url_say(fault, GALE_ERR_URL, "url: option %s is empty", option);
}

static bool read_tls(struct redis_url *url, struct url_fault *fault)
{
	struct tls_config *tls = &url->tls;

	if (!read_given(url, "ca", &tls->ca, fault) ||
	    !read_given(url, "cert", &tls->cert, fault) ||
	    !read_given(url, "key", &tls->key, fault) ||
	    !read_given(url, "servername", &tls->name, fault))
		return false;
	if (!tls->cert != !tls->key)
		return refuse(fault,
		              "of the options cert and key each needs the other");
	if (tls->name && strlen(tls->name) > TLS_NAME_MOST)
		return url_say(fault, GALE_ERR_URL,
		               "url: option servername has more than %d bytes",
		               TLS_NAME_MOST);
	if (tls->name && tls->name[0] == '.')
		return refuse(fault, "option servername begins with a dot");
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
		return url_say(fault, GALE_ERR_URL,
		               "url: %s:// needs the host of a sentinel",
		               url->is.scheme);
	if (name[0] == '\0')
		return url_say(fault, GALE_ERR_URL,
		               "url: behind the hosts of %s:// comes / and the name by "
		               "which sentinels know the service",
		               url->is.scheme);
	if (strchr(name, '@')) /* it is of letters, digits and .-_ */
		return refuse(fault,
		              "the name of a service has an @; in a password, / is "
		              "written %2F, and @ %40");
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
	const char *scheme = url->is.scheme;

	if (url->is.host_count == 0 && (url->is_cluster || url->is_secure))
		return url_say(fault, GALE_ERR_URL, "url: %s:// needs a host", scheme);
	if (!url->is_cluster && url->is.host_count > 1)
		return url_say(fault, GALE_ERR_URL,
		               "url: %s:// takes one host; %s+sentinel:// and "
		               "%s+cluster:// take several",
		               scheme, scheme, scheme);
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

	if (is_scheme(url, "+sentinel"))
		return read_service(url, name, fault) && read_db(url, "", fault);
	url->is_cluster = is_scheme(url, "+cluster");
	return count_hosts(url, fault) &&
	       read_db(url, url->is.host_count > 0 ? name : "", fault);
}

bool redis_url_parse(const char *text, struct redis_url *ret_url,
                     struct url_fault *ret_fault)
{
	*ret_url = (struct redis_url){ .sentinel_password = "" };
	if (!url_parse(text, &ret_url->is, ret_fault))
		return false;
	ret_url->is_secure = begins(ret_url->is.scheme, "rediss");
	if (!know_options(ret_url, ret_fault) || !read_tls(ret_url, ret_fault) ||
	    !read_prefix(ret_url, ret_fault) || !read_durable(ret_url, ret_fault) ||
	    !read_path(ret_url, ret_fault))
		return false;
	if (url_option(&ret_url->is, "sentinel_password"))
		ret_url->sentinel_password =
		    url_option(&ret_url->is, "sentinel_password");
	return true;
}
