/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * torture.c -- everything at once, for as long as you like.
 *
 *     torture [--seconds N] [--seed S]
 *
 * A round is two runtimes on one named store, and workers who ask, wait, look, reset,
 * cancel, leave and come back, and open and close limiters and stores of their own, all
 * on the same few keys.  One thread moves the clock.  At the end of the round one of the
 * runtimes is closed under their hands.
 *
 * Some keys are never reset, and their admissions are counted here, by window: never
 * more than the limit.  The count does not rely on the store: the clock shows another
 * part of a second in each window, so that an answer's reset_after_us tells in which
 * window it was decided, and that window must lie between those that the asker saw
 * before and after.  (What a late wait took is not known here, so a count may be low.)
 *
 * After each round all memory is back.  A round follows from the seed but for what the
 * scheduler adds.
 */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/clock.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"
#include "tests/support/arguments.h"
#include "tests/support/rules.h"

#define WORKERS 8
#define CLOCK WORKERS /* the number of the thread that moves it */
#define CLOSER (WORKERS + 1)
#define THREADS (WORKERS + 2)
#define RUNTIMES 2
#define COUNTED 3 /* keys of windows */
#define LOGGED 2  /* keys of a log that never expires within a round */
#define OTHERS 5  /* keys that anything may happen to, of each rule */
#define LIMIT 7
#define LOG_LIMIT 50
#define PERIOD GALE_SECONDS(1)
#define WINDOWS 4000
#define FIRST_WINDOW UINT64_C(1700000000)
#define KEYS (COUNTED + LOGGED + OTHERS * FIFTY_RULES - 1) /* room for all but one */
#define CALLS 1500 /* of each worker in a round */

static struct {
	_Atomic uint64_t calls;
	_Atomic uint64_t allowed;
	_Atomic uint64_t pending;
	_Atomic uint64_t late;
	_Atomic uint64_t closed;
	uint64_t rounds;
	uint64_t spent; /* windows of which nothing was left */
} tally;

struct house {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *counted;
	struct gale_limiter *logged;
	struct gale_limiter *others[FIFTY_RULES];
};

struct round {
	uint64_t seed;
	struct test_allocator allocator;
	struct test_clock clock;
	struct house houses[RUNTIMES];
	_Atomic uint64_t window; /* from FIRST_WINDOW */
	_Atomic uint64_t calls;
	_Atomic unsigned working;
	pthread_rwlock_t
	    opening;  /* nobody opens anything of a runtime that is closed */
	bool closing; /* the first runtime; under that lock */

	_Atomic uint32_t counts[COUNTED][WINDOWS];
	_Atomic uint32_t logs[LOGGED];
};

struct worker {
	struct round *round;
	struct house *house;
	struct chance chance;
	struct gale_seat *seat;
	bool stop;
};

/* ---- Time ------------------------------------------------------------------------ */

/* Within each of up to PERIOD windows the clock shows another part of the period. */
static uint64_t instant_of(uint64_t window)
{
	return (FIRST_WINDOW + window) * PERIOD + window;
}

static uint64_t window_of(const struct gale_answer *answer)
{
	return PERIOD - answer->reset_after_us;
}

static void move_clock(struct round *round)
{
	uint64_t window = 0;

	while (load_relaxed(&round->working) > 0) {
		uint64_t due = (window + 1) * (COUNTED + LOGGED + 1) * LIMIT * 2;

		if (load_relaxed(&round->calls) < due || window + 1 == WINDOWS) {
			sched_yield();
			continue;
		}
		window++;
		/* First the word: an asker may see a window too early, never too late. */
		store_release(&round->window, window);
		test_clock_set(&round->clock, instant_of(window));
	}
}

/* ---- Counting -------------------------------------------------------------------- */

_Noreturn static void fail(const struct round *round, const char *what)
{
	fprintf(stderr, "FAILED: %s; again: torture --seed %llu\n", what,
	        (unsigned long long)round->seed);
	abort();
}

static void count_window(struct round *round, uint64_t key, uint64_t seen_before,
                         const struct gale_answer *answer)
{
	uint64_t seen_after = load_acquire(&round->window);
	uint64_t window = window_of(answer);

	/* The word may have been ahead of the clock, by one. */
	if (window + 1 < seen_before || window > seen_after)
		fail(round, "decided at a time that it was not");
	if (add_relaxed(&round->counts[key][window], 1) >= LIMIT)
		fail(round, "more than the limit in one window");
}

