/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * guard_sim.h -- gale sim --guard: laws of a ceiling in front of a backend in virtual time.
 *
 * Threads   One.
 */
#ifndef TOOLS_GUARD_SIM_H
#define TOOLS_GUARD_SIM_H

#include <stdbool.h>

/* Is --guard among the arguments, as after "gale sim"? */
bool guard_sim_wanted(int argc, char *const *argv);

int guard_sim_run(int argc, char *const *argv);

#endif
