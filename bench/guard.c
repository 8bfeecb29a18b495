/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard.c -- what does a call pay for a guard: to enter and exit, or to be refused?
 *
 * An operation of most rows is gale_enter and gale_exit.  Own now: the seat ticks once in a
 * thousand calls.  Two threads at one guard each get a cell, once the coordinator has looked.
 * An entry alone is measured until the guard is full; that it is emptied then is not.
 */
#include <gale/guard.h>

#include "bench/bench.h"

#define TICK_EACH 1024
#define ROOM 16384 /* entries that stand at a time, where they are measured alone */

struct question {
	const char *name; /* of the guard */
	uint32_t ceiling;
	bool ticks;
	bool full; /* all slots are taken */
	enum gale_class of_class;

	struct gale_guard *guard; /* made by prepare */
};

static struct gale_runtime *runtime; /* all rows share it */

static void prepare(void *arg)
{
	struct question *question = arg;
	struct gale_guard_config config = { .name = question->name,
		                            .law = GALE_FIXED,
		                            .ceiling = question->ceiling };
	struct gale_seat *seat;

	if (question->guard)
		return;
	if (!runtime)
		bench_expect(gale_runtime_open(NULL, &runtime) == GALE_ERR_OK,
		             "a runtime");
	bench_expect(gale_guard_open(runtime, &config, &question->guard) == GALE_ERR_OK,
	             "a guard");
	bench_expect(gale_join(runtime, &seat) == GALE_ERR_OK, "a seat");
	while (question->full &&
	       gale_enter(seat, question->guard, 1, GALE_NORMAL).verdict == GALE_ALLOW)
		continue;
	gale_leave(seat);
}

static void one_call(struct gale_seat *seat, const struct question *question)
{
	struct gale_entry entry =
	    gale_enter(seat, question->guard, 1, question->of_class);

	if (entry.verdict == GALE_ALLOW)
		gale_exit(seat, &entry, GALE_OK);
	bench_keep(&entry);
}

static void calls(struct bench *b)
{
	const struct question *question = bench_arg(b);
	struct gale_seat *seat;
	uint64_t untold = 0;

	bench_expect(gale_join(runtime, &seat) == GALE_ERR_OK, "a seat");
	for (uint64_t n; (n = bench_batch(b)) > 0;)
		while (n-- > 0) {
			if (question->ticks && untold-- == 0) {
				gale_tick(seat);
				untold = TICK_EACH;
			}
			one_call(seat, question);
		}
	gale_leave(seat);
}

/* The entries of a guard are alike, so one is enough to end all of them. */
static void empty(struct gale_seat *seat, const struct gale_entry *entry,
                  uint64_t count)
{
	while (count-- > 0) {
		struct gale_entry its = *entry;

		gale_exit(seat, &its, GALE_OK);
	}
}

static void entries(struct bench *b)
{
	const struct question *question = bench_arg(b);
	struct gale_entry entry = { 0 };
	struct gale_seat *seat;
	uint64_t inside = 0;

	bench_expect(gale_join(runtime, &seat) == GALE_ERR_OK, "a seat");
	for (uint64_t n; (n = bench_batch(b)) > 0; inside += n) {
		if (inside + n > ROOM) {
			bench_pause(b);
			empty(seat, &entry, inside);
			inside = 0;
			bench_go_on(b);
		}
		gale_tick(seat);
		for (uint64_t i = 0; i < n; i++) {
			entry = gale_enter(seat, question->guard, 1, GALE_NORMAL);
			bench_keep(&entry);
		}
		bench_expect(entry.verdict == GALE_ALLOW, "an entry");
	}
	empty(seat, &entry, inside);
	gale_leave(seat);
}

static struct question own_now = { .name = "own now", .ceiling = 1000, .ticks = true };
static struct question entered = { .name = "entered", .ceiling = ROOM };
static struct question clocked = { .name = "clocked", .ceiling = 1000 };
static struct question shared = { .name = "shared", .ceiling = 1000, .ticks = true };
static struct question shared_clock = { .name = "shared, clocked", .ceiling = 1000 };
static struct question narrow = { .name = "narrow", .ceiling = 16, .ticks = true };
static struct question sheddable = {
	.name = "sheddable", .ceiling = 1000, .ticks = true, .of_class = GALE_SHEDDABLE
};
static struct question full = {
	.name = "full", .ceiling = 1000, .ticks = true, .full = true
};

static void row(const char *name, struct question *question, int threads,
                const char *floor, double bar)
{
	bench_add(&(struct bench_row){ .name = name,
	                               .run = calls,
	                               .prepare = prepare,
	                               .arg = question,
	                               .threads = threads,
	                               .floor = floor,
	                               .bar = bar });
}

void ask_guards(void)
{
	row("guard/enter and exit, own now", &own_now, 1, "floors/compare and swap", 4);
	row("guard/enter and exit", &clocked, 1, "floors/compare and swap", 0);
	row("guard/sheddable, own now", &sheddable, 1, "guard/enter and exit, own now",
	    1.2);
	row("guard/two threads, own now", &shared, 2, "guard/enter and exit, own now",
	    1 / 1.6);
	row("guard/two threads", &shared_clock, 2, "guard/enter and exit", 1 / 1.6);
	row("guard/two threads, too few slots for cells, own now", &narrow, 2,
	    "guard/enter and exit, own now", 0);
	bench_add(&(struct bench_row){ .name = "guard/an entry, own now",
	                               .run = entries,
	                               .prepare = prepare,
	                               .arg = &entered,
	                               .threads = 1,
	                               .floor = "guard/enter and exit, own now" });
	row("guard/refused, own now", &full, 1, "guard/an entry, own now", 1);
}
