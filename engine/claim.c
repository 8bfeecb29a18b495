/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * claim.c -- what a node asks of a pool, and what it makes of the answer.
 */
#include "engine/claim.h"

#include <gale/rule.h>

#include "engine/check.h"
#include "engine/slot.h"

#define QUANTA 16     /* of a window, at the demand of late */
#define GROWTH 8      /* of a quantum over the one before, at most */
#define SHORTEST 4096 /* of a window: no quantum is thought to have lasted less */
/* An ask that was refused is made again when a PART of the time has not passed yet: of half of
 * release_us, or of the rest of the window; and at least as often as in a PART of a window. */
#define PART 8
#define DRIFT 1000000
#define KEEP 4    /* ticks that what is kept lasts, at least */
#define WORTH 4   /* units in a tick are worth a round trip ahead; fewer come by lot */
#define SLOWEST 8 /* of a window: no round trip is thought to take more */

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void claim_init(struct claim *claim, const struct pool_ask *terms, uint32_t drift_ppm,
                mono now)
{
	*claim = (struct claim){ .terms = *terms,
		                 .drift_ppm = drift_ppm,
		                 .end = now,
		                 .turns = now,
		                 .sent = now,
		                 .since = now,
		                 .looked = now,
		                 .retry = now };
}

bool claim_refuses(const struct claim *claim, uint64_t units, mono now, mono *ret_when)
{
	*ret_when = mono_earlier(claim->retry, claim->turns);
	return (claim->shut || (claim->refused > 0 && units >= claim->refused)) &&
	       !mono_reached(now, *ret_when); /* CLAIM-6 */
}

bool claim_may_ask(const struct claim *claim, uint64_t units, mono now, mono *ret_when)
{
	if (claim_refuses(claim, units, now, ret_when))
		return false;
	*ret_when = now;
	if (mono_reached(now, claim->end) && !mono_reached(now, claim->turns))
		*ret_when = claim->turns; /* CLAIM-4 */
	return mono_reached(now, *ret_when);
}

/* ---- Asking ------------------------------------------------------------------------ */

/* For a sixteenth of a window, and while the next quantum is on its way, as fast as units were taken
 * since the last grant; but not much more than before, as that may have been a burst.  When a window
 * is over, as fast as in all of it.  A grant of which nothing was taken says nothing before a look. */
static uint64_t next_size(const struct claim *claim, uint64_t wants, mono now)
{
	uint64_t period_ns = claim->terms.period_us * 1000;
	uint64_t lasts = period_ns / QUANTA + 2 * claim->trip_ns, lasted = period_ns;
	uint64_t units = claim->taken, most = claim->terms.limit;
	uint128 size;

	if (!mono_reached(now, claim->end)) {
		units -= lesser(units, claim->taken_then);
		lasted = greater(now.ns - claim->since.ns, period_ns / SHORTEST + 1);
		most = lesser(most, GROWTH * greater(claim->size, wants));
		if (units == 0 && !mono_reached(claim->looked, claim->since))
			return lesser(claim->size, most);
	}
	size = (uint128)units * lasts / lasted;
	return size < most ? (uint64_t)size : most;
}

struct pool_ask claim_ask(struct claim *claim, bool present, uint64_t wants,
                          uint64_t least, mono now)
{
	struct pool_ask ask = claim->terms;

	gale_assert(!claim->with_store && least <= wants); /* CLAIM-3 */
	if (wants > 0) {
		claim->size = next_size(claim, wants, now);
		wants = greater(wants, claim->size);
	}
	ask.present = present;
	ask.window = claim->window;
	ask.had = claim->granted;
	ask.back = claim->back;
	ask.more = lesser(wants, GALE_UNITS_MAX - claim->granted);
	ask.least = lesser(least, ask.more);
	claim->most = greater(claim->most, ask.limit);
	claim->with_store = true;
	claim->sent = now;
	return ask;
}

/* ---- Looking ----------------------------------------------------------------------- */

