/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leases.c -- what does a call cost that this node answers from what it was lent?
 *
 * Through gale.h, held and by name, from credit.  Units that had to be fetched are waited for
 * within the row, and told as "missed".  leases_turns.c asks what a denial costs, and what two
 * threads do.
 *
 * "own now" rows tick once in a thousand asks; the others read the clock for each.
 */
#include <stdlib.h>
#include <string.h>

#include <gale/gale.h>

#include "bench/bench.h"
#include "bench/crowd.h"
#include "bench/keys.h"
#include "runtime/clock.h"

#define AHEAD 16 /* asks in one call of gale_ask_many */
#define BEFORE 8 /* asks between a prefetch and its own */
#define MISSES 2001

/* How a row asks. */
struct way {
	struct crowd *crowd;
	bool ticks;
};

static void prepare(void *arg)
{
	crowd_prepare(((struct way *)arg)->crowd);
}

/* ---- Asking ---------------------------------------------------------------------- */

/* The asker of a row. */
struct asker {
	struct way *way;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	uint64_t missed;
	uint64_t pending;
};

static bool is_split(const struct crowd *crowd)
{
	struct gale_metric metrics[64];
	size_t count = gale_metrics(crowd->runtime, metrics, 64);

	for (size_t i = 0; i < count && i < 64; i++)
		if (strcmp(metrics[i].name, "keys_split_over_seats") == 0)
			return metrics[i].value > 0;
	bench_fail("no counter of split keys");
	return false;
}

/* One key that is asked for all the time has cells after a while (spec/decisions/0016): so it
 * has from the beginning. */
static void heat(struct crowd *crowd)
{
	struct gale_seat *seat;
	struct key key = key_of(0);

	crowd_must(gale_join(crowd->runtime, &seat));
	while (!bench_is_smoke() && !is_split(crowd)) {
		gale_tick(seat);
		for (int i = 0; i < 1000; i++)
			if (gale_ask(seat, crowd->limiter, &key, sizeof(key), 1, NULL)
			        .verdict == GALE_PENDING)
				(void)crowd_hear(seat);
	}
	gale_leave(seat);
}

static struct asker asker_of(struct bench *b)
{
	struct way *way = bench_arg(b);
	struct asker asker = { .way = way, .limiter = way->crowd->limiter };

	if (way->crowd->count == 1)
		heat(way->crowd);
	crowd_must(gale_join(way->crowd->runtime, &asker.seat));
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
static void note(struct asker *asker, const struct gale_answer *answer)
{
	bench_expect(answer->verdict == GALE_PENDING, "an ask has the wrong verdict");
	asker->missed++;
	asker->pending++;
}

/* All of them: of many that were asked for at once, more than one may be answered at once. */
static void hear(struct asker *asker)
{
	while (asker->pending > 0)
		asker->pending -= crowd_hear(asker->seat);
}

static __attribute__((noinline)) void note_one(struct asker *asker,
                                               const struct gale_answer *answer)
{
	note(asker, answer);
	hear(asker);
}

/* Each row has a loop of its own. */
static __attribute__((always_inline)) inline void
ask_named(struct bench *b, pick_fn *pick_one, struct picker picker)
{
	struct asker asker = asker_of(b);

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct key key = key_of(pick_one(&picker));
			struct gale_answer answer = gale_ask(
			    asker.seat, asker.limiter, &key, sizeof(key), 1, NULL);

			if (answer.verdict != GALE_ALLOW)
				note_one(&asker, &answer);
		}
	asker_done(&asker, b);
}

static uint64_t keys_of(const struct bench *b)
{
	const struct way *way = bench_arg(b);

	return way->crowd->count;
}

static void run_named(struct bench *b)
{
	ask_named(b, pick, picker_of(b, keys_of(b)));
}

static void run_named_in_crowd(struct bench *b)
{
	ask_named(b, pick_in_crowd, picker_in_crowd(keys_of(b)));
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
			if (answer.verdict != GALE_ALLOW)
				note_one(&asker, &answer);
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
			struct gale_answer answer =
			    gale_wait(asker.seat, asker.limiter, &key, sizeof(key), 1,
			              CROWD_PATIENCE);

			bench_expect(answer.verdict == GALE_ALLOW, "a verdict");
		}
	asker_done(&asker, b);
}

