/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * model.h -- runs a short program of threads in every way that C11 lets it run.
 *
 * The code under test is compiled again with shadow/runtime/atomic.h in the place of
 * runtime/atomic.h, and so that the compiler tells of each plain access (hooks.c).  A
 * thread is a coroutine that stops before each step that others can notice.  The model
 * chooses whose step comes next, and which of the values that a load may see it sees, until
 * it has tried all.
 *
 *     begin, by itself -> two or three threads, interleaved -> end, by itself
 *
 * Memory is a history of stores for each word.  A thread has a view, the oldest store of
 * each word that it may still see; releases publish views, acquires take them over, and
 * a full fence joins them with the view of all fences.  So a store that should have been
 * a release is seen as such, whatever this machine does.
 *
 * What is a fault
 *
 *   MODEL-1  A plain access, and another thread's to the same byte that is not ordered
 *            with it, one of them a write.
 *   MODEL-2  An access to memory that was given back, or that another took and did not
 *            publish.
 *   MODEL-3  A gale_assert, or a must_hold of the program, that does not hold.
 *   MODEL-4  Threads that all wait, or go on for ever.
 *
 * Limits    Stores of a word come in the order in which they were made: behaviours where
 *           two words see theirs in opposite orders are not tried, nor are loads that come
 *           before what the program has before them, in the same thread, where nothing
 *           is acquired.  Faults that it finds are faults; it does not find all.
 *
 * Threads   One.  Coroutines call model_*, each for itself.
 */
#ifndef TESTS_INTERLEAVE_MODEL_H
#define TESTS_INTERLEAVE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Steps ----------------------------------------------------------------------- */

enum order {
	RELAXED = 0,
	ACQUIRE = 1,
	RELEASE = 2,
	ACQ_REL = ACQUIRE | RELEASE,
	FULL = 4, /* a fence */
};

enum change {
	CHANGE_ADD,
	CHANGE_SUB,
	CHANGE_OR,
	CHANGE_SWAP,
};

uint64_t model_load(const volatile void *at, size_t size, enum order order,
                    const char *file, int line);
void model_store(volatile void *at, size_t size, uint64_t value, enum order order,
                 const char *file, int line);
/* Returns what it was before. */
uint64_t model_change(volatile void *at, size_t size, enum change how, uint64_t value,
                      enum order order, const char *file, int line);
bool model_swap_if(volatile void *at, size_t size, void *expected, uint64_t value,
                   enum order order, const char *file, int line);
void model_fence(const char *file, int line);
/* What the kernel does for membarrier(2): every thread passes a full fence. */
void model_barrier(void);
/* Before the word is shared. */
void model_init(volatile void *at, size_t size, uint64_t value);

/* Mutual exclusion by the lock at this address. */
void model_lock(const void *lock);
void model_unlock(const void *lock);

/* The newest value of a word that this thread knows of; no step. */
uint64_t model_knows(const volatile void *at, size_t size);

/* ---- Memory ---------------------------------------------------------------------- */

/* Zeroed; nothing that is given back is used again. */
void *model_take(size_t bytes);
void model_give(void *memory);
/* A plain access. */
void model_touch(const volatile void *at, size_t size, bool writes);

/* ---- Programs -------------------------------------------------------------------- */

#define MODEL_THREADS 3

struct program {
	const char *name;
	void (*begin)(void);
	void (*threads[MODEL_THREADS])(void); /* NULL: not so many */
	void (*end)(void);                    /* NULL: nothing is left to check */
	unsigned spurious; /* swaps that fail without a reason, at most, in a run */
};

/* One end of a pair; tests/lint/ordering.py knows them all. */
struct end {
	const char *file;
	int first, last; /* lines */
	const char *pair;
	enum order order;
};

/* What is taken away: the order of one end, the one step that reads and writes, or what the
 * kernel does. */
struct mutant {
	const struct end *end; /* NULL: none */
	enum order without;
	bool torn; /* steps that read and write are two steps each */
	bool deaf; /* the kernel makes no thread pass a fence */
};

/* A bit for each end that is watched. */
__extension__ typedef unsigned __int128 end_bits;
#define ENDS_MOST 128

static inline end_bits end_bit(size_t number)
{
	return (end_bits)1 << number;
}

struct found {
	uint64_t runs;   /* to the end */
	uint64_t pruned; /* that would have been the same as others */
	uint64_t steps;
	end_bits met;      /* ends that are watched; without a mutant */
	uint64_t outcomes; /* bits that model_outcome was told, of all runs */
	char fault[240];   /* "" if there is none; then it is of the last run */
};

/* At most so many runs; one more is a fault. */
struct found model_explore(const struct program *program, const struct mutant *mutant,
                           uint64_t most);
/* These, ENDS_MOST at most, are noted when they are met. */
void model_watch(const struct end *ends, size_t count);
/* Prints the steps of the last run. */
void model_print_run(void);

/* This run has come out as number bit. */
void model_outcome(unsigned bit);
/* What the threads do is over: which of them are left at its end is of no interest. */
_Noreturn void model_fail(const char *file, int line, const char *what);
#define must_hold(x)                                                                   \
	do {                                                                           \
		if (!(x))                                                              \
			model_fail(__FILE__, __LINE__, #x);                            \
	} while (0)

#endif
