/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_named.c -- as redis_named.h says. */
#include "tests/support/redis_named.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/must.h"

#define CALL_MOST (1 << 20)
#define KEYS_MOST 16
#define WORDS 4 /* before the keys */

void redis_named_open(struct redis_talk *talk, const struct redis_server *server)
{
	redis_server_do(server, "ACL SETUSER named on nopass +@all allchannels");
	redis_talk_open(talk, server);
	redis_talk_do(talk, "AUTH named any");
}

/* What has a meaning in a pattern, or may not be in one, is any byte. */
static size_t put_pattern(uint8_t *out, const redisReply *key)
{
	must(key->len <= REDIS_KEY_MAX);
	out[0] = '~';
	for (size_t i = 0; i < key->len; i++) {
		uint8_t byte = (uint8_t)key->str[i];

		out[1 + i] = isalnum(byte) || memchr(":{}", byte, 3) ? byte : '?';
	}
	return 1 + key->len;
}

static struct remote_bytes word(const char *text)
{
	return (struct remote_bytes){ (const uint8_t *)text, strlen(text) };
}

/* EVALSHA, the script, how many keys, and the keys. */
static void put_keys(struct redis_text *text, const redisReply *call)
{
	static uint8_t patterns[KEYS_MOST][1 + REDIS_KEY_MAX];
	struct remote_bytes words[WORDS + KEYS_MOST] = { word("ACL"), word("SETUSER"),
		                                         word("named"),
		                                         word("resetkeys") };
	size_t keys = strtoul(call->element[2]->str, NULL, 10);

	must(keys <= KEYS_MOST);
	for (size_t i = 0; i < keys; i++)
		words[WORDS + i] = (struct remote_bytes){
			patterns[i], put_pattern(patterns[i], call->element[3 + i])
		};
	must(redis_put_words(text, words, WORDS + keys));
}

static redisReply *read_call(const struct redis_text *text)
{
	struct redis_intake intake;
	redisReply *call;

	must(redis_intake_open(&intake, CALL_MOST));
	must(redis_intake_feed(&intake, text->bytes, text->count));
	must(redis_intake_take(&intake, &call));
	must(call);
	redis_intake_close(&intake);
	return call;
}

redisReply *redis_named_call(struct redis_talk *talk)
{
	struct redis_text said = talk->text;
	redisReply *call = read_call(&said), *changed;

	talk->text = (struct redis_text){ .allocator = said.allocator };
	put_keys(&talk->text, call);
	redis_reply_free(call);
	redis_talk_send(talk);
	redis_text_free(&talk->text);
	talk->text = said;
	redis_talk_send(talk);
	changed = redis_talk_hear(talk);
	if (changed->type == REDIS_REPLY_ERROR)
		fprintf(stderr, "%s\n", changed->str);
	must(changed->type == REDIS_REPLY_STATUS);
	redis_reply_free(changed);
	return redis_talk_hear(talk);
}
