/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hosts.h -- where a PostgreSQL server is: addresses, which libpq need not look up.
 *
 * libpq finds its hosts in the URL, as an authority or an option, and in the environment;
 * it would look their names up where it must not wait.  So they are looked up here
 * (stores/names.h), and libpq is given each address of each of them, beside the name, which
 * a certificate may be of.  Those that are folders of sockets stay as they are.
 *
 * Threads   open, close: one, before and after all others.  list, look_again: any, at once.
 * Limits    A service of a file cannot be named by a URL without hosts.  POSTGRES_PLACES
 *           addresses.
 */
#ifndef STORES_POSTGRES_HOSTS_H
#define STORES_POSTGRES_HOSTS_H

#include <gale/gale.h>

#include "stores/names.h"

#define POSTGRES_PLACES (STREAM_ADDRESSES_MOST + URL_HOSTS_MOST)

struct postgres_hosts {
	struct url url; /* of the hosts alone */
	struct names names;
	bool has_names; /* any of them is one, or an address */
	const char *ports[URL_HOSTS_MOST];
	char host_bytes[URL_MOST + 1];
	char port_bytes[URL_MOST + 1];
};

/* Which hosts there are; none is looked up.  False: *ret_fault says why. */
bool postgres_hosts_read(struct postgres_hosts *ret_hosts, const char *url,
                         struct url_fault *ret_fault);

/* Looks up, too.  False: there is nothing to close.  Else a text in *ret_fault is a warning. */
bool postgres_hosts_open(struct postgres_hosts *hosts, const char *url,
                         struct url_fault *ret_fault);
void postgres_hosts_close(struct postgres_hosts *hosts);

/* As libpq wants them, equally many of each. */
struct postgres_places {
	size_t count; /* 0: libpq knows without us */
	char hosts[4096];
	char addresses[POSTGRES_PLACES * 64];
	char ports[POSTGRES_PLACES * 8];
};

/* Beginning with that one of them. */
void postgres_hosts_list(struct postgres_hosts *hosts, size_t first,
                         struct postgres_places *ret_places);

/* A connection was lost, or did not come about. */
void postgres_hosts_look_again(struct postgres_hosts *hosts, mono now);

#endif
