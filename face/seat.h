/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * seat.h -- one thread's place at the runtime, and the asks it has sent away.
 *
 * Threads   All of it: the seat's own.
 */
#ifndef FACE_SEAT_H
#define FACE_SEAT_H

#include <pthread.h>

#include "engine/check.h"
#include "coordinator/fund.h"
#include "face/face.h"
#include "runtime/counter.h"
#include "shards/pocket.h"

struct pending {
	struct ask ask; /* first: a done ask is found by its address */
	struct pending *next;
	struct gale_limiter *limiter; /* NULL: it is a tenant's */
	struct gale_tenant *tenant;
	struct fund_wait wait; /* of a tenant */
	void *tag;
	bool awaited;   /* by a call that will take it itself */
	bool answered;  /* awaited, and now there */
	bool abandoned; /* no call wants it any more */

	/* Of a part of a whole (whole.c): its first part, which has the rest. */
	struct pending *whole; /* NULL: it is no part */
	struct pending *next_part;
	bool is_decided;      /* a part's answer is in its op, and no shard was asked */
	uint32_t waits_for;   /* the first: parts that are not there yet */
	struct gale_all *all; /* the first: where the whole is told ... */
	struct gale_hold *hold; /* ... and held; NULL: it is used */
};

struct pending_list {
	struct pending *first;
	struct pending *last;
};

struct gale_seat {
	struct handle handle;
	alignas(
	    CACHE_LINE) mono ticked; /* what time it is for its asks; 0: it reads the
	                                    clock */
	uint32_t number;             /* the index of its cells; CELLS_MOST: none, or
	                                it has left */

	/* The runtime's: they are read here, as it takes longer to go there first. */
	uint32_t shard_count;
	const struct root *roots;
	struct lifeline lifeline;
	/* Of guards: the same word, or while the seat has no cells one that is no token. */
	const _Atomic uint64_t *pass;

	struct counter counter;                   /* what time it is, in between */
	alignas(CACHE_LINE) struct ask_home home; /* from here on others write, too */
	struct wake wake;
	struct mailbox done;

	/* The reader's word and the counters are written by every ask. */
	alignas(
	    WET_ALIGN) struct list place; /* in the runtime's list, under its lock */
	struct reader reader;
	_Atomic uint64_t counters[SEAT_COUNTER_COUNT];

	pthread_t owner;
	uint32_t taken; /* its number until it dies */
	uint32_t notes; /* of denials, that are with a shard */
	struct pending *free;
	struct pending_list ready;
	struct mail_slot *done_slots;
	uint32_t done_count;
	struct pending *pendings;
	struct poller poller;    /* who waits */
	struct kept_clock clock; /* looked at whenever units go back */
	alignas(WET_ALIGN) struct pocket pocket;
	struct scores scores;
};

static_assert(IS_WET(struct gale_seat, reader.reading) &&
                  !IS_WET(struct gale_seat, handle.runtime) &&
                  !IS_WET(struct gale_seat, ticked) &&
                  !IS_WET(struct gale_seat, number) &&
                  !IS_WET(struct gale_seat, roots) &&
                  !IS_WET(struct gale_seat, lifeline.word) &&
                  !IS_WET(struct gale_seat, lifeline.token) &&
                  !IS_WET(struct gale_seat, pass) &&
                  !IS_WET(struct gale_seat, shard_count) &&
                  !IS_WET(struct gale_seat, counter.ticks) &&
                  !IS_WET(struct gale_seat, counter.rate) &&
                  !IS_WET(struct gale_seat, pocket.known) &&
                  !IS_WET(struct gale_seat, scores.chunks[0]) &&
                  !IS_WET(struct gale_seat, scores.chunks[SCORE_DRY - 1]) &&
                  IS_WET(struct gale_seat, scores.chunks[SCORE_DRY]) &&
                  !IS_WET(struct gale_seat, scores.chunks[SCORE_DRY + SCORE_WET]) &&
                  !IS_WET(struct gale_seat, scores.chunks[SCORE_SLOTS - 1]),
              "see hot.h");

static_assert(sizeof(struct gale_seat) <= HALF_A_PAGE, "see struct chunk");

/* What an ask reads of a purse, and not only to count, against what it writes of its seat. */
#define IS_APART(of_purse, type, written)                                              \
	(WET_WORD(struct purse, of_purse) != WET_WORD(type, written))
static_assert(IS_APART(credit, struct gale_seat, reader.reading) &&
                  IS_APART(denial, struct gale_seat, reader.reading) &&
                  IS_APART(rest, struct gale_seat, reader.reading) &&
                  IS_APART(rest, struct score, counts[GALE_WHY_CREDIT][1]) &&
                  IS_APART(credit, struct score, counts[GALE_WHY_CREDIT][1]) &&
                  IS_APART(credit, struct score, counts[GALE_WHY_SPENT][0]) &&
                  IS_APART(denial, struct score, counts[GALE_WHY_SPENT][0]),
              "see hot.h");

/* Has it not left, and is this the process that it joined in? */
bool seat_is_here(const struct gale_seat *seat);

/* Has it not left?  Where it has, the memory may be another's soon: see FACE-2. */
static ALWAYS_INLINE bool seat_is_in(const struct gale_seat *seat)
{
	return !load_relaxed(&seat->handle.closed);
}

