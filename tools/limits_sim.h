/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * limits_sim.h -- gale sim --limits: calls that several limits must admit, and holds, in virtual time.
 *
 * Threads   The one of main.
 */
#ifndef TOOLS_LIMITS_SIM_H
#define TOOLS_LIMITS_SIM_H

#include <stdbool.h>

/* Is --limits or --holds among the arguments, as after "gale sim"? */
bool limits_sim_wanted(int argc, char *const *argv);

int limits_sim_run(int argc, char *const *argv);

#endif
