/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * borrow.c -- how much to ask for, what an answer means, and what to do about idle units.
 *
 * A node gives back, asks again and asks ahead at looks, a fixed number in a window:
 *
 *     something spent ............... ask ahead, if the rest lasts for less than two more looks,
 *                                     and the window needs more than another look takes
 *     nothing spent ................. give back, after an eighth of the window
 *     the same, and calls are few ... give back, after a half of it
 *     denied, and others have some .. ask again after 1, 2, 4, ... looks
 *     nothing in hand, not denied ... who asks next asks the store: no need to watch
 *     units ahead, and a new window . ask for it, if something was spent; if nothing was for an
 *                                     eighth of it, ask for one unit, so that they can go back
 */
#include "engine/borrow.h"

#include "engine/slot.h"

#define IDLE_PARTS 8 /* of a window: idle for one of them is idle */
#define IDLE_LOOKS_MOST UINT8_MAX
#define PATIENCE 4 /* times as long: calls that are further apart are two in a window */
#define FEW_CALLS 8 /* that come evenly: looks may lie between two of them */
#define HOPES_MOST 8
#define PAUSE_PARTS 512 /* of a window: the shortest pause; the longest is twice that */
#define SLACK_PARTS 64  /* of a window: an actor may be late by so much */
#define GAP_PARTS 20    /* of a window: more is not bridged */
#define GAP_TRIPS 3     /* an answer of this window, one of the next, and slower ones */
#define STEADY_CALLS 16 /* fewer in a window wait for a lease of it */
#define PPM 1000000

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Looks without a taker that make units idle.  BORROW-2 */
static uint64_t idle_looks(const struct borrow_terms *terms)
{
	uint64_t looks = terms->window_us / IDLE_PARTS * 1000 / terms->look_ns;

	return smaller(larger(looks, 1), IDLE_LOOKS_MOST);
}

/* ---- How much to ask for ------------------------------------------------------------ */

/* How long nobody has asked since the window was over that is known. */
static uint64_t quiet_us(const struct borrow_terms *terms,
                         const struct borrow_need *need, mono now)
{
	if (!terms->has_windows || need->ends.ns == 0)
		return 0;
	return less(now.ns, need->ends.ns) / 1000;
}

struct sizer_view borrow_view(const struct borrow_terms *terms,
                              const struct borrow *self, const struct borrow_need *need,
                              mono now)
{
	bool open = !mono_reached(now, need->ends);
	uint64_t taken = open ? need->taken : 0;

	return (struct sizer_view){
		.capacity = terms->capacity,
		.window_us = terms->window_us,
		.left_us = open ? (need->ends.ns - now.ns) / 1000 : terms->window_us,
		.quiet_us = quiet_us(terms, need, now),
		.taken = taken,
		.demand = less(taken, need->common) + need->waiting +
		          (open ? need->refused : 0),
		.pressing = less(need->waiting, need->common),
		.store_left = open ? need->store_left : GALE_NEVER,
		.holders = smaller(self->holders, UINT8_MAX),
	};
}

/* Of what carries over a batch at a time, however many wait: the bound depends on it. */
static uint64_t room_for(const struct borrow_terms *terms,
                         const struct borrow_need *need)
{
	uint64_t room = larger(less(CREDIT_UNITS_MAX, need->held), 1);

	return terms->carry_over ? smaller(terms->batch, room) : room;
}

struct borrow_ask borrow_ask(const struct borrow_terms *terms,
                             const struct borrow_need *need, uint64_t size)
{
	uint64_t smallest = need->least > 0 ? need->least : need->denied;
	bool lacks = need->owed == 0 && smallest > need->common;
	uint64_t least = lacks ? smallest - need->common : 1;

	return (struct borrow_ask){
		.want = larger(smaller(size, room_for(terms, need)), least),
		.least = least, /* BORROW-1 */
	};
}

/* A node that has just given idle units back has been idle for so many looks.  If its calls are few,
 * each of them would make a trip, and one to give back.  Demand that has come back asks for more. */
void borrow_lack(const struct borrow_terms *terms, struct borrow *self,
                 const struct borrow_need *need, const struct borrow_ask *ask, mono now)
{
	bool came_back =
	    self->idle >= idle_looks(terms) && !mono_reached(now, need->ends);

	if (came_back && need->denied == 0 && ask->want <= FEW_CALLS * need->least)
		self->is_patient = true; /* BORROW-7 */
}

/* ---- Units ahead --------------------------------------------------------------------- */

uint64_t borrow_pause_us(uint64_t window_us, uint64_t lot, uint64_t lots)
{
	uint64_t least_us = window_us / PAUSE_PARTS;

	return least_us + least_us * lot / lots;
}

