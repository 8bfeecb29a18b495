/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* link.c -- greets, sends batches, and knows which reply is to what. */
#include "stores/redis/link.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/names.h"
#include "stores/redis/ear.h"
#include "stores/redis/info.h"
#include "stores/redis/reply.h"
#include "stores/redis/scout.h"
#include "stores/redis/wire.h"
#include "stores/stream.h"

#define AWAITED_MOST 512
#define OUT_MOST ((size_t)1 << 22) /* bytes that wait to be sent */
#define READ_MOST 65536            /* bytes, in one go */
#define WORDS_SHOWN 40             /* of what is no reply */
#define CONFIRM_MS "500"           /* for replicas to have what was granted */
#define SURE_US 20000 /* of a server's tenure, since it last told. REDIS-5 */

/* ---- The link -------------------------------------------------------------------- */

enum awaited_what {
	A_NOD, /* nothing but no error */
	ANYTHING,
	THE_SCRIPT,
	THE_INFO,
	THE_GENERATION,
	A_BATCH,
	THE_COPIES, /* of the batch before it. REDIS-6 */
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
	struct redis_site *site;
	size_t address; /* that is tried next */
	char
	    to[STREAM_NAME]; /* the one that is connected to, where there are several */
	struct stream_address node; /* of a cluster: the only one */
	struct names_found found;
	enum phase phase;
	struct scout scout; /* only if there is a service */
	uint64_t answer; /* of the scout's, that was known before it was sent out ... */
	uint64_t change; /* ... and the change since which this is the primary */
	struct stream stream;
	struct redis_text out;
	struct redis_intake intake;
	char generation[REMOTE_GENERATION_BYTES];
	size_t generation_count;
	bool warned;
	bool can_beat;  /* on this connection the script for beats was sent */
	bool can_claim; /* the same, of claims */
	struct redis_ear ear;
	redisReply *held; /* to a batch, until it is confirmed; NULL: none */
	uint64_t sent;    /* awaited so far */
	uint64_t heard;
	struct awaited awaited[AWAITED_MOST];
	struct remote_told told[REMOTE_BATCH_MOST];
	bool is_heard; /* on this connection: it has said something */
	size_t read;   /* of the bytes, at last */
	uint8_t bytes[READ_MOST];
};

static void give_up(struct link *link, const char *what, const char *why)
{
	if (link->phase == BROKEN)
		return;
	link->phase = BROKEN;
	snprintf(link->wire.text, WIRE_TEXT, "%s%s%s%s%s", link->to,
	         link->to[0] ? ": " : "", what, why[0] ? ": " : "", why);
}

static void await(struct link *link, enum awaited_what what)
{
	gale_assert(link->sent - link->heard < AWAITED_MOST);
	link->awaited[link->sent++ % AWAITED_MOST].what = what; /* REDIS-1 */
}

/* ---- Greeting -------------------------------------------------------------------- */

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
	const struct url *url = &link->site->url.is;

	if (!redis_put_auth(&link->out, url))
		give_up(link, "no memory", "");
	else if (redis_has_auth(url))
		await(link, A_NOD);
}

static void say_where(struct link *link)
{
	char number[24];
	struct remote_bytes words[2] = { redis_word("SELECT") };

	if (link->site->url.db == 0)
		return;
	snprintf(number, sizeof(number), "%llu",
	         (unsigned long long)link->site->url.db);
	words[1] = redis_word(number);
	say(link, words, 2, A_NOD);
}

/* A user who may not do that goes without a name. */
static void say_name(struct link *link)
{
	if (redis_put_name(&link->out))
		await(link, ANYTHING);
	else
		give_up(link, "no memory", "");
}

static void load_script(struct link *link)
{
	if (redis_put_script(&link->out, &redis_step_script))
		await(link, THE_SCRIPT);
	else
		give_up(link, "no memory", "");
}