struct claim_look claim_look(struct claim *claim, mono now, uint64_t tick_ns)
{
	uint64_t passed = greater(now.ns - claim->looked.ns, tick_ns);
	uint64_t ahead_ns = 2 * claim->trip_ns + tick_ns;
	uint64_t keep_ns = greater(KEEP * tick_ns, 2 * ahead_ns);
	uint64_t units = claim_in_hand(claim, now);
	struct claim_look look = { .moved = claim->taken };
	uint128 kept, needed;
	mono when;

	if (claim->taken >= claim->seen)
		look.moved -= claim->seen;
	claim->looked = now;
	claim->seen = claim->taken;
	kept = (uint128)look.moved * keep_ns / passed;
	needed = (uint128)look.moved * ahead_ns / passed;
	/* Units that were granted just now have not been needed yet. */
	if (mono_reached(now, mono_after(claim->since, tick_ns)) && units > 2 * kept)
		look.gives = units - (uint64_t)kept;
	look.asks = look.moved >= WORTH && units < needed &&
	            !mono_reached(now, claim->end) &&
	            claim_may_ask(claim, 1, now, &when);
	return look;
}

/* ---- Hearing ----------------------------------------------------------------------- */

/* Later than the store's window can turn, if its clock is as slow as it may be. */
static mono surely_after(mono heard, uint64_t left_us, uint32_t drift_ppm)
{
	uint128 ns = (uint128)left_us * 1000;

	return mono_after(heard, (uint64_t)(ns + ns * 2 * drift_ppm / DRIFT) + 1000);
}

/* Its units of the window, with those that it gave back, are at most the limit that it asked under.
 * An answer that was lost may have been to a larger one. */
static bool is_within_limit(const struct claim *claim, const struct pool_ask *ask,
                            const struct pool_answer *answer)
{
	uint64_t most = greater(claim->most, ask->limit);

	if (answer->window != claim->window)
		return answer->granted <= most;
	most = greater(most, claim->granted - claim->back);
	return answer->granted >= claim->granted &&
	       answer->granted - claim->back <= most;
}

/* No store is believed.  (L13) */
static bool is_possible(const struct claim *claim, const struct pool_ask *ask,
                        const struct pool_answer *answer)
{
	if (answer->result != POOL_ANSWERED)
		return answer->result <= POOL_WRONG &&
		       answer->retry_us <= POOL_TIME_MAX_US;
	return answer->left_us <= ask->period_us && answer->window >= claim->window &&
	       is_within_limit(claim, ask, answer);
}

static void turn(struct claim *claim, uint64_t window)
{
	if (window == claim->window)
		return;
	claim->window = window; /* CLAIM-2 */
	claim->most = claim->terms.limit;
	claim->granted = claim->back = claim->taken = 0;
	claim->told_back = claim->taken_then = claim->seen = claim->debt = 0;
	claim->refused = claim->spent_us = 0;
}

/* While a tenant that was refused asks again in half of release_us, it is never absent, and gets
 * its part of what others leave.  A tenant that is never absent has to ask, too: units come back. */
static uint64_t present_us(const struct claim *claim)
{
	return lesser(claim->terms.release_us / 2, claim->terms.period_us / PART);
}

/* Others have units that its guarantee needs.  What comes back is kept for it while it is present. */
static bool lacks_guarantee(const struct claim *claim, const struct pool_answer *answer)
{
	return answer->used < claim->terms.guarantee &&
	       answer->guarantees <= claim->terms.limit;
}

/* Nothing is left for any tenant, and units only come back: one that asks near the end of the window
 * finds them all, and one that asks before finds those that came back early.  The last ask stands for
 * one that would come soon before it.  CLAIM-9 */
static uint64_t pause_when_spent(const struct claim *claim,
                                 const struct pool_answer *answer, bool again)
{
	uint64_t rest_us =
	    greater(present_us(claim), answer->left_us - answer->left_us / PART);
	uint64_t pause_us = claim->spent_us;

	if (pause_us == 0)
		pause_us = 2 * present_us(claim);
	else if (again)
		pause_us *= 2;
	return 2 * pause_us > rest_us ? rest_us : pause_us;
}

