/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_torture.c -- real threads at guards whose ceilings change, while seats come and go.
 *
 *     guard_torture [--seconds N] [--seed N]
 *
 * The threads themselves count the slots of each guard that are in use: never more than its
 * largest ceiling.  Another thread changes the ceilings, and who may keep slots, in the place
 * of the coordinator, which takes no turn.  Once it has fenced a guard, nothing enters and
 * nothing is kept.  In the end nothing is in flight: no slot was made or lost.
 *
 * Threads   Workers: each has a seat, and entries that it exits itself or leaves to any
 *           worker.  The changer: one.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <gale/guard.h>

#include "face/guard.h"
#include "runtime/clock.h"
#include "runtime/memory.h"
#include "tests/support/arguments.h"
#include "tests/support/crew.h"
#include "tests/support/must.h"

#define WORKERS 6
#define GUARDS 3
#define HELD 8  /* entries of one worker at a time */
#define SWAPS 4 /* entries that worker leave for others */
#define LARGEST 600

static const uint32_t ceilings[GUARDS] = { 2, 40, LARGEST };

/* A guard, and what the threads know of it. */
struct target {
	struct gale_guard *guard;
	_Atomic uint64_t in_use; /* slots, from after an entry to before its exit */
};

static struct {
	struct gale_runtime *runtime;
	struct target targets[GUARDS];
	_Atomic(struct gale_entry *) left[SWAPS]; /* by one worker, for any */
	_Atomic uint64_t entered, refused, joined, changes;
	uint64_t seed;
	uint64_t until_ns;
} t;

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static struct target *target_of(const struct gale_entry *entry)
{
	int i = 0;

	while (t.targets[i].guard != entry->guard)
		must(++i < GUARDS);
	return &t.targets[i];
}

/* ---- Workers ---------------------------------------------------------------------- */

struct worker {
	struct gale_seat *seat;
	struct gale_entry held[HELD];
	uint64_t seed;
};

static void leave(struct worker *w, struct gale_entry *entry, uint64_t chance)
{
	struct target *target = target_of(entry);

	(void)sub_relaxed(&target->in_use, entry->slots);
	gale_exit(w->seat, entry, (enum gale_outcome)(chance % 3));
	must(!entry->guard);
}

static void enter(struct worker *w, struct gale_entry *entry)
{
	uint64_t chance = draw(&w->seed);
	struct target *target = &t.targets[chance % GUARDS];
	uint32_t slots = chance >> 8 & 15 ? 1 : 1 + (uint32_t)(chance >> 16 & 3);
	enum gale_class class = chance >> 24 & 3 ? GALE_NORMAL : GALE_SHEDDABLE;

	*entry = gale_enter(w->seat, target->guard, slots, class);
	if (entry->verdict != GALE_ALLOW) {
		must(entry->verdict == GALE_DENY && entry->slots == 0);
		add_relaxed(&t.refused, 1);
		*entry = (struct gale_entry){ 0 };
		return;
	}
	must(add_relaxed(&target->in_use, slots) + slots <=
	     ceilings[target - t.targets]);
	must(entry->slots == slots && entry->limit <= ceilings[target - t.targets]);
	add_relaxed(&t.entered, 1);
}

/* Another thread exits it; or what was left before is exited here. */
static void swap_entry(struct worker *w, struct gale_entry *entry)
{
	uint64_t chance = draw(&w->seed);
	struct gale_entry *mine = NULL, *theirs;

	if (entry->guard) {
		mine = memory_take(memory_default(), sizeof(*mine));
		must(mine);
		*mine = *entry;
		*entry = (struct gale_entry){ 0 };
	}
	theirs = atomic_exchange(&t.left[chance % SWAPS], mine);
	if (!theirs)
		return;
	leave(w, theirs, chance >> 8);
	memory_give(memory_default(), theirs, sizeof(*theirs));
}

static void work_a_while(struct worker *w)
{
	for (int i = 0; i < 2000; i++) {
		uint64_t chance = draw(&w->seed);
		struct gale_entry *entry = &w->held[chance % HELD];

		if ((chance >> 8 & 63) == 0)
			swap_entry(w, entry);
		else if (entry->guard)
			leave(w, entry, chance >> 16);
		else
			enter(w, entry);
		if ((chance >> 32 & 255) == 0)
			sched_yield();
	}
}

/* Its entries outlive its seat. */
static void change_seats(struct worker *w)
{
	gale_leave(w->seat);
	must(gale_join(t.runtime, &w->seat) == GALE_ERR_OK);
	add_relaxed(&t.joined, 1);
}

static void work(struct worker *w)
{
	must(gale_join(t.runtime, &w->seat) == GALE_ERR_OK);
	while (patience_now_ns() < t.until_ns) {
		work_a_while(w);
		change_seats(w);
	}
	for (int i = 0; i < HELD; i++)
		if (w->held[i].guard)
			leave(w, &w->held[i], 0);
	gale_leave(w->seat);
}

/* ---- The changer ------------------------------------------------------------------ */

