/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purse.h -- what this node may spend of one key: its lease entry.
 *
 * Any thread takes from it, without a lock; only the shard's actor puts something in.
 * Two words decide: credit, which may be spent, and denial, which remembers that the
 * store has no more.  Each is complete in itself (engine/credit.h), so nothing has to
 * be read together, and a reader that stalls between two steps does no harm.
 *
 *     line 0   whose it is, denial, credit     all that an ask of most keys touches
 *     line 1   most of the actor's books, where cells are, what a long key ends with or, where
 *              the key is short, what was learned of it
 *
 * An ask about a key that is not in the cache so waits for one line, and not for two.  Who
 * compares a name wants to write the credit, too: it loses nothing by meeting both at once.
 *
 * A key that is hot gets a cell for each seat, on a line of its own.  A seat moves a
 * slice of the credit to its cell, and takes from there by a load and a store, as no
 * other thread writes there.  When the actor wants back what lies in cells, it says so in each
 * and makes every thread pass a fence.  A seat that has stored before the fence has taken
 * what it stored, and the actor finds the rest; one that stores after it sees, when it
 * looks again, that it was too late, and has taken nothing:
 *
 *     the seat                                     the actor
 *       loads credit                                 stores state: wanted
 *       stores credit, less what it takes            fence, everywhere
 *       loads state: open?  Then it has taken.       loads credit, stores it in was
 *       Else it has not; later:                      stores state: taken
 *       state is taken: the cost is its own if the
 *       actor found credit without it.  Stores
 *       credit anew, swaps state: taken for open
 *
 * Where units are worth nothing any more, as after a reset, the actor stores state: void,
 * whatever it was, and looks at nothing: the seat begins with an empty cell, and what it was
 * about to take or to put in is void, too.
 *
 * Invariants
 *
 *   PURSE-1  Units are in one place at a time: they leave the word they were in before
 *            they enter another.  Credit and cells together hold at most what was put
 *            in.  (L1) Whose the units of a cell are that was wanted follows from what
 *            the actor found.
 *   PURSE-2  What readers compare (lender, hash, key) does not change from the day the
 *            purse is placed in the table until no reader can hold it any more.
 *   PURSE-3  A purse that is dead (pins) is never pinned again, and no seat has it at
 *            hand that had not before.  What a slow thread still puts into it is lost,
 *            not spent.
 *
 * Threads   purse_take, purse_place, purse_refuses, purse_is_spent, purse_use, purse_pin,
 *           purse_be_at_hand, purse_cells, purse_is_split, purse_note_contention: any, within
 *           a grace period or with a pin.  Of a cell, and of purse_take with its number: its
 *           seat, which has it alone.
 *           purse_unpin: the thread that has pinned.  The rest: the shard's actor.
 *
 * Ordering
 *
 *   denial, cells' credit, used, refused, contended and fought are relaxed: each says all
 *   there is to know, and publishes nothing else.  So is credit for who only takes.
 *   spoken    the actor stores rest, then swaps credit with release  ->  who tells what
 *             remains loads credit with acquire, then rest
 *             What the store had left is not of a window before that of the credit.  It is
 *             not of a later one by REST-1.
 *   unpinned  purse_unpin and purse_unpin_key subtract with release  ->  purse_kill swaps
 *             with acquire
 *             What was read under a pin has been read, before it is freed.  purse_kept_by is
 *             relaxed: of a call that puts something back at that time it may say either.
 *   celled   the actor stores split with release  ->  purse_cells and local_cell load it
 *            with acquire
 *            The cells are there, and empty, not garbage.
 *   entered  (runtime/grace.h) The actor stores state, makes every thread pass a fence,
 *            then loads credit; a seat stores credit, then loads state.  So they cannot
 *            both miss what the other stored.
 *   settled  the actor stores state with release  ->  the seat loads it with acquire
 *            It reckons with what the actor found, and cuts nothing from a word that was
 *            void before.
 *   opened   the seat swaps state with release  ->  the actor loads it with acquire
 *            What it wants next is what the seat has reckoned.
 *   booked   the actor stores a block with release  ->  purse_place loads it with acquire
 *            All of it is there.
 */
#ifndef SHARDS_PURSE_H
#define SHARDS_PURSE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include <gale/rule.h>

#include "engine/credit.h"
#include "engine/rest.h"
#include "engine/sizer.h"
#include "runtime/atomic.h"
#include "runtime/grace.h"
#include "runtime/hot.h"
#include "shards/block.h"
#include "shards/part.h"

struct lender;

enum cell_state {
	CELL_OPEN,   /* its seat takes from it */
	CELL_WANTED, /* the actor is about to; the seat keeps away */
	CELL_TAKEN,  /* the actor has; the seat reckons what it left */
	CELL_VOID,   /* nothing in it, nor on the way to it, is worth anything */
};

