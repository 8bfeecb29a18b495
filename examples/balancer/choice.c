/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * choice.c -- which backend is called: the one with the fewest calls in flight for its weight.
 *
 * Where several backends are equal, smooth weighted round robin chooses among them.  So a
 * backend that slows down gets no more calls than the others while they are in flight.  By
 * turns alone its calls would pile up, until most clients of the balancer waited for it.
 *
 * Each thread goes by what it has seen itself.  EJECT_AFTER failures one after the other
 * eject a backend, for a second at first, and for twice as long each time that it fails
 * again.  When the time is over, one request is let through: if it works, the backend is
 * back.
 *
 * A request may be made again at another backend as long as the budget lasts: RETRIES_MOST
 * retries, and after them one for ten requests.  So when all backends fail, retries do not
 * double what they have to bear.
 */
#include "examples/balancer/balancer.h"

#define EJECT_AFTER 3
#define EJECT_FIRST_NS (1000 * MILLISECOND)
#define EJECT_MOST_NS (8000 * MILLISECOND)
#define RETRIES_MOST 50
#define RETRY_PERMILLE 100

static bool is_open(const struct thread *thread, uint32_t backend, uint64_t tried)
{
	const struct standing *standing = &thread->standings[backend];

	if (tried >> backend & 1)
		return false;
	return !standing->is_ejected ||
	       (!standing->is_probed &&
	        thread->loop.now_ns >= standing->ejected_until_ns);
}

bool choice_is_there(const struct thread *thread, uint64_t tried)
{
	for (uint32_t i = 0; i < thread->balancer->backend_count; i++) {
		if (is_open(thread, i, tried))
			return true;
	}
	return false;
}

/* Less than 0: a has fewer calls in flight for its weight than b. */
static int64_t compare_load(const struct thread *thread, uint32_t a, uint32_t b)
{
	const struct backend *backends = thread->balancer->backends;
	const struct standing *standings = thread->standings;

	return (int64_t)standings[a].in_flight * backends[b].weight -
	       (int64_t)standings[b].in_flight * backends[a].weight;
}

static int least_loaded(const struct thread *thread, uint64_t tried)
{
	int least = -1;

	for (uint32_t i = 0; i < thread->balancer->backend_count; i++) {
		if (is_open(thread, i, tried) &&
		    (least < 0 || compare_load(thread, i, (uint32_t)least) < 0))
			least = (int)i;
	}
	return least;
}

int choice_next(struct thread *thread, uint64_t tried)
{
	const struct balancer *balancer = thread->balancer;
	int least = least_loaded(thread, tried), best = -1;
	int64_t whole = 0;

	for (uint32_t i = 0; least >= 0 && i < balancer->backend_count; i++) {
		struct standing *standing = &thread->standings[i];

		if (!is_open(thread, i, tried) ||
		    compare_load(thread, i, (uint32_t)least) != 0)
			continue;
		standing->turn += balancer->backends[i].weight;
		whole += balancer->backends[i].weight;
		if (best < 0 || standing->turn > thread->standings[best].turn)
			best = (int)i;
	}
	if (best >= 0)
		thread->standings[best].turn -= whole;
	return best;
}

bool choice_begins(struct thread *thread, uint32_t backend)
{
	struct standing *standing = &thread->standings[backend];

	standing->is_probed = standing->is_ejected;
	standing->in_flight++;
	count(&standing->calls);
	return standing->is_probed;
}

void choice_works(struct thread *thread, uint32_t backend, bool is_probe)
{
	struct standing *standing = &thread->standings[backend];

	standing->in_flight--;
	standing->failures = 0;
	if (!is_probe)
		return;
	standing->is_ejected = standing->is_probed = false;
	standing->ejected_for_ns = 0;
	standing->turn = 0;
	atomic_store_explicit(&standing->ejected, 0, memory_order_relaxed);
}

static void eject(struct thread *thread, struct standing *standing)
{
	standing->ejected_for_ns *= 2;
	if (standing->ejected_for_ns == 0)
		standing->ejected_for_ns = EJECT_FIRST_NS;
	if (standing->ejected_for_ns > EJECT_MOST_NS)
		standing->ejected_for_ns = EJECT_MOST_NS;
	standing->ejected_until_ns = thread->loop.now_ns + standing->ejected_for_ns;
	standing->is_ejected = true;
	standing->is_probed = false;
	standing->failures = 0;
	count(&standing->ejections);
	atomic_store_explicit(&standing->ejected, 1, memory_order_relaxed);
}

/* A call that was on its way when the backend was ejected says nothing new. */
void choice_fails(struct thread *thread, uint32_t backend, bool is_probe)
{
	struct standing *standing = &thread->standings[backend];

	standing->in_flight--;
	count(&standing->failed);
	if (standing->is_ejected && !is_probe)
		return;
	if (!is_probe && ++standing->failures < EJECT_AFTER)
		return;
	eject(thread, standing);
	calls_close(thread, backend);
}

/* If this was the probe, the next request is. */
void choice_says_nothing(struct thread *thread, uint32_t backend, bool is_probe)
{
	struct standing *standing = &thread->standings[backend];

	standing->in_flight--;
	if (is_probe)
		standing->is_probed = false;
}

void budget_begin(struct thread *thread)
{
	thread->retry_permille = RETRIES_MOST * 1000;
}

void budget_earn(struct thread *thread)
{
	thread->retry_permille += RETRY_PERMILLE;
	if (thread->retry_permille > RETRIES_MOST * 1000)
		thread->retry_permille = RETRIES_MOST * 1000;
}

bool budget_spend(struct thread *thread)
{
	if (thread->retry_permille < 1000) {
		count(&thread->retries_denied);
		return false;
	}
	thread->retry_permille -= 1000;
	count(&thread->retries);
	return true;
}
