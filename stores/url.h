/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * url.h -- where a server is, and who we are to it.
 *
 *     scheme://[user[:password]@]host[:port][,host[:port]...][/path][?name=value&...]
 *     scheme:///folder/socket        a unix socket: no host, and a path
 *
 * User, password, path and values may have %xx in them.  IPv6 addresses are in [].
 *
 * Threads   Pure: any.
 */
#ifndef STORES_URL_H
#define STORES_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define URL_MOST 1024 /* bytes, without the end */
#define URL_HOSTS_MOST 16
#define URL_OPTIONS_MOST 8

struct url_host {
	const char *name; /* without [] */
	uint16_t port;    /* 0: none was given */
};

struct url_option {
	const char *name;
	const char *value;
};

struct url {
	char bytes[URL_MOST + 1]; /* that the others point to */
	const char *scheme;       /* without : */
	const char *user;         /* "": none; so for the others */
	const char *password;
	const char *path; /* with its / */
	struct url_host hosts[URL_HOSTS_MOST];
	size_t host_count;
	struct url_option options[URL_OPTIONS_MOST];
	size_t option_count;
};

/* False if it is none of these, or too long. */
bool url_parse(const char *text, struct url *ret_url);

/* NULL if there is none. */
const char *url_option(const struct url *url, const char *name);

/* A number from 0 to most; false if it is none. */
bool url_number(const char *text, uint64_t most, uint64_t *ret_number);

#endif
