/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * fair.h -- how a budget is parted among those whose demands are known: weighted max-min.
 *
 *     node 0 is the budget; below it organisations, teams, users: a tree of any depth
 *     each node: guarantee first, then by weight, up to its cap and its demand
 *
 * Invariants
 *
 *   FAIR-1  The parts are what comes of handing the budget out unit by unit: once each child
 *           has its guarantee, the next unit goes to the child with the fewest units above
 *           its guarantee for its weight; of equals, to the first from turn on.
 *   FAIR-2  The children of a node have together what the node has, or all that they demand.
 *
 * Threads   Pure: any.
 */
#ifndef ENGINE_FAIR_H
#define ENGINE_FAIR_H

#include <stddef.h>
#include <stdint.h>

#include "engine/slot.h"

/* Two levels at which units fall due differ by 1 / 2^40 at least. */
#define FAIR_WEIGHT_MAX (UINT32_C(1) << 20)

/* The faults of a tree, or of the terms of a tenant. */
enum fair_fault {
	FAIR_GOOD,
	FAIR_PARENT, /* a parent that comes after its child, or out of order; so a cycle */
	FAIR_WEIGHT,    /* 0, or above FAIR_WEIGHT_MAX */
	FAIR_CAP,       /* below the guarantee, or above GALE_UNITS_MAX */
	FAIR_GUARANTEE, /* the children's together are above the parent's */
	FAIR_DEMAND,    /* above GALE_UNITS_MAX */
	FAIR_FULL,      /* there are as many as there may be */
};

struct fair_node {
	uint32_t parent; /* of node 0: 0 */
	uint32_t weight;
	uint64_t guarantee; /* node 0: the budget, and cap the same */
	uint64_t cap;
	uint64_t demand; /* of a leaf; of other nodes it is worked out */
	uint64_t part;   /* worked out */
};

/* Nodes in order: node 0, its children, the children of the first of them, and so on, so that
 * parents never decrease, and a node's children are next to each other. */
enum fair_fault fair_check(const struct fair_node *nodes, size_t count);

/* Works out each part.  turn: which child of each node is the first of equals; the next turn
 * gives the odd units to the next ones.  The tree has been checked. */
void fair_part(struct fair_node *nodes, size_t count, size_t turn);

/* A tenant's part of a budget that is parted by weight alone, whatever the others use. */
static inline uint64_t fair_share(uint64_t limit, uint64_t weight, uint64_t weights)
{
	uint64_t share = (uint64_t)((uint128)limit * weight / weights);

	return share > 0 ? share : 1;
}

#endif