/* From the earliest end of a window until an answer of the next. */
static uint64_t gap_us(const struct borrow_terms *terms, const struct borrow_gap *gap)
{
	uint64_t drift_us = terms->window_us / PPM * gap->drift_ppm +
	                    terms->window_us % PPM * gap->drift_ppm / PPM;
	uint64_t ticks_us = 2 * CREDIT_TICK_NS / 1000;
	uint64_t long_us = GAP_TRIPS * gap->trip_us + 2 * drift_us + ticks_us +
	                   gap->pause_us + terms->window_us / SLACK_PARTS;

	return smaller(long_us, terms->window_us / GAP_PARTS);
}

static uint64_t root(uint64_t square)
{
	uint64_t root = 0;

	while ((root + 1) * (root + 1) <= square)
		root++;
	return root;
}

/* BORROW-6.  Calls are off their mean by chance. */
uint64_t borrow_ahead(const struct borrow_terms *terms, const struct borrow_gap *gap)
{
	uint64_t least = larger(gap->least, 1), units, rest;

	if (!terms->has_windows || gap->usual / STEADY_CALLS < least)
		return 0;
	units = mul_div(gap->usual, gap_us(terms, gap), terms->window_us, &rest);
	return smaller(units + root(units) + least, CREDIT_UNITS_MAX);
}

unsigned borrow_turned(struct borrow *self, const struct borrow_turn *turn)
{
	bool spends = turn->again && borrow_spent(self, turn->left) > 0;

	self->seen = (uint32_t)smaller(turn->left, BORROW_UNSEEN - 1);
	self->idle = 0;
	if (turn->left == 0)
		return 0; /* who asks next asks the store */
	return BORROW_WATCH |
	       (spends && !turn->asked && !turn->down ? BORROW_ASK_AHEAD : 0);
}

/* ---- What an answer means ----------------------------------------------------------- */

/* How many times as long as in a small fleet. */
static uint64_t patience(const struct borrow_terms *terms, const struct borrow *self)
{
	uint64_t few = larger(BORROW_HOPERS, terms->capacity / BORROW_WORTH);

	return smaller(1 + self->holders / few, IDLE_PARTS);
}

/* The most looks until the store is asked again.  BORROW-4 */
static uint64_t hope_looks_most(const struct borrow_terms *terms,
                                const struct borrow *self)
{
	return patience(terms, self) * idle_looks(terms);
}

static void hope(const struct borrow_terms *terms, struct borrow *self)
{
	uint64_t looks = patience(terms, self) << self->hopes;

	if (self->hopes < HOPES_MOST)
		self->hopes++;
	self->wait = (uint16_t)smaller(looks, hope_looks_most(terms, self));
}

/* Nodes of the window before are likely to come, whoever is first in the next. */
static void note_holders(struct borrow *self, uint64_t holders, bool next)
{
	holders = smaller(holders, BORROW_HOLDERS_MOST);
	if (!next || self->holders <= holders)
		self->holders = (uint16_t)holders;
	else
		self->holders =
		    (uint16_t)(self->holders - 1 - self->holders / (UINT8_MAX + 1));
}

/* What the store says of a wait; a span that cannot be is taken for the window. */
static mono after_wait(const struct borrow_terms *terms,
                       const struct borrow_answer *answer, uint64_t wait_us)
{
	if (wait_us > GALE_SPAN_MAX_US)
		wait_us = terms->window_us;
	return mono_after(answer->sent, wait_us * 1000);
}

static bool fell_short(const struct borrow_answer *answer)
{
	return answer->grant->units < answer->want;
}

/* BORROW-3.  Of a meter that lent something more may accrue at any time; by terms before these
 * there may be more now. */
static bool denies(const struct borrow_terms *terms, const struct borrow_answer *answer)
{
	return fell_short(answer) && !answer->waits && !answer->changed &&
	       (terms->has_windows || answer->grant->units == 0);
}

/* So little was left of the window that the units were dead on arrival.  The store would lend
 * more that is dead, until the limit is gone. */
static bool came_dead(const struct borrow_terms *terms,
                      const struct borrow_answer *answer)
{
	return terms->has_windows && answer->grant->units > 0 && !answer->lives;
}

/* What others hold they may give back, unless it carries over; and they hope for what this node has. */
static unsigned hope_or_not(const struct borrow_terms *terms, struct borrow *self,
                            const struct borrow_answer *answer)
{
	const struct lease_grant *grant = answer->grant;
	bool may_tell = terms->has_windows && !answer->spent && grant->holders > 1;

	if ((grant->others == 0 && !may_tell) || terms->carry_over) {
		self->hopes = 0;
		return 0;
	}
	hope(terms, self); /* BORROW-4 */
	return BORROW_WATCH;
}

struct borrow_orders borrow_hear(const struct borrow_terms *terms, struct borrow *self,
                                 const struct borrow_answer *answer)
{
	const struct lease_grant *grant = answer->grant;
	uint64_t wait_us = grant->units == 0 ? grant->retry_us : grant->lasts_us;
	struct borrow_orders orders = { 0 };

	note_holders(self, grant->holders, answer->next);
	if (grant->units > 0)
		self->hopes = 0;
	if (came_dead(terms, answer)) {
		orders.what = BORROW_SLEEP;
		orders.until = mono_after(answer->sent, grant->lasts_us * 1000);
	} else if (denies(terms, answer)) {
		self->is_patient = false; /* BORROW-7 */
		orders.what = BORROW_DENY | hope_or_not(terms, self, answer);
		orders.until = after_wait(terms, answer, wait_us);
		orders.beyond = grant->left + 1;
	}
	return orders;
}

