/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * queue.c -- arrivals, a queue, servers, and a heap of what ends when.
 *
 * Invariants  QUEUE-1  Arrivals and the service of the n-th call that arrives are those of the
 *                      seed, whatever the guards admit.
 */
#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "engine/check.h"
#include "engine/real.h"

#define NEVER UINT64_MAX
#define FAST_FAIL_NS UINT64_C(1000000)
#define SECOND_NS 1e9

struct call {
	uint64_t began_ns;
	uint64_t service_ns;
	uint64_t ends_ns;
	uint32_t node;
	uint32_t phase;
	uint32_t in_flight; /* of its node, it included */
	bool dropped;
	bool served; /* a server works on it */
};

struct backend {
	struct call *calls;
	uint32_t *free_calls;
	uint32_t free_count;
	uint32_t *heap; /* calls by when they end */
	uint32_t heap_count;
	uint32_t *waiting; /* a ring */
	uint32_t first, waiting_count;
	uint32_t serving;
	uint32_t in_flight;
	uint64_t flight_time_ns;
};

struct play {
	struct queue *queue;
	const struct queue_plan *plan;
	struct backend back;
	struct chance arrivals; /* QUEUE-1 */
	uint64_t number;        /* of calls that arrived */
	uint32_t phase;
	uint64_t tick_latency_us;
};

/* ---- Chance ------------------------------------------------------------------------ */

static double unit(struct chance *c)
{
	return ((double)(chance_next(c) >> 11) + 1) / 9007199254740993.0;
}

static uint64_t exponential(struct chance *c, double mean)
{
	return (uint64_t)(-real_log(unit(c)) * mean);
}

static uint64_t mean_at(const struct play *play, uint64_t now_ns)
{
	const struct queue_plan *plan = play->plan;
	const struct queue_phase *phase = &plan->phases[play->phase];
	uint64_t ends =
	    play->phase + 1 < plan->phase_count ? phase[1].begins_ns : plan->ends_ns;
	double part;

	if (phase->mean_end_ns == 0)
		return phase->mean_ns;
	part = (double)(now_ns - phase->begins_ns) / (double)(ends - phase->begins_ns);
	return (uint64_t)((double)phase->mean_ns * (1 - part) +
	                  (double)phase->mean_end_ns * part);
}

static uint64_t service_of(const struct play *play, uint64_t now_ns, uint32_t node)
{
	struct chance c = { play->plan->seed * 1000003 + play->number };
	uint64_t mean = mean_at(play, now_ns);

	if (play->plan->costs[node % 2])
		mean = mean * play->plan->costs[node % 2] / 100;
	(void)chance_next(&c);
	switch (play->plan->service) {
	case SERVICE_EXPONENTIAL:
		return exponential(&c, (double)mean);
	case SERVICE_BIMODAL:
		return chance_one_in(&c, 10) ? mean * 82 / 10 : mean / 5;
	default:
		return mean;
	}
}

/* ---- A heap of calls ---------------------------------------------------------------- */

static bool sooner(const struct backend *back, uint32_t a, uint32_t b)
{
	return back->calls[a].ends_ns < back->calls[b].ends_ns ||
	       (back->calls[a].ends_ns == back->calls[b].ends_ns && a < b);
}

