/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * quarantine.h -- how long a server that has forgotten grants nothing.       (law L12)
 *
 * Units that it granted before may still be out with nodes that live.  They are surely over
 * when the window that was open then has turned, or when all that a meter or a queue can have
 * promised is past; but no call is kept waiting longer than most_us.
 *
 * The units may have been granted by another server, that this one has taken over from, and
 * whose clock was ahead of this one's: by QUARANTINE_SKEW_US at most.
 *
 * Threads   Pure: any.
 */
#ifndef STORES_QUARANTINE_H
#define STORES_QUARANTINE_H

#include "engine/rule.h"

#define QUARANTINE_SKEW_US UINT64_C(1000000)
#define QUARANTINE_DEFAULT_US UINT64_C(60000000)

/* By the server's clock, if it forgot at since_us; 0 if it never did. */
uint64_t quarantine_until(const struct rule *rule, uint64_t since_us, uint64_t most_us);

/* The same of windows of that length. */
uint64_t quarantine_of_windows(uint64_t period_us, uint64_t since_us, uint64_t most_us);

#endif
