/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * url.h -- where a server is, and the user to log in as.
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

#include <gale/errors.h>

#define URL_MOST 1024 /* bytes, without the end */
#define URL_FAULT_TEXT 192
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
	/* An @ stands behind what seem to be the hosts: a / or ? of a password may have ended
	 * them, so nothing that follows the first : is shown. */
	bool may_hide;
};

/* The fault of a URL.  The text is for the URL's author: one line that begins with
 * "url: " and names the part that is wrong.  It shows no user and no password. */
struct url_fault {
	enum gale_err err;
	char text[URL_FAULT_TEXT];
};

/* Returns false, so that code that refuses can say why in one line.  Bytes that are not printable
 * become ?.  With GALE_ERR_OK it is a warning. */
__attribute__((format(printf, 3, 4))) bool
url_say(struct url_fault *fault, enum gale_err err, const char *format, ...);

/* False if it is none of these, or too long; then *ret_fault is set, and nothing else. */
bool url_parse(const char *text, struct url *ret_url, struct url_fault *ret_fault);

/* An option's name as it can be shown: what is no name is not, nor what may be a piece of a
 * password that has a ? in it. */
const char *url_shown(const struct url *url, const char *name);

/* NULL if there is none. */
const char *url_option(const struct url *url, const char *name);

/* A number from 0 to most; false if it is none. */
bool url_number(const char *text, uint64_t most, uint64_t *ret_number);

#endif
