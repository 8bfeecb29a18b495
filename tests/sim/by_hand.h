/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * by_hand.h -- a leased fleet in one world, whose calls a test makes by hand.
 *
 * Threads   One: a test's.
 */
#ifndef TESTS_SIM_BY_HAND_H
#define TESTS_SIM_BY_HAND_H

#include "sim/world.h"

#define WINDOW GALE_SECONDS(1)

extern struct world w; /* too large for a stack */

/* So many nodes of one seat and one shard, on a net without delay; batch 0: learned sizes. */
struct world_plan plan_of(uint64_t limit, uint64_t batch, uint32_t nodes);

/* One node that asks for five of ten, at a store that is a millisecond away and may misbehave. */
struct world_plan bad_plan(void);

uint64_t start_of_window(uint64_t window);
void run_to(uint64_t window, uint64_t into_us);
/* It has kept its laws. */
void world_ends(void);

/* Asks for one unit of key 0 so many times, by each node in its turn; how many were admitted. */
uint64_t ask_times(uint64_t times);
/* Each of these nodes asks for a unit of key 0 every millisecond. */
void steady_asks(uint64_t window, uint64_t from_ms, uint64_t to_ms,
                 uint32_t first_node);

enum gale_verdict verdict_of(const struct call *call);
void told(const struct call *call, enum gale_verdict verdict, enum gale_why why);

/* By the first node. */
uint64_t counted(const char *name);

#endif
