/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizer.c -- which kind says how much, and what of it may be asked for.
 *
 * A size that a kind has learned may be above what the store can ever grant, or below
 * what waits.  Both are put right here, for all kinds, where they cannot be forgotten.
 */
#include "engine/sizer.h"

#include "engine/real.h"

static double min_of(const struct sizing *sizing)
{
	return sizing->min_size == 0 ? 1 : (double)sizing->min_size;
}

static double max_of(const struct sizing *sizing)
{
	double max = SIZING_MAX_DEFAULT;

	if (sizing->max_size != 0)
		return (double)sizing->max_size;
	return min_of(sizing) > max ? min_of(sizing) : max;
}

double sizing_clamp(const struct sizing *sizing, double size)
{
	return real_between(size, min_of(sizing), max_of(sizing));
}

double sizing_initial(const struct sizing *sizing)
{
	return sizing_clamp(sizing, (double)sizing->initial_size);
}

/* False for what is not a number, too. */
static bool weight_valid(double weight)
{
	return weight >= SIZING_WEIGHT_MIN && weight <= SIZING_WEIGHT_MAX;
}

/* One that has a default is 0, or valid. */
static bool weight_or_0(double weight)
{
	return weight == 0 || weight_valid(weight);
}

static bool costs_valid(const struct sizing *sizing)
{
	bool none = sizing->order_cost == 0 && sizing->strand_penalty == 0;

	if (none)
		return sizing->kind == SIZING_LEARNED || sizing->kind == SIZING_FIXED;
	return weight_valid(sizing->order_cost) && weight_valid(sizing->strand_penalty);
}

static bool sizes_valid(const struct sizing *sizing)
{
	return sizing->min_size <= GALE_UNITS_MAX &&
	       sizing->max_size <= GALE_UNITS_MAX && min_of(sizing) <= max_of(sizing);
}

bool sizing_valid(const struct sizing *sizing)
{
	if (sizing->kind < SIZING_LEARNED || sizing->kind > SIZING_HEDGE)
		return false;
	if (sizing->kind == SIZING_FIXED &&
	    (sizing->batch == 0 || sizing->batch > GALE_UNITS_MAX))
		return false;
	return costs_valid(sizing) && sizes_valid(sizing) &&
	       weight_or_0(sizing->step_scale) && weight_or_0(sizing->epsilon) &&
	       weight_or_0(sizing->eta);
}

static double size_of(const struct sizing *sizing, const union sizer *sizer,
                      struct sizer_hedge *hedge, const struct sizer_view *view)
{
	switch (sizing->kind) {
	case SIZING_LEARNED:
		return learned_size(sizing, &sizer->learned, view);
	case SIZING_FIXED:
		return (double)sizing->batch;
	case SIZING_HEDGE:
		if (hedge != NULL)
			return hedge_size(sizing, &sizer->eoq, hedge, view->predicted);
		break;
	case SIZING_EOQ:
		break;
	}
	return sizer_eoq_continuous(sizing, &sizer->eoq);
}

uint64_t sizer_want(const struct sizing *sizing, const union sizer *sizer,
                    struct sizer_hedge *hedge, const struct sizer_view *view)
{
	uint64_t want = sizer_round(size_of(sizing, sizer, hedge, view));

	if (want < view->pressing)
		want = view->pressing; /* SIZER-2 */
	if (want > view->capacity)
		want = view->capacity; /* SIZER-1 */
	return want > 0 ? want : 1;
}

uint64_t sizer_need(const struct sizing *sizing, const union sizer *sizer,
                    const struct sizer_view *view)
{
	if (sizing->kind != SIZING_LEARNED)
		return GALE_NEVER;
	return sizer_want(sizing, sizer, NULL, view);
}

uint64_t sizer_usual(const struct sizing *sizing, const union sizer *sizer,
                     uint64_t capacity, uint64_t holders)
{
	if (sizing->kind != SIZING_LEARNED)
		return 0;
	return sizer_round(learned_usual(sizing, &sizer->learned, capacity, holders));
}

void sizer_hear(const struct sizing *sizing, union sizer *sizer,
                const struct sizer_told *told)
{
	if (sizing->kind == SIZING_LEARNED)
		learned_hear(&sizer->learned, told);
}

void sizer_foresee(const struct sizing *sizing, union sizer *sizer, uint64_t demand)
{
	if (sizing->kind == SIZING_LEARNED)
		learned_observe(&sizer->learned, demand);
}

void sizer_observe(const struct sizing *sizing, union sizer *sizer,
                   struct sizer_hedge *hedge, uint64_t demand)
{
	switch (sizing->kind) {
	case SIZING_LEARNED:
		learned_observe(&sizer->learned, demand);
		break;
	case SIZING_FIXED:
		break;
	case SIZING_HEDGE:
		if (hedge != NULL)
			hedge_observe(sizing, hedge, demand);
		eoq_observe(sizing, &sizer->eoq, demand);
		break;
	case SIZING_EOQ:
		eoq_observe(sizing, &sizer->eoq, demand);
		break;
	}
}
