/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * estimate_knee.c -- what the backend works on without a queue, and as much more as pays.
 *
 *     delivered                 ________________     B = rate x round trip without a queue
 *     rate                 /'''                      target = B + 4 sqrt(B) + 1
 *                        /                           cap: less than that, where the upper
 *                      /                                  part of the limit buys no rate
 *                     +----B------target-----> limit
 *
 * A drain probe halves the ceiling: what is then in flight meets little or no queue, and its
 * mean round trip is the knee.  A slope probe takes a part of the ceiling away and compares the
 * rates.  A rate that stays the same says that the part was for nothing; one that rises, that
 * calls are in each other's way.  The cap moves by as much as the loss is off LOSS_WANTED, so
 * that the noise of one probe moves it little.
 */
#include "engine/estimate.h"

#ifndef SLOPE_PART
#define SLOPE_PART 12 /* sixteenths of the ceiling that a probe leaves open */
#define DRAIN_PART 8
#define DRAIN_EACH 3  /* of so many probes one is a drain */
#define LOSS_WANTED 3 /* percent of the rate that the upper part has to buy */
#define LOSS_MOST 25  /* percent */
#define GAIN 1        /* the cap moves by this times (loss - wanted) */
#define ROOTS 4
#define SMOOTH 4
#define HEAVY 16
#define RELAX 64
#endif

__extension__ typedef unsigned __int128 wide;

void knee_init(struct estimate *estimate)
{
	estimate->knee.cap = (uint64_t)estimate->set.ceiling * ESTIMATE_Q8;
}

uint32_t knee_probe_part(enum estimate_probe which)
{
	return which == ESTIMATE_PROBE_DRAIN ? DRAIN_PART : SLOPE_PART;
}

enum estimate_probe knee_next_probe(const struct estimate *estimate)
{
	return estimate->knee.probes % DRAIN_EACH == 0 ? ESTIMATE_PROBE_DRAIN
	                                               : ESTIMATE_PROBE_SLOPE;
}

uint64_t knee_busy(const struct estimate *estimate)
{
	const struct estimate_knee *knee = &estimate->knee;
	wide busy =
	    (wide)knee->rate * knee->knee_ns * ESTIMATE_Q8 / UINT64_C(1000000000000);
	uint64_t most = (uint64_t)estimate->set.ceiling * ESTIMATE_Q8;

	return busy < most ? (uint64_t)busy : most;
}

static uint64_t target(const struct estimate *estimate)
{
	uint64_t busy = knee_busy(estimate);
	uint64_t above = busy + ROOTS * estimate_root(busy * ESTIMATE_Q8) + ESTIMATE_Q8;

	return above < estimate->knee.cap ? above : estimate->knee.cap;
}

static void approach(struct estimate *estimate, uint64_t goal)
{
	uint64_t up = estimate->limit + estimate->limit / 4 + ESTIMATE_Q8;
	uint64_t down = estimate->limit - estimate->limit * 15 / 100;

	if (goal > estimate->limit)
		estimate->limit = goal < up ? goal : up;
	else
		estimate->limit = goal > down ? goal : down;
}

static void note_rate(struct estimate_knee *knee, const struct estimate_window *window)
{
	uint64_t rate = estimate_rate(window->ok, window->length_ns);

	if (knee->rate == 0)
		knee->rate = rate;
	else
		knee->rate += rate / SMOOTH - knee->rate / SMOOTH;
}

static bool is_failing(const struct estimate_window *window)
{
	return window->dropped > window->ok / 8;
}

void knee_learn(struct estimate *estimate, const struct estimate_window *window)
{
	struct estimate_knee *knee = &estimate->knee;

	knee->limited = window->refused > 0;
	if (is_failing(window)) { /* ESTIMATE-3 */
		estimate->limit -= estimate->limit / 8;
		knee->before = (struct estimate_sum){ 0 };
		return;
	}
	if (window->ok == 0)
		return;
	estimate_add(&knee->before, window);
	note_rate(knee, window);
	if (knee->knee_ns == 0 || knee->knee_ns > estimate->rtt_ns)
		knee->knee_ns = estimate->rtt_ns;
	if (!knee->limited) { /* ESTIMATE-2 */
		knee->knee_ns += (estimate->rtt_ns - knee->knee_ns) / 8;
		return;
	}
	if ((uint64_t)window->refused * HEAVY < window->ok)
		knee->cap += knee->cap / RELAX;
	approach(estimate, target(estimate));
}

static void note_slope(struct estimate *estimate)
{
	struct estimate_knee *knee = &estimate->knee;
	uint64_t before = estimate_rate(knee->before.ok, knee->before.length_ns);
	uint64_t during =
	    estimate_rate(estimate->during.ok, estimate->during.length_ns);
	int64_t loss;

	if (before == 0 || knee->before.refused * HEAVY < knee->before.ok)
		return;
	loss =
	    during < 2 * before ? 10000 - (int64_t)(during * 10000 / before) : -10000;
	if (loss < -100 * LOSS_MOST)
		loss = -100 * LOSS_MOST;
	if (loss > 100 * LOSS_MOST)
		loss = 100 * LOSS_MOST;
	knee->cap = knee->forced;
	knee->cap =
	    (uint64_t)((int64_t)knee->cap +
	               (int64_t)knee->cap * GAIN * (loss - 100 * LOSS_WANTED) / 10000);
	knee->cap = estimate_clamp(estimate, knee->cap);
}

void knee_probed(struct estimate *estimate)
{
	struct estimate_knee *knee = &estimate->knee;
	uint64_t rtt;

	knee->probes++;
	if (estimate->during.ok > 0 && estimate->which == ESTIMATE_PROBE_DRAIN) {
		rtt = estimate->during.rtt_sum_ns / estimate->during.ok;
		knee->knee_ns = (knee->knee_ns + rtt) / 2;
	}
	if (estimate->during.ok > 0 && estimate->which == ESTIMATE_PROBE_SLOPE)
		note_slope(estimate);
	knee->before = (struct estimate_sum){ 0 };
}
