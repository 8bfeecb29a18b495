/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* scout.c -- one sentinel at a time. */
#include "stores/redis/scout.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "stores/redis/site.h"
#include "stores/url.h"

#define PATIENCE_NS UINT64_C(500000000) /* with one sentinel */
#define READ_MOST 4096
#define STRING_MOST 1024

void scout_open(struct scout *scout, const struct scout_config *config)
{
	*scout = (struct scout){ .config = *config };
	scout->out.allocator = config->allocator;
	stream_init(&scout->stream, config->watch, config->tls);
}

/* The next one is asked at the next turn; when none has answered, after a while. */
void scout_hang_up(struct scout *scout)
{
	stream_close(&scout->stream);
	redis_intake_close(&scout->intake);
	redis_text_cut(&scout->out, scout->out.count);
	scout->asking = scout->greeted = false;
}

void scout_close(struct scout *scout)
{
	scout_hang_up(scout);
	redis_text_free(&scout->out);
}

static struct remote_bytes word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

static bool put_question(struct scout *scout)
{
	const struct remote_bytes auth[2] = { word("AUTH"),
		                              word(scout->config.password) };
	const struct remote_bytes words[3] = { word("SENTINEL"),
		                               word("GET-MASTER-ADDR-BY-NAME"),
		                               word(scout->config.service) };

	if (!scout->greeted && scout->config.password[0] != '\0' &&
	    !redis_put_words(&scout->out, auth, 2))
		return false;
	if (!redis_put_words(&scout->out, words, 3))
		return false;
	/* After the question: what is said of the name comes when nothing is asked. */
	if (!scout->greeted && !redis_put_name(&scout->out))
		return false;
	scout->greeted = true;
	return true;
}

static void ask(struct scout *scout, mono now)
{
	scout->due = mono_after(now, PATIENCE_NS);
	scout->asking = put_question(scout);
	if (!scout->asking)
		scout_hang_up(scout);
}

static void begin(struct scout *scout, mono now, bool is_due)
{
	const struct scout_config *config = &scout->config;

	scout->tries = is_due ? 1 : scout->tries + 1;
	scout->due = mono_after(now, PATIENCE_NS);
	if (!redis_intake_open(&scout->intake, STRING_MOST) ||
	    !stream_connect(&scout->stream,
	                    &config->sentinels
	                         ->addresses[scout->next++ % config->sentinels->count]))
		scout_hang_up(scout);
}

static bool is_address(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[0]->type == REDIS_REPLY_STRING &&
	       reply->element[1]->type == REDIS_REPLY_STRING;
}

/* What a sentinel has said instead of an address. */
static void note_why(struct scout *scout, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_ERROR)
		snprintf(scout->why, sizeof(scout->why), "a sentinel says: %.64s",
		         reply->str);
	else if (is_address(reply))
		snprintf(scout->why, sizeof(scout->why),
		         "a sentinel tells %.32s, and must tell an address",
		         reply->element[0]->str);
	else
		snprintf(scout->why, sizeof(scout->why),
		         "a sentinel knows no service %.48s", scout->config.service);
}

/* A sentinel that has gone has said nothing; one that does not speak TLS as it should has. */
static void give_up(struct scout *scout, const char *why)
{
	if (scout->stream.session && scout->stream.is_connected && why[0] != '\0')
		snprintf(scout->why, sizeof(scout->why), "a sentinel: %.160s", why);
	scout_hang_up(scout);
}

/* A sentinel tells addresses; a name would have to be looked up, which takes its time. */
static bool read_address(const redisReply *reply, struct stream_address *ret_address)
{
	uint64_t port;

	return is_address(reply) &&
	       url_number(reply->element[1]->str, UINT16_MAX, &port) &&
	       stream_numeric(reply->element[0]->str, (uint16_t)port, ret_address);
}

static void hear(struct scout *scout, const redisReply *reply, mono now)
{
	struct stream_address primary = { .count = 0 };

	if (reply->type == REDIS_REPLY_STATUS || !scout->asking)
		return; /* of AUTH, or of the name */
	if (!read_address(reply, &primary)) {
		note_why(scout, reply);
		scout_hang_up(scout); /* another may know */
		return;
	}
	if (primary.count != scout->primary.count ||
	    memcmp(&primary.bytes, &scout->primary.bytes, primary.count) != 0)
		scout->changes++;
	scout->answers++;
	scout->why[0] = '\0';
	scout->primary = primary;
	scout->asking = false;
	scout->due = mono_after(now, SCOUT_PAUSE_NS);
	scout->tries = 0;
}

static void hear_some(struct scout *scout, mono now)
{
	uint8_t bytes[READ_MOST];
	ptrdiff_t count = stream_read(&scout->stream, bytes, sizeof(bytes));
	redisReply *reply;

	if (count < 0 || !redis_intake_feed(&scout->intake, bytes, (size_t)count)) {
		give_up(scout, count < 0 ? stream_why(&scout->stream) : "");
		return;
	}
	while (scout->stream.fd >= 0) {
		if (!redis_intake_take(&scout->intake, &reply)) {
			scout_hang_up(scout);
			return;
		}
		if (!reply)
			return;
		hear(scout, reply, now);
		redis_reply_free(reply);
	}
}

static void say_some(struct scout *scout)
{
	ptrdiff_t sent =
	    stream_send(&scout->stream, scout->out.bytes, scout->out.count);

	if (sent < 0)
		scout_hang_up(scout);
	else
		redis_text_cut(&scout->out, (size_t)sent);
}

/* An answer that is under way may be about the former primary. */
void scout_hurry(struct scout *scout)
{
	if (scout->asking)
		scout_hang_up(scout);
	scout->due = (mono){ 0 };
}

static bool has_more_to_try(const struct scout *scout)
{
	return scout->stream.fd < 0 && scout->tries < scout->config.sentinels->count;
}

mono scout_due(const struct scout *scout, mono now)
{
	return has_more_to_try(scout) ? now : scout->due;
}

void scout_turn(struct scout *scout, mono now)
{
	bool is_due = mono_reached(now, scout->due);

	if (is_due && scout->asking)
		scout_hang_up(scout);
	if (has_more_to_try(scout) || (is_due && scout->stream.fd < 0))
		begin(scout, now, is_due);
	else if (!scout->asking && is_due && scout->stream.is_open)
		ask(scout, now);
	switch (stream_turn(&scout->stream)) {
	case STREAM_OPENING:
		if (mono_reached(now, scout->due))
			give_up(scout, scout->stream.is_connected
			                   ? "it does not agree on TLS"
			                   : "");
		return;
	case STREAM_OVER:
		give_up(scout, stream_why(&scout->stream));
		return;
	case STREAM_OPEN:
		break;
	}
	if (!scout->greeted)
		ask(scout, now);
	hear_some(scout, now);
	if (scout->stream.fd >= 0)
		say_some(scout);
}
