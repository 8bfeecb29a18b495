/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ward_host.h -- the host of a node in a ward: it makes the node's calls, and keeps the promise
 * of guard.h that these end in time.
 *
 * The ward (ward.h) says what befalls the node; the host makes of that what its calls and the
 * backend do.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_WARD_HOST_H
#define SIM_WARD_HOST_H

#include "sim/ward.h"

/* All of it is. */
bool host_is_stopped(const struct ward_node *node);

/* A guard is new. */
void host_takes(struct ward_guard *guard);

/* As ward_enter, of a node that runs. */
bool host_enter(struct ward_guard *guard, uint32_t seat, uint32_t slots,
                enum gale_class of_class, uint64_t takes_us);

/* Is a share over?  And when to look next: node->fence_us. */
void host_look(struct ward_node *node);

/* It is stopped: the backend aborts its calls if it stays so. */
void host_falls_silent(struct ward_node *node);
/* It runs again: what ended at the backend meanwhile exits. */
void host_exit_ended(struct ward_node *node);
/* It is no more: no node has the slots of its calls, and calls at the backend end there. */
void host_forgets(struct ward_node *node);

/* What was to be done later. */
void host_free_deeds(struct ward *ward);

#endif
