/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pool.h -- a pgbouncer of the test's own before its PostgreSQL, in transaction pooling.
 *
 * It listens on a socket beside the server's, runs as who the server runs as, and ends
 * with the test.  What cannot be done ends the test.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_POOL_H
#define TESTS_SUPPORT_POOL_H

#include <sys/types.h>

#define POOL_PORT 6432 /* a number of its socket's name */

struct pooler {
	char folder[96]; /* the server's */
	pid_t pid;
};

/* Before the server whose socket is in that folder. */
void pool_start(struct pooler *pool, const char *folder);
void pool_stop(struct pooler *pool);

/* Ends it at once, and starts it again. */
void pool_restart(struct pooler *pool);

#endif
