/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * worker.c -- ask, wait if need be, count, again.
 *
 * The instant after an answer is the instant before the next ask, so that a turn reads
 * the clock once.
 *
 * The counters have one writer and are relaxed: they publish nothing but themselves.
 */
#define _GNU_SOURCE
#include "tools/worker.h"

#include <poll.h>
#include <time.h>

#include <gale/http.h>

#define SAMPLE_EVERY 32 /* turns; so that measuring costs the rest nothing */
#define PATIENCE_S 10   /* for an answer that was promised */
/* Between calls of a demand.  Shorter: workers do little but wake.  Longer: the collector waits
 * for what they have passed. */
#define NAP_LEAST_US 1000
#define NAP_MOST_US 50000

/* ---- One turn -------------------------------------------------------------------- */

static void bump(_Atomic uint64_t *counter)
{
	uint64_t count = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, count + 1, memory_order_relaxed);
}

/* xorshift64: cheap, and good enough to choose keys with. */
static uint32_t pick_key(struct worker *worker)
{
	uint64_t x = worker->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	worker->random = x;
	return (uint32_t)((x >> 32) * worker->load->keys >> 32);
}

/* A second at a time: a machine that stood still for long has waited for one at most. */
static bool await(struct worker *worker, struct gale_answer *ret_answer)
{
	struct pollfd wait_for = { .fd = gale_seat_fd(worker->seat), .events = POLLIN };
	struct gale_completion completion;
	int left = PATIENCE_S;

	while (gale_seat_completions(worker->seat, &completion, 1) == 0)
		if (poll(&wait_for, 1, /* ms= */ 1000) == 0 && --left == 0)
			return false;
	*ret_answer = completion.answer;
	return true;
}

/* A key is any bytes: here those of its number.  False if no answer came. */
static bool decide(struct worker *worker, uint32_t key, struct gale_answer *ret_answer)
{
	*ret_answer = gale_ask(worker->seat, worker->limiter, &key, sizeof(key),
	                       /* cost= */ 1, /* tag= */ NULL);
	return ret_answer->verdict != GALE_PENDING || await(worker, ret_answer);
}

static bool decide_timed(struct worker *worker, uint32_t key,
                         struct gale_answer *ret_answer)
{
	uint64_t cost = worker->load->stopwatch_cost_ns;
	uint64_t begin = stopwatch_ns();
	bool decided = decide(worker, key, ret_answer);
	uint64_t taken = stopwatch_ns() - begin;

	if (decided)
		histogram_add(&worker->latency_ns, taken > cost ? taken - cost : 0);
	return decided;
}

static void count_denial(struct worker *worker, const struct gale_answer *answer)
{
	bump(&worker->denied);
	if (gale_http_status(answer) == 429)
		return;
	atomic_store_explicit(&worker->refused_why, (uint32_t)answer->why,
	                      memory_order_relaxed);
	bump(&worker->refused);
}

static struct tally_span place(const struct worker *worker,
                               const struct gale_answer *answer, uint64_t before_us,
                               uint64_t after_us)
{
	const struct tally_config *tally = &worker->load->tally->config;
	uint64_t window_us = tally->window_us;

	before_us -= tally->slack_us;
	after_us += tally->slack_us;
	if (answer->why == GALE_WHY_CREDIT)
		return tally_place_lent(window_us, before_us, after_us,
		                        answer->reset_after_us);
	return tally_place(window_us, before_us, after_us, answer->reset_after_us);
}

/* Returns the instant after; TALLY_GONE if no answer came. */
static uint64_t turn(struct worker *worker, uint32_t key, uint64_t before_us)
{
	struct tally *tally = worker->load->tally;
	struct gale_answer answer;
	uint64_t after_us;
	bool decided;

	tally_pass(tally, worker->number, before_us);
	decided = worker->turns++ % SAMPLE_EVERY == 0
	              ? decide_timed(worker, key, &answer)
	              : decide(worker, key, &answer);
	if (!decided)
		return TALLY_GONE;
	after_us = fleet_clock_us(worker->load->clock);
	if (answer.verdict != GALE_ALLOW) {
		count_denial(worker, &answer);
		return after_us;
	}
	tally_count(tally, worker->number, key,
	            place(worker, &answer, before_us, after_us));
	bump(&worker->allowed);
	return after_us;
}

