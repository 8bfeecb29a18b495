/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* link.c -- greets, sends batches, and knows which reply is to what. */
#include "stores/redis/link.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/names.h"
#include "stores/redis/reply.h"
#include "stores/redis/scout.h"
#include "stores/redis/wire.h"
#include "stores/stream.h"

#define PORT_DEFAULT 6379
#define SENTINEL_PORT_DEFAULT 26379
#define SENTINEL_SCHEME "redis+sentinel"
#define AWAITED_MOST 64
#define OUT_MOST ((size_t)1 << 22) /* bytes that wait to be sent */
#define READ_MOST 65536            /* bytes, in one go */
#define RUN_NAME 12                /* of a run's name, as many as tell it from others */
#define DB_MOST 1000000

/* ---- The kind -------------------------------------------------------------------- */

struct kind {
	struct server_kind is; /* first */
	struct gale_allocator *allocator;
	struct stream_address socket; /* without hosts */
	struct names names;           /* of hosts ... */
	bool has_names;               /* ... if they were found */
	uint64_t db;
	const char *service;           /* that the hosts, sentinels, know; NULL: none */
	const char *sentinel_password; /* "": none */
	char prefix[REDIS_PREFIX_MAX + 1];
	struct url url;
};

/* ---- The link -------------------------------------------------------------------- */

enum awaited_what {
	A_NOD, /* nothing but no error */
	THE_INFO,
	THE_GENERATION,
	A_BATCH,
};

struct awaited {
	enum awaited_what what;
	struct remote_batch batch;
};

enum phase {
	LOOKING, /* for the primary */
	CONNECTING,
	GREETING,
	READY,
	BROKEN,
};

struct link {
	struct wire wire; /* first */
	struct kind *kind;
	size_t address; /* that is tried next */
	struct names_found found;
	enum phase phase;
	struct scout scout; /* only if there is a service */
	uint64_t answer; /* of the scout's, that was known before it was sent out ... */
	uint64_t change; /* ... and the change since which this is the primary */
	struct stream stream;
	struct redis_text out;
	struct redis_intake intake;
	char run[RUN_NAME + 2]; /* with its colon */
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
	bool warned;
	uint64_t sent; /* awaited so far */
	uint64_t heard;
	struct awaited awaited[AWAITED_MOST];
	struct remote_told told[REMOTE_BATCH_MOST];
	uint8_t bytes[READ_MOST];
};

static void give_up(struct link *link, const char *what, const char *why)
{
	if (link->phase == BROKEN)
		return;
	link->phase = BROKEN;
	snprintf(link->wire.text, WIRE_TEXT, "redis: %s%s%s", what, why[0] ? ": " : "",
	         why);
}

static void await(struct link *link, enum awaited_what what)
{
	gale_assert(link->sent - link->heard < AWAITED_MOST);
	link->awaited[link->sent++ % AWAITED_MOST].what = what; /* B3 */
}

/* ---- Greeting -------------------------------------------------------------------- */

static struct remote_bytes word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static void say(struct link *link, const struct remote_bytes *words, size_t count,
                enum awaited_what what)
{
	if (redis_put_words(&link->out, words, count))
		await(link, what);
	else
		give_up(link, "no memory", "");
}

static void say_who(struct link *link)
{
	const struct url *url = &link->kind->url;
	struct remote_bytes words[3] = { word("AUTH"), word(url->user),
		                         word(url->password) };

	if (url->password[0] == '\0')
		return;
	if (url->user[0] == '\0')
		words[1] = words[2];
	say(link, words, url->user[0] == '\0' ? 2 : 3, A_NOD);
}

static void say_where(struct link *link)
{
	char number[24];
	struct remote_bytes words[2] = { word("SELECT") };

	if (link->kind->db == 0)
		return;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)link->kind->db);
	words[1] = word(number);
	say(link, words, 2, A_NOD);
}

static void load_script(struct link *link)
{
	if (redis_put_script(&link->out, &redis_step_script))
		await(link, A_NOD);
	else
		give_up(link, "no memory", "");
}

static void ask_generation(struct link *link)
{
	uint8_t key[REDIS_KEY_MAX];
	struct remote_bytes words[5] = {
		word("EVAL"),
		{ (const uint8_t *)redis_greet_script.text, redis_greet_script.count },
		word("1"),
		{ key, redis_generation_key(key, link->kind->prefix, 0) },
		word(link->run),
	};

	say(link, words, 5, THE_GENERATION);
}

static void greet(struct link *link)
{
	const struct remote_bytes info = word("INFO");

	link->phase = GREETING;
	say_who(link);
	say_where(link);
	say(link, &info, 1, THE_INFO);
}

/* Once for all batches that are refused together. */
static void greet_again(struct link *link)
{
	if (link->phase != READY)
		return;
	link->phase = GREETING;
	load_script(link);
	ask_generation(link);
}

