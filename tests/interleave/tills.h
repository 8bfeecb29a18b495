/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tills.h -- what seats do at the purse of a tenant at the same time.
 *
 * programs.c makes programs of these: a beginning, threads, and a check at the end.
 *
 * Threads   See model.h.
 */
#ifndef TESTS_INTERLEAVE_TILLS_H
#define TESTS_INTERLEAVE_TILLS_H

/* A tenant that has units in its purse, and two calls that hold units of it; another one is absent. */
void begin_till(void);
/* One call holds units of it; the seats have no cells; the kernel makes no thread pass a fence. */
void begin_till_with_a_call(void);
void begin_till_without_cells(void);
void begin_till_unfenced(void);

/* One seat, with a call that has begun. */
void till_seat_holds(void);
void till_seat_grows(void);
void till_seat_is_refused(void);
void till_seat_commits_less(void);
void till_seat_commits_more(void);
/* Another seat: with the other call, for the other tenant, which comes, or in the next window. */
void till_other_holds(void);
void till_other_commits_less(void);
void till_other_ends_call(void);
void till_other_tenant_comes(void);
void till_other_turns_window(void);
/* The tenant is taken out. */
void till_is_closed(void);
void till_other_commits_and_closes(void);
void till_budget_is_closed(void);
void till_other_asks(void);

/* As much counts as used as is held or was committed, and no more than the limit.  TILL-2, TENANT-8 */
void till_has_all_units(void);
/* The same, and no denial is remembered that was before units went back. */
void till_remembers_no_denial(void);
void till_is_empty(void);
/* The tenant, which was closed, is gone if its calls have ended, and not before.  TENANT-9 */
void till_lives_while_held(void);

#endif
