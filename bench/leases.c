/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leases.c -- what does a call cost that this node answers from what it was lent?
 *
 * Through gale.h, held and by name, from credit and from memory of a denial.  Leases are
 * as large as they come, so that a million asks share a round trip.  Credit that nobody
 * takes would go back after a while, and a row would then measure how it is fetched
 * again; these limiters carry over, so that it stays.  What had to be fetched is waited
 * for within the row, and told as "missed".
 *
 * "own now" rows tick once in a thousand asks; the others read the clock for each.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include <gale/gale.h>

#include "bench/bench.h"
#include "bench/keys.h"

#define MUCH (UINT64_C(1) << 50)
#define LEASE 1000000
#define NODE_KEYS (1 << 20)
#define AHEAD 16 /* asks in one call of gale_ask_many */
#define BEFORE 8 /* asks between a prefetch and its own */
#define MISSES 2001
#define PATIENCE GALE_SECONDS(10)

/* Keys under one limiter, each with its lease or its denial. */
struct crowd {
	uint64_t count;
	uint64_t limit; /* of each; 1: all are denied from then on */
	enum gale_mode mode;

	/* Made by prepare. */
	struct gale_runtime *runtime;
	struct gale_store *store;
	struct gale_limiter *limiter;
};

/* How a row asks. */
struct way {
	struct crowd *crowd;
	bool ticks;
};

static void must(enum gale_err err)
{
	bench_expect(err == GALE_ERR_OK, gale_err_text(err));
}

static enum gale_verdict usual_of(const struct crowd *crowd)
{
	return crowd->limit == 1 ? GALE_DENY : GALE_ALLOW;
}

/* ---- Setting up ------------------------------------------------------------------ */

static void open_limiter(struct crowd *crowd)
{
	struct gale_config config = { .max_keys = NODE_KEYS };
	struct gale_store_config store = { .max_keys = UINT64_C(1) << 31 };
	struct gale_limiter_config limiter = {
		.name = "bench",
		.rule = gale_fixed_window(crowd->limit, GALE_SPAN_MAX_US),
		.mode = crowd->mode,
	};

	if (crowd->mode == GALE_LEASED)
		limiter.lease = (struct gale_leasing){ .sizing = GALE_SIZE_FIXED,
			                               .batch = LEASE,
			                               .patience_us = PATIENCE,
			                               .carry_over = crowd->limit > 1 };
	must(gale_runtime_open(&config, &crowd->runtime));
	must(gale_store_open(crowd->runtime, &store, &crowd->store));
	limiter.store = crowd->store;
	must(gale_limiter_open(crowd->runtime, &limiter, &crowd->limiter));
}

/* Waits until something is answered. */
static void wait_for_some(struct gale_seat *seat)
{
	struct pollfd ready = { .fd = gale_seat_fd(seat), .events = POLLIN };

	bench_expect(poll(&ready, 1, 10000) == 1, "answers");
}

static uint64_t fetch(struct gale_seat *seat)
{
	struct gale_completion done[64];
	uint64_t count = 0, some;

	do {
		some = gale_seat_completions(seat, done, 64);
		for (uint64_t i = 0; i < some; i++)
			bench_expect(done[i].answer.why != GALE_WHY_BUSY, "room");
		count += some;
	} while (some == 64);
	return count;
}

/* Asks once for every key, a hundred under way at a time. */
static void ask_all(struct crowd *crowd, struct gale_seat *seat)
{
	uint64_t pending = 0;

	for (uint64_t id = 0; id < crowd->count; id++) {
		struct key key = key_of(id);
		struct gale_answer answer =
		    gale_ask(seat, crowd->limiter, &key, sizeof(key), 1, NULL);

		bench_expect(answer.why != GALE_WHY_BUSY, "room for a new key");
		pending += answer.verdict == GALE_PENDING;
		while (pending > 100 || (pending > 0 && id + 1 == crowd->count)) {
			wait_for_some(seat);
			pending -= fetch(seat);
		}
	}
}

static void prepare_crowd(struct crowd *crowd)
{
	struct gale_seat *seat;

	if (crowd->limiter)
		return;
	crowd->count = keys_in(crowd->count);
	open_limiter(crowd);
	must(gale_join(crowd->runtime, &seat));
	ask_all(crowd, seat);
	if (crowd->limit == 1)
		ask_all(crowd, seat); /* the first was allowed */
	gale_leave(seat);
}

static void prepare(void *arg)
{
	prepare_crowd(((struct way *)arg)->crowd);
}

/* ---- Asking ---------------------------------------------------------------------- */

/* One thread in a row. */
struct asker {
	struct way *way;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	enum gale_verdict usual;
	uint64_t missed;
};

static struct asker asker_of(struct bench *b)
{
	struct way *way = bench_arg(b);
	struct asker asker = { .way = way,
		               .limiter = way->crowd->limiter,
		               .usual = usual_of(way->crowd) };

	must(gale_join(way->crowd->runtime, &asker.seat));
	if (way->ticks)
		gale_tick(asker.seat);
	return asker;
}

