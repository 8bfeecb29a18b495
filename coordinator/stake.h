/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * stake.h -- the parts of a fund's work that its three files share.
 *
 *     fund.c         opens, changes, closes
 *     stake.c        an ask: from what is in hand, or in a queue
 *     fund_turn.c    what the coordinator asks the pool, and what is answered
 *
 * Threads   Any, under the fund's lock, unless said.
 */
#ifndef COORDINATOR_STAKE_H
#define COORDINATOR_STAKE_H

#include "coordinator/fund.h"

#define NEVER ((mono){ UINT64_MAX })

static inline uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline struct stake *stake_at(struct list *place)
{
	return list_item(place, struct stake, locked.place);
}

/* Moves the till's units back into the claim; those of a window that is over are lost.  FUND-1 */
void stake_gather(struct stake *stake);
/* Moves the units in hand into the till; none, if the stake is closed.  FUND-1 */
void stake_fill(struct stake *stake, mono now);
bool stake_is_closed(const struct stake *stake);
/* It leaves, but units that it holds may still go back.  FUND-12 */
bool stake_awaits_holds(const struct stake *stake, mono now);
void stake_count_denied(struct stake *stake, enum gale_why why);
/* It has left: the fund keeps its counts. */
void stake_strike_off(struct stake *stake);

/* Those that wait, and for which there is an answer now, are put into done. */
void stake_serve(struct stake *stake, mono now, struct list *done);
void stake_fail_all(struct stake *stake, enum store_result result, uint64_t retry_us,
                    struct list *done);
void stake_close_all(struct stake *stake, struct list *done);
/* The same, of those that have units while the store cannot be asked.  FUND-8 */
void stake_serve_alone(struct stake *stake, mono now, struct list *done);
/* Without a lock: what is done may free the stake. */
void fund_tell_all(struct list *done);

#endif
