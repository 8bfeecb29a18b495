/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* house.c -- opens from the ground up, closes from the roof down. */
#include "tests/support/house.h"

#include <poll.h>
#include <sched.h>
#include <string.h>

#include "face/seat.h"
#include "tests/support/must.h"

#define METRICS_MOST 128

static void open_runtime(struct house *house, const struct house_plan *plan)
{
	struct gale_config config = {
		.shards = plan->shards,
		.pending_max = plan->pending_max,
		.max_keys = plan->node_keys,
		.turns = plan->turns,
		.allocator = &house->allocator.allocator,
		.log = plan->log,
		.clock = &house->clock.clock,
	};

	must(gale_runtime_open(&config, &house->runtime) == GALE_ERR_OK);
}

void house_open(struct house *house, const struct house_plan *plan)
{
	struct gale_store_config store = { .url = plan->url,
		                           .max_keys = plan->max_keys };
	struct gale_limiter_config limiter = { .name = "house",
		                               .rule = plan->rule,
		                               .mode = plan->mode,
		                               .lease = plan->lease,
		                               .outage_share = plan->outage_share,
		                               .on_outage = plan->on_outage };

	test_allocator_init(&house->allocator);
	test_clock_init(&house->clock, HOUSE_NOW);
	if (plan->still)
		test_clock_is_the_nodes(&house->clock);
	open_runtime(house, plan);
	must(gale_store_open(house->runtime, &store, &house->store) == GALE_ERR_OK);
	limiter.store = house->store;
	must(gale_limiter_open(house->runtime, &limiter, &house->limiter) ==
	     GALE_ERR_OK);
	must(gale_join(house->runtime, &house->seat) == GALE_ERR_OK);
}

bool house_close(struct house *house)
{
	gale_leave(house->seat);
	gale_limiter_close(house->limiter);
	gale_store_close(house->store);
	gale_runtime_close(house->runtime);
	return test_allocator_is_balanced(&house->allocator);
}

uint64_t house_metric(struct house *house, const char *name)
{
	struct gale_metric metrics[METRICS_MOST];
	size_t count = gale_metrics(house->runtime, metrics, METRICS_MOST), i = 0;

	must(count <= METRICS_MOST);
	while (i < count && strcmp(metrics[i].name, name) != 0)
		i++;
	must(i < count);
	return metrics[i].value;
}

void house_put_inside(struct house *house, struct store *inner)
{
	struct gale_runtime *runtime = house->runtime;

	lock_take(&runtime->lock);
	while (runtime->locked.sweeping) {
		lock_drop(&runtime->lock);
		sched_yield();
		lock_take(&runtime->lock);
	}
	house->store->inner = inner;
	lock_drop(&runtime->lock);
}

struct gale_answer ask_settled(struct gale_seat *seat, struct gale_limiter *limiter,
                               const void *key, size_t key_len, uint64_t cost)
{
	struct gale_completion completion;
	struct gale_answer answer =
	    gale_ask(seat, limiter, key, key_len, cost, &answer);
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	if (answer.verdict != GALE_PENDING)
		return answer;
	while (gale_seat_completions(seat, &completion, 1) == 0)
		must(poll(&ready, 1, 30000) == 1);
	must(completion.tag == &answer);
	return completion.answer;
}

struct gale_answer house_ask(struct house *house, const char *key)
{
	return ask_settled(house->seat, house->limiter, key, strlen(key), 1);
}

struct gale_answer house_wait(struct house *house, const char *key)
{
	return gale_wait(house->seat, house->limiter, key, strlen(key), 1,
	                 GALE_SECONDS(30));
}

struct gale_limiter *house_limiter(struct house *house, const char *name,
                                   struct gale_rule rule)
{
	struct gale_limiter_config config = { .name = name,
		                              .rule = rule,
		                              .store = house->store };
	struct gale_limiter *limiter;

	must(gale_limiter_open(house->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

struct gale_counts house_stats(struct house *house)
{
	struct gale_counts stats;

	must(gale_store_stats(house->store, &stats) == GALE_ERR_OK);
	return stats;
}

uint64_t asks_of_seat(struct gale_seat *seat)
{
	return load_relaxed(&seat->handle.refs) - 1;
}
