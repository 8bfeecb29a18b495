/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * leases_turns.c -- what does one way to be answered in this node cost against another?
 *
 * A denial against an allow, and two threads against one.  They take turns (turns.h), some
 * thousands of asks at a time, so that both meet the same machine; all by the clock on the
 * wall.  How much two threads can do at all is what they do about a key each.
 *
 * Two threads begin together, and are done when both are.  The other one has been woken by
 * then, and sleeps while one is asked about, as it might share a core with it.
 *
 * "own now" rows tick once in a thousand asks; the others read the clock for each.
 *
 * Threads   Two; each has seats of its own, one for each question.
 *
 * Ordering
 *
 *   state    the thread waited for stores it with release  ->  the other loads it with acquire
 *            The seats are joined; the call that is wanted is known; its asks are done.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include <gale/gale.h>

#include "bench/crowd.h"
#include "bench/keys.h"
#include "bench/turns.h"
#include "runtime/atomic.h"

#define THREADS 2
#define IN_A_ROW 4
#define PROCESSES 5
#define BETWEEN_TICKS 1024
#define MANY 65536 /* asks of a call, of each thread ... */
#define FEW 8192   /* ... where each waits for memory */
#define PAGE 4096
#define PLACE_STEP                                                                     \
	208 /* 16 times an odd number: all places of a page, one after the other */

enum call {
	HELD,
	HELD_DENIED,
	HELD_DENIED_BY_TWO,
	HELD_BY_TWO,
	HELD_APART,
	HELD_CLOCK,
	HELD_CLOCK_BY_TWO,
	NAMED,
	NAMED_DENIED,
	NAMED_CACHED,
	NAMED_BY_TWO,
	NAMED_APART,
	NAMED_CLOCK,
	NAMED_CLOCK_BY_TWO,
	THOUSAND,
	THOUSAND_DENIED,
	MILLION,
	MILLION_DENIED,
	CALLS,
};

/* ---- Questions ------------------------------------------------------------------- */

static struct crowd held = CROWD_LENT(1), held_of_two = CROWD_LENT(1);
static struct crowd one = CROWD_LENT(1), one_of_two = CROWD_LENT(1);
static struct crowd one_each = CROWD_LENT(THREADS), held_each = CROWD_LENT(THREADS);
static struct crowd spent = CROWD_SPENT(1), spent_of_two = CROWD_SPENT(1);
static struct crowd cached = CROWD_CACHED(1);
static struct crowd thousand = CROWD_LENT(1000), thousand_spent = CROWD_SPENT(1000);
static struct crowd million = CROWD_LENT(1000000), million_spent = CROWD_SPENT(1000000);

static const struct question {
	struct crowd *crowd;
	bool held; /* or else by name */
	bool ticks;
	int threads;
	unsigned asks; /* of each */
	bool apart;    /* each about a key of its own */
} questions[CALLS] = {
	[HELD] = { &held, true, true, 1, MANY },
	[HELD_DENIED] = { &spent, true, true, 1, MANY },
	[HELD_DENIED_BY_TWO] = { &spent_of_two, true, true, THREADS, MANY },
	[HELD_BY_TWO] = { &held_of_two, true, true, THREADS, MANY },
	[HELD_APART] = { &held_each, true, true, THREADS, MANY, .apart = true },
	[HELD_CLOCK] = { &held, true, false, 1, MANY },
	[HELD_CLOCK_BY_TWO] = { &held_of_two, true, false, THREADS, MANY },
	[NAMED] = { &one, false, true, 1, MANY },
	[NAMED_DENIED] = { &spent, false, true, 1, MANY },
	[NAMED_CACHED] = { &cached, false, true, 1, MANY },
	[NAMED_BY_TWO] = { &one_of_two, false, true, THREADS, MANY },
	[NAMED_APART] = { &one_each, false, true, THREADS, MANY, .apart = true },
	[NAMED_CLOCK] = { &one, false, false, 1, MANY },
	[NAMED_CLOCK_BY_TWO] = { &one_of_two, false, false, THREADS, MANY },
	[THOUSAND] = { &thousand, false, true, 1, MANY },
	[THOUSAND_DENIED] = { &thousand_spent, false, true, 1, MANY },
	[MILLION] = { &million, false, true, 1, FEW },
	[MILLION_DENIED] = { &million_spent, false, true, 1, FEW },
};

/* Those that are compared with each other. */
struct round {
	struct turns_table table; /* first */
	enum call first, end;
};

