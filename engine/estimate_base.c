/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * estimate_base.c -- laws that hold a round trip against the best one: AIMD and GRADIENT.
 *
 * The best is the least that the mean round trip of some 256 answers was in this period of time
 * and the one before: it is forgotten by time and not by a count of answers, and a few fast
 * answers among slow ones are not taken for the rule.  A drop is never a round trip.
 *
 *     AIMD       late or dropped: 9/10 of the limit; else, if it is used: 1 more
 *     GRADIENT   g = 3/2 best / mean, from 1/2 to 1; 1/2 for a drop
 *                limit = 4/5 limit + 1/5 (g limit + root of the limit)
 *                less in any window, more only if the ceiling in force is used
 */
#include "engine/estimate.h"

#define PERIOD_NS UINT64_C(30000000000)
#define Q16 UINT64_C(65536)
#define MEAN_OF 256   /* answers */
#define MEAN_LEAST 64 /* with fewer it is not held for the best */

__extension__ typedef unsigned __int128 wide;

static void note_mean(struct estimate_base *base, uint64_t rtt_ns, uint64_t ok)
{
	base->answers += ok;
	if (base->answers > MEAN_OF)
		base->answers = ok > MEAN_OF ? ok : MEAN_OF;
	base->mean_ns = (uint64_t)(((wide)base->mean_ns * (base->answers - ok) +
	                            (wide)rtt_ns * ok) /
	                           base->answers);
}

static void note_base(struct estimate_base *base, uint64_t now_ns, uint64_t rtt_ns,
                      uint64_t ok)
{
	bool is_rough = base->answers < MEAN_LEAST;

	if (ok == 0)
		return;
	note_mean(base, rtt_ns, ok);
	if (now_ns >= base->turns_ns) {
		base->last_ns = base->now_ns;
		base->now_ns = 0;
		base->turns_ns = now_ns + PERIOD_NS;
	}
	if (base->now_ns == 0 || base->mean_ns < base->now_ns || is_rough)
		base->now_ns = base->mean_ns;
}

static uint64_t best_ns(const struct estimate_base *base)
{
	return base->last_ns != 0 && base->last_ns < base->now_ns ? base->last_ns
	                                                          : base->now_ns;
}

void aimd_learn(struct estimate *estimate, const struct estimate_window *window,
                uint32_t in_force)
{
	note_base(&estimate->base, window->now_ns, estimate->rtt_ns, window->ok);
	if (window->dropped > 0 || estimate->rtt_ns > 2 * best_ns(&estimate->base))
		estimate->limit = estimate->limit * 9 / 10;
	else if (window->ok > 0 && estimate_used(window, in_force))
		estimate->limit += ESTIMATE_Q8;
}

static uint64_t gradient_q16(const struct estimate *estimate,
                             const struct estimate_window *window)
{
	uint64_t best = best_ns(&estimate->base);
	uint64_t rtt = estimate->rtt_ns;

	if (window->dropped > window->ok / 8)
		return Q16 / 2;
	if (rtt <= best + best / 2)
		return Q16;
	if (rtt >= 3 * best)
		return Q16 / 2;
	return (best + best / 2) * Q16 / rtt;
}

void gradient_learn(struct estimate *estimate, const struct estimate_window *window,
                    uint32_t in_force)
{
	uint64_t limit = estimate->limit, next;

	if (window->ok == 0 && window->dropped == 0)
		return;
	note_base(&estimate->base, window->now_ns, estimate->rtt_ns, window->ok);
	next = limit * gradient_q16(estimate, window) / Q16 +
	       estimate_root(limit * ESTIMATE_Q8);
	next = (4 * limit + next) / 5;
	if (next < limit ||
	    estimate_used(window, in_force)) /* ESTIMATE-2, ESTIMATE-5 */
		estimate->limit = next;
}

void gradient_probed(struct estimate *estimate, uint64_t now_ns)
{
	uint64_t ok = estimate->during.ok;
	uint64_t rtt = ok > 0 ? estimate->during.rtt_sum_ns / ok : 0;

	if (ok == 0)
		return;
	estimate->base = (struct estimate_base){ .mean_ns = rtt,
		                                 .answers = MEAN_LEAST,
		                                 .now_ns = rtt,
		                                 .turns_ns = now_ns + PERIOD_NS };
}