/* The word of one seat: two lines, as processors fetch lines in pairs. */
struct cell {
	alignas(WET_ALIGN) _Atomic uint32_t state;
	_Atomic uint64_t was; /* CELL_TAKEN: what the actor found */
	/* What is the seat's, if it was too late: when the actor has found what the seat
	 * stored, and when it has not. */
	_Atomic uint64_t mine_if_found, mine_if_not;
	/* Its seat's own. */
	uint64_t behind; /* what all share, as its last slice left it */
	uint64_t
	    beside; /* what all share, when it was last reckoned what remains ... */
	uint64_t
	    beyond; /* ... so much more than that word: its units, and the store's */
	_Atomic uint64_t credit; /* written by the seat alone */
};
static_assert(IS_WET(struct cell, credit) && !IS_WET(struct cell, state), "see hot.h");

struct cells {
	struct part part; /* first */
	uint32_t count;
	struct cell at[]; /* by the seat's number */
};

#define NO_SEAT UINT32_MAX /* the number of who has no cell */

#define PURSE_HEAD 16
#define PURSE_NEAR 32 /* longer keys are kept elsewhere */
#define PURSE_DEAD (UINT32_C(1) << 31)
#define PURSE_AT_HAND (UINT32_C(1) << 30) /* seats may have it at hand (pocket.h) */
#define PURSE_KEY                                                                      \
	(UINT32_C(1) << 16) /* a pin of a handle of the key counts so much ... */
#define PURSE_KEYS_MOST (UINT32_C(1) << 29) /* ... until there is that much */

struct purse {
	alignas(CACHE_LINE) struct lender *lender;
	uint16_t key_len;
	_Atomic bool used;         /* since the hand last passed */
	_Atomic uint8_t split;     /* so many seats have cells; 0: it is not hot */
	_Atomic uint8_t contended; /* signs, since the last look, that it is hot; if it
	                              is split, that it is fought over; racy */
	_Atomic bool fought;       /* threads want what all share, though it is split */
	uint16_t holders : 12;     /* of struct borrow ... */
	uint16_t hopes : 4;        /* ... and its .hopes */
	uint8_t head[PURSE_HEAD];  /* of the key, if that is near */
	_Atomic uint32_t refused;  /* units refused from memory, in this window,
	                             as far as counted; racy */
	_Atomic uint32_t pins;     /* those who hold it, and the two bits above */
	_Atomic uint64_t rest;     /* what the store had left, as it said last */
	_Atomic uint64_t
	    denial; /* lives as credit does; its units: the most that may be had */
	_Atomic uint64_t credit;

	union {
		_Atomic(struct cells *) cells; /* if it is split, or about to be */
		_Atomic(struct block *) block; /* of a pacer; NULL: none */
	};
	/* What the actor knows of the window that the credit is from: its tag. */
	uint64_t tag_us;
	union {
		uint64_t tag_part;
		uint64_t told; /* a window's tag has no part: how much of it was used,
		                  as the store said last */
	};
	union {
		mono ends; /* when it is surely over at the store, as far as known */
		mono reset_at; /* where the store decides each: what it said by then is
		                  of before the key was reset */
	};
	union {
		uint64_t taken; /* units lent to this node under the tag, and not given
		                   back */
		struct retired retired; /* when it is out of the table */
	};
	uint32_t hash;   /* its low half: where it is at home */
	uint32_t number; /* in its set */
	union {
		uint8_t tail[PURSE_NEAR - PURSE_HEAD]; /* of the key, if that is near */
		uint8_t *far;                          /* all of it */
		union sizer sizer; /* of a key that is all head (purse_sizer) */
	} key;
};

static_assert(sizeof(struct purse) == 2 * CACHE_LINE &&
                  offsetof(struct purse, cells) == CACHE_LINE,
              "two lines, and asks of most keys touch one");
static_assert(IS_WET(struct purse, credit) && IS_WET(struct purse, refused) &&
                  IS_WET(struct purse, rest) && !IS_WET(struct purse, lender) &&
                  !IS_WET(struct purse, key_len) && !IS_WET(struct purse, used) &&
                  !IS_WET(struct purse, split) && !IS_WET(struct purse, fought) &&
                  !IS_WET(struct purse, head),
              "see hot.h");

/* key_len bytes. */
void purse_copy_key(const struct purse *purse, uint8_t *ret_key);

/* ---- Spending -------------------------------------------------------------------- */

/* Takes cost from one word; *ret_word is what it became. */
static inline bool credit_take(_Atomic uint64_t *credit, mono now, uint64_t cost,
                               uint64_t *ret_word)
{
	uint64_t word = load_relaxed(credit);

	while (credit_covers(word, now, cost))
		if (swap_if_relaxed(credit, &word, word - cost)) { /* CREDIT-1 */
			*ret_word = word - cost;
			return true;
		}
	return false;
}

