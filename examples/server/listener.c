/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* listener.c -- sockets that accept. */
#define _GNU_SOURCE
#include "examples/server/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "examples/server/flags.h"

static int accept_one(struct listener *listener, struct sockaddr_in *ret_address)
{
	socklen_t length = sizeof(*ret_address);

	return accept4(listener->watcher.fd, (struct sockaddr *)ret_address, &length,
	               SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* A client for which there is no descriptor would make epoll return at once for ever. */
static void turn_one_away(struct listener *listener)
{
	struct sockaddr_in address;
	int fd;

	close(listener->spare);
	fd = accept_one(listener, &address);
	if (fd >= 0)
		close(fd);
	listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_events(struct watcher *watcher, uint32_t events)
{
	struct listener *listener = CONTAINER(watcher, struct listener, watcher);
	struct sockaddr_in address;
	int fd;

	(void)events;
	while ((fd = accept_one(listener, &address)) >= 0)
		listener->on_client(listener, fd, &address);
	if (errno == EMFILE || errno == ENFILE)
		turn_one_away(listener);
}

static int open_socket(const struct sockaddr_in *address)
{
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0 &&
	    bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	close(fd);
	return -1;
}

bool listener_open(struct listener *listener, struct loop *loop,
                   const struct sockaddr_in *address,
                   void (*on_client)(struct listener *, int,
                                     const struct sockaddr_in *))
{
	listener->watcher =
	    (struct watcher){ .fd = open_socket(address), .on_events = on_events };
	listener->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	listener->on_client = on_client;
	return listener_is_open(listener) &&
	       loop_watch(loop, &listener->watcher, EPOLLIN);
}

/* Of a segment that opens a connection: SYN is set, and ACK is not. */
void listener_drain(struct listener *listener)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	(void)setsockopt(listener->watcher.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
	                 sizeof(program));
}

void listener_close(struct listener *listener)
{
	on_events(&listener->watcher, EPOLLIN);
	close(listener->watcher.fd); /* epoll forgets it */
	listener->watcher.fd = -1;
	close(listener->spare);
}

/* Threads could share a port with another program unnoticed (SO_REUSEPORT), so the first
 * socket that is bound does not share it. */
void listener_find_port(struct sockaddr_in *address)
{
	const int on = 1;
	struct sockaddr *any = (struct sockaddr *)address;
	socklen_t length = sizeof(*address);
	char text[INET_ADDRSTRLEN];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, any, length) != 0)
		refuse("port %d of %s: %s; --port and --address choose another",
		       ntohs(address->sin_port), text, strerror(errno));
	(void)getsockname(fd, any, &length);
	close(fd);
}
