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
 * mean round trip is the knee.  A slope probe takes 3/16 of the ceiling away and compares the
 * rates.  A rate that stays the same says that the part was for nothing; one that rises, that
 * calls are in each other's way.  The cap moves by as much as the loss is off LOSS_WANTED, so
 * that the noise of one probe moves it little; the last few probes are summed, for the same
 * reason.
 *
 * Where hardly anything is refused the rate follows what comes and not the limit, so that the
 * slope says nothing: then the cap rises slowly, to let that little in.
 *
 * In a fleet the store sums what its nodes report as busy, and finds the limit.  There the slope
 * scales what a node reports: the limit that the store finds moves as the cap would.  And a node
 * whose slots are in flight nearly all the time reports less, so that L has half a root above
 * what is busy and not four.  The roots are for calls that come at once by chance, and where slots are
 * never free such calls meet a queue that is there already.  Without this, long calls hold twice
 * their part of the servers, since a longer queue takes servers from short calls alone.
 *
 * Such a node reports its rate over two beats, and not that of its last windows.  L rises at once
 * with the largest report and falls slowly, so reports that differ by chance would raise it.  A node
 * whose slots are free at times reports its last windows: its demand may come and go with a beat.
 */
#include "engine/estimate.h"

#define SLOPE_PART 13 /* sixteenths of the ceiling that a probe leaves open */
#define DRAIN_PART 8
#define DRAIN_EACH 3  /* of so many probes one is a drain */
#define LOSS_WANTED 3 /* percent of the rate that the upper part has to buy */
#define LOSS_MOST 25  /* percent */
#define ROOTS 4       /* above what is busy: by chance so many more come at a time */
#define SMOOTH 4      /* windows */
#define HEAVY 16      /* one refused of so many is little */
#define RELAX 64      /* the cap rises by this part where little is refused */
#define SLOPE_LEAST 2 /* slots from which on a node of a fleet measures a slope */
#define PERCENT 100   /* parts of a percent; losses are counted in them */
#define WHOLE 65536   /* of what is reported, and of what is full */
/* A node whose slots are at most so full reports all, from FULL_HIGH on for half a root. */
#define FULL_LOW (WHOLE * 6 / 10)
#define FULL_HIGH (WHOLE * 9 / 10)
#define ROOTS_FULL_Q8 (ESTIMATE_Q8 / 2)
#define LATELY_NS UINT64_C(2000000000) /* two beats: demand comes and goes in one */

__extension__ typedef unsigned __int128 wide;

void knee_init(struct estimate *estimate)
{
	estimate->knee.cap = (uint64_t)estimate->set.ceiling * ESTIMATE_Q8;
	estimate->knee.pays = WHOLE;
}

uint32_t knee_probe_part(enum estimate_probe which)
{
	return which == ESTIMATE_PROBE_DRAIN ? DRAIN_PART : SLOPE_PART;
}

enum estimate_probe estimate_probe_of(uint64_t number)
{
	return number % DRAIN_EACH == 0 ? ESTIMATE_PROBE_DRAIN : ESTIMATE_PROBE_SLOPE;
}

static uint64_t busy_at(const struct estimate *estimate, uint64_t rate)
{
	wide busy =
	    (wide)rate * estimate->knee.knee_ns * ESTIMATE_Q8 / UINT64_C(1000000000000);
	uint64_t most = (uint64_t)estimate->set.ceiling * ESTIMATE_Q8;

	return busy < most ? (uint64_t)busy : most;
}

uint64_t knee_busy(const struct estimate *estimate)
{
	return busy_at(estimate, estimate->knee.rate);
}

static uint64_t target(const struct estimate *estimate)
{
	uint64_t busy = knee_busy(estimate);
	uint64_t above = busy + ROOTS * estimate_root(busy * ESTIMATE_Q8) + ESTIMATE_Q8;

	return above < estimate->knee.cap ? above : estimate->knee.cap;
}

