/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* negotiator.c -- carries bytes between a session of OpenSSL's and a socket. */
#define _GNU_SOURCE
#include "tests/support/negotiator.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>

#include "runtime/atomic.h"
#include "tests/support/must.h"

#define ROOM 4096
#define LOOK_MS 20 /* so often it is looked whether all is to end */

struct line {
	struct negotiator *negotiator;
	SSL *ssl;
	int fd, server;
	size_t sum; /* bytes of answers since it has negotiated */
};

/* ---- One connection -------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, int count)
{
	ssize_t sent = 1;

	for (; count > 0 && sent > 0; bytes += sent, count -= (int)sent)
		sent = send(fd, bytes, (size_t)count, MSG_NOSIGNAL);
	return count == 0;
}

/* A client that will not says so instead of what it would have said next. */
static bool carry_to_server(struct line *line)
{
	char bytes[ROOM];
	int count = SSL_read(line->ssl, bytes, ROOM);

	if (count > 0)
		return write_all(line->server, bytes, count);
	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_NO_RENEGOTIATION)
		line->negotiator->refused++;
	return false;
}

static bool negotiate(struct line *line)
{
	line->sum = 0;
	line->negotiator->asked++;
	return SSL_renegotiate(line->ssl) == 1 && SSL_do_handshake(line->ssl) == 1;
}

static bool carry_to_node(struct line *line)
{
	char bytes[ROOM];
	ssize_t count = recv(line->server, bytes, ROOM, 0);

	if (count <= 0 || SSL_write(line->ssl, bytes, (int)count) <= 0)
		return false;
	line->sum += (size_t)count;
	return line->sum < load_relaxed(&line->negotiator->each) || negotiate(line);
}

static bool carry(struct line *line)
{
	struct pollfd ends[2] = { { line->fd, POLLIN, 0 },
		                  { line->server, POLLIN, 0 } };
	bool has_more = SSL_pending(line->ssl) > 0;

	if (poll(ends, 2, has_more ? 0 : LOOK_MS) < 0)
		return false;
	if ((has_more || ends[0].revents) && !carry_to_server(line))
		return false;
	return !ends[1].revents || carry_to_node(line);
}

static bool reach_server(struct line *line)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	must(strlen(line->negotiator->socket) < sizeof(address.sun_path));
	strcpy(address.sun_path, line->negotiator->socket);
	return connect(line->server, (const struct sockaddr *)&address,
	               sizeof(address)) == 0;
}

/* OpenSSL writes to a client that has gone. */
static void bear_sigpipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	must(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static void *line_main(void *arg)
{
	struct line *line = arg;

	bear_sigpipe();
	line->server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	line->ssl = SSL_new(line->negotiator->ctx);
	must(line->server >= 0 && line->ssl && SSL_set_fd(line->ssl, line->fd) == 1);
	if (SSL_accept(line->ssl) == 1 && reach_server(line))
		while (!load_relaxed(&line->negotiator->stopping) && carry(line))
			;
	ERR_clear_error();
	SSL_free(line->ssl);
	close(line->server);
	close(line->fd);
	free(line);
	return NULL;
}

/* ---- All of them ----------------------------------------------------------------- */

static void begin_line(struct negotiator *negotiator, int fd)
{
	struct line *line = calloc(1, sizeof(*line));

	must(line && negotiator->count < NEGOTIATOR_MOST);
	line->negotiator = negotiator;
	line->fd = fd;
	must(pthread_create(&negotiator->threads[negotiator->count++], NULL, line_main,
	                    line) == 0);
}

static void *accept_main(void *arg)
{
	struct negotiator *negotiator = arg;
	int fd;

	while ((fd = accept4(negotiator->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		begin_line(negotiator, fd);
	return NULL;
}

static void listen_somewhere(struct negotiator *negotiator)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);

	negotiator->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(negotiator->listener, (struct sockaddr *)&address, bytes) == 0);
	must(listen(negotiator->listener, 64) == 0);
	must(getsockname(negotiator->listener, (struct sockaddr *)&address, &bytes) ==
	     0);
	snprintf(negotiator->port, sizeof(negotiator->port), "%u",
	         ntohs(address.sin_port));
}

void negotiator_open(struct negotiator *negotiator, const struct certificate *shown,
                     const char *socket, size_t each)
{
	memset(negotiator, 0, sizeof(*negotiator));
	negotiator->socket = socket;
	store_relaxed(&negotiator->each, each);
	negotiator->ctx = SSL_CTX_new(TLS_server_method());
	must(negotiator->ctx &&
	     SSL_CTX_use_certificate_file(negotiator->ctx, shown->cert,
	                                  SSL_FILETYPE_PEM) == 1 &&
	     SSL_CTX_use_PrivateKey_file(negotiator->ctx, shown->key,
	                                 SSL_FILETYPE_PEM) == 1 &&
	     SSL_CTX_set_max_proto_version(negotiator->ctx, TLS1_2_VERSION) == 1);
	listen_somewhere(negotiator);
	must(pthread_create(&negotiator->thread, NULL, accept_main, negotiator) == 0);
}

void negotiator_close(struct negotiator *negotiator)
{
	store_relaxed(&negotiator->stopping, true);
	must(shutdown(negotiator->listener, SHUT_RD) == 0);
	must(pthread_join(negotiator->thread, NULL) == 0);
	for (size_t i = 0; i < negotiator->count; i++)
		must(pthread_join(negotiator->threads[i], NULL) == 0);
	close(negotiator->listener);
	SSL_CTX_free(negotiator->ctx);
}
