/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * kept.h -- units that were taken for a call, and may go back into their own window.
 *
 *     take ---> kept ---> spent: nothing more is to be done
 *                 '-----> given back, all or a part: into the purse that they are from
 *
 * The word that units were taken from says until when they live.  As long as they do, their
 * window is the one that the purse is of, and whoever asks next may have them.  After that they
 * are worth nothing, and nothing is put back.
 *
 * Invariants
 *
 *   KEPT-1  What goes back was taken, goes back once, and does not live longer than the longest
 *           of its window's units in the purse. (L1, L2)
 *   KEPT-2  Nothing goes back into a purse that was made void since. (JUMP-3)
 *   KEPT-3  While a purse has a debt, what comes into it pays that first: who owes and who puts
 *           something in each look at what the other has done. (HOLD-3)
 *
 * Threads   Any: within a grace period, or with a pin on the purse.
 *
 * Ordering
 *
 *   owed      who owes adds to the debt, fences, then loads credit  ->  who puts something in
 *             swaps credit, fences, then loads the debt
 *             One of both sees what the other did.
 */
#ifndef SHARDS_KEPT_H
#define SHARDS_KEPT_H

#include "engine/hold.h"
#include "shards/local.h"
#include "shards/purses.h"

struct kept_units {
	struct purse *purse; /* NULL: nothing is kept */
	uint64_t word;       /* as engine/credit.h: units, and until when they live */
	uint64_t voids;      /* of the purse's dues, before they were taken */
};

/* Asked whenever units are about to go back: later than what was seen of the purse. */
struct kept_clock {
	mono (*now)(struct kept_clock *self);
};

static ALWAYS_INLINE uint64_t kept_voids(const struct purse *purse)
{
	return load_acquire(purse_dues(purse)) / DUES_VOID; /* wiped */
}

/* Cost was taken from a purse with so many voids, and told was told of it. */
static ALWAYS_INLINE struct kept_units
kept_of(struct purse *purse, uint64_t voids, uint64_t cost, struct told told, mono now)
{
	mono dies = { now.ns + told.left_ns };

	return (struct kept_units){ purse, credit_until(dies, cost), voids };
}

/* So many of the units that are kept go back, if they are worth something; kept has the rest. */
void kept_give_back(struct kept_units *kept, uint64_t units, struct kept_clock *clock);

/* So many units more are used than were kept: a debt of their window.  There is room for it. */
void kept_owe(const struct kept_units *kept, uint64_t over, struct kept_clock *clock);
/* After something was put into what all share: pays what was owed meanwhile. */
void kept_pay_after_put(struct purse *purse, struct kept_clock *clock);
/* Pays from what all share in the purse. */
void kept_pay(struct purse *purse, struct kept_clock *clock);
/* How many of these units of the purse's window are left when its debt is paid. */
uint64_t kept_pay_first(struct purse *purse, uint64_t word, struct kept_clock *clock);
/* Units that the purse owes. */
uint64_t kept_debt(const struct purse *purse, mono now);

#endif