static void approach(struct estimate *estimate, uint64_t goal)
{
	const struct estimate_knee *knee = &estimate->knee;
	bool free = knee->rtt_ns <= knee->knee_ns + knee->knee_ns / 8;
	uint64_t up = estimate->limit + estimate->limit / (free ? 1 : 4) + ESTIMATE_Q8;
	uint64_t down = estimate->limit - estimate->limit * 15 / 100;

	if (goal > estimate->limit)
		estimate->limit = goal < up ? goal : up;
	else
		estimate->limit = goal > down ? goal : down;
}

static uint64_t smoothed(uint64_t old, uint64_t value)
{
	return old == 0 ? value : old - old / SMOOTH + value / SMOOTH;
}

static uint64_t over_beats(uint64_t old, uint64_t value, uint64_t length_ns)
{
	uint64_t length = length_ns < LATELY_NS ? length_ns : LATELY_NS;

	return (uint64_t)(((wide)old * (LATELY_NS - length) + (wide)value * length) /
	                  LATELY_NS);
}

static void note_rate(struct estimate_knee *knee, const struct estimate_window *window)
{
	uint64_t rate = estimate_rate(window->ok, window->length_ns);

	knee->rate = smoothed(knee->rate, rate);
	knee->lately = knee->lately == 0
	                   ? rate
	                   : over_beats(knee->lately, rate, window->length_ns);
}

static void note_full(struct estimate_knee *knee, const struct estimate_window *window,
                      uint32_t in_force)
{
	wide all = (wide)window->length_ns * in_force;
	wide is;

	if (all == 0)
		return;
	knee->in_force = in_force;
	is = (wide)window->in_flight_time * WHOLE / all;
	if (is > WHOLE)
		is = WHOLE;
	knee->full = over_beats(knee->full, (uint64_t)is, window->length_ns);
}

/* From a, where slots are free at times, to b, where they are full nearly all the time. */
static uint64_t by_full(uint64_t full, uint64_t a, uint64_t b)
{
	uint64_t above = full < FULL_LOW ? 0 : full - FULL_LOW;
	uint64_t all = FULL_HIGH - FULL_LOW;

	if (above > all)
		above = all;
	return (uint64_t)(((wide)a * (all - above) + (wide)b * above) / all);
}

/* So much that a sum x^2 with its four roots, x^2 + 4 x, is the group's B and so many roots:
 * x = sqrt(4 + B + roots sqrt(B)) - 2. */
static uint64_t root_of_sum(uint64_t b_q8, uint64_t full)
{
	uint64_t half = ROOTS / 2 * ESTIMATE_Q8;
	uint64_t roots = by_full(full, ROOTS * ESTIMATE_Q8, ROOTS_FULL_Q8);
	uint64_t more = roots * estimate_root(b_q8 * ESTIMATE_Q8) / ESTIMATE_Q8;
	uint64_t root =
	    estimate_root((half * half / ESTIMATE_Q8 + b_q8 + more) * ESTIMATE_Q8);

	return root > half ? root - half : 0;
}

uint64_t knee_reported(const struct estimate *estimate)
{
	const struct estimate_knee *knee = &estimate->knee;
	uint64_t rate = by_full(knee->full, knee->rate, knee->lately);
	uint64_t group = busy_at(estimate, rate), x;
	uint64_t busy = (uint64_t)((wide)group * knee->pays >> 16);

	/* Its part of L is as large as that of what is busy. */
	if (estimate->group_limit > knee->in_force && knee->in_force > 0)
		group =
		    (uint64_t)((wide)group * estimate->group_limit / knee->in_force);
	if (group == 0)
		return busy;
	x = root_of_sum(group, knee->full);
	x = (uint64_t)((wide)busy * x * x / ((wide)group * ESTIMATE_Q8));
	return x < busy ? x : busy;
}

static bool is_failing(const struct estimate_window *window)
{
	return window->dropped > window->ok / 8;
}

