/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turnstile.h -- the slots of a guard: a word that decides, and a cell for each seat.
 *
 * The word (engine/slots.h) counts what is in flight.  Threads that all write it wait for
 * each other, so where the ceiling is large enough a seat keeps free slots in a cell of its
 * own: it enters and exits by a step on its cell, and only reads the word.  Kept slots are
 * in flight for the word, so the ceiling holds whatever lies in cells.
 *
 *     enter: from the cell, if it keeps enough and no more is in flight than may be
 *            else from the word; if that is full, what all cells keep goes back to the
 *            word first
 *     exit:  to the cell, if it may keep more and a quarter of the ceiling is free
 *            else to the word
 *
 * A cell's word is {calls 32, kept 32}.  A thread that calls back what a cell keeps counts the
 * calls up, so a seat that has looked at the word before cannot finish its step after.
 *
 *     the seat                                  the coordinator
 *       loads its cell                            changes the word
 *       loads the word: may it?                   swaps each cell: one more call, none kept
 *       swaps its cell, if it is still the same
 *
 * Invariants
 *
 *   TURNSTILE-1  The word's in flight is the calls that are in flight and the slots that cells
 *           keep; a slot that moves is counted all the while.  (H4)
 *   TURNSTILE-2  Once turnstile_call_back has returned, nothing is taken from a cell or kept in one on
 *           the strength of what the word was before.  So after a fence nothing enters.  (H5)
 *   TURNSTILE-3  Cells keep at most a quarter of the ceiling: the sum of their most.
 *   TURNSTILE-4  Of all steps on a word that is closed, one alone leaves 0 in flight, and the
 *           thread that makes it is told.  No thread touches the turnstile after giving the
 *           last slot back.
 *
 * Threads   turnstile_enter, turnstile_give, the quick ways and turnstile_keep_one: any, each with
 *           the cell of its seat, which no other thread has.  turnstile_call_back: any.
 *           turnstile_apply, turnstile_keep: the coordinator.  turnstile_close: the thread that
 *           closes, once.  A tally: written by its seat, read by any; that of seats without a
 *           cell is added to by all of them.
 *
 * Ordering
 *
 *   The word's ceiling is relaxed: a call that does not see a change yet came before it.
 *   called   turnstile_call_back swaps a cell with release  ->  its seat loads it with acquire
 *            before it keeps a slot: the word that it loads then is the one from before the
 *            call, or newer.  A thread that takes from a cell takes what it has kept since.
 *   vacated  turnstile_give and turnstile_exit_quickly swap with release  ->  a thread that calls
 *            a cell back, or gives to the word, swaps with acquire: the one that leaves 0 in
 *            flight on a closed word sees all that was done with the guard, and may free it.
 */
#ifndef COORDINATOR_TURNSTILE_H
#define COORDINATOR_TURNSTILE_H

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/clock.h"
#include "engine/slots.h"
#include "runtime/atomic.h"
#include "runtime/hot.h"

/* Why a call was refused: the word's reasons, and two of the call itself. */
enum turnstile_refusal {
	TURNSTILE_REFUSED_CLASS =
	    SLOTS_BY_CLOSE + 1, /* there are slots, for normal calls */
	TURNSTILE_REFUSED_WIDE, /* it wants more slots than one call may take */
	TURNSTILE_REFUSALS
};

enum turnstile_outcome {
	TURNSTILE_OK,
	TURNSTILE_DROPPED, /* it timed out, or the backend refused it */
	TURNSTILE_IGNORED, /* it says nothing of the backend */
	TURNSTILE_OUTCOMES
};

/* Calls that ended alike. */
struct tally_ended {
	_Atomic uint64_t slots;
	_Atomic uint64_t busy_ns; /* slots times round trip */
};

/* A seat's counts since the guard was opened. */
struct tally {
	_Atomic uint64_t entered; /* calls */
	struct tally_ended ended[TURNSTILE_OUTCOMES];
	_Atomic uint64_t overdue; /* calls */
	uint64_t unused[7];
	_Atomic uint64_t
	    refused[TURNSTILE_REFUSALS]; /* calls, by slots_by or turnstile_refusal */
};

