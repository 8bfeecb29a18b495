/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * course.h -- what a trip does next, when a server has told what became of its job.
 *
 * A job is settled by what was told, or goes again: a value that is read is swapped, one
 * that others changed meanwhile is read again, and a server that has forgotten what this
 * node knows is reminded of it before it is asked to lend.
 *
 *     asked to lend in another life: read -> swap, if less is known there -> lend
 *     a rule that servers cannot step: read -> swap -> done, or read again
 *     a value that another rule has written: the same, after it was asked in vain
 *
 * Threads   All of it: the shard's actor.
 */
#ifndef STORES_COURSE_H
#define STORES_COURSE_H

#include "stores/lane.h"

/* Before its job is sent to a server in its lane's life. */
void course_start(struct trip *trip);

/* Tells the call that waits, or has it go again.  The caller enlists its lane, after all that
 * came with it: what is told is true until then. */
void course_go_on(struct lanes *lanes, struct trip *trip,
                  const struct remote_told *told);

#endif
