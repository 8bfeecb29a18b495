/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* cluster.c -- CLUSTER SLOTS of one node after the other, and what nodes say by the way. */
#include "stores/redis/cluster.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/redis/reply.h"

#define PATIENCE_NS UINT64_C(300000000) /* with one node */
#define PAUSE_NS UINT64_C(50000000) /* after an answer; doubled while nothing changes */
#define PAUSE_DOUBLINGS 4           /* up to 800 ms, and half of it by lot */
#define QUIET_NS UINT64_C(3000000000) /* then the first pause is a short one again */
#define PARTS_MOST 65536              /* of an answer: about 4,000 ranges of slots */
#define STRING_MOST 1024
#define READ_MOST 16384

enum phase {
	QUIET,
	CONNECTING,
	ASKING,
};

struct node {
	struct stream_address address; /* without bytes: there is no such node */
	bool has_wire;
};

struct cluster {
	struct map map; /* first */
	struct redis_site *site;
	struct names_found found; /* the URL's */
	enum phase phase;
	bool is_doubted;
	mono due;           /* quiet: not to ask before; else: to give this node up */
	size_t next;        /* the node that is asked */
	size_t tries;       /* that did not answer, in a row */
	uint32_t unchanged; /* answers, or rounds without one, in a row */
	uint64_t lot;
	struct stream_address asked;
	struct stream stream;
	struct redis_text out;
	struct redis_intake intake;
	struct node nodes[MAP_NODES_MOST];
	uint32_t owners[MAP_BUCKETS];
	struct watch watch;
};

/* ---- Keys ------------------------------------------------------------------------ */

uint16_t redis_crc16(const uint8_t *bytes, size_t count)
{
	unsigned crc = 0;

	for (size_t i = 0; i < count; i++) {
		crc ^= (unsigned)bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
	}
	return (uint16_t)crc;
}

uint8_t redis_bucket(const uint8_t *key, size_t count)
{
	return (uint8_t)redis_crc16(key, count);
}

/* Of {bNN} only what is within the braces counts. */
uint16_t redis_slot(uint8_t bucket)
{
	static const uint8_t tag_at = 1, tag_count = 3;
	uint8_t key[REDIS_KEY_MAX];

	(void)redis_generation_key(key, "", bucket);
	return redis_crc16(key + tag_at, tag_count) % REDIS_SLOTS;
}

static uint8_t map_bucket(const struct map *map, const uint8_t *key, uint32_t key_len)
{
	(void)map;
	return redis_bucket(key, key_len);
}

/* ---- Nodes ----------------------------------------------------------------------- */

static bool is_same(const struct stream_address *one,
                    const struct stream_address *other)
{
	return one->count == other->count &&
	       memcmp(&one->bytes, &other->bytes, one->count) == 0;
}

static bool owns(const uint32_t *owners, uint32_t node)
{
	for (size_t i = 0; i < MAP_BUCKETS; i++)
		if (owners[i] == node)
			return true;
	return false;
}

static bool map_is_needed(const struct map *map, uint32_t node)
{
	return owns(((const struct cluster *)map)->owners, node);
}

/* more: owners that are just being told. */
static bool is_free(const struct cluster *cluster, uint32_t node, const uint32_t *more)
{
	return !cluster->nodes[node].has_wire && !owns(cluster->owners, node) &&
	       !owns(more, node);
}

static uint32_t find_node(struct cluster *cluster, const struct stream_address *address,
                          const uint32_t *more)
{
	if (address->count == 0)
		return MAP_NOWHERE;
	for (uint32_t i = 0; i < MAP_NODES_MOST; i++)
		if (is_same(&cluster->nodes[i].address, address))
			return i;
	for (uint32_t i = 0; i < MAP_NODES_MOST; i++)
		if (is_free(cluster, i, more)) {
			cluster->nodes[i].address = *address;
			return i;
		}
	return MAP_NOWHERE;
}

static void forget_useless(struct cluster *cluster)
{
	for (uint32_t i = 0; i < MAP_NODES_MOST; i++)
		if (is_free(cluster, i, cluster->owners))
			cluster->nodes[i].address.count = 0;
}

static void set_port(struct stream_address *address, uint16_t port)
{
	if (address->bytes.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&address->bytes)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&address->bytes)->sin_port = htons(port);
}

/* host: "" is the one that says so. */
static void read_place(const struct stream_address *who, const char *host,
                       uint16_t port, struct stream_address *ret_address)
{
	if (host[0] != '\0') {
		(void)stream_numeric(host, port, ret_address);
		return;
	}
	*ret_address = *who;
	set_port(ret_address, port);
}