/* Two lines, as processors fetch lines in pairs.  Words that each call writes are wet (hot.h). */
struct turnstile_cell {
	alignas(WET_ALIGN) uint64_t unused[2];
	uint64_t bit;          /* of keeping */
	_Atomic uint32_t most; /* it keeps; written by the coordinator */
	_Atomic uint64_t kept; /* {calls, kept} */
	struct tally tally;
};
static_assert(IS_WET(struct turnstile_cell, kept) &&
                  IS_WET(struct turnstile_cell, tally.entered) &&
                  IS_WET(struct turnstile_cell, tally.ended[TURNSTILE_OK].slots) &&
                  IS_WET(struct turnstile_cell, tally.ended[TURNSTILE_OK].busy_ns) &&
                  IS_WET(struct turnstile_cell, tally.refused[SLOTS_BY_CEILING]) &&
                  IS_WET(struct turnstile_cell, tally.refused[SLOTS_BY_PROBE]) &&
                  !IS_WET(struct turnstile_cell, most) &&
                  !IS_WET(struct turnstile_cell, bit),
              "see hot.h");

#define TURNSTILE_CELLS_MOST 64 /* as many as bits in a word */

struct turnstile {
	alignas(WET_ALIGN) _Atomic uint64_t word;
	/* Read by each call, and seldom written. */
	alignas(WET_ALIGN) struct turnstile_cell *cells; /* by the seat's number */
	/* A call whose clock has come so far does not enter; 0: none does; UINT64_MAX: all do.
	 * (engine/member.h) */
	_Atomic uint64_t fence_ns;
	_Atomic uint64_t keeping; /* cells that may keep something, a bit each */
	_Atomic uint32_t peak;    /* in flight at most, since the coordinator took it */
	bool observes;            /* nothing is refused */
	/* Read by few calls. */
	struct tally *common; /* of seats without a cell */
	uint32_t cell_count;
	uint64_t wide;       /* of the ceiling, for one call: slots_fraction */
	uint32_t wide_least; /* slots that one call may take of any ceiling */
	/* Slots of the widest call that not all of the ceiling in force was enough for, since the
	 * coordinator took it. */
	_Atomic uint32_t kept_out;
	/* A give of more than was in flight.  Something is wrong with the host. */
	_Atomic uint64_t refused_gives;
	uint64_t
	    sheddable; /* of the ceiling, for sheddable calls; read by each of them */
};
static_assert(!IS_WET(struct turnstile, word) && !IS_WET(struct turnstile, cells) &&
                  !IS_WET(struct turnstile, fence_ns) &&
                  !IS_WET(struct turnstile, keeping) &&
                  !IS_WET(struct turnstile, peak) &&
                  !IS_WET(struct turnstile, observes) &&
                  !IS_WET(struct turnstile, sheddable),
              "see hot.h");

struct turnstile_config {
	uint32_t cell_count;
	uint32_t sheddable_permille, wide_permille;
	uint32_t begins; /* the ceiling of a guard that has learned nothing */
	bool observes;
};

/* cells has room for one more than cell_count, all zero. */
void turnstile_init(struct turnstile *turnstile, struct turnstile_cell *cells,
                    const struct turnstile_config *config);

/* The outcome of an entry; in one register. */
struct turnstile_entered {
	uint32_t most; /* the ceiling in force */
	uint32_t
	    how; /* 0: it is in; or one of these, and slots_by or turnstile_refusal */
};
#define TURNSTILE_OBSERVED 0x100u /* it is in, and would have been refused */
#define TURNSTILE_REFUSED 0x200u

/* cell: the seat's; NULL: it has none. */
struct turnstile_entered turnstile_enter(struct turnstile *turnstile,
                                         struct turnstile_cell *cell, uint32_t count,
                                         bool sheddable);
/* True: the word is closed, and this was the last slot.  TURNSTILE-4 */
bool turnstile_give(struct turnstile *turnstile, uint32_t count);

static ALWAYS_INLINE void tally_add(_Atomic uint64_t *word, uint64_t by, bool alone)
{
	if (LIKELY(alone))
		store_relaxed(word, load_relaxed(word) + by);
	else
		(void)add_relaxed(word, by);
}

