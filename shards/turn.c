/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turn.c -- what a lessor does by itself: gives up, sends, looks around, lets go.
 *
 * Threads   The shard's actor.
 */
#include "runtime/clock.h"
#include "shards/ahead.h"
#include "shards/lessor.h"

#define HELD_KEYS_PAUSE_NS 1000000000 /* until a closed lender's are looked at again */
#define SENDING_PAUSE_NS 1000000      /* until it is looked whether it has sent all */
#define LET_GO_PER_TURN 256
#define OVERDUE_NS UINT64_C(2000000000) /* a line to a server is lost before that */
#define OVERDUE_PARTS 4 /* of errands and of purses: one may be overdue. LESSOR-8 */

static bool may_be_overdue(const struct lessor *lessor)
{
	uint32_t purses = lessor->config.max_purses;

	return lessor->overdue < (purses < ERRANDS ? purses : ERRANDS) / OVERDUE_PARTS;
}

/* How long what comes is of use.  A window's units are while it lasts, a meter's while they live, and a
 * pacer's places can go back for about as long as its burst takes. */
static mono end_of_use(const struct link *link, const struct errand *errand, mono now)
{
	mono window_ends = mono_after(errand->sent, link->own.window_us * 1000);

	if (!lessor_has_windows(link->own.lender))
		window_ends = lessor_unit_ends(link, errand->due);
	return mono_earlier(window_ends, mono_after(now, OVERDUE_NS));
}

static void be_overdue(struct lessor *lessor, struct link *link, struct errand *errand,
                       mono due)
{
	list_remove(&errand->place);
	list_append(&link->own.overdue, &errand->place);
	errand->due = due;
	errand->is_overdue = true;
	lessor->overdue++;
}

/* The store has not answered in time.  Whether units were lent is not known: those that do not
 * come while they are of use are spent. */
static void give_up_overdue(struct lessor *lessor, struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.flying))) {
		struct errand *errand = list_item(place, struct errand, place);
		mono due;

		if (!mono_reached(now, errand->due))
			return;
		lessor_count(lessor, COUNT_LOST, 1);
		lessor_back_off(lessor, link, now);
		lessor_tell_waiters(lessor, errand, STORE_LATE);
		due = end_of_use(link, errand, now);
		if (!mono_reached(now, due) && may_be_overdue(lessor))
			be_overdue(lessor, link, errand, due);
		else
			lessor_free_errand(lessor, errand);
	}
}

static void forget_overdue(struct lessor *lessor, const struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.overdue))) {
		struct errand *errand = list_item(place, struct errand, place);

		if (!mono_reached(now, errand->due))
			return;
		lessor_free_errand(lessor, errand);
	}
}

static void answer_impatient(struct lessor *lessor, struct link *link, mono now)
{
	struct list *place;

	while ((place = list_first(&link->own.patience))) {
		struct ask *ask = list_item(place, struct ask, patience);

		if (!mono_reached(now, ask->due))
			return;
		lessor_fail(lessor, ask, COUNT_IMPATIENT, STORE_LATE); /* LESSOR-6 */
	}
}

static mono due_of(const struct lessor *lessor, const struct link *link)
{
	struct list *flying = list_first(&link->own.flying);
	struct list *overdue = list_first(&link->own.overdue);
	struct list *sleeping = list_first(&link->own.sleeping);
	struct list *patience = list_first(&link->own.patience);
	mono due = NEVER_DUE;

	if (flying)
		due = mono_earlier(due, list_item(flying, struct errand, place)->due);
	if (overdue)
		due = mono_earlier(due, list_item(overdue, struct errand, place)->due);
	if (sleeping)
		due = mono_earlier(due, list_item(sleeping, struct errand, place)->due);
	if (patience)
		due = mono_earlier(due, list_item(patience, struct ask, patience)->due);
	if (link->own.lent_first != NUMBER_LAST)
		due = mono_earlier(due, link->own.look_due);
	due = mono_earlier(due, lessor_ahead_due(lessor, link));
	return mono_earlier(due, lessor_recall_due(link));
}

static bool is_closed(const struct purse *purse)
{
	return purse->lender && load_relaxed(&purse->lender->closed) &&
	       !purse_is_dead(purse);
}

/* Of the purses up to there that are not held: they share a fence. */
static void want_closed(struct lessor *lessor, uint32_t end)
{
	struct purses *set = &lessor->purses;
	bool any = false;

	for (uint32_t i = lessor->closing_hand; i < end; i++)
		if (is_closed(purses_at(set, i)) && !purse_is_held(purses_at(set, i)))
			any |= purse_want(purses_at(set, i), (mono){ 0 });
	if (any)
		grace_pass(set->own.grace); /* entered */
}

/* Purses of lenders that are closed, some at a time; true when all are out. */
static bool let_go(struct lessor *lessor)
{
	struct purses *set = &lessor->purses;
	uint32_t left = set->own.made - lessor->closing_hand;
	uint32_t end =
	    lessor->closing_hand + (left < LET_GO_PER_TURN ? left : LET_GO_PER_TURN);

	want_closed(lessor, end);
	for (; lessor->closing_hand < end; lessor->closing_hand++)
		if (is_closed(purses_at(set, lessor->closing_hand)))
			(void)purses_evict(set, purses_at(set, lessor->closing_hand));
	return end >= set->own.made;
}

