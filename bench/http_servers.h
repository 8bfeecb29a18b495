/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * http_servers.h -- HTTP servers that are started to be measured.
 *
 * The one of the examples, or an nginx with one process that serves an empty picture, or a
 * page and a line in its log.  http_inside.c is loaded into it, and told whether to ask.
 *
 * Threads   One.
 */
#ifndef BENCH_HTTP_SERVERS_H
#define BENCH_HTTP_SERVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A line of the table. */
struct server_question {
	unsigned connections;
	unsigned deep; /* requests at once on each */
	uint64_t keys;
	const char *window; /* in seconds */
	bool writes_log;    /* nginx: a small file, and a line in its log */
};

struct server_programs {
	const char *server; /* or what is loaded into nginx */
	const char *timed;  /* the same with a watch */
	const char *nginx;  /* NULL: the server of the examples */
};

struct server {
	pid_t pid;
	uint16_t port;
	struct load *load;
	struct timed *timed; /* if it has a watch */
	char folder[64];     /* nginx's; "": none */
};

void server_start(struct server *server, const struct server_programs *programs,
                  const struct server_question *question, bool limits, bool is_timed,
                  unsigned processor);
/* A server drains for a while once it was told to end.  Several do so together: tell all, and
 * await each. */
void server_end(struct server *server);
void server_await(struct server *server);

/* A server to that processor, where a thread that wakes it goes on first: so a batch of
 * requests comes before it has its turn.  0: this thread. */
void server_settle(pid_t pid, unsigned processor);

#endif
