/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * listener.h -- a listening socket for each thread (SO_REUSEPORT), and how it ends.
 *
 * A listening socket that is closed would reset the connections that wait in it.  So
 * listener_drain makes the kernel drop what would open a connection, and the caller closes
 * the socket DRAIN_MS later, after all that waited were accepted.
 */
#ifndef EXAMPLES_SERVER_LISTENER_H
#define EXAMPLES_SERVER_LISTENER_H

#include "examples/server/loop.h"

#define DRAIN_MS 1000

struct listener {
	struct watcher watcher;
	int spare; /* a descriptor to close when there is no other for a client */
	void (*on_client)(struct listener *self, int fd,
	                  const struct sockaddr_in *address);
};

/* Finds a port, if the address has none, and refuses one that is in use. */
void listener_find_port(struct sockaddr_in *address);
/* False: errno says why. */
bool listener_open(struct listener *listener, struct loop *loop,
                   const struct sockaddr_in *address,
                   void (*on_client)(struct listener *self, int fd,
                                     const struct sockaddr_in *address));
void listener_drain(struct listener *listener);
static inline bool listener_is_open(const struct listener *listener)
{
	return listener->watcher.fd >= 0;
}
/* Accepts what waits. */
void listener_close(struct listener *listener);

#endif
