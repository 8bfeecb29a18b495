/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream.h -- bytes to a server and back, without ever waiting.
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

#define STREAM_ADDRESSES_MOST 16

struct stream_address {
	struct sockaddr_storage bytes;
	socklen_t count;
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
	STREAM_OVER, /* errno says why; 0: the other end has closed it */
};

struct stream {
	struct watch watch; /* its descriptor is in there, if there is one */
	int fd;             /* -1: not connected */
	int early_fd;       /* a copy of it, that tells early; -1: none */
	bool is_open;
	bool wants_out; /* the epoll has been told so */
};

void stream_init(struct stream *stream, struct watch watch);
/* False, with errno, if it cannot even begin. */
bool stream_connect(struct stream *stream, const struct stream_address *address);
void stream_close(struct stream *stream);

/* Goes on connecting. */
enum stream_state stream_turn(struct stream *stream);

/* How many of the bytes went; -1: it is over.  The epoll tells when more can go. */
ptrdiff_t stream_send(struct stream *stream, const uint8_t *bytes, size_t count);

/* How many came, at most so many; 0: none now; -1: it is over. */
ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most);

#endif
