/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turnstiles.h -- what seats and a coordinator do at a turnstile at the same time.
 *
 * programs.c makes programs of these: a beginning, threads, and a check at the end.
 *
 * Threads   See model.h.
 */
#ifndef TESTS_INTERLEAVE_TURNSTILES_H
#define TESTS_INTERLEAVE_TURNSTILES_H

/* One slot; a call of each seat wants it. */
void begin_one_slot(void);
void seat_enters_and_exits(void);
void other_enters_and_exits(void);

/* A call of each seat in flight; and cells that may keep two slots each. */
void begin_without_cells(void);
void begin_keeping(void);
void seat_exits(void);
void other_exits(void);
void seat_exits_and_enters(void);
void coordinator_calls_back_twice(void);
void coordinator_fences(void);
void coordinator_closes(void);

/* No call in flight; a slot that each cell keeps. */
void begin_kept(void);
void coordinator_lets_keep_nothing(void);
void coordinator_lowers(void);

/* Its share is 0, and what is in flight is reported. */
void coordinator_leaves(void);

/* No slot is free but the one that the first seat keeps. */
void begin_full_but_for_a_cell(void);
void other_enters_and_exits_all(void);
void seat_enters(void);
void other_enters(void);

/* What is in flight is what the seats have, and what their cells keep.  TURNSTILE-1 */
void all_slots_are_there(void);
/* The same; and what came after the fence found it.  TURNSTILE-2 */
void nothing_passed_the_fence(void);
/* The same; and no more is in flight than a guard that leaves has reported.  FLEET-5 */
void no_more_than_was_reported(void);
/* The same; and a cell that may keep nothing keeps nothing.  TURNSTILE-3 */
void nothing_is_kept(void);
/* The same; and one alone was the last.  TURNSTILE-4 */
void one_was_the_last(void);

#endif
