/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_visit.h -- one visit to a Redis server, as an operator: reach it, sign in, ask.
 *
 *     (a sentinel -> which primary?) -> connect -> AUTH -> SELECT -> questions
 *
 * Threads   One; each call waits for the server, for REDIS_VISIT_S at most.
 */
#ifndef TOOLS_REDIS_VISIT_H
#define TOOLS_REDIS_VISIT_H

#include <hiredis/hiredis.h>

#include "stores/redis/url.h"
#include "tools/sentence.h"

#define REDIS_VISIT_S 5
#define REDIS_OLDEST 7 /* server that has all that is needed */
#define REDIS_SLOTS 16384
#define REDIS_LINE 96

/* Each returns NULL or false, and says why, when the server cannot be asked. */

/* At port 0 the host is a socket's path. */
redisContext *redis_reach(const struct redis_url *url, const char *host, int port,
                          struct sentence *why);
/* Ends the visit. */
void redis_leave(redisContext *conn);
/* The host of the URL that has this number; of a sentinel, the primary that it names. */
redisContext *redis_reach_host(const struct redis_url *url, size_t which,
                               struct sentence *why);
/* The first of the URL's hosts that answers, or its socket. */
redisContext *redis_reach_any(const struct redis_url *url, struct sentence *why);

bool redis_sign_in(redisContext *conn, const struct redis_url *url,
                   struct sentence *why);
bool redis_choose_db(redisContext *conn, uint64_t db, struct sentence *why);

/* Sends a command as redisCommand does, and waits for its whole reply: a server that says a byte now and
 * then has no longer than another.  NULL: conn->errstr says why, and the visit is over. */
redisReply *redis_ask(redisContext *conn, const char *format, ...);
redisReply *redis_ask_words(redisContext *conn, int count, const char **words);

/* The reply, unless it is an error or there is none. */
redisReply *redis_asked(redisContext *conn, redisReply *reply, struct sentence *why);

/* What INFO says, as a text. */
redisReply *redis_info(redisContext *conn, struct sentence *why);

/* An element of an array that is a text; else "". */
const char *redis_text(const redisReply *array, size_t which);

/* The value of a line of INFO, or "". */
void redis_line(const char *info, const char *name, char value[REDIS_LINE]);

/* Of CONFIG GET, as two texts; NULL: the server does not say. */
redisReply *redis_config_of(redisContext *conn, const char *name);

/* CLUSTER SLOTS, with a server for each slot. */
redisReply *redis_slots(redisContext *conn, struct sentence *why);
/* The range's server; one that does not know its address tells none, and then is
 * where it was asked. */
const char *redis_range_host(const redisReply *range, const redisContext *asked_of);
int redis_range_port(const redisReply *range);
/* Is its server the server of a range before it? */
bool redis_range_is_seen(const redisReply *ranges, size_t which,
                         const redisContext *asked_of);

#endif
