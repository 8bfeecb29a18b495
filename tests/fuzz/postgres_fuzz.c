/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_fuzz.c -- whatever a PostgreSQL server says, a shard's client lives, and answers
 * once.
 *
 * The bytes are a rule, and then moves: asks, time that passes, connections that end, and
 * what the server says: the fuzzer's bytes as they are, or messages whose frame is right
 * and whose fields are the fuzzer's.  What is behind the socket is what runs: libpq, link.c,
 * session.c, wire.c, reply.c, client.c, line.c, remote.c and the engine.
 *
 *     client --libpq--> a socket in a folder of our own --> here: says what the fuzzer wants
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/client.h"
#include "stores/postgres/link.h"
#include "stores/postgres/wire.h"
#include "stores/quarantine.h"
#include "tests/fuzz/beats.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/lends.h"

#define MOVES 100
#define CALLS 8
#define LOANS 8
#define KEYS 3
#define ASKED_MOST 64
#define MESSAGE_MOST 2048
#define WORDS_MOST 24
#define T0 GALE_SECONDS(1700000000)
#define BOOL 16
#define TEXT 25
#define INT8 20
#define INT8_ARRAY 1016

enum move {
	ASK,
	BORROW,
	GIVE_BACK,
	PASS,
	SAY_BYTES,
	SAY_TOLD,
	SAY_ERROR,
	SAY_MESSAGE,
	END,
	MOVE_COUNT,
};

enum asked {
	A_BATCH,
	A_NAME,
	A_SWEEP,
	WHOSE,
	A_GREETING,
};

static char folder[] = "/tmp/gale-fuzz-XXXXXX";
static char path[64], url[128];
static int listener;

static struct scene {
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
	int fd;         /* the connection's other end; -1: none */
	bool polite;    /* it introduces itself */
	enum asked asked_of[ASKED_MOST];
	unsigned heard, answered; /* of those */
	bool greeted;             /* it has, as for its generation */
	bool ours;                /* and says that the session is ours */
} s;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Messages -------------------------------------------------------------------- */

struct message {
	uint8_t bytes[MESSAGE_MOST];
	size_t count;
};

