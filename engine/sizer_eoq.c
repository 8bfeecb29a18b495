/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizer_eoq.c -- one size for a whole window, found by following the slope of its cost.
 *
 * At size b a demand of D costs c D/b for the round trips and h b/2 for what is left over.
 * Each window moves ln b against the slope of that, by steps which shrink as the squares
 * of the slopes add up (AdaGrad).
 *
 * The sum is never forgotten: a key that was once busy follows a change slowly.  It is
 * here because it is what some hosts know; LEARNED does not have this fault.
 */
#include "engine/sizer.h"

#include "engine/real.h"

double eoq_optimum(double order_cost, double strand_penalty, double demand)
{
	return real_root(2 * order_cost * demand / strand_penalty);
}

double sizer_eoq_continuous(const struct sizing *sizing, const struct sizer_eoq *eoq)
{
	if (eoq->sum_squares == 0) /* SIZER-3 */
		return sizing_initial(sizing);
	return sizing_clamp(sizing, real_exp(eoq->x));
}

/* The first step has this length whatever the slope is, since its square is then the
 * whole sum: more than a factor of e would throw the size from end to end. */
static double step_scale(const struct sizing *sizing, double low, double high)
{
	return sizing->step_scale != 0 ? sizing->step_scale
	                               : real_between(high - low, 1e-6, 1);
}

void eoq_observe(const struct sizing *sizing, struct sizer_eoq *eoq, uint64_t demand)
{
	double epsilon = sizing->epsilon != 0 ? sizing->epsilon : 1e-8;
	double low = real_log(sizing_clamp(sizing, 0));
	double high = real_log(sizing_clamp(sizing, (double)GALE_UNITS_MAX));
	double x = eoq->sum_squares == 0 ? real_log(sizing_initial(sizing)) : eoq->x;
	double size = real_exp(x);
	double slope = sizing->strand_penalty / 2 * size -
	               sizing->order_cost * (double)demand / size;
	double step;

	eoq->sum_squares += slope * slope;
	step = step_scale(sizing, low, high) / real_root(epsilon + eoq->sum_squares);
	eoq->x = real_between(x - step * slope, low, high);
}
