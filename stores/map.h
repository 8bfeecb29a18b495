/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * map.h -- which of several servers a key is asked of.
 *
 * A key is in one of MAP_BUCKETS buckets, for ever; a bucket is with one node at a time,
 * and what the map knows of that may be old: then the node that is asked says so.
 *
 *     key -> bucket -> node -> wire
 *
 * Threads   All of it: its client's, the shard's actor.
 * Limits    MAP_NODES_MOST nodes at a time; a bucket that is with one more is nowhere.
 */
#ifndef STORES_MAP_H
#define STORES_MAP_H

#include "stores/wire.h"

#define MAP_BUCKETS 256
#define MAP_NODES_MOST 128
#define MAP_NOWHERE UINT32_MAX

struct map;

struct map_ops {
	uint8_t (*bucket)(const struct map *self, const uint8_t *key, uint32_t key_len);
	/* MAP_NOWHERE: it is not known. */
	uint32_t (*node)(const struct map *self, uint8_t bucket);

	/* A bucket was not where it should be: all is learned again, but not too often. */
	void (*doubt)(struct map *self);
	/* Learns; returns when it wants to be called again. */
	mono (*turn)(struct map *self, mono now);
	/* It is being learned, or soon will be. */
	bool (*is_learning)(const struct map *self, mono now);

	/* What a node said of a bucket: it is there now.  Returns which node that is;
	 * MAP_NOWHERE: none that could be asked. */
	uint32_t (*moved)(struct map *self, uint8_t bucket, uint32_t node,
	                  const struct wire_place *place);
	/* The same, of one that may be asked but does not have the bucket yet. */
	uint32_t (*other)(struct map *self, uint32_t node,
	                  const struct wire_place *place);

	/* A wire to a node, which keeps its number until it is dropped; NULL without
	 * memory. */
	struct wire *(*wire)(struct map *self, uint32_t node);
	/* Does any bucket need it? */
	bool (*is_needed)(const struct map *self, uint32_t node);
	void (*drop)(struct map *self, uint32_t node);
	void (*free)(struct map *self);
};

struct map {
	const struct map_ops *ops;
	uint64_t changes;     /* how often it was learned, or could not be */
	mono tried;           /* when that was last; 0: never */
	char text[WIRE_TEXT]; /* why it could not; "": it could */
};

#endif
