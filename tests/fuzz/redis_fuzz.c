/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_fuzz.c -- whatever a Redis server says, a shard's client lives, and answers once.
 *
 * The bytes are a rule, and then moves: asks, time that passes, connections that end, and
 * what the server says: the fuzzer's bytes as they are, or an answer whose frame is right
 * and whose parts are the fuzzer's.  Streams are the fuzzer's own; all that is behind
 * them is what runs: link.c, cluster.c, reply.c, hiredis's parser, client.c, line.c,
 * remote.c and the engine.  In a cluster what is said is said to who spoke last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/client.h"
#include "stores/quarantine.h"
#include "stores/redis/kind.h"
#include "stores/redis/wire.h"
#include "stores/stream.h"
#include "tests/fuzz/beats.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/lends.h"

#define MOVES 200
#define CALLS 8
#define LOANS 8
#define KEYS 3
#define SAID_MOST 2048
#define VALUE_MOST 200
#define STREAMS 4 /* more share these */
#define T0 GALE_SECONDS(1700000000)

enum move {
	ASK,
	BORROW,
	GIVE_BACK,
	PASS,
	SAY_BYTES,
	SAY_FRAME,
	END,
	GREET,
	MOVE_COUNT,
};

/* What a connection is going to hear. */
struct ear {
	uint8_t said[SAID_MOST];
	size_t said_count;
	bool over;
};

struct scene {
	struct store_home home;
	struct client *client;
	_Atomic uint64_t counters[CLIENT_COUNTER_COUNT];
	struct quarantine_notice notice;
	mono now;
	struct rule rule;
	struct store_op ops[CALLS];
	struct store_beat beats[CALLS]; /* of those that are one */
	struct store_call calls[CALLS];
	bool busy[CALLS];
	uint64_t asked[LOANS]; /* units, of the request with that number */
	uint64_t number;
	struct gale_slot tag;
	uint64_t nonce; /* about the latest that was sent */
	struct ear ears[STREAMS];
	int connections; /* so far */
	int to;          /* whom something is said to */
	bool polite;     /* it greets by itself */
	bool is_cluster;
};

static struct scene s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- The stream ------------------------------------------------------------------ */

static void say(const void *bytes, size_t count)
{
	struct ear *ear = &s.ears[s.to];

	if (count > SAID_MOST - ear->said_count)
		count = SAID_MOST - ear->said_count;
	memcpy(ear->said + ear->said_count, bytes, count);
	ear->said_count += count;
}

static void say_text(const char *text)
{
	say(text, strlen(text));
}

