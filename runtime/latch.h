/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * latch.h -- a lock of one word that an ask may try, and never waits for.
 *
 * It calls nothing, so what holds it can be inside of an ask.  All zero, it is open.
 *
 * Threads   Any.  Who must have it tries again after a pause, and is no ask.
 *
 * Ordering
 *
 *   unlatched  latch_drop stores with release  ->  latch_try swaps with acquire
 *              Who has the latch sees all that was done under it before.
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

static inline UNCHECKED void latch_drop(struct latch *latch) DROPS(*latch)
{
	store_release(&latch->taken, false); /* unlatched */
}

#endif