static bool put_greeting(struct link *link, uint8_t bucket)
{
	uint8_t key[REDIS_KEY_MAX];
	const char durable[2] = { (char)('0' + link->site->url.durable), '\0' };
	struct remote_bytes words[5] = {
		redis_word("EVAL"),
		{ (const uint8_t *)redis_greet_script.text, redis_greet_script.count },
		redis_word("1"),
		{ key, redis_generation_key(key, link->site->url.prefix, bucket) },
		redis_word(durable),
	};

	return redis_put_words(&link->out, words, 5);
}

static void ask_generation(struct link *link)
{
	if (link->wire.by_buckets)
		return; /* REDIS-4 */
	if (put_greeting(link, 0))
		await(link, THE_GENERATION);
	else
		give_up(link, "no memory", "");
}

static void greet(struct link *link)
{
	const struct remote_bytes info = redis_word("INFO");

	link->phase = GREETING;
	link->wire.waits_for = "it has accepted, and does not answer";
	say_who(link);
	say_where(link);
	say_name(link);
	say(link, &info, 1, THE_INFO);
}

/* Once for all batches that are refused together. */
static void greet_again(struct link *link, enum redis_word why)
{
	if (link->phase != READY || (link->wire.by_buckets && why != REDIS_NOSCRIPT))
		return;
	link->phase = GREETING;
	link->can_beat = link->can_claim = false;
	load_script(link);
	ask_generation(link);
}

/* The log says once, and not at each connection, what this server cannot promise. */
static void warn(struct link *link, const char *info)
{
	if (link->warned)
		return;
	link->warned = true;
	redis_info_warning(info, link->site->url.durable, link->wire.text);
}

static void hear_info(struct link *link, const redisReply *reply)
{
	const char *refusal =
	    reply->type == REDIS_REPLY_STRING
		? redis_info_refusal(reply->str, link->site->url.durable,
	                             link->site->url.is_cluster)
		: "INFO says nothing";

	if (refusal) {
		give_up(link, refusal, "");
		return;
	}
	warn(link, reply->str);
	load_script(link); /* not before: one that is not let in may not say so much */
	ask_generation(link);
}

/* In a life that others have begun without it, nothing is gained by waiting for replicas. */
static void warn_of_others(struct link *link)
{
	if (link->site->url.durable == 0 || link->generation[14] != '0')
		return;
	snprintf(link->wire.text, WIRE_TEXT,
	         "others share the prefix without durable=: after a fail-over "
	         "nothing is granted for a while");
}

static void keep_generation(struct link *link, const redisReply *reply,
                            uint64_t since_us)
{
	link->wire.since_us = since_us;
	link->generation_count = (size_t)reply->len;
	memcpy(link->generation, reply->str, link->generation_count);
}

static void hear_generation(struct link *link, const redisReply *reply)
{
	uint64_t since_us;

	if (!redis_read_generation(reply, &since_us)) {
		give_up(link, "its generation is none of ours", "");
		return;
	}
	keep_generation(link, reply, since_us);
	link->phase = READY;
	warn_of_others(link);
}

/* ---- Batches --------------------------------------------------------------------- */

static enum wire_reply_kind kind_of(const struct link *link, enum redis_word word)
{
	bool by_buckets = link->wire.by_buckets;

	switch (word) {
	case REDIS_TOLD:
		return WIRE_TOLD;
	case REDIS_GENERATION:
	case REDIS_NOSCRIPT:
		return WIRE_AGAIN; /* REDIS-2 */
	case REDIS_MOVED:
		return by_buckets ? WIRE_MOVED : WIRE_LATER; /* REDIS-4 */
	case REDIS_ASK:
		return by_buckets ? WIRE_ASK : WIRE_LATER;
	case REDIS_TRYAGAIN:
		return by_buckets ? WIRE_NOT_NOW : WIRE_LATER;
	case REDIS_LATER:
	case REDIS_READONLY:
	case REDIS_FULL:
	case REDIS_NOT_LET:
		return WIRE_LATER;
	default:
		return WIRE_WRONG;
	}
}

