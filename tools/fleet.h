/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fleet.h -- gale fleet: many nodes, one store, and a count of what went through.
 */
#ifndef TOOLS_FLEET_H
#define TOOLS_FLEET_H

#include "tools/flags.h"

/* How the command exits. */
enum fleet_status {
	FLEET_HELD = 0,
	FLEET_BROKEN = 1,  /* overshot, or it cannot be told */
	FLEET_BAD_USE = 2, /* a flag is wrong */
	FLEET_FAILED = 3,  /* it could not run to its end, or not say how it went */
};

/* Runs the fleet, shows it, prints what came of it.  Once per process: an interrupt
 * ends the run early, with a report. */
enum fleet_status fleet_run(const struct fleet_flags *flags);

void fleet_help(FILE *out);

#endif
