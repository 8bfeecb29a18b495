/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * programs.c -- what shards and seats do at the same time, as short as it can be.
 *
 * The first thread is the shard's actor; the others are seats.  What a seat does is what
 * face/named.c and many.c do of it: it enters, finds, takes by one word, exits.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/programs.h"

#include <string.h>

#include "runtime/latch.h"
#include "runtime/mailbox.h"
#include "runtime/wake.h"
#include "shards/ahead.h"
#include "shards/kept.h"
#include "shards/local.h"
#include "shards/pocket.h"
#include "shards/purses.h"
#include "tests/interleave/funds.h"
#include "tests/interleave/tills.h"
#include "tests/interleave/stand_ins.h"
#include "tests/interleave/turnstiles.h"

#define SEATS 2
#define NAMES 64
#define HALF 32 /* of the slots of a new table: with one more it begins to grow */
#define GROWN (HALF + 2 * 2 * HALF / TABLE_CLEARS + 2 * HALF / TABLE_CARRIES)
#define HIGHEST (NAMES - 1) /* what is in the last slots, which are carried last */
#define PUT 9               /* units */

static const mono start = { 0 };
static const mono now = { CREDIT_TICK_NS };
static const mono then = { 100 * CREDIT_TICK_NS };

struct seat {
	struct reader reader;
	struct purse *held;
	uint64_t taken;
	uint64_t lost;   /* times it has to go a longer way */
	uint64_t places; /* bits */
	bool anew; /* begins a read of its own to look elsewhere, as gale_ask does: few
	                    programs do, as it doubles the runs of those that do */
	bool found;
	struct pocket pocket;
};

/* All that the threads share; a new one for each run. */
static struct stage {
	struct evictor evictor; /* first */
	struct lender lender;
	struct grace grace;
	struct purses set;
	table_root mirror;
	const table_root *root; /* where seats begin */
	struct seat seats[SEATS];
	struct purse_name names[NAMES];
	uint8_t keys[NAMES][POCKET_KEY_LEAST];
	struct purse *purse;
	uint64_t emptied;
	bool evicted;
	struct purse *other;
	struct kept_units kept, owed;
	struct kept_clock clock;
} * s;

/* ---- The stage ------------------------------------------------------------------- */

static void evict(struct evictor *self, struct purse *purse)
{
	(void)self;
	s->emptied += purse_empty(purse, &s->grace, now);
}

static void gone(struct evictor *self, struct purse *purse)
{
	(void)self;
	must_hold(purse->lender == &s->lender);
}

/* Hashes that are at home at the same few places of the first slots, and differ at their ends. */
static void make_names(uint16_t key_len)
{
	for (unsigned i = 0; i < NAMES; i++) {
		s->keys[i][0] = (uint8_t)i;
		s->names[i] = (struct purse_name){
			.lender = &s->lender,
			.key = s->keys[i],
			.key_len = key_len,
			.hash = (uint64_t)(i < 12 ? i % 3 : i) << (HOME_BITS - 6) |
			        (i + 1) << 1,
		};
	}
}

static void begin_set_of(uint32_t max, uint16_t key_len)
{
	s = model_take(sizeof(*s));
	s->evictor = (struct evictor){ evict, gone };
	s->lender.lending = LENDING_UNITS;
	store_relaxed(&s->lender.capacity, PUT);
	s->lender.rest_grain = 1;
	make_names(key_len);
	grace_open(&s->grace);
	for (int i = 0; i < SEATS; i++) {
		grace_join(&s->grace, &s->seats[i].reader);
		s->seats[i].pocket.known = POCKET_NOTHING;
	}
	must_hold(purses_open(&s->set, NULL, &s->grace, &s->evictor, max));
	s->root = &s->set.table.root;
	s->purse = purses_add(&s->set, &s->names[0]);
	must_hold(s->purse);
}

static void begin_set(uint32_t max)
{
	begin_set_of(max, 1);
}

static void begin(void)
{
	begin_set(2);
	purse_put(s->purse, then, PUT, start);
}

static void begin_with_cells(void)
{
	begin();
	purses_give_cells(&s->set, s->purse, SEATS);
}

/* Nothing is lost, and nothing was made up. PURSE-1 */
static void all_is_there(void)
{
	uint64_t left = purse_left(s->purse, now);

	must_hold(s->seats[0].taken + s->seats[1].taken + s->emptied + left == PUT);
}

/* ---- Seats ----------------------------------------------------------------------- */

static void take(struct seat *seat, uint64_t cost)
{
	uint64_t word;

	if (purse_take(s->purse, (uint32_t)(seat - s->seats), now, cost, &word))
		seat->taken += cost;
}

static void seat_takes(void)
{
	take(&s->seats[0], 1);
	take(&s->seats[0], 1);
}

static void other_takes(void)
{
	take(&s->seats[1], 3);
}

/* One unit, by one word. */
typedef enum local take_fn(struct purse *purse, uint32_t number);

/* From cells and from what is shared. */
static enum local take_one(struct purse *purse, uint32_t number)
{
	struct told told;

	return local_try_word(purse, local_cell(purse, number), now, 1, &told);
}

/* As many do. */
static enum local take_one_unfought(struct purse *purse, uint32_t number)
{
	struct told told;
	enum local how = local_try_unfought(purse, now, 1, &told);

	return how == LOCAL_ELSEWHERE ? take_one(purse, number) : how;
}

static void take_what_was_found(struct seat *seat, const struct purse_name *name,
                                struct purse *purse, take_fn *try_it)
{
	seat->found = purse != NULL;
	if (!purse)
		return;
	purse_use(purse);
	must_hold(purse->head[0] == *name->key);
	if (try_it(purse, (uint32_t)(seat - s->seats)) == LOCAL_TAKEN)
		seat->taken++;
}

