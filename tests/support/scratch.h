/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scratch.h -- where a server of a test's own keeps its files.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <stddef.h>

/* A new folder for what need not outlive a power failure: in memory, if there is much room, or
 * in /tmp.  It is called gale-NAME-, and six letters. */
void scratch_make(char *folder, size_t size, const char *name);

#endif