/* ---- What nodes say -------------------------------------------------------------- */

static bool is_word(const redisReply *part, const char *text)
{
	return part->type == REDIS_REPLY_STRING && strcmp(part->str, text) == 0;
}

/* The ip that stands beside a name. */
static const char *ip_of(const redisReply *node)
{
	const redisReply *more = node->elements > 3 ? node->element[3] : NULL;

	if (!more || more->type != REDIS_REPLY_ARRAY)
		return "?";
	for (size_t i = 0; i + 1 < more->elements; i += 2)
		if (is_word(more->element[i], "ip") &&
		    more->element[i + 1]->type == REDIS_REPLY_STRING)
			return more->element[i + 1]->str;
	return "?";
}

static bool read_node(const struct cluster *cluster, const redisReply *node,
                      struct stream_address *ret_address)
{
	const redisReply *host, *port;

	if (node->type != REDIS_REPLY_ARRAY || node->elements < 2)
		return false;
	host = node->element[0];
	port = node->element[1];
	if ((host->type != REDIS_REPLY_STRING && host->type != REDIS_REPLY_NIL) ||
	    port->type != REDIS_REPLY_INTEGER || port->integer < 1 ||
	    port->integer > UINT16_MAX)
		return false;
	read_place(&cluster->asked, host->type == REDIS_REPLY_NIL ? "" : host->str,
	           (uint16_t)port->integer, ret_address);
	if (ret_address->count == 0)
		(void)stream_numeric(ip_of(node), (uint16_t)port->integer, ret_address);
	return true;
}

struct range {
	long long first, last;
	struct stream_address address;
};

static bool read_range(const struct cluster *cluster, const redisReply *part,
                       struct range *ret_range)
{
	if (part->type != REDIS_REPLY_ARRAY || part->elements < 3 ||
	    part->element[0]->type != REDIS_REPLY_INTEGER ||
	    part->element[1]->type != REDIS_REPLY_INTEGER)
		return false;
	ret_range->first = part->element[0]->integer;
	ret_range->last = part->element[1]->integer;
	return ret_range->first >= 0 && ret_range->first <= ret_range->last &&
	       ret_range->last < REDIS_SLOTS &&
	       read_node(cluster, part->element[2], &ret_range->address);
}

static void give_range(struct cluster *cluster, const struct range *range,
                       uint32_t *owners)
{
	uint32_t node = MAP_NOWHERE;

	for (size_t i = 0; i < MAP_BUCKETS; i++) {
		uint16_t slot = redis_slot((uint8_t)i);

		if (slot < range->first || slot > range->last)
			continue;
		if (node == MAP_NOWHERE)
			node = find_node(cluster, &range->address, owners);
		owners[i] = node;
	}
}

/* All of it, or nothing. */
static bool learn(struct cluster *cluster, const redisReply *reply)
{
	uint32_t owners[MAP_BUCKETS];
	struct range range;

	memset(owners, 0xff, sizeof(owners)); /* MAP_NOWHERE */
	for (size_t i = 0; i < reply->elements; i++)
		if (!read_range(cluster, reply->element[i], &range))
			return false;
	for (size_t i = 0; i < reply->elements; i++) {
		(void)read_range(cluster, reply->element[i], &range);
		give_range(cluster, &range, owners);
	}
	if (memcmp(owners, cluster->owners, sizeof(owners)) != 0)
		cluster->unchanged = 0;
	memcpy(cluster->owners, owners, sizeof(owners));
	forget_useless(cluster);
	return reply->elements > 0;
}

/* ---- Asking ---------------------------------------------------------------------- */

static void hang_up(struct cluster *cluster)
{
	stream_close(&cluster->stream);
	redis_intake_close(&cluster->intake);
	redis_text_cut(&cluster->out, cluster->out.count);
}

/* Not again before a while. */
static void rest(struct cluster *cluster, mono now)
{
	uint32_t doublings =
	    cluster->unchanged < PAUSE_DOUBLINGS ? cluster->unchanged : PAUSE_DOUBLINGS;
	uint64_t pause = PAUSE_NS << doublings;

	hang_up(cluster);
	cluster->lot =
	    cluster->lot * UINT64_C(6364136223846793005) + 1442695040888963407;
	cluster->due =
	    mono_after(now, pause + pause * (cluster->lot >> 33) / (UINT64_C(1) << 32));
	cluster->phase = QUIET;
	cluster->unchanged++;
	cluster->tries = 0;
	cluster->map.changes++;
	cluster->map.tried = now;
}