/* As an ask does. */
static void ask(struct seat *seat, const struct purse_name *name)
{
	struct purse *purse;

	reader_enter(&s->grace, &seat->reader);
	purse = root_find_near(s->root, name);
	if (!purse && seat->anew) {
		reader_exit(&seat->reader);
		reader_enter(&s->grace, &seat->reader);
	}
	if (!purse)
		purse = root_find(s->root, name);
	take_what_was_found(seat, name, purse, take_one);
	reader_exit(&seat->reader);
}

static void seat_asks(void)
{
	ask(&s->seats[0], &s->names[0]);
}

static void other_asks(void)
{
	ask(&s->seats[1], &s->names[0]);
}

/* ---- Credit ---------------------------------------------------------------------- */

static void actor_puts(void)
{
	purse_put(s->purse, then, 2, now);
}

static void begin_less(void)
{
	begin_set(1);
	purse_put(s->purse, then, PUT - 2, start);
}

static void actor_splits(void)
{
	purses_give_cells(&s->set, s->purse, SEATS);
}

static void actor_gathers(void)
{
	purse_gather(s->purse, &s->grace, now);
}

static void actor_gathers_twice(void)
{
	actor_gathers();
	actor_gathers();
}

static void actor_splits_and_gathers(void)
{
	actor_splits();
	actor_gathers();
}

static void actor_empties(void)
{
	s->emptied += purse_empty(s->purse, &s->grace, now);
}

/* A seat was too late, or was about to add a slice, and has not been there since. */
static void begin_with_a_late_seat(void)
{
	struct cell *cell;

	begin_with_cells();
	cell = load_relaxed(&s->purse->cells)->at;
	store_relaxed(&cell->credit, credit_until(then, 4));
	store_relaxed(&cell->mine_if_not, credit_until(then, 4));
	store_relaxed(&cell->state, CELL_TAKEN);
}

static void take_unfought(struct seat *seat)
{
	enum local how = take_one_unfought(s->purse, (uint32_t)(seat - s->seats));

	seat->taken += how == LOCAL_TAKEN;
	seat->lost += how == LOCAL_UNKNOWN;
}

static void seat_takes_unfought(void)
{
	take_unfought(&s->seats[0]);
}

static void seat_takes_unfought_twice(void)
{
	seat_takes_unfought();
	seat_takes_unfought();
}

static void other_takes_unfought(void)
{
	take_unfought(&s->seats[1]);
}

/* Of two that swap at once, one is told so. */
static void what_was_lost_is_noted(void)
{
	uint64_t lost = s->seats[0].lost + s->seats[1].lost;

	all_is_there();
	must_hold(load_relaxed(&s->purse->contended) == lost);
}

/* It is when it is lost at length, too. */
static void what_was_lost_is_not_noted(void)
{
	all_is_there();
	must_hold(load_relaxed(&s->purse->contended) == 0);
}

/* All of it is in the first seat's cell. */
static void begin_in_a_cell(void)
{
	begin_with_cells();
	store_relaxed(&s->purse->credit, 0);
	store_relaxed(&local_cell(s->purse, 0)->credit, credit_until(then, PUT));
}

static void actor_voids(void)
{
	purse_void(s->purse);
}

static void nothing_is_left(void)
{
	uint64_t word;

	must_hold(purse_left(s->purse, now) == 0);
	for (uint32_t i = 0; i < SEATS; i++)
		must_hold(!purse_take(s->purse, i, now, 1, &word));
}

/* All of it was taken, and may go back. */
static mono tell_time(struct kept_clock *clock)
{
	(void)clock;
	return now;
}

static void begin_taken(void)
{
	uint64_t word;

	begin();
	s->clock.now = tell_time;
	must_hold(credit_take(&s->purse->credit, now, PUT, &word));
	s->kept = (struct kept_units){ s->purse, credit_until(then, PUT),
		                       kept_voids(s->purse) };
}

static void seat_gives_back(void)
{
	kept_give_back(&s->kept, PUT, kept_books(s->purse), &s->clock);
}

/* As an all-of does: first it looks how often the purse was void. */
static void seat_takes_and_gives_back(void)
{
	uint64_t voids = kept_voids(s->purse), word;

	if (!credit_take(&s->purse->credit, now, PUT, &word))
		return;
	s->kept = (struct kept_units){ s->purse, credit_until(then, PUT), voids };
	kept_give_back(&s->kept, PUT, kept_books(s->purse), &s->clock);
}

static void begin_kept_clock(void)
{
	begin();
	s->clock.now = tell_time;
}

/* As many units are owed as the purse gets. */
static void begin_owing(void)
{
	begin_taken();
	s->owed = (struct kept_units){ s->purse, credit_until(then, 0),
		                       kept_voids(s->purse) };
}

static void seat_owes(void)
{
	must_hold(purses_make_room_for_debt(s->purse, NULL));
	kept_owe(s->owed, PUT, &s->clock);
}

static void begin_with_a_debt(void)
{
	begin_owing();
	seat_owes();
}

static void actor_lends(void)
{
	kept_lend(s->purse, then, PUT, &s->clock, now);
}

static void all_is_paid(void)
{
	must_hold(kept_debt(s->purse, now) == 0);
	must_hold(purse_left(s->purse, now) == 0);
}

/* ---- Units ahead ----------------------------------------------------------------- */

