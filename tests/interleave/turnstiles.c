/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * turnstiles.c -- calls of two seats, and a coordinator that takes slots back.
 *
 * Threads   See model.h.
 */
#include "tests/interleave/turnstiles.h"

#include "coordinator/turnstile.h"
#include "tests/interleave/model.h"

#define SEATS 2
#define PLENTY 64 /* slots: a quarter of them is always free */

static struct stage {
	struct turnstile turnstile; /* first */
	struct turnstile_cell cells[SEATS + 1];
	_Atomic uint64_t clock; /* says who came first; orders nothing */
	_Atomic uint64_t inside;
	struct {
		uint32_t has;   /* slots */
		uint32_t was;   /* the clock, before its last exit */
		uint64_t wrote; /* to what is freed when the last slot is given back */
	} seats[SEATS];
	uint32_t fenced;   /* the clock, after the fence */
	uint32_t lasts;    /* who were told that theirs was the last slot */
	uint32_t reported; /* in flight, by a guard that leaves */
} * s;

static void begin(uint32_t most)
{
	const struct turnstile_config config = { .cell_count = SEATS };

	s = model_take(sizeof(*s));
	turnstile_init(&s->turnstile, s->cells, &config);
	turnstile_apply(&s->turnstile, 1,
	                (struct slots_ceiling){ most, SLOTS_BY_CEILING });
}

void begin_one_slot(void)
{
	begin(1);
}

static void enter(int seat)
{
	struct turnstile_cell *cell = &s->cells[seat];
	uint64_t word;

	if (turnstile_enter_quickly(&s->turnstile, cell, /* sheddable= */ false,
	                            &word) == QUICK_IN ||
	    turnstile_enter(&s->turnstile, cell, 1, /* sheddable= */ false).how == 0)
		s->seats[seat].has++;
}

/* Was it the last slot? */
static bool give(int seat)
{
	return !turnstile_exit_quickly(&s->turnstile, &s->cells[seat]) &&
	       turnstile_give(&s->turnstile, 1);
}

void begin_without_cells(void)
{
	begin(PLENTY);
	enter(0);
	enter(1);
}

void begin_keeping(void)
{
	begin_without_cells();
	turnstile_keep(&s->turnstile, 3, 2);
}

void begin_kept(void)
{
	begin_keeping();
	(void)give(0);
	(void)give(1);
	s->seats[0].has = s->seats[1].has = 0;
}

void begin_full_but_for_a_cell(void)
{
	const struct slots_ceiling two = { 2, SLOTS_BY_CEILING };

	begin_keeping();
	(void)give(0);
	s->seats[0].has = 0;
	/* As apply would, but that it does not call back what the cell keeps. */
	store_relaxed(&s->turnstile.word,
	              slots_applied(turnstile_word(&s->turnstile), 2, two));
}

/* ---- Seats ------------------------------------------------------------------------ */

/* Whoever is the last reads what all wrote, as if to free it. */
static void was_last(void)
{
	s->lasts++;
	for (int i = 0; i < SEATS; i++)
		s->seats[i].wrote++;
}

static void exit_one(int seat)
{
	s->seats[seat].wrote++;
	s->seats[seat].was = (uint32_t)add_relaxed(&s->clock, 1);
	s->seats[seat].has--;
	if (give(seat))
		was_last();
}

static void enter_and_exit(int seat)
{
	enter(seat);
	if (s->seats[seat].has == 0)
		return;
	must_hold(add_relaxed(&s->inside, 1) == 0);
	(void)sub_relaxed(&s->inside, 1);
	exit_one(seat);
}

void seat_enters_and_exits(void)
{
	enter_and_exit(0);
}

void other_enters_and_exits(void)
{
	enter_and_exit(1);
}

void seat_exits(void)
{
	exit_one(0);
}

void other_exits(void)
{
	exit_one(1);
}

void seat_exits_and_enters(void)
{
	exit_one(0);
	enter(0);
}

/* Its entry keeps the turnstile while another closes it. */
void other_enters_and_exits_all(void)
{
	enter(1);
	while (s->seats[1].has > 0)
		exit_one(1);
}

void seat_enters(void)
{
	enter(0);
}

void other_enters(void)
{
	enter(1);
}

/* ---- The coordinator -------------------------------------------------------------- */

void coordinator_calls_back_twice(void)
{
	(void)turnstile_call_back(&s->turnstile, 3);
	(void)turnstile_call_back(&s->turnstile, 3);
}

void coordinator_lets_keep_nothing(void)
{
	if (turnstile_keep(&s->turnstile, 0, 0))
		was_last();
}

void coordinator_fences(void)
{
	(void)turnstile_apply(&s->turnstile, 2,
	                      (struct slots_ceiling){ 0, SLOTS_BY_FENCE });
	s->fenced = (uint32_t)add_relaxed(&s->clock, 1);
}

void coordinator_lowers(void)
{
	if (turnstile_apply(&s->turnstile, 2,
	                    (struct slots_ceiling){ 1, SLOTS_BY_SHARE }))
		was_last();
}

void coordinator_leaves(void)
{
	if (turnstile_apply(&s->turnstile, 2,
	                    (struct slots_ceiling){ 0, SLOTS_BY_SHARE }))
		was_last();
	s->reported = slots_in_flight(turnstile_word(&s->turnstile));
}

void coordinator_closes(void)
{
	if (turnstile_close(&s->turnstile))
		was_last();
}

/* ---- At the end ------------------------------------------------------------------- */

void all_slots_are_there(void)
{
	must_hold(slots_in_flight(turnstile_word(&s->turnstile)) ==
	          s->seats[0].has + s->seats[1].has + turnstile_kept(&s->turnstile));
	must_hold(load_relaxed(&s->turnstile.refused_gives) == 0);
}

void nothing_passed_the_fence(void)
{
	all_slots_are_there();
	if (s->seats[0].was < s->fenced)
		return;
	must_hold(s->seats[0].has == 0);
	must_hold(turnstile_kept(&s->turnstile) == 0);
}

void no_more_than_was_reported(void)
{
	all_slots_are_there();
	must_hold(slots_in_flight(turnstile_word(&s->turnstile)) <= s->reported);
}

void nothing_is_kept(void)
{
	all_slots_are_there();
	must_hold(turnstile_kept(&s->turnstile) == 0);
}

void one_was_the_last(void)
{
	all_slots_are_there();
	must_hold(s->lasts == 1);
	must_hold(slots_in_flight(turnstile_word(&s->turnstile)) == 0);
}
