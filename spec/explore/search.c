/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * search.c -- levels, in blocks that threads fetch.
 *
 *     round:  threads fetch blocks of the level, until none is left, or the table is
 *             crowded, or there is no memory      -- barrier --
 *             one looks what comes next           -- barrier --
 */
#define _GNU_SOURCE
#include "spec/explore/search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/check.h"

#define BLOCK 64       /* states that a thread fetches at a time */
#define CROWD_MOST 256 /* successors that are looked up together */

struct round {
	struct search *search;
	pthread_mutex_t gate; /* closed until all threads are there */
	pthread_barrier_t barrier;
	uint32_t first[THREADS_MOST]; /* of the level, on each shelf ... */
	uint32_t last[THREADS_MOST];  /* ... and the one after it */
	_Atomic uint64_t next;        /* block of the level */
	_Atomic bool pause;           /* the table is crowded, or there is no memory */
	bool over;
};

struct worker {
	struct walk walk; /* first */
	struct round *round;
	uint32_t thread;
	uint32_t parent;
	uint64_t steps;
	long found;
	uint32_t bad;
	const char *why;
	bool out_of_memory;
	uint32_t waiting; /* successors in crowd */
	uint64_t hashes[CROWD_MOST];
	uint32_t parents[CROWD_MOST];
	uint8_t crowd[CROWD_MOST][STATE_BYTES_MOST];
};

/* ---- One state ------------------------------------------------------------------- */

/* A level may hold states that break one invariant, and states that break another.  All of it
 * is looked at, and the least name is told: so threads that run at other times tell the same. */
static bool is_told_before(const char *why, const char *other)
{
	return !other || strcmp(why, other) < 0;
}

static void look_at(struct worker *worker, const void *state)
{
	const struct search *search = worker->round->search;
	const struct model *model = search->model;
	long found = model->found(search->c, state);
	const char *why = model->broken(search->c, state);

	if (worker->found < found)
		worker->found = found;
	if (!why && found > model->bound(search->c))
		why = "bound";
	if (!why || !is_told_before(why, worker->why))
		return;
	worker->why = why;
	worker->bad = space_find(&search->space, state);
}

static void flush(struct worker *worker)
{
	struct space *space = &worker->round->search->space;

	for (uint32_t i = 0; i < worker->waiting; i++)
		space_nearer(space, worker->hashes[i]);
	for (uint32_t i = 0; i < worker->waiting; i++) {
		enum added added = space_add(space, worker->thread, worker->crowd[i],
		                             worker->hashes[i], worker->parents[i]);

		if (added == ADDED_NEW)
			look_at(worker, worker->crowd[i]);
		worker->out_of_memory |= added == ADDED_NOT;
	}
	worker->waiting = 0;
}

static void take_successor(struct walk *self, const void *state, enum step_kind kind,
                           const char *says, int a, int b)
{
	struct worker *worker = (struct worker *)self;
	struct space *space = &worker->round->search->space;
	uint32_t at = worker->waiting++;

	(void)kind;
	(void)says;
	(void)a;
	(void)b;
	worker->steps++;
	worker->hashes[at] = space_hash(space, state);
	worker->parents[at] = worker->parent;
	memcpy(worker->crowd[at], state, space->size);
	space_near(space, worker->hashes[at]);
	if (worker->waiting == CROWD_MOST)
		flush(worker);
}

/* ---- One level ------------------------------------------------------------------- */

static uint64_t blocks_of(const struct round *round, uint32_t thread)
{
	return (round->last[thread] - round->first[thread] + BLOCK - 1) / BLOCK;
}

/* The states of a block of the level; false: there are no more. */
static bool find_block(const struct round *round, uint64_t block, uint32_t *ret_shelf,
                       uint32_t *ret_first, uint32_t *ret_last)
{
	uint32_t threads = round->search->space.threads, shelf = 0;

	for (; shelf < threads && block >= blocks_of(round, shelf); shelf++)
		block -= blocks_of(round, shelf);
	if (shelf == threads)
		return false;
	*ret_shelf = shelf;
	*ret_first = round->first[shelf] + (uint32_t)block * BLOCK;
	*ret_last = *ret_first + BLOCK;
	if (*ret_last > round->last[shelf])
		*ret_last = round->last[shelf];
	return true;
}

static void expand(struct worker *worker, uint32_t shelf, uint32_t first, uint32_t last)
{
	const struct search *search = worker->round->search;

	for (uint32_t i = first; i < last; i++) {
		worker->parent = i * search->space.threads + shelf;
		search->model->next(search->c,
		                    space_state(&search->space, worker->parent),
		                    &worker->walk);
	}
	flush(worker);
}

static bool must_pause(const struct worker *worker)
{
	const struct space *space = &worker->round->search->space;

	return worker->out_of_memory || space_is_full(space) || space_is_crowded(space);
}

static void work_on_level(struct worker *worker)
{
	struct round *round = worker->round;
	uint32_t shelf, first, last;

	while (!atomic_load_explicit(&round->pause, memory_order_relaxed)) {
		uint64_t block = atomic_fetch_add(&round->next, 1);

		if (!find_block(round, block, &shelf, &first, &last))
			return;
		expand(worker, shelf, first, last);
		if (must_pause(worker))
			atomic_store(&round->pause, true);
	}
}

/* ---- All levels ------------------------------------------------------------------ */

static bool level_is_done(const struct round *round)
{
	uint32_t shelf, first, last;

	return !find_block(round, atomic_load(&round->next), &shelf, &first, &last);
}

/* True if the next has states. */
static bool begin_level(struct round *round)
{
	struct space *space = &round->search->space;
	bool any = false;

	for (uint32_t i = 0; i < space->threads; i++) {
		round->first[i] = round->last[i];
		round->last[i] = atomic_load(&space->shelves[i].count);
		any |= round->last[i] > round->first[i];
	}
	atomic_store(&round->next, 0);
	return any;
}

