/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seen.h -- what a fleet has seen so far: sums over workers, nodes and processes.
 *
 * Threads   Plain numbers: their owner's.
 */
#ifndef TOOLS_SEEN_H
#define TOOLS_SEEN_H

#include <stdint.h>

#include "tools/histogram.h"

/* All but the reason are sums, and never fall. */
#define SEEN_COUNTERS(X)                                                               \
	X(ALLOWED) /* decisions are allowed and denied */                              \
	X(DENIED)                                                                      \
	X(REFUSED)       /* of denied: those that the rule did not decide */           \
	X(REFUSED_WHY)   /* the last one's; an enum gale_why */                        \
	X(DISAGREEMENTS) /* of allowed: those that fit no window */                    \
	X(STUCK)         /* workers that were not answered, and ask no more */         \
	X(STORE_CALLS)   /* round trips, or steps in memory */                         \
	X(LEASES)        /* that it granted */                                         \
	X(CONNECTS)      /* connections to it that were ready for use */               \
	X(FAILURES)      /* ends of connections, and attempts in vain */               \
	X(WRONG)         /* answers that could not be believed */

enum seen_counter {
#define X(id) SEEN_##id,
	SEEN_COUNTERS(X)
#undef X
	    SEEN_COUNT
};

struct seen {
	uint64_t counts[SEEN_COUNT];
	struct histogram latency_ns;
};

#endif
