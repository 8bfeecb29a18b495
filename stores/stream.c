/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* stream.c -- a socket that does not block, and the session of TLS above it. */
#define _GNU_SOURCE
#include "stores/stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

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

	if (most > 0 && stream_numeric(host, port, ret_addresses))
		return 1; /* also of a kind that this machine has none of */
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

bool stream_numeric(const char *address, uint16_t port,
                    struct stream_address *ret_address)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&ret_address->bytes;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ret_address->bytes;

	*ret_address = (struct stream_address){ .count = 0 };
	if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		ret_address->count = sizeof(*four);
	} else if (inet_pton(AF_INET6, address, &six->sin6_addr) == 1) {
		six->sin6_family = AF_INET6;
		six->sin6_port = htons(port);
		ret_address->count = sizeof(*six);
	}
	return ret_address->count > 0;
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

void stream_name(const struct stream_address *address, char name[STREAM_NAME])
{
	const struct sockaddr *bytes = (const struct sockaddr *)&address->bytes;
	bool is_six = bytes->sa_family == AF_INET6;
	char host[INET6_ADDRSTRLEN], port[8];

	name[0] = '\0';
	if (bytes->sa_family != AF_UNIX &&
	    getnameinfo(bytes, address->count, host, sizeof(host), port, sizeof(port),
	                NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(name, STREAM_NAME, is_six ? "[%s]:%s" : "%s:%s", host, port);
}

/* ---- Connecting ------------------------------------------------------------------ */

void stream_init(struct stream *stream, struct watch watch, const struct tls *tls)
{
	*stream =
	    (struct stream){ .watch = watch, .fd = -1, .early_fd = -1, .tls = tls };
}

const char *stream_why(const struct stream *stream)
{
	const char *why = stream->session ? stream->tls->ops->why(stream->session) : "";

	return why[0] != '\0' || errno == 0 ? why : strerror(errno);
}

static bool watch(struct stream *stream, int verb, bool wants_out)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (stream->watch.epoll_fd < 0 ||
	    (verb == EPOLL_CTL_MOD && wants_out == stream->wants_out))
		return true;
	if (wants_out)
		event.events |= EPOLLOUT;
	stream->wants_out = wants_out;
	return epoll_ctl(stream->watch.epoll_fd, verb, stream->fd, &event) == 0;
}

/* An epoll forgets a descriptor that is closed, but not while a child of the host's has
 * a copy: it would go on telling of it, and could not be stopped. */
static void drop(const struct stream *stream, int *fd)
{
	if (*fd >= 0 && stream->watch.epoll_fd >= 0)
		(void)epoll_ctl(stream->watch.epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The other end of a socket of this machine tells that it takes what was sent: a thread that sleeps
 * until it answers wakes while it works on that (spec/decisions/0020).  An epoll tells only once
 * of one descriptor, so this is a copy.  Without one the thread wakes later. */
static void watch_early(struct stream *stream)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET,
		                     .data.u64 = WATCH_EARLY };

	stream->early_fd = fcntl(stream->fd, F_DUPFD_CLOEXEC, 0);
	if (epoll_ctl(stream->watch.epoll_fd, EPOLL_CTL_ADD, stream->early_fd,
	              &event) != 0)
		drop(stream, &stream->early_fd);
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

/* Without a name the certificate has to have the address. */
static bool begin_session(struct stream *stream, const struct stream_address *address)
{
	char spelled[INET6_ADDRSTRLEN] = "";

	if (!stream->tls)
		return true;
	(void)getnameinfo((const struct sockaddr *)&address->bytes, address->count,
	                  spelled, sizeof(spelled), NULL, 0, NI_NUMERICHOST);
	stream->session = stream->tls->ops->session_new(
	    stream->tls->context, stream->fd, address->host ? address->host : spelled);
	if (!stream->session)
		errno = ENOMEM;
	return stream->session != NULL;
}

bool stream_connect(struct stream *stream, const struct stream_address *address)
{
	int family = address->bytes.ss_family;

	stream_close(stream);
	stream->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (stream->fd < 0)
		return false;
	tune(stream->fd, family);
	if (begin_session(stream, address) &&
	    (connect(stream->fd, (const struct sockaddr *)&address->bytes,
	             address->count) == 0 ||
	     errno == EINPROGRESS) &&
	    watch(stream, EPOLL_CTL_ADD, /* wants_out= */ true)) {
		if (family == AF_UNIX && stream->watch.early)
			watch_early(stream);
		return true;
	}
	stream_close(stream);
	return false;
}

void stream_close(struct stream *stream)
{
	int error = errno;

	if (stream->session)
		stream->tls->ops->session_free(stream->session);
	stream->session = NULL;
	drop(stream, &stream->early_fd);
	drop(stream, &stream->fd);
	stream->is_connected = stream->is_open = false;
	stream->hung_up = 0;
	errno = error;
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
	stream->is_connected = true;
	return STREAM_OPEN;
}

/* Its socket is to be told of as the session says, and not as what is sent does. */
static bool watch_session(struct stream *stream)
{
	const struct tls_ops *ops = stream->tls->ops;

	return watch(stream, EPOLL_CTL_MOD,
	             ops->wants_out(stream->session) || ops->has_more(stream->session));
}

static enum stream_state shake(struct stream *stream)
{
	enum tls_state state = stream->tls->ops->shake(stream->session);

	errno = 0;
	if (state == TLS_OVER || !watch_session(stream))
		return STREAM_OVER;
	return state == TLS_OPEN ? STREAM_OPEN : STREAM_OPENING;
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* The server's last words may not be read yet. */
static bool has_hung_up(void)
{
	return errno == EPIPE || errno == ECONNRESET;
}

enum stream_state stream_turn(struct stream *stream)
{
	enum stream_state state = STREAM_OPEN;

	errno = 0;
	if (stream->fd < 0)
		return STREAM_OVER;
	if (stream->is_open)
		return STREAM_OPEN;
	if (!stream->is_connected)
		state = go_on_opening(stream);
	if (state == STREAM_OPEN && stream->session)
		state = shake(stream);
	else if (state == STREAM_OPEN &&
	         !watch(stream, EPOLL_CTL_MOD, /* wants_out= */ false))
		return STREAM_OVER;
	stream->is_open = state == STREAM_OPEN;
	return state;
}

/* Of a session, what a call of it said. */
static ptrdiff_t told(struct stream *stream, ptrdiff_t count)
{
	errno = 0;
	return count >= 0 && watch_session(stream) ? count : -1;
}

ptrdiff_t stream_send(struct stream *stream, const uint8_t *bytes, size_t count)
{
	ssize_t sent = 0;

	errno = 0;
	if (stream->fd < 0)
		return -1;
	if (stream->session)
		return told(stream,
		            stream->tls->ops->send(stream->session, bytes, count));
	if (count > 0)
		sent = send(stream->fd, bytes, count, MSG_NOSIGNAL);
	if (sent < 0 && has_hung_up()) {
		stream->hung_up = stream->hung_up ? stream->hung_up : errno;
		sent = (ssize_t)count;
	}
	if (sent < 0 && !would_block())
		return -1;
	if (sent < 0)
		sent = 0;
	if (!watch(stream, EPOLL_CTL_MOD, (size_t)sent < count))
		return -1;
	return sent;
}

ptrdiff_t stream_read(struct stream *stream, uint8_t *bytes, size_t most)
{
	ssize_t count;

	errno = 0;
	if (stream->fd < 0)
		return -1;
	if (stream->session)
		return told(stream,
		            stream->tls->ops->read(stream->session, bytes, most));
	count = recv(stream->fd, bytes, most, 0);
	if (count > 0)
		return count;
	if (count == 0)
		errno = stream->hung_up;
	return count < 0 && would_block() ? 0 : -1;
}
