/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_ear_fuzz.c -- whatever a server says to a connection that subscribes, the ear lives, and
 * what it hands on is a nudge that can be.
 *
 * The bytes are moves: what the server says, as it is or as a message whose frame is right, time
 * that passes, connections that end, channels that are wanted, another server.  The stream is
 * the fuzzer's own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/check.h"
#include "runtime/memory.h"
#include "stores/redis/ear.h"
#include "tests/fuzz/bytes.h"

#define MOVES 200
#define SAID_MOST 4096
#define NAME_MOST 24 /* bytes of a group's name, and more */

enum move {
	SAY_BYTES,
	SAY_MESSAGE,
	SAY_SUBSCRIBED,
	PASS,
	END,
	LISTEN,
	MOVE_ON,
	FLUSH,
	MOVE_COUNT,
};

static struct {
	uint8_t said[SAID_MOST];
	size_t said_count;
	bool over;
} s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- The stream ------------------------------------------------------------------ */

static void say(const void *bytes, size_t count)
{
	if (count > SAID_MOST - s.said_count)
		count = SAID_MOST - s.said_count;
	memcpy(s.said + s.said_count, bytes, count);
	s.said_count += count;
}

static void say_string(const void *bytes, size_t count)
{
	char head[24];

	say(head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", count));
	say(bytes, count);
	say("\r\n", 2);
}

void stream_init(struct stream *stream, struct watch watch, const struct tls *tls)
{
	(void)tls;
	*stream = (struct stream){ .watch = watch, .fd = -1 };
}

size_t stream_resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most)
{
	(void)host;
	(void)port;
	gale_assert(most > 0);
	ret_addresses[0] = (struct stream_address){ .count = 1 };
	return 1;
}

bool stream_numeric(const char *address, uint16_t port,
                    struct stream_address *ret_address)
{
	return stream_resolve(address, port, ret_address, 1) == 1;
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
	(void)address;
	stream->fd = 0;
	s.said_count = 0;
	s.over = false;
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
	return stream->fd < 0 || s.over ? STREAM_OVER : STREAM_OPEN;
}

ptrdiff_t stream_send(struct stream *stream, const uint8_t *bytes, size_t count)
{
	(void)bytes;
	return stream->fd < 0 || s.over ? -1 : (ptrdiff_t)count;
}

ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most)
{
	size_t count = s.said_count < most ? s.said_count : most;

	errno = 0;
	if (stream->fd < 0)
		return -1;
	memcpy(bytes, s.said, count);
	s.said_count -= count;
	memmove(s.said, s.said + count, s.said_count);
	return (ptrdiff_t)count;
}

/* ---- What comes of it ------------------------------------------------------------ */

static void on_nudge(struct wire_home *home, const struct store_nudge *nudge)
{
	(void)home;
	gale_assert(nudge->is.whom <= (GROUP_GIVE | GROUP_TAKE));
	gale_assert(nudge->is.slots <= GROUP_SLOTS_MAX);
	gale_assert(nudge->is.weights <= GALE_UNITS_MAX);
	gale_assert(nudge->bits == UINT64_MAX || nudge->is.whom == GROUP_TAKE);
}

/* ---- Moves ----------------------------------------------------------------------- */

static void say_bytes(struct bytes *bytes)
{
	size_t count = take_number(bytes, 1);

	count = count < bytes->left ? count : bytes->left;
	say(bytes->at, count);
	bytes->at += count;
	bytes->left -= count;
}

/* Words that may be meant, mostly, numbers that are too large, and any doubles. */
static double take_word(struct bytes *bytes)
{
	uint64_t kind = take_number(bytes, 1), number;
	double word;

	if (kind < 128)
		return (double)(kind % 8);
	if (kind < 224)
		return (double)take_number(bytes, 7);
	number = take_number(bytes, 8);
	memcpy(&word, &number, sizeof(word));
	return word;
}

static void say_message(struct bytes *bytes)
{
	static const char key[] = "gale:{b00}group:";
	double words[GROUP_NUDGE_WORDS];
	uint8_t text[sizeof(words) + sizeof(key) + NAME_MOST];
	size_t count = sizeof(words) + sizeof(key) - 1;
	uint64_t cut = take_number(bytes, 1), more = take_number(bytes, 1) % NAME_MOST;

	for (size_t i = 0; i < GROUP_NUDGE_WORDS; i++)
		words[i] = take_word(bytes);
	memcpy(text, words, sizeof(words));
	memcpy(text + sizeof(words), key, sizeof(key) - 1);
	for (uint64_t i = 0; i < more; i++)
		text[count++] = (uint8_t)take_number(bytes, 1);
	if (cut < count)
		count = cut;
	say("*3\r\n", 4);
	say_string("message", 7);
	say_string("gale:nudges:00", 14);
	say_string(text, count);
}

static void say_subscribed(struct bytes *bytes)
{
	char channel[] = "gale:nudges:00";
	size_t count = take_number(bytes, 1) % sizeof(channel);

	channel[12] = (char)take_number(bytes, 1);
	channel[13] = (char)take_number(bytes, 1);
	say("*3\r\n", 4);
	say_string("subscribe", 9);
	say_string(channel, count);
	say(":1\r\n", 4);
}

static void move(struct redis_ear *ear, struct bytes *bytes, mono *now)
{
	static const struct stream_address elsewhere = { .count = 1 };

	switch ((enum move)(take_number(bytes, 1) % MOVE_COUNT)) {
	case SAY_BYTES:
		say_bytes(bytes);
		break;
	case SAY_MESSAGE:
		say_message(bytes);
		break;
	case SAY_SUBSCRIBED:
		say_subscribed(bytes);
		break;
	case PASS:
		now->ns += take_number(bytes, 2) * 1000000;
		break;
	case END:
		s.over = true;
		break;
	case LISTEN:
		redis_ear_listen(ear, take_number(bytes, 1));
		break;
	case MOVE_ON:
		redis_ear_move(ear, &elsewhere);
		break;
	default:
		redis_ear_flush(ear);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	struct wire_home home = { .on_nudge = on_nudge };
	struct wire wire = { .home = &home, .watch.epoll_fd = -1, .hears = true };
	struct redis_site *site;
	struct redis_ear ear;
	struct url_fault fault;
	mono now = { 1 };

	memset(&s, 0, sizeof(s));
	site =
	    redis_site_open(memory_default(),
	                    take_number(&bytes, 1) % 2 ? "redis://user:word@127.0.0.1"
	                                               : "redis://127.0.0.1",
	                    &fault);
	gale_assert(site);
	redis_ear_open(&ear, site, &wire);
	redis_ear_listen(&ear, 0);
	for (int i = 0; i < MOVES && bytes.left > 0; i++) {
		redis_ear_turn(&ear, now);
		move(&ear, &bytes, &now);
	}
	redis_ear_turn(&ear, now);
	redis_ear_close(&ear);
	redis_site_close(site);
	return 0;
}
