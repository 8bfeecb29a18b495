/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * wire.h -- what is said to a Redis server: keys, commands, and a batch as one of them.
 *
 *     jobs --redis_put_call--> text --> EVALSHA step.lua, beat.lua, claim.lua --> reply.h
 *
 * A text is a buffer of whole commands.  User data is only ever written with its length
 * before it, and never into the script or a hash tag.
 *
 * Keys      <prefix>{bNN}:<the key's bytes>   of a key; NN is its bucket, so that a
 *                                             cluster keeps a bucket in one slot
 *           <prefix>{bNN}rows:<its bytes>     of the rows apart of a key with a crowd
 *           <prefix>{bNN}generation           of the generation, one for each bucket
 *                                             that is named by a call
 *           <prefix>{bNN}group:<its name>     of a group, its leases, and its estimates; NN
 *           <prefix>{bNN}leases:<its name>    is its name's bucket
 *           <prefix>{bNN}estimates:<its name>
 *           <prefix>{bNN}pool:<its name>      of a pool, and of its claims; the same
 *           <prefix>{bNN}claims:<its name>
 *           The prefix has no braces: so the first { ends it, and no two pairs of
 *           prefix and key look alike.
 * Channels  <prefix>nudges:NN                 of nudges to groups whose names have the
 *                                             mark ..NN, in hex (store_mark)
 * Values    as value.h has them; a window that has rows is folded.
 * Needs     Redis 6.2 or later (SET with PXAT and KEEPTTL), a cluster 7.0, and of an ACL,
 *           on keys of the prefix, no more than
 *               eval, evalsha, script|load, info, time, get, set, setrange, del
 *               hget, hset, hdel, exists, pexpireat   for keys with a crowd, groups and pools
 *               hgetall                               for pools
 *               hmget, zadd, zcard, zrange, zrem      for groups
 *               publish, subscribe, and the channels of the prefix   for nudges: without
 *                              them nodes hear of each other only when they beat by
 *                              themselves, and the server notes that it was not let
 *               mget           without it each lend takes the script's long way, and the
 *                              server notes that it was not let
 *               client|setname without it connections have no name, and the server notes
 *                              that it was not let
 *               select         with db=
 *               wait           with durable=
 *               cluster|slots, asking   in a cluster
 * Threads   Pure: any, on different texts.
 */
#ifndef STORES_REDIS_WIRE_H
#define STORES_REDIS_WIRE_H

#include <gale/gale.h>

#include "stores/redis/script.h"
#include "stores/redis/url.h"
#include "stores/remote.h"

#define REDIS_DECIMAL_MOST 20
#define REDIS_KEY_MAX (REDIS_PREFIX_MAX + 15 + STORE_KEY_MAX)
#define REDIS_WORDS_MOST (7 + 6 * REMOTE_BATCH_MOST) /* of a command */
#define REDIS_CHANNELS 256
#define REDIS_CHANNEL_MAX (REDIS_PREFIX_MAX + 10)

struct redis_text {
	struct gale_allocator *allocator;
	uint8_t *bytes; /* NULL, or room of them */
	size_t count;
	size_t room;
};

void redis_text_free(struct redis_text *text);
/* The first so many bytes have been sent. */
void redis_text_cut(struct redis_text *text, size_t count);

/* out has room for REDIS_KEY_MAX; returns how many bytes it wrote. */
size_t redis_key(uint8_t *out, const char *prefix, uint8_t bucket,
                 struct remote_bytes key);
/* kind: REDIS_GROUP, and others. */
#define REDIS_ROWS "rows"
#define REDIS_GROUP "group"
#define REDIS_LEASES "leases"
#define REDIS_ESTIMATES "estimates"
#define REDIS_POOL "pool"
#define REDIS_CLAIMS "claims"
size_t redis_group_key(uint8_t *out, const char *prefix, uint8_t bucket,
                       const char *kind, struct remote_bytes name);
/* Of nudges to the groups of that mark; out has room for REDIS_CHANNEL_MAX. */
size_t redis_channel(uint8_t *out, const char *prefix, uint64_t mark);
/* A message that is published there; false if it is no nudge. */
bool redis_read_nudge(const uint8_t *bytes, size_t count,
                      struct store_nudge *ret_nudge);
size_t redis_generation_key(uint8_t *out, const char *prefix, uint8_t bucket);

/* As a server writes it too; out has room for REDIS_DECIMAL_MOST.  Returns how many bytes it
 * wrote. */
size_t redis_decimal(char *out, uint64_t number);

/* One command, as its words.  False: no memory, and the text is as it was. */
bool redis_put_words(struct redis_text *text, const struct remote_bytes *words,
                     size_t count);
/* SCRIPT LOAD. */
bool redis_put_script(struct redis_text *text, const struct redis_script *script);

/* A batch. */
struct redis_call {
	const struct redis_script *script;
	const char *prefix;
	struct remote_bytes generation; /* of the server; at most
	                                 * REMOTE_GENERATION_BYTES */
	uint8_t generation_bucket;      /* whose generation key is compared */
	uint64_t nonce; /* comes back with the reply; at most GALE_UNITS_MAX */
	uint64_t
	    sure_until_us; /* the server need not look at its tenure until then, by its
	                         * clock; 0: it does */
	uint64_t now_us; /* about what time the server has: picks the month of quotas */
	const struct remote_job *jobs;
	const uint8_t *buckets; /* of the jobs' keys */
	size_t count;           /* 1 to REMOTE_BATCH_MOST */
};

/* Its jobs are beats, of beat.lua, or claims, of claim.lua, or none of both.  False: no memory, and the text is as it
 * was. */
bool redis_put_call(struct redis_text *text, const struct redis_call *call);

#endif
