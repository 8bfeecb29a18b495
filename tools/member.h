/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * member.h -- one process of a fleet of several: what gale fleet-worker does.
 *
 * It is started by the controller (processes.h) with the same flags, and with a socket
 * to it as MEMBER_FD.  It ends when the controller does, in whatever way.
 */
#ifndef TOOLS_MEMBER_H
#define TOOLS_MEMBER_H

#include "tools/flags.h"

#define MEMBER_FD 3
#define MEMBER_COMMAND "fleet-worker"

/* Returns an enum fleet_status. */
int member_run(const struct fleet_flags *flags);

#endif
