/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * recall.c -- a store that may have forgotten is told what it said before.       (law L12)
 *
 * Of a window's key the purse keeps how much of it was used, as the store said last, and in
 * which life of the store's memory that was.  Each ask brings it along; what comes of it is
 * the store's business.
 *
 *     asks again ...... as usual
 *     never asks ...... has been denied, which is remembered until the window turns
 *
 * So that keys that have been denied ask, too, all of them do when another life is heard of.
 * And so that it is heard of where all has been denied, one key of a limiter asks several
 * times within a quarantine, for no call.  While the store is down, no key asks;
 * after an ask that was in vain, all of them ask the next time.  Windows that are no longer
 * than a quarantine have turned when that is over, and need none of it.
 *
 * Threads   The shard's actor.
 */
#include "runtime/clock.h"
#include "shards/lessor.h"

#define RECALLS 3                           /* within a quarantine, ... */
#define RECALL_LEAST_NS UINT64_C(100000000) /* ... but not more often */
#define LOOKS_PER_TURN 256

static bool is_long(const struct link *link)
{
	uint64_t quarantine_us = link->own.lender->store->quarantine_us;

	return quarantine_us > 0 && lessor_has_windows(link->own.lender) &&
	       link->own.window_us > quarantine_us;
}

/* Each purse is looked at again. */
static void note_lives(struct lessor *lessor, struct link *link, uint8_t lives)
{
	if (link->own.lives != LIVES_UNKNOWN && link->own.lives != lives &&
	    is_long(link))
		link->own.recheck = lessor->purses.own.made;
	link->own.lives = lives;
}

/* The store said how much is left of the limit that it was asked under.  The most that a store
 * is ever told is that nothing is left. L13 */
void lessor_note_used(struct lessor *lessor, const struct errand *errand,
                      const struct lend_answer *answer)
{
	struct purse *purse = errand->purse;
	uint64_t limit = errand->capacity, left = answer->grant.left;

	if (answer->life == 0 || !lessor_has_windows(purse->lender))
		return;
	note_lives(lessor, link_of(lessor, purse->lender), answer->lives);
	if (answer->waits)
		return;
	purse->told = left < limit ? limit - left : 0;
	purses_own(&lessor->purses, purse)->life = answer->life;
}

void lessor_fill_seen(struct lessor *lessor, const struct purse *purse,
                      struct lend_request *request)
{
	if (!lessor_has_windows(purse->lender))
		return;
	request->seen = purse->told;
	request->seen_in = purse->tag_us;
	request->life = purses_own(&lessor->purses, purse)->life;
}

static uint64_t recall_ns(const struct link *link)
{
	uint64_t ns = link->own.lender->store->quarantine_us * 1000 / RECALLS;

	return ns < RECALL_LEAST_NS ? RECALL_LEAST_NS : ns;
}

/* It will be asked about again, unless another one is first. */
void lessor_note_denied(struct lessor *lessor, const struct purse *purse, mono now)
{
	struct link *link = link_of(lessor, purse->lender);

	if (!is_long(link))
		return;
	if (link->own.recall_due.ns == 0)
		link->own.recall_due = mono_after(now, recall_ns(link));
	link->own.denied = purse->number;
}

/* The key was denied, and the store did not answer: it may have forgotten. */
void lessor_note_unheard(struct lessor *lessor, const struct errand *errand)
{
	struct link *link = link_of(lessor, errand->purse->lender);
	mono now = clock_now(lessor->config.clock);

	if (!is_long(link) || !purse_is_spent(errand->purse, now))
		return;
	link->own.unheard = true;
	lessor_note_denied(lessor, errand->purse, now);
}

static bool is_of(const struct link *link, const struct purse *purse)
{
	return purse->lender == link->own.lender && !purse_is_dead(purse);
}

/* Where no errand is to be had, the next ask for the key reminds. */
static void ask_about(struct lessor *lessor, const struct link *link,
                      struct purse *purse, mono now)
{
	if (!is_of(link, purse) || !purse_is_spent(purse, now) ||
	    purses_own(&lessor->purses, purse)->errand != ERRAND_NONE)
		return;
	if (lessor_errand(lessor, purse))
		lessor_count(lessor, COUNT_RECALLS, 1);
	else
		purse_forget_denial(purse);
}

static void recheck(struct lessor *lessor, struct link *link, mono now)
{
	for (uint32_t i = 0; i < LOOKS_PER_TURN && link->own.recheck > 0; i++)
		ask_about(lessor, link, purses_at(&lessor->purses, --link->own.recheck),
		          now);
}

bool lessor_rechecks(const struct link *link, mono now)
{
	return link->own.recheck > 0 &&
	       now.ns >= load_relaxed(&link->shared.down_until_ns);
}

mono lessor_recall_due(const struct link *link)
{
	mono up = { load_relaxed(&link->shared.down_until_ns) };

	if (link->own.recheck > 0)
		return up;
	return link->own.recall_due.ns > 0 ? mono_later(link->own.recall_due, up)
	                                   : NEVER_DUE;
}

void lessor_recall(struct lessor *lessor, struct link *link, mono now)
{
	if (!mono_reached(now, lessor_recall_due(link)))
		return;
	recheck(lessor, link, now);
	if (link->own.recall_due.ns == 0 || !mono_reached(now, link->own.recall_due))
		return;
	link->own.recall_due = (mono){ 0 };
	if (link->own.unheard)
		link->own.recheck = lessor->purses.own.made;
	else
		ask_about(lessor, link, purses_at(&lessor->purses, link->own.denied),
		          now);
	link->own.unheard = false;
}
