/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sleeps.h -- how often a thread of this process has gone to sleep.
 *
 * The kernel counts it for each.  One that gives its processor to others does not sleep.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_SLEEPS_H
#define TESTS_SUPPORT_SLEEPS_H

#include <stdint.h>
#include <sys/types.h>

uint64_t sleeps_of(pid_t thread);

/* The thread of that name; there must be one.  No other may end meanwhile. */
pid_t thread_called(const char *name);

#endif