static void heap_add(struct backend *back, uint32_t call)
{
	uint32_t at = back->heap_count++;

	while (at > 0 && sooner(back, call, back->heap[(at - 1) / 2])) {
		back->heap[at] = back->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	back->heap[at] = call;
}

static uint32_t heap_take(struct backend *back)
{
	uint32_t top = back->heap[0], last = back->heap[--back->heap_count];
	uint32_t at = 0, child;

	while ((child = 2 * at + 1) < back->heap_count) {
		if (child + 1 < back->heap_count &&
		    sooner(back, back->heap[child + 1], back->heap[child]))
			child++;
		if (!sooner(back, back->heap[child], last))
			break;
		back->heap[at] = back->heap[child];
		at = child;
	}
	back->heap[at] = last;
	return top;
}

/* ---- The backend -------------------------------------------------------------------- */

static void serve(struct play *play, uint32_t number, uint64_t now_ns)
{
	struct backend *back = &play->back;
	struct call *call = &back->calls[number];
	uint64_t service = call->service_ns;

	if (play->plan->contention && back->in_flight > play->plan->contention)
		service = service * back->in_flight / play->plan->contention;
	call->ends_ns = now_ns + service;
	call->served = true;
	back->serving++;
	heap_add(back, number);
}

static bool has_free_server(const struct play *play)
{
	uint32_t servers = play->plan->phases[play->phase].servers;

	return play->back.serving < (servers > 0 ? servers : play->plan->servers);
}

static void serve_next(struct play *play, uint64_t now_ns)
{
	struct backend *back = &play->back;
	uint32_t number = back->waiting[back->first];

	back->first = (back->first + 1) % QUEUE_FLIGHT;
	back->waiting_count--;
	serve(play, number, now_ns);
}

/* A server that is gone has ended what it had. */
static void serve_those_that_wait(struct play *play, uint64_t now_ns)
{
	while (play->back.waiting_count > 0 && has_free_server(play))
		serve_next(play, now_ns);
}

static void fail_later(struct play *play, uint32_t number, uint64_t ends_ns)
{
	play->back.calls[number].dropped = true;
	play->back.calls[number].ends_ns = ends_ns;
	heap_add(&play->back, number);
}

static void put(struct play *play, uint32_t number, uint64_t now_ns)
{
	struct backend *back = &play->back;
	enum queue_mode mode = play->plan->phases[play->phase].mode;

	back->in_flight++;
	if (mode == MODE_HANGS)
		fail_later(play, number, now_ns + play->plan->timeout_ns);
	else if (mode == MODE_FAILS)
		fail_later(play, number, now_ns + FAST_FAIL_NS);
	else if (has_free_server(play))
		serve(play, number, now_ns);
	else
		back->waiting[(back->first + back->waiting_count++) % QUEUE_FLIGHT] =
		    number;
}

/* ---- Counting ----------------------------------------------------------------------- */

static void count_latency(struct queue_count *count, uint64_t ns)
{
	uint32_t octave, part;

	if (ns < QUEUE_PARTS)
		ns = QUEUE_PARTS;
	octave = 63 - (uint32_t)__builtin_clzll(ns);
	part = (uint32_t)(((ns << 6) >> octave) & 63) / (64 / QUEUE_PARTS);
	if (octave >= QUEUE_OCTAVES)
		octave = QUEUE_OCTAVES - 1;
	count->latency[octave * QUEUE_PARTS + part]++;
}

uint64_t queue_latency(const struct queue_count *count, uint32_t thousandths)
{
	uint64_t below = 0, wanted = count->ok * thousandths / 1000;

	for (uint32_t i = 0; i < QUEUE_OCTAVES * QUEUE_PARTS; i++) {
		below += count->latency[i];
		if (below > wanted)
			return ((UINT64_C(1) << (i / QUEUE_PARTS)) *
			        (i % QUEUE_PARTS + 1 + QUEUE_PARTS)) /
			       QUEUE_PARTS;
	}
	return 0;
}

static struct queue_tick *tick_at(struct play *play, uint64_t now_ns)
{
	uint64_t at = now_ns / play->plan->tick_ns;

	return &play->queue->ticks[at < QUEUE_TICKS ? at : QUEUE_TICKS - 1];
}

/* What the guards let through together. */
static uint32_t ceilings(struct play *play, uint64_t now_ns)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < play->plan->nodes; i++) {
		struct queue_node *node = &play->queue->nodes[i];

		sum += play->plan->law->limit(&node->guard, node->share, now_ns);
	}
	return sum;
}

static void note_limit(struct play *play, uint64_t now_ns)
{
	struct queue_count *count = &play->queue->counts[play->phase];
	struct queue_tick *tick = tick_at(play, now_ns);
	uint32_t sum = ceilings(play, now_ns);

	if (count->limit_most < sum)
		count->limit_most = sum;
	if (count->limit_least > sum)
		count->limit_least = sum;
	tick->limit = sum;
	if (tick->flight < play->back.in_flight)
		tick->flight = play->back.in_flight;
}