/* What a polite node of a cluster says to each of these commands. */
static void answer_politely(const uint8_t *bytes, size_t count)
{
	static const struct {
		const char *command;
		const char *answer;
	} rows[] = {
		{ "CLUSTER\r\n", "*2\r\n*3\r\n:0\r\n:8000\r\n*2\r\n$0\r\n\r\n:1\r\n"
		                 "*3\r\n:8001\r\n:16383\r\n*2\r\n$1\r\n2\r\n:2\r\n" },
		{ "INFO\r\n", "$13\r\nrole:master\r\n\r\n" },
		{ "SCRIPT\r\n", "+OK\r\n" },
		{ "ASKING\r\n", "+OK\r\n" },
		{ "EVAL\r\n", "$14\r\n0123456789ab:1\r\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (memmem(bytes, count, rows[i].command, strlen(rows[i].command)))
			say_text(rows[i].answer);
}

void stream_init(struct stream *stream, struct watch watch, const struct tls *tls)
{
	(void)tls;
	*stream = (struct stream){ .watch = watch, .fd = -1 };
}

/* Whose names begin alike are the same. */
size_t stream_resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&ret_addresses[0].bytes;

	gale_assert(most > 0);
	ret_addresses[0] = (struct stream_address){ .count = sizeof(*in) };
	in->sin_family = AF_INET;
	in->sin_port = port;
	in->sin_addr.s_addr = (unsigned char)host[0];
	return 1;
}

bool stream_numeric(const char *address, uint16_t port,
                    struct stream_address *ret_address)
{
	*ret_address = (struct stream_address){ .count = 0 };
	return address[0] >= '0' && address[0] <= '9' &&
	       stream_resolve(address, port, ret_address, 1) == 1;
}

bool stream_unix(const char *path, struct stream_address *ret_address)
{
	return stream_resolve(path, 0, ret_address, 1) == 1;
}

void stream_name(const struct stream_address *address, char name[STREAM_NAME])
{
	(void)address;
	snprintf(name, STREAM_NAME, "server");
}

bool stream_connect(struct stream *stream, const struct stream_address *address)
{
	static const char greeting[] =
	    "$36\r\nrole:master\r\nrun_id:0123456789ab\r\n\r\n\r\n+OK\r\n"
	    "$14\r\n0123456789ab:1\r\n";

	(void)address;
	s.to = stream->fd = s.connections++ % STREAMS;
	s.ears[s.to].said_count = 0;
	s.ears[s.to].over = false;
	if (s.polite && !s.is_cluster)
		say(greeting, sizeof(greeting) - 1);
	errno = 0;
	return true;
}

const char *stream_why(const struct stream *stream)
{
	(void)stream;
	return "";
}

void stream_close(struct stream *stream)
{
	stream->fd = -1;
}

enum stream_state stream_turn(struct stream *stream)
{
	return stream->fd < 0 || s.ears[stream->fd].over ? STREAM_OVER : STREAM_OPEN;
}

ptrdiff_t stream_send(struct stream *stream, const uint8_t *bytes, size_t count)
{
	if (stream->fd < 0 || s.ears[stream->fd].over)
		return -1;
	if (count > 0)
		s.to = stream->fd;
	if (count > 0 && s.is_cluster && s.polite)
		answer_politely(bytes, count);
	return (ptrdiff_t)count;
}

ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most)
{
	struct ear *ear = &s.ears[stream->fd < 0 ? 0 : stream->fd];
	size_t count = ear->said_count < most ? ear->said_count : most;

	errno = 0;
	if (stream->fd < 0 || (ear->over && count == 0))
		return -1;
	memcpy(bytes, ear->said, count);
	ear->said_count -= count;
	memmove(ear->said, ear->said + count, ear->said_count);
	return (ptrdiff_t)count;
}

/* ---- What comes of it ------------------------------------------------------------ */

static void check_answer(const struct store_op *op)
{
	const struct gale_answer *answer = &op->answer;

	if (op->verb == STORE_BEAT)
		fuzzed_grant(&op->beat->grant);
	if (op->verb == STORE_STEP || op->verb == STORE_PEEK) {
		gale_assert(answer->limit == s.rule.capacity);
		gale_assert(answer->remaining <= answer->limit);
		gale_assert((answer->verdict == GALE_ALLOW) ==
		            (answer->retry_after_us == 0));
	}
}

static void on_done(const struct store_call *call)
{
	size_t i = (size_t)(call - s.calls);

	gale_assert(i < CALLS && s.busy[i]); /* CLIENT-1 */
	s.busy[i] = false;
	if (call->result == STORE_DONE)
		check_answer(call->op);
}

static void take_done(void)
{
	const struct store_call *call;

	while ((call = store_take(&s.home)))
		on_done(call);
}

/* What it grants is for the lessor to believe or not. */
static void on_answer(struct store_home *home, const struct lend_answer *answer)
{
	uint64_t *asked = &s.asked[answer->number % LOANS];

	(void)home;
	gale_assert(answer->number <= s.number && *asked > 0); /* CLIENT-1 */
	*asked = 0;
	if (answer->result == STORE_DONE)
		s.tag = answer->grant.tag;
}

/* ---- Moves ----------------------------------------------------------------------- */

