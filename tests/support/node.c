/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* node.c -- opens from the ground up, closes from the roof down. */
#include "tests/support/node.h"

#include <string.h>

#include "tests/support/must.h"

void node_open(struct node *node, const struct node_plan *plan)
{
	struct gale_config runtime = { .shards = plan->shards,
		                       .poll_us = plan->poll_us,
		                       .turns = plan->turns,
		                       .log = plan->log };
	struct gale_store_config store = { .url = plan->url,
		                           .quarantine_us = plan->quarantine_us };
	struct gale_limiter_config limiter = plan->limiter;

	must(gale_runtime_open(&runtime, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	limiter.store = node->store;
	must(gale_limiter_open(node->runtime, &limiter, &node->limiter) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

void node_close(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

struct gale_answer node_wait(struct node *node, const char *key, uint64_t within_us)
{
	return gale_wait(node->seat, node->limiter, key, strlen(key), 1, within_us);
}

struct gale_counts node_stats(struct node *node)
{
	struct gale_counts stats;

	must(gale_store_stats(node->store, &stats) == GALE_ERR_OK);
	return stats;
}
