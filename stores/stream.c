/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* stream.c -- a socket that does not block, and what waits to be sent. */
#define _GNU_SOURCE
#include "stores/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/memory.h"

#define OUT_FIRST 16384
#define UNHEARD_MS 5000 /* what was sent and not acknowledged for so long is lost */

/* ---- Addresses ------------------------------------------------------------------- */

size_t stream_resolve(const char *host, uint16_t port,
                      struct stream_address *ret_addresses, size_t most)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		                  .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV };
	struct addrinfo *found, *at;
	char service[8];
	size_t count = 0;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found) != 0)
		return 0;
	for (at = found; at && count < most; at = at->ai_next, count++) {
		memcpy(&ret_addresses[count].bytes, at->ai_addr, at->ai_addrlen);
		ret_addresses[count].count = at->ai_addrlen;
	}
	freeaddrinfo(found);
	return count;
}

bool stream_unix(const char *path, struct stream_address *ret_address)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&ret_address->bytes;

	if (strlen(path) >= sizeof(address->sun_path))
		return false;
	*ret_address = (struct stream_address){ .count = sizeof(*address) };
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	return true;
}

/* ---- Connecting ------------------------------------------------------------------ */

void stream_init(struct stream *stream, struct gale_allocator *allocator, int watch_fd)
{
	*stream =
	    (struct stream){ .allocator = allocator, .watch_fd = watch_fd, .fd = -1 };
}

static bool watch(struct stream *stream, int verb)
{
	bool wants_out = !stream->is_open || stream->out_from < stream->out_count;
	struct epoll_event event = { .events = EPOLLIN };

	if (stream->watch_fd < 0)
		return true;
	if (verb == EPOLL_CTL_MOD && wants_out == stream->wants_out)
		return true;
	if (wants_out)
		event.events |= EPOLLOUT;
	stream->wants_out = wants_out;
	return epoll_ctl(stream->watch_fd, verb, stream->fd, &event) == 0;
}

/* Small calls go out at once, and a silent network is noticed. */
static void tune(int fd, int family)
{
	const int yes = 1, unheard = UNHEARD_MS;

	if (family == AF_UNIX)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard, sizeof(unheard));
}

bool stream_connect(struct stream *stream, const struct stream_address *address)
{
	int family = address->bytes.ss_family;

	stream_close(stream);
	stream->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (stream->fd < 0)
		return false;
	tune(stream->fd, family);
	if ((connect(stream->fd, (const struct sockaddr *)&address->bytes,
	             address->count) == 0 ||
	     errno == EINPROGRESS) &&
	    watch(stream, EPOLL_CTL_ADD))
		return true;
	stream_close(stream);
	return false;
}

/* The epoll forgets a descriptor that is closed. */
void stream_close(struct stream *stream)
{
	int error = errno;

	if (stream->fd >= 0)
		close(stream->fd);
	stream->fd = -1;
	stream->is_open = false;
	stream->wants_out = false;
	stream->out_from = stream->out_count = 0;
	errno = error;
}

void stream_free(struct stream *stream)
{
	stream_close(stream);
	memory_give(stream->allocator, stream->out, stream->out_room);
	stream->out = NULL;
	stream->out_room = 0;
}

/* ---- Sending and receiving ------------------------------------------------------- */

/* Connected, not yet, or in vain: a socket that is neither has no peer. */
static enum stream_state go_on_opening(struct stream *stream)
{
	struct sockaddr_storage peer;
	socklen_t count = sizeof(peer), size = sizeof(int);
	int error = 0;

	if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		return STREAM_OVER;
	errno = error;
	if (error != 0)
		return STREAM_OVER;
	if (getpeername(stream->fd, (struct sockaddr *)&peer, &count) != 0)
		return errno == ENOTCONN ? STREAM_OPENING : STREAM_OVER;
	stream->is_open = true;
	return STREAM_OPEN;
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static enum stream_state flush(struct stream *stream)
{
	while (stream->out_from < stream->out_count) {
		ssize_t sent = send(stream->fd, stream->out + stream->out_from,
		                    stream->out_count - stream->out_from, MSG_NOSIGNAL);

		if (sent < 0 && !would_block())
			return STREAM_OVER;
		if (sent <= 0)
			break;
		stream->out_from += (size_t)sent;
	}
	if (stream->out_from == stream->out_count)
		stream->out_from = stream->out_count = 0;
	return STREAM_OPEN;
}

enum stream_state stream_turn(struct stream *stream)
{
	enum stream_state state = STREAM_OPEN;

	errno = 0;
	if (stream->fd < 0)
		return STREAM_OVER;
	if (!stream->is_open)
		state = go_on_opening(stream);
	if (state == STREAM_OPEN)
		state = flush(stream);
	if (state != STREAM_OVER && !watch(stream, EPOLL_CTL_MOD))
		return STREAM_OVER;
	return state;
}

static bool grow(struct stream *stream, size_t need)
{
	size_t room = stream->out_room ? stream->out_room : OUT_FIRST;
	uint8_t *out;

	while (room < need)
		room *= 2;
	out = room > STREAM_OUT_MOST ? NULL : memory_take(stream->allocator, room);
	if (!out)
		return false;
	if (stream->out)
		memcpy(out, stream->out, stream->out_count);
	memory_give(stream->allocator, stream->out, stream->out_room);
	stream->out = out;
	stream->out_room = room;
	return true;
}

uint8_t *stream_room(struct stream *stream, size_t count)
{
	if (stream->out_from > 0) {
		stream->out_count -= stream->out_from;
		memmove(stream->out, stream->out + stream->out_from, stream->out_count);
		stream->out_from = 0;
	}
	if (count > STREAM_OUT_MOST || (stream->out_count + count > stream->out_room &&
	                                !grow(stream, stream->out_count + count)))
		return NULL;
	return stream->out + stream->out_count;
}

void stream_put(struct stream *stream, size_t count)
{
	stream->out_count += count;
}

ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most)
{
	ssize_t count;

	errno = 0;
	if (stream->fd < 0)
		return -1;
	count = recv(stream->fd, bytes, most, 0);
	if (count > 0)
		return count;
	if (count == 0)
		errno = 0;
	return count < 0 && would_block() ? 0 : -1;
}
