/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * screen.h -- shows a run while it runs.
 *
 * On a terminal, a few lines that are drawn anew in place; elsewhere one line for each
 * second; or nothing at all.
 */
#ifndef TOOLS_SCREEN_H
#define TOOLS_SCREEN_H

#include <stdint.h>
#include <stdio.h>

#include "tools/flags.h"
#include "tools/tally.h"

#define SCREEN_WINDOWS 3 /* finished ones that are shown */

enum screen_style {
	SCREEN_OFF,
	SCREEN_PLAIN,
	SCREEN_LIVE,
};

struct screen {
	FILE *out;
	enum screen_style style;
	int columns;
	int lines; /* drawn, and to be drawn over */
};

/* What is seen at one instant. */
struct frame {
	const struct fleet_flags *flags;
	double elapsed_s;
	uint64_t decisions;
	uint64_t decisions_per_s; /* since the last frame */
	uint64_t allowed;
	uint64_t p50_ns;
	uint64_t p99_ns;
	uint64_t store_calls;
	struct tally_totals total; /* of windows that are finished */
	struct tally_window now;
	struct tally_window last[SCREEN_WINDOWS]; /* oldest first */
	size_t last_count;
};

/* Live if out is a terminal that can do it; else plain, or off if not even_plain. */
void screen_open(struct screen *screen, FILE *out, bool even_plain);

/* How long to wait between two frames; 0: there are none to be drawn. */
uint64_t screen_period_us(const struct screen *screen);

void screen_draw(struct screen *screen, const struct frame *frame);

#endif
