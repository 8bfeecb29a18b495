/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lease_torture.c -- leases under real time, real threads and too little room.
 *
 *     lease_torture [--seconds N] [--seed S] [--barriers 0]
 *
 * A round is two nodes on one named store, with windows of 20 to 50 ms, and workers who
 * ask, ask for many, hold keys, tick, reset, leave and come back, and open limiters and
 * keys of their own.  A few keys are hot; many more than a node may know come and go, so
 * that leases are evicted all the time.  Halfway one node is closed under their hands,
 * and another is opened in its place at once.
 *
 * What is counted here: an admission lies between two readings of the clock, one before
 * it was asked for and one after it was answered.  If both show the same window of the
 * store, it is of that window; the others are left out.  No key that is never reset has
 * more than its limit in any window.                         (L1, CREDIT-1, PURSE-1)
 * Of a pacer no place is given to two.                            (BLOCK-1, BLOCK-2)
 *
 * After each round all memory is back.
 *
 * Without barriers the kernel refuses to pass them: readers fence themselves, and no key
 * has cells.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gale/gale.h>

#include "runtime/atomic.h"
#include "runtime/clock.h"
#include "sim/random.h"
#include "sim/allocator.h"
#include "tests/support/crew.h"
#include "tests/support/arguments.h"
#include "tests/support/must.h"
#include "tests/support/sandbox.h"

#define WORKERS 6
#define THREADS (WORKERS + 1) /* and one who closes */
#define NODES 2
#define HOUSES (NODES + 1) /* one is opened in the place of another */
#define HOT 2
#define POOL 60 /* asked for by two limiters: more than a node may know */
#define COUNTED (HOT + POOL)
#define LOOSE 12 /* keys that may be reset, and are not counted */
#define KEYS (COUNTED + LOOSE)
#define NODE_KEYS 24
#define NODE_KEYS_MORE 110 /* so many that the table grows */
#define HOT_LIMIT 30000
#define ROW 300 /* asks in a row */
#define POOL_LIMIT 7
#define ROUND_NS UINT64_C(700000000)
#define WINDOWS 4096
#define PLACES (1 << 20)
#define PLACE_US 50
#define MANY 24
#define HELD 2

enum name { OF_HOT, OF_POOL, OF_POOL_TOO, OF_LOOSE, OF_METER, OF_PACER, NAMES };

static struct {
	_Atomic uint64_t calls;
	_Atomic uint64_t allowed;
	_Atomic uint64_t counted;
	_Atomic uint64_t refused;
	_Atomic uint64_t pending;
	_Atomic uint64_t closed;
	_Atomic uint64_t placed;
	uint64_t rounds;
	uint64_t spent; /* windows of which nothing was left */
	uint64_t evicted;
	uint64_t cells;
} tally;

/* A node, and what has been opened from it. */
struct house {
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiters[NAMES];
};

struct round {
	struct gale_clock clock; /* first */
	struct test_allocator allocator;
	uint64_t seed;
	uint64_t period_us;
	uint64_t first_window;
	uint64_t ends_ns;
	struct house houses[HOUSES];
	pthread_rwlock_t opening; /* nobody opens anything of a node that is closed */
	unsigned now_at[NODES];   /* which house a node lives in; under that lock */
	_Atomic uint32_t counts[COUNTED][WINDOWS];
	_Atomic uint8_t places[PLACES];
};

struct worker {
	struct round *round;
	struct chance chance;
	unsigned node;
	struct house *house;
	struct gale_seat *seat;
	bool ticks;
	uint64_t ticked_us; /* the clock before the last tick; 0: it has not ticked */
	struct held {
		struct gale_key *key;
		unsigned of;
	} held[HELD];
	bool is_out; /* its node was closed */
};

/* ---- Time ------------------------------------------------------------------------ */