/* ---- Events ------------------------------------------------------------------------- */

/* Only the library's laws have shares. */
static bool has_fleet(const struct queue_plan *plan)
{
	return plan->fleet && plan->law->shipped;
}

static uint32_t node_of(struct play *play, uint64_t now_ns)
{
	const struct queue_plan *plan = play->plan;
	uint64_t lot = chance_below(&play->arrivals, plan->nodes);

	/* Of what is dear less comes, so that both are as much work. */
	if (plan->costs[0] > 0)
		lot = chance_below(&play->arrivals, plan->costs[0] + plan->costs[1]) <
		      plan->costs[0];
	if (plan->turns_ns)
		lot = lot / 2 * 2 + now_ns / plan->turns_ns % 2;
	return (uint32_t)(lot < plan->nodes ? lot : plan->nodes - 1);
}

static void admit(struct play *play, uint32_t index, uint64_t now_ns)
{
	struct queue_node *node = &play->queue->nodes[index];
	uint32_t number = play->back.free_calls[--play->back.free_count];

	node->in_flight++;
	play->back.calls[number] = (struct call){
		.began_ns = now_ns,
		.service_ns = service_of(play, now_ns, index),
		.node = index,
		.phase = play->phase,
		.in_flight = node->in_flight,
	};
	play->plan->law->entered(&node->guard, now_ns, node->in_flight);
	put(play, number, now_ns);
	if (has_fleet(play->plan))
		play->plan->fleet->admitted(play->queue, play->back.in_flight);
	if (play->queue->counts[play->phase].flight_most < play->back.in_flight)
		play->queue->counts[play->phase].flight_most = play->back.in_flight;
}

static void arrive(struct play *play, uint64_t now_ns)
{
	struct queue_count *count = &play->queue->counts[play->phase];
	uint32_t index = node_of(play, now_ns);
	struct queue_node *node = &play->queue->nodes[index];
	uint32_t ceiling = play->plan->law->ceiling(&node->guard, node->share, now_ns);

	play->number++;
	count->offered++;
	count->offered_of[index % 2]++;
	if (node->in_flight < ceiling && play->back.free_count > 0) {
		admit(play, index, now_ns);
		return;
	}
	count->refused++;
	node->refused++;
	play->plan->law->refused(&node->guard, now_ns, node->share);
	if (has_fleet(play->plan))
		play->plan->fleet->refused(play->queue, index, now_ns);
}

static void count_end(struct play *play, const struct call *call, uint64_t now_ns)
{
	struct queue_count *count = &play->queue->counts[call->phase];
	uint64_t latency = now_ns - call->began_ns;
	struct queue_tick *tick = tick_at(play, now_ns);

	if (call->dropped)
		return;
	count->ok++;
	count_latency(count, latency);
	if (latency > play->plan->slo_ns)
		return;
	count->good++;
	count->good_of[call->node % 2]++;
	play->tick_latency_us += latency / 1000;
	tick->good++;
	tick->latency_us = (uint32_t)(play->tick_latency_us / tick->good);
}

static uint64_t delay_of(const struct backend *back, uint64_t now_ns)
{
	if (back->waiting_count == 0)
		return 0;
	return now_ns - back->calls[back->waiting[back->first]].began_ns;
}

static void end(struct play *play, uint64_t now_ns)
{
	uint32_t number = heap_take(&play->back);
	struct call *call = &play->back.calls[number];
	struct queue_node *node = &play->queue->nodes[call->node];
	struct ended ended = {
		.now_ns = now_ns,
		.rtt_ns = now_ns - call->began_ns,
		.in_flight = call->in_flight,
		.share = node->share,
		.dropped = call->dropped,
	};

	play->back.in_flight--;
	node->in_flight--;
	if (call->served)
		play->back.serving--;
	serve_those_that_wait(play, now_ns);
	ended.delay_ns = delay_of(&play->back, now_ns);
	count_end(play, call, now_ns);
	play->back.free_calls[play->back.free_count++] = number;
	play->plan->law->ended(&node->guard, &ended, node->in_flight);
	note_limit(play, now_ns);
}

