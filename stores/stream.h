/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream.h -- bytes to a server and back, without ever waiting, plain or in TLS.
 *
 *     stream_connect -> connected -> (hands are shaken) -> open -> over
 *
 * Threads   All of it: one at a time, its owner; stream_resolve blocks, and is for
 *           setting up only.
 */
#ifndef STORES_STREAM_H
#define STORES_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "runtime/wake.h"
#include "stores/tls.h"

#define STREAM_ADDRESSES_MOST 16

struct stream_address {
	struct sockaddr_storage bytes;
	socklen_t count;
	const char *host; /* of the URL, whose address it is; NULL: it has no name */
};

/* Looks names up, which takes its time; returns how many it found, 0 if none. */
size_t stream_resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most);
/* The same of an address that is spelled out, at once; false if it is none. */
bool stream_numeric(const char *address, uint16_t port,
                    struct stream_address *ret_address);
/* False if the path is too long. */
bool stream_unix(const char *path, struct stream_address *ret_address);

/* "10.0.0.1:6379", "[::1]:6379"; "" of a unix socket. */
#define STREAM_NAME 64
void stream_name(const struct stream_address *address, char name[STREAM_NAME]);

enum stream_state {
	STREAM_OPENING,
	STREAM_OPEN,
	STREAM_OVER, /* stream_why */
};

struct stream {
	struct watch watch;    /* its descriptor is in there, if there is one */
	int fd;                /* -1: not connected */
	int early_fd;          /* a copy of it, that tells early; -1: none */
	const struct tls *tls; /* NULL: it is plain */
	struct tls_session *session;
	bool is_connected;
	bool is_open;
	bool wants_out; /* the epoll has been told so */
	int hung_up;    /* errno of a send in vain, to an end that has closed; or 0 */
};

/* tls: stays there; NULL: none. */
void stream_init(struct stream *stream, struct watch watch, const struct tls *tls);
/* False if it cannot even begin: stream_why. */
bool stream_connect(struct stream *stream, const struct stream_address *address);
void stream_close(struct stream *stream);

/* Goes on connecting, and shaking hands. */
enum stream_state stream_turn(struct stream *stream);

/* After a call that said that it is over, until the next one: why; "": the other end has closed
 * it. */
const char *stream_why(const struct stream *stream);

/* How many of the bytes went; -1: it is over.  The epoll tells when more can go.
 * To an end that has closed all of them go: the next reads bring what it said last, such as why
 * it has closed, and then that it is over. */
ptrdiff_t stream_send(struct stream *stream, const uint8_t *bytes, size_t count);

/* How many came, at most so many; 0: none now; -1: it is over. */
ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most);

#endif
