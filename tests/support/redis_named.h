/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_named.h -- a conversation whose scripts may touch the keys that their calls name, and no others.
 *
 * The server sees to it: it is the conversation of a user whose keys are those of each call anew.
 */
#ifndef TESTS_SUPPORT_REDIS_NAMED_H
#define TESTS_SUPPORT_REDIS_NAMED_H

#include "tests/support/redis_server.h"

/* For redis_talk_close. */
void redis_named_open(struct redis_talk *talk, const struct redis_server *server);

/* Says what was put, an EVALSHA alone.  The reply is for redis_reply_free; it is an error if the script
 * touches another key, unless the script bears that. */
redisReply *redis_named_call(struct redis_talk *talk);

#endif
