/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * redis_sentinel.h -- a primary, its replicas, and a sentinel that watches them.
 *
 * Servers are on free ports of loopback, the primary first.  A replica takes over a second or two
 * after the primary has gone.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_REDIS_SENTINEL_H
#define TESTS_SUPPORT_REDIS_SENTINEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/support/redis_server.h"

#define SENTINEL_SERVERS 3 /* at most */
#define SENTINEL_SERVICE "main"

struct redis_sentinel {
	int count; /* of servers */
	struct redis_server servers[SENTINEL_SERVERS];
	char ports[SENTINEL_SERVERS][8];
	const char *options[SENTINEL_SERVERS][16];
	pid_t pid; /* 0: it was ended */
	int port;
	char folder[64];
};

/* When it returns, the sentinel knows all replicas. */
void redis_sentinel_start(struct redis_sentinel *sentinel, int servers);
/* The sentinel and all servers. */
void redis_sentinel_stop(struct redis_sentinel *sentinel);
/* The sentinel alone. */
void redis_sentinel_end(struct redis_sentinel *sentinel);

/* How often another server became the primary. */
int redis_sentinel_switches(const struct redis_sentinel *sentinel);

/* arg: a struct redis_server, a replica that hears what its primary says; for becomes_true. */
bool redis_is_linked(void *arg);

#endif
