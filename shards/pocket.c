/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * pocket.c -- what happens to a pocket seldom.
 *
 * Threads   The seat's.
 */
#include "shards/pocket.h"

#include <string.h>

void pocket_empty(struct pocket *pocket, uint64_t known)
{
	memset(pocket->places, 0, sizeof(pocket->places));
	pocket->known = known;
}

void pocket_put(struct pocket *pocket, uint64_t forgotten,
                const struct purse_name *name, struct purse *purse, struct cell *cell)
{
	if ((!cell && purse_gets_cells(purse)) || !purse_be_at_hand(purse))
		return;
	if (!pocket_is_good(pocket, forgotten))
		pocket_empty(pocket, forgotten);
	pocket->places[pocket_index(name)] = (struct pocket_place){ purse, cell };
}
