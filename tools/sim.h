/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sim.h -- gale sim: a fleet in virtual time, and whether it keeps its limit.
 */
#ifndef TOOLS_SIM_H
#define TOOLS_SIM_H

/* Runs each seed, prints what came of it.  argv as after "gale sim".  Returns how to exit,
 * as enum fleet_status says. */
int sim_run(int argc, char *const *argv);

#endif
