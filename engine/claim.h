/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * claim.h -- one tenant of a shared budget, at one node: what it has of the pool.
 *
 * The node claims units of the pool, a quantum at a time, and spends them by itself.  A claim
 * says what to ask, and what an answer means (engine/pool.h is the other side):
 *
 *     claim_wants -> claim_ask -> the store -> claim_hear -> claim_take
 *                        ^                        |
 *                        '------ claim_give <-----'   units that are not needed
 *
 * How much to ask for is learned: what was spent since the last grant, over the time that it took,
 * for a sixteenth of a window, and for two round trips.  When to ask is learned by looks, once in a
 * tick: a node asks ahead, before what is in hand is gone, and gives back what it does not need.
 *
 * Invariants
 *
 *   CLAIM-1  Units are taken until .end, by this node's clock, which comes before the pool's
 *            window has turned.  So what is taken was granted in the window in which it is
 *            spent.  (L2, T1)
 *   CLAIM-2  granted - back - taken are in hand.  All are of one window: totals of another
 *            are dropped when an answer tells of it.  (L4, L6)
 *   CLAIM-3  At most one ask is with the store.  An answer counts once, whatever was lost
 *            before: it tells the total.  (L3, W-10)
 *   CLAIM-4  Between .end and .turns nothing is asked: the window that is over here may still
 *            last at the store.
 *   CLAIM-5  What is kept lasts, as fast as units were taken since the last look, longer than
 *            what is asked for ahead: so nothing is given back that is asked for again.  Where
 *            nothing was taken, all goes back.
 *   CLAIM-6  A claim that was refused by a result, and not for want of units, refuses all asks
 *            until .retry, whatever its terms are meanwhile: nothing waits for a call that is
 *            not made.
 *
 *   CLAIM-7  An answer that says that nothing is left for the tenant is a refusal of what is asked
 *           next: a node that got the last units need not ask again to learn that.
 *   CLAIM-8  What calls have cost beyond their holds is a debt of their window.  Units in hand pay it
 *           before an ask may have any.
 *   CLAIM-9  Units that come back are looked for.  While nothing is left for any tenant, a tenant that
 *           has less than its guarantee asks as often as others that are refused, and any other after
 *           release_us, and then after twice as long each time.  If another claim of the node hears
 *           that units are left, it asks at once.  (T2)
 *
 * Threads   Pure: one at a time for a claim.
 */
#ifndef ENGINE_CLAIM_H
#define ENGINE_CLAIM_H

#include "engine/clock.h"
#include "engine/pool.h"

enum claim_news {
	CLAIM_HEARD, /* the pool has said how much there is */
	CLAIM_EARLY, /* its window is over before any call could spend it: ask at .turns */
	CLAIM_QUIET,   /* the store may have forgotten; ask at .retry  (CLAIM-6) */
	CLAIM_REFUSED, /* by the result that was answered; ask at .retry  (CLAIM-6) */
	CLAIM_WRONG,   /* the answer cannot be true, and nothing has changed */
};

struct claim {
	struct pool_ask terms; /* up to .weight */
	uint32_t drift_ppm;    /* of this clock by the store's: clock_apart_ppm */
	bool with_store;       /* an ask is */

	uint64_t window;
	mono end;
	mono turns;    /* the window has turned at the store by then */
	uint64_t most; /* the largest limit that it asked under for this window */
	uint64_t granted;
	uint64_t back;
	uint64_t taken;
	uint64_t debt;

	mono sent;  /* when it asked last */
	mono since; /* when it was granted something last ... */
	uint64_t taken_then;
	uint64_t size;    /* of the last quantum */
	uint64_t trip_ns; /* a round trip, as they were of late */

	mono looked;
	uint64_t seen; /* what was taken until then */

	uint64_t told_back; /* as the pool has heard */
	uint64_t refused;   /* the least that was, beyond what was in hand; 0: none */
	bool shut;          /* nothing is granted, whatever the terms */
	mono retry;         /* an ask for so much waits until then */
	uint64_t
	    spent_us; /* so long after nothing was left for any tenant; 0: some was */
};

void claim_init(struct claim *claim, const struct pool_ask *terms, uint32_t drift_ppm,
                mono now);

/* Units that may be taken now. */
static inline uint64_t claim_in_hand(const struct claim *claim, mono now)
{
	return mono_reached(now, claim->end)
	           ? 0
	           : claim->granted - claim->back - claim->taken; /* CLAIM-2 */
}

/* They are in hand. */
static inline void claim_take(struct claim *claim, uint64_t units)
{
	claim->taken += units;
}

/* Units that were taken in this window and not spent. */
static inline void claim_untake(struct claim *claim, uint64_t units)
{
	claim->taken -= units;
	if (claim->seen > claim->taken)
		claim->seen = claim->taken;
}

/* The debt that is paid before an ask may have units. */
static inline uint64_t claim_debt(const struct claim *claim, mono now)
{
	return mono_reached(now, claim->end) ? 0 : claim->debt;
}

/* CLAIM-8 */
static inline void claim_pay(struct claim *claim, mono now)
{
	uint64_t units = claim_in_hand(claim, now);

	if (units > claim->debt)
		units = claim->debt;
	claim->taken += units;
	claim->debt -= units;
}

/* Units in hand that are not needed here: the next ask gives them back. */
static inline void claim_give(struct claim *claim, uint64_t units)
{
	claim->back += units;
}

static inline bool claim_owes(const struct claim *claim, mono now)
{
	return claim->back > claim->told_back && !mono_reached(now, claim->end);
}

/* May it ask for these units, beyond what is in hand?  Otherwise *ret_when says from when on. */
bool claim_may_ask(const struct claim *claim, uint64_t units, mono now, mono *ret_when);
/* Were as many refused, so that asking is of no use until *ret_when? */
bool claim_refuses(const struct claim *claim, uint64_t units, mono now, mono *ret_when);

struct claim_look {
	uint64_t moved; /* units that were taken since the last one */
	uint64_t gives; /* of what is in hand */
	bool asks;      /* for more, before that is gone */
};
/* Once in a tick, with all that was not spent in hand.  CLAIM-5 */
struct claim_look claim_look(struct claim *claim, mono now, uint64_t tick_ns);

/* It is sent now.  present: the tenant asks here; wants and least: the costs that wait together,
 * and the least of them, beyond what is in hand; both 0: none. */
struct pool_ask claim_ask(struct claim *claim, bool present, uint64_t wants,
                          uint64_t least, mono now);
enum claim_news claim_hear(struct claim *claim, const struct pool_ask *ask,
                           const struct pool_answer *answer, mono now);
/* Units of the window are left: another claim of the node has heard so.  True: it was refused for
 * want of them, and is no more.  CLAIM-9 */
bool claim_learn_of_units(struct claim *claim, uint64_t window);
/* No answer will come. */
void claim_lost(struct claim *claim);

#endif
