/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * tenant_fleet.h -- gale fleet --tenants: nodes that share one budget among tenants.
 *
 * Threads   The one of main.
 */
#ifndef TOOLS_TENANT_FLEET_H
#define TOOLS_TENANT_FLEET_H

#include "tools/fleet.h"
#include "tools/tenant_flags.h"

enum fleet_status tenant_fleet_run(const struct tenant_flags *flags);
void tenant_fleet_help(FILE *out);

#endif