/* Takes cost from a cell, as its seat: without a step that others wait for.  left is what its
 * word becomes.  False: the actor wants it. */
static ALWAYS_INLINE bool cell_spend(struct cell *cell, uint64_t left, uint64_t cost)
{
	store_relaxed(&cell->credit, left); /* CREDIT-1 */
	fence_compiler();                   /* entered */
	if (LIKELY(load_relaxed(&cell->state) == CELL_OPEN))
		return true;
	store_relaxed(&cell->mine_if_found, (left & ~CREDIT_UNITS_MAX) | cost);
	return false;
}

static ALWAYS_INLINE bool cell_take(struct cell *cell, mono now, uint64_t cost,
                                    uint64_t *ret_word)
{
	uint64_t word = load_relaxed(&cell->credit);

	*ret_word = word - cost;
	return LIKELY(load_relaxed(&cell->state) == CELL_OPEN) &&
	       LIKELY(credit_covers(word, now, cost)) &&
	       cell_spend(cell, word - cost, cost);
}

/* Has any seat a cell? */
static ALWAYS_INLINE bool purse_is_split(struct purse *purse)
{
	return load_relaxed(&purse->split) > 0;
}

/* Another thread has just been at what all share, too. */
static inline void purse_note_contention(struct purse *purse)
{
	uint8_t signs = load_relaxed(&purse->contended);

	if (signs < UINT8_MAX)
		store_relaxed(&purse->contended, (uint8_t)(signs + 1));
}

/* NULL: it has none. */
static ALWAYS_INLINE struct cells *purse_cells(struct purse *purse)
{
	return load_acquire(&purse->split) ? load_relaxed(&purse->cells) /* celled */
	                                   : NULL;
}

/* The long way: there are cells, or another thread was faster.  Takes cost units; *ret_word is
 * then what is left where they were. */
bool purse_take_shared(struct purse *purse, uint32_t seat, mono now, uint64_t cost,
                       uint64_t *ret_word);

/* The same, if no other thread takes at this instant. */
static inline bool purse_take(struct purse *purse, uint32_t seat, mono now,
                              uint64_t cost, uint64_t *ret_word)
{
	uint64_t word;

	if (load_relaxed(&purse->split))
		return purse_take_shared(purse, seat, now, cost, ret_word);
	word = load_relaxed(&purse->credit);
	if (!credit_covers(word, now, cost))
		return false;
	*ret_word = word - cost;
	if (swap_if_relaxed(&purse->credit, &word, word - cost))
		return true;
	return purse_take_shared(purse, seat, now, cost, ret_word);
}

/* The rest of the limit, as far as this node knows, once a take has made a word what it is
 * now: there, in what all share, and at the store.  Of other seats' cells nothing is known. */
uint64_t purse_remaining(struct purse *purse, uint32_t seat, mono now, uint64_t word);

/* The same of a pacer: at once from the burst, or a place of the block.  False if there
 * is neither. */
bool purse_place(struct purse *purse, mono now, uint64_t cost,
                 struct gale_answer *ret_answer);

/* Up to what a word can hold, as no more is ever asked for.  From then on nothing is written:
 * threads that are all refused share the line without waiting for each other. */
static inline void purse_count_refused(struct purse *purse, uint64_t cost)
{
	uint32_t refused = load_relaxed(&purse->refused);

	if (!LIKELY(refused >= CREDIT_UNITS_MAX))
		store_relaxed(&purse->refused, refused + (uint32_t)cost);
}

/* Is it known that the store has not got so much?  *ret_word is then the denial: it
 * dies when it is time to ask again. */
static inline bool purse_refuses(struct purse *purse, mono now, uint64_t cost,
                                 uint64_t *ret_word)
{
	uint64_t word = load_relaxed(&purse->denial);

	if (!LIKELY(cost > credit_units(word)) || !LIKELY(credit_lives(word, now)))
		return false;
	purse_count_refused(purse, cost);
	*ret_word = word;
	return true;
}

/* Has the store said that it has no more? */
static inline bool purse_is_spent(struct purse *purse, mono now)
{
	return credit_lives(load_relaxed(&purse->denial), now);
}

/* A denial that refuses no cost: the store grants nothing until then, and what is told to who
 * asks is the limiter's policy. */
#define PURSE_QUARANTINED CREDIT_UNITS_MAX

static inline bool denial_is_quarantine(uint64_t units)
{
	return units == PURSE_QUARANTINED;
}

/* Until when does the store grant nothing, as far as it has said?  False: it may. */
static inline bool purse_is_quarantined(const struct purse *purse, mono now,
                                        mono *ret_until)
{
	uint64_t word = load_relaxed(&purse->denial);

	*ret_until = credit_dies(word);
	return denial_is_quarantine(credit_units(word)) && credit_lives(word, now);
}

