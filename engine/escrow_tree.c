/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * escrow_tree.c -- what hangs where.
 */
#include "engine/escrow_tree.h"

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
	escrow->window = above->window;
	escrow->used = escrow->absent = escrow_used(above, place); /* TREE-1 */
	above->tenants[place].below = escrow;
	return true;
}

void escrow_unhang(struct escrow *escrow)
{
	escrow_give(escrow->above, escrow->place, escrow->kept, escrow->window);
	escrow->kept = 0;
	escrow->above->tenants[escrow->place].below = NULL;
	escrow->above = NULL;
	escrow->set.limit = 0;
	escrow->settled = false;
}

/* A tenant that asks below has told its node, so none below is left when a node is due.  TREE-4 */
static void pass(struct escrow *escrow, uint64_t now_us)
{
	uint32_t due;

	while ((due = escrow_due(escrow, now_us)) != ESCROW_NOBODY) {
		if (escrow->tenants[due].below)
			pass(escrow->tenants[due].below, now_us);
		escrow_leave(escrow, due);
	}
}

void escrow_tree_pass(struct escrow *escrow, uint64_t now_us)
{
	if (escrow->above)
		escrow_tree_pass(escrow->above, now_us);
	pass(escrow, now_us);
}