/* ---- Asking ---------------------------------------------------------------------- */

/* One thread, about one question. */
struct asker {
	const struct question *question;
	struct gale_seat *seat;
	struct gale_limiter *limiter;
	struct gale_key *key; /* held */
	enum gale_verdict usual;
	uint64_t first; /* of its keys */
	size_t place;   /* of what is on the stack, in its page */
	struct picker picker;
};

static struct asker askers[THREADS][CALLS];

static void open_asker(struct asker *asker, const struct question *question, int thread)
{
	uint64_t first = question->apart ? (uint64_t)thread : 0;
	uint64_t count = question->apart ? 1 : question->crowd->count;
	struct key name = key_of(first);

	*asker = (struct asker){ .question = question,
		                 .limiter = question->crowd->limiter,
		                 .usual = crowd_usual(question->crowd),
		                 .first = first,
		                 .picker = { 1 + (uint64_t)thread, count } };
	crowd_must(gale_join(question->crowd->runtime, &asker->seat));
	if (question->held)
		crowd_must(gale_key_open(asker->seat, asker->limiter, &name,
		                         sizeof(name), &asker->key));
}

static void open_askers(int thread, const struct round *round)
{
	for (unsigned i = round->first; i < round->end; i++)
		if (thread < questions[i].threads)
			open_asker(&askers[thread][i], &questions[i], thread);
}

/* Of all answers, the few that have to be waited for. */
static __attribute__((noinline)) void note(struct asker *asker,
                                           const struct gale_answer *answer)
{
	bench_expect(answer->verdict == GALE_PENDING && asker->usual == GALE_ALLOW,
	             "an ask has the wrong verdict");
	(void)crowd_hear(asker->seat);
}

/* Not in line: what is here is on the stack below what ask has put there. */
static __attribute__((noinline)) void ask_held(struct asker *asker)
{
	for (int i = 0; i < BETWEEN_TICKS; i++) {
		struct gale_answer answer = gale_ask_key(asker->key, 1, NULL);

		if (answer.verdict != asker->usual)
			note(asker, &answer);
	}
}

static __attribute__((noinline)) void ask_named(struct asker *asker)
{
	struct picker picker = asker->picker;

	for (int i = 0; i < BETWEEN_TICKS; i++) {
		struct key key = key_of(asker->first + pick(&picker));
		struct gale_answer answer =
		    gale_ask(asker->seat, asker->limiter, &key, sizeof(key), 1, NULL);

		if (answer.verdict != asker->usual)
			note(asker, &answer);
	}
	asker->picker = picker;
}

static unsigned asks_of(const struct question *question)
{
	return bench_is_smoke() ? BETWEEN_TICKS : question->asks;
}

/* Each time somewhere else on the stack: where answers are written decides which loads a
 * processor takes for loads of them (spec/decisions/0008). */
static void ask(struct asker *asker)
{
	const struct question *question = asker->question;

	bench_keep(__builtin_alloca(asker->place));
	asker->place = (asker->place + PLACE_STEP) % PAGE;
	for (unsigned done = 0; done < asks_of(question); done += BETWEEN_TICKS) {
		if (question->ticks)
			gale_tick(asker->seat);
		if (question->held)
			ask_held(asker);
		else
			ask_named(asker);
	}
}

/* ---- The other thread ------------------------------------------------------------ */

enum state {
	COMES,
	ASLEEP,
	READY,
	GOES,
};

static struct {
	sem_t wanted;
	unsigned call;
	_Atomic enum state state;
} other;

static void *be_the_other(void *round)
{
	open_askers(1, round);
	store_release(&other.state, ASLEEP); /* state */
	for (;;) {
		while (sem_wait(&other.wanted) != 0)
			continue;
		store_release(&other.state, READY);        /* state */
		while (load_acquire(&other.state) != GOES) /* state */
			continue;
		ask(&askers[1][other.call]);
		store_release(&other.state, ASLEEP); /* state */
	}
	return NULL;
}

/* A shard's thread may want the processor meanwhile. */
static void wait_until(enum state state)
{
	while (load_acquire(&other.state) != state) /* state */
		sched_yield();
}

static void start_other(struct round *round)
{
	pthread_t thread;

	bench_expect(sem_init(&other.wanted, 0, 0) == 0, "a semaphore");
	bench_expect(pthread_create(&thread, NULL, be_the_other, round) == 0,
	             "a thread");
	wait_until(ASLEEP);
}

