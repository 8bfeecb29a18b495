/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * server.h -- a store that is a server: each home has a client of its own there.
 *
 * Threads   As store.h says.  A client is its home's; that there is one, all know.
 */
#ifndef STORES_SERVER_H
#define STORES_SERVER_H

#include "stores/client.h"

/* What the server is: how to reach it, and in which tongue. */
struct server_kind {
	/* NULL, or what to use instead of one wire: the server is many. */
	struct map *(*map)(struct server_kind *self, struct watch watch);
	/* A wire to it, not connected yet; NULL without memory. */
	struct wire *(*wire)(struct server_kind *self, struct watch watch);
	void (*free)(struct server_kind *self);
	bool lends_ahead; /* of store.h */
};

struct server_config {
	struct gale_allocator *allocator;
	struct server_kind *kind; /* the store's from then on */
	uint64_t quarantine_us;   /* 0: a minute */
	uint64_t seed;
	/* To the host's log; NULL: there is none. */
	void (*say)(void *self, enum gale_level level, const char *text);
	void *sayer;
};

/* NULL without memory; the kind is then still the caller's. */
struct store *server_open(const struct server_config *config);

#endif
