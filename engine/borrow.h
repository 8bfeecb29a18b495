/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * borrow.h -- what a node does about the units of a key: event in, orders out.
 *
 *     event                                       orders
 *     an errand is about to be sent (ask) ....... how much to ask for, and how much must come
 *     it is for calls that wait (lack) .......... keep idle units for longer, if some went back
 *     the store has answered (hear) ............. remember a denial; or sleep until the window
 *                                                 turns
 *     those who could be served are (served) .... ask again for the rest, or keep them out; give
 *                                                 back what was lent under a larger limit
 *     a look, once in a while (look) ............ ask ahead, give back, ask again, watch
 *     a window has surely begun, of which units
 *     are in hand (turned), and after a pause ... ask for it, if somebody spends
 *
 * The actor (shards/) tells what it sees, carries the orders out, and keeps the key's state.
 * Models of the explorer do the same in a small world.  How much a window needs is the sizer's
 * to say (engine/sizer.h); when units die is engine/clock.h's.
 *
 * Invariants
 *
 *   BORROW-1  An ask is for at least what the smallest of the costs that wait lacks, so that an
 *             answer serves a call; and beyond that for no more than a word of credit has room
 *             for, or than a batch where units carry over. (L5, L14)
 *   BORROW-2  Units that no call has taken for an eighth of the window, or for a half by BORROW-7,
 *             go back, unless they carry over or there is a debt to pay. (L6)
 *   BORROW-3  A denial is what the store said it was: of the terms that are in force, of more
 *             than it had left, and until when it said so, counted from the sending.  A meter
 *             that lent something denies nothing. (L7, L15)
 *   BORROW-4  While a store has too little and others may give back, a call that was refused is asked
 *             for again: at the latest after an eighth of the window, and once more that for each
 *             BORROW_HOPERS nodes that hold units, or for each so many of them as have
 *             BORROW_WORTH units of the capacity each, if these are more; but a window at
 *             most.  So is one of a node that did not say that it had nothing: what it says then ends
 *             the hope of others.
 *   BORROW-5  A call that still waits after an answer is asked for again, at once or when the window has
 *             turned, or kept out until the store may lend; no call is left to wait for nothing.
 *             (L11)
 *   BORROW-6  Units ahead are asked for as many as a steady caller spends until the first answer of
 *             the next window can have come, while the store has enough for all. (L16)
 *   BORROW-7  A node whose idle units went back, and which asks for those of a few calls within the
 *             same window, keeps idle units for a half of the window from then on, until the store
 *             has too little, or they go back for all that. (L16)
 *   BORROW-8  While units of a window are in hand, an ask ahead for more of them is for more than
 *             was spent since the last look, or is not made, where the sizer knows what the window
 *             needs: what brings less than a look's need spares no trip. (L16)
 *
 * Threads   Pure: any, on different states.
 */
#ifndef ENGINE_BORROW_H
#define ENGINE_BORROW_H

#include "engine/clock.h"
#include "engine/credit.h"
#include "engine/lease.h"
#include "engine/sizer.h"

#define BORROW_UNSEEN CREDIT_UNITS_MAX /* more are not told apart */
#define BORROW_WAIT_MOST 2048u
#define BORROW_HOLDERS_MOST 4095u /* more are not told apart */
#define BORROW_HOPERS 32          /* among so many nodes a node waits twice as long, */
#define BORROW_WORTH 32           /* unless there are so many units for each of them */

/* Of a limiter, as they are in force. */
struct borrow_terms {
	uint64_t capacity;  /* the most that a window, or a burst, can grant */
	uint64_t window_us; /* the period that demand is counted in */
	uint64_t look_ns;   /* from one look to the next */
	uint64_t batch;     /* carry_over: asked for at a time */
	bool has_windows;   /* it is no meter and no pacer */
	bool has_places;    /* it is a pacer */
	bool carry_over;    /* units outlive their window, and do not go back */
};

/* Of a key.  All zero but .seen when new. */
struct borrow {
	uint32_t seen; /* units in hand at the last look, or BORROW_UNSEEN */
	uint16_t wait; /* looks until the store is asked again, while there is hope */
	uint8_t idle;  /* looks in a row that found nothing spent */
	uint8_t hopes; /* times in a row that the store had too few, and others held
	                    units; 0: it is not asked again for that */
	uint16_t holders; /* nodes with units out, as the store said last */
	bool is_patient;  /* its calls are more than an eighth of a window apart */
};

enum {
	BORROW_ASK_AHEAD = 1, /* no call waits: soon nothing is left */
	BORROW_ASK_AGAIN = 2, /* for those who still wait, or were refused */
	BORROW_GIVE_BACK = 4, /* units that no call has taken */
	BORROW_WATCH = 8,     /* to be looked at again */
	BORROW_DENY = 16,     /* remember until .until ... */
	BORROW_SLEEP = 32,    /* those who wait go on waiting until .until */
	BORROW_KEEP_OUT =
	    64, /* those who wait are told that nothing comes before .until */
	BORROW_QUARANTINE = 128, /* remember until .until that nothing is granted */
	BORROW_CLAIM = 256,      /* ask, so that what was lent ahead can go back */
};

