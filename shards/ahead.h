/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * ahead.h -- units that bridge the turn of a window.
 *
 * Between the earliest instant at which a window can be over at the store and the first answer of the
 * next one, a node has no lease.  Units ahead are counted in both windows (engine/lease.h), so a
 * call may be admitted from them without knowing in which of both it falls.
 *
 *     an answer brings units ahead ....... any thread takes from them where credit is dead
 *     idle credit goes back .............. their part of this window goes back, too; that of the
 *                                          next is set aside
 *     the store has no more .............. their part of this window is spent; likewise
 *     the next window has surely begun ... the actor looks: is somebody spending?  Then it asks
 *     its first answer comes ............. what is left joins the purse
 *
 * Each chunk of purses has room for them from the day on which the first of its keys is lent some.
 *
 * Invariants
 *
 *   AHEAD-1  What is taken was lent in this window or in the one before, and the next one cannot be
 *            over. (L1, L2)
 *   AHEAD-2  Units set aside are spent by nobody before an answer of their window has come. (L6)
 *   AHEAD-3  Of one window no more is believed to be lent ahead than a sixteenth of the limit, and
 *            it is in that window's books from their beginning. (L13)
 *
 * Threads   ahead_take, ahead_has_joined: any, within a grace period or with a pin on the purse.  The
 *           rest: the shard's actor.
 *
 * Ordering
 *
 *   bridged   the actor stores the address of the room with release  ->  ahead_of loads it
 *             with acquire: all is zero there.
 *   joined    the actor puts what an answer lends into credit, which ends with a fence (kept.h), then
 *             takes the word out  ->  a seat loads the word with acquire, then looks at credit again: a
 *             seat that comes too late for the word finds the credit.
 *   word is relaxed, as credit is: it says all that there is to know.  begins and lent are for what
 *   is told of an answer, and may be of the window before.
 */
#ifndef SHARDS_AHEAD_H
#define SHARDS_AHEAD_H

#include "engine/lease.h"
#include "shards/local.h"
#include "shards/purses.h"

struct ahead {
	_Atomic uint64_t word;      /* as credit: until the next window may be over */
	_Atomic uint64_t begins_ns; /* by then the next window has begun */
	_Atomic uint64_t lent;      /* of it, in all; 0: nothing is */
	uint64_t tag_us;            /* its start */
	uint64_t aside;             /* AHEAD-2 */
	uint64_t
	    unsaid; /* in the purse by now, and not out with this node, as the store sees
	                  * it: they stay spent */
	mono ends;  /* of the next window, at the earliest */
	mono due;   /* looked at then */
	uint32_t next, before; /* in the list of those to be looked at */
	bool is_listed;
	bool has_begun; /* it has been looked at since its window began */
};

struct aheads {
	struct ahead of[CHUNK_PURSES];
};

/* NULL: the purse's chunk has no room for any. */
static inline struct ahead *ahead_of(const struct purse *purse)
{
	struct aheads *aheads = load_acquire(&purse_chunk(purse)->aheads); /* bridged */

	return aheads ? &aheads->of[purse->number % CHUNK_PURSES] : NULL;
}

/* An answer tells of the window that ends at this instant or, once it is surely over, of the
 * next. */
static inline struct told ahead_told(const struct lender *lender,
                                     const struct ahead *ahead, uint64_t word, mono now)
{
	uint64_t capacity = load_relaxed(&lender->capacity);
	uint64_t lent = load_relaxed(&ahead->lent), left = credit_units(word);
	uint64_t spent = lent > left ? lent - left : 0;
	uint64_t begins = load_relaxed(&ahead->begins_ns);
	uint64_t ends = begins > now.ns ? now.ns + 1000 : credit_dies(word).ns;

	return (struct told){ capacity > spent ? capacity - spent : 0, ends - now.ns };
}

/* From units ahead, where neither credit nor memory says anything and credit is dead: then a window
 * turns. */
