/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ear.c -- subscribes, and hears. */
#include "stores/redis/ear.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAUSE_NS                                                                       \
	UINT64_C(5000000000) /* from one connection, or subscription, to the next */
#define NO_CHANNEL REDIS_CHANNELS /* one without a number */
#define READ_MOST 4096
#define READS_MOST 16 /* of a turn: a server may publish without end */
#define STRING_MOST (REDIS_KEY_MAX + GROUP_NUDGE_WORDS * sizeof(double))

void redis_ear_open(struct redis_ear *ear, struct redis_site *site, struct wire *wire)
{
	*ear = (struct redis_ear){ .site = site, .wire = wire };
	ear->out.allocator = site->allocator;
	stream_init(&ear->stream, (struct watch){ wire->watch.epoll_fd, false },
	            redis_tls(site));
}

void redis_ear_hang_up(struct redis_ear *ear)
{
	stream_close(&ear->stream);
	redis_intake_close(&ear->intake);
	redis_text_cut(&ear->out, ear->out.count);
	memset(ear->asked, 0, sizeof(ear->asked));
	ear->greeted = false;
}

void redis_ear_close(struct redis_ear *ear)
{
	redis_ear_hang_up(ear);
	redis_text_free(&ear->out);
}

void redis_ear_move(struct redis_ear *ear, const struct stream_address *where)
{
	redis_ear_hang_up(ear);
	ear->where = *where;
	ear->refused = false;
	ear->due = (mono){ 0 };
}

void redis_ear_listen(struct redis_ear *ear, uint64_t mark)
{
	uint64_t channel = mark % REDIS_CHANNELS;

	ear->wanted[channel / 64] |= UINT64_C(1) << channel % 64;
}

/* ---- Saying ---------------------------------------------------------------------- */

static size_t name_of(const struct redis_ear *ear, uint64_t channel, uint8_t *name)
{
	size_t count = redis_channel(name, ear->site->url.prefix, channel);

	return channel == NO_CHANNEL ? count - 2 : count;
}

static bool subscribe_to(struct redis_ear *ear, uint64_t channel)
{
	uint8_t name[REDIS_CHANNEL_MAX];
	const struct remote_bytes words[2] = { redis_word("SUBSCRIBE"),
		                               { name, name_of(ear, channel, name) } };

	return redis_put_words(&ear->out, words, 2);
}

/* To all that it has not subscribed to yet.  False without memory. */
static bool subscribe(struct redis_ear *ear)
{
	for (uint64_t channel = 0; channel < REDIS_CHANNELS; channel++) {
		uint64_t bit = UINT64_C(1) << channel % 64;
		size_t at = channel / 64;

		if (!(ear->wanted[at] & ~ear->asked[at] & bit))
			continue;
		if (!subscribe_to(ear, channel))
			return false;
		ear->asked[at] |= bit;
	}
	return true;
}

static bool greet(struct redis_ear *ear, mono now)
{
	const struct url *url = &ear->site->url.is;

	ear->greeted = ear->heard = true;
	ear->nods = redis_has_auth(url) ? 2 : 1;
	ear->due = mono_after(now, PAUSE_NS);
	return redis_put_auth(&ear->out, url) && redis_put_name(&ear->out);
}

/* A connection that is silent may be none any more. */
static bool look_whether_it_lives(struct redis_ear *ear, mono now)
{
	bool lives = ear->heard;

	if (!mono_reached(now, ear->due))
		return true;
	ear->heard = false;
	ear->due = mono_after(now, PAUSE_NS);
	return lives && subscribe_to(ear, NO_CHANNEL);
}

/* ---- Hearing --------------------------------------------------------------------- */

static void nudge(const struct redis_ear *ear, const struct store_nudge *nudge)
{
	if (ear->wire->home->on_nudge)
		ear->wire->home->on_nudge(ear->wire->home, nudge);
}

/* Nudges of before are missed: all members whose mark has that channel are nudged. */
static void begin_to_hear(const struct redis_ear *ear, const redisReply *channel)
{
	struct store_nudge missed = { .bits = REDIS_CHANNELS - 1,
		                      .is = { .whom = GROUP_TAKE } };

	if (channel->len < 2 ||
	    sscanf(channel->str + channel->len - 2, "%2" SCNx64, &missed.mark) != 1)
		return;
	nudge(ear, &missed);
}

static bool is_text(const redisReply *reply, const char *text)
{
	return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

static void hear_three(const struct redis_ear *ear, const redisReply *what,
                       const redisReply *channel, const redisReply *text)
{
	struct store_nudge said;

	if (channel->type != REDIS_REPLY_STRING)
		return;
	if (is_text(what, "subscribe"))
		begin_to_hear(ear, channel);
	else if (is_text(what, "message") && text->type == REDIS_REPLY_STRING &&
	         redis_read_nudge((const uint8_t *)text->str, text->len, &said))
		nudge(ear, &said);
}

static void hear(struct redis_ear *ear, const redisReply *reply)
{
	ear->heard = true;
	if (ear->nods > 0)
		ear->nods--;
	else if (reply->type == REDIS_REPLY_ERROR)
		ear->refused = true;
	else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3)
		hear_three(ear, reply->element[0], reply->element[1],
		           reply->element[2]);
}

/* False: what it says is no reply. */
static bool hear_all(struct redis_ear *ear)
{
	redisReply *reply;

	while (redis_intake_take(&ear->intake, &reply)) {
		if (!reply)
			return true;
		hear(ear, reply);
		redis_reply_free(reply);
	}
	return false;
}

static bool read_some(struct redis_ear *ear)
{
	uint8_t bytes[READ_MOST];
	ptrdiff_t count = READ_MOST;

	for (int i = 0; i < READS_MOST && count == READ_MOST; i++) {
		count = stream_read(&ear->stream, bytes, sizeof(bytes));
		if (count < 0 ||
		    !redis_intake_feed(&ear->intake, bytes, (size_t)count) ||
		    !hear_all(ear))
			return false;
	}
	return true;
}

static bool send_some(struct redis_ear *ear)
{
	ptrdiff_t sent = stream_send(&ear->stream, ear->out.bytes, ear->out.count);

	if (sent < 0)
		return false;
	redis_text_cut(&ear->out, (size_t)sent);
	return true;
}

/* ---- Turns ----------------------------------------------------------------------- */

static void begin(struct redis_ear *ear, mono now)
{
	if (!mono_reached(now, ear->due))
		return;
	ear->due = mono_after(now, PAUSE_NS);
	if (!redis_intake_open(&ear->intake, STRING_MOST) ||
	    !stream_connect(&ear->stream, &ear->where))
		redis_ear_hang_up(ear);
}

static bool go_on(struct redis_ear *ear, mono now)
{
	switch (stream_turn(&ear->stream)) {
	case STREAM_OPENING:
		return !mono_reached(now, ear->due);
	case STREAM_OVER:
		return false;
	case STREAM_OPEN:
		break;
	}
	return (ear->greeted || greet(ear, now)) && look_whether_it_lives(ear, now) &&
	       subscribe(ear) && read_some(ear) && send_some(ear) && !ear->refused;
}

void redis_ear_turn(struct redis_ear *ear, mono now)
{
	if (!ear->wire->hears || ear->refused)
		return;
	if (ear->stream.fd < 0)
		begin(ear, now);
	else if (!go_on(ear, now))
		redis_ear_hang_up(ear);
}

void redis_ear_flush(struct redis_ear *ear)
{
	if (ear->greeted && !(subscribe(ear) && send_some(ear)))
		redis_ear_hang_up(ear);
}