/* The rest of those before joins the purse. */
static void actor_lends_ahead(void)
{
	struct ahead *ahead = purses_make_room_ahead(s->purse, NULL);
	uint64_t left;

	must_hold(ahead);
	ahead_put(ahead, credit_until(then, PUT), now);
	left = credit_living(swap_relaxed(&ahead->word, 0), now);
	ahead_put(ahead, credit_until(then, PUT), now);
	s->emptied += left;
}

static void take_ahead(struct seat *seat)
{
	struct told told;

	if (ahead_take(&s->lender, s->purse, now, 2, &told))
		seat->taken += 2;
}

static void seat_takes_ahead(void)
{
	take_ahead(&s->seats[0]);
	take_ahead(&s->seats[0]);
}

static void other_takes_ahead(void)
{
	take_ahead(&s->seats[1]);
}

static void begin_without_credit(void)
{
	begin();
	store_relaxed(&s->purse->credit, 0);
}

/* The window turns: the purse has units ahead, and nothing else. */
static void begin_bridged(void)
{
	begin_without_credit();
	s->clock.now = tell_time;
	ahead_put(purses_make_room_ahead(s->purse, NULL), credit_until(then, PUT), now);
}

/* An answer of the next window comes: its units, and then what is left of those ahead. */
static void actor_joins_ahead(void)
{
	kept_lend(s->purse, then, PUT, &s->clock, now);
	kept_lend(s->purse, then, ahead_empty(ahead_of(s->purse), now), &s->clock, now);
}

static void seat_asks_at_the_turn(void)
{
	struct seat *seat = &s->seats[0];
	struct told told;

	if (local_try(&s->lender, s->purse, 0, now, 2, &told) == LOCAL_TAKEN ||
	    ahead_take(&s->lender, s->purse, now, 2, &told) ||
	    (ahead_has_joined(s->purse, now, 2) &&
	     local_try(&s->lender, s->purse, 0, now, 2, &told) == LOCAL_TAKEN))
		seat->taken += 2;
}

/* The call found units, and all others are in the purse. */
static void the_turn_is_bridged(void)
{
	must_hold(s->seats[0].taken == 2);
	must_hold(purse_left(s->purse, now) == 2 * PUT - 2);
}

static void all_ahead_is_there(void)
{
	struct ahead *ahead = ahead_of(s->purse);

	must_hold(s->seats[0].taken + s->seats[1].taken + s->emptied +
	              credit_living(load_relaxed(&ahead->word), now) ==
	          (uint64_t)2 * PUT);
}

/* A call that asks meanwhile gets nothing. */
static void the_debt_has_all(void)
{
	all_is_paid();
	must_hold(s->seats[0].taken == 0);
}

static void actor_voids_all(void)
{
	purses_void(s->purse);
}

static void seat_asks_twice(void)
{
	seat_asks();
	seat_asks();
}

/* A denial that was remembered is told by whoever sees it. */
static void actor_denies(void)
{
	s->emptied += purse_empty(s->purse, &s->grace, now);
	purse_deny(s->purse, then, 1);
}

static void seat_is_refused(void)
{
	uint64_t word;

	if (purse_refuses(s->purse, now, 1, &word))
		must_hold(credit_units(word) == 0 && credit_lives(word, now));
}

/* ---- What remains ---------------------------------------------------------------- */

#define LEFT 7 /* at the store, when it lent the first units, and when the next */
#define LEFT_NEXT 2
#define PUT_NEXT 4

static const mono over = { 50 * CREDIT_TICK_NS }; /* the first window */
static const mono next = { 60 * CREDIT_TICK_NS };

static void begin_window(void)
{
	begin_set(1);
	purse_tell(s->purse, LEFT, start);
	purse_put(s->purse, over, PUT, start);
}

static void actor_opens_next(void)
{
	purse_tell(s->purse, LEFT_NEXT, next);
	purse_put(s->purse, then, PUT_NEXT, next);
}

/* REST-1: of one window and not of two; or only what is in hand. */
static void is_of_one_window(uint64_t units)
{
	must_hold(units == PUT - 1 + LEFT || units == PUT - 1 ||
	          units == PUT_NEXT - 1 + LEFT_NEXT);
}

/* By a clock that was read in the first window. */
static void seat_is_told(void)
{
	struct told told;

	if (local_try_shared(s->purse, now, 1, &told) == LOCAL_TAKEN)
		is_of_one_window(told.units);
}

static void seat_is_told_at_length(void)
{
	uint64_t word;

	if (purse_take(s->purse, NO_SEAT, now, 1, &word))
		is_of_one_window(purse_remaining(s->purse, NO_SEAT, now, word));
}

static void nothing_more(void)
{
}

/* ---- Eviction -------------------------------------------------------------------- */

/* What was evicted is used again for another key, as soon as that is allowed. */
static void actor_evicts(void)
{
	s->evicted = purses_evict(&s->set, s->purse);
	purses_turn(&s->set);
	purses_turn(&s->set);
	if (!s->evicted || s->set.own.free == NUMBER_LAST)
		return;
	s->other = purses_add(&s->set, &s->names[3]);
	if (s->other)
		purse_put(s->other, then, PUT, now);
}

static void begin_full(void)
{
	begin_set(1);
	purse_put(s->purse, then, PUT, start);
}

static void begin_full_with_cells(void)
{
	begin_full();
	purses_give_cells(&s->set, s->purse, SEATS);
	take(&s->seats[0], 1); /* some is in its cell */
}

static void begin_full_without_barriers(void)
{
	kernel_has_barriers = false;
	begin_full();
	kernel_has_barriers = true;
}

