/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ahead.c -- units of the next window: lent, set aside, joined; and who asks when it has begun.
 *
 * Purses that were lent some stand in a list of their link, in the order in which the units came.  As
 * windows of a link turn together, that is about the order in which theirs have surely begun.  Each
 * is looked at then, and again after pauses, which are others for each node: a fleet does not ask
 * all at once.  When a call has spent since the window began, the actor asks for it, though no call
 * waits.  A sixteenth of the window later the purse is looked at as others are (look.c).
 *
 * Threads   The shard's actor.  Others may be taking the units that it reads.
 */
#include "shards/ahead.h"

#include "engine/check.h"
#include "runtime/clock.h"
#include "shards/lessor.h"

#define LOOKS_PER_TURN 64
#define ROUND_PAUSE_NS 200000 /* between two parts of a long list */
#define LOTS 256
#define LOOKED_AT_PARTS 16 /* of a window: for one of them after it has begun */

/* ---- The lists -------------------------------------------------------------------- */

static struct ahead *at(const struct lessor *lessor, uint32_t number)
{
	return ahead_of(purses_at(&lessor->purses, number));
}

static struct numbers *list_of(struct link *link, const struct ahead *ahead)
{
	return ahead->has_begun ? &link->own.begun : &link->own.turning;
}

static void append(struct lessor *lessor, struct link *link, struct ahead *ahead,
                   uint32_t number)
{
	struct numbers *list = list_of(link, ahead);

	ahead->is_listed = true;
	ahead->next = NUMBER_LAST;
	ahead->before = list->last;
	if (list->last == NUMBER_LAST)
		list->first = number;
	else
		at(lessor, list->last)->next = number;
	list->last = number;
}

static void unlist(struct lessor *lessor, struct link *link, struct ahead *ahead)
{
	struct numbers *list = list_of(link, ahead);

	if (ahead->before == NUMBER_LAST)
		list->first = ahead->next;
	else
		at(lessor, ahead->before)->next = ahead->next;
	if (ahead->next == NUMBER_LAST)
		list->last = ahead->before;
	else
		at(lessor, ahead->next)->before = ahead->before;
	ahead->is_listed = false;
}

/* ---- Asking ----------------------------------------------------------------------- */

/* A store that has forgotten reserves what it may have lent ahead of the first window after its
 * quarantine.  A window that begins within the quarantine has no such reserve. */
static bool outlasts_quarantine(const struct link *link)
{
	uint64_t quarantine_us = link->own.lender->store->quarantine_us;

	return quarantine_us > 0 && link->own.window_us > quarantine_us / 2;
}

/* One whose units carry over has a fixed batch, and a fixed batch wants none ahead (sizer_usual). */
static bool lends_ahead(const struct link *link)
{
	const struct lender *lender = link->own.lender;

	return lender->store->lends_ahead && lender->lending == LENDING_UNITS &&
	       lease_has_ahead(&link->own.rule) && !outlasts_quarantine(link);
}

/* Of all nodes' pauses, this one's. */
static uint64_t pause_us(const struct lessor *lessor, const struct link *link)
{
	uint64_t lot = (lessor->config.node + lessor->config.shard) *
	                   UINT64_C(0x9e3779b97f4a7c15) >>
	               32;

	return borrow_pause_us(link->own.window_us, lot % LOTS, LOTS);
}

static uint64_t wanted(struct lessor *lessor, struct purse *purse,
                       const struct borrow_need *need)
{
	const struct link *link = link_of(lessor, purse->lender);
	const struct borrow_terms terms = lessor_borrow_terms(link);
	struct borrow_gap gap = {
		.usual = sizer_usual(&purse->lender->sizing, purse_sizer(purse),
		                     terms.capacity, purse->holders),
		.least = need->least,
		.trip_us = link->own.trip_ns / 1000,
		.pause_us = pause_us(lessor, link),
		.drift_ppm = clock_apart_ppm(purse->lender->drift_ppm),
	};

	return borrow_ahead(&terms, &gap);
}

/* Is the answer of the next window, and not of the one that is known to be open? */
static bool asks_for_next(const struct purse *purse, mono now)
{
	return mono_reached(now, purse->ends);
}

void lessor_fill_ahead(struct lessor *lessor, const struct errand *errand,
                       const struct borrow_need *need, struct lease_ask *ask, mono now)
{
	struct purse *purse = errand->purse;
	const struct ahead *ahead = ahead_of(purse);
	uint64_t lent = ahead ? load_relaxed(&ahead->lent) : 0;

	if (!lends_ahead(link_of(lessor, purse->lender)))
		return;
	if (lent > 0) {
		ask->had = lent;
		ask->had_of = ahead->tag_us;
	}
	if ((lent == 0 || asks_for_next(purse, now)) && !errand->claims)
		ask->ahead = wanted(lessor, purse, need);
}

bool lessor_ahead_is_possible(const struct errand *errand,
                              const struct lease_grant *grant)
{
	return grant->ahead <= errand->ahead && (grant->ahead == 0 || grant->units > 0);
}

