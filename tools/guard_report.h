/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_report.h -- what a fleet behind guards has done so far, in lines and at the end.
 *
 * Threads   One: the owner of the run.
 */
#ifndef TOOLS_GUARD_REPORT_H
#define TOOLS_GUARD_REPORT_H

#include "tools/guard_flags.h"
#include "tools/guarded.h"

/* Of all nodes, since they began. */
struct guard_sums {
	uint64_t asked;
	uint64_t entered;
	uint64_t done;
	uint64_t aborted;
	uint64_t refused;
	uint64_t round_trips_us;
	uint64_t cuts;
	uint64_t fences;
	uint64_t refused_by[GALE_WHY_ROOM];
};

struct guard_view {
	const struct guard_flags *flags;
	double elapsed_s;
	uint64_t calls_per_s; /* of all nodes, as they were told */
	uint32_t nodes;
	const struct guarded *each;
	struct guard_sums sums;
	struct backend_counts backend;
};

void guard_view_sum(struct guard_view *view);

/* The most in flight above the limit. */
uint64_t guard_overshoot(const struct guard_view *view);

void guard_report_head(const struct guard_flags *flags, FILE *out);
/* Of the time since before. */
void guard_report_line(const struct guard_view *view, const struct guard_view *before,
                       FILE *out);
void guard_report_table(const struct guard_view *view, FILE *out);
void guard_report_json(const struct guard_view *view, FILE *out);

#endif
