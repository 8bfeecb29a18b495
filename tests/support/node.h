/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * node.h -- a node of a fleet on a real server, in real time: a runtime, a store, one
 * limiter and a seat.
 *
 * What cannot be opened ends the test.
 *
 * Threads   One.
 */
#ifndef TESTS_SUPPORT_NODE_H
#define TESTS_SUPPORT_NODE_H

#include <gale/gale.h>

/* What is left 0 is the library's default. */
struct node_plan {
	const char *url;
	uint64_t quarantine_us;
	uint32_t shards;
	uint32_t poll_us;
	bool turns;
	struct gale_log *log;
	struct gale_limiter_config limiter; /* its store is the node's */
};

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
};

void node_open(struct node *node, const struct node_plan *plan);
void node_close(struct node *node);

/* Asks for one unit of a key that is a string, and waits. */
struct gale_answer node_wait(struct node *node, const char *key, uint64_t within_us);

/* What its store says of itself. */
struct gale_counts node_stats(struct node *node);

#endif
