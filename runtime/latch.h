/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * latch.h -- a lock of one word, for what is held for less than a microsecond as a rule.
 *
 * To take it is one swap, and to drop it is a store: struct lock, which can wake those that wait,
 * swaps to be dropped, too.  A thread that waits for a latch looks at it some dozen times, and
 * then sleeps for 50 us between looks: its holder may not run.  All zero, it is open.
 *
 * Threads   Any.
 *
 * Ordering
 *
 *   unlatched  latch_drop stores with release  ->  latch_try swaps with acquire
 *              The thread that has the latch sees all that was done under it before.
 */
#ifndef RUNTIME_LATCH_H
#define RUNTIME_LATCH_H

#include <stdbool.h>

#include "runtime/atomic.h"
#include "runtime/role.h"

struct CAPABILITY("latch") latch {
	_Atomic bool taken;
};

static inline UNCHECKED bool latch_try(struct latch *latch) TAKES_IF_TRUE(*latch)
{
	return !swap_acquire(&latch->taken, true); /* unlatched */
}

/* Takes it after all. */
void latch_wait(struct latch *latch) TAKES(*latch);

static inline UNCHECKED void latch_take(struct latch *latch) TAKES(*latch)
{
	if (!latch_try(latch))
		latch_wait(latch);
}

static inline UNCHECKED void latch_drop(struct latch *latch) DROPS(*latch)
{
	store_release(&latch->taken, false); /* unlatched */
}

#endif