/* ---- What an answer brings --------------------------------------------------------- */

/* No units are known to be lent from now on.  Unsaid units stay: the purse may have them by now. */
static void close_ahead(struct lessor *lessor, const struct purse *purse,
                        struct ahead *ahead)
{
	if (ahead->is_listed)
		unlist(lessor, link_of(lessor, purse->lender), ahead);
	store_relaxed(&ahead->word, 0);
	store_relaxed(&ahead->lent, 0);
	ahead->tag_us = 0;
	ahead->aside = 0;
}

void lessor_forget_ahead(struct lessor *lessor, struct purse *purse)
{
	struct ahead *ahead = ahead_of(purse);

	if (!ahead)
		return;
	close_ahead(lessor, purse, ahead);
	ahead->unsaid = 0;
}

struct ahead *lessor_count_ahead(struct lessor *lessor, struct purse *purse,
                                 const struct lease_grant *grant, bool next)
{
	struct ahead *ahead = ahead_of(purse);
	uint64_t lent = ahead ? load_relaxed(&ahead->lent) : 0;

	if (ahead && next)
		ahead->unsaid = 0; /* these are dead */
	if (lent == 0 || grant->tag.us < ahead->tag_us)
		return NULL;
	if (grant->tag.us != ahead->tag_us) {
		lessor_forget_ahead(lessor, purse);
		return NULL;
	}
	purse->taken += lent; /* AHEAD-3 */
	ahead->unsaid = lent > grant->had ? lent - grant->had : 0;
	return ahead;
}

void lessor_join_ahead(struct lessor *lessor, struct purse *purse, struct ahead *ahead,
                       mono ends, mono now)
{
	uint64_t left = ahead_empty(ahead, now) + ahead->aside;

	close_ahead(lessor, purse, ahead);
	if (left == 0)
		return;
	kept_lend(purse, ends, left, &lessor->clock, now);
	lessor_list_lent(lessor, purse, now);
}

uint64_t lessor_returnable(const struct purse *purse, uint64_t units)
{
	struct ahead *ahead = ahead_of(purse);
	uint64_t kept = 0;

	if (!ahead)
		return units;
	kept = units < ahead->unsaid ? units : ahead->unsaid;
	ahead->unsaid -= kept;
	return units - kept;
}

uint64_t lessor_lent_ahead(const struct purse *purse, const struct gale_slot *next)
{
	const struct ahead *ahead = ahead_of(purse);
	uint64_t lent = ahead ? load_relaxed(&ahead->lent) : 0;

	if (next)
		return lent > 0 && ahead->tag_us == next->us ? lent : 0;
	return lent > 0 && ahead->tag_us > purse->tag_us ? lent - ahead->aside : 0;
}

/* Units beyond that are not believed.  AHEAD-3 */
static uint64_t believed(const struct link *link, const struct errand *errand,
                         const struct lease_grant *grant)
{
	const struct purse *purse = errand->purse;
	const struct ahead *ahead = ahead_of(purse);
	uint64_t lent = ahead ? load_relaxed(&ahead->lent) : 0;
	uint64_t taken = purse->taken + lessor_lent_ahead(purse, NULL);
	uint64_t most = link->own.rule.capacity / LEASE_AHEAD_PARTS;
	uint64_t room = most > lent ? most - lent : 0;
	uint64_t rest = errand->capacity > taken ? errand->capacity - taken : 0;

	room = room < rest ? room : rest;
	return grant->ahead < room ? grant->ahead : room;
}

static void list(struct lessor *lessor, struct link *link, struct purse *purse,
                 struct ahead *ahead)
{
	if (ahead->is_listed)
		unlist(lessor, link, ahead);
	ahead->has_begun = false;
	ahead->due = (mono){ load_relaxed(&ahead->begins_ns) };
	append(lessor, link, ahead, purse->number);
}

void lessor_put_ahead(struct lessor *lessor, const struct errand *errand,
                      const struct lease_grant *grant, mono now)
{
	struct purse *purse = errand->purse;
	struct link *link = link_of(lessor, purse->lender);
	uint32_t ppm = clock_apart_ppm(link->own.lender->drift_ppm);
	uint64_t units = believed(link, errand, grant);
	lasting both = { grant->lasts_us + link->own.window_us };
	struct ahead *ahead;
	mono begins;

	if (units == 0 || errand->changes != link->own.changes)
		return;
	ahead = purses_make_room_ahead(purse, lessor->config.allocator);
	if (!ahead)
		return; /* no memory: they stay spent */
	begins = mono_surely_over(now, (lasting){ grant->lasts_us }, ppm);
	ahead->tag_us = grant->tag.us + link->own.window_us;
	ahead->ends = mono_until(errand->sent, both, ppm);
	store_relaxed(&ahead->begins_ns, begins.ns);
	store_relaxed(&ahead->lent, load_relaxed(&ahead->lent) + units);
	ahead_put(ahead, credit_until(ahead->ends, units), now);
	list(lessor, link, purse, ahead);
	lessor_count(lessor, COUNT_UNITS, units);
}

