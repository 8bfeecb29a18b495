/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_tree.c -- what a node gets from above for those below.
 */
#include "engine/escrow_tree.h"

#include "engine/check.h"
#include "engine/slot.h"

#define QUANTUM_PART 8 /* of its share a node gets at a time, if little is needed */

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static unsigned depth_of(const struct escrow *escrow)
{
	unsigned depth = 0;

	for (; escrow; escrow = escrow->above)
		depth++;
	return depth;
}

bool escrow_hang(struct escrow *escrow, struct escrow *above, uint32_t place)
{
	if (depth_of(above) >= ESCROW_DEPTH_MAX)
		return false;
	escrow->above = above;
	escrow->place = place;
	escrow->assured = above->tenants[place].terms.guarantee;
	escrow->set.limit = 0;
	above->tenants[place].below = escrow;
	return true;
}

/* ---- Time goes on ------------------------------------------------------------------- */

/* TREE-4 */
static void give_back(struct escrow *escrow, uint32_t number)
{
	struct escrow *below = escrow->tenants[number].below;

	if (!below || below->window != escrow->window)
		return;
	escrow_give(escrow, number, below->set.limit - below->used, escrow->window);
	below->set.limit = below->used;
	below->settled = false;
}

/* From the root down: who is absent, and that who asks is not. */
static void pass(struct escrow *escrow, uint32_t number, uint64_t now_us)
{
	uint32_t due;

	if (escrow->above)
		pass(escrow->above, escrow->place, now_us);
	while ((due = escrow_due(escrow, now_us)) != ESCROW_NOBODY) {
		give_back(escrow, due);
		escrow_leave(escrow, due);
	}
	escrow_saw(escrow, number);
}

/* ---- Getting more ------------------------------------------------------------------- */

/* The limit at which the tenant's share has room for the cost: what all others have then, too. */
static uint64_t limit_for(const struct escrow *escrow, const struct escrow_tenant *asks,
                          uint64_t cost)
{
	uint64_t base = asks->terms.guarantee + asks->repaid, to = asks->used + cost;
	uint64_t rise = to > base ? to - base : 0;
	uint128 limit = escrow->absent;

	for (uint32_t i = escrow->lists[ESCROW_PRESENT].first; i != ESCROW_NOBODY;
	     i = escrow->tenants[i].after) {
		const struct escrow_tenant *tenant = &escrow->tenants[i];
		uint128 has =
		    tenant->terms.guarantee + tenant->repaid +
		    ((uint128)rise * tenant->terms.weight + asks->terms.weight - 1) /
			asks->terms.weight;

		if (has > tenant->terms.cap)
			has = tenant->terms.cap;
		limit += has > tenant->used ? has : tenant->used;
	}
	return limit < GALE_UNITS_MAX ? (uint64_t)limit : GALE_UNITS_MAX;
}

static struct escrow_answer ask(struct escrow *escrow, uint32_t number, uint64_t cost,
                                uint64_t now_us);

/* So many more units, or what is left of the node's share above.  TREE-1 */
static bool grow(struct escrow *escrow, uint64_t want, uint64_t now_us)
{
	struct escrow_answer answer = ask(escrow->above, escrow->place, want, now_us);
	uint64_t got = want;

	if (!answer.admitted)
		got = escrow_ask_ahead(escrow->above, escrow->place, want);
	else
		got += escrow_ask_ahead(escrow->above, escrow->place,
		                        answer.share / QUANTUM_PART);
	escrow->set.limit += got;
	escrow->settled = false;
	return got > 0;
}

static struct escrow_answer ask(struct escrow *escrow, uint32_t number, uint64_t cost,
                                uint64_t now_us)
{
	struct escrow_answer answer = escrow_ask(escrow, number, cost, now_us);
	uint64_t limit;

	if (answer.admitted || !escrow->above || answer.retry_us == GALE_NEVER)
		return answer;
	limit = limit_for(escrow, &escrow->tenants[number], cost);
	if (grow(escrow, greater(limit, escrow->set.limit + 1) - escrow->set.limit,
	         now_us))
		answer = escrow_ask(escrow, number, cost, now_us);
	return answer;
}

struct escrow_answer escrow_tree_ask(struct escrow *escrow, uint32_t number,
                                     uint64_t cost, uint64_t now_us)
{
	gale_assert(!escrow->tenants[number].below);
	pass(escrow, number, now_us);
	return ask(escrow, number, cost, now_us);
}