/* In builds for debugging: panics on any thread but the seat's own. */
static inline void seat_check_thread(const struct gale_seat *seat)
{
	gale_audit(pthread_equal(seat->owner, pthread_self()));
	(void)seat;
}

/* The instant that an ask of this seat is made at; false: the clock must be looked at. */
static ALWAYS_INLINE bool seat_tells(const struct gale_seat *seat, mono *ret_now)
{
	uint64_t since;

	*ret_now = seat->ticked;
	if (LIKELY(seat->ticked.ns > 0))
		return true;
	if (!LIKELY(counter_runs(&seat->counter, counter_ticks(), &since)))
		return false;
	*ret_now = counter_at(&seat->counter, since);
	return true;
}

/* The same, and it always tells. */
mono seat_now(struct gale_seat *seat);
/* The time by the clock, also on a seat that ticks. */
mono seat_look(struct gale_seat *seat);

/* So many of the units that are kept go back.  True: their purse owes something all the same. */
static inline bool seat_put_back(struct gale_seat *seat, struct kept_units *kept,
                                 uint64_t units)
{
	return kept_give_back(kept, units, kept_books(kept->purse), &seat->clock);
}

/* So many units more were used. */
static inline void seat_owe(struct gale_seat *seat, struct kept_units kept,
                            uint64_t over)
{
	kept_owe(kept, over, &seat->clock);
}

/* The pin on their purse goes. */
static inline void seat_let_go(struct kept_units *kept)
{
	if (kept->purse)
		purse_unpin(kept->purse);
	kept->purse = NULL;
}

/* A shard is to look at the purse, and has the pin; false: no shard could be told. */
bool seat_note_due(struct gale_seat *seat, struct gale_limiter *limiter,
                   struct purse *purse);

/* The pin goes where something was put back or is owed: a shard that must see to that gets it, as
 * no other thread goes around to the purse, or looks for what pays its debt. */
static ALWAYS_INLINE void seat_hand_on(struct gale_seat *seat,
                                       struct gale_limiter *limiter,
                                       struct purse *purse, struct kept_books books,
                                       bool owes)
{
	if ((LIKELY(kept_is_seen(books)) && LIKELY(!owes)) || !seat_is_in(seat) ||
	    !seat_note_due(seat, limiter, purse))
		purse_unpin(purse);
}

/* All of them go back, and the pin goes. */
void seat_give_back(struct gale_seat *seat, struct gale_limiter *limiter,
                    struct kept_units *kept);

static inline void seat_count(struct gale_seat *seat, enum seat_counter counter)
{
	count_add(&seat->counters[counter], 1);
}

/* The seat's counts of a limiter that is listed. */
static ALWAYS_INLINE struct score *seat_score(const struct gale_seat *seat,
                                              const struct lender *lender)
{
	return score_at(&seat->scores, lender->score);
}

/* Hands the op to a shard; NULL if the seat or the shard has its hands full.  It is awaited
 * until due; or, if that is 0, comes to the seat's completions. */
struct pending *seat_send(struct gale_seat *seat, struct gale_limiter *limiter,
                          const struct store_op *op, void *tag, mono due);

/* One for an ask of a tenant, which holds seat and tenant; NULL: the seat has its hands full. */
struct pending *seat_wait_for(struct gale_seat *seat, struct gale_tenant *tenant,
                              uint64_t cost, void *tag, bool awaited);
/* It was answered at once. */
void seat_wait_no_more(struct gale_seat *seat, struct pending *pending);

/* Has the seat so many pendings that are free? */
bool seat_has_free(struct gale_seat *seat, size_t count);
/* One of them for a part of a whole, in hand: what is taken for it may go back. */
struct pending *seat_part(struct gale_seat *seat, struct gale_limiter *limiter,
                          const struct store_op *op);
/* Hands it to a shard; false if that has its hands full. */
bool seat_post(struct gale_seat *seat, struct pending *part);
/* The part is ready without a shard. */
void seat_ready(struct gale_seat *seat, struct pending *part);

/* Tells the shard what the store, asked at that instant, has denied; when hands are full, it is
 * not told. */
void seat_note_denial(struct gale_seat *seat, struct gale_limiter *limiter,
                      const struct store_op *op, mono asked);

/* Waits for an awaited pending and takes what it says; STORE_LATE when the deadline
 * (patience_now_ns) comes first, and then no call waits any more.  Of a part, *ret_kept gets what
 * was taken for it. */
enum store_result seat_await(struct gale_seat *seat, struct pending *pending,
                             struct store_op *op, struct kept_units *ret_kept,
                             uint64_t deadline_ns);

/* Keeps the descriptor readable while something is ready. */
void seat_raise_if_ready(struct gale_seat *seat);
/* Fetches what the shards have answered: to the ready list, or to who awaits it. */
void seat_collect(struct gale_seat *seat);
/* The same, if notes are under way: those of a seat that asks no shard would never come back. */
static inline void seat_collect_notes(struct gale_seat *seat)
{
	if (LIKELY(seat->notes == 0))
		return;
	seat_collect(seat);
	seat_raise_if_ready(seat);
}

/* The next one ready, or NULL; to be recycled when it has been read. */
struct pending *seat_take_ready(struct gale_seat *seat);
void seat_recycle(struct gale_seat *seat, struct pending *pending);

#endif