struct borrow_orders borrow_resume(bool any_waits)
{
	return (struct borrow_orders){ .what = any_waits ? BORROW_ASK_AGAIN : 0 };
}

/* A store that may have forgotten is not asked again at once, and denies nothing. */
struct borrow_orders borrow_served(const struct borrow_terms *terms,
                                   struct borrow *self,
                                   const struct borrow_answer *answer, bool any_waits)
{
	bool was_for_more = answer->capacity > terms->capacity && !terms->carry_over;
	struct borrow_orders orders;

	if (answer->waits) {
		self->hopes = 0;
		orders = (struct borrow_orders){ .what = BORROW_KEEP_OUT };
		if (!answer->changed)
			orders.what |= BORROW_QUARANTINE;
		orders.until = after_wait(terms, answer, answer->grant->retry_us);
	} else {
		orders = borrow_resume(any_waits); /* BORROW-5 */
	}
	if (was_for_more)
		orders.what |= BORROW_GIVE_BACK;
	return orders;
}

/* ---- A look ------------------------------------------------------------------------ */

void borrow_get(struct borrow *self)
{
	self->seen = BORROW_UNSEEN;
	self->idle = 0;
}

uint64_t borrow_spent(const struct borrow *self, uint64_t left)
{
	return self->seen == BORROW_UNSEEN ? 0 : less(self->seen, left);
}

/* At the rate of the last look, what is left lasts for less than two more. */
static bool runs_out(const struct borrow_terms *terms, const struct borrow_sight *sight,
                     uint64_t spent, mono now)
{
	return sight->left < 2 * spent &&
	       !mono_reached(mono_after(now, 2 * terms->look_ns), sight->ends);
}

/* An ask for nobody in particular goes only while the store answers. */
static unsigned may_ask(const struct borrow_sight *sight, unsigned what)
{
	return BORROW_WATCH | (sight->asked || sight->down ? 0 : what);
}

/* No unit was taken since the last look.  BORROW-2, BORROW-7 */
static unsigned look_at_idle(const struct borrow_terms *terms, struct borrow *self,
                             const struct borrow_sight *sight)
{
	bool waits = self->is_patient && !sight->turned;
	uint64_t most = idle_looks(terms) * (waits ? PATIENCE : 1);

	if (++self->idle < smaller(most, IDLE_LOOKS_MOST))
		return BORROW_WATCH;
	if (sight->turned)
		return may_ask(sight, BORROW_CLAIM);
	self->is_patient = false;
	return BORROW_GIVE_BACK;
}

static unsigned look_at_hand(const struct borrow_terms *terms, struct borrow *self,
                             const struct borrow_sight *sight, mono now)
{
	bool is_first = self->seen == BORROW_UNSEEN;
	uint64_t spent = borrow_spent(self, sight->left);

	self->seen = (uint32_t)smaller(sight->left, BORROW_UNSEEN - 1);
	if (sight->left == 0)
		return sight->in_debt ? BORROW_WATCH : 0;
	if (terms->carry_over || sight->in_debt)
		return BORROW_WATCH;
	if (!is_first && spent == 0)
		return look_at_idle(terms, self, sight);
	self->idle = 0;
	if (spent > 0 && sight->turned)
		return may_ask(sight, BORROW_ASK_AHEAD);
	if (spent > 0 && runs_out(terms, sight, spent, now) && !terms->has_places &&
	    !sight->asked && !sight->denied)
		return BORROW_WATCH | BORROW_ASK_AHEAD;
	return BORROW_WATCH;
}

/* There is hope as long as the store has no more and others may give something back. */
static unsigned look_for_more(struct borrow *self, const struct borrow_sight *sight)
{
	if (!sight->denied)
		self->hopes = 0;
	if (self->hopes == 0)
		return 0;
	if (self->wait > 1)
		self->wait--;
	else if (sight->pressed && !sight->asked && !sight->down)
		return BORROW_WATCH | BORROW_ASK_AGAIN;
	return BORROW_WATCH;
}

/* What goes back makes the store one that has some: who asks next finds out how much. */
struct borrow_orders borrow_look(const struct borrow_terms *terms, struct borrow *self,
                                 const struct borrow_sight *sight, mono now)
{
	uint64_t spent = borrow_spent(self, sight->left); /* BORROW-8 */
	unsigned what = look_at_hand(terms, self, sight, now);

	if (what & BORROW_GIVE_BACK)
		self->hopes = 0;
	else
		what |= look_for_more(self, sight);
	return (struct borrow_orders){ .what = what,
		                       .worth = sight->turned ? 0 : spent };
}
