/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * standstill.h -- for how long the machine let nobody go on.
 *
 * Machines of others' may stand still for a second while much runs on them.  Who has heard
 * nothing from a server for a second lets the connection go, so then a test that says
 * nothing gets lost may see something lost.  It may ask for that, and for nothing else.
 *
 * Threads   standstill_watch: one, once.  standstill_seen: any.
 */
#ifndef TESTS_SUPPORT_STANDSTILL_H
#define TESTS_SUPPORT_STANDSTILL_H

#include <stdbool.h>

/* A thread that only naps sees to it from here on, until the process ends. */
void standstill_watch(void);

/* For half a second or longer, since the watch began. */
bool standstill_seen(void);

#endif
