/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * secure_server.h -- a redis-server with a port of TLS, and a sentinel of it that has no other
 * port.  The test itself asks the server at its socket.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_SECURE_SERVER_H
#define TESTS_SUPPORT_SECURE_SERVER_H

#include "tests/support/certificates.h"
#include "tests/support/redis_server.h"

struct secure_server {
	struct redis_server is;
	char port[8];
	const char *options[24];
	const struct certificate *shown, *ca;
};

/* clients: "yes": each needs a certificate of the CA; "no".  There is a user ali, whose password
 * is baba. */
void secure_server_start(struct secure_server *server, const struct certificate *shown,
                         const struct certificate *ca, const char *clients);
void secure_server_stop(struct secure_server *server);

struct secure_sentinel {
	pid_t pid;
	char folder[64];
	char port[8];
};

/* It shows the certificate of the server, which it knows as main; and it listens. */
void secure_sentinel_start(struct secure_sentinel *sentinel,
                           const struct secure_server *server);
void secure_sentinel_stop(struct secure_sentinel *sentinel);

#endif