static void ready(struct turns *turns, unsigned call)
{
	(void)turns;
	if (questions[call].threads == 1)
		return;
	other.call = call;
	sem_post(&other.wanted);
	wait_until(READY);
}

static void make(struct turns *turns, unsigned call)
{
	(void)turns;
	if (questions[call].threads == 1) {
		ask(&askers[0][call]);
		return;
	}
	store_release(&other.state, GOES); /* state */
	ask(&askers[0][call]);
	wait_until(ASLEEP);
}

/* ---- Figures --------------------------------------------------------------------- */

/* Known when it is known whether this is a smoke run. */
static unsigned parts[CALLS];
static_assert(CALLS <= TURNS_CALLS_MOST, "room for their times");

static void measure(const struct turns_table *self, double *ret_us)
{
	struct round *round = (struct round *)self;
	struct turns turns = { make, round->first, round->end - round->first, IN_A_ROW,
		               ready };

	for (unsigned i = round->first; i < round->end; i++) {
		parts[i] = asks_of(&questions[i]) * (unsigned)questions[i].threads;
		crowd_prepare(questions[i].crowd);
	}
	open_askers(0, round);
	start_other(round);
	turns_time(&turns, ret_us + round->first);
}

static const struct turns_figure of_held[] = {
	{ "turns/held, own now", HELD, false, 0, 0 },
	{ "turns/held, own now, denied to allowed", HELD_DENIED, true, HELD, 1 },
	{ "turns/held, own now, denied, two threads to one", HELD_DENIED_BY_TWO, true,
	  HELD_DENIED, 1 / 1.8 },
	{ "turns/held, own now, two threads to one", HELD_BY_TWO, true, HELD, 1 / 1.8 },
	{ "turns/held, own now, a key each, two threads to one", HELD_APART, true, HELD,
	  0 },
	{ "turns/held, own now, two threads, to a key each", HELD_BY_TWO, true,
	  HELD_APART, 0 },
	{ "turns/held", HELD_CLOCK, false, 0, 0 },
	{ "turns/held, two threads to one", HELD_CLOCK_BY_TWO, true, HELD_CLOCK,
	  1 / 1.8 },
};
static const struct turns_figure of_named[] = {
	{ "turns/1 key, own now", NAMED, false, 0, 0 },
	{ "turns/1 key, own now, denied to allowed", NAMED_DENIED, true, NAMED, 1 },
	{ "turns/1 key, own now, strict but for denials, denied to allowed",
	  NAMED_CACHED, true, NAMED, 1 },
	{ "turns/1 key, own now, two threads to one", NAMED_BY_TWO, true, NAMED,
	  1 / 1.8 },
	{ "turns/1 key, own now, a key each, two threads to one", NAMED_APART, true,
	  NAMED, 0 },
	{ "turns/1 key, own now, two threads, to a key each", NAMED_BY_TWO, true,
	  NAMED_APART, 0 },
	{ "turns/1 key", NAMED_CLOCK, false, 0, 0 },
	{ "turns/1 key, two threads to one", NAMED_CLOCK_BY_TWO, true, NAMED_CLOCK,
	  1 / 1.8 },
};
static const struct turns_figure of_thousand[] = {
	{ "turns/1,000 keys, own now", THOUSAND, false, 0, 0 },
	{ "turns/1,000 keys, own now, denied to allowed", THOUSAND_DENIED, true,
	  THOUSAND, 1 },
};
static const struct turns_figure of_million[] = {
	{ "turns/1,000,000 keys, own now", MILLION, false, 0, 0 },
	{ "turns/1,000,000 keys, own now, denied to allowed", MILLION_DENIED, true,
	  MILLION, 1 },
};

#define ROUND(of, from, to)                                                            \
	{                                                                              \
		{                                                                      \
			.figures = of,                                                 \
			.count = sizeof(of) / sizeof(of[0]),                           \
			.parts = parts,                                                \
			.unit = "ns",                                                  \
			.units_a_us = 1000,                                            \
			.processes = PROCESSES,                                        \
			.measure = measure,                                            \
		},                                                                     \
		    from, to                                                           \
	}

void ask_lease_turns(void)
{
	static const struct round rounds[] = {
		ROUND(of_held, HELD, NAMED),
		ROUND(of_named, NAMED, THOUSAND),
		ROUND(of_thousand, THOUSAND, MILLION),
		ROUND(of_million, MILLION, CALLS),
	};

	for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++)
		turns_add(&rounds[i].table);
}
