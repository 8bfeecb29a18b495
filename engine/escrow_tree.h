/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_tree.h -- escrows below tenants of other escrows: organisations, teams, users.
 *
 *     root: limit L          its tenants are organisations
 *       '- escrow below one of them: its limit is the organisation's share of L
 *            '- ...
 *
 * An ask is judged from the root down: by each escrow, for the node that the ask is below.  It is
 * admitted if each escrow has room for it, and is then used in each.
 *
 * A node's share may fall below what is used of it.  So a node keeps units of its share for the
 * guarantees below it that are not used yet: in the eyes of its siblings they are used.
 *
 * Invariants
 *
 *   TREE-1  What is used below a node, and what it keeps, is used by the node: so ESCROW-1 of the
 *           root holds for all leaves together.  (T1)
 *   TREE-2  Those below a node may use its share together, or what it has used if that is more;
 *           beyond it only the ask for which the node itself borrows.  (T2)
 *   TREE-3  Guarantees below a node are at most the node's, and it keeps what is not used of them:
 *           within its guarantee a leaf that is present finds its units at each level.  (T2)
 *   TREE-4  A node is present while something below it asks, and no longer.  (T3)
 *   TREE-5  What asks below were refused, their node was refused: it is owed what they left, all
 *           together.  (T4)
 *   TREE-6  A node owes what its calls have cost beyond their holds, also those from before it had
 *           tenants.  Its share pays that first, but for what it keeps for guarantees (TREE-3); until
 *           then those below get nothing else.
 *
 * Threads   Pure: one at a time for a tree.
 */
#ifndef ENGINE_ESCROW_TREE_H
#define ENGINE_ESCROW_TREE_H

#include "engine/escrow.h"

/* Escrows of a tree, one below the other. */
#define ESCROW_DEPTH_MAX 16

/* Hangs an escrow that is new below a tenant of another.  Both have the same period and the
 * same release_us.  What the tenant has used stays used.  False: the tree would be too deep. */
bool escrow_hang(struct escrow *escrow, struct escrow *above, uint32_t place);
/* The tenant is a leaf again; what was used below stays used.  The escrow has no limit left. */
void escrow_unhang(struct escrow *escrow);

/* escrow_pass, from the root down. */
void escrow_tree_pass(struct escrow *escrow, uint64_t now_us);

#endif
