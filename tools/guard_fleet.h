/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_fleet.h -- gale fleet --guard: nodes in front of one backend, and how many of their
 * calls are in flight there.
 */
#ifndef TOOLS_GUARD_FLEET_H
#define TOOLS_GUARD_FLEET_H

#include "tools/fleet.h"
#include "tools/guard_flags.h"

/* Once per process: an interrupt ends the run early, with a report. */
enum fleet_status guard_fleet_run(const struct guard_flags *flags);

void guard_fleet_help(FILE *out);

#endif