/* ---- In hand ----------------------------------------------------------------------- */

static bool has_begun(const struct ahead *ahead, mono now)
{
	return load_relaxed(&ahead->lent) > 0 &&
	       now.ns >= load_relaxed(&ahead->begins_ns);
}

static uint64_t in_hand(const struct ahead *ahead, mono now)
{
	if (!has_begun(ahead, now) || mono_reached(now, ahead->ends))
		return 0;
	return ahead_left(ahead, now);
}

uint64_t lessor_ahead_in_hand(const struct purse *purse, mono now)
{
	const struct ahead *ahead = ahead_of(purse);

	return ahead && !ahead->is_listed ? in_hand(ahead, now) : 0;
}

bool lessor_has_ahead(const struct purse *purse, mono now)
{
	const struct ahead *ahead = ahead_of(purse);

	if (!ahead)
		return false;
	if (asks_for_next(purse, now))
		return ahead_left(ahead, now) > 0;
	return credit_living(load_relaxed(&ahead->word), now) > 0;
}

uint64_t lessor_set_aside(struct lessor *lessor, struct purse *purse, mono now)
{
	struct ahead *ahead = ahead_of(purse);
	uint64_t units;

	if (!ahead || load_relaxed(&ahead->lent) == 0 || has_begun(ahead, now))
		return 0;
	units = credit_living(swap_relaxed(&ahead->word, 0), now);
	ahead->aside += units; /* AHEAD-2 */
	purse->taken += units;
	lessor_count(lessor, COUNT_UNITS, units); /* from now on two, one of each */
	return units;
}

void lessor_use_ahead(struct lessor *lessor, struct purse *purse, mono now)
{
	uint64_t units = lessor_set_aside(lessor, purse, now);

	if (units == 0)
		return;
	kept_lend(purse, purse->ends, units, &lessor->clock, now);
	lessor_list_lent(lessor, purse, now);
}

/* ---- When their window has begun --------------------------------------------------- */

static bool is_old(const struct link *link, const struct ahead *ahead, mono now)
{
	uint64_t ns = link->own.window_us / LOOKED_AT_PARTS * 1000;

	return mono_reached(now,
	                    mono_after((mono){ load_relaxed(&ahead->begins_ns) }, ns));
}

/* True if it is to be looked at again, after a pause. */
static bool look_at(struct lessor *lessor, struct link *link, struct purse *purse,
                    struct ahead *ahead, mono now)
{
	struct borrow borrow = purses_borrow(&lessor->purses, purse);
	const struct borrow_turn turn = {
		.left = in_hand(ahead, now),
		.again = ahead->has_begun,
		.asked = purses_own(&lessor->purses, purse)->errand != ERRAND_NONE,
		.down = now.ns < load_relaxed(&link->shared.down_until_ns),
	};
	unsigned what = borrow_turned(&borrow, &turn);

	purses_keep_borrow(&lessor->purses, purse, &borrow);
	if (what & BORROW_ASK_AHEAD && lessor_errand(lessor, purse))
		lessor_count(lessor, COUNT_REFILLS, 1);
	if (what & BORROW_WATCH && is_old(link, ahead, now))
		lessor_watch(lessor, purse, now);
	return what & BORROW_WATCH && !is_old(link, ahead, now);
}

static bool look_at_first(struct lessor *lessor, struct link *link,
                          const struct numbers *list, mono now)
{
	struct purse *purse;
	struct ahead *ahead;

	if (list->first == NUMBER_LAST)
		return false;
	purse = purses_at(&lessor->purses, list->first);
	ahead = ahead_of(purse);
	if (!mono_reached(now, ahead->due))
		return false;
	unlist(lessor, link, ahead);
	if (look_at(lessor, link, purse, ahead, now)) {
		ahead->has_begun = true;
		ahead->due = mono_after(now, pause_us(lessor, link) * 1000);
		append(lessor, link, ahead, purse->number);
	}
	return true;
}

void lessor_look_ahead(struct lessor *lessor, struct link *link, mono now)
{
	int looks = 0;

	if (!mono_reached(now, link->own.ahead_due))
		return;
	while (looks < LOOKS_PER_TURN &&
	       (look_at_first(lessor, link, &link->own.turning, now) ||
	        look_at_first(lessor, link, &link->own.begun, now)))
		looks++;
	link->own.ahead_due =
	    looks == LOOKS_PER_TURN ? mono_after(now, ROUND_PAUSE_NS) : (mono){ 0 };
}

mono lessor_ahead_due(const struct lessor *lessor, const struct link *link)
{
	mono due = NEVER_DUE;

	if (link->own.turning.first != NUMBER_LAST)
		due = at(lessor, link->own.turning.first)->due;
	if (link->own.begun.first != NUMBER_LAST)
		due = mono_earlier(due, at(lessor, link->own.begun.first)->due);
	return mono_later(due, link->own.ahead_due);
}