/* Nobody asks for the other. */
static void others_have_theirs(void)
{
	uint64_t taken = s->seats[0].taken + s->seats[1].taken;

	if (s->other)
		must_hold(purse_left(s->other, now) == PUT);
	must_hold(taken + s->emptied <= PUT);
	if (!s->evicted)
		must_hold(taken + purse_left(s->purse, now) == PUT);
}

/* As an ask looks for a key that is long enough; what it finds is at hand from then on. */
static struct pocket_place look(struct seat *seat, const struct purse_name *name)
{
	uint64_t forgotten = grace_forgotten(&s->grace);
	struct pocket_place place = { 0 }, *at_hand = NULL;

	if (pocket_is_good(&seat->pocket, forgotten))
		at_hand = pocket_find(&seat->pocket, name);
	if (at_hand)
		return *at_hand;
	place.purse = root_find(s->root, name);
	if (!place.purse)
		return place;
	place.cell = local_cell(place.purse, (uint32_t)(seat - s->seats));
	pocket_put(&seat->pocket, forgotten, name, place.purse, place.cell);
	return place;
}

static void ask_at_hand(struct seat *seat, const struct purse_name *name)
{
	struct pocket_place place;
	struct told told;

	reader_enter(&s->grace, &seat->reader);
	place = look(seat, name);
	if (place.purse) {
		must_hold(place.purse->head[0] == *name->key);
		if (local_try_word(place.purse, place.cell, now, 1, &told) ==
		    LOCAL_TAKEN)
			seat->taken++;
	}
	reader_exit(&seat->reader);
}

static void seat_asks_at_hand(void)
{
	ask_at_hand(&s->seats[0], &s->names[0]);
}

static void seat_asks_at_hand_twice(void)
{
	seat_asks_at_hand();
	seat_asks_at_hand();
}

/* POCKET-1: who has seen that it has a cell does not have the purse at hand without it. */
static void seat_finds_its_cell(void)
{
	struct seat *seat = &s->seats[0];
	struct cell *cell = local_cell(s->purse, 0);
	struct pocket_place place;

	reader_enter(&s->grace, &seat->reader);
	place = look(seat, &s->names[0]);
	reader_exit(&seat->reader);
	must_hold(place.purse == s->purse);
	must_hold(!cell || place.cell == cell);
}

static void seat_finds_its_cell_twice(void)
{
	seat_finds_its_cell();
	seat_finds_its_cell();
}

static void begin_full_of_long(void)
{
	begin_set_of(1, POCKET_KEY_LEAST);
	purse_put(s->purse, then, PUT, start);
	purses_give_cells(&s->set, s->purse, SEATS);
	take(&s->seats[0], 1);
}

/* Without cells, so that nothing passes a barrier before it leaves the table. */
static void begin_few(void)
{
	begin_set_of(1, POCKET_KEY_LEAST);
	purse_put(s->purse, then, PUT, start);
}

static void begin_at_hand_without_a_cell(void)
{
	begin_few();
	seat_finds_its_cell();
	must_hold(pocket_find(&s->seats[0].pocket, &s->names[0]));
}

/* Another seat has it at hand, so that it has been told. */
static void begin_at_hand_elsewhere(void)
{
	begin_few();
	ask_at_hand(&s->seats[1], &s->names[0]);
}

static void begin_at_hand_elsewhere_unfenced(void)
{
	kernel_has_barriers = false;
	begin_at_hand_elsewhere();
	kernel_has_barriers = true;
}

static void begin_at_hand(void)
{
	begin_full_of_long();
	seat_asks_at_hand();
	must_hold(pocket_find(&s->seats[0].pocket, &s->names[0]));
}

/* A held key. */
static void hold(struct seat *seat)
{
	struct purse *purse;

	reader_enter(&s->grace, &seat->reader);
	purse = root_find(s->root, &s->names[0]);
	seat->held = purse && purse_pin(purse) ? purse : NULL;
	reader_exit(&seat->reader);
}

static void seat_holds(void)
{
	struct seat *seat = &s->seats[0];
	struct told told;

	hold(seat);
	if (!seat->held)
		return;
	must_hold(seat->held->head[0] == 0); /* PURSE-3 */
	if (local_try_word(seat->held, local_cell(seat->held, 0), now, 1, &told) ==
	    LOCAL_TAKEN)
		seat->taken++;
	purse_unpin(seat->held);
}

static void begin_held(void)
{
	begin_full_with_cells();
	hold(&s->seats[0]);
	must_hold(s->seats[0].held);
}

/* The last look is at a plain word. */
static void seat_lets_go(void)
{
	must_hold(purse_is(s->seats[0].held, &s->names[0]));
	purse_unpin(s->seats[0].held);
}

/* ---- The table ------------------------------------------------------------------- */

/* Behind the first, as they begin at the same place. */
static void begin_crowded(void)
{
	begin_set(8);
	must_hold(purses_add(&s->set, &s->names[3]));
	s->other = purses_add(&s->set, &s->names[6]);
	must_hold(s->other);
	purse_put(s->other, then, PUT, start);
}

static void add(const struct purse_name *name)
{
	struct purse *purse = purses_add(&s->set, name);

	must_hold(purse);
	purse_put(purse, then, 1, now);
}

static void actor_adds(void)
{
	add(&s->names[9]);
}

/* Its home is taken by the one that is there. */
static void actor_adds_next(void)
{
	add(&s->names[3]);
}

static void actor_removes(void)
{
	must_hold(purses_evict(&s->set, s->purse));
	purses_turn(&s->set);
	purses_turn(&s->set);
}

static void actor_removes_and_adds(void)
{
	actor_removes();
	actor_adds();
}

