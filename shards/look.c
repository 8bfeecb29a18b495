/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * look.c -- the actor goes around the purses that have credit.
 *
 * An allow tells no actor.  So that asks need not wait when credit runs out, that idle
 * credit goes back, and that a key which several threads fight over, or which is spent
 * fast, gets its cells, the actor looks at each purse with credit once in a while: every
 * look_ns of its lender.  Of a key that has cells it says whether threads fight over what all
 * share all the same: asks about many keys then take from cells, too (local.h).
 *
 *     nothing left ............... it leaves the round, unless there is hope
 *     nothing spent for long ..... what is left is given back, and it leaves
 *     it owes something .......... what it gets pays for that; it stays
 *     soon nothing left .......... an errand is sent ahead, for no call
 *
 * There is hope when the store has no more while others hold units: what they do not
 * spend they give back, and this node is not told.  Callers are denied as before; the actor
 * asks again for them.  engine/borrow.h says when to do what.
 *
 * The round is a queue in the order of looking: the first is due, the last has just
 * been looked at.
 *
 * Threads   The shard's actor.  Others may be writing the words of a purse that it reads:
 *           they are for books and guesses, and no unit is spent on the strength of them.
 */
#include "shards/ahead.h"
#include "shards/lessor.h"

#define LOOKS_PER_TURN 64
#define LOOK_PAUSE_NS 1000000 /* between two parts of a long round */
#define HOT_NS 1000           /* a unit in each of these, on average, makes a key hot */

static struct purse *at(struct lessor *lessor, uint32_t number)
{
	return purses_at(&lessor->purses, number);
}

static struct purse_own *own_at(struct lessor *lessor, uint32_t number)
{
	return purses_own(&lessor->purses, at(lessor, number));
}

static struct purse_round *round_at(struct lessor *lessor, uint32_t number)
{
	return purses_round(&lessor->purses, at(lessor, number));
}

static bool owes(const struct purse *purse)
{
	return load_relaxed(purse_dues(purse)) & DUES_OWES;
}

static void append(struct lessor *lessor, struct link *link, uint32_t number)
{
	own_at(lessor, number)->next = NUMBER_LAST;
	round_at(lessor, number)->before = link->own.lent_last;
	if (link->own.lent_last == NUMBER_LAST)
		link->own.lent_first = number;
	else
		own_at(lessor, link->own.lent_last)->next = number;
	link->own.lent_last = number;
}

static void unlist(struct lessor *lessor, struct link *link, uint32_t number)
{
	uint32_t next = own_at(lessor, number)->next;
	uint32_t before = round_at(lessor, number)->before;

	if (link->own.round_last == number)
		link->own.round_last = before;
	if (before == NUMBER_LAST)
		link->own.lent_first = next;
	else
		own_at(lessor, before)->next = next;
	if (next == NUMBER_LAST)
		link->own.lent_last = before;
	else
		round_at(lessor, next)->before = before;
	own_at(lessor, number)->next = NUMBER_UNLISTED;
}

void lessor_watch(struct lessor *lessor, struct purse *purse, mono now)
{
	struct link *link = link_of(lessor, purse->lender);

	if (purses_own(&lessor->purses, purse)->next != NUMBER_UNLISTED)
		return;
	if (link->own.lent_first == NUMBER_LAST)
		link->own.look_due = mono_after(now, link->own.look_ns);
	purse_mark(purse, DUES_LOOKED_AT, true);
	append(lessor, link, purse->number);
}

void lessor_list_lent(struct lessor *lessor, struct purse *purse, mono now)
{
	struct borrow borrow = purses_borrow(&lessor->purses, purse);

	borrow_get(&borrow);
	purses_keep_borrow(&lessor->purses, purse, &borrow);
	lessor_watch(lessor, purse, now);
}

static void void_purse(struct lessor *lessor, struct purse *purse)
{
	purses_void(purse);
	lessor_forget_ahead(lessor, purse);
}

/* Of all its purses: those that left the round may have a seat that was late. */
void lessor_drop_lent(struct lessor *lessor, const struct link *link)
{
	for (uint32_t i = 0; i < lessor->purses.own.made; i++)
		if (at(lessor, i)->lender == link->own.lender)
			void_purse(lessor, at(lessor, i));
}