static ALWAYS_INLINE uint32_t cell_kept(uint64_t kept)
{
	return (uint32_t)kept;
}

/* How much of the ceiling a call may fill. */
static ALWAYS_INLINE uint32_t turnstile_part(const struct turnstile *turnstile,
                                             uint64_t word, bool sheddable)
{
	return sheddable ? slots_part(slots_most(word), turnstile->sheddable)
	                 : slots_most(word);
}

/* Is a quarter of the ceiling free? */
static ALWAYS_INLINE bool turnstile_ample(uint64_t word)
{
	uint32_t most = slots_most(word);

	return slots_in_flight(word) <= most - most / 4;
}

static ALWAYS_INLINE void turnstile_note_keeping(struct turnstile *turnstile,
                                                 const struct turnstile_cell *cell)
{
	if (!LIKELY(load_relaxed(&turnstile->keeping) & cell->bit))
		(void)or_relaxed(&turnstile->keeping, cell->bit);
}

/* One slot to the seat's own.  False: it goes to the word. */
static ALWAYS_INLINE bool turnstile_keep_one(struct turnstile *turnstile,
                                             struct turnstile_cell *cell)
{
	uint64_t kept = load_acquire(&cell->kept); /* called */

	if (LIKELY(cell_kept(kept) >= load_relaxed(&cell->most)) ||
	    !turnstile_ample(load_relaxed(&turnstile->word)))
		return false;
	turnstile_note_keeping(turnstile, cell); /* before: TURNSTILE-4 */
	CHOSEN(cell); /* else its address costs all calls a register */
	return LIKELY(swap_if_release(&cell->kept, &kept, kept + 1)); /* vacated */
}

/* Racy: a peak that is missed was seen by no thread. */
static ALWAYS_INLINE void turnstile_note_peak(struct turnstile *turnstile,
                                              uint32_t in_flight)
{
	if (!LIKELY(in_flight <= load_relaxed(&turnstile->peak)))
		store_relaxed(&turnstile->peak, in_flight);
}

enum turnstile_quick {
	QUICK_IN,
	QUICK_FULL,    /* what the word counts leaves no slot for such a call */
	QUICK_DELAYED, /* another thread was faster */
};

/* One slot, by one step: from the cell or from the word, which is *ret_word.  The cell is read
 * first: TURNSTILE-2. */
static ALWAYS_INLINE enum turnstile_quick
turnstile_enter_quickly(struct turnstile *turnstile, struct turnstile_cell *cell,
                        bool sheddable, uint64_t *ret_word)
{
	uint64_t kept = load_relaxed(&cell->kept);
	uint64_t word = *ret_word = load_relaxed(&turnstile->word);
	uint32_t part = turnstile_part(turnstile, word, sheddable);

	if (!LIKELY(cell_kept(kept) == 0)) {
		if (!LIKELY(slots_fit(word, part, 0)))
			return QUICK_FULL;
		CHOSEN(cell); /* as in turnstile_keep_one */
		if (!LIKELY(swap_if_relaxed(&cell->kept, &kept, kept - 1)))
			return QUICK_DELAYED;
	} else {
		if (!LIKELY(slots_fit(word, part, 1)))
			return QUICK_FULL;
		if (!LIKELY(
			swap_if_relaxed(&turnstile->word, &word, slots_taken(word, 1))))
			return QUICK_DELAYED;
		turnstile_note_peak(turnstile, slots_in_flight(*ret_word) + 1);
	}
	tally_add(&cell->tally.entered, 1, /* alone= */ true);
	return QUICK_IN;
}

/* Is a call that found the word full refused, or is there something else to try? */
static ALWAYS_INLINE bool turnstile_refuses(const struct turnstile *turnstile)
{
	return LIKELY(load_relaxed(&turnstile->keeping) == 0) &&
	       LIKELY(!turnstile->observes);
}

