/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * report.h -- what a run has shown, whether the bound held, and whether a demand was served.
 *
 * Threads   Pure: any thread, on its own report.
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "tools/flags.h"
#include "tools/seen.h"
#include "tools/tally.h"

enum verdict {
	VERDICT_HELD,     /* no key got more than its limit in any window */
	VERDICT_OVERSHOT, /* one did */
	VERDICT_SHORT,    /* of a demand less was served than the bar */
	VERDICT_UNPROVEN, /* some admissions fit no window, or the clock was set: it cannot
	                     be told; or a demand was not made */
};

/* What a fleet has to serve of what it owes: of all, and of each window. */
#define REPORT_BAR_MEAN 0.99
#define REPORT_BAR_WORST 0.95

/* What part of a demand has to be made, or the run says nothing of it. */
#define REPORT_BAR_ASKED 0.9

struct report {
	struct fleet_flags flags;
	double seconds;         /* of asking, as they were */
	uint64_t clock_step_us; /* by which the system's clock was set meanwhile, and a
	                             server's windows with it */
	uint64_t counts[SEEN_COUNT]; /* as the workers saw it */
	uint64_t p50_ns;
	uint64_t p99_ns;
	struct tally_totals tally;
	struct tally_window windows[TALLY_HISTORY]; /* the last ones */
	size_t window_count;
};

enum verdict report_verdict(const struct report *report);
const char *report_verdict_name(enum verdict verdict);

/* Takes over the sums and the durations. */
void report_see(struct report *report, const struct seen *seen);

/* What the command exits with: 0 only if the bound held, and a demand was served. */
int report_status(const struct report *report);

/* For people. */
void report_table(const struct report *report, FILE *out);

/* One JSON object and a line's end. */
void report_json(const struct report *report, FILE *out);

#endif
