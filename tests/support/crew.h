/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* crew.h -- threads that all begin at the same moment. */
#ifndef TESTS_SUPPORT_CREW_H
#define TESTS_SUPPORT_CREW_H

#define CREW_MOST 256

/* Runs work(arg, 0) to work(arg, count - 1), each on a thread of its own that begins
 * when all are there; returns when all have ended. */
void crew_run(unsigned count, void (*work)(void *arg, unsigned who), void *arg);

#endif