static void asker_done(struct asker *asker, struct bench *b)
{
	gale_leave(asker->seat);
	bench_count(b, "missed", asker->missed);
}

/* A turn of a loop: the clock is read once for all of its asks. */
static uint64_t turn(struct asker *asker, struct bench *b)
{
	uint64_t n = bench_batch(b);

	if (asker->way->ticks)
		gale_tick(asker->seat);
	return n;
}

/* Of all answers, the few that are not as usual. */
static __attribute__((noinline)) void note(struct asker *asker,
                                           const struct gale_answer *answer)
{
	bench_expect(answer->verdict == GALE_PENDING, "an ask has the wrong verdict");
	asker->missed++;
	do
		wait_for_some(asker->seat);
	while (fetch(asker->seat) == 0);
}

static void run_named(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct picker picker = picker_of(b, asker.way->crowd->count);

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick(&picker));
			struct gale_answer answer = gale_ask(
			    asker.seat, asker.limiter, &key, sizeof(key), 1, NULL);

			if (answer.verdict != asker.usual)
				note(&asker, &answer);
		}
	asker_done(&asker, b);
}

/* As a server has it that knows of each ask a while before: here, eight asks. */
static void run_ahead(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct picker picker = picker_of(b, asker.way->crowd->count);
	struct key keys[BEFORE];

	for (uint64_t i = 0; i < BEFORE; i++)
		keys[i] = key_of(pick(&picker));
	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		for (; n > 0; n--) {
			struct key key = keys[n % BEFORE];
			struct gale_answer answer;

			keys[n % BEFORE] = key_of(pick(&picker));
			gale_prefetch(asker.seat, asker.limiter, &keys[n % BEFORE],
			              sizeof(key));
			answer = gale_ask(asker.seat, asker.limiter, &key, sizeof(key),
			                  1, NULL);
			if (answer.verdict != asker.usual)
				note(&asker, &answer);
		}
	asker_done(&asker, b);
}

/* Each thread a key of its own: what two threads can do here that share nothing. */
static void run_apart(struct bench *b)
{
	struct asker asker = asker_of(b);
	uint64_t id = (uint64_t)bench_thread(b);

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(id);
			struct gale_answer answer = gale_ask(
			    asker.seat, asker.limiter, &key, sizeof(key), 1, NULL);

			if (answer.verdict != asker.usual)
				note(&asker, &answer);
		}
	asker_done(&asker, b);
}

static void run_waiting(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct picker picker = picker_of(b, asker.way->crowd->count);

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick(&picker));
			struct gale_answer answer = gale_wait(
			    asker.seat, asker.limiter, &key, sizeof(key), 1, PATIENCE);

			bench_expect(answer.verdict == asker.usual, "a verdict");
		}
	asker_done(&asker, b);
}

static void run_held(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct key name = key_of(0);
	struct gale_key *key;

	must(gale_key_open(asker.seat, asker.limiter, &name, sizeof(name), &key));
	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct gale_answer answer = gale_ask_key(key, 1, NULL);

			if (answer.verdict != asker.usual)
				note(&asker, &answer);
		}
	gale_key_close(key);
	asker_done(&asker, b);
}

/* As many questions as a turn has; filling them in is a part of asking. */
static void run_many(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct picker picker = picker_of(b, asker.way->crowd->count);
	struct gale_answer answers[AHEAD];
	struct gale_question questions[AHEAD];
	struct key keys[AHEAD];

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		for (; n > 0; n -= AHEAD) {
			for (int i = 0; i < AHEAD; i++) {
				keys[i] = key_of(pick(&picker));
				questions[i] =
				    (struct gale_question){ .key = &keys[i],
					                    .key_len = sizeof(keys[i]),
					                    .cost = 1 };
			}
			gale_ask_many(asker.seat, asker.limiter, questions, AHEAD,
			              answers);
			for (int i = 0; i < AHEAD; i++)
				if (answers[i].verdict != asker.usual)
					note(&asker, &answers[i]);
		}
	asker_done(&asker, b);
}

/* ---- A miss ---------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A key that nobody has asked for yet: to the shard, to the store, and back. */
static double miss(void *arg)
{
	static uint64_t took[MISSES];
	struct crowd crowd = { .limit = MUCH, .mode = GALE_LEASED };
	struct gale_seat *seat;

	(void)arg;
	open_limiter(&crowd);
	must(gale_join(crowd.runtime, &seat));
	for (uint64_t i = 0; i < MISSES; i++) {
		struct key key = key_of(i);
		uint64_t begin = now_ns();
		struct gale_answer answer =
		    gale_wait(seat, crowd.limiter, &key, sizeof(key), 1, PATIENCE);

		took[i] = now_ns() - begin;
		bench_expect(answer.verdict == GALE_ALLOW, "a new key");
	}
	qsort(took, MISSES, sizeof(took[0]), compare);
	return (double)took[MISSES / 2] / 1000;
}

