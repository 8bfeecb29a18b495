/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* overload.c -- asks when it is time, and fetches answers in between. */
#include "tests/support/overload.h"

#include <string.h>

#include "runtime/clock.h"
#include "tests/support/late.h"
#include "tests/support/moment.h"
#include "tests/support/must.h"

#define PENDING 65536
#define FETCHED 256
#define PAUSE_US 200
#define SETTLES_US GALE_MILLIS(500) /* a connection is there by then */

struct node {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
	struct gale_seat *seat;
	uint64_t pending;
};

struct crowd {
	const struct overload *is;
	struct node nodes[OVERLOAD_NODES_MOST];
	struct overload_tally tally;
};

static void open_node(const struct overload *overload, struct node *node)
{
	const struct gale_config config = { .pending_max = PENDING };
	const struct gale_store_config store = { .url = overload->url,
		                                 .quarantine_us = 1 };
	struct gale_limiter_config limiter = { .name = overload->limiter,
		                               .rule = overload->rule,
		                               .mode = GALE_STRICT };

	must(gale_runtime_open(&config, &node->runtime) == GALE_ERR_OK);
	must(gale_store_open(node->runtime, &store, &node->store) == GALE_ERR_OK);
	limiter.store = node->store;
	must(gale_limiter_open(node->runtime, &limiter, &node->limiter) == GALE_ERR_OK);
	must(gale_join(node->runtime, &node->seat) == GALE_ERR_OK);
}

/* Another key: what is counted of the overload's is the overload's. */
static void warm_up(struct node *node)
{
	while (gale_wait(node->seat, node->limiter, "warm", 4, 1, GALE_SECONDS(10))
	           .verdict != GALE_ALLOW)
		nap(20000);
}

static void close_node(struct node *node)
{
	gale_leave(node->seat);
	gale_limiter_close(node->limiter);
	gale_store_close(node->store);
	gale_runtime_close(node->runtime);
}

static void count(struct overload_tally *tally, const struct gale_answer *answer)
{
	if (answer->verdict == GALE_ALLOW)
		tally->allowed++;
	else if (answer->why == GALE_WHY_RULE)
		tally->denied++;
	else if (answer->why == GALE_WHY_LATE)
		tally->late++;
	else if (answer->why == GALE_WHY_BUSY)
		tally->busy++;
	else if (answer->why == GALE_WHY_DOWN)
		tally->down++;
	else
		tally->odd++;
}

static uint64_t now_us(void)
{
	return patience_now_ns() / 1000;
}

/* The tag is when it was asked. */
static void ask(struct crowd *crowd, struct node *node)
{
	const struct overload *is = crowd->is;
	struct gale_answer answer =
	    gale_ask(node->seat, node->limiter, is->key, strlen(is->key), 1,
	             (void *)(uintptr_t)now_us());

	crowd->tally.asked++;
	if (answer.verdict == GALE_PENDING)
		node->pending++;
	else
		count(&crowd->tally, &answer);
}

static void fetch(struct crowd *crowd, struct node *node)
{
	struct gale_completion done[FETCHED];
	size_t some;

	while ((some = gale_seat_completions(node->seat, done, FETCHED)) > 0) {
		node->pending -= some;
		for (size_t i = 0; i < some; i++) {
			uint64_t took_us = now_us() - (uintptr_t)done[i].tag;

			count(&crowd->tally, &done[i].answer);
			if (done[i].answer.verdict == GALE_ALLOW &&
			    took_us > crowd->tally.longest_us)
				crowd->tally.longest_us = took_us;
		}
	}
}

static bool is_any_pending(const struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->is->nodes; i++)
		if (crowd->nodes[i].pending > 0)
			return true;
	return false;
}

static void fetch_all(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->is->nodes; i++)
		fetch(crowd, &crowd->nodes[i]);
}

/* As many as are due: after a standstill more at once. */
static void ask_all(struct crowd *crowd)
{
	const struct overload *is = crowd->is;
	uint64_t began_us = now_us(), passed_us = 0;

	while (passed_us < is->lasts_us) {
		uint64_t due = passed_us * is->rate / GALE_SECONDS(1);

		while (crowd->tally.asked < due)
			ask(crowd, &crowd->nodes[crowd->tally.asked % is->nodes]);
		fetch_all(crowd);
		nap(PAUSE_US);
		passed_us = now_us() - began_us;
	}
	crowd->tally.lasted_us = passed_us;
	while (is_any_pending(crowd)) {
		fetch_all(crowd);
		nap(PAUSE_US);
	}
}

struct overload_tally overload_run(const struct overload *overload)
{
	static struct crowd crowd;

	must(overload->nodes <= OVERLOAD_NODES_MOST);
	crowd = (struct crowd){ .is = overload };
	for (uint32_t i = 0; i < overload->nodes; i++) {
		open_node(overload, &crowd.nodes[i]);
		warm_up(&crowd.nodes[i]);
	}
	ask_all(&crowd);
	for (uint32_t i = 0; i < overload->nodes; i++)
		close_node(&crowd.nodes[i]);
	return crowd.tally;
}
