/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* redis_bare.c -- hiredis, and nothing else. */
#include "bench/redis_bare.h"

#include <string.h>

#define LEAST                                                                          \
	"redis.call('TIME') local used = redis.call('INCRBY', KEYS[1], ARGV[1]) "      \
	"if used == 1000 then redis.call('PEXPIRE', KEYS[1], 3600000) end return used"

void redis_bare_expect(redisReply *reply, int type)
{
	bench_expect(reply && reply->type == type, "a reply");
	freeReplyObject(reply);
}

void redis_bare_open(struct redis_bare *bare, redisContext *context)
{
	redisReply *reply;

	bench_expect(context && context->err == 0, "a connection");
	bare->context = context;
	reply = redisCommand(context, "SCRIPT LOAD %s", LEAST);
	bench_expect(reply && reply->type == REDIS_REPLY_STRING && reply->len == 40,
	             "a script");
	memcpy(bare->sha1, reply->str, sizeof(bare->sha1));
	freeReplyObject(reply);
}

void redis_bare_ping(struct redis_bare *bare)
{
	redis_bare_expect(redisCommand(bare->context, "PING"), REDIS_REPLY_STATUS);
}

void redis_bare_least(struct redis_bare *bare)
{
	redis_bare_expect(
	    redisCommand(bare->context, "EVALSHA %s 1 bare 1000", bare->sha1),
	    REDIS_REPLY_INTEGER);
}
