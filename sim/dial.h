/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * dial.h -- the clock of a node in virtual time: it runs fast or slow, and is wrong.
 *
 * Threads   The simulator's.
 */
#ifndef SIM_DIAL_H
#define SIM_DIAL_H

#include "sim/net.h"

struct dial {
	struct gale_clock clock; /* first */
	const struct agenda *agenda;
	int64_t rate_ppm;  /* so much too fast */
	uint64_t start_us; /* true time, when it was opened, and ... */
	uint64_t boot_ns;  /* ... what it showed then */
};

void dial_open(struct dial *dial, const struct agenda *agenda, int64_t rate_ppm,
               uint64_t boot_ns);

/* What it shows at a true time, that is not before it was opened. */
uint64_t dial_at(const struct dial *dial, uint64_t at_us);

/* The first true instant at which it has reached that; UINT64_MAX: never. */
uint64_t dial_true(const struct dial *dial, uint64_t boot_ns);

#endif
