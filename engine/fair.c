/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fair.c -- weighted max-min by bisection, to the unit.
 *
 * The k-th unit above a guarantee (from 0) falls due when the level reaches k / weight.  So at
 * level m / SCALE a child has ceil(m * weight / SCALE) of them, up to its room.  The largest m is
 * looked for at which the children have no more than there is.  Units that fall due between m
 * and m + 1 all fall due at one level, since two levels differ by 1 / SCALE at least: they are
 * equals, and go round by turn.
 */
#include "engine/fair.h"

#include <assert.h>
#include <stdbool.h>

#include <gale/rule.h>

#include "engine/check.h"

#define SCALE_BITS 40
static_assert((uint128)FAIR_WEIGHT_MAX * FAIR_WEIGHT_MAX <= (uint128)1 << SCALE_BITS,
              "see fair.h");

static uint64_t lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* ---- Checks ----------------------------------------------------------------------- */

static enum fair_fault check_node(const struct fair_node *node)
{
	if (node->weight < 1 || node->weight > FAIR_WEIGHT_MAX)
		return FAIR_WEIGHT;
	if (node->cap < node->guarantee || node->cap > GALE_UNITS_MAX)
		return FAIR_CAP;
	return node->demand > GALE_UNITS_MAX ? FAIR_DEMAND : FAIR_GOOD;
}

enum fair_fault fair_check(const struct fair_node *nodes, size_t count)
{
	enum fair_fault fault = FAIR_GOOD;
	uint64_t guaranteed = 0;

	for (size_t i = 0; i < count && fault == FAIR_GOOD; i++) {
		fault = check_node(&nodes[i]);
		if (fault != FAIR_GOOD || i == 0)
			continue;
		if (nodes[i].parent >= i ||
		    (i > 1 && nodes[i].parent < nodes[i - 1].parent))
			return FAIR_PARENT;
		if (i == 1 || nodes[i].parent != nodes[i - 1].parent)
			guaranteed = 0;
		guaranteed +=
		    nodes[i].guarantee; /* below 2^54: it is checked each time */
		if (guaranteed > nodes[nodes[i].parent].guarantee)
			return FAIR_GUARANTEE;
	}
	return fault;
}

/* ---- One node's children ---------------------------------------------------------- */

static uint64_t least_of(const struct fair_node *node)
{
	return lesser(node->guarantee, node->demand);
}

/* Units above the guarantee that fall due before level m / SCALE. */
static uint64_t due(const struct fair_node *node, uint128 m)
{
	uint128 units =
	    (m * node->weight + ((uint128)1 << SCALE_BITS) - 1) >> SCALE_BITS;
	uint64_t room = node->demand - least_of(node);

	return units < room ? (uint64_t)units : room;
}

/* Do they have no more than rest at this level? */
static bool fits(const struct fair_node *children, size_t count, uint128 m,
                 uint64_t rest)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t units = due(&children[i], m);

		if (units > rest)
			return false;
		rest -= units;
	}
	return true;
}

static uint128 find_level(const struct fair_node *children, size_t count, uint64_t rest)
{
	uint128 low = 0, high = ((uint128)rest + 1) << SCALE_BITS;

	while (high - low > 1) {
		uint128 m = low + (high - low) / 2;

		if (fits(children, count, m, rest))
			low = m;
		else
			high = m;
	}
	return low;
}

static void part_children(struct fair_node *children, size_t count, uint64_t budget,
                          size_t turn)
{
	uint128 m;

	for (size_t i = 0; i < count; i++)
		budget -= least_of(&children[i]);
	m = find_level(children, count, budget);
	for (size_t i = 0; i < count; i++) {
		children[i].part = least_of(&children[i]) + due(&children[i], m);
		budget -= due(&children[i], m);
	}
	for (size_t i = 0; i < count && budget > 0; i++) {
		struct fair_node *child = &children[(turn + i) % count];

		if (due(child, m + 1) == due(child, m))
			continue;
		child->part++;
		budget--;
	}
}

/* ---- The tree --------------------------------------------------------------------- */

/* A node demands what its children do, and none more than the cap. */
static void add_demands(struct fair_node *nodes, size_t count)
{
	for (size_t i = 1; i < count; i++)
		nodes[nodes[i].parent].demand = 0;
	for (size_t i = count; i-- > 0;) {
		nodes[i].demand = lesser(nodes[i].demand, nodes[i].cap);
		if (i > 0)
			nodes[nodes[i].parent].demand =
			    lesser(nodes[nodes[i].parent].demand + nodes[i].demand,
			           GALE_UNITS_MAX);
	}
}

void fair_part(struct fair_node *nodes, size_t count, size_t turn)
{
	size_t end;

	add_demands(nodes, count);
	nodes[0].part = nodes[0].demand;
	for (size_t i = 1; i < count; i = end) {
		struct fair_node *parent = &nodes[nodes[i].parent];

		for (end = i; end < count && nodes[end].parent == nodes[i].parent;
		     end++)
			gale_assert(nodes[end].parent < end); /* FAIR-2 */
		part_children(&nodes[i], end - i, parent->part, turn);
	}
}
