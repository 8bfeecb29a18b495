/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * node.h -- one runtime with its store, as a process of a fleet has.
 *
 * Threads   One: the thread that opens it.  node_look while others ask.
 */
#ifndef TOOLS_NODE_H
#define TOOLS_NODE_H

#include <pthread.h>
#include <stdbool.h>

#include <gale/gale.h>

#include "tools/clock.h"
#include "tools/flags.h"
#include "tools/seen.h"
#include "tools/sentence.h"

/* What all nodes of a run have in common. */
struct node_plan {
	const struct fleet_flags *flags;
	struct fleet_clock *clock;
	uint64_t run; /* names this run: no other has its keys */
};

/* The last line that the library has said. */
struct node_log {
	struct gale_log log; /* first */
	pthread_mutex_t lock;
	char line[384]; /* under the lock */
};

struct node {
	const struct node_plan *plan;
	struct node_log log;
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_limiter
	    *first;          /* that it was warmed up with: while it is open, so is
	                               the connection */
	uint64_t warm_trips; /* to the store, until it was warm */
};

/* In any case node_close has to follow. */
bool node_open(struct node *node, const struct node_plan *plan,
               struct sentence *ret_why);
void node_close(struct node *node);

/* The owner, which is told how it goes. */
struct node_host {
	bool (*goes_on)(struct node_host *self); /* false: give up */
	void (*waits)(struct node_host *self);   /* the store grants nothing yet */
};

/*
 * Returns when the store has admitted something: a server that was started or emptied a
 * moment ago grants nothing until the window turns, or for a minute.  Also sees that its
 * windows end when they do by our clock.  The embedded store is always ready.
 */
bool node_warm_up(struct node *node, struct node_host *host, struct sentence *ret_why);

/* Adds what its store has seen; only the first of those that share one. */
void node_look(const struct node *node, bool first, struct seen *seen);

#endif