/* The ceiling sinks, to 0 as well, and rises again. */
static void change(uint64_t *seed)
{
	uint64_t chance = draw(seed);
	struct target *target = &t.targets[chance % GUARDS];
	uint32_t largest = ceilings[chance % GUARDS];
	struct slots_ceiling ceiling = { (uint32_t)(chance >> 8) % (largest + 1),
		                         SLOTS_BY_SHARE };

	if (chance >> 40 & 1)
		ceiling.most = largest;
	if ((chance >> 41 & 15) == 0)
		ceiling = (struct slots_ceiling){ 0, SLOTS_BY_FENCE };
	turnstile_apply(&target->guard->guard.turnstile, (uint16_t)chance, ceiling);
	if (chance >> 48 & 1)
		turnstile_keep(&target->guard->guard.turnstile, chance >> 50,
		               ceiling.most / 16);
	add_relaxed(&t.changes, 1);
}

/* Once nothing may enter, what is in use only falls. */
static void check_fence(uint64_t *seed)
{
	struct target *target = &t.targets[draw(seed) % GUARDS];
	struct turnstile *turnstile = &target->guard->guard.turnstile;
	uint32_t before;

	turnstile_apply(turnstile, 1, (struct slots_ceiling){ 0, SLOTS_BY_FENCE });
	before = slots_in_flight(turnstile_word(turnstile));
	must(turnstile_kept(turnstile) == 0);
	for (int i = 0; i < 50; i++) {
		uint32_t now = slots_in_flight(turnstile_word(turnstile));

		must(now <= before);
		must(turnstile_kept(turnstile) == 0);
		before = now;
		sched_yield();
	}
}

static void change_all(void)
{
	uint64_t seed = t.seed;

	while (patience_now_ns() < t.until_ns) {
		change(&seed);
		if ((seed & 31) == 0)
			check_fence(&seed);
		if ((seed & 7) == 0)
			sched_yield();
	}
}

static void run(void *arg, unsigned who)
{
	struct worker worker = { .seed = t.seed * 31 + who + 1 };

	(void)arg;
	if (who == 0)
		change_all();
	else
		work(&worker);
}

/* ---- The whole -------------------------------------------------------------------- */

static void open_guards(void)
{
	char name[] = "guard 0";

	for (int i = 0; i < GUARDS; i++) {
		struct gale_guard_config config = { .name = name,
			                            .law = GALE_FIXED,
			                            .ceiling = ceilings[i] };

		name[6] = (char)('0' + i);
		must(gale_guard_open(t.runtime, &config, &t.targets[i].guard) ==
		     GALE_ERR_OK);
	}
}

static void exit_what_was_left(void)
{
	struct worker last = { 0 };

	must(gale_join(t.runtime, &last.seat) == GALE_ERR_OK);
	for (int i = 0; i < SWAPS; i++) {
		struct gale_entry *entry = atomic_exchange(&t.left[i], NULL);

		if (!entry)
			continue;
		leave(&last, entry, 0);
		memory_give(memory_default(), entry, sizeof(*entry));
	}
	gale_leave(last.seat);
}

static void nothing_is_left(void)
{
	uint64_t ended = 0;

	for (int i = 0; i < GUARDS; i++) {
		struct turnstile *turnstile = &t.targets[i].guard->guard.turnstile;
		struct gale_guard_counts counts;

		(void)turnstile_call_back(turnstile, UINT64_MAX);
		must(gale_guard_stats(t.targets[i].guard, &counts) == GALE_ERR_OK);
		must(counts.in_flight == 0 && counts.kept == 0);
		must(counts.exits_without_entry == 0);
		must(load_relaxed(&t.targets[i].in_use) == 0);
		ended += counts.entered;
		gale_guard_close(t.targets[i].guard);
	}
	must(ended == load_relaxed(&t.entered));
}

static void run_all(uint64_t seconds)
{
	struct gale_config config = { .shards = 1, .turns = true };

	must(gale_runtime_open(&config, &t.runtime) == GALE_ERR_OK);
	open_guards();
	t.until_ns = patience_now_ns() + seconds * 1000000000;
	crew_run(WORKERS + 1, run, NULL);
	exit_what_was_left();
	nothing_is_left();
	gale_runtime_close(t.runtime);
}

int main(int argc, char **argv)
{
	uint64_t seconds = 5;
	const struct argument arguments[] = {
		{ "--seconds", &seconds },
		{ "--seed", &t.seed },
		{ NULL, NULL },
	};

	t.seed = patience_now_ns();
	arguments_read(argc, argv, arguments);
	t.seed |= 1;
	alarm((unsigned)seconds + 120); /* one that hangs is ended */
	printf("--seed %" PRIu64 "\n", t.seed);
	run_all(seconds);
	printf("%" PRIu64 " calls entered, %" PRIu64 " were refused; %" PRIu64
	       " seats, %" PRIu64 " changes\n",
	       load_relaxed(&t.entered), load_relaxed(&t.refused),
	       load_relaxed(&t.joined), load_relaxed(&t.changes));
	return load_relaxed(&t.entered) == 0 || load_relaxed(&t.refused) == 0;
}
