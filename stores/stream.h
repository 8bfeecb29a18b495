/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stream.h -- bytes to a server and back, without ever waiting.
 *
 * Threads   All of it: one at a time, its owner; stream_resolve blocks, and is for
 *           setting up only.
 * Limits    STREAM_OUT_MOST bytes wait to be sent; more is refused.
 */
#ifndef STORES_STREAM_H
#define STORES_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <gale/gale.h>

#define STREAM_OUT_MOST ((size_t)1 << 22)
#define STREAM_ADDRESSES_MOST 16

struct stream_address {
	struct sockaddr_storage bytes;
	socklen_t count;
};

/* Looks names up, which takes its time; returns how many it found, 0 if none. */
size_t stream_resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most);
/* False if the path is too long. */
bool stream_unix(const char *path, struct stream_address *ret_address);

enum stream_state {
	STREAM_OPENING,
	STREAM_OPEN,
	STREAM_OVER, /* errno says why; 0: the other end has closed it */
};

struct stream {
	struct gale_allocator *allocator;
	int watch_fd; /* an epoll that its descriptor is in; -1: none */
	int fd;       /* -1: not connected */
	bool is_open;
	bool wants_out; /* the epoll has been told so */
	uint8_t *out;
	size_t out_room;
	size_t out_from; /* sent so far */
	size_t out_count;
};

void stream_init(struct stream *stream, struct gale_allocator *allocator, int watch_fd);
/* False, with errno, if it cannot even begin. */
bool stream_connect(struct stream *stream, const struct stream_address *address);
void stream_close(struct stream *stream);
/* Closes it, and gives its memory back. */
void stream_free(struct stream *stream);

/* Goes on connecting and sending. */
enum stream_state stream_turn(struct stream *stream);

/* Where to put so many bytes that are to be sent next; NULL without room or memory.
 * stream_put says how many of them it became. */
uint8_t *stream_room(struct stream *stream, size_t count);
void stream_put(struct stream *stream, size_t count);

/* How many came, at most so many; 0: none now; -1: it is over, as for STREAM_OVER. */
ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most);

#endif
