/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * gnuplot.h -- what gale sim has drawn: into a folder, as SVG, with its data beside it.
 *
 * Threads   The one of main.
 */
#ifndef TOOLS_GNUPLOT_H
#define TOOLS_GNUPLOT_H

#include <stdbool.h>

/* Is there such a folder, whose name a script can hold? */
bool gnuplot_may_draw_in(const char *folder);

/* Runs it; what is wrong is said on standard error, by gnuplot or here. */
bool gnuplot_run(const char *script);

#endif