/* ---- The rows -------------------------------------------------------------------- */

#define LENT(keys)                                                                     \
	{                                                                              \
		.count = keys, .limit = MUCH, .mode = GALE_LEASED                      \
	}
#define SPENT(keys)                                                                    \
	{                                                                              \
		.count = keys, .limit = 1, .mode = GALE_LEASED                         \
	}
#define CACHED(keys)                                                                   \
	{                                                                              \
		.count = keys, .limit = 1, .mode = GALE_CACHED_DENY                    \
	}

static struct crowd one = LENT(1), one_held = LENT(1), one_of_two = LENT(1);
static struct crowd one_each = LENT(2);
static struct crowd one_held_of_two = LENT(1), one_spent = SPENT(1);
static struct crowd one_cached = CACHED(1);
static struct crowd thousand = LENT(1000), thousand_spent = SPENT(1000);
static struct crowd ten_thousand = LENT(10000);
static struct crowd million = LENT(1000000), million_spent = SPENT(1000000);

static void row(const char *name, void (*run)(struct bench *), struct crowd *crowd,
                bool ticks, const char *floor, double bar)
{
	struct way *way = malloc(sizeof(*way));

	bench_expect(way != NULL, "memory");
	*way = (struct way){ crowd, ticks };
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare,
	                               .arg = way,
	                               .floor = floor,
	                               .bar = bar });
}

/* Twice the throughput of one thread is half of its figure. */
static void two(const char *name, void (*run)(struct bench *), struct crowd *crowd,
                bool ticks, const char *floor, double bar)
{
	struct way *way = malloc(sizeof(*way));

	bench_expect(way != NULL, "memory");
	*way = (struct way){ crowd, ticks };
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare,
	                               .arg = way,
	                               .threads = 2,
	                               .floor = floor,
	                               .bar = bar });
}

static void add_allows(void)
{
	row("leases/held, own now", run_held, &one_held, true,
	    "floors/compare and swap", 1.5);
	row("leases/held", run_held, &one_held, false, "floors/rdtsc, compare and swap",
	    1.5);
	row("leases/1 key, own now", run_named, &one, true, "take/1 key", 1.5);
	row("leases/1 key", run_named, &one, false, "take/1 key, behind a call, rdtsc",
	    0);
	row("leases/1 key, gale_wait, own now", run_waiting, &one, true, "take/1 key",
	    0);
	row("leases/1 key, 16 at a time, own now", run_many, &one, true, "take/1 key",
	    0);
	row("leases/1,000 keys, own now", run_named, &thousand, true,
	    "take/1,000 keys, behind a call", 0);
	row("leases/1,000 keys, 16 at a time, own now", run_many, &thousand, true,
	    "take/16 at a time, 1,000 keys", 0);
	row("leases/10,000 keys, own now", run_named, &ten_thousand, true, NULL, 0);
	row("leases/1,000,000 keys, own now", run_named, &million, true,
	    "take/1,000,000 keys, behind a call", 0);
	row("leases/1,000,000 keys, prefetched 8 asks before, own now", run_ahead,
	    &million, true, "leases/1,000,000 keys, own now", 0.9);
	row("leases/1,000,000 keys", run_named, &million, false,
	    "leases/1,000,000 keys, own now", 0);
	row("leases/1,000,000 keys, 16 at a time, own now", run_many, &million, true,
	    "take/16 at a time, 1,000,000 keys", 1.3);
	row("leases/1,000,000 keys, 16 at a time", run_many, &million, false,
	    "leases/1,000,000 keys", 1 / 3.0);
}

static void add_denials(void)
{
	row("leases/held, denied, own now", run_held, &one_spent, true,
	    "leases/held, own now", 1);
	row("leases/1 key, denied, own now", run_named, &one_spent, true,
	    "leases/1 key, own now", 1);
	row("leases/1 key, strict but for denials, denied, own now", run_named,
	    &one_cached, true, "leases/1 key, own now", 1);
	row("leases/1,000 keys, denied, own now", run_named, &thousand_spent, true,
	    "leases/1,000 keys, own now", 1);
	row("leases/1,000,000 keys, denied, own now", run_named, &million_spent, true,
	    "leases/1,000,000 keys, own now", 1);
}

void ask_leases(void)
{
	add_allows();
	add_denials();
	two("leases/held, own now, two threads", run_held, &one_held_of_two, true,
	    "leases/held, own now", 1 / 1.8);
	two("leases/held, two threads", run_held, &one_held_of_two, false,
	    "leases/held", 1 / 1.8);
	two("leases/a key each, own now, two threads", run_apart, &one_each, true,
	    "leases/1 key, own now", 0);
	two("leases/1 key, own now, two threads", run_named, &one_of_two, true,
	    "leases/1 key, own now", 1 / 1.8);
	two("leases/1 key, two threads", run_named, &one_of_two, false, "leases/1 key",
	    1 / 1.8);
	bench_add_figure(&(struct bench_figure){
	    .name = "leases/a miss, there and back", .unit = "us", .measure = miss });
}
