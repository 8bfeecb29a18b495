/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/* ledger.c -- where a row stands, what is counted of those apart, and what a ledger may be. */
#include "engine/ledger.h"

#include <string.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- Rows ------------------------------------------------------------------------ */

size_t ledger_rows(const struct ledger *ledger)
{
	size_t rows = 0;

	while (rows < LEASE_ROWS && ledger->rows[rows].node != 0)
		rows++;
	return rows;
}

/* The node's row, or LEASE_ROWS. */
size_t ledger_row_of(const struct ledger *ledger, uint64_t node)
{
	size_t row = 0;

	while (row < LEASE_ROWS && ledger->rows[row].node != node)
		row++;
	return row;
}

static struct lease_row *crowd_row(struct ledger *ledger)
{
	size_t row = ledger_row_of(ledger, LEASE_CROWD);

	return row == LEASE_ROWS ? NULL : &ledger->rows[row];
}

uint64_t ledger_crowd_of(const struct ledger *ledger, uint64_t node)
{
	size_t crowd = ledger_row_of(ledger, LEASE_CROWD);

	if (crowd == LEASE_ROWS || ledger_row_of(ledger, node) != LEASE_ROWS)
		return 0;
	return ledger->rows[crowd].number;
}

/* The node's, wherever it is, or NULL. LEASE-6 */
struct lease_row *ledger_row(struct ledger *ledger, uint64_t node)
{
	size_t row = ledger_row_of(ledger, node);

	if (row < LEASE_ROWS)
		return &ledger->rows[row];
	if (ledger->apart.node != node || ledger->apart.out == 0 ||
	    ledger->apart.tag.us != ledger_crowd_of(ledger, node))
		return NULL;
	return &ledger->apart;
}

static uint64_t moved(uint64_t count, bool before, bool after)
{
	count += after;
	return count -
	       (before && count > 0); /* what a server has lost may be missing */
}

/* Of the row apart as it was, and as it is now. */
void ledger_count_crowd(struct ledger *ledger, const struct lease_row *before,
                        const struct lease_row *after)
{
	struct lease_row *crowd = crowd_row(ledger);

	crowd->out = moved(crowd->out, before->out > 0, after->out > 0);
	crowd->granted =
	    smaller(moved(crowd->granted, row_has_some(before), row_has_some(after)),
	            crowd->out);
}

/* In the place of the last row, or behind the others. */
static void make_crowd(struct ledger *ledger, uint64_t now, struct gale_slot tag)
{
	ledger->rows[LEASE_ROWS - 1] = (struct lease_row){
		.node = LEASE_CROWD,
		.number = now > 0 ? now : 1,
		.tag = tag,
	};
}

static void put_apart(struct ledger *ledger, const struct lease_row *row, uint64_t now)
{
	const struct lease_row *found = ledger_row(ledger, row->node);
	struct lease_row before = found ? *found : (struct lease_row){ 0 };

	if (!crowd_row(ledger))
		make_crowd(ledger, now, row->tag);
	ledger_count_crowd(ledger, &before, row);
	ledger->apart = *row;
	ledger->apart.tag = (struct gale_slot){ .us = crowd_row(ledger)->number };
}

/* The last of the value's rows is the crowd's. */
static bool goes_apart(const struct rule *rule, const struct ledger *ledger,
                       uint64_t node)
{
	return lent_from(rule) == A_WINDOW &&
	       ledger_row_of(ledger, node) == LEASE_ROWS &&
	       ledger_rows(ledger) >= LEASE_ROWS - 1;
}

/* The rows before it move on by one; the last, if there is no other place, is lost. */
static void put_first(struct ledger *ledger, const struct lease_row *first)
{
	size_t hole = ledger_row_of(ledger, first->node);

	if (hole == LEASE_ROWS)
		hole = ledger_rows(ledger);
	if (hole == LEASE_ROWS)
		hole--; /* LEASE-5 */
	memmove(&ledger->rows[1], &ledger->rows[0], hole * sizeof(ledger->rows[0]));
	ledger->rows[0] = *first;
}

void ledger_put(const struct rule *rule, struct ledger *ledger,
                const struct lease_row *row, uint64_t now)
{
	if (goes_apart(rule, ledger, row->node))
		put_apart(ledger, row, now);
	else
		put_first(ledger, row);
}

