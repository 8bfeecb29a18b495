/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * hiredis.c -- a limit as it is written by hand: a counter in Redis, and an expiry.
 *
 * ADDRESS is the path of a socket, or HOST:PORT.  One round trip for each call, by a script
 * that counts and expires in one step.  VARIANT "patient": no call has a time limit, which is
 * what hiredis does unless it is told otherwise.
 *
 * Threads   A connection each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "bench/compare/peers/driver.h"

#define COUNT                                                                          \
	"local n = redis.call('INCR', KEYS[1]) "                                       \
	"if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end "                  \
	"return n <= tonumber(ARGV[1]) and 1 or 0"
#define WINDOW_MS "86400000"
#define DEPTH_MOST 256

static redisContext *caller;
static char sha1[64];
static char space[48];
static char limit[24];

static redisContext *open_connection(void)
{
	const struct timeval patience = { .tv_usec = 100000 };
	const char *colon = strrchr(driver_address, ':');
	redisContext *context;
	char host[64];

	if (colon) {
		snprintf(host, sizeof(host), "%.*s", (int)(colon - driver_address),
		         driver_address);
		context = redisConnectWithTimeout(host, atoi(colon + 1), patience);
	} else {
		context = redisConnectUnixWithTimeout(driver_address, patience);
	}
	if (context && context->err == 0 && strcmp(driver_variant, "patient") != 0)
		redisSetTimeout(context, patience);
	else if (context && context->err == 0)
		redisSetTimeout(context, (struct timeval){ 0 });
	return context;
}

/* The script is sent again to a server that has been restarted. */
static void load(redisContext *context)
{
	redisReply *reply = redisCommand(context, "SCRIPT LOAD %s", COUNT);

	if (reply && reply->type == REDIS_REPLY_STRING)
		snprintf(sha1, sizeof(sha1), "%s", reply->str);
	if (reply)
		freeReplyObject(reply);
}

static void send_one(redisContext *context, const char *key)
{
	redisAppendCommand(context, "EVALSHA %s 1 %s:%b %s %s", sha1, space, key,
	                   (size_t)DRIVER_KEY_LEN, limit, WINDOW_MS);
}

static enum driver_answer hear_one(redisContext *context)
{
	enum driver_answer answer = DRIVER_FAILED;
	redisReply *reply = NULL;

	if (redisGetReply(context, (void **)&reply) != REDIS_OK || !reply)
		return DRIVER_FAILED;
	if (reply->type == REDIS_REPLY_INTEGER)
		answer = reply->integer == 1 ? DRIVER_ALLOWED : DRIVER_DENIED;
	freeReplyObject(reply);
	return answer;
}

static inline enum driver_answer ask(struct driver_turn *turn, const char *key)
{
	send_one(turn->own, key);
	return hear_one(turn->own);
}

static void run_deep(struct driver_turn *turn)
{
	uint64_t began, depth = turn->work->depth;

	driver_must(depth <= DEPTH_MOST, "depth");
	while ((began = driver_now_ns()) < turn->end_ns) {
		for (uint64_t i = 0; i < depth; i++)
			send_one(turn->own, driver_next_key(turn));
		for (uint64_t i = 0; i < depth; i++)
			turn->tally.answers[hear_one(turn->own)]++;
		driver_note(&turn->tally, driver_now_ns() - began);
	}
}

static void run(struct driver_turn *turn)
{
	redisContext *context = open_connection();

	driver_must(context && context->err == 0, "a connection");
	turn->own = context;
	if (turn->work->depth > 1)
		run_deep(turn);
	else
		driver_loop(turn, 1, ask);
	redisFree(context);
}

/* Connects again at the next call when a connection is lost, as one does by hand. */
static enum driver_answer call(const char *key)
{
	enum driver_answer answer;

	if (!caller || caller->err) {
		if (caller)
			redisFree(caller);
		caller = open_connection();
		if (!caller || caller->err)
			return DRIVER_FAILED;
		load(caller);
	}
	send_one(caller, key);
	answer = hear_one(caller);
	return answer;
}

static void pass(const char (*keys)[DRIVER_KEY_LEN], uint64_t count,
                 struct driver_tally *tally)
{
	for (uint64_t i = 0; i < count; i++) {
		send_one(caller, keys[i]);
		if (i % 64 == 63 || i + 1 == count)
			for (uint64_t j = 0; j <= i % 64; j++)
				tally->answers[hear_one(caller)]++;
	}
}

static const char *prepare(const struct driver_work *work,
                           const char (*keys)[DRIVER_KEY_LEN])
{
	static struct driver_tally ignored;

	driver_must(driver_address != NULL, "an address");
	if (caller)
		redisFree(caller);
	caller = open_connection();
	driver_must(caller && caller->err == 0, "a connection");
	load(caller);
	snprintf(space, sizeof(space), "%s", work->space[0] ? work->space : "fill");
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)work->limit);
	if (strcmp(work->name, "deny") == 0)
		pass(keys, work->keys, &ignored);
	return NULL;
}

static void fill(struct driver_turn *turn)
{
	pass(turn->keys, turn->work->keys, &turn->tally);
}

int main(int argc, char **argv)
{
	static const struct driver_peer peer = {
		.prepare = prepare,
		.run = run,
		.call = call,
		.fill = fill,
	};

	return driver_main(argc, argv, &peer);
}