static void count_log(struct round *round, uint64_t key)
{
	if (add_relaxed(&round->logs[key], 1) >= LOG_LIMIT)
		fail(round, "more than the limit in a log");
}

/* What an ask was about; fits into its tag. */
struct asked {
	uint64_t key; /* counted, then logged, then any other */
	uint64_t seen_before;
};

static void *tag_of(struct asked asked)
{
	return (void *)(uintptr_t)(asked.seen_before << 8 | asked.key);
}

static struct asked asked_of(const void *tag)
{
	return (struct asked){ (uintptr_t)tag & 0xff, (uintptr_t)tag >> 8 };
}

static void judge(struct worker *w, struct asked asked,
                  const struct gale_answer *answer)
{
	if (answer->why == GALE_WHY_LATE)
		add_relaxed(&tally.late, 1);
	if (answer->why == GALE_WHY_CLOSED) {
		add_relaxed(&tally.closed, 1);
		w->stop = true;
	}
	if (answer->verdict != GALE_ALLOW)
		return;
	must(answer->why == GALE_WHY_RULE && answer->remaining <= answer->limit);
	add_relaxed(&tally.allowed, 1);
	if (asked.key < COUNTED)
		count_window(w->round, asked.key, asked.seen_before, answer);
	else if (asked.key < COUNTED + LOGGED)
		count_log(w->round, asked.key - COUNTED);
}

/* ---- What a worker does ---------------------------------------------------------- */

static void fetch(struct worker *w)
{
	struct gale_completion completions[4];
	size_t count;

	do {
		count = gale_seat_completions(w->seat, completions, 4);
		for (size_t i = 0; i < count; i++)
			judge(w, asked_of(completions[i].tag), &completions[i].answer);
	} while (count == 4);
}

static struct gale_limiter *limiter_for(struct worker *w, uint64_t key)
{
	if (key < COUNTED)
		return w->house->counted;
	if (key < COUNTED + LOGGED)
		return w->house->logged;
	return w->house->others[chance_below(&w->chance, FIFTY_RULES)];
}

static struct asked choose(struct worker *w)
{
	uint64_t keys = COUNTED + LOGGED + OTHERS;

	return (struct asked){ .key = chance_below(&w->chance, keys),
		               .seen_before = load_acquire(&w->round->window) };
}

static void ask(struct worker *w)
{
	struct asked asked = choose(w);
	uint8_t key = (uint8_t)asked.key;
	struct gale_answer answer =
	    gale_ask(w->seat, limiter_for(w, asked.key), &key, 1, 1, tag_of(asked));

	if (answer.verdict == GALE_PENDING)
		add_relaxed(&tally.pending, 1);
	else
		judge(w, asked, &answer);
}

static uint64_t patience(struct worker *w)
{
	static const uint64_t spans[] = {
		0, 1, 20, 1000, GALE_SECONDS(30), UINT64_MAX
	};

	return spans[chance_below(&w->chance, sizeof(spans) / sizeof(spans[0]))];
}

static void wait_for_it(struct worker *w)
{
	struct asked asked = choose(w);
	uint8_t key = (uint8_t)asked.key;
	struct gale_answer answer =
	    gale_wait(w->seat, limiter_for(w, asked.key), &key, 1, 1, patience(w));

	must(answer.verdict != GALE_PENDING);
	judge(w, asked, &answer);
}

static void look(struct worker *w)
{
	struct asked asked = choose(w);
	uint8_t key = (uint8_t)asked.key;
	struct gale_outlook outlook;
	struct gale_answer answer;
	struct gale_counts counts;

	(void)gale_peek(w->seat, limiter_for(w, asked.key), &key, 1, patience(w),
	                &answer);
	(void)gale_forecast(w->seat, limiter_for(w, asked.key), &key, 1, 2, patience(w),
	                    &outlook);
	(void)gale_store_stats(w->house->store, &counts);
}

/* Only of keys that nobody counts. */
static void correct(struct worker *w)
{
	uint8_t key = (uint8_t)(COUNTED + LOGGED + chance_below(&w->chance, OTHERS));
	struct gale_limiter *limiter = limiter_for(w, key);
	struct gale_answer answer =
	    gale_wait(w->seat, limiter, &key, 1, 1, patience(w));

	if (chance_one_in(&w->chance, 2))
		(void)gale_reset(w->seat, limiter, &key, 1, patience(w));
	else
		(void)gale_cancel(w->seat, limiter, &key, 1, 1, patience(w), &answer);
}

