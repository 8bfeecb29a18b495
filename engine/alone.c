/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * alone.c -- windows of a node's own.
 */
#include "engine/alone.h"

#include "engine/slot.h"

#define DRIFT 1000000

void alone_init(struct alone *alone, uint64_t units, uint64_t period_us,
                uint32_t drift_ppm)
{
	uint128 ns = (uint128)period_us * 1000;

	ns += ns * 2 * drift_ppm / DRIFT + 1; /* ALONE-2 */
	*alone =
	    (struct alone){ .units = units,
		            .window_ns = ns < UINT64_MAX ? (uint64_t)ns : UINT64_MAX };
}

uint64_t alone_left(const struct alone *alone, mono now)
{
	uint64_t taken = mono_reached(now, alone->end) ? 0 : alone->taken;

	return taken < alone->units ? alone->units - taken : 0; /* ALONE-1 */
}

bool alone_take(struct alone *alone, uint64_t units, mono now)
{
	if (units > alone_left(alone, now))
		return false;
	if (mono_reached(now, alone->end)) {
		alone->end = mono_after(now, alone->window_ns);
		alone->taken = 0;
	}
	alone->taken += units;
	return true;
}
