/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * postgres_server.h -- a PostgreSQL of a test's own.
 *
 * It lives in a folder that is gone afterwards, listens on a socket there, and runs as an
 * unprivileged user even if the test does not.  It ends with the test, however that ends.
 * What cannot be done is said, and ends the test: nothing is skipped.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_POSTGRES_SERVER_H
#define TESTS_SUPPORT_POSTGRES_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct postgres_server;

/* A new database cluster, and its server, which is asked to sync what it writes or not. */
struct postgres_server *postgres_server_start(bool syncs);

/* Starts it again, to listen on 127.0.0.1, too; returns the port there. */
uint16_t postgres_server_listen(struct postgres_server *server);

/* For PQconnectdb; as the user who owns all of it. */
const char *postgres_server_address(const struct postgres_server *server);

/* Ends it, as a crash would or in good order, and starts it again. */
void postgres_server_restart(struct postgres_server *server, bool crashes);

/* Kills one of its processes, so that all of them have to start anew. */
void postgres_server_crash_process(struct postgres_server *server, int pid);

void postgres_server_stop(struct postgres_server *server);

#endif
