/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_tree.h -- escrows below tenants of other escrows: organisations, teams, users.
 *
 *     root: limit L      organisations are its tenants
 *       '- escrow below one of them: its limit is what the organisation has got of L so far
 *            '- ...
 *
 * An ask goes to the lowest escrow.  If there is too little for it there, its node asks the
 * escrow above for so much that the ask has its share, and everybody beside it keeps theirs.
 * So what is reserved below was got from above, and is used in the eyes of the node's siblings.
 *
 * Invariants
 *
 *   TREE-1  Below a node are used, at most, the units that the node has used above: so ESCROW-1
 *           of the root holds for all leaves together.  (T1)
 *   TREE-2  Units that a node has got are of the window in which it got them.
 *   TREE-3  Guarantees below a node are at most the node's: within its guarantee a leaf that is
 *           present finds its units at each level.  (T2)
 *   TREE-4  A node is present while something below it asks; when it becomes absent, units that
 *           it has got and not used go back.  (T3)
 *
 * Threads   Pure: one at a time for a tree.
 */
#ifndef ENGINE_ESCROW_TREE_H
#define ENGINE_ESCROW_TREE_H

#include "engine/escrow.h"

/* Of all escrows of a tree one after the other, the root first. */
#define ESCROW_DEPTH_MAX 16

/* Hangs an escrow that is new below a tenant of another.  Both have the same period and the
 * same release_us.  False: the tree would be too deep. */
bool escrow_hang(struct escrow *escrow, struct escrow *above, uint32_t place);

/* As escrow_pass and escrow_ask, of a tenant that has no escrow below. */
struct escrow_answer escrow_tree_ask(struct escrow *escrow, uint32_t number,
                                     uint64_t cost, uint64_t now_us);

#endif
