/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * negotiator.h -- a server of TLS 1.2 before a plain one, which negotiates each session again after so
 * many bytes, and ends it when the client will not.
 *
 *     node <--TLS 1.2 on loopback--> negotiator <--unix socket--> server
 *
 * Threads   One, the test's; each connection has one of its own.
 */
#ifndef TESTS_SUPPORT_NEGOTIATOR_H
#define TESTS_SUPPORT_NEGOTIATOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "tests/support/certificates.h"

#define NEGOTIATOR_MOST 4096 /* connections, in all */

struct negotiator {
	char port[8];
	const char *socket;
	_Atomic size_t each; /* bytes of answers; the test may change it */
	SSL_CTX *ctx;
	int listener;
	pthread_t thread;
	_Atomic bool stopping;
	_Atomic uint64_t asked;   /* how often it has */
	_Atomic uint64_t refused; /* how often the client would not */
	size_t count;
	pthread_t threads[NEGOTIATOR_MOST];
};

void negotiator_open(struct negotiator *negotiator, const struct certificate *shown,
                     const char *socket, size_t each);
/* All connections have ended. */
void negotiator_close(struct negotiator *negotiator);

#endif
