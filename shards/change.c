/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * change.c -- a limiter's terms have changed while it is open.                    (law L15)
 *
 *     a larger limit or burst ..... units in hand stay what they are; denials are dropped,
 *                                   some at a time, as there may be more now
 *     a smaller one ............... what is in hand goes back, and what is on its way when it
 *                                   arrives, so that it is in force soon and not only when a
 *                                   long window turns
 *     another rate or period ...... what is in hand goes back under the terms it was lent
 *                                   under, and each key begins with empty books
 *     units that carry over ....... stay in hand: they outlive windows, and no store takes
 *                                   them back
 *
 * The store converts what a key has spent; nothing is spent twice, and nothing is forgiven.
 *
 * Threads   The shard's actor.
 */
#include "shards/ahead.h"
#include "shards/lessor.h"

#define LOOKS_PER_TURN 1024

void lessor_copy_terms(struct link *link)
{
	struct lender *lender = link->own.lender;
	uint64_t changes = load_relaxed(&lender->changes);
	const struct terms terms = lender_terms(lender);

	link->own.changes = changes;
	link->own.rule = terms.rule;
	link->own.window_us = terms.window_us;
	link->own.look_ns = terms.look_ns;
}

static bool is_of(const struct link *link, const struct purse *purse)
{
	return purse->lender == link->own.lender && !purse_is_dead(purse);
}

/* The units that a window, a meter or a place was counted in, are they the same? */
static bool counts_alike(const struct rule *a, const struct rule *b)
{
	return a->fingerprint == b->fingerprint && a->is.period_us == b->is.period_us &&
	       a->is.anchor_us == b->is.anchor_us && a->is.buckets == b->is.buckets;
}

static void forget_asked(struct lessor *lessor, const struct purse *purse)
{
	const struct purse_own *own = purses_own(&lessor->purses, purse);

	if (own->errand != ERRAND_NONE && lessor->errands[own->errand].number != 0)
		lessor->errands[own->errand].forget = true;
}

/* Under the terms that it was lent under.  All at once: a purse that was left for later would
 * be filled under both. */
static void give_all_back(struct lessor *lessor, const struct link *link, mono now)
{
	struct purses *set = &lessor->purses;
	bool any = false;

	for (uint32_t i = 0; i < set->own.made; i++)
		if (is_of(link, purses_at(set, i)))
			any |= purse_want(purses_at(set, i), (mono){ 0 });
	if (any)
		grace_pass(set->own.grace); /* entered */
	for (uint32_t i = 0; i < set->own.made; i++)
		if (is_of(link, purses_at(set, i)))
			lessor_take_back(lessor, purses_at(set, i), now);
	lessor_send_returns(lessor);
}

/* Of windows, or of a meter's period, that are not counted any more.  Units that carry over stay
 * in hand. */
static void begin_books(struct lessor *lessor, const struct link *link, mono now)
{
	struct purses *set = &lessor->purses;

	for (uint32_t i = 0; i < set->own.made; i++) {
		struct purse *purse = purses_at(set, i);

		if (!is_of(link, purse))
			continue;
		forget_asked(lessor, purse);
		if (!link->own.lender->carry_over) {
			purses_void_by_change(purse);
			kept_shorten_debt(purse, now);
		}
		lessor_forget_ahead(lessor, purse);
		lessor_forget_books(lessor, purse);
	}
}

/* Of purses with credit; of the others the store speaks before they have some.  Answers from
 * cells tell the rest that was known before, so cells are emptied. */
static void move_rests(struct lessor *lessor, const struct link *link, uint64_t former,
                       mono now)
{
	struct purses *set = &lessor->purses;
	uint64_t limit = link->own.rule.capacity;
	uint32_t first = link->own.lent_first;
	bool any = false;

	for (uint32_t i = first; i != NUMBER_LAST;
	     i = purses_own(set, purses_at(set, i))->next)
		any |= purse_want(purses_at(set, i), now);
	if (any)
		grace_pass(set->own.grace); /* entered */
	for (uint32_t i = first; i != NUMBER_LAST;
	     i = purses_own(set, purses_at(set, i))->next) {
		purse_gather(purses_at(set, i), set->own.grace, now);
		purse_move_rest(purses_at(set, i), former, limit, now);
	}
}

/* A cost that was denied by a smaller limit may pass now. */
static void drop_denials(struct lessor *lessor, struct link *link)
{
	for (uint32_t i = 0; i < LOOKS_PER_TURN && link->own.unchanged > 0; i++) {
		struct purse *purse = purses_at(&lessor->purses, --link->own.unchanged);

		if (is_of(link, purse))
			purse_forget_denial(purse);
	}
}

struct books lessor_books(const struct link *link, mono now)
{
	struct books books = { link->own.rule.capacity, link->own.window_us };

	if (mono_reached(now, link->own.books_until))
		return books;
	if (books.capacity < link->own.books.capacity)
		books.capacity = link->own.books.capacity;
	if (books.period_us < link->own.books.period_us)
		books.period_us = link->own.books.period_us;
	return books;
}

/* Some purses' were begun just now. */
static void keep_books(struct link *link, mono now)
{
	link->own.books = lessor_books(link, now);
	link->own.books_until = mono_after(now, link->own.books.period_us * 1000 +
	                                            2 * link->own.lender->patience_ns);
}

void lessor_take_terms(struct lessor *lessor, struct link *link, mono now)
{
	struct lender *lender = link->own.lender;

	if (load_relaxed(&lender->changes) != link->own.changes) {
		const struct terms terms = lender_terms(lender);
		uint64_t former = link->own.rule.capacity;
		bool alike = counts_alike(&terms.rule, &link->own.rule);

		if ((!alike || terms.rule.capacity < former) && !lender->carry_over)
			give_all_back(lessor, link, now);
		if (!alike)
			begin_books(lessor, link, now);
		keep_books(link, now);
		lessor_copy_terms(link);
		if (!lender->carry_over)
			move_rests(lessor, link, former, now);
		link->own.unchanged = lessor->purses.own.made;
	}
	drop_denials(lessor, link);
}