static void send_bytes(const void *bytes, size_t count)
{
	if (s.fd >= 0)
		(void)send(s.fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void put(struct message *m, uint64_t number, int width)
{
	gale_assert(m->count + (size_t)width <= MESSAGE_MOST);
	for (int i = width - 1; i >= 0; i--)
		m->bytes[m->count++] = (uint8_t)(number >> (8 * i));
}

static void put_text(struct message *m, const char *text)
{
	gale_assert(m->count + strlen(text) < MESSAGE_MOST);
	memcpy(m->bytes + m->count, text, strlen(text) + 1);
	m->count += strlen(text) + 1;
}

static void say(char kind, const struct message *m)
{
	struct message head = { .count = 0 };

	put(&head, (uint8_t)kind, 1);
	put(&head, m->count + 4, 4);
	send_bytes(head.bytes, head.count);
	send_bytes(m->bytes, m->count);
}

static void say_nothing(char kind)
{
	const struct message nothing = { .count = 0 };

	say(kind, &nothing);
}

static void say_number(char kind, uint64_t number)
{
	struct message m = { .count = 0 };

	put(&m, number, 4);
	say(kind, &m);
}

static void say_ready(void)
{
	struct message m = { .count = 0 };

	put(&m, 'I', 1);
	say('Z', &m);
}

static void say_done(void)
{
	struct message m = { .count = 0 };

	put_text(&m, "SELECT 1");
	say('C', &m);
	say_ready();
}

static void put_column(struct message *m, uint32_t type, uint64_t bytes)
{
	put_text(m, "x");
	put(m, 0, 4 + 2);
	put(m, type, 4);
	put(m, bytes, 2);
	put(m, 0xffffffff, 4);
	put(m, 1, 2); /* binary */
}

static void say_begun(void)
{
	say_nothing('1');
	say_nothing('2');
}

static void say_columns_of_told(void)
{
	struct message m = { .count = 0 };

	say_begun();
	put(&m, 2, 2);
	put_column(&m, INT8, 8);
	put_column(&m, INT8_ARRAY, 0xffff);
	say('T', &m);
}

static void say_row(uint64_t coded, const uint64_t *words, size_t count)
{
	struct message m = { .count = 0 };

	put(&m, 2, 2);
	put(&m, 8, 4);
	put(&m, coded, 8);
	put(&m, words ? 20 + count * 12 : 0xffffffff, 4);
	for (size_t i = 0; words && i < count; i++) {
		if (i == 0) {
			put(&m, 1, 4);
			put(&m, 0, 4);
			put(&m, INT8, 4);
			put(&m, count, 4);
			put(&m, 1, 4);
		}
		put(&m, 8, 4);
		put(&m, words[i], 8);
	}
	say('D', &m);
}

/* ---- Manners --------------------------------------------------------------------- */

/* That its generation is another one, and which. */
static void say_generation(void)
{
	static const char letters[] = "0123456789abc"
				      "00000001"
				      "60000000fff";
	uint64_t words[WORDS_MOST * 2] = { 0, T0 };
	size_t count = 2;

	for (size_t i = 0; i < 32; i++)
		words[count++] = (uint8_t)letters[i];
	s.greeted = true;
	say_columns_of_told();
	say_row(128, words, count);
	say_done();
}

static void say_whose(void)
{
	struct message m = { .count = 0 };

	say_begun();
	put(&m, 2, 2);
	put_column(&m, BOOL, 1);
	put_column(&m, TEXT, 0xffff);
	say('T', &m);
	m.count = 0;
	put(&m, 2, 2);
	put(&m, 1, 4);
	put(&m, s.ours, 1);
	put(&m, 0xffffffff, 4);
	say('D', &m);
	say_done();
}

static void say_welcome(void)
{
	s.greeted = false;
	s.answered = s.heard = 0;
	say_number('R', 0);
	send_bytes("K\0\0\0\14\0\0\22\147\0\0\0\1", 13); /* its process */
	say_ready();
}

static void answer(enum asked asked)
{
	switch (asked) {
	case A_NAME:
		say_nothing('1');
		say_ready();
		break;
	case A_SWEEP:
		say_begun();
		say_done();
		break;
	case WHOSE:
		say_whose();
		break;
	case A_GREETING:
		say_generation();
		break;
	default:
		break;
	}
}

/* In the order in which it was asked; of batches the fuzzer says something. */
static void go_on(void)
{
	while (s.answered < s.heard && s.asked_of[s.answered % ASKED_MOST] != A_BATCH)
		answer(s.asked_of[s.answered++ % ASKED_MOST]);
}

static void batch_is_answered(void)
{
	s.answered += s.answered < s.heard;
	if (s.polite)
		go_on();
}

static enum asked statement_of(const char *name, const char *text)
{
	if (name[0])
		return A_NAME;
	if (strstr(text, "pg_backend_pid"))
		return WHOSE;
	if (strstr(text, "gale.sweep"))
		return A_SWEEP;
	return s.greeted ? A_BATCH : A_GREETING;
}

static uint32_t length_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
	       at[3];
}

/* What it does not need the fuzzer for.  The first message has no letter; a statement that is
 * only bound has been given its name before. */
static void answer_politely(const uint8_t *bytes, size_t count)
{
	enum asked asked = A_BATCH;

	if (bytes[0] == 0)
		say_welcome();
	while (bytes[0] != 0 && count >= 5) {
		size_t length = 1 + length_at(bytes + 1);
		const char *name = (const char *)bytes + 5;

		if (length > count)
			break;
		if (bytes[0] == 'P')
			asked = statement_of(name, name + strlen(name) + 1);
		if (bytes[0] == 'S') {
			s.asked_of[s.heard++ % ASKED_MOST] = asked;
			asked = A_BATCH;
		}
		bytes += length;
		count -= length;
	}
	go_on();
}

static void hear(void)
{
	static uint8_t bytes[65536];
	ptrdiff_t count;

	if (s.fd < 0)
		s.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s.fd < 0)
		return;
	count = recv(s.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (count == 0) {
		close(s.fd);
		s.fd = -1;
	}
	if (count > 0 && s.polite)
		answer_politely(bytes, (size_t)count);
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
	send_bytes(bytes->at, count);
	bytes->at += count;
	bytes->left -= count;
}

static void say_message(struct bytes *bytes)
{
	static const char kinds[] = "123CDEGHIKNRSTVWZAnst";
	char kind = kinds[take_number(bytes, 1) % (sizeof(kinds) - 1)];
	struct message m = { .count = take_number(bytes, 1) };

	m.count = m.count < bytes->left ? m.count : bytes->left;
	memcpy(m.bytes, bytes->at, m.count);
	bytes->at += m.count;
	bytes->left -= m.count;
	say(kind, &m);
}

static void say_error(struct bytes *bytes)
{
	static const char *const states[] = { "26000", "57014", "40001", "55P03",
		                              "GL001", "GL002", "42883", "25006",
		                              "57P01", "0A000", "53300", "XX000" };
	size_t which = take_number(bytes, 1) % (sizeof(states) / sizeof(states[0]));
	struct message m = { .count = 0 };

	put(&m, 'S', 1);
	put_text(&m, "ERROR");
	put(&m, 'C', 1);
	put_text(&m, states[which]);
	put(&m, 'M', 1);
	put_text(&m, "fuzzed");
	put(&m, 0, 1);
	say('E', &m);
	if (take_number(bytes, 1) % 8 != 0)
		say_ready();
}

/* A word that may be meant, mostly. */
static uint64_t take_word(struct bytes *bytes)
{
	uint64_t kind = take_number(bytes, 1);

	if (kind < 64)
		return take_number(bytes, 1);
	if (kind < 128)
		return T0 + s.now.ns / 1000 + take_number(bytes, 2);
	if (kind < 192)
		return s.rule.fingerprint;
	return take_number(bytes, 8);
}

static void say_grant_row(struct bytes *bytes)
{
	uint64_t words[GROUP_GRANT_WORDS];
	uint64_t job = take_number(bytes, 1) % (CALLS + LOANS);

	fuzzed_words(bytes, words);
	say_row(job + (take_number(bytes, 1) % 8 << 7), words, GROUP_GRANT_WORDS);
}

static void say_told_row(struct bytes *bytes)
{
	uint64_t words[WORDS_MOST];
	uint64_t job = take_number(bytes, 1) % (CALLS + LOANS), code, used;
	size_t count = take_number(bytes, 1) % WORDS_MOST;

	code = take_number(bytes, 1) % 8;
	used = take_number(bytes, 3);
	for (size_t i = 0; i < count; i++)
		words[i] = take_word(bytes);
	say_row(job + (code << 7) + (code == REMOTE_LENT ? used << 10 : 0),
	        count > 0 ? words : NULL, count);
}

/* To the call of that number. */
static void say_told(struct bytes *bytes)
{
	uint64_t rows = take_number(bytes, 1) % (CALLS + LOANS);
	uint64_t ahead = take_number(bytes, 1);
	uint64_t now = T0 + s.now.ns / 1000 + take_number(bytes, 2);
	uint64_t words[3] = { 0, now, now };

	if (s.rule.is.period_us > 0)
		words[2] = now - now % s.rule.is.period_us;
	s.nonce = ahead < 128 ? s.nonce + 1 : ahead - 127;
	words[0] = s.nonce;
	say_columns_of_told();
	say_row(0, words, ahead % 2 ? 3 : 2);
	for (uint64_t i = 0; i < rows; i++)
		if (take_number(bytes, 1) % 4 == 0)
			say_grant_row(bytes);
		else
			say_told_row(bytes);
	say_done();
}

static void end(void)
{
	if (s.fd >= 0)
		close(s.fd);
	s.fd = -1;
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
	case SAY_TOLD:
		say_told(bytes);
		batch_is_answered();
		break;
	case SAY_ERROR:
		say_error(bytes);
		batch_is_answered();
		break;
	case SAY_MESSAGE:
		say_message(bytes);
		break;
	default:
		end();
	}
}

