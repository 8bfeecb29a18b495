/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tally.c -- a ring of windows, each with a counter for every key.
 *
 * Windows are numbered by their end, in window lengths since 1970.  The ring holds
 * [base, base + ring).  Workers add to any of these; the collector sums up the oldest,
 * clears it and moves base up by one, which makes room for a newer window.
 *
 * Invariants
 *
 *   TALLY-1  A worker that has passed p counts only what was decided at p or later:
 *            never into a window that ended at p or before.
 *   TALLY-2  A window is folded when every worker has passed its end by the grace time:
 *            its counters are final.  A stray's first window, too, is folded after it
 *            is there.
 *   TALLY-3  No count is dropped: a worker whose window is beyond the ring waits.  What
 *            it has passed is less than two windows before the end it waits to count
 *            into (with a wider span it has a stray, and does not wait), so it holds up
 *            none of the windows that stand in its way: a worker can always go on.
 *   TALLY-4  A window is handed over after all before it, and whole: a stray with the
 *            first window that it may be of.  So a taker that is given it, and has passed
 *            what it is told, keeps TALLY-1 and TALLY-3 as a worker does.
 *
 * Ordering
 *
 *   passed   A worker adds, then stores passed with release  ->  the collector loads it
 *            with acquire and sees what was added to the windows that it may fold.
 *   cleared  The collector clears, then stores base with release  ->  a worker loads it
 *            with acquire, and adds to counters that are 0.
 *
 *   The counters are relaxed: these two pairs publish them.  tally_look reads them
 *   while they change, and shows some recent state.
 */
#define _GNU_SOURCE
#include "tools/tally.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE_LINE 64
/* The clocks of two processors, and of the store, may disagree by less than this.  TALLY-2 */
#define GRACE_US 1000
#define NAP_NS 100000
#define RING_LEAST 16
#define RING_MOST 1024
#define COUNTERS_MOST (RING_LEAST * TALLY_KEYS_MAX)

struct tally_worker {
	alignas(CACHE_LINE) _Atomic uint64_t passed_us;
	_Atomic uint64_t disagreements;
};

/* ---- Opening and closing --------------------------------------------------------- */

uint32_t tally_ring(uint64_t keys)
{
	uint64_t ring = COUNTERS_MOST / keys;

	if (ring < RING_LEAST)
		return RING_LEAST;
	return ring < RING_MOST ? (uint32_t)ring : RING_MOST;
}

static bool allocate(struct tally *tally)
{
	const struct tally_config *config = &tally->config;
	size_t bytes = config->workers * sizeof(struct tally_worker);

	tally->counts =
	    calloc((size_t)config->ring * config->keys, sizeof(*tally->counts));
	tally->asked = calloc(config->ring, sizeof(*tally->asked));
	tally->workers = aligned_alloc(CACHE_LINE, bytes);
	if (!tally->counts || !tally->asked || !tally->workers)
		return false;
	memset(tally->workers, 0, bytes);
	return true;
}

bool tally_open(struct tally *tally, const struct tally_config *config)
{
	memset(tally, 0, sizeof(*tally));
	tally->config = *config;
	tally->first = (config->begin_us - config->slack_us) / config->window_us + 1;
	atomic_init(&tally->base, tally->first);
	pthread_mutex_init(&tally->lock, NULL);
	if (allocate(tally))
		return true;
	tally_close(tally);
	return false;
}

void tally_close(struct tally *tally)
{
	pthread_mutex_destroy(&tally->lock);
	free(tally->strays);
	free(tally->workers);
	free(tally->asked);
	free(tally->counts);
}

/* ---- Placing --------------------------------------------------------------------- */

struct tally_span tally_place(uint64_t window_us, uint64_t before_us, uint64_t after_us,
                              uint64_t reset_after_us)
{
	if (reset_after_us < 1 || reset_after_us > window_us)
		return (struct tally_span){ .first = 1, .last = 0 };
	return (struct tally_span){
		.first = (before_us + reset_after_us + window_us - 1) / window_us,
		.last = (after_us + reset_after_us) / window_us,
	};
}

struct tally_span tally_place_lent(uint64_t window_us, uint64_t before_us,
                                   uint64_t after_us, uint64_t lives_us)
{
	uint64_t first = before_us / window_us + 1, last = after_us / window_us + 1;
	uint64_t lived_in = (before_us + lives_us + window_us - 1) / window_us;

	if (first < lived_in)
		first = lived_in; /* what outlives a window is of a later one */
	if (first > last)
		return (struct tally_span){ .first = 1, .last = 0 };
	return (struct tally_span){ first, last };
}

