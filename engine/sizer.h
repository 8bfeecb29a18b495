/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * sizer.h -- how many units to ask a store for at once.
 *
 * Much at once strands units that others could have used; little at once costs a round
 * trip each time.  A sizer learns, per key, how many are wanted in a window.
 *
 *     need more  ->  sizer_want says how many to ask for, given what is known now
 *     a window is over, or had no asks  ->  sizer_observe says what was wanted
 *
 *     kind      asks for                                         after the idea of
 *     LEARNED   first what a window rarely exceeds, then what
 *               the rate so far says of the time that is left    newsvendor
 *               (what is spent soon, where there is too little for all)
 *     FIXED     always the same
 *     EOQ       always the same, found by a gradient             Wilson; AdaGrad
 *     HEDGE     between EOQ and a host's prediction              Freund and Schapire
 *
 * It only advises: the store grants what there is, and no admission depends on a size.
 * That is why there may be floating point here.
 *
 * Invariants
 *
 *   SIZER-1  A want is at least 1, and at most the capacity (or 1, if that is 0).
 *   SIZER-2  A want is at least what presses, as far as the capacity goes: a size that
 *            was learned never makes a call wait or fail that a smaller or larger ask
 *            would have let pass.
 *   SIZER-3  A state that is all zero is fresh, and no demand, however large, small or
 *            odd in its order, makes a state anything but finite.
 *   SIZER-4 to SIZER-10 are in sizer_learned.c.
 *
 * Threads   Pure: any, on different states.
 */
#ifndef ENGINE_SIZER_H
#define ENGINE_SIZER_H

#include <stdbool.h>
#include <stdint.h>

#include <gale/rule.h>

enum sizing_kind {
	SIZING_LEARNED, /* unless there is a reason */
	SIZING_FIXED,
	SIZING_EOQ,
	SIZING_HEDGE,
};

#define SIZING_MAX_DEFAULT 1000000
#define SIZING_WEIGHT_MAX 1e12 /* so that no square or sum leaves what a double holds */
#define SIZING_WEIGHT_MIN 1e-12

/* Of a limiter: how all its keys are sized.  All zero is LEARNED with its defaults. */
struct sizing {
	enum sizing_kind kind;
	uint64_t batch;        /* FIXED: the size */
	double order_cost;     /* what a round trip costs; LEARNED does without */
	double strand_penalty; /* what a unit costs that was lent and not used */
	double step_scale;     /* EOQ: the first step, in powers of e; 0: at most 1 */
	double epsilon;        /* EOQ: added to the sum of squares; 0: 1e-8 */
	double eta;            /* HEDGE: how fast trust follows costs; 0: 0.01 */
	uint64_t min_size;     /* 0: 1 */
	uint64_t max_size;     /* 0: SIZING_MAX_DEFAULT, or min_size if that is more */
	uint64_t initial_size; /* before anything was learned; 0: min_size */
};

/* Demands are kept as logarithms: as many times more is as far as as many times less. */
struct sizer_learned {
	double middle;   /* of the logarithms */
	float spread;    /* how far off it they are, on average */
	uint8_t windows; /* that middle stands on, as far as it matters; 0: fresh */
	uint8_t idle;    /* windows without demand since the last with some */
	int8_t strays;   /* in a row: above what was expected, or (negative) below */
	uint8_t
	    tight; /* windows for which the store will be taken to have too little */
};

/* Fresh as long as sum_squares is 0: x may be 0 after that, for a size of 1. */
struct sizer_eoq {
	double x; /* ln of the size */
	double sum_squares;
};

/* Of a key.  HEDGE keeps its cautious expert here. */
union sizer {
	struct sizer_learned learned;
	struct sizer_eoq eoq;
};

/* Of a key, for HEDGE only. */
struct sizer_hedge {
	double follow_cost; /* what each expert would have cost so far */
	double robust_cost;
	uint64_t follow_size; /* what each said last; 0: min_size */
	uint64_t robust_size;
};

