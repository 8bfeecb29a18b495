/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * link.h -- a slow link to a Redis server, for processes of a region that is far away.
 *
 *     a node --> a port of 127.0.0.1 --> what was said waits for half of a round trip --> the server
 *
 * Limits    128 connections.  It carries bytes in order, and keeps its delay to about a millisecond.
 * Threads   link_open and link_close: the owner's.  It carries on a thread of its own.
 */
#ifndef TOOLS_LINK_H
#define TOOLS_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/sentence.h"

#define LINK_URL_MOST 512

struct link {
	char url[LINK_URL_MOST];  /* of the server behind the link */
	char host[LINK_URL_MOST]; /* or the path of a socket */
	char port[8];
	uint64_t way_us;
	int listener;
	int wake; /* an eventfd: it is to end */
	pthread_t thread;
};

/* redis://HOST, redis://HOST:PORT or redis:///SOCKET, and what may follow. */
bool link_can_carry(const char *url);
/* False: and why. */
bool link_open(struct link *link, const char *url, uint64_t round_trip_us,
               struct sentence *why);
void link_close(struct link *link);

#endif