/* ---- Counting: the workers ------------------------------------------------------- */

uint64_t tally_number(const struct tally *tally, uint64_t now_us)
{
	return now_us / tally->config.window_us + 1;
}

static _Atomic uint64_t *counter(const struct tally *tally, uint64_t number,
                                 uint32_t key)
{
	return &tally->counts[number % tally->config.ring * tally->config.keys + key];
}

static _Atomic uint64_t *asked_counter(const struct tally *tally, uint64_t number)
{
	return &tally->asked[number % tally->config.ring];
}

static void disagree(struct tally *tally, uint32_t worker, uint64_t units)
{
	atomic_fetch_add_explicit(&tally->workers[worker].disagreements, units,
	                          memory_order_relaxed);
}

static uint64_t load_base(const struct tally *tally)
{
	return atomic_load_explicit(&tally->base, memory_order_acquire); /* cleared */
}

static void wait_for_room(const struct tally *tally, uint64_t number)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };

	while (number - load_base(tally) >= tally->config.ring)
		nanosleep(&nap, NULL); /* TALLY-3 */
}

static bool make_stray_room(struct tally *tally)
{
	size_t room = tally->stray_room ? 2 * tally->stray_room : 64;
	struct tally_stray *strays;

	if (tally->stray_count < tally->stray_room)
		return true;
	strays = realloc(tally->strays, room * sizeof(*strays));
	if (!strays)
		return false;
	tally->strays = strays;
	tally->stray_room = room;
	return true;
}

static bool add_stray(struct tally *tally, const struct tally_stray *stray)
{
	bool added;

	pthread_mutex_lock(&tally->lock);
	added = make_stray_room(tally);
	if (added)
		tally->strays[tally->stray_count++] = *stray;
	pthread_mutex_unlock(&tally->lock);
	return added;
}

void tally_pass(struct tally *tally, uint32_t worker, uint64_t now_us)
{
	atomic_store_explicit(&tally->workers[worker].passed_us, now_us,
	                      memory_order_release); /* passed */
}

static void count_strays(struct tally *tally, uint32_t worker,
                         const struct tally_stray *stray, uint64_t units)
{
	for (; units > 0; units--)
		if (!add_stray(tally, stray)) {
			disagree(tally, worker,
			         units); /* no memory: the run must not pass */
			return;
		}
}

void tally_count_units(struct tally *tally, uint32_t worker, uint32_t key,
                       struct tally_span span, uint64_t units)
{
	struct tally_stray it = { .key = key, .span = span };

	if (span.first > span.last || span.first < load_base(tally)) {
		disagree(tally, worker, units);
	} else if (span.first < span.last) {
		count_strays(tally, worker, &it, units);
	} else {
		wait_for_room(tally, span.first);
		atomic_fetch_add_explicit(counter(tally, span.first, key), units,
		                          memory_order_relaxed);
	}
}

void tally_count(struct tally *tally, uint32_t worker, uint32_t key,
                 struct tally_span span)
{
	tally_count_units(tally, worker, key, span, 1);
}

void tally_count_asked(struct tally *tally, uint32_t worker, uint64_t number,
                       uint64_t units)
{
	if (number < load_base(tally)) {
		disagree(tally, worker, units);
		return;
	}
	wait_for_room(tally, number);
	atomic_fetch_add_explicit(asked_counter(tally, number), units,
	                          memory_order_relaxed);
}

/* ---- Folding: the collector ------------------------------------------------------ */

static uint64_t passed_by_all(const struct tally *tally)
{
	uint64_t least = TALLY_GONE;

	for (uint32_t i = 0; i < tally->config.workers; i++) {
		uint64_t passed = atomic_load_explicit(
		    &tally->workers[i].passed_us, memory_order_acquire); /* passed */

		if (passed < least)
			least = passed;
	}
	return least;
}

static uint64_t oldest(const struct tally *tally)
{
	return atomic_load_explicit(&tally->base, memory_order_relaxed);
}

static int by_last(const void *a, const void *b)
{
	const struct tally_stray *one = a, *other = b;

	return (one->span.last > other->span.last) -
	       (one->span.last < other->span.last);
}

