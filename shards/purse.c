/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * purse.c -- credit where several threads want it at once, and the actor's side.
 *
 * Threads   As purse.h says: what a seat does stands first, what the actor does last.
 */
#include "shards/purse.h"

#include <string.h>

#include "engine/check.h"
#include "shards/local.h"

#define SLICE_MOST 8192 /* units that a seat moves to its cell at a time */

/* ---- Keys ------------------------------------------------------------------------ */

void purse_copy_key(const struct purse *purse, uint8_t *ret_key)
{
	size_t head = purse->key_len < PURSE_HEAD ? purse->key_len : PURSE_HEAD;

	if (purse->key_len > PURSE_NEAR) {
		memcpy(ret_key, purse->key.far, purse->key_len);
		return;
	}
	memcpy(ret_key, purse->head, head);
	memcpy(ret_key + head, purse->key.tail, purse->key_len - head);
}

/* ---- Slices ---------------------------------------------------------------------- */

/* Half of an even part: the last units of a lease do not lie idle with one seat. */
static uint64_t slice_of(uint64_t word, uint32_t seats, uint64_t cost)
{
	uint64_t slice = credit_units(word) / (2 * (uint64_t)seats);

	if (slice > SLICE_MOST)
		slice = SLICE_MOST;
	return slice > cost ? slice : cost;
}

/* Takes a slice out of the shared word, which it was; *ret_slice lives as long as that did. */
static bool cut(struct purse *purse, uint32_t seats, mono now, uint64_t cost,
                uint64_t *ret_word, uint64_t *ret_slice)
{
	uint64_t word = load_relaxed(&purse->credit);

	while (credit_covers(word, now, cost)) {
		/* PURSE-1 */
		uint64_t slice = slice_of(word, seats, cost);

		if (swap_if_relaxed(&purse->credit, &word, word - slice)) {
			*ret_word = word;
			*ret_slice = word - credit_units(word) + slice;
			return true;
		}
	}
	return false;
}

/* Since a seat last cut a slice others have taken from the shared word, too, or the seat has, by
 * another way.  Where more was put in meanwhile, it does not show. */
static void note_others(struct purse *purse, struct cell *cell, uint64_t word,
                        uint64_t slice)
{
	if (word < cell->behind && word >= (cell->behind & ~CREDIT_UNITS_MAX))
		purse_note_contention(purse);
	cell->behind = word - credit_units(slice);
}

/* Two words that live at the same instant are of one window: together they live as long
 * as the shorter. */
static uint64_t joined(uint64_t a, uint64_t b)
{
	uint64_t units = credit_units(a) + credit_units(b);
	uint64_t tick = a < b ? a >> CREDIT_UNIT_BITS : b >> CREDIT_UNIT_BITS;

	if (units > CREDIT_UNITS_MAX)
		units = CREDIT_UNITS_MAX;
	return tick << CREDIT_UNIT_BITS | units;
}

static uint64_t sum_of(uint64_t word, uint64_t slice, mono now)
{
	return credit_units(word) > 0 && credit_lives(word, now) ? joined(word, slice)
	                                                         : slice;
}

static void share(struct purse *purse, uint64_t put, mono now)
{
	uint64_t word = load_relaxed(&purse->credit);

	while (!swap_if_release(&purse->credit, &word,
	                        credit_with(word, put, now))) /* spoken */
		;
}

/* What the actor has left to the seat. */
static uint64_t settled(struct cell *cell)
{
	bool found = load_relaxed(&cell->was) == load_relaxed(&cell->credit);

	return load_relaxed(found ? &cell->mine_if_found : &cell->mine_if_not);
}

/* After the actor has taken from it, or made it void, the seat begins anew.  It may be made
 * void meanwhile. */
static void open_cell(struct cell *cell, uint32_t state)
{
	uint64_t mine = settled(cell);

	store_relaxed(&cell->mine_if_found, 0);
	/* PURSE-1 */
	store_relaxed(&cell->mine_if_not, 0);
	do
		store_relaxed(&cell->credit, state == CELL_VOID ? 0 : mine);
	while (!swap_if_acq_rel(&cell->state, &state, CELL_OPEN)); /* opened, settled */
}

/* May the seat take from it now? */
static bool cell_opens(struct cell *cell)
{
	uint32_t state = load_acquire(&cell->state); /* settled */

	if (state != CELL_OPEN && state != CELL_WANTED)
		open_cell(cell, state);
	return state != CELL_WANTED;
}

