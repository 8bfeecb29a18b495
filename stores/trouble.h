/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * trouble.h -- what a store says to the host's log: each thing once, and when it is over.
 *
 * Each shard has connections of its own and tries each again several times in a second.
 * All of them report here, and a line is written
 *
 *     for a text that was not written lately;
 *     when a server is well again after an error that was written: how long it took.
 *
 * A store has one server, or many in a cluster; each is known by where it is, and has its
 * own beginning and end of trouble.
 *
 * Threads   trouble_open, trouble_close: one, before and after all others.
 *           trouble_say, trouble_tell, trouble_over: any, at once.
 * Limits    Without memory for another server nothing is remembered of it: what it says
 *           is written each time, and not when it is over.
 */
#ifndef STORES_TROUBLE_H
#define STORES_TROUBLE_H

#include <gale/gale.h>

#include "engine/clock.h"
#include "runtime/lock.h"

#define TROUBLE_TEXTS 16 /* that are remembered of a server */
/* How long a text is not written again: while its trouble goes on, and in the next. */
#define TROUBLE_AGAIN_NS UINT64_C(60000000000)
#define TROUBLE_ANEW_NS UINT64_C(10000000000)

struct trouble_server;

struct trouble {
	struct gale_allocator *allocator;
	/* The host. */
	void (*say)(void *self, enum gale_level level, const char *text);
	void *sayer;
	struct lock lock;
	struct {
		struct trouble_server *servers;
	} locked;
};

void trouble_open(struct trouble *trouble);
void trouble_close(struct trouble *trouble);

/* trouble: NULL: there is no log.  where: "", or which of many servers.  An error begins its
 * trouble; a text that is empty says nothing. */
void trouble_say(struct trouble *trouble, const char *where, enum gale_level level,
                 const char *text, mono now);

/* The same, but it is remembered nowhere, and is no server's trouble: the caller knows that
 * it is new. */
void trouble_tell(const struct trouble *trouble, enum gale_level level,
                  const char *text);

/* It answers as it should. */
void trouble_over(struct trouble *trouble, const char *where, mono now);

#endif