/* again: it was not to ask before, if it was refused.  Whatever it tells the pool meanwhile does not
 * put off the next ask. */
static void be_refused(struct claim *claim, uint64_t least,
                       const struct pool_answer *answer, bool again, mono now)
{
	uint64_t pause_us = present_us(claim) - present_us(claim) / PART, spent_us = 0;
	mono retry;

	if (answer->free > 0) { /* another tenant may be absent by then */
		pause_us = lesser(pause_us, answer->retry_us);
	} else {
		if (!lacks_guarantee(claim, answer))
			pause_us = pause_when_spent(claim, answer, again);
		spent_us = pause_us + 1;
	}
	retry = mono_after(now, (pause_us + 1) * 1000);
	claim->retry = again ? retry : mono_earlier(claim->retry, retry);
	claim->spent_us = spent_us;
	claim->refused = least;
}

bool claim_learn_of_units(struct claim *claim, uint64_t window)
{
	if (claim->spent_us == 0 || claim->window != window)
		return false;
	claim->refused = claim->spent_us = 0;
	return true;
}

/* Units that were refused under other terms may be had under these. */
static bool is_as_now(const struct claim *claim, const struct pool_ask *ask)
{
	return ask->limit == claim->terms.limit && ask->cap == claim->terms.cap &&
	       ask->guarantee == claim->terms.guarantee &&
	       ask->weight == claim->terms.weight;
}

static enum claim_news be_told(struct claim *claim, const struct pool_ask *ask,
                               const struct pool_answer *answer, mono now)
{
	mono end =
	    mono_until(claim->sent, (lasting){ answer->left_us }, claim->drift_ppm);
	mono turns = surely_after(now, answer->left_us, claim->drift_ppm);
	bool same = answer->window == claim->window && ask->window == claim->window;
	uint64_t had;
	bool again;

	turn(claim, answer->window);
	if (same)
		claim->told_back = ask->back;
	had = claim->granted;
	claim->granted = answer->granted;
	claim->end = same ? mono_later(claim->end, end) : end; /* CLAIM-1 */
	claim->turns = same ? mono_earlier(claim->turns, turns) : turns;
	if (answer->granted > had) {
		claim->since = now;
		claim->taken_then = claim->taken;
	}
	claim->shut = false;
	if (mono_reached(now, claim->end))
		return CLAIM_EARLY;
	again = claim->refused == 0 || mono_reached(claim->sent, claim->retry);
	claim->refused = 0;
	if (!is_as_now(claim, ask))
		return CLAIM_HEARD;
	if (answer->free == 0 || answer->used >= answer->share) /* CLAIM-7 */
		be_refused(claim, 1, answer, again, now);
	else if (answer->granted - had < ask->least)
		be_refused(claim, ask->least, answer, again, now);
	else
		claim->spent_us = 0;
	return CLAIM_HEARD;
}

/* A slow one is remembered for some more. */
static void time_trip(struct claim *claim, mono now)
{
	uint64_t most = claim->terms.period_us * 1000 / SLOWEST;

	claim->trip_ns = greater(lesser(now.ns - claim->sent.ns, most),
	                         claim->trip_ns - claim->trip_ns / SLOWEST);
}

enum claim_news claim_hear(struct claim *claim, const struct pool_ask *ask,
                           const struct pool_answer *answer, mono now)
{
	claim->with_store = false;
	time_trip(claim, now);
	if (!is_possible(claim, ask, answer))
		return CLAIM_WRONG;
	if (answer->result == POOL_ANSWERED)
		return be_told(claim, ask, answer, now);
	claim->retry = mono_after(now, (answer->retry_us + 1) * 1000);
	claim->turns = mono_later(claim->turns, claim->retry);
	claim->shut = true;
	return answer->result == POOL_QUIET ? CLAIM_QUIET : CLAIM_REFUSED;
}

void claim_lost(struct claim *claim)
{
	claim->with_store = false;
}
