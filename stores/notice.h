/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * notice.h -- when a quarantine begins and when it is over: one line each for all shards.
 *
 * Each shard has a client of its own, and each of them is told by the server that it grants
 * nothing yet.  How long that lasts depends on the rule that was asked about; the notice
 * lasts as long as the longest.
 *
 * Threads   notice_begin, notice_turn: any, at once.
 *
 * Ordering
 *
 *   until_ns is relaxed: it publishes nothing but itself.
 */
#ifndef STORES_NOTICE_H
#define STORES_NOTICE_H

#include "engine/clock.h"
#include "runtime/atomic.h"

struct quarantine_notice {
	_Atomic uint64_t until_ns; /* 0: there is no quarantine */
};

/* A call is to wait for so long.  True: none was told to before; say so. */
bool notice_begin(struct quarantine_notice *notice, mono now, uint64_t left_us);

/* True: it is over just now; say so.  *ret_due is when to ask again. */
bool notice_turn(struct quarantine_notice *notice, mono now, mono *ret_due);

#endif
