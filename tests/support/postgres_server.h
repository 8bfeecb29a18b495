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
#include <stddef.h>
#include <stdint.h>

struct postgres_server;

/* A new database cluster, and its server.  It syncs nothing: servers crash here and machines
 * do not, and a disk may take seconds, for which no node waits. */
struct postgres_server *postgres_server_start(void);

/* Starts it again, to listen on 127.0.0.1, too; returns the port there. */
uint16_t postgres_server_listen(struct postgres_server *server);

/* The same, in TLS only, as the certificate says and with its key.  Whoever is called guarded has
 * to show a certificate of the CA.  Files of PEM, which are copied. */
struct postgres_secrets {
	const char *ca, *cert, *key;
};
uint16_t postgres_server_secure(struct postgres_server *server,
                                const struct postgres_secrets *secrets);

/* A copy of the server that listens on that port of 127.0.0.1, or that a proxy there speaks
 * for, and which it follows; it listens, too, on the port that is returned. */
struct postgres_server *postgres_server_follow(uint16_t port, uint16_t *ret_port);
/* It has heard of all that was written there until now. */
void postgres_server_catch_up(const struct postgres_server *standby,
                              const struct postgres_server *primary);
/* It is a primary from then on, with what it has heard of. */
void postgres_server_promote(struct postgres_server *standby);

/* Starts it again, with its write-ahead log in that folder, which has to be its user's. */
void postgres_server_log_at(struct postgres_server *server, const char *folder);

/* For PQconnectdb; as the user who owns all of it. */
const char *postgres_server_address(const struct postgres_server *server);

/* The only field of what must be one row; room for size bytes. */
void postgres_server_ask(const struct postgres_server *server, const char *sql,
                         char *ret_text, size_t size);

/* How many lines of its log have that text. */
unsigned postgres_server_logged(const struct postgres_server *server, const char *text);

/* Each statement of a gale that is installed there notes from then on, in public.seen, the process
 * that does it, and how many statements of its session have names; and forgets those names, if
 * that is said. */
void postgres_server_spy(const struct postgres_server *server, bool forgets);

/* Ends it, as a crash would or in good order, and starts it again. */
void postgres_server_restart(struct postgres_server *server, bool crashes);

/* Kills one of its processes, so that all of them have to start anew. */
void postgres_server_crash_process(struct postgres_server *server, int pid);

/* Ends it as a crash would. */
void postgres_server_kill(struct postgres_server *server);

/* Also if it was killed. */
void postgres_server_stop(struct postgres_server *server);

#endif
