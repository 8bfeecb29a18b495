/* SPDX-License-Identifier: MIT */
/* SPDX-FileCopyrightText: the gale authors */
/*
 * apart.c -- an array, searched from its beginning.
 */
#include "sim/apart.h"

#include <stdlib.h>
#include <string.h>

#include "sim/room.h"
#include "sim/server.h"

static size_t place_of(const struct aparts *aparts, uint64_t node)
{
	size_t at = 0;

	while (at < aparts->count && aparts->rows[at].node != node)
		at++;
	return at;
}

struct lease_row aparts_find(const struct aparts *aparts, uint64_t node)
{
	size_t at = place_of(aparts, node);

	return at < aparts->count ? aparts->rows[at] : (struct lease_row){ 0 };
}

static void make_room(struct aparts *aparts, size_t rows)
{
	if (rows <= aparts->room)
		return;
	aparts->room = 2 * rows;
	aparts->rows = room_for(aparts->rows, aparts->room * sizeof(*aparts->rows));
}

void aparts_keep(struct aparts *aparts, const struct lease_row *row)
{
	size_t at;

	if (row->node == 0)
		return;
	at = place_of(aparts, row->node);
	if (row->out > 0) {
		make_room(aparts, at + 1);
		aparts->rows[at] = *row;
		aparts->count += at == aparts->count;
	} else if (at < aparts->count) {
		aparts->rows[at] = aparts->rows[--aparts->count];
	}
}

void aparts_keep_of(struct aparts *aparts, const struct kept *after)
{
	if (after->crowd_begins)
		aparts->count = 0;
	aparts_keep(aparts, &after->apart);
}

void aparts_copy(struct aparts *to, const struct aparts *from)
{
	make_room(to, from->count);
	to->count = from->count;
	if (from->count > 0)
		memcpy(to->rows, from->rows, from->count * sizeof(*to->rows));
}

void aparts_free(struct aparts *aparts)
{
	free(aparts->rows);
	*aparts = (struct aparts){ 0 };
}