static void read_greeting(struct link *link, const redisReply *reply,
                          struct redis_said *ret_meaning, struct wire_reply *ret_said)
{
	if (redis_is_error(reply, ret_meaning))
		return;
	*ret_meaning = (struct redis_said){ .word = REDIS_STRANGE };
	if (!redis_read_generation(reply, &ret_said->since_us))
		return;
	if (!link->wire.by_buckets)
		keep_generation(link, reply, ret_said->since_us);
	ret_said->generation =
	    (struct remote_bytes){ (const uint8_t *)reply->str, reply->len };
	ret_meaning->word = REDIS_TOLD;
}

/* copies: NULL: none are needed. */
static void want_copies(const struct link *link, const redisReply *copies,
                        struct redis_said *meaning)
{
	if (meaning->word != REDIS_TOLD || !copies ||
	    (copies->type == REDIS_REPLY_INTEGER &&
	     copies->integer >= (long long)link->site->url.durable))
		return;
	meaning->word = REDIS_LATER; /* REDIS-6 */
	snprintf(meaning->text, sizeof(meaning->text),
	         "fewer replicas than durable= says have it after " CONFIRM_MS " ms");
}

static void hear_batch(struct link *link, const struct remote_batch *batch,
                       const redisReply *reply, const redisReply *copies)
{
	struct wire_reply said = { .nonce = batch->nonce,
		                   .told = link->told,
		                   .count = batch->count };
	struct redis_said meaning;

	if (batch->count == 0)
		read_greeting(link, reply, &meaning, &said);
	else
		redis_read_reply(reply, batch->nonce, batch->jobs, batch->count,
		                 link->told, &meaning);
	want_copies(link, copies, &meaning);
	said.kind = kind_of(link, meaning.word);
	said.place = (struct wire_place){ meaning.host, meaning.port };
	if (said.kind == WIRE_AGAIN)
		greet_again(link, meaning.word);
	else if (said.kind == WIRE_LATER || said.kind == WIRE_WRONG)
		give_up(link, "a call failed",
		        meaning.text[0] ? meaning.text : "its reply is strange");
	link->wire.home->on_reply(link->wire.home, &said);
}

/* ---- Hearing --------------------------------------------------------------------- */

static bool is_confirmed_later(const struct link *link, const struct awaited *awaited)
{
	return link->site->url.durable > 0 && awaited->what == A_BATCH &&
	       awaited->batch.count > 0;
}

/* How many have what was changed until then; a user who may not ask that is told nothing. */
static void hear_copies(struct link *link, const redisReply *copies)
{
	const struct awaited *before = &link->awaited[(link->heard - 2) % AWAITED_MOST];
	redisReply *held = link->held;

	link->held = NULL;
	hear_batch(link, &before->batch, held, copies);
	redis_reply_free(held);
}

static void hear(struct link *link, redisReply *reply)
{
	struct awaited *awaited = &link->awaited[link->heard % AWAITED_MOST];
	struct redis_said error;

	if (link->heard == link->sent) {
		give_up(link, "a reply to nothing", ""); /* REDIS-1 */
		return;
	}
	link->heard++;
	if (is_confirmed_later(link, awaited)) {
		link->held = reply;
		return;
	}
	if (awaited->what == A_BATCH) {
		hear_batch(link, &awaited->batch, reply, /* copies= */ NULL);
		return;
	}
	if (awaited->what == ANYTHING)
		return;
	if (redis_is_error(reply, &error))
		give_up(link, "it does not let us in", error.text);
	else if (awaited->what == THE_COPIES)
		hear_copies(link, reply);
	else if (awaited->what == THE_INFO)
		hear_info(link, reply);
	else if (awaited->what == THE_GENERATION)
		hear_generation(link, reply);
	else if (awaited->what == THE_SCRIPT && link->wire.by_buckets)
		link->phase = READY;
}