static size_t count_nodes(const struct cluster *cluster)
{
	size_t count = 0;

	for (size_t i = 0; i < MAP_NODES_MOST; i++)
		count += cluster->nodes[i].address.count > 0;
	return count;
}

static size_t count_known(const struct cluster *cluster)
{
	return count_nodes(cluster) + cluster->found.count;
}

/* The nodes in turn, and then those of the URL: one of those may be a primary that was replaced
 * and does not know it. */
static const struct stream_address *next_known(struct cluster *cluster)
{
	size_t nodes = count_nodes(cluster);

	if (cluster->tries >= nodes)
		return &cluster->found
		            .addresses[(cluster->tries - nodes) % cluster->found.count];
	for (;;) {
		size_t i = cluster->next++ % MAP_NODES_MOST;

		if (cluster->nodes[i].address.count > 0)
			return &cluster->nodes[i].address;
	}
}

static void connect_to_next(struct cluster *cluster, mono now)
{
	cluster->asked = *next_known(cluster);
	cluster->due = mono_after(now, PATIENCE_NS);
	cluster->phase = CONNECTING;
	if (!redis_intake_open(&cluster->intake, STRING_MOST) ||
	    !stream_connect(&cluster->stream, &cluster->asked))
		return; /* which the stream then says */
	cluster->intake.parts_most = cluster->intake.parts_left = PARTS_MOST;
}

static void try_next(struct cluster *cluster, const char *why, mono now)
{
	snprintf(cluster->map.text, WIRE_TEXT, "no node tells where keys are: %s", why);
	hang_up(cluster);
	names_look_again(&cluster->site->names, now);
	names_list(&cluster->site->names, &cluster->found);
	if (++cluster->tries >= count_known(cluster))
		rest(cluster, now);
	else
		connect_to_next(cluster, now);
}

/* Why the stream is, or what else is to be said. */
static const char *over(const struct cluster *cluster, const char *what)
{
	const char *why = stream_why(&cluster->stream);

	return why[0] != '\0' ? why : what;
}

static bool put_question(struct cluster *cluster)
{
	const struct remote_bytes words[2] = { redis_word("CLUSTER"),
		                               redis_word("SLOTS") };

	return redis_put_auth(&cluster->out, &cluster->site->url.is) &&
	       redis_put_words(&cluster->out, words, 2);
}

static void hear(struct cluster *cluster, const redisReply *reply, mono now)
{
	struct redis_said error;

	if (reply->type == REDIS_REPLY_STATUS)
		return; /* of AUTH */
	if (redis_is_error(reply, &error)) {
		try_next(cluster, error.text, now);
	} else if (reply->type != REDIS_REPLY_ARRAY || !learn(cluster, reply)) {
		try_next(cluster, "what one says of slots is strange", now);
	} else {
		cluster->map.text[0] = '\0';
		rest(cluster, now);
	}
}

static void hear_some(struct cluster *cluster, mono now)
{
	uint8_t bytes[READ_MOST];
	ptrdiff_t count = stream_read(&cluster->stream, bytes, sizeof(bytes));
	redisReply *reply;

	if (count < 0 || !redis_intake_feed(&cluster->intake, bytes, (size_t)count)) {
		try_next(cluster, over(cluster, "the connection is over"), now);
		return;
	}
	while (cluster->phase == ASKING) {
		if (!redis_intake_take(&cluster->intake, &reply)) {
			try_next(cluster, "what one says is no reply", now);
			return;
		}
		if (!reply)
			return;
		hear(cluster, reply, now);
		redis_reply_free(reply);
	}
}

static void say_some(struct cluster *cluster, mono now)
{
	ptrdiff_t sent =
	    stream_send(&cluster->stream, cluster->out.bytes, cluster->out.count);

	if (sent < 0)
		try_next(cluster, over(cluster, "the connection is over"), now);
	else
		redis_text_cut(&cluster->out, (size_t)sent);
}

static void go_on_connecting(struct cluster *cluster, mono now)
{
	switch (stream_turn(&cluster->stream)) {
	case STREAM_OPENING:
		break;
	case STREAM_OPEN:
		cluster->phase = ASKING;
		if (!put_question(cluster))
			try_next(cluster, "no memory", now);
		break;
	case STREAM_OVER:
		try_next(cluster, over(cluster, "cannot connect"), now);
	}
}

