/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * answers.h -- what a node of a world may tell its callers.
 *
 * What does not hold is the world's fault.
 *
 * Invariants   SIM-4 and SIM-5 of world.h.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_ANSWERS_H
#define SIM_ANSWERS_H

#include "sim/world.h"

void answers_check_allow(struct world *world, const struct call *call);
void answers_check_denial(struct world *world, const struct call *call);
/* Of a call that had to wait. */
void answers_check_patience(struct world *world, const struct call *call);

#endif