/* Before anything was understood it may be another protocol's, and no key is in it. */
static void give_up_on_words(struct link *link)
{
	char words[WORDS_SHOWN + 3] = "";
	size_t count = 0;

	if (link->phase == GREETING && redis_is_tls(link->bytes, link->read))
		give_up(link, "it answers in TLS", "use a rediss:// URL");
	else if (link->phase == GREETING && link->read > 0) {
		words[count++] = '"';
		for (size_t i = 0; i < link->read && i < WORDS_SHOWN; i++)
			words[count++] =
			    (char)(link->bytes[i] < ' ' || link->bytes[i] > '~'
			               ? '?'
			               : link->bytes[i]);
		words[count++] = '"';
	}
	give_up(link, "what it says is no reply", words);
}

static void hear_all(struct link *link)
{
	redisReply *reply;

	while (link->phase != BROKEN) {
		if (!redis_intake_take(&link->intake, &reply)) {
			give_up_on_words(link);
			return;
		}
		if (!reply)
			return;
		hear(link, reply);
		if (reply != link->held)
			redis_reply_free(reply);
	}
}

static void give_up_on_silence(struct link *link)
{
	bool is_strange =
	    link->phase == GREETING && !link->is_heard && !link->stream.session;

	give_up(link,
	        is_strange ? "it has hung up and said nothing; a port of TLS does that "
	                     "(rediss://)"
	                   : "the connection is over",
	        stream_why(&link->stream));
}

static void read_some(struct link *link)
{
	ptrdiff_t count = READ_MOST;

	while (count == READ_MOST && link->phase != BROKEN) {
		count = stream_read(&link->stream, link->bytes, READ_MOST);
		link->read = count > 0 ? (size_t)count : 0;
		link->is_heard |= count > 0;
		if (count < 0)
			give_up_on_silence(link);
		else if (!redis_intake_feed(&link->intake, link->bytes, (size_t)count))
			give_up_on_words(link);
		else
			hear_all(link);
	}
}

static void send_some(struct link *link)
{
	ptrdiff_t sent = stream_send(&link->stream, link->out.bytes, link->out.count);

	if (sent < 0)
		give_up_on_silence(link);
	else
		redis_text_cut(&link->out, (size_t)sent);
}

/* ---- A wire ---------------------------------------------------------------------- */

static void connect_to(struct link *link, const struct stream_address *address)
{
	link->phase = CONNECTING;
	link->can_beat = link->can_claim = link->is_heard = false;
	redis_ear_move(&link->ear, address);
	link->wire.waits_for = "its host does not answer";
	link->to[0] = '\0';
	if (link->found.count > 1 || link->site->url.service)
		stream_name(address, link->to);
	redis_intake_close(&link->intake);
	if (!redis_intake_open(&link->intake, REDIS_INFO_MOST))
		give_up(link, "no memory", "");
	else if (!stream_connect(&link->stream, address))
		give_up(link, "cannot connect", stream_why(&link->stream));
}

/* It may be another than before: no server is connected to before a sentinel has told. */
static void look_for_primary(struct link *link)
{
	link->wire.waits_for = "no sentinel tells where the primary is";
	link->answer = link->scout.answers;
	scout_hurry(&link->scout);
}

/* Where hosts were a while ago they may not be any more. */
static void find_hosts(struct link *link, mono now)
{
	if (link->address++ > 0)
		names_look_again(&link->site->names, now);
	names_list(&link->site->names, &link->found);
}

static void link_connect(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;
	struct redis_site *site = link->site;

	link->to[0] = '\0';
	if (site->url.is_cluster) {
		connect_to(link, &link->node);
		return;
	}
	if (site->url.is.host_count == 0) {
		connect_to(link, &site->socket);
		return;
	}
	find_hosts(link, now);
	link->phase = LOOKING;
	if (link->found.count == 0)
		give_up(link, "no address is known of its host", "");
	else if (site->url.service)
		look_for_primary(link);
	else
		connect_to(
		    link,
		    &link->found.addresses[(link->address - 1) % link->found.count]);
}