/* Nothing that was learned of the slope is of use after a failure. */
static void fail(struct estimate *estimate, const struct estimate_window *window,
                 uint32_t in_force)
{
	struct estimate_knee *knee = &estimate->knee;

	if (estimate_used(window, in_force)) /* ESTIMATE-3 */
		estimate->limit -= estimate->limit / 8;
	knee->before = (struct estimate_sum){ 0 };
	knee->rate = 0;
	knee->lately = 0;
	knee->rtt_ns = 0;
	knee_init(estimate);
}

void knee_learn(struct estimate *estimate, const struct estimate_window *window,
                uint32_t in_force)
{
	struct estimate_knee *knee = &estimate->knee;

	knee->limited = window->refused > 0;
	note_full(knee, window, in_force);
	if (is_failing(window)) {
		fail(estimate, window, in_force);
		return;
	}
	if (window->ok == 0) {
		if (!knee->limited)
			knee->rate = 0; /* nothing is busy */
		return;
	}
	if (knee->limited)
		estimate_add(&knee->before, window);
	note_rate(knee, window);
	knee->rtt_ns = smoothed(knee->rtt_ns, estimate->rtt_ns);
	if (knee->knee_ns == 0)
		knee->knee_ns = estimate->rtt_ns;
	if (!knee->limited) { /* ESTIMATE-2 */
		knee->knee_ns += estimate->rtt_ns / 8 - knee->knee_ns / 8;
		return;
	}
	if ((uint64_t)window->refused * HEAVY < window->ok)
		knee->cap += knee->cap / RELAX;
	approach(estimate, target(estimate));
}

/* A half of what was, and what comes. */
static void pool(struct estimate_sum *sum, const struct estimate_sum *more)
{
	sum->ok = sum->ok / 2 + more->ok;
	sum->length_ns = sum->length_ns / 2 + more->length_ns;
}

/* Of the rate, in hundredths of a percent; negative where less in flight delivers more. */
static int64_t loss_of(const struct estimate_knee *knee)
{
	uint64_t high = estimate_rate(knee->high.ok, knee->high.length_ns);
	uint64_t low = estimate_rate(knee->low.ok, knee->low.length_ns);
	int64_t most = LOSS_MOST * PERCENT, all = 100 * PERCENT, loss;

	if (high == 0 || low >= 2 * high)
		return high == 0 ? 0 : -most;
	loss = all - (int64_t)((wide)low * (uint64_t)all / high);
	return loss < -most ? -most : loss > most ? most : loss;
}

static uint64_t moved(uint64_t value, int64_t by)
{
	return (uint64_t)((int64_t)value + (int64_t)value * by / (100 * PERCENT));
}

/* Was enough refused, and most of the slots in flight all the time?  Else the rate follows
 * what comes. */
static bool is_full(const struct estimate_sum *sum, uint64_t slots_q8)
{
	wide flight = (wide)sum->flight_time * ESTIMATE_Q8;

	return sum->ok > 0 && sum->refused * HEAVY >= sum->ok &&
	       4 * flight >= 3 * (wide)slots_q8 * sum->length_ns;
}

static void note_slope(struct estimate *estimate)
{
	struct estimate_knee *knee = &estimate->knee;
	int64_t by;

	if (!is_full(&knee->before, knee->forced) ||
	    !is_full(&estimate->during, knee->forced * SLOPE_PART / 16))
		return;
	pool(&knee->high, &knee->before);
	pool(&knee->low, &estimate->during);
	by = loss_of(knee) - LOSS_WANTED * PERCENT;
	if (!estimate->aligned) {
		knee->cap = estimate_clamp(estimate, moved(knee->forced, by));
	} else if (knee->forced >= SLOPE_LEAST * ESTIMATE_Q8) {
		knee->pays = moved(knee->pays, by);
		if (knee->pays > WHOLE)
			knee->pays = WHOLE;
		if (knee->pays < WHOLE / 16)
			knee->pays = WHOLE / 16;
	}
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