static void actor_adds_and_removes(void)
{
	actor_adds();
	actor_removes();
}

static void seat_asks_for_new(void)
{
	ask(&s->seats[0], &s->names[9]);
}

static void seat_asks_for_next(void)
{
	s->seats[0].anew = true;
	ask(&s->seats[0], &s->names[3]);
}

static void seat_asks_for_last(void)
{
	ask(&s->seats[0], &s->names[6]);
}

static void seat_asks_for_last_then_new(void)
{
	seat_asks_for_last();
	seat_asks_for_new();
}

static void is_found_or_not(void)
{
	model_outcome(s->seats[0].found);
}

/* One more, and the table begins to grow. */
static void begin_half_full(void)
{
	begin_set(NAMES);
	s->other = purses_add(&s->set, &s->names[HIGHEST]);
	must_hold(s->other);
	for (unsigned i = 1; i < HALF - 1; i++)
		must_hold(purses_add(&s->set, &s->names[i]));
	purse_put(s->other, then, PUT, start);
}

/* As a runtime has it. */
static void begin_mirrored(void)
{
	begin_half_full();
	table_mirror(&s->set.table, &s->mirror);
	s->root = &s->mirror;
}

static struct purse *look_ahead(const struct purse_name *name)
{
	struct purse *purse = root_likely(s->root, name->hash);

	purse_prefetch(purse);
	return purse;
}

static void take_what_is_likely(struct seat *seat, const struct purse_name *name,
                                struct purse *purse)
{
	if (purse && !purse_is(purse, name))
		purse = root_find(s->root, name);
	take_what_was_found(seat, name, purse, take_one_unfought);
}

/* As many do: first what is likely of each, then whether that is it, all in one read. */
static void ask_ahead(const struct purse_name *one, const struct purse_name *other)
{
	struct seat *seat = &s->seats[0];
	struct purse *likely, *likely_other;

	reader_enter(&s->grace, &seat->reader);
	likely = look_ahead(one);
	likely_other = look_ahead(other);
	take_what_is_likely(seat, one, likely);
	take_what_is_likely(seat, other, likely_other);
	reader_exit(&seat->reader);
}

static void seat_asks_twice_ahead(void)
{
	ask_ahead(&s->names[0], &s->names[0]);
}

static void seat_asks_for_highest_twice_ahead(void)
{
	ask_ahead(&s->names[HIGHEST], &s->names[HIGHEST]);
}

static void seat_asks_for_highest(void)
{
	ask(&s->seats[0], &s->names[HIGHEST]);
}

/* Of one that is not where it is first looked for. */
static void seat_asks_for_last_ahead(void)
{
	struct seat *seat = &s->seats[0];
	struct purse *likely;

	reader_enter(&s->grace, &seat->reader);
	likely = look_ahead(&s->names[9]);
	take_what_is_likely(seat, &s->names[9], likely);
	reader_exit(&seat->reader);
}

/* The last of these carries the last slots: readers look at the new ones. */
static void actor_grows(void)
{
	for (unsigned i = HALF - 1; i < GROWN - 1; i++)
		must_hold(purses_add(&s->set, &s->names[i]));
	purses_turn(&s->set);
	purses_turn(&s->set);
}

/* It was there before, and is so after. */
static void is_always_found(void)
{
	must_hold(s->seats[0].found && s->seats[0].taken == 1);
}

static void is_found_twice(void)
{
	must_hold(s->seats[0].found && s->seats[0].taken == 2);
}

static void seat_asks_for_last_of_many(void)
{
	s->seats[0].anew = true;
	ask(&s->seats[0], &s->names[GROWN - 2]);
}

/* ---- Places ---------------------------------------------------------------------- */

static const struct block *block_from(uint64_t place)
{
	static struct block block;

	block.rule.is.limit = 1;
	block.rule.is.period_us = 1000000;
	block.rule.is.max_wait_us = 1000000000;
	block.first = start;
	block.slot = (struct gale_slot){ place, 0 };
	block.count = 2;
	return &block;
}

static void begin_pacer(void)
{
	begin_set(1);
	s->lender.lending = LENDING_PLACES;
	must_hold(purses_give_block(&s->set, s->purse, block_from(0)));
}

static void actor_books(void)
{
	must_hold(purses_give_block(&s->set, s->purse, block_from(8000000)));
	purses_turn(&s->set);
	purses_turn(&s->set);
}

/* The places of the first block are 0 and 1, those of the next 8 and 9. */
static void seat_places(struct seat *seat)
{
	struct gale_answer answer;
	struct purse *purse;

	reader_enter(&s->grace, &seat->reader);
	purse = root_find(s->root, &s->names[0]);
	must_hold(purse);
	if (purse_place(purse, start, 1, &answer))
		seat->places |= UINT64_C(1) << answer.slot.us / 1000000;
	reader_exit(&seat->reader);
}

static void seat_takes_place(void)
{
	seat_places(&s->seats[0]);
}

static void other_takes_place(void)
{
	seat_places(&s->seats[1]);
}

/* Each got one, and not the same. BLOCK-1 */
static void places_differ(void)
{
	must_hold(s->seats[0].places && s->seats[1].places);
	must_hold((s->seats[0].places & s->seats[1].places) == 0);
}

static void actor_closes_block(void)
{
	s->emptied = block_close(load_relaxed(&s->purse->block), start);
}

/* What is given back was not handed out. BLOCK-2 */
static void places_are_two(void)
{
	must_hold((uint64_t)(s->seats[0].places != 0) + (s->seats[1].places != 0) +
	              s->emptied ==
	          2);
}