/* Connects to the primary, and away from one that is it no longer. REDIS-3 */
static void follow(struct link *link, mono now)
{
	struct scout *scout = &link->scout;

	scout_turn(scout, now);
	link->wire.due = scout_due(scout, now);
	if (link->phase == LOOKING && scout->why[0] != '\0')
		snprintf(link->wire.text, WIRE_TEXT, "%s", scout->why);
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
		if (link->stream.is_connected)
			link->wire.waits_for =
			    "it accepts connections, but does not agree on TLS; its "
			    "port may be one without TLS";
		break;
	case STREAM_OPEN:
		greet(link);
		break;
	case STREAM_OVER:
		give_up(link, "cannot connect", stream_why(&link->stream));
	}
}

static enum wire_state state_of(const struct link *link)
{
	if (link->phase == BROKEN)
		return WIRE_BROKEN;
	return link->phase == READY ? WIRE_READY : WIRE_OPENING;
}

static enum wire_state link_flush(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	send_some(link);
	if (link->phase == READY)
		redis_ear_flush(&link->ear);
	return state_of(link);
}

static enum wire_state link_turn(struct wire *wire, mono now)
{
	struct link *link = (struct link *)wire;

	if (link->site->url.service && link->phase != BROKEN)
		follow(link, now);
	if (link->phase == CONNECTING)
		go_on_connecting(link);
	if (link->phase == GREETING || link->phase == READY) {
		read_some(link);
		if (link->phase != BROKEN)
			send_some(link);
		redis_ear_turn(&link->ear, now);
	}
	return state_of(link);
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

static const struct redis_script *script_of(const struct remote_batch *batch)
{
	switch (batch->jobs[0].verb) {
	case REMOTE_BEAT:
		return &redis_beat_script;
	case REMOTE_CLAIM:
		return &redis_claim_script;
	default:
		return &redis_step_script;
	}
}

static bool put_call(struct link *link, const struct remote_batch *batch)
{
	uint8_t buckets[REMOTE_BATCH_MOST];
	struct redis_call call = {
		.script = script_of(batch),
		.prefix = link->site->url.prefix,
		.generation = { (const uint8_t *)link->generation,
		                link->generation_count },
		.generation_bucket = batch->bucket,
		.nonce = batch->nonce,
		.sure_until_us = batch->told_us > 0 ? batch->told_us + SURE_US : 0,
		.now_us = batch->guess_us,
		.jobs = batch->jobs,
		.buckets = buckets,
		.count = batch->count,
	};

	memset(buckets, batch->bucket, sizeof(buckets));
	if (link->wire.by_buckets)
		call.generation = batch->generation;
	make_way(link, batch);
	return redis_put_call(&link->out, &call);
}

static bool put_confirmation(struct link *link)
{
	const char durable[2] = { (char)('0' + link->site->url.durable), '\0' };
	const struct remote_bytes words[3] = { redis_word("WAIT"), redis_word(durable),
		                               redis_word(CONFIRM_MS) };

	return link->site->url.durable == 0 || redis_put_words(&link->out, words, 3);
}

static bool put_batch(struct link *link, const struct remote_batch *batch)
{
	size_t before = link->out.count;

	if (batch->count == 0)
		return put_greeting(link, batch->bucket);
	if (put_call(link, batch) && put_confirmation(link))
		return true;
	link->out.count = before; /* no memory: nothing of it goes */
	return false;
}

/* Most connections send neither beats nor claims. */
static bool put_script_of(struct link *link, const struct remote_batch *batch)
{
	const struct redis_script *script;
	bool *can;

	if (batch->count == 0)
		return true;
	script = script_of(batch);
	if (script == &redis_step_script)
		return true;
	can = script == &redis_beat_script ? &link->can_beat : &link->can_claim;
	if (*can)
		return true;
	if (!redis_put_script(&link->out, script))
		return false;
	await(link, A_NOD);
	*can = true;
	return true;
}

/* It is for the one command that comes next. */
static bool put_asking(struct link *link)
{
	const struct remote_bytes asking = redis_word("ASKING");

	if (!redis_put_words(&link->out, &asking, 1))
		return false;
	await(link, A_NOD);
	return true;
}

/* A node that beats in a group hears when it is nudged. */
static void listen_for(struct link *link, const struct remote_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		const struct remote_bytes *name = &batch->jobs[i].key;

		if (link->wire.hears && batch->jobs[i].verb == REMOTE_BEAT)
			redis_ear_listen(&link->ear,
			                 store_mark(name->bytes, name->count));
	}
}