struct borrow_orders {
	unsigned what; /* of the above */
	mono until;
	uint64_t beyond; /* ... that no cost so far beyond what is in hand can be had */
	uint64_t worth;  /* ASK_AHEAD: an ask for so many units or less is not made */
};

/* ---- An errand is about to be sent ------------------------------------------------ */

struct borrow_need {
	uint64_t waiting; /* the sum of the costs that wait, and of what is owed */
	uint64_t least;   /* the smallest of these costs; 0: no call waits */
	uint64_t denied;  /* the smallest cost that is refused from memory; 0: none */
	uint64_t owed;
	uint64_t common; /* in hand, for who waits */
	uint64_t held;   /* in hand, with what only a slow seat knows */
	/* Of the window that ends then; 0: none is known. */
	mono ends;
	uint64_t taken;      /* lent to this node, and not given back */
	uint64_t refused;    /* from memory */
	uint64_t store_left; /* as the store said last in this errand, or GALE_NEVER */
};

struct borrow_ask {
	uint64_t want;
	uint64_t least;
};

/* What the sizer is told, but for what the host predicts. */
struct sizer_view borrow_view(const struct borrow_terms *terms,
                              const struct borrow *self, const struct borrow_need *need,
                              mono now);

/* size: what the sizer says. */
struct borrow_ask borrow_ask(const struct borrow_terms *terms,
                             const struct borrow_need *need, uint64_t size);

/* The same errand is for calls that found too little in hand. */
void borrow_lack(const struct borrow_terms *terms, struct borrow *self,
                 const struct borrow_need *need, const struct borrow_ask *ask,
                 mono now);

/* ---- Units ahead ------------------------------------------------------------------- */

/* How long a window's turn takes a node. */
struct borrow_gap {
	uint64_t usual;   /* of a window, as the sizer says; 0: nothing is lent ahead */
	uint64_t least;   /* the smallest of the costs that wait; 0: no call waits */
	uint64_t trip_us; /* what an answer usually takes */
	uint64_t pause_us;  /* this node's, as below */
	uint32_t drift_ppm; /* of this clock by the store's: clock_apart_ppm */
};

/* How long after a window has begun a node asks for it: another time for each lot. */
uint64_t borrow_pause_us(uint64_t window_us, uint64_t lot, uint64_t lots);

uint64_t borrow_ahead(const struct borrow_terms *terms, const struct borrow_gap *gap);

struct borrow_turn {
	uint64_t left; /* of the units ahead */
	bool again;    /* it was looked at when the window had begun, a pause before */
	bool asked;    /* an errand is under way */
	bool down;     /* the store is left alone for a while, as it did not answer */
};

/* BORROW_ASK_AHEAD, BORROW_WATCH. */
unsigned borrow_turned(struct borrow *self, const struct borrow_turn *turn);

/* ---- The store has answered -------------------------------------------------------- */

struct borrow_answer {
	const struct lease_grant *grant;
	uint64_t want;     /* as it was asked for ... */
	uint64_t capacity; /* ... under terms of such a capacity ... */
	bool changed;      /* ... which are not in force any more ... */
	mono sent;         /* ... then */
	bool next;         /* it is of a later window than was known */
	bool spent; /* the store was told that nothing is in hand, or can be again */
	bool waits; /* it may have forgotten what it lent, and lends nothing yet */
	bool lives; /* there is credit that lives, now that the units are in hand */
};

/* Units that were granted are in hand, and no call was served yet. */
struct borrow_orders borrow_hear(const struct borrow_terms *terms, struct borrow *self,
                                 const struct borrow_answer *answer);

/* Who could be served by it is. */
struct borrow_orders borrow_served(const struct borrow_terms *terms,
                                   struct borrow *self,
                                   const struct borrow_answer *answer, bool any_waits);

/* An errand that brings nothing for its key, or has slept long enough. */
struct borrow_orders borrow_resume(bool any_waits);

/* ---- A look ------------------------------------------------------------------------ */

struct borrow_sight {
	uint64_t left; /* in hand */
	mono ends;     /* of its window */
	bool turned;   /* it is over, and these are units ahead of the next */
	bool in_debt;  /* what comes is not for those who ask */
	bool
	    denied; /* the store has said that it has no more, and may not have since */
	bool pressed; /* somebody was refused, or something is owed */
	bool asked;   /* an errand is under way */
	bool down;    /* the store is left alone for a while, as it did not answer */
};

/* Units have come, or have come back. */
void borrow_get(struct borrow *self);

/* How many were spent since the last look. */
uint64_t borrow_spent(const struct borrow *self, uint64_t left);

struct borrow_orders borrow_look(const struct borrow_terms *terms, struct borrow *self,
                                 const struct borrow_sight *sight, mono now);

#endif
