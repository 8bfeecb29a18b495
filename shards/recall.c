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
 * So that those who have been denied ask, too, a denial of an earlier life is dropped when
 * another one is heard of.  And so that it is heard of where all has been denied, one key
 * of a limiter asks every RECALL_NS for nobody in particular: while a store waits, which
 * it does for a minute, unless it was told otherwise.  Windows that are shorter than that
 * have turned by then.
 *
 * Threads   The shard's actor.
 */
#include "shards/lessor.h"

#define LONG_US UINT64_C(60000000)
#define RECALL_NS UINT64_C(20000000000)
#define LOOKS_PER_TURN 256

static bool is_long(const struct link *link)
{
	return lessor_has_windows(link->own.lender) && link->own.window_us > LONG_US;
}

/* Each purse is looked at again. */
static void note_life(struct lessor *lessor, struct link *link, uint8_t life)
{
	if (link->own.life != 0 && link->own.life != life && is_long(link))
		link->own.recheck = lessor->purses.own.made;
	link->own.life = life;
}

/* The most that a store is ever told is that nothing is left. L13 */
void lessor_note_used(struct lessor *lessor, struct purse *purse,
                      const struct lend_answer *answer)
{
	uint64_t limit = link_of(lessor, purse->lender)->own.rule.is.limit,
		 left = answer->grant.left;

	if (answer->life == 0 || !lessor_has_windows(purse->lender))
		return;
	note_life(lessor, link_of(lessor, purse->lender), answer->life);
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

/* It will be asked about again, unless another one is first. */
void lessor_note_denied(struct lessor *lessor, const struct purse *purse, mono now)
{
	struct link *link = link_of(lessor, purse->lender);

	if (link->own.life == 0 || !is_long(link))
		return;
	if (link->own.recall_due.ns == 0)
		link->own.recall_due = mono_after(now, RECALL_NS);
	link->own.denied = purse->number;
}

static bool is_of(const struct link *link, const struct purse *purse)
{
	return purse->lender == link->own.lender && !purse_is_dead(purse);
}

static void ask_about(struct lessor *lessor, const struct link *link,
                      struct purse *purse, mono now)
{
	if (is_of(link, purse) && purse_is_spent(purse, now) &&
	    now.ns >= load_relaxed(&link->shared.down_until_ns) &&
	    purses_own(&lessor->purses, purse)->errand == ERRAND_NONE &&
	    lessor_errand(lessor, purse))
		lessor_count(lessor, COUNT_RECALLS, 1);
}

static void recheck(struct lessor *lessor, struct link *link)
{
	for (uint32_t i = 0; i < LOOKS_PER_TURN && link->own.recheck > 0; i++) {
		struct purse *purse = purses_at(&lessor->purses, --link->own.recheck);

		if (is_of(link, purse) &&
		    purses_own(&lessor->purses, purse)->life != link->own.life)
			purse_forget_denial(purse);
	}
}

void lessor_recall(struct lessor *lessor, struct link *link, mono now)
{
	recheck(lessor, link);
	if (link->own.recall_due.ns == 0 || !mono_reached(now, link->own.recall_due))
		return;
	link->own.recall_due = (mono){ 0 };
	ask_about(lessor, link, purses_at(&lessor->purses, link->own.denied), now);
}