/* If the actor wants the cell meanwhile, it is known later which of them has the slice. */
static void add_to_cell(struct cell *cell, uint64_t slice, mono now)
{
	uint64_t sum = sum_of(load_relaxed(&cell->credit), slice, now);

	store_relaxed(&cell->credit, sum);
	fence_compiler(); /* entered */
	if (load_relaxed(&cell->state) != CELL_OPEN)
		store_relaxed(&cell->mine_if_not, slice);
}

static bool take_by_cell(struct purse *purse, struct cells *cells, uint32_t seat,
                         mono now, uint64_t cost, uint64_t *ret_word)
{
	struct cell *cell = &cells->at[seat];
	uint64_t word, slice;

	if (cell_opens(cell) && cell_take(cell, now, cost, ret_word))
		return true;
	if (!cell_opens(cell))
		return credit_take(&purse->credit, now, cost, ret_word);
	if (!cut(purse, cells->count, now, cost, &word, &slice))
		return cell_take(cell, now, cost, ret_word); /* from what was left */
	note_others(purse, cell, word, slice);
	*ret_word = slice - cost;
	if (credit_units(slice) > cost)
		add_to_cell(cell, slice - cost, now);
	return true;
}

bool purse_take_shared(struct purse *purse, uint32_t seat, mono now, uint64_t cost,
                       uint64_t *ret_word)
{
	struct cells *cells = purse_cells(purse);

	if (cells && seat < cells->count)
		return take_by_cell(purse, cells, seat, now, cost, ret_word);
	if (!cells)
		purse_note_contention(purse); /* who comes here has lost a swap */
	return credit_take(&purse->credit, now, cost, ret_word);
}

/* ---- What remains ---------------------------------------------------------------- */

uint64_t purse_remaining(struct purse *purse, uint32_t seat, mono now, uint64_t word)
{
	struct cell *cell = local_cell(purse, seat);
	bool own = cell && load_relaxed(&cell->state) == CELL_OPEN;
	uint64_t mine = own ? load_relaxed(&cell->credit) : 0;
	uint64_t shared = load_acquire(&purse->credit); /* spoken */
	uint64_t rest = load_relaxed(&purse->rest);
	uint64_t beyond =
	    credit_units(shared) + rest_units(rest, purse->lender->rest_grain);
	bool known;

	if (!credit_lives(mine, now)) /* a slice was just enough, or there is no cell */
		mine = word & ~CREDIT_UNITS_MAX;
	known = rest_goes_with(rest, mine) && rest_goes_with(rest, shared);
	if (own) {
		cell->beside = known ? shared : 0;
		cell->beyond = known ? beyond - shared : 0;
	}
	return known ? credit_units(mine) + beyond : credit_units(word);
}

/* ---- Places ---------------------------------------------------------------------- */

bool purse_place(struct purse *purse, mono now, uint64_t cost,
                 struct gale_answer *ret_answer)
{
	struct block *block = load_acquire(&purse->block); /* booked */
	uint64_t word;

	if (credit_take(&purse->credit, now, cost, &word)) {
		uint64_t limit = load_relaxed(&purse->lender->capacity);

		*ret_answer = LOCAL_ALLOW(
		    limit,
		    told_of(word, purse_remaining(purse, NO_SEAT, now, word), now));
		return true;
	}
	return block && block_take(block, now, cost, ret_answer);
}

struct block *purse_put_block(struct purse *purse, struct block *block)
{
	struct block *old = load_relaxed(&purse->block);

	store_release(&purse->block, block); /* booked */
	return old;
}

/* ---- Pins ------------------------------------------------------------------------ */

/* Who kills it swaps the same word, so that it is known then. */
bool purse_be_at_hand(struct purse *purse)
{
	uint32_t pins = load_relaxed(&purse->pins);

	while (!(pins & (PURSE_DEAD | PURSE_AT_HAND)))
		if (swap_if_relaxed(&purse->pins, &pins, pins | PURSE_AT_HAND))
			return true;
	return !(pins & PURSE_DEAD); /* PURSE-3 */
}

bool purse_kill(struct purse *purse)
{
	uint32_t pins = load_relaxed(&purse->pins);

	while ((pins & ~PURSE_AT_HAND) == 0)
		if (swap_if_acquire(&purse->pins, &pins,
		                    pins | PURSE_DEAD)) /* unpinned */
			return true;                    /* PURSE-3 */
	return false;
}

/* ---- The actor's side ------------------------------------------------------------ */

void purse_put(struct purse *purse, mono then, uint64_t units, mono now)
{
	gale_assert(units <= CREDIT_UNITS_MAX);
	share(purse, credit_until(then, units), now);
	purse_forget_denial(purse);
}

void purse_give(struct purse *purse, struct cells *cells)
{
	gale_assert(cells->count <= UINT8_MAX);
	store_relaxed(&purse->cells, cells);
}