/* ---- Ahead ----------------------------------------------------------------------- */

struct lease_row *ledger_ahead_row(struct ledger *ledger)
{
	size_t row = ledger_row_of(ledger, LEASE_AHEAD);

	return row == LEASE_ROWS ? NULL : &ledger->rows[row];
}

uint64_t ledger_ahead(const struct ledger *ledger, uint64_t start_us)
{
	size_t row = ledger_row_of(ledger, LEASE_AHEAD);

	if (row == LEASE_ROWS || ledger->rows[row].tag.us != start_us)
		return 0;
	return ledger->rows[row].number - 1;
}

/* A row apart that has nothing out is forgotten, and that its node has said what it had with it. */
void ledger_end_claims(struct ledger *ledger)
{
	struct lease_row *row = ledger_ahead_row(ledger);

	if (row)
		row->out = 0;
}

/* Behind the others, and not in the crowd's place; NULL: there is no room. */
struct lease_row *ledger_make_ahead_row(struct ledger *ledger)
{
	size_t rows = ledger_rows(ledger);

	if (rows >= LEASE_ROWS - 1)
		return NULL;
	ledger->rows[rows] = (struct lease_row){
		.node = LEASE_AHEAD,
		.number = 1,
		.tag = ledger->rows[0].tag,
	};
	return &ledger->rows[rows];
}

/* ---- Validity -------------------------------------------------------------------- */

static bool row_is_empty(const struct lease_row *row)
{
	return (row->node | row->number | row->granted | row->out | row->tag.us |
	        row->tag.part) == 0;
}

static bool row_fits(const struct rule *rule, const struct lease_row *row)
{
	if (row->node > GALE_UNITS_MAX || row->number < 1 ||
	    row->number > GALE_UNITS_MAX || row->granted > GALE_UNITS_MAX ||
	    row->out > GALE_UNITS_MAX || row->tag.us > GALE_UNITS_MAX ||
	    row->tag.part >= rule->is.limit) /* RULE-3 */
		return false;
	switch (lent_from(rule)) {
	case A_WINDOW:
		return row->granted <= row->out && row->tag.part == 0;
	case A_METER:
		return row->granted == 0 || row->granted == row->out;
	default:
		return row->granted == 0 || row->out == 0 || row->granted == row->out;
	}
}

/* Beside its crowd, if it counts there. LEASE-6 */
static bool apart_fits(const struct rule *rule, const struct ledger *ledger)
{
	const struct lease_row *row = &ledger->apart;
	size_t crowd = ledger_row_of(ledger, LEASE_CROWD);

	if (row->node == 0)
		return row_is_empty(row);
	if (lent_from(rule) != A_WINDOW || row->node > LEASE_NODE_MAX ||
	    !row_fits(rule, row))
		return false;
	return crowd != LEASE_ROWS && row->tag.us == ledger->rows[crowd].number &&
	       ledger_row_of(ledger, row->node) == LEASE_ROWS;
}

/* Of one window, and no more out than it has used: each node of the crowd has one at least.
 * LEASE-4 */
static bool sum_fits(const struct window_state *state, const struct ledger *ledger)
{
	struct gale_slot tag = ledger->rows[0].tag;
	uint64_t sum = 0;

	for (size_t i = 0; i < ledger_rows(ledger); i++) {
		if (!slot_equal(ledger->rows[i].tag, tag) ||
		    ledger->rows[i].out > GALE_UNITS_MAX - sum)
			return false;
		sum += ledger->rows[i].out;
	}
	return tag.us < state->start_us || sum <= state->used;
}

bool ledger_valid(const struct rule *rule, const uint64_t *words,
                  const struct ledger *ledger)
{
	size_t used = ledger_rows(ledger);

	for (size_t i = 0; i < LEASE_ROWS; i++) {
		const struct lease_row *row = &ledger->rows[i];

		if (i >= used
		        ? !row_is_empty(row)
		        : ledger_row_of(ledger, row->node) != i || !row_fits(rule, row))
			return false;
	}
	if (!apart_fits(rule, ledger))
		return false;
	return lent_from(rule) != A_WINDOW ||
	       sum_fits((const struct window_state *)words, ledger);
}
