/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * holds.c -- what does a call cost that several limits must admit, or that is held for?
 *
 * Through gale.h, from credit that this node was lent, against an ask of one limit by name.  Own
 * now: the seat ticks once in a turn.  Units that had to be fetched are waited for within the row.
 */
#include <gale/hold.h>

#include "bench/bench.h"
#include "bench/crowd.h"
#include "bench/keys.h"

static struct crowd crowd = CROWD_LENT(1);
static struct gale_limiter *other; /* of another limit; made by prepare */
static struct key key;

static void prepare(void *arg)
{
	struct gale_limiter_config config = {
		.name = "other",
		.rule = gale_fixed_window(CROWD_MUCH, GALE_SPAN_MAX_US),
		.mode = GALE_LEASED,
		.lease = { .sizing = GALE_SIZE_FIXED,
		           .batch = CROWD_LEASE,
		           .patience_us = CROWD_PATIENCE,
		           .carry_over = true },
	};

	(void)arg;
	if (other)
		return;
	crowd_prepare(&crowd);
	key = key_of(0);
	config.store = crowd.store;
	crowd_must(gale_limiter_open(crowd.runtime, &config, &other));
}

/* ---- A call ---------------------------------------------------------------------- */

/* A seat, and the first parts of two. */
struct caller {
	struct gale_seat *seat;
	struct gale_part parts[2];
	struct gale_all all;
	struct gale_hold hold;
};

static void join(struct caller *caller, size_t parts, uint64_t cost)
{
	crowd_must(gale_join(crowd.runtime, &caller->seat));
	caller->parts[0] = (struct gale_part){ crowd.limiter, &key, sizeof(key), cost };
	caller->parts[1] = (struct gale_part){ other, &key, sizeof(key), cost };
	caller->all = (struct gale_all){ .parts = caller->parts, .count = parts };
}

static void must_be_allowed(struct gale_answer answer)
{
	bench_expect(answer.verdict == GALE_ALLOW, "a verdict");
}

static void ask_all_of(struct caller *caller)
{
	must_be_allowed(gale_wait_all(caller->seat, &caller->all, CROWD_PATIENCE));
}

static void hold(struct caller *caller)
{
	must_be_allowed(
	    gale_hold_wait(caller->seat, &caller->all, &caller->hold, CROWD_PATIENCE));
}

static void commit(struct caller *caller)
{
	static const uint64_t costs[2] = { 1, 1 };

	crowd_must(gale_hold_commit(caller->seat, &caller->hold, costs));
}

/* ---- The rows -------------------------------------------------------------------- */

static void run_all_of(struct bench *b)
{
	struct caller caller;

	join(&caller, 2, 1);
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(caller.seat);
		while (n-- > 0)
			ask_all_of(&caller);
	}
	gale_leave(caller.seat);
}

/* Two units are held of each part, and one of them goes back. */
static void run_hold(struct bench *b)
{
	const size_t *parts = bench_arg(b);
	struct caller caller;

	join(&caller, *parts, 2);
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(caller.seat);
		while (n-- > 0) {
			hold(&caller);
			commit(&caller);
		}
	}
	gale_leave(caller.seat);
}

/* One hold a turn, as no hold takes more units than a word has. */
static void run_grow(struct bench *b)
{
	static const uint64_t more[1] = { 1 };
	struct caller caller;

	join(&caller, 1, 1);
	for (uint64_t n; (n = bench_batch(b)) > 0;) {
		gale_tick(caller.seat);
		hold(&caller);
		while (n-- > 0)
			must_be_allowed(gale_hold_grow(caller.seat, &caller.hold, more,
			                               CROWD_PATIENCE));
		crowd_must(gale_hold_cancel(caller.seat, &caller.hold));
	}
	gale_leave(caller.seat);
}

static void row(const char *name, void (*run)(struct bench *), size_t parts, double bar)
{
	static const size_t counts[] = { 0, 1, 2 };

	bench_add(&(struct bench_row){ .name = name,
	                               .run = run,
	                               .prepare = prepare,
	                               .arg = (void *)&counts[parts],
	                               .floor = "leases/1 key, own now",
	                               .bar = bar });
}

void ask_holds(void)
{
	row("holds/all of two, own now", run_all_of, 2, 2.2);
	row("holds/hold and commit, own now", run_hold, 1, 2);
	row("holds/hold and commit of two, own now", run_hold, 2, 0);
	row("holds/grow, own now", run_grow, 1, 1.3);
}