void purse_split(struct purse *purse)
{
	const struct cells *cells = load_relaxed(&purse->cells);

	store_release(&purse->split, (uint8_t)cells->count); /* celled */
}

/* A pacer has a block where others have cells. */
static bool is_pacer(const struct purse *purse)
{
	return purse->lender->lending == LENDING_PLACES;
}

static struct cells *cells_of(struct purse *purse)
{
	return is_pacer(purse) ? NULL : purse_cells(purse);
}

/* True if there is something in it, which its seat then keeps away from. */
static bool want(struct cell *cell, mono now)
{
	if (load_acquire(&cell->state) != CELL_OPEN || /* opened */
	    credit_living(load_relaxed(&cell->credit), now) == 0)
		return false;
	store_relaxed(&cell->state, CELL_WANTED);
	return true;
}

bool purse_want(struct purse *purse, mono now)
{
	struct cells *cells = cells_of(purse);
	bool any = false;

	for (uint32_t i = 0; cells && i < cells->count; i++)
		any |= want(&cells->at[i], now);
	return any;
}

/* What is in a cell that was wanted; 0 in one that was not. */
static uint64_t take_out(struct cell *cell)
{
	uint64_t word;

	if (load_relaxed(&cell->state) != CELL_WANTED)
		return 0;
	word = load_relaxed(&cell->credit);
	store_relaxed(&cell->was, word);
	store_release(&cell->state, CELL_TAKEN); /* settled */
	return word;
}

void purse_gather(struct purse *purse, struct grace *grace, mono now)
{
	struct cells *cells = cells_of(purse);

	if (purse_want(purse, now))
		grace_pass(grace); /* entered */
	for (uint32_t i = 0; cells && i < cells->count; i++) {
		uint64_t word = take_out(&cells->at[i]); /* PURSE-1 */

		if (credit_living(word, now) > 0)
			share(purse, word, now);
	}
}

uint64_t purse_empty(struct purse *purse, struct grace *grace, mono now)
{
	purse_gather(purse, grace, now);
	return credit_living(swap_relaxed(&purse->credit, 0), now); /* PURSE-1 */
}

/* What was cut before is on its way to a cell; so the cells come last. */
void purse_void(struct purse *purse)
{
	struct cells *cells = cells_of(purse);

	store_relaxed(&purse->credit, 0); /* PURSE-1 */
	for (uint32_t i = 0; cells && i < cells->count; i++)
		store_release(&cells->at[i].state, CELL_VOID); /* settled */
}

static uint64_t common_in(struct cell *cell, mono now)
{
	uint32_t state = load_relaxed(&cell->state);

	if (state == CELL_VOID || state == CELL_TAKEN)
		return 0;
	return credit_living(load_relaxed(&cell->credit), now);
}

uint64_t purse_common(struct purse *purse, mono now)
{
	struct cells *cells = cells_of(purse);
	struct block *block = is_pacer(purse) ? load_relaxed(&purse->block) : NULL;
	uint64_t units = credit_living(load_relaxed(&purse->credit), now);

	if (block)
		units += block_left(block, now);

	for (uint32_t i = 0; cells && i < cells->count; i++)
		units += common_in(&cells->at[i], now);
	return units;
}

uint64_t purse_left(struct purse *purse, mono now)
{
	struct cells *cells = cells_of(purse);
	uint64_t units = purse_common(purse, now);

	for (uint32_t i = 0; cells && i < cells->count; i++)
		if (load_relaxed(&cells->at[i].state) == CELL_TAKEN)
			units += credit_living(settled(&cells->at[i]), now);
	return units;
}

void purse_tell(struct purse *purse, uint64_t left, mono now)
{
	store_relaxed(&purse->rest, rest_since(now, left, purse->lender->rest_grain));
}

void purse_move_rest(struct purse *purse, uint64_t former, uint64_t limit, mono now)
{
	uint64_t left =
	    rest_units(load_relaxed(&purse->rest), purse->lender->rest_grain);

	purse_tell(purse, rest_moved(left, former, limit), now);
}

void purse_deny(struct purse *purse, mono then, uint64_t least)
{
	mono up = mono_after(then, CREDIT_TICK_NS - 1); /* not before it is over */

	gale_assert(least > 0);
	if (least <= CREDIT_UNITS_MAX)
		store_relaxed(&purse->denial, credit_until(up, least - 1));
}

void purse_quarantine(struct purse *purse, mono then)
{
	mono up = mono_after(then, CREDIT_TICK_NS - 1);

	store_relaxed(&purse->denial, credit_until(up, PURSE_QUARANTINED));
}

void purse_forget_denial(struct purse *purse)
{
	store_relaxed(&purse->denial, 0);
}