static uint64_t boot_now_ns(struct gale_clock *self)
{
	struct timespec now;

	(void)self;
	must(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t store_now_us(struct gale_clock *self)
{
	return GALE_HOURS(472222) + boot_now_ns(self) / 1000;
}

static uint64_t now_us(struct round *round)
{
	return store_now_us(&round->clock);
}

/* The latest instant of which the worker's next ask is surely not earlier. */
static uint64_t before_asking(const struct worker *w)
{
	return w->ticked_us ? w->ticked_us : now_us(w->round);
}

/* ---- Counting -------------------------------------------------------------------- */

_Noreturn static void fail(const struct round *round, const char *what)
{
	fprintf(stderr, "FAILED: %s; again: lease_torture --seed %llu\n", what,
	        (unsigned long long)round->seed);
	abort();
}

static uint32_t limit_of(unsigned key)
{
	return key < HOT ? HOT_LIMIT : POOL_LIMIT;
}

static void count_calls(struct round *round, unsigned key, uint64_t before_us,
                        uint32_t calls)
{
	uint64_t window = before_us / round->period_us;

	if (window != now_us(round) / round->period_us)
		return; /* it turned meanwhile */
	window -= round->first_window;
	if (window >= WINDOWS)
		return;
	add_relaxed(&tally.counted, calls);
	if (add_relaxed(&round->counts[key][window], calls) + calls > limit_of(key))
		fail(round, "more than the limit in one window");
}

/* Places are PLACE_US apart, so no two have the same quotient. */
static void count_place(struct round *round, const struct gale_slot *slot)
{
	uint64_t place = (slot->us - round->first_window * round->period_us) / PLACE_US;

	if (slot->us == 0 || place >= PLACES)
		return;
	add_relaxed(&tally.placed, 1);
	if (swap_relaxed(&round->places[place], 1) != 0)
		fail(round, "one place for two"); /* BLOCK-1, BLOCK-2 */
}

static void judge(struct worker *w, unsigned key, uint64_t before_us,
                  const struct gale_answer *answer)
{
	add_relaxed(&tally.calls, 1);
	if (answer->why == GALE_WHY_CLOSED) {
		add_relaxed(&tally.closed, 1);
		w->is_out = true;
	}
	if (answer->verdict == GALE_DENY && answer->why == GALE_WHY_SPENT)
		add_relaxed(&tally.refused, 1);
	if (answer->verdict == GALE_PENDING)
		add_relaxed(&tally.pending, 1);
	if (answer->verdict != GALE_ALLOW)
		return;
	add_relaxed(&tally.allowed, 1);
	if (key < COUNTED)
		count_calls(w->round, key, before_us, 1);
	else if (key == KEYS)
		count_place(w->round, &answer->slot);
}

/* ---- Keys ------------------------------------------------------------------------ */

struct key {
	unsigned which;
	size_t len;
	uint8_t bytes[48];
};

/* Three of four may be at hand, as both that are hot, and one is too long to be kept near; the
 * others are too short. */
static struct key key_of(unsigned which)
{
	static const size_t lengths[] = { 9, 16, 2, 40 };
	struct key key = { .which = which, .len = lengths[which % 4] };

	memset(key.bytes, 'k', key.len);
	key.bytes[0] = (uint8_t)which;
	return key;
}

static unsigned choose(struct worker *w)
{
	switch (chance_below(&w->chance, 8)) {
	case 0:
	case 1:
		return (unsigned)chance_between(&w->chance, HOT, COUNTED - 1);
	case 2:
		return (unsigned)chance_between(&w->chance, COUNTED, KEYS - 1);
	case 3:
		return KEYS; /* the pacer's one */
	default:
		return (unsigned)chance_below(&w->chance, HOT);
	}
}

static struct gale_limiter *limiter_for(struct worker *w, unsigned key)
{
	if (key == KEYS)
		return w->house->limiters[OF_PACER];
	if (key >= COUNTED)
		return w->house->limiters[key % 2 ? OF_LOOSE : OF_METER];
	if (key < HOT)
		return w->house->limiters[OF_HOT];
	/* Two of one name are the same limit. */
	return w->house->limiters[chance_one_in(&w->chance, 4) ? OF_POOL_TOO : OF_POOL];
}

/* ---- Asking ---------------------------------------------------------------------- */

static void *tag_of(struct worker *w, unsigned key, uint64_t before_us)
{
	uint64_t since = before_us - w->round->first_window * w->round->period_us;

	return (void *)(uintptr_t)(since << 8 | key);
}

static void fetch(struct worker *w)
{
	uint64_t first_us = w->round->first_window * w->round->period_us;
	struct gale_completion done[4];
	size_t count;

	do {
		count = gale_seat_completions(w->seat, done, 4);
		for (size_t i = 0; i < count; i++) {
			uintptr_t tag = (uintptr_t)done[i].tag;

			judge(w, tag & 0xff, first_us + (tag >> 8), &done[i].answer);
		}
	} while (count == 4);
}

static void ask_by(struct worker *w, struct gale_limiter *limiter, unsigned which)
{
	struct key key = key_of(which);
	uint64_t before_us = before_asking(w);
	struct gale_answer answer = gale_ask(w->seat, limiter, key.bytes, key.len, 1,
	                                     tag_of(w, which, before_us));

	judge(w, which, before_us, &answer);
}

static void ask(struct worker *w)
{
	unsigned which = choose(w);
	struct key key = key_of(which);

	gale_prefetch(w->seat, limiter_for(w, which), key.bytes, key.len);
	ask_by(w, limiter_for(w, which), which);
}

static void wait_for_it(struct worker *w)
{
	struct key key = key_of(choose(w));
	uint64_t before_us = before_asking(w);
	struct gale_answer answer =
	    gale_wait(w->seat, limiter_for(w, key.which), key.bytes, key.len, 1, 2000);

	must(answer.verdict != GALE_PENDING);
	judge(w, key.which, before_us, &answer);
}

static void ask_many(struct worker *w)
{
	bool hot = chance_one_in(&w->chance, 3);
	struct gale_question questions[MANY];
	struct gale_answer answers[MANY];
	struct key keys[MANY];
	uint64_t before_us = before_asking(w);

	for (unsigned i = 0; i < MANY; i++) {
		unsigned which =
		    hot ? (unsigned)chance_below(&w->chance, HOT)
			: (unsigned)chance_between(&w->chance, HOT, COUNTED - 1);

		keys[i] = key_of(which);
		questions[i] = (struct gale_question){ keys[i].bytes, keys[i].len, 1,
			                               tag_of(w, which, before_us) };
	}
	gale_ask_many(w->seat, w->house->limiters[hot ? OF_HOT : OF_POOL], questions,
	              MANY, answers);
	for (unsigned i = 0; i < MANY; i++)
		judge(w, keys[i].which, before_us, &answers[i]);
}

/* ---- Opening and closing --------------------------------------------------------- */

/* From here to end_opening nobody closes the node that the worker is at. */
static bool begin_opening(struct worker *w)
{
	struct round *round = w->round;

	must(pthread_rwlock_rdlock(&round->opening) == 0);
	if (w->house == &round->houses[round->now_at[w->node]])
		return true;
	must(pthread_rwlock_unlock(&round->opening) == 0);
	w->is_out = true;
	return false;
}

static void end_opening(struct worker *w)
{
	must(pthread_rwlock_unlock(&w->round->opening) == 0);
}

static void open_key(struct worker *w, struct held *held)
{
	struct key key = key_of(held == &w->held[0] ? w->node % HOT : choose(w));

	if (!begin_opening(w))
		return;
	held->of = key.which;
	must(gale_key_open(w->seat, limiter_for(w, key.which), key.bytes, key.len,
	                   &held->key) == GALE_ERR_OK);
	end_opening(w);
}

static void ask_held(struct worker *w)
{
	struct held *held = &w->held[chance_below(&w->chance, HELD)];
	uint64_t before_us;
	struct gale_answer answer;

	if (!held->key)
		open_key(w, held);
	for (int i = 0; held->key && i < 20; i++) {
		before_us = before_asking(w);
		answer = gale_ask_key(held->key, 1, tag_of(w, held->of, before_us));
		judge(w, held->of, before_us, &answer);
	}
}

/* So fast that others are at the same word at the same time: with a key that is held,
 * and no look at the clock between. */
static void ask_in_a_row(struct worker *w)
{
	struct held *held = &w->held[0];
	uint64_t before_us = before_asking(w);
	uint32_t allowed = 0, closed = 0;

	if (!held->key || held->of >= HOT) {
		ask_held(w);
		return;
	}
	for (int i = 0; i < ROW; i++) {
		struct gale_answer answer =
		    gale_ask_key(held->key, 1, tag_of(w, held->of, before_us));

		allowed += answer.verdict == GALE_ALLOW;
		closed += answer.why == GALE_WHY_CLOSED;
	}
	w->is_out |= closed > 0;
	add_relaxed(&tally.calls, ROW);
	add_relaxed(&tally.allowed, allowed);
	add_relaxed(&tally.closed, closed);
	if (allowed > 0)
		count_calls(w->round, held->of, before_us, allowed);
}

static void close_keys(struct worker *w)
{
	for (int i = 0; i < HELD; i++) {
		gale_key_close(w->held[i].key);
		w->held[i].key = NULL;
	}
}

/* The keys first, or the seat: both are right. */
static void leave(struct worker *w)
{
	if (chance_one_in(&w->chance, 2))
		close_keys(w);
	gale_leave(w->seat);
	close_keys(w);
	w->seat = NULL;
	w->ticked_us = 0;
}

/* To the house where the node now lives. */
static void join(struct worker *w)
{
	struct round *round = w->round;

	must(pthread_rwlock_rdlock(&round->opening) == 0);
	w->house = &round->houses[round->now_at[w->node]];
	must(gale_join(w->house->runtime, &w->seat) == GALE_ERR_OK);
	w->is_out = false;
	end_opening(w);
}

static struct gale_limiter *open_limiter(const struct house *house, enum name name,
                                         uint64_t period_us)
{
	const struct gale_limiter_config configs[NAMES] = {
		{ .name = "hot", .rule = gale_fixed_window(HOT_LIMIT, period_us) },
		{ .name = "pool", .rule = gale_fixed_window(POOL_LIMIT, period_us) },
		{ .name = "pool", .rule = gale_fixed_window(POOL_LIMIT, period_us) },
		{ .name = "loose", .rule = gale_fixed_window(50, period_us) },
		{ .name = "meter", .rule = gale_gcra(1000, GALE_SECONDS(1), 20) },
		{ .name = "pacer",
		  .rule = gale_pacer(1, PLACE_US, 4),
		  .lease = { .sizing = GALE_SIZE_FIXED, .batch = 40 } },
	};
	struct gale_limiter_config config = configs[name];
	struct gale_limiter *limiter;

	config.mode = GALE_LEASED;
	config.store = house->store;
	config.rule.max_wait_us = name == OF_PACER ? 4000 : 0;
	must(gale_limiter_open(house->runtime, &config, &limiter) == GALE_ERR_OK);
	return limiter;
}

/* One more of the same name, while it lasts. */
static void ask_by_own_limiter(struct worker *w)
{
	unsigned which = (unsigned)chance_below(&w->chance, COUNTED);
	struct gale_limiter *own;

	if (!begin_opening(w))
		return;
	own =
	    open_limiter(w->house, which < HOT ? OF_HOT : OF_POOL, w->round->period_us);
	end_opening(w);
	for (int i = 0; i < 10; i++)
		ask_by(w, own, which);
	gale_limiter_close(own); /* also while answers are under way */
}

static void reset(struct worker *w)
{
	struct key key =
	    key_of((unsigned)chance_between(&w->chance, COUNTED, KEYS - 1));

	(void)gale_reset(w->seat, limiter_for(w, key.which), key.bytes, key.len, 2000);
}

/* ---- What a worker does ---------------------------------------------------------- */

static void tick(struct worker *w)
{
	uint64_t before_us = now_us(w->round);

	if (!w->ticks)
		return;
	gale_tick(w->seat);
	w->ticked_us = before_us;
}

static void do_something(struct worker *w)
{
	switch (chance_below(&w->chance, 64)) {
	case 0:
		leave(w);
		join(w);
		break;
	case 1:
		ask_by_own_limiter(w);
		break;
	case 2:
		reset(w);
		break;
	case 3:
		close_keys(w); /* and soon they are opened again */
		break;
	case 4:
	case 5:
		wait_for_it(w);
		break;
	case 6:
	case 7:
	case 8:
	case 9:
		ask_held(w);
		break;
	case 12:
	case 13:
	case 14:
	case 15:
		ask_many(w);
		break;
	case 18:
	case 19:
	case 20:
	case 21:
	case 22:
	case 23:
		ask_in_a_row(w);
		break;
	default:
		ask(w);
		break;
	}
}

/* Who has seen that there is another house: the old one is closed soon. */
static void ask_until_closed(struct worker *w)
{
	w->is_out = false;
	while (!w->is_out)
		ask(w);
}

static void work(struct round *round, unsigned who)
{
	struct worker w = {
		.round = round,
		.chance = { round->seed * THREADS + who },
		.node = who % NODES,
		.ticks = who % 3 == 0,
	};

	join(&w);
	while (patience_now_ns() < round->ends_ns) {
		tick(&w);
		do_something(&w);
		if (!w.is_out)
			fetch(&w);
		if (w.is_out) {
			if (chance_one_in(&w.chance, 2))
				ask_until_closed(&w);
			leave(&w);
			join(&w);
		}
		if (chance_one_in(&w.chance, 16))
			sched_yield();
	}
	leave(&w);
}

/* ---- Rounds ---------------------------------------------------------------------- */

static void open_house(struct round *round, struct house *house, uint32_t node_keys)
{
	struct gale_config config = { .shards = 1 + (uint32_t)(round->seed % 2),
		                      .pending_max = 16,
		                      .max_keys = node_keys,
		                      .poll_us = (uint32_t)(round->seed % 3) * 20,
		                      .allocator = &round->allocator.allocator,
		                      .clock = &round->clock };
	struct gale_store_config store = { .url = "memory:lease-torture" };

	must(gale_runtime_open(&config, &house->runtime) == GALE_ERR_OK);
	must(gale_store_open(house->runtime, &store, &house->store) == GALE_ERR_OK);
	for (enum name name = 0; name < NAMES; name++)
		house->limiters[name] = open_limiter(house, name, round->period_us);
}

static void close_handles(const struct house *house, bool store_first)
{
	if (store_first)
		gale_store_close(house->store);
	for (enum name name = 0; name < NAMES; name++)
		gale_limiter_close(house->limiters[name]);
	if (!store_first)
		gale_store_close(house->store);
}

static uint64_t metric(struct gale_runtime *runtime, const char *name)
{
	struct gale_metric metrics[128];
	size_t count = gale_metrics(runtime, metrics, 128), i = 0;

	must(count <= 128);
	while (i < count && strcmp(metrics[i].name, name) != 0)
		i++;
	must(i < count);
	return metrics[i].value;
}

static void close_runtime(struct gale_runtime *runtime)
{
	tally.evicted += metric(runtime, "keys_evicted");
	tally.cells += metric(runtime, "keys_split_over_seats");
	gale_runtime_close(runtime);
}

/* Under the hands of those who ask, and at once there is another. */
static void close_and_reopen(struct round *round)
{
	const struct timespec nap = { .tv_nsec = (long)(ROUND_NS / 2) };
	struct gale_runtime *old;

	nanosleep(&nap, NULL);
	must(pthread_rwlock_wrlock(&round->opening) == 0);
	old = round->houses[0].runtime;
	open_house(round, &round->houses[NODES], NODE_KEYS_MORE);
	round->now_at[0] = NODES;
	must(pthread_rwlock_unlock(&round->opening) == 0);
	close_runtime(old);
}

static void thread_main(void *arg, unsigned who)
{
	if (who < WORKERS)
		work(arg, who);
	else
		close_and_reopen(arg);
}

static void open_round(struct round *round, uint64_t seed)
{
	memset(round, 0, sizeof(*round));
	round->clock = (struct gale_clock){ store_now_us, boot_now_ns };
	round->seed = seed;
	round->period_us = 20000 + seed * 7919 % 30000;
	round->first_window = now_us(round) / round->period_us;
	test_allocator_init(&round->allocator);
	must(pthread_rwlock_init(&round->opening, NULL) == 0);
	for (unsigned i = 0; i < NODES; i++) {
		open_house(round, &round->houses[i],
		           i == 0 ? NODE_KEYS : NODE_KEYS_MORE);
		round->now_at[i] = i;
	}
	round->ends_ns = patience_now_ns() + ROUND_NS;
}

static void close_round(struct round *round)
{
	struct chance chance = { round->seed };

	for (unsigned i = 0; i < HOUSES; i++) {
		bool runtime_first = chance_one_in(&chance, 2);

		if (i > 0 && runtime_first)
			close_runtime(round->houses[i].runtime);
		close_handles(&round->houses[i], chance_one_in(&chance, 2));
		if (i > 0 && !runtime_first)
			close_runtime(round->houses[i].runtime);
	}
	must(pthread_rwlock_destroy(&round->opening) == 0);
	must(test_allocator_is_balanced(&round->allocator));
}

static void count_spent(const struct round *round)
{
	for (unsigned key = 0; key < COUNTED; key++)
		for (unsigned window = 0; window < WINDOWS; window++)
			tally.spent +=
			    load_relaxed(&round->counts[key][window]) == limit_of(key);
}

static void run_round(uint64_t seed)
{
	static struct round round;

	open_round(&round, seed);
	crew_run(THREADS, thread_main, &round);
	close_round(&round);
	count_spent(&round);
	tally.rounds++;
}

static void say(const char *what, uint64_t count)
{
	printf(", %llu %s", (unsigned long long)count, what);
}

static int run(uint64_t seconds, uint64_t seed)
{
	uint64_t end = patience_now_ns() + seconds * 1000000000;

	do
		run_round(seed++);
	while (patience_now_ns() < end);
	printf("%llu rounds", (unsigned long long)tally.rounds);
	say("calls", tally.calls);
	say("allowed", tally.allowed);
	say("counted", tally.counted);
	say("refused", tally.refused);
	say("pending", tally.pending);
	say("closed", tally.closed);
	say("placed", tally.placed);
	say("windows spent", tally.spent);
	say("evicted", tally.evicted);
	say("keys with cells\n", tally.cells);
	if (tally.counted > 0 && tally.refused > 0 && tally.pending > 0 &&
	    tally.closed > 0 && tally.placed > 0 && tally.spent > 0 &&
	    tally.evicted > 0) /* one processor alone needs no cells */
		return 0;
	printf("FAILED: something never happened\n");
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seconds = 5, seed = 1, barriers = 1;
	const struct argument arguments[] = {
		{ "--seconds", &seconds },
		{ "--seed", &seed },
		{ "--barriers", &barriers },
		{ NULL, NULL },
	};

	arguments_read(argc, argv, arguments);
	if (!barriers)
		sandbox_without_barriers();
	alarm((unsigned)seconds + 120); /* a round that hangs is ended */
	return run(seconds, seed);
}