/* Room now, or never again. */
static bool belongs(const struct tally *tally, const struct tally_stray *stray,
                    uint64_t number)
{
	uint64_t count = atomic_load_explicit(counter(tally, number, stray->key),
	                                      memory_order_relaxed);

	return stray->span.first <= number &&
	       (count < tally->config.limit || stray->span.last <= number);
}

/* Those that can wait least choose first: if all can be placed, this places them. */
static void place_strays(struct tally *tally, uint64_t number)
{
	size_t kept = 0;

	pthread_mutex_lock(&tally->lock);
	if (tally->stray_count > 1)
		qsort(tally->strays, tally->stray_count, sizeof(*tally->strays),
		      by_last);
	for (size_t i = 0; i < tally->stray_count; i++) {
		struct tally_stray stray = tally->strays[i];

		if (belongs(tally, &stray, number))
			atomic_fetch_add_explicit(counter(tally, number, stray.key), 1,
			                          memory_order_relaxed);
		else
			tally->strays[kept++] = stray;
	}
	tally->stray_count = kept;
	pthread_mutex_unlock(&tally->lock);
}

static bool is_whole(const struct tally *tally, uint64_t number, uint64_t stop_us)
{
	uint64_t end_us = number * tally->config.window_us;

	return end_us - tally->config.window_us >= tally->config.begin_us &&
	       end_us <= stop_us;
}

static void add_key(struct tally_window *window, uint64_t count)
{
	window->admitted += count;
	if (window->most < count)
		window->most = count;
}

static double missing(const struct tally *tally, uint64_t count)
{
	double limit = (double)tally->config.limit;

	return count < tally->config.limit ? (limit - (double)count) / limit : 0;
}

static uint64_t take_asked(struct tally *tally, uint64_t number)
{
	return atomic_exchange_explicit(asked_counter(tally, number), 0,
	                                memory_order_relaxed);
}

