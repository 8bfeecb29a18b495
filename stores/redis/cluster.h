/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * cluster.h -- which node of a Redis Cluster has a key.
 *
 *     key -> bucket, one of 256 -> slot of {bNN}, one of 16384 -> node, by CLUSTER SLOTS
 *
 * A call is a script on keys that are all in one slot, so keys share the few slots of the
 * buckets' tags.  A bucket is the low byte of the key's CRC-16, for ever: nodes of other
 * versions must find the same.  256 of them lie evenly enough on up to a few dozen
 * primaries.
 *
 * A slot's owner is asked for when it is not known, and again when a node has said MOVED
 * or cannot be reached: of the nodes that are known and those of the URL, one after the
 * other, and at most a few times a second.  Names are not looked up: a node that is known by
 * a name only tells its address, too (cluster-preferred-endpoint-type ip, or its metadata).
 *
 * Threads   redis_cluster_map and what it makes: the shard's actor.  The rest is pure: any.
 */
#ifndef STORES_REDIS_CLUSTER_H
#define STORES_REDIS_CLUSTER_H

#include "stores/map.h"
#include "stores/redis/link.h"

#define REDIS_SLOTS 16384

/* CRC-16 as Redis Cluster has it: polynomial 1021, from 0, not reflected. */
uint16_t redis_crc16(const uint8_t *bytes, size_t count);
uint8_t redis_bucket(const uint8_t *key, size_t count);
/* Of all keys that are in the bucket, whatever their prefix. */
uint16_t redis_slot(uint8_t bucket);

/* NULL without memory. */
struct map *redis_cluster_map(struct redis_site *site, struct watch watch);

#endif