/* Has it cells, or is it about to get them?  Of no pacer's. */
static inline bool purse_gets_cells(struct purse *purse)
{
	return load_relaxed(&purse->cells) != NULL;
}

/* Tells the hand that it is in use. */
static inline void purse_use(struct purse *purse)
{
	if (!load_relaxed(&purse->used)) /* most often it is said already */
		store_relaxed(&purse->used, true);
}

/* Keeps it from being evicted; false if it is dead already. PURSE-3 */
static inline bool purse_pin(struct purse *purse)
{
	uint32_t pins = load_relaxed(&purse->pins);

	while (!(pins & PURSE_DEAD))
		if (swap_if_relaxed(&purse->pins, &pins, pins + 1))
			return true;
	return false; /* PURSE-3 */
}

static inline void purse_take_pin(struct purse *purse, uint32_t pin)
{
	(void)sub_release(&purse->pins, pin); /* unpinned */
}

static inline void purse_unpin(struct purse *purse)
{
	purse_take_pin(purse, 1);
}

/* The same for a handle of the key, which takes no units.  Calls that keep so many as to be taken for
 * a handle are told apart again when they are fewer. */
static inline bool purse_pin_key(struct purse *purse)
{
	uint32_t pins = load_relaxed(&purse->pins);

	while (!(pins & (PURSE_DEAD | PURSE_KEYS_MOST)))
		if (swap_if_relaxed(&purse->pins, &pins, pins + PURSE_KEY))
			return true;
	return false; /* PURSE-3 */
}

static inline void purse_unpin_key(struct purse *purse)
{
	purse_take_pin(purse, PURSE_KEY);
}

/* Says that a seat may have it at hand; false if it is dead already. PURSE-3 */
bool purse_be_at_hand(struct purse *purse);

/* ---- The actor's side ------------------------------------------------------------ */

/* Puts units in that live until then.  What is dead by now stays dead. */
void purse_put(struct purse *purse, mono then, uint64_t units, mono now);

/* Says in each cell that has something in it that it is wanted.  True: every thread has to
 * pass a fence (grace_pass) before purse_gather is called; one is enough for many purses. */
bool purse_want(struct purse *purse, mono now);

/* Brings what lies in the cells back to the credit that all share. */
void purse_gather(struct purse *purse, struct grace *grace, mono now);

/* Takes all that is left of it, and of its cells; 0 if it is dead by now. */
uint64_t purse_empty(struct purse *purse, struct grace *grace, mono now);

/* Nothing that was put in by now is spent any more: what a seat has not said yet, neither. */
void purse_void(struct purse *purse);

/* What is left for anybody: where it lies, cells included, it can be gathered.  Racy. */
uint64_t purse_common(struct purse *purse, mono now);

/* The same, with what only a seat that was late can reckon; for books only. */
uint64_t purse_left(struct purse *purse, mono now);

/* Notes the rest that the store has just told, before the units that it has lent are put in. */
void purse_tell(struct purse *purse, uint64_t left, mono now);
/* The store's word was by another limit: what it would have said by this one. */
void purse_move_rest(struct purse *purse, uint64_t former, uint64_t limit, mono now);

/* Remembers until then that no cost of so many units, or more, can be had. */
void purse_deny(struct purse *purse, mono then, uint64_t least);
/* Remembers that nothing is granted until then. */
void purse_quarantine(struct purse *purse, mono then);
/* Nothing is known to be denied. */
void purse_forget_denial(struct purse *purse);

/* It is about to get these: a thread that sees it forgotten after that does not put it at hand
 * without a cell (pocket.h). */
void purse_give(struct purse *purse, struct cells *cells);
/* From now on it has them. */
void purse_split(struct purse *purse);

/* Puts a block in the place of the one that was there, which is returned. */
struct block *purse_put_block(struct purse *purse, struct block *block);

/* True if no thread holds it; then none will. */
bool purse_kill(struct purse *purse);

static inline bool purse_is_dead(const struct purse *purse)
{
	return load_relaxed(&purse->pins) & PURSE_DEAD;
}

static inline bool purse_is_held(const struct purse *purse)
{
	return load_relaxed(&purse->pins) & ~(PURSE_DEAD | PURSE_AT_HAND);
}

/* How many threads hold it, but for handles of the key: calls that may put back what they keep, and
 * the actor, if it has a pin. */
static inline uint32_t purse_kept_by(const struct purse *purse)
{
	return load_relaxed(&purse->pins) % PURSE_KEY;
}

/* May a seat have it at hand?  Of one that is dead: that is known for good. */
static inline bool purse_is_at_hand(const struct purse *purse)
{
	return load_relaxed(&purse->pins) & PURSE_AT_HAND;
}

#endif
