/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * funds.h -- what seats and a coordinator do at a shared budget at the same time.
 *
 * programs.c makes programs of these: a beginning, threads, and a check at the end.
 *
 * Threads   See model.h.
 */
#ifndef TESTS_INTERLEAVE_FUNDS_H
#define TESTS_INTERLEAVE_FUNDS_H

/* A tenant that has nothing; and one that has units in its till. */
void begin_fund(void);
void begin_fund_with_units(void);
/* A call holds units, and gives all of them back, or none. */
void begin_fund_with_hold(void);
void fund_seat_settles(void);
void fund_seat_settles_as_used(void);

/* A call that waits. */
void fund_seat_asks(void);
void fund_other_asks(void);
void fund_seat_asks_and_gives_up(void);
/* A call that is decided at once, from the till if that has enough. */
void fund_seat_takes(void);
void fund_other_takes(void);

/* Two turns, as the actor takes them; and the look of whoever wants counts. */
void coordinator_turns_twice(void);
void anybody_counts(void);
void anybody_closes(void);

/* The coordinator goes on while it is awake.  Then nobody waits, unless it has given up: DUE-1,
 * FUND-10; and what was taken is what was allowed: FUND-1. */
void nobody_waits_for_ever(void);
/* The same; and what was not used has gone back.  FUND-3 */
void all_units_go_back(void);

#endif