void lessor_unlist_lent(struct lessor *lessor, struct purse *purse)
{
	if (purses_own(&lessor->purses, purse)->next != NUMBER_UNLISTED)
		unlist(lessor, link_of(lessor, purse->lender), purse->number);
	purse_mark(purse, DUES_LOOKED_AT, false);
}

static void warm(const struct lessor *lessor, struct purse *purse, uint64_t spent)
{
	uint64_t look_ns = link_of(lessor, purse->lender)->own.look_ns;
	uint64_t heat =
	    load_relaxed(&purse->contended) + spent * CONTENDED * HOT_NS / look_ns;

	if (!purse_is_split(purse)) /* then only what others do is a sign */
		store_relaxed(&purse->contended,
		              (uint8_t)(heat < UINT8_MAX ? heat : UINT8_MAX));
}

/* Since the last look, or since the grant before, if that was later. */
void lessor_warm(const struct lessor *lessor, struct purse *purse, uint64_t beside,
                 uint64_t units, mono now)
{
	struct borrow borrow = purses_borrow(&lessor->purses, purse);
	uint64_t left = purse_left(purse, now) + beside;
	uint64_t spent = purse->taken > left ? purse->taken - left : 0;

	if (borrow.seen != BORROW_UNSEEN)
		spent = borrow_spent(&borrow, left);
	warm(lessor, purse, spent < units ? spent : units);
}

static void give_cells(struct lessor *lessor, struct purse *purse)
{
	if (purse->lender->lending != LENDING_UNITS || lessor->config.seats < 2 ||
	    !grace_passes(lessor->purses.own.grace))
		return;
	if (purses_give_cells(&lessor->purses, purse, lessor->config.seats))
		lessor_count(lessor, COUNT_CELLS, 1);
}

static void say_if_fought(struct lessor *lessor, struct purse *purse, bool fought)
{
	if (fought && !load_relaxed(&purse->fought))
		lessor_count(lessor, COUNT_FOUGHT, 1);
	store_relaxed(&purse->fought, fought);
}

/* A seat that takes from its cell loses no swap: fewer signs are left. */
static unsigned signs_of_fight(const struct purse *purse)
{
	return load_relaxed(&purse->fought) ? STILL_CONTENDED : CONTENDED;
}

static void heat(struct lessor *lessor, struct purse *purse)
{
	unsigned signs = load_relaxed(&purse->contended);

	store_relaxed(&purse->contended, 0);
	if (purse_is_split(purse))
		say_if_fought(lessor, purse, signs >= signs_of_fight(purse));
	else if (signs >= CONTENDED)
		give_cells(lessor, purse);
}

/* A denial of a larger cost says nothing of the last units. */
static bool may_draw(const struct purse *purse, mono now)
{
	uint64_t denial = load_relaxed(&purse->denial);

	return credit_units(denial) > 0 || !credit_lives(denial, now);
}

/* Its debt is paid by what lies in cells, and then by what the store still has: that is drawn for
 * no call. */
static void pay(struct lessor *lessor, struct purse *purse, mono now)
{
	struct link *link = link_of(lessor, purse->lender);

	if (kept_debt(purse, now) == 0)
		return;
	purse_gather(purse, lessor->purses.own.grace, now);
	kept_pay(purse, &lessor->clock);
	if (kept_debt(purse, now) > 0 && may_draw(purse, now) &&
	    now.ns >= load_relaxed(&link->shared.down_until_ns) &&
	    purses_own(&lessor->purses, purse)->errand == ERRAND_NONE &&
	    lessor_errand(lessor, purse))
		lessor_count(lessor, COUNT_REFILLS, 1);
}

/* A debt of which no note came is seen by the round.  KEPT-3 */
static void adopt_debt(struct purse *purse)
{
	if (!owes(purse) && purse_pin(purse))
		purse_mark(purse, DUES_OWES, true);
}

/* True as long as it owes something; then it has a pin. */
static bool still_owes(struct lessor *lessor, struct purse *purse, mono now)
{
	if (!owes(purse) && kept_debt(purse, now) == 0)
		return false;
	pay(lessor, purse, now);
	if (kept_debt(purse, now) > 0) {
		adopt_debt(purse);
		return true;
	}
	if (owes(purse)) {
		purse_mark(purse, DUES_OWES, false);
		purse_unpin(purse);
	}
	return false;
}