/* ---- The run --------------------------------------------------------------------- */

static void remove_folder(void)
{
	(void)unlink(path);
	(void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)argc;
	(void)argv;
	gale_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", folder);
	snprintf(url, sizeof(url), "postgres:///fuzz?host=%s&user=fuzz", folder);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	gale_assert(listener >= 0);
	gale_assert(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	gale_assert(listen(listener, 8) == 0);
	(void)atexit(remove_folder);
	return 0;
}

static void open_scene(struct server_kind *kind)
{
	struct client_config config = { .allocator = memory_default(),
		                        .home = &s.home,
		                        .counters = s.counters,
		                        .notice = &s.notice,
		                        .quarantine_us = QUARANTINE_DEFAULT_US,
		                        .wire = kind->wire(
					    kind, (struct watch){ .epoll_fd = -1 }) };

	gale_assert(config.wire);
	list_init(&s.home.done);
	s.home.on_answer = on_answer;
	s.now.ns = 1;
	s.client = client_open(&config);
	gale_assert(s.client);
}

/* Whoever is still connecting is let go, too. */
static void close_scene(struct server_kind *kind)
{
	int fd;

	client_close(s.client);
	take_done();
	kind->free(kind);
	end();
	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
	for (int i = 0; i < CALLS; i++)
		gale_assert(!s.busy[i]); /* CLIENT-1 */
	for (int i = 0; i < LOANS; i++)
		gale_assert(s.asked[i] == 0);
}

static void let_run(void)
{
	for (int i = 0; i < 8; i++) {
		(void)client_turn(s.client, s.now);
		hear();
	}
	(void)client_turn(s.client, s.now);
	take_done();
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
	s.fd = -1;
	if (!is_short(&config) || rule_compile(&config, &s.rule) != GALE_ERR_OK)
		return 0;
	manner = take_number(&bytes, 1);
	s.polite = manner % 8 != 7;
	s.ours = manner % 16 < 8;
	kind = postgres_kind(memory_default(), url, &fault);
	gale_assert(kind);
	open_scene(kind);
	for (int i = 0; i < MOVES && bytes.left > 0; i++) {
		move(&bytes);
		let_run();
	}
	close_scene(kind);
	return 0;
}
