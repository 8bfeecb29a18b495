/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* want.c -- what is wanted rises at once, and falls in a straight line. */
#include "engine/want.h"

#define ONE 256 /* parts of a slot */
#define US 1000 /* ns; products of slots and times stay below 2^64 */

/* Rounded up, so that it moves. */
static uint64_t fallen(uint64_t from, uint64_t to, uint64_t after_ns, uint64_t slow_ns)
{
	uint64_t slow_us = slow_ns / US;

	if (after_ns >= slow_ns || slow_us == 0)
		return to;
	return from - ((from - to) * (after_ns / US) + slow_us - 1) / slow_us;
}

void want_note(struct want *want, uint32_t in_use, bool limited, uint64_t beat_ns,
               mono now)
{
	uint64_t slow_ns = WANT_BEATS * beat_ns;
	uint64_t is = (uint64_t)in_use * ONE;

	if (is >= want->demand)
		want->demand = is;
	else
		want->demand =
		    fallen(want->demand, is, now.ns - want->noted.ns, slow_ns);
	if (limited)
		want->until = mono_after(now, slow_ns);
	want->noted = now;
}

uint32_t want_demand(const struct want *want)
{
	return (uint32_t)((want->demand + ONE - 1) / ONE);
}

bool want_is_limited(const struct want *want)
{
	return !mono_reached(want->noted, want->until);
}