static bool link_send(struct wire *wire, const struct remote_batch *batch)
{
	struct link *link = (struct link *)wire;

	listen_for(link, batch);
	if (link->out.count > OUT_MOST || link->sent - link->heard + 4 > AWAITED_MOST ||
	    !put_script_of(link, batch) || (batch->asking && !put_asking(link)) ||
	    !put_batch(link, batch))
		return false;
	link->awaited[link->sent % AWAITED_MOST].batch = *batch;
	await(link, A_BATCH);
	if (batch->count > 0 && link->site->url.durable > 0)
		await(link, THE_COPIES);
	return true;
}

static void link_hang_up(struct wire *wire)
{
	struct link *link = (struct link *)wire;

	stream_close(&link->stream);
	redis_ear_hang_up(&link->ear);
	if (link->site->url.service)
		scout_hang_up(&link->scout);
	redis_text_cut(&link->out, link->out.count);
	redis_reply_free(link->held);
	link->held = NULL;
	link->heard = link->sent;
	link->phase = BROKEN;
}

static void link_free(struct wire *wire)
{
	struct link *link = (struct link *)wire;
	struct gale_allocator *allocator = link->site->allocator;

	link_hang_up(wire);
	if (link->site->url.service)
		scout_close(&link->scout);
	redis_intake_close(&link->intake);
	redis_text_free(&link->out);
	redis_ear_close(&link->ear);
	memory_give(allocator, link, sizeof(*link));
}

static const struct wire_ops link_ops = {
	.connect = link_connect,
	.turn = link_turn,
	.send = link_send,
	.flush = link_flush,
	.hang_up = link_hang_up,
	.free = link_free,
};

static void open_scout(struct link *link)
{
	const struct redis_site *site = link->site;
	const struct scout_config config = {
		.allocator = site->allocator,
		.sentinels = &link->found,
		.service = site->url.service,
		.password = site->url.sentinel_password,
		.watch = link->wire.watch,
		.tls = redis_tls(site),
	};

	scout_open(&link->scout, &config);
}

static struct link *link_new(struct redis_site *site, struct watch watch)
{
	struct link *link = memory_take(site->allocator, sizeof(*link));

	if (!link)
		return NULL;
	link->wire.ops = &link_ops;
	link->wire.watch = watch;
	link->wire.has_pulses = true;
	link->site = site;
	link->phase = BROKEN;
	link->out.allocator = site->allocator;
	stream_init(&link->stream, watch, redis_tls(site));
	redis_ear_open(&link->ear, site, &link->wire);
	return link;
}

struct wire *redis_link_to(struct redis_site *site, const struct stream_address *node,
                           struct watch watch)
{
	struct link *link = link_new(site, watch);

	if (!link)
		return NULL;
	link->node = *node;
	stream_name(node, link->wire.where);
	link->wire.by_buckets = true;
	return &link->wire;
}

struct wire *redis_link(struct redis_site *site, struct watch watch)
{
	struct link *link = link_new(site, watch);

	if (!link)
		return NULL;
	if (site->url.is.host_count > 0)
		names_list(&site->names, &link->found);
	if (site->url.service)
		open_scout(link);
	return &link->wire;
}