static bool link_is_idle(const struct link *link)
{
	return list_is_empty(&link->own.wanting) && list_is_empty(&link->own.flying) &&
	       list_is_empty(&link->own.overdue) &&
	       list_is_empty(&link->own.sleeping) && link->own.calls == 0;
}

static bool link_is_over(const struct link *link)
{
	return load_relaxed(&link->own.lender->closed) && link_is_idle(link);
}

/* Units that its purses gave back may be on their way.  LESSOR-9 */
static bool is_sending(const struct lessor *lessor, struct link *link, mono now)
{
	if (lessor_store_is_idle(link) || !lessor_has_store_alone(lessor, link))
		return false;
	if (link->own.leave_due.ns == 0)
		link->own.leave_due = mono_after(now, link->own.lender->patience_ns);
	return !mono_reached(now, link->own.leave_due);
}

/* A purse that is held keeps its lender.  Returns when to look at those that are left. */
static mono unlist_over(struct lessor *lessor, mono now, uint64_t pause_ns)
{
	struct link **at = &lessor->links;
	mono due = NEVER_DUE;

	while (*at) {
		struct link *link = *at;

		if (!link_is_over(link)) {
			at = &link->own.next;
		} else if (link->own.purses > 0) {
			due = mono_earlier(due, mono_after(now, pause_ns));
			at = &link->own.next;
		} else if (is_sending(lessor, link, now)) {
			due = mono_earlier(due, mono_after(now, SENDING_PAUSE_NS));
			at = &link->own.next;
		} else {
			lessor_unlist_link(lessor, at);
		}
	}
	return due;
}

static bool any_over(const struct lessor *lessor)
{
	for (const struct link *at = lessor->links; at; at = at->own.next)
		if (link_is_over(at))
			return true;
	return false;
}

/* Returns when to go on with it.  Held keys keep a closed lender's purses: they are looked
 * at again when a thread wakes the shard for it, or after a while. */
static mono close_lenders(struct lessor *lessor, mono now)
{
	uint64_t pause_ns;
	mono due;

	if (!any_over(lessor))
		return NEVER_DUE;
	if (!mono_reached(now, lessor->close_due))
		return lessor->close_due;
	if (!let_go(lessor))
		return now;
	lessor->closing_hand = 0;
	lessor_send_returns(lessor);
	pause_ns = purses_turn(&lessor->purses) ? SLOW_READERS_NS : HELD_KEYS_PAUSE_NS;
	due = unlist_over(lessor, now, pause_ns);
	lessor->close_due = mono_earlier(due, mono_after(now, pause_ns));
	return due;
}

/* Stores that are elsewhere: what was sent by now goes out, what has come is heard. */
mono lessor_turn_stores(struct lessor *lessor, mono now)
{
	mono due = NEVER_DUE;

	for (const struct link *link = lessor->links; link; link = link->own.next) {
		const struct store_client *client = &link->own.client;

		if (client->desk)
			due = mono_earlier(due, client->store->ops->turn(client, now));
	}
	lessor_take_done(lessor);
	return due;
}

mono lessor_turn(struct lessor *lessor, mono now)
{
	uint64_t heard;
	bool more = false;
	bool is_waiting;
	mono due;

	lessor_send_returns(
	    lessor); /* their numbers are lower than those of what is sent now */
	lessor_place_crowded(lessor, now);

	for (struct link *link = lessor->links; link; link = link->own.next) {
		lessor_take_terms(lessor, link, now);
		give_up_overdue(lessor, link, now);
		forget_overdue(lessor, link, now);
		answer_impatient(lessor, link, now);
		lessor_wake_sleeping(lessor, link, now);
		lessor_look_ahead(lessor, link, now);
		heard = lessor->heard;
		lessor_send(lessor, link, now);
		if (lessor->heard > heard) /* at once, and later than that */
			now = clock_now(lessor->config.clock);
		lessor_look(lessor, link, now);
		lessor_recall(lessor, link, now);
	}
	lessor_send_returns(lessor);
	due = close_lenders(lessor, now);
	due = mono_earlier(due, lessor_place_crowded(lessor, now));
	purses_fade(&lessor->purses);
	is_waiting = purses_turn(&lessor->purses);
	if (is_waiting || purses_fades(&lessor->purses))
		due = mono_earlier(due, mono_after(now, SLOW_READERS_NS));
	due = mono_earlier(due, lessor_turn_stores(lessor, now));
	for (struct link *link = lessor->links; link; link = link->own.next) {
		due = mono_earlier(due, due_of(lessor, link));
		more |= !list_is_empty(&link->own.wanting) ||
		        lessor_rechecks(link, now) || link->own.unchanged > 0;
	}
	return more ? now : due;
}

bool lessor_is_idle(const struct lessor *lessor)
{
	for (const struct link *link = lessor->links; link; link = link->own.next)
		if (!link_is_idle(link))
			return false;
	return true;
}
