/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * latch.h -- in place of runtime/latch.h: a latch that the model takes in one step.
 *
 * A wait for the real one is a loop, of which a model has no end.  The program "latch" shows in all
 * orders that the real one is held by one thread at a time, and what it orders.
 */
#ifndef RUNTIME_LATCH_H
#define RUNTIME_LATCH_H

#include "runtime/role.h"

struct CAPABILITY("latch") latch {
	char at; /* it is known by its address */
};

void latch_take(struct latch *latch) TAKES(*latch);
void latch_drop(struct latch *latch) DROPS(*latch);

#endif