static struct tally_window sum_up(struct tally *tally, uint64_t number,
                                  uint64_t stop_us)
{
	struct tally_window window = { .number = number - tally->first + 1,
		                       .asked = take_asked(tally, number),
		                       .whole = is_whole(tally, number, stop_us) };
	double sum = 0;

	for (uint32_t key = 0; key < tally->config.keys; key++) {
		_Atomic uint64_t *at = counter(tally, number, key);
		uint64_t count = atomic_load_explicit(at, memory_order_relaxed);

		atomic_store_explicit(at, 0, memory_order_relaxed);
		add_key(&window, count);
		if (window.whole)
			sum += missing(tally, count);
	}
	tally->undershoot_sum += sum;
	window.undershoot = sum / tally->config.keys;
	return window;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Units that were asked for before the window's end may be admitted after it: no window serves more
 * than it owes. */
static void add_served(struct tally *tally, const struct tally_window *window)
{
	struct tally_totals *totals = &tally->totals;
	double limits = (double)tally->config.limit * tally->config.keys;
	uint64_t owed =
	    (double)window->asked < limits ? window->asked : (uint64_t)limits;
	uint64_t served = smaller(window->admitted, owed);
	double part = (double)served / (double)owed;

	totals->asked += window->asked;
	totals->owed += owed;
	totals->served += served;
	if (totals->asked_windows == 0 || part < totals->served_worst)
		totals->served_worst = part;
	totals->asked_windows++;
}

static void add_window(struct tally *tally, const struct tally_window *window)
{
	if (window->whole && window->asked > 0 &&
	    tally->totals.windows >= TALLY_LEARNING)
		add_served(tally, window);
	tally->totals.admitted += window->admitted;
	tally->totals.windows += window->whole;
	if (tally->totals.admitted_max < window->most)
		tally->totals.admitted_max = window->most;
	tally->history[tally->history_count++ % TALLY_HISTORY] = *window;
}

static void sum_up_oldest(struct tally *tally, uint64_t number, uint64_t stop_us)
{
	struct tally_window window;

	place_strays(tally, number);
	window = sum_up(tally, number, stop_us);
	if (window.whole || window.admitted > 0 || window.asked > 0)
		add_window(tally, &window);
}

/* ---- Handing over: the collector, too -------------------------------------------- */

/* Those that may be of this window or of later ones, and of none before. */
static void hand_over_strays(struct tally *tally, uint64_t number)
{
	struct tally_taker *taker = tally->config.taker;
	size_t kept = 0;

	pthread_mutex_lock(&tally->lock);
	for (size_t i = 0; i < tally->stray_count; i++) {
		struct tally_stray stray = tally->strays[i];

		if (stray.span.first <= number)
			taker->take(taker, stray.key, stray.span, 1);
		else
			tally->strays[kept++] = stray;
	}
	tally->stray_count = kept;
	pthread_mutex_unlock(&tally->lock);
}

/* TALLY-4 */
static void hand_over(struct tally *tally, uint64_t number)
{
	struct tally_taker *taker = tally->config.taker;
	struct tally_span span = { number, number };
	uint64_t asked = take_asked(tally, number);

	hand_over_strays(tally, number);
	if (asked > 0)
		taker->asked(taker, number, asked);
	for (uint32_t key = 0; key < tally->config.keys; key++) {
		_Atomic uint64_t *at = counter(tally, number, key);
		uint64_t units = atomic_load_explicit(at, memory_order_relaxed);

		if (units == 0)
			continue;
		atomic_store_explicit(at, 0, memory_order_relaxed);
		taker->take(taker, key, span, units);
	}
	taker->passed(taker, number * tally->config.window_us + GRACE_US);
}

/* ---- Both ------------------------------------------------------------------------ */

static void fold_oldest(struct tally *tally, uint64_t stop_us)
{
	uint64_t number = oldest(tally);

	if (tally->config.taker)
		hand_over(tally, number);
	else
		sum_up_oldest(tally, number, stop_us);
	atomic_store_explicit(&tally->base, number + 1,
	                      memory_order_release); /* cleared */
}

void tally_fold(struct tally *tally, uint64_t stop_us)
{
	uint64_t passed = passed_by_all(tally);

	if (passed == TALLY_GONE)
		return; /* no worker is left that could wait for room */
	while (oldest(tally) * tally->config.window_us + GRACE_US <= passed)
		fold_oldest(tally, stop_us); /* TALLY-2 */
}

bool tally_all_gone(const struct tally *tally)
{
	return passed_by_all(tally) == TALLY_GONE;
}

void tally_finish(struct tally *tally, uint64_t stop_us)
{
	uint64_t end = stop_us / tally->config.window_us;

	for (uint32_t i = 0; i < tally->config.ring; i++)
		fold_oldest(tally, stop_us);
	while (tally->stray_count > 0 || oldest(tally) <= end)
		fold_oldest(tally, stop_us);
}

/* ---- Looking --------------------------------------------------------------------- */

static uint64_t disagreements(const struct tally *tally)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < tally->config.workers; i++)
		sum += atomic_load_explicit(&tally->workers[i].disagreements,
		                            memory_order_relaxed);
	return sum;
}

double tally_served(const struct tally_totals *totals)
{
	return totals->owed > 0 ? (double)totals->served / (double)totals->owed : 0;
}

struct tally_totals tally_total(const struct tally *tally)
{
	struct tally_totals totals = tally->totals;
	double parts = (double)totals.windows * tally->config.keys;

	totals.disagreements = disagreements(tally);
	if (totals.admitted_max > tally->config.limit)
		totals.overshoot = totals.admitted_max - tally->config.limit;
	if (parts > 0)
		totals.undershoot_mean = tally->undershoot_sum / parts;
	return totals;
}

struct tally_window tally_look(const struct tally *tally, uint64_t now_us)
{
	uint64_t number = tally_number(tally, now_us);
	struct tally_window window = { .number = number - tally->first + 1 };

	if (number - oldest(tally) >= tally->config.ring)
		return window;
	window.asked =
	    atomic_load_explicit(asked_counter(tally, number), memory_order_relaxed);
	for (uint32_t key = 0; key < tally->config.keys; key++)
		add_key(&window, atomic_load_explicit(counter(tally, number, key),
		                                      memory_order_relaxed));
	return window;
}

size_t tally_history(const struct tally *tally, struct tally_window *ret_windows,
                     size_t max)
{
	uint64_t end = tally->history_count;
	uint64_t begin = end < TALLY_HISTORY ? 0 : end - TALLY_HISTORY;

	if (end - begin > max)
		begin = end - max;
	for (uint64_t i = begin; i < end; i++)
		ret_windows[i - begin] = tally->history[i % TALLY_HISTORY];
	return (size_t)(end - begin);
}
