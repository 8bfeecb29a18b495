/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * asks.c -- what does a strict ask cost a user, by name, through gale.h?
 *
 * Over a step in the store (store.c) this adds the checks of the handles, the joining
 * of name and key, and the copying of the answer.  The floor of a row hashes the key,
 * takes a lock, reads the clock, finds the key and takes a unit.
 */
#include <gale/gale.h>

#include "bench/bench.h"
#include "bench/keys.h"

#define MUCH (UINT64_C(1) << 50)

/* Keys under one limiter, each with one unit used. */
struct crowd {
	uint64_t count; /* of keys */
	uint64_t limit; /* of each; 1: all are denied from then on */

	/* Made by prepare. */
	struct gale_store *store;
	struct gale_limiter *limiter;
};

static struct gale_runtime *runtime; /* all rows share it */

static void must(enum gale_err err)
{
	bench_expect(err == GALE_ERR_OK, gale_err_text(err));
}

static struct gale_answer ask(struct gale_seat *seat, const struct crowd *crowd,
                              uint64_t id)
{
	struct key key = key_of(id);

	return gale_ask(seat, crowd->limiter, &key, sizeof(key), 1, NULL);
}

/* Pending asks are not waited for: they come while others are asked. */
static void fetch(struct gale_seat *seat)
{
	struct gale_completion done[64];

	while (gale_seat_completions(seat, done, 64) == 64)
		continue;
}

static void open_limiter(struct crowd *crowd)
{
	struct gale_store_config store = { .max_keys = UINT64_C(1) << 31 };
	struct gale_limiter_config limiter = {
		.name = "bench",
		.rule = gale_fixed_window(crowd->limit, GALE_SPAN_MAX_US),
		.mode = GALE_STRICT,
	};

	if (!runtime)
		must(gale_runtime_open(NULL, &runtime));
	must(gale_store_open(runtime, &store, &crowd->store));
	limiter.store = crowd->store;
	must(gale_limiter_open(runtime, &limiter, &crowd->limiter));
}

static void prepare(void *arg)
{
	struct crowd *crowd = arg;
	struct gale_seat *seat;

	if (crowd->limiter)
		return;
	crowd->count = keys_in(crowd->count);
	open_limiter(crowd);
	must(gale_join(runtime, &seat));
	for (uint64_t id = 0; id < crowd->count; id++)
		bench_expect(ask(seat, crowd, id).verdict != GALE_DENY, "a new key");
	gale_leave(seat);
}

/* Asks that the rule did not answer, because another thread was in the way. */
struct misses {
	uint64_t pending; /* went to a shard */
	uint64_t busy;    /* did not even find a place to wait in */
};

static void note(struct misses *misses, struct gale_seat *seat,
                 const struct gale_answer *answer)
{
	if (answer->verdict == GALE_PENDING)
		misses->pending++;
	else if (answer->why == GALE_WHY_BUSY)
		misses->busy++;
	else
		bench_expect(false, "an ask has the wrong verdict");
	fetch(seat);
}

static void run_asks(struct bench *b)
{
	struct crowd *crowd = bench_arg(b);
	struct picker picker = picker_of(b, crowd->count);
	enum gale_verdict usual = crowd->limit == 1 ? GALE_DENY : GALE_ALLOW;
	struct misses misses = { 0 };
	struct gale_seat *seat;

	must(gale_join(runtime, &seat));
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			struct gale_answer answer = ask(seat, crowd, pick(&picker));

			if (answer.verdict != usual || answer.why != GALE_WHY_RULE)
				note(&misses, seat, &answer);
		}
	gale_leave(seat);
	bench_count(b, "pending", misses.pending);
	bench_count(b, "busy", misses.busy);
}

/* ---- The rows -------------------------------------------------------------------- */

static struct crowd one = { .count = 1, .limit = MUCH };
static struct crowd one_denied = { .count = 1, .limit = 1 };
static struct crowd thousand = { .count = 1000, .limit = MUCH };
static struct crowd thousand_denied = { .count = 1000, .limit = 1 };
static struct crowd million = { .count = 1000000, .limit = MUCH };
static struct crowd million_denied = { .count = 1000000, .limit = 1 };

static void row(const char *name, struct crowd *crowd, int threads, const char *floor)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = run_asks,
	                               .prepare = prepare,
	                               .arg = crowd,
	                               .threads = threads,
	                               .floor = floor });
}

void ask_asks(void)
{
	row("asks/1 key, allow", &one, 1, "floors/lock, clock, probe, 1 key");
	row("asks/1 key, deny", &one_denied, 1, "floors/lock, clock, probe, 1 key");
	row("asks/1 key, allow, two threads", &one, 2,
	    "floors/lock, clock, probe, 1 key, two threads");
	row("asks/1,000 keys, allow", &thousand, 1,
	    "floors/lock, clock, probe, 1,000 keys");
	row("asks/1,000 keys, deny", &thousand_denied, 1,
	    "floors/lock, clock, probe, 1,000 keys");
	row("asks/1,000,000 keys, allow", &million, 1,
	    "floors/lock, clock, probe, 1,000,000 keys");
	row("asks/1,000,000 keys, deny", &million_denied, 1,
	    "floors/lock, clock, probe, 1,000,000 keys");
	row("asks/1,000,000 keys, allow, two threads", &million, 2,
	    "floors/lock, clock, probe, 1,000,000 keys, two threads");
}
