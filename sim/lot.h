/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lot.h -- what the library takes from outside though it has a clock from its host: lots,
 * and how long it has really waited.
 *
 * A program that is linked with sim_dep has two functions go through lot.c.  While a world
 * is open,
 *
 *   random_fill      follows from the seed (where the embedded store keeps a key decides
 *                    when it is forgotten after its end)
 *   patience_now_ns  is a second later each time: a node does not wait for what cannot come
 *                    before it returns (one that closes, for the store's replies)
 *
 * and else they are what they were.  A world that is told of each wait may let other nodes have
 * turns: then it is only a millisecond later each time, as it is in that world.
 *
 * Threads   One, as long as a world is open.
 */
#ifndef SIM_LOT_H
#define SIM_LOT_H

#include <stdint.h>

void lot_begin(uint64_t seed);
void lot_end(void);

/* A node waits for a millisecond, as long as there is a wait to call; NULL: there is none. */
void lot_on_wait(void (*wait)(void *self), void *self);

#endif
