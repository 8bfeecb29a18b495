/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * part.h -- a store that a program may do without: all that talks to one kind of server.
 *
 *     face/store.c -> part_find -> libgale.so: stores/parts/loaded.c, dlopen -> libgale-redis.so
 *                               `- all else:   stores/parts/linked.c, which has it linked in
 *
 * A part makes a server_kind, and that makes wires (stores/wire.h); the clients, lanes and
 * turns above the wires are libgale's.  A part that is loaded has its own copy of the pure code
 * below (URLs, streams, names), which keeps no state, and gale_panic is libgale's in both
 * (spec/decisions/0029).
 *
 * Invariants
 *
 *   PART-1  A part is used by the libgale of its own version and by no other: structs that
 *           both know may differ in any other.
 *   PART-2  No part has variables that a libgale has, too: there is one state.
 *
 * Threads   Any.
 */
#ifndef STORES_PART_H
#define STORES_PART_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/gale.h>

#include "stores/server.h"
#include "stores/url.h"

/* A layout that changes between two versions is found only by people who build both: the version
 * is the interface. */
#define PART_INTERFACE                                                                 \
	(GALE_VERSION_MAJOR * 1000000 + GALE_VERSION_MINOR * 1000 + GALE_VERSION_PATCH)

struct store_part {
	/* False: *ret_fault says what is wrong with the URL. */
	bool (*check)(const char *url, struct url_fault *ret_fault);
	/* Names are looked up here, which may take a while.  NULL: *ret_fault says why;
	 * GALE_ERR_MEMORY has no text.  Else a text there is a warning. */
	struct server_kind *(*kind)(struct gale_allocator *allocator, const char *url,
	                            struct url_fault *ret_fault);
};

/* What libgale-redis.so and libgale-postgres.so export as gale_part. */
struct store_part_table {
	uint32_t interface; /* first: PART_INTERFACE of its build */
	const struct store_part *part;
	/* Before anything else: the function to call when an invariant is broken. */
	void (*enter)(void (*panic)(const char *file, int line, const char *what));
};

enum store_part_name {
	PART_REDIS,
	PART_POSTGRES,
};

/* NULL: *ret_fault says that it is not there, and what to install: GALE_ERR_NOT_BUILT. */
const struct store_part *part_find(enum store_part_name name,
                                   struct url_fault *ret_fault);

extern const struct store_part redis_part, postgres_part;

#endif