/* May something be opened of the worker's runtime?  Then nobody closes it until
 * end_opening. */
static bool begin_opening(struct worker *w)
{
	struct round *round = w->round;

	must(pthread_rwlock_rdlock(&round->opening) == 0);
	if (!round->closing || w->house != &round->houses[0])
		return true;
	must(pthread_rwlock_unlock(&round->opening) == 0);
	w->stop = true;
	return false;
}

static void end_opening(struct worker *w)
{
	must(pthread_rwlock_unlock(&w->round->opening) == 0);
}

/* Often with asks under way. */
static void leave_and_come_back(struct worker *w)
{
	if (!begin_opening(w))
		return;
	gale_leave(w->seat);
	must(gale_join(w->house->runtime, &w->seat) == GALE_ERR_OK);
	end_opening(w);
}

static struct gale_limiter *open_own(struct worker *w, struct gale_store *store)
{
	struct gale_limiter_config config = {
		.name = "counted",
		.rule = gale_fixed_window(LIMIT, PERIOD),
		.store = store ? store : w->house->store,
	};
	struct gale_limiter *limiter;

	must(gale_limiter_open(w->house->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static struct gale_store *open_store(struct worker *w, const char *url)
{
	struct gale_store_config config = { .url = url };
	struct gale_store *store;

	must(gale_store_open(w->house->runtime, &config, &store) == GALE_ERR_OK);
	return store;
}

/* Another limiter of the same name on the same store is the same limit. */
static void ask_through_own_handles(struct worker *w)
{
	struct gale_store *store = NULL;
	struct gale_limiter *limiter;
	struct asked asked = { .key = chance_below(&w->chance, COUNTED) };
	uint8_t key = (uint8_t)asked.key;
	struct gale_answer answer;

	if (!begin_opening(w))
		return;
	if (chance_one_in(&w->chance, 2))
		store = open_store(w, "memory:torture");
	limiter = open_own(w, store);
	gale_store_close(store);
	end_opening(w);
	asked.seen_before = load_acquire(&w->round->window);
	answer = gale_ask(w->seat, limiter, &key, 1, 1, tag_of(asked));
	gale_limiter_close(limiter); /* also while the answer is under way */
	if (answer.verdict != GALE_PENDING)
		judge(w, asked, &answer);
}

/* Names come and go, and with the last of them the store. */
static void open_a_store_for_nothing(struct worker *w)
{
	static const char *const urls[] = { "memory:", "memory:one", "memory:two" };
	struct gale_store *store;

	if (!begin_opening(w))
		return;
	store = open_store(w, urls[chance_below(&w->chance, 3)]);
	end_opening(w);
	gale_store_close(store);
}

static void do_something(struct worker *w)
{
	switch (chance_below(&w->chance, 64)) {
	case 0:
		leave_and_come_back(w);
		break;
	case 1:
		ask_through_own_handles(w);
		break;
	case 2:
		open_a_store_for_nothing(w);
		break;
	case 3:
	case 4:
	case 5:
		correct(w);
		break;
	case 6:
	case 7:
	case 8:
		look(w);
		break;
	case 9:
	case 10:
	case 11:
	case 12:
		wait_for_it(w);
		break;
	default:
		ask(w);
		break;
	}
}

static void work(struct round *round, unsigned who)
{
	struct worker w = {
		.round = round,
		.house = &round->houses[who % RUNTIMES],
		.chance = { round->seed * THREADS + who },
	};

	if (begin_opening(&w)) {
		must(gale_join(w.house->runtime, &w.seat) == GALE_ERR_OK);
		end_opening(&w);
	}
	for (int i = 0; i < CALLS && !w.stop; i++) {
		do_something(&w);
		if (chance_one_in(&w.chance, 2))
			fetch(&w);
		add_relaxed(&tally.calls, 1);
		add_relaxed(&round->calls, 1);
	}
	gale_leave(w.seat); /* with whatever is under way */
	sub_relaxed(&round->working, 1);
}

/* ---- Rounds ---------------------------------------------------------------------- */

static void close_first_runtime(struct round *round)
{
	uint64_t when = WORKERS * CALLS / 2;

	while (load_relaxed(&round->calls) < when && load_relaxed(&round->working) > 0)
		sched_yield();
	must(pthread_rwlock_wrlock(&round->opening) == 0);
	round->closing = true;
	must(pthread_rwlock_unlock(&round->opening) == 0);
	gale_runtime_close(round->houses[0].runtime);
}

static void thread_main(void *arg, unsigned who)
{
	struct round *round = arg;

	if (who == CLOCK)
		move_clock(round);
	else if (who == CLOSER)
		close_first_runtime(round);
	else
		work(round, who);
}

static struct gale_limiter *open_limiter(const struct house *house, const char *name,
                                         struct gale_rule rule)
{
	struct gale_limiter_config config = { .name = name,
		                              .rule = rule,
		                              .store = house->store };
	struct gale_limiter *limiter;

	must(gale_limiter_open(house->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

static void open_house(struct round *round, struct house *house, unsigned shards)
{
	struct gale_config config = { .shards = shards,
		                      .pending_max = 3,
		                      .allocator = &round->allocator.allocator,
		                      .clock = &round->clock.clock };
	struct gale_store_config store = { .url = "memory:torture", .max_keys = KEYS };

	must(gale_runtime_open(&config, &house->runtime) == GALE_ERR_OK);
	must(gale_store_open(house->runtime, &store, &house->store) == GALE_ERR_OK);
	house->counted =
	    open_limiter(house, "counted", gale_fixed_window(LIMIT, PERIOD));
	house->logged =
	    open_limiter(house, "logged", gale_sliding_log(LOG_LIMIT, GALE_DAYS(1)));
	for (unsigned i = 0; i < FIFTY_RULES; i++) {
		struct named_rule named = fifty_rule(i);

		house->others[i] = open_limiter(house, named.name, named.rule);
	}
}

static void close_house(const struct house *house, bool store_first)
{
	if (store_first)
		gale_store_close(house->store);
	gale_limiter_close(house->counted);
	gale_limiter_close(house->logged);
	for (unsigned i = 0; i < FIFTY_RULES; i++)
		gale_limiter_close(house->others[i]);
	if (!store_first)
		gale_store_close(house->store);
}

static void count_spent(const struct round *round)
{
	for (unsigned key = 0; key < COUNTED; key++)
		for (unsigned window = 0; window < WINDOWS; window++)
			tally.spent +=
			    load_relaxed(&round->counts[key][window]) == LIMIT;
}

static void run_round(uint64_t seed)
{
	static struct round round;
	struct chance chance = { seed };
	bool runtime_first;

	memset(&round, 0, sizeof(round));
	round.seed = seed;
	test_allocator_init(&round.allocator);
	test_clock_init(&round.clock, instant_of(0));
	round.clock.yield_each = 16; /* under the lock, so that others find it busy */
	atomic_init(&round.working, WORKERS);
	must(pthread_rwlock_init(&round.opening, NULL) == 0);
	for (unsigned i = 0; i < RUNTIMES; i++)
		open_house(&round, &round.houses[i],
		           (unsigned)chance_between(&chance, 1, 3));
	crew_run(THREADS, thread_main, &round);
	close_house(&round.houses[0], chance_one_in(&chance, 2));
	runtime_first = chance_one_in(&chance, 2);
	if (runtime_first)
		gale_runtime_close(round.houses[1].runtime);
	close_house(&round.houses[1], chance_one_in(&chance, 2));
	if (!runtime_first)
		gale_runtime_close(round.houses[1].runtime);
	must(pthread_rwlock_destroy(&round.opening) == 0);
	must(test_allocator_is_balanced(&round.allocator));
	count_spent(&round);
	tally.rounds++;
}

static int run(uint64_t seconds, uint64_t seed)
{
	uint64_t end = patience_now_ns() + seconds * 1000000000;

	do
		run_round(seed++);
	while (patience_now_ns() < end);
	printf("%llu rounds: %llu calls, %llu allowed, %llu pending, %llu late, %llu "
	       "closed, "
	       "%llu windows spent\n",
	       (unsigned long long)tally.rounds, (unsigned long long)tally.calls,
	       (unsigned long long)tally.allowed, (unsigned long long)tally.pending,
	       (unsigned long long)tally.late, (unsigned long long)tally.closed,
	       (unsigned long long)tally.spent);
	if (tally.allowed > 0 && tally.pending > 0 && tally.spent > 0)
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seconds = 10, seed = 1;
	const struct argument arguments[] = {
		{ "--seconds", &seconds },
		{ "--seed", &seed },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	alarm((unsigned)seconds + 120); /* a round that hangs is ended */
	return run(seconds, seed);
}