void lessor_take_due(struct lessor *lessor, struct purse *purse, mono now)
{
	pay(lessor, purse, now);
	lessor_list_lent(lessor, purse, now);
	if (owes(purse) || kept_debt(purse, now) == 0)
		purse_unpin(purse);
	else
		purse_mark(purse, DUES_OWES, true);
}

static struct borrow_sight sight_of(struct lessor *lessor, struct purse *purse,
                                    bool in_debt, mono now)
{
	const struct link *link = link_of(lessor, purse->lender);
	uint64_t ahead = lessor_ahead_in_hand(purse, now);

	return (struct borrow_sight){
		.left = purse_left(purse, now) + ahead,
		.turned = ahead > 0,
		.ends = purse->ends,
		.in_debt = in_debt,
		.denied = purse_is_spent(purse, now),
		.pressed = load_relaxed(&purse->refused) > 0 || owes(purse),
		.asked = purses_own(&lessor->purses, purse)->errand != ERRAND_NONE,
		.down = now.ns < load_relaxed(&link->shared.down_until_ns),
	};
}

static void give_idle_back(struct lessor *lessor, struct purse *purse, mono now)
{
	lessor_take_back(lessor, purse, now);
	if (purse->lender->lending == LENDING_PLACES)
		lessor_set_tag(purse, (struct gale_slot){ 0 }); /* no queue */
}

static void ask(struct lessor *lessor, struct purse *purse, enum shard_counter why)
{
	if (lessor_errand(lessor, purse))
		lessor_count(lessor, why, 1);
}

/* Idle units that were lent ahead go back when the store knows whose they are. */
static void claim(struct lessor *lessor, struct purse *purse)
{
	struct errand *errand = lessor_errand(lessor, purse);

	if (!errand)
		return;
	errand->claims = true;
	lessor_count(lessor, COUNT_REFILLS, 1);
}

/* True if there is still something to look at later. */
static bool look_at(struct lessor *lessor, struct purse *purse, mono now)
{
	bool in_debt = still_owes(lessor, purse, now);
	const struct borrow_terms terms =
	    lessor_borrow_terms(link_of(lessor, purse->lender));
	struct borrow borrow = purses_borrow(&lessor->purses, purse);
	struct borrow_sight sight = sight_of(lessor, purse, in_debt, now);
	struct borrow_orders orders;

	warm(lessor, purse, borrow_spent(&borrow, sight.left));
	heat(lessor, purse);
	orders = borrow_look(&terms, &borrow, &sight, now);
	purses_keep_borrow(&lessor->purses, purse, &borrow);
	if (orders.what & BORROW_GIVE_BACK)
		give_idle_back(lessor, purse, now);
	if ((orders.what & BORROW_ASK_AHEAD) &&
	    lessor_need(lessor, purse, now) > orders.worth)
		ask(lessor, purse, COUNT_REFILLS); /* BORROW-8 */
	if (orders.what & BORROW_CLAIM)
		claim(lessor, purse);
	if (orders.what & BORROW_ASK_AGAIN)
		ask(lessor, purse, COUNT_AGAIN);
	return orders.what & BORROW_WATCH;
}

/* True when the round is over. */
static bool look_at_some(struct lessor *lessor, struct link *link, mono now)
{
	for (int i = 0; i < LOOKS_PER_TURN; i++) {
		uint32_t number = link->own.lent_first;
		bool last = number == link->own.round_last;

		if (number == NUMBER_LAST || link->own.round_last == NUMBER_LAST)
			return true;
		unlist(lessor, link, number);
		if (look_at(lessor, at(lessor, number), now))
			append(lessor, link, number);
		else
			purse_mark(at(lessor, number), DUES_LOOKED_AT, false);
		if (last)
			return true;
	}
	return false;
}

/* A long round is gone in parts, so that a turn stays short. */
void lessor_look(struct lessor *lessor, struct link *link, mono now)
{
	if (link->own.lent_first == NUMBER_LAST ||
	    !mono_reached(now, link->own.look_due))
		return;
	if (link->own.round_last == NUMBER_LAST) {
		link->own.round_last = link->own.lent_last;
		link->own.round_began = now;
	}
	if (!look_at_some(lessor, link, now)) {
		link->own.look_due = mono_after(now, LOOK_PAUSE_NS);
		return;
	}
	link->own.round_last = NUMBER_LAST;
	link->own.look_due =
	    mono_later(mono_after(now, LOOK_PAUSE_NS),
	               mono_after(link->own.round_began, link->own.look_ns));
}
