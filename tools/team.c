/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* team.c -- opens, starts, stops. */
#include "tools/team.h"

#include <stdlib.h>
#include <string.h>

#define STOPWATCH_TRIES 1001

static int by_size(const void *a, const void *b)
{
	const uint64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

/* The median of reading it twice in a row. */
static uint64_t stopwatch_cost_ns(void)
{
	uint64_t costs[STOPWATCH_TRIES];

	for (size_t i = 0; i < STOPWATCH_TRIES; i++) {
		uint64_t begun = stopwatch_ns();

		costs[i] = stopwatch_ns() - begun;
	}
	qsort(costs, STOPWATCH_TRIES, sizeof(costs[0]), by_size);
	return costs[STOPWATCH_TRIES / 2];
}

/* ---- Opening --------------------------------------------------------------------- */

static bool open_nodes(struct team *team, struct sentence *ret_why)
{
	for (uint64_t i = 0; i < team->plan.flags->nodes; i++)
		if (!node_open(&team->nodes[i], &team->plan, ret_why))
			return false;
	return true;
}

static struct worker *prepare(struct team *team, uint32_t number)
{
	struct worker *worker = &team->workers[number];
	struct node *node = &team->nodes[number / team->plan.flags->threads];

	worker->load = &team->load;
	worker->runtime = node->runtime;
	worker->limiter = node->limiter;
	worker->number = number;
	worker->place = team->first_place + number;
	return worker;
}

static bool start_workers(struct team *team, struct sentence *ret_why)
{
	while (team->started < team->worker_count) {
		if (!worker_start(prepare(team, team->started)))
			return sentence_say(
			    ret_why, "--threads: this system gives no more threads");
		team->started++;
	}
	gate_await(&team->load.gate, team->started);
	for (uint32_t i = 0; i < team->started; i++)
		if (team->workers[i].err != GALE_ERR_OK)
			return sentence_say(ret_why, "a thread cannot join: %s",
			                    gale_err_text(team->workers[i].err));
	return true;
}

static struct demand demand_of(const struct fleet_flags *flags)
{
	return (struct demand){
		.percent = flags->demand_percent,
		.moves = flags->moving != 0,
		.nodes = (uint32_t)(flags->processes * flags->nodes),
		.threads = (uint32_t)flags->threads,
		.keys = (uint32_t)flags->keys,
		.limit = flags->limit,
		.window_us = flags->window_us,
	};
}

bool team_open(struct team *team, const struct node_plan *plan, uint32_t process,
               struct sentence *ret_why)
{
	const struct fleet_flags *flags = plan->flags;

	memset(team, 0, sizeof(*team));
	team->plan = *plan;
	team->worker_count = (uint32_t)(flags->nodes * flags->threads);
	team->first_place = process * team->worker_count;
	team->load.clock = plan->clock;
	team->load.keys = (uint32_t)flags->keys;
	team->load.demand = demand_of(flags);
	team->load.stopwatch_cost_ns = stopwatch_cost_ns();
	gate_init(&team->load.gate);
	team->nodes = calloc(flags->nodes, sizeof(*team->nodes));
	team->workers = calloc(team->worker_count, sizeof(*team->workers));
	if (!team->nodes || !team->workers)
		return sentence_say(ret_why,
		                    "--threads: not enough memory for so many");
	return open_nodes(team, ret_why) && start_workers(team, ret_why);
}

bool team_warm_up(struct team *team, struct node_host *host, struct sentence *ret_why)
{
	for (uint64_t i = 0; i < team->plan.flags->nodes; i++)
		if (!node_warm_up(&team->nodes[i], host, ret_why))
			return false;
	return true;
}

/* ---- The run --------------------------------------------------------------------- */

struct tally_config team_tally_config(const struct fleet_flags *flags,
                                      uint64_t begin_us)
{
	return (struct tally_config){
		.keys = (uint32_t)flags->keys,
		.workers = (uint32_t)(flags->nodes * flags->threads),
		.ring = tally_ring(flags->keys * flags->processes),
		.limit = flags->limit,
		.window_us = flags->window_us,
		.begin_us = begin_us,
		.slack_us = flags->server ? FLEET_CLOCK_SLACK_US : 0,
	};
}

bool team_begin(struct team *team, uint64_t begin_us, uint64_t stop_us,
                struct tally_taker *taker, struct sentence *ret_why)
{
	struct tally_config config = team_tally_config(team->plan.flags, begin_us);

	config.taker = taker;
	team->counts = tally_open(&team->tally, &config);
	if (!team->counts)
		return sentence_say(ret_why, "--keys: not enough memory for so many");
	team->load.tally = &team->tally;
	team_stop(team, stop_us);
	gate_open(&team->load.gate, /* give_up= */ false);
	return true;
}

void team_stop(struct team *team, uint64_t stop_us)
{
	atomic_store(&team->load.stop_us, stop_us);
}

void team_look(const struct team *team, struct seen *seen)
{
	for (uint32_t i = 0; i < team->started; i++)
		worker_look(&team->workers[i], seen);
	for (uint64_t i = 0; i < team->plan.flags->nodes; i++)
		node_look(&team->nodes[i], /* first= */ i == 0, seen);
	seen->counts[SEEN_DISAGREEMENTS] += tally_total(&team->tally).disagreements;
}

/* ---- The end --------------------------------------------------------------------- */

void team_join(struct team *team)
{
	if (!team->counts)
		gate_open(&team->load.gate, /* give_up= */ true);
	for (uint32_t i = 0; !team->joined && i < team->started; i++)
		worker_join(&team->workers[i]);
	team->joined = true;
}

void team_close(struct team *team)
{
	team_join(team);
	if (team->counts)
		tally_close(&team->tally);
	for (uint64_t i = 0; team->nodes && i < team->plan.flags->nodes; i++)
		node_close(&team->nodes[i]);
	free(team->workers);
	free(team->nodes);
	gate_destroy(&team->load.gate);
}