/* ---- Mail ------------------------------------------------------------------------ */

static struct post {
	struct mailbox box;
	struct mail_slot slots[2];
	struct wake wake;
	uint64_t mail[4]; /* what is in it */
	bool posted[4];
	bool taken[4];
	_Atomic bool emptied;
	bool knew;
	uint64_t first;
} * p;

static void begin_post(void)
{
	p = model_take(sizeof(*p));
	mailbox_init(&p->box, p->slots, 2);
	p->first = p->box.own.head;
}

static void send(unsigned which)
{
	p->mail[which] = which + 1;
	p->posted[which] = mailbox_post(&p->box, &p->mail[which]);
}

/* A message is there as it was sent, once, and then its room may be used again. */
static bool receive(void)
{
	uint64_t *mail = mailbox_take(&p->box);

	if (!mail)
		return false;
	must_hold(*mail == (uint64_t)(mail - p->mail) + 1);
	must_hold(!p->taken[mail - p->mail]);
	p->taken[mail - p->mail] = true;
	*mail = 0;
	return true;
}

static void sender_sends(void)
{
	send(0);
	send(1);
}

static void other_sends(void)
{
	send(2);
}

static void receiver_receives(void)
{
	(void)receive();
	(void)receive();
	(void)receive();
}

static void all_mail_arrives(void)
{
	while (receive())
		;
	for (int i = 0; i < 4; i++)
		must_hold(p->taken[i] == p->posted[i]);
	must_hold(mailbox_valid(&p->box));
}

static void begin_full_post(void)
{
	begin_post();
	send(0);
	send(1);
}

static void receiver_tells(void)
{
	must_hold(receive() && receive());
	store_release(&p->emptied, true);
}

static void sender_who_was_told(void)
{
	p->knew = load_acquire(&p->emptied);
	if (!p->knew)
		return;
	send(2);
	must_hold(p->posted[2]);
}

/* Who has seen that a ticket was given knows of the room that its sender knew of. */
static void sender_who_was_not(void)
{
	bool posted = mailbox_post(&p->box, &p->mail[3]);

	must_hold(posted || model_knows(&p->box.shared.tail, 8) == p->first + 2);
}

static void begin_sleepy(void)
{
	begin_post();
	must_hold(wake_open(&p->wake));
}

static void sender_wakes(void)
{
	send(0);
	wake_raise(&p->wake);
}

static void other_wakes(void)
{
	send(2);
	wake_raise(&p->wake);
}

/* As an actor does: clears, looks, sleeps. */
static void receiver_looks(void)
{
	wake_clear(&p->wake);
	while (receive())
		;
}

/* Whoever sleeps with mail in the box will be woken. */
static void nobody_oversleeps(void)
{
	bool left = receive();

	must_hold(!left || *kernel_event > 0);
}

/* ---- A latch --------------------------------------------------------------------- */

static struct noted {
	struct latch latch;
	uint64_t by_all;
	uint64_t by[SEATS];
} * n;

static void begin_latched(void)
{
	n = model_take(sizeof(*n));
}

/* Twice, if it is not in the way. */
static void note(unsigned who)
{
	for (int i = 0; i < 2; i++) {
		if (!latch_try(&n->latch))
			continue;
		n->by_all++;
		n->by[who]++;
		latch_drop(&n->latch);
	}
}

static void seat_notes(void)
{
	note(0);
}

static void other_notes(void)
{
	note(1);
}

static void all_is_noted(void)
{
	must_hold(n->by_all == n->by[0] + n->by[1]);
	must_hold(n->by_all >= 2); /* who finds it taken leaves it to the other */
	must_hold(latch_try(&n->latch));
	latch_drop(&n->latch);
}

/* ---- All of them ----------------------------------------------------------------- */