/* Those that refuse at once are passed over at once. */
static void connect_on(struct cluster *cluster, mono now)
{
	do
		go_on_connecting(cluster, now);
	while (cluster->phase == CONNECTING && cluster->stream.fd < 0);
}

static bool is_due(const struct cluster *cluster, mono now)
{
	return mono_reached(now, cluster->due);
}

static void begin(struct cluster *cluster, mono now)
{
	if (mono_reached(now, mono_after(cluster->due, QUIET_NS)))
		cluster->unchanged = 0;
	cluster->is_doubted = false;
	if (count_known(cluster) > 0)
		connect_to_next(cluster, now);
	else
		try_next(cluster, "no address is known of its hosts", now);
}

static mono map_turn(struct map *map, mono now)
{
	struct cluster *cluster = (struct cluster *)map;

	if (cluster->phase == QUIET && cluster->is_doubted && is_due(cluster, now))
		begin(cluster, now);
	else if (cluster->phase != QUIET && is_due(cluster, now))
		try_next(cluster, "one does not answer", now);
	if (cluster->phase == CONNECTING)
		connect_on(cluster, now);
	if (cluster->phase == ASKING)
		say_some(cluster, now);
	if (cluster->phase == ASKING)
		hear_some(cluster, now);
	if (cluster->phase != QUIET || cluster->is_doubted)
		return cluster->due;
	return (mono){ UINT64_MAX };
}

/* ---- A map ----------------------------------------------------------------------- */

static uint32_t map_node(const struct map *map, uint8_t bucket)
{
	return ((const struct cluster *)map)->owners[bucket];
}

static void map_doubt(struct map *map)
{
	((struct cluster *)map)->is_doubted = true;
}

static bool map_is_learning(const struct map *map, mono now)
{
	const struct cluster *cluster = (const struct cluster *)map;

	return cluster->phase != QUIET || is_due(cluster, now);
}

static uint32_t map_other(struct map *map, uint32_t node,
                          const struct wire_place *place)
{
	struct cluster *cluster = (struct cluster *)map;
	struct stream_address address;

	read_place(&cluster->nodes[node].address, place->host, place->port, &address);
	return find_node(cluster, &address, cluster->owners);
}

static uint32_t map_moved(struct map *map, uint8_t bucket, uint32_t node,
                          const struct wire_place *place)
{
	struct cluster *cluster = (struct cluster *)map;
	uint32_t to = map_other(map, node, place);

	if (to != MAP_NOWHERE && cluster->owners[bucket] != to) {
		cluster->owners[bucket] = to;
		cluster->unchanged = 0;
	}
	return to;
}

static struct wire *map_wire(struct map *map, uint32_t node)
{
	struct cluster *cluster = (struct cluster *)map;
	struct wire *wire =
	    redis_link_to(cluster->site, &cluster->nodes[node].address, cluster->watch);

	cluster->nodes[node].has_wire |= wire != NULL;
	return wire;
}

static void map_drop(struct map *map, uint32_t node)
{
	struct cluster *cluster = (struct cluster *)map;

	cluster->nodes[node].has_wire = false;
	forget_useless(cluster);
}

static void map_free(struct map *map)
{
	struct cluster *cluster = (struct cluster *)map;

	hang_up(cluster);
	redis_text_free(&cluster->out);
	memory_give(cluster->site->allocator, cluster, sizeof(*cluster));
}

static const struct map_ops map_ops = {
	.bucket = map_bucket,
	.node = map_node,
	.doubt = map_doubt,
	.turn = map_turn,
	.is_learning = map_is_learning,
	.moved = map_moved,
	.other = map_other,
	.wire = map_wire,
	.is_needed = map_is_needed,
	.drop = map_drop,
	.free = map_free,
};

struct map *redis_cluster_map(struct redis_site *site, struct watch watch)
{
	struct cluster *cluster = memory_take(site->allocator, sizeof(*cluster));

	if (!cluster)
		return NULL;
	cluster->map.ops = &map_ops;
	cluster->site = site;
	names_list(&site->names, &cluster->found);
	cluster->lot = (uintptr_t)cluster;
	cluster->out.allocator = site->allocator;
	cluster->next = MAP_NODES_MOST; /* those of the URL first */
	memset(cluster->owners, 0xff, sizeof(cluster->owners)); /* MAP_NOWHERE */
	cluster->watch = watch;
	stream_init(&cluster->stream, watch, redis_tls(site));
	return &cluster->map;
}
