/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizer_hedge.c -- a host's prediction, believed as far as it has been right.
 *
 * Two experts: follow sizes by the prediction, robust is EOQ.  What each would have cost is
 * added up, and the more one has cost, the less is its word worth: the mix does not do
 * much worse than the better of the two (Freund and Schapire's Hedge).
 *
 * Costs are taken as they are, so one bad window at the start can decide for many; and
 * nothing is forgotten, so a prediction that breaks after a thousand good windows is
 * believed until it has cost as much as robust did.
 */
#include "engine/sizer.h"

#include "engine/real.h"

/* What a window of this demand costs at this size. */
static double cost_of(const struct sizing *sizing, uint64_t size, uint64_t demand)
{
	double units = sizing_clamp(sizing, (double)size);

	if (demand == 0)
		return 0;
	return sizing->order_cost * (double)demand / units +
	       sizing->strand_penalty * units / 2;
}

/* The weights are e^(-eta cost), of which only the quotient counts. */
double hedge_trust(const struct sizing *sizing, const struct sizer_hedge *hedge)
{
	double eta = sizing->eta != 0 ? sizing->eta : 0.01;
	double gap = eta * (hedge->follow_cost - hedge->robust_cost);

	return 1 / (1 + real_exp(gap));
}

double hedge_size(const struct sizing *sizing, const struct sizer_eoq *robust,
                  struct sizer_hedge *hedge, uint64_t predicted)
{
	double follow =
	    eoq_optimum(sizing->order_cost, sizing->strand_penalty, (double)predicted);
	double trust = hedge_trust(sizing, hedge);

	hedge->follow_size = sizer_round(sizing_clamp(sizing, follow));
	hedge->robust_size = sizer_round(sizer_eoq_continuous(sizing, robust));
	return sizing_clamp(sizing, trust * (double)hedge->follow_size +
	                                (1 - trust) * (double)hedge->robust_size);
}

void hedge_observe(const struct sizing *sizing, struct sizer_hedge *hedge,
                   uint64_t demand)
{
	hedge->follow_cost += cost_of(sizing, hedge->follow_size, demand);
	hedge->robust_cost += cost_of(sizing, hedge->robust_size, demand);
}
