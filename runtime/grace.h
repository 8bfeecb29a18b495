/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * grace.h -- when no reader can be reading any more what was taken away.
 *
 * Readers say when they begin and when they end, each in a word of its own, without a
 * fence and without a step that others wait for.  A thread that takes something out of what
 * readers can reach puts it in a limbo; it is freed when every reader that had begun
 * before has ended.  No thread waits: a limbo is looked at between turns.
 *
 *     unpublish -> limbo_add -> limbo_turn (a grace period begins)
 *                                    ...  limbo_turn (all readers of then are done) -> free
 *
 * A reader may remember what it has found, and use it in later reads, until something was
 * forgotten since.  A thread that unpublishes what readers remember has it forgotten, too:
 *
 *     unpublish, grace_forget -> limbo_turn
 *
 * Threads   reader_enter, reader_exit: the reader's thread.  grace_join, grace_leave,
 *           grace_pass, grace_forget: any.  A limbo: its owner.
 *
 *                       reads   joins, leaves   turns of a limbo
 *            reads       yes        yes               yes
 *            joins                  yes               yes
 *            turns                                    yes, of different limbos
 *
 * Limits    A reader that stays inside keeps what was retired since from being freed,
 *           and nothing else.  Reads do not nest.
 *           Whether the kernel passes fences for us is asked once, by grace_open.  If
 *           not, readers fence themselves, and callers of grace_pass do without it
 *           (grace_passes).  If a kernel did and then refuses, as one does for a host
 *           that filters its calls only later, no thread knows which readers are inside:
 *           that is a panic, which fences all.
 *
 * Ordering
 *
 *   left      reader_exit stores reading with release  ->  grace_over loads it with acquire
 *             Memory is freed after its last read has ended.  So does reader_enter: a
 *             thread that sees a read begun sees the one before ended.
 *   begun     grace_begin adds to the epoch with release  ->  reader_enter loads it with
 *             acquire: a reader that writes down a newer epoch does not find what was
 *             published only before.
 *   entered   reader_enter stores reading, then reads what is published  ->  grace_begin,
 *             after it was unpublished, makes every thread pass a fence: a reader that
 *             grace_over does not see inside finds what was published when the period
 *             began.  Where the kernel cannot do that for us, readers fence themselves.
 *   forgotten  grace_forget adds with release  ->  grace_forgotten, within a read, loads
 *             with acquire: a reader that finds more forgotten does not find again what
 *             was unpublished.  Other readers are waited for (begun, entered).
 */
#ifndef RUNTIME_GRACE_H
#define RUNTIME_GRACE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/atomic.h"
#include "runtime/list.h"
#include "runtime/lock.h"

struct reader {
	struct list place;        /* under the grace's lock */
	_Atomic uint64_t reading; /* since this epoch; 0: not now */
};

struct grace {
	_Atomic uint64_t epoch;     /* from 1 on */
	_Atomic uint64_t forgotten; /* how many times readers had to */
	bool fences;                /* readers fence themselves */
	struct lock lock;
	struct {
		struct list readers;
	} locked;
};

void grace_open(struct grace *grace);
void grace_close(struct grace *grace);
void grace_join(struct grace *grace, struct reader *reader);
void grace_leave(struct grace *grace, struct reader *reader);

static inline void reader_enter(const struct grace *grace, struct reader *reader)
{
	uint64_t epoch = load_acquire(&grace->epoch); /* begun */

	store_release(&reader->reading, epoch); /* left */
	fence_compiler();
	if (__builtin_expect(grace->fences, 0))
		fence_full(); /* entered */
}

static inline void reader_exit(struct reader *reader)
{
	store_release(&reader->reading, 0); /* left */
}

/* Within a read, before anything is looked for: what was found when it was the same may
 * be used as if it had been found in this read. */
static inline uint64_t grace_forgotten(const struct grace *grace)
{
	return load_acquire(&grace->forgotten); /* forgotten */
}

/* Something has been unpublished that readers may remember. */
static inline void grace_forget(struct grace *grace)
{
	(void)add_release(&grace->forgotten, 1); /* forgotten */
}

/* Can every thread be made to pass a fence? */
static inline bool grace_passes(const struct grace *grace)
{
	return !grace->fences;
}

/* Every thread of this process passes a fence before this returns, where it can be made
 * to; the caller always does. */
void grace_pass(struct grace *grace);

/* A grace period begins: for what no new reader can reach.  Returns its ticket. */
uint64_t grace_begin(struct grace *grace);
/* Have all reads ended that were under way when it began? */
bool grace_over(struct grace *grace, uint64_t ticket);

/* ---- Limbo ----------------------------------------------------------------------- */

struct retired {
	struct retired *next;
};

/* Parts that gather wait for those that are under way: two batches, however many are added. */
struct limbo {
	struct retired *gathering;
	struct retired *waiting;
	uint64_t ticket; /* of those that wait */
};

typedef void limbo_free_fn(void *self, struct retired *retired);

void limbo_add(struct limbo *limbo, struct retired *retired);
/* Frees those whose period is over, and begins one for those that have gathered. */
void limbo_turn(struct limbo *limbo, struct grace *grace, limbo_free_fn *free_one,
                void *self);
bool limbo_is_empty(const struct limbo *limbo);
/* No thread reads any more: frees all. */
void limbo_close(struct limbo *limbo, limbo_free_fn *free_one, void *self);

#endif
