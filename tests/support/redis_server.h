/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_server.h -- a redis-server of the test's own, and a plain conversation with it.
 *
 * It listens on a socket in a temporary folder and on no port, keeps nothing on disk
 * unless it is told to, and ends with the test, also when that crashes.  A test that
 * cannot start one ends.  GALE_TEST_REDIS names another program than redis-server.
 */
#ifndef TESTS_SUPPORT_REDIS_SERVER_H
#define TESTS_SUPPORT_REDIS_SERVER_H

#include <sys/types.h>

#include <hiredis/hiredis.h>

#include "stores/redis/reply.h"
#include "stores/redis/wire.h"

struct redis_server {
	pid_t pid; /* 0: it was killed */
	const char *const *options;
	char folder[64];
	char socket[96];
};

/* options: more of its command line, NULL at the end; or NULL.  They stay where they
 * are while it is used. */
void redis_server_start(struct redis_server *server, const char *const *options);
void redis_server_stop(struct redis_server *server);

/* Ends it at once; what was not on disk is gone. */
void redis_server_kill(struct redis_server *server);
/* Starts it again where it was; it is killed, if it was not. */
void redis_server_restart(struct redis_server *server);
/* It takes what is sent, as far as buffers go, and does nothing; and goes on. */
void redis_server_pause(const struct redis_server *server);
void redis_server_go_on(const struct redis_server *server);

/* As if it had never forgotten anything: keys under the prefix are in no quarantine. */
void redis_server_settle(const struct redis_server *server, const char *prefix);
/* The same, of keys whose users all say durable=N. */
void redis_server_settle_durable(const struct redis_server *server, const char *prefix,
                                 unsigned durable);
/* The same, of the keys of one bucket of a cluster, at the server that has it. */
void redis_server_settle_bucket(const struct redis_server *server, const char *prefix,
                                uint8_t bucket, unsigned durable);

/* One connection.  Replies come in the order of what was said. */
struct redis_talk {
	int fd;
	struct redis_text text; /* to be said */
	struct redis_intake intake;
};

void redis_talk_open(struct redis_talk *talk, const struct redis_server *server);
void redis_talk_close(struct redis_talk *talk);

/* Sends what was put into the text. */
void redis_talk_send(struct redis_talk *talk);
/* The next reply, for redis_reply_free. */
redisReply *redis_talk_hear(struct redis_talk *talk);
/* A command of words separated by spaces, and the reply. */
redisReply *redis_talk_say(struct redis_talk *talk, const char *command);
/* The same, without an answer that would matter; it must not be an error. */
void redis_talk_do(struct redis_talk *talk, const char *command);
/* The same, on a connection of its own. */
void redis_server_do(const struct redis_server *server, const char *command);

/* How often a command was done so far, in lower case. */
uint64_t redis_server_calls(const struct redis_server *server, const char *command);

/* Of a window's value: where it starts, and what is used of it.  False: it is none. */
bool redis_window_of(const redisReply *value, uint64_t ret_words[2]);

#endif
