/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_sim.h -- gale sim --tenants: a budget that nodes share among tenants, in virtual time.
 *
 * Threads   The one of main.
 */
#ifndef TOOLS_TENANT_SIM_H
#define TOOLS_TENANT_SIM_H

/* argv as after "gale sim"; returns the exit status. */
int tenant_sim_run(int argc, char *const *argv);

#endif
