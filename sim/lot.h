/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * lot.h -- what the library draws by lot.
 *
 * A program that is linked with sim_dep has random_fill of runtime/random.h go through
 * lot.c: while a world is open its bytes follow from the seed (where the embedded store
 * keeps a key decides when it is forgotten after its end), and else they are the kernel's.
 *
 * Threads   One, as long as a world is open.
 */
#ifndef SIM_LOT_H
#define SIM_LOT_H

#include <stdint.h>

void lot_begin(uint64_t seed);
void lot_end(void);

#endif