static void turn_phase(struct play *play, uint64_t now_ns)
{
	const struct queue_plan *plan = play->plan;

	while (play->phase + 1 < plan->phase_count &&
	       plan->phases[play->phase + 1].begins_ns <= now_ns)
		play->phase++;
	serve_those_that_wait(play, now_ns); /* there may be more servers now */
}

/* ---- A play ------------------------------------------------------------------------- */

static void *array(size_t size)
{
	void *memory = calloc(QUEUE_FLIGHT, size);

	if (!memory)
		abort();
	return memory;
}

static void open_nodes(struct queue *queue)
{
	for (uint32_t i = 0; i < queue->plan->nodes; i++) {
		queue->nodes[i].share = ESTIMATE_MOST;
		queue->plan->law->open(&queue->nodes[i].guard, &queue->plan->settings,
		                       chance_next(&queue->chance));
		if (queue->plan->law->told)
			queue->plan->law->told(&queue->nodes[i].guard,
			                       queue->plan->slo_ns);
	}
	for (uint32_t i = 0; i < QUEUE_PHASES; i++)
		queue->counts[i].limit_least = UINT32_MAX;
	queue->fleet_at_ns = NEVER;
	if (has_fleet(queue->plan))
		queue->plan->fleet->open(queue);
}

static void open_backend(struct backend *back)
{
	*back = (struct backend){ .calls = array(sizeof(struct call)),
		                  .free_calls = array(sizeof(uint32_t)),
		                  .heap = array(sizeof(uint32_t)),
		                  .waiting = array(sizeof(uint32_t)) };
	while (back->free_count < QUEUE_FLIGHT) {
		back->free_calls[back->free_count] =
		    QUEUE_FLIGHT - 1 - back->free_count;
		back->free_count++;
	}
}

static void close_backend(struct backend *back)
{
	free(back->calls);
	free(back->free_calls);
	free(back->heap);
	free(back->waiting);
}

static uint64_t next_arrival(struct play *play, uint64_t now_ns)
{
	double rate = play->plan->phases[play->phase].arrivals;
	uint64_t next = now_ns + exponential(&play->arrivals, SECOND_NS / rate);
	uint32_t after = play->phase + 1;

	/* Of a phase in which more comes, not after its beginning by the old rate. */
	if (after < play->plan->phase_count &&
	    next > play->plan->phases[after].begins_ns)
		next = play->plan->phases[after].begins_ns;
	return next;
}

static void run(struct play *play)
{
	struct queue *queue = play->queue;
	uint64_t now = 0, arrives = next_arrival(play, 0), ends, tick = 0;

	while (now < play->plan->ends_ns) {
		ends = play->back.heap_count
		           ? play->back.calls[play->back.heap[0]].ends_ns
		           : NEVER;
		now = arrives < ends ? arrives : ends;
		if (queue->fleet_at_ns < now) {
			now = queue->fleet_at_ns;
			queue->plan->fleet->turn(queue, now);
			continue;
		}
		turn_phase(play, now);
		if (now / play->plan->tick_ns != tick) {
			tick = now / play->plan->tick_ns;
			play->tick_latency_us = 0;
			note_limit(play, now);
		}
		if (ends <= arrives) {
			end(play, now);
		} else {
			arrive(play, now);
			arrives = next_arrival(play, now);
		}
	}
	queue->tick_count = (uint32_t)(tick < QUEUE_TICKS ? tick : QUEUE_TICKS);
}

void queue_play(struct queue *queue, const struct queue_plan *plan, void *fleet_state)
{
	struct play play = { .queue = queue, .plan = plan, .arrivals = { plan->seed } };

	gale_assert(plan->nodes <= QUEUE_NODES && plan->phase_count <= QUEUE_PHASES);
	memset(queue, 0, sizeof(*queue));
	queue->plan = plan;
	queue->fleet_state = fleet_state;
	queue->chance.state = ~plan->seed;
	open_nodes(queue);
	open_backend(&play.back);
	run(&play);
	close_backend(&play.back);
}
