/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * next_window.h -- what a key gives in the window after the one in which something befell
 * its server.
 *
 * The node uses a window up, and asks for nothing more: it remembers that it was denied.
 * Then something befalls the server.  When the window has turned the node asks again.
 *
 *     used up -> befalls -> nobody asks -> the window turns -> how many now?
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_NEXT_WINDOW_H
#define TESTS_SUPPORT_NEXT_WINDOW_H

#include "tests/support/node.h"
#include "tests/support/redis_server.h"

struct next_window {
	struct node *node; /* its limiter has fixed windows of that length */
	uint64_t limit;
	uint64_t length_us;
	const char *key;
	void (*befall)(void *arg);
	/* When the generation that the server is in now began; 0: nobody has greeted it, or
	 * it never forgot anything. */
	uint64_t (*since_us)(void *arg);
	void *arg;
};

/* The units that the first window after a quarantine gives: the rest may have been lent ahead of it, and the
 * server has forgotten that (engine/lease.h). */
uint64_t next_window_most(uint64_t limit);

/* A round in which a standstill let the server be greeted too late is begun again. */
unsigned next_window_gives(const struct next_window *plan);

/* A since_us of one server: of the generation of a bucket under gale:. */
uint64_t next_window_since(const struct redis_server *server, unsigned bucket);

#endif