static void run_held(struct bench *b)
{
	struct asker asker = asker_of(b);
	struct key name = key_of(0);
	struct gale_key *key;

	crowd_must(gale_key_open(asker.seat, asker.limiter, &name, sizeof(name), &key));
	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		while (n-- > 0) {
			struct gale_answer answer = gale_ask_key(key, 1, NULL);

			if (answer.verdict != GALE_ALLOW)
				note_one(&asker, &answer);
		}
	gale_key_close(key);
	asker_done(&asker, b);
}

/* As many questions as a turn has; filling them in is a part of asking. */
static __attribute__((always_inline)) inline void
ask_many(struct bench *b, pick_fn *pick_one, struct picker picker)
{
	struct asker asker = asker_of(b);
	struct gale_answer answers[AHEAD];
	struct gale_question questions[AHEAD];
	struct key keys[AHEAD];

	for (uint64_t n; (n = turn(&asker, b)) > 0;)
		for (; n > 0; n -= AHEAD) {
			for (int i = 0; i < AHEAD; i++) {
				keys[i] = key_of(pick_one(&picker));
				questions[i] =
				    (struct gale_question){ .key = &keys[i],
					                    .key_len = sizeof(keys[i]),
					                    .cost = 1,
					                    .tag = NULL };
			}
			gale_ask_many(asker.seat, asker.limiter, questions, AHEAD,
			              answers);
			for (int i = 0; i < AHEAD; i++)
				if (answers[i].verdict != GALE_ALLOW)
					note(&asker, &answers[i]);
			if (asker.pending > 0)
				hear(&asker);
		}
	asker_done(&asker, b);
}

static void run_many(struct bench *b)
{
	ask_many(b, pick, picker_of(b, keys_of(b)));
}

static void run_many_in_crowd(struct bench *b)
{
	ask_many(b, pick_in_crowd, picker_in_crowd(keys_of(b)));
}

/* ---- A miss ---------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A key that was not asked for yet: to the shard, to the store, and back. */
static double miss(void *arg)
{
	static uint64_t took[MISSES];
	struct crowd crowd = { .limit = CROWD_MUCH, .mode = GALE_LEASED };
	struct gale_seat *seat;

	(void)arg;
	crowd_open(&crowd);
	crowd_must(gale_join(crowd.runtime, &seat));
	for (uint64_t i = 0; i < MISSES; i++) {
		struct key key = key_of(i);
		uint64_t begin = patience_now_ns();
		struct gale_answer answer = gale_wait(seat, crowd.limiter, &key,
		                                      sizeof(key), 1, CROWD_PATIENCE);

		took[i] = patience_now_ns() - begin;
		bench_expect(answer.verdict == GALE_ALLOW, "a new key");
	}
	qsort(took, MISSES, sizeof(took[0]), compare);
	return (double)took[MISSES / 2] / 1000;
}

/* ---- The rows -------------------------------------------------------------------- */

static struct crowd one = CROWD_LENT(1), one_held = CROWD_LENT(1);
static struct crowd thousand = CROWD_LENT(1000), ten_thousand = CROWD_LENT(10000);
static struct crowd million = CROWD_LENT(1000000);

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

void ask_leases(void)
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
	row("leases/10,000 keys, 16 at a time, own now", run_many, &ten_thousand, true,
	    "leases/10,000 keys, own now", 0);
	row("leases/10,000 keys, Zipf, own now", run_named_in_crowd, &ten_thousand,
	    true, "take/10,000 keys, Zipf, behind a call", 0);
	row("leases/10,000 keys, Zipf, 16 at a time, own now", run_many_in_crowd,
	    &ten_thousand, true, "take/16 at a time, 10,000 keys, Zipf", 0);
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
	bench_add_figure(&(struct bench_figure){
	    .name = "leases/a miss, there and back", .unit = "us", .measure = miss });
}