/* Counts a call for one slot that is refused by this word, and says why. */
static ALWAYS_INLINE uint32_t turnstile_refuse(struct turnstile_cell *cell,
                                               uint64_t word, bool sheddable)
{
	uint32_t why = sheddable && slots_fit(word, slots_most(word), 1)
	                   ? TURNSTILE_REFUSED_CLASS
	                   : slots_by(word);

	tally_add(&cell->tally.refused[why], 1, /* alone= */ true);
	return why;
}

/* The same back.  False: by turnstile_give. */
static ALWAYS_INLINE bool turnstile_exit_quickly(struct turnstile *turnstile,
                                                 struct turnstile_cell *cell)
{
	uint64_t word;

	if (turnstile_keep_one(turnstile, cell))
		return true;
	word = load_relaxed(&turnstile->word);
	return LIKELY(slots_most(word) > 0) && LIKELY(slots_can_give(word, 1)) &&
	       LIKELY(swap_if_release(&turnstile->word, &word,
	                              slots_given(word, 1))); /* vacated */
}

/* Counts a call that ended; before its slots are given back.  TURNSTILE-4 */
static ALWAYS_INLINE void tally_end(struct tally *tally, uint32_t count,
                                    enum turnstile_outcome outcome, uint64_t took_ns,
                                    bool alone)
{
	tally_add(&tally->ended[outcome].slots, count, alone);
	tally_add(&tally->ended[outcome].busy_ns, count * took_ns, alone);
}

/* A guard that observes refuses nothing. */
static ALWAYS_INLINE bool turnstile_fenced(const struct turnstile *turnstile, mono now)
{
	return !LIKELY(now.ns < load_relaxed(&turnstile->fence_ns)) &&
	       !turnstile->observes;
}

/* A call that had entered is refused after all: the fence was up.  Its slots are to be given. */
static inline void turnstile_count_late(struct turnstile *turnstile,
                                        struct turnstile_cell *cell)
{
	struct tally *tally = cell ? &cell->tally : turnstile->common;

	tally_add(&tally->entered, UINT64_MAX, /* alone= */ cell != 0);
	tally_add(&tally->refused[SLOTS_BY_FENCE], 1, /* alone= */ cell != 0);
}

/* ---- The coordinator -------------------------------------------------------------- */

/* What was last applied: one load.  (H4) */
static inline uint64_t turnstile_word(const struct turnstile *turnstile)
{
	return load_relaxed(&turnstile->word);
}

/* From when this returns on, what is more than the ceiling does not enter.  TURNSTILE-2
 * True: as turnstile_give, where the turnstile is closed meanwhile. */
bool turnstile_apply(struct turnstile *turnstile, uint16_t generation,
                     struct slots_ceiling ceiling);

/* Each of these cells may keep so many, and the others nothing; the same.  TURNSTILE-3 */
bool turnstile_keep(struct turnstile *turnstile, uint64_t cells, uint32_t most);

/* Slots that these cells keep go back to the word; how many those were, and as turnstile_give. */
struct turnstile_called {
	uint32_t count;
	bool last;
};
struct turnstile_called turnstile_call_back(struct turnstile *turnstile,
                                            uint64_t cells);

/* How many slots all cells keep at this instant, about. */
uint32_t turnstile_kept(const struct turnstile *turnstile);

/* How often calls of this cell have entered. */
static inline uint64_t turnstile_cell_entered(const struct turnstile *turnstile,
                                              uint32_t number)
{
	return load_relaxed(&turnstile->cells[number].tally.entered);
}

/* Nothing enters any more; as turnstile_give. */
bool turnstile_close(struct turnstile *turnstile);

/* The sum of all tallies. */
struct tally_sum {
	uint64_t entered;
	uint64_t ended[TURNSTILE_OUTCOMES];
	uint64_t busy_ns[TURNSTILE_OUTCOMES];
	uint64_t overdue;
	uint64_t refused[TURNSTILE_REFUSALS];
};
void turnstile_sum(const struct turnstile *turnstile, struct tally_sum *ret_sum);

/* Slots of the widest call that was kept out since it was asked last; 0: none was. */
uint32_t turnstile_take_kept_out(struct turnstile *turnstile);

/* The most that was in flight since it was asked last, and is now. */
uint32_t turnstile_take_peak(struct turnstile *turnstile);

#endif
