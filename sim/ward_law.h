/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ward_law.h -- what may be in flight in a ward, counted without gale.
 *
 * Invariants   SIM-9, SIM-10 and SIM-12 of ward.h; SIM-11 is ward.c's, SIM-13 and SIM-14 are
 *              ward_script.c's.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_WARD_LAW_H
#define SIM_WARD_LAW_H

#include "sim/ward.h"

/* The store has served a report. */
void ward_law_beaten(struct ward *ward, const struct remote_job *job,
                     const struct remote_told *told);

/* A call is at the backend, and is there no more. */
void ward_law_enters(struct ward *ward, const struct ward_call *call);
void ward_law_leaves(struct ward *ward, const struct ward_call *call);

#endif