const struct program programs[] = {
	{ "take", begin, { other_takes, seat_takes }, all_is_there, 1 },
	{ "put", begin_less, { actor_puts, seat_takes, other_takes }, all_is_there, 0 },
	{ "tell", begin_window, { actor_opens_next, seat_is_told }, nothing_more, 0 },
	{ "tell at length",
	  begin_window,
	  { actor_opens_next, seat_is_told_at_length },
	  nothing_more,
	  0 },
	{ "split",
	  begin,
	  { actor_splits, seat_asks_twice, other_takes },
	  all_is_there,
	  0 },
	{ "gather",
	  begin_with_cells,
	  { actor_gathers, seat_takes, other_takes },
	  all_is_there,
	  0 },
	{ "gather, gather",
	  begin_full_with_cells,
	  { actor_gathers_twice, seat_takes },
	  all_is_there,
	  0 },
	{ "fight",
	  begin_with_cells,
	  { seat_takes_unfought, other_takes_unfought },
	  what_was_lost_is_noted,
	  0 },
	{ "fight, no cells",
	  begin,
	  { seat_takes_unfought, other_takes_unfought },
	  what_was_lost_is_not_noted,
	  0 },
	{ "gather, unfought",
	  begin_in_a_cell,
	  { actor_gathers, seat_takes_unfought_twice, other_takes_unfought },
	  all_is_there,
	  0 },
	{ "split, gather",
	  begin,
	  { actor_splits_and_gathers, seat_takes },
	  all_is_there,
	  0 },
	{ "empty",
	  begin_with_cells,
	  { actor_empties, seat_takes, other_takes },
	  all_is_there,
	  0 },
	{ "void",
	  begin_with_cells,
	  { actor_voids, seat_takes, other_takes },
	  nothing_is_left,
	  0 },
	{ "void, late",
	  begin_with_a_late_seat,
	  { actor_voids, seat_takes },
	  nothing_is_left,
	  0 },
	{ "deny",
	  begin,
	  { actor_denies, seat_is_refused, other_takes },
	  all_is_there,
	  0 },
	{ "owe, give back",
	  begin_owing,
	  { seat_owes, seat_gives_back },
	  all_is_paid,
	  0 },
	{ "owe, lend", begin_owing, { seat_owes, actor_lends }, all_is_paid, 0 },
	{ "lend, take",
	  begin_with_a_debt,
	  { actor_lends, seat_takes },
	  the_debt_has_all,
	  0 },
	{ "lend ahead, take",
	  begin_without_credit,
	  { actor_lends_ahead, seat_takes_ahead, other_takes_ahead },
	  all_ahead_is_there,
	  0 },
	{ "join ahead, take",
	  begin_bridged,
	  { actor_joins_ahead, seat_asks_at_the_turn },
	  the_turn_is_bridged,
	  0 },
	{ "void, give back",
	  begin_taken,
	  { actor_voids_all, seat_gives_back },
	  nothing_is_left,
	  0 },
	{ "void, take, give back",
	  begin_kept_clock,
	  { actor_voids_all, seat_takes_and_gives_back },
	  nothing_is_left,
	  0 },
	{ "evict", begin_full, { actor_evicts, seat_asks }, others_have_theirs, 0 },
	{ "evict, ahead",
	  begin_full,
	  { actor_evicts, seat_asks_twice_ahead },
	  others_have_theirs,
	  0 },
	{ "evict, cells, ahead",
	  begin_full_with_cells,
	  { actor_evicts, seat_asks_twice_ahead },
	  others_have_theirs,
	  0 },
	{ "evict, unfenced",
	  begin_full_without_barriers,
	  { actor_evicts, seat_asks },
	  others_have_theirs,
	  0 },
	{ "evict, cells",
	  begin_full_with_cells,
	  { actor_evicts, seat_asks },
	  others_have_theirs,
	  0 },
	{ "evict, at hand",
	  begin_at_hand,
	  { actor_evicts, seat_asks_at_hand },
	  others_have_theirs,
	  0 },
	{ "split, at hand",
	  begin_at_hand_without_a_cell,
	  { actor_splits, seat_finds_its_cell_twice },
	  NULL,
	  0 },
	{ "hold", begin_full, { actor_evicts, seat_holds }, others_have_theirs, 0 },
	{ "let go", begin_held, { actor_evicts, seat_lets_go }, others_have_theirs, 0 },
	{ "add", begin_crowded, { actor_adds, seat_asks_for_new }, is_found_or_not, 0 },
	{ "add, next",
	  begin,
	  { actor_adds_next, seat_asks_for_next },
	  is_found_or_not,
	  0 },
	{ "remove",
	  begin_crowded,
	  { actor_removes, seat_asks_for_last },
	  is_found_or_not,
	  0 },
	{ "add, remove",
	  begin_crowded,
	  { actor_adds_and_removes, seat_asks_for_new },
	  is_found_or_not,
	  0 },
	{ "grow, mirror",
	  begin_mirrored,
	  { actor_grows, seat_asks_for_highest },
	  is_always_found,
	  0 },
	{ "grow, ahead",
	  begin_mirrored,
	  { actor_grows, seat_asks_for_highest_twice_ahead },
	  is_found_twice,
	  0 },
	{ "grow, last, ahead",
	  begin_mirrored,
	  { actor_grows, seat_asks_for_last_ahead },
	  is_found_or_not,
	  0 },
	{ "grow",
	  begin_half_full,
	  { actor_grows, seat_asks_for_highest },
	  is_always_found,
	  0 },
	{ "grow, last",
	  begin_half_full,
	  { actor_grows, seat_asks_for_last_of_many },
	  is_found_or_not,
	  0 },
	{ "close a block",
	  begin_pacer,
	  { actor_closes_block, seat_takes_place, other_takes_place },
	  places_are_two,
	  0 },
	{ "mail",
	  begin_post,
	  { receiver_receives, sender_sends, other_sends },
	  all_mail_arrives,
	  0 },
	{ "mail, full",
	  begin_full_post,
	  { receiver_tells, sender_who_was_told, sender_who_was_not },
	  NULL,
	  0 },
	{ "wake",
	  begin_sleepy,
	  { receiver_looks, sender_wakes, other_wakes },
	  nobody_oversleeps,
	  0 },
	{ "enter, exit",
	  begin_one_slot,
	  { seat_enters_and_exits, other_enters_and_exits },
	  all_slots_are_there,
	  0 },
	{ "call back",
	  begin_keeping,
	  { coordinator_calls_back_twice, seat_exits_and_enters },
	  all_slots_are_there,
	  0 },
	{ "call back, enter",
	  begin_full_but_for_a_cell,
	  { seat_enters, other_enters },
	  all_slots_are_there,
	  0 },
	{ "fence, slots",
	  begin_keeping,
	  { coordinator_fences, seat_exits_and_enters },
	  nothing_passed_the_fence,
	  0 },
	{ "keep, exit",
	  begin_keeping,
	  { coordinator_lets_keep_nothing, seat_exits },
	  nothing_is_kept,
	  0 },
	{ "close, word",
	  begin_without_cells,
	  { coordinator_closes, seat_exits, other_exits },
	  one_was_the_last,
	  0 },
	{ "close, slots",
	  begin_keeping,
	  { coordinator_closes, seat_exits, other_exits },
	  one_was_the_last,
	  0 },
	{ "close, lower",
	  begin_kept,
	  { coordinator_closes, coordinator_lowers },
	  one_was_the_last,
	  0 },
	{ "close, keep",
	  begin_kept,
	  { coordinator_closes, coordinator_lets_keep_nothing },
	  one_was_the_last,
	  0 },
	{ "close, enter",
	  begin_full_but_for_a_cell,
	  { coordinator_closes, other_enters_and_exits_all },
	  one_was_the_last,
	  0 },
	{ "close, leave",
	  begin_keeping,
	  { coordinator_closes, coordinator_leaves, seat_exits_and_enters },
	  no_more_than_was_reported,
	  0 },
	{ "ask, claim",
	  begin_fund,
	  { coordinator_turns_twice, fund_seat_asks, fund_other_asks },
	  nobody_waits_for_ever,
	  0 },
	{ "ask, give up",
	  begin_fund,
	  { coordinator_turns_twice, fund_seat_asks_and_gives_up, fund_other_asks },
	  nobody_waits_for_ever,
	  0 },
	{ "till",
	  begin_fund_with_units,
	  { anybody_counts, fund_seat_takes, fund_other_takes },
	  nobody_waits_for_ever,
	  0 },
	{ "till, close",
	  begin_fund_with_units,
	  { anybody_closes, fund_seat_takes, fund_other_asks },
	  all_units_go_back,
	  0 },
	{ "hold, close",
	  begin_fund_with_hold,
	  { anybody_closes, fund_seat_settles, coordinator_turns_twice },
	  all_units_go_back,
	  0 },
	{ "spend, close",
	  begin_fund_with_hold,
	  { anybody_closes, fund_seat_settles_as_used, coordinator_turns_twice },
	  all_units_go_back,
	  0 },
	{ "hold, hold",
	  begin_till,
	  { till_seat_holds, till_other_holds },
	  till_has_all_units,
	  0 },
	{ "hold, recall",
	  begin_till,
	  { till_seat_holds, till_other_tenant_comes },
	  till_has_all_units,
	  0 },
	{ "grow, recall",
	  begin_till,
	  { till_seat_grows, till_other_tenant_comes },
	  till_has_all_units,
	  0 },
	{ "commit, recall",
	  begin_till,
	  { till_seat_commits_less, till_other_tenant_comes },
	  till_has_all_units,
	  0 },
	{ "commit, commit",
	  begin_till,
	  { till_seat_commits_less, till_other_commits_less },
	  till_has_all_units,
	  0 },
	{ "commit more, commit",
	  begin_till,
	  { till_seat_commits_more, till_other_commits_less },
	  till_has_all_units,
	  0 },
	{ "commit more, hold",
	  begin_till,
	  { till_seat_commits_more, till_other_holds },
	  till_has_all_units,
	  0 },
	{ "commit, deny",
	  begin_till,
	  { till_other_commits_less, till_seat_is_refused },
	  till_remembers_no_denial,
	  0 },
	{ "commit, turn",
	  begin_till,
	  { till_seat_commits_less, till_other_turns_window },
	  till_has_all_units,
	  0 },
	{ "hold, turn",
	  begin_till,
	  { till_seat_holds, till_other_turns_window },
	  till_has_all_units,
	  0 },
	{ "commit, close tenant",
	  begin_till,
	  { till_seat_commits_less, till_is_closed },
	  till_has_all_units,
	  0 },
	{ "hold, close tenant",
	  begin_till,
	  { till_seat_holds, till_is_closed },
	  till_has_all_units,
	  0 },
	{ "end, close tenant",
	  begin_till_with_a_call,
	  { till_seat_commits_less, till_is_closed },
	  till_lives_while_held,
	  0 },
	{ "end another's, close tenant",
	  begin_till_with_a_call,
	  { till_other_ends_call, till_is_closed },
	  till_lives_while_held,
	  0 },
	{ "end, close, no cells",
	  begin_till_without_cells,
	  { till_seat_commits_less, till_is_closed },
	  till_lives_while_held,
	  0 },
	{ "end, close, unfenced",
	  begin_till_unfenced,
	  { till_seat_commits_less, till_is_closed },
	  till_lives_while_held,
	  0 },
	{ "end, end and close",
	  begin_till,
	  { till_seat_commits_less, till_other_commits_and_closes },
	  till_lives_while_held,
	  0 },
	{ "ask, close budget",
	  begin_till,
	  { till_budget_is_closed, till_other_asks },
	  till_is_empty,
	  0 },
	/* These take longest. */
	{ "evict, two seats",
	  begin_full,
	  { actor_evicts, seat_asks, other_asks },
	  others_have_theirs,
	  0 },
	{ "evict, remember",
	  begin_at_hand_elsewhere,
	  { actor_evicts, seat_asks_at_hand_twice },
	  others_have_theirs,
	  0 },
	{ "evict, remember, unfenced",
	  begin_at_hand_elsewhere_unfenced,
	  { actor_evicts, seat_asks_at_hand_twice },
	  others_have_theirs,
	  0 },
	{ "evict, tell",
	  begin_few,
	  { actor_evicts, seat_asks_at_hand_twice },
	  others_have_theirs,
	  0 },
	{ "remove, add",
	  begin_crowded,
	  { actor_removes_and_adds, seat_asks_for_last_then_new },
	  is_found_or_not,
	  0 },
	{ "book",
	  begin_pacer,
	  { actor_books, seat_takes_place, other_takes_place },
	  places_differ,
	  0 },
	{ "latch", begin_latched, { seat_notes, other_notes }, all_is_noted, 0 },
};
const size_t program_count = sizeof(programs) / sizeof(programs[0]);