/* The value of a line of INFO, cut at its end; "" if there is none. */
static const char *line_of(const char *info, const char *name, char *out, size_t most)
{
	size_t length = strlen(name);
	const char *at = info;

	out[0] = '\0';
	while (at && (strncmp(at, name, length) != 0 || at[length] != ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return out;
	at += length + 1;
	length = strcspn(at, "\r\n");
	if (length >= most)
		length = most - 1;
	memcpy(out, at, length);
	out[length] = '\0';
	return out;
}

/* What this server can promise is said once, and not at each connection. */
static void warn(struct link *link, const char *info)
{
	char policy[32], memory[32], aof[8];

	if (link->warned)
		return;
	link->warned = true;
	line_of(info, "maxmemory_policy", policy, sizeof(policy));
	line_of(info, "maxmemory", memory, sizeof(memory));
	line_of(info, "aof_enabled", aof, sizeof(aof));
	if (strcmp(memory, "0") != 0 && strcmp(policy, "noeviction") != 0)
		snprintf(link->wire.text, WIRE_TEXT,
		         "redis: maxmemory-policy is %s: keys may be evicted, and what "
		         "was admitted under them forgotten",
		         policy);
	else if (strcmp(aof, "1") != 0)
		snprintf(link->wire.text, WIRE_TEXT,
		         "redis: no append-only file: after a restart nothing is "
		         "granted until the window turns, or for a minute");
}

static void hear_info(struct link *link, const redisReply *reply)
{
	char role[16], loading[8], run[64];

	if (reply->type != REDIS_REPLY_STRING) {
		give_up(link, "INFO says nothing", "");
		return;
	}
	line_of(reply->str, "role", role, sizeof(role));
	line_of(reply->str, "loading", loading, sizeof(loading));
	line_of(reply->str, "run_id", run, sizeof(run));
	if (strcmp(role, "master") != 0)
		give_up(link, "it is a replica", ""); /* B5 */
	else if (strcmp(loading, "1") == 0)
		give_up(link, "it is loading", "");
	else if (strlen(run) < RUN_NAME)
		give_up(link, "INFO has no run_id", "");
	if (link->phase == BROKEN)
		return;
	snprintf(link->run, sizeof(link->run), "%.*s:", RUN_NAME, run);
	warn(link, reply->str);
	load_script(link); /* not before: who is not let in may not say so much */
	ask_generation(link);
}

static void hear_generation(struct link *link, const redisReply *reply)
{
	const char *since =
	    reply->type == REDIS_REPLY_STRING ? strchr(reply->str, ':') : NULL;

	if (!since || reply->len > REMOTE_GENERATION_BYTES ||
	    !url_number(since + 1, INSTANT_MAX_US, &link->wire.since_us)) {
		give_up(link, "its generation is none of ours", "");
		return;
	}
	link->generation_count = (size_t)reply->len;
	memcpy(link->generation, reply->str, link->generation_count);
	link->phase = READY;
}

/* ---- Batches --------------------------------------------------------------------- */

static enum wire_reply_kind kind_of(enum redis_word word)
{
	switch (word) {
	case REDIS_TOLD:
		return WIRE_TOLD;
	case REDIS_GENERATION:
	case REDIS_NOSCRIPT:
		return WIRE_AGAIN; /* B4 */
	case REDIS_LATER:
	case REDIS_READONLY:
	case REDIS_FULL:
	case REDIS_NOT_LET:
	case REDIS_MOVED:
	case REDIS_ASK:
		return WIRE_LATER;
	default:
		return WIRE_WRONG;
	}
}

static void hear_batch(struct link *link, const struct remote_batch *batch,
                       const redisReply *reply)
{
	struct wire_reply said = { .nonce = batch->nonce,
		                   .told = link->told,
		                   .count = batch->count };
	struct redis_said meaning;

	redis_read_reply(reply, batch->nonce, batch->jobs, batch->count, link->told,
	                 &meaning);
	said.kind = kind_of(meaning.word);
	if (said.kind == WIRE_AGAIN)
		greet_again(link);
	else if (said.kind != WIRE_TOLD)
		give_up(link, "a call failed",
		        meaning.text[0] ? meaning.text : "its reply is strange");
	link->wire.home->on_reply(link->wire.home, &said);
}

/* ---- Hearing --------------------------------------------------------------------- */

static void hear(struct link *link, const redisReply *reply)
{
	struct awaited *awaited = &link->awaited[link->heard % AWAITED_MOST];
	struct redis_said error;

	if (link->heard == link->sent) {
		give_up(link, "a reply to nothing", ""); /* B3 */
		return;
	}
	link->heard++;
	if (awaited->what == A_BATCH) {
		hear_batch(link, &awaited->batch, reply);
		return;
	}
	if (redis_is_error(reply, &error))
		give_up(link, "it does not let us in", error.text);
	else if (awaited->what == THE_INFO)
		hear_info(link, reply);
	else if (awaited->what == THE_GENERATION)
		hear_generation(link, reply);
}

static void hear_all(struct link *link)
{
	redisReply *reply;

	while (link->phase != BROKEN) {
		if (!redis_intake_take(&link->intake, &reply)) {
			give_up(link, "what it says is no reply", "");
			return;
		}
		if (!reply)
			return;
		hear(link, reply);
		redis_reply_free(reply);
	}
}

static void read_some(struct link *link)
{
	ptrdiff_t count = READ_MOST;

	while (count == READ_MOST && link->phase != BROKEN) {
		count = stream_read(&link->stream, link->bytes, READ_MOST);
		if (count < 0)
			give_up(link, "the connection is over",
			        errno ? strerror(errno) : "");
		else if (!redis_intake_feed(&link->intake, link->bytes, (size_t)count))
			give_up(link, "what it says is no reply", "");
		else
			hear_all(link);
	}
}

static void send_some(struct link *link)
{
	ptrdiff_t sent = stream_send(&link->stream, link->out.bytes, link->out.count);

	if (sent < 0)
		give_up(link, "the connection is over", errno ? strerror(errno) : "");
	else
		redis_text_cut(&link->out, (size_t)sent);
}

/* ---- A wire ---------------------------------------------------------------------- */

static void connect_to(struct link *link, const struct stream_address *address)
{
	link->phase = CONNECTING;
	redis_intake_close(&link->intake);
	if (!redis_intake_open(&link->intake, REDIS_STRING_MOST))
		give_up(link, "no memory", "");
	else if (!stream_connect(&link->stream, address))
		give_up(link, "cannot connect", strerror(errno));
}

/* It may be another than before: nobody is connected to before a sentinel has told. */
static void look_for_primary(struct link *link)
{
	link->phase = LOOKING;
	link->answer = link->scout.answers;
	scout_hurry(&link->scout);
}

/* Where hosts were a while ago they may not be any more. */
static void find_hosts(struct link *link, mono now)
{
	if (link->address++ > 0)
		names_look_again(&link->kind->names, now);
	names_list(&link->kind->names, &link->found);
}

static void link_connect(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;
	struct kind *kind = link->kind;

	if (kind->url.host_count == 0) {
		connect_to(link, &kind->socket);
		return;
	}
	find_hosts(link, now);
	if (kind->service)
		look_for_primary(link);
	else
		connect_to(
		    link,
		    &link->found.addresses[(link->address - 1) % link->found.count]);
}

/* Connects to the primary, and away from one that is it no longer. B5 */
static void follow(struct link *link, mono now)
{
	struct scout *scout = &link->scout;

	scout_turn(scout, now);
	if (link->phase != LOOKING && link->change != scout->changes)
		give_up(link, "another server is the primary now", "");
	else if (link->phase == LOOKING && link->answer != scout->answers) {
		link->change = scout->changes;
		connect_to(link, &scout->primary);
	}
}

static void go_on_connecting(struct link *link)
{
	switch (stream_turn(&link->stream)) {
	case STREAM_OPENING:
		break;
	case STREAM_OPEN:
		greet(link);
		break;
	case STREAM_OVER:
		give_up(link, "cannot connect", errno ? strerror(errno) : "");
	}
}

static enum wire_state link_turn(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;

	if (link->kind->service && link->phase != BROKEN)
		follow(link, now);
	if (link->phase == CONNECTING)
		go_on_connecting(link);
	if (link->phase == GREETING || link->phase == READY) {
		read_some(link);
		if (link->phase != BROKEN)
			send_some(link);
	}
	if (link->phase == BROKEN)
		return WIRE_BROKEN;
	return link->phase == READY ? WIRE_READY : WIRE_OPENING;
}

/* A log may be longer than what is taken from any server: so long as its rule says. */
static void make_way(struct link *link, const struct remote_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		size_t most = batch->jobs[i].verb == REMOTE_READ
		                  ? remote_value_most(batch->jobs[i].rule)
		                  : 0;

		if (link->intake.string_most < most)
			link->intake.string_most = most;
	}
}

static bool link_send(struct wire *wire, const struct remote_batch *batch)
{
	static const uint8_t buckets[REMOTE_BATCH_MOST];
	struct link *link = (struct link *)wire;
	struct redis_call call = {
		.script = &redis_step_script,
		.prefix = link->kind->prefix,
		.generation = { (const uint8_t *)link->generation,
		                link->generation_count },
		.nonce = batch->nonce,
		.now_us = batch->guess_us,
		.jobs = batch->jobs,
		.buckets = buckets,
		.count = batch->count,
	};

	if (link->out.count > OUT_MOST || link->sent - link->heard == AWAITED_MOST ||
	    !redis_put_call(&link->out, &call))
		return false;
	make_way(link, batch);
	link->awaited[link->sent % AWAITED_MOST].batch = *batch;
	await(link, A_BATCH);
	return true;
}

static void link_hang_up(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	stream_close(&link->stream);
	redis_text_cut(&link->out, link->out.count);
	link->heard = link->sent;
	link->phase = BROKEN;
}

static void link_free(struct wire *wire)
{
	struct link *link = (struct link *)wire;
	struct gale_allocator *allocator = link->kind->allocator;

	link_hang_up(wire);
	if (link->kind->service)
		scout_close(&link->scout);
	redis_intake_close(&link->intake);
	redis_text_free(&link->out);
	memory_give(allocator, link, sizeof(*link));
}

static const struct wire_ops link_ops = {
	.connect = link_connect,
	.turn = link_turn,
	.send = link_send,
	.hang_up = link_hang_up,
	.free = link_free,
};

static void open_scout(struct link *link)
{
	const struct kind *kind = link->kind;
	const struct scout_config config = {
		.allocator = kind->allocator,
		.sentinels = &link->found,
		.service = kind->service,
		.password = kind->sentinel_password,
		.watch_fd = link->wire.watch_fd,
	};

	scout_open(&link->scout, &config);
}

static struct wire *link_new(struct server_kind *self, int watch_fd)
{
	struct kind *kind = (struct kind *)self;
	struct link *link = memory_take(kind->allocator, sizeof(*link));

	if (!link)
		return NULL;
	link->wire.ops = &link_ops;
	link->wire.watch_fd = watch_fd;
	link->kind = kind;
	link->phase = BROKEN;
	link->out.allocator = kind->allocator;
	stream_init(&link->stream, watch_fd);
	if (kind->has_names)
		names_list(&kind->names, &link->found);
	if (kind->service)
		open_scout(link);
	return &link->wire;
}

/* ---- URLs ------------------------------------------------------------------------ */

static void kind_free(struct server_kind *self)
{
	struct kind *kind = (struct kind *)self;

	if (kind->has_names)
		names_close(&kind->names);
	memory_give(kind->allocator, kind, sizeof(*kind));
}

static bool find_addresses(struct kind *kind)
{
	const struct url *url = &kind->url;
	uint16_t port = kind->service ? SENTINEL_PORT_DEFAULT : PORT_DEFAULT;

	if (url->host_count == 0)
		return stream_unix(url->path, &kind->socket);
	kind->has_names = names_open(&kind->names, url, port, stream_resolve);
	return kind->has_names;
}

static bool is_known(const char *option)
{
	return strcmp(option, "db") == 0 || strcmp(option, "prefix") == 0 ||
	       strcmp(option, "sentinel_password") == 0;
}

/* The path is the number of a database, the name of a service, or a socket's. */
static bool read_path(struct kind *kind, const char **ret_db)
{
	const struct url *url = &kind->url;
	const char *name = url->path[0] == '/' ? url->path + 1 : "";

	if (strcmp(url->scheme, SENTINEL_SCHEME) == 0) {
		kind->service = name;
		return url->host_count > 0 && name[0] != '\0';
	}
	if (url->host_count == 0)
		return name[0] != '\0';
	if (name[0] != '\0' && *ret_db)
		return false; /* said twice */
	if (name[0] != '\0')
		*ret_db = name;
	return true;
}

static bool read_options(struct kind *kind)
{
	const struct url *url = &kind->url;
	const char *prefix = url_option(url, "prefix");
	const char *db = url_option(url, "db");

	for (size_t i = 0; i < url->option_count; i++)
		if (!is_known(url->options[i].name))
			return false;
	if (!prefix)
		prefix = "gale:";
	kind->sentinel_password = url_option(url, "sentinel_password");
	if (!kind->sentinel_password)
		kind->sentinel_password = "";
	if (!read_path(kind, &db) || !redis_prefix_valid(prefix) ||
	    (db && !url_number(db, DB_MOST, &kind->db)))
		return false;
	strcpy(kind->prefix, prefix);
	return true;
}

struct server_kind *redis_kind(struct gale_allocator *allocator, const char *url,
                               enum gale_err *ret_why)
{
	struct kind *kind = memory_take(allocator, sizeof(*kind));

	*ret_why = GALE_ERR_MEMORY;
	if (!kind)
		return NULL;
	kind->is.wire = link_new;
	kind->is.free = kind_free;
	kind->allocator = allocator;
	*ret_why = url_parse(url, &kind->url) && read_options(kind) ? GALE_ERR_HOST
	                                                            : GALE_ERR_URL;
	if (*ret_why == GALE_ERR_HOST && find_addresses(kind))
		return &kind->is;
	kind_free(&kind->is);
	return NULL;
}
