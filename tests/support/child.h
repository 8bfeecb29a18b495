/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* child.h -- what may end a process happens in a child. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

/* A child that sleeps this long is ended by SIGALRM. */
#define CHILD_SECONDS 40

/* Runs work(arg) in a child made by fork(), which exits with what it returns.  Returns
 * that, or minus the number of the signal that ended the child. */
int child_run(int (*work)(void *arg), void *arg);

#endif