/* What is known of a key when it needs more.  Units are those of the rule. */
struct sizer_view {
	uint64_t capacity;  /* what a window can grant at most: limit, or burst */
	uint64_t window_us; /* how long a window is */
	uint64_t left_us;   /* of this one; window_us when nothing is known of it */
	uint64_t quiet_us;  /* since the last one, without an ask; or 0 */
	uint64_t taken;     /* this node got in this window, less what it returned */
	uint64_t demand;    /* was offered in this window: admitted, refused, waiting */
	uint64_t pressing;  /* waits now, and is not covered by what is in hand */
	uint64_t store_left; /* when last told in this window; GALE_NEVER: never told */
	uint64_t holders;   /* nodes with units out when last told, in whichever window,
	                        this one included; 0: never told */
	uint64_t predicted; /* HEDGE: demand that the host predicts; 0: none */
};

/* Weights are finite, positive, and within SIZING_WEIGHT_MIN and _MAX; EOQ and HEDGE need
 * both costs, LEARNED both or neither; sizes are in order and at most GALE_UNITS_MAX. */
bool sizing_valid(const struct sizing *sizing);

/* hedge: NULL unless the kind is HEDGE, which without it is EOQ. */
uint64_t sizer_want(const struct sizing *sizing, const union sizer *sizer,
                    struct sizer_hedge *hedge, const struct sizer_view *view);

/* The units that the window needs beyond those in hand, as sizer_want says.  GALE_NEVER: not known; only
 * LEARNED knows. */
uint64_t sizer_need(const struct sizing *sizing, const union sizer *sizer,
                    const struct sizer_view *view);

/* A demand that a window of the key rarely exceeds; 0: it is not known, or the store may have too little for
 * all.  Only LEARNED knows. */
uint64_t sizer_usual(const struct sizing *sizing, const union sizer *sizer,
                     uint64_t capacity, uint64_t holders);

/* What a store has answered. */
struct sizer_told {
	uint64_t capacity;
	uint64_t left; /* of it, for the next ask */
	uint64_t window_us;
	uint64_t left_us; /* of the window, when it was asked */
	bool fell_short;  /* of what was wanted */
	bool at_the_end;  /* of a window: other nodes may ask for the next already */
};

/* Only LEARNED listens. */
void sizer_hear(const struct sizing *sizing, union sizer *sizer,
                const struct sizer_told *told);

/* A window is over.  demand: all that was offered, what was refused too, or the next
 * window is sized by what this one got and not by what it needed; 0 if there was no ask.
 * Of windows in a row without demand, LEARNED needs no more than SIZER_IDLE_MOST. */
void sizer_observe(const struct sizing *sizing, union sizer *sizer,
                   struct sizer_hedge *hedge, uint64_t demand);

/* The same on a copy, before the store has said that the window is over.  Only LEARNED. */
void sizer_foresee(const struct sizing *sizing, union sizer *sizer, uint64_t demand);

#define SIZER_IDLE_MOST 70 /* it has forgotten everything then */

/* ---- For the files of the kinds, and for tests ------------------------------------ */

/* Within min_size and max_size. */
double sizing_clamp(const struct sizing *sizing, double size);
double sizing_initial(const struct sizing *sizing);

double learned_size(const struct sizing *sizing, const struct sizer_learned *learned,
                    const struct sizer_view *view);
double learned_usual(const struct sizing *sizing, const struct sizer_learned *learned,
                     uint64_t capacity, uint64_t holders);
void learned_hear(struct sizer_learned *learned, const struct sizer_told *told);
void learned_observe(struct sizer_learned *learned, uint64_t demand);

/* sqrt(2 c D / h), the size at which c D/b + h b/2 is least. */
double eoq_optimum(double order_cost, double strand_penalty, double demand);
/* The size before it is rounded. */
double sizer_eoq_continuous(const struct sizing *sizing, const struct sizer_eoq *eoq);
void eoq_observe(const struct sizing *sizing, struct sizer_eoq *eoq, uint64_t demand);

double hedge_size(const struct sizing *sizing, const struct sizer_eoq *robust,
                  struct sizer_hedge *hedge, uint64_t predicted);
/* How far the prediction is trusted, from 0 to 1. */
double hedge_trust(const struct sizing *sizing, const struct sizer_hedge *hedge);
void hedge_observe(const struct sizing *sizing, struct sizer_hedge *hedge,
                   uint64_t demand);

/* To the nearest whole number, halves up.  0 <= size < 2^63. */
static inline uint64_t sizer_round(double size)
{
	return (uint64_t)(size + 0.5);
}

#endif
