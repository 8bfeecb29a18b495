/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * memory.h -- the embedded store: keys in this process, shared by all that open its name.
 *
 * Threads   memory_open: any, at once.
 * Limits    max_keys keys, as many groups and members of groups together (groups.h), and no
 *           more memory than they need.  With max_keys live keys
 *           a new one is refused; an expired one makes room.
 */
#ifndef STORES_MEMORY_H
#define STORES_MEMORY_H

#include "stores/store.h"

/* What a store is opened with.  It may outlive its opener's runtime, but not the host's
 * allocator and clock. */
struct memory_config {
	const char *name; /* "": it is shared with no other */
	uint64_t max_keys;
	struct gale_allocator *allocator;
	struct gale_clock *clock; /* NULL: one of its own */
};

/* An open store of that name, or a new one.  NULL: no memory, or no random numbers. */
struct store *memory_open(const struct memory_config *config);

#endif