static void make_room(struct search *search)
{
	if (space_is_full(&search->space) ||
	    (space_is_crowded(&search->space) && !space_grow(&search->space)))
		search->out_of_memory = true;
}

/* By one thread, while the others wait. */
static void between_rounds(struct round *round, const struct worker *workers)
{
	struct search *search = round->search;

	atomic_store(&round->pause, false);
	make_room(search);
	for (uint32_t i = 0; i < search->space.threads; i++) {
		search->out_of_memory |= workers[i].out_of_memory;
		round->over |= workers[i].why != NULL && level_is_done(round);
	}
	round->over |= search->out_of_memory;
	if (round->over || !level_is_done(round))
		return;
	round->over = !begin_level(round);
	search->levels += !round->over;
}

static struct worker *first_of(struct worker *worker)
{
	return worker - worker->thread;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct round *round = worker->round;

	pthread_mutex_lock(&round->gate);
	pthread_mutex_unlock(&round->gate);
	while (!round->over) {
		work_on_level(worker);
		pthread_barrier_wait(&round->barrier);
		if (worker->thread == 0)
			between_rounds(round, first_of(worker));
		pthread_barrier_wait(&round->barrier);
	}
	return NULL;
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void begin(struct round *round, struct worker *workers)
{
	struct search *search = round->search;

	for (uint32_t i = 0; i < search->space.threads; i++)
		workers[i] = (struct worker){ .walk = { .take = take_successor },
			                      .round = round,
			                      .thread = i,
			                      .parent = STATE_NONE,
			                      .found = -1 };
	search->model->begin(search->c, &workers[0].walk);
	flush(&workers[0]);
	workers[0].steps = 0;
	round->over = workers[0].why != NULL || !begin_level(round);
}

/* The way to a bad state is shown: with one thread it is always the same. */
static void sum_up(struct search *search, const struct worker *workers)
{
	for (uint32_t i = 0; i < search->space.threads; i++) {
		const struct worker *worker = &workers[i];

		search->steps += worker->steps;
		if (search->found < worker->found)
			search->found = worker->found;
		if (worker->why && is_told_before(worker->why, search->why)) {
			search->why = worker->why;
			search->bad = worker->bad;
		}
	}
}

/* Each needs a stack: where there is no memory for one, no thread begins. */
static void run_threads(struct round *round, struct worker *workers)
{
	pthread_t threads[THREADS_MOST];
	uint32_t count = round->search->space.threads, there = 1;

	pthread_mutex_init(&round->gate, NULL);
	pthread_barrier_init(&round->barrier, NULL, count);
	pthread_mutex_lock(&round->gate);
	while (there < count &&
	       pthread_create(&threads[there], NULL, work, &workers[there]) == 0)
		there++;
	round->search->out_of_memory = round->over = there < count;
	pthread_mutex_unlock(&round->gate);
	work(&workers[0]);
	while (there > 1)
		pthread_join(threads[--there], NULL);
	pthread_barrier_destroy(&round->barrier);
	pthread_mutex_destroy(&round->gate);
}

bool search_open(struct search *search, const struct model *model, const long *c,
                 uint32_t threads, uint64_t bytes_most)
{
	gale_assert(model->size <= STATE_BYTES_MOST);
	*search =
	    (struct search){ .model = model, .c = c, .found = -1, .bad = STATE_NONE };
	return space_open(&search->space, model->size, threads, bytes_most);
}

void search_run(struct search *search)
{
	struct round round = { .search = search };
	struct worker *workers = calloc(search->space.threads, sizeof(*workers));
	double since = seconds_of(CLOCK_MONOTONIC);
	double worked = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

	if (!workers) {
		search->out_of_memory = true;
		return;
	}
	make_room(search);
	begin(&round, workers);
	if (!round.over && !search->out_of_memory)
		run_threads(&round, workers);
	sum_up(search, workers);
	search->seconds = seconds_of(CLOCK_MONOTONIC) - since;
	search->worked = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - worked;
	free(workers);
}

void search_close(struct search *search)
{
	space_close(&search->space);
}

/* ---- The way to a state ---------------------------------------------------------- */

struct namer {
	struct walk walk; /* first */
	size_t size;
	const void *wanted;
	bool named;
	char text[120];
};

static void name_step(struct walk *self, const void *state, enum step_kind kind,
                      const char *says, int a, int b)
{
	struct namer *namer = (struct namer *)self;

	(void)kind;
	if (namer->named || memcmp(state, namer->wanted, namer->size) != 0)
		return;
	namer->named = true;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(namer->text, sizeof(namer->text), says, a, b);
#pragma GCC diagnostic pop
}

static void print_step(const struct search *search, uint32_t number, uint32_t state,
                       FILE *out)
{
	uint32_t parent = space_parent(&search->space, state);
	struct namer namer = { .walk = { .take = name_step },
		               .size = search->space.size,
		               .wanted = space_state(&search->space, state) };

	if (parent == state)
		search->model->begin(search->c, &namer.walk);
	else
		search->model->next(search->c, space_state(&search->space, parent),
		                    &namer.walk);
	fprintf(out, "  %3u  %-44s ", number, namer.text);
	search->model->print(search->c, namer.wanted, out);
	fputc('\n', out);
}

void search_print_way(const struct search *search, uint32_t state, FILE *out)
{
	uint32_t depth = space_depth(&search->space, state);

	for (uint32_t i = 0; i <= depth; i++) {
		uint32_t at = state;

		for (uint32_t back = depth - i; back > 0; back--)
			at = space_parent(&search->space, at);
		print_step(search, i, at, out);
	}
}