/* ---- The thread ------------------------------------------------------------------ */

static bool goes_on(const struct worker *worker, uint64_t now_us)
{
	return now_us <
	       atomic_load_explicit(&worker->load->stop_us, memory_order_relaxed);
}

/* Many calls at a time are as good as one, if there are many in a slot. */
static uint64_t nap_until(const struct worker *worker, uint64_t now_us,
                          uint64_t next_us)
{
	uint64_t window_us = worker->load->demand.window_us;
	uint64_t least_us = window_us / 100, nap_us = next_us - now_us;
	struct timespec nap;

	if (least_us < NAP_LEAST_US)
		least_us = NAP_LEAST_US;
	if (least_us > NAP_MOST_US / 10)
		least_us = NAP_MOST_US / 10;
	if (nap_us < least_us)
		nap_us = least_us;
	if (nap_us > NAP_MOST_US)
		nap_us = NAP_MOST_US;
	nap = (struct timespec){ .tv_nsec = (long)nap_us * 1000 };
	nanosleep(&nap, NULL);
	return fleet_clock_us(worker->load->clock);
}

/* The next call of the demand, if it is due, or else a nap. */
static uint64_t turn_of_demand(struct worker *worker, uint64_t now_us)
{
	const struct demand *demand = &worker->load->demand;
	struct tally *tally = worker->load->tally;
	struct demand_part part = demand_at(demand, worker->place, now_us);
	uint64_t number;

	tally_pass(tally, worker->number, now_us);
	if (worker->slot != part.slot) {
		worker->slot = part.slot;
		worker->made = 0;
	}
	if (worker->made >= part.due)
		return nap_until(worker, now_us, part.next_us);
	number = part.first + worker->made++;
	tally_count_asked(tally, worker->number, tally_number(tally, now_us), 1);
	return turn(worker, demand_key(demand, part.slot, number), now_us);
}

static void drive(struct worker *worker)
{
	bool is_paced = worker->load->demand.percent > 0;
	uint64_t now_us = fleet_clock_us(worker->load->clock);

	while (goes_on(worker, now_us))
		now_us = is_paced ? turn_of_demand(worker, now_us)
		                  : turn(worker, pick_key(worker), now_us);
	if (now_us == TALLY_GONE)
		atomic_store_explicit(&worker->stuck, true, memory_order_relaxed);
	tally_pass(worker->load->tally, worker->number, TALLY_GONE);
}

static void *run(void *self)
{
	struct worker *worker = self;

	worker->err = gale_join(worker->runtime, &worker->seat);
	if (gate_pass(&worker->load->gate))
		drive(worker);
	if (worker->err == GALE_ERR_OK)
		gale_leave(worker->seat);
	return NULL;
}

bool worker_start(struct worker *worker)
{
	/* Neighbours begin far from each other. */
	worker->random = (worker->place + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return pthread_create(&worker->thread, NULL, run, worker) == 0;
}

void worker_join(struct worker *worker)
{
	pthread_join(worker->thread, NULL);
}

void worker_look(const struct worker *worker, struct seen *seen)
{
	uint64_t refused = atomic_load(&worker->refused);

	seen->counts[SEEN_ALLOWED] += atomic_load(&worker->allowed);
	seen->counts[SEEN_DENIED] += atomic_load(&worker->denied);
	seen->counts[SEEN_REFUSED] += refused;
	if (refused > 0)
		seen->counts[SEEN_REFUSED_WHY] = atomic_load(&worker->refused_why);
	seen->counts[SEEN_STUCK] += atomic_load(&worker->stuck);
	histogram_merge(&seen->latency_ns, &worker->latency_ns);
}
