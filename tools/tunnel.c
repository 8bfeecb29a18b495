/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* tunnel.c -- carries bytes between two sockets, one of which has a session of TLS. */
#define _GNU_SOURCE
#include "tools/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "stores/stream.h"

#define ROOM 16384

struct tunnel {
	struct tls tls;
	struct stream stream;
	int epoll_fd;    /* -1: none */
	int near, other; /* ends of the pair; -1: none.  The other is the caller's */
	uint8_t out[ROOM];
	size_t out_count;
	uint8_t in[ROOM];
	pthread_t thread;
	struct tunnel *next;
};

static struct tunnel *tunnels; /* that are open */

static void tunnel_free(struct tunnel *tunnel)
{
	stream_close(&tunnel->stream);
	tls_close(&tunnel->tls);
	if (tunnel->epoll_fd >= 0)
		close(tunnel->epoll_fd);
	if (tunnel->near >= 0)
		close(tunnel->near);
	free(tunnel);
}

/* ---- Carrying -------------------------------------------------------------------- */

static bool give(const struct tunnel *tunnel, const uint8_t *bytes, size_t count)
{
	ssize_t sent = 1;

	for (; count > 0 && sent > 0; bytes += sent, count -= (size_t)sent)
		sent = send(tunnel->near, bytes, count, MSG_NOSIGNAL);
	return count == 0;
}

/* The server has ended it: what is asked next has a reason for an answer. */
static void give_reason(const struct tunnel *tunnel)
{
	char line[TLS_TEXT + 16];
	const char *why = stream_why(&tunnel->stream);
	int count = snprintf(line, sizeof(line), "-ERR %s\r\n", why);

	if (why[0] != '\0')
		(void)give(tunnel, (const uint8_t *)line, (size_t)count);
}

static bool carry_in(struct tunnel *tunnel)
{
	ptrdiff_t count = stream_read(&tunnel->stream, tunnel->in, ROOM);

	if (count < 0)
		give_reason(tunnel);
	return count >= 0 && give(tunnel, tunnel->in, (size_t)count);
}

static bool carry_out(struct tunnel *tunnel)
{
	ptrdiff_t count = 0;

	if (tunnel->out_count == 0) {
		count = recv(tunnel->near, tunnel->out, ROOM, MSG_DONTWAIT);
		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		tunnel->out_count = count > 0 ? (size_t)count : 0;
	}
	count = stream_send(&tunnel->stream, tunnel->out, tunnel->out_count);
	if (count < 0)
		return false;
	tunnel->out_count -= (size_t)count;
	memmove(tunnel->out, tunnel->out + count, tunnel->out_count);
	return true;
}

static void *thread_main(void *arg)
{
	struct tunnel *tunnel = arg;
	struct pollfd ends[2] = { { tunnel->epoll_fd, POLLIN, 0 },
		                  { tunnel->near, POLLIN, 0 } };

	while (carry_in(tunnel) && carry_out(tunnel)) {
		ends[1].events = tunnel->out_count > 0 ? 0 : POLLIN;
		(void)poll(ends, 2, -1);
	}
	/* Open for what is still asked: hiredis would have a SIGPIPE. */
	shutdown(tunnel->near, SHUT_WR);
	return NULL;
}

/* ---- Opening --------------------------------------------------------------------- */

static int left_ms(const struct timespec *until)
{
	struct timespec now;
	int64_t ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (int64_t)(until->tv_sec - now.tv_sec) * 1000 +
	     (until->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

static const char *reason(const struct tunnel *tunnel)
{
	const char *why = stream_why(&tunnel->stream);

	return why[0] != '\0' ? why : "it has hung up";
}

static bool connect_to(struct tunnel *tunnel, const struct stream_address *address,
                       int patience_s, struct sentence *why)
{
	struct pollfd end = { tunnel->epoll_fd, POLLIN, 0 };
	struct timespec until;
	enum stream_state state;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += patience_s;
	if (!stream_connect(&tunnel->stream, address))
		return sentence_say(why, "%s", reason(tunnel));
	while ((state = stream_turn(&tunnel->stream)) == STREAM_OPENING &&
	       left_ms(&until) > 0)
		(void)poll(&end, 1, left_ms(&until));
	if (state == STREAM_OPENING)
		return sentence_say(why,
		                    tunnel->stream.is_connected
		                        ? "it accepts connections, but does not agree "
		                          "on TLS; its port may be one without TLS"
		                        : "its host does not answer");
	return state == STREAM_OPEN || sentence_say(why, "%s", reason(tunnel));
}

static bool connect_to_host(struct tunnel *tunnel, const char *host, int port,
                            int patience_s, struct sentence *why)
{
	struct stream_address found[STREAM_ADDRESSES_MOST];
	size_t count =
	    stream_resolve(host, (uint16_t)port, found, STREAM_ADDRESSES_MOST);

	sentence_say(why, "no address is known of it");
	for (size_t i = 0; i < count; i++) {
		found[i].host = host;
		if (connect_to(tunnel, &found[i], patience_s, why))
			return true;
	}
	return false;
}

static bool prepare(struct tunnel *tunnel, const struct redis_url *url,
                    struct sentence *why)
{
	struct url_fault fault;
	int pair[2];

	if (!tls_open(&tunnel->tls, &url->tls, &fault))
		return sentence_say(why, "%s", fault.text);
	tunnel->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tunnel->epoll_fd < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return sentence_say(why, "%s", strerror(errno));
	tunnel->near = pair[0];
	tunnel->other = pair[1];
	stream_init(&tunnel->stream, (struct watch){ tunnel->epoll_fd, false },
	            &tunnel->tls);
	return true;
}

static bool start(struct tunnel *tunnel, struct sentence *why)
{
	if (pthread_create(&tunnel->thread, NULL, thread_main, tunnel) != 0)
		return sentence_say(why, "a thread could not be made");
	tunnel->next = tunnels;
	tunnels = tunnel;
	return true;
}

int tunnel_open(const struct redis_url *url, const char *host, int port, int patience_s,
                struct sentence *why)
{
	struct tunnel *tunnel = calloc(1, sizeof(*tunnel));
	int other;

	if (!tunnel) {
		sentence_say(why, "no memory");
		return -1;
	}
	tunnel->epoll_fd = tunnel->near = tunnel->other = -1;
	stream_init(&tunnel->stream, (struct watch){ -1, false }, NULL);
	if (prepare(tunnel, url, why)) {
		other = tunnel->other;
		if (connect_to_host(tunnel, host, port, patience_s, why) &&
		    start(tunnel, why))
			return other;
		close(other);
	}
	tunnel_free(tunnel);
	return -1;
}

void tunnel_close(int fd)
{
	struct tunnel **at = &tunnels, *tunnel;

	while (*at && (*at)->other != fd)
		at = &(*at)->next;
	tunnel = *at;
	if (!tunnel)
		return;
	*at = tunnel->next;
	pthread_join(tunnel->thread, NULL);
	tunnel_free(tunnel);
}