static inline bool ahead_take(const struct lender *lender, struct purse *purse,
                              mono now, uint64_t cost, struct told *ret_told)
{
	struct ahead *ahead = ahead_of(purse);
	uint64_t word;

	if (!ahead || credit_lives(load_relaxed(&purse->credit), now) ||
	    !credit_take(&ahead->word, now, cost, &word)) /* AHEAD-1 */
		return false;
	*ret_told = ahead_told(lender, ahead, word, now);
	return true;
}

/* Units ahead found nothing for a call: they may have joined the purse since its credit was looked at,
 * so that it is worth another look. */
static inline bool ahead_has_joined(const struct purse *purse, mono now, uint64_t cost)
{
	struct ahead *ahead = ahead_of(purse);

	if (!ahead)
		return false;
	(void)load_acquire(&ahead->word); /* joined */
	return credit_covers(load_relaxed(&purse->credit), now, cost);
}

/* By the actor, while threads take from it: what was left. */
static inline uint64_t ahead_empty(struct ahead *ahead, mono now)
{
	return credit_living(swap_relaxed(&ahead->word, 0), now);
}

/* By the actor, while threads take from it. */
static inline void ahead_put(struct ahead *ahead, uint64_t put, mono now)
{
	uint64_t word = load_relaxed(&ahead->word);

	while (!swap_if_relaxed(&ahead->word, &word, credit_with(word, put, now)))
		continue;
}

/* By the actor: in hand, to be spent by anybody or set aside. */
static inline uint64_t ahead_left(const struct ahead *ahead, mono now)
{
	return credit_living(load_relaxed(&ahead->word), now) + ahead->aside;
}

/* ---- In ahead.c ------------------------------------------------------------------- */

struct lessor;
struct link;
struct errand;

/* How many units ahead to ask for with the errand, and what is said of those that were lent. */
void lessor_fill_ahead(struct lessor *lessor, const struct errand *errand,
                       const struct borrow_need *need, struct lease_ask *ask, mono now);

/* Can the answer be, which brings some? */
bool lessor_ahead_is_possible(const struct errand *errand,
                              const struct lease_grant *grant);

/* Before units of an answer are put in.  If it is of the window that they were lent ahead of, they are
 * in its books, and what is left is to join the purse.  Else NULL. */
struct ahead *lessor_count_ahead(struct lessor *lessor, struct purse *purse,
                                 const struct lease_grant *grant, bool next);
/* After the units were put in: a call for no more than they are, which asks meanwhile, finds either of
 * both. */
void lessor_join_ahead(struct lessor *lessor, struct purse *purse, struct ahead *ahead,
                       mono ends, mono now);
/* After that: the answer brings some of the window after it. */
void lessor_put_ahead(struct lessor *lessor, const struct errand *errand,
                      const struct lease_grant *grant, mono now);

/* Units ahead that may be spent in the purse's window, beside what its books have; or in the next one,
 * of that tag, whose books have nothing yet. */
uint64_t lessor_lent_ahead(const struct purse *purse, const struct gale_slot *next);
/* Of so many units that are about to go back of the purse's window: how many the store takes for
 * this node's. */
uint64_t lessor_returnable(const struct purse *purse, uint64_t units);
/* Units in hand of a window that has begun a while ago, and of which no answer came: before that
 * it is looked at here. */
uint64_t lessor_ahead_in_hand(const struct purse *purse, mono now);
/* May some be spent in the window that an ask is about now? */
bool lessor_has_ahead(const struct purse *purse, mono now);
/* Takes out their part of this window, which is in its books from then on: how many. */
uint64_t lessor_set_aside(struct lessor *lessor, struct purse *purse, mono now);
/* This window is spent: their part of it is spent, too, before a call is denied. */
void lessor_use_ahead(struct lessor *lessor, struct purse *purse, mono now);

/* The purse is about to leave. */
void lessor_forget_ahead(struct lessor *lessor, struct purse *purse);

/* Looks at those whose window has begun; and when it wants to look next. */
void lessor_look_ahead(struct lessor *lessor, struct link *link, mono now);
mono lessor_ahead_due(const struct lessor *lessor, const struct link *link);

#endif
