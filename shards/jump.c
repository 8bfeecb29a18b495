/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * jump.c -- the latest that the store's clock can be, carried from answer to answer.
 *
 * Threads   The shard's actor.
 */
#include "shards/jump.h"

#include "engine/slot.h"

#define TOLERATED_NS UINT64_C(1000000000)
#define PAUSE_LEAST_US UINT64_C(1000000)
#define PAUSE_MOST_US UINT64_C(60000000)
#define MILLION UINT64_C(1000000)

/* The time that goes by on the store's clock meanwhile, at most: this one may be
 * slow, and that one fast. JUMP-1 */
static uint64_t most_between(mono from, mono to, uint32_t drift_ppm)
{
	uint64_t ns = to.ns > from.ns ? to.ns - from.ns : 0;
	uint64_t slow = MILLION - drift_ppm;

	return wide_div((uint128)ns * (MILLION + drift_ppm) + slow - 1, slow);
}

bool jump_note(struct jump *jump, uint64_t shown_us, mono sent, mono now,
               uint32_t drift_ppm)
{
	uint64_t shown_ns = shown_us * 1000;
	uint64_t carried = jump->most_ns + most_between(jump->at, now, drift_ppm);
	uint64_t most = shown_ns + 999 + most_between(sent, now, drift_ppm);

	if (jump->known && shown_ns > carried + TOLERATED_NS) {
		*jump = (struct jump){ 0 };
		return true;
	}
	if (jump->known && carried < most)
		most = carried; /* JUMP-2 */
	*jump = (struct jump){ .most_ns = most, .at = now, .known = true };
	return false;
}

uint64_t jump_pause_ns(uint64_t window_us)
{
	if (window_us > PAUSE_MOST_US)
		return PAUSE_MOST_US * 1000;
	return (window_us > PAUSE_LEAST_US ? window_us : PAUSE_LEAST_US) * 1000;
}
