/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * scratch.h -- where a server of a test's own keeps its files.
 *
 * Threads   Any.
 */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

/* For what need not outlive a power failure: in memory, if there is much room, or /tmp. */
const char *scratch_place(void);

#endif