static const uint8_t *key_of(uint64_t number)
{
	static const uint8_t keys[KEYS][2] = { "a", "b", "c" };

	return keys[number % KEYS];
}

static void ask(struct bytes *bytes)
{
	uint64_t i = take_number(bytes, 1) % CALLS, cost = take_number(bytes, 1);
	enum store_verb verb;

	if (s.busy[i])
		return;
	verb = (enum store_verb)(take_number(bytes, 1) % (STORE_BEAT + 1));
	if (verb == STORE_BEAT)
		s.beats[i] = fuzzed_beat(bytes);
	s.ops[i] = (struct store_op){
		.verb = verb,
		.key = key_of(i),
		.key_len = 1,
		.rule = verb == STORE_BEAT ? NULL : &s.rule,
		.cost = cost + 1,
		.slot = { .us = take_number(bytes, 6) % GALE_UNITS_MAX },
		.beat = verb == STORE_BEAT ? &s.beats[i] : NULL,
	};
	s.calls[i] =
	    (struct store_call){ .op = &s.ops[i], .due = mono_after(s.now, 100000000) };
	s.busy[i] = true;
	client_begin(s.client, &s.calls[i], s.now);
}

static void lend(struct bytes *bytes, enum lend_verb verb)
{
	struct lend_request request = fuzzed_lend(bytes, verb, &s.rule, s.tag);

	if (!lease_possible(&s.rule) || s.asked[(s.number + 1) % LOANS] > 0)
		return;
	request.key = key_of(request.units);
	request.ask.number = ++s.number;
	s.asked[s.number % LOANS] = request.units;
	client_lend(s.client, &request, 1, s.now);
}

static void say_bytes(struct bytes *bytes)
{
	size_t count = take_number(bytes, 1);

	count = count < bytes->left ? count : bytes->left;
	say(bytes->at, count);
	bytes->at += count;
	bytes->left -= count;
}

static void say_number(char kind, uint64_t number)
{
	char line[32];

	say(line, (size_t)snprintf(line, sizeof(line), "%c%llu\r\n", kind,
	                           (unsigned long long)number));
}

static void say_string(const void *bytes, size_t count)
{
	say_number('$', count);
	say(bytes, count);
	say("\r\n", 2);
}

/* A value whose head is the rule's, so that what is behind it is looked at. */
static void say_value(struct bytes *bytes)
{
	static uint64_t words[4096];
	uint8_t value[VALUE_MOST + STATE_HEAD_BYTES];
	size_t count = take_number(bytes, 1) % VALUE_MOST;

	memset(words, 0, sizeof(words));
	if (count == 0 || state_bytes(s.rule.words) > sizeof(value)) {
		say_string("", 0);
		return;
	}
	(void)state_encode(&s.rule, words, value);
	for (size_t i = STATE_HEAD_BYTES; i < STATE_HEAD_BYTES + count; i++)
		value[i] = (uint8_t)take_number(bytes, 1);
	say_string(value, STATE_HEAD_BYTES + count);
}

/* Of a window, by a lend that got all it wanted. */
static void say_used(uint64_t used)
{
	char line[32];

	say(line, (size_t)snprintf(line, sizeof(line), ":-%llu\r\n",
	                           (unsigned long long)used));
}

/* Of a beat. */
static void say_grant(struct bytes *bytes)
{
	uint64_t words[GROUP_GRANT_WORDS];

	fuzzed_words(bytes, words);
	say_string(words, sizeof(words));
}

static void say_part(struct bytes *bytes)
{
	uint64_t kind = take_number(bytes, 1);

	if (kind < 8)
		say_number(':', kind);
	else if (kind < 16)
		say_used(take_number(bytes, 2));
	else if (kind < 64)
		say_grant(bytes);
	else if (kind < 128)
		say_value(bytes);
	else
		say_string("", 0);
}

/* To the call of that number, of so many jobs. */
static void say_frame(struct bytes *bytes)
{
	uint64_t count = take_number(bytes, 1) % (CALLS + LOANS + 1);
	uint64_t ahead = take_number(bytes, 1);
	char nonce[24];

	s.nonce = ahead < 128 ? s.nonce + 1 : ahead - 127;
	say_number('*', count + 2);
	say_string(nonce, (size_t)snprintf(nonce, sizeof(nonce), "%llu",
	                                   (unsigned long long)s.nonce));
	say_number(':', T0 + s.now.ns / 1000 + take_number(bytes, 2));
	for (uint64_t i = 0; i < count; i++)
		say_part(bytes);
}

/* Again, after a call that was refused as a whole. */
static void greet(struct bytes *bytes)
{
	static const char never[] = "+OK\r\n$14\r\n0123456789ab:1\r\n";
	static const char now[] = "+OK\r\n$29\r\n0123456789ab:1700000000000000\r\n";

	if (take_number(bytes, 1) % 4 == 0)
		say(now, sizeof(now) - 1);
	else
		say(never, sizeof(never) - 1);
}

static void move(struct bytes *bytes)
{
	switch ((enum move)(take_number(bytes, 1) % MOVE_COUNT)) {
	case ASK:
		ask(bytes);
		break;
	case BORROW:
		lend(bytes, LEND);
		break;
	case GIVE_BACK:
		lend(bytes, LEND_BACK);
		break;
	case PASS:
		s.now.ns += take_number(bytes, 2) * 100000;
		break;
	case SAY_BYTES:
		say_bytes(bytes);
		break;
	case SAY_FRAME:
		say_frame(bytes);
		break;
	case END:
		s.ears[s.to].over = true;
		break;
	default:
		greet(bytes);
	}
}

/* ---- The run --------------------------------------------------------------------- */

static void open_scene(struct server_kind *kind)
{
	struct client_config config = { .allocator = memory_default(),
		                        .home = &s.home,
		                        .counters = s.counters,
		                        .notice = &s.notice,
		                        .quarantine_us = QUARANTINE_DEFAULT_US };

	if (kind->map)
		config.map = kind->map(kind, (struct watch){ .epoll_fd = -1 });
	else
		config.wire = kind->wire(kind, (struct watch){ .epoll_fd = -1 });
	gale_assert(config.map || config.wire);
	list_init(&s.home.done);
	s.home.on_answer = on_answer;
	s.now.ns = 1;
	s.client = client_open(&config);
	gale_assert(s.client);
}

static void close_scene(struct server_kind *kind)
{
	client_close(s.client);
	take_done();
	kind->free(kind);
	for (int i = 0; i < CALLS; i++)
		gale_assert(!s.busy[i]); /* CLIENT-1 */
	for (int i = 0; i < LOANS; i++)
		gale_assert(s.asked[i] == 0);
}

/* A log is as long as the store lets it be; of one that fills memory nothing is learned. */
static bool is_short(const struct gale_rule *rule)
{
	return rule->kind != GALE_RULE_SLIDING_LOG || rule->limit <= 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct gale_rule config = take_rule(&bytes);
	struct server_kind *kind;
	struct url_fault fault;
	uint64_t manner;

	memset(&s, 0, sizeof(s));
	if (!is_short(&config) || rule_compile(&config, &s.rule) != GALE_ERR_OK)
		return 0;
	manner = take_number(&bytes, 1);
	s.polite = manner % 8 != 7;
	s.is_cluster = manner >= 160;
	kind =
	    redis_kind(memory_default(),
	               s.is_cluster ? "redis+cluster://fuzz" : "redis://fuzz", &fault);
	gale_assert(kind);
	open_scene(kind);
	for (int i = 0; i < MOVES && bytes.left > 0; i++) {
		move(&bytes);
		(void)client_turn(s.client, s.now);
		take_done();
	}
	close_scene(kind);
	return 0;
}
